"""The slow link with one mechanism removed: the remaining effect shows whether that mechanism was the cause (I2, I6, I13, I15)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import Array, bootstrap, median, ratio, remaining
from ackclock.study import Bound, Data, Evidence, Plan, Tables
from ackclock.study.cells import collect
from ackclock_studies.iw10 import loaded, parts, testbed
from ackclock_studies.iw10.testbed import FIVE, IW3, IW10, MIX, SINGLE, SLOW, where

PACED, DEEP, LOSSLESS, SOON, RACK = "paced", "80 packets", "no loss", "initial RTO 1 s", "RACK-TLP"

CHANGES: Mapping[str, Mapping[str, Any]] = {
    PACED: {"pace_initial_window": True},
    DEEP: {"queue": {"kind": "drop-tail", "limit": "80 packets"}},
    LOSSLESS: {"queue": parts.LOSSLESS},
    SOON: {"initial_rto": "1 s"},
    RACK: {"profile": "linux-6"},
}
HIGHER = (SLOW, SINGLE, 0.75)
BUSY = (SLOW, FIVE, 0.75)
ASKED = (
    (HIGHER, PACED, (IW3, IW10)),
    (HIGHER, DEEP, (IW3, IW10)),
    (HIGHER, LOSSLESS, (MIX, IW10)),
    (BUSY, SOON, (IW3, IW10)),
    (BUSY, RACK, (IW3, IW10)),
)


def run(plan: Plan) -> Data:
    """Two slow-link cells under each change, with the study's arrivals.

    Returns
    -------
    Data
        `causes.times`, `causes.links`; keys mode, change, arm. Unchanged cells are in the tables of `loaded`.
    """
    duration, warm_up = testbed.length(SLOW, plan.scale)
    cells = [
        loaded.cell(
            testbed.loaded(*place, arm, duration_s=duration, **CHANGES[change]),
            {"mode": place[1], "change": change, "arm": arm},
            stream=f"loaded {SLOW} {place[1]} {place[2]}",
            seeds=plan.count(quick=20 if change == PACED else 12, paper=100),
            warm_up_s=warm_up,
        )
        for place, change, arms in ASKED
        for arm in arms
    ]
    return collect("causes", cells, plan)


def _own(tables: Tables, name: str, place: tuple[str, str, float], change: str, arm: str) -> pl.DataFrame:
    return tables[f"causes.{name}"].filter(mode=place[1], change=change, arm=arm).sort("seed")


def changed(tables: Tables, place: tuple[str, str, float], change: str, arm: str, column: str) -> Array:
    """A bottleneck column under one change, by seed."""
    return _own(tables, "links", place, change, arm)[column].to_numpy().astype(np.float64)


def left(with_it: Array, without: Array) -> Any:
    """Percentage of a mean that remains without the cause; both arrays contain the same seeds in the same order."""
    return bootstrap(lambda x, y: np.asarray(100 * y.mean(axis=1) / x.mean(axis=1)), with_it[: without.size], without)


def overlapping(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """IW10's excess losses: the fraction that remains with a queue twice as long, and with paced first windows."""
    excess = loaded.link(tables, *HIGHER, IW10, "plr") - loaded.link(tables, *HIGHER, IW3, "plr")
    return [
        Evidence.of(
            left(excess, changed(tables, HIGHER, change, IW10, "plr") - changed(tables, HIGHER, change, IW3, "plr")),
            f"{where(*HIGHER)}: of what IW10 loses more, what is left with {text}",
            bound,
            unit="%",
            key=key,
        )
        for change, text, key in (
            (DEEP, "a queue of 80 packets", "left_deep"),
            (PACED, "paced first windows", "left_paced"),
        )
    ]


def waiting(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Reduction of IW10's queue with five opens: the fraction that remains if loss repair no longer waits as long."""
    queue = {arm: loaded.link(tables, *BUSY, arm, "mean_queue") for arm in (IW3, IW10)}
    found = []
    for change, text, key in ((SOON, "an initial RTO of 1 s", "left_soon"), (RACK, "RACK-TLP", "left_rack")):
        ten, three = (changed(tables, BUSY, change, arm, "mean_queue") for arm in (IW10, IW3))
        n = ten.size
        found.append(
            Evidence.of(
                remaining((queue[IW10][:n], queue[IW3][:n]), (ten, three)),
                f"{where(*BUSY)}: of how much shorter the queue of IW10 is, what is left with {text}",
                bound,
                unit="%",
                key=key,
            )
        )
    return found


def same_queue(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """IW10's gain in the mix: the fraction that remains if neither arm loses packets, so that only the queue differs."""
    mix = loaded.times(tables, *HIGHER, MIX, "mean_s", iw=10)
    alone = loaded.times(tables, *HIGHER, IW10, "mean_s")
    without = []
    for arm, iw in ((MIX, 10), (IW10, 0)):
        rows = _own(tables, "times", HIGHER, LOSSLESS, arm)
        without.append(rows.filter(iw=iw)["mean_s"].to_numpy().astype(np.float64))
    n = without[0].size
    queue = [changed(tables, HIGHER, LOSSLESS, arm, "mean_queue") for arm in (MIX, IW10)]
    return [
        Evidence.of(
            remaining((mix[:n], alone[:n]), (without[0], without[1])),
            f"{where(*HIGHER)}: of the gain in the mix, what is left without loss",
            bound,
            unit="%",
            key="left",
        ),
        Evidence.of(
            median(queue[0] / queue[1]),
            "the same: mean queue of the mix over that of IW10",
            Bound(),
            weighs=False,
            key="queue_lossless",
        ),
    ]


def hurt_by_loss(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Cells in which IW10 is slower: whether it is still slower without loss."""
    found = []
    for place, key in ((parts.SLOWER[0], "slow"), (parts.QUICK[1], "fast")):
        ten, three = (parts.others(tables, place, arm, parts.NO_LOSS, "mean_s") for arm in (IW10, IW3))
        found.append(
            Evidence.of(
                median(ten / three) if key == "slow" else ratio(ten, three),
                f"{where(*place)}: UCT(IW10) / UCT(IW3), {parts.NO_LOSS}",
                bound,
                key=f"lossless_{key}",
            )
        )
    return found
