"""An evaluation on the real kernel: rows as far as it can carry them out, and their runs.

The network is the simulator's (`--network relay`), so both arms of a cell meet the same links and the same losses. Runs are not kept:
a command that is stopped begins anew.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ackclock import linux
from ackclock.errors import ScenarioError, UnavailableError
from ackclock.evaluate.situation import Arm, Row, Scale, Tables, filled, without
from ackclock.scenario import Scenario

if TYPE_CHECKING:
    import polars as pl

    from ackclock.sweep import Status

__all__ = ["Runs", "carried_out", "facts", "has"]

LONGEST = 120
"""Letters of a reason."""


def has(controller: str) -> bool:
    """Whether the built kernel has this controller."""
    return linux.kernel_controller(controller, None) in linux.installed().controllers


def carried_out(rows: Sequence[Row], candidate: Arm, scale: Scale, *, gigabit: bool) -> list[Row]:
    """The rows without the cells that the kernel cannot carry out; why, in the words of the refusal."""
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


class Runs:
    """Runs on the kernel, each made once.

    Parameters
    ----------
    jobs
        At a time, at most one per CPU.
    tables
        Table -> columns that are kept of each run; None: all.
    stop
        Ends the work early.
    progress
        Called after each run.
    """

    def __init__(
        self,
        jobs: int,
        tables: Sequence[tuple[str, Sequence[str] | None]],
        *,
        stop: threading.Event | None = None,
        progress: Callable[[Status], None] | None = None,
    ) -> None:
        self.jobs = jobs
        self.tables = tables
        self.stop = stop
        self.progress = progress
        self._made: dict[str, tuple[dict[str, pl.DataFrame], dict[int, str]]] = {}
        self._done = 0

    def of(self, asked: Sequence[tuple[Scenario, Sequence[int]]]) -> list[Tables]:
        """What the runs of these scenarios left, in order.

        Raises
        ------
        UnavailableError
            If it was stopped early, or the guest fails.
        """
        from ackclock.sweep import Status

        total = self._done + len(self._missing(asked))
        texts = [scenario.to_engine_json() for scenario, _ in asked]
        for text, (scenario, seeds) in zip(texts, asked, strict=True):
            frames, digests = self._made.setdefault(text, ({}, {}))
            missing = [seed for seed in seeds if seed not in digests]
            for i in range(0, len(missing), self.jobs):
                if self.stop is not None and self.stop.is_set():
                    raise UnavailableError(f"stopped after {self._done:,} of {total:,} runs, which are lost")
                self._run(scenario, missing[i : i + self.jobs], frames, digests)
                if self.progress is not None:
                    self.progress(Status(total=total, done=self._done))
        return [
            Tables(
                {name: frame.filter(frame["seed"].is_in(list(seeds))) for name, frame in self._made[text][0].items()},
                {seed: self._made[text][1][seed] for seed in seeds},
            )
            for text, (_, seeds) in zip(texts, asked, strict=True)
        ]

    def _missing(self, asked: Sequence[tuple[Scenario, Sequence[int]]]) -> set[tuple[str, int]]:
        return {
            (text, seed)
            for scenario, seeds in asked
            for text in [scenario.to_engine_json()]
            for seed in seeds
            if seed not in self._made.get(text, ({}, {}))[1]
        }

    def _run(
        self, scenario: Scenario, seeds: Sequence[int], frames: dict[str, pl.DataFrame], digests: dict[int, str]
    ) -> None:
        import polars as pl

        batch = linux.run_batch(scenario, seeds, jobs=self.jobs, network="relay")
        digests.update(zip(batch.seeds, batch.digests, strict=True))
        self._done += len(seeds)
        for name, columns in self.tables:
            frame: pl.DataFrame = getattr(batch, name)
            kept = frame if columns is None else frame.select("seed", *columns)
            frames[name] = pl.concat([frames[name], kept], how="vertical_relaxed") if name in frames else kept


def facts() -> str:
    """The kernel, for a report."""
    about = linux.installed().about
    return f"Linux {about['release']} ({about['source']}, built kernel {about['sha256']})"
