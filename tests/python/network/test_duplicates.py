"""Tests for the effects of duplicated and damaged packets on senders."""

from __future__ import annotations

from typing import Any

import pytest

import ackclock

PATH: dict[str, Any] = {
    "duration": "10 s",
    "network": {
        "bottleneck": {"rate": "20 Mbit/s", "delay": "10 ms", "queue": {"kind": "drop-tail", "limit": "100 packets"}}
    },
    "flows": [{}],
}


def over(flow: dict[str, Any], **link: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    bottleneck = {**PATH["network"]["bottleneck"], **link}
    values = {**PATH, "network": {"bottleneck": bottleneck}, "flows": [flow]}
    found = ackclock.run(ackclock.Scenario.from_dict(values), seed=1)
    for row in found.rows("links"):
        gone = row["dropped_loss"] + row["dropped_queue"]
        assert row["arrivals"] + row["held_before"] == row["delivered"] + gone + row["held"]
    return found.rows("flows")[0], found.rows("links")[0]


@pytest.mark.parametrize("controller", ["cubic", "bbr", "quinn:cubic", "pcc-allegro"])
def test_copies_cost_capacity_and_no_transport_breaks(controller):
    flow, link = over({"congestion_control": controller}, duplicate="10 %")
    assert 0.05 < 1 - flow["sent_packets"] / link["arrivals"] < 0.15
    plain, _ = over({"congestion_control": controller})
    assert 4e6 < flow["goodput_bps"] < plain["goodput_bps"]


def test_damage_is_loss_that_has_used_the_link():
    plain = {"workload": {"kind": "constant-rate", "rate": "15 Mbit/s"}}
    _, whole = over(plain)
    _, damaged = over(plain, corrupt="20 %")
    assert damaged["dropped_loss"] / damaged["arrivals"] == pytest.approx(0.2, abs=0.02)
    assert damaged["busy_s"] == pytest.approx(whole["busy_s"], rel=0.01)
