"""One style for all figures: Okabe-Ito colours, which colour-blind readers can tell apart, and never colour alone."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

OKABE_ITO = {
    "black": "#000000",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "green": "#009E73",
    "yellow": "#F0E442",
    "blue": "#0072B2",
    "vermilion": "#D55E00",
    "purple": "#CC79A7",
}
"""Okabe and Ito (2008), the palette of Nature Methods' "Points of view: Color blindness"."""

GREY = "#6b6b6b"
PALE = "#d9d9d9"


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """How one series differs from the others: by colour, marker and dash.

    Parameters
    ----------
    label
        Name in legends.
    colour
        A value of `OKABE_ITO`.
    marker
        Matplotlib marker.
    dash
        Matplotlib line style.
    """

    label: str
    colour: str
    marker: str = "o"
    dash: str | tuple[int, tuple[float, ...]] = "-"


RC: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.parse_math": False,  # a dollar sign in a name is one
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.5,
    "lines.markersize": 5,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "ackclock",
    "pdf.fonttype": 42,
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw with the settings of this package, whatever the user's own are."""
    import matplotlib as mpl

    with mpl.rc_context(), warnings.catch_warnings():
        # a sign that the font lacks, in a name of the user's, is drawn as a box
        warnings.filterwarnings("ignore", message=r"Glyph \d+")
        mpl.rcdefaults()
        for name, value in RC.items():
            mpl.rcParams[name] = value  # type: ignore[index]
        yield


def new(width: float = 7.2, height: float = 3.6, **subplots: Any) -> tuple[Any, Any]:
    """Make a figure that belongs to no window system.

    Parameters
    ----------
    width, height
        Inches.
    **subplots
        As for `matplotlib.figure.Figure.subplots`.

    Returns
    -------
    tuple
        The figure, and its axes as matplotlib returns them.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(**subplots)


def not_reached(ax: Any, cap: float, at: float, *, colour: str = GREY, horizontal: bool = False) -> None:
    """Draw a time that was not reached before the run ended: an open arrow that begins at the end of the run, never a bar.

    Parameters
    ----------
    ax
        Axes; the value is on its y axis.
    cap
        When the run ended, on the axis of values.
    at
        Place on the other axis.
    colour
        Of the series.
    horizontal
        The value is on the x axis.
    """
    x, y = (cap, at) if horizontal else (at, cap)
    marker = ">" if horizontal else "^"
    ax.plot([x], [y], marker=marker, ms=7, mfc="white", mec=colour, ls="none", clip_on=False, zorder=5)
    offset = (6, 0) if horizontal else (0, 6)
    ax.annotate(
        "not reached",
        (x, y),
        offset,
        textcoords="offset points",
        fontsize=7,
        color=colour,
        ha="left" if horizontal else "center",
        va="center" if horizontal else "bottom",
        annotation_clip=False,
    )
