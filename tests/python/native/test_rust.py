"""Tests for controllers in a Rust file: a copy of a built-in controller matches it; each mistake is reported in one line."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

import ackclock
from ackclock import _child
from ackclock.cli import main

pytestmark = pytest.mark.skipif(shutil.which("rustc") is None, reason="rustc is not installed")

USE = "use ackclock_controller::{Ack, Controller, Options, Random, Window};\nstruct Mine;\n"
RENO = (
    USE
    + """
impl Controller for Mine {
    const OPTIONS: &'static [&'static str] = &["keep"];
    fn new(_: &Options, _: Random) -> Mine { Mine }
    fn ssthresh(&mut self, window: &Window, _: u32) -> u32 { (window.cwnd / 2).max(2) }
}
ackclock_controller::export!(Mine);
"""
)
LINK = {"rate": "5 Mbit/s", "delay": "10 ms", "queue": {"kind": "drop-tail", "limit": "20 packets"}}


def scenario(controller: str, **more: Any) -> ackclock.Scenario:
    flow = {"congestion_control": controller, **more}
    return ackclock.Scenario.from_dict({"duration": "5 s", "network": {"bottleneck": LINK}, "flows": [flow]})


def said(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the error line from a run with this file."""
    file = tmp_path / "mine.rs"
    file.write_text(text, encoding="utf-8")
    command = ["run", str(ROOT / "scenarios" / "first.toml"), "--set", "duration=5 s", "--controller", str(file)]
    assert main(command) == 2
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1
    return told[0]


@pytest.fixture(scope="module")
def renos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file containing Reno, compiled once."""
    file = tmp_path_factory.mktemp("renos") / "mine.rs"
    file.write_text(RENO, encoding="utf-8")
    return file


def test_what_copies_reno_is_reno(renos: Path) -> None:
    """The digests are identical, losses included."""
    mine, reno = (ackclock.run(scenario(name)) for name in (str(renos), "reno"))
    assert mine.recoveries.height > 0
    assert mine.digest == reno.digest


def test_a_compiler_leaves_nothing_in_the_current_folder(tmp_path, monkeypatch):
    """In a folder shared by several compilers, an object file could come from a different source file of the same name."""
    shared = tmp_path / "shared"
    shared.mkdir()
    compiler = tmp_path / "rustc"
    compiler.write_text(f'#!/bin/sh\n[ "$1" = -vV ] || set -- "$@" -C save-temps\nexec {shutil.which("rustc")} "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("RUSTC", str(compiler))
    monkeypatch.setattr(_child, "NOWHERE", str(shared))
    (tmp_path / "own.rs").write_text(RENO.replace("cwnd / 2", "cwnd / 3"), encoding="utf-8")
    assert ackclock.run(scenario(str(tmp_path / "own.rs"))).recoveries.height > 0
    assert not list(shared.iterdir())


@pytest.mark.promise("P18")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (RENO.replace("window.cwnd / 2", "window.wnd / 2"), r"mine\.rs, line \d+: found no field `wnd`"),
        (RENO.replace("ackclock_controller::export!(Mine);", ""), "found no function ackclock_controller in it"),
        (RENO + "mod other;\n", 'with "mod other;"; allowed: a controller in one file'),
        (
            RENO.replace("(window.cwnd / 2).max(2)", 'panic!("of {} segments", window.cwnd)'),
            r"ssthresh.*of \d+ segments",
        ),
        (RENO.replace("{ Mine }", '{ panic!("not today") }'), "not today"),
    ],
    ids=["compile", "export", "mod", "panic", "new"],
)
def test_what_is_wrong_is_one_line(tmp_path, capsys, text, expected):
    assert re.search(expected, said(tmp_path, text, capsys))


def test_options_are_numbers_that_the_file_names(tmp_path: Path) -> None:
    file = tmp_path / "mine.rs"
    file.write_text(
        RENO.replace("(_: &Options,", "(o: &Options,").replace(
            "{ Mine }", '{ assert!(o.number("keep", 0.0) == 0.7); Mine }'
        )
    )
    ackclock.run(scenario(str(file), congestion_control_options={"keep": 0.7}))
    with pytest.raises(ackclock.InputError, match="found option kept; allowed: keep"):
        ackclock.run(scenario(str(file), congestion_control_options={"kept": 0.7}))


def test_the_real_kernel_has_none(tmp_path: Path) -> None:
    from ackclock.linux import _run

    file = tmp_path / "mine.rs"
    file.write_text(RENO, encoding="utf-8")
    with pytest.raises(
        ackclock.InputError, match="found a controller in Rust; allowed with the linux backend: one in C"
    ):
        _run._text(scenario(str(file)), None)  # type: ignore[arg-type]


@pytest.mark.promise("P18")
def test_a_file_is_run_only_if_its_reader_says_so(renos: Path, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(scenario(str(renos)).to_toml(), encoding="utf-8")
    with pytest.raises(ackclock.ScenarioError, match=r"mine\.rs\", a program that the run would execute"):
        ackclock.load(tmp_path / "s.toml")
    assert ackclock.run(ackclock.load(tmp_path / "s.toml", own_code=True)).digest
