"""Runs commands in trouble: processes forked from one that has imported everything, with system calls that a plan may
disturb. `trouble.c` intercepts calls to the C library. It counts the calls below one folder; at a given call the
process ends, gets a signal, or the call fails. A process thus ends at the same point each time, unlike one that ends
at a clock time.

The driver has to be started with the library preloaded: `again` does that, in a new mount namespace if the system
allows one.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import mmap
import os
import pkgutil
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

OPEN, WRITE, SYNC, TRUNCATE, RENAME, MKDIR, UNLINK, LOCK, READ, CREATE = (1 << n for n in range(10))
NAMES = ("open", "write", "sync", "truncate", "rename", "mkdir", "unlink", "lock", "read", "create")
WRITES = CREATE | WRITE | SYNC | TRUNCATE | RENAME | MKDIR | UNLINK | LOCK
"""Calls through which a writer changes a folder."""
NOTHING, SIGNAL, FAIL, FAIL_ALWAYS, SHORT = range(5)

PRELOADED = "ACKCLOCK_TROUBLE"
"""Environment variable with the path of the library that a driver was started with."""

MOST_CPU_S = 120
PATIENCE_S = 60.0
"""Time within which a process must use some CPU time or end, s."""


class Plan(ctypes.Structure):
    """Fields of `struct plan` in `trouble.c`."""

    _fields_ = (
        ("folder", ctypes.c_char * 1024),
        *((name, ctypes.c_int64) for name in ("mask", "at", "act", "value", "counted", "acted", "clock_seed", "journal", "clock_reads")),
        ("each", ctypes.c_int64 * len(NAMES)),
    )  # fmt: skip


def built(place: Path) -> Path:
    """Return the compiled library.

    Raises
    ------
    OSError, subprocess.CalledProcessError
        If there is no compiler, or it refuses.
    """
    library = place / "trouble.so"
    command = ["cc", "-std=gnu11", "-O1", "-shared", "-fPIC", "-o", str(library), str(HERE / "trouble.c"), "-ldl"]
    subprocess.run(command, check=True, capture_output=True, cwd=place)
    return library


def may_mount() -> bool:
    """Return whether a program may create a mount namespace."""
    done = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False)
    return done.returncode == 0


def again(place: Path, program: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a driver with the library preloaded, sharing our standard error."""
    library = built(place)
    inside = ["unshare", "-rm"] if may_mount() else []
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "LD_PRELOAD": str(library),
        PRELOADED: str(library),
        "POLARS_MAX_THREADS": "1",
    }
    command = [*inside, sys.executable, str(program), *arguments]
    return subprocess.run(command, env=env, text=True, stdout=subprocess.PIPE, check=False)


def everything() -> None:
    """Import what commands import, so that no child has to; no thread is started."""
    import ackclock

    for module in pkgutil.walk_packages(ackclock.__path__, "ackclock."):
        if not module.name.endswith(("__main__", "_bench_cell")):
            importlib.import_module(module.name)
    for name in (
        "matplotlib.pyplot",
        "matplotlib.backends.backend_svg",
        "scipy.special",
        "scipy.stats",
    ):
        importlib.import_module(name)


@dataclass
class Process:
    """A command that is running or has ended."""

    pid: int
    plan: Plan
    said: list[Any] = field(repr=False)
    code: int | None = None
    cpu_s: float = 0.0
    killed: bool = False

    def look(self) -> bool:
        """Return whether it has ended."""
        if self.code is None:
            found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is not None:
                self.cpu_s = cpu_s(self.pid)
                _, status = os.waitpid(self.pid, 0)
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def signal(self, number: int, *, all_of_it: bool = False) -> None:
        if not self.look():
            (os.killpg if all_of_it else os.kill)(self.pid, number)

    def end(self) -> None:
        """Wait for its end; a command that neither ends nor uses CPU time is killed, and its exit code is None."""
        last, since = -1.0, time.monotonic()
        while not self.look():
            time.sleep(0.003)
            now = time.monotonic()
            if now - since > 5 and (cpu := cpu_s(self.pid)) > last + 0.01:
                last, since = cpu, now
            if now - since > PATIENCE_S:
                self.killed = True
                os.killpg(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                self.code = -signal.SIGKILL

    @property
    def out(self) -> str:
        return self._read(0)

    @property
    def err(self) -> str:
        return self._read(1)

    def _read(self, which: int) -> str:
        self.said[which].seek(0)
        return str(self.said[which].read().decode(errors="replace"))


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process and of its finished children."""
    words = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return sum(int(word) for word in words[11:15]) / os.sysconf("SC_CLK_TCK")


class Machine:
    """Starts commands.

    Parameters
    ----------
    place
        Folder for pages of plans.
    folder
        Folder below which calls are counted.
    """

    def __init__(self, place: Path, folder: Path) -> None:
        self.folder = folder.resolve()
        self._pages = place / "pages"
        self._pages.mkdir(parents=True, exist_ok=True)
        self._library = ctypes.CDLL(None)
        self._library.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: orphans become our children
        everything()
        from ackclock.cli import main
        from ackclock.sweep import Threads, campaign

        self._main, self._threads, self._campaign = main, Threads, campaign

    def begin(self, argv: list[str], cwd: Path, **plan: int) -> Process:
        """Start the command with a plan: fields of `Plan`."""
        page = tempfile.NamedTemporaryFile(dir=self._pages)  # noqa: SIM115 - as long as the process
        page.truncate(ctypes.sizeof(Plan))
        memory = mmap.mmap(page.fileno(), ctypes.sizeof(Plan))
        shared = Plan.from_buffer(memory)
        shared.folder = os.fsencode(self.folder)
        for name, value in {"mask": WRITES, **plan}.items():
            setattr(shared, name, value)
        said = [tempfile.TemporaryFile(dir=self._pages) for _ in range(2)]  # noqa: SIM115
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        pid = os.fork()
        if pid == 0:
            try:
                code = self._child(argv, cwd, page.name, said)
            except BaseException:
                traceback.print_exc()
                code = 70
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        process = Process(pid, shared, said)
        process.page = page  # type: ignore[attr-defined]  # as long as it is needed
        return process

    def _child(self, argv: list[str], cwd: Path, page: str, said: list[Any]) -> int:
        os.setsid()
        os.chdir(cwd)
        for stream, place in enumerate([os.open(os.devnull, os.O_RDONLY), *(file.fileno() for file in said)]):
            os.dup2(place, stream)
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S))
        # runs are stored one by one, so that most ends fall between the first and the last
        self._campaign.KEEP_EVERY_S, self._campaign.KEEP_REST, self._campaign.KEEP_CPU_S = 0.0, 0, 0.0
        self._threads.target_s = 0.001
        sys.argv = ["ackclock", *argv]
        if self._library.trouble_arm(os.fsencode(page)) != 0:
            raise OSError("the library has no plan")
        return self._main()

    def orphans(self) -> list[str]:
        """End processes that outlive their command; return them."""
        until = time.monotonic() + 10
        while left := self._children():
            if time.monotonic() > until:
                break
            time.sleep(0.02)
        found = []
        for pid in left:
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.append(f"{pid} {words[:200]}")
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (OSError, ChildProcessError):
                continue
        return found

    def _children(self) -> list[int]:
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return []
            if pid == 0:
                break
        return [
            int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()
        ]

    def asked(self, question: Callable[[], Any]) -> Any:
        """Return a function's result, computed in a separate process because this one must not start a thread."""
        answer, word = os.pipe()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.close(answer)
                text = json.dumps(question()).encode()
                while text:
                    text = text[os.write(word, text) :]
                code = 0
            except BaseException:
                traceback.print_exc()
            os._exit(code)
        os.close(word)
        with open(answer, "rb") as file:
            text = file.read()
        _, status = os.waitpid(pid, 0)
        if status:
            raise RuntimeError("a check has failed; see above")
        return json.loads(text)


def last_line(text: str) -> str:
    return text.strip().splitlines()[-1] if text.strip() else ""


def entries(journal: Path) -> Iterator[tuple[str, str, str, int, bytes]]:
    """Return a journal's entries: call, path, other path, offset, data."""
    data = journal.read_bytes()
    at = 0
    while at < len(data):
        what, first, second, _ = (int.from_bytes(data[at + 4 * n : at + 4 * n + 4], "little") for n in range(4))
        offset, size = (int.from_bytes(data[at + n : at + n + 8], "little", signed=True) for n in (16, 24))
        at += 32
        path, other, content = (
            data[at : at + first],
            data[at + first : at + first + second],
            data[at + first + second :][:size],
        )
        at += first + second + size
        yield chr(what), os.fsdecode(path), os.fsdecode(other), offset, content
