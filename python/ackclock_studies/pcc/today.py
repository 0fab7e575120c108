"""Beyond the publications: PCC's successors, BBRv3 and CUBIC in the paper's own cells, on a low-orbit satellite path, and on a cellular one.

No publication covers this table, so there are no claims. The last two paths are synthetic, with our own numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.plot import GREY, Figure, new
from ackclock.report import Block, Table, TableCell
from ackclock.scenario import Scenario
from ackclock.study import Chapter, Data, Experiment, Plan, Tables
from ackclock.study.cells import Cell, collect
from ackclock_studies.pcc import arms, paper_lossy, paper_satellite, testbed
from ackclock_studies.pcc.arms import CUBIC, PCC, Arm, pcc, tcp

VIVACE = pcc("Vivace", "pcc-vivace", "green", "D")
PROTEUS = pcc("Proteus-P", "pcc-proteus-p", "purple", "v")
BBR = tcp("BBRv3", "bbr3", "vermilion", "s")
ARMS = (PCC, VIVACE, PROTEUS, BBR, CUBIC)

LEO_S, LEO = 15, ((100, 20), (60, 32), (140, 24), (80, 40), (120, 28))
"""Rate (Mb/s) and RTT (ms) of a low-orbit satellite path, changing with a handover every 15 s. The 15 s are
Starlink's (from memory), the steps are ours.
"""
CELLULAR: dict[str, Any] = {
    "kind": "random",
    "every": "50 ms",
    "rate": {"kind": "lognormal", "median": "60 Mbit/s", "sigma": 0.6},
}
"""Rate of a fading cellular channel: drawn anew every 50 ms, 72 Mb/s on average. Not a recorded trace."""


def leo(arm: Arm) -> Scenario:
    """Return one flow, 75 s, through a 300-packet buffer."""
    (rate, rtt), *later = LEO
    steps = [
        {"at": f"{LEO_S * (i + 1)} s", "rate": f"{r} Mbit/s", "delay": f"{d / 2:g} ms"}
        for i, (r, d) in enumerate(later)
    ]
    bottleneck = {
        "rate": f"{rate} Mbit/s",
        "delay": f"{rtt / 2:g} ms",
        "queue": {"kind": "drop-tail", "limit": "300 packets"},
        "capacity": {"kind": "schedule", "steps": steps},
    }
    return _alone(arm, "low satellites", LEO_S * len(LEO), bottleneck, "10 ms")


def cellular(arm: Arm) -> Scenario:
    """Return one flow, 60 s, through a deep buffer as in cellular networks."""
    bottleneck = {
        "rate": "60 Mbit/s",
        "delay": "15 ms",
        "queue": {"kind": "drop-tail", "limit": "1000 packets"},
        "capacity": CELLULAR,
    }
    return _alone(arm, "cellular", 60, bottleneck, "15 ms")


def _alone(arm: Arm, name: str, seconds: int, bottleneck: Mapping[str, Any], back: str) -> Scenario:
    return Scenario.from_dict(
        {
            "name": f"{name}, {arm.name}",
            "duration": f"{seconds} s",
            "network": {
                "bottleneck": dict(bottleneck),
                "reverse": {"bottleneck": {"rate": "100 Mbit/s", "delay": back}},
            },
            "flows": [arm.flows()],
        }
    )


def shallow(arm: Arm, packets: int) -> Scenario:
    """The sweep's link with a router's queue."""
    made = testbed.shallow(testbed.IDEAL, testbed.CUBIC, packets, 60).to_dict()
    return Scenario.from_dict({**made, "name": f"{packets} packets, {arm.name}", "flows": [arm.flows()]})


PLACES: dict[str, tuple[Any, float]] = {
    "6 packets": (lambda arm: shallow(arm, 6), 100e6),
    "20 packets": (lambda arm: shallow(arm, 20), 100e6),
    "1 % of loss": (lambda arm: paper_lossy.scenario(arm, 1.0, backwards=True, duration_s=40), 100e6),
    "satellite, 7.5 KB": (lambda arm: paper_satellite.scenario(arm, 7_500), paper_satellite.RATE_BPS),
    "low satellites": (leo, 1e6 * float(np.mean([rate for rate, _ in LEO]))),
    "cellular": (cellular, 1e6 * 60 * float(np.exp(0.5 * 0.6**2))),
}
"""Place -> an arm's scenario, and the mean link rate, bit/s."""
FEW = ("6 packets", "1 % of loss", "low satellites")
"""Places at quick scale."""


def run(plan: Plan) -> Data:
    """Every protocol alone in every place; at quick scale in some places.

    Returns
    -------
    Data
        `today.flows`: place, arm, seed, share (of what the link carries on average), queue_ms (mean round trip minus the minimum).
    """
    cells = [
        Cell(
            scenario=made(arm),
            keys={"place": place, "arm": arm.name},
            stream=f"today {place}",
            seeds=plan.count(quick=1, paper=2),
            needs={"flows": ("goodput_bps", "mean_rtt_s", "min_rtt_s")},
            keep={"flows": _reduce(arm.carried(rate))},
        )
        for place, (made, rate) in PLACES.items()
        for arm in ARMS
        if plan.scale == "paper" or place in FEW
    ]
    return collect("today", cells, plan)


def _reduce(most: float) -> Any:
    def reduce(batch: Batch) -> pl.DataFrame:
        return batch.flows.select(
            "seed",
            (pl.col("goodput_bps") / most).alias("share"),
            (1e3 * (pl.col("mean_rtt_s") - pl.col("min_rtt_s"))).cast(pl.Float64).alias("queue_ms"),
        )

    return reduce


def _places(tables: Tables) -> list[str]:
    """Places that were run, in order."""
    return tables["today.flows"]["place"].unique(maintain_order=True).to_list()


def _pick(tables: Tables, place: str, arm: Arm, column: str) -> Any:
    t = tables["today.flows"].filter((pl.col("place") == place) & (pl.col("arm") == arm.name))
    return t.sort("seed")[column].to_numpy().astype(np.float64)


def figure(tables: Tables) -> Figure:
    """Link share and queueing delay, path by path."""
    places = _places(tables)

    def draw() -> Any:
        figure, axes = new(8.2, 3.6, ncols=2, sharey=True)
        for ax, (column, factor, label) in zip(
            axes, (("share", 100.0, "share of the link (%)"), ("queue_ms", 1.0, "round trip above the least (ms)")), strict=True
        ):  # fmt: skip
            for i, arm in enumerate(ARMS):
                for y, place in enumerate(places):
                    own = factor * _pick(tables, place, arm, column)
                    look = {**arm.look(), "ls": "", "label": arm.name if y == 0 else None}
                    ax.plot(own, np.full(own.size, y + 0.13 * (i - 2)), ms=4.5, **look)
            ax.set_xlabel(label)
            ax.grid(axis="y", visible=False)
            for y in range(1, len(places)):
                ax.axhline(y - 0.5, color=GREY, lw=0.5)
        axes[0].set_xlim(0, 108)
        axes[1].set_xscale("symlog", linthresh=1)
        arms.ticks(axes[1].xaxis, (0, 1, 10, 100))
        axes[1].set_xlim(left=0)
        axes[0].set_yticks(range(len(places)), places)
        axes[0].invert_yaxis()
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
        return figure

    return Figure(
        name="today",
        title="Ours: PCC, its successors, BBRv3 and CUBIC, each alone",
        caption=(
            f"A point for each run. The shallow queues are a router's, loss and satellite link the paper's; low satellites change rate and round trip every {LEO_S} s, the cellular link draws its rate "
            "every 50 ms: both are synthetic."
        ),
        draw=draw,
        data={"flows": tables["today.flows"]},
    )


def table(tables: Tables) -> Table:
    """Table of means."""
    rows: list[tuple[TableCell | str, ...]] = [
        (
            TableCell(text=place, kind="head"),
            *(
                f"{100 * _pick(tables, place, arm, 'share').mean():.0f} ({_pick(tables, place, arm, 'queue_ms').mean():.0f})"
                for arm in ARMS
            ),
        )
        for place in _places(tables)
    ]
    return Table(
        caption="Share of what the link carries (%), and in brackets the mean round trip above the least (ms); means over runs.",
        header=("place", *(arm.name for arm in ARMS)),
        rows=tuple(rows),
    )


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (figure(tables), table(tables))


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {"BBRv3 over low satellites": leo(BBR), "Vivace on a cellular link": cellular(VIVACE)}


CHAPTER = Chapter(
    title="Beyond the publications (ours): PCC's successors and BBRv3",
    experiments=(Experiment(name="today", title="successors of PCC, BBRv3 and CUBIC", run=run, weight=6),),
    blocks=blocks,
    scenarios=scenarios,
)
