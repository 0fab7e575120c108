"""`ackclock live`: the user's own programs in a scenario."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ackclock.cli import _terminal
from ackclock.cli._options import NOTHING, Json, Kernels, file_name, use, whole_number
from ackclock.cli._run import changes
from ackclock.errors import InputError, ScenarioError, quote, shown

if TYPE_CHECKING:
    from ackclock.linux import Ended, Live, Program
    from ackclock.scenario import Scenario

DURATION = "10 min"
"""Duration of a run if the scenario does not set one. The run ends earlier if its programs end."""

LONGEST = 65_536
"""Maximum number of bytes shown of a program's output."""

USUAL = {"--rate": "10 Mbit/s", "--delay": "20 ms", "--queue": "1 BDP"}
"""Default path without a scenario file; `--delay` is the one-way delay."""


def live(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]", help="Scenario (TOML); its flows run beside the programs.", show_default=False
        ),
    ] = None,
    server: Annotated[
        list[str],
        typer.Option("--server", metavar="COMMAND", help="Program on the host server, as 'iperf3 -s'. Repeatable."),
    ] = NOTHING,
    client: Annotated[
        list[str],
        typer.Option(
            "--client", metavar="COMMAND", help="Program on the host client; the run ends with it. Repeatable."
        ),
    ] = NOTHING,
    host: Annotated[
        list[str],
        typer.Option(
            "--host",
            metavar="NAME=COMMAND",
            help="Program on a further host: beside server if its name begins so, else beside client; the run ends with the last. Repeatable.",
        ),
    ] = NOTHING,
    rate: Annotated[
        str | None, typer.Option(metavar="RATE", help="Without a scenario: rate of the path (default: 10 Mbit/s).")
    ] = None,
    delay: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Without a scenario: delay in each direction (default: 20 ms)."),
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option(metavar="LIMIT", help="Without a scenario: size of the queue in each direction (default: 1 BDP)."),
    ] = None,
    duration: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Latest end of the run (default: 10 min).")
    ] = None,
    client_start: Annotated[
        str, typer.Option(metavar="DURATION", help="Time from the start of the servers to that of the clients.")
    ] = "0 s",
    seed: Annotated[
        int, typer.Option(parser=whole_number(0, 2**63 - 1), metavar="N", help="Seed of every random stream.")
    ] = 1,
    ipv6: Annotated[
        bool, typer.Option("--ipv6", help="Hosts have an address of IPv6, too; their names lead to both.")
    ] = False,
    write: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="What senders of the scenario's own flows write at once (default: 256 KiB)."),
    ] = None,
    change: Annotated[
        list[str],
        typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the scenario. Repeatable."),
    ] = NOTHING,
    out: Annotated[
        Path | None,
        typer.Option(
            parser=file_name,
            metavar="DIR",
            help="Write tables, a capture of each host, what programs printed and the files that they wrote to this folder.",
        ),
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder that programs see as / (default: this machine's files, read-only)."),
    ] = None,
    env: Annotated[
        list[str], typer.Option("--env", metavar="NAME=VALUE", help="Environment variable of the programs. Repeatable.")
    ] = NOTHING,
    sysctl: Annotated[
        list[str],
        typer.Option("--sysctl", metavar="NAME=VALUE", help="Setting of their hosts: net.ipv4.tcp_ecn=1. Repeatable."),
    ] = NOTHING,
    parameter: Annotated[
        list[str],
        typer.Option(
            "--parameter",
            metavar="NAME=VALUE",
            help="Parameter of a module of the kernel: tcp_cubic.hystart=0. Repeatable.",
        ),
    ] = NOTHING,
    path: Annotated[
        list[str],
        typer.Option(
            metavar="[HOST=]NAME",
            help="Path between the hosts, or to one, where the scenario lists several. Repeatable.",
        ),
    ] = NOTHING,
    own_code: Annotated[
        bool, typer.Option("--own-code", help="Run the programs that the file itself names in [[programs]].")
    ] = False,
    wall_limit: Annotated[
        int | None,
        typer.Option(parser=whole_number(1, 10**6), metavar="S", help="Stop a run that takes longer (default: 120)."),
    ] = None,
    kernel: Kernels = None,
    as_json: Json = False,
) -> int:
    """Run your own programs over a simulated network, in the real Linux kernel and in virtual time. Exit code 1 if a client fails."""
    from ackclock import linux, units
    from ackclock._results.result import MARKS, names

    if out is not None:
        _terminal.own_folder(out, sorted(names()), MARKS, whose="run")
    use(kernel)
    for option, value in (("--rate", rate), ("--delay", delay), ("--queue", queue)):
        if file is not None and value is not None:
            raise InputError(f"{option}: found it beside a file; allowed: one of them")
    try:
        start_s = units.whole(client_start, units.DURATION) / 1e9
    except ScenarioError as error:
        raise error.within("--client-start") from None
    given = {"--rate": rate, "--delay": delay, "--queue": queue}
    programs = _programs(server, client, _assigned("--host", host, "NAME=COMMAND"), start_s)
    if file is not None:
        programs = [*listed(file, own_code), *programs]
    if not programs:
        raise InputError("live: found no program; allowed: --server COMMAND, --client COMMAND, or both")
    scenario, flows = scenario_of(file, given, duration, changes(change))
    if root is not None and not root.is_dir():
        raise InputError(f"--root: found {shown(str(root))}, which is no folder; allowed: a folder that holds a system")
    usual, to = _paths(path)
    result = _terminal.interruptible(
        lambda: linux.live(
            scenario,
            programs,
            flows=flows,
            seed=seed,
            ipv6=ipv6,
            write=_write(write),
            out=out,
            root=root,
            environment=dict(_assigned("--env", env, "a variable, e.g. LANG=C")),
            sysctls=_settings(sysctl),
            parameters=_parameters(parameter),
            path=usual,
            paths=to,
            wall_limit_s=wall_limit,
        ),
        doing=lambda: "in Linux",
    )
    if out is not None:
        result.run.write(out)
    if as_json:
        _terminal.show_json(result.summary())
    else:
        _show(result)
        if out is not None:
            _terminal.show(f"written: {out}")
    return 0 if all(one.ok for one in result.programs if one.program.counts) else 1


def _write(text: str | None) -> int | None:
    from ackclock import units

    if text is None:
        return None
    allowed = "a size of 1 byte to 16 MiB, e.g. 128 KiB"
    try:
        size = units.whole(text, units.SIZE)
    except ScenarioError:
        size = 0
    if not 1 <= size <= 1 << 24:
        raise InputError(f"--write: found {quote(text)}; allowed: {allowed}")
    return size


def _programs(
    server: Sequence[str], client: Sequence[str], others: Sequence[tuple[str, str]], start_s: float
) -> list[Program]:
    """Return the programs named on the command line. Without a client the run lasts until the servers have ended."""
    from ackclock.linux import Program, check_host

    for name, _ in others:
        check_host(name, "--host")
    asked = [*(("server", one) for one in server), *(("client", one) for one in client), *others]
    alone = all(name.startswith("server") for name, _ in asked)
    return [
        Program(host=name, command=command, counts=alone)
        if name.startswith("server")
        else Program(host=name, command=command, start_s=start_s, counts=True)
        for name, command in asked
    ]


def listed(file: Path, own_code: bool, changes: Mapping[str, Any] | None = None) -> list[Program]:
    """Return the programs named in a scenario file, after changes to `programs.N.KEY`; refuse them unless the command line permits running them."""
    from ackclock import units
    from ackclock.linux import Program, check_host
    from ackclock.scenario._keys import put

    values = raw(file)
    for key, value in (changes or {}).items():
        put(values, key, value)
    entries = values.get("programs", [])
    allowed = 'tables [[programs]] with host = "client", run = ["curl", "-s", "http://server/"], start = "1 s", awaited = true'
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InputError(f"{file}: programs: found no list of tables; allowed: {allowed}")
    if entries and not own_code:
        raise InputError(
            f"{file}: found {len(entries)} programs to run; allowed: with --own-code, if you trust the file"
        )
    made = []
    for at, entry in enumerate(entries):
        key = f"{file}: programs.{at}"
        if unknown := sorted(set(entry) - {"host", "run", "start", "awaited"}):
            raise InputError(f"{key}.{unknown[0]}: found a key that is not known; allowed: host, run, start, awaited")
        name, words = entry.get("host"), entry.get("run")
        if not isinstance(name, str):
            raise InputError(f"{key}.host: found {quote(shown(str(name)))}; allowed: the name of a host, e.g. client")
        check_host(name, f"{key}.host")
        if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
            raise InputError(f'{key}.run: found no list of words; allowed: ["iperf3", "-s"]')
        awaited = entry.get("awaited", not name.startswith("server"))
        if not isinstance(awaited, bool):
            raise InputError(f"{key}.awaited: found {quote(shown(str(awaited)))}; allowed: true or false")
        try:
            start_s = units.whole(entry.get("start", "0 s"), units.DURATION) / 1e9
        except ScenarioError as error:
            raise error.within(f"{key}.start") from None
        made.append(Program(host=name, command=shlex.join(words), start_s=start_s, counts=awaited))
    return made


def _paths(given: Sequence[str]) -> tuple[str | None, dict[str, str]]:
    """Return the path between the two hosts, and the paths of individual hosts by name."""
    plain = [text for text in given if "=" not in text]
    if len(plain) > 1:
        raise InputError(f"--path: found {' and '.join(map(quote, plain))}; allowed: one, and HOST=NAME for others")
    named = _assigned("--path", [text for text in given if "=" in text], "HOST=NAME")
    return (plain[0] if plain else None), dict(named)


def raw(file: Path) -> dict[str, Any]:
    """Return a file's values; empty if it cannot be read, because `load` reports the error."""
    from ackclock.scenario import scenario

    return scenario.raw(file)


def scenario_of(
    file: Path | None, given: dict[str, str | None], duration: str | None, changed: dict[str, Any]
) -> tuple[Scenario, bool]:
    """Return the scenario, and whether it has its own flows."""
    from ackclock.scenario import Scenario, load

    if file is None:
        of = {option: value if value is not None else USUAL[option] for option, value in given.items()}
        link = {"rate": of["--rate"], "delay": of["--delay"], "queue": {"kind": "drop-tail", "limit": of["--queue"]}}
        whole = {"duration": duration or DURATION, "network": {"bottleneck": link}, "flows": [{}]}
        try:
            made = Scenario.from_dict(whole)
        except ScenarioError as error:
            named = {
                "network.bottleneck.rate": "--rate", "network.bottleneck.delay": "--delay",
                "network.bottleneck.queue.limit": "--queue", "duration": "--duration",
            }.get(error.key)  # fmt: skip
            if named is None:
                raise
            raise ScenarioError(key=named, found=error.found, allowed=error.allowed) from None
        return made.set_all(changed) if changed else made, any(key.split(".")[0] == "flows" for key in changed)
    values = raw(file)
    flows = bool(values.get("flows")) or any(key.split(".")[0] == "flows" for key in changed)
    if values and not flows:
        changed = {**changed, "flows": [{"path": _first_path(values)}] if _first_path(values) else [{}]}
    if duration is not None or (values and "duration" not in values and "duration" not in changed):
        changed = {**changed, "duration": duration or DURATION}
    return load(file, changes=changed, apart=("programs",)), flows or not values


def _first_path(raw: dict[str, Any]) -> str | None:
    paths = raw.get("network", {}).get("paths") if isinstance(raw.get("network"), dict) else None
    return paths[0].get("name") if isinstance(paths, list) and paths and isinstance(paths[0], dict) else None


def _assigned(option: str, texts: Sequence[str], allowed: str) -> list[tuple[str, str]]:
    made = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name or "\0" in text:
            raise InputError(f"{option}: found {quote(text)}; allowed: {allowed}")
        made.append((name, value))
    return made


def _settings(texts: Sequence[str]) -> dict[str, str]:
    """Return settings by file name below /proc/sys. Only a host's network settings are allowed."""
    allowed = "a setting of the network of a host, e.g. net.ipv4.tcp_ecn=1"
    made = {}
    for name, value in _assigned("--sysctl", texts, allowed):
        file = name.replace(".", "/")
        if not file.startswith("net/") or ".." in name or "//" in file:
            raise InputError(f"--sysctl: found {quote(name)}; allowed: {allowed}")
        made[file] = value
    return made


def _parameters(texts: Sequence[str]) -> dict[str, str]:
    """Return parameters of modules; other kernel parameters are refused."""
    allowed = "a parameter of a module, e.g. tcp_cubic.hystart=0"
    made = dict(_assigned("--parameter", texts, allowed))
    for name, value in made.items():
        if not re.fullmatch(r"[A-Za-z]\w*\.\w+", name) or not re.fullmatch(r"[\w.,+-]+", value, re.ASCII):
            raise InputError(f"--parameter: found {quote(f'{name}={value}')}; allowed: {allowed}")
    return made


def _show(result: Live) -> None:
    """Print the programs' output, how they ended, and the links."""
    from ackclock.cli._sheet import Sheet
    from ackclock.cli._tables import tables
    from ackclock.text import NONE, seconds

    for one in result.programs:
        if one.program.counts:
            _print(one)
    sheet = Sheet("programs", ["program", "command", "started", "ended", "how"], narrow=False)
    for one in result.programs:
        command = one.program.command if len(one.program.command) <= 40 else f"{one.program.command[:37]}..."
        ended = seconds(one.ended_s) if one.ended_s is not None else NONE
        started = seconds(one.started_s) if one.started_s is not None else NONE
        sheet.add_row(one.name, command, started, ended, one.said)
    for one in result.programs:
        if not one.ok and one.last_line:
            sheet.say(f"{one.name}: {one.last_line}")
    shown_tables = tables(result.run)
    _terminal.show(sheet, *(shown_tables if result.flows else shown_tables[-1:]))
    _terminal.show(_said(result))
    run = result.run
    _terminal.show(f"seed {run.seed}, engine {run.engine}, digest {run.digest}")


def _said(result: Live) -> str:
    """Return why the run ended, in words."""
    if result.why == "programs":
        counting = [one.name for one in result.programs if one.program.counts]
        return f"the run ended at {result.end_s:.6f} s, after {', '.join(counting)}"
    running = [one.name for one in result.programs if one.asked]
    if result.why == "quiet":
        return (
            f"the run ended at {result.end_s:.6f} s: since about {result.quiet_s:.0f} s no packet was sent and no program ran, while "
            f"{', '.join(running)} waited"
        )
    return f"the run ended with its duration, {result.end_s:g} s; {', '.join(running) or 'no program'} still ran"


def _print(one: Ended) -> None:
    """Print a program's output with control characters escaped. The raw bytes are in the run's folder."""
    for kind, text in (("stdout", one.stdout), ("stderr", one.stderr)):
        tell = _terminal.say if kind == "stdout" else _terminal.complain
        if cut := text[:LONGEST].decode(errors="replace").removesuffix("\n"):
            tell(cut)
        if len(text) > LONGEST:
            _terminal.warn(f"ackclock: {one.name}.{kind}: {len(text):,} bytes, of which {LONGEST:,} are shown")
