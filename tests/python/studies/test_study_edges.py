"""Tests for varying a study's constants: the values set, the verdicts that change, and the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import tool

from ackclock import Scenario, studies
from ackclock.cli import main
from ackclock.errors import InputError
from ackclock.report import render
from ackclock.study import Plan, held_out
from ackclock.study.edge import Edge
from ackclock.study.edges import FILE, read, vary, words
from ackclock.study.reach import reads
from ackclock.study.reading import Read
from ackclock.study.record import Record

LINK = {
    "name": "x",
    "duration": "2 s",
    "network": {
        "topology": "chain",
        "bottleneck": {
            "rate": "10 Mbit/s",
            "delay": "7.5 ms",
            "queue": {"kind": "drop-tail", "limit": "25 packets"},
        },
        "reverse": {"bottleneck": {"delay": "7.5 ms"}},
    },
    "flows": [
        {"stack": {"initial_window": 2}, "workload": {"kind": "bulk"}},
        {"workload": {"kind": "on-off", "rate": "1 Mbit/s", "on": "100 ms", "off": "300 ms"}},
    ],
}

TABLE = """
title = "Made up"
summary = "One number."
[[publications]]
authors = "A. Author"
title = "A title"
where = "here"
[[edges]]
name = "queue"
key = "network.bottleneck.queue.limit"
neighbours = ["2 packets", "40 packets"]
readings = true
experiments = ["one"]
[[edges]]
name = "round trips"
key = "network.**.delay"
times = [0.9, 1.1]
experiments = ["one"]
[[edges]]
name = "nothing that it has"
key = "network.elsewhere.delay"
neighbours = ["1 ms", "2 ms"]
experiments = ["one"]
[[claims]]
id = "X1"
statement = "The link is full."
place = "p. 1"
direction = { measure = "sent", more_than = 8.5 }
"""

PROGRAM = f"""
from ackclock import Scenario
from ackclock.judge.intervals import mean_interval
from ackclock.study import Experiment, Quantity
from ackclock.study.cells import Cell, collect

SCENARIO = {LINK!r}

def run(plan):
    made = Scenario.from_dict(SCENARIO)
    cell = Cell(scenario=made, keys={{"n": 1}}, stream="s", seeds=6, needs={{"flows": ("flow", "goodput_bps")}})
    return collect("one", [cell], plan)

EXPERIMENTS = (Experiment(name="one", title="one", run=run),)

def sent(tables):
    rows = tables["one.flows"]
    values = rows.filter(rows["flow"] == 0)["goodput_bps"].to_numpy() / 1e6
    return Quantity(label="sent", estimate=mean_interval(values), key="sent")

MEASURES = {{"sent": sent}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "made-up"
    place.mkdir()
    (place / "study.toml").write_text(TABLE)
    (place / "study.py").write_text(PROGRAM)
    return place


def edge(**keys: object) -> Edge:
    return Edge(**{"name": "e", "experiments": ("one",), "neighbours": (1, 2), **keys})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("key", "times", "value", "place", "becomes"),
    [
        ("network.bottleneck.queue.limit", True, 1.1, ("network", "bottleneck", "queue", "limit"), "28 packets"),
        ("network.**.delay", True, 0.9, ("network", "reverse", "bottleneck", "delay"), "6.75 ms"),
        ("network.**.delay", True, 0.9, ("network", "bottleneck", "delay"), "6.75 ms"),
        ("flows.*.stack.initial_window", False, 10, ("flows", 0, "stack", "initial_window"), 10),
        ("flows.0.start", False, "30 ms", ("flows", 0, "start"), "30 ms"),
        ("flows.*.workload.o[nf]*", True, 2.0, ("flows", 1, "workload", "off"), "600 ms"),
    ],
)
def test_a_key_is_set_where_the_scenario_has_it(key, times, value, place, becomes):
    made = edge(key=key, times=times).scenario(Scenario.from_dict(LINK), value).to_dict()
    for step in place:
        made = made[step]
    assert made == becomes


def test_a_key_leaves_alone_what_it_does_not_name():
    made = edge(key="flows.*.stack.initial_window").scenario(Scenario.from_dict(LINK), 10).to_dict()
    assert "stack" not in made["flows"][1]
    same = Scenario.from_dict(LINK)
    assert edge(key="network.elsewhere.rate").scenario(same, "1 Mbit/s") is same
    with pytest.raises(InputError, match=r'found "chain" at network\.topology; allowed: a number'):
        edge(key="network.topology", times=True).scenario(same, 2.0)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('key = "network.**.delay"', "", "found neither; allowed: constant or key"),
        ("times = [0.9, 1.1]", "times = [0.9]", "allowed: a list of two or more"),
        ("times = [0.9, 1.1]", "times = [0.9, -1]", "allowed: numbers above 0"),
        ("times = [0.9, 1.1]", "times = [0.9, 1.1]\nneighbours = [1, 2]", "found neighbours and times"),
        ('key = "network.**.delay"', 'constant = "study.X"', "times: found it beside constant"),
    ],
)
def test_an_edge_that_cannot_be_varied_is_refused(folder, before, after, said):
    (folder / "study.toml").write_text(TABLE.replace(before, after))
    with pytest.raises(InputError, match=said):
        studies.get(str(folder))


def test_a_referee_sees_on_the_page_which_word_turns(folder, capsys):
    """Behind a queue of 2 packets the link is not full. A key that no scenario has moves no number, and the command and the page say so."""
    assert main(["study", "run", str(folder), "--record"]) == 0
    assert main(["study", "edges", str(folder), "--record"]) == 0
    said = capsys.readouterr()
    assert "queue 2 packets: X1, direction: holds to fails" in said.out
    assert "3 constants varied, 1 verdicts turn" in said.out
    assert "nothing that it has 1 ms: no number moves" in said.err
    study = studies.get(str(folder))
    kept = {one.name: one for one in read(study)}
    assert kept["queue"].moved[0] > 0
    assert kept["nothing that it has"].moved == (0, 0)
    told = "hangs on the queue (2 packets: fails)"
    assert words(study) == {("X1", "direction"): told}
    html = render(study.run().page())
    assert html.count(told) == 2  # beside the word in the table of claims, and in the evidence
    assert "Turned by a neighbour of a constant that we adopted: X1." in html
    assert "1 ms, 2 ms: no number moves" in html
    assert "0.9 times, 1.1 times" in html


def test_one_constant_is_recorded_and_the_others_stay(folder):
    key = "network.bottleneck.queue.limit"
    assert main(["study", "run", str(folder), "--record"]) == 0
    assert main(["study", "edges", str(folder), "--record", "--only", "network.**.delay"]) == 0
    assert "not varied" in render(studies.get(str(folder)).run().page())
    assert main(["study", "edges", str(folder), "--record", "--only", key]) == 0
    names = [one["name"] for one in json.loads((folder / FILE).read_text())["varied"]]
    assert names == ["queue", "round trips"]
    gone = TABLE.replace('name = "round trips"', 'name = "renamed"')
    (folder / "study.toml").write_text(gone)
    assert main(["study", "edges", str(folder), "--record", "--only", key]) == 0
    assert [one["name"] for one in json.loads((folder / FILE).read_text())["varied"]] == ["queue"]


def test_a_word_hangs_only_if_less_than_three_of_four_agree(folder):
    (folder / "study.toml").write_text(
        TABLE.replace('["2 packets", "40 packets"]', '["2 packets", "40 packets", "50 packets"]')
    )
    assert main(["study", "run", str(folder), "--record"]) == 0
    assert main(["study", "edges", str(folder), "--record", "--only", "network.bottleneck.queue.limit"]) == 0
    assert words(studies.get(str(folder))) == {("X1", "direction"): "turns with the queue (2 packets: fails)"}


def test_a_file_of_edges_that_is_none_is_refused_with_a_line(folder):
    (folder / "recorded.json").write_text("{}")
    (folder / FILE).write_text('{"varied": [{"name": "queue"}]}')
    with pytest.raises(InputError, match="found no record"):
        read(studies.get(str(folder)))


OURS = ("prr", "iw10", "slow-start", "large-pipes", "pcc")


@pytest.mark.parametrize("name", OURS)
def test_every_recorded_neighbour_moves_a_number(name):
    """If a module kept a copy of the constant, varying it would have no effect, and no number would move."""
    study = studies.get(name)
    for kept in read(study):
        assert all(n > 0 for n in kept.moved), kept.name


@pytest.mark.parametrize("name", OURS)
def test_constants_are_at_most_twelve_and_of_experiments_that_exist(name):
    study = studies.get(name)
    assert 0 < len(study.edges) <= 12
    assert {e for one in study.edges for e in one.experiments} <= {e.name for e in study.experiments}
    assert {one.name for one in read(study)} <= {one.name for one in study.edges}


def test_held_out_words_stand_beside_the_recorded_one(folder):
    assert main(["study", "run", str(folder), "--record"]) == 0
    assert main(["study", "run", str(folder), "--held-out", "1925e1b1", "--record"]) == 0
    study = studies.get(str(folder))
    assert {salt: isinstance(one, Record) for salt, one in held_out.kept(study, "quick").items()} == {"1925e1b1": True}
    html = render(study.run().page())
    assert "Other seeds" in html
    assert "1 of 1 halves keep their recorded word" in html


@pytest.mark.deep
def test_a_half_reads_no_table_that_its_program_does_not_name():
    """Halves that `reads` excludes are skipped when a constant is varied."""
    study = studies.get("slow-start")
    tables = study.run(seeds=12).tables
    for claim in study.claims:
        for half, criterion in claim.halves:
            looked_at = Read(tables)
            if not claim.not_comparable:
                criterion.judge(looked_at)
            missed = {name for name in looked_at.seen if not reads(criterion.measure, {name})}
            assert not missed, (claim.id, half)


def test_one_claim_is_judged_and_recorded_alone(folder, capsys):
    """Experiments not read by the claim are not run, and the record keeps the other claims."""
    twice = PROGRAM.replace(
        'EXPERIMENTS = (Experiment(name="one", title="one", run=run),)',
        'def other(plan):\n    raise RuntimeError("run")\n\nEXPERIMENTS = (Experiment(name="two", title="two", run=other), Experiment(name="one", title="one", run=run))',
    )
    second = (
        '[[claims]]\nid = "X2"\nstatement = "Too."\nplace = "p. 2"\ndirection = { measure = "sent", less_than = 8.5 }\n'
    )
    (folder / "study.toml").write_text(TABLE + second)
    assert main(["study", "run", str(folder), "--record"]) == 0
    (folder / "study.py").write_text(twice)
    (folder / "study.toml").write_text((TABLE + second).replace("more_than = 8.5", "more_than = 9.5"))
    capsys.readouterr()
    assert main(["study", "run", str(folder), "--claim", "X1"]) == 1
    assert "not as recorded: X1: fails, recorded holds" in capsys.readouterr().err
    assert main(["study", "run", str(folder), "--claim", "X1", "--record"]) == 0
    record = studies.get(str(folder)).recorded("quick")
    assert {name: str(record.verdict(name)) for name in ("X1", "X2")} == {"X1": "fails", "X2": "fails"}
    assert record.taken["X1"].startswith("version ")
    assert "X2" not in record.taken
    assert main(["study", "run", str(folder), "--claim", "X9"]) == 2
    assert main(["study", "run", str(folder), "--claim", "X1", "--held-out", "a"]) == 2


def test_only_experiments_that_a_claim_reads_are_run(folder):
    twice = PROGRAM.replace(
        'EXPERIMENTS = (Experiment(name="one", title="one", run=run),)',
        'def never(plan):\n    raise RuntimeError("run")\n\nEXPERIMENTS = (Experiment(name="one", title="one", run=run), Experiment(name="two", title="two", run=never))',
    )
    (folder / "study.py").write_text(twice)
    study = studies.get(str(folder))
    turned = vary(study, Plan(), study.edges[:1])
    assert [(one.claim, one.before, one.after) for one in turned] == [("X1", "holds", "fails")]


def test_the_same_text_draws_the_same_constant_and_others_draw_others():
    """Each draw is affordable, and its claims include those that turn."""
    drawn_edge = tool("drawn_edge")
    assert drawn_edge.tree() == drawn_edge.tree()
    made = [drawn_edge.draw(str(i)) for i in range(24)]
    assert drawn_edge.draw("0") == made[0]
    assert len({(one.study.name, one.edge.name) for one in made}) >= 5
    assert all(drawn_edge.cost_s(one.study, one.edge, one.claims) <= drawn_edge.MOST_S for one in made)
    turning = [one for one in made if one.kept.turned]
    assert turning
    for one in turning:
        at = one.edge.told(one.neighbour)
        turned = {t.claim for t in one.kept.turned if t.neighbour == at}
        assert not turned or turned & set(one.claims), one.edge.name


def test_a_draw_finds_a_verdict_that_its_record_does_not_turn(folder):
    drawn_edge = tool("drawn_edge")
    assert main(["study", "run", str(folder), "--record"]) == 0
    assert main(["study", "edges", str(folder), "--record", "--only", "network.bottleneck.queue.limit"]) == 0

    def differences(neighbour: str) -> list[str]:
        study = studies.get(str(folder))
        [kept] = read(study)
        one = drawn_edge.Draw(study=study, edge=study.edges[0], kept=kept, neighbour=neighbour, claims=("X1",))
        found: list[str] = drawn_edge.compare(one)
        return found

    assert differences("2 packets") == []
    assert differences("40 packets") == []
    file = folder / FILE
    record = json.loads(file.read_text())
    [turned] = record["varied"][0]["turned"]
    record["varied"][0]["turned"] = []
    file.write_text(json.dumps(record))
    assert differences("2 packets") == ["so now, and not recorded: X1 direction: holds to fails"]
    record["varied"][0]["turned"] = [{**turned, "neighbour": "40 packets"}]
    file.write_text(json.dumps(record))
    assert differences("40 packets") == ["recorded, and not so now: X1 direction: holds to fails"]


@pytest.mark.deep
def test_a_constant_drawn_by_the_commit_turns_the_verdicts_of_its_record():
    drawn_edge = tool("drawn_edge")
    one = drawn_edge.draw(drawn_edge.tree())
    assert drawn_edge.compare(one) == [], (one.study.name, one.edge.name, one.neighbour)
