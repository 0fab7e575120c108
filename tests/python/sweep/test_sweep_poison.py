"""Tests that a run that ends its process fails alone, after three attempts; the other runs are made."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ackclock import Scenario
from ackclock import sweep as sweeps
from ackclock.cli import main
from ackclock.sweep import apart

SWEEP = """
name = "k"
seeds = 8
metrics = ["goodput_bps"]
scenario = { duration = "1 s", network = { bottleneck = { rate = "2 Mbit/s", delay = "5 ms" } }, flows = [{}] }
"""

AXIS = """
[axes]
duration = ["1 s", "1000 h"]
"""

DEADLY = """
import os, signal, sys
from ackclock.sweep import apart, task
made = task.compute
def deadly(work):
    if any(seed == 2 for _, seed in work.runs):
        os.kill(os.getpid(), signal.SIGABRT)
    return made(work)
task.compute = deadly
apart.serve(*sys.argv[1:])
"""


def test_what_died_twice_is_made_apart_and_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two runs are done, the third has failed with the signal; `--retry` repeats it."""
    monkeypatch.setattr(apart._child, "python", lambda _, *given, **__: [sys.executable, "-c", DEADLY, *given])
    (tmp_path / "k.toml").write_text(SWEEP.replace("seeds = 8", "seeds = 3"))
    store = tmp_path / "k.sweep"
    assert main(["sweep", "run", str(tmp_path / "k.toml"), "--out", str(store), "--jobs", "1"]) == 0
    with sqlite3.connect(store / "state.sqlite") as db:  # as left by two killed processes
        db.execute("UPDATE runs SET state = 'running', attempts = 2, part = NULL")
        db.execute("DELETE FROM parts")
    db.close()
    capsys.readouterr()
    assert main(["sweep", "resume", str(store), "--jobs", "2"]) == 1
    assert "2 of 3 runs done, 1 failed" in capsys.readouterr().out
    assert main(["sweep", "status", str(store)]) == 0
    assert "seed 2: the process that made it died three times (SIGABRT at last)" in capsys.readouterr().out
    monkeypatch.undo()
    assert main(["sweep", "resume", str(store), "--retry", "--jobs", "1"]) == 0
    assert sorted(sweeps.read(store).runs["seed"]) == [1, 2, 3]


def test_killed_again_and_again_costs_no_run(tmp_path: Path) -> None:
    """A process killed from outside is not the run's fault: the run is then repeated in a separate process, and succeeds."""
    (tmp_path / "k.toml").write_text(SWEEP.replace("1 s", "15 s").replace("2 Mbit/s", "100 Mbit/s"))
    command = [sys.executable, "-m", "ackclock", "sweep", "run", "k.toml", "--jobs", "1"]
    for _ in range(3):
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            until = time.monotonic() + 60
            while not (tmp_path / "k.sweep/state.sqlite").exists() and time.monotonic() < until:
                time.sleep(0.05)
            time.sleep(0.25)
            process.send_signal(signal.SIGKILL)
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0
    assert sweeps.read(tmp_path / "k.sweep").runs.height == 8


def test_a_run_that_takes_too_long_has_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The other runs are made. The limit comes from the file or the command line, and is not part of the
    sweep's identity.
    """
    file, store = tmp_path / "k.toml", tmp_path / "k.sweep"
    file.write_text('time_limit = "300 ms"\n' + SWEEP.replace("seeds = 8", "seeds = 1") + AXIS)
    sweep = [str(file), "--out", str(store), "--jobs", "1"]
    assert main(["sweep", "run", *sweep]) == 1
    assert "1 of 2 runs done, 1 failed" in capsys.readouterr().out
    assert main(["sweep", "status", str(store)]) == 0
    said = capsys.readouterr().out
    assert "seed 1: time_limit: found a run that takes longer, at " in said
    assert said.rstrip().endswith("of its time; allowed: 0.3 s of CPU time")
    assert main(["sweep", "resume", str(store)]) == 1
    assert "1 of 2 runs done, 2 of them found, 1 failed" in capsys.readouterr().out
    before = (store / "sweeps/k/sweep.toml").read_text()
    assert main(["sweep", "resume", str(store), "--retry", "--time-limit", "0.5 s"]) == 1
    assert "1 of 2 runs done, 1 of them found, 1 failed" in capsys.readouterr().out
    after = (store / "sweeps/k/sweep.toml").read_text()
    assert after == before.replace("300 ms", "0.5 s")
    assert main(["sweep", "status", str(store)]) == 0
    assert "allowed: 0.5 s of CPU time" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "found"), [("x", '"x"'), ("", '""'), ("5", '"5"'), ("0 s", '"0 s"'), ("-1 s", '"-1 s"')]
)
def test_a_time_limit_is_a_duration(given: str, found: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Limit given in the file and on the command line."""
    file = tmp_path / "k.toml"
    file.write_text(SWEEP)
    assert main(["sweep", "run", str(file), f"--time-limit={given}"]) == 2
    assert f"--time-limit: found {found}" in capsys.readouterr().err
    file.write_text(f'time_limit = "{given}"\n' + SWEEP)
    assert main(["sweep", "run", str(file)]) == 2
    assert f"{file}: time_limit: found {found}" in capsys.readouterr().err


def test_added_seeds_stay_when_the_limit_changes(tmp_path: Path) -> None:
    """Apart from the limit, the sweep's own file is unchanged, so its members are the same."""
    sweep = sweeps.Sweep(
        name="k",
        scenario=Scenario.from_dict(
            {
                "duration": "1 s",
                "network": {
                    "bottleneck": {"rate": "2 Mbit/s", "delay": "5 ms", "loss": {"kind": "bernoulli", "p": "1 %"}}
                },
                "flows": [{}],
            }
        ),
        seeds=(1, 2),
    )
    width = sweeps.Precision(metric="goodput_bps", width=0.001, most_seeds=4)
    made, _ = sweeps.run(sweep, tmp_path / "s", sweeps.Threads(1), precision=width)
    assert made.runs.height == 4
    again, status = sweeps.run(replace(sweep, time_limit="1 h"), tmp_path / "s", sweeps.Threads(1))
    assert again.runs.equals(made.runs)
    assert status.found == 4
