"""Tests that observing changes nothing: recording, capturing, tracing and the number of threads do not affect the digest."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

import ackclock

RECORDS: list[dict[str, Any]] = [
    {"trace": "all"},
    {"controller": "all"},
    {"controller": "flow", "controller_interval": "50 ms"},
    {"sample_interval": "10 ms", "queue_interval": "10 ms", "goodput_interval": "100 ms"},
    {"drops": True},
    {"trace": "flow", "controller": "all", "drops": True, "sample_interval": "7 ms"},
]

QUEUES = ["drop-tail", "codel", "fq-codel", "pie", "red"]


def _scenario(draw: random.Random) -> dict[str, Any]:
    queue: dict[str, Any] = {"kind": draw.choice(QUEUES)}
    if queue["kind"] in ("drop-tail", "codel", "fq-codel", "pie"):
        queue["limit"] = f"{draw.randint(5, 80)} packets"
    if queue["kind"] == "red":
        queue |= {"min": "5 packets", "max": "15 packets", "limit": "40 packets"}
    workloads = [
        {"kind": "bulk"},
        {"kind": "transfer", "bytes": "80 KB"},
        {"kind": "fetch", "bytes": "20 KB", "count": 5},
        {"kind": "transactions", "bytes": "10 KB", "arrivals": {"kind": "poisson", "rate": 8}, "max_open": 50},
    ]
    flows: list[dict[str, Any]] = [
        {
            "count": draw.randint(1, 3),
            "congestion_control": draw.choice(["cubic", "reno", "bbr", "vegas", "westwood"]),
            "workload": draw.choice(workloads),
        }
        for _ in range(draw.randint(1, 2))
    ]
    scenario: dict[str, Any] = {
        "duration": "3 s",
        "network": {
            "bottleneck": {
                "rate": f"{draw.randint(1, 12)} Mbit/s",
                "delay": f"{draw.randint(1, 60)} ms",
                "queue": queue,
                "loss": {"kind": "bernoulli", "p": draw.choice([0.0, 0.01])},
            }
        },
        "flows": flows,
    }
    preset = draw.choice([None, "xen-shared", "micro"])
    if preset is not None:
        scenario["hosts"] = [{"name": "h", "preset": preset}]
        for flow in flows:
            flow["host"] = "h"
    return scenario


@pytest.mark.parametrize("number", range(24))
def test_one_digest_however_it_is_watched(number: int, tmp_path: Path) -> None:
    """Six ways of recording, a capture on each side, and two threads."""
    _watch(number, tmp_path)


@pytest.mark.long
def test_one_digest_of_ten_thousand_scenarios(tmp_path: Path) -> None:
    """Number of scenarios: WATCHED, if set in the environment."""
    for number in range(24, 24 + int(os.environ.get("WATCHED", "10000"))):
        _watch(number, tmp_path)


def _watch(number: int, tmp_path: Path) -> None:
    plain = _scenario(random.Random(number))
    scenario = ackclock.Scenario.from_dict(plain)
    digests = {seed: ackclock.run(scenario, seed=seed).digest for seed in (1, 2)}
    for record in RECORDS:
        watched = ackclock.Scenario.from_dict({**plain, "record": record})
        assert ackclock.run(watched, seed=1).digest == digests[1], record
    for side in ("sender", "receiver"):
        captured = ackclock.run(scenario, seed=1, pcap=tmp_path / f"{side}.pcapng", pcap_at=side)
        assert captured.digest == digests[1], side
    assert ackclock.run_batch(scenario, [2, 1], jobs=2).digests == (digests[2], digests[1])
