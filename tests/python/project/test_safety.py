"""Tests for `docs/safety.md`: every row of permitted behaviour has a test, and files from others can open only the files in the table."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from ackclock._files import MARK, STAGED
from ackclock.cli import main

SCENARIO = """
duration = "100 ms"
[network]
bottleneck = { delay = "5 ms", capacity = { kind = "mahimahi", file = "t" } }
[[flows]]
"""
SWEEP = 'name = "k"\nseeds = 2\nmetrics = ["goodput_bps"]\nscenario = "x.toml"\n'
SCRIPT = """`touch pwned`
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 %{ print(open('pwned', 'w')) }%
"""

WATCHED = """
import json, os, sys
from ackclock.cli import main
seen = []
def watch(event, args):
    if event == "open" and isinstance(args[0], (str, bytes)):
        writes = bool((args[2] or 0) & (os.O_WRONLY | os.O_RDWR))
        seen.append(("write" if writes else "read", os.fsdecode(args[0])))
    elif event == "sqlite3.connect":
        name = os.fsdecode(args[0])
        if name == ":memory:":
            return
        read_only = name.endswith("?mode=ro")
        seen.append(("read" if read_only else "write", name.removeprefix("file:").removesuffix("?mode=ro")))
    elif event.startswith(("subprocess.", "os.exec", "os.posix_spawn", "os.system", "os.fork", "socket.connect", "socket.bind")):
        seen.append(("do", event))
    elif event in ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.symlink", "os.truncate", "shutil.rmtree"):
        seen.append(("write", os.fsdecode(args[0])))
sys.addaudithook(watch)
code = main(sys.argv[1:])
own = tuple(os.path.realpath(p) for p in (sys.prefix, sys.base_prefix, os.path.dirname(sys.modules["ackclock"].__file__)))
found = sorted({(how, os.path.relpath(os.path.realpath(what)) if how != "do" else what) for how, what in seen
                if how == "do" or not os.path.realpath(what).startswith(own + ("/dev/", "/proc/self", "/sys/"))})
print(json.dumps([code, found]), file=sys.__stderr__)
"""


def promised() -> dict[str, set[str]]:
    """Return the page's promises: name of a row -> tests named in it."""
    text = (ROOT / "docs" / "safety.md").read_text(encoding="utf-8")
    rows = [row for row in text.splitlines() if re.match(r"\| P\d+ \|", row)]
    found = {row.split("|")[1].strip(): set(re.findall(r"`(test_\w+)`", row)) for row in rows}
    assert len(found) == len(rows), "a name that stands twice"
    return found


def tried() -> dict[str, set[str]]:
    """Return the promises that tests try to break: name -> tests."""
    found: dict[str, set[str]] = {}
    for file in (ROOT / "tests" / "python").rglob("test_*.py"):
        text = file.read_text(encoding="utf-8")
        if "mark.promise(" not in text:
            continue
        for node in ast.parse(text).body:
            for mark in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.promise":
                    for name in mark.args:
                        found.setdefault(ast.literal_eval(name), set()).add(node.name)
    return found


def test_every_promise_has_a_test_that_tries_to_break_it() -> None:
    """A row without a test is a promise that nothing checks; a test without a row checks an undocumented promise."""
    assert len(promised()) >= 45
    assert promised() == tried()


CASES = {
    "scenario": (["run", "x.toml"], {"x.toml", "t"}, set()),
    "sweep": (["sweep", "run", "k.toml", "--jobs", "1"], {"x.toml", "t", "k.toml"}, {"k.sweep"}),
    "store": (["sweep", "check", "k.sweep"], {"k.sweep"}, set()),
    "script": (["script", "x.pkt"], {"x.pkt"}, set()),
}
"""Command -> paths it may read and paths it may write, each including everything below."""


@pytest.mark.parametrize("kind", CASES)
def test_files_from_others_open_what_the_table_says(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No other file, no process and no connection appear in Python's audit events."""
    for name, text in {"x.toml": SCENARIO, "t": "1\n2\n", "k.toml": SWEEP, "x.pkt": SCRIPT, "secret": "x"}.items():
        (tmp_path / name).write_text(text)
    command, reads, writes = CASES[kind]
    if kind == "store":
        monkeypatch.chdir(tmp_path)
        assert main(CASES["sweep"][0]) == 0
    code, found = _watched(tmp_path, command)
    assert code in ((4,) if kind == "script" else (0,))
    assert not [what for how, what in found if how == "do"]
    for how, what in found:
        allowed = writes if how == "write" else reads | writes
        scratch = writes and (
            what in (".", MARK) or STAGED.match(what)
        )  # created, marked and removed to check whether the folder is writable
        assert scratch or any(what == name or what.startswith(f"{name}/") for name in allowed), (how, what)
    assert not (tmp_path / "pwned").exists()


def _watched(folder: Path, command: list[str]) -> tuple[int, list[list[str]]]:
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, *command], cwd=folder, capture_output=True, text=True, check=False
    )
    code, found = json.loads(done.stderr.splitlines()[-1])
    return code, found
