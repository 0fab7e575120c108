"""Mahimahi traces: any input is either accepted, with every line counted, or refused with file and line."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from draw import one_line

from ackclock import AckclockError
from ackclock.scenario import _mahimahi

EXAMPLES = [b"0\n1\n1\n2\n", b"5\r\n5\r\n10\r\n", b"1", b"0\n" * 20 + b"1000\n", b"0007\n8\n59\n60000\n", b"12\n3600\n"]

_FOLDER = tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
_PLACE = Path(_FOLDER.name, "x.trace")


def play(data: bytes) -> bool:
    """Play one input; return whether the reader accepted it."""
    _PLACE.write_bytes(data)
    try:
        read = _mahimahi._read.__wrapped__(str(_PLACE))
    except AckclockError as error:
        one_line(str(error))
        return False
    lines = [int(line) for line in data.split(b"\n") if line.strip(b"\r")]
    assert sum(read.counts) == len(lines)
    assert len(read.counts) == lines[-1] + 1
    assert [read.counts[ms] for ms in set(lines)] == [lines.count(ms) for ms in set(lines)]
    return True
