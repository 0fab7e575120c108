"""Tests that a refusal includes its position, and that `ackclock check` reports every error."""

from __future__ import annotations

import json

import pytest

import ackclock
from ackclock.cli import main
from ackclock.errors import Place

MANY = """duration = "2 s"
nmae = "x"
[network]
bottleneck = { rate = "10 Mbps", delay = "20 ms", queue = { kind = "codle" } }
[[flows]]
congestion_control = "cubik"
"""
RULES = """duration = "2 s"
[network]
bottleneck = { rate = "10 Mbit/s", delay = "20 ms", queue = { kind = "codel", target = "200 ms" } }
[[flows]]
start = "3 s"
[[flows]]
workload = { kind = "fetch" }
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "many.toml").write_text(MANY)
    (tmp_path / "rules.toml").write_text(RULES.replace('{ kind = "fetch" }', '{ kind = "bulk" }'))
    (tmp_path / "lacks.toml").write_text(RULES)
    (tmp_path / "twice.toml").write_text('duration = "2 s"\nduration = "3 s"\n')


def refused(file):
    with pytest.raises(ackclock.ScenarioError) as caught:
        ackclock.load(file)
    return caught.value


def test_everything_that_is_wrong_with_values_is_told_with_its_place():
    places = {error.key: error.place for error in refused("many.toml").all()}
    assert places == {
        "nmae": Place(2, 1, 4),
        "network.bottleneck.rate": Place(4, 23, 9),
        "network.bottleneck.queue.kind": Place(4, 68, 7),
        "flows.0.congestion_control": Place(6, 22, 7),
    }


def test_every_rule_that_is_broken_is_told_with_its_place():
    error = refused("rules.toml")
    assert str(error) == (
        'rules.toml:3:88: network.bottleneck.queue.target: found "200 ms"; allowed: at most the interval of "100 ms"'
    )
    assert [(one.key, one.place.line) for one in error.all()][1:] == [("flows.0.start", 5)]


def test_a_key_that_is_missing_is_wanted_where_its_table_stands():
    error = refused("lacks.toml")
    assert (error.key, error.place) == ("flows.1.workload.bytes", Place(7, 1, 8))


def test_no_toml_is_refused_where_it_ends_to_be():
    assert str(refused("twice.toml")).startswith(
        'twice.toml:2:1: found no valid TOML (the key "duration" is given twice)'
    )


def test_the_command_points_as_a_compiler_does(capsys):
    assert main(["check", "rules.toml", "first"]) == 2
    out = capsys.readouterr().out
    assert '5 | start = "3 s"\n  |         ^^^^^ found "3 s"\n  = allowed: a time below' in out
    assert "first: ok, a scenario" in out
    assert main(["check", "many.toml", "--json"]) == 2
    told = json.loads(capsys.readouterr().out)["many.toml"]
    assert [(one["line"], one["column"]) for one in told] == [(2, 1), (4, 23), (4, 68), (6, 22)]
    assert main(["check", "first"]) == 0
