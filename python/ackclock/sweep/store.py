"""Stores runs: one folder with a database for the state of each run, and Parquet files for the results.

Layout:

    state.sqlite                    recipes, runs and their states, parts, sweeps and their members
    data/<recipe>/runs/part-*.parquet       one row per run: key, scenario, seed, digest, metrics
    data/<recipe>/<table>/part-*.parquet    rows of a stored table: key, seed, its columns
    sweeps/<name>/                  the sweep as a file, its cells, and its results

A part is written under a temporary name (`.tmp`), then recorded in the database together with the new state of its
runs, then renamed; each step is on disk before the next. A file with its final name is therefore part of the store.
If a process is killed at any moment, the next one either finishes the renaming or finds runs that must still be made.
Module `database` opens the database, module `parts` writes and finds the Parquet files.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock._files import remove_parts
from ackclock.sweep import database, integrity, parts
from ackclock.sweep.database import StoreError
from ackclock.sweep.integrity import DamagedError

if TYPE_CHECKING:
    import polars as pl

PENDING, RUNNING, DONE, FAILED = "pending", "running", "done", "failed"
STATES = (PENDING, RUNNING, DONE, FAILED)

COMPACT_ABOVE = 8
"""Number of parts of one recipe above which they are merged when a sweep ends."""


class Store:
    """A folder of runs. One process writes; any number may read.

    Parameters
    ----------
    folder
        Folder, created if absent when `write` is set.
    write
        Whether runs will be added. Damaged parts are then discarded: `lost` lists them, and their runs are pending.
    again
        Whether to start afresh in a folder whose database was moved aside.

    Raises
    ------
    InputError
        If the folder is not a store, or cannot be used.
    StoreError
        If another process is writing to it.
    """

    def __init__(self, folder: str | Path, *, write: bool = False, again: bool = False) -> None:
        self.folder = Path(folder)
        self.lost: list[str] = []
        self._lock: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        if not write:
            self._db = database.to_read(self.folder)
            return
        with self.explained():
            self._db, self._lock = database.to_write(self.folder, again=again)
            self._file = database.identity(self.folder)
            self._recover()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Unlock the folder."""
        with suppress(sqlite3.Error):
            self._db.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # Runs to be made

    def plan(
        self, recipe: str, keys: Sequence[bytes], scenarios: Sequence[str], seeds: Sequence[int], engine: str
    ) -> tuple[list[int], list[str]]:
        """Record runs that are not in the store yet.

        Parameters
        ----------
        recipe
            Data kept of them.
        keys, scenarios, seeds
            Key, scenario hash and seed of each run.
        engine
            Version of the engine.

        Returns
        -------
        tuple of lists
            Number of each run, and its state, in the order given.
        """
        with self._transaction():
            number = self._recipe(recipe)
            hashes = sorted(set(scenarios))
            self._db.executemany("INSERT OR IGNORE INTO scenarios (hash) VALUES (?)", ((h,) for h in hashes))
            ids = dict(self._db.execute("SELECT hash, id FROM scenarios"))
            found, states = self._known(number, keys)
            (first_new,) = self._db.execute("SELECT coalesce(max(id), 0) + 1 FROM runs").fetchone()

            # Inserted row by row, without a list of tuples: ten thousand tuples would trigger a garbage collection
            # that takes longer than SQLite.
            def new() -> Iterator[tuple[int, bytes, int, int, int, str]]:
                for at, (key, scenario, seed) in enumerate(zip(keys, scenarios, seeds, strict=True), first_new):
                    if found.setdefault(key, at) == at:
                        yield at, key, number, ids[scenario], seed, engine

            self._db.executemany(
                "INSERT INTO runs (id, key, recipe, scenario, seed, engine) VALUES (?, ?, ?, ?, ?, ?)", new()
            )
            return [found[key] for key in keys], [states.get(key, PENDING) for key in keys]

    def adopt(self, sweep: str, recipe: str, runs: Sequence[int], *, anew: bool) -> None:
        """Record which runs belong to a sweep. Runs of another engine are removed, because a table contains runs of
        only one engine. `anew` removes all former members.
        """
        with self._transaction():
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
        """Mark runs as started."""
        with self._transaction():
            self._db.executemany(
                "UPDATE runs SET state = 'running', attempts = attempts + 1 WHERE id BETWEEN ? AND ?", _stretches(runs)
            )

    def release(self, runs: Sequence[int]) -> None:
        """Unmark runs that were handed out but not started."""
        with self._transaction():
            self._db.executemany(
                "UPDATE runs SET state = 'pending', attempts = attempts - 1 WHERE id BETWEEN ? AND ?", _stretches(runs)
            )

    def retry(self, runs: Sequence[int]) -> None:
        """Mark failed runs as missing, so that they are made again."""
        with self._transaction():
            self._db.executemany(
                "UPDATE runs SET state = 'pending', error = NULL WHERE id = ? AND state = 'failed'",
                ((run,) for run in runs),
            )

    def commit(
        self, recipe: str, done: Sequence[int], tables: Mapping[str, pl.DataFrame], failed: Mapping[int, str]
    ) -> None:
        """Store the data and the new states of runs, either for all of them or for none.

        Parameters
        ----------
        recipe
            Data kept of them.
        done
            Runs whose rows are in `tables`.
        tables
            Name -> rows; "runs" among them.
        failed
            Run -> reason.
        """
        with self.explained():
            self._check_there()
            number = self._recipe(recipe)
            part = self._next_part()
            kept = {name: frame for name, frame in tables.items() if done and frame.width}
            with parts.written(self.folder, number, part, kept) as files, self._durable():
                if done:
                    self._db.execute("INSERT INTO parts VALUES (?, ?, ?, 1)", (part, number, len(done)))
                    integrity.note(self._db, part, files)
                    self._db.executemany(
                        "UPDATE runs SET state = 'done', error = NULL, part = ? WHERE id BETWEEN ? AND ?",
                        ((part, *ends) for ends in _stretches(done)),
                    )
                self._db.executemany(
                    "UPDATE runs SET state = 'failed', error = ? WHERE id = ?",
                    ((why, run) for run, why in failed.items()),
                )
            parts.give_names(files.values())

    def compact(self, recipe: str, *, above: int = COMPACT_ABOVE) -> None:
        """Merge a recipe's parts into one if there are more than `above`."""
        with self.explained():
            self._check_there()
            number = self._recipe(recipe)
            old = [
                p for (p,) in self._db.execute("SELECT id FROM parts WHERE recipe = ? AND live ORDER BY id", (number,))
            ]
            if len(old) <= above:
                return
            part = self._next_part()
            gone = [f for p in old for f in parts.files(self.folder, number, p)]
            names = sorted({f.parent.name for f in gone})
            tables = {name: parts.scan([f for f in gone if f.parent.name == name]) for name in names}
            with parts.written(self.folder, number, part, tables) as files, self._durable():
                marks = ",".join("?" * len(old))
                (rows,) = self._db.execute(f"SELECT sum(rows) FROM parts WHERE id IN ({marks})", old).fetchone()
                self._db.execute("INSERT INTO parts VALUES (?, ?, ?, 1)", (part, number, rows))
                integrity.note(self._db, part, files)
                self._db.execute(f"UPDATE parts SET live = 0 WHERE id IN ({marks})", old)
                self._db.execute(f"UPDATE runs SET part = ? WHERE part IN ({marks})", [part, *old])
            # Old parts are removed first: a concurrent reader then sees an earlier state, but no run twice.
            parts.remove(gone)
            parts.give_names(files.values())
            with database.transaction(self._db):
                self._db.execute("DELETE FROM parts WHERE recipe = ? AND NOT live", (number,))
                self._db.execute("DELETE FROM files WHERE part NOT IN (SELECT id FROM parts)")

    def suspects(self, runs: Sequence[int], after: int) -> set[int]:
        """Return runs started at least `after` times without an outcome."""
        rows = self._db.execute("SELECT id FROM runs WHERE state = 'pending' AND attempts >= ?", (after,))
        return {run for (run,) in rows}.intersection(runs)

    # Stored runs

    def read(self, recipe: str, table: str = "runs", *, keys: Sequence[str] | None = None) -> pl.DataFrame:
        """Return rows of a table, for all runs stored under this recipe or for the runs with these keys. While
        another process is writing, the rows of complete commits are returned.

        Raises
        ------
        DamagedError
            If a file is missing or was changed.
        """
        import polars as pl

        before = None
        for attempt in range(20):
            rows = self._rows(
                "SELECT p.id, r.id FROM parts p JOIN recipes r ON r.id = p.recipe WHERE r.recipe = ? AND p.live ORDER BY p.id",
                recipe,
            )
            said = ""
            try:
                files = []
                for part, number in rows:
                    place = parts.there(self.folder, number, table, part)
                    why = integrity.wrong(self._db, part, table, place)
                    if why is not None:
                        said = f"{parts.place(self.folder, number, table, part)}: {why}"
                        break
                    if place is not None:
                        files.append(place)
                if not said:
                    if not files:
                        return pl.DataFrame()
                    scanned = parts.scan(files)
                    if keys is not None:
                        scanned = scanned.filter(pl.col("key").is_in(list(keys)))
                    return scanned.collect()
            except (FileNotFoundError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
                said = f"{self.folder}: {str(error).partition(chr(10))[0]}"
            # Another process may have merged parts in the meantime; an unchanged list shows that it has not.
            if rows == before and attempt > 2:
                break
            before = rows
        raise DamagedError(f"{said}; `ackclock sweep run` or `sweep check {self.folder} --repair` makes its runs again")

    def check(self) -> list[integrity.Damage]:
        """Return the damaged parts. A damaged database, including damaged indices, raises DamagedError."""
        database.check(self._db, self.folder, whole=True)
        return integrity.damaged(self._db, self.folder)

    def missing(self) -> list[integrity.Damage]:
        """Return the parts with a missing file or a file of the wrong size, without reading any of them."""
        try:
            return integrity.damaged(self._db, self.folder, by_sum=False)
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise integrity.of_database(self.folder / "state.sqlite", str(error)) from None

    def sweeps(self) -> list[str]:
        """Return the names of the sweeps in this folder."""
        return [name for (name,) in self._rows("SELECT name FROM sweeps ORDER BY id")]

    def counts(self, sweep: str) -> dict[str, int]:
        """Return the number of runs in a sweep by state."""
        found = dict(
            self._rows(
                "SELECT r.state, count(*) FROM sweeps s JOIN members m ON m.sweep = s.id JOIN runs r ON r.id = m.run "
                "WHERE s.name = ? GROUP BY r.state",
                sweep,
            )
        )
        return {state: found.get(state, 0) for state in STATES}

    def failures(self, sweep: str, most: int = 10) -> list[tuple[str, int, str]]:
        """Return failed runs of a sweep: hash of the scenario, seed, error."""
        rows = self._rows(
            "SELECT c.hash, r.seed, CAST(r.error AS BLOB) FROM sweeps s JOIN members m ON m.sweep = s.id "
            "JOIN runs r ON r.id = m.run JOIN scenarios c ON c.id = r.scenario "
            "WHERE s.name = ? AND r.state = 'failed' ORDER BY r.id LIMIT ?",
            sweep,
            most,
        )
        # any text is possible, because the file may have been altered
        return [(scenario, seed, (error or b"").decode(errors="replace")) for scenario, seed, error in rows]

    def member_keys(self, sweep: str) -> list[str]:
        """Return the keys of the finished runs of a sweep."""
        rows = self._rows(
            "SELECT lower(hex(r.key)) FROM sweeps s JOIN members m ON m.sweep = s.id JOIN runs r ON r.id = m.run "
            "WHERE s.name = ? AND r.state = 'done'",
            sweep,
        )
        return [key for (key,) in rows]

    def members(self, sweep: str) -> dict[str, list[int]]:
        """Return the seeds of a sweep's runs, by the hash of their scenario."""
        rows = self._rows(
            "SELECT c.hash, r.seed FROM sweeps s JOIN members m ON m.sweep = s.id JOIN runs r ON r.id = m.run "
            "JOIN scenarios c ON c.id = r.scenario WHERE s.name = ? ORDER BY r.id",
            sweep,
        )
        found: dict[str, list[int]] = {}
        for scenario, seed in rows:
            found.setdefault(scenario, []).append(seed)
        return found

    # Internals

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        return database.rows(self._db, self.folder, query, *values)

    def _recipe(self, text: str) -> int:
        found = self._db.execute("SELECT id FROM recipes WHERE recipe = ?", (text,)).fetchone()
        if found is None:
            return int(self._db.execute("INSERT INTO recipes (recipe) VALUES (?)", (text,)).lastrowid or 0)
        return int(found[0])

    def _known(self, recipe: int, keys: Sequence[bytes]) -> tuple[dict[bytes, int], dict[bytes, str]]:
        """Return the number and state of the runs in the database."""
        (held,) = self._db.execute("SELECT count(*) FROM runs WHERE recipe = ?", (recipe,)).fetchone()
        if held <= 4 * len(keys):  # one query for all runs is ten times as fast as one per run
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

    def _recover(self) -> None:
        """Finish or undo steps begun by a killed process."""
        state = {(r, p): live for p, r, live in self._db.execute("SELECT id, recipe, live FROM parts")}
        for file, recipe, part, unnamed in parts.found(self.folder):
            live = state.get((recipe, part))
            if live and unnamed:
                parts.give_names([file])
            elif live == 0 or (live is None and unnamed):  # merged into another part, or never recorded
                file.unlink()
        remove_parts(self.folder.resolve().parent)  # left behind by the check that a folder can be created
        for place in (self.folder / "sweeps").glob("*"):
            if place.is_dir() and not place.is_symlink():
                remove_parts(place)
        with database.transaction(self._db):
            self._db.execute("DELETE FROM parts WHERE NOT live")
            self._db.execute("DELETE FROM files WHERE part NOT IN (SELECT id FROM parts)")
            self._db.execute("UPDATE runs SET state = 'pending' WHERE state = 'running'")
        damages = integrity.damaged(self._db, self.folder)
        for damage in damages:
            if damage.is_unreadable:
                raise StoreError(f"{damage}: nothing was discarded; what was done is kept")
        for damage in damages:
            with database.transaction(self._db):
                self._db.execute("UPDATE runs SET state = 'pending', part = NULL WHERE part = ?", (damage.part,))
                self._db.execute("DELETE FROM parts WHERE id = ?", (damage.part,))
                self._db.execute("DELETE FROM files WHERE part = ?", (damage.part,))
            parts.remove(parts.files(self.folder, damage.recipe, damage.part))
            self.lost.append(str(damage))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self.explained(), database.transaction(self._db):
            yield
            self._check_there()

    @contextmanager
    def _durable(self) -> Iterator[None]:
        with self.explained(), database.durable(self._db):
            yield
            self._check_there()

    def _check_there(self) -> None:
        """Refuse to write if the store has been moved: files would end up beside a database that does not list them, or
        in another store.
        """
        if database.identity(self.folder) != self._file:
            raise StoreError(
                f"{self.folder}: cannot be written (it was moved, removed or made anew since it was opened); what was done went with it"
            )

    def explained(self) -> AbstractContextManager[None]:
        """Context manager that reports disk errors in one line; the store stays unchanged."""
        return database.explained(self.folder)


def _stretches(runs: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and last number of each contiguous range: runs handed out together were planned together."""
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


__all__ = ["DONE", "FAILED", "PENDING", "RUNNING", "STATES", "Store", "StoreError"]
