"""Tests for rules between keys: the engine refuses a violation with the same message in every interface."""

from __future__ import annotations

import pytest
from breaking import BASE, RULES, broken

from ackclock import Scenario, ScenarioError, _engine
from ackclock.scenario._base import Files


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_breaks_a_rule_is_refused_in_python_and_by_the_engine(seed):
    assert len(RULES) * 3 > 200
    for key, values in broken(seed):
        with pytest.raises(ScenarioError) as refused:
            Scenario.from_dict(values)
        error = refused.value
        assert error.key == key
        if values.get("hosts") == "modern":
            continue  # in the compiled scenario the preset's hosts replace the named ones
        text = _engine.unjudged(values, Files)
        with pytest.raises(_engine.Refusal) as refusal:
            _engine.run(text, 1)
        assert refusal.value.args == (error.key, error.found, error.allowed)


def test_every_rule_that_is_broken_is_told():
    link = {"rate": "1 Mbit/s", "delay": "1 ms", "thin_acks": 2, "queue": {"kind": "codel", "target": "1 s"}}
    values = {
        "duration": "1000 ms",
        "network": {"bottleneck": link},
        "flows": [{"start": "2 s", "path": "up"}],
    }
    made, wrong = _engine.Scenario.read(values, Files)
    assert made is None
    assert wrong == [
        ("network.bottleneck.queue.target", '"1 s"', 'at most the interval of "100 ms"'),
        ("network.bottleneck.thin_acks", "2", "1 with a queue that drops at departure, or another queue"),
        ("flows.0.start", '"2 s"', 'a time below the duration of "1000 ms"'),
        ("flows.0.path", '"up"', 'no path unless the topology is "graph"'),
    ]


def test_nothing_is_wrong_with_what_the_others_are_made_of():
    Scenario.from_dict(BASE)


def test_the_format_is_known_or_refused_and_changes_nothing():
    plain, named = Scenario.from_dict(BASE), Scenario.from_dict({"format": 1, **BASE})
    assert named.format == 1
    assert plain.format is None
    assert named.to_engine_json() == plain.to_engine_json()
    with pytest.raises(ScenarioError, match=r"format: found 2; allowed: 1$"):
        Scenario.from_dict({"format": 2, **BASE})
