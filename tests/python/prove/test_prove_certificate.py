"""Tests for the certificate: the errors that a check detects, and their detection probability."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from short_response import path

from ackclock import prove
from ackclock.errors import InputError
from ackclock.prove import proof as proving
from ackclock.prove.cases import Cases
from ackclock.prove.certificate import Certificate, escapes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    targets = [prove.Target(name=rule, scenario=path(6, recovery=rule)) for rule in ("prr-rfc9937", "rfc6675")]
    made = prove.prove(targets, prove.Adversary(name="losses", first=6), folder=tmp_path)
    Certificate(made, (prove.Bernoulli(0.01),)).write(tmp_path)
    return tmp_path


def test_a_certificate_holds_and_says_what_a_check_can_miss(folder: Path) -> None:
    found = prove.check(folder, seed=3, drawn=20)
    assert (found.faults, found.cases, found.drawn) == ((), 128, 20)
    assert "one wrong case would escape with probability 0.8438" in found.words
    every = prove.check(folder, every=True)
    assert every.faults == ()
    assert "all 128 cases were run anew" in every.words


def test_one_changed_number_is_caught(folder: Path) -> None:
    place = folder / "proof.json"
    said = json.loads(place.read_text())
    changes: list[Callable[[Any], object]] = [
        lambda s: s["comparisons"][0].update(slower=s["comparisons"][0]["slower"] + 1),
        lambda s: s["results"][1]["summary"].update(worst_s=0.4),
        lambda s: s["results"][0]["expectations"][0].update(low_s=0.1194),
        lambda s: s["sentences"].pop(),
        lambda s: s["results"][0].update(root="0" * 64),
    ]
    for change in changes:
        changed = json.loads(json.dumps(said))
        change(changed)
        place.write_text(json.dumps(changed))
        assert prove.check(folder, seed=1, drawn=1).faults


def test_a_case_changed_with_all_hashes_is_caught_if_it_is_drawn(folder: Path) -> None:
    file = sorted((folder / "cases" / "0").iterdir())[1]
    cases, digests = proving.read(file)
    took = np.array(cases["took_ns"])
    took[0] += 1
    proving._write(file.parent, int(file.name), Cases({**cases.columns, "took_ns": took}, cases.cuts), digests)
    said = json.loads((folder / "proof.json").read_text())
    made = [proving.read(one) for one in sorted((folder / "cases" / "0").iterdir())]
    changed = Cases.joined([part for part, _ in made])
    other = Cases.joined([proving.read(one)[0] for one in sorted((folder / "cases" / "1").iterdir())])
    targets = tuple(
        prove.Target(name=entry["name"], scenario=prove.certificate.parsed(entry["scenario"]))
        for entry in said["targets"]
    )
    forged = prove.Proof(
        adversary=prove.Adversary(name="losses", first=6),
        targets=targets,
        seed=1,
        cases=(changed, other),
        digests=(
            tuple(d for _, ds in made for d in ds),
            tuple(d for one in sorted((folder / "cases" / "1").iterdir()) for d in proving.read(one)[1]),
        ),
        unshared=(None, None),
        cpu_s=0.0,
    )
    Certificate(forged, (prove.Bernoulli(0.01),)).write(folder)
    caught = [bool(prove.check(folder, seed=seed, drawn=64).faults) for seed in range(12)]
    assert 1 <= sum(caught) < 12  # half of all cases are drawn
    assert "a new run gives" in prove.check(folder, seed=0, drawn=128).faults[0]
    assert prove.check(folder, every=True).faults


def test_chances_to_escape() -> None:
    assert escapes(1024, 200, 1) == pytest.approx(1 - 200 / 1024)
    assert escapes(100, 100, 1) == 0


@pytest.mark.parametrize("content", ["", "{}", '{"schema": "ackclock.proof/1"}', "[1]"])
def test_what_is_no_certificate_is_refused(folder: Path, content: str) -> None:
    (folder / "proof.json").write_text(content)
    with pytest.raises(InputError, match="allowed"):
        prove.check(folder)


def test_cases_that_are_cut_off_are_refused(folder: Path) -> None:
    file = next((folder / "cases" / "0").iterdir())
    file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(InputError, match="allowed"):
        prove.check(folder)
