"""`ackclock study artefact`: what another person needs to run a study again."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ackclock import studies
from ackclock.errors import InputError
from ackclock.study import artefact, plugin, register


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
    """A folder is in no package: whoever gets the artefact has it nowhere else."""
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
    monkeypatch.chdir(readme.parent)  # as whoever gets it
    found = studies.get("./mine")
    assert register.differences(register.read(Path("plan.json")), found) == []
    assert Path("reproduce.sh").read_text().count("ackclock study run ./mine ") == 2
    assert artefact.write(study, tmp_path / "a") == readme, "an earlier artefact may be replaced"
    monkeypatch.setattr(artefact, "LARGEST", 1000)
    with pytest.raises(InputError, match="in the study's folder; allowed: reports and stores elsewhere"):
        artefact.write(study, tmp_path / "b")
