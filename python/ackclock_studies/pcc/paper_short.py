"""Short flows (NSDI 2015, section 4.3.2): 100 KB at random times over 15 Mb/s and 60 ms, at loads of 5 to 75 %."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ackclock.judge.estimates import quotient
from ackclock.plot import Figure, new
from ackclock.report import Block
from ackclock.scenario import Scenario
from ackclock.study import (
    Bound,
    Chapter,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
    at_most,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.pcc import arms
from ackclock_studies.pcc.arms import PACKET_BYTES, PCC, PRINTED, Arm, pcc, tcp

RATE_BPS = 15e6
FLOW_BYTES = 100_000
FLOWS = 500
LOADS = (5, 15, 25, 35, 45, 55, 65, 75)
"""Loads, percent: all flows' packets, each counted once, relative to link capacity."""

FEW = (5, 45, 75)
SILENT = pcc("PCC, sends nothing twice unasked", "pcc-allegro-modong", "green", "D", ":", fills_up=False)
"""Arm without needless retransmissions. The authors' sender retransmits unacknowledged data rather than idle: at the end of each flow, for one RTT."""

TCP10 = tcp("TCP, 10 segments at first", "cubic", "orange", "^")
TCP1 = tcp("TCP, 1 segment at first", "cubic", "purple", "P", "--", initial_window=1)
ARMS = (PCC, SILENT, PRINTED, TCP10, TCP1)
RTT_S = 0.060


def scenario(arm: Arm, load: int) -> Scenario:
    """500 flows of a Poisson process; the buffer is one bandwidth-delay product."""
    packets = -(-FLOW_BYTES // arm.payload)
    mean_s = packets * PACKET_BYTES * 8 / RATE_BPS / (load / 100)
    # far beyond the last start: twenty standard deviations, plus one minute for the last flows
    length_s = mean_s * (FLOWS + 20 * FLOWS**0.5) + 60
    return Scenario.from_dict(
        {
            "name": f"short flows, load {load} %, {arm.name}",
            "duration": f"{length_s:.0f} s",
            "network": {
                "access": {"rate": "1 Gbit/s"},
                "bottleneck": {
                    "rate": "15 Mbit/s",
                    "delay": "30 ms",
                    "queue": {"kind": "drop-tail", "limit": "75 packets"},
                },
            },
            "flows": [
                arm.flows(
                    count=FLOWS,
                    workload={"kind": "transfer", "bytes": f"{FLOW_BYTES} bytes"},
                    stagger={"kind": "exponential", "mean": f"{1e3 * mean_s:.6f} ms"},
                )
            ],
        }
    )


NEEDS = {"flows": ("completion_s",)}


def run(plan: Plan) -> Data:
    """Every protocol at every load.

    Returns
    -------
    Data
        `short.times`: arm, load, seed, median_s, mean_s, p95_s (from the start to the last acknowledgement, of the flows that
        completed), unfinished (of 500).
    """
    quick = plan.scale == "quick"
    seeds = plan.count(quick=3, paper=8)
    cells = [
        Cell(
            scenario=scenario(arm, load),
            keys={"arm": arm.name, "load": load},
            stream=f"short {load}",
            seeds=seeds,
            needs=NEEDS,
        )
        for load in (FEW if quick else LOADS)
        for arm in ARMS
    ]
    data = collect("short", cells, plan)
    return Data(tables={TABLE: completion(data.tables["short.flows"])}, digests=data.digests, runs=data.runs)


def completion(flows: pl.DataFrame) -> pl.DataFrame:
    """Measured values for each run."""
    t = pl.col("completion_s")
    return flows.group_by("arm", "load", "seed", maintain_order=True).agg(
        t.median().alias("median_s"),
        t.mean().alias("mean_s"),
        t.quantile(0.95, "linear").alias("p95_s"),
        t.null_count().alias("unfinished"),
    )


TABLE = "short.times"


def _slower(tables: Tables, arm: Arm, base: Arm, load: int, column: str, *, weighs: bool) -> Evidence:
    name = {"median_s": "median", "p95_s": "95th percentile"}[column]
    ratio = arms.times(tables, TABLE, column, arm, base, load=load)
    return Evidence.of(
        ratio, f"{arm.name}, load {load} %: {name} over {base.name}", at_most(1.2), unit="times", weighs=weighs
    )


def median_is_tcps(tables: Tables) -> Sequence[Evidence]:
    """Median completion time at every load."""
    return [
        _slower(tables, arm, base, load, "median_s", weighs=arm is PCC and base is TCP10)
        for arm in (PCC, SILENT, PRINTED)
        for base in (TCP10, TCP1)
        for load in arms.values(tables, TABLE, "load")
    ]


def tail_is_tcps(tables: Tables) -> Sequence[Evidence]:
    """95th percentile of the completion times at every load."""
    return [
        _slower(tables, arm, TCP10, load, "p95_s", weighs=arm is PCC)
        for arm in (PCC, SILENT, PRINTED)
        for load in arms.values(tables, TABLE, "load")
    ]


LIGHT, HEAVY = 5, (45, 75)
"""Loads at which the two causes are tested: one where flows hardly overlap, and one where they share the link."""


def against_one_segment(tables: Tables, bound: Bound, *, column: str) -> Sequence[Evidence]:
    """PCC against TCP with an initial window of one segment, at a load where flows hardly overlap."""
    ratio = quotient(*(arms.mean(tables, TABLE, column, arm=a.name, load=LIGHT) for a in (PCC, TCP1)))
    return [Evidence.of(ratio, f"load {LIGHT} %: {PCC.name} over {TCP1.name}", bound, unit="times")]


def without_copies(tables: Tables, bound: Bound, *, column: str) -> Sequence[Evidence]:
    """PCC against itself without the copies, at a load where flows share the link."""
    return [
        Evidence.of(
            quotient(*(arms.mean(tables, TABLE, column, arm=a.name, load=load) for a in (PCC, SILENT))),
            f"load {load} %: {PCC.name} over {SILENT.name}",
            bound,
            unit="times",
        )
        for load in HEAVY
    ]


def figure(tables: Tables) -> Figure:
    """Median and 95th percentile against the load."""
    table = tables[TABLE]

    def draw() -> Any:
        figure, axes = new(8.2, 4.2, ncols=2, sharey=True)
        for ax, column, title in zip(axes, ("median_s", "p95_s"), ("median", "95th percentile"), strict=True):
            arms.curves(ax, arms.summary(table, ("arm", "load"), column), ARMS, "load", column)
            ax.axhline(2 * RTT_S, color="#6b6b6b", lw=0.9)
            ax.set_yscale("log")
            ax.yaxis.set_major_formatter("{x:g}")
            ax.set_xlabel("offered load (%)")
            ax.set_title(title)
        axes[0].set_ylabel("completion time (s)")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return figure

    return Figure(
        name="short",
        title="Completion times of short flows",
        caption=(
            "500 flows of 100 KB at random times over 15 Mb/s and 60 ms. Means over seeds; the shade spans least and greatest. "
            "Grey: two RTTs, the least time with a connection set up first."
        ),
        draw=draw,
        data={"short": table},
    )


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {"PCC, short flows at 45 %": scenario(PCC, 45)}


EXPERIMENT = Experiment(name="short", title="short flows at loads of 5 to 75 %", run=run, weight=3)


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (figure(tables),)


CHAPTER = Chapter(experiments=(EXPERIMENT,), **declared(__name__), blocks=blocks, scenarios=scenarios)
