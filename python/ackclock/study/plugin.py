"""A user's own study: a folder with a readable table of publications and claims, and Python code that measures.

`study.toml` contains what a reader needs to know and what is fixed before the run: publications, questions that they
leave open, and each claim with its position, bound, margin and causes. `study.py` beside it contains the code:

=================  ==================================================================================================
`EXPERIMENTS`      the experiments (`ackclock.study.Experiment`)
`MEASURES`         name -> function from the tables of the experiments to numbers (`ackclock.study.Quantity`, or several)
`blocks(tables)`   what the report shows: text, tables, figures; may be missing
`scenarios()`      the scenarios as written, by name; may be missing
=================  ==================================================================================================

The code is executed, so a study must be trusted like a program. Commands accept a study only from the command line.
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ackclock import _wall
from ackclock.errors import InputError, quote, said, shown
from ackclock.own import Source
from ackclock.study.reading import Reading
from ackclock.study.study import Chapter, Experiment, Study
from ackclock.study.table import TABLE, Program, claim, head, once, read

__all__ = ["TABLE", "load"]

PROGRAM, RECORD = "study.py", "recorded.json"


def load(folder: Path) -> Study:
    """Load the study in a folder.

    Parameters
    ----------
    folder
        Holds `study.toml` and `study.py`; `recorded.json` is written there by `--record`.

    Raises
    ------
    InputError
        If one of them is missing, unreadable or invalid; the message gives the position.
    """
    table = read(folder / TABLE)
    program = _program(folder)
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
    measures = getattr(program, "MEASURES", {})
    if not isinstance(measures, Mapping):
        raise InputError(f"{folder / PROGRAM}: MEASURES: found {type(measures).__name__}; allowed: names and functions")
    known = Program(measures=measures, readings=readings)
    claims = tuple(claim(one, known) for one in table.tables("claims"))
    once(claims, table.place)
    study = Study(
        **{"name": folder.resolve().name, **head(table)},
        chapters=(
            Chapter(
                title=table.text("chapter", default="What was measured"),
                experiments=_experiments(program, folder / PROGRAM),
                claims=claims,
                blocks=_function(program, "blocks") or (lambda _: ()),
                scenarios=_function(program, "scenarios") or dict,
            ),
        ),
        findings=_function(program, "findings") or (lambda _: ()),
        headline=_function(program, "headline"),
        record=folder / RECORD,
        source=folder,
    )
    table.done()
    if not study.experiments:
        raise InputError(f"{folder / PROGRAM}: found no EXPERIMENTS; allowed: a tuple of ackclock.study.Experiment")
    return study


def _function(program: Any, name: str) -> Callable[..., Any] | None:
    """Return a function of the program; None if it is missing."""
    made = getattr(program, name, None)
    if made is not None and not callable(made):
        raise InputError(f"{program.__file__}: {name}: found {type(made).__name__}; allowed: a function")
    return made


def _experiments(program: Any, file: Path) -> tuple[Experiment, ...]:
    found = getattr(program, "EXPERIMENTS", ())
    listed = tuple(found) if isinstance(found, tuple | list) else (found,)
    for one in listed:
        if not isinstance(one, Experiment):
            raise InputError(
                f"{file}: EXPERIMENTS: found {type(one).__name__}; allowed: a tuple of ackclock.study.Experiment"
            )
        if not (isinstance(one.weight, int | float) and 0 < one.weight < math.inf):
            raise InputError(f"{file}: weight of {quote(one.name)}: found {one.weight!r}; allowed: more than 0")
    return listed


def _program(folder: Path) -> Any:
    """Import `study.py`, which may import modules in its folder with `from . import ...`."""
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
    _wall.note(str(file))
    try:
        with _wall.doing(f"importing {file}"):
            spec.loader.exec_module(module)
    except BaseException as error:  # includes a sys.exit at the end of a program
        sys.modules.pop(name, None)
        if isinstance(error, KeyboardInterrupt):
            raise
        raise InputError(shown(f"{file}: cannot be imported ({said(error)})")) from error
    return module


_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")


def new(name: str, folder: Path) -> Path:
    """Write a small study that can be run.

    Parameters
    ----------
    name
        Word of lower-case letters, digits and hyphens.
    folder
        Parent of the study's new folder, which gets this name.

    Raises
    ------
    InputError
        If the name is invalid, the folder exists already, or it cannot be written.
    """
    from ackclock._files import OWN, staged

    if not _NAME.fullmatch(name):
        raise InputError(f"NAME: found {quote(name)}; allowed: small letters, digits and hyphens, e.g. buffer-sizes")
    place = folder / name
    if place.exists():
        raise InputError(f"{place}: found it there already; allowed: another name, or --out another folder")
    template = Path(__file__).with_name("_new")
    with staged(place, marks=OWN) as part:
        for file in sorted(template.iterdir()):
            if file.suffix in (".toml", ".py", ".md"):
                text = file.read_text(encoding="utf-8").replace("{NAME}", name)
                (part / file.name).write_text(text, encoding="utf-8")
    return place
