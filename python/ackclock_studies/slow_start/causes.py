"""Slow starts with one mechanism removed: the causes behind S1, S4 and S9; and long-delay paths with deep queues (S18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import Array, bootstrap, median
from ackclock.scenario import Scenario
from ackclock.study import (
    Bound,
    Chapter,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.slow_start import noise
from ackclock_studies.slow_start.paths import CLASSIC, HYSTART_PP, LIMITED, NEEDS, SEARCH, Place, of, quality

ROUND_TRIPS = 80
ONE_ROUND = "one slow round"
HARDLY_GROWS = "a window that hardly grows"
STARTS: Mapping[str, Any] = {
    HYSTART_PP: HYSTART_PP,
    ONE_ROUND: {"kind": HYSTART_PP, "css_rounds": 1},
    HARDLY_GROWS: {"kind": HYSTART_PP, "css_growth_divisor": 1000},
}
PATHS = ((10, 20), (10, 100), (100, 20), (100, 100))
"""Paths as Mbit/s and ms, as in the sweep."""
DEEPER, NO_LOSS = 16.0, 1000.0
"""Queue lengths, BDPs: one that absorbs the overshoot of doubling, and one that never fills."""
BEHIND = f"{SEARCH}, {DEEPER:g} products"
SEEN = f"{HYSTART_PP}, {ONE_ROUND}, nothing lost"
QUARTER = 0.25
DEEP = ((10, 100), (100, 20), (100, 100))
"""Paths on which HyStart++ loses packets with a four-BDP queue."""


def _alone(scenario: Scenario) -> Scenario:
    values = scenario.to_dict()
    return Scenario.from_dict({**values, "flows": values["flows"][:1]})


def run(plan: Plan) -> Data:
    """HyStart++ with other slow rounds, limited slow start alone and with competing flows, SEARCH without the radio link's pauses.

    Returns
    -------
    Data
        `why.runs`: what, rate, rtt, queue, seed and the columns of `paths.quality`.
    """
    seeds = plan.count(quick=24, paper=100)

    def cell(what: str, place: Place, scenario: Scenario, stream: str, count: int) -> Cell:
        return Cell(
            scenario=scenario,
            keys={"what": what, "rate": place.rate, "rtt": place.rtt, "queue": place.queue},
            stream=stream,
            seeds=count,
            needs=NEEDS,
            keep={"runs": partial(quality, place)},
        )

    cells = []
    for queue in (1.0, 4.0):
        for rate, rtt in DEEP:
            place = Place(rate=rate, rtt=rtt, queue=queue)
            for what, start in STARTS.items():
                made = place.scenario(start, ROUND_TRIPS)
                # the longest path with a queue of one product yields values near one half, on which the claim depends
                close = (rate, rtt, queue) == (100, 100, 1.0)
                cells.append(cell(what, place, made, f"why {rate} {rtt}", 3 * seeds if close else seeds))
    for place in (Place(rate=100, rtt=20, queue=4.0), Place(rate=100, rtt=100, queue=1.0)):
        made = place.scenario(LIMITED, ROUND_TRIPS)
        cells.append(cell(LIMITED, place, made, "why limited", 2 * seeds))
        cells.append(cell(f"{LIMITED}, alone", place, _alone(made), "why alone", 1))
    for rate, rtt in PATHS:
        deep = Place(rate=rate, rtt=rtt, queue=DEEPER)
        cells.append(cell(BEHIND, deep, deep.scenario(SEARCH, ROUND_TRIPS), f"why deep {rate} {rtt}", seeds // 2))
        endless = Place(rate=rate, rtt=rtt, queue=NO_LOSS)
        cells += [
            cell(
                f"{arm}, nothing lost",
                endless,
                endless.scenario(arm, ROUND_TRIPS),
                f"why lossless {rate} {rtt}",
                seeds // 2,
            )
            for arm in (CLASSIC, LIMITED)
        ]
        seen = endless.scenario(STARTS[ONE_ROUND], ROUND_TRIPS)
        cells.append(cell(SEEN, endless, seen, f"why lossless {rate} {rtt}", seeds // 2))
    quiet, radio = noise.PLACES[noise.QUIET], noise.PLACES[noise.RADIO]
    calm = Place(rate=quiet.rate, rtt=quiet.rtt, queue=quiet.queue, link={"wifi": {"mean": "1 ms"}})
    for what, place in ((noise.RADIO, radio), (noise.CALM, calm)):
        made = place.scenario(SEARCH, ROUND_TRIPS, workload=noise.WORK)
        cells.append(cell(what, place, made, "why idle", 3 * seeds))
    return collect("why", cells, plan)


def near_behind_four(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """SEARCH's ssthresh with a four-BDP queue."""
    return [
        Evidence.of(
            median(of(tables, "exits.runs", "exit", arm=SEARCH, rate=rate, rtt=rtt, queue=4.0)),
            f"{rate} Mb/s, {rtt} ms, queue 4 BDP: ssthresh over BDP, SEARCH",
            bound,
            key=f"four_{rate}_{rtt}",
        )
        for rate, rtt in PATHS
    ]


def clean_behind_sixteen(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """SEARCH's losses with a sixteen-BDP queue."""
    return [
        Evidence.of(
            median(of(tables, "why.runs", "lost_bdp", what=BEHIND, rate=rate, rtt=rtt)),
            f"{rate} Mb/s, {rtt} ms, queue {DEEPER:g} BDP: losses over BDP, SEARCH",
            bound,
            key=f"sixteen_{rate}_{rtt}",
        )
        for rate, rtt in PATHS
    ]


def slower_without_loss(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Extra round trips of limited slow start over the classic one if nothing is lost."""
    found = []
    for rate, rtt in PATHS:
        limited, classic = (
            np.minimum(of(tables, "why.runs", "settled", what=f"{arm}, nothing lost", rate=rate, rtt=rtt), ROUND_TRIPS)
            for arm in (LIMITED, CLASSIC)
        )
        found.append(
            Evidence.of(
                median(limited - classic),
                f"{rate} Mb/s, {rtt} ms, nothing lost: round trips until 90 % of the rate, limited less classic",
                bound,
                unit="round trips",
                key=f"lossless_{rate}_{rtt}",
            )
        )
    return found


def seen_late(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Window of the round in which HyStart++ detects the rise without losses: the window after one slow round, less the quarter that this round may add."""
    return [
        Evidence.of(
            median(of(tables, "why.runs", "exit", what=SEEN, rate=rate, rtt=rtt) / (1 + QUARTER)),
            f"{rate} Mb/s, {rtt} ms, nothing lost: window at which HyStart++ sees the rise, over BDP",
            bound,
            key=f"seen_{rate}_{rtt}",
        )
        for rate, rtt in PATHS
    ]


def _lost(tables: Tables, what: str, rate: int, rtt: int, queue: float) -> Array:
    return of(tables, "why.runs", "lost", what=what, rate=rate, rtt=rtt, queue=queue)


def _left(with_it: Array, without: Array) -> Any:
    if not with_it.sum():
        return bootstrap(lambda x: 0 * x.mean(axis=1), without)
    return bootstrap(lambda x, y: np.asarray(100 * y.mean(axis=1) / x.mean(axis=1)), with_it, without)


def slow_rounds(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Losses with a four-BDP queue: the fraction that remains with one slow round instead of five."""
    return [
        Evidence.of(
            _left(_lost(tables, HYSTART_PP, rate, rtt, 4.0), _lost(tables, ONE_ROUND, rate, rtt, 4.0)),
            f"{rate} Mb/s, {rtt} ms, queue 4 BDP: losses, what is left with {ONE_ROUND}",
            bound,
            unit="%",
            key=f"one_{rate}_{rtt}",
        )
        for rate, rtt in DEEP
    ]


def sent_before(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Losses with a queue of one product: the fraction that remains if the window hardly grows after the increase is detected."""
    return [
        Evidence.of(
            _left(_lost(tables, HYSTART_PP, rate, rtt, 1.0), _lost(tables, HARDLY_GROWS, rate, rtt, 1.0)),
            f"{rate} Mb/s, {rtt} ms, queue 1 BDP: losses, what is left with {HARDLY_GROWS}",
            bound,
            unit="%",
            key=f"still_{rate}_{rtt}",
        )
        for rate, rtt in DEEP
    ]


def others_room(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Limited slow start's losses above 50 segments, with competing flows and alone."""
    found = []
    for rate, rtt, queue in ((100, 20, 4.0), (100, 100, 1.0)):
        beside = _lost(tables, LIMITED, rate, rtt, queue)
        (alone,) = _lost(tables, f"{LIMITED}, alone", rate, rtt, queue)
        name = f"{rate} Mb/s, {rtt} ms, queue {queue:g} BDP"
        found += [
            Evidence(
                label=f"{name}: losses alone",
                value=float(alone),
                bound=bound,
                unit="segments",
                key=f"alone_{rtt}",
            ),
            Evidence.of(
                median(beside),
                f"{name}: losses beside others",
                Bound(),
                unit="segments",
                weighs=False,
                key=f"beside_{rtt}",
            ),
        ]
    return found


LINKS: Mapping[str, tuple[Place, str]] = {
    "GEO": (Place(rate=20, rtt=600, queue=1.0), "a geostationary satellite: 20 Mb/s, 600 ms, a queue of one product"),
    "LEO": (
        Place(rate=100, rtt=40, queue=2.0, link={"wifi": {"mean": "1 ms"}}),
        "satellites in low orbit: 100 Mb/s, 40 ms, a queue of two products, jitter of 1 ms",
    ),
    "LTE": (
        Place(rate=20, rtt=60, queue=8.0, link={"wifi": {"mean": "1 ms"}}),
        "a cellular link: 20 Mb/s, 60 ms, a queue of eight products, jitter of 1 ms",
    ),
}
"""Path types in the draft's evaluation; the numbers are ours."""


def run_links(plan: Plan) -> Data:
    """SEARCH and the classic start on the paths that its draft names.

    Returns
    -------
    Data
        `links.runs`: kind, arm, seed and the columns of `paths.quality`.
    """

    def keep(place: Place) -> Any:
        def runs(batch: Batch) -> pl.DataFrame:
            return quality(place, batch)

        return runs

    cells = [
        Cell(
            scenario=place.scenario(arm, 40, stack={"receive_buffer": "32 MB"}),
            keys={"kind": kind, "arm": arm},
            stream=f"links {kind}",
            seeds=plan.count(quick=10, paper=60),
            needs=NEEDS,
            keep={"runs": keep(place)},
        )
        for kind, (place, _) in LINKS.items()
        for arm in (CLASSIC, SEARCH)
    ]
    return collect("links", cells, plan)


def s18(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """SEARCH's losses and ssthresh on each type of path."""
    found = []
    for kind in LINKS:
        rows = {arm: (of(tables, "links.runs", "lost_bdp", kind=kind, arm=arm)) for arm in (SEARCH, CLASSIC)}
        found.append(Evidence.of(median(rows[SEARCH]), f"{kind}: losses over BDP, SEARCH", bound, key=f"lost_{kind}"))
        found.append(
            Evidence.of(
                median(rows[CLASSIC]), f"{kind}: losses over BDP, classic", Bound(), weighs=False, key=f"classic_{kind}"
            )
        )
        exits = np.nan_to_num(of(tables, "links.runs", "exit", kind=kind, arm=SEARCH))
        found.append(
            Evidence.of(median(exits), f"{kind}: ssthresh over BDP, SEARCH", Bound(), weighs=False, key=f"exit_{kind}")
        )
    return found


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {f"SEARCH, {kind}": place.scenario(SEARCH, 40) for kind, (place, _) in LINKS.items()}


CHAPTER = Chapter(
    experiments=(
        Experiment(name="why", title="slow starts with one thing taken away", run=run, weight=3),
        Experiment(name="links", title="SEARCH on GEO, LEO and LTE links", run=run_links, weight=3),
    ),
    **declared(__name__),
    scenarios=scenarios,
)
