from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ROOT

from ackclock import Scenario
from ackclock.sweep import Store, Sweep, Threads
from ackclock.sweep import run as run_sweep
from ackclock.sweep.database import quick_check

ACKCLOCK = [sys.executable, "-m", "ackclock"]

BASE = {
    "duration": "1 s",
    "network": {"bottleneck": {"rate": "5 Mbit/s", "delay": "10 ms", "loss": {"kind": "bernoulli", "p": "1 %"}}},
    "flows": [{"congestion_control": "reno"}],
}


def killed(folder: Path, kills: int, seeds: int) -> dict[str, int]:
    script = ROOT / "tests" / "python" / "sweep" / "kill_sweep.py"
    done = subprocess.run(
        [sys.executable, str(script), str(folder), str(kills), "1", str(seeds)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_killed_at_random_moments(tmp_path):
    found = killed(tmp_path, 1, 2)
    assert found["killed"] >= 1
    assert found["during"] > 0


KILLS = int(os.environ.get("KILLS", "100"))


@pytest.mark.long
def test_killed_at_a_hundred_random_moments(tmp_path):
    """The number of kills: KILLS, if set in the environment."""
    found = killed(tmp_path, KILLS, 50)
    assert found["killed"] == KILLS
    assert found["during"] > KILLS // 2


@pytest.mark.long
@pytest.mark.parametrize("what", ["study", "evaluate"])
def test_a_command_killed_at_random_moments(tmp_path, what):
    """Each file is complete or absent, no run is lost, and the final result is that of an undisturbed sweep."""
    script = ROOT / "tests" / "python" / "sweep" / "kill_command.py"
    done = subprocess.run(
        [sys.executable, str(script), what, str(tmp_path), str(KILLS), "1"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["killed"] == KILLS


def traced(folder: Path) -> tuple[Path, Sweep]:
    """Return a sweep with large tables: every ACK is recorded."""
    (folder / "base.toml").write_text(Scenario.from_dict(BASE).to_toml(), encoding="utf-8")
    path = folder / "grid.toml"
    path.write_text('scenario = "base.toml"\nseeds = 60\ntrace = "flow"\n', encoding="utf-8")
    sweep = Sweep(name="grid", scenario=Scenario.from_dict(BASE), seeds=tuple(range(1, 61)), trace="flow")
    return path, sweep


def check_intact(store: Path, sweep: Sweep, folder: Path) -> None:
    """Check that the sweep is intact and without partial files, and that resuming it yields the table of an undisturbed one."""
    assert quick_check(store)
    with Store(store) as opened:
        before = opened.counts("grid")["done"]
        rows = opened.read(sweep.recipe.text)
        assert rows.height == before
    assert before < 60
    results, status = run_sweep(sweep, store, Threads(2))
    assert (status.done, status.found) == (60, before)
    assert results.runs.equals(run_sweep(sweep, folder / "plain", Threads(1))[0].runs)
    assert not list(store.rglob("*.tmp"))


def test_files_that_may_not_grow(tmp_path):
    path, sweep = traced(tmp_path)
    store = tmp_path / "store"

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))

    command = [*ACKCLOCK, "sweep", "run", str(path), "--out", str(store), "--jobs", "1"]
    quiet = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",
    }  # CPython would keep a partial module that may be written
    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit, env=quiet)
    assert done.returncode == 3, done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"ackclock: {store}: cannot be written (file too large")
    assert "what was done is kept" in done.stderr
    check_intact(store, sweep, tmp_path)


CUT = """
import resource, signal, sys
from pathlib import Path
import polars as pl
from ackclock._files import parquet, reason
place = Path(sys.argv[1])
frame = pl.DataFrame({f"column{n}": [n * 1.1, n * 2.3] for n in range(150)})
parquet(frame, place)
whole = place.stat().st_size
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
said = set()
for table in (frame, frame.lazy()):
    for size in range(4, whole, whole // 50):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        try:
            parquet(table, place)
            said.add("written")
        except Exception as error:
            said.add(reason(error))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(*said)
"""


def test_a_table_that_may_not_grow(tmp_path):
    """The disk reports an error at any position in the file, and the message states the cause; at the end of a
    file Polars reports only "transport error".
    """
    command = [sys.executable, "-c", CUT, str(tmp_path / "x.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("file too large\n", "")


def may_mount() -> bool:
    """Return whether a file system can be mounted in a namespace of our own."""
    if not shutil.which("unshare"):
        return False
    command = ["unshare", "-rm", "sh", "-c", "mount -t tmpfs -o size=100k none /mnt"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not may_mount(), reason="needs a mount namespace")
def test_a_full_disk(tmp_path):
    fill(tmp_path, 600)


@pytest.mark.long
@pytest.mark.skipif(not may_mount(), reason="needs a mount namespace")
def test_twenty_full_disks(tmp_path):
    for size in range(300, 700, 20):
        (tmp_path / str(size)).mkdir()
        fill(tmp_path / str(size), size)


def fill(folder: Path, size: int) -> None:
    """Run a sweep on a disk of this size, KiB."""
    path, sweep = traced(folder)
    disk, copy = folder / "disk", folder / "copy"
    disk.mkdir()
    run = f"{sys.executable} -m ackclock sweep run {path} --out {disk}/store --jobs 1"
    mount = f"mount -t tmpfs -o size={size}k none {disk}"
    script = f"{mount} && {{ {run}; code=$?; cp -a {disk}/store {copy}; exit $code; }}"
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    said = f"ackclock: {disk}/store: cannot be written (no space left on the device); what was done is kept"
    assert done.stderr.splitlines()[-1] == said
    check_intact(copy, sweep, folder)


@pytest.mark.skipif(not may_mount(), reason="needs a mount namespace")
def test_a_folder_that_cannot_be_written(tmp_path):
    path, sweep = traced(tmp_path)
    store = tmp_path / "store"
    half = Sweep(name="grid", scenario=sweep.scenario, seeds=sweep.seeds[:20], trace="flow")
    before, _ = run_sweep(half, store, Threads(2))
    held = sorted(store.rglob("*"))
    for command, code, said in (
        ("run {path}", 3, f"ackclock: {store}: cannot be written (read-only file system); what was done is kept"),
        ("status {path}", 0, "grid: 20 runs: 20 done"),
        ("export {path} --csv /dev/null", 0, "written: /dev/null (20 runs)"),
    ):
        line = f"{sys.executable} -m ackclock sweep {command.format(path=path)} --out {store}"
        script = f"mount --bind {store} {store} && mount -o remount,bind,ro {store} && {line}"
        done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        assert said in (done.stderr + done.stdout).splitlines()
    assert sorted(store.rglob("*")) == held
    results, status = run_sweep(sweep, store, Threads(2))
    assert (status.done, status.found) == (60, 20)
    assert results.runs.head(20).equals(before.runs)


@pytest.mark.long
def test_dask_workers_one_of_them_killed(tmp_path):
    distributed = pytest.importorskip("distributed")
    from ackclock.sweep import Axis, Dask

    sweep = Sweep(
        name="grid",
        scenario=Scenario.from_dict({**BASE, "duration": "10 s"}),
        axes=(Axis(key="flows.0.congestion_control", values=("reno", "cubic")),),
        seeds=tuple(range(1, 151)),
        tables=("flows",),
    )
    plain, _ = run_sweep(sweep, tmp_path / "plain", Threads(2))
    victims: list[int] = []
    with distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        executor = Dask(cluster)
        executor.target_s = 0.05
        pids = list(executor._client.run(os.getpid).values())
        assert executor.slots == 3
        assert len(set(pids)) == 3

        def progress(status) -> None:
            if not victims and 0 < status.done < status.total:
                victims.append(pids[0])
                os.kill(pids[0], signal.SIGKILL)

        results, status = run_sweep(sweep, tmp_path / "dask", executor, progress=progress)
        executor.close()
    assert victims, "it was over before a worker could be killed"
    assert (status.done, status.failed) == (300, 0)
    assert results.runs.equals(plain.runs)
    with Store(tmp_path / "dask") as store, Store(tmp_path / "plain") as other:
        rows, expected = (s.read(sweep.recipe.text, "flows").sort("key", "flow") for s in (store, other))
        assert rows.equals(expected)


def test_a_scheduler_that_is_not_there(tmp_path):
    pytest.importorskip("distributed")
    path, _ = traced(tmp_path)
    command = [*ACKCLOCK, "sweep", "run", str(path), "--out", str(tmp_path / "s"), "--scheduler", "tcp://127.0.0.1:9"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith("ackclock: --scheduler tcp://127.0.0.1:9: cannot be reached (")


def test_interrupted_once_keeps_what_is_done(tmp_path):
    path, _ = traced(tmp_path)
    path.write_text('scenario = "base.toml"\nseeds = 20000\n', encoding="utf-8")
    store = tmp_path / "store"
    command = [*ACKCLOCK, "sweep", "run", str(path), "--out", str(store), "--jobs", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not list(store.glob("data/1/runs/*.parquet")):
            assert process.poll() is None, process.stderr.read() if process.stderr else ""
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.splitlines()[-1] == f"ackclock: stopped; go on with `ackclock sweep resume {path}`"
    with Store(store) as opened:
        counts = opened.counts("grid")
    assert counts["running"] == 0
    assert 0 < counts["done"] < 20_000
