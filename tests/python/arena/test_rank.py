"""Tests for the confidence in an order of entries."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from ackclock.arena import rank
from ackclock.judge.intervals import Estimate, mean_interval


def scores(mean: float, seed: int, n: int = 20) -> dict[str, list[float]]:
    chance = random.Random(seed)
    return {family: [mean + 0.1 * chance.gauss(0, 1) for _ in range(n)] for family in ("a", "b")}


def test_equal_ones_are_even_and_far_ones_are_known() -> None:
    one = scores(0.5, 1)
    ahead = rank.ahead([one, one, scores(0.9, 2)])
    assert ahead[0][1] == ahead[1][0] == 0.5
    assert ahead[2][0] == 1.0
    assert ahead[0][2] == 0.0


def test_who_starves_others_is_behind_whatever_the_score() -> None:
    """An entry that leaves others half of the capacity on average may or may not starve them, so its rank stays undecided."""
    takes, leaves, even = scores(0.2, 3), scores(0.8, 4), {family: [0.4, 0.6] * 10 for family in ("a", "b")}
    ahead = rank.ahead([scores(0.5, 1)] + [scores(0.9, 2)] * 3, left=[leaves, takes, even, leaves], starves=0.5)
    assert ahead[0][1] == 1.0
    assert ahead[0][2] == 0.5
    assert ahead[0][3] == 0.0
    assert (ahead + ahead.T == 1.0).all()


def test_an_order_that_starving_does_not_change_is_known() -> None:
    """The second entry may starve others, but it is behind on score alone."""
    leaves, even = scores(0.8, 4), {family: [0.4, 0.6] * 10 for family in ("a", "b")}
    assert rank.ahead([scores(0.9, 1), scores(0.5, 2)], left=[leaves, even], starves=0.5)[0][1] == 1.0


def drawn(chance: random.Random, often: float, n: int) -> list[float]:
    """Fractions of the capacity that others get, near 0 or 1, as with a controller that starves them on some paths."""
    return [0.05 if chance.random() < often else 1.0 for _ in range(n)]


@pytest.mark.parametrize("n", [6, 24])
def test_what_is_left_lies_in_its_interval(n: int) -> None:
    """Exact: for every distribution of fractions near 0 and 1, at most 5 % of the samples have an interval that misses
    the mean. For the first, with samples of six, Student's interval misses it in two cases out of three.
    """
    found = [rank.share([0.05] * k + [1.0] * (n - k)) for k in range(n + 1)]
    assert all(0 <= e.low <= e.value <= e.high <= 1 for e in found)

    def missed(often: float, intervals: Sequence[Estimate]) -> float:
        mean = 1 - 0.95 * often
        outside = (k for k, e in enumerate(intervals) if not e.low <= mean <= e.high)
        return sum(math.comb(n, k) * often**k * (1 - often) ** (n - k) for k in outside)

    assert max(missed(often / 100, found) for often in range(1, 100)) <= 0.05
    student = [mean_interval([0.05] * k + [1.0] * (n - k)) for k in range(n + 1)]
    assert missed(0.05, student) > 0.25


def test_who_starves_others_is_seldom_called_ahead() -> None:
    """Others get a mean fraction of 0.43: this entry starves them, and has the better score. In some samples of ten
    they get more than half, which hides the starvation.
    """
    chance = random.Random(1)
    wrong = naive = 0
    for _ in range(200):
        left = drawn(chance, 0.6, 10)
        naive += sum(left) / 10 > 0.5
        entries = [{"beside": [0.9] * 10}, {"beside": [0.5] * 10}]
        wrong += rank.ahead(entries, left=[{"beside": left}, {"beside": [1.0] * 10}], starves=0.5)[0][1] >= rank.KNOWN
    assert naive > 0.15 * 200
    assert wrong <= 0.05 * 200


def test_draws_are_paired() -> None:
    """A difference that is the same in every draw is certain, however much the draws differ."""
    one = scores(0.5, 1)
    assert rank.ahead([one, {f: [v - 0.001 for v in values] for f, values in one.items()}])[0][1] == 1.0


def test_few_draws_say_nothing() -> None:
    assert rank.ahead([scores(0.9, 1, 4), scores(0.1, 2, 4)]).tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_a_known_order_is_wrong_as_rarely_as_it_says() -> None:
    """For two identical entries, at most a tenth of all orders are reported as certain (5 % on either side)."""
    known = sum(
        max(p, 1 - p) >= rank.KNOWN
        for i in range(300)
        for p in [rank.ahead([scores(0.5, 2 * i, 8), scores(0.5, 2 * i + 1, 8)], seed=i)[0][1]]
    )
    assert known / 300 <= 0.14


def test_the_worst_tenth_and_the_mean_of_families() -> None:
    found = {"a": [0.2, 0.4], "b": [0.6] * 18}
    assert rank.estimate(found).value == pytest.approx(45.0)
    assert rank.worst(found) == pytest.approx(20.0), "half of a family is more than a tenth of two"
    assert rank.worst({"a": [0.1] + [0.5] * 9, "b": [0.3] + [0.6] * 9}) == pytest.approx(20.0)
    assert rank.worst({"a": [0.1], "b": [0.3]}) == pytest.approx(10.0)


def test_the_interval_of_a_score_has_its_level() -> None:
    """Four families of six draws with different spreads: the mean of the means lies outside the 95 % interval in 5 % of the cases."""
    chance = random.Random(1)
    spreads = {"a": 0.02, "b": 0.05, "c": 0.1, "d": 0.3}
    outside = 0
    for _ in range(2000):
        e = rank.estimate({family: [chance.gauss(0.5, spread) for _ in range(6)] for family, spread in spreads.items()})
        outside += not e.low <= 50 <= e.high
    assert 0.035 * 2000 <= outside <= 0.065 * 2000


def test_tau_b_counts_ties() -> None:
    """Computed by hand: 5 of 6 pairs differ in the first list, 6 in the second, and 5 agree."""
    assert rank.tau_b([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(5 / 30**0.5)
