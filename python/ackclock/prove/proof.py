"""The enumeration: one target after the other, in batches of tasks. Each batch is written to its own file as soon as it
is complete, so that a killed proof can continue: files in `cases/` are kept, and only missing batches are computed.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ackclock import _engine, _files
from ackclock._results.run import engine_call, raise_failure
from ackclock.errors import InputError, quote
from ackclock.own import classes
from ackclock.prove.adversary import Adversary
from ackclock.prove.cases import Cases
from ackclock.scenario import Scenario
from ackclock.sweep.task import engine_identity

SPLIT = 10
"""Number of questions answered before tasks are split off."""

BATCHES = (4, 64)
"""Minimum and maximum number of batches per target. Each batch walks through the top of the tree again."""

MOST_CASES = 2**27
"""Maximum number of cases, if it can be computed in advance. A row takes 27 bytes."""

PART = "cases"
"""Folder of the batches."""

PLAN = "plan.json"
"""File with the case plan. A folder with a different plan is refused."""

OUTSIDE = "variables outside of its connections"
"""Part of the message about a C module with state outside its connections."""

Progress = Callable[[str, float], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A scenario with a name.

    Parameters
    ----------
    name
        Name shown to readers.
    scenario
        Scenario to run, whose bottleneck has the adversary's losses.
    """

    name: str
    scenario: Scenario


@dataclass(frozen=True, kw_only=True, eq=False)
class Proof:
    """All cases of all targets.

    Parameters
    ----------
    adversary, targets, seed
        What was enumerated; the seed is that of controllers that draw random numbers.
    cases
        Cases by target.
    digests
        By target: a digest for each batch of tasks, over the digests of all its runs.
    unshared
        By target: reason why each case was run from the beginning; None if worlds were copied.
    cpu_s
        CPU time of this process, without batches that were read, s.
    """

    adversary: Adversary
    targets: tuple[Target, ...]
    seed: int
    cases: tuple[Cases, ...]
    digests: tuple[tuple[str, ...], ...]
    unshared: tuple[str | None, ...]
    cpu_s: float


def prove(
    targets: Sequence[Target],
    adversary: Adversary,
    *,
    seed: int = 1,
    folder: Path | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Proof:
    """Enumerate every case of each target.

    Parameters
    ----------
    targets
        Scenarios to run.
    adversary
        Adversary that decides the fate of packets.
    seed
        Seed of controllers that draw random numbers.
    folder
        Folder to which finished batches are written, and from which existing ones are read; None: no folder.
    jobs
        Number of threads.
    progress
        Function called with a line of text and the fraction completed.
    stopped
        Function called between batches; if it returns true, `KeyboardInterrupt` is raised.
    """
    names = [target.name for target in targets]
    if not targets or len(set(names)) < len(names):
        raise InputError(f"targets: found {quote(', '.join(names))}; allowed: one or more, with different names")
    if 2**adversary.first > MOST_CASES and adversary.most is None and adversary.name in ("losses", "marks"):
        raise InputError(
            f"--first: found {adversary.first} without --most, 2^{adversary.first} cases; allowed: at most 27, or --most"
        )
    began = time.process_time()
    if folder is not None:
        _keep_plan(folder, plan(targets, adversary, seed))
    made = []
    for at, target in enumerate(targets):

        def tell(text: str, done: float, at: int = at, target: Target = target) -> None:
            if progress is not None:
                progress(f"{target.name}: {text}", (at + done) / len(targets))

        place = None if folder is None else folder / PART / f"{at}"
        made.append(_target(target, adversary, seed, place, jobs, tell, stopped))
    return Proof(
        adversary=adversary,
        targets=tuple(targets),
        seed=seed,
        cases=tuple(one[0] for one in made),
        digests=tuple(one[1] for one in made),
        unshared=tuple(one[2] for one in made),
        cpu_s=time.process_time() - began,
    )


def plan(targets: Sequence[Target], adversary: Adversary, seed: int) -> dict[str, Any]:
    """Return the plan of the cases as plain values."""
    return {
        "engine": engine_identity(),
        "adversary": adversary.to_json(),
        "seed": seed,
        "targets": [{"name": target.name, "scenario": target.scenario.to_toml()} for target in targets],
    }


def _keep_plan(folder: Path, wanted: Mapping[str, Any]) -> None:
    place = folder / PLAN
    if place.exists():
        try:
            known = json.loads(_files.contents(place, 2**24))
        except ValueError:
            known = None
        if known != wanted:
            what = (
                "another plan"
                if isinstance(known, dict) and known.get("engine") == wanted["engine"]
                else "the plan of another engine"
            )
            raise InputError(
                f"--out {folder}: found {what} in it; allowed: the same, to go on with it, or another folder"
            )
        return
    (folder / PART).mkdir(parents=True, exist_ok=True)
    _files.write(place, json.dumps(wanted, indent=1), "the plan")


def run_with(target: Target) -> Mapping[str, Any] | None:
    """Return a target's user-defined controllers in the engine's form; None if there are none."""
    return classes(target.scenario.own()) or None


def heard(raw: Any) -> Any:
    """Return the engine's answer; raise an error if a controller failed."""
    if isinstance(raw, dict):
        raise_failure(raw)
    return raw


def _target(
    target: Target,
    adversary: Adversary,
    seed: int,
    place: Path | None,
    jobs: int,
    tell: Progress,
    stopped: Callable[[], bool],
) -> tuple[Cases, tuple[str, ...], str | None]:
    if adversary.name == "start":
        return _starts(target, adversary, seed, tell, stopped)
    own, engine, compiled = run_with(target), adversary.engine, target.scenario.compiled

    def asked() -> tuple[str | None, int]:
        found: tuple[str | None, int] = engine_call(
            lambda: _engine.prove_tasks(compiled, seed, engine, SPLIT, True, own)
        )
        return found

    def made(wanted: list[int], why: str | None) -> Any:
        # runs that share a module's variables must not overlap
        threads = 1 if why is not None and OUTSIDE in why else jobs
        shared = why is None
        return heard(
            engine_call(lambda: _engine.prove(compiled, seed, engine, SPLIT, wanted, threads, shared, None, own))
        )

    def tried(wanted: list[int], why: str | None) -> Any:
        try:
            return made(wanted, why)
        except InputError:
            if why is None:
                return None
            raise

    why, tasks = asked()
    bound = adversary.first if adversary.most is None else 20
    size = max(tasks // min(max(2**bound >> 16, BATCHES[0]), BATCHES[1]), 1)
    parts, digests = [], []
    for start in range(0, tasks, size):
        wanted = list(range(start, min(start + size, tasks)))
        kept = None if place is None else _read(place, start)
        if kept is None:
            raw = tried(wanted, why)
            if why is None:
                why, _ = asked()  # copying can fail in one case, and then no copy can be trusted
                raw = raw if why is None else made(wanted, why)
            if raw is None:
                raw = made(wanted, why)  # rerun to get the error message
            kept = Cases.of_engine(raw), list(raw["digests"])
            if place is not None:
                _write(place, start, *kept)
        parts.append(kept[0])
        digests += kept[1]
        tell(f"{sum(len(part) for part in parts):,} cases", wanted[-1] / tasks)
        if stopped():
            raise KeyboardInterrupt
    return Cases.joined(parts), tuple(digests), why


def _starts(
    target: Target, adversary: Adversary, seed: int, tell: Progress, stopped: Callable[[], bool]
) -> tuple[Cases, tuple[str, ...], str | None]:
    """Run every start time of the second flow. The answers of such a case are the tick number."""
    import numpy as np

    if target.scenario.flow_count < 2:
        raise InputError(
            f"--adversary start: found {target.scenario.flow_count} flow; allowed: a scenario with two groups of flows or more"
        )
    own, nothing = run_with(target), ("originals", "lost", 0, 1, 0, None)
    parts, digests = [], []
    for tick in range(adversary.first):
        scenario = started(target.scenario, adversary, tick)
        raw = heard(engine_call(partial(_engine.prove_case, scenario.compiled, seed, nothing, 0, False, own)))
        case = Cases.of_engine(raw)
        parts.append(
            Cases({**case.columns, "answers": np.array([tick], dtype="<u8"), "asked": np.array([0], dtype="<u4")})
        )
        digests += raw["digests"]
        if tick % 64 == 0:
            tell(f"{tick} starts", tick / adversary.first)
            if stopped():
                raise KeyboardInterrupt
    return Cases.joined(parts), tuple(digests), "found a start, not an answer"


def started(scenario: Scenario, adversary: Adversary, tick: int) -> Scenario:
    """Return the scenario in which the second group starts at this tick."""
    return scenario.set("flows.1.start", f"{tick * adversary.late_ns} ns")


def _write(place: Path, start: int, cases: Cases, digests: Sequence[str]) -> None:
    place.mkdir(parents=True, exist_ok=True)
    head = json.dumps({"rows": len(cases), "cuts": cases.cuts, "digests": digests}).encode()
    part = place / f"{start:08d}.part"
    part.write_bytes(len(head).to_bytes(4, "little") + head + cases.packed())
    os.replace(part, place / f"{start:08d}")


def _read(place: Path, start: int) -> tuple[Cases, list[str]] | None:
    file = place / f"{start:08d}"
    return read(file) if file.exists() else None


def read(file: Path) -> tuple[Cases, list[str]]:
    """Read a batch from its file."""
    data = _files.regular(file, 2**31)
    length = int.from_bytes(data[:4], "little")
    try:
        head = json.loads(data[4 : 4 + length])
        rows, cuts, digests = int(head["rows"]), head["cuts"], [str(digest) for digest in head["digests"]]
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{file}: found no head of a batch; allowed: what prove wrote") from None
    if not 0 < rows <= MOST_CASES:
        raise InputError(f"{file}: found {rows} cases; allowed: 1 to {MOST_CASES}")
    return Cases.unpacked(data[4 + length :], rows, cuts, str(file)), digests
