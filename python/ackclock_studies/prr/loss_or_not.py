"""Fetches with losses against fetches without (T4, T7)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from ackclock.judge.estimates import NOTHING, bootstrap, mean_over_runs, quotient
from ackclock.stats import Estimate
from ackclock.study import Bound, Chapter, Evidence, Tables, exactly, same
from ackclock.study.table import declared
from ackclock_studies.prr import fetches, kernels
from ackclock_studies.prr.path import LOSSES, LOW, PAGE_LABELS, PAGES, where
from ackclock_studies.prr.rules import PRR, RATE_HALVING
from ackclock_studies.prr.split import group_a_mean, group_b_mean


def t4(tables: Tables) -> Sequence[Evidence]:
    """The publication's group without losses, on its two kernels; for context, the largest difference over all
    loss-free fetches if only the rule changes.
    """
    worst = 0.0
    for page in PAGES:
        for loss in LOSSES:
            x, y = fetches.paired(tables["latency.fetches"], page, loss, RATE_HALVING, PRR, hit=False)
            worst = max(worst, float(np.abs(x - y).max(initial=0.0)))
    found = [
        Evidence(
            label="largest difference over all loss-free fetches",
            value=1000 * worst,
            bound=exactly(0),
            unit="ms",
            weighs=False,  # zero by construction: a rule acts only in recovery
        )
    ]
    for page in PAGES:
        old, new = (
            fetches.latencies(tables["kernels.fetches"], arm, page, LOW)
            for arm in (kernels.WITHOUT_PRR, kernels.WITH_PRR)
        )
        less = bootstrap(lambda x, y: 100 * (1 - group_a_mean(y) / group_a_mean(x)), old, new)
        text = f'{where(page, LOW)}: group "almost no retransmission", kernel 3.2 below kernel 3.0'
        cell = {"page": PAGE_LABELS[page]}
        found.append(Evidence.of(less, text, same(5), unit="%", key=f"kernels_{page}", cell=cell))
    return found


def factor(rows: pl.DataFrame) -> Estimate:
    """Ratio of the mean latency of fetches with a data retransmission to that of fetches without any loss."""
    syn = (rows["syn_retransmissions"] + rows["synack_retransmissions"]).to_numpy() > 0
    hit = rows["data_retransmissions"].to_numpy() > 0
    total = rows["total_s"].to_numpy().astype(np.float64)
    done = np.isfinite(total)
    clean = total[~hit & ~syn & done]
    # larger pages have hardly any loss-free fetches: their latency is exact, and known from T4
    return quotient(mean_over_runs(total[hit & done]), mean_over_runs(clean)) if clean.size >= 5 else NOTHING


def _factors(tables: Tables, bound: Bound, decides: str) -> list[Evidence]:
    """Ratios in the Web population, in each cell of the testbed, and as the publication sorted fetches; `decides` names the one that determines the verdict."""
    web = tables["population.fetches"].filter((pl.col("setting") == "Web") & (pl.col("arm") == PRR))
    asked = [("Web population", "Web", factor(web))]
    for page in PAGES:
        for loss in LOSSES:
            found = factor(fetches.cell(tables["latency.fetches"], PRR, page, loss))
            if found.n:
                asked.append((f"{where(page, loss)}", "testbed", found))
    for arm in (kernels.WITH_PRR, kernels.WITHOUT_PRR):
        total = fetches.latencies(tables["kernels.fetches"], arm, PAGES[0], LOW)
        value = bootstrap(lambda x: group_b_mean(x) / group_a_mean(x), total)
        asked.append((f"{where(PAGES[0], LOW)}, kernel {arm}, 2-sigma groups", "groups", value))
    return [
        Evidence.of(
            value,
            f"{name}: with over without loss",
            bound,
            weighs=kind in decides.split(),
            key={"Web": "web"}.get(
                kind, "one" if f"kernel {kernels.WITH_PRR}," in name else "three" if kind == "groups" else ""
            ),
        )
        for name, kind, value in asked
    ]


def t7(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Check whether fetches with loss take longer at all."""
    return _factors(tables, bound, "Web testbed")


def t7_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Size of the additional time."""
    return _factors(tables, bound, "Web")


CHAPTER = Chapter(**declared(__name__))
