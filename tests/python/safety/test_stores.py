"""Tests for stores made by others: nothing in their schema is executed, no link in them is followed, and Ctrl-C ends each query."""

import os
import signal
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from ackclock.errors import InputError
from ackclock.sweep import Sweep, Threads, database, integrity, run
from ackclock.sweep.integrity import DamagedError
from ackclock.sweep.results import read

SWEEP = Sweep.from_dict(
    {
        "name": "sw",
        "seeds": [1],
        "axes": {"network.bottleneck.rate": ["1 Mbit/s"]},
        "scenario": {
            "duration": "100 ms",
            "network": {"bottleneck": {"rate": "1 Mbit/s", "delay": "5 ms"}},
            "flows": [{}],
        },
    }
)
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS {0}, x AS {1} FROM c"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    run(SWEEP, tmp_path / "st", Threads(1))
    return tmp_path / "st"


def changed(store: Path, *statements: str) -> None:
    with closing(sqlite3.connect(store / "state.sqlite", isolation_level=None)) as db:
        for one in statements:
            db.execute(one)


@pytest.mark.promise("P7")
@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (["DROP TABLE members", f"CREATE VIEW members AS {ENDLESS.format('sweep', 'run')}"], "no table members"),
        ([f"CREATE VIEW more AS {ENDLESS.format('a', 'b')}"], "view more, which no store has"),
        (["CREATE TRIGGER t AFTER UPDATE ON runs BEGIN DELETE FROM parts; END"], "trigger t, which no store has"),
        (["CREATE VIRTUAL TABLE v USING fts5(x)"], "table v"),
        (["ALTER TABLE parts ADD COLUMN made AS (abs(id))"], "table parts, made as no store makes it"),
        (["CREATE INDEX i ON runs (abs(seed))"], "index i, which no store has"),
        (["ALTER TABLE runs RENAME COLUMN error TO x"], "no column error of runs"),
        (["DROP TABLE files"], "no table files"),
        (["UPDATE recipes SET recipe = recipe || CAST(x'00ff' AS TEXT)"], "recipes.recipe holds what no store writes"),
    ],
)
def test_the_schema_is_exactly_that_of_a_store(store: Path, statements: list[str], said: str) -> None:
    changed(store, *statements)
    began = time.process_time()
    with pytest.raises(DamagedError, match=said):
        read(store)
    with pytest.raises(DamagedError, match=said):
        run(SWEEP, store, Threads(1))
    assert time.process_time() - began < 5


def test_nothing_in_a_schema_is_trusted(store: Path) -> None:
    for db in (database.to_read(store), *database.to_write(store, again=True)):
        with closing(db):
            assert db.execute("PRAGMA trusted_schema").fetchone() == (0,)
            assert db.execute("PRAGMA cell_size_check").fetchone() == (1,)


def test_a_check_ends_in_time_that_follows_the_size(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        integrity, "_foreign", lambda db, _: db.execute(f"SELECT sum(a) FROM ({ENDLESS.format('a', 'b')})").fetchone()
    )
    with pytest.raises(DamagedError, match="have no end"):
        database.to_read(store)


@pytest.mark.promise("P7")
def test_ctrl_c_ends_a_query(store: Path) -> None:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with closing(database.to_read(store)) as db, pytest.raises(KeyboardInterrupt):
        database.rows(db, store, f"SELECT sum(a) FROM ({ENDLESS.format('a', 'b')})")


@pytest.mark.promise("P7")
@pytest.mark.parametrize("name", ["sweeps", "sweeps/sw", "sweeps/sw/sweep.toml", "sweeps/sw/cells.parquet"])
def test_no_link_in_a_store_is_followed(store: Path, name: str) -> None:
    place, outside = store / name, store.parent / "outside"
    place.rename(outside)
    place.symlink_to(outside)
    for step in (lambda: read(store), lambda: run(SWEEP, store, Threads(1))):
        if name.endswith("parquet") and step.__code__.co_names[0] == "run":
            continue  # rewritten in place of the link
        with pytest.raises(InputError, match="found a link"):
            step()


def test_a_device_in_place_of_a_sweep_is_not_read(store: Path) -> None:
    (store / "sweeps/sw/sweep.toml").unlink()
    (store / "sweeps/sw/sweep.toml").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="found a link"):
        run(SWEEP, store, Threads(1))


def test_a_pipe_in_place_of_a_sweep_is_not_waited_for(store: Path) -> None:
    (store / "sweeps/sw/sweep.toml").unlink()
    os.mkfifo(store / "sweeps/sw/sweep.toml")
    with pytest.raises(InputError, match="found a pipe"):
        run(SWEEP, store, Threads(1))


def test_nothing_is_written_where_a_link_leads(store: Path) -> None:
    outside = store.parent / "outside"
    (store / "data").rename(outside)
    (store / "data").symlink_to(outside)
    before = sorted(outside.rglob("*"))
    with pytest.raises(InputError, match="found a link"):
        run(replace(SWEEP, seeds=(1, 2)), store, Threads(1))
    assert sorted(outside.rglob("*")) == before
