"""Estimates with confidence intervals. Each function documents its interval; the default level is 0.95."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ackclock.judge.bound import Place, same

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = Sequence[float] | NDArray[Any]

__all__ = [
    "Comparison",
    "Estimate",
    "bootstrap_interval",
    "bootstrap_mean",
    "compare_pairs",
    "least_for_quantile",
    "mean_interval",
    "paired_difference",
    "proportion_interval",
    "quantile_interval",
    "seeds_needed",
    "stratified_mean",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A number with its confidence interval.

    Parameters
    ----------
    value
        Point estimate.
    low, high
        Ends of the interval; infinite if the data gives no bound.
    level
        Confidence level.
    n
        Number of independent observations.
    parts
        Stream of runs -> influence of each run on the estimate, if the estimator knows it, so that two estimates of the
        same runs can be compared run by run. Streams are independent of one another.
    ties
        Variance added for runs that were all alike but might have differed; the influences do not show it.
    """

    value: float
    low: float
    high: float
    level: float
    n: int
    parts: Mapping[str, NDArray[Any]] = field(default_factory=dict, repr=False, compare=False)
    ties: float = field(default=0.0, repr=False, compare=False)

    def within(self, least: float, most: float) -> Estimate:
        """Limit the estimate of a quantity that is never below `least` or above `most`: the interval is clipped to
        these bounds.

        Examples
        --------
        >>> e = mean_interval([0.9, 1.0, 1.0]).within(0, 1)
        >>> round(e.low, 3), e.high
        (0.823, 1.0)
        """
        if self.low >= least and self.high <= most:
            return self
        return replace(self, low=max(self.low, least), high=min(self.high, most))


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """A comparison of two arms under the same seeds.

    Parameters
    ----------
    first, second
        Means of the arms.
    difference
        Mean of `first - second` over the pairs in which both have a number.
    pairs
        Number of pairs, including undefined ones.
    without
        Number of undefined values (NaN) of the first and of the second arm.
    """

    first: Estimate
    second: Estimate
    difference: Estimate
    pairs: int = 0
    without: tuple[int, int] = (0, 0)

    @property
    def outcome(self) -> str:
        """Outcome according to the difference's interval.

        "first is larger", "second is larger", "equal in every pair" or "no difference shown". The last does not mean
        "equal": a difference within the width of the interval may still exist. If one arm has more undefined values
        than the other, the rest is not a fair sample, which the outcome states: "no number in 3 of 8 of first, 0 of
        second".
        """
        if self.without[0] != self.without[1]:
            return f"no number in {self.without[0]} of {self.pairs} of first, {self.without[1]} of second"
        words = {Place.ABOVE: "first is larger", Place.BELOW: "second is larger"}
        if self.difference.n > 1:
            words[Place.WITHIN] = "equal in every pair"
        return words.get(same(0).places(self.difference.low, self.difference.high), "no difference shown")

    def within(self, least: float, most: float) -> Comparison:
        """Limit the comparison of values that are never below `least` or above `most`. Differences are limited to the distance between the two."""
        return replace(
            self,
            first=self.first.within(least, most),
            second=self.second.within(least, most),
            difference=self.difference.within(least - most, most - least),
        )


def mean_interval(values: Values, *, level: float = 0.95) -> Estimate:
    """Mean with Student's t interval.

    Parameters
    ----------
    values
        Independent observations, shape (n,). If one is infinite or undefined, the interval has no bounds.
    level
        Confidence level.

    Examples
    --------
    >>> e = mean_interval([1.0, 2.0, 3.0])
    >>> round(e.value, 3), round(e.low, 3), round(e.high, 3)
    (2.0, -0.484, 4.484)
    """
    import numpy as np
    from scipy.special import stdtrit

    x = np.asarray(values, dtype=float)
    if x.size < 2:
        return Estimate(
            value=float(x.mean()) if x.size else math.nan, low=-math.inf, high=math.inf, level=level, n=x.size
        )
    with np.errstate(invalid="ignore"):  # infinite values make the mean infinite or undefined
        mean = float(x.mean())
    if not math.isfinite(mean):
        return Estimate(value=mean, low=-math.inf, high=math.inf, level=level, n=x.size)
    half = float(stdtrit(x.size - 1, (1 + level) / 2)) * float(x.std(ddof=1)) / math.sqrt(x.size)
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
    """Interval of any statistic by percentile bootstrap; a pure function of its arguments.

    Parameters
    ----------
    values
        Independent observations, shape (n,) or (n, k): complete rows are drawn, so that pairs stay together.
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


def bootstrap_mean(values: Values, *, level: float = 0.95, resamples: int = 2000, seed: int = 1) -> Estimate:
    """Mean with an expanded percentile bootstrap interval; a pure function of its arguments.

    The interval follows the skew of the sample. Without skew it is as wide as Student's t; a plain percentile interval
    is too narrow for few observations. With fewer than 10 observations the result is Student's t interval.

    Parameters
    ----------
    values
        Independent observations, shape (n,).
    level, resamples, seed
        As for `bootstrap_interval`.

    References
    ----------
    Hesterberg: What Teachers Should Know About the Bootstrap, The American Statistician 69(4), 2015.
    """
    import numpy as np
    from scipy.special import ndtr, stdtrit

    x = np.asarray(values, dtype=float)
    plain = mean_interval(x, level=level)
    n = x.size
    if n < 10 or not math.isfinite(plain.low) or plain.low == plain.high:
        return plain
    rng = np.random.default_rng(seed)
    means = np.empty(resamples)
    # In chunks, to limit the memory for many observations.
    step = max(1, 2_000_000 // n)
    for at in range(0, resamples, step):
        means[at : at + step] = x[rng.integers(0, n, (min(step, resamples - at), n))].mean(axis=1)
    beyond = float(ndtr(-math.sqrt(n / (n - 1)) * stdtrit(n - 1, (1 + level) / 2)))
    low, high = np.quantile(means, [beyond, 1 - beyond])
    return Estimate(value=plain.value, low=float(low), high=float(high), level=level, n=n)


def stratified_mean(strata: Sequence[Values], units: Sequence[Sequence[int]], *, level: float = 0.95) -> Estimate:
    """Mean of stratum means, with Student's t interval over the units observed in them.

    The strata are fixed, so differences between them add no uncertainty. A unit (a seed) observed in several strata may have
    shifted all of them in the same direction, so its deviations are summed before they are squared.

    Parameters
    ----------
    strata
        For each stratum, one observation of each of its units.
    units
        For each stratum, the unit of each observation.
    level
        Confidence level.

    Returns
    -------
    Estimate
        `n` counts units. There are no bounds with fewer than two units, or if a stratum has a single observation.

    References
    ----------
    Cochran: Sampling Techniques, 3rd ed., 1977, chapters 5 (strata) and 9A (units that come in clusters).

    Examples
    --------
    >>> e = stratified_mean([[1.0, 2.0, 3.0], [101.0, 102.0, 103.0]], [[1, 2, 3], [1, 2, 3]])
    >>> round(e.value, 3), round(e.low, 3), round(e.high, 3), e.n
    (52.0, 49.516, 54.484, 3)
    """
    import numpy as np
    from scipy.special import stdtrit

    if len(strata) == 1:
        return bootstrap_mean(strata[0], level=level)
    means = [float(np.mean(x)) if len(x) else math.nan for x in strata]
    value = float(np.mean(means)) if means else math.nan
    n = len({unit for of in units for unit in of})
    if n < 2 or not math.isfinite(value) or any(len(x) < 2 for x in strata):
        return Estimate(value=value, low=-math.inf, high=math.inf, level=level, n=n)
    deviations: dict[int, float] = {}
    for x, of, mean in zip(strata, units, means, strict=True):
        share = math.sqrt(len(x) / (len(x) - 1)) / (
            len(x) * len(strata)
        )  # estimating the mean costs each stratum a degree of freedom
        for one, unit in zip(x, of, strict=True):
            deviations[unit] = deviations.get(unit, 0.0) + (float(one) - mean) * share
    half = float(stdtrit(n - _apart(units), (1 + level) / 2)) * math.sqrt(sum(d * d for d in deviations.values()))
    return Estimate(value=value, low=value - half, high=value + half, level=level, n=n)


def _apart(units: Sequence[Sequence[int]]) -> int:
    """Return the number of groups of strata that share no unit with each other."""
    groups: list[set[int]] = []
    for of in units:
        joined = [group for group in groups if group & set(of)]
        groups = [group for group in groups if not group & set(of)] + [set(of).union(*joined)]
    return len(groups)


def compare_pairs(first: Values, second: Values, *, level: float = 0.95) -> Comparison:
    """Compare two arms under common random numbers.

    Parameters
    ----------
    first, second
        Shape (n,); entry i of both comes from the same seed. Pairs in which either is undefined (NaN) are left out and counted.
    level
        Confidence level.

    Examples
    --------
    >>> compare_pairs([1.0, 2.0, 3.0, 4.0], [0.9, 1.9, 2.8, 3.9]).outcome
    'first is larger'
    >>> compare_pairs([1.0, 2.0, 3.0], [2.0, 1.0, 3.0]).outcome
    'no difference shown'
    """
    import numpy as np

    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if a.shape != b.shape:
        raise ValueError(f"{a.size} and {b.size} values; pairs need equally many")
    without = (int(np.isnan(a).sum()), int(np.isnan(b).sum()))
    both = ~(np.isnan(a) | np.isnan(b))
    a, b = a[both], b[both]
    with np.errstate(invalid="ignore"):
        difference = a - b
    return Comparison(
        first=bootstrap_mean(a, level=level),
        second=bootstrap_mean(b, level=level),
        difference=bootstrap_mean(difference, level=level),
        pairs=both.size,
        without=without,
    )


def seeds_needed(estimate: Estimate, width: float) -> int:
    """Number of observations needed for an interval as narrow as `width`, estimated from the present spread.

    Parameters
    ----------
    estimate
        Estimate of a mean.
    width
        Desired width of the interval, in the unit of the estimate; above zero.

    Returns
    -------
    int
        At least the present number if the interval is wider; the width is inversely proportional to the square root of the number.

    Examples
    --------
    >>> seeds_needed(Estimate(value=10.0, low=9.0, high=11.0, level=0.95, n=8), 1.0)
    32
    """
    if not width > 0:
        raise ValueError(f"width is {width}; it has to be above zero")
    found = estimate.high - estimate.low
    if found <= width:
        return estimate.n
    if not math.isfinite(found):
        return max(2 * estimate.n, 2)
    return max(math.ceil(estimate.n * (found / width) ** 2 - 1e-9), estimate.n + 1)


def proportion_interval(successes: int, n: int, *, level: float = 0.95) -> Estimate:
    """A proportion with Wilson's score interval.

    Parameters
    ----------
    successes, n
        Number of successes, and of independent trials.
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
    from scipy.special import ndtri

    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} trials")
    if n == 0:
        return Estimate(value=math.nan, low=0.0, high=1.0, level=level, n=0)
    z = float(ndtri((1 + level) / 2))
    share = successes / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Estimate(value=share, low=max(0.0, middle - half), high=min(1.0, middle + half), level=level, n=n)


def least_for_quantile(q: float, *, level: float = 0.95) -> int:
    """Smallest number of observations for which `quantile_interval` has two finite ends.

    Parameters
    ----------
    q
        Quantile, above 0 and below 1.
    level
        As for `quantile_interval`.

    Examples
    --------
    >>> least_for_quantile(0.5), least_for_quantile(0.95)
    (6, 73)
    """
    from itertools import count

    if not 0 < q < 1:
        raise ValueError(f"quantile {q}; it has to lie between 0 and 1")
    return next(n for n in count(1) if all(map(math.isfinite, _ends(quantile_interval(range(n), q, level=level)))))


def _ends(estimate: Estimate) -> tuple[float, float]:
    return estimate.low, estimate.high


def quantile_interval(values: Values, q: float, *, level: float = 0.95) -> Estimate:
    """A quantile with the distribution-free interval between two order statistics.

    Parameters
    ----------
    values
        Independent observations, shape (n,).
    q
        Quantile, 0 to 1.
    level
        Minimum confidence level.

    Returns
    -------
    Estimate
        The interval covers at least `level`; an end is infinite if too few observations lie beyond it.

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

    x = np.sort(np.asarray(values, dtype=float))
    n = x.size
    if n == 0:
        return Estimate(value=math.nan, low=-math.inf, high=math.inf, level=level, n=0)
    # x[k - 1] < quantile with probability P(Binomial(n, q) >= k).
    below = _successes((1 - level) / 2, n, q)
    above = _successes((1 + level) / 2, n, q) + 1
    with np.errstate(invalid="ignore"):  # interpolation between two infinite observations
        value = float(np.quantile(x, q))
    return Estimate(
        value=value,
        low=float(x[below - 1]) if below >= 1 else -math.inf,
        high=float(x[above - 1]) if above <= n else math.inf,
        level=level,
        n=n,
    )


def _successes(share: float, n: int, p: float) -> int:
    """Return the quantile of the number of successes in n trials. `scipy.stats` also provides this, but takes most of a second to import."""
    from scipy.special import bdtr, bdtrik

    if p == 0:
        return 0
    k = math.ceil(bdtrik(share, n, p))
    fewer = max(k - 1, 0)  # the inverse may be slightly too large
    return fewer if bdtr(fewer, n, p) >= share else k
