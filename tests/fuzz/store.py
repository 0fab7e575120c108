"""A store's database or sweep file, altered: either refused in one line or read. Nothing outside the folder is touched, whatever the database contains.

Most inputs alter the database or the sweep, and are read in memory: no file, no Parquet. One in 256 is a folder on disk, altered anywhere,
which is opened, read, repaired and compacted.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from draw import Draw, one_line

from ackclock import AckclockError, Scenario
from ackclock import sweep as sweeps
from ackclock.sweep.database import check

SCENARIO = {
    "duration": "50 ms",
    "network": {"bottleneck": {"rate": "1 Mbit/s", "delay": "5 ms"}},
    "flows": [{"congestion_control": "reno"}],
}
VALUES: list[Any] = [
    None, 0, 1, 2, -1, 3, 7, 1000, 2**31, 2**63 - 1, -(2**63), 0.5, float("inf"), "", "x", "done", "pending", "failed",
    "running", "../../outside", "../../../outside", "/", "\x00", "\x1b[31m", "a\nb", "é" * 3000, b"", b"\x00" * 32, b"\xff",
    "[/x]", "k", "goodput_bps", "part-000001", "1", "00", "1.0",
]  # fmt: skip

_FOLDER = tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
_ROOT = Path(_FOLDER.name)
_WHOLE = _ROOT / "whole"
_OUTSIDE = _ROOT / "outside"


def _make() -> dict[str, list[str]]:
    axis = sweeps.Axis(key="flows.0.congestion_control", values=("reno", "cubic"))
    sweep = sweeps.Sweep(
        name="k",
        scenario=Scenario.from_dict(SCENARIO),
        axes=(axis,),
        seeds=(1, 2),
        metrics=("goodput_bps",),
        tables=("flows",),
    )
    executor = sweeps.Threads(1)
    _, status = sweeps.run(sweep, _WHOLE, executor)
    executor.close()
    assert status.done == 4, status
    for table in ("runs", "flows"):
        place = _OUTSIDE / table / "part-000001.parquet"
        place.parent.mkdir(parents=True)
        place.write_bytes(b"somebody else's")
    with closing(sqlite3.connect(_WHOLE / "state.sqlite")) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {table: [row[1] for row in db.execute(f"PRAGMA table_info({table})")] for table in tables}


COLUMNS = _make()
TABLES = sorted(COLUMNS)


def _images() -> tuple[bytes, bytes]:
    """Return the database, and the same database with the smallest pages: most bytes of a 4 KiB page are unused here."""
    with tempfile.TemporaryDirectory(dir=_FOLDER.name) as folder:
        dense = shutil.copy(_WHOLE / "state.sqlite", folder)
        with closing(sqlite3.connect(dense, isolation_level=None)) as small:
            small.execute("PRAGMA page_size = 512")
            small.execute("VACUUM")
        return (_WHOLE / "state.sqlite").read_bytes(), Path(dense).read_bytes()


DATABASE, DENSE = _images()
# Connections on which an input is a transaction that is rolled back, so that statements are compiled once, not per input. The
# second one is for inputs that change the schema, which makes SQLite recompile them.
_kept = [sqlite3.connect(":memory:", isolation_level=None, cached_statements=1024) for _ in range(2)]
for _db in _kept:
    _db.deserialize(DATABASE)
SWEEP = (_WHOLE / "sweeps" / "k" / "sweep.toml").read_bytes()


def play(data: bytes) -> bool:
    """Play one input; return whether the database could still be read."""
    draw = Draw(data)
    kind = draw.byte()
    if kind == 255:
        return on_disk(draw)
    return _sweep(draw) if kind % 8 == 7 else _database(draw)


def _sweep(draw: Draw) -> bool:
    text = bytearray(SWEEP)
    for _ in range(1 + draw.byte() % 4):
        _exchange(text, draw)
    try:
        values = tomllib.loads(text.decode())
    except (UnicodeDecodeError, ValueError):
        return False  # the target for scenarios covers the handling in `load`
    try:
        sweep = sweeps.Sweep.from_dict(values, folder=_ROOT)
        _ = sweep.cells
    except AckclockError as error:
        one_line(str(error))
        return False
    return True


def _database(draw: Draw) -> bool:
    edits = 1 + draw.byte() % 4
    how = draw.byte()
    if how % 4 == 0:
        whole = bytearray(DATABASE if how & 24 == 24 else DENSE)
        for _ in range(edits):
            _exchange(whole, draw)
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
            db.deserialize(bytes(whole))
            return _read(db)
    alterations = [_alteration(draw) for _ in range(edits)]
    db = _kept[any(alteration.of_schema for alteration in alterations)]
    try:
        db.execute("BEGIN")
        for alter in alterations:
            alter(db)
        return _read(db)
    finally:
        if db.in_transaction:  # SQLite ends the transaction itself after some errors
            db.execute("ROLLBACK")


def _read(db: sqlite3.Connection) -> bool:
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return False  # such a store cannot be opened
    try:
        check(db, _WHOLE)
        for line in _described(db):
            one_line(line)
    except sqlite3.OperationalError:
        return False  # raised by `check`; `to_read` reports it in a line
    except AckclockError as error:
        one_line(str(error))
        return False
    return True


def _described(db: sqlite3.Connection) -> list[str]:
    """Everything a store reports about its runs and parts, whose files do not exist here."""
    store = sweeps.Store.__new__(sweeps.Store)
    store.folder, store._db = _ROOT / "nowhere", db
    for name in store.sweeps():
        store.members(name)
        assert len(store.member_keys(name)) == store.counts(name)["done"]
        assert len(store.failures(name)) <= 10
    return [str(damage) for damage in store.check()]


def on_disk(draw: Draw) -> bool:
    """Play one folder; return whether it could still be read."""
    store = _ROOT / "k.sweep"
    shutil.rmtree(store, ignore_errors=True)
    shutil.copytree(_WHOLE, store)
    for _ in range(1 + draw.byte() % 4):
        _edit(store, draw)
    read = True
    try:
        with sweeps.Store(store) as opened:
            for name in opened.sweeps():
                opened.counts(name)
                opened.failures(name)
                opened.members(name)
            lost = [str(damage) for damage in opened.check()]
        for line in lost:
            assert "\n" not in line, line
        sweeps.read(store, "")
    except AckclockError as error:
        one_line(str(error))
        read = False
    try:
        with sweeps.Store(store, write=True) as opened:
            for recipe in [recipe for (recipe,) in opened._db.execute("SELECT recipe FROM recipes").fetchall()]:
                opened.compact(recipe, above=0)
    except AckclockError as error:
        one_line(str(error))
    for table in ("runs", "flows"):
        assert (_OUTSIDE / table / "part-000001.parquet").read_bytes() == b"somebody else's"
    assert sorted(os.listdir(_ROOT)) == ["k.sweep", "outside", "whole"]
    return read


def _edit(store: Path, draw: Draw) -> None:
    kind = draw.byte() % 16
    if kind < 11:
        with closing(sqlite3.connect(store / "state.sqlite", isolation_level=None)) as db:
            _alteration(draw)(db)
        return
    name = draw.one(
        ["state.sqlite", "sweeps/k/sweep.toml", "sweeps/k/cells.parquet", "data/1/runs/part-000001.parquet"]
    )
    place = store / name
    if kind == 15:
        place.unlink(missing_ok=True)
        return
    data = bytearray(place.read_bytes() if place.is_file() else b"")
    _exchange(data, draw)
    place.write_bytes(data)


class _Alteration(NamedTuple):
    """Execute a statement that no store would execute."""

    kind: int
    table: str
    column: str
    value: Any
    row: int

    @property
    def of_schema(self) -> bool:
        return self.kind in (1, 2, 5)

    def __call__(self, db: sqlite3.Connection) -> None:
        kind, table, column, value, row = self
        statement = {
            0: f"DELETE FROM {table}",
            1: f"DROP TABLE {table}",
            2: f"ALTER TABLE {table} RENAME COLUMN {column} TO x",
            3: f"INSERT INTO {table} SELECT * FROM {table}",
            4: f"UPDATE {table} SET {column} = (SELECT max({column}) FROM {table})",
        }.get(kind)
        try:
            if statement is not None:
                db.execute(statement)
                return
            # column types are no restriction: a table may have been recreated without them
            if kind == 5:
                db.execute(f"CREATE TABLE y AS SELECT * FROM {table}")
                db.execute(f"DROP TABLE {table}")
                db.execute(f"ALTER TABLE y RENAME TO {table}")
            if kind < 12:
                db.execute(f"UPDATE {table} SET {column} = ?", (value,))
            else:
                db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, row))
        except (sqlite3.Error, UnicodeDecodeError):
            pass  # the statement did not change anything


def _alteration(draw: Draw) -> _Alteration:
    kind, table = draw.byte() % 16, draw.one(TABLES)
    column, value = draw.one(COLUMNS[table]), draw.one(VALUES)
    return _Alteration(kind, table, column, value, 1 + draw.byte() % 4 if kind >= 12 else 0)


def _exchange(data: bytearray, draw: Draw) -> None:
    at = draw.number(2) % (len(data) + 1)
    piece = bytes(draw.byte() for _ in range(draw.byte() % 16))
    data[at : at + (draw.byte() if draw.byte() & 1 else len(piece))] = piece
