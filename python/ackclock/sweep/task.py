"""A few runs as one unit of work, for a local thread or a remote machine."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ackclock import _engine, stacks
from ackclock._results.columns import Columns, series
from ackclock._results.run import engine_call
from ackclock.own import OwnClass, classes
from ackclock.sweep.apart import compute_apart, wanted

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """Task for a worker, made up of plain values so that it can be sent.

    Parameters
    ----------
    texts
        Compiled scenarios.
    runs
        Position in `texts` and seed, per run.
    metrics, tables
        Metrics and tables to keep.
    budget_s
        CPU time after which no further run is started, s; runs not started are handed out again.
    engine
        Version of the engine that must make the runs.
    memory
        Bytes that a run may need.
    limit_s
        CPU seconds that a run may take.
    apart
        Whether to make them in a separate process, because the process making them has died twice.
    own
        User classes that the scenarios name.
    libraries
        Libraries of stacks that the scenarios name.
    """

    texts: tuple[str, ...]
    runs: tuple[tuple[int, int], ...]
    metrics: tuple[str, ...]
    tables: tuple[tuple[str, tuple[str, ...] | None], ...]
    budget_s: float
    engine: str
    memory: int | None = None
    limit_s: float | None = None
    apart: bool = False
    own: tuple[OwnClass, ...] = ()
    libraries: tuple[stacks.Stack, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """A worker's reply: outcomes of the first `len(digests)` runs in the task.

    Parameters
    ----------
    digests, errors
        Digest or error of each run.
    metrics, tables
        Columns as the engine returns them; tables begin with a column `run`, the position in the task.
    cpu_s
        CPU seconds spent in the engine.
    """

    digests: Sequence[str | None]
    errors: Sequence[str | None]
    metrics: Columns = field(repr=False)
    tables: Mapping[str, Columns] = field(repr=False)
    cpu_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """A finished task.

    Parameters
    ----------
    task, done
        Task and its result.
    keys, scenarios
        Key and scenario hash of each run of the task.
    """

    task: Task
    done: Done
    keys: Sequence[str]
    scenarios: Sequence[str]


def compute(task: Task, *, stop: _engine.Stop | None = None) -> Done:
    """Make a task's runs on the calling thread; if `stop` is set, the remaining ones are skipped."""
    from ackclock.errors import AckclockError, UnavailableError

    if wanted(task):
        return compute_apart(task, stop)
    stacks.bring(task.libraries)
    if task.engine != (has := needed(engine_identity(task.libraries), task.texts)):
        raise UnavailableError(f"this worker has engine {has}; needed: {task.engine}")
    made = classes(task.own) or None
    started = time.thread_time()
    try:
        raw = engine_call(
            lambda: _engine.run_each(
                task.texts,
                task.runs,
                task.metrics,
                task.tables,
                task.budget_s,
                task.memory,
                stop,
                made,
                task.limit_s,
            )
        )
    except AckclockError as error:  # a text that cannot be parsed must fail alone, in a separate task
        if len(task.texts) == 1:
            none = [None] * len(task.runs)
            return Done(digests=none, errors=[str(error)] * len(none), metrics={}, tables={}, cpu_s=0.0)
        return _one_by_one(task, stop)
    return Done(
        digests=raw["digests"],
        errors=raw["errors"],
        metrics=raw["metrics"],
        tables=raw["tables"],
        cpu_s=time.thread_time() - started,
    )


def _one_by_one(task: Task, stop: _engine.Stop | None) -> Done:
    """Make only the runs of the first scenario; the others are handed out again."""
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
            memory=task.memory,
            limit_s=task.limit_s,
            own=task.own,
            libraries=task.libraries,
        ),
        stop=stop,
    )


def frames(made: Sequence[Made]) -> dict[str, pl.DataFrame]:
    """Return the rows of the runs that did not fail.

    Parameters
    ----------
    made
        Finished tasks.

    Returns
    -------
    dict
        "runs", with one row per run, and each requested table.
    """
    import numpy as np
    import polars as pl

    told = [m for m in made if None in m.done.errors]
    if not told:
        return {}
    keys = [key for m in told for key in m.keys[: len(m.done.digests)]]
    columns: dict[str, Any] = {
        "key": keys,
        "scenario": [s for m in told for s in m.scenarios[: len(m.done.digests)]],
        "seed": [seed for m in told for _, seed in m.task.runs[: len(m.done.digests)]],
        "digest": [digest for m in told for digest in m.done.digests],
    }
    runs = pl.DataFrame(columns, schema_overrides={"digest": pl.String, "seed": pl.Int64})
    joined = _joined([m.done.metrics for m in told])
    runs = runs.with_columns([series(name, kind, buffer) for name, (kind, buffer) in joined.items()])
    found = {"runs": runs.filter(pl.col("digest").is_not_null())}
    for name in told[0].done.tables:
        columns = {c: series(c, k, b) for c, (k, b) in _joined([m.done.tables[name] for m in told]).items()}
        at = columns.pop("run").to_numpy().astype(np.int64)
        # Run indices are counted from the start of each task.
        rows = [len(series("run", *m.done.tables[name]["run"])) for m in told]
        before = np.cumsum([0, *(len(m.done.digests) for m in told[:-1])])
        at += np.repeat(before, rows)
        found[name] = pl.DataFrame([runs["key"].gather(at), runs["seed"].gather(at), *columns.values()])
    return found


def _joined(parts: Sequence[Columns]) -> Columns:
    """Concatenate columns. A column that some parts lack is a float column, and is empty for those parts."""
    if len(parts) == 1:
        return parts[0]
    found: dict[str, tuple[str, Any]] = {}
    for name, kind in {name: kind for part in parts for name, (kind, _) in part.items()}.items():
        buffers = [part[name][1] if name in part else _nothing(part) for part in parts]
        found[name] = (kind, [text for b in buffers for text in b] if kind == "str" else b"".join(buffers))
    return found


def _nothing(part: Columns) -> bytes:
    import numpy as np

    return np.full(len(series("run", *part["run"])), np.nan).tobytes()


def run_key(scenario: str, seed: int, engine: str) -> bytes:
    """Return the identity of a run: a hash over its scenario's hash, its seed, and the engine's version and build."""
    return run_keys(scenario, [seed], engine)[0]


def run_keys(scenario: str, seeds: Iterable[int], engine: str) -> list[bytes]:
    """Return the `run_key` of many seeds."""
    engine = needed(engine, [scenario])
    head = hashlib.sha256(f"{scenario} ".encode())
    keys = []
    for seed in seeds:
        whole = head.copy()
        whole.update(f"{seed} {engine}".encode())
        keys.append(whole.digest()[:16])
    return keys


def engine_identity(of: Sequence[stacks.Stack] | None = None) -> str:
    """Return the engine version, a hash of its sources, and the stack libraries (None: this process's):
    everything that determines a run, apart from scenario and seed.
    """
    return f"{_engine.version()}+{_engine.build()}{stacks.identity(of)}"


def needed(engine: str, texts: Iterable[str]) -> str:
    """Return the part of an engine's identity that matters for these scenarios: libraries of stacks count only if a
    flow uses one.
    """
    return engine if _hosts_stacks(texts) else engine.removesuffix(stacks.identity())


def needed_stacks(texts: Iterable[str]) -> tuple[stacks.Stack, ...]:
    """Return this process's libraries that a worker must load for these scenarios."""
    return tuple(stacks.loaded()) if _hosts_stacks(texts) else ()


def _hosts_stacks(texts: Iterable[str]) -> bool:
    return any('"stack:' in text for text in texts)
