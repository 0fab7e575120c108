"""Builds a kernel with the user's patches in a copy of the built tree, so that only touched files are compiled."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from ackclock import _child
from ackclock.errors import InputError, UnavailableError

__all__ = ["applied", "compiled", "copied", "patched", "put", "read", "touched"]

TOUCHED = ".ackclock-patched"
"""File in a copy that lists the files changed by the last patches."""


def read(files: Sequence[Path]) -> list[tuple[str, bytes]]:
    """Return the names and texts of patches.

    Raises
    ------
    InputError
        If a patch cannot be read, or does not change any file of a tree.
    """
    texts = []
    for path in files:
        allowed = "a patch of a kernel tree, as `git diff` writes it"
        try:
            text = path.read_bytes()
        except OSError as error:
            raise InputError(
                f"--patch {path}: found {(error.strerror or str(error)).lower()}; allowed: {allowed}"
            ) from None
        if not touched(text):
            raise InputError(f"--patch {path}: found no file that it changes; allowed: {allowed}")
        texts.append((path.name, text))
    return texts


def copied(tree: Path, place: Path) -> None:
    """Copy a built tree with its timestamps; a copy is complete or absent."""
    if place.is_dir():
        return
    part = Path(tempfile.mkdtemp(prefix=".patched-", dir=place.parent))
    try:
        done = _call(["cp", "-a", "--reflink=auto", str(tree), str(part / "tree")], part)
        if done.returncode:
            raise UnavailableError(f"{tree}: cannot be copied: {done.stderr.strip()[:200]}")
        (part / "tree").replace(place)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def patched(tree: Path, place: Path, patches: Sequence[tuple[str, bytes]], make: Callable[[], None]) -> None:
    """Replace the copy's patches with these and build it.

    Raises
    ------
    InputError
        If a patch does not apply, or the result does not compile.
    """
    texts = applied(tree, patches)
    record = place / TOUCHED
    before = record.read_text(encoding="utf-8").split("\n") if record.is_file() else []
    # written first, so that the next build can undo the changes of an interrupted one
    record.write_text("\n".join(sorted({*before, *texts} - {""})), encoding="utf-8")
    for name in {*before} - {*texts, ""}:
        original = tree / name
        put(place / name, original.read_bytes() if original.is_file() else None)
    for name, text in texts.items():
        put(place / name, text)
    record.write_text("\n".join(sorted(texts)), encoding="utf-8")
    compiled(patches, make)


def compiled(patches: Sequence[tuple[str, bytes]], make: Callable[[], None]) -> None:
    """Build; errors in patched files are attributed to the patches.

    Raises
    ------
    InputError
        If a patched file does not compile.
    """
    try:
        make()
    except UnavailableError as error:
        names = ", ".join(name for name, _ in patches)
        raise InputError(
            f"--patch {names}: found what does not compile: {error}; allowed: a patch that builds"
        ) from None


def applied(tree: Path, patches: Sequence[tuple[str, bytes]]) -> dict[str, bytes | None]:
    """Return the files that patches change, by name: the new text, or None if removed. The tree itself is not changed.

    Raises
    ------
    InputError
        If a patch does not apply.
    """
    names = sorted({name for _, text in patches for name in touched(text)})
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in names:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            if (tree / name).is_file():
                shutil.copyfile(tree / name, place / name)
        for name, text in patches:
            done = _child.run(
                ["patch", "-s", "-p1", "--no-backup-if-mismatch", "-r", "-"], cwd=place, input=text, text=False
            )
            if done.returncode:
                said = (done.stdout or done.stderr).decode(errors="replace").strip().splitlines()
                raise InputError(
                    f"--patch {name}: found one that does not fit ({said[0] if said else 'no message'}); allowed: a patch of this tree"
                )
        return {name: (place / name).read_bytes() if (place / name).is_file() else None for name in names}


def put(file: Path, text: bytes | None) -> bool:
    """Write this text to a file, or remove it; an unchanged file keeps its timestamp and is not recompiled.

    Returns
    -------
    bool
        Whether the file was changed.
    """
    if text is None:
        there = file.is_symlink() or file.exists()
        file.unlink(missing_ok=True)
        return there
    if file.is_file() and not file.is_symlink() and file.read_bytes() == text:
        return False
    file.unlink(missing_ok=True)  # the file may be hard-linked to the original
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text)
    return True


def touched(text: bytes) -> list[str]:
    """Return the files in the tree that a patch creates, changes or removes."""
    names = re.findall(rb"^(?:---|\+\+\+) [^/\s]+/(\S+)", text, re.MULTILINE)
    found = sorted({name.decode(errors="replace") for name in names})
    if any(".." in Path(name).parts for name in found):
        raise InputError(f"--patch: found a path with .. ({found[0]}); allowed: files of the tree")
    return found


def _call(command: Sequence[str], cwd: Path) -> _child.CompletedProcess[str]:
    return _child.run(command, cwd=cwd)
