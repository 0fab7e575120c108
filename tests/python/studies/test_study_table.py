"""Tests for a study's table: the keys that a half may set for its measure, and that every key is read."""

import importlib
import inspect
import sys

import pytest

from ackclock import studies
from ackclock.errors import InputError
from ackclock.study import Asked, Stated, register
from ackclock.study.table import Program, Table, claim

PROGRAM = """
from __future__ import annotations
from ackclock.study import Chapter, Evidence, Quantity, Tables, at_most
from ackclock.study.table import declared

def speed(tables: Tables, *, of: str = "a") -> Quantity:
    return Quantity(label=of, estimate=3.0)

def twice(tables: Tables, bound, *, factor: float) -> list[Evidence]:
    return [Evidence(label="twice", value=2 * factor, bound=bound)]

def both(tables: Tables) -> list[Evidence]:
    return [Evidence(label="both", value=1.0, bound=at_most(2))]

CHAPTER = Chapter(**declared(__name__))
"""

TABLE = """
title = "Made up"
summary = "Nothing."

[[publications]]
authors = "A"
title = "B"
where = "C"

[[chapters]]
module = "speeds"
title = "Speeds"
place = "p. 1"

[[chapters.claims]]
id = "X1"
statement = "It is fast."
intervention = "the brake, taken off"
direction = { measure = "speed", more_than = 2, of = { of = "b" } }
magnitude = { measure = "twice", between = [1, 5], of = { factor = 2 } }

[[chapters.claims]]
id = "X2"
place = "p. 2"
statement = "Both."
direction = { measure = "both" }
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Make a package from a table, and import its chapter."""
    (tmp_path / "madeup").mkdir()
    (tmp_path / "madeup" / "__init__.py").write_text("")
    (tmp_path / "madeup" / "speeds.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(tmp_path)

    def made(table):
        (tmp_path / "madeup" / "study.toml").write_text(table)
        from ackclock.study import table as module

        module._read_once.cache_clear()
        return importlib.import_module("madeup.speeds").CHAPTER

    yield made
    for name in ("madeup", "madeup.speeds"):
        sys.modules.pop(name, None)


def test_a_chapter_takes_its_claims_from_the_table_beside_it(package):
    from ackclock.study.table import face

    chapter = package(TABLE)
    first, second = chapter.claims
    assert (chapter.title, first.place, second.place) == ("Speeds", "p. 1", "p. 2")
    assert first.intervention == "the brake, taken off"
    judged = first.judge({}).halves
    assert [(h.evidence[0].label, h.evidence[0].value, h.verdict) for h in judged.values()] == [
        ("b", 3.0, "holds"),
        ("twice", 4.0, "holds"),
    ]
    assert second.judge({}).verdict == "holds"
    planned = register.criterion_plan(first.magnitude)
    assert (planned["measure"], planned["of"], planned["bound"]["high"]) == ("twice", {"factor": 2}, 5.0)
    assert register.criterion_plan(second.direction)["measure"] == "both"
    assert face("madeup", (chapter,))["title"] == "Made up"
    with pytest.raises(InputError, match='chapters speeds: found "X1", a claim of no chapter of the study'):
        face("madeup", ())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('module = "speeds"', 'module = "speed"', 'found no chapter with the module "speeds"'),
        ('"twice"', '"thrice"', 'magnitude.measure: found "thrice"; allowed: '),
        ("factor = 2", "factors = 2", 'magnitude.of: found "factors"; allowed: factor'),
        ("between = [1, 5], ", "", "magnitude: found no bound; allowed: one of more_than"),
        ('"both"', '"both", at_most = 2', "direction: found at_most beside both, which has bounds of its own"),
        ("more_than = 2, ", "", "direction: found no bound"),
        ('place = "p. 2"', 'plaice = "p. 2"', 'found the key "plaice"'),
        ('[[chapters]]\nmodule = "speeds"', '[[chapters]]\ncolour = "red"\nmodule = "speeds"', 'found the key "colour"'),
    ],
)  # fmt: skip
def test_a_wrong_chapter_is_refused_in_one_line(package, old, new, said):
    assert old in TABLE
    with pytest.raises(InputError) as refused:
        package(TABLE.replace(old, new, 1))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_nothing_in_a_table_is_run():
    """A measure is looked up by name, not computed."""
    one = Table(
        {"id": "X", "place": "p", "statement": "s", "direction": {"measure": "max(1, 2)", "equal": 2}}, "study.toml"
    )
    with pytest.raises(InputError, match=r"found \"max\(1, 2\)\"; allowed: a name in MEASURES"):
        claim(one, Program(measures={}))


@pytest.mark.parametrize("name", studies.names())
def test_every_measure_of_ours_takes_what_its_table_gives_it(name):
    for one in studies.get(name).claims:
        for half, criterion in one.halves:
            measure = criterion.measure
            stated = isinstance(measure, Stated)
            function = measure.of if isinstance(measure, Stated | Asked) else measure
            function = getattr(function, "function", function)
            given = ({}, measure.bound) if stated else ({},)
            assert inspect.signature(function).bind(*given), f"{one.id} {half}"
