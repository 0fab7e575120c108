"""The process of own code in the arena: loads one piece of it, is sealed (`_seal`), and then makes tasks until there are none.

The judge shares this process with code that may want to write its own report. Of what Python can do, these are taken from it. Whatever is called after the code has
been loaded was taken hold of before, and lies in the closure of a thread that no object leads to: a function that the code has put in another's place is never called.
An audit hook refuses ways to frames and objects of others, and while it is loaded other processes. Code that is compiled, and `ctypes`, share memory all the same.

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
from typing import Any

from ackclock import _engine, _wall, own
from ackclock._reads import listen
from ackclock.arena import _seal
from ackclock.errors import AckclockError, UnavailableError
from ackclock.own import OwnClass

MEMORY = 2**30
"""Bytes that own code, with the runs it is in, may take beyond what its process has when it is sealed."""

ALWAYS = (
    "gc.get_objects", "gc.get_referents", "gc.get_referrers", "sys._current_exceptions", "sys._current_frames", "sys.addaudithook", "sys.setprofile", "sys.settrace",
)  # fmt: skip
"""Events of audit that are refused as soon as own code is loaded: ways to objects of others."""

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
"""Calls that Python is refused as well, because they make processes that are not sealed. A controller that has to be
compiled needs a compiler.
"""

LATER = ("sys._getframe",)
"""Calls that are refused in runs; while modules are loaded, many look who imports them."""

FRAMES = ("ag_frame", "cr_frame", "gi_frame", "tb_frame")
"""Attributes that lead to frames."""

REACHED: dict[str, Callable[..., Any]] = {}
"""Functions that runs call, where the guard "reach" is off: own code can change them."""

THREADS = "own code: found {} of its threads after it was loaded; allowed: none"


def serve(tasks: str, answers: str, page: str, again: str, guards: str, looks: str) -> None:
    """Load, seal, and make tasks until there are none."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _seal.end_with_parent()  # a thread that looks for the parent would have to sleep, which the filter refuses
    if int(page) >= 0:
        _wall.Page(int(page)).use(watches=not _seal.can())
    _other_load(bool(int(again)))
    given, back = int(tasks), int(answers)
    try:
        owned = pickle.loads(_heard(given) or b"")  # from our own parent, before any own code is here
        if int(looks):
            _written(back, json.dumps(_looked(owned[0])).encode())
            return
        box: list[Any] = []
        ready, never = _thread.allocate_lock(), _thread.allocate_lock()
        ready.acquire()
        never.acquire()
        _thread.start_new_thread(_worker(given, back, guards, box, ready, compiled=owned[0].is_compiled), ())
        try:
            box.append(_loaded(owned))
        except AckclockError as error:
            box.append("unavailable" if error.exit_code == UnavailableError.exit_code else "refused")
            box.append(str(error))
        ready.release()
        never.acquire()
    except BaseException:  # own code can have done anything to this process, and a traceback is no answer
        os._exit(1)


def _worker(given: int, back: int, guards: str, box: list[Any], ready: Any, *, compiled: bool) -> Callable[[], None]:
    """Function that makes the tasks, once own code is in the box. All that it calls is held here."""
    run, opened, packed, length = _engine.run_each, marshal.loads, struct.pack, struct.unpack
    read, write, ended, clock, threads = os.read, os.write, os._exit, time.thread_time, _thread._count
    base64, quoted, number, text_of = binascii.b2a_base64, json.encoder.encode_basestring_ascii, float.__repr__, str
    size, failures = len, (ValueError, RuntimeError)
    parts: dict[str, Callable[..., Any]] = {
        "task": opened,
        "columns": base64,
        "shut": _seal.prepared(reads=given, writes=back) if "seal" in guards and _seal.can() else lambda: None,
    }
    bounded = _bound() if "memory" in guards else lambda: None
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
    """Refuse what leads to frames, to objects of others and to other processes."""
    always, later, frames, refused = frozenset(events), frozenset(LATER), frozenset(FRAMES), PermissionError

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in always or (late and (event in later or (event == "object.__getattr__" and arguments[1] in frames))):
            raise refused(f"found {event}; allowed in the arena: nothing that leads to objects of others")

    listen()  # by a hook of its own, before there can be no more
    sys.addaudithook(hook)


def _looked(one: OwnClass) -> dict[str, Any]:
    try:
        from ackclock._agents.controllers import check
        from ackclock._files import give_leave

        give_leave()
        check(one.load(), closed_loop=False)
        planned = one.planned()
        return {"whole": planned.whole, "read": own.remembered(one)}
    except AckclockError as error:
        from pathlib import Path

        return {"refused": f"{Path(one.file).name}: {error}" if one.file not in str(error) else str(error)}


def _loaded(owned: Sequence[OwnClass]) -> Mapping[str, Any]:
    """The code, with one instance made: what a class imports then it has, too."""
    from ackclock._files import give_leave

    give_leave()
    made = own.classes(owned)
    for one in owned:
        if not one.is_compiled:
            with suppress(Exception):  # the run says what is wrong with it
                made[one.key]()
    return made


def _heard(given: int) -> bytes | None:
    """The next text of the parent."""
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
    """No more memory than when it is called, and so much more."""
    open_, limited, sets, what, page, wrong = (
        open, resource.getrlimit, resource.setrlimit, resource.RLIMIT_DATA, os.sysconf("SC_PAGE_SIZE"), (OSError, ValueError, IndexError),
    )  # fmt: skip

    def bound() -> None:
        try:
            with open_("/proc/self/statm", encoding="ascii") as file:
                has = int(file.read().split()[5]) * page
            sets(what, (has + MEMORY, limited(what)[1]))
        except wrong:
            pass

    return bound
