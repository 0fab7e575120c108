"""Tests for quinn's flows in drawn scenarios: all its workloads, combined with TCP and PCC, over links that lose,
mark, delay and pause. A panic or a broken law is reported with the scenario's number. `QUINN_DRAWN=10000 pytest -m
long tests/python/stacks/test_quinn_drawn.py` draws 10,000.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from ackclock import Run, Scenario, ScenarioError, run, units

NAMES = ["quinn:cubic", "quinn:newreno", "quinn:bbr", "quinn:ours-reno", "quinn:ours-cubic", "quinn:ours-cubic-rfc9438"]
OPTIONS: dict[str, list[Any]] = {
    "mtu_discovery": [False], "mtu": [1200, 1280, 1400], "receive_window": [20_000, 200_000, 10_000_000], "ack_every": [2, 10],
    "initial_rtt_ms": [20, 1000], "idle_timeout_s": [1, 0], "packet_threshold": [10], "time_threshold": [2.0],
    "certificate": [3000, 8000], "initial_window": [2400, 60_000], "send_window": [20_000],
}  # fmt: skip
QUEUES: list[dict[str, Any]] = [
    {"kind": "drop-tail"}, {"kind": "drop-tail"}, {"kind": "codel"}, {"kind": "codel", "ecn": True}, {"kind": "fq-codel"}, {"kind": "pie"},
    {"kind": "dualpi2"}, {"kind": "netem-limit"},
]  # fmt: skip
LOSSES: list[dict[str, Any] | None] = [
    None, None, {"kind": "bernoulli", "p": 0.01}, {"kind": "bernoulli", "p": 0.1}, {"kind": "bernoulli", "p": 0.5},
    {"kind": "gilbert-elliott", "p": 0.01, "r": 0.2},
]  # fmt: skip


def workload(draw: random.Random) -> dict[str, Any]:
    size = draw.choice(["1 B", "3 kB", "60 kB", "1 MB"])
    arrivals = {"kind": "poisson", "rate": draw.choice([2, 8, 30])}
    return draw.choice(
        [
            {"kind": "bulk"},
            {"kind": "transfer", "bytes": size},
            {"kind": "fetch", "bytes": size, "count": draw.randint(1, 6)},
            {"kind": "fetch", "bytes": size, "count": draw.randint(1, 6)},
            {"kind": "transactions", "bytes": draw.choice(["100 B", "10 kB"]), "arrivals": arrivals, "max_open": 30},
            {"kind": "transactions", "bytes": draw.choice(["100 B", "10 kB"]), "arrivals": arrivals, "max_open": 30},
        ]
    )


def values(draw: random.Random) -> dict[str, Any]:
    link: dict[str, Any] = {
        "rate": f"{draw.choice([0.2, 1, 5, 20])} Mbit/s", "delay": f"{draw.choice([0, 1, 20, 60, 300])} ms",
        "queue": draw.choice(QUEUES) | {"limit": f"{draw.randint(2, 80)} packets"},
    }  # fmt: skip
    back: dict[str, Any] = {"delay": f"{draw.choice([0, 1, 20, 60])} ms"}
    for way in (link, back):
        if (loss := draw.choice(LOSSES)) is not None:
            way["loss"] = loss
        if draw.random() < 0.2:
            way["jitter"] = f"{draw.randint(1, 30)} ms"
        if draw.random() < 0.2:
            way["reorder"] = {"probability": 0.05, "extra_delay": "20 ms"}
        if draw.random() < 0.15:
            way["outage"] = {"at": "300 ms", "lasts": f"{draw.choice([50, 700, 3000])} ms"}
    flows: list[dict[str, Any]] = []
    for _ in range(draw.randint(1, 2)):
        given = {key: draw.choice(of) for key, of in OPTIONS.items() if draw.random() < 0.15}
        flow = {"congestion_control": draw.choice(NAMES), "count": draw.randint(1, 3), "workload": workload(draw)}
        flows.append(flow | ({"congestion_control_options": given} if given else {}))
    if draw.random() < 0.4:
        flows.append({"congestion_control": draw.choice(["cubic", "reno", "bbr", "pcc-allegro", "pcc-vivace"])})
    network = {"bottleneck": link, "reverse": {"bottleneck": back}}
    record = {"trace": "all", "sample_interval": "50 ms"} if draw.random() < 0.2 else {}
    return {"duration": f"{draw.choice([0.5, 1, 4])} s", "network": network, "flows": flows, "record": record}


def drawn(number: int) -> Scenario:
    """Return a scenario; combinations that the engine refuses are drawn again."""
    draw = random.Random(number)
    while True:
        try:
            return Scenario.from_dict(values(draw))
        except ScenarioError:
            continue


def broken(done: Run) -> list[str]:
    """Return the laws broken by a run."""
    found = []
    for row in done.rows("links"):
        gone = row["dropped_loss"] + row["dropped_queue"]
        if row["arrivals"] + row["held_before"] != row["delivered"] + gone + row["held"]:
            found.append(f"link {row['name']}: packets are not conserved: {row}")
    for row in done.rows("flows"):
        group = done.scenario.flows[row["group"]]
        if group.congestion_control.startswith("quinn:") and group.workload.kind == "transfer":
            asked = {"1 B": 1, "3 kB": 3000, "60 kB": 60_000, "1 MB": 1_000_000}[str(group.workload.bytes)]
            ends = (
                units.whole(done.scenario.duration, units.DURATION) / 1e9
            )  # the flow's stop time, after which it may complete with less data
            complete = row["completion_s"] is not None and row["completion_s"] < ends
            if row["bytes_acked"] > asked or (complete and row["bytes_acked"] != asked):
                found.append(
                    f"flow {row['flow']}: {row['bytes_acked']} of {asked} bytes, complete at {row['completion_s']}"
                )
        if row["lost_packets"] is not None and row["lost_packets"] > row["sent_packets"]:
            found.append(f"flow {row['flow']}: more lost than sent")
    return found


def looked_at(numbers: range) -> list[str]:
    found = []
    for number in numbers:
        scenario = drawn(number)
        try:
            done = run(scenario, seed=number)
            wrong = broken(done)
            if number % 100 == 0 and run(scenario, seed=number).digest != done.digest:
                wrong.append("another digest at the second run")
        except BaseException as error:  # a panic in the engine is not a subclass of Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            wrong = [f"{type(error).__name__}: {error}"]
        found += [f"{number}: {why}" for why in wrong]
    return found


def test_drawn_scenarios_obey_the_laws():
    assert looked_at(range(60)) == []


@pytest.mark.long
def test_many_drawn_scenarios_obey_the_laws():
    assert looked_at(range(int(os.environ.get("QUINN_DRAWN", "1000")))) == []
