"""How far other readings of the set-up move the result (I29, readings B1 to B11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.report import Block, Cell, Table, paragraph
from ackclock.studies.iw10 import loaded, testbed
from ackclock.studies.iw10.completion_times import seconds
from ackclock.studies.iw10.testbed import FIVE, IW3, IW10, SLOW
from ackclock.study import (
    Chapter,
    Claim,
    Criterion,
    Data,
    Evidence,
    Experiment,
    Plan,
    Range,
    Tables,
)
from ackclock.study.cells import collect
from ackclock.study.estimates import median

LOAD = 0.75

READINGS: dict[str, dict[str, Any]] = {
    "as adopted": {},
    "B1: 11 segments, FIN on the last": {"segments": 11, "fin_ignores_cwnd": "with-data"},
    "B2: load counts every packet": {"load_counts": "all"},
    "B4: four pairs with RTTs of 150 to 600 ms": {"rtts_s": (0.15, 0.3, 0.45, 0.6)},
    "B6: same limit on the way back": {"reverse_limited": True},
    "B7: queue limited in bytes": {"queue": {"kind": "drop-tail", "limit": "60000 bytes"}},
    "B8: initial RTO 1 s": {"initial_rto": "1 s"},
    "B9: Reno": {"congestion_control": "reno"},
    "first burst of at most 9 segments": {"first_burst_cap": 9},
    "RACK-TLP and PRR of Linux 6": {"profile": "linux-6"},
}


def run(plan: Plan) -> Data:
    """64 kb/s, five opens, 75 %: IW3 and IW10 under each reading, same arrivals.

    Returns
    -------
    Data
        `sensitivity.times`, `sensitivity.links`; keys reading, arm.
    """
    seeds = plan.count(quick=6, paper=12)
    cells = []
    duration, warm_up = testbed.length(SLOW, plan.scale)
    for reading, settings in READINGS.items():
        for arm in (IW3, IW10):
            scenario = testbed.loaded(SLOW, FIVE, LOAD, arm, duration_s=duration, **settings)
            keys = {"reading": reading, "arm": arm}
            cells.append(
                loaded.cell(scenario, keys, stream="sensitivity", seeds=seeds, warm_up_s=warm_up, by_window=False)
            )
    return collect("sensitivity", cells, plan)


def i29(tables: Tables) -> Sequence[Evidence]:
    """How far other readings move the ratio of completion times."""
    t = tables["sensitivity.times"]
    found = []
    for (name,), own in t.group_by("reading", maintain_order=True):
        by_arm = {arm: own.filter(pl.col("arm") == arm).sort("seed")["mean_s"].to_numpy() for arm in (IW3, IW10)}
        found.append(
            Evidence.of(median(by_arm[IW10] / by_arm[IW3]), f"{name}: UCT(IW10) / UCT(IW3)", Range(), weighs=False)
        )
    return found


def sensitivity_table(tables: Tables) -> Table:
    """Ratio under each reading."""
    t, links = tables["sensitivity.times"], tables["sensitivity.links"]
    rows: list[tuple[Cell | str, ...]] = []
    for (reading,), own in t.group_by("reading", maintain_order=True):
        mean = {arm: own.filter(pl.col("arm") == arm).sort("seed")["mean_s"].to_numpy() for arm in (IW3, IW10)}
        e = median(mean[IW10] / mean[IW3])
        plr = [
            float(links.filter((pl.col("reading") == reading) & (pl.col("arm") == arm))["plr"].median())  # type: ignore[arg-type]
            for arm in (IW3, IW10)
        ]
        rows.append(
            (
                Cell(text=str(reading), kind="head"),
                *(seconds(float(np.median(mean[arm]))) for arm in (IW3, IW10)),
                f"{e.value:.2f} ({e.low:.2f} to {e.high:.2f})",
                *(f"{100 * p:.2f}" for p in plr),
            )
        )
    return Table(
        caption="Mean completion time and loss under each reading. Medians over seeds; the ratio with its 95 % interval.",
        header=("reading", "mean (s), IW3", "IW10", "IW10 / IW3", "loss (%), IW3", "IW10"),
        rows=tuple(rows),
    )


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="I29",
        place="slides: two testbeds",
        statement="The two testbeds differ in places.",
        direction=Criterion(
            measure=i29,
            reading="Nothing to hold against a number: how far other readings of the set-up move the result stands beside.",
        ),
        not_comparable="the slides give no numbers for either testbed; the sensitivity to each reading is reported",
    ),
)


def blocks(t: Tables) -> Sequence[Block]:
    """For the report."""
    return (
        paragraph(
            "What the slides leave open is decided once (docs/studies/iw10.md lists the decisions). Here each is changed alone: 64 kb/s, five "
            "opens, 75 %, same arrivals."
        ),
        sensitivity_table(t),
    )


CHAPTER = Chapter(
    title="Other readings of the set-up",
    experiments=(Experiment(name="sensitivity", title="other readings of the set-up", run=run, weight=4),),
    claims=CLAIMS,
    blocks=blocks,
)
