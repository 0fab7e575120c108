"""`ackclock list`, `schema`, `bench`, `fidelity` and `--version`."""

from __future__ import annotations

import typer

from ackclock.cli import _terminal


def version() -> None:
    """Print the versions of the package and its engine."""
    import ackclock
    from ackclock import _engine

    typer.echo(f"ackclock {ackclock.__version__} (engine {_engine.version()})")


def names(*, as_json: bool) -> None:
    """List what scenarios can name."""
    from ackclock import _engine

    registry = _engine.registry()
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
        typer.echo(f"{kind}:")
        for name, line in entries:
            typer.echo(f"  {name:<{width}}  {line}")
    typer.echo("options of controllers (congestion_control_options):")
    for controller, parameters in _engine.controller_options().items():
        for name, takes, default, about in parameters:
            given = f"{takes}; {default}" if default else takes
            typer.echo(f"  {controller + ': ' + name:<{width}}  {about} ({given})")


def schema() -> None:
    """Print the JSON Schema."""
    from ackclock.scenario import Scenario

    _terminal.show_json(Scenario.model_json_schema())


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
