"""One style for all figures: Okabe-Ito colours, which colour-blind readers can distinguish, always combined with a second visual difference."""

from __future__ import annotations

import importlib
import importlib.util
import io
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from ackclock.errors import InputError, UnavailableError, one_of, quote
from ackclock.text import printable

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
    """Style of one series: colour, marker and dash.

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
    "text.parse_math": False,  # dollar signs in names are plain text
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


def plain(drawn: Any) -> Any:
    """Give logarithmic axes plain numbers. matplotlib writes powers of ten as TeX, which would appear as raw text
    because dollar signs are plain characters here.
    """
    from matplotlib.ticker import FuncFormatter, LogFormatter, NullFormatter

    for ax in drawn.axes:
        for axis in (ax.xaxis, ax.yaxis):
            if isinstance(axis.get_major_formatter(), LogFormatter):
                axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
            if isinstance(axis.get_minor_formatter(), LogFormatter):
                axis.set_minor_formatter(NullFormatter())
    return drawn


WIDTHS = {"single": 3.3, "double": 7.2}
"""Width of a figure in inches: one or both columns of a paper."""

_COLOURS: ContextVar[tuple[str, ...]] = ContextVar("colours", default=())
"""Series colours set by the user's style; empty if there are none."""


def narrow_rc(width: str) -> dict[str, Any]:
    """Return settings for figures printed at their original width: 7-point text in one column, 8-point in two."""
    size = {"single": 7.0, "double": 8.0}[width]
    sizes = dict.fromkeys(("font.size", "axes.titlesize", "axes.labelsize", "xtick.labelsize", "ytick.labelsize"), size)
    return {
        **sizes,
        "legend.fontsize": size - 0.5,
        "legend.title_fontsize": size,
        "lines.linewidth": 1.1,
        "lines.markersize": 3.5,
    }


def read_style(file: str | Path) -> dict[str, Any]:
    """Read a file of matplotlib settings (`.mplstyle`).

    Raises
    ------
    InputError
        If it cannot be read, or one of its lines is not a setting.
    """
    mpl = matplotlib()

    file = Path(file)
    allowed = "a file of matplotlib's settings, as `lines.linewidth: 2`"
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
        keys = [line.partition("#")[0].partition(":")[0].strip() for line in lines]
        # matplotlib would only log a warning
        strange = next((key for key in keys if key and key not in mpl.rcParams), None)
        found = {} if strange else mpl.rc_params_from_file(file, fail_on_error=True, use_default_template=False)
    except OSError as error:
        told = f"an unreadable file ({(error.strerror or str(error)).lower()})"
        raise InputError(f"--style {file}: found {told}; allowed: {allowed}") from None
    except ValueError as error:  # not UTF-8, or an invalid value for the setting
        raise InputError(
            f"--style {file}: found {quote(str(error).strip().splitlines()[0])}; allowed: {allowed}"
        ) from None
    if strange:
        raise InputError(f"--style {file}: found {quote(strange)}; allowed: {one_of(strange, mpl.rcParams)}")
    return {name: value for name, value in found.items() if name.partition(".")[0] in _LOOKS}


_LOOKS = frozenset(
    [
        "axes",
        "axes3d",
        "errorbar",
        "figure",
        "font",
        "grid",
        "hatch",
        "image",
        "legend",
        "lines",
        "markers",
        "mathtext",
        "patch",
        "path",
        "pdf",
        "savefig",
        "scatter",
        "svg",
        "text",
        "xaxis",
        "xtick",
        "yaxis",
        "ytick",
    ]
)
"""Prefixes of the settings that a style may change: those that affect a figure's appearance, not windows or folders."""


def colours() -> tuple[str, ...]:
    """Return the series colours set by the user's style; none if it sets none."""
    return _COLOURS.get()


INSTALL = "pip install 'ackclock[figures]'"
"""Command that installs what is needed to draw figures."""


def drawable() -> bool:
    """Whether matplotlib is installed; nothing is imported."""
    return importlib.util.find_spec("matplotlib") is not None


def needed(what: str) -> None:
    """Refuse a requested figure before anything is run for it.

    Parameters
    ----------
    what
        Option and value, or the command.

    Raises
    ------
    UnavailableError
        If matplotlib is not installed.
    """
    if not drawable():
        raise UnavailableError(f"{what}: found no matplotlib, which draws figures; install it with: {INSTALL}")


def matplotlib() -> ModuleType:
    """Import matplotlib. Within a command, settings in the current folder are ignored.

    A `matplotlibrc` there would take precedence, and in another user's folder that file may be a pipe, or select a
    backend.

    Raises
    ------
    UnavailableError
        If it is not installed.
    """
    import os.path

    needed("figure")

    from ackclock import _files

    if "matplotlib" not in sys.modules and _files.guarding():
        before = os.path.exists
        os.path.exists = lambda path: path != "matplotlibrc" and before(path)
        try:
            return importlib.import_module("matplotlib")
        finally:
            os.path.exists = before
    return importlib.import_module("matplotlib")


@contextmanager
def styled(more: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Draw with this package's settings, regardless of the user's own.

    Parameters
    ----------
    more
        Additional settings.
    """
    mpl = matplotlib()

    more = more or {}
    cycle = more.get("axes.prop_cycle")
    token = _COLOURS.set(tuple(cycle.by_key().get("color", ())) if cycle is not None else ())
    try:
        with mpl.rc_context(), warnings.catch_warnings():
            # characters missing from the font, as in a user's names, are drawn as boxes
            warnings.filterwarnings("ignore", message=r"Glyph \d+")
            mpl.rcdefaults()
            for name, value in {**RC, **more}.items():
                mpl.rcParams[name] = value
            yield
    finally:
        _COLOURS.reset(token)


def saved(figure: Any, kind: str) -> bytes:
    """Return a figure as a file without dates, so that identical numbers produce identical files.

    Parameters
    ----------
    figure
        Matplotlib figure.
    kind
        "pdf", "png" or "svg". In an SVG, control characters in names are shown as text, because XML does not allow
        them.
    """
    buffer = io.BytesIO()
    date = {"pdf": "CreationDate", "svg": "Date"}.get(kind)
    figure.savefig(buffer, format=kind, dpi=200, metadata=None if date is None else {date: None})
    data = buffer.getvalue()
    return printable(data.decode()).encode() if kind == "svg" else data


def new(width: float = 7.2, height: float = 3.6, **subplots: Any) -> tuple[Any, Any]:
    """Create a figure that is not attached to a window system.

    Parameters
    ----------
    width, height
        Size in inches.
    **subplots
        As for `matplotlib.figure.Figure.subplots`.

    Returns
    -------
    tuple
        The figure, and its axes as matplotlib returns them.
    """
    matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(**subplots)


def not_reached(ax: Any, cap: float, at: float, *, colour: str = GREY, horizontal: bool = False) -> None:
    """Draw a time that was not reached before the run ended: an open arrow from the end of the run instead of a bar.

    Parameters
    ----------
    ax
        Axes, with the value on the y axis.
    cap
        End of the run, on the axis of values.
    at
        Position on the other axis.
    colour
        Colour of the series.
    horizontal
        Whether the value is on the x axis.
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
