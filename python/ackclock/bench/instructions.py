"""The benchmark in instructions: number executed by the engine per delivered data packet, by part of the engine.
Cachegrind counts them, so the figure is the same on an idle and on a busy machine. Each cell is run twice, up to
the start and up to the end of counting; the difference, divided by the packets delivered in between, is free of
start-up costs. Debug information gives every instruction the source line it comes from, inlined or not; a line of
ours counts for the part of the engine to which its file belongs, a line of Rust's library for the part to which the
surrounding function belongs.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock import _child
from ackclock.bench.cells import COUNTED, Counted, scenario
from ackclock.errors import UnavailableError

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["COMPONENTS", "InstructionReport", "Instructions", "count", "missing"]

COMPONENTS = (
    ("event queue", r"core/src/event\.rs|core::event|agenda"),
    ("links", r"crates/net/|ackclock_net"),
    ("world", r"crates/sim/src/(world|transport)|ackclock_sim::(world|transport)|core/src/digest|core::digest"),
    ("receiver", r"crates/tcp/src/(receiver|rwnd)|ackclock_tcp::(receiver|rwnd)"),
    ("sender", r"crates/tcp/src/(sender|scoreboard|rtt|ticks)|ackclock_tcp::(sender|scoreboard|rtt|ticks)"),
    ("connection", r"crates/tcp/|ackclock_tcp"),
    ("congestion control", r"crates/(cc|pcc)/|ackclock_(cc|pcc)|/libm-"),
    ("workload, tables", r"crates/(sim|python)/|ackclock_(sim|engine)|_engine"),
    ("core", r"crates/(core|schema)/|ackclock_(core|schema)"),
    ("rest", r""),
)
"""Part of the engine, and pattern for the file or, in Rust's library, the function; the first match counts."""

CROWD = 10_000
"""Number of flows from which on the quick benchmark skips a cell."""

RUST_LIBRARY = re.compile(r"/rustc/|/library/(core|alloc|std)/|^\?\?\?$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Instructions:
    """A cell's instruction count.

    Parameters
    ----------
    name, rate_bps, flows
        The cell: its name, rate of the bottleneck in bit/s, number of flows.
    """

    name: str
    rate_bps: int
    flows: int
    per_packet: float
    """Instructions per delivered data packet, including those for its ACK and all bookkeeping."""
    most: int
    """Upper bound of `per_packet`."""
    packets: int
    """Packets delivered during the count."""
    components: dict[str, float]
    """Each engine part's contribution to `per_packet`, instructions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class InstructionReport:
    """Report on all cells."""

    cells: Sequence[Instructions] = field(repr=False)

    @property
    def over(self) -> Sequence[Instructions]:
        """Return the cells that exceed their bound."""
        return [cell for cell in self.cells if cell.per_packet > cell.most]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary."""
        return {"cells": [asdict(cell) for cell in self.cells]}

    def table(self) -> Table:
        """Return a table for the terminal."""
        from rich.table import Table

        table = Table(title="instructions per delivered data packet", title_justify="left", caption_justify="left")
        table.add_column("", justify="left")
        for c in self.cells:
            table.add_column(f"{c.name}\n{c.rate_bps / 1e6:,.0f} Mbit/s\n{c.flows:,} flows", justify="right")
        table.add_row("all", *[f"{c.per_packet:,.0f}" for c in self.cells])
        table.add_row("bound", *[f"{c.most:,}" for c in self.cells], end_section=True)
        for name, _ in COMPONENTS:
            table.add_row(name, *[f"{c.components.get(name, 0):,.0f}" for c in self.cells])
        table.caption = "counted by Cachegrind; the same on an idle and on a busy machine, to 0.1 %"
        return table


def missing() -> str | None:
    """Return, in one line, why instructions cannot be counted on this machine; None if they can."""
    from ackclock import _engine

    if shutil.which("valgrind") is None:
        return "instructions: valgrind is not installed (Debian and Ubuntu: apt-get install valgrind)"
    if (profile := _engine.profile()) != "release, trained":
        return f"instructions: the engine was built as {profile}; `make setup PROFILE=release` builds one as in wheels"
    return None


def count(
    *,
    cells: Sequence[Counted] = COUNTED,
    quick: bool = False,
    progress: Callable[[str, float], None] | None = None,
) -> InstructionReport:
    """Count the instructions of every cell.

    Parameters
    ----------
    cells
        Cells to count.
    quick
        Whether to skip crowds: a cell with 10,000 flows or more takes minutes under Cachegrind.
    progress
        Called with the cell and the fraction done.

    Returns
    -------
    InstructionReport
        One entry for each cell counted.

    Raises
    ------
    UnavailableError
        If valgrind is missing, the engine was not built as wheels are, or a cell's process fails.
    """
    from ackclock.scenario import Scenario

    if why := missing():
        raise UnavailableError(why)
    if quick:
        cells = [counted for counted in cells if counted.cell.flows < CROWD]
    # compiled beforehand, so that no counted process compiles the cell's modules
    _child.run(_child.python("builtins:print", loads=["ackclock._bench_cell"]))
    done = []
    for i, counted in enumerate(cells):
        cell = counted.cell
        if progress is not None:
            progress(f"{counted.name}, {cell.rate_mbps} Mbit/s, {cell.flows} flows", i / len(cells))
        (before, packets_before), (after, packets) = (
            _cachegrind(Scenario.from_dict(scenario(replace(cell, duration_s=end))).to_engine_json())
            for end in (counted.from_s, cell.duration_s)
        )
        after.subtract(before)
        packets -= packets_before
        done.append(
            Instructions(
                name=counted.name,
                rate_bps=cell.rate_mbps * 1_000_000,
                flows=cell.flows,
                per_packet=after.total() / packets,
                most=counted.most,
                packets=packets,
                components={name: n / packets for name, n in after.items()},
            )
        )
    if progress is not None:
        progress("", 1.0)
    return InstructionReport(cells=tuple(done))


def _cachegrind(text: str) -> tuple[Counter[str], int]:
    """Return a run's instructions by component, including those of the interpreter that starts it, and the packets
    delivered.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "counts")
        tool = ["valgrind", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={out}"]
        done = _child.run(
            [*tool, *_child.python("ackclock._bench_cell:main")],
            input=json.dumps({"scenario": text, "repeats": 0}),
            env=_child.environment(PYTHONHASHSEED="0"),
        )
        if done.returncode != 0 or not out.exists():
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise UnavailableError(f"instructions: a cell's process failed: {last}")
        return _by_component(out), int(json.loads(done.stdout)["packets"])


def _by_component(counts: Path) -> Counter[str]:
    """Sum the lines of a Cachegrind file: "fl=file", "fn=function", then "line count" for each of its lines."""
    totals: Counter[str] = Counter()
    known: dict[tuple[str, str], str] = {}
    file = component = ""
    with counts.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("fl="):
                file = line[3:].strip()
            elif line.startswith("fn="):
                function = line[3:].strip()
                if (file, function) not in known:
                    known[file, function] = _component(file, function)
                component = known[file, function]
            elif line[:1].isdigit():
                totals[component] += int(line.split()[1])
    return totals


def _component(file: str, function: str) -> str:
    told = function if RUST_LIBRARY.search(file) else file
    return next(name for name, pattern in COMPONENTS if re.search(pattern, told))
