"""Losses in bursts and short queues: where the rules differ that a deep queue under single losses makes equal (T12, P4, P12)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.plot import Figure, new
from ackclock.report import Block, paragraph
from ackclock.scenario import Scenario
from ackclock.stats import Estimate
from ackclock.studies.prr import path
from ackclock.studies.prr.path import LARGE, PAGE_LABELS
from ackclock.studies.prr.rules import CRB, FORM, PRR, RATE_HALVING, RFC6675, SSRB, label, prr
from ackclock.study import (
    Chapter,
    Claim,
    Criterion,
    Data,
    Evidence,
    Experiment,
    Plan,
    Range,
    Reading,
    Tables,
    above,
    between,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.estimates import gain, percent_more

RULES = (RATE_HALVING, RFC6675, CRB, SSRB, PRR)
LOSS = 0.02
LENGTHS = (1, 3, 8)
"""Mean packets of a burst of losses; 1: single, independent losses."""
DEPTHS = (6, 10, 25, 100)
"""Packets that the bottleneck's queue holds; the path itself holds 10."""
COLUMNS = ("total_s", "data_retransmissions", "data_rtos", "lost_retransmits")

DEPTH = Reading(
    name="depth",
    question="How many packets does the queue of the bottleneck hold?",
    options={"10 packets": "what the path holds", **{f"{n} packets": "" for n in DEPTHS if n != 10}},
    why="a bandwidth-delay product is the rule by which routers were sized when the servers were measured",
)
LENGTH = Reading(
    name="burst",
    question="How many packets are lost at a time?",
    options={"1 packet": "single losses", **{f"{n} packets": "on average" for n in LENGTHS[1:]}},
    why="the loss of the publications' paths is given as a rate alone",
)


def scenario(rule: str, length: int, depth: int) -> Scenario:
    """One fetch of 750 KB over the bottleneck alone, which loses data in bursts (Gilbert and Elliott's two states)."""
    leave = 1 / length
    loss = {"kind": "gilbert-elliott", "p": LOSS * leave / (1 - LOSS), "r": leave, "applies_to": "data"}
    single = {"kind": "bernoulli", "p": LOSS, "applies_to": "data"}
    return Scenario.from_dict(
        {
            "name": f"{rule}, bursts of {length}, queue of {depth}",
            "duration": "1 h",
            "network": {
                "topology": "chain",
                "bottleneck": {
                    "rate": "1.2 Mbit/s",
                    "delay": "50 ms",
                    "queue": {"kind": "drop-tail", "limit": f"{depth} packets"},
                    "loss": single if length == 1 else loss,
                },
                "reverse": {"bottleneck": {"rate": "1.2 Mbit/s", "delay": "50 ms"}},
            },
            "flows": [{**path.host(recovery=rule), "workload": {"kind": "fetch", "bytes": f"{LARGE} bytes"}}],
        }
    )


def run(plan: Plan) -> Data:
    """Every rule under every length of burst behind every queue, paired by common random numbers.

    Returns
    -------
    Data
        `bursts.fetches`: rule, length, depth, seed and the columns of a fetch.
    """
    seeds = plan.count(quick=150, paper=1500)
    cells = [
        Cell(
            scenario=scenario(rule, length, depth),
            keys={"rule": rule, "length": length, "depth": depth},
            stream=f"bursts {length} {depth}",
            seeds=seeds,
            needs={"fetches": COLUMNS},
        )
        for length in LENGTHS
        for depth in DEPTHS
        for rule in RULES
    ]
    return collect("bursts", cells, plan)


def pairs(tables: Tables, column: str, first: str, second: str, length: int, depth: int) -> tuple[Any, Any]:
    """Values of two rules for the same seeds."""
    own = tables["bursts.fetches"].filter((pl.col("length") == length) & (pl.col("depth") == depth)).sort("seed")
    x, y = (own.filter(pl.col("rule") == rule)[column].to_numpy().astype(np.float64) for rule in (first, second))
    done = np.isfinite(x) & np.isfinite(y)
    return x[done], y[done]


def more(tables: Tables, column: str, rule: str, other: str, length: int, depth: int) -> Estimate:
    """How much more of something a rule has than another, percent."""
    return percent_more(*pairs(tables, column, rule, other, length, depth))


def name(length: int, depth: int) -> str:
    """Of a cell."""
    return f"{'single losses' if length == 1 else f'bursts of {length}'}, queue of {depth}"


def chosen(tables: Tables) -> tuple[int, int]:
    """Burst and depth of this reading."""
    return int(LENGTH.of(tables).split()[0]), int(DEPTH.of(tables).split()[0])


def _of_6675(tables: Tables, column: str, what: str, bound: Range, cell: tuple[int, int], key: str) -> list[Evidence]:
    """RFC 6675 against PRR in the cell that weighs, and in all others."""
    cells = [cell, *((n, d) for n in LENGTHS for d in DEPTHS if (n, d) != cell)]
    return [
        Evidence.of(
            more(tables, column, RFC6675, prr(tables), n, d),
            f"{name(n, d)}: more {what}",
            bound,
            unit="%",
            weighs=(n, d) == cell,
            key=key if (n, d) == cell else f"{key}_{n}_{d}",
        )
        for n, d in cells
    ]


def p4(tables: Tables) -> Sequence[Evidence]:
    """Retransmissions of RFC 6675, and those that are lost again, less those of PRR."""
    cell = chosen(tables)
    return [
        *_of_6675(tables, "data_retransmissions", "retransmissions", above(0, margin=0.5), cell, "all"),
        *_of_6675(tables, "lost_retransmits", "lost retransmissions", above(0, margin=1), cell, "lost"),
    ]


def p4_much(tables: Tables) -> Sequence[Evidence]:
    """How many more."""
    cell = chosen(tables)
    return [
        *_of_6675(tables, "data_retransmissions", "retransmissions", between(1.5, 6), cell, "all"),
        *_of_6675(tables, "lost_retransmits", "lost retransmissions", between(14.5, 58), cell, "lost"),
    ]


def p12(tables: Tables) -> Sequence[Evidence]:
    """Timeouts of RFC 6675 after bursts of losses."""
    return _of_6675(tables, "data_rtos", "timeouts", above(0, margin=1), (3, chosen(tables)[1]), "timeouts")


def t12(tables: Tables) -> Sequence[Evidence]:
    """Gain of PRR over rate halving under bursts of losses."""
    cells = [(3, 100), (8, 100), *((n, d) for n in LENGTHS for d in DEPTHS if (n, d) not in ((3, 100), (8, 100)))]
    return [
        Evidence.of(
            gain(*pairs(tables, "total_s", RATE_HALVING, prr(tables), n, d)),
            f"{name(n, d)}: gain of {label(prr(tables))}",
            above(0, margin=0.3),
            unit="%",
            weighs=(n, d) in ((3, 100), (8, 100)),
            key=f"gain_{n}_{d}",
        )
        for n, d in cells
    ]


_SLIDES = "IETF-84 slides"

CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="T12",
        place="CS244'13 blog, first paragraph",
        statement="PRR improves upon the existing fast recovery under burst losses.",
        direction=Criterion(
            measure=t12,
            reading="mean latency lower than with rate halving; less than 0.3 % counts as none",
            cell="bursts of 3 and of 8 packets on average, 2 % lost in all, behind the blog's queue of 100 packets",
            bound="stated",
            reads=(FORM,),
        ),
        note=(
            "With single losses it gains {gain_1_100:i}, with bursts of 3 {gain_3_100:i} and with bursts of 8 {gain_8_100:i}. In bursts the same share of "
            "packets makes fewer recoveries, and more of them end in a timeout: a few fetches with long backoffs carry the mean, and its interval is wide."
        ),
    ),
    Claim(
        id="P4",
        place=f"{_SLIDES}, measurement summary; RFC 6937 §5",
        statement="RFC 3517 retransmits more than PRR, and loses more of its retransmissions.",
        direction=Criterion(
            measure=p4,
            reading="fetches of 750 KB, 2 % single losses; less than 0.5 and 1 % counts as none",
            cell="a queue of one bandwidth-delay product: the publications name no cell but Google's Web servers",
            bound="stated",
            reads=(DEPTH, LENGTH, FORM),
        ),
        magnitude=Criterion(
            measure=p4_much,
            reading="within a factor of two",
            cell="as above",
            bound="printed",
            printed="3 % more retransmissions, 29 % more lost ones",
            reads=(DEPTH, LENGTH, FORM),
        ),
        note=(
            "Behind 10 packets {all:i} more retransmissions and {lost:i} more lost ones, behind 100 {all_1_100:i} and {lost_1_100:i}: a burst costs "
            "where it overflows the queue."
        ),
    ),
    Claim(
        id="P12",
        place=f"{_SLIDES}, all positive results",
        statement="PRR is less prone to timeouts following burst losses than RFC 3517.",
        direction=Criterion(
            measure=p12,
            reading="timeouts of fetches of 750 KB; less than 1 % counts as none",
            cell="bursts of 3 packets on average behind a queue of one bandwidth-delay product",
            bound="stated",
            reads=(DEPTH, FORM),
        ),
        note=(
            "Timeouts of RFC 6675 beyond those of PRR, in percent of these: {timeouts:i} behind 10 packets, {timeouts_3_100:i} behind 100. A burst of losses "
            "that takes the retransmission, too, ends in a timeout under either rule."
        ),
    ),
)


def figure(tables: Tables) -> Figure:
    """Latency, timeouts and retransmissions of each rule against PRR, by length of burst and depth of queue."""
    shown = tuple(rule for rule in RULES if rule not in (PRR, SSRB))
    columns = {
        "total_s": "mean latency",
        "data_rtos": "timeouts",
        "data_retransmissions": "retransmissions",
        "lost_retransmits": "lost retransmissions",
    }
    table = pl.DataFrame(
        [
            {"rule": rule, "what": what, "length": n, "depth": d, "more_percent": e.value, "low": e.low, "high": e.high}
            for column, what in columns.items()
            for rule in shown
            for n in LENGTHS
            for d in DEPTHS
            for e in (more(tables, column, rule, PRR, n, d),)
        ]
    )

    def draw() -> Any:
        made, axes = new(7.6, 8.0, nrows=len(columns), ncols=len(shown), sharex=True, sharey=True)
        for row, what in zip(axes, columns.values(), strict=True):
            proven = table.filter((pl.col("what") == what) & ((pl.col("low") > 0) | (pl.col("high") < 0)))
            most = float(proven["more_percent"].abs().max() or 1.0)  # type: ignore[arg-type]
            for ax, rule in zip(row, shown, strict=True):
                own = table.filter((pl.col("rule") == rule) & (pl.col("what") == what))
                sure = ((own["low"] > 0) | (own["high"] < 0)).to_numpy()
                value = own["more_percent"].to_numpy()
                shape = (len(LENGTHS), len(DEPTHS))
                ax.imshow(
                    np.where(sure, value, 0.0).reshape(shape), cmap="PuOr_r", vmin=-most, vmax=most, aspect="auto"
                )
                for k, (x, is_sure) in enumerate(zip(value, sure, strict=True)):
                    text = f"{x:+.1f}".replace("-", "−")
                    dark = abs(x) > 0.55 * most
                    look = (
                        {"weight": "bold", "color": "white" if dark else "black"} if is_sure else {"color": "#777777"}
                    )
                    ax.text(k % len(DEPTHS), k // len(DEPTHS), text, ha="center", va="center", fontsize=8, **look)
                ax.set_title(label(rule) if row[0] is axes[0, 0] else "")
                ax.grid(visible=False)
            row[0].set_ylabel(f"{what}\npackets per burst")
        for ax in axes[-1]:
            ax.set_xticks(range(len(DEPTHS)), [str(d) for d in DEPTHS])
            ax.set_xlabel("queue (packets)")
        for ax in axes[:, 0]:
            ax.set_yticks(range(len(LENGTHS)), [str(n) for n in LENGTHS])
        return made

    return Figure(
        name="burst-loss",
        title=f"Fetches of {PAGE_LABELS[LARGE]}: what bursts of losses and short queues do to each rule",
        caption=(
            "Mean latency, timeouts, retransmissions and those that were lost again, percent more than with PRR of Linux 3.2 under the same losses, 2 % of the data packets in all; bold and coloured where the "
            "95 % interval excludes zero. The path holds 10 packets."
        ),
        draw=draw,
        data={"burst-loss": table},
    )


def blocks(tables: Tables) -> Sequence[Block]:
    """For the report."""
    return (
        paragraph(
            "Behind a queue of 100 packets no burst of a sender overflows anything, and losses come one by one. Here the bottleneck is alone, its queue "
            "is as short as 6 packets, and the same 2 % of the packets are lost singly or in bursts."
        ),
        figure(tables),
    )


CHAPTER = Chapter(
    title="Burst losses and short queues",
    experiments=(
        Experiment(name="bursts", title="bursts of losses behind queues of 6 to 100 packets", run=run, weight=15),
    ),
    claims=CLAIMS,
    blocks=blocks,
    scenarios=lambda: {"bursts of 3 losses, queue of 10 packets, PRR": scenario(PRR, 3, 10)},
)
