"""Scenario tables as Python values: views of the keys that were set, with defaults for all others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, ClassVar, NoReturn, Self

from ackclock import _engine
from ackclock.errors import ScenarioError, UnavailableError, quote
from ackclock.own import described
from ackclock.scenario import _mahimahi

_DEEPEST = 20
"""Maximum depth of nested tables: deeper than any scenario needs. A Python value might contain itself."""


@cache
def schema() -> dict[str, Any]:
    """Return the schema of each table and family, from the engine."""
    return _engine.schema()


def table_keys(kind: str) -> dict[str, dict[str, Any]]:
    """Return the keys of a table outside families, by name."""
    entry = next((entry for entry in schema()["tables"] if entry["kind"] == kind), None)
    if entry is None:
        raise UnavailableError(OLDER.format(kind))
    return {key["name"]: key for key in entry["keys"]}


OLDER = "the compiled engine is older than the Python around it (it does not know {}); run `make setup`"


class Files:
    """Files that a scenario refers to, read from disk for the engine."""

    @staticmethod
    def trace(name: str) -> _engine.Trace:
        """Return the Mahimahi trace in a file."""
        return _mahimahi.read(name).trace

    @staticmethod
    def controller(name: str, options: Mapping[str, Any]) -> str:
        """Return the engine's name for a class in a file."""
        return described(name, options).key


class Table:
    """A scenario table; values are kept as written.

    Parameters
    ----------
    **given
        Keys as in a scenario.

    Raises
    ------
    ScenarioError
        One line: the key, what was found, what is allowed.
    """

    __slots__ = ("_given", "_seen")
    _given: dict[str, Any]
    _seen: dict[str, Any]
    kinds: ClassVar[tuple[str | None, str]]
    """Family (if the table is in one) and kind."""
    keys: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Schema of each key, from the engine."""

    def __init__(self, /, **given: Any) -> None:
        wrong, ordered, _ = asked(lambda: _engine.read_table(*self.kinds, given, Files), given)
        refused(wrong)
        self._hold(ordered)

    @classmethod
    def of(cls, given: dict[str, Any]) -> Self:
        """Return a table of keys accepted by the engine."""
        made = cls.__new__(cls)
        made._hold(given)
        return made

    def _hold(self, given: dict[str, Any]) -> None:
        object.__setattr__(self, "_given", given)
        object.__setattr__(self, "_seen", {})

    def __getattr__(self, key: str) -> Any:
        known = type(self).keys.get(key)
        if known is None:
            raise AttributeError(f"{type(self).__name__!r} has no key {key!r}")
        if key not in self._seen:
            written = self._given.get(key)
            self._seen[key] = seen(known.get("absent") if key not in self._given else written, known["takes"])
        return self._seen[key]

    def __setattr__(self, key: str, value: Any) -> NoReturn:
        raise AttributeError(f"a scenario is frozen; `set` makes another one with a changed {key}")

    def __delattr__(self, key: str) -> NoReturn:
        self.__setattr__(key, None)

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Iterate over keys and values, including defaults."""
        return ((key, getattr(self, key)) for key in type(self).keys)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table) or type(other) is not type(self):
            return NotImplemented
        return self._given == other._given or list(self) == list(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self)})"

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *type(self).keys]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).of, (self._given,)

    def written(self) -> dict[str, Any]:
        """Return the keys that were set, as plain values."""
        return plain_table(self._given)

    @classmethod
    def shown(cls, key: str, value: object) -> Any:
        """Return a value in the engine's form as it is written in a scenario."""
        return _engine.shown(*cls.kinds, key, value)

    def engine(self) -> dict[str, Any]:
        """Return the table in the engine's form without absent keys; values that depend on the bandwidth-delay product
        are None.
        """
        return _engine.read_table(*self.kinds, self._given, Files)[2]


made: dict[tuple[str | None, str], type[Table]] = {}
"""Class of each table, by family and kind."""


def seen(value: Any, takes: Mapping[str, Any]) -> Any:
    """Return a value in attribute form: tables as instances of their classes, lists as tuples."""
    if isinstance(value, dict):
        match takes["takes"]:
            case "one of":
                return made[takes["family"], value["kind"]].of(value)
            case "table":
                return made[None, takes["table"]].of(value)
            case "drawn" | "drawn or" | "writes" | "duration or drawn":
                return made["distributions", value["kind"]].of(value)
        return dict(value)
    if value is None and takes["takes"] == "options":
        return {}
    if isinstance(value, list):
        return tuple(seen(entry, takes["of"]) for entry in value)
    return value


def plain_table(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mutable copy of plain values."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return plain_table(value)
        return [plain(entry) for entry in value] if isinstance(value, list) else value

    return {key: plain(value) for key, value in values.items()}


def asked(ask: Any, given: Mapping[str, Any]) -> Any:
    """Return the engine's response; text that cannot be encoded as UTF-8 is refused first."""
    try:
        return ask()
    except UnicodeEncodeError:
        for key, value in given.items():
            if (broken := _no_characters([key, value])) is not None:
                error = ScenarioError(key=str(key), found=quote(broken), allowed="text that UTF-8 can hold")
                raise error from None
        raise


def refused(wrong: Iterable[tuple[str, str, str]]) -> None:
    """Raise a ScenarioError if the response reports an error."""
    errors = [ScenarioError(key=key, found=_located(key, found), allowed=allowed) for key, found, allowed in wrong]
    if errors:
        raise ScenarioError.together(errors)


def _located(key: str, found: str) -> str:
    """Return the path at which an unknown key would be allowed, or else the path where it was found."""
    if found != "an unknown key":
        return found
    here, _, name = key.rpartition(".")
    by_name, by_initials = _named_places()
    for place in (*by_name.get(name, ()), *(p for p in by_initials.get(name, ()) if p.rpartition(".")[0] == here)):
        if place != key:
            return f'{found}; did you mean "{place}"?'
    return found


@cache
def _named_places() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the paths by their last name, and by its initials."""
    by_name: dict[str, list[str]] = {}
    by_initials: dict[str, list[str]] = {}
    for place in _places():
        last = place.rpartition(".")[2]
        by_name.setdefault(last, []).append(place)
        by_initials.setdefault("".join(word[:1] for word in last.split("_")), []).append(place)
    return by_name, by_initials


@cache
def _places() -> list[str]:
    """Return the paths of a key outside families, shortest first."""
    found: list[str] = []

    def walk(kind: str, prefix: str, deep: int) -> None:
        for name, key in table_keys(kind).items():
            found.append(f"{prefix}{name}")
            takes, at = key["takes"], f"{prefix}{name}."
            if takes["takes"] == "list":
                takes, at = takes["of"], f"{at}0."
            if takes["takes"] == "table" and deep < 4:
                walk(takes["table"], at, deep + 1)

    walk("scenario", "", 0)
    return sorted(found, key=lambda path: (path.count("."), "bottleneck" not in path))


def _no_characters(value: Any, deep: int = 0) -> str | None:
    """Return a text within the value that cannot be encoded, because a lone surrogate is not a character."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return value
        return None
    value = getattr(value, "_given", value)
    if isinstance(value, Mapping):
        value = [*value, *value.values()]
    if isinstance(value, list | tuple) and deep < _DEEPEST:
        return next((broken for inner in value if (broken := _no_characters(inner, deep + 1)) is not None), None)
    return None
