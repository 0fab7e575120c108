"""Ratios and bootstraps that `ackclock.stats` does not have, for pairs of arms that met the same losses and arrivals.
Every interval is at 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ackclock.judge.intervals import Estimate, mean_interval, quantile_interval

Z95 = 1.959963984540054
"""97.5 % quantile of the normal distribution; every cell has dozens of independent runs."""

Array = NDArray[np.float64]
Parts = Mapping[str, Array]
"""Stream of runs -> influence of each run: the error of an estimate is the sum over streams of the mean of these."""


NOTHING = Estimate(value=math.nan, low=math.nan, high=math.nan, level=0.95, n=0)


def _around(value: float, half: float, n: int) -> Estimate:
    return Estimate(value=value, low=value - half, high=value + half, level=0.95, n=n)


def _positive(value: float, half: float, n: int) -> Estimate:
    """The interval of a quantity that cannot be negative: symmetric on the scale of logarithms, so that it cannot be either."""
    if value <= 0 or not math.isfinite(half):
        return _around(value, half, n)
    factor = math.exp(min(half / value, 700.0))
    return Estimate(value=value, low=value / factor, high=value * factor, level=0.95, n=n)


ALIKE = 3.84
"""Number of differing runs added to the observed ones when all others are alike: at most this many are expected where
95 % of samples show none. It is the square of the normal quantile, as in Wilson's interval."""


def spread(influence: Array, alike: NDArray[np.bool_], one: float) -> float:
    """Standard deviation of the influences; where runs are alike, as if a few more had differed.

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
    Of n runs that are all alike no spread is seen, and yet one of three runs in n may differ. With few that differ Student's t is as wrong:
    it knows the size of the sum, and not how many might have made it.
    """
    n = influence.size
    apart = influence[~alike]
    each = float((apart**2).mean()) if apart.size else one**2
    share = float(alike.mean())
    return math.sqrt((float((influence**2).sum()) + ALIKE * share * each) / (n - 1))


CARRIES, INDEX, TAIL = 0.5, 1.5, 40
"""Share of the variance that one run in fifty may carry, tail index (Hill), and the fewest runs for which both are looked at: with the first above and
the second below, however deep the tail is taken, there is no interval. An index below 2 is a variance that has no finite value."""


def heavy(influence: Array) -> bool:
    """Whether a few runs carry the estimate, so that the runs at hand do not tell how far it may be off.

    Notes
    -----
    Exponential backoffs that outlast a loss each double the wait with a probability of more than a half: the mean has no finite value, and an
    interval of Student's t covers it in half of the cases.

    Differences of two scales, such as of a timeout in one pair of a hundred beside some packets' time in the others, look alike where the one ends
    and the other begins. So the index is taken at three depths, over the largest five, the largest fiftieth, and as many as the root of their number:
    a tail without a finite variance has it at each.
    """
    n = influence.size
    if n < TAIL:  # too few for a tail estimate; if most runs are equal, `spread` widens instead
        return False
    size = np.sort(np.abs(influence - np.median(influence)))[::-1]  # the mean is where the few have drawn it
    total = float((size**2).sum())
    few = math.ceil(n / 50)
    if total == 0 or float((size[:few] ** 2).sum()) / total <= CARRIES:
        return False
    return all(_tail_index(size, max(k, 5)) < INDEX for k in (5, few, int(math.sqrt(n))))


def _tail_index(size: Array, k: int) -> float:
    """Return Hill's index of the `k` largest of sizes in falling order; infinite if fewer lie above the rest."""
    size = size[size > 0]  # counts differ from their median in a few runs, by one or two
    k = min(k, size.size - 1)
    logs = float(np.log(size[:k] / size[k]).mean()) if k > 0 else 0.0
    return 1 / logs if logs > 0 else math.inf


def _stretched(skew: float, t: float) -> tuple[float, float]:
    """How many times as far down and up as Student's t the interval of a skewed mean reaches; 1 or more.

    Parameters
    ----------
    skew
        Of the mean (the skewness of a run over the square root of their number).
    t
        Quantile.

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
    """An estimate with the interval that follows from the influences of its runs: Student's t, extended by Hall's
    transformation if they are skewed, and no interval if a few runs carry the estimate.
    """
    from scipy.special import stdtrit

    n = min(part.size for part in parts.values())
    if n < 2 or not math.isfinite(value):
        return NOTHING
    if alike is not None and any(
        heavy(part[~alike]) for part in parts.values()
    ):  # made from others, which were examined
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
    """Return the ends of an interval; on a logarithmic scale if the quantity cannot be negative."""
    if not positive:
        return value - down, value + up
    if value <= 0:
        return 0.0, value + up
    return value / math.exp(min(down / value, 700.0)), value * math.exp(min(up / value, 700.0))


def mean_over_runs(values: Array, *, runs: str = "", one: float | None = None, chance: bool = True) -> Estimate:
    """Mean over independent runs, as `ratio` has it: with an interval even where all runs are alike.

    Parameters
    ----------
    values
        A value per run.
    runs
        Stream of the runs, if the estimate is compared with others of the same runs.
    one
        How much a run that differs would differ, if none does; None: as much as a value is large, or 1.
    chance
        Whether anything is drawn in a run. Where nothing is, the runs of all seeds are one run, and the mean is exact.
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

    Where one of the values is negative, so may the ratio be, and its interval is symmetric.

    Parameters
    ----------
    numerator, denominator
        A value per run.
    runs
        Stream of the runs: estimates of one stream are compared run by run (`minus`, `quotient`, `mean_of`).

    Notes
    -----
    With one pair of values per run this is the ratio of two paired means; with counts per run it is a share among
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
    """Size of a value: the root of the mean square of those that are not zero."""
    own = values[values != 0]
    return math.sqrt(float((own**2).mean())) if own.size else 0.0


def ratios_apart(first: tuple[Array, Array], second: tuple[Array, Array]) -> Estimate:
    """Difference of two ratios of sums whose runs are paired (delta method, Student's t): what the runs have in common cancels.

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
    """`shift + factor * e`."""
    low, high = sorted((shift + factor * e.low, shift + factor * e.high))
    parts = {name: factor * part for name, part in e.parts.items()}
    ties = factor**2 * e.ties
    return Estimate(value=shift + factor * e.value, low=low, high=high, level=e.level, n=e.n, parts=parts, ties=ties)


def gain(base: Array, other: Array, *, runs: str = "") -> Estimate:
    """Return by how much `other` is smaller than `base`, in percent of `base`; paired."""
    return scaled(ratio(other, base, runs=runs), -100, 100)


def percent_more(x: Array, base: Array, *, runs: str = "") -> Estimate:
    """Return by how much the sum of `x` exceeds that of `base`, in percent of `base`; paired."""
    return scaled(ratio(x, base, runs=runs), 100, -100)


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
    """See `remaining`, for runs paired within an arm and not between the two states."""
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
    """An estimate combined from others, each with the weight of its error, run by run if they share streams; None if
    the runs of one are unknown.
    """
    if any(not e.parts or not math.isfinite(e.high - e.low) for _, e in of):
        return None  # an estimate without known runs, or without an interval
    parts: dict[str, Array] = {}
    for weight, e in of:
        for name, part in e.parts.items():
            if name in parts and parts[name].size != part.size:
                return None
            own = weight * part
            # a stream without a name is one of its own
            key = name or f"#{len(parts)}"
            parts[key] = parts[key] + own if key in parts else own
    return _known(value, parts, positive=positive, ties=sum(weight**2 * e.ties for weight, e in of))


def minus(a: Estimate, b: Estimate) -> Estimate:
    """Difference of two estimates: run by run if both know their runs and share them, otherwise as independent ones."""
    found = _together(a.value - b.value, ((1.0, a), (-1.0, b)))
    if found is not None:
        return found
    half = float(np.hypot((a.high - a.low) / 2, (b.high - b.low) / 2))
    return _around(a.value - b.value, half, min(a.n, b.n))


def mean_of(each: Sequence[Estimate]) -> Estimate:
    """Mean of estimates: run by run if they share runs, otherwise as independent ones."""
    value = float(np.mean([e.value for e in each]))
    found = _together(value, [(1 / len(each), e) for e in each])
    if found is not None:
        return found
    half = float(np.sqrt(sum(((e.high - e.low) / 2) ** 2 for e in each))) / len(each)
    return _around(value, half, min(e.n for e in each))


def quotient(a: Estimate, b: Estimate) -> Estimate:
    """Ratio of two estimates of positive quantities (delta method on the logarithm): run by run where they share runs, else as of independent ones."""
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
