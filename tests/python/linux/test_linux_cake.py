"""Compares CAKE with the real kernel's implementation."""

from __future__ import annotations

from typing import Any

import pytest

import ackclock
from ackclock import linux

PACED = {"bandwidth": "15 Mbit/s"}
CELLS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "below a shaper": ({}, {}),
    "a shorter rtt": ({"rtt": "40 ms"}, {}),
    "paced, ethernet": ({**PACED, "overhead": 38, "mpu": 84}, {}),
    "paced, atm": ({**PACED, "overhead": 48, "framing": "atm"}, {}),
    "paced, little memory": ({**PACED, "limit": "60 kB"}, {}),
    "four flows": (PACED, {"count": 4}),
    "four flows, marked": (PACED, {"count": 4, "stack": {"ecn": "ask"}}),
}


def cell(queue: dict[str, Any], *flows: dict[str, Any]) -> ackclock.Scenario:
    return ackclock.Scenario.from_dict(
        {
            "duration": "20 s",
            "network": {
                "topology": "dumbbell",
                "framing": "14 bytes",
                "bottleneck": {"rate": "20 Mbit/s", "delay": "20 ms", "queue": {"kind": "cake", **queue}},
            },
            "flows": list(flows),
            "record": {"sample_interval": "100 ms"},
        }
    )


@pytest.mark.parametrize("name", CELLS)
def test_cake_decides_as_the_kernels(kernel: linux.Kernel, name: str) -> None:
    scenario = cell(*CELLS[name])
    ours, theirs = ackclock.run(scenario), linux.run(scenario, network="qdisc")
    assert ours.flows["goodput_bps"].sum() == pytest.approx(theirs.flows["goodput_bps"].sum(), rel=0.02)
    assert ours.samples["srtt_s"].mean() == pytest.approx(theirs.samples["srtt_s"].mean(), rel=0.05)
    lost = [run.flows["retransmissions"].sum() for run in (ours, theirs)]
    assert lost[0] == pytest.approx(lost[1], rel=0.15, abs=4)


@pytest.mark.parametrize(("isolation", "share"), [("triple-isolate", 0.5), ("flows", 0.25), ("dual-srchost", 0.5)])
def test_hosts_share_as_the_kernels(kernel: linux.Kernel, isolation: str, share: float) -> None:
    """Three flows from one host share the link with one flow from another."""
    scenario = cell({**PACED, "isolation": isolation}, {"count": 3}, {"count": 1})
    runs = (ackclock.run(scenario), linux.run(scenario, network="qdisc"))
    ours, theirs = (run.flows["goodput_bps"][3] / run.flows["goodput_bps"].sum() for run in runs)
    assert ours == pytest.approx(theirs, abs=0.02)
    assert theirs == pytest.approx(share, abs=0.06)  # one CUBIC flow does not always use its half
