"""Completion time of 100 MB over path 1, ten times in a row (W5 to W9, W25)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import Array, mean_over_runs
from ackclock.plot import Figure, new
from ackclock.report import Block, paragraph
from ackclock.scenario import Scenario
from ackclock.study import (
    Bound,
    Chapter,
    Data,
    Evidence,
    Experiment,
    Plan,
    Reading,
    Tables,
    at_least,
    between,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.large_pipes import paths
from ackclock_studies.large_pipes.paths import ALABAMA, BUFFERS, FAST, HSTCP, NEWRENO, PROTOCOLS, TCPW, Protocol, Where
from ackclock_studies.large_pipes.readings import ACKS, ALPHA, FILTER, PEAK, QUEUE, SACK, WINDOW
from ackclock_studies.large_pipes.runs import NO_BOUND, mean_time
from ackclock_studies.large_pipes.style import COLOUR, DASH, MARKER

SIZE = 100_000_000
"""A2: 10^8 bytes of payload at the receiver."""

GROUP, EVERY_S = 10, 60.0
"""Slide 8: ten transfers in a row, and the interval between them."""

CONTROL = 2000
"""Queue of the negative control: no loss, so only the window limits all four."""

PUBLISHED_S = {TCPW: 5.8, FAST: 5.8, HSTCP: 7.5, NEWRENO: 11.0}
TOLERANCE = {TCPW: 0.10, FAST: 0.10, HSTCP: 0.15, NEWRENO: 0.15}
"""Tolerance around the slides' time; our choice."""

NAMES = {TCPW: "tcpw", FAST: "fast", HSTCP: "highspeed", NEWRENO: "newreno"}
"""Protocol -> name of its experiment; each experiment has its own grid, made of the parameters that affect the protocol."""

SHARED = (QUEUE, ACKS, WINDOW)
READS: dict[str, tuple[Reading, ...]] = {
    TCPW: (SACK, FILTER, *SHARED, PEAK),
    FAST: (ALPHA, *SHARED),
    HSTCP: SHARED,
    NEWRENO: SHARED,
}


def scenario(protocol: Protocol, queue: int, where: Where = paths.MAIN, *, users: float = 0.02) -> Scenario:
    """100 MB over path 1. Linux: ten in a row, each with the metrics cached by earlier ones. TCPW: one, as Astart sets ssthresh itself."""
    count = 1 if protocol.freebsd else GROUP
    stack: dict[str, Any] = {} if protocol.freebsd else {"metrics_cache": {}}
    return paths.scenario(
        ALABAMA,
        [(protocol, count)],
        duration_s=count * EVERY_S,
        queue=queue,
        workload={"kind": "transfer", "bytes": f"{SIZE} bytes"},
        stagger_s=EVERY_S if count > 1 else 0.0,
        users=users,
        where=where,
        **stack,
    )


def completion(batch: Batch) -> pl.DataFrame:
    """Completion times excluding the handshake (fact sheet, metrics, section 7), infinite if incomplete."""
    flows = sum(group.count for group in batch.scenario.flows if group.workload.kind == "transfer")
    return batch.flows.filter(pl.col("flow") < flows).select(
        "seed",
        pl.col("flow").alias("transfer"),
        (pl.col("completion_s") - (pl.col("established_s") - pl.col("start_s")))
        .fill_null(math.inf)
        .alias("completion_s"),
        "retransmissions",
    )


NEEDS: dict[str, Sequence[str]] = {"flows": ("flow", "start_s", "established_s", "completion_s", "retransmissions")}


def cells_of(protocol: Protocol, queues: Sequence[int], where: Where, seeds: int) -> list[Cell]:
    """Return 100 MB transfers by one protocol through each queue."""
    return [
        Cell(
            scenario=scenario(protocol, queue, where, users=0.0 if queue == CONTROL else 0.02),
            keys={"protocol": protocol.name, "queue": queue},
            stream=f"large-pipes transfers {queue}",
            seeds=seeds,
            needs=NEEDS,
            keep={"times": completion},
        )
        for queue in queues
    ]


def run_of(name: str) -> Callable[[Plan], Data]:
    """One protocol's experiment: 100 MB; in the main reading through every queue.

    Returns
    -------
    Callable
        Makes `<experiment>.times`: protocol, queue, run (a group), transfer (0 to 9 in a group), completion_s (infinite:
        not complete), retransmissions.
    """

    def run(plan: Plan) -> Data:
        one = name == TCPW
        seeds = plan.count(quick=9 if one else 3, paper=60 if one else 10, readings=3 if one or name == FAST else 5)
        sender = paths.senders(plan)[name]
        if plan.reading:
            return collect(NAMES[name], cells_of(sender, (paths.queue_of(plan),), plan, seeds), plan, numbered=True)
        few = seeds if one else plan.count(quick=2, paper=10)  # queues shown only in the figure
        cells = [
            cell
            for queue in BUFFERS
            for cell in cells_of(sender, (queue,), plan, seeds if queue in (paths.queue_of(plan), LOSING) else few)
        ]
        return collect(NAMES[name], cells, plan, numbered=True)

    return run


def groups(tables: Tables, protocol: str, *, queue: int | None = None, table: str = "") -> Array:
    """Completion times, s: one row per group, one column per transfer.

    Parameters
    ----------
    tables
        Tables of the study.
    protocol
        The protocol.
    queue
        Queue limit, packets; by default that of the reading.
    table
        Table to use instead of the protocol's own.
    """
    t = tables[table or f"{NAMES[protocol]}.times"]
    at = paths.queue_of(tables) if queue is None else queue
    own = t.filter((pl.col("protocol") == protocol) & (pl.col("queue") == at)).sort("run", "transfer")
    return own["completion_s"].to_numpy().reshape(own["run"].n_unique(), -1)


def means(tables: Tables, protocol: str, **at: Any) -> Array:
    """Mean completion time of each group, labelled "on average" on slide 12."""
    return np.asarray(groups(tables, protocol, **at).mean(axis=1))


def _within(protocol: str) -> Bound:
    seconds, share = PUBLISHED_S[protocol], TOLERANCE[protocol]
    return between(seconds * (1 - share), seconds * (1 + share))


def time_of_group(tables: Tables, protocol: str, **at: Any) -> Evidence:
    """Mean completion time of a group, compared with the slides' (`at` as in `groups`)."""
    label = f"100 MB, {protocol}, mean of a group"
    key = f"time_{NAMES[protocol]}"
    return mean_time(means(tables, protocol, **at), EVERY_S, label, _within(protocol), key=key)


def _beside(tables: Tables, protocol: str) -> list[Evidence]:
    """First and later transfers, and the other queues, run only in the main reading."""
    found = []
    own = groups(tables, protocol)
    if own.shape[1] > 1:
        for what, times in (("first of a group", own[:, 0]), ("later of a group", own[:, 1:].mean(axis=1))):
            key = f"{what.split()[0]}_{NAMES[protocol]}"
            found.append(mean_time(times, EVERY_S, f"100 MB, {protocol}, {what}", NO_BOUND, key=key, weighs=False))
    held = set(tables[f"{NAMES[protocol]}.times"]["queue"].to_list())
    for queue in BUFFERS:
        if queue in held and queue != paths.queue_of(tables):
            label = f"100 MB, {protocol}, queue of {queue}"
            value = means(tables, protocol, queue=queue)
            key = f"q{queue}_{NAMES[protocol]}"
            found.append(mean_time(value, EVERY_S, label, NO_BOUND, key=key, weighs=False))
    return found


def time_of(tables: Tables, *, protocol: str) -> Sequence[Evidence]:
    """W5 to W8: one protocol's printed time."""
    return [time_of_group(tables, protocol), *_beside(tables, protocol)]


def w6(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """FAST like TCPW: the same to within 10 %."""
    fast, westwood = mean_over_runs(means(tables, FAST)), mean_over_runs(means(tables, TCPW))
    return [_ratio(fast, westwood, "100 MB, FAST / TCPW", bound, "like")]


def _ratio(a: Any, b: Any, label: str, bound: Bound, key: str) -> Evidence:
    from ackclock.judge.estimates import quotient

    if not (math.isfinite(a.value) and math.isfinite(b.value)):
        return Evidence(label=label, value=math.nan, low=math.nan, high=math.nan, bound=bound, key=key, seeds=a.n)
    return Evidence.of(quotient(a, b), label, bound, key=key)


def w9(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Order of the four protocols."""
    m = {p: mean_over_runs(means(tables, p)) for p in PROTOCOLS}
    return [
        *(_ratio(m[HSTCP], m[p], f"100 MB, HSTCP / {p}", bound, NAMES[p]) for p in (TCPW, FAST)),
        _ratio(m[NEWRENO], m[HSTCP], "100 MB, NewReno / HSTCP", bound, "newreno"),
    ]


LOSING = 240
"""Queue limit, packets, that every slow start overflows: a window that doubles queues 413 packets, one that grows by half 276."""


def overflown(tables: Tables, *, protocol: str) -> Sequence[Evidence]:
    """W7 and W8 with a queue that slow start overflows, and no other change: times no shorter than the slides'."""
    label = f"100 MB, {protocol}, queue of {LOSING}, mean of a group"
    return [mean_time(means(tables, protocol, queue=LOSING), EVERY_S, label, at_least(_within(protocol).low))]


def in_order(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """W9 with that queue: the protocols that halve and, for context, the two called fast on the slides."""
    m = {p: mean_over_runs(means(tables, p, queue=LOSING)) for p in PROTOCOLS}
    beside = [_ratio(m[HSTCP], m[p], f"HSTCP / {p}", Bound(), "") for p in (TCPW, FAST)]
    return [
        _ratio(m[NEWRENO], m[HSTCP], "NewReno / HSTCP", bound, "overflown"),
        *(replace(e, weighs=False) for e in beside),
    ]


def w25(tables: Tables) -> Sequence[Evidence]:
    """All four printed times at once."""
    return [time_of_group(tables, p) for p in PROTOCOLS]


def completion_times(tables: Tables) -> Figure:
    """100 MB completion times against the queue, for a group's first and later transfers."""
    rows = []
    for queue in BUFFERS:
        for protocol in PROTOCOLS:
            own = groups(tables, protocol, queue=queue)
            for which, times in (
                ("first", own[:, 0]),
                ("later", own[:, 1:].mean(axis=1) if own.shape[1] > 1 else own[:, 0]),
            ):
                e = mean_over_runs(np.minimum(times, EVERY_S))
                row = {"queue": queue, "protocol": protocol, "transfer": which, "completion_s": e.value}
                rows.append(row | {"low": e.low, "high": e.high, "incomplete": int(np.isinf(times).sum())})
    table = pl.DataFrame(rows)
    most = 28.0

    def draw() -> Any:
        figure, axes = new(7.8, 3.6, ncols=2, sharey=True)
        for ax, which in zip(axes, ("first", "later"), strict=True):
            for protocol in PROTOCOLS:
                own = table.filter((pl.col("protocol") == protocol) & (pl.col("transfer") == which)).sort("queue")
                value = own["completion_s"].to_numpy()
                error = np.abs(own.select("low", "high").to_numpy().T - value)
                look = {"color": COLOUR[protocol], "marker": MARKER[protocol], "ls": DASH[protocol]}
                ax.errorbar(own["queue"], np.minimum(value, most), yerr=error, label=protocol, **look)
                for x, y in zip(own["queue"], value, strict=True):
                    if y > most:
                        ax.annotate(f"{y:.0f}", (x, most), xytext=(4, 3), textcoords="offset points", fontsize=7)
                ax.plot(
                    [1000], [PUBLISHED_S[protocol]], color=COLOUR[protocol], marker=MARKER[protocol], mfc="none", ms=7
                )
            ax.set(title=f"{which} of ten in a row", xlabel="queue of the bottleneck (packets)", xscale="log")
            ax.set_xticks(
                [*BUFFERS, 1000], [*("\n240" if b == 240 else str(b) for b in BUFFERS), "\nslides"], fontsize=7.5
            )
            ax.minorticks_off()
        axes[0].set(ylabel="100 MB (s)", ylim=(0, 30))
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return figure

    at = {p: float(means(tables, p, queue=400).mean()) for p in PROTOCOLS}
    return Figure(
        name="completion",
        title="100 MB, queue of 400: "
        + ", ".join(f"{p} {at[p]:.1f} s" for p in PROTOCOLS)
        + " (slides: 5.8, 5.8, 7.5, 11)",
        caption=(
            "Completion of 10^8 bytes over path 1 against the unknown queue of its bottleneck, main reading of everything else; means over groups of ten with 95 % "
            "intervals; open symbols: the slides' values. Points above the frame have their value beside them; 60 s is the end of a run. TCPW "
            "does not use the cache: both panels show the same runs of it."
        ),
        draw=draw,
        data={"completion": table},
    )


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (
        completion_times(t),
        paragraph(
            "A window that grows by half with each round trip puts a third of itself into the queue. Where the queue holds that, no sender loses a packet, and all take "
            "the least time possible. Where it does not, slow start ends early, and the cache hands the ssthresh of that on to the next run."
        ),
    )


_WEIGHT = {TCPW: 4, FAST: 6, HSTCP: 3, NEWRENO: 3}

CHAPTER = Chapter(
    experiments=(
        *(
            Experiment(
                name=NAMES[p], title=f"100 MB over path 1, {p}", run=run_of(p), weight=_WEIGHT[p], reads=READS[p]
            )
            for p in PROTOCOLS
        ),
    ),
    **declared(__name__),
    blocks=blocks,
)
