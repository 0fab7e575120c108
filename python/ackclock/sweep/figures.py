"""Figures of a sweep, chosen from its axes: lines with bands, bars, groups of flows, heat map, distributions, throughput against delay.

Every axis value is shown, named as the selected one, or averaged at the user's request. Intervals are over
seeds, never over axes. Each heading states the result in numbers.

Length: one function for each kind of figure, and their common parts.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock.errors import InputError, one_of, quote
from ackclock.judge.intervals import Estimate, stratified_mean
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
    name_points,
    wide,
)
from ackclock.plot.style import WIDTHS, narrow_rc, read_style
from ackclock.sweep.look import GROUP, Look, View, at, by_group, choose, fixed_words, groups, shown, view, warmed_up
from ackclock.sweep.measures import distinct, measure
from ackclock.sweep.results import Results
from ackclock.sweep.wording import metric_unit, metric_words, ranked, scaled, titled, told

if TYPE_CHECKING:
    import polars as pl

KINDS = ("lines", "bars", "groups", "heat-map", "cdf", "pareto")

SCALES = ("auto", "shared", "free")
"""Whether panels share a y axis or have separate ones; auto: separate if one curve would be flat beside another."""

FLAT = 4.0
"""Ratio of the maxima of two panels beyond which one is flat beside the other."""

MOST_NAMED = 12
"""Maximum number of points in a panel that are labelled with the axes shown neither by colour nor by panel."""

FEWEST_RUNS = 10
"""Minimum number of runs per cell for a distribution to be drawn by default: with fewer, the interval shows as much."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """Width of figures, and sharing of y axes between panels.

    Parameters
    ----------
    scale
        One of `SCALES`.
    width
        Inches; None for as wide as the panels need.
    """

    scale: str = "auto"
    width: float | None = None


def figures(
    results: Results,
    *,
    metric: str = "goodput_bps",
    kinds: Sequence[str] = (),
    x: str | None = None,
    by: str | None = None,
    panel: Sequence[str] = (),
    row: str | None = None,
    column: str | None = None,
    where: Sequence[str] = (),
    average: Sequence[str] = (),
    against: str | None = None,
    normalise: bool | None = None,
    scale: str = "auto",
    width: str | None = None,
    style: str | Path | None = None,
) -> list[Figure]:
    """Return every figure of these kinds possible with the axes.

    Parameters
    ----------
    results
        Results of a sweep with at least one run.
    metric
        Metric to show, see `Results.holding` (the Pareto figure shows goodput against the 95th percentile of the
        delay).
    kinds
        Some of "lines", "bars" (in place of lines where no axis has numbers), "groups" (of flows), "heat-map", "cdf",
        "pareto"; empty for all that are informative.
    x, by, panel
        Names of axes that replace the default choice. Axes that do not fit show their first value, and the figure
        says so.
    row, column
        Names of axes whose values are the rows, and the columns, of panels.
    where
        "AXIS=VALUE": only runs with this value.
    average
        Axes over which means are taken; only for a metric that is a fraction, or with `normalise`.
    against
        "AXIS=VALUE": differences from the run with this value, seed by seed.
    normalise
        Whether to show rates as fractions of the bottleneck's capacity, and times as multiples of the base RTT. None:
        if the metric is a rate and rates are an axis, which would otherwise dominate the figure.
    scale
        "shared": one y axis for all panels; "free": separate axes; "auto": separate axes if one panel would be flat
        beside another.
    width
        "single" or "double": columns of a paper; None for as wide as the panels need.
    style
        matplotlib style file (`.mplstyle`), applied after the package's own.

    Raises
    ------
    InputError
        If a name is unknown, or there is nothing to show.
    """
    if scale not in SCALES:
        raise InputError(f"--scale: found {quote(scale)}; allowed: {', '.join(SCALES)}")
    if width is not None and width not in WIDTHS:
        raise InputError(f"--width: found {quote(width)}; allowed: {', '.join(WIDTHS)}")
    for kind in kinds:
        if kind not in KINDS:
            raise InputError(f"--kind: found {quote(kind)}; allowed: {one_of(kind, KINDS)}")
    # titles in regular weight, because a second font costs 0.1 s in each PDF
    rc = {"axes.titleweight": "normal", **(narrow_rc(width) if width else {}), **(read_style(style) if style else {})}
    wanted = tuple(kinds) or KINDS
    found = measure(metric)
    of_group = metric if found is None else found.column
    whole = view(results, metric)
    shown_of = (metric, *_DELAYS, "goodput_bps")
    by_itself = metric_unit(metric) == "bit/s" and any(axis.unit == "bit/s" for axis in whole.axes.values())
    try:
        seen = _prepared(whole, shown_of, where, against, by_itself if normalise is None else normalise)
        normalise = by_itself if normalise is None else normalise
    except InputError:
        if normalise is not None or not by_itself:
            raise
        seen, normalise = _prepared(whole, shown_of, where, against, False), False  # a path may lack a rate or a delay
    if not seen.runs.height or seen.runs[metric].null_count() == seen.runs.height:
        raise InputError(f"{results.sweep.name}: found no finished run with a value of {metric}; allowed: one or more")
    if average and not seen.comparable(metric):
        unit = seen.unit(metric)
        raise InputError(
            f"--average {average[0]}: found {metric}{f', in {unit}' if unit else ''}, whose mean over different paths says nothing of "
            "any; allowed: with --normalise, or of a metric that is a share"
        )
    look = choose(seen, x=x, by=by, panel=panel, row=row, column=column, average=average)
    layout = Layout(scale=scale, width=None if width is None else WIDTHS[width])
    apart = by_group(results) if {"groups", "pareto"} & set(wanted) else None
    if apart is not None:
        apart = _prepared(apart, (of_group, *_DELAYS, "goodput_bps"), where, against, normalise)
    among = (
        None
        if apart is None
        else choose(apart, x=x, by=GROUP, panel=_first(by, panel), row=row, column=column, average=average)
    )
    made: list[Figure | None] = []
    for kind in wanted:
        match kind:
            case "lines":
                made.append(_lines(seen, metric, look, layout) if look.x else None)
            case "bars":
                made.append(_bars(seen, metric, look, layout) if not look.x or list(kinds) == ["bars"] else None)
            case "groups" if apart is not None and among is not None:
                made.append(_of_groups(apart, of_group, among, layout))
            case "heat-map":
                made.append(_heat_map(seen, metric, look, layout, asked=bool(kinds)))
            case "cdf":
                made.append(_cdf(seen, metric, look, layout, asked=bool(kinds)))
            case "pareto" if against is None:
                if apart is None or among is None:
                    alone = _after(seen, results, lambda one: _prepared(one, [AFTER], where, None, normalise))
                    made.append(_pareto(alone, look, layout))
                else:
                    made.append(_pareto(apart, among, layout))
    drawn = [replace(figure, rc=rc) for figure in made if figure is not None]
    if not drawn:
        raise InputError(
            f"{results.sweep.name}: found axes that do not make {' or '.join(wanted)}; allowed: lines need an axis of numbers, "
            "bars an axis, groups runs with several, a heat map two axes, Pareto flows whose delay was measured"
        )
    return drawn


_DELAYS = ("p95_delay_s", "mean_rtt_s")

AFTER = "run.goodput_bps"
"""Goodput over the time that the delay quantiles cover."""


def _after(seen: View, results: Results, prepared: Callable[[View], View]) -> View:
    """Return the view with the goodput after the warm-up, to match the delays; unchanged without a warm-up, or if
    neither was stored.
    """
    if not warmed_up(results.sweep) or "p95_delay_s" not in seen.runs.columns or not seen.runs["p95_delay_s"].count():
        return seen
    other = prepared(view(results, AFTER)).runs.select("cell", "seed", AFTER)
    runs = seen.runs.join(other, on=["cell", "seed"], how="left", maintain_order="left")
    return replace(seen, runs=runs.drop("goodput_bps").rename({AFTER: "goodput_bps"}))


def _first(by: str | None, panel: Sequence[str]) -> Sequence[str]:
    return panel if by is None else (by, *panel)


def _prepared(seen: View, metrics: Sequence[str], where: Sequence[str], against: str | None, normalise: bool) -> View:
    metrics = [m for m in dict.fromkeys(metrics) if m in seen.runs.columns]
    if normalise:
        seen = seen.normalised(metrics)
    if where:
        # the reference cells are needed until the differences are taken
        base = [against] if against and against.partition("=")[0] in {w.partition("=")[0] for w in where} else []
        seen = seen.where([*where, *base])
    return seen.minus(against, metrics) if against else seen


def _lines(seen: View, metric: str, look: Look, layout: Layout, *, name: str = "lines") -> Figure | None:
    assert look.x is not None
    axis = seen.axes[look.x]
    table = summary(seen, metric, look, along=look.x)
    if not table.height:
        return None
    factor, unit = scaled(seen.unit(metric), table["mean"].drop_nulls().to_list())
    x_factor, x_unit = scaled(axis.unit, list(axis.numbers.values()))
    data = _divided(table, factor).with_columns(table[look.x].replace_strict(axis.numbers).alias("x") / x_factor)
    x_title = titled(seen.words(look.x), x_unit)

    def draw_panel(ax: Any, rows: pl.DataFrame) -> None:
        lines = {}
        for series, part in groups(rows, look.by):
            along = part.sort("x")
            lines["".join(series)] = _line(along["x"].to_list(), along)
        draw_lines(ax, lines, log_x=wide(data["x"].to_list()))

    return Figure(
        name=_named(name, seen, metric),
        title=_heading(seen, data, metric, unit, look, x_unit),
        caption=f"{_capital(seen.told(metric))}{seen.over(metric)} against {seen.words(look.x)}: {_how(seen, look)}",
        draw=partial(_panels, seen, data, look, x_title, titled(seen.told(metric), unit), draw_panel, layout=layout),
        data={name: seen.readable(data.drop(look.x), {"x": titled(axis.name, x_unit)})},
    )


def _bars(seen: View, metric: str, look: Look, layout: Layout, *, name: str = "bars") -> Figure | None:
    """Draw categories along x instead of lines, with panels or groups side by side."""
    rest = [c for c in (look.by, look.x, *look.panels) if c is not None]
    if not rest:
        return None
    along = next((c for c in rest if c != GROUP), GROUP)
    rest.remove(along)
    side = GROUP if GROUP in rest else next((c for c in rest if len(seen.axes[c].values) <= MOST_BARS), None)
    panels = tuple(c for c in rest if c != side)
    flat = replace(look, x=None, by=side, panels=panels)
    table = summary(seen, metric, flat, along=along)
    if not table.height:
        return None
    factor, unit = scaled(seen.unit(metric), table["mean"].drop_nulls().to_list())
    data = _divided(table, factor)
    categories = seen.axes[along].labels
    named = [textwrap.fill(category, 18) for category in categories]

    def draw_panel(ax: Any, rows: pl.DataFrame) -> None:
        bars = {}
        for series, part in groups(rows, side):
            bars["".join(series)] = _line([categories.index(v) for v in part[along]], part)
        draw_bars(ax, named, bars)

    told_apart = replace(flat, by=side or along, panels=(*panels, *((along,) if side else ())))
    return Figure(
        name=_named(name, seen, metric),
        title=_heading(seen, data, metric, unit, told_apart, ""),
        caption=f"{_capital(seen.told(metric))}{seen.over(metric)} by {seen.words(along)}: {_how(seen, flat)}",
        draw=partial(
            _panels, seen, data, flat, seen.words(along), titled(seen.told(metric), unit), draw_panel, layout=layout
        ),
        data={name: seen.readable(data)},
    )


MOST_BARS = 10
"""Maximum number of bars side by side."""


def _of_groups(seen: View, metric: str, look: Look, layout: Layout) -> Figure | None:
    """Return a figure with each flow group's values."""
    if metric not in seen.runs.columns or not seen.runs[metric].count():
        return None
    draw = _bars if look.x is None else _lines
    return draw(seen, metric, look, layout, name="groups")


def _heat_map(seen: View, metric: str, look: Look, layout: Layout, *, asked: bool) -> Figure | None:
    drawn = [c for c in (look.x, look.by, *look.panels) if c]
    if len(drawn) < 2:
        return None
    x = drawn[0]
    numbers = [c for c in drawn[1:] if seen.axes[c].numbers]
    y = max(numbers or drawn[1:], key=lambda c: len(seen.axes[c].values))
    if not asked and min(len(seen.axes[c].values) for c in (x, y)) < 3:
        return None  # lines show two values better
    chosen = _fitted(seen, look, x=x, by=y, rest=[c for c in drawn if c not in (x, y)])
    table = summary(seen, metric, chosen, along=x)
    factor, unit = scaled(seen.unit(metric), table["mean"].drop_nulls().to_list())
    data = table.with_columns((table["mean"] / factor).alias("mean")).drop("low", "high")
    known = data["mean"].drop_nulls()
    limits = (float(known.min()), float(known.max()))  # type: ignore[arg-type]
    xs, ys = seen.axes[x].labels, seen.axes[y].labels

    def draw() -> Any:
        import numpy as np

        parts = groups(data, *chosen.panels)
        rows, across = _shape(seen, chosen, len(parts), layout)
        wide_enough = layout.width or max(3.6 * across + 0.9, 7.2)
        figure, axes = new(
            wide_enough,
            (0.32 * len(ys) + 1.5) * rows,
            nrows=rows,
            ncols=across,
            squeeze=False,
            sharex=True,
            sharey=True,
        )
        image = None
        for ax, (place, part) in zip(axes.flat, parts, strict=False):
            values = np.full((len(ys), len(xs)), np.nan)
            for row in part.iter_rows(named=True):
                if row["mean"] is not None:
                    values[ys.index(row[y]), xs.index(row[x])] = row["mean"]
            image = draw_heat_map(ax, values, xs, ys, limits)
            ax.set_title(_panel_title(seen, chosen, place, wide_enough / across))
        hide_rest(axes, range(len(parts)))
        _axis_titles(figure, seen.words(x), seen.words(y))
        figure.colorbar(image, ax=axes, label=textwrap.fill(titled(seen.told(metric), unit), 24), shrink=0.9)
        return figure

    best = data.drop_nulls("mean").sort("mean", descending=True, maintain_order=True).row(0, named=True)
    place = at(seen, {c: best[c] for c in (*chosen.panels, y, x)})
    return Figure(
        name=_named("heat-map", seen, metric),
        title=f"{_capital(seen.told(metric))} is largest at {place}: {told(best['mean'], unit)}{_where(seen, chosen)}",
        caption=f"{_capital(seen.told(metric))}{seen.over(metric)} by {seen.words(x)} and {seen.words(y)}: {_means(seen, chosen)}"
        f"{_one_panel_per(seen, chosen)}. One scale of colours for all panels.",
        draw=draw,
        data={"heat-map": seen.readable(data)},
    )


def _fitted(seen: View, look: Look, *, x: str | None, by: str | None, rest: Sequence[str]) -> Look:
    """Add panels for axes not drawn otherwise, as far as they fit, and select one value of each remaining axis."""
    from ackclock.sweep.look import MOST_PANELS

    panels: list[str] = []
    fixed = dict(look.fixed)
    for column in rest:
        if prod(len(seen.axes[c].values) for c in (*panels, column)) <= MOST_PANELS:
            panels.append(column)
        else:
            fixed[column] = seen.axes[column].labels[0]
    return replace(look, x=x, by=by, panels=tuple(panels), fixed=fixed)


def _cdf(seen: View, metric: str, look: Look, layout: Layout, *, asked: bool) -> Figure | None:
    import polars as pl

    if not asked and seen.runs.height < FEWEST_RUNS * seen.runs["cell"].n_unique():
        return None
    rest = [*look.panels, *((look.x,) if look.x else ())]
    chosen = _fitted(seen, look, x=None, by=look.by, rest=rest)
    kept = shown(seen, chosen).runs
    data = kept.select(*chosen.drawn, pl.col(metric).cast(pl.Float64).alias("value")).drop_nulls("value")
    if not data.height:
        return None
    factor, unit = scaled(seen.unit(metric), data["value"].to_list())
    data = data.with_columns(pl.col("value") / factor)

    def draw_panel(ax: Any, rows: pl.DataFrame) -> None:
        samples = {"".join(name): part["value"].to_list() for name, part in groups(rows, chosen.by)}
        draw_distributions(ax, samples, log_x=wide(data["value"].to_list()))

    medians = (
        data.group_by(chosen.drawn, maintain_order=True).agg(pl.col("value").median().alias("mean"))
        if chosen.drawn
        else (data.select(pl.col("value").median().alias("mean")))
    )
    left = kept.height - data.height
    gaps = f" {left:,} of {kept.height:,} runs have no number and are left out." if left else ""
    of_time = f" of {seen.told(metric)}{seen.over(metric)}".rstrip(",") if seen.over(metric) else ""
    over = f", at all values of {', '.join(seen.words(c) for c in chosen.averaged)}" if chosen.averaged else ""
    return Figure(
        name=_named("cdf", seen, metric),
        title=_heading(
            seen, medians, metric, unit, chosen, "", what=f"{_capital(seen.told(metric))}, median of the runs"
        ),
        caption=f"Share of the runs{over} at or below a value{of_time}; each run counts once{_one_panel_per(seen, chosen)}.{_shown_alone(seen, chosen)}{gaps}",
        draw=partial(
            _panels,
            seen,
            data,
            chosen,
            titled(seen.told(metric), unit),
            "share of runs",
            draw_panel,
            layout=replace(layout, scale="shared"),
        ),
        data={"cdf": seen.readable(data, {"value": metric})},
    )


def _pareto(seen: View, look: Look, layout: Layout) -> Figure | None:
    import polars as pl

    runs = shown(seen, look).runs
    delay = next((c for c in _DELAYS if c in runs.columns and runs[c].count()), None)
    if delay is None or "goodput_bps" not in runs.columns:
        return None
    keys = [c for c in seen.axes if c not in look.fixed]
    data = (
        runs.group_by("cell", *keys, maintain_order=True)
        .agg(pl.col(delay).mean().alias("delay"), pl.col("goodput_bps").mean().alias("goodput"))
        .drop_nulls()
    )
    if data.height < 2:
        return None
    delays, delay_unit = scaled(seen.unit(delay), data["delay"].to_list())
    speeds, speed_unit = scaled(seen.unit("goodput_bps"), data["goodput"].to_list())
    data = data.with_columns(pl.col("delay") / delays, pl.col("goodput") / speeds)
    unsaid = [c for c in keys if c not in (look.by, *look.panels)]
    said_of = ", ".join(seen.words(c) for c in unsaid)
    names = (
        f" Names tell {said_of}, where there is room for them; the data beside the figure tell all." if unsaid else ""
    )

    def draw_panel(ax: Any, rows: pl.DataFrame) -> None:
        points = {"".join(n): (p["delay"].to_list(), p["goodput"].to_list()) for n, p in groups(rows, look.by)}
        draw_pareto(ax, points, log_x=wide(data["delay"].to_list()))

    def draw() -> Any:
        titles = titled(what, delay_unit), titled(speed, speed_unit)
        figure = _panels(seen, data, look, *titles, draw_panel, layout=layout)
        if unsaid:
            named = {}
            parts = groups(data, *look.panels)
            across = _shape(seen, look, len(parts), layout)[1]
            places = _places(seen, look, [place for place, _ in parts], across)
            for ax, (_, part) in zip((figure.axes[i] for i in places), parts, strict=True):
                if part.height <= MOST_NAMED:
                    texts = part.select(unsaid).iter_rows()
                    named[ax] = list(zip(part["delay"], part["goodput"], map(", ".join, texts), strict=True))
            name_points(figure, named)
        return figure

    def unbeaten(rows: pl.DataFrame) -> list[dict[str, Any]]:
        return [rows.row(i, named=True) for i in front(rows["delay"].to_numpy(), rows["goodput"].to_numpy())]

    def point(row: dict[str, Any]) -> str:
        place = ", ".join(row[c] for c in keys)
        return f"{told(row['goodput'], speed_unit)} at {told(row['delay'], delay_unit)} ({place})"

    fronts = [unbeaten(part) for _, part in groups(data, *look.panels)]
    by = look.by
    if len(fronts) > 1 and by is not None:
        on: dict[str, int] = dict.fromkeys(seen.axes[by].labels, 0)
        for best in fronts:
            for series in {row[by] for row in best}:
                on[series] += 1
        order = sorted(on, key=lambda series: -on[series])
        said = f", points that no other of their panel beats: {', '.join(f'{s} in {on[s]}' for s in order[:4])} of {len(fronts)} panels"
    else:
        ends = fronts[0]
        said = f": {point(ends[0])}" if len(ends) == 1 else f": from {point(ends[0])} to {point(ends[-1])}"
    each = "group of each cell" if by == GROUP else "cell"
    words = {"p95_delay_s": "95th percentile of the one-way delay", "mean_rtt_s": "mean RTT"}[delay]
    what, speed = seen.told(delay).replace(metric_words(delay), words), seen.told("goodput_bps")
    both = f", both{found[1:-1]}" if (found := seen.over(delay)) else ""
    return Figure(
        name=_named("pareto", seen),
        title=f"Throughput against delay{said}{_where(seen, look)}",
        caption=f"One point per {each}: {what} and {speed}{both}, means over its seeds. Up and to the left is better; the grey line joins the "
        f"points of a panel that no other beats in both.{names}{_shown_alone(seen, look)}",
        draw=draw,
        data={
            "pareto": seen.readable(
                data, {"delay": titled(delay.removesuffix("_s"), delay_unit), "goodput": titled("goodput", speed_unit)}
            )
        },
    )


def _panels(
    seen: View,
    data: pl.DataFrame,
    look: Look,
    x_title: str,
    y_title: str,
    draw_panel: Callable[[Any, pl.DataFrame], None],
    *,
    layout: Layout,
) -> Any:
    parts = groups(data, *look.panels)
    rows, across = _shape(seen, look, len(parts), layout)
    places = _places(seen, look, [place for place, _ in parts], across)
    rows = max(rows, *(1 + at // across for at in places))
    if layout.width is not None:
        width, height = (
            layout.width,
            rows * (0.7 * layout.width / across + 0.35) + 0.45 if len(parts) > 1 else 0.3 * layout.width + 1.3,
        )
    else:
        width, height = (7.2, 3.6) if len(parts) == 1 else (max(2.6 * across + 1.2, 6.0), 2.2 * rows + 0.6)
    shared = layout.scale == "shared" or (layout.scale == "auto" and not _flat(parts))
    figure, axes = new(width, height, nrows=rows, ncols=across, squeeze=False, sharex=True, sharey=shared)
    taken = [axes.flat[at] for at in places]
    for ax, (place, part) in zip(taken, parts, strict=True):
        draw_panel(ax, part)
        ax.set_title(_panel_title(seen, look, place, width / across))
    hide_rest(axes, places)
    _axis_titles(figure, x_title, textwrap.fill(y_title, max(int(9 * height), 20)))
    named: dict[str, Any] = {}
    for ax in taken:  # a group may be absent from some panels
        for handle, text in zip(*ax.get_legend_handles_labels(), strict=True):
            named.setdefault(textwrap.fill(text, 24), handle)
    if len(named) > 1:
        title = seen.words(look.by) if look.by else None
        if width < 6:
            figure.legend(named.values(), named.keys(), loc="outside upper left", ncols=min(len(named), 3))
        else:
            figure.legend(named.values(), named.keys(), loc="outside right upper", title=title, alignment="left")
    return figure


FIRM = "\u00a0"
"""Non-breaking space."""


def _panel_title(seen: View, look: Look, place: Sequence[str], inches: float) -> str:
    """Return a title with line breaks between axes, and within a value only if it is longer than a line."""
    room = max(int(11 * inches), 12)
    parts = [at(seen, {column: value}) for column, value in zip(look.panels, place, strict=True)]
    whole = [part.replace(" ", FIRM) if len(part) < room else part for part in parts]
    return textwrap.fill(", ".join(whole), room).replace(FIRM, " ")


def _axis_titles(figure: Any, x: str, y: str) -> None:
    from ackclock.plot import style

    size = style.matplotlib().rcParams["axes.labelsize"]
    figure.supxlabel(x, fontsize=size)
    figure.supylabel(y, fontsize=size)


def _flat(parts: Sequence[tuple[Any, pl.DataFrame]]) -> bool:
    """Return whether one panel's curve would look flat on a y axis shared with another panel."""
    column = next((c for c in ("mean", "goodput") if c in parts[0][1].columns), None)
    if len(parts) < 2 or column is None:
        return False
    tops = [abs(float(top)) for _, part in parts if isinstance(top := part[column].max(), int | float)]
    return bool(tops) and min(tops) > 0 and max(tops) / min(tops) > FLAT


def _heading(seen: View, data: pl.DataFrame, metric: str, unit: str, look: Look, x_unit: str, *, what: str = "") -> str:
    """Return the result in one line, from values in the figure, without averaging over positions."""
    what = what or _capital(seen.told(metric))
    end = _where(seen, look)
    along = ("x",) if "x" in data.columns else ()
    keys = [*look.panels, *along]
    places: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in (
        data.drop_nulls("mean").sort(*along, maintain_order=True).iter_rows(named=True)
        if along
        else data.drop_nulls("mean").iter_rows(named=True)
    ):
        places.setdefault(tuple(row[c] for c in keys), {})[row[look.by] if look.by else ""] = row["mean"]
    if not places:
        return f"{what}{end}"
    first, last = next(iter(places.values())), list(places.values())[-1]
    if look.by is None:
        if len(places) == 1:
            return f"{what}: {told(first[''], unit)}{end}"
        if look.panels or look.x is None:
            low, high = (pick(places.items(), key=lambda item: item[1][""]) for pick in (min, max))
            return f"{what}: {_place(seen, low, look, x_unit, '')} to {_place(seen, high, look, x_unit, unit)}{end}"
        return f"{_goes(what, list(places), first[''], last[''], unit, seen.words(look.x), x_unit)}{end}"
    if len(places) == 1:
        return f"{what}: {ranked(first, unit)}{end}"
    if not look.panels and along and max(first, key=first.__getitem__) != max(last, key=last.__getitem__):
        ends = [(x, means) for (x,), means in (next(iter(places.items())), list(places.items())[-1])]
        turns = "; ".join(f"{ranked(means, '')} at {told(x, x_unit)}" for x, means in ends)
        return f"{titled(what, unit)}: {turns}{end}"
    return f"{what}: {_winners(places.values())}{end}"


def _place(seen: View, item: tuple[tuple[Any, ...], Mapping[str, float]], look: Look, x_unit: str, unit: str) -> str:
    key, means = item
    parts = [at(seen, dict(zip(look.panels, key, strict=False)))]
    if len(key) > len(look.panels) and look.x:
        parts.append(f"{seen.words(look.x)} {told(key[-1], x_unit)}")
    return f"{told(means[''], unit)} ({', '.join(part for part in parts if part)})"


def _goes(
    what: str, places: Sequence[tuple[float]], first: float, last: float, unit: str, along: str, x_unit: str
) -> str:
    if told(first) == told(last):
        return f"{what} is {told(last, unit)} at both ends of {along}"
    goes = "rises" if last > first else "falls"
    ends = f"{told(places[0][0])} to {told(places[-1][0], x_unit)}"
    return f"{what} {goes} from {told(first)} to {told(last, unit)} as {along} goes from {ends}"


def _winners(places: Iterable[Mapping[str, float]]) -> str:
    """Return for each series the number of positions at which it has the largest value."""
    won: dict[str, int] = {}
    count = level = 0
    for means in places:
        if len(means) < 2:
            continue
        count += 1
        most = [name for name, value in means.items() if value == max(means.values())]
        if len(most) == 1:
            won[most[0]] = won.get(most[0], 0) + 1
        else:
            level += 1
    order = sorted(won, key=lambda name: -won[name])
    parts = [f"{name} {'has the largest mean ' if i == 0 else ''}at {won[name]}" for i, name in enumerate(order[:4])]
    if level:
        parts.append(f"several alike at {level}")
    return f"{', '.join(parts)} of {count} places" if parts else f"{count} places"


def _how(seen: View, look: Look) -> str:
    """Return the meaning of points and bands."""
    return (
        f"{_means(seen, look)}, with 95 % intervals over seeds (bootstrap; Student's t below 10 runs"
        f"{' and for means over cells' if look.averaged else ''}){_one_panel_per(seen, look)}. "
        f"Where all seeds gave one run there is none.{_shown_alone(seen, look)}"
    )


def _means(seen: View, look: Look) -> str:
    if not look.averaged:
        return "means over seeds"
    return f"means over seeds and, with equal weights, over {' and '.join(seen.words(c) for c in look.averaged)}"


def _one_panel_per(seen: View, look: Look) -> str:
    return f"; one panel per {' and '.join(seen.words(c) for c in look.panels)}" if look.panels else ""


def _where(seen: View, look: Look) -> str:
    found = fixed_words(seen, look)
    return f" ({found})" if found else ""


def _shown_alone(seen: View, look: Look) -> str:
    """Return the values that were selected because not all of them fit in the figure."""
    if not look.fixed:
        return ""
    return f" Only {at(seen, look.fixed)} is shown; --where, --panel and --average choose otherwise."


def summary(seen: View, metric: str, look: Look, *, along: str) -> pl.DataFrame:
    """Return mean and interval per panel, line and point.

    Returns
    -------
    polars.DataFrame
        The columns of the axes, `n` (runs; seeds for a mean over cells), `mean`, `low`, `high`.
    """
    import polars as pl

    keys = list(dict.fromkeys(c for c in (*look.panels, look.by, along) if c))
    apart = [GROUP] if GROUP in seen.axes else []
    runs = distinct(shown(seen, look).runs.select(*{*keys, *apart}, "cell", "seed", "digest", metric), *apart)
    cells: dict[tuple[str, ...], dict[int, tuple[list[float], list[int]]]] = {}
    for *place, cell, seed, value in runs.select(*keys, "cell", "seed", pl.col(metric).cast(pl.Float64)).iter_rows():
        values, seeds = cells.setdefault(tuple(place), {}).setdefault(cell, ([], []))
        if value is not None:
            values.append(value)
            seeds.append(seed)
    rows: list[tuple[Any, ...]] = []
    for at_place, strata in cells.items():
        e: Estimate = stratified_mean([x for x, _ in strata.values()], [of for _, of in strata.values()])
        e = e.within(*seen.bounds(metric))
        if e.n:
            rows.append((*at_place, e.n, e.value, e.low, e.high))
    numbers = {"n": pl.UInt32, "mean": pl.Float64, "low": pl.Float64, "high": pl.Float64}
    return pl.DataFrame(rows, schema={**dict.fromkeys(keys, pl.String), **numbers}, orient="row").with_columns(
        pl.col("mean").fill_nan(None)
    )


def _divided(table: pl.DataFrame, factor: float) -> pl.DataFrame:
    return table.with_columns((table[c] / factor).alias(c) for c in ("mean", "low", "high"))


def _line(x: Sequence[float], part: pl.DataFrame) -> Line:
    return Line(x=x, y=_floats(part["mean"]), low=_floats(part["low"]), high=_floats(part["high"]))


def _shape(seen: View, look: Look, panels: int, layout: Layout) -> tuple[int, int]:
    """Return rows and columns of panels: an axis across has one column per value. Without one, each value of the
    first axis has its own row, if they fit.
    """
    if look.across:
        across = len(seen.axes[look.across].values)
        return -(-panels // across), across
    most = 4 if layout.width is None else max(int(layout.width / 1.5), 1)
    across = min(panels if panels <= 3 else 2 if panels == 4 else 3, most)
    return -(-panels // across), across


def _places(seen: View, look: Look, drawn: Sequence[Sequence[str]], across: int) -> list[int]:
    """Return the position of each panel, counted along the rows: each stays in its column, even if its neighbour is
    missing.
    """
    if look.across is None:
        return list(range(len(drawn)))
    order = {label: i for i, label in enumerate(seen.axes[look.across].labels)}
    rows: dict[tuple[str, ...], int] = {}
    return [rows.setdefault(tuple(place[:-1]), len(rows)) * across + order[place[-1]] for place in drawn]


def _floats(column: pl.Series) -> list[float]:
    return [float("nan") if v is None else float(v) for v in column.to_list()]


def _named(kind: str, seen: View, metric: str = "") -> str:
    """Return the file name: figures with different numbers have different names."""
    parts = [kind, _slug(metric), "normalised" if seen.normal else ""]
    parts += ["minus", _slug("-".join(seen.against))] if seen.against else []
    return "-".join(part for part in parts if part)


def _slug(metric: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in metric)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
