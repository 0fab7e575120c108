"""Tests for receivers that cheat."""

from __future__ import annotations

from typing import Any

import pytest

import ackclock


def run(cheat: dict[str, Any], *, seconds: int = 20, queue: dict[str, Any] | None = None, **flow: Any) -> ackclock.Run:
    """Run an honest flow and one with a cheating receiver over 10 Mbit/s."""
    link = {"rate": "10 Mbit/s", "delay": "20 ms", "queue": queue or {"kind": "drop-tail", "limit": "1 BDP"}}
    both = {"congestion_control": "reno", **flow}
    stack = both.pop("stack", {})
    groups = [{**both, "stack": stack}, {**both, "stack": {**stack, **cheat}}]
    scenario = {"duration": f"{seconds} s", "network": {"bottleneck": link}, "flows": groups}
    return ackclock.run(ackclock.Scenario.from_dict(scenario), seed=1)


@pytest.mark.parametrize("counts_acks", [False, True])
def test_split_acks_do_not_open_the_window(counts_acks: bool) -> None:
    """An ACK counts only if it acknowledges a whole segment, even if ACKs are counted (Linux FLAG_DATA_ACKED).

    Without losses and above a small threshold the window grows by one segment per round trip. (When queues overflow, a sender of single
    segments loses less than one that sends pairs, but not because of its window.)
    """
    link = {"rate": "100 Mbit/s", "delay": "50 ms", "queue": {"kind": "drop-tail", "limit": "2 BDP"}}
    made = []
    for splits in ({}, {"ack_splits": 5}):
        stack = {"initial_ssthresh": 10, "delayed_ack": False, "count_acks": counts_acks, **splits}
        scenario = {
            "duration": "20 s",
            "network": {"bottleneck": link},
            "flows": [{"congestion_control": "reno", "stack": stack}],
        }
        made.append(ackclock.run(ackclock.Scenario.from_dict(scenario), seed=1).flows)
    honest, cheated = made
    assert cheated["goodput_bps"][0] == pytest.approx(honest["goodput_bps"][0], rel=0.01)
    assert cheated["acks_received"][0] > 4.5 * honest["acks_received"][0]


def test_hidden_marks_are_never_obeyed() -> None:
    queue = {"kind": "codel", "ecn": True}
    honest, cheated = (run(c, seconds=60, queue=queue, stack={"ecn": "ask"}) for c in ({}, {"hide_marks": True}))
    assert 0.7 < honest.flows["goodput_bps"][1] / honest.flows["goodput_bps"][0] < 1.4
    assert cheated.flows["goodput_bps"][1] > 3 * cheated.flows["goodput_bps"][0]


def test_optimistic_acks_take_from_an_honest_flow_and_lose_data() -> None:
    fair = run({}).flows["goodput_bps"]
    concealed = run({"optimistic_acks": 0.0}).flows
    ahead = run({"optimistic_acks": 0.5}).flows
    assert 0.7 < fair[1] / fair[0] < 1.4
    for flows in (concealed, ahead):
        assert flows["goodput_bps"][1] > 3 * flows["goodput_bps"][0]
        assert flows["retransmissions"][1] < flows["retransmissions"][0]
    # lost segments are not goodput, although the receiver acknowledged them
    delivered = concealed["goodput_bps"][1] * 20 / 8
    assert delivered < concealed["sent_packets"][1] * 1448


def test_an_optimist_does_not_stall() -> None:
    """The sender ignores ACKs beyond what it sent; the retransmission that follows is acknowledged honestly."""
    for share in (0.1, 0.5, 1.0):
        made = run({"optimistic_acks": share}, workload={"kind": "transfer", "bytes": "1 MB"})
        assert made.flows["completion_s"].is_finite().all()
