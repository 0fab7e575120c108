"""Tests that Ctrl-C and SIGTERM end long commands within a second or two and keep completed work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import cpu_s

SOON_S = 5.0
"""Maximum time until the command ends, s: one second on an idle machine, more on a busy one."""

LONG = 'duration = "1000 h"\n[network]\nbottleneck = { rate = "10 Mbit/s", delay = "20 ms" }\n[[flows]]\n'

SWEEP = """
name = "long"
seeds = 2
metrics = ["goodput_bps"]
scenario = { duration = "1000 h", network = { bottleneck = { rate = "10 Mbit/s", delay = "20 ms" } }, flows = [{}] }
"""

API = """
import sys, threading, os, signal
import ackclock
from ackclock import controllers

class Loop(controllers.Controller):
    def on_ack(self, window, ack):
        print("in", flush=True)
        while True:
            pass
    def on_congestion_event(self, window, in_flight):
        return max(window.cwnd / 2, 2)

call, own = sys.argv[1], sys.argv[2] == "loop"
given = {"controllers": {"loop": Loop}} if own else {}
scenario = ackclock.Scenario.from_dict({
    "duration": "1000 h",
    "network": {"bottleneck": {"rate": "10 Mbit/s", "delay": "20 ms"}},
    "flows": [{"congestion_control": "custom:loop" if own else "cubic"}],
})
try:
    if not own:
        print("in", flush=True)
    if call == "run":
        ackclock.run(scenario, **given)
    elif call == "batch":
        ackclock.run_batch(scenario, [1, 2, 3], jobs=2, **given)
    else:
        controllers.check(Loop)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def _ended(
    command: list[str], which: signal.Signals, folder: Path, *, ready: str, then_cpu_s: float = 0.0
) -> tuple[int, str]:
    """Start a command, wait for a word on either stream (or a file of that name) and for some further CPU time, and
    send the signal. Returns the exit code and all output.
    """
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    said = ""
    try:
        while ready.startswith(".") and not any(name.startswith(ready) for name in os.listdir(folder)):
            time.sleep(0.01)
        while not ready.startswith(".") and ready not in said:
            line = process.stdout.readline()
            assert line, said
            said += line
        before = cpu_s(process.pid)
        while process.poll() is None and cpu_s(process.pid) - before < then_cpu_s:
            time.sleep(0.01)
        process.send_signal(which)
        started = time.monotonic()
        rest, _ = process.communicate(timeout=60)
        assert time.monotonic() - started < SOON_S
    finally:
        process.kill()
    return process.returncode, said + rest


@pytest.mark.promise("P16")
@pytest.mark.parametrize("call", ["run plain", "run loop", "batch plain", "batch loop", "check loop"])
def test_calls_from_python_end_hooks_that_never_do_included(call: str, tmp_path: Path) -> None:
    """One Ctrl-C raises KeyboardInterrupt in the caller."""
    command = [sys.executable, "-c", API, *call.split()]
    code, said = _ended(command, signal.SIGINT, tmp_path, ready="in", then_cpu_s=0.2)
    assert (code, said.splitlines()[-1]) == (0, "interrupted")


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_commands_end_and_leave_nothing_half(which: signal.Signals, tmp_path: Path) -> None:
    """A sweep can be resumed; a capture is complete or absent."""
    (tmp_path / "long.toml").write_text(LONG)
    (tmp_path / "sweep.toml").write_text(SWEEP)
    ackclock = [sys.executable, "-m", "ackclock"]
    code, said = _ended([*ackclock, "sweep", "run", "sweep.toml"], which, tmp_path, ready="runs")
    assert code == 130
    assert "stopped; go on with" in said
    code, said = _ended([*ackclock, "compare", "long.toml", "long.toml"], which, tmp_path, ready="runs")
    assert code == 130
    assert "Traceback" not in said
    fast = ["--set", "duration=10 s", "--set", "network.bottleneck.rate=1 Gbit/s"]
    code, said = _ended(
        [*ackclock, "run", "long.toml", *fast, "--pcap", "x.pcapng"], which, tmp_path, ready=".ackclock-"
    )
    assert (code == 130, said) == (True, "")
    assert sorted(os.listdir(tmp_path)) in (["long.toml", "sweep.sweep", "sweep.toml"],)
