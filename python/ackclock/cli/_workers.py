"""Options that select where scenarios are run, and the corresponding executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ackclock.cli import _terminal
from ackclock.errors import InputError, quote

if TYPE_CHECKING:
    from ackclock.sweep import Executor


@dataclass(frozen=True, kw_only=True, slots=True)
class Workers:
    """Workers selected by the options."""

    jobs: int | None = None
    scheduler: str | None = None
    slurm: int | None = None
    pbs: int | None = None
    options: Sequence[str] = ()

    @property
    def elsewhere(self) -> bool:
        """Whether runs are made in other processes."""
        return self.scheduler is not None or self.slurm is not None or self.pbs is not None

    def check(self) -> None:
        """Refuse options that contradict each other."""
        given = [
            n
            for n, v in (("--scheduler", self.scheduler), ("--slurm", self.slurm), ("--pbs", self.pbs))
            if v is not None
        ]
        if len(given) > 1:
            raise InputError(f"{given[1]}: found it beside {given[0]}; allowed: one of --scheduler, --slurm, --pbs")
        if given and self.jobs is not None:
            raise InputError(
                f"--jobs: found it beside {given[0]}; allowed: without, since the workers bring their own threads"
            )
        if self.options and self.slurm is None and self.pbs is None:
            raise InputError("--worker: found it without a batch system; allowed: together with --slurm N or --pbs N")
        for text in self.options:
            _option(text)
        if self.slurm is not None or self.pbs is not None:
            from ackclock.sweep.executors import import_jobqueue

            import_jobqueue()  # must be imported in the main thread

    @contextmanager
    def open(self) -> Iterator[Executor]:
        """Yield the executor, and close it at the end."""
        from ackclock.sweep import Dask, Threads, batch_system

        executor: Executor
        options = dict(_option(text) for text in self.options)
        if self.scheduler is not None:
            executor = Dask(self.scheduler)
        elif self.slurm is not None:
            executor = batch_system("slurm", self.slurm, options)
        elif self.pbs is not None:
            executor = batch_system("pbs", self.pbs, options)
        else:
            executor = Threads(self.jobs or _terminal.cpus())
        try:
            yield executor
        finally:
            executor.close()


def _option(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key.isidentifier():
        raise InputError(f"--worker: found {quote(text)}; allowed: KEY=VALUE of dask-jobqueue, e.g. walltime=02:00:00")
    return key, int(value) if value.isdecimal() and value.isascii() else value
