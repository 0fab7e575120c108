"""Tests for `ackclock evaluate`: requirements on every sender, additions from a search, and the information to be provided by the author."""

from __future__ import annotations

from pathlib import Path

import pytest

import ackclock
from ackclock.evaluate import Arm, Evaluation, Plan, evaluate
from ackclock.evaluate.files import to_json
from ackclock.evaluate.rows import collapse
from ackclock.sweep import Threads


def run(folder: Path, controller: str, *only: str) -> Evaluation:
    plan = Plan(candidate=Arm(role="candidate", name=controller, controller=controller), scale="quick", only=only)
    executor = Threads(2)
    try:
        return evaluate(plan, folder, executor)
    finally:
        executor.close()


def test_the_bound_of_who_must_back_off_is_that_of_the_texts() -> None:
    """RFC 5348 section 3.1, computed by hand: at 10 % loss 1/(0.2582 + 12 0.19365 0.1 1.32) packets per round trip; RFC 8083: ten times that."""
    assert collapse.equation(0.1) == pytest.approx(1 / (0.2582 + 0.30674), rel=1e-4)
    assert collapse.most(0.1) == pytest.approx(17.7, rel=1e-3)
    assert collapse.most(0.5) == 1.0


def test_the_worst_case_of_a_search_is_a_row(tmp_path: Path) -> None:
    evaluation = run(tmp_path, "vegas", "x5")
    row = evaluation.rows[0]
    assert row.verdict == "reported"
    assert not evaluation.digests
    said = to_json(evaluation)["search"]
    assert said["score"] > said["reference_score"] > 0
    (tmp_path / "worst.toml").write_text(said["scenario"])
    assert ackclock.run(ackclock.load(tmp_path / "worst.toml"), seed=said["seed"]).digest == said["digest"]
    assert to_json(run(tmp_path, "vegas", "x5"))["search"] == said


def test_what_the_author_has_answered_is_said() -> None:
    mine = Arm(role="candidate", name="reno", controller="reno")
    some, whole = (
        Plan(candidate=mine, only=("11",), stated=stated).rows[0] for stated in (("8",), ("5.3.1", "5.3.2", "8"))
    )
    assert "missing: §5.3.1, §5.3.2" in some.applies
    assert "the author has answered" in whole.applies
