"""FAST flows together: do they oscillate in step? (W19)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import Array, mean_over_runs
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Block
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
from ackclock_studies.large_pipes import paths
from ackclock_studies.large_pipes.paths import (
    ALABAMA,
    FAST,
    HSTCP,
    NEWRENO,
    SENDERS,
)
from ackclock_studies.large_pipes.runs import NO_BOUND

ALPHA = 200
"""Packets kept queued by a FAST flow."""


@dataclass(frozen=True, slots=True)
class Together:
    """FAST flows on one path.

    Parameters
    ----------
    flows
        Number of FAST flows.
    queue
        Size of the queue, in units of N alpha, the number of packets that the flows try to keep queued.
    crossed
        Whether two flows of NewReno are among them.
    alone
        Without other users and with drawn start times, so that all effects are due to the flows themselves.
    by_rate
        alpha is 8, 20 or 200 by the rate of a flow.
    sender
        Controller of the flows; controllers other than FAST are for comparison.
    """

    flows: int
    queue: float
    crossed: bool = False
    alone: bool = False
    by_rate: bool = False
    sender: str = FAST

    @property
    def name(self) -> str:
        """Names in tables and reports."""
        others = " and 2 NewReno" if self.crossed else ""
        factor = "" if self.queue == 1 else f"{self.queue:g} "
        end = (", no other flow" if self.alone else "") + (", α by rate" if self.by_rate else "")
        return f"{self.flows} {self.sender}{others}, queue {factor}N α{end}"

    @property
    def key(self) -> str:
        """Names in notes."""
        return f"swing_{self.flows}_{round(10 * self.queue)}{'_crossed' * self.crossed}{'_alone' * self.alone}{'_bands' * self.by_rate}"


_SYNC = (
    *(Together(2, queue) for queue in (0.5, 1.0, 2.0)),
    *(Together(4, queue) for queue in (0.5, 1.0, 2.5)),
    *(Together(2, queue, crossed=True) for queue in (1.0, 2.5)),
    *(Together(flows, queue, alone=True) for flows in (2, 4) for queue in (0.5, 1.0, 2.0)),
)
FOUR = Together(4, 2.0, alone=True)
BANDED = Together(4, 2.5, alone=True, by_rate=True)

SYNC = {setting.name: setting for setting in _SYNC}
"""Settings of W19."""

CONTROLS = {
    setting.name: setting
    for setting in (
        Together(flows, queue, alone=True, sender=sender)
        for sender in (HSTCP, NEWRENO)
        for flows in (2, 4)
        for queue in (0.5, 1.0)
    )
}
"""Other senders in the cells where FAST flows are alone and their alphas exceed the queue."""


def run_sync(plan: Plan) -> Data:
    """FAST flows together: windows and round-trip times over time.

    Returns
    -------
    Data
        `sync.correlation`: setting, run, correlation (of the windows of flows 0 and 1, detrended), swing_packets (5 to 95 % of the
        queue in round-trip times), standing_packets (its mean); `sync.trace`: setting, t_s, flow, cwnd, srtt_s (of run 0).
    """
    seeds = plan.count(quick=3, paper=10)
    paper = plan.scale == "paper"
    duration = 60.0 if paper else 30.0
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
                    "standing_packets": float((srtt.mean() - ALABAMA.rtt_s) * ALABAMA.rate_bps / 8 / paths.MTU),
                }
            )
        return pl.DataFrame(rows, schema_overrides={"seed": pl.UInt64})

    def trace(batch: Batch) -> pl.DataFrame:
        first = batch.seeds[0]
        return batch.samples.filter((pl.col("seed") == first) & (pl.col("flow") < 4)).select(
            "seed", "t_s", "flow", "cwnd", "srtt_s"
        )

    for name, setting in {**SYNC, BANDED.name: BANDED, **CONTROLS}.items():
        own = (
            paths.Protocol(name=FAST, controller="fast", options={"alpha_bands": True})
            if setting.by_rate
            else SENDERS[setting.sender]
        )
        senders = [(own, setting.flows)] + ([(SENDERS[NEWRENO], 2)] if setting.crossed else [])
        scenario = paths.scenario(
            ALABAMA,
            senders,
            duration_s=duration,
            queue=round(setting.queue * setting.flows * ALPHA),
            stagger_s=0.0 if setting.alone else 1.0,
            drawn_s=float(setting.flows) if setting.alone else 0.0,
            users=0.0 if setting.alone else 0.02,
            record={"sample_interval": f"{1000 * SAMPLE_S:g} ms"},
        )
        cells.append(
            Cell(
                scenario=scenario,
                keys={"setting": name},
                stream="large-pipes sync",
                seeds=seeds if setting.queue < 2 or setting.alone or paper else 1,
                needs={"samples": ("flow", "t_s", "cwnd", "srtt_s")},
                keep={"correlation": correlation, "trace": trace},
            )
        )
    return collect("sync", cells, plan, numbered=True)


SAMPLE_S = 0.1


def _cell(tables: Tables, setting: str, column: str) -> Array:
    t = tables["sync.correlation"].filter(pl.col("setting") == setting).sort("run")
    return t[column].to_numpy().astype(np.float64)


def w19(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Synchronisation of FAST flows: windows that rise and fall together if the queue is smaller than the sum of all alphas."""
    found, shown = [], []
    for name, setting in SYNC.items():
        swing, together = (mean_over_runs(_cell(tables, name, column)) for column in ("swing_packets", "correlation"))
        weighs = setting.queue < 2
        bound = bound if weighs else NO_BOUND
        key = setting.key.replace("swing", "step")
        found.append(Evidence.of(together, f"{name}: correlation of windows", bound, weighs=weighs, key=key))
        label = f"{name}: swing of the round-trip time"
        shown.append(Evidence.of(swing, label, NO_BOUND, unit="packets", weighs=False, key=setting.key))
    return [*found, *shown]


def w19_more(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Correlation of FAST's windows minus that of other senders in the same cells, averaged over the cells."""
    cells = [(setting.flows, setting.queue) for setting in SYNC.values() if setting.alone and setting.queue < 2]

    def mean(sender: str) -> Array:
        names = [Together(flows, queue, alone=True, sender=sender).name for flows, queue in cells]
        return np.asarray(np.mean([_cell(tables, name, "correlation") for name in names], axis=0))

    of = {sender: mean(sender) for sender in (FAST, HSTCP, NEWRENO)}
    return [
        *(
            Evidence.of(
                mean_over_runs(of[FAST] - of[other]), f"correlation of windows, FAST less {other}", bound, key=f"less_{other.lower()}"
            )
            for other in (HSTCP, NEWRENO)
        ),
        *(
            Evidence.of(mean_over_runs(values), f"{sender}: correlation of windows", NO_BOUND, weighs=False, key=sender.lower())
            for sender, values in of.items()
        ),
    ]  # fmt: skip


def with_room(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Oscillation with a queue that has room for all flows' packets."""
    return [
        Evidence.of(
            mean_over_runs(_cell(tables, name, "swing_packets")),
            f"{name}: swing of the round-trip time",
            bound,
            unit="packets",
        )
        for name, setting in SYNC.items()
        if setting.alone and setting.queue >= 2
    ]


def bands(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Four flows with rate-dependent alpha: below 100 Mb/s each keeps 20 packets, not 200."""
    by_rate, fixed = (mean_over_runs(_cell(tables, name, "standing_packets")) for name in (BANDED.name, FOUR.name))
    return [
        Evidence.of(by_rate, f"{BANDED.name}: packets queued", bound, unit="packets", key="by_rate"),
        Evidence.of(fixed, f"{FOUR.name}: packets queued", NO_BOUND, unit="packets", weighs=False, key="fixed"),
    ]


def fast_in_step(tables: Tables) -> Figure:
    """RTT and outstanding window of FAST over time (slide 14)."""
    t = tables["sync.trace"]
    shown = ("2 FAST, queue 2 N α", "4 FAST, queue 0.5 N α", "2 FAST and 2 NewReno, queue N α")
    colours = [OKABE_ITO["blue"], OKABE_ITO["orange"], OKABE_ITO["green"], OKABE_ITO["purple"]]

    def draw() -> Any:
        figure, axes = new(8.2, 4.4, nrows=2, ncols=len(shown), sharex=True)
        for column, setting in enumerate(shown):
            # before the first sample there is no smoothed RTT
            own = t.filter((pl.col("setting") == setting) & (pl.col("srtt_s") > 0))
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
            axes[0][column].set_title(setting.replace(", ", ",\n"), fontsize=8.5)
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


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (fast_in_step(t),)


CHAPTER = Chapter(
    experiments=(Experiment(name="sync", title="FAST flows together", run=run_sync, weight=6),),
    **declared(__name__),
    blocks=blocks,
)
