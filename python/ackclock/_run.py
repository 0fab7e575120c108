"""Runs a scenario: text in, tables out."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ackclock import _engine
from ackclock._results import Batch, Run
from ackclock.errors import InputError, ScenarioError, UnavailableError
from ackclock.scenario import CapturePoint, Scenario

__all__ = ["MEMORY_LIMIT", "check_memory", "run", "run_batch"]

MEMORY_LIMIT = 4 * 2**30
"""Bytes that a run may be estimated to need, unless the caller says otherwise."""


def run(
    scenario: Scenario,
    *,
    seed: int = 1,
    pcap: str | Path | None = None,
    pcap_at: CapturePoint = "sender",
    memory_limit: int = MEMORY_LIMIT,
) -> Run:
    """Simulate a scenario.

    The result is a pure function of scenario, seed and engine version: same bits on every run and machine.

    Parameters
    ----------
    scenario
        What to simulate.
    seed
        0 to 2**63 - 1.
    pcap
        Write the packets that one side sends and receives to this file (pcapng, nanosecond stamps).
    pcap_at
        The side: the hosts that send the data, or those that receive it.
    memory_limit
        Bytes; a run estimated to need more is refused before it starts.

    Returns
    -------
    Run
        Tables and digest.

    Raises
    ------
    ScenarioError
        If the run would need more memory than allowed.
    InputError
        If the seed is out of range or the capture cannot be written.

    Examples
    --------
    >>> from ackclock import Scenario, run
    >>> scenario = Scenario.from_dict({
    ...     "duration": "2 s",
    ...     "network": {"bottleneck": {"rate": "10 Mbit/s", "delay": "20 ms"}},
    ...     "flows": [{"workload": {"kind": "transfer", "bytes": "100 KB"}}],
    ... })
    >>> run(scenario).flows["bytes_acked"].to_list()
    [100000]
    """
    _check_seed(seed)
    text = scenario.to_engine_json(capture=None if pcap is None else pcap_at)
    check_memory(text, memory_limit)
    raw = _call(lambda: _engine.run(text, seed, None if pcap is None else str(pcap)))
    return Run(
        scenario=scenario, seed=seed, digest=raw["digest"], tables=raw["tables"], provenance=_provenance(text, seed)
    )


def run_batch(
    scenario: Scenario,
    seeds: Sequence[int],
    *,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
    memory_limit: int = MEMORY_LIMIT,
) -> Batch:
    """Simulate a scenario once per seed.

    Parameters
    ----------
    scenario
        What to simulate.
    seeds
        One run each; rows of the tables come in this order.
    jobs
        Threads. The result does not depend on it.
    progress
        Called now and then with the number of runs done.
    memory_limit
        Bytes; runs whose estimate, times the number of threads, is larger are refused before they start.

    Returns
    -------
    Batch
        The tables of all runs, with a leading column `seed`.
    """
    seeds = list(seeds)
    for seed in seeds:
        _check_seed(seed)
    if jobs < 1:
        raise InputError(f"jobs is {jobs}; allowed: 1 or more")
    text = scenario.to_engine_json()
    check_memory(text, memory_limit, runs=min(jobs, max(len(seeds), 1)))
    raw = _call(lambda: _engine.run_batch(text, seeds, jobs, progress))
    return Batch(
        scenario=scenario,
        seeds=tuple(seeds),
        digests=tuple(raw["digests"]),
        tables=raw["tables"],
        provenance=_provenance(text, seeds),
    )


def check_memory(engine_json: str, limit: int, *, runs: int = 1) -> None:
    """Refuse what would need too much memory, before it starts.

    Parameters
    ----------
    engine_json
        The compiled scenario.
    limit
        Bytes.
    runs
        How many run at the same time.
    """
    needed = _call(lambda: _engine.estimate_memory(engine_json)) * runs
    if needed > limit:
        raise ScenarioError(
            found=f"a scenario that may need {_gib(needed)} of memory",
            allowed=f"{_gib(limit)} (record less, make it shorter, or raise the memory limit)",
        )


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 / 10 else f"{size / 2**20:.1f} MiB"


def _check_seed(seed: int) -> None:
    if not 0 <= seed < 2**63:
        raise InputError(f"seed is {seed}; allowed: 0 to {2**63 - 1}")


def _call(work: Callable[[], Any]) -> Any:
    """The engine's refusals as ours."""
    try:
        return work()
    except OSError as error:
        raise InputError(f"capture: {error}") from None
    except MemoryError:
        raise UnavailableError("out of memory; record less, or make the scenario shorter") from None
    except ValueError as error:
        raise ScenarioError(
            found=f"a scenario that the engine refuses ({error})", allowed="see `ackclock schema`"
        ) from None


def _provenance(text: str, seed: int | list[int]) -> dict[str, Any]:
    key = hashlib.sha256(json.dumps([text, seed, _engine.version()]).encode()).hexdigest()
    return {"engine": _engine.version(), "python": platform.python_version(), "machine": platform.machine(), "key": key}
