"""Further looks at rows that show no difference, each with twice as many seeds as the previous one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ackclock.evaluate import settle
from ackclock.evaluate.situation import Scale
from ackclock.evaluate.verdict import RowVerdict
from ackclock.judge.looks import HOPELESS, LOOKS

End = Literal["nothing left", "time", "looks"]
"""Reasons to stop: more seeds would settle no row, the time is up, or the maximum number of looks is reached."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Within:
    """Time limit for the further looks.

    Parameters
    ----------
    seconds
        Time limit. The results depend on it only through the number of looks.
    clock
        Clock, seconds.
    """

    seconds: float
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Decided:
    """Outcome of the further looks.

    Parameters
    ----------
    looks
        Number of further looks.
    runs
        Number of further runs.
    seeds
        Row -> seeds of each cell at its last look, for the rows that were looked at again.
    verdicts
        Row -> verdict at its last look.
    ended
        Reason why there are no more looks.
    """

    looks: int
    runs: int
    seeds: Mapping[str, int]
    verdicts: Mapping[str, RowVerdict] = field(repr=False)
    ended: End


Look = Callable[[Mapping[str, int], int, float], Sequence[RowVerdict] | None]
"""(seeds by row, look number, end time) -> verdicts of these rows; None if the runs did not finish in time."""


def decide(
    rows: Sequence[RowVerdict], scale: Scale, within: Within, look: Look, count: Callable[[Mapping[str, int]], int]
) -> Decided:
    """Double the number of seeds in rows without a difference until each has a verdict, or the time is up.

    Parameters
    ----------
    rows
        Verdicts of the first look.
    scale
        Scale of the runs.
    within
        Time for all further looks. A look that does not finish in time does not affect the verdicts.
    look
        Function that makes the runs of a look, and judges them.
    count
        Function that returns how many runs a look with these seeds still lacks.
    """
    until = within.clock() + within.seconds
    verdicts: dict[str, RowVerdict] = {}
    seeds: dict[str, int] = {}
    hopeless = {r.row.id: 0 for r in rows}
    open_ = [r for r in rows if settle.by_seeds(r, scale)]
    pace = looks = runs = 0.0
    ended: End = "nothing left"
    while True:
        for r in open_:
            hopeless[r.row.id] = 0 if math.isfinite(settle.needed(r)) else hopeless[r.row.id] + 1
        open_ = [r for r in open_ if hopeless[r.row.id] < HOPELESS]
        if not open_ or looks == LOOKS:
            ended = "looks" if open_ else "nothing left"
            break
        wanted = {r.row.id: 2 * settle.seeds_of(r) for r in open_}
        lacking, began = count(wanted), within.clock()
        if began + lacking * pace > until or (found := look(wanted, int(looks) + 1, until)) is None:
            ended = "time"
            break
        looks, runs = looks + 1, runs + lacking
        pace = (within.clock() - began) / lacking if lacking else pace
        seeds |= wanted
        verdicts |= {r.row.id: r for r in found}
        open_ = [r for r in found if settle.by_seeds(r, scale)]
    return Decided(looks=int(looks), runs=int(runs), seeds=seeds, verdicts=verdicts, ended=ended)
