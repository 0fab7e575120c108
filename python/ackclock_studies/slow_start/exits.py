"""How slow start ends on an undisturbed path, and what that costs (S1 to S6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import Array, mean_over_runs, median, ratio
from ackclock.judge.intervals import Estimate
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
    between,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.slow_start import population
from ackclock_studies.slow_start.paths import (
    ARMS,
    CLASSIC,
    COLOUR,
    HYSTART_PP,
    LIMITED,
    MARKER,
    NEEDS,
    SEARCH,
    Place,
    of,
    quality,
)

PATHS = ((10, 20), (10, 100), (100, 20), (100, 100))
"""Paths as Mbit/s and ms; they hold 17 to 833 packets."""

QUEUES = (0.25, 0.35, 0.5, 1.0, 4.0)
ROUND_TRIPS = 80
MAX_SSTHRESH = 100
"""max_ssthresh in limited slow start, segments (RFC 3742): the window doubles up to this value."""

TABLE = "exits.runs"
SCALES: Mapping[str, tuple[str, Sequence[float]]] = {
    "exit": ("log", (0.5, 1, 2, 4, 8)),
    "lost_bdp": ("symlog", (0, 0.01, 0.1, 1)),
    "settled": ("log", (5, 10, 20, 40, 80)),
}
"""Scales of the figure's rows."""


def place(rate: int, rtt: int, queue: float) -> Place:
    """A path in the sweep."""
    return Place(rate=rate, rtt=rtt, queue=queue)


def run(plan: Plan) -> Data:
    """Every slow start on every path.

    Returns
    -------
    Data
        `exits.runs`: arm, rate, rtt, queue, and the columns of `paths.quality`.
    """
    cells = [
        Cell(
            scenario=place(*path, queue).scenario(arm, ROUND_TRIPS),
            keys={"arm": arm, "rate": path[0], "rtt": path[1], "queue": queue},
            stream=f"exits {path}",
            seeds=plan.count(quick=14, paper=100),
            needs=NEEDS,
            keep={"runs": partial(quality, place(*path, queue))},
        )
        for path in PATHS
        for queue in QUEUES
        for arm in ARMS
    ]
    return collect("exits", cells, plan)


PHASES = tuple(round(0.25 + 0.05 * k, 2) for k in range(36))
"""Queues, 0.25 to 2 BDPs, so that a sender that doubles from ten segments fills the queue at every phase of its doubling."""
BANDS = ((0.25, 0.45), (0.5, 0.7), (0.75, 0.95), (1.0, 1.45), (1.5, 2.0))
"""Ranges of queue depths over which a value is averaged."""
SWEPT = (CLASSIC, HYSTART_PP, SEARCH, LIMITED)


def run_phases(plan: Plan) -> Data:
    """Paths with queues in steps of 0.05 bandwidth-delay products.

    Returns
    -------
    Data
        `phases.runs`: as `exits.runs`.
    """
    cells = [
        Cell(
            scenario=place(*path, queue).scenario(arm, ROUND_TRIPS),
            keys={"arm": arm, "rate": path[0], "rtt": path[1], "queue": queue},
            stream=f"phases {path}",
            seeds=plan.count(quick=3, paper=20),
            needs=NEEDS,
            keep={"runs": partial(quality, place(*path, queue))},
        )
        for path in PATHS
        for queue in PHASES
        for arm in SWEPT
    ]
    return collect("phases", cells, plan)


def swept(
    tables: Tables, arm: str, column: str, path: tuple[int, int], band: tuple[float, float], least: float = 0
) -> Array:
    """Each run's value, averaged over the depths in a band at which path and queue together hold at least `least` packets."""
    own = tables["phases.runs"].filter(arm=arm, rate=path[0], rtt=path[1])
    kept = own.filter(pl.col("queue").is_between(*band), (1 + pl.col("queue")) * place(*path, 0).bdp >= least)
    settled = pl.col("settled").clip(upper_bound=ROUND_TRIPS)
    found: Array = (
        kept.with_columns(settled, pl.col("exit").fill_nan(0))
        .group_by("seed")
        .agg(pl.col(column).mean())
        .sort("seed")[column]
        .to_numpy()
        .astype(np.float64)
    )
    return found


def _over_bands(
    what: str, bound: Bound, measure: Callable[[tuple[int, int], tuple[float, float]], Estimate | None], *,
    bands: Sequence[tuple[float, float]], unit: str = "",
) -> list[Evidence]:  # fmt: skip
    """A value for every path and depth band, as cells of a sentence for which the publication gives no cells."""
    found = []
    for path in PATHS:
        for low, high in bands:
            e = measure(path, (low, high))
            if e is not None:
                found.append(
                    Evidence.of(
                        e,
                        f"{path[0]} Mb/s, {path[1]} ms, queues of {low:g} to {high:g} BDP: {what}",
                        bound,
                        unit=unit,
                        key=f"b{path[0]}_{path[1]}_{low:g}".replace(".", ""),
                        cell={"rate": path[0], "rtt": path[1], "queue": low},
                    )
                )
    return found


SHORT, LONG = BANDS[:3], BANDS[3:]


def _beside(found: Sequence[Evidence]) -> list[Evidence]:
    return [replace(e, weighs=False) for e in found]


def _pick(tables: Tables, arm: str, column: str, path: tuple[int, int], queue: float) -> Any:
    return of(tables, TABLE, column, arm=arm, rate=path[0], rtt=path[1], queue=queue)


def _each(
    tables: Tables,
    arm: str,
    column: str,
    what: str,
    bound: Bound,
    *,
    queues: Sequence[float],
    unit: str = "",
    base: str = "",
    least: float = 0,
) -> list[Evidence]:
    found = []
    for path in PATHS:
        for queue in QUEUES:
            values = _pick(tables, arm, column, path, queue)
            if base:
                values = values / np.maximum(_pick(tables, base, column, path, queue), 1.0)
            found.append(
                Evidence.of(
                    median(values),
                    f"{place(*path, queue).name}: {what}",
                    bound,
                    unit=unit,
                    weighs=queue in queues and place(*path, queue).bdp * (1 + queue) >= least,
                    key=f"r{path[0]}_{path[1]}_q{queue:g}".replace(".", ""),
                )
            )
    return found


def s1(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Ratio of HyStart++'s losses to the classic start's, over depths of one product and more; single depths for context."""
    return [
        *_losses(tables, bound, LONG),
        *_beside(_over_classic(tables, bound, ())),
        *population.on_paths(tables, "hystartpp_loses_less"),
    ]


def s19(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Losses behind queues shorter than the path."""
    return [*_losses(tables, bound, SHORT), *_beside(_over_classic(tables, bound, ()))]


def _losses(tables: Tables, bound: Bound, bands: Sequence[tuple[float, float]]) -> list[Evidence]:
    def measure(path: tuple[int, int], band: tuple[float, float]) -> Estimate:
        return ratio(*(swept(tables, arm, "lost", path, band) for arm in (HYSTART_PP, CLASSIC)))

    return _over_bands("losses, HyStart++ over classic", bound, measure, bands=bands)


def _over_classic(tables: Tables, bound: Bound, queues: Sequence[float]) -> list[Evidence]:
    return _each(tables, HYSTART_PP, "lost", "losses, HyStart++ over classic", bound, queues=queues, base=CLASSIC)


def s2(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """SEARCH's ssthresh, over depths of one product and more, and at four."""
    found = _swept(tables, SEARCH, "exit", "ssthresh over BDP, SEARCH", bound, LONG)
    deep = _each(tables, SEARCH, "exit", "ssthresh over BDP, SEARCH", bound, queues=(4.0,))
    return [*found, *deep, *population.on_paths(tables, "search_near")]


def _swept(
    tables: Tables,
    arm: str,
    column: str,
    what: str,
    bound: Bound,
    bands: Sequence[tuple[float, float]],
    *,
    unit: str = "",
    least: float = 0,
) -> list[Evidence]:
    def measure(path: tuple[int, int], band: tuple[float, float]) -> Estimate | None:
        found = swept(tables, arm, column, path, band, least)
        return mean_over_runs(found) if found.size else None

    return _over_bands(what, bound, measure, bands=bands, unit=unit)


def s3(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """SEARCH's losses, over depths of one product and more, and at four."""
    found = _swept(tables, SEARCH, "lost_bdp", "losses over BDP, SEARCH", bound, LONG)
    deep = _each(tables, SEARCH, "lost_bdp", "losses over BDP, SEARCH", bound, queues=(4.0,))
    return [*found, *deep, *population.on_paths(tables, "search_clean")]


def s4(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Limited slow start's losses, over all queue lengths at which it limits growth, and at four BDPs."""
    what = "losses, limited slow start"
    found = _swept(tables, LIMITED, "lost", what, bound, BANDS, unit="segments", least=MAX_SSTHRESH)
    deep = _each(tables, LIMITED, "lost", what, bound, queues=(4.0,), unit="segments", least=MAX_SSTHRESH)
    return [*found, *deep, *population.on_paths(tables, "limited_bounded")]


def s5(tables: Tables) -> Sequence[Evidence]:
    """Ratio of limited slow start's duration to the classic one's."""
    return [*_slow(tables, (100, 100)), *population.on_paths(tables, "limited_slower")]


def _slow(tables: Tables, path: tuple[int, int]) -> list[Evidence]:
    found = []
    for queue in QUEUES:
        mine, base = (_pick(tables, arm, "settled", path, queue) for arm in (LIMITED, CLASSIC))
        found.append(
            Evidence.reached(
                mine,
                ROUND_TRIPS,
                f"{place(*path, queue).name}: until 90 % of the rate, limited",
                between(float(np.median(base)), float("inf")),
                unit="round trips",
                weighs=queue > 0.5,
                key=f"q{queue:g}".replace(".", ""),
            )
        )
    return found


def figure(tables: Tables) -> Figure:
    """Exit, losses and duration for each path and queue."""

    def draw() -> Any:
        figure, axes = new(8.6, 7.4, nrows=3, ncols=len(PATHS), sharex=True, sharey="row")
        for column, path in enumerate(PATHS):
            for row, name in enumerate(("exit", "lost_bdp", "settled")):
                ax = axes[row][column]
                for offset, arm in enumerate(ARMS):
                    middle = [float(np.median(_pick(tables, arm, name, path, queue))) for queue in QUEUES]
                    at = np.arange(len(QUEUES)) + 0.13 * (offset - 2)
                    finite = [ROUND_TRIPS if np.isinf(value) else value for value in middle]
                    ax.plot(at, finite, ls="none", marker=MARKER[arm], color=COLOUR[arm], ms=5.5, label=arm)
                ax.set_xticks(range(len(QUEUES)), [f"{queue:g}" for queue in QUEUES])
                scale, ticks = SCALES[name]
                ax.set_yscale(scale, **({"linthresh": 0.01} if scale == "symlog" else {}))
                ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
                ax.set_yticks([], minor=True)
                ax.grid(axis="x", visible=False)
                if name == "exit":
                    ax.axhline(1, color="#6b6b6b", lw=0.9)
                    ax.set_title(f"{path[0]} Mb/s, {path[1]} ms", fontsize=9)
        for ax, label in zip(axes[:, 0], ("ssthresh / BDP", "lost / BDP", "round trips to 90 %"), strict=True):
            ax.set_ylabel(label)
        for ax in axes[-1]:
            ax.set_xlabel("queue (BDP)")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=len(ARMS))
        return figure

    return Figure(
        name="exits",
        title="Where slow start ends, what that loses, and when the rate is reached",
        caption=(
            "CUBIC with each slow start, medians over runs. Top: ssthresh after slow start over the bandwidth-delay product; the line is "
            "the path's own. Middle: segments marked lost until two round trips later, over the same. Bottom: round trips until four in a "
            "row brought 90 % of what the others leave."
        ),
        draw=draw,
        data={"exits": tables[TABLE]},
    )


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (figure(tables),)


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {"exits: SEARCH, 100 Mb/s, 20 ms": place(100, 20, 1.0).scenario(SEARCH, ROUND_TRIPS)}


CHAPTER = Chapter(
    experiments=(
        Experiment(name="exits", title="slow starts over rates, round-trip times and queues", run=run, weight=6),
        Experiment(name="phases", title="the same with queues in steps of 0.05 products", run=run_phases, weight=6),
    ),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
