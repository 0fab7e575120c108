"""`ackclock import`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ackclock import _files
from ackclock.cli import _terminal
from ackclock.cli._options import file_name
from ackclock.errors import InputError, one_of, quote

if TYPE_CHECKING:
    from ackclock.diagnose import FittedPath
    from ackclock.formats.path_import import ImportedPath
    from ackclock.formats.tc_import import Imported

KINDS = ("tc", "path")

LARGEST = 2**20
"""Maximum size of a script, bytes."""

LARGEST_RECORDING = 2**26
"""Maximum size of a recording, bytes."""


def import_(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="tc|path", help="A script of tc or Mininet, or recordings of a path.", show_default=False
        ),
    ],
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="With tc: a script with lines of tc, or a program for Mininet with TCLink. With path: recordings of rates, delays and losses.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(parser=file_name, metavar="FILE", help="File to write; otherwise the scenario is printed."),
    ] = None,
    forward: Annotated[
        str | None,
        typer.Option(metavar="DEV", help="tc: device of the way there; otherwise the first with a discipline."),
    ] = None,
    backward: Annotated[
        str | None,
        typer.Option(metavar="DEV", help="tc: device of the way back; otherwise the second, if there is one."),
    ] = None,
    upward: Annotated[
        bool, typer.Option("--upward", help="path: data goes from the user into the network; otherwise to the user.")
    ] = False,
    every: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="path: length of a step, e.g. 100ms; otherwise one step for each measurement."
        ),
    ] = None,
    fit: Annotated[
        bool,
        typer.Option(
            "--fit",
            help="path: one model of logs of iperf3 -J and ping, run and compared; otherwise each value is replayed.",
        ),
    ] = False,
    form: Annotated[
        str | None,
        typer.Option(metavar="FORM", help="path: form of the files; otherwise each one's content shows it."),
    ] = None,
) -> None:
    """Convert a tc or Mininet script, or recordings of a path, to a scenario, and list what could not be converted."""
    if kind not in KINDS:
        raise InputError(f"import: found {quote(kind)}; allowed: {one_of(kind, KINDS)}")
    for name, value, of in (
        ("--forward", forward, "tc"),
        ("--backward", backward, "tc"),
        ("--upward", upward, "path"),
        ("--every", every, "path"),
        ("--fit", fit, "path"),
        ("--form", form, "path"),
    ):
        if value and kind != of:
            raise InputError(f"{name}: found it with import {kind}; allowed: with import {of}")
    for name, value in (("--upward", upward), ("--every", every)):
        if fit and value:
            raise InputError(
                f"{name}: found it with --fit, whose model has the way of the transfer and no steps; allowed: without"
            )
    if kind == "tc" and len(files) > 1:
        raise InputError(f"import tc: found {len(files)} files; allowed: one")
    if out is not None:
        _terminal.writable_file(out, "--out")
    made: Imported | ImportedPath | FittedPath
    if kind == "tc":
        made = _script(files[0], forward, backward)
    else:
        made = _fitted(files, form) if fit else _path(files, upward, every, form)
    if out is None:
        _terminal.say(made.to_toml().rstrip("\n"))  # not wrapped: it is a file
        return
    _files.write(out, made.to_toml(), f"--out {out}")
    _terminal.show(f"written: {out}")


def _script(script: Path, forward: str | None, backward: str | None) -> Imported:
    from ackclock.formats import tc_import

    try:
        text = _files.contents(script, LARGEST)
    except _files.UnreadError as error:
        raise InputError(f"{error}; allowed: a script with commands of `tc`, or a Mininet program") from None
    try:
        made = tc_import.read_script(text, forward=forward, backward=backward)
    except InputError as error:
        told = str(error)
        raise InputError(told if told.startswith("--") else f"{script}: {told}") from None
    for line in made.missing:
        _terminal.warn(f"not kept: {line}")
    return made


def _path(files: list[Path], upward: bool, every: str | None, form: str | None) -> ImportedPath:
    from ackclock import units
    from ackclock.formats import _recordings, path_import

    every_ns = 0
    if every is not None:
        try:
            every_ns = units.whole(every, units.DURATION)
        except ValueError as error:
            raise InputError(f"--every: {error}") from None
    read = []
    for file in files:
        try:
            read.append((file, _recordings.read(_files.contents(file, LARGEST_RECORDING), form, name=file.name)))
        except InputError as error:
            told = str(error)
            raise InputError(told if told.startswith(("--", str(file))) else f"{file}: {told}") from None
    made = path_import.make(read, upward=upward, every_ns=every_ns)
    for line in made.about:
        _terminal.warn(line)
    for line in made.missing:
        _terminal.warn(f"not recorded: {line}")
    return made


def _fitted(files: list[Path], form: str | None) -> FittedPath:
    from ackclock.diagnose import fit_logs

    made = _terminal.interruptible(lambda: fit_logs(files, form=form), doing=lambda: "running the model")
    for line in made.about:
        _terminal.warn(line)
    return made
