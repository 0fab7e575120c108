"""Runs the guest once: a folder as its root, User-Mode Linux on one CPU, a limit on wall-clock time."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import struct
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ackclock import _child
from ackclock.errors import AckclockError, InputError, UnavailableError
from ackclock.linux import _cache, _opened
from ackclock.linux._cache import Kernel
from ackclock.linux._opened import Opened
from ackclock.linux._watch import ALONE_S, Watch

__all__ = ["LimitError", "Outcome", "command_line", "play", "ran", "tables"]

MEMORY = "1G"
"""Guest memory size; the host allocates only pages that are touched."""

BOOT = 1_700_000_000_000_000_000
"""Guest wall-clock time at boot, ns."""

GRACE_S = 2.0
"""Time within which a guest must shut down after the request, s."""

Columns = dict[str, tuple[str, Any]]


class LimitError(UnavailableError):
    """Raised when a guest exceeds its wall-clock time limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """Outcome of a run of the guest.

    Parameters
    ----------
    tables
        Tables in the engine's form.
    digest
        SHA-256 of tables and capture.
    wall_s
        Wall-clock time of the run.
    """

    tables: dict[str, Columns]
    digest: str
    wall_s: float


def command_line(kernel: Kernel, *, ipv6: bool = False) -> list[str]:
    """Return the kernel's arguments, identical for every run because the kernel mixes them into its randomness."""
    return [
        f"mem={MEMORY}", "umid=guest", "uml_dir=./", "root=/dev/root", "rootfstype=hostfs",
        "rootflags=/proc/self/cwd/.", "rw", "init=/init", "con=null", "con0=null,fd:1", "quiet", "panic=-1",
        *([] if ipv6 else ["ipv6.disable=1"]), *(["seccomp=on"] if kernel.about.get("seccomp") else []),
        "time-travel=inf-cpu", f"time-travel-start={BOOT}",
    ]  # fmt: skip


def play(
    job: Mapping[str, Any], seed: int, *, kernel: Kernel, cpu: int, wall_limit_s: float, capture: Path | None = None
) -> Outcome:
    """Run a job.

    Parameters
    ----------
    job
        Job from `_translate.job`.
    seed
        Seed of the kernel's randomness.
    kernel
        Kernel to run.
    cpu
        CPU to run on.
    wall_limit_s
        Seconds after which the guest is killed.
    capture
        Destination of the capture.

    Raises
    ------
    UnavailableError
        If the guest does not finish, or reports an error.
    """
    with ran({"job.json": json.dumps(job)}, seed, kernel=kernel, cpu=cpu, wall_limit_s=wall_limit_s) as (out, wall):
        data = (out / "tables.bin").read_bytes()
        packets = out / "capture.pcapng"
        digest = _cache.hash_file([data])
        if packets.exists():
            digest = _cache.hash_file([data, packets.read_bytes()])
            if capture is not None:
                shutil.copyfile(packets, capture)
        return Outcome(tables=tables(data), digest=digest, wall_s=wall)


@contextmanager
def ran(
    files: Mapping[str, str], seed: int, *, kernel: Kernel, cpu: int, wall_limit_s: float, ipv6: bool = False,
    watch: Watch | None = None, rescue: Callable[[Path], None] | None = None,
    words: Sequence[str] = (), variables: Mapping[str, str] | None = None, opened: Opened | None = None,
) -> Iterator[tuple[Path, float]]:  # fmt: skip
    """Run the guest to its end, with `files` in its root.

    Parameters
    ----------
    files
        Name -> text.
    seed, kernel, cpu, wall_limit_s
        See `play`.
    ipv6
        Whether the kernel has IPv6.
    watch
        Detector of programs that never sleep.
    rescue
        Called with the folder of a guest that did not finish.
    words, variables
        Further arguments and environment variables of the kernel.
    opened
        Filled with the files that the guest opens.

    Yields
    ------
    tuple of Path and float
        Folder with the guest's output, which is removed afterwards, and the duration in seconds.

    Raises
    ------
    UnavailableError
        As for `play`.
    """
    guest = _cache.guest_path()
    _cache.check_sources(kernel)
    folder = Path(tempfile.mkdtemp(prefix="ackclock-guest-"))
    try:
        for name in ("proc", "sys", "dev", "tmp", "out"):
            (folder / name).mkdir()
        shutil.copy(guest, folder / "init")
        (folder / "init").chmod(0o755)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        started = time.perf_counter()
        try:
            arguments = [*command_line(kernel, ipv6=ipv6), *words]
            _execute(
                arguments, kernel, folder, {"UML_RNG_SEED": str(seed), **(variables or {})}, cpu, wall_limit_s, watch,
                opened,
            )  # fmt: skip
            wall = time.perf_counter() - started
            report = _report(folder)
            if report.get("error"):
                raise UnavailableError(f"the guest reports: {report['error']}")
        except AckclockError:
            if rescue is not None:
                rescue(folder / "out")
            raise
        yield folder / "out", wall
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _execute(
    arguments: list[str], kernel: Kernel, folder: Path, variables: dict[str, str], cpu: int, wall_limit_s: float,
    watch: Watch | None, opened: Opened | None,
) -> None:  # fmt: skip
    """Start the kernel and wait until it exits; on an error, kill all its processes."""
    environment = dict(variables)
    for name in ("TMPDIR", "PATH"):
        if name in os.environ:
            environment[name] = os.environ[name]
    # A child inherits CPU affinity and personality from the thread that starts it.
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    personality = _personality(None)
    _personality(personality | NO_RANDOM_ADDRESSES)
    try:
        with ExitStack() as held:
            log = held.enter_context((folder / "kernel.log").open("wb"))
            command = [str(kernel.path), *arguments]
            passed: tuple[int, ...] = ()
            if opened is not None:
                command, passed = held.enter_context(_opened.filtered(command, opened))
            process = _child.start(
                command,
                cwd=folder, env=environment, stdout=log, stderr=_child.STDOUT,
                start_new_session=True, pass_fds=passed,
            )  # fmt: skip
    except OSError as error:
        raise UnavailableError(f"{kernel.path}: cannot be run ({(error.strerror or str(error)).lower()})") from None
    finally:
        _personality(personality)
        os.sched_setaffinity(0, before)
    with ExitStack() as held:
        if opened is not None:
            held.callback(opened.end)
        held.enter_context(_ended(process, folder))
        try:
            _wait(process, wall_limit_s, watch)
        except _child.TimeoutExpired:
            who = None if watch is None else watch.busiest()
            raise LimitError(
                f"the guest did not end within {wall_limit_s:g} s of wall-clock time and was stopped"
                f"{f', while {who} ran' if who else ''}; allowed: a shorter run, or a larger --wall-limit"
            ) from None


LOOK_S = 1.0
"""Time between two checks of a guest with programs, s."""


def _wait(process: _child.Popen[bytes], wall_limit_s: float, watch: Watch | None) -> None:
    """Wait until the kernel exits, watching for a program that prevents it."""
    if watch is None:
        process.wait(timeout=wall_limit_s)
        return
    until = time.monotonic() + wall_limit_s
    while True:
        left = until - time.monotonic()
        try:
            process.wait(timeout=max(min(LOOK_S, left), 0))
            return
        except _child.TimeoutExpired:
            if left <= LOOK_S:
                raise
        if (who := watch.look(process.pid)) is not None:
            raise InputError(
                f"{who}: found a program that never sleeps ({ALONE_S:g} s of processor time without a system call), and no time passes "
                "while it runs; allowed: one that waits or asks for the time now and then"
            )


NO_RANDOM_ADDRESSES = 0x0040000
"""Personality flag that turns off address randomisation. Kernels before 7.x size their hash tables by addresses."""


def _personality(wanted: int | None) -> int:
    """Set the personality of this thread and return the previous one; None leaves it unchanged."""
    libc = ctypes.CDLL(None, use_errno=True)
    return int(libc.personality(ctypes.c_ulong(0xFFFFFFFF if wanted is None else wanted)))


WATCH = 'read -r _ || { kill -s KILL -- "-$1"; rm -rf -- "$2"; }'
"""Shell program that kills the guest if the pipe closes without a line, which means that this process was killed. A
line means that the guest has ended.
"""


@contextmanager
def _ended(process: _child.Popen[bytes], folder: Path) -> Iterator[None]:
    """Shut the guest down on exit. If this process is killed first, a shell does so and removes the folder."""
    watch = None
    try:
        watch = _child.start(
            ["/bin/sh", "-c", WATCH, "sh", str(process.pid), str(folder)],
            stdin=_child.PIPE, stdout=_child.DEVNULL, stderr=_child.DEVNULL, start_new_session=True,
        )  # fmt: skip
        yield
    finally:
        _end(process)
        if watch is not None:
            watch.communicate(b"\n")


def _end(process: _child.Popen[bytes]) -> None:
    """Kill the kernel and its processes that represent the guest's programs."""
    if process.poll() is None:
        process.terminate()
        with suppress(_child.TimeoutExpired):
            process.wait(timeout=GRACE_S)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _report(folder: Path) -> dict[str, Any]:
    try:
        report = json.loads((folder / "out" / "report.json").read_bytes())
    except (OSError, ValueError):
        report = None
    if isinstance(report, dict):
        return report
    log = (folder / "kernel.log").read_bytes().decode(errors="replace")
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    telling = next((line for line in lines if "panic" in line.lower() or "error" in line.lower()), None)
    raise UnavailableError(
        f"the guest ended without a report; it said: {(telling or (lines[-1] if lines else 'nothing'))[:200]}"
    )


def tables(data: bytes) -> dict[str, Columns]:
    """Read `tables.bin`."""
    (length,) = struct.unpack_from("<Q", data)
    index = json.loads(data[8 : 8 + length])
    start = 8 + length
    found: dict[str, Columns] = {}
    for table, columns in index.items():
        made: Columns = {}
        for name, kind, at, size, names in columns:
            raw = data[start + at : start + at + size]
            made[name] = (kind, raw if names is None else [names[c] for (c,) in struct.iter_unpack("<I", raw)])
        found[table] = made
    return found
