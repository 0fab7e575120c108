"""Packet pairs through both readings of path 1 (W1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ackclock import Batch
from ackclock.studies.large_pipes import paths
from ackclock.studies.large_pipes.paths import (
    ALABAMA,
    ALABAMA_ATM,
    NEWRENO,
    SENDERS,
)
from ackclock.studies.large_pipes.runs import pick
from ackclock.study import (
    Chapter,
    Claim,
    Criterion,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
    between,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.estimates import median


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


def w1(tables: Tables) -> Sequence[Evidence]:
    """Packet pairs through the model."""
    return [
        Evidence.of(
            median(pick(tables, "probe.pairs", "rate_bps", path=path.name)),
            f"packet pairs, {path.name}",
            between(0.98 * path.rate_bps / 1e6, 1.02 * path.rate_bps / 1e6),
            unit="Mb/s",
            factor=1e-6,
            weighs=path is ALABAMA,
        )
        for path in (ALABAMA, ALABAMA_ATM)
    ]


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="W1",
        place="slide 9",
        statement="The bottleneck of path 1 has 155 Mb/s.",
        direction=Criterion(
            measure=w1,
            reading="Packet pairs through the model find 155 Mb/s of IP packets within 2 %.",
        ),
    ),
)

CHAPTER = Chapter(
    title="The capacity of path 1",
    experiments=(
        Experiment(name="probe", title="packet pairs through both readings of path 1", run=run_probe, weight=1),
    ),
    claims=CLAIMS,
)
