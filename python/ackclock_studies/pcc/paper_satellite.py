"""Satellite (NSDI 2015, section 4.1.3): 42 Mb/s, 800 ms, 0.74 % random loss, buffers from one packet to 1 MB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

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
    above,
    at_least,
    at_most,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.pcc import arms
from ackclock_studies.pcc.arms import BOTH, CUBIC, HYBLA, ILLINOIS, NEWRENO, NOISES, PCC, PRINTED, REPORTS, Arm

RATE_BPS = 42e6
ARMS = (PCC, REPORTS, PRINTED, HYBLA, ILLINOIS, CUBIC, NEWRENO)
BUFFERS = (1_500, 3_000, 7_500, 15_000, 30_000, 75_000, 150_000, 375_000, 1_000_000)
"""Buffers, bytes."""

ASKED = (7_500, 1_000_000)
"""Buffers mentioned in claims, the only ones at quick scale."""

DURATION_S = 100
START_S = 20
"""Start-up length, s, for measurements that exclude it."""


def scenario(arm: Arm, buffer: int) -> Scenario:
    """Return one flow alone."""
    return Scenario.from_dict(
        {
            "name": f"satellite, {arm.name}, {buffer / 1000:g} kB",
            "duration": f"{DURATION_S} s",
            "network": {
                "bottleneck": {
                    "rate": "42 Mbit/s",
                    "delay": "400 ms",
                    "loss": {"kind": "bernoulli", "p": "0.74 %"},
                    "queue": {"kind": "drop-tail", "limit": f"{buffer} bytes"},
                },
                "reverse": {"bottleneck": {"rate": "42 Mbit/s", "delay": "400 ms"}},
            },
            "flows": [arm.flows()],
            "record": {"goodput_interval": f"{START_S} s"},
        }
    )


def made(arm: Arm, buffer: int) -> Scenario:
    """Return the scenario to run: that of `scenario`, with a varying RTT for the arms for which `NOISES` requests it."""
    written = scenario(arm, buffer)
    return arms.varying(written) if NOISES.get(arm) else written


NEEDS = {"flows": ("goodput_bps",), "goodput": ("t_s", "goodput_bps")}


def run(plan: Plan) -> Data:
    """Every protocol with every buffer, 100 s each.

    Returns
    -------
    Data
        `satellite.flows`: arm, buffer (bytes), seed, goodput_bps, share (of what the link can carry), later (the same without
        the first 20 s).
    """
    sizes = ASKED if plan.scale == "quick" else BUFFERS
    cells = [
        Cell(
            scenario=arms.as_read(made(arm, size), arm, arms.HOSTS.of(plan)),
            keys={"arm": arm.name, "buffer": size},
            stream=f"satellite {size}",
            seeds=arms.illinois(plan)
            if size == DEEP and (arm is ILLINOIS or arm in NOISES)
            else plan.count(quick=4, paper=10 if size in ASKED else 4),
            needs=NEEDS,
        )
        for size in sizes
        for arm in (ARMS if size < DEEP else (*ARMS, *NOISES))
    ]
    data = collect("satellite", cells, plan)
    later = (
        data.tables["satellite.goodput"]
        .filter(pl.col("t_s") > START_S)
        .group_by("arm", "buffer", "seed")
        .agg(pl.col("goodput_bps").mean().alias("later"))
    )
    flows = data.tables["satellite.flows"].join(
        later, on=("arm", "buffer", "seed"), how="left", maintain_order="left", validate="1:1"
    )
    most = pl.col("arm").replace_strict({arm.name: arm.carried(RATE_BPS) for arm in (*ARMS, *NOISES)})
    flows = flows.with_columns((pl.col("goodput_bps") / most).alias("share"), pl.col("later") / most)
    return Data(tables={"satellite.flows": flows}, digests=data.digests, runs=data.runs)


TABLE = "satellite.flows"
DEEP = BUFFERS[-1]
TIMES = 54
"""Ratio of PCC's goodput to Illinois' with the deepest buffer, in the paper."""


def fills_behind_five_packets(tables: Tables) -> Sequence[Evidence]:
    """PCC with a 7.5 KB buffer."""
    found = [
        Evidence.of(
            arms.mean(tables, TABLE, column, 100, arm=arm.name, buffer=7_500),
            f"{arm.name}: share of what the link can carry{text}",
            at_least(90),
            unit="%",
            weighs=arm is PCC and column == "share",
            key="later" if arm is PCC and column == "later" else "",
        )
        for arm in (PCC, REPORTS, PRINTED)
        for column, text in (("share", ""), ("later", f", from {START_S} s on"))
    ]
    slow = 100 * float((arms.pick(tables, TABLE, "share", arm=PRINTED.name) < 0.1).mean())
    found.append(
        Evidence(
            label="PCC as printed: runs with less than a tenth of the link",
            value=slow,
            unit="%",
            bound=at_most(0),
            weighs=False,
            key="slow",
        )
    )
    return found


def beats_hybla(tables: Tables, *, much: bool) -> Sequence[Evidence]:
    """Comparison with Hybla at 1 MB."""
    ratio = arms.times(tables, TABLE, "goodput_bps", PCC, HYBLA, buffer=DEEP)
    goodput = arms.mean(tables, TABLE, "goodput_bps", 1e-6, arm=HYBLA.name, buffer=DEEP)
    found = [Evidence.of(ratio, "PCC over Hybla", at_least(17) if much else above(1), unit="times", key="ratio")]
    return [*found, Evidence.of(goodput, "Hybla", at_most(2.03), unit="Mb/s")] if much else found


def beats_illinois(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Comparison with Illinois at 1 MB, and with the others for context."""
    return [
        Evidence.of(
            arms.times(tables, TABLE, "goodput_bps", PCC, other, buffer=DEEP),
            f"PCC over {other.name}",
            bound,
            unit="times",
            weighs=other is ILLINOIS,
            key=other.name.lower(),
        )
        for other in (ILLINOIS, CUBIC, NEWRENO)
    ]


def where_round_trips_vary(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Fraction of Illinois's excess that remains, also with each of the two changes alone."""
    found = []
    for arm in NOISES:
        left = arms.excess(tables, TABLE, arm, TIMES, buffer=DEEP)
        label = f"{arm.name}: of its excess over the paper's, what is left"
        found.append(Evidence.of(left, label, bound, factor=100, unit="%", weighs=arm is BOTH))
    mbps = arms.mean(tables, TABLE, "goodput_bps", 1e-6, arm=BOTH.name, buffer=DEEP)
    return [*found, Evidence.of(mbps, BOTH.name, Bound(), unit="Mb/s", weighs=False, key="varies")]


def figure(tables: Tables) -> Figure:
    """Goodput against the buffer."""
    found = arms.summary(tables[TABLE], ("arm", "buffer"), "goodput_bps").with_columns(
        pl.col("buffer") / 1000, *(pl.col(c) / 1e6 for c in ("goodput_bps", "least", "greatest"))
    )

    def draw() -> Any:
        figure, ax = new(6.4, 4.0)
        arms.curves(ax, found, ARMS, "buffer", "goodput_bps")
        for arm, size, mbps in ((PCC, 7.5, 0.9 * PCC.carried(RATE_BPS) / 1e6), (HYBLA, 1000, 2.03)):
            look = {"color": arm.look()["color"], "label": f"{arm.name}, as published"}
            ax.plot([size], [mbps], "*", mfc="none", ms=12, **look)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_major_formatter("{x:g}")
        ax.set_xlabel("buffer (kB)")
        ax.set_ylabel("goodput (Mb/s)")
        figure.legend(loc="outside lower center", ncols=3)
        return figure

    return Figure(
        name="satellite",
        title="A satellite link: goodput against the buffer",
        caption="42 Mb/s, 800 ms, 0.74 % of random loss; 100 s with start-up. Means over seeds; the shade spans least and greatest.",
        draw=draw,
        data={"satellite": found},
    )


def scenarios() -> Mapping[str, Scenario]:
    """One exported scenario, by name."""
    return {"PCC over a satellite, 7.5 kB": scenario(PCC, 7_500)}


EXPERIMENT = Experiment(
    name="satellite", title="a satellite link, buffers to 1 MB", run=run, weight=10, reads=(arms.HOSTS,)
)


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (figure(tables),)


CHAPTER = Chapter(experiments=(EXPERIMENT,), **declared(__name__), blocks=blocks, scenarios=scenarios)
