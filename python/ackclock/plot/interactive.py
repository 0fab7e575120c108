"""Traces as plotly figures (plain dictionaries), for reports in which readers zoom, hover and switch between runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.plot.style import GREY, OKABE_ITO
from ackclock.plot.traces import STATES, dropped_sends, sack_segments, sequence, state_spans, thin, windows

_FONT = {"family": "system-ui, sans-serif", "size": 13, "color": "#222222"}


def layout(*, x: str, y: str, height: int = 460, **more: Any) -> dict[str, Any]:
    """Return the layout shared by all interactive figures."""
    axis = {"gridcolor": "#e6e6e6", "zeroline": False, "linecolor": "#888888", "ticks": "outside"}
    return {
        "font": _FONT,
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "#ffffff",
        "autosize": True,
        "height": height,
        "margin": {"l": 60, "r": 15, "t": 60, "b": 50},
        "hovermode": "closest",
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "xaxis": {**axis, "title": {"text": x}, "rangemode": "tozero"},
        "yaxis": {**axis, "title": {"text": y}, "rangemode": "tozero"},
        **more,
    }


def switch(choices: Mapping[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]], **base: Any) -> dict[str, Any]:
    """Return one figure with a menu. Each choice has its own lines and background shapes.

    Parameters
    ----------
    choices
        Label -> (plotly traces, plotly shapes). The first is shown at the start.
    **base
        Arguments of `layout`.
    """
    data: list[dict[str, Any]] = []
    owner: list[str] = []
    for label, (lines, _) in choices.items():
        data += lines
        owner += [label] * len(lines)
    first = next(iter(choices))
    buttons = [
        {
            "label": label,
            "method": "update",
            "args": [{"visible": [o == label for o in owner]}, {"shapes": shapes}],
        }
        for label, (_, shapes) in choices.items()
    ]
    for line, label in zip(data, owner, strict=True):
        line["visible"] = label == first
    figure: dict[str, Any] = {"data": data, "layout": layout(**base)}
    figure["layout"]["shapes"] = choices[first][1]
    figure["layout"]["margin"] = {"l": 60, "r": 15, "t": 95, "b": 50}
    figure["layout"]["updatemenus"] = [
        {"buttons": buttons, "x": 0, "xanchor": "left", "y": 1.12, "yanchor": "bottom", "showactive": True}
    ]
    return figure


def bands(acks: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the congestion states as shaded rectangles of full height."""
    return [shade(begin, end, STATES[state]) for begin, end, state in state_spans(acks)]


def shade(begin: float, end: float, colour: str) -> dict[str, Any]:
    """Return a rectangle of full height that shades a time interval behind the curves."""
    return {
        "type": "rect",
        "xref": "x",
        "yref": "paper",
        "x0": round(begin, 6),
        "x1": round(end, 6),
        "y0": 0,
        "y1": 1,
        "fillcolor": colour,
        "line": {"width": 0},
        "layer": "below",
    }


def escaped(text: str) -> str:
    """Escape text for plotly, which interprets some HTML in labels."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def window_lines(acks: pl.DataFrame, *, most: int = 4000) -> list[dict[str, Any]]:
    """Return curves of cwnd, pipe and ssthresh over time."""
    table = thin(windows(acks), most)
    t = _numbers(table["t_s"], 4)

    def line(name: str, colour: str, dash: str, width: float) -> dict[str, Any]:
        return {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": t,
            "y": table[name].to_list(),
            "text": table["ca_state"].to_list(),
            "hovertemplate": f"{name} %{{y}} segments<br>%{{x:.3f}} s, %{{text}}<extra></extra>",
            "line": {"color": colour, "dash": dash, "width": width, "shape": "hv"},
        }

    return [
        line("pipe", GREY, "solid", 1),
        line("cwnd", OKABE_ITO["blue"], "solid", 2),
        line("ssthresh", OKABE_ITO["vermilion"], "dash", 1.5),
    ]


def sequence_lines(
    acks: pl.DataFrame, drops: pl.DataFrame | None = None, *, most: int | None = None
) -> list[dict[str, Any]]:
    """Return a time-sequence figure: sent, retransmitted, dropped, SACKed, acknowledged.

    Parameters
    ----------
    acks
        Trace of one connection's sender.
    drops
        Dropped packets of the connection.
    most
        Maximum number each of originals, ACKs and SACK blocks; those in recoveries take precedence. Every
        retransmission and every drop is drawn. None: no maximum.
    """
    parts = sequence(acks)
    sacks = sack_segments(acks)
    if most is not None:
        spans = state_spans(acks)
        parts = {**parts, "new": _near(parts["new"], spans, most), "ack": _near(parts["ack"], spans, most)}
        sacks = sacks[:: max(-(-len(sacks) // most), 1)]
    sacked_x: list[float | None] = []
    sacked_y: list[float | None] = []
    for t, begin, end in sacks:
        sacked_x += [round(float(t), 6), round(float(t), 6), None]
        sacked_y += [float(begin) / 1000, float(end) / 1000, None]

    def points(table: pl.DataFrame, name: str, colour: str, symbol: str, size: int) -> dict[str, Any]:
        label = [
            f"segment {seg}" + (f", retransmission {rexmit}" if rexmit else "")
            for seg, rexmit in zip(table["seg_no"], table["rexmit"], strict=True)
        ]
        return {
            "type": "scatter",
            "mode": "markers",
            "name": name,
            "x": _numbers(table["t_s"], 6),
            "y": _numbers(table["seq"] / 1000, 3),
            "text": label,
            "hovertemplate": "%{text}<br>%{x:.4f} s, %{y} kB<extra>" + name + "</extra>",
            "marker": {
                "color": colour,
                "symbol": symbol,
                "size": size,
                "line": {"color": colour, "width": 2 * (symbol == "x-thin")},
            },
        }

    lines = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "newest SACK block",
            "x": sacked_x,
            "y": sacked_y,
            "line": {"color": "#b9a1c7", "width": 3},
            "hovertemplate": "SACK, %{x:.4f} s, edge %{y} kB<extra></extra>",
        },
        {
            "type": "scatter",
            "mode": "lines",
            "name": "acknowledged",
            "x": _numbers(parts["ack"]["t_s"], 6),
            "y": _numbers(parts["ack"]["seq"] / 1000, 3),
            "line": {"color": OKABE_ITO["green"], "width": 2, "shape": "hv"},
            "hovertemplate": "ACK %{y} kB, %{x:.4f} s<extra></extra>",
        },
        points(parts["new"], "sent", "#000000", "circle", 6),
        points(parts["rtx"], "retransmitted", OKABE_ITO["vermilion"], "triangle-up", 9),
    ]
    if drops is not None and drops.height:
        lines.append(points(dropped_sends(acks, drops), "dropped by the network", OKABE_ITO["blue"], "x-thin", 9))
    return lines


def _near(table: pl.DataFrame, spans: Sequence[tuple[float, float, str]], most: int) -> pl.DataFrame:
    """Thin a table: two thirds of the rows come from recoveries and the tenth of a second before each, the rest evenly from all rows."""
    if table.height <= most:
        return table
    t = table["t_s"].to_numpy()
    inside = np.zeros(len(t), dtype=bool)
    for begin, end, _ in spans:
        inside[np.searchsorted(t, begin - 0.1) : np.searchsorted(t, end, "right")] = True
    close = np.flatnonzero(inside)[: 2 * most // 3]
    evenly = np.linspace(0, len(t) - 1, most - len(close)).astype(int)
    return table[np.unique(np.concatenate([close, evenly]))]


def _numbers(column: pl.Series, digits: int) -> list[Any]:
    return column.cast(pl.Float64).round(digits).to_list()
