"""Reads flent's data files (`.flent.gz`, or unpacked): the measurements of each TCP flow.

JSON with `raw_values`, the tools' output by series: from netperf `t` (s, the end of an interval), `dur` and `val`
(Mbit/s); from the socket statistics that flent collects with `ss`, `t`, `tcp_cwnd` (segments) and `tcp_rtt` (ms). Files
of version 1 and 2 have only `x_values` and `results`, at a fixed step. Source: flent's `doc/data-format.rst`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ackclock.errors import InputError
from ackclock.formats.measured import Measured, frames

__all__ = ["is_flent", "read"]

KEYS = {"x_values", "results"}

RATE = "Mbits/s"
"""Unit of the series that are rates."""

COMPUTED = (" avg", " sum", " totals")
"""Suffixes of series that flent derives from others."""

INNER = "::tcp_"
"""Separator between a flow's name and the name of a value collected with `ss`."""


def is_flent(value: Mapping[str, Any]) -> bool:
    """Return whether an object is a flent file."""
    return set(value) >= KEYS


def read(value: Mapping[str, Any], *, name: str) -> Measured:
    """Return the TCP flows of the file.

    Parameters
    ----------
    value
        JSON object of the file.
    name
        Name in figures.

    Raises
    ------
    InputError
        If it holds no TCP flow.
    """
    raw = value.get("raw_values") or {}
    about = value.get("metadata") or {}
    meta = about.get("SERIES_META") or {}
    flows = [series for series in value["results"] if _is_flow(series, meta)]
    begin = min((float(row["t"]) for rows in raw.values() for row in rows if "t" in row), default=0.0)
    samples: list[dict[str, Any]] = []
    goodput: list[dict[str, Any]] = []
    kept: list[str] = []
    for series in flows:
        flow = len(kept)
        rows = raw.get(series) or []
        rates = [{"t_s": float(row["t"]) - begin, "val": row["val"]} for row in rows if row.get("val") is not None]
        rates = rates or list(_stepped(value, series))
        looks = [row for row in rows if row.get("tcp_cwnd") is not None]
        if not rates and not looks:
            continue
        kept.append(series)
        goodput += [{"t_s": row["t_s"], "flow": flow, "goodput_bps": float(row["val"]) * 1e6} for row in rates]
        for row in looks:
            one = {"t_s": float(row["t"]) - begin, "flow": flow, "cwnd": float(row["tcp_cwnd"])}
            if row.get("tcp_rtt") is not None:
                one["srtt_s"] = float(row["tcp_rtt"]) * 1e-3
            samples.append(one)
    if not kept:
        raise InputError("found a file of flent without a flow of TCP over time; allowed: one of a test that has some")
    made = frames(samples, goodput)
    return Measured(name=name, kind="flent", flows=tuple(kept), samples=made[0], goodput=made[1])


def _is_flow(series: str, meta: Mapping[str, Any]) -> bool:
    if not series.startswith("TCP") or series.endswith(COMPUTED) or INNER in series:
        return False
    return bool(meta.get(series, {}).get("UNITS", RATE) == RATE)


def _stepped(value: Mapping[str, Any], series: str) -> Iterator[dict[str, Any]]:
    for t, rate in zip(value["x_values"], value["results"][series], strict=False):
        if rate is not None:
            yield {"t_s": float(t), "val": rate}
