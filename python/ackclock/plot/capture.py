"""Time-sequence graph of a captured connection: transmissions, acknowledgements, and the edge of the peer's window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ackclock.plot.panels import extremes
from ackclock.plot.style import GREY, OKABE_ITO

if TYPE_CHECKING:
    import polars as pl

__all__ = ["draw_capture", "opening"]

MOST_MARKS = 20_000
"""Maximum number of marks of one kind; if there are more, only every n-th is drawn."""

BEFORE, SPAN = 2, 10
"""Round trips shown by default: before the first retransmission, and in total."""

AGAIN = ("retransmission", "needless", "late")

SENT = {
    "data": ("sent", "#000000", "|"),
    "late": ("overtaken on the way", OKABE_ITO["orange"], "d"),
    "retransmission": ("sent again", OKABE_ITO["vermilion"], "^"),
    "needless": ("sent again for nothing", OKABE_ITO["blue"], "x"),
}


def opening(packets: pl.DataFrame, rtt_s: float) -> tuple[float, float]:
    """Return the time span shown initially: a few round trips around the first retransmission, or the first ones of the
    capture.

    Parameters
    ----------
    packets
        Packets of a `Capture`.
    rtt_s
        Round-trip time.

    Returns
    -------
    tuple
        Start and end of the span, s.
    """
    begin, end = float(packets["t_s"][0]), float(packets["t_s"][-1])
    again = packets.filter(packets["kind"].is_in(list(AGAIN)))
    first = begin if again.is_empty() else float(again["t_s"][0]) - BEFORE * rtt_s
    first = max(begin, first)
    return first, min(end, first + SPAN * rtt_s)


def draw_capture(ax: Any, packets: pl.DataFrame, *, from_server: bool, span: tuple[float, float]) -> None:
    """Draw the data of one direction.

    Parameters
    ----------
    ax
        Matplotlib axes.
    packets
        Packets of a `Capture`.
    from_server
        Direction of the data.
    span
        Start and end of the time shown, s.
    """
    import polars as pl

    packets = packets.filter(pl.col("t_s").is_between(*span))
    own = packets.filter((pl.col("from_server") == from_server) & (pl.col("length") > 0))
    other = packets.filter((pl.col("from_server") != from_server) & ~pl.col("kind").is_in(["sack", "dsack"]))
    ends = own["seq"].to_numpy() + own["length"].to_numpy()
    scale = 1e6 if ends.size and ends.max() > 2e6 else 1e3
    for kind, (label, colour, marker) in SENT.items():
        rows = own.filter(pl.col("kind") == kind)
        if rows.is_empty():
            continue
        rows = rows.gather_every(-(-rows.height // MOST_MARKS))
        t, low = rows["t_s"].to_numpy(), rows["seq"].to_numpy() / scale
        if kind == "data":
            ax.vlines(t, low, low + rows["length"].to_numpy() / scale, color=colour, linewidth=1, label=label)
        else:
            ax.plot(t, low, marker, color=colour, markersize=4, linestyle="none", label=label)
    for kind, label, colour in (
        ("sack", "SACK block", OKABE_ITO["purple"]),
        ("dsack", "DSACK block", OKABE_ITO["sky"]),
    ):
        rows = packets.filter((pl.col("from_server") != from_server) & (pl.col("kind") == kind))
        if not rows.is_empty():
            rows = rows.gather_every(-(-rows.height // MOST_MARKS))
            low = rows["seq"].to_numpy() / scale
            ax.vlines(
                rows["t_s"].to_numpy(),
                low,
                low + rows["length"].to_numpy() / scale,
                color=colour,
                alpha=0.5 if kind == "sack" else 1.0,
                linewidth=1 if kind == "sack" else 3,
                label=label,
            )
    acks = other.filter(pl.col("ack").is_not_null() & (pl.col("kind") != "syn"))
    if not acks.is_empty():
        acknowledged = acks["ack"].cum_max()
        t, y = extremes(acks["t_s"].to_numpy(), acknowledged.to_numpy() / scale)
        ax.plot(t, y, color=OKABE_ITO["green"], linewidth=1, drawstyle="steps-post", label="acknowledged")
        edge = (acks["ack"] + acks["window"]).to_numpy() / scale
        t, y = extremes(acks["t_s"].to_numpy(), edge)
        ax.plot(
            t, y, color=GREY, linewidth=1, linestyle=":", drawstyle="steps-post", label="end of the receiver's window"
        )
    if ends.size:
        first, last = int(own["seq"].to_numpy().min()), int(ends.max())
        margin = max(1, (last - first) // 10)
        ax.set_ylim((first - margin) / scale, (last + margin) / scale)
    ax.set_xlabel("time [s]")
    ax.set_ylabel("sequence number [MB]" if scale == 1e6 else "sequence number [kB]")
    ax.legend(loc="upper left")
