"""Tests for `--slurm` and `--pbs` with this machine as the batch system; `batch/` contains stand-ins for its commands."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import polars as pl
import pytest

from ackclock import Scenario
from ackclock.errors import UnavailableError
from ackclock.sweep import Axis, Sweep, Threads, executors
from ackclock.sweep import run as run_sweep

if importlib.util.find_spec("dask_jobqueue") is None:  # not imported here, because it handles SIGINT itself
    pytest.skip("dask-jobqueue is not installed", allow_module_level=True)

ACKCLOCK = [sys.executable, "-m", "ackclock"]
COMMANDS = Path(__file__).parent / "batch"
LOCAL = ("--worker", "interface=lo", "--worker", "memory=1GB")


@pytest.fixture
def batch(tmp_path, monkeypatch) -> Path:
    """Return the job folder: NUMBER.script, .pid, .out, and .cancelled for cancelled jobs."""
    commands, jobs = tmp_path / "bin", tmp_path / "jobs"
    commands.mkdir()
    jobs.mkdir()
    for name, stands in (("sbatch", "submit"), ("qsub", "submit"), ("scancel", "cancel"), ("qdel", "cancel")):
        (commands / name).symlink_to(COMMANDS / stands)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    monkeypatch.setenv("JOBS", str(jobs))
    monkeypatch.setenv("REFUSED", "")
    return jobs


def grid(folder: Path, seeds: int, duration: str) -> tuple[Path, Sweep]:
    """Return two cells, as a file and as an object."""
    scenario = Scenario.from_dict(
        {
            "duration": duration,
            "network": {
                "bottleneck": {"rate": "10 Mbit/s", "delay": "10 ms", "loss": {"kind": "bernoulli", "p": "1 %"}}
            },
            "flows": [{}],
        }
    )
    axis = Axis(key="flows.0.congestion_control", values=("reno", "cubic"))
    (folder / "base.toml").write_text(scenario.to_toml(), encoding="utf-8")
    path = folder / "grid.toml"
    path.write_text(
        f'scenario = "base.toml"\nseeds = {seeds}\n[axes]\n"{axis.key}" = ["reno", "cubic"]\n', encoding="utf-8"
    )
    return path, Sweep(name="grid", scenario=scenario, axes=(axis,), seeds=tuple(range(1, seeds + 1)))


def check(folder: Path, sweep: Sweep, plain: Path) -> None:
    """Check that the table matches that of a single machine."""
    table = pl.read_parquet(folder / "sweeps" / "grid" / "table.parquet")
    assert table.equals(run_sweep(sweep, plain, Threads(2))[0].runs)


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "options", "lines"),
    [
        (
            "slurm",
            ("queue=short", "account=me", "cores=2", "processes=2", "walltime=02:00:00"),
            ("#SBATCH -p short", "#SBATCH -A me", "#SBATCH --cpus-per-task=2", "#SBATCH -t 02:00:00"),
        ),
        ("pbs", ("queue=long", "cores=1", "walltime=01:00:00"), ("#PBS -q long", "#PBS -l walltime=01:00:00")),
    ],
)
def test_jobs_of_a_batch_system(batch, tmp_path, kind, options, lines):
    path, sweep = grid(tmp_path, 60, "2 s")
    store = tmp_path / "store"
    described = [part for option in options for part in ("--worker", option)]
    command = [*ACKCLOCK, "sweep", "run", str(path), "--out", str(store), f"--{kind}", "2", *LOCAL, *described]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "120 of 120 runs done"
    check(store, sweep, tmp_path / "plain")
    scripts = sorted(batch.glob("*.script"))
    assert len(scripts) == 2
    for script in scripts:
        assert set(lines) <= set(script.read_text(encoding="utf-8").splitlines())
        assert script.with_suffix(".cancelled").exists(), "a job is left behind"


@pytest.mark.long
def test_a_job_that_ends_is_followed_by_another(batch, tmp_path):
    path, sweep = grid(tmp_path, 300, "20 s")
    store = tmp_path / "store"
    command = [*ACKCLOCK, "sweep", "run", str(path), "--out", str(store), "--slurm", "1", *LOCAL]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not list(store.glob("data/1/runs/*.parquet")):
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        (first,) = batch.glob("*.pid")
        os.killpg(int(first.read_text(encoding="utf-8")), signal.SIGKILL)
        _, said = process.communicate(timeout=180)
    assert process.returncode == 0, said
    assert len(list(batch.glob("*.script"))) > 1, "the only job was killed after the last run"
    check(store, sweep, tmp_path / "plain")


def test_what_a_batch_system_refuses(batch, tmp_path, monkeypatch):
    path, _ = grid(tmp_path, 2, "1 s")
    store = tmp_path / "store"

    def said(*options: str) -> str:
        command = [*ACKCLOCK, "sweep", "run", str(path), "--out", str(store), "--slurm", "2", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 3, done.stderr
        return done.stderr.splitlines()[-1]

    assert "quue" in said("--worker", "quue=short")
    refused = "sbatch: error: invalid partition specified: quick"
    monkeypatch.setenv("REFUSED", refused)
    assert said(*LOCAL) == f"ackclock: --slurm: {refused}"
    assert not list(batch.iterdir())
    assert not store.exists()


@pytest.mark.parametrize("kind", ["slurm", "pbs"])
def test_a_machine_without_a_batch_system_is_one_line(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal precedes any write; otherwise dask-jobqueue would put certificates into the current folder, and warn about it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UnavailableError, match=f"--{kind}: found no program (sbatch|qsub); allowed"):
            executors.batch_system(kind, 2, {})
    assert list(tmp_path.iterdir()) == []
