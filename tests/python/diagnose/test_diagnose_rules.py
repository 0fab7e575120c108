"""Tests for diagnosis rules, each on the drawn scenario that made it necessary.

Length: each test makes its own capture.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from conftest import tool
from test_diagnose_queue import BASE, MSS, passed

import ackclock
from ackclock.diagnose import diagnose
from ackclock.diagnose._path import _rate, estimate
from ackclock.diagnose._replay import replay
from ackclock.diagnose._unseen import UNSEEN
from ackclock.diagnose._waits import Instant
from ackclock.fidelity.drawn import drawn


def measured(kind: str, number: int, way: str, seed: int = 9412) -> dict[str, Any]:
    """Return the findings of `tools/diagnosed.py` for a drawn scenario."""
    given = list(drawn(seed, **{"transfers": 0, "bulks": 0, "lossy": 0, kind: number + 1}))[number]
    scenario = given.scenario if kind == "transfers" else given.scenario.set("duration", "6 s")
    row: dict[str, Any] = tool("diagnosed").one(given.kind, given.name, scenario, way, seed)
    return row


def shipped(name: str, way: str, duration: str, seed: int = 9600) -> dict[str, Any]:
    """Return the findings of `tools/diagnosed.py` for a shipped scenario."""
    row: dict[str, Any] = tool("diagnosed").one(
        "shipped", name, ackclock.load(name).set("duration", duration), way, seed
    )
    return row


@pytest.mark.parametrize(
    ("number", "way", "seed"), [(38, "receiver", 9412), (2, "offload", 9203)], ids=["receiver", "offload"]
)
def test_a_probe_leaves_when_the_timer_of_the_first_in_flight_would_be_due(number, way, seed):
    """Regression: an ACK rearms the timer, but does not change the time from which it counts. 4 % of the time was
    attributed to the application or to the congestion window.
    """
    assert measured("transfers", number, way, seed)["limits_off"] < 0.01


def test_a_whole_capture_at_the_sender_has_missed_no_acks(tmp_path):
    """A tail loss probe, and a write after a short packet, are sent without an ACK."""
    for name, scenario in {
        "probe": list(drawn(9412, transfers=39, bulks=0, lossy=0))[38].scenario,
        "write": ackclock.load("throttled"),
    }.items():
        path = tmp_path / f"{name}.pcapng"
        ackclock.run(scenario, pcap=path, snaplen=96, seed=9412 if name == "probe" else 9600)
        assert not any("has missed" in note for note in diagnose(path).notes), name


def test_a_full_queue_drops_the_end_of_what_an_ack_has_released_during_a_repair_too():
    """Regression: 4.4 % of the time was attributed to loss repair, which ends once the data in flight at its start is acknowledged."""
    assert measured("lossy", 37, "receiver")["limits_off"] < 0.005


def test_repairs_of_a_gap_leave_one_with_each_ack():
    """Regression: each of the first ACKs released two segments, and five segments were counted as premature retransmissions."""
    row = shipped("choke", "receiver", duration="10 s")
    assert (row["lost"], row["lost_too_many"], row["lost_too_few"]) == (93, 0, 0)


def test_an_ack_that_no_packet_echoes_was_lost_on_its_way_to_the_sender():
    """Regression: 3.9 % of the time was reported as idle, because the receiver saw nothing in flight."""
    assert shipped("throttled", "receiver", duration="10 s")["limits_off"] < 0.005


def test_the_base_round_trip_at_the_receiver_is_one_that_it_shows():
    """Regression: the base RTT was 1 % too short, because a packet was attributed to a later ACK of the same tick."""
    row = measured("bulks", 39, "receiver")
    assert row["base_off"] == pytest.approx(0, abs=1e-6)
    assert row["queue_off"] == pytest.approx(0, abs=1e-3)


def test_what_was_lost_behind_the_bottleneck_has_passed_it():
    """Without the lost packet, later ones do not show that the previous ACKs were late, here by a millisecond. In a
    drawn scenario, the queue came out 3.9 % too long.
    """
    each = 0.002  # a segment's transmission time exceeds any ACK delay
    late = [(0.0, BASE + each * n + 0.001) for n in range(10)]
    behind = [(0.015, BASE + each * 11 + 0.001), (0.015, BASE + each * 12)]
    told = passed(*late, (0.0, None), *behind).waits(base=BASE, rate=8 * MSS / each, mss=MSS)
    assert told.longest == pytest.approx(each * 9)
    for number, seed in ((39, 9412), (3, 20261231)):  # in the second scenario, ACKs are one segment later
        assert measured("bulks", number, "cut to 96 bytes", seed)["queue_off"] == pytest.approx(0, abs=1e-3), number


def test_what_came_behind_the_last_ack_that_was_not_held_back_tells_no_queue():
    """Regression: the capture ends during loss recovery. All ACKs in it were delayed by a millisecond, 2.2 % of this queue."""
    assert measured("bulks", 18, "cut to 96 bytes", 20261229)["queue_off"] == pytest.approx(0, abs=1e-3)


def test_two_losses_of_many_by_chance_are_no_full_queue_at_the_receiver():
    """Departure times have one-tick resolution, so two of 22 packets seemed to have been dropped by a full queue at a
    burst's peak. The queue was never full.
    """
    row = measured("lossy", 28, "receiver", 20261229)
    assert row["full"] == 0
    assert "queue_off" not in row
    assert row["queue_bound_off"] < 0


def test_each_repair_of_a_packet_of_several_segments_has_its_own_size():
    """Regression: only the last piece was used, as if it were the whole packet. The result was 8.5 % too short, because a single segment
    had waited longest.
    """
    assert measured("bulks", 66, "offload")["queue_off"] == pytest.approx(0, abs=1e-3)


def test_a_queue_in_the_senders_host_is_not_told_from_a_pace(tmp_path):
    path = tmp_path / "host.pcapng"
    ackclock.run(ackclock.load("host-queue").set("duration", "3 s"), pcap=path, snaplen=96)
    found = diagnose(path)
    assert found.unqueued
    assert "a queue in the sender's host" in found.sentence
    assert any("tc -s qdisc" in note for note in found.notes)
    queued = tmp_path / "queued.pcapng"
    ackclock.run(
        list(drawn(9203, transfers=0, bulks=0, lossy=28))[27].scenario.set("duration", "3 s"), pcap=queued, snaplen=96
    )
    found = diagnose(queued)
    assert found.paced
    assert not found.unqueued
    assert "host" not in found.sentence


def test_a_capture_that_was_killed_says_so(tmp_path):
    path = tmp_path / "whole.pcapng"
    ackclock.run(ackclock.load("first").set("duration", "2 s"), pcap=path, snaplen=96)
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes(path.read_bytes()[:-10])
    assert not any("within a frame" in note for note in diagnose(path).notes)
    assert any("within a frame" in note for note in diagnose(cut).notes)


def test_an_ack_that_is_inferred_has_no_round_trip():
    """The bytes acknowledged by this ACK are a guess; half an RTT would become the base RTT of all packets."""
    schema = ["t_s", "from_server", "kind", "seq", "length", "ack", "window", "flags", "timestamp", "echo", "ip_id"]

    def rows(kind: str) -> pl.DataFrame:
        own = [(0.001 * n, False, "data", 1 + 1000 * n, 1000, 1.0, 65535, 16, 0, 0, 0) for n in range(4)]
        acks = [
            (0.05, True, kind, 1, 0, 2001.0, 65535, 16, 0, 0, 0),
            (0.102, True, "ack", 1, 0, 3001.0, 65535, 16, 0, 0, 0),
        ]
        return pl.DataFrame([*own, *acks], schema=schema, orient="row")

    def trips(kind: str) -> list[float]:
        return [now.rtt for now in replay(rows(kind), server=False, mss=1000).instants if now.rtt is not None]

    assert trips("ack") == pytest.approx([0.049, 0.1])
    assert trips(UNSEEN) == pytest.approx([0.1])


def test_a_partial_ack_that_brings_a_new_block_delivers_both():
    """Each byte is delivered once, when it is first reported: an ACK that covers old blocks does not deliver them again."""
    schema = ["t_s", "from_server", "kind", "seq", "length", "ack", "window", "flags"]
    own = [(0.0001 * n, False, "data", 1 + 1000 * n, 1000, 1.0, 65535, 16) for n in range(10)]
    again = [(0.0501, False, "retransmission", 1, 1000, 1.0, 65535, 16)]

    def told(t: float, ack: int, *blocks: tuple[int, int]) -> list[tuple[float, bool, str, int, int, float, int, int]]:
        start = [(t, True, "sack", 1 + 1000 * a, 1000 * (b - a), 1.0 + 1000 * ack, 65535, 16) for a, b in blocks]
        return [(t, True, "ack", 1, 0, 1.0 + 1000 * ack, 65535, 16), *start]

    # the second ACK fills the hole below 2..4, which had been reported, still reports 6..7, and adds 8..9
    heard = [*told(0.05, 0, (2, 4), (6, 7)), *told(0.1, 4, (8, 9), (6, 7)), *told(0.15, 8, (8, 9)), *told(0.2, 10)]
    packets = pl.DataFrame(sorted([*own, *again, *heard], key=lambda row: row[0]), schema=schema, orient="row")
    found = replay(packets, server=False, mss=1000)
    assert [now.acked for now in found.instants if now.acked] == [3000, 3000, 3000, 1000]
    assert sum(found.carried.values()) == 10_000


def transfer(**changes: object) -> ackclock.Scenario:
    """Send 20 MB over a 100 Mbit/s, 70 ms path, which takes 2.1 s."""
    return ackclock.Scenario.from_dict(
        {
            "name": "transfer",
            "duration": "30 s",
            "network": {
                "bottleneck": {
                    "rate": "100 Mbit/s",
                    "delay": "35 ms",
                    "queue": {"kind": "drop-tail", "limit": "400 packets"},
                }
            },
            "flows": [{"workload": {"kind": "transfer", "bytes": "20 MB"}}],
        }
    ).set_all(dict(changes))


def test_a_window_that_chance_keeps_small_is_no_full_path(tmp_path):
    """Regression: the entire diagnosis of a 9 Mbit/s transfer was `A queue stood, and the path carries 97 Mbit/s`."""
    path = tmp_path / "loss.pcapng"
    scenario = transfer(**{"network.bottleneck.loss": {"kind": "bernoulli", "p": 0.001}})
    ackclock.run(scenario, seed=5, pcap=path, snaplen=96)
    found = diagnose(path)
    assert "the transfer used 9 % of the 96.533 Mbit/s that the path carries" in found.sentence
    assert "12 of 13 segments sent again had met an empty queue" in found.sentence
    assert found.path is not None
    slower = sum(cause.lost_bytes or 0.0 for cause in found.causes) * 8 / (found.path.rate_bps or 1.0)
    without = ackclock.run(transfer(), seed=5).rows("flows")[0]["completion_s"]
    took = ackclock.run(scenario, seed=5).rows("flows")[0]["completion_s"]
    assert slower == pytest.approx(took - without, rel=0.05)


def test_a_send_buffer_is_not_told_from_a_window_that_does_not_grow(tmp_path):
    path = tmp_path / "buffer.pcapng"
    ackclock.run(transfer(**{"flows.0.stack.send_buffer": "256 KiB"}), pcap=path, snaplen=96)
    found = diagnose(path)
    assert found.level
    assert "the congestion window or the send buffer" in found.sentence
    assert any("sndbuf_limited" in note for note in found.notes)
    ackclock.run(transfer(**{"flows.0.stack.receive_buffer": "512 KiB"}), pcap=path, snaplen=96)
    assert not diagnose(path).level
    ackclock.run(transfer(**{"network.bottleneck.rate": "10 Mbit/s"}), pcap=path, snaplen=96)
    assert not diagnose(path).level


def test_the_bound_of_a_queue_is_lower_where_a_capture_has_missed_packets(tmp_path):
    """The bound is lower by the serialisation time of 16 segments, because an ACK may report a packet that the capture missed."""
    path = tmp_path / "thinned.pcapng"
    given = list(drawn(9412, transfers=0, bulks=48, lossy=0))[47].scenario.set("duration", "6 s")
    ackclock.run(given, seed=9412, pcap=path, snaplen=96)
    tool("diagnosed").thinned(path, 9412)
    found = diagnose(path)
    assert found.missed > 0
    assert found.path is not None
    assert found.path.queue_bound
    assert found.replay is not None
    whole = estimate(found.replay, mss=found.mss, header=52)
    assert whole.queue_s is not None
    assert found.path.queue_s == pytest.approx(whole.queue_s - 16 * found.mss / (found.path.rate_bps or 1.0))


@pytest.mark.parametrize(("name", "way"), [("game-ticks", "cut to 96 bytes"), ("nagle-stall", "offload")])
def test_writes_of_one_small_size_are_no_full_segments(name, way):
    """Regression: their common length was treated as the segment size, and 97 % of the time was attributed to a window or to pacing."""
    assert shipped(name, way, "12 s")["limits_off"] < 0.01


def test_nagles_algorithm_is_named(tmp_path):
    path = tmp_path / "stall.pcapng"
    ackclock.run(ackclock.load("nagle-stall").set("duration", "12 s"), pcap=path, snaplen=96)
    answer = diagnose(path).answer
    assert answer is not None
    assert answer.where == "application"
    assert "Nagle" in answer.what
    assert "TCP_NODELAY" in answer.helps


@pytest.mark.parametrize(
    ("fast", "exact"), [(1.09, True), (2.0, False)], ids=["ACKs that bunch", "a pace below the path"]
)
def test_a_round_trip_above_the_rate_is_bunching_unless_the_next_one_is_too(fast, exact):
    """Regression: one round trip of ACKs at 106 % made the answer "at least 20.3 Mbit/s" on a path of 19.1."""
    t, instants = 0.0, [Instant(0.0, room=10**6)]
    for i in range(3000):
        turn = i % 56 if exact else i
        speed = fast if turn < (28 if exact else 150) else (2 - fast if exact else 1.0)
        t += 1.2e-3 / speed
        rtt = 0.032 if i < 3 else 0.045
        instants.append(
            Instant(t, acked=2896, delivered=2896 * (i + 1), una=2896 * i, nxt=2896 * (i + 40), rtt=rtt, room=10**6)
        )
    rate, told = _rate(SimpleNamespace(instants=instants), 0.032, 1448)
    assert told is exact
    assert rate == pytest.approx(8 * 2896 / 1.2e-3 * (1.0 if exact else fast), rel=0.03)
