"""Tests for child processes: a single function starts them all, never with the current folder at the head of the import path."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ackclock
from ackclock import _child

PACKAGE = Path(ackclock.__file__).parent
STARTERS = {"subprocess", "multiprocessing", "pty", "runpy"}
CALLS = ("exec", "spawn", "posix_spawn", "system", "popen", "fork", "startfile")
POISONED = (
    "json",
    "pickle",
    "signal",
    "hashlib",
    "ackclock/__init__",
    "sitecustomize",
    "usercustomize",
    "polars/__init__",
)


def starters(file: Path) -> list[str]:
    """Return the calls in a file that could start a process."""
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names if name.name.partition(".")[0] in STARTERS]
        elif isinstance(node, ast.ImportFrom) and node.module:
            first = node.module.partition(".")[0]
            names = [name.name for name in node.names]
            if first in STARTERS:
                found.append(node.module)
            if first == "os":
                found += [name for name in names if name.startswith(CALLS)]
            if node.module.startswith(("concurrent.futures", "asyncio")):
                found += [name for name in names if "Process" in name or "subprocess" in name]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == "os" and node.attr.startswith(CALLS):
                found.append(f"os.{node.attr}")
            if "ProcessPool" in node.attr or node.attr.startswith("create_subprocess"):
                found.append(node.attr)
    return found


@pytest.mark.promise("P29")
def test_one_module_starts_processes() -> None:
    studies = PACKAGE.parent / "ackclock_studies"
    files = [file for folder in (PACKAGE, studies) for file in sorted(folder.rglob("*.py")) if file.name != "_child.py"]
    assert len(files) > 200
    assert {str(file): found for file in files if (found := starters(file))} == {
        str(PACKAGE / "_wall.py"): ["os.fork"],  # the command restarts itself before it has imported anything
        str(PACKAGE / "linux" / "_filter.py"): ["os.execv"],  # a program of its own, which becomes the kernel of a run
    }


def test_the_rule_sees_each_way(tmp_path: Path) -> None:
    ways = [
        "import subprocess", "from subprocess import run", "import multiprocessing.pool", "import os\nos.execv('a', [])",
        "from os import posix_spawn", "from concurrent.futures import ProcessPoolExecutor", "import os\nos.system('a')",
        "import asyncio\nasyncio.create_subprocess_exec('a')",
    ]  # fmt: skip
    file = tmp_path / "x.py"
    for way in ways:
        file.write_text(way, encoding="utf-8")
        assert starters(file), way


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with one module for each module name that ackclock imports."""
    for name in POISONED:
        file = tmp_path / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"open({str(tmp_path / 'CANARY')!r}, 'a').write(__name__ + ' ')\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("leave", [False, True])
def test_the_current_folder_is_not_in_front(hostile: Path, leave: bool) -> None:
    done = _child.run(_child.python("ackclock._bench_cell:main", leave=leave), leave=leave, input="[]")
    assert "TypeError" in done.stderr  # the function was called, and does not accept a list
    assert not (hostile / "CANARY").exists()


def test_with_leave_modules_are_looked_for_where_the_parent_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs.py").write_text("import os\ndef say(): print(os.getcwd())\n", encoding="utf-8")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    monkeypatch.syspath_prepend(str(tmp_path))
    command = _child.python("builtins:print", leave=True)
    command[3] += "\nimport theirs; theirs.say()\n"
    assert _child.run(command, leave=True).stdout.strip() == str(tmp_path / "other")
    assert "No module named 'theirs'" in _child.run([*_child.python("theirs:say")]).stderr


def test_variables_are_those_of_the_list_without_relative_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"bin::.:/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.setenv("CCC_ANALYZER", "./mine")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    kept = _child.environment(MORE="1")
    assert kept["PATH"] == "/usr/bin:/bin"
    assert kept["LC_ALL"] == "C.UTF-8"
    assert kept["MORE"] == "1"
    assert kept["PYTHONSAFEPATH"] == "1"
    assert not kept.keys() & {"PYTHONPATH", "CCC_ANALYZER"}


def test_a_program_of_the_current_folder_is_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "our-tool"
    tool.write_text("#!/bin/sh\n", encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    with pytest.raises(FileNotFoundError):
        _child.run(["our-tool"])
    assert _child.run([str(tool)]).returncode == 0


def test_a_child_that_takes_too_long_is_ended() -> None:
    with pytest.raises(_child.TimeoutExpired):
        _child.run(["/bin/sleep", "30"], timeout=0.1)


def test_an_install_for_one_user_is_found(tmp_path: Path) -> None:
    """Modules that `pip install --user` or PYTHONPATH made importable can also be imported in child processes."""
    code = "from ackclock import _child; d = _child.run(_child.python('ackclock._bench_cell:main'), input='[]'); print(d.stderr)"
    for environment in (
        {"PYTHONUSERBASE": str(tmp_path / "base")},
        {"PYTHONPATH": str(PACKAGE.parent)},
    ):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **environment}, check=False,
        )  # fmt: skip
        assert "TypeError" in done.stdout, done.stderr
