"""Losses on the path of a receiver-side capture, found from the identification field in IP headers. Linux increments
the field for each packet sent by one end of a connection, including retransmissions. The field therefore reveals the
order of departure, and a gap between two numbers is a loss. The lost packet carried new data if the next packet's
offset shows a gap. Otherwise it was a retransmission, or the end of a flight to be retransmitted next.
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
"""Fraction of packets with consecutive numbers below which the numbers do not count packets."""

SAME = 0.02
"""Maximum fraction of packets that repeat an earlier IP ID; above it, IP IDs are ignored. On hosts that set the IP ID to 0,
TSO still numbers the segments of each packet, starting again from 0.
"""

FEW = 3
"""Maximum number of unexplained gaps for the numbers to be used."""

WRAP = 1 << 16

MOST_LOST = 4096
"""Maximum number of losses in one gap."""

SILENCE = 1.5
"""Number of RTTs without a packet after which a timer may have sent the next one: a tail loss probe waits for two."""

BURST = 2
"""Maximum number of packets that a sender with a full window releases per acknowledged packet (slow start)."""

PSH = 0x08

Row = tuple[Any, ...]


@dataclass(slots=True)
class _Missing:
    """A missing number: index among the received ones, earliest and latest departure, assumed departure."""

    at: float
    before: float
    after: float
    t: float


@dataclass(slots=True)
class Departure:
    """A packet in the sender's order: index, departure time, row, and whether it arrived."""

    at: float
    t: float
    row: Row
    came: bool = True


def numbered(own: list[Row], mss: int) -> list[int] | None:
    """Return numbers that count this connection's packets, extended beyond 16 bits; None if the capture has none.

    Parameters
    ----------
    own
        Rows of the data sender's packets.
    mss
        Payload of a full segment, bytes.
    """
    if len(own) < 2 or not any(row[10] for row in own):
        return None
    # Linux sends a SYN-ACK with number 0; its connection's numbers start elsewhere
    shakes = next((i for i, row in enumerate(own) if row[2] != "syn" or row[10]), 0)
    made = [int(own[shakes][10]) - shakes + i for i in range(shakes + 1)]
    for row in own[shakes + 1 :]:
        high = made[-1]
        made.append(high + ((row[10] - high + WRAP // 2) % WRAP) - WRAP // 2)
    order = sorted(range(len(own)), key=lambda i: made[i])
    follow = gaps = alone = same = 0
    nxt = 1
    for before, at in pairwise(order):
        gap = made[at] - made[before] - _parts(own[before], mss)
        if gap > MOST_LOST:
            return None
        row = own[at]
        follow += gap == 0
        same += gap < 0
        if gap > 0:
            gaps += 1
            alone += row[3] == nxt and row[4] > 0
        if row[4]:
            nxt = max(nxt, row[3] + row[4])
    if follow < IN_A_ROW * (len(own) - 1) or alone > max(FEW, gaps // 2) or same > max(FEW, SAME * len(own)):
        return None
    return made


def _parts(row: Row, mss: int) -> int:
    """Return the number of segments in a packet; each segment has its own identification number."""
    return max(-(-int(row[4]) // mss), 1)


@dataclass(slots=True)
class Departed:
    """Every departure in order, with the numbers of lost retransmissions and of missing packets with unknown content."""

    made: list[Departure]
    repairs: int
    unknown: int


class _Due(NamedTuple):
    """A hole that may have been retransmitted. Certain ones are sorted first, then by offset."""

    optional: bool
    start: int
    left: float


@dataclass(slots=True)
class _Sender:
    """The sender's departures, reconstructed from the numbers."""

    server: bool
    mss: int
    end: int
    """End of the data that arrived during the capture."""
    trip: float
    marks: Marks
    comes: dict[int, list[float]]
    """Offset of a segment -> departures of its delivered transmissions."""
    made: list[Departure] = field(default_factory=list)
    nxt: int = 1
    missing: list[int] = field(default_factory=list)
    """Offsets of segments sent but not yet arrived, ascending."""
    new: int = 0
    """Number of lost new-data segments before the next delivered one."""
    to: int = 1
    """Offset of the next delivered new-data segment."""
    others: int = 0
    """Number of other lost packets before that segment: retransmissions, or the end of a flight if the next packet is itself a retransmission."""
    undecided: list[_Missing] = field(default_factory=list)
    opened: dict[float, float] = field(default_factory=dict)
    told: dict[float, float] = field(default_factory=dict)
    """Arrival time of an ACK -> bytes that it acknowledges, minus those already reported in SACK blocks."""
    edges: dict[float, float] = field(default_factory=dict)
    """Arrival time of an ACK -> end of the receive window after it."""
    left_at: Counter[float] = field(default_factory=Counter)
    repairs: int = 0
    unknown: int = 0

    def lost(self, unit: _Missing, start: int, length: int, like: Row, kind: str) -> None:
        row = (like[0], self.server, kind, start, length, *like[5:7], 0, *like[8:])
        self.made.append(Departure(unit.at, unit.t, row, came=False))
        if length:
            self.marks.left(start, length, unit.t, unit.at)

    def lost_anew(self, unit: _Missing, to: int, like: Row) -> None:
        """Record the loss of one new-data segment below an offset."""
        length = min(self.mss, to - self.nxt)
        self.lost(unit, self.nxt, length, like, "data")
        insort(self.missing, self.nxt)
        self.nxt += length

    def lost_again(self, unit: _Missing, start: int, t: float, like: Row) -> None:
        """Record the loss of a retransmission."""
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
        """Return holes that may have been retransmitted between two delivered packets. The second packet shows that
        lower holes were.
        """
        own = self.marks.lost.get(row[3], math.inf)
        again = silent and self.was_lost(row[3], max(before, own))  # sent by a timer, after a lost packet
        made = []
        for start, since in self.marks.lost.items():
            left = max(before, since)
            at = bisect_left(self.missing, start)
            is_open = at < len(self.missing) and self.missing[at] == start
            if is_open and (start < row[3] or left < own or again) and self.was_lost(start, left):
                made.append(_Due(start > row[3] and not again, start, left))
        return sorted(made)

    def may_be(self, start: int, unit: _Missing) -> bool:
        """Return whether a packet may be the retransmission of a hole, regardless of how the hole was reported."""
        since = self.marks.since(start)
        return since <= unit.after - AGAIN * self.trip and self.was_lost(start, unit.t)

    def released(self, before: float, t: float, count: int, then: int) -> int:
        """Return how many of the missing packets were released by the previous ACK: those that it permitted beyond
        the ones that arrived, unless the ACKs up to the next packet explain them.
        """
        opened = self.opened
        room = opened.get(before, 0.0) / self.mss - self.left_at[before]
        since = sum(value for heard, value in opened.items() if before < heard <= t) / self.mss
        return max(round(min(room, count + then - since - 1, count)), 0)

    def burst(self, before: float, count: int) -> int:
        """Return how many missing packets the previous ACK released, if the next ACK released the next packet: a full
        queue drops the end of a burst.
        """
        return max(round(min(self.opened.get(before, 0.0) / self.mss - self.left_at[before], count)), 0)

    def tail(self, before: float, edge: float, count: int) -> int:
        """Return how many missing packets belong to a burst larger than the ACK before it could release. A full queue
        drops the end of such a burst; packets released by later ACKs would have found room in it.
        """
        told = max(self.told.get(before, 0.0) / self.mss, 1.0)
        if self.left_at[before] <= BURST * told:
            return 0
        return int(min(count, max(edge - self.nxt, 0) // self.mss))

    def at_once(self, heard: list[float], count: int) -> list[float]:
        """Return departures if no ACK released both packets. Each ACK releases as much as it acknowledges while there
        is data; the first ACK released the rest.
        """
        made: list[float] = []
        for t in heard:
            room = max(round(self.told.get(t, 0.0) / self.mss), 1) - self.left_at[t]
            made += [t] * min(max(room, 0), count - len(made))
        return sorted(made + [heard[0]] * (count - len(made)))

    def dealt(self, heard: list[float], count: int) -> list[float]:
        """Return the departure of each missing packet between two delivered ones, if nothing was missing at the
        receiver. The first of these ACKs released the earlier packet, the last ACK the later one.

        Each ACK releases at least as much as it acknowledges. Anything beyond that is the end of its burst, dropped
        by a full queue. The earlier ACKs get the rest in proportion, within the receive window at that time.
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
        """Return whether a retransmission sent at this time may have been lost: the next one follows at least one RTT later."""
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
    """Return all departures in order.

    Parameters
    ----------
    own, numbers, left
        Rows of packets in the order of their numbers, and their departure times.
    server
        Whether the server sends the data.
    mss
        Payload of a full segment, bytes.
    trip
        Round trip, s.
    acks
        Time of each ACK's arrival at the sender, and its row, followed by the rows of its SACK blocks.
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
            continue  # a duplicate made by the network
        for i, left_at in enumerate(_left(found, heard, before, t, gap, pushed=pushed)):
            pending.append(_Missing(at - 1 + (i + 1) / (gap + 1), before, t, left_at))
        before = t
        pushed = bool(row[7] & PSH) if row[4] else pushed
        start, length = row[3], row[4]
        shakes = shakes or row[2] == "syn"
        if pending and shakes and length and row[2] != "syn":  # the ACK of the SYN-ACK carries no data
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
    """Return the departures of the missing packets between two others: released by the previous ACK or a later one,
    or together with the next packet.
    """
    if not gap or t == before:
        return [t] * gap
    first, last = bisect_left(heard, before), bisect_right(heard, t)
    between = heard[first:last]
    clocked = bool(between) and between[0] == before and between[-1] == t
    if clocked and found.marks.calm and all(one in found.opened for one in between):
        return found.dealt(between, gap)
    if between and between[-1] < t and not pushed and found.marks.calm:
        known = bisect_right(heard, before)
        cut = found.tail(before, found.edges[heard[known - 1]] if known else math.inf, gap)
        if cut or between[0] == before:
            return [before] * cut + found.at_once(between, gap - cut)
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
    """Return ACK arrival times -> bytes acknowledged."""
    made: dict[float, float] = {}
    una = 1.0
    for t, row in acks:
        if row[2] not in ("sack", "dsack") and row[5] is not None and row[5] > una:
            made[t] = made.get(t, 0.0) + row[5] - una
            una = row[5]
    return made


def _told(acks: list[tuple[float, Row]]) -> dict[float, float]:
    """Return ACK arrival times -> bytes acknowledged that no SACK block had reported."""
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
    """Return ACK arrival times -> end of the receive window."""
    made: dict[float, float] = {}
    edge = 1.0
    for t, row in acks:
        if row[2] not in ("sack", "dsack", "syn") and row[5] is not None:
            edge = max(edge, row[5] + row[6])
        made[t] = edge
    return made


def _gaps(own: list[Row], numbers: list[int], mss: int) -> list[int | None]:
    """Return the number of missing packets before each packet; None for a duplicate."""
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
    """Return the offset of the next packet with new data, and the number of missing packets before it."""
    numbers = 0
    for i in range(at, len(own)):
        numbers += (gaps[i] or 0) if i > at else 0
        row = own[i]
        if gaps[i] is not None and row[4] and row[2] != "syn" and row[3] >= found.nxt:
            return row[3], numbers
    return found.nxt, numbers


def _alone(own: list[Row], gaps: list[int | None], left: list[float], at: int, wait: float) -> bool:
    """Return whether a packet is followed by a pause in the data, which means that it was sent by a timer."""
    behind = (left[i] for i in range(at + 1, len(own)) if own[i][4] and gaps[i] is not None)
    return next(behind, math.inf) >= left[at] + wait


def _between(found: _Sender, pending: list[_Missing], row: Row, before: float, *, silent: bool) -> None:
    """Assign contents to the missing packets between two data packets; pending retransmissions come first."""
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
    """Assign contents to the end of a flight. The next packet is new data, or the first retransmission of the end of
    the flight, which was sent after the last delivered packet.
    """
    start, end, t = row[3], row[3] + row[4], now.t
    again = (
        found.undecided.pop() if timer and start == found.nxt and found.marks.probed(t, len(found.undecided)) else None
    )
    for unit in found.undecided:
        earlier = unit.before <= t - AGAIN * found.trip
        if earlier and (timer or (unit.t, unit.at) < found.marks.newest) and found.nxt < found.end:
            found.lost_anew(unit, end if found.nxt < end else found.end, row)
            continue
        open_ = [at for at in found.missing if found.may_be(at, unit)]
        if not open_ and not timer and not found.marks.calm and found.nxt < found.end:
            found.lost_anew(unit, end if found.nxt < end else found.end, row)  # no hole that it could have repaired
        elif len(open_) == 1:
            found.lost_again(unit, open_[0], found.marks.probe(t) if timer else unit.t, row)
        else:
            found.unknown += 1
    if again is not None and found.missing:
        found.lost_again(again, found.missing[-1], found.marks.probe(t), row)
    found.undecided.clear()
    if start > found.nxt:  # more data is missing than numbers
        found.lost(now, found.nxt, start - found.nxt, row, "data")
