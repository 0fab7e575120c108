from __future__ import annotations

import math

import numpy as np
import pytest

from ackclock.stats import bootstrap_interval, mean_interval, paired_difference, proportion_interval, quantile_interval


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
