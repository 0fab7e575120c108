"""Whether a mean over time had settled in the measured window."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ackclock.judge.intervals import Estimate, mean_interval


@dataclass(frozen=True, kw_only=True, slots=True)
class Settling:
    """Change of a number over its window.

    Parameters
    ----------
    change
        Second half of the window minus first, with its interval over runs.
    drifts
        Whether the interval excludes zero.
    factor
        Factor by which to lengthen the window for the remaining change to fall below `tolerance`, if it
        decays exponentially; infinite if the change does not decrease from third to third; 1 if it does not drift.
    """

    change: Estimate
    drifts: bool
    factor: float

    @property
    def told(self) -> str:
        """Consequence for the window length, in words."""
        if math.isinf(self.factor):
            return "nothing shows that it settles"
        return f"a window {self.factor:.2g} times as long would show it settled"


def trend(series: NDArray[np.float64]) -> Estimate:
    """Change from the first half of a window to the second, with Student's t interval over runs.

    Parameters
    ----------
    series
        Shape (runs, samples): the number along the measured window, at equal time intervals.
    """
    half = series.shape[1] // 2
    return mean_interval(series[:, -half:].mean(axis=1) - series[:, :half].mean(axis=1))


def settling(series: NDArray[np.float64], tolerance: float) -> Settling:
    """Return whether a number had settled, and the length of a window in which it would have.

    Parameters
    ----------
    series
        As for `trend`; nine samples or more.
    tolerance
        Largest change that is irrelevant, in the unit of the number; above zero.
    """
    change = trend(series)
    drifts = change.low > 0 or change.high < 0
    if not drifts:
        return Settling(change=change, drifts=False, factor=1.0)
    first, second, third = (part.mean() for part in np.array_split(series, 3, axis=1))
    before, after = second - first, third - second
    ratio = after / before if before else math.inf
    if not 0 < ratio < 1 - 1e-9:  # equal steps may differ by rounding errors
        return Settling(change=change, drifts=True, factor=math.inf if ratio > 0 else 2.0)
    left = abs(after) * ratio / (1 - ratio)  # change expected in the thirds that follow
    thirds = max(0.0, math.log(tolerance / left) / math.log(ratio))
    return Settling(change=change, drifts=True, factor=1 + thirds / 3)
