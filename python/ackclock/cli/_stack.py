"""`ackclock stack check`, and the option `--stack` of other commands."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ackclock.cli import _terminal
from ackclock.cli._options import NOTHING, Json


def check(
    library: Annotated[
        Path, typer.Argument(metavar="LIB", help="Shared library of ackclock_stack.h.", show_default=False)
    ],
    controller: Annotated[
        list[str], typer.Option(metavar="NAME", help="Only this controller of the stack. Repeatable.")
    ] = NOTHING,
    as_json: Json = False,
) -> None:
    """Test a library against the contract of its header. Each breach is a line; exit code 2 if there is one."""
    from ackclock import stacks

    found, broken = [], 0
    for finding in stacks.check(library, controllers=controller):
        found.append(finding)
        broken += not finding.holds
        if not as_json:
            mark, say = ("ok  ", _terminal.say) if finding.holds else ("FAIL", _terminal.warn)
            say(f"{mark}  {finding.controller:<10} {finding.check:<12} {finding.text}")
    if as_json:
        _terminal.show_json([asdict(finding) for finding in found])
    if broken:
        raise typer.Exit(2)
