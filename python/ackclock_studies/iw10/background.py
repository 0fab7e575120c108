"""Two long flows that share the slow link with transactions (I19, I20, I32)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import Array, median, minus
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Block, Table, TableCell
from ackclock.scenario import Scenario
from ackclock.stats import Estimate
from ackclock.study import (
    Bound,
    Chapter,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
    above,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.plan import KERNEL
from ackclock.study.table import declared
from ackclock_studies.iw10 import closed, testbed
from ackclock_studies.iw10.completion_times import seconds
from ackclock_studies.iw10.readings import COUNTS, EXTREME, EXTREMES, LENGTH, LENGTHS, SETUP, settings
from ackclock_studies.iw10.style import COLOUR, HATCH
from ackclock_studies.iw10.testbed import FIVE, HEAVY, IW3, IW10, SLOW

LOADS = (0.5, 0.75, HEAVY[SLOW])
LONG_FLOWS = 2


def run_traces(plan: Plan) -> Data:
    """Both long flows' windows while competing with transactions, over part of one run.

    Returns
    -------
    Data
        `windows.samples`: arm, flow, t_s, cwnd, ssthresh (segments; null before the first reduction).
    """
    cells = [
        Cell(
            scenario=testbed.loaded(
                SLOW, FIVE, 0.75, arm, duration_s=900.0, long_flows=LONG_FLOWS, record={"sample_interval": "1 s"}
            ),
            keys={"arm": arm},
            stream="windows",
            seeds=1,
            needs={"samples": ("flow", "t_s", "cwnd", "ssthresh")},
            keep={"samples": _windows},
        )
        for arm in (IW3, IW10)
    ]
    return collect("windows", cells, plan)


def _windows(batch: Batch) -> pl.DataFrame:
    return batch.samples.filter(pl.col("flow") < LONG_FLOWS).select(
        "flow",
        "t_s",
        "cwnd",
        "ssthresh",
    )


def figure(tables: Tables) -> Figure:
    """Values of cwnd and ssthresh for the two long flows."""
    t = tables["windows.samples"]

    def draw() -> Any:
        figure, axes = new(7.8, 4.4, nrows=LONG_FLOWS, ncols=2, sharey=True)
        for row in range(LONG_FLOWS):
            for column, arm in enumerate((IW3, IW10)):
                own = t.filter((pl.col("flow") == row) & (pl.col("arm") == arm))
                ax = axes[row][column]
                ax.plot(own["t_s"], own["cwnd"], color=OKABE_ITO["blue"], lw=0.9, label="cwnd")
                ax.plot(own["t_s"], own["ssthresh"], color=OKABE_ITO["vermilion"], lw=1.1, ls="--", label="ssthresh")
                ax.set_title(f"long flow {row + 1}, beside {arm}")
            axes[row][0].set_ylabel("segments")
        for ax in axes[-1]:
            ax.set_xlabel("time (s)")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return figure

    mean = {arm: float(t.filter(pl.col("arm") == arm)["cwnd"].to_numpy().mean()) for arm in (IW3, IW10)}
    return Figure(
        name="windows",
        title=f"Mean window of two long flows: {mean[IW3]:.1f} segments beside IW3, {mean[IW10]:.1f} beside IW10",
        caption="cwnd and ssthresh of two CUBIC flows beside transactions, 64 kb/s, five opens, 75 %; one seed, the same arrivals left and right.",
        draw=draw,
        data={"windows": t},
    )


def throughputs(tables: Tables) -> Figure:
    """Throughput of the long flows against each kind of transactions."""
    rows = []
    for load in LOADS:
        for arm in (IW3, IW10):
            own = tables["background.flows"].filter((pl.col("load") == load) & (pl.col("arm") == arm))
            e = median(own["goodput_bps"].to_numpy() / 1000)
            rows.append({"load": load, "arm": arm, "kbps": e.value, "low": e.low, "high": e.high})
    table = pl.DataFrame(rows)

    def draw() -> Any:
        made, ax = new(5.2, 3.0)
        for i, arm in enumerate((IW3, IW10)):
            own = table.filter(pl.col("arm") == arm)
            x = np.arange(len(LOADS)) + 0.36 * (i - 0.5)
            value = own["kbps"].to_numpy()
            error = np.abs(own.select("low", "high").to_numpy().T - value)
            ax.bar(x, value, 0.34, color=COLOUR[arm], hatch=HATCH[arm], edgecolor="white", lw=0, label=f"beside {arm}")
            ax.errorbar(x, value, yerr=error, fmt="none", ecolor="#222222", lw=0.9)
        ax.set_xticks(range(len(LOADS)), [f"{100 * load:g} %" for load in LOADS])
        ax.set(xlabel="load of the transactions", ylabel="both long flows (kb/s)")
        ax.grid(axis="x", visible=False)
        ax.legend()
        return made

    gains = [median(long_flows(tables, load)) for load in LOADS]
    return Figure(
        name="cross-traffic",
        title="Long flows beside IW10 get "
        + ", ".join(f"{e.value:.2f}" for e in gains)
        + " times as much as beside IW3",
        caption="Throughput of two long flows together beside transactions, 64 kb/s, five opens; medians over seeds with 95 % intervals.",
        draw=draw,
        data={"throughputs": table},
    )


def run(plan: Plan) -> Data:
    """Aggregate throughput of the long flows.

    Returns
    -------
    Data
        `background.flows`: load, arm, seed, goodput_bps (of both flows), completed and mean_s of the transactions.
    """
    # I20 is about a fraction of runs: 80 runs without the effect rule out 5 %; 24 do not
    seeds = {
        load: 8 if plan.scale == KERNEL else plan.count(quick={0.5: 8, 0.75: 48}.get(load, 16), paper=100, readings=12)
        for load in LOADS
    }
    duration, warm_up = testbed.length(SLOW, plan.scale) if plan.scale == KERNEL else LENGTHS[LENGTH.of(plan)]
    extra = {**settings(plan, SLOW), **testbed.hosts(plan.scale)}

    def flows(batch: Batch) -> pl.DataFrame:
        # the long flows are the first ones in the scenario
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
                SLOW, FIVE, _offered(plan, load), arm, duration_s=duration, long_flows=LONG_FLOWS, **extra
            ),
            keys={"load": load, "arm": arm},
            stream=f"background {load}",
            seeds=seeds[load],
            needs={"flows": ("flow", "bytes_acked"), "transactions": testbed.TRANSACTION_COLUMNS},
            keep={"flows": flows},
        )
        for load in LOADS
        for arm in (IW3, IW10)
    ]
    return collect("background", cells, plan)


def _offered(plan: Plan, load: float) -> float:
    return EXTREMES[EXTREME.of(plan)] if load == HEAVY[SLOW] else load


def long_flows(tables: Tables, load: float) -> Array:
    """Ratio of the long flows' throughput against IW10 transactions to that against IW3 ones, seed by seed."""
    t = tables["background.flows"].filter(pl.col("load") == load).sort("seed")
    three, ten = (t.filter(pl.col("arm") == arm)["goodput_bps"].to_numpy() for arm in (IW3, IW10))
    return np.asarray(ten / three)


def _key(load: float) -> str:
    return f"at{1000 * load:.0f}"


def _closed_loop(tables: Tables) -> bool:
    return closed.ARRIVALS.of(tables) != closed.ARRIVALS.main


def i19(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Throughput of long flows competing with transactions; in the closed loop, at each pause."""
    if _closed_loop(tables):
        return [
            Evidence.of(median(closed.long_flows(tables, pause)), f"pauses of {pause}: throughput, IW10 / IW3", bound)
            for pause in closed.PAUSES
        ]
    return [
        *closed.beside(tables),
        *(
            Evidence.of(
                median(long_flows(tables, load)),
                f"{100 * load:g} %: throughput of the long flows, IW10 / IW3",
                bound,
                weighs=load >= 0.75,
                key=_key(load),
            )
            for load in LOADS
        ),
    ]


VISIBLE = 1.05
"""Ratio, fixed in advance, above which a long flow counts as better off in a run."""


def i20(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Fractions of runs in which the long flows get more, and in which they get less."""
    ratio = closed.long_flows(tables, closed.MEDIUM) if _closed_loop(tables) else long_flows(tables, 0.75)
    return [
        Evidence.of(
            share(count, ratio.size),
            f"runs in which the long flows get {name}",
            bound,
            unit="%",
            factor=100,
            weighs=weighs,
            key=key,
        )
        for count, name, bound, weighs, key in (
            (int((ratio >= VISIBLE).sum()), "5 % more beside IW10", bound, True, "more"),
            (int((ratio <= 1 / VISIBLE).sum()), "5 % less", Bound(), False, "less"),
        )
    ]


def share(count: int, n: int) -> Estimate:
    """Fraction of independent runs with its exact interval (Clopper and Pearson)."""
    from scipy.stats import binomtest

    interval = binomtest(count, n).proportion_ci(0.95)
    return Estimate(value=count / n, low=float(interval.low), high=float(interval.high), level=0.95, n=n)


def i32(tables: Tables) -> Sequence[Evidence]:
    """Advantage of the long flows at the highest load and at 75 %."""
    if _closed_loop(tables):
        medium, heavy = (median(closed.long_flows(tables, pause)) for pause in (closed.MEDIUM, closed.HEAVY))
        return [
            Evidence.of(
                heavy, f"pauses of {closed.HEAVY}: throughput of the long flows, IW10 / IW3", above(1), key="heavy"
            ),
            Evidence.of(
                minus(heavy, medium), f"the same, less that with pauses of {closed.MEDIUM}", above(0), key="grows"
            ),
        ]
    medium, heavy = (median(long_flows(tables, load)) for load in (0.75, HEAVY[SLOW]))
    return [
        Evidence.of(heavy, f"{100 * HEAVY[SLOW]:g} %: throughput of the long flows, IW10 / IW3", above(1), key="heavy"),
        Evidence.of(minus(heavy, medium), "the same, less that at 75 %", above(0), key="grows"),
    ]


def background_table(tables: Tables) -> Table:
    """Long-flow throughput."""
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


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (throughputs(t), background_table(t), figure(t))


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    open_loop = testbed.loaded(SLOW, FIVE, 0.75, IW10, duration_s=3600, long_flows=2)
    return {"long flows beside": open_loop, **closed.scenarios()}


CHAPTER = Chapter(
    experiments=(
        Experiment(name="windows", title="cwnd and ssthresh of two long flows", run=run_traces, weight=1),
        Experiment(
            name="background",
            title="two long flows beside transactions",
            run=run,
            weight=6,
            reads=(LENGTH, EXTREME, COUNTS, SETUP),
        ),
        Experiment(name="closed", title="two long flows beside clients in a closed loop", run=closed.run, weight=3),
    ),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
