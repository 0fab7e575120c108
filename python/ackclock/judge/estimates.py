"""Ratios and bootstraps beyond those in `ackclock.stats`, for pairs of arms with the same losses and arrivals. Every
interval is a 95 % interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ackclock.judge.intervals import Estimate, mean_interval, quantile_interval

Z95 = 1.959963984540054
"""97.5 % quantile of the normal distribution. Every cell has dozens of independent runs."""

Array = NDArray[np.float64]
Parts = Mapping[str, Array]
"""Stream of runs -> each run's influence. An estimate's error is the sum, over streams, of the mean influence."""


NOTHING = Estimate(value=math.nan, low=math.nan, high=math.nan, level=0.95, n=0)


def _around(value: float, half: float, n: int) -> Estimate:
    return Estimate(value=value, low=value - half, high=value + half, level=0.95, n=n)


def _positive(value: float, half: float, n: int) -> Estimate:
    """Return the interval of a nonnegative quantity: symmetric on a logarithmic scale, so that its ends are nonnegative as well."""
    if value <= 0 or not math.isfinite(half):
        return _around(value, half, n)
    factor = math.exp(min(half / value, 700.0))
    return Estimate(value=value, low=value / factor, high=value * factor, level=0.95, n=n)


ALIKE = 3.84
"""Number of differing runs added to the observed ones if all others are alike. At most this many are expected if 95 %
of samples show none. The value is the square of the normal quantile, as in Wilson's interval.
"""


def spread(influence: Array, alike: NDArray[np.bool_], one: float) -> float:
    """Return the standard deviation of the influences. If runs are alike, a few additional ones are assumed to differ.

    Parameters
    ----------
    influence
        A value per run.
    alike
        Runs in which nothing differs, such as a pair of equal values, or a count of zero.
    one
        Influence of a run that differs, if none does.

    Notes
    -----
    A sample of n identical runs shows no spread, yet about three runs in n may differ. With few differing runs
    Student's t is just as wrong, because it reflects the size of the sum but not how many runs might have contributed
    to it.
    """
    n = influence.size
    apart = influence[~alike]
    each = float((apart**2).mean()) if apart.size else one**2
    share = float(alike.mean())
    return math.sqrt((float((influence**2).sum()) + ALIKE * share * each) / (n - 1))


CARRIES, INDEX, TAIL = 0.5, 1.5, 40
"""Maximum fraction of the variance that one run in fifty may contribute; minimum tail index (Hill); minimum number of
runs at which both are tested. An estimate has no interval if the fraction is above the first and the index is below
the second for every tail cut-off. The variance is infinite if the index is below 2.
"""


def heavy(influence: Array) -> bool:
    """Return whether a few runs dominate the estimate, so that the available runs do not show how large its error may be.

    Notes
    -----
    If retransmissions are lost with a probability of more than a half, each doubles the wait: the mean is infinite, and
    an interval of Student's t contains it in half of the cases.

    Differences on two scales, such as a timeout in one pair in a hundred and a few packet times in the others, look
    similar where one scale ends and the other begins. The index is therefore computed at three depths: the largest
    five, the largest fiftieth, and the square root of the number of runs.
    A tail without a finite variance has a small index at each depth.
    """
    n = influence.size
    if n < TAIL:  # too few for a tail estimate; `spread` widens the interval if most runs are identical
        return False
    size = np.sort(np.abs(influence - np.median(influence)))[::-1]  # the median, because the few distort the mean
    total = float((size**2).sum())
    few = math.ceil(n / 50)
    if total == 0 or float((size[:few] ** 2).sum()) / total <= CARRIES:
        return False
    return all(_tail_index(size, max(k, 5)) < INDEX for k in (5, few, int(math.sqrt(n))))


def _tail_index(size: Array, k: int) -> float:
    """Return Hill's index of the `k` largest of sizes in descending order; infinite if fewer exceed the rest."""
    size = size[size > 0]  # most counts equal the median, and the others differ by one or two
    k = min(k, size.size - 1)
    logs = float(np.log(size[:k] / size[k]).mean()) if k > 0 else 0.0
    return 1 / logs if logs > 0 else math.inf


def _stretched(skew: float, t: float) -> tuple[float, float]:
    """Return the factors, at least 1, by which a skewed mean's interval extends further down and further up than
    Student's t.

    Parameters
    ----------
    skew
        Skewness of the mean (that of a run over the square root of the number of runs).
    t
        Quantile of Student's t.

    References
    ----------
    Hall: On the Removal of Skewness by Transformation, J. R. Statist. Soc. B 54, 1992.
    """
    if abs(skew) < 1e-9:
        return 1.0, 1.0

    def back(y: float) -> float:
        return 3 / skew * (float(np.cbrt(1 + skew * (y - skew / 6))) - 1)

    return max(back(t) / t, 1.0), max(-back(-t) / t, 1.0)


def _known(
    value: float,
    parts: Parts,
    *,
    positive: bool = False,
    alike: NDArray[np.bool_] | None = None,
    one: float = 0.0,
    ties: float = 0.0,
) -> Estimate:
    """Return an estimate with an interval derived from its runs' influences: Student's t, extended by Hall's
    transformation if they are skewed. There is no interval if a few runs dominate the estimate.
    """
    from scipy.special import stdtrit

    n = min(part.size for part in parts.values())
    if n < 2 or not math.isfinite(value):
        return NOTHING
    if alike is not None and any(
        heavy(part[~alike]) for part in parts.values()
    ):  # estimates without `alike` are combined from others that have been tested
        return Estimate(
            value=value, low=0.0 if positive else -math.inf, high=math.inf, level=0.95, n=n, parts=dict(parts)
        )
    seen = sum(float(part.var(ddof=1)) / part.size for part in parts.values())
    if alike is not None:
        ties += max(sum(spread(part, alike, one) ** 2 / part.size for part in parts.values()) - seen, 0.0)
    se = math.sqrt(seen + ties)
    if se == 0:
        return Estimate(value=value, low=value, high=value, level=0.95, n=n, parts=dict(parts))
    skew = sum(float((((part - part.mean()) / se) ** 3).mean()) / part.size**2 for part in parts.values())
    t = float(stdtrit(n - 1, 0.975))
    down, up = _stretched(skew, t)
    low, high = _ends(value, t * se * down, t * se * up, positive=positive)
    return Estimate(value=value, low=low, high=high, level=0.95, n=n, parts=dict(parts), ties=ties)


def _ends(value: float, down: float, up: float, *, positive: bool) -> tuple[float, float]:
    """Return the ends of an interval, on a logarithmic scale if the quantity cannot be negative."""
    if not positive:
        return value - down, value + up
    if value <= 0:
        return 0.0, value + up
    return value / math.exp(min(down / value, 700.0)), value * math.exp(min(up / value, 700.0))


def mean_over_runs(values: Array, *, runs: str = "", one: float | None = None, chance: bool = True) -> Estimate:
    """Mean over independent runs with an interval as in `ratio`, even if all runs are alike.

    Parameters
    ----------
    values
        A value per run.
    runs
        Stream of the runs, if the estimate is compared with others of the same runs.
    one
        Assumed difference of a differing run if all runs are alike; None: the typical size of a value, or 1.
    chance
        Whether anything random is drawn in a run. Otherwise all seeds give the same run, and the mean is exact.
    """
    n = values.size
    if n < 2:
        return mean_interval(values)
    value = float(values.mean())
    influence = values - value
    if not chance:
        return _known(value, {runs: influence})
    same, count = np.unique(values, return_counts=True)
    mode = same[int(count.argmax())] if count.max() > 1 else math.nan
    size = one if one is not None else _typical(values) or 1.0
    return _known(value, {runs: influence}, alike=values == mode, one=size)


def ratio(numerator: Array, denominator: Array, *, runs: str = "") -> Estimate:
    """Ratio of two sums over the same independent runs (delta method on the logarithm, Student's t).

    If a value is negative the ratio may be negative as well, and its interval is symmetric.

    Parameters
    ----------
    numerator, denominator
        A value per run.
    runs
        Stream of the runs: estimates of one stream are compared run by run (`minus`, `quotient`, `mean_of`).

    Notes
    -----
    With one pair of values per run this is the ratio of two paired means; with counts per run it is a fraction of
    events that are not independent within a run.
    """
    n = numerator.size
    total = float(denominator.sum())
    if n < 2 or total == 0:
        return NOTHING
    r = float(numerator.sum()) / total
    scale = n / total
    influence = (numerator - r * denominator) * scale
    alike = (numerator == denominator) | (influence == 0)
    one = max(_typical(numerator), _typical(denominator)) * scale
    positive = bool((numerator >= 0).all() and (denominator >= 0).all())
    return _known(r, {runs: influence}, positive=positive, alike=alike, one=one)


def _typical(values: Array) -> float:
    """Return the typical size of a value: the root mean square of the nonzero ones."""
    own = values[values != 0]
    return math.sqrt(float((own**2).mean())) if own.size else 0.0


def ratios_apart(first: tuple[Array, Array], second: tuple[Array, Array]) -> Estimate:
    """Difference between two ratios of sums over paired runs (delta method, Student's t). Variation common to both
    cancels out.

    Parameters
    ----------
    first, second
        Numerators and denominators, a value per run; entry i of all four comes from the same seed.
    """
    n = first[0].size
    if n < 2 or not (first[1].sum() and second[1].sum()) or second[0].size != n:
        return NOTHING
    values, influences = [], []
    for numerator, denominator in (first, second):
        r = float(numerator.sum() / denominator.sum())
        values.append(r)
        influences.append((numerator - r * denominator) / denominator.mean())
    influence = influences[0] - influences[1]
    alike = (first[0] == second[0]) & (first[1] == second[1])
    one = float(max(1.0 / first[1].mean(), 1.0 / second[1].mean()))
    return _known(values[0] - values[1], {"": influence}, alike=alike, one=one)


def scaled(e: Estimate, factor: float, shift: float = 0.0) -> Estimate:
    """Return `shift + factor * e`."""
    low, high = sorted((shift + factor * e.low, shift + factor * e.high))
    parts = {name: factor * part for name, part in e.parts.items()}
    ties = factor**2 * e.ties
    return Estimate(value=shift + factor * e.value, low=low, high=high, level=e.level, n=e.n, parts=parts, ties=ties)


def gain(base: Array, other: Array, *, runs: str = "") -> Estimate:
    """Reduction from `base` to `other`, in percent of `base`; paired."""
    return scaled(ratio(other, base, runs=runs), -100, 100)


def percent_more(x: Array, base: Array, *, runs: str = "") -> Estimate:
    """Excess of the sum of `x` over that of `base`, in percent of `base`; paired."""
    return scaled(ratio(x, base, runs=runs), 100, -100)


def remaining(with_it: tuple[Array, Array], without: tuple[Array, Array], *, joint: bool = True) -> Estimate:
    """Fraction of an effect that remains when a cause is removed, in percent of the effect; bootstrap over runs.

    Parameters
    ----------
    with_it, without
        Values of the two arms, one per run, with and without the cause. The effect is the relative difference between
        the sum of the first arm and that of the second.
    joint
        Whether entry i of all four comes from the same seed.

    Notes
    -----
    Resamples without an effect have no such fraction. If they are half of all, there is no estimate.
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
    """Compute `remaining` for runs that are paired within each state but not between the two states."""
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


def _together(value: float, of: Sequence[tuple[float, Estimate]], *, positive: bool = False) -> Estimate | None:
    """Return an estimate combined from others, each with a weight for its error, run by run if they share streams;
    None if any has unknown runs.
    """
    if any(not e.parts or not math.isfinite(e.high - e.low) for _, e in of):
        return None  # an estimate without known runs, or without an interval
    parts: dict[str, Array] = {}
    for weight, e in of:
        for name, part in e.parts.items():
            if name in parts and parts[name].size != part.size:
                return None
            own = weight * part
            # unnamed streams are not shared
            key = name or f"#{len(parts)}"
            parts[key] = parts[key] + own if key in parts else own
    return _known(value, parts, positive=positive, ties=sum(weight**2 * e.ties for weight, e in of))


def minus(a: Estimate, b: Estimate) -> Estimate:
    """Difference between two estimates, run by run if both know and share their runs, otherwise as if they were independent."""
    found = _together(a.value - b.value, ((1.0, a), (-1.0, b)))
    if found is not None:
        return found
    half = float(np.hypot((a.high - a.low) / 2, (b.high - b.low) / 2))
    return _around(a.value - b.value, half, min(a.n, b.n))


def mean_of(each: Sequence[Estimate]) -> Estimate:
    """Mean of estimates, run by run if they share runs, otherwise as if they were independent."""
    value = float(np.mean([e.value for e in each]))
    found = _together(value, [(1 / len(each), e) for e in each])
    if found is not None:
        return found
    half = float(np.sqrt(sum(((e.high - e.low) / 2) ** 2 for e in each))) / len(each)
    return _around(value, half, min(e.n for e in each))


def quotient(a: Estimate, b: Estimate) -> Estimate:
    """Ratio of two estimates of positive quantities (delta method on the logarithm), run by run if they share runs, otherwise as if they were independent."""
    if a.n == 0 or b.n == 0 or b.value == 0:
        return NOTHING
    value = a.value / b.value
    found = _together(value, ((1 / b.value, a), (-value / b.value, b)), positive=value > 0)
    if found is not None:
        return found
    half = value * float(np.hypot((a.high - a.low) / 2 / a.value, (b.high - b.low) / 2 / b.value))
    return _positive(value, half, min(a.n, b.n))


def bootstrap(
    statistic: Callable[..., Array],
    *samples: Array,
    draws: int = 1000,
    joint: bool = True,
) -> Estimate:
    """Percentile bootstrap for a statistic without a simple formula.

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
    """Median over runs of the ratio of two times; no estimate if a run ended before reaching one of them (infinite).

    Notes
    -----
    For a time that was not reached only a lower bound is known, the length of the run. A ratio with that bound would
    measure the length.
    """
    if not (np.isfinite(numerator).all() and np.isfinite(denominator).all()):
        return NOTHING
    return median(numerator / denominator)
