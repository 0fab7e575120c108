"""Power (NSDI 2015, section 4.4.1): throughput over delay with one queue per flow, either with CoDel or deep and without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import Array, mean_over_runs, ratio
from ackclock.plot import OKABE_ITO, Figure, new
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
    above,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.pcc import arms
from ackclock_studies.pcc.arms import CUBIC, JITTER, PCC, Arm, pcc

SHIPPED = pcc("PCC, latency utility as shipped", "pcc-allegro-modong", "green", "D", utility="latency")
PAPER = pcc("PCC, latency utility of the paper", "pcc-allegro-modong", "sky", "s", utility="latency-paper")
CEILING_MBPS = 19.5
CAPPED = pcc(
    f"latency utility of the paper, at most {CEILING_MBPS} Mb/s",
    "pcc-allegro-modong",
    "purple",
    "P",
    utility="latency-paper",
    max_rate_mbps=CEILING_MBPS,
)
"""Arm for the cause of P23: limited to 2.5 % below the fair share, so that no standing queue can form, and otherwise identical."""
TRIALS = (
    pcc("latency utility of the paper, trials and steps of 10 %", "pcc-allegro-modong", "orange", "v", utility="latency-paper", epsilon_min=0.1, epsilon_max=0.1, step=0.1),
    pcc("latency utility of the paper, intervals of 3 RTTs", "pcc-allegro-modong", "orange", "<", utility="latency-paper", interval_rtts=3),
)  # fmt: skip
"""Arms with other settings that might also empty the queue."""
ARMS = (SHIPPED, PAPER, PCC, CUBIC)
DEEP, CODEL = "deep queues", "CoDel"

QUEUES: dict[str, dict[str, str]] = {
    # target so high that CoDel never drops packets
    DEEP: {"kind": "fq-codel", "limit": "1000 packets", "target": "100 s", "interval": "1000 s"},
    CODEL: {"kind": "fq-codel", "limit": "1000 packets"},
}

FLOWS = 2


def scenario(arm: Arm, queue: str, duration_s: int) -> Scenario:
    """Two flows of one kind over a 40 Mb/s, 20 ms path, with one queue per flow."""
    return Scenario.from_dict(
        {
            "name": f"power, {arm.name}, {queue}",
            "duration": f"{duration_s} s",
            "network": {
                "topology": "dumbbell",
                "access": {"rate": "1 Gbit/s", "delay": "1 ms", "jitter": JITTER},
                "bottleneck": {"rate": "40 Mbit/s", "delay": "9 ms", "queue": QUEUES[queue]},
            },
            "flows": [arm.flows(count=FLOWS)],
        }
    )


NEEDS = {"flows": ("goodput_bps", "mean_rtt_s")}


def run(plan: Plan) -> Data:
    """Every protocol with both kinds of queues, 60 s (15 s at quick scale).

    Returns
    -------
    Data
        `power.flows`: arm, queue, seed, mbps, rtt_ms (means of the two flows), power (mean of goodput over RTT, Mb/s per ms).
    """
    quick = plan.scale == "quick"
    cells = [
        Cell(
            scenario=scenario(arm, queue, 15 if quick else 60),
            keys={"arm": arm.name, "queue": queue},
            stream="power",
            seeds=plan.count(quick=4, paper=8),
            needs=NEEDS,
        )
        for queue in QUEUES
        for arm in (ARMS if queue == CODEL else (*ARMS, CAPPED, *TRIALS))
    ]
    data = collect("power", cells, plan)
    mbps, ms = pl.col("goodput_bps") / 1e6, pl.col("mean_rtt_s") * 1e3
    flows = (
        data.tables[TABLE]
        .group_by("arm", "queue", "seed", maintain_order=True)
        .agg(mbps.mean().alias("mbps"), ms.mean().alias("rtt_ms"), (mbps / ms).mean().alias("power"))
    )
    return Data(tables={TABLE: flows}, digests=data.digests, runs=data.runs)


TABLE = "power.flows"


def power(tables: Tables, arm: Arm, queue: str) -> Array:
    """Goodput over RTT, one value per run."""
    return arms.pick(tables, TABLE, "power", arm=arm.name, queue=queue)


def without_a_standing_queue(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Power of a sender limited to just below its fair share, so that no standing queue can form; larger trials and shorter intervals for context."""
    base = power(tables, CUBIC, CODEL)
    found = []
    for arm in (CAPPED, *TRIALS):
        label = f"power of {arm.name}, {DEEP}, over CUBIC with CoDel"
        key = "capped" if arm is CAPPED else ""
        found.append(
            Evidence.of(
                ratio(power(tables, arm, DEEP), base), label, bound, unit="times", weighs=arm is CAPPED, key=key
            )
        )
    for arm, key in zip(TRIALS, ("large", "long"), strict=True):
        rtt = arms.mean(tables, TABLE, "rtt_ms", arm=arm.name, queue=DEEP)
        found.append(Evidence.of(rtt, f"{arm.name}: RTT", Bound(), unit="ms", weighs=False, key=key))
    return found


def best_power(tables: Tables) -> Sequence[Evidence]:
    """PCC with deep queues, compared with TCP with CoDel."""
    base = power(tables, CUBIC, CODEL)
    found = [
        Evidence.of(
            ratio(power(tables, arm, queue), base),
            f"power of {arm.name}, {queue}, over CUBIC with CoDel",
            above(1),
            unit="times",
            weighs=arm is PAPER and queue == DEEP,
        )
        for arm in ARMS
        for queue in QUEUES
        if arm is not CUBIC or queue == DEEP
    ]
    return found + [
        Evidence.of(
            arms.mean(tables, TABLE, "rtt_ms", arm=arm.name, queue=DEEP),
            f"{arm.name}, {DEEP}: RTT, of which 20 ms without a queue",
            above(0),
            unit="ms",
            weighs=False,
            key={PAPER: "deep", PCC: "safe"}.get(arm, ""),
        )
        for arm in ARMS
    ]


def figure(tables: Tables) -> Figure:
    """Goodput against RTT."""
    table = tables[TABLE]

    def draw() -> Any:
        figure, ax = new(6.4, 4.2)
        for arm in ARMS:
            for queue in QUEUES:
                own = arms.only(table, {"arm": arm.name, "queue": queue})
                x, y = (own[c].to_numpy() for c in ("rtt_ms", "mbps"))
                (ex, ey) = (mean_over_runs(v) for v in (x, y))
                ax.errorbar(
                    ex.value,
                    ey.value,
                    xerr=np.array([[ex.value - x.min()], [x.max() - ex.value]]),
                    yerr=np.array([[ey.value - y.min()], [y.max() - ey.value]]),
                    fmt=arm.marker,
                    color=OKABE_ITO[arm.colour],
                    mfc=None if queue == DEEP else "none",
                    ms=7,
                    lw=1,
                    label=f"{arm.name}, {queue}",
                )
        ax.set_xscale("log")
        arms.ticks(ax.xaxis, (20, 30, 50, 100, 200, 300))
        ax.set_ylim(0, 22)
        ax.set_xlabel("mean RTT (ms)")
        ax.set_ylabel("goodput of a flow (Mb/s)")
        figure.legend(loc="outside lower center", ncols=2)
        return figure

    return Figure(
        name="power",
        title="Throughput and delay with a queue for each flow",
        caption="Two flows, 40 Mb/s, 20 ms. Means; bars span least and greatest over seeds. Filled: deep queues; hollow: CoDel.",
        draw=draw,
        data={"power": table},
    )


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {"PCC's latency utility, deep queues": scenario(PAPER, DEEP, 60)}


EXPERIMENT = Experiment(name="power", title="latency utility: throughput over delay", run=run, weight=4)


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (figure(tables),)


CHAPTER = Chapter(
    experiments=(EXPERIMENT,),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
