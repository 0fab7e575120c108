"""Figures of one connection from its per-ACK trace: window over time, and time-sequence."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ackclock.plot.style import GREY, OKABE_ITO

DENSE = 3000
"""Number of points above which a line is rasterised, even in PDF and SVG."""


STATES = {"Disorder": "#f3e9c6", "CWR": "#dcd3ec", "Recovery": "#cfe6f5", "Loss": "#f7d3c1"}
"""Background colour of each congestion state; Open has none."""

_BLUE, _RED, _GREEN = OKABE_ITO["blue"], OKABE_ITO["vermilion"], OKABE_ITO["green"]


def thin(table: pl.DataFrame, most: int) -> pl.DataFrame:
    """Return every k-th row, so that at most `most` remain; the last row is kept."""
    if table.height <= most:
        return table
    step = -(-table.height // most)
    return table.filter((pl.int_range(pl.len()) % step == 0) | (pl.int_range(pl.len()) == pl.len() - 1))


def windows(acks: pl.DataFrame, *, start_s: float = 0.0, stop_s: float = float("inf")) -> pl.DataFrame:
    """Return cwnd, pipe and ssthresh after each ACK and each timeout.

    Parameters
    ----------
    acks
        Trace of one connection's sender.
    start_s, stop_s
        Start and end of the part of the run to use.

    Returns
    -------
    polars.DataFrame
        Columns t_s, cwnd, pipe, ssthresh (null before it was set), ca_state.
    """
    kept = acks.filter(
        pl.col("t_s").is_between(start_s, stop_s) & pl.col("event").is_in(["ack", "rto", "enter", "exit", "undo"])
    )
    return kept.select(
        "t_s",
        "cwnd",
        "pipe",
        "ssthresh",
        "ca_state",
    )


def state_spans(acks: pl.DataFrame) -> list[tuple[float, float, str]]:
    """Return the times during which the congestion state was not Open: start, end, state."""
    t = acks["t_s"].to_list()
    states = acks["ca_state"].to_list()
    spans: list[tuple[float, float, str]] = []
    begin = 0
    for i in range(1, len(t) + 1):
        if i < len(t) and states[i] == states[begin]:
            continue
        if states[begin] in STATES:
            spans.append((t[begin], t[min(i, len(t) - 1)], states[begin]))
        begin = i
    return spans


def draw_windows(ax: Any, acks: pl.DataFrame, *, start_s: float = 0.0, stop_s: float = float("inf")) -> None:
    """Draw cwnd, pipe and ssthresh against time, with the congestion states behind."""
    table = windows(acks, start_s=start_s, stop_s=stop_s)
    draw_states(ax, table)
    t = table["t_s"].to_numpy()
    ax.step(t, table["pipe"].to_numpy(), where="post", color=GREY, lw=0.9, label="pipe", rasterized=len(t) > DENSE)
    ax.step(t, table["cwnd"].to_numpy(), where="post", color=_BLUE, lw=1.6, label="cwnd", rasterized=len(t) > DENSE)
    ssthresh = table["ssthresh"].cast(pl.Float64).to_numpy()
    ax.step(t, ssthresh, where="post", color=_RED, ls=(0, (4, 2)), lw=1.2, label="ssthresh", rasterized=len(t) > DENSE)


def draw_states(ax: Any, table: pl.DataFrame) -> None:
    """Shade the time spent in each congestion state."""
    for begin, end, state in state_spans(table):
        ax.axvspan(begin, end, color=STATES[state], lw=0, zorder=0)


def sack_segments(acks: pl.DataFrame) -> np.ndarray[Any, Any]:
    """Return the first SACK block of each ACK, as rows (t_s, start byte, end byte)."""
    rows = acks.filter((pl.col("event") == "ack") & (pl.col("sack_blocks") > 0) & ~pl.col("dsack").cast(pl.Boolean))
    return rows.select("t_s", "sack0_start", "sack0_end").to_numpy()


def sequence(acks: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return the data of a time-sequence figure: originals, retransmissions and probes sent, and the ACK line.

    Returns
    -------
    dict
        Tables "new", "rtx" (t_s, seq, len, seg_no, rexmit) and "ack" (t_s, seq).
    """
    columns = ["t_s", "seq", "len", "seg_no", "rexmit"]
    # a segment of length 1 is a FIN without data
    sent = acks.filter(pl.col("event").is_in(["send", "rtx"]) & (pl.col("len") > 1))
    return {
        "new": sent.filter(pl.col("rexmit") == 0).select(columns),
        "rtx": sent.filter(pl.col("rexmit") > 0).select(columns),
        "ack": acks.filter(pl.col("event") == "ack").select("t_s", "seq"),
    }


def draw_sequence(ax: Any, acks: pl.DataFrame, *, drops: pl.DataFrame | None = None) -> None:
    """Plot segments against time: originals, retransmissions, SACKs, the ACK line, and drops in the network.

    Parameters
    ----------
    ax
        Matplotlib axes.
    acks
        Trace of one connection's sender.
    drops
        Its dropped packets (columns t_s, seg_no, rexmit); drawn as crosses on the segment sent.
    """
    parts = sequence(acks)
    draw_states(ax, acks)
    sacks = sack_segments(acks)
    ax.vlines(sacks[:, 0], sacks[:, 1] / 1000, sacks[:, 2] / 1000, color="#b9a1c7", lw=1.2, label="newest SACK block")
    ack = parts["ack"]
    ax.step(ack["t_s"], ack["seq"] / 1000, where="post", color=_GREEN, lw=1.2, label="acknowledged")
    new, rtx = parts["new"], parts["rtx"]
    ax.plot(new["t_s"], new["seq"] / 1000, ".", color="#000000", ms=4, label="sent")
    ax.plot(rtx["t_s"], rtx["seq"] / 1000, "^", color=_RED, ms=5, mec="white", mew=0.4, label="retransmitted")
    if drops is not None and drops.height:
        lost = dropped_sends(acks, drops)
        ax.plot(lost["t_s"], lost["seq"] / 1000, "x", color=_BLUE, ms=6, mew=1.4, label="dropped by the network")


def dropped_sends(acks: pl.DataFrame, drops: pl.DataFrame) -> pl.DataFrame:
    """Return the transmissions dropped by the network, as trace rows, matched by segment and transmission number."""
    sent = acks.filter(pl.col("event").is_in(["send", "rtx"]))
    key = ["seg_no", "rexmit"]
    wanted = drops.select(pl.col(c).cast(pl.Int64) for c in key).unique(maintain_order=True)
    return sent.with_columns(pl.col(c).cast(pl.Int64) for c in key).join(wanted, on=key, how="semi")
