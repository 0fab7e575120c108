"""Tests that a diagnosis identifies a policer, and a slow start that ended early."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ackclock import Scenario, run
from ackclock.diagnose import Diagnosis, diagnose

Made = Callable[[dict[str, Any]], Diagnosis]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    def one(scenario: dict[str, Any]) -> Diagnosis:
        file = tmp_path / "a.pcapng"
        run(Scenario.from_dict(scenario), pcap=file)
        return diagnose(file)

    return one


def scenario(loss: dict[str, Any] | None = None, *, seconds: int = 8, **stack: Any) -> dict[str, Any]:
    link: dict[str, Any] = {"rate": "10 Mbit/s", "delay": "20 ms", "queue": {"kind": "drop-tail", "limit": "1 BDP"}}
    if loss:
        link["loss"] = loss
    flow: dict[str, Any] = {"congestion_control": "cubic", "workload": {"kind": "bulk"}}
    if stack:
        flow["stack"] = stack
    return {"duration": f"{seconds} s", "network": {"bottleneck": link}, "flows": [flow]}


@pytest.mark.parametrize("rate", [1.5, 3.0])
def test_a_policer_is_named(made: Made, rate: float) -> None:
    policer = {"kind": "policer", "rate": f"{rate} Mbit/s", "bucket": "60 kB", "initial": "20 kB"}
    found = made(scenario(policer, seconds=12))
    assert found.policer is not None
    assert found.answer is not None
    assert found.policer.rate_bps == pytest.approx(rate * 1e6 * 1448 / 1500, rel=0.03)
    assert found.answer.where == "network"
    assert "a policer lets" in str(found.answer)


@pytest.mark.parametrize("loss", [None, {"kind": "bernoulli", "p": 0.01}])
def test_neither_a_queue_nor_chance_is_a_policer(made: Made, loss: dict[str, Any] | None) -> None:
    found = made(scenario(loss, seconds=12))
    assert found.policer is None


def test_a_slow_start_that_ended_early_is_named(made: Made) -> None:
    link = {"rate": "80 Mbit/s", "delay": "20 ms", "queue": {"kind": "drop-tail", "limit": "1 BDP"}}
    flow = {"congestion_control": "cubic", "workload": {"kind": "bulk"}, "stack": {"initial_ssthresh": 20}}
    found = made({"duration": "5 s", "network": {"bottleneck": link}, "flows": [flow]})
    assert found.early_bytes == 20 * 1448
    assert found.answer is not None
    assert "slow start ended at 20 segments in flight with nothing lost" in str(found.answer)


def test_a_slow_start_that_filled_the_path_ended_in_time(made: Made) -> None:
    assert made(scenario()).early_bytes is None
