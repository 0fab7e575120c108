"""What was lost on the way to a capture at the receiver, by the identification of IP headers.

Linux counts there what each end of a connection sends, repairs too. So the packets stand in the order in which they left, and a gap
between two is what was lost between them: new data where the next packet is further on, else repairs, or the end of a flight whose repair
comes next.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

__all__ = ["Departure", "departures", "numbered"]

IN_A_ROW = 0.5
"""Share of packets whose number is the one that follows; below it, the numbers count something else."""

FEW = 3
"""Gaps that nothing else explains, which are no sign of that."""

WRAP = 1 << 16

MOST_LOST = 4096
"""In one gap."""

DEGREE = 3
"""Segments behind a hole, from which on it is repaired."""

AGAIN = 0.9
"""Part of a round trip, before which no segment is sent again once more."""

AT_ONCE = 0.3
"""Part of a round trip within which a repair is still the one that was due: RACK may wait a quarter."""

LEAST_WAIT_S = 4e-3
"""The same, at least: when packets left is told by ticks of a millisecond."""

PSH = 0x08

Row = tuple[Any, ...]


@dataclass(slots=True)
class _Missing:
    """A number that did not come: its place among those that did, when it left at the earliest and at the latest, and when it is taken to have left."""

    at: float
    before: float
    after: float
    t: float


@dataclass(slots=True)
class Departure:
    """A packet in the order of its sender: its place, when it left, its row, and whether it came."""

    at: float
    t: float
    row: Row
    came: bool = True


def numbered(own: list[Row], mss: int) -> list[int] | None:
    """Numbers that count the packets of this connection, beyond 16 bits; None if the capture has none.

    Parameters
    ----------
    own
        Rows of packets of the data's sender.
    mss
        Payload of a full segment, bytes.
    """
    if len(own) < 2 or not any(row[10] for row in own):
        return None
    made = [int(own[0][10])]
    for row in own[1:]:
        high = made[-1]
        made.append(high + ((row[10] - high + WRAP // 2) % WRAP) - WRAP // 2)
    order = sorted(range(len(own)), key=lambda i: made[i])
    follow = gaps = alone = 0
    nxt = 1
    for before, at in pairwise(order):
        gap = made[at] - made[before] - _parts(own[before], mss)
        if gap > MOST_LOST:
            return None
        row = own[at]
        follow += gap == 0
        if gap > 0:
            gaps += 1
            alone += row[3] == nxt and row[4] > 0
        if row[4]:
            nxt = max(nxt, row[3] + row[4])
    if follow < IN_A_ROW * (len(own) - 1) or alone > max(FEW, gaps // 2):
        return None
    return made


def _parts(row: Row, mss: int) -> int:
    """Segments of a packet, each of which has a number."""
    return max(-(-int(row[4]) // mss), 1)


@dataclass(slots=True)
class _Sender:
    """What has left, as far as the numbers tell."""

    server: bool
    mss: int
    end: int
    """Of the data that came in the whole capture."""
    trip: float
    due: dict[int, float]
    """Offset of a hole -> when its repair was due."""
    comes: dict[int, list[float]]
    """Offset of a segment -> when what came of it left."""
    made: list[Departure] = field(default_factory=list)
    nxt: int = 1
    missing: list[int] = field(default_factory=list)
    """Offsets of segments that left and have not come yet, ascending."""
    tried: dict[int, float] = field(default_factory=dict)
    repairs: int = 0
    repaired: int = 1
    """Offset of the last repair."""

    def lost(self, unit: _Missing, start: int, length: int, like: Row, kind: str) -> None:
        row = (like[0], self.server, kind, start, length, *like[5:7], 0, *like[8:])
        self.made.append(Departure(unit.at, unit.t, row, came=False))

    def lost_anew(self, units: list[_Missing], to: int, like: Row) -> None:
        """Segments of new data that did not come, up to an offset."""
        for unit in units:
            if self.nxt >= to:
                return
            length = min(self.mss, to - self.nxt)
            self.lost(unit, self.nxt, length, like, "data")
            insort(self.missing, self.nxt)
            self.nxt += length

    def lost_again(self, unit: _Missing, like: Row, below: int | None = None) -> bool:
        """A repair that did not come: of the next hole that was not repaired yet, else of the one that was so long ago."""
        end = len(self.missing) if below is None else bisect_left(self.missing, below)
        after = bisect_left(self.missing, self.repaired)
        for at in (*range(after, end), *range(min(after, end))):
            start = self.missing[at]
            if start not in self.tried and self.may_be_lost(start, unit.before):
                break
        else:
            old = [
                start
                for start in self.missing[:end]
                if self.tried.get(start, unit.t) < unit.t - AGAIN * self.trip and self.may_be_lost(start, unit.before)
            ]
            if not old:
                return False
            start = min(old, key=lambda start: self.tried[start])
        if start in self.due:
            unit = replace(unit, t=min(unit.after, max(unit.before, self.due[start])))
        self.tried[start] = unit.t
        self.repaired = start
        self.lost(unit, start, min(self.mss, self.nxt - start), like, "retransmission")
        self.repairs += 1
        return True

    def came(self, start: int, end: int) -> None:
        first, last = bisect_left(self.missing, start), bisect_left(self.missing, end)
        del self.missing[first:last]

    def came_late(self, start: int, t: float) -> bool:
        """Whether the repair of a segment had been due long before, so that this one is not the first."""
        due = self.due.get(start)
        return start not in self.tried and due is not None and t > due + max(AT_ONCE * self.trip, LEAST_WAIT_S)

    def may_be_lost(self, start: int, t: float) -> bool:
        """Whether a repair that left then did not come: the next one takes a round trip."""
        at = self.comes.get(start, [])
        later = bisect_right(at, t)
        return later == len(at) or at[later] >= t + AGAIN * self.trip

    def repaired_before(self, before: float, t: float) -> bool:
        """Whether a hole is open whose repair was due, and came only a round trip later: there was another one before."""
        return any(self.due.get(start, math.inf) <= t and self.may_be_lost(start, before) for start in self.missing)


def departures(
    own: list[Row],
    numbers: list[int],
    left: list[float],
    *,
    server: bool,
    mss: int,
    trip: float,
    due: dict[int, float],
    acks: list[float],
) -> tuple[list[Departure], int]:
    """All that left, in its order, and how many repairs of it did not come.

    Parameters
    ----------
    own, numbers, left
        Rows of packets, in the order of their numbers; when they left.
    server
        Whether the data is the server's.
    mss
        Payload of a full segment, bytes.
    trip
        Round trip, s.
    due
        Offset of a hole, and when its repair was due.
    acks
        When ACKs came to the sender.
    """
    comes: dict[int, list[float]] = {}
    for row, t in zip(own, left, strict=True):
        for at in range(row[3], row[3] + row[4], mss):
            comes.setdefault(at, []).append(t)
    end = max((row[3] + row[4] for row in own if row[4]), default=1)
    found = _Sender(server=server, mss=mss, end=end, trip=trip, due=due, comes=comes)
    pending: list[_Missing] = []
    expected, before, shakes, pushed = numbers[0], left[0], False, False
    for at, (seen, number, t) in enumerate(zip(own, numbers, left, strict=True)):
        row = seen
        if found.made and number < expected:
            continue  # the network has made a second one
        gap = number - expected
        for i in range(gap):  # an ACK released it, or it left with what came next
            k = bisect_right(acks, before) + i // 2
            left_at = t if pushed or k >= len(acks) else min(acks[k], t)
            pending.append(_Missing(at - 1 + (i + 1) / (gap + 1), before, t, left_at))
        expected, before = number + _parts(row, mss), t
        pushed = bool(row[7] & PSH) if row[4] else pushed
        start, length = row[3], row[4]
        shakes = shakes or row[2] == "syn"
        if pending and shakes and length and row[2] != "syn":  # its ACK of the SYN-ACK had no data
            found.lost(replace(pending.pop(0), t=t), start, 0, row, "ack")
        shakes = shakes and (row[2] == "syn")
        if length and row[2] != "syn":
            _behind(found, pending, row, _Missing(at - 0.5, t, t, t))
            kind = row[2]
            if start >= found.nxt:
                kind = "data"
            elif kind != "needless":
                kind = "retransmission"
                found.repaired = start
            row = (*row[:2], kind, *row[3:])
            found.came(start, start + length)
            found.nxt = max(found.nxt, start + length)
        found.made.append(Departure(at, t, row))
    found.made.sort(key=lambda one: one.at)
    return found.made, found.repairs


def _behind(found: _Sender, pending: list[_Missing], row: Row, now: _Missing) -> None:
    """What did not come and left before a packet with data; what is not told yet remains."""
    start, mss, t = row[3], found.mss, now.t
    if start < found.nxt:  # a repair: those of the holes before it came first
        while pending and found.lost_again(pending[0], row, below=start):
            pending.pop(0)
        if found.came_late(start, t):  # the one before it was lost, when it was due: what else is missing left earlier
            soon = [unit for unit in pending if unit.before <= found.due[start]] or pending[:1]
            if soon and found.lost_again(soon[-1], row, below=start + 1):
                pending.remove(soon[-1])
        return
    hole = -(-(start - found.nxt) // mss)
    excess = len(pending) - hole
    if excess > 0 and not found.repaired_before(pending[0].before, t):
        # it is a repair: the end of a flight had left behind what came last; a probe repairs its last segment first (RFC 8985)
        behind = min(excess if excess > hole else len(pending), -(-(found.end - found.nxt) // mss))
        first = found.nxt
        found.lost_anew(pending[:behind], found.end, row)
        rest = pending[behind:]
        if start < found.nxt:
            for at, unit in zip(range(first, start, mss), rest, strict=False):
                found.tried[at] = unit.t
                found.lost(unit, at, mss, row, "retransmission")
                found.repairs += 1
        else:  # not as much as that
            found.lost_anew(rest, start, row)
    else:
        for unit in pending[: max(excess, 0)]:
            found.lost_again(unit, row)
        found.lost_anew(pending[max(excess, 0) :], start, row)
    if start > found.nxt:  # more is missing than numbers
        found.lost(now, found.nxt, start - found.nxt, row, "data")
    pending.clear()
