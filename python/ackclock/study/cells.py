"""Experiments as cells: scenarios under many seeds, each with its identifying values and the run data to be stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from ackclock._results.result import Batch
from ackclock.linux import NetworkKind
from ackclock.scenario import Scenario
from ackclock.study import stored
from ackclock.study.plan import Plan, first_seed
from ackclock.study.study import Data

Reduce = Callable[[Batch], pl.DataFrame]
"""Function from a cell's runs to rows. A row that describes a single run has its `seed`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One scenario under many seeds.

    Parameters
    ----------
    scenario
        Scenario to run.
    keys
        Values that identify the cell, as columns.
    stream
        Cells with the same stream see the same losses, arrivals and draws, seed by seed.
    seeds
        Number of runs.
    needs
        Table of the runs -> columns that are read. Other data is neither stored nor passed to `keep`.
    keep
        Table of the experiment -> function that computes its rows; None: the needed tables unchanged.
    network
        Network implementation on the kernel backend.
    """

    scenario: Scenario
    keys: Mapping[str, object]
    stream: str
    seeds: int
    needs: Mapping[str, Sequence[str]]
    keep: Mapping[str, Reduce] | None = field(default=None, repr=False)
    network: NetworkKind = "relay"

    def first(self, plan: Plan) -> int:
        """Seed of the first run."""
        return first_seed(plan.salt + self.stream)

    def tables(self, batch: Batch) -> dict[str, pl.DataFrame]:
        """Return the tables to be stored from the cell's runs."""
        if self.keep is None:
            return {name: getattr(batch, name).select("seed", *columns) for name, columns in self.needs.items()}
        return {name: reduce(batch) for name, reduce in self.keep.items()}


def _told(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def collect(name: str, cells: Sequence[Cell], plan: Plan, *, numbered: bool = False) -> Data:
    """Run all cells, or find their runs in the plan's store, and concatenate the stored tables. Only one cell's runs
    are in memory at a time. With a store, all cells' runs are made first, so that many workers can be used, and a
    stopped experiment resumes where it stopped.

    Parameters
    ----------
    name
        Name of the experiment.
    cells
        Cells to run.
    plan
        Threads, store, progress.
    numbered
        Identify runs by a column `run` (0, 1, ...) instead of `seed`, so that runs of different streams can be paired.

    Returns
    -------
    Data
        Tables `<name>.<table>`, the cells' keys in front, in the order of cells.

    Raises
    ------
    InputError
        If a run is refused.
    """
    frames: dict[str, list[pl.DataFrame]] = {}
    digests: list[str] = []
    total = sum(cell.seeds for cell in cells)
    asked = [
        stored.Asked(
            scenario=cell.scenario if plan.change is None else plan.change(cell.scenario),
            seeds=range(cell.first(plan), cell.first(plan) + cell.seeds),
            needs=cell.needs,
            network=cell.network,
        )
        for cell in cells
    ]
    batches = stored.batches(plan, asked)
    for cell in cells:
        plan.report(", ".join(map(_told, cell.keys.values())), len(digests) / total)
        batch = next(batches)
        digests += batch.digests
        head = [pl.lit(value).alias(key) for key, value in cell.keys.items()]
        for table, rows in cell.tables(batch).items():
            if numbered and "seed" in rows.columns:
                run = (pl.col("seed") - cell.first(plan)).cast(pl.Int64).alias("run")
                frame = rows.select(*head, run, pl.exclude("seed"))
            else:
                frame = rows.select(*head, pl.all())
            frames.setdefault(table, []).append(frame)
    tables = {f"{name}.{table}": _join(parts) for table, parts in frames.items()}
    return Data(tables=tables, digests=digests, runs=len(digests))


def _join(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Concatenate cells. Empty tables are omitted, because their columns may have the wrong types."""
    return pl.concat([part for part in parts if part.height] or parts[:1])
