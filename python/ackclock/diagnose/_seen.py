"""Facts shown by any capture, wherever it was taken: the answer if a sender's waits cannot be read."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ackclock.diagnose._answer import Answer
from ackclock.diagnose._rows import rows_of
from ackclock.diagnose._trips import flights, late, queued, trips
from ackclock.text import rate as told_rate
from ackclock.text import seconds as told_seconds
from ackclock.text import share

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from ackclock.diagnose._trips import Trips

__all__ = ["beyond", "seen", "without_some"]

SURE, LIKELY = 0.6, 0.4
"""Minimum fraction of the time with no data to send above which the application certainly, and probably, was the limit."""

TRIPS = 2
"""Number of handshake RTTs within which data may still follow an ACK that has just passed."""

STEADY, NEAR = 0.8, 0.15
"""Minimum fraction of the time with arrivals at a single rate, and tolerance of that rate, for steady arrivals."""

WINDOW = 10
"""Number of segments over which a rate is measured."""

PIECES = 3
"""Gap that separates two bursts, in transmission times of a segment at the measured rate."""

LONG_TRIPS = 10
"""Minimum duration of a steady rate, in handshake RTTs."""

SHORT_TRIPS = 8
"""Number of handshake RTTs within which a lossless transfer was in slow start."""

FULL_SEGMENTS = 0.95
"""Fraction of full segments below which the program may have set the pace."""

PAUSE_S, PAUSE_TRIPS = 0.2, 4
"""Minimum time without data that counts as a pause rather than a round trip: seconds, and handshake RTTs."""

TIMER_S = 1.0
"""Retransmission timeout, s, to which four RTTs are added. A longer silence not ended by a retransmission means that
nothing was outstanding (RFC 6298).
"""

AGAIN = 3
"""Number of unanswered transmissions of one segment after which the path was interrupted."""

FLIGHTS, HELD = 5, 3
"""Minimum number of silences between flights that end with an ACK, and factor by which they must exceed other silences."""

SHUT = 0.5
"""Minimum fraction of the time with a receive window too small for another segment above which the window was the limit."""


def beyond(refused: str, where: Answer) -> str:
    """Return the sentence that accompanies the answer.

    Parameters
    ----------
    refused
        Why a sender's waits cannot be read.
    where
        The answer.
    """
    head = (
        "No conclusion"
        if where.where == "not told"
        else "The capture does not show what held the sender back while it sent"
    )
    return f"{head}: {refused}."


def seen(
    packets: pl.DataFrame, row: Mapping[str, Any], *, server: bool, mss: int, window: str
) -> tuple[tuple[str, ...], Answer]:
    """Return sentences, and the location of the limit as far as they reveal it.

    Parameters
    ----------
    packets, row
        Packets of the connection, and row of the direction.
    server
        Whether the server sends the data.
    mss
        Payload of a full segment, bytes.
    window
        Whether the receiver's window is `known`, `inferred` or `unknown`.
    """
    # Length: one sentence per fact
    import polars as pl

    own = packets.filter(
        (pl.col("from_server") == server) & (pl.col("length") > 0) & ~pl.col("kind").is_in(["sack", "dsack", "probe"])
    )
    begin, end = float(own["t_s"][0]), float(own["t_s"][-1])
    life = max(end - begin, 1e-9)
    least = max(PAUSE_S, PAUSE_TRIPS * (row["handshake_rtt_s"] or 0.0))
    gaps = own["t_s"].diff().drop_nulls()
    idle = float(gaps.filter(gaps >= least).sum())
    rate = told_rate(8 * row["bytes"] / max(life - idle, 1e-9))
    made = [
        f"The capture still shows: {row['bytes']:,} bytes in {told_seconds(life)}, {rate} without the times in which nothing arrived."
    ]
    pauses = int((gaps >= least).sum())
    if pauses:
        made.append(
            f"No data for {told_seconds(idle)} ({share(idle / life)} of the time), in {pauses:,} pauses of {told_seconds(least)} and more."
        )
    sender, receiver = ("server", "client") if server else ("client", "server")
    shut = 0.0
    one_way = packets.filter(pl.col("from_server") != server).is_empty()
    if window != "unknown":
        told = packets.filter(
            (pl.col("from_server") != server)
            & pl.col("ack").is_not_null()
            & ~pl.col("kind").is_in(["syn", "sack", "dsack", "reset"])
        )
        lasts = told["t_s"].diff().shift(-1).fill_null(0.0)
        shut = float(lasts.filter(told["window"] < mss).sum())
        offered = told["window"].to_list()
        if offered:
            made.append(
                f"The receiver's window: {min(offered):,} to {max(offered):,} bytes; it was shut {row['zero_windows']:,} times, without room for a segment for "
                f"{told_seconds(shut)} ({share(min(shut / life, 1.0))} of the time)."
            )
    lacks = row["most_in_flight"] > (row["most_window"] or math.inf)
    flight = "" if lacks or one_way else f"; first flight: {row['first_flight']:,} bytes"
    made.append(f"Sent again: {row['retransmitted']:,} of {row['segments']:,} segments{flight}.")
    if lacks and not one_way:
        made.append(
            f"{row['most_in_flight']:,} bytes seem to be in flight, and the receiver's window allows {row['most_window']:,.0f}: the file lacks ACKs, or holds no real "
            "connection. What was in flight is not told."
        )
    stalled, again = _stalled(packets, server=server)
    if again >= AGAIN and stalled > SHUT * life:
        here = row["captured_at"] in ("server", "client") and row["captured_at"] != row["way"]
        made.append(
            f"The same segment was sent again and not acknowledged, {again:,} times, for {told_seconds(stalled)} ({share(stalled / life)} of the time)."
        )
        return tuple(made), Answer(
            where=receiver if here else "network",
            what=f"the same segment was sent again {again:,} times without an answer, for {share(stalled / life)} of the time"
            + (": it arrived, and the host no longer acknowledged it" if here else ": nothing came through"),
            helps="a look at the state of that host or its program" if here else "a path that carries something",
            sure="likely",
        )
    quiet, asked, pauses, holes = _quiet(packets, server=server, mss=mss, trip=row["handshake_rtt_s"])
    if pauses:
        made.append(
            f"All data was acknowledged, the window was open, and nothing was sent for {told_seconds(quiet)} ({share(quiet / life)} of the time), in {pauses:,} pauses; for "
            f"{told_seconds(asked)} of it the {receiver} had not sent what the {sender} then answered."
        )
    if shut > SHUT * life:
        return tuple(made), Answer(
            where=receiver,
            what=f"its application reads too slowly, and its window was shut for {share(min(shut / life, 1.0))} of the time",
            helps="a reader that takes the data faster",
            sure="likely",
        )
    if quiet > LIKELY * life:
        asker = asked > quiet / 2
        return tuple(made), Answer(
            where="application",
            what=f"the {sender} had nothing to send for {share(quiet / life)} of the time: all was acknowledged and the window was open"
            + (f"; it waited for the {receiver} to ask for more" if asker else ""),
            helps=f"a {receiver} that asks sooner, or for more at once"
            if asker
            else "a program that writes sooner or more",
            sure="sure" if quiet > SURE * life else "likely",
        )
    passes = trips(packets, server=server)
    where = None if passes is None else _waits(packets, row, passes, life, server=server, mss=mss)
    if where is not None:
        return tuple(made), where
    pace = _pace(own, mss=mss, trip=row["handshake_rtt_s"])
    if pace is not None and row["most_window"] > 2 * pace / 8 * row["handshake_rtt_s"]:
        return tuple(made), Answer(
            where="network",
            what=f"full segments arrived at a steady {told_rate(pace)} of payload, as they do behind a bottleneck",
            helps="nothing at either end would make it faster, unless the sender paces at that rate itself (a capture at the sender shows it)",
            sure="likely",
        )
    trip = row["handshake_rtt_s"]
    if trip and life <= SHORT_TRIPS * trip and not (holes or row["retransmitted"]) and row["bytes"] > 10 * mss:
        alone = life < trip  # a larger window would not have made it faster
        return tuple(made), Answer(
            where="network" if alone else sender,
            what=f"all data came within {life / trip:.1f} round trips of {told_seconds(trip)}, {'in one flight' if alone else 'as slow start sends it'}",
            helps="a shorter way" if alone else "a higher initial window, or a shorter way",
            sure="likely",
        )
    where = None if passes is None or holes else _flown(packets, row, passes, life, server=server, mss=mss)
    if where is not None:
        return tuple(made), where
    if idle > SHUT * life:
        what = f"no data came for {share(idle / life)} of the time; whether the {sender} had none or waited does not show here"
        return tuple(made), Answer(
            where="not told",
            what=what,
            helps="a capture at the sender, or notsent of ss -ti there",
            sure="not told",
        )
    return tuple(made), Answer(
        where="not told",
        what="this capture does not show what the sender waited for",
        helps="a capture at the sender",
        sure="not told",
    )


def _waits(
    packets: pl.DataFrame, row: Mapping[str, Any], passes: Trips, life: float, *, server: bool, mss: int
) -> Answer | None:
    """Return the answer if ACKs were late or the path had a queue."""
    receiver = "client" if server else "server"
    waited, times = late(packets, server=server, mss=mss, passes=passes)
    if waited > LIKELY * life:
        return Answer(
            where=receiver,
            what=f"it acknowledged late: two segments or more had arrived, and no ACK came, for {share(waited / life)} of the time (waits: {times:,})",
            helps=f"a look at the load of the {receiver} and of its network card: the sender waited for its ACK",
            sure="likely",
        )
    stood, rate = queued(packets, server=server, back=passes.back) if row["timestamps"] else (0.0, 0.0)
    if rate and stood > SURE * life:
        return Answer(
            where="network",
            what=f"a queue stood on the path for {share(stood / life)} of the time, and emptied at {told_rate(rate)} of payload",
            helps="nothing at either end would make it faster",
            sure="likely",
        )
    return None


def _flown(
    packets: pl.DataFrame, row: Mapping[str, Any], passes: Trips, life: float, *, server: bool, mss: int
) -> Answer | None:
    """Return the answer if flights alternate with silences that end with an ACK."""
    sender, receiver = ("server", "client") if server else ("client", "server")
    found = flights(packets, server=server, mss=mss, back=passes.back)
    if row["lost"] or len(found.sizes) < FLIGHTS or found.held < HELD * (found.free + found.asked + found.full):
        return None
    if found.held < LIKELY * life:
        return None
    how = f"it sent flights of {min(found.sizes):,} to {max(found.sizes):,} bytes, and was silent for {share(found.held / life)} of the time until ACKs of each had come back"
    if found.short > found.held / 2:
        return Answer(
            where=sender,
            what=f"{how}; most ended in a short segment, so its program or its send buffer gave no more at a time",
            helps="a program that writes sooner or more, or a larger send buffer (notsent and sndbuf_limited of ss -ti there tell which)",
            sure="likely",
        )
    return Answer(
        where=sender,
        what=f"{how}; nothing was lost, and the {receiver}'s window had room",
        helps=f"a larger window at the {sender} (initial window, congestion control, send buffer: ss -ti there tells which), or a shorter way",
        sure="likely",
    )


def without_some(facts: tuple[str, ...], where: Answer) -> tuple[tuple[str, ...], Answer]:
    """Return facts and answer for a capture with missing packets. Long silences after an ACK of all data, and a closed
    window, are visible nevertheless.

    Parameters
    ----------
    facts, where
        Facts and answer of `seen`.
    """
    lasting = where.where == "application" or "window was shut" in where.what
    if lasting:
        return facts, replace(where, sure="likely")
    return facts, Answer(
        where="not told",
        what="the sender may have waited for packets that the capture lacks",
        helps="a complete capture (a larger buffer: tcpdump -B, fewer bytes of each packet: -s 96)",
        sure="not told",
    )


def _quiet(packets: pl.DataFrame, *, server: bool, mss: int, trip: float | None) -> tuple[float, float, int, int]:
    """Return the time in which the sender had nothing to send, the part of it ended by a transmission from the other
    end, the number of such pauses, and the number of holes in the data. When all data has been acknowledged and the
    window has room, a sender with data sends at once, and its data passes the capture point at most one RTT after
    that ACK. The round trip from the capture point to the sender is
    subtracted from each pause; no timer runs during a pause. If the capture has no ACKs, a silence longer than a
    timer that ends with new data counts as well. Keep-alive probes carry no data.
    """
    least = PAUSE_S if trip is None else TRIPS * trip + 1e-3
    nxt = una = 1
    since: float | None = None
    said: float | None = None
    room = mss
    quiet = asked = 0.0
    pauses = holes = 0
    rows = packets.select("t_s", "from_server", "kind", "seq", "length", "ack", "window")
    left: float | None = None
    timer = TIMER_S + 4 * (trip or least)
    for t, from_server, kind, seq, length, ack, window in rows_of(rows):
        if kind in ("sack", "dsack", "probe"):
            continue
        if from_server != server:
            if length:
                said = t
            if ack is not None and ack == ack:
                una = max(una, int(ack))
                room = int(window)
                if room < mss:
                    since = left = None  # a closed window is not a sender pause
        elif length and kind != "syn":
            if left is not None and t - left > timer and seq == nxt and una >= nxt:
                since = left
            left = t
            if since is not None and seq + length > nxt and t - since > least and room >= min(mss, length):
                quiet += t - since - (trip or 0.0)
                asked += max(min(said, t) - since - (trip or 0.0), 0.0) if said is not None and said > since else 0.0
                pauses += 1
            holes += seq > nxt > 1
            nxt = max(nxt, seq + length)
            since = None
        if una >= nxt > 1 and since is None and room >= mss:
            since = t
    return quiet, min(asked, quiet), pauses, holes


def _stalled(packets: pl.DataFrame, *, server: bool) -> tuple[float, int]:
    """Return the time during which the first outstanding segment was retransmitted without being acknowledged, s, and
    the number of retransmissions.
    """
    import polars as pl

    ours = pl.col("from_server") == server
    repairs = ours & (pl.col("length") > 0) & pl.col("kind").is_in(["retransmission", "needless"])
    acks = pl.when(~ours & (pl.col("ack") > 1) & pl.col("ack").is_not_nan()).then(pl.col("ack").floor())
    rows = packets.filter(~pl.col("kind").is_in(["sack", "dsack"])).select(
        "t_s", "seq", "length", una=acks.cum_max().fill_null(strategy="forward").fill_null(1.0), repair=repairs
    )
    since, times, stalled, again, reached = None, 0, 0.0, 0, 1.0
    for t, seq, length, una in rows_of(rows.filter("repair").drop("repair")):
        if una > reached:
            since, times, reached = None, 0, una
        if seq <= una < seq + length:
            if since is not None and t - since >= PAUSE_S:
                times += 1
                stalled += t - since
                again = max(again, times)
            since = t
    return stalled, again


def _pace(own: pl.DataFrame, *, mss: int, trip: float | None) -> float | None:
    """Return the payload rate at which data arrived nearly all the time, bit/s; None if not steady."""
    import numpy as np

    t, length = own["t_s"].to_numpy(), own["length"].to_numpy()
    if len(t) < 10 * WINDOW or not trip or (length % mss == 0).mean() < FULL_SEGMENTS:
        return None
    total = np.cumsum(length)
    rates = 8 * (total[WINDOW:] - total[:-WINDOW]) / np.maximum(t[WINDOW:] - t[:-WINDOW], 1e-9)
    lasts = np.diff(t)[WINDOW - 1 :]
    order = np.argsort(rates, kind="stable")
    middle = float(rates[order][np.searchsorted(np.cumsum(lasts[order]), lasts.sum() / 2)])
    even = lasts <= PIECES * 8 * np.maximum(length[WINDOW:], length[WINDOW - 1 : -1]) / middle  # no bursts with gaps
    steady = float(lasts[even & (np.abs(rates - middle) <= NEAR * middle)].sum())
    if steady < STEADY * float(t[-1] - t[0]) or steady < LONG_TRIPS * trip:
        return None
    return middle
