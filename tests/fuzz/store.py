"""What describes a store (database, sweep, cells), altered: refused with one line or read; and nothing outside of the
folder is touched, whoever wrote what stands in the database."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from draw import Draw, one_line

from ackclock import AckclockError, Scenario
from ackclock import sweep as sweeps

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
    sweeps.run(sweep, _WHOLE, executor)
    executor.close()
    for table in ("runs", "flows"):
        place = _OUTSIDE / table / "part-000001.parquet"
        place.parent.mkdir(parents=True)
        place.write_bytes(b"somebody else's")
    with closing(sqlite3.connect(_WHOLE / "state.sqlite")) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {table: [row[1] for row in db.execute(f"PRAGMA table_info({table})")] for table in tables}


COLUMNS = _make()


def play(data: bytes) -> bool:
    """Whether it could still be read."""
    draw = Draw(data)
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
        table = draw.one(sorted(COLUMNS))
        column = draw.one(COLUMNS[table])
        value = draw.one(VALUES)
        with closing(sqlite3.connect(store / "state.sqlite")) as db:
            statement = {
                0: f"DELETE FROM {table}",
                1: f"DROP TABLE {table}",
                2: f"ALTER TABLE {table} RENAME COLUMN {column} TO x",
                3: f"INSERT INTO {table} SELECT * FROM {table}",
                4: f"UPDATE {table} SET {column} = (SELECT max({column}) FROM {table})",
            }.get(kind)
            try:
                if statement is None:
                    # the types of the columns are no bound: a table may have been made anew without them
                    if kind == 5:
                        db.execute(f"CREATE TABLE y AS SELECT * FROM {table}")
                        db.execute(f"DROP TABLE {table}")
                        db.execute(f"ALTER TABLE y RENAME TO {table}")
                    db.execute(f"UPDATE {table} SET {column} = ?", (value,))
                else:
                    db.execute(statement)
                db.commit()
            except (sqlite3.Error, UnicodeDecodeError):
                pass  # so nothing is altered
        return
    name = draw.one(
        ["state.sqlite", "sweeps/k/sweep.toml", "sweeps/k/cells.parquet", "data/1/runs/part-000001.parquet"]
    )
    place = store / name
    if kind == 15:
        place.unlink(missing_ok=True)
        return
    data = bytearray(place.read_bytes() if place.is_file() else b"")
    at = draw.number(2) % (len(data) + 1)
    piece = bytes(draw.byte() for _ in range(draw.byte() % 16))
    data[at : at + (draw.byte() if kind & 1 else len(piece))] = piece
    place.write_bytes(data)
