"""`ackclock run` and `ackclock report`.

Length: every option is checked before the run.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ackclock import _files
from ackclock._files import OWN, reason, staged
from ackclock.cli import _terminal
from ackclock.cli._options import (
    NOTHING,
    Beside,
    Controllers,
    Json,
    Kernels,
    OwnCode,
    Plots,
    PlotWidth,
    Report,
    Stacks,
    file_name,
    load_stacks,
    use,
    whole_number,
)
from ackclock.cli._sheet import SHOWN
from ackclock.errors import InputError, ScenarioError, UnavailableError, quote, shown

if TYPE_CHECKING:
    from ackclock._results.result import Run
    from ackclock.formats import Measured
    from ackclock.scenario import CapturePoint, Scenario

BACKENDS = ("sim", "linux")

MOST_PARTS = 100
"""Maximum number of parts in a dotted key."""


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Scenario (TOML).", show_default=False)],
    seed: Annotated[
        int, typer.Option(parser=whole_number(0, 2**63 - 1), metavar="N", help="Seed of every random stream.")
    ] = 1,
    change: Annotated[
        list[str],
        typer.Option("--set", metavar="KEY=VALUE", help="Change a value: flows.0.congestion_control=reno. Repeatable."),
    ] = NOTHING,
    out: Annotated[
        Path | None,
        typer.Option(
            parser=file_name,
            metavar="DIR",
            help="Write the tables (Parquet) and run.json to this folder, replacing those of an earlier run.",
        ),
    ] = None,
    as_json: Json = False,
    trace: Annotated[
        str | None, typer.Option(metavar="none|flow|all", help="Record every ACK of no flow, flow 0, or all.")
    ] = None,
    pcap: Annotated[
        Path | None, typer.Option(parser=file_name, metavar="FILE", help="Capture one side's packets (pcapng).")
    ] = None,
    pcap_at: Annotated[
        str | None,
        typer.Option(metavar="sender|receiver", help="Side that --pcap captures (default: sender)."),
    ] = None,
    snaplen: Annotated[
        int | None,
        typer.Option(
            parser=whole_number(54, 262_144),
            metavar="N",
            help="Bytes of each frame that --pcap keeps, 54 at least (default: all).",
        ),
    ] = None,
    memory_limit: Annotated[str, typer.Option(metavar="SIZE", help="Refuse runs that may need more memory.")] = "4 GiB",
    cpu_limit: Annotated[
        str, typer.Option(metavar="DURATION", help="Refuse runs that may need more CPU time.")
    ] = "1 h",
    backend: Annotated[
        str, typer.Option(metavar="sim|linux", help="The simulator, or the real Linux TCP in virtual time.")
    ] = "sim",
    network: Annotated[
        str | None,
        typer.Option(
            metavar="auto|qdisc|relay",
            help="linux: the network consists of the kernel's queueing disciplines or of the simulator's links.",
        ),
    ] = None,
    wall_limit: Annotated[
        int | None,
        typer.Option(parser=whole_number(1, 10**6), metavar="S", help="linux: stop a kernel that takes longer."),
    ] = None,
    report: Report = None,
    plot: Plots = NOTHING,
    width: PlotWidth = "double",
    beside: Beside = NOTHING,
    controller: Controllers = NOTHING,
    own_code: OwnCode = False,
    kernel: Kernels = None,
    stack: Stacks = NOTHING,
) -> None:
    """Run a scenario."""
    if kernel is not None and backend != "linux":
        raise InputError("--kernel: found it without --backend linux; allowed: together")
    use(kernel)
    # Length: each option is checked before anything runs
    from ackclock import units
    from ackclock._results.result import MARKS, names
    from ackclock._results.run import run as simulate
    from ackclock.cli._tables import tables
    from ackclock.scenario import load
    from ackclock.scenario._bursts import hangs_on_bursts

    drawn = _check_drawings(report, plot, width)
    others = _read_beside(beside, drawn=report is not None or bool(plot))

    try:
        limit = units.whole(memory_limit, units.SIZE)
    except ScenarioError as error:
        raise error.within("--memory-limit") from None
    try:
        cpu_limit_s = units.whole(cpu_limit, units.DURATION) / 1e9
    except ScenarioError as error:
        raise error.within("--cpu-limit") from None
    if not cpu_limit_s:
        raise InputError(f"--cpu-limit: found {quote(cpu_limit)}; allowed: a duration above 0")
    if backend not in BACKENDS:
        raise InputError(f"--backend: found {quote(backend)}; allowed: {', '.join(BACKENDS)}")
    for option, value in (("--network", network), ("--wall-limit", wall_limit)):
        if backend == "sim" and value is not None:
            raise InputError(f"{option}: found {quote(value)}; allowed: with --backend linux only")
    if network not in (None, "auto", "qdisc", "relay"):
        raise InputError(f"--network: found {quote(network)}; allowed: auto, qdisc, relay")
    load_stacks(stack)
    scenario = load(file, own_code=own_code, changes=changes(change))
    for text in controller:
        scenario = controlled(scenario, text)
    if trace is not None:
        try:
            scenario = scenario.set("record.trace", trace)
        except ScenarioError as error:
            raise ScenarioError(key="--trace", found=error.found, allowed=error.allowed) from None
    if out is not None:
        _terminal.own_folder(out, sorted(names()), MARKS, whose="run")
    if pcap_at not in (None, "sender", "receiver"):
        raise InputError(f"--pcap-at: found {quote(pcap_at)}; allowed: sender, receiver")
    if pcap_at is not None and pcap is None:
        raise InputError(f"--pcap-at: found {quote(pcap_at)} without --pcap; allowed: together with --pcap FILE")
    if snaplen is not None and (pcap is None or backend == "linux"):
        found = "without --pcap" if pcap is None else "with --backend linux, whose captures hold headers alone"
        raise InputError(f"--snaplen: found {snaplen} {found}; allowed: together with --pcap, in the simulator")
    if pcap is not None:
        _check_capture(pcap, out)
    # by now all inputs are known
    for option, place in (("--pcap", pcap), ("--report", report), *(("--plot", p) for p in drawn)):
        if place is not None:
            _files.check_file(place, f"{option} {place}")
            if out is not None and place.resolve().parent == out.resolve() and place.name in names():
                raise InputError(f"{option} {place}: found a file that --out writes; allowed: another name")
    if report is not None or drawn:
        from ackclock.report.run import watched

        if backend == "linux":
            network = _network(scenario, network)
        scenario = watched(scenario, trace=report is not None, drops=network != "qdisc")
    scenario = limited(scenario)
    part = 0.0

    def tell(done: float) -> None:
        nonlocal part
        part = done

    if backend == "sim" and (said := hangs_on_bursts(scenario)) is not None:
        _terminal.warn(f"ackclock: {shown(str(file))}: {said}")
    side: CapturePoint = "receiver" if pcap_at == "receiver" else "sender"
    if pcap is not None:
        _tell_room(scenario, pcap)
    with _capture(pcap) as captured:
        try:
            result = _terminal.interruptible(
                (lambda: _in_linux(scenario, seed, captured, side, network, wall_limit))
                if backend == "linux"
                else lambda: simulate(
                    scenario,
                    seed=seed,
                    pcap=captured,
                    pcap_at=side,
                    snaplen=snaplen,
                    memory_limit=limit,
                    cpu_limit_s=cpu_limit_s,
                    progress=tell,
                ),
                doing=lambda: "in Linux" if backend == "linux" else f"simulating, {part * 100:.0f} %",
            )
        except ScenarioError as error:
            named = {"memory_limit": "--memory-limit", "cpu_limit": "--cpu-limit"}.get(error.key)
            if named is None:
                raise
            raise ScenarioError(key=named, found=error.found, allowed=error.allowed) from None
    if out is not None:
        result.write(out)
    asked = [*(f"--set={text}" for text in change), *(f"--controller={text}" for text in controller)]
    asked += [f"--trace={trace}"] * (trace is not None) + ["--own-code"] * own_code
    asked += [f"--stack={library}" for library in stack]
    asked += [f"--backend={backend}"] * (backend != "sim") + [f"--network={network}"] * (network is not None)
    again = shlex.join(["ackclock", "run", str(file), "--seed", str(seed), *asked])
    command = f"{again} --report {shlex.quote(str(report))}" + "".join(f" --beside {shlex.quote(b)}" for b in beside)
    pages = _draw(result, report, plot, width, others, command=command, name=file.name)
    if as_json:
        _terminal.show_json(result.summary())
        return
    _terminal.show(*tables(result))
    _terminal.show(f"seed {result.seed}, engine {result.engine}, digest {result.digest}")
    for written in (out, pcap, *pages):
        if written is not None:
            _terminal.show(f"written: {written}")


def limited(scenario: Scenario) -> Scenario:
    """Return the scenario with limits recorded for each flow, which does not change the run."""
    from ackclock import units

    if units.whole(scenario.record.limits_interval, units.DURATION):
        return scenario
    if sum(group.count for group in scenario.flows) > SHOWN:
        return scenario
    return scenario.set("record.limits_interval", scenario.duration)


def report_(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder that `run --out` has written.", show_default=False)
    ],
    report: Report = None,
    plot: Plots = NOTHING,
    width: PlotWidth = "double",
    beside: Beside = NOTHING,
) -> None:
    """Draw a run that --out wrote: its report, or single figures."""
    from ackclock._results.result import Run

    if report is None and not plot:
        raise InputError("report: found nothing to write; allowed: --report FILE.html, --plot FILE, or both")
    others = _read_beside(beside, drawn=True)
    result = Run.read(folder)
    _check_drawings(report, plot, width)
    command = shlex.join(
        ["ackclock", "report", str(folder), "--report", str(report), *(f"--beside={b}" for b in beside)]
    )
    for written in _draw(result, report, plot, width, others, command=command, name=f"{folder.name}.toml"):
        _terminal.show(f"written: {written}")


def _check_drawings(report: Path | None, plots: Sequence[str], width: str) -> list[Path]:
    """Check before the run that figures and files can be made, and return the files of `plots`."""
    if report is not None:
        _terminal.page_file(report, "--report")
    if not plots:
        return []
    from ackclock.plot import columns
    from ackclock.plot.style import needed

    needed(f"--plot {plots[0]}")
    if width not in columns.WIDTHS:
        raise InputError(f"--plot-width: found {quote(width)}; allowed: {', '.join(columns.WIDTHS)}")
    files = [columns.check(wanted)[2] for wanted in plots]
    for file in files:
        _terminal.writable_file(file, "--plot")
    return files


def _read_beside(beside: Sequence[str], *, drawn: bool) -> list[Measured]:
    """Read external measurements, before anything runs."""
    if not beside:
        return []
    if not drawn:
        raise InputError(f"--beside: found {quote(beside[0])} and nothing to draw; allowed: with --report or --plot")
    from ackclock import formats

    try:
        found = [formats.read(name) for name in beside]
        names = [one.name for one in found]
        return [  # otherwise run.json and run.txt would both be named "run"
            dataclasses.replace(one, name=Path(file).name) if names.count(one.name) > 1 else one
            for one, file in zip(found, beside, strict=True)
        ]
    except InputError as error:
        raise InputError(f"--beside {error}") from None


def _draw(
    result: Run,
    report: Path | None,
    plots: Sequence[str],
    width: str,
    beside: Sequence[Measured],
    *,
    command: str,
    name: str,
) -> list[Path]:
    written = []
    if report is not None:
        from ackclock.report import write
        from ackclock.report.run import page

        made = page(result, command=command, name=name, beside=beside)
        written.append(write(made, report, what=f"--report {report}"))
    if plots:
        from ackclock.plot import columns

        written += [columns.write(result, wanted, width=width, beside=beside) for wanted in plots]
    return written


def _network(scenario: Scenario, network: str | None) -> str:
    """Return the network on which the kernel runs the scenario; records added for a report do not influence the choice."""
    from ackclock import linux

    kind: Any = network or "auto"
    return linux.check(scenario, network=kind)


def _in_linux(
    scenario: Scenario, seed: int, pcap: Path | None, side: CapturePoint, network: str | None, wall_limit: int | None
) -> Run:
    from ackclock import linux

    kind: Any = network or "auto"
    return linux.run(scenario, seed=seed, network=kind, pcap=pcap, pcap_at=side, wall_limit_s=wall_limit)


def _check_capture(pcap: Path, out: Path | None) -> None:
    place = _files.resolved(pcap, f"--pcap {pcap}")
    if out is not None:
        folder = _files.resolved(out, f"--out {out}")
        if place == folder:
            raise InputError(f"--pcap {pcap}: found the folder of --out; allowed: another file")
        if place.parent == folder and not folder.exists():
            return  # created with the folder, which was checked
    _terminal.writable_file(pcap, "--pcap")


def _tell_room(scenario: Scenario, pcap: Path) -> None:
    """Warn before the run if the capture may be larger than the free disk space."""
    from ackclock import _engine
    from ackclock._results.run import engine_call, sizes

    if pcap.exists() and not pcap.is_file():
        return
    folder = next(place for place in pcap.resolve().parents if place.is_dir())
    needed = engine_call(lambda: _engine.estimate_capture(scenario.compiled))
    free = shutil.disk_usage(folder).free
    if needed > free:
        much, little = sizes(needed, free)
        _terminal.warn(f"ackclock: --pcap {shown(str(pcap))}: may take {much}, and {little} are free")


@contextmanager
def _capture(pcap: Path | None) -> Iterator[Path | None]:
    """Yield the file to be written by the engine; it gets its final name once complete."""
    if pcap is None:
        yield None
        return
    place = _files.resolved(pcap, f"--pcap {pcap}")
    try:
        if pcap.exists() and not pcap.is_file():  # devices and pipes are written directly
            yield pcap
            return
        with staged(place.parent, marks=OWN, what=f"--pcap {pcap}") as part:
            yield part / place.name
            _files.check_file(pcap, f"--pcap {pcap}")  # user code may have read more files since the first check
    except InputError as error:
        if not str(error).startswith("capture: "):
            raise
        raise UnavailableError(f"--pcap {pcap}: cannot be written ({reason(error)})") from None


def changes(texts: Sequence[str]) -> dict[str, Any]:
    """Return each `--set KEY=VALUE` by key. Values are TOML or bare text. The scenario is checked once, with all changes."""
    made: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key:
            raise InputError(f"--set: found {quote(text)}; allowed: KEY=VALUE, e.g. flows.0.congestion_control=reno")
        if key.count(".") > MOST_PARTS:
            raise InputError(f"--set: found a key of {key.count('.') + 1} parts; allowed: at most {MOST_PARTS}")
        if re.search(r"\[[0-9]+\]", key):
            meant = re.sub(r"\[([0-9]+)\]", r".\1", key)
            raise InputError(f'--set: found {quote(key)}; did you mean "{meant}"?; allowed: positions behind a dot')
        for part in key.split("."):
            if part.isdecimal() and part != str(int(part[:20])):
                raise InputError(f"--set: {key}: found {quote(part)}; allowed: a position without leading zeros")
        made.pop(key, None)  # the last value of a repeated key counts, at its position
        made[key] = _value(value.strip())
    return made


def controlled(scenario: Scenario, text: str) -> Scenario:
    """Apply one `--controller`: the class controls all flows, or those that select it by name."""
    from ackclock._files import give_leave
    from ackclock.own import class_meant, named
    from ackclock.scenario._parts import OWN

    name, equals, file = text.rpartition("=")
    if not named(file) and not equals:
        return _chosen(scenario, text)
    if not named(file) or (equals and not name):
        raise InputError(
            f"--controller: found {quote(text)}{class_meant(text)}; allowed: FILE.py:CLASS, FILE.c or FILE.rs, or NAME= before it; a built-in one is "
            "chosen with --set flows.0.congestion_control=NAME"
        )
    give_leave()
    wanted = [
        i
        for i, group in enumerate(scenario.flows)
        if (group.congestion_control == f"{OWN}{name}" if equals else not group.is_plain)
    ]
    if not wanted:
        asked = ", ".join(group.congestion_control for group in scenario.flows)
        raise InputError(
            f"--controller: found {quote(text)} for flows of {asked}; allowed: a name that a flow asks for"
        )
    changes: dict[str, Any] = {}
    for i in wanted:
        changes[f"flows.{i}.congestion_control"] = str(Path(file).resolve())
        if not equals and scenario.flows[i].congestion_control_options:
            changes[f"flows.{i}.congestion_control_options"] = {}
    try:
        return scenario.set_all(changes)
    except ScenarioError as error:
        raise _of_controller(error) from None


def _chosen(scenario: Scenario, name: str) -> Scenario:
    """Set this built-in controller for all flows that have a controller."""
    from ackclock.own import class_meant

    changes: dict[str, Any] = {}
    for i, group in enumerate(scenario.flows):
        if not group.is_plain:
            changes[f"flows.{i}.congestion_control"] = name
            if group.congestion_control_options:
                changes[f"flows.{i}.congestion_control_options"] = {}
    try:
        return scenario.set_all(changes)
    except ScenarioError as error:
        if error.key.endswith("congestion_control"):
            allowed = f"{error.allowed}, or FILE.py:CLASS, FILE.c, FILE.rs, or NAME= before such"
            raise InputError(f"--controller: found {quote(name)}{class_meant(name)}; allowed: {allowed}") from None
        raise _of_controller(error) from None


def _of_controller(error: ScenarioError) -> InputError:
    """Return an error of `--controller`; the key of the scenario is not named where the file of a controller is wrong."""
    if error.key != "congestion_control":
        return error.read_from("--controller")
    return InputError(f"--controller: found {error.found}; allowed: {error.allowed}")


def _value(text: str) -> Any:
    from ackclock.scenario._toml import read_toml

    if "\n" in text:
        return text
    try:
        return read_toml(f"value = {text}")[0]["value"]
    except ValueError:
        return text
