"""Main findings, derived from a run's numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ackclock.judge.estimates import median
from ackclock.study import (
    Headline,
    StudyResult,
    Tables,
)
from ackclock_studies.iw10 import why
from ackclock_studies.iw10.completion_times import gain, ratios
from ackclock_studies.iw10.loaded import link
from ackclock_studies.iw10.testbed import ARMS, FAST, FIVE, HEAVY, IW3, IW10, MIX, SINGLE, SLOW


def findings(result: StudyResult) -> Sequence[str]:
    """Main findings as sentences, from this run's numbers."""
    t = result.tables
    light = median(gain(t, FAST, SINGLE, 0.5))
    slow = median(gain(t, SLOW, SINGLE, 0.75))
    heavy = median(gain(t, FAST, FIVE, HEAVY[FAST]))
    return [
        f"On the fast link at half load IW10 takes {100 * light.value:.0f} % of the time of IW3: three rounds become one. On the slow link at "
        f"75 % it takes {100 * slow.value:.0f} %, most of it beyond what it takes on an empty link; with five opens at 96 % of the fast link {100 * heavy.value:.0f} %.",
        _losses(t),
        why.answer(t),
    ]


def _losses(tables: Tables) -> str:
    place = (SLOW, FIVE, HEAVY[SLOW])
    plr = {arm: 100 * float(np.median(link(tables, *place, arm, "plr"))) for arm in ARMS}
    return (
        f"IW10 loses more: {plr[IW10]:.1f} % against {plr[IW3]:.1f} % (mix {plr[MIX]:.1f} %) with five opens at 97.5 % of the slow link, where both "
        "lose many packets."
    )


def headline(result: StudyResult) -> Headline:
    """Gain from an initial window of ten segments instead of three."""
    t = result.tables
    light = median(gain(t, FAST, SINGLE, 0.5)).value
    worst = median(gain(t, SLOW, SINGLE, 0.75)).value
    return Headline(
        sentence=(
            f"With ten packets at once instead of three, small pages take {100 * light:.0f} % of the time on a fast link that is half "
            f"busy. On a slow and busy link this gains nothing ({100 * worst:.0f} % of the time), and more packets are lost."
        ),
        figure=ratios(t),
    )
