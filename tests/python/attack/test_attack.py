"""Tests for the worst-case search: identical results with any number of threads, after a kill, and from a scenario file."""

from __future__ import annotations

import json
import random
import threading
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

import ackclock
from ackclock import attack, controllers
from ackclock.attack import explain, files, shrink, zoo
from ackclock.attack.budget import Candidate, built_in, read
from ackclock.attack.journal import JOURNAL, Journal
from ackclock.attack.objective import OBJECTIVES
from ackclock.attack.runs import Runs
from ackclock.attack.search import POPULATION, SEARCHES
from ackclock.cli import main
from ackclock.errors import InputError, UnavailableError
from ackclock.scenario import Scenario
from ackclock.sweep import Dask, Threads

SMALL = 60


@pytest.fixture(scope="module")
def two() -> Iterator[Threads]:
    executor = Threads(2)
    yield executor
    executor.close()


@pytest.fixture(scope="module")
def whole(two: Threads) -> attack.Found:
    """Return the search that most tests use, run once."""
    return attack.run(bbr(), two)


def bbr(**more: object) -> attack.Attack:
    given = {"target": "bbr", "budget": attack.load("steps"), "evaluations": SMALL, **more}
    return attack.Attack(**given)  # type: ignore[arg-type]


def same(one: attack.Found, other: attack.Found) -> bool:
    return (one.best, one.worst, one.scores, one.history, one.width) == (
        other.best,
        other.worst,
        other.scores,
        other.history,
        other.width,
    )


@pytest.mark.parametrize("search", SEARCHES)
def test_the_number_of_threads_cannot_be_seen(search: str, two: Threads, whole: attack.Found) -> None:
    single = Threads(1)
    try:
        one = attack.run(bbr(search=search), single)
    finally:
        single.close()
    assert same(one, whole if search == whole.attack.search else attack.run(bbr(search=search), two))
    assert one.looked_at == SMALL
    assert one.score > 0.5


def test_an_interrupted_search_ends_as_a_whole_one(tmp_path: Path, two: Threads, whole: attack.Found) -> None:
    (tmp_path / "part").mkdir()
    stop = threading.Event()
    with pytest.raises(KeyboardInterrupt):
        attack.run(bbr(), two, folder=tmp_path / "part", progress=lambda *_: stop.set(), stopped=stop.is_set)
    journal = tmp_path / "part" / JOURNAL
    known = len(journal.read_text().splitlines())
    assert POPULATION < known < SMALL
    with journal.open("a") as file:  # as left by a process that was killed while writing
        file.write("[[1, 2")
    again = attack.run(bbr(), two, folder=tmp_path / "part")
    assert same(whole, again)
    assert again.runs.made == len(whole.runs.known) - (known - 1)
    # every outcome is known now
    assert attack.run(bbr(), two, folder=tmp_path / "part").runs.made == 0
    with pytest.raises(InputError, match="the journal of another search"):
        attack.run(bbr(seed=2), two, folder=tmp_path / "part")


def test_one_search_writes_a_journal_at_a_time(tmp_path: Path) -> None:
    place, who = tmp_path / JOURNAL, {"target": "bbr"}
    first = Journal(place, who)
    first.write([[[1, 2], 0.5]])
    with pytest.raises(UnavailableError, match="another session is writing here"):
        Journal(place, who)
    first.write([[[3, 4], 0.25]])
    first.close()
    second = Journal(place, who)
    assert list(second.lines()) == [[[1, 2], 0.5], [[3, 4], 0.25]]
    second.close()


def test_a_journal_counts_up_to_its_first_damaged_line(tmp_path: Path) -> None:
    """One bit is flipped in each byte in turn: only lines that were written are read back, and the search continues from the intact lines."""
    place, who = tmp_path / JOURNAL, {"target": "bbr"}
    lines = [[[1, 2], 0.5], [[3, 4], 0.25], [[5, 6], 0.75]]
    first = Journal(place, who)
    first.write(lines)
    first.close()
    whole = place.read_bytes()
    head = whole.index(b"\n") + 1
    for at in range(head, len(whole)):
        for bit in (1, 128):
            place.write_bytes(whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :])
            again = Journal(place, who)
            found = list(again.lines())
            assert found == lines[: len(found)]
            assert len(found) == whole[head:at].count(b"\n")
            again.write(lines[len(found) :])
            again.close()
            assert place.read_bytes() == whole


@pytest.mark.parametrize("kept", range(0, 18, 3))
def test_a_journal_whose_first_line_is_cut_is_a_new_one(kept: int, tmp_path: Path) -> None:
    place, who = tmp_path / JOURNAL, {"target": "bbr"}
    Journal(place, who).close()
    whole = place.read_bytes()
    place.write_bytes(whole[:kept])
    Journal(place, who).close()
    assert place.read_bytes() == whole


def test_the_command_leaves_a_scenario_that_runs_to_the_same_digest(
    tmp_path: Path, two: Threads, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "found"
    out.mkdir()
    slow = tmp_path / "slow.toml"  # few packets to simulate
    slow.write_text(built_in()["steps"].replace("10 Mbit/s", "5 Mbit/s"))
    attack.run(
        bbr(budget=attack.load(str(slow)), evaluations=5, seed=3), two, folder=out
    )  # the command resumes from its journal
    asked = [
        "attack",
        "bbr",
        "--budget",
        str(slow),
        "--evaluations",
        "8",
        "--seed",
        "3",
        "--jobs",
        "2",
        "--out",
        str(out),
    ]
    assert main([*asked, "--at-most", "0.1", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said == json.loads((out / "attack.json").read_text())
    assert said["worst"]["score"] >= shrink.KEPT * said["best"]["score"]
    made = ackclock.run(ackclock.load(out / "worst.toml"), seed=3)
    assert made.digest == said["worst"]["digests"]["bbr"]
    failure = ElementTree.fromstring((out / "junit.xml").read_text()).find(".//failure")
    assert failure is not None
    assert "allowed 0.1" in failure.attrib["message"]
    text = (out / "report.html").read_text()
    assert "Where they part" in text


def test_bad_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = built_in()["steps"].replace('["0.5 Mbit/s", "10 Mbit/s"]', '["10 Mbit/s", "1 Mbit/s"]')
    (tmp_path / "wrong.toml").write_text(wrong)
    for options, said in (
        (
            ["--budget", "no_such"],
            "allowed: application, box, chosen, cross, jitter, loss, one-held, receiver, steps, trouble, two-bdp, wide, or FILE.toml",
        ),
        (["--budget", str(tmp_path / "wrong.toml")], "rate: found"),
        (["--objective", "speed"], "allowed: utilisation, delay"),
        (["--search", "luck"], "allowed: genetic, random, evolution"),
        (["--at-most", "2"], "allowed: a score, 0 to 1"),
        (["--reference", "bbr"], "allowed: another controller"),
    ):
        assert main(["attack", "bbr", *options, "--out", str(tmp_path / "out")]) == 2
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1
    for command in ("attack", "conform", "evaluate"):
        assert main([command, "zoo:lion"]) == 2
        assert "zoo:quiche-2370" in capsys.readouterr().err


def test_a_bug_of_the_zoo_is_a_target_of_every_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["conform", "zoo:quiche-2370"]) == 2
    assert "breaks the rule growth" in capsys.readouterr().err
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", "zoo:quiche-2370", "--quick", "--rows", "x4"]) == 2
    assert "breaks the rule growth" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_where_nobody_has_anything_the_score_is_zero(two: Threads) -> None:
    table = {
        "kind": "loss",
        "count": 1,
        "rate": "0.01 Mbit/s",
        "delay": "5 ms",
        "queue": "10 packets",
        "position": [1, 40],
    }
    starving = read({**table, "duration": "2 s"})
    for objective in OBJECTIVES:
        found = attack.run(bbr(budget=starving, objective=objective, evaluations=5), two)
        assert found.score == 0, objective


def test_every_budget_makes_scenarios_and_written_is_what_ran(two: Threads) -> None:
    for name in built_in():
        for objective in ("utilisation", "starvation"):
            wanted = bbr(budget=attack.load(name), objective=objective)
            runs = Runs(objective=wanted.wanted, budget=wanted.budget, arms=wanted.arms, seed=1, executor=two)
            candidate = wanted.budget.drawn(random.Random(name))
            made = ackclock.run(runs.scenario(candidate, 1), seed=1)
            assert made.digest == runs.score([candidate])[0].digests[1]


def test_a_simpler_case_is_nearly_as_bad(whole: attack.Found) -> None:
    found = whole
    assert found.scores[1].score >= shrink.KEPT * found.score
    digits = [found.attack.budget.genes[i].amount(v) for i, v in enumerate(found.worst)]
    assert sum(len(d.strip("0.")) <= 2 for d in digits) >= len(digits) - 1

    def different(candidate: Candidate) -> int:
        groups = found.attack.budget.groups(candidate)
        return sum(a != b for one, other in pairwise(groups) for a, b in zip(one, other, strict=True))

    assert different(found.worst) <= different(found.best)
    parted = explain.parting(found)
    assert parted.at_s is not None
    assert parted.at_s > 0.1
    assert parted.ahead[1] > parted.ahead[0]
    assert "pacing_gain" in parted.target
    assert ElementTree.fromstring(files.to_junit(found, 1.0)).find(".//failure") is None
    page = files.page(found, parted, None)
    assert page.scenarios["worst.toml"] == found.runs.scenario(found.worst).to_toml()


SEARCHED = {
    "quiche-2370": 13,
    "xquic-740": 4,
    "rfc8312bis-14": 15,
    "ackclock-bbr3": 1,
    "bbr-app-limited": 2,
    "rate-of-the-idle": 5,
    "counts-acks": 1,
}
"""Bug that a search finds -> number of environments needed to find it."""


@pytest.mark.parametrize("name", SEARCHED)
def test_a_bug_of_the_zoo_is_caught_and_its_cure_is_not(name: str) -> None:
    _caught_and_cured(name, SEARCHED[name])


@pytest.mark.deep
@pytest.mark.parametrize("name", SEARCHED)
def test_no_other_environment_tells_a_cure_from_none(name: str) -> None:
    _caught_and_cured(name, zoo.ENOUGH)


def _caught_and_cured(name: str, environments: int) -> None:
    """One thread, because Python controllers would wait for one another."""
    bug = zoo.ZOO[name]
    single = Threads(1)
    try:
        caught, cured = (
            attack.run(
                bbr(
                    target=f"{zoo.__file__}:{cls.__name__}", budget=attack.load(bug.budget), objective=bug.objective,
                    evaluations=environments, search="random",
                ),
                single,
                simplify=False,
            ).score
            for cls in (bug.made, bug.cured)
        )  # fmt: skip
    finally:
        single.close()
    assert caught > zoo.CAUGHT
    assert cured < caught / 2


@pytest.mark.parametrize("name", zoo.ZOO)
def test_a_bug_of_the_zoo_breaks_the_rule_that_it_says(name: str) -> None:
    bug = zoo.ZOO[name]
    _check_cured(bug.cured)
    if not bug.rule:
        controllers.check(bug.made, closed_loop=False)
        return
    with pytest.raises(Exception, match=f"breaks the rule {bug.rule}"):
        controllers.check(bug.made, closed_loop=False)


@cache
def _check_cured(made: type) -> None:
    """Check that the cure removes the effect. Some bugs share a cure."""
    controllers.check(made, closed_loop=False)


def test_every_bug_is_caught_by_something() -> None:
    assert {name for name, bug in zoo.ZOO.items() if bug.budget} == set(SEARCHED)
    assert all(bug.budget or bug.rule or name == "deaf" for name, bug in zoo.ZOO.items())  # deaf: see test_evaluate.py


@pytest.mark.deep
def test_no_controller_of_ours_is_stuck(two: Threads) -> None:
    """The search that catches four of the bugs finds nothing in a correct controller."""
    for name in ackclock_controllers():
        wanted = bbr(
            target=name, budget=attack.load("trouble"), objective="stuck", evaluations=4 * zoo.ENOUGH, search="random"
        )
        assert attack.run(wanted, two, simplify=False).score == 0, name


@pytest.mark.parametrize("name", ["reno", "cubic-rfc9438"])
def test_no_receiver_makes_a_controller_of_ours_more_harmful(name: str, two: Threads) -> None:
    """In the same environments with an honest receiver the score hardly differs, because split ACKs change little."""
    cheating = attack.load("receiver")
    honest = read({**cheating.table, "splits": 1})
    divided, whole = (
        attack.run(
            bbr(target=name, budget=b, objective="harm", evaluations=zoo.ENOUGH, search="random"), two, simplify=False
        ).score
        for b in (cheating, honest)
    )
    assert divided < whole + 0.1


def ackclock_controllers() -> list[str]:
    from ackclock import _engine

    return [name for name in _engine.controller_options() if not name.startswith("pcc")]


@pytest.mark.parametrize("target", ["vegas", "bbr"])
def test_a_slow_start_of_the_path_is_the_worst_case(target: str, two: Threads, whole: attack.Found) -> None:
    """A1, A2: the base RTT, or the rate, estimated in a slow first second persists (AdvNet, PACMNET 2026: 0.88 and
    0.81 of the capacity lost).
    """
    found = whole if target == whole.attack.target else attack.run(bbr(target=target), two)
    assert found.score > 0.6
    (slow, near, _), (fast, far, _) = found.attack.budget.groups(found.worst)
    assert fast > 4 * slow
    assert far >= near


KNOWN: dict[str, tuple[str, str, str, tuple[str, ...], int, float]] = {
    "A3: HyStart leaves on a step of the delay": ("cubic", "wide", "utilisation", ("reno",), 75, 0.7),
    "A4: BBR under CCAC's box": ("bbr", "box", "utilisation", ("reno",), 250, 0.7),
    "A5: Copa under CCAC's box": ("copa", "box", "utilisation", ("reno",), 100, 0.5),
    "A6: Reno loses below what path and queue hold": ("reno", "two-bdp", "early", ("vegas",), 150, 1 / 3),
    "A7: one of two equal flows starves under jitter": ("bbr", "one-held", "starvation", ("reno",), 40, 0.5),
    "A8: the low-rate attack": ("cubic", "cross", "utilisation", ("bbr3",), 150, 0.7),
    "A14: PCC under chosen loss": ("pcc-allegro", "chosen", "utilisation", ("cubic",), 40, 0.5),
}
"""Target, budget, objective, references, environments and minimum score of known worst cases."""


@pytest.mark.deep
@pytest.mark.parametrize("case", KNOWN)
def test_a_known_worst_case_is_found_again(case: str, two: Threads) -> None:
    target, budget, objective, references, evaluations, least = KNOWN[case]
    wanted = bbr(
        target=target, budget=attack.load(budget), objective=objective, references=references, evaluations=evaluations
    )
    assert attack.run(wanted, two, simplify=False).score > least


@pytest.mark.deep
def test_the_box_is_what_holds_bbr_back(two: Threads) -> None:
    """A4: BBR loses little on the same paths when their middlebox adds almost no delay."""
    free = read({**attack.load("box").table, "hold": "0.1 ms"})
    assert attack.run(bbr(budget=free, references=("reno",), evaluations=100), two, simplify=False).score < 0.3


def test_two_that_are_one_do_not_diverge_and_two_forms_of_one_do(two: Threads) -> None:
    budget = attack.load("steps")
    same_one = bbr(
        target="cubic",
        options={"tcp_friendliness": True},
        objective="divergence",
        references=("cubic",),
        budget=budget,
        evaluations=25,
    )
    assert attack.run(same_one, two, simplify=False).score == 0
    forms = bbr(target="cubic", objective="divergence", references=("cubic-rfc9438",), budget=budget, evaluations=25)
    assert attack.run(forms, two, simplify=False).score > 0.3


def test_who_stands_beside_it_may_be_another(two: Threads) -> None:
    wanted = bbr(objective="harm", victim="vegas", evaluations=5)
    assert [arm.name for arm in wanted.arms] == ["bbr", "vegas"]
    found = attack.run(wanted, two, simplify=False)
    assert found.runs.scenario(found.best).flows[1].congestion_control == "vegas"


def test_a_box_holds_for_as_long_as_it_may_keeps_the_order_and_drops_nothing(two: Threads) -> None:
    """CCAC's box delays each packet by at most D, drops none and preserves their order."""
    wanted = bbr(budget=attack.load("box"), references=("reno",))
    runs = Runs(objective=wanted.wanted, budget=wanted.budget, arms=wanted.arms, seed=1, executor=two)
    genes = wanted.budget.genes
    head = {"slow": 2000, "rate": 2000, "delay": 200, "queue": 1000, "hold": 400, "lasts": 300}
    full = tuple(head[g.name] for g in genes)
    cycle = tuple(v if g.name != "hold" or i % 4 == 0 else 0 for i, (g, v) in enumerate(zip(genes, full, strict=True)))
    keys = {**runs.scenario(cycle).to_dict(), "flows": [{"workload": {"kind": "constant-rate", "rate": "4 Mbit/s"}}]}
    row = ackclock.run(Scenario.from_dict(keys), seed=1).datagrams.row(0, named=True)
    sent_s = 0.02 + 1500 * 8 / 20e6  # propagation and one serialisation time
    assert row["min_delay_s"] == pytest.approx(sent_s)
    assert row["max_delay_s"] == pytest.approx(sent_s + 0.04)
    assert (row["lost"], row["reordered"]) == (0, 0)


@pytest.mark.deep
def test_workers_of_dask_make_the_same_search(two: Threads) -> None:
    distributed = pytest.importorskip("distributed")
    here = attack.run(bbr(), two)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        executor = Dask(cluster)
        there = attack.run(bbr(), executor)
        executor.close()
    assert same(here, there)
