"""The filter against variance, the sampling interval against the queue (W14, W23)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import Array, median
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
    between,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.large_pipes import paths
from ackclock_studies.large_pipes.coalescing import CONTROLLER, controller_after
from ackclock_studies.large_pipes.paths import (
    ALABAMA,
    CALTECH,
    SENDERS,
    tcpw,
    westwood,
)
from ackclock_studies.large_pipes.readings import FILTERS, LEVEL, PEAK, PEAKS

JITTERS_US = (0, 5, 10, 20, 50, 100, 200, 400, 800)
"""Return-path jitter, uniform from 0, which adds variance to the samples (W14)."""


def run_damping(plan: Plan) -> Data:
    """The filter against injected variance; the sampling interval against the queue.

    Returns
    -------
    Data
        `damping.variance`: u_max, jitter_us, run, cov, tau_rtts (mean); `damping.queue`: level, run, bin, interval_rtts (T_k/RTT), packets.
    """
    seeds = plan.count(quick=6, paper=12)
    cells = []

    def variance(batch: Batch) -> pl.DataFrame:
        steady = controller_after(batch, 1.0)
        return steady.group_by("seed", maintain_order=True).agg(
            (pl.col("sample_bps").std() / pl.col("sample_bps").mean()).alias("cov"),
            (pl.col("tau_s") / pl.col("sample_rtt_s")).mean().alias("tau_rtts"),
        )

    for peak, jitter in [(peak, jitter) for peak in PEAKS for jitter in JITTERS_US]:
        scenario = paths.scenario(
            CALTECH,
            [(tcpw(name=peak, u_max=PEAKS[peak]), 1)],
            duration_s=2.0,
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
        """T_k and the queue in 50 ms intervals."""
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

    needs = {
        "controllers": ("flow", "t_s", "interval_s", "sample_rtt_s"),
        "queue_samples": ("link", "t_s", "packets"),
    }
    for level in LEVEL.options:
        scenario = paths.scenario(
            ALABAMA,
            [(westwood(level, **FILTERS[level]), 1), (SENDERS[paths.NEWRENO], 3)],
            duration_s=40.0 if plan.scale == "paper" else 20.0,
            record={"controller": "flow", "queue_interval": "10 ms"},
        )
        keys = {"level": level}
        stream = "large-pipes interval"
        cells.append(Cell(scenario=scenario, keys=keys, stream=stream, seeds=seeds, needs=needs, keep={"queue": queue}))
    return collect("damping", cells, plan, numbered=True)


def _by_jitter(tables: Tables, peak: str) -> pl.DataFrame:
    t = tables["damping.variance"].filter(pl.col("u_max") == peak)
    return t.group_by("jitter_us").agg(pl.col("cov").median(), pl.col("tau_rtts").median()).sort("cov")


def w14(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Damping against variance, run by run: rank correlation over the jitters."""
    found = []
    for peak in PEAKS:
        t = tables["damping.variance"].filter(pl.col("u_max") == peak).sort("run", "jitter_us")
        values = [
            _rank_correlation(own["cov"].to_numpy(), own["tau_rtts"].to_numpy())
            for _, own in t.group_by("run", maintain_order=True)
        ]
        found.append(
            Evidence.of(
                median(np.array(values)),
                f"U_max {peak}: rank correlation of tau/RTT with the variation of the samples",
                bound,
                weighs=peak == PEAK.of(tables),
                key=_KEYS[peak],
            )
        )
    return found


def of_all_time(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """W14 with the other definition of the peak."""
    found = w14(tables, bound)
    return [replace(e, weighs="all time" in e.label, key="") for e in found]


_KEYS = {"last ten": "last", "all time": "all"}


def w14_much(tables: Tables) -> Sequence[Evidence]:
    """Proportionality: tau is linear in the variation."""
    found = []
    for peak in PEAKS:
        t = tables["damping.variance"].filter((pl.col("u_max") == peak) & (pl.col("cov") > 0)).sort("run", "jitter_us")
        powers = [
            float(np.polyfit(np.log(own["cov"].to_numpy()), np.log(own["tau_rtts"].to_numpy()), 1)[0])
            for _, own in t.group_by("run", maintain_order=True)
        ]
        label = f"U_max {peak}: power of the samples' variation that tau/RTT grows with"
        weighs = peak == PEAK.of(tables)
        found.append(
            Evidence.of(median(np.array(powers)), label, PROPORTION, weighs=weighs, key=f"power_{_KEYS[peak]}")
        )
    for peak in PEAKS:
        tau = _by_jitter(tables, peak)["tau_rtts"].to_numpy()
        for word, value in (("least", tau.min()), ("greatest", tau.max())):
            label = f"U_max {peak}: {word} tau/RTT"
            key = f"{word}_{_KEYS[peak]}"
            found.append(Evidence(label=label, value=float(value), bound=Bound(), weighs=False, key=key))
    return found


PROPORTION = between(0.5, 1.5)


def _rank_correlation(x: Array, y: Array) -> float:
    both = np.column_stack((_ranks(x), _ranks(y)))
    return float(np.asarray(np.corrcoef(both, rowvar=False))[1, 0])


def _ranks(x: Array) -> Array:
    """1-based ranks; ties get the mean of their ranks."""
    _, place, counts = np.unique(x, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place])


def _with_queue(tables: Tables, bound: Bound) -> list[Evidence]:
    found = []
    for level, key in zip(LEVEL.options, ("quoted", "each_ack"), strict=True):
        values = []
        t = tables["damping.queue"].filter(pl.col("level") == level)
        for _, own in t.group_by("run", maintain_order=True):
            known = own.drop_nulls()
            values.append(_rank_correlation(known["interval_rtts"].to_numpy(), known["packets"].to_numpy()))
        label = f"rank correlation of T_k/RTT with the queue, means over 50 ms; samples: {level}"
        value = median(np.array(values))
        found.append(Evidence.of(value, label, bound, key=key, weighs=level == LEVEL.of(tables)))
    return found


def w23(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """T_k and the queue."""
    return _with_queue(tables, bound)


def w23_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Quality of the fit."""
    return _with_queue(tables, bound)


SHOWN = 1.1
"""Largest T_k/RTT shown in the figure."""


def damping(tables: Tables) -> Figure:
    """Tau against sample variation, and T_k against the queue."""
    t = (
        tables["damping.variance"]
        .group_by("u_max", "jitter_us")
        .agg(pl.col("cov").median(), pl.col("tau_rtts").median())
        .sort("u_max", "cov")
    )
    q = tables["damping.queue"].filter(pl.col("run") == 0).drop_nulls()

    def draw() -> Any:
        figure, axes = new(7.8, 3.2, ncols=2)
        for peak, colour, marker in (("last ten", OKABE_ITO["vermilion"], "o"), ("all time", OKABE_ITO["blue"], "s")):
            own = t.filter(pl.col("u_max") == peak)
            axes[0].plot(own["cov"], own["tau_rtts"], color=colour, marker=marker, ls="", label=f"U_max {peak}")
        axes[0].set_xscale("symlog", linthresh=0.01)
        axes[0].set_xticks([0, 0.01, 0.1, 1], ["0", "0.01", "0.1", "1"])
        axes[0].minorticks_off()
        axes[0].set(xlabel="coefficient of variation of s_k", ylabel="τ / RTT", ylim=(0, 11.5))
        axes[0].legend()
        for level, colour, marker in zip(LEVEL.options, (OKABE_ITO["vermilion"], OKABE_ITO["blue"]), ".x", strict=True):
            own = q.filter(pl.col("level") == level)
            axes[1].plot(own["packets"], own["interval_rtts"], marker, color=colour, ms=3, label=f"samples: {level}")
        axes[1].legend(fontsize=7)
        axes[1].set(xlabel="queue (packets)", ylabel="T_k / RTT", ylim=(-0.03, SHOWN))
        return figure

    return Figure(
        name="damping",
        title="The stability filter compares U with its own recent peak: it damps fully as soon as samples vary at all"
        if _saturates(t)
        else "The stability filter against variance; the sampling interval against the queue",
        caption=(
            "Left: 1 Gb/s, 4 ms, jitter of the ACKs from 0 to 800 µs. Right: TCPW among three NewReno flows on path 1, means over 50 ms, one run; "
            f"{q.filter(pl.col('interval_rtts') > SHOWN).height} of {q.height} lie above: after a pause T_k is the last gap."
        ),
        draw=draw,
        data={"variance": t, "interval": q},
    )


def _saturates(t: pl.DataFrame) -> bool:
    tau = t.filter(pl.col("u_max") == "last ten")["tau_rtts"].to_numpy()
    return bool(np.sort(tau)[1] > 0.8 * tau.max())


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (damping(t),)


CHAPTER = Chapter(
    experiments=(
        Experiment(
            name="damping",
            title="the filter against variance, the interval against the queue",
            run=run_damping,
            weight=8,
        ),
    ),
    **declared(__name__),
    blocks=blocks,
)
