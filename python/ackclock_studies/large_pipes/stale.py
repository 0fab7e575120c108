"""A stale value in the metrics cache (W28)."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import mean_over_runs
from ackclock.scenario import Scenario
from ackclock.study import Bound, Chapter, Data, Evidence, Experiment, Plan, Tables
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.large_pipes import paths
from ackclock_studies.large_pipes.paths import ALABAMA, NEWRENO, SENDERS
from ackclock_studies.large_pipes.runs import NO_BOUND, column_of, geometric

STALE_AFTER_S = 60.0


def stale(protocol: str = NEWRENO) -> Scenario:
    """Return a transfer under random loss, as in slide 15's experiment, then one without: the first one's cache entry
    is stale for the second.
    """
    return paths.scenario(
        ALABAMA,
        [(SENDERS[protocol], 2)],
        duration_s=3 * STALE_AFTER_S,
        workload={"kind": "transfer", "bytes": "10 MB"},
        stagger_s=STALE_AFTER_S,
        steps=[{"at": "0 s", "loss": "0.5 %"}, {"at": f"{STALE_AFTER_S - 1:g} s", "loss": "0 %"}],
        metrics_cache={},
    )


def run_stale(plan: Plan) -> Data:
    """10 MB without loss after 10 MB with 0.5 % loss, for NewReno with its cache; and the second transfer alone.

    Returns
    -------
    Data
        `stale.times`: cache ("stale" or "empty"), run, completion_s of the transfer without loss.
    """
    cells = []
    fresh = paths.scenario(
        ALABAMA, [(SENDERS[NEWRENO], 1)], duration_s=STALE_AFTER_S, workload={"kind": "transfer", "bytes": "10 MB"}
    )
    for cache, made, flow in (("stale", stale(), 1), ("empty", fresh, 0)):

        def times(batch: Batch, flow: int = flow) -> pl.DataFrame:
            return batch.flows.filter(pl.col("flow") == flow).select("seed", "completion_s")

        cells.append(
            Cell(
                scenario=made,
                keys={"cache": cache},
                stream="large-pipes stale",
                seeds=plan.count(quick=6, paper=12),
                needs={"flows": ("flow", "completion_s")},
                keep={"times": times},
            )
        )
    return collect("stale", cells, plan, numbered=True)


def w28(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """A stale ssthresh on path 1."""
    t = {cache: column_of(tables["stale.times"], "completion_s", cache=cache) for cache in ("stale", "empty")}
    return [
        Evidence.of(
            geometric(t["stale"] / t["empty"]),
            "10 MB, NewReno: after a lossy run / with an empty cache",
            bound,
            key="slower",
        ),
        *(
            Evidence.of(mean_over_runs(v), f"10 MB, NewReno, {k} cache", NO_BOUND, unit="s", weighs=False, key=k)
            for k, v in t.items()
        ),
    ]


CHAPTER = Chapter(
    experiments=(Experiment(name="stale", title="a transfer after one under random loss", run=run_stale, weight=1),),
    **declared(__name__),
    scenarios=lambda: {"path 1, NewReno after a lossy run": stale()},
)
