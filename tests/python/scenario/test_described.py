"""Tests that Python agrees with the engine's description: the same kinds, keys and defaults on both sides."""

from __future__ import annotations

import importlib.util

import pytest
from conftest import ROOT

from ackclock import _engine, scenario
from ackclock.errors import ScenarioError
from ackclock.scenario import _tables

FAMILIES = [
    "queues", "losses", "capacities", "workloads", "arrivals", "gates", "disciplines", "adaptations", "slow starts",
    "distributions",
]  # fmt: skip


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("family", FAMILIES)
def test_the_kinds_of_python_are_those_of_the_registry(family):
    members = _tables.family(family)
    kinds = [member.kinds[1] for member in members]
    if family != "distributions":
        assert kinds == [name for name, _ in _engine.registry()[family]]
    for member in members:
        assert getattr(scenario, member.__name__) is member
        assert member.__name__ in scenario.__all__


def test_every_family_is_looked_at():
    assert set(_engine.schema()) == {*FAMILIES, "tables", "pcc", "quinn", "datagrams"}


def test_what_is_absent_is_what_the_engine_says():
    codel = _tables.Codel(kind="codel")
    assert (codel.target, codel.interval, codel.limit, codel.ecn) == ("5 ms", "100 ms", None, False)
    assert codel.engine() == {"kind": "codel", "target": 5_000_000, "interval": 100_000_000, "ecn": False}
    assert codel.written() == {"kind": "codel"}


def test_what_is_drawn_may_be_one_value():
    arrivals = {"kind": "periodic", "interval": "1 s"}
    plain = scenario.Transactions(kind="transactions", bytes="10 KB", arrivals=arrivals)
    compiled = plain.engine()
    assert (compiled["bytes"], compiled["think"]) == (
        {"kind": "constant", "value": 10_000.0},
        {"kind": "constant", "value": 0.0},
    )
    assert plain.think == "0 s"
    drawn = scenario.Transactions(
        kind="transactions",
        bytes={"kind": "uniform", "low": "1 KB", "high": "2 KB"},
        think={"kind": "exponential", "mean": "250 ms"},
        arrivals=arrivals,
    ).engine()
    assert drawn["bytes"] == {"kind": "uniform", "low": 1000.0, "high": 2000.0}
    assert drawn["think"] == {"kind": "exponential", "mean": 0.25}
    for key, value, message in (
        ("bytes", {"kind": "exponential", "mean": "1 s"}, "bytes.mean: found"),
        ("bytes", {"kind": "uniform", "low": "3 KB", "high": "2 KB"}, "bytes.low: found"),
        ("bytes", "0 bytes", "bytes: found"),
        ("think", {"kind": "choice", "values": ["1 s", "2 KB"]}, "think.values.1: found"),
    ):
        given = {"kind": "transactions", "bytes": "10 KB", "arrivals": arrivals, key: value}
        with pytest.raises(ScenarioError, match=message):
            scenario.Transactions(**given)


def test_a_table_that_is_a_default_has_the_engines_defaults():
    video = scenario.Video(kind="video", ladder=("1 Mbit/s", "2 Mbit/s"))
    assert video.adaptation == scenario.Festive(kind="festive")
    assert video.engine()["adaptation"]["window"] == 20
    assert "buffer_max" not in video.engine()  # the engine supplies the value


def test_the_types_are_those_of_the_engine(tmp_path, monkeypatch, capsys):
    tables = tool("tables")
    assert tables.stub() == tables.STUB.read_text(encoding="utf-8")
    # planted: a type changed only in the type file
    planted = tmp_path / "_tables.pyi"
    planted.write_text(tables.stub().replace("    target: str\n", "    target: int\n", 1), encoding="utf-8")
    monkeypatch.setattr(tables, "STUB", planted)
    monkeypatch.setattr("sys.argv", ["tables.py", "--check"])
    assert tables.main() == 1
    assert "not as the engine says" in capsys.readouterr().err


def test_an_engine_older_than_the_sources_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: the message was a KeyError."""
    from ackclock import UnavailableError
    from ackclock.scenario import _base

    for module in (_tables, _base):
        monkeypatch.setattr(module, "schema", lambda: {"tables": []})
    for call in (
        lambda: _tables.family("queues"),
        lambda: _tables.single("link"),
        lambda: _base.table_keys("scenario"),
    ):
        with pytest.raises(UnavailableError, match="older than the Python around it"):
            call()
