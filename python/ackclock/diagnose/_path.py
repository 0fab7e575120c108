"""Estimates of a path from a connection's packets: base RTT, the rate of the bottleneck or a bound of it, the queue, losses by kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ackclock.diagnose._passed import HELD_S

if TYPE_CHECKING:
    from ackclock.diagnose._passed import Waits
    from ackclock.diagnose._replay import Instant, Replay

__all__ = ["Path", "estimate"]

STANDS_S = 2e-3
"""A queue stands where the RTT is this much, and a tenth, above the base."""

LEAST_PACKETS, STRETCH = 100, 20
"""Delivered behind a standing queue in all, before a rate is told; and without a break, before they count."""

HALF, TIGHT = 0.5, 2e-3
"""Share of the pieces, by bytes, that agree best; and their greatest distance if they tell the rate."""

AGREE = 0.06
"""How far apart the half may be that agrees best: beyond it the pieces tell no rate, and what the transfer itself carried is a lower bound."""

PLACE = 0.7
"""Share of the pieces, by bytes, from the slowest on, that is taken if they do not agree to `TIGHT`."""

OPEN = 0.5
"""Part of the largest window so far: below it the receiver's application sets the pace, not the path."""

LEAST_SPAN_S = 0.01
"""Over which a rate is taken, at least: times of captures are not exact."""

FULL, EMPTY = 0.8, 0.2
"""Part of the longest wait: what was lost above the first hit a full queue, what was below the second none."""

AGREEING, BEYOND = 2, 0.25
"""Losses that tell the length of a queue, and by which part of a segment they would have waited longer than all that came: where there is room, none would.
A single one may have had another cause.
"""

BLURRED = 2
"""Segments by which they may have waited less, where it is not known to the moment when what was lost had left."""


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


def estimate(
    found: Replay, *, mss: int, header: int, blurred: float = 0.0, trip: float | None = None, unsure: bool = False
) -> Path:
    """Estimate the path from a replay.

    Parameters
    ----------
    found
        Of the sender's packets.
    mss
        Payload of a full segment, bytes.
    header
        Bytes of IP and TCP before it.
    blurred
        When a packet left that no ACK had released is known to so many seconds.
    trip
        Least round trip of a full segment, s, as the capture itself shows it: where departures are known to `blurred` alone, one may seem shorter.
    unsure
        The capture has missed packets: the next ACK, which is of two segments more, may tell of what a missed one was of.
    """
    rtts = [now.rtt for now in found.instants if now.rtt is not None]
    base = min(rtts, default=None)
    greatest = max(rtts, default=None)
    rate, identified = (None, False) if base is None else _rate(found, base, mss)
    if base is not None and rate is not None and identified:  # a packet of several segments takes the time of each
        base = min(now.rtt - 8 * max(now.size - mss, 0) / rate for now in found.instants if now.rtt is not None)
    if base is not None and trip is not None and base < trip <= base + blurred:
        base = trip
    full = random = between = 0
    queue, bound = None, False
    if base is not None and rate is not None:
        waits = found.passed.waits(base=base, rate=rate, mss=mss, whole=not unsure)
        full, random, between = _places(waits)
        queue = waits.longest if full else None
        agreeing = int((waits.beyond > (-BLURRED if blurred else BEYOND)).sum())
        if blurred and (found.paced or random + between > full):  # chance alone shows as much of those
            agreeing = 0
        bound = not identified or agreeing < AGREEING
        if queue is not None and bound:
            queue = max(queue - HELD_S - blurred - (16 * mss / rate if unsure else 0.0), 0.0)
    delivered = found.instants[-1].delivered - 1 if found.instants else 0
    return Path(
        base_rtt_s=base,
        greatest_rtt_s=greatest,
        rate_bps=rate,
        identified=identified,
        wire_bps=None if rate is None else rate * (mss + header) / mss,
        queue_s=queue,
        queue_bound=queue is not None and bound,
        losses_full=full,
        losses_random=random,
        losses_between=between,
        segments_per_ack=delivered / mss / found.acks if found.acks else None,
    )


def _rate(found: Replay, base: float, mss: int) -> tuple[float | None, bool]:
    """Rate of delivery in pieces of time in which a queue stood; without such pieces, the most of any round trip.

    Most pieces show the bottleneck's rate. Those in which a wait of the sender was not noticed show less, those behind ACKs that came late
    and then together show more. Where half of them, by bytes, agree, these have the rate; else `PLACE` of them show at most so much.
    """
    stands = base + max(STANDS_S, 0.1 * base)
    pieces: list[tuple[float, int]] = []  # bit/s, bytes
    first: Instant | None = None
    largest = 0
    for now in found.instants:
        offered = now.room + now.nxt - now.una
        largest = max(largest, offered)
        if now.expired or offered < OPEN * largest:
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
        if now.una >= now.nxt:  # nothing in flight: what comes next begins anew
            first = None
    whole = sum(carried for _, carried in pieces)
    if whole < LEAST_PACKETS * mss:
        return _most(found, base, mss), False
    pieces.sort()
    rate, width = _agreed(pieces, whole)
    most = _most(found, base, mss)
    if width > AGREE or (
        most is not None and most > (1 + AGREE) * rate and max(now.rtt or 0.0 for now in found.instants) < 2 * stands
    ):
        return most, False
    return rate, True


def _agreed(pieces: list[tuple[float, int]], whole: int) -> tuple[float, float]:
    """The rate that pieces in ascending order tell, and how far apart the half is that agrees best."""
    best = pieces
    narrowest, apart = TIGHT, float("inf")
    end = inside = 0
    share = PLACE * whole
    for start, (least, carried) in enumerate(pieces):
        while inside < HALF * whole and end < len(pieces):
            inside += pieces[end][1]
            end += 1
        if inside < HALF * whole:
            break
        width = pieces[end - 1][0] / least - 1
        apart = min(apart, width)
        if width < narrowest:
            narrowest, best, share = width, pieces[start:end], inside / 2
        inside -= carried
    for rate, carried in best:
        share -= carried
        if share <= 0:
            return rate, apart
    return best[-1][0], apart


def _most(found: Replay, base: float, mss: int) -> float | None:
    """The most that was delivered in a round trip, bit/s: the path carries at least so much.

    It begins with an ACK of two segments: that of a single one may have been held back, and what follows would seem faster.
    """
    span = max(base, LEAST_SPAN_S)
    points = [(now.t, now.delivered) for now in found.instants if now.acked >= 2 * mss]
    if len(points) < 2:  # each segment has an ACK of its own: none was held back
        points = [(now.t, now.delivered) for now in found.instants if now.acked >= mss]
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


def _places(waits: Waits) -> tuple[int, int, int]:
    """How many were lost at a full queue, at none, and in between."""
    if waits.longest <= STANDS_S:
        return 0, len(waits.lost), 0
    full = int((waits.lost >= FULL * waits.longest).sum())
    random = int((waits.lost <= EMPTY * waits.longest).sum())
    return full, random, len(waits.lost) - full - random
