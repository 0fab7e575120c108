"""FAST flows together: do they swing in step? (W19)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Block
from ackclock.studies.large_pipes import paths
from ackclock.studies.large_pipes.paths import (
    ALABAMA,
    FAST,
    NEWRENO,
    SENDERS,
)
from ackclock.studies.large_pipes.starts import NO_BOUND
from ackclock.study import (
    Chapter,
    Claim,
    Criterion,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
    at_least,
    at_most,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.estimates import median

ALPHA = 200
"""Packets that a FAST flow keeps queued."""


@dataclass(frozen=True, slots=True)
class Together:
    """FAST flows on one path.

    Parameters
    ----------
    flows
        Of FAST.
    queue
        In units of N alpha, what they mean to keep there.
    crossed
        Whether two flows of NewReno are among them.
    alone
        Without other users: what is seen then comes from the flows themselves.
    """

    flows: int
    queue: float
    crossed: bool = False
    alone: bool = False

    @property
    def name(self) -> str:
        """In tables and reports."""
        others = " and 2 NewReno" if self.crossed else ""
        factor = "" if self.queue == 1 else f"{self.queue:g} "
        return f"{self.flows} FAST{others}, queue {factor}N α" + (", nobody else" if self.alone else "")


_SYNC = (
    *(Together(2, queue) for queue in (0.5, 1.0, 2.0)),
    *(Together(4, queue) for queue in (0.5, 1.0, 2.5)),
    *(Together(2, queue, crossed=True) for queue in (1.0, 2.5)),
    *(Together(flows, queue, alone=True) for flows in (2, 4) for queue in (1.0, 2.0)),
)

SYNC = {setting.name: setting for setting in _SYNC}
"""Settings of W19."""


def run_sync(plan: Plan) -> Data:
    """FAST flows together: windows and round-trip times over time.

    Returns
    -------
    Data
        `sync.correlation`: setting, run, correlation (of the windows of flows 0 and 1, detrended), swing_packets (5 to 95 % of the
        queue in round-trip times); `sync.trace`: setting, t_s, flow, cwnd, srtt_s (of run 0).
    """
    seeds = plan.count(quick=6, paper=10)
    duration = 60.0 if plan.scale == "paper" else 30.0
    cells = []

    def correlation(batch: Batch) -> pl.DataFrame:
        rows = []
        for (seed,), own in batch.samples.filter(pl.col("t_s") > duration / 3).group_by("seed", maintain_order=True):
            first, second = (own.filter(pl.col("flow") == f).sort("t_s") for f in (0, 1))
            n = min(first.height, second.height)
            a, b = (x["cwnd"].to_numpy()[:n].astype(float) for x in (first, second))
            width = max(3, round(5.0 / SAMPLE_S))
            a, b = (x - np.convolve(x, np.ones(width) / width, mode="same") for x in (a, b))
            flat = min(a[width:-width].std(), b[width:-width].std()) == 0
            srtt = first["srtt_s"].to_numpy()
            swing = (np.quantile(srtt, 0.95) - np.quantile(srtt, 0.05)) * ALABAMA.rate_bps / 8 / paths.MTU
            rows.append(
                {
                    "seed": seed,
                    "correlation": 0.0 if flat else float(np.corrcoef(a[width:-width], b[width:-width])[0, 1]),
                    "swing_packets": float(swing),
                }
            )
        return pl.DataFrame(rows, schema_overrides={"seed": pl.UInt64})

    def trace(batch: Batch) -> pl.DataFrame:
        first = batch.seeds[0]
        return batch.samples.filter((pl.col("seed") == first) & (pl.col("flow") < 4)).select(
            "seed", "t_s", "flow", "cwnd", "srtt_s"
        )

    for name, setting in SYNC.items():
        senders = [(SENDERS[FAST], setting.flows)] + ([(SENDERS[NEWRENO], 2)] if setting.crossed else [])
        scenario = paths.scenario(
            ALABAMA,
            senders,
            duration_s=duration,
            queue=round(setting.queue * setting.flows * ALPHA),
            stagger_s=1.0,
            users=0.0 if setting.alone else 0.02,
            record={"sample_interval": f"{1000 * SAMPLE_S:g} ms"},
        )
        cells.append(
            Cell(
                scenario=scenario,
                keys={"setting": name},
                stream="large-pipes sync",
                seeds=seeds,
                needs={"samples": ("flow", "t_s", "cwnd", "srtt_s")},
                keep={"correlation": correlation, "trace": trace},
            )
        )
    return collect("sync", cells, plan, numbered=True)


SAMPLE_S = 0.1


def w19(tables: Tables) -> Sequence[Evidence]:
    """FAST in step."""
    t = tables["sync.correlation"]
    found, shown = [], []
    for name, setting in SYNC.items():
        own = t.filter(pl.col("setting") == name)
        r, swing = own["correlation"].to_numpy(), own["swing_packets"].to_numpy()
        shown.append(Evidence.of(median(r), f"{name}: correlation of windows", NO_BOUND, weighs=False))
        shown.append(
            Evidence.of(median(swing), f"{name}: swing of the round-trip time", NO_BOUND, unit="packets", weighs=False)
        )
        if not setting.alone:
            found.append((setting.queue, float(np.median(r)), float(np.median(swing))))
    shows = [c >= 0.7 or s >= 0.5 * ALPHA for ratio, c, s in found if ratio < 2]
    quiet = [c < 0.7 and s < 0.5 * ALPHA for ratio, c, s in found if ratio >= 2]
    return [
        Evidence(
            label="settings with queue below 2 N α that show it",
            value=float(sum(shows)),
            bound=at_least(1),
            seeds=t.height,
        ),
        Evidence(
            label="settings with queue of 2 N α or more that show it",
            value=float(len(quiet) - sum(quiet)),
            bound=at_most(0),
            seeds=t.height,
        ),
        *shown,
    ]


def fast_in_step(tables: Tables) -> Figure:
    """RTT and outstanding window of FAST over time (slide 14)."""
    t = tables["sync.trace"]
    shown = ("2 FAST, queue 2 N α", "4 FAST, queue 0.5 N α", "2 FAST and 2 NewReno, queue N α")
    colours = [OKABE_ITO["blue"], OKABE_ITO["orange"], OKABE_ITO["green"], OKABE_ITO["purple"]]

    def draw() -> Any:
        figure, axes = new(8.2, 4.4, nrows=2, ncols=len(shown), sharex=True)
        for column, setting in enumerate(shown):
            own = t.filter(pl.col("setting") == setting)
            for flow, one in own.group_by("flow", maintain_order=True):
                number = int(flow[0])
                kind = "NewReno" if "NewReno" in setting and number >= 2 else "FAST"
                label = f"{kind} {number + 1}"
                axes[0][column].plot(
                    one["t_s"],
                    one["cwnd"],
                    color=colours[number],
                    lw=0.9,
                    label=label,
                    ls="-" if kind == "FAST" else ":",
                )
                axes[1][column].plot(
                    one["t_s"], 1000 * one["srtt_s"], color=colours[number], lw=0.9, ls="-" if kind == "FAST" else ":"
                )
            axes[0][column].set_title(setting, fontsize=8.5)
            axes[1][column].set_xlabel("time (s)")
            axes[0][column].legend(fontsize=7)
            axes[1][column].set_ylim(bottom=60)
        axes[0][0].set_ylabel("window (segments)")
        axes[1][0].set_ylabel("smoothed RTT (ms)")
        return figure

    return Figure(
        name="fast-in-step",
        title="FAST settles where the queue holds N α packets, and swings in step where it does not",
        caption="Path 1, flows begin 1 s apart, α = 200 packets; one run. Slide 14.",
        draw=draw,
        data={"trace": t.filter(pl.col("setting").is_in(shown))},
    )


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="W19",
        place="slides 14, 23",
        statement="FAST has a synchronisation problem.",
        direction=Criterion(
            measure=w19,
            reading="Windows of two flows correlate at 0.7 or more, or the round-trip time swings by half of α or more packets, in some setting with a "
            "queue below 2 N α; and in none with more.",
        ),
        note="With queues below 2 N α FAST swings by nearly the whole queue, 199 to 769 packets, and does so with nobody else, too. With 2 N α and more it swings by 136 to 250 packets beside other users and by 1 to 3 without them: what remains there is its answer to their bursts.",
    ),
)


def blocks(t: Tables) -> Sequence[Block]:
    """For the report."""
    return (fast_in_step(t),)


CHAPTER = Chapter(
    title="FAST in step",
    experiments=(Experiment(name="sync", title="FAST flows together", run=run_sync, weight=6),),
    claims=CLAIMS,
    blocks=blocks,
)
