"""Main findings, derived from a run's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.plot import GREY, Figure, new
from ackclock.study import Headline, StudyResult, Tables
from ackclock_studies.slow_start import exits, noise, resume
from ackclock_studies.slow_start.paths import ARMS, CLASSIC, COLOUR, HYSTART, HYSTART_PP, MARKER, SEARCH, of


def _range(tables: Tables, arm: str, column: str) -> tuple[float, float]:
    """Minimum and maximum of the medians, over the paths in the sweep on which slow start ended."""
    found = [
        float(np.median(of(tables, exits.TABLE, column, arm=arm, rate=rate, rtt=rtt, queue=queue)))
        for rate, rtt in exits.PATHS
        for queue in exits.QUEUES
    ]
    return float(np.nanmin(found)), float(np.nanmax(found))


def findings(result: StudyResult) -> Sequence[str]:
    """Main findings as sentences, from this run's numbers."""
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


def in_short(tables: Tables) -> Figure:
    """Losses with each slow start on undisturbed paths, and its exit on a disturbed one."""
    rows = [
        {
            "arm": arm,
            "what": f"{rate} Mb/s, {rtt} ms, queue {queue:g} BDP",
            "lost_percent": 100 * float(np.median(lost)),
        }
        for arm in ARMS
        for rate, rtt in exits.PATHS
        for queue in exits.QUEUES
        for lost in (of(tables, exits.TABLE, "lost_bdp", arm=arm, rate=rate, rtt=rtt, queue=queue),)
    ]
    losses = pl.DataFrame(rows)
    ends = pl.DataFrame(
        [
            {"arm": arm, "what": place, "ssthresh_percent": 100 * float(np.median(np.nan_to_num(exit_)))}
            for arm in ARMS
            for place in (noise.QUIET, noise.BAD_RADIO)
            for exit_ in (of(tables, noise.TABLE, "exit", arm=arm, noise=place),)
        ]
    )

    def draw() -> Any:
        figure, (left, right) = new(7.8, 2.9, ncols=2, sharey=True)
        for y, arm in enumerate(ARMS):
            look = {"color": COLOUR[arm], "marker": MARKER[arm], "ls": ""}
            lost = losses.filter(arm=arm)["lost_percent"].to_numpy()
            left.plot([lost.min(), lost.max()], [y, y], color=COLOUR[arm], lw=1)
            left.plot(lost, np.full(lost.size, y), ms=5, alpha=0.75, **look)
            quiet, radio = (
                ends.filter(arm=arm, what=x)["ssthresh_percent"].item() for x in (noise.QUIET, noise.BAD_RADIO)
            )
            right.annotate("", (radio, y), (quiet, y), arrowprops={"arrowstyle": "->", "color": GREY, "lw": 0.9})
            right.plot(quiet, y, mfc="white", ms=6, **look)
            right.plot(radio, y, ms=6, **look)
        right.axvline(100, color=GREY, lw=0.9)
        left.set_yticks(range(len(ARMS)), ARMS)
        left.set_ylim(len(ARMS) - 0.6, -0.4)
        left.set(title="lost at the end of slow start", xlabel="% of what the path holds", xlim=(-15, None))
        right.set(title="slow start ends at (ssthresh)", xlabel="% of what the path holds", xlim=(0, None))
        for ax in (left, right):
            ax.grid(axis="y", visible=False)
        return figure

    return Figure(
        name="headline",
        title="What each slow start loses, and where it ends",
        caption=(
            "Left: losses until two round trips later, a point for each of four paths with five queues. Right: ssthresh on a quiet path of 50 Mb/s and 40 ms (open), "
            "and on the same path with 7 ms of jitter (filled). Medians over runs."
        ),
        draw=draw,
        data={"losses": losses, "ends": ends},
    )


def headline(result: StudyResult) -> Headline:
    """Range of exits that count as good."""
    t = result.tables
    lost = {arm: 100 * _range(t, arm, "lost_bdp")[1] for arm in (CLASSIC, HYSTART)}
    radio = float(np.median(np.nan_to_num(of(t, noise.TABLE, "exit", arm=HYSTART, noise=noise.BAD_RADIO))))
    return Headline(
        sentence=(
            "A new connection doubles its window until a rule stops it. If it waits for a loss, it loses up to "
            f"{lost[CLASSIC]:.0f} % of what the path holds. HyStart, which watches the delay, loses {lost[HYSTART]:.0f} % at most, but on a radio link with 7 ms of "
            f"jitter it stops at {100 * radio:.0f} % of what the path holds."
        ),
        figure=in_short(t),
    )
