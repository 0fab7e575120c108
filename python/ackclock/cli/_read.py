"""`ackclock read`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ackclock import _files
from ackclock.cli import _terminal
from ackclock.cli._options import Json, file_name, whole_number
from ackclock.cli._sheet import Sheet
from ackclock.errors import InputError, ScenarioError, quote
from ackclock.text import share

if TYPE_CHECKING:
    from ackclock.formats.capture import Capture

SHOWN = 20
"""Maximum number of directions in the terminal's table."""


def read(
    capture: Annotated[Path, typer.Argument(metavar="CAPTURE", help="pcap or pcapng.", show_default=False)],
    connection: Annotated[
        int | None,
        typer.Option(parser=whole_number(0), metavar="N", help="Only this connection; with --csv, its packets."),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(parser=file_name, metavar="FILE", help="Write the table of connections, or packets.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            parser=file_name,
            metavar="FILE",
            help="Draw the time-sequence graph (png, pdf, svg), by default of the largest connection.",
        ),
    ] = None,
    begin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="DURATION",
            help="Start of the graph, e.g. 1.5s (default: some round trips before the first retransmission).",
        ),
    ] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="DURATION", help="End of the graph.")] = None,
    anonymise: Annotated[
        bool, typer.Option("--anonymise", help="Replace addresses and ports by invented ones.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Read a capture: its connections with their losses and needless retransmissions, or the packets of one connection."""
    from ackclock.formats.capture import read_capture

    if plot is not None and plot.suffix not in (".png", ".pdf", ".svg"):
        raise InputError(f"--plot: found {quote(plot.name)}; allowed: a name that ends in .png, .pdf or .svg")
    if plot is not None:
        from ackclock.plot import style

        style.needed(f"--plot {plot}")
    span = [_seconds(text, option) for text, option in ((begin, "--from"), (end, "--to"))]
    if span != [None, None] and plot is None:
        raise InputError("--from, --to: found them without a graph; allowed: with --plot")
    for file, option in ((csv, "--csv"), (plot, "--plot")):
        if file is not None:
            _terminal.writable_file(file, option)
    if csv is not None and connection is None:
        wanted = None
    elif plot is not None and connection is None:
        wanted = _largest(capture)
    else:
        wanted = connection
    with _terminal.progress() as progress:
        found = _terminal.interruptible(
            lambda: read_capture(
                capture, connection=wanted, anonymise=anonymise, progress=lambda done: progress(capture.name, done)
            )
        )
    _files.reads(capture)
    if csv is not None:
        table = found.connections if found.packets is None else found.packets
        _files.write(csv, table.write_csv(), f"--csv {csv}")
    if plot is not None:
        _files.write(plot, _drawn(found, wanted, plot.suffix[1:], span), f"--plot {plot}")
    if not found.facts["segments"]:
        raise InputError(
            f"{capture}: found {found.facts['frames']:,} frames, and no TCP{_why(found)}; allowed: a capture of TCP"
        )
    if as_json:
        shown = found.connections if connection is None else _only(found, connection)
        _terminal.show_json_rows({"file": found.facts}, "connections", shown)
        return
    _show(found, connection)
    for file in (csv, plot):
        if file is not None:
            _terminal.say(f"written: {file}")


def _largest(path: Path) -> int:
    """Return the connection with the most data in one direction."""
    from ackclock.formats.capture import read_capture

    rows = read_capture(path).with_data()
    if rows.is_empty():
        raise InputError(f"{path}: found no connection with data; allowed: with --plot one that has some")
    return int(rows["connection"][0])


def _only(found: Capture, connection: int) -> Any:
    return found.connections.filter(found.connections["connection"] == connection)


def _seconds(text: str | None, option: str) -> float | None:
    from ackclock import units

    if text is None:
        return None
    try:
        return units.whole(text, units.DURATION) / 1e9
    except ScenarioError as error:
        raise InputError(f"{option}: {error}") from None


def _drawn(found: Capture, connection: int | None, kind: str, span: Sequence[float | None]) -> bytes:
    from ackclock.plot import style
    from ackclock.plot.capture import draw_capture, opening

    assert found.packets is not None
    rows = found.connections.filter(found.connections["connection"] == connection).sort("bytes", descending=True)
    with style.styled():
        figure, ax = style.new(7.2, 4.2)
        row = rows.row(0, named=True)
        first, last = opening(found.packets, row["rtt_mean_s"] or 0.1)
        begin, end = span
        if begin is not None or end is not None:
            first = float(found.packets["t_s"][0]) if begin is None else begin
            last = float(found.packets["t_s"][-1]) if end is None else end
        if not first < last:
            raise InputError(
                f"--from, --to: found {first:g} s and {last:g} s; allowed: an earlier and a later second of the capture"
            )
        draw_capture(ax, found.packets, from_server=row["way"] == "server", span=(first, last))
        ax.set_title(f"{found.name}, connection {connection}: data from the {row['way']}")
        return style.saved(figure, kind)


def _show(found: Capture, connection: int | None) -> None:
    rows = found.with_data()
    if connection is not None:
        rows = rows.filter(rows["connection"] == connection)
    facts = found.facts
    count = found.connections.height // 2
    _terminal.say(
        f"{found.name}: {facts['frames']:,} frames, {facts['segments']:,} of TCP, {count:,} connection{'' if count == 1 else 's'}"
    )
    for line in warnings(found):
        _terminal.warn(line)
    if rows.is_empty():
        _terminal.say("no connection carries data")
        return
    heads = ("connection", "begins", "MB", "Mbit/s", "RTT least", "mean", "segments", "lost", "spurious")
    sheet = Sheet("", heads, narrow=False)
    cells = [_cells(row) for row in rows.head(SHOWN).to_dicts()]
    for name, *values in cells:
        sheet.add_row(name, *values)
    if sheet.width > _terminal.width():
        sheet = Sheet("", heads, narrow=True)
        for name, *values in cells:
            sheet.add_row(name.replace(" to ", "\n  to "), *values)
    sheet.say(
        "Mbit/s: from the first data to the last; lost: sent again, without what was sent again for nothing (spurious)"
    )
    _terminal.show(sheet)
    if rows.height > SHOWN:
        _terminal.say(f"and {rows.height - SHOWN:,} more directions: --csv FILE or --json")
    places = sorted(set(rows["captured_at"].to_list()))
    said = {
        "client": "at the client",
        "server": "at the server",
        "between": "on the way",
        "unknown": "unknown, as without a handshake",
    }
    ways = sorted(set(rows["way"].to_list()))
    side = ""
    if len(places) == len(ways) == 1 and places[0] in ("client", "server"):
        side = ", the sender" if places == ways else ", the receiver"
    _terminal.say("captured: " + ", ".join(said[place] for place in places) + side)


def _cells(row: dict[str, Any]) -> list[str]:
    from ackclock.formats.capture import end as end_of

    lasts = (row["last_data_s"] or 0.0) - (row["first_data_s"] or 0.0)
    ms = [None if row[key] is None else row[key] * 1e3 for key in ("rtt_min_s", "rtt_mean_s")]
    return [
        f"{row['connection']}  {end_of(row['from_address'], row['from_port'])} to {end_of(row['to_address'], row['to_port'])}",
        f"{row['begins_s']:.3f} s",
        f"{row['bytes'] / 1e6:,.3f}",
        f"{row['bytes'] * 8 / lasts / 1e6:,.3f}" if lasts > 0 else "",
        *("" if value is None else f"{value:,.2f} ms" for value in ms),
        f"{row['segments']:,}",
        f"{row['lost']:,}",
        f"{row['spurious']:,}",
    ]


def _why(found: Capture) -> str:
    """Return the reason why a capture has no TCP segments, if apparent."""
    facts = found.facts
    if facts["unknown_links"]:
        return f" ({facts['unknown_links']:,} frames of link layer {facts['unknown_link']}, which is not known here)"
    return f" ({facts['short']:,} frames are cut within their headers)" if facts["short"] else ""


def warnings(found: Capture) -> list[str]:
    """Return remarks on how far the numbers can be trusted."""
    from ackclock.formats.capture import MOST_MISSED

    facts = found.facts
    said = []
    if facts["dropped"]:
        said.append(f"the capturing program has missed {facts['dropped']:,} packets, as it says itself")
    missed = [row for row in found.with_data().to_dicts() if found.missed(row) > MOST_MISSED]
    if missed:
        worst = max(missed, key=found.missed)
        said.append(
            f"of connection {worst['connection']} the capture has missed {share(found.missed(worst), 1)} of the data: its losses are not to be "
            f"trusted, nor those of {len(missed) - 1} others"
        )
    for key, text in (
        ("short", "frames are cut within their headers: capture with a snap length of at least 96 bytes"),
        ("fragments", "fragments of IP are left out"),
        ("unknown_links", f"frames have a link layer that is not known here, number {facts['unknown_link']}"),
        ("without_time", "frames carry no time and are left out"),
        ("backwards", "frames are earlier than the one before: the clock was set, or several captures were joined"),
    ):
        if facts[key]:
            said.append(f"{facts[key]:,} {text}")
    if facts["without_copies"]:
        said.append(
            f"{facts['copies']:,} segments are in the file a second time (same identification, numbers and timestamps): they are left out"
        )
    if facts["cut"]:
        said.append("the file ends within a frame, as when a capture is killed")
    return said
