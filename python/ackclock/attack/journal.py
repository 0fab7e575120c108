"""Search journal: a line that describes the search, then one line per candidate.

Each line ends with the CRC-32 of its content. A journal is valid up to its first damaged line; candidates after it
are run again.

Only one search writes a journal at a time. The lock is the operating system's, so it is released when the process ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ackclock import _files
from ackclock.errors import InputError, UnavailableError

JOURNAL = "journal.jsonl"
"""Name of the journal in an attack's folder."""

LARGEST_JOURNAL = 2**30
"""Maximum size of a journal, bytes: a few million candidates."""


class Journal:
    """An open journal.

    Parameters
    ----------
    path
        File, created if absent.
    identity
        Description of the search, which must be identical to the first line of a continued journal.

    Raises
    ------
    InputError
        If the file is the journal of another search, or cannot be read.
    UnavailableError
        If another search is writing it, or the disk cannot be written to.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any]) -> None:
        self._what = f"--out {path.parent}"
        if os.path.lexists(path):
            _files.regular(path, LARGEST_JOURNAL)
        try:
            self._file = path.open("a+", encoding="utf-8")
        except OSError as error:
            raise _files.refused(error, self._what) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise UnavailableError(
                f"{self._what}: another session is writing here; wait for it, or use another --out"
            ) from None
        except OSError:
            pass  # the file system does not support locks
        try:
            self._lines = self._read(path, json.dumps(dict(identity), sort_keys=True) + "\n")
        except BaseException:
            self._file.close()
            raise

    def lines(self) -> Iterator[Any]:
        """Lines after the first, read when the journal was opened."""
        for line in self._lines:
            yield json.loads(line)

    def write(self, lines: Iterable[Any]) -> None:
        """Append lines."""
        self._append("".join(f"{_summed(json.dumps(line))}\n" for line in lines))

    def close(self) -> None:
        """Unlock the journal for another search."""
        self._file.close()

    def _append(self, text: str) -> None:
        try:
            self._file.write(text)
            self._file.flush()
        except OSError as error:
            raise _files.refused(error, self._what) from None

    def _read(self, path: Path, head: str) -> list[str]:
        text = _files.regular(path, LARGEST_JOURNAL).decode(errors="replace")
        if len(text) < len(head) and head.startswith(text):  # new, or a process died while writing the first line
            self._file.truncate(0)
            self._append(head)
            return []
        first, *lines, _ = text.split("\n")
        if first != head[:-1]:
            raise InputError(
                f"{self._what}: found the journal of another search, or of another engine; allowed: a new folder, or the same search"
            )
        good = [_whole(line) for line in lines]
        count = good.index(None) if None in good else len(good)
        self._file.truncate(len(head.encode()) + sum(len(line.encode()) + 1 for line in lines[:count]))
        return [line for line in good[:count] if line is not None]


def _summed(line: str) -> str:
    return f"{line} {zlib.crc32(line.encode()):08x}"


def _whole(line: str) -> str | None:
    """Return a line's content without its checksum; None if the line is damaged or incomplete."""
    content = line[:-9]
    return content if _summed(content) == line else None
