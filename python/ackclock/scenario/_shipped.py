"""The package's scenarios by name."""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path

from ackclock.errors import ScenarioError, one_of

FOLDER = Path(__file__).parent.parent / "_scenarios"


def shipped() -> list[tuple[str, str]]:
    """Return each scenario's name, and the comment at the top of its file."""
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        head = itertools.takewhile(lambda line: line.startswith("#"), path.read_text(encoding="utf-8").splitlines())
        found.append((path.stem, " ".join(line.removeprefix("#").strip() for line in head)))
    return found


def find(path: str | Path, allowed: str) -> Path:
    """Return the file with this name, or the package's scenario.

    A folder with this name, as created by `run first --out first`, does not hide the package's scenario.

    Raises
    ------
    ScenarioError
        If a bare name, without folder or ending, is neither.
    """
    name = str(path)
    if not re.fullmatch(r"[\w-]+", name) or os.path.isfile(path):  # raises no error for a name that is too long
        return Path(path)
    if os.path.exists(FOLDER / f"{name}.toml"):
        return FOLDER / f"{name}.toml"
    if os.path.exists(path):
        return Path(path)
    names = [name for name, _ in shipped()]
    known = one_of(name, names)
    if "nearest" not in known:  # a complete list would bury the relevant name
        known = f"one of {len(names)} names (`ackclock list scenarios`)"
    raise ScenarioError(source=name, found="no such file", allowed=f"{known}, or {allowed}")


def meant(path: str | Path) -> str | None:
    """Return the package's name for a missing file: `first` for `scenarios/first.toml`."""
    missing = Path(path)
    known = missing.suffix == ".toml" and any(missing.stem == name for name, _ in shipped())
    return missing.stem if known else None
