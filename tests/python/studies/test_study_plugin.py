"""Tests for users' own studies: from a folder, from a package; causes, registered plans, more runs for undecided
claims.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import ackclock
from ackclock import Scenario, studies
from ackclock.cli import main
from ackclock.errors import InputError
from ackclock.judge import Quantity, Verdict, above, below
from ackclock.judge.evidence import Evidence
from ackclock.judge.intervals import mean_interval
from ackclock.judge.trend import settling, trend
from ackclock.report import render
from ackclock.study import Asked, Cause, Claim, Criterion, Data, Experiment, Plan, plugin, register
from ackclock.study import decide as more
from ackclock.study.cells import Cell, collect
from ackclock.study.claim import Judged, Outcome
from ackclock.study.study import Chapter, Study

TABLE = """
title = "Made up"
summary = "Two numbers."
[[publications]]
authors = "A. Author"
title = "A title"
where = "here"
[[readings]]
name = "queue"
question = "How long is the queue?"
why = "shorter"
options = { short = "ten", long = "many" }
[[claims]]
id = "X1"
place = "p. 1"
statement = "It is more."
note = "It is {gain}."
guesses = ["Nobody looked."]
direction = { measure = "gain", more_than = 0, margin = 0.5, readings = ["queue"] }
magnitude = { measure = "gain", between = [1, 3], printed = "2" }
[[claims.causes]]
because = "the queue is short"
intervention = "a long queue"
measure = "left"
less_than = 50
"""

PROGRAM = """
import polars as pl
from ackclock.judge.intervals import mean_interval
from ackclock.study import Data, Experiment, Quantity

def run(plan):
    n = plan.count(quick=4, paper=8)
    rows = pl.DataFrame({"seed": range(n), "gain": [2.0 + 0.1 * (i % 2) for i in range(n)]})
    return Data(tables={"one.gains": rows}, digests=["d"], runs=n)

EXPERIMENTS = (Experiment(name="one", title="one", run=run),)

def gain(tables):
    return Quantity(label="gain", estimate=mean_interval(tables["one.gains"]["gain"].to_numpy()), key="gain")

def left(tables):
    return [Quantity(label="left", estimate=LEFT)]

LEFT = 80.0
MEASURES = {"gain": gain, "left": left}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "made-up"
    place.mkdir()
    (place / "study.toml").write_text(TABLE)
    (place / "study.py").write_text(PROGRAM)
    return place


def test_a_folder_is_a_study_as_ours_are(folder):
    study = studies.get(f"{folder}/")
    result = study.run(readings=True)
    outcome = result.outcome("X1")
    assert {name: str(v) for name, v in outcome.verdicts.items()} == {
        "direction": "holds",
        "magnitude": "holds",
        "because the queue is short": "fails",
    }
    assert outcome.verdict is Verdict.HOLDS  # a wrong cause does not make the claim wrong
    assert len(result.curves) == 1
    html = render(result.page())
    assert "Why: because the queue is short" in html
    assert "Intervention: a long queue." in html
    assert "A guess: Nobody looked." in html
    assert "It is 2.05." in html
    assert result.record(version="1", date="today") == folder / "recorded.json"
    assert study.recorded("quick").verdicts("X1") == outcome.verdicts
    (folder / "study.py").write_text(PROGRAM.replace("LEFT = 80.0", "LEFT = 10.0"))
    again = studies.get(str(folder)).run()
    assert again.unexpected == ["X1, because the queue is short: holds, recorded fails"]
    assert again.command == f"ackclock study run {folder} --scale quick"


def test_a_package_brings_a_study(folder, tmp_path, monkeypatch, capsys):
    package = tmp_path / "site"
    (package / "brought-1.0.dist-info").mkdir(parents=True)
    (package / "brought-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: brought\nVersion: 1.0\n")
    entry = "[ackclock.studies]\nbrought = brought\nbroken = brought.missing\nnone = brought:NUMBER\n"
    (package / "brought-1.0.dist-info" / "entry_points.txt").write_text(entry)
    folder.rename(package / "brought")
    (package / "brought" / "__init__.py").write_text("NUMBER = 7\n")
    monkeypatch.syspath_prepend(str(package))
    assert "brought" in studies.installed()
    assert studies.get("brought").title == "Made up"
    with pytest.raises(InputError, match="broken: cannot be imported"):
        studies.get("broken")
    with pytest.raises(InputError, match=r"allowed: a module beside a study\.toml"):
        studies.get("none")
    assert main(["study", "list"]) == 0  # by the names accepted by `study run`
    listed = capsys.readouterr()
    assert [line.split()[0] for line in listed.out.splitlines()] == [*studies.names(), "brought"]
    assert [line.split(":")[1] for line in listed.err.splitlines()] == [" broken", " none"]


def test_the_library_runs_without_its_studies(tmp_path):
    """Looking up a study imports only the requested one."""
    program = """
import sys, ackclock
from ackclock import studies
ackclock.load("first"), studies.names(), studies.installed()
print(sorted(m for m in sys.modules if m.partition(".")[0] == "ackclock_studies"))
studies.get("slow-start")
print(sorted({m for m in sys.modules if m.startswith("ackclock_studies.") and m.count(".") == 1}))
"""
    said = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    assert said.splitlines() == ["[]", "['ackclock_studies.slow_start']"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('measure = "gain", more_than', 'measure = "gian", more_than', 'found "gian"; allowed: gain, left (nearest: gain)'),
        ("more_than = 0", "more_then = 0", "found no bound; allowed: one of more_than"),
        ("more_than = 0,", "more_than = 0, at_least = 2,", "found more_than and at_least; allowed: one of"),
        ("between = [1, 3]", "between = [3, 1]", "found [3.0, 1.0]; allowed: [least, greatest]"),
        ("margin = 0.5", "margin = -0.5", "margin: found -0.5; allowed: the smallest effect"),
        ('printed = "2"', 'printed = "2", margin = 1', "found it beside between"),
        ('place = "p. 1"', "place = 1", "place: found 1; allowed: a text"),
        ('id = "X1"', 'id = "X1"\ncolour = "red"', 'found the key "colour"'),
        ('readings = ["queue"]', 'readings = ["cue"]', 'found "cue"; allowed: queue'),
        ("[[claims.causes]]", "[claims.causes]", "allowed: tables [[causes]]"),
        ('title = "Made up"', "title = ", "study.toml, line 2: found"),
    ],
)  # fmt: skip
def test_a_wrong_table_is_refused_in_one_line(folder, old, new, said):
    assert old in TABLE
    (folder / "study.toml").write_text(TABLE.replace(old, new, 1))
    with pytest.raises(InputError) as refused:
        plugin.load(folder)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import nowhere_at_all", "cannot be imported (ModuleNotFoundError"),
        ("raise SystemExit(0)", "cannot be imported (SystemExit: 0)"),
        ("MEASURES = {'gain': 1, 'left': 2}", "found no EXPERIMENTS"),
    ],
)
def test_a_wrong_program_is_refused_in_one_line(folder, program, said):
    (folder / "study.py").write_text(program)
    with pytest.raises(InputError) as refused:
        plugin.load(folder)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_plan_that_cannot_decide_a_claim_is_refused_when_it_is_loaded(folder):
    """The median of three runs has no interval, however often they are repeated."""
    table = folder / "study.toml"
    table.write_text(
        "runs = { quick = 4, paper = 20 }\n" + TABLE.replace("more_than = 0,", "more_than = 0, needs = 6,")
    )
    with pytest.raises(InputError) as refused:
        plugin.load(folder)
    assert (
        str(refused.value)
        == "claim X1, direction: found 4 runs at scale quick, which cannot decide it; allowed: 6 or more"
    )
    table.write_text(table.read_text().replace("quick = 4", "quick = 6"))
    with pytest.raises(InputError, match="--seeds 3, which cannot decide it"):
        plugin.load(folder).run(seeds=3)
    for wrong in ("needs = 0", "needs = 1.5", 'needs = "six"'):
        table.write_text(TABLE.replace("more_than = 0,", f"more_than = 0, {wrong},"))
        with pytest.raises(InputError, match=r"needs: found .*; allowed: a whole number, 2 or more"):
            plugin.load(folder)


def test_a_wrong_cause_is_caught_by_its_intervention():
    """Losses slow a flow down. Without the planted cause, a short queue, the effect remains."""

    def cell(loss: str, queue: str) -> Cell:
        link = {"rate": "10 Mbit/s", "delay": "20 ms", "loss": {"kind": "bernoulli", "p": loss}}
        flow = {"congestion_control": "reno", "start": {"kind": "uniform", "low": "0 s", "high": "1 s"}}
        values = {
            "duration": "10 s",
            "network": {"bottleneck": {**link, "queue": {"kind": "drop-tail", "limit": queue}}},
            "flows": [flow],
        }
        needs = {"flows": ("goodput_bps",)}
        return Cell(
            scenario=Scenario.from_dict(values), keys={"loss": loss, "queue": queue}, stream="", seeds=4, needs=needs
        )

    def run(plan: Plan) -> Data:
        return collect("slow", [cell(loss, queue) for loss in ("0 %", "1 %") for queue in ("1 BDP", "4 BDP")], plan)

    def lost(tables, queue: str, loss: str = "1 %") -> np.ndarray:
        """Return the unused fraction of the link, percent."""
        rows = tables["slow.flows"].filter(pl.col("loss") == loss, pl.col("queue") == queue).sort("seed")
        return 100 - 100 * rows["goodput_bps"].to_numpy() / (10e6 * 1448 / 1500)

    def share(taken_away: dict[str, str]):
        def of(tables) -> list[Quantity]:
            both = zip(lost(tables, "1 BDP"), lost(tables, **{"queue": "1 BDP", **taken_away}), strict=True)
            return [Quantity(label="left", estimate=mean_interval([100 * b / a for a, b in both]), unit="%")]

        return of

    def cause(because: str, taken_away: dict[str, str]) -> Cause:
        left = Criterion(measure=Asked(bound=below(50), of=share(taken_away)))
        return Cause(because=because, intervention=str(taken_away), criterion=left)

    claim = Claim(
        id="X1",
        place="p. 1",
        statement="A flow behind random losses leaves a part of the link unused.",
        direction=Criterion(
            measure=Asked(
                bound=above(0, margin=1),
                of=lambda t: [Quantity(label="unused", estimate=mean_interval(lost(t, "1 BDP")))],
            )
        ),
        causes=(cause("the queue is short", {"queue": "4 BDP"}), cause("packets are lost", {"loss": "0 %"})),
    )
    chapter = Chapter(title="One", experiments=(Experiment(name="slow", title="slow", run=run),), claims=(claim,))
    study = Study(
        name="planted", title="Planted", summary="One.", publications=(), chapters=(chapter,), findings=lambda _: ()
    )
    (outcome,) = study.run().outcomes
    assert {name: str(verdict) for name, verdict in outcome.verdicts.items()} == {
        "direction": "holds",
        "because the queue is short": "fails",
        "because packets are lost": "holds",
    }


def test_what_is_no_study_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"found no such file; allowed: a folder with study\.toml"):
        studies.get(f"{tmp_path}/")
    with pytest.raises(studies.UnknownStudyError, match="nearest: prr"):
        studies.get("pr")


def test_a_new_study_runs(tmp_path):
    place = plugin.new("buffer-sizes", tmp_path)
    study = plugin.load(place)
    result = study.run(seeds=2, jobs=2)
    assert [o.verdict for o in result.outcomes] == [Verdict.HOLDS, Verdict.HOLDS]
    assert [f.name for f in result.page().figures] == ["utilisation"]
    with pytest.raises(InputError, match="found it there already"):
        plugin.new("buffer-sizes", tmp_path)
    with pytest.raises(InputError, match="allowed: small letters"):
        plugin.new("../up", tmp_path)


def test_the_new_study_measures_after_its_warm_up(tmp_path):
    """The study says "from 20 s on"; slow start is earlier."""
    study = plugin.load(plugin.new("buffer-sizes", tmp_path))
    tables = study.run(seeds=2, jobs=2).tables
    of = {"controller": "reno", "queue": "1/8 BDP"}
    shares = 100 * tables["buffer.performance"].filter(of="run", **of)["goodput_bps"] / (20e6 * 1448 / 1500)
    measured = study.claims[1].judge(tables).main.evidence[0].value
    assert measured == pytest.approx(100 - shares.mean())
    scenario = study.chapters[0].scenarios()["one flow behind 1 BDP"]
    assert scenario.set_all({"duration": "21 s"}).record.performance
    run = ackclock.run(scenario, seed=1)
    after = run.performance.filter(of="run")["goodput_bps"][0]
    assert after > 1.002 * run.flows["goodput_bps"][0], "the whole run has less: slow start and the handshake"


def test_undecided_claims_get_more_runs_from_a_store(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    plugin.new("buffer-sizes", tmp_path)
    table = tmp_path / "buffer-sizes" / "study.toml"
    table.write_text(table.read_text().replace("at_least = 98", "at_least = 200"))
    assert main(["study", "run", "./buffer-sizes", "--store", "st", "--decide", "all", "--within", "0.001"]) == 0
    assert "0 claims were undecided" in capsys.readouterr().out


def test_what_a_scale_does_not_ask_is_told_from_what_more_runs_would_decide(folder):
    """More runs at one scale cannot settle its open claims; the other scale can."""
    study = plugin.load(folder)
    claim = study.claims[0]
    bound = above(0, margin=0.5)
    left_open = Evidence(label="gain", value=math.nan, low=math.nan, high=math.nan, bound=bound, seeds=0)
    decided = Evidence(label="gain", value=1.6, low=1.4, high=1.8, bound=bound, seeds=6)
    near = Evidence(label="gain", value=0.6, low=0.4, high=0.8, bound=bound, seeds=6)
    for evidence, asked, said in (
        (
            [left_open],
            False,
            "X1: not asked at scale quick, whose runs are too few or too short; --scale paper asks it",
        ),
        (
            [left_open, near],
            True,
            "X1: undecided with 2 times the runs of the scale; more of them are not expected to decide it",
        ),
        ([near], True, "X1: undecided with 2 times the runs of the scale; about 22 times would decide it"),
    ):
        half = Judged(criterion=claim.direction, verdict=Verdict.UNDECIDED, evidence=tuple(evidence))
        outcome = Outcome(claim=claim, halves={"direction": half})
        found = more.Decided(claim=claim, outcome=outcome, times=2, needed=2 * more.needed(outcome), scale="quick")
        assert (found.asked, found.told) == (asked, said)
    half = Judged(criterion=claim.direction, verdict=Verdict.HOLDS, evidence=(decided,))
    outcome = Outcome(claim=claim, halves={"direction": half})
    assert more.Decided(claim=claim, outcome=outcome, times=2, needed=1.0, scale="quick").asked


def test_what_decides_against_a_claim_is_counted_with_the_correction_for_how_many_numbers_it_asks(folder):
    """One of two numbers fails at 95 %, but not at the 97.5 % required for two numbers."""
    claim = plugin.load(folder).claims[0]
    bound = above(0)
    fails = Evidence(label="a", value=-0.068, low=-0.135, high=-0.001, bound=bound, seeds=12)
    holds = Evidence(label="b", value=0.07, low=0.06, high=0.08, bound=bound, seeds=12)
    assert (fails.verdict, holds.verdict, fails.judge(2)) == (Verdict.FAILS, Verdict.HOLDS, Verdict.UNDECIDED)
    half = Judged(criterion=claim.direction, verdict=Verdict.UNDECIDED, evidence=(fails, holds))
    assert 1 < more.needed(Outcome(claim=claim, halves={"direction": half})) < 4


@pytest.mark.parametrize("beside", [["--out", "o"], ["--backend", "both"], ["--seeds", "3"]])
def test_more_runs_refuse_options_that_they_would_not_heed(beside, capsys):
    assert main(["study", "run", "prr", "--decide", "all", *beside]) == 2
    assert "--decide: found it beside other options; allowed: --scale, --jobs" in capsys.readouterr().err
    assert main(["study", "run", "prr", "--within", "5"]) == 2
    assert "--within: found it without --decide" in capsys.readouterr().err


def test_a_plan_is_hashed_before_the_run_and_gives_the_seeds(folder, tmp_path):
    study = plugin.load(folder)
    file = tmp_path / "plan.json"
    found = register.write(study, file)
    kept = register.read(file)
    assert kept["hash"] == found
    assert register.differences(kept, study) == []
    assert kept["plan"]["claims"][0]["direction"]["bound"] == {"low": 0.0, "high": None, "strict": True, "margin": 0.5}
    assert kept["plan"]["claims"][0]["causes"][0]["measure"] == "left"
    (folder / "study.toml").write_text(TABLE.replace("margin = 0.5", "margin = 0.1"))
    moved = plugin.load(folder)
    assert register.differences(kept, moved) == ["claim X1: changed in direction"]
    with pytest.raises(InputError, match="a plan is not changed afterwards"):
        register.write(moved, file)
    file.write_text(file.read_text().replace("0.5", "0.1"))
    with pytest.raises(InputError, match="not that of the plan beside it"):
        register.read(file)
    for wrong in ("", "[]", "{", '{"hash": 1}'):
        file.write_text(wrong)
        with pytest.raises(InputError, match="found no plan"):
            register.read(file)


def test_registered_seeds_are_others():
    from ackclock.study.plan import first_seed

    assert first_seed("x") != first_seed("abc" + "x")
    assert Plan(salt="abc").shift == first_seed("abc")
    assert Plan().shift == 0


def noisy(effect: float, spread: float, *, margin: float = 1.0) -> Study:
    """Return one claim about the mean of draws that depend only on the number of seeds."""

    def run(plan: Plan) -> Data:
        n = plan.count(quick=8, paper=8)
        draws = np.random.default_rng(1).normal(effect, spread, 2000)[:n]
        return Data(tables={"one.x": pl.DataFrame({"x": draws})}, digests=["d"], runs=n)

    def x(tables):
        return [Quantity(label="x", estimate=mean_interval(tables["one.x"]["x"].to_numpy()))]

    claim = Claim(
        id="X1",
        place="p. 1",
        statement="It is more.",
        direction=Criterion(measure=Asked(bound=above(0, margin=margin), of=x)),
        causes=(Cause(because="of X", intervention="no X", criterion=Criterion(measure=Asked(bound=below(50), of=x))),),
    )
    experiment = Experiment(name="one", title="one", run=run)
    return Study(
        name="noisy",
        title="Noise",
        summary="Noise.",
        publications=(),
        chapters=(Chapter(title="One", experiments=(experiment,), claims=(claim,)),),
        findings=lambda _: (),
    )


@pytest.mark.parametrize(("effect", "verdict"), [(3.0, "holds"), (0.0, "refuted"), (-3.0, "refuted")])
def test_more_runs_decide(effect, verdict):
    study = noisy(effect, 6.0)
    assert study.run().outcomes[0].verdict is Verdict.UNDECIDED
    (found,) = more.decide(study, None, Plan(), within_s=60)
    assert str(found.outcome.verdict) == verdict
    assert found.told == f"X1: {verdict}, with {found.times} times the runs of the scale"


def test_what_more_runs_would_take_is_said():
    now = iter(np.arange(0, 1000, 10.0))
    (found,) = more.decide(noisy(3.0, 30.0), ["X1"], Plan(), within_s=60, clock=lambda: float(next(now)))
    assert found.outcome.verdict is Verdict.UNDECIDED
    assert found.times > 1
    assert found.needed > found.times
    assert "times would decide it" in found.told
    assert more.limits(above(0, margin=1)) == [-1, 1]


def test_a_share_that_still_changes_is_flagged():
    rng = np.random.default_rng(1)
    t = np.linspace(0, 1, 60)
    settled = 0.4 + 0.05 * rng.normal(size=(12, 60))
    falling = settled + 0.4 * np.exp(-2 * t)
    growing = settled + 0.4 * t**2
    assert not settling(settled, 0.01).drifts
    found = settling(falling, 0.01)
    assert found.drifts
    assert 1.5 < found.factor < 4  # 0.4 exp(-2 t) changes by less than 0.01 from about t = 1.6 on
    assert settling(growing, 0.01).factor == np.inf
    shown = Quantity(label="share", estimate=mean_interval(falling.mean(axis=1)), trend=trend(falling)).asked(above(0))
    assert shown.drifts
    assert "still changes" in shown.interval_text
    assert json.dumps(shown.to_json())
    told = Quantity(label="share", estimate=mean_interval(falling.mean(axis=1)), trend=found).asked(above(0))
    assert told.interval_text.endswith("times as long would show it settled")
    assert told.to_json()["trend"]["times_as_long"] == pytest.approx(found.factor, rel=1e-11)
    calm = Quantity(label="share", estimate=mean_interval(settled.mean(axis=1)), trend=trend(settled)).asked(above(0))
    assert "still" not in calm.interval_text


KEPT = """
from ackclock import Scenario
from ackclock.judge.intervals import mean_interval
from ackclock.study import Experiment, Quantity
from ackclock.study.claim import Judged, Outcome
from ackclock.study.cells import Cell, collect

def run(plan):
    made = Scenario.from_dict({
        "duration": "1 s",
        "network": {"bottleneck": {"rate": "1 Mbit/s", "delay": "5 ms", "loss": {"kind": "bernoulli", "p": 0.1}}},
        "flows": [{"workload": {"kind": "bulk"}}],
    })
    seeds = plan.count(quick=4, paper=8)
    return collect("one", [Cell(scenario=made, keys={"x": 1}, stream="s", seeds=seeds, needs={"flows": ("goodput_bps",)})], plan)

EXPERIMENTS = (Experiment(name="one", title="one", run=run),)

def gain(tables):
    found = tables["one.flows"]["goodput_bps"].to_numpy()
    return Quantity(label="gain", estimate=mean_interval(found - found.mean()), key="gain")

MEASURES = {"gain": gain, "left": lambda tables: [gain(tables)]}
"""


def test_more_runs_are_kept_in_a_store_and_found_there(folder, capsys):
    """The command runs in a separate thread, because only one thread may open the store."""
    (folder / "study.py").write_text(KEPT)
    command = ["study", "run", f"{folder}/", "--decide", "all", "--within", "0.01", "--jobs", "1"]
    assert main([*command, "--store", str(folder / "store")]) == 0
    assert "1 claims were undecided at scale quick, 1 still are" in capsys.readouterr().out
    assert main([*command, "--store", str(folder / "store"), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["claim"], row["verdict"]) == ("X1", "undecided")
