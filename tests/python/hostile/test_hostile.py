"""Tests for more than 1,300 mistakes and hostile inputs: no internal error, traceback, hang, escape sequence, high
memory use or accepted nonsense.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from inputs import KINDS

WORKER = Path(__file__).with_name("worker.py")

COUNTS = {
    "scenarios": 700,
    "scripts": 190,
    "sweeps": 130,
    "stores": 150,
    "options": 110,
    "controllers": 60,
    "calls": 80,
    "mahimahi": 35,
    "commands": 30,
}
"""Minimum number of inputs of each kind."""


PARTS = {"stores": 2}
"""Number of processes that share the inputs of one kind; one by default."""


@pytest.mark.promise("P1", "P4", "P44")
@pytest.mark.parametrize(("kind", "part"), [(kind, part) for kind in KINDS for part in range(PARTS.get(kind, 1))])
def test_every_input_is_refused_with_a_line_or_makes_sense(kind: str, part: int, tmp_path: Path) -> None:
    """A separate process with limited memory passes the inputs to the command one after another."""
    parts = PARTS.get(kind, 1)
    done = subprocess.run(
        [sys.executable, str(WORKER), kind, str(tmp_path), str(part), str(parts)],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *wrong, counts = [json.loads(line) for line in done.stdout.splitlines()]
    assert not wrong, json.dumps(wrong[:20], indent=1)
    assert counts["count"] >= COUNTS[kind] // parts
    assert counts["refused"] > counts["count"] / 4
