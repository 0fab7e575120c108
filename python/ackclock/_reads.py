"""Records the files that the user's own Python code reads during import and while its first instance is created:
modules, weights, tables.

All of these files determine the code's identity, so that a run found in a store was made by the same code with the
same data. Files that belong to the Python installation, the system or ackclock do not count. Files read later by a
class are not noticed; the class has to list them in `reads`.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Never

from ackclock import _files
from ackclock.errors import InputError

__all__ = ["Source", "content", "digest", "heard", "listen", "named"]

SYSTEM = ("/proc", "/sys", "/dev", "/etc", "/usr", "/lib", "/lib64", "/bin", "/opt")
MOST = 10_000
"""Maximum number of files."""

DEEPEST = 100
"""Maximum call depth between user code and the call that opens a file."""

_turn = threading.RLock()
_hearing: tuple[Path, dict[str, None]] | None = None
_hooked = False


class Source(SourceFileLoader):
    """Loader that ignores bytecode caches, which may be stale for a file changed within a second without changing
    size.
    """

    def path_stats(self, path: str) -> Never:  # noqa: ARG002 - as in the class above
        raise OSError


class _Fresh(MetaPathFinder):
    """Modules in the user code's folder, loaded from source."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin is None or not isinstance(spec.loader, SourceFileLoader):
            return None
        if not _counts(os.path.abspath(spec.origin), self._folder):
            return None
        spec.loader = Source(name, spec.origin)
        return spec


def listen() -> None:
    """Install the audit hook that reports reads, unless it is installed."""
    global _hooked  # noqa: PLW0603 - a hook of the interpreter is never taken away
    with _turn:
        if not _hooked:
            sys.addaudithook(_hear)
            _hooked = True


@contextmanager
def heard(folder: Path) -> Iterator[dict[str, None]]:
    """Record the files read in the block. Modules from the folder that were imported earlier are imported again.

    Parameters
    ----------
    folder
        Folder of the own code.
    """
    global _hearing  # noqa: PLW0603 - what the hook of the interpreter looks at
    with _turn:
        listen()
        for name, module in list(sys.modules.items()):
            place = getattr(module, "__file__", None)
            if isinstance(place, str) and not name.startswith("_ackclock_") and name != "__main__":
                path = os.path.abspath(place)
                if path.startswith(f"{folder}{os.sep}") and _counts(path, folder):
                    del sys.modules[name]
        found: dict[str, None] = {}
        fresh = _Fresh(folder)
        before, _hearing = _hearing, (folder, found)
        sys.meta_path.insert(0, fresh)
        try:
            yield found
        finally:
            _hearing = before
            if fresh in sys.meta_path:
                sys.meta_path.remove(fresh)


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    hearing = _hearing
    if event != "open" or (hearing is None and not (_files.guarding() and _of_own_code())):
        return
    name, _, flags = arguments
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    if not isinstance(name, str) or (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)):
        return
    path = os.path.abspath(name)
    if hearing is None:  # read after the code's identity was computed; never overwritten either
        _files.reads(path)
        return
    folder, found = hearing
    if len(found) < MOST and path not in found and _counts(path, folder):
        found[path] = None


def _of_own_code() -> bool:
    """Return whether user code is opening the file."""
    frame: FrameType | None = sys._getframe(2)
    for _ in range(DEEPEST):
        if frame is None:
            return False
        if str(frame.f_globals.get("__name__")).startswith("_ackclock_own_"):
            return True
        frame = frame.f_back
    return False


@lru_cache(maxsize=8192)
def _counts(path: str, folder: Path) -> bool:
    parts = path.split(os.sep)
    if "site-packages" in parts or "dist-packages" in parts or "__pycache__" in parts:
        return False
    if path.startswith(f"{folder}{os.sep}"):
        return True
    ours = str(Path(__file__).parent.parent)
    roots = (*SYSTEM, sys.prefix, sys.base_prefix, sys.exec_prefix, f"{ours}/ackclock", f"{ours}/ackclock_studies")
    return not any(path == root or path.startswith(f"{root.rstrip(os.sep)}{os.sep}") for root in roots)


def content(path: str) -> str | None:
    """Return the hash of a file; None if it is missing or not a regular file."""
    try:
        about = os.stat(path)
        if not stat.S_ISREG(about.st_mode):
            return None
        return _content(path, about.st_mtime_ns, about.st_size, about.st_ino, about.st_ctime_ns)
    except OSError:
        return None


@lru_cache(maxsize=4096)
def _content(path: str, *state: int) -> str:  # noqa: ARG001 - `state` is what the cache goes by
    whole = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(2**20):
            whole.update(part)
    return whole.hexdigest()[:16]


def named(names: object, folder: Path, *, whose: str) -> list[str]:
    """Return the data files declared by a class; names are relative to its folder.

    Raises
    ------
    InputError
        If they are not names of files, or one is missing.
    """
    listed = [names] if isinstance(names, str) else names
    if not isinstance(listed, Iterable):
        raise InputError(f"{whose}, reads: found {names!r}; allowed: names of files")
    found = []
    for name in listed:
        path = os.path.abspath(folder / str(name))
        if content(path) is None:
            raise InputError(
                f"{whose}, reads: found no file {path}; allowed: names of files, from the folder of the code"
            )
        found.append(path)
    return found


def digest(paths: Iterable[str], folder: Path, more: Mapping[str, str] | None = None) -> str:
    """Return a hash of the files' contents and of their names relative to the folder; empty if there are none."""
    parts = dict(more or {})
    for path in sorted(set(paths)):
        inside = content(path)
        if inside is not None:
            parts[os.path.relpath(path, folder)] = inside
            _files.reads(path)
    if not parts:
        return ""
    return hashlib.sha256(repr(sorted(parts.items())).encode()).hexdigest()[:16]
