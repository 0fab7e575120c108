"""A sweep's results as one table: one row per run, beginning with the axis values."""

from __future__ import annotations

import hashlib
import io
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock import _html
from ackclock._files import OWN, parquet, regular, staged
from ackclock.errors import InputError, one_of, quote
from ackclock.judge.intervals import Estimate, bootstrap_mean
from ackclock.scenario._toml import to_toml
from ackclock.sweep.axes import base_unit, base_value, label
from ackclock.sweep.integrity import DamagedError
from ackclock.sweep.measures import TABLE, bounds, distinct, measure
from ackclock.sweep.store import Store
from ackclock.sweep.sweep import Cell, Sweep, load
from ackclock.text import NONE, rate

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, kw_only=True, eq=False)
class Results:
    """Runs of a sweep, whether finished or not.

    Parameters
    ----------
    sweep
        The sweep that was run.
    runs
        One row per finished run, in the order of cells and seeds: `cell`, the axes, `seed`, `digest`, the metrics.
    folder
        Folder of the store; `flows` and `groups` are read from there on first access.
    """

    sweep: Sweep
    runs: pl.DataFrame
    folder: Path | None = None

    @property
    def columns(self) -> list[str]:
        """Names of the axis columns."""
        return [axis.column for axis in self.sweep.axes]

    @property
    def axes(self) -> pl.DataFrame:
        """The grid: one row for each value of each axis, with `column`, `key`, `position` and `value` as text."""
        import polars as pl

        rows = [
            (axis.column, axis.key, i, label(value)) for axis in self.sweep.axes for i, value in enumerate(axis.shown)
        ]
        names = {"column": pl.String, "key": pl.String, "position": pl.UInt32, "value": pl.String}
        return pl.DataFrame(rows, schema=names, orient="row")

    @property
    def flows(self) -> pl.DataFrame:
        """One row per flow of each run: `cell`, the axes, `seed`, `flow`, `name` (of its group), and the columns of `performance`."""
        return self._measured("flow").rename({"number": "flow"}).drop("flows")

    @property
    def groups(self) -> pl.DataFrame:
        """One row per group of each run: `cell`, the axes, `seed`, `name`, `group`, and the columns of `performance`."""
        return self._measured("group").drop("number")

    def _measured(self, of: str) -> pl.DataFrame:
        import polars as pl

        return self.performance.filter(pl.col("of") == of).drop("of")

    @cached_property
    def performance(self) -> pl.DataFrame:
        """The `performance` table of all runs, preceded by `cell`, the axes and `seed`."""
        import polars as pl

        if self.folder is None:
            raise InputError("results: found runs alone; allowed: those that `ackclock.sweep.read` has read")
        with Store(self.folder) as store:
            runs = _joined(store, self.sweep, keys=True).select("cell", *self.columns, "seed", "key")
            kept = store.read(self.sweep.recipe.text, TABLE)
        if not kept.height:
            empty = dict.fromkeys(("of", "name"), pl.String) | dict.fromkeys(("number", "group"), pl.UInt32)
            return runs.clear().drop("key").with_columns(pl.lit(None, dtype=t).alias(c) for c, t in empty.items())
        rows = runs.join(kept.drop("seed"), on="key", how="inner", maintain_order="left_right").drop("key")
        labels = pl.DataFrame(
            [
                (i, g, group.label)
                for i, cell in enumerate(self.sweep.cells)
                for g, group in enumerate(cell.scenario.flows)
            ],
            schema={"cell": pl.UInt32, "group": pl.UInt32, "name": pl.String},
            orient="row",
        )
        named = rows.join(labels, on=["cell", "group"], how="left", maintain_order="left")
        front = ["cell", *self.columns, "seed", "of", "number", "name"]
        return named.select(*front, pl.exclude(front))

    def numbered(self, table: pl.DataFrame) -> pl.DataFrame:
        """Return a table with a numeric column inserted after each axis of quantities: `rate` "10 Mbit/s" -> `rate_bps` 1e7.

        Parameters
        ----------
        table
            `runs`, `flows`, `groups` or `performance`.
        """
        import polars as pl

        columns: list[pl.Expr] = []
        names = {axis.column: axis for axis in self.sweep.axes}
        for column in table.columns:
            columns.append(pl.col(column))
            axis = names.get(column)
            unit = None if axis is None or table.schema[column] != pl.String else base_unit(axis.shown)
            if axis is None or unit is None:
                continue
            numbers = {label(value): base_value(value) for value in axis.shown}
            number = pl.col(column).replace_strict(numbers, default=None, return_dtype=pl.Float64)
            name = f"{column}_{_ENDS[unit]}"
            columns.append(number.alias(f"{column}_value" if name in table.columns else name))  # the name may be taken
        return table.select(columns)

    @property
    def same(self) -> list[int]:
        """Numbers of the cells where all seeds (two or more) produced the same run."""
        import polars as pl

        counted = self.runs.group_by("cell", maintain_order=True).agg(
            pl.len(), pl.col("digest").n_unique().alias("runs")
        )
        return counted.filter((pl.col("len") > 1) & (pl.col("runs") == 1))["cell"].to_list()

    def holding(self, metric: str) -> Results:
        """Return results with an additional column of this name in `runs`.

        Parameters
        ----------
        metric
            A kept metric; or "flow.NUMBER.COLUMN", "group.NAME.COLUMN" or "run.COLUMN", columns of `performance`.

        Raises
        ------
        InputError
            If there is no such metric, flow, group or column.
        """
        self.check(metric)
        found = measure(metric)
        if found is None or metric in self.runs.columns:
            return self
        rows = found.select(self.performance).select("cell", "seed", found.column).rename({found.column: metric})
        runs = self.runs.join(rows, on=["cell", "seed"], how="left", maintain_order="left")
        return replace(self, runs=runs)

    def cells(self, metric: str) -> pl.DataFrame:
        """One row per cell: the axes, mean and 95 % interval (bootstrap) of a metric, the number of values (`n`), and
        the number of finished runs without a value (`without`). If all seeds in a cell produced the same run, it
        counts once, and the interval is infinite.

        Parameters
        ----------
        metric
            See `holding`.
        """
        import polars as pl

        rows: list[dict[str, Any]] = []
        keys = ["cell", *self.columns]
        for group, part in self.holding(metric).runs.group_by(keys, maintain_order=True):
            e = estimate(part, metric)
            rows.append(
                {
                    **dict(zip(keys, group, strict=True)),
                    "n": e.n,
                    "without": _undefined(part, metric),
                    "mean": e.value,
                    "low": e.low,
                    "high": e.high,
                }
            )
        if not rows:
            return pl.DataFrame()
        return pl.DataFrame(rows, schema_overrides={"mean": pl.Float64, "low": pl.Float64, "high": pl.Float64})

    def check(self, metric: str) -> None:
        """Refuse a metric that was not stored."""
        known = self.sweep.recipe.metrics
        if metric not in known and measure(metric) is None:
            raise InputError(
                f"metric: found {quote(metric)}; allowed: {one_of(metric, known)}, flow.NUMBER.COLUMN, group.NAME.COLUMN, run.COLUMN"
            )

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: goodput as a figure, if the axes allow one, and cell by cell."""
        told = self.cells("goodput_bps") if self.runs.height else None
        rows = []
        for row in told.iter_rows(named=True) if told is not None else ():
            interval = f"{rate(row['low'])} to {rate(row['high'])}" if math.isfinite(row["low"]) else NONE
            rows.append((*(label(row[c]) for c in self.columns), f"{row['n']:,}", rate(row["mean"]), interval))
        return (
            _html.heading(f"Sweep {self.sweep.name}", f"{self.runs.height:,} runs")
            + self._picture()
            + _html.table((*self.columns, "runs", "goodput", "95 % interval"), rows)
        )

    def _picture(self) -> str:
        from ackclock.sweep.figures import figures

        try:
            return figures(self, kinds=["lines", "bars"])[0]._repr_html_()
        except InputError:  # no axis to draw, or nothing has been measured
            return ""


_ENDS = {"s": "s", "bit/s": "bps", "bytes": "bytes", "packets": "packets", "BDP": "bdp", "": "share"}
"""An axis's unit -> suffix of the column with its numbers; a text without a unit is a fraction ("2 %")."""


def estimate(rows: pl.DataFrame, metric: str) -> Estimate:
    """Return the mean and interval of the existing values; a cell where all seeds produced the same run counts as one value."""
    import polars as pl

    values = distinct(rows)[metric].cast(pl.Float64).fill_nan(None).drop_nulls().to_numpy()
    found = bootstrap_mean(values)
    return found.within(*bounds(metric)) if found.n > 1 else found


def _undefined(rows: pl.DataFrame, metric: str) -> int:
    import polars as pl

    return rows.height - int(rows[metric].cast(pl.Float64).fill_nan(None).count())


def write_cells(folder: Path, sweep: Sweep, cells: Sequence[Cell]) -> None:
    """Write the sweep and the axis values of its cells beside the runs, for later use."""
    place = _place(folder, sweep.name)
    frame = cell_table(sweep, cells)
    with staged(place, marks=OWN) as part:
        (part / "sweep.toml").write_text(to_toml(sweep.to_dict()), encoding="utf-8")
        parquet(frame, part / "cells.parquet")
        (part / "cells.sha256").write_text(_sum(part / "cells.parquet"), encoding="utf-8")


def is_written(folder: Path, sweep: Sweep) -> bool:
    """Return whether exactly this sweep was started in the folder; the time limit per run may differ."""
    try:
        place = _file(folder, sweep.name, "sweep.toml")
        if not os.path.lexists(place):
            return False
        written = regular(place, LARGEST_CELLS).decode()
    except UnicodeDecodeError:
        return False
    return _without_limit(written) == _without_limit(to_toml(sweep.to_dict()))


def _without_limit(text: str) -> str:
    return re.sub(r"^time_limit = .*\n", "", text, count=1, flags=re.MULTILINE)


def cell_table(sweep: Sweep, cells: Sequence[Cell]) -> pl.DataFrame:
    """Return number, scenario hash and axis values of every cell."""
    import polars as pl

    columns: dict[str, Any] = {"cell": list(range(len(cells))), "scenario": [cell.hash for cell in cells]}
    for axis in sweep.axes:
        columns[axis.column] = _series([cell.keys[axis.column] for cell in cells])
    return pl.DataFrame(columns, schema_overrides={"cell": pl.UInt32, "scenario": pl.String})


def read(folder: str | Path, name: str = "") -> Results:
    """Read a sweep's current results; another process may still be writing.

    Parameters
    ----------
    folder
        Folder of the store.
    name
        Name of the sweep; not needed if there is only one.

    Raises
    ------
    InputError
        If there is no such store or sweep.
    """
    folder = Path(folder)
    with Store(folder) as store:
        sweep = sweep_of(store, name)
        return Results(sweep=sweep, runs=_joined(store, sweep), folder=folder)


def sweep_of(store: Store, name: str = "") -> Sweep:
    """Return the sweep itself, found as `read` finds it; its runs are not read."""
    folder = store.folder
    known = [n for n in store.sweeps() if _file(folder, n, "sweep.toml").is_file()]
    if not name and len(known) == 1:
        name = known[0]
    if name not in known:
        found = quote(name) if name else f"{len(known)} sweeps" if known else "no sweep"
        raise InputError(f"{folder}: found {found}; allowed: {one_of(name, known) or 'a folder with a sweep'}")
    return load(_file(folder, name, "sweep.toml"), own_code=True)  # only read, never executed


def _joined(store: Store, sweep: Sweep, *, keys: bool = False) -> pl.DataFrame:
    """Return one row per finished run; with `keys`, the last column is the store's key."""
    import polars as pl

    place = _file(store.folder, sweep.name, "cells.parquet")
    again = f"`ackclock sweep resume {store.folder}` writes it again"
    try:
        noted = _file(store.folder, sweep.name, "cells.sha256")
        data = regular(place, LARGEST_CELLS)
        if regular(noted, 200).decode() != hashlib.sha256(data).hexdigest():
            raise DamagedError(f"{place}: is not as it was written; {again}")
        cells = pl.read_parquet(io.BytesIO(data))
    except (OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise DamagedError(f"{place}: cannot be read; {again}") from None
    wanted = cell_table(sweep, []).columns
    if cells.columns != wanted or cells["scenario"].dtype != pl.String:
        raise DamagedError(f"{place}: does not belong to the sweep beside it; {again}")
    members = pl.DataFrame({"key": store.member_keys(sweep.name)}, schema={"key": pl.String})
    rows = store.read(sweep.recipe.text)
    metrics = list(sweep.recipe.metrics)
    axes = [axis.column for axis in sweep.axes]
    if not rows.height:
        empty = {"seed": pl.Int64, "digest": pl.String, **dict.fromkeys(metrics, pl.Float64)}
        empty |= {"key": pl.String} if keys else {}
        return (
            cells.clear().select("cell", *axes).with_columns(pl.lit(None, dtype=t).alias(c) for c, t in empty.items())
        )
    kept = rows.join(members, on="key", how="semi")
    order = {seed: i for i, seed in enumerate(sweep.seeds)}
    return (
        cells.join(kept, on="scenario", how="inner")
        .with_columns(pl.col("seed").replace_strict(order, default=len(order), return_dtype=pl.Int64).alias("_order"))
        .sort("cell", "_order", "seed")
        .select("cell", *axes, "seed", "digest", *metrics, *(("key",) if keys else ()))
    )


LARGEST_CELLS = 2**30
"""Maximum size of a sweep's cell table, bytes; there are at most 200,000 cells."""


def _sum(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def write_table(folder: Path, results: Results) -> Path:
    """Write the table beside the sweep."""
    place = _place(folder, results.sweep.name)
    with staged(place, marks=OWN) as part:
        parquet(results.runs, part / "table.parquet")
    return place / "table.parquet"


def _place(folder: Path, name: str) -> Path:
    """Return the folder of a sweep, which must be inside the store: a link may lead to another user's files."""
    return _inside(folder, folder / "sweeps" / name)


def _file(folder: Path, name: str, file: str) -> Path:
    return _inside(folder, _place(folder, name) / file)


def _inside(folder: Path, place: Path) -> Path:
    for one in (place, *place.parents[: len(place.relative_to(folder).parts) - 1]):
        if one.is_symlink():
            raise InputError(f"{one}: found a link; allowed: a file or a folder of the store's own, or none")
    return place


def _series(values: Sequence[Any]) -> Sequence[Any]:
    """Return axis values as a column of one type: numbers or booleans unchanged, otherwise text."""
    if all(isinstance(v, bool) for v in values):
        return values
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        return values if all(isinstance(v, int) for v in values) else [float(v) for v in values]
    return [label(v) for v in values]
