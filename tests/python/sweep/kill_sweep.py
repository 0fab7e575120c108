"""Runs a sweep in child processes, kills each with SIGKILL at a random moment, and checks the remaining files.

    python kill_sweep.py FOLDER KILLS SEED SEEDS

Children are forked from a process that has imported everything and started no thread, so that a kill costs a quarter of
a second. If a sweep finishes before enough children were killed, another is started in a new folder. Prints the
observations as JSON. The sweep has six cells of SEEDS runs each.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl

from ackclock import Scenario
from ackclock.sweep import Axis, Sweep, Threads, campaign, engine_identity
from ackclock.sweep import run as run_sweep
from ackclock.sweep.database import quick_check
from ackclock.sweep.task import Done, Task, compute, run_key

SWEEP = Sweep(
    name="victim",
    scenario=Scenario.from_dict(
        {
            "duration": "500 ms",
            "network": {
                "bottleneck": {"rate": "50 Mbit/s", "delay": "5 ms", "loss": {"kind": "bernoulli", "p": "0.1 %"}}
            },
            "flows": [{"congestion_control": "reno"}],
        }
    ),
    axes=(
        Axis(key="flows.0.congestion_control", values=("reno", "cubic")),
        Axis(key="network.bottleneck.delay", values=("2 ms", "5 ms", "10 ms")),
    ),
    seeds=tuple(range(1, 1 + int(sys.argv[4]))),
    tables=("flows",),
)
KEYS = {run_key(cell.hash, seed, engine_identity()).hex() for cell in SWEEP.cells for seed in cell.seeds}
NAMES = {
    (cell.text, seed): run_key(cell.hash, seed, engine_identity()).hex() for cell in SWEEP.cells for seed in cell.seeds
}
assert np.__version__  # imported here, so that no child has to import it
LOOK = os.WEXITED | os.WNOHANG | os.WNOWAIT
"""Options that test whether a child has ended without collecting it."""


def child(folder: Path, log: Path) -> None:
    """Run the sweep until it is killed. Records which runs are handed out and which are made."""
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(word: str, task: Task, count: int) -> None:
        lines = (f"{word} {NAMES[task.texts[at], seed]}\n" for at, seed in task.runs[:count])
        os.write(file, "".join(lines).encode())

    def work(task: Task) -> Done:
        note("handed", task, len(task.runs))
        done = compute(task)
        note("made", task, len(done.digests))
        return done

    campaign.KEEP_EVERY_S, campaign.KEEP_REST, campaign.KEEP_CPU_S = 0.01, 1, 0.0
    executor = Threads(2, work=work)
    executor.target_s = 0.01
    run_sweep(SWEEP, folder, executor)


def done_keys(folder: Path) -> set[str]:
    """Return the runs listed as done in the database, without touching a sweep that has not started."""
    if not (folder / "state.sqlite").exists():
        return set()
    with sqlite3.connect(folder / "state.sqlite") as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone():
            return set()
        return {key for (key,) in db.execute("SELECT lower(hex(key)) FROM runs WHERE state = 'done'")}


def made_so_far(log: Path) -> int:
    return log.read_text().count("made") if log.exists() else 0


def session(folder: Path, log: Path, chance: random.Random) -> bool:
    """Run one child process; return whether it had to be killed."""
    before = done_keys(folder)
    log.unlink(missing_ok=True)
    # Most kills happen while runs are being made, timed in runs because a busy machine is slow; some happen during
    # the preparation.
    late, limit = chance.random() < 0.7, 0.25 * chance.random()
    enough = chance.randint(1, 1 + (len(KEYS) - len(before)) // 2) if late else 0
    pid = os.fork()
    if pid == 0:
        try:
            child(folder, log)
            os._exit(0)
        except BaseException as error:
            sys.stderr.write(f"{error!r}\n")
            os._exit(1)
    while made_so_far(log) < enough and not os.waitid(os.P_PID, pid, LOOK):
        time.sleep(0.001)
    time.sleep(limit / 5 if late else limit)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    killed = os.WIFSIGNALED(status)
    assert killed or os.WEXITSTATUS(status) == 0, "a session failed"
    notes = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    handed = {key for word, key in notes if word == "handed"}
    made = [key for word, key in notes if word == "made"]
    assert len(made) == len(set(made)), "a run was made twice in one session"
    assert not before & handed, "a run that was kept was handed out again"
    after = done_keys(folder)
    assert before <= after, "a run was lost"
    assert after <= before | set(made), "a run is done that nobody made"
    return killed


def main() -> None:
    place, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    chance = random.Random(seed)
    killed = sweeps = 0
    found: list[tuple[Path, bool]] = []
    during = 0  # kills that hit a sweep with some runs done and some not
    # More kills if all of these came before a run was made or after the last one: on a busy machine they are late.
    while killed < kills or not found or (not during and killed < 4 * kills):
        folder, log = place / f"victim-{sweeps}", place / f"log-{sweeps}"
        sweeps += 1
        finished = False
        while not finished and (killed < kills or (not during and killed < 4 * kills)):
            if session(folder, log, chance):
                killed += 1
                during += 0 < len(done_keys(folder)) < len(KEYS)
            else:
                finished = True
        found.append((folder, finished))
    # Threads are started only here, so that no child inherits them.
    plain, _ = run_sweep(SWEEP, place / "plain", Threads(1))
    for folder, _ in found:
        results, status = run_sweep(SWEEP, folder, Threads(2))
        assert status.done == status.total == len(KEYS)
        assert results.runs.equals(plain.runs), "another table than that of an undisturbed sweep"
        for table in ("runs", "flows"):
            rows = pl.read_parquet(folder / "data" / "1" / table / "*.parquet")
            assert sorted(rows["key"].to_list()) == sorted(KEYS), "a run is there twice, or not at all"
        assert quick_check(folder)
        assert not list(folder.rglob("*.tmp"))
        assert not list(folder.rglob(".ackclock-*"))
    print(json.dumps({"killed": killed, "during": during, "sweeps": len(found), "runs": len(KEYS)}))


if __name__ == "__main__":
    main()
