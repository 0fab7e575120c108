"""Protection from the user's own code: a small parent process waits for the command, which runs as its child. Users'
controllers, stacks and studies are programs. They may end their process (`exit(0)` in C, `os._exit`, a signal), hang,
or close its standard output. A command that may run one is therefore a child, forked before anything is loaded.
Nothing is copied back, and the terminal is shared. The last thing the child does is to write its exit code to a pipe.
If that is missing, or differs from the real exit code, the parent reports it in one line and exits with 2.

Both processes share a page of memory. The engine records there which hook of which user code each thread is running
(`crates/core/src/calls.rs`), and `doing` records what is being loaded. The parent can therefore report where a
command ended, and it kills a command if user code does not return from a call.
"""

from __future__ import annotations

import mmap
import os
import re
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes longer than the rest of this module
    from typing import Any

__all__ = [
    "Page",
    "alone",
    "behind",
    "doing",
    "ended",
    "endless",
    "forget",
    "heard",
    "limit_s",
    "needed",
    "note",
    "ran",
]

ROOMS, ROOM = 64, 128
"""Number of threads with a slot on the page, and bytes per slot; the same as in `crates/core/src/calls.rs`."""
DOING = ROOMS * ROOM
"""Offset of the text set by `doing`: a counter, then UTF-8."""
TEXT = 504
HEARD = DOING + 8 + TEXT
"""Offset of the number of signals received by the command."""
SIZE = HEARD + 8

WORD = b"ackclock answers "
LIMIT_S = 60.0
"""Maximum wall time of one call into user code, or of loading it, seconds, unless ACKCLOCK_CALL_LIMIT sets a
different limit.
"""
TICK_S = 0.5
FAILED, INTERRUPTED = 2, 130

_FILE = re.compile(r"\.(?:py:\w+|c|rs)$")
_OPTIONS = ("--own-code", "--stack", "--controller")
_ALWAYS = frozenset({"stack", "study"})
"""Commands that run third-party programs regardless of their options."""

_page: Page | None = None
_ran: list[str] = []


def needed(words: Sequence[str]) -> bool:
    """Return whether a command line may run user code.

    Examples
    --------
    >>> needed(["run", "path.toml"]), needed(["conform", "mine.rs"]), needed(["sweep", "run", "s.toml", "--own-code"])
    (False, True, True)
    """
    if not hasattr(signal, "sigtimedwait"):  # no wall on systems without `sigtimedwait`
        return False
    command = next((word for word in words if not word.startswith("-")), "")
    return command in _ALWAYS or any(_FILE.search(word) or word.startswith(_OPTIONS) for word in words)


def alone() -> bool:
    """Return whether this process is single-threaded: fork copies only the calling thread."""
    threads = sys.modules.get("threading")
    return threads is None or threads.active_count() == 1


def limit_s() -> float:
    """Return the wall time that a call may take, in seconds."""
    given = os.environ.get("ACKCLOCK_CALL_LIMIT", "")
    return float(given) if re.fullmatch(r"[0-9]{1,7}(\.[0-9]{1,3})?", given) and float(given) > 0 else LIMIT_S


def note(code: str) -> None:
    """Record that user code is about to run in this process."""
    if code not in _ran:
        _ran.append(code)


def forget() -> None:
    """Forget user code that ran earlier, at the start of a command in a program that calls several commands."""
    _ran.clear()


def ran() -> str:
    """Return the user code that has run in this process; empty if none has."""
    return ", ".join(_ran[:3])


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Record on the page what user code is doing outside hooks, such as loading."""
    page = _page
    if page is None:
        yield
        return
    before = page.doing
    page.doing = what
    try:
        yield
    finally:
        page.doing = before


class Page:
    """Memory shared by a process and its child.

    Parameters
    ----------
    file
        Memory file that both processes have open; -1 if the child is a fork.
    """

    def __init__(self, file: int = -1) -> None:
        self._memory = mmap.mmap(file, SIZE)
        self._since: dict[int, tuple[int, float]] = {}
        self._passed_s = 0.0

    @property
    def doing(self) -> str:
        """Current activity outside hooks, as text."""
        return self._memory[DOING + 8 : DOING + 8 + TEXT].split(b"\0")[0].decode(errors="replace")

    @doing.setter
    def doing(self, what: str) -> None:
        (count,) = struct.unpack_from("<Q", self._memory, DOING)
        self._memory[DOING + 8 : DOING + 8 + TEXT] = what.encode()[:TEXT].ljust(TEXT, b"\0")
        struct.pack_into("<Q", self._memory, DOING, ((count | 1) + 2) & ~1 | bool(what))

    @property
    def heard(self) -> int:
        """Return the number of signals received by the child."""
        return int(struct.unpack_from("<Q", self._memory, HEARD)[0])

    def hear(self) -> None:
        """Record that the child has received a signal."""
        struct.pack_into("<Q", self._memory, HEARD, self.heard + 1)

    def use(self, *, watches: bool = True) -> None:
        """From now on, record the calls of this process, the child, on this page, and make it end with its parent.

        Parameters
        ----------
        watches
            Whether a thread checks from time to time that the parent exists; otherwise the caller has to.
        """
        global _page  # noqa: PLW0603 - a process has one
        from ackclock import _engine

        _page = self
        if watches:
            _engine.end_with_parent()
        _engine.share_calls(self._memory)

    def where(self) -> str:
        """Return where user code is: the hooks that threads are running, or the activity outside hooks."""
        found = sorted({text for _, inside, text in self._rooms() if inside})
        return " or ".join(found[:3]) or self.doing

    def stuck(self, tick_s: float = TICK_S) -> str:
        """Return where a call has lasted longer than allowed; empty if there is none. The duration is measured in calls
        of this function, one every `tick_s` seconds, so that time during which the process was stopped does not count.
        """
        self._passed_s += tick_s
        (count,) = struct.unpack_from("<Q", self._memory, DOING)
        calls = [(number, inside, text) for number, inside, text in self._rooms()]
        calls.append((count, bool(count % 2), self.doing))
        for at, (number, inside, text) in enumerate(calls):
            known, since = self._since.get(at, (-1, 0.0))
            if number != known:
                self._since[at] = (number, self._passed_s)
            elif inside and self._passed_s - since > limit_s():
                return text
        return ""

    def _rooms(self) -> Iterable[tuple[int, bool, str]]:
        for at in range(ROOMS):
            count, seed, now = struct.unpack_from("<QQQ", self._memory, at * ROOM)
            if not count:
                continue
            hook, who = (
                self._memory[at * ROOM + a : at * ROOM + b].rstrip(b"\0").decode(errors="replace")
                for a, b in ((24, 48), (48, ROOM))
            )
            run = f"seed {seed - 1}, " if seed else ""
            yield count, bool(count % 2), f"{run}{who}, {hook} at {now / 1e9:.6f} s"


def behind(work: Callable[[], int]) -> int:
    """Run a command in a child, and wait for its exit code.

    Parameters
    ----------
    work
        Command, which returns its exit code.

    Returns
    -------
    int
        In the child, the exit code that the command returned. The parent exits with the same code, or with 2 if there
        was no report.
    """
    page = Page()
    answer, word = os.pipe()
    heeded = {signal.SIGINT, signal.SIGTERM, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, heeded)
    parent = os.getpid()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.flush()
    child = os.fork()
    if child == 0:
        os.close(answer)
        return _answered(page, word, parent, before, work)
    os.close(word)
    os._exit(_awaited(page, answer, child, heeded))  # nothing to clean up in the parent


def _answered(page: Page, word: int, parent: int, mask: Any, work: Callable[[], int]) -> int:
    """Run the command in the child, and write its exit code at the end."""
    signal.signal(signal.SIGINT, _heard(page, signal.default_int_handler))
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    _limited()
    page.use()
    if os.getppid() != parent:  # the parent died before `page.use`
        os._exit(FAILED)
    code = work()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    with suppress(OSError):
        os.write(word, WORD + b"%d\n" % code)
    return code


def _heard(page: Page, then: Callable[[int, Any], Any]) -> Callable[[int, Any], Any]:
    def hear(number: int, frame: Any) -> None:
        page.hear()
        then(number, frame)

    return hear


def heard(number: int, frame: Any) -> None:  # noqa: ARG001 - a handler
    """Count a signal that ends the command as Ctrl-C does."""
    if _page is not None:
        _page.hear()


def _limited() -> None:
    """Limit memory to the machine's and the number of processes to 4096 above the current number, so that runaway
    code ends only itself.
    """
    import resource

    with suppress(OSError, ValueError):
        most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        _lowered(resource.RLIMIT_DATA, most)
    with suppress(OSError, ValueError, IndexError):
        with open("/proc/loadavg", encoding="ascii") as file:
            running = int(file.read().split()[3].split("/")[1])
        _lowered(resource.RLIMIT_NPROC, running + 4096)


def _lowered(which: int, most: int) -> None:
    import resource

    soft, hard = resource.getrlimit(which)
    if soft == resource.RLIM_INFINITY or soft > most:
        resource.setrlimit(which, (most, hard))


def _awaited(page: Page, answer: int, child: int, heeded: set[signal.Signals]) -> int:
    """Forward signals, check that calls return, and compare the reported exit code with the actual one. Runs in the parent."""
    asked = 0
    late: list[tuple[float, int, int]] = []
    stuck = ""
    next_look = time.monotonic() + TICK_S
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        told = signal.sigtimedwait(heeded, max(0.01, min([next_look, *(at for at, *_ in late)]) - time.monotonic()))
        if told is not None and told.si_signo != signal.SIGCHLD:
            asked = told.si_signo
            if told.si_pid:  # sent by a process, perhaps only to this one, whereas the terminal signals both
                late.append((time.monotonic() + 0.2, told.si_signo, page.heard))
        now = time.monotonic()
        for one in [one for one in late if one[0] <= now]:
            late.remove(one)
            if page.heard == one[2]:
                os.kill(child, one[1])
        if now >= next_look:
            next_look = now + TICK_S
            if stuck := page.stuck():
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return _said(endless(stuck))
    os.set_blocking(answer, False)
    said = b""
    with suppress(OSError):
        said = os.read(answer, 100)
    code = os.waitstatus_to_exitcode(status)
    if said == WORD + b"%d\n" % code:
        return code
    if code in (INTERRUPTED, -signal.SIGINT, -signal.SIGTERM) and asked:
        return INTERRUPTED
    return _said(ended(page, said, code))


def endless(where: str) -> str:
    """Return the message about a call that does not return."""
    return f"{where}: found no end after {limit_s():g} s; allowed: a call that returns (ACKCLOCK_CALL_LIMIT=SECONDS)"


def ended(page: Page, said: bytes, code: int) -> str:
    """Return the message about a process that ended with this exit code and sent this report, if any."""
    where = page.where() or "own code"
    after = ", after the command was done" if said else ""
    return f"{where}: found an end of the process ({how(code)}){after}; allowed: own code that returns, or raises an exception"


def how(code: int) -> str:
    """Describe an exit code, or a signal's number if it is negative."""
    if code >= 0:
        return f"exit code {code}"
    return signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"


def _said(message: str) -> int:
    from ackclock.errors import shown

    with suppress(OSError):
        os.write(2, f"ackclock: {shown(message)}\n".encode(errors="replace"))
    return FAILED
