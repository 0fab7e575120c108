"""Tests for conversations: properties of drawn ones over TCP and QUIC, and the user-facing output."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

import ackclock

NAGLE: dict[str, Any] = {
    "duration": "10 s",
    "network": {"bottleneck": {"rate": "100 Mbit/s", "delay": "500 us"}},
    "flows": [
        {"workload": {"kind": "conversation", "repeat": 50, "steps": [{"client": "200 B"}, {"server": "2 x 1 kB"}]}}
    ],
}


def medians(scenario: ackclock.Scenario) -> list[float]:
    rows = ackclock.run(scenario, seed=1).rows("conversations")
    steps = sorted({row["step"] for row in rows})
    took = [sorted(row["latency_s"] for row in rows if row["step"] == step) for step in steps]
    return [of[len(of) // 2] for of in took]


def test_an_answer_in_two_writes_waits_for_a_delayed_ack_unless_nagle_is_off():
    usual = ackclock.Scenario.from_dict(NAGLE)
    assert 0.0405 < medians(usual)[1] < 0.0425
    assert medians(usual.set("flows.0.stack.nodelay", True))[1] < 0.001
    assert medians(usual.set("flows.0.workload.steps.1.corked", True))[1] < 0.001
    assert 0.001 < medians(usual.set("flows.0.stack.quickack", True))[1] < 0.003


def test_a_run_says_how_long_messages_took(capsys):
    from ackclock.cli import main

    assert main(["run", "nagle-stall", "--set", "flows.0.workload.repeat=5"]) == 0
    shown = capsys.readouterr().out
    assert "server" in shown
    assert "last byte read at the other end" in " ".join(shown.split())


def test_quic_carries_conversations_and_other_transports_refuse_them():
    quic = ackclock.Scenario.from_dict(NAGLE).set("flows.0.congestion_control", "quinn:cubic")
    assert medians(quic)[1] < 0.002
    with pytest.raises(ackclock.ScenarioError, match=r"workload\.kind"):
        ackclock.Scenario.from_dict(NAGLE).set("flows.0.congestion_control", "pcc-allegro")


def over_quic(*steps: dict[str, Any]) -> ackclock.Scenario:
    workload = {"kind": "conversation", "repeat": 2, "steps": list(steps)}
    usual = ackclock.Scenario.from_dict(NAGLE).set("flows.0.workload", workload)
    return usual.set("flows.0.congestion_control", "quinn:cubic")


def test_a_server_that_speaks_before_the_client_over_quic_is_refused():
    """Its client opens the stream, which the server knows from the first bytes on."""
    server, client = {"server": "200 B"}, {"client": "1 kB"}
    for steps in ((server,), (server, client), (server, {**server, "together": True}, client)):
        with pytest.raises(ackclock.ScenarioError, match="found a server that speaks first over QUIC") as refused:
            over_quic(*steps)
        assert refused.value.key == "flows.0.workload.steps.0.server"
    for steps in (
        (client, server),
        (server, {**client, "together": True}),
        (server, {**server, "together": True}, {**client, "together": True}),
    ):
        (flow,) = ackclock.run(over_quic(*steps), seed=1).rows("flows")
        assert not flow["failed"]
        assert flow["completion_s"] < 1


def drawn(seed: int) -> dict[str, Any]:
    """Return a drawn conversation with its stack and path."""
    draw = random.Random(seed)

    def sizes() -> Any:
        return draw.choice(
            [
                f"{draw.randint(1, 3000)} bytes",
                f"{draw.randint(2, 6)} x {draw.randint(1, 2000)} bytes",
                {"kind": "exponential", "mean": f"{draw.randint(10, 20000)} bytes"},
                {"kind": "uniform", "low": "1 byte", "high": f"{draw.randint(2, 50000)} bytes"},
            ]
        )

    def step(first: bool) -> dict[str, Any]:
        made: dict[str, Any] = {draw.choice(("client", "server")): sizes()}
        if draw.random() < 0.4:
            made["gap"] = f"{draw.choice((0.1, 1, 20))} ms"
        if draw.random() < 0.3:
            made["wait"] = {"kind": "exponential", "mean": "5 ms"}
        if draw.random() < 0.2:
            made["separate"] = True
        elif draw.random() < 0.2:
            made["corked"] = True
        if not first and draw.random() < 0.2:
            made["together"] = True
        return made

    stack = {key: True for key in ("nodelay", "cork", "quickack") if draw.random() < (0.4 if key != "cork" else 0.1)}
    link: dict[str, Any] = {"rate": f"{draw.choice((1, 10, 100))} Mbit/s", "delay": f"{draw.choice((0.2, 5, 40))} ms"}
    if draw.random() < 0.4:
        link["loss"] = {"kind": "bernoulli", "p": draw.choice((0.01, 0.1))}
    if draw.random() < 0.3:
        link["queue"] = {"kind": "drop-tail", "limit": f"{draw.randint(3, 40)} packets"}
    workload = {
        "kind": "conversation",
        "steps": [step(n == 0) for n in range(draw.randint(1, 4))],
        "repeat": draw.randint(1, 6),
        "streams": draw.choice((1, 1, 2, 5)),
        "think": f"{draw.choice((0, 3, 50))} ms",
    }
    group = {"congestion_control": draw.choice(("cubic", "reno", "bbr")), "stack": stack, "workload": workload}
    if draw.random() < 0.3:
        group["reader"] = {
            "end": draw.choice(("receiver", "sender", "both")),
            "read": draw.choice(("1 kB", "16 kB", "1 MB")),
            **draw.choice(({"rate": f"{draw.choice((2, 8, 40))} Mbit/s"}, {"pause": "20 ms"}, {"wait": "300 ms"})),
        }
    return {"duration": "40 s", "network": {"bottleneck": link}, "flows": [group]}


def keeps_the_laws(seed: int) -> None:
    values = drawn(seed)
    found = ackclock.run(ackclock.Scenario.from_dict(values), seed=seed)
    rows, (flow,) = found.rows("conversations"), found.rows("flows")
    workload = values["flows"][0]["workload"]
    delay = float(values["network"]["bottleneck"]["delay"].split()[0]) / 1000
    done = [row for row in rows if row["done"]]
    assert all(row["first_byte_s"] >= delay - 1e-9 for row in done), seed
    assert all(row["latency_s"] >= row["first_byte_s"] for row in done), seed
    server = [row for row in rows if row["writer"] == "server"]
    assert flow["bytes_acked"] <= sum(row["bytes"] for row in server), seed
    # one byte stream in each direction: writes arrive in order
    for writer in ("server", "client"):
        whole = [row for row in done if row["writer"] == writer and row["writes"] == 1]
        arrived = [row["start_s"] + row["latency_s"] for row in whole]
        assert all(a <= b + 1e-9 for a, b in itertools.pairwise(arrived)), seed
    for stream in range(workload["streams"]):
        ends: dict[int, float] = {}
        for row in (row for row in rows if row["stream"] == stream):
            key = row["round"]
            before = [ends[k] for k in ends if k < key]
            assert not before or row["start_s"] >= max(before) - 1e-9, seed
            if row["done"]:
                ends[key] = max(ends.get(key, 0), row["start_s"] + row["latency_s"])
    if flow["completion_s"] is not None:
        assert len(done) == len(rows), seed
        assert flow["bytes_acked"] == sum(row["bytes"] for row in server), seed
        rounds = {(row["stream"], row["round"]) for row in rows}
        assert len(rounds) == workload["streams"] * workload["repeat"], seed
    links = found.rows("links")
    assert all(
        link["arrivals"] + link["held_before"]
        == link["delivered"] + link["dropped_loss"] + link["dropped_queue"] + link["held"]
        for link in links
    ), seed


def test_drawn_conversations_keep_the_laws():
    for seed in range(60):
        keeps_the_laws(seed)


@pytest.mark.deep
def test_a_thousand_drawn_conversations_keep_the_laws():
    for seed in range(1000):
        keeps_the_laws(seed)
