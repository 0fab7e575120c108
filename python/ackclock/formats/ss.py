"""Reads and writes repeated output of `ss -tin`: the kernel's TCP state of each connection.

`ss` prints no time, so each sample is preceded by a line that contains only the time in seconds:

    while true; do date +%s.%N; ss -tinH dst 10.1.0.1; sleep 0.1; done > flow.txt

Each connection has two lines: state, queues and addresses; then, indented, the values of `tcp_info`. `rtt` is smoothed RTT /
deviation in ms, `cwnd` and `ssthresh` are in segments, and `retrans` is currently outstanding / total. Source: iproute2,
`misc/ss.c`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ackclock.errors import InputError, quote, shown
from ackclock.formats.measured import Measured, frames

if TYPE_CHECKING:
    from ackclock._results.result import Run

__all__ = ["lines", "read"]

LEAST = 10_000
"""Minimum number of bytes sent by a data connection. Connections that sent less, such as iperf3's own control connection, are omitted."""

EPOCH = 1e8
"""Largest time interpreted as relative to the beginning of a run, s. Larger times count from 1970, and become
relative to the first of them.
"""

FINER = 1e11
"""Largest time interpreted as seconds, s. Larger ones are in milliseconds, microseconds or nanoseconds (`date +%s%N`)."""

_TIME = re.compile(r"(?:#|time:)?\s*(\d+(?:[.,]\d+)?)\s*$")
_KEY = re.compile(r"[a-z_0-9]+")

TIMES = {"busy": "busy_s", "rwnd_limited": "rwnd_limited_s", "sndbuf_limited": "sndbuf_limited_s"}
"""The kernel's chronographs: data to send, limited by the receiver's window, limited by the send buffer. `ss` omits
those that never ran.
"""

_TIME_SPENT = re.compile(r"(\d{1,15})ms")

LONGEST = 2**16
"""Maximum line length, characters. Lines of `ss` have several hundred, or several thousand with a socket's processes."""


def read(text: str, *, name: str) -> Measured:
    """Read samples, each preceded by its time."""
    now: float | None = None
    zero: float | None = None
    ends: str | None = None
    found: dict[str, list[dict[str, Any]]] = {}
    labels: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > LONGEST:
            raise InputError(f"line {number}: found {len(line):,} characters; allowed: at most {LONGEST:,}")
        if not line.strip() or line.startswith(("State", "Netid")):
            continue
        if (stamp := _TIME.match(line)) is not None:
            now, ends = _seconds(stamp[1]), None
            zero = (now if now > EPOCH else 0.0) if zero is None else zero
        elif not line[0].isspace():
            ends = _ends(line)
            if ends is not None and "cwnd:" in line:  # `ss -O` prints one line per connection
                _look(line.partition("\t")[2] or line, ends, now, zero, found, labels)
        elif ends is not None and "cwnd:" in line:
            _look(line, ends, now, zero, found, labels)
    busy = {ends: rows for ends, rows in found.items() if rows[-1]["sent"] >= LEAST} or found
    if not busy:
        first = next((line for line in text.splitlines() if line.strip()), "")
        raise InputError(
            f"found {quote(first[:60]) if first else 'an empty file'} and no connection with cwnd; "
            "allowed: the output of ss -tin, with the time before each look"
        )
    samples: list[dict[str, Any]] = []
    goodput: list[dict[str, Any]] = []
    for flow, rows in enumerate(busy.values()):
        for before, row in zip([None, *rows], rows, strict=False):
            samples.append({key: value for key, value in row.items() if key not in ("acked", "sent")} | {"flow": flow})
            if before is not None and row["t_s"] > before["t_s"]:
                bits = max(row["acked"] - before["acked"], 0) * 8
                goodput.append({"t_s": row["t_s"], "flow": flow, "goodput_bps": bits / (row["t_s"] - before["t_s"])})
    made = frames(samples, goodput)
    names = [labels[ends] for ends in busy]
    flows = tuple(names if len(names) == 1 else [f"{i} {label}" for i, label in enumerate(names)])
    return Measured(name=name, kind="ss", flows=flows, samples=made[0], goodput=made[1])


def _seconds(stamp: str) -> float:
    """Return a time in seconds."""
    value = float(stamp.replace(",", "."))
    for _ in range(3):
        value = value / 1000 if value > FINER else value
    return value


def _ends(line: str) -> str | None:
    """Return both addresses of a connection that carries data; None for listening sockets.

    The addresses are the first two consecutive words that contain a colon. The state before them is missing if a
    single state was requested from `ss`.
    """
    words = line.partition("\t")[0].split()
    both = (f"{a} {b}" for a, b in pairwise(words) if ":" in a[1:-1] and ":" in b[1:-1])
    return None if "LISTEN" in line else next(both, None)


def _look(
    line: str,
    ends: str,
    now: float | None,
    zero: float | None,
    found: dict[str, list[dict[str, Any]]],
    labels: dict[str, str],
) -> None:
    if now is None or zero is None:
        raise InputError(
            "found no time before the first connection; allowed: a line with the seconds before each look, "
            "as `while true; do date +%s.%N; ss -tinH; sleep 0.1; done` writes it"
        )
    pairs = (word.partition(":") for word in line.split())
    told = {key: value for key, _, value in pairs if value and _KEY.fullmatch(key)}
    row: dict[str, Any] = {
        "t_s": now - zero,
        "acked": int(told.get("bytes_acked", 0)),
        "sent": int(told.get("bytes_sent", 0)),
    }
    row["cwnd"] = float(told["cwnd"])
    if "ssthresh" in told:
        row["ssthresh"] = float(told["ssthresh"])
    if "rtt" in told:
        row["srtt_s"] = float(told["rtt"].split("/")[0]) * 1e-3
    out, _, total = told.get("retrans", "0/0").partition("/")
    row["retransmissions"] = float(total or 0)
    gone = int(told.get("sacked", 0)) + int(told.get("lost", 0))
    row["in_flight"] = float(max(int(told.get("unacked", 0)) + int(out) - gone, 0))
    for name, column in TIMES.items():
        if (spent := _TIME_SPENT.match(told.get(name, ""))) is not None:
            row[column] = float(spent[1]) * 1e-3
    if "busy_s" in row:
        row = {**dict.fromkeys(TIMES.values(), 0.0), **row}
    if "snd_wnd" in told:
        row["rwnd"] = float(told["snd_wnd"])
    rows = found.setdefault(ends, [])
    if rows and row["t_s"] <= rows[-1]["t_s"]:
        return  # a repeated sample
    rows.append(row)
    words = line.split()
    far = ends.split()[1]
    words = words[words.index(far) + 1 :] if far in words else words  # `ss -O` has the addresses on the same line
    # the controller's name is the last word before the first pair, after the flags `ts`, `sack`, `ecn`
    labels[ends] = next((word for word, after in pairwise(words) if ":" in after and ":" not in word), "tcp")


def lines(run: Run, *, mss: Callable[[int], int]) -> list[str]:
    """Return the samples of a run as `ss -tin` would have shown them at those times.

    Parameters
    ----------
    run
        Run that has recorded samples.
    mss
        Group number -> payload of a full segment, bytes.

    Returns
    -------
    list of str
        One line with the time, then two lines for each open flow.
    """
    controllers = {row["flow"]: run.scenario.flows[row["group"]].congestion_control for row in run.rows("flows")}
    segments = {row["flow"]: mss(row["group"]) for row in run.rows("flows")}
    made: list[str] = []
    last = None
    for row in run.rows("samples"):
        if row["t_s"] != last:
            made.append(f"{row['t_s']:.9f}")
            last = row["t_s"]
        flow = row["flow"]
        host = f"{flow // 256}.{flow % 256 + 1}"
        made.append(f"ESTAB 0 {row['in_flight'] * segments[flow]} 10.0.{host}:5001 10.1.{host}:5201")
        made.append("\t " + _info(row, controllers[flow], segments[flow]))
    return made


def _info(row: Mapping[str, Any], controller: str, mss: int) -> str:
    word = re.sub(r"[\s:]", "-", shown(controller))
    parts = ["ts", "sack", word]
    if row["srtt_s"] is not None:
        parts.append(f"rtt:{row['srtt_s'] * 1e3:.6g}")
    parts += [f"mss:{mss}", f"cwnd:{row['cwnd']}"]
    if row["ssthresh"] is not None:
        parts.append(f"ssthresh:{row['ssthresh']}")
    sent = row["bytes_acked"] + (row["in_flight"] + row["retransmissions"]) * mss
    parts += [f"bytes_sent:{sent}"]
    if row["retransmissions"]:
        parts.append(f"bytes_retrans:{row['retransmissions'] * mss}")
    parts.append(f"bytes_acked:{row['bytes_acked']}")
    if row.get("busy_s") is not None:
        parts += _busy(row)
    if row["in_flight"]:
        parts.append(f"unacked:{row['in_flight']}")
    if row["retransmissions"]:
        parts.append(f"retrans:0/{row['retransmissions']}")
    if row.get("rwnd") is not None:
        parts.append(f"snd_wnd:{row['rwnd']}")
    return " ".join(parts)


def _busy(row: Mapping[str, Any]) -> list[str]:
    """Return the kernel's chronographs in milliseconds, without those that never ran; the limits include their fraction of the busy time."""
    busy = int(row["busy_s"] * 1e3)
    parts = [f"busy:{busy}ms"] if busy else []
    for name in ("rwnd_limited", "sndbuf_limited"):
        limited = row[f"{name}_s"] * 1e3
        if int(limited):
            parts.append(f"{name}:{int(limited)}ms({100 * limited / (row['busy_s'] * 1e3):.1f}%)")
    return parts
