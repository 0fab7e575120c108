"""Converts a receiver-side capture into the capture that would have been taken at the sender.

Two times are unknown at the receiver: when a packet was sent, and when an ACK arrived. Timestamps reveal both. The
echo in a packet identifies the latest ACK received by its sender. The packet's own timestamp identifies the tick in
which it was sent. A packet released by an ACK can thus be distinguished from one that waited for its pacing time or
for the application. All times are those at which a packet would have arrived over an empty path.

Packets lost on the path are not in the capture. If IP headers carry consecutive numbers, these reveal the losses
(`_numbers`). Otherwise each hole becomes one packet, sent just before the packet that shows the hole. Packets lost at
the end of a flight are noticed when a timer retransmits them, if the flight's last delivered packet had no PSH, which
means that more had been written. Lost retransmissions are found by
`with_repairs`.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ackclock.diagnose._numbers import departures, numbered

if TYPE_CHECKING:
    import polars as pl

__all__ = ["AsSent", "as_sent"]

TICKS_S = (1e-6, 1e-3, 4e-3, 1e-2)
"""Tick lengths of timestamps, s: Linux (`tcp_usec_ts`), Linux and others, old kernels."""

NEAR = 0.1
"""Relative tolerance of a measured tick."""

FIN, PSH = 0x01, 0x08

SILENCE = 1.5
"""Number of RTTs without a packet after which a timer may have sent the next one: a tail loss probe waits for two."""

LEAST_TICKS = 50

SLACK = 0.1
"""Uncertainty in the start of a tick, in ticks."""

LATER = 2
"""Minimum number of ticks after an ACK for a packet that echoes an earlier one to show that the ACK was lost."""

CLOSE = 10
"""One in this many packets follows the previous one as closely as the path allows. This many random times within a tick
determine its end to a tenth, `SLACK`.
"""

LEAST_SPLIT, WHOLE = 10, 0.2
"""Minimum number of writes that would have been split between two ticks if each ACK had released its own part, and
fraction of it below which writes leave as a whole.
"""

WRAP = 1 << 32


@dataclass(frozen=True, kw_only=True)
class AsSent:
    """Result of the conversion.

    Parameters
    ----------
    packets
        Packets in the order and at the times of their sender.
    tick_s
        Tick of the sender's timestamps.
    trip_s
        Minimum time from an ACK to a full segment that it released; None if unknown.
    repairs
        Repairs among them that were lost; None if no numbers show them.
    unknown
        Lost packets of unknown content.
    """

    packets: pl.DataFrame
    tick_s: float
    trip_s: float | None
    repairs: int | None
    unknown: int = 0


def as_sent(packets: pl.DataFrame, *, server: bool, mss: int, whole: bool = True, marks: bool = True) -> AsSent | None:
    """Return the packets in their sender's order and at their sender's times; None if the timestamps do not reveal these.

    Parameters
    ----------
    packets
        Packets from `ackclock.formats.read_capture`, captured at the data receiver.
    server
        Whether the server sends the data.
    mss
        Payload of a full segment, bytes.
    whole
        Whether the capture itself has missed nothing: then missing numbers were lost.
    marks
        Whether PSH ends a write: then a full segment without it means that more was written.
    """
    import polars as pl

    rows = packets.rows()
    own = [row for row in rows if row[1] == server and row[2] not in ("sack", "dsack")]
    numbers = numbered(own, mss) if whole else None
    if numbers is not None:
        pairs = sorted(zip(numbers, own, strict=True), key=lambda pair: pair[0])
        own, numbers = [row for _, row in pairs], [number for number, _ in pairs]
    ticks = _ticks(own)
    if ticks is None:
        return None
    sends, tick = ticks
    acks = _Acks(rows, server)
    round_trip = acks.round_trip(own)
    if round_trip is None:
        return None
    sends, sharp = _beside(own, sends, tick, acks.times, round_trip)
    released = _released(own, sends, tick, acks.times, round_trip, sharp=sharp)
    _join(own, sends, tick, mss, released)
    came = acks.heard(own, sends, tick, round_trip)
    made = [(t, 0, at, row) for at, (t, row) in enumerate(came)]
    repairs, unknown = None, 0
    if numbers is None:
        last = _by_holes(own, sends, released, made, server, round_trip, acks.times if marks else None)
    else:
        left: list[float] = []
        for begins, heard in zip(sends, released, strict=True):
            left.append(max(begins if heard is None else heard, left[-1] if left else float("-inf")))
        departed = departures(own, numbers, left, server=server, mss=mss, trip=round_trip, acks=came)
        repairs, unknown = departed.repairs, departed.unknown
        last = float("-inf")
        for at, one in enumerate(departed.made):
            last = max(last, one.t)
            made.append((last, 1, at, one.row))
    if not any(row[7] & FIN for row in own):  # later data had not arrived by the end of the capture
        made = [one for one in made if one[0] <= last]
    made.sort(key=lambda one: one[:3])
    moved = [(t, *row[1:]) for t, _, _, row in made]
    turned = pl.DataFrame(moved, schema=packets.schema, orient="row")
    trip = acks.round_trip(own, mss)
    return AsSent(packets=turned, tick_s=tick, trip_s=trip, repairs=repairs, unknown=unknown)


Made = list[tuple[float, int, int, tuple[Any, ...]]]


def _by_holes(
    own: list[tuple[Any, ...]],
    sends: list[float],
    released: list[float | None],
    made: Made,
    server: bool,
    round_trip: float,
    times: dict[int, list[tuple[float, float]]] | None,
) -> float:
    """Insert the packets that arrived and a hole for each loss; return the last packet's departure. If ACK times are
    passed, a full segment without PSH means that more was written. A packet that follows a silence and was not
    released by an ACK was then retransmitted by a timer, which waits for two current RTTs. The previous packet may
    have been queued.
    """
    last, nxt, more, trip = float("-inf"), 1, False, round_trip
    for at, (packet, begins, heard) in enumerate(zip(own, sends, released, strict=True)):
        row = packet
        arrived, kind, seq, length = row[0], row[2], row[3], row[4]
        left = max(begins if heard is None else heard, last)
        before, last = last, left
        if kind == "late":
            continue  # the hole represents the late packet
        if heard is None and more and length and seq + length > nxt and left - before > SILENCE * trip:
            # More was written than had arrived, and no ACK released it: the data had been sent before, was lost,
            # and was retransmitted by a timer.
            lost = (arrived, server, "data", nxt, seq + length - nxt, *row[5:])
            made.append((before, 2, at, lost))
            row = (*row[:2], "retransmission", *row[3:])
        elif length and seq > nxt:
            made.append((left, 1, at, (arrived, server, "data", nxt, seq - nxt, row[5], row[6], 0, *row[8:])))
        made.append((left, 1, at, row))
        if length and seq + length >= nxt:
            more = times is not None and not row[7] & (PSH | FIN)
            heard_at = (times or {}).get(row[9], [(arrived - round_trip, 0.0)])[0][0]
            trip = max(arrived - heard_at, round_trip)
        nxt = max(nxt, seq + length if length else nxt)
    return last


def _ticks(own: list[tuple[Any, ...]]) -> tuple[list[float], float] | None:
    """Return the start of the tick in which each packet was sent, and the tick length."""
    if len(own) < 2 or not any(row[8] for row in own):
        return None
    values, high, before = [], 0, own[0][8]
    for row in own:
        value = row[8] or before  # a RST may have no timestamp
        if value < before and before - value > WRAP // 2:
            high += WRAP
        values.append(high + value - (WRAP if value > before and value - before > WRAP // 2 else 0))
        before = value
    span = values[-1] - values[0]
    if span < LEAST_TICKS:
        return None
    measured = (own[-1][0] - own[0][0]) / span
    tick = min(TICKS_S, key=lambda one: abs(measured / one - 1))
    if abs(measured / tick - 1) > NEAR:
        return None
    offset = min(row[0] - value * tick for row, value in zip(own, values, strict=True))
    return [value * tick + offset for value in values], tick


def _beside(
    own: list[tuple[Any, ...]],
    sends: list[float],
    tick: float,
    times: dict[int, list[tuple[float, float]]],
    trip: float,
) -> tuple[list[float], bool]:
    """Return the start of each tick on the ACKs' clock, and whether ACKs show where a tick ends. No packet is sent
    before the ACK that it echoes arrives, so none of these ACKs arrives after the end of the packet's tick. If
    many packets are sent with their ACKs, the latest ACK arrives just before that end. Packets that crossed the path
    show the beginning less precisely, because all of them may have been queued.
    """
    behind = sorted(
        times[row[9]][0][0] + trip - begins
        for row, begins in zip(own, sends, strict=True)
        if row[4] and row[9] in times
    )
    latest = behind[-1] if behind else tick
    if latest > tick or len(behind) - bisect_left(behind, latest - tick) < CLOSE:
        return sends, False
    return [begins + latest - tick for begins in sends], True


class _Acks:
    """The receiver's packets, by their timestamps."""

    def __init__(self, rows: list[tuple[Any, ...]], server: bool) -> None:
        self.all: list[tuple[float, tuple[Any, ...]]] = []
        self.times: dict[int, list[tuple[float, float]]] = {}  # timestamp -> (time, bytes newly acknowledged)
        una = 0.0
        for row in rows:
            block = row[2] in ("sack", "dsack")
            if row[1] == server:
                continue
            self.all.append((row[0], row))
            if not block and row[8]:
                reached = row[5] if row[5] is not None and row[5] == row[5] else una
                self.times.setdefault(row[8], []).append((row[0], max(reached - una, 1.0)))
                una = max(una, reached)

    def round_trip(self, own: list[tuple[Any, ...]], length: int = 0) -> float | None:
        """Return the minimum time from an ACK to a packet of at least this length that it released, counting only ACKs
        that were alone in their tick.
        """
        waits = [
            row[0] - times[0][0]
            for row in own
            if row[4] >= length and len(times := self.times.get(row[9], [])) == 1 and row[0] > times[0][0]
        ]
        return min(waits, default=None)

    def heard(
        self, own: list[tuple[Any, ...]], sends: list[float], tick: float, trip: float
    ) -> list[tuple[float, tuple[Any, ...]]]:
        """Return each ACK's arrival at the sender, except for lost ACKs, which even much later packets do not echo."""
        echoed = {row[9] for row in own}
        made: list[tuple[float, tuple[Any, ...]]] = []
        at, lost = 0, False
        for t, row in self.all:
            if row[2] not in ("sack", "dsack"):  # SACK blocks belong to the previous ACK
                while at < len(own) and sends[at] < t + trip + LATER * tick:
                    at += 1
                newer = at < len(own) and 0 < (row[8] - own[at][9]) % WRAP < WRAP // 2
                lost = newer and bool(row[8]) and row[8] not in echoed
            if not lost:
                made.append((t + trip, row))
        return made


def _released(
    own: list[tuple[Any, ...]],
    sends: list[float],
    tick: float,
    times: dict[int, list[tuple[float, float]]],
    trip: float,
    *,
    sharp: bool,
) -> list[float | None]:
    """Return the arrival of the ACK that released each packet; None if none arrived in the tick of its departure. ACKs
    in the same tick are indistinguishable, so the packets in that tick are assigned to them by the bytes that they
    acknowledge.
    """
    made: list[float | None] = [None] * len(own)
    at = 0
    gaps = sorted(after[0] - row[0] for row, after in pairwise(own) if row[4] and after[4] and after[0] > row[0])
    apart = (
        gaps[len(gaps) // CLOSE] if gaps and not sharp else 0.0
    )  # a SYN, which starts the first tick, crosses the path this much faster
    while at < len(own):
        row, begins = own[at], sends[at]
        end = at
        while end < len(own) and own[end][9] == row[9] and sends[end] == begins:
            end += 1
        near = [
            (t + trip, weight)
            for t, weight in times.get(row[9], ())
            if begins - SLACK * tick <= t + trip <= begins + (1 + SLACK) * tick + apart
        ]
        if near:
            _deal(own, at, end, near, made)
        at = end
    return made


def _deal(
    own: list[tuple[Any, ...]], at: int, end: int, near: list[tuple[float, float]], made: list[float | None]
) -> None:
    whole = sum(weight for _, weight in near)
    sent = sum(own[i][4] for i in range(at, end)) or 1
    behind, given, k = 0.0, near[0][1], 0
    for i in range(at, end):
        middle = (behind + own[i][4] / 2) / sent * whole
        behind += own[i][4]
        while k + 1 < len(near) and given < middle and near[k + 1][0] <= own[i][0] + 1e-6:
            k += 1
            given += near[k][1]
        made[i] = near[k][0]


def _join(own: list[tuple[Any, ...]], sends: list[float], tick: float, mss: int, made: list[float | None]) -> None:
    """Assign each write of several packets that left in one tick to the last of the ACKs that may have released it, if
    writes leave as a whole. An ACK that releases its own part of a write does so in its own tick, which would split
    many of the writes; and while a window holds data back, writes are joined into full segments.
    """
    writes = _writes(own, mss)
    split, expected, several = 0, 0.0, []
    for first, last in writes:
        begin, end = made[first], made[last]
        if sends[first] != sends[last]:
            split += 1
        elif begin is not None and end is not None and begin < end:
            expected += min((end - begin) / tick, 1.0)
            several.append((first, last))
    if expected < LEAST_SPLIT or split > WHOLE * expected:
        return
    for first, last in several:
        made[first:last] = [made[last]] * (last - first)


def _writes(own: list[tuple[Any, ...]], mss: int) -> list[tuple[int, int]]:
    """Return the first and the last packet of each write of several packets that ends with a short one, behind another."""
    made: list[tuple[int, int]] = []
    first: int | None = None
    for at, row in enumerate(own):
        if row[2] != "data":
            first = None
            continue
        if row[4] % mss == 0:
            continue
        if first is not None and first < at:
            made.append((first, at))
        first = at + 1
    return made
