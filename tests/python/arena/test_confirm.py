"""Tests of the Linux kernel's verdict on the entries of a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ackclock import linux
from ackclock.arena import Entry, Plan, files, play, read
from ackclock.arena.confirm import ask
from ackclock.cli import main
from ackclock.errors import ScenarioError

HERE = Path(__file__).parent


@pytest.fixture
def table(tmp_path: Path) -> Any:
    task = read((HERE / "small.toml").read_text("utf-8"), "small")
    return play(Plan(task=task, entries=[Entry(controller="vegas")], salt="s", draws=2), tmp_path / "out", 1)


def test_the_verdict_is_scored_as_the_table_is(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that returns the simulator's results gets the simulator's scores; entries and draws that it cannot run are named."""
    import ackclock

    asked = []

    def run(scenario: Any, *, seed: int, network: str) -> Any:
        assert network == "relay"
        asked.append(seed)
        if scenario.flows[0].congestion_control == "reno":
            raise ScenarioError(key="flows.0.congestion_control", found="reno", allowed="what the kernel has")
        if len(asked) == 1:
            raise ScenarioError(key="network", found="something", allowed="what the kernel can")
        return ackclock.run(scenario, seed=seed)

    monkeypatch.setattr(linux, "installed", lambda: None)
    monkeypatch.setattr(linux, "run", run)
    found = ask(table)
    assert next(iter(found)) == "cubic"
    assert list(found["reno"].why)[-1] == ""
    assert not found["reno"].rows
    assert len(found["cubic"].why) == 1
    vegas = found["vegas"]
    drawn = [row for s in table.standings if s.entry.name == "vegas" for row in s.rows if row.draw.keys]
    missed = next(iter(found["cubic"].why))
    assert [row.draw.id for row in vegas.rows] == [row.draw.id for row in drawn if row.draw.id != missed]
    assert vegas.why == found["cubic"].why
    assert [vegas.scores[row.draw.id] for row in vegas.rows] == [row.score for row in vegas.rows]
    verdict = files.to_json(replace(table, verdicts=found))["kernel"]
    assert [verdict[name]["score"] is None for name in ("reno", "vegas")] == [True, False]
    assert [row[0] for row in files.kernel_cells(replace(table, verdicts=found))] == [
        s.entry.name for s in table.standings
    ]
    assert vegas.kernel == pytest.approx(vegas.simulator)


def test_a_kernel_that_is_not_there_is_said_before_the_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["arena", "run", "internet", "--entry", "vegas", "--kernel", "nobody", "--out", "out"]) == 2
    assert "nobody" in capsys.readouterr().err
    assert not (tmp_path / "out" / "store").exists()
