"""Database of a store: its tables, opening and locking, transactions, and disk errors."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from ackclock._files import reason
from ackclock.errors import AckclockError, InputError, UnavailableError
from ackclock.sweep import integrity

VERSION = 1
"""Version of the database layout."""

_NAME = "state.sqlite"

_SCHEMA = """
CREATE TABLE recipes (id INTEGER PRIMARY KEY, recipe TEXT NOT NULL UNIQUE);
CREATE TABLE scenarios (id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE);
CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  key BLOB NOT NULL,
  recipe INTEGER NOT NULL REFERENCES recipes,
  scenario INTEGER NOT NULL REFERENCES scenarios,
  seed INTEGER NOT NULL,
  engine TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'pending',
  attempts INTEGER NOT NULL DEFAULT 0,
  part INTEGER,
  error TEXT,
  UNIQUE (recipe, key)
);
CREATE TABLE parts (id INTEGER PRIMARY KEY, recipe INTEGER NOT NULL, rows INTEGER NOT NULL, live INTEGER NOT NULL);
CREATE TABLE sweeps (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, recipe INTEGER NOT NULL);
CREATE TABLE members (sweep INTEGER NOT NULL, run INTEGER NOT NULL, PRIMARY KEY (sweep, run)) WITHOUT ROWID;
"""


STEPS = 10_000
"""Number of steps of SQLite's virtual machine between two checks for Ctrl-C, which would otherwise be handled only
at the end of the query.
"""


class StoreError(UnavailableError):
    """Raised if the store can no longer be written: no space, no permission, or another session."""


def to_read(folder: Path) -> sqlite3.Connection:
    """Open the database of an existing store for reading.

    Raises
    ------
    InputError
        If the folder is not a store.
    DamagedError
        If the database is damaged.
    UnavailableError
        If another process or a disk error prevents reading.
    """
    database = folder / _NAME
    if not database.is_file():
        raise InputError(f"{folder}: found no sweep; allowed: a folder that `ackclock sweep run` has written")
    db = _read_only(database)
    try:
        check(db, folder)
    except sqlite3.OperationalError as error:
        _heed(error)
        raise UnavailableError(f"{database}: cannot be read ({error})") from None
    return db


def to_write(folder: Path, *, again: bool) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    """Open the database of a store for writing, created if absent, and lock the store until the process ends.

    Parameters
    ----------
    folder
        Folder of the store.
    again
        Whether the folder may contain files that do not belong to a database.

    Returns
    -------
    tuple of connections
        The database, and the lock.

    Raises
    ------
    StoreError
        If another process holds the lock.
    InputError, DamagedError
        As in `to_read`.
    """
    if not again:
        _check_foreign(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):  # SQLite's message about an unwritable folder is less specific
        pass
    lock = _held(folder)
    try:
        return _opened(folder), lock
    except BaseException:
        lock.close()
        raise


def identity(folder: Path) -> tuple[int, int] | None:
    """Return the identity of the database file: a folder may be moved away, and another may take its name."""
    try:
        found = (folder / _NAME).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def check(db: sqlite3.Connection, folder: Path, *, whole: bool = False) -> None:
    """Refuse a database that does not belong to a store of this version; raises the same errors as `to_read`,
    and SQLite's errors if it cannot be read.
    """
    try:
        (found,) = db.execute("PRAGMA user_version").fetchone()
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        _heed(error)
        raise _no_store(folder / _NAME, error) from None
    if found != VERSION:
        raise InputError(f"{folder}: found a store of version {found}; allowed: version {VERSION}")
    with _in_proportion(db, folder / _NAME):
        integrity.check_database(db, folder / _NAME, _objects(), whole=whole)


@cache
def _objects() -> integrity.Objects:
    """Objects in our stores, as listed by SQLite."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(f"{_SCHEMA}{integrity.FILES};")
        return integrity.objects(db)


@contextmanager
def _in_proportion(db: sqlite3.Connection, database: Path) -> Iterator[None]:
    """Stop a query that takes more steps than a file of this size can need, as when pages refer to each other in a
    loop.
    """
    try:
        pages, size = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        _heed(error)
        raise _no_store(database, error) from None
    left: int = 1000 + pages * size * MOST_STEPS // STEPS

    def look() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    db.set_progress_handler(look, STEPS)
    try:
        yield
    except sqlite3.OperationalError:
        if left < 0:
            raise integrity.of_database(database, "its pages have no end") from None
        raise
    finally:
        db.set_progress_handler(_look, STEPS)


MOST_STEPS = 200
"""Limit on steps per byte of the database during the check; a sound database takes fewer than 20."""


def _look() -> bool:
    """Do nothing: calling it gives Python an opportunity to handle signals."""
    return False


def _heed(error: Exception) -> None:
    """Raise KeyboardInterrupt if Ctrl-C ended the query; SQLite does not pass it on."""
    if isinstance(error, sqlite3.OperationalError) and str(error) == INTERRUPTED:
        raise KeyboardInterrupt from None


INTERRUPTED = "interrupted"
"""SQLite's error message for an interrupted query."""


def _connected(database: str | Path, *, timeout: float, uri: bool = False) -> sqlite3.Connection:
    """Connect to a database of unknown origin: nothing in its schema is trusted, and Ctrl-C ends each query."""
    db = sqlite3.connect(database, isolation_level=None, timeout=timeout, uri=uri)
    db.set_progress_handler(_look, STEPS)
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA cell_size_check = ON")
    return db


def rows(db: sqlite3.Connection, folder: Path, query: str, *values: object) -> list[tuple[Any, ...]]:
    """Return the rows of a query on an open database. Some damage only becomes apparent during a query; raises
    the same errors as `to_read`.
    """
    try:
        return db.execute(query, values).fetchall()
    except sqlite3.OperationalError as error:
        _heed(error)
        raise UnavailableError(f"{folder / _NAME}: cannot be read ({error})") from None
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise integrity.of_database(folder / _NAME, str(error)) from None


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Context manager for a transaction: either all its changes are made, or none."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise


@contextmanager
def durable(db: sqlite3.Connection) -> Iterator[None]:
    """Context manager for a transaction that is on disk when it ends, because later steps such as renaming and removing
    files rely on it.
    """
    db.execute("PRAGMA synchronous = FULL")
    try:
        with transaction(db):
            yield
    finally:
        db.execute("PRAGMA synchronous = NORMAL")


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Report disk errors in one line; the store stays unchanged."""
    try:
        yield
    except (OSError, sqlite3.DatabaseError) as error:
        _heed(error)
        if "malformed" in str(error):
            raise integrity.of_database(folder / _NAME, str(error)) from None
        raise StoreError(f"{folder}: cannot be written ({reason(error)}); what was done is kept") from None
    except Exception as error:
        if type(error).__module__.startswith("polars"):  # Polars hides the system's message
            raise StoreError(f"{folder}: cannot be written ({reason(error)}); what was done is kept") from None
        raise


def is_held(folder: Path) -> bool:
    """Return whether a process is writing to the store."""
    place = folder / "lock.sqlite"
    if not place.is_file():
        return False
    with closing(_connected(f"{_own(place).resolve().as_uri()}?mode=ro", uri=True, timeout=0)) as lock:
        try:
            lock.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.DatabaseError as error:
            return "locked" in str(error)
    return False


def set_aside(folder: Path) -> list[str]:
    """Move aside, under other names, a damaged database and the parts known only to it.

    Returns
    -------
    list of str
        Moved files and their new names.
    """
    moved = []
    for name in ("state.sqlite", "state.sqlite-wal", "state.sqlite-shm", "data"):
        place = folder / name
        if not place.exists():
            continue
        number = next(n for n in range(1, 10**6) if not (folder / f"{name}.damaged-{n}").exists())
        aside = folder / f"{name}.damaged-{number}"
        place.replace(aside)
        moved.append(f"{place} is now {aside.name}")
    return moved


def quick_check(folder: str | Path) -> bool:
    """Return whether the database is sound."""
    with closing(_connected(_own(Path(folder) / _NAME), timeout=5)) as db:
        return bool(db.execute("PRAGMA integrity_check").fetchone() == ("ok",))


def _opened(folder: Path) -> sqlite3.Connection:
    data = folder / "data"
    for one in (data, *data.glob("*"), *data.glob("*/*")):
        if one.is_symlink():
            raise InputError(f"{one}: found a link; allowed: a folder of the store's own, or none")
    db = _connected(_own(folder / _NAME), timeout=30)
    try:
        fresh = not db.execute("SELECT 1 FROM sqlite_master").fetchone()
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        fresh = False  # the error is reported below
    if not fresh:
        check(db, folder)
    db.execute("PRAGMA journal_mode = WAL")
    # A power loss may undo a commit, but never only part of one. Commits of parts are durable (`durable`).
    db.execute("PRAGMA synchronous = NORMAL")
    if fresh:
        with transaction(db):
            for statement in (*_SCHEMA.strip().split(";\n"), integrity.FILES):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {VERSION}")
    return db


def _read_only(database: Path) -> sqlite3.Connection:
    """Open a database in a read-only folder. SQLite has to know that nothing can change there."""
    where = _own(database).resolve().as_uri()
    for options in ("mode=ro", "mode=ro&immutable=1"):
        db = _connected(f"{where}?{options}", uri=True, timeout=30)
        try:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            db.close()
            _heed(error)
            continue
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            db.close()
            raise _no_store(database, error) from None
        return db
    raise InputError(f"{database}: cannot be read")


def _no_store(database: Path, error: Exception) -> AckclockError:
    """Return the error for a folder that is not a store. A database with damaged pages or a damaged schema used to be
    one; its schema may not be text (UnicodeDecodeError).
    """
    if "malformed" in str(error) or isinstance(error, UnicodeDecodeError):
        return integrity.of_database(database, str(error))
    return InputError(f"{database}: found no store ({error})")


def _check_foreign(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: found a file; allowed: a new folder, or that of a sweep")
    if folder.is_dir() and not (folder / _NAME).exists() and any(folder.iterdir()):
        held = sorted(p.name for p in folder.iterdir() if p.name != "lock.sqlite")
        if held:
            raise InputError(
                f"{folder}: found {held[0]}, which no sweep has written; allowed: a new folder, or that of a sweep"
            )


def _own(path: Path) -> Path:
    """Open the store's own database: SQLite would follow a link, and create a missing file."""
    if path.is_symlink():
        raise InputError(f"{path}: found a link; allowed: a file of the store's own, or none")
    return path


def _held(folder: Path) -> sqlite3.Connection:
    """Return a lock that is held until the process ends for any reason."""
    # wait a moment, because `is_held` may briefly hold the lock
    lock = _connected(_own(folder / "lock.sqlite"), timeout=0.2)
    try:
        lock.execute("PRAGMA journal_mode = MEMORY")
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        lock.close()
        _heed(error)
        if "locked" in str(error):
            raise StoreError(f"{folder}: another session is writing here; wait for it, or use another --out") from None
        raise
    except sqlite3.DatabaseError:  # no longer a database: it cannot be locked, and it is empty
        lock.close()
        (folder / "lock.sqlite").unlink()
        return _held(folder)
    return lock
