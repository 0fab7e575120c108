"""Random loss (NSDI 2015, section 4.1.4): 100 Mb/s, 30 ms, 0 to 6 % in both directions; and the loss-resilient utility
under 10 to 50 % (section 4.4.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ackclock.plot import Figure, new
from ackclock.report import Block
from ackclock.scenario import Scenario
from ackclock.stats import proportion_interval
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
from ackclock_studies.pcc.arms import CUBIC, ILLINOIS, JITTERED, PCC, PRINTED, REPORTS, Arm, pcc

RATE_BPS = 100e6
AHEAD = pcc("PCC, started at half the rate", "pcc-allegro-modong", "green", "D", ":", start_rate_mbps=50)
"""Like `PCC` except for the starting rate, to test whether start-up is the cause."""

LONGER = pcc("PCC, intervals of 6 RTTs", "pcc-allegro-modong", "purple", "v", ":", interval_rtts=6)
"""Differs from `PCC` only in its longer intervals, with more packets per trial: a test of the cause of P5. It runs only at 2 % loss."""

LOSSES = (0.0, 0.1, 0.2, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0)
"""Losses in each direction, percent."""

UNCERTAIN = (0.5, 0.7, 1.0, 2.0)
"""Loss rates, percent, at which only some PCC runs speed up; a claim is about those runs."""


def seeds_of(plan: Plan, arm: Arm, percent: float) -> int:
    """Number of runs under light loss: many where a claim concerns the two groups into which runs fall, few where they are only displayed."""
    if arm in (ILLINOIS, JITTERED) and percent in GROWS:
        return arms.illinois(plan)
    if arm is PCC and percent in UNCERTAIN:
        return plan.count(quick=4, paper=24 if percent == 2.0 else 48)
    if arm is LONGER or (arm is REPORTS and percent in UNCERTAIN):
        return plan.count(quick=4, paper=24 if percent == 2.0 else 12)
    return plan.count(quick=4, paper=4 if arm is PRINTED and percent not in UNCERTAIN else 8)


FEW = (0.0, 0.1, 0.7, 1.0, 2.0)
ARMS = (PCC, REPORTS, PRINTED, AHEAD, CUBIC, ILLINOIS)
RESILIENT = pcc("PCC, loss-resilient", "pcc-allegro-modong", "blue", "o", utility="loss-resilient")

RESILIENT_AHEAD = pcc(
    "PCC as printed, loss-resilient, started at half the rate",
    "pcc-allegro",
    "green",
    "D",
    ":",
    utility="loss-resilient",
    start_rate_mbps=50,
)
"""Arm for the cause: without the authors' fallback to the measured throughput above 200 Mb/s."""

RESILIENTS = (RESILIENT, RESILIENT_AHEAD)
HEAVY = (10.0, 20.0, 30.0, 40.0, 50.0)
HEAVY_FEW = (10.0, 50.0)


def scenario(arm: Arm, percent: float, *, backwards: bool, duration_s: int) -> Scenario:
    """Return one flow alone, with a buffer of one bandwidth-delay product."""
    loss = {"kind": "bernoulli", "p": f"{percent:g} %"}
    way = {"rate": "100 Mbit/s", "delay": "15 ms"}
    return Scenario.from_dict(
        {
            "name": f"{percent:g} % of loss, {arm.name}",
            "duration": f"{duration_s} s",
            "network": {
                "bottleneck": {**way, "loss": loss, "queue": {"kind": "drop-tail", "limit": "250 packets"}},
                "reverse": {"bottleneck": {**way, "loss": loss} if backwards else way},
            },
            "flows": [arm.flows()],
        }
    )


GROWS = {0.7: 10, 2.0: 16}
"""Loss rate at which P7 makes a comparison with Illinois, percent -> ratio of PCC's goodput to Illinois' there."""


def made(arm: Arm, percent: float, *, backwards: bool) -> Scenario:
    """Return the scenario to run: that of `scenario`, with a varying RTT for the jittered arm."""
    written = scenario(arm, percent, backwards=backwards, duration_s=40)
    return arms.varying(written) if arm is JITTERED else written


NEEDS = {"flows": ("goodput_bps",)}


def run(plan: Plan) -> Data:
    """Every protocol under every loss, 40 s.

    Returns
    -------
    Data
        `lossy.flows`: kind ("light", "heavy"), arm, loss (percent), seed, goodput_bps, share (of what the link can carry).
    """
    quick = plan.scale == "quick"
    light = [
        ("light", arm, p)
        for p in (FEW if quick else LOSSES)
        for arm in ARMS
        if p >= 1 or arm not in ((REPORTS, PRINTED, AHEAD) if quick else (AHEAD,))
    ]
    light += [("light", LONGER, 2.0), *(("light", JITTERED, p) for p in GROWS)]
    heavy = [("heavy", arm, p) for p in (HEAVY_FEW if quick else HEAVY) for arm in (*RESILIENTS, CUBIC)]
    cells = [
        Cell(
            scenario=arms.as_read(made(arm, p, backwards=kind == "light"), arm, arms.HOSTS.of(plan)),
            keys={"kind": kind, "arm": arm.name, "loss": p},
            stream=f"lossy {p:g}",
            seeds=seeds_of(plan, arm, p),
            needs=NEEDS,
        )
        for kind, arm, p in (*light, *heavy)
    ]
    data = collect("lossy", cells, plan)
    most = pl.col("arm").replace_strict(
        {arm.name: arm.carried(RATE_BPS) for arm in (*ARMS, LONGER, JITTERED, *RESILIENTS)}
    )
    flows = data.tables[TABLE].with_columns((pl.col("goodput_bps") / most).alias("share"))
    return Data(tables={TABLE: flows}, digests=data.digests, runs=data.runs)


TABLE = "lossy.flows"


def _share(tables: Tables, arm: Arm, loss: float, least: float, *, kind: str = "light") -> Evidence:
    return Evidence.of(
        arms.mean(tables, TABLE, "share", 100, kind=kind, arm=arm.name, loss=loss),
        f"{arm.name}, {loss:g} %: share of what the link can carry",
        at_least(least),
        unit="%",
        weighs=arm in (PCC, RESILIENT),
    )


def to_one_percent(tables: Tables) -> Sequence[Evidence]:
    """Link share at loss rates up to 1 %."""
    known = [p for p in arms.values(tables, TABLE, "loss") if p <= 1]
    return [_share(tables, PCC, p, 95) for p in known] + [_share(tables, arm, 1.0, 95) for arm in (REPORTS, PRINTED)]


def at_two_percent(tables: Tables) -> Sequence[Evidence]:
    """Mean link share at 2 %, and with a different start."""
    return [_share(tables, arm, 2.0, 74) for arm in (PCC, REPORTS, PRINTED, AHEAD)]


def get_going(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Fraction of runs that speed up at 2 %."""
    found = []
    for arm in (PCC, REPORTS, PRINTED, AHEAD):
        share = arms.pick(tables, TABLE, "share", kind="light", arm=arm.name, loss=2.0)
        going = proportion_interval(int((share >= 0.74).sum()), share.size)
        found.append(
            Evidence.of(
                going,
                f"{arm.name}, 2 %: runs with 74 % or more",
                bound,
                factor=100,
                unit="% of runs",
                weighs=arm is PCC,
                key={PCC: "going", REPORTS: "reports", AHEAD: "ahead"}.get(arm, ""),
            )
        )
    return found


def with_longer(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Fraction of runs that speed up if intervals contain more packets."""
    share = arms.pick(tables, TABLE, "share", kind="light", arm=LONGER.name, loss=2.0)
    going = proportion_interval(int((share >= 0.74).sum()), share.size)
    label = f"{LONGER.name}, 2 %: runs with 74 % or more"
    return [Evidence.of(going, label, bound, factor=100, unit="% of runs", key="longer")]


def _over(tables: Tables, other: Arm, loss: float, least: float | None) -> list[Evidence]:
    return [
        Evidence.of(
            arms.times(tables, TABLE, "goodput_bps", arm, other, kind="light", loss=loss),
            f"{arm.name} over {other.name}, {loss:g} %",
            above(1) if least is None else at_least(least),
            unit="times",
            weighs=arm is PCC,
        )
        for arm in ((PCC, AHEAD) if loss >= 1 else (PCC,))
    ]


def over_cubic(tables: Tables, *, much: bool) -> Sequence[Evidence]:
    """CUBIC's goodput at 0.1 and 2 % loss."""
    return _over(tables, CUBIC, 0.1, 10 if much else None) + _over(tables, CUBIC, 2.0, 37 if much else None)


def over_illinois(tables: Tables, *, much: bool) -> Sequence[Evidence]:
    """Illinois' goodput at 0.7 and 2 % loss."""
    return [e for p, times in GROWS.items() for e in _over(tables, ILLINOIS, p, times if much else None)]


def with_jitter(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Fraction of Illinois's excess that remains on a path with a varying RTT."""
    found = []
    for p, times in GROWS.items():
        left = arms.excess(tables, TABLE, JITTERED, times, kind="light", loss=p)
        mbps = arms.mean(tables, TABLE, "goodput_bps", 1e-6, kind="light", arm=JITTERED.name, loss=p)
        found += [
            Evidence.of(left, f"{p:g} %: of its excess over the paper's, what is left", bound, factor=100, unit="%", key=f"left_{p * 10:.0f}"),
            Evidence.of(mbps, f"{p:g} %: {JITTERED.name}", Bound(), unit="Mb/s", weighs=False, key=f"mbps_{p * 10:.0f}"),
        ]  # fmt: skip
    return found


def resilient(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """The loss-resilient utility."""
    found = [
        _share(tables, arm, p, 97, kind="heavy")
        for arm in RESILIENTS
        for p in arms.values(tables, TABLE, "loss")
        if p in HEAVY
    ]
    return [*found, *resilient_over_cubic(tables, bound)]


def resilient_over_cubic(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Ratio to CUBIC's goodput at 10 % loss."""
    ratio = arms.times(tables, TABLE, "goodput_bps", RESILIENT, CUBIC, kind="heavy", loss=10.0)
    return [Evidence.of(ratio, "over CUBIC, 10 %", bound, unit="times")]


def figure(tables: Tables) -> Figure:
    """Goodput against the loss rate, light and heavy."""
    found = arms.summary(tables[TABLE], ("kind", "arm", "loss"), "goodput_bps").with_columns(
        *(pl.col(c) / 1e6 for c in ("goodput_bps", "least", "greatest"))
    )

    def draw() -> Any:
        figure, axes = new(8.2, 4.2, ncols=2, sharey=True)
        for ax, kind, compared in zip(axes, ("light", "heavy"), (ARMS, (*RESILIENTS, CUBIC)), strict=True):
            arms.curves(ax, found.filter(pl.col("kind") == kind), compared, "loss", "goodput_bps")
            ax.set_yscale("log")
            ax.yaxis.set_major_formatter("{x:g}")
        axes[0].plot(
            [1, 2],
            [95 * PCC.carried(RATE_BPS) / 1e8, 74 * PCC.carried(RATE_BPS) / 1e8],
            "*",
            color="#222222",
            mfc="none",
            ms=11,
            label="PCC, as published",
        )
        axes[0].set_xlabel("loss in each direction (%)")
        axes[1].set_xlabel("loss of data (%)")
        axes[0].set_ylabel("goodput (Mb/s)")
        axes[1].set_title("utility T(1 − L)")
        for ax in axes:
            ax.legend(loc="lower left", fontsize=7)
        return figure

    return Figure(
        name="lossy",
        title="Goodput under random loss",
        caption="100 Mb/s, 30 ms; start-up included. Means over seeds; the shade spans least and greatest.",
        draw=draw,
        data={"lossy": found},
    )


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {
        "PCC, 2 % of loss both ways": scenario(PCC, 2.0, backwards=True, duration_s=40),
        "PCC, loss-resilient, 50 % of loss": scenario(RESILIENT, 50.0, backwards=False, duration_s=40),
    }


EXPERIMENT = Experiment(name="lossy", title="random loss, 0 to 50 %", run=run, weight=14, reads=(arms.HOSTS,))


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (figure(tables),)


CHAPTER = Chapter(experiments=(EXPERIMENT,), **declared(__name__), blocks=blocks, scenarios=scenarios)
