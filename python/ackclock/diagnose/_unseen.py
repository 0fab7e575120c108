"""Transmissions that a sender must have made although they are missing from the capture.

A sender repairs a hole at once when SACK reports three segments above it (RFC 6675, RFC 8985). If the capture
contains that retransmission only later, or not at all, there was an earlier one: lost before it reached a
receiver-side capture, or missed by the capture.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ackclock.diagnose._rows import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

__all__ = ["UNSEEN", "with_acks", "with_repairs"]

UNSEEN = "unseen"
"""Kind of an inferred ACK. Its acknowledged offset, and therefore its RTT, is a guess."""

DEGREE = 3
"""Number of segments reported above a hole for the hole to be repaired."""

AT_ONCE = 0.3
"""Fraction of an RTT within which a retransmission is the expected one: RACK may wait for a quarter."""

LEAST_RTO_S = 0.19
"""Minimum RTO, s: Linux waits at least 200 ms, less a clock tick of 4 ms."""

LEAST_WAIT_S = 4e-3
"""Minimum wait for a retransmission in a receiver-side capture, s, where departures are known only in millisecond ticks."""


def with_repairs(
    packets: pl.DataFrame, *, server: bool, mss: int, rtt_s: float, receiver: bool
) -> tuple[pl.DataFrame, int]:
    """Return the packets with inferred retransmissions inserted, and the number inserted.

    Parameters
    ----------
    packets
        Packets in the order and at the times of their sender.
    server
        Whether the server sends the data.
    mss
        Payload of a full segment, bytes.
    rtt_s
        Minimum round trip, s.
    receiver
        Whether it was captured at the receiver: then delivered repairs are visible, and a hole that never closes was no
        loss.
    """
    import polars as pl

    again = packets.filter((pl.col("from_server") == server) & pl.col("kind").is_in(["retransmission", "needless"]))
    repairs: dict[int, list[float]] = {}  # offset -> time of retransmission
    for t, first, length in again.select("t_s", "seq", "length").iter_rows():
        for seq in range(first, first + max(length, 1), mss):
            insort(repairs.setdefault(seq, []), t)
    due = _due(packets, repairs, server, mss, rtt_s, receiver)
    return _with(packets, due, 0.5), len(due)


Rows = list[tuple[int, tuple[Any, ...]]]


def _stream(packets: pl.DataFrame) -> Iterator[tuple[int, tuple[Any, ...], bool]]:
    """Yield each row with its number, and whether a SACK row of the same side follows."""
    before: tuple[Any, ...] | None = None
    index = 0
    for row in rows_of(packets):
        if before is not None:
            yield index, before, row[2] in ("sack", "dsack") and row[1] == before[1]
            index += 1
        before = row
    if before is not None:
        yield index, before, False


def _with(packets: pl.DataFrame, rows: Rows, place: float) -> pl.DataFrame:
    """Insert rows near the row with the given number, at this distance in rows."""
    import polars as pl

    if not rows:
        return packets
    more = pl.DataFrame([row for _, row in rows], schema=packets.schema, orient="row")
    at = pl.Series([index + place for index, _ in rows], dtype=pl.Float64)
    whole = packets.with_columns(at=pl.int_range(pl.len()).cast(pl.Float64))
    return pl.concat([whole, more.with_columns(at=at)]).sort("at", maintain_order=True).drop("at")


def _due(
    packets: pl.DataFrame, repairs: dict[int, list[float]], server: bool, mss: int, rtt_s: float, receiver: bool
) -> Rows:
    """Return the inferred retransmissions, each with the number of the row after which it belongs."""
    wait = max(AT_ONCE * rtt_s, LEAST_WAIT_S)
    made: Rows = []
    una, nxt, high = 1, 1, 0
    sacked: list[tuple[int, int]] = []
    since = (0, 0.0)  # start of the hole, and time of the first report
    for index, row, more in _stream(packets):
        t, own, kind, seq, length, ack = row[0], row[1] == server, row[2], row[3], row[4], row[5]
        if not receiver and sacked and una >= high and una not in repairs and since[0] == una and t > since[1] + wait:
            # never retransmitted, according to the capture; RACK waits for a quarter of an RTT
            at = since[1] + wait
            made.append(
                (index - 1, (at, server, "retransmission", una, min(mss, sacked[0][0] - una), None, row[6], 0, 0, 0, 0))
            )
            high = nxt
        if own:
            if kind not in ("sack", "dsack") and length:
                if kind in ("retransmission", "needless") and seq < nxt and una >= high:
                    high = nxt  # a recovery begins
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
        if more:
            continue  # another SACK block of this ACK follows
        behind = sum(-(-(b - a) // mss) for a, b in sacked)
        if behind < DEGREE or sacked[0][0] <= una:
            continue
        if bisect_left(repairs.get(una, []), t + wait) or (receiver and una not in repairs):
            continue  # the retransmission follows in time, or is in flight
        made.append((index, (t, server, "retransmission", una, min(mss, sacked[0][0] - una), None, row[6], 0, 0, 0, 0)))
        high = nxt
    return made


@dataclass(slots=True)
class _Timer:
    """Lower bound of the sender's retransmission timer."""

    flight: deque[tuple[int, float]] = field(default_factory=deque)
    """(end, time of departure) of each unacknowledged packet."""
    again: float = float("-inf")
    """Time of the last retransmission."""
    srtt: float | None = None

    def hear(self, t: float, una: int) -> None:
        left = None
        while self.flight and self.flight[0][0] <= una:
            left = self.flight.popleft()[1]
        if left is not None and left > self.again:
            self.srtt = t - left if self.srtt is None else self.srtt + (t - left - self.srtt) / 8

    def is_due(self, t: float) -> bool:
        """Return whether the first segment in flight has waited so long that the timer may now be sending a probe."""
        if self.srtt is None or not self.flight or self.flight[0][1] <= self.again:
            return False
        return t - self.flight[0][1] >= self.srtt + LEAST_RTO_S


MOST_ALONE = 0.1
"""Maximum fraction of departures without an ACK explained by missed ACKs. Beyond it, they are due to the application or pacing."""


def with_acks(packets: pl.DataFrame, *, server: bool, mss: int, gap_s: float) -> tuple[pl.DataFrame, int]:
    """Return the packets of a sender-side capture with inferred missing ACKs inserted, and the number inserted.

    Parameters
    ----------
    packets
        Packets in the order and at the times of their sender.
    server
        Whether the server sends the data.
    mss
        Payload of a full segment, bytes.
    gap_s
        Maximum time from an ACK to what it releases, s.
    """
    missed = _missed_acks(packets, server, mss, gap_s)
    return _with(packets, missed, -0.5), len(missed)


def _missed_acks(packets: pl.DataFrame, server: bool, mss: int, gap_s: float) -> Rows:
    """Return the inferred ACKs, each with the number of the row before which it belongs."""
    alone: list[
        tuple[int, float, int, tuple[Any, ...]]
    ] = []  # departures without an ACK: row, time, bytes acknowledged, previous ACK
    steps: list[int] = []
    reached: list[tuple[int, int]] = []  # row and end of the data of each ACK, plus one segment if it reports a hole
    una, nxt, departures, heard, left, blocks = 1, 1, 0, float("-inf"), float("-inf"), False
    before: tuple[Any, ...] | None = None
    short = False  # whether the last packet was short: no more data to send
    timer = _Timer()
    for index, row, more in _stream(packets):
        t, kind, seq, length, ack = row[0], row[2], row[3], row[4], row[5]
        if row[1] == server:
            if kind in ("sack", "dsack", "syn") or not length:
                continue
            if seq + length <= nxt:
                timer.again = t
                continue
            if t - left > gap_s:
                departures += 1
                waits = una < nxt and not blocks and not short
                if t - heard > gap_s and before is not None and waits and not timer.is_due(t):
                    alone.append((index, t, una, before))
            left, nxt, short = t, seq + length, length % mss != 0
            timer.flight.append((nxt, t))
            continue
        heard = t
        if kind in ("sack", "dsack"):
            blocks = True
        elif ack is not None and ack == ack and ack > una and kind != "syn":
            if una > 1 and not blocks:
                steps.append(int(ack) - una)
            una, before, blocks = int(ack), row, False
            timer.hear(t, una)
            reached.append((index, una + mss * more))
    if not steps or len(alone) > MOST_ALONE * departures:
        return []
    steps.sort()
    usual = max(steps[len(steps) // 2] // mss, 1) * mss
    made: Rows = []
    behind = [index for index, _ in reached]
    known = 0
    for index, t, before_it, ack_row in alone:
        at = bisect_left(behind, index)
        acked = max(before_it, known)
        if at < len(reached) and reached[at][1] - acked >= usual + mss:
            known = acked + usual
            made.append((index, (t, not server, UNSEEN, *ack_row[3:5], float(known), *ack_row[6:])))
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
