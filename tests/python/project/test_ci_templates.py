"""Tests for the CI templates offered to other projects: the command line accepts their commands, and the accompanying controller passes."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

from ackclock.cli import main

yaml = pytest.importorskip("yaml")

FOLDER = ROOT / "examples" / "ci"
TEMPLATES = ("github.yml", "gitlab.yml")


def lines(told: Any) -> list[str]:
    """Return every string in a file, in order."""
    if isinstance(told, dict):
        return [line for value in told.values() for line in lines(value)]
    if isinstance(told, list):
        return [line for value in told for line in lines(value)]
    return [str(told)]


def commands(template: str) -> list[list[str]]:
    read = lines(yaml.safe_load((FOLDER / template).read_text(encoding="utf-8")))
    controller = next(line for line in read if line.startswith("controller.py:"))
    ours = [line.replace("$CONTROLLER", controller) for line in read if line.startswith("ackclock ")]
    return [shlex.split(line)[1:] for line in ours]


def test_both_ask_the_same() -> None:
    github, gitlab = map(commands, TEMPLATES)
    assert github == gitlab
    assert [command[0] for command in github] == ["conform", "attack", "run", "evaluate"]


def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[list[str]]) -> None:
    """Run the commands of a template, one after the other."""
    monkeypatch.chdir(tmp_path)
    Path("controller.py").write_bytes((FOLDER / "controller.py").read_bytes())
    for command in asked:
        assert main(command) == 0, command


def test_the_worst_case_is_found_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use fewer runs than the template."""
    conform, attack, draw, _ = commands(TEMPLATES[0])
    conform[conform.index("--trouble") + 1] = "2"
    attack[attack.index("--evaluations") + 1] = "8"
    run(tmp_path, monkeypatch, [conform, attack, draw])
    assert Path("cwnd.png").stat().st_size > 1000


@pytest.mark.deep
def test_the_controller_passes_and_leaves_what_is_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, monkeypatch, commands(TEMPLATES[0]))
    for left in ("attack/junit.xml", "attack/report.html", "cwnd.png", "evaluate/junit.xml", "evaluate/report.html"):
        assert Path(left).stat().st_size > 100
