"""`run` and `run_batch` as in the simulator, but on the real kernel."""

from __future__ import annotations

import json
import os
import platform
import queue
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from ackclock import _engine
from ackclock._native import operations
from ackclock._results.columns import Missing
from ackclock._results.result import Batch, Run
from ackclock._results.run import check_arguments
from ackclock.errors import InputError, UnavailableError, one_of, quote
from ackclock.linux import _cache, _guest, _translate
from ackclock.linux._cache import Kernel
from ackclock.linux._facts import Has
from ackclock.linux._guest import Columns, Outcome
from ackclock.linux._translate import NETWORKS, NetworkKind
from ackclock.scenario import CapturePoint, Scenario

__all__ = ["a_cpu", "check", "complete", "identity", "play", "provenance", "run", "run_batch"]

WALL_PER_VIRTUAL = 20
WALL_LEAST_S = 120
"""Default wall-clock time limit: seconds per virtual second, and a minimum in seconds."""


def run(
    scenario: Scenario,
    *,
    seed: int = 1,
    network: NetworkKind = "auto",
    pcap: str | Path | None = None,
    pcap_at: CapturePoint = "sender",
    cpu: int | None = None,
    wall_limit_s: float | None = None,
    kernel: str | None = None,
) -> Run:
    """Run a scenario in the real Linux kernel, in virtual time.

    Parameters
    ----------
    scenario
        Scenario to run.
    seed
        Seed of the kernel's randomness and of the links' random streams.
    network
        Network implementation: "qdisc", the kernel's own queueing disciplines; "relay", the simulator's links with
        exactly the simulator's losses; "auto", the first if it can represent the network.
    pcap
        File for the packets of one side (pcapng).
    pcap_at
        The side.
    cpu
        CPU to run on; None: any.
    wall_limit_s
        Seconds of wall-clock time after which the guest is killed; None: 20 per virtual second, at least 120.
    kernel
        Name under which the kernel was built; None: the current one.

    Returns
    -------
    Run
        The simulator's tables; columns that the kernel does not report are null.

    Raises
    ------
    ScenarioError
        If the kernel cannot honour a key.
    UnavailableError
        If there is no kernel, or the guest fails.
    """
    seed = check_arguments(scenario, seed)
    which = _cache.installed(kernel)
    text = _text(scenario, which, None if pcap is None else pcap_at)
    job = _job(text, seed, network, which)
    place = None if pcap is None else Path(pcap)
    outcome = play(text, seed, network=network, cpu=cpu, wall_limit_s=wall_limit_s, capture=place, kernel=kernel)
    return Run(
        scenario=scenario,
        seed=seed,
        digest=outcome.digest,
        tables=outcome.tables,
        provenance=provenance(which, job, [seed], text),
    )


def play(
    text: str,
    seed: int,
    *,
    network: NetworkKind = "auto",
    cpu: int | None = None,
    wall_limit_s: float | None = None,
    capture: Path | None = None,
    kernel: str | None = None,
) -> Outcome:
    """Run a compiled scenario and return its tables in the engine's form.

    Parameters
    ----------
    text
        Text from `Scenario.to_engine_json`.
    cpu
        CPU to run on; None: any.
    seed, network, wall_limit_s, capture, kernel
        See `run`.
    """
    which = _cache.installed(kernel)
    job = _job(text, seed, network, which)
    limit = _limit(wall_limit_s, job)
    place = a_cpu() if cpu is None else cpu
    outcome = _guest.play(job, seed, kernel=which, cpu=place, wall_limit_s=limit, capture=capture)
    return replace(outcome, tables=complete(outcome.tables))


def identity() -> str:
    """Return the identity of everything that determines a run apart from scenario and seed: release, and a hash of
    kernel, command line and guest program.

    Raises
    ------
    UnavailableError
        If kernel or guest program is not built.
    """
    kernel = _cache.installed()
    about = [dict(kernel.about), _guest.command_line(kernel), _cache.guest_path().name]
    return f"linux-{kernel.release}+{_cache.hash_of([json.dumps(about, sort_keys=True).encode()])}"


def run_batch(
    scenario: Scenario,
    seeds: Sequence[int],
    *,
    jobs: int = 1,
    network: NetworkKind = "auto",
    progress: Callable[[int], None] | None = None,
    wall_limit_s: float | None = None,
) -> Batch:
    """Run a scenario once per seed, each run on a separate CPU.

    Parameters
    ----------
    scenario
        Scenario to run.
    seeds
        One run each; rows of the tables come in this order.
    jobs
        Number of parallel runs, at most one per CPU, which does not affect the result.
    network, wall_limit_s
        See `run`.
    progress
        Called after each run with the number done.

    Returns
    -------
    Batch
        The tables of all runs, with a leading column `seed`.
    """
    seeds = [check_arguments(scenario, seed) for seed in seeds]
    if not seeds or len(set(seeds)) < len(seeds):
        raise InputError(f"seeds: found {seeds[:5]}; allowed: one seed or more, each once")
    kernel = _cache.installed()
    text = _text(scenario, kernel)
    plans = [_job(text, seed, network, kernel) for seed in seeds]
    cpus: queue.SimpleQueue[int] = queue.SimpleQueue()
    available = sorted(os.sched_getaffinity(0))
    for cpu in available:
        cpus.put(cpu)
    limit = _limit(wall_limit_s, plans[0])

    def one(job: dict[str, Any]) -> Outcome:
        cpu = cpus.get()
        try:
            return _guest.play(job, int(job["seed"]), kernel=kernel, cpu=cpu, wall_limit_s=limit)
        finally:
            cpus.put(cpu)

    outcomes: list[Outcome] = []
    with ThreadPoolExecutor(min(jobs, len(available))) as pool:
        try:
            for outcome in pool.map(one, plans):
                outcomes.append(outcome)
                if progress is not None:
                    progress(len(outcomes))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return Batch(
        scenario=scenario,
        seeds=tuple(seeds),
        digests=tuple(outcome.digest for outcome in outcomes),
        tables=_joined(seeds, [complete(outcome.tables) for outcome in outcomes]),
        provenance=provenance(kernel, plans[0], seeds, text),
    )


def check(scenario: Scenario, *, network: NetworkKind = "auto") -> NetworkKind:
    """Refuse a scenario that the kernel cannot run.

    Returns
    -------
    str
        Network that the run would have: "qdisc" or "relay".

    Raises
    ------
    ScenarioError
        If the kernel cannot honour a key.
    UnavailableError
        If there is no kernel.
    """
    kernel = _cache.installed()
    kind: NetworkKind = _job(_text(scenario, kernel), 1, network, kernel)["network"]["kind"]
    return kind


def _text(scenario: Scenario, kernel: Kernel, capture: CapturePoint | None = None) -> str:
    """Return the scenario compiled for this kernel: a controller in C gets the name under which it was built in."""
    text = scenario.to_engine_json(capture=capture)
    for one in scenario.own():
        if not one.is_compiled:
            raise InputError(
                f"{one.name}: found a class of Python; allowed with the linux backend: a controller that the kernel has, or one in C"
            )
        if one.name.endswith(".rs"):
            raise InputError(f"{one.name}: found a controller in Rust; allowed with the linux backend: one in C")
        if one.options != "{}":
            raise InputError(f"{one.name}: found congestion_control_options; allowed: none, with the linux backend")
        built = kernel.about.get("files", {}).get(one.name)
        if built != _cache.hash_of([Path(one.file).read_bytes()]):
            found = "another state of it" if built else "none of this name"
            raise UnavailableError(
                f"{one.name}: the kernel was built with {found}; `ackclock linux build --controller {one.name}` builds it in"
            )
        name = json.dumps(f"kernel:{operations(one.file)}")
        text = text.replace(json.dumps(f"custom:{one.key}"), name)
    return text


def _job(text: str, seed: int, network: NetworkKind, kernel: Kernel) -> dict[str, Any]:
    if network not in NETWORKS:
        raise InputError(f"network: found {quote(network)}; allowed: {one_of(str(network), NETWORKS)}")
    return _translate.job(json.loads(text), seed, network, Has.of(kernel.about))


def _limit(wanted: float | None, job: dict[str, Any]) -> float:
    if wanted is not None:
        return wanted
    return max(WALL_LEAST_S, WALL_PER_VIRTUAL * int(job["scenario"]["duration_ns"]) / 1e9)


def a_cpu() -> int:
    """Return an available CPU; processes started at the same time get different ones."""
    available = sorted(os.sched_getaffinity(0))
    return available[os.getpid() % len(available)]


def provenance(kernel: Kernel, job: dict[str, Any], seeds: Sequence[int], text: str) -> dict[str, Any]:
    """Return all inputs that determine the result."""
    about = {
        "engine": f"linux {kernel.release}",
        "backend": "linux",
        "kernel": dict(kernel.about),
        "command_line": _guest.command_line(kernel),
        "guest": _cache.guest_path().name,
        "network": job["network"]["kind"],
        "packet_memory": _translate.packet_memory(job["network"]),
        "relay": _engine.version(),
        "seeds": list(seeds),
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
    key = _cache.hash_file([text.encode(), json.dumps(about, sort_keys=True).encode()])
    return {**about, "key": key, "build": _engine.build()}


@cache
def _schema() -> dict[str, dict[str, str]]:
    """Return every simulator table: column -> type."""
    least = Scenario.from_dict(
        {"duration": "1 ms", "network": {"bottleneck": {"rate": "1 Mbit/s"}}, "flows": [{}]}
    ).to_engine_json()
    tables = _engine.run(least, 1, None)["tables"]
    return {table: {name: kind for name, (kind, _) in columns.items()} for table, columns in tables.items()}


def complete(tables: dict[str, Columns]) -> dict[str, Columns]:
    """Return the simulator's tables and columns in the simulator's order, with null for values not reported by the
    kernel, followed by kernel-only tables and columns.
    """
    out: dict[str, Columns] = {}
    for table, wanted in _schema().items():
        told = tables.get(table, {})
        rows = _rows(told)
        made = {name: told.get(name) or (kind, _nothing(kind, rows)) for name, kind in wanted.items()}
        out[table] = {**made, **{name: column for name, column in told.items() if name not in made}}
    return {**out, **{table: columns for table, columns in tables.items() if table not in out}}


def _nothing(kind: str, rows: int) -> Any:
    """Return a column not reported by the kernel: the simulator's type, all values null."""
    if kind == "str":
        return [None] * rows
    return Missing(rows) if rows else b""


_SIZE = {"f8": 8, "i8": 8, "u4": 4, "n4": 4, "u1": 1, "bool": 1}


def _strung(kind: str, parts: Sequence[Any]) -> Any:
    """Concatenate the buffers of one column; the kernel reports a column in all runs or in none."""
    if kind == "str":
        return [x for part in parts for x in part]
    if any(isinstance(part, Missing) for part in parts):
        return Missing(sum(len(part) for part in parts))
    return b"".join(parts)


def _rows(columns: Columns) -> int:
    for kind, buffer in columns.values():
        return len(buffer) if kind == "str" or isinstance(buffer, Missing) else len(buffer) // _SIZE[kind]
    return 0


def _joined(seeds: Sequence[int], runs: Sequence[dict[str, Columns]]) -> dict[str, Columns]:
    """Merge the tables of several runs into one set, with a leading column `seed`."""
    import numpy as np

    out: dict[str, Columns] = {}
    for table, columns in runs[0].items():
        counts = [_rows(run[table]) for run in runs]
        made: Columns = {"seed": ("i8", np.repeat(np.array(seeds, dtype="<i8"), counts).tobytes())}
        for name, (kind, _) in columns.items():
            parts = [run[table][name][1] for run in runs]
            made[name] = (kind, _strung(kind, [part for part in parts if len(part)]))
        out[table] = made
    return out
