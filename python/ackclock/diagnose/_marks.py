"""Segments that a sender considers lost, given the ACKs received so far (RACK, RFC 8985). Lost segments are
retransmitted before new data, lowest first. A packet with any other content therefore shows that all lower ones
had been retransmitted.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from ackclock.diagnose._unseen import LEAST_RTO_S

__all__ = ["AGAIN", "Marks"]

DEGREE = 3
"""Number of segments reported above a hole for it to be repaired at once."""

RACK = 0.25
"""Fraction of the minimum RTT that RACK waits if fewer segments are reported."""

AGAIN = 0.9
"""Fraction of the minimum RTT within which the loss of a retransmission cannot be detected."""

PROBE = 2
"""Number of RTTs for which a tail loss probe waits (RFC 8985)."""

WRAP = 1 << 32

Row = tuple[Any, ...]


@dataclass(slots=True)
class Marks:
    """A sender's scoreboard.

    Parameters
    ----------
    acks
        Arrival time of each ACK, and its row, followed by the rows of its SACK blocks.
    trip
        Minimum RTT, s.
    reordered
        Whether packets are reordered, for which RACK then waits.
    """

    acks: list[tuple[float, Row]]
    trip: float
    reordered: bool = False
    lost: dict[int, float] = field(default_factory=dict)
    """Offset of each segment considered lost and not yet retransmitted -> time of that decision."""
    newest: tuple[float, float] = (float("-inf"), 0.0)
    """Latest departure among segments known by the sender to be delivered: time, and index among all departures."""
    una: int = 1
    _next: int = 0
    _nxt: int = 1
    _rtt: float = 0.0
    _heard: float = 0.0
    _high: int = 0
    """Recovery point: losses are being repaired until this offset is acknowledged."""
    _sent: dict[int, tuple[float, float, bool]] = field(default_factory=dict)
    """Offset -> time and index of the last departure, and whether it was a retransmission."""
    _open: list[int] = field(default_factory=list)
    _told: list[int] = field(default_factory=list)
    """Offsets reported as delivered above a hole."""
    _order: list[tuple[float, float, int]] = field(default_factory=list)
    _waits: dict[int, float] = field(default_factory=dict)
    """Offset of each segment for which RACK waits -> end of the wait."""

    def left(self, start: int, length: int, t: float, at: float) -> None:
        """Record the transmission of a segment, new or repeated."""
        if start < self.una or self._is_told(start):
            return
        again = start in self._sent
        if not again:
            insort(self._open, start)
        self._sent[start] = (t, at, again)
        self.lost.pop(start, None)
        self._waits.pop(start, None)
        heappush(self._order, (t, at, start))
        self._nxt = max(self._nxt, start + length)

    def hear(self, t: float, echo: int) -> None:
        """Process all ACKs that had arrived when a packet was sent that echoes the timestamp of the last one."""
        while self._next < len(self.acks):
            heard, row = self.acks[self._next]
            if heard > t and not 0 < (echo - row[8]) % WRAP < WRAP // 2:
                break
            self._ack(min(heard, t))
        self._expire(t)

    @property
    def calm(self) -> bool:
        """Whether nothing is reported missing and no loss is being repaired."""
        return self.una >= self._high and not self._told

    def timeout(self, t: float) -> None:
        """Expire the timer: every segment sent at least one RTT ago is considered lost."""
        for start in self._open:
            if self._sent[start][0] <= t - max(self._rtt, self.trip):
                self.lost.setdefault(start, t)
        self._high = self._nxt

    def since(self, start: int) -> float:
        """Return the time at which a segment was last sent."""
        return self._sent.get(start, (float("inf"), 0.0, False))[0]

    def probe(self, t: float) -> float:
        """Return the departure of a lost probe. The probe restarted the timer, which then sent the next
        retransmission, also lost.
        """
        last = max(self._heard, max((self._sent[start][0] for start in self._open), default=0.0))
        return min((last + t) / 2, last + PROBE * self._rtt + (LEAST_RTO_S if len(self._open) < 2 else 0.0))

    def probed(self, t: float, count: int) -> bool:
        """Return whether the last missing packet was a probe: the timer retransmits the first segment, a probe the
        last.
        """
        return count > 1 and self.una >= self._high and t - self._heard >= PROBE * self._rtt + LEAST_RTO_S

    def unexpected(self, start: int) -> bool:
        """Return whether a segment is the first of several outstanding ones, and its loss has not been reported."""
        first = len(self._open) > 1 and start == self._open[0]
        return first and start not in self.lost and start not in self._waits

    def _is_told(self, start: int) -> bool:
        at = bisect_left(self._told, start)
        return at < len(self._told) and self._told[at] == start

    def _ack(self, heard: float) -> None:
        row = self.acks[self._next][1]
        self._heard = heard
        self._expire(heard)
        if row[2] not in ("sack", "dsack"):
            self._next += 1
            if row[5] is not None and row[5] > self.una:
                self.una = int(row[5])
                self._came(1, self.una, heard)
                del self._told[: bisect_left(self._told, self.una)]
        while self._next < len(self.acks) and (told := self.acks[self._next][1])[2] in ("sack", "dsack"):
            self._next += 1
            if told[2] == "sack" and told[3] >= self.una:
                for start in self._came(told[3], told[3] + told[4], heard):
                    insort(self._told, start)
        while self._order and self._order[0][:2] < self.newest:
            t, at, start = heappop(self._order)
            if start in self._sent and self._sent[start][:2] == (t, at):
                self._waits[start] = max(t + self._rtt + RACK * self.trip, heard)
        if self._waits and not self.reordered and (self.una < self._high or len(self._told) >= DEGREE):
            for start in self._waits:
                self._mark(start, heard)
            self._waits.clear()

    def _came(self, start: int, end: int, heard: float) -> list[int]:
        """Remove from a range the segments that had not been reported, and return them."""
        first, last = bisect_left(self._open, start), bisect_left(self._open, end)
        news = self._open[first:last]
        del self._open[first:last]
        for one in news:
            t, at, again = self._sent.pop(one)
            self.lost.pop(one, None)
            self._waits.pop(one, None)
            if (t, at) > self.newest and not (again and heard - t < AGAIN * self.trip):  # otherwise the first arrived
                self.newest, self._rtt = (t, at), heard - t
        return news

    def _expire(self, t: float) -> None:
        for start in [start for start, due in self._waits.items() if due <= t]:
            self._mark(start, self._waits.pop(start))

    def _mark(self, start: int, t: float) -> None:
        self.lost[start] = t
        if self.una >= self._high:
            self._high = self._nxt
