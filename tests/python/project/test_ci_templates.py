"""Tests for the CI templates offered to other projects: the command line accepts their commands, and the accompanying controller passes."""

from __future__ import annotations

import shlex
import shutil
import string
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

from ackclock.cli import main

yaml = pytest.importorskip("yaml")

FOLDER = ROOT / "examples" / "ci"
TEMPLATES = ("github.yml", "gitlab.yml")
OF_STACKS = ("stack-github.yml", "stack-gitlab.yml")
TOY = ROOT / "tests/python/stacks/toy.c"


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


def of_stack(template: str) -> list[list[str]]:
    """Return the commands of a stack's template, with the values of its variables."""
    read = yaml.safe_load((FOLDER / template).read_text(encoding="utf-8"))
    variables = read.get("env") or read["variables"]
    found = []
    for line in lines(read):
        if line.startswith(("ackclock ", "make ")):
            command = shlex.split(string.Template(line).substitute(variables))
            found.append(command)
    return found


def test_both_templates_of_a_stack_ask_the_same() -> None:
    github, gitlab = map(of_stack, OF_STACKS)
    assert sorted(github) == sorted(gitlab)
    assert github == [
        ["make", "-C", "adapter"],
        ["ackclock", "stack", "check", "adapter/libmine_stack.so"],
        ["ackclock", "evaluate", "stack:mine:cubic", "--stack", "adapter/libmine_stack.so", "--quick", "--rows", "2,4,7", "--out", "evaluate"],
    ]  # fmt: skip


NO_COMPILER = pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler of C")


def built(tmp_path: Path, make: list[str]) -> None:
    """Make the toy stack with a template's first command."""
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    flags = f"-O1 -shared -fPIC -pthread -DBREAKS=NOTHING -I {ROOT / 'crates/stack/c'}"
    (adapter / "Makefile").write_text(f"libmine_stack.so:\n\tcc {flags} -o $@ {TOY}\n", encoding="utf-8")
    subprocess.run(make, cwd=tmp_path, check=True, capture_output=True)


@pytest.mark.deep
@NO_COMPILER
@pytest.mark.parametrize("template", OF_STACKS)
def test_a_stack_is_built_and_checked(template: str, tmp_path: Path) -> None:
    make, check, _ = of_stack(template)
    built(tmp_path, make)
    done = subprocess.run([sys.executable, "-m", *check], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.count("ok ") == len(done.stdout.splitlines()) > 5


@NO_COMPILER
def test_a_stack_is_evaluated_with_what_is_collected(tmp_path: Path) -> None:
    """Use the toy stack, and one of the template's rows."""
    make, _, evaluate = of_stack(OF_STACKS[0])
    built(tmp_path, make)
    evaluate[evaluate.index("stack:mine:cubic")] = "stack:toy:fixed"
    evaluate[evaluate.index("2,4,7")] = "2"
    done = subprocess.run([sys.executable, "-m", *evaluate], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr  # 1: worse than CUBIC
    assert "stack:toy:fixed in CUBIC's place" in done.stdout
    for left in ("junit.xml", "report.html"):
        assert (tmp_path / "evaluate" / left).stat().st_size > 100
    assert "--rows 2 --stack adapter/libmine_stack.so --out evaluate" in done.stdout
