"""Builds a kernel from the user's own tree: a copy in the cache is kept in sync with it, so that only files that
depend on a change are recompiled.

The tree itself is only read. The copy gets the patches of the linux backend and its configuration, and is built in
place. Build products (object files, another configuration) are not copied. In a checkout git identifies them,
elsewhere their names do.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ackclock import _child
from ackclock.errors import InputError, UnavailableError
from ackclock.linux import _cache, _patched
from ackclock.linux._source import NEEDED_FILES

__all__ = ["Tree", "configured", "find", "followed", "version"]

RECORD = ".ackclock-tree.json"
"""File in a copy that lists the size, timestamp and hash of each file of the tree, and the files changed by patches.
"""

IPV4 = "net/ipv4/Makefile"
MADE = re.compile(r"^\.|\.(?:o|a|ko|mod|order|symvers|cmd)$|^(?:vmlinux|linux|System\.map|Module\.symvers)$")
MADE_IN = re.compile(r"(?:^|/)include/(?:generated|config)$")
"""Names of files and folders that a build creates."""
ALLOWED = "a folder with the source tree of a Linux kernel"


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """A user's kernel tree.

    Parameters
    ----------
    place
        Folder of the tree.
    name
        Name in provenance: the folder's name, and git's description of the commit.
    files
        Paths of its files, without build products.
    """

    place: Path
    name: str
    files: tuple[str, ...]

    @property
    def version(self) -> str:
        """Version of the kernel, e.g. "7.3"."""
        return version(self.place)


def version(place: Path) -> str:
    """Return the version in the makefile of a tree, e.g. "7.3"."""
    text = (place / "Makefile").read_text(encoding="utf-8", errors="replace")
    return ".".join(re.findall(r"^(?:VERSION|PATCHLEVEL) *= *(\d+)", text, re.MULTILINE))


def find(folder: Path) -> Tree:
    """Return the tree in a folder.

    Raises
    ------
    InputError
        If the folder is not a kernel tree.
    UnavailableError
        If git, which knows what to ignore, is missing.
    """
    place = folder.resolve()
    if not place.is_dir():
        raise InputError(f"--tree {folder}: found {'no folder' if place.exists() else 'nothing'}; allowed: {ALLOWED}")
    for name in NEEDED_FILES:
        if not (place / name).is_file():
            raise InputError(f"--tree {folder}: found no {name} in it; allowed: {ALLOWED}")
    name, files = place.name, _walked(place)
    if (place / ".git").exists():
        files = _listed(place, folder)
        name += " " + _git(place, "describe", "--always", "--dirty=+changes", "--abbrev=12").stdout.decode().strip()
    return Tree(place=place, name=name.strip(), files=tuple(files))


def _listed(place: Path, folder: Path) -> list[str]:
    """Return the files of a checkout: those tracked by git, and new ones that are not ignored."""
    if shutil.which("git") is None:
        raise UnavailableError("git is not installed: apt install git")
    done = _git(place, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = {name for name in os.fsdecode(done.stdout).split("\0") if os.path.lexists(place / name)}
    if done.returncode or not names.issuperset(NEEDED_FILES):
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["another repository"]
        raise InputError(f"--tree {folder}: found a checkout that git cannot list ({said[0]}); allowed: {ALLOWED}")
    return sorted(name for name in names if not (place / name).is_dir() or (place / name).is_symlink())


def _walked(place: Path) -> list[str]:
    """Return the files of a folder, except build products."""
    found = []
    for folder, below, names in os.walk(place):
        here = os.path.relpath(folder, place)
        below[:] = [name for name in below if not name.startswith(".") and not MADE_IN.search(f"{here}/{name}")]
        links = [name for name in below if os.path.islink(os.path.join(folder, name))]
        found += [os.path.normpath(f"{here}/{name}") for name in [*names, *links] if not MADE.search(name)]
    return sorted(found)


def followed(
    tree: Tree, place: Path, base: Path | None, patches: Sequence[tuple[str, bytes]], told: Callable[[str], None]
) -> str:
    """Update the copy to the current state of the tree, with patches.

    Parameters
    ----------
    tree
        Original tree.
    place
        Folder of the copy, created if absent.
    base
        Built tree from which a new copy starts, so that only differences are compiled; None: no such tree.
    patches
        Patches in order.
    told
        Called with a description of each step.

    Returns
    -------
    str
        Hash of the tree's files.

    Raises
    ------
    InputError
        If a patch does not apply.
    """
    wanted = _patched.applied(tree.place, patches)
    ipv4 = wanted.get(IPV4) or (tree.place / IPV4).read_bytes()
    wanted[IPV4] = ipv4 + b"\nobj-y += ackclock/\n"
    if not place.is_dir():
        told("copying the tree")
        _begun(place, base)
    record = place / RECORD
    known = json.loads(record.read_bytes())
    before: dict[str, list[int | str]] = known["files"]
    # written first: after an interruption the copy has no record, so the next build compares every file
    _write(record, {"files": {}, "others": sorted({*known["others"], *before, *wanted}), "configured": ""})
    told("comparing the tree")
    files: dict[str, list[int | str]] = {}
    kconfig = False
    for name in tree.files:
        about = os.lstat(tree.place / name)
        now = [about.st_size, about.st_mtime_ns]
        old = before.get(name)
        if name in wanted:
            files[name] = [*now, _hash(tree.place / name)]
        elif old is not None and old[:2] == now and name not in known["others"]:
            files[name] = old
        else:
            changed, digest = _copied(tree.place / name, place / name)
            files[name] = [*now, digest]
            kconfig |= changed and Path(name).name.startswith("Kconfig")
    for name, text in wanted.items():
        kconfig |= _patched.put(place / name, text) and Path(name).name.startswith("Kconfig")
    for name in {*before, *known["others"]} - {*files, *wanted}:
        _patched.put(place / name, None)
    digest = _cache.hash_file(
        part for name, (_, _, content) in sorted(files.items()) for part in (os.fsencode(name), str(content).encode())
    )
    _write(record, {"files": files, "others": sorted(wanted), "configured": "" if kconfig else known["configured"]})
    return digest


def configured(place: Path, config: str, make: Callable[[], None]) -> None:
    """Configure the copy, unless it already has this configuration."""
    record = place / RECORD
    known = json.loads(record.read_bytes())
    if known["configured"] == config and (place / ".config").is_file():
        return
    make()
    _write(record, {**known, "configured": config})


def _begun(place: Path, base: Path | None) -> None:
    """Create a copy: empty, or from a built tree, with all sources compared afterwards."""
    part = Path(tempfile.mkdtemp(prefix=".followed-", dir=place.parent))
    try:
        fresh = part / "tree"
        if base is None:
            fresh.mkdir()
        else:
            done = _child.run(["cp", "-a", "--reflink=auto", str(base.absolute()), str(fresh.absolute())])
            if done.returncode:
                raise UnavailableError(f"{base}: cannot be copied: {done.stderr.strip()[:200]}")
        # files that exist only in the base may stay: no makefile of the tree names them
        _write(fresh / RECORD, {"files": {}, "others": [], "configured": ""})
        fresh.replace(place)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _copied(original: Path, copy: Path) -> tuple[bool, str]:
    """Make a copy identical to the original; return whether it changed, and its hash."""
    if not original.is_symlink():
        text = original.read_bytes()
        changed = _patched.put(copy, text)
        if os.access(original, os.X_OK) and not os.access(copy, os.X_OK):
            copy.chmod(0o755)
        return changed, hashlib.sha256(text).hexdigest()
    target = os.readlink(original)
    if not (copy.is_symlink() and os.readlink(copy) == target):
        copy.unlink(missing_ok=True)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.symlink_to(target)
        return True, hashlib.sha256(os.fsencode(target)).hexdigest()
    return False, hashlib.sha256(os.fsencode(target)).hexdigest()


def _hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _write(file: Path, content: object) -> None:
    part = file.with_name(f"{file.name}.part")
    part.write_text(json.dumps(content), encoding="utf-8")
    part.replace(file)


def _git(place: Path, *arguments: str) -> _child.CompletedProcess[bytes]:
    # the tree's git settings may name programs that git would run
    settings = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]
    environment = _child.environment(GIT_OPTIONAL_LOCKS="0")
    return _child.run(["git", *settings, *arguments], cwd=place, env=environment, text=False)
