"""The table of a study, `study.toml`: publications and claims as data, for readers who do not program.

Nothing in it is executed. A half of a claim, or a cause, names its measure, a function in the program beside the
table. A single bound is declared in the table. A measure that compares several numbers with several bounds returns
`Evidence` (as annotated), and its half has no bound.
"""

from __future__ import annotations

import inspect
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from ackclock._files import regular
from ackclock.errors import InputError, ScenarioError, one_of, quote, shown
from ackclock.judge.bound import Bound, above, at_least, at_most, below, between, exactly, same
from ackclock.judge.evidence import Evidence, Quantity
from ackclock.scenario._toml import read_toml
from ackclock.study import answer
from ackclock.study.claim import Asked, Cause, Claim, Criterion, Stated, Tables
from ackclock.study.edge import Edge
from ackclock.study.plan import SCALES
from ackclock.study.reading import Reading
from ackclock.study.study import Chapter, Publication

__all__ = ["TABLE", "Program", "Table", "claim", "declared", "face", "head", "once", "read"]

TABLE, READINGS = "study.toml", "readings"

LARGEST = 2**20
"""Maximum size of the table, bytes."""

_BOUNDS = ("more_than", "less_than", "at_least", "at_most", "between", "equal", "same_as")


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """Names available to a table: the measures and readings of a study's Python code.

    Parameters
    ----------
    measures
        Name -> function from the tables of the experiments to `Quantity` or `Evidence`. It takes the bound if it has a parameter `bound`.
    readings
        Readings by name.
    """

    measures: Mapping[str, Callable[..., Any]] = field(repr=False)
    readings: Mapping[str, Reading] = field(default_factory=dict)


def face(package: str, chapters: Sequence[Chapter]) -> dict[str, Any]:
    """Return the arguments of `Study` from the table beside a package. Every claim in the table must belong to a
    chapter.

    Parameters
    ----------
    package
        `__name__` of the package.
    chapters
        Chapters of the study.

    Raises
    ------
    InputError
        If the table cannot be read or is invalid, or one of its chapters does not belong to the study.
    """
    table = _beside(package)
    claims = [claim for chapter in chapters for claim in chapter.claims]
    once(claims, table.place)
    taken = {claim.id for claim in claims}
    for part in table.tables("chapters"):
        left = next((one.raw.get("id") for one in part.tables("claims") if one.raw.get("id") not in taken), None)
        if left is not None:
            raise InputError(
                f"{part.place}: found {quote(left)}, a claim of no chapter of the study; allowed: its modules"
            )
    whole = head(table)
    table.done()
    return {**whole, "chapters": tuple(chapters)}


def once(claims: Sequence[Claim], place: str) -> None:
    """Refuse two claims with the same id."""
    seen = set[str]()
    for one in claims:
        if one.id in seen:
            raise InputError(f"{place}: claims: found two called {quote(one.id)}; allowed: one of each id")
        seen.add(one.id)


def declared(module: str) -> dict[str, Any]:
    """Return the title and claims of a chapter as arguments of `Chapter`, from the section of `study.toml` with the
    module's name.

    Parameters
    ----------
    module
        `__name__` of the module. Its functions are the measures, together with those of other modules of the package
        ("causes.slow_rounds"). The same applies to readings; those of a module `readings` need no prefix.

    Raises
    ------
    InputError
        If the table cannot be read or is invalid; the message gives the position.
    """
    package, _, name = module.rpartition(".")
    table = _beside(package)
    own = next((part for part in table.tables("chapters") if part.text("module") == name), None)
    if own is None:
        raise InputError(
            f"{table.place}: found no chapter with the module {quote(name)}; allowed: one of each chapter with claims"
        )
    program = _program(sys.modules[module], package, _modules(own.raw) | {READINGS})
    place = own.text("place", default="")
    found = {
        "title": own.text("title"),
        "claims": tuple(claim(one, program, place=place) for one in own.tables("claims")),
    }
    own.done()
    return found


def _beside(package: str) -> Table:
    file = Path(str(sys.modules[package].__file__)).with_name(TABLE)
    return Table(_read_once(file), f"{package.rpartition('.')[2]}/{TABLE}")


def _program(module: ModuleType, package: str, modules: set[str]) -> Program:
    """Return the functions and readings of a module, and of other modules of its package."""
    spaces = {"": module}
    for name in modules:
        with suppress(ModuleNotFoundError):
            spaces[f"{name}."] = import_module(f"{package}.{name}")
    known = {f"{space}{name}": found for space, one in spaces.items() for name, found in vars(one).items()}
    return Program(
        measures={
            name: found
            for name, found in known.items()
            if inspect.isfunction(found) and found.__module__.startswith(package)
        },
        readings={
            f"{space if space != f'{READINGS}.' else ''}{found.name}": found
            for space, one in spaces.items()
            for found in vars(one).values()
            if isinstance(found, Reading)
        },
    )


def _modules(raw: Any) -> set[str]:
    """Return the modules with measures or readings named in a table, as in "causes.slow_rounds"."""
    if isinstance(raw, list):
        return {name for one in raw for name in _modules(one)}
    if not isinstance(raw, dict):
        return set()
    named = [str(name).rpartition(".")[0] for name in (raw.get("measure"), *_listed(raw.get("readings")))]
    return {name for one in raw.values() for name in _modules(one)} | {name for name in named if name.isidentifier()}


def _listed(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def head(table: Table) -> dict[str, Any]:
    """Return title, summary, publications and numbers of runs as arguments of `Study`, and the name if the table has
    one.
    """
    name = {"name": table.text("name")} if "name" in table.raw else {}
    return {
        **name,
        "title": table.text("title"),
        "summary": table.text("summary"),
        "publications": tuple(_publication(one) for one in table.tables("publications")),
        "runs": _runs(table),
        "edges": tuple(_edge(one) for one in table.tables("edges")),
        "terms": _terms(table),
    }


def _terms(table: Table) -> dict[str, str]:
    """Return codes and words with their explanations; empty if there are none."""
    if "terms" not in table.raw:
        return {}
    own = table.table("terms")
    found = {name: own.text(name) for name in own.raw}
    own.done()
    table.asked.add("terms")
    return found


def _edge(one: Table) -> Edge:
    """Return an adopted constant and its neighbours."""
    named = [name for name in ("constant", "key") if name in one.raw]
    if len(named) != 1:
        raise InputError(f"{one.place}: found {' and '.join(named) or 'neither'}; allowed: constant or key")
    given = [name for name in ("neighbours", "times") if name in one.raw]
    if len(given) != 1:
        raise InputError(f"{one.place}: found {' and '.join(given) or 'neither'}; allowed: neighbours or times")
    times = given[0] == "times"
    if times and named[0] == "constant":
        raise InputError(f"{one.place}.times: found it beside constant; allowed: with key")
    one.asked.add(given[0])
    values = one.raw[given[0]]
    if not isinstance(values, list) or len(values) < 2 - any(isinstance(v, bool) for v in values):
        raise InputError(
            f"{one.place}.{given[0]}: found {quote(str(values))}; allowed: a list of two or more, or of true or false"
        )
    if times and not all(isinstance(v, (int, float)) and v > 0 for v in values):
        raise InputError(f"{one.place}.times: found {values}; allowed: numbers above 0")
    found = Edge(
        name=one.text("name"),
        constant=one.text("constant", default=""),
        key=one.text("key", default=""),
        neighbours=tuple(values),
        times=times,
        readings=one.flag("readings", default=False),
        experiments=tuple(one.texts("experiments")),
        why=one.text("why", default=""),
    )
    one.done()
    return found


def _runs(table: Table) -> dict[str, int]:
    """Return the number of seeds in the smallest cell, by scale; empty if not set."""
    if "runs" not in table.raw:
        return {}
    one = table.table("runs")
    found = {scale: one.whole(scale, least=2) for scale in SCALES if scale in one.raw}
    one.done()
    return found


def _publication(one: Table) -> Publication:
    made = Publication(authors=one.text("authors"), title=one.text("title"), where=one.text("where"))
    one.done()
    return made


def claim(one: Table, program: Program, place: str = "") -> Claim:
    """Return the claim defined by a table.

    Parameters
    ----------
    one
        The table.
    program
        Names available to the table.
    place
        Position in the publication, unless given by the claim itself.

    Raises
    ------
    InputError
        If the table is invalid, or uses an unknown name.
    """

    def half(name: str) -> Criterion | None:
        return _criterion(one.table(name), program) if name in one.raw else None

    made = Claim(
        id=one.text("id"),
        place=one.text("place", default=place or None),
        statement=one.text("statement"),
        direction=half("direction"),
        magnitude=half("magnitude"),
        note=one.text("note", default=""),
        not_comparable=one.text("not_comparable", default="") or None,
        causes=tuple(_cause(cause, program) for cause in one.tables("causes")),
        guesses=tuple(one.texts("guesses")),
        intervention=one.text("intervention", default=""),
    )
    one.done()
    return made


def _cause(one: Table, program: Program) -> Cause:
    because, intervention = one.text("because"), one.text("intervention")
    return Cause(because=because, intervention=intervention, criterion=_criterion(one, program))


def _criterion(one: Table, program: Program) -> Criterion:
    readings = program.readings
    found = [r for r in one.texts("readings") if r not in readings]
    if found:
        raise InputError(f"{one.place}.readings: found {quote(found[0])}; allowed: {one_of(found[0], readings)}")
    made = Criterion(
        measure=_measure(one, program.measures),
        reading=one.text("reading", default=""),
        cell=one.text("cell", default=""),
        bound=one.word("bound", ("stated", "printed", "ours"), default="ours"),  # type: ignore[arg-type]
        printed=one.text("printed", default=""),
        reads=tuple(readings[r] for r in one.texts("readings")),
        needs=one.whole("needs", least=2, default=2),
        over=one.word("over", ("each", "general", "turns"), default="each"),  # type: ignore[arg-type]
    )
    one.done()
    return made


def _measure(one: Table, measures: Mapping[str, Callable[..., Any]]) -> Callable[[Tables], Sequence[Evidence]]:
    """Return the measure of a half with its arguments (`of`), and its bound."""
    name = one.text("measure")
    if name not in measures:
        raise InputError(
            f"{one.place}.measure: found {quote(name)}; allowed: {one_of(name, measures) if measures else 'a name in MEASURES'}"
        )
    function = measures[name]
    signature = inspect.signature(function) if callable(function) else inspect.Signature()
    if "of" in one.raw:
        taken = [key for key in list(signature.parameters)[1:] if key != "bound"]
        given = one.table("of").raw
        wrong = next((key for key in given if key not in taken), None)
        if wrong is not None:
            raise InputError(
                f"{one.place}.of: found {quote(wrong)}; allowed: {one_of(wrong, taken) if taken else 'nothing'}"
            )
        function = partial(function, **given)
    if "bound" in signature.parameters:
        return Stated(bound=_bound(one), of=function)
    if "Evidence" not in str(signature.return_annotation):
        return Asked(bound=_bound(one), of=_Quantities(function))
    beside = next((key for key in _BOUNDS if key in one.raw), None)
    if beside is not None:
        raise InputError(f"{one.place}: found {beside} beside {name}, which has bounds of its own; allowed: none")
    return function


def _bound(one: Table) -> Bound:
    given = [key for key in _BOUNDS if key in one.raw]
    if len(given) != 1:
        raise InputError(
            f"{one.place}: found {' and '.join(given) or 'no bound'}; allowed: one of {', '.join(_BOUNDS)}"
        )
    key = given[0]
    margin = one.number("margin", default=0.0)
    if margin < 0:
        raise InputError(
            f"{one.place}.margin: found {margin:g}; allowed: the smallest effect that counts, zero or more"
        )
    if margin and key not in ("more_than", "less_than"):
        raise InputError(f"{one.place}.margin: found it beside {key}; allowed: beside more_than or less_than")
    if key == "between":
        ends = one.numbers(key)
        if len(ends) != 2 or not ends[0] <= ends[1]:
            raise InputError(f"{one.place}.between: found {ends}; allowed: [least, greatest]")
        return between(ends[0], ends[1])
    value = one.number(key)
    if key == "same_as":
        return same(one.number("within"), of=value)
    makers: Mapping[str, Callable[[float], Bound]] = {"at_least": at_least, "at_most": at_most, "equal": exactly}
    if key in makers:
        return makers[key](value)
    return above(value, margin=margin) if key == "more_than" else below(value, margin=margin)


class _Quantities:
    """A user's measure, with its return value converted to a list of numbers."""

    def __init__(self, function: Callable[[Tables], Any]) -> None:
        self.function = self.of = function

    def __call__(self, tables: Tables) -> Sequence[Quantity]:
        found = self.function(tables)
        listed = [found] if isinstance(found, Quantity) else found
        return answer.every(self.function, listed, Quantity, "ackclock.study.Quantity, or a list of them")


def read(file: Path) -> Table:
    """Read a file as a table.

    Raises
    ------
    InputError
        If it cannot be read, is too large, or is not valid TOML.
    """
    return Table(_read(file), str(file))


def _read(file: Path) -> dict[str, Any]:
    try:
        there = os.path.lexists(file)
    except ValueError:  # not a possible file name
        there = False
    if not there:
        raise InputError(f"{file}: found no such file; allowed: a folder with {TABLE} and the program beside it")
    try:
        return read_toml(regular(file, LARGEST).decode().replace("\r\n", "\n"))[0]
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: cannot be read ({error})") from None
    except ScenarioError as error:
        line = f", line {error.place.line}" if error.place else ""
        raise InputError(f"{file}{line}: found {shown(error.found)[:200]}; allowed: TOML") from None


_read_once = cache(_read)
"""Cached `_read`: all chapters of a package read the same file, which does not change during import."""


class Table:
    """A TOML table in the file. Each key is read once, and keys that are never read are refused."""

    def __init__(self, raw: Mapping[str, Any], place: str) -> None:
        self.raw, self.place, self.asked = raw, place, set[str]()

    def done(self) -> None:
        """Refuse keys that have not been read."""
        for key in self.raw:
            if key not in self.asked:
                raise InputError(
                    f"{self.place}: found the key {quote(key)}; allowed: {one_of(key, sorted(self.asked))}"
                )

    def _of(self, key: str, kinds: tuple[type, ...], words: str, default: Any = None) -> Any:
        self.asked.add(key)
        if key not in self.raw and default is not None:
            return default
        value = self.raw.get(key)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise InputError(f"{self.place}.{key}: found {quote(value)}; allowed: {words}")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """Return the text stored under a key."""
        return " ".join(str(self._of(key, (str,), "a text", default)).split())

    def texts(self, key: str) -> list[str]:
        """Return the list of texts stored under a key; empty if it is missing."""
        found = self._of(key, (list,), "a list of texts", [])
        return [str(x) for x in found]

    def word(self, key: str, words: Sequence[str], *, default: str) -> str:
        """Return a word, which must be one of those allowed."""
        found = self.text(key, default)
        if found not in words:
            raise InputError(f"{self.place}.{key}: found {quote(found)}; allowed: {one_of(found, words)}")
        return found

    def flag(self, key: str, *, default: bool) -> bool:
        """Return the boolean stored under a key."""
        self.asked.add(key)
        return bool(self._of(key, (bool,), "true or false") if key in self.raw else default)

    def number(self, key: str, default: float | None = None) -> float:
        """Return the number stored under a key."""
        found = float(self._of(key, (int, float), "a number", default))
        if not math.isfinite(found):
            raise InputError(f"{self.place}.{key}: found {found}; allowed: a number")
        return found

    def whole(self, key: str, *, least: int, default: int | None = None) -> int:
        """Return the integer stored under a key."""
        found = int(self._of(key, (int,), f"a whole number, {least} or more", default))
        if found < least:
            raise InputError(f"{self.place}.{key}: found {found}; allowed: a whole number, {least} or more")
        return found

    def numbers(self, key: str) -> list[float]:
        """Return the list of numbers stored under a key."""
        found = self._of(key, (list,), "a list of numbers")
        if not all(isinstance(x, int | float) and not isinstance(x, bool) for x in found):
            raise InputError(f"{self.place}.{key}: found {quote(found)}; allowed: a list of numbers")
        if not all(math.isfinite(x) for x in found):
            raise InputError(f"{self.place}.{key}: found a number that is infinite or none; allowed: a list of numbers")
        return [float(x) for x in found]

    def table(self, key: str) -> Table:
        """Return the nested table stored under a key."""
        return Table(self._of(key, (dict,), "a table"), f"{self.place}: {key}")

    def tables(self, key: str) -> list[Table]:
        """Return the list of tables stored under a key; empty if it is missing."""
        found = self._of(key, (list,), f"tables [[{key}]]", [])
        if not all(isinstance(x, dict) for x in found):
            raise InputError(f"{self.place}.{key}: found {quote(found)}; allowed: tables [[{key}]]")
        names = [str(x.get("id", x.get("name", x.get("module", i + 1)))) for i, x in enumerate(found)]
        return [Table(x, f"{self.place}: {key} {name}") for x, name in zip(found, names, strict=True)]
