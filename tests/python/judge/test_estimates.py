from __future__ import annotations

import numpy as np
import pytest

from ackclock.judge import estimates as est
from ackclock_studies.prr import split


def sample(seed: int, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    base = rng.gamma(4.0, 0.5, n)
    return base, base * rng.normal(0.9, 0.1, n)


def test_gain_agrees_with_the_bootstrap():
    base, other = sample(1)
    quick = est.gain(base, other)
    slow = est.bootstrap(lambda x, y: 100 * (1 - y.mean(axis=-1) / x.mean(axis=-1)), base, other, draws=4000)
    assert quick.value == pytest.approx(slow.value)
    assert quick.low == pytest.approx(slow.low, abs=0.15)
    assert quick.high == pytest.approx(slow.high, abs=0.15)
    assert quick.low < 10 < quick.high


def test_interval_covers_the_truth_as_often_as_it_says():
    hits = sum(e.low < 10 < e.high for e in (est.gain(*sample(seed, 100)) for seed in range(300)))
    assert 270 <= hits <= 297


def test_equal_arms_are_no_certainty():
    """If none of n runs differs, three of n still may: the interval is as for three differing runs."""
    base, _ = sample(2)
    e, twice = est.gain(base, base), est.gain(np.tile(base, 4), np.tile(base, 4))
    assert e.value == twice.value == 0
    assert e.low < 0 < e.high
    assert twice.high - twice.low == pytest.approx((e.high - e.low) / 4, rel=0.1)


def test_ratio_of_nothing():
    assert est.ratio(np.zeros(5), np.zeros(5)).n == 0
    assert est.ratio(np.ones(1), np.ones(1)).n == 0


def test_minus_and_quotient_of_independent_estimates():
    a, b = est.gain(*sample(3)), est.gain(*sample(4))
    d = est.minus(a, b)
    assert d.value == pytest.approx(a.value - b.value)
    assert (d.high - d.low) ** 2 == pytest.approx((a.high - a.low) ** 2 + (b.high - b.low) ** 2, rel=0.02)
    assert est.quotient(a, a).value == 1


def test_two_sigma_measures_from_the_minimum():
    # their sigma is 0.9: 1.9 lies above 0.2 + 2 sigma, but would not lie above mean + 2 sigma
    total = np.array([0.2] * 18 + [2.1, 3.2])
    assert split.two_sigma(total).sum() == 2
    assert split.group_b_mean(total) == pytest.approx(2.65)


def test_an_empty_group_is_nan_instead_of_a_division_by_zero():
    same = np.full(10, 0.5)
    assert not split.two_sigma(same).any()
    assert np.isnan(split.group_b_mean(same))


def test_two_sigma_works_row_by_row():
    rows = np.array([[0.2] * 9 + [3.0], [0.2] * 10])
    assert split.two_sigma(rows).sum(axis=-1).tolist() == [1, 0]


def test_bootstrap_repeats_itself():
    base, other = sample(5)

    def statistic(x, y):
        return x.mean(axis=-1) - y.mean(axis=-1)

    assert est.bootstrap(statistic, base, other) == est.bootstrap(statistic, base, other)


def test_a_time_that_was_not_reached_is_in_no_ratio():
    reached = np.array([2.0, 4.0, 6.0, 8.0, 10.0, 12.0])
    assert est.ratio_of_times(reached, reached / 2).value == 2
    never = np.append(reached[:-1], np.inf)
    assert est.ratio_of_times(never, reached).n == est.ratio_of_times(reached, never).n == 0
