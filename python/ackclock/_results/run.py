"""Runs scenarios: text in, tables out.

Length: three ways to run, each with a description of its arguments, and the checks.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import operator
import platform
import warnings
from array import array
from collections import ChainMap, Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, SupportsIndex, cast, get_args

from ackclock import _engine, stacks
from ackclock._native import listening
from ackclock._results.result import Batch, Run
from ackclock.errors import ControllerError, InputError, ScenarioError, UnavailableError, quote, said
from ackclock.own import classes
from ackclock.scenario import CapturePoint, Scenario

__all__ = ["MEMORY_LIMIT", "check_memory", "run", "run_batch", "run_many"]

SAME = (
    "nothing in it is random, so there is no interval; let the flows' start be drawn, as in "
    'start = { kind = "uniform", low = "0 s", high = "1 s" }, or add loss, jitter or arrivals'
)
"""Warning text for a batch in which all seeds produced the same run."""


class SameRunWarning(UserWarning):
    """Warning that all seeds of a batch produced the same run, which counts as one observation."""


MEMORY_LIMIT = 4 * 2**30
"""Default memory limit of a run, bytes."""

CPU_LIMIT_S = 3600.0
"""Default limit on the CPU time of a run, s."""

stopped = _engine.Stop()
"""Stop flag for everything simulated in this process by `run`, `run_batch` and `run_many`; set by a command that is
ending, and never cleared.
"""

MOST_SEED = 2**63 - 1
MOST_SEEDS = 1_000_000
MOST_RUNS = 1_000_000
MOST_MEMORY = 2**63 - 1

Utility = Callable[[Any, Any], float]
"""PCC utility function: the interval, and the previous one or None -> utility."""


def run(
    scenario: Scenario,
    *,
    seed: int = 1,
    pcap: str | Path | None = None,
    pcap_at: CapturePoint = "sender",
    snaplen: int | None = None,
    progress: Callable[[float], None] | None = None,
    memory_limit: int = MEMORY_LIMIT,
    cpu_limit_s: float = CPU_LIMIT_S,
    controllers: Mapping[str, type] | None = None,
    utilities: Mapping[str, Utility] | None = None,
) -> Run:
    """Simulate a scenario. The result is a pure function of scenario, seed and engine version: identical
    bits on every run and machine.

    Parameters
    ----------
    scenario
        Scenario to simulate.
    seed
        0 to 2**63 - 1.
    pcap
        Write the packets that one side sends and receives to this file (pcapng, nanosecond timestamps).
    pcap_at
        The side: the hosts that send the data, or those that receive it.
    snaplen
        Number of bytes of each frame that the capture keeps, 54 to 262144; None for all. 96 bytes are enough for all
        headers.
    progress
        Called about ten times a second with the fraction of the scenario's duration that is simulated, 0 to 1.
    memory_limit
        Bytes. A run estimated to need more is refused before it starts; a run that actually needs more is stopped.
    cpu_limit_s
        Seconds. A run estimated to need more CPU time is refused before it starts.
    controllers
        Your own congestion controllers: name -> class. A flow uses one as "custom:NAME". See
        `ackclock.controllers.Controller`.
    utilities
        Your own utility functions for PCC: name -> function. A flow uses one as
        `congestion_control_options = { utility = "custom:NAME" }`. It is called with a finished monitor interval and
        the previous one (None at first), and returns a number, larger being better. Intervals have
        `send_rate_bps`, `throughput_bps`, `loss`, `rtt_s`, `rtt_gradient`, `rtt_deviation_s`, `rate_bps`, `sent`,
        `lost`, `start_s` and `end_s`. If the function raises an exception or does not return a number, the run ends.

    Returns
    -------
    Run
        Tables and digest.

    Raises
    ------
    ControllerError
        If one of your own controllers raises an exception or sets an invalid window.
    ScenarioError
        If the run would need more memory or time than allowed.
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
    _check_scenario(scenario)
    seed = _check_whole("seed", seed, 0, MOST_SEED)
    if pcap_at not in get_args(CapturePoint):
        raise InputError(f"pcap_at: found {quote(pcap_at)}; allowed: {', '.join(get_args(CapturePoint))}")
    if pcap is not None and not isinstance(pcap, str | Path):
        raise InputError(f"pcap: found {quote(pcap)}; allowed: the name of a file, or a Path")
    if snaplen is not None:
        snaplen = _check_whole("snaplen", snaplen, 54, 262_144)  # Ethernet, IPv4 and TCP headers
        if pcap is None:
            raise InputError(f"snaplen: found {snaplen} without pcap; allowed: together with pcap")
    if progress is not None and not callable(progress):
        raise InputError(f"progress: found {quote(progress)}; allowed: a function of one number")
    limit = _check_whole("memory_limit", memory_limit, 1)
    compiled = scenario.compiled if pcap is None else scenario.compiled.capturing(pcap_at)
    check_memory(compiled, limit)
    check_time(compiled, cpu_limit_s)
    made = _check_own(classes(scenario.own()), controllers, utilities)
    place = None if pcap is None else str(pcap)
    with listening() as told:
        raw = engine_call(
            lambda: _engine.run(compiled, seed, place, made, min(limit, MOST_MEMORY), stopped, snaplen, progress)
        )
        said = told()
    raise_failure(raw)
    tables = raw["tables"]
    if said:
        times = array("d", [t for t, _ in said])
        lines = {"t_s": ("f8", times.tobytes()), "text": ("str", [text for _, text in said])}
        tables = ChainMap({"messages": lines}, tables)
    return Run(
        scenario=scenario,
        seed=seed,
        digest=raw["digest"],
        tables=tables,
        provenance=_provenance(
            scenario, scenario.to_engine_json(capture=None if pcap is None else pcap_at), seed, made
        ),
    )


def run_batch(
    scenario: Scenario,
    seeds: Sequence[int],
    *,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
    memory_limit: int = MEMORY_LIMIT,
    cpu_limit_s: float = CPU_LIMIT_S,
    controllers: Mapping[str, type] | None = None,
    utilities: Mapping[str, Utility] | None = None,
) -> Batch:
    """Simulate a scenario once per seed.

    Parameters
    ----------
    scenario
        Scenario to simulate.
    seeds
        One run each; rows of the tables come in this order.
    jobs
        Number of threads, which does not affect the result.
    progress
        Called from time to time with the number of finished runs.
    memory_limit
        Bytes for all threads together. Runs estimated to need more are refused before they start, and a run that
        actually needs more than its share is stopped.
    cpu_limit_s
        See `run`; applies to each run.
    controllers
        See `run`; only one thread at a time runs them.
    utilities
        See `run`; only one thread at a time calls them.

    Returns
    -------
    Batch
        The tables of all runs, with a leading column `seed`.

    Warns
    -----
    SameRunWarning
        If all seeds (two or more) gave the same run.
    """
    _check_scenario(scenario)
    seeds = _check_seeds(seeds)
    jobs = _check_whole("jobs", jobs, 1)
    jobs = min(jobs, max(len(seeds), 1))
    limit = _check_whole("memory_limit", memory_limit, 1)
    compiled = scenario.compiled
    check_memory(compiled, limit, runs=jobs)
    check_time(compiled, cpu_limit_s)
    made = _check_own(classes(scenario.own()), controllers, utilities)
    each = min(limit, MOST_MEMORY) // jobs
    raw = engine_call(lambda: _engine.run_batch(compiled, seeds, jobs, progress, made, each, stopped))
    raise_failure(raw)
    if len(seeds) > 1 and len(set(raw["digests"])) == 1:
        warnings.warn(f"all {len(seeds)} seeds gave one and the same run: {SAME}", SameRunWarning, stacklevel=2)
    return Batch(
        scenario=scenario,
        seeds=tuple(seeds),
        digests=tuple(raw["digests"]),
        tables=raw["tables"],
        provenance=_provenance(scenario, scenario.to_engine_json(), seeds, made),
    )


def run_many(
    scenarios: Iterable[Scenario],
    *,
    seeds: Iterable[int] | None = None,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
    memory_limit: int = MEMORY_LIMIT,
    cpu_limit_s: float = CPU_LIMIT_S,
    controllers: Mapping[str, type] | None = None,
    utilities: Mapping[str, Utility] | None = None,
) -> list[Run]:
    """Simulate many scenarios in one call: for searches, fits and path populations, where runs are short.

    A scenario is checked once, when it is created, so a variation costs one `Scenario.set`, and the call adds only a
    few microseconds per run.

    Parameters
    ----------
    scenarios
        One run each; a scenario may occur several times.
    seeds
        One for each scenario, in the same order; None: 1 for all.
    jobs
        Number of threads, which does not affect the result.
    progress
        Called from time to time with the number of finished runs.
    memory_limit
        Bytes for all threads together. The results, which are all in memory at the end, do not count.
    cpu_limit_s
        See `run`; applies to each run.
    controllers
        See `run`; only one thread at a time runs them.
    utilities
        See `run`; only one thread at a time calls them.

    Returns
    -------
    list of Run
        Runs in the order of the scenarios, as `run` returns them.

    Raises
    ------
    ScenarioError
        If one of the runs would need more memory or time than allowed; the key begins with its number.
    InputError
        If there is no scenario, or the number of seeds differs.

    Examples
    --------
    >>> from ackclock import Scenario, run_many
    >>> base = Scenario.from_dict({
    ...     "duration": "2 s",
    ...     "network": {"bottleneck": {"rate": "10 Mbit/s", "delay": "20 ms"}},
    ...     "flows": [{"workload": {"kind": "transfer", "bytes": "100 KB"}}],
    ... })
    >>> rates = ("1 Mbit/s", "2 Mbit/s", "4 Mbit/s")
    >>> runs = run_many([base.set("network.bottleneck.rate", rate) for rate in rates], jobs=2)
    >>> [round(run.rows("flows")[0]["completion_s"], 2) for run in runs]
    [0.95, 0.5, 0.29]
    """
    if isinstance(scenarios, Scenario | str) or not isinstance(scenarios, Iterable):
        raise InputError(f"scenarios: found {quote(scenarios)}; allowed: a list of scenarios")
    listed = list(itertools.islice(scenarios, MOST_RUNS + 1))  # an iterator may be endless
    if not 0 < len(listed) <= MOST_RUNS:
        found = "an empty list" if not listed else f"more than {MOST_RUNS:,}"
        raise InputError(f"scenarios: found {found}; allowed: 1 to {MOST_RUNS:,} scenarios")
    each = _check_seed_each(seeds, len(listed))
    jobs = min(_check_whole("jobs", jobs, 1), len(listed))
    limit = _check_whole("memory_limit", memory_limit, 1)
    own: dict[str, Any] = {}
    for at, scenario in {id(one): (at, one) for at, one in reversed(list(enumerate(listed)))}.values():
        try:
            _check_scenario(scenario)
            check_memory(scenario.compiled, limit, runs=jobs)
            check_time(scenario.compiled, cpu_limit_s)
        except ScenarioError as error:
            raise ScenarioError(key=f"scenarios.{at}: {error.key}", found=error.found, allowed=error.allowed) from None
        except InputError as error:
            raise InputError(f"scenarios.{at}: {error}") from None
        own |= classes(scenario.own())
    made = _check_own(own, controllers, utilities)
    runs = [(scenario.compiled, seed) for scenario, seed in zip(listed, each, strict=True)]
    share = min(limit, MOST_MEMORY) // jobs
    raw = engine_call(lambda: _engine.run_many(runs, jobs, progress, made, share, stopped))
    raise_failure(raw)
    return [
        Run(
            scenario=scenario,
            seed=seed,
            digest=digest,
            tables=tables,
            provenance=_provenance(scenario, scenario.to_engine_json(), seed, made),
        )
        for scenario, seed, (digest, tables) in zip(listed, each, raw["runs"], strict=True)
    ]


def check_arguments(scenario: object, seed: object) -> int:
    """Check that the arguments are a scenario and a seed; return the seed as a plain number."""
    _check_scenario(scenario)
    return _check_whole("seed", seed, 0, MOST_SEED)


def check_memory(scenario: _engine.Scenario | str, limit: int, *, runs: int = 1) -> None:
    """Refuse a run that would need too much memory, before it starts.

    Parameters
    ----------
    scenario
        Scenario in the engine's form.
    limit
        Bytes.
    runs
        Number of parallel runs.
    """
    needed = engine_call(lambda: _engine.estimate_memory(scenario)) * runs
    if needed > limit:
        much, little = sizes(needed, limit)
        at_once, fewer = (f" for {runs} runs at a time", "run fewer at a time, ") if runs > 1 else ("", "")
        raise ScenarioError(
            key="memory_limit",
            found=f"a scenario that may need {much} of memory{at_once}",
            allowed=f"{little} ({fewer}record less, make it shorter, or raise the limit)",
        )


def check_time(scenario: _engine.Scenario | str, limit_s: float) -> None:
    """Refuse a run that would need too much CPU time, before it starts.

    Parameters
    ----------
    scenario
        Scenario in the engine's form.
    limit_s
        Seconds.
    """
    if isinstance(limit_s, bool) or not isinstance(limit_s, int | float) or not limit_s > 0:
        raise InputError(f"cpu_limit_s: found {quote(limit_s)}; allowed: seconds, above 0")
    needed = engine_call(lambda: _engine.estimate_time(scenario))
    if needed > limit_s:
        raise ScenarioError(
            key="cpu_limit",
            found=f"a scenario that may need {_long(needed)} of CPU time",
            allowed=f"{_long(limit_s)} (make it shorter, let its links change less often, record less, or raise the limit)",
        )


def _long(seconds: float) -> str:
    """Format a long duration in human-readable form."""
    for size, unit in ((365 * 86400, "years"), (86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.3g} s"


def sizes(large: int, small: int) -> tuple[str, str]:
    """Format both sizes for humans, with enough digits to distinguish them."""
    for digits in (1, 3, 6):
        texts = (_size(large, digits), _size(small, digits))
        if texts[0] != texts[1]:
            return texts
    return f"{large} bytes", f"{small} bytes"


def _size(size: int, digits: int) -> str:
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 2**power:
            return f"{size / 2**power:.{digits}f} {unit}"
    return f"{size} byte{'' if size == 1 else 's'}"


def _check_scenario(scenario: object) -> None:
    if not isinstance(scenario, Scenario):
        raise InputError(
            f"scenario: found {quote(scenario)}; allowed: a Scenario, as load() and Scenario.from_dict() make it"
        )


def _check_seeds(seeds: Iterable[int]) -> list[int]:
    if not isinstance(seeds, Iterable) or isinstance(seeds, str):
        raise InputError(f"seeds: found {quote(seeds)}; allowed: a list of whole numbers")
    checked = [_check_whole("seed", seed, 0, MOST_SEED) for seed in itertools.islice(seeds, MOST_SEEDS + 1)]
    if len(checked) > MOST_SEEDS:  # an iterator may be endless
        raise InputError(f"seeds: found more than {MOST_SEEDS:,}; allowed: at most that many")
    if not checked:
        raise InputError("seeds: found an empty list; allowed: one seed or more")
    if len(set(checked)) < len(checked):
        twice = next(seed for seed, times in Counter(checked).items() if times > 1)
        raise InputError(f"seeds: found {twice} more than once; allowed: each seed once")
    return checked


def _check_seed_each(seeds: Iterable[int] | None, count: int) -> list[int]:
    """Return one seed for each of this many scenarios."""
    if seeds is None:
        return [1] * count
    if not isinstance(seeds, Iterable) or isinstance(seeds, str):
        raise InputError(f"seeds: found {quote(seeds)}; allowed: a list of whole numbers")
    checked = [_check_whole("seed", seed, 0, MOST_SEED) for seed in itertools.islice(seeds, count + 1)]
    if len(checked) != count:
        found = f"more than {count}" if len(checked) > count else str(len(checked))
        raise InputError(f"seeds: found {found}; allowed: one for each of the {count} scenarios")
    return checked


def _check_whole(name: str, value: object, low: int, high: int | None = None) -> int:
    try:
        number = None if isinstance(value, bool) else operator.index(cast("SupportsIndex", value))
    except TypeError:
        number = None
    if number is None or number < low or (high is not None and number > high):
        bounds = f"{low} or more" if high is None else f"{low} to {high}"
        raise InputError(f"{name}: found {quote(value)}; allowed: a whole number, {bounds}")
    return number


def _check_own(
    named: Mapping[str, Any], controllers: Mapping[str, type] | None, utilities: Mapping[str, Utility] | None
) -> dict[str, Any] | None:
    """Check user-defined parts, by name; `named` lists those that scenarios refer to by file."""
    own: dict[str, Any] = {**named, **(_check_controllers(controllers) or {})}
    if utilities is None:
        return own or None
    if not isinstance(utilities, Mapping):
        raise InputError(f"utilities: found {quote(utilities)}; allowed: a mapping of names to functions")
    for name, function in utilities.items():
        if not isinstance(name, str) or not name:
            raise InputError(f"utilities: found {quote(name)} for a name; allowed: text")
        if name in own:
            raise InputError(f"utilities: found {quote(name)}, the name of a controller; allowed: another name")
        if not callable(function):
            raise InputError(f"utilities: {name}: found {quote(function)}; allowed: a function")
        own[name] = function
    return own or None


def _check_controllers(controllers: Mapping[str, type] | None) -> dict[str, type] | None:
    if controllers is None:
        return None
    if not isinstance(controllers, Mapping):
        raise InputError(f"controllers: found {quote(controllers)}; allowed: a mapping of names to classes")
    for name, made in controllers.items():
        if not isinstance(name, str) or not name:
            raise InputError(f"controllers: found {quote(name)} for a name; allowed: text")
        if not callable(made) and not isinstance(made, _engine.Library):
            raise InputError(f"controllers: {name}: found {quote(made)}; allowed: a class")
    return dict(controllers)


def raise_failure(raw: Mapping[str, Any]) -> None:
    """Raise an error if a user-defined controller has failed."""
    if "failure" not in raw:
        return
    controller, hook, time_s, cause = raw["failure"]
    if isinstance(cause, KeyboardInterrupt):
        raise cause
    raise ControllerError(
        controller=controller, hook=hook, time_s=time_s, problem=problem(cause)
    ) from cause  # also for SystemExit


def problem(cause: BaseException) -> str:
    """Return the error of a controller; for one in C the engine's message is already complete."""
    return str(cause) if isinstance(cause, _engine.Fault) else said(cause)


def _source(made: Any) -> str:
    """Return a text that identifies the code of controllers or functions, namely their source."""
    import inspect

    made = getattr(made, "func", made)  # a class's options are in the compiled scenario
    try:
        return inspect.getsource(made)
    except (OSError, TypeError):
        return f"{getattr(made, '__module__', '')}.{getattr(made, '__qualname__', repr(made))}"


def engine_call(work: Callable[[], Any]) -> Any:
    """Call the engine and translate its refusals into our exceptions."""
    try:
        return work()
    except OSError as error:
        raise InputError(f"capture: {error}") from None
    except MemoryError:
        raise UnavailableError("out of memory; record less, or make the scenario shorter") from None
    except _engine.Refusal as error:
        key, found, allowed = error.args
        raise ScenarioError(key=key, found=found, allowed=allowed) from None
    except ValueError as error:
        if str(error).startswith("stack "):  # a library reports an impossible value
            raise InputError(str(error)) from None
        raise ScenarioError(
            found=f"a scenario that the engine refuses ({error})", allowed="see `ackclock schema`"
        ) from None


def _provenance(
    scenario: Scenario, text: str, seed: int | list[int], controllers: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    parts: list[Any] = [text, seed, _engine.version()]
    if controllers:
        parts.append({name: _source(made) for name, made in sorted(controllers.items())})
    used = {
        stack.name: {"version": stack.version, "sha256": stack.digest}
        for stack in stacks.loaded()
        if any(group.congestion_control.startswith(f"stack:{stack.name}:") for group in scenario.flows)
    }
    if used:
        parts.append({"stacks": used})
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    about = {
        "engine": _engine.version(),
        "build": _engine.build(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "key": key,
        **({"stacks": used} if used else {}),
    }
    inputs = scenario.inputs()
    return {**about, "inputs": inputs} if inputs else about
