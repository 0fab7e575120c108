"""Ranks and their certainty: draws are resampled with replacement within their families, identically for all entries.
An entry's score is the mean of its family means, with a Student's interval over draws, family by family. The
probability that one entry is ahead of another is the fraction of resamples in which it is (paired, because both
entries face the same draws).

Whether an entry starves others is also an estimate: their share lies between 0 and 1, often near both ends, and a few
draws may miss one end by chance. Its bounds assume nothing beyond this range: draws get random
weights, together with an additional draw that is 0 for the lower bound and 1 for the upper one (`bounds`). The
probability of an order is computed with the first entry at its lower bound and the second at its upper bound. If the
opposite bounds reverse the order, it is undetermined and counts as one half.

References
----------
Gaffke: Three Test Statistics for a Nonparametric One-Sided Hypothesis on the Mean of a Nonnegative Variable, Mathematical Methods of Statistics 14(4), 2005.
Learned-Miller, Thomas: A New Confidence Bound for the Mean of a Bounded Random Variable, arXiv:1905.06208, 2020.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ackclock.judge.intervals import Estimate, bootstrap_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

RESAMPLES = 4000
KNOWN = 0.95
"""Probability from which an order counts as known."""

FEW = 5
"""Number of draws per family below which no order is reported."""

WORST = 0.1
"""Fraction of the draws, the lowest ones, averaged for the worst case."""

LEVEL = 0.95
"""Confidence level of intervals."""

Scores = Mapping[str, Sequence[float]]
"""Family -> score on each draw."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """An entry's position in the ranking.

    Parameters
    ----------
    score
        Score with its interval, 0 to 100.
    rank
        Rank from 1; None if the entry has no rank.
    ranks
        Bounds of the rank among entries whose order is not known.
    worst
        Mean of the lowest tenth of its draws, 0 to 100.
    """

    score: Estimate
    rank: int | None
    ranks: tuple[int, int]
    worst: float


def estimate(scores: Scores) -> Estimate:
    """Return the score with its interval, 0 to 100.

    Examples
    --------
    >>> e = estimate({"alone": [0.5, 0.7], "beside": [0.2, 0.4]})
    >>> round(e.value, 1), e.n
    (45.0, 4)
    """
    import numpy as np
    from scipy.special import stdtrit

    families = [np.asarray(values, dtype=float) for values in scores.values()]
    n = sum(x.size for x in families)
    value = 100 * float(np.mean([x.mean() for x in families]))
    if len(families) == 1:
        alone = bootstrap_mean(families[0], level=LEVEL)
        return Estimate(value=value, low=100 * alone.low, high=100 * alone.high, level=LEVEL, n=n)
    if any(x.size < 2 for x in families):
        return Estimate(value=value, low=-math.inf, high=math.inf, level=LEVEL, n=n)
    parts = [float(x.var(ddof=1)) / x.size / len(families) ** 2 for x in families]
    variance = sum(parts)
    if not variance:
        return Estimate(value=value, low=value, high=value, level=LEVEL, n=n)
    freedom = variance**2 / sum(part**2 / (x.size - 1) for part, x in zip(parts, families, strict=True))
    half = 100 * float(stdtrit(freedom, (1 + LEVEL) / 2)) * math.sqrt(variance)
    return Estimate(value=value, low=value - half, high=value + half, level=LEVEL, n=n)


def worst(scores: Scores) -> float:
    """Mean of the lowest tenth of the draws (at least one), 0 to 100. Families have equal weights, however many draws
    they have.

    Examples
    --------
    >>> worst({"alone": [0.5, 0.7], "beside": [0.1, 0.2, 0.3, 0.4]})
    10.0
    """
    weighted = sorted((value, 1 / len(values)) for values in scores.values() for value in values)
    draws = max(len(values) for values in scores.values())
    left = whole = max(WORST * len(scores), 1 / draws)
    found = 0.0
    for value, weight in weighted:
        taken = min(weight, left)
        found += taken * value
        left -= taken
        if left <= 1e-12:
            break
    return 100 * found / whole


def bounds(left: Sequence[Sequence[float]], *, seed: int = 1) -> tuple[NDArray[Any], NDArray[Any]]:
    """Resampled means of others' share beside each entry, shape (n, resamples): lowest and highest values.

    Quantiles of the first are lower bounds of the mean, quantiles of the second upper bounds, for every distribution
    on [0, 1]. The weights of the draws are uniform on the simplex; an additional draw is 0 for the first and 1 for
    the second.

    Parameters
    ----------
    left
        Share that each entry leaves to others on the same draws, 0 to 1.

    Examples
    --------
    >>> least, most = bounds([[1.0] * 24])
    >>> bool((least > 0.5).all()), bool((most == 1.0).all())
    (True, True)
    """
    import numpy as np

    values = np.array(left, dtype=float)
    weights = np.random.default_rng(seed).dirichlet(np.ones(values.shape[1] + 1), size=RESAMPLES)
    least = values @ weights[:, :-1].T
    return least, least + weights[:, -1]


def share(values: Sequence[float]) -> Estimate:
    """Return others' mean share beside an entry, with its interval.

    Parameters
    ----------
    values
        Share in each draw, 0 to 1.

    Examples
    --------
    >>> e = share([1.0, 0.1, 1.0, 1.0, 0.7, 1.0])
    >>> round(e.value, 2), round(e.low, 1), round(e.high, 1)
    (0.8, 0.4, 1.0)
    """
    import numpy as np

    least, most = bounds([values])
    beyond = (1 - LEVEL) / 2
    mean = float(np.mean(values))
    low, high = float(np.quantile(least, beyond)), float(np.quantile(most, 1 - beyond))
    return Estimate(value=mean, low=min(low, mean), high=max(min(high, 1.0), mean), level=LEVEL, n=len(values))


def ahead(
    entries: Sequence[Scores], *, left: Sequence[Scores] = (), starves: float = 0.0, seed: int = 1
) -> NDArray[Any]:
    """Return the probability that each entry is ahead of every other one, shape (n, n); 1/2 if equal or undetermined.

    Parameters
    ----------
    entries
        Scores of each entry, on the same draws.
    left
        Share that each entry leaves to others, on the draws for which that term counts; empty if no entry can starve
        another.
    starves
        Mean share below which an entry ranks behind all entries that leave more, whatever its score.

    Examples
    --------
    >>> better, other = {"alone": [0.5, 0.6, 0.7, 0.8, 0.9]}, {"alone": [0.4, 0.5, 0.6, 0.7, 0.8]}
    >>> ahead([better, other])[0].tolist()
    [0.5, 1.0]
    >>> takes_all = [{"alone": [0.1] * 24}, {"alone": [0.9] * 24}]
    >>> ahead([better, other], left=takes_all, starves=0.5)[0].tolist()
    [0.5, 0.0]
    >>> takes_half = [{"alone": [0.5] * 24}, {"alone": [0.9] * 24}]
    >>> ahead([better, other], left=takes_half, starves=0.5)[0].tolist()
    [0.5, 0.5]
    """
    import numpy as np

    n = len(entries)
    if not n or min(len(v) for v in entries[0].values()) < FEW:
        return np.full((n, n), 0.5)
    rng = np.random.default_rng(seed)
    means = np.zeros((n, RESAMPLES))
    for family, values in entries[0].items():
        count = len(values)
        weights = rng.multinomial(count, [1 / count] * count, size=RESAMPLES) / count
        drawn = np.array([entry[family] for entry in entries], dtype=float)
        middle = drawn.mean(axis=1, keepdims=True)
        # scales the deviations of resampled means, which vary less than means of new samples would
        means += middle + np.sqrt(count / (count - 1)) * (drawn @ weights.T - middle)
    if not left or not left[0]:
        return _share_ahead(means, means)
    behind = 2.0 * len(entries[0])
    pooled = [[value for family in entry for value in entry[family]] for entry in left]
    low, high = (means - np.where(found < starves, behind, 0.0) for found in bounds(pooled, seed=seed + 1))
    least = _share_ahead(low, high)
    most = 1 - least.T
    found: NDArray[Any] = np.where(least > 0.5, least, np.where(most < 0.5, most, 0.5))
    return found


def _share_ahead(of: NDArray[Any], others: NDArray[Any]) -> NDArray[Any]:
    """Fraction of resamples in which each entry is above every other one, shape (n, n). A tolerance absorbs rounding:
    sums of the same numbers in a different order differ in their last bits.
    """
    import numpy as np

    apart = of[:, None, :] - others[None, :, :]
    found: NDArray[Any] = (apart > 1e-9).mean(axis=2) + 0.5 * (np.abs(apart) <= 1e-9).mean(axis=2)
    return found


def tau_b(first: Sequence[float], second: Sequence[float]) -> float:
    """Kendall's rank correlation with ties (tau-b).

    Examples
    --------
    >>> tau_b([1.0, 2.0, 3.0], [1.0, 3.0, 2.0])
    0.3333333333333333
    """
    from itertools import combinations

    agree = one = other = 0
    for (a, b), (c, d) in combinations(zip(first, second, strict=True), 2):
        x, y = (a > c) - (a < c), (b > d) - (b < d)
        agree += x * y
        one += x != 0
        other += y != 0
    return float(agree / (one * other) ** 0.5) if one and other else 0.0
