"""Tests for shell completion: Tab completes values as well as options."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ackclock import ScenarioError, load, studies
from ackclock.cli import _complete, main

GRID = """
seeds = 2
[scenario]
duration = "1 s"
network = { bottleneck = { rate = "2 Mbit/s", delay = "5 ms" } }
flows = [{}]
[axes]
"flows.0.congestion_control" = ["reno", "cubic"]
"network.bottleneck.delay" = ["5 ms", "9 ms"]
[names]
"flows.0.congestion_control" = "cc"
"""


@pytest.fixture
def offered(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("grid.toml").write_text(GRID, encoding="utf-8")

    def ask(*words):
        """Return bash's completions of the last word."""
        monkeypatch.setenv("_ACKCLOCK_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(["ackclock", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        assert main([]) == 0
        out, err = capsys.readouterr()
        assert not err
        return out.split()

    return ask


@pytest.mark.promise("P23")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("run", "fir"), {"first"}),
        (("evaluate", "bb"), {"bbr", "bbr3"}),
        (("study", "show", "pr"), {"prr"}),
        (("study", "new", "pr"), set()),
        (("study", "run", ""), set(studies.names())),
        (("run", "first", "--backend", ""), {"sim", "linux"}),
        (("run", "first", "--out", ""), set()),
        (("tables", "fl"), {"flows"}),
        (("sweep", "plot", "grid.toml", "--metric", "goodput_b"), {"goodput_bps"}),
        (("sweep", "plot", "grid.toml", "--by", ""), {"cc", "network.bottleneck.delay"}),
        (("sweep", "plot", "missing.toml", "--by", ""), set()),
        (("run", "missing", "--set", "dur"), set()),
    ],
)
def test_values(offered, words, expected):
    assert set(offered(*words)) == expected


def test_bash_takes_a_key_and_its_value_for_three_words(offered):
    key = ("run", "first", "--set", "flows.0.congestion_control", "=")
    assert offered(*key, "re") == ["reno"]
    assert {"reno", "cubic", "bbr3"} <= set(offered(*key))
    assert offered("sweep", "plot", "grid.toml", "--where", "cc", "=", "c") == ["cubic"]
    assert offered("run", "first", "--set", "flows.0.congestion_c")[0] == "flows.0.congestion_control=reno"


def test_every_key_that_is_offered_is_one_and_takes_the_value():
    scenario = load("first")
    tried = set()
    refused = []
    for text in _complete._changes("first"):
        key, _, value = text.partition("=")
        tried.add(key)
        given = {"true": True, "false": False}.get(value, value or "no such value")
        try:
            scenario.set(key, given)
        except ScenarioError as error:  # a key may need another key
            refused += [
                text
                for one in error.all()
                if "an unknown key" in str(one) or (value and one.key == key and one.found == f'"{value}"')
            ]
    assert not refused
    assert {"duration", "flows.0.congestion_control", "network.bottleneck.queue.limit", "flows.0.stack.ecn"} <= tried
    assert len(tried) > 100


def test_the_script_for_the_shell_works_in_one(tmp_path):
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    (tmp_path / "ackclock").symlink_to(Path(sys.executable).parent / "ackclock")
    script = (
        'eval "$(ackclock --show-completion bash)"\n'
        "COMP_WORDS=(ackclock run fir) COMP_CWORD=2\n_ackclock_completion ackclock\n"
        'echo "${COMPREPLY[*]}"\n'
    )
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [bash, "-c", script], capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}
    )
    assert (done.stdout, done.stderr) == ("first\n", "")
