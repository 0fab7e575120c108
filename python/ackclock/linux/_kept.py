"""Lists the contents of the cache (kernels by name, and the trees in which they were built), and removes them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ackclock.errors import InputError, one_of, quote
from ackclock.linux import _build, _cache

__all__ = ["Kept", "kept", "remove", "remove_unused", "unused"]

TREES = ("tree-*", "patched-*", "followed-*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """A kernel in the cache.

    Parameters
    ----------
    names
        Names that the user gave to the kernel.
    current
        Whether runs use it by default.
    folder
        Folder of the kernel.
    release, source
        Version and origin.
    own
        Patches and controllers of the user.
    tree
        Folder in which it was built; "" if unknown (built before it was recorded) or removed.
    """

    names: tuple[str, ...]
    current: bool
    folder: str
    release: str
    source: str
    own: tuple[str, ...]
    tree: str

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary."""
        return {
            "names": list(self.names),
            "current": self.current,
            "folder": self.folder,
            "release": self.release,
            "source": self.source,
            "own": list(self.own),
            "tree": self.tree or None,
            "bytes": size(_cache.folder() / self.folder),
        }


def kept() -> list[Kept]:
    """Return every kernel, the current one first, then by release and name."""
    here = _cache.folder()
    names: dict[str, list[str]] = {}
    for file in sorted((here / "names").glob("[!.]*")):
        names.setdefault(file.read_text(encoding="utf-8").strip(), []).append(file.name)
    current = _read(here / "current")
    ours = {path.name for path in (_cache.repository() / "patches").glob("*.patch")}
    made = []
    for file in sorted(here.glob("kernel-*/kernel.json")):
        about = json.loads(file.read_bytes())
        folder = file.parent.name
        own = [name for name in about["patches"] if name not in ours]
        own += [name for name in about["files"] if name not in _build.OUR_FILES]
        tree = str(about.get("tree", ""))
        made.append(
            Kept(
                names=tuple(names.get(folder, ())),
                current=folder == current,
                folder=folder,
                release=str(about["release"]),
                source=str(about["source"]),
                own=tuple(own),
                tree=tree if tree and (here / tree).is_dir() else "",
            )
        )
    return sorted(made, key=lambda one: (not one.current, one.release, one.names))


def remove(names: Sequence[str]) -> list[str]:
    """Forget names. A kernel is removed if it has no other name and is not the current one, and its tree if no other
    kernel was built there.

    Returns
    -------
    list of str
        Removed folders.

    Raises
    ------
    InputError
        If a name is unknown.
    """
    here = _cache.folder()
    known = sorted(file.name for file in (here / "names").glob("[!.]*"))
    for name in names:
        if name not in known:
            allowed = one_of(name, known) if known else "none, for no kernel has a name"
            raise InputError(f"linux remove: found {quote(name)}; allowed: {allowed}")
    with _build.one_at_a_time(here):
        before = kept()
        for name in names:
            (here / "names" / name).unlink()
        after = {one.folder: one for one in kept()}
        gone = [one for one in before if set(one.names) & set(names) and not _is_used(after[one.folder])]
        stays = [one for folder, one in after.items() if folder not in {g.folder for g in gone}]
        trees = {one.tree for one in gone if one.tree} - {one.tree for one in stays}
        return _removed(here, [one.folder for one in gone] + sorted(trees))


def unused() -> list[str]:
    """Return the folders and guest programs that neither a named kernel nor the current one needs, and our sources of
    other versions.
    """
    here = _cache.folder()
    every = kept()
    used = [one for one in every if _is_used(one)]
    found = [one.folder for one in every if not _is_used(one)]
    if all(one.tree for one in used):  # if a kernel's tree is unknown, it may be any of these
        needed = {one.tree for one in used}
        # a patched copy comes from the tree with the same key
        needed |= {f"tree-{tree.removeprefix('patched-')}" for tree in needed}
        found += sorted(place.name for kind in TREES for place in here.glob(kind) if place.name not in needed)
    guest, ours = f"guest-{_cache.guest_key()}", _cache.repository().parent.name
    found += sorted(place.name for place in here.glob("ours-*") if place.name != ours)
    return found + sorted(file.name for file in here.glob("guest-*") if file.name != guest)


def remove_unused() -> list[str]:
    """Remove everything listed by `unused`."""
    here = _cache.folder()
    with _build.one_at_a_time(here):
        return _removed(here, unused())


def size(place: Path) -> int:
    """Return the size of a file, or of all files below a folder, bytes; hard-linked files count once."""
    if not place.is_dir():
        return place.stat().st_size if place.exists() else 0
    seen: dict[tuple[int, int], int] = {}
    folders: list[str] = [str(place)]
    while folders:
        with os.scandir(folders.pop()) as inside:
            for entry in inside:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    about = entry.stat(follow_symlinks=False)
                    seen[about.st_dev, about.st_ino] = about.st_size
    return sum(seen.values())


def _is_used(one: Kept) -> bool:
    return one.current or bool(one.names)


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8").strip() if file.is_file() else ""


def _removed(here: Path, names: Iterable[str]) -> list[str]:
    gone = []
    for name in names:
        place = here / name
        if place.is_dir():
            aside = place.with_name(f".gone-{name}")  # atomic: a folder is complete or gone
            place.replace(aside)
            shutil.rmtree(aside, ignore_errors=True)
        else:
            place.unlink(missing_ok=True)
        gone.append(name)
    return gone
