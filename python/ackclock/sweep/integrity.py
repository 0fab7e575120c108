"""Whether a store still holds what was written into it: each file's size and checksum, the database's own check."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ackclock.errors import UnavailableError

FILES = """
CREATE TABLE IF NOT EXISTS files (
  part INTEGER NOT NULL, name TEXT NOT NULL, bytes INTEGER NOT NULL, sha256 BLOB NOT NULL, PRIMARY KEY (part, name)
) WITHOUT ROWID
"""
"""What each file of a part was when it was written. Stores of before do not have it: their parts are checked by rows."""

PART = re.compile(r"part-(\d{6,})\.parquet(\.tmp)?")
"""Names that the store gives; other files in its folders are not its own, and stay."""


class DamagedError(UnavailableError):
    """A file of a store is gone, or is not as it was written."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Damage:
    """What is wrong with a part.

    Parameters
    ----------
    recipe, part
        Numbers.
    file
        Where it shows first.
    why
        "is gone", "is not as it was written".
    runs
        Whose rows are in the part.
    """

    recipe: int
    part: int
    file: Path
    why: str
    runs: int

    def __str__(self) -> str:
        return f"{self.file} {self.why} ({self.runs:,} run{'' if self.runs == 1 else 's'})"


def note(db: sqlite3.Connection, part: int, files: Mapping[str, Path]) -> None:
    """Write down what the files of a part are; within the transaction that enters the part."""
    rows = ((part, name, file.stat().st_size, _sum(file)) for name, file in files.items())
    db.executemany("INSERT INTO files VALUES (?, ?, ?, ?)", rows)


def wrong(db: sqlite3.Connection, part: int, table: str, place: Path | None) -> str | None:
    """What is wrong with the file of a table of a part, if anything; `place` is None if it is not there."""
    noted = None
    if _has_files(db):
        noted = db.execute("SELECT bytes, sha256 FROM files WHERE part = ? AND name = ?", (part, table)).fetchone()
    if noted is None:
        return _wrong_by_rows(db, part, place) if table == "runs" else None
    if place is None:
        return "is gone"
    try:
        same = place.stat().st_size == noted[0] and _sum(place) == noted[1]
    except FileNotFoundError:
        return "is gone"
    except OSError as error:
        return f"cannot be read ({(error.strerror or str(error)).lower()})"
    return None if same else "is not as it was written"


def damaged(db: sqlite3.Connection, folder: Path) -> list[Damage]:
    """The parts that are not whole."""
    found = []
    known = _has_files(db)
    for part, recipe, rows in db.execute("SELECT id, recipe, rows FROM parts WHERE live ORDER BY id").fetchall():
        noted = db.execute("SELECT name FROM files WHERE part = ? ORDER BY name", (part,)).fetchall() if known else []
        for name in [name for (name,) in noted] or ["runs"]:
            place = folder / "data" / str(recipe) / name / f"part-{part:06}.parquet"
            there = next((p for p in (place, place.with_name(place.name + ".tmp")) if p.is_file()), None)
            why = wrong(db, part, name, there)
            if why is not None:
                found.append(Damage(recipe=recipe, part=part, file=place, why=why, runs=rows))
                break
    return found


def check_database(db: sqlite3.Connection, place: Path, tables: set[str]) -> None:
    """Refuse a database that is damaged.

    Raises
    ------
    DamagedError
        If SQLite says so, or a table is missing.
    """
    try:
        said = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        there = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) and "malformed" not in str(error):
            raise
        said, there = str(error), tables
    missing = sorted(tables - there)
    if said != "ok" or missing:
        why = f"no table {missing[0]}" if said == "ok" else " ".join(str(said).split())[:80]
        raise DamagedError(
            f"{place}: is damaged ({why}); `ackclock sweep check {place.parent} --repair` sets it aside, and all runs "
            "are made again"
        )


def _wrong_by_rows(db: sqlite3.Connection, part: int, place: Path | None) -> str | None:
    import polars as pl

    if place is None:
        return "is gone"
    (rows,) = db.execute("SELECT rows FROM parts WHERE id = ?", (part,)).fetchone() or (None,)
    try:
        found = pl.scan_parquet(place, glob=False).select(pl.len()).collect().item()
    except (OSError, pl.exceptions.PolarsError):
        return "cannot be read"
    return None if rows is None or found == rows else f"holds {found:,} runs of {rows:,}"


def _has_files(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM sqlite_master WHERE name = 'files'").fetchone() is not None


def _sum(file: Path) -> bytes:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").digest()
