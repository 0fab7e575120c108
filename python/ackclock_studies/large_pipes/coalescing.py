"""Path 2 behind an interrupt-coalescing NIC (W13, W15, W16, W24)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import Array, mean_over_runs, ratio
from ackclock.plot import GREY, OKABE_ITO, Figure, new
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
)
from ackclock.study.cells import Cell, Reduce, collect
from ackclock.study.table import declared
from ackclock_studies.large_pipes import paths
from ackclock_studies.large_pipes.paths import (
    CALTECH,
    COALESCING,
    FAST,
    HSTCP,
    NEWRENO,
    PER_PACKET,
    SENDERS,
    TCPW,
    Protocol,
    westwood,
)
from ackclock_studies.large_pipes.readings import FILTERS, GAIN, LEVEL
from ackclock_studies.large_pipes.runs import GOODPUT, NO_BOUND, geometric, goodput_of_first, mean_time, pick, ramp

ADAPTIVE = "stability filter"
GAINS: dict[str, dict[str, Any]] = {ADAPTIVE: {}, "τ = RTT": {"n": 0}, "0.9 per sample": {"gain": "ewma"}}
"""Gain settings for ABSE's filter; the last two are readings of a fixed gain."""

BATCH, BE, RE = "ABSE over whole batches", "BE", "RE"
BY_SAMPLE = "0.9 per sample"
UNSMOOTHED = f"ABSE, {BY_SAMPLE}, throughput not low-passed"
"""Arm for the cause of W16: ABSE at this gain, but without the low-pass filter."""


def arm(level: str, gain: str) -> str:
    """Name of an ABSE variant."""
    return f"ABSE, {gain}" if level == LEVEL.main else f"ABSE, {gain}, {level}"


ABSE: dict[str, Protocol] = {
    arm(level, gain): westwood(arm(level, gain), **{**FILTERS[level], **options})
    for level in LEVEL.options
    for gain, options in GAINS.items()
}
OTHERS: dict[str, Protocol] = {
    BATCH: westwood(BATCH, estimator="abse-batch"),
    BE: westwood(BE, estimator="be"),
    RE: westwood(RE, estimator="re"),
    UNSMOOTHED: westwood(UNSMOOTHED, **{**FILTERS[LEVEL.main], "gain": "ewma", "level_rate": "achieved"}),
}
"""The slides' future work, a batch-aware estimator; and the two kinds combined by ABSE, averaged at a fixed gain."""

REMEDIES = (*(arm(LEVEL.main, gain) for gain in GAINS), BATCH)

QUIET, COALESCED = "an interrupt per packet", "125 µs interrupt throttling"
CONTROLLER = ("flow", "t_s", "tau_s", "interval_s", "sample_rtt_s", "sample_bps")
RUN_S = 2.0


def controller_after(batch: Batch, start_s: float) -> pl.DataFrame:
    """Reports of the first flow's controller from `start_s` on."""
    return batch.controllers.filter((pl.col("flow") == 0) & (pl.col("t_s") >= start_s))


def run_coalescing(plan: Plan) -> Data:
    """Path 2, with and without interrupt coalescing at the sender.

    Returns
    -------
    Data
        `coalescing.ramps`: protocol, card, run, ramp_s; `coalescing.samples`: protocol, card, run, cov (coefficient of variation of
        the samples s_k in steady state), interval_s (mean of T_k), tau_rtts (median of tau_k/RTT); `coalescing.throughput`: goodput
        of the run; `coalescing.curve`: goodput of the first second.
    """
    seeds, few = plan.count(quick=5, paper=12), plan.count(quick=3, paper=12)
    senders = {**ABSE, **OTHERS, FAST: SENDERS[FAST], HSTCP: SENDERS[HSTCP], NEWRENO: SENDERS[NEWRENO]}
    cells = []

    def samples(batch: Batch) -> pl.DataFrame:
        steady = controller_after(batch, 1.0)
        return steady.group_by("seed", maintain_order=True).agg(
            (pl.col("sample_bps").std() / pl.col("sample_bps").mean()).alias("cov"),
            pl.col("interval_s").mean(),
            (pl.col("tau_s") / pl.col("sample_rtt_s")).median().alias("tau_rtts"),
        )

    def throughput(batch: Batch) -> pl.DataFrame:
        return batch.flows.filter(pl.col("flow") == 0).select("seed", "goodput_bps")

    def curve(batch: Batch) -> pl.DataFrame:
        return goodput_of_first(batch).filter(pl.col("t_s") <= 1.0)

    for name, protocol in senders.items():
        for card, host in ((QUIET, PER_PACKET), (COALESCED, COALESCING)):
            keep: dict[str, Reduce] = {"ramps": ramp(CALTECH), "throughput": throughput, "curve": curve}
            needs: dict[str, Sequence[str]] = {"flows": ("flow", "goodput_bps"), **GOODPUT}
            sampled = name in (arm(level, ADAPTIVE) for level in LEVEL.options)
            if sampled:
                keep["samples"] = samples
                needs["controllers"] = CONTROLLER
            scenario = paths.scenario(
                CALTECH,
                [(protocol, 1)],
                duration_s=RUN_S,
                card=host,
                record={
                    "goodput_interval": f"{1e6 * CALTECH.rtt_s:.0f} us",
                    "controller": "flow" if sampled else "none",
                },
            )
            keys = {"protocol": name, "card": card}
            stream = "large-pipes coalescing"
            cells.append(
                Cell(
                    scenario=scenario,
                    keys=keys,
                    stream=stream,
                    seeds=few if name in (BATCH, BE, RE, NEWRENO) else seeds,
                    needs=needs,
                    keep=keep,
                )
            )
    return collect("coalescing", cells, plan, numbered=True)


def ramps(tables: Tables, variant: str, card: str) -> Array:
    """Times to 90 %, infinite for runs that ended first."""
    return pick(tables, "coalescing.ramps", "ramp_s", protocol=variant, card=card)


def _over(slow: Array, fast: Array, label: str, bound: Bound, **keys: Any) -> Evidence:
    """Ratio between two times, run by run. If some runs never reached the first, the result is only a lower bound."""
    if not np.isfinite(fast).all():
        return Evidence(label=label, value=math.nan, low=math.nan, high=math.nan, bound=bound, seeds=slow.size, **keys)
    if not np.isfinite(slow).all():
        least = float(np.minimum(slow, RUN_S).mean() / fast.mean())
        return Evidence(label=label, value=math.inf, low=least, high=math.inf, bound=bound, seeds=slow.size, **keys)
    return Evidence.of(geometric(slow / fast), label, bound, **keys)


def _arms(tables: Tables) -> tuple[str, str]:
    """Names of the stability-filter and fixed-gain variants in the chosen reading."""
    level = LEVEL.of(tables)
    return arm(level, ADAPTIVE), arm(level, GAIN.of(tables))


def _w13(tables: Tables, bound: Bound, card: str, key: str) -> Evidence:
    adaptive, fixed = _arms(tables)
    label = f"ramp time, {card}: stability filter / fixed gain"
    return _over(ramps(tables, adaptive, card), ramps(tables, fixed, card), label, bound, key=key)


def w13(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Effect of the stability filter behind a coalescing NIC."""
    return [
        _w13(tables, bound, COALESCED, "ratio"),
        *(
            mean_time(ramps(tables, v, COALESCED), RUN_S, f"ramp time, {v}", NO_BOUND, weighs=False, key=key)
            for v, key in ((arm(LEVEL.of(tables), g), f"ramp_{k}") for k, g in enumerate(GAINS))
        ),
    ]


def w13_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Size of the effect."""
    return [_w13(tables, bound, COALESCED, "ratio")]


def _variation(tables: Tables, level: str, card: str) -> Array:
    return pick(tables, "coalescing.samples", "cov", protocol=arm(level, ADAPTIVE), card=card)


_LEVEL_KEYS = dict(zip(LEVEL.options, ("quoted", "each_ack"), strict=True))


def w15(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Samples taken with interrupt coalescing on the NIC."""
    found = []
    for level, key in _LEVEL_KEYS.items():
        more = _variation(tables, level, COALESCED) - _variation(tables, level, QUIET)
        label = f"coefficient of variation of s_k, with coalescing less without; samples: {level}"
        weighs = level == LEVEL.of(tables)
        found.append(Evidence.of(mean_over_runs(more), label, bound, weighs=weighs, key=f"more_{key}"))
    interval = pick(tables, "coalescing.samples", "interval_s", protocol=_arms(tables)[0], card=COALESCED)
    label = "mean T_k with coalescing"
    shown = Evidence.of(mean_over_runs(interval), label, NO_BOUND, unit="ms", factor=1e3, weighs=False, key="interval")
    return [*found, shown]


def w15_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """W15, "a lot": the deviation is at least half of the mean."""
    return [
        Evidence.of(
            mean_over_runs(_variation(tables, level, COALESCED)),
            f"coefficient of variation of s_k with coalescing; samples: {level}",
            bound,
            weighs=level == LEVEL.of(tables),
            key=key,
        )
        for level, key in _LEVEL_KEYS.items()
    ]


def w16(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Fixed gain compared with HSTCP and FAST."""
    own = ramps(tables, _arms(tables)[1], COALESCED)
    return [
        _over(
            own,
            ramps(tables, other, COALESCED),
            f"ramp time with coalescing, TCPW at fixed gain / {other}",
            bound,
            key=other.lower(),
        )
        for other in (HSTCP, FAST)
    ]


def _left(tables: Tables, changed: tuple[str, str], name: str, bound: Bound) -> list[Evidence]:
    """Percentage of a sender's extra time behind the coalescing NIC, relative to HSTCP and FAST, that remains with another sender or NIC."""
    found = []
    for other in (HSTCP, FAST):
        beyond = ramps(tables, name, COALESCED) - ramps(tables, other, COALESCED)
        left = ramps(tables, *changed) - ramps(tables, other, changed[1])
        label = f"beyond {other}'s time: left of what it is with coalescing, {name}"
        found.append(Evidence.of(ratio(left, beyond), label, bound, factor=100, unit="%"))
    return found


def not_low_passed(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """W16 at a gain of a tenth per sample without the low-pass filter on the congestion throughput; ramp-time ratios
    with and without the filter for context.
    """
    smoothed = arm(LEVEL.main, BY_SAMPLE)
    found = _left(tables, (UNSMOOTHED, COALESCED), smoothed, bound)
    for name, key in ((smoothed, "sample"), (UNSMOOTHED, "direct")):
        for other in (HSTCP, FAST):
            times = ramps(tables, name, COALESCED), ramps(tables, other, COALESCED)
            found.append(
                _over(*times, f"ramp time, {name} / {other}", NO_BOUND, weighs=False, key=f"{other.lower()}_{key}")
            )
    return found


def without_batches(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """W16 without the card."""
    fixed = arm(LEVEL.main, GAIN.main)
    return _left(tables, (fixed, QUIET), fixed, bound)


def w24(tables: Tables) -> Sequence[Evidence]:
    """Ratio of the filter's cost with batches to its cost without."""
    adaptive, fixed = _arms(tables)
    cost = []
    for card in (COALESCED, QUIET):
        slow, fast = ramps(tables, adaptive, card), ramps(tables, fixed, card)
        if not (np.isfinite(slow).all() and np.isfinite(fast).all()):
            return [
                Evidence(
                    label=_COST,
                    value=math.nan,
                    low=math.nan,
                    high=math.nan,
                    bound=above(1),
                    seeds=slow.size,
                    key="cost",
                )
            ]
        cost.append(slow / fast)
    return [Evidence.of(geometric(cost[0] / cost[1]), _COST, above(1, margin=0.05), key="cost")]


_COST = "stability filter / fixed gain: with coalescing over without"


def w24_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """W13 without batches."""
    return [_w13(tables, bound, QUIET, "quiet")]


def coalescing(tables: Tables) -> Figure:
    """Ramp time with and without coalescing (slides 18 to 21)."""
    names = [*ABSE, *OTHERS, FAST, HSTCP, NEWRENO]
    rows = []
    for name in names:
        for card in (QUIET, COALESCED):
            times = ramps(tables, name, card)
            missed = int(np.isinf(times).sum())
            e = mean_over_runs(np.minimum(times, RUN_S))
            row = {"protocol": name, "card": card, "ramp_s": e.value, "low": e.low, "high": e.high}
            rows.append(row | {"not_reached": missed, "runs": times.size})
    table = pl.DataFrame(rows)

    def draw() -> Any:
        figure, ax = new(7.6, 5.0)
        for i, (card, colour) in enumerate(((QUIET, OKABE_ITO["sky"]), (COALESCED, OKABE_ITO["vermilion"]))):
            own = table.filter(pl.col("card") == card)
            y = np.arange(len(names)) + 0.36 * (i - 0.5)
            value = own["ramp_s"].to_numpy()
            error = np.abs(own.select("low", "high").to_numpy().T - value)
            error[:, own["not_reached"].to_numpy() > 0] = 0.0
            ax.barh(y, value, 0.34, color=colour, label=card, hatch="" if i == 0 else "///", edgecolor="white", lw=0)
            ax.errorbar(value, y, xerr=error, fmt="none", ecolor="#222222", lw=1)
            for at, row in zip(y, own.iter_rows(named=True), strict=True):
                if row["not_reached"]:
                    ax.text(
                        row["ramp_s"] + 0.02,
                        at,
                        f"not reached in {row['not_reached']} of {row['runs']} runs",
                        va="center",
                        fontsize=7,
                    )
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        ax.set(xlabel="time to 90 % of 1 Gb/s (s)", xlim=(0, 1.35 * RUN_S))
        ax.grid(axis="y", visible=False)
        figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return figure

    return Figure(
        name="coalescing",
        title="Time to reach 1 Gb/s, with and without a coalescing card",
        caption=f"Path 2, empty cache, means over runs with 95 % intervals; a run takes {RUN_S:g} s. BE and RE average at a fixed gain. ABSE over whole batches is the slides' future work.",
        draw=draw,
        data={"ramps": table},
    )


def start_up(tables: Tables) -> Figure:
    """The first second behind the NIC: fixed average against stability filter (slide 21)."""
    shown = {
        arm(LEVEL.main, ADAPTIVE): (OKABE_ITO["vermilion"], "-"),
        arm(LEVEL.main, GAIN.main): (OKABE_ITO["orange"], "--"),
        BE: (OKABE_ITO["purple"], "-."),
        RE: (OKABE_ITO["sky"], "-"),
        HSTCP: (OKABE_ITO["green"], "-."),
        FAST: (OKABE_ITO["blue"], ":"),
    }
    t = tables["coalescing.curve"].filter((pl.col("card") == COALESCED) & pl.col("protocol").is_in(list(shown)))
    binned = ((pl.col("t_s") / 0.02).ceil() * 0.02).round(3).alias("t_s")
    mean = t.with_columns(binned).group_by("protocol", "t_s").agg(pl.col("goodput_bps").mean()).sort("protocol", "t_s")

    def draw() -> Any:
        figure, ax = new(7.0, 3.6)
        for name, (colour, dash) in shown.items():
            own = mean.filter(pl.col("protocol") == name)
            ax.plot(own["t_s"], own["goodput_bps"] / 1e6, color=colour, ls=dash, label=name)
        ax.axhline(CALTECH.payload_bps / 1e6, color=GREY, lw=0.8, ls=":")
        ax.set(xlabel="time (s)", ylabel="goodput (Mb/s)", xlim=(0, 1), ylim=(0, 1050))
        figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return figure

    return Figure(
        name="start-up",
        title="Start-up at 1 Gb/s behind a coalescing card",
        caption="Path 2, mean goodput of 20 ms over runs; dotted: capacity for payload. BE and RE average their samples at a fixed gain, as ABSE does at τ = RTT. Slide 21.",
        draw=draw,
        data={"start-up": mean},
    )


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (coalescing(t), start_up(t))


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {
        "path 2, TCPW behind a coalescing card": paths.scenario(
            CALTECH, [(SENDERS[TCPW], 1)], duration_s=3, card=COALESCING
        ),
    }


CHAPTER = Chapter(
    experiments=(
        Experiment(name="coalescing", title="path 2 behind a coalescing card", run=run_coalescing, weight=12),
    ),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
