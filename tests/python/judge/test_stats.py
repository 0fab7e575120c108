from __future__ import annotations

import math

import numpy as np
import pytest

from ackclock.stats import (
    bootstrap_interval,
    bootstrap_mean,
    compare_pairs,
    mean_interval,
    paired_difference,
    proportion_interval,
    quantile_interval,
    seeds_needed,
)


def test_mean_of_known_sample():
    e = mean_interval([1, 2, 3, 4, 5])
    # t(0.975, 4) = 2.776445, s = 1.581139
    assert e.value == 3
    assert e.high - e.value == pytest.approx(2.776445 * 1.581139 / math.sqrt(5), rel=1e-5)
    assert e.n == 5


def test_one_observation_bounds_nothing():
    e = mean_interval([7.0])
    assert (e.value, e.low, e.high) == (7.0, -math.inf, math.inf)


def test_pairs_use_what_they_share():
    rng = np.random.default_rng(1)
    shared = rng.normal(size=50) * 100
    e = paired_difference(shared + 1 + rng.normal(size=50) * 0.1, shared)
    assert 0.9 < e.low < 1 < e.high < 1.1
    with pytest.raises(ValueError, match="equally many"):
        paired_difference([1, 2], [1])


def test_bootstrap_is_seeded_and_covers():
    x = np.random.default_rng(2).exponential(size=200)
    first, again = (bootstrap_interval(x, lambda v: float(np.median(v)), resamples=500) for _ in range(2))
    assert first == again
    assert first.low < math.log(2) < first.high


def test_wilson_of_known_share():
    # Wilson 1927; 95 % interval of 8 in 10.
    e = proportion_interval(8, 10)
    assert (e.value, round(e.low, 4), round(e.high, 4)) == (0.8, 0.4902, 0.9433)


@pytest.mark.parametrize("q", [0.05, 0.25, 0.5, 0.95])
def test_quantile_interval_covers_as_promised(q):
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(400):
        e = quantile_interval(rng.random(80), q)
        hits += e.low <= q <= e.high
    assert hits / 400 > 0.92


def test_quantile_beyond_the_sample_is_unbounded():
    assert quantile_interval([1, 2, 3], 0.99).high == math.inf


@pytest.mark.filterwarnings("error")
def test_infinite_observations_bound_nothing():
    for values in ([1, math.inf], [math.inf, math.inf], [-math.inf, math.inf], [1, math.nan]):
        e = mean_interval(values)
        assert not math.isfinite(e.value)
        assert (e.low, e.high, e.n) == (-math.inf, math.inf, 2)
    assert math.isnan(paired_difference([1, math.inf], [1, math.inf]).value)
    assert quantile_interval([math.inf] * 3, 0.5).n == 3


def test_bootstrap_of_the_mean_follows_the_skew_and_is_as_wide_as_t_without():
    rng = np.random.default_rng(4)
    normal = rng.normal(size=40)
    b, t = bootstrap_mean(normal, resamples=20_000), mean_interval(normal)
    assert b.high - b.low == pytest.approx(t.high - t.low, rel=0.04)
    skewed = rng.exponential(size=40) ** 2
    b = bootstrap_mean(skewed)
    assert b.high - b.value > 1.1 * (b.value - b.low)
    assert b == bootstrap_mean(skewed)
    assert bootstrap_mean(normal[:9]) == mean_interval(normal[:9])
    assert bootstrap_mean([2.0] * 20) == mean_interval([2.0] * 20)


def test_bootstrap_of_the_mean_covers_as_promised():
    rng = np.random.default_rng(6)
    hits = 0
    for _ in range(300):
        e = bootstrap_mean(rng.normal(size=15), resamples=500)
        hits += e.low <= 0 <= e.high
    assert hits / 300 > 0.92


def test_outcomes_of_pairs():
    rng = np.random.default_rng(7)
    shared, noise = rng.normal(size=30) * 10, rng.normal(size=30) * 0.1
    assert compare_pairs(shared + 1, shared + noise).outcome == "first is larger"
    assert compare_pairs(shared - 1, shared + noise).outcome == "second is larger"
    assert compare_pairs(shared, shared + noise - noise.mean()).outcome == "no difference shown"
    assert compare_pairs(shared, shared).outcome == "equal in every pair"
    assert compare_pairs([1.0], [1.0]).outcome == "no difference shown"
    gaps = compare_pairs([1.0, math.nan, 3.0, 4.0], [0.0, 1.0, math.nan, 2.0])
    assert (gaps.first.value, gaps.second.value, gaps.difference.n) == (2.5, 1.0, 2)


def test_seeds_needed_make_the_interval_narrow():
    rng = np.random.default_rng(8)
    few = mean_interval(rng.normal(size=20))
    wanted = seeds_needed(few, 0.2)
    many = mean_interval(rng.normal(size=2 * wanted))
    assert many.high - many.low < 0.2
    assert seeds_needed(few, 10) == 20
    assert seeds_needed(mean_interval([1.0]), 0.1) == 2
    with pytest.raises(ValueError, match="above zero"):
        seeds_needed(few, 0)


def test_undefined_values_are_counted_and_not_outvoted():
    """The remaining three pairs would give "first is larger"."""
    lopsided = compare_pairs([2.0, 2.1, 2.2, math.nan], [1.0, 1.1, 1.2, 1.3])
    assert (lopsided.difference.n, lopsided.pairs, lopsided.without) == (3, 4, (1, 0))
    assert lopsided.outcome == "no number in 1 of 4 of first, 0 of second"
    even = compare_pairs([2.0, 2.1, 2.2, math.nan], [1.0, 1.1, 1.2, math.nan])
    assert (even.without, even.outcome) == ((1, 1), "first is larger")
