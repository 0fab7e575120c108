"""Layout of a sweep figure: which grid axes run along x, which are lines or bars, which are panels.

Length: a view and its layout refer to each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

from ackclock import units
from ackclock.errors import InputError, one_of, quote
from ackclock.sweep.axes import base_unit, base_value, label
from ackclock.sweep.measures import bounds, measure
from ackclock.sweep.results import Results
from ackclock.sweep.wording import metric_column, metric_unit, metric_words, span, words

if TYPE_CHECKING:
    import polars as pl

    from ackclock.scenario import Scenario
    from ackclock.sweep.sweep import Sweep

MOST_PANELS = 12
"""Maximum number of panels chosen by default."""

MOST_ASKED = 24
"""Maximum number of panels in a figure."""

MOST_ACROSS = 6
"""Maximum number of panel columns in figures without a given width."""

MOST_SERIES = 10

GROUP = "axis.group"
"""Column of a view that identifies flow groups."""

_EDGE = 0.1
"""Tolerated excess of a share over 1 at a window edge: data that arrived earlier is acknowledged when the gap ahead
of it is filled.
"""

NORMAL = {"bit/s": "share of the bottleneck", "s": "multiple of the base RTT"}
"""A metric's unit -> unit after `normalised`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Dimension:
    """One axis of a view.

    Parameters
    ----------
    name
        Name given by the user.
    values
        Two or more, in order; the columns of a view have their labels.
    bundle
        Identical for axes that step together, of which one is enough.
    """

    name: str
    values: tuple[Any, ...]
    bundle: str

    @property
    def labels(self) -> list[str]:
        """Labels of the values."""
        return [label(value) for value in self.values]

    @property
    def unit(self) -> str:
        """Unit of the values; empty for plain numbers and names."""
        return "%" if self._percent else base_unit(self.values) or ""

    @property
    def numbers(self) -> dict[str, float]:
        """Label -> number, if all values are numbers of one kind; else empty."""
        found = [base_value(value) for value in self.values]
        if any(value is None for value in found) or base_unit(self.values) is None:
            return {}
        factor = 100.0 if self._percent else 1.0
        return {text: factor * value for text, value in zip(self.labels, found, strict=True) if value is not None}

    @property
    def _percent(self) -> bool:
        return all(isinstance(value, str) and value.strip().endswith("%") for value in self.values)


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """Runs, or parts of runs, and the axes along which they differ.

    Parameters
    ----------
    results
        Results of the sweep.
    runs
        One row per run: `cell`, `seed`, `digest`, a column of labels for each axis, metrics.
    axes
        Column -> axis, for axes with two or more values. The columns have unique names, so that a user's axis may have
        any name.
    fixed
        Name -> value of axes for which the user selected one value.
    normal
        Whether metrics have been divided by the path's capacity or RTT.
    against
        Name and value of the subtracted reference.
    """

    results: Results = field(repr=False)
    runs: pl.DataFrame
    axes: Mapping[str, Dimension]
    fixed: Mapping[str, str] = field(default_factory=dict)
    normal: bool = False
    against: tuple[str, str] | None = None

    def find(self, option: str, name: str) -> str:
        """Return an axis's column, given its name or scenario key.

        Raises
        ------
        InputError
            If there is no such axis.
        """
        for column, axis in self.axes.items():
            if axis.name == name:
                return column
        keys = {a.key: f"axis.{i}" for i, a in enumerate(self.results.sweep.axes)}
        if keys.get(name) in self.axes:
            return keys[name]
        known = [axis.name for axis in self.axes.values()]
        raise InputError(f"{option}: found {quote(name)}; allowed: {one_of(name, known) or 'no axis has two values'}")

    def words(self, column: str) -> str:
        """Return an axis's name for figures."""
        return words(self.axes[column].name)

    def unit(self, metric: str) -> str:
        """Return the unit in which a metric is shown."""
        found = metric_unit(metric)
        return "" if self.normal and found in NORMAL else found

    def told(self, metric: str) -> str:
        """Return a metric in words, without the unit."""
        text = metric_words(metric)
        if self.normal and (kind := NORMAL.get(metric_unit(metric))):
            text += f" as {kind}"
        if self.against:
            text += f" minus that of {self.against[0]} {self.against[1]}"
        return text

    def over(self, metric: str) -> str:
        """Return the time covered by a metric, such as ", after the warm-up,"; empty if it is the whole run."""
        found = [span(metric)] if warmed_up(self.results.sweep) else []
        if _joint(metric) and _come_and_go(self.results.sweep):
            found.append("from the first start to the last end")
        return "".join(f", {words}" for words in found if words) + "," * any(found)

    def comparable(self, metric: str) -> bool:
        """Return whether values from different paths may be averaged: true for fractions of a quantity present on
        every path.
        """
        return (self.normal and metric_unit(metric) in NORMAL) or metric_column(metric).endswith(("share", "jain"))

    def bounds(self, metric: str) -> tuple[float, float]:
        """Return the bounds on a metric's values, beyond which an interval is meaningless."""
        least, most = (0.0, 1.0) if self.normal and metric_unit(metric) == "bit/s" else bounds(metric)
        return (-most, most) if self.against else (least, most)

    def readable(self, table: pl.DataFrame, named: Mapping[str, str] | None = None) -> pl.DataFrame:
        """Return a table with the user's axis names."""
        table = table.rename(dict(named or {}))
        found: dict[str, str] = {}
        for column, axis in self.axes.items():
            if column in table.columns:
                found[column] = axis.name if axis.name not in {*table.columns, *found.values()} else f"axis {axis.name}"
        return table.rename(found)

    def where(self, wanted: Sequence[str]) -> View:
        """Return the runs with these axis values, each written "AXIS=VALUE"; several values of one axis select
        runs with any of them.

        Raises
        ------
        InputError
            If there is no such axis or value.
        """
        import polars as pl

        kept: dict[str, list[str]] = {}
        for text in wanted:
            column, value = self._value("--where", text)
            kept.setdefault(column, []).append(value)
        runs, axes, fixed = self.runs, dict(self.axes), dict(self.fixed)
        for column, values in kept.items():
            runs = runs.filter(pl.col(column).is_in(values))
            axis = axes.pop(column)
            left = tuple(v for v in axis.values if label(v) in values)
            if len(left) > 1:
                axes[column] = replace(axis, values=left)
            else:
                fixed[axis.name] = values[0]
            for other, fellow in list(axes.items()):
                if other != column and fellow.bundle == axis.bundle:
                    there = set(runs[other])
                    axes[other] = replace(fellow, values=tuple(v for v in fellow.values if label(v) in there))
                    if len(there) < 2:
                        del axes[other]
        order = [column for column in self.axes if column in axes]
        return replace(self, runs=runs, axes={c: axes[c] for c in order}, fixed=fixed)

    def minus(self, base: str, metrics: Sequence[str]) -> View:
        """Return metrics minus those of the run with the same seed, one value of an axis ("AXIS=VALUE"), and otherwise
        identical axes.

        Raises
        ------
        InputError
            If there is no such axis or value.
        """
        import polars as pl

        column, value = self._value("--against", base)
        axis = self.axes[column]
        same = ["seed", *(c for c, other in self.axes.items() if other.bundle != axis.bundle)]
        columns = [m for m in dict.fromkeys(metrics) if m in self.runs.columns]
        bases = self.runs.filter(pl.col(column) == value).select(
            *same, pl.col("digest").alias("digest.base"), *(pl.col(m).alias(f"{m}.base") for m in columns)
        )
        runs = (
            self.runs.filter(pl.col(column) != value)
            .join(bases, on=same, how="inner", maintain_order="left")
            .with_columns(
                *((pl.col(m).cast(pl.Float64) - pl.col(f"{m}.base").cast(pl.Float64)).alias(m) for m in columns),
                pl.concat_str("digest", "digest.base").alias("digest"),
            )
        )
        axes = dict(self.axes)
        left = tuple(v for v in axis.values if label(v) != value)
        axes[column] = replace(axis, values=left)
        fixed = dict(self.fixed)
        if len(left) < 2:
            del axes[column]
            fixed[axis.name] = label(left[0])
        return replace(self, runs=runs, axes=axes, fixed=fixed, against=(words(axis.name), value))

    def normalised(self, metrics: Sequence[str]) -> View:
        """Return rates as a fraction of the bottleneck's capacity, times as multiples of the path's base RTT, cell by
        cell.

        Raises
        ------
        InputError
            If a path has no rate or no delay, or a share would exceed 1: the bottleneck's rate changes, or not all flows cross it.
        """
        import polars as pl

        cells = self.results.sweep.cells
        runs = self.runs
        for metric in dict.fromkeys(metrics):
            unit = metric_unit(metric)
            if unit not in NORMAL or metric not in runs.columns:
                continue
            parts = [_whole(unit, cell.scenario, metric) for cell in cells]
            if not all(0 < part < float("inf") for part in parts):
                what = "rate" if unit == "bit/s" else "delay"
                raise InputError(f"--normalise: found a path without a {what}; allowed: paths with one")
            table = pl.DataFrame({"cell": pl.Series(range(len(cells)), dtype=pl.UInt32), "whole": parts})
            runs = runs.join(table, on="cell", how="left", maintain_order="left")
            runs = runs.with_columns((pl.col(metric) / pl.col("whole")).alias(metric)).drop("whole")
            if unit == "bit/s":
                most = runs[metric].cast(pl.Float64).max()
                if isinstance(most, float) and most > 1 + _EDGE:
                    raise InputError(
                        f"--normalise: found {most:.3g} times what the bottleneck of {metric} carries (its rate changes, or not all "
                        "flows cross it); allowed: flows of one bottleneck with one rate"
                    )
                runs = runs.with_columns(pl.col(metric).clip(upper_bound=1.0))
        return replace(self, runs=runs, normal=True)

    def _value(self, option: str, text: str) -> tuple[str, str]:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"{option}: found {quote(text)}; allowed: AXIS=VALUE")
        column = self.find(option, name.strip())
        known = self.axes[column].labels
        if value.strip() not in known:
            raise InputError(f"{option} {name.strip()}: found {quote(value.strip())}; allowed: {one_of(value, known)}")
        return column, value.strip()


def warmed_up(sweep: Sweep) -> bool:
    """Whether any of the runs has a warm-up."""
    key = "record.warm_up"
    warm_up = units.whole(sweep.scenario.record.warm_up, units.DURATION) > 0
    return warm_up or any(axis.key == key for axis in sweep.axes)


def _come_and_go(sweep: Sweep) -> bool:
    """Return whether flows may run at different times."""
    groups = sweep.scenario.to_dict()["flows"]
    keys = {key for group in groups for key in group} | {axis.key.rpartition(".")[2] for axis in sweep.axes}
    ends = any(group.get("workload", {}).get("kind", "bulk") != "bulk" for group in groups)
    return (len(groups) > 1 or "count" in keys) and (ends or not keys.isdisjoint(("start", "stop", "stagger")))


def _joint(metric: str) -> bool:
    """Return whether the metric is the goodput of several flows together."""
    return metric == "goodput_bps" or (metric.startswith(("run.", "group.")) and metric.endswith(".goodput_bps"))


def view(results: Results, metric: str) -> View:
    """Return a sweep's runs as a view."""
    seen = results.holding(metric).runs
    return _viewed(results, seen.select("cell", "seed", "digest", *_metrics(seen, results)))


def by_group(results: Results) -> View | None:
    """Return each run's groups as separate rows, with the group as an additional axis; None if runs have one
    group, or no group's data was stored.
    """
    import polars as pl

    if results.folder is None:
        return None
    groups = results.groups
    if not groups.height or groups["group"].n_unique() < 2:
        return None
    # A group that is named after its controller gets its number instead if an axis changes the controller.
    known = groups.group_by("group").agg(pl.col("name").first(), pl.col("name").n_unique().alias("names")).sort("group")
    names = {
        row["group"]: row["name"] if row["names"] == 1 else f"group {row['group']}"
        for row in known.iter_rows(named=True)
    }
    if len(set(names.values())) < len(names):
        names = {number: f"{number} {name}" for number, name in names.items()}
    name = pl.col("group").replace_strict(names, return_dtype=pl.String).alias(GROUP)
    digests = results.runs.select("cell", "seed", "digest")
    rows = groups.drop(results.columns).with_columns(name)
    runs = rows.join(digests, on=["cell", "seed"], how="left", maintain_order="left")
    seen = _viewed(results, runs)
    axis = Dimension(name="group", values=tuple(names.values()), bundle=GROUP)
    return replace(seen, axes={**seen.axes, GROUP: axis})


def _metrics(runs: pl.DataFrame, results: Results) -> list[str]:
    return [c for c in runs.columns if c not in {"cell", "seed", "digest", *results.columns}]


def _viewed(results: Results, runs: pl.DataFrame) -> View:
    import polars as pl

    sweep = results.sweep
    bundles = {key: f"zip.{g}" for g, group in enumerate(sweep.zip) for key in group}
    axes: dict[str, Dimension] = {}
    columns: dict[str, Any] = {"cell": pl.Series(range(len(sweep.points)), dtype=pl.UInt32)}
    for i, axis in enumerate(sweep.axes):
        if len(axis.shown) > 1 and not axis.repeats:  # a repeating axis is determined by another one in its group
            column = f"axis.{i}"
            axes[column] = Dimension(
                name=axis.name or axis.key, values=axis.shown, bundle=bundles.get(axis.key, column)
            )
            shown = {id(value): label(text) for value, text in zip(axis.values, axis.shown, strict=True)}
            columns[column] = pl.Series([shown[id(point[axis.key])] for point in sweep.points], dtype=pl.String)
    runs = runs.join(pl.DataFrame(columns), on="cell", how="left", maintain_order="left")
    return View(results=results, runs=runs, axes=axes)


def _whole(unit: str, scenario: Scenario, metric: str) -> float:
    """Return a metric's divisor: goodput of a full bottleneck, or base RTT, on the path taken by its flows; for all
    flows together, on the first path.
    """
    from ackclock._results.metrics import capacity_bps

    found = measure(metric)
    named = [
        g
        for g, group in enumerate(scenario.flows)
        if found and found.of == "group" and found.who in (group.label, str(g))
    ]
    group = named[0] if named else 0
    if unit == "s":
        return scenario.network.base_rtt_ns(scenario.flows[group].path) / 1e9
    return capacity_bps(scenario, group=group)


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """Arrangement of the grid axes in a figure.

    Parameters
    ----------
    x
        Column along the x axis; None if no axis has numbers.
    by
        Column that distinguishes lines.
    panels
        Columns with a panel for each value, or each combination of values.
    fixed
        Column -> selected value of an axis that does not fit.
    averaged
        Columns over which means are taken, on the user's request.
    across
        Last column of `panels`, if its values are laid out as columns of panels; else None.
    """

    x: str | None
    by: str | None
    panels: tuple[str, ...] = ()
    fixed: Mapping[str, str] = field(default_factory=dict)
    averaged: tuple[str, ...] = ()
    across: str | None = None

    @property
    def drawn(self) -> tuple[str, ...]:
        """Columns with every value drawn."""
        return tuple(c for c in (*self.panels, self.by, self.x) if c)


def choose(
    seen: View,
    *,
    x: str | None = None,
    by: str | None = None,
    panel: Sequence[str] = (),
    row: str | None = None,
    column: str | None = None,
    average: Sequence[str] = (),
    numbers_along: bool = True,
) -> Look:
    """Arrange the axes: numbers along x, names as lines, the others as panels; the user's choices have priority.

    Parameters
    ----------
    seen
        View with the axes.
    x, by, panel, average
        Names of axes.
    row, column
        Names of axes whose values are the rows, and the columns, of panels.
    numbers_along
        Whether an axis of numbers is along x where `x` is None.

    Raises
    ------
    InputError
        If there is no such axis, an axis is placed twice, or there are too many panels.
    """
    columns = seen.axes
    places: dict[str, str] = {}

    def placed(option: str, name: str | None) -> str | None:
        if name is None:
            return None
        column = name if name in columns else seen.find(option, name)
        if column in places:
            raise InputError(
                f"{option}: found {quote(columns[column].name)}; allowed: another axis than that of {places[column]}"
            )
        places[column] = option
        return column

    along, lines = placed("--x", x), placed("--by", by)
    down, across = placed("--row", row), placed("--column", column)
    named = [c for name in panel if (c := placed("--panel", name))]
    panels = [c for c in (down, *named, across) if c]
    asked_for = len(panels)
    averaged = tuple(c for name in average if (c := placed("--average", name)))
    numeric = [c for c in columns if columns[c].numbers]
    if along is not None and along not in numeric:
        known = ", ".join(columns[c].name for c in numeric)
        raise InputError(
            f"--x: found {quote(columns[along].name)}, whose values are no numbers of one kind; allowed: {known or 'no axis has such'}"
        )

    def left() -> list[str]:
        """Return the axes not placed yet; of axes that step together, one is enough."""
        told = {columns[c].bundle for c in (along, lines, *panels, *averaged) if c}
        once = {axis.bundle: c for c, axis in reversed(list(columns.items()))}
        return [c for c in columns if columns[c].bundle not in told and once[columns[c].bundle] == c]

    if along is None and numbers_along:
        along = max((c for c in left() if c in numeric), key=lambda c: len(columns[c].values), default=None)
    if lines is None:
        names_first = sorted(left(), key=lambda c: c in numeric)
        lines = next((c for c in names_first if len(columns[c].values) <= MOST_SERIES), None)
    if (asked := prod(len(columns[c].values) for c in panels)) > MOST_ASKED:
        raise InputError(
            f"--panel: found axes that make {asked} panels; allowed: at most {MOST_ASKED}; --where leaves some out"
        )
    fixed: dict[str, str] = {}
    for one in sorted(left(), key=lambda c: (c in numeric, len(columns[c].values))):
        if prod(len(columns[c].values) for c in (*panels, one)) <= MOST_PANELS:
            panels.append(one)
        else:
            fixed[one] = columns[one].labels[0]
    order = list(columns)
    panels[asked_for:] = sorted(panels[asked_for:], key=order.index)
    if across:
        panels = [*(c for c in panels if c != across), across]
    elif down and len(panels) > 1:
        panels = [down, *(c for c in panels if c != down)]
    few = len(panels) > 1 and len(columns[panels[-1]].values) <= MOST_ACROSS
    return Look(
        x=along,
        by=lines,
        panels=tuple(panels),
        fixed=fixed,
        averaged=averaged,
        across=panels[-1] if across or few else None,
    )


def shown(seen: View, look: Look) -> View:
    """Return a layout's runs, which have the selected values."""
    import polars as pl

    runs = seen.runs
    for column, value in look.fixed.items():
        runs = runs.filter(pl.col(column) == value)
    return replace(seen, runs=runs)


def groups(table: pl.DataFrame, *columns: str | None) -> list[tuple[tuple[str, ...], pl.DataFrame]]:
    """Return each combination of values of some columns, with its rows."""
    named = [c for c in columns if c is not None]
    if not named:
        return [((), table)]
    return [(tuple(map(str, key)), part) for key, part in table.group_by(named, maintain_order=True)]


def at(seen: View, values: Mapping[str, str]) -> str:
    """Return axis values in words: "rate 10 Mbit/s, buffer 2 BDP"."""
    return ", ".join(f"{seen.words(c)} {value}" for c, value in values.items())


def fixed_words(seen: View, look: Look) -> str:
    """Return the values of the axes not drawn: "at loss 0 %"; empty if there are none."""
    told = [*(f"{words(name)} {value}" for name, value in seen.fixed.items()), at(seen, look.fixed)]
    return ", ".join(text for text in told if text)
