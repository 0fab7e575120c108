"""Two long flows beside transactions on the slow link (I19, I20)."""

from __future__ import annotations

import polars as pl

from ackclock.studies.iw10 import testbed
from ackclock.studies.iw10.testbed import FIVE, HEAVY, IW3, IW10, SLOW
from ackclock.study import Data, Plan
from ackclock.study.cells import first_seed

LOADS = (0.5, 0.75, HEAVY[SLOW])
LONG_FLOWS = 2


def run(plan: Plan) -> Data:
    """Throughput of the long flows together.

    Returns
    -------
    Data
        `background.flows`: load, arm, seed, goodput_bps (of both flows), completed and mean_s of the transactions.
    """
    seeds = plan.count(quick=8, paper=20)
    frames: list[pl.DataFrame] = []
    digests: list[str] = []
    duration, warm_up = testbed.length(SLOW, plan.scale)
    for i, load in enumerate(LOADS):
        for arm in (IW3, IW10):
            plan.report(f"{100 * load:g} %, {arm}", i / len(LOADS))
            scenario = testbed.loaded(SLOW, FIVE, load, arm, duration_s=duration, long_flows=LONG_FLOWS)
            first = first_seed(f"background {load}")
            batch = plan.batch(scenario, range(first, first + seeds), tables=("flows", "transactions"))
            digests += batch.digests
            # the long flows come first in the scenario
            long = (
                batch.flows.filter(pl.col("flow") < LONG_FLOWS)
                .group_by("seed")
                .agg((pl.col("bytes_acked").sum() * 8 / duration).alias("goodput_bps"))
            )
            rows = testbed.transactions_of(batch).filter(pl.col("start_s") >= warm_up)
            short = rows.group_by("seed").agg(
                pl.len().alias("started"),
                pl.col("total_s").count().alias("completed"),
                pl.col("total_s").mean().alias("mean_s"),
            )
            frames.append(
                long.join(short, on="seed", how="left").select(
                    pl.lit(load).alias("load"), pl.lit(arm).alias("arm"), pl.all()
                )
            )
    return Data(
        tables={"background.flows": pl.concat(frames).sort("load", "arm", "seed")}, digests=digests, runs=len(digests)
    )
