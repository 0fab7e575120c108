"""Data centres (NSDI 2015, sections 4.1.2 and 4.1.8): between them 800 Mb/s over 9 to 47 ms; within, many senders to one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Block
from ackclock.scenario import Scenario
from ackclock.study import (
    Bound,
    Chapter,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
    above,
    at_least,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.pcc import arms
from ackclock_studies.pcc.arms import CUBIC, ILLINOIS, NEWRENO, PCC, PRINTED, Arm, pcc

BETWEEN = (PCC, PRINTED, CUBIC, ILLINOIS)
RTTS_MS = (9, 28, 47)
BETWEEN_BPS = 800e6
BETWEEN_BUFFER = 50
"""Buffer, packets. The publication's bandwidth was reserved by a rate limiter with an unknown buffer."""

PROMPT = pcc("PCC as printed, reports at once", "pcc-allegro", "green", "D", feedback_flush_ms=0)
"""Per-packet reports, as from the authors' incast receiver. Other receivers hold reports back for up to 10 ms, a
hundred RTTs here, and the sender waits that long before it treats silence as loss.
"""

INCAST = pcc(
    "PCC's incast sender",
    "pcc-allegro-modong",
    "black",
    "*",
    start_rate_mbps=143,
    utility="incast",
    feedback_flush_ms=0,
)
"""The authors' incast sender (cc_incast.h in their code): it starts at 143 Mb/s, doubles with each result, and its utility is T - 20 x L."""

SLOW_START = pcc(
    "PCC's incast sender from 2 Mb/s",
    "pcc-allegro-modong",
    "purple",
    "x",
    ":",
    start_rate_mbps=2,
    utility="incast",
    feedback_flush_ms=0,
)
"""Incast sender with the general sender's starting rate."""

WITHIN = (INCAST, SLOW_START, PROMPT, PRINTED, PCC, CUBIC, NEWRENO)
BLOCKS_KIB = (64, 128, 256)
SENDERS = (1, 2, 4, 6, 10, 15, 20, 25, 33)
FEW_SENDERS = (1, 10, 33)
WITHIN_BPS = 1e9
WITHIN_BUFFER_KIB = 64
MANY = 10
SMALLER_KIB = 32
"""Switch buffer for the cause of P17: too small for ten TCP senders' first windows."""


def incast_seeds(plan: Plan, arm: Arm, senders: int) -> int:
    """Number of incast runs. With ten senders, TCP collapses only in some runs, so P17 needs many; a run has only a few hundred packets."""
    many = senders == MANY and arm in (INCAST, CUBIC)
    return plan.count(quick=96 if many else 6, paper=200 if many else 20)


def between(arm: Arm, rtt_ms: int) -> Scenario:
    """Return one flow alone for 10 s."""
    return Scenario.from_dict(
        {
            "name": f"between data centres, {rtt_ms} ms, {arm.name}",
            "duration": "10 s",
            "network": {
                "access": {"rate": "1 Gbit/s", "jitter": "0.1 ms"},
                "bottleneck": {
                    "rate": "800 Mbit/s",
                    "delay": f"{rtt_ms / 2:g} ms",
                    "queue": {"kind": "drop-tail", "limit": f"{BETWEEN_BUFFER} packets"},
                },
            },
            "flows": [arm.flows()],
        }
    )


def incast(arm: Arm, senders: int, block_kib: int, *, buffer_kib: int = WITHIN_BUFFER_KIB) -> Scenario:
    """Return senders that each send one block, all within a few microseconds, through a switch port with this buffer."""
    return Scenario.from_dict(
        {
            "name": f"incast, {senders} times {block_kib} KiB, {arm.name}",
            "duration": "20 s",
            "network": {
                "topology": "dumbbell",
                "access": {"rate": "1 Gbit/s", "delay": "20 us"},
                "bottleneck": {
                    "rate": "1 Gbit/s",
                    "delay": "30 us",
                    "queue": {"kind": "drop-tail", "limit": f"{buffer_kib} KiB"},
                },
            },
            "flows": [
                arm.flows(
                    count=senders,
                    workload={"kind": "transfer", "bytes": f"{block_kib} KiB"},
                    stagger={"kind": "exponential", "mean": "10 us"},
                )
            ],
        }
    )


def run(plan: Plan) -> Data:
    """Transfers between data centres, and incast.

    Returns
    -------
    Data
        `datacentres.between`: arm, rtt_ms, seed, mbps. `datacentres.incast`: arm, senders, block_kib, seed, mbps (all blocks over
        the time until the last is acknowledged), share (of what the link can carry); `datacentres.smaller`: the same of ten
        senders through a smaller switch.
    """
    quick = plan.scale == "quick"
    one = [
        Cell(
            scenario=between(arm, rtt),
            keys={"arm": arm.name, "rtt_ms": rtt},
            stream=f"between {rtt}",
            seeds=plan.count(quick=3, paper=5),
            needs={"flows": ("goodput_bps",)},
        )
        for rtt in RTTS_MS
        for arm in (BETWEEN if not quick else (PCC, CUBIC, ILLINOIS))
    ]
    two = [
        Cell(
            scenario=incast(arm, n, block),
            keys={"arm": arm.name, "senders": n, "block_kib": block},
            stream=f"incast {n} {block}",
            seeds=incast_seeds(plan, arm, n),
            needs={"flows": ("start_s", "completion_s")},
        )
        for block in BLOCKS_KIB
        for n in (FEW_SENDERS if quick else SENDERS)
        for arm in WITHIN
    ]
    three = [
        Cell(
            scenario=incast(arm, MANY, block, buffer_kib=SMALLER_KIB),
            keys={"arm": arm.name, "senders": MANY, "block_kib": block},
            stream=f"incast {MANY} {block}",
            seeds=incast_seeds(plan, arm, MANY),
            needs={"flows": ("start_s", "completion_s")},
        )
        for block in BLOCKS_KIB
        for arm in (INCAST, CUBIC)
    ]
    alone = collect("between", one, plan.part(0, 0.8, ""))
    together = collect("incast", two, plan.part(0.8, 0.98, ""))
    smaller = collect("smaller", three, plan.part(0.98, 1, ""))
    return Data(
        tables={
            BETWEEN_TABLE: alone.tables["between.flows"].with_columns((pl.col("goodput_bps") / 1e6).alias("mbps")),
            INCAST_TABLE: all_blocks(together.tables["incast.flows"]),
            SMALLER_TABLE: all_blocks(smaller.tables["smaller.flows"]),
        },
        digests=[*alone.digests, *together.digests, *smaller.digests],
        runs=alone.runs + together.runs + smaller.runs,
    )


def all_blocks(flows: pl.DataFrame) -> pl.DataFrame:
    """Total goodput of all blocks; empty if a block did not arrive within the run."""
    end = (pl.col("start_s") + pl.col("completion_s")).max()
    most = pl.col("arm").replace_strict({arm.name: arm.carried(WITHIN_BPS) / 1e6 for arm in WITHIN})
    return (
        flows.group_by("arm", "senders", "block_kib", "seed", maintain_order=True)
        .agg(end.alias("end_s"), pl.col("completion_s").null_count().alias("missing"))
        .with_columns(
            pl.when(pl.col("missing") == 0)
            .then(pl.col("senders") * pl.col("block_kib") * 1024 * 8e-6 / pl.col("end_s"))
            .otherwise(0.0)
            .alias("mbps")
        )
        .with_columns((pl.col("mbps") / most).alias("share"))
    )


BETWEEN_TABLE, INCAST_TABLE, SMALLER_TABLE = "datacentres.between", "datacentres.incast", "datacentres.smaller"


def fills_reserved(tables: Tables, *, much: bool) -> Sequence[Evidence]:
    """PCC between data centres; its ratios to Illinois and CUBIC."""
    found = []
    for rtt in arms.values(tables, BETWEEN_TABLE, "rtt_ms"):
        found.append(
            Evidence.of(
                arms.mean(tables, BETWEEN_TABLE, "mbps", arm=PCC.name, rtt_ms=rtt),
                f"PCC, {rtt} ms",
                at_least(624),
                unit="Mb/s",
                weighs=much,
            )
        )
        for other, least in ((ILLINOIS, 5.23), (CUBIC, 1)):
            ratio = arms.times(tables, BETWEEN_TABLE, "mbps", PCC, other, rtt_ms=rtt)
            found.append(
                Evidence.of(
                    ratio,
                    f"PCC over {other.name}, {rtt} ms",
                    at_least(least) if much else above(1),
                    unit="times",
                    weighs=not much,
                )
            )
    return found


def _many(tables: Tables) -> list[int]:
    return [n for n in arms.values(tables, INCAST_TABLE, "senders") if n >= MANY]


def incast_goodput(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """The incast sender with ten senders or more; the general sender and the printed form for comparison."""
    return [
        Evidence.of(
            arms.mean(tables, INCAST_TABLE, "share", 100, arm=arm.name, senders=n, block_kib=block),
            f"{arm.name}, {n} senders, {block} KiB: share of the link",
            bound,
            unit="%",
            weighs=arm is INCAST,
        )
        for arm in (INCAST, PCC, PROMPT, PRINTED)
        for block in BLOCKS_KIB
        for n in _many(tables)
    ]


def incast_over_tcp(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Ratio of the incast sender to TCP; the general sender and the printed form for comparison."""
    found = []
    for arm in (INCAST, PCC, PROMPT):
        for n in _many(tables):
            for block in BLOCKS_KIB:
                keys = {"senders": n, "block_kib": block}
                found.append(
                    Evidence.of(
                        arms.times(tables, INCAST_TABLE, "mbps", arm, CUBIC, **keys),
                        f"{n} senders, {block} KiB: {arm.name} over CUBIC",
                        bound,
                        unit="times",
                        weighs=arm is INCAST,
                    )
                )
    return found


def left_of_the_start(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Percentage of the link share that remains if the same sender starts at the general sender's 2 Mb/s."""
    return [
        Evidence.of(
            arms.times(tables, INCAST_TABLE, "share", SLOW_START, INCAST, senders=n, block_kib=block),
            f"{n} senders, {block} KiB: started at 2 Mb/s, of the share started at 143",
            bound,
            unit="%",
            factor=100,
        )
        for block in BLOCKS_KIB
        for n in _many(tables)
    ]


def through_a_smaller_switch(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Ratio of ten incast senders to TCP with half the switch buffer."""
    return [
        Evidence.of(
            arms.times(tables, SMALLER_TABLE, "mbps", INCAST, CUBIC, block_kib=block),
            f"{MANY} senders, {block} KiB, {SMALLER_KIB} KiB of buffer: {INCAST.name} over CUBIC",
            bound,
            unit="times",
            key=f"smaller_{block}",
        )
        for block in BLOCKS_KIB
    ]


def figure(tables: Tables) -> Figure:
    """Goodput against the number of senders, and between data centres."""
    within = arms.summary(tables[INCAST_TABLE], ("arm", "block_kib", "senders"), "mbps")
    apart = arms.summary(tables[BETWEEN_TABLE], ("arm", "rtt_ms"), "mbps")

    def draw() -> Any:
        figure, axes = new(9.6, 4.2, ncols=4, sharey=True)
        for ax, block in zip(axes, BLOCKS_KIB, strict=False):
            arms.curves(ax, within.filter(pl.col("block_kib") == block), WITHIN, "senders", "mbps")
            ax.set_title(f"incast, {block} KiB")
            ax.axhspan(
                0.6 * INCAST.carried(WITHIN_BPS) / 1e6,
                0.8 * INCAST.carried(WITHIN_BPS) / 1e6,
                color="#bbbbbb",
                alpha=0.4,
                lw=0,
            )
            ax.set_xlabel("senders")
        arms.curves(axes[3], apart, BETWEEN, "rtt_ms", "mbps")
        axes[3].axhline(800, color=OKABE_ITO["black"], lw=0.8, ls=":")
        axes[3].set_title("between, 800 Mb/s")
        axes[3].set_xlabel("RTT (ms)")
        axes[0].set_ylabel("goodput (Mb/s)")
        axes[0].set_ylim(0, 1000)
        handles: dict[str, Any] = {}
        for ax in axes:
            for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=5)
        return figure

    return Figure(
        name="datacentres",
        title="Within and between data centres",
        caption=(
            "Incast: each sender has one block, 1 Gb/s, 0.1 ms, 64 KiB of buffer; all blocks over the time of the last. Right: one flow, "
            "50 packets of buffer. Means over seeds; the shade spans least and greatest."
        ),
        draw=draw,
        data={"incast": within, "between": apart},
    )


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {
        "PCC between data centres, 28 ms": between(PCC, 28),
        "PCC's incast sender, 33 senders of 256 KiB": incast(INCAST, 33, 256),
    }


EXPERIMENT = Experiment(name="datacentres", title="incast, and links between data centres", run=run, weight=9)


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (figure(tables),)


CHAPTER = Chapter(experiments=(EXPERIMENT,), **declared(__name__), blocks=blocks, scenarios=scenarios)
