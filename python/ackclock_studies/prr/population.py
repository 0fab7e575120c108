"""The paper's two settings as populations of clients, figures only: Web responses, and long-RTT video.

The distributions are assumptions. Published figures: mean response 7.5 kB, 3.1 requests per connection, mean user
bandwidth 1.9 Mbit/s, 2.8 % of segments retransmitted (Web); a long-RTT video service that throttles its writes, with
about twice the loss. The shapes (lognormal, exponential) and the spreads are ours.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from ackclock.scenario import Scenario
from ackclock.study import Data, Plan, Tables
from ackclock.study.cells import Cell, collect
from ackclock_studies.prr import path
from ackclock_studies.prr.fetches import HALF_ARM, NEEDS
from ackclock_studies.prr.rules import CRB, LINUX_6, PRR, RFC9937, RULES

SETTINGS: dict[str, dict[str, Any]] = {
    "Web": {
        "requests": 3,
        "rtt": {"kind": "lognormal", "median": "100 ms", "sigma": 0.6},
        "rate": {"kind": "lognormal", "median": "1.9 Mbit/s", "sigma": 0.8},
        "loss": {"kind": "exponential", "mean": "2.5 %"},
        # mean 7.5 kB
        "bytes": {"kind": "lognormal", "median": "3 kB", "sigma": 1.354},
    },
    "video": {
        "requests": 1,
        "rtt": {"kind": "lognormal", "median": "860 ms", "sigma": 0.4},
        "rate": {"kind": "lognormal", "median": "1 Mbit/s", "sigma": 0.5},
        "loss": {"kind": "exponential", "mean": "5 %"},
        "bytes": {"kind": "lognormal", "median": "2.3 MB", "sigma": 0.3},
        "throttle": 1.25,
    },
}

DUPACKS = f"{PRR}, three duplicate ACKs"
NO_SACK = f"{PRR}, no SACK"
STACK: dict[str, dict[str, Any]] = {
    HALF_ARM: {"beta": 0.5},
    DUPACKS: {"detection": "dupthresh"},
    NO_SACK: {"sack": False},
}
"""Arms with Linux 3.2's PRR that differ in more than the rule."""

ARMS = (*RULES, *STACK)
SHOWN = (CRB, RFC9937, LINUX_6)
"""Arms that appear only in figures."""


def scenario(setting: str, arm: str, clients: int, **changed: Any) -> Scenario:
    """Return one population with senders that use one rule; `changed` replaces keys of its workload."""
    rule = arm.partition(", ")[0]
    return Scenario.from_dict(
        {
            "name": f"{setting} population, {arm}",
            "duration": "2 h",
            "network": {"topology": "chain", "bottleneck": {"rate": "1 Gbit/s"}},
            "flows": [
                {
                    **path.host(recovery=rule, **STACK.get(arm, {})),
                    "workload": {"kind": "population", "clients": clients, **SETTINGS[setting], **changed},
                }
            ],
        }
    )


def run(plan: Plan) -> Data:
    """Client populations, one per seed; all rules face the same ones.

    Returns
    -------
    Data
        `population.fetches` and `population.recoveries`, keys setting, arm, seed.
    """
    clients = {"Web": 500, "video": 25}
    seeds = plan.count(quick=10, paper=40)
    beside = plan.count(quick=2, paper=40)
    cells = [
        Cell(
            scenario=scenario(setting, arm, clients[setting]),
            keys={"setting": setting, "arm": arm},
            stream=f"population {setting}",
            seeds=beside if arm in SHOWN else seeds,
            needs=NEEDS,
        )
        for setting in SETTINGS
        for arm in ARMS
    ]
    return collect("population", cells, plan)


def summary(tables: Tables) -> pl.DataFrame:
    """One row per setting and rule, with the properties of its recoveries."""
    fetches, recoveries = tables["population.fetches"], tables["population.recoveries"]
    keys = ["setting", "arm"]
    slack = pl.col("pipe_enter").cast(pl.Int64) - pl.col("ssthresh").cast(pl.Int64)
    exit_slack = pl.col("cwnd_before_exit").cast(pl.Int64) - pl.col("ssthresh").cast(pl.Int64)
    took = (pl.col("t_exit_s") - pl.col("t_enter_s")) / pl.col("srtt_s")
    by_recovery = recoveries.group_by(keys, maintain_order=True).agg(
        pl.len().alias("recoveries"),
        (slack > 0).mean().alias("share_above"),
        (slack == 0).mean().alias("share_at"),
        (slack < 0).mean().alias("share_below"),
        *(exit_slack.quantile(q, "nearest").alias(f"exit_q{round(100 * q):02d}") for q in (0.05, 0.25, 0.5, 0.95)),
        took.filter(took.is_finite()).median().alias("median_rtts"),
        took.filter(took.is_finite()).quantile(0.9).alias("q90_rtts"),
    )
    by_fetch = fetches.group_by(keys, maintain_order=True).agg(
        pl.len().alias("fetches"),
        (pl.col("data_retransmissions").sum() / pl.col("data_segments_sent").sum()).alias("retransmission_rate"),
        pl.col("data_retransmissions").sum().alias("retransmissions"),
        pl.col("lost_retransmits").sum().alias("lost_retransmits"),
        pl.col("data_rtos").sum().alias("timeouts"),
        pl.col("rtos_recovery").sum().alias("timeouts_in_recovery"),
        pl.col("total_s").mean().alias("mean_total_s"),
    )
    return by_recovery.join(by_fetch, on=keys, maintain_order="left")
