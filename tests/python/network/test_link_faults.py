"""Tests for policers, radio links and ECN faults in complete runs."""

from __future__ import annotations

from typing import Any

import pytest

import ackclock
from ackclock.errors import ScenarioError


def run(bottleneck: dict[str, Any], flow: dict[str, Any], *, back: dict[str, Any] | None = None) -> ackclock.Run:
    link = {"rate": "100 Mbit/s", "delay": "5 ms", **bottleneck}
    network = {"bottleneck": link, "reverse": {"bottleneck": {"rate": "100 Mbit/s", "delay": "5 ms", **(back or {})}}}
    scenario = {"duration": "10 s", "network": network, "flows": [flow], "record": {"performance": True}}
    return ackclock.run(ackclock.Scenario.from_dict(scenario), seed=1)


def test_twice_the_token_rate_loses_half() -> None:
    policer = {"kind": "policer", "rate": "5 Mbit/s", "bucket": "3000 bytes"}
    made = run({"loss": policer}, {"workload": {"kind": "constant-rate", "rate": "10 Mbit/s"}})
    lost = made.links.row(0, named=True)
    assert lost["dropped_loss"] / lost["arrivals"] == pytest.approx(0.5, abs=0.001)


def test_dctcp_without_its_marks_fills_the_buffer() -> None:
    queue = {"kind": "threshold", "mark": "20 packets", "limit": "200 packets"}
    flow = {"congestion_control": "dctcp"}
    whole = run({"queue": queue}, flow).links.row(0, named=True)
    stripped = run({"queue": queue, "ecn_fault": {"what": "strip-ce"}}, flow).links.row(0, named=True)
    assert (whole["dropped_queue"], whole["max_packets"] < 100) == (0, True)
    assert stripped["dropped_queue"] > 50
    assert stripped["max_packets"] == 200


def test_bundles_of_acks_make_clumps_and_a_longer_rtt() -> None:
    flow = {"congestion_control": "cubic", "stack": {"delayed_ack": False}}
    queue = {"queue": {"kind": "drop-tail", "limit": "1 BDP"}}
    plain, held = (run(queue, flow, back=back).flows.row(0, named=True) for back in ({}, {"aggregate": "20 ms"}))
    assert plain["departure_cv"] < held["departure_cv"] / 2
    assert held["mean_rtt_s"] - plain["mean_rtt_s"] > 0.005


def test_wifi_jitter_keeps_order_and_delays() -> None:
    made = run({"wifi": {"mean": "7 ms"}}, {"workload": {"kind": "voice"}})
    voice = made.datagrams.row(0, named=True)
    assert voice["reordered"] == 0
    assert voice["p95_delay_s"] > 0.04


def test_nothing_arrives_in_an_outage_and_what_waited_does_afterwards() -> None:
    flow = {"workload": {"kind": "constant-rate", "rate": "10 Mbit/s", "payload": "972 bytes"}}
    out = {"at": "2 s", "every": "3 s", "lasts": "500 ms"}  # at 2, 5 and 8 s
    sent = run({}, flow).links.row(0, named=True)["arrivals"]
    waits = run({"outage": out}, flow)
    lost = run({"outage": {**out, "arrivals": "lost"}}, flow)
    assert waits.links.row(0, named=True)["dropped_loss"] == 0
    assert waits.datagrams.row(0, named=True)["p95_delay_s"] > 0.3
    assert lost.links.row(0, named=True)["dropped_loss"] == pytest.approx(sent * 1.5 / 10, abs=3)
    assert lost.datagrams.row(0, named=True)["max_delay_s"] == pytest.approx(0.0051, abs=0.0001)


def test_thinned_acks_lift_a_slow_way_back() -> None:
    flow = {"congestion_control": "cubic"}
    back = {"rate": "200 kbit/s", "queue": {"kind": "drop-tail", "limit": "50 packets"}}
    plain, thin = (run({}, flow, back={**back, "thin_acks": n}) for n in (1, 8))
    assert thin.flows["goodput_bps"][0] > 1.5 * plain.flows["goodput_bps"][0]
    assert thin.flows["rtos"][0] == 0


def test_a_bucket_for_each_flow() -> None:
    policer = {"kind": "policer", "rate": "5 Mbit/s", "bucket": "3000 bytes"}
    shares = []
    for per in ("link", "flow"):
        flow = {"count": 2, "workload": {"kind": "constant-rate", "rate": "5 Mbit/s"}}
        lost = run({"loss": {**policer, "per": per}}, flow).links.row(0, named=True)
        shares.append(lost["dropped_loss"] / lost["arrivals"])
    assert shares == [pytest.approx(0.5, abs=0.001), pytest.approx(0, abs=0.001)]


@pytest.mark.parametrize(
    ("bottleneck", "key"),
    [
        ({"loss": {"kind": "policer", "rate": "0 bit/s", "bucket": "1 kB"}}, "network.bottleneck.loss.rate"),
        ({"wifi": {}}, "network.bottleneck.wifi.mean"),
        ({"ecn_fault": {"what": "paint"}}, "network.bottleneck.ecn_fault.what"),
        ({"aggregate": "-1 ms"}, "network.bottleneck.aggregate"),
        ({"outage": {"at": "1 s"}}, "network.bottleneck.outage.lasts"),
        ({"thin_acks": 4, "queue": {"kind": "codel"}}, "network.bottleneck.thin_acks"),
    ],
)
def test_what_is_impossible_is_refused(bottleneck: dict[str, Any], key: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        run(bottleneck, {})
    assert refused.value.key == key
