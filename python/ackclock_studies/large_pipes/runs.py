"""Helpers shared by the chapters: ramps, columns, and times that may not be reached within a run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch, metrics
from ackclock.judge.estimates import NOTHING, Array, mean_over_runs
from ackclock.stats import Estimate
from ackclock.study import Bound, Evidence, Tables
from ackclock.study.cells import Reduce
from ackclock_studies.large_pipes.paths import Bottleneck

NO_BOUND = Bound()
GOODPUT = {"goodput": ("flow", "t_s", "goodput_bps")}


def goodput_of_first(batch: Batch) -> pl.DataFrame:
    """First flow's goodput over time."""
    return batch.goodput.filter(pl.col("flow") == 0).select("seed", "t_s", "goodput_bps")


def ramp(path: Bottleneck, share: float = 1.0) -> Reduce:
    """Reduces a batch to the time until the first flow reaches 90 % of its share."""

    def reduce(batch: Batch) -> pl.DataFrame:
        rows = []
        for (seed,), own in goodput_of_first(batch).group_by("seed", maintain_order=True):
            rows.append({"seed": seed, "ramp_s": metrics.ramp_up_s(own, share * path.payload_bps, path.rtt_s)})
        return pl.DataFrame(rows, schema_overrides={"seed": pl.UInt64})

    return reduce


def column_of(table: pl.DataFrame, column: str, **keys: Any) -> Array:
    """Column values in the rows with the given keys."""
    for key, value in keys.items():
        table = table.filter(pl.col(key) == value)
    return table.sort("run")[column].to_numpy().astype(np.float64)


def pick(tables: Tables, table: str, column: str, **keys: object) -> Array:
    """One cell's column, one value per run."""
    t = tables[table]
    for key, value in keys.items():
        t = t.filter(pl.col(key) == value)
    return t.sort("run")[column].to_numpy().astype(np.float64)


def mean_time(times: Array, cap_s: float, label: str, bound: Bound, *, key: str = "", weighs: bool = True) -> Evidence:
    """Mean of times with Student's interval; if a run ended first, only a lower bound of the mean."""
    if np.isfinite(times).all():
        return Evidence.of(mean_over_runs(times), label, bound, unit="s", key=key, weighs=weighs)
    return Evidence(
        label=label,
        value=math.inf,
        low=float(np.minimum(times, cap_s).mean()),
        high=math.inf,
        bound=bound,
        unit="s",
        seeds=times.size,
        weighs=weighs,
        key=key,
        not_reached=int(np.isinf(times).sum()),
        cap=cap_s,
    )


def geometric(ratios: Array) -> Estimate:
    """Geometric mean of positive ratios, one per run, with Student's interval for their logarithms; `NOTHING` if a ratio is unknown."""
    if not (np.isfinite(ratios).all() and (ratios > 0).all()):
        return NOTHING
    e = mean_over_runs(np.log(ratios))
    value, low, high = (math.exp(min(x, 700.0)) for x in (e.value, e.low, e.high))
    return Estimate(value=value, low=low, high=high, level=e.level, n=e.n)
