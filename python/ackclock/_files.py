"""Folders that get all of their files or none."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ackclock.errors import AckclockError, InputError, UnavailableError

__all__ = ["reason", "refused", "staged"]


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """Collect files beside their place, and move them there only if all of them could be written.

    Parameters
    ----------
    folder
        Created if absent, and removed again if the body fails.

    Yields
    ------
    Path
        An empty folder to write into; its tree is laid over `folder` at the end.
    """
    missing = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
    part: Path | None = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f".ackclock-{secrets.token_hex(8)}"  # known before it is there, whenever Ctrl-C comes
        part.mkdir(mode=0o700)
        yield part
        with _uninterrupted():
            for file in sorted(path for path in part.rglob("*") if path.is_file()):
                place = folder / file.relative_to(part)
                place.parent.mkdir(parents=True, exist_ok=True)
                file.replace(place)
    except BaseException:
        _remove(part)
        for path in missing:
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()
        raise
    _remove(part)


def _remove(part: Path | None) -> None:
    if part is not None:
        shutil.rmtree(part, ignore_errors=True)


_ENDING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM back for the moment that the moves take."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {which: signal.signal(which, lambda number, _: came.append(number)) for which in _ENDING}
    try:
        yield
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)
    for number in came[:1]:
        if before[signal.Signals(number)] is not signal.SIG_IGN:
            signal.raise_signal(number)


def reason(error: Exception) -> str:
    """What the system said, in a few words; polars and the engine hand it on with a number, SQLite in words of its own."""
    said, number = _said(error)
    if number in (errno.ENOSPC, errno.EDQUOT) or "disk is full" in said:
        return "no space left on the device"
    return (os.strerror(number) if number else said).lower()


_OF_THE_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)


def refused(error: Exception, what: str, *, instead: str = "") -> AckclockError:
    """What the disk refuses: a full one, or one that is closed to us, is the environment's; a name that no file can have the input's.

    Parameters
    ----------
    error
        What the system said.
    what
        What was to be written.
    instead
        What may be named instead; then the line says what was found and what is allowed.
    """
    said, number = _said(error)
    kind = UnavailableError if number in _OF_THE_MACHINE or "disk is full" in said else InputError
    if instead:
        return kind(f"{what}: found {reason(error)}; allowed: {instead}")
    return kind(f"{what}: cannot be written ({reason(error)})")


def _said(error: Exception) -> tuple[str, int | None]:
    said = (str(error).splitlines() or [type(error).__name__])[0]
    number = error.errno if isinstance(error, OSError) else None
    if (told := re.search(r"\(os error (\d+)\)", said)) is not None:  # as Rust writes it
        number = int(told[1])
    return said, number
