"""`ackclock diagnose`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ackclock import _files
from ackclock._results.limits import CAUSES
from ackclock.cli import _terminal
from ackclock.text import NONE, rate, seconds, share

if TYPE_CHECKING:
    from ackclock.diagnose import Diagnosis

PLACES = {"sender": "at the sender", "receiver": "at the receiver", "between": "on the way", "unknown": "nobody knows where"}


def diagnose(path: Path, *, connection: int | None, csv: Path | None, anonymise: bool, as_json: bool) -> None:
    """Say what limited a transfer."""
    from ackclock.diagnose import diagnose as diagnosed

    if csv is not None:
        _terminal.writable_file(csv, "--csv")
    with _terminal.progress() as progress:
        found = _terminal.interruptible(
            lambda: diagnosed(
                path, connection=connection, anonymise=anonymise, progress=lambda done: progress(path.name, done)
            )
        )
    _files.reads(path)
    if csv is not None:
        _files.write(csv, found.table().write_csv(), f"--csv {csv}")
    if as_json:
        _terminal.show_json(found.summary())
        return
    _show(found)
    if csv is not None:
        _terminal.say(f"written: {csv}")


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


def _path(found: Diagnosis) -> object:
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
        ("sent again at a full, a part full, an empty queue", f"{path.losses_full:,}, {path.losses_between:,}, {path.losses_random:,}"),
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
