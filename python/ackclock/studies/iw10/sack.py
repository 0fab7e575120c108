"""What SACK is worth (I21, I22)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ackclock.studies.iw10.completion_times import exceptions, no_worse
from ackclock.studies.iw10.loaded import cells, times
from ackclock.studies.iw10.testbed import FIVE, HEAVY, IW3, IW10, RATES, where
from ackclock.study import (
    Chapter,
    Claim,
    Criterion,
    Evidence,
    Tables,
    at_least,
    between,
)
from ackclock.study.estimates import median


def i21(tables: Tables) -> Sequence[Evidence]:
    """The same without SACK."""
    share = Evidence.of(
        no_worse(tables, sack=False), "without SACK: cells with UCT(IW10) ≤ 1.05 UCT(IW3)", at_least(90), unit="%"
    )
    return [share, *exceptions(tables, sack=False)]


def i22(tables: Tables) -> Sequence[Evidence]:
    """What SACK is worth, cell by cell in the median."""
    found = []
    for arm in (IW3, IW10):
        per_cell = []
        for rate, mode, load in cells(tables):
            with_sack = times(tables, rate, mode, load, arm, "mean_s")
            without = times(tables, rate, mode, load, arm, "mean_s", sack=False)
            per_cell.append(100 * (1 - with_sack / without))
        found.append(
            Evidence.of(
                median(np.mean(per_cell, axis=0)), f"{arm}: gain by SACK, mean over cells", between(0, 10), unit="%"
            )
        )
        for rate in RATES:
            mode, load = FIVE, HEAVY[rate]
            with_sack = times(tables, rate, mode, load, arm, "mean_s")
            without = times(tables, rate, mode, load, arm, "mean_s", sack=False)
            found.append(
                Evidence.of(
                    median(100 * (1 - with_sack / without)),
                    f"{arm}, {where(rate, mode, load)}: gain by SACK",
                    between(0, 10),
                    unit="%",
                    weighs=False,
                )
            )
    return found


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="I21",
        place="slides: SACK; RFC 6928, Appendix A",
        statement="IW10 does not need SACK.",
        direction=Criterion(
            measure=i21,
            reading="I6 without SACK.",
        ),
        note="As I6: the exceptions are the same as with SACK.",
    ),
    Claim(
        id="I22",
        place="slides: SACK",
        statement="SACK helps a little with either initial window.",
        direction=Criterion(
            measure=i22,
            reading="0 to 10 % of completion time, mean over all cells.",
        ),
    ),
)

CHAPTER = Chapter(title="SACK", claims=CLAIMS)
