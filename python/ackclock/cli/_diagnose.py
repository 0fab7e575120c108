"""`ackclock diagnose`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ackclock import _files
from ackclock._results.limits import CAUSES
from ackclock.cli import _terminal
from ackclock.cli._options import Json, file_name, whole_number
from ackclock.errors import InputError, ScenarioError, quote
from ackclock.text import NONE, rate, seconds, share

if TYPE_CHECKING:
    from rich.table import Table

    from ackclock.diagnose import Diagnosis, Fit, Outcome

PLACES = {
    "sender": "at the sender",
    "receiver": "at the receiver",
    "between": "on the way",
    "unknown": "nobody knows where",
}


def diagnose(
    capture: Annotated[
        Path, typer.Argument(metavar="CAPTURE", help="pcap or pcapng, taken at the sender.", show_default=False)
    ],
    connection: Annotated[
        int | None,
        typer.Option(
            parser=whole_number(0), metavar="N", help="Which one, as `ackclock read` numbers them (default: most data)."
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
            help="Write a scenario of the path (TOML), run it, and say how well it fits.",
        ),
    ] = None,
    what_if: Annotated[
        bool, typer.Option("--what-if", help="Run that scenario with one value changed after the other.")
    ] = False,
    controller: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The sender's, for the scenario (default: cubic): a capture does not name it."
        ),
    ] = None,
    anonymise: Annotated[bool, typer.Option("--anonymise", help="Show other addresses and ports.")] = False,
    as_json: Json = False,
) -> None:
    """Why is this transfer slow? Say what limited each moment of it, and what its path is like."""
    from ackclock.diagnose import diagnose as diagnosed

    if controller is not None and scenario is None and not what_if:
        raise InputError(f"--controller: found {quote(controller)}; allowed: with --scenario or --what-if")
    if plot is not None and plot.suffix not in (".png", ".pdf", ".svg"):
        raise InputError(f"--plot: found {quote(plot.name)}; allowed: a name that ends in .png, .pdf or .svg")
    for file, option in ((csv, "--csv"), (plot, "--plot"), (scenario, "--scenario")):
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
    fitted, outcomes = _fitted(capture, found, scenario, what_if, controller)
    if as_json:
        told = found.summary()
        if fitted is not None:
            told["fit"] = fitted.summary()
        if outcomes:
            told["what_if"] = [asdict(outcome) for outcome in outcomes]
        _terminal.show_json(told)
        return
    _show(found)
    if fitted is not None:
        _terminal.show(_fit(fitted))
        if not fitted.holds:
            _terminal.warn(f"the model is no basis for what-if: it is {fitted.wrong}")
    if outcomes and fitted is not None:
        _terminal.show(_what_if(outcomes, fitted))
    for file in (csv, plot, scenario):
        if file is not None:
            _terminal.say(f"written: {file}")


def _drawn(found: Diagnosis, kind: str) -> bytes:
    from ackclock.plot import style
    from ackclock.plot.limits import draw_limits

    with style.styled():
        figure, ax = style.new(7.2, 3.0)
        draw_limits(ax, found.limits())
        return style.saved(figure, kind)


def _fitted(
    path: Path, found: Diagnosis, scenario: Path | None, changes: bool, controller: str | None
) -> tuple[Fit | None, Sequence[Outcome]]:
    """The model, written if asked for, and what becomes of it by changes."""
    if scenario is None and not changes:
        return None, ()
    from ackclock.diagnose import fit, what_if

    try:
        made = _terminal.interruptible(
            lambda: fit(found, controller=controller or "cubic"), doing=lambda: "running the model"
        )
        if scenario is not None:
            _files.write(scenario, made.scenario.to_toml(), f"--scenario {scenario}")
        if not changes:
            return made, ()
        if not made.holds:
            return made, ()
        return made, _terminal.interruptible(lambda: what_if(made), doing=lambda: "running the changes")
    except ScenarioError as error:
        raise InputError(f"--controller: {error}") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _percent(error: float | None) -> str:
    return NONE if error is None else f"{error * 100:+.1f} %"


def _fit(fitted: Fit) -> Table:
    from rich.table import Table

    table = Table(
        title="a model of the path, run",
        title_justify="left",
        caption="least and most over seeds; of shares the error is the difference",
        caption_justify="left",
    )
    for head in ("quantity", "capture", "model", "least", "most", "error"):
        table.add_column(head, justify="left" if head == "quantity" else "right", overflow="fold")
    for one in fitted.quantities:
        if one.unit == "share":
            if max(one.capture, one.model) < 0.005:
                continue
            name, values = (
                CAUSES[one.name].split(",")[0],
                [share(v) for v in (one.capture, one.model, one.least, one.most)],
            )
        elif one.unit == "s":
            name, values = one.name, [seconds(v) for v in (one.capture, one.model, one.least, one.most)]
        elif one.unit == "bit/s":
            name, values = one.name, [rate(v) for v in (one.capture, one.model, one.least, one.most)]
        else:
            name, values = one.name, [f"{v:,.0f}" for v in (one.capture, one.model, one.least, one.most)]
        table.add_row(name, *values, _percent(one.error))
    return table


def _what_if(outcomes: Sequence[Outcome], fitted: Fit) -> Table:
    from rich.table import Table

    table = Table(
        title="what if",
        title_justify="left",
        caption=f"seed by seed; the model itself is {fitted.error * 100:.1f} % off: a smaller change says nothing, nor one that goes both ways",
        caption_justify="left",
    )
    for head in ("change", "transfer takes", "change of time", "least", "most", ""):
        table.add_column(head, justify="left" if head == "change" else "right", overflow="fold")
    for one in outcomes:
        told = "" if one.name == "as it is" else ("says something" if one.tells else "says nothing")
        if one.seconds is None:
            table.add_row(one.name, "does not end", NONE, NONE, NONE, told)
            continue
        changes = [_percent(value) for value in (one.change, one.change_least, one.change_most)]
        table.add_row(one.name, seconds(one.seconds), *(["", "", ""] if one.name == "as it is" else changes), told)
    return table


def _show(found: Diagnosis) -> None:
    _terminal.say(found.sentence)
    row = found.connection
    _terminal.say(
        f"connection {row['connection']}: {row['bytes'] / 1e6:,.3f} MB from {row['from_address']}:{row['from_port']} "
        f"to {row['to_address']}:{row['to_port']}, captured {PLACES[found.at]}; the capture has missed {share(found.missed)} of the data"
    )
    if found.refused or found.path is None:
        return
    from rich.table import Table

    table = Table(
        caption=f"share: of the time that it was not idle ({seconds(found.idle_s)}); bytes lost to it: what the path could have carried, without what it did",
        caption_justify="left",
    )
    for head in ("what held the sender back", "time", "share", "MB lost to it"):
        table.add_column(head, justify="left" if head.startswith("what") else "right", overflow="fold")
    for cause in found.causes:
        lost = NONE if cause.lost_bytes is None else f"{cause.lost_bytes / 1e6:,.3f}"
        table.add_row(CAUSES[cause.name], seconds(cause.seconds), share(cause.share), lost)
    _terminal.show(table)
    _terminal.show(_path(found))


def _path(found: Diagnosis) -> Table:
    from rich.table import Table

    path, row = found.path, found.connection
    assert path is not None
    least = "" if path.identified else "at least "
    lost = row["lost"]
    table = Table(title="the path, and its ends", title_justify="left", show_header=False)
    table.add_column("", justify="left", overflow="fold")
    table.add_column("", justify="right", overflow="fold")
    for what, value in (
        ("base round trip", seconds(path.base_rtt_s)),
        ("greatest round trip", seconds(path.greatest_rtt_s)),
        ("payload that the bottleneck carries", NONE if path.rate_bps is None else least + rate(path.rate_bps)),
        ("the same with headers", NONE if path.wire_bps is None else least + rate(path.wire_bps)),
        ("queue, when it was full", seconds(path.queue_s)),
        ("segments lost, of those sent", f"{lost:,} of {row['segments']:,}"),
        (
            "sent again at a full, a part full, an empty queue",
            f"{path.losses_full:,}, {path.losses_between:,}, {path.losses_random:,}",
        ),
        ("sent for nothing", f"{row['spurious']:,}"),
        ("segments per ACK", NONE if path.segments_per_ack is None else f"{path.segments_per_ack:.2f}"),
        ("payload of a full segment", f"{found.mss:,} bytes"),
        ("first flight", f"{row['first_flight']:,} bytes"),
        ("receiver's window, least and most", _window(row["least_window"], row["most_window"])),
        ("SACK, timestamps", f"{'yes' if row['sack'] else 'no'}, {'yes' if row['timestamps'] else 'no'}"),
    ):
        table.add_row(what, value)
    return table


def _window(least: float | None, most: float | None) -> str:
    return NONE if least is None or most is None else f"{least:,.0f} to {most:,.0f} bytes"
