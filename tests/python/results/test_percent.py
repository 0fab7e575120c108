"""Percentages in text: only nothing is 0 %, and only everything is 100 %."""

from __future__ import annotations

import random
import re
from types import SimpleNamespace

import pytest

from ackclock import text
from ackclock.cli._sweep import percent as of_sweep
from ackclock.conform import predicates
from ackclock.diagnose._page import percent as of_diagnosis
from ackclock.evaluate.page import with_unit
from ackclock.judge.bound import number as judged
from ackclock.study.population import told
from ackclock.sweep.page import _cell

SHARES = {
    "share": text.share,
    "whole": lambda value: text.share(value, 0),
    "tenths": lambda value: text.share(value, 1),
    "hundredths": lambda value: text.share(value, 2),
    "sweep": of_sweep,
    "groups of a sweep": lambda value: _cell(value, 100.0, "%"),
    "claims": lambda value: judged(100 * value, "%"),
    "evaluation": lambda value: with_unit(value, "share"),
}


def number(said: str) -> float:
    found = re.search(r"-?\d+(?:\.\d+)?(?:e-\d+)?", said.replace("−", "-"))
    assert found is not None, said
    return float(found.group(0))


@pytest.mark.parametrize("form", SHARES)
def test_less_than_all_is_never_100_percent_and_more_than_nothing_never_0(form):
    draw = random.Random(form)
    near = [10 ** draw.uniform(-8, -1) for _ in range(300)]
    values = [
        0.99957,
        0.9999,
        0.995,
        0.004,
        0.0004,
        *near,
        *(1 - x for x in near),
        *(draw.random() for _ in range(300)),
    ]
    for value in values:
        said = SHARES[form](value)
        assert number(said) not in (0, 100), (value, said.replace("−", "-"))
        if not said.startswith(("less", "more")):
            assert abs(number(said) - 100 * value) <= 0.5, (value, said.replace("−", "-"))
    assert number(SHARES[form](0.0)) == 0
    assert number(SHARES[form](1.0)) == 100


def test_a_difference_is_0_percent_only_if_there_is_none():
    assert text.change(0.0) == text.change(-2.2e-16) == "0.00 %"
    for value in (3e-6, -3e-6, 4e-4, -4e-4, 0.2):
        for said in (text.change(value), text.change(value, 1), of_diagnosis(value)):
            assert number(said) != 0, said
            assert ("-" in said) == (value < 0), said


def test_an_expectation_that_is_nearly_met_is_not_printed_as_met(monkeypatch):
    monkeypatch.setattr(predicates, "_goodput", lambda *_: 0.99957 * 10e6 * predicates.PAYLOAD)
    asked = {"rate": "10 Mbit/s", "from": "0 s", "until": "1 s", "least": 1.0}
    found = predicates.goodput(SimpleNamespace(), asked)
    assert not found.holds
    assert found.said.startswith("99.96 % of 10 Mbit/s")


def test_a_property_that_explains_nearly_all_is_not_printed_as_all():
    table = SimpleNamespace(
        head=lambda _: SimpleNamespace(iter_rows=lambda **_: [{"property": "loss", "explained": 0.99957}])
    )
    assert told(table) == "loss (99.96 %)"
