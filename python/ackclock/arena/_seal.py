"""A filter of system calls around own code that is loaded: memory, the two pipes of its process, CPU time, sleep and the end are left (seccomp of Linux).

What asks for a file, or reads and writes elsewhere, gets EPERM. Whatever else is asked ends the process (SIGSYS), and the run has failed. The kernel cannot take
a clock away from native code: where it is mapped into the process, reading one is no system call. For that each scored run is made twice.

Sources: Linux Documentation/userspace-api/seccomp_filter.rst; numbers of calls: arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
"""

from __future__ import annotations

import ctypes
import platform
import signal
import struct
import sys
from collections.abc import Callable
from pathlib import Path

__all__ = ["can", "end_with_parent", "prepared", "shut"]

_ALLOW, _KILL, _EPERM = 0x7FFF_0000, 0x8000_0000, 0x0005_0001
_LOAD, _EQUAL, _ANY, _RETURN = 0x20, 0x15, 0x45, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_FILTER, _TSYNC = 1, 1
_PROT_EXEC = 4
_CPU_CLOCKS = (2, 3)
"""CLOCK_PROCESS_CPUTIME_ID and CLOCK_THREAD_CPUTIME_ID, by which the engine bounds a run. The first comes back as another
number for another process; none of them says what time it is."""

_OF_A_THREAD = 0x8000_0000
"""Bit of the numbers of other threads' clocks of CPU time (clock_getcpuclockid)."""

_X86_64 = {
    "arch": 0xC000_003E, "seccomp": 317, "read": 0, "write": 1, "mmap": 9, "mprotect": 10, "clock_gettime": 228,
    # munmap, brk, rt_sigaction, rt_sigprocmask, rt_sigreturn, sched_yield, mremap, madvise, getpid, exit, getrusage, sigaltstack, gettid,
    # futex, restart_syscall, exit_group, rseq; nanosleep, clock_nanosleep, tgkill: of the thread in each module of C that ends a hook without end
    "free": (11, 12, 13, 14, 15, 24, 25, 28, 39, 60, 98, 131, 186, 202, 219, 231, 334, 35, 230, 234),
    # open, stat, fstat, lstat, lseek, ioctl, pread64, pwrite64, readv, writev, access, getcwd, readlink, getdents64, openat, newfstatat,
    # readlinkat, faccessat, statx, faccessat2
    "refused": (2, 4, 5, 6, 8, 16, 17, 18, 19, 20, 21, 79, 89, 217, 257, 262, 267, 269, 332, 439),
}  # fmt: skip
_AARCH64 = {
    "arch": 0xC000_00B7, "seccomp": 277, "read": 63, "write": 64, "mmap": 222, "mprotect": 226, "clock_gettime": 113,
    "free": (215, 214, 134, 135, 139, 124, 216, 233, 172, 93, 165, 132, 178, 98, 128, 94, 293, 101, 115, 131),
    "refused": (56, 79, 80, 62, 29, 67, 68, 65, 66, 48, 17, 78, 61, 291, 439),
}  # fmt: skip
_MACHINES = {"x86_64": _X86_64, "aarch64": _AARCH64}


def can() -> bool:
    """Whether this machine has the filter."""
    if sys.platform != "linux" or platform.machine() not in _MACHINES:
        return False
    try:
        with open("/proc/sys/kernel/seccomp/actions_avail", encoding="ascii") as file:
            return "kill_process" in file.read()
    except OSError:
        return False


def prepared(*, reads: int, writes: int) -> Callable[[], None]:
    """Function that puts the filter around this process, with all its threads; it cannot be taken off. All that is
    needed for it is held before.

    Parameters
    ----------
    reads, writes
        Files that are left: the pipe from which tasks come, and the one into which answers go.

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


def shut(process: int) -> bool:
    """Whether the kernel says that each thread of a process is behind a filter."""
    try:
        for thread in Path(f"/proc/{process}/task").iterdir():
            if "\nSeccomp:\t2\n" not in (thread / "status").read_text("ascii", "replace"):
                return False
    except OSError:  # the process has ended
        return False
    return True


def end_with_parent() -> None:
    """Let the kernel kill this process when the thread that made it is gone; where it can."""
    if can():
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _program(known: dict[str, object], reads: int, writes: int) -> bytes:
    """The filter, in the kernel's words of eight bytes: code, jump if so, jump if not, value."""
    lines: list[tuple[int, int, int, int]] = []

    def add(code: int, value: int, so: int = 0, other: int = 0) -> None:
        lines.append((code, so, other, value))

    def argument(at: int) -> int:
        return _ARGUMENTS + 8 * at  # the lower half: both machines are little-endian

    def only(call: str, at: int, values: tuple[int, ...], otherwise: int) -> None:
        """The call, if the argument is one of these."""
        add(_EQUAL, int(known[call]), 0, len(values) + 3)  # type: ignore[call-overload]
        add(_LOAD, argument(at))
        for left, value in enumerate(reversed(values)):
            add(_EQUAL, value, len(values) - left, 0)
        add(_RETURN, otherwise)
        add(_RETURN, _ALLOW)

    def unless(call: str, at: int, bits: int) -> None:
        """The call, if the argument has none of these bits."""
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
