"""Tests for `ackclock study artefact`: the files that someone else needs to rerun a study."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from ackclock import studies
from ackclock.errors import InputError
from ackclock.study import artefact, plugin, record, register


def test_an_artefact_holds_the_plan_the_record_and_one_command(tmp_path):
    found = studies.get("prr")
    readme = artefact.write(found, tmp_path / "a")
    assert sorted(path.name for path in readme.parent.iterdir()) == sorted(artefact.WRITTEN)
    plan = register.read(readme.parent / "plan.json")
    assert register.differences(plan, found) == []
    assert plan["hash"] in readme.read_text()
    expected = json.loads((readme.parent / artefact.EXPECTED).read_text())
    assert expected["scales"]["quick"]["claims"]["T1"]["direction"]["verdict"] == "holds"
    command = (readme.parent / "reproduce.sh").read_text()
    assert command.count("ackclock study run prr") == 2
    assert "--registered plan.json" in command
    subprocess.run(["sh", "-n", readme.parent / "reproduce.sh"], check=True)
    assert (
        "| first paragraph | responses with losses last 7 to 10 times longer |"
        in (readme.parent / "claims.md").read_text()
    )
    assert artefact.write(found, tmp_path / "a") == readme, "an earlier artefact may be replaced"


SAID = {
    "this": "The build is that of the record: equal seeds give equal bits.",
    "other": "The record was made with another build (build 0123, profile release): verdicts are compared, bits need not be equal.",
    "none": "Which build made the record is not recorded: verdicts are compared, bits need not be equal.",
}


@pytest.mark.parametrize("case", SAID)
def test_reproduce_compares_with_the_build_of_the_record(case, tmp_path, monkeypatch):
    """The record may be older than the artefact, so the build that writes the artefact does not describe it."""
    mine = plugin.new("mine", tmp_path / "here")
    record.write(mine / "recorded.json", "quick", (), version="1", date="2026-01-01")
    kept = json.loads((mine / "recorded.json").read_text())
    assert kept["quick"]["taken"].pop("build") == record.build()
    told = {"this": {"build": record.build()}, "other": {"build": "build 0123, profile release"}, "none": {}}[case]
    kept["quick"]["taken"] |= told
    kept["quick"]["claims"] = {"B1": {"direction": {"verdict": "holds", "evidence": {}}}}
    (mine / "recorded.json").write_text(json.dumps(kept))
    folder = artefact.write(studies.get(str(mine)), tmp_path / "a").parent
    assert (folder / "build.txt").read_text() == f"quick: {told.get('build', 'not recorded')}\n"
    assert f"ackclock's {record.build()}" in (folder / "README.md").read_text()
    (tmp_path / "ackclock").write_text(f"#!/bin/sh\nprintf 'ackclock 1\\n{record.build()}\\n'\n")
    (tmp_path / "ackclock").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    ran = subprocess.run([folder / "reproduce.sh"], capture_output=True, text=True, check=True)
    assert [line for line in ran.stdout.splitlines() if "bits" in line] == [SAID[case]]
    ran = subprocess.run([folder / "reproduce.sh", "paper"], capture_output=True, text=True, check=True)
    assert [line for line in ran.stdout.splitlines() if "bits" in line] == [SAID["none"]]


def test_an_artefact_names_the_build_and_takes_the_wheel_along(tmp_path):
    wheel = tmp_path / f"ackclock-{version('ackclock')}-cp311-abi3-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("ackclock/__init__.py", "")
    folder = artefact.write(studies.get("prr"), tmp_path / "a", wheel=wheel).parent
    assert (folder / "wheels" / wheel.name).read_bytes() == wheel.read_bytes()
    wanted = (folder / "requirements.txt").read_text().splitlines()[0]
    assert wanted == f"./wheels/{wheel.name}  # SHA-256 {hashlib.sha256(wheel.read_bytes()).hexdigest()}"
    told = subprocess.run([sys.executable, "-m", "ackclock", "--version"], capture_output=True, text=True, check=True)
    assert f"ackclock's {told.stdout.splitlines()[1]}." in (folder / "README.md").read_text()
    other = wheel.with_name("ackclock-0.0.1-py3-none-any.whl")
    other.write_bytes(wheel.read_bytes())
    with pytest.raises(InputError, match=r"--wheel: found ackclock-0.0.1"):
        artefact.write(studies.get("prr"), tmp_path / "b", wheel=other)
    other.with_name(wheel.name).write_bytes(b"no")
    with pytest.raises(InputError, match=r"found no wheel that can be read"):
        artefact.write(studies.get("prr"), tmp_path / "b", wheel=wheel)


def test_what_is_not_an_artefact_is_not_replaced(tmp_path):
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(InputError):
        artefact.write(studies.get("prr"), tmp_path)
    assert (tmp_path / "README.md").read_text() == "mine"


def test_what_is_not_recorded_cannot_be_expected(tmp_path):
    with pytest.raises(InputError, match="found no record"):
        artefact.write(replace(studies.get("prr"), record=None), tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_a_study_of_ones_own_goes_along(tmp_path, monkeypatch):
    """A user's folder is not part of any package, so the recipient would otherwise not have it."""
    mine = plugin.new("mine", tmp_path / "here")
    (mine / "__pycache__").mkdir(exist_ok=True)
    (mine / "__pycache__" / "study.pyc").write_bytes(b"x")
    (mine / "data").mkdir()
    (mine / "data" / "rates.csv").write_text("1\n")
    claims = {"B1": {"direction": {"verdict": "holds", "evidence": {}}}}
    taken = {"date": "2026-01-01", "version": "0"}
    (mine / "recorded.json").write_text(json.dumps({"quick": {"taken": taken, "claims": claims}}))
    monkeypatch.chdir(tmp_path / "here")
    study = studies.get("./mine")
    assert study.recorded("quick")
    readme = artefact.write(study, tmp_path / "a")
    there = sorted(str(p.relative_to(tmp_path / "a" / "mine")) for p in (tmp_path / "a" / "mine").rglob("*"))
    assert there == ["README.md", "data", "data/rates.csv", "recorded.json", "study.py", "study.toml"]
    assert "does one flow need? One Reno flow" in readme.read_text()
    monkeypatch.chdir(readme.parent)  # as received by the recipient
    found = studies.get("./mine")
    assert register.differences(register.read(Path("plan.json")), found) == []
    assert Path("reproduce.sh").read_text().count("ackclock study run ./mine ") == 2
    assert artefact.write(study, tmp_path / "a") == readme, "an earlier artefact may be replaced"
    monkeypatch.setattr(artefact, "LARGEST", 1000)
    with pytest.raises(InputError, match="in the study's folder; allowed: reports and stores elsewhere"):
        artefact.write(study, tmp_path / "b")
