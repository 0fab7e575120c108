"""Long flows competing with closed-loop clients, which wait for a response before the next request (I19, I20, I32 in the reading "closed loop").

Poisson arrivals offer the same load however slowly it is served. Once everything has been served, the long flows have
had the same capacity in both arms, and only the work unfinished at the end differs: the longer the run, the smaller
the difference. Closed-loop clients request less when they are served late, so the capacity available to the long
flows does not depend on the run length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import Array, median
from ackclock.scenario import Scenario
from ackclock.study import Bound, Data, Evidence, Plan, Reading, Tables
from ackclock.study.cells import Cell, collect
from ackclock_studies.iw10 import testbed
from ackclock_studies.iw10.testbed import IW3, IW10, SEGMENT, SEGMENTS, SLOW

CLIENTS = 5
PAUSES = ("60 s", "30 s", "10 s")
"""Pauses between a response and the next request, from the lightest to the heaviest load."""
MEDIUM, HEAVY = PAUSES[1:]
NONE = "no transactions"
LONG_FLOWS = 2
DURATION_S = 3600.0
WINDOW = {IW3: 3, IW10: 10}

ARRIVALS = Reading(
    name="arrivals",
    question="When do the transactions beside the long flows begin?",
    options={
        "Poisson": "whatever became of earlier ones, as the slides say",
        "closed loop": "five clients ask again some time after an answer, as netperf's request-response test does",
    },
    why="the slides list Poisson arrivals among the test parameters",
    crossed=False,
)


def scenario(arm: str, pause: str) -> Scenario:
    """Two long flows, and clients with servers that use this initial window; no clients in the arm without transactions."""
    long, host = testbed.stack(initial_window=3), testbed.stack(initial_window=WINDOW.get(arm, 3))
    soon = {"kind": "uniform", "low": "0 s", "high": "1 s"}
    groups = [{**long, "count": LONG_FLOWS, "start": soon, "workload": {"kind": "bulk"}}]
    if arm != NONE:
        work = {
            "kind": "fetch",
            "bytes": f"{SEGMENTS * SEGMENT} bytes",
            "request": f"{testbed.REQUEST} bytes",
            "count": 100_000,
            "pause": pause,
        }
        start = {"kind": "uniform", "low": "0 s", "high": "60 s"}
        groups.append({**host, "count": CLIENTS, "start": start, "workload": work})
    return Scenario.from_dict(
        {
            "name": f"closed loop, pauses of {pause}, {arm}",
            "duration": f"{DURATION_S:g} s",
            "network": testbed.network(SLOW),
            "flows": groups,
        }
    )


def run(plan: Plan) -> Data:
    """Long flows with clients of either initial window, and alone.

    Returns
    -------
    Data
        `closed.flows`: pause, arm, seed, goodput_bps (of both long flows), served (complete answers), mean_s (of complete answers).
    """

    def flows(batch: Batch) -> pl.DataFrame:
        long = (
            batch.flows.filter(pl.col("flow") < LONG_FLOWS)
            .group_by("seed")
            .agg((pl.col("bytes_acked").sum() * 8 / DURATION_S).alias("goodput_bps"))
        )
        total = pl.col("total_s")
        short = batch.fetches.group_by("seed").agg(total.count().alias("served"), total.mean().alias("mean_s"))
        return long.join(short, on="seed", how="left").sort("seed").with_columns(pl.col("served").fill_null(0))

    cells = [
        Cell(
            scenario=scenario(arm, pause),
            keys={"pause": pause, "arm": arm},
            stream=f"closed {pause}",
            seeds=plan.count(quick=16, paper=60),
            needs={"flows": ("flow", "bytes_acked"), "fetches": ("total_s",)},
            keep={"flows": flows},
        )
        for pause in PAUSES
        for arm in (IW3, IW10, *((NONE,) if pause == MEDIUM else ()))
    ]
    return collect("closed", cells, plan)


def column(tables: Tables, pause: str, arm: str, name: str) -> Array:
    """One column of the runs, by seed."""
    rows = tables["closed.flows"].filter(pause=pause, arm=arm).sort("seed")
    return rows[name].to_numpy().astype(np.float64)


def long_flows(tables: Tables, pause: str) -> Array:
    """Ratio of the long flows' throughput with IW10 clients to that with IW3 clients, seed by seed."""
    ten, three = (column(tables, pause, arm, "goodput_bps") for arm in (IW10, IW3))
    return np.asarray(ten / three)


def beside(tables: Tables) -> Sequence[Evidence]:
    """The ratio at each pause, and the long flows' cost per response and per minute. No value affects the verdict.
    Empty on the kernel, where no such runs exist.
    """
    if "closed.flows" not in tables:
        return []
    found = [
        Evidence.of(
            median(long_flows(tables, pause)),
            f"closed loop, pauses of {pause}: throughput of the long flows, IW10 / IW3",
            Bound(),
            weighs=False,
            key=f"closed_{pause.removesuffix(' s')}",
        )
        for pause in PAUSES
    ]
    alone = column(tables, MEDIUM, NONE, "goodput_bps")
    for arm in (IW3, IW10):
        lost = alone - column(tables, MEDIUM, arm, "goodput_bps")
        each = lost * DURATION_S / 8 / column(tables, MEDIUM, arm, "served") / 1000
        minute = lost * 60 / 8 / 1000
        for values, what, key in ((each, "an answer", "answer"), (minute, "a minute", "minute")):
            found.append(
                Evidence.of(
                    median(values),
                    f"closed loop, pauses of {MEDIUM}, {arm}: what {what} costs the long flows",
                    Bound(),
                    unit="kB",
                    weighs=False,
                    key=f"{key}_{arm}",
                )
            )
    return found


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {"long flows beside clients in a closed loop": scenario(IW10, MEDIUM)}
