"""Many seeds of one scenario, with the columns that tell the cells of an experiment apart."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from ackclock import run_batch
from ackclock.scenario import Scenario
from ackclock.study.plan import Plan
from ackclock.study.study import Data


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One scenario and the values that name it; cells that share `stream` meet the same losses, seed by seed."""

    scenario: Scenario
    keys: Mapping[str, Any]
    stream: str
    seeds: int


@dataclass(kw_only=True, slots=True)
class Cells:
    """Collects the tables of many cells."""

    name: str
    wanted: Mapping[str, Sequence[str]]
    frames: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    digests: list[str] = field(default_factory=list)

    def run(self, cells: Sequence[Cell], plan: Plan) -> Data:
        """Run every cell and join the wanted columns of the wanted tables, keys in front.

        Parameters
        ----------
        cells
            What to run.
        plan
            Threads and progress.

        Returns
        -------
        Data
            Tables `<name>.<table>`.
        """
        total = sum(cell.seeds for cell in cells)
        done = 0
        kept = None if plan.store is None else self._stored(cells, plan)
        for i, cell in enumerate(cells):
            plan.report(", ".join(str(v) for v in cell.keys.values()), done / total)
            if kept is None:
                batch = run_batch(cell.scenario, _seeds(cell), jobs=plan.jobs)
                self.digests += batch.digests
                found: Mapping[str, pl.DataFrame] = {table: getattr(batch, table) for table in self.wanted}
            else:
                found = kept[i]
            keys = [pl.lit(value).alias(key) for key, value in cell.keys.items()]
            for table, columns in self.wanted.items():
                frame: pl.DataFrame = found[table]
                if frame.height:
                    self.frames.setdefault(table, []).append(frame.select(*keys, "seed", *columns))
            done += cell.seeds
        tables = {f"{self.name}.{table}": pl.concat(frames) for table, frames in self.frames.items()}
        return Data(tables=tables, digests=self.digests, runs=total)

    def _stored(self, cells: Sequence[Cell], plan: Plan) -> Sequence[Mapping[str, pl.DataFrame]]:
        """Tables of each cell, from the plan's store."""
        from ackclock import sweep
        from ackclock.study import stored

        asked = [sweep.Cell(scenario=c.scenario, keys=c.keys, seeds=_seeds(c)) for c in cells]
        kept, digests = stored.cells(plan, self.wanted, asked)
        self.digests += digests
        return kept


def _seeds(cell: Cell) -> Sequence[int]:
    first = first_seed(cell.stream)
    return range(first, first + cell.seeds)


def first_seed(stream: str) -> int:
    """First seed of a stream of seeds; streams with different names do not overlap in practice."""
    return (zlib.crc32(stream.encode()) & 0x7FFF_FFFF) << 20
