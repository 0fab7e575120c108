"""Tests for diagnosis rules prompted by Linux kernel captures, each on a few handmade instants or packets."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from ackclock.diagnose._answer import Answer
from ackclock.diagnose._push import marks_tell
from ackclock.diagnose._seen import _quiet, _stalled, without_some
from ackclock.diagnose._segment import full_segment
from ackclock.diagnose._shift import _beside
from ackclock.diagnose._waits import (
    Instant,
    causes_of,
    holds_small_back,
    is_buffered,
    is_paced,
    with_buffer,
    with_small,
)

MSS = 1448


def packets(lengths: list[int], flags: list[int] | None = None, apart: float = 0.01) -> pl.DataFrame:
    """Return a server's data packets, each in a separate burst and timestamp tick."""
    count = len(lengths)
    return pl.DataFrame(
        {
            "t_s": [apart * i for i in range(count)],
            "from_server": [True] * count,
            "kind": ["data"] * count,
            "length": lengths,
            "flags": flags or [0x10] * count,
            "timestamp": list(range(1, count + 1)),
            "echo": list(range(1, count + 1)),
        }
    )


def test_a_segment_of_all_that_was_announced_is_full_whatever_is_commoner():
    """Regression: with Nagle and writes of 200 bytes, 600 bytes was the commonest length, and 60 % of the time was attributed to the congestion window."""
    some = packets([600] * 50 + [MSS] * 5)
    assert full_segment(some, True, MSS + 12) == MSS
    assert full_segment(some, True, 8960) == 600
    assert full_segment(packets([600] * 50 + [MSS]), True, MSS + 12) == 600  # a single segment may contain two writes


def test_what_a_receiver_has_joined_says_nothing_of_the_senders_marks():
    """Regression: GRO joins packets up to a mark or a timeout. Half of the packets were marked, so the mark was treated as the end of a write."""
    joined = packets([2 * MSS, 3 * MSS] * 30, [0x18, 0x18, 0x10, 0x18] * 15)
    assert not marks_tell(joined, server=True, mss=MSS, apart=None)
    cut = packets([2 * MSS, 3 * MSS] * 30, [0x10, 0x10, 0x10, 0x18] * 15)
    assert marks_tell(cut, server=True, mss=MSS, apart=1e-4)
    few = packets([2 * MSS] * 6, [0x18] * 6)  # a short transfer by a host that marks each packet of several segments
    assert not marks_tell(few, server=True, mss=MSS, apart=1e-4)


def test_one_length_of_several_segments_does_not_show_that_a_path_takes_less():
    """Regression: 1,677-byte writes were handed to the NIC whole. A third of that length, 559, was treated as a
    segment, and 98 % of the time was attributed to the congestion window.
    """
    assert full_segment(packets([10 * MSS] + [1677] * 50), True, MSS + 12) == MSS
    assert full_segment(packets([2 * 1388] * 50), True, MSS + 12) == 1388  # capture behind a tunnel
    assert full_segment(packets([2 * 1200, 3 * 1200] * 50), True, MSS + 12) == 1200


def test_marks_of_a_sender_that_marks_packets_of_several_segments_are_looked_for_on_these():
    """Regression: most single segments were unmarked, and nearly all pairs were marked. A third of the time was
    attributed to the application, although the program always had more data.
    """
    some = packets([MSS] * 80 + [2 * MSS] * 20, [0x10] * 80 + [0x18] * 20)
    assert not marks_tell(some, server=True, mss=MSS, apart=None)
    plain = packets([MSS] * 80 + [2 * MSS] * 20, [0x10] * 99 + [0x18])
    assert marks_tell(plain, server=True, mss=MSS, apart=None)
    # a burst that ends with a single segment after larger packets: a quarter of the packets was marked, but no single
    # segment
    some = packets([MSS] * 80 + [2 * MSS] * 40, [0x10] * 80 + [0x18, 0x10, 0x10, 0x10] * 10)
    assert not marks_tell(some, server=True, mss=MSS, apart=None)
    # single segments are marked as well: they end writes
    writes = packets([MSS] * 80 + [2 * MSS] * 40, [0x18, 0x10, 0x10, 0x10] * 30)
    assert marks_tell(writes, server=True, mss=MSS, apart=None)


@pytest.mark.parametrize("late", [0.0, 0.4, 0.7])
def test_the_latest_ack_that_packets_echo_tells_the_end_of_their_tick(late):
    """Regression: the first packets were half a tick late, so ACKs seemed to arrive before the tick of the packets that they released. The
    time was attributed to the application.
    """
    tick, trip = 1e-3, 0.02
    phases = [i / 50 for i in range(50)]
    heard = [trip + i * 10 * tick + phase * tick for i, phase in enumerate(phases)]  # arrival of the ACK at the sender
    begins = [i * 10 * tick + trip + late * tick for i in range(50)]
    own: list[tuple[Any, ...]] = [(0.0, True, "data", 0, MSS, 1.0, 0, 0x10, i, i) for i in range(50)]
    times = {i: [(t - trip, 2.0 * MSS)] for i, t in enumerate(heard)}
    moved, sharp = _beside(own, begins, tick, times, trip)
    assert sharp
    assert moved[0] == pytest.approx(trip, abs=tick / 40)
    few, sharp = _beside(own[:9], begins[:9], tick, times, trip)
    assert few == begins[:9]
    assert not sharp


def instants(moves: list[tuple[float, int, int, bool]], room: int = 10**6) -> list[Instant]:
    """Return instants, each given as its time, bytes acknowledged, new bytes sent, and whether the last segment was
    short.
    """
    made, una, nxt = [], 1, 1
    for t, acked, new, short in moves:
        una, nxt = una + acked, nxt + new
        made.append(
            Instant(t, acked=acked, heard=acked > 0, new=new, clocked=acked > 0 and new > 0, pushed=short, una=una, nxt=nxt, room=room, rtt=0.05, delivered=una)
        )  # fmt: skip
    return made


def causes(made: list[Instant]) -> list[str]:
    return causes_of(made, mss=MSS, paced=False)


def test_writes_that_leave_with_acks_are_the_programs_where_nothing_is_left_behind_them():
    """Regression: a self-paced program's writes coincided with ACKs for a whole transfer, and 99 % of the time was attributed
    to the congestion window.
    """
    made = instants([(0.0, 0, 13 * 1570, True)] + [(0.05 + i / 1000, 1570, 1570, True) for i in range(50)])
    assert set(causes(made)) == {"application"}
    held = instants([(0.0, 0, 10 * MSS, False)] + [(0.05 + i / 1000, MSS, MSS, False) for i in range(50)])
    assert set(causes(held)) == {"cwnd"}


def woken(times: int) -> list[Instant]:
    moves = [(0.0, 0, 40 * MSS, False)]
    for i in range(times):
        moves += [(0.05 + i / 10 + k / 1000, 2 * MSS, 0, False) for k in range(8)]
        moves += [(0.05 + i / 10 + 0.008, 2 * MSS, 18 * MSS, False)]
    return instants(moves)


def test_a_program_that_a_full_buffer_wakes_is_told_where_it_does_so_over_and_over():
    """Regression: a write's last segment was full, so nothing showed the write's end. A small send buffer's time was attributed to the window."""
    made = woken(12)
    assert set(causes(made)) == {"application"}
    assert is_buffered(made, causes(made))
    assert "cwnd" in causes(woken(3))  # ACKs lost on their way to the sender look like this at the receiver


def test_a_buffer_that_is_refilled_before_a_third_of_the_flight_has_left_is_told():
    """Regression: the buffer held more than the window, so that its program woke up when a fifth of the flight had left, and the congestion
    window was blamed for all of a send buffer's time.
    """
    moves = [(0.0, 0, 40 * MSS, False)]
    for i in range(12):
        moves += [(0.05 + i / 10 + k / 1000, MSS, MSS, False) for k in range(40)]
        moves += [(0.09 + i / 10 + k / 1000, MSS, 0, False) for k in range(7)]
        moves += [(0.097 + i / 10, MSS, 8 * MSS, False)]
    made = instants(moves)
    said = causes(made)
    assert said.count("application") == 12 * 8
    assert is_buffered(made, said)
    few = instants(
        [(0.0, 0, 40 * MSS, False)] + [(i / 1000, MSS, 0 if i % 4 else 4 * MSS, False) for i in range(50, 99)]
    )
    assert set(causes(few)[:-2]) == {"cwnd"}  # each packet has four segments, and the window takes only whole ones


def single(write: bool) -> list[Instant]:
    """Return a program's write that meets an ACK, once, after several ACKs that released nothing."""
    moves = [(0.0, 0, 26 * MSS, False)]
    moves += [(0.05 + k / 1000, MSS, 2 * MSS, write and k == 3) for k in range(4)]
    moves += [(0.054 + k / 1000, MSS, 0, False) for k in range(6)]
    moves += [(0.06, MSS, 14 * MSS, write)]
    return instants(moves)


def test_a_single_write_that_meets_an_ack_is_the_programs_where_several_acks_released_nothing():
    """Regression: the time before the second write of a short transfer was attributed to the congestion window."""
    assert causes(single(write=True)) == ["cwnd"] * 4 + ["application"] * 7
    assert causes(single(write=False)) == ["cwnd"] * 11  # nothing shows that a write ended


def test_a_written_flight_that_drains_before_its_repair_has_no_more_behind_it():
    """Regression: the last packets of a write were lost. New data left with an ACK during their repair, and the time before
    it was attributed to the congestion window.
    """
    moves = [(0.0, 0, 20 * MSS, True)]
    moves += [(0.05 + k / 1000, 2 * MSS, 0, False) for k in range(8)]
    moves += [(0.2, 0, 0, False), (0.25, MSS, 2 * MSS, False), (0.3, 5 * MSS, 0, False)]
    made = instants(moves)
    made[9].again, made[9].recovering, made[10].recovering = MSS, True, True
    assert causes(made)[:9] == ["application"] * 9
    made[0].pushed = False
    assert causes(made)[:9] == ["cwnd"] * 9
    made[0].pushed = True
    assert causes(made[:1] + made[7:])[0] == "application"
    few = instants([moves[0], moves[1], *moves[9:]])  # only a tenth of the flight had left
    few[2].again, few[2].recovering, few[3].recovering = MSS, True, True
    assert causes(few)[:2] == ["cwnd"] * 2


def test_a_buffered_program_is_not_blamed_where_a_sender_waits_for_room_for_its_usual_packet():
    """Regression: a tenth of the time was attributed to a small send buffer while the window was full except for one segment."""
    moves = [(0.0, 0, 40 * MSS, False)]
    moves += [(0.05 + i / 1000, MSS, 0 if i % 2 else 2 * MSS, False) for i in range(1, 41)]
    made = instants(moves)
    assert set(with_buffer(made, causes(made), MSS)) == {"cwnd"}
    moves += [(0.1 + i / 1000, MSS, 6 * MSS if i % 6 == 5 else 0, False) for i in range(30)]
    said = with_buffer(instants(moves), ["cwnd"] * len(moves), MSS)
    assert said[:39] == ["cwnd"] * 39
    assert said[-7:-1] == ["application"] * 6


def test_a_sender_that_waits_for_room_for_a_larger_packet_waits_for_the_window_that_was_full():
    """Regression: a third of the time limited by a small receive window was attributed to the congestion window. The
    window allowed a segment, but not the packet that was sent.
    """
    window = 40 * MSS
    moves = [(0.0, 0, window, False)]
    moves += [(0.05 + i / 1000, 2 * MSS, 0 if i % 3 else 6 * MSS, False) for i in range(1, 31)]
    made = instants(moves)
    for now in made:
        now.room = window - (now.nxt - now.una)
    assert set(causes(made)[:-3]) == {"rwnd"}
    wide = instants(moves)
    assert "rwnd" not in causes(wide)


def test_a_full_segment_of_small_writes_that_meets_an_ack_is_the_programs():
    """Regression: writes of 337 bytes filled a segment just when an ACK arrived, and 9 to 19 % of the time was attributed to the congestion window
    although there was room for another segment.
    """
    moves = [(0.0, 0, 4 * MSS, False), (0.05, 0, MSS, False), (0.1, 3 * MSS, MSS, False), (0.15, MSS, MSS, False)]
    made = instants(moves)
    assert causes(made)[:2] == ["application", "cwnd"]
    assert with_small(made, causes(made), MSS)[:2] == ["application", "application"]
    full = instants([(0.0, 0, 4 * MSS, False), (0.05, MSS, MSS, False), (0.1, MSS, MSS, False)])
    assert with_small(full, causes(full), MSS) == ["cwnd", "cwnd"]


def nagle(gaps: list[float], small: bool = True) -> list[Instant]:
    """Return segments sent at this interval (seconds), not clocked by ACKs, with a partial segment after every fifth ACK."""
    made, t, nxt = [], 0.0, 1
    for i in range(150):
        t += gaps[i % len(gaps)]
        size, clocked = (MSS // 2, True) if small and i % 5 == 4 else (MSS, False)
        una = nxt if clocked else made[-1].una if made else 1
        nxt += size
        made.append(
            Instant(
                t, heard=clocked, new=size, clocked=clocked, pushed=size < MSS, una=una, nxt=nxt, rtt=0.05, room=10**6
            )
        )
    return made


def test_what_nagle_holds_back_is_the_programs_and_no_pace():
    """Regression: with a 1,218-byte write every 9 ms, 92 % of the time was attributed to pacing, the congestion
    window or a queue in the sender's host.
    """
    writes = nagle([0.009, 0.009, 0.018])
    assert holds_small_back(writes, MSS)
    assert not is_paced(writes, MSS)
    assert set(causes_of(writes, mss=MSS, paced=False)[10:]) == {"application"}
    assert is_paced(nagle([0.009], small=False), MSS)
    assert is_paced(nagle([0.001, 0.001, 0.001, 0.001, 0.03]), MSS)  # larger writes, paced


def seen_of(rows: list[tuple[float, bool, str, int, int, float | None]]) -> pl.DataFrame:
    """Return packets with an open window; `True` marks the server, which sends the data."""
    names = ("t_s", "from_server", "kind", "seq", "length", "ack")
    return pl.DataFrame(rows, schema=names, orient="row").with_columns(window=pl.lit(65_535))


def test_a_silence_that_new_data_ends_is_a_pause_though_its_ack_is_not_in_the_capture():
    """Regression: the capture contains only data segments. The ACK was part of the next request, and 63 s without data were not reported."""
    rows = [
        (0.0, True, "data", 1, 1000, 1.0),
        (63.0, False, "data", 1, 100, 1001.0),
        (63.1, True, "data", 1001, 1000, 101.0),
    ]
    quiet, asked, pauses, _ = _quiet(seen_of(rows), server=True, mss=MSS, trip=0.05)
    assert (round(quiet), round(asked), pauses) == (63, 63, 1)
    lost = [*rows[:2], (63.1, True, "retransmission", 1, 1000, 101.0)]
    assert _quiet(seen_of(lost), server=True, mss=MSS, trip=0.05)[2] == 0


def test_probes_that_keep_a_connection_alive_end_no_pause():
    """Regression: each probe ended a pause, and started another in which nothing was acknowledged."""
    rows = [(0.0, True, "data", 1, 1000, 1.0), (0.1, False, "ack", 1, 0, 1001.0)]
    for i in range(1, 4):
        rows += [(30.0 * i, True, "probe", 1000, 1, 1.0), (30.0 * i + 0.1, False, "ack", 1, 0, 1001.0)]
    rows.append((100.0, True, "data", 1001, 1000, 1.0))
    quiet, _, pauses, _ = _quiet(seen_of(rows), server=True, mss=MSS, trip=0.05)
    assert (round(quiet), pauses) == (100, 1)


def test_a_segment_that_is_sent_again_and_again_without_an_answer_is_told():
    """Regression: the host was unreachable, and 98 % of the time was reported as "no data came"."""
    rows = [(0.0, True, "data", 1, 1000, 1.0)]
    rows += [(float(2**i), True, "retransmission", 1, 1000, 1.0) for i in range(6)]
    stalled, again = _stalled(seen_of(rows), server=True)
    assert (stalled, again) == (31.0, 5)
    rows.append((40.0, False, "ack", 1, 0, 1001.0))
    assert _stalled(seen_of([*rows, (50.0, True, "retransmission", 1, 1000, 1.0)]), server=True) == (31.0, 5)


def test_of_a_capture_that_lacks_packets_only_long_silences_are_told():
    network = Answer(where="network", what="a bottleneck", helps="nothing", sure="likely")
    assert without_some((), network)[1].where == "not told"
    quiet = Answer(where="application", what="nothing to send", helps="write", sure="sure")
    assert without_some((), quiet)[1].sure == "likely"
