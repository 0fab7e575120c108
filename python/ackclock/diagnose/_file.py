"""Checks on a capture before conclusions are drawn: unknown window scale, a clock running backwards, duplicated
packets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ackclock.text import seconds as told_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

__all__ = ["Asked", "ask"]

LEAST_STEP_S = 1e-3
"""Maximum backward clock step attributed to reading two processors' clocks, s."""

UNKNOWN_SHIFT, LARGEST_SHIFT = 14, 14
"""Shift for windows of unknown scale, large enough never to limit the sender; maximum shift (RFC 7323)."""

AT_EDGE = 0.3
"""Minimum fraction of the data sent right up to the window edge, for the smallest possible scale to be assumed."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Results of the checks.

    Parameters
    ----------
    packets
        Packets with non-decreasing times, and windows in bytes.
    row
        The connection's row, without values that cannot be derived from the file.
    window
        Whether the receiver's window is known: `known`, `inferred` from what was in flight, `unknown`.
    notes
        Caveats for the reader.
    refused
        Why no conclusions can be drawn; empty if they can.
    """

    packets: pl.DataFrame
    row: dict[str, Any]
    window: str
    notes: tuple[str, ...]
    refused: str = ""


def ask(packets: pl.DataFrame, row: Mapping[str, Any], facts: Mapping[str, int], *, server: bool, mss: int) -> Asked:
    """Check the file.

    Parameters
    ----------
    packets
        Packets from `ackclock.formats.read_capture`.
    row, facts
        Rows of the direction, and facts about the file.
    server
        Whether the server sends the data.
    mss
        Payload of a full segment, bytes.
    """
    import polars as pl

    own, notes = dict(row), []
    if facts.get("without_copies"):
        notes.append(
            f"{facts['copies']:,} segments are in the file twice, as of a capture on several devices of a host, of a mirror port for both directions, or on both "
            "sides of a router. The second ones are left out: they are no retransmissions, as identification, numbers and timestamps are the same."
        )
    back = float((packets["t_s"].cum_max() - packets["t_s"]).max() or 0.0)  # type: ignore[arg-type]
    refused = ""
    if back > LEAST_STEP_S:
        refused = (
            f"the clock of the capture runs back by {told_seconds(back)}, because it was set or several captures were joined, so times before and behind are not of "
            "one clock: cut the file there (`editcap -A`, `-B`)"
        )
    elif back > 0:
        packets = packets.with_columns(t_s=pl.col("t_s").cum_max())
    window = "known"
    if not row["scale_known"]:
        packets, window = _scaled(packets, server=server, mss=mss)
        own["least_window"], own["most_window"] = _offered(packets, server) if window == "inferred" else (None, None)
        own["sack"] = True if (packets["kind"] == "sack").any() else None
        own["timestamps"] = bool(row["timestamps"]) or None
        why = "The capture lacks the SYNs, or their options were cut off"
        notes.append(
            f"{why}: the scale of the receiver's window is inferred from the data in flight."
            if window == "inferred"
            else f"{why}: the scale of the receiver's window is not known, and the data in flight does not show it, so that window may have been the limit; "
            "`snd_wnd` of `ss -ti` at the sender shows it, or a capture that begins with the connection and keeps 96 bytes of each packet."
        )
    return Asked(packets=packets, row=own, window=window, notes=tuple(notes), refused=refused)


def _scaled(packets: pl.DataFrame, *, server: bool, mss: int) -> tuple[pl.DataFrame, str]:
    """Return windows in bytes. The scale is the smallest one that permits the bytes in flight, if these reached
    the window; otherwise it is so large that the window is never the limit.
    """
    import polars as pl

    syn = pl.col("kind") == "syn"
    told = (
        (pl.col("from_server") != server)
        & pl.col("ack").is_not_null()
        & ~syn
        & ~pl.col("kind").is_in(["sack", "dsack"])
    )
    sent = (pl.col("from_server") == server) & (pl.col("length") > 0) & (pl.col("kind") == "data")
    look = packets.with_columns(
        edge=pl.when(told).then("ack").forward_fill(), offered=pl.when(told).then("window").forward_fill()
    ).filter(sent & pl.col("edge").is_not_null() & (pl.col("offered") > 0))
    shift = UNKNOWN_SHIFT
    window = "unknown"
    if not look.is_empty():
        flight = (look["seq"] + look["length"] - look["edge"]).cast(pl.Float64)
        most = float((flight / look["offered"]).max())  # type: ignore[arg-type]
        least = max(math.ceil(math.log2(most)), 0) if most > 0 else 0
        if least <= LARGEST_SHIFT:
            room = look["offered"].cast(pl.Float64) * 2**least - flight
            if float((room < mss).mean()) >= AT_EDGE:
                shift, window = least, "inferred"
    scaled = pl.when((pl.col("from_server") != server) & ~syn).then(pl.col("window") * 2**shift).otherwise("window")
    return packets.with_columns(window=scaled.cast(packets.schema["window"])), window


def _offered(packets: pl.DataFrame, server: bool) -> tuple[float, float]:
    import polars as pl

    told = packets.filter((pl.col("from_server") != server) & ~pl.col("kind").is_in(["syn", "sack", "dsack", "reset"]))
    return float(told["window"].min() or 0), float(told["window"].max() or 0)  # type: ignore[arg-type]
