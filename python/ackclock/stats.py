"""Estimates with intervals. Every function says which interval it makes; level 0.95 unless asked otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = Sequence[float] | NDArray[Any]

__all__ = [
    "Estimate",
    "bootstrap_interval",
    "mean_interval",
    "paired_difference",
    "proportion_interval",
    "quantile_interval",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A number and how well it is known.

    Parameters
    ----------
    value
        Point estimate.
    low, high
        Ends of the interval; infinite where the data set no bound.
    level
        Confidence level.
    n
        Independent observations.
    """

    value: float
    low: float
    high: float
    level: float
    n: int


def mean_interval(values: Values, *, level: float = 0.95) -> Estimate:
    """Mean with Student's t interval.

    Parameters
    ----------
    values
        Independent observations, shape (n,). An infinite or undefined one leaves the interval without bounds.
    level
        Confidence level.

    Examples
    --------
    >>> e = mean_interval([1.0, 2.0, 3.0])
    >>> round(e.value, 3), round(e.low, 3), round(e.high, 3)
    (2.0, -0.484, 4.484)
    """
    import numpy as np
    from scipy import stats

    x = np.asarray(values, dtype=float)
    if x.size < 2:
        return Estimate(
            value=float(x.mean()) if x.size else math.nan, low=-math.inf, high=math.inf, level=level, n=x.size
        )
    with np.errstate(invalid="ignore"):  # an infinite value leaves the mean infinite or undefined
        mean = float(x.mean())
    if not math.isfinite(mean):
        return Estimate(value=mean, low=-math.inf, high=math.inf, level=level, n=x.size)
    half = float(stats.t.ppf((1 + level) / 2, x.size - 1)) * float(x.std(ddof=1)) / math.sqrt(x.size)
    return Estimate(value=mean, low=mean - half, high=mean + half, level=level, n=x.size)


def paired_difference(first: Values, second: Values, *, level: float = 0.95) -> Estimate:
    """Mean of `first - second`, pair by pair, with Student's t interval.

    Parameters
    ----------
    first, second
        Shape (n,); entry i of both comes from the same seed (common random numbers).
    level
        Confidence level.
    """
    import numpy as np

    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if a.shape != b.shape:
        raise ValueError(f"{a.size} and {b.size} values; pairs need equally many")
    with np.errstate(invalid="ignore"):
        difference = a - b
    return mean_interval(difference, level=level)


def bootstrap_interval(
    values: Values,
    statistic: Callable[[NDArray[Any]], float],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 1,
) -> Estimate:
    """Any statistic with a percentile bootstrap interval; a pure function of its arguments.

    Parameters
    ----------
    values
        Independent observations, shape (n,) or (n, k): rows are drawn whole, so that pairs stay together.
    statistic
        Array of observations -> number.
    level, resamples, seed
        Confidence level; number of resamples; seed of the drawing.

    References
    ----------
    Efron, Tibshirani: An Introduction to the Bootstrap, 1993, chapter 13.
    """
    import numpy as np

    x = np.asarray(values, dtype=float)
    if len(x) < 2:
        value = statistic(x) if len(x) else math.nan
        return Estimate(value=float(value), low=-math.inf, high=math.inf, level=level, n=len(x))
    rng = np.random.default_rng(seed)
    drawn = np.array([statistic(x[rng.integers(0, len(x), len(x))]) for _ in range(resamples)])
    low, high = np.nanquantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(value=float(statistic(x)), low=float(low), high=float(high), level=level, n=len(x))


def proportion_interval(successes: int, n: int, *, level: float = 0.95) -> Estimate:
    """A share with Wilson's score interval.

    Parameters
    ----------
    successes, n
        Of n independent trials.
    level
        Confidence level.

    References
    ----------
    Wilson, J. Amer. Statist. Assoc. 22, 1927.

    Examples
    --------
    >>> e = proportion_interval(0, 10)
    >>> e.value, round(e.low, 3), round(e.high, 3)
    (0.0, 0.0, 0.278)
    """
    from scipy import stats

    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} trials")
    if n == 0:
        return Estimate(value=math.nan, low=0.0, high=1.0, level=level, n=0)
    z = float(stats.norm.ppf((1 + level) / 2))
    share = successes / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Estimate(value=share, low=max(0.0, middle - half), high=min(1.0, middle + half), level=level, n=n)


def quantile_interval(values: Values, q: float, *, level: float = 0.95) -> Estimate:
    """A quantile with the distribution-free interval between two order statistics.

    Parameters
    ----------
    values
        Independent observations, shape (n,).
    q
        Which quantile, 0 to 1.
    level
        Least confidence level.

    Returns
    -------
    Estimate
        The interval covers at least `level`; an end is infinite where too few observations lie beyond.

    References
    ----------
    David, Nagaraja: Order Statistics, 3rd ed., section 7.1.

    Examples
    --------
    >>> e = quantile_interval(range(1, 101), 0.5)
    >>> e.value, e.low, e.high
    (50.5, 40.0, 61.0)
    """
    import numpy as np
    from scipy import stats

    x = np.sort(np.asarray(values, dtype=float))
    n = x.size
    if n == 0:
        return Estimate(value=math.nan, low=-math.inf, high=math.inf, level=level, n=0)
    # x[k - 1] < quantile with probability P(Binomial(n, q) >= k).
    below = int(stats.binom.ppf((1 - level) / 2, n, q))
    above = int(stats.binom.ppf((1 + level) / 2, n, q)) + 1
    with np.errstate(invalid="ignore"):  # between two infinite observations
        value = float(np.quantile(x, q))
    return Estimate(
        value=value,
        low=float(x[below - 1]) if below >= 1 else -math.inf,
        high=float(x[above - 1]) if above <= n else math.inf,
        level=level,
        n=n,
    )
