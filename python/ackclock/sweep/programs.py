"""Runs of the user's programs (`ackclock live`) under several seeds: a comparison of two arms, or the cells of a grid. Runs are stored in a folder.

A stored run is reused if its plan is identical (scenario, seed, programs, their arguments and environment, kernel)
and no file opened by its programs has changed. Each run is a file `PLAN-WHOLE.json` in the folder `live`, where PLAN
is the hash of the plan, and WHOLE that of the plan and the files.
"""

from __future__ import annotations

import json
import math
import os
import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock import _engine, _files
from ackclock._results.columns import series
from ackclock.errors import InputError, UnavailableError, one_of, quote
from ackclock.judge.intervals import compare_pairs
from ackclock.sweep.compare import Compared
from ackclock.sweep.measures import bounds

if TYPE_CHECKING:
    from ackclock.linux import Live, Program
    from ackclock.linux._live import Plan
    from ackclock.scenario import Scenario

__all__ = ["METRICS", "Arm", "compare", "grid", "inside"]

FOLDER = "live"
"""Subfolder for the runs, in the folder given by the user."""

METRICS = (
    "completion_s", "goodput_bps", "largest.goodput_bps", "largest.completion_s", "connections", "retransmissions",
    "dropped_queue",
)  # fmt: skip
"""Metrics of every run: time from the start of the first awaited program to the end of the last; TCP goodput of the
programs between their first and last data, for all connections together and for the direction with the most data;
that direction's time from its first packet to its last data; and counts over all connections.
"""

LEVEL = 0.95


@dataclass(frozen=True, kw_only=True, slots=True)
class Arm:
    """One arm: the arguments of `linux.live`.

    Parameters
    ----------
    name
        Name.
    scenario, programs, flows
        As for `linux.live`.
    """

    name: str
    scenario: Scenario
    programs: tuple[Program, ...]
    flows: bool


def compare(
    first: Arm,
    second: Arm,
    *,
    seeds: int = 20,
    metrics: Sequence[str] = (),
    folder: Path | None = None,
    jobs: int = 1,
    wall_limit_s: float | None = None,
    progress: Callable[[int, int, int], None] = lambda _done, _total, _found: None,
    stop: threading.Event | None = None,
) -> Compared:
    """Run two arms under the same seeds.

    Parameters
    ----------
    first, second
        The arms, whose names differ.
    seeds
        Seeds of each.
    metrics
        Metrics to compare; none: all that both arms have.
    folder
        Folder that keeps the runs, and in which they are found; None: nothing is kept.
    jobs
        Runs at a time.
    wall_limit_s
        As for `linux.live`, of each run.
    progress
        Called with the runs that are done, their total, and those of them that were found.
    stop
        Ends after the runs that are being made.

    Raises
    ------
    InputError
        If a metric is unknown, or a program cannot run.
    UnavailableError
        If it was stopped, there is no kernel, or the guest fails.
    """
    from ackclock.linux import _live

    plans = [
        _live.planned(arm.scenario, arm.programs, flows=arm.flows, seed=seed)
        for arm in (first, second)
        for seed in range(1, seeds + 1)
    ]
    both = [name for name in _metrics(plans[0]) if name in _metrics(plans[seeds])]
    for name in metrics:
        if name not in both:
            raise InputError(f"--metric: found {quote(name)}; allowed with programs: {one_of(name, both)}")
    made = _made(plans, folder, jobs, wall_limit_s, progress, stop or threading.Event())
    arms = [made[:seeds], made[seeds:]]
    wanted = list(dict.fromkeys(metrics)) or both
    same = all(len({json.dumps(run["metrics"], sort_keys=True) for run in arm}) == 1 for arm in arms)
    found = {}
    for name in wanted:
        values = [[_number(run["metrics"].get(name)) for run in arm] for arm in arms]
        paired = compare_pairs(*(one[:1] if same else one for one in values), level=LEVEL)
        found[name] = paired if paired.difference.n < 2 else paired.within(*bounds(name.rpartition(".")[2]))
    failed = [_counted(run["failed"] for run in arm) for arm in arms]
    names = (first.name, second.name)
    return Compared(names=names, seeds=seeds, metrics=found, same=same, failed=(failed[0], failed[1]))


def grid(
    cells: Sequence[Arm],
    seeds: Sequence[int],
    *,
    folder: Path,
    jobs: int = 1,
    wall_limit_s: float | None = None,
    progress: Callable[[int, int, int], None] = lambda _done, _total, _found: None,
    stop: threading.Event | None = None,
) -> list[dict[str, Any]]:
    """Run every cell with every seed.

    Parameters
    ----------
    cells
        The cells.
    seeds
        Seeds of each.
    folder, jobs, wall_limit_s, progress, stop
        As for `compare`.

    Returns
    -------
    list of dict
        A row for each run, in order of cells and seeds: `cell`, `seed`, `digest`, metrics (null: the run has no such value), and `failed`, what
        the awaited programs that failed did.
    """
    from ackclock.linux import _live

    plans = [_live.planned(one.scenario, one.programs, flows=one.flows, seed=seed) for one in cells for seed in seeds]
    made = _made(plans, folder, jobs, wall_limit_s, progress, stop or threading.Event())
    names = list(dict.fromkeys(name for plan in plans for name in _metrics(plan)))
    return [
        {
            "cell": at // len(seeds),
            "seed": run["seed"],
            "digest": run["digest"],
            **{name: None if (value := run["metrics"].get(name)) is None else float(value) for name in names},
            "failed": "; ".join(run["failed"]),
        }
        for at, run in enumerate(made)
    ]


def _metrics(plan: Plan) -> tuple[str, ...]:
    """Return the names of a run's metrics: `METRICS`, the completion time of each awaited program if there are
    several, and the goodput of each of the scenario's own flows.
    """
    awaited = [one["name"] for one in plan.job["live"]["programs"] if one["counts"]]
    flows = sum(group.count for group in plan.scenario.flows) if plan.flows else 0
    own = [f"{name}.completion_s" for name in awaited] if len(awaited) > 1 else []
    return (*METRICS, *own, *(f"flow.{number}.goodput_bps" for number in range(flows)))


def _made(
    plans: Sequence[Plan], folder: Path | None, jobs: int, wall_limit_s: float | None,
    progress: Callable[[int, int, int], None], stop: threading.Event,
) -> list[dict[str, Any]]:  # fmt: skip
    """Find or make every run."""
    cpus: queue.SimpleQueue[int] = queue.SimpleQueue()
    available = sorted(os.sched_getaffinity(0))
    for cpu in available:
        cpus.put(cpu)
    runs: list[dict[str, Any] | None] = [None if folder is None else _found(folder, plan) for plan in plans]
    missing = [at for at, run in enumerate(runs) if run is None]
    found = len(plans) - len(missing)
    progress(found, len(plans), found)

    def one(at: int) -> dict[str, Any] | None:
        if stop.is_set():
            return None
        cpu = cpus.get()
        try:
            made = _record(plans[at], cpu, wall_limit_s)
        finally:
            cpus.put(cpu)
        if folder is not None:
            _keep(folder, plans[at], made)
        return made

    with ThreadPoolExecutor(min(max(jobs, 1), len(available))) as pool:
        try:
            for done, (at, run) in enumerate(zip(missing, pool.map(one, missing), strict=True), 1):
                runs[at] = run
                progress(found + done, len(plans), found)
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    whole = [run for run in runs if run is not None]
    if len(whole) < len(plans):
        kept = "" if folder is None else ", which are kept; the same command goes on"
        raise UnavailableError(f"stopped after {len(whole)} of {len(plans)} runs{kept}")
    return whole


def _record(plan: Plan, cpu: int, wall_limit_s: float | None) -> dict[str, Any]:
    """Make a run, and return the data to be stored."""
    from ackclock.linux import _live

    seen: list[dict[str, Any]] = []

    def look(left: Path) -> None:
        for name, side in zip(plan.hosts.names, plan.hosts.sides, strict=True):
            if side == 0:  # every connection runs between the two sides, so one side's captures show all of them
                seen.extend(_connections(left / name / f"{name}.pcapng"))

    live = _live.played(plan, cpu=cpu, wall_limit_s=wall_limit_s, look=look)
    return {
        "seed": plan.seed,
        "digest": live.run.digest,
        "files": live.run.provenance["files"],
        "key": live.run.provenance["key"],
        "metrics": {**_of_programs(live), **_of_connections(seen), **_of_links(live)},
        "failed": sorted({f"{one.name}: {one.said}" for one in live.programs if one.program.counts and not one.ok}),
    }


def _connections(capture: Path) -> list[dict[str, Any]]:
    """Return the directions of a capture's TCP connections."""
    made = _engine.read_capture(os.fspath(capture), None, progress=None)["tables"]["connections"]
    columns = {name: list(series(name, kind, buffer)) for name, (kind, buffer) in made.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _of_connections(seen: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    data = [row for row in seen if row["bytes"] > 0]
    made: dict[str, float | None] = {
        "connections": len(seen) // 2,  # one row per direction
        "retransmissions": sum(row["retransmitted"] for row in data),
    }
    if data:
        largest = max(data, key=lambda row: row["bytes"])
        made["goodput_bps"] = _goodput(data)
        made["largest.goodput_bps"] = _goodput([largest])
        made["largest.completion_s"] = largest["last_data_s"] - largest["begins_s"]
    return made


def _goodput(rows: Sequence[Mapping[str, Any]]) -> float | None:
    time = max(row["last_data_s"] for row in rows) - min(row["first_data_s"] for row in rows)
    return 8 * sum(row["bytes"] for row in rows) / time if time > 0 else None


def _of_programs(live: Live) -> dict[str, float | None]:
    awaited = [one for one in live.programs if one.program.counts]
    own = {one.name: None if one.asked or one.ended_s is None else one.ended_s for one in awaited}
    begins = [one.started_s for one in awaited if one.started_s is not None]
    ends = [end for end in own.values() if end is not None]
    made: dict[str, float | None] = {"completion_s": None}
    if begins and len(ends) == len(awaited):
        made["completion_s"] = max(ends) - min(begins)
    for one in awaited:
        end = own[one.name]
        made[f"{one.name}.completion_s"] = None if end is None or one.started_s is None else end - one.started_s
    return made


def _of_links(live: Live) -> dict[str, float | None]:
    made: dict[str, float | None] = {"dropped_queue": int(live.run.links["dropped_queue"].sum())}
    if live.flows:
        flows = live.run.flows
        made |= {
            f"flow.{number}.goodput_bps": value
            for number, value in zip(flows["flow"], flows["goodput_bps"], strict=True)
        }
    return made


def _found(folder: Path, plan: Plan) -> dict[str, Any] | None:
    """Return the stored run with this plan; None if there is none, or if a file opened by its programs has changed."""
    from ackclock.linux._opened import unchanged

    for place in sorted((folder / FOLDER).glob(f"{plan.about['key'][:SHORT]}-*.json")):
        try:
            run = json.loads(place.read_bytes())
            if run["seed"] == plan.seed and run["files"] is not None and unchanged(run["files"]):
                return {**run, "metrics": dict(run["metrics"]), "failed": list(run["failed"])}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # an unreadable run is repeated
    return None


def _keep(folder: Path, plan: Plan, run: Mapping[str, Any]) -> None:
    place = inside(folder)
    place.mkdir(parents=True, exist_ok=True)
    name = f"{plan.about['key'][:SHORT]}-{run['key'][:SHORT]}.json"
    _files.write(place / name, json.dumps(run, indent=1) + "\n", f"--out {folder}")


def inside(folder: Path) -> Path:
    """Return the folder of the runs. A link is refused, because it might lead to someone else's files."""
    place = folder / FOLDER
    if place.is_symlink():
        raise InputError(f"{place}: found a link; allowed: a folder, or none")
    return place


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _counted(failures: Iterable[Sequence[str]]) -> dict[str, int]:
    counted: dict[str, int] = {}
    for run in failures:
        for said in run:
            counted[said] = counted.get(said, 0) + 1
    return counted


SHORT = 24
"""Number of hash characters in a file name."""
