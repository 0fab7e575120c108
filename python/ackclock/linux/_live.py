"""`ackclock live`: the user's unmodified programs in the guest's hosts, over the simulator's links, in virtual time."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ackclock._results.result import Run
from ackclock._results.run import check_arguments
from ackclock.errors import InputError
from ackclock.linux import _cache, _guest, _run, _translate
from ackclock.linux._cache import Kernel
from ackclock.linux._facts import Has
from ackclock.linux._opened import Opened
from ackclock.linux._places import HOSTS, Hosts, check_folder, contents, hosts_of, keep
from ackclock.linux._programs import ENVIRONMENT, INNER, Ended, Program, resolved
from ackclock.linux._watch import Watch
from ackclock.scenario import Scenario

__all__ = ["HOSTS", "Live", "Plan", "live", "planned", "played", "whole_key"]

QUIET_S = 150.0
"""Time without any packet or running program after which a run ends, s. TCP's longest timeout is 120 s."""

WALL_S = 120.0
"""Default wall-clock time limit, s."""


KERNEL_WORDS = ("ackclock_programs", "ipv6.disable_ipv6=1")
"""Kernel arguments: time advances for programs that poll the clock (patch 0006), IPv6 sockets carry IPv4, and
interfaces have no IPv6 addresses.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Live:
    """A run with programs.

    Parameters
    ----------
    run
        Link tables, and those of the scenario's own flows, if any.
    programs
        Outcome of each program, in the given order.
    end_s
        End of the run, seconds of the run.
    quiet_s
        Time of the last event, accurate to a fraction of `QUIET_S`.
    why
        Reason why the run ended: "programs", "duration" or "quiet".
    flows
        Whether the scenario has its own flows.
    wall_s
        Wall-clock time of the run, seconds.
    """

    run: Run
    programs: tuple[Ended, ...]
    end_s: float
    quiet_s: float
    why: str
    flows: bool
    wall_s: float

    def summary(self) -> dict[str, Any]:
        """Return plain values, as `ackclock live --json` prints them."""
        return {
            **self.run.summary(),
            "end_s": self.end_s,
            "ended_by": self.why,
            "programs": [one.to_json() for one in self.programs],
        }


def live(
    scenario: Scenario,
    programs: Sequence[Program],
    *,
    flows: bool = False,
    seed: int = 1,
    ipv6: bool = False,
    write: int | None = None,
    out: Path | None = None,
    root: Path | None = None,
    environment: Mapping[str, str] | None = None,
    sysctls: Mapping[str, str] | None = None,
    parameters: Mapping[str, str] | None = None,
    path: str | None = None,
    paths: Mapping[str, str] | None = None,
    cpu: int | None = None,
    wall_limit_s: float | None = None,
) -> Live:
    """Run programs over a scenario's network.

    Parameters
    ----------
    scenario
        Network, duration and records; its flows run beside the programs if `flows` is set.
    programs
        At least one.
    flows
        Whether to run the scenario's flows; every scenario has at least one.
    seed
        Seed of the kernel's randomness and of the links' random streams.
    ipv6
        Whether hosts have an address of IPv6 beside that of IPv4; their names lead to both.
    write
        Bytes that senders of the scenario's own flows write at once; None: 256 KiB.
    out
        Folder in which each host gets a subfolder, with captures, the programs' output and the files that they wrote.
    root
        Folder that programs see as `/`; None: the machine's.
    environment
        Variables of the programs, added to `ENVIRONMENT` or replacing its values.
    sysctls
        Settings of their hosts, below /proc/sys.
    parameters
        Parameters of the kernel's modules: "tcp_cubic.hystart" -> "0".
    path
        Name of the path between hosts if the network is a graph; None: its first.
    paths
        Other paths: name of a host at the far end -> name of the path that leads to it.
    cpu
        CPU to run on; None: any.
    wall_limit_s
        Seconds of wall-clock time after which the guest is killed; None: 120.

    Raises
    ------
    InputError
        If a program cannot run, or never sleeps.
    UnavailableError
        If there is no kernel, or the guest fails.
    """
    if out is not None:  # checked before looking for a kernel
        check_folder(
            out, hosts_of([one.host for one in programs], scenario.to_dict(), flows, path, dict(paths or {})).names
        )
    plan = planned(
        scenario, programs, flows=flows, seed=seed, ipv6=ipv6, write=write, root=root, environment=environment,
        sysctls=sysctls, parameters=parameters, path=path, paths=paths,
    )  # fmt: skip
    return played(plan, out=out, cpu=cpu, wall_limit_s=wall_limit_s)


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A checked run with programs, ready to be made.

    Parameters
    ----------
    scenario, programs, flows, seed
        As for `live`.
    kernel, hosts, job, words
        Kernel, hosts of the programs, the guest's job, and arguments of the kernel.
    about
        Identity of the run, apart from the files that its programs open. Its `key` is a hash of all.
    """

    scenario: Scenario
    programs: tuple[Program, ...]
    flows: bool
    seed: int
    kernel: Kernel
    hosts: Hosts
    job: dict[str, Any]
    words: list[str]
    about: dict[str, Any]


def planned(
    scenario: Scenario,
    programs: Sequence[Program],
    *,
    flows: bool = False,
    seed: int = 1,
    ipv6: bool = False,
    write: int | None = None,
    root: Path | None = None,
    environment: Mapping[str, str] | None = None,
    sysctls: Mapping[str, str] | None = None,
    parameters: Mapping[str, str] | None = None,
    path: str | None = None,
    paths: Mapping[str, str] | None = None,
) -> Plan:
    """Check the arguments of a run with programs, and return its plan; see `live`."""
    seed = check_arguments(scenario, seed)
    net = hosts_of([one.host for one in programs], scenario.to_dict(), flows, path, dict(paths or {}))
    kernel = _cache.installed()
    _cache.check_sources(kernel, patches=True)
    job = _job(scenario, programs, flows, seed, kernel, root, dict(environment or {}), dict(sysctls or {}), net)
    if ipv6:
        job["live"]["ipv6"] = True
    if write is not None:
        job["write"] = write
    words = [*KERNEL_WORDS, *(f"{name}={value}" for name, value in sorted((parameters or {}).items()))]
    hashed = [
        _hashed(program, entry, job["live"]) for program, entry in zip(programs, job["live"]["programs"], strict=True)
    ]
    about = _run.provenance(kernel, job, [seed], json.dumps(job["scenario"], sort_keys=True))
    whole = [hashed, job["live"], words, job["hosts"], job.get("write")]
    key = _cache.hash_file([about["key"].encode(), json.dumps(whole, sort_keys=True).encode()])
    return Plan(
        scenario=scenario, programs=tuple(programs), flows=flows, seed=seed, kernel=kernel, hosts=net, job=job, words=words,
        about={**about, "programs": hashed, "kernel_words": words, "key": key},
    )  # fmt: skip


def played(
    plan: Plan,
    *,
    out: Path | None = None,
    cpu: int | None = None,
    wall_limit_s: float | None = None,
    look: Callable[[Path], None] | None = None,
) -> Live:
    """Make a planned run; `look` is called with the folder that contains the hosts' output."""
    job, names = plan.job, plan.hosts.names
    if out is not None:
        check_folder(out, names)  # another run may have written there in the meantime
    listed = job["live"]["programs"]
    titles = {entry["name"]: f"{one.host} ({one.command})" for entry, one in zip(listed, plan.programs, strict=True)}
    opened = Opened()
    run = _guest.ran(
        {"job.json": json.dumps(job)}, plan.seed, kernel=plan.kernel, cpu=_run.a_cpu() if cpu is None else cpu,
        wall_limit_s=WALL_S if wall_limit_s is None else wall_limit_s, watch=Watch(titles),
        rescue=None if out is None else lambda left: keep(left, out, names),
        ipv6=True, words=plan.words, variables={"UML_FILE_TIMES": str(_guest.BOOT // 10**9)}, opened=opened,
    )  # fmt: skip
    with run as (left, wall):
        about = json.loads((left / "programs.json").read_bytes())
        data = (left / "tables.bin").read_bytes()
        digest = _cache.hash_file([data, *contents(left, names)])
        ended = tuple(
            _ended(program, entry, told, left)
            for program, entry, told in zip(plan.programs, listed, about["programs"], strict=True)
        )
        tables = _run.complete(_guest.tables(data))
        files = opened.hashes(but=left.parent, folders_but=INNER)  # the guest itself opens the excluded folders
        if look is not None:
            look(left)
        if out is not None:
            keep(left, out, names)
    result = Run(
        scenario=plan.scenario,
        seed=plan.seed,
        digest=digest,
        tables=tables,
        provenance={**plan.about, "files": files, "key": whole_key(plan, files)},
    )
    end, quiet = about["end_ns"] / 1e9, about["quiet_since_ns"] / 1e9
    return Live(
        run=result, programs=ended, end_s=end, quiet_s=quiet, why=_why(ended, end, job), flows=plan.flows, wall_s=wall
    )


def whole_key(plan: Plan, files: Mapping[str, str] | None) -> str:
    """Return the key of a run: a hash of its plan and of the files opened by its programs, which are known only after the run."""
    return _cache.hash_file([plan.about["key"].encode(), json.dumps(files, sort_keys=True).encode()])


def _why(ended: Sequence[Ended], end: float, job: Mapping[str, Any]) -> str:
    counting = [one for one in ended if one.program.counts]
    if all(one.failed is not None or (one.ended_s is not None and not one.asked) for one in counting):
        return "programs"
    return "duration" if end * 1e9 >= job["scenario"]["duration_ns"] else "quiet"


def _job(
    scenario: Scenario, programs: Sequence[Program], flows: bool, seed: int, kernel: Kernel, root: Path | None,
    environment: dict[str, str], sysctls: dict[str, str], net: Hosts,
) -> dict[str, Any]:  # fmt: skip
    if not programs:
        raise InputError("live: found no program; allowed: --server COMMAND, --client COMMAND, or both")
    compiled = json.loads(scenario.to_engine_json(capture=None))
    has = Has.of(kernel.about)
    plain = {**compiled, "flows": [_plain_flow(compiled)]}
    host = _translate.job(plain, seed, "relay", has)["hosts"][0]
    kept = {name: value for name, value in host["sysctl"] if name != "net/ipv4/tcp_ecn"}  # programs choose ECN
    host = {**host, "sysctl": sorted({**kept, **sysctls}.items())}
    made = _translate.job(compiled if flows else plain, seed, "relay", has)
    if not flows:
        made["hosts"] = []
    base = Path("/") if root is None else root.resolve()
    folder = os.getcwd() if root is None else "/"
    listed: list[dict[str, Any]] = []
    for one in programs:
        option = one.option
        words = one.words(option)
        listed.append({
            "name": _label(one.host, [entry["name"] for entry in listed], net.names),
            "host": net.names.index(one.host),
            "file": _seen(option, resolved(words, option, root=base, folder=folder, own=environment), folder),
            "argv": words,
            "env": [f"{name}={value}" for name, value in {**ENVIRONMENT, **environment}.items()],
            "start_ns": round(one.start_s * 1e9),
            "counts": one.counts,
        })  # fmt: skip
    made["hosts"] = [*made["hosts"], host]
    made["live"] = {
        "alone": not flows,
        **net.to_json(),
        "programs": listed,
        "root": str(base),
        "folder": folder,
        "quiet_ns": round(QUIET_S * 1e9),
    }
    return made


def _label(host: str, used: Sequence[str], hosts: Sequence[str]) -> str:
    """Return the name of the next program of a host: "client", "client-2". It is not that of another host."""
    if host not in used:
        return host
    names = (f"{host}-{number}" for number in range(2, len(used) + len(hosts) + 3))
    return next(name for name in names if name not in used and name not in hosts)


def _seen(option: str, file: str, folder: str) -> str:
    """Return `file`; refuse it if another folder hides it from the programs, unless it is below their working folder."""
    place, here = Path(file), Path(folder)
    seen = place.is_relative_to(here) and any(here != Path(own) and here.is_relative_to(own) for own in INNER)
    if not seen and any(place.is_relative_to(own) for own in INNER):
        raise InputError(
            f"{option}: found {file}, which programs do not see ({', '.join(INNER)} are theirs, in memory); "
            "allowed: a program in another folder, or in the folder where the command is typed"
        )
    return file


def _plain_flow(compiled: Mapping[str, Any]) -> dict[str, Any]:
    """Return a default flow, whose host settings apply to the programs."""
    least = Scenario.from_dict({"duration": "1 s", "network": {"bottleneck": {"rate": "1 Mbit/s"}}, "flows": [{}]})
    flow = json.loads(least.to_engine_json(capture=None))["flows"][0]
    ways = [one["name"] for one in compiled["network"].get("paths", [])]
    return {**flow, "path": ways[0]} if ways else dict(flow)


def _ended(program: Program, entry: Mapping[str, Any], told: Mapping[str, Any], left: Path) -> Ended:
    def time(name: str) -> float | None:
        value = told[name]
        return None if value is None else value / 1e9

    def text(kind: str) -> bytes:
        place = left / program.host / f"{entry['name']}.{kind}"
        return place.read_bytes() if place.is_file() else b""

    return Ended(
        program=program, name=entry["name"], started_s=time("started_ns"), ended_s=time("ended_ns"), code=told["code"],
        signal=told["signal"], asked=told["asked"], failed=told["failed"], stdout=text("stdout"), stderr=text("stderr"),
    )  # fmt: skip


def _hashed(program: Program, entry: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the identity of a program: file, arguments and environment variables."""
    place = Path(about["root"]) / entry["file"].lstrip("/")
    return {
        "host": program.host,
        "command": program.command,
        "start_s": program.start_s,
        "file": entry["file"],
        "sha256": _cache.sha256(place) if place.is_file() else None,
        "environment": entry["env"],
    }
