"""Tests that a user's controller cannot silently end or disable a command: any exception results in one line and exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

import ackclock
from ackclock.cli import main

SOUND = """
import sys, functools

class Own:
    def on_start(self, window, now, srtt, smss): pass
    def on_ack(self, window, ack): window.cwnd += 1 / window.cwnd
    def on_congestion_event(self, window, in_flight): return max(window.cwnd / 2, 2)
    def on_rto(self, window, now): window.cwnd = 1

class Mute(Exception):
    def __str__(self): raise ValueError("no text")

class Leaving(Exception):
    def __str__(self): sys.exit(0)
"""

HOOKS = {
    "sys.exit in a hook": ("def on_ack(self, window, ack): sys.exit(0)", "SystemExit: 0"),
    "sys.exit in the constructor": ("def __init__(self): sys.exit(0)", "SystemExit: 0"),
    "GeneratorExit": ("def on_ack(self, window, ack): raise GeneratorExit", "GeneratorExit"),
    "its own BaseException": (
        "def on_ack(self, window, ack): raise type('Out', (BaseException,), {})('gone')",
        "Out: gone",
    ),
    "an exception without text": ("def on_ack(self, window, ack): raise Mute", "Mute, whose text cannot be printed"),
    "an exception that leaves": ("def on_ack(self, window, ack): raise Leaving", "Leaving, whose text cannot be"),
    "an escape sequence": ("def on_ack(self, window, ack): raise ValueError('\\x1b]0;x\\x07')", "\\x1b]0;x\\x07"),
    "async": ("async def on_ack(self, window, ack): window.cwnd += 1", "returned a coroutine, which is never run"),
    "a generator": ("def on_ack(self, window, ack): yield", "returned a generator, which is never run"),
    "an async generator": ("async def on_ack(self, window, ack): yield", "returned a generator, which is never run"),
    "async behind a wrapper": (
        "async def _later(self, window, ack): pass\n    def on_ack(self, *a): return self._later(*a)",
        "returned a coroutine, which is never run",
    ),
    "async, asked for a number": (
        "async def on_congestion_event(self, window, in_flight): return 2",
        "returned a coroutine, which is never run",
    ),
}

FILES = {
    "sys.exit at the end": ("sys.exit(5)", "cannot be imported (SystemExit: 5)"),
    "GeneratorExit": ("raise GeneratorExit", "cannot be imported (GeneratorExit"),
    "an exception without text": ("raise Mute", "cannot be imported (Mute, whose text cannot be printed"),
}

SCENARIO = """
duration = "5 s"
network = { bottleneck = { rate = "5 Mbit/s", delay = "10 ms", queue = { kind = "drop-tail", limit = "10 packets" } } }
[[flows]]
"""


def refused(capfd: pytest.CaptureFixture[str], said: str) -> None:
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 1, err
    assert said in err
    assert "\x1b" not in err
    assert "internal error" not in err


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.toml").write_text(SCENARIO)
    return tmp_path


@pytest.mark.promise("P16")
@pytest.mark.parametrize("name", HOOKS)
@pytest.mark.filterwarnings("error")
def test_a_hook(name: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    body, said = HOOKS[name]
    (folder / "own.py").write_text(f"{SOUND}\nclass Bad(Own):\n    {body}\n")
    assert main(["run", "x.toml", "--controller", "own.py:Bad"]) == 2
    refused(capfd, said)
    assert main(["evaluate", "own.py:Bad", "--quick", "--jobs", "1"]) == 2
    refused(capfd, said)
    assert not list(folder.glob("*.evaluate"))


@pytest.mark.parametrize("name", FILES)
def test_a_file(name: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    body, said = FILES[name]
    (folder / "own.py").write_text(f"{SOUND}\n{body}\n")
    for argv in (["run", "x.toml", "--controller", "own.py:Own"], ["evaluate", "own.py:Own", "--quick", "--jobs", "1"]):
        assert main(argv) == 2
        refused(capfd, said)


def test_a_sweep_counts_it_as_failed(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """An exception in one of the engine's threads is reported, and the other runs continue."""
    (folder / "own.py").write_text(f"{SOUND}\nclass Bad(Own):\n    {HOOKS['an exception that leaves'][0]}\n")
    (folder / "k.toml").write_text(
        'scenario = "x.toml"\nmetrics = ["goodput_bps"]\nseeds = 1\n'
        '[axes]\n"flows.0.congestion_control" = ["reno", "own.py:Bad"]\n'
    )
    assert main(["sweep", "run", "k.toml", "--own-code", "--jobs", "1"]) == 1
    assert "Traceback" not in capfd.readouterr().err
    assert main(["sweep", "status", "k.sweep"]) == 0
    assert "what it says cannot be printed" in capfd.readouterr().out


def test_a_utility(folder: Path) -> None:
    async def later(now: object, before: object) -> float:
        return 1.0

    scenario = ackclock.load("x.toml").set("flows.0.congestion_control", "pcc-vivace")
    scenario = scenario.set("flows.0.congestion_control_options", {"utility": "custom:mine"})
    with pytest.raises(ackclock.ControllerError, match="returned a coroutine, which is never run"):
        ackclock.run(scenario, utilities={"mine": later})
