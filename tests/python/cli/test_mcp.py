"""Tests for `ackclock mcp`: a protocol session over standard input and output. Paths outside the folder and user code
are refused.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ackclock.cli._mcp import Tools
from ackclock.errors import InputError

CALLS = {
    2: ("tools/list", {}),
    3: ("tools/call", {"name": "list", "arguments": {"kind": "controllers"}}),
    4: ("tools/call", {"name": "run", "arguments": {"scenario": "first", "changes": {"duration": "1 s"}}}),
    5: ("tools/call", {"name": "read", "arguments": {"capture": "../outside.pcap"}}),
    6: ("tools/call", {"name": "run", "arguments": {"scenario": "first", "changes": {"duration": "1 parsec"}}}),
    7: ("tools/call", {"name": "arena_tasks", "arguments": {}}),
}


def session(folder: Path) -> dict[int, Any]:
    """Return the server's responses."""
    begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    server = subprocess.Popen(
        [sys.executable, "-m", "ackclock", "mcp"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin is not None
    assert server.stdout is not None
    answers: dict[int, Any] = {}
    try:
        for number, (method, params) in {1: ("initialize", begin), **CALLS}.items():
            server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
            server.stdin.flush()
            while number not in answers:
                answer = json.loads(server.stdout.readline())
                answers[answer.get("id", 0)] = answer.get("result", answer.get("error"))
            if number == 1:
                server.stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
    finally:
        server.stdin.close()
        server.wait(timeout=30)
        server.stdout.close()
    return answers


@pytest.mark.deep
def test_a_session(tmp_path: Path) -> None:
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    answers = session(tmp_path)
    assert [tool["name"] for tool in answers[2]["tools"]] == [
        "read", "diagnose", "run", "compare", "list", "arena_tasks", "arena_score",
    ]  # fmt: skip
    assert "cubic" in json.loads(answers[3]["content"][0]["text"])["controllers"]
    assert json.loads(answers[4]["content"][0]["text"])
    assert "internet" in [task["name"] for task in json.loads(answers[7]["content"][0]["text"])]
    for number, words in ((5, "allowed: a path in the folder"), (6, "parsec")):
        assert answers[number]["isError"]
        assert words in answers[number]["content"][0]["text"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.promise("P50")
def test_no_path_leaves_the_folder(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "a.trace").write_text("1\n")
    (inside / "link.pcap").symlink_to(outside / "a.trace")
    tools = Tools(inside)
    for path in ("../outside/a.trace", str(outside / "a.trace"), "link.pcap", "/etc/passwd"):
        with pytest.raises(InputError, match="allowed: a path in the folder"):
            tools.read(path)
        with pytest.raises(InputError, match="allowed: a path in the folder"):
            tools.run(path)
    scenario = inside / "s.toml"
    scenario.write_text('[network.bottleneck.capacity]\nkind = "mahimahi"\nfile = "../outside/a.trace"\n')
    with pytest.raises(InputError, match="allowed: a path in the folder"):
        tools.scenario("s.toml")
    with pytest.raises(InputError, match="found a trace in a change"):
        tools.run("first", changes={"network.bottleneck.capacity": '{ kind = "mahimahi", file = "/etc/passwd" }'})
    with pytest.raises(InputError, match="does not begin with -"):
        tools.list("--help")


@pytest.mark.promise("P50")
def test_own_code_is_not_run(tmp_path: Path) -> None:
    """A file that names its own controller is refused, as the command refuses it without permission."""
    (tmp_path / "own.py").write_text(f"open({os.fspath(tmp_path / 'ran')!r}, 'w')\nclass Own: pass\n")
    (tmp_path / "s.toml").write_text(
        'duration = "1 s"\n[network.bottleneck]\nrate = "1 Mbit/s"\n[[flows]]\ncongestion_control = "own.py:Own"\n'
    )
    with pytest.raises(InputError, match="own-code"):
        Tools(tmp_path).run("s.toml")
    assert not (tmp_path / "ran").exists()


@pytest.mark.deep
def test_the_arena_scores_names_and_with_leave_text(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).parents[1] / "arena" / "small.toml", tmp_path)
    answer = json.loads(Tools(tmp_path).arena_score("small.toml", {"controller": "vegas"}, salt="s"))
    assert answer["score"] > 0
    with pytest.raises(InputError, match="allowed: a path in the folder"):
        Tools(tmp_path).arena_score("../small.toml", {"controller": "vegas"})


@pytest.mark.parametrize(
    ("leave", "said"), [(False, "allowed: a controller by its name"), (True, "nothing of this name")]
)
def test_text_of_a_controller_needs_leave(tmp_path: Path, leave: bool, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Tools(tmp_path, code=leave).arena_score("internet", {"language": "python", "text": ""}, salt="s")


def test_without_the_sdk_a_line_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['mcp'] = None; from ackclock.cli import main; sys.exit(main(['mcp']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "pip install 'ackclock[mcp]'" in done.stderr
    assert done.stderr.count("\n") == 1
