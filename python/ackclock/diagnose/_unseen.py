"""What a sender must have sent although the capture does not show it.

Where SACK tells that three segments have come behind a hole, a sender repairs it at once (RFC 6675, RFC 8985). If the capture shows that
repair only later, or not at all, there was another one before: lost on the way to a capture at the receiver, or missed by the capture.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

__all__ = ["with_acks", "with_repairs"]

DEGREE = 3
"""Segments behind a hole, from which on it is repaired."""

AT_ONCE = 0.3
"""Part of a round trip within which a repair is still the one that was due: RACK may wait a quarter."""

LEAST_WAIT_S = 4e-3
"""The same, at least: a capture at the receiver tells when packets left by ticks of a millisecond."""


def with_repairs(packets: pl.DataFrame, *, server: bool, mss: int, rtt_s: float) -> tuple[pl.DataFrame, int]:
    """The packets, and the repairs among them that the sender began with and the capture does not show; and how many those are.

    Parameters
    ----------
    packets
        In the order and at the times of their sender.
    server
        Whether the data is the server's.
    mss
        Payload of a full segment, bytes.
    rtt_s
        Least round trip, s.
    """
    import polars as pl

    rows = packets.rows()
    due = _due(rows, server, mss, rtt_s)
    if not due:
        return packets, 0
    made, at = [], 0
    for index, row in enumerate(rows):
        made.append(row)
        while at < len(due) and due[at][0] == index:
            made.append(due[at][1])
            at += 1
    return pl.DataFrame(made, schema=packets.schema, orient="row"), len(due)


def _due(rows: list[tuple[Any, ...]], server: bool, mss: int, rtt_s: float) -> list[tuple[int, tuple[Any, ...]]]:
    """Behind which row each belongs."""
    repairs: dict[int, list[float]] = {}  # offset -> when it was sent again
    for row in rows:
        if row[1] == server and row[2] in ("retransmission", "needless"):
            for seq in range(row[3], row[3] + max(row[4], 1), mss):
                insort(repairs.setdefault(seq, []), row[0])
    wait = max(AT_ONCE * rtt_s, LEAST_WAIT_S)
    made: list[tuple[int, tuple[Any, ...]]] = []
    una, nxt, high = 1, 1, 0
    sacked: list[tuple[int, int]] = []
    since = (0, 0.0)  # the hole, and when it was told of
    for index, row in enumerate(rows):
        t, own, kind, seq, length, ack = row[0], row[1] == server, row[2], row[3], row[4], row[5]
        if sacked and una >= high and una not in repairs and since[0] == una and t > since[1] + wait:
            # never repaired, as far as the capture shows: RACK waits for a quarter of a round trip
            at = since[1] + wait
            made.append(
                (index - 1, (at, server, "retransmission", una, min(mss, sacked[0][0] - una), None, row[6], 0, 0, 0))
            )
            high = nxt
        if own:
            if kind not in ("sack", "dsack") and length:
                if kind in ("retransmission", "needless") and seq < nxt and una >= high:
                    high = nxt  # a repair begins
                nxt = max(nxt, seq + length)
            continue
        if kind == "sack":
            sacked = _merged(sacked, max(seq, una), seq + length)
            since = since if since[0] == una else (una, t)
        elif kind != "dsack" and ack is not None and ack == ack and ack > una:
            una = int(ack)
            sacked = [(max(a, una), b) for a, b in sacked if b > una]
        if una < high or not sacked or kind == "syn":
            continue
        if index + 1 < len(rows) and rows[index + 1][1] != server and rows[index + 1][2] in ("sack", "dsack"):
            continue  # more of the same ACK
        behind = sum(-(-(b - a) // mss) for a, b in sacked)
        if behind < DEGREE or sacked[0][0] <= una:
            continue
        if bisect_left(repairs.get(una, []), t + wait):
            continue  # it is due, or on its way
        made.append((index, (t, server, "retransmission", una, min(mss, sacked[0][0] - una), None, *row[6:7], 0, 0, 0)))
        high = nxt
    return made


MOST_ALONE = 0.1
"""Share of departures without an ACK, beyond which the application or pacing makes them, not ACKs that were missed."""


def with_acks(packets: pl.DataFrame, *, server: bool, mss: int, gap_s: float) -> tuple[pl.DataFrame, int]:
    """The packets of a capture at the sender, and the ACKs among them that it has missed; and how many those are.

    Parameters
    ----------
    packets
        In the order and at the times of their sender.
    server
        Whether the data is the server's.
    mss
        Payload of a full segment, bytes.
    gap_s
        From an ACK to what it releases, at most, s.
    """
    import polars as pl

    rows = packets.rows()
    missed = _missed_acks(rows, server, mss, gap_s)
    if not missed:
        return packets, 0
    made, at = [], 0
    for index, row in enumerate(rows):
        while at < len(missed) and missed[at][0] == index:
            made.append(missed[at][1])
            at += 1
        made.append(row)
    return pl.DataFrame(made, schema=packets.schema, orient="row"), len(missed)


def _missed_acks(
    rows: list[tuple[Any, ...]], server: bool, mss: int, gap_s: float
) -> list[tuple[int, tuple[Any, ...]]]:
    """Before which row each belongs."""
    alone: list[
        tuple[int, int, tuple[Any, ...]]
    ] = []  # departures without an ACK: row, what was acknowledged, the ACK before
    steps: list[int] = []
    reached: list[
        tuple[int, int]
    ] = []  # of ACKs: row, what it acknowledges; with one more segment where it tells of a hole
    una, nxt, departures, heard, left, blocks = 1, 1, 0, float("-inf"), float("-inf"), False
    before: tuple[Any, ...] | None = None
    for index, row in enumerate(rows):
        t, kind, seq, length, ack = row[0], row[2], row[3], row[4], row[5]
        if row[1] == server:
            if kind in ("sack", "dsack", "syn") or not length or seq + length <= nxt:
                continue
            if t - left > gap_s:
                departures += 1
                if t - heard > gap_s and before is not None and una < nxt and not blocks:
                    alone.append((index, una, before))
            left, nxt = t, seq + length
            continue
        heard = t
        if kind in ("sack", "dsack"):
            blocks = True
        elif ack is not None and ack == ack and ack > una and kind != "syn":
            if una > 1 and not blocks:
                steps.append(int(ack) - una)
            una, before, blocks = int(ack), row, False
            more = rows[index + 1][2] == "sack" if index + 1 < len(rows) else False
            reached.append((index, una + mss * more))
    if not steps or len(alone) > MOST_ALONE * departures:
        return []
    steps.sort()
    usual = max(steps[len(steps) // 2] // mss, 1) * mss
    made: list[tuple[int, tuple[Any, ...]]] = []
    behind = [index for index, _ in reached]
    known = 0
    for index, before_it, ack_row in alone:
        at = bisect_left(behind, index)
        acked = max(before_it, known)
        if at < len(reached) and reached[at][1] - acked >= usual + mss:
            known = acked + usual
            made.append((index, (rows[index][0], not server, "ack", *ack_row[3:5], float(known), *ack_row[6:])))
    return made


def _merged(known: list[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    if start >= end:
        return known
    kept = []
    for a, b in known:
        if b < start or a > end:
            kept.append((a, b))
        else:
            start, end = min(a, start), max(b, end)
    insort(kept, (start, end))
    return kept
