"""What any capture tells, wherever it was taken: what is said of one from which a sender's waits cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ackclock.diagnose._answer import Answer
from ackclock.text import rate as told_rate
from ackclock.text import seconds as told_seconds
from ackclock.text import share

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

__all__ = ["seen"]

PAUSE_S, PAUSE_TRIPS = 0.2, 4
"""A time without data that is no round trip: at least so long, and so many round trips of the handshake."""

SHUT = 0.5
"""Share of the time in which the receiver's window had no room for a segment, from which on it was the limit."""


def seen(
    packets: pl.DataFrame, row: Mapping[str, Any], *, server: bool, mss: int, window: str
) -> tuple[tuple[str, ...], Answer]:
    """Sentences, and where the limit is as far as these tell.

    Parameters
    ----------
    packets, row
        The connection, and the direction looked at.
    server
        Whether the data is the server's.
    mss
        Payload of a full segment, bytes.
    window
        Whether the receiver's window is `known`, `inferred` or `unknown`.
    """
    import polars as pl

    own = packets.filter(
        (pl.col("from_server") == server) & (pl.col("length") > 0) & ~pl.col("kind").is_in(["sack", "dsack"])
    )
    begin, end = float(own["t_s"][0]), float(own["t_s"][-1])
    life = max(end - begin, 1e-9)
    least = max(PAUSE_S, PAUSE_TRIPS * (row["handshake_rtt_s"] or 0.0))
    gaps = own["t_s"].diff().drop_nulls()
    idle = float(gaps.filter(gaps >= least).sum())
    rate = told_rate(8 * row["bytes"] / max(life - idle, 1e-9))
    made = [
        f"What the capture tells all the same: {row['bytes']:,} bytes in {told_seconds(life)}, {rate} without the times in which nothing came."
    ]
    pauses = int((gaps >= least).sum())
    if pauses:
        made.append(
            f"No data for {told_seconds(idle)} ({share(idle / life)} of the time), in {pauses:,} pauses of {told_seconds(least)} and more."
        )
    sender, receiver = ("server", "client") if server else ("client", "server")
    shut = 0.0
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
    made.append(
        f"Sent again: {row['retransmitted']:,} of {row['segments']:,} segments; first flight: {row['first_flight']:,} bytes."
    )
    if shut > SHUT * life:
        return tuple(made), Answer(
            where=receiver,
            what=f"its application reads too slowly, and its window was shut for {share(min(shut / life, 1.0))} of the time",
            helps="a reader that takes the data faster",
            sure="likely",
        )
    if idle > SHUT * life:
        what = f"no data came for {share(idle / life)} of the time; whether the {sender} had none or waited does not show here"
        return tuple(made), Answer(
            where="not told",
            what=what,
            helps="a capture at the sender, or notsent of ss -ti there, tells",
            sure="not told",
        )
    return tuple(made), Answer(
        where="not told",
        what="what the sender waited for does not show in this capture",
        helps="a capture at the sender tells",
        sure="not told",
    )
