"""Compares the descriptions in `ackclock.tables` with the tables of runs."""

from __future__ import annotations

import json

import polars as pl
import pytest
from conftest import ROOT

import ackclock
from ackclock._results.result import TABLES
from ackclock.cli import main
from ackclock.tables import tables

RECORD = {
    "performance": True,
    "goodput_interval": "500 ms",
    "sample_interval": "500 ms",
    "queue_interval": "500 ms",
    "drops": True,
    "trace": "all",
    "controller": "all",
}
CASES = sorted(path.stem for path in (ROOT / "scenarios").glob("*.toml"))


def test_the_tables_are_those_that_a_run_can_leave():
    assert set(tables()) == set(TABLES)
    for name in tables():
        assert getattr(ackclock.Run, name).__doc__, f"Run.{name} has no docstring"


@pytest.mark.parametrize("name", CASES)
def test_types_and_nulls_are_as_described(name):
    scenario = ackclock.load(ROOT / "scenarios" / f"{name}.toml")
    said = scenario.to_dict()
    short = {**said, "duration": "3 s", "record": {**said.get("record", {}), **RECORD}}
    short["record"].pop("warm_up", None)
    run = ackclock.run(ackclock.Scenario.from_dict(short), seed=1)
    for table, described in tables().items():
        frame = getattr(run, table)
        if not frame.width:
            continue
        assert set(frame.columns) <= set(described.columns), table
        if table != "controllers":
            assert frame.columns == list(described.columns), table
        for column, about in described.columns.items():
            if column not in frame.columns:
                continue
            assert str(frame[column].dtype) == about.type, f"{table}.{column}"
            if not about.null:
                assert frame[column].null_count() == 0, f"{table}.{column}: null, and no word about it"
                assert not (frame[column].dtype == pl.Float64 and frame[column].is_nan().any()), f"{table}.{column}"


def test_the_command_prints_a_table_and_its_columns(capsys):
    assert main(["tables"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in tables())
    assert main(["tables", "samples"]) == 0
    assert "not set yet" in capsys.readouterr().out
    assert main(["tables", "samples", "--json"]) == 0
    columns = json.loads(capsys.readouterr().out)["samples"]["columns"]
    assert [column["name"] for column in columns] == list(tables()["samples"].columns)
    assert main(["tables", "sample"]) == 2
    assert 'did you mean "samples"' in capsys.readouterr().err
