"""Bytes in flight at each offset of the data, and lost transmissions: the features that identify a controller.

Both are indexed by offset instead of time: a mirrored run loses the same segments, so the two stay aligned over any
length.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from ackclock._results.result import Run

    Floats = np.ndarray[Any, np.dtype[np.float64]]

__all__ = ["Curve", "Known", "Sent", "curve", "run_flights", "segment_by_segment", "sent"]

ECE, CWR, AE = 0x40, 0x80, 0x100


@dataclass(frozen=True, kw_only=True, eq=False)
class Sent:
    """The sender's transmissions, as shown by a capture.

    Parameters
    ----------
    ends, flights
        End offset of each packet of new data, and bytes in flight including it.
    lost
        Segment numbers, from 1 and as if all segments were full, and which transmission of each was lost; 0 is the first.
    lost_at
        Lost segments by the 1-based offset of their first byte.
    lost_in_order
        Lost segments, counted in the order of first transmission.
    lost_acks
        1-based numbers of packets lost on the return path, inferred from ACKs that cover twice as much as usual.
    acks
        Number of ACKs received.
    first_flight
        Bytes sent before the first ACK of data arrived.
    ecn
        ECN that the sender's SYN asks for: `off`, `ask` or `accecn`.
    marks
        Number of ACKs that report a mark.
    large
        Fraction of packets with several segments.
    """

    ends: Floats
    flights: Floats
    lost: tuple[tuple[int, int], ...]
    lost_at: tuple[tuple[int, int], ...]
    lost_in_order: tuple[tuple[int, int], ...]
    lost_acks: tuple[int, ...]
    acks: int
    first_flight: int
    ecn: str
    marks: int
    large: float


def sent(packets: pl.DataFrame, *, server: bool, mss: int) -> Sent:
    """Return the transmissions found in a connection's packets.

    Parameters
    ----------
    packets
        Packets from `ackclock.formats.read_capture`.
    server
        Whether to use the data that the server sends.
    mss
        Payload of a full segment, bytes.
    """
    import numpy as np
    import polars as pl

    own = pl.col("from_server") == server
    blocks = pl.col("kind").is_in(["sack", "dsack"])
    data = own & ~blocks & (pl.col("length") > 0)
    plain = packets.filter(~blocks)
    end = pl.when(data).then(pl.col("seq") + pl.col("length")).otherwise(1).cum_max()
    rows = plain.select(
        data.alias("data"),
        end.alias("end"),
        end.shift(1, fill_value=1).alias("before"),
        pl.when(~own).then(pl.col("ack").fill_nan(1.0)).otherwise(1.0).fill_null(1.0).cum_max().alias("una"),
        "length",
    ).filter(pl.col("data") & (pl.col("end") > pl.col("before")))
    asked = plain.filter(own & (pl.col("kind") == "syn"))["flags"]
    flags = int(asked[0]) if asked.len() else 0
    ecn = "accecn" if flags & AE else "ask" if flags & ECE else "off"
    heard = ~own & (pl.col("kind") != "syn") & (pl.col("length") == 0)
    if ecn == "accecn":  # ACE field, three bits (RFC 9768): counts marks, starting from a number set in the handshake
        count = plain.filter(heard)["flags"] & (ECE | CWR | AE)
        marks = int((count != count.mode().min()).sum()) if count.len() else 0
    else:
        marks = plain.filter(heard & ((pl.col("flags") & ECE) > 0)).height
    lost = _lost(packets, own, mss)
    starts = rows["before"].to_list() if lost else []
    segments = (-(-(rows["end"] - rows["before"]) // mss)).cum_sum().to_list() if lost else []

    def in_order(at: int) -> int:
        i = bisect_right(starts, at) - 1
        return (segments[i - 1] if i > 0 else 0) + (at - starts[i]) // mss + 1 if i >= 0 else 1

    lost_acks, acks = _lost_acks(packets, server, mss)
    return Sent(
        ends=rows["end"].to_numpy().astype(np.float64),
        flights=(rows["end"] - rows["una"]).to_numpy().astype(np.float64),
        lost=tuple(((at - 1) // mss + 1, which) for at, which in lost),
        lost_at=tuple(lost),
        lost_in_order=tuple((in_order(at), which) for at, which in lost),
        lost_acks=lost_acks,
        acks=acks,
        first_flight=int(first if (first := rows.filter(pl.col("una") <= 1)["end"].max()) is not None else 1) - 1,  # type: ignore[arg-type]
        ecn=ecn,
        marks=marks,
        large=float((rows["length"] > mss).mean() or 0.0),  # type: ignore[arg-type]
    )


NEIGHBOURS = 4
"""Number of ACKs on either side, a quarter of which must show how many segments an ACK usually covers."""

LEAST_NUMBERED, IN_A_ROW, ODD, MOST_LOST, WRAP = 20, 0.9, 0.01, 100, 1 << 16
"""Conditions for IP ID fields to count a host's packets: minimum number of packets, minimum fraction of
consecutive numbers, maximum fraction of unrelated numbers; maximum gap that is a loss; modulus.
"""

MOST_ACKS = 200_000
"""Maximum number of ACKs searched for losses."""


def _lost_acks(packets: pl.DataFrame, server: bool, mss: int) -> tuple[tuple[int, ...], int]:
    """Find lost ACKs: an ACK that reports several times the usual amount of new data makes up for preceding lost
    ones. While data is missing at the receiver, each segment triggers an ACK with SACK blocks.
    """
    import polars as pl

    back = packets.filter(pl.col("from_server") != server)
    counted = _missing_numbers(back.filter(~pl.col("kind").is_in(["sack", "dsack"]))["ip_id"].to_list())
    if counted is not None:
        return counted
    back = back.select("kind", "ack", "seq", "length").head(2 * MOST_ACKS)
    # keyed by whether a hole is reported: (packet number, bytes newly reported)
    steps: dict[bool, list[tuple[int, int]]] = {False: [], True: []}
    known = Known()
    count, una, news = 0, 0, 0
    hole = apart = False  # hole before the packet, or one that has appeared since
    for kind, ack, seq, length in back.iter_rows():
        if kind == "sack":
            # includes in-order data that may have waited for this ACK
            news = known.add(seq, seq + length) + (news if apart else 0)
            hole = apart = True
            continue
        if kind == "dsack":
            continue
        if news:
            steps[apart].append((count, news))
        count, news, apart = count + 1, 0, hole
        if ack is None or ack != ack:
            continue
        if una > 0 and ack > una:
            news = int(ack - una) - known.drop(una, ack)
        una, hole = max(una, ack), bool(known.starts)
    if news:
        steps[apart].append((count, news))
    lost: list[int] = []
    usual = {which: sorted(step for _, step in made)[len(made) // 2] if made else 0 for which, made in steps.items()}
    usual[False] = max(
        usual[False], 2 * mss
    )  # in-order data: one ACK for every second segment (RFC 5681), although some ACKs may cover a single one
    ordinary_of = {False: [usual[False]] * len(steps[False]), True: _together(steps[True], usual[True])}
    told = (
        (n, step, one) for which, made in steps.items() for (n, step), one in zip(made, ordinary_of[which], strict=True)
    )
    for number, step, ordinary in sorted(told):
        missing = round(step / ordinary) - 1 if ordinary >= mss and step >= 2 * ordinary else 0
        lost += [number + len(lost) + i for i in range(min(missing, 20))]
    return tuple(lost), count


def _missing_numbers(numbers: Sequence[int]) -> tuple[tuple[int, ...], int] | None:
    """Return the lost packets from gaps between IP identification fields, in the form of `_lost_acks`; None if the
    fields do not count packets.

    One ACK may cover many segments without any loss if the receiver's host joins segments before TCP sees them.
    """
    if len(numbers) < LEAST_NUMBERED or not any(numbers):
        return None
    first = 1 if numbers[0] == 0 else 0  # Linux sends a SYN/ACK with identification 0
    gaps = [(now - before) % WRAP for before, now in pairwise(numbers[first:])]
    odd = sum(gap > MOST_LOST for gap in gaps)  # a RST has an unrelated number
    if sum(gap == 1 for gap in gaps) < IN_A_ROW * len(gaps) or odd > ODD * len(gaps):
        return None
    lost: list[int] = []
    for number, gap in enumerate(gaps, first + 2):
        missing = gap - 1 if gap <= MOST_LOST else 0
        lost += [number + len(lost) + i for i in range(missing)]
    return tuple(lost), len(numbers)


def _together(steps: list[tuple[int, int]], usual: int) -> list[int]:
    """Return the amount that an ACK usually reports while data is missing. Receivers that report several segments at
    a time (Linux waits for up to 1 ms) are recognised by neighbouring ACKs.
    """
    made = []
    for i in range(len(steps)):
        near = sorted(step for _, step in steps[max(i - NEIGHBOURS, 0) : i + NEIGHBOURS + 1])
        made.append(max(near[len(near) * 3 // 4], usual))
    return made


class Known:
    """Disjoint ranges reported in SACK blocks."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []

    def add(self, start: int, end: int) -> int:
        """Add a range; return the number of new bytes in it."""
        i, j = bisect_left(self.ends, start), bisect_right(self.starts, end)
        met = range(i, j)
        new = end - start - sum(min(end, self.ends[k]) - max(start, self.starts[k]) for k in met)
        if met:
            start, end = min(start, self.starts[i]), max(end, self.ends[j - 1])
        self.starts[i:j], self.ends[i:j] = [start], [end]
        return new

    def drop(self, start: int, end: int) -> int:
        """Drop everything before the end of a range; return the number of known bytes in it."""
        j = bisect_left(self.starts, end)
        known = sum(max(min(end, self.ends[k]) - max(start, self.starts[k]), 0) for k in range(j))
        rest = self.ends[j - 1] if j and self.ends[j - 1] > end else None
        del self.starts[: j - (rest is not None)], self.ends[: j - (rest is not None)]
        if rest is not None:
            self.starts[0] = int(end)
        return int(known)


def _lost(packets: pl.DataFrame, own: Any, mss: int) -> list[tuple[int, int]]:
    """Return segment offsets and the lost transmission of each: a segment retransmitted n times was lost n times, minus
    spurious retransmissions.
    """
    import polars as pl

    again: dict[int, int] = {}
    needless: dict[int, int] = {}
    twice: dict[int, int] = {}
    repeated = packets.filter(own & pl.col("kind").is_in(["retransmission", "needless"]) & (pl.col("length") > 0))
    for kind, seq, length in repeated.select("kind", "seq", "length").iter_rows():
        for at in range(seq, seq + length, mss):
            again[at] = again.get(at, 0) + 1
            if kind == "needless":
                needless[at] = needless.get(at, 0) + 1
    starts = sorted(again)
    named = packets.filter(~own & (pl.col("kind") == "dsack"))
    for seq, length in named.select("seq", "length").iter_rows():
        for at in starts[bisect_left(starts, seq) : bisect_left(starts, seq + length)]:
            twice[at] = twice.get(at, 0) + 1
    lost = []
    for at, times in again.items():
        real = times - min(max(needless.get(at, 0), twice.get(at, 0)), times)
        lost += [(at, which) for which in range(min(real, 256))]
    return sorted(lost)


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """Bytes in flight as a function of offset, averaged over equal parts of the data.

    Parameters
    ----------
    logs
        Natural logarithm of the mean number of segments in flight in each part.
    reached
        Fraction of the data that was sent at all.
    """

    logs: Floats
    reached: float


def curve(ends: Floats, flights: Floats, *, whole: float, cells: int, mss: int) -> Curve:
    """Average the bytes in flight over equal parts of `whole`, bytes.

    Parameters
    ----------
    ends, flights
        See `Sent`, bytes.
    whole
        Size of the data, bytes. cells
        Number of parts.
    mss
        Payload of a full segment, bytes.
    """
    import numpy as np

    ends, flights = segment_by_segment(ends, flights, mss)
    inside = ends <= whole + 1
    at = np.minimum(((ends[inside] - 2) * cells / whole).astype(np.int64), cells - 1)
    logs = np.log(np.maximum(flights[inside] / mss, 0.5))
    count = np.bincount(at, minlength=cells)
    total = np.bincount(at, weights=logs, minlength=cells)
    known = np.flatnonzero(count)
    if not known.size:
        return Curve(logs=np.zeros(cells), reached=0.0)
    means = np.interp(np.arange(cells), known, total[known] / count[known])
    return Curve(logs=means, reached=float((known[-1] + 1) / cells))


def segment_by_segment(ends: Floats, flights: Floats, mss: int) -> tuple[Floats, Floats]:
    """Split multi-segment packets: return one row per segment. Captures taken above the NIC have a single row for such
    packets.

    Parameters
    ----------
    ends, flights
        See `Sent`, bytes.
    mss
        Payload of a full segment, bytes.
    """
    import numpy as np

    sizes = np.diff(ends, prepend=1.0)
    parts = np.maximum(np.ceil(sizes / mss), 1).astype(np.int64)
    behind = (np.repeat(parts.cumsum(), parts) - np.arange(1, parts.sum() + 1)) * float(mss)
    return np.repeat(ends, parts) - behind, np.repeat(flights, parts) - behind


def run_flights(run: Run, *, mss: int) -> tuple[Floats, Floats]:
    """Return `ends` and `flights` (see `Sent`) of a run that recorded a trace of its flow.

    Parameters
    ----------
    run
        Run with `record.trace`.
    mss
        Payload of a full segment, bytes.
    """
    import numpy as np
    import polars as pl

    rows = run.acks.filter(pl.col("event") == "send").select("seq", "len", "flight_size")
    ends = (rows["seq"] + rows["len"]).to_numpy().astype(np.float64) + 1
    behind = np.maximum(np.ceil(rows["len"].to_numpy() / mss), 1) - 1  # counts the first segment only
    return ends, (rows["flight_size"].to_numpy().astype(np.float64) + behind) * mss


def run_curve(run: Run, *, whole: float, cells: int, mss: int) -> Curve:
    """Return the curve from a run that recorded a trace of its flow.

    Parameters
    ----------
    run
        Run with `record.trace`.
    whole, cells, mss
        See `curve`.
    """
    return curve(*run_flights(run, mss=mss), whole=whole, cells=cells, mss=mss)
