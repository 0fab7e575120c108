"""Findings from round trips visible at any capture point: a queue on the path, flights separated by silence, late ACKs.

The sender's own times are not needed. The handshake determines the time after which a response passes the capture
point, and a sender cannot have responded to data that has not reached it yet.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from ackclock.diagnose._rows import rows_of

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Flights", "Trips", "flights", "late", "queued", "trips"]

SILENT = 0.3
"""Minimum time without data between two flights, as a fraction of the sender's RTT."""

EARLY, LATER = 0.85, 1.25
"""Bounds on the time between an ACK's passage and that of the data that it released, as fractions of the sender's RTT."""

LATE_S, LATE_TRIPS = 0.03, 3
"""Minimum delay of a late ACK for two or more segments: seconds, and RTTs. A delayed ACK waits only for the
second segment (RFC 9293).
"""

STANDS, LEAST_QUEUE_S = 0.25, 2e-3
"""Excess over the empty-path delay that indicates a queue: fraction of the round trip, and minimum in seconds."""

STEADY, NEAR, PIECES, LONGEST_PIECE_S = 0.7, 0.3, 8, 0.5
"""Fraction of the queueing time with arrivals at one rate, tolerance of that rate, minimum number of pieces, and
maximum piece length in seconds.
"""

OTHERS = ("sack", "dsack", "syn")
"""Rows that are no packets, and the handshake."""

WRAP = 1 << 32


@dataclass(frozen=True, kw_only=True)
class Trips:
    """RTTs from the capture point to both sides, s.

    Parameters
    ----------
    back
        Minimum time from an ACK to the data that it releases at the sender.
    ahead
        Minimum time from data to its ACK.
    """

    back: float
    ahead: float


@dataclass(kw_only=True, slots=True)
class Flights:
    """Times between flights, s.

    Parameters
    ----------
    held
        Time spent waiting for the ACK that released the next flight, while the receiver's window had room.
    short
        Part of `held` after flights that end in a short segment: nothing more had been written.
    full
        Same time while the window had no room.
    free
        Time in which ACKs arrived and nothing was sent.
    asked
        Time after data of the receiver that the next flight may answer.
    sizes
        Bytes in flight in each interval of `held`.
    """

    held: float = 0.0
    short: float = 0.0
    full: float = 0.0
    free: float = 0.0
    asked: float = 0.0
    sizes: list[int] = field(default_factory=list)


def trips(packets: pl.DataFrame, *, server: bool) -> Trips | None:
    """Return the handshake's RTTs; None if it is incomplete.

    Parameters
    ----------
    packets
        Packets from `ackclock.formats.read_capture`.
    server
        Whether the server sends the data.
    """
    syn = answer = done = None
    for t, from_server, kind in packets.select("t_s", "from_server", "kind").head(64).iter_rows():
        if kind == "syn" and not from_server and answer is None:
            syn = t
        elif kind == "syn" and from_server and syn is not None and answer is None:
            answer = t
        elif answer is not None and not from_server and kind != "syn":
            done = t
            break
    if syn is None or answer is None or done is None:
        return None
    back, ahead = answer - syn, done - answer
    return Trips(back=back, ahead=ahead) if server else Trips(back=ahead, ahead=back)


def queued(packets: pl.DataFrame, *, server: bool, back: float) -> tuple[float, float]:
    """Return the time for which the path had a queue, s, and the steady payload rate in that time, bit/s, or 0 if there
    was none.

    A packet that does not echo the timestamp of an ACK was sent before that ACK arrived. If it arrives more than one
    RTT after the ACK passed, the two together took that much longer than over the empty path, regardless of what the
    sender waited for.

    Parameters
    ----------
    packets, server
        See `trips`.
    back
        Minimum time from an ACK to what it releases, s.
    """
    import numpy as np

    said, first, last = _stamps(packets, server)
    if not len(said):
        return 0.0, 0.0
    t, echo, size = _echoes(packets, server)
    after = np.searchsorted(said, echo, side="right")
    known = (after > 0) & (said[np.maximum(after - 1, 0)] == echo)
    trip = t - last[np.maximum(after - 1, 0)]
    least = float(np.min(trip[known & (trip > 0)], initial=np.inf))
    base = max(back, least if least < np.inf else back)
    piece = min(max(4 * base, 10 * LEAST_QUEUE_S), LONGEST_PIECE_S)
    extra = np.where(after < len(said), t - first[np.minimum(after, len(said) - 1)] - base, 0.0)[1:]
    gaps = np.diff(t)
    queue = (extra >= max(STANDS * base, LEAST_QUEUE_S)) & (gaps <= piece)
    stood, spent, came = 0.0, 0.0, 0
    rates: list[float] = []
    for gap, length in zip(gaps[queue].tolist(), size[1:][queue].tolist(), strict=True):
        stood += gap
        spent += gap
        came += length
        if spent >= piece:
            rates.append(8 * came / spent)
            spent, came = 0.0, 0
    if len(rates) < PIECES:
        return stood, 0.0
    usual = median(rates)
    near = sum(abs(rate - usual) <= NEAR * usual for rate in rates)
    return stood, usual if near >= STEADY * len(rates) else 0.0


def _stamps(packets: pl.DataFrame, server: bool) -> tuple[Any, Any, Any]:
    """Return the receiver's timestamps, from its first one, ascending, each with the times of its first and last packet."""
    import numpy as np
    import polars as pl

    plain = (pl.col("from_server") != server) & (pl.col("timestamp") > 0) & ~pl.col("kind").is_in(OTHERS)
    rows = packets.filter(plain)
    t, stamp = rows["t_s"].to_numpy(), rows["timestamp"].to_numpy().astype(np.int64)
    value = (stamp - stamp[:1]) % WRAP
    high = np.maximum.accumulate(np.where(value < WRAP // 2, value, -1))
    new = np.diff(high, prepend=-1) > 0
    same = value == high
    last = np.empty(int(new.sum()))
    last[(np.cumsum(new) - 1)[same]] = t[same]
    return value[new], t[new], last


def _echoes(packets: pl.DataFrame, server: bool) -> tuple[Any, Any, Any]:
    """Return the time, echo and size of each packet with data after the receiver's first timestamp; echoes count from that one."""
    import numpy as np
    import polars as pl

    begins = pl.when((pl.col("from_server") != server) & (pl.col("timestamp") > 0)).then(pl.col("timestamp"))
    rows = packets.filter(~pl.col("kind").is_in(OTHERS)).with_columns(origin=begins.forward_fill())
    rows = rows.filter((pl.col("from_server") == server) & (pl.col("length") > 0) & (pl.col("echo") > 0))
    rows = rows.filter(pl.col("origin").is_not_null())
    first = packets.filter(~pl.col("kind").is_in(OTHERS)).select(begins.drop_nulls().first()).item()
    echo = rows["echo"].to_numpy().astype(np.int64)
    return rows["t_s"].to_numpy(), (echo - (first or 0)) % WRAP, rows["length"].to_numpy().astype(np.int64)


def late(packets: pl.DataFrame, *, server: bool, mss: int, passes: Trips) -> tuple[float, int]:
    """Return how long two or more segments waited at the receiver for acknowledgment with no further arrivals, s, and
    the number of such waits.

    Parameters
    ----------
    packets, server
        See `trips`.
    mss
        Payload of a full segment, bytes.
    passes
        Round trips of the handshake.
    """
    import numpy as np
    import polars as pl

    least = max(LATE_S, LATE_TRIPS * (passes.back + passes.ahead))
    rows = packets.filter(~pl.col("kind").is_in(OTHERS)).select("t_s", "from_server", "kind", "seq", "length", "ack")
    if rows.is_empty():
        return 0.0, 0
    t, ours = rows["t_s"].to_numpy(), rows["from_server"].to_numpy() == server
    data = ours & (rows["length"].to_numpy() > 0) & (rows["kind"] != "probe").to_numpy()
    end = rows["seq"].to_numpy() + rows["length"].to_numpy().astype(np.int64)
    nxt = np.maximum.accumulate(np.where(data, end, 1))
    ack = np.where(ours, 1.0, rows["ack"].fill_null(np.nan).to_numpy())
    una = np.maximum.accumulate(np.floor(np.where(ack > 1, ack, 1.0)))
    before = np.concatenate([[1.0], una[:-1]])
    index = np.arange(len(t))
    news = una > before
    left = np.maximum.accumulate(np.where(data, index, -1))
    heard = np.concatenate([[-1], np.maximum.accumulate(np.where(news, index, -1))[:-1]])
    waits = t - t[np.maximum(left, 0)] - passes.ahead
    slow = waits[news & (left > heard) & (nxt - before >= 2 * mss) & (waits > least)].tolist()
    spent = 0.0
    for wait in slow:
        spent += wait
    return spent, len(slow)


def flights(packets: pl.DataFrame, *, server: bool, mss: int, back: float) -> Flights:
    """Return the sender's silences between flights, classified by the ACKs it had received.

    Parameters
    ----------
    packets, server, mss
        See `late`.
    back
        Time from an ACK to what it releases, s.
    """
    found = Flights()
    times: list[float] = []  # times of ACKs of new data
    acks: list[tuple[int, int]] = []
    said: list[float] = []  # times of the receiver's data
    nxt = una = 1
    before: float | None = None
    ended = False
    rows = packets.select("t_s", "from_server", "kind", "seq", "length", "ack", "window")
    for t, from_server, kind, seq, length, ack, window in rows_of(rows):
        if kind in ("sack", "dsack", "syn", "probe"):
            continue
        if from_server != server:
            if length:
                said.append(t)
            if ack is not None and ack == ack and ack > una:
                una = int(ack)
                times.append(t)
                acks.append((una, int(window)))
        elif length and seq + length > nxt:
            if before is not None and t - before >= SILENT * back:
                held = found.held
                _between(found, t, before, nxt, times, acks, said, back, mss)
                found.short += found.held - held if ended else 0.0
            nxt, before, ended = seq + length, t, length % mss != 0
    return found


def _between(
    found: Flights,
    t: float,
    before: float,
    nxt: int,
    times: list[float],
    acks: list[tuple[int, int]],
    said: list[float],
    back: float,
    mss: int,
) -> None:
    """Classify the silence from `before` to `t`."""
    released = bisect_left(times, t - LATER * back), bisect_right(times, t - EARLY * back)
    heard = bisect_right(times, before - back + SILENT * back / 2)  # number of ACKs known when the silence began
    if bisect_right(said, t - EARLY * back) > bisect_left(said, t - LATER * back):
        found.asked += t - before
    elif released[0] < released[1] and released[0] <= heard:
        known, window = acks[heard - 1] if heard else (1, 1 << 30)
        flight = nxt - known
        if flight < 2 * mss:
            found.free += t - before
        elif known + window - nxt < mss:
            found.full += t - before
        else:
            found.held += t - before
            found.sizes.append(flight)
    else:
        found.free += t - before
