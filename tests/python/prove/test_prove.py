"""Tests for proofs: every enumerated case against a run with the same losses, and the sentences about all cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from short_response import path

from ackclock import Scenario, prove, run, run_many
from ackclock.errors import InputError
from ackclock.prove.cases import Cases, pattern
from ackclock.prove.replay import scripted

RULES = ("prr-rfc9937", "rfc6675", "rate-halving")


def proof(segments: int, *, rules: tuple[str, ...] = RULES, **flow: Any) -> prove.Proof:
    """Enumerate all losses of first transmissions, under each rule."""
    targets = [prove.Target(name=rule, scenario=path(segments, recovery=rule, **flow)) for rule in rules]
    return prove.prove(targets, prove.Adversary(name="losses", first=segments))


def run_alone(segments: int, rule: str) -> None:
    """Compare every case with the run that has the same loss pattern."""
    made = proof(segments, rules=(rule,))
    (cases,) = made.cases
    assert len(cases) == 2**segments
    assert prove.cases.whole(cases, segments, burst=None)
    patterns = range(len(cases))
    runs = run_many([scripted(made.targets[0].scenario, made.adversary, cases.answers(at)) for at in patterns])
    for at, one in enumerate(runs):
        flow = next(one.flows.iter_rows(named=True))
        assert cases["took_ns"][at] == round(flow["completion_s"] * 1e9), pattern(cases.answers(at), segments)
        assert (cases["timeouts"][at], cases["retransmissions"][at]) == (flow["rtos"], flow["retransmissions"])


def test_every_case_takes_as_long_as_the_run_with_the_listed_losses() -> None:
    run_alone(7, "prr-rfc9937")


@pytest.mark.long
@pytest.mark.parametrize("rule", RULES)
def test_every_case_of_up_to_twelve_segments_is_the_run_with_the_listed_losses(rule: str) -> None:
    for segments in range(1, 13):
        run_alone(segments, rule)


def test_the_three_sentences_about_ten_segments() -> None:
    made = proof(10)
    first, second = (prove.compare((RULES[0], RULES[at]), made.cases[0], made.cases[at]) for at in (1, 2))
    assert first is not None
    assert second is not None
    assert (first.faster, first.equal, first.slower) == (0, 227, 797)
    assert round(first.most_slower_s * 1e3) == 145
    assert (second.faster, second.equal, second.slower) == (536, 488, 0)
    assert round(second.most_faster_s * 1e3) == 305
    told = prove.sentences(made)
    assert told[3].startswith("Proven: prr-rfc9937 is never faster than rfc6675 in all 1,024 cases (slower in 797")
    assert told[6].startswith("Proven: prr-rfc9937 is never slower than rate-halving in all 1,024 cases (faster in 536")
    reno = proof(10, rules=("prr-rfc9937", "rate-halving"), congestion_control="reno")
    found = prove.compare(("prr", "rate-halving"), *reno.cases)
    assert found is not None
    assert found.slower == 14
    assert found.most_slower_s < 0.0013


def test_what_is_proven_is_an_expectation_without_a_seed() -> None:
    """The proven value equals the sum over all patterns, computed naively with fractions."""
    from fractions import Fraction

    made = proof(6, rules=("rfc6675",))
    (cases,) = made.cases
    p, total = Fraction(3, 100), Fraction(0)
    for at in range(64):
        yes = cases.answers(at).bit_count()
        total += p**yes * (1 - p) ** (6 - yes) * int(cases["took_ns"][at])
    found = prove.expectation(cases, prove.Bernoulli(0.03), made.adversary, 60.0)
    assert found.low_s == found.high_s == pytest.approx(float(total) / 1e9, rel=1e-12)
    bursts = prove.expectation(cases, prove.GilbertElliott(0.02, 0.4), made.adversary, 60.0)
    chain = _chain(cases, Fraction(2, 100), Fraction(4, 10))
    assert bursts.low_s == pytest.approx(float(chain) / 1e9, rel=1e-12)


def _chain(cases: Cases, p: Any, r: Any) -> Any:
    total = 0
    for at in range(len(cases)):
        states = [r / (p + r), p / (p + r)]
        for k in range(6):
            lost = cases.answers(at) >> k & 1
            states = [0 if lost else states[0], states[1] if lost else 0]
            states = [states[0] * (1 - p) + states[1] * r, states[0] * p + states[1] * (1 - r)]
        total += sum(states) * int(cases["took_ns"][at])
    return total


@pytest.mark.parametrize(
    "adversary",
    [
        prove.Adversary(name="data", first=12, most=2),
        prove.Adversary(name="packets", first=30, most=1),
        prove.Adversary(name="burst", first=8, length=3),
        prove.Adversary(name="late", first=8, late="7 ms"),
        prove.Adversary(name="marks", first=6),
    ],
    ids=lambda adversary: adversary.name,
)
def test_other_adversaries_know_all_their_cases(adversary: prove.Adversary) -> None:
    # a mark costs time if more than the initial window has to be sent
    segments, stack = (
        (20, {"ecn": "ask"}) if adversary.name == "marks" else (12 if adversary.name == "burst" else 8, {})
    )
    scenario = path(segments, stack=stack)
    made = prove.prove([prove.Target(name="x", scenario=scenario)], adversary)
    (cases,) = made.cases
    limited = adversary.is_limited or adversary.name == "late"
    if adversary.name == "late":
        assert len(cases) == 9
    elif adversary.name == "burst":
        assert len(cases) == 9
        assert {pattern(cases.answers(i), 10) for i in range(9)} >= {"0000000000", "1110000000", "0000000111"}
    else:
        assert prove.cases.whole(cases, adversary.first, burst=None)
    assert len(set(cases["took_ns"].tolist())) > 2
    if limited and adversary.name != "late":
        found = prove.expectation(cases, prove.Bernoulli(0.01), adversary, 60.0)
        assert 0 < found.probability_left_out < 0.05
        assert found.low_s < found.high_s


def test_the_second_flow_starts_at_every_tick() -> None:
    values = path(20).to_dict()
    scenario = Scenario.from_dict({**values, "flows": [values["flows"][0], {"congestion_control": "reno"}]})
    adversary = prove.Adversary(name="start", first=12, late="4 ms")
    (cases,) = prove.prove([prove.Target(name="x", scenario=scenario)], adversary).cases
    assert len(cases) == 12
    alone = run(scenario.set("flows.1.start", "20 ms")).flows["completion_s"][0]
    assert cases["took_ns"][5] == round(alone * 1e9)


def test_what_cannot_be_copied_is_run_from_the_beginning_and_says_so() -> None:
    adversary = prove.Adversary(name="losses", first=4)
    values = path(5).to_dict()
    flow = {**values["flows"][0], "congestion_control": "quinn:cubic"}
    flow.pop("profile")
    scenario = Scenario.from_dict({**values, "flows": [flow]})
    made = prove.prove([prove.Target(name="x", scenario=scenario)], adversary)
    assert made.unshared == ("found a stack that others have written",)
    (cases,) = made.cases
    assert len(cases) == 16
    assert prove.cases.whole(cases, 4, burst=None)


def test_threads_and_interruptions_cannot_be_seen(tmp_path: Path) -> None:
    targets = [prove.Target(name="x", scenario=path(11))]
    adversary = prove.Adversary(name="losses", first=11)
    asked = iter([False, False, True])
    with pytest.raises(KeyboardInterrupt):
        prove.prove(targets, adversary, folder=tmp_path, jobs=2, stopped=lambda: next(asked))
    kept = sorted((tmp_path / "cases" / "0").iterdir())
    assert len(kept) == 3
    before = [file.stat().st_mtime_ns for file in kept]
    resumed = prove.prove(targets, adversary, folder=tmp_path, jobs=1)
    whole = prove.prove(targets, adversary, jobs=2)
    assert resumed.cases[0].root == whole.cases[0].root
    assert resumed.digests == whole.digests
    assert [file.stat().st_mtime_ns for file in kept] == before
    with pytest.raises(InputError, match="another plan"):
        prove.prove(targets, prove.Adversary(name="losses", first=10), folder=tmp_path)


def test_a_tree_that_lacks_a_case_or_has_one_twice_is_not_whole() -> None:
    (cases,) = proof(5, rules=("rfc6675",)).cases
    keep = np.arange(32) != 7
    assert not prove.cases.whole(Cases({name: cases[name][keep] for name in cases.columns}), 5, burst=None)
    twice = np.where(np.arange(32) == 7, 6, np.arange(32))
    assert not prove.cases.whole(Cases({name: cases[name][twice] for name in cases.columns}), 5, burst=None)
