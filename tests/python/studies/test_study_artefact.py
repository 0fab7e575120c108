"""`ackclock study artefact`: what another person needs to run a study again."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace

import pytest

from ackclock import studies
from ackclock.errors import InputError
from ackclock.study import artefact, register


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
