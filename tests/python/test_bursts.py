"""The workload `bursts`, from a scenario to what a run says of it."""

from __future__ import annotations

import pytest

import ackclock
from ackclock.errors import ScenarioError

BOTTLENECK = {"rate": "8 Mbit/s", "delay": "10 ms"}


def scenario(**keys):
    workload = {"kind": "bursts", "bytes": "100 KB", "pause": "500 ms", **keys}
    return ackclock.Scenario.from_dict(
        {"duration": "20 s", "network": {"bottleneck": BOTTLENECK}, "flows": [{"workload": workload}]}
    )


def test_every_burst_is_a_row_and_the_summary_counts_them():
    run = ackclock.run(scenario(count=4), seed=1)
    assert run.fetches["bytes"].to_list() == [100_000] * 4
    assert run.fetches["idx"].to_list() == [0, 1, 2, 3]
    assert run.fetches["connect_s"].null_count() == 3  # one handshake
    assert run.summary()["fetches"]["done"] == 4
    gaps = (run.fetches["start_s"].diff() - run.fetches["total_s"].shift(1)).drop_nulls()
    assert gaps.to_list() == pytest.approx([0.5] * 3)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"pause": "100 KB"}, 'workload.pause: found "100 KB"'),
        ({"bytes": {"kind": "exponential", "mean": "1 s"}}, 'workload.bytes.mean: found "1 s"'),
        ({"count": 0}, "workload.count: found 0; allowed: a whole number, 1 to 1000000"),
        ({"silence": "1 s"}, "workload.silence: found an unknown key; allowed: kind, bytes, pause, count"),
    ],
)
def test_what_is_refused_is_named(keys, message):
    with pytest.raises(ScenarioError) as refused:
        scenario(**keys)
    assert message in str(refused.value)


def test_pcc_does_not_carry_them():
    with pytest.raises(ScenarioError, match="bulk, transfer, throttled, video"):
        scenario().set("flows.0.congestion_control", "pcc-allegro")
