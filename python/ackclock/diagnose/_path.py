"""What a connection's packets tell of its path: base RTT, the rate of the bottleneck or a bound of it, the queue, losses by kind."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ackclock.diagnose._replay import Instant, Replay

__all__ = ["Path", "estimate"]

STANDS_S = 2e-3
"""A queue stands where the RTT is this much, and a tenth, above the base."""

LEAST_PACKETS, STRETCH = 100, 20
"""Delivered behind a standing queue in all, before a rate is told; and without a break, before they count."""

PLACE = 0.7
"""Of the pieces, by bytes: from the slowest on."""

LEAST_SPAN_S = 0.01
"""Over which a rate is taken, at least: times of captures are not exact."""

FULL, EMPTY = 0.8, 0.2
"""Part of the way from the base RTT to the greatest: losses above the first hit a full queue, those below the second none."""


SHORT = 0.85
"""Part of the longest wait of all: if those before losses are shorter than it, they came too early to tell."""

AGREEING, AGREE = 2, 0.95
"""Losses at a full queue that tell its length, and how near their waits are to the longest of them; a single one may have had another cause."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Path:
    """The path of one direction.

    Parameters
    ----------
    base_rtt_s, greatest_rtt_s
        Least and greatest round trip of a segment that was sent once.
    rate_bps
        Payload that the bottleneck carries, bit/s; None if no round trip was measured.
    identified
        A queue stood long enough: else the rate is a lower bound.
    wire_bps
        The same with headers of IP and TCP.
    queue_s
        Wait in the queue when it was full, s; None if no loss tells.
    queue_bound
        Of the losses at a full queue no two agree on its length: it is at least so long.
    losses_full, losses_random, losses_between
        Segments lost where the RTT was near its greatest, near its base, in between.
    segments_per_ack
        Segments that an ACK covers, as a rule.
    """

    base_rtt_s: float | None
    greatest_rtt_s: float | None
    rate_bps: float | None
    identified: bool
    wire_bps: float | None
    queue_s: float | None
    losses_full: int
    losses_random: int
    losses_between: int
    segments_per_ack: float | None
    queue_bound: bool = False


def estimate(found: Replay, *, mss: int, header: int) -> Path:
    """Estimate the path from a replay.

    Parameters
    ----------
    found
        Of the sender's packets.
    mss
        Payload of a full segment, bytes.
    header
        Bytes of IP and TCP before it.
    """
    rtts = [now.rtt for now in found.instants if now.rtt is not None]
    base = min(rtts, default=None)
    greatest = max(rtts, default=None)
    rate, identified = (None, False) if base is None else _rate(found, base, mss)
    if base is not None and rate is not None and identified:  # a packet of several segments takes the time of each
        base = min(now.rtt - 8 * max(now.size - mss, 0) / rate for now in found.instants if now.rtt is not None)
    full, random, between, waits = _losses(found, base, greatest)
    queue = _queue(waits, greatest - base) if waits and base is not None and greatest is not None else None
    delivered = found.instants[-1].delivered - 1 if found.instants else 0
    return Path(
        base_rtt_s=base,
        greatest_rtt_s=greatest,
        rate_bps=rate,
        identified=identified,
        wire_bps=None if rate is None else rate * (mss + header) / mss,
        queue_s=queue,
        queue_bound=queue is not None
        and (not identified or sum(wait >= AGREE * max(waits) for wait in waits) < AGREEING or between > full),
        losses_full=full,
        losses_random=random,
        losses_between=between,
        segments_per_ack=delivered / mss / found.acks if found.acks else None,
    )


def _rate(found: Replay, base: float, mss: int) -> tuple[float | None, bool]:
    """What was delivered in pieces of time in which a queue stood; without such, the most of any round trip.

    Most pieces show the bottleneck's rate. Those in which a wait of the sender was not noticed show less, those behind ACKs that came
    late and then together show more: `PLACE` of them, by bytes, show at most so much.
    """
    stands = base + max(STANDS_S, 0.1 * base)
    pieces: list[tuple[float, int]] = []  # bit/s, bytes
    first: Instant | None = None
    for now in found.instants:
        if now.expired:
            first = None
        if now.rtt is None:
            continue
        if now.rtt <= stands:
            first = None
        elif first is None:
            first = now
        elif now.delivered - first.delivered >= STRETCH * mss and now.t > first.t:
            carried = now.delivered - first.delivered
            pieces.append((8 * carried / (now.t - first.t), carried))
            first = now
    whole = sum(carried for _, carried in pieces)
    if whole < LEAST_PACKETS * mss:
        return _most(found, base, mss), False
    pieces.sort()
    below = 0
    for rate, carried in pieces:
        below += carried
        if below >= PLACE * whole:
            return rate, True
    return None, False


def _most(found: Replay, base: float, mss: int) -> float | None:
    """The most that was delivered in a round trip, bit/s: the path carries at least so much.

    It begins with an ACK of two segments: that of a single one may have been held back, and what follows would seem faster.
    """
    span = max(base, LEAST_SPAN_S)
    points = [(now.t, now.delivered) for now in found.instants if now.acked >= 2 * mss]
    best, first = 0.0, 0
    for t, delivered in points:
        while t - points[first][0] > span:
            first += 1
        if first:  # from the end of what came before the round trip
            begin, before = points[first - 1]
            best = max(best, 8 * (delivered - before) / (t - begin))
    if best == 0.0 and len(points) > 1 and points[-1][0] > points[0][0]:
        best = 8 * (points[-1][1] - points[0][1]) / (points[-1][0] - points[0][0])
    return best if best > 0 else None


def _queue(waits: list[float], most: float) -> float:
    """How long a full queue is, by the waits before losses at one, and by the longest of all.

    The longest may be that of an ACK which came late; but a loss in slow start is noticed when the waits before it tell of a shorter queue.
    """
    longest = max(waits)
    return most if longest < SHORT * most else longest


def _losses(found: Replay, base: float | None, greatest: float | None) -> tuple[int, int, int, list[float]]:
    """Where the RTT stood when what was lost had been noticed."""
    if base is None or greatest is None:
        return 0, len(found.losses), 0, []
    high = max(greatest - base, 0.0)
    samples = [(now.t, now.rtt, now.recovering) for now in found.instants if now.rtt is not None]
    counts = [0, 0, 0]
    waits: list[float] = []  # the longest of the round trip before each loss that a full queue made
    late: list[float] = []  # the last one where a repair has lasted longer than that
    recently: deque[tuple[float, float]] = deque()  # by falling RTT, each later than the one before
    at = 0
    recent = math.nan
    for t in found.losses:
        while at < len(samples) and samples[at][0] <= t:
            recent = samples[at][1]
            if not samples[at][2]:  # what a repair brings may have been told late
                while recently and recently[-1][1] <= recent:
                    recently.pop()
                recently.append((samples[at][0], recent))
            at += 1
        while len(recently) > 1 and recently[0][0] < t - greatest:
            recently.popleft()
        place = (recent - base) / high if high > STANDS_S and recent == recent else 0.0
        kind = 0 if place >= FULL else 1 if place <= EMPTY else 2
        counts[kind] += 1
        if kind == 0:
            fresh = recently and recently[-1][0] >= t - greatest
            (waits if fresh else late).append((recently[0][1] if fresh else recent) - base)
    return counts[0], counts[1], counts[2], waits or late
