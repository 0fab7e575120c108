"""Tests for queueing delay, losses at a full queue, and the bottleneck rate."""

from __future__ import annotations

import math
import random

import pytest
from conftest import tool
from test_diagnose import captured

import ackclock
from ackclock.diagnose import diagnose
from ackclock.diagnose._passed import Passed
from ackclock.diagnose._path import _agreed, _rate
from ackclock.diagnose._replay import Replay
from ackclock.diagnose._waits import Instant
from ackclock.fidelity.drawn import drawn

RATE, MSS, BASE = 8e6, 1000, 0.1
"""Rate in bit/s, segment size in bytes and base RTT in s, so that serialising a segment takes a millisecond."""


def passed(*packets: tuple[float, float | None], size: int = MSS) -> Passed:
    """Return packets with these departure times and ACK times; identical ACK times mean a single ACK."""
    made = Passed()
    for left, _ in packets:
        made.add(left, size)
    delivered = 0
    for t in sorted({told for _, told in packets if told is not None}):
        numbers = [n for n, (_, told) in enumerate(packets) if told == t]
        delivered += size * len(numbers)
        made.tell(numbers, t, delivered)
    made.lost.extend(n for n, (_, told) in enumerate(packets) if told is None)
    return made


def longest(*packets: tuple[float, float | None], size: int = MSS) -> float:
    return passed(*packets, size=size).waits(base=BASE, rate=RATE, mss=MSS).longest


def test_a_wait_is_that_of_the_ack_with_the_least_delay():
    exact = [(0.0, 0.101), (0.0, 0.101), (0.0, 0.103), (0.0, 0.103)]
    assert longest(*exact) == pytest.approx(0.003)
    late = [(0.0, 0.1015), (0.0, 0.1015), (0.0, 0.1045), (0.0, 0.1045), (0.001, 0.105), (0.001, 0.105)]
    assert longest(*late) == pytest.approx(0.004)  # the last two show that the preceding ACKs were delayed less


def test_an_ack_that_was_held_back_tells_of_no_queue():
    assert longest((0.0, 0.101), (0.0, 0.101), (0.0, 0.142)) == pytest.approx(0.002)  # an ACK delayed by a timer
    pair = [(0.0, 0.101), (0.0, 0.101), (0.0, 0.15), (0.05, 0.15)]  # the first waits for the second
    assert longest(*pair) == pytest.approx(0.002)


def test_what_came_behind_a_later_one_is_not_looked_at():
    """The ACK belongs to the packet's retransmission, which is missing from the capture."""
    assert longest((0.0, 0.101), (0.0, 0.3), (0.0, 0.3), (0.001, 0.102), (0.001, 0.102)) < 0.01


def test_a_packet_of_several_segments_takes_the_time_of_each():
    assert longest((0.0, 0.101), (0.0, 0.103), size=2 * MSS) == pytest.approx(0.002)


def test_what_a_full_queue_has_dropped_would_have_waited_longer_than_all_that_came():
    full = passed(*[(0.0, 0.101), (0.0, 0.101), (0.0, 0.103), (0.0, 0.103)], (0.0, None))
    assert full.waits(base=BASE, rate=RATE, mss=MSS).beyond == pytest.approx([1.0])
    chance = passed((0.0, 0.101), (0.0, 0.101), (0.0, None), (0.0, 0.103), (0.0, 0.103))
    assert chance.waits(base=BASE, rate=RATE, mss=MSS).beyond == pytest.approx([-1.0])


def scenario(kind: str, number: int, **stack: object) -> ackclock.Scenario:
    one = list(drawn(9203, **{"transfers": 0, "bulks": 0, "lossy": 0, kind: number + 1}))[number].scenario
    one = one if kind == "transfers" else one.set("duration", "6 s")
    return one.set("flows.0.stack", stack) if stack else one


@pytest.mark.parametrize(
    ("kind", "number", "stack"),
    [
        ("bulks", 49, {}),
        ("bulks", 1, {}),
        ("lossy", 2, {}),
        ("bulks", 4, {"tso": True}),
        ("lossy", 38, {"tso": True}),
    ],
    ids=["a delayed ACK", "SACK told late", "the same, 17 packets", "packets of several segments", "the same, random"],
)
def test_the_queue_of_scenarios_that_nobody_chose(tmp_path, kind, number, stack):
    """Regression: the length was 3 to 20 % off."""
    run, path = captured(tmp_path, scenario(kind, number, **stack))
    found = diagnose(path)
    assert found.path is not None
    assert not found.path.queue_bound
    assert found.path.queue_s == pytest.approx(run.rows("links")[0]["max_wait_s"], rel=1e-3)


def test_two_losses_by_chance_are_no_full_queue(tmp_path):
    """The receive window keeps the queue at a constant length, and a script drops packets from it."""
    run, path = captured(tmp_path, scenario("bulks", 6, tso=True))
    assert run.rows("links")[0]["dropped_queue"] == 0
    found = diagnose(path)
    assert found.path is not None
    assert found.path.queue_bound
    assert found.path.queue_s < run.rows("links")[0]["max_wait_s"]


@pytest.mark.parametrize(("kind", "number"), [("lossy", 9), ("bulks", 33)])
def test_a_queue_is_not_what_a_capture_lacks(tmp_path, kind, number):
    """Regression: 1 % of the capture's packets are removed. Retransmissions without their preceding ACK made the queue seem three times as long."""
    run, path = captured(tmp_path, scenario(kind, number))
    tool("diagnosed").thinned(path, 9203)
    found = diagnose(path)
    assert found.path is not None
    least = found.path.queue_s or math.inf
    assert least == pytest.approx(run.rows("links")[0]["max_wait_s"], rel=0.02)


def test_a_paced_sender_at_the_receiver_has_a_bound(tmp_path):
    """A packet may have been sent at any time within its timestamp tick."""
    run, path = captured(tmp_path, scenario("lossy", 27), at="receiver")
    found = diagnose(path)
    assert found.paced
    assert found.path is not None
    assert found.path.queue_bound
    assert found.path.queue_s <= run.rows("links")[0]["max_wait_s"]


def test_where_half_of_the_pieces_agree_they_have_the_rate():
    slow, right, late = [(8.0, 300)], [(10.0, 200), (10.001, 200), (10.002, 200)], [(12.0, 300)]
    assert _agreed([*slow, *right, *late], 1200)[0] == pytest.approx(10.001)
    few = [(9.5, 200), (9.5, 200), (9.7, 200), (10.0, 200), (10.3, 200)]  # some repetitions lack the lost segments
    assert _agreed(few, 1000)[0] == pytest.approx(10.0)


@pytest.mark.parametrize("seed", range(5))
def test_acks_that_jitter_do_not_raise_the_rate(seed):
    """Regression: ACKs that a busy machine passes on late and together made the rate 2 % too high, or the bound too high."""
    draw = random.Random(seed).random
    instants, stalled = [], 0.0
    for n in range(4000):
        due = 1.0 + n * 8 * MSS / RATE
        if draw() < 0.1:
            stalled = max(stalled, due + 0.02 * draw())
        una = 1 + n * MSS
        at = max(due, stalled)
        instants.append(
            Instant(
                t=at, acked=MSS, heard=True, una=una, nxt=una + 90 * MSS, room=MSS * 1000, rtt=3 * BASE, delivered=una
            )
        )
    rate, identified = _rate(Replay(instants=instants, causes=[], seconds={}, carried={}), BASE, MSS)
    assert identified
    assert rate == pytest.approx(RATE, rel=0.02)


def test_the_rate_behind_acks_that_come_together(tmp_path):
    """Regression: the rate was 0.6 % too high."""
    one = tool("identified").drawn(9101, "fast", 10)
    _, path = captured(tmp_path, one)
    found = diagnose(path)
    assert found.path is not None
    assert found.path.identified
    rate = ackclock.units.whole(one.network.bottleneck.rate, ackclock.units.RATE)
    assert found.path.wire_bps == pytest.approx(rate, rel=1e-3)


@pytest.mark.parametrize(("kind", "number"), [("lossy", 9), ("lossy", 37), ("transfers", 5), ("transfers", 48)])
def test_what_was_lost_left_with_the_ack_that_released_it(tmp_path, kind, number):
    """Regression: receiver-side captures lack the end of a burst or transfer, and 1.1 to 4.1 % of the time was attributed to another cause."""
    one = scenario(kind, number).set("record.limits_interval", "5 ms")
    path = tmp_path / "transfer.pcapng"
    run = ackclock.run(one, pcap=path, pcap_at="receiver", snaplen=96, seed=9203)
    found = diagnose(path)
    diagnosed = tool("diagnosed")
    truth = diagnosed._as_far(run, 0, found, diagnosed.held(run.rows("flows")[0]))
    life = sum(truth.values())
    assert found.replay is not None
    off = {cause: abs(found.replay.seconds[cause] - seconds) / life for cause, seconds in truth.items()}
    assert max(off.values()) < 0.005, off


def test_short_segments_are_compared_by_where_they_begin():
    """Regression: two short segments fit into the length of a full one. Counted as one segment, they made the second
    one's loss number differ from that in the capture.
    """
    import polars as pl

    class Run:
        acks = pl.DataFrame(
            {
                "flow": [0, 0, 0],
                "event": ["send", "send", "rtx"],
                "seg_no": [1, 2, 2],
                "rexmit": [0, 0, 1],
                "seq": [1, 101, 101],
                "len": [100, 100, 100],
            }
        )

    made = tool("diagnosed")._segments(Run, 0, 1448, {(2, 0): 100})
    assert made == {(101, 0)}
