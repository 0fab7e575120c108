"""Tests for the confidence in an order of entries."""

from __future__ import annotations

import random

import pytest

from ackclock.arena import rank


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
    """Probability of ranking behind is the share of resamples in which others get less than allowed: nearly all, about
    half, and none here.
    """
    takes, leaves, even = scores(0.2, 3), scores(0.9, 4), {family: [0.4, 0.6] * 10 for family in ("a", "b")}
    ahead = rank.ahead([scores(0.5, 1)] + [scores(0.9, 2)] * 3, left=[leaves, takes, even, leaves], starves=0.5)
    assert ahead[0][1] == 1.0
    assert 0.2 < ahead[0][2] < 0.8
    assert ahead[0][3] == 0.0


def test_draws_are_paired() -> None:
    """A difference that is equal in every draw is certain, however much the draws differ."""
    one = scores(0.5, 1)
    assert rank.ahead([one, {f: [v - 0.001 for v in values] for f, values in one.items()}])[0][1] == 1.0


def test_few_draws_say_nothing() -> None:
    assert rank.ahead([scores(0.9, 1, 4), scores(0.1, 2, 4)]).tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_a_known_order_is_wrong_as_rarely_as_it_says() -> None:
    """For two equal entries at most a tenth of all orders is reported as certain (5 % on either side)."""
    known = sum(
        max(p, 1 - p) >= rank.KNOWN
        for i in range(300)
        for p in [rank.ahead([scores(0.5, 2 * i, 8), scores(0.5, 2 * i + 1, 8)], seed=i)[0][1]]
    )
    assert known / 300 <= 0.14


def test_the_worst_tenth_and_the_mean_of_families() -> None:
    found = {"a": [0.2, 0.4], "b": [0.6] * 18}
    assert rank.estimate(found).value == pytest.approx(45.0)
    assert rank.worst(found) == pytest.approx(30.0)


def test_tau_b_counts_ties() -> None:
    """By hand: 5 of 6 pairs differ in the first list, 6 in the second, and 5 agree."""
    assert rank.tau_b([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(5 / 30**0.5)
