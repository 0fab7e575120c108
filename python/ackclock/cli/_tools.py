"""`ackclock list`, `tables`, `schema`, `bench`, `fidelity` and `--version`."""

from __future__ import annotations

from ackclock.cli import _terminal
from ackclock.errors import InputError, one_of, quote


def version() -> None:
    """Print the versions of the package and its engine."""
    import ackclock
    from ackclock import _engine

    _terminal.say(f"ackclock {ackclock.__version__} (engine {_engine.version()})")
    _terminal.say(f"build {_engine.build()}")


def names(*, as_json: bool) -> None:
    """List what scenarios can name."""
    from ackclock import _engine
    from ackclock.scenario._shipped import shipped

    registry = {**_engine.registry(), "scenarios": shipped()}
    if as_json:
        options = {
            controller: {
                name: {"takes": takes, "default": default, "about": about} for name, takes, default, about in known
            }
            for controller, known in _engine.controller_options().items()
        }
        _terminal.show_json({**{kind: dict(entries) for kind, entries in registry.items()}, "options": options})
        return
    width = max(len(name) for entries in registry.values() for name, _ in entries)
    for kind, entries in registry.items():
        _terminal.say(f"{kind}:")
        for name, line in entries:
            _terminal.say(f"  {name:<{width}}  {line}")
    _terminal.say("options of controllers (congestion_control_options):")
    for controller, parameters in _engine.controller_options().items():
        for name, takes, default, about in parameters:
            given = f"{takes}; {default}" if default else takes
            _terminal.say(f"  {controller + ': ' + name:<{width}}  {about} ({given})")


def tables(name: str | None, *, as_json: bool) -> None:
    """List the tables of a run, or the columns of one."""
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
    """Print the JSON Schema."""
    from ackclock.scenario import Scenario

    _terminal.show_json(Scenario.json_schema())


def bench(*, as_json: bool, quick: bool, instructions: bool) -> None:
    """Measure and print."""
    from ackclock import bench as benchmark

    if instructions:
        with _terminal.progress() as progress:
            counted = benchmark.count(progress=progress)
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


def fidelity(*, seeds: int, jobs: int | None, as_json: bool) -> int:
    """Compare and print."""
    from ackclock import fidelity as comparison

    with _terminal.progress() as progress:
        threads = jobs or _terminal.cpus()
        result = _terminal.interruptible(lambda: comparison.compare(seeds=seeds, jobs=threads, progress=progress))
    if as_json:
        _terminal.show_json(result.to_json())
    else:
        _terminal.show(result.table())
    for line in result.unexpected:
        _terminal.warn(f"ackclock: not as recorded: {line}")
    return 1 if result.unexpected else 0
