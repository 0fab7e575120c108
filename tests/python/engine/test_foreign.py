"""Tests that the engine's results are bit-identical on other processors, as far as those can be emulated here."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conftest import ROOT, tool

foreign = tool("foreign")


@pytest.mark.deep
@pytest.mark.parametrize("processor", foreign.PROCESSORS, ids=lambda processor: processor.name)
def test_digests_are_those_of_this_machine(processor):
    lacks = processor.missing()
    if lacks:
        pytest.skip(f"{processor.name} ({processor.order}) needs: {'; '.join(lacks)}")
    command = [sys.executable, "tools/foreign.py", processor.name, "--drawn", "200"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr
    assert "247 of 247 digests equal" in told.stdout, told.stdout


def test_what_is_missing_is_told_and_what_differs_is_named(monkeypatch, capsys):
    made = foreign.Processor(name="none", order="little-endian", packages=("gcc-none",))
    monkeypatch.setattr(foreign, "PROCESSORS", (made,))
    monkeypatch.setattr(sys, "argv", ["foreign.py"])
    assert foreign.main() == 3
    told = capsys.readouterr().out
    assert told == (
        "LEFT OUT: none (little-endian); it needs: rustup target add none-unknown-linux-gnu; apt-get install gcc-none\n"
    )
    monkeypatch.setattr(foreign.Processor, "missing", lambda _: [])
    monkeypatch.setattr(foreign, "built", lambda _: None)
    monkeypatch.setattr(foreign, "jobs", lambda _: foreign_jobs())
    native = [foreign_digest(text, seed) for _, seed, text in foreign_jobs()]
    monkeypatch.setattr(foreign, "played", lambda *_: [native[0], "0" * 16])
    assert foreign.main() == 1
    assert "1 of 2 digests equal" in capsys.readouterr().out
    monkeypatch.setattr(foreign, "played", lambda *_: native)
    assert foreign.main() == 0
    monkeypatch.setattr(sys, "argv", ["foreign.py", "vax"])
    with pytest.raises(SystemExit) as refused:
        foreign.main()
    assert refused.value.code == 2
    assert "found vax; allowed: none" in capsys.readouterr().err


def foreign_jobs():
    from ackclock import load

    text = load("first").set("duration", "1 s").to_engine_json()
    return [("one", 1, text), ("two", 2, text)]


def foreign_digest(text, seed):
    from ackclock import _engine

    return _engine.run(text, seed)["digest"]
