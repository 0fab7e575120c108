"""Runs user code in processes that each load one controller, are sealed, and run tasks until stopped (`_cell`). Three
rules are stricter than in other commands (`_wall`, `sweep.apart`). A process loads a single entry's code. Replies are
text and numbers, not objects that could execute code when decoded. Memory is limited to its size after loading
plus a fixed amount.
"""

from __future__ import annotations

import base64
import json
import marshal
import os
import pickle
import secrets
import select
import shutil
import signal
import struct
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock import _child, _engine, _wall, own
from ackclock.arena import _seal
from ackclock.errors import InputError, UnavailableError, shown
from ackclock.own import OwnClass
from ackclock.sweep.executors import Threads
from ackclock.sweep.task import Done, Task, compute, engine_identity, needed

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST = 3
"""Maximum number of processes that a thread keeps, one for each controller."""

GUARDS = "seal memory reach fence apart"

WALL_S = 120.0
"""Maximum wall-clock time of a run, s, because user code may sleep, which takes no CPU time."""

WHOLE_S = 1e9
"""Budget value that marks a search task, which needs all of its runs: if one ends the process, all have failed."""

FORGED = "own code: found an answer that no run gives"

GIVEN_UP = 8
"""Number of successive processes ended by the same user code after which none of its runs are started."""

_here = threading.local()
"""Each thread's processes."""
_deaths: dict[str, int] = {}
"""User code and kind of run -> number of processes ended since its last successful run."""


class Sealed(Threads):
    """Threads of this process, each with its own sealed processes for user code.

    Parameters
    ----------
    jobs
        Number of threads.
    again
        Whether to make the runs under a different load: one per task, in lowest-priority processes that share one CPU.
    guards
        Active guards: "fence" (barrier during loading), "seal" (filter during runs), "memory" (its limit), "reach"
        (objects that Python code may access), and "apart" (in repeated runs connections share no variables). Tests
        remove some of them.
    """

    def __init__(self, jobs: int, *, again: bool = False, guards: str = GUARDS) -> None:
        self._kept: set[_Process] = set()
        super().__init__(jobs, work=partial(self._made, again=again, guards=guards))
        if again:
            self.target_s = 0.0

    def close(self) -> None:
        """Discard queued tasks, and end the processes."""
        super().close()
        for child in list(self._kept):
            child.kill()
        self._pool.shutdown(wait=True)
        for child in list(self._kept):
            child.end()

    def _made(self, task: Task, *, again: bool, guards: str) -> Done:
        return _made(task, again=again, guards=guards, kept=self._kept, stop=self._stop)


def _made(task: Task, *, again: bool, guards: str, kept: set[_Process], stop: _engine.Stop) -> Done:
    """Make a task's runs."""
    if again:
        task = replace(task, engine=needed(engine_identity(), task.texts))
    if not task.own:
        return compute(replace(task, apart=False), stop=stop)
    names = "; ".join(sorted(one.key for one in task.own))
    which = f"{names} {again} {guards}"
    count = len(task.runs)
    while not stop.is_set():
        if _deaths.get(which, 0) >= GIVEN_UP:
            why = f"not started: own code ended the {GIVEN_UP} processes before"
            return _failed(len(task.runs), why)
        child = _process(which, task.own, kept, again=again, guards=guards)
        done, why = child.make(replace(task, runs=task.runs[:count]))
        if done is not None:
            _deaths.pop(which, None)
            return done
        _ended(_children().pop(which), kept)
        if count == 1 or task.budget_s >= WHOLE_S:
            _deaths[which] = _deaths.get(which, 0) + 1
            return _failed(count, why)
        count = (count + 1) // 2
    return Done(digests=[], errors=[], metrics={}, tables={}, cpu_s=0.0)


def _ended(child: _Process, kept: set[_Process]) -> None:
    kept.discard(child)
    child.end()


def _failed(count: int, why: str) -> Done:
    return Done(digests=[None] * count, errors=[why] * count, metrics={}, tables={}, cpu_s=0.0)


def _children() -> dict[str, _Process]:
    if not hasattr(_here, "children"):
        _here.children = {}
    return _here.children  # type: ignore[no-any-return]


def _process(which: str, owned: Sequence[OwnClass], kept: set[_Process], *, again: bool, guards: str) -> _Process:
    known = _children()
    if which not in known:
        while len(known) >= MOST:
            _ended(known.pop(next(iter(known))), kept)
        known[which] = _Process(owned, again=again, guards=guards)
        kept.add(known[which])
    return known[which]


class _Process:
    """A process that runs one controller's tasks."""

    def __init__(
        self, owned: Sequence[OwnClass], *, again: bool = False, guards: str = GUARDS, looks: bool = False
    ) -> None:
        self._filters = sum(wall in guards.split() for wall in ("fence", "seal")) if _seal.can() else 0
        self._looked = False
        page = os.memfd_create("ackclock-calls") if hasattr(os, "memfd_create") else -1
        if page >= 0:
            os.ftruncate(page, _wall.SIZE)
        self._page = _wall.Page(page)
        theirs_in, self._tasks = os.pipe()
        self._answers, theirs_out = os.pipe()
        given = [one for one in (theirs_in, theirs_out, page) if one >= 0]
        self._place = tempfile.mkdtemp(prefix="ackclock-")
        words = [str(one) for one in (theirs_in, theirs_out, page, int(again), guards, int(looks), self._place)]
        command = _child.python("ackclock.arena._cell:serve", *words, leave=True)
        try:
            self._process = _child.start(command, leave=True, pass_fds=given, start_new_session=True)
        finally:
            for one in given:
                os.close(one)
        # files read during inspection may be read again
        self._send(
            pickle.dumps((tuple(owned), [] if looks else [path for one in owned for path in own.remembered(one)]))
        )

    def make(self, task: Task) -> tuple[Done | None, str]:
        """Return the outcome of a task, or the reason why there is none."""
        token = secrets.token_hex(16)
        tables = [(name, None if columns is None else tuple(columns)) for name, columns in task.tables]
        what = (token, task.texts, task.runs, task.metrics, tables, task.budget_s, task.memory, task.limit_s)
        self._send(marshal.dumps(what))
        try:
            said, why = self.hear(WALL_S * len(task.runs))
        except InputError as error:
            # if code passed inspection but fails to load here, its runs have failed; other runs continue
            return _failed(len(task.runs), str(error)), ""
        if said is None:
            return None, why
        if said.get("token") != token:
            return None, FORGED
        if self._filters and not self._looked:
            if not _seal.shut(self._process.pid, self._filters):
                return None, "own code: found a filter less around its process; allowed: those that are put there"
            self._looked = True
        return _read(said, len(task.runs)), ""

    def hear(self, most_s: float = 600.0) -> tuple[Mapping[str, Any] | None, str]:
        """Return the next reply, or the reason why there is none."""
        said = b""
        until = time.monotonic() + most_s
        while True:
            if time.monotonic() > until:
                return (
                    None,
                    f"{self._page.where() or 'own code'}: found no end after {most_s:g} s of wall time; allowed: {WALL_S:g} s a run",
                )
            if select.select([self._answers], [], [], _wall.TICK_S / 5)[0]:
                part = os.read(self._answers, 2**20)
                if not part:
                    return None, self._died()
                said += part
                if len(said) >= 8 and len(said) >= 8 + struct.unpack_from("<Q", said)[0]:
                    return _answer(said[8:]), ""
            elif stuck := self._page.stuck(_wall.TICK_S / 5):
                return None, _wall.endless(stuck)

    def _send(self, text: bytes) -> None:
        text = struct.pack("<Q", len(text)) + text
        with suppress(BrokenPipeError):
            while text:
                text = text[os.write(self._tasks, text) :]

    def _died(self) -> str:
        with suppress(_child.TimeoutExpired):
            self._process.wait(timeout=10)
        code = self._process.returncode or 0
        said = _wall.ended(self._page, b"", code)
        if code == -signal.SIGSYS:
            said = f"{self._page.where() or 'own code'}: found a call of the system, which ended the process; allowed: threads while it is loaded, memory after that"
        return said

    def kill(self) -> None:
        """Kill the process while its thread is waiting for it; the thread then notices."""
        self._process.kill()

    def end(self) -> None:
        """Kill the process, and close its pipes."""
        self._process.kill()
        self._process.wait()
        for one in (self._tasks, self._answers):
            with suppress(OSError):
                os.close(one)
        shutil.rmtree(self._place, ignore_errors=True)  # because of the fence, the process cannot remove it


def _answer(text: bytes) -> Mapping[str, Any]:
    """Check a reply before use, because user code may have forged it."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError(FORGED)
    if "refused" in found:
        raise InputError(shown(str(found["refused"]))[:1000])
    if "unavailable" in found:
        raise UnavailableError(shown(str(found["unavailable"]))[:1000])
    return found


def _read(said: Mapping[str, Any], most: int) -> Done:
    def opened(columns: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
        return {
            str(name): (str(kind), [str(v) for v in value] if kind == "str" else base64.b64decode(value))
            for name, (kind, value) in columns.items()
        }

    try:
        digests = [None if d is None else str(d) for d in said["digests"]]
        errors = [None if e is None else str(e) for e in said["errors"]]
        if len(digests) != len(errors) or len(digests) > most:
            raise ValueError("another number of runs")
        return Done(
            digests=digests, errors=errors, metrics=opened(said["metrics"]), cpu_s=float(said["cpu_s"]),
            tables={str(name): opened(columns) for name, columns in said["tables"].items()},
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError(FORGED) from None


def look(one: OwnClass, *, guards: str = GUARDS) -> None:
    """Determine, in another process, which files the user code reads. The judging process itself never runs user code.

    Raises
    ------
    InputError, UnavailableError
        If user code cannot be loaded, or is not a valid controller.
    """
    child = _Process([one], looks=True, guards=guards)
    try:
        said, why = child.hear()
    finally:
        child.end()
    if said is None:
        raise InputError(why)
    try:
        whole = str(said["whole"])
        read = {str(path): None if was is None else str(was) for path, was in said["read"].items()}
    except (KeyError, TypeError, AttributeError):
        raise InputError(FORGED) from None
    for path in read if "fence" in guards else ():
        if folder := next((p for p in Path(path).parents if (p / "arena.json").exists()), None):
            raise InputError(
                f"{Path(one.file).name}: found that it reads {path}; allowed: no file of a table of the arena ({folder})"
            )
    own.remember(one, whole, read)
