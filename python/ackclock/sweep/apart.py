"""Makes runs in child processes: suspect runs, which may have ended a process before, and all runs of user code.

User code may end its process, or never return (`_wall`). Each thread that makes such runs therefore has a child
process, which lives until a run ends it. That run counts as failed, and the others continue in the next child. The
child runs `serve`. Tasks and outcomes cross two pipes, so that user code has standard input and output to itself.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import struct
import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ackclock import _child, _wall
from ackclock.errors import AckclockError, InputError, UnavailableError

if TYPE_CHECKING:
    from ackclock import _engine
    from ackclock.sweep.task import Done, Task

SUSPECT_AFTER = 2
"""Number of attempts without an outcome after which a run is made in a child process, so that another crash ends only
that process.
"""

GIVEN_UP = 8
"""Number of successive processes ended by the same user code after which none of its runs are started."""

_here = threading.local()
"""Each thread's child process."""
_serves = False
_deaths: dict[tuple[str, ...], int] = {}
"""User code -> number of processes ended since its last successful run."""


def wanted(task: Task) -> bool:
    """Return whether the task must be made in a child process."""
    return not _serves and (task.apart or bool(task.own) or bool(task.libraries))


def compute_apart(task: Task, stop: _engine.Stop | None) -> Done:
    """Make a task's runs in a child process. If a single run ends the process, that run has failed. If the
    process dies during several runs, only the first half is made; the others are handed out again.
    """
    from ackclock.sweep.task import Done

    codes = tuple(sorted({*(one.key for one in task.own), *(one.digest for one in task.libraries)}))
    count = len(task.runs)
    while True:
        if codes and _deaths.get(codes, 0) >= GIVEN_UP:
            why = f"not started: own code ended the {GIVEN_UP} processes before"
            return Done(
                digests=[None] * len(task.runs), errors=[why] * len(task.runs), metrics={}, tables={}, cpu_s=0.0
            )
        done, why = _made(replace(task, runs=task.runs[:count], apart=False), stop, lasts=not task.apart)
        if done is not None:
            _deaths.pop(codes, None)
            return done
        if stop is not None and stop.is_set():
            return Done(digests=[], errors=[], metrics={}, tables={}, cpu_s=0.0)
        if count == 1:
            _deaths[codes] = _deaths.get(codes, 0) + 1
            if task.apart:
                why = f"the process that made it died three times ({why} at last)"
            return Done(digests=[None], errors=[why], metrics={}, tables={}, cpu_s=0.0)
        count = (count + 1) // 2


def _made(task: Task, stop: _engine.Stop | None, *, lasts: bool) -> tuple[Done | None, str]:
    """Return the outcome of a task, or the cause of the process's death; this thread's child `lasts` beyond the task."""
    child = getattr(_here, "child", None) if lasts else None
    if child is None:
        child = _Child()
    _here.child = None
    try:
        done, why = child.make(task, stop)
        if done is not None and lasts:
            _here.child, child = child, None
    finally:
        if child is not None:
            child.end()
    return done, why


class _Child:
    """A process for running tasks."""

    def __init__(self) -> None:
        page = os.memfd_create("ackclock-calls") if hasattr(os, "memfd_create") else -1
        if page >= 0:
            os.ftruncate(page, _wall.SIZE)
        self._page = _wall.Page(page)
        theirs_in, self._tasks = os.pipe()
        self._answers, theirs_out = os.pipe()
        given = [one for one in (theirs_in, theirs_out, page) if one >= 0]
        command = _child.python(
            "ackclock.sweep.apart:serve",
            str(theirs_in),
            str(theirs_out),
            str(page),
            leave=True,
            loads=["ackclock.sweep.task"],
        )
        try:
            self._process = _child.start(command, leave=True, pass_fds=given, start_new_session=True)
        finally:
            for one in given:
                os.close(one)

    def make(self, task: Task, stop: _engine.Stop | None) -> tuple[Done | None, str]:
        """Return the outcome of a task, or the reason why there is none."""
        self._owns = bool(task.own or task.libraries)
        text = pickle.dumps(task)
        with suppress(BrokenPipeError):
            _write(self._tasks, struct.pack("<Q", len(text)) + text)
        said = b""
        while True:
            if stop is not None and stop.is_set():
                return None, ""
            if select.select([self._answers], [], [], _wall.TICK_S / 5)[0]:
                part = os.read(self._answers, 2**20)
                if not part:
                    return None, self._died()
                said += part
                if len(said) >= 8 and len(said) >= 8 + struct.unpack_from("<Q", said)[0]:
                    return _opened(pickle.loads(said[8:])), ""  # from a trusted child
            elif stuck := self._page.stuck(_wall.TICK_S / 5):
                return None, _wall.endless(stuck)

    def _died(self) -> str:
        with suppress(_child.TimeoutExpired):
            self._process.wait(timeout=10)
        code = self._process.returncode or 0
        return _wall.ended(self._page, b"", code) if self._owns else _wall.how(code)

    def end(self) -> None:
        """Kill the child process."""
        for one in (self._tasks, self._answers):
            with suppress(OSError):
                os.close(one)
        self._process.kill()
        self._process.wait()

    def __del__(self) -> None:
        if getattr(self, "_process", None) is not None and self._process.returncode is None:
            self.end()


def _write(file: int, text: bytes) -> None:
    while text:
        text = text[os.write(file, text) :]


def _opened(answer: tuple[str, Any]) -> Done:
    kind, value = answer
    if kind == "done":
        return value  # type: ignore[no-any-return]
    if kind == "unavailable":
        raise UnavailableError(value)
    raise InputError(value)


def serve(tasks: str, answers: str, page: str) -> None:
    """Run incoming tasks until the pipe is closed."""
    global _serves  # noqa: PLW0603 - this process does nothing else
    _serves = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if int(page) >= 0:
        _wall.Page(int(page)).use()
    try:
        _serve(int(tasks), int(answers))
    except BaseException:  # user code may have changed anything in this process, so a traceback proves nothing
        os._exit(1)


def _serve(tasks: int, answers: int) -> None:
    from ackclock.sweep.task import compute

    with os.fdopen(tasks, "rb") as given, os.fdopen(answers, "wb") as back:
        while len(head := given.read(8)) == 8:
            task = pickle.loads(given.read(struct.unpack("<Q", head)[0]))
            answer: tuple[str, Any]
            try:
                answer = "done", compute(task)
            except AckclockError as error:
                answer = "unavailable" if error.exit_code == UnavailableError.exit_code else "refused", str(error)
            text = pickle.dumps(answer)
            back.write(struct.pack("<Q", len(text)) + text)
            back.flush()
