from __future__ import annotations

import json

import polars as pl

from ackclock import Scenario, run_batch, studies
from ackclock.cli import main
from ackclock.stats import mean_interval
from ackclock.study.cells import Cell, Cells
from ackclock.study.plan import Plan
from ackclock.sweep import Store, executors


def lossy(cc: str) -> Scenario:
    return Scenario.from_dict(
        {
            "duration": "2 s",
            "network": {
                "bottleneck": {"rate": "5 Mbit/s", "delay": "10 ms", "loss": {"kind": "bernoulli", "p": "1 %"}}
            },
            "flows": [{"congestion_control": cc, "workload": {"kind": "fetch", "bytes": "30 kB", "count": 3}}],
        }
    )


def cells() -> list[Cell]:
    return [
        Cell(scenario=lossy(cc), keys={"arm": cc, "load": n}, stream="s", seeds=12)
        for n, cc in enumerate(("reno", "cubic"))
    ]


def collect(plan: Plan):
    wanted = {"fetches": ("total_s", "data_rtos"), "recoveries": ("losses", "cause")}
    return Cells(name="x", wanted=wanted).run(cells(), plan)


def test_a_study_from_the_store_is_the_study(tmp_path):
    plain = collect(Plan(jobs=1))
    for _ in range(2):
        with Store(tmp_path / "store", write=True) as store:
            kept = collect(Plan(jobs=2, store=store, name="s"))
            assert store.counts("s")["done"] == 24
        assert kept.digests == plain.digests
        assert kept.runs == plain.runs == 24
        assert set(kept.tables) == set(plain.tables)
        for name, table in plain.tables.items():
            assert table.height
            assert kept.tables[name].schema == table.schema
            assert kept.tables[name].equals(table)


def test_a_batch_from_the_store_is_the_batch(tmp_path):
    scenario, seeds = lossy("cubic"), [5, 3, 8]
    plain = run_batch(scenario, seeds)
    with Store(tmp_path / "store", write=True) as store:
        plan = Plan(jobs=2, store=store, name="s")
        for tables in (None, None, ("flows",)):
            kept = plan.batch(scenario, seeds, tables=tables)
            assert kept.digests == plain.digests
            for name in tables or ("flows", "fetches", "recoveries", "links", "drops"):
                mine, other = getattr(kept, name), getattr(plain, name)
                assert isinstance(mine, pl.DataFrame)
                assert mine.schema == other.schema
                assert mine.equals(other)


def study_of(name: str, scenario: Scenario):
    """A study of one experiment and one claim."""
    from ackclock.study import Claim, Data, Evidence, Experiment, Publication, Study, Verdict, above

    def experiment(plan: Plan) -> Data:
        batch = plan.batch(scenario, range(1, plan.count(quick=5, paper=10) + 1), tables=("flows",))
        return Data(tables={"x.flows": batch.flows}, digests=batch.digests, runs=len(batch.digests))

    def measure(tables) -> list[Evidence]:
        goodput = mean_interval(tables["x.flows"]["goodput_bps"].to_numpy())
        return [Evidence.of(goodput, "goodput", above(0.0), unit="bit/s")]

    return Study(
        name=name,
        title=f"Study {name}",
        summary="s",
        publications=(Publication(authors="A", title="T", where="W"),),
        experiments=(Experiment(name="x", title="x", run=experiment),),
        claims=(Claim(id="C1", place="p", statement="Data arrive.", measure=measure, expected=Verdict.HOLDS),),
        sections=lambda result: (),
        findings=lambda result: (f"{result.runs} runs.",),
        scenarios=dict,
    )


def test_all_studies_by_one_command_and_again(tmp_path, monkeypatch, capsys):
    impossible = lossy("reno").set("flows.0.congestion_control", "custom:nowhere")
    known = {
        "one": study_of("one", lossy("reno")),
        "two": study_of("two", lossy("cubic")),
        "bad": study_of("bad", impossible),
    }
    monkeypatch.setattr(studies, "names", lambda: list(known))
    monkeypatch.setattr(studies, "get", known.__getitem__)
    made: list[int] = []
    before = executors.compute
    monkeypatch.setattr(
        executors.Threads.__init__, "__kwdefaults__", {"work": lambda t: made.append(len(t.runs)) or before(t)}
    )
    out = tmp_path / "studies"
    digests = []
    for scale, runs in (("quick", 5), ("quick", 0), ("paper", 5)):
        made.clear()
        assert main(["study", "run", "--all", "--scale", scale, "--out", str(out), "--json"]) == 2
        found = json.loads(capsys.readouterr().out)
        assert [s["study"] for s in found["studies"]] == ["one", "two"]
        assert list(found["problems"]) == ["bad"]
        digests.append([s["digest"] for s in found["studies"]])
        if scale == "quick":
            assert sum(made) == (2 * runs + 5 if runs else 0)
    assert digests[0] == digests[1] != digests[2]
    page = (out / "report.html").read_text(encoding="utf-8")
    for part in (
        'href="one/report.html"',
        'href="two/report.html"',
        "Not run: ",
        "Data arrive.",
        "2 claims: 2 holds. 20 runs.",
    ):
        assert part in page
    assert (out / "two" / "report.html").is_file()


def test_a_name_or_all(capsys):
    for arguments in ([], ["prr", "--all"]):
        assert main(["study", "run", *arguments]) == 2
        assert "allowed: the name of a study, or --all" in capsys.readouterr().err
    assert main(["study", "run", "prr", "--scheduler", "tcp://a:1"]) == 2
    assert "--scheduler: found it without --store" in capsys.readouterr().err
