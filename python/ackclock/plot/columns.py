"""Any column of a run's tables as a figure: over time if the table has times, as a distribution if it has many rows of
each flow, otherwise as one bar per row.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ackclock import _files
from ackclock.errors import InputError, nearest, quote
from ackclock.plot import grid, panels
from ackclock.plot.figure import Figure
from ackclock.plot.style import WIDTHS, new, saved, styled

if TYPE_CHECKING:
    from ackclock._results.result import Run
    from ackclock.formats import Measured

__all__ = ["FORMATS", "WIDTHS", "check", "figure", "write"]

FORMATS = ("pdf", "png", "svg")

SHORT = {
    "cwnd": ("samples", "cwnd"),
    "ssthresh": ("samples", "ssthresh"),
    "rtt": ("samples", "srtt_s"),
    "in_flight": ("samples", "in_flight"),
    "rwnd": ("samples", "rwnd"),
    "goodput": ("goodput", "goodput_bps"),
    "queue": ("queue_samples", "packets"),
}
"""Short names of the columns drawn most often."""

UNITS = {"_s": "s", "_bps": "bit/s", "_ns": "ns"}

MOST = 100
"""Maximum number of lines or bars."""


def check(wanted: str) -> tuple[str | None, str, Path]:
    """Parse "FILE" or "TABLE.COLUMN=FILE": return table (None for a short name), column, file.

    Raises
    ------
    InputError
        If the text names no format or no column.
    """
    from ackclock._results.result import TABLES

    what, equals, file = wanted.rpartition("=")
    path = Path(file)
    name = what if equals else path.stem
    table, dot, column = name.partition(".")
    if path.suffix[1:].lower() in FORMATS:
        if dot and table in TABLES:
            return table, column, path
        if name in SHORT:
            return None, name, path
    near = None if equals else nearest(name, SHORT)
    ends = path.suffix if path.suffix[1:].lower() in FORMATS else ".png"
    meant = f'; did you mean "{path.with_name(f"{near}{ends}")}"?' if near else ""
    raise InputError(
        f"--plot: found {quote(wanted)}{meant}; allowed: NAME.png or TABLE.COLUMN=FILE.png (or .pdf, .svg), with NAME one of "
        f"{', '.join(SHORT)}, and TABLE one of {', '.join(TABLES)}"
    )


def write(run: Run, wanted: str, *, width: str = "double", beside: Sequence[Measured] = ()) -> Path:
    """Draw a column of a run and write the figure.

    Parameters
    ----------
    run
        Run that has recorded the column.
    wanted
        See `check`.
    width
        "single" or "double" column of a paper.
    beside
        Measurements from elsewhere, for the figures that have a short name.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        If the run has no such column, or the file cannot be written.
    """
    table, column, path = check(wanted)
    with styled():
        drawn = saved(_drawn(run, table, column, width, beside), path.suffix.removeprefix("."))
    return _files.write(path, drawn, f"--plot {path}")


def figure(run: Run, what: str, *, width: str = "double", beside: Sequence[Measured] = ()) -> Figure:
    """Return the plot, which notebooks display.

    Parameters
    ----------
    run
        Run that has recorded the column.
    what
        One of `SHORT`, or "TABLE.COLUMN".
    width, beside
        As for `write`.

    Returns
    -------
    Figure
        The figure, already drawn once, so that errors are raised here.

    Raises
    ------
    InputError
        If the run has no such column.
    """
    if width not in WIDTHS:
        raise InputError(f"width: found {quote(width)}; allowed: {', '.join(WIDTHS)}")
    table, column, _ = check(f"{what}=x.png")
    with styled():
        _drawn(run, table, column, width, beside)
    return Figure(
        name=what.replace(".", "-"),
        title=what,
        caption=f"Seed {run.seed}, digest {run.digest}.",
        draw=lambda: _drawn(run, table, column, width, beside),
        data={} if table is None else {table: getattr(run, table)},
    )


def _drawn(run: Run, table: str | None, column: str, width: str, beside: Sequence[Measured]) -> Any:
    drawn, ax = new(WIDTHS[width], 2.2 if width == "single" else 3.2)
    if table is None:
        _draw_short(ax, run, column, beside)
    else:
        _draw_column(ax, run, table, column)
    return drawn


def _draw_short(ax: Any, run: Run, name: str, beside: Sequence[Measured]) -> None:
    panel_of = {"ssthresh": "cwnd"}
    found = next((panel for panel in panels.panels(run, beside) if panel.name == panel_of.get(name, name)), None)
    if found is None:
        table, column = SHORT[name]
        raise InputError(f"--plot {name}: found no values of {table}.{column} in this run; allowed: recorded columns")
    panels.draw(ax, found)


def _draw_column(ax: Any, run: Run, table: str, column: str) -> None:
    frame: pl.DataFrame = getattr(run, table)
    numeric = [name for name, kind in frame.schema.items() if kind.is_numeric() or kind == pl.Boolean]
    if not frame.height:
        have = ", ".join(name for name in run.tables if getattr(run, name).height)
        raise InputError(f"--plot {table}.{column}: found no rows of {table} in this run; it has {have}")
    if column not in numeric:
        raise InputError(f"--plot {table}.{column}: found {quote(column)}; allowed: {', '.join(numeric)}")
    if "t_s" in frame.columns:
        _lines(ax, run, frame, column)
    elif "flow" in frame.columns and frame["flow"].n_unique() < frame.height:
        return _distribution(ax, run, frame, table, column)
    else:
        _bars(ax, run, frame, table, column)
    ax.set_ylabel(_label(column))
    return None


def _distribution(ax: Any, run: Run, frame: pl.DataFrame, table: str, column: str) -> None:
    """Draw the distribution of a table whose rows are events (fetches, transactions, recoveries), one line per group."""
    labels = panels.group_names(run)
    group = dict(zip(*run.flows.select("flow", "group"), strict=True))
    series: dict[str, list[float]] = {}
    mixed = "initial_window" in frame.columns and frame["initial_window"].n_unique() > 1
    known = (
        frame.select("flow", "initial_window" if mixed else "flow", column) if mixed else frame.select("flow", column)
    )
    for row in known.with_columns(pl.col(column).cast(pl.Float64)).drop_nulls(column).iter_rows(named=True):
        name = labels[group[row["flow"]]] + (f", IW {row['initial_window']}" if mixed else "")
        series.setdefault(name, []).append(row[column])
    if not series:
        raise InputError(f"--plot {table}.{column}: found no values in this run; allowed: a column that has some")
    shown = dict(list(series.items())[: 2 * panels.CROWD])
    grid.draw_distributions(ax, shown, log_x=grid.wide([v for values in shown.values() for v in values]))
    ax.set_xlabel(_label(column))
    ax.set_ylabel(f"share of {table.replace('_', ' ')}")
    if len(shown) > 1:
        ax.legend()


def _lines(ax: Any, run: Run, frame: pl.DataFrame, column: str) -> None:
    key = next((name for name in ("flow", "link", "host") if name in frame.columns), None)
    groups = [frame] if key is None else frame.partition_by(key, maintain_order=True)[:MOST]
    labels = [""] if key is None else [_name(run, key, part[key][0]) for part in groups]
    for look, part in zip(grid.series(labels), groups, strict=True):
        t = part["t_s"].cast(pl.Float64).to_numpy()
        y = part[column].cast(pl.Float64).fill_null(float("nan")).to_numpy()
        t, y = panels.extremes(t, y)
        ax.plot(t, y, color=look.colour, ls=look.dash, lw=1.2, drawstyle="steps-post", label=look.label)
    ax.set_xlabel("time (s)")
    ax.margins(x=0.01)
    if 1 < len(groups) <= 2 * panels.CROWD:
        ax.legend(ncols=2)


def _bars(ax: Any, run: Run, frame: pl.DataFrame, table: str, column: str) -> None:
    rows = frame.head(MOST)
    key = next((name for name in ("flow", "link", "host") if name in rows.columns), None)
    labels: Sequence[str] = (
        [str(i) for i in range(rows.height)] if key is None else [_name(run, key, value) for value in rows[key]]
    )
    ax.bar(
        range(rows.height), rows[column].cast(pl.Float64).fill_null(float("nan")).to_numpy(), color="#0072B2", width=0.7
    )
    step = max(-(-rows.height // 20), 1)
    turned = max(map(len, labels)) * rows.height > 60
    ax.set_xticks(
        np.arange(0, rows.height, step),
        labels[::step],
        rotation=40 if turned else 0,
        ha="right" if turned else "center",
    )
    ax.set_xlabel(key or f"row of {table}")
    ax.grid(axis="x", visible=False)


def _name(run: Run, key: str, value: Any) -> str:
    if key == "flow":
        names = panels.flow_names(run)
        return names[value] if value < len(names) else str(value)
    if key == "link" and isinstance(value, int):
        return next((str(row["name"]) for row in run.rows("links") if row["link"] == value), str(value))
    return str(value)


def _label(column: str) -> str:
    for end, unit in UNITS.items():
        if column.endswith(end):
            return f"{column.removesuffix(end).replace('_', ' ')} ({unit})"
    return column.replace("_", " ")
