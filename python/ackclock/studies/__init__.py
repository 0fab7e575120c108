"""The studies that come with the package, by name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ackclock.errors import InputError, one_of, quote

if TYPE_CHECKING:
    from ackclock.study import Study

__all__ = ["UnknownStudyError", "get", "names"]

_MODULES = {
    "prr": "ackclock.studies.prr",
    "iw10": "ackclock.studies.iw10",
    "large-pipes": "ackclock.studies.large_pipes",
    "pcc": "ackclock.studies.pcc",
    "slow-start": "ackclock.studies.slow_start",
}


class UnknownStudyError(InputError, KeyError):
    """No study has this name."""

    __str__ = Exception.__str__  # KeyError would show the message in quotes


def names() -> list[str]:
    """Names of all studies."""
    return list(_MODULES)


def get(name: str) -> Study:
    """The study called `name`.

    Parameters
    ----------
    name
        One of `names()`.

    Raises
    ------
    UnknownStudyError
        If there is none; the message offers the nearest name.

    Examples
    --------
    >>> get("prr").name
    'prr'
    """
    if name not in _MODULES:
        raise UnknownStudyError(f"study: found {quote(name)}; allowed: {one_of(name, _MODULES)}")
    study: Study = import_module(_MODULES[name]).STUDY
    return study
