"""Runs cells of the study and keeps summaries of what they record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from ackclock._results import Batch
from ackclock.scenario import Scenario
from ackclock.study import Data, Plan
from ackclock.study.cells import first_seed


class Collector:
    """Gathers tables of many cells under one experiment's name."""

    def __init__(self, name: str, plan: Plan, cells: int) -> None:
        self.name = name
        self.plan = plan
        self.cells = cells
        self.done = 0
        self.runs = 0
        self.frames: dict[str, list[pl.DataFrame]] = {}
        self.digests: list[str] = []

    def run(
        self,
        scenario: Scenario,
        keys: Mapping[str, Any],
        reduce: Mapping[str, Callable[[Batch], pl.DataFrame]],
        needs: Sequence[str],
        *,
        stream: str,
        seeds: int,
    ) -> None:
        """Run one cell for all its seeds and keep what `reduce` makes of it, keys in front.

        Parameters
        ----------
        scenario
            What to run.
        keys
            Columns that name the cell.
        reduce
            Table name -> from the batch to rows with a column `run`, or `seed`, which is made into `run` (0, 1, ...).
        needs
            Tables of the runs that `reduce` reads.
        stream
            Cells with the same stream meet the same other users and losses, run by run.
        seeds
            Number of runs.
        """
        self.plan.report(", ".join(str(v) for v in keys.values()), self.done / self.cells)
        first = first_seed(f"large-pipes {stream}")
        batch = self.plan.batch(scenario, range(first, first + seeds), tables=needs)
        self.done += 1
        self.runs += seeds
        self.digests += batch.digests
        head = [pl.lit(value).alias(key) for key, value in keys.items()]
        for table, function in reduce.items():
            rows = function(batch)
            if "seed" in rows.columns:
                rows = rows.with_columns((pl.col("seed") - first).cast(pl.Int64).alias("run")).drop("seed")
            self.frames.setdefault(table, []).append(rows.select(*head, pl.all()))

    def data(self) -> Data:
        """Everything, as tables `<name>.<table>`."""
        tables = {f"{self.name}.{table}": pl.concat(frames) for table, frames in self.frames.items()}
        return Data(tables=tables, digests=self.digests, runs=self.runs)
