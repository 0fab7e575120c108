"""Benefit of SACK (I21, I22)."""

from __future__ import annotations

from collections.abc import Sequence

from ackclock.judge.estimates import Array, mean_of, median
from ackclock.study import (
    Bound,
    Chapter,
    Evidence,
    Tables,
)
from ackclock.study.table import declared
from ackclock_studies.iw10.completion_times import gain
from ackclock_studies.iw10.loaded import cells, times
from ackclock_studies.iw10.testbed import FAST, FIVE, IW3, IW10, SINGLE, SLOW, where

LOSSY = ((SLOW, SINGLE, 0.975), (SLOW, FIVE, 0.75), (SLOW, FIVE, 0.975), (FAST, FIVE, 0.96))
"""Cells for which the slides show or mention losses: the loss-rate plots, and five opens at 96 % load on the fast
link. The other cells lose almost nothing, so SACK has nothing to repair there.
"""


def i21(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Ratio of IW10's gain without SACK to its gain with SACK."""
    found = []
    for place in cells(tables):
        without = gain(tables, *place, sack=False)
        if not without.size:
            continue
        both = without / gain(tables, *place)[: without.size]
        text = f"{where(*place)}: UCT(IW10) / UCT(IW3), without SACK over with SACK"
        found.append(Evidence.of(median(both), text, bound))
    return found


def by_sack(tables: Tables, arm: str, place: tuple[str, str, float]) -> Array:
    """Reduction in completion time by SACK, percent, seed by seed."""
    without = times(tables, *place, arm, "mean_s", sack=False)
    return 100 * (1 - times(tables, *place, arm, "mean_s")[: without.size] / without)


def _helps(tables: Tables, bound: Bound) -> list[Evidence]:
    found = []
    for arm in (IW3, IW10):
        each = {place: median(by_sack(tables, arm, place)) for place in LOSSY}
        pooled = mean_of(list(each.values()))
        least, most = (pick(each.values(), key=lambda e: e.value) for pick in (min, max))
        text = f"{arm}: gain by SACK, mean over the cells with loss"
        found.append(Evidence.of(pooled, text, bound, unit="%", key=arm))
        found += [
            Evidence.of(
                e,
                f"{arm}, {where(*place)}: gain by SACK",
                bound,
                unit="%",
                weighs=False,
                key=f"{arm}_{'least' if e is least else 'most'}" if e in (least, most) else "",
            )
            for place, e in each.items()
        ]
    return found


def i22(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Check that SACK helps in cells with losses."""
    return _helps(tables, bound)


def i22_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Size of the reduction."""
    return _helps(tables, bound)


CHAPTER = Chapter(**declared(__name__))
