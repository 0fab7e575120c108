"""Logs of tcp_probe, a kernel module until Linux 4.16, and curl's output after each fetch, as read by older evaluation
scripts.

tcp_probe writes one line for each ACK received by a sender. In Linux 3.x its fields are:

    time source destination length snd_nxt snd_una snd_cwnd ssthresh snd_wnd srtt

Time is in seconds since the module was loaded. Length is the received TCP segment's, including its header. snd_nxt
and snd_una are hexadecimal, cwnd and ssthresh are in segments, srtt is in milliseconds. The module runs before the
ACK is processed, so all values are from before the ACK. Its ssthresh is the value that a reduction would restore:
ssthresh in recovery, otherwise the maximum of ssthresh and three quarters of cwnd.

The reader accepts these lines from any kernel that had the module. Later ones have `rcv_wnd` after srtt, and srtt in
us; the unit is inferred from the ACKs. The trace event `tcp:tcp_probe` of Linux 4.16 and later, whose srtt is in us,
is accepted as well.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterator
from statistics import median
from typing import TYPE_CHECKING, Any

from ackclock.errors import InputError
from ackclock.formats.measured import Measured, frames

if TYPE_CHECKING:
    from ackclock._results.result import Run

__all__ = ["is_probe", "lines", "read", "times"]

INFINITE = 0x7FFF_FFFF
"""Value of the kernel's ssthresh before the first reduction."""

REDUCED = ("Recovery", "CWR")
"""Congestion states in which cwnd moves towards ssthresh."""


def lines(run: Run) -> Iterator[str]:
    """Return one line for each ACK in a run's trace, in time order."""
    header = {
        row["flow"]: 20 + 12 * (run.scenario.flows[row["group"]].stack.timestamps is not False)
        for row in run.rows("flows")
    }
    sent: dict[int, int] = {}
    una: dict[int, int] = {}
    state: dict[int, str] = {}
    srtt: dict[int, float] = {}
    threshold: dict[int, int] = {}
    for row in run.rows("acks"):
        flow = row["flow"]
        if row["event"] in ("send", "rtx"):
            sent[flow] = max(sent.get(flow, 0), row["seq"] + row["len"])
        elif row["event"] == "ack":
            cwnd = row["cwnd_before"]
            known = threshold.get(flow, INFINITE)
            current = known if state.get(flow, "Open") in REDUCED else max(known, 3 * cwnd // 4)
            # SACK blocks follow two bytes of padding and a two-byte option header
            length = header[flow] + (4 + 8 * row["sack_blocks"] if row["sack_blocks"] else 0)
            host = f"{flow // 256}.{flow % 256 + 1}"
            ends = f"10.0.{host}:5001 10.1.{host}:5201"
            past = f"{sent.get(flow, 0):#x} {una.get(flow, 0):#x}"
            yield (
                f"{row['t_ns'] // 1_000_000_000}.{row['t_ns'] % 1_000_000_000:09d} {ends} {length} {past} {cwnd} {current} "
                f"{row['rwnd']} {round(1e3 * srtt.get(flow, 0.0))}"
            )
            una[flow] = row["seq"]
        state[flow] = row["ca_state"]
        srtt[flow] = row["srtt_s"] or 0.0
        threshold[flow] = INFINITE if row["ssthresh"] is None else row["ssthresh"]


def times(run: Run) -> Iterator[str]:
    """Return the duration of each completed fetch or transaction, in seconds and with connection setup, like curl's
    `time_total`.
    """
    for table in ("fetches", "transactions"):
        for row in run.rows(table):
            if row["total_s"] is not None:
                yield f"{row['total_s']:.6f}"


_LINE = re.compile(
    r"\s*(?P<t>\d+\.\d+) (?P<source>\S+:\d+) (?P<dest>\S+:\d+) \d+ (?P<nxt>0x[0-9a-f]+) (?P<una>0x[0-9a-f]+) (?P<cwnd>\d+) "
    r"(?P<ssthresh>\d+) (?P<wnd>\d+) (?P<srtt>\d+)(?: \d+)?\s*$"
)

_EVENT = re.compile(
    r".*?(?P<t>\d+\.\d+): tcp_probe: .*?src=(?P<source>\S+) dest=(?P<dest>\S+) .*?snd_nxt=(?P<nxt>0x[0-9a-f]+) snd_una=(?P<una>0x[0-9a-f]+) "
    r"snd_cwnd=(?P<cwnd>\d+) ssthresh=(?P<ssthresh>\d+) snd_wnd=(?P<wnd>\d+) srtt=(?P<srtt>\d+)"
)

WRAP = 1 << 32

LEAST_BYTES = 10_000
"""Minimum number of bytes sent by a data connection; smaller connections are control connections."""

LONGEST_LINE = 2**12


def is_probe(text: str) -> bool:
    """Return whether the first lines of a text are from tcp_probe."""
    head = [line for line in text[: 2**16].splitlines()[:200] if line.strip() and not line.startswith("#")]
    return any(_match(line) for line in head[:40])


def _match(line: str) -> re.Match[str] | None:
    return None if len(line) > LONGEST_LINE else _LINE.match(line) or _EVENT.match(line)


def read(text: str, *, name: str) -> Measured:
    """Read a tcp_probe log.

    Raises
    ------
    InputError
        If none of its connections carries data.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    event = False
    for line in text.splitlines():
        if (one := _match(line)) is None:
            continue
        event = event or "tcp_probe:" in line
        rows = found.setdefault(f"{one['source']} {one['dest']}", [])
        row = {"t": float(one["t"]), "wnd": float(one["wnd"]), "srtt": float(one["srtt"]), "cwnd": float(one["cwnd"])}
        row |= {"ssthresh": float(one["ssthresh"]), "nxt": int(one["nxt"], 16), "una": int(one["una"], 16)}
        if rows:  # unwrap the sequence numbers
            before = rows[-1]
            for key in ("nxt", "una"):
                step = (row[key] - before[key]) % WRAP
                row[key] = before[key] + (step if step < WRAP // 2 else 0)
            row["t"] = max(row["t"], before["t"])
        else:
            row["nxt"] = row["una"] + (row["nxt"] - row["una"]) % WRAP
        rows.append(row)
    carried = {ends: rows for ends, rows in found.items() if rows[-1]["una"] - rows[0]["una"] >= LEAST_BYTES}
    if not carried:
        raise InputError("found lines of tcp_probe and no connection that carries data; allowed: one with some")
    begin = min(rows[0]["t"] for rows in carried.values())
    samples: list[dict[str, Any]] = []
    goodput: list[dict[str, Any]] = []
    for flow, rows in enumerate(carried.values()):
        unit = 1e-6 if event or _in_us(rows) else 1e-3
        for row in rows:
            look: dict[str, Any] = {"t_s": row["t"] - begin, "flow": flow, "cwnd": row["cwnd"], "rwnd": row["wnd"]}
            if row["ssthresh"] < INFINITE:
                look["ssthresh"] = row["ssthresh"]
            if row["srtt"]:
                look["srtt_s"] = row["srtt"] * unit
            samples.append(look)
        goodput += [{**step, "flow": flow} for step in _goodput(rows, begin)]
    made = frames(samples, goodput)
    return Measured(name=name, kind="tcp_probe", flows=tuple(carried), samples=made[0], goodput=made[1])


def _in_us(rows: list[dict[str, Any]]) -> bool:
    """Return whether srtt is in us, by comparing it with the time until data sent at an ACK is acknowledged."""
    unas = [row["una"] for row in rows]
    trips = []
    for row in rows[:: max(len(rows) // 200, 1)]:
        at = bisect_left(unas, row["nxt"])
        if at < len(rows) and row["srtt"] and rows[at]["t"] > row["t"]:
            trips.append(math.log10(row["srtt"] / (rows[at]["t"] - row["t"])))
    return bool(trips) and median(trips) > 4.5  # 3 for ms, 6 for us


INTERVAL_S = 0.1


def _goodput(rows: list[dict[str, Any]], begin: float) -> Iterator[dict[str, Any]]:
    before = rows[0]
    for row in rows[1:]:
        if row["t"] - before["t"] >= INTERVAL_S:
            bits = 8 * (row["una"] - before["una"])
            yield {"t_s": row["t"] - begin, "goodput_bps": bits / (row["t"] - before["t"])}
            before = row
