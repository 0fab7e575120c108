"""Repeated looks at an open number, each with twice the runs of the one before, and the runs that would settle it.

Repeated looks have a cost. The first look is at 95 %. The later ones share another 5 % equally, so that at a margin a mistake
in one direction or the other is made in at most 5 % of all cases, however many looks there are (Bonferroni's inequality;
half of it is on either side).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ackclock.judge.evidence import wider
from ackclock.judge.intervals import Estimate

MOST_TIMES = 64
"""Largest multiple of the first look's runs."""

LOOKS = MOST_TIMES.bit_length() - 1
"""Looks after the first: the runs are doubled at most this many times."""

HOPELESS = 2
"""Successive looks after which a value on a limit is expected to stay there."""

BEYOND = 1024
"""Multiple of the first look's runs above which no number is given, because it cannot be reached."""


def widened(estimate: Estimate, among: int) -> Estimate:
    """Return a 95 % interval at the level that one of `among` numbers or looks has."""
    factor = wider(among, estimate.n)
    value = estimate.value
    return replace(
        estimate,
        low=value - factor * (value - estimate.low),
        high=value + factor * (estimate.high - value),
        level=1 - (1 - estimate.level) / among,
    )


def times_needed(value: float, low: float, high: float, limits: Sequence[float]) -> float:
    """Return the multiple of the present runs after which an interval contains none of the limits.

    Its half-width falls with the square root of their number, and has to shrink to the distance of the nearest limit. Infinite if
    the value lies on a limit, or the interval has no ends.
    """
    if not all(map(math.isfinite, (value, low, high))):
        return math.inf
    times = 1.0
    for limit in limits:
        away = abs(value - limit)
        if low <= limit <= high:
            times = max(times, math.inf if away == 0 else (((high if limit > value else low) - value) / away) ** 2)
    return times


def runs_needed(estimate: Estimate, limit: float, among: int) -> float:
    """Return the number of runs after which the interval of a mean, as one of `among` numbers or looks, leaves a limit out.

    The spread is taken to stay what it is. Student's quantile shrinks with the number, which matters where that is small now.
    Infinite if more than `BEYOND` times the present runs would be needed.
    """
    import numpy as np
    from scipy.special import stdtrit

    e, away = estimate, abs(estimate.value - limit)
    if e.n < 2 or not all(map(math.isfinite, (e.low, e.high, e.value))):
        return math.inf
    end = (e.high if limit > e.value else e.low) - e.value
    spread = abs(end) * math.sqrt(e.n) / float(stdtrit(e.n - 1, (1 + e.level) / 2))
    runs = np.arange(e.n, BEYOND * e.n + 1)
    half = stdtrit(runs - 1, 1 - (1 - e.level) / 2 / among) * spread / np.sqrt(runs)
    enough = np.flatnonzero(half < away)
    return float(runs[enough[0]]) if enough.size else math.inf
