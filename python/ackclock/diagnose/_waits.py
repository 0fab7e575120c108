"""Causes of a sender's waits, by how each wait ended.

The rule is the sender's own. Where an ACK comes and releases data, the window had stopped it; where new data leaves without an ACK, the application or pacing had.
So the cause of a wait shows when it ends, and a wait whose end says nothing gets the cause of the next one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

__all__ = [
    "Instant",
    "causes_of",
    "holds_small_back",
    "is_buffered",
    "is_level",
    "is_paced",
    "last_departures",
    "with_buffer",
]

BURST_S = 3e-3
"""Linux paces in bursts of a millisecond."""

CLOCKED = 0.25
"""Share of departures that ACKs release, from which on cwnd may have held a paced sender as well."""

PACED = 0.3
"""Share of departures without an ACK, behind a packet that did not end what was written, from which on a flow counts as paced."""

LEVEL_TRIPS, LEVEL = 20, 0.8
"""Round trips, in so many of which as much is in flight, to a segment."""

LEAST_WAKES, WAKES_S, SOON = 10, 1e-3, 0.3
"""Writes that show a full send buffer; within which time behind an ACK the program is awake, s; and at most which part of the time between two ACKs."""

DRAINED = 2 / 3
"""Part of the flight behind the last packet of a write, below which no window can have kept what came next: Linux waits for a larger packet until a third of
the window is free (`tcp_tso_win_divisor`), and wakes a program that waits for room once a third of its send buffer is.
"""

ACKS = 3
"""ACKs in a row that let nothing leave, from which on there was nothing."""

LONGER = 2
"""How many times as long as the one before a wait for pacing may be."""


EVEN = 3
"""Times as long as a short wait between two departures that a long one is at most, where writes of one size fill segment after segment."""


@dataclass(slots=True)
class Instant:
    """Events of one time, and the state behind them."""

    t: float
    acked: int = 0
    """Bytes newly acknowledged or SACKed."""
    heard: bool = False
    """An ACK or an update of the window came."""
    new: int = 0
    clocked: bool = False
    """An ACK came before the new data left."""
    again: int = 0
    pushed: bool = False
    """The last packet of new data ends what was written, or is short."""
    expired: bool = False
    """The retransmission timer has expired."""
    probe: bool = False
    una: int = 1
    nxt: int = 1
    room: int = 0
    """Bytes that the receiver's window still takes."""
    recovering: bool = False
    established: bool = True
    rtt: float | None = None
    size: int = 0
    """Bytes of the packet that it is of."""
    delivered: int = 0


def is_paced(instants: list[Instant], mss: int) -> bool:
    """Whether full packets leave without an ACK, although the application had more when the one before left.

    An application whose last segment waits for an ACK (Nagle) looks alike; but it writes more at a time, and not many times in a round
    trip.
    """
    alone, gaps, sizes = left_alone(instants)
    rtts = [now.rtt for now in instants if now.rtt is not None]
    if alone <= 20 or len(gaps) <= PACED * alone or not rtts or holds_small_back(instants, mss):
        return False
    gap = median(gaps)
    return gap <= BURST_S or (gap < median(rtts) and median(sizes) <= 2 * mss)


def left_alone(instants: list[Instant]) -> tuple[int, list[float], list[int]]:
    """Departures of new data without an ACK; of those behind what did not end a write, the waits, s, and the sizes."""
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
    """Whether what is less than a segment leaves, over and over, with the ACK of the one before (Nagle): nothing is left then, and a sender that has always more
    to pace sends none that is short. What leaves in between leaves evenly, as writes fill it; a pace within larger writes has their pauses beside it.
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


def causes_of(instants: list[Instant], *, mss: int, paced: bool) -> list[str]:
    """The cause of each wait; backwards, because it shows when the wait ends."""
    causes: list[str] = [""] * max(len(instants) - 1, 0)
    follows = "application"  # behind the last packet there was nothing more to send
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
    woken = are_woken(instants, flights)
    often = (
        sum(then.clocked and then.pushed and end for then, end in zip(instants[1:], ended, strict=False)) >= LEAST_WAKES
    )
    burst = mss
    for i in range(len(causes) - 1, -1, -1):
        now, then = instants[i], instants[i + 1]
        if then.new:
            burst = then.new if then.clocked and allowed[i] else mss
        full = now.room < max(burst, mss)
        if then.probe:
            pass
        elif then.new and not then.clocked:
            waited = then.t - sent_at[i]
            while waits and waits[-1][0] >= i:
                waits.pop()
            pace = (
                max(usual, LONGER * waits[-1][1]) if waits else usual
            )  # the pace changes: the packets just before tell more
            follows = "pacing" if paced and (not ended[i] or waited < pace) else "application"
        elif then.new:
            nagle = then.new < mss and now.una < small[i] <= then.una
            drained = woken[i] or (ended[i] and now.nxt - now.delivered < DRAINED * flights[i])
            emptied = often and ended[i] and then.pushed and not full
            # the segment waited for the ACK of another small one, or for an answer that came with one: ACKs before that
            # had made room. Or nothing was left behind it, as before it, while a window that holds a program back keeps
            # more than it lets leave.
            follows = "application" if nagle or drained or emptied else "cwnd"
        if not now.established:
            causes[i] = "handshake"
        elif now.una >= now.nxt:
            if full and follows == "cwnd":
                causes[i] = "rwnd"  # a window of nothing
            else:
                causes[i], follows = "idle", "application"
        elif then.expired:
            causes[i] = "timeout"
        elif now.recovering:
            causes[i] = "recovery"
        elif full and follows != "application":
            causes[i] = "rwnd"
        elif paced and follows in ("pacing", "cwnd"):
            alone = then.new and not then.clocked  # no ACK made room
            at_once = then.new and then.clocked  # its time had come, and the ACK made room
            causes[i] = "cwnd" if at_once or (filled[i] and not alone) else "pacing"
        else:
            causes[i] = follows
    return causes


def is_level(instants: list[Instant], causes: list[str], mss: int) -> bool:
    """Whether the most in flight is the same in nearly all round trips in which the window held: one that nothing limits grows, until something is lost."""
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
    """Whether the application writes each time shortly behind an ACK, and each time so much that about as much is in flight: a full send buffer wakes its
    program like that, and no program with a pace of its own writes so.
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
    if len(behind) < LEAST_WAKES:
        return False
    soon = min(WAKES_S, SOON * median(apart))
    usual = median(filled)
    near = sum(flight >= DRAINED * usual for flight in filled)
    return sum(one <= soon for one in behind) >= LEVEL * len(behind) and near >= LEVEL * len(filled)


def with_buffer(instants: list[Instant], causes: list[str], mss: int) -> list[str]:
    """The causes of a sender whose program waits for room in its send buffer: a wait in which cwnd has room belongs to that buffer."""
    allowed = has_allowed(instants, mss)
    return ["application" if cause == "cwnd" and free else cause for cause, free in zip(causes, allowed, strict=False)]


def are_full(instants: list[Instant], mss: int) -> list[bool]:
    """Whether as much is in flight as at most in the round trip before: cwnd, if anything, is full."""
    made: list[bool] = []
    most: deque[tuple[float, int]] = deque()  # by falling flight, each later than the one before
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
    """Whether a segment more than now was in flight within the last round trip: cwnd, which does not shrink without a loss, still has room for it."""
    made: list[bool] = []
    most: deque[tuple[float, int]] = deque()  # by falling flight, each later than the one before
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
        made.append(flight + mss <= most[0][1])
    return made


def are_woken(instants: list[Instant], flights: list[int]) -> list[bool]:
    """Whether what leaves next had room all along: cwnd and the receiver's window allowed as much before, and several ACKs let nothing leave. A program that
    waits for room in its send buffer does so over and over; a few times it was ACKs that a capture at the receiver has, and the sender has not.
    """
    made: list[bool] = []
    count = 0
    for now, then, flight in zip(instants, instants[1:], flights, strict=False):
        count = 0 if now.new or now.again else count + (now.acked > 0)
        low = DRAINED * flight
        fills = then.new > 0 and then.clocked and then.nxt - then.delivered >= low and now.room >= then.new
        made.append(fills and count >= ACKS and now.nxt - now.delivered < low)
    return made if sum(made) >= LEAST_WAKES else [False] * len(made)


def last_departures(instants: list[Instant]) -> tuple[list[bool], list[float], list[int], list[int]]:
    """Last packet with new data, for each instant: whether it ended a write, and when it left; the end of the last one that ended a write; and
    the bytes in flight with it, if no repair has made the window smaller since.
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
