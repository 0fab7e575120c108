"""What a figure of a sweep is laid out by: the axes of the grid, along x, as lines or bars, and as panels; and words for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ackclock.errors import InputError, one_of, quote
from ackclock.sweep.axes import base_unit, base_value
from ackclock.sweep.measures import measure
from ackclock.sweep.results import Results, label

if TYPE_CHECKING:
    import polars as pl

MOST_PANELS = 6
MOST_SERIES = 10

GROUP = "group"
"""Column that tells groups of flows apart."""

_SCALES = {
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes")),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """Runs, or parts of runs, and the axes along which they differ.

    Parameters
    ----------
    runs
        A row each: `cell`, the axes, `digest`, metrics.
    axes
        Column -> its values, of those with two or more.
    """

    runs: pl.DataFrame
    axes: Mapping[str, Sequence[Any]]

    def unit(self, column: str) -> str:
        """Of the values of an axis; empty for plain numbers and names."""
        return base_unit(self.axes[column]) or ""

    def is_numeric(self, column: str) -> bool:
        """Whether all values of an axis are numbers of one kind."""
        values = self.axes[column]
        return all(base_value(value) is not None for value in values) and base_unit(values) is not None


def view(results: Results, metric: str) -> View:
    """The runs of a sweep."""
    axes = {axis.column: axis.shown for axis in results.sweep.axes if len(axis.shown) > 1}
    return View(runs=results.holding(metric).runs, axes=axes)


def by_group(results: Results) -> View | None:
    """The groups of each run as rows of their own, with one more axis, `group`; None where runs have one group."""
    import polars as pl

    groups = results.groups
    if not groups.height or groups["group"].n_unique() < 2:
        return None
    # A group that is called after its controller, which an axis changes, goes by its number.
    known = groups.group_by("group").agg(pl.col("name").first(), pl.col("name").n_unique().alias("names")).sort("group")
    names = {
        row["group"]: row["name"] if row["names"] == 1 else f"group {row['group']}"
        for row in known.iter_rows(named=True)
    }
    if len(set(names.values())) < len(names):
        names = {number: f"{number} {name}" for number, name in names.items()}
    name = pl.col("group").replace_strict(names, return_dtype=pl.String).alias(GROUP)
    digests = results.runs.select("cell", "seed", "digest")
    runs = groups.with_columns(name).join(digests, on=["cell", "seed"], how="left", maintain_order="left")
    axes = {axis.column: axis.shown for axis in results.sweep.axes if len(axis.shown) > 1}
    return View(runs=runs, axes={**axes, GROUP: tuple(names.values())})


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """How the axes of the grid are laid out.

    Parameters
    ----------
    x
        Column along the x axis; None if no axis has numbers.
    by
        Column that tells lines apart.
    panel
        Column with a panel for each value.
    pooled
        Columns over which runs are taken together.
    """

    x: str | None
    by: str | None
    panel: str | None
    pooled: tuple[str, ...]

    def among_groups(self) -> Look:
        """The same with groups told apart, and what was told apart before in panels."""
        pooled = tuple(c for c in (self.panel, *self.pooled) if c is not None)
        if self.by is None:
            return replace(self, by=GROUP)
        return replace(self, by=GROUP, panel=self.by, pooled=pooled)


def choose(seen: View, *, x: str | None = None, by: str | None = None) -> Look:
    """Lay the axes out: numbers along x, names as lines, one more as panels; what the user names comes first.

    Raises
    ------
    InputError
        If there is no such column.
    """
    columns = seen.axes
    for option, name in (("--x", x), ("--by", by)):
        if name is not None and name not in columns:
            raise InputError(
                f"{option}: found {quote(name)}; allowed: {one_of(name, columns) or 'no axis has two values'}"
            )
    numeric = [c for c in columns if seen.is_numeric(c)]
    if x is not None and x not in numeric:
        raise InputError(
            f"--x: found {quote(x)}, whose values are no numbers of one kind; allowed: {', '.join(numeric) or 'no axis has such'}"
        )
    if x is None:
        x = max((c for c in numeric if c != by), key=lambda c: len(columns[c]), default=None)
    rest = [c for c in columns if c not in (x, by)]
    names_first = sorted(rest, key=lambda c: (c in numeric, list(columns).index(c)))
    if by is None and names_first:
        few = [c for c in names_first if len(columns[c]) <= MOST_SERIES]
        by = few[0] if few else None
    rest = [c for c in names_first if c != by]
    few = [c for c in rest if len(columns[c]) <= MOST_PANELS]
    panel = few[0] if few else None
    return Look(x=x, by=by, panel=panel, pooled=tuple(c for c in rest if c != panel))


def scaled(unit: str, values: Sequence[float]) -> tuple[float, str]:
    """Factor and name of the unit in which values are shown."""
    known = [abs(v) for v in values if v == v and v not in (float("inf"), float("-inf"))]
    top = max(known, default=0.0)
    for factor, name in _SCALES.get(unit, ()):
        if top >= factor:
            return factor, name
    return 1.0, unit


def metric_unit(metric: str) -> str:
    """Unit of a metric, from its name."""
    found = measure(metric)
    if found is not None:
        metric = found.column
    stem = metric.rpartition(".")[0] if metric.count(".") == 2 and not metric.endswith(".count") else metric
    for suffix, unit in (("_bps", "bit/s"), ("_s", "s"), ("_packets", "packets")):
        if stem.endswith(suffix):
            return unit
    return ""


def words(column: str) -> str:
    """A column as the label of an axis: "network.bottleneck.rate" -> "bottleneck rate"."""
    parts = [p for p in column.split(".") if not p.isdecimal() and p not in ("network", "flows")]
    return " ".join(parts[-2:]).replace("_", " ")


def metric_words(metric: str) -> str:
    """A metric as the label of an axis, without the unit."""
    found = measure(metric)
    if found is not None:
        whose = {"run": "all flows", "flow": f"flow {found.who}", "group": found.who}[found.of]
        return f"{metric_words(found.column)} of {whose}"
    for suffix in ("_bps", "_s"):
        metric = metric.removesuffix(suffix)
    text = metric.replace("_", " ")
    for short, written in (
        ("rtt", "RTT"),
        ("p50 ", "median "),
        ("p95 ", "95th percentile of "),
        ("p99 ", "99th percentile of "),
    ):
        text = text.replace(short, written)
    return text


def titled(text: str, unit: str) -> str:
    """Label of an axis with its unit."""
    return f"{text}, {unit}" if unit else text


def told(value: float, unit: str = "") -> str:
    """A number in a heading: three digits, with its unit."""
    return f"{value:.3g} {unit}".strip()


def ranked(means: Mapping[str, float], unit: str) -> str:
    """Which is largest, which least: "bbr 9.1, cubic 8.9, reno 8.2 Mbit/s"."""
    order = sorted(means, key=lambda name: -means[name])
    if len(order) <= 4:
        return titled_list([f"{name} {means[name]:.3g}" for name in order], unit)
    return f"most {order[0]} ({told(means[order[0]], unit)}), least {order[-1]} ({told(means[order[-1]], unit)})"


def titled_list(parts: Sequence[str], unit: str) -> str:
    """Parts with one unit behind the last."""
    return f"{', '.join(parts)} {unit}".strip()


def groups(table: pl.DataFrame, column: str | None) -> list[tuple[str, pl.DataFrame]]:
    """The rows of each value of a column, with the value as text."""
    if column is None:
        return [("", table)]
    return [(label(key[0]), part) for key, part in table.group_by([column], maintain_order=True)]
