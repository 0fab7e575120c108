"""Replays one direction of a connection from its sender's point of view, and finds what limited the sender between
two packets (`_waits`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from ackclock._results.limits import CAUSES
from ackclock.diagnose._passed import Passed
from ackclock.diagnose._push import marks_tell
from ackclock.diagnose._rows import rows_of
from ackclock.diagnose._unseen import LEAST_RTO_S, UNSEEN
from ackclock.diagnose._waits import (
    Instant,
    behind_small,
    causes_of,
    holds_small_back,
    is_buffered,
    is_level,
    is_paced,
    last_departures,
    with_buffer,
    with_small,
)

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Instant", "Replay", "gap", "replay", "unexplained"]

PSH, FIN = 0x08, 0x01

LONGEST_GAP_S = 2e-4
"""Upper bound of `gap`, the sender's own delay between an ACK and the data it releases, s."""

LOOKED = 50_000
"""Number of packets at the beginning that tell the sender's usual delay."""

UNKNOWN = (0.0, 2, 0, 0)
"""Entry of `sent_at` for bytes that were not sent as one packet; treated as sent twice."""


@dataclass(kw_only=True, slots=True)
class Replay:
    """Replay result; times are seconds since the capture's first packet."""

    instants: list[Instant]
    causes: list[str]
    """Cause that applies from each instant to the next."""
    seconds: dict[str, float]
    carried: dict[str, int]
    """Bytes delivered while each cause was active."""
    passed: Passed = field(default_factory=Passed)
    recoveries: int = 0
    timeouts: int = 0
    paced: bool = False
    level: bool = False
    """Whether the sender does not pace and the same number of bytes is in flight in every round trip."""
    buffered: bool = False
    """Whether the application may have been waiting for send buffer space."""
    nagle: float = 0.0
    """Part of the application's time in which Nagle's algorithm held back a short segment already written, s."""
    small: bool = False
    """Whether writes of less than a segment wait for the ACK of the previous one (Nagle)."""
    acks: int = 0
    gap: float = 0.0
    """Maximum time between packets that count as one instant, s."""


def replay(packets: pl.DataFrame, *, server: bool, mss: int) -> Replay:
    """Replay a connection's packets, captured at its sender.

    Parameters
    ----------
    packets
        Packets from `ackclock.formats.read_capture`.
    server
        Whether to use the data that the server sends.
    mss
        Payload of a full segment, bytes.
    """
    chosen = packets.select("t_s", "from_server", "kind", "seq", "length", "ack", "window", "flags")
    apart = gap(chosen, server)
    found = _Sender(server=server, mss=mss, gap=apart, marks=marks_tell(chosen, server=server, mss=mss, apart=apart))
    for row in rows_of(chosen):
        found.take(*row)
    found.close()
    return found.result()


def gap(packets: pl.DataFrame, server: bool) -> float:
    """Return three times the usual time between an ACK and the data it releases, s.

    Parameters
    ----------
    packets
        See `replay`.
    server
        Whether to use the data that the server sends.
    """
    waits: list[float] = []
    last = None
    for t, from_server, kind in packets.select("t_s", "from_server", "kind").head(LOOKED).iter_rows():
        if from_server != server and kind == "ack":
            last = t
        elif from_server == server and kind == "data" and last is not None:
            waits.append(t - last)
            last = None
    waits.sort()
    usual = waits[len(waits) // 4] if waits else 0.0
    return min(max(3 * usual, 1e-6), LONGEST_GAP_S)


class _Sender:
    """Sender state, as far as its packets show it."""

    def __init__(self, *, server: bool, mss: int, gap: float, marks: bool) -> None:
        self.server, self.mss, self.gap, self.marks = server, mss, gap, marks
        self.done: list[Instant] = []
        self.now: Instant | None = None
        self.una, self.nxt, self.edge = 1, 1, 1
        self.established = False
        self.recovering = False
        self.after_timeout = 0
        self.high = 0
        self.again_to = 0  # end of the retransmitted data
        self.sent_at: dict[
            int, tuple[float, int, int, int]
        ] = {}  # end -> time of first transmission, number of transmissions, length, number of the last transmission
        self.passed = Passed()
        self.news: list[int] = []  # numbers of the packets reported by the current ACK
        self.heard_at = 0.0
        self.sacked: list[tuple[int, int]] = []
        self.sacked_bytes = 0
        self.syn_at: float | None = None
        self.srtt: float | None = None
        self.rttvar = 0.0
        self.quiet_since = 0.0  # last progress, or last transmission of the first outstanding segment, s
        self.recoveries = self.timeouts = self.acks = 0
        self.order: list[int] = []  # end offsets in flight, ascending
        self.first = 0

    def take(
        self, t: float, from_server: bool, kind: str, seq: int, length: int, ack: float | None, window: int, flags: int
    ) -> None:
        if self.news and kind != "sack":
            self._told()
        if self.now is None or t - self.now.t > self.gap:
            self.close()
            self.now = Instant(t)
        now = self.now
        if from_server == self.server:
            self._sent(now, t, kind, seq, length, flags)
        elif kind == "sack":
            self._sack(now, t, seq, seq + length)
        elif ack is not None and kind != "dsack":
            self._heard(now, t, kind, int(ack), window)

    def close(self) -> None:
        if self.news:
            self._told()
        if self.now is None:
            return
        now = self.now
        now.una, now.nxt, now.room = self.una, self.nxt, self.edge - self.nxt
        now.recovering, now.established = self.recovering, self.established
        now.delivered = self.una + self.sacked_bytes
        self.done.append(now)
        self.now = None

    def _sent(self, now: Instant, t: float, kind: str, seq: int, length: int, flags: int) -> None:
        if kind == "syn":
            self.syn_at = t
            return
        if not self.established and length == 0:
            self.established = True  # the ACK of the SYN-ACK
        if length == 0 or kind == "probe":
            return
        end = seq + length
        if kind in ("retransmission", "needless", "late") and seq < self.nxt:
            self._again(now, t, seq, end)
            return
        if end <= self.nxt:
            return
        now.clocked = now.heard if not now.new else now.clocked
        now.new += end - max(seq, self.nxt)
        # a segment that ends at the window edge was cut there
        now.pushed = (bool(flags & PSH and self.marks) or (end - seq) % self.mss != 0) and end != self.edge
        if not now.heard and not now.pushed and now.new == self.mss and self.srtt is not None and self.done:
            # A tail loss probe with new data is sent two RTTs after the last arrival, or when the timer for the first
            # segment in flight would expire.
            now.probe = t - self.done[-1].t >= 1.5 * self.srtt or self._is_due(t)
        self.nxt = end
        self.quiet_since = t if self.una >= seq else self.quiet_since
        self.sent_at[end] = (t, 1, end - seq, self.passed.add(t, end - seq))
        self.order.append(end)

    def _again(self, now: Instant, t: float, seq: int, end: int) -> None:
        now.again += end - seq
        at = bisect_left(self.order, end, self.first)
        if at < len(self.order):
            *_, whole, number = self.sent_at[self.order[at]]
            if self.order[at] - whole < end:  # a piece split off by a NIC represents the whole packet
                self.passed.lost.append(number)
            self._cut(at, seq, end)
        if end in self.sent_at:
            first, times, size, _ = self.sent_at[end]
            self.sent_at[end] = (first, times + 1, size, self.passed.add(t, size))
        self.again_to = max(self.again_to, end)
        head = seq <= self.una
        last = end >= self.nxt
        silent = not now.heard
        rto = max(LEAST_RTO_S, (self.srtt or 0.0) + 4 * self.rttvar) if self.srtt is not None else 0.9
        waited = t - (self.done[-1].t if self.done else t)
        overdue = t - self.quiet_since >= 0.9 * rto or waited >= max(0.9 * LEAST_RTO_S, 0.9 * (self.srtt or 0.0))
        if (
            silent
            and head
            and overdue
            and not (last and not self.recovering and not now.probe and self._first_probe(end))
        ):
            now.expired = True
            self.timeouts += 1
            self.recovering, self.high, self.after_timeout = True, self.nxt, 1
        elif silent and last and not self.recovering:
            now.probe = True  # a tail loss probe
        elif not self.recovering:
            self.recoveries += 1
            self.recovering, self.high, self.after_timeout = True, self.nxt, 0
        elif self.after_timeout:
            self.after_timeout += 1
        if head:
            self.quiet_since = t

    def _cut(self, at: int, seq: int, end: int) -> None:
        """Split an entry after one of several segments sent as one packet has been retransmitted alone. Each piece
        then has its own entry.
        """
        whole = self.order[at]
        first, times, size, number = self.sent_at[whole]
        edges = [whole - size, *(edge for edge in (seq, end) if whole - size < edge < whole), whole]
        if len(edges) > 2:
            self.order[at : at + 1] = edges[1:]
            for begin, edge in pairwise(edges):
                self.sent_at[edge] = (first, times, edge - begin, number)

    def _is_due(self, t: float) -> bool:
        """Return whether the first segment in flight has been outstanding for a full RTO, with no probe sent since
        the last ACK.
        """
        first = self.sent_at.get(self.order[self.first], UNKNOWN) if self.first < len(self.order) else UNKNOWN
        due = self.srtt is not None and first[1] == 1 and t - first[0] >= self.srtt + LEAST_RTO_S
        return due and not self.recovering and not self.done[-1].probe

    def _first_probe(self, end: int) -> bool:
        return self.sent_at.get(end, UNKNOWN)[1] <= 2

    def _sack(self, now: Instant, t: float, start: int, end: int) -> None:
        start = max(start, self.una)
        if start >= end:
            return
        self._comes(t, start, end)
        before = self.sacked_bytes
        known = any(a < end <= b for a, b in self.sacked)  # the block grew at its lower end
        self._merge(start, end)
        news = self.sacked_bytes - before
        if news > 0:
            now.acked += news
            now.heard = True
            if not known:
                self._sample(now, t, end)

    def _comes(self, t: float, start: int, end: int) -> None:
        """Record the packets in a range that this ACK is the first to report."""
        at, self.heard_at = start, t
        for a, b in [*self.sacked, (end, end)]:
            if b <= at:
                continue
            upto = min(a, end)
            if upto > at:
                order = self.order
                for i in range(bisect_right(order, at, self.first), bisect_right(order, upto, self.first)):
                    self.news.append(self.sent_at[order[i]][3])
            at = max(at, b)
            if at >= end:
                break

    def _told(self) -> None:
        self.passed.tell(self.news, self.heard_at, self.una + self.sacked_bytes)
        self.news.clear()

    def _merge(self, start: int, end: int) -> None:
        kept = []
        for a, b in self.sacked:
            if b < start or a > end:
                kept.append((a, b))
            else:
                start, end = min(a, start), max(b, end)
        kept.append((start, end))
        kept.sort()
        self.sacked = kept
        self.sacked_bytes = sum(b - a for a, b in kept)

    def _heard(self, now: Instant, t: float, kind: str, ack: int, window: int) -> None:
        if kind == "syn":
            self.edge = max(self.edge, 1 + window)
            if self.syn_at is not None and not self.established:
                self._smooth(t - self.syn_at)
            return
        if not self.established and self.syn_at is not None and self.srtt is None:
            self._smooth(t - self.syn_at)
        self.established = True
        if ack < self.una:
            return
        now.heard = True
        self.edge = ack + window
        if ack > self.una:
            self.acks += 1
            self._comes(t, self.una, ack)
            covered = sum(min(b, ack) - a for a, b in self.sacked if a < ack)
            now.acked += ack - self.una - covered
            told = any(a < ack <= b for a, b in self.sacked)  # the segment arrived long ago
            self.sacked = [(max(a, ack), b) for a, b in self.sacked if b > ack]
            self.sacked_bytes = sum(b - a for a, b in self.sacked)
            if kind == UNSEEN:
                told = True
                self.news.clear()
            fresh = self._once(ack) if told else self._sample(now, t, ack)
            self.una = ack
            self.quiet_since = t
            if self.nxt < ack:
                self.nxt = ack
            self._forget(ack)
            if self.recovering and ack >= self.high and self.again_to > ack:
                # the next episode begins where this one ends, because data sent later is lost as well
                self.recoveries += 1
                self.high, self.after_timeout = self.nxt, 0
            elif self.recovering and (ack >= self.high or (self.after_timeout == 1 and fresh)):
                self.recovering, self.after_timeout = False, 0
            if not self.sacked and not self.recovering:
                self.passed.calm = t

    def _once(self, end: int) -> bool:
        return self.sent_at.get(end, UNKNOWN)[1] == 1

    def _sample(self, now: Instant, t: float, end: int) -> bool:
        """Take an RTT sample if the newly reported data was sent only once; return whether it was."""
        sent = self.sent_at.get(end)
        if sent is None or sent[1] > 1:
            return False
        rtt = t - sent[0]
        now.rtt, now.size = rtt, sent[2]
        self._smooth(rtt)
        return True

    def _smooth(self, rtt: float) -> None:
        """Update srtt and rttvar (RFC 6298)."""
        if self.srtt is None:
            self.srtt, self.rttvar = rtt, rtt / 2
        else:
            self.rttvar += (abs(rtt - self.srtt) - self.rttvar) / 4
            self.srtt += (rtt - self.srtt) / 8

    def _forget(self, ack: int) -> None:
        order, at = self.order, self.first
        while at < len(order) and order[at] <= ack:
            self.sent_at.pop(order[at], None)
            at += 1
        if at > 65_536:
            del order[:at]
            at = 0
        self.first = at

    def result(self) -> Replay:
        paced = is_paced(self.done, self.mss)
        causes = causes_of(self.done, mss=self.mss, paced=paced)
        waited = sum(
            then.t - now.t
            for now, then, cause in zip(self.done, self.done[1:], causes, strict=False)
            if cause == "application"
        )
        nagle = behind_small(self.done, causes, self.mss)
        buffered = nagle <= waited / 2 and is_buffered(self.done, causes)
        small = holds_small_back(self.done, self.mss)
        if buffered:
            causes = with_buffer(self.done, causes, self.mss)
        elif small:
            causes = with_small(self.done, causes, self.mss)
        seconds = dict.fromkeys(CAUSES, 0.0)
        carried = dict.fromkeys(CAUSES, 0)
        for i, cause in enumerate(causes):
            seconds[cause] += self.done[i + 1].t - self.done[i].t
            carried[cause] += self.done[i + 1].acked
        return Replay(
            instants=self.done,
            causes=causes,
            seconds=seconds,
            carried=carried,
            passed=self.passed,
            recoveries=self.recoveries,
            timeouts=self.timeouts,
            paced=paced,
            buffered=buffered,
            nagle=nagle,
            small=small,
            level=not paced and is_level(self.done, causes, self.mss),
            acks=self.acks,
            gap=self.gap,
        )


def unexplained(found: Replay) -> float:
    """Return the fraction of the time attributed to the application although the previous packet did not end a write
    and no ACK arrived with the next one.

    Parameters
    ----------
    found
        Replay of the sender.
    """
    if found.small:
        return 0.0  # several writes can fill a segment, which is sent after the last one
    ended = last_departures(found.instants)[0]
    life = sum(found.seconds.values()) - found.seconds["idle"]
    # no new data was sent after this instant
    last = max((i for i, now in enumerate(found.instants) if now.new), default=0)
    spent, alone = 0.0, False
    for i in range(last - 1, -1, -1):
        now, then = found.instants[i], found.instants[i + 1]
        alone = not then.clocked if then.new else alone
        spent += then.t - now.t if found.causes[i] == "application" and alone and not ended[i] else 0.0
    return spent / life if life > 0 else 0.0
