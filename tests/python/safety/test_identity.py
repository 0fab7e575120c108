"""Tests that the identity of user code covers all files it reads: helpers, weights, included files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ackclock import own
from ackclock import sweep as sweeps
from ackclock.cli import main
from ackclock.errors import UnavailableError

AGENT = Path(__file__).resolve().parents[3] / "examples/agent"

SWEEP = """
name = "k"
seeds = 1
metrics = ["goodput_bps"]
scenario = { duration = "2 s", network = { bottleneck = { rate = "5 Mbit/s", delay = "10 ms" } }, flows = [{ congestion_control = "FILE" }] }
"""

CLASS = """
class Mine:
    def on_ack(self, window, ack):
        if ack.cwnd_limited:
            window.cwnd += ack.acked * K / window.cwnd

    def on_congestion_event(self, window, in_flight):
        return window.cwnd / 2
"""
HELPED = "import sys, os\nsys.path.insert(0, os.path.dirname(__file__))\nfrom helper import K\n" + CLASS
WEIGHED = (
    "import os\nwith open(os.path.join(os.path.dirname(__file__), 'weights.txt')) as file:\n    K = float(file.read())\n"
    + CLASS
)
LATE = CLASS.replace(
    "class Mine:",
    "import os\nclass Mine:\n    def __init__(self):\n        global K\n        K = float(open(os.path.join(os.path.dirname(__file__), 'weights.txt')).read())\n",
)
DECLARED = WEIGHED.replace("with open", "if 1: K = 1.0\nwith open").replace(
    "class Mine:", "class Mine:\n    reads = ('table.bin',)"
)

RUST = """
use ackclock_controller::*;
const K: u64 = include!("k.in");
"""


def sweep(folder: Path, name: str) -> int:
    (folder / "k.toml").write_text(SWEEP.replace("FILE", f"{folder}/{name}"))
    return main(["sweep", "run", str(folder / "k.toml"), "--own-code", "--out", str(folder / "st"), "--jobs", "1"])


def digest(folder: Path) -> str:
    return str(sweeps.read(folder / "st").runs["digest"][0])


@pytest.mark.promise("P37")
@pytest.mark.parametrize(
    ("text", "beside", "first", "second"),
    [
        (
            HELPED,
            "helper.py",
            "K = 1.00\n",
            "K = 0.01\n",
        ),  # same size, so that one file's bytecode could be used for the other
        (WEIGHED, "weights.txt", "1.00", "0.01"),
        (LATE, "weights.txt", "1.00", "0.01"),
    ],
)
def test_a_sweep_makes_runs_again_when_what_its_code_reads_has_changed(tmp_path, capsys, text, beside, first, second):
    (tmp_path / "c.py").write_text(text)
    (tmp_path / beside).write_text(first)
    assert sweep(tmp_path, "c.py:Mine") == 0
    before = digest(tmp_path)
    assert sweep(tmp_path, "c.py:Mine") == 0
    assert "1 of them found" in capsys.readouterr().out
    (tmp_path / beside).write_text(second)
    assert sweep(tmp_path, "c.py:Mine") == 0
    assert "found" not in capsys.readouterr().out
    assert digest(tmp_path) != before
    (tmp_path / beside).write_text(first)
    assert sweep(tmp_path, "c.py:Mine") == 0
    assert "1 of them found" in capsys.readouterr().out
    assert digest(tmp_path) == before


def test_weights_of_the_example_are_in_its_identity(tmp_path):
    shutil.copytree(AGENT, tmp_path / "agent")
    file = tmp_path / "agent/controller.py"
    before = own.described(f"{file}:Learned", {}).planned()
    weights = tmp_path / "agent/weights.json"
    text = weights.read_text()
    weights.write_text(text.replace("1", "2", 1))
    after = own.described(f"{file}:Learned", {}).planned()
    assert before.whole
    assert after.whole
    assert (before.digest, before.whole) != (after.digest, after.whole)
    with pytest.raises(UnavailableError, match="found other data or modules than when the runs were planned"):
        before.load()
    weights.write_text(text)
    assert own.described(f"{file}:Learned", {}).planned() == before


def test_code_that_reads_nothing_else_keeps_the_identity_that_it_had(tmp_path):
    (tmp_path / "c.py").write_text("import json, numpy\nK = 1.0\n" + CLASS)
    assert own.described(f"{tmp_path}/c.py:Mine", {}).planned().whole == ""


def test_declared_files_are_in_the_identity_and_have_to_be_there(tmp_path, capsys):
    (tmp_path / "c.py").write_text(DECLARED)
    (tmp_path / "weights.txt").write_text("1")
    assert sweep(tmp_path, "c.py:Mine") == 2
    assert "reads: found no file" in capsys.readouterr().err
    wholes = set()
    for content in (b"1", b"2"):
        (tmp_path / "table.bin").write_bytes(content)
        wholes.add(own.described(f"{tmp_path}/c.py:Mine", {}).planned().whole)
    assert len(wholes) == 2


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler of C")
def test_what_c_includes_by_a_name_that_is_computed_is_in_the_identity(tmp_path):
    (tmp_path / "m.c").write_text(
        '#define WHERE "k.in"\nstatic const int k =\n#include WHERE\n;\n/* ackclock-reads: t.bin */\n'
    )
    (tmp_path / "t.bin").write_text("1")
    wholes = []
    for beside, content in (("k.in", "5"), ("k.in", "50"), ("t.bin", "2")):
        (tmp_path / "k.in").exists() or (tmp_path / "k.in").write_text("5")
        (tmp_path / beside).write_text(content)
        wholes.append(own.described(f"{tmp_path}/m.c", {}).planned().whole)
    assert "" not in wholes
    assert len(set(wholes)) == 3


@pytest.mark.skipif(shutil.which("rustc") is None, reason="no compiler of Rust")
def test_what_rust_includes_is_in_the_identity(tmp_path, monkeypatch):
    (tmp_path / "m.rs").write_text(RUST + 'const V: Option<&str> = option_env!("ACKCLOCK_TEST_VALUE");\n')
    wholes = []
    for content in ("5", "50"):
        (tmp_path / "k.in").write_text(content)
        wholes.append(own.described(f"{tmp_path}/m.rs", {}).planned().whole)
    assert "" not in wholes
    assert len(set(wholes)) == 2


@pytest.mark.promise("P38")
def test_what_was_found_is_compared_with_what_the_code_does(tmp_path, capsys):
    """During the run, the code reads a file that is not part of the identity."""
    late = CLASS.replace(" * K ", " * float(open(__file__.replace('c.py', 'k.txt')).read()) ")
    (tmp_path / "c.py").write_text(late)
    (tmp_path / "k.txt").write_text("1.0")
    assert sweep(tmp_path, "c.py:Mine") == 0
    assert sweep(tmp_path, "c.py:Mine") == 0
    capsys.readouterr()
    (tmp_path / "k.txt").write_text("0.01")
    assert sweep(tmp_path, "c.py:Mine") == 2
    said = capsys.readouterr().err
    assert "what was found differs from what the code does now (seed 1: found digest " in said
    assert len([line for line in said.splitlines() if line.startswith("ackclock: ")]) == 1


@pytest.mark.promise("P37")
@pytest.mark.deep
def test_an_evaluation_does_not_show_the_verdict_of_other_weights(tmp_path, capsys):
    (tmp_path / "c.py").write_text(WEIGHED)
    (tmp_path / "weights.txt").write_text("1.0")
    said = []
    for weights in ("1.0", "0.01", "1.0"):
        (tmp_path / "weights.txt").write_text(weights)
        arguments = [
            "evaluate",
            f"{tmp_path}/c.py:Mine",
            "--quick",
            "--rows",
            "5",
            "--out",
            str(tmp_path / "ev"),
            "--jobs",
            "2",
            "--json",
        ]
        main(arguments)
        said.append(capsys.readouterr().out)
    assert said[0] != said[1]
