"""How large a study is run: scale, seeds, threads, and where progress goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ackclock.errors import InputError

Progress = Callable[[str, float], None]
"""Told what is being done, and the share of the work done so far (0 to 1)."""

SCALES = ("quick", "paper")

MOST_SEEDS = 500
"""Largest number of seeds of each cell: a study keeps the tables of all of them, and 500 populations take 3 GiB."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The size of one run of a study, handed to every experiment.

    Parameters
    ----------
    scale
        "quick" (under a minute) or "paper" (the publication's number of repetitions, or more).
    seeds
        Seeds of each cell, instead of the numbers of the scale.
    jobs
        Threads.
    progress
        Called now and then.
    """

    scale: str = "quick"
    seeds: int | None = None
    jobs: int = 1
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise InputError(f"scale is {self.scale!r}; allowed: {', '.join(SCALES)}")
        if self.seeds is not None and not 2 <= self.seeds <= MOST_SEEDS:
            raise InputError(f"seeds is {self.seeds}; allowed: 2 (an interval needs them) to {MOST_SEEDS} (memory)")
        if self.jobs < 1:
            raise InputError(f"jobs is {self.jobs}; at least 1 is needed")

    def count(self, *, quick: int, paper: int) -> int:
        """Number of seeds for a cell: the user's, or that of the scale."""
        if self.seeds is not None:
            return self.seeds
        return quick if self.scale == "quick" else paper

    def report(self, text: str, done: float) -> None:
        """Tell the listener, if there is one."""
        if self.progress is not None:
            self.progress(text, min(max(done, 0.0), 1.0))

    def part(self, start: float, stop: float, name: str) -> Plan:
        """The same plan for a part of the work: its progress from 0 to 1 becomes `start` to `stop` of the whole."""
        outer = self.progress
        if outer is None:
            return self

        def progress(text: str, done: float) -> None:
            outer(f"{name}: {text}" if text else name, start + (stop - start) * done)

        return Plan(scale=self.scale, seeds=self.seeds, jobs=self.jobs, progress=progress)
