"""Detects a program that never sleeps: virtual time stands still while a program computes, so one that computes
forever blocks the run.

The guest is observed from outside: each program is a process on the machine, beside the kernel's. If a program
uses CPU time while the kernel uses none, it makes no system calls. Its name is at the end of its stack (AT_EXECFN).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

__all__ = ["ALONE_S", "Watch"]

ALONE_S = 20.0
"""CPU time that a program may use without a system call, s."""

PROC = Path("/proc")


class Watch:
    """Observes a guest from outside.

    Parameters
    ----------
    titles
        Name of each program's output files -> its name in messages.
    """

    def __init__(self, titles: Mapping[str, str]) -> None:
        self._titles = dict(titles)
        self._kernel = -1.0
        self._since: dict[int, float] = {}
        self._before: dict[int, float] = {}
        self._now: dict[int, float] = {}

    def look(self, kernel: int) -> str | None:
        """Return the name, for messages, of a program that used `ALONE_S` of CPU time without a system call; None if
        there is none.
        """
        used = _times(kernel)
        own = used.pop(kernel, -1.0)
        self._before = used if not self._now else self._now
        self._now = used
        if own != self._kernel:
            self._kernel, self._since = own, used
            return None
        for process, seconds in used.items():
            if seconds - self._since.setdefault(process, seconds) >= ALONE_S:
                return self._title(process)
        return None

    def busiest(self) -> str | None:
        """Return the program that used the most CPU time between the last two checks; None if none used at least 0.1
        s.
        """
        spent = {process: seconds - self._before.get(process, 0) for process, seconds in self._now.items()}
        for process in sorted(spent, key=lambda one: spent[one], reverse=True):
            if spent[process] >= 0.1 and _name(process) != "/init":
                return self._title(process)
        return None

    def _title(self, process: int) -> str:
        name = _name(process)
        titles = list(self._titles.values())
        if name is None:
            return " or ".join(titles)
        word = os.path.basename(name)
        return next((title for title in titles if word in title), f"a process of {name}")


def _times(session: int) -> dict[int, float]:
    """Return the CPU time of each process in a session, s."""
    tick = os.sysconf("SC_CLK_TCK")
    found = {}
    for place in PROC.glob("[0-9]*/stat"):
        try:
            fields = place.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            found[int(place.parent.name)] = (int(fields[11]) + int(fields[12])) / tick
    return found


def _name(process: int) -> str | None:
    """Return the file that a process executes, read from the end of its stack."""
    try:
        maps = (PROC / str(process) / "maps").read_text(errors="replace")
        with (PROC / str(process) / "mem").open("rb", buffering=0) as memory:
            for line in reversed(maps.splitlines()):
                start, end = (int(part, 16) for part in line.split()[0].split("-"))
                size = min(end - start, 4096)
                try:
                    memory.seek(end - size)
                    tail = memory.read(size)
                except (OSError, ValueError, OverflowError):
                    continue
                if found := re.search(rb"\0(/[\x21-\x7e]+)\0{8,}$", tail):
                    return found[1].decode()
    except OSError:
        pass
    return None
