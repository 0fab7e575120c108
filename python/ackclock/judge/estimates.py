"""Ratios and bootstraps that `ackclock.stats` does not have, for pairs of arms that met the same losses and arrivals.
Every interval is at 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ackclock.judge.intervals import Estimate, quantile_interval

Z95 = 1.959963984540054
"""97.5 % quantile of the normal distribution; every cell has dozens of independent runs."""

Array = NDArray[np.float64]


NOTHING = Estimate(value=math.nan, low=math.nan, high=math.nan, level=0.95, n=0)


def _around(value: float, half: float, n: int) -> Estimate:
    return Estimate(value=value, low=value - half, high=value + half, level=0.95, n=n)


def _positive(value: float, half: float, n: int) -> Estimate:
    """The interval of a quantity that cannot be negative: symmetric on the scale of logarithms, so that it cannot be either."""
    if value <= 0 or not math.isfinite(half):
        return _around(value, half, n)
    factor = math.exp(min(half / value, 700.0))
    return Estimate(value=value, low=value / factor, high=value * factor, level=0.95, n=n)


def ratio(numerator: Array, denominator: Array) -> Estimate:
    """Ratio of two sums over the same independent runs (delta method on the logarithm, Student's t).

    Where one of the values is negative, so may the ratio be, and its interval is symmetric.

    Notes
    -----
    With one pair of values per run this is the ratio of two paired means; with counts per run it is a share among
    events that are not independent within a run.
    """
    from scipy.special import stdtrit

    n = numerator.size
    total = float(denominator.sum())
    if n < 2 or total == 0:
        return NOTHING
    r = float(numerator.sum()) / total
    residual = numerator - r * denominator
    se = float(np.sqrt((residual**2).sum() * n / (n - 1))) / total
    around = _positive if bool((numerator >= 0).all() and (denominator >= 0).all()) else _around
    return around(r, float(stdtrit(n - 1, 0.975)) * se, n)


def ratios_apart(first: tuple[Array, Array], second: tuple[Array, Array]) -> Estimate:
    """Difference of two ratios of sums whose runs are paired (delta method, Student's t): what the runs have in common cancels.

    Parameters
    ----------
    first, second
        Numerators and denominators, a value per run; entry i of all four comes from the same seed.
    """
    from scipy.special import stdtrit

    n = first[0].size
    if n < 2 or not (first[1].sum() and second[1].sum()) or second[0].size != n:
        return NOTHING
    values, influences = [], []
    for numerator, denominator in (first, second):
        r = float(numerator.sum() / denominator.sum())
        values.append(r)
        influences.append((numerator - r * denominator) / denominator.mean())
    se = float((influences[0] - influences[1]).std(ddof=1)) / math.sqrt(n)
    return _around(values[0] - values[1], float(stdtrit(n - 1, 0.975)) * se, n)


def gain(base: Array, other: Array) -> Estimate:
    """How much less `other` is than `base`, in percent of `base`; paired."""
    r = ratio(other, base)
    return Estimate(value=100 * (1 - r.value), low=100 * (1 - r.high), high=100 * (1 - r.low), level=r.level, n=r.n)


def percent_more(x: Array, base: Array) -> Estimate:
    """How much more the sum of `x` is than that of `base`, in percent of `base`; paired."""
    r = ratio(x, base)
    return Estimate(value=100 * (r.value - 1), low=100 * (r.low - 1), high=100 * (r.high - 1), level=r.level, n=r.n)


def remaining(with_it: tuple[Array, Array], without: tuple[Array, Array], *, joint: bool = True) -> Estimate:
    """How much of an effect is left when a cause is taken away, in percent of the effect; bootstrap over runs.

    Parameters
    ----------
    with_it, without
        Values of the one arm and of the other, a value per run, as things are and without the cause. The effect is by how much the sum
        of the first differs from that of the second, relative to the second.
    joint
        Whether entry i of all four comes from the same seed.

    Notes
    -----
    Resamples in which there is no effect to begin with have no share of it; if half of them are such, there is no estimate.
    """

    def of(x: Array, y: Array) -> Array:
        return np.asarray(x.sum(axis=1) / y.sum(axis=1) - 1)

    def share(x: Array, y: Array, x_without: Array, y_without: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(100 * of(x_without, y_without) / of(x, y))

    if joint:
        return bootstrap(share, *with_it, *without)
    return _remaining_apart(of, with_it, without)


def _remaining_apart(
    of: Callable[[Array, Array], Array], with_it: tuple[Array, Array], without: tuple[Array, Array], draws: int = 1000
) -> Estimate:
    """As `remaining`, for runs that are paired within an arm and not between the two states."""
    rng = np.random.Generator(np.random.PCG64(20110601))
    n, m = with_it[0].size, without[0].size
    if min(n, m) < 2:
        return NOTHING
    first, second = (rng.integers(0, size, size=(draws, size)) for size in (n, m))
    with np.errstate(divide="ignore", invalid="ignore"):
        values = 100 * of(*(x[second] for x in without)) / of(*(x[first] for x in with_it))
        point = float((100 * of(*(x[np.newaxis] for x in without)) / of(*(x[np.newaxis] for x in with_it)))[0])
    values = values[np.isfinite(values)]
    if values.size < draws // 2 or not math.isfinite(point):
        return NOTHING
    low, high = np.quantile(values, [0.025, 0.975])
    return Estimate(value=point, low=float(low), high=float(high), level=0.95, n=min(n, m))


def minus(a: Estimate, b: Estimate) -> Estimate:
    """Difference of two independent estimates."""
    half = float(np.hypot((a.high - a.low) / 2, (b.high - b.low) / 2))
    return _around(a.value - b.value, half, min(a.n, b.n))


def mean_of(each: Sequence[Estimate]) -> Estimate:
    """Mean of independent estimates."""
    half = float(np.sqrt(sum(((e.high - e.low) / 2) ** 2 for e in each))) / len(each)
    return _around(float(np.mean([e.value for e in each])), half, min(e.n for e in each))


def quotient(a: Estimate, b: Estimate) -> Estimate:
    """Ratio of two independent estimates of positive quantities (delta method on the logarithm)."""
    if a.n == 0 or b.n == 0 or b.value == 0:
        return NOTHING
    value = a.value / b.value
    half = value * float(np.hypot((a.high - a.low) / 2 / a.value, (b.high - b.low) / 2 / b.value))
    return _positive(value, half, min(a.n, b.n))


def bootstrap(
    statistic: Callable[..., Array],
    *samples: Array,
    draws: int = 1000,
    joint: bool = True,
) -> Estimate:
    """Percentile bootstrap of a statistic that has no simple formula.

    Parameters
    ----------
    statistic
        Given one matrix per sample (one resample per row), returns one value per row.
    *samples
        Values of independent runs.
    draws
        Number of resamples.
    joint
        Resample all samples with the same indices: they are paired, run by run.
    """
    rng = np.random.Generator(np.random.PCG64(20110601))
    n = samples[0].size
    if n < 2:
        return NOTHING
    matrices = []
    index = rng.integers(0, n, size=(draws, n))
    for sample in samples:
        if not joint:
            index = rng.integers(0, sample.size, size=(draws, sample.size))
        matrices.append(sample[index])
    values = statistic(*matrices)
    values = values[np.isfinite(values)]
    point = float(statistic(*(s[np.newaxis, :] for s in samples))[0])
    if values.size < draws // 2:
        return NOTHING
    low, high = np.quantile(values, [0.025, 0.975])
    return Estimate(value=point, low=float(low), high=float(high), level=0.95, n=n)


def median(values: Array) -> Estimate:
    """Median over independent runs, with the distribution-free interval between order statistics (six runs or more)."""
    return quantile_interval(values, 0.5)


def ratio_of_times(numerator: Array, denominator: Array) -> Estimate:
    """Median over runs of one time over another; nothing if a run ended before one of them was reached (infinite).

    Notes
    -----
    Of a time that was not reached only a lower bound is known: the length of the run. A ratio with it would measure that length.
    """
    if not (np.isfinite(numerator).all() and np.isfinite(denominator).all()):
        return NOTHING
    return median(numerator / denominator)
