"""Reads Mahimahi traces: each line is a millisecond at which one packet may be sent."""

from __future__ import annotations

import hashlib
import stat
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ackclock import _engine
from ackclock._files import reads
from ackclock.errors import ScenarioError, quote

LARGEST_FILE = 128 * 2**20
"""Maximum size of an accepted trace, bytes: an hour at 500 Mbit/s."""

_LINE = "a whole number of milliseconds in each line"


@dataclass(frozen=True)
class Opportunities:
    """Delivery opportunities of a trace.

    Parameters
    ----------
    trace
        Delivery opportunities in each millisecond, from 0 to the last one named.
    sha256
        SHA-256 of the file.
    """

    trace: _engine.Trace
    sha256: str

    @property
    def counts(self) -> tuple[int, ...]:
        """Return the opportunities one by one."""
        return self.trace.counts


def read(path: str) -> Opportunities:
    """Read a trace.

    Parameters
    ----------
    path
        File of non-decreasing whole milliseconds, one per line; the last one is the period.

    Raises
    ------
    ScenarioError
        If the file cannot be read or is not a trace: file, line, what was found, what is allowed.
    """
    allowed = f"a readable file of at most {LARGEST_FILE // 2**20} MiB"
    try:
        status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode):
            found = "a folder" if stat.S_ISDIR(status.st_mode) else "no regular file"
            raise ScenarioError(source=path, found=found, allowed=allowed)
        if status.st_size == 0:  # files in /proc also have size 0, and some would block a reader forever
            raise ScenarioError(source=f"{path}, line 1", found="an empty trace", allowed=_LINE)
        if status.st_size > LARGEST_FILE:
            raise ScenarioError(source=path, found=f"{status.st_size} bytes", allowed=allowed)
        reads(path)
        return _read(path, status.st_mtime_ns, status.st_size)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ScenarioError(source=path, found=f"an unreadable file ({reason.lower()})", allowed=allowed) from None
    except ScenarioError:
        raise
    except ValueError:  # the name contains a null byte
        raise ScenarioError(source=quote(path), found="a name that no file has", allowed=allowed) from None


@lru_cache(maxsize=8)
def _read(path: str, *stamp: int) -> Opportunities:  # noqa: ARG001 - part of the key of the cache
    data = Path(path).read_bytes()
    try:
        trace = _engine.Trace.read(data)
    except _engine.Refusal as refusal:
        line, found, allowed = refusal.args
        raise ScenarioError(source=f"{path}, line {line}", found=found, allowed=allowed) from None
    return Opportunities(trace=trace, sha256=hashlib.sha256(data).hexdigest())
