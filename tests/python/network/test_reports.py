"""Public bug reports as scenarios (`tests/reports`): each shows its symptom."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import ackclock

FOLDER = Path(__file__).parents[2] / "reports"

Scenario = ackclock.Scenario


def flow(scenario: Scenario) -> dict[str, float]:
    return ackclock.run(scenario, seed=1).rows("flows")[0]


def gaps(scenario: Scenario) -> None:
    row = flow(scenario)
    assert row["failed"]
    assert row["failure"] == "too many gaps"


def reordering(scenario: Scenario) -> None:
    row = flow(scenario)
    assert row["lost_packets"] / row["sent_packets"] > 0.5
    assert row["goodput_bps"] < 0.25 * 200e6


def trickle(scenario: Scenario) -> None:
    windows = ackclock.run(scenario, seed=1).samples["cwnd"]
    assert windows.max() > 5 * windows.min()
    cubic = ackclock.run(scenario.set("flows.0.congestion_control", "quinn:cubic"), seed=1).samples["cwnd"]
    assert windows.max() > 20 * cubic.max()


def hystart(scenario: Scenario) -> None:
    classic, newer = flow(scenario), flow(scenario.set("flows.0.stack.slow_start.kind", "hystart++"))
    assert (classic["slow_start_by"], classic["retransmissions"]) == ("rule", 0)
    assert classic["slow_start_cwnd"] < 0.25 * newer["slow_start_cwnd"]
    assert classic["goodput_bps"] < 0.75 * newer["goodput_bps"]


def tbf(scenario: Scenario) -> None:
    rows = ackclock.run(scenario, seed=1).rows("flows")
    assert all(row["mean_rtt_s"] > 3 for row in rows)
    assert sum(row["goodput_bps"] for row in rows) < 512e3


def limit(scenario: Scenario) -> None:
    found = ackclock.run(scenario, seed=1)
    row = found.rows("flows")[0]
    assert 11 < row["completion_s"] < 60  # 300 packets of 1,500 bytes in 100 ms are 36 Mbit/s
    assert found.rows("links")[0]["dropped_queue"] > 0
    assert flow(scenario.set("network.bottleneck.queue.limit", "100000 packets"))["completion_s"] < 5


def normal(scenario: Scenario) -> None:
    found = ackclock.run(scenario, seed=1)
    assert sum(link["dropped_queue"] + link["dropped_loss"] for link in found.rows("links")) == 0
    assert found.rows("flows")[0]["retransmissions"] > 0
    ordered = flow(scenario.set("network.egress.rate", "10 Gbit/s"))
    assert ordered["retransmissions"] == 0


SYMPTOMS: dict[str, Callable[[Scenario], None]] = {
    "gaps-after-overshoot": gaps,
    "hystart-and-jitter": hystart,
    "netem-limit-without-rate": limit,
    "netem-normal-jitter": normal,
    "reordering-taken-for-loss": reordering,
    "tbf-three-streams": tbf,
    "window-of-a-trickle": trickle,
}


def test_every_report_has_its_symptom():
    assert sorted(path.stem for path in FOLDER.glob("*.toml")) == sorted(SYMPTOMS)
    assert all(len(path.read_text().splitlines()) <= 15 for path in FOLDER.glob("*.toml"))


@pytest.mark.parametrize("name", SYMPTOMS)
def test_a_report_shows_its_symptom(name):
    SYMPTOMS[name](ackclock.load(FOLDER / f"{name}.toml"))
