"""Tests that commands run in someone else's folder execute nothing from it."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest

from ackclock import _child
from ackclock.cli import main

SCENARIO = """
duration = "0.2 s"
[network.bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
[[flows]]
"""
SWEEP = 'scenario = "s.toml"\nseeds = 2\n[axes]\n"network.bottleneck.delay" = ["10 ms", "20 ms"]\n'
MODULES = (
    "json", "pickle", "signal", "hashlib", "ackclock/__init__", "ackclock_studies/__init__", "conftest", "sitecustomize", "usercustomize",
    "polars/__init__", "numpy/__init__", "matplotlib/__init__", "typer/__init__", "multiprocessing/__init__", "encodings/__init__",
)  # fmt: skip
COMMAND = Path(sys.executable).with_name("ackclock")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a module of every module's name, and settings of each tool."""
    place = tmp_path / "stranger"
    canary = tmp_path / "CANARY"
    for name in MODULES:
        file = place / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"open({str(canary)!r}, 'a').write(__name__ + ' ')\n", encoding="utf-8")
    spy = f"#!/bin/sh\necho $0 $@ >> {canary}\nexit 1\n"
    for name in ("tc/bin/rustc", "tc/bin/cargo", "cc", "rustc", "valgrind", "git", "sh"):
        tool = place / name
        tool.parent.mkdir(parents=True, exist_ok=True)
        tool.write_text(spy, encoding="utf-8")
        tool.chmod(0o755)
    (place / "rust-toolchain.toml").write_text(f'[toolchain]\npath = "{place / "tc"}"\n', encoding="utf-8")
    (place / ".cargo").mkdir()
    (place / ".cargo/config.toml").write_text(f'[build]\nrustc = "{place / "tc/bin/rustc"}"\n', encoding="utf-8")
    (place / ".valgrindrc").write_text(f"--log-file={canary}\n", encoding="utf-8")
    (place / "matplotlibrc").write_text("backend: module://pickle\n", encoding="utf-8")
    (place / "s.toml").write_text(SCENARIO, encoding="utf-8")
    (place / "sweep.toml").write_text(SWEEP, encoding="utf-8")
    (place / "st" / "x").mkdir(parents=True)
    monkeypatch.chdir(place)
    return place


def command(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(COMMAND), *arguments], capture_output=True, text=True, check=False, timeout=600, env={**os.environ, **environment}
    )  # fmt: skip


def canary(folder: Path) -> str:
    file = folder.parent / "CANARY"
    return file.read_text(encoding="utf-8") if file.exists() else ""


@pytest.mark.promise("P29")
def test_a_store_that_asks_for_a_process(folder: Path) -> None:
    """`sweep resume` repeats a run in a separate process if the store records that its process died twice."""
    assert main(["sweep", "run", "sweep.toml", "--out", "mine"]) == 0
    with sqlite3.connect("mine/state.sqlite") as db:
        db.execute("UPDATE runs SET state = 'pending', attempts = 2, part = NULL WHERE id = 1")
    done = command("sweep", "resume", "mine")
    assert (done.returncode, canary(folder)) == (0, ""), done.stderr
    assert "4 of 4" in done.stdout


@pytest.mark.promise("P17")
@pytest.mark.parametrize("name", ["x.rs", "x.c"])
def test_no_compiler_is_asked_before_leave(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (folder / name).write_text("", encoding="utf-8")
    (folder / "named.toml").write_text(f'{SCENARIO}congestion_control = "{name}"\n', encoding="utf-8")
    (folder / "axes.toml").write_text(
        f'scenario = "s.toml"\n[axes]\n"flows.0.congestion_control" = ["{name}"]\n', encoding="utf-8"
    )
    started: list[object] = []
    monkeypatch.setattr(_child, "start", lambda *asked, **_: started.append(asked) or pytest.fail("a process"))
    assert main(["check", "named.toml"]) == 0
    assert main(["run", "named.toml"]) == 2
    assert main(["sweep", "run", "axes.toml"]) == 2
    assert main(["sweep", "status", "axes.toml"]) == 2
    assert main(["export", "named.toml", "--as", "tc", "--out", "x.sh"]) == 2
    assert started == []


@pytest.mark.promise("P29")
@pytest.mark.skipif(shutil.which("rustc") is None, reason="no compiler of Rust")
def test_a_compiler_obeys_no_file_of_the_folder(folder: Path) -> None:
    (folder / "x.rs").write_text("fn wrong( {", encoding="utf-8")
    (folder / "named.toml").write_text(f'{SCENARIO}congestion_control = "x.rs"\n', encoding="utf-8")
    done = command("run", "named.toml", "--own-code", PATH=f".:{os.environ['PATH']}")
    assert (done.returncode, canary(folder)) == (2, ""), done.stderr
    assert "x.rs, line 1" in done.stderr


def quick(library: str) -> Mapping[str, tuple[str, ...]]:
    return {
        "list": ("list",),
        "check": ("check", "s.toml"),
        "run": ("run", "s.toml", "--report", "r.html", "--plot", "cwnd.png", "--out", "o", "--trace", "all"),
        "stack check": ("stack", "check", library),
        "sweep": ("sweep", "run", "sweep.toml", "--out", "new"),
        "study list": ("study", "list"),
        "read": ("read", "x.pcap"),
        "script": ("script", "run", "x.pkt"),
        "lab": ("lab", "s.toml", "--save", "lab.html"),
        "linux doctor": ("linux", "doctor"),
    }  # fmt: skip


@pytest.mark.promise("P29")
@pytest.mark.parametrize("which", sorted(quick("")))
def test_commands(folder: Path, which: str) -> None:
    shutil.copy(sys.modules["ackclock._engine"].__file__ or "", folder / "lib.so")
    (folder / "x.pcap").write_bytes(b"")
    (folder / "x.pkt").write_text("", encoding="utf-8")
    done = command(*quick("./lib.so")[which], PATH=f".:{os.environ['PATH']}", MPLBACKEND="")
    assert done.returncode in (0, 1, 2, 3), done.stderr
    assert canary(folder) == ""
    if which in ("run", "sweep", "check", "list", "study list"):
        assert done.returncode == 0, done.stderr


@pytest.mark.deep
@pytest.mark.parametrize("asked", [("--quick",), ("--instructions", "--quick")])
def test_bench(folder: Path, asked: tuple[str, ...]) -> None:
    done = command("bench", *asked, PATH=f".:{os.environ['PATH']}")
    assert done.returncode in (0, 1, 3), done.stderr
    assert canary(folder) == ""


OWN = """
import json
class Mine:
    def __init__(self):
        self.share = json.load(open("share.json"))
    def on_ack(self, window, ack):
        window.cwnd += self.share
    def on_congestion_event(self, window, in_flight):
        return window.cwnd / 2
"""


def test_one_digest_in_the_run_in_the_sweep_and_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller reads a file by a relative name, even if a separate process makes the run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "share.json").write_text("0.25", encoding="utf-8")
    (tmp_path / "c.py").write_text(OWN, encoding="utf-8")
    (tmp_path / "s.toml").write_text(f'{SCENARIO}congestion_control = "c.py:Mine"\n', encoding="utf-8")
    (tmp_path / "sweep.toml").write_text(SWEEP, encoding="utf-8")
    digest = json.loads(command("run", "s.toml", "--own-code", "--json").stdout)["digest"]
    assert main(["sweep", "run", "sweep.toml", "--own-code", "--out", "st"]) == 0
    assert main(["sweep", "run", "sweep.toml", "--own-code", "--out", "apart"]) == 0
    with sqlite3.connect("apart/state.sqlite") as db:
        db.execute("UPDATE runs SET state = 'pending', attempts = 2, part = NULL")
    assert main(["sweep", "resume", "apart", "--own-code"]) == 0
    for store in ("st", "apart"):
        table = pl.read_parquet(f"{store}/sweeps/sweep/table.parquet")
        assert digest in set(table["digest"]), table
