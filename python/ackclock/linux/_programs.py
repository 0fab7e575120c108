"""Programs named on the command line: located and checked before anything runs, and their outcomes."""

from __future__ import annotations

import os
import shlex
import signal
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ackclock.errors import InputError, quote

__all__ = ["ENVIRONMENT", "FOLDERS", "INNER", "Ended", "Program", "resolved"]

FOLDERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Folders searched first for a program, regardless of the user's own PATH."""

ENVIRONMENT = {
    "PATH": FOLDERS, "HOME": "/tmp", "TMPDIR": "/tmp", "USER": "root", "LOGNAME": "root", "SHELL": "/bin/sh", "LANG": "C.UTF-8",
    "TZ": "UTC", "TERM": "dumb",
}  # fmt: skip
"""Complete environment of a program; the user's own variables are not passed on."""

INNER = ("/tmp", "/run", "/var/tmp", "/var/log", "/var/cache", "/var/lib/nginx")
"""Folders that each host keeps in memory (`linux/guest/src/programs.rs`) in place of the machine's."""

MACHINES = {
    3: "x86, 32 bits",
    8: "MIPS",
    20: "PowerPC",
    21: "PowerPC 64",
    22: "s390",
    40: "ARM",
    183: "ARM 64",
    243: "RISC-V",
    258: "LoongArch",
}
"""ELF machine numbers (e_machine) of programs that cannot run on this machine."""

X86_64 = 62

MOST_SCRIPTS = 4
"""Maximum nesting of script interpreters permitted by the kernel."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """A user's program.

    Parameters
    ----------
    host
        Host of the program.
    command
        Command as the user wrote it.
    start_s
        Start time, seconds of the run.
    counts
        Whether the run continues until this program has ended.
    """

    host: str
    command: str
    start_s: float = 0.0
    counts: bool = False

    @property
    def option(self) -> str:
        """Option that names this program on the command line, for messages."""
        return f"--{self.host}" if self.host in ("server", "client") else f"--host {self.host}"

    def words(self, option: str) -> list[str]:
        """Name and arguments.

        Raises
        ------
        InputError
            If the command is empty or has an unclosed quotation mark.
        """
        allowed = "a command as a shell takes it, without pipes: 'iperf3 -s'"
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise InputError(
                f"{option}: found {quote(self.command)} ({str(error).lower()}); allowed: {allowed}"
            ) from None
        if not words or not words[0] or "\0" in self.command:
            raise InputError(f"{option}: found {quote(self.command)}; allowed: {allowed}")
        return words


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """How a program ended.

    Parameters
    ----------
    program
        The program.
    name
        Name of its output files.
    started_s, ended_s
        Start and end, seconds of the run; None if it did not start or end.
    code, signal
        Exit code, or number of the signal that ended it.
    asked
        Whether it was stopped because the run ended.
    failed
        Reason why it could not be started.
    stdout, stderr
        Its output.
    """

    program: Program
    name: str
    started_s: float | None
    ended_s: float | None
    code: int | None
    signal: int | None
    asked: bool
    failed: str | None
    stdout: bytes
    stderr: bytes

    @property
    def ok(self) -> bool:
        """Whether the program succeeded: it exited with 0, or ran until the end of the run."""
        return self.failed is None and (self.asked or self.code == 0)

    @property
    def said(self) -> str:
        """How the program ended, in words."""
        if self.started_s is None:
            return "not started: the run was over before"
        if self.failed is not None:
            return f"not started: {self.failed}"
        if self.asked:
            return "ended with the run"
        if self.signal is not None:
            number = self.signal
            name = signal.Signals(number).name if number in signal.valid_signals() else str(number)
            why = " (a file longer than 256 MiB)" if number == signal.SIGXFSZ else ""
            return f"killed by {name}{why}"
        return f"exited with {self.code}"

    @property
    def last_line(self) -> str:
        """Last line of the program's output; stderr is preferred."""
        for text in (self.stderr, self.stdout):
            lines = [line.strip() for line in text.decode(errors="replace").splitlines() if line.strip()]
            if lines:
                return lines[-1][:200]
        return ""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary."""
        return {
            "host": self.program.host, "command": self.program.command, "name": self.name, "started_s": self.started_s,
            "ended_s": self.ended_s, "code": self.code, "signal": self.signal, "ended_with_the_run": self.asked,
            "failed": self.failed, "stdout_bytes": len(self.stdout), "stderr_bytes": len(self.stderr),
        }  # fmt: skip


def resolved(words: Sequence[str], option: str, *, root: Path, folder: str, own: Mapping[str, str]) -> str:
    """Return a program's path as the guest sees it, after checking that it exists, is executable and fits this machine.

    Parameters
    ----------
    words
        Name and arguments.
    option
        Option named in messages.
    root
        Folder that the guest sees as `/`.
    folder
        Working folder of the program.
    own
        Variables given by the user.

    Raises
    ------
    InputError
        If the program cannot run.
    """
    asked = words[0]
    allowed = "a program of this machine's kind (x86-64), or a script that names one"
    if "/" in asked:
        places = [os.path.normpath(os.path.join(folder, asked))]
    else:
        searched = [*own.get("PATH", FOLDERS).split(":")]
        if root == Path("/"):
            searched += os.environ.get("PATH", "").split(":")
        places = [os.path.join(part, asked) for part in searched if os.path.isabs(part)]
    there = [place for place in places if os.path.isfile(_inside(root, place))]
    if not there:
        raise InputError(f"{option}: found {quote(asked)}, which is not there; allowed: {allowed}")
    usable = [place for place in there if os.access(_inside(root, place), os.X_OK)]
    if not usable:
        raise InputError(f"{option}: found {there[0]}, which may not be executed; allowed: {allowed}")
    _judge(usable[0], option, root, allowed)
    return usable[0]


def _inside(root: Path, place: str) -> Path:
    """Return the path on this machine for a path in the guest; with a root other than `/`, links are followed within
    it.
    """
    if root == Path("/"):
        return Path(place)
    at = root / place.lstrip("/")
    for _ in range(40):
        if not at.is_symlink():
            return at
        to = os.readlink(at)
        at = root / to.lstrip("/") if to.startswith("/") else Path(os.path.normpath(at.parent / to))
    return at


def _judge(place: str, option: str, root: Path, allowed: str) -> None:
    for _ in range(MOST_SCRIPTS):
        at = _inside(root, place)
        try:
            if not stat.S_ISREG(at.stat().st_mode):
                raise InputError(f"{option}: found {place}, which is no regular file; allowed: {allowed}")
            with at.open("rb") as file:
                head = file.read(512)
        except OSError as error:
            raise InputError(
                f"{option}: found {place} ({(error.strerror or str(error)).lower()}); allowed: {allowed}"
            ) from None
        if head.startswith(b"#!"):
            line = head[2:].split(b"\n", 1)[0].split()
            place = line[0].decode(errors="replace") if line else ""
            if not place.startswith("/") or not os.path.isfile(_inside(root, place)):
                raise InputError(f"{option}: found a script for {quote(place)}, which is not there; allowed: {allowed}")
            continue
        machine = int.from_bytes(head[18:20], "little")
        if head[:4] != b"\x7fELF" or len(head) < 64:
            raise InputError(f"{option}: found {place}, which is no program; allowed: {allowed}")
        if head[4] != 2 or machine != X86_64:
            what = MACHINES.get(machine, f"machine {machine}") if machine != X86_64 else "x86-64 with 32-bit addresses"
            raise InputError(f"{option}: found {place}, a program for {what}; allowed: {allowed}")
        return
    raise InputError(f"{option}: found a script of a script of a script; allowed: {allowed}")
