"""Figures of a sweep, chosen from its axes: lines with bands, bars, groups of flows, heat map, distributions, throughput against delay.

Each heading states the result in numbers.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ackclock.errors import InputError, one_of, quote
from ackclock.plot import Figure, new
from ackclock.plot.grid import (
    Line,
    draw_bars,
    draw_distributions,
    draw_heat_map,
    draw_lines,
    draw_pareto,
    front,
    hide_rest,
    wide,
)
from ackclock.plot.style import GREY
from ackclock.sweep.axes import base_value
from ackclock.sweep.look import (
    MOST_PANELS,
    Look,
    View,
    by_group,
    choose,
    groups,
    metric_unit,
    metric_words,
    ranked,
    scaled,
    titled,
    told,
    view,
    words,
)
from ackclock.sweep.measures import measure
from ackclock.sweep.results import Results, estimate, label

if TYPE_CHECKING:
    import polars as pl

KINDS = ("lines", "bars", "groups", "heat-map", "cdf", "pareto")

SCALES = ("auto", "shared", "free")
"""Whether panels have one y axis, or each its own; auto: its own where one would be flat beside another."""

FLAT = 4.0
"""Ratio of the greatest values of two panels from which one is flat beside the other."""


MOST_NAMED = 12
"""Points of a panel that bear the values of the axes that neither colour nor panel tells."""


def figures(
    results: Results,
    *,
    metric: str = "goodput_bps",
    kinds: Sequence[str] = KINDS,
    x: str | None = None,
    by: str | None = None,
    scale: str = "auto",
) -> list[Figure]:
    """Every figure of these kinds that the axes allow.

    Parameters
    ----------
    results
        Of a sweep; at least one run.
    metric
        What is shown, as for `Results.holding` (the Pareto figure shows goodput against the 95th percentile of the delay).
    kinds
        Some of "lines", "bars" (in place of lines where no axis has numbers), "groups" (of flows), "heat-map", "cdf", "pareto".
    x, by
        Columns, instead of those chosen.
    scale
        "shared": one y axis for all panels; "free": each its own; "auto": its own where one would be flat beside another.

    Raises
    ------
    InputError
        If a name is unknown, or there is nothing to show.
    """
    if scale not in SCALES:
        raise InputError(f"--scale: found {quote(scale)}; allowed: {', '.join(SCALES)}")
    for kind in kinds:
        if kind not in KINDS:
            raise InputError(f"--kind: found {quote(kind)}; allowed: {one_of(kind, KINDS)}")
    seen = view(results, metric)
    if not seen.runs.height or seen.runs[metric].null_count() == seen.runs.height:
        raise InputError(f"{results.sweep.name}: found no finished run with a value of {metric}; allowed: one or more")
    look = choose(seen, x=x, by=by)
    apart = by_group(results) if {"groups", "pareto"} & set(kinds) else None
    made: list[Figure | None] = []
    for kind in kinds:
        match kind:
            case "lines":
                made.append(_lines(seen, metric, look, scale) if look.x else None)
            case "bars":
                made.append(_bars(seen, metric, look, scale) if not look.x or list(kinds) == ["bars"] else None)
            case "groups":
                made.append(_of_groups(apart, metric, look, scale))
            case "heat-map":
                made.append(_heat_map(seen, metric, look))
            case "cdf":
                made.append(_cdf(seen, metric, look))
            case "pareto":
                made.append(_pareto(apart or seen, look.among_groups() if apart else look))
    found = [figure for figure in made if figure is not None]
    if not found:
        raise InputError(
            f"{results.sweep.name}: found axes that do not make {' or '.join(kinds)}; allowed: lines need an axis of numbers, "
            "bars an axis, groups runs with several, a heat map two axes, Pareto flows whose delay was measured"
        )
    return found


def _lines(seen: View, metric: str, look: Look, scale: str, *, name: str = "lines") -> Figure | None:
    assert look.x is not None
    table = _summary(seen, metric, look, along=look.x)
    if not table.height:
        return None
    factor, unit = scaled(metric_unit(metric), table["mean"].drop_nulls().to_list())
    x_factor, x_unit = scaled(seen.unit(look.x), table["x"].to_list())
    data = _divided(table, factor).with_columns((table["x"] / x_factor).alias("x"))
    x_title = titled(words(look.x), x_unit)

    def draw_panel(ax: Any, rows: pl.DataFrame) -> None:
        lines = {}
        for series, part in groups(rows, look.by):
            along = part.sort("x")
            lines[series] = _line(along["x"].to_list(), along)
        draw_lines(ax, lines, log_x=wide(data["x"].to_list()))

    return Figure(
        name=f"{name}-{_slug(metric)}",
        title=_heading(data, metric, unit, look, x_unit),
        caption=f"{_capital(metric_words(metric))} against {words(look.x)}: means over {_over(look)}, with 95 % intervals "
        "(bootstrap; Student's t below 10 runs). Where all seeds gave one run there is none.",
        draw=partial(_panels, data, look, x_title, titled(metric_words(metric), unit), draw_panel, scale=scale),
        data={name: data.rename({"x": titled(look.x, x_unit)})},
    )


def _bars(seen: View, metric: str, look: Look, scale: str, *, name: str = "bars") -> Figure | None:
    """Categories along x: what would be lines; what would be panels, or the groups, side by side."""
    side = look.by if look.by == "group" else look.panel
    along = next((c for c in (look.by, look.x, look.panel, *look.pooled) if c is not None and c != side), None)
    if along is None:
        along, side = side, None
    if along is None or along not in seen.axes:
        return None
    rest = [c for c in (look.x, look.by, look.panel, *look.pooled) if c and c not in (along, side)]
    panel = next((c for c in rest if len(seen.axes[c]) <= MOST_PANELS), None)
    flat = Look(x=None, by=side, panel=panel, pooled=tuple(c for c in rest if c != panel))
    table = _summary(seen, metric, flat, along=along)
    if not table.height:
        return None
    factor, unit = scaled(metric_unit(metric), table["mean"].drop_nulls().to_list())
    data = _divided(table, factor)
    categories = [label(value) for value in seen.axes[along]]
    shown = [textwrap.fill(category, 18) for category in categories]

    def draw_panel(ax: Any, rows: pl.DataFrame) -> None:
        bars = {}
        for series, part in groups(rows, side):
            bars[series] = _line([categories.index(label(v)) for v in part[along]], part)
        draw_bars(ax, shown, bars)

    told_apart = Look(x=None, by=along if side is None else side, panel=panel, pooled=())
    return Figure(
        name=f"{name}-{_slug(metric)}",
        title=_heading(data, metric, unit, told_apart, ""),
        caption=f"{_capital(metric_words(metric))} by {words(along)}: means over {_over(flat)}, with 95 % intervals. Where all seeds "
        "gave one run there is none.",
        draw=partial(_panels, data, flat, words(along), titled(metric_words(metric), unit), draw_panel, scale=scale),
        data={name: data},
    )


def _of_groups(seen: View | None, metric: str, look: Look, scale: str) -> Figure | None:
    """What each group of flows got."""
    found = measure(metric)
    column = metric if found is None else found.column
    if seen is None or column not in seen.runs.columns or not seen.runs[column].count():
        return None
    among = look.among_groups()
    if among.x is not None:
        return _lines(seen, column, among, scale, name="groups")
    return _bars(seen, column, among, scale, name="groups")


def _heat_map(seen: View, metric: str, look: Look) -> Figure | None:
    columns = list(seen.axes)
    if len(columns) < 2:
        return None
    x = look.x or columns[0]
    others = [c for c in columns if c != x]
    numbers = [c for c in others if seen.is_numeric(c)]
    y = max(numbers or others, key=lambda c: len(seen.axes[c]))
    rest = [c for c in others if c != y]
    few = [c for c in rest if len(seen.axes[c]) <= MOST_PANELS]
    panel = look.by if look.by in few else few[0] if few else None
    pooled = tuple(c for c in rest if c != panel)
    chosen = Look(x=x, by=y, panel=panel, pooled=pooled)
    table = _means(seen, metric, [c for c in (panel, y, x) if c])
    factor, unit = scaled(metric_unit(metric), table["mean"].drop_nulls().to_list())
    data = table.with_columns((table["mean"] / factor).alias("mean"))
    known = data["mean"].drop_nulls()
    limits = (float(known.min()), float(known.max()))  # type: ignore[arg-type]
    xs, ys = ([label(v) for v in seen.axes[c]] for c in (x, y))

    def draw() -> Any:
        import numpy as np

        parts = groups(data, panel)
        rows, across = _shape(len(parts))
        figure, axes = new(
            max(3.6 * across + 0.9, 7.2),
            (0.32 * len(ys) + 1.5) * rows,
            nrows=rows,
            ncols=across,
            squeeze=False,
            sharex=True,
            sharey=True,
        )
        image = None
        for ax, (name, part) in zip(axes.flat, parts, strict=False):
            values = np.full((len(ys), len(xs)), np.nan)
            for row in part.iter_rows(named=True):
                if row["mean"] is not None:
                    values[ys.index(label(row[y])), xs.index(label(row[x]))] = row["mean"]
            image = draw_heat_map(ax, values, xs, ys, limits)
            ax.set_title(name)
        hide_rest(axes, len(parts))
        figure.supxlabel(words(x), fontsize=9)
        figure.supylabel(words(y), fontsize=9)
        figure.colorbar(image, ax=axes, label=textwrap.fill(titled(metric_words(metric), unit), 24), shrink=0.9)
        return figure

    best = data.drop_nulls("mean").sort("mean", descending=True, maintain_order=True).row(0, named=True)
    place = ", ".join(f"{words(c)} {label(best[c])}" for c in (panel, y, x) if c)
    return Figure(
        name=f"heat-map-{_slug(metric)}",
        title=f"{_capital(metric_words(metric))} is largest at {place}: {told(best['mean'], unit)}",
        caption=f"{_capital(metric_words(metric))} by {words(x)} and {words(y)}: means over {_over(chosen)}"
        f"{'; one panel per ' + words(panel) if panel else ''}. One scale of colours for all panels.",
        draw=draw,
        data={"heat-map": data},
    )


def _cdf(seen: View, metric: str, look: Look) -> Figure | None:
    import polars as pl

    keys = [c for c in (look.panel, look.by) if c]
    data = seen.runs.select(*keys, pl.col(metric).cast(pl.Float64)).drop_nulls(metric)
    factor, unit = scaled(metric_unit(metric), data[metric].to_list())
    data = data.with_columns((pl.col(metric) / factor).alias(metric))
    taken = [c for c in (look.x, *look.pooled) if c]

    def draw_panel(ax: Any, rows: pl.DataFrame) -> None:
        samples = {name: part[metric].to_list() for name, part in groups(rows, look.by)}
        draw_distributions(ax, samples, log_x=wide(data[metric].to_list()))

    over = f" at all values of {', '.join(words(c) for c in taken)}" if taken else ""
    medians = {name: float(part[metric].median() or 0.0) for name, part in groups(data, look.by)}  # type: ignore[arg-type]
    said = ranked(medians, unit) if look.by else told(medians[""], unit)
    return Figure(
        name=f"cdf-{_slug(metric)}",
        title=f"{_capital(metric_words(metric))}, median of the runs: {said}",
        caption=f"Share of the runs{over} at or below a value; each run counts once.",
        draw=partial(
            _panels, data, look, titled(metric_words(metric), unit), "share of runs", draw_panel, scale="shared"
        ),
        data={"cdf": data},
    )


def _pareto(seen: View, look: Look) -> Figure | None:
    import polars as pl

    one_way = "p95_delay_s" in seen.runs.columns and seen.runs["p95_delay_s"].count() > 0
    delay = "p95_delay_s" if one_way else "mean_rtt_s"
    keys = list(seen.axes)
    data = (
        seen.runs.group_by("cell", *keys, maintain_order=True)
        .agg(pl.col(delay).mean().alias("delay"), pl.col("goodput_bps").mean())
        .drop_nulls()
    )
    if data.height < 2:
        return None
    delays, delay_unit = scaled("s", data["delay"].to_list())
    speeds, speed_unit = scaled("bit/s", data["goodput_bps"].to_list())
    data = data.with_columns(pl.col("delay") / delays, pl.col("goodput_bps") / speeds)

    def draw_panel(ax: Any, rows: pl.DataFrame) -> None:
        points = {n: (p["delay"].to_list(), p["goodput_bps"].to_list()) for n, p in groups(rows, look.by)}
        draw_pareto(ax, points, log_x=wide(data["delay"].to_list()))
        if rows.height <= MOST_NAMED:
            for row in rows.iter_rows(named=True):
                text = ", ".join(label(row[c]) for c in unsaid)
                place = (row["delay"], row["goodput_bps"])
                ax.annotate(text, place, (4, 4), textcoords="offset points", fontsize=6.5, color=GREY)

    unsaid = [c for c in keys if c not in (look.by, look.panel)]
    what = "95th percentile of the one-way delay" if one_way else "mean RTT"
    unbeaten = [data.row(i, named=True) for i in front(data["delay"].to_numpy(), data["goodput_bps"].to_numpy())]

    def point(row: dict[str, Any]) -> str:
        place = ", ".join(label(row[c]) for c in keys)
        return f"{told(row['goodput_bps'], speed_unit)} at {told(row['delay'], delay_unit)} ({place})"

    ends = f": {point(unbeaten[0])}" if len(unbeaten) == 1 else f": from {point(unbeaten[0])} to {point(unbeaten[-1])}"
    each = "group of each cell" if look.by == "group" else "cell"
    return Figure(
        name="pareto",
        title=f"Throughput against delay{ends}",
        caption=f"One point per {each}: {what} and goodput, means over its seeds. Up and to the left is better; the grey line joins the "
        "points that no other beats in both; the heading names its ends.",
        draw=partial(
            _panels, data, look, titled(what, delay_unit), titled("goodput", speed_unit), draw_panel, scale="shared"
        ),
        data={"pareto": data.rename({"delay": titled(delay.removesuffix("_s"), delay_unit)})},
    )


def _panels(
    data: pl.DataFrame,
    look: Look,
    x_title: str,
    y_title: str,
    draw_panel: Callable[[Any, pl.DataFrame], None],
    *,
    scale: str,
) -> Any:
    parts = groups(data, look.panel)
    rows, across = _shape(len(parts))
    width, height = (7.2, 3.6) if len(parts) == 1 else (3.1 * across + 1.0, 2.5 * rows + 0.6)
    shared = scale == "shared" or (scale == "auto" and not _flat(parts))
    figure, axes = new(max(width, 6.0), height, nrows=rows, ncols=across, squeeze=False, sharex=True, sharey=shared)
    for ax, (name, part) in zip(axes.flat, parts, strict=False):
        draw_panel(ax, part)
        if look.panel:
            ax.set_title(textwrap.fill(f"{words(look.panel)}: {name}", 36))
    hide_rest(axes, len(parts))
    figure.supxlabel(x_title, fontsize=9)
    figure.supylabel(y_title, fontsize=9)
    seen: dict[str, Any] = {}
    for ax in axes.flat[: len(parts)]:  # a group may be absent from some panels
        for handle, text in zip(*ax.get_legend_handles_labels(), strict=True):
            seen.setdefault(textwrap.fill(text, 24), handle)
    if len(seen) > 1:
        title = words(look.by) if look.by else None
        figure.legend(seen.values(), seen.keys(), loc="outside right upper", title=title, alignment="left")
    return figure


def _flat(parts: Sequence[tuple[str, pl.DataFrame]]) -> bool:
    """Whether one panel's values would be flat beside another's."""
    if len(parts) < 2 or "mean" not in parts[0][1].columns:
        return False
    tops = [abs(float(top)) for _, part in parts if isinstance(top := part["mean"].max(), int | float)]
    return bool(tops) and min(tops) > 0 and max(tops) / min(tops) > FLAT


def _heading(data: pl.DataFrame, metric: str, unit: str, look: Look, x_unit: str) -> str:
    """The result in one line: which series has most on average; of a single one, how it goes from one end of x to the other."""
    import polars as pl

    what = _capital(metric_words(metric))
    if look.by is not None:
        means = {name: float(part["mean"].mean() or 0.0) for name, part in groups(data, look.by)}  # type: ignore[arg-type]
        if look.x is not None and (turned := _turned(data, look.by)) is not None:
            turns = (f"{ranked(means, '')} at {told(x, x_unit)}" for x, means in turned)
            return f"{titled(what, unit)}: {'; '.join(turns)}"
        return f"{what}: {ranked(means, unit)}{' on average' if data.height > len(means) else ''}"
    if look.x is None:
        return f"{what}: {told(float(data['mean'].mean() or 0.0), unit)}"  # type: ignore[arg-type]
    along = data.group_by("x").agg(pl.col("mean").mean()).drop_nulls().sort("x")
    if along.height < 2:
        return f"{what}: {told(along['mean'][0], unit)}" if along.height else what
    first, last = along["mean"][0], along["mean"][-1]
    if told(first) == told(last):
        return f"{what} is {told(last, unit)} at both ends of {words(look.x)}"
    goes = "rises" if last > first else "falls"
    ends = f"{told(along['x'][0])} to {told(along['x'][-1], x_unit)}"
    return f"{what} {goes} from {told(first)} to {told(last, unit)} as {words(look.x)} goes from {ends}"


def _turned(data: pl.DataFrame, by: str) -> list[tuple[float, dict[str, float]]] | None:
    """The series' means at both ends of x, if another one is the largest there."""
    import polars as pl

    found = []
    for x in (data["x"].min(), data["x"].max()):
        end = groups(data.filter(pl.col("x") == x), by)
        found.append((float(x), {name: float(part["mean"].mean() or 0.0) for name, part in end}))  # type: ignore[arg-type]
    leaders = {max(means, key=means.__getitem__) for _, means in found}
    return found if len(leaders) > 1 else None


def _summary(seen: View, metric: str, look: Look, *, along: str) -> pl.DataFrame:
    """Mean and interval per panel, line and point; `x` is the point as a number, where it is one."""
    import polars as pl

    keys = list(dict.fromkeys(c for c in (look.panel, look.by, along) if c))
    numeric = look.x == along
    rows = []
    for group, part in seen.runs.group_by(keys, maintain_order=True):
        e = estimate(part, metric)
        if e.n:
            named = dict(zip(keys, group, strict=True))
            x = {"x": base_value(named[along])} if numeric else {}
            rows.append({**named, **x, "n": e.n, "mean": e.value, "low": e.low, "high": e.high})
    floats = {"mean": pl.Float64, "low": pl.Float64, "high": pl.Float64}
    table = pl.DataFrame(rows, infer_schema_length=None, schema_overrides=floats)
    return table.drop(along) if numeric and rows else table


def _means(seen: View, metric: str, keys: list[str]) -> pl.DataFrame:
    import polars as pl

    return seen.runs.group_by(keys, maintain_order=True).agg(pl.col(metric).cast(pl.Float64).mean().alias("mean"))


def _divided(table: pl.DataFrame, factor: float) -> pl.DataFrame:
    return table.with_columns((table[c] / factor).alias(c) for c in ("mean", "low", "high"))


def _line(x: Sequence[float], part: pl.DataFrame) -> Line:
    return Line(x=x, y=_floats(part["mean"]), low=_floats(part["low"]), high=_floats(part["high"]))


def _shape(panels: int) -> tuple[int, int]:
    across = panels if panels <= 3 else 2 if panels == 4 else 3
    return -(-panels // across), across


def _over(look: Look) -> str:
    over = ["seeds", *(words(c) for c in look.pooled)]
    return " and ".join(over)


def _floats(column: pl.Series) -> list[float]:
    return [float("nan") if v is None else float(v) for v in column.to_list()]


def _slug(metric: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in metric)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
