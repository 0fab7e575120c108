"""Path estimates from a connection's packets: base RTT, the bottleneck rate or a bound on it, the queue, losses by
kind.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ackclock.diagnose._passed import HELD_S

if TYPE_CHECKING:
    from ackclock.diagnose._passed import Waits
    from ackclock.diagnose._replay import Instant, Replay

__all__ = ["Path", "estimate"]

STANDS_S = 2e-3
"""Minimum excess of the RTT over the base for a queue to be reported, s; it must also be a tenth of the base."""

LEAST_PACKETS, STRETCHES = 100, (20, 80, 320)
"""Minimum number of packets delivered from a queue for a rate estimate: in total, and per uninterrupted
piece. Longer pieces are used if shorter ones disagree because of ACK jitter.
"""

LEAST_PIECES, NARROWER = 8, 1.5
"""Minimum number of longer pieces, and factor by which they must agree better than the shorter ones."""

HALF, TIGHT = 0.5, 2e-3
"""Fraction of the pieces, by bytes, that must agree to determine the rate, and their maximum relative difference."""

AGREE = 0.06
"""Maximum relative difference within the best half. Beyond it, the pieces do not determine the rate, and the
transfer's own rate is a lower bound.
"""

PLACE = 0.7
"""Fraction of the pieces, by bytes and starting with the slowest, used if they do not agree within `TIGHT`."""

OPEN = 0.5
"""Fraction of the maximum window so far, below which the receiver's application, not the path, sets the pace."""

LEAST_SPAN_S = 0.01
"""Minimum time over which a rate is measured, s: capture timestamps are not exact."""

FULL, EMPTY = 0.8, 0.2
"""Fractions of the longest wait: a loss above the first hit a full queue, a loss below the second an empty one."""

AGREEING, BEYOND = 2, 0.25
"""Minimum number of losses from which to infer a queue limit (a single loss may have another cause); and margin, in segments,
by which lost packets would have waited longer than every delivered one.
"""

BLURRED = 2
"""Number of segments by which they may have waited less, if lost packets' departures are known only approximately."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Path:
    """Estimates of the path in one direction.

    Parameters
    ----------
    base_rtt_s
        RTT of a full segment over the idle path: the minimum, less the transmission of what left in the same packet.
    queued_rtt_s
        Longest RTT that a queue explains: of segments that were sent once and that no later one overtook. The greatest
        RTT of all is the connection's `rtt_max_s`.
    rate_bps
        Payload that the bottleneck carries, bit/s; None if no round trip was measured.
    identified
        Whether a queue existed long enough; otherwise the rate is a lower bound.
    wire_bps
        Rate including IP and TCP headers.
    queue_s
        Wait in the full queue, s; None if no loss reveals it.
    queue_bound
        Whether no two losses at a full queue agree on its length: the queue is at least this long.
    sent_again_full, sent_again_empty, sent_again_part_full
        Segments sent again whose lost transmission had met a queue that was full, empty, or part full; the connection's
        `spurious` of them were sent again for nothing.
    segments_per_ack
        Segments that an ACK usually covers.
    """

    base_rtt_s: float | None
    queued_rtt_s: float | None
    rate_bps: float | None
    identified: bool
    wire_bps: float | None
    queue_s: float | None
    sent_again_full: int
    sent_again_empty: int
    sent_again_part_full: int
    segments_per_ack: float | None
    queue_bound: bool = False


def estimate(
    found: Replay, *, mss: int, header: int, blurred: float = 0.0, trip: float | None = None, unsure: bool = False
) -> Path:
    """Estimate the path from a replay.

    Parameters
    ----------
    found
        Replay of the sender's packets.
    mss
        Payload of a full segment, bytes.
    header
        Bytes of IP and TCP before it.
    blurred
        Uncertainty in the departure times of packets that no ACK had released, s.
    trip
        Minimum round trip of a full segment, s, as the capture shows it: if departures are only known to `blurred`, a
        round trip may seem shorter.
    unsure
        Whether the capture has missed packets: the next ACK, for two more segments, may then cover a missed one.
    """
    rtts = [now.rtt for now in found.instants if now.rtt is not None]
    base = min(rtts, default=None)
    queued = max(rtts, default=None)
    rate, identified = (None, False) if base is None else _rate(found, base, mss)
    if base is not None and rate is not None and identified:  # each segment of a packet has its own transmission time
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
        if blurred and (found.paced or random + between > full):  # random losses would agree as often
            agreeing = 0
        bound = not identified or agreeing < AGREEING
        if queue is not None and bound:
            queue = max(queue - HELD_S - blurred - (16 * mss / rate if unsure else 0.0), 0.0)
    delivered = found.instants[-1].delivered - 1 if found.instants else 0
    return Path(
        base_rtt_s=base,
        queued_rtt_s=queued,
        rate_bps=rate,
        identified=identified,
        wire_bps=None if rate is None else rate * (mss + header) / mss,
        queue_s=queue,
        queue_bound=queue is not None and bound,
        sent_again_full=full,
        sent_again_empty=random,
        sent_again_part_full=between,
        segments_per_ack=delivered / mss / found.acks if found.acks else None,
    )


def _rate(found: Replay, base: float, mss: int) -> tuple[float | None, bool]:
    """Return the delivery rate over periods with a queue; without such periods, the highest rate of any round
    trip. Most pieces show the bottleneck's rate. Pieces with an unnoticed sender wait show less; pieces after late,
    bunched ACKs show more. If half of the pieces, by bytes, agree, they determine the rate. Otherwise longer pieces
    are tried, on which late ACKs have less effect.
    """
    stands = base + max(STANDS_S, 0.1 * base)
    most = _most(found, base, mss)
    rate, width, bound = 0.0, math.inf, most
    for stretch in STRETCHES:
        pieces = _pieces(found, stands, stretch * mss)
        whole = sum(carried for _, carried in pieces)
        if whole < LEAST_PACKETS * mss or (stretch > STRETCHES[0] and len(pieces) < LEAST_PIECES):
            break
        one, apart = _agreed(pieces, whole, long=stretch > STRETCHES[0])
        bound = min(most or math.inf, whole / sum(carried / rate for rate, carried in pieces))
        if apart < width / NARROWER:
            rate, width = one, apart
        if width <= TIGHT:
            break
    greatest = max(now.rtt or 0.0 for now in found.instants)
    if width > AGREE:
        return bound, False
    if most is not None and most > (1 + AGREE) * rate and greatest < 2 * stands:
        longer = _most(found, base, mss, trips=2)  # late ACKs bunch within a round trip
        if longer is not None and longer > (1 + AGREE / 2) * rate:
            return most, False
    return rate, True


def _pieces(found: Replay, stands: float, least: int) -> list[tuple[float, int]]:
    """Return rate, bit/s, and size in bytes of each piece of at least this many bytes sent from a queue, in ascending order."""
    pieces: list[tuple[float, int]] = []
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
        elif now.delivered - first.delivered >= least and now.t > first.t:
            carried = now.delivered - first.delivered
            pieces.append((8 * carried / (now.t - first.t), carried))
            first = now
        if now.una >= now.nxt:  # nothing in flight: a new piece begins
            first = None
    return sorted(pieces)


def _agreed(pieces: list[tuple[float, int]], whole: int, *, long: bool = False) -> tuple[float, float]:
    """Return the rate determined by pieces in ascending order, and the maximum relative difference within the best
    half. For long pieces, the best half determines the rate, because late and bunched ACKs hardly affect them.
    """
    best = pieces
    narrowest, apart = AGREE if long else TIGHT, float("inf")
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


def _most(found: Replay, base: float, mss: int, trips: int = 1) -> float | None:
    """Return the highest rate delivered within so many round trips, bit/s, as a lower bound on the path's rate. The round
    trip begins with an ACK for two segments, because an ACK for a single one may have been delayed, which would make
    the data after it seem faster.
    """
    span = trips * max(base, LEAST_SPAN_S)
    points = [(now.t, now.delivered) for now in found.instants if now.acked >= 2 * mss]
    if len(points) < 2:  # each segment has its own ACK, so none was delayed
        points = [(now.t, now.delivered) for now in found.instants if now.acked >= mss]
    best, first = 0.0, 0
    for t, delivered in points:
        while t - points[first][0] > span:
            first += 1
        if first:  # counted from the data delivered before the round trip
            begin, before = points[first - 1]
            best = max(best, 8 * (delivered - before) / (t - begin))
    if best == 0.0 and len(points) > 1 and points[-1][0] > points[0][0]:
        best = 8 * (points[-1][1] - points[0][1]) / (points[-1][0] - points[0][0])
    return best if best > 0 else None


def _places(waits: Waits) -> tuple[int, int, int]:
    """Return the number of losses at a full queue, at an empty one, and in between."""
    if waits.longest <= STANDS_S:
        return 0, len(waits.lost), 0
    full = int((waits.lost >= FULL * waits.longest).sum())
    random = int((waits.lost <= EMPTY * waits.longest).sum())
    return full, random, len(waits.lost) - full - random
