"""Reads Mahimahi traces: a millisecond in each line, at which one packet may leave."""

from __future__ import annotations

import hashlib
import re
import stat
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ackclock.errors import ScenarioError, quote

LARGEST_FILE = 128 * 2**20
"""Bytes of the largest trace that is read: an hour at 500 Mbit/s."""

LONGEST_MS = 3_600_000
"""Length of the longest trace that is read, ms."""

_AT_ONCE = 2**22
"""Lines counted at once."""

_LINE = "a whole number of milliseconds in each line"

_LINES = re.compile(rb"(?:[0-9]{1,9}+\r?+\n)*+(?:[0-9]{1,9}+)?+")


@dataclass(frozen=True)
class Opportunities:
    """What a trace says.

    Parameters
    ----------
    counts
        Delivery opportunities in each millisecond, from 0 to the last one named.
    sha256
        Of the file.
    """

    counts: tuple[int, ...]
    sha256: str


def read(path: str) -> Opportunities:
    """Read a trace.

    Parameters
    ----------
    path
        Lines of whole milliseconds that never decrease; the last one is the period.

    Raises
    ------
    ScenarioError
        If it cannot be read or is no trace: file, line, what was found, what is allowed.
    """
    allowed = f"a readable file of at most {LARGEST_FILE // 2**20} MiB"
    try:
        status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode):
            found = "a folder" if stat.S_ISDIR(status.st_mode) else "no regular file"
            raise ScenarioError(source=path, found=found, allowed=allowed)
        if status.st_size == 0:  # so are the files of /proc, some of which would keep a reader waiting for ever
            raise ScenarioError(source=f"{path}, line 1", found="an empty trace", allowed=_LINE)
        if status.st_size > LARGEST_FILE:
            raise ScenarioError(source=path, found=f"{status.st_size} bytes", allowed=allowed)
        return _read(path, status.st_mtime_ns, status.st_size)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ScenarioError(source=path, found=f"an unreadable file ({reason.lower()})", allowed=allowed) from None
    except ScenarioError:
        raise
    except ValueError:  # a null in the name
        raise ScenarioError(source=quote(path), found="a name that no file has", allowed=allowed) from None


@lru_cache(maxsize=8)
def _read(path: str, *stamp: int) -> Opportunities:  # noqa: ARG001 - part of the key of the cache
    import numpy as np

    data = Path(path).read_bytes()
    if not data or _LINES.fullmatch(data) is None:
        _refuse(path, data)
    times = np.fromstring(data, dtype=np.int32, sep="\n")
    back = np.flatnonzero(times[1:] < times[:-1])
    if back.size:
        i = int(back[0]) + 1
        raise ScenarioError(
            source=f"{path}, line {i + 1}",
            found=f"{times[i]} ms after {times[i - 1]} ms",
            allowed="times that never decrease",
        )
    last = int(times[-1])
    if last > LONGEST_MS or last == 0:
        raise ScenarioError(
            source=f"{path}, line {len(times)}",
            found=f"{last} ms as the trace's end",
            allowed=f"1 to {LONGEST_MS} ms",
        )
    counts = np.zeros(last + 1, dtype=np.int64)
    for start in range(0, len(times), _AT_ONCE):  # numpy makes numbers of twice the size of what it counts
        counts += np.bincount(times[start : start + _AT_ONCE], minlength=last + 1)
    return Opportunities(counts=tuple(counts.tolist()), sha256=hashlib.sha256(data).hexdigest())


def _refuse(path: str, data: bytes) -> None:
    if not data.strip():
        raise ScenarioError(source=f"{path}, line 1", found="an empty trace", allowed=_LINE)
    for i, line in enumerate(data.split(b"\n"), start=1):
        text = line.removesuffix(b"\r")
        if re.fullmatch(rb"[0-9]{1,9}", text) is None:
            found = quote(text.decode(errors="replace")) if text else "an empty line"
            raise ScenarioError(source=f"{path}, line {i}", found=found, allowed=_LINE)
