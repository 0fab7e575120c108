"""What all transfers share: caches, ramps, columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch, metrics
from ackclock.studies.large_pipes.paths import (
    ALABAMA,
    ALABAMA_ATM,
    CALTECH,
    FAST,
    HSTCP,
    NEWRENO,
    Path,
)
from ackclock.study import (
    Tables,
)
from ackclock.study.cells import Reduce
from ackclock.study.estimates import Array

COLD, WARM = "cold", "warm"
W1 = 345
"""Slow start of the later runs ends here, segments: the one number with which 11 s and 7.5 s fit together (W7, W8)."""

WARM_SSTHRESH = {ALABAMA.name: W1, ALABAMA_ATM.name: W1, CALTECH.name: 333}
"""What the cache of the later runs holds: on path 1 the value that the slides' times ask for, on path 2 the pipe."""

CACHED = (HSTCP, NEWRENO, FAST)
"""Hosts that cache ssthresh: Linux. TCPW's Astart sets its own."""


def warmth(protocol: str, path: Path, warm: bool) -> dict[str, Any]:
    """Stack settings of a cold or warm run."""
    return {"metrics_cache": {"ssthresh": WARM_SSTHRESH[path.name]}} if warm and protocol in CACHED else {}


GOODPUT = {"goodput": ("flow", "t_s", "goodput_bps")}


def goodput_of_first(batch: Batch) -> pl.DataFrame:
    """Goodput of the first flow over time."""
    return batch.goodput.filter(pl.col("flow") == 0).select("seed", "t_s", "goodput_bps")


def ramp(path: Path, share: float = 1.0) -> Reduce:
    """Reduces a batch to the time that the first flow takes to 90 % of its share."""

    def reduce(batch: Batch) -> pl.DataFrame:
        rows = []
        for (seed,), own in goodput_of_first(batch).group_by("seed", maintain_order=True):
            rows.append({"seed": seed, "ramp_s": metrics.ramp_up_s(own, share * path.payload_bps, path.rtt_s)})
        return pl.DataFrame(rows, schema_overrides={"seed": pl.UInt64})

    return reduce


def column_of(table: pl.DataFrame, column: str, **keys: Any) -> Array:
    """Values of one column where the keys have these values."""
    for key, value in keys.items():
        table = table.filter(pl.col(key) == value)
    return table.sort("run")[column].to_numpy().astype(np.float64)


def pick(tables: Tables, table: str, column: str, **keys: object) -> Array:
    """A column of one cell, one value per run."""
    t = tables[table]
    for key, value in keys.items():
        t = t.filter(pl.col(key) == value)
    return t.sort("run")[column].to_numpy().astype(np.float64)
