"""Traces: one long flow with and without PRR, and the time-sequence of two scripted loss patterns for each rule."""

from __future__ import annotations

from typing import Any

import polars as pl

from ackclock import run as simulate
from ackclock.scenario import Scenario
from ackclock.studies.prr import path
from ackclock.studies.prr.rules import RATE_HALVING, RFC6675, RULES
from ackclock.study import Data, Plan

LONG = {
    "without PRR": path.host(recovery=RATE_HALVING),
    "with PRR": path.host(recovery="prr-linux-3.2"),
    "RFC 6675": path.host(recovery=RFC6675),
}
"""Arms of the cwnd experiment: one sender, three rules."""

PATTERNS = {"1-4": [(1, 4)], "1-4, 11-16": [(1, 4), (11, 16)]}
"""Segments whose first transmission is dropped, counted from 1."""


def sequence_scenario(pattern: str, rule: str) -> Scenario:
    """The time-sequence experiment: 20 kB at once, 10 kB after 500 ms.

    An initial window of 20 lets all 20 kB leave at once; the publication's loss patterns presuppose that.
    """
    drops: list[dict[str, Any]] = [{"first": first, "last": last} for first, last in PATTERNS[pattern]]
    return Scenario.from_dict(
        {
            "name": f"losses {pattern}, {rule}",
            "duration": "10 s",
            "network": {
                "topology": "chain",
                "bottleneck": {
                    "rate": "1.2 Mbit/s",
                    "delay": "50 ms",
                    "queue": {"kind": "drop-tail", "limit": "100 packets"},
                    "loss": {"kind": "scripted", "drops": drops},
                },
                "reverse": {"bottleneck": {"rate": "1.2 Mbit/s", "delay": "50 ms"}},
            },
            "flows": [
                {
                    **path.host(recovery=rule, smss="1000 bytes", initial_window=20),
                    # 10 kB every 500 ms is 160 kbit/s; only one such write is made
                    "workload": {
                        "kind": "throttled",
                        "rate": "160 kbit/s",
                        "chunk": "10 kB",
                        "initial": "20 kB",
                        "bytes": "30 kB",
                    },
                }
            ],
            "record": {"trace": "flow", "drops": True},
        }
    )


def run(plan: Plan) -> Data:
    """Run all traces; nothing here is random.

    Returns
    -------
    Data
        `traces.long` (key arm), `traces.long_recoveries`, `traces.sequence` and `traces.drops` (keys pattern, rule).
    """
    long, recoveries, digests = [], [], []
    steps = len(LONG) + len(PATTERNS) * len(RULES)
    for i, (arm, sender) in enumerate(LONG.items()):
        plan.report(arm, i / steps)
        result = simulate(path.long_flow(sender, name=f"long flow, {arm}"), seed=1)
        digests.append(result.digest)
        key = pl.lit(arm).alias("arm")
        long.append(sender_trace(result.acks).select(key, pl.all()))
        recoveries.append(result.recoveries.select(key, pl.all()))
    sequences, drops = [], []
    for p, pattern in enumerate(PATTERNS):
        for r, rule in enumerate(RULES):
            plan.report(f"losses {pattern}, {rule}", (len(LONG) + p * len(RULES) + r) / steps)
            result = simulate(sequence_scenario(pattern, rule), seed=1)
            digests.append(result.digest)
            keys = [pl.lit(pattern).alias("pattern"), pl.lit(rule).alias("rule")]
            sequences.append(sender_trace(result.acks).select(*keys, pl.all()))
            drops.append(result.drops.filter(pl.col("forward")).select(*keys, pl.all()))
    return Data(
        tables={
            "traces.long": pl.concat(long),
            "traces.long_recoveries": pl.concat(recoveries),
            "traces.sequence": pl.concat(sequences),
            "traces.drops": pl.concat(drops),
        },
        digests=digests,
        runs=len(digests),
    )


def sender_trace(acks: pl.DataFrame) -> pl.DataFrame:
    """The half of the trace that sent the data, if both halves were recorded."""
    sent = acks.filter(pl.col("event") == "send").group_by("responder").agg(pl.col("len").sum()).sort("len")
    return acks.filter(pl.col("responder") == sent["responder"][-1]) if sent.height else acks
