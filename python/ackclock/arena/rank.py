"""Ranks, and how surely they are right: draws are drawn again, with replacement, within their families, the same ones for all entries.

The score of an entry is the mean of the means of its families. Its interval is `judge.intervals.stratified_mean`, over draws. Of two entries the share of the
resamples in which the first is ahead is how probably it is (paired: both meet the same draws).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ackclock.judge.intervals import Estimate, stratified_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

RESAMPLES = 4000
KNOWN = 0.95
"""Probability from which on an order is called known."""

FEW = 5
"""Number of draws of a family below which no order is reported."""

WORST = 0.1
"""Share of the draws whose mean is the worst case."""

Scores = Mapping[str, Sequence[float]]
"""Family -> score of each of its draws."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Position of an entry.

    Parameters
    ----------
    score
        Score with its interval, 0 to 100.
    rank
        Rank from 1; None: it has none.
    ranks
        Bounds of the rank, of those whose order is not known.
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
    units, at = [], 0
    for values in scores.values():
        units.append(range(at, at + len(values)))
        at += len(values)
    found = stratified_mean(list(scores.values()), units)
    return Estimate(value=100 * found.value, low=100 * found.low, high=100 * found.high, level=found.level, n=found.n)


def worst(scores: Scores) -> float:
    """Mean of the lowest tenth of the draws, 0 to 100; of one at least."""
    values = sorted(v for family in scores.values() for v in family)
    few = values[: max(1, round(WORST * len(values)))]
    return 100 * sum(few) / len(few)


def ahead(
    entries: Sequence[Scores], *, left: Sequence[Scores] = (), starves: float = 0.0, seed: int = 1
) -> NDArray[Any]:
    """Return the probability that each entry is ahead of each other, shape (n, n); half if both are equal.

    Parameters
    ----------
    entries
        Scores of each entry, on the same draws.
    left
        Share that each leaves to others, on the draws in which that counts; none: no entry starves another.
    starves
        An entry that leaves less in the mean of all draws of a resample is behind those who leave more, whatever the score.

    Examples
    --------
    >>> better, other = {"alone": [0.5, 0.6, 0.7, 0.8, 0.9]}, {"alone": [0.4, 0.5, 0.6, 0.7, 0.8]}
    >>> ahead([better, other])[0].tolist()
    [0.5, 1.0]
    >>> takes_all = [{"alone": [0.2] * 5}, {"alone": [0.9] * 5}]
    >>> ahead([better, other], left=takes_all, starves=0.5)[0].tolist()
    [0.5, 0.0]
    """
    import numpy as np

    n = len(entries)
    rng = np.random.default_rng(seed)
    if n and min(len(v) for v in entries[0].values()) < FEW:
        return np.full((n, n), 0.5)
    means, others = np.zeros((n, RESAMPLES)), np.zeros((n, RESAMPLES))
    asked = sum(len(values) for values in left[0].values()) if left else 0

    def drawn_again(of: Sequence[Scores], family: str, weights: NDArray[Any]) -> NDArray[Any]:
        values = np.array([entry[family] for entry in of], dtype=float)
        count = values.shape[1]
        middle = values.mean(axis=1, keepdims=True)
        # means of resamples lie closer together than means of new samples would, by this factor
        wider = np.sqrt(count / (count - 1)) if count > 1 else 1.0
        found: NDArray[Any] = middle + wider * (values @ weights.T - middle)
        return found

    for family, values in entries[0].items() if n else ():
        count = len(values)
        weights = rng.multinomial(count, [1 / count] * count, size=RESAMPLES) / count
        means += drawn_again(entries, family, weights)
        if asked and family in left[0]:
            others += drawn_again(left, family, weights) * (count / asked)
    if asked:
        means -= np.where(others < starves, 2.0 * len(entries[0]), 0.0)
    # Sums of the same numbers in another order differ in their last bits.
    apart = means[:, None, :] - means[None, :, :]
    found: NDArray[Any] = (apart > 1e-9).mean(axis=2) + 0.5 * (np.abs(apart) <= 1e-9).mean(axis=2)
    return found


def tau_b(first: Sequence[float], second: Sequence[float]) -> float:
    """Kendall's rank correlation, ties counted (tau-b).

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
