"""An evaluation on the real kernel: the rows that the kernel can run, and their runs.

The network is simulated (`--network relay`), so both arms of a cell face the same links and losses. Runs are stored
like the simulator's, under the kernel's identity in place of the engine's.
"""

from __future__ import annotations

import os
import queue
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ackclock import linux
from ackclock.errors import ScenarioError, UnavailableError
from ackclock.evaluate.situation import Arm, Row, Scale, filled, without
from ackclock.linux._run import identity, play
from ackclock.scenario import Scenario

if TYPE_CHECKING:
    from ackclock._results.columns import Columns
    from ackclock.sweep import Threads
    from ackclock.sweep.task import Done, Task

__all__ = ["carried_out", "executor", "facts", "has", "identity", "unchanged"]

LONGEST = 120
"""Maximum number of characters in a reason."""


def has(controller: str) -> bool:
    """Return whether the built kernel has this controller."""
    return linux.kernel_controller(controller, None) in linux.installed().controllers


def carried_out(rows: Sequence[Row], candidate: Arm, scale: Scale, *, gigabit: bool) -> list[Row]:
    """Return the rows without the cells that the kernel cannot run, with the error text as the reason."""
    found = []
    for row in rows:
        cells, reasons = [], dict.fromkeys(row.needs)
        for cell in row.at(scale, gigabit=gigabit):
            texts = [filled(cell.scenario, candidate.controller, candidate.options)]
            texts += [without(cell.scenario)] if cell.alone else []
            try:
                for text in texts:
                    linux.check(Scenario.from_dict(text), network="relay")
                cells.append(cell)
            except ScenarioError as error:
                why = f"{error.key} = {error.found} in the kernel"
                reasons[why if len(why) <= LONGEST else f"{why[:LONGEST]}..."] = None
        at_all = cells or row.at(scale, gigabit=gigabit)
        found.append(replace(row, cells=tuple(cells), needs=tuple(reasons)) if at_all else row)
    return found


def executor(jobs: int, made_by: str) -> Threads:
    """Return threads that each supervise one kernel on a separate CPU. A run fails if the kernel's identity is no
    longer `made_by`.
    """
    from ackclock.sweep import Threads

    available = sorted(os.sched_getaffinity(0))
    cpus: queue.SimpleQueue[int] = queue.SimpleQueue()
    for cpu in available:
        cpus.put(cpu)

    def work(task: Task) -> Done:
        unchanged(made_by)
        cpu = cpus.get()
        try:
            return _first(task, cpu)
        finally:
            cpus.put(cpu)

    return Threads(max(1, min(jobs, len(available))), work=work)


def unchanged(made_by: str) -> None:
    """Check that the kernel and the guest program still have this identity.

    Raises
    ------
    UnavailableError
        If not, because the sources were edited while runs were made, or another kernel was built.
    """
    if identity() != made_by:
        raise UnavailableError(
            f"the kernel or its guest program is another than at the start, which was {made_by}; "
            "allowed: the same command again, which makes all runs with the one that is there now"
        )


def _first(task: Task, cpu: int) -> Done:
    """Make only a task's first run. A run takes seconds, so the others become tasks for other threads."""
    from ackclock.sweep.task import Done

    place, seed = task.runs[0]
    outcome = play(task.texts[place], seed, network="relay", cpu=cpu)
    tables = {name: _kept(outcome.tables[name], columns) for name, columns in task.tables}
    return Done(digests=[outcome.digest], errors=[None], metrics={}, tables=tables, cpu_s=outcome.wall_s)


def _kept(table: Columns, columns: Sequence[str] | None) -> Columns:
    """Return the requested columns with types independent of the run: numbers are floats, except for flow identifiers."""
    import numpy as np

    from ackclock._results.columns import series

    found: dict[str, tuple[str, object]] = {}
    rows = 0
    for name in columns or table:
        kind, buffer = table[name]
        rows = len(series(name, kind, buffer))
        if kind not in ("str", "bool") and name not in NAMES:
            numbers = series(name, kind, buffer).cast(float).fill_null(float("nan"))
            kind, buffer = "f8", numbers.to_numpy().astype("<f8").tobytes()
        found[name] = (kind, buffer)
    return {"run": ("u4", np.zeros(rows, "<u4").tobytes()), **found}


NAMES = ("flow", "group", "number")
"""Identifier columns, which the kernel always reports."""


def facts() -> str:
    """Return information about the kernel, for a report."""
    about = linux.installed().about
    return f"Linux {about['release']} ({about['source']}, built kernel {about['sha256']})"
