"""A study of your own: a folder with a table of its publications and claims, which anybody can read, and Python that measures.

`study.toml` holds what a reader wants to know and what is fixed before the run: publications, what they leave open, each claim with
its place, bound, margin and causes. `study.py` beside it holds what computes:

=================  ==================================================================================================
`EXPERIMENTS`      the experiments (`ackclock.study.Experiment`)
`MEASURES`         name -> function from the tables of the experiments to numbers (`ackclock.study.Quantity`, or several)
`blocks(tables)`   what the report shows: text, tables, figures; may be missing
`scenarios()`      the scenarios as written, by name; may be missing
=================  ==================================================================================================

The code is run, so a study is as much to be trusted as a program: the command takes one only from its command line.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ackclock.errors import InputError, one_of, quote, said, shown
from ackclock.judge.bound import Bound, above, at_least, at_most, below, between, exactly, same
from ackclock.judge.evidence import Quantity
from ackclock.own import Source
from ackclock.study.claim import Asked, Cause, Claim, Criterion, Tables
from ackclock.study.plan import SCALES
from ackclock.study.reading import Reading
from ackclock.study.study import Chapter, Headline, Publication, Study

__all__ = ["TABLE", "load"]

TABLE, PROGRAM, RECORD = "study.toml", "study.py", "recorded.json"

LARGEST = 2**20
"""Bytes of the table."""

_BOUNDS = ("more_than", "less_than", "at_least", "at_most", "between", "equal", "same_as")


def load(folder: Path) -> Study:
    """The study in a folder.

    Parameters
    ----------
    folder
        Holds `study.toml` and `study.py`; `recorded.json` is written there by `--record`.

    Raises
    ------
    InputError
        If one of them is missing, cannot be read, or is wrong; the line names the place.
    """
    table = _Table(_read(folder / TABLE), str(folder / TABLE))
    program = _program(folder)
    measures: Mapping[str, Callable[[Tables], Any]] = getattr(program, "MEASURES", {})
    readings = {}
    for one in table.tables("readings"):
        reading = Reading(
            name=one.text("name"),
            question=one.text("question"),
            options={str(k): str(v) for k, v in one.table("options").raw.items()},
            why=one.text("why"),
            crossed=one.flag("crossed", default=True),
        )
        one.done()
        readings[reading.name] = reading
    claims = tuple(_claim(one, measures, readings) for one in table.tables("claims"))
    twice = next((c.id for i, c in enumerate(claims) if c.id in {o.id for o in claims[:i]}), None)
    if twice is not None:
        raise InputError(f"{table.place}: claims: found two called {quote(twice)}; allowed: one of each id")
    study = Study(
        name=table.text("name", default=folder.resolve().name),
        title=table.text("title"),
        summary=table.text("summary"),
        publications=tuple(_publication(one) for one in table.tables("publications")),
        chapters=(
            Chapter(
                title=table.text("chapter", default="What was measured"),
                experiments=tuple(getattr(program, "EXPERIMENTS", ())),
                claims=claims,
                blocks=getattr(program, "blocks", lambda _: ()),
                scenarios=getattr(program, "scenarios", dict),
            ),
        ),
        findings=getattr(program, "findings", lambda _: ()),
        headline=_headline(program),
        record=folder / RECORD,
        source=folder,
        runs=_runs(table),
    )
    table.done()
    if not study.experiments:
        raise InputError(f"{folder / PROGRAM}: found no EXPERIMENTS; allowed: a tuple of ackclock.study.Experiment")
    return study


def _runs(table: _Table) -> dict[str, int]:
    """Seeds of the smallest cell, by scale, where the table says how many."""
    if "runs" not in table.raw:
        return {}
    one = table.table("runs")
    found = {scale: one.whole(scale, least=2) for scale in SCALES if scale in one.raw}
    one.done()
    return found


def _headline(program: Any) -> Callable[[Any], Headline] | None:
    made: Callable[[Any], Headline] | None = getattr(program, "headline", None)
    return made


def _publication(one: _Table) -> Publication:
    made = Publication(authors=one.text("authors"), title=one.text("title"), where=one.text("where"))
    one.done()
    return made


def _claim(one: _Table, measures: Mapping[str, Any], readings: Mapping[str, Reading]) -> Claim:
    def half(name: str) -> Criterion | None:
        return _criterion(one.table(name), measures, readings) if name in one.raw else None

    made = Claim(
        id=one.text("id"),
        place=one.text("place"),
        statement=one.text("statement"),
        direction=half("direction"),
        magnitude=half("magnitude"),
        note=one.text("note", default=""),
        not_comparable=one.text("not_comparable", default="") or None,
        causes=tuple(_cause(cause, measures, readings) for cause in one.tables("causes")),
        guesses=tuple(one.texts("guesses")),
    )
    one.done()
    return made


def _cause(one: _Table, measures: Mapping[str, Any], readings: Mapping[str, Reading]) -> Cause:
    because, intervention = one.text("because"), one.text("intervention")
    return Cause(because=because, intervention=intervention, criterion=_criterion(one, measures, readings))


def _criterion(one: _Table, measures: Mapping[str, Any], readings: Mapping[str, Reading]) -> Criterion:
    name = one.text("measure")
    if name not in measures:
        raise InputError(
            f"{one.place}.measure: found {quote(name)}; allowed: {one_of(name, measures) if measures else 'a name in MEASURES'}"
        )
    found = [r for r in one.texts("readings") if r not in readings]
    if found:
        raise InputError(f"{one.place}.readings: found {quote(found[0])}; allowed: {one_of(found[0], readings)}")
    made = Criterion(
        measure=Asked(bound=_bound(one), of=_Measure(measures[name])),
        reading=one.text("reading", default=""),
        cell=one.text("cell", default=""),
        bound=one.word("bound", ("stated", "printed", "ours"), default="ours"),  # type: ignore[arg-type]
        printed=one.text("printed", default=""),
        reads=tuple(readings[r] for r in one.texts("readings")),
        needs=one.whole("needs", least=2, default=2),
    )
    one.done()
    return made


def _bound(one: _Table) -> Bound:
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


class _Measure:
    """A measure of the user's, with what it returns as a list of numbers."""

    def __init__(self, function: Callable[[Tables], Any]) -> None:
        self.function = function

    def __call__(self, tables: Tables) -> Sequence[Quantity]:
        found = self.function(tables)
        listed = [found] if isinstance(found, Quantity) else list(found)
        for one in listed:
            if not isinstance(one, Quantity):
                name = getattr(self.function, "__name__", "measure")
                raise InputError(
                    f"{name}: found {quote(repr(one))}; allowed: ackclock.study.Quantity, or a list of them"
                )
        return listed


def _read(file: Path) -> dict[str, Any]:
    try:
        if not file.is_file():
            raise InputError(f"{file}: found no such file; allowed: a folder with {TABLE} and {PROGRAM}")
        if file.stat().st_size > LARGEST:
            raise InputError(f"{file}: found over 1 MiB; allowed: less")
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read ({str(error).splitlines()[0]})") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file}: {error}") from None


def _program(folder: Path) -> Any:
    """Import `study.py`; it may import modules beside it with `from . import ...`."""
    file = folder / PROGRAM
    if not file.is_file():
        raise InputError(f"{file}: found no such file; allowed: a folder with {TABLE} and {PROGRAM}")
    name = f"_ackclock_study_{hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(
        name, file, loader=Source(name, str(file)), submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:  # sys.exit at the end of a program, too
        sys.modules.pop(name, None)
        if isinstance(error, KeyboardInterrupt):
            raise
        raise InputError(shown(f"{file}: cannot be imported ({said(error)})")) from error
    return module


class _Table:
    """A table of the file: every key is asked for once, and what nobody asked for is refused."""

    def __init__(self, raw: Mapping[str, Any], place: str) -> None:
        self.raw, self.place, self.asked = raw, place, set[str]()

    def done(self) -> None:
        """Refuse what is left."""
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
        """A text."""
        return " ".join(str(self._of(key, (str,), "a text", default)).split())

    def texts(self, key: str) -> list[str]:
        """A list of texts; empty if it is missing."""
        found = self._of(key, (list,), "a list of texts", [])
        return [str(x) for x in found]

    def word(self, key: str, words: Sequence[str], *, default: str) -> str:
        """One of some words."""
        found = self.text(key, default)
        if found not in words:
            raise InputError(f"{self.place}.{key}: found {quote(found)}; allowed: {one_of(found, words)}")
        return found

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false."""
        self.asked.add(key)
        return bool(self._of(key, (bool,), "true or false") if key in self.raw else default)

    def number(self, key: str, default: float | None = None) -> float:
        """A number."""
        return float(self._of(key, (int, float), "a number", default))

    def whole(self, key: str, *, least: int, default: int | None = None) -> int:
        """A whole number."""
        found = int(self._of(key, (int,), f"a whole number, {least} or more", default))
        if found < least:
            raise InputError(f"{self.place}.{key}: found {found}; allowed: a whole number, {least} or more")
        return found

    def numbers(self, key: str) -> list[float]:
        """A list of numbers."""
        found = self._of(key, (list,), "a list of numbers")
        if not all(isinstance(x, int | float) and not isinstance(x, bool) for x in found):
            raise InputError(f"{self.place}.{key}: found {json.dumps(found)[:60]}; allowed: a list of numbers")
        return [float(x) for x in found]

    def table(self, key: str) -> _Table:
        """A table inside."""
        return _Table(self._of(key, (dict,), "a table"), f"{self.place}: {key}")

    def tables(self, key: str) -> list[_Table]:
        """The tables of a list; none if it is missing."""
        found = self._of(key, (list,), f"tables [[{key}]]", [])
        if not all(isinstance(x, dict) for x in found):
            raise InputError(f"{self.place}.{key}: found {json.dumps(found)[:60]}; allowed: tables [[{key}]]")
        names = [str(x.get("id", x.get("name", i + 1))) for i, x in enumerate(found)]
        return [_Table(x, f"{self.place}: {key} {name}") for x, name in zip(found, names, strict=True)]


_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")


def new(name: str, folder: Path) -> Path:
    """Write a small study that runs.

    Parameters
    ----------
    name
        A word of small letters, digits and hyphens.
    folder
        In which the study's folder, of this name, is made.

    Raises
    ------
    InputError
        If the name is no such word, the folder exists already, or it cannot be written.
    """
    from ackclock._files import OWN, refused, staged

    if not _NAME.fullmatch(name):
        raise InputError(f"NAME: found {quote(name)}; allowed: small letters, digits and hyphens, e.g. buffer-sizes")
    place = folder / name
    if place.exists():
        raise InputError(f"{place}: found it there already; allowed: another name, or --out another folder")
    template = Path(__file__).with_name("_new")
    try:
        with staged(place, marks=OWN) as part:
            for file in sorted(template.iterdir()):
                if file.suffix in (".toml", ".py", ".md"):
                    text = file.read_text(encoding="utf-8").replace("{NAME}", name)
                    (part / file.name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise refused(error, str(place)) from None
    return place
