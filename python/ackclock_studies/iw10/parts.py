"""Components of completion times: connecting, round trips without load, waiting for timeouts, retransmitting, queueing; and how they change
when loss, or most of the queue, is removed (I25, I31, the cause of I14).

The components show where time was spent, not why: a transaction that waits for a timer might have waited as long in
the queue. The verdicts are therefore based on the arms without loss and with a quarter of the queue; the components
are shown for context.

Sources are events in the server's trace. The time from the peer's last packet to a timeout is *waiting for a
timeout*. Other time in fast recovery or after a timeout is *sending again*. Of the connection setup, time spent
waiting for SYN timers is separate. The rest, beyond the time that a transaction takes alone, is *queueing*.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import Array, bootstrap, mean_over_runs, median, ratio
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Block, paragraph
from ackclock.study import (
    Bound,
    Chapter,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
    above,
)
from ackclock.study.cells import Cell, Reduce, collect
from ackclock.study.table import declared
from ackclock_studies.iw10 import testbed
from ackclock_studies.iw10.bursts import unloaded_s
from ackclock_studies.iw10.loaded import LONG_S
from ackclock_studies.iw10.readings import COUNTS, EXTREME, EXTREMES, LENGTH, LENGTHS, SETUP, settings
from ackclock_studies.iw10.testbed import FAST, FIVE, HEAVY, IW3, IW10, RTT_S, SINGLE, SLOW, where

QUICK = ((FAST, FIVE, 0.72), (FAST, FIVE, HEAVY[FAST]))
SLOWER = ((SLOW, SINGLE, 0.75), (SLOW, FIVE, HEAVY[SLOW]))

CONNECTING, SYN_TIMER, TIMEOUT, REPAIR, REST = "connecting", "syn_timer", "timeout", "repair", "rest"
PARTS = (CONNECTING, SYN_TIMER, TIMEOUT, REPAIR, REST)

LOSSLESS = {"kind": "drop-tail", "limit": "1000000 packets"}
"""A queue that never drops packets, so that loss is replaced by delay."""
SHORT = {"kind": "drop-tail", "limit": "10 packets"}
"""A quarter of the slow link's queue."""
NO_LOSS, QUARTER = "no loss", "a quarter of the queue"

WINDOWS = {"first_minute": (12.0, 60.0), "second_minute": (60.0, 120.0), "later": (120.0, 300.0)}
"""Arrival times, s, that divide a fast-link run into parts: completion times still change after a minute."""

ACK_COLUMNS = ("flow", "idx", "responder", "t_s", "event", "ca_state")


def each(batch: Batch, initial_rto_s: float = 3.0) -> pl.DataFrame:
    """Completed transactions with the time of each component, s; components add up to `total_s`."""
    rows = testbed.transactions_of(batch).filter(pl.col("total_s").is_not_null())
    end = (pl.col("start_s") + pl.col("total_s")).alias("end_s")
    key = ["seed", "flow", "idx"]
    trace = (
        batch.acks.filter(pl.col("responder"))
        .join(rows.select(*key, end), on=key, maintain_order="left")
        .with_columns(
            before=pl.col("t_s").shift(1).over(key),
            state=pl.col("ca_state").shift(1).over(key),
        )
        .with_columns(gap=(pl.min_horizontal("t_s", "end_s") - pl.col("before")).clip(lower_bound=0.0))
    )
    timer = pl.col("event") == "rto"
    spent = trace.group_by(key).agg(
        pl.col("gap").filter(timer).sum().alias(TIMEOUT),
        pl.col("gap").filter(~timer & pl.col("state").is_in(["Recovery", "Loss"])).sum().alias(REPAIR),
    )
    # the client's SYN timer doubles: after n expiries it has waited 2^n - 1 times the initial RTO
    waited = pl.min_horizontal("connect_s", initial_rto_s * (2.0 ** pl.col("syns_again") - 1))
    return (
        rows.join(spent, on=key, how="left", maintain_order="left")
        .with_columns(pl.col(TIMEOUT, REPAIR).fill_null(0.0), waited.alias(SYN_TIMER))
        .with_columns((pl.col("connect_s") - pl.col(SYN_TIMER)).alias(CONNECTING))
        .with_columns((pl.col("total_s") - pl.sum_horizontal(PARTS[:-1])).alias(REST))
    )


def _kept(warm_up_s: float, initial_rto_s: float) -> dict[str, Reduce]:
    def sums(batch: Batch) -> pl.DataFrame:
        rows = each(batch, initial_rto_s).filter(pl.col("start_s") >= warm_up_s)
        return (
            pl.concat(
                [
                    rows.with_columns(long=pl.lit(False)),
                    rows.filter(pl.col("total_s") > LONG_S).with_columns(long=pl.lit(True)),
                ]
            )
            .group_by("seed", "long")
            .agg(pl.len().alias("n"), pl.col("total_s", *PARTS).sum())
            .sort("seed", "long")
        )

    return {"sums": sums}


def _cell(plan: Plan, place: tuple[str, str, float], arm: str, offered: float, length: tuple[float, float]) -> Cell:
    rate, mode, load = place
    duration, warm_up = length
    return Cell(
        scenario=testbed.loaded(
            rate, mode, offered, arm, duration_s=duration, record={"trace": "all"}, **settings(plan, rate)
        ),
        keys={"rate": rate, "mode": mode, "load": load, "arm": arm},
        stream=f"loaded {rate} {mode} {load}",
        # on the fast link the components decide nothing, and each run traces a hundred thousand ACKs
        seeds=plan.count(quick=2 if rate == FAST else 6, paper=20, readings=6),
        needs={"transactions": testbed.TRANSACTION_COLUMNS, "acks": ACK_COLUMNS},
        keep=_kept(warm_up, 1.0 if SETUP.of(plan) == "initial RTO 1 s" else 3.0),
    )


def _other(
    plan: Plan, place: tuple[str, str, float], arm: str, offered: float, length: tuple[float, float], change: str
) -> Cell:
    """Cell with the given transactions and a changed or unchanged queue."""
    rate, mode, load = place
    duration, warm_up = length
    asked = settings(plan, rate) | ({"queue": {NO_LOSS: LOSSLESS, QUARTER: SHORT}[change]} if change else {})

    def totals(batch: Batch) -> pl.DataFrame:
        rows = testbed.transactions_of(batch)
        total, start = pl.col("total_s"), pl.col("start_s")
        counted = start >= warm_up
        return (
            rows.group_by("seed")
            .agg(
                *(
                    total.filter((start >= begin) & (start < end)).mean().alias(name)
                    for name, (begin, end) in WINDOWS.items()
                ),
                total.filter(counted).mean().alias("mean_s"),
                (total - pl.col("connect_s")).filter(counted).mean().alias("data_mean_s"),
                total.filter(counted).count().alias("completed"),
                (total.filter(counted) > LONG_S).sum().alias("above"),
            )
            .sort("seed")
        )

    return Cell(
        scenario=testbed.loaded(rate, mode, offered, arm, duration_s=duration, **asked),
        keys={"rate": rate, "mode": mode, "load": load, "arm": arm, "change": change},
        stream=f"loaded {rate} {mode} {load}",
        # five minutes on the fast link take as much CPU time as five hours of single opens on the slow one
        seeds=plan.count(
            quick={QUICK[0]: 4, QUICK[1]: 4, SLOWER[0]: 30}.get(place, 6),
            paper=100 if place == SLOWER[0] else 20,
            readings=6,
        ),
        needs={"transactions": testbed.TRANSACTION_COLUMNS},
        keep={"others": totals},
    )


def run_fast(plan: Plan) -> Data:
    """Parts of completion times on the fast link.

    Returns
    -------
    Data
        `parts.sums`: rate, mode, load, arm, seed, long (all transactions, or those above 70 s alone), n, and sums over them: total_s and
        the seconds of each part. `parts.others`, of runs of five minutes: rate, mode, load, arm, change ("" or without loss), seed, mean_s and data_mean_s
        (with the connect and without), completed, above (70 s), and the mean of each of `WINDOWS`.
    """
    length = testbed.length(FAST, plan.scale)
    cells = [_cell(plan, place, arm, place[2], length) for place in QUICK for arm in (IW3, IW10)]
    cells += [
        _other(plan, place, arm, place[2], testbed.LASTING, change)
        for place in QUICK
        for arm in (IW3, IW10)
        for change in ("", NO_LOSS)
    ]
    return collect("parts", cells, plan)


def run_slow(plan: Plan) -> Data:
    """Runs on the slow link: `waits.sums` and `waits.others`."""
    length = LENGTHS[LENGTH.of(plan)]
    cells = []
    for place in SLOWER:
        offered = EXTREMES[EXTREME.of(plan)] if place[2] == HEAVY[SLOW] else place[2]
        cells += [_cell(plan, place, arm, offered, length) for arm in (IW3, IW10)]
        cells += [
            _other(plan, place, arm, offered, length, change)
            for arm in (IW3, IW10)
            for change in (("", NO_LOSS, QUARTER) if place == SLOWER[1] else ("", NO_LOSS))
        ]
    return collect("waits", cells, plan)


def others(tables: Tables, place: tuple[str, str, float], arm: str, change: str, column: str) -> Array:
    """One column of the runs with a changed queue, by seed."""
    rate, mode, load = place
    t = tables["parts.others" if rate == FAST else "waits.others"]
    rows = t.filter(mode=mode, load=load, arm=arm, change=change).sort("seed")
    return rows[column].to_numpy().astype(np.float64)


def sums(tables: Tables, place: tuple[str, str, float], arm: str, *, long: bool = False) -> pl.DataFrame:
    """Sums of one cell and arm, by seed."""
    rate, mode, load = place
    t = tables["parts.sums" if rate == FAST else "waits.sums"]
    return t.filter(
        (pl.col("mode") == mode) & (pl.col("load") == load) & (pl.col("arm") == arm) & (pl.col("long") == long)
    ).sort("seed")


def means(tables: Tables, place: tuple[str, str, float], arm: str) -> dict[str, Array]:
    """Mean time of each component per transaction, s, seed by seed; `rest` excludes the unloaded round trips."""
    own = sums(tables, place, arm)
    n = own["n"].to_numpy()
    found = {part: own[part].to_numpy() / n for part in PARTS}
    found[REST] = found[REST] - (unloaded_s(tables, place[0], arm) - RTT_S)
    return found


LOSS_PARTS = (SYN_TIMER, TIMEOUT, REPAIR)


def i31(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Fraction of the advantage lost between 72 and 96 % load that is also lost without packet loss, and the components that account for it."""

    def lost(change: str) -> tuple[Array, ...]:
        return tuple(others(tables, place, arm, change, "mean_s") for place in QUICK[::-1] for arm in (IW10, IW3))

    def saved(*rows: Array) -> Array:
        def of(four: Sequence[Array]) -> Array:
            heavy10, heavy3, medium10, medium3 = (x.mean(axis=1) for x in four)
            return np.asarray((heavy10 - heavy3) - (medium10 - medium3))

        return np.asarray(100 * (1 - of(rows[4:]) / of(rows[:4])))

    medium, heavy = ({arm: means(tables, place, arm) for arm in (IW3, IW10)} for place in QUICK)
    change = {part: tuple(of[IW10][part] - of[IW3][part] for of in (heavy, medium)) for part in PARTS}

    def share(parts: Sequence[str]) -> Any:
        def of(*rows: Array) -> Array:
            by_part = {part: rows[2 * i].mean(axis=1) - rows[2 * i + 1].mean(axis=1) for i, part in enumerate(PARTS)}
            return np.asarray(100 * sum(by_part[part] for part in parts) / sum(by_part.values()))

        return bootstrap(of, *(x for part in PARTS for x in change[part]), joint=False)

    place = f"{where(*QUICK[1])} against {100 * QUICK[0][2]:g} %"
    named = ((TIMEOUT, "waiting for timeouts"), (SYN_TIMER, "waiting for SYN timers"), (REPAIR, "sending again"))
    return [
        Evidence.of(
            bootstrap(saved, *lost(""), *lost(NO_LOSS)),
            f"{place}: of the advantage lost, what is kept without loss",
            bound,
            unit="%",
            key="without",
        ),
        Evidence.of(
            share(LOSS_PARTS),
            f"{place}: of the advantage lost, spent in waits that loss began",
            bound,
            unit="%",
            weighs=False,
            key="loss",
        ),
        *(
            Evidence.of(
                share((part,)),
                f"{place}: of the advantage lost, spent {name}",
                bound,
                unit="%",
                weighs=False,
                key=part,
            )
            for part, name in named
        ),
        Evidence.of(
            share((CONNECTING, REST)),
            f"{place}: of the advantage lost, spent queueing",
            bound,
            unit="%",
            weighs=False,
            key="queueing",
        ),
    ]


def i25(tables: Tables) -> Sequence[Evidence]:
    """Transactions above 70 s with less queueing delay, and with more queueing delay but no loss, with their time components."""
    found, shown = [], []
    for arm in (IW3, IW10):
        share = {
            change: others(tables, SLOWER[1], arm, change, "above")
            / others(tables, SLOWER[1], arm, change, "completed")
            for change in ("", QUARTER, NO_LOSS)
        }
        place = f"{arm}, {where(*SLOWER[1])}, completed above {LONG_S} s"
        found += [
            Evidence.of(
                mean_over_runs(100 * (share[""] - share[QUARTER])),
                f"{place}: less {QUARTER}",
                above(0),
                unit="points",
                key=f"{arm}_quarter",
            ),
            Evidence.of(
                mean_over_runs(100 * (share[NO_LOSS] - share[""])),
                f"{place}: {NO_LOSS}, less as it is",
                above(0),
                unit="points",
                key=f"{arm}_lossless",
                weighs=False,
            ),
        ]
        own = sums(tables, SLOWER[1], arm, long=True)
        total = own["total_s"].to_numpy()
        for what, parts, key in (
            ("queueing", (REST, CONNECTING), "queueing"),
            ("waiting for timeouts", (TIMEOUT, SYN_TIMER), "waiting"),
            ("sending again", (REPAIR,), "repair"),
        ):
            spent = sum(own[part].to_numpy() for part in parts)
            label = f"{arm}, {where(*SLOWER[1])}, of the time above {LONG_S} s: {what}"
            shown.append(
                Evidence.of(ratio(np.asarray(spent), total), label, above(0.5), weighs=False, key=f"{arm}_{key}")
            )
    return [*found, *shown]


def offset_by_queueing(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """IW10-to-IW3 ratio of completion times on the slow link at 75 % load, without loss and with the longer queue that results."""
    text = f"{where(*SLOWER[0])}: UCT(IW10) / UCT(IW3), {NO_LOSS}"
    ten, three = (others(tables, SLOWER[0], arm, NO_LOSS, "mean_s") for arm in (IW10, IW3))
    return [Evidence.of(median(ten / three), text, bound)]


LOOK = {
    CONNECTING: ("connecting", "#bbbbbb", ""),
    SYN_TIMER: ("waiting for SYN timers", OKABE_ITO["purple"], "xx"),
    "alone": ("rounds, as alone", OKABE_ITO["sky"], ""),
    REST: ("queueing", OKABE_ITO["blue"], "///"),
    REPAIR: ("sending again", OKABE_ITO["orange"], "..."),
    TIMEOUT: ("waiting for timeouts", OKABE_ITO["vermilion"], "\\\\\\"),
}


def figure(tables: Tables) -> Figure:
    """Components of mean completion times."""
    rows = []
    for place in (*QUICK, *SLOWER):
        for arm in (IW3, IW10):
            found = {part: float(values.mean()) for part, values in means(tables, place, arm).items()}
            found["alone"] = unloaded_s(tables, place[0], arm) - RTT_S
            rows += [
                {"place": where(*place), "rate": place[0], "arm": arm, "part": part, "seconds": found[part]}
                for part in LOOK
            ]
    table = pl.DataFrame(rows)

    def draw() -> Any:
        places = (*QUICK, *SLOWER)
        made, axes = new(7.8, 3.2, ncols=len(places))
        for ax, place in zip(axes, places, strict=True):
            left = np.zeros(2)
            for part, (label, colour, hatch) in LOOK.items():
                own = table.filter((pl.col("place") == where(*place)) & (pl.col("part") == part))
                value = np.maximum(own["seconds"].to_numpy(), 0.0)
                ax.bar((0, 1), value, 0.7, bottom=left, color=colour, hatch=hatch, edgecolor="white", lw=0, label=label)
                left += value
            ax.set_xticks((0, 1), (IW3, IW10))
            ax.set_title(where(*place).replace(", ", "\n"), fontsize=8.5)
            ax.grid(axis="x", visible=False)
        axes[0].set_ylabel("mean completion time (s)")
        made.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return made

    def part(place: tuple[str, str, float], arm: str, names: Sequence[str]) -> float:
        own = table.filter((pl.col("place") == where(*place)) & (pl.col("arm") == arm))
        seconds = own.filter(pl.col("part").is_in(names))["seconds"].to_numpy().sum()
        return float(seconds / own["seconds"].to_numpy().sum())

    return Figure(
        name="parts",
        title=(
            f"At 96 % of the fast link {100 * part(QUICK[1], IW10, LOSS_PARTS):.0f} % of the mean completion time is spent in waits that a loss "
            f"began with IW10, {100 * part(QUICK[1], IW3, LOSS_PARTS):.0f} % with IW3"
        ),
        caption=(
            "Mean over completed transactions and seeds. Waiting for timeouts: from the last sign of the client to the expiry. Sending again: "
            "the rest of fast recovery, and what follows a timeout. Queueing: what is left over the time of a transaction alone. Where time is spent is not why: I25 and I31 "
            "take the loss, or the queue, away. Mind the scales."
        ),
        draw=draw,
        data={"parts": table},
    )


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (
        paragraph(
            "Each completion time is taken apart with the server's trace, so that it can be seen where it is spent."
        ),
        figure(t),
    )


CHAPTER = Chapter(
    experiments=(
        Experiment(name="parts", title="the parts of completion times, fast link", run=run_fast, weight=12),
        Experiment(
            name="waits",
            title="the parts of completion times, slow link",
            run=run_slow,
            weight=3,
            reads=(LENGTH, EXTREME, COUNTS, SETUP),
        ),
    ),
    **declared(__name__),
    blocks=blocks,
)
