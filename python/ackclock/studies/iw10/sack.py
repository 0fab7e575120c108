"""What SACK is worth (I21, I22)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ackclock.studies.iw10.completion_times import MARGIN, gain
from ackclock.studies.iw10.loaded import cells, link, times
from ackclock.studies.iw10.readings import CONNECT
from ackclock.studies.iw10.testbed import IW3, IW10, where
from ackclock.study import (
    Chapter,
    Claim,
    Criterion,
    Evidence,
    Range,
    Tables,
    above,
    at_most,
)
from ackclock.study.estimates import Array, mean_of, median

LOSSY = 0.01
"""Loss rate from which SACK has something to repair, stated beforehand."""


def lossy(tables: Tables, arm: str) -> list[tuple[str, str, float]]:
    """Cells in which at least one packet in a hundred is lost."""
    return [place for place in cells(tables) if np.median(link(tables, *place, arm, "plr")) >= LOSSY]


def i21(tables: Tables) -> Sequence[Evidence]:
    """What IW10 gains without SACK over what it gains with it."""
    found = []
    for place in cells(tables):
        both = gain(tables, *place, sack=False) / gain(tables, *place)[: gain(tables, *place, sack=False).size]
        text = f"{where(*place)}: UCT(IW10) / UCT(IW3), without SACK over with SACK"
        found.append(Evidence.of(median(both), text, at_most(1 + MARGIN)))
    return found


def by_sack(tables: Tables, arm: str, place: tuple[str, str, float]) -> Array:
    """How much less completion time is with SACK, percent, seed by seed."""
    without = times(tables, *place, arm, "mean_s", sack=False)
    return 100 * (1 - times(tables, *place, arm, "mean_s")[: without.size] / without)


def _helps(tables: Tables, bound: Range) -> list[Evidence]:
    found = []
    for arm in (IW3, IW10):
        each = {place: median(by_sack(tables, arm, place)) for place in lossy(tables, arm)}
        pooled = mean_of(list(each.values()))
        text = f"{arm}: gain by SACK, mean over the cells that lose 1 % or more"
        found.append(Evidence.of(pooled, text, bound, unit="%", key=arm))
        found += [
            Evidence.of(e, f"{arm}, {where(*place)}: gain by SACK", bound, unit="%", weighs=False)
            for place, e in each.items()
        ]
    return found


def i22(tables: Tables) -> Sequence[Evidence]:
    """Whether SACK helps where something is lost."""
    return _helps(tables, above(0))


def i22_much(tables: Tables) -> Sequence[Evidence]:
    """By how much."""
    return _helps(tables, at_most(10))


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="I21",
        place="slides: is SACK required; RFC 6928, Appendix A",
        statement="IW10 does not need SACK to perform.",
        direction=Criterion(
            measure=i21,
            reading="against IW3 it does no more than 5 % worse without SACK than with it",
            cell="none is named: every link, mode of opening and load",
            bound="ours",
            reads=(CONNECT,),
        ),
    ),
    Claim(
        id="I22",
        place="slides: is SACK required",
        statement="SACK reduces completion time, but only by a small percentage for either initial window.",
        direction=Criterion(
            measure=i22,
            reading="shorter, in the mean over the cells that lose 1 % or more: elsewhere there is nothing to repair",
            cell="none is named: every link, mode of opening and load with such loss",
            bound="stated",
            reads=(CONNECT,),
        ),
        magnitude=Criterion(
            measure=i22_much, reading="small: at most 10 %", cell="the same", bound="ours", reads=(CONNECT,)
        ),
        note="{IW3:i} with IW3, {IW10:i} with IW10.",
    ),
)

CHAPTER = Chapter(title="SACK", claims=CLAIMS)
