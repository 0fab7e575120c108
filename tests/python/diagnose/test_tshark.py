"""Compares our reader with Wireshark's: the same segments and SACK blocks, with every difference in classification
explained by a known Wireshark defect. Needs tshark (Debian package `tshark`).
"""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from test_diagnose import captured

import ackclock
from ackclock.formats.capture import read_capture

TSHARK = shutil.which("tshark")

pytestmark = pytest.mark.skipif(TSHARK is None, reason="tshark is not installed (Debian: apt-get install tshark)")

FLAGS = ("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order", "lost_segment")

EXPLAINED = {
    (
        "retransmission",
        "out_of_order",
    ): "within a round trip of the last segment a retransmission counts as out of order (3 ms where none is "
    "known), SACK is not looked at: gitlab.com/wireshark/wireshark, issues 13843 and 13863",
    ("needless", "out_of_order"): "the same",
    (
        "late",
        "fast_retransmission",
    ): "what was overtaken and follows three duplicate ACKs within 20 ms counts as sent again, although its timestamp is older: "
    "issue 15993",
    (
        "needless",
        "retransmission",
    ): "what had been SACKed and is sent again is needless; only what had been acknowledged counts as spurious there",
}
"""(our name for a segment, Wireshark's name, reason)"""


def shown(path: Path) -> list[dict[str, str]]:
    """Return each segment of the first connection."""
    fields = [
        "tcp.srcport",
        "tcp.seq_raw",
        "tcp.len",
        "tcp.ack_raw",
        "tcp.options.sack_le",
        "tcp.options.sack_re",
        *(f"tcp.analysis.{flag}" for flag in FLAGS),
    ]
    assert TSHARK is not None
    command = [TSHARK, "-n", "-r", str(path), "-Y", "tcp.stream == 0", "-T", "fields", "-E", "occurrence=a"]
    command += [part for field in fields for part in ("-e", field)]
    made = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return [dict(zip(fields, line.split("\t"), strict=True)) for line in made.stdout.splitlines()]


def ours(path: Path) -> tuple[list[dict[str, Any]], list[list[tuple[int, int]]]]:
    """Return each segment and its SACK blocks."""
    packets = read_capture(path, connection=0).packets
    assert packets is not None
    segments: list[dict[str, Any]] = []
    blocks: list[list[tuple[int, int]]] = []
    for row in packets.iter_rows(named=True):
        if row["kind"] in ("sack", "dsack"):
            blocks[-1].append((row["seq"], row["seq"] + row["length"]))
        else:
            segments.append(row)
            blocks.append([])
    return segments, blocks


CASES = {
    "lossy": {"rate": "10 Mbit/s", "delay": "20 ms", "loss": {"kind": "bernoulli", "p": 0.01}},
    "full": {"rate": "8 Mbit/s", "delay": "15 ms", "queue": {"kind": "drop-tail", "limit": "20 packets"}},
    "reordered": {"rate": "10 Mbit/s", "delay": "20 ms", "reorder": {"probability": 0.01, "extra_delay": "5 ms"}},
}


@pytest.mark.parametrize("at", ["sender", "receiver"])
@pytest.mark.parametrize("case", CASES)
def test_the_same_segments_and_every_other_name_is_explained(tmp_path, case, at):
    scenario = ackclock.Scenario.from_dict(
        {
            "duration": "5 s",
            "network": {"bottleneck": CASES[case]},
            "flows": [{"congestion_control": "cubic", "workload": {"kind": "transfer", "bytes": "2 MB"}}],
        }
    )
    _, path = captured(tmp_path, scenario, at)
    theirs, (segments, blocks) = shown(path), ours(path)
    assert len(theirs) == len(segments)
    origins = {row["tcp.srcport"]: int(row["tcp.seq_raw"]) for row in reversed(theirs) if row["tcp.seq_raw"]}
    other = {port: next(name for name in origins if name != port) for port in origins}
    differ: Counter[tuple[str, str]] = Counter()
    for their, own, block in zip(theirs, segments, blocks, strict=True):
        port = their["tcp.srcport"]
        assert int(their["tcp.len"]) == own["length"]
        assert (int(their["tcp.seq_raw"]) - origins[port]) % 2**32 == own["seq"]
        if own["ack"] is not None and own["kind"] != "syn":
            assert (int(their["tcp.ack_raw"]) - origins[other[port]]) % 2**32 == own["ack"]
        edges = [[int(n) for n in their[f"tcp.options.sack_{side}"].split(",") if n] for side in ("le", "re")]
        assert list(zip(*edges, strict=True)) == block  # relative to the first number, as ours are
        flags = [flag for flag in FLAGS[:4] if their[f"tcp.analysis.{flag}"]]
        called = flags[-1] if flags else ""
        again = own["kind"] in ("retransmission", "needless", "late")
        same = {
            "late": ("out_of_order",),
            "retransmission": ("retransmission", "fast_retransmission"),
            "needless": ("spurious_retransmission",),
        }
        if again != bool(called) or (again and called not in same.get(own["kind"], ())):
            differ[own["kind"], called] += 1
    print(case, at, dict(differ))
    unexplained = {names: count for names, count in differ.items() if not EXPLAINED.get(names)}
    assert not unexplained
