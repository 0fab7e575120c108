"""What the paper's experiments share: the protocols compared, and how numbers are read from tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from ackclock.plot import OKABE_ITO
from ackclock.stats import Estimate, mean_interval
from ackclock.study import Tables
from ackclock.study.estimates import Array, quotient

PACKET_BYTES = 1500

JITTER = "1 ms"
"""Of the links from the senders, where several flows meet: a tick of the kernel's clock at 1000 Hz, which testbeds of the
time had in senders and emulated links. Flows with perfect clocks lock in step (see `convergence`)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Arm:
    """A protocol with its settings, and its look in figures.

    Parameters
    ----------
    name
        In tables and legends.
    flow
        Keys of a group of flows.
    payload
        Bytes of a full packet of 1500 that are data.
    """

    name: str
    colour: str
    marker: str
    flow: Mapping[str, Any] = field(default_factory=dict, hash=False)
    dash: str = "-"
    payload: int = 1448

    def flows(self, **keys: Any) -> dict[str, Any]:
        """A group of flows of this protocol."""
        return {**self.flow, **keys}

    def carried(self, rate_bps: float) -> float:
        """Goodput that a link can carry, bit/s."""
        return rate_bps * self.payload / PACKET_BYTES

    def look(self) -> dict[str, Any]:
        """Keywords of matplotlib."""
        return {"color": OKABE_ITO[self.colour], "marker": self.marker, "ls": self.dash, "label": self.name}


def pcc(name: str, controller: str, colour: str, marker: str, dash: str = "-", **options: Any) -> Arm:
    """A form of PCC."""
    flow: dict[str, Any] = {"congestion_control": controller}
    if options:
        flow["congestion_control_options"] = options
    return Arm(name=name, flow=flow, colour=colour, marker=marker, dash=dash, payload=1456)


def tcp(name: str, controller: str, colour: str, marker: str, dash: str = "-", **stack: Any) -> Arm:
    """A controller of TCP."""
    flow: dict[str, Any] = {"congestion_control": controller}
    if stack:
        flow["stack"] = stack
    return Arm(name=name, flow=flow, colour=colour, marker=marker, dash=dash)


PCC = pcc("PCC", "pcc-allegro-modong", "blue", "o")
"""With the constants of its authors' code of that time, with which the paper's numbers were measured."""
PRINTED = pcc("PCC as printed", "pcc-allegro", "sky", "s", "--")
"""With those that the paper prints."""
CUBIC = tcp("CUBIC", "cubic", "orange", "^")
ILLINOIS = tcp("Illinois", "illinois", "vermilion", "v")
HYBLA = tcp("Hybla", "hybla", "green", "D")
NEWRENO = tcp("NewReno", "reno", "purple", "P")


def only(table: pl.DataFrame, keys: Mapping[str, Any]) -> pl.DataFrame:
    """Rows whose columns have these values."""
    return table.filter(*[pl.col(name) == value for name, value in keys.items()])


def pick(tables: Tables, table: str, column: str, **keys: Any) -> Array:
    """A column of a table, one value per run."""
    return only(tables[table], keys)[column].to_numpy().astype(np.float64)


def mean(tables: Tables, table: str, column: str, factor: float = 1.0, **keys: Any) -> Estimate:
    """Mean over runs with Student's t interval."""
    return mean_interval(factor * pick(tables, table, column, **keys))


def times(tables: Tables, table: str, column: str, first: Arm, second: Arm, **keys: Any) -> Estimate:
    """How many times the mean of the second arm that of the first is."""
    return quotient(
        mean(tables, table, column, arm=first.name, **keys), mean(tables, table, column, arm=second.name, **keys)
    )


def values(tables: Tables, table: str, key: str) -> list[Any]:
    """Different values of a column, in order."""
    return sorted(tables[table][key].unique().to_list())


def summary(table: pl.DataFrame, by: Sequence[str], column: str) -> pl.DataFrame:
    """Mean, least and greatest of a column over runs."""
    c = pl.col(column)
    return table.group_by(*by, maintain_order=True).agg(
        c.mean().alias(column), c.min().alias("least"), c.max().alias("greatest"), pl.len().alias("runs")
    )


def ticks(axis: Any, at: Sequence[float]) -> None:
    """Plain numbers on a logarithmic axis."""
    axis.set_ticks(at)
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")


def curves(ax: Any, found: pl.DataFrame, arms: Sequence[Arm], x: str, y: str) -> None:
    """Means as a line for each arm; the shade spans least and greatest."""
    for arm in arms:
        own = found.filter(pl.col("arm") == arm.name).sort(x)
        if not own.height:
            continue
        look = arm.look()
        ax.plot(own[x], own[y], ms=4, lw=1.3, **look)
        ax.fill_between(own[x], own["least"], own["greatest"], color=look["color"], alpha=0.12, lw=0)
