"""Tests for faults around a command: a store that disappears, two writers, clocks that jump, full or read-only disks.

Nothing is lost or duplicated, and the disturbed command says so in one line.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from kill_command import arguments
from test_sweep_survives import may_mount

from ackclock import Scenario
from ackclock.cli import main
from ackclock.sweep import Store, StoreError, Sweep, Threads, campaign
from ackclock.sweep import run as run_sweep

BASE = {
    "duration": "500 ms",
    "network": {"bottleneck": {"rate": "5 Mbit/s", "delay": "10 ms", "loss": {"kind": "bernoulli", "p": "1 %"}}},
    "flows": [{"congestion_control": "reno"}],
}
RUNS = 40


@pytest.fixture
def sweep(monkeypatch: pytest.MonkeyPatch) -> Sweep:
    """Return a sweep of small tasks, each stored immediately."""
    monkeypatch.setattr(campaign, "KEEP_EVERY_S", 0.0)
    monkeypatch.setattr(campaign, "KEEP_REST", 0)
    monkeypatch.setattr(campaign, "KEEP_CPU_S", 0.0)
    monkeypatch.setattr(Threads, "target_s", 0.001)
    return Sweep(name="grid", scenario=Scenario.from_dict(BASE), seeds=tuple(range(1, 1 + RUNS)))


def whole(store: Path, table: pl.DataFrame) -> None:
    """Check that each run is present once, with the same numbers as in an undisturbed sweep."""
    keys = pl.read_parquet(store / "data" / "1" / "runs" / "*.parquet")["key"].to_list()
    assert len(keys) == len(set(keys)) == RUNS
    with Store(store) as opened:
        assert opened.counts("grid")["done"] == RUNS
        assert not opened.check()
    assert not [*store.rglob("*.tmp"), *store.rglob(".ackclock-*")]
    assert pl.read_parquet(store / "sweeps" / "grid" / "table.parquet").height == table.height == RUNS


def removed(store: Path) -> None:
    shutil.rmtree(store)


def moved(store: Path) -> None:
    store.rename(store.with_name("elsewhere"))


def replaced(store: Path) -> None:
    shutil.rmtree(store)
    store.write_text("a file")


def anew(store: Path) -> None:
    """Replace the store with a new one of the same name."""
    moved(store)
    Store(store, write=True).close()


@pytest.mark.parametrize("fault", [removed, moved, replaced, anew])
def test_a_store_that_vanishes(sweep: Sweep, tmp_path: Path, fault: Callable[[Path], None]) -> None:
    store = tmp_path / "store"
    left: list[set[Path]] = []

    def progress(status: campaign.Status) -> None:
        if status.done >= 5 and not left:
            fault(store)
            left.append(set(tmp_path.rglob("*")))

    with pytest.raises(StoreError) as told:
        run_sweep(sweep, store, Threads(1), progress=progress)
    said = str(told.value)
    assert said.startswith(f"{store}: cannot be written (")
    assert "\n" not in said
    assert left
    assert set(tmp_path.rglob("*")) <= left[0], "something was written where the store had been"
    if fault in (removed, replaced):
        if fault is replaced:
            store.unlink()
        found = 0
    else:
        if fault is anew:
            shutil.rmtree(store)
        (tmp_path / "elsewhere").rename(store)
        with Store(store) as opened:
            found = opened.counts("grid")["done"]
        assert 5 <= found < RUNS
    results, status = run_sweep(sweep, store, Threads(1))
    assert (status.done, status.found) == (RUNS, found)
    plain, _ = run_sweep(sweep, tmp_path / "plain", Threads(1))
    assert results.runs.equals(plain.runs)
    whole(store, plain.runs)


def test_a_store_that_somebody_writes(sweep: Sweep, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command is refused in one line and does not change the store."""
    (tmp_path / "base.toml").write_text(sweep.scenario.to_toml())
    (tmp_path / "grid.toml").write_text(f'scenario = "base.toml"\nseeds = {RUNS}\n')
    store = tmp_path / "out" / "store"
    with Store(store, write=True):
        before = sorted(store.rglob("*"))
        for command in (
            ["sweep", "run", str(tmp_path / "grid.toml"), "--out", str(store)],
            arguments("study", tmp_path, tmp_path / "out"),
            arguments("evaluate", tmp_path, tmp_path / "out"),
        ):
            capsys.readouterr()
            assert main(command) == 3, command
            said = capsys.readouterr().err
            assert said.splitlines()[-1].startswith(f"ackclock: {store}: "), said
            assert "another session" in said.splitlines()[-1], said
            assert "Traceback" not in said
        assert sorted(store.rglob("*")) == before


def jumping(draw: random.Random) -> Callable[[Callable[[], float]], Callable[[], float]]:
    """Put clocks forward at any call, as after a system suspend."""

    def of(clock: Callable[[], float]) -> Callable[[], float]:
        ahead = 0.0

        def now() -> float:
            nonlocal ahead
            ahead += draw.choice([0.0, 0.0, 0.0, 60.0, 86_400.0])
            return clock() + ahead

        return now

    return of


def test_clocks_that_jump(sweep: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of day jumps both ways, the other clocks forward only: the table matches an undisturbed sweep's, and no time is negative."""
    plain, _ = run_sweep(sweep, tmp_path / "plain", Threads(1))
    draw, day = random.Random(1), time.time
    forward = jumping(draw)
    monkeypatch.setattr(time, "time", lambda: day() + draw.choice([-1e9, 0.0, 1e9]))
    for name in ("monotonic", "perf_counter"):
        monkeypatch.setattr(time, name, forward(getattr(time, name)))
    seen: list[campaign.Status] = []
    results, status = run_sweep(sweep, tmp_path / "store", Threads(1), progress=seen.append)
    assert results.runs.equals(plain.runs)
    assert (status.done, status.failed) == (RUNS, 0)
    assert all(told.wall_s >= 0 for told in seen)
    whole(tmp_path / "store", plain.runs)


CLOCKS = """
import random, sys, time
draw, day = random.Random(int(sys.argv[1])), time.time
def forward(clock):
    ahead = 0.0
    def now():
        nonlocal ahead
        ahead += draw.choice([0.0, 0.0, 0.0, 60.0, 86_400.0])
        return clock() + ahead
    return now
time.time = lambda: day() + draw.choice([-1e9, 0.0, 1e9])
time.monotonic, time.perf_counter = forward(time.monotonic), forward(time.perf_counter)
from ackclock.cli import main
sys.exit(main(sys.argv[2:]))
"""
"""Program that runs a command under jumping clocks."""


def outcome(folder: Path) -> dict[str, bytes]:
    """Return a command's files, except its store and files that contain times."""
    from kill_command import files

    return files(folder)


def stored(folder: Path) -> list[str]:
    """Return the run keys in a command's store, without repetition."""
    keys: list[str] = pl.read_parquet(folder / "store" / "data" / "1" / "runs" / "*.parquet")["key"].to_list()
    assert len(keys) == len(set(keys))
    return sorted(keys)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return an undisturbed study's and evaluation's files; a study's report names its folder, which is therefore
    the same for all.
    """
    place = tmp_path_factory.mktemp("undisturbed")
    for what in ("study", "evaluate"):
        assert main(arguments(what, place, place / what)) == 0
    return {what: place / what for what in ("study", "evaluate")}


def as_undisturbed(folder: Path, expected: Path) -> None:
    found, wanted = outcome(folder), outcome(expected)
    assert found.keys() == wanted.keys()
    assert not [name for name in found if found[name] != wanted[name]]
    assert stored(folder) == stored(expected)


COMMANDS = pytest.mark.parametrize("what", ["study", "evaluate"])


@pytest.mark.long
@COMMANDS
def test_commands_under_clocks_that_jump(undisturbed: dict[str, Path], tmp_path: Path, what: str) -> None:
    command = [sys.executable, "-c", CLOCKS, "1", *arguments(what, undisturbed[what].parent, tmp_path / what)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    as_undisturbed(tmp_path / what, undisturbed[what])


@pytest.mark.long
@COMMANDS
def test_two_processes_with_one_store(undisturbed: dict[str, Path], tmp_path: Path, what: str) -> None:
    """Both start at once: one makes the runs, the other names the store's owner or finds all runs; the results are as if undisturbed."""
    folder = tmp_path / what
    command = [sys.executable, "-m", "ackclock", *arguments(what, undisturbed[what].parent, folder)]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    for _ in range(3):
        shutil.rmtree(folder, ignore_errors=True)
        both = [subprocess.Popen(command, **pipes) for _ in range(2)]  # type: ignore[call-overload]
        said = [process.communicate()[1] for process in both]
        codes = sorted(process.returncode for process in both)
        assert codes in ([0, 0], [0, 3]), said
        for process, text in zip(both, said, strict=True):
            assert "Traceback" not in text
            if process.returncode == 3:
                assert "another session" in text.splitlines()[-1], text
        as_undisturbed(folder, undisturbed[what])
        assert subprocess.run(command, capture_output=True, check=False).returncode == 0
        as_undisturbed(folder, undisturbed[what])


def mounted(disk: Path, mount: str, command: list[str], copy: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command with a separate file system at `disk`, then copy the files written there."""
    words = " ".join([sys.executable, "-m", "ackclock", *command])
    keep = f"cp -a {disk}/. {copy};" if copy is not None else ""
    script = f"{mount} && {{ {words}; code=$?; {keep} exit $code; }}"
    return subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, check=False)


def refused(done: subprocess.CompletedProcess[str], why: str) -> None:
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ackclock: ")
    assert why in last, last


@pytest.mark.long
@pytest.mark.skipif(not may_mount(), reason="needs a mount namespace")
@COMMANDS
def test_commands_on_a_full_disk(undisturbed: dict[str, Path], tmp_path: Path, what: str) -> None:
    """The disk fills up at any point; once space has been freed, the result is as if it had never been full."""
    needed = sum(file.stat().st_size for file in undisturbed[what].rglob("*") if file.is_file()) // 1024
    disk = tmp_path / "disk"
    disk.mkdir()
    command = arguments(what, undisturbed[what].parent, disk)
    for share in (0.05, 0.3, 0.6, 0.9):
        copy = tmp_path / f"copy-{share}"
        copy.mkdir()
        mount = f"mount -t tmpfs -o size={max(int(needed * share), 64)}k none {disk}"
        refused(mounted(disk, mount, command, copy), "no space left on the device")
        again = arguments(what, undisturbed[what].parent, copy)
        assert main(again) == 0
        as_undisturbed(copy, undisturbed[what])


@pytest.mark.long
@pytest.mark.skipif(not may_mount(), reason="needs a mount namespace")
@COMMANDS
def test_commands_in_a_folder_that_cannot_be_written(undisturbed: dict[str, Path], tmp_path: Path, what: str) -> None:
    """The folder is empty, or contains all runs."""
    for folder in (tmp_path / "empty", undisturbed[what]):
        folder.mkdir(exist_ok=True)
        before = {file: file.stat().st_mtime_ns for file in folder.rglob("*")}
        mount = f"mount --bind {folder} {folder} && mount -o remount,bind,ro {folder}"
        refused(mounted(folder, mount, arguments(what, undisturbed[what].parent, folder)), "read-only file system")
        assert {file: file.stat().st_mtime_ns for file in folder.rglob("*")} == before


@pytest.mark.long
@COMMANDS
def test_commands_whose_folder_vanishes(undisturbed: dict[str, Path], tmp_path: Path, what: str) -> None:
    """The folder is moved away as soon as runs are stored: one line; once it is back, the command resumes."""
    folder, away = tmp_path / what, tmp_path / "away"
    command = [sys.executable, "-c", SMALL, *arguments(what, undisturbed[what].parent, folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        while not list(folder.glob("store/data/1/runs/part-*.parquet")):
            assert process.poll() is None, process.communicate()
            time.sleep(0.001)
        folder.rename(away)
        _, said = process.communicate(timeout=120)
    assert process.returncode == 3, said
    assert "Traceback" not in said
    assert f"ackclock: {folder}" in said.splitlines()[-1], said
    assert not [file for file in folder.rglob("*") if file.is_file()], "something was written where the folder had been"
    shutil.rmtree(folder, ignore_errors=True)
    away.rename(folder)
    assert main(arguments(what, undisturbed[what].parent, folder)) == 0
    as_undisturbed(folder, undisturbed[what])


SMALL = """
import sys
from ackclock.cli import main
from ackclock.sweep import Threads, campaign
campaign.KEEP_EVERY_S, campaign.KEEP_REST, campaign.KEEP_CPU_S = 0.0, 0, 0.0
Threads.target_s = 0.001
sys.exit(main(sys.argv[1:]))
"""
"""Program that runs a command which stores each run immediately."""
