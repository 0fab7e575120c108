"""Fetches on the lossy path, each rule on an otherwise identical sender: the runs behind the claims about latency, timeouts and recoveries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import Array
from ackclock.study import (
    Data,
    Plan,
    Reading,
    Tables,
)
from ackclock.study.cells import Cell, collect
from ackclock_studies.prr import path
from ackclock_studies.prr.path import LARGE, LOW, MIDDLE
from ackclock_studies.prr.rules import (
    CRB,
    LINUX_6,
    PRR,
    RATE_HALVING,
    RFC6675,
    RFC9937,
    RULES,
    SSRB,
)

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


# Numbers of fetches needed for the small differences in claims P3 to P5; the publication had 100 or 1000 of each.
# Pooled cells (P3, P11) keep the same proportions at both scales. One-segment pages need few: no rule can act on
# them.
_QUICK = {768: 500, 7_680: 3_000, 76_800: 6_000, 768_000: 600}
_PAPER = {768: 20_000, 7_680: 20_000, 76_800: 40_000, 768_000: 4_000}
_BESIDE, _SHOWN = 3, 10
"""Divisors of the number of fetches at quick scale: for arms beside those of the claims, and for arms that only figures show."""
_READINGS = {768: 500, 7_680: 500, 76_800: 2_000, 768_000: 300}
HALF = "β 0.5"
"""Arm with the multiplicative decrease of Reno."""

HALF_ARM = f"{PRR}, {HALF}"
DECIDING = (RATE_HALVING, RFC6675, PRR)
ASKED = (*DECIDING, CRB, SSRB)
"""Rules covered by claims; the others appear only in figures."""

QUEUE = Reading(
    name="queue",
    question="How many packets does a queue of the path hold?",
    options={
        "100 packets": "the text, and the script for fetches",
        "50 packets": "the script for the long flow",
        "20 packets": "twice the path",
    },
    why="it is what text and script give for fetches",
)
WAY_BACK = Reading(
    name="way back",
    question="Are ACKs and SYN-ACKs' answers lost, too?",
    options={
        "loses": "Mininet sets loss on both interfaces of a link",
        "is safe": "the text speaks of a loss rate of the link only",
    },
    why="it is what the script's TCLink does",
)
HIT = Reading(
    name="counted",
    question="Which fetches are compared?",
    options={
        "hit by loss": "those in which either arm retransmitted data",
        "all": "with and without loss, as in the blog's third figure",
    },
    why="the sentences are about fetches with losses, and a count of retransmissions tells them exactly",
)


def way(plan: Plan) -> dict[str, Any]:
    """Return the path settings under the plan's reading."""
    return {"queue": QUEUE.of(plan), "both_ways": WAY_BACK.of(plan) == WAY_BACK.main}


def run(plan: Plan) -> Data:
    """Each rule on an otherwise identical sender, paired by common random numbers: same seed, same losses until the arms diverge.

    Returns
    -------
    Data
        `latency.fetches` and `latency.recoveries`, keys arm, page (bytes), loss (per link and direction), seed.
    """
    cells = []
    for page in path.PAGES:
        for loss in path.LOSSES:
            stream = f"latency {page} {loss}"
            arms = {rule: path.host(recovery=rule) for rule in (ASKED if plan.reading else RULES)}
            recoveries = (page, loss) == (MIDDLE, LOW)  # the cell in P1 and P2
            if recoveries:
                arms[HALF_ARM] = path.host(recovery=PRR, beta=0.5)
            for arm, sender in arms.items():
                few = arm not in DECIDING and not recoveries and (arm, page) != (CRB, LARGE)
                part = _SHOWN if arm in (RFC9937, LINUX_6) else _BESIDE if few else 1
                seeds = plan.count(quick=_QUICK[page] // part, paper=_PAPER[page], readings=_READINGS[page])
                needs = NEEDS if recoveries else FETCHES
                cells.append(fetch_cell(arm, page, loss, sender, stream, seeds, needs, **way(plan)))
    return collect("latency", cells, plan)


def fetch_cell(
    arm: str,
    page: int,
    loss: float,
    sender: dict[str, Any],
    stream: str,
    seeds: int,
    needs: Mapping[str, Sequence[str]] = FETCHES,
    **way: Any,
) -> Cell:
    """A cell: one page under one loss rate with one sender, with one fetch per seed."""
    scenario = path.fetch(page, loss, sender, name=f"{arm}, {page} bytes, {path.percent(loss)}", **way)
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
    """Two arms' values for the same seeds; the first ones, if an arm has fewer.

    Parameters
    ----------
    table
        Fetches.
    page, loss
        Cell.
    first, second
        Arms.
    column
        Column to compare.
    hit
        True: only seeds in which either arm retransmitted data; False: only those in which neither did; None: all.
    """
    a, b = cell(table, first, page, loss), cell(table, second, page, loss)
    least = min(a.height, b.height)
    a, b = a.head(least), b.head(least)
    hits = (a["data_retransmissions"] + b["data_retransmissions"]).to_numpy() > 0
    both = np.isfinite(a["total_s"].to_numpy()) & np.isfinite(b["total_s"].to_numpy())
    keep = both if hit is None else both & (hits == hit)
    x = a[column].to_numpy().astype(np.float64)
    y = b[column].to_numpy().astype(np.float64)
    return x[keep], y[keep]


def latencies(table: pl.DataFrame, arm: str, page: int, loss: float, *, hit: bool | None = None) -> Array:
    """Total fetch latency in one cell, s; `hit` selects fetches with or without a data retransmission, `None` selects all."""
    kept = cell(table, arm, page, loss).filter(pl.col("total_s").is_not_null())
    if hit is not None:
        kept = kept.filter((pl.col("data_retransmissions") > 0) == hit)
    return kept["total_s"].to_numpy().astype(np.float64)


def summary(tables: Tables) -> pl.DataFrame:
    """One row per cell and arm: fractions and mean latencies by fetch outcome."""
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


def compared(tables: Tables, page: int, loss: float, first: str, second: str) -> tuple[Array, Array]:
    """Two arms' latencies for the same seeds, restricted to the fetches counted in this reading."""
    hit = True if HIT.of(tables) == HIT.main else None
    return paired(tables["latency.fetches"], page, loss, first, second, hit=hit)


def jointly(tables: Tables, page: int, loss: float, arms: Sequence[str]) -> tuple[Array, ...]:
    """Several arms' latencies for the same seeds, restricted to the fetches counted in this reading under at least one of them."""
    rows = [cell(tables["latency.fetches"], arm, page, loss) for arm in arms]
    least = min(one.height for one in rows)
    rows = [one.head(least) for one in rows]
    totals = [one["total_s"].to_numpy().astype(np.float64) for one in rows]
    keep = np.all([np.isfinite(one) for one in totals], axis=0)
    if HIT.of(tables) == HIT.main:
        keep &= np.any([one["data_retransmissions"].to_numpy() > 0 for one in rows], axis=0)
    return tuple(one[keep] for one in totals)


def pooled(tables: Tables, first: str, second: str, column: str) -> tuple[Array, Array]:
    """Two arms' values over all fetches in every cell with a page of more than one segment."""
    pairs = [
        paired(tables["latency.fetches"], page, loss, first, second, column, hit=None)
        for page in path.PAGES[1:]
        for loss in path.LOSSES
    ]
    x, y = zip(*pairs, strict=True)
    return np.concatenate(x), np.concatenate(y)
