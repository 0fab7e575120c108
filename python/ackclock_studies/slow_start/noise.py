"""Delay not caused by the flow itself: a radio link, and other traffic (S6 to S8). Applications that never fill the path (S9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ackclock.judge.estimates import median
from ackclock.plot import Figure, new
from ackclock.report import Block
from ackclock.scenario import Scenario
from ackclock.stats import Estimate, proportion_interval
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
from ackclock_studies.slow_start import population
from ackclock_studies.slow_start.paths import (
    ARMS,
    COLOUR,
    HYSTART,
    HYSTART_PP,
    MARKER,
    NEEDS,
    SEARCH,
    Place,
    of,
    quality,
)

QUIET, RADIO, BAD_RADIO, CROWD = "quiet", "radio, 2 ms", "radio, 7 ms", "others, 40 %"


def _radio(mean: str) -> dict[str, Any]:
    return {"wifi": {"mean": mean}}


PLACES = {
    QUIET: Place(rate=50, rtt=40, queue=1.0),
    RADIO: Place(rate=50, rtt=40, queue=1.0, link=_radio("2 ms")),
    BAD_RADIO: Place(rate=50, rtt=40, queue=1.0, link=_radio("7 ms")),
    CROWD: Place(rate=50, rtt=40, queue=1.0, background=0.4),
}
ROUND_TRIPS = 80
EARLY = 0.5
"""ssthresh below which an exit is premature, bandwidth-delay products."""

CALM = "jitter of 1 ms, without long pauses"
TABLE, IDLE = "noise.runs", "idle.runs"
WORK = {"kind": "throttled", "rate": "5 Mbit/s", "chunk": "16 KB"}
"""The application-limited flow's workload, at a tenth of the path's rate."""


def _cells(plan: Plan, name: str, **flow: Any) -> list[Cell]:
    return [
        Cell(
            scenario=place.scenario(arm, ROUND_TRIPS, **flow),
            keys={"arm": arm, "noise": noise},
            stream=f"{name} {noise}",
            # S6 and S7 are about fractions of runs: 40 runs without the effect rule out a tenth; 8 do not
            seeds=plan.count(quick=40 if name == "noise" and arm in (HYSTART_PP, HYSTART, SEARCH) else 8, paper=100),
            needs=NEEDS,
            keep={"runs": partial(quality, place)},
        )
        for noise, place in PLACES.items()
        for arm in ARMS
    ]


def run(plan: Plan) -> Data:
    """Every slow start under every disturbance.

    Returns
    -------
    Data
        `noise.runs`: arm, noise, and the columns of `paths.quality`.
    """
    return collect("noise", _cells(plan, "noise"), plan)


def run_idle(plan: Plan) -> Data:
    """Runs with an application that writes at a tenth of the path's rate.

    Returns
    -------
    Data
        `idle.runs`: as `noise.runs`.
    """
    return collect("idle", _cells(plan, "idle", workload=WORK), plan)


def _key(noise: str) -> str:
    """Name used in notes."""
    return noise.split(",")[0] + ("_bad" if noise == BAD_RADIO else "")


def _exit(tables: Tables, arm: str, noise: str) -> Any:
    return np.nan_to_num(of(tables, TABLE, "exit", arm=arm, noise=noise), nan=0.0)


def s6(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Ratio of HyStart++'s ssthresh to HyStart's."""
    return [
        Evidence.of(
            median(_exit(tables, HYSTART_PP, noise) / _exit(tables, HYSTART, noise)),
            f"{noise}: ssthresh, HyStart++ over HyStart",
            bound,
            unit="times",
            weighs=noise in (RADIO, BAD_RADIO),
            key=_key(noise),
        )
        for noise in PLACES
    ] + population.on_paths(tables, "hystartpp_later")


def s6_much(tables: Tables) -> Sequence[Evidence]:
    """Fraction of early exits with HyStart++."""
    return _early(tables, HYSTART_PP, (RADIO, BAD_RADIO))


def s7(tables: Tables) -> Sequence[Evidence]:
    """Fraction of early exits with SEARCH."""
    return [*_early(tables, SEARCH, (RADIO, BAD_RADIO, CROWD)), *population.on_paths(tables, "search_early")]


def steady(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Fraction of early exits with SEARCH at constant delay."""
    runs = of(tables, TABLE, "exit", arm=SEARCH, noise=QUIET)
    return [
        Evidence.of(
            proportion_interval(int((runs < EARLY).sum()), runs.size),
            f"{QUIET}: runs with an ssthresh below half a BDP, SEARCH",
            bound,
            unit="%",
            factor=100,
            key="steady",
        )
    ]


def _early(tables: Tables, arm: str, weigh: Sequence[str]) -> list[Evidence]:
    found = []
    for noise in PLACES:
        runs = of(tables, TABLE, "exit", arm=arm, noise=noise)
        found.append(
            Evidence.of(
                proportion_interval(int((runs < EARLY).sum()), runs.size),
                f"{noise}: runs with an ssthresh below half a BDP, {arm}",
                at_most(10),
                unit="%",
                factor=100,
                weighs=noise in weigh,
                key=f"early_{_key(noise)}",
            )
        )
    return found


def s8(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """HyStart's ssthresh."""
    return [*_all(tables, HYSTART, "HyStart", bound, (RADIO, BAD_RADIO)), *population.on_paths(tables, "hystart_early")]


def _all(tables: Tables, arm: str, name: str, bound: Any, weigh: Sequence[str]) -> list[Evidence]:
    return [
        Evidence.of(
            median(_exit(tables, arm, noise)),
            f"{noise}: ssthresh over BDP, {name}",
            bound,
            weighs=noise in weigh,
            key=_key(noise),
        )
        for noise in PLACES
    ]


def ended(tables: Tables, arm: str, noise: str) -> Estimate:
    """Fraction of runs in which the rule ends slow start on a path that is never full."""
    rows = tables[IDLE]
    mine = rows.filter((rows["arm"] == arm) & (rows["noise"] == noise))
    return proportion_interval(int((mine["by"] == "rule").sum()), mine.height)


def s9(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Runs in which slow start ends too early."""
    return [
        Evidence.of(
            ended(tables, arm, noise),
            f"{noise}: runs that end slow start, {arm}",
            bound,
            unit="%",
            factor=100,
            weighs=arm == SEARCH,
            key=f"{arm.replace('++', 'pp')}_{_key(noise)}",
        )
        for arm in (HYSTART, HYSTART_PP, SEARCH)
        for noise in PLACES
    ]


def pauses(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Fraction of runs in which SEARCH ends an application-limited slow start, with and without the radio link's long pauses."""
    found = []
    for what, asked, key in ((CALM, bound, "calm"), (RADIO, Bound(), "radio")):
        rows = tables["why.runs"].filter(what=what)
        e = proportion_interval(int((rows["by"] == "rule").sum()), rows.height)
        text = f"{what}: runs in which SEARCH ends slow start"
        found.append(Evidence.of(e, text, asked, unit="%", factor=100, weighs=key == "calm", key=key))
    return found


def figure(tables: Tables) -> Figure:
    """Exit, losses and completion time for each disturbance."""

    def draw() -> Any:
        figure, axes = new(8.4, 3.6, ncols=3)
        for ax, name, label in zip(
            axes, ("exit", "lost_bdp", "settled"), ("ssthresh / BDP", "lost / BDP", "round trips to 90 %"), strict=True
        ):
            for offset, arm in enumerate(ARMS):
                for at, noise in enumerate(PLACES):
                    runs = of(tables, TABLE, name, arm=arm, noise=noise)
                    runs = np.where(np.isinf(runs), ROUND_TRIPS, np.nan_to_num(runs))
                    low, mid, high = np.quantile(runs, (0.1, 0.5, 0.9))
                    x = at + 0.15 * (offset - 2)
                    ax.plot([x, x], [low, high], color=COLOUR[arm], lw=2, solid_capstyle="butt")
                    ax.plot(x, mid, marker=MARKER[arm], color=COLOUR[arm], ms=5, label=None if at else arm, ls="none")
            ax.set_xticks(range(len(PLACES)), [noise.replace(", ", "\n") for noise in PLACES], fontsize=8)
            ax.set_ylabel(label)
            ax.grid(axis="x", visible=False)
        axes[0].axhline(1, color="#6b6b6b", lw=0.9)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(ARMS))
        return figure

    return Figure(
        name="noise",
        title="Delay that is not the flow's own",
        caption=(
            "50 Mb/s, 40 ms, a queue of one bandwidth-delay product; Wi-Fi jitter of 2 and 7 ms on average, or others who take 40 % of the "
            "path on and off. Medians; lines span the middle 80 % of the runs. A rate that was not reached stands at 80 round trips."
        ),
        draw=draw,
        data={"noise": tables[TABLE]},
    )


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (figure(tables),)


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {
        "noise: HyStart, radio": PLACES[BAD_RADIO].scenario(HYSTART, ROUND_TRIPS),
        "idle: SEARCH, radio": PLACES[BAD_RADIO].scenario(SEARCH, ROUND_TRIPS, workload=WORK),
    }


CHAPTER = Chapter(
    experiments=(
        Experiment(name="noise", title="radio links and other traffic", run=run, weight=3),
        Experiment(name="idle", title="an application that never fills the path", run=run_idle, weight=1),
    ),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
