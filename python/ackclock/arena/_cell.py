"""Process for user code in the arena: it is fenced, loads one controller, is sealed (`_seal`), then runs tasks to the
end.

A controller in C or Rust is compiled before the fence is put up, without being run. Afterwards only files that it
declared, or that it read during inspection, can be read, so the judge's command line (with its salt) and folder
are out of reach.

The judge shares this process with code that may try to forge its own report, so some abilities of Python are removed.
Every function called after loading was bound beforehand, in the closure of a thread that no object refers to; a
function that user code has replaced is therefore never called. An audit hook refuses access to frames and foreign
objects, and during loading the creation of processes. Compiled code and `ctypes` still share the process's memory.

References: PEP 578 (audit hooks); https://docs.python.org/3/library/audit_events.html.
"""

from __future__ import annotations

import _thread
import binascii
import json.encoder
import marshal
import os
import pickle
import resource
import signal
import struct
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ackclock import _engine, _wall, own
from ackclock._reads import listen
from ackclock.arena import _seal
from ackclock.errors import AckclockError, UnavailableError
from ackclock.own import OwnClass

MEMORY = 2**30
"""Memory that user code and its runs may use in addition to what the process uses when it is sealed, bytes."""

ALWAYS = (
    "gc.get_objects", "gc.get_referents", "gc.get_referrers", "sys._current_exceptions", "sys._current_frames", "sys.addaudithook", "sys.setprofile", "sys.settrace",
)  # fmt: skip
"""Audit events that are refused once user code is loaded, because they give access to foreign objects."""

PROCESSES = (
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
    "os.system",
    "pty.spawn",
    "subprocess.Popen",
)
"""Calls that are also refused in Python because they create unsealed processes. A controller compiled here
needs a compiler and is exempt.
"""

LATER = ("sys._getframe",)
"""Calls that are refused in runs but not during imports, when many modules inspect their importer."""

FRAMES = ("ag_frame", "cr_frame", "gi_frame", "tb_frame")
"""Attributes that lead to frames, refused from the start: the frame of a generator stored during loading would lead to
the judge's frames during a run.
"""

RESUMED = 0x20 | 0x80 | 0x200
"""Flags of code objects whose frames are resumed later: generators, coroutines, asynchronous generators."""

COPIES = 4
"""Number of copies of a Python module for repeated runs, so that connections share no module variables."""

REACHED: dict[str, Callable[..., Any]] = {}
"""Functions called by runs if the guard "reach" is off; user code can then replace them."""

SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/opt", "/nix", "/etc", "/dev/null", "/dev/urandom")
"""Folders that contain the system's libraries and their data files."""

OF_OTHERS = frozenset({"proc", "sys", "dev", "run"})
"""Folders that describe other processes."""

THREADS = "own code: found {} of its threads after it was loaded; allowed: none"


def serve(tasks: str, answers: str, page: str, again: str, guards: str, looks: str, place: str) -> None:
    """Load the user code, seal the process, and run tasks until there are none left."""
    sys.argv[:], sys.orig_argv[:] = [""], [""]  # hides this process's purpose
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _seal.end_with_parent()  # a thread watching the parent would have to sleep, which the filter refuses
    if int(page) >= 0:
        _wall.Page(int(page)).use(watches=not _seal.can())
    _other_load(bool(int(again)))
    given, back = int(tasks), int(answers)
    try:
        owned, read = pickle.loads(_heard(given) or b"")  # from the trusted parent, before user code is loaded
        apart = bool(int(again)) and "apart" in guards
        if int(looks):
            _written(back, json.dumps(_looked(owned[0], Path(place), guards)).encode())
            return
        bounded = _bound() if "memory" in guards else lambda: None
        wrong = _fenced(owned, read, Path(place), fenced="fence" in guards, apart=apart)
        box: list[Any] = []
        ready, never = _thread.allocate_lock(), _thread.allocate_lock()
        ready.acquire()
        never.acquire()
        _thread.start_new_thread(
            _worker(given, back, guards, box, ready, bounded, compiled=any(one.is_compiled for one in owned)), ()
        )
        try:
            if wrong is not None:
                raise wrong
            box.append(_loaded(owned, apart=apart))
        except AckclockError as error:
            box.append("unavailable" if error.exit_code == UnavailableError.exit_code else "refused")
            box.append(str(error))
        ready.release()
        never.acquire()
    except BaseException:  # user code may have changed anything in this process, so a traceback proves nothing
        os._exit(1)


def _fenced(
    owned: Sequence[OwnClass], read: Sequence[str], place: Path, *, fenced: bool, apart: bool
) -> AckclockError | None:
    """Compile the user code and put up the fence; returns the error if a file cannot be compiled."""
    from ackclock._files import give_leave

    give_leave()
    try:
        for one in owned:
            one.prepare(place, apart=apart)
    except AckclockError as error:
        return error
    if fenced and _seal.can():
        files = [path for one in owned for path in (one.file, *(own.remembered(one) if one.is_compiled else ()))]
        folders = [Path(one.file).parent for one in owned]
        compiled = any(one.is_compiled for one in owned)
        _seal.fence([*_installed(), place, *files, *read], folders=folders, compiled=compiled)
    return None


def _installed() -> list[str]:
    """Return the folders of the system, the interpreter with its libraries, and this package."""
    folders = {sys.prefix, sys.base_prefix, sys.exec_prefix, *(p for p in sys.path if "-packages" in Path(p).name)}
    return [*SYSTEM, *folders, str(Path(_seal.__file__).parent.parent)]


def _worker(
    given: int, back: int, guards: str, box: list[Any], ready: Any, bounded: Callable[[], None], *, compiled: bool
) -> Callable[[], None]:
    """Return the function that runs tasks once the user code is sealed. Everything that it calls is bound in it."""
    run, opened, packed, length = _engine.run_each, marshal.loads, struct.pack, struct.unpack
    read, write, ended, clock, threads = os.read, os.write, os._exit, time.thread_time, _thread._count
    base64, quoted, number, text_of = binascii.b2a_base64, json.encoder.encode_basestring_ascii, float.__repr__, str
    size, failures = len, (ValueError, RuntimeError)
    parts: dict[str, Callable[..., Any]] = {
        "task": opened,
        "columns": base64,
        "shut": _seal.prepared(reads=given, writes=back) if "seal" in guards and _seal.can() else lambda: None,
    }
    late: list[bool] = []
    if "reach" in guards:
        _watched(late, ALWAYS if compiled else (*ALWAYS, *PROCESSES))
    else:
        REACHED.update(parts)
        parts = REACHED

    def whole(count: int) -> bytes | None:
        text = b""
        while size(text) < count:
            part = read(given, count - size(text))
            if not part:
                return None
            text += part
        return text

    def say(text: str) -> None:
        rest = text.encode()
        rest = packed("<Q", size(rest)) + rest
        while rest:
            rest = rest[write(back, rest) :]

    def words(values: Any) -> str:
        return "[" + ",".join(["null" if v is None else quoted(text_of(v)) for v in values]) + "]"

    def columns(found: Any) -> str:
        made = []
        for name, (kind, value) in found.items():
            inner = words(value) if kind == "str" else quoted(parts["columns"](value).decode().rstrip("\n"))
            made.append(f"{quoted(name)}:[{quoted(kind)},{inner}]")
        return "{" + ",".join(made) + "}"

    def answer(token: str, digests: Any, errors: Any, metrics: str, tables: str, cpu_s: float) -> str:
        return (
            f'{{"token":{quoted(token)},"digests":{words(digests)},"errors":{words(errors)},"metrics":{metrics},"tables":{tables},'
            f'"cpu_s":{number(cpu_s)}}}'
        )

    def failed(token: str, count: int, why: str) -> str:
        return answer(token, [None] * count, [why] * count, "{}", "{}", 0.0)

    def made(task: Any, classes: Any) -> str:
        token, texts, runs, metrics, tables, budget_s, memory, limit_s = task
        started = clock()
        try:
            raw = run(texts, runs, metrics, tables, budget_s, memory, None, classes, limit_s)
        except failures as error:
            return failed(token, size(runs), text_of(error))
        found = ",".join([f"{quoted(name)}:{columns(held)}" for name, held in raw["tables"].items()])
        cpu_s = clock() - started
        return answer(token, raw["digests"], raw["errors"], columns(raw["metrics"]), "{" + found + "}", cpu_s)

    def work() -> None:
        try:
            ready.acquire()
            why = box[1] if size(box) > 1 else ""
            others = threads() - 1
            bounded()
            parts["shut"]()
            late.append(True)
            while (head := whole(8)) is not None:
                text = whole(length("<Q", head)[0])
                if text is None:
                    break
                task = parts["task"](text)
                if why:
                    say(f"{{{quoted(box[0])}:{quoted(text_of(why))}}}")
                elif others > 0 and "reach" in guards:
                    say(failed(task[0], size(task[2]), THREADS.format(others)))
                else:
                    say(made(task, box[0]))
            ended(0)
        finally:
            ended(1)

    return work


def _watched(late: list[bool], events: Sequence[str]) -> None:
    """Refuse access to frames, foreign objects and other processes."""
    always, later, frames, refused, resumed = (
        frozenset(events),
        frozenset(LATER),
        frozenset(FRAMES),
        PermissionError,
        RESUMED,
    )

    def goes_on(frame: Any) -> bool:
        while frame is not None:
            if frame.f_code.co_flags & resumed:
                return True
            frame = frame.f_back
        return False

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if (
            event in always
            or (event == "object.__getattr__" and arguments[1] in frames)
            or (event in later and (late or goes_on(arguments[0])))
        ):
            raise refused(f"found {event}; allowed in the arena: nothing that leads to objects of others")

    listen()  # through a separate hook, before further hooks are refused
    sys.addaudithook(hook)


def _looked(one: OwnClass, place: Path, guards: str) -> dict[str, Any]:
    try:
        from ackclock._agents.controllers import check
        from ackclock._files import give_leave

        give_leave()
        one.prepare(place, apart=one.name.endswith(".rs") and "apart" in guards)
        if "fence" in guards and _seal.can():
            # files read here are recorded and may be read again by runs
            anywhere = [entry.path for entry in os.scandir("/") if entry.name not in OF_OTHERS]
            _seal.fence([*anywhere, place], compiled=one.is_compiled)
        check(one.load(), closed_loop=False)
        planned = one.planned()
        return {"whole": planned.whole, "read": own.remembered(one)}
    except AckclockError as error:
        return {"refused": f"{Path(one.file).name}: {error}" if one.file not in str(error) else str(error)}


def _loaded(owned: Sequence[OwnClass], *, apart: bool) -> Mapping[str, Any]:
    """Load the code and create one instance, so that imports made in the constructor are included."""
    from ackclock._files import give_leave

    give_leave()
    made = own.classes(owned)
    if apart:
        made |= {one.key: one.copies(COPIES) for one in owned if not one.is_compiled}
    for one in owned:
        if not one.is_compiled:
            for _ in range(COPIES if apart else 1):
                with suppress(Exception):  # the run reports errors in the file
                    made[one.key]()
    return made


def _heard(given: int) -> bytes | None:
    """Return the parent's next message; None at the end."""
    text = b""
    size = 8
    while len(text) < size:
        part = os.read(given, size - len(text))
        if not part:
            return None
        text += part
        if size == 8 and len(text) == 8:
            size += struct.unpack("<Q", text)[0]
    return text[8:]


def _written(back: int, text: bytes) -> None:
    text = struct.pack("<Q", len(text)) + text
    while text:
        text = text[os.write(back, text) :]


def _other_load(again: bool) -> None:
    if not again:
        return
    with suppress(OSError, AttributeError):
        os.nice(10)
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def _bound() -> Callable[[], None]:
    """Return a function that limits memory to its current size plus `MEMORY`."""
    read, limited, sets, what, page, wrong, whole = (
        os.pread, resource.getrlimit, resource.setrlimit, resource.RLIMIT_DATA, os.sysconf("SC_PAGE_SIZE"), (OSError, ValueError, IndexError), int,
    )  # fmt: skip
    try:
        about = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)  # the fence hides /proc later
    except OSError:
        return lambda: None

    def bound() -> None:
        try:
            has = whole(read(about, 1000, 0).split()[5]) * page
            sets(what, (has + MEMORY, limited(what)[1]))
        except wrong:
            pass

    return bound
