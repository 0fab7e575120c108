"""Repeated looks at an undecided number, each with twice as many runs as the previous one, and the number of runs that
would settle it.

Repeated looks have a cost. The first look is at 95 %. Later ones share another 5 % equally, so that for a value at a
margin an error in either direction occurs in at most 5 % of all cases, regardless of the number of looks
(Bonferroni's inequality; half on either side).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ackclock.judge.evidence import wider
from ackclock.judge.intervals import Estimate

MOST_TIMES = 64
"""Maximum number of runs of a look, as a multiple of the first look's."""

LOOKS = MOST_TIMES.bit_length() - 1
"""Number of looks after the first one: the number of runs is doubled at most this many times."""

HOPELESS = 2
"""Number of consecutive looks after which a value on a limit is expected to stay there."""

BEYOND = 1024
"""Multiple of the present number of runs above which none is reported, because it is out of reach."""


def widened(estimate: Estimate, among: int) -> Estimate:
    """Widen a 95 % interval so that `among` such intervals hold jointly at 95 % (Bonferroni)."""
    factor = wider(among, estimate.n)
    value = estimate.value
    return replace(
        estimate,
        low=value - factor * (value - estimate.low),
        high=value + factor * (estimate.high - value),
        level=1 - (1 - estimate.level) / among,
    )


def times_needed(value: float, low: float, high: float, limits: Sequence[float]) -> float:
    """Return the multiple of the present number of runs after which an interval contains none of the limits.

    The half-width of an interval is inversely proportional to the square root of the number of runs, and must shrink to
    the distance from the nearest limit. The result is infinite if the value lies on a limit, or if the interval is
    unbounded.
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
    """Return the number of runs after which the interval of a mean, as one of `among` numbers or looks, excludes a
    limit.

    The spread is assumed not to change. Student's quantile decreases with the number of runs, which matters if that is small
    now. The result is infinite if more than `BEYOND` times the present runs would be needed.
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
