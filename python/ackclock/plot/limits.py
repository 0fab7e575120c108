"""Limits on senders over time, as bands that add up to the whole time."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ackclock._results.limits import COLUMNS
from ackclock.plot import interactive
from ackclock.plot.style import GREY, OKABE_ITO, PALE

__all__ = ["LABELS", "LOOKS", "draw_limits", "live_limits"]

LOOKS = {
    "handshake": (OKABE_ITO["black"], ""),
    "application": (OKABE_ITO["sky"], ""),
    "rwnd": (OKABE_ITO["vermilion"], "/"),
    "sndbuf": (OKABE_ITO["orange"], "."),
    "cwnd": (OKABE_ITO["blue"], ""),
    "pacing": (OKABE_ITO["green"], "-"),
    "recovery": (OKABE_ITO["purple"], "x"),
    "timeout": (GREY, "|"),
    "idle": (PALE, ""),
}
"""Colour and pattern of each cause. Only causes without a pattern differ by colour alone."""

LABELS = {
    "handshake": "handshake",
    "application": "application",
    "rwnd": "receiver's window",
    "sndbuf": "send buffer",
    "cwnd": "congestion window",
    "pacing": "pacing",
    "recovery": "recovery",
    "timeout": "timeout",
    "idle": "idle",
}
"""Cause names in legends."""


SHOWN = 5e-4
"""Minimum fraction of the time for a cause to be drawn."""


def _parts(limits: pl.DataFrame) -> tuple[np.ndarray[Any, Any], dict[str, np.ndarray[Any, Any]]]:
    """Return one flow's interval ends, and each occurring cause's fractions of the intervals."""
    ordered = limits.sort("t_s")
    seconds = {name: ordered[column].to_numpy() for name, column in COLUMNS.items()}
    whole = np.sum(list(seconds.values()), axis=0)
    safe = np.where(whole > 0, whole, 1.0)
    return ordered["t_s"].to_numpy(), {
        name: part / safe for name, part in seconds.items() if part.sum() > SHOWN * whole.sum()
    }


def _begins(ends: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the starts of equally long intervals."""
    first = max(0.0, 2 * ends[0] - ends[1]) if len(ends) > 1 else 0.0
    return np.concatenate([[first], ends[:-1]])


HATCH = {"fillmode": "overlay", "fgcolor": "#000000", "fgopacity": 0.7, "size": 8, "solidity": 0.15}
"""Pattern style: lines drawn over the colour, as in printed figures. Lines instead of the colour would make the longest
cause look the faintest.
"""


OVERLAP = 1.01
"""Width of a bar relative to its interval. Without the overlap, a white line appears where edges meet within a pixel."""


def live_limits(limits: pl.DataFrame) -> dict[str, Any]:
    """Return the limits as a plotly figure.

    Parameters
    ----------
    limits
        Rows of table `limits` of one flow.
    """
    ends, parts = _parts(limits)
    begins = _begins(ends)
    bars = [
        {
            "type": "bar",
            "name": LABELS[name],
            "x": [round(float(t), 6) for t in (begins + ends) / 2],
            "width": [round(float(w), 6) for w in (ends - begins) * OVERLAP],
            "y": [float(f"{100 * v:.4g}") for v in part],
            "marker": {"color": LOOKS[name][0], "line": {"width": 0}, "pattern": {"shape": LOOKS[name][1], **HATCH}},
            "hovertemplate": "%{y} % at %{x} s<extra>" + LABELS[name] + "</extra>",
        }
        for name, part in parts.items()
    ]
    layout = interactive.layout(x="time (s)", y="share of the time (%)", height=230, barmode="stack", bargap=0)
    layout["margin"] = {"l": 60, "r": 15, "t": 34, "b": 46}
    layout["yaxis"]["range"] = [0, 100]
    layout["legend"]["traceorder"] = "normal"
    layout["showlegend"] = True
    return {"data": bars, "layout": layout}


def draw_limits(ax: Any, limits: pl.DataFrame) -> None:
    """Draw the limits with matplotlib."""
    ends, parts = _parts(limits)
    begins = _begins(ends)
    below = np.zeros(len(ends))
    for name, part in parts.items():
        colour, hatch = LOOKS[name]
        ax.bar(
            begins,
            100 * part,
            ends - begins,
            below,
            align="edge",
            color=colour,
            hatch=hatch * 2,
            lw=0,
            label=LABELS[name],
        )
        below = below + 100 * part
    ax.set_ylim(0, 100)
    ax.set_xlim(begins[0], ends[-1])
    ax.set_xlabel("time (s)")
    ax.set_ylabel("share of the time (%)")
    ax.legend(ncols=4, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
