"""Tests that packaged scenarios are found by name."""

from __future__ import annotations

import pytest
from conftest import ROOT

import ackclock
from ackclock.cli import main


def test_a_scenario_that_comes_with_the_package_is_found_by_its_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert ackclock.load("first") == ackclock.load(ROOT / "scenarios" / "first.toml")
    assert main(["run", "mahimahi", "--set", "duration=1 s"]) == 0  # together with the file that the scenario names
    capsys.readouterr()
    (tmp_path / "first").write_text("")
    with pytest.raises(ackclock.ScenarioError, match="an empty file"):  # a local file of that name takes precedence
        ackclock.load("first")


def test_a_name_that_nothing_has_is_refused_with_the_nearest(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "frist"]) == 2
    assert 'did you mean "first"' in capsys.readouterr().err
    assert main(["list"]) == 0
    assert "the example of the README" in capsys.readouterr().out


def test_a_shipped_scenario_asked_by_its_path_in_the_repository_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "scenarios/first.toml"]) == 2
    assert "first, without folder and ending" in capsys.readouterr().err
    assert main(["run", "scenarios/mine.toml"]) == 2
    assert "comes with the package" not in capsys.readouterr().err


def test_a_folder_of_the_same_name_does_not_hide_a_shipped_scenario(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("first", "other"):
        (tmp_path / name).mkdir()  # as `run first --out first` writes it
    assert ackclock.load("first").name == "first"
    with pytest.raises(ackclock.ScenarioError, match="a folder"):
        ackclock.load("other")
