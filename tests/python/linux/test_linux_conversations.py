"""Tests for conversations in the real kernel: the stall of Nagle's algorithm with delayed ACKs, and drawn conversations,
segment by segment.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

import ackclock
from ackclock import linux
from ackclock.diff import compare

NAGLE: dict[str, Any] = {
    "duration": "3 s",
    "network": {
        "framing": "14 bytes",
        "bottleneck": {"rate": "100 Mbit/s", "delay": "500 us"},
    },
    "flows": [
        {"workload": {"kind": "conversation", "repeat": 20, "steps": [{"client": "200 B"}, {"server": "2 x 1 kB"}]}}
    ],
}


def answers(found: ackclock.Run) -> list[float]:
    took = sorted(row["latency_s"] for row in found.rows("conversations") if row["step"] == 1)
    assert len(took) == 20
    return took


def test_an_answer_in_two_writes_stalls_in_the_kernel_as_long_as_in_the_simulator(kernel: linux.Kernel) -> None:
    usual = ackclock.Scenario.from_dict(NAGLE)
    for change in ({}, {"flows.0.stack.nodelay": True}, {"flows.0.stack.quickack": True}):
        scenario = usual
        for key, value in change.items():
            scenario = scenario.set(key, value)
        real, ours = answers(linux.run(scenario, seed=1)), answers(ackclock.run(scenario, seed=1))
        assert real[10] == pytest.approx(ours[10], abs=1e-4), change
        assert (real[10] > 0.040) == (not change)


def drawn(seed: int) -> ackclock.Scenario:
    """Return a lossless conversation that the kernel can play, with drawn sizes, gaps, waits, options and paths."""
    draw = random.Random(seed)

    def step() -> dict[str, Any]:
        sizes = (
            f"{draw.randint(1, 3000)} bytes",
            f"{draw.randint(2, 6)} x {draw.randint(1, 2000)} bytes",
            f"{draw.randint(3, 60)} kB",
        )
        made: dict[str, Any] = {draw.choice(("client", "server")): draw.choice(sizes)}
        if draw.random() < 0.4:
            made["gap"] = f"{draw.choice((0.1, 1.3, 20))} ms"
        if draw.random() < 0.3:
            made["wait"] = f"{draw.randint(1, 60)} ms"
        if draw.random() < 0.2:
            made["separate"] = True
        elif draw.random() < 0.2:
            made["corked"] = True
        return made

    stack = {key: True for key in ("nodelay", "quickack") if draw.random() < 0.4}
    workload = {
        "kind": "conversation",
        "steps": [step() for _ in range(draw.randint(1, 4))],
        "repeat": draw.randint(1, 6),
        "think": f"{draw.choice((0, 3, 50))} ms",
    }
    link = {"rate": f"{draw.choice((5, 20, 100))} Mbit/s", "delay": f"{draw.choice((0.3, 5, 40))} ms"}
    return ackclock.Scenario.from_dict(
        {
            "duration": "8 s",
            "network": {"framing": "14 bytes", "bottleneck": link},
            "flows": [{"congestion_control": draw.choice(("cubic", "reno")), "stack": stack, "workload": workload}],
        }
    )


@pytest.mark.deep
def test_drawn_conversations_are_equal_in_every_segment(kernel: linux.Kernel) -> None:
    unequal, messages = {}, 0
    for seed in range(50):
        result = compare(drawn(seed), network="relay")
        (flow,) = result.flows
        ours, theirs = (run.rows("flows")[0]["sent_packets"] for run in (result.simulator, result.kernel))
        messages += flow.events
        if not flow.identical or ours != theirs:
            unequal[seed] = f"{flow.text}; {ours} and {theirs} packets"
    assert not unequal
    assert messages > 300
