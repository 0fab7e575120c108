from __future__ import annotations

import math

import polars as pl
import pytest

from ackclock import Scenario, metrics, run


def series(values: list[float], step: float = 0.1, flow: int = 0) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "t_s": [step * (i + 1) for i in range(len(values))],
            "flow": [flow] * len(values),
            "goodput_bps": [float(v) for v in values],
        }
    )


def test_ramp_up_is_the_end_of_the_first_average_that_stays():
    # the 90 level is reached once four consecutive intervals average at least 90; a dip within ten restarts the
    # search
    values = [10, 50, 100, 100, 100, 100] + [100] * 5 + [0] + [100] * 20
    up = metrics.ramp_up_s(series(values), 100.0, 0.1)
    # after the dip at index 11 the average recovers once it excludes the dip: indices 12 to 15
    assert up == pytest.approx(0.1 * 16)
    assert metrics.ramp_up_s(series(values[:11]), 100.0, 0.1) == math.inf
    assert metrics.ramp_up_s(series([100.0] * 30), 100.0, 0.1) == pytest.approx(0.4)


def test_convergence_needs_to_stay():
    values = [0, 48, 100, 52, 51, 50, 49, 50, 50]
    assert metrics.convergence_s(series(values, 1.0), 50.0, hold_s=3.0) == pytest.approx(4.0)
    assert metrics.convergence_s(series(values, 1.0), 50.0, hold_s=6.0) == math.inf
    assert metrics.convergence_s(series(values, 1.0), 50.0, start_s=5.0, hold_s=3.0) == pytest.approx(1.0)


def test_jain_over_windows_agrees_with_jain():
    both = pl.concat([series([30, 10, 20, 20], 1.0), series([10, 30, 20, 0], 1.0, flow=1)])
    found = metrics.jain_windows(both, 2.0)
    assert found["t_s"].to_list() == [2.0, 4.0]
    assert found["flows"].to_list() == [2, 2]
    assert found["jain"].to_list() == pytest.approx([metrics.jain([20, 20]), metrics.jain([20, 10])])
    later = metrics.jain_windows(both, 2.0, start_s=1.0, stop_s=3.0)
    assert later["jain"].to_list() == pytest.approx([metrics.jain([15, 25])])


def test_the_exponent_of_the_round_trip_time():
    rtts = [0.01, 0.02, 0.1]
    assert metrics.rtt_exponent(rtts, [1 / r**1.5 for r in rtts]) == pytest.approx(1.5)
    assert metrics.rtt_exponent(rtts, [3.0] * 3) == pytest.approx(0.0)
    assert math.isnan(metrics.rtt_exponent([0.1], [1.0]))


def test_variation_and_friendliness():
    assert metrics.variation([1, 3]) == pytest.approx(2**0.5 / 2)
    assert math.isnan(metrics.variation([1]))
    assert metrics.friendliness([10, 10], [20, 20]) == pytest.approx(0.5)
    assert math.isnan(metrics.friendliness([], [1]))


def test_completion_counts_the_handshake_or_not():
    scenario = Scenario.from_dict(
        {
            "duration": "5 s",
            "network": {"bottleneck": {"rate": "10 Mbit/s", "delay": "50 ms"}},
            "flows": [
                {"start": "1 s", "workload": {"kind": "transfer", "bytes": "10 KB"}},
                {"start": "4 s", "workload": {"kind": "bulk"}},
            ],
        }
    )
    flows = run(scenario).flows
    whole = metrics.completion_s(flows, 0)
    assert whole - metrics.completion_s(flows, 0, handshake=False) == pytest.approx(0.1, rel=0.01)
    assert metrics.completion_s(flows, 1) == math.inf
