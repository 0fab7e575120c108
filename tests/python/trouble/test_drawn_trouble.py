"""Tests for commands in trouble (`stories.py`), writers whose system calls fail, and power losses (`power.py`): a few cases here, hundreds
in `make soak`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Any

import pytest
from conftest import ROOT

STEPS = int(os.environ.get("STEPS", "300"))
SEED = os.environ.get("TROUBLE_SEED", "1")

pytestmark = pytest.mark.skipif(
    shutil.which("cc") is None or sys.platform != "linux", reason="needs a compiler of C, and Linux"
)


def trouble(*arguments: str) -> dict[str, Any]:
    """Return the driver's report."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "trouble.py"), *arguments], capture_output=True, text=True, check=False
    )
    assert done.stdout, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(done.stdout)
    assert not told["wrong"], json.dumps(told["wrong"][:5], indent=1)
    assert done.returncode == 0
    return told


@pytest.mark.promise("P45")
def test_some_trouble_with_one_command() -> None:
    told = trouble("--seed", "1", "--steps", "4", "--kind", "sweep")
    assert told["steps"] == 4


@pytest.mark.promise("P45")
@pytest.mark.long
def test_hundreds_of_troubles() -> None:
    """The number of troubles is STEPS, with seeds from TROUBLE_SEED on."""
    told = trouble("--seed", SEED, "--steps", str(STEPS))
    assert told["steps"] >= STEPS
    assert told["counts"]["kills"] > STEPS // 10
    assert told["counts"]["failed calls"] > STEPS // 12


@pytest.mark.promise("P46")
@pytest.mark.long
def test_two_hundred_failing_calls_of_writers() -> None:
    """Call, number and error are drawn. The command reports the error in a line or continues, and the next command finds everything it needs."""
    told = trouble("--seed", SEED, "--steps", "220", "--only", "failing call")
    assert told["counts"]["failed calls"] >= 150


@pytest.mark.promise("P47")
@pytest.mark.deep
@pytest.mark.parametrize("what", ["run", "run over another", "sweep"])
def test_a_loss_of_power_here_and_there(what: str) -> None:
    assert trouble("--power", what, "--every", "60")["tried"] > 3


@pytest.mark.promise("P47")
@pytest.mark.long
@pytest.mark.parametrize("what", ["run", "run over another", "sweep"])
def test_a_loss_of_power_at_every_call(what: str) -> None:
    """States without each unconfirmed name change are included."""
    assert trouble("--power", what)["tried"] > 50
