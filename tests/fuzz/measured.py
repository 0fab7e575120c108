"""Measurements of other tools (`iperf3 -J`, `ss -tin`, qlog): any text is either read as numbers that are plausible for a connection, or refused in one line.

An input alters an example: bytes are replaced, doubled or left out; in JSON, values.
"""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

from draw import Draw, one_line

from ackclock import AckclockError
from ackclock.formats import measured

_SAMPLES = Path(__file__).parents[1] / "python" / "formats" / "samples"
_QLOG: dict[str, Any] = {
    "traces": [
        {
            "title": "0 cubic",
            "events": [
                {"time": 0, "name": "recovery:parameters_set", "data": {"max_datagram_size": 1200}},
                {"time": 1, "name": "transport:packet_sent", "data": {"header": {"packet_type": "1RTT", "packet_number": 0},
                 "raw": {"length": 1240, "payload_length": 1200}}},
                {"time": 2.5, "name": "transport:packet_received", "data": {"header": {"packet_type": "1RTT"},
                 "frames": [{"frame_type": "ack", "acked_ranges": [[0, 0]]}]}},
                {"time": 3, "name": "recovery:metrics_updated",
                 "data": {"congestion_window": 12000, "smoothed_rtt": 20.0, "bytes_in_flight": 2400, "ssthresh": 9000}},
                {"time": 4, "name": "recovery:packet_lost", "data": {}},
            ],
        }
    ]
}  # fmt: skip


def _short(text: str) -> str:
    """Example of an iperf3 result: its first three intervals."""
    told = json.loads(text)
    return json.dumps({**told, "intervals": told["intervals"][:3]})


_EXAMPLES = [
    _short((_SAMPLES / "iperf3-3.12.json").read_text()),
    "\n".join((_SAMPLES / "ss-6.1.txt").read_text().splitlines()[:12]) + "\n",
    json.dumps(_QLOG),
    "".join(f"\x1e{json.dumps(record)}\n" for record in ({"trace": {"title": "x"}}, *_QLOG["traces"][0]["events"])),
    '{"event": "start", "data": {}}\n{"event": "interval", "data": {"streams": [{"socket": 5, "start": 0, "end": 1, '
    '"bits_per_second": 1e6, "snd_cwnd": 14480, "rtt": 1000}]}}\n{"event": "end", "data": {}}\n',
]
_VALUES: list[Any] = [
    None, True, 0, 1, -1, 2**31, 2**63, 10**40, -(10**300), 0.5, -0.0, 1e300, "", "x", "nan", "1e999", "\x1b[31m\n", [], [[]],
    [[0, 10**18]], [[5, 1]], {}, {"x": 1}, [1, 2], "é" * 3000,
]  # fmt: skip
_WORDS = [
    b"nan", b"NaN", b"Infinity", b"1e999", b"-1", b"9" * 30, b"9" * 5000, b":", b"\x1e", b"\n", b"\t", b"\x00", b"\xff", b"[", b"{",
    b'"', b" ", b"cwnd:", b"rtt:1/", b"retrans:", b"1.0\n", b"x:1 y:2\n", b"a" * 300, b"\r", b"\xe2\x80\xa8",
]  # fmt: skip

EXAMPLES = [bytes([kind, 0, 0, 0, 0]) for kind in range(2 * len(_EXAMPLES))]


def play(data: bytes) -> bool:
    """Play one input; return whether the reader accepted it."""
    draw = Draw(data)
    which = draw.byte()
    text = _EXAMPLES[which // 2 % len(_EXAMPLES)]
    if which % 2 and text.startswith("{") and "\n" not in text:
        text = _altered(json.loads(text), draw)
    else:
        text = _cut(text.encode(), draw).decode("utf-8", "replace")
    try:
        read = measured.parse(text, Path("x"))
    except AckclockError as error:
        one_line(str(error))
        return False
    assert read.flows
    assert all(flow.isprintable() for flow in (*read.flows, read.name))
    for table in (read.samples, read.goodput):
        for column in table.columns:
            low, high = measured.BOUNDS.get(column, (0, measured.MOST_FLOWS - 1))
            for value in table[column].to_list():
                assert value is None or (math.isfinite(value) and low <= value <= high), (column, value)
    return True


def _altered(told: Any, draw: Draw) -> str:
    """Replace or remove values of a tree."""
    while not draw.empty:
        node = told
        for _ in range(draw.byte() % 7 + 1):
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not keys:
                break
            key = draw.one(keys)
            if isinstance(node[key], dict | list) and node[key] and draw.byte() % 4:
                node = node[key]
            elif draw.byte() % 8 == 0:
                del node[key]
                break
            else:
                node[key] = copy.deepcopy(draw.one(_VALUES))  # a copy, because a later step may change it
                break
    return json.dumps(told)


def _cut(text: bytes, draw: Draw) -> bytes:
    while not draw.empty and len(text) < 50_000:
        at = draw.number(2) % (len(text) + 1)
        length = draw.byte() % 40
        kind = draw.byte() % 4
        if kind == 0:
            text = text[:at] + draw.one(_WORDS) + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + length :]
        elif kind == 2:
            text = text[:at] + draw.one(_WORDS) + text[at + length :]
        else:
            text = text[:at] + text[at : at + length] * 2 + text[at + length :]
    return text
