"""Path recordings, one format after another: values and their times. The formats follow their authors'
documentation.

| form | source |
| --- | --- |
| `mahimahi` | Mahimahi's traces, LeoReplayer's `bw_*.txt`, CellReplay's heavy opportunities: a millisecond a line |
| `delays` | LeoReplayer's `delay_*.txt`: one-way delay, ms, of each 10 ms |
| `cellreplay` | CellReplay's light traces: ms, one-way delay in ms, offsets of the packets of a train; only the delay is used |
| `rates` | Pensieve and its followers: seconds and Mbit/s a line |
| `norway` | logs of the 3G commutes of Oslo: bytes and milliseconds of each second |
| `fcc` | `curr_webget.csv` of the FCC: `bytes_sec` of each test, 5 s each, as in Pensieve |
| `g-nettrack` | G-NetTrack Pro, as in University College Cork's 4G and 5G data sets: `DL_bitrate` and `UL_bitrate`, kbit/s |
| `irtt` | `irtt client -o`: each round trip, with one-way delays if the clocks agree |
| `lens` | CSV files of LENS (Starlink): `timestamp,rtt,uplink,downlink` or `timestamp,rtt`, ms |
| `ping` | output of `ping` of Linux, macOS, BSD, busybox and Windows, with times (`-D`) or without |
| `iperf3` | `iperf3 -J`: bytes of each interval, summed over streams |
"""

from __future__ import annotations

import csv
import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ackclock.errors import InputError, one_of, quote
from ackclock.formats import _ping as _ping_log
from ackclock.formats import iperf3

__all__ = ["FORMS", "Recording", "Way", "form_of", "read"]

Points = list[tuple[float, float]]
"""(time in seconds from the beginning, value)."""

LEO_S = 0.01
"""Duration of a LeoReplayer interval, s."""
FCC_S = 5.0
"""Duration of one FCC test, s."""
GREATEST_S = 1e6
MOST_BPS = 1e12
MOST_DELAY_S = 3600.0
MOST_PROBES = 5_000_000


@dataclass(slots=True)
class Way:
    """One direction: rates in bit/s, one-way delays in s, and probes, each marked as lost or not."""

    rates: Points = field(default_factory=list)
    delays: Points = field(default_factory=list)
    probes: list[tuple[float, bool]] = field(default_factory=list)


@dataclass(slots=True)
class Recording:
    """Contents of a file: the direction to the user (`down`), the opposite one (`up`), and `both` if the direction is unknown."""

    form: str
    length_s: float
    down: Way = field(default_factory=Way)
    up: Way = field(default_factory=Way)
    both: Way = field(default_factory=Way)
    trace: bool = False
    """Whether a "mahimahi" link can read the file."""


def read(text: str, form: str | None = None, *, name: str = "") -> Recording:
    """Read a recording in this format, or in the one recognised from its content and name."""
    if form is not None and form not in FORMS:
        raise InputError(f"--form: found {quote(form)}; allowed: {one_of(form, FORMS)}")
    form = form or form_of(text, name)
    try:
        made = FORMS[form](text)
    except InputError:
        raise
    except (
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
        ValueError,
        OSError,
        RecursionError,
        csv.Error,
    ) as error:
        raise InputError(
            f"found no recording of the form {form} ({type(error).__name__}); allowed: a whole one"
        ) from None
    made.form = form
    ways = (made.down, made.up, made.both)
    if not made.trace and not any((way.rates or way.delays or way.probes) for way in ways):
        raise InputError(f"found nothing measured in a recording of the form {form}; allowed: one with values")
    if not 0 < made.length_s <= GREATEST_S:
        raise InputError(f"found a recording of {made.length_s:g} s; allowed: more than 0 s, at most {GREATEST_S:g} s")
    for way in ways:
        _check("rate", way.rates, MOST_BPS, "bit/s")
        _check("delay", way.delays, MOST_DELAY_S, "s")
    return made


def _check(what: str, points: Points, most: float, unit: str) -> None:
    for t, value in points:
        if not (0 <= t <= GREATEST_S and 0 <= value <= most):  # false for NaN as well
            raise InputError(
                f"found a {what} of {value:g} {unit} at {t:g} s; allowed: 0 to {most:g} {unit}, at 0 to {GREATEST_S:g} s"
            )


def form_of(text: str, name: str = "") -> str:
    """Return the format recognised from a text's first lines. Non-decreasing numbers are opportunities, unless the
    file's name contains "delay".
    """
    head = text.lstrip()[:4096]
    if head.startswith("{"):
        if '"round_trips"' in text:
            return "irtt"
        if '"intervals"' in text or '"error"' in text or '"event"' in text:
            return "iperf3"
        _object(text)
        raise InputError("found JSON of another program; allowed: that of iperf3 -J or of irtt")
    if _ping_log.is_ping(head):
        return "ping"
    first = head.partition("\n")[0].lower().replace('"', "")
    names = {name.strip() for name in first.split(",")}
    for form, needed in (
        ("lens", {"timestamp", "rtt"}),
        ("g-nettrack", {"dl_bitrate"}),
        ("fcc", {"unit_id", "bytes_sec"}),
    ):
        if needed <= names:
            return form
    rows = [line.replace(",", " ").split() for line in head.splitlines()[:50]][:-1] or [first.split()]
    widths = {len(row) for row in rows}
    whole = all(cell.isdigit() for row in rows for cell in row)
    if widths == {1} and whole:
        times = [int(line) for line in text.split() if line.isdigit()]
        rises = all(a <= b for a, b in itertools.pairwise(times)) and "delay" not in name.lower()
        return "mahimahi" if rises else "delays"
    if widths == {2}:
        return "rates"
    if whole and min(widths) > 1:
        return "cellreplay"
    if min(widths) >= 6:
        return "norway"
    raise InputError(
        f"found none of the forms that are known by their first lines; allowed: one of {', '.join(FORMS)}, said with --form"
    )


def _number(cell: str, line: int, least: float = 0.0, most: float = math.inf) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise InputError(
            f"line {line}: found {quote(cell)}; allowed: a number from {least:g}"
            + (f" to {most:g}" if most < math.inf else "")
        )
    return value


def _rows(text: str, width: int) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(text.splitlines(), 1):
        cells = line.replace(",", " ").split()
        if not cells or cells[0].startswith("#"):
            continue
        if len(cells) < width:
            raise InputError(f"line {number}: found {len(cells)} columns; allowed: at least {width}")
        yield number, cells


def _table(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    lines = csv.reader(text.splitlines())
    names = [name.strip().lower() for name in next(lines, [])]
    for number, cells in enumerate(lines, 2):
        if cells:
            yield number, dict(zip(names, (cell.strip() for cell in cells), strict=False))


def _spaced(points: Sequence[tuple[float, Any]], line: str) -> float:
    """Return the length of a recording; its last value lasts for the median step. Times that go backwards are refused."""
    times = [t for t, _ in points]
    if any(a > b for a, b in itertools.pairwise(times)):
        raise InputError(f"found times that go back ({line}); allowed: times in order")
    apart = sorted(b - a for a, b in itertools.pairwise(times) if b > a)
    return times[-1] + (apart[len(apart) // 2] if apart else 1.0)


def _from_zero(points: list[tuple[float, Any]]) -> list[tuple[float, Any]]:
    first = points[0][0] if points else 0.0
    return [(t - first, value) for t, value in points]


def _mahimahi(text: str) -> Recording:
    last = max((int(_number(cells[0], line)) for line, cells in _rows(text, 1)), default=0)
    return Recording(form="mahimahi", length_s=last / 1000, trace=True)


def _delays(text: str) -> Recording:
    points = [
        (n * LEO_S, _number(cells[0], line, most=1e3 * MOST_DELAY_S) / 1000)
        for n, (line, cells) in enumerate(_rows(text, 1))
    ]
    return Recording(form="delays", length_s=len(points) * LEO_S, both=Way(delays=points))


def _cellreplay(text: str) -> Recording:
    points = [
        (_number(cells[0], line) / 1000, _number(cells[1], line, most=1e3 * MOST_DELAY_S) / 1000)
        for line, cells in _rows(text, 2)
    ]
    points = _from_zero(points)
    return Recording(form="cellreplay", length_s=_spaced(points, "first column"), both=Way(delays=points))


def _rates(text: str) -> Recording:
    points = [
        (_number(cells[0], line), 1e6 * _number(cells[1], line, most=1e-6 * MOST_BPS)) for line, cells in _rows(text, 2)
    ]
    points = _from_zero(points)
    return Recording(form="rates", length_s=_spaced(points, "first column"), both=Way(rates=points))


def _norway(text: str) -> Recording:
    points: Points = []
    t = 0.0
    for line, cells in _rows(text, 6):
        took = _number(cells[5], line) / 1000
        if took > 0:
            points.append((t, min(8 * _number(cells[4], line) / took, MOST_BPS)))
            t += took
    return Recording(form="norway", length_s=t, down=Way(rates=points))


def _fcc(text: str) -> Recording:
    tests = list(_table(text))
    units = Counter(row["unit_id"] for _, row in tests)
    unit = max(units, key=lambda name: units[name])
    rates = [8 * _number(row["bytes_sec"], line, most=MOST_BPS / 8) for line, row in tests if row["unit_id"] == unit]
    points = [(n * FCC_S, rate) for n, rate in enumerate(rates)]
    return Recording(form="fcc", length_s=len(points) * FCC_S, down=Way(rates=points))


def _when(cell: str, line: int) -> float:
    for pattern in ("%Y.%m.%d_%H.%M.%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S"):
        try:
            return datetime.strptime(cell, pattern).timestamp()
        except ValueError:
            continue
    return _number(cell, line)


def _g_nettrack(text: str) -> Recording:
    made: dict[str, Points] = {"dl_bitrate": [], "ul_bitrate": []}
    times: list[tuple[float, None]] = []
    for line, row in _table(text):
        times.append((_when(row["timestamp"], line), None))
        for name, points in made.items():
            if (cell := row.get(name, "")) not in {"", "-"}:
                points.append((times[-1][0] - times[0][0], 1000 * _number(cell, line, most=MOST_BPS / 1000)))
    length = _spaced(_from_zero(times), "Timestamp") if times else 1.0
    return Recording(
        form="g-nettrack", length_s=length, down=Way(rates=made["dl_bitrate"]), up=Way(rates=made["ul_bitrate"])
    )


Trip = tuple[float, float | None, float | None, float | None, str]
"""Time, RTT, delay up, delay down (s; None if unknown), and the direction that lost the packet: "", "up", "down",
"any".
"""


def _round_trips(rows: Iterable[Trip], form: str) -> Recording:
    trips = list(rows)
    if not trips:
        return Recording(form=form, length_s=1.0)
    times = [t for t, _ in _from_zero([(trip[0], None) for trip in trips])]
    up, down, both = Way(), Way(), Way()
    arrived = [(there, back) for _, _, there, back, lost in trips if not lost]
    agree = all(there is not None and back is not None and there > 0 and back > 0 for there, back in arrived)
    either = any(lost == "any" for *_, lost in trips)
    for t, (_, rtt, there, back, lost) in zip(times, trips, strict=True):
        if not lost and agree and there is not None and back is not None:
            up.delays.append((t, there))
            down.delays.append((t, back))
        elif not lost and rtt is not None:
            both.delays.append((t, rtt / 2))
        if either:
            both.probes.append((t, lost != ""))
        else:
            up.probes.append((t, lost == "up"))
            if lost != "up":
                down.probes.append((t, lost == "down"))
    length = _spaced([(t, None) for t in times], "time stamps")
    return Recording(form=form, length_s=length, down=down, up=up, both=both)


def _irtt(text: str) -> Recording:
    lost = {"false": "", "true": "any", "true_up": "up", "true_down": "down"}

    def rows() -> Iterator[Trip]:
        for trip in _object(text)["round_trips"]:
            sent = trip["timestamps"]["client"]["send"]
            delay: Mapping[str, float] = trip.get("delay") or {}
            there, back = (delay[name] / 1e9 if name in delay else None for name in ("send", "receive"))
            rtt = delay["rtt"] / 1e9 if "rtt" in delay else None
            yield sent.get("monotonic", sent.get("wall")) / 1e9, rtt, there, back, lost[str(trip["lost"]).lower()]

    return _round_trips(sorted(rows(), key=lambda row: row[0]), "irtt")


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"found no JSON ({error}); allowed: a whole object") from None


def _lens(text: str) -> Recording:
    def rows() -> Iterator[Trip]:
        first = 0
        for line, row in _table(text):
            cell = row["timestamp"]
            if len(cell) > 15 and cell.isdigit():  # ns; too many digits for a double
                first = first or int(cell[:30])
                t = (int(cell[:30]) - first) / 1e9
            else:
                t = _number(cell, line)
            if "uplink" not in row:
                yield t, _number(row["rtt"], line) / 1000, None, None, ""
                continue
            rtt, up, down = (_number(row[name], line, least=-1) for name in ("rtt", "uplink", "downlink"))
            lost = "any" if rtt < 0 else "up" if up < 0 else "down" if down < 0 else ""
            yield t, rtt / 1000, up / 1000, down / 1000, lost

    return _round_trips(rows(), "lens")


def _ping(text: str) -> Recording:
    answers, probes = _ping_log.read(text, MOST_PROBES)
    if not probes:
        return Recording(form="ping", length_s=1.0)
    delays = [(t, rtt / 2) for t, rtt in answers]
    length = _spaced(delays or [(t, None) for t, _ in probes], "time stamps")
    return Recording(form="ping", length_s=length, both=Way(delays=delays, probes=probes))


def _iperf3(text: str) -> Recording:
    told = iperf3.whole(text) if '"event"' in text else _object(text)
    if "error" in told:
        raise InputError(f"found iperf3's error {quote(str(told['error']))}; allowed: a test that ran")
    sums = [interval["sum"] for interval in told["intervals"]]
    points = [(max(float(of["start"]), 0.0), min(max(float(of["bits_per_second"]), 0.0), MOST_BPS)) for of in sums]
    length = max((float(of["end"]) for of in sums), default=0.0)
    return Recording(form="iperf3", length_s=length, both=Way(rates=points))


FORMS: dict[str, Callable[[str], Recording]] = {
    "mahimahi": _mahimahi,
    "delays": _delays,
    "cellreplay": _cellreplay,
    "rates": _rates,
    "norway": _norway,
    "fcc": _fcc,
    "g-nettrack": _g_nettrack,
    "irtt": _irtt,
    "lens": _lens,
    "ping": _ping,
    "iperf3": _iperf3,
}
