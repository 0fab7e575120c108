"""Compares a host's own device, TCP small queues and fq with the real kernel."""

from __future__ import annotations

from typing import Any

import pytest

import ackclock
from ackclock import linux
from ackclock.errors import ScenarioError

LINE = {"line_rate": "100 Mbit/s"}
SLOW = {"line_rate": "20 Mbit/s"}
FQ = {"queue": {"kind": "fq"}}
CUTS = {"cuts_packets": True}
SHALLOW = {
    "network.bottleneck.rate": "100 Mbit/s",
    "network.bottleneck.queue": {"kind": "drop-tail", "limit": "100 packets"},
}
BBR = {"flows.0.congestion_control": "bbr"}
DCTCP = {"flows.0.congestion_control": "dctcp"}

Cell = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]
CELLS: dict[str, Cell] = {
    "fifo": (LINE, {}, {}),
    "fifo, 20 Mbit/s": (SLOW, {}, {}),
    "fifo, no small queues": (LINE, {"small_queues": False}, {}),
    "fifo, bound in bytes": (LINE, {"limit_output_bytes": "9000 bytes"}, {}),
    "fifo, tso": ({**LINE, **CUTS}, {"tso": True}, {}),
    "fq": ({**LINE, **FQ}, {}, {}),
    "fq, reno, 20 Mbit/s": ({**SLOW, **FQ}, {}, {"flows.0.congestion_control": "reno"}),
    "fq, bbr": ({**LINE, **FQ}, {}, BBR),
    "fq, bbr, shallow network": (FQ, {}, {**SHALLOW, **BBR}),
    "fq, cubic, shallow network": (FQ, {}, SHALLOW),
    "fq, bounded pacing": ({**LINE, **FQ}, {"max_pacing_rate": "30 Mbit/s"}, {}),
    "fq, greatest rate": ({**LINE, "queue": {"kind": "fq", "max_rate": "30 Mbit/s"}}, {}, {}),
    "fq, flow limit": ({**LINE, "queue": {"kind": "fq", "flow_limit": 4}}, {}, {}),
    "fq, marks, dctcp": ({**LINE, "queue": {"kind": "fq", "ce_threshold": "1 ms"}}, {}, DCTCP),
    "fq, tso": ({**LINE, **FQ, **CUTS}, {"tso": True}, {}),
    "fq, two flows": ({**LINE, **FQ}, {}, {"flows.0.count": 2}),
}
KNOWN = {"fq, flow limit": 0.08}
"""Known deviations of goodput. The value depends on the window at the time of the only refusal (docs/fidelity.md)."""


def cell(host: dict[str, Any], stack: dict[str, Any], changes: dict[str, Any]) -> ackclock.Scenario:
    scenario = ackclock.Scenario.from_dict(
        {
            "duration": "10 s",
            "hosts": [{"name": "sender", **host}, {"name": "receiver", "cuts_packets": "cuts_packets" in host}],
            "network": {"framing": "14 bytes", "bottleneck": {"rate": "10 Gbit/s", "delay": "20 ms"}},
            "flows": [{"host": "sender", "peer_host": "receiver", "stack": stack}],
            "record": {"sample_interval": "100 ms"},
        }
    )
    for key, value in changes.items():
        scenario = scenario.set(key, value)
    return scenario


@pytest.mark.parametrize("name", CELLS)
def test_hosts_queue_as_the_kernels(kernel: linux.Kernel, name: str) -> None:
    scenario = cell(*CELLS[name])
    ours, theirs = ackclock.run(scenario), linux.run(scenario, network="qdisc")
    for flow, real in zip(ours.flows.to_dicts(), theirs.flows.to_dicts(), strict=True):
        mean, real_mean = (
            run.samples.filter(run.samples["flow"] == flow["flow"])["srtt_s"].mean() for run in (ours, theirs)
        )
        assert flow["goodput_bps"] == pytest.approx(real["goodput_bps"], rel=KNOWN.get(name, 0.02))
        assert mean == pytest.approx(real_mean, rel=0.05)
        assert flow["retransmissions"] == pytest.approx(real["retransmissions"], rel=0.15, abs=3)


@pytest.mark.parametrize(
    ("host", "stack", "network", "key"),
    [
        (LINE, {"small_queues": False}, "relay", "flows.0.stack.small_queues"),
        ({**LINE, **FQ}, {"small_queues": False}, "qdisc", "flows.0.stack.small_queues"),
    ],
)
def test_what_the_kernels_devices_cannot_be_is_refused(
    kernel: linux.Kernel, host: dict[str, Any], stack: dict[str, Any], network: Any, key: str
) -> None:
    with pytest.raises(ScenarioError, match=key):
        linux.run(cell(host, stack, {}), network=network)
