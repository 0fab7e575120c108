"""Interventions: the effect in T3, T6, P1, P2, P3, P6 and P10 that remains if its supposed cause is removed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import Array, gain, minus, percent_more, quotient, scaled
from ackclock.stats import Estimate
from ackclock.study import Bound, Data, Evidence, Plan, Tables
from ackclock.study.cells import Cell, collect
from ackclock_studies.prr import burst_loss, path, population
from ackclock_studies.prr.fetches import NEEDS, compared, jointly, paired
from ackclock_studies.prr.path import HIGH, LARGE, LOSSES, LOW, PAGE_LABELS, PAGES, where
from ackclock_studies.prr.rules import CRB, PRR, RATE_HALVING, RFC6675, SSRB, label, prr

SIX: Mapping[str, Mapping[str, Any]] = {
    "initial window of 3": {"initial_window": 3},
    "duplicate ACKs instead of FACK": {"detection": "dupthresh"},
}
"""Changes that remove the supposed causes for a six-segment page: the initial window of ten, and FACK."""


def run_six(plan: Plan) -> Data:
    """Six-segment pages with an initial window of three, and without FACK.

    Returns
    -------
    Data
        `six.fetches`: change, arm, seed and what a fetch met.
    """
    cells = [
        Cell(
            scenario=path.fetch(PAGES[1], HIGH, path.host(recovery=rule, **stack), name=f"{rule}, {change}"),
            keys={"change": change, "arm": rule, "page": PAGES[1], "loss": HIGH},
            stream="six",
            seeds=plan.count(quick=2000, paper=12_000),
            needs={"fetches": ("total_s", "data_retransmissions")},
        )
        for change, stack in SIX.items()
        for rule in (RATE_HALVING, PRR, SSRB)
    ]
    return collect("six", cells, plan)


def fits(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Gain for a six-segment page that does not fit into the initial window; also without FACK."""
    return [
        Evidence.of(
            gain(*paired(own, PAGES[1], HIGH, RATE_HALVING, prr(tables))),
            f"{where(PAGES[1], HIGH)}, {change}: gain of {label(prr(tables))}",
            bound,
            unit="%",
            weighs="window" in change,
            key="small_window" if "window" in change else "no_fack",
        )
        for change in SIX
        for own in (tables["six.fetches"].filter(pl.col("change") == change),)
    ]


def without_growth(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Fraction of the gain's growth from 1 to 3 % loss that remains with CRB, which does not grow below ssthresh."""
    found = []
    for page in PAGES[2:]:
        # identical fetches under all three rules, so that their common part cancels out
        rows = {loss: jointly(tables, page, loss, (RATE_HALVING, prr(tables), CRB)) for loss in LOSSES}
        own, bounded = (
            minus(*(gain(rows[loss][0], rows[loss][k], runs=f"{page} {loss}") for loss in (HIGH, LOW))) for k in (1, 2)
        )
        found.append(
            Evidence.of(
                percent_of(bounded, own),
                f"{PAGE_LABELS[page]}: of the growth of the gain, what is left with {label(CRB)}",
                bound,
                unit="%",
                weighs=page == LARGE,
                key=f"left_{PAGE_LABELS[page].split()[0]}",
            )
        )
    return found


def grows_without(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """T6's value for a rule that does not grow below ssthresh: growth of the gain from 1 to 3 % loss."""
    return [
        Evidence.of(
            minus(*(gain(*compared(tables, page, loss, RATE_HALVING, CRB)) for loss in (HIGH, LOW))),
            f"{PAGE_LABELS[page]}: gain of {label(CRB)} at 3 % less gain at 1 %",
            bound,
            unit="points",
            key=f"grows_{PAGE_LABELS[page].split()[0]}",
        )
        for page in PAGES[2:]
    ] + [replace(e, weighs=False) for e in without_growth(tables, Bound())]


def percent_of(part: Estimate, whole: Estimate) -> Estimate:
    """Ratio of two estimates, percent."""
    return scaled(quotient(part, whole), 100)


def overflowing(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Completion times of RFC 6675 and PRR where RFC 6675's bursts overflow the queue."""
    return [
        Evidence.of(
            gain(*burst_loss.pairs(tables, "total_s", RFC6675, prr(tables), 1, 10)),
            f"{burst_loss.name(1, 10)}, 750 KB: {label(prr(tables))} below RFC 6675",
            bound,
            unit="%",
            key="overflow",
        )
    ]


def in_bursts(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """CRB's cost under loss bursts, minus its cost under single losses."""
    cost = {n: gain(*burst_loss.pairs(tables, "total_s", CRB, RFC6675, n, 100)) for n in (1, 3)}
    return [
        Evidence.of(
            minus(cost[3], cost[1]),
            "750 KB, 2 % lost, RFC 6675 below PRR-CRB: bursts of 3 less single losses",
            bound,
            unit="points",
            key="bursts",
        ),
        *(
            Evidence.of(
                e,
                f"750 KB, {burst_loss.name(n, 100)}: RFC 6675 below PRR-CRB",
                Bound(),
                unit="%",
                weighs=False,
                key=f"cost_{n}",
            )
            for n, e in cost.items()
        ),
    ]


LONGER = {"kind": "lognormal", "median": "30 kB", "sigma": 1.354}
"""Responses ten times as long as the Web population's."""


def run_longer(plan: Plan) -> Data:
    """The Web population with responses ten times as long.

    Returns
    -------
    Data
        `longer.fetches` and `longer.recoveries`, keys arm, seed.
    """
    cells = [
        Cell(
            scenario=population.scenario("Web", rule, 250, bytes=LONGER),
            keys={"arm": rule},
            stream="population longer",
            seeds=plan.count(quick=10, paper=40),
            needs=NEEDS,
        )
        for rule in (RATE_HALVING, PRR)
    ]
    return collect("longer", cells, plan)


def longer(tables: Tables, arm: str, counted: pl.Expr) -> tuple[Array, Array]:
    """Number of a rule's recoveries with longer responses for which `counted` holds, and total number, by seed."""
    own = tables["longer.recoveries"].filter(arm=arm)
    per = own.group_by("seed").agg(counted.sum().alias("some"), pl.len().alias("all")).sort("seed")
    return per["some"].to_numpy().astype(np.float64), per["all"].to_numpy().astype(np.float64)


def more_timeouts(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Rate halving's timeouts in excess of PRR's, with responses ten times as long."""
    per = tables["longer.fetches"].group_by("arm", "seed").agg(pl.col("data_rtos").sum()).sort("seed")
    x, y = (per.filter(arm=arm)["data_rtos"].to_numpy().astype(np.float64) for arm in (RATE_HALVING, PRR))
    return [
        Evidence.of(
            percent_more(x, y),
            "Web population, responses ten times as long: more timeouts",
            bound,
            unit="%",
            key="longer",
        )
    ]
