"""`ackclock check`: all errors in a scenario, each with its position."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ackclock.cli import _terminal
from ackclock.cli._options import Json
from ackclock.errors import ScenarioError, shown


def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Scenario files, or names of shipped ones.")],
    as_json: Json = False,
) -> None:
    """List everything that is wrong with a scenario, and where. Nothing is run."""
    found = {file: wrong(file) for file in files}
    if as_json:
        _terminal.show_json({file: [as_values(one) for one in errors] for file, errors in found.items()})
    else:
        for file, errors in found.items():
            for one in errors:
                _terminal.say(told(one))
            if not errors:
                _terminal.say(f"{shown(file)}: ok, a scenario")
    if any(found.values()):
        raise typer.Exit(2)


def wrong(file: str) -> list[ScenarioError]:
    """Return a file's errors, in line order."""
    from ackclock.scenario import load

    try:
        load(file, own_code=True)  # parsing executes nothing
    except ScenarioError as error:
        return sorted(error.all(), key=lambda one: one.place or (0, 0, 0))
    return []


def as_values(error: ScenarioError) -> dict[str, object]:
    """Return an error as plain values, for editors and scripts."""
    place = {} if error.place is None else error.place._asdict()
    return {"key": error.key, "found": error.found, "allowed": error.allowed, **place}


def told(error: ScenarioError) -> str:
    """Format an error as a compiler does: position, line, and a caret below the refused text."""
    if error.place is None:
        return str(error)
    line, column, length = error.place
    text = (
        Path(error.source).read_text(encoding="utf-8-sig").split("\n")[line - 1] if Path(error.source).is_file() else ""
    )
    first = max(0, column - 60)
    number = str(line)
    head = shown(text[first : first + 100])
    carets = "^" * max(1, min(length, 100 - (column - 1 - first)))
    found = f"found {error.found}" if error.key else error.found
    return "\n".join(
        (
            shown(f"{error.source}:{line}:{column}: {error.key}".removesuffix(": ")),
            f"{number} | {head}",
            f"{' ' * len(number)} | {' ' * (column - 1 - first)}{carets} {shown(found)}",
            f"{' ' * len(number)} = allowed: {shown(error.allowed)}",
            "",
        )
    )
