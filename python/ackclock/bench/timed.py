"""The benchmark in time: ns of user CPU time per delivered data packet on the reference dumbbell, with tracing off.

Each cell runs in a separate process that has loaded only the engine, so that its peak memory can be measured. The
yardstick (a minimal event loop with four events per packet, which no simulator of this kind can beat by much) runs in
the same process immediately afterwards, so that the ratio of the two is valid on any machine, loaded or not.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ackclock import _child
from ackclock.bench.cells import CELLS, NOT_TCP, BenchCell, scenario
from ackclock.errors import UnavailableError

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["ControllerCost", "Measured", "Report", "measure", "measure_controllers"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """A cell's cost.

    Parameters
    ----------
    rate_bps, flows, congestion_control
        The cell: rate of the bottleneck in bit/s, number of flows, their controller.
    ns_per_packet
        User CPU time per delivered data packet, including its ACK, ns.
    budget_ns
        Bound on that cost; None for cells without one.
    yardstick_ns
        Cost of the bare event loop timed beside it.
    ratio
        Ratio of both costs.
    packets
        Data packets delivered.
    peak_rss_bytes, peak_rss_above_interpreter_bytes
        Peak resident set of the process, bytes, and its excess over that of an interpreter with the package loaded.
    """

    rate_bps: int
    flows: int
    congestion_control: str
    ns_per_packet: float
    budget_ns: int | None
    yardstick_ns: float
    ratio: float
    packets: int
    peak_rss_bytes: int
    peak_rss_above_interpreter_bytes: int


MOST_OVER_RENO = 1.5
"""Bound on the cost per packet of a built-in controller, relative to Reno."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ControllerCost:
    """Cost per packet with one controller: one flow at 100 Mbit/s; all controllers take turns in one process.

    Parameters
    ----------
    congestion_control
        The controller.
    ns_per_packet
        User CPU time per delivered data packet, ns.
    budget_over_reno
        Bound on `over_reno`; None for controllers without one.
    """

    congestion_control: str
    ns_per_packet: float
    over_reno: float
    """Cost relative to Reno in the same process, median of the repeats."""
    budget_over_reno: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """Report on all cells and controllers."""

    cells: Sequence[Measured] = field(repr=False)
    controllers: Sequence[ControllerCost] = field(default=(), repr=False)

    @property
    def yardstick_ns(self) -> float:
        """Return the median over the cells."""
        return statistics.median(cell.yardstick_ns for cell in self.cells)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary."""
        return {
            "yardstick_ns": self.yardstick_ns,
            "cells": [asdict(cell) for cell in self.cells],
            "controllers": [asdict(cost) for cost in self.controllers],
        }

    def table(self) -> Table:
        """Return a table for the terminal."""
        from rich.table import Table

        table = Table(title="user CPU per delivered data packet", title_justify="left", caption_justify="left")
        for name in (
            "bottleneck",
            "flows",
            "controller",
            "ns/packet",
            "budget",
            "yardstick",
            "ratio",
            "peak memory",
            "above start",
        ):
            table.add_column(name, justify="right")
        for c in self.cells:
            table.add_row(
                f"{c.rate_bps / 1e6:,.0f} Mbit/s",
                str(c.flows),
                c.congestion_control,
                f"{c.ns_per_packet:.0f}",
                "–" if c.budget_ns is None else str(c.budget_ns),
                f"{c.yardstick_ns:.0f}",
                f"{c.ratio:.2f}",
                f"{c.peak_rss_bytes / 1e6:.1f} MB",
                f"{c.peak_rss_above_interpreter_bytes / 1e6:.1f} MB",
            )
        table.caption = "yardstick: a bare event loop, ns per packet, measured beside each cell; above start: beyond the interpreter"
        return table

    def controllers_table(self) -> Table:
        """Return the controller table for the terminal."""
        from rich.table import Table

        table = Table(title="the same by controller", title_justify="left", caption_justify="left")
        for name in ("controller", "ns/packet", "times reno", "budget"):
            table.add_column(name, justify="left" if name == "controller" else "right")
        for c in self.controllers:
            budget = "–" if c.budget_over_reno is None else f"{c.budget_over_reno:g}"
            table.add_row(c.congestion_control, f"{c.ns_per_packet:.0f}", f"{c.over_reno:.2f}", budget)
        table.caption = "one flow at 100 Mbit/s, in turn in one process; custom:reno is Reno written in Python, reno-by-round one that is called once per round trip"
        return table


def measure(
    *,
    quick: bool = False,
    progress: Callable[[str, float], None] | None = None,
    cells: Sequence[BenchCell] = CELLS,
) -> Report:
    """Run every cell.

    Parameters
    ----------
    quick
        Whether to use a tenth of the simulated time and one repeat: start-up then weighs more, so figures are higher.
    progress
        Called with the cell and the fraction done.
    cells
        Cells to measure.

    Returns
    -------
    Report
        Medians of five repeats (one if quick).

    Raises
    ------
    UnavailableError
        If a cell's process fails.
    """
    from ackclock.scenario import Scenario

    done = []
    for i, cell in enumerate(cells):
        if progress is not None:
            progress(f"{cell.rate_mbps} Mbit/s, {cell.flows} flows", i / len(cells))
        shorter = scenario(cell)
        if quick:
            shorter["duration"] = f"{max(cell.duration_s // 10, 2)} s"
        text = Scenario.from_dict(shorter).to_engine_json()
        raw = _in_fresh_process(text, repeats=1 if quick else 5)
        ns = statistics.median(raw["ns"])
        yardstick = statistics.median(raw["yardstick"])
        done.append(
            Measured(
                rate_bps=cell.rate_mbps * 1_000_000,
                flows=cell.flows,
                congestion_control=cell.congestion_control,
                ns_per_packet=ns,
                budget_ns=cell.budget_ns,
                yardstick_ns=yardstick,
                ratio=ns / yardstick,
                packets=raw["packets"],
                peak_rss_bytes=raw["peak"],
                peak_rss_above_interpreter_bytes=raw["peak"] - raw["start"],
            )
        )
    if progress is not None:
        progress("", 1.0)
    return Report(cells=tuple(done), controllers=measure_controllers(quick=quick))


def measure_controllers(*, quick: bool = False) -> tuple[ControllerCost, ...]:
    """Run every controller on the reference dumbbell with one flow at 100 Mbit/s, in turn.

    Parameters
    ----------
    quick
        Whether to use a fifth of the simulated time, and three repeats instead of seven.

    Returns
    -------
    tuple of ControllerCost
        Costs in the order of the registry, followed by a controller written in Python, once for each way of running
        it.

    Raises
    ------
    UnavailableError
        If the process fails.
    """
    from ackclock import _engine
    from ackclock.scenario import Scenario

    names = [name for name, _ in _engine.registry()["controllers"] if not name.startswith(NOT_TCP)]
    texts = {}
    for name in (*names, *OWN):
        controller = name.partition(",")[0]
        cell = BenchCell(rate_mbps=100, flows=1, duration_s=4 if quick else 20, congestion_control=controller)
        texts[name] = Scenario.from_dict(scenario(cell)).to_engine_json()
    raw = _in_fresh_process(texts, repeats=3 if quick else 7)["ns"]
    costs = []
    for name in texts:
        ratios = [own / reno for own, reno in zip(raw[name], raw["reno"], strict=True)]
        costs.append(
            ControllerCost(
                congestion_control=name,
                ns_per_packet=statistics.median(raw[name]),
                over_reno=statistics.median(ratios),
                budget_over_reno=OWN.get(name, MOST_OVER_RENO),
            )
        )
    return tuple(costs)


OWN = {"custom:reno": 3.0, "custom:reno, run_batch": 3.6, "custom:reno-by-round": 1.5}
"""Python controllers, the way they run, and a bound on the cost per packet relative to Reno; a batch may cost a
fifth more than a run.
"""


def _in_fresh_process(text: str | dict[str, str], *, repeats: int) -> dict[str, Any]:
    ask = json.dumps({"scenario": text, "repeats": repeats})
    done = _child.run(_child.python("ackclock._bench_cell:main"), input=ask)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise UnavailableError(f"bench: a cell's process failed: {last}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result
