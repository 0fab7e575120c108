"""`ackclock study`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ackclock.cli import _terminal
from ackclock.errors import InputError, one_of, quote

if TYPE_CHECKING:
    from ackclock.study import Study


def names(*, as_json: bool) -> None:
    """List the studies."""
    from ackclock import studies

    found = [studies.get(name) for name in studies.names()]
    if as_json:
        _terminal.show_json([{"name": s.name, "title": s.title} for s in found])
        return
    width = max(len(s.name) for s in found)
    for s in found:
        typer.echo(f"{s.name:<{width}}  {s.title}")


def show(name: str, *, tables: bool) -> None:
    """Describe a study."""
    typer.echo(_get(name).show(tables=tables), nl=False)


def run(name: str, *, scale: str, seeds: int | None, jobs: int | None, out: Path | None, as_json: bool) -> int:
    """Run a study, print its claims, write its report."""
    found = _get(name)
    from ackclock.study import SCALES

    if scale not in SCALES:
        raise InputError(f"--scale: found {quote(scale)}; allowed: {one_of(scale, SCALES)}")
    if out is not None:
        _terminal.writable_folder(out)
    with _terminal.progress() as progress:
        threads = jobs or _terminal.cpus()
        result = _terminal.interruptible(lambda: found.run(scale=scale, seeds=seeds, jobs=threads, progress=progress))
        report = None if out is None else result.write(out)
    if as_json:
        _terminal.show_json(result.to_json())
    else:
        _terminal.show(result.claims_table())
        if report is not None:
            typer.echo(f"report: {report}")
    for line in result.unexpected:
        _terminal.warn(f"ackclock: not as recorded: {line}")
    return 1 if result.unexpected else 0


def _get(name: str) -> Study:
    from ackclock import studies

    known = list(studies.names())
    if name not in known:
        raise InputError(f"study: found {quote(name)}; allowed: {one_of(name, known)}")
    return studies.get(name)
