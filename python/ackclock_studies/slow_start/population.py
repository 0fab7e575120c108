"""A population of paths: the fraction on which each slow start behaves as published, and the decisive property
(supplements S1 to S8 and S19).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import polars as pl

from ackclock.judge.bound import Bound, above, at_most, below, between
from ackclock.judge.estimates import Array, mean_over_runs, ratio
from ackclock.judge.evidence import Evidence
from ackclock.report import Block, paragraph
from ackclock.scenario import Scenario
from ackclock.study import Chapter, Data, Experiment, Plan, Tables
from ackclock.study.cells import Cell, collect
from ackclock.study.population import Drawn, OnPaths, draw, verdicts, ways
from ackclock_studies.slow_start.paths import (
    ARMS,
    CLASSIC,
    HYSTART,
    HYSTART_PP,
    LIMITED,
    NEEDS,
    SEARCH,
    Place,
    quality,
)

PROPERTIES = (
    Drawn(
        name="rate",
        unit="Mb/s",
        kind="log-uniform",
        a=2,
        b=100,
        source="ours: from slow access to the study's faster paths",
    ),
    Drawn(name="rtt", unit="ms", kind="lognormal", a=60, b=0.6, least=10, most=300, source="ours"),
    Drawn(name="queue", unit="BDP", kind="log-uniform", a=0.25, b=8, source="ours, as in the study `prr`"),
    Drawn(
        name="jitter",
        unit="ms",
        kind="uniform",
        a=-4,
        b=7,
        least=0,
        source="ours: none on four of eleven paths, else up to the 7 ms of the study's worse radio link",
    ),
)
SEED = 94
PATHS = 60
"""Number of paths, drawn once and the same at every scale. A larger scale adds runs to each path, because a verdict
on a path requires its own interval.
"""
RUNS, PAPER_RUNS = 6, 30
ROUND_TRIPS = 60
LEAST_PACKETS = 20
"""Minimum bandwidth-delay product, packets: below it, slow start has nothing to do after an initial window of ten."""
FEW = 0.05
"""Loss difference in bandwidth-delay products, and relative difference in losses or exits, below which there is considered to be none."""
EARLY = 0.5
"""ssthresh below which an exit is premature, bandwidth-delay products, as in the cells."""


def drawn(count: int) -> list[dict[str, float]]:
    """Return the first paths of the population that hold at least `LEAST_PACKETS`."""
    found: list[dict[str, float]] = []
    for i, one in enumerate(draw(PROPERTIES, 3 * count, SEED)):
        rate, rtt = max(round(one["rate"]), 2), round(one["rtt"])
        bdp = Place(rate=rate, rtt=rtt, queue=1.0).bdp
        if bdp >= LEAST_PACKETS and len(found) < count:
            found.append({**one, "rate": float(rate), "rtt": float(rtt), "path": float(i), "bdp": bdp})
    return found


def place(one: Mapping[str, float]) -> Place:
    """Return a path with its queue, its jitter and light background traffic."""
    jitter = f"{one['jitter']:.2f}"
    link = {"wifi": {"mean": f"{jitter} ms"}} if float(jitter) > 0 else {}
    return Place(rate=int(one["rate"]), rtt=int(one["rtt"]), queue=round(one["queue"], 3), link=link)


def run(plan: Plan) -> Data:
    """Every slow start on every path.

    Returns
    -------
    Data
        `paths.runs`: arm, path, its properties, seed and the columns of `paths.quality`.
    """
    cells = [
        Cell(
            scenario=place(one).scenario(arm, ROUND_TRIPS),
            keys={"arm": arm, **one},
            stream=f"paths {one['path']:.0f}",
            seeds=plan.count(quick=RUNS, paper=PAPER_RUNS),
            needs=NEEDS,
            keep={"runs": partial(quality, place(one))},
        )
        for one in drawn(PATHS)
        for arm in ARMS
    ]
    return collect("paths", cells, plan)


NAMES = {"rate": "rate", "rtt": "round-trip time", "queue": "queue / BDP", "jitter": "jitter", "bdp": "BDP"}


def _column(frame: pl.DataFrame, name: str) -> Array:
    found: Array = frame[name].to_numpy().astype(np.float64)
    return found


def _of(tables: Tables, arm: str) -> dict[float, pl.DataFrame]:
    """Return each path's runs, in seed order. A rate never reached counts as `ROUND_TRIPS`, a slow start without an end as 0."""
    own = tables["paths.runs"].filter(arm=arm).sort("path", "seed")
    settled = pl.col("settled").clip(upper_bound=ROUND_TRIPS)
    own = own.with_columns(settled, pl.col("exit").fill_nan(0))
    return {float(path): rows for (path,), rows in own.group_by("path", maintain_order=True)}


TEXTS = {
    "hystartpp_loses_less": "HyStart++ loses less than the classic start",
    "hystartpp_later": "HyStart++ ends with a larger ssthresh than HyStart",
    "hystart_early": "HyStart ends below half a BDP",
    "search_near": "SEARCH ends with 0.75 to 1.25 BDP",
    "search_clean": "SEARCH loses at most 5 % of the BDP",
    "search_early": "SEARCH ends below half a BDP",
    "limited_bounded": "limited slow start loses at most 50 segments",
    "limited_slower": "limited slow start reaches 90 % of the rate later than the classic start",
}


ASKED: Mapping[str, tuple[str, str, str, Bound]] = {
    "hystartpp_loses_less": ("lost", HYSTART_PP, CLASSIC, below(1, margin=FEW)),
    "hystartpp_later": ("exit", HYSTART_PP, HYSTART, above(1, margin=FEW)),
    "hystart_early": ("exit", HYSTART, "", below(EARLY)),
    "search_near": ("exit", SEARCH, "", between(0.75, 1.25)),
    "search_clean": ("lost_bdp", SEARCH, "", at_most(FEW)),
    "search_early": ("exit", SEARCH, "", below(EARLY)),
    "limited_bounded": ("lost", LIMITED, "", at_most(50)),
    "limited_slower": ("settled", LIMITED, CLASSIC, above(1, margin=FEW)),
}
"""Key -> column, arm, arm providing the divisor (its mean; empty: none), and the sentence's bound."""


def sentence(tables: Tables, key: str) -> OnPaths:
    """Evaluate a sentence over the population."""
    column, arm, base, bound = ASKED[key]
    own, other = _of(tables, arm), _of(tables, base) if base else {}
    each = [
        ratio(_column(rows, column), _column(other[path], column)) if base else mean_over_runs(_column(rows, column))
        for path, rows in own.items()
    ]
    properties = {words: np.array([float(rows[name][0]) for rows in own.values()]) for name, words in NAMES.items()}
    return OnPaths(key=key, text=TEXTS[key], way=ways(each, bound), properties=properties)


def on_paths(tables: Tables, *keys: str) -> list[Evidence]:
    """Sentences over the population; they never affect a verdict."""
    return [e for key in keys for e in sentence(tables, key).evidence()]


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    drawn_as = "; ".join(map(str, PROPERTIES))
    return (
        paragraph(
            f"The sweeps have a few paths. Here paths are drawn: {drawn_as}. Those that hold less than {LEAST_PACKETS} packets are left out. Others take 5 % of each, on and off."
        ),
        verdicts(sentence(tables, key) for key in TEXTS),
    )


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {"a path of the population, SEARCH": place(drawn(1)[0]).scenario(SEARCH, ROUND_TRIPS)}


CHAPTER = Chapter(
    title="A population of paths",
    experiments=(
        Experiment(name="paths", title="every slow start on paths drawn from distributions", run=run, weight=3),
    ),
    blocks=blocks,
    scenarios=scenarios,
)
