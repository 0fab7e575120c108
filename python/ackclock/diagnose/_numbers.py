"""Losses on the way to a capture at the receiver, from the identification of IP headers.

Linux counts there what each end of a connection sends, repairs too. So the packets stand in the order in which they left, and a gap
between two is a loss between them: new data where the next packet is further on, else repairs, or the end of a flight whose repair
comes next.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

from ackclock.diagnose._curve import Known
from ackclock.diagnose._marks import AGAIN, Marks

__all__ = ["Departed", "Departure", "departures", "numbered"]

IN_A_ROW = 0.5
"""Share of packets whose number is the one that follows; below it, the numbers count something else."""

FEW = 3
"""Gaps that nothing else explains, which are no sign of that."""

WRAP = 1 << 16

MOST_LOST = 4096
"""In one gap."""

SILENCE = 1.5
"""Round trips without a packet, from which on a timer may have ended them: a tail loss probe waits for two."""

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
    # Linux gives a SYN/ACK the number 0, and the connection behind it one of its own
    shakes = next((i for i, row in enumerate(own) if row[2] != "syn" or row[10]), 0)
    made = [int(own[shakes][10]) - shakes + i for i in range(shakes + 1)]
    for row in own[shakes + 1 :]:
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
class Departed:
    """All packets that left, in order; the number of repairs that did not come; and the number of missing packets of unknown content."""

    made: list[Departure]
    repairs: int
    unknown: int


class _Due(NamedTuple):
    """A hole whose repair may have left; what must have left comes first, then the lowest."""

    optional: bool
    start: int
    left: float


@dataclass(slots=True)
class _Sender:
    """The sender's departures, as far as the numbers tell."""

    server: bool
    mss: int
    end: int
    """End of the data that came in the whole capture."""
    trip: float
    marks: Marks
    comes: dict[int, list[float]]
    """Offset of a segment -> departures of its transmissions that came."""
    made: list[Departure] = field(default_factory=list)
    nxt: int = 1
    missing: list[int] = field(default_factory=list)
    """Offsets of segments that left and have not come yet, ascending."""
    new: int = 0
    """Segments of new data that do not come before the next that does."""
    to: int = 1
    """Offset of that next segment."""
    others: int = 0
    """Other packets that do not come until then: repairs, or the end of a flight if the next packet is a repair itself."""
    undecided: list[_Missing] = field(default_factory=list)
    opened: dict[float, float] = field(default_factory=dict)
    told: dict[float, float] = field(default_factory=dict)
    """Bytes that each ACK acknowledges, less those that blocks had told of."""
    edges: dict[float, float] = field(default_factory=dict)
    """When ACKs were heard -> the end of the receiver's window then."""
    left_at: Counter[float] = field(default_factory=Counter)
    repairs: int = 0
    unknown: int = 0

    def lost(self, unit: _Missing, start: int, length: int, like: Row, kind: str) -> None:
        row = (like[0], self.server, kind, start, length, *like[5:7], 0, *like[8:])
        self.made.append(Departure(unit.at, unit.t, row, came=False))
        if length:
            self.marks.left(start, length, unit.t, unit.at)

    def lost_anew(self, unit: _Missing, to: int, like: Row) -> None:
        """A segment of new data, up to an offset."""
        length = min(self.mss, to - self.nxt)
        self.lost(unit, self.nxt, length, like, "data")
        insort(self.missing, self.nxt)
        self.nxt += length

    def lost_again(self, unit: _Missing, start: int, t: float, like: Row) -> None:
        """A repair."""
        self.lost(replace(unit, t=t), start, min(self.mss, self.nxt - start), like, "retransmission")
        self.repairs += 1
        self.others -= 1

    def came(self, row: Row, t: float, at: float) -> None:
        start, end = row[3], row[3] + row[4]
        first, last = bisect_left(self.missing, start), bisect_left(self.missing, end)
        del self.missing[first:last]
        for one in range(start, end, self.mss):
            self.marks.left(one, min(self.mss, end - one), t, at)
        self.nxt = max(self.nxt, end)

    def due(self, row: Row, before: float, *, silent: bool) -> list[_Due]:
        """Holes whose repair may have left between two packets that came; the second of these tells of the lower ones that it has."""
        own = self.marks.lost.get(row[3], math.inf)
        again = silent and self.was_lost(row[3], max(before, own))  # by a timer, after one that was lost
        made = []
        for start, since in self.marks.lost.items():
            left = max(before, since)
            at = bisect_left(self.missing, start)
            is_open = at < len(self.missing) and self.missing[at] == start
            if is_open and (start < row[3] or left < own or again) and self.was_lost(start, left):
                made.append(_Due(start > row[3] and not again, start, left))
        return sorted(made)

    def may_be(self, start: int, unit: _Missing) -> bool:
        """Whether it may be a repair of a hole, whatever told of that."""
        since = self.marks.since(start)
        return since <= unit.after - AGAIN * self.trip and self.was_lost(start, unit.t)

    def released(self, before: float, t: float, count: int, then: int) -> int:
        """How many of those that did not come the ACK before had released: it opened more than has come, and the ACKs until the next less than left."""
        opened = self.opened
        room = opened.get(before, 0.0) / self.mss - self.left_at[before]
        since = sum(value for heard, value in opened.items() if before < heard <= t) / self.mss
        return max(round(min(room, count + then - since - 1, count)), 0)

    def burst(self, before: float, count: int) -> int:
        """Missing packets of the ACK before, if the next ACK released the packet that came next: a full queue drops the end of a burst."""
        return max(round(min(self.opened.get(before, 0.0) / self.mss - self.left_at[before], count)), 0)

    def at_once(self, heard: list[float], count: int) -> list[float]:
        """Departures if no ACK released both packets: each ACK released as much as it acknowledges, while there was data, the first the rest."""
        made: list[float] = []
        for t in heard:
            room = max(round(self.told.get(t, 0.0) / self.mss), 1) - self.left_at[t]
            made += [t] * min(max(room, 0), count - len(made))
        return sorted(made + [heard[0]] * (count - len(made)))

    def dealt(self, heard: list[float], count: int) -> list[float]:
        """When each of those left that did not come between two that did, where nothing is missing: the first of these ACKs released the one, the last the other.

        Each ACK releases at least what it acknowledges, and what it releases beyond that is the end of its burst, which a full queue drops:
        the earlier one's, in proportion, as far as the receiver's window had room then.
        """
        first, last = heard[0], heard[-1]
        share = [self.opened.get(t, 0.0) / self.mss for t in heard]
        mine = min(max(round(share[-1] - self.left_at[last]), 0), count)
        others = share[:-1]
        rest, made = count - mine, []
        came = self.left_at[first]
        whole, place = came + rest, self.nxt
        for i, t in enumerate(heard[:-1]):
            portion = others[i] / sum(others[i:]) if sum(others[i:]) > 0 else 1.0
            fits = max(int((self.edges[t] - place) // self.mss), 0)
            here = min(max(round(whole * portion) - came, 0), rest, fits)
            made += [t] * here
            whole, rest, came, place = whole - here - came, rest - here, 0, place + here * self.mss
        return made + [last] * (rest + mine)

    def was_lost(self, start: int, t: float) -> bool:
        """Whether a repair that left then may not have come: the next one takes a round trip."""
        comes = self.comes.get(start, [])
        later = bisect_left(comes, t)
        return later == len(comes) or comes[later] >= t + AGAIN * self.trip


def departures(
    own: list[Row],
    numbers: list[int],
    left: list[float],
    *,
    server: bool,
    mss: int,
    trip: float,
    acks: list[tuple[float, Row]],
) -> Departed:
    """All that left, in its order.

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
    acks
        When each ACK came to the sender, and its row; rows of its blocks follow.
    """
    comes: dict[int, list[float]] = {}
    for row, t in zip(own, left, strict=True):
        for at in range(row[3], row[3] + row[4], mss):
            comes.setdefault(at, []).append(t)
    end = max((row[3] + row[4] for row in own if row[4]), default=1)
    marks = Marks(acks, trip, reordered=any(row[2] == "late" for row in own))
    found = _Sender(
        server=server,
        mss=mss,
        end=end,
        trip=trip,
        marks=marks,
        comes=comes,
        opened=_opened(acks),
        told=_told(acks),
        edges=_edges(acks),
        left_at=Counter(left),
    )
    heard = sorted({t for t, row in acks if row[2] not in ("sack", "dsack")})
    gaps = _gaps(own, numbers, mss)
    pending: list[_Missing] = []
    before, shakes, pushed, told = left[0], False, False, False
    last = left[0]
    for at, (seen, gap, t) in enumerate(zip(own, gaps, left, strict=True)):
        row = seen
        if gap is None:
            continue  # the network has made a second one
        for i, left_at in enumerate(_left(found, heard, before, t, gap, pushed=pushed)):
            pending.append(_Missing(at - 1 + (i + 1) / (gap + 1), before, t, left_at))
        before = t
        pushed = bool(row[7] & PSH) if row[4] else pushed
        start, length = row[3], row[4]
        shakes = shakes or row[2] == "syn"
        if pending and shakes and length and row[2] != "syn":  # the ACK of the SYN-ACK had no data
            found.lost(replace(pending.pop(0), t=t), start, 0, row, "ack")
        shakes = shakes and (row[2] == "syn")
        if length and row[2] != "syn":
            if pending and not told:
                found.to, numbers_left = _ahead(own, gaps, at, found)
                found.new, told = -(-(found.to - found.nxt) // mss), True
                found.others = numbers_left + len(pending) - found.new
            marks.hear(t, row[9])
            silent = t - last > SILENCE * trip
            if pending:
                _between(found, pending, row, last, silent=silent)
                pending.clear()
            if start >= found.nxt:
                told = False
                timer = silent and _alone(own, gaps, left, at, AGAIN * trip)
                _end(found, row, _Missing(at - 0.5, t, t, t), timer=timer)
            kind = row[2]
            if start >= found.nxt:
                kind = "data"
            elif kind != "needless":
                kind = "retransmission"
            if silent and kind == "retransmission" and marks.unexpected(start):
                marks.timeout(t)
            row = (*row[:2], kind, *row[3:])
            found.came(row, t, at)
            last = t
        found.made.append(Departure(at, t, row))
    found.made.sort(key=lambda one: one.at)
    return Departed(found.made, found.repairs, found.unknown)


def _left(found: _Sender, heard: list[float], before: float, t: float, gap: int, *, pushed: bool) -> list[float]:
    """When what did not come between two packets left: the ACK before released it as well, or another, or it left with what came next."""
    if not gap or t == before:
        return [t] * gap
    first, last = bisect_left(heard, before), bisect_right(heard, t)
    between = heard[first:last]
    clocked = bool(between) and between[0] == before and between[-1] == t
    if clocked and found.marks.calm and all(one in found.opened for one in between):
        return found.dealt(between, gap)
    if between and between[0] == before and between[-1] < t and not pushed and found.marks.calm:
        return found.at_once(between, gap)
    if clocked and len(between) == 2:
        same = found.burst(before, gap)
    else:
        same = found.released(before, t, gap, found.left_at[t])
    made = []
    behind = bisect_right(heard, before)
    each = min((bisect_left(heard, t) - behind) / max(gap - same, 1), 1.0)
    for i in range(gap):
        k = behind + int((i - same) * each) if i >= same else first
        made.append(t if pushed or k >= len(heard) else min(heard[k], t))
    return made


def _opened(acks: list[tuple[float, Row]]) -> dict[float, float]:
    """When ACKs were heard -> how much they acknowledge."""
    made: dict[float, float] = {}
    una = 1.0
    for t, row in acks:
        if row[2] not in ("sack", "dsack") and row[5] is not None and row[5] > una:
            made[t] = made.get(t, 0.0) + row[5] - una
            una = row[5]
    return made


def _told(acks: list[tuple[float, Row]]) -> dict[float, float]:
    """When ACKs were heard -> how much of that no block had told of."""
    made: dict[float, float] = {}
    known, una = Known(), 1
    for t, row in acks:
        if row[2] == "sack":
            known.add(row[3], row[3] + row[4])
        elif row[2] != "dsack" and row[5] is not None and row[5] > una:
            made[t] = made.get(t, 0.0) + row[5] - una - known.drop(una, row[5])
            una = int(row[5])
    return made


def _edges(acks: list[tuple[float, Row]]) -> dict[float, float]:
    """When ACKs were heard -> the end of the receiver's window then."""
    made: dict[float, float] = {}
    edge = 1.0
    for t, row in acks:
        if row[2] not in ("sack", "dsack", "syn") and row[5] is not None:
            edge = max(edge, row[5] + row[6])
        made[t] = edge
    return made


def _gaps(own: list[Row], numbers: list[int], mss: int) -> list[int | None]:
    """How many numbers are missing before each packet; None for a second copy."""
    made: list[int | None] = []
    expected = numbers[0]
    for row, number in zip(own, numbers, strict=True):
        if made and number < expected:
            made.append(None)
            continue
        made.append(number - expected)
        expected = number + _parts(row, mss)
    return made


def _ahead(own: list[Row], gaps: list[int | None], at: int, found: _Sender) -> tuple[int, int]:
    """Offset of the next packet with new data, and how many numbers are missing before it, beside those before this one."""
    numbers = 0
    for i in range(at, len(own)):
        numbers += (gaps[i] or 0) if i > at else 0
        row = own[i]
        if gaps[i] is not None and row[4] and row[2] != "syn" and row[3] >= found.nxt:
            return row[3], numbers
    return found.nxt, numbers


def _alone(own: list[Row], gaps: list[int | None], left: list[float], at: int, wait: float) -> bool:
    """Whether no data follows a packet for some time: a timer lets one leave."""
    behind = (left[i] for i in range(at + 1, len(own)) if own[i][4] and gaps[i] is not None)
    return next(behind, math.inf) >= left[at] + wait


def _between(found: _Sender, pending: list[_Missing], row: Row, before: float, *, silent: bool) -> None:
    """Assign the packets that did not come between two with data: repairs that were due come first."""
    due = found.due(row, before, silent=silent) if found.others > 0 else []
    for i, unit in enumerate(pending):
        must = min(sum(not one.optional or found.new <= 0 for one in due), found.others)
        one = next((one for one in due if one.left <= unit.t), None)
        if one is None and len(pending) - i <= must:
            one = min(due, key=lambda one: (one.optional, one.left))
        if one is not None and found.others > 0:
            due.remove(one)
            found.lost_again(unit, one.start, min(max(one.left, unit.before), unit.after), row)
        elif found.new > 0:
            found.lost_anew(unit, found.to, row)
            found.new -= 1
        else:
            found.undecided.append(unit)
            found.others -= 1


def _end(found: _Sender, row: Row, now: _Missing, *, timer: bool) -> None:
    """End a flight: the packet that comes is new data, or the first repair of that end, which had left after the packet that came last."""
    start, t = row[3], now.t
    again = (
        found.undecided.pop() if timer and start == found.nxt and found.marks.probed(t, len(found.undecided)) else None
    )
    for unit in found.undecided:
        earlier = unit.before <= t - AGAIN * found.trip
        if earlier and (timer or (unit.t, unit.at) < found.marks.newest) and found.nxt < found.end:
            found.lost_anew(unit, found.end, row)
            continue
        open_ = [at for at in found.missing if found.may_be(at, unit)]
        if len(open_) == 1:
            found.lost_again(unit, open_[0], found.marks.probe(t) if timer else unit.t, row)
        else:
            found.unknown += 1
    if again is not None and found.missing:
        found.lost_again(again, found.missing[-1], found.marks.probe(t), row)
    found.undecided.clear()
    if start > found.nxt:  # more is missing than numbers
        found.lost(now, found.nxt, start - found.nxt, row, "data")
