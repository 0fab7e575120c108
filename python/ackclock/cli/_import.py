"""`ackclock import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ackclock import _files
from ackclock.cli import _terminal
from ackclock.cli._options import file_name
from ackclock.errors import InputError, one_of, quote

KINDS = ("tc",)


def import_(
    kind: Annotated[str, typer.Argument(metavar="tc", help="What the script is written for.", show_default=False)],
    script: Annotated[
        Path,
        typer.Argument(
            metavar="SCRIPT", help="Script with lines of tc, or program for Mininet with TCLink.", show_default=False
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(parser=file_name, metavar="FILE", help="File to write; otherwise the scenario is printed."),
    ] = None,
    forward: Annotated[
        str | None, typer.Option(metavar="DEV", help="Device of the way there; otherwise the first with a discipline.")
    ] = None,
    backward: Annotated[
        str | None, typer.Option(metavar="DEV", help="Device of the way back; otherwise the second, if there is one.")
    ] = None,
) -> None:
    """Make a scenario of a script of tc, or of a program for Mininet, and say what it could not keep."""
    from ackclock.formats import tc_import

    if kind not in KINDS:
        raise InputError(f"import: found {quote(kind)}; allowed: {one_of(kind, KINDS)}")
    try:
        text = script.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{script}: found a file that cannot be read ({error.strerror}); allowed: a script") from None
    try:
        made = tc_import.read_script(text, forward=forward, backward=backward)
    except InputError as error:
        told = str(error)
        raise InputError(told if told.startswith("--") else f"{script}: {told}") from None
    for line in made.missing:
        _terminal.warn(f"not kept: {line}")
    if out is None:
        _terminal.show(made.to_toml().rstrip("\n"))
        return
    _terminal.writable_file(out, "--out")
    _files.write(out, made.to_toml(), f"--out {out}")
    _terminal.show(f"written: {out}")
