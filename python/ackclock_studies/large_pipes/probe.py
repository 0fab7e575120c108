"""Packet pairs over both readings of path 1, and the fastest transfer over each (W1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import Array, mean_over_runs, median
from ackclock.scenario import Scenario
from ackclock.study import (
    Chapter,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
    above,
    at_most,
    same,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.large_pipes import paths
from ackclock_studies.large_pipes.paths import (
    ALABAMA,
    ALABAMA_ATM,
    FAST,
    NEWRENO,
    SENDERS,
    TCPW,
    Bottleneck,
)
from ackclock_studies.large_pipes.runs import NO_BOUND, pick

CROSSED = 0.2
"""Load of the other users during the probe, as a fraction of the bottleneck rate: their packets spread the pairs."""


def probing(path: Bottleneck, workload: Mapping[str, Any]) -> Scenario:
    """Pairs from a Gigabit NIC. Other users send from another NIC, so that their packets can fall between those of a pair."""
    made = paths.scenario(path, [(SENDERS[NEWRENO], 1)], duration_s=60.0, workload=workload, users=CROSSED).to_dict()
    card = {"rate": "1 Gbit/s", "delay": f"{0.5e6 * path.rtt_s:.0f} us"}
    bottleneck = {k: v for k, v in made["network"]["bottleneck"].items() if k in ("rate", "queue")}
    network = {
        "topology": "wishbone",
        "access_list": [card, card],
        "bottleneck": bottleneck,
        "reverse": {"bottleneck": {"rate": f"{path.rate_bps} bit/s"}},
    }
    return Scenario.from_dict({**made, "network": network})


def run_probe(plan: Plan) -> Data:
    """Packet pairs over both readings of path 1 with other users present, and the fastest 100 MB transfer over each.

    Returns
    -------
    Data
        `probe.pairs`: path, run, rate_bps (the mode of 200 pairs' dispersion at the receiver, IP packets), spread
        (fraction of the pairs more than 2 % off it); `probe.times`: path, protocol, run, completion_s.
    """
    seeds = plan.count(quick=6, paper=12)
    cells = []

    def pairs(batch: Batch) -> pl.DataFrame:
        rows = []
        for (seed,), own in batch.fetches.filter(pl.col("flow") == 0).group_by("seed", maintain_order=True):
            rate = paths.MTU * 8 / (own["total_s"] - own["first_byte_s"]).to_numpy()
            mode = _mode(rate)
            rows.append({"seed": seed, "rate_bps": mode, "spread": float((np.abs(rate / mode - 1) > 0.02).mean())})
        return pl.DataFrame(rows, schema_overrides={"seed": pl.UInt64})

    def times(batch: Batch) -> pl.DataFrame:
        done = pl.col("completion_s") - (pl.col("established_s") - pl.col("start_s"))
        return batch.flows.filter(pl.col("flow") == 0).select("seed", done.alias("completion_s"))

    for path in (ALABAMA, ALABAMA_ATM):
        workload: Mapping[str, Any] = {
            "kind": "fetch",
            "bytes": f"{2 * paths.SEGMENT} bytes",
            "count": 200,
            "pause": "50 ms",
        }
        scenario = probing(path, workload)
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
        for protocol in (TCPW, FAST):
            size: Mapping[str, Any] = {"kind": "transfer", "bytes": "100 MB"}
            cells.append(
                Cell(
                    scenario=paths.scenario(path, [(SENDERS[protocol], 1)], duration_s=60.0, workload=size, users=0.0),
                    keys={"path": path.name, "protocol": protocol},
                    stream="large-pipes probe times",
                    seeds=1,
                    needs={"flows": ("flow", "start_s", "established_s", "completion_s")},
                    keep={"times": times},
                )
            )
    return collect("probe", cells, plan, numbered=True)


def _mode(rates: Array) -> float:
    """Rate, to within 1 %, around which most pairs lie."""
    near = [(np.abs(rates / rate - 1) < 0.01).sum() for rate in rates]
    return float(np.median(rates[np.abs(rates / rates[int(np.argmax(near))] - 1) < 0.01]))


def w1(tables: Tables) -> Sequence[Evidence]:
    """Packet pairs find the rate in the presence of other users, and only this rate allows 100 MB in the time of slide 12."""
    off = pick(tables, "probe.pairs", "spread", path=ALABAMA.name)
    found = [
        Evidence.of(
            median(pick(tables, "probe.pairs", "rate_bps", path=path.name)),
            f"packet pairs, {path.name}",
            same(0.02 * path.rate_bps / 1e6, of=path.rate_bps / 1e6),
            unit="Mb/s",
            factor=1e-6,
            weighs=path is ALABAMA,
            key="pairs" if path is ALABAMA else "pairs_atm",
        )
        for path in (ALABAMA, ALABAMA_ATM)
    ]
    for path, bound, key in ((ALABAMA, at_most(1.1 * 5.8), "least"), (ALABAMA_ATM, above(5.8), "least_atm")):
        least = min(
            float(pick(tables, "probe.times", "completion_s", path=path.name, protocol=p).min()) for p in (TCPW, FAST)
        )
        found.append(Evidence(label=f"fastest 100 MB, {path.name}", value=least, bound=bound, unit="s", key=key))
    found.append(
        Evidence.of(
            mean_over_runs(off), "pairs that others spread", NO_BOUND, unit="%", factor=100, weighs=False, key="off"
        )
    )
    return found


CHAPTER = Chapter(
    experiments=(
        Experiment(name="probe", title="packet pairs through both readings of path 1", run=run_probe, weight=1),
    ),
    **declared(__name__),
)
