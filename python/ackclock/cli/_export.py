"""`ackclock export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ackclock import _files
from ackclock.cli import _terminal
from ackclock.cli._options import OwnCode, file_name, whole_number
from ackclock.errors import InputError, ScenarioError, one_of, quote


def export(
    target: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Scenario (TOML) for tc; else the folder that `run --out` wrote.", show_default=False
        ),
    ],
    kind: Annotated[str, typer.Option("--as", metavar="tc|iperf3|ss|qlog|tcp-probe|curl", help="Format.")],
    out: Annotated[
        Path, typer.Option(parser=file_name, metavar="FILE", help="File to write (qlog as JSON-SEQ: NAME.sqlog).")
    ],
    group: Annotated[
        int | None,
        typer.Option(parser=whole_number(0), metavar="N", help="iperf3: the group of flows, if there are several."),
    ] = None,
    own_code: OwnCode = False,
) -> None:
    """Write a scenario for a testbed, or a run for other tools. The script uses tc; the tools are iperf3, ss, qlog, tcp-probe and curl."""
    from ackclock import formats
    from ackclock._results.result import Run

    known = ("tc", *formats.FORMATS)
    if kind not in known:
        raise InputError(f"--as: found {quote(kind)}; allowed: {one_of(kind, known)}")
    if out is None:
        raise InputError("--out: found nothing; allowed: a file")
    if group is not None and kind != "iperf3":
        raise InputError(f"--group: found {group} with --as {kind}; allowed: with --as iperf3")
    if kind == "tc":
        _script(target, out, own_code=own_code)
    else:
        if target.is_file():
            raise InputError(
                f"{target}: found a file; allowed: with --as {kind} the folder of a run, as `ackclock run {target} --out DIR` writes it"
            )
        read = Run.read(target)
        _terminal.writable_file(out, "--out")
        try:
            formats.write(read, kind, out, group=group)
        except ScenarioError:
            raise
        except InputError as error:
            raise InputError(f"{target}: {error}" if str(error).startswith("found") else f"--{error}") from None
    _terminal.show(f"written: {out}")


def _script(target: Path, out: Path, *, own_code: bool) -> None:
    from ackclock.formats import tc
    from ackclock.scenario import load

    if target.is_dir():
        raise InputError(f"{target}: found a folder; allowed: with --as tc a scenario (TOML)")
    made = tc.export(load(target, own_code=own_code))
    _terminal.writable_file(out, "--out")
    _files.write(out, made.text, f"--out {out}")
    for line in made.missing:
        _terminal.warn(f"no counterpart: {line}")
