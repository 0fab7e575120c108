"""`ackclock evaluate`."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from ackclock import _files
from ackclock.cli import _terminal
from ackclock.cli._sweep import stoppable, told
from ackclock.cli._workers import Workers
from ackclock.errors import InputError, ScenarioError, quote

if TYPE_CHECKING:
    from ackclock.evaluate import Evaluation, Plan
    from ackclock.evaluate.situation import Environment, Scale


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """The options of the command."""

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


def run(controller: str, asked: Options) -> int:
    """Evaluate; exit code 1 if a row is worse."""
    from ackclock.evaluate import evaluate, page
    from ackclock.evaluate.files import to_json

    asked.workers.check()
    statements = _statements(asked.statement)
    plan = replace(_plan(controller, asked), stated=tuple(statements))
    folder = asked.out or Path(f"{_stem(controller)}.evaluate")
    page.check_folder(folder)
    if not folder.is_dir():
        _terminal.writable_folder(folder)
    stop = threading.Event()
    with _terminal.progress() as tell:

        def work() -> Evaluation:
            with asked.workers.open() as executor:
                return evaluate(plan, folder, executor, progress=told(tell), stop=stop)

        found = stoppable(work, stop)
    place = page.write(found, folder, statements=statements)
    if asked.as_json:
        _terminal.show_json(to_json(found, statements=statements))
    else:
        _terminal.show(_table(found))
        _terminal.say(page.conclusion(found))
        _terminal.say(f"digest over all digests: {found.digest}")
        _terminal.say(f"report: {place}")
    worse = any(r.verdict == "worse" or r.fails_must for r in found.rows)
    open_ = any(r.verdict == "no difference shown" and r.row.level == "MUST" for r in found.rows)
    return 1 if worse or (asked.strict and open_) else 0


def false_alarms(asked: Options, *, record: bool) -> int:
    """Measure how often CUBIC against itself is called worse."""
    from ackclock.evaluate import Arm, Plan
    from ackclock.evaluate import false_alarms as alarms
    from ackclock.evaluate.harness import REFERENCE

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
    from ackclock.evaluate.harness import REFERENCE

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
    )
    _ = plan.rows  # refused before anything runs
    return plan


def _stem(controller: str) -> str:
    """What its folder is called: the file of a class, a bug with its zoo."""
    head, _, bug = controller.partition(":")
    return f"{head}-{bug}" if head == "zoo" else Path(head).name.removesuffix(".py")


def _environment(asked: str) -> Environment:
    from ackclock.evaluate.situation import Environment

    allowed: tuple[Environment, ...] = get_args(Environment)
    for one in allowed:
        if asked == one:
            return one
    raise InputError(f"--environment: found {quote(asked)}; allowed: {', '.join(allowed)}")


def _with(name: str, options: Mapping[str, Any]) -> str:
    """A controller and its options, for people."""
    return name + (" (" + ", ".join(f"{k}={v}" for k, v in options.items()) + ")" if options else "")


def resolved(controller: str) -> str:
    """The name with its file as seen from anywhere; a bug of the zoo is a class of ours."""
    from ackclock.attack import zoo
    from ackclock.own import anchored, named

    controller = zoo.resolved(controller)
    return anchored(controller, Path.cwd()) if named(controller) else controller


def checked(controller: str, options: Mapping[str, Any], what: str) -> str:
    """The name of a controller, which exists and obeys the rules of all controllers."""
    from ackclock._agents.controllers import check
    from ackclock.attack import zoo
    from ackclock.own import described, named, short
    from ackclock.scenario import Scenario

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
        own = "" if place == "--option" or "FILE.py" in error.allowed else "FILE.py:CLASS, "
        raise InputError(f"{place}: found {error.found}; allowed: {own}{error.allowed}") from None
    if named(controller):
        check(described(resolved(controller), options).load(), closed_loop=False)  # the situations are such loops
        return short(controller)
    return controller


PREFIXES = {
    "kernel:": "a name that begins with kernel: with --backend linux only",
    "custom:": "FILE.py:CLASS; names that begin with custom: are those of ackclock.run",
}
"""Of names that a scenario may hold, but that no simulated candidate has."""


def in_kernel(controller: str, options: Mapping[str, Any], what: str) -> str:
    """The name of a controller that the built kernel has."""
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
    """An option of a controller."""
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
"""Bytes of the author's texts."""


def _statements(path: Path | None) -> dict[str, str]:
    """What the author says, section by section."""
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
