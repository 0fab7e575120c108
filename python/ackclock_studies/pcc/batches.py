"""A sender with late pacing wake-ups, as the blog supposed: its batches, the losses at a buffer, and four such flows (C21, C22)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import Array, mean_over_runs
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Block
from ackclock.scenario import Scenario
from ackclock.study import (
    Bound,
    Chapter,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.pcc import testbed
from ackclock_studies.pcc.sharing import (
    FAIRER,
    STEADIER,
    abreast,
    in_enough_runs,
    shares_together,
    together_s,
)
from ackclock_studies.pcc.testbed import BARE, CUBIC, MODELS, PACED, PACED_LONG, PACED_SHORT, PCC

HELD_MBPS = 50
"""Fixed sending rate, half the link's: losses then result from packet timing, not from the number of packets."""

SIZES = (6, 20, 50, 100, 275)
SHALLOW = (6, 20)
"""Buffers smaller than a batch: 50 Mb/s is 42 packets per 10 ms."""

PERIODS = {BARE: 0, PACED_SHORT: 4, PACED: 10, PACED_LONG: 20}
"""Model -> interval between wake-ups, ms; all on the bare-metal link."""

LIMIT = 250
"""The publication's buffer shared by the four flows, packets."""


def held(model: str, packets: int) -> Scenario:
    """Return one PCC flow at a constant rate. It starts at that rate, may not exceed it, and has no incentive to fall
    below it, because its utility is the delivered data.
    """
    written = testbed.shallow(model, PCC, packets, 20.0).to_dict()
    options = {"utility": "loss-resilient", "start_rate_mbps": HELD_MBPS, "max_rate_mbps": HELD_MBPS}
    flows = [
        {**f, "congestion_control_options": {**f["congestion_control_options"], **options}} for f in written["flows"]
    ]
    return Scenario.from_dict({**written, "name": f"{HELD_MBPS} Mb/s, {model}, {packets} packets", "flows": flows})


def run(plan: Plan) -> Data:
    """One constant-rate flow through several buffers, and four flows together, with exact pacing and with late wake-ups.

    Returns
    -------
    Data
        `batches.held`: model, buffer (packets), seed, lost (percent of the packets sent), burst (most packets back to back).
        `batches.shares`: model, cc, seed, seconds (together; fewer at quick scale), jain, sd_mbps, total_mbps, over all the time together.
    """
    periods = PERIODS if plan.scale == "paper" else {model: PERIODS[model] for model in (BARE, PACED)}
    cells = [
        Cell(
            scenario=held(model, packets),
            keys={"model": model, "buffer": packets},
            stream=f"batches {packets}",
            seeds=plan.count(quick=6, paper=6),
            needs={"flows": ("sent_packets", "lost_packets", "largest_burst")},
            keep={"held": _losses},
        )
        for model in periods
        for packets in SIZES
    ]
    cells += [
        Cell(
            scenario=abreast(controller, LIMIT, host=MODELS[model], together_s=together_s(plan)),
            keys={"model": model, "cc": controller},
            stream="batches together",
            seeds=plan.count(quick=1, paper=12 if model in (BARE, PACED) else 4),
            needs={"goodput": ("t_s", "flow", "goodput_bps")},
            keep={"shares": partial(shares_together, together_s=together_s(plan))},
        )
        for model, controller in (*((model, PCC) for model in periods), (BARE, CUBIC))
    ]
    return collect("batches", cells, plan)


def _losses(batch: Batch) -> pl.DataFrame:
    return batch.flows.select(
        "seed",
        (100 * pl.col("lost_packets") / pl.col("sent_packets")).alias("lost"),
        pl.col("largest_burst").cast(pl.Float64).alias("burst"),
    )


def _periods(tables: Tables) -> dict[str, int]:
    known = set(tables["batches.held"]["model"])
    return {model: period for model, period in PERIODS.items() if model in known}


def _held(tables: Tables, model: str, packets: int, column: str) -> Array:
    t = tables["batches.held"].filter((pl.col("model") == model) & (pl.col("buffer") == packets))
    return t.sort("seed")[column].to_numpy().astype(np.float64)


def _shares(tables: Tables, model: str, controller: str, column: str) -> Array:
    t = tables["batches.shares"].filter((pl.col("model") == model) & (pl.col("cc") == controller))
    return t.sort("seed")[column].to_numpy().astype(np.float64)


def c21(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Batches, and losses at a buffer at the same rate."""
    longer = _held(tables, PACED, SIZES[-1], "burst") - _held(tables, BARE, SIZES[-1], "burst")
    found = [
        Evidence.of(
            mean_over_runs(longer), "most packets back to back, late less exact", bound, unit="packets", key="burst"
        )
    ]
    for packets in SIZES:
        more = _held(tables, PACED, packets, "lost") - _held(tables, BARE, packets, "lost")
        found.append(
            Evidence.of(
                mean_over_runs(more),
                f"{packets} packets of buffer: lost, late less exact",
                bound,
                unit="points",
                weighs=packets in SHALLOW,
                key=f"at_{packets}",
            )
        )
    return found


@in_enough_runs("batches.shares")
def c22(tables: Tables) -> Sequence[Evidence]:
    """Four flows with late pacing wake-ups, compared with CUBIC on the same link."""
    found = []
    for model, period in _periods(tables).items():
        who = f"pacing every {period} ms" if period else "exact pacing"
        for column, sign, name, bound, unit in (
            ("jain", 1, "index, PCC less CUBIC", FAIRER, ""),
            ("sd_mbps", -1, "deviation, CUBIC less PCC", STEADIER, "Mb/s"),
        ):
            own = _shares(tables, model, PCC, column)
            less = sign * (own - _shares(tables, BARE, CUBIC, column)[: own.size])
            found.append(
                Evidence.of(
                    mean_over_runs(less),
                    f"{who}: {name}",
                    bound,
                    unit=unit,
                    weighs=model == PACED,
                    key=f"{'index' if column == 'jain' else 'sd'}_{period}",
                )
            )
    return found


@in_enough_runs("batches.shares")
def exact_pacing(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Absence of both effects with exact pacing: CUBIC's index minus PCC's, and PCC's deviation minus CUBIC's."""
    found = []
    for column, sign, name, unit in (
        ("jain", 1, "index, CUBIC less PCC", ""),
        ("sd_mbps", -1, "deviation, PCC less CUBIC", "Mb/s"),
    ):
        less = sign * (_shares(tables, BARE, CUBIC, column) - _shares(tables, BARE, PCC, column))
        found.append(Evidence.of(mean_over_runs(less), f"exact pacing: {name}", bound, unit=unit))
    return found


def figure(tables: Tables) -> Figure:
    """Loss at a constant rate against the buffer; index and deviation of four flows, run by run."""
    lost, shares = tables["batches.held"], tables["batches.shares"]
    known = _periods(tables)
    looks = dict(zip(PERIODS, zip(("black", "green", "vermilion", "purple"), "osDv", strict=True), strict=True))

    def draw() -> Any:
        figure, axes = new(8.4, 3.5, ncols=3)
        for model, period in known.items():
            colour, marker = OKABE_ITO[looks[model][0]], looks[model][1]
            label = f"wakes every {period} ms" if period else "exact"
            own = lost.filter(pl.col("model") == model).group_by("buffer").agg(pl.col("lost").mean()).sort("buffer")
            axes[0].plot(own["buffer"], own["lost"], color=colour, marker=marker, ms=4, lw=1.2, label=label)
        axes[0].set_xscale("log")
        axes[0].set_xticks(SIZES, [str(q) for q in SIZES])
        axes[0].minorticks_off()
        axes[0].set_xlabel("buffer (packets)")
        axes[0].set_ylabel(f"lost of {HELD_MBPS} Mb/s, half the link (%)")
        axes[0].legend(title="PCC's pacing", fontsize=7, title_fontsize=7)
        rows = [(m, PCC, f"{p} ms" if p else "exact") for m, p in known.items()] + [(BARE, CUBIC, "CUBIC")]
        for ax, column, label in zip(axes[1:], ("jain", "sd_mbps"), ("Jain's index", "deviation (Mb/s)"), strict=True):
            for x, (model, controller, _) in enumerate(rows):
                each = _shares(tables, model, controller, column)
                name, marker = ("blue", "^") if controller == CUBIC else looks[model]
                ax.plot(np.full(each.size, x), each, marker, color=OKABE_ITO[name], ms=4.5)
            ax.set_xticks(range(len(rows)), [name for *_, name in rows], fontsize=8)
            ax.set_xlim(-0.5, len(rows) - 0.5)
            ax.set_ylabel(f"four flows: {label}")
            ax.grid(axis="x", visible=False)
        axes[1].set_ylim(top=1.002)
        axes[2].set_ylim(bottom=0)
        return figure

    return Figure(
        name="batches",
        title="Pacing that wakes late loses packets behind buffers smaller than its batches, and shares more evenly behind a large one",
        caption=(
            f"Bare metal's link. Left: one flow held at {HELD_MBPS} Mb/s, mean over runs; 42 packets leave at once every 10 ms. Middle and right: four flows together for "
            f"{shares['seconds'][0]} s behind {LIMIT} packets, a point for each run."
        ),
        draw=draw,
        data={"held": lost, "shares": shares},
    )


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (figure(tables),)


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {
        "PCC held at 50 Mb/s, pacing every 10 ms, 20 packets": held(PACED, 20),
        "PCC, four flows, pacing every 10 ms": abreast(PCC, LIMIT, host=MODELS[PACED]),
    }


CHAPTER = Chapter(
    experiments=(Experiment(name="batches", title="batches at a constant rate, and four flows", run=run, weight=6),),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
