"""A run that ends the process which makes it fails alone, after three times; the others are made."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ackclock import sweep as sweeps
from ackclock.cli import main
from ackclock.sweep import apart

SWEEP = """
name = "k"
seeds = 8
metrics = ["goodput_bps"]
scenario = { duration = "1 s", network = { bottleneck = { rate = "2 Mbit/s", delay = "5 ms" } }, flows = [{}] }
"""

DEADLY = """
import os, pickle, signal, sys
from ackclock.sweep.task import compute
task = pickle.load(sys.stdin.buffer)
if any(seed == 5 for _, seed in task.runs):
    os.kill(os.getpid(), signal.SIGABRT)
pickle.dump(compute(task), sys.stdout.buffer)
"""


def test_what_died_twice_is_made_apart_and_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seven runs are done, the eighth has failed with the signal; `--retry` makes it again."""
    monkeypatch.setattr(apart, "COMMAND", (sys.executable, "-c", DEADLY))
    (tmp_path / "k.toml").write_text(SWEEP)
    store = tmp_path / "k.sweep"
    assert main(["sweep", "run", str(tmp_path / "k.toml"), "--out", str(store), "--jobs", "1"]) == 0
    with sqlite3.connect(store / "state.sqlite") as db:  # as two killed processes leave it
        db.execute("UPDATE runs SET state = 'running', attempts = 2, part = NULL")
        db.execute("DELETE FROM parts")
    db.close()
    capsys.readouterr()
    assert main(["sweep", "resume", str(store), "--jobs", "2"]) == 1
    assert "7 of 8 runs done, 1 failed" in capsys.readouterr().out
    assert main(["sweep", "status", str(store)]) == 0
    assert "seed 5: the process that made it died three times (SIGABRT at last)" in capsys.readouterr().out
    monkeypatch.undo()
    assert main(["sweep", "resume", str(store), "--retry", "--jobs", "1"]) == 0
    assert sorted(sweeps.read(store).runs["seed"]) == list(range(1, 9))


def test_killed_again_and_again_costs_no_run(tmp_path: Path) -> None:
    """A process killed from outside is no run's fault: what is made apart then is done."""
    (tmp_path / "k.toml").write_text(SWEEP.replace("1 s", "60 s").replace("2 Mbit/s", "100 Mbit/s"))
    command = [sys.executable, "-m", "ackclock", "sweep", "run", "k.toml", "--jobs", "1"]
    for _ in range(3):
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            until = time.monotonic() + 60
            while not (tmp_path / "k.sweep/state.sqlite").exists() and time.monotonic() < until:
                time.sleep(0.05)
            time.sleep(0.5)
            process.send_signal(signal.SIGKILL)
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0
    assert sweeps.read(tmp_path / "k.sweep").runs.height == 8
