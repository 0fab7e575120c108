"""Tests for conclusions from round trips at any capture point, each on a few handmade packets: flights, late ACKs, a
queue on the path.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

from ackclock.diagnose._rows import rows_of
from ackclock.diagnose._seen import seen
from ackclock.diagnose._trips import Trips, flights, late, queued, trips

MSS, TRIP = 1448, 0.05

Row = tuple[float, bool, str, int, int, float | None, int, int, int, int]


def frame(rows: list[Row]) -> pl.DataFrame:
    names = ("t_s", "from_server", "kind", "seq", "length", "ack", "window", "flags", "timestamp", "echo")
    return pl.DataFrame(rows, schema=names, orient="row").with_columns(pl.col("ack").cast(pl.Float64))


def handshake() -> Iterator[Row]:
    yield (0.0, False, "syn", 0, 0, None, 65_535, 2, 1, 0)
    yield (TRIP, True, "syn", 0, 0, 1.0, 65_535, 18, 1, 1)
    yield (TRIP, False, "ack", 1, 0, 1.0, 1 << 20, 16, 1, 1)


def flown(
    *, apart: float = TRIP, count: int = 20, segments: int = 10, last: int = MSS, wait: float = 0.0
) -> pl.DataFrame:
    """Return flights at the receiver, each acknowledged at once or after a delay."""
    rows, seq = list(handshake()), 1
    for i in range(count):
        begin = 2 * TRIP + i * apart
        for j in range(segments):
            length = last if j == segments - 1 else MSS
            rows.append((begin + j * 1e-4, True, "data", seq, length, 1.0, 65_535, 16, 0, 0))
            seq += length
        rows.append((begin + segments * 1e-4 + wait, False, "ack", 1, 0, float(seq), 1 << 20, 16, 0, 0))
    return frame(rows)


def row(**given: Any) -> dict[str, Any]:
    usual = {
        "bytes": 289_600, "handshake_rtt_s": TRIP, "zero_windows": 0, "retransmitted": 0, "lost": 0, "segments": 200, "first_flight": 14_480,
        "captured_at": "client", "way": "server", "timestamps": False, "most_window": 1 << 20, "most_in_flight": 1 << 16,
    }  # fmt: skip
    return usual | given


def test_round_trips_to_both_sides_are_those_of_the_handshake() -> None:
    packets = flown()
    assert trips(packets, server=True) == Trips(back=TRIP, ahead=0.0)
    assert trips(packets, server=False) == Trips(back=0.0, ahead=TRIP)
    assert trips(packets.tail(-1), server=True) is None


def test_a_silence_that_an_ack_ends_is_the_senders_and_one_with_acks_in_it_is_free() -> None:
    clocked = flights(flown(apart=TRIP + 1e-3), server=True, mss=MSS, back=TRIP)
    assert clocked.held > 0.9 * 19 * TRIP
    assert clocked.free == 0.0
    assert set(clocked.sizes) == {10 * MSS}
    slower = flights(flown(apart=3 * TRIP), server=True, mss=MSS, back=TRIP)
    assert slower.held == 0.0
    assert slower.free > 2 * 19 * TRIP


@pytest.mark.parametrize(
    ("last", "lost", "where", "told"),
    [
        (MSS, 0, "server", "nothing was lost, and the client's window had room"),
        (700, 0, "server", "its program or its send buffer gave no more at a time"),
        (MSS, 1, "not told", "does not show"),
    ],
)
def test_flights_with_silence_between_are_told_at_a_receiver_without_timestamps(
    last: int, lost: int, where: str, told: str
) -> None:
    """Regression: a download of 15 s from Windows over 306 ms with a flight in each round trip was diagnosed as "no conclusion"."""
    packets = flown(apart=TRIP + 1e-3, last=last)
    _, found = seen(packets, row(lost=lost), server=True, mss=MSS, window="known")
    assert found.where == where
    assert told in found.what


def test_acks_that_come_late_are_the_receivers() -> None:
    """Regression: for half of the time, a client on a 0.6 ms path acknowledged four segments 93 ms after the last one's arrival."""
    waited, times = late(flown(apart=0.3, wait=0.2), server=True, mss=MSS, passes=Trips(back=TRIP, ahead=0.0))
    assert waited == pytest.approx(20 * 0.201, rel=0.01)
    assert times == 20
    single = flown(apart=0.3, wait=0.2, segments=1)  # a delayed ACK waits for the second segment
    assert late(single, server=True, mss=MSS, passes=Trips(back=TRIP, ahead=0.0)) == (0.0, 0)
    _, found = seen(flown(apart=0.3, wait=0.2), row(), server=True, mss=MSS, window="known")
    assert (found.where, found.sure) == ("client", "likely")
    assert "acknowledged late" in found.what


@pytest.mark.parametrize("behind", [0.02, 0.001])
def test_what_does_not_echo_an_ack_that_passed_long_ago_stood_in_a_queue(behind: float) -> None:
    """Regression: on a 15 ms path, data constantly arrived 33 ms after the ACKs that released it, at 17 Mbit/s, and
    the diagnosis was "ACKs were on their way for times that vary".
    """
    rows, seq, step = list(handshake()), 1, 2e-3
    for i in range(1000):
        t = 2 * TRIP + i * step
        more = behind if i >= 100 else 0.0  # the queue is empty at first
        heard = max(round((t - TRIP - more) / step), 1)  # timestamp of the latest ACK that the sender had received
        rows.append((t, True, "data", seq, MSS, 1.0, 65_535, 16, 1, heard))
        seq += MSS
        rows.append((t + 1e-5, False, "ack", 1, 0, float(seq), 1 << 20, 16, round(t / step) + 1, 1))
    packets = frame(rows)
    stood, rate = queued(packets, server=True, back=TRIP)
    if behind < 0.0125:
        assert rate == 0.0
    else:
        assert stood > 1.7
        assert rate == pytest.approx(8 * MSS / step, rel=0.02)
        _, found = seen(packets, row(timestamps=True), server=True, mss=MSS, window="known")
        assert found.where == "network"


def test_rows_are_those_of_the_frame():
    made = pl.DataFrame({"t": [0.5, None, 2.0], "kind": ["data", "ack", "sack"], "own": [True, False, True]})
    whole = pl.concat([made] * 7_000)
    assert list(rows_of(whole)) == whole.rows()
    assert list(rows_of(made.clear())) == []
