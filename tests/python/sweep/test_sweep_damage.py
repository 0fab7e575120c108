"""Tests that a lost or damaged file in a store is reported in one line, and that its runs are repeated."""

from __future__ import annotations

import errno
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

from ackclock.cli import main
from ackclock.sweep import integrity

SWEEP = """
name = "k"
seeds = 4
metrics = ["goodput_bps"]
tables = ["flows"]
scenario = { duration = "1 s", network = { bottleneck = { rate = "2 Mbit/s", delay = "5 ms" } }, flows = [{}] }
[axes]
"network.bottleneck.rate" = ["1 Mbit/s", "2 Mbit/s"]
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pl.DataFrame]:
    """Return the folder of a finished sweep, and its table."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "k.toml").write_text(SWEEP)
    assert main(["sweep", "run", str(folder / "k.toml"), "--out", str(folder / "k.sweep"), "--jobs", "1"]) == 0
    return folder, pl.read_parquet(folder / "k.sweep/sweeps/k/table.parquet")


def _part(store: Path, table: str = "runs") -> Path:
    return next((store / "data/1" / table).glob("part-*.parquet"))


def _gone(store: Path) -> None:
    _part(store).unlink()


def _table_gone(store: Path) -> None:
    _part(store, "flows").unlink()


def _truncated(store: Path) -> None:
    os.truncate(_part(store), 200)


def _empty(store: Path) -> None:
    os.truncate(_part(store), 0)


def _flipped(store: Path) -> None:
    place = _part(store)
    data = bytearray(place.read_bytes())
    data[len(data) // 2] ^= 1
    place.write_bytes(data)


def _other_columns(store: Path) -> None:
    pl.DataFrame({"key": ["a"], "x": [1]}).write_parquet(_part(store))


def _fewer_rows(store: Path) -> None:
    pl.read_parquet(_part(store)).head(3).write_parquet(_part(store))


def _data_gone(store: Path) -> None:
    shutil.rmtree(store / "data")


def _unverified(store: Path) -> None:
    """The Parquet decoder may crash the process on such a file, so an unverified file must not be read."""
    _flipped(store)
    with closing(sqlite3.connect(store / "state.sqlite")) as db, db:
        db.execute("DELETE FROM files")


DAMAGES = [_unverified, _gone, _table_gone, _truncated, _empty, _flipped, _other_columns, _fewer_rows, _data_gone]


@pytest.mark.promise("P8")
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda d: d.__name__[1:])
def test_lost_runs_are_named_and_made_again(
    damage: Callable[[Path], None], whole: tuple[Path, pl.DataFrame], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`check` and readers list the lost runs; `run` repeats them, and the table is unchanged."""
    folder, table = whole
    shutil.copytree(folder, tmp_path / "x")
    store = tmp_path / "x/k.sweep"
    damage(store)
    capsys.readouterr()
    assert main(["sweep", "check", str(store)]) == 1
    assert "part-000001.parquet" in capsys.readouterr().out
    assert main(["sweep", "status", str(store)]) == 0
    lost = [line for line in capsys.readouterr().out.splitlines() if line.startswith("lost: ")]
    assert len(lost) == (damage is not _flipped), lost  # sizes are checked, not contents
    assert all("part-000001.parquet" in line and "makes them again" in line for line in lost)
    if damage is not _table_gone:
        assert main(["sweep", "export", str(store), "--csv", str(tmp_path / "x.csv")]) == 3
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert "part-000001.parquet" in said
        assert "makes its runs again" in said
    assert main(["sweep", "resume", str(store), "--jobs", "1"]) == 0
    said = capsys.readouterr()
    assert "(8 runs): made again" in said.err
    assert "8 of 8 runs done" in said.out
    assert pl.read_parquet(store / "sweeps/k/table.parquet").equals(table)
    assert main(["sweep", "check", str(store)]) == 0


@pytest.mark.parametrize("what", ["pages", "table", "nonsense", "empty"])
def test_a_damaged_database_is_one_line_and_can_be_set_aside(
    what: str, whole: tuple[Path, pl.DataFrame], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The database is renamed instead of deleted, and the runs are repeated."""
    import sqlite3

    folder, table = whole
    shutil.copytree(folder, tmp_path / "x")
    store = tmp_path / "x/k.sweep"
    database = store / "state.sqlite"
    if what == "table":
        with sqlite3.connect(database) as db:
            db.execute("DROP TABLE runs")
        db.close()
    elif what == "pages":
        data = bytearray(database.read_bytes())
        for at in range(4096, len(data), 997):
            data[at] ^= 0xFF
        database.write_bytes(data)
    else:
        database.write_bytes(b"x" * 10_000 if what == "nonsense" else b"")
    for command in (["status", str(store)], ["resume", str(store)], ["check", str(store)]):
        capsys.readouterr()
        assert main(["sweep", *command]) in (2, 3)
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert "internal error" not in said
    if what not in ("pages", "table"):
        return
    assert main(["sweep", "check", str(store), "--repair"]) == 0
    assert (store / "state.sqlite.damaged-1").is_file()
    assert (store / "data.damaged-1").is_dir()
    assert main(["sweep", "run", str(tmp_path / "x/k.toml"), "--out", str(store), "--jobs", "1"]) == 0
    assert pl.read_parquet(store / "sweeps/k/table.parquet").equals(table)


@pytest.mark.long
def test_twenty_damaged_stores(
    whole: tuple[Path, pl.DataFrame], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A random file is damaged at random: the table is unchanged, and a line lists the repeated runs, if any."""
    folder, table = whole
    draw = random.Random(1)
    again = 0
    for number in range(20):
        place = tmp_path / str(number)
        shutil.copytree(folder, place)
        store = place / "k.sweep"
        before = {file: file.stat().st_mtime_ns for file in store.rglob("part-*.parquet")}
        file = draw.choice(sorted(path for path in store.rglob("*") if path.is_file() and path.name != "table.parquet"))
        _damage(file, draw)
        sweep = [str(place / "k.toml"), "--out", str(store), "--jobs", "1"]
        capsys.readouterr()
        code = main(["sweep", "run", *sweep])
        said = capsys.readouterr().err
        if code in (2, 3):
            assert said.count("\n") == 1
            assert str(store) in said
            if not (store / "state.sqlite").is_file() or "no store" in said:
                shutil.rmtree(store)  # the folder can no longer be identified as a store, so the user has to decide
            else:
                assert main(["sweep", "check", str(store), "--repair"]) == 0
                assert "is now state.sqlite.damaged-1" in capsys.readouterr().out
            assert main(["sweep", "run", *sweep]) == 0
            again += 1
        else:
            assert code == 0, (file, said)
            lost = before != {part: part.stat().st_mtime_ns for part in store.rglob("part-*.parquet")}
            assert ("made again" in said) == lost, (file, said)
            again += lost
        assert pl.read_parquet(store / "sweeps/k/table.parquet").equals(table), file
        assert main(["sweep", "check", str(store)]) == 0
    assert again >= 5, again


def _damage(file: Path, draw: random.Random) -> None:
    data = bytearray(file.read_bytes())
    kind = draw.randrange(4)
    if kind == 0 or not data:
        file.unlink()
    elif kind == 1:
        os.truncate(file, draw.randrange(len(data)))
    else:
        for _ in range(1 if kind == 2 else 100):
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        file.write_bytes(data)


def test_cells_and_lock_are_written_again_and_foreign_files_stay(
    whole: tuple[Path, pl.DataFrame], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Losing a file without runs costs nothing."""
    folder, table = whole
    shutil.copytree(folder, tmp_path / "x")
    store = tmp_path / "x/k.sweep"
    (store / "sweeps/k/cells.parquet").write_bytes(b"nothing")
    (store / "lock.sqlite").write_bytes(b"nothing" * 100)
    foreign = [store / "data/1/runs" / name for name in ("part-mine.txt", "part-7.parquet", "part-000009.parquet")]
    for place in foreign:
        place.write_text("mine")
    assert main(["sweep", "export", str(store), "--csv", str(tmp_path / "x.csv")]) == 3
    assert "cells.parquet: is not as it was written" in capsys.readouterr().err
    assert main(["sweep", "resume", str(store), "--jobs", "1"]) == 0
    assert "8 of 8 runs done, 8 of them found" in capsys.readouterr().out
    assert all(place.read_text() == "mine" for place in foreign)
    assert pl.read_parquet(store / "sweeps/k/table.parquet").equals(table)


@pytest.mark.parametrize("name", ["lock.sqlite", "state.sqlite"])
@pytest.mark.parametrize("command", [["resume", "--jobs", "1"], ["status"], ["check"], ["export", "--csv", "x.csv"]])
def test_nothing_is_written_through_a_link(whole, tmp_path, monkeypatch, capsys, name, command):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(whole[0] / "k.sweep", "k.sweep")
    place = Path("k.sweep") / name
    place.unlink(missing_ok=True)
    place.symlink_to(tmp_path / "elsewhere")
    code = main(["sweep", command[0], "k.sweep", *command[1:]])
    assert not (tmp_path / "elsewhere").exists()
    if name == "state.sqlite" or command[0] == "resume":
        assert code in (1, 2)
        assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", ["sweep resume k.sweep", "sweep run k.toml --out k.sweep", "sweep check k.sweep --repair"]
)
def test_a_part_that_the_disk_refuses_is_kept(whole, tmp_path, monkeypatch, capsys, command):
    """A loose cable is not damage: data that is unreadable now may be readable later."""
    shutil.copytree(whole[0], tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    before = sorted(Path("k.sweep/data").rglob("*.parquet"))

    def refused(_file: Path) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as context:
        context.setattr(integrity, "_sum", refused)
        capsys.readouterr()
        assert main(command.split()) == 3
    assert (
        "cannot be read (input/output error) (8 runs): nothing was discarded"
        in capsys.readouterr().err.splitlines()[-1]
    )
    assert sorted(Path("k.sweep/data").rglob("*.parquet")) == before
    with closing(sqlite3.connect("k.sweep/state.sqlite")) as db:
        assert db.execute("SELECT count(*) FROM runs WHERE state = 'done'").fetchone() == (8,)
    assert main(["sweep", "check", "k.sweep"]) == 0
