"""Tests for commands that make many runs with a stack in a library: on threads, in other processes, on cluster workers."""

from __future__ import annotations

import dataclasses
import json
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from test_stack import library, loaded, scenario

from ackclock import run
from ackclock.errors import UnavailableError
from ackclock.sweep import engine_identity
from ackclock.sweep.apart import compute_apart
from ackclock.sweep.task import Task, compute, needed_stacks

SWEEP = """
name = "s"
scenario = "path.toml"
seeds = 2
metrics = ["goodput_bps"]
[axes]
"flows.0.congestion_control" = ["stack:toy:fixed", "cubic"]
"""
SCENARIO = """
duration = "2 s"
network.bottleneck = { rate = "10 Mbit/s", delay = "10 ms", queue = { kind = "drop-tail", limit = "100 packets" } }
network.reverse.bottleneck = { delay = "10 ms" }
[[flows]]
[[flows]]
congestion_control = "cubic"
"""


@pytest.fixture
def ackclock(command, folder):
    """Run the command in the folder and check its exit code."""

    def ended(*words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = command(folder, *map(str, words))
        assert done.returncode == code, done.stderr
        return done

    return ended


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "path.toml").write_text(SCENARIO)
    (tmp_path / "s.toml").write_text(SWEEP)
    library(tmp_path)
    return tmp_path


def test_a_sweep_has_a_stack_as_a_point_of_an_axis(folder, ackclock):
    refused = ackclock("sweep", "run", "s.toml", code=2)
    assert refused.stderr == (
        'ackclock: congestion_control: found "stack:toy:fixed"; allowed: stacks that are given to the command with --stack FILE\n'
    )
    with_it = ("--stack", "libnothing.so")
    made = ackclock("sweep", "run", "s.toml", *with_it)
    assert made.stdout.startswith("4 of 4 runs done\n")
    again = ackclock("sweep", "resume", "s.toml", *with_it)
    assert "4 of 4 runs done, 4 of them found" in again.stdout
    table = ackclock("sweep", "export", "s.toml", "--csv", "t.csv")
    assert table.stdout.startswith("written")
    rows = (folder / "t.csv").read_text().splitlines()
    assert sum("stack:toy:fixed" in row for row in rows) == 2
    one = ackclock("sweep", "rerun", "s.toml", "--cell", "0", "--seed", "2", *with_it)
    digest = one.stdout.split("digest ")[1].strip()
    assert digest in (folder / "t.csv").read_text()


@pytest.fixture(scope="module")
def toy(tmp_path_factory) -> Path:
    return loaded(tmp_path_factory)


def task(toy: Path) -> Task:
    texts = (scenario({"congestion_control": "stack:toy:fixed"}, seconds=1).to_engine_json(),)
    mine = tuple(stack for stack in needed_stacks(texts) if stack.file == str(toy))
    return Task(
        texts=texts, runs=((0, 3),), metrics=("goodput_bps",), tables=(), budget_s=9.0, engine=engine_identity(mine),
        libraries=mine,
    )  # fmt: skip


def test_another_process_loads_what_the_command_has_loaded(toy):
    """A worker loads the library, and so does the process that repeats runs that ended a process."""
    done = compute_apart(task(toy), None)
    assert done.digests == [str(run(scenario({"congestion_control": "stack:toy:fixed"}, seconds=1), seed=3).digest)]


@pytest.mark.promise("P25")
def test_a_worker_without_the_file_or_with_another_one_says_so(toy, tmp_path):
    other = tmp_path / "libtoy.so"
    here = task(toy)
    (mine,) = here.libraries
    for file, said in ((tmp_path / "none.so", "has no stack toy: "), (other, "has another library of the stack toy; ")):
        shutil.copy(library(tmp_path, "SLOW"), other)
        there = dataclasses.replace(mine, file=str(file), digest="0" * 64)
        with pytest.raises(UnavailableError) as caught:
            compute(dataclasses.replace(here, libraries=(there,)))
        assert str(caught.value).startswith(f"this worker {said}")
        assert str(caught.value).endswith(
            f"needed: {file} as the command loaded it (--stack), at that place on every machine"
        )


@pytest.mark.deep
def test_attack_takes_a_stack(folder, ackclock):
    words = ("attack", "stack:toy:fixed", "--stack", "libnothing.so", "--evaluations", "30", "--out", "a", "--json")
    found = json.loads(ackclock(*words).stdout)
    assert found["target"]["name"] == "stack:toy:fixed" if isinstance(found.get("target"), dict) else found


@contextmanager
def cluster(folder: Path):
    """Start a scheduler and a worker, as separate processes."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    words = (
        ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"],
        ["distributed.cli.dask_worker", address, "--nworkers", "1", "--nthreads", "2", "--no-dashboard", "--no-nanny"],
    )
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    processes = [subprocess.Popen([sys.executable, "-m", *line], **quiet) for line in words]
    try:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            time.sleep(0.1)
        yield address
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


@pytest.mark.deep
def test_workers_of_a_cluster_load_the_library(folder, ackclock):
    pytest.importorskip("distributed")
    (folder / "w").mkdir()
    words = ("sweep", "run", "s.toml", "--stack", "libnothing.so")
    with cluster(folder / "w") as address:
        made = ackclock(*words, "--out", "far", "--scheduler", address)
    assert made.stdout.startswith("4 of 4 runs done\n")
    ackclock(*words, "--out", "near")
    tables = []
    for out in ("far", "near"):
        ackclock("sweep", "export", "s.toml", "--out", out, "--csv", f"{out}.csv")
        tables.append((folder / f"{out}.csv").read_text())
    assert tables[0] == tables[1]
