"""Tests the guess of I31: bursts of IW10's windows do not explain why its advantage shrinks at 96 % load on a fast
lossless link. Three lossless arms have the study's arrivals: five opens unchanged; five opens with paced first
windows, hence without bursts; and single opens. The measure is the fraction of IW10's lead at 72 % that remains at 96
%.
"""

from __future__ import annotations

import polars as pl
import pytest

from ackclock import Batch
from ackclock.study import Plan
from ackclock.study.cells import Cell, collect
from ackclock_studies.iw10 import parts, testbed
from ackclock_studies.iw10.testbed import FAST, FIVE, HEAVY, IW3, IW10, SINGLE

SEEDS = 4
MEDIUM = 0.72
DURATION_S, WARM_UP_S = testbed.LASTING


def means(batch: Batch) -> pl.DataFrame:
    rows = testbed.transactions_of(batch).filter(pl.col("start_s") >= WARM_UP_S)
    return rows.group_by("seed").agg(pl.col("total_s").mean()).sort("seed")


def kept(mode: str, **change: object) -> float:
    """Return IW10's lead at the highest load as a percentage of its lead at 72 %, without losses."""
    cells = [
        Cell(
            scenario=testbed.loaded(FAST, mode, load, arm, duration_s=DURATION_S, queue=parts.LOSSLESS, **change),
            keys={"load": load, "arm": arm},
            stream=f"loaded {FAST} {mode} {load}",
            seeds=SEEDS,
            needs={"transactions": testbed.TRANSACTION_COLUMNS},
            keep={"means": means},
        )
        for load in (MEDIUM, HEAVY[FAST])
        for arm in (IW3, IW10)
    ]
    made = collect("fifty", cells, Plan(jobs=1)).tables["fifty.means"]
    time = {
        (load, arm): float(made.filter(load=load, arm=arm)["total_s"].mean())  # type: ignore[arg-type]
        for load in (MEDIUM, HEAVY[FAST])
        for arm in (IW3, IW10)
    }
    lead = {load: time[load, IW3] - time[load, IW10] for load in (MEDIUM, HEAVY[FAST])}
    return 100 * lead[HEAVY[FAST]] / lead[MEDIUM]


@pytest.mark.deep
def test_without_loss_five_opens_lose_the_lead_with_and_without_bursts_and_single_opens_keep_half() -> None:
    assert kept(FIVE) < 20
    assert kept(FIVE, pace_initial_window=True) < 20
    assert 40 < kept(SINGLE) < 70
