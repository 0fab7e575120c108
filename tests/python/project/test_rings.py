"""Tests for the report at the end of a test ring."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

TESTS = """
import pytest, time

def spin(s):
    until = time.process_time() + s
    while time.process_time() < until:
        pass

def test_light(): pass
def test_slow(): spin(0.25)
@pytest.mark.skip("no such machine")
def test_elsewhere(): pass
@pytest.mark.deep
def test_deep(): spin(0.25)
@pytest.mark.long
def test_long(): pass
@pytest.mark.parametrize("n", range(30))
def test_many(n): pass
"""


def ran(folder: Path, *options: str, tests: str = TESTS) -> tuple[int, str]:
    (folder / "conftest.py").write_text("import rings\nrings.MOST_S = 0.2\n")
    (folder / "test_x.py").write_text(tests)
    base = f"--basetemp={folder / 'base'}"  # else pytest deletes the leftovers of all earlier runs, which can take half a minute
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        str(ROOT / "pyproject.toml"),
        f"--rootdir={folder}",
        base,
        *options,
    ]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=False, cwd=ROOT, env=alone)
    return done.returncode, done.stdout


@pytest.mark.parametrize("options", [(), ("-n", "2", "--dist", "loadfile")], ids=["one process", "workers"])
def test_the_end_names_what_is_slow_and_what_is_left_out(tmp_path: Path, options: tuple[str, ...]) -> None:
    code, said = ran(tmp_path, *options)
    assert code == 0, said
    assert "the 20 slowest tests:" in said
    first = said.splitlines()[said.splitlines().index(next(x for x in said.splitlines() if "20 slowest" in x)) + 1]
    assert first.endswith("test_x.py::test_slow")
    assert "slow: above 0.2 s of CPU time: test_x.py::test_slow;" in said
    assert "left out: 1 tests of `make test-deep`, 1 tests of `make soak`" in said
    assert "left out: 1 tests, no such machine" in said


def test_a_deep_test_may_cost_more(tmp_path: Path) -> None:
    code, said = ran(tmp_path, "-m", "deep")
    assert code == 0, said
    assert "slow:" not in said
    assert "left out: 33 tests of `make test`, 1 tests of `make soak`" in said


def test_a_worker_that_crashes_ends_the_run_by_name(tmp_path: Path) -> None:
    (tmp_path / "test_y.py").write_text("def test_light(): pass\n")
    (tmp_path / "test_z.py").write_text("def test_light(): pass\n")
    crash = "import os\ndef test_a(): pass\ndef test_b(): os._exit(1)\ndef test_c(): pass\ndef test_d(): pass\n"
    code, said = ran(tmp_path, "-n", "1", "--dist", "loadfile", tests=crash)
    assert code != 0
    assert "test_x.py::test_b" in said
    assert "worker gw0 crashed" in said
