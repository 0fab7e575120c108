"""Bottleneck queue length (I13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from ackclock.judge.estimates import median
from ackclock.plot import Figure, new
from ackclock.report import Block
from ackclock.study import (
    Bound,
    Chapter,
    Evidence,
    Experiment,
    Tables,
)
from ackclock.study.table import declared
from ackclock_studies.iw10 import loaded, paths
from ackclock_studies.iw10.loaded import link
from ackclock_studies.iw10.style import COLOUR, MODE_TITLE, percent
from ackclock_studies.iw10.testbed import FAST, FIVE, HEAVY, IW3, IW10, SINGLE, SLOW, where


def queues(tables: Tables) -> Figure:
    """Queue over time, in one interval of each of the two cells."""
    t = tables["traces.queue"]
    places = t.select("rate", "mode", "load").unique(maintain_order=True).rows()

    def draw() -> Any:
        figure, axes = new(7.8, 2.2 * len(places), nrows=len(places), squeeze=False)
        for ax, (rate, mode, load) in zip(axes[:, 0], places, strict=True):
            for arm in (IW10, IW3):
                own = t.filter((pl.col("rate") == rate) & (pl.col("mode") == mode) & (pl.col("arm") == arm))
                ax.plot(own["t_s"], own["packets"], color=COLOUR[arm], lw=0.9, label=arm, drawstyle="steps-post")
            ax.set(title=f"{rate}, {MODE_TITLE[mode]}, {percent(load)}", ylabel="queue (packets)")
        axes[-1][0].set_xlabel("time (s)")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return figure

    return Figure(
        name="queues",
        title="The same arrivals make higher peaks with IW10",
        caption="Packets waiting at the bottleneck, one seed, a stretch of the run. Limit: 40 packets at 64 kb/s, 500 at 20 Mb/s.",
        draw=draw,
        data={"queue": t},
    )


PLOTTED = ((FAST, FIVE, HEAVY[FAST]), (SLOW, SINGLE, 0.75))
"""The two cells with queues shown on the slides."""


def _longer(tables: Tables, bound: Bound) -> list[Evidence]:
    found = []
    for place in (*PLOTTED, (FAST, SINGLE, HEAVY[FAST]), (SLOW, FIVE, 0.75)):
        three, ten = (link(tables, *place, arm, "mean_queue") for arm in (IW3, IW10))
        found.append(
            Evidence.of(
                median(ten / three),
                f"{where(*place)}: mean queue, IW10 / IW3",
                bound,
                weighs=place in PLOTTED,
                key=f"{'slow' if place[0] == SLOW else 'fast'}_{place[1]}",
            )
        )
    return found


def i13(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Ratio of the mean queue with IW10 to that with IW3."""
    return [*_longer(tables, bound), *paths.on_paths(tables, "longer_queue")]


def i13_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Check for a reduction by a fifth."""
    return _longer(tables, bound)


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (queues(t),)


CHAPTER = Chapter(
    experiments=(Experiment(name="traces", title="queues over time", run=loaded.run_traces, weight=1),),
    **declared(__name__),
    blocks=blocks,
)
