"""Makes the runs that a store lacks: distributes them, collects the results and stores them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from ackclock._results.run import MEMORY_LIMIT, check_memory
from ackclock.errors import AckclockError, InputError, UnavailableError
from ackclock.own import OwnClass, planned
from ackclock.sweep.apart import SUSPECT_AFTER
from ackclock.sweep.executors import Executor, Finished
from ackclock.sweep.store import DONE, FAILED, Store
from ackclock.sweep.sweep import Cell, Recipe
from ackclock.sweep.task import Done, Made, Task, engine_identity, frames, needed, needed_stacks, run_keys

if TYPE_CHECKING:
    import polars as pl

KEEP_EVERY_S = 0.5
"""Minimum time between two commits, s."""

KEEP_REST = 20
"""... and as a multiple of the duration of the last commit, so that a slow disk costs only a small part of the time."""

KEEP_CPU_S = 0.25
"""... and minimum CPU time of the runs to be stored, s: on a busy machine few runs finish per second."""

KEEP_LATEST_S = 5.0
"""Time after which finished runs are stored in any case, s."""

MOST_IN_TASK = 2000


@dataclass(frozen=True, kw_only=True, slots=True)
class Status:
    """Progress of a campaign.

    Parameters
    ----------
    total
        Number of requested runs.
    done, failed
        Number of these runs that are done, and number that failed.
    found
        Number of finished runs that were in the store at the start.
    wall_s
        Wall time since the start.
    engine_cpu_s
        CPU seconds spent in the engine, all workers together.
    slots
        Maximum number of parallel runs.
    lost
        Lost parts of the store, whose runs were made again.
    """

    total: int
    done: int = 0
    failed: int = 0
    found: int = 0
    wall_s: float = 0.0
    engine_cpu_s: float = 0.0
    slots: int = 1
    lost: tuple[str, ...] = ()

    @property
    def finished(self) -> bool:
        """Whether all tasks are done."""
        return self.done + self.failed == self.total

    @property
    def rate(self) -> float:
        """Runs per second."""
        return (self.done + self.failed - self.found) / self.wall_s if self.wall_s > 0 else 0.0

    @property
    def simulating(self) -> float:
        """Fraction of the time spent in the engine: CPU seconds divided by elapsed seconds and slots."""
        return self.engine_cpu_s / (self.wall_s * self.slots) if self.wall_s > 0 else 0.0

    @property
    def left_s(self) -> float | None:
        """Estimated time for the remaining runs, s."""
        return (self.total - self.done - self.failed) / self.rate if self.rate > 0 else None


@dataclass(slots=True)
class _Pile:
    """Runs that have been made but not yet stored."""

    done: list[int] = field(default_factory=list)
    failed: dict[int, str] = field(default_factory=dict)
    made: list[Made] = field(default_factory=list)
    cpu_s: float = 0.0


class Campaign:
    """All runs of some cells, made now or found in the store.

    Parameters
    ----------
    store
        Store of the runs, open for writing.
    cells
        Scenarios and seeds.
    recipe
        Data kept of each run.
    name
        Name of the sweep to which the runs belong; empty for none.
    retry
        Whether to repeat runs that failed before.
    anew
        Whether the sweep's former members are forgotten.
    memory_limit
        Bytes; cells that may need more fail.
    time_limit_s
        CPU seconds; a run that takes more fails.
    engine
        Identity of the engine that makes the runs; None: this one.
    unmixed
        Whether each task has runs of at most one piece of user code, so that two pieces never share a process.
    """

    def __init__(
        self,
        store: Store,
        cells: Sequence[Cell],
        recipe: Recipe,
        *,
        name: str = "",
        retry: bool = False,
        anew: bool = True,
        memory_limit: int = MEMORY_LIMIT,
        time_limit_s: float | None = None,
        engine: str | None = None,
        unmixed: bool = False,
    ) -> None:
        self.store = store
        self.recipe = recipe
        self._cells = cells
        self._limit = memory_limit
        self._time_limit_s = time_limit_s
        self._unmixed = unmixed
        self._engine = engine or engine_identity()
        # Numbers and texts are kept in lists instead of one object per run, because there may be millions of runs.
        self._cell_of = [i for i, cell in enumerate(cells) for _ in cell.seeds]
        self._seeds = [seed for cell in cells for seed in cell.seeds]
        found = {one for cell in cells for one in cell.own}
        self._own = {one: one.planned() for one in found}
        reads = [planned(self._own[one] for one in cell.own) for cell in cells]
        keys = [
            key
            for cell, more in zip(cells, reads, strict=True)
            for key in run_keys(f"{cell.hash}{more}", cell.seeds, self._engine)
        ]
        hashes = [cells[i].hash for i in self._cell_of]
        self._ids, states = store.plan(recipe.text, keys, hashes, self._seeds, self._engine)
        self.keys = [key.hex() for key in keys]
        if name:
            store.adopt(name, recipe.text, self._ids, anew=anew or bool(found))  # also runs with other data or modules
        if retry:
            store.retry([run for run, state in zip(self._ids, states, strict=True) if state == FAILED])
        self._todo: deque[int] = deque()
        self._done = self._failed = 0
        self._kept: list[int] = []
        self._compared = False
        seen: set[int] = set()
        for at, (run, state) in enumerate(zip(self._ids, states, strict=True)):
            if run in seen:
                continue
            seen.add(run)
            if state == DONE:
                self._done += 1
                self._kept.append(at)
            elif state == FAILED and not retry:
                self._failed += 1
            else:
                self._todo.append(at)
        suspects = store.suspects([self._ids[at] for at in self._todo], SUSPECT_AFTER)
        self._suspects = deque(at for at in self._todo if self._ids[at] in suspects)
        if suspects:
            self._todo = deque(at for at in self._todo if self._ids[at] not in suspects)
        self._total = len(seen)
        self._found = self._done + self._failed
        self._cpu_s = 0.0
        self._slots = 1
        self._started = time.perf_counter()
        self._pile = _Pile()
        self._kept_at = self._started
        self._keeping_s = 0.0

    @property
    def status(self) -> Status:
        """Progress; runs that have not been stored yet do not count."""
        return Status(
            total=self._total,
            done=self._done,
            failed=self._failed,
            found=self._found,
            wall_s=time.perf_counter() - self._started,
            engine_cpu_s=self._cpu_s,
            slots=self._slots,
            lost=tuple(self.store.lost),
        )

    def run(
        self,
        executor: Executor,
        *,
        progress: Callable[[Status], None] | None = None,
        stop: threading.Event | None = None,
    ) -> Status:
        """Make the missing runs.

        Parameters
        ----------
        executor
            Executor of the runs.
        progress
            Called after each commit.
        stop
            If set, no further run is handed out; finished ones are kept, and the method returns.

        Raises
        ------
        StoreError
            If the store cannot be written; runs stored earlier remain.
        """
        self._refuse_large(executor.slots)
        self._compare(executor)
        tell = progress or (lambda _: None)
        tell(self.status)
        self._started = self._kept_at = time.perf_counter()
        out: dict[int, tuple[Task, list[int]]] = {}
        number = 0
        size = 4.0
        slots = self._slots = executor.slots
        stopped = False
        while True:
            stopped = stopped or (stop is not None and stop.is_set())
            while (self._todo or self._suspects) and not stopped and len(out) < 2 * slots:
                apart = not self._todo  # runs that may end a process come last
                runs = self._take(self._suspects if apart else self._todo, int(size), slots)
                task = self._task(runs, executor.target_s, apart=apart)
                self.store.claim([self._ids[at] for at in runs])
                executor.submit(number, task)
                out[number] = (task, runs)
                number += 1
            if not out or stopped:
                break
            try:
                finished = executor.wait(0.1)
            except UnavailableError:
                self.store.release([self._ids[at] for _, runs in out.values() for at in runs])
                self._keep(tell, wait=False)
                raise
            for which, done in finished:
                task, runs = out.pop(which)
                self._take_in(task, runs, done)
                if isinstance(done, Done) and done.cpu_s > 0:
                    # Number of runs that fills a task's target duration; the time budget truncates tasks that turn
                    # out slow.
                    fits = 1.3 * len(done.digests) * executor.target_s / done.cpu_s
                    size = min(max(1.0, fits), 4 * size, MOST_IN_TASK)
            slots = executor.slots
            self._slots = max(self._slots, slots)
            self._keep(tell, wait=True)
        if stopped:
            self.store.release([self._ids[at] for _, runs in out.values() for at in runs])
        self._keep(tell, wait=False)
        return self.status

    def _compare(self, executor: Executor) -> None:
        """Repeat one of user code's stored runs: a different digest shows that it was made by different code.

        Raises
        ------
        InputError
            If the digests differ.
        """
        ours = [
            at
            for at in self._kept
            if self._cells[self._cell_of[at]].own or '"stack:' in self._cells[self._cell_of[at]].text
        ]
        if not ours or self._compared:
            return
        self._compared = True
        at = min(ours, key=lambda at: self.keys[at])
        rows = self.store.read(self.recipe.text, "runs")
        known = dict(rows.select("key", "digest").iter_rows()).get(self.keys[at]) if rows.height else None
        if known is None:
            return
        executor.submit(-1, self._task([at], executor.target_s, apart=False))
        arrived: list[Finished] = []
        while not arrived:
            arrived = executor.wait(0.1)
        done = arrived[0][1]
        if isinstance(done, Exception):
            raise done
        now = next(iter(done.digests), None)
        if now != known:
            who = self._cells[self._cell_of[at]].own
            said = next((error for error in done.errors if error), f"digest {now}")
            raise InputError(
                f"{who[0].file if who else 'own code'}: what was found differs from what the code does now (seed {self._seeds[at]}: "
                f"found digest {known}, and now {said}); allowed: code of which all that it reads is known (`reads`), without a clock or "
                "random numbers of its own; or another folder"
            )

    def table(self, table: str = "runs") -> pl.DataFrame:
        """Return the rows of this campaign's runs, ordered by cell and seed.

        Parameters
        ----------
        table
            "runs", or a table that the recipe keeps.
        """
        import polars as pl

        rows = self.store.read(self.recipe.text, table)
        if not rows.height:
            return rows
        order = pl.DataFrame({"key": self.keys}).unique(maintain_order=True)
        return order.join(rows, on="key", how="inner", maintain_order="left_right")

    def by_cell(self, table: str) -> list[pl.DataFrame]:
        """Return the rows of a table, one frame per cell, without the column `key`."""
        import polars as pl

        rows = self.store.read(self.recipe.text, table)
        found: list[pl.DataFrame] = []
        at = 0
        order = pl.DataFrame({"key": self.keys, "cell": self._cell_of}, schema_overrides={"cell": pl.UInt32})
        joined = order.join(rows, on="key", how="inner", maintain_order="left_right").drop("key")
        last = pl.Series(range(len(self._cells)), dtype=pl.UInt32)
        ends = joined["cell"].search_sorted(last, side="right").to_list()
        for end in ends:
            found.append(joined[at:end].drop("cell"))
            at = end
        return found

    def _take(self, todo: deque[int], most: int, slots: int) -> list[int]:
        # Tasks get smaller towards the end, so that all slots stay busy.
        share = -(-len(todo) // (3 * slots))
        most = min(most, max(share, 1), len(todo))
        if self._unmixed:
            codes = [self._cells[self._cell_of[at]].own for at in islice(todo, most)]
            most = next((n for n, code in enumerate(codes) if code != codes[0]), most)
        return [todo.popleft() for _ in range(most)]

    def _task(self, runs: Sequence[int], budget_s: float, *, apart: bool) -> Task:
        texts: dict[str, int] = {}
        own: dict[OwnClass, None] = {}
        places = []
        for at in runs:
            cell = self._cells[self._cell_of[at]]
            text = cell.text
            own |= dict.fromkeys(self._own[one] for one in cell.own)
            places.append((texts.setdefault(text, len(texts)), self._seeds[at]))
        return Task(
            texts=tuple(texts),
            runs=tuple(places),
            metrics=self.recipe.metrics,
            tables=self.recipe.tables,
            budget_s=budget_s,
            engine=needed(self._engine, texts),
            memory=self._limit // max(self._slots, 1),
            limit_s=self._time_limit_s,
            apart=apart,
            own=tuple(own),
            libraries=needed_stacks(texts),
        )

    def _take_in(self, task: Task, runs: list[int], done: Done | Exception) -> None:
        pile = self._pile
        if isinstance(done, Exception):
            said = str(done).partition("\n")[0]
            why = said if isinstance(done, AckclockError) else f"{type(done).__name__}: {said}"
            pile.failed.update({self._ids[at]: why for at in runs})
            return
        n = len(done.digests)
        if n < len(runs):
            self.store.release([self._ids[at] for at in runs[n:]])
            (self._suspects if task.apart else self._todo).extendleft(reversed(runs[n:]))
        self._cpu_s += done.cpu_s
        pile.cpu_s += done.cpu_s
        for at, error in zip(runs, done.errors, strict=False):
            if error is None:
                pile.done.append(self._ids[at])
            else:
                pile.failed[self._ids[at]] = error
        keys = [self.keys[at] for at in runs]
        scenarios = [self._cells[self._cell_of[at]].hash for at in runs]
        pile.made.append(Made(task=task, done=done, keys=keys, scenarios=scenarios))

    def _keep(self, tell: Callable[[Status], None], *, wait: bool) -> None:
        pile = self._pile
        if not pile.done and not pile.failed:
            return
        now = time.perf_counter()
        passed = now - self._kept_at
        if wait and passed < max(KEEP_EVERY_S, KEEP_REST * self._keeping_s):
            return
        if wait and pile.cpu_s < KEEP_CPU_S and passed < KEEP_LATEST_S:
            return
        self.store.commit(self.recipe.text, pile.done, frames(pile.made), pile.failed)
        self._done += len(pile.done)
        self._failed += len(pile.failed)
        self._pile = _Pile()
        self._kept_at = time.perf_counter()
        self._keeping_s = self._kept_at - now
        tell(self.status)

    def _refuse_large(self, slots: int) -> None:
        """Mark cells that need too much memory as failed before they start."""
        refused: dict[str, str] = {}
        todo = [*self._todo, *self._suspects]
        for cell in (self._cells[i] for i in dict.fromkeys(self._cell_of[at] for at in todo)):
            try:
                check_memory(cell.text, self._limit, runs=slots)
            except AckclockError as error:
                refused[cell.hash] = str(error)
        if refused:
            why = {at: refused.get(self._cells[self._cell_of[at]].hash) for at in todo}
            self._pile.failed.update({self._ids[at]: told for at, told in why.items() if told is not None})
            self._todo = deque(at for at in self._todo if why[at] is None)
            self._suspects = deque(at for at in self._suspects if why[at] is None)
