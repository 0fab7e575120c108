"""Makes runs in which own code runs: in a process that loads one piece of own code, is sealed (`_seal`), and then makes tasks until it is ended.

Beside the wall of all commands (`_wall`, `sweep.apart`) three things are tighter. A process holds one entry's code and no other's. What comes back is text and
numbers, and no object whose reading could run anything. Memory is bounded beyond what the code took while it was loaded.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import select
import signal
import struct
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
from ackclock.errors import AckclockError, InputError, UnavailableError, shown
from ackclock.own import OwnClass
from ackclock.sweep.executors import Threads
from ackclock.sweep.task import Done, Task, compute, engine_identity, needed

if TYPE_CHECKING:
    from collections.abc import Sequence

MEMORY = 2**30
"""Bytes that own code, with the runs it is in, may take beyond what its process has when it is sealed."""

MOST = 3
"""Processes that a thread keeps, one for each piece of own code."""

GUARDS = "seal memory"

WALL_S = 120.0
"""Wall time of a run: own code may sleep, which takes no CPU time."""

WHOLE_S = 1e9
"""A task with this budget is one of a search, which wants all of its runs or none: if one ends the process, all have failed."""

GIVEN_UP = 8
"""Processes in a row that the same own code ended: its further runs are not started."""

_here = threading.local()
"""The processes of each thread."""
_deaths: dict[str, int] = {}
"""By own code and way of making: processes that it has ended since a run of it was made."""


class Sealed(Threads):
    """Threads of this process, each with sealed processes of its own for own code.

    Parameters
    ----------
    jobs
        How many.
    again
        Make the runs under another load: each alone in its task, in processes of least priority that share one CPU.
    guards
        "seal", the filter, and "memory", its bound; tests take them off.
    """

    def __init__(self, jobs: int, *, again: bool = False, guards: str = GUARDS) -> None:
        self._kept: set[_Process] = set()
        super().__init__(jobs, work=partial(self._made, again=again, guards=guards))
        if again:
            self.target_s = 0.0

    def close(self) -> None:
        """Forget what has not begun, and end the processes."""
        super().close()
        for child in list(self._kept):
            child.kill()
        self._pool.shutdown(wait=True)
        for child in list(self._kept):
            child.end()

    def _made(self, task: Task, *, again: bool, guards: str) -> Done:
        return _made(task, again=again, guards=guards, kept=self._kept, stop=self._stop)


def _made(task: Task, *, again: bool, guards: str, kept: set[_Process], stop: _engine.Stop) -> Done:
    """The runs of a task."""
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
    """A process that makes the tasks of one piece of own code."""

    def __init__(
        self, owned: Sequence[OwnClass], *, again: bool = False, guards: str = GUARDS, looks: bool = False
    ) -> None:
        page = os.memfd_create("ackclock-calls") if hasattr(os, "memfd_create") else -1
        if page >= 0:
            os.ftruncate(page, _wall.SIZE)
        self._page = _wall.Page(page)
        theirs_in, self._tasks = os.pipe()
        self._answers, theirs_out = os.pipe()
        given = [one for one in (theirs_in, theirs_out, page) if one >= 0]
        words = [str(one) for one in (theirs_in, theirs_out, page, int(again), guards, int(looks))]
        command = _child.python("ackclock.arena._sealed:serve", *words, leave=True)
        try:
            self._process = _child.start(command, leave=True, pass_fds=given, start_new_session=True)
        finally:
            for one in given:
                os.close(one)
        self._send(pickle.dumps(tuple(owned)))

    def make(self, task: Task) -> tuple[Done | None, str]:
        """What came back, or why nothing does."""
        what = {
            "texts": task.texts, "runs": task.runs, "metrics": task.metrics, "tables": task.tables, "budget_s": task.budget_s,
            "memory": task.memory, "limit_s": task.limit_s,
        }  # fmt: skip
        self._send(json.dumps(what).encode())
        said, why = self.hear(WALL_S * len(task.runs))
        return (None, why) if said is None else (_read(said, len(task.runs)), "")

    def hear(self, most_s: float = 600.0) -> tuple[Mapping[str, Any] | None, str]:
        """The next answer, or why there is none."""
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
            said = f"{self._page.where() or 'own code'}: found a call of the system, which ended the process; allowed after loading: memory"
        return said

    def kill(self) -> None:
        """End it while its thread waits, which then hears so."""
        self._process.kill()

    def end(self) -> None:
        """Kill it, and close its pipes."""
        self._process.kill()
        self._process.wait()
        for one in (self._tasks, self._answers):
            with suppress(OSError):
                os.close(one)


def _answer(text: bytes) -> Mapping[str, Any]:
    """An answer, which own code may have forged: it is looked at before it is used."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError("own code: found an answer that no run gives")
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
        raise InputError("own code: found an answer that no run gives") from None


def look(one: OwnClass) -> None:
    """Find out in another process what own code reads, so that this one, which judges, never runs any of it.

    Raises
    ------
    InputError, UnavailableError
        If it cannot be loaded, or does not do what a controller has to.
    """
    child = _Process([one], looks=True)
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
        raise InputError("own code: found an answer that no run gives") from None
    own.remember(one, whole, read)


def serve(tasks: str, answers: str, page: str, again: str, guards: str, looks: str) -> None:
    """Load, seal, and make tasks until there are none."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _seal.end_with_parent()  # a thread that looks for the parent would have to sleep, which the filter refuses
    if int(page) >= 0:
        _wall.Page(int(page)).use(watches=not _seal.can())
    _other_load(bool(int(again)))
    given, back = int(tasks), int(answers)
    try:
        owned = pickle.loads(_hear(given) or b"")  # from our own parent, before any own code is here
        if int(looks):
            _say(back, _looked(owned[0]))
            return
        try:
            made = _loaded(owned)
        except AckclockError as error:
            kind = "unavailable" if error.exit_code == UnavailableError.exit_code else "refused"
            while _hear(given) is not None:
                _say(back, {kind: str(error)})
            return
        if "memory" in guards:
            _bounded()
        if "seal" in guards and _seal.can():
            _seal.close(reads=given, writes=back)
        _serve(given, back, made)
    except BaseException:  # what own code has done to this process has no end, and a traceback is no answer
        os._exit(1)


def _looked(one: OwnClass) -> dict[str, Any]:
    try:
        from ackclock._agents.controllers import check
        from ackclock._files import give_leave

        give_leave()
        check(one.load(), closed_loop=False)
        planned = one.planned()
        return {"whole": planned.whole, "read": own.remembered(one)}
    except AckclockError as error:
        return {"refused": f"{Path(one.file).name}: {error}" if one.file not in str(error) else str(error)}


def _loaded(owned: Sequence[OwnClass]) -> dict[str, Any]:
    """The code, with one instance made: what a class imports then it has, too."""
    from ackclock._files import give_leave

    give_leave()
    made = own.classes(owned)
    for one in owned:
        if not one.is_compiled:
            with suppress(Exception):  # the run says what is wrong with it
                made[one.key]()
    return made


def _serve(given: int, back: int, made: Mapping[str, Any]) -> None:
    while (text := _hear(given)) is not None:
        task = json.loads(text)
        tables = [(name, None if columns is None else tuple(columns)) for name, columns in task["tables"]]
        runs = [tuple(run) for run in task["runs"]]
        started = time.thread_time()
        try:
            raw = _engine.run_each(
                task["texts"], runs, task["metrics"], tables, task["budget_s"], task["memory"], None, dict(made), task["limit_s"]
            )  # fmt: skip
        except (ValueError, RuntimeError) as error:
            _say(
                back,
                {
                    "digests": [None] * len(runs),
                    "errors": [str(error)] * len(runs),
                    "metrics": {},
                    "tables": {},
                    "cpu_s": 0.0,
                },
            )
            continue
        _say(
            back,
            {
                "digests": raw["digests"],
                "errors": raw["errors"],
                "metrics": _packed(raw["metrics"]),
                "tables": {name: _packed(columns) for name, columns in raw["tables"].items()},
                "cpu_s": time.thread_time() - started,
            },
        )


def _packed(columns: Mapping[str, tuple[str, Any]]) -> dict[str, Any]:
    return {
        name: (kind, list(value) if kind == "str" else base64.b64encode(value).decode())
        for name, (kind, value) in columns.items()
    }


def _hear(given: int) -> bytes | None:
    head = _whole(given, 8)
    return None if head is None else _whole(given, struct.unpack("<Q", head)[0])


def _whole(given: int, size: int) -> bytes | None:
    text = b""
    while len(text) < size:
        part = os.read(given, size - len(text))
        if not part:
            return None
        text += part
    return text


def _say(back: int, answer: Mapping[str, Any]) -> None:
    text = json.dumps(answer).encode()
    text = struct.pack("<Q", len(text)) + text
    while text:
        text = text[os.write(back, text) :]


def _other_load(again: bool) -> None:
    if not again:
        return
    with suppress(OSError, AttributeError):
        os.nice(10)
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def _bounded() -> None:
    """No more memory than now, and so much more."""
    import resource

    with suppress(OSError, ValueError, IndexError), open("/proc/self/statm", encoding="ascii") as file:
        has = int(file.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (has + MEMORY, hard))
