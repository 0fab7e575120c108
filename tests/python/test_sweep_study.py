from __future__ import annotations

import polars as pl

from ackclock import Scenario, run_batch
from ackclock.study.cells import Cell, Cells
from ackclock.study.plan import Plan
from ackclock.sweep import Store


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
