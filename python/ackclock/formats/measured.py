"""Measurements made elsewhere, in the columns of a run: `samples` and `goodput`, regardless of their file format."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock import _files
from ackclock.errors import InputError, quote, shown

if TYPE_CHECKING:
    import polars as pl

    from ackclock._results.result import Run

__all__ = ["Measured", "frames", "of_run", "read"]

LARGEST = 2**27
"""Maximum size of a file that is read, bytes."""

MOST_FLOWS = 1000

GZIP = b"\x1f\x8b"

TCPTRACE, LOOK = "tcptrace -- version", 2**12
"""Mark of a tcptrace listing, and number of characters searched for it at the start of a file."""

ALLOWED = "one of iperf3 -J, of ss -tin with times, of qlog, flent, tcp_probe or NDT7"

LONGEST_NAME = 60
"""Maximum length of a flow's name, characters."""

BOUNDS = {
    "t_s": (-1e9, 1e9),
    "cwnd": (0.0, 2.0**31),
    "ssthresh": (0.0, 2.0**64),
    "srtt_s": (0.0, 1e6),
    "in_flight": (0.0, 2.0**48),
    "retransmissions": (0.0, 2.0**53),
    "goodput_bps": (0.0, 1e15),
    "rwnd": (0.0, 2.0**40),
    "busy_s": (0.0, 1e12),
    "rwnd_limited_s": (0.0, 1e12),
    "sndbuf_limited_s": (0.0, 1e12),
}
"""Bounds on each quantity of a connection."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """Flows measured elsewhere.

    Parameters
    ----------
    name
        Name in figures.
    kind
        Format of its file.
    flows
        Names of the flows.
    samples
        Columns `t_s`, `flow`, `cwnd` and `ssthresh` (segments), `srtt_s`, `in_flight` (segments), `retransmissions` (so
        far); null if the file does not have the value. Times are seconds from the beginning of the measurement.
    goodput
        Columns `t_s` (end of the interval), `flow`, `goodput_bps`.
    run
        The whole run, if it is one of ours.
    """

    name: str
    kind: str
    flows: tuple[str, ...]
    samples: pl.DataFrame = field(repr=False)
    goodput: pl.DataFrame = field(repr=False)
    run: Run | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Shorten names and make them printable, because they come from third-party files and appear in figures."""
        object.__setattr__(self, "name", shown(self.name)[:LONGEST_NAME])
        object.__setattr__(self, "flows", tuple(shown(flow)[:LONGEST_NAME] for flow in self.flows))


NUMBERS = ("cwnd", "ssthresh", "srtt_s", "in_flight", "retransmissions", "rwnd")

TIMES = ("busy_s", "rwnd_limited_s", "sndbuf_limited_s")
"""Columns of the kernel's chronographs, if the format contains them."""


def frames(
    samples: Sequence[Mapping[str, Any]], goodput: Sequence[Mapping[str, Any]]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the two tables of a `Measured` from rows; keys missing from a row are null.

    Raises
    ------
    InputError
        If a value is impossible for a connection: not a number, infinite, or out of bounds.
    """
    import polars as pl

    _check((*samples, *goodput))
    numbers = dict.fromkeys((*NUMBERS, *TIMES), pl.Float64)
    key = {"t_s": pl.Float64, "flow": pl.UInt32}
    order = itemgetter("t_s", "flow")
    return (
        pl.DataFrame(sorted(samples, key=order), schema={**key, **numbers}),
        pl.DataFrame(sorted(goodput, key=order), schema={**key, "goodput_bps": pl.Float64}),
    )


def _check(rows: Sequence[Mapping[str, Any]]) -> None:
    for row in rows:
        for key, value in row.items():
            low, high = BOUNDS.get(key, (0.0, float(MOST_FLOWS - 1)))
            if not low <= value <= high:  # false for NaN as well
                if key == "flow":
                    raise InputError(f"found more than {MOST_FLOWS:,} flows; allowed: at most that many")
                raise InputError(f"found {quote(value)} as {key}; allowed: a number from {low:g} to {high:g}")


def read(path: str | Path) -> Measured:
    """Read another tool's measurements; the format is recognised from the content.

    Parameters
    ----------
    path
        A regular file of at most 128 MiB, optionally compressed with gzip: output of `iperf3 -J`, `ss -tin` with the
        time before each sample, qlog (JSON or JSON-SEQ), flent, tcp_probe (the module or the trace event), or a row of
        M-Lab's NDT7; a capture (pcap, pcapng), of which the direction with the most data is used; or a folder written
        by `ackclock run --out`.

    Returns
    -------
    Measured
        Flows of the file.

    Raises
    ------
    InputError
        If the file has none of these formats, or nothing that can be drawn.
    """
    from ackclock.formats import capture

    path = Path(path)
    if path.is_dir():
        from ackclock._results.result import Run

        return of_run(Run.read(path), name=path.name)
    if capture.is_capture(path):
        try:
            return capture.measured(path)
        except InputError as error:
            raise error if str(error).startswith(f"{path}:") else InputError(f"{path}: {error}") from None
    if path.is_file() and _begins(path) == GZIP:
        return parse(_unpacked(path), path.with_suffix(""), shown=path)
    return parse(_files.contents(path, LARGEST), path)


def _begins(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(2)
    except OSError:
        return b""


def _unpacked(path: Path) -> str:
    try:
        with gzip.open(path) as file:
            data = file.read(LARGEST + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: found a gzip file that cannot be unpacked ({error}); allowed: a whole one") from None
    if len(data) > LARGEST:
        raise InputError(f"{path}: found more than {LARGEST:,} bytes in it; allowed: at most that many")
    return data.decode("utf-8", "replace")


def parse(text: str, path: Path, shown: Path | None = None) -> Measured:
    """Return the result of `read` for a file's text; errors name the file `shown`. The time is proportional to its length."""
    from ackclock.formats import flent, iperf3, ndt7, qlog, ss, tcp_probe

    try:
        if text.startswith("\x1e"):
            return qlog.read(text, name=path.stem)
        if text.lstrip()[:1] == "{":
            first = _first(text)
            if flent.is_flent(first):
                return flent.read(first, name=path.name.partition(".flent")[0])
            if ndt7.is_ndt7(first):
                return ndt7.read(_objects(text), name=path.stem)
            if "event" in first or {"start", "intervals", "end"} & set(first):
                return iperf3.read(text, name=path.stem)
            return qlog.read(text, name=path.stem)
        if text.lstrip()[:1] == "[" and text.lstrip()[1:2] in ("{", ""):
            return qlog.read(text, name=path.stem)
        if tcp_probe.is_probe(text):
            return tcp_probe.read(text, name=path.stem)
        if TCPTRACE in text[:LOOK]:
            raise InputError(
                "found what tcptrace prints, which has totals of each connection and nothing over time; allowed: the capture that tcptrace has read "
                "(`ackclock read` prints the same totals)"
            )
        return ss.read(text, name=path.stem)
    except InputError as error:
        raise InputError(f"{shown or path}: {error}") from None
    except (ValueError, TypeError, KeyError, AttributeError, LookupError, ArithmeticError, RecursionError) as error:
        what = quote(str(error).splitlines()[0]) if str(error).strip() else type(error).__name__
        raise InputError(
            f"{shown or path}: found a file that cannot be read ({type(error).__name__}: {what}); "
            f"allowed: {ALLOWED}, or the folder of a run"
        ) from None


def _refuse(constant: str) -> float:
    raise InputError(f"found {constant}, which is no number; allowed: JSON, which has none of them")


DECODER = json.JSONDecoder(parse_constant=_refuse)
"""JSON decoder that refuses NaN and Infinity, which Python would accept."""


def _objects(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON objects in the text, one after another; a list of objects is also accepted."""
    at = 0
    while at < len(text):
        while at < len(text) and (text[at].isspace() or text[at] == ","):
            at += 1
        if at < len(text):
            value, at = DECODER.raw_decode(text, at)
            if isinstance(value, Mapping):
                yield value


def _first(text: str) -> Mapping[str, Any]:
    """Return the first JSON value of the text, which is the whole file or its first line."""
    value, _ = DECODER.raw_decode(text.lstrip())
    return value if isinstance(value, Mapping) else {}


def of_run(run: Run, *, name: str = "") -> Measured:
    """Return one of our own runs, to be drawn beside another one.

    Parameters
    ----------
    run
        Run that has recorded samples or goodput.
    name
        Name in figures.
    """
    import polars as pl

    samples, goodput = run.samples, run.goodput
    if not samples.height and not goodput.height:
        raise InputError(
            f"{name or 'the run'}: found no samples and no goodput over time; allowed: a run that has recorded them "
            "(record.sample_interval, record.goodput_interval; --report records both)"
        )
    labels = [group.label for group in run.scenario.flows]
    empty_samples, empty_goodput = frames([], [])
    kept = [column for column in empty_samples.columns if column in samples.columns]
    floats = [pl.col(column).cast(empty_samples.schema[column]) for column in kept]
    return Measured(
        name=name or run.scenario.name or "run",
        kind="run",
        flows=tuple(f"{row['flow']} {labels[row['group']]}" for row in run.rows("flows")),
        samples=samples.select(floats) if samples.height else empty_samples,
        goodput=goodput.select("t_s", "flow", "goodput_bps") if goodput.height else empty_goodput,
        run=run,
    )
