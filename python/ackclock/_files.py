"""Writing to disk: one check for every file that a command writes, and all-or-nothing writing of folders.

| file | may be replaced |
| --- | --- |
| read by the command | never |
| named by the user | yes |
| in a folder named by the user | only if one of our files shows that the folder already contains output of the same kind |

Length: names, marks, locks and writes change together: each is a promise about the same folder.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import secrets
import shutil
import signal
import stat
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock.errors import AckclockError, InputError, UnavailableError, shown

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "OWN",
    "begin",
    "check_file",
    "check_folder",
    "contents",
    "give_leave",
    "guarding",
    "has_leave",
    "is_ours",
    "parquet",
    "reads",
    "reason",
    "refused",
    "regular",
    "remove_parts",
    "resolved",
    "scratch",
    "staged",
    "sync",
    "write",
]  # fmt: skip

OWN: Sequence[str] = ("*",)
"""Value of `marks` for a folder of our own that contains nothing else."""

_inputs: list[Path] | None = None
"""Files read so far by the command; None in a program that imports ackclock, because it may overwrite files
it has read.
"""

_leave = True
"""Whether a compiler may be started for a file named by a scenario. A command asks its user first; a program needs no
permission.
"""

_held: list[int] = []
"""Pipes opened to check that they have a reader. Closing one would signal end of file to the reader."""

STAGED = re.compile(r"\.ackclock-[0-9a-f]{16}")
"""Names of folders in which files are collected before they are moved. Other programs may use such names, so our folders also contain a mark."""

MARK = ".ackclock"
"""Marker file in such a folder, written before any other."""

MARKED = b"This folder is made and removed by a command of ackclock.\n"
"""First line of the marker file. It is followed by the names of the files that identify the folder's kind; a folder
for a single file has none.
"""

PATIENCE_S = 3.0
"""Maximum time without a reader on a pipe, seconds: a shell starts both ends at once."""


def begin() -> None:
    """Start a command: forget the previous one's inputs. From now on, files that have been read are not
    overwritten and no compiler is started without permission.
    """
    global _inputs, _leave  # noqa: PLW0603 - a command is one process
    _inputs = []
    _leave = False


def end() -> None:
    """End a command: the calling program may overwrite files it has read."""
    global _inputs, _leave  # noqa: PLW0603 - a command is one process
    _inputs = None
    _leave = True


def guarding() -> bool:
    """Return whether a command is running. Its current folder may belong to someone else."""
    return _inputs is not None


def give_leave() -> None:
    """Record that the user named a program or passed --own-code."""
    global _leave  # noqa: PLW0603 - a command is one process
    _leave = True


def has_leave() -> bool:
    """Return whether compilers may be started."""
    return _leave


def reads(*paths: str | Path) -> None:
    """Record an input. A folder means every file in it."""
    if _inputs is not None:
        _inputs.extend(Path(path) for path in paths)


def check_file(path: Path, what: str) -> None:
    """Refuse an output that would replace an input of the command, or a pipe without a reader.

    Parameters
    ----------
    path
        Path as the user gave it.
    what
        Option and name, for the message.

    Raises
    ------
    InputError
        If the path cannot be used.
    """
    try:
        found = path.stat()
    except (OSError, ValueError):
        return
    if stat.S_ISFIFO(found.st_mode):
        _hold(path, what)
    elif stat.S_ISSOCK(found.st_mode):
        raise InputError(f"{what}: found a socket; allowed: a file, a device or a pipe")
    elif stat.S_ISREG(found.st_mode):
        for taken in _inputs or ():
            if _covers(taken, path):
                whose = f"a file of {taken}, which is read" if taken.is_dir() else "what is read"
                raise InputError(f"{what}: found {whose}; allowed: another name")


def _covers(taken: Path, path: Path) -> bool:
    try:
        if not taken.is_dir():
            return taken.samefile(path)
        return taken.resolve() in path.resolve().parents or (path.stat().st_nlink > 1 and _holds(taken, path.stat()))
    except (OSError, ValueError):
        return False


def _holds(folder: Path, file: os.stat_result) -> bool:
    """Return whether a folder contains a hard link to a file."""
    return any(
        os.path.samestat(file, os.lstat(os.path.join(place, name)))
        for place, _, names in os.walk(folder)
        for name in names
    )


def _hold(path: Path, what: str) -> None:
    if any(os.path.samestat(os.fstat(held), path.stat()) for held in _held):
        return
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            _held.append(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise refused(error, what) from None
        else:
            return
        if time.monotonic() > until:
            raise InputError(f"{what}: found a pipe without a reader; allowed: a file, or a pipe with a reader")
        time.sleep(0.05)


def write(path: Path, content: str | bytes, what: str) -> Path:
    """Write one file that the user named, completely or not at all.

    Parameters
    ----------
    path
        Path of the file, whose content is replaced unless the command has read it. Pipes and devices are written
        directly.
    content
        Content; text is written as UTF-8.
    what
        Option and name, for messages.

    Raises
    ------
    InputError
        If the command reads the file.
    UnavailableError
        If the disk refuses it.
    """
    check_file(path, what)
    data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    place = resolved(path, what)
    if path.exists() and not path.is_file():
        try:
            path.write_bytes(data)
        except OSError as error:
            raise refused(error, what) from None
        return path
    with staged(place.parent, marks=OWN, what=what) as part:
        (part / place.name).write_bytes(data)
    return path


def remove(places: Iterable[Path], what: str) -> None:
    """Remove our outdated files.

    Raises
    ------
    InputError, UnavailableError
        If the disk refuses it.
    """
    try:
        for place in places:
            place.unlink(missing_ok=True)
    except OSError as error:
        raise refused(error, what) from None


def resolved(path: Path, what: str) -> Path:
    """Return the target of a path.

    Raises
    ------
    InputError
        If it has no target: circular links, or an impossible name.
    """
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: circular links
        why = reason(error) if isinstance(error, OSError) else "links that lead to each other, or no name"
        raise InputError(f"{what}: cannot be followed ({why})") from None


def check_folder(folder: Path, names: Sequence[str], marks: Sequence[str], *, whose: str) -> None:
    """Refuse a folder in which a file not written by ackclock would be replaced.

    Parameters
    ----------
    folder
        Folder, which need not exist.
    names
        Names of the files to be written.
    marks
        Files that identify the folder's kind.
    whose
        Command that writes such files, for the message: "run".

    Raises
    ------
    InputError
        If there is such a file.
    """
    taken = sorted(name for name in names if os.path.lexists(folder / name))
    if taken and not _marked(folder, marks):
        raise InputError(
            f"{folder}: found {taken[0]}, which no {whose} has written; allowed: a folder without it, or that of "
            f"{'an' if whose[0] in 'aeiou' else 'a'} {whose}"
        )


def _marked(folder: Path, marks: Sequence[str]) -> bool:
    """Return whether there is a mark in the folder, or in a part left there by a killed writer. Writers move marks last."""
    places = (folder, *_parts(folder))
    return marks is OWN or any(is_ours(place / mark) for place in places for mark in marks)


def _parts(folder: Path) -> list[Path]:
    try:
        return [part for part in folder.iterdir() if STAGED.fullmatch(part.name) and _is_part(part)]
    except (OSError, ValueError):  # no such folder, or an impossible name
        return []


def _is_part(folder: Path) -> bool:
    """Return whether a folder is one of our parts: it has our marker file, or its writer was killed before
    writing the marker or anything else.
    """
    try:
        if folder.is_symlink() or not folder.is_dir():
            return False
        mark = folder / MARK
        if not (mark.is_file() and not mark.is_symlink() and mark.stat().st_size <= len(MARKED) + LONGEST_NAMES):
            return next(folder.iterdir(), None) is None
        said = mark.read_bytes()
        return said.startswith(MARKED) or (MARKED.startswith(said) and list(folder.iterdir()) == [mark])
    except OSError:
        return False


LONGEST_NAMES = 1000
"""Maximum total size of the names in a marker file, bytes."""


def _alone_says(rest: Path, folder: Path) -> bool:
    """Return whether a part left by a killed writer is the only evidence of the folder's kind. Such a part is kept
    until a writer finishes.
    """
    try:
        names = (rest / MARK).read_bytes()[len(MARKED) :].decode().splitlines()
    except (FileNotFoundError, UnicodeDecodeError):
        return False
    except OSError:
        return True  # the part cannot be read, so keep it
    return not any(is_ours(folder / name) for name in names) and any(
        is_ours(rest / name, unread=True) for name in names
    )


def is_ours(path: Path, *, unread: bool = False) -> bool:
    """Return whether a file identifies itself as ours: a page by its generator, JSON by its schema or by the keys of a
    run. Return `unread` if the file cannot be read.
    """
    try:
        if not path.is_file():
            return False
        if path.suffix == ".html":
            with path.open("rb") as file:
                return GENERATOR in file.read(2048)
        about = json.loads(_regular(path, LARGEST_ABOUT))
    except (OSError, UnreadError):
        return unread
    except (InputError, ValueError, RecursionError):
        return False
    if not isinstance(about, dict):
        return False
    return {"digest", "engine", "provenance", "scenario"} <= set(about) or str(about.get("schema")).startswith(
        "ackclock."
    )


LARGEST_ABOUT = 2**28
"""Maximum size of a `run.json` or an `evaluate.json`, bytes; they have a row for each flow or cell."""

GENERATOR = b'<meta name="generator" content="ackclock">'
"""HTML element in the head of each of our pages."""


class UnreadError(InputError):
    """Raised if an existing file cannot be read, because of the disk or missing permissions."""


def regular(path: Path, most: int) -> bytes:
    """Return the content of a file read by the command. Files that could block or never end are refused.

    Parameters
    ----------
    path
        Regular file: no pipe, no device. most Maximum size, bytes.

    Raises
    ------
    InputError
        If it is not a regular file, is too large, or cannot be read.
    """
    content = _regular(path, most)
    reads(path)
    return content


def _regular(path: Path, most: int) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise UnreadError(f"{path}: cannot be read ({reason(error)})") from None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "a pipe or a device"
        raise InputError(f"{path}: found {kind}; allowed: a file")
    with open(descriptor, "rb") as file:
        try:
            content = file.read(most + 1)
        except OSError as error:
            raise UnreadError(f"{path}: cannot be read ({reason(error)})") from None
    if len(content) > most:
        size = max(found.st_size, len(content))
        raise InputError(f"{path}: found {size:,} bytes; allowed: at most {most:,}")
    return content


def contents(path: Path, most: int) -> str:
    """Return the text of a regular file; bytes that are not UTF-8 become U+FFFD."""
    return regular(path, most).decode("utf-8", "replace")


@contextmanager
def staged(folder: Path, *, marks: Sequence[str], what: str = "") -> Iterator[Path]:
    """Collect files next to their destination, and move them there only if all of them were written.

    Parameters
    ----------
    folder
        Created if absent, and removed again if the body fails.
    marks
        Files of which one is enough to permit replacing the folder's contents; `OWN` if all may be replaced.
    what
        Name of the output for messages; by default the folder.

    Yields
    ------
    Path
        Folder to write into, which contains only our mark; its tree is moved into `folder` at the end.

    Raises
    ------
    InputError, UnavailableError
        If the disk refuses what the body writes, or one of the moves.
    """
    missing = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
    part: Path | None = None
    held = -1
    moving = False
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part = _name(folder)
        held = _begun(folder, part, marks)
        yield part
        files = sorted(path for path in part.rglob("*") if path.is_file() and path != part / MARK)
        names = [file.relative_to(part) for file in files]
        _check_places(folder, names, marks)
        for path in (*files, *(path for path in (part, *part.rglob("*")) if path.is_dir()), folder):
            sync(path)
        with _uninterrupted():
            moving = True
            _move(part, folder, names, [name for name in names if str(name) in marks])
            moving = False
    except BaseException as error:
        if not moving:  # otherwise the mark vouches for the moved files
            _remove(part)
        for path in missing:
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()
        if isinstance(error, OSError) or (isinstance(error, Exception) and _said(error)[1] is not None):
            raise refused(error, what or str(folder)) from None
        raise
    finally:
        if held >= 0:
            os.close(held)
    _remove(part)
    if marks is not OWN:
        remove_parts(folder)


def _move(part: Path, folder: Path, names: Sequence[Path], last: Sequence[Path]) -> None:
    """Move a part's files into a folder, marks last. Everything else is synced before a mark is moved, so that a
    mark proves that all files are present even after a power failure.
    """
    gone = [name for name in last if os.path.lexists(folder / name)]
    for name in gone:  # no mark may exist while the folder contains both old and new output
        (folder / name).unlink()
    if gone:
        sync(folder)
    for some in ([name for name in names if name not in last], last):
        for name in some:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (part / name).replace(folder / name)
        for place in sorted(
            {above for name in some for above in (folder / name).parents if above.is_relative_to(folder)}
        ):
            sync(place)


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk.

    Raises
    ------
    OSError
        If the disk refuses it.
    """
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # not supported by the file system
            raise
    finally:
        os.close(opened)


def _name(folder: Path) -> Path:
    """Return a new name for a part. Callers store it before the folder exists, so that Ctrl-C cannot leave it behind."""
    return folder / f".ackclock-{secrets.token_hex(8)}"


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """Create one of our folders in one of the user's, and remove it at the end. Leftovers of killed commands there
    are removed as well.

    Yields
    ------
    Path
        Folder that contains only our mark.
    """
    part, held = _name(folder), -1
    try:
        held = _begun(folder, part, OWN)
        yield part
    finally:
        _remove(part)
        if held >= 0:
            os.close(held)


def remove_parts(folder: Path) -> None:
    """Remove the leftovers of killed commands from a folder."""
    if not _parts(folder):  # no part readable by this user
        return
    with _gate(folder):
        for rest in _parts(folder):
            if not _alone_says(rest, folder):
                _remove_unheld(rest)


def _check_places(folder: Path, names: Sequence[Path], marks: Sequence[str]) -> None:
    """Check all destinations before moving the first file. In one of our own folders, such as a sweep's, inputs may be replaced."""
    if marks is OWN:
        return
    ours = _marked(folder, marks)
    for name in names:
        place = folder / name
        if not ours and os.path.lexists(place):
            raise InputError(f"{place}: found a file that is not ours to replace; allowed: another folder")
        check_file(place, str(place))


@contextmanager
def _gate(folder: Path) -> Iterator[None]:
    """Hold a lock on the folder, so that no other writer sees a part before it is locked."""
    gate = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # without locks, no part is removed
            fcntl.flock(gate, fcntl.LOCK_EX)
        yield
    finally:
        os.close(gate)


def _begun(folder: Path, part: Path, marks: Sequence[str]) -> int:
    """Create and lock a part, and remove parts of killed writers, recognised by their released locks."""
    # tested without reading the file, because reading it may fail
    if STAGED.fullmatch(folder.name) and os.path.lexists(folder / MARK):
        return _made(part, marks)  # a part within a part has the same writer, who already holds the lock
    with _gate(folder):
        for rest in _parts(folder):
            if not _alone_says(rest, folder):
                _remove_unheld(rest)
        return _made(part, marks)


def _made(part: Path, marks: Sequence[str]) -> int:
    part.mkdir(mode=0o700)
    held = os.open(part, os.O_RDONLY)
    with suppress(OSError):
        fcntl.flock(held, fcntl.LOCK_EX)
    try:
        (part / MARK).write_bytes(MARKED + ("" if marks is OWN else "".join(f"{name}\n" for name in marks)).encode())
        sync(part / MARK)
    except BaseException:
        os.close(held)
        raise
    return held


def _remove_unheld(rest: Path) -> None:
    try:
        held = os.open(rest, os.O_RDONLY)
    except FileNotFoundError:
        return  # the writer has finished
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(rest)
        if _inputs is not None and sys.stderr is not None:  # a command reports every change in the user's folders
            sys.stderr.write(f"ackclock: {shown(str(rest))}: removed; a command that was killed had left it\n")
    except BlockingIOError:
        pass  # the writer is still running
    finally:
        os.close(held)


def _remove(part: Path | None) -> None:
    """Remove a part, deferring Ctrl-C so that it is not left half removed. The marker file is removed last, so that a
    part that cannot be removed completely is still recognised as ours.
    """
    if part is None:
        return
    with _uninterrupted(), suppress(OSError):
        for place in [path for path in part.iterdir() if path.name != MARK]:
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            else:
                place.unlink()
        (part / MARK).unlink(missing_ok=True)
        part.rmdir()


_ENDING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Defer Ctrl-C and SIGTERM while files are moved."""
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
    """Return the system's reason in a few words. Polars and the engine report it with an error number, SQLite in its
    own words.
    """
    said, number = _said(error)
    if number in (errno.ENOSPC, errno.EDQUOT) or "disk is full" in said:
        return "no space left on the device"
    return (os.strerror(number) if number else said).lower().removeprefix("is ")


_OF_THE_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)


def refused(error: Exception, what: str, *, instead: str = "") -> AckclockError:
    """Return the error for a failed write: a full or read-only disk is the environment's fault, an impossible file name
    the input's.

    Parameters
    ----------
    error
        Error of the system.
    what
        Name of the output.
    instead
        Names that are allowed instead; then the line says what was found and what is allowed.
    """
    said, number = _said(error)
    kind = UnavailableError if number in _OF_THE_MACHINE or "disk is full" in said else InputError
    if instead:
        return kind(f"{what}: found {reason(error)}; allowed: {instead}")
    return kind(f"{what}: cannot be written ({reason(error)})")


def parquet(frame: pl.DataFrame | pl.LazyFrame, place: Path, **options: Any) -> None:
    """Write a table, or the result of a lazy plan. If the end of a file cannot be written, Polars reports only
    "transport error"; another write is then attempted to obtain the system's reason.
    """
    import polars as pl

    try:
        if isinstance(frame, pl.LazyFrame):
            frame.sink_parquet(place, **options)
        else:
            frame.write_parquet(place, **options)
    except Exception as error:
        if _said(error)[1] is None:
            with place.open("ab", buffering=0) as file:
                file.write(bytes(1 << 16))
            if "transport error" in str(error):
                raise OSError(errno.EIO, os.strerror(errno.EIO), str(place)) from error
        raise


def _said(error: Exception) -> tuple[str, int | None]:
    said = (str(error).splitlines() or [type(error).__name__])[0]
    number = error.errno if isinstance(error, OSError) else None
    if (told := re.search(r"\(os error (\d+)\)", said)) is not None:  # error number as printed by Rust's std::io
        number = int(told[1])
    return said, number
