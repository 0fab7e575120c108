"""RTT unfairness (NSDI 2015, section 4.1.5): a flow with a 10 ms RTT against an earlier one with 20 to 100 ms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ackclock.judge.estimates import minus
from ackclock.plot import GREY, Figure, new
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
    between,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.pcc import arms
from ackclock_studies.pcc.arms import CUBIC, JITTER, NEWRENO, PCC, PRINTED, Arm

SHORT_MS = 10
LONG_MS = (20, 40, 60, 80, 100)
FEW_MS = (20, 100)
ARMS = (PCC, PRINTED, CUBIC, NEWRENO)
START_S = 5


def scenario(arm: Arm, long_ms: int, both_s: int) -> Scenario:
    """100 Mb/s, with the short flow's bandwidth-delay product as buffer; flow 0 is the long one."""

    def access(rtt_ms: int) -> dict[str, str]:
        return {"rate": "1 Gbit/s", "delay": f"{rtt_ms / 2 - 1.5:g} ms", "jitter": JITTER}

    return Scenario.from_dict(
        {
            "name": f"RTT of {long_ms} ms against {SHORT_MS} ms, {arm.name}",
            "duration": f"{START_S + both_s} s",
            "network": {
                "topology": "wishbone",
                "access_list": [access(long_ms), access(SHORT_MS)],
                "bottleneck": {
                    "rate": "100 Mbit/s",
                    "delay": "0.5 ms",
                    "queue": {"kind": "drop-tail", "limit": "83 packets"},
                },
                "egress": {"rate": "1 Gbit/s", "delay": "1 ms"},
            },
            "flows": [arm.flows(), arm.flows(start=f"{START_S} s")],
            "record": {"goodput_interval": f"{START_S} s"},
        }
    )


NEEDS = {"goodput": ("flow", "t_s", "goodput_bps")}


def run(plan: Plan) -> Data:
    """Run both flows together for 100 s.

    Returns
    -------
    Data
        `rtt.ratio`: arm, long_ms, seed, long_mbps, short_mbps (while both are active), ratio.
    """
    quick = plan.scale == "quick"
    seeds = plan.count(quick=3, paper=6)
    cells = [
        Cell(
            scenario=scenario(arm, ms, 100),
            keys={"arm": arm.name, "long_ms": ms},
            stream=f"rtt {ms}",
            seeds=seeds if arm is PCC or (ms in FEW_MS and arm is not PRINTED) else max(2, seeds // 2),
            needs=NEEDS,
        )
        for ms in (FEW_MS if quick else LONG_MS)
        for arm in ARMS
        if arm is not PRINTED or (ms in (20, 60, 100) and not quick)
    ]
    data = collect("rtt", cells, plan)
    return Data(tables={TABLE: ratios(data.tables["rtt.goodput"])}, digests=data.digests, runs=data.runs)


def ratios(goodput: pl.DataFrame) -> pl.DataFrame:
    """Both flows' goodput while both are active, and its long-to-short ratio."""
    mbps = pl.col("goodput_bps") / 1e6
    return (
        goodput.filter(pl.col("t_s") > START_S)
        .group_by("arm", "long_ms", "seed", maintain_order=True)
        .agg(
            mbps.filter(pl.col("flow") == 0).mean().alias("long_mbps"),
            mbps.filter(pl.col("flow") == 1).mean().alias("short_mbps"),
        )
        .with_columns((pl.col("long_mbps") / pl.col("short_mbps")).alias("ratio"))
    )


TABLE = "rtt.ratio"


ABOUT = between(0.75, 1.25)


def near_one(tables: Tables) -> Sequence[Evidence]:
    """PCC at every RTT."""
    return [
        Evidence.of(
            arms.mean(tables, TABLE, "ratio", arm=arm.name, long_ms=ms),
            f"{arm.name}, {ms} ms: long over short",
            ABOUT,
            weighs=arm is PCC,
        )
        for arm in (PCC, PRINTED)
        for ms in arms.values(tables, TABLE, "long_ms")
        if arms.pick(tables, TABLE, "ratio", arm=arm.name, long_ms=ms).size
    ]


def falls(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """TCP's ratio at 20 ms minus that at 100 ms."""
    return [
        Evidence.of(
            minus(*(arms.mean(tables, TABLE, "ratio", arm=arm.name, long_ms=ms) for ms in (LONG_MS[0], LONG_MS[-1]))),
            f"{arm.name}: long over short, at {LONG_MS[0]} less at {LONG_MS[-1]} ms",
            bound,
        )
        for arm in (CUBIC, NEWRENO)
    ]


def falls_far(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """TCP at 100 ms."""
    return [
        Evidence.of(
            arms.mean(tables, TABLE, "ratio", arm=arm.name, long_ms=ms),
            f"{arm.name}, {ms} ms: long over short",
            bound,
            weighs=ms == LONG_MS[-1],
        )
        for arm in (CUBIC, NEWRENO)
        for ms in (LONG_MS[0], LONG_MS[-1])
    ]


def figure(tables: Tables) -> Figure:
    """Ratio against the long RTT."""
    found = arms.summary(tables[TABLE], ("arm", "long_ms"), "ratio")

    def draw() -> Any:
        figure, ax = new(6.0, 3.8)
        arms.curves(ax, found, ARMS, "long_ms", "ratio")
        ax.axhline(1, color=GREY, lw=0.9)
        ax.set_yscale("log")
        arms.ticks(ax.yaxis, (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2))
        ax.set_xlabel("RTT of the long flow (ms)")
        ax.set_ylabel("goodput, long over short")
        figure.legend(loc="outside lower center", ncols=4)
        return figure

    return Figure(
        name="rtt",
        title="A long flow against one of 10 ms",
        caption="100 Mb/s, 83 packets of buffer. Means over seeds; the shade spans least and greatest; at 1 both have the same goodput.",
        draw=draw,
        data={"rtt": found},
    )


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {"PCC, 100 ms against 10 ms": scenario(PCC, 100, 100)}


EXPERIMENT = Experiment(name="rtt", title="RTT unfairness, 20 to 100 ms against 10 ms", run=run, weight=18)


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (figure(tables),)


CHAPTER = Chapter(
    experiments=(EXPERIMENT,),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
