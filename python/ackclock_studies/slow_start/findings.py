"""What a reader should take home, from the numbers of a run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ackclock.study import Headline, StudyResult, Tables
from ackclock_studies.slow_start import exits, noise, resume
from ackclock_studies.slow_start.paths import ARMS, CLASSIC, HYSTART, HYSTART_PP, SEARCH, of


def _range(tables: Tables, arm: str, column: str) -> tuple[float, float]:
    """Least and greatest median over the paths of the sweep on which slow start ended."""
    found = [
        float(np.median(of(tables, exits.TABLE, column, arm=arm, rate=rate, rtt=rtt, queue=queue)))
        for rate, rtt in exits.PATHS
        for queue in exits.QUEUES
    ]
    return float(np.nanmin(found)), float(np.nanmax(found))


def findings(result: StudyResult) -> Sequence[str]:
    """What to take home, from this run's numbers."""
    t = result.tables
    spans = {arm: _range(t, arm, "exit") for arm in ARMS}
    lost = {arm: _range(t, arm, "lost_bdp")[1] for arm in ARMS}
    each = "; ".join(
        f"{arm} {spans[arm][0]:.2g} to {spans[arm][1]:.2g}, loses up to {100 * lost[arm]:.0f} %" for arm in ARMS
    )
    radio = {
        arm: float(np.median(np.nan_to_num(of(t, noise.TABLE, "exit", arm=arm, noise=noise.BAD_RADIO))))
        for arm in (HYSTART, HYSTART_PP, SEARCH)
    }
    known = [
        float(
            np.median(resume.took(t, CLASSIC, resume.KNOWN, size) - resume.took(t, resume.RESUME, resume.KNOWN, size))
        )
        * 1e3
        / resume.RTT
        for size in resume.SIZES
    ]
    return [
        f"ssthresh at the end of slow start on undisturbed paths, and losses, in bandwidth-delay products: {each} of one.",
        f"The same ssthresh with Wi-Fi jitter of 7 ms: HyStart {radio[HYSTART]:.2g}, HyStart++ {radio[HYSTART_PP]:.2g}, SEARCH {radio[SEARCH]:.2g}.",
        f"Careful Resume saves {min(known):.1f} to {max(known):.1f} round trips of 100 ms on the path it knows.",
    ]


def headline(result: StudyResult) -> Headline:
    """Which exit is good."""
    t = result.tables
    lost = {arm: 100 * _range(t, arm, "lost_bdp")[1] for arm in (CLASSIC, HYSTART)}
    radio = float(np.median(np.nan_to_num(of(t, noise.TABLE, "exit", arm=HYSTART, noise=noise.BAD_RADIO))))
    return Headline(
        sentence=(
            "A new connection doubles its window until a rule stops it. If it waits for a loss, it loses up to "
            f"{lost[CLASSIC]:.0f} % of what the path holds. HyStart, which watches the delay, loses {lost[HYSTART]:.0f} % at most, but on a radio link with 7 ms of "
            f"jitter it stops at {100 * radio:.0f} % of what the path holds."
        ),
        figure=exits.figure(t),
    )
