"""Where runs are kept: one folder, a database for the state of each run, Parquet files for what the runs left.

Layout:

    state.sqlite                    recipes, runs and their states, parts, sweeps and their members
    data/<recipe>/runs/part-*.parquet       one row per run: key, scenario, seed, digest, metrics
    data/<recipe>/<table>/part-*.parquet    rows of a table that is kept: key, seed, its columns
    sweeps/<name>/                  the sweep as a file, its cells, and what was made of it

A part is written under another name (`.tmp`), then entered into the database together with the new state of its runs, then
given its name. So a file that has its name is part of the store, and whatever moment a process is killed at, the next
one either finishes the renaming or finds runs that still have to be made.

Length: the protocol of commit and recovery is one argument, and its steps are read together.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ackclock._files import reason
from ackclock.errors import InputError, UnavailableError
from ackclock.sweep import integrity
from ackclock.sweep.integrity import PART, DamagedError

if TYPE_CHECKING:
    import polars as pl

VERSION = 1
"""Of the layout."""

PENDING, RUNNING, DONE, FAILED = "pending", "running", "done", "failed"
STATES = (PENDING, RUNNING, DONE, FAILED)

COMPACT_ABOVE = 8
"""Parts of one recipe from which they are merged when a sweep ends."""

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


class StoreError(UnavailableError):
    """The store cannot be written any more: no space, no permission, another session."""


class Store:
    """A folder of runs. One process writes, any number read.

    Parameters
    ----------
    folder
        Created if absent, if it is to be written.
    write
        Whether runs will be added. What is damaged is put right then: `lost` says what, and its runs are pending.
    again
        Begin anew in a folder whose database was set aside.

    Raises
    ------
    InputError
        If the folder is no store, or cannot be used.
    StoreError
        If another process writes into it.
    """

    def __init__(self, folder: str | Path, *, write: bool = False, again: bool = False) -> None:
        self.folder = Path(folder)
        self.lost: list[str] = []
        self._lock: sqlite3.Connection | None = None
        database = self.folder / "state.sqlite"
        if not write:
            if not database.is_file():
                raise InputError(
                    f"{self.folder}: found no sweep; allowed: a folder that `ackclock sweep run` has written"
                )
            self._db = _open_to_read(database)
            self._check_version()
            integrity.check_database(self._db, database)
            return
        with self.explained():
            if not again:
                _check_foreign(self.folder)
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):  # of which SQLite would say less
                pass
            self._lock = _locked(self.folder)
            self._db = sqlite3.connect(_own(database), isolation_level=None, timeout=30)
            try:
                fresh = not self._db.execute("SELECT 1 FROM sqlite_master").fetchone()
            except (sqlite3.DatabaseError, UnicodeDecodeError):
                fresh = False  # what is wrong is said below
            if not fresh:
                self._check_version()
                integrity.check_database(self._db, database)
            self._db.execute("PRAGMA journal_mode = WAL")
            # A commit may be lost with the power, but never half of one; the runs are then made again.
            self._db.execute("PRAGMA synchronous = NORMAL")
            if fresh:
                with self._transaction():
                    for statement in _SCHEMA.strip().split(";\n"):
                        self._db.execute(statement)
                    self._db.execute(f"PRAGMA user_version = {VERSION}")
            self._db.execute(integrity.FILES)
            self._recover()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the folder."""
        with suppress(sqlite3.Error):
            self._db.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # What is to be run

    def plan(
        self, recipe: str, keys: Sequence[bytes], scenarios: Sequence[str], seeds: Sequence[int], engine: str
    ) -> tuple[list[int], list[str]]:
        """Enter runs that are not known yet.

        Parameters
        ----------
        recipe
            What is kept of them.
        keys, scenarios, seeds
            Of each run: its key, the hash of its scenario, its seed.
        engine
            Version.

        Returns
        -------
        tuple of lists
            Number of each run, and its state, in the order given.
        """
        with self.explained(), self._transaction():
            number = self._recipe(recipe)
            hashes = sorted(set(scenarios))
            self._db.executemany("INSERT OR IGNORE INTO scenarios (hash) VALUES (?)", ((h,) for h in hashes))
            ids = dict(self._db.execute("SELECT hash, id FROM scenarios"))
            found, states = self._known(number, keys)
            (first_new,) = self._db.execute("SELECT coalesce(max(id), 0) + 1 FROM runs").fetchone()

            # Row by row, no tuple kept: ten thousand of them would set off the garbage collector for longer than SQLite takes.
            def new() -> Iterator[tuple[int, bytes, int, int, int, str]]:
                for at, (key, scenario, seed) in enumerate(zip(keys, scenarios, seeds, strict=True), first_new):
                    if found.setdefault(key, at) == at:
                        yield at, key, number, ids[scenario], seed, engine

            self._db.executemany(
                "INSERT INTO runs (id, key, recipe, scenario, seed, engine) VALUES (?, ?, ?, ?, ?, ?)", new()
            )
            return [found[key] for key in keys], [states.get(key, PENDING) for key in keys]

    def adopt(self, sweep: str, recipe: str, runs: Sequence[int], *, anew: bool) -> None:
        """Say which runs belong to a sweep.

        Those of another engine no longer do: a table holds the runs of one. `anew` forgets all that belonged to it before.
        """
        with self.explained(), self._transaction():
            number = self._recipe(recipe)
            self._db.execute("INSERT OR IGNORE INTO sweeps (name, recipe) VALUES (?, ?)", (sweep, number))
            (at,) = self._db.execute("SELECT id FROM sweeps WHERE name = ?", (sweep,)).fetchone()
            self._db.execute("UPDATE sweeps SET recipe = ? WHERE id = ?", (number, at))
            if anew:
                self._db.execute("DELETE FROM members WHERE sweep = ?", (at,))
            elif runs:
                self._db.execute(
                    "DELETE FROM members WHERE sweep = ? AND run IN "
                    "(SELECT id FROM runs WHERE engine <> (SELECT engine FROM runs WHERE id = ?))",
                    (at, runs[0]),
                )
            self._db.executemany(
                "INSERT OR IGNORE INTO members SELECT ?, id FROM runs WHERE id BETWEEN ? AND ?",
                ((at, *ends) for ends in _stretches(runs)),
            )

    def claim(self, runs: Sequence[int]) -> None:
        """Mark runs as being made."""
        with self.explained(), self._transaction():
            self._db.executemany(
                "UPDATE runs SET state = 'running', attempts = attempts + 1 WHERE id BETWEEN ? AND ?", _stretches(runs)
            )

    def release(self, runs: Sequence[int]) -> None:
        """Take the mark back: these runs were handed out, but not begun."""
        with self.explained(), self._transaction():
            self._db.executemany(
                "UPDATE runs SET state = 'pending', attempts = attempts - 1 WHERE id BETWEEN ? AND ?", _stretches(runs)
            )

    def retry(self, runs: Sequence[int]) -> None:
        """Let failed runs be made again."""
        with self.explained(), self._transaction():
            self._db.executemany(
                "UPDATE runs SET state = 'pending', error = NULL WHERE id = ? AND state = 'failed'",
                ((run,) for run in runs),
            )

    def commit(
        self, recipe: str, done: Sequence[int], tables: Mapping[str, pl.DataFrame], failed: Mapping[int, str]
    ) -> None:
        """Keep what runs left, and their new states: all of it or nothing.

        Parameters
        ----------
        recipe
            What was kept of them.
        done
            Runs whose rows are in `tables`.
        tables
            Name -> rows; "runs" among them.
        failed
            Run -> why.
        """
        with self.explained():
            number = self._recipe(recipe)
            part = self._next_part()
            files: list[Path] = []
            try:
                if done:
                    files = self._write(number, part, tables)
                with self._transaction():
                    if done:
                        self._db.execute("INSERT INTO parts VALUES (?, ?, ?, 1)", (part, number, len(done)))
                        integrity.note(self._db, part, {file.parent.name: file for file in files})
                        self._db.executemany(
                            "UPDATE runs SET state = 'done', error = NULL, part = ? WHERE id BETWEEN ? AND ?",
                            ((part, *ends) for ends in _stretches(done)),
                        )
                    self._db.executemany(
                        "UPDATE runs SET state = 'failed', error = ? WHERE id = ?",
                        ((why, run) for run, why in failed.items()),
                    )
            except BaseException:
                for file in files:
                    file.unlink(missing_ok=True)
                raise
            _give_names(files)

    def compact(self, recipe: str, *, above: int = COMPACT_ABOVE) -> None:
        """Merge the parts of a recipe into one, if there are more than `above`."""
        with self.explained():
            number = self._recipe(recipe)
            old = [
                p for (p,) in self._db.execute("SELECT id FROM parts WHERE recipe = ? AND live ORDER BY id", (number,))
            ]
            if len(old) <= above:
                return
            part = self._next_part()
            names = sorted({f.parent.name for p in old for f in self._files(number, p)})
            files: list[Path] = []
            gone = [f for p in old for f in self._files(number, p)]
            try:
                for name in names:
                    place = self._place(number, name, part)
                    files.append(_tmp(place))
                    sources = [f for f in gone if f.parent.name == name]
                    _scan(sources).sink_parquet(_tmp(place), compression="zstd")
                    _sync(_tmp(place))
                with self._transaction():
                    marks = ",".join("?" * len(old))
                    (rows,) = self._db.execute(f"SELECT sum(rows) FROM parts WHERE id IN ({marks})", old).fetchone()
                    self._db.execute("INSERT INTO parts VALUES (?, ?, ?, 1)", (part, number, rows))
                    integrity.note(self._db, part, {file.parent.name: file for file in files})
                    self._db.execute(f"UPDATE parts SET live = 0 WHERE id IN ({marks})", old)
                    self._db.execute(f"UPDATE runs SET part = ? WHERE part IN ({marks})", [part, *old])
            except BaseException:
                for file in files:
                    file.unlink(missing_ok=True)
                raise
            # First away with the old ones: who reads in between sees an earlier state, but no run twice.
            for file in gone:
                file.unlink(missing_ok=True)
            _give_names(files)
            with self._transaction():
                self._db.execute("DELETE FROM parts WHERE recipe = ? AND NOT live", (number,))
                self._db.execute("DELETE FROM files WHERE part NOT IN (SELECT id FROM parts)")

    def suspects(self, runs: Sequence[int], after: int) -> set[int]:
        """Those of the runs that were begun so often, and have no outcome."""
        rows = self._db.execute("SELECT id FROM runs WHERE state = 'pending' AND attempts >= ?", (after,))
        return {run for (run,) in rows}.intersection(runs)

    # What there is

    def read(self, recipe: str, table: str = "runs", *, keys: Sequence[str] | None = None) -> pl.DataFrame:
        """Rows of a table of all runs that were kept under this recipe, or of the runs with these keys.

        May be called while another process writes: what it sees is a whole number of commits.

        Raises
        ------
        DamagedError
            If a file is gone or is not as it was written.
        """
        import polars as pl

        before = None
        for attempt in range(20):
            rows = self._db.execute(
                "SELECT p.id, r.id FROM parts p JOIN recipes r ON r.id = p.recipe WHERE r.recipe = ? AND p.live ORDER BY p.id",
                (recipe,),
            ).fetchall()
            said = ""
            try:
                files = []
                for part, number in rows:
                    place = self._there(number, table, part)
                    why = integrity.wrong(self._db, part, table, place)
                    if why is not None:
                        said = f"{self._place(number, table, part)}: {why}"
                        break
                    if place is not None:
                        files.append(place)
                if not said:
                    if not files:
                        return pl.DataFrame()
                    scanned = _scan(files)
                    if keys is not None:
                        scanned = scanned.filter(pl.col("key").is_in(list(keys)))
                    return scanned.collect()
            except (FileNotFoundError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
                said = f"{self.folder}: {str(error).partition(chr(10))[0]}"
            # Another process may have merged parts meanwhile; where the list is the same as before, it has not.
            if rows == before and attempt > 2:
                break
            before = rows
        raise DamagedError(f"{said}; `ackclock sweep run` or `sweep check {self.folder} --repair` makes its runs again")

    def check(self) -> list[integrity.Damage]:
        """The parts that are not as they were written."""
        return integrity.damaged(self._db, self.folder)

    def sweeps(self) -> list[str]:
        """Names of the sweeps in this folder."""
        return [name for (name,) in self._db.execute("SELECT name FROM sweeps ORDER BY id")]

    def counts(self, sweep: str) -> dict[str, int]:
        """How many runs of a sweep are in each state."""
        found = dict(
            self._db.execute(
                "SELECT r.state, count(*) FROM sweeps s JOIN members m ON m.sweep = s.id JOIN runs r ON r.id = m.run "
                "WHERE s.name = ? GROUP BY r.state",
                (sweep,),
            ).fetchall()
        )
        return {state: found.get(state, 0) for state in STATES}

    def failures(self, sweep: str, most: int = 10) -> list[tuple[str, int, str]]:
        """Failed runs of a sweep: hash of the scenario, seed, error."""
        return self._db.execute(
            "SELECT c.hash, r.seed, r.error FROM sweeps s JOIN members m ON m.sweep = s.id JOIN runs r ON r.id = m.run "
            "JOIN scenarios c ON c.id = r.scenario WHERE s.name = ? AND r.state = 'failed' ORDER BY r.id LIMIT ?",
            (sweep, most),
        ).fetchall()

    def member_keys(self, sweep: str) -> list[str]:
        """Keys of the finished runs of a sweep."""
        rows = self._db.execute(
            "SELECT lower(hex(r.key)) FROM sweeps s JOIN members m ON m.sweep = s.id JOIN runs r ON r.id = m.run "
            "WHERE s.name = ? AND r.state = 'done'",
            (sweep,),
        )
        return [key for (key,) in rows]

    def members(self, sweep: str) -> dict[str, list[int]]:
        """Seeds of the runs of a sweep, by the hash of their scenario."""
        rows = self._db.execute(
            "SELECT c.hash, r.seed FROM sweeps s JOIN members m ON m.sweep = s.id JOIN runs r ON r.id = m.run "
            "JOIN scenarios c ON c.id = r.scenario WHERE s.name = ? ORDER BY r.id",
            (sweep,),
        )
        found: dict[str, list[int]] = {}
        for scenario, seed in rows:
            found.setdefault(scenario, []).append(seed)
        return found

    # Inside

    def _recipe(self, text: str) -> int:
        found = self._db.execute("SELECT id FROM recipes WHERE recipe = ?", (text,)).fetchone()
        if found is None:
            return int(self._db.execute("INSERT INTO recipes (recipe) VALUES (?)", (text,)).lastrowid or 0)
        return int(found[0])

    def _known(self, recipe: int, keys: Sequence[bytes]) -> tuple[dict[bytes, int], dict[bytes, str]]:
        """Number and state of those of the runs that are in the database."""
        (held,) = self._db.execute("SELECT count(*) FROM runs WHERE recipe = ?", (recipe,)).fetchone()
        if held <= 4 * len(keys):  # all of them by one query: ten times as fast as one by one
            rows: Iterable[tuple[bytes, int, str]] = self._db.execute(
                "SELECT key, id, state FROM runs WHERE recipe = ?", (recipe,)
            )
        else:
            rows = (
                row
                for key in keys
                for row in self._db.execute(
                    "SELECT key, id, state FROM runs WHERE recipe = ? AND key = ?", (recipe, key)
                )
            )
        found: dict[bytes, int] = {}
        states: dict[bytes, str] = {}
        for key, number, state in rows:
            found[key], states[key] = number, state
        return found, states

    def _next_part(self) -> int:
        return int(self._db.execute("SELECT coalesce(max(id), 0) + 1 FROM parts").fetchone()[0])

    def _place(self, recipe: int, table: str, part: int) -> Path:
        return self.folder / "data" / str(recipe) / table / f"part-{part:06}.parquet"

    def _there(self, recipe: int, table: str, part: int) -> Path | None:
        """The file of a part, which may be about to get its name."""
        place = self._place(recipe, table, part)
        return next((p for p in (place, _tmp(place), place) if p.exists()), None)

    def _files(self, recipe: int, part: int) -> list[Path]:
        folder = self.folder / "data" / str(recipe)
        tables = sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []
        places = [self._place(recipe, name, part) for name in tables]
        return [place for place in places if place.exists() and self._is_ours(place)]

    def _is_ours(self, file: Path) -> bool:
        """It lies where its path says: no link in a folder that somebody sent leads to files of another's."""
        return file.resolve() == self.folder.resolve() / file.relative_to(self.folder)

    def _write(self, recipe: int, part: int, tables: Mapping[str, pl.DataFrame]) -> list[Path]:
        files: list[Path] = []
        try:
            for name, frame in tables.items():
                if not frame.width:
                    continue
                place = self._place(recipe, name, part)
                place.parent.mkdir(parents=True, exist_ok=True)
                files.append(_tmp(place))
                frame.write_parquet(_tmp(place), compression="zstd")
                _sync(_tmp(place))
        except BaseException:
            for file in files:
                file.unlink(missing_ok=True)
            raise
        return files

    def _recover(self) -> None:
        """Finish or undo what a killed process left."""
        state = {(r, p): live for p, r, live in self._db.execute("SELECT id, recipe, live FROM parts")}
        for file in sorted((self.folder / "data").glob("*/*/part-*")):
            named, recipe = PART.fullmatch(file.name), file.parent.parent.name
            if named is None or not recipe.isdecimal() or not file.is_file() or not self._is_ours(file):
                continue  # not ours
            live = state.get((int(recipe), int(named[1])))
            if live and named[2]:
                file.replace(file.with_suffix(""))
            elif live == 0 or (live is None and named[2]):  # merged into another; never entered
                file.unlink()
        for rest in (self.folder / "sweeps").glob("*/.ackclock-*"):
            shutil.rmtree(rest, ignore_errors=True)
        with self._transaction():
            self._db.execute("DELETE FROM parts WHERE NOT live")
            self._db.execute("DELETE FROM files WHERE part NOT IN (SELECT id FROM parts)")
            self._db.execute("UPDATE runs SET state = 'pending' WHERE state = 'running'")
        for damage in integrity.damaged(self._db, self.folder):
            with self._transaction():
                self._db.execute("UPDATE runs SET state = 'pending', part = NULL WHERE part = ?", (damage.part,))
                self._db.execute("DELETE FROM parts WHERE id = ?", (damage.part,))
                self._db.execute("DELETE FROM files WHERE part = ?", (damage.part,))
            for file in self._files(damage.recipe, damage.part):
                file.unlink(missing_ok=True)
            self.lost.append(str(damage))

    def _check_version(self) -> None:
        try:
            (found,) = self._db.execute("PRAGMA user_version").fetchone()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise InputError(f"{self.folder}: found a state.sqlite that is no store ({error})") from None
        if found != VERSION:
            raise InputError(f"{self.folder}: found a store of version {found}; allowed: version {VERSION}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def explained(self) -> Iterator[None]:
        """What the disk refuses, in one line. The store is as it was before."""
        try:
            yield
        except (OSError, sqlite3.DatabaseError) as error:
            why = reason(error)
            raise StoreError(f"{self.folder}: cannot be written ({why}); what was done is kept") from None
        except Exception as error:
            if type(error).__module__.startswith("polars"):  # which does not say what the system said
                raise StoreError(f"{self.folder}: cannot be written ({reason(error)}); what was done is kept") from None
            raise


def _stretches(runs: Sequence[int]) -> list[tuple[int, int]]:
    """First and last number of each unbroken stretch: what is handed out together was planned together."""
    found: list[tuple[int, int]] = []
    begin = last = -1
    for run in sorted(runs):
        if run > last + 1 or begin < 0:
            if begin >= 0:
                found.append((begin, last))
            begin = run
        last = run
    if begin >= 0:
        found.append((begin, last))
    return found


def _scan(files: Sequence[Path]) -> pl.LazyFrame:
    """Parts of a table; columns that only some of them have (a controller's own variables) are null in the others."""
    import polars as pl

    return pl.concat([pl.scan_parquet(file, glob=False) for file in files], how="diagonal")


def _tmp(place: Path) -> Path:
    return place.with_name(place.name + ".tmp")


def _give_names(files: Sequence[Path]) -> None:
    for file in files:
        file.replace(file.with_suffix(""))


def _sync(file: Path) -> None:
    with file.open("rb+") as opened:
        os.fsync(opened.fileno())


def _open_to_read(database: Path) -> sqlite3.Connection:
    """In a folder that cannot be written nothing can change either, and SQLite wants to be told so."""
    where = _own(database).resolve().as_uri()
    for options in ("mode=ro", "mode=ro&immutable=1"):
        db = sqlite3.connect(f"{where}?{options}", uri=True, isolation_level=None, timeout=30)
        try:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:
            db.close()
            continue
        except (
            sqlite3.DatabaseError,
            UnicodeDecodeError,
        ) as error:  # the latter in what SQLite says of a damaged schema
            db.close()
            raise InputError(f"{database}: found no store ({error})") from None
        return db
    raise InputError(f"{database}: cannot be read")


def _check_foreign(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: found a file; allowed: a new folder, or that of a sweep")
    if folder.is_dir() and not (folder / "state.sqlite").exists() and any(folder.iterdir()):
        held = sorted(p.name for p in folder.iterdir() if p.name != "lock.sqlite")
        if held:
            raise InputError(
                f"{folder}: found {held[0]}, which no sweep has written; allowed: a new folder, or that of a sweep"
            )


def _own(path: Path) -> Path:
    """A database of the store's own: SQLite would follow a link, and make what is not there."""
    if path.is_symlink():
        raise InputError(f"{path}: found a link; allowed: a file of the store's own, or none")
    return path


def _locked(folder: Path) -> sqlite3.Connection:
    """Held until the process ends, however it ends."""
    lock = sqlite3.connect(_own(folder / "lock.sqlite"), isolation_level=None, timeout=0)
    try:
        lock.execute("PRAGMA journal_mode = MEMORY")
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        lock.close()
        if "locked" in str(error):
            raise StoreError(f"{folder}: another session is writing here; wait for it, or use another --out") from None
        raise
    except sqlite3.DatabaseError:  # no database any more; nobody can hold it, and nothing is in it
        lock.close()
        (folder / "lock.sqlite").unlink()
        return _locked(folder)
    return lock


def set_aside(folder: Path) -> list[str]:
    """Put a damaged database and the parts that only it knows beside the store, under another name.

    Returns
    -------
    list of str
        What was moved, and where to.
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
    """Whether the database is sound."""
    with closing(sqlite3.connect(_own(Path(folder) / "state.sqlite"))) as db:
        return bool(db.execute("PRAGMA integrity_check").fetchone() == ("ok",))


__all__ = ["DONE", "FAILED", "PENDING", "RUNNING", "STATES", "Store", "StoreError", "quick_check"]
