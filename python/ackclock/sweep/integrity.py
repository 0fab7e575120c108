"""Checks that a store still has everything that was written to it: size and checksum of each file, and the database's
own integrity check.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ackclock.errors import UnavailableError, shown
from ackclock.sweep import parts

FILES = """
CREATE TABLE IF NOT EXISTS files (
  part INTEGER NOT NULL, name TEXT NOT NULL, bytes INTEGER NOT NULL, sha256 BLOB NOT NULL, PRIMARY KEY (part, name)
) WITHOUT ROWID
"""
"""Size and checksum, when written, of each file in a part."""


UNREADABLE = "cannot be read"


class DamagedError(UnavailableError):
    """Raised if a file in a store is missing or has changed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Damage:
    """Damage to a part.

    Parameters
    ----------
    recipe, part
        Numbers of recipe and part.
    file
        First damaged file.
    why
        "is gone", "is not as it was written".
    runs
        Runs with rows in the part.
    """

    recipe: int
    part: int
    file: Path
    why: str
    runs: int

    @property
    def is_unreadable(self) -> bool:
        """Whether reading the file failed because of the disk; its content may still be intact."""
        return self.why.startswith(UNREADABLE)

    def __str__(self) -> str:
        return f"{self.file} {self.why} ({self.runs:,} run{'' if self.runs == 1 else 's'})"


def note(db: sqlite3.Connection, part: int, files: Mapping[str, Path]) -> None:
    """Record a part's files, in the same transaction that records the part."""
    rows = ((part, name, file.stat().st_size, _sum(file)) for name, file in files.items())
    db.executemany("INSERT INTO files VALUES (?, ?, ?, ?)", rows)


def wrong(db: sqlite3.Connection, part: int, table: str, place: Path | None, *, by_sum: bool = True) -> str | None:
    """Return the damage to a part's file, if any; `place` is None for a missing file. Files without a recorded
    checksum are not read, because some damage makes the Parquet decoder end the process.
    """
    noted = db.execute("SELECT bytes, sha256 FROM files WHERE part = ? AND name = ?", (part, table)).fetchone()
    if noted is None:
        return None if place is None and table != "runs" else "has no checksum"
    if place is None:
        return "is gone"
    try:
        # a pipe at this path would block its reader
        same = place.is_file() and place.stat().st_size == noted[0] and (not by_sum or _sum(place) == noted[1])
    except FileNotFoundError:
        return "is gone"
    except OSError as error:
        return f"{UNREADABLE} ({(error.strerror or str(error)).lower()})"
    return None if same else "is not as it was written"


def damaged(db: sqlite3.Connection, folder: Path, *, by_sum: bool = True) -> list[Damage]:
    """Return the damaged parts, found by checksums, or by sizes alone without reading files."""
    found = []
    for part, recipe, rows in db.execute("SELECT id, recipe, rows FROM parts WHERE live ORDER BY id").fetchall():
        noted = db.execute("SELECT name FROM files WHERE part = ? ORDER BY name", (part,)).fetchall()
        for name in [name for (name,) in noted] or ["runs"]:
            why = wrong(db, part, name, parts.there(folder, recipe, name, part), by_sum=by_sum)
            if why is not None:
                file = parts.place(folder, recipe, name, part)
                found.append(Damage(recipe=recipe, part=part, file=file, why=why, runs=rows))
                break
    return found


Objects = Mapping[tuple[str, str], str]
"""Database objects: kind and name -> definition."""


def objects(db: sqlite3.Connection) -> Objects:
    """Return tables and all other objects of the schema, without querying any of them."""
    found = db.execute("SELECT type, name, sql FROM sqlite_master LIMIT 100")
    return {(str(kind), str(name)): " ".join(str(made).split()) for kind, name, made in found}


def check_database(db: sqlite3.Connection, place: Path, known: Objects, *, whole: bool = False) -> None:
    """Refuse a database that is damaged or contains anything that a store would not write: folders may come from strangers.

    Parameters
    ----------
    db, place
        Connection to the database, and its file.
    known
        Only objects that a store may have: a view, a trigger or a generated column is code.
    whole
        Whether to compare the indices with the tables as well, which takes several times as long.

    Raises
    ------
    DamagedError
        If SQLite reports damage, a table or a column is missing, or a value has the wrong type.
    """
    try:
        why = _foreign(db, known)
        if why is None:
            said = str(db.execute(f"PRAGMA {'integrity' if whole else 'quick'}_check(1)").fetchone()[0])
            why = _unlike(db) if said == "ok" else said
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the latter from messages about damaged schemas
        damage = "malformed" in str(error) or "decode" in str(error)
        if isinstance(error, sqlite3.OperationalError) and not damage:
            raise
        why = str(error)
    if why is not None:
        raise of_database(place, why)


def of_database(place: Path, why: str) -> DamagedError:
    """Return the error for a damaged database; `why` is SQLite's message."""
    return DamagedError(
        f"{place}: is damaged ({shown(' '.join(why.split())[:80])}); `ackclock sweep check {place.parent} --repair` sets it "
        "aside, and all runs are made again"
    )


_WHOLE = "typeof({0}) = 'integer' AND {0} >= 0"
_WHOLE_TEXT = "typeof({0}) = 'text' AND length({0}) = length(CAST({0} AS BLOB))"
"""SQLite's functions read a text only up to its first NUL, and so would the conditions below."""
_TEXT = f"{_WHOLE_TEXT} AND NOT {{0}} GLOB '*[^ -~]*'"
_HASH = f"{_WHOLE_TEXT} AND length({{0}}) = 32 AND NOT {{0}} GLOB '*[^0-9a-f]*'"
_NAME = f"{_WHOLE_TEXT} AND " + (
    "length({0}) BETWEEN 1 AND 100 AND NOT {0} GLOB '*[^A-Za-z0-9._-]*' AND NOT {0} GLOB '.*'"
)
_KINDS = {
    "recipes": {"id": _WHOLE, "recipe": _TEXT},
    "scenarios": {"id": _WHOLE, "hash": _HASH},
    "runs": {
        "id": _WHOLE,
        "key": "typeof({0}) = 'blob'",
        "recipe": _WHOLE,
        "scenario": _WHOLE,
        "seed": _WHOLE,
        "engine": _TEXT,
        "state": "{0} IN ('pending', 'running', 'done', 'failed')",
        "attempts": "typeof({0}) = 'integer'",
        "part": "typeof({0}) IN ('integer', 'null')",
        "error": "typeof({0}) IN ('text', 'null')",
    },
    "parts": {"id": _WHOLE, "recipe": _WHOLE, "rows": _WHOLE, "live": "{0} IN (0, 1)"},
    "sweeps": {"id": _WHOLE, "name": _NAME, "recipe": _WHOLE},
    "members": {"sweep": _WHOLE, "run": _WHOLE},
    "files": {"part": _WHOLE, "name": _NAME, "bytes": _WHOLE, "sha256": "typeof({0}) = 'blob' AND length({0}) = 32"},
}
"""Conditions on each column's values, because SQLite accepts any value in any column."""
_OTHER = {
    table: {column: f"NOT coalesce({kind.format(column)}, 0)" for column, kind in kinds.items()}
    for table, kinds in _KINDS.items()
}
_ANY_OTHER = {table: f"SELECT 1 FROM {table} WHERE {' OR '.join(of.values())} LIMIT 1" for table, of in _OTHER.items()}
"""Query for rows that violate a condition: one pass over the table for all columns."""


def _foreign(db: sqlite3.Connection, known: Objects) -> str | None:
    """Return the first object with a definition that is not ours, before any query could execute it."""
    found = objects(db)
    for kind, name in known.keys() - found.keys():
        if kind == "table":
            return f"no table {name}"
    for (kind, name), made in found.items():
        if known.get((kind, name)) == made:
            continue
        if (kind, name) not in known:
            return f"{kind} {name}, which no store has"
        columns = {row[1] for row in db.execute(f"PRAGMA table_info({name})")} if kind == "table" else set()
        missing = sorted(_KINDS.get(name, {}).keys() - columns)
        return f"no column {missing[0]} of {name}" if missing else f"{kind} {name}, made as no store makes it"
    missing = sorted(name for _, name in known.keys() - found.keys())
    return f"no index {missing[0]}" if missing else None


def _unlike(db: sqlite3.Connection) -> str | None:
    """Return the first value that a store would not write, if any."""
    for table in _KINDS:
        if db.execute(_ANY_OTHER[table]).fetchone():
            others = (
                c for c, other in _OTHER[table].items() if db.execute(f"SELECT 1 FROM {table} WHERE {other}").fetchone()
            )
            column = next(others, None)  # without an index, which may disagree with the table about a column
            return f"{table}{f'.{column}' if column else ''} holds what no store writes"
    return None


def _sum(file: Path) -> bytes:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").digest()
