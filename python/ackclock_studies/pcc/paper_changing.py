"""A rapidly changing network (NSDI 2015, section 4.1.7): bandwidth, RTT and loss drawn anew every 5 s."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import mean_over_runs, ratio
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
    at_least,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.pcc import arms
from ackclock_studies.pcc.arms import BOTH, CUBIC, ILLINOIS, PCC, PRINTED, Arm

ARMS = (PCC, PRINTED, CUBIC, ILLINOIS)
TIMES = {CUBIC: 14, ILLINOIS: 5.6}
"""Ratios, in the paper, of PCC's goodput to that of each other protocol."""
EVERY_S = 5
RATE_MBPS, RTT_MS, LOSS_PERCENT = (10.0, 100.0), (10.0, 100.0), (0.0, 1.0)
"""Bounds of uniform distributions."""

BUFFER = 250
"""Buffer, packets: one bandwidth-delay product of the mean rate and RTT."""


def draws(number: int, count: int) -> pl.DataFrame:
    """Link properties in each interval; the same for every protocol.

    Returns
    -------
    DataFrame
        t_s (start of the interval), rate_mbps, rtt_ms, loss_percent.
    """
    rng = np.random.Generator(np.random.PCG64(number))
    unit = rng.random((count, 3))
    low, high = np.array([RATE_MBPS, RTT_MS, LOSS_PERCENT]).T
    table = pl.DataFrame(low + (high - low) * unit, schema=["rate_mbps", "rtt_ms", "loss_percent"])
    # rounded as in the scenario
    table = table.select(pl.all().round(3))
    return table.select((pl.int_range(pl.len()) * float(EVERY_S)).alias("t_s"), pl.all())


def optimum_mbps(drawn: pl.DataFrame, arm: Arm) -> float:
    """Goodput of a flow that always fills the link: losses occur ahead of the queue and need not reduce it."""
    return arm.carried(float(drawn["rate_mbps"].to_numpy().mean()))


def scenario(arm: Arm, number: int, intervals: int) -> Scenario:
    """Return one flow alone, with the entire RTT on the forward link."""
    steps = [
        {
            "at": f"{r['t_s']:g} s",
            "rate": f"{r['rate_mbps']:.3f} Mbit/s",
            "delay": f"{r['rtt_ms']:.3f} ms",
            "loss": f"{r['loss_percent']:.3f} %",
        }
        for r in draws(number, intervals).iter_rows(named=True)
    ]
    first = steps[0]
    return Scenario.from_dict(
        {
            "name": f"changing network {number}, {arm.name}",
            "duration": f"{EVERY_S * intervals} s",
            "network": {
                "bottleneck": {
                    "rate": first["rate"],
                    "delay": first["delay"],
                    "loss": {"kind": "none"},
                    "queue": {"kind": "drop-tail", "limit": f"{BUFFER} packets"},
                    "capacity": {"kind": "schedule", "steps": steps},
                },
                "reverse": {"bottleneck": {"rate": "100 Mbit/s", "delay": "0 ms"}},
            },
            "flows": [arm.flows()],
            "record": {"goodput_interval": f"{EVERY_S} s"},
        }
    )


NEEDS = {"goodput": ("t_s", "goodput_bps")}


def run(plan: Plan) -> Data:
    """Every protocol over the same drawn networks, 500 s each (100 s at quick scale).

    Returns
    -------
    Data
        `changing.flows`: arm, number (of the drawn network), seed, mbps, optimum_mbps, share. `changing.series`: arm, t_s, mbps
        of the first network.
    """
    intervals = 20 if plan.scale == "quick" else 100
    numbers = range(1, plan.count(quick=4, paper=10) + 1)
    cells = [
        Cell(
            scenario=arms.varying(scenario(arm, number, intervals))
            if arm is BOTH
            else scenario(arm, number, intervals),
            keys={"arm": arm.name, "number": number},
            stream=f"changing {number}",
            seeds=1,
            needs=NEEDS,
        )
        for number in numbers
        for arm in (*ARMS, BOTH)
    ]
    data = collect("changing", cells, plan)
    goodput = data.tables["changing.goodput"].with_columns((pl.col("goodput_bps") / 1e6).alias("mbps"))
    best = pl.DataFrame(
        [
            {"arm": arm.name, "number": n, "optimum_mbps": optimum_mbps(draws(n, intervals), arm)}
            for n in numbers
            for arm in (*ARMS, BOTH)
        ]
    )
    flows = (
        goodput.group_by("arm", "number", "seed", maintain_order=True)
        .agg(pl.col("mbps").mean())
        .join(best, on=("arm", "number"), how="left", maintain_order="left", validate="m:1")
        .with_columns((pl.col("mbps") / pl.col("optimum_mbps")).alias("share"))
    )
    series = goodput.filter(pl.col("number") == 1).select("arm", "t_s", "mbps")
    return Data(tables={TABLE: flows, "changing.series": series}, digests=data.digests, runs=data.runs)


TABLE = "changing.flows"


def near_optimal(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Goodput as a fraction of the optimum."""
    return [
        Evidence.of(
            mean_over_runs(100 * arms.pick(tables, TABLE, "share", arm=arm.name)),
            f"{arm.name}: of the optimum",
            bound,
            unit="%",
            weighs=arm is PCC,
        )
        for arm in ARMS
    ]


def over_tcp(tables: Tables, *, much: bool) -> Sequence[Evidence]:
    """Ratios of PCC's goodput to CUBIC's and Illinois's."""
    return [
        Evidence.of(
            arms.times(tables, TABLE, "mbps", PCC, other),
            f"PCC over {other.name}",
            at_least(least) if much else above(1),
            unit="times",
        )
        for other, least in TIMES.items()
    ]


def where_round_trips_vary(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Fraction of Illinois's excess that remains, over the same drawn networks."""
    own = {arm: arms.pick(tables, TABLE, "mbps", arm=arm.name) for arm in (PCC, ILLINOIS, BOTH)}
    asked = own[PCC] / TIMES[ILLINOIS]  # paired by network: all protocols ran over the same ones
    left = ratio(own[BOTH] - asked, own[ILLINOIS] - asked)
    return [
        Evidence.of(left, "of its excess over the paper's, what is left", bound, factor=100, unit="%", key="left"),
        Evidence.of(mean_over_runs(own[BOTH]), BOTH.name, Bound(), unit="Mb/s", weighs=False, key="varies"),
    ]


def figure(tables: Tables) -> Figure:
    """Goodput over time in one network."""
    series = tables["changing.series"]
    seconds = int(series["t_s"].max())  # type: ignore[arg-type]
    drawn = draws(1, seconds // EVERY_S)

    def draw() -> Any:
        figure, ax = new(8.2, 3.8)
        ax.step(
            [*drawn["t_s"], seconds],
            [*drawn["rate_mbps"], drawn["rate_mbps"][-1]],
            where="post",
            color=OKABE_ITO["black"],
            lw=1.4,
            label="bandwidth",
        )
        for arm in (PCC, ILLINOIS, CUBIC):
            own = series.filter(pl.col("arm") == arm.name)
            ax.plot(own["t_s"] - EVERY_S / 2, own["mbps"], lw=1.1, ms=3.5, **arm.look())
        ax.set_xlabel("time (s)")
        ax.set_ylabel("Mb/s, mean of 5 s")
        ax.set_ylim(0, None)
        figure.legend(loc="outside lower center", ncols=4)
        return figure

    return Figure(
        name="changing",
        title="A network that changes every 5 s",
        caption=(
            "Bandwidth 10 to 100 Mb/s, RTT 10 to 100 ms, loss 0 to 1 %, each uniform and drawn anew; 250 packets of buffer. "
            "The first of the drawn networks. Data counts when it is acknowledged in order, some of it an interval later."
        ),
        draw=draw,
        data={"changing": series, "drawn": drawn},
    )


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {"PCC in a changing network (its first 50 s)": scenario(PCC, 1, 10)}


EXPERIMENT = Experiment(name="changing", title="a network drawn anew every 5 s", run=run, weight=10)


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (figure(tables),)


CHAPTER = Chapter(experiments=(EXPERIMENT,), **declared(__name__), blocks=blocks, scenarios=scenarios)
