"""`ackclock diagnose`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ackclock import _files
from ackclock.cli import _terminal
from ackclock.cli._options import Json, file_name, whole_number
from ackclock.errors import InputError, ScenarioError, quote
from ackclock.formats.capture import end
from ackclock.text import seconds, share

if TYPE_CHECKING:
    from rich.table import Table

    from ackclock.diagnose import Diagnosis, Fit, Identity, Outcome

PLACES = {
    "sender": "at the sender",
    "receiver": "at the receiver",
    "between": "on the way",
    "unknown": "at an unknown place",
}


def diagnose(
    capture: Annotated[
        Path, typer.Argument(metavar="CAPTURE", help="pcap or pcapng, best taken at the sender.", show_default=False)
    ],
    connection: Annotated[
        int | None,
        typer.Option(
            parser=whole_number(0),
            metavar="N",
            help="Number of the connection, as `ackclock read` prints it (default: the one with most data).",
        ),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(parser=file_name, metavar="FILE", help="Write the table of causes.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(parser=file_name, metavar="FILE", help="Draw the causes over time (png, pdf, svg).")
    ] = None,
    scenario: Annotated[
        Path | None,
        typer.Option(
            parser=file_name,
            metavar="FILE",
            help="Write a scenario of the path (TOML), run it, and print how well it fits.",
        ),
    ] = None,
    mirror: Annotated[
        Path | None,
        typer.Option(
            parser=file_name,
            metavar="FILE",
            help="As --scenario, but with the capture's losses one by one and its application's writes.",
        ),
    ] = None,
    what_if: Annotated[
        bool, typer.Option("--what-if", help="Run that scenario again and again, each time with one value changed.")
    ] = False,
    controller: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Congestion control of the sender, for the scenario (default: the one that --which finds, or cubic).",
        ),
    ] = None,
    which: Annotated[
        bool, typer.Option("--which", help="Identify the congestion control: run each one over the same path.")
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(parser=file_name, metavar="FILE", help="Write the whole diagnosis as one page (HTML)."),
    ] = None,
    anonymise: Annotated[
        bool, typer.Option("--anonymise", help="Replace addresses and ports by invented ones.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Find out from a capture why a transfer is slow. Shows what limited it at each moment, and the properties of its path."""
    from ackclock.diagnose import diagnose as diagnosed

    if controller is not None and scenario is None and mirror is None and not what_if:
        raise InputError(f"--controller: found {quote(controller)}; allowed: with --scenario, --mirror or --what-if")
    if report is not None:
        _terminal.page_file(report, "--report")
    if plot is not None and plot.suffix not in (".png", ".pdf", ".svg"):
        raise InputError(f"--plot: found {quote(plot.name)}; allowed: a name that ends in .png, .pdf or .svg")
    if plot is not None:
        from ackclock.plot import style

        style.needed(f"--plot {plot}")
    for file, option in ((csv, "--csv"), (plot, "--plot"), (scenario, "--scenario"), (mirror, "--mirror")):
        if file is not None:
            _terminal.writable_file(file, option)
    with _terminal.progress() as progress:
        found = _terminal.interruptible(
            lambda: diagnosed(
                capture, connection=connection, anonymise=anonymise, progress=lambda done: progress(capture.name, done)
            )
        )
    _files.reads(capture)
    if csv is not None:
        _files.write(csv, found.table().write_csv(), f"--csv {csv}")
    if plot is not None:
        if found.refused:
            raise InputError(f"--plot: found a capture without conclusions ({found.refused}); allowed: one with some")
        _files.write(plot, _drawn(found, plot.suffix[1:]), f"--plot {plot}")
    identity = _identified(found) if which else None
    if controller is None:
        controller = identity.names[0] if identity is not None and identity.names else "cubic"
    fitted, outcomes = _fitted(capture, found, scenario, what_if, controller)
    copied = None if mirror is None else _mirrored(capture, found, mirror, controller)
    if report is not None:
        from ackclock.diagnose._page import page
        from ackclock.report import write

        asked = [("--which", which), ("--what-if", what_if), ("--anonymise", anonymise)]
        more = [option for option, given in asked if given]
        again = shlex.join(["ackclock", "diagnose", capture.name, *more, "--report", report.name])
        made = page(found, fit=fitted, outcomes=outcomes, identity=identity, name=capture.name, command=again)
        write(made, report, what=f"--report {report}")
    if as_json:
        told = found.summary()
        if identity is not None:
            told["which"] = identity.summary()
        if fitted is not None:
            told["fit"] = fitted.summary()
        if copied is not None:
            told["mirror"] = copied.summary()
        if outcomes:
            told["what_if"] = [asdict(outcome) for outcome in outcomes]
        _terminal.show_json(told)
        return
    _show(found)
    if identity is not None:
        _show_identity(identity)
    if fitted is not None:
        _terminal.show(_fit(fitted, "a model of the path, run"))
        if not fitted.holds:
            _terminal.warn(f"the model is no basis for what-if: it is {fitted.wrong}")
    if outcomes:
        _terminal.show(_what_if(outcomes, fitted))
    if copied is not None:
        _terminal.show(_fit(copied, "the same losses and writes, run"))
    for file in (csv, plot, scenario, mirror, report):
        if file is not None:
            _terminal.say(f"written: {file}")


def _identified(found: Diagnosis) -> Identity:
    from ackclock.diagnose import identify

    with _terminal.progress() as progress:
        return _terminal.interruptible(
            lambda: identify(found, progress=lambda done: progress("congestion controls", done))
        )


def _drawn(found: Diagnosis, kind: str) -> bytes:
    from ackclock.plot import style
    from ackclock.plot.limits import draw_limits

    with style.styled():
        figure, ax = style.new(7.2, 3.0)
        draw_limits(ax, found.limits())
        return style.saved(figure, kind)


def _fitted(
    path: Path, found: Diagnosis, scenario: Path | None, changes: bool, controller: str
) -> tuple[Fit | None, Sequence[Outcome]]:
    """Write the model if requested, and return it with the changes' effects."""
    if scenario is None and not changes:
        return None, ()
    from ackclock.diagnose import fit, fit_mirror, what_if

    made = None
    try:
        mirror = (
            _terminal.interruptible(
                lambda: fit_mirror(found, controller=controller), doing=lambda: "running the mirror"
            )
            if changes
            else None
        )
        useful = mirror is not None and mirror.holds
        try:
            made = _terminal.interruptible(lambda: fit(found, controller=controller), doing=lambda: "running the model")
        except InputError:
            if scenario is not None or not useful:
                raise
        if scenario is not None and made is not None:
            _files.write(scenario, made.scenario.to_toml(), f"--scenario {scenario}")
        if not changes or not (useful or (made is not None and made.holds)):
            return made, ()
        return made, _terminal.interruptible(lambda: what_if(made, mirror=mirror), doing=lambda: "running the changes")
    except ScenarioError as error:
        raise InputError(f"--controller: {error}") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _mirrored(path: Path, found: Diagnosis, mirror: Path, controller: str) -> Fit:
    from ackclock.diagnose import fit

    try:
        made = _terminal.interruptible(
            lambda: fit(found, controller=controller, mirror=True, seeds=1), doing=lambda: "running the mirror"
        )
        _files.write(mirror, made.scenario.to_toml(), f"--mirror {mirror}")
        return made
    except ScenarioError as error:
        raise InputError(f"--controller: {error}") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _fit(fitted: Fit, title: str) -> Table:
    from rich.table import Table

    from ackclock.diagnose._page import RATE_BOUND, end_told, quantity_rows

    table = Table(
        title=title,
        title_justify="left",
        caption=f"least and most over seeds; of shares the error is the difference.{end_told(fitted, ' ')}{RATE_BOUND if fitted.bound else ''}",
        caption_justify="left",
    )
    for head in ("quantity", "capture", "model", "least", "most", "error"):
        table.add_column(head, justify="left" if head == "quantity" else "right", overflow="fold")
    for row in quantity_rows(fitted):
        table.add_row(*row)
    return table


def _what_if(outcomes: Sequence[Outcome], fitted: Fit | None) -> Table:
    from rich.table import Table

    from ackclock.diagnose._page import BOUND, outcome_cells

    table = Table(
        title="what if",
        title_justify="left",
        caption="seed by seed; ignore changes smaller than the model's error, and changes whose sign varies"
        + (f".{BOUND}" if fitted is not None and fitted.bound else ""),
        caption_justify="left",
    )
    for head in ("change", "transfer takes", "change of time", "least", "most", "model, off by", ""):
        table.add_column(head, justify="left" if head == "change" else "right", overflow="fold")
    for one in outcomes:
        table.add_row(one.name, *outcome_cells(one))
    return table


NEAREST = 8
"""Maximum number of candidates in the terminal's table."""


def _show_identity(identity: Identity) -> None:
    _terminal.say(identity.sentence)
    if not identity.candidates:
        return
    from rich.table import Table

    from ackclock.diagnose._page import candidate_cells

    rest = len(identity.candidates) - NEAREST
    table = Table(
        caption="each ran over the same path and lost the same segments; off: its flight from the capture's; spread: its own runs from each other"
        + (f"; {rest} more are in --json and --report" if rest > 0 else ""),
        caption_justify="left",
    )
    for head in ("congestion control", "flight off by", "spread", "the first is as many times as likely"):
        table.add_column(head, justify="left" if head.startswith("congestion") else "right", overflow="fold")
    for one in identity.candidates[:NEAREST]:
        table.add_row(one.name, *candidate_cells(one))
    _terminal.show(table)
    for name, why in identity.left_out:
        _terminal.say(f"left out: {name}, which {why}")


def _show(found: Diagnosis) -> None:
    if found.answer is not None:
        _terminal.say(str(found.answer))
    _terminal.say(found.sentence)
    row = found.connection
    _terminal.say(
        f"connection {row['connection']}: {row['bytes'] / 1e6:,.3f} MB from {end(row['from_address'], row['from_port'])} "
        f"to {end(row['to_address'], row['to_port'])}, captured {PLACES[found.at]}; the capture has missed {share(found.missed)} of the data"
    )
    if found.refused or found.path is None:
        for note in found.notes:
            _terminal.say(note)
        return
    from rich.table import Table

    from ackclock.diagnose._notes import label
    from ackclock.diagnose._page import lost_cell, of_time

    table = Table(
        caption=f"share: {of_time(found)}; bytes lost to it: what the path could have carried, less what it carried",
        caption_justify="left",
    )
    for head in ("what held the sender back", "time", "share", "MB lost to it"):
        table.add_column(head, justify="left" if head.startswith("what") else "right", overflow="fold")
    for cause in found.causes:
        lost = lost_cell(found, cause.lost_bytes)
        table.add_row(
            label(cause.name, found.paced, found.unqueued, found.level),
            seconds(cause.seconds),
            share(cause.share),
            lost,
        )
    _terminal.show(table)
    for note in found.notes:
        _terminal.say(note)
    _terminal.show(_path(found))


def _path(found: Diagnosis) -> Table:
    from rich.table import Table

    from ackclock.diagnose._page import path_rows

    table = Table(title="the path, and its ends", title_justify="left", show_header=False)
    table.add_column("", justify="left", overflow="fold")
    table.add_column("", justify="right", overflow="fold")
    for row in path_rows(found):
        table.add_row(*row)
    return table
