"""The first seconds and the first minute: ten runs in a row on both paths (W2, W3, W4, W12, W17)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import Array, mean_over_runs, ratio_of_times
from ackclock.plot import GREY, Figure, new
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
from ackclock.study.cells import Cell, Reduce, collect
from ackclock.study.table import declared
from ackclock_studies.large_pipes import paths
from ackclock_studies.large_pipes.paths import (
    ALABAMA,
    CALTECH,
    FAST,
    HSTCP,
    NEWRENO,
    PROTOCOLS,
    SENDERS,
    TCPW,
    Bottleneck,
)
from ackclock_studies.large_pipes.readings import QUEUE
from ackclock_studies.large_pipes.runs import GOODPUT, NO_BOUND, column_of, geometric, mean_time, ramp
from ackclock_studies.large_pipes.style import COLOUR, DASH
from ackclock_studies.large_pipes.transfers import LOSING

RAMP_S = 30.0
GROUP = 10
LONG = {ALABAMA.name: (60.0, 65.0, 1.0), CALTECH.name: (2.0, 3.0, 0.02)}
"""Consecutive runs: writing time, interval between starts, goodput interval; s."""


LINUX_TCPW = "TCPW, Linux's host"


def overflown(protocol: str) -> str:
    """Return the name of a protocol with a queue of `LOSING` packets."""
    return f"{protocol}, queue of {LOSING}"


def run_ramps(plan: Plan) -> Data:
    """The first seconds of a transfer with an empty cache on path 1.

    Returns
    -------
    Data
        `ramps.times`: protocol, run, ramp_s (infinite if 90 % was not reached). In the main reading also TCPW on a host of Linux, and HSTCP and NewReno
        behind a queue that their starts overflow.
    """
    seeds = plan.count(quick=6, paper=20)
    queue = paths.queue_of(plan)
    asked = [(protocol, SENDERS[protocol], queue) for protocol in PROTOCOLS]
    if not plan.reading:
        asked.append((LINUX_TCPW, replace(SENDERS[TCPW], freebsd=False, sack=True), queue))
        asked += [(overflown(protocol), SENDERS[protocol], LOSING) for protocol in (HSTCP, NEWRENO)]
    cells = [
        Cell(
            scenario=paths.scenario(
                ALABAMA,
                [(sender, 1)],
                duration_s=RAMP_S,
                queue=packets,
                record={"goodput_interval": f"{1e6 * ALABAMA.rtt_s:.0f} us"},
            ),
            keys={"protocol": name},
            stream="large-pipes ramps",
            seeds=seeds,
            needs=GOODPUT,
            keep={"times": ramp(ALABAMA)},
        )
        for name, sender, packets in asked
    ]
    return collect("ramps", cells, plan, numbered=True)


def in_a_row(path: Bottleneck, protocol: str, queue: int | None = None, **keys: Any) -> Scenario:
    """Ten runs, one after another; Linux hosts cache ssthresh."""
    each, every, interval = LONG[path.name]
    sender = SENDERS[protocol]
    return paths.in_a_row(
        path,
        sender,
        runs=GROUP,
        each_s=each,
        every_s=every,
        queue=queue,
        record={"goodput_interval": f"{1e3 * interval:g} ms"},
        **({} if sender.freebsd else {"metrics_cache": {}}),
        **keys,
    )


def own_time(path: Bottleneck) -> Reduce:
    """Reduces a batch to each run's goodput, with times relative to its start."""
    each, every, _ = LONG[path.name]

    def reduce(batch: Batch) -> pl.DataFrame:
        since = (pl.col("t_s") - pl.col("flow") * every).round(6)
        kept = batch.goodput.filter(pl.col("flow") < GROUP).with_columns(since.alias("t_s"))
        kept = kept.filter((pl.col("t_s") > 1e-6) & (pl.col("t_s") <= each + 1e-6))
        return kept.select("seed", pl.col("flow").alias("of_group"), "t_s", "goodput_bps")

    return reduce


def run_series(plan: Plan) -> Data:
    """Groups of ten one-minute runs in a row on path 1, as in the slides.

    Returns
    -------
    Data
        `series.goodput`: protocol, run (a group), of_group (0 to 9), t_s (end of the second), goodput_bps.
    """
    seeds = plan.count(quick=2, paper=10, readings=2)
    cells = [
        Cell(
            scenario=in_a_row(ALABAMA, protocol, paths.queue_of(plan)),
            keys={"protocol": protocol},
            stream="large-pipes series",
            seeds=seeds,
            needs=GOODPUT,
            keep={"goodput": own_time(ALABAMA)},
        )
        for protocol in PROTOCOLS
    ]
    return collect("series", cells, plan, numbered=True)


def run_caltech(plan: Plan) -> Data:
    """Groups of ten consecutive two-second runs on path 2; longer runs of TCPW and FAST; and a stale cache on path 1.

    Returns
    -------
    Data
        `caltech.goodput`: protocol, run (a group), of_group, t_s (end of 20 ms), goodput_bps; `caltech.average`: protocol, run,
        goodput_bps.
    """
    seeds = plan.count(quick=3, paper=8)
    cells = [
        Cell(
            scenario=in_a_row(CALTECH, protocol),
            keys={"protocol": protocol},
            stream="large-pipes caltech",
            seeds=seeds,
            needs=GOODPUT,
            keep={"goodput": own_time(CALTECH)},
        )
        for protocol in PROTOCOLS
    ]

    def average(batch: Batch) -> pl.DataFrame:
        return batch.flows.filter(pl.col("flow") == 0).select("seed", "goodput_bps")

    cells += [
        Cell(
            scenario=paths.scenario(CALTECH, [(SENDERS[protocol], 1)], duration_s=60 if plan.scale == "paper" else 10),
            keys={"protocol": protocol},
            stream="large-pipes caltech average",
            seeds=seeds,
            needs={"flows": ("flow", "goodput_bps")},
            keep={"average": average},
        )
        for protocol in (TCPW, FAST)
    ]
    return collect("caltech", cells, plan, numbered=True)


def ramp_times(tables: Tables, protocol: str) -> Array:
    """Ramp-up times on path 1, one per run."""
    return column_of(tables["ramps.times"], "ramp_s", protocol=protocol)


def per_second(tables: Tables, table: str, protocol: str, start_s: float, stop_s: float) -> Array:
    """Goodput, bit/s, shape (groups, runs per group, intervals in (start, stop])."""
    t = tables[table].filter(
        (pl.col("protocol") == protocol) & (pl.col("t_s") > start_s + 1e-6) & (pl.col("t_s") <= stop_s + 1e-6)
    )
    values = t.sort("run", "of_group", "t_s")["goodput_bps"].to_numpy()
    return values.reshape(t["run"].n_unique(), GROUP, -1)


def w2(tables: Tables) -> Sequence[Evidence]:
    """Time to 90 % of the capacity after a cold start on path 1, and the faster protocol."""
    t = {p: ramp_times(tables, p) for p in PROTOCOLS}
    return [*_later(t, SLOWER), *_each(t)]


def _each(t: Mapping[str, Array]) -> list[Evidence]:
    return [mean_time(t[p], RAMP_S, f"time to 90 %, {p}", NO_BOUND, weighs=False, key=p.lower()) for p in PROTOCOLS]


SLOWER = above(1, margin=0.1)


def on_linux(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """W2: TCPW's delay relative to FAST on the same host."""
    t = {p: ramp_times(tables, p) for p in (LINUX_TCPW, TCPW, FAST)}
    return [
        Evidence.of(ratio_of_times(t[LINUX_TCPW], t[FAST]), f"time to 90 %, {LINUX_TCPW} / FAST", bound, key="linux"),
        Evidence.of(ratio_of_times(t[TCPW], t[FAST]), "time to 90 %, TCPW / FAST", NO_BOUND, weighs=False, key="freebsd"),
    ]  # fmt: skip


def where_starts_overflow(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """W2: ratio of HSTCP's and NewReno's ramp times with a queue that their slow start overflows to those with one that it does not."""
    found = []
    for protocol in (HSTCP, NEWRENO):
        own = float(np.median(ramp_times(tables, protocol)))
        times = ramp_times(tables, overflown(protocol)) / own
        label = f"time to 90 %, {protocol}, behind {LOSING} packets / behind 400"
        found.append(
            Evidence.reached(times, RAMP_S / own, label, bound, unit="times", key=f"losing_{protocol.lower()}")
        )
    return found


def _later(t: Mapping[str, Array], bound: Any) -> list[Evidence]:
    return [
        Evidence.of(
            ratio_of_times(t[slow], t[fast]), f"time to 90 %, {slow} / {fast}", bound, key=f"{slow}_{fast}".lower()
        )
        for slow in (HSTCP, NEWRENO)
        for fast in (TCPW, FAST)
    ]


def w2_much(tables: Tables) -> Sequence[Evidence]:
    """NewReno after HSTCP after TCPW."""
    t = {p: ramp_times(tables, p) for p in PROTOCOLS}
    return [
        Evidence.of(ratio_of_times(t[NEWRENO], t[HSTCP]), "time to 90 %, NewReno / HSTCP", at_least(2)),
        Evidence.of(ratio_of_times(t[HSTCP], t[TCPW]), "time to 90 %, HSTCP / TCPW", at_least(1.5)),
    ]


def spreads(rows: Array) -> Array:
    """Coefficient of variation across each group's runs, averaged over the seconds."""
    mean = rows.mean(axis=1)
    return np.asarray(np.nanmean(rows.std(axis=1, ddof=1) / np.where(mean > 0, mean, np.nan), axis=1))


def w3(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Deviation between the ten runs in the first ten seconds."""
    return _spread_ratios(tables, bound)


def w3_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Size of the difference."""
    return _spread_ratios(tables, bound)


def _spread_ratios(tables: Tables, bound: Any) -> list[Evidence]:
    first = {p: spreads(per_second(tables, "series.goodput", p, 0, 10)) for p in PROTOCOLS}
    return [
        Evidence.of(
            geometric(first[loud] / first[calm]),
            f"coefficient of variation across ten runs, t ≤ 10 s, {loud} / {calm}",
            bound,
            key=f"{loud}_{calm}".lower(),
        )
        for loud in (HSTCP, NEWRENO)
        for calm in (TCPW, FAST)
    ]


def _shrinks(tables: Tables) -> Any:
    early, late = (spreads(per_second(tables, "series.goodput", HSTCP, *span)) for span in ((0, 10), (30, 60)))
    return mean_over_runs(100 * (1 - late / early))


_SHRINKS = "coefficient of variation across ten runs, 30 to 60 s below 0 to 10 s"


def w4(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """HSTCP's deviation after the start."""
    return [Evidence.of(_shrinks(tables), _SHRINKS, bound, unit="%", key="less")]


def w4_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Size of the difference."""
    return [Evidence.of(_shrinks(tables), _SHRINKS, bound, unit="%", key="less")]


def _start(tables: Tables, protocol: str, runs: slice) -> Array:
    """Goodput in the first 100 ms on path 2, Mb/s, averaged over each group's runs."""
    rows = per_second(tables, "caltech.goodput", protocol, 0, 0.1)
    return np.asarray(rows[:, runs].mean(axis=(1, 2)) / 1e6)


def w12(tables: Tables) -> Sequence[Evidence]:
    """NewReno's start on path 2: above its own with an empty cache, and above that of every other protocol."""
    own = _start(tables, NEWRENO, slice(1, None))
    found = [
        Evidence.of(
            geometric(own / _start(tables, NEWRENO, slice(0, 1))),
            "first 100 ms: NewReno with a full cache / with an empty one",
            above(1, margin=0.02),
            key="cached",
        )
    ]
    for other in (TCPW, FAST, HSTCP):
        label = f"first 100 ms: NewReno with a full cache / {other}"
        value = geometric(own / _start(tables, other, slice(1, None)))
        found.append(Evidence.of(value, label, at_least(0.98), key=other.lower()))
    found.append(
        Evidence.of(mean_over_runs(own), "first 100 ms: NewReno", NO_BOUND, unit="Mb/s", weighs=False, key="start")
    )
    return found


def w17(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Average throughput of TCPW and FAST."""
    one = {p: per_second(tables, "series.goodput", p, 0, 60).mean(axis=(1, 2)) for p in (TCPW, FAST)}
    two = {p: column_of(tables["caltech.average"], "goodput_bps", protocol=p) for p in (TCPW, FAST)}
    return [
        Evidence.of(geometric(mean[TCPW] / mean[FAST]), f"{path.name}: TCPW / FAST", bound, key=key)
        for path, mean, key in ((ALABAMA, one, "path1"), (CALTECH, two, "path2"))
    ]


def over_time(tables: Tables, path: Bottleneck, table: str, name: str, slides: str) -> Figure:
    """Throughput over time, with its spread over a group's runs."""
    t = tables[table]
    empty = pl.col("of_group") == 0
    cache = pl.when(empty).then(pl.lit("first run")).otherwise(pl.lit("later runs")).alias("cache")
    summary = (
        t.with_columns(cache)
        .group_by("protocol", "cache", "t_s")
        .agg(
            pl.col("goodput_bps").mean().alias("mean_bps"),
            pl.col("goodput_bps").min().alias("least_bps"),
            pl.col("goodput_bps").max().alias("most_bps"),
        )
        .sort("protocol", "cache", "t_s")
    )

    apart = (
        t.group_by("protocol", "run", "t_s")
        .agg((pl.col("goodput_bps").std() / pl.col("goodput_bps").mean()).alias("cov"))
        .group_by("protocol", "t_s")
        .agg((100 * pl.col("cov").mean()).alias("cov"))
        .sort("protocol", "t_s")
    )
    begin = 8.0 if path is ALABAMA else 0.5

    def draw() -> Any:
        figure, axes = new(8.6, 3.4, ncols=3)
        for ax, which in zip(axes[:2], ("first run", "later runs"), strict=True):
            for protocol in PROTOCOLS:
                own = summary.filter(
                    (pl.col("protocol") == protocol) & (pl.col("cache") == which) & (pl.col("t_s") <= begin + 1e-6)
                )
                x = own["t_s"].to_numpy()
                ax.fill_between(
                    x, own["least_bps"] / 1e6, own["most_bps"] / 1e6, color=COLOUR[protocol], alpha=0.12, lw=0
                )
                ax.plot(x, own["mean_bps"] / 1e6, color=COLOUR[protocol], ls=DASH[protocol], label=protocol)
            ax.axhline(path.payload_bps / 1e6, color=GREY, lw=0.8, ls=":")
            ax.set(title=which, xlabel="time (s)", ylim=(0, 1.08 * path.payload_bps / 1e6))
        for protocol in PROTOCOLS:
            own = apart.filter(pl.col("protocol") == protocol)
            axes[2].plot(own["t_s"], own["cov"], color=COLOUR[protocol], ls=DASH[protocol], lw=1)
        axes[2].set(title="ten runs apart", xlabel="time (s)", ylabel="coefficient of variation (%)")
        axes[2].set_ylim(bottom=0)
        axes[0].set_ylabel("goodput (Mb/s)")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return figure

    start = 5.0 if path is ALABAMA else 0.5
    early = summary.filter((pl.col("t_s") <= start + 1e-6) & (pl.col("cache") == "later runs"))
    mean = {p: float(early.filter(pl.col("protocol") == p)["mean_bps"].to_numpy().mean()) / 1e6 for p in PROTOCOLS}
    told = ", ".join(f"{p} {mean[p]:.0f}" for p in PROTOCOLS)
    return Figure(
        name=name,
        title=f"{path.name}: in the first {start:g} s of later runs, {told} Mb/s",
        caption=(
            f"Goodput per {'second' if path is ALABAMA else '20 ms'} of ten runs in a row, mean and range (shaded) over runs and groups; dotted: capacity for payload. Right: how far the ten runs of a group are apart at a time, mean over groups. The first run finds "
            f"an empty cache. Slides {slides}. Other users' on-off traffic takes 2 % of the bottleneck on average. TCPW does not use the cache."
        ),
        draw=draw,
        data={"throughput": summary, "apart": apart},
    )


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (
        over_time(t, ALABAMA, "series.goodput", "path-1", "10 and 11"),
        over_time(t, CALTECH, "caltech.goodput", "path-2", "18 and 19"),
    )


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {
        "path 1, TCPW": paths.scenario(ALABAMA, [(SENDERS[TCPW], 1)], duration_s=60),
    }


CHAPTER = Chapter(
    experiments=(
        Experiment(
            name="ramps", title="the first seconds on path 1, empty cache", run=run_ramps, weight=2, reads=(QUEUE,)
        ),
        Experiment(
            name="series", title="ten runs of a minute in a row, path 1", run=run_series, weight=14, reads=(QUEUE,)
        ),
        Experiment(name="caltech", title="ten runs in a row, path 2", run=run_caltech, weight=10),
    ),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
