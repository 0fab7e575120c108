"""Size of a study's run: scale, seeds, threads, and progress reports."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ackclock.errors import InputError
from ackclock.judge.looks import MOST_TIMES

if TYPE_CHECKING:
    from ackclock._results.result import Batch
    from ackclock.scenario import Scenario
    from ackclock.sweep import Executor, Store

Progress = Callable[[str, float], None]
"""Function called with the current activity and the fraction of the work completed so far (0 to 1)."""

SCALES = ("quick", "paper")

KERNEL = "kernel"
"""Scale of a study's kernel part."""

BACKENDS = ("linux", "sim")
"""Backends: the real kernel and the simulator."""

MOST_SEEDS = 500
"""Maximum number of seeds per cell. A study keeps the tables of all seeds in memory, and 500 populations take 3 GiB."""


def first_seed(stream: str) -> int:
    """Return a stream's first seed. Streams with different names do not overlap in practice."""
    return (zlib.crc32(stream.encode()) & 0x7FFF_FFFF) << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Size of one run of a study, passed to every experiment.

    Parameters
    ----------
    scale
        "quick" (under a minute), "paper" (the publication's number of repetitions, or more), or "kernel" (a size that
        either backend can run within minutes).
    seeds
        Seeds of each cell, instead of the numbers of the scale.
    jobs
        Number of threads.
    progress
        Called with progress.
    store
        Store of the runs; None: none.
    executor
        Executor of the runs that go into the store; None: threads.
    name
        Name of the study; its runs in the store belong to the sweep of this name.
    backend
        "sim", or "linux": the real kernel, whose runs are not stored. Each cell selects its network; by default the
        simulator's links, so that both backends meet the same losses.
    reading
        Name of an open question -> option (`Reading.of`); empty in the main reading.
    times
        Multiple of the scale's seeds that each cell has.
    salt
        Hash of a registered plan, from which the seeds are derived; empty: the usual seeds of the study.
    change
        Function applied to the scenario of every cell; None: none.
    """

    scale: str = "quick"
    seeds: int | None = None
    jobs: int = 1
    progress: Progress | None = None
    store: Store | None = None
    executor: Executor | None = None
    name: str = "study"
    backend: str = "sim"
    reading: Mapping[str, str] = field(default_factory=dict)
    times: int = 1
    salt: str = ""
    change: Callable[[Scenario], Scenario] | None = None

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise InputError(f"backend is {self.backend!r}; allowed: {', '.join(BACKENDS)}")
        if self.scale not in (*SCALES, KERNEL):
            raise InputError(f"scale is {self.scale!r}; allowed: {', '.join(SCALES)}")
        if self.seeds is not None and not 2 <= self.seeds <= MOST_SEEDS:
            raise InputError(f"seeds is {self.seeds}; allowed: 2 (an interval needs them) to {MOST_SEEDS} (memory)")
        if self.jobs < 1:
            raise InputError(f"jobs is {self.jobs}; at least 1 is needed")

    def count(self, *, quick: int, paper: int, readings: int | None = None) -> int:
        """Return a cell's number of seeds: the user's, or the scale's. In any but the main reading it is `readings`,
        if set.
        """
        if self.seeds is not None:
            return self.seeds
        if self.reading and readings is not None:
            return readings
        own = paper if self.scale == "paper" else quick
        return max(own, min(self.times * own, MOST_SEEDS))

    def more(self, times: int) -> Plan | None:
        """Return a plan with `times` times as many seeds; None if that exceeds the maximum, or if the user has set the number of seeds."""
        return None if times > MOST_TIMES or self.seeds is not None else replace(self, times=times)

    def report(self, text: str, done: float) -> None:
        """Report progress, if there is a listener."""
        if self.progress is not None:
            self.progress(text, min(max(done, 0.0), 1.0))

    def part(self, start: float, stop: float, name: str) -> Plan:
        """Return the plan for a part of the work, with progress from 0 to 1 reported as `start` to `stop`."""
        outer = self.progress
        if outer is None:
            return self

        def progress(text: str, done: float) -> None:
            outer(": ".join(filter(None, (name, text))), start + (stop - start) * done)

        return replace(self, progress=progress)

    def batch(self, scenario: Scenario, seeds: Sequence[int], *, tables: Sequence[str] | None = None) -> Batch:
        """Run one scenario once per seed, as `ackclock.run_batch` does, but reuse runs from the store.

        Parameters
        ----------
        scenario, seeds
            Scenario and seeds to run.
        tables
            Tables needed, such as ("flows", "links"); None: all, which takes more memory.

        Raises
        ------
        InputError
            If a run is refused.
        """
        from ackclock.study import stored

        return stored.batch(self, scenario, [self.shift + seed for seed in seeds], tables)

    @property
    def shift(self) -> int:
        """Offset added by a registered plan to seeds specified as plain numbers."""
        return first_seed(self.salt) if self.salt else 0
