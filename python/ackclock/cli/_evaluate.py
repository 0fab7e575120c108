"""`ackclock evaluate`."""

from __future__ import annotations

import math
import shlex
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from ackclock import _files
from ackclock.cli import _terminal
from ackclock.cli._options import (
    NOTHING,
    Jobs,
    Json,
    Kernels,
    Pbs,
    Scheduler,
    Slurm,
    Stacks,
    Worker,
    file_name,
    load_stacks,
    use,
)
from ackclock.cli._sweep import stoppable, told
from ackclock.cli._workers import Workers
from ackclock.errors import InputError, ScenarioError, quote

if TYPE_CHECKING:
    from ackclock.evaluate import Evaluation, Plan
    from ackclock.evaluate.situation import Environment, Scale


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """The command's options."""

    options: Sequence[str]
    rival: str | None
    rival_options: Sequence[str]
    quick: bool
    full: bool
    rows: str | None
    gigabit: bool
    statement: Path | None
    out: Path | None
    strict: bool
    workers: Workers
    as_json: bool
    backend: str = "sim"
    environment: str = "internet"
    population: str | None = None
    within_s: float | None = None
    stacks: Sequence[Path] = ()


def evaluate_(
    controller: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|FILE.py:CLASS|FILE.c|FILE.rs|zoo:NAME",
            help="The candidate: a controller by name, your own, or a bug of the zoo.",
            show_default=False,
        ),
    ] = None,
    option: Annotated[
        list[str], typer.Option(metavar="NAME=VALUE", help="Option of the controller. Repeatable.")
    ] = NOTHING,
    rival: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE.py:CLASS|FILE.c|FILE.rs", help="Another controller to show beside it."),
    ] = None,
    rival_option: Annotated[
        list[str], typer.Option(metavar="NAME=VALUE", help="Option of that controller. Repeatable.")
    ] = NOTHING,
    quick: Annotated[
        bool, typer.Option("--quick", help="A few cells of each situation, three seeds: an indication.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Every cell up to 100 Mbit/s, up to 80 seeds.")] = False,
    gigabit: Annotated[bool, typer.Option("--gigabit", help="With --full: also the cells of 1 Gbit/s.")] = False,
    rows: Annotated[str | None, typer.Option(metavar="ID,...", help="Only these situations, e.g. 5,10,x1.")] = None,
    statement: Annotated[
        Path | None,
        typer.Option(
            parser=file_name, metavar="FILE", help="TOML with the author's texts for sections 5.3.1, 5.3.2 and 8."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(parser=file_name, metavar="DIR", help="Folder of report and runs (default: NAME.evaluate)."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 1 also if a situation with a MUST shows no difference.")
    ] = False,
    decide: Annotated[
        bool,
        typer.Option("--decide", help="Further runs for situations that show no difference, twice as many each time."),
    ] = False,
    within: Annotated[
        float | None,
        typer.Option(
            metavar="MINUTES", help="With --decide: how long at most, beyond the runs of the scale (default: 10)."
        ),
    ] = None,
    false_alarms: Annotated[
        bool,
        typer.Option("--false-alarms", help="Without a candidate: how often CUBIC against itself is called worse."),
    ] = False,
    record: Annotated[bool, typer.Option("--record", help="Keep the rate of false alarms for reports.")] = False,
    backend: Annotated[
        str,
        typer.Option(metavar="sim|linux", help="linux: on the real kernel, with a controller that is built into it."),
    ] = "sim",
    environment: Annotated[
        str,
        typer.Option(
            metavar="internet|datacentre", help="datacentre: also situation 25, for a controller meant for it."
        ),
    ] = "internet",
    population: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE.toml",
            help="Also situation x6: paths drawn from this population (uk-homes-2015, or yours).",
        ),
    ] = None,
    kernel: Kernels = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    slurm: Slurm = None,
    pbs: Pbs = None,
    worker: Worker = NOTHING,
    stack: Stacks = NOTHING,
    as_json: Json = False,
) -> int:
    """Judge a controller in the situations of RFC 9743. Each is run again with CUBIC in its place. Exit code 1 if it is worse in one.

    Your own class is executed. In an existing folder only the missing runs are made.
    """
    asked = Options(
        options=option,
        rival=rival,
        rival_options=rival_option,
        quick=quick,
        full=full,
        rows=rows,
        gigabit=gigabit,
        statement=statement,
        out=out,
        strict=strict,
        workers=Workers(jobs=jobs, scheduler=scheduler, slurm=slurm, pbs=pbs, options=worker),
        as_json=as_json,
        backend=backend,
        environment=environment,
        population=population,
        within_s=_seconds(within) if decide else None,
        stacks=tuple(stack),
    )
    if within is not None and not decide:
        raise InputError("--within: found it without --decide; allowed: together")
    if decide and false_alarms:
        raise InputError("--decide: found it beside --false-alarms; allowed: one of them")
    if backend not in ("sim", "linux"):
        raise InputError(f"--backend: found {quote(backend)}; allowed: sim, linux")
    if kernel is not None and backend != "linux":
        raise InputError("--kernel: found it without --backend linux; allowed: together")
    use(kernel)
    load_stacks(stack)
    if population is not None and (false_alarms or backend == "linux"):
        raise InputError("--population: found it beside --false-alarms or --backend linux; allowed: without them")
    if backend == "linux" and false_alarms:
        raise InputError("--backend: found linux beside --false-alarms; allowed: sim")
    if record and not false_alarms:
        raise InputError("--record: found it without --false-alarms; allowed: together")
    if (controller is None) != false_alarms:
        given = "nothing" if controller is None else f"{quote(controller)} beside --false-alarms"
        raise InputError(f"CONTROLLER: found {given}; allowed: a controller, or --false-alarms")
    if controller is None:
        return _false_alarms(asked, record=record)
    return _run(controller, asked)


def _seconds(minutes: float | None) -> float:
    """Return the time allowed for further runs, s."""
    if minutes is not None and not 0 < minutes < math.inf:
        raise InputError(f"--within: found {minutes:g}; allowed: minutes, above 0")
    return 60 * (MINUTES if minutes is None else minutes)


MINUTES = 10.0
"""Default time allowed for further runs, minutes."""


def _run(controller: str, asked: Options) -> int:
    """Evaluate a controller; return exit code 1 if a row is worse."""
    from ackclock.evaluate import Within, evaluate, page
    from ackclock.evaluate.files import to_json

    asked.workers.check()
    statements = _statements(asked.statement)
    plan = replace(_plan(controller, asked), stated=tuple(statements))
    folder = asked.out or Path(f"{_stem(controller)}.evaluate")
    _terminal.own_folder(folder, page.WRITTEN, page.MARKS, whose="evaluation")
    stop = threading.Event()
    within = None if asked.within_s is None else Within(seconds=asked.within_s)
    with _terminal.progress() as tell:

        def work() -> Evaluation:
            with asked.workers.open() as executor:
                return evaluate(plan, folder, executor, progress=told(tell), stop=stop, within=within)

        found = stoppable(work, stop)
    place = page.write(found, folder, statements=statements)
    if asked.as_json:
        _terminal.show_json(to_json(found, statements=statements))
    else:
        _terminal.show(_table(found))
        for line in _open(found, controller, asked.out, folder, asked.stacks):
            _terminal.say(line)
        _terminal.say(page.conclusion(found))
        _terminal.say(f"digest over all digests: {found.digest}")
        _terminal.say(f"report: {place}")
    worse = any(r.verdict == "worse" or r.fails_must for r in found.rows)
    open_ = any(r.verdict == "no difference shown" and r.row.level == "MUST" for r in found.rows)
    return 1 if worse or (asked.strict and open_) else 0


def _open(found: Evaluation, controller: str, out: Path | None, folder: Path, stacks: Sequence[Path] = ()) -> list[str]:
    """Return lines on the result of further runs, and on what would settle the rows that still show no difference."""
    from ackclock.evaluate import page
    from ackclock.evaluate.files import settling_commands

    lines = [page.decided(found.decided)] if found.decided is not None else []
    more = [f"--stack {shlex.quote(str(file))}" for file in stacks]
    more += [f"--out {shlex.quote(str(out))}"] if out is not None else []
    commands = settling_commands(found, more=more, folder=folder, candidate=controller)
    lines += ["What would settle the rows that show no difference:"] if found.open else []
    for command in dict.fromkeys(commands.values()):
        lines += [f"  {one.row}: {one.text}" for one in found.open if commands[one.row] == command]
        lines += [f"    {command}"] if command else []
    return lines


def _false_alarms(asked: Options, *, record: bool) -> int:
    """Measure how often CUBIC is called worse than itself."""
    from ackclock.evaluate import Arm, Plan
    from ackclock.evaluate import false_alarms as alarms
    from ackclock.evaluate.plan import REFERENCE

    asked.workers.check()
    plan = Plan(
        candidate=Arm(role="candidate", name=REFERENCE, controller=REFERENCE),
        scale=_scale(asked),
        only=_only(asked),
    )
    _ = plan.rows
    folder = asked.out or Path("false-alarms.evaluate")
    if not folder.is_dir():
        _terminal.writable_folder(folder)
    stop = threading.Event()
    with _terminal.progress() as tell:

        def work() -> alarms.Alarms:
            with asked.workers.open() as executor:
                return alarms.measure(plan, folder, executor, progress=told(tell), stop=stop)

        found = stoppable(work, stop)
    said = found.to_json()
    if record:
        alarms.record(found)
    if asked.as_json:
        _terminal.show_json(said)
        return 0
    low, high = said["interval"]
    _terminal.say(
        f"CUBIC against itself under other seeds, {found.repetitions} evaluations at the scale {found.scale}: "
        f"{said['row_rate'] * 100:.2g} % of {said['rows']} rows called worse (95 %: {low * 100:.2g} to {high * 100:.2g} %), "
        f"{said['better_rate'] * 100:.2g} % better; a row worse in {said['report_rate'] * 100:.2g} % of the evaluations"
    )
    for row, count in found.worse.items():
        if count or found.better[row]:
            _terminal.say(f"row {row}: worse {count}, better {found.better[row]} of {found.tested[row]}")
    return 0


def _scale(asked: Options) -> Scale:
    if asked.quick and asked.full:
        raise InputError("--full: found it beside --quick; allowed: one of them, or neither for the standard scale")
    return "quick" if asked.quick else "full" if asked.full else "standard"


def _only(asked: Options) -> tuple[str, ...]:
    return tuple(r.strip() for r in asked.rows.split(",")) if asked.rows is not None else ()


def _plan(controller: str, asked: Options) -> Plan:
    from ackclock.evaluate import Arm, Plan
    from ackclock.evaluate.plan import REFERENCE
    from ackclock.population import read as read_population

    scale = _scale(asked)
    if asked.gigabit and scale != "full":
        raise InputError("--gigabit: found it without --full; allowed: together")
    options = dict(option_of(text) for text in asked.options)
    kernels = asked.backend == "linux"
    if kernels and asked.workers.elsewhere:
        raise InputError("--backend: found linux beside other machines; allowed: with --jobs only")
    check = in_kernel if kernels else checked
    name = check(controller, options, "CONTROLLER")
    name = _with(name, options)
    rival = None
    theirs = dict(option_of(text) for text in asked.rival_options)
    if theirs and asked.rival is None:
        raise InputError("--rival-option: found it without --rival; allowed: together")
    if asked.rival is not None:
        if asked.rival == REFERENCE and not theirs:
            raise InputError(f"--rival: found {quote(REFERENCE)}, the reference anyway; allowed: another controller")
        said = _with(check(asked.rival, theirs, "--rival"), theirs)
        rival = Arm(role="rival", name=said, controller=resolved(asked.rival), options=theirs)
    plan = Plan(
        candidate=Arm(role="candidate", name=name, controller=resolved(controller), options=options),
        rival=rival,
        scale=scale,
        only=_only(asked),
        gigabit=asked.gigabit,
        environment=_environment(asked.environment),
        backend="linux" if kernels else "sim",
        population=None if asked.population is None else read_population(asked.population),
    )
    _ = plan.rows  # raises an error if no row can run
    return plan


def _stem(controller: str) -> str:
    """Return the stem of the output folder's name: a class's file, a bug in the zoo, a stack's controller."""
    head = controller.partition(":")[0]
    if head in ("zoo", "quinn", "stack"):
        return controller.replace(":", "-")
    return Path(head).name.removesuffix(".py").removesuffix(".c").removesuffix(".rs")


def _environment(asked: str) -> Environment:
    from ackclock.evaluate.situation import Environment

    allowed: tuple[Environment, ...] = get_args(Environment)
    for one in allowed:
        if asked == one:
            return one
    raise InputError(f"--environment: found {quote(asked)}; allowed: {', '.join(allowed)}")


def _with(name: str, options: Mapping[str, Any]) -> str:
    """Return a controller's name with its options, for display."""
    return name + (" (" + ", ".join(f"{k}={v}" for k, v in options.items()) + ")" if options else "")


def resolved(controller: str) -> str:
    """Return the controller's name with the absolute path of its file; a bug in the zoo becomes one of our classes."""
    from ackclock._files import give_leave
    from ackclock.attack import zoo
    from ackclock.own import anchored, named

    controller = zoo.resolved(controller)
    if named(controller):
        give_leave()
    return anchored(controller, Path.cwd()) if named(controller) else controller


def checked(controller: str, options: Mapping[str, Any], what: str) -> str:
    """Check that a controller exists and passes the conformance test; return its name."""
    from ackclock._agents.controllers import check
    from ackclock._files import give_leave
    from ackclock.attack import zoo
    from ackclock.own import class_meant, described, named, short
    from ackclock.scenario import Scenario

    if named(controller):
        give_leave()
    if (bug := zoo.resolved(controller, what)) != controller:
        checked(bug, options, what)
        return controller
    for prefix, allowed in PREFIXES.items():
        if controller.startswith(prefix):
            raise InputError(f"{what}: found {quote(controller)}; allowed: {allowed}")
    try:
        network = {"bottleneck": {"rate": "10 Mbit/s", "delay": "20 ms"}}
        flows = {"congestion_control": controller, **({"congestion_control_options": dict(options)} if options else {})}
        Scenario.from_dict({"duration": "1 s", "network": network, "flows": [flows]}).to_engine_json()
    except ScenarioError as error:
        place = what if error.key.endswith("congestion_control") else "--option"
        own = "" if place == "--option" or "FILE." in error.allowed else "FILE.py:CLASS, FILE.c, FILE.rs, "
        raise InputError(
            f"{place}: found {error.found}{class_meant(controller)}; allowed: {own}{error.allowed}"
        ) from None
    if named(controller):
        check(described(resolved(controller), options).load(), closed_loop=False)  # situations are closed loops
        return short(controller)
    return controller


PREFIXES = {
    "kernel:": "a name that begins with kernel: with --backend linux only",
    "custom:": "FILE.py:CLASS, FILE.c or FILE.rs; names that begin with custom: are those of ackclock.run",
}
"""Name prefixes allowed in a scenario but not for a simulated candidate, with the names to be used instead."""


def in_kernel(controller: str, options: Mapping[str, Any], what: str) -> str:
    """Check that the built kernel has a controller; return its name."""
    from ackclock import linux
    from ackclock.errors import one_of
    from ackclock.evaluate import kernel

    if options:
        raise InputError(f"--option: found {quote(next(iter(options)))}; allowed: no options, with --backend linux")
    if not kernel.has(controller):
        near = one_of(controller, [f"kernel:{name}" for name in linux.installed().controllers])
        raise InputError(f"{what}: found {quote(controller)}; allowed: {near}")
    return controller


def option_of(text: str) -> tuple[str, bool | float | str]:
    """Return the name and value of a controller option."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise InputError(f"--option: found {quote(text)}; allowed: NAME=VALUE")
    if value in ("true", "false"):
        return key, value == "true"
    try:
        return key, float(value) if not value.lstrip("-").isdecimal() else int(value)
    except ValueError:
        return key, value


LARGEST_STATEMENT = 2**20
"""Maximum size of the author's statements file, bytes."""


def _statements(path: Path | None) -> dict[str, str]:
    """Return the author's statements by section."""
    from ackclock.evaluate.rows.text import STATEMENTS
    from ackclock.scenario._toml import read_toml

    if path is None:
        return {}
    allowed = f"a TOML file with texts for {', '.join(quote(s) for s in STATEMENTS)}"
    try:
        text = _files.regular(path, LARGEST_STATEMENT)
    except InputError as error:
        raise InputError(f"--statement {str(error).partition('; allowed')[0]}; allowed: {allowed}") from None
    try:
        words = text.decode()
        found, _ = read_toml(words)
    except ValueError as error:
        why = error.found if isinstance(error, ScenarioError) else error
        raise InputError(f"--statement {path}: found no valid TOML ({why}); allowed: {allowed}") from None
    for key, value in found.items():
        if key not in STATEMENTS or not isinstance(value, str):
            raise InputError(f"--statement {path}: found {quote(key)}; allowed: {allowed}")
    return found


def _table(found: Evaluation) -> Any:
    from rich.table import Table

    from ackclock.evaluate.page import lines

    plan = found.plan
    first, most = plan.counts
    seeds = f"{first}" if first == most else f"{first} to {most}"
    table = Table(
        title=f"{plan.candidate.name} in CUBIC's place, scale {plan.scale}, {seeds} seeds, margins ours",
        title_justify="left",
    )
    for head in ("row", "RFC 9743", "level", "situation", "verdict", "worst cell"):
        table.add_column(head, overflow="fold")
    for line in lines(found):
        table.add_row(*line)
    return table
