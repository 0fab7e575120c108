"""Runs a study or an evaluation in child processes, sends each SIGKILL at a random time, and checks
the files it leaves behind.

    python kill_command.py WHAT FOLDER KILLS SEED

WHAT is `study` or `evaluate`. Children are forked from a process that has imported everything and started no thread. A folder is used until
a child finishes in it; then another one is started. Every other instant is drawn from the period in which runs are
stored, a small fraction of an evaluation, which spends most of its time reading and drawing. Prints the observations
as JSON.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import signal
import sqlite3
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import scipy.special

import ackclock.cli._evaluate
import ackclock.cli._study
import ackclock.report
from ackclock.cli import main as command
from ackclock.sweep import Threads, campaign
from ackclock.sweep.database import quick_check

assert np.__version__, scipy.special  # imported here, so that no child has to import it
assert ackclock.report, ackclock.cli

STUDY = """
title = "A victim"
summary = "Eighty runs."
[[publications]]
authors = "A. Author"
title = "A title"
where = "here"
[[claims]]
id = "X1"
place = "p. 1"
statement = "It carries something."
direction = { measure = "goodput", more_than = 0, margin = 0.5 }
"""

PROGRAM = """
import polars as pl
from ackclock import Scenario
from ackclock.judge.intervals import mean_interval
from ackclock.study import Data, Experiment, Quantity

def base(controller):
    return Scenario.from_dict({
        "duration": "1 s",
        "network": {"bottleneck": {"rate": "50 Mbit/s", "delay": "5 ms", "loss": {"kind": "bernoulli", "p": "0.1 %"}}},
        "flows": [{"congestion_control": controller}],
    })

def run(plan):
    batches = [plan.batch(base(name), range(1, 21), tables=("flows",)) for name in ("reno", "cubic", "bbr", "vegas")]
    return Data(tables={"one.flows": pl.concat([batch.flows for batch in batches])}, digests=["d"], runs=80)

EXPERIMENTS = (Experiment(name="one", title="one", run=run),)

def goodput(tables):
    return Quantity(label="goodput", estimate=mean_interval(tables["one.flows"]["goodput_bps"].to_numpy()), key="goodput")

MEASURES = {"goodput": goodput}
"""


WALL = re.compile(rb"<dt>wall time</dt>.*")
"""Parts of a study's files that differ from run to run."""


def arguments(what: str, place: Path, folder: Path) -> list[str]:
    if what == "evaluate":
        return ["evaluate", "reno", "--quick", "--rows", "1,3", "--jobs", "1", "--out", str(folder)]
    study = place / "victim"
    study.mkdir(exist_ok=True)
    (study / "study.toml").write_text(STUDY, encoding="utf-8")
    (study / "study.py").write_text(PROGRAM, encoding="utf-8")
    return ["study", "run", f"{study}/", "--jobs", "1", "--out", str(folder), "--store", str(folder / "store")]


def begin(argv: list[str]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            # runs are stored in small groups, so that most kills fall between the first and the last group
            campaign.KEEP_EVERY_S, campaign.KEEP_REST, campaign.KEEP_CPU_S = 0.01, 1, 0.0
            Threads.target_s = 0.01
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os._exit(command(argv))
        except BaseException as error:
            sys.stderr.write(f"{error!r}\n")
            os._exit(99)
    return pid


def cpu_s(pid: int) -> float:
    """Return CPU time: wall time means little on a busy machine."""
    words = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def finish(pid: int, folder: Path | None = None) -> tuple[float, float, float]:
    """Return an undisturbed child's CPU time and, given a folder, the times at which the first and the last runs
    were stored.
    """
    first, last, found = 0.0, 0.0, 0
    while not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        if folder is not None and (now := len(done(folder))) > found:
            found, last = now, cpu_s(pid)
            first = first or last
        time.sleep(0.005)
    taken = cpu_s(pid)
    _, status = os.waitpid(pid, 0)
    assert os.WIFEXITED(status), status
    assert os.WEXITSTATUS(status) == 0, status
    return taken, first, last


def files(folder: Path) -> dict[str, bytes]:
    """Return all files written by the command, by name, without the store's part numbers and times, which vary."""
    found = sorted(
        path for path in folder.rglob("*") if path.is_file() and "store" not in path.relative_to(folder).parts
    )
    return {str(path.relative_to(folder)): WALL.sub(b"", path.read_bytes()) for path in found}


def done(folder: Path) -> set[str]:
    store = folder / "store"
    if not (store / "state.sqlite").exists():
        return set()
    with sqlite3.connect(store / "state.sqlite") as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone():
            return set()
        return {key for (key,) in db.execute("SELECT lower(hex(key)) FROM runs WHERE state = 'done'")}


def check_whole(folder: Path, expected: dict[str, bytes], keys: set[str]) -> None:
    """Check that the result matches an undisturbed command's: the same files, each run once, nothing left over."""
    found = files(folder)
    assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
    assert not [name for name in found if found[name] != expected[name]]
    assert done(folder) == keys, "a run was lost, or made under another name"
    assert quick_check(folder / "store")
    rows = pl.read_parquet(folder / "store" / "data" / "1" / "runs" / "*.parquet")["key"].to_list()
    assert len(rows) == len(set(rows)), "a run is there twice"
    assert not [*folder.rglob("*.tmp"), *folder.rglob(".ackclock-*")]


def main() -> None:
    what, place, kills, seed = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    draw = random.Random(seed)
    whole = place / "whole"
    taken_s, first_s, last_s = finish(begin(arguments(what, place, whole)), whole)
    expected, keys = files(whole), done(whole)
    assert keys
    killed = during = 0
    used: list[Path] = []
    spans = itertools.cycle([(0.0, taken_s), (first_s, last_s)])
    while killed < kills:
        folder = place / f"part-{len(used)}"
        used.append(folder)
        ended = False
        while not ended and killed < kills:
            before = done(folder)
            pid, instant = begin(arguments(what, place, folder)), draw.uniform(*next(spans))
            while cpu_s(pid) < instant and not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                time.sleep(0.002)
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            ended = not os.WIFSIGNALED(status)
            assert not ended or os.WEXITSTATUS(status) == 0, status
            after = done(folder)
            assert before <= after <= keys, "a run was lost, or made that nobody asked for"
            killed += not ended
            during += not ended and 0 < len(after) < len(keys)
            for name, data in files(folder).items():  # no partial file
                hidden = any(part.startswith(".ackclock-") for part in Path(name).parts)
                assert hidden or data == expected.get(name), f"{name} is not what it is in the end"
    for folder in used:
        finish(begin(arguments(what, place, folder)))
    # Threads are started only here, so that no child inherits them.
    for folder in used:
        check_whole(folder, expected, keys)
    print(json.dumps({"killed": killed, "during": during, "folders": len(used), "runs": len(keys)}))


if __name__ == "__main__":
    main()
