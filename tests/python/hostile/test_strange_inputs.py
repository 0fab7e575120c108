"""Tests for drawn hostile inputs (`strangers.py`): no execution, no loss, no false success, no internal error, no hang."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SEED = os.environ.get("TROUBLE_SEED", "1")


def drawn(*arguments: str) -> dict[str, int]:
    """Run commands on drawn inputs, none of which may do harm; return the number of inputs of each kind."""
    program = Path(__file__).with_name("strangers.py")
    done = subprocess.run([sys.executable, str(program), *arguments], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr[-2000:]
    told = json.loads(done.stdout)
    assert not told["wrong"], json.dumps(told["wrong"][:10], indent=1)
    counts: dict[str, int] = told["counts"]
    return counts


def test_some_captures_and_outputs() -> None:
    assert sum(drawn("--count", "8", "--kind", "captures", "--kind", "input over output").values()) >= 7


@pytest.mark.promise("P31", "P39", "P44")
@pytest.mark.long
def test_a_thousand_of_all_kinds() -> None:
    assert sum(drawn("--seed", SEED).values()) >= 1030
