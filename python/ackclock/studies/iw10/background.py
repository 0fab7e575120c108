"""Two long flows beside transactions on the slow link (I19, I20)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Block, Table
from ackclock.report import Cell as TableCell
from ackclock.scenario import Scenario
from ackclock.studies.iw10 import testbed
from ackclock.studies.iw10.completion_times import seconds
from ackclock.studies.iw10.testbed import FAST, FIVE, HEAVY, IW3, IW10, SLOW
from ackclock.study import (
    Chapter,
    Claim,
    Criterion,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
    above,
    at_least,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.estimates import Array, median

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


def long_flows(tables: Tables, load: float) -> Array:
    """Throughput of the long flows under transactions of IW10 over that under IW3, seed by seed."""
    t = tables["background.flows"].filter(pl.col("load") == load).sort("seed")
    three, ten = (t.filter(pl.col("arm") == arm)["goodput_bps"].to_numpy() for arm in (IW3, IW10))
    return np.asarray(ten / three)


def i19(tables: Tables) -> Sequence[Evidence]:
    """Long flows beside transactions."""
    found = [
        Evidence.of(
            median(long_flows(tables, load)),
            f"{100 * load:g} %: throughput of the long flows, IW10 / IW3",
            at_least(0.95),
        )
        for load in LOADS
    ]
    highest = HEAVY[SLOW]
    found.append(
        Evidence.of(median(long_flows(tables, highest)), f"{100 * highest:g} %: the same, above 1", above(1.0))
    )
    return found


def i20(tables: Tables) -> Sequence[Evidence]:
    """Seeds each way."""
    quotient = long_flows(tables, 0.75)
    return [
        Evidence(label=f"75 %: runs {name}", value=float(count), bound=at_least(1), unit="runs", seeds=quotient.size)
        for name, count in (
            ("in which the long flows gain", int((quotient > 1).sum())),
            ("in which they lose", int((quotient < 1).sum())),
        )
    ]


def background_table(tables: Tables) -> Table:
    """Throughput of long flows."""
    t = tables["background.flows"]
    rows: list[tuple[TableCell | str, ...]] = []
    for load in LOADS:
        own = {arm: t.filter((pl.col("load") == load) & (pl.col("arm") == arm)).sort("seed") for arm in (IW3, IW10)}
        bps = {arm: own[arm]["goodput_bps"].to_numpy() for arm in own}
        e = median(bps[IW10] / bps[IW3])
        rows.append(
            (
                TableCell(text=f"{100 * load:g} %", kind="head"),
                *(f"{np.median(bps[arm]) / 1000:.2f}" for arm in (IW3, IW10)),
                f"{e.value:.2f} ({e.low:.2f} to {e.high:.2f})",
                *(seconds(float(np.median(own[arm]["mean_s"].to_numpy()))) for arm in (IW3, IW10)),
            )
        )
    return Table(
        caption="Two long flows and transactions, five opens, at 64 kb/s. Medians over seeds; the ratio with its 95 % interval.",
        header=(
            "load of transactions",
            "long flows, kb/s, beside IW3",
            "beside IW10",
            "IW10 / IW3",
            "transactions, mean (s), IW3",
            "IW10",
        ),
        rows=tuple(rows),
    )


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="I19",
        place="slides: long flows; RFC 6928, Appendix A",
        statement="Long flows do as well or better beside IW10 transactions.",
        direction=Criterion(
            measure=i19,
            reading="64 kb/s, five opens, two long flows: throughput at least 0.95 times, and above 1 at the higher load.",
        ),
    ),
    Claim(
        id="I20",
        place="slides: long flows",
        statement="Sometimes it is the other way round.",
        direction=Criterion(
            measure=i20,
            reading="75 %: at least one run each way.",
        ),
    ),
)


def blocks(t: Tables) -> Sequence[Block]:
    """For the report."""
    return (background_table(t), figure(t))


def scenarios() -> Mapping[str, Scenario]:
    """As written."""
    return {"long flows beside": testbed.loaded(SLOW, FIVE, 0.75, IW10, duration_s=3600, long_flows=2)}


CHAPTER = Chapter(
    title="Long flows beside transactions",
    experiments=(
        Experiment(name="windows", title="cwnd and ssthresh of a long flow", run=run_traces, weight=1),
        Experiment(name="background", title="two long flows beside transactions", run=run, weight=4),
    ),
    claims=CLAIMS,
    blocks=blocks,
    scenarios=scenarios,
)
