from __future__ import annotations

import math
import threading
from pathlib import Path

import polars as pl
import pytest

from ackclock import Scenario, ScenarioError, run
from ackclock.errors import InputError
from ackclock.sweep import Axis, Campaign, Cell, Precision, Recipe, Store, StoreError, Sweep, Threads, load, read
from ackclock.sweep import run as run_sweep
from ackclock.sweep.database import quick_check
from ackclock.sweep.look import view
from ackclock.sweep.precision import extended, parse_width
from ackclock.sweep.task import Done, Task, compute

BASE = {
    "duration": "1 s",
    "network": {"bottleneck": {"rate": "5 Mbit/s", "delay": "10 ms", "loss": {"kind": "bernoulli", "p": "1 %"}}},
    "flows": [{"congestion_control": "reno"}],
}
CONTROLLER = Axis(key="flows.0.congestion_control", values=("reno", "cubic"), name="controller")
RATE = Axis(key="network.bottleneck.rate", values=("2 Mbit/s", "5 Mbit/s"), name="rate")


def small(**changes) -> Sweep:
    given = {
        "name": "small",
        "scenario": Scenario.from_dict(BASE),
        "axes": (CONTROLLER, RATE),
        "seeds": tuple(range(1, 6)),
    }
    return Sweep(**{**given, **changes})


def sweep_file(folder: Path, body: str) -> Path:
    (folder / "base.toml").write_text(Scenario.from_dict(BASE).to_toml(), encoding="utf-8")
    path = folder / "grid.toml"
    path.write_text('scenario = "base.toml"\n' + body, encoding="utf-8")
    return path


@pytest.fixture
def often(monkeypatch) -> None:
    """Commit after every result."""
    monkeypatch.setattr("ackclock.sweep.campaign.KEEP_EVERY_S", 0.0)
    monkeypatch.setattr("ackclock.sweep.campaign.KEEP_REST", 0)
    monkeypatch.setattr("ackclock.sweep.campaign.KEEP_CPU_S", 0.0)


# The file


def test_axes_of_a_file(tmp_path):
    path = sweep_file(
        tmp_path,
        """
        seeds = [4, 2]
        zip = [["network.bottleneck.rate", "network.bottleneck.delay"]]
        [axes]
        "flows.0.congestion_control" = ["reno", "cubic"]
        "network.bottleneck.rate" = { from = "1 Mbit/s", to = "100 Mbit/s", steps = 3, spacing = "log" }
        "network.bottleneck.delay" = { from = "10 ms", to = "0.02 s", steps = 3 }
        [names]
        "network.bottleneck.rate" = "rate"
        """,
    )
    sweep = load(path)
    assert sweep.name == "grid"
    assert sweep.seeds == (4, 2)
    assert [tuple(c.keys.values()) for c in sweep.cells] == [
        (cc, rate, delay)
        for cc in ("reno", "cubic")
        for rate, delay in (("1 Mbit/s", "10 ms"), ("10 Mbit/s", "15 ms"), ("100 Mbit/s", "20 ms"))
    ]
    assert list(sweep.cells[0].keys) == ["flows.0.congestion_control", "rate", "network.bottleneck.delay"]
    assert sweep.cells[4].scenario.network.bottleneck.rate == "10 Mbit/s"
    assert Sweep.from_dict(sweep.to_dict()).cells == sweep.cells


def test_a_value_that_comes_again_on_an_axis_that_steps_with_another(tmp_path):
    path = sweep_file(
        tmp_path,
        """
        zip = [["flows.0.congestion_control", "network.bottleneck.delay"]]
        [axes]
        "flows.0.congestion_control" = ["reno", "cubic", "bbr"]
        "network.bottleneck.delay" = ["10 ms", "10 ms", "40 ms"]
        [names]
        "flows.0.congestion_control" = "controller"
        "network.bottleneck.delay" = "delay"
        """,
    )
    sweep = load(path)
    assert [tuple(c.keys.values()) for c in sweep.cells] == [("reno", "10 ms"), ("cubic", "10 ms"), ("bbr", "40 ms")]
    assert Sweep.from_dict(sweep.to_dict()).cells == sweep.cells
    one = Threads(1)
    try:
        results, _ = run_sweep(sweep, tmp_path / "out", one)
    finally:
        one.close()
    seen = view(results, "goodput_bps")
    assert [axis.name for axis in seen.axes.values()] == ["controller"]


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ({"from": 1, "to": 4, "steps": 4}, (1, 2, 3, 4)),
        ({"from": 0.0, "to": 1.0, "steps": 3}, (0.0, 0.5, 1.0)),
        ({"from": "1 %", "to": "4 %", "steps": 3, "spacing": "log"}, ("1 %", "2 %", "4 %")),
        (
            {"from": "10 packets", "to": "1000 packets", "steps": 3, "spacing": "log"},
            ("10 packets", "100 packets", "1000 packets"),
        ),
        ({"from": "0.5 BDP", "to": "2 BDP", "steps": 4}, ("0.5 BDP", "1 BDP", "1.5 BDP", "2 BDP")),
        (
            {"from": "1 Mbit/s", "to": "1 Gbit/s", "steps": 3, "spacing": "log"},
            ("1 Mbit/s", "31.622777 Mbit/s", "1000 Mbit/s"),
        ),
    ],
)
def test_ranges(written, values):
    assert Axis.parse("k", written).values == values


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sedes = 3", r'grid\.toml: sedes: found an unknown key; did you mean "seeds"\?; allowed: '),
        ("seeds = 0", "seeds: found 0; allowed: how many"),
        ("seeds = [1, 1]", "seeds: found a list; allowed: .* each once"),
        ('metrics = ["goodput"]', "metrics: found .*goodput.*allowed: goodput_bps"),
        ('metrics = ["flows.rto.max"]', "metrics: found the column .*rto.* of flows; allowed: .*rtos"),
        ('tables = ["flow"]', "tables: found the table .*allowed: flows"),
        ('trace = "some"', 'trace: found "some"; allowed: none, flow, all'),
        ('[axes]\n"flows.0.count" = []', "axes.flows.0.count: found a list of 0"),
        ('[axes]\n"flows.0.count" = [2, 2]', "axes.flows.0.count: found 2 twice"),
        ('[axes]\n"flows.0.cuont" = [1, 2]', 'flows.0.cuont: found an unknown key, did you mean "count"'),
        ('[axes]\n"flows.1.count" = [1, 2]', "flows.1: found 1 in the cell .*allowed: a position"),
        ('[axes]\n"flows.0.count" = { from = 1, to = 9 }', "axes.flows.0.count.steps: found nothing"),
        ('[axes]\n"flows.0.count" = { from = 1, to = "9 s", steps = 2 }', "axes.flows.0.count.from: found 1 to"),
        ('zip = [["a", "b"]]', 'zip.0: found "a"'),
        (
            'zip = [["flows.0.count", "duration"]]\n[axes]\n"flows.0.count" = [1, 2]\nduration = ["1 s"]',
            "zip.0: found 2 for flows.0.count, 1 for duration values; allowed: equally many",
        ),
        (
            'zip = [["flows.0.count", "duration"]]\n[axes]\n"flows.0.count" = [2, 2]\nduration = ["1 s", "1 s"]',
            "zip.0: found a value twice on each axis; allowed: a group in which one axis has each value once",
        ),
        ('[names]\nduration = "d"', "names.duration: found no such axis"),
        ('[axes]\nduration = ["1 s", "2 s"]\n[names]\nduration = "seed"', 'found "seed", which is taken'),
        (
            "seeds = 1000000\n[axes]\n" + '"flows.0.count" = { from = 1, to = 1000, steps = 1000 }',
            "at most 2000000 runs",
        ),
        ('name = "a/b"', 'name: found "a/b"'),
    ],
)
def test_a_file_that_cannot_be_run(tmp_path, body, message):
    with pytest.raises(ScenarioError, match=message):
        _ = load(sweep_file(tmp_path, body)).cells


def test_an_impossible_cell_is_named():
    axis = Axis(key="flows.0.start", values=("0 s", "5 s"))
    with pytest.raises(ScenarioError, match=r'found "5 s" in the cell flows.0.start = "5 s"; allowed: a time below'):
        _ = small(axes=(axis,)).cells


# Runs


def test_rows_are_the_runs(tmp_path):
    sweep = small(metrics=("flows.rtos.max",), tables=("flows", "recoveries"))
    results, status = run_sweep(sweep, tmp_path / "s", Threads(2))
    assert (status.done, status.failed, status.found) == (20, 0, 0)
    rows = results.runs
    assert rows.columns[:5] == ["cell", "controller", "rate", "seed", "digest"]
    assert rows["seed"].to_list() == [1, 2, 3, 4, 5] * 4
    one = rows.row(13, named=True)
    alone = run(sweep.cells[2].scenario, seed=4)
    assert (one["controller"], one["rate"]) == ("cubic", "2 Mbit/s")
    assert one["digest"] == alone.digest
    assert one["goodput_bps"] == alone.flows["goodput_bps"].sum()
    assert one["retransmissions"] == alone.flows["retransmissions"].sum()
    assert one["queue_mean_packets"] == alone.links["mean_packets"].max()
    assert one["flows.rtos.max"] == alone.flows["rtos"].max()
    assert one["completion_s"] is None
    # read with polars alone
    flows = pl.read_parquet(tmp_path / "s/data/1/flows/*.parquet")
    keys = pl.read_parquet(tmp_path / "s/data/1/runs/*.parquet").filter(digest=alone.digest)
    mine = flows.join(keys.select("key"), on="key", how="semi").drop("key", "seed")
    assert mine.equals(alone.flows.drop("name", "congestion_control"))
    assert pl.read_parquet(tmp_path / "s/sweeps/small/table.parquet").equals(rows)


def test_jobs_cannot_be_seen_and_nothing_is_made_twice(tmp_path):
    sweep = small()
    one, _ = run_sweep(sweep, tmp_path / "one", Threads(1))
    two, _ = run_sweep(sweep, tmp_path / "two", Threads(2))
    assert one.runs.equals(two.runs)
    made: list[int] = []

    def work(task: Task) -> Done:
        made.append(len(task.runs))
        return compute(task)

    again, status = run_sweep(sweep, tmp_path / "one", Threads(2, work=work))
    assert (status.found, made) == (20, [])
    assert again.runs.equals(one.runs)
    # another sweep that shares half the runs
    wider = small(name="wider", axes=(CONTROLLER, Axis(key=RATE.key, values=("5 Mbit/s", "8 Mbit/s"))))
    other, status = run_sweep(wider, tmp_path / "one", Threads(2, work=work))
    assert (status.found, sum(made)) == (10, 10)
    shared = one.runs.filter(rate="5 Mbit/s").select("controller", "seed", "digest", "goodput_bps")
    assert other.runs.filter(pl.col(RATE.key) == "5 Mbit/s").select(shared.columns).equals(shared)
    assert read(tmp_path / "one", "small").runs.equals(one.runs)
    with pytest.raises(InputError, match="found 2 sweeps; allowed: small, wider"):
        read(tmp_path / "one")


def test_a_failed_run_is_recorded_and_stops_nobody(tmp_path):
    def work(task: Task) -> Done:
        if any("2000000" in task.texts[at] for at, _ in task.runs):
            # as if the engine had refused every third seed of the slow cells
            done = compute(task)
            bad = ["refused" if "2000000" in task.texts[at] and seed % 3 == 0 else None for at, seed in task.runs]
            errors = bad[: len(done.digests)]
            digests = [None if e else d for d, e in zip(done.digests, errors, strict=True)]
            return Done(digests=digests, errors=errors, metrics=done.metrics, tables=done.tables, cpu_s=done.cpu_s)
        return compute(task)

    sweep = small()
    results, status = run_sweep(sweep, tmp_path / "s", Threads(2, work=work))
    assert (status.done, status.failed) == (18, 2)
    assert results.runs.height == 18
    with Store(tmp_path / "s") as store:
        assert store.failures("small") == [(sweep.cells[i].hash, 3, "refused") for i in (0, 2)]
    _, status = run_sweep(sweep, tmp_path / "s", Threads(2))
    assert (status.done, status.failed) == (18, 2)
    results, status = run_sweep(sweep, tmp_path / "s", Threads(2), retry=True)
    assert (status.done, status.failed, status.found) == (20, 0, 18)
    assert results.runs.equals(run_sweep(sweep, tmp_path / "t", Threads(1))[0].runs)


def test_a_worker_that_raises_fails_its_runs_only(tmp_path):
    calls = []

    def work(task: Task) -> Done:
        calls.append(task)
        if len(calls) == 1:
            raise RuntimeError("worker died\nmore")
        return compute(task)

    _, status = run_sweep(small(), tmp_path / "s", Threads(1, work=work))
    assert status.failed == len(calls[0].runs)
    assert status.done == 20 - status.failed
    with Store(tmp_path / "s") as store:
        assert store.failures("small")[0][2] == "RuntimeError: worker died"


def test_too_large_a_cell_fails_alone(tmp_path):
    sweep = small()
    with Store(tmp_path / "s", write=True) as store:
        campaign = Campaign(store, sweep.cells, sweep.recipe, name="small", memory_limit=1000)
        status = campaign.run(Threads(1))
        assert (status.done, status.failed) == (0, 20)
        assert "memory" in store.failures("small")[0][2]


def test_the_budget_cuts_a_task_short_and_the_rest_is_handed_out_again(tmp_path):
    sweep = small(seeds=tuple(range(1, 41)))
    executor = Threads(2)
    executor.target_s = 1e-6
    results, status = run_sweep(sweep, tmp_path / "s", executor)
    assert status.done == 160
    with Store(tmp_path / "s") as store:
        assert store._db.execute("SELECT max(attempts), min(attempts) FROM runs").fetchone() == (1, 1)
    assert results.runs.equals(run_sweep(sweep, tmp_path / "t", Threads(1))[0].runs)


def test_stopped_and_gone_on_with(tmp_path):
    sweep = small(seeds=tuple(range(1, 21)))
    stop = threading.Event()

    def work(task: Task) -> Done:
        stop.set()
        return compute(task)

    _, status = run_sweep(sweep, tmp_path / "s", Threads(1, work=work), stop=stop)
    assert status.done < 80
    with Store(tmp_path / "s") as store:
        assert store.counts("small")["running"] == 0
    results, status = run_sweep(sweep, tmp_path / "s", Threads(2))
    assert results.runs.equals(run_sweep(sweep, tmp_path / "t", Threads(1))[0].runs)


@pytest.mark.parametrize(("latest_s", "often_kept"), [(1e9, False), (0.0, True)])
def test_a_clock_alone_does_not_make_it_keep(tmp_path, monkeypatch, often, latest_s, often_kept):
    """On a busy machine even a little work takes long, so a batch is stored once it is large enough or old enough."""
    monkeypatch.setattr("ackclock.sweep.campaign.KEEP_CPU_S", 1e9)
    monkeypatch.setattr("ackclock.sweep.campaign.KEEP_LATEST_S", latest_s)
    commits: list[int] = []
    commit = Store.commit
    monkeypatch.setattr(
        Store, "commit", lambda self, text, done, *rest: (commits.append(len(done)), commit(self, text, done, *rest))
    )
    executor = Threads(1)
    executor.target_s = 0.001
    run_sweep(small(), tmp_path / "s", executor)
    assert sum(commits) == 20
    assert (len(commits) > 1) == often_kept, commits


def test_readers_see_whole_commits_while_it_runs(tmp_path, often):
    sweep = small(seeds=tuple(range(1, 13)))
    folder = tmp_path / "s"
    seen: list[int] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            if (folder / "sweeps/small/cells.parquet").exists() and (folder / "state.sqlite").exists():
                try:
                    rows = read(folder, "small").runs
                except InputError:  # not recorded yet
                    assert not seen
                    continue
                assert rows.select("cell", "seed").is_duplicated().sum() == 0
                seen.append(rows.height)

    def patient(task: Task) -> Done:
        looks = len(seen)  # resume after the reader has read again
        for _ in range(200):
            if len(seen) > looks:
                break
            ended.wait(0.005)
        return compute(task)

    reader = threading.Thread(target=look)
    failed: list[BaseException] = []
    before = threading.excepthook
    threading.excepthook = lambda args: failed.append(args.exc_value)
    try:
        executor = Threads(2, work=patient)
        executor.target_s = 1e-6
        reader.start()
        run_sweep(sweep, folder, executor)
    finally:
        ended.set()
        reader.join()
        threading.excepthook = before
    assert not failed
    assert seen == sorted(seen)
    assert len(set(seen)) > 3


def test_a_table_holds_the_runs_of_one_engine(tmp_path, monkeypatch):
    sweep = small(axes=(CONTROLLER,), seeds=(1, 2, 3))
    precision = Precision(metric="goodput_bps", width=0.3)
    before, _ = run_sweep(sweep, tmp_path / "s", Threads(2), precision=precision)
    assert before.runs.height > 6
    for module in ("task", "campaign"):
        monkeypatch.setattr(f"ackclock.sweep.{module}.engine_identity", lambda *_: "0.0.0+another")
    after, status = run_sweep(sweep, tmp_path / "s", Threads(2))
    assert (status.found, status.done) == (0, before.runs.height)
    assert after.runs.equals(before.runs)
    with Store(tmp_path / "s") as store:
        assert store.counts("small")["done"] == before.runs.height
        assert store.read(sweep.recipe.text).height == 2 * before.runs.height


def test_one_writer_at_a_time(tmp_path):
    with Store(tmp_path / "s", write=True):
        with pytest.raises(StoreError, match="another session is writing here"):
            Store(tmp_path / "s", write=True)
        Store(tmp_path / "s").close()
    Store(tmp_path / "s", write=True).close()


def test_a_foreign_folder_is_left_alone(tmp_path):
    (tmp_path / "precious.txt").write_text("x", encoding="utf-8")
    with pytest.raises(InputError, match=r"found precious\.txt, which no sweep has written"):
        Store(tmp_path, write=True)
    with pytest.raises(InputError, match="found no sweep"):
        Store(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["precious.txt"]


def test_compaction_keeps_every_row(tmp_path, often):
    sweep = small(tables=("flows",))
    executor = Threads(1)
    executor.target_s = 1e-6
    with Store(tmp_path / "s", write=True) as store:
        Campaign(store, sweep.cells, sweep.recipe, name="small").run(executor)
        before = {t: store.read(sweep.recipe.text, t) for t in ("runs", "flows")}
        parts = len(list((tmp_path / "s/data/1/runs").iterdir()))
        store.compact(sweep.recipe.text, above=1)
        for table, rows in before.items():
            assert store.read(sweep.recipe.text, table).equals(rows)
    assert parts > 1
    assert [p.name for p in (tmp_path / "s/data/1/flows").iterdir()] == [f"part-{parts + 1:06}.parquet"]
    assert quick_check(tmp_path / "s")


# Precision


def test_seeds_are_added_until_the_interval_is_narrow(tmp_path):
    sweep = small(axes=(CONTROLLER,), seeds=(7, 9))
    precision = Precision(metric="goodput_bps", width=0.2)
    results, status = run_sweep(sweep, tmp_path / "s", Threads(2), precision=precision)
    table = results.cells("goodput_bps")
    for row in table.iter_rows(named=True):
        assert (row["high"] - row["low"]) / row["mean"] <= 0.2
        assert row["n"] > 2
    assert status.total == table["n"].sum()
    first = results.runs.filter(cell=0)["seed"].to_list()
    assert first == [7, 9, *range(10, 10 + len(first) - 2)]
    # the continued sweep keeps the added runs
    again, status = run_sweep(sweep, tmp_path / "s", Threads(2))
    assert status.found == status.total == results.runs.height
    assert again.runs.equals(results.runs)
    capped, _ = run_sweep(
        sweep, tmp_path / "t", Threads(2), precision=Precision(metric="goodput_bps", width=1e-6, most_seeds=12)
    )
    assert capped.runs.height == 24
    with pytest.raises(InputError, match="metric: found"):
        run_sweep(sweep, tmp_path / "u", Threads(1), precision=Precision(metric="goodput", width=0.1))


def test_widths_and_seeds():
    assert parse_width("1%") == parse_width("1 %") == parse_width("0.01") == 0.01
    for bad in ("0", "-1%", "2", "x", "nan"):
        with pytest.raises(InputError, match="--until-width"):
            parse_width(bad)
    assert extended((5, 3), 4) == (5, 3, 6, 7)
    assert math.isclose(parse_width("0.5"), 0.5)


def test_controllers_have_variables_of_their_own(tmp_path):
    """Runs of different controllers in one task share a table in the store; variables that a controller lacks are
    null.
    """
    names = ("westwood", "reno", "fast", "vegas")
    base = {"duration": "1 s", "network": {"bottleneck": {"rate": "5 Mbit/s", "delay": "10 ms"}}}
    flow = {"workload": {"kind": "bulk"}}
    cells = [
        Cell(
            scenario=Scenario.from_dict(
                {**base, "flows": [{**flow, "congestion_control": name}], "record": {"controller": "all"}}
            ),
            keys={},
            seeds=[1, 2],
        )
        for name in names
    ]
    alone = [run(cell.scenario, seed=1).controllers for cell in cells]
    own = {name: set(frame.columns) - set(alone[1].columns) for name, frame in zip(names, alone, strict=True)}
    assert "tau_s" in own["westwood"]
    assert "queued_packets" in own["fast"]
    assert not own["reno"]
    for columns in (None, ("t_s", "cwnd", "tau_s", "queued_packets")):
        with Store(tmp_path / str(columns is None), write=True) as store:
            for some in (cells[:1], cells[2:], cells):
                campaign = Campaign(store, some, Recipe(metrics=(), tables=(("controllers", columns),)))
                assert campaign.run(Threads(1)).finished
            store.compact(campaign.recipe.text, above=1)
            for frame, plain in zip(campaign.by_cell("controllers"), alone, strict=True):
                mine = frame.filter(pl.col("seed") == 1)
                assert mine.height == plain.height > 10
                for column in columns or set().union(*own.values(), plain.columns):
                    if column in plain.columns:
                        assert mine[column].equals(plain[column])
                    else:
                        assert mine[column].null_count() == mine.height
