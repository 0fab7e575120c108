"""Two long flows beside transactions on the slow link (I19, I20)."""

from __future__ import annotations

from typing import Any

import polars as pl

from ackclock import Batch
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.studies.iw10 import testbed
from ackclock.studies.iw10.testbed import FAST, FIVE, HEAVY, IW3, IW10, SLOW
from ackclock.study import Data, Plan, Tables
from ackclock.study.cells import Cell, collect

LOADS = (0.5, 0.75, HEAVY[SLOW])
LONG_FLOWS = 2


def run_traces(plan: Plan) -> Data:
    """Windows of one long flow beside transactions, over a stretch of one run.

    Returns
    -------
    Data
        `windows.samples`: rate, arm, t_s, cwnd, ssthresh (segments; null before the first reduction).
    """
    cells = []
    for rate, load, stretch, interval in ((SLOW, 0.75, 900.0, 1.0), (FAST, 0.72, 60.0, 0.1)):
        for arm in (IW3, IW10):
            scenario = testbed.loaded(
                rate, FIVE, load, arm, duration_s=stretch, long_flows=1, record={"sample_interval": f"{interval} s"}
            )
            cells.append(
                Cell(
                    scenario=scenario,
                    keys={"rate": rate, "arm": arm},
                    stream=f"windows {rate}",
                    seeds=1,
                    needs={"samples": ("flow", "t_s", "cwnd", "ssthresh")},
                    keep={"samples": _windows},
                )
            )
    return collect("windows", cells, plan)


def _windows(batch: Batch) -> pl.DataFrame:
    return batch.samples.filter(pl.col("flow") == 0).select(
        "t_s",
        "cwnd",
        pl.when(pl.col("ssthresh") < INFINITE).then(pl.col("ssthresh")).alias("ssthresh"),
    )


INFINITE = 0x7FFFFFFF
"""ssthresh before the first reduction."""


def figure(tables: Tables) -> Figure:
    """Cwnd and ssthresh of the long flow."""
    t = tables["windows.samples"]

    def draw() -> Any:
        figure, axes = new(7.8, 4.4, nrows=2, ncols=2, sharey="row")
        for row, rate in enumerate((SLOW, FAST)):
            for column, arm in enumerate((IW3, IW10)):
                own = t.filter((pl.col("rate") == rate) & (pl.col("arm") == arm))
                ax = axes[row][column]
                ax.plot(own["t_s"], own["cwnd"], color=OKABE_ITO["blue"], lw=0.9, label="cwnd")
                ax.plot(own["t_s"], own["ssthresh"], color=OKABE_ITO["vermilion"], lw=1.1, ls="--", label="ssthresh")
                ax.set_title(f"{rate}, beside {arm}")
            axes[row][0].set_ylabel("segments")
        for ax in axes[-1]:
            ax.set_xlabel("time (s)")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return figure

    mean = {
        (rate, arm): float(t.filter((pl.col("rate") == rate) & (pl.col("arm") == arm))["cwnd"].to_numpy().mean())
        for rate in (SLOW, FAST)
        for arm in (IW3, IW10)
    }
    return Figure(
        name="windows",
        title=(
            f"Mean window of a long flow: {mean[SLOW, IW3]:.1f} segments beside IW3 and {mean[SLOW, IW10]:.1f} beside IW10 at 64 kb/s, "
            f"{mean[FAST, IW3]:.0f} and {mean[FAST, IW10]:.0f} at 20 Mb/s"
        ),
        caption="cwnd and ssthresh of one CUBIC flow beside transactions, five opens, 75 % of 64 kb/s and 72 % of 20 Mb/s; one seed, same arrivals.",
        draw=draw,
        data={"windows": t},
    )


def run(plan: Plan) -> Data:
    """Throughput of the long flows together.

    Returns
    -------
    Data
        `background.flows`: load, arm, seed, goodput_bps (of both flows), completed and mean_s of the transactions.
    """
    seeds = plan.count(quick=8, paper=20)
    duration, warm_up = testbed.length(SLOW, plan.scale)

    def flows(batch: Batch) -> pl.DataFrame:
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
        return long.join(short, on="seed", how="left").sort("seed")

    cells = [
        Cell(
            scenario=testbed.loaded(
                SLOW, FIVE, load, arm, duration_s=duration, long_flows=LONG_FLOWS, **testbed.hosts(plan.scale)
            ),
            keys={"load": load, "arm": arm},
            stream=f"background {load}",
            seeds=seeds,
            needs={"flows": ("flow", "bytes_acked"), "transactions": testbed.TRANSACTION_COLUMNS},
            keep={"flows": flows},
        )
        for load in LOADS
        for arm in (IW3, IW10)
    ]
    return collect("background", cells, plan)
