"""`ackclock list`, `tables`, `schema`, `bench`, `fidelity` and `--version`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ackclock.cli import _terminal
from ackclock.cli._options import Jobs, Json, whole_number
from ackclock.errors import InputError, one_of, quote

if TYPE_CHECKING:
    from ackclock.scenario import Scenario


def version() -> None:
    """Print the versions of the package and its engine, the engine's build and the profile that it was built with."""
    import ackclock
    from ackclock import _engine

    _terminal.say(f"ackclock {ackclock.__version__} (engine {_engine.version()})")
    _terminal.say(f"build {_engine.build()}, profile {_engine.profile()}")


def cite(
    run: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="Folder that `run --out` has written.", show_default=False)
    ] = None,
) -> None:
    """Print how to cite this version, and a run of it. The format is BibTeX, with the build and the digest that identify the run."""
    import ackclock
    from ackclock import _engine

    notes = [f"engine build {_engine.build()}"]
    if run is not None:
        from ackclock._results.result import Run

        read = Run.read(run)
        made = "".join(f", {key} = {value}" for key, value in _changes(read.scenario).items())
        notes.append(
            f"run {read.scenario.name or 'without a name'}{made}, seed {read.seed}, digest {read.digest}, engine {read.engine}"
        )
    _terminal.say(
        "@software{ackclock,\n"
        "  title = {ackclock: a laboratory for {TCP} congestion control and loss recovery},\n"
        "  author = {{The ackclock developers}},\n"
        f"  version = {{{ackclock.__version__}}},\n"
        "  license = {MIT OR Apache-2.0},\n"
        f"  note = {{{re.sub('([_%&#$])', lambda sign: chr(92) + sign[0], '; '.join(notes))}}}\n}}"
    )


def _changes(scenario: Scenario) -> dict[str, Any]:
    """Return the controllers of a run, and the keys whose values differ from the shipped scenario of its name, except what is recorded."""
    from ackclock.scenario import load
    from ackclock.scenario._shipped import shipped

    def leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
        if not isinstance(value, dict | list) or not value:
            yield key, value
            return
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, f"{key}.{name}" if key else str(name))

    own = dict(leaves({key: value for key, value in scenario.to_dict().items() if key != "record"}))
    known = scenario.name in dict(shipped())
    base = dict(leaves(load(scenario.name).to_dict())) if known else own
    return {
        key: Path(value).name if key.endswith(".congestion_control") else value  # no paths of a machine
        for key, value in own.items()
        if key.endswith(".congestion_control") or key not in base or base[key] != value
    }


def names(
    what: Annotated[
        str | None,
        typer.Argument(metavar="WHAT", help="Kind of names: controllers, metrics, scenarios, ...", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """List controllers, rules, queues, profiles, workloads and so on. All kinds, or one of them."""
    from ackclock import _engine, population
    from ackclock.formats._sources import SOURCES
    from ackclock.scenario._shipped import shipped

    registry = {
        **_engine.registry(),
        "scenarios": shipped(),
        "populations": [(name, population.read(name).told) for name in population.names()],
        "recordings": [
            (name, f"{what}; {where}; --form {form}; licence: {licence}")
            for name, what, where, form, licence in SOURCES
        ],
    }
    kinds = (*registry, "options")
    if what is not None and what not in kinds:
        holds = [kind for kind, entries in registry.items() if what in (name for name, _ in entries)]
        meant = " or ".join(f'"list {kind}"' for kind in holds)
        meant = f", which is in the list of {' and '.join(holds)}; did you mean {meant}?" if holds else ""
        raise InputError(f"list: found {quote(what)}{meant}; allowed: {one_of(what, kinds)}")
    if what is not None:
        registry = {kind: entries for kind, entries in registry.items() if kind == what}
    if as_json:
        options = {
            controller: {
                name: {"takes": takes, "default": default, "about": about} for name, takes, default, about in known
            }
            for controller, known in _engine.controller_options().items()
        }
        shown = {kind: dict(entries) for kind, entries in registry.items()}
        _terminal.show_json(shown if what not in (None, "options") else {**shown, "options": options})
        return
    width = max((len(name) for entries in registry.values() for name, _ in entries), default=24)
    for kind, entries in registry.items():
        _terminal.say(f"{kind}:")
        for name, line in entries:
            _terminal.say(f"  {name:<{width}}  {line}")
    if what not in (None, "options"):
        return
    _terminal.say("options of controllers (congestion_control_options):")
    for controller, parameters in _engine.controller_options().items():
        for name, takes, default, about in parameters:
            given = f"{takes}; {default}" if default else takes
            _terminal.say(f"  {controller + ': ' + name:<{width}}  {about} ({given})")


def tables(
    name: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="Name of a table, to show its columns.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Describe a run's tables: type, unit and meaning of null for each column."""
    from dataclasses import asdict

    from rich.table import Table
    from rich.text import Text

    from ackclock._results.tables import tables as described

    known = described()
    if name is not None and name not in known:
        raise InputError(f"table: found {quote(name)}; allowed: {one_of(name, known)}")
    wanted = list(known.values()) if name is None else [known[name]]
    if as_json:
        _terminal.show_json(
            {t.name: {"about": t.about, "columns": [asdict(c) for c in t.columns.values()]} for t in wanted}
        )
        return
    shown = Table(box=None, pad_edge=False)
    if name is None:
        for title in ("table", "what it holds"):
            shown.add_column(title, overflow="fold")
        for table in wanted:
            shown.add_row(table.name, Text(table.about))
        _terminal.show(shown)
        return
    for title in ("column", "type", "unit", "meaning", "null"):
        shown.add_column(title, overflow="fold")
    for column in wanted[0].columns.values():
        shown.add_row(column.name, column.type, column.unit, Text(column.meaning), Text(column.null))
    _terminal.show(Text(wanted[0].about + "\n"), shown)


def schema() -> None:
    """Print the JSON Schema of a scenario."""
    from ackclock.scenario import Scenario

    _terminal.show_json(Scenario.json_schema())


def bench(
    as_json: Json = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Shorter runs without repeats; no crowds. For a first look.")
    ] = False,
    instructions: Annotated[
        bool, typer.Option("--instructions", help="Count instructions instead (needs valgrind).")
    ] = False,
) -> None:
    """Measure the cost of a delivered packet. In ns of user CPU time, compared with a yardstick loop, or in instructions."""
    from ackclock import bench as benchmark

    if instructions:
        with _terminal.progress() as progress:
            counted = benchmark.count(quick=quick, progress=progress)
        if as_json:
            _terminal.show_json(counted.to_json())
        else:
            _terminal.show(counted.table())
        return
    with _terminal.progress() as progress:
        result = benchmark.measure(quick=quick, progress=progress)
    if as_json:
        _terminal.show_json(result.to_json())
    else:
        _terminal.show(result.table())
        _terminal.show(result.controllers_table())


def fidelity(
    seeds: Annotated[
        int, typer.Option(parser=whole_number(2, 1000), metavar="N", help="Seeds of each lossy cell, 2 to 1000.")
    ] = 40,
    jobs: Jobs = None,
    as_json: Json = False,
) -> int:
    """Compare the simulator with measurements of a real Linux kernel. Exit code 1 if there is an unknown miss."""
    from ackclock import fidelity as comparison

    threads = jobs or _terminal.cpus()
    _terminal.warn(
        f"ackclock: runs all cells that the kernel was measured in, the lossy ones with {seeds} seeds each: about a minute with 40"
    )
    with _terminal.progress() as progress:
        result = _terminal.interruptible(lambda: comparison.compare(seeds=seeds, jobs=threads, progress=progress))
    if as_json:
        _terminal.show_json(result.to_json())
    else:
        _terminal.show(result.table())
    for line in result.unexpected:
        _terminal.warn(f"ackclock: not as recorded: {line}")
    return 1 if result.unexpected else 0
