"""Figures for a grid of runs: heat map, lines with bands, distributions, throughput against delay."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ackclock.plot.style import GREY, OKABE_ITO, Series, colours

_COLOURS = [OKABE_ITO[name] for name in ("blue", "vermilion", "green", "purple", "orange", "sky", "black")]
_MARKERS = "osD^vPX"
HATCHES = ("", "///", "...", "\\\\\\", "xxx", "---", "ooo")
_DASHES: list[str | tuple[int, tuple[float, ...]]] = ["-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 2, 1, 2)), (0, (3, 1))]


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A line with its band.

    Parameters
    ----------
    x, y
        Points, in order.
    low, high
        Ends of the interval at each point; infinite if there is none.
    """

    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


def series(labels: Sequence[str]) -> list[Series]:
    """Return styles by label. Colours, markers and dashes repeat with different periods."""
    found = colours() or _COLOURS
    return [
        Series(
            label=label,
            colour=found[i % len(found)],
            marker=_MARKERS[i % len(_MARKERS)],
            dash=_DASHES[i % len(_DASHES)],
        )
        for i, label in enumerate(labels)
    ]


def wide(values: Sequence[float]) -> bool:
    """Return whether values span enough orders of magnitude for a logarithmic axis."""
    return min(values) > 0 and max(values) / min(values) >= 15


def draw_lines(ax: Any, lines: Mapping[str, Line], *, log_x: bool) -> None:
    """Plot means against a grid axis, one line per label, with intervals as bands."""
    for look, line in zip(series(list(lines)), lines.values(), strict=True):
        x, y = np.asarray(line.x, float), np.asarray(line.y, float)
        low, high = np.asarray(line.low, float), np.asarray(line.high, float)
        known = np.isfinite(low) & np.isfinite(high)
        ax.fill_between(x, np.where(known, low, y), np.where(known, high, y), color=look.colour, alpha=0.18, lw=0)
        ax.plot(x, y, color=look.colour, marker=look.marker, ls=look.dash, mec="white", mew=0.5, label=look.label)
    at = sorted({v for line in lines.values() for v in line.x})
    if log_x:
        log_axis(ax.xaxis, at, ax.set_xscale)
    if len(at) <= 6:
        ax.set_xticks(at, [f"{v:.3g}" for v in at])


def draw_bars(ax: Any, categories: Sequence[str], bars: Mapping[str, Line]) -> None:
    """Draw a group of bars for each category, one bar per label, with intervals; missing values get no bar.

    Parameters
    ----------
    categories
        Names along the x axis.
    bars
        Label -> positions in `categories` (x), means (y) and intervals.
    """
    width = 0.8 / max(len(bars), 1)
    for i, (look, bar) in enumerate(zip(series(list(bars)), bars.values(), strict=True)):
        x = np.asarray(bar.x, float) + (i - (len(bars) - 1) / 2) * width
        y, low, high = (np.asarray(values, float) for values in (bar.y, bar.low, bar.high))
        known = np.isfinite(low) & np.isfinite(high)
        hatch = HATCHES[i % len(HATCHES)]
        ax.bar(x, y, 0.9 * width, color=look.colour, hatch=hatch, edgecolor="white", lw=0, label=look.label)
        spread = [np.maximum(y - low, 0)[known], np.maximum(high - y, 0)[known]]
        ax.errorbar(x[known], y[known], yerr=spread, fmt="none", ecolor="black", elinewidth=1, capsize=2)
    slanted = max(map(len, categories), default=0) * len(categories) > 40
    ax.set_xticks(
        range(len(categories)), categories, rotation=30 if slanted else 0, ha="right" if slanted else "center"
    )
    ax.grid(False, axis="x")


def draw_heat_map(
    ax: Any, values: np.ndarray[Any, Any], xs: Sequence[str], ys: Sequence[str], limits: tuple[float, float]
) -> Any:
    """Draw the mean for each pair of values on two axes, also as text if there are few cells.

    Returns
    -------
    matplotlib.image.AxesImage
        Image, for the colour bar.
    """
    image = ax.imshow(values, origin="lower", aspect="auto", cmap="viridis", vmin=limits[0], vmax=limits[1])
    ax.set_xticks(
        range(len(xs)),
        xs,
        rotation=35 if max(map(len, xs)) > 6 else 0,
        ha="right" if max(map(len, xs)) > 6 else "center",
    )
    ax.set_yticks(range(len(ys)), ys)
    ax.grid(False)
    if values.size <= 120:
        middle = (limits[0] + limits[1]) / 2
        for (row, column), value in np.ndenumerate(values):
            if np.isfinite(value):
                colour = "white" if value < middle else "black"
                ax.text(column, row, f"{value:.3g}", ha="center", va="center", fontsize=7, color=colour)
    return image


def draw_distributions(ax: Any, samples: Mapping[str, Sequence[float]], *, log_x: bool) -> None:
    """Draw the fraction of runs at or below each value, one line per label."""
    for look, values in zip(series(list(samples)), samples.values(), strict=True):
        x = np.sort(np.asarray(values, float))
        share = np.arange(1, x.size + 1) / x.size
        ax.step(
            np.concatenate([x[:1], x]),
            np.concatenate([[0.0], share]),
            where="post",
            color=look.colour,
            ls=look.dash,
            label=look.label,
        )
    ax.set_ylim(0, 1.02)
    if log_x:
        log_axis(ax.xaxis, [v for values in samples.values() for v in values], ax.set_xscale)


def draw_pareto(ax: Any, points: Mapping[str, tuple[Sequence[float], Sequence[float]]], *, log_x: bool) -> None:
    """Plot throughput (y) against delay (x) for every cell. A line joins the Pareto-optimal cells."""
    delay = np.concatenate([np.asarray(x, float) for x, _ in points.values()])
    speed = np.concatenate([np.asarray(y, float) for _, y in points.values()])
    best = front(delay, speed)
    ax.step(delay[best], speed[best], where="post", color=GREY, lw=1.2, zorder=1, label="not beaten in both")
    for look, (x, y) in zip(series(list(points)), points.values(), strict=True):
        ax.plot(x, y, ls="none", color=look.colour, marker=look.marker, mec="white", mew=0.5, label=look.label)
    if log_x:
        log_axis(ax.xaxis, delay.tolist(), ax.set_xscale)


def name_points(figure: Any, named: Mapping[Any, Sequence[tuple[float, float, str]]], size: float = 6.5) -> None:
    """Write names beside points, except where they would overlap another name or point or leave the panel.

    Parameters
    ----------
    figure
        Figure in which everything else is already drawn; its layout determines the positions.
    named
        Panel -> x, y and name of each of its points.
    size
        Font size of the names, points.
    """
    from matplotlib.textpath import TextPath

    figure.draw_without_rendering()
    unit = figure.dpi / 72  # pixels per typographic point
    texts = {text for points in named.values() for _, _, text in points}
    wide = {text: unit * float(TextPath((0, 0), text, size=size).get_extents().width) for text in texts}
    reach, high = 3.5 * unit, size * unit
    for ax, points in named.items():
        dots = [tuple(map(float, ax.transData.transform((x, y)))) for x, y, _ in points]
        taken = [(x - reach, y - reach, x + reach, y + reach) for x, y in dots]
        frame = (ax.bbox.x0, ax.bbox.y0, ax.bbox.x1, ax.bbox.y1)
        for (x, y), (at_x, at_y, text) in zip(dots, points, strict=True):
            for right, above in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
                left = x + 5 * unit if right > 0 else x - 5 * unit - wide[text]
                low = y + 2 * unit if above > 0 else y - 2 * unit - high
                box = (left, low, left + wide[text], low + high)
                if _inside(box, frame) and not any(_overlap(box, other) for other in taken):
                    taken.append(box)
                    ax.annotate(
                        text,
                        (at_x, at_y),
                        (5 * right, 2 * above),
                        textcoords="offset points",
                        fontsize=size,
                        color=GREY,
                        ha="left" if right > 0 else "right",
                        va="bottom" if above > 0 else "top",
                    ).set_in_layout(False)
                    break


Box = tuple[float, float, float, float]
"""Left, lower, right and upper edges."""


def _inside(box: Box, frame: Box) -> bool:
    return frame[0] <= box[0] and frame[1] <= box[1] and box[2] <= frame[2] and box[3] <= frame[3]


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def hide_rest(axes: Any, used: Container[int]) -> None:
    """Hide unused panels, counted along the rows, and label the x axes of the lowest panels in use."""
    across = axes.shape[1]
    for i, ax in enumerate(axes.flat):
        if i not in used:
            ax.set_visible(False)
        elif not any(below in used for below in range(i + across, axes.size, across)):
            ax.tick_params(labelbottom=True)


def front(delay: np.ndarray[Any, Any], speed: np.ndarray[Any, Any]) -> list[int]:
    """Return the indices of the Pareto-optimal points in delay and speed, by increasing delay.

    Examples
    --------
    >>> front(np.array([1.0, 2.0, 3.0, 4.0]), np.array([5.0, 4.0, 7.0, 7.0]))
    [0, 2]
    """
    found: list[int] = []
    fastest = -np.inf
    for i in np.lexsort((-speed, delay)):
        if speed[i] > fastest:
            found.append(int(i))
            fastest = float(speed[i])
    return found


def log_axis(axis: Any, values: Sequence[float], set_scale: Any) -> None:
    """Make an axis logarithmic, with plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    set_scale("log")
    decades = np.log10(max(values) / min(values))
    axis.set_major_locator(LogLocator(base=10, subs=(1.0,) if decades > 3 else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axis.set_minor_formatter(NullFormatter())
