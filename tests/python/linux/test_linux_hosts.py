"""Compares hosts with NICs that merge and split packets with the real kernel."""

from __future__ import annotations

from typing import Any

import pytest

import ackclock
from ackclock import linux
from ackclock.diff import compare
from ackclock.errors import ScenarioError

HANDED_ON = {"packet_memory": "handed-on"}
"""Memory layout of packets received through the kernel's veth."""
GRO = {"gro": True, "gro_flush_timeout": "200 us", "napi_defer_hard_irqs": 2}
CUTS = {"cuts_packets": True}
CELLS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "merges": (GRO, {}, {}),
    "merges, shallow": (GRO, {}, {"network.bottleneck.queue.limit": "30 packets"}),
    "merges for 1 ms, reno": (
        {**GRO, "gro_flush_timeout": "1 ms"},
        {},
        {"flows.0.congestion_control": "reno"},
    ),
    "merges, codel, dctcp": (
        GRO,
        {},
        {
            "flows.0.congestion_control": "dctcp",
            "network.bottleneck.queue": {"kind": "codel", "target": "1 ms", "ecn": True, "limit": "500 packets"},
        },
    ),
    "merges, bbr": (GRO, {}, {"flows.0.congestion_control": "bbr"}),
    "cuts": (CUTS, {"tso": True}, {}),
    "cuts and merges": ({**GRO, **CUTS}, {"tso": True}, {}),
    "cuts and merges, shallow": ({**GRO, **CUTS}, {"tso": True}, {"network.bottleneck.queue.limit": "30 packets"}),
    "cuts and merges, bbr": ({**GRO, **CUTS}, {"tso": True}, {"flows.0.congestion_control": "bbr"}),
    "cuts and merges, 1 Gbit/s": (
        {**GRO, **CUTS},
        {"tso": True},
        {
            "network.bottleneck.rate": "1 Gbit/s",
            "network.bottleneck.queue.limit": "1000 packets",
            "duration": "4 s",
        },
    ),
}


def cell(card: dict[str, Any], stack: dict[str, Any], changes: dict[str, Any]) -> ackclock.Scenario:
    scenario = ackclock.Scenario.from_dict(
        {
            "duration": "10 s",
            "hosts": [
                {"name": "receiver", **card},
                {"name": "sender", "cuts_packets": card.get("cuts_packets", False)},
            ],
            "network": {
                "framing": "14 bytes",
                "bottleneck": {
                    "rate": "100 Mbit/s",
                    "delay": "20 ms",
                    "queue": {"kind": "drop-tail", "limit": "100 packets"},
                },
            },
            "flows": [{"host": "sender", "peer_host": "receiver", "stack": {**HANDED_ON, **stack}}],
            "record": {"sample_interval": "100 ms"},
        }
    )
    for key, value in changes.items():
        scenario = scenario.set(key, value)
    return scenario


ROUTERS: dict[str, dict[str, Any]] = {
    "20 packets": {"network.bottleneck.queue.limit": "20 packets"},
    "20 packets, reno": {"network.bottleneck.queue.limit": "20 packets", "flows.0.congestion_control": "reno"},
    "20 packets, bbr": {"network.bottleneck.queue.limit": "20 packets", "flows.0.congestion_control": "bbr"},
}


def behind_a_router_that_merges(changes: dict[str, Any]) -> ackclock.Scenario:
    """Return hosts with NICs that split and merge packets, and a router with a NIC that merges the pieces arriving over 1 Gbit/s."""
    network = {
        "network.access": {"rate": "1 Gbit/s"},
        "network.reverse": {"bottleneck": {"delay": "20 ms"}, "access": {}},
        "network.bottleneck.merging": {"gro_flush_timeout": "200 us", "napi_defer_hard_irqs": 2},
    }
    return cell({**GRO, **CUTS}, {"tso": True}, {**network, **changes})


@pytest.mark.parametrize("name", CELLS)
def test_cards_act_as_the_kernels(kernel: linux.Kernel, name: str) -> None:
    scenario = cell(*CELLS[name])
    ours, theirs = ackclock.run(scenario), linux.run(scenario, network="qdisc")
    ((flow, samples), (real, real_samples)) = ((run.flows.row(0, named=True), run.samples) for run in (ours, theirs))
    assert flow["goodput_bps"] == pytest.approx(real["goodput_bps"], rel=0.02)
    assert samples["srtt_s"].mean() == pytest.approx(real_samples["srtt_s"].mean(), rel=0.05)
    assert flow["retransmissions"] == pytest.approx(real["retransmissions"], rel=0.15, abs=3)
    # at the end of the kernel's send buffer, packet sizes differ
    assert flow["acks_received"] == pytest.approx(real["acks_received"], rel=0.07)


@pytest.mark.deep
@pytest.mark.parametrize("name", ROUTERS)
def test_a_router_that_merges_acts_as_the_kernels(kernel: linux.Kernel, name: str) -> None:
    """Single runs end in one of several states, and a dropped packet contains many segments, so means over twelve paths are compared."""
    ours, theirs, unmerged = [], [], []
    for delay in (16, 17, 18, 19, 21, 22, 23, 24, 26, 27, 28, 29):
        scenario = behind_a_router_that_merges({**ROUTERS[name], "network.bottleneck.delay": f"{delay} ms"})
        ours.append(ackclock.run(scenario))
        theirs.append(linux.run(scenario, network="qdisc"))
        network = scenario.to_dict()["network"]
        bare = {key: value for key, value in network["bottleneck"].items() if key != "merging"}
        unmerged.append(
            ackclock.run(
                ackclock.Scenario.from_dict({**scenario.to_dict(), "network": {**network, "bottleneck": bare}})
            )
        )

    def mean(runs: list[ackclock.Run], column: str) -> float:
        return sum(run.flows[column][0] for run in runs) / len(runs)

    assert mean(ours, "goodput_bps") == pytest.approx(mean(theirs, "goodput_bps"), rel=0.02)
    srtts = [sum(run.samples["srtt_s"].mean() for run in runs) for runs in (ours, theirs)]
    assert srtts[0] == pytest.approx(srtts[1], rel=0.05)
    assert mean(ours, "retransmissions") == pytest.approx(mean(theirs, "retransmissions"), rel=0.15, abs=3)
    assert mean(ours, "acks_received") == pytest.approx(mean(theirs, "acks_received"), rel=0.03)
    # the same queue of single segments yields a different goodput, or several times the losses
    merged, single = ([mean(runs, key) for key in ("goodput_bps", "retransmissions")] for runs in (ours, unmerged))
    assert merged[0] > 1.3 * single[0] or 3 * merged[1] < single[1]


@pytest.mark.parametrize(
    ("changes", "network", "key"),
    [
        ({"hosts.0.tick": "1 ms"}, "qdisc", "hosts.0.tick"),
        ({"hosts.0.preset": "light"}, "qdisc", "hosts.0.preset"),
        ({"hosts.0.receive_interval": "50 us"}, "qdisc", "hosts.0.receive_interval"),
        ({"network.bottleneck.merging": {}}, "relay", "network.bottleneck.merging"),
        (
            {"network.bottleneck.merging": {"receive_interval": "50 us"}},
            "qdisc",
            "network.bottleneck.merging.receive_interval",
        ),
    ],
)
def test_what_the_kernels_devices_cannot_be_is_refused(
    kernel: linux.Kernel, changes: dict[str, Any], network: Any, key: str
) -> None:
    with pytest.raises(ScenarioError, match=key):
        linux.run(cell(GRO, {}, changes), network=network)


@pytest.mark.parametrize(("card", "whole"), [({}, True), (CUTS, False), ({**GRO, **CUTS}, False), (GRO, True)])
def test_the_relay_carries_and_merges_packets_of_several_segments(
    kernel: linux.Kernel, card: dict[str, Any], whole: bool
) -> None:
    told = compare(cell(card, {"tso": True}, {"duration": "3 s"}), network="relay")
    (flow,) = told.flows
    ours, theirs = flow.goodput_bps
    assert ours == pytest.approx(theirs, rel=0.005)
    assert flow.retransmissions[0] == pytest.approx(flow.retransmissions[1], rel=0.05)
    assert flow.events > 900, "identical far beyond slow start"
    sent = told.kernel.acks.filter(told.kernel.acks["event"] == "send")["len"]
    assert (sent > 1448).any() == whole


def test_both_ends_cut_packets_up_or_none(kernel: linux.Kernel) -> None:
    with pytest.raises(ScenarioError, match="one end only"):
        linux.run(cell(CUTS, {"tso": True}, {"hosts.0.cuts_packets": False}), network="qdisc")
