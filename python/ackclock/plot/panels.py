"""A run over time: goodput, RTT, windows, data in flight, queues. One panel each, for paper and for the screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ackclock._results.columns import of_senders
from ackclock.plot import grid, interactive
from ackclock.plot.style import Series
from ackclock.plot.traces import STATES, state_spans

if TYPE_CHECKING:
    from ackclock._results.result import Run
    from ackclock.formats import Measured

__all__ = ["CROWD", "Curve", "Panel", "draw", "extremes", "flow_names", "live", "panels", "thinned"]

DOTS = (0, (1, 1.2))
CROWD = 8
"""Maximum number of flows drawn individually in a panel; for more, it shows the spread within each group."""

APART = 0.1
"""Relative excess of a flow's maximum goodput over its maximum arrival rate above which arrivals are drawn as well."""

POINTS = 1200
"""Number of points per curve on the screen."""

Numbers = np.ndarray[Any, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """A quantity over time.

    Parameters
    ----------
    look
        Label, colour, dash.
    t, y
        Times, s, and values; NaN leaves a gap.
    low, high
        10th and 90th percentiles of the flows whose median is `y`; None for a single flow.
    faint
        Whether the curve is secondary, such as ssthresh with cwnd.
    """

    look: Series
    t: Numbers
    y: Numbers
    low: Numbers | None = None
    high: Numbers | None = None
    faint: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """One quantity for all flows, or for all queues.

    Parameters
    ----------
    name
        Stem of its files.
    title, y
        Title; label of the axis with its unit.
    curves
        Curves to draw.
    spans
        Periods in which a sender's congestion state was not Open: start, end, state.
    held
        Whether a value holds until the next one (a step), or values are interpolated (a line).
    caption
        Explanation, if the title does not suffice.
    """

    name: str
    title: str
    y: str
    curves: tuple[Curve, ...]
    spans: tuple[tuple[float, float, str], ...] = ()
    held: bool = True
    caption: str = ""


def flow_names(run: Run) -> list[str]:
    """Return the name of each flow: its number, and its group's controller or workload."""
    groups = run.scenario.flows
    rows = run.rows("flows")
    return [f"{row['flow']} {groups[row['group']].label}" for row in rows]


def group_names(run: Run) -> list[str]:
    """Return the group names, with numbers if several are the same."""
    labels = [group.label for group in run.scenario.flows]
    return [label if labels.count(label) == 1 else f"{i} {label}" for i, label in enumerate(labels)]


def panels(run: Run, beside: Sequence[Measured] = ()) -> list[Panel]:
    """Return all panels for which the run has recorded data.

    Parameters
    ----------
    run
        Run to draw.
    beside
        External measurements to draw in the same panels, at most `CROWD` flows of each.
    """
    flows = _Flows(run, beside)
    arrived = flows.delivered(_whole(run.goodput))
    made = [
        Panel(
            name="goodput",
            title="Goodput" + (", and what arrived thin" if arrived else ""),
            y="Mbit/s (thin: arrived)" if arrived else "goodput (Mbit/s)",
            curves=flows.curves(_whole(run.goodput), "goodput_bps", 1e-6)
            + arrived
            + flows.beside("goodput", "goodput_bps", 1e-6),
            held=False,
            caption="Bytes that were acknowledged in order: when a hole is filled, all that waited behind it counts at once, and an interval may "
            "show more than the link carries. Thin: bytes that arrived, in order or not, of flows of which more was acknowledged in an interval than arrived in any.",
        ),
        Panel(
            name="rtt",
            title="Round-trip time",
            y="smoothed RTT (ms)",
            curves=flows.curves(run.samples, "srtt_s", 1e3) + flows.beside("samples", "srtt_s", 1e3),
        ),
        Panel(
            name="cwnd",
            title="Congestion window" + (", and ssthresh thin" if flows.few else ""),
            y="window (segments)",
            curves=flows.curves(run.samples, "cwnd")
            + (flows.thresholds(run.samples) if flows.few else ())
            + flows.beside("samples", "cwnd"),
            spans=_states(run),
        ),
        Panel(
            name="in_flight",
            title="Data in flight",
            y="pipe (segments)",
            curves=flows.curves(run.samples, "in_flight") + flows.beside("samples", "in_flight"),
        ),
        Panel(
            name="rwnd",
            title="The receiver's window",
            y="window (kB)",
            curves=flows.curves(run.samples, "rwnd", 1e-3) + flows.beside("samples", "rwnd", 1e-3)
            if "rwnd" in run.samples.columns
            else (),
            caption="Window that the receiver offers: the sender has at most this much outstanding.",
        ),
        Panel(name="queue", title="Queues", y="queue (packets)", curves=_queues(run, beside)),
        *_variables(run, flows),
    ]
    return [panel for panel in made if panel.curves]


SHARED = {"t_s", "flow", "idx", "ack_no", "cwnd", "ssthresh", "pacing_bps"}
"""Columns of the table `controllers` that are common to all controllers."""

SCALES = {"_s": (1e3, "ms"), "_bps": (1e-6, "Mbit/s"), "_segments": (1.0, "segments"), "_packets": (1.0, "packets")}
"""Suffix of a variable's name -> factor, and unit in figures."""

MOST_VARIABLES = 12


def _variables(run: Run, flows: _Flows) -> list[Panel]:
    """Return panels of the controllers' own variables, if they were recorded."""
    table = run.controllers
    made = []
    for name in [column for column in table.columns if column not in SHARED][:MOST_VARIABLES]:
        if not table[name].dtype.is_numeric() or not table[name].drop_nulls().len():
            continue
        scale, unit = next((found for end, found in SCALES.items() if name.endswith(end)), (1.0, ""))
        end = next((end for end in SCALES if name.endswith(end)), "")
        what = name.removesuffix(end).replace("_", " ")
        made.append(
            Panel(
                name=f"controller-{name}",
                title=f"The controller's {what}",
                y=f"{what} ({unit})" if unit else what,
                curves=tuple(c for c in flows.curves(table, name, scale) if np.isfinite(c.y).any()),
            )
        )
    return made


IDLE = 0.1
"""Fraction of the run: figures omit an all-zero end that is longer."""


def busy_until(drawn: Sequence[Panel]) -> float | None:
    """Return the end time for figures, s, if at least the last tenth of the run is zero; otherwise None."""
    curves = [curve for panel in drawn for curve in panel.curves if curve.t.size]
    last = max((float(curve.t[-1]) for curve in curves), default=0.0)
    busy = [float(curve.t[above[-1]]) for curve in curves if (above := np.flatnonzero(curve.y > 0)).size]
    end = max(busy, default=last)
    return 1.02 * end if 0 < end < (1 - IDLE) * last else None


def _whole(goodput: pl.DataFrame) -> pl.DataFrame:
    """Drop the last interval if the end of the run cut it short."""
    if not goodput.height:
        return goodput
    ends = goodput["t_s"].unique().sort()
    if ends.len() < 2 or ends[-1] - ends[-2] > 0.99 * ends[0]:
        return goodput
    return goodput.filter(pl.col("t_s") < ends[-1])


def _apart(arrived: np.ndarray[Any, Any], acknowledged: np.ndarray[Any, Any]) -> bool:
    """Return whether more was acknowledged in some interval than arrived in any interval. Data buffered behind a gap is
    acknowledged all at once when the gap is filled.
    """
    return bool(acknowledged.max() > (1 + APART) * arrived.max())


def _second(curve: Curve, what: str) -> Curve:
    """Return a secondary curve in the flow's colour, with a different dash pattern."""
    dash: Any = DOTS if curve.look.dash != DOTS else "-"
    return replace(curve, look=replace(curve.look, label=f"{curve.look.label} {what}", dash=dash), faint=True)


class _Flows:
    """A run's flows as drawn: individually, or by group."""

    def __init__(self, run: Run, beside: Sequence[Measured]) -> None:
        rows = run.rows("flows")
        self.few = len(rows) <= CROWD
        names = flow_names(run)
        groups = sorted({row["group"] for row in rows})
        labels = names if self.few else [_group_label(run, group, rows) for group in groups]
        self.others = [(other, flow) for other in beside for flow in range(min(len(other.flows), CROWD))]
        looks = grid.series([*labels, *(f"{other.name}: {other.flows[flow]}" for other, flow in self.others)])
        self.looks, self.other_looks = looks[: len(labels)], looks[len(labels) :]
        self.members = (
            [[row["flow"]] for row in rows]
            if self.few
            else [[row["flow"] for row in rows if row["group"] == group] for group in groups]
        )

    def curves(self, table: pl.DataFrame, column: str, scale: float = 1.0) -> tuple[Curve, ...]:
        if not table.height:
            return ()
        made = [
            self._curve(look, table, column, scale, flows) for look, flows in zip(self.looks, self.members, strict=True)
        ]
        return tuple(curve for curve in made if curve is not None)

    def beside(self, table: str, column: str, scale: float = 1.0) -> tuple[Curve, ...]:
        """Return curves of the same quantity from external measurements."""
        made = [
            self._curve(look, getattr(other, table), column, scale, [flow])
            for look, (other, flow) in zip(self.other_looks, self.others, strict=True)
        ]
        return tuple(curve for curve in made if curve is not None and np.isfinite(curve.y).any())

    def delivered(self, goodput: pl.DataFrame) -> tuple[Curve, ...]:
        """Return curves of the data that arrived, in order or not, for flows whose goodput exceeds it."""
        if not self.few or "delivered_bps" not in goodput.columns:  # not reported by the kernel
            return ()
        acknowledged = {curve.look.label: curve.y for curve in self.curves(goodput, "goodput_bps", 1e-6)}
        return tuple(
            _second(curve, "arrived")
            for curve in self.curves(goodput, "delivered_bps", 1e-6)
            if _apart(curve.y, acknowledged[curve.look.label])
        )

    def thresholds(self, samples: pl.DataFrame) -> tuple[Curve, ...]:
        if not samples.height:
            return ()
        return tuple(
            _second(curve, "ssthresh") for curve in self.curves(samples, "ssthresh") if np.isfinite(curve.y).any()
        )

    def _curve(
        self, look: Series, table: pl.DataFrame, column: str, scale: float, flows: Sequence[int]
    ) -> Curve | None:
        mine = table.filter(pl.col("flow").is_in(flows))
        if column == "srtt_s":
            mine = mine.filter(pl.col(column) > 0)  # zero before the first sample
        if not mine.height:
            return None
        value = pl.col(column).cast(pl.Float64) * scale
        if len(flows) == 1:
            return Curve(look=look, t=_array(mine["t_s"]), y=_array(mine.select(value).to_series()))
        spread = (
            mine.group_by("t_s")
            .agg(
                value.median().alias("y"),
                value.quantile(0.1, "linear").alias("low"),
                value.quantile(0.9, "linear").alias("high"),
            )
            .sort("t_s")
        )
        return Curve(
            look=look,
            t=_array(spread["t_s"]),
            y=_array(spread["y"]),
            low=_array(spread["low"]),
            high=_array(spread["high"]),
        )


def _group_label(run: Run, group: int, rows: Sequence[Mapping[str, Any]]) -> str:
    many = sum(row["group"] == group for row in rows)
    return f"{many} x {run.scenario.flows[group].label}"


def _queues(run: Run, beside: Sequence[Measured] = ()) -> tuple[Curve, ...]:
    found = [(name, rows) for name, rows in _queued(run)]
    for other in beside:
        if other.run is not None:
            found += [(f"{other.name}: {name}", rows) for name, rows in _queued(other.run)]
    looks = grid.series([name for name, _ in found])
    return tuple(
        Curve(look=look, t=_array(rows["t_s"]), y=_array(rows["packets"]))
        for look, (_, rows) in zip(looks, found, strict=True)
    )


def _queued(run: Run) -> list[tuple[str, pl.DataFrame]]:
    """Return the samples from the longest queues, with the link's name."""
    samples = run.queue_samples
    if not samples.height:
        return []
    names = {row["link"]: row["name"] for row in run.rows("links")}
    mean = dict(samples.group_by("link").agg(pl.col("packets").mean()).iter_rows())
    longest = sorted(mean, key=lambda link: -mean[link])[:CROWD]
    used = sorted(link for link in longest if mean[link] > 0.01 * mean[longest[0]])
    return [(names[link], samples.filter(pl.col("link") == link)) for link in used]


def _states(run: Run) -> tuple[tuple[float, float, str], ...]:
    """Return the congestion states of a single flow. Those of several flows would overlap."""
    if len(run.rows("flows")) != 1:
        return ()
    source = of_senders(run.acks) if run.acks.height else run.samples
    return tuple(state_spans(source)) if source.height else ()


def _array(column: pl.Series) -> Numbers:
    return column.cast(pl.Float64).fill_null(float("nan")).to_numpy()


def extremes(t: Numbers, y: Numbers, most: int = POINTS) -> tuple[Numbers, Numbers]:
    """Thin a curve without changing its appearance: keep the first, minimum, maximum and last value of each of many
    equal parts.

    Parameters
    ----------
    t, y
        A curve, by increasing time.
    most
        Approximate number of points to keep.

    Returns
    -------
    tuple of arrays
        Times and values of the remaining points.

    Examples
    --------
    >>> t = np.arange(100_000.0)
    >>> y = np.where(t == 77_777, 9.0, 1.0)
    >>> thin_t, thin_y = extremes(t, y, 100)
    >>> len(thin_t) <= 104, thin_y.max()
    (True, np.float64(9.0))
    """
    if len(t) <= most:
        return t, y
    edges = np.linspace(0, len(t), max(most // 4, 1) + 1).astype(int)
    kept: list[int] = []
    for begin, end in pairwise(edges):
        part = y[begin:end]
        if np.isfinite(part).any():
            kept += {begin, begin + int(np.nanargmin(part)), begin + int(np.nanargmax(part)), end - 1}
        else:
            kept.append(begin)
    chosen = np.unique(np.asarray(kept))
    return t[chosen], y[chosen]


def thinned(table: pl.DataFrame, column: str, most: int) -> pl.DataFrame:
    """Thin a table sorted by time to about `most` rows, keeping the extremes of the column."""
    if table.height <= most:
        return table
    rows, _ = extremes(np.arange(table.height, dtype=float), _array(table[column]), most)
    return table[rows.astype(int)]


def draw(ax: Any, panel: Panel) -> None:
    """Draw a panel with matplotlib."""
    for begin, end, state in panel.spans:
        ax.axvspan(begin, end, color=STATES[state], lw=0, zorder=0)
    for curve in panel.curves:
        if curve.low is not None and curve.high is not None:
            ax.fill_between(curve.t, curve.low, curve.high, color=curve.look.colour, alpha=0.18, lw=0)
        t, y = extremes(curve.t, curve.y)
        ax.plot(
            t,
            y,
            color=curve.look.colour,
            ls=curve.look.dash,
            lw=0.9 if curve.faint else 1.3,
            alpha=0.7 if curve.faint else 1.0,
            drawstyle="steps-post" if panel.held else "default",
            label=None if curve.faint else curve.look.label,
        )
    ax.set_ylabel(panel.y)
    ax.set_xlabel("time (s)")
    ax.set_ylim(bottom=0)
    ax.margins(x=0.01)
    named = sum(not curve.faint for curve in panel.curves)
    if named > 1:  # above the axes, so that it does not cover a curve
        narrow = ax.figure.get_size_inches()[0] < 5
        ax.legend(ncols=min(named, 2 if narrow else 4), loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)


def live(panel: Panel) -> dict[str, Any]:
    """Return the panel as a plotly figure."""
    lines: list[dict[str, Any]] = []
    for curve in panel.curves:
        lines += _band(curve)
        lines.append(_line(curve, "hv" if panel.held else "linear"))
    figure: dict[str, Any] = {"data": lines, "layout": interactive.layout(x="time (s)", y=panel.y, height=250)}
    figure["layout"]["margin"] = {"l": 60, "r": 15, "t": 34, "b": 40}
    figure["layout"]["legend"]["traceorder"] = "normal"
    figure["layout"]["showlegend"] = len(panel.curves) > 1
    figure["layout"]["shapes"] = [
        interactive.shade(begin, end, STATES[state]) for begin, end, state in panel.spans[:400]
    ]
    return figure


def _dash(dash: Any) -> str:
    if dash == "-":
        return "solid"
    return "dashdot" if len(dash[1]) > 2 else "dash" if dash[1][0] > 2 else "dot"


def _line(curve: Curve, shape: str) -> dict[str, Any]:
    t, y = extremes(curve.t, curve.y)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": interactive.escaped(curve.look.label),
        "x": [round(float(v), 4) for v in t],
        "y": [None if np.isnan(v) else float(f"{v:.5g}") for v in y],
        "opacity": 0.7 if curve.faint else 1.0,
        "hovertemplate": "%{y} at %{x} s<extra>" + interactive.escaped(curve.look.label) + "</extra>",
        "line": {
            "color": curve.look.colour,
            "width": 1.2 if curve.faint else 1.8,
            "dash": _dash(curve.look.dash),
            "shape": shape,
        },
    }


def _band(curve: Curve) -> list[dict[str, Any]]:
    if curve.low is None or curve.high is None:
        return []
    edges = []
    for values, fill in ((curve.low, None), (curve.high, "tonexty")):
        t, y = extremes(curve.t, values, POINTS // 2)
        edge: dict[str, Any] = {
            "type": "scatter",
            "mode": "lines",
            "x": [round(float(v), 4) for v in t],
            "y": [None if np.isnan(v) else float(f"{v:.4g}") for v in y],
            "line": {"width": 0},
            "hoverinfo": "skip",
            "showlegend": False,
        }
        if fill:
            edge |= {"fill": fill, "fillcolor": curve.look.colour + "2e"}
        edges.append(edge)
    return edges
