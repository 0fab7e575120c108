"""Studies installed with the library, in other packages, or in folders."""

from __future__ import annotations

from importlib.metadata import EntryPoint, distribution, distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock import _wall
from ackclock.errors import InputError, one_of, quote, said

if TYPE_CHECKING:
    from ackclock.study import Study

__all__ = ["UnknownStudyError", "get", "installed", "names"]

GROUP = "ackclock.studies"
"""Entry point group for packages with a study: name -> a module with `study.toml` in its folder, or a `Study`."""


class UnknownStudyError(InputError, KeyError):
    """Raised if no study has the requested name."""

    __str__ = Exception.__str__  # KeyError would show the message in quotes


def names() -> list[str]:
    """Return the names of the studies installed with the library."""
    return list(_ours())


def installed() -> dict[str, EntryPoint]:
    """Return the studies in other packages, by name."""
    ours = _ours()
    found: dict[str, EntryPoint] = {}
    seen = set[str]()
    for package in distributions():
        try:
            name = str(package.name)
            listed = [] if name in seen else list(package.entry_points.select(group=GROUP))
        except Exception:  # another package has broken metadata, which its installer would report
            continue
        seen.add(name)
        for one in listed:
            if one.name not in ours:
                found.setdefault(one.name, one)
    return found


def _ours() -> dict[str, EntryPoint]:
    """Return the entry points of the library's own distribution; empty if the library is not installed."""
    try:
        return {one.name: one for one in distribution("ackclock").entry_points.select(group=GROUP)}
    except Exception:  # PackageNotFoundError, or any error from damaged metadata
        return {}


def get(name: str) -> Study:
    """Return the study called `name`.

    Parameters
    ----------
    name
        One of `names()` or `installed()`, or a folder with a `study.toml` (`./mine`), whose code is run.

    Raises
    ------
    UnknownStudyError
        If there is none; the message offers the nearest name.
    InputError
        If the folder or the package has no study.

    Examples
    --------
    >>> get("prr").name
    'prr'
    """
    if "/" in name or name in (".", ".."):
        from ackclock.study import plugin

        return plugin.load(Path(name))
    found = _ours()
    if name not in found:
        found |= installed()
    if name in found:
        return _of_package(found[name])
    there = f"; a folder is written ./{name}" if Path(name).is_dir() else ""
    raise UnknownStudyError(f"study: found {quote(name)}; allowed: {one_of(name, found)}{there}")


def _of_package(entry: EntryPoint) -> Study:
    from ackclock.study import Study, plugin

    if entry.name not in _ours():
        _wall.note(f"study {entry.name}")
    try:
        with _wall.doing(f"importing {entry.value}"):
            found: Any = entry.load()
    except BaseException as error:  # includes SystemExit and GeneratorExit
        if isinstance(error, KeyboardInterrupt):
            raise
        raise InputError(f"{entry.name}: cannot be imported ({said(error)})") from error
    if isinstance(found, Study):
        return found
    file = getattr(found, "__file__", None)
    if not isinstance(file, str):
        raise InputError(f"{entry.name}: found {quote(entry.value)}; allowed: a module beside a study.toml, or a Study")
    return plugin.load(Path(file).parent)
