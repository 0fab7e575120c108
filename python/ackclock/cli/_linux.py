"""`ackclock linux build`, `list` and `remove`, and `ackclock doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ackclock.cli import _terminal
from ackclock.cli._options import NOTHING, Jobs, Json
from ackclock.errors import InputError


def build(
    source: Annotated[
        str | None,
        typer.Option(
            metavar="ARCHIVE|PACKAGE",
            help="Kernel source: a tar archive or a Debian package (default: Linux 7.3.4, pinned).",
        ),
    ] = None,
    tree: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Kernel source: a folder, which is only read. What changed is compiled."),
    ] = None,
    controller: Annotated[
        list[Path],
        typer.Option("--controller", metavar="FILE", help="Congestion controller (C) to build in. Repeatable."),
    ] = NOTHING,
    patch: Annotated[
        list[Path],
        typer.Option("--patch", metavar="FILE", help="Patch of the kernel tree to apply. Repeatable."),
    ] = NOTHING,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Keep the kernel under this name (default: it becomes the one that runs use)."
        ),
    ] = None,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Build the kernel of the linux backend. Takes minutes the first time, seconds with another controller or a patch."""
    from ackclock import linux

    with _terminal.progress() as progress:
        kernel = linux.build(
            source=source,
            tree=tree,
            controllers=controller,
            patches=patch,
            name=name,
            jobs=jobs or _terminal.cpus(),
            progress=progress,
            told=_terminal.warn,
        )
    if as_json:
        _terminal.show_json({"path": str(kernel.path), **kernel.about})
        return
    _terminal.say(f"Linux {kernel.release} ({kernel.about['source']}): {kernel.path}")
    _terminal.say(f"controllers: {', '.join(kernel.controllers)}")


def show_kernels(as_json: Json = False) -> None:
    """List the kernels in the cache, and the parts of the cache that no kernel needs."""
    from rich.table import Table

    from ackclock import linux

    found, rest = linux.kept(), linux.unused()
    if as_json:
        _terminal.show_json({"kernels": [one.to_json() for one in found], "unused": rest})
        return
    table = Table()
    for column in ("name", "Linux", "of", "with", "built in"):
        table.add_column(column, overflow="fold")
    for one in found:
        names = ", ".join((*(one.names or [f"no name: {one.folder}"]), *(["(runs use it)"] if one.current else [])))
        table.add_row(names, one.release, one.source, ", ".join(one.own) or "\u2013", one.tree or "\u2013")
    _terminal.show(table)
    if rest:
        _terminal.say(
            f"no kernel needs {len(rest)} parts of the cache; `ackclock linux remove --unused` removes them, --json names them"
        )


def remove(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Names of kernels.", show_default=False)
    ] = None,
    rest: Annotated[
        bool, typer.Option("--unused", help="Remove everything that neither a named kernel nor the current one needs.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove kernels by their names; trees and guest programs go with the last kernel that needs them."""
    from ackclock import linux

    if not names and not rest:
        raise InputError("linux remove: found neither a name nor --unused; allowed: one of them, or both")
    gone = linux.remove(names or []) + (linux.remove_unused() if rest else [])
    if as_json:
        _terminal.show_json({"removed": gone})
    else:
        _terminal.say(
            f"removed: {', '.join(gone) or 'nothing but the names: another name, or the current kernel, still needs them'}"
        )


def doctor(
    packages: Annotated[
        bool, typer.Option("--packages", help="Print only the names of missing Debian packages, for `apt-get install`.")
    ] = False,
    as_json: Json = False,
) -> int:
    """List what the linux backend lacks on this machine. Exit code 3 if anything is missing."""
    from ackclock import linux

    found = linux.missing()
    if packages:
        found = [finding for finding in found if finding.package]
    if as_json:
        _terminal.show_json([{"needed": f.needed, "missing": f.what, "package": f.package} for f in found])
    elif packages:
        for finding in found:
            _terminal.say(finding.package or "")
    else:
        for finding in found:
            _terminal.say(f"to {finding.needed} the linux backend: {finding.what}")
        if not found:
            kernel = linux.installed()
            _terminal.say(f"nothing is missing; the linux backend runs Linux {kernel.release}")
    return 3 if found else 0
