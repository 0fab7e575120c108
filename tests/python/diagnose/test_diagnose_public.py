"""Tests for findings in public captures, reproduced with handmade packets."""

from __future__ import annotations

import polars as pl
from test_diagnose_strange import ACK, PSH, SYN, Hand, frames, mss, written

from ackclock.diagnose import diagnose
from ackclock.diagnose._numbers import numbered
from ackclock.diagnose._shift import as_sent
from ackclock.formats import read_capture


def flight(hand: Hand, t: float, seq: int, count: int, window: int = 60_000) -> int:
    """Send full segments 1 ms apart, the last one acknowledged."""
    for _ in range(count):
        hand.add(t, 0, seq, 1, 1448, window, ACK)
        seq += 1448
        t += 1e-3
    return seq


def opened(hand: Hand, rtt: float) -> None:
    hand.add(0.0, 1, 0, 0, 0, 60_000, SYN, mss(1460))
    hand.add(rtt * 0.4, 0, 0, 1, 0, 60_000, SYN | ACK, mss(1460))
    hand.add(rtt, 1, 1, 1, 0, 60_000, ACK)


def test_more_in_flight_than_the_window_allows_is_no_flight(tmp_path):
    """Regression: for a capture without ACKs, a first flight of 631,165 bytes was printed next to a window of 65,535."""
    hand = Hand()
    opened(hand, 0.02)
    flight(hand, 0.03, 1, 200)
    found = diagnose(hand.write(tmp_path / "a.pcap"))
    told = " ".join(found.notes)
    assert found.refused
    assert "first flight" not in told
    assert "the receiver's window allows 60,000: the file lacks ACKs" in told


def test_numbers_within_packets_of_a_card_count_nothing():
    """Regression: a host that writes IP ID 0 numbers each packet's segments from 0, and gaps between the numbers were counted as losses."""
    at = [0, 3, 0, 2, 5, 0, 3, 4, 0, 2, 0, 2, 3]
    rows = [
        (0.001 * i, True, "data", 1 + 1448 * i, 1448, 1.0, 65_535, ACK, 0, 0, number) for i, number in enumerate(at)
    ]
    assert numbered(rows, 1448) is None


def test_both_ends_in_one_host_are_seen_at_the_sender(tmp_path):
    hand = Hand()
    opened(hand, 4e-5)
    seq, t, said = 1, 1e-4, 1
    for _ in range(20):
        hand.add(t, 1, said, seq, 100, 60_000, ACK | PSH)
        said += 100
        hand.add(t + 5e-4, 0, seq, said, 900, 60_000, ACK | PSH)
        seq += 900
        hand.add(t + 5.2e-4, 1, said, seq, 0, 60_000, ACK)
        t += 6e-4
    rows = frames(hand.write(tmp_path / "b.pcap"))
    alone = [(t, frame[:26] + b"\x7f\0\0\1\x7f\0\0\1" + frame[34:], whole) for t, frame, whole in rows]
    found = diagnose(written(tmp_path / "c.pcap", alone))
    assert found.at == "sender"
    assert found.answer is not None
    assert found.answer.where == "application", (found, found.causes)


def test_a_proxy_near_the_sender_is_named(tmp_path):
    hand = Hand()
    hand.add(0.0, 0, 0, 0, 0, 60_000, SYN, mss(1460))
    hand.add(0.2, 1, 0, 1, 0, 60_000, SYN | ACK, mss(1460), ttl=50)
    hand.add(0.20001, 0, 1, 1, 0, 60_000, ACK)
    t, seq = 0.21, 1
    for _ in range(60):
        hand.add(t, 0, seq, 1, 1448, 60_000, ACK | PSH)
        seq += 1448
        hand.add(t + 2e-5, 1, 1, seq, 0, 60_000, ACK, ttl=50)
        t += 5e-3
    found = diagnose(hand.write(tmp_path / "a.pcap"))
    assert found.at == "sender"
    assert "a proxy" in " ".join(found.notes)


def test_a_short_silence_behind_a_queue_is_no_timer(tmp_path):
    """Regression: a pause of two empty-path RTTs, shorter than the RTT at that time, led to losses being reported in a clean transfer."""
    rows, t, stamp = [], 0.0, 1000
    for i in range(120):
        server = i % 2 == 1
        ack = 1.0 + 1448 * (i // 2)
        waits = 0.002 if i < 20 else 0.05
        if server:
            row = (t, True, "data", 1 + 1448 * (i // 2), 1448, 1.0, 65_535, ACK, stamp, stamp, 0)
        else:
            stamp = 1000 + round(t * 1000)
            row = (t, False, "ack", 1, 0, ack, 65_535, ACK, stamp, stamp, 0)
        rows.append(row)
        t += waits if not server else 1e-4
    names = read_capture_schema(tmp_path)
    packets = pl.DataFrame(rows, schema=names, orient="row")
    turned = as_sent(packets, server=True, mss=1448)
    assert turned is not None
    assert turned.packets.filter(pl.col("kind") == "retransmission").is_empty()


def read_capture_schema(folder) -> pl.Schema:
    hand = Hand()
    opened(hand, 0.02)
    flight(hand, 0.03, 1, 3)
    packets = read_capture(hand.write(folder / "schema.pcap"), connection=0).packets
    assert packets is not None
    return packets.schema
