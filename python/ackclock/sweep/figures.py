"""Figures of a sweep, chosen from its axes: lines with bands, heat map, distributions, throughput against delay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ackclock.errors import InputError, one_of, quote
from ackclock.plot import Figure, new
from ackclock.plot.grid import Line, draw_distributions, draw_heat_map, draw_lines, draw_pareto, hide_rest, wide
from ackclock.sweep.axes import base_unit, base_value
from ackclock.sweep.results import Results, estimate, label

if TYPE_CHECKING:
    import polars as pl

KINDS = ("lines", "heat-map", "cdf", "pareto")

MOST_PANELS = 6
MOST_SERIES = 10

_SCALES = {
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes")),
}


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


def choose(results: Results, *, x: str | None = None, by: str | None = None) -> Look:
    """Lay the axes out: numbers along x, names as lines, one more as panels; what the user names comes first.

    Raises
    ------
    InputError
        If there is no such column.
    """
    columns = {axis.column: axis.values for axis in results.sweep.axes if len(axis.values) > 1}
    for option, name in (("--x", x), ("--by", by)):
        if name is not None and name not in columns:
            raise InputError(
                f"{option}: found {quote(name)}; allowed: {one_of(name, columns) or 'no axis has two values'}"
            )
    numeric = {
        c: v
        for c, v in columns.items()
        if all(base_value(value) is not None for value in v) and base_unit(v) is not None
    }
    if x is not None and x not in numeric:
        raise InputError(
            f"--x: found {quote(x)}, whose values are no numbers of one kind; allowed: {', '.join(numeric) or 'no axis has such'}"
        )
    if x is None:
        x = max((c for c in numeric if c != by), key=lambda c: len(numeric[c]), default=None)
    rest = [c for c in columns if c not in (x, by)]
    names_first = sorted(rest, key=lambda c: (c in numeric, list(columns).index(c)))
    if by is None and names_first:
        few = [c for c in names_first if len(columns[c]) <= MOST_SERIES]
        by = few[0] if few else None
    rest = [c for c in names_first if c != by]
    few = [c for c in rest if len(columns[c]) <= MOST_PANELS]
    panel = few[0] if few else None
    return Look(x=x, by=by, panel=panel, pooled=tuple(c for c in rest if c != panel))


def figures(
    results: Results,
    *,
    metric: str = "goodput_bps",
    kinds: Sequence[str] = KINDS,
    x: str | None = None,
    by: str | None = None,
) -> list[Figure]:
    """Every figure of these kinds that the axes allow.

    Parameters
    ----------
    results
        Of a sweep; at least one run.
    metric
        What is shown (the Pareto figure shows `goodput_bps` against `mean_rtt_s`).
    kinds
        Some of "lines", "heat-map", "cdf", "pareto".
    x, by
        Columns, instead of those chosen.

    Raises
    ------
    InputError
        If a name is unknown, or there is nothing to show.
    """
    results.check(metric)
    if not results.runs.height or results.runs[metric].null_count() == results.runs.height:
        raise InputError(f"{results.sweep.name}: found no finished run with a value of {metric}; allowed: one or more")
    look = choose(results, x=x, by=by)
    made: list[Figure | None] = []
    for kind in kinds:
        match kind:
            case "lines":
                made.append(_lines(results, metric, look))
            case "heat-map":
                made.append(_heat_map(results, metric, look))
            case "cdf":
                made.append(_cdf(results, metric, look))
            case "pareto":
                made.append(_pareto(results, look))
            case _:
                raise InputError(f"--kind: found {quote(kind)}; allowed: {one_of(kind, KINDS)}")
    found = [figure for figure in made if figure is not None]
    if not found:
        raise InputError(
            f"{results.sweep.name}: found axes that do not make {' or '.join(kinds)}; allowed: lines need an axis of numbers, "
            "a heat map two axes, Pareto flows that measured their RTT"
        )
    return found


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
    for suffix in ("_bps", "_s"):
        metric = metric.removesuffix(suffix)
    return metric.replace("_", " ")


def titled(text: str, unit: str) -> str:
    """Label of an axis with its unit."""
    return f"{text}, {unit}" if unit else text


def _lines(results: Results, metric: str, look: Look) -> Figure | None:
    if look.x is None:
        return None
    table = _summary(results, metric, look)
    factor, unit = scaled(metric_unit(metric), table["mean"].drop_nulls().to_list())
    x_factor, x_unit = scaled(_axis_unit(results, look.x), table["x"].to_list())
    data = table.with_columns((table[c] / factor).alias(c) for c in ("mean", "low", "high")).with_columns(
        (table["x"] / x_factor).alias("x")
    )
    x_title = titled(words(look.x), x_unit)
    y_title = titled(metric_words(metric), unit)

    def draw_panel(ax: Any, rows: pl.DataFrame) -> None:
        lines = {}
        for name, part in _groups(rows, look.by):
            along = part.sort("x")
            lines[name] = Line(
                x=along["x"].to_list(), y=_floats(along["mean"]), low=_floats(along["low"]), high=_floats(along["high"])
            )
        draw_lines(ax, lines, log_x=wide(data["x"].to_list()))

    return Figure(
        name=f"lines-{_slug(metric)}",
        title=f"{_capital(metric_words(metric))} against {words(look.x)}",
        caption=f"Means over {_runs(look)}, with 95 % intervals (bootstrap; Student's t below 10 runs).",
        draw=partial(_panels, data, look, x_title, y_title, draw_panel),
        data={"lines": data.rename({"x": titled(look.x, x_unit)})},
    )


def _heat_map(results: Results, metric: str, look: Look) -> Figure | None:
    columns = [axis.column for axis in results.sweep.axes if len(axis.values) > 1]
    if len(columns) < 2:
        return None
    x = look.x or columns[0]
    others = [c for c in columns if c != x]
    numbers = [
        c for c in others if _axis_unit(results, c) is not None and base_value(_values(results, c)[0]) is not None
    ]
    y = max(numbers or others, key=lambda c: len(_values(results, c)))
    rest = [c for c in others if c != y]
    few = [c for c in rest if len(_values(results, c)) <= MOST_PANELS]
    panel = look.by if look.by in few else few[0] if few else None
    pooled = tuple(c for c in rest if c != panel)
    chosen = Look(x=x, by=y, panel=panel, pooled=pooled)
    table = _means(results, metric, [c for c in (panel, y, x) if c])
    factor, unit = scaled(metric_unit(metric), table["mean"].drop_nulls().to_list())
    data = table.with_columns((table["mean"] / factor).alias("mean"))
    known = data["mean"].drop_nulls()
    limits = (float(known.min()), float(known.max()))  # type: ignore[arg-type]
    xs, ys = ([label(v) for v in _values(results, c)] for c in (x, y))

    def draw() -> Any:
        import numpy as np

        groups = list(_groups(data, panel))
        rows, across = _shape(len(groups))
        figure, axes = new(
            3.6 * across + 0.9,
            (0.32 * len(ys) + 1.5) * rows,
            nrows=rows,
            ncols=across,
            squeeze=False,
            sharex=True,
            sharey=True,
        )
        image = None
        for ax, (name, part) in zip(axes.flat, groups, strict=False):
            values = np.full((len(ys), len(xs)), np.nan)
            for row in part.iter_rows(named=True):
                if row["mean"] is not None:
                    values[ys.index(label(row[y])), xs.index(label(row[x]))] = row["mean"]
            image = draw_heat_map(ax, values, xs, ys, limits)
            ax.set_title(name)
        hide_rest(axes, len(groups))
        figure.supxlabel(words(x), fontsize=9)
        figure.supylabel(words(y), fontsize=9)
        figure.colorbar(image, ax=axes, label=titled(metric_words(metric), unit), shrink=0.9)
        return figure

    return Figure(
        name=f"heat-map-{_slug(metric)}",
        title=f"{_capital(metric_words(metric))} by {words(x)} and {words(y)}",
        caption=f"Means over {_runs(chosen)}{'; one panel per ' + words(panel) if panel else ''}. One scale of colours for all panels.",
        draw=draw,
        data={"heat-map": data},
    )


def _cdf(results: Results, metric: str, look: Look) -> Figure | None:
    import polars as pl

    keys = [c for c in (look.panel, look.by) if c]
    data = results.runs.select(*keys, pl.col(metric).cast(pl.Float64)).drop_nulls(metric)
    factor, unit = scaled(metric_unit(metric), data[metric].to_list())
    data = data.with_columns((pl.col(metric) / factor).alias(metric))
    taken = [c for c in (look.x, *look.pooled) if c]

    def draw_panel(ax: Any, rows: pl.DataFrame) -> None:
        samples = {name: part[metric].to_list() for name, part in _groups(rows, look.by)}
        draw_distributions(ax, samples, log_x=wide(data[metric].to_list()))

    over = f" at all values of {', '.join(words(c) for c in taken)}" if taken else ""
    return Figure(
        name=f"cdf-{_slug(metric)}",
        title=f"Distribution of {metric_words(metric)}",
        caption=f"Share of the runs{over} at or below a value; each run counts once.",
        draw=partial(_panels, data, look, titled(metric_words(metric), unit), "share of runs", draw_panel),
        data={"cdf": data},
    )


def _pareto(results: Results, look: Look) -> Figure | None:
    import polars as pl

    axes = [axis.column for axis in results.sweep.axes]
    data = (
        results.runs.group_by("cell", *axes, maintain_order=True)
        .agg(pl.col("mean_rtt_s").mean(), pl.col("goodput_bps").mean())
        .drop_nulls()
    )
    if data.height < 2:
        return None
    delay, delay_unit = scaled("s", data["mean_rtt_s"].to_list())
    speed, speed_unit = scaled("bit/s", data["goodput_bps"].to_list())
    data = data.with_columns(pl.col("mean_rtt_s") / delay, pl.col("goodput_bps") / speed)

    def draw_panel(ax: Any, rows: pl.DataFrame) -> None:
        points = {n: (p["mean_rtt_s"].to_list(), p["goodput_bps"].to_list()) for n, p in _groups(rows, look.by)}
        draw_pareto(ax, points, log_x=wide(data["mean_rtt_s"].to_list()))

    return Figure(
        name="pareto",
        title="Throughput against delay",
        caption="One point per cell: mean RTT and goodput, means over its seeds. Up and to the left is better; the grey line joins the "
        "cells that no other beats in both.",
        draw=partial(_panels, data, look, titled("mean RTT", delay_unit), titled("goodput", speed_unit), draw_panel),
        data={"pareto": data},
    )


def _panels(
    data: pl.DataFrame, look: Look, x_title: str, y_title: str, draw_panel: Callable[[Any, pl.DataFrame], None]
) -> Any:
    groups = list(_groups(data, look.panel))
    rows, across = _shape(len(groups))
    width, height = (7.2, 3.6) if len(groups) == 1 else (3.1 * across + 1.0, 2.5 * rows + 0.6)
    figure, axes = new(max(width, 6.0), height, nrows=rows, ncols=across, squeeze=False, sharex=True, sharey=True)
    for ax, (name, part) in zip(axes.flat, groups, strict=False):
        draw_panel(ax, part)
        if look.panel:
            ax.set_title(f"{words(look.panel)}: {name}")
    hide_rest(axes, len(groups))
    figure.supxlabel(x_title, fontsize=9)
    figure.supylabel(y_title, fontsize=9)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    if len(labels) > 1:
        title = words(look.by) if look.by else None
        figure.legend(handles, labels, loc="outside right upper", title=title, alignment="left")
    return figure


def _summary(results: Results, metric: str, look: Look) -> pl.DataFrame:
    """Mean and interval per panel, line and point."""
    import polars as pl

    assert look.x is not None
    keys = [c for c in (look.panel, look.by, look.x) if c]
    rows = []
    for group, part in results.runs.group_by(keys, maintain_order=True):
        e = estimate(part[metric])
        if e.n:
            named = dict(zip(keys, group, strict=True))
            x = base_value(named[look.x])
            rows.append({**named, "x": x, "n": e.n, "mean": e.value, "low": e.low, "high": e.high})
    table = pl.DataFrame(rows, infer_schema_length=None)
    return table.drop(look.x)


def _means(results: Results, metric: str, keys: list[str]) -> pl.DataFrame:
    import polars as pl

    return results.runs.group_by(keys, maintain_order=True).agg(pl.col(metric).cast(pl.Float64).mean().alias("mean"))


def _groups(table: pl.DataFrame, column: str | None) -> list[tuple[str, pl.DataFrame]]:
    if column is None:
        return [("", table)]
    return [(label(key[0]), part) for key, part in table.group_by([column], maintain_order=True)]


def _shape(panels: int) -> tuple[int, int]:
    across = panels if panels <= 3 else 2 if panels == 4 else 3
    return -(-panels // across), across


def _runs(look: Look) -> str:
    over = ["seeds", *(words(c) for c in look.pooled)]
    return " and ".join(over)


def _values(results: Results, column: str) -> tuple[Any, ...]:
    return next(axis.values for axis in results.sweep.axes if axis.column == column)


def _axis_unit(results: Results, column: str) -> str:
    return base_unit(_values(results, column)) or ""


def _floats(column: pl.Series) -> list[float]:
    return [float("nan") if v is None else float(v) for v in column.to_list()]


def _slug(metric: str) -> str:
    return metric.replace("_", "-").replace(".", "-")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
