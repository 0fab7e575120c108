"""Beyond the study: initial windows of 1 to 100, with and without pacing, through drop-tail, CoDel and FQ-CoDel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Block
from ackclock.study import (
    Chapter,
    Data,
    Experiment,
    Plan,
    Tables,
)
from ackclock.study.cells import collect
from ackclock_studies.iw10 import loaded, testbed
from ackclock_studies.iw10.testbed import FAST, FIVE

WINDOWS = (1, 2, 3, 4, 6, 10, 16, 32, 50, 100)
SEGMENTS = 100
LOAD = 0.75

ARMS: dict[str, dict[str, Any]] = {
    "drop-tail": {},
    "drop-tail, first window paced": {"pace_initial_window": True},
    "CoDel": {"queue": {"kind": "codel", "limit": "500 packets"}},
    "FQ-CoDel": {"queue": {"kind": "fq-codel", "limit": "500 packets"}},
}

STYLE = {
    "drop-tail": (OKABE_ITO["vermilion"], "o", "-"),
    "drop-tail, first window paced": (OKABE_ITO["orange"], "s", "--"),
    "CoDel": (OKABE_ITO["blue"], "^", "-."),
    "FQ-CoDel": (OKABE_ITO["green"], "D", ":"),
}


def run(plan: Plan) -> Data:
    """100-segment responses, five at a time, at 75 % load on 20 Mb/s.

    Returns
    -------
    Data
        `extension.times`, `extension.links`; keys queue, window.
    """
    seeds = plan.count(quick=2, paper=10)
    windows = WINDOWS if plan.scale == "paper" else (1, 3, 10, 32, 100)
    cells = []
    duration, warm_up = (60.0, 10.0) if plan.scale == "quick" else (150.0, 15.0)
    for name, settings in ARMS.items():
        for window in windows:
            scenario = testbed.loaded(FAST, FIVE, LOAD, window, duration_s=duration, segments=SEGMENTS, **settings)
            keys = {"queue": name, "window": window}
            cells.append(loaded.cell(scenario, keys, stream="extension", seeds=seeds, warm_up_s=warm_up))
    return collect("extension", cells, plan)


def figure(tables: Tables) -> Figure:
    """Median, p99 and loss against the initial window."""
    t = tables["extension.times"].filter(pl.col("iw") == 0)
    runs = (
        t.join(tables["extension.links"], on=["queue", "window", "seed"])
        .select("queue", "window", "seed", "p50_s", "p99_s", "plr")
        .sort("queue", "window", "seed")
    )
    table = (
        runs.group_by("queue", "window", maintain_order=True)
        .agg(pl.col("p50_s").median(), pl.col("p99_s").median(), pl.col("plr").median())
        .sort("queue", "window")
    )
    seeds = runs["seed"].n_unique()

    def draw() -> Any:
        figure, axes = new(8.2, 3.4, ncols=3)
        for ax, (column, factor, label) in zip(
            axes,
            (
                ("p50_s", 1.0, "median completion time (s)"),
                ("p99_s", 1.0, "99th percentile (s)"),
                ("plr", 100.0, "lost at the bottleneck (%)"),
            ),
            strict=True,
        ):
            for name, (colour, marker, dash) in STYLE.items():
                own = table.filter(pl.col("queue") == name)
                ax.plot(
                    own["window"], factor * own[column].to_numpy(), color=colour, marker=marker, ls=dash, label=name
                )
                each = runs.filter(pl.col("queue") == name)
                ax.plot(each["window"], factor * each[column].to_numpy(), "_", color=colour, ms=9, mew=1, alpha=0.5)
            ax.set(xscale="log", xlabel="initial window (segments)", ylabel=label)
            ax.set_xticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
            ax.set_ylim(bottom=0)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return figure

    def at(name: str, window: int, column: str) -> float:
        row = table.filter((pl.col("queue") == name) & (pl.col("window") == window))
        return float(row[column][0]) if row.height else float("nan")

    return Figure(
        name="initial-windows",
        title=(
            f"Beyond 10: IW 100 brings the median from {at('drop-tail', 10, 'p50_s'):.2f} to {at('drop-tail', 100, 'p50_s'):.2f} s "
            f"and the loss from {100 * at('drop-tail', 10, 'plr'):.1f} to {100 * at('drop-tail', 100, 'plr'):.1f} % behind drop-tail"
        ),
        caption=(
            f"Responses of {SEGMENTS} segments, five opens at once, {100 * LOAD:g} % of 20 Mb/s, RTT 300 ms, queue limit 500 packets. "
            f"Medians of {seeds} runs; a dash is a single run: between these the truth is not known closer. CoDel and FQ-CoDel with their defaults (5 ms, 100 ms): made for shorter paths than this."
        ),
        draw=draw,
        data={"windows": table, "runs": runs},
    )


def best_window(tables: Tables, name: str) -> int:
    """The initial window with the lowest median completion time for one queue type."""
    t = tables["extension.times"].filter((pl.col("iw") == 0) & (pl.col("queue") == name))
    by_window = t.group_by("window").agg(pl.col("p50_s").median()).sort("window")
    return int(by_window["window"][int(np.argmin(by_window["p50_s"].to_numpy()))])


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (figure(t),)


CHAPTER = Chapter(
    title="Beyond ten",
    experiments=(
        Experiment(name="extension", title="initial windows of 1 to 100, paced, CoDel, FQ-CoDel", run=run, weight=20),
    ),
    blocks=blocks,
)
