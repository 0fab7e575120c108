"""Errors that a caller can cause. Each message is one line: what was requested, what was found, what is allowed."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

__all__ = ["AckclockError", "ControllerError", "InputError", "ScenarioError", "UnavailableError"]


class AckclockError(Exception):
    """Base class of every error that a caller can cause or fix."""

    exit_code = 2
    """Exit code of a command ending with this error."""

    def __init__(self, message: str = "") -> None:
        super().__init__(shown(foremost(message)))


class InputError(AckclockError, ValueError):
    """An unusable argument, file or folder."""


class ControllerError(AckclockError, RuntimeError):
    """A user's controller or utility function raised an exception or returned an invalid value. The run has ended.

    Parameters
    ----------
    controller
        Name of its class, or of the function.
    hook
        Method that was called; "utility" for a utility function.
    time_s
        Simulated time, seconds.
    problem
        Exception that was raised, or invalid value that was returned.
    """

    def __init__(self, *, controller: str, hook: str, time_s: float, problem: str) -> None:
        self.controller = controller
        self.hook = hook
        self.time_s = time_s
        self.problem = problem
        who = f"utility function {controller}" if hook == "utility" else f"controller {controller}, {hook}"
        super().__init__(f"{who} at {time_s:.9g} s: {problem}")


class UnavailableError(AckclockError, RuntimeError):
    """Something required by the request is missing from the environment."""

    exit_code = 3


class ScenarioError(InputError):
    """A scenario that cannot be run.

    Parameters
    ----------
    key
        Key of the value, as a dotted path: "network.bottleneck.rate".
    found
        Value found, already quoted.
    allowed
        Values that are allowed.
    source
        File the scenario was read from.
    place
        Position in that file.
    more
        Further errors of the scenario.

    Examples
    --------
    >>> print(ScenarioError(key="duration", found="60", allowed='a duration with its unit, e.g. "60 s"'))
    duration: found 60; allowed: a duration with its unit, e.g. "60 s"
    """

    def __init__(
        self,
        *,
        key: str = "",
        found: str,
        allowed: str,
        source: str = "",
        place: Place | None = None,
        more: Iterable[ScenarioError] = (),
    ) -> None:
        self.key = key
        self.found = _cut(found, 400)
        self.allowed = allowed
        self.source = source
        self.place = place
        self.more = tuple(more)
        file = source if place is None else f"{_cut(source)}:{place.line}:{place.column}"
        where = ": ".join(_cut(part) for part in (file, key) if part)
        told = f"found {self.found}{_with_unit(self.found, allowed)}; allowed: {allowed}"
        super().__init__(f"{where}: {told}" if where else told)

    def within(self, prefix: str) -> ScenarioError:
        """Return the error with its key relative to the enclosing table."""
        key = ".".join(part for part in (prefix, self.key) if part)
        return self._changed(key=key, more=[one.within(prefix) for one in self.more])

    def read_from(self, source: str, places: Mapping[str, Placed] | None = None) -> ScenarioError:
        """Return the error with its file and its position in the file."""
        place = None if places is None else placed(self.key, places, name=self.found.startswith("an unknown key"))
        return self._changed(source=source, place=place, more=[one.read_from(source, places) for one in self.more])

    def all(self) -> list[ScenarioError]:
        """Return all errors in the scenario: this one first, then the others, each key once."""
        found: dict[tuple[str, str], ScenarioError] = {}
        for one in (self, *self.more):
            found.setdefault((one.key, one.found), one)
        return list(found.values())

    @classmethod
    def together(cls, errors: Iterable[ScenarioError]) -> ScenarioError:
        """Return the first of several errors, with the others attached."""
        first, *more = (one for error in errors for one in error.all())
        return first._changed(more=more)

    def _changed(self, **changes: Any) -> ScenarioError:
        kept = {name: getattr(self, name) for name in ("key", "found", "allowed", "source", "place", "more")}
        return ScenarioError(**{**kept, **changes})


class Place(NamedTuple):
    """A position in a text: 1-based line and column of the first character, and number of characters on this line."""

    line: int
    column: int
    length: int


class Placed(NamedTuple):
    """Positions of a key and of its value."""

    name: Place
    value: Place


START = Place(1, 1, 1)
"""Start of a text: the position reported for a missing key that belongs to no table."""


def placed(key: str, places: Mapping[str, Placed], *, name: bool = False) -> Place:
    """Return the position of a key's value, or of its name. For a missing key, the position is that of the table it is missing from."""
    here = key
    while here and here not in places:
        here, name = here.rpartition(".")[0], True
    if not here:
        return START
    return places[here].name if name else places[here].value


def said(error: BaseException) -> str:
    """Return the type and text of any exception, even if its `__str__` raises another one.

    Examples
    --------
    >>> said(ValueError("no")), said(SystemExit(0))
    ('ValueError: no', 'SystemExit: 0')
    """
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except BaseException as another:
        if isinstance(another, KeyboardInterrupt):
            raise
        return f"{name}, whose text cannot be printed ({type(another).__name__})"


def quote(value: object) -> str:
    """Return a value in TOML notation, shortened for a message."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "nothing"
    if isinstance(value, int) and abs(value) >= 10**60:
        return "a whole number of more than 60 digits"
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + '..."' if text.startswith('"') else text[:57] + "..."


MOST_BESIDE = 60
"""Maximum number of characters in a list of names printed beside the nearest name."""


def one_of(found: str, names: Iterable[str]) -> str:
    """Return the allowed names as a list, together with the one nearest to the name found. A long list is omitted if
    there is a nearest name. Names given by users may be long, or many.
    """
    names = list(names)
    near = nearest(found, names)
    listed = ", ".join(_cut(name, 60) for name in names[:50])
    if len(names) > 50:
        listed += f" and {len(names) - 50:,} more"
    listed = _cut(listed, 600)
    if near and len(listed) > MOST_BESIDE:
        return f"one of {len(names)} names (nearest: {_cut(near, 60)})"
    return f"{listed} (nearest: {_cut(near, 60)})" if near else listed


def foremost(message: str) -> str:
    """If there are many allowed names, move the nearest one to the front, so that it is read first.

    Examples
    --------
    >>> foremost('kind: found "codle"; allowed: one of 11 names (nearest: codel)')
    'kind: found "codle"; did you mean "codel"?; allowed: one of 11 names'
    """
    told = re.fullmatch(r"(.*?); allowed: (.*?one of [0-9]+ names) \(nearest: ([^()]*)\)(.*)", message, re.DOTALL)
    if told is None or "did you mean" in told[1]:
        return message
    return f'{told[1]}; did you mean "{told[3]}"?; allowed: {told[2]}{told[4]}'


_UNITS: Mapping[str, tuple[str, ...]] = {
    "packets": ("packets",),
    "ms": ("ms", "s"),
    "Mbit/s": ("Mbit/s",),
    "kB": ("kB", "MB"),
    "%": ("%",),
}
"""Unit of the quantity -> units suggested for a number without one."""


def _with_unit(found: str, allowed: str) -> str:
    """Suggest units for a number that lacks one; empty if there is none."""
    told = re.fullmatch(r'"?([0-9][0-9._]*)"? without a unit', found)
    _, listed, units = allowed.partition("(units: ")
    if told is None or not listed:
        return ""
    known = units.rstrip(")").split(", ")
    usual = next((usual for usual in _UNITS if usual in known), None)
    if usual is None:
        return ""
    many = usual == "kB" and float(told[1].replace("_", "")) >= 1000
    wanted = ("B",) if many else _UNITS[usual]
    return "; did you mean " + " or ".join(f'"{told[1]} {unit}"' for unit in wanted) + "?"


def nearest(found: str, names: Iterable[str]) -> str | None:
    """Return the name that was probably meant; None if there is no similar name."""
    folded = {name.lower().replace("_", "-"): name for name in names}
    close = difflib.get_close_matches(found.lower().replace("_", "-"), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def _cut(name: str, most: int = 200) -> str:
    """Shorten a long name so that it can still be found."""
    return name if len(name) <= most else f"{name[: most - 43]}...{name[-40:]}"


def shown(text: str) -> str:
    """Return the text as one line, with line breaks and control characters made visible. Names from files may contain both."""
    return text if text.isprintable() else "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
