"""A sweep from start to finish: plan, make the missing runs, add seeds for a target precision, write the table."""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ackclock.sweep.campaign import Campaign, Status
from ackclock.sweep.executors import Executor
from ackclock.sweep.measures import all_same, by_cell
from ackclock.sweep.precision import Precision, extended
from ackclock.sweep.results import Results, estimate, is_written, read, write_cells, write_table
from ackclock.sweep.store import Store
from ackclock.sweep.sweep import Cell, Sweep


def run(
    sweep: Sweep,
    folder: str | Path,
    executor: Executor,
    *,
    precision: Precision | None = None,
    retry: bool = False,
    progress: Callable[[Status], None] | None = None,
    stop: threading.Event | None = None,
) -> tuple[Results, Status]:
    """Make a sweep's missing runs in the folder, and write its table.

    Parameters
    ----------
    sweep
        Sweep to run.
    folder
        Folder of the store; created if it does not exist. Runs that it already contains, from this or another sweep,
        are not repeated.
    executor
        Executor of the runs.
    precision
        Add seeds, cell by cell, until the interval of a metric is this narrow.
    retry
        Repeat runs that failed before.
    progress
        Called after each commit.
    stop
        When set, finished runs are kept, and the function returns.

    Returns
    -------
    tuple of Results and Status
        The results and the progress; its times cover everything this call did, from plan to table.

    Raises
    ------
    StoreError, InputError
        If the folder cannot be used; runs stored earlier remain.
    """
    started = time.perf_counter()
    folder = Path(folder)
    if precision is not None:
        Results.check(_unread(sweep), precision.metric)
    cells = sweep.cells
    with Store(folder, write=True) as store:
        same = is_written(folder, sweep)
        if same:
            cells = _with_members(cells, store.members(sweep.name))
        with store.explained():
            write_cells(folder, sweep, cells)
        found: int | None = None
        cpu_s = 0.0
        while True:
            campaign = Campaign(
                store,
                cells,
                sweep.recipe,
                name=sweep.name,
                retry=retry,
                anew=not same,
                time_limit_s=sweep.time_limit_s,
            )
            status = campaign.run(executor, progress=progress, stop=stop)
            found = status.found if found is None else found
            cpu_s += status.engine_cpu_s
            wider = None if precision is None or not status.finished else widened(campaign, cells, precision)
            if wider is None:
                break
            cells, retry = wider, False
        store.compact(sweep.recipe.text)
        results = read(folder, sweep.name)
        with store.explained():
            write_table(folder, results)
    wall_s = time.perf_counter() - started
    return results, dataclasses.replace(status, found=found, wall_s=wall_s, engine_cpu_s=cpu_s)


def widened(campaign: Campaign, cells: list[Cell], precision: Precision) -> list[Cell] | None:
    """Return the cells with as many seeds as required by the precision; None if they have enough."""
    wider = []
    frames = by_cell(campaign, precision.metric, [cell.scenario for cell in cells])
    for cell, frame in zip(cells, frames, strict=True):
        if all_same(frame):  # more identical runs would not narrow the interval
            wider.append(cell)
            continue
        e = estimate(frame.with_columns(cell=0), precision.metric)
        wanted = precision.more(e)
        # Runs without a value do not narrow the interval, so the number is scaled up by the fraction of runs that have
        # one.
        if wanted > e.n and e.n:
            wanted = min(math.ceil(wanted * frame.height / e.n), precision.most_seeds)
        wider.append(dataclasses.replace(cell, seeds=extended(cell.seeds, wanted)))
    return wider if any(len(a.seeds) > len(b.seeds) for a, b in zip(wider, cells, strict=True)) else None


def _with_members(cells: list[Cell], members: Mapping[str, Sequence[int]]) -> list[Cell]:
    """Return the cells, including seeds added by an earlier session."""
    wider = []
    for cell in cells:
        known = set(cell.seeds)
        extra = [seed for seed in members.get(cell.hash, ()) if seed not in known]
        wider.append(dataclasses.replace(cell, seeds=(*cell.seeds, *extra)) if extra else cell)
    return wider


def _unread(sweep: Sweep) -> Results:
    import polars as pl

    return Results(sweep=sweep, runs=pl.DataFrame())
