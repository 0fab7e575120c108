"""The loaded testbed: every link rate, mode of opening and load, with IW3, IW10 and the half-and-half mix."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import Array
from ackclock.scenario import Scenario
from ackclock.study import Data, Plan, Tables
from ackclock.study.cells import Cell, Reduce, collect
from ackclock.study.plan import KERNEL
from ackclock.units import DURATION, whole
from ackclock_studies.iw10 import testbed
from ackclock_studies.iw10.readings import CONNECT, EXTREME, EXTREMES, LENGTH, LENGTHS, settings
from ackclock_studies.iw10.testbed import ARMS, FAST, FIVE, HEAVY, IW3, IW10, LOADS, MODES, RATES, SINGLE, SLOW

QUANTILES = np.unique(np.concatenate([np.linspace(0, 0.99, 100), 1 - np.geomspace(0.01, 1e-4, 60)]))
"""Quantiles of stored distributions: every percentile, with finer steps in the tail."""

KEYS = ("rate", "mode", "load", "arm", "sack")

EQUAL = 1000
"""Number of transactions per run averaged in `first_mean_s`: the same on both links, so that the spread over runs can be compared."""

LOSES = ((SINGLE, HEAVY[FAST]), (FIVE, 0.72), (FIVE, HEAVY[FAST]))
"""Fast-link cells with losses. In the other cells SACK has no effect, and quick scale does not run them without it."""

LONG_S = 70
"""Threshold above which the slides call a completion time long."""


def cell(
    scenario: Scenario,
    keys: Mapping[str, object],
    *,
    stream: str,
    seeds: int,
    warm_up_s: float,
    by_window: bool = True,
    quantiles: bool = False,
    pairs: bool = False,
) -> Cell:
    """Return a cell that stores transaction summaries instead of one row per transaction.

    Parameters
    ----------
    scenario, keys, stream, seeds
        Arguments of the cell.
    warm_up_s
        Transactions that arrive earlier are not counted.
    by_window
        Also summarise each initial window separately; otherwise only all transactions.
    quantiles
        Also keep the distribution over all seeds.
    pairs
        Also keep the mean of each client-server pair.
    """
    end_s = whole(scenario.duration, DURATION) / 1e9

    def counted(batch: Batch) -> pl.DataFrame:
        return testbed.transactions_of(batch).filter(pl.col("start_s") >= warm_up_s)

    def times(batch: Batch) -> pl.DataFrame:
        found = summaries(counted(batch), end_s).with_columns(measured_s=pl.lit(end_s - warm_up_s))
        return found if by_window else found.filter(pl.col("iw") == 0)

    keep: dict[str, Reduce] = {"times": times, "links": testbed.bottleneck_of}
    if quantiles:
        keep["quantiles"] = lambda batch: distribution(counted(batch))
    if pairs:
        mean = pl.col("total_s").mean().alias("mean_s")
        keep["pairs"] = lambda batch: (
            counted(batch)
            .with_columns(pl.col("flow").alias("pair"))
            .group_by("seed", "pair")
            .agg(mean)
            .sort("seed", "pair")
        )
    needs = {"transactions": testbed.TRANSACTION_COLUMNS, "links": testbed.LINK_COLUMNS}
    return Cell(scenario=scenario, keys=keys, stream=stream, seeds=seeds, needs=needs, keep=keep)


def summaries(rows: pl.DataFrame, end_s: float) -> pl.DataFrame:
    """One row per seed and initial window; initial window 0 means all transactions of the run.

    Transactions incomplete at `end_s` are excluded from the times, except in `censored_mean_s`, which counts their
    age at `end_s` and is therefore a lower bound on the overall mean.
    """
    total = pl.col("total_s")
    data = total - pl.col("connect_s")
    timeouts = pl.col("rtos") + pl.col("syn_retransmissions")
    what = (
        pl.len().alias("started"),
        total.count().alias("completed"),
        total.null_count().alias("incomplete"),
        total.mean().alias("mean_s"),
        total.median().alias("p50_s"),
        *(total.quantile(q, "linear").alias(name) for q, name in ((0.95, "p95_s"), (0.99, "p99_s"), (0.999, "p999_s"))),
        total.max().alias("max_s"),
        total.fill_null(end_s - pl.col("start_s")).mean().alias("censored_mean_s"),
        data.median().alias("data_p50_s"),
        data.mean().alias("data_mean_s"),
        total.sort_by("start_s").head(EQUAL).mean().alias("first_mean_s"),
        pl.col("retransmissions").mean().alias("retransmissions"),
        timeouts.mean().alias("timeouts"),
        (total > LONG_S).sum().alias("long"),
        ((total > LONG_S) & (timeouts >= 2)).sum().alias("long_two_timeouts"),
    )
    each = rows.group_by("seed", "iw").agg(*what)
    every = rows.group_by("seed").agg(*what).with_columns(pl.lit(0, dtype=each.schema["iw"]).alias("iw"))
    return pl.concat([every.select(each.columns), each]).sort("seed", "iw")


def distribution(rows: pl.DataFrame) -> pl.DataFrame:
    """Completion-time quantiles over all seeds, for each initial window and for all transactions."""
    found = []
    for iw, own in [(0, rows), *((int(key[0]), group) for key, group in rows.group_by("iw"))]:
        values = own["total_s"].drop_nulls().to_numpy()
        if values.size:
            found.append(
                pl.DataFrame(
                    {
                        "iw": np.full(QUANTILES.size, iw),
                        "quantile": QUANTILES,
                        "value_s": np.quantile(values, QUANTILES),
                    }
                )
            )
    return pl.concat(found).sort("iw", "quantile")


def grid(scale: str = "paper") -> list[tuple[str, str, float]]:
    """The cells, in order."""
    loads = testbed.KERNEL_LOADS if scale == KERNEL else LOADS
    return [(rate, mode, load) for rate in RATES for mode in MODES for load in loads[rate]]


def run_slow(plan: Plan) -> Data:
    """The slow link at every load: IW3, IW10, mix; without SACK for the pure arms.

    Returns
    -------
    Data
        `slow.times` (per seed and initial window), `slow.links` (per seed), `slow.pairs` (per seed and pair), `slow.quantiles` (over
        all seeds); keys rate, mode, load (as the slides call it), arm, sack.
    """
    if plan.scale == KERNEL:
        return collect("slow", _cells(plan, SLOW, (6, 6)), plan)
    seeds = plan.count(quick=20, paper=100, readings=24), plan.count(quick=12, paper=40, readings=12)
    return collect("slow", _cells(plan, SLOW, seeds), plan)


def run_fast(plan: Plan) -> Data:
    """Transactions on the fast link.

    Returns
    -------
    Data
        `fast.times`, `fast.links`, `fast.pairs`, `fast.quantiles`.
    """
    seeds = plan.count(quick=6, paper=40)
    return collect("fast", _cells(plan, FAST, (seeds, seeds)), plan)


def _cells(plan: Plan, rate: str, seeds: tuple[int, int]) -> list[Cell]:
    """Return a link's cells, with the given numbers of seeds with and without SACK."""
    found = []
    extra = {**settings(plan, rate), **testbed.hosts(plan.scale)}
    duration, warm_up = testbed.length(rate, plan.scale)
    if rate == SLOW and plan.scale != KERNEL:
        duration, warm_up = LENGTHS[LENGTH.of(plan)]
    for _, mode, load in (place for place in grid(plan.scale) if place[0] == rate):
        offered = EXTREMES[EXTREME.of(plan)] if (rate, load) == (SLOW, HEAVY[SLOW]) else load
        for arm in ARMS:
            for sack in (True, False) if arm in (IW3, IW10) and plan.scale != KERNEL else (True,):
                if not sack and plan.scale == "quick" and rate == FAST and (mode, load) not in LOSES:
                    continue
                found.append(
                    cell(
                        testbed.loaded(rate, mode, offered, arm, duration_s=duration, sack=sack, **extra),
                        dict(zip(KEYS, (rate, mode, load, arm, sack), strict=True)),
                        stream=f"loaded {rate} {mode} {load}",
                        seeds=seeds[not sack],
                        warm_up_s=warm_up,
                        quantiles=sack,
                        pairs=sack,
                    )
                )
    return found


def run_traces(plan: Plan) -> Data:
    """The bottleneck queue over a time interval, for one seed.

    Returns
    -------
    Data
        `traces.queue`: rate, mode, load, arm, t_s, packets.
    """
    cells = []
    stretches = ((SLOW, SINGLE, 0.75, 600.0, 1.0), (FAST, FIVE, HEAVY[FAST], 30.0, 0.02))
    for rate, mode, load, stretch, interval in stretches:
        warm_up = testbed.length(rate, plan.scale)[1]
        for arm in (IW3, IW10):
            scenario = testbed.loaded(
                rate, mode, load, arm, duration_s=warm_up + stretch, record={"queue_interval": f"{interval} s"}
            )
            cells.append(
                Cell(
                    scenario=scenario,
                    keys={"rate": rate, "mode": mode, "load": load, "arm": arm},
                    stream=f"loaded {rate} {mode} {load}",
                    seeds=1,
                    needs={"queue_samples": ("link", "t_s", "packets")},
                    keep={"queue": _queue_after(warm_up)},
                )
            )
    return collect("traces", cells, plan)


def _queue_after(start_s: float) -> Reduce:
    def queue(batch: Batch) -> pl.DataFrame:
        own = (pl.col("link") == testbed.BOTTLENECK) & (pl.col("t_s") >= start_s)
        return batch.queue_samples.filter(own).select(pl.col("t_s") - start_s, "packets")

    return queue


def table(tables: Tables, rate: str, name: str) -> pl.DataFrame:
    """One link's table."""
    return tables[f"{'slow' if rate == SLOW else 'fast'}.{name}"]


def cells(tables: Tables, rate: str = "") -> list[tuple[str, str, float]]:
    """The cells that were run, in order, for one link or both."""
    found = [table(tables, r, "links").select("rate", "mode", "load") for r in ((rate,) if rate else RATES)]
    return pl.concat(found).unique(maintain_order=True).rows()


def loads(tables: Tables, rate: str) -> list[float]:
    """Loads for a link rate."""
    return sorted({load for _, _, load in cells(tables, rate)})


def pick(tables: Tables, name: str, rate: str, mode: str, load: float, arm: str, sack: bool = True) -> pl.DataFrame:
    """Rows of one cell and arm, by seed."""
    return (
        table(tables, rate, name)
        .filter(
            (pl.col("rate") == rate)
            & (pl.col("mode") == mode)
            & (pl.col("load") == load)
            & (pl.col("arm") == arm)
            & (pl.col("sack") == sack)
        )
        .sort("seed", maintain_order=True)
    )


def link(tables: Tables, rate: str, mode: str, load: float, arm: str, column: str, *, sack: bool = True) -> Array:
    """A bottleneck column, one value per seed."""
    return pick(tables, "links", rate, mode, load, arm, sack)[column].to_numpy().astype(np.float64)


def times(
    tables: Tables, rate: str, mode: str, load: float, arm: str, column: str, *, iw: int = 0, sack: bool = True
) -> Array:
    """A summary column, one value per seed, for the transactions with this initial window (0: all). A seed in which
    none completed is NaN. In the reading without connection setup, mean times cover only the data transfer.
    """
    if column == "mean_s" and CONNECT.of(tables) == "out":
        column = "data_mean_s"
    rows = pick(tables, "times", rate, mode, load, arm, sack)
    seeds = rows["seed"].unique(maintain_order=True).to_frame()
    own = seeds.join(rows.filter(pl.col("iw") == iw), on="seed", how="left", maintain_order="left")
    return own[column].to_numpy().astype(np.float64)
