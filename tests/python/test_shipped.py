"""Scenarios come with the package and are found by name."""

from __future__ import annotations

import pytest
from conftest import ROOT

import ackclock
from ackclock.cli import main


def test_a_scenario_that_comes_with_the_package_is_found_by_its_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert ackclock.load("first") == ackclock.load(ROOT / "scenarios" / "first.toml")
    assert main(["run", "mahimahi", "--set", "duration=1 s"]) == 0  # with the file that it names
    capsys.readouterr()
    (tmp_path / "first").write_text("")
    with pytest.raises(ackclock.ScenarioError, match="an empty file"):  # a file of that name goes first
        ackclock.load("first")


def test_a_name_that_nothing_has_is_refused_with_the_nearest(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "frist"]) == 2
    assert "nearest: first" in capsys.readouterr().err
    assert main(["list"]) == 0
    assert "the example of the README" in capsys.readouterr().out
