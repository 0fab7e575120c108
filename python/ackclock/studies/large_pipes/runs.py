"""Bulk transfers over both paths: ramp, throughput over time and its spread over runs, completion of 100 MB."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch, metrics
from ackclock.studies.large_pipes import paths
from ackclock.studies.large_pipes.paths import (
    ALABAMA,
    ALABAMA_ATM,
    BUFFERS,
    CALTECH,
    FAST,
    HSTCP,
    NEWRENO,
    PROTOCOLS,
    SENDERS,
    TCPW,
    Path,
)
from ackclock.study import Data, Plan, Tables
from ackclock.study.cells import Cell, Reduce, collect
from ackclock.study.estimates import Array

COLD, WARM = "cold", "warm"
W1 = 345
"""Slow start of the later runs ends here, segments: the one number with which 11 s and 7.5 s fit together (W7, W8)."""

WARM_SSTHRESH = {ALABAMA.name: W1, ALABAMA_ATM.name: W1, CALTECH.name: 333}
"""What the cache of the later runs holds: on path 1 the value that the slides' times ask for, on path 2 the pipe."""

CACHED = (HSTCP, NEWRENO, FAST)
"""Hosts that cache ssthresh: Linux. TCPW's Astart sets its own."""


def warmth(protocol: str, path: Path, warm: bool) -> dict[str, Any]:
    """Stack settings of a cold or warm run."""
    return {"metrics_cache": {"ssthresh": WARM_SSTHRESH[path.name]}} if warm and protocol in CACHED else {}


GOODPUT = {"goodput": ("flow", "t_s", "goodput_bps")}


def goodput_of_first(batch: Batch) -> pl.DataFrame:
    """Goodput of the first flow over time."""
    return batch.goodput.filter(pl.col("flow") == 0).select("seed", "t_s", "goodput_bps")


def ramp(path: Path, share: float = 1.0) -> Reduce:
    """Reduces a batch to the time that the first flow takes to 90 % of its share."""

    def reduce(batch: Batch) -> pl.DataFrame:
        rows = []
        for (seed,), own in goodput_of_first(batch).group_by("seed", maintain_order=True):
            rows.append({"seed": seed, "ramp_s": metrics.ramp_up_s(own, share * path.payload_bps, path.rtt_s)})
        return pl.DataFrame(rows, schema_overrides={"seed": pl.UInt64})

    return reduce


def run_ramps(plan: Plan) -> Data:
    """The first seconds of a transfer, cold and warm, both paths.

    Returns
    -------
    Data
        `ramps.times`: path, protocol, cache, run, ramp_s (infinite if 90 % was not reached).
    """
    seeds = plan.count(quick=6, paper=20)
    places = ((ALABAMA, 30.0), (CALTECH, 4.0))
    cells = []
    for path, duration in places:
        for protocol in PROTOCOLS:
            for cache in (COLD, WARM):
                scenario = paths.scenario(
                    path,
                    [(SENDERS[protocol], 1)],
                    duration_s=duration,
                    record={"goodput_interval": f"{1e6 * path.rtt_s:.0f} us"},
                    **warmth(protocol, path, cache == WARM),
                )
                cells.append(
                    Cell(
                        scenario=scenario,
                        keys={"path": path.name, "protocol": protocol, "cache": cache},
                        stream=f"large-pipes ramps {path.name}",
                        seeds=seeds,
                        needs=GOODPUT,
                        keep={"times": ramp(path)},
                    )
                )
    return collect("ramps", cells, plan, numbered=True)


def run_series(plan: Plan) -> Data:
    """Ten transfers of a minute, as the slides' ten nights: run 0 meets a cold cache, the others a warm one.

    Returns
    -------
    Data
        `series.goodput`: path, protocol, cache, run, t_s (end of the interval: 1 s, or 50 ms on path 2), goodput_bps.
    """
    seeds = plan.count(quick=6, paper=10)
    cells = []
    for path in (ALABAMA, CALTECH):
        for protocol in PROTOCOLS:
            for cache in (COLD, WARM):
                # of path 2 the slides show the start; the minute is for the mean of TCPW and FAST
                whole = path is ALABAMA or (plan.scale == "paper" and cache == COLD and protocol in (TCPW, FAST))
                duration = 60.0 if whole else 5.0
                scenario = paths.scenario(
                    path,
                    [(SENDERS[protocol], 1)],
                    duration_s=duration,
                    record={"goodput_interval": "1 s" if path is ALABAMA else "50 ms"},
                    **warmth(protocol, path, cache == WARM),
                )
                cells.append(
                    Cell(
                        scenario=scenario,
                        keys={"path": path.name, "protocol": protocol, "cache": cache},
                        stream=f"large-pipes series {path.name}",
                        seeds=seeds,
                        needs=GOODPUT,
                        keep={"goodput": goodput_of_first},
                    )
                )
    return collect("series", cells, plan, numbered=True)


SIZE = 100_000_000
"""A2: 10^8 bytes of payload at the receiver."""


def run_transfers(plan: Plan) -> Data:
    """100 MB over path 1: both readings of its rate, all buffers, cold and warm; and the negative control.

    Returns
    -------
    Data
        `transfers.times`: path, queue, protocol, cache, run, completion_s (from the first data byte's connection being up to the
        last byte acknowledged), retransmissions.
    """
    seeds = plan.count(quick=6, paper=12)
    places = [(path, queue) for path in (ALABAMA, ALABAMA_ATM) for queue in BUFFERS] + [(ALABAMA, CONTROL)]
    asked = [(*place, protocol, cache) for place in places for protocol in PROTOCOLS for cache in (COLD, WARM)]
    asked += [(ALABAMA, ALABAMA.queue, name, COLD) for name in STARTS]
    asked += [(ALABAMA, ALABAMA.queue, each_acked(protocol), WARM) for protocol in (HSTCP, NEWRENO)]
    senders = {**SENDERS, **STARTS, **{each_acked(protocol): SENDERS[protocol] for protocol in (HSTCP, NEWRENO)}}
    cells = []
    for path, queue, protocol, cache in asked:
        scenario = paths.scenario(
            path,
            [(senders[protocol], 1)],
            duration_s=60,
            queue=queue,
            workload={"kind": "transfer", "bytes": f"{SIZE} bytes"},
            users=0.0 if queue == CONTROL else 0.02,
            **_stack(protocol, path, cache),
        )
        cells.append(
            Cell(
                scenario=scenario,
                keys={"path": path.name, "queue": queue, "protocol": protocol, "cache": cache},
                stream=f"large-pipes transfers {path.name} {queue}",
                seeds=seeds,
                needs={"flows": ("flow", "start_s", "established_s", "completion_s", "retransmissions")},
                keep={"times": completion},
            )
        )
    return collect("transfers", cells, plan, numbered=True)


def each_acked(protocol: str) -> str:
    """Name of a protocol whose receiver does not delay ACKs, as the arithmetic behind `W1` has it."""
    return f"{protocol}, every segment acknowledged"


def _stack(protocol: str, path: Path, cache: str) -> dict[str, Any]:
    for plain in (HSTCP, NEWRENO):
        if protocol == each_acked(plain):
            return {"delayed_ack": False, **warmth(plain, path, cache == WARM)}
    return warmth(protocol, path, cache == WARM)


STARTS = {
    "TCPW, estimate from its first sample": paths.westwood("TCPW, estimate from its first sample", first="sample"),
    "TCPW, SACK on": paths.westwood("TCPW, SACK on", sack=True),
    "TCPW, slow start": paths.westwood("TCPW, slow start", astart=False),
}
"""What the start of TCPW hangs on, for comparison: all at the queue adopted, cold."""

CONTROL = 2000
"""Queue of the negative control: no loss, so all four are limited by the window alone."""


def completion(batch: Batch) -> pl.DataFrame:
    """Completion times without the handshake (section 7 of the fact sheet's metrics)."""
    return batch.flows.filter(pl.col("flow") == 0).select(
        "seed",
        (pl.col("completion_s") - (pl.col("established_s") - pl.col("start_s")))
        .fill_null(math.inf)
        .alias("completion_s"),
        "retransmissions",
    )


LOSSES = (0.001, 0.002, 0.003, 0.005)
"""A3: "PER 0.1 up to 0.5" read as percent."""

ESTIMATORS = {
    TCPW: SENDERS[TCPW],
    "TCPW, SACK on": paths.westwood("TCPW, SACK on", sack=True),
    "TCPW, packet pairs (BE)": paths.westwood("TCPW, packet pairs (BE)", estimator="be"),
    "TCPW, packet trains (RE)": paths.westwood("TCPW, packet trains (RE)", estimator="re"),
    "FAST, no doubling at low delay": paths.Protocol(
        name="FAST, no doubling at low delay", controller="fast", options={"low_delay_doubling": False}
    ),
}
"""What the ranking under loss hangs on, besides the four protocols."""


def run_losses(plan: Plan) -> Data:
    """Random loss on path 1.

    Returns
    -------
    Data
        `losses.throughput`: protocol, loss, run, goodput_bps, rtos.
    """
    seeds = plan.count(quick=6, paper=12)
    duration = 120.0 if plan.scale == "paper" else 20.0
    senders = {**SENDERS, **ESTIMATORS}
    cells = []

    def throughput(batch: Batch) -> pl.DataFrame:
        return batch.flows.filter(pl.col("flow") == 0).select("seed", "goodput_bps", "rtos", "retransmissions")

    for name, protocol in senders.items():
        for loss in LOSSES:
            scenario = paths.scenario(ALABAMA, [(protocol, 1)], duration_s=duration, queue=400, loss=loss, users=0.0)
            cells.append(
                Cell(
                    scenario=scenario,
                    keys={"protocol": name, "loss": loss},
                    stream=f"large-pipes losses {loss}",
                    seeds=seeds,
                    needs={"flows": ("flow", "goodput_bps", "rtos", "retransmissions")},
                    keep={"throughput": throughput},
                )
            )
    return collect("losses", cells, plan, numbered=True)


def ramp_times(tables: Tables, path: Path, protocol: str, cache: str) -> Array:
    """Ramp-up times, one per run."""
    return _column(tables["ramps.times"], "ramp_s", path=path.name, protocol=protocol, cache=cache)


def completions(tables: Tables, protocol: str, cache: str, *, path: Path = ALABAMA, queue: int | None = None) -> Array:
    """Completion times of 100 MB, one per run."""
    at = path.queue if queue is None else queue
    return _column(tables["transfers.times"], "completion_s", path=path.name, protocol=protocol, cache=cache, queue=at)


def throughputs(tables: Tables, protocol: str, loss: float) -> Array:
    """Goodput under random loss, bit/s, one per run."""
    return _column(tables["losses.throughput"], "goodput_bps", protocol=protocol, loss=loss)


def per_second(tables: Tables, path: Path, protocol: str, cache: str, start_s: float, stop_s: float) -> Array:
    """Goodput, bit/s: a row per run, a column per interval in (start, stop]."""
    t = tables["series.goodput"].filter(
        (pl.col("path") == path.name)
        & (pl.col("protocol") == protocol)
        & (pl.col("cache") == cache)
        & (pl.col("t_s") > start_s + 1e-6)
        & (pl.col("t_s") <= stop_s + 1e-6)
    )
    by_run = t.sort("run", "t_s").partition_by("run", maintain_order=True)
    return np.array([own["goodput_bps"].to_numpy() for own in by_run])


def _column(table: pl.DataFrame, column: str, **keys: Any) -> Array:
    for key, value in keys.items():
        table = table.filter(pl.col(key) == value)
    return table.sort("run")[column].to_numpy().astype(np.float64)
