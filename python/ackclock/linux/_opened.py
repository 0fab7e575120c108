"""Records the files that the guest opens on this machine: a system-call filter (seccomp) on the kernel's process
reports each open, and lets it proceed.

The programs' own calls never leave the guest; the guest's kernel opens files for them. Failed lookups of missing
files are not recorded.
"""

from __future__ import annotations

import array
import errno
import fcntl
import os
import re
import select
import socket
import stat
import struct
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from ackclock.linux import _cache, _filter

__all__ = ["Opened", "filtered", "unchanged"]

FILTER = Path(__file__).with_name("_filter.py")
"""Program that installs the filter. It imports none of our modules, so that it starts quickly."""

RECEIVE, SEND, GO_ON = 0xC0502100, 0xC0182101, 1
"""ioctl requests of a listener (receive the next call, send the response), and the response flag that lets the call proceed."""

CALL = struct.Struct("<QIIiIQ6Q")
ANSWER = struct.Struct("<QqiI")

OLDEST = (5, 9)
"""First Linux version with listeners that report when all filtered processes have ended; letting a call proceed requires only 5.5."""

LOOK_MS = 200
"""Interval at which the thread checks whether it should stop, ms."""

LONGEST = 4096
"""Maximum length of a path, bytes."""

APART = ("/proc/", "/sys/", "/dev/")
"""Virtual file systems, whose files are not hashed."""


class Opened:
    """Paths of the files opened so far, collected by a thread; `paths` is None if opens cannot be observed on this system."""

    def __init__(self) -> None:
        self.paths: set[str] | None = set()
        self._thread: threading.Thread | None = None
        self._over = False

    def listen(self, listener: int) -> None:
        """Start a thread that responds to a listener's notifications until no process has the filter."""
        self._thread = threading.Thread(target=self._answer, args=(listener,), daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Wait for the thread after the processes have ended."""
        self._over = True
        if self._thread is not None:
            self._thread.join()

    def hashes(self, *, but: Path, folders_but: Sequence[str]) -> dict[str, str] | None:
        """Return the hash of each file, and of the names in each folder, in path order. None if opens could not be observed.

        Parameters
        ----------
        but
            Folder whose contents are ignored.
        folders_but
            Folders whose subfolders are ignored.
        """
        if self.paths is None:
            return None
        apart = (f"{but}/", *APART)
        found = ((path, _hash(path)) for path in sorted(self.paths - {str(but)}) if not path.startswith(apart))
        inner = tuple(f"{one}/" for one in folders_but)
        hidden = {path for path in self.paths if f"{path}/".startswith(inner) and os.path.isdir(path)}
        return {path: own for path, own in found if own is not None and path not in hidden}

    def _answer(self, listener: int) -> None:
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        try:
            while True:
                told = poll.poll(LOOK_MS)
                if any(event & (select.POLLHUP | select.POLLERR) for _, event in told) or (self._over and not told):
                    return
                if not told:
                    continue
                call = bytearray(CALL.size)
                try:
                    fcntl.ioctl(listener, RECEIVE, call)
                except OSError as error:
                    if error.errno in (errno.ENOENT, errno.EINTR):  # the caller has died
                        continue
                    return
                self._note(bytes(call))
                number = CALL.unpack(call)[0]
                with suppress(OSError):
                    fcntl.ioctl(listener, SEND, bytearray(ANSWER.pack(number, 0, 0, GO_ON)))
        finally:
            os.close(listener)

    def _note(self, call: bytes) -> None:
        _, process, _, what, _, _, *arguments = CALL.unpack(call)
        try:
            with open(f"/proc/{process}/mem", "rb", buffering=0) as memory:
                memory.seek(arguments[what == _filter.OPENAT])
                name = memory.read(LONGEST).partition(b"\0")[0]
        except PermissionError:
            self.paths = None  # no record is better than an incomplete one
        except OSError:  # the caller has died
            pass
        else:
            if name.startswith(b"/") and self.paths is not None:
                self.paths.add(os.path.normpath(f"/{os.fsdecode(name).lstrip('/')}"))


@contextmanager
def filtered(command: list[str], opened: Opened) -> Iterator[tuple[list[str], tuple[int, ...]]]:
    """Yield a command that runs `command` under the filter, and the descriptors that it must inherit. The recording
    in `opened` starts when the block ends.
    """
    if _release() < OLDEST:
        opened.paths = None
        yield command, ()
        return
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            yield [sys.executable, "-I", "-S", str(FILTER), str(theirs.fileno()), *command], (theirs.fileno(),)
        given = ours.recvmsg(1, socket.CMSG_SPACE(4))[1]
    if given:
        opened.listen(array.array("i", given[0][2][:4])[0])
    else:
        opened.paths = None


def _release() -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])


def unchanged(known: Mapping[str, str]) -> bool:
    """Return whether none of these files and folders has changed."""
    return all(_hash(path) == was for path, was in known.items())


def _hash(path: str) -> str | None:
    try:
        about = os.stat(path)
        if stat.S_ISDIR(about.st_mode):
            return _cache.hash_file(os.fsencode(entry.name) for entry in os.scandir(path))
        if not stat.S_ISREG(about.st_mode):
            return None
        return _hash_of_file(path, about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
    except OSError:
        return None


@lru_cache(maxsize=10_000)
def _hash_of_file(path: str, *_state: int) -> str:
    return _cache.sha256(Path(path))
