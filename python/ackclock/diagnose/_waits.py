"""Finds the cause of each sender wait from the event that ended it, by the sender's own rules. If an arriving ACK
releases data, the window had stopped the sender. If new data is sent without an ACK, the application or pacing had. A
wait's cause is therefore known at its end, and a wait with an inconclusive end gets the cause of the next one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

__all__ = [
    "Instant",
    "behind_small",
    "causes_of",
    "holds_small_back",
    "is_buffered",
    "is_level",
    "is_paced",
    "last_departures",
    "with_buffer",
    "with_small",
]

BURST_S = 3e-3
"""Longest pause between paced bursts, s: Linux paces in millisecond bursts."""

CLOCKED = 0.25
"""Minimum fraction of departures released by ACKs above which cwnd may limit a paced sender."""

PACED = 0.3
"""Minimum fraction of departures without an ACK, after a packet that did not end a write, above which a flow counts as paced."""

LEVEL_TRIPS, LEVEL = 20, 0.8
"""Number of round trips compared, and fraction of them with the same number of bytes in flight, to within a segment."""

LARGER = 2
"""Minimum size of a single write, in largest packets, that coincided with an ACK."""

LEAST_WAKES, WAKES_S, SOON = 10, 1e-3, 0.3
"""Number of writes that indicates a full send buffer; time after an ACK within which the program wakes up, s; and
maximum of that time as a fraction of the time between two ACKs.
"""

DRAINED = 2 / 3
"""Fraction of the flight remaining after a write's last packet, below which no window can have held back the next
data. Linux waits for a larger packet until a third of the window is free (`tcp_tso_win_divisor`), and wakes a
blocked program once a third of its send buffer is free.
"""

LARGE_S, FASTER, LEAST_LARGE = 1e-3, 1.2, 2
"""Duration of a packet of several segments at the pacing rate, s; ratio of that rate to a flight per round trip; and
minimum number of its segments (`tcp_tso_autosize`).
"""

ACKS = 3
"""Number of consecutive ACKs that must release no data before the sender is judged to have had nothing to send."""

LONGER = 2
"""Maximum ratio of one pacing wait to the previous one."""


EVEN = 3
"""Maximum ratio of a long to a short gap between departures if writes of one size fill consecutive segments."""


@dataclass(slots=True)
class Instant:
    """Events at one instant, and the resulting state."""

    t: float
    acked: int = 0
    """Bytes newly acknowledged or SACKed."""
    heard: bool = False
    """Whether an ACK or a window update arrived."""
    new: int = 0
    clocked: bool = False
    """Whether an ACK arrived before the new data was sent."""
    again: int = 0
    pushed: bool = False
    """Whether the last packet of new data ends a write, or is short."""
    expired: bool = False
    """Whether the retransmission timer has expired."""
    probe: bool = False
    una: int = 1
    nxt: int = 1
    room: int = 0
    """Free space in the receiver's window, bytes."""
    recovering: bool = False
    established: bool = True
    rtt: float | None = None
    size: int = 0
    """Size of the packet from which `rtt` was measured, bytes."""
    delivered: int = 0


def is_paced(instants: list[Instant], mss: int) -> bool:
    """Return whether full packets are sent without an ACK although the application had more data at the previous
    departure.

    An application whose last segment waits for an ACK (Nagle) looks similar, but it writes more at a time, and not many
    times per round trip.
    """
    alone, gaps, sizes = left_alone(instants)
    rtts = [now.rtt for now in instants if now.rtt is not None]
    if alone <= 20 or len(gaps) <= PACED * alone or not rtts or holds_small_back(instants, mss):
        return False
    gap = median(gaps)
    return gap <= BURST_S or (gap < median(rtts) and median(sizes) <= 2 * mss)


def left_alone(instants: list[Instant]) -> tuple[int, list[float], list[int]]:
    """Return the number of departures of new data without an ACK, and the waits, s, and sizes of those that follow a
    packet that did not end a write.
    """
    alone, gaps, sizes = 0, [], []
    pushed, left = True, 0.0
    for now in instants:
        if now.new and not now.clocked and not now.recovering:
            alone += 1
            if not pushed:
                gaps.append(now.t - left)
                sizes.append(now.new)
        if now.new:
            pushed, left = now.pushed, now.t
    return alone, gaps, sizes


def holds_small_back(instants: list[Instant], mss: int) -> bool:
    """Return whether short segments are repeatedly sent with the ACK of the previous one (Nagle). A sender that paces
    and always has more data sends no short segment.
    """
    small, held, short, last = 0, 0, 0, 0
    for now in instants:
        if now.new:
            rest = now.new % mss
            if rest and small:
                short += 1
                held += now.clocked and last < small <= now.una
            small = now.nxt if rest else small
        last = now.una
    alone = sorted(left_alone(instants)[1])
    longest = EVEN * alone[len(alone) // 10] if alone else float("inf")
    left = [now.t for now in instants if now.new]
    gaps = [then - before for before, then in pairwise(left)]
    even = sum(gap for gap in gaps if gap <= longest) >= LEVEL * sum(gaps)
    return held >= LEAST_WAKES and held >= LEVEL * short and even


def behind_small(instants: list[Instant], causes: list[str], mss: int) -> float:
    """Return the duration of the application's waits that ended with a short segment sent on the ACK of another
    short one, s. The segment had already been written, but Nagle's algorithm held it back.
    """
    small = last_departures(instants)[2]
    held, spent = 0.0, 0.0
    for i, cause in enumerate(causes):
        now, then = instants[i], instants[i + 1]
        held = (0.0 if now.new else held) + (then.t - now.t if cause == "application" else 0.0)
        if then.new and then.clocked and then.new < mss and now.una < small[i] <= then.una:
            spent += held
    return spent


def causes_of(instants: list[Instant], *, mss: int, paced: bool) -> list[str]:
    """Return the cause of each wait, computed backwards because the end of a wait reveals its cause."""
    causes: list[str] = [""] * max(len(instants) - 1, 0)
    follows = "application"  # nothing is left to send after the last packet
    ended, sent_at, small, flights = last_departures(instants)
    waits = [
        (i, then.t - sent_at[i])
        for i, then in enumerate(instants[1:])
        if then.new and not then.clocked and not ended[i]
    ]
    usual = 4 * median(wait for _, wait in waits) if waits else 0.0
    new = [now.clocked for now in instants if now.new and not now.recovering]
    clocked = sum(new) > CLOCKED * len(new)
    filled = are_full(instants, mss) if paced and clocked else [False] * len(instants)
    allowed = has_allowed(instants, mss)
    woken = are_woken(instants, ended, flights, mss=mss, paced=paced)
    often = (
        sum(then.clocked and then.pushed and end for then, end in zip(instants[1:], ended, strict=False)) >= LEAST_WAKES
    )
    burst = mss
    goes_on = float("inf")  # time of the next new data
    for i in range(len(causes) - 1, -1, -1):
        now, then = instants[i], instants[i + 1]
        goes_on = then.t if then.new else goes_on
        if now.room < mss <= then.room and not then.acked and goes_on - then.t <= WAKES_S:
            follows = "cwnd"  # data left as soon as the window opened
        if then.new:
            burst = then.new if then.clocked and allowed[i] else mss
        full = now.room < max(burst, mss)
        starts = then.recovering and not now.recovering
        if starts and not paced and ended[i] and now.nxt - now.delivered < min(DRAINED * flights[i], flights[i] - mss):
            follows = "application"  # before the repair, ACKs had made room that nothing filled
        elif then.probe:
            pass
        elif then.new and not then.clocked:
            waited = then.t - sent_at[i]
            while waits and waits[-1][0] >= i:
                waits.pop()
            pace = (
                max(usual, LONGER * waits[-1][1]) if waits else usual
            )  # the pacing rate may change, so the previous packets are a better guide
            follows = "pacing" if paced and (not ended[i] or waited < pace) else "application"
        elif then.new:
            nagle = then.new < mss and now.una < small[i] <= then.una
            drained = woken[i] or (ended[i] and now.nxt - now.delivered < DRAINED * flights[i])
            emptied = often and ended[i] and then.pushed and not full
            # Either the segment waited for the ACK of another small one, or earlier ACKs had made room and it waited
            # for a response that arrived with this ACK. Or nothing was left to send, before or after it: a window
            # that limits a program holds back more data than it releases.
            follows = "application" if nagle or drained or emptied else "cwnd"
        if not now.established:
            causes[i] = "handshake"
        elif now.una >= now.nxt:
            if full and follows == "cwnd":
                causes[i] = "rwnd"  # zero window
            else:
                causes[i], follows = "idle", "application"
        elif then.expired:
            causes[i] = "timeout"
        elif now.recovering:
            causes[i] = "recovery"
        elif full and follows != "application":
            causes[i] = "rwnd"
        elif paced and follows in ("pacing", "cwnd"):
            alone = then.new and not then.clocked  # sent although no ACK made room
            at_once = then.new and then.clocked  # sent as soon as an ACK made room
            causes[i] = "cwnd" if at_once or (filled[i] and not alone) else "pacing"
        else:
            causes[i] = follows
    return causes


def is_level(instants: list[Instant], causes: list[str], mss: int) -> bool:
    """Return whether the maximum in flight is the same in nearly all round trips limited by the window. Without a fixed
    limit cwnd grows until a loss.
    """
    most: list[int] = []
    ends = float("-inf")
    for now, cause in zip(instants, causes, strict=False):
        if now.recovering:
            return False
        if now.rtt is not None and now.t >= ends:
            ends = now.t + now.rtt
            most.append(0)
        if most and cause == "cwnd":
            most[-1] = max(most[-1], now.nxt - now.delivered)
    held = [flight for flight in most if flight]
    if len(held) < LEVEL_TRIPS:
        return False
    usual = median(held)
    return sum(abs(flight - usual) <= mss for flight in held) >= LEVEL * len(held)


def is_buffered(instants: list[Instant], causes: list[str]) -> bool:
    """Return whether the application usually writes shortly after an ACK, and enough to keep the bytes in flight
    about constant. A full send buffer wakes its program in this way; a self-paced program does not behave so.
    """
    behind: list[float] = []
    filled: list[int] = []
    apart: list[float] = []
    heard: float | None = None
    for now, then, cause in zip(instants, instants[1:], causes, strict=False):
        if now.acked:
            if heard is not None:
                apart.append(now.t - heard)
            heard = now.t
        if cause == "application" and then.new and now.una < now.nxt and heard is not None:
            behind.append(0.0 if then.acked else then.t - heard)
            filled.append(then.nxt - then.delivered)
    if len(behind) < LEAST_WAKES or not apart:
        return False
    soon = min(WAKES_S, SOON * median(apart))
    usual = median(filled)
    near = sum(flight >= DRAINED * usual for flight in filled)
    return sum(one <= soon for one in behind) >= LEVEL * len(behind) and near >= LEVEL * len(filled)


def with_buffer(instants: list[Instant], causes: list[str], mss: int) -> list[str]:
    """Return the causes for a sender with a program that waits for send buffer space. Waits during which cwnd had room for
    more than a packet (`large_packets`) are attributed to the buffer.
    """
    made = list(causes)
    most = most_in_flight(instants)
    packets = large_packets(instants, most, mss)
    start = 0
    for i, (now, then) in enumerate(pairwise(instants)):
        start = i if now.new else start
        if then.new and then.clocked and most[i] - (now.nxt - now.delivered) >= packets[i]:
            made[start : i + 1] = ["application" if cause == "cwnd" else cause for cause in made[start : i + 1]]
    return made


def with_small(instants: list[Instant], causes: list[str], mss: int) -> list[str]:
    """Return the causes for a program whose writes are smaller than a segment. A full segment may leave together with an
    ACK by coincidence. If cwnd has room for another one behind it, the wait before it was the program's.
    """
    made = list(causes)
    most = most_in_flight(instants)
    start = 0
    for i, (now, then) in enumerate(pairwise(instants)):
        start = i if now.new else start
        if then.new and then.clocked and most[i] - (then.nxt - then.delivered) >= mss:
            made[start : i + 1] = ["application" if cause == "cwnd" else cause for cause in made[start : i + 1]]
    return made


def are_full(instants: list[Instant], mss: int) -> list[bool]:
    """Return for each instant whether the bytes in flight reach the maximum of the previous round trip. Only then can
    cwnd be the limit.
    """
    made: list[bool] = []
    most: deque[tuple[float, int]] = deque()  # decreasing in flight, increasing in time
    span = 0.1
    for now in instants:
        flight = now.nxt - now.delivered
        if now.rtt is not None:
            span = now.rtt
        while most and most[-1][1] <= flight:
            most.pop()
        most.append((now.t, flight))
        while most[0][0] < now.t - span:
            most.popleft()
        made.append(flight + mss // 2 >= most[0][1])
    return made


def has_allowed(instants: list[Instant], mss: int) -> list[bool]:
    """Return for each instant whether at least one more segment was in flight within the last round trip. cwnd does not
    shrink without a loss, so it has room for that segment.
    """
    most = most_in_flight(instants)
    return [now.nxt - now.delivered + mss <= flight for now, flight in zip(instants, most, strict=True)]


def most_in_flight(instants: list[Instant]) -> list[int]:
    """Return for each instant the maximum in flight within the last round trip, bytes; since the last recovery only."""
    made: list[int] = []
    most: deque[tuple[float, int]] = deque()  # decreasing in flight, increasing in time
    span = 0.1
    for now in instants:
        flight = now.nxt - now.delivered
        if now.rtt is not None:
            span = now.rtt
        if now.recovering:
            most.clear()
        while most and most[-1][1] <= flight:
            most.pop()
        most.append((now.t, flight))
        while most[0][0] < now.t - span:
            most.popleft()
        made.append(most[0][1])
    return made


def large_packets(instants: list[Instant], most: list[int], mss: int) -> list[int]:
    """Return for each instant the size of a multi-segment packet. A sender with data to send may wait until cwnd
    has room for one (`tcp_tso_should_defer`), but no longer.
    """
    made: list[int] = []
    rtt = 0.1
    for now, flight in zip(instants, most, strict=True):
        rtt = now.rtt or rtt
        made.append(max(int(FASTER * flight / rtt * LARGE_S) // mss, LEAST_LARGE) * mss)
    return made


def are_woken(instants: list[Instant], ended: list[bool], flights: list[int], *, mss: int, paced: bool) -> list[bool]:
    """Return for each instant whether the next data could have been sent earlier: cwnd and the receiver's window had
    already allowed that much, and several ACKs released nothing. Unless this happens repeatedly, only whole writes
    behind whole writes count.
    """
    made: list[bool] = []
    sure: list[bool] = []
    count = 0
    most = most_in_flight(instants)
    packets = large_packets(instants, most, mss)
    sizes = [now.new for now in instants if now.new and now.clocked and not now.recovering]
    usual = median(sizes) if sizes else 0
    for i, (now, then) in enumerate(pairwise(instants)):
        count = 0 if now.new or now.again else count + (now.acked > 0)
        flight, before, after = flights[i], now.nxt - now.delivered, then.nxt - then.delivered
        low = DRAINED * flight
        # cwnd had room for a larger packet of any sender, or for this sender's own packet; for a paced sender this is unknown
        drained = before < low <= after
        deep = not paced and most[i] - before >= max(packets[i], usual) and 0 < flight - mss <= after
        fills = then.new > 0 and then.clocked and now.room >= then.new
        made.append(fills and count >= ACKS and (drained or deep))
        sure.append(made[-1] and deep and ended[i] and then.pushed and then.new >= LARGER * packets[i])
    return made if sum(made) >= LEAST_WAKES else sure


def last_departures(instants: list[Instant]) -> tuple[list[bool], list[float], list[int], list[int]]:
    """Return four values for each instant: whether the last packet with new data ended a write; when it was sent; the
    end of the last packet that ended a write; and the bytes in flight with it, 0 during recovery.
    """
    ended, left, ends, flights = [], [], [], []
    pushed, at, end, flight = True, 0.0, 0, 0
    for now in instants:
        if now.new:
            pushed, at, flight = now.pushed, now.t, now.nxt - now.delivered
            end = now.nxt if pushed else end
        if now.recovering:
            flight = 0
        ended.append(pushed)
        left.append(at)
        ends.append(end)
        flights.append(flight)
    return ended, left, ends, flights
