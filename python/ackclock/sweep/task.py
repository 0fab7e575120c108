"""A handful of runs as one piece of work, the same on a thread here and on a machine elsewhere."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ackclock import _engine
from ackclock._results import Columns, series
from ackclock._run import engine_call

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """What a worker needs to know; plain values, so that it can travel.

    Parameters
    ----------
    texts
        Compiled scenarios.
    runs
        Position in `texts` and seed, per run.
    metrics, tables
        What is kept.
    budget_s
        CPU seconds after which no further run is begun; those not begun are handed out again.
    engine
        Version that has to make them.
    """

    texts: tuple[str, ...]
    runs: tuple[tuple[int, int], ...]
    metrics: tuple[str, ...]
    tables: tuple[tuple[str, tuple[str, ...] | None], ...]
    budget_s: float
    engine: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """What a worker sends back: outcomes of the first `len(digests)` runs of its task.

    Parameters
    ----------
    digests, errors
        One of the two per run.
    metrics, tables
        Columns as the engine hands them out; tables begin with a column `run`, the position in the task.
    cpu_s
        CPU seconds spent in the engine.
    """

    digests: Sequence[str | None]
    errors: Sequence[str | None]
    metrics: Columns = field(repr=False)
    tables: Mapping[str, Columns] = field(repr=False)
    cpu_s: float


def compute(task: Task) -> Done:
    """Make the runs of a task, on the calling thread."""
    from ackclock.errors import AckclockError, UnavailableError

    if task.engine != engine_identity():
        raise UnavailableError(f"this worker has engine {engine_identity()}; needed: {task.engine}")
    started = time.thread_time()
    try:
        raw = engine_call(lambda: _engine.run_each(task.texts, task.runs, task.metrics, task.tables, task.budget_s))
    except AckclockError as error:  # a text that cannot be read fails alone, where it is the only one
        if len(task.texts) == 1:
            none = [None] * len(task.runs)
            return Done(digests=none, errors=[str(error)] * len(none), metrics={}, tables={}, cpu_s=0.0)
        return _one_by_one(task)
    return Done(
        digests=raw["digests"],
        errors=raw["errors"],
        metrics=raw["metrics"],
        tables=raw["tables"],
        cpu_s=time.thread_time() - started,
    )


def _one_by_one(task: Task) -> Done:
    """Only the runs of the first scenario; the others are handed out again."""
    first = task.runs[0][0]
    count = next((i for i, (at, _) in enumerate(task.runs) if at != first), len(task.runs))
    return compute(
        Task(
            texts=(task.texts[first],),
            runs=tuple((0, seed) for _, seed in task.runs[:count]),
            metrics=task.metrics,
            tables=task.tables,
            budget_s=task.budget_s,
            engine=task.engine,
        )
    )


def frames(task: Task, done: Done, keys: Sequence[str], scenarios: Sequence[str]) -> dict[str, pl.DataFrame]:
    """Rows of the runs that did not fail.

    Parameters
    ----------
    task, done
        Work and result.
    keys, scenarios
        Of each run: its key, and the hash of its scenario.

    Returns
    -------
    dict
        "runs", with one row per run, and each table that was asked for.
    """
    import numpy as np
    import polars as pl

    n = len(done.digests)
    good = [i for i in range(n) if done.errors[i] is None]
    if not good:
        return {}
    columns: dict[str, Any] = {
        "key": keys[:n],
        "scenario": scenarios[:n],
        "seed": [seed for _, seed in task.runs[:n]],
        "digest": done.digests,
    }
    runs = pl.DataFrame(columns, schema_overrides={"digest": pl.String, "seed": pl.Int64})
    runs = runs.with_columns([series(name, kind, buffer) for name, (kind, buffer) in done.metrics.items()])
    found = {"runs": runs if len(good) == n else runs[good]}
    for name, table in done.tables.items():
        frame = pl.DataFrame([series(column, kind, buffer) for column, (kind, buffer) in table.items()])
        at = frame["run"].to_numpy().astype(np.int64)
        named = [runs["key"].gather(at), runs["seed"].gather(at)]
        found[name] = pl.DataFrame(named).hstack(frame.drop("run").get_columns())
    return found


def run_key(scenario: str, seed: int, engine: str) -> bytes:
    """Identity of a run: a hash of its scenario's hash, its seed and the engine's version and build."""
    return hashlib.sha256(f"{scenario} {seed} {engine}".encode()).digest()[:16]


def engine_identity() -> str:
    """Version of the engine, and a hash of its sources: what runs are a function of, beside scenario and seed."""
    return f"{_engine.version()}+{_engine.build()}"
