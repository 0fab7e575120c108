"""What Westwood's estimators see: under loss, under congestion, behind a coalescing card (W13 to W16, W21 to W24)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.studies.large_pipes import paths
from ackclock.studies.large_pipes.paths import (
    ALABAMA,
    CALTECH,
    COALESCING,
    FAST,
    HSTCP,
    PER_PACKET,
    SENDERS,
    Protocol,
    westwood,
)
from ackclock.studies.large_pipes.runs import GOODPUT, ramp
from ackclock.study import Data, Plan, Tables
from ackclock.study.cells import Cell, Reduce, collect
from ackclock.study.estimates import Array

ADAPTIVE, FIXED, BATCH = "ABSE, N = 10", "ABSE, fixed gain (N = 0)", "ABSE over whole batches"
EWMA = "ABSE, EWMA 0.9"
VARIANTS: dict[str, Protocol] = {
    ADAPTIVE: westwood(ADAPTIVE),
    FIXED: westwood(FIXED, n=0),
    EWMA: westwood(EWMA, gain="ewma"),
    BATCH: westwood(BATCH, estimator="abse-batch"),
}
"""Remedies for a coalescing card: the slides' fixed gain, and their future work, an estimator that knows about batches."""

LAST_GAP = "ABSE, N = 10, T_k from the last gap"
"""T_k bounded by the last gap between ACKs, not by the least of a round trip: what W15 hangs on."""

QUIET, COALESCED = "an interrupt per packet", "125 µs interrupt throttling"


CONTROLLER = ("flow", "t_s", "tau_s", "interval_s", "sample_rtt_s", "sample_bps")


def _after(batch: Batch, start_s: float) -> pl.DataFrame:
    return batch.controllers.filter((pl.col("flow") == 0) & (pl.col("t_s") >= start_s))


def run_coalescing(plan: Plan) -> Data:
    """Path 2, with and without interrupt coalescing at the sender.

    Returns
    -------
    Data
        `coalescing.ramps`: protocol, card, run, ramp_s; `coalescing.samples`: protocol, card, run, cov (coefficient of variation of
        the samples s_k in steady state), interval_s (mean of T_k), tau_rtts (median of tau_k/RTT); `coalescing.throughput`: goodput of 10 s.
    """
    seeds = plan.count(quick=6, paper=12)
    estimated = {**VARIANTS, LAST_GAP: westwood(LAST_GAP, t_min="gap")}
    senders = {**estimated, FAST: SENDERS[FAST], HSTCP: SENDERS[HSTCP]}
    cards = {QUIET: PER_PACKET, COALESCED: COALESCING}
    cells = []

    def samples(batch: Batch) -> pl.DataFrame:
        steady = _after(batch, 1.0)
        return steady.group_by("seed", maintain_order=True).agg(
            (pl.col("sample_bps").std() / pl.col("sample_bps").mean()).alias("cov"),
            pl.col("interval_s").mean(),
            (pl.col("tau_s") / pl.col("sample_rtt_s")).median().alias("tau_rtts"),
        )

    def throughput(batch: Batch) -> pl.DataFrame:
        return batch.flows.filter(pl.col("flow") == 0).select("seed", "goodput_bps")

    for name, protocol in senders.items():
        for card, host in cards.items():
            keep: dict[str, Reduce] = {"ramps": ramp(CALTECH), "throughput": throughput}
            needs: dict[str, Sequence[str]] = {"flows": ("flow", "goodput_bps"), **GOODPUT}
            if name in estimated:
                keep["samples"] = samples
                needs["controllers"] = CONTROLLER
            scenario = paths.scenario(
                CALTECH,
                [(protocol, 1)],
                duration_s=3.0,
                card=host,
                record={
                    "goodput_interval": f"{1e6 * CALTECH.rtt_s:.0f} us",
                    "controller": "flow" if name in estimated else "none",
                },
            )
            keys = {"protocol": name, "card": card}
            stream = "large-pipes coalescing"
            cells.append(Cell(scenario=scenario, keys=keys, stream=stream, seeds=seeds, needs=needs, keep=keep))
    return collect("coalescing", cells, plan, numbered=True)


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
        steady = _after(batch, 2.0)
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
            _after(batch, 5.0)
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


BE_SACK = "BE, SACK on"

ALONE, SHARED, LOSSY = "alone", "four flows", "alone, 0.3 % loss"


def run_kinds(plan: Plan) -> Data:
    """Packet pairs against packet trains: estimate over capacity and over the fair share (W21, W22).

    Returns
    -------
    Data
        `kinds.estimates`: estimator, setting, run, estimate_bps (mean in steady state), fair_bps.
    """
    seeds = plan.count(quick=6, paper=12)
    senders = {
        "BE": westwood("BE", estimator="be"),
        "RE": westwood("RE", estimator="re"),
        "ABSE": SENDERS[paths.TCPW],
        BE_SACK: westwood(BE_SACK, estimator="be", sack=True),
    }
    settings = {ALONE: (1, 0.0), SHARED: (4, 0.0), LOSSY: (1, 0.003)}
    cells = []

    def estimates(batch: Batch) -> pl.DataFrame:
        return _after(batch, 15.0).group_by("seed", maintain_order=True).agg(pl.col("estimate_bps").mean())

    for name, protocol in senders.items():
        for setting, (count, loss) in settings.items():
            scenario = paths.scenario(
                ALABAMA,
                [(protocol, count)],
                duration_s=45.0 if plan.scale == "paper" else 22.0,
                queue=400,
                loss=loss,
                users=0.0,
                record={"controller": "flow"},
            )
            cells.append(
                Cell(
                    scenario=scenario,
                    keys={"estimator": name, "setting": setting, "fair_bps": ALABAMA.payload_bps / count},
                    stream=f"large-pipes kinds {setting}",
                    seeds=seeds,
                    needs={"controllers": ("flow", "t_s", "estimate_bps")},
                    keep={"estimates": estimates},
                )
            )
    return collect("kinds", cells, plan, numbered=True)


def pick(tables: Tables, table: str, column: str, **keys: object) -> Array:
    """A column of one cell, one value per run."""
    t = tables[table]
    for key, value in keys.items():
        t = t.filter(pl.col(key) == value)
    return t.sort("run")[column].to_numpy().astype(np.float64)
