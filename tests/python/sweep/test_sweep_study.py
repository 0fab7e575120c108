from __future__ import annotations

import json

import polars as pl
import pytest

from ackclock import InputError, Scenario, run_batch, studies
from ackclock.cli import main
from ackclock.stats import mean_interval
from ackclock.study.cells import Cell, collect
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


NEEDS = {"fetches": ("total_s", "data_rtos"), "recoveries": ("losses", "cause")}


def slowest(batch) -> pl.DataFrame:
    return batch.fetches.group_by("seed", maintain_order=True).agg(pl.col("total_s").max().alias("slowest_s"))


def cells(**settings) -> list[Cell]:
    """Return two cells that keep rows, and one that keeps a summary of its rows."""
    rows = [
        Cell(scenario=lossy(cc), keys={"arm": cc, "load": n}, stream="s", seeds=12, needs=NEEDS)
        for n, cc in enumerate(("reno", "cubic"))
    ]
    needs = {"fetches": ("total_s",)}
    made = Cell(
        scenario=lossy("bic"), keys={"cc": "bic"}, stream="t", seeds=3, needs=needs, keep={"slow": slowest, **settings}
    )
    return [rows[0], made, rows[1]]


def test_a_study_from_the_store_is_the_study(tmp_path):
    plain = collect("x", cells(), Plan(jobs=1))
    assert plain.tables["x.slow"].columns == ["cc", "seed", "slowest_s"]
    for _ in range(2):
        with Store(tmp_path / "store", write=True) as store:
            kept = collect("x", cells(), Plan(jobs=2, store=store, name="s"))
            assert store.counts("s")["done"] == 27
        assert kept.digests == plain.digests
        assert kept.runs == plain.runs == 27
        assert set(kept.tables) == set(plain.tables) == {"x.fetches", "x.recoveries", "x.slow"}
        for name, table in plain.tables.items():
            assert table.height
            assert kept.tables[name].schema == table.schema
            assert kept.tables[name].equals(table)


def test_cells_are_runs_of_their_streams():
    (first, made, _) = cells()
    data = collect("x", [made], Plan(jobs=2))
    runs = run_batch(made.scenario, range(made.first(Plan()), made.first(Plan()) + 3))
    assert data.digests == list(runs.digests)
    assert data.tables["x.slow"]["slowest_s"].equals(slowest(runs)["slowest_s"])
    assert first.first(Plan()) != made.first(Plan())
    numbered = collect("x", [first, made], Plan(jobs=2), numbered=True).tables
    assert numbered["x.slow"].columns == ["cc", "run", "slowest_s"]
    assert numbered["x.slow"]["run"].to_list() == [0, 1, 2]
    assert numbered["x.fetches"]["run"].unique().to_list() == list(range(12))


def test_a_cell_sees_what_it_names_and_no_more(tmp_path):
    def unnamed(batch) -> pl.DataFrame:
        return batch.fetches.select("seed", "data_rtos")

    def elsewhere(batch) -> pl.DataFrame:
        return batch.flows.select("seed")

    unknown = Cell(scenario=lossy("reno"), keys={}, stream="s", seeds=2, needs={"fetches": ("total",)})
    with Store(tmp_path / "store", write=True) as store:
        for plan in (Plan(), Plan(store=store, name="s")):
            for keep in (unnamed, elsewhere):
                with pytest.raises(pl.exceptions.ColumnNotFoundError):
                    collect("x", cells(more=keep), plan)
            with pytest.raises(InputError, match="total"):
                collect("x", [unknown], plan)


def test_cells_without_rows(tmp_path):
    """Without losses there is no recovery: the table still has all columns, and is merged with those of
    cells with recoveries.
    """
    network = {"bottleneck": {"rate": "5 Mbit/s"}}
    calm = Scenario.from_dict(
        {"duration": "2 s", "network": network, "flows": [{"workload": {"kind": "transfer", "bytes": "30 kB"}}]}
    )
    empty = Cell(scenario=calm, keys={"arm": "calm", "load": 0}, stream="s", seeds=2, needs=NEEDS)
    with Store(tmp_path / "store", write=True) as store:
        for plan in (Plan(), Plan(store=store, name="s")):
            alone = collect("x", [empty], plan).tables["x.recoveries"]
            assert (alone.height, alone.columns) == (0, ["arm", "load", "seed", "losses", "cause"])
            both = collect("x", [empty, cells()[0]], plan).tables["x.recoveries"]
            assert set(both["arm"]) == {"reno"}


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
    """Return a study with one experiment and one claim."""
    from ackclock.study import Chapter, Claim, Criterion, Data, Evidence, Experiment, Publication, Study, above

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
        chapters=(
            Chapter(
                title="Arrivals",
                experiments=(Experiment(name="x", title="x", run=experiment),),
                claims=(Claim(id="C1", place="p", statement="Data arrive.", direction=Criterion(measure=measure)),),
            ),
        ),
        findings=lambda result: (f"{result.runs} runs.",),
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
        assert "allowed: names of studies, or --all" in capsys.readouterr().err
    assert main(["study", "run", "prr", "--scheduler", "tcp://a:1"]) == 2
    assert "--scheduler: found it without --store" in capsys.readouterr().err
