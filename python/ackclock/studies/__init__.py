"""The studies that come with the package, those of installed packages, and those in folders."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock.errors import InputError, one_of, quote, said

if TYPE_CHECKING:
    from ackclock.study import Study

__all__ = ["UnknownStudyError", "get", "installed", "names"]

_MODULES = {
    "prr": "ackclock.studies.prr",
    "iw10": "ackclock.studies.iw10",
    "large-pipes": "ackclock.studies.large_pipes",
    "pcc": "ackclock.studies.pcc",
    "slow-start": "ackclock.studies.slow_start",
}

GROUP = "ackclock.studies"
"""Entry points of packages that bring a study: its name -> a module in whose folder `study.toml` lies, or a `Study`."""


class UnknownStudyError(InputError, KeyError):
    """No study has this name."""

    __str__ = Exception.__str__  # KeyError would show the message in quotes


def names() -> list[str]:
    """Names of the studies that come with the package."""
    return list(_MODULES)


def installed() -> dict[str, EntryPoint]:
    """Studies of other packages, by name."""
    return {one.name: one for one in entry_points(group=GROUP) if one.name not in _MODULES}


def get(name: str) -> Study:
    """The study called `name`.

    Parameters
    ----------
    name
        One of `names()` or `installed()`, or a folder with a `study.toml` (`./mine`), whose code is run.

    Raises
    ------
    UnknownStudyError
        If there is none; the message offers the nearest name.
    InputError
        If the folder or the package holds no study.

    Examples
    --------
    >>> get("prr").name
    'prr'
    """
    if name in _MODULES:
        study: Study = import_module(_MODULES[name]).STUDY
        return study
    if "/" in name or name in (".", ".."):
        from ackclock.study import plugin

        return plugin.load(Path(name))
    others = installed()
    if name in others:
        return _of_package(others[name])
    there = f"; a folder is written ./{name}" if Path(name).is_dir() else ""
    raise UnknownStudyError(f"study: found {quote(name)}; allowed: {one_of(name, (*_MODULES, *others))}{there}")


def _of_package(entry: EntryPoint) -> Study:
    from ackclock.study import Study, plugin

    try:
        found: Any = entry.load()
    except (Exception, SystemExit) as error:
        raise InputError(f"{entry.name}: cannot be imported ({said(error)})") from error
    if isinstance(found, Study):
        return found
    file = getattr(found, "__file__", None)
    if not isinstance(file, str):
        raise InputError(f"{entry.name}: found {quote(entry.value)}; allowed: a module beside a study.toml, or a Study")
    return plugin.load(Path(file).parent)
