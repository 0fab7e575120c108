"""An application that pauses during recovery, then writes again (P13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ackclock import run as simulate
from ackclock.plot import Figure, new, traces
from ackclock.report import Block
from ackclock.scenario import Scenario
from ackclock.study import Chapter, Data, Evidence, Experiment, Plan, Tables, above, exactly
from ackclock.study.table import declared
from ackclock_studies.prr import path
from ackclock_studies.prr.rules import CRB, LINUX_32, RATE_HALVING, RFC6675, SSRB, label
from ackclock_studies.prr.traces import sender_trace

RULES = (RATE_HALVING, LINUX_32, SSRB, CRB, RFC6675)
WRITE_MS = 300
"""Time of the application's next write; recovery lasts from 223 to 342 ms."""


def scenario(rule: str) -> Scenario:
    """20 kB at once, with the first segment lost, and 20 kB more in the middle of recovery."""
    return Scenario.from_dict(
        {
            "name": f"stall, {rule}",
            "duration": "5 s",
            "network": {
                "topology": "chain",
                "bottleneck": {
                    "rate": "1.2 Mbit/s",
                    "delay": "50 ms",
                    "queue": {"kind": "drop-tail", "limit": "100 packets"},
                    "loss": {"kind": "scripted", "drops": [{"first": 1, "last": 1}]},
                },
                "reverse": {"bottleneck": {"rate": "1.2 Mbit/s", "delay": "50 ms"}},
            },
            "flows": [
                {
                    **path.host(recovery=rule, smss="1000 bytes", initial_window=20),
                    # 20 kB every 300 ms; only one such write takes place
                    "workload": {
                        "kind": "throttled",
                        "rate": f"{20_000 * 8 * 1000 // WRITE_MS} bit/s",
                        "chunk": "20 kB",
                        "initial": "20 kB",
                        "bytes": "40 kB",
                    },
                }
            ],
            "record": {"trace": "flow"},
        }
    )


def run(plan: Plan) -> Data:
    """Each rule once, without randomness.

    Returns
    -------
    Data
        `stall.acks` and `stall.recoveries`, key rule.
    """
    acks, recoveries, digests = [], [], []
    for i, rule in enumerate(RULES):
        plan.report(rule, i / len(RULES))
        result = simulate(scenario(rule), seed=1)
        digests.append(result.digest)
        key = pl.lit(rule).alias("rule")
        acks.append(sender_trace(result.acks).select(key, pl.all()))
        recoveries.append(result.recoveries.select(key, pl.all()))
    tables = {"stall.acks": pl.concat(acks), "stall.recoveries": pl.concat(recoveries)}
    return Data(tables=tables, digests=digests, runs=len(digests))


def at_once(tables: Tables, rule: str) -> int:
    """Segments sent within the millisecond of the write."""
    sent = tables["stall.acks"].filter((pl.col("rule") == rule) & (pl.col("event") == "send"))
    late = sent.filter(pl.col("t_s") >= (WRITE_MS - 1) / 1000)
    return late.filter(pl.col("t_s") <= late["t_s"].min() + 0.001).height  # type: ignore[operator]


def left(tables: Tables, rule: str) -> int:
    """Excess of cwnd over ssthresh just before the end of recovery."""
    r = tables["stall.recoveries"].filter(pl.col("rule") == rule)
    return int(r["cwnd_before_exit"][0]) - int(r["ssthresh"][0])


def p13(tables: Tables) -> Sequence[Evidence]:
    """Segments sent at once after the pause, and the window at the end."""
    halving = at_once(tables, RATE_HALVING)
    found = [
        Evidence(
            label=f"segments that leave with the write, {label(rule)} less rate halving",
            value=float(at_once(tables, rule) - halving),
            bound=above(0),
            unit="segments",
            weighs=rule != RFC6675,
        )
        for rule in RULES[1:]
    ]
    for rule in (LINUX_32, SSRB, CRB, RATE_HALVING):
        text = f"cwnd - ssthresh at the end of recovery, {label(rule)}"
        key = "halving" if rule == RATE_HALVING else ""
        weighs = rule != RATE_HALVING
        found.append(
            Evidence(
                label=text, value=float(left(tables, rule)), bound=exactly(0), unit="segments", weighs=weighs, key=key
            )
        )
    return found


def figure(tables: Tables) -> Figure:
    """Windows under rate halving and PRR around the pause."""
    acks = tables["stall.acks"]

    def draw() -> Any:
        made, axes = new(7.6, 3.0, ncols=2, sharey=True)
        for ax, rule in zip(axes, (RATE_HALVING, LINUX_32), strict=True):
            traces.draw_windows(ax, acks.filter(pl.col("rule") == rule), start_s=0.1, stop_s=0.6)
            ax.axvline(WRITE_MS / 1000, color="#555555", lw=0.8, ls=(0, (2, 2)))
            ax.set(title=label(rule), xlabel="time (s)", xlim=(0.1, 0.6))
        axes[0].set_ylabel("segments")
        axes[1].legend(loc="upper right")
        return made

    return Figure(
        name="stall",
        title=f"After a stall {at_once(tables, LINUX_32)} segments leave at once with PRR, {at_once(tables, RATE_HALVING)} with rate halving",
        caption=(
            "One of 20 segments is lost, and the application has nothing more to send until 300 ms (dashed line), in the middle of recovery (shaded). PRR has counted "
            "what was delivered meanwhile; rate halving has lowered cwnd with what was in flight."
        ),
        draw=draw,
        data={"stall": acks.select("rule", "t_s", "event", "cwnd", "pipe", "ssthresh", "ca_state")},
    )


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (figure(tables),)


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {"a stall during recovery, PRR": scenario(LINUX_32)}


CHAPTER = Chapter(
    experiments=(Experiment(name="stall", title="a write in the middle of recovery", run=run, weight=0.2),),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
