"""Fetch latency on the lossy path: per rule with everything else equal, and as the publication compared kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.studies.prr import path
from ackclock.studies.prr.rules import RATE_HALVING, RULES, SSRB
from ackclock.study import Data, Plan, Tables
from ackclock.study.cells import Cell, collect
from ackclock.study.estimates import Array

FETCH_COLUMNS = (
    "connect_s",
    "total_s",
    "syn_retransmissions",
    "synack_retransmissions",
    "data_retransmissions",
    "data_rtos",
    "rtos_open",
    "rtos_disorder",
    "rtos_recovery",
    "rtos_loss",
    "data_segments_sent",
    "lost_retransmits",
    "recoveries",
)
RECOVERY_COLUMNS = (
    "pipe_enter",
    "ssthresh",
    "cwnd_enter",
    "losses",
    "retransmits",
    "lost_retransmits",
    "max_burst",
    "cwnd_before_exit",
    "cwnd_after_exit",
    "t_enter_s",
    "t_exit_s",
    "srtt_s",
    "cause",
)
FETCHES = {"fetches": FETCH_COLUMNS}
NEEDS = {"fetches": FETCH_COLUMNS, "recoveries": RECOVERY_COLUMNS}

# As many as the small differences of claims P3 to P5 need; the publication had 100 or 1000 of each.
_QUICK = {768: 2_000, 7_680: 2_000, 76_800: 6_000, 768_000: 600}
_PAPER = {768: 20_000, 7_680: 20_000, 76_800: 40_000, 768_000: 4_000}
HALF = "β 0.5"
"""Arm with the multiplicative decrease of Reno."""

KERNELS: dict[str, dict[str, Any]] = {
    "3.0": {"profile": "linux-3.0"},
    "3.2": {"profile": "linux-3.2", "recovery": "prr-linux-3.2"},
    "3.0, initial RTO 1 s": {"profile": "linux-3.0", "initial_rto": "1 s"},
    "3.2, initial RTO 3 s": {"profile": "linux-3.2", "recovery": "prr-linux-3.2", "initial_rto": "3 s"},
}
"""The publication's two arms, and each with the other's initial RTO."""

WITHOUT_PRR, WITH_PRR = "3.0", "3.2"
WITH_PRR_RTO_3 = "3.2, initial RTO 3 s"
WITHOUT_PRR_RTO_1 = "3.0, initial RTO 1 s"


def run(plan: Plan) -> Data:
    """Each rule on the same sender, paired by common random numbers: same seed, same losses until the arms differ.

    Returns
    -------
    Data
        `latency.fetches` and `latency.recoveries`, keys arm, page (bytes), loss (per link and direction), seed.
    """
    cells = []
    for page in path.PAGES:
        for loss in path.LOSSES:
            seeds = plan.count(quick=_QUICK[page], paper=_PAPER[page])
            stream = f"latency {page} {loss}"
            for rule in RULES:
                cells.append(_cell(rule, page, loss, path.host(recovery=rule), stream, seeds, NEEDS))
            if page == 76_800:
                half = path.host(recovery=SSRB, beta=0.5)
                cells.append(_cell(f"{SSRB}, {HALF}", page, loss, half, stream, seeds, NEEDS))
    return collect("latency", cells, plan)


def run_kernels(plan: Plan) -> Data:
    """The publication's comparison: two kernels, which differ in the rule and in the initial RTO, in all pairings.

    Returns
    -------
    Data
        `kernels.fetches`, keys as for `run`.
    """
    cells = []
    for page in path.PAGES:
        for loss in path.LOSSES:
            large = page == path.PAGES[-1]
            seeds = plan.count(quick=2000 if large else 10_000, paper=20_000)
            for arm, settings in KERNELS.items():
                cells.append(_cell(arm, page, loss, path.host(**settings), f"kernels {page} {loss}", seeds))
    return collect("kernels", cells, plan)


SHORT = {2: 2 * 1448, 3: 3 * 1448}
"""Segments -> bytes of responses that three duplicate ACKs can never repair."""

REPAIRS: dict[str, dict[str, Any]] = {
    "neither": {"early_retransmit": "off", "tlp": False},
    "early retransmit": {"early_retransmit": "rfc5827", "tlp": False},
    "delayed early retransmit": {"early_retransmit": "delayed", "tlp": False},
    "tail loss probe": {"early_retransmit": "off", "tlp": True},
}


def run_short(plan: Plan) -> Data:
    """Responses of two and three segments, with and without early retransmit and tail loss probes.

    Returns
    -------
    Data
        `short.fetches`, keys arm, page, loss, seed.
    """
    cells = []
    for size in SHORT.values():
        seeds = plan.count(quick=2000, paper=10_000)
        for arm, settings in REPAIRS.items():
            sender = path.host(recovery=SSRB, **settings)
            cells.append(_cell(arm, size, 0.03, sender, f"short {size}", seeds))
    return collect("short", cells, plan)


def _cell(
    arm: str,
    page: int,
    loss: float,
    sender: dict[str, Any],
    stream: str,
    seeds: int,
    needs: Mapping[str, Sequence[str]] = FETCHES,
) -> Cell:
    scenario = path.fetch(page, loss, sender, name=f"{arm}, {page} bytes, {path.percent(loss)}")
    keys = {"arm": arm, "page": page, "loss": loss}
    return Cell(scenario=scenario, keys=keys, stream=stream, seeds=seeds, needs=needs)


def cell(table: pl.DataFrame, arm: str, page: int, loss: float) -> pl.DataFrame:
    """Rows of one cell, ordered by seed."""
    kept = table.filter((pl.col("arm") == arm) & (pl.col("page") == page) & (pl.col("loss") == loss))
    return kept.sort("seed", maintain_order=True)


def paired(
    table: pl.DataFrame,
    page: int,
    loss: float,
    first: str,
    second: str,
    column: str = "total_s",
    *,
    hit: bool | None = True,
) -> tuple[Array, Array]:
    """Values of two arms for the same seeds.

    Parameters
    ----------
    table
        Fetches.
    page, loss
        Cell.
    first, second
        Arms.
    column
        What to compare.
    hit
        True: only seeds in which either arm retransmitted data; False: only those in which neither did; None: all.
    """
    a, b = cell(table, first, page, loss), cell(table, second, page, loss)
    hits = (a["data_retransmissions"] + b["data_retransmissions"]).to_numpy() > 0
    both = np.isfinite(a["total_s"].to_numpy()) & np.isfinite(b["total_s"].to_numpy())
    keep = both if hit is None else both & (hits == hit)
    x = a[column].to_numpy().astype(np.float64)
    y = b[column].to_numpy().astype(np.float64)
    return x[keep], y[keep]


def latencies(table: pl.DataFrame, arm: str, page: int, loss: float, *, hit: bool | None = None) -> Array:
    """Total latency of the fetches of one cell, s; those with, without or regardless of a data retransmission."""
    kept = cell(table, arm, page, loss).filter(pl.col("total_s").is_not_null())
    if hit is not None:
        kept = kept.filter((pl.col("data_retransmissions") > 0) == hit)
    return kept["total_s"].to_numpy().astype(np.float64)


def summary(tables: Tables) -> pl.DataFrame:
    """One row per cell and arm: shares and mean latencies by what happened to the fetch."""
    t = tables["latency.fetches"]
    syn = (pl.col("syn_retransmissions") + pl.col("synack_retransmissions")) > 0
    hit = pl.col("data_retransmissions") > 0
    return (
        t.group_by("page", "loss", "arm", maintain_order=True)
        .agg(
            pl.len().alias("fetches"),
            hit.mean().alias("share_data_retransmitted"),
            syn.mean().alias("share_syn_lost"),
            pl.col("total_s").filter(hit).mean().alias("mean_hit_s"),
            pl.col("total_s").filter(~hit & ~syn).mean().alias("mean_clean_s"),
            pl.col("total_s").filter(~hit & syn).mean().alias("mean_syn_only_s"),
            pl.col("total_s").mean().alias("mean_all_s"),
            pl.col("data_retransmissions").sum().alias("retransmissions"),
            pl.col("lost_retransmits").sum().alias("lost_retransmits"),
            pl.col("data_rtos").sum().alias("timeouts"),
            pl.col("rtos_recovery").sum().alias("timeouts_in_recovery"),
        )
        .sort("page", "loss", maintain_order=True)
    )


BASE = RATE_HALVING
"""What every other rule is compared with."""
