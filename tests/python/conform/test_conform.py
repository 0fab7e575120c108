"""Tests for packs of published test cases: every case runs or states why it cannot, and cases that must fail do."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from ackclock.cli import main
from ackclock.conform import Case, conform, names, pack
from ackclock.conform.harness import scenario
from ackclock.conform.predicates import PREDICATES


def outcome(controller: str, of: str, case: str, **options: Any) -> tuple[str, str]:
    (found,) = conform(controller, pack(of), only=[case], options=options)
    return found.outcome, found.said


def test_the_packs_have_the_cases_of_their_sources() -> None:
    assert names() == ["c4", "ccwg-bbr-06", "quiche-bbr2"]
    assert [c.id for c in pack("ccwg-bbr-06").cases] == [str(i) for i in range(1, 23)]
    assert len(pack("c4").cases) == 31
    assert len(pack("quiche-bbr2").cases) == 28


@pytest.mark.parametrize("case", [c for p in names() for c in pack(p).cases], ids=lambda c: c.id)
def test_every_case_is_a_scenario_with_predicates_or_says_what_it_needs(case: Case) -> None:
    assert bool(case.missing) != bool(case.expects)
    if not case.missing:
        scenario(case, "cubic", {}).to_engine_json()
        assert all(e["is"] in PREDICATES for e in case.expects)


def test_a_bbr_meets_what_it_should_and_fails_what_it_lacks() -> None:
    assert outcome("bbr3", "ccwg-bbr-06", "1")[0] == "holds"
    assert outcome("bbr3", "ccwg-bbr-06", "15")[0] == "holds"
    assert outcome("bbr3", "ccwg-bbr-06", "4")[0] == "holds"
    verdict, said = outcome("bbr3", "ccwg-bbr-06", "3", flavour="linux-v3")  # the kernel's gain is not the draft's 0.5
    assert verdict == "fails"
    assert said.startswith("pacing_gain from 0.3438")


def test_what_a_case_cannot_look_at_is_no_success() -> None:
    assert outcome("cubic", "ccwg-bbr-06", "1") == ("not applicable", "for bbr3")
    assert outcome("bbr3", "ccwg-bbr-06", "2")[0] == "not expressible"
    never: dict[str, Any] = {"state": "up", "from": "15 s", "step": {"rate": "5 Mbit/s"}}
    case = next(c for c in pack("ccwg-bbr-06").cases if c.id == "4")
    short = Case(id="x", title="", scenario={**case.scenario, "duration": "2 s"}, trigger=never, expects=case.expects)
    asked = pack("ccwg-bbr-06")
    (found,) = conform("bbr3", type(asked)(name="x", title="", source="", cases=(short,)))
    assert (found.outcome, found.said) == ("void", "up is never entered")


def test_reno_is_within_c4s_limit_alone_and_vegas_starves_beside_cubic() -> None:
    assert outcome("reno", "c4", "alone")[0] == "holds"
    assert outcome("vegas", "c4", "cubic-long")[0] == "fails"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    junit = tmp_path / "c.xml"
    argv = [
        "conform",
        "bbr3",
        "--pack",
        "ccwg-bbr-06",
        "--case",
        "1",
        "--case",
        "2",
        "--case",
        "3",
        "--option",
        "flavour=linux-v3",
    ]
    assert main([*argv, "--junit", str(junit), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [c["outcome"] for c in found["packs"][0]["cases"]] == ["holds", "not expressible", "fails"]
    suite = ElementTree.parse(junit).getroot()[0]
    assert (suite.get("failures"), suite.get("skipped")) == ("1", "1")
    assert main([*argv[:4], "--case", "1"]) == 0
    capsys.readouterr()
    for bad, said in (
        (["bbr9"], "CONTROLLER"),
        (["bbr3", "--pack", "x"], "--pack"),
        (["bbr3", "--case", "99"], "--case"),
        (["bbr3", "--trouble", "2", "--case", "1"], "--trouble"),
        (["bbr3", "--trouble", "-1"], "--trouble"),
    ):
        assert main(["conform", *bad]) == 2
        assert capsys.readouterr().err.startswith(f"ackclock: {said}: found")


def test_the_command_looks_for_trouble(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conform", "bbr3", "--trouble", "2"]) == 0
    assert capsys.readouterr().out == "bbr3: comes back in 2 of 2 runs\n"
    assert main(["conform", "bbr3", "--trouble", "1", "--seed", "7", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["runs"], found["seed"], found["misses"]) == ("ackclock.trouble/1", 1, 7, [])
