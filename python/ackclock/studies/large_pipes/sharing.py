"""Flows that share path 1: fairness, synchronisation of FAST, friendliness to NewReno, round-trip times; and the probe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch, metrics
from ackclock.scenario import Scenario
from ackclock.studies.large_pipes import paths
from ackclock.studies.large_pipes.paths import (
    ALABAMA,
    ALABAMA_ATM,
    FAST,
    NEWRENO,
    PROTOCOLS,
    SENDERS,
)
from ackclock.study import Data, Plan
from ackclock.study.cells import Cell, collect

ALPHA = 200
"""Packets that a FAST flow keeps queued."""


def shares(batch: Batch) -> pl.DataFrame:
    """Goodput of each TCP flow over the second half; the other users, who come last, do not take part."""
    half = batch.goodput["t_s"].max() / 2  # type: ignore[operator]
    flows = sum(group.count for group in batch.scenario.flows if group.workload.kind == "bulk")
    return (
        batch.goodput.filter((pl.col("t_s") > half) & (pl.col("flow") < flows))
        .group_by("seed", "flow", maintain_order=True)
        .agg(pl.col("goodput_bps").mean())
        .sort("seed", "flow")
    )


def run(plan: Plan) -> Data:
    """Two and four flows of one kind; half of them against NewReno; unequal round-trip times.

    Returns
    -------
    Data
        `sharing.same`: protocol, flows, run, flow, goodput_bps; `sharing.mixed`: protocol, flows, run, flow, goodput_bps (the first
        half NewReno); `sharing.rtts`: protocol, ratio, run, flow, goodput_bps.
    """
    seeds = plan.count(quick=6, paper=10)
    duration = 120.0 if plan.scale == "paper" else 16.0
    record = {"goodput_interval": "1 s"}
    cells: list[Cell] = []

    def add(table: str, scenario: Scenario, keys: Mapping[str, object], stream: str) -> None:
        cells.append(
            Cell(
                scenario=scenario,
                keys=keys,
                stream=f"large-pipes {stream}",
                seeds=seeds,
                needs={"goodput": ("flow", "t_s", "goodput_bps")},
                keep={table: shares},
            )
        )

    for protocol in PROTOCOLS:
        sender = SENDERS[protocol]
        for n in (2, 4):
            same = paths.scenario(
                ALABAMA, [(sender, n)], duration_s=duration, queue=QUEUE, stagger_s=1.0, record=record
            )
            keys = {"protocol": protocol, "flows": n}
            add("same", same, keys, f"same {n}")
            mixed = paths.scenario(
                ALABAMA,
                [(SENDERS[NEWRENO], n // 2), (sender, n // 2)],
                duration_s=duration,
                queue=QUEUE,
                stagger_s=1.0,
                record=record,
            )
            add("mixed", mixed, keys, f"mixed {n}")
        for ratio in RTT_RATIOS:
            unequal = paths.unequal(ALABAMA, sender, ratio, duration_s=duration, queue=QUEUE, record=record)
            add("rtts", unequal, {"protocol": protocol, "ratio": ratio}, f"rtts {ratio}")
    return collect("sharing", cells, plan, numbered=True)


QUEUE = 400
RTT_RATIOS = (1, 2, 5, 10)


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


def run_probe(plan: Plan) -> Data:
    """Packet pairs through both readings of path 1: two full packets back to back, dispersion at the receiver.

    Returns
    -------
    Data
        `probe.pairs`: path, run, rate_bps (median over 200 pairs, IP packets).
    """
    seeds = plan.count(quick=6, paper=12)
    cells = []

    def pairs(batch: Batch) -> pl.DataFrame:
        gap = pl.col("total_s") - pl.col("first_byte_s")
        return (
            batch.fetches.filter(pl.col("flow") == 0)
            .group_by("seed", maintain_order=True)
            .agg((paths.MTU * 8 / gap).median().alias("rate_bps"))
        )

    for path in (ALABAMA, ALABAMA_ATM):
        workload: Mapping[str, Any] = {
            "kind": "fetch",
            "bytes": f"{2 * paths.SEGMENT} bytes",
            "count": 200,
            "pause": "50 ms",
        }
        scenario = paths.scenario(path, [(SENDERS[NEWRENO], 1)], duration_s=60.0, workload=workload)
        cells.append(
            Cell(
                scenario=scenario,
                keys={"path": path.name},
                stream="large-pipes probe",
                seeds=seeds,
                needs={"fetches": ("flow", "first_byte_s", "total_s")},
                keep={"pairs": pairs},
            )
        )
    return collect("probe", cells, plan, numbered=True)


def jain_per_run(table: pl.DataFrame) -> list[float]:
    """Jain's index of each run."""
    return [
        metrics.jain(own["goodput_bps"].to_list())
        for _, own in table.sort("run", "flow").group_by("run", maintain_order=True)
    ]
