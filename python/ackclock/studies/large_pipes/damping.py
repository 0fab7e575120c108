"""The filter against variance, the sampling interval against the queue (W14, W23)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Block
from ackclock.studies.large_pipes import paths
from ackclock.studies.large_pipes.coalescing import CONTROLLER, controller_after
from ackclock.studies.large_pipes.paths import (
    ALABAMA,
    CALTECH,
    SENDERS,
    westwood,
)
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
    between,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.estimates import Array, median

JITTERS_US = (0, 5, 10, 20, 50, 100, 200, 400, 800)
"""Jitter of the path back, uniform from 0, that injects variance into the samples (W14)."""

PEAKS = ("last-10", "all-time")
"""Over which values the greatest U is taken: the reading adopted, and the other."""


def run_damping(plan: Plan) -> Data:
    """The filter against variance that is put in; the sampling interval against the queue.

    Returns
    -------
    Data
        `damping.variance`: u_max, jitter_us, run, cov, tau_rtts (mean); `damping.queue`: run, t_s, interval_rtts (T_k/RTT), packets.
    """
    seeds = plan.count(quick=6, paper=12)
    cells = []

    def variance(batch: Batch) -> pl.DataFrame:
        steady = controller_after(batch, 2.0)
        return steady.group_by("seed", maintain_order=True).agg(
            (pl.col("sample_bps").std() / pl.col("sample_bps").mean()).alias("cov"),
            (pl.col("tau_s") / pl.col("sample_rtt_s")).mean().alias("tau_rtts"),
        )

    for peak, jitter in [(peak, jitter) for peak in PEAKS for jitter in JITTERS_US]:
        scenario = paths.scenario(
            CALTECH,
            [(westwood(peak, u_max=peak), 1)],
            duration_s=4.0,
            users=0.0,
            back_jitter_us=jitter,
            record={"controller": "flow"},
        )
        cells.append(
            Cell(
                scenario=scenario,
                keys={"u_max": peak, "jitter_us": jitter},
                stream="large-pipes damping",
                seeds=seeds,
                needs={"controllers": CONTROLLER},
                keep={"variance": variance},
            )
        )

    interval_s = 0.05

    def queue(batch: Batch) -> pl.DataFrame:
        """T_k and the queue in intervals of 50 ms."""
        bin_of = (pl.col("t_s") / interval_s).floor().cast(pl.Int64).alias("bin")
        level = (
            controller_after(batch, 5.0)
            .with_columns(bin_of)
            .group_by("seed", "bin")
            .agg((pl.col("interval_s") / pl.col("sample_rtt_s")).mean().alias("interval_rtts"))
        )
        packets = (
            batch.queue_samples.filter((pl.col("link") == 0) & (pl.col("t_s") >= 5.0))
            .with_columns(bin_of)
            .group_by("seed", "bin")
            .agg(pl.col("packets").mean())
        )
        return level.join(packets, on=["seed", "bin"]).sort("seed", "bin")

    scenario = paths.scenario(
        ALABAMA,
        [(SENDERS[paths.TCPW], 1), (SENDERS[paths.NEWRENO], 3)],
        duration_s=40.0 if plan.scale == "paper" else 20.0,
        record={"controller": "flow", "queue_interval": "10 ms"},
    )
    needs = {
        "controllers": ("flow", "t_s", "interval_s", "sample_rtt_s"),
        "queue_samples": ("link", "t_s", "packets"),
    }
    stream = "large-pipes interval"
    cells.append(Cell(scenario=scenario, keys={}, stream=stream, seeds=seeds, needs=needs, keep={"queue": queue}))
    return collect("damping", cells, plan, numbered=True)


def w14(tables: Tables) -> Sequence[Evidence]:
    """Damping against variance."""
    found = []
    for peak in PEAKS:
        t = tables["damping.variance"].filter(pl.col("u_max") == peak)
        means = t.group_by("jitter_us").agg(pl.col("cov").median(), pl.col("tau_rtts").median()).sort("cov")
        tau = means["tau_rtts"].to_numpy()
        weighs = peak == PEAKS[0]
        for label, value, bound in (
            (
                "rank correlation of tau/RTT with the variation of the samples",
                _rank_correlation(means["cov"].to_numpy(), tau),
                at_least(0.9),
            ),
            ("least tau/RTT", float(tau.min()), at_most(2.0)),
            ("greatest tau/RTT", float(tau.max()), between(5.0, 11.0)),
        ):
            found.append(
                Evidence(label=f"U_max {peak}: {label}", value=value, bound=bound, seeds=t.height, weighs=weighs)
            )
    return found


def _rank_correlation(x: Array, y: Array) -> float:
    from scipy import stats

    return float(stats.spearmanr(x, y).statistic)


def w23(tables: Tables) -> Sequence[Evidence]:
    """T_k and the queue."""
    values = []
    for _, own in tables["damping.queue"].group_by("run", maintain_order=True):
        known = own.drop_nulls()
        values.append(_rank_correlation(known["interval_rtts"].to_numpy(), known["packets"].to_numpy()))
    return [
        Evidence.of(
            median(np.array(values)), "rank correlation of T_k/RTT with the queue, means over 50 ms", at_least(0.8)
        )
    ]


def damping(tables: Tables) -> Figure:
    """Tau against the variation of samples; T_k against the queue."""
    t = (
        tables["damping.variance"]
        .group_by("u_max", "jitter_us")
        .agg(pl.col("cov").median(), pl.col("tau_rtts").median())
        .sort("u_max", "cov")
    )
    q = tables["damping.queue"].filter(pl.col("run") == 0).drop_nulls()

    def draw() -> Any:
        figure, axes = new(7.8, 3.2, ncols=2)
        for peak, colour, marker in (("last-10", OKABE_ITO["vermilion"], "o"), ("all-time", OKABE_ITO["blue"], "s")):
            own = t.filter(pl.col("u_max") == peak)
            axes[0].plot(own["cov"], own["tau_rtts"], color=colour, marker=marker, label=f"U_max {peak}")
        axes[0].set(xlabel="coefficient of variation of s_k", ylabel="τ / RTT", ylim=(0, 11.5))
        axes[0].legend()
        axes[1].plot(q["packets"], q["interval_rtts"], ".", color=OKABE_ITO["green"], ms=3)
        axes[1].set(xlabel="queue (packets)", ylabel="T_k / RTT")
        return figure

    return Figure(
        name="damping",
        title="The stability filter compares U with its own recent peak: it damps fully as soon as samples vary at all"
        if _saturates(t)
        else "The stability filter against variance; the sampling interval against the queue",
        caption="Left: 1 Gb/s, 4 ms, jitter of the ACKs from 0 to 800 µs. Right: TCPW among three NewReno flows on path 1, means over 50 ms, one run.",
        draw=draw,
        data={"variance": t, "interval": q},
    )


def _saturates(t: pl.DataFrame) -> bool:
    tau = t.filter(pl.col("u_max") == "last-10")["tau_rtts"].to_numpy()
    return bool(np.sort(tau)[1] > 0.8 * tau.max())


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="W14",
        place="slide 18",
        statement="The filter damps the more, the more samples vary.",
        direction=Criterion(
            measure=w14,
            reading="tau/RTT rises with the variation of samples, from about 1 towards 11, as jitter of ACKs is put in.",
        ),
        note="tau/RTT jumps from 1 to 7 with the least jitter and stays: U is compared with its own peak of the last ten values, so the filter sees that samples vary, not how much. With the peak of all time it stays at 1.",
    ),
    Claim(
        id="W23",
        place="slide 4",
        statement="The sampling interval follows the congestion level.",
        direction=Criterion(
            measure=w23,
            reading="Rank correlation of T_k/RTT with the queue at least 0.8, means over 50 ms, among four flows.",
        ),
    ),
)


def blocks(t: Tables) -> Sequence[Block]:
    """For the report."""
    return (damping(t),)


CHAPTER = Chapter(
    title="The filter and the sampling interval",
    experiments=(
        Experiment(
            name="damping",
            title="the filter against variance, the interval against the queue",
            run=run_damping,
            weight=8,
        ),
    ),
    claims=CLAIMS,
    blocks=blocks,
)
