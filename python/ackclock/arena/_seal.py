"""Two kernel barriers around user code, the second tighter than the first.

The fence is put up before user code is loaded: no new process, program, socket or signal handler, no file writes, and
reads only of listed files (Landlock, if the kernel supports it). /proc, which describes other processes, is not among
them. Threads and memory remain available.

The filter (Linux seccomp) is installed around loaded code: memory, the two pipes of its process, CPU time, sleep
and exit remain available. Opening files, and reading or writing elsewhere, fails with EPERM. Any other call kills the
process (SIGSYS), and the run counts as failed.

The kernel cannot hide clocks from native code: the clock page is mapped into the process, and reading it takes no
system call. Each scored run is therefore made twice.

Sources: Linux Documentation/userspace-api/seccomp_filter.rst and landlock.rst; system call numbers:
arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["can", "end_with_parent", "fence", "missing", "prepared", "shut"]

_ALLOW, _KILL, _EPERM = 0x7FFF_0000, 0x8000_0000, 0x0005_0001
_LOAD, _EQUAL, _ANY, _RETURN = 0x20, 0x15, 0x45, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_FILTER, _TSYNC = 1, 1
_PROT_EXEC = 4
_CPU_CLOCKS = (2, 3)
"""CLOCK_PROCESS_CPUTIME_ID and CLOCK_THREAD_CPUTIME_ID, used by the engine to limit a run. Another process's clock
has a different number, and neither reveals the time of day.
"""

_OF_A_THREAD = 0x8000_0000
"""Bit in the IDs of other threads' CPU clocks (clock_getcpuclockid)."""

_X86_64 = {
    "arch": 0xC000_003E, "seccomp": 317, "read": 0, "write": 1, "mmap": 9, "mprotect": 10, "clock_gettime": 228,
    # munmap, brk, rt_sigaction, rt_sigprocmask, rt_sigreturn, sched_yield, mremap, madvise, getpid, exit, getrusage, sigaltstack, gettid,
    # futex, restart_syscall, exit_group, rseq; nanosleep, clock_nanosleep, tgkill: for the thread in each C module that
    # stops a hook stuck in an endless loop; set_robust_list: for a thread that starts while the filter is installed
    "free": (11, 12, 13, 14, 15, 24, 25, 28, 39, 60, 98, 131, 186, 202, 219, 231, 334, 35, 230, 234, 273),
    # open, stat, fstat, lstat, lseek, ioctl, pread64, pwrite64, readv, writev, access, getcwd, readlink, getdents64, openat, newfstatat,
    # readlinkat, faccessat, statx, faccessat2; sched_getaffinity: for the C library's allocator, in a new thread
    "refused": (2, 4, 5, 6, 8, 16, 17, 18, 19, 20, 21, 79, 89, 217, 257, 262, 267, 269, 332, 439, 204),
}  # fmt: skip
_AARCH64 = {
    "arch": 0xC000_00B7, "seccomp": 277, "read": 63, "write": 64, "mmap": 222, "mprotect": 226, "clock_gettime": 113,
    "free": (215, 214, 134, 135, 139, 124, 216, 233, 172, 93, 165, 132, 178, 98, 128, 94, 293, 101, 115, 131, 99),
    "refused": (56, 79, 80, 62, 29, 67, 68, 65, 66, 48, 17, 78, 61, 291, 439, 123),
}  # fmt: skip
_MACHINES = {"x86_64": _X86_64, "aarch64": _AARCH64}

_ENOSYS = 0x0005_0026
_NOTHING = 0x0005_0000
"""Filter action that reports success without making the call: libraries such as Polars abort if they cannot install a
signal handler.
"""
_CLONE_THREAD = 0x1_0000
_WRITES = 0o3 | 0o100 | 0o1000 | 0o2000
"""Refused flag bits of open: any mode other than reading, O_CREAT, O_TRUNC, O_APPEND."""
_X32 = 0x4000_0000
"""Bit in the numbers of x32 system calls, which must not bypass the filter."""

_LOADING_X86_64: dict[str, Any] = {
    "clone": 56, "processes": (57, 58, 59, 322), "prlimit": 302, "rt_sigaction": 13, "open": {2: 1, 257: 2},
    # clone3, openat2: the C library falls back to the older call, with arguments that a filter can inspect
    "unknown": (435, 437),
    # processes: fork, vfork, execve, execveat; refused: ptrace, process_vm_readv, process_vm_writev, kill, tkill, pidfd_open, pidfd_getfd, process_madvise; socket, socketpair, connect,
    # shmget, shmat, mq_open, io_uring_setup, bpf, userfaultfd, perf_event_open; creat, truncate, ftruncate, fallocate, rename, renameat, renameat2, mkdir, mkdirat,
    # rmdir, link, linkat, unlink, unlinkat, symlink, symlinkat, chmod, fchmod, fchmodat, fchmodat2, chown, fchown, lchown, fchownat, utime, utimes, futimesat, utimensat,
    # mknod, mknodat, setxattr, lsetxattr, fsetxattr, removexattr, lremovexattr, fremovexattr; chroot, mount, umount2, pivot_root, unshare, setns
    "refused": (
        101, 310, 311, 62, 200, 434, 438, 440, 41, 53, 42, 29, 30, 240, 425, 321, 323, 298, 85, 76, 77, 285, 82, 264, 316, 83, 258, 84, 86, 265,
        87, 263, 88, 266, 90, 91, 268, 452, 92, 93, 94, 260, 132, 235, 261, 280, 133, 259, 188, 189, 190, 197, 198, 199, 161, 165, 166, 155, 272, 308,
    ),
}  # fmt: skip
_LOADING_AARCH64: dict[str, Any] = {
    "clone": 220, "processes": (221, 281), "prlimit": 261, "rt_sigaction": 134, "open": {56: 2}, "unknown": (435, 437),
    "refused": (
        117, 270, 271, 129, 130, 434, 438, 440, 198, 199, 203, 194, 196, 180, 425, 280, 282, 241, 45, 46, 47, 38, 276, 34, 37, 35, 36, 52, 53, 452, 55, 54,
        88, 33, 5, 6, 7, 14, 15, 16, 51, 40, 39, 41, 97, 268,
    ),
}  # fmt: skip
_LOADING = {"x86_64": _LOADING_X86_64, "aarch64": _LOADING_AARCH64}

_LANDLOCK = 444
"""Number of landlock_create_ruleset on every machine; landlock_add_rule and landlock_restrict_self follow."""
_EXECUTE, _READ_FILE, _READ_DIR = 1, 4, 8
_HANDLED = (1 << 13) - 1
"""File access rights in Landlock's first version: read, execute, write, create and remove."""


@cache
def can() -> bool:
    """Return whether this machine supports the filter."""
    if sys.platform != "linux" or platform.machine() not in _MACHINES:
        return False
    try:
        with open("/proc/sys/kernel/seccomp/actions_avail", encoding="ascii") as file:
            return "kill_process" in file.read()
    except OSError:
        return False


@cache
def missing() -> str:
    """Return the barrier that this machine lacks; empty if it has both."""
    if not can():
        return "without a filter of system calls, which this machine does not have: own code could do anything"
    if ctypes.CDLL(None).syscall(_LANDLOCK, None, 0, 1) <= 0:  # queries the version
        return "without Landlock, which this kernel does not have: while it was loaded, own code could read any file"
    return ""


def fence(files: Iterable[str | Path], *, folders: Iterable[str | Path] = (), compiled: bool) -> None:
    """Put up the fence around this process: the calling thread, and threads that it creates, can read no other files.

    Parameters
    ----------
    files
        Files that may be read, and folders whose whole contents may be read.
    folders
        Folders whose entries may be listed but not read.
    compiled
        Whether the code is C or Rust. Such code may install signal handlers, but is killed if it tries to start a
        process or a program, which no module needs. In Python a signal handler would receive a frame, so none is ever
        called; Python libraries try to start programs, and continue if that fails.

    Raises
    ------
    OSError
        If the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    _landlock(libc, files, folders)
    code = _loading(compiled=compiled)
    words = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(words))
    if libc.syscall(_MACHINES[platform.machine()]["seccomp"], _FILTER, _TSYNC, program):
        raise OSError(ctypes.get_errno(), "seccomp")


def _landlock(libc: ctypes.CDLL, files: Iterable[str | Path], folders: Iterable[str | Path]) -> None:
    handled = struct.pack("Q", _HANDLED)
    rules = libc.syscall(_LANDLOCK, handled, len(handled), 0)
    if rules < 0:  # a kernel without Landlock (`missing`)
        return
    try:
        read = _EXECUTE | _READ_FILE | _READ_DIR
        for place, rights in (*((f, read) for f in files), *((f, _READ_DIR) for f in folders)):
            with suppress(OSError):  # a missing file cannot be read anyway
                opened = os.open(place, os.O_PATH | os.O_CLOEXEC)
                try:
                    allowed = rights if os.path.isdir(place) else rights & ~_READ_DIR
                    rule = struct.pack("=Qi", allowed, opened)
                    if allowed and libc.syscall(_LANDLOCK + 1, rules, 1, rule, 0):
                        raise OSError(ctypes.get_errno(), "landlock_add_rule")
                finally:
                    os.close(opened)
        if libc.syscall(_LANDLOCK + 2, rules, 0):
            raise OSError(ctypes.get_errno(), "landlock_restrict_self")
    finally:
        os.close(rules)


def _loading(*, compiled: bool) -> bytes:
    """Build the fence's filter, which allows every call that is not listed."""
    known = _LOADING[platform.machine()]
    lines: list[tuple[int, int, int, int]] = []

    def add(code: int, value: int, so: int = 0, other: int = 0) -> None:
        lines.append((code, so, other, value))

    def if_bits(call: int, at: int, bits: int, so: int, otherwise: int) -> None:
        """Add the results of a call for an argument with any of these bits set, and for one with none."""
        add(_EQUAL, call, 0, 4)
        add(_LOAD, _ARGUMENTS + 8 * at)
        add(_ANY, bits, 0, 1)
        add(_RETURN, so)
        add(_RETURN, otherwise)

    add(_LOAD, _ARCH)
    add(_EQUAL, int(_MACHINES[platform.machine()]["arch"]), 1, 0)  # type: ignore[call-overload]
    add(_RETURN, _KILL)
    add(_LOAD, _NUMBER)
    add(_ANY, _X32, 0, 1)
    add(_RETURN, _EPERM)
    process = _KILL if compiled else _EPERM
    if_bits(known["clone"], 0, _CLONE_THREAD, _ALLOW, process)
    if_bits(known["prlimit"], 0, 0xFFFF_FFFF, _EPERM, _ALLOW)
    for call, at in known["open"].items():
        if_bits(call, at, _WRITES, _EPERM, _ALLOW)
    answers = dict.fromkeys(known["unknown"], _ENOSYS)
    answers |= dict.fromkeys(known["refused"], _EPERM) | dict.fromkeys(known["processes"], process)
    if not compiled:
        answers[known["rt_sigaction"]] = _NOTHING
    for call, answer in answers.items():
        add(_EQUAL, call, 0, 1)
        add(_RETURN, answer)
    add(_RETURN, _ALLOW)
    return b"".join(struct.pack("<HBBI", *line) for line in lines)


def prepared(*, reads: int, writes: int) -> Callable[[], None]:
    """Return a function that installs the filter in all threads of this process. A filter cannot be removed.
    Everything needed by the function is loaded beforehand.

    Parameters
    ----------
    reads, writes
        Permitted files: the pipe for tasks, and the one for answers.

    Returns
    -------
    callable
        Raises OSError if the kernel refuses.
    """
    known = _MACHINES[platform.machine()]
    code = _program(known, reads, writes)
    words = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(words))
    libc = ctypes.CDLL(None, use_errno=True)
    control, call, number, why, refused = libc.prctl, libc.syscall, known["seccomp"], ctypes.get_errno, OSError

    def shut() -> None:
        if words and (control(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or call(number, _FILTER, _TSYNC, program)):
            raise refused(why(), "seccomp")

    return shut


def shut(process: int, filters: int) -> bool:
    """Whether, according to the kernel, each thread of a process has at least this many more filters than this
    process. Kernels before 5.9 report only whether there is one.
    """
    wanted = _filters(Path("/proc/self")) + filters
    has = []
    with suppress(OSError):  # the process has ended
        for thread in Path(f"/proc/{process}/task").iterdir():
            with suppress(OSError):  # the thread has ended
                has.append(_filters(thread))
    return bool(has) and min(has) >= wanted


def _filters(about: Path) -> float:
    """Number of filters of a thread; infinite on a kernel that does not count them."""
    lines = (about / "status").read_text("ascii", "replace").splitlines()
    told = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    if told.get("Seccomp") != "2":
        return 0
    return float(told.get("Seccomp_filters", "inf"))


def end_with_parent() -> None:
    """Make the kernel kill this process when the thread that created it ends, if the machine supports that."""
    if can():
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _program(known: dict[str, object], reads: int, writes: int) -> bytes:
    """Build the filter as BPF instructions of eight bytes: code, jump if true, jump if false, value."""
    lines: list[tuple[int, int, int, int]] = []

    def add(code: int, value: int, so: int = 0, other: int = 0) -> None:
        lines.append((code, so, other, value))

    def argument(at: int) -> int:
        return _ARGUMENTS + 8 * at  # the low half: both machines are little-endian

    def only(call: str, at: int, values: tuple[int, ...], otherwise: int) -> None:
        """Allow a call only if the argument is one of these values."""
        add(_EQUAL, int(known[call]), 0, len(values) + 3)  # type: ignore[call-overload]
        add(_LOAD, argument(at))
        for left, value in enumerate(reversed(values)):
            add(_EQUAL, value, len(values) - left, 0)
        add(_RETURN, otherwise)
        add(_RETURN, _ALLOW)

    def unless(call: str, at: int, bits: int) -> None:
        """Allow a call only if the argument has none of these bits set."""
        add(_EQUAL, int(known[call]), 0, 4)  # type: ignore[call-overload]
        add(_LOAD, argument(at))
        add(_ANY, bits, 0, 1)
        add(_RETURN, _KILL)
        add(_RETURN, _ALLOW)

    add(_LOAD, _ARCH)
    add(_EQUAL, int(known["arch"]), 1, 0)  # type: ignore[call-overload]
    add(_RETURN, _KILL)
    add(_LOAD, _NUMBER)
    only("read", 0, (reads,), _EPERM)
    only("write", 0, (writes,), _EPERM)
    unless("mmap", 2, _PROT_EXEC)
    unless("mprotect", 2, _PROT_EXEC)
    for call in ("free", "refused"):
        for number in known[call]:  # type: ignore[attr-defined]
            add(_EQUAL, number, 0, 1)
            add(_RETURN, _ALLOW if call == "free" else _EPERM)
    add(_EQUAL, int(known["clock_gettime"]), 1, 0)  # type: ignore[call-overload]
    add(_RETURN, _KILL)
    add(_LOAD, argument(0))
    for clock in _CPU_CLOCKS:
        add(_EQUAL, clock, 0, 1)
        add(_RETURN, _ALLOW)
    add(_ANY, _OF_A_THREAD, 0, 1)
    add(_RETURN, _ALLOW)
    add(_RETURN, _KILL)
    return b"".join(struct.pack("<HBBI", *line) for line in lines)
