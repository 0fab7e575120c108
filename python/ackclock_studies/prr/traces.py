"""Traces: one long flow with and without PRR (T1), and time-sequence traces of two scripted loss patterns for each rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ackclock import run as simulate
from ackclock.plot import Figure, interactive, new
from ackclock.plot import traces as drawn
from ackclock.report import Block
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
)
from ackclock.study.table import declared
from ackclock_studies.prr import path
from ackclock_studies.prr.rules import PRR, RATE_HALVING, RFC6675, RFC9937, SSRB, UB, label
from ackclock_studies.prr.rules import RULES as COMPARED

LONG = {
    "without PRR": path.host(recovery=RATE_HALVING),
    "with PRR": path.host(recovery="prr-linux-3.2"),
    "RFC 6675": path.host(recovery=RFC6675),
}
"""Arms of the cwnd experiment: one sender, three rules."""

RULES = (*COMPARED, UB)
"""Rules in the time-sequence figures: the slides also show PRR without a bound."""

PATTERNS = {"1-4": [(1, 4)], "1-4, 11-16": [(1, 4), (11, 16)]}
"""1-based numbers of the segments dropped on first transmission."""


def sequence_scenario(pattern: str, rule: str) -> Scenario:
    """The time-sequence experiment: 20 kB at once, 10 kB after 500 ms.

    An initial window of 20 lets the sender send all 20 kB at once, which the publication's loss patterns presuppose.
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
                    # 10 kB every 500 ms is 160 kbit/s; only one such write takes place
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
    """Events at the sending end, if both ends were recorded."""
    sent = acks.filter(pl.col("event") == "send").group_by("responder").agg(pl.col("len").sum()).sort("len")
    return acks.filter(pl.col("responder") == sent["responder"][-1]) if sent.height else acks


def falls(trace: pl.DataFrame) -> pl.DataFrame:
    """Reduction of cwnd on each ACK in recovery, beyond the segments newly reported lost by the ACK."""
    signed = [pl.col(c).cast(pl.Int64) for c in ("cwnd_before", "cwnd", "newly_lost")]
    return trace.filter((pl.col("event") == "ack") & (pl.col("ca_state") == "Recovery")).select(
        "arm", "t_s", (signed[0] - signed[1] - signed[2]).alias("fall")
    )


def t1(tables: Tables) -> Sequence[Evidence]:
    """Maximum reduction of cwnd on one ACK."""
    fall = falls(tables["traces.long"])

    def largest(arm: str) -> float:
        kept = fall.filter(pl.col("arm") == arm)["fall"]
        return float(kept.max()) if kept.len() else float("nan")  # type: ignore[arg-type]

    return [
        Evidence(
            label="largest fall of cwnd on one ACK, PRR", value=largest("with PRR"), bound=at_most(1), unit="segments"
        ),
        Evidence(
            label="in one step: largest fall with RFC 6675",
            value=largest("RFC 6675"),
            bound=above(1),
            unit="segments",
            key="step",
        ),
        Evidence(
            label="for contrast: rate halving",
            value=largest("without PRR"),
            bound=at_most(1),
            unit="segments",
            weighs=False,
        ),
    ]


def long_flow(tables: Tables) -> Figure:
    """Window of the 200 s Reno flow with and without PRR, in full and around one recovery."""
    t = tables["traces.long"]
    arms = ("without PRR", "with PRR")
    idx = farthest_below(tables)
    shown = {arm: _recovery(tables, arm, idx) for arm in arms}
    start = min(r["t_enter_s"] for r in shown.values()) - 0.4
    stop = max(r["t_exit_s"] for r in shown.values()) + 1.6

    def draw() -> Any:
        figure, axes = new(7.6, 5.0, nrows=2, ncols=2, sharey="col", width_ratios=(1.6, 1))
        for row, arm in zip(axes, arms, strict=True):
            acks = t.filter(pl.col("arm") == arm)
            drawn.draw_windows(row[0], acks)
            row[0].set(title=f"Reno, {arm}: 200 s", ylabel="segments")
            drawn.draw_windows(row[1], acks, start_s=start, stop_s=stop)
            end = shown[arm]
            row[1].annotate(
                f"{end['cwnd_before_exit']}",
                (end["t_exit_s"], end["cwnd_before_exit"]),
                (-3, -4),
                textcoords="offset points",
                ha="right",
                va="top",
                fontsize=8,
            )
            row[1].set(title=f"{arm}: recovery {idx + 1}", xlim=(start, stop))
        for ax in axes[-1]:
            ax.set_xlabel("time (s)")
        for ax in axes[0]:
            ax.set_ylim(bottom=0)
        axes[0][1].legend(loc="upper right")
        return figure

    def look_closer() -> dict[str, Any]:
        choices = {}
        for arm in (*arms, "RFC 6675"):
            acks = t.filter(pl.col("arm") == arm)
            choices[arm] = (interactive.window_lines(acks, most=6000), interactive.bands(acks))
        return interactive.switch(choices, x="time (s)", y="segments")

    columns = ["arm", "t_s", "event", "cwnd", "pipe", "ssthresh", "ca_state"]
    return Figure(
        name="long-flow",
        title=(
            f"Of a window of {shown[arms[0]]['cwnd_enter']} (ssthresh {shown[arms[0]]['ssthresh']}) rate halving leaves "
            f"{shown[arms[0]]['cwnd_before_exit']} segments at the end of recovery {idx + 1}, PRR "
            f"{shown[arms[1]]['cwnd_before_exit']}"
        ),
        caption=(
            "cwnd, pipe and ssthresh of one Reno flow, 1.2 Mbit/s, RTT 100 ms, queue 100 packets, no random loss; one sender, "
            f"only the recovery rule differs. Shaded: recovery. Right: recovery {idx + 1} of {_recoveries(tables, arms[0]).height}, the one that rate "
            f"halving ends farthest below ssthresh ({shown[arms[0]]['losses']} losses); the number is cwnd at its end. "
            f"{_others(tables, arms[0], idx)} Rate halving goes on reducing, one segment for every second ACK, for as long as "
            "recovery lasts; its lower bound with Reno is half of ssthresh. PRR has ssthresh as its target. The study saw only "
            "cwnd, from tcp_probe; pipe and ssthresh show why it moves."
        ),
        draw=draw,
        data={"trace": t.select(columns)},
        interactive=look_closer,
    )


def farthest_below(tables: Tables) -> int:
    """Index of the recovery that rate halving ends farthest below ssthresh."""
    r = _recoveries(tables, "without PRR")
    below = r["ssthresh"].cast(pl.Int64) - r["cwnd_before_exit"].cast(pl.Int64)
    return int(below.arg_max() or 0)


def _recoveries(tables: Tables, arm: str) -> pl.DataFrame:
    return tables["traces.long_recoveries"].filter(pl.col("arm") == arm).sort("t_enter_s")


def _recovery(tables: Tables, arm: str, idx: int) -> dict[str, Any]:
    r = _recoveries(tables, arm)
    return r.row(min(idx, r.height - 1), named=True)


def _others(tables: Tables, arm: str, idx: int) -> str:
    """A sentence about the ends of an arm's other recoveries."""
    r = _recoveries(tables, arm).with_row_index("k").filter(pl.col("k") != idx)
    at = r.filter(pl.col("cwnd_before_exit") == pl.col("ssthresh")).height
    return f"Of its {r.height} other recoveries {at} end at ssthresh."


SHOWN = (RATE_HALVING, RFC6675, UB, SSRB, PRR, RFC9937)
"""Rules in the time-sequence figures; the interactive figures include all rules."""


def next_write(tables: Tables, pattern: str) -> dict[str, int]:
    """Segments sent at once when the next 10 kB is written, by rule."""
    t = tables["traces.sequence"].filter(pl.col("pattern") == pattern)
    late = t.filter((pl.col("event") == "send") & (pl.col("len") > 1) & (pl.col("t_s") > 0.45))
    return {
        rule: own.filter(pl.col("t_s") == own["t_s"].min()).height
        for rule in RULES
        for own in (late.filter(pl.col("rule") == rule),)
    }


def last_repair(tables: Tables, pattern: str) -> dict[str, float]:
    """Time of the last lost segment's retransmission, s after the first one, by rule."""
    t = tables["traces.sequence"].filter((pl.col("pattern") == pattern) & (pl.col("event") == "rtx"))
    return {
        rule: float(own.max() - own.min())  # type: ignore[operator,arg-type]
        for rule in RULES
        for own in (t.filter((pl.col("rule") == rule) & (pl.col("rexmit") == 1))["t_s"],)
    }


def sequences(tables: Tables, pattern: str, name: str, title: str, caption: str) -> Figure:
    """Time-sequence trace of one loss pattern for each family of rules."""
    t = tables["traces.sequence"].filter(pl.col("pattern") == pattern)
    drops = tables["traces.drops"].filter(pl.col("pattern") == pattern)

    def draw() -> Any:
        figure, axes = new(7.6, 7.2, nrows=3, ncols=2, sharex=True, sharey=True)
        end = max(_finished(t.filter(pl.col("rule") == rule)) for rule in SHOWN)
        for ax, rule in zip(axes.flat, SHOWN, strict=True):
            acks = t.filter(pl.col("rule") == rule)
            drawn.draw_sequence(ax, acks, drops=drops.filter(pl.col("rule") == rule))
            done = _finished(acks)
            ax.axvline(done, color="#555555", lw=0.8, ls=(0, (2, 2)))
            ax.text(done, 1, f"{done:.2f} s ", ha="right", va="bottom", fontsize=8, color="#333333")
            ax.set(title=label(rule), xlim=(0, 1.06 * end), ylim=(-1, 32))
        for ax in axes[-1]:
            ax.set_xlabel("time (s)")
        for ax in axes[:, 0]:
            ax.set_ylabel("sequence (kB)")
        handles, labels = axes.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5, columnspacing=1.2)
        return figure

    def look_closer() -> dict[str, Any]:
        choices = {}
        for rule in RULES:
            acks = t.filter(pl.col("rule") == rule)
            lines = interactive.sequence_lines(acks, drops.filter(pl.col("rule") == rule))
            choices[label(rule)] = (lines, interactive.bands(acks))
        return interactive.switch(choices, x="time (s)", y="sequence (kB)", height=520)

    return Figure(
        name=name,
        title=title,
        caption=caption,
        draw=draw,
        data={"trace": t, "drops": drops},
        interactive=look_closer,
    )


def _finished(acks: pl.DataFrame) -> float:
    """Time when the last new byte was acknowledged."""
    rows = acks.filter(pl.col("event") == "ack")
    last = rows.filter(pl.col("seq") == rows["seq"].max())
    return float(last["t_s"][0])


def _at_once(tables: Tables, pattern: str) -> str:
    sent = next_write(tables, pattern)
    others = [n for rule, n in sent.items() if rule != RATE_HALVING]
    span = str(min(others)) if min(others) == max(others) else f"{min(others)} to {max(others)}"
    return f"{sent[RATE_HALVING]} segments leave at once after rate halving, {span} after the other rules"


def _repaired(tables: Tables, pattern: str) -> str:
    last = last_repair(tables, pattern)
    return "the last is retransmitted " + ", ".join(
        f"{1000 * last[rule]:.0f} ms after the first with {label(rule)}"
        if i == 0
        else f"{1000 * last[rule]:.0f} ms with {label(rule)}"
        for i, rule in enumerate((SSRB, RFC9937, RFC6675, RATE_HALVING))
    )


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (
        long_flow(t),
        sequences(
            t,
            "1-4",
            "sequence-1-4",
            f"Four losses of twenty: of the next 10 kB {_at_once(t, '1-4')}",
            "Time-sequence of 20 kB sent at once and 10 kB more at 500 ms; 1.2 Mbit/s, RTT 100 ms, segments of 1000 bytes, "
            "CUBIC; segments 1 to 4 lost. Shaded: congestion states. Dotted: everything acknowledged. Rate halving shrinks "
            "the window to in flight + 1 as the response runs out; the other rules leave recovery with cwnd = ssthresh. "
            "Count the segments sent at 500 ms. The initial window is 20, so that the losses hit one burst.",
        ),
        sequences(
            t,
            "1-4, 11-16",
            "sequence-1-4-11-16",
            f"Ten losses of twenty: {_repaired(t, '1-4, 11-16')}",
            "As above, with segments 1 to 4 and 11 to 16 lost: half of the window is gone, and in flight lies below ssthresh, so "
            "the reduction bound decides how soon the retransmissions leave. "
            "Look at how densely the retransmissions (triangles) stand.",
        ),
    )


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {
        "long flow with PRR": path.long_flow(LONG["with PRR"]),
        "time-sequence, losses 1-4 and 11-16": sequence_scenario("1-4, 11-16", SSRB),
    }


CHAPTER = Chapter(
    experiments=(
        Experiment(name="traces", title="long Reno flow; time-sequence of two loss patterns", run=run, weight=2),
    ),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
