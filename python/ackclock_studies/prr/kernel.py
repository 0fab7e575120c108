"""PRR switched on and off within one Linux kernel: fetches under rate halving, RFC 6675 and PRR with everything else
identical, on the real kernel and in the simulator. The publication's authors tried this without success: they
compared two kernels that differ in more than the rule. Both backends have the
same losses, fetch by fetch, and so do the rules; gains are paired.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from ackclock.judge.estimates import Array, gain, mean_over_runs, minus, quotient
from ackclock.report import Section, Table, paragraph
from ackclock.scenario import Scenario
from ackclock.stats import Estimate
from ackclock.study import Claim, Criterion, Data, Evidence, Experiment, Plan, Tables, above
from ackclock.study.cells import Cell, collect
from ackclock.study.kernel import NAMES, KernelPart
from ackclock_studies.prr import kernels, latency, path
from ackclock_studies.prr.path import HIGH, LOSSES, LOW, PAGE_LABELS, percent, where
from ackclock_studies.prr.rules import CRB, LINUX_6, PRR, RATE_HALVING, RFC6675, RFC9937, SSRB, UB, label

PAGES = path.PAGES[2:]
RULES = (RATE_HALVING, RFC6675, PRR, CRB, SSRB, UB, RFC9937, LINUX_6)
FETCHES = {76_800: 100, 768_000: 25}
"""Number of fetches per run."""

RUNS = {76_800: 10, 768_000: 8}
"""Number of runs (seeds) per cell."""

TABLE = "fetches.fetches"


def scenario(rule: str, page: int, loss: float) -> Scenario:
    """Consecutive fetches over the publication's path, under Linux 6 with a different rule."""
    workload = {
        "kind": "fetch",
        "bytes": f"{page} bytes",
        "count": FETCHES[page],
        "pause": "1 s",
        "common_random_numbers": True,
    }
    return Scenario.from_dict(
        {
            "name": f"{rule}, {page} bytes, {percent(loss)}",
            "duration": f"{FETCHES[page] * (60 if page > 100_000 else 15)} s",
            "network": path.network(loss),
            "flows": [{**path.host(profile="linux-6", recovery=rule), "workload": workload}],
        }
    )


def run(plan: Plan) -> Data:
    """Every rule, page and loss.

    Returns
    -------
    Data
        `fetches.fetches`: rule, page, loss, seed, idx, total_s, done, data_retransmissions, data_rtos.
    """
    cells = [
        Cell(
            scenario=scenario(rule, page, loss),
            keys={"rule": rule, "page": page, "loss": loss},
            stream=f"prr kernel {page} {loss}",
            seeds=plan.count(quick=RUNS[page], paper=RUNS[page]),
            needs={"fetches": ("idx", "total_s", "done", "data_retransmissions", "data_rtos")},
        )
        for page in PAGES
        for loss in LOSSES
        for rule in RULES
    ]
    return collect("fetches", cells, plan)


def cell(tables: Tables, rule: str, page: int, loss: float) -> pl.DataFrame:
    """One cell's rows."""
    return tables[TABLE].filter((pl.col("rule") == rule) & (pl.col("page") == page) & (pl.col("loss") == loss))


def hit(tables: Tables, page: int, loss: float, rule: str) -> tuple[Array, Array]:
    """Latencies under rate halving and under the rule, for fetches with data retransmitted under either."""
    a, b = cell(tables, RATE_HALVING, page, loss), cell(tables, rule, page, loss)
    both = a.join(b, on=["seed", "idx"], suffix="_other").filter(
        (pl.col("data_retransmissions") + pl.col("data_retransmissions_other") > 0)
        & pl.col("done").cast(pl.Boolean)
        & pl.col("done_other").cast(pl.Boolean)
    )
    return (both["total_s"].to_numpy().astype(np.float64), both["total_s_other"].to_numpy().astype(np.float64))


def t3(tables: Tables) -> Sequence[Evidence]:
    """PRR's gain at 1 % loss."""
    return [
        Evidence.of(gain(*hit(tables, page, LOW, PRR)), f"{where(page, LOW)}: gain of {label(PRR)}", above(0), unit="%")
        for page in PAGES
    ]


def t5(tables: Tables) -> Sequence[Evidence]:
    """Rise from 1 % to 3 % without PRR, minus the rise with PRR."""
    found = []
    for page in PAGES:
        old, new = (rise(tables, page, rule) for rule in (RATE_HALVING, PRR))
        label = f"{PAGE_LABELS[page]}: 3 % over 1 %, rate halving less PRR"
        found.append(Evidence.of(minus(old, new), label, above(0)))
    return found


def rise(tables: Tables, page: int, rule: str) -> Estimate:
    """Mean latency of all fetches at 3 % loss, relative to 1 %."""
    seconds = []
    for loss in (HIGH, LOW):
        rows = cell(tables, rule, page, loss).filter(pl.col("done").cast(pl.Boolean))
        seconds.append(mean_over_runs(rows["total_s"].to_numpy().astype(np.float64)))
    return quotient(*seconds)


def t6(tables: Tables) -> Sequence[Evidence]:
    """Gain at 3 % loss minus gain at 1 %."""
    return [
        Evidence.of(
            minus(*(gain(*hit(tables, page, loss, PRR)) for loss in (HIGH, LOW))),
            f"{PAGE_LABELS[page]}: gain at 3 % less gain at 1 %",
            above(0),
            unit="points",
        )
        for page in PAGES
    ]


MEASURES = {"T3": t3, "T5": t5, "T6": t6}

CLAIMS = tuple(
    Claim(
        id=claim.id,
        place=claim.place,
        statement=claim.statement,
        direction=Criterion(measure=MEASURES[claim.id], reading="pages of 75 KB and 750 KB, hosts of Linux 6"),
    )
    for claim in (*latency.CHAPTER.claims, *kernels.CHAPTER.claims)
    if claim.id in MEASURES
)

_IDEAL = "is about the ideal path, which is computed, not run"
_OLD = "compares kernels of 2011; one kernel cannot be both"
_PIPE = "needs the pipe at the start of each recovery, which the kernel does not report"
_QUEUE = "needs the queue's length by parts of a recovery, which the kernel's part does not record"
_EVENTS = "needs more fetches than the kernel carries out in minutes"

LEFT_OUT = {
    "T1": "needs the congestion window on every ACK of one long flow; ackclock diff compares that",
    "T2": _IDEAL,
    "T4": "holds by construction: the rule acts in recovery only",
    "T7": "is about production, and about kernels of 2011",
    "T8": _OLD,
    "T9": _OLD,
    "T10": _OLD,
    "T11": _OLD,
    "T12": "needs queues and losses that the kernel's part does not run",
    "P1": _PIPE,
    "P2": "needs the window at the end of each recovery, which the kernel does not report",
    "P3": _EVENTS,
    "P4": _EVENTS,
    "P5": "is T3 and T6 in every cell, short pages too",
    "P6": "the table of gains has RFC 6675 beside PRR",
    "P7": _IDEAL,
    "P8": _IDEAL,
    "P10": "the table of gains has both rules",
    "P11": _EVENTS,
    "P12": _EVENTS,
    "P13": "needs the congestion window on every ACK",
    "P14": _IDEAL,
    "P9": "needs early retransmit, which Linux 6 no longer has",
    "P15": "the kernel has one SACK retransmit algorithm",
    "P16": _PIPE,
    "P17": _QUEUE,
    "P18": _QUEUE,
    "P19": "needs every segment of a recovery; ackclock diff compares them",
    "P20": "needs every segment of a recovery; ackclock diff compares them",
    "P21": _EVENTS,
    "P22": "needs every segment of a recovery; ackclock diff compares them",
    "P23": "needs late packets, which the kernel's part does not run",
    "P24": "needs connections without SACK, which the kernel's part does not run",
    "P25": _EVENTS,
    "P26": "needs a neighbour behind the same queue, which the kernel's part does not run",
    "V1": _PIPE,
    "V2": "needs the window at the end of each recovery, which the kernel does not report",
    "V3": _EVENTS,
    "V4": _EVENTS,
    "P27": "needs bursts of losses that pass in time, which the kernel's part does not run",
    "P28": "the table of gains has RFC 6675 beside PRR",
}


def sections(tables: Mapping[str, Tables]) -> tuple[Section, ...]:
    """Every rule's gains on both backends."""
    rows = []
    for page in PAGES:
        for loss in LOSSES:
            for rule in RULES:
                told = []
                for own in tables.values():
                    base, other = hit(own, page, loss, rule)
                    found = gain(base, other)
                    timeouts = int(cell(own, rule, page, loss)["data_rtos"].sum())
                    mean = f"{other.mean():.3f}" if other.size else "–"
                    told += [mean, f"{found.value:+.2f} ({found.low:+.2f} to {found.high:+.2f})", f"{timeouts}"]
                rows.append((where(page, loss), label(rule), *told))
    table = Table(
        caption=(
            "Fetches that retransmitted data: mean latency, how much lower it is than with rate halving (95 % interval), and timeouts of all "
            "fetches of the cell."
        ),
        header=(
            "page, loss",
            "rule",
            *(f"{NAMES[b]}, {what}" for b in tables for what in ("s", "gain over rate halving (%)", "timeouts")),
        ),
        rows=tuple(rows),
    )
    about = paragraph(
        "One kernel with one rule exchanged for another; everything else is equal, and so are the losses."
    )
    return (Section(title="One kernel, eight rules", blocks=(about, table)),)


PART = KernelPart(
    summary=(
        "Fetches over the path of the publication from a Linux 6 kernel whose recovery rule alone is exchanged: what the publication's two "
        "kernels could not tell apart."
    ),
    experiments=(Experiment(name="fetches", title="fetches of 75 KB and 750 KB, eight rules", run=run),),
    claims=CLAIMS,
    left_out=LEFT_OUT,
    sections=sections,
    scenarios=lambda: {"75 KB at 1 %, PRR": scenario(PRR, PAGES[0], LOW)},
    record=Path(__file__).with_name("kernel.json"),
)
