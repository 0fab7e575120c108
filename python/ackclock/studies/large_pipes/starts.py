"""The first seconds and the first minute of a transfer, cold and warm, both paths (W2, W3, W4, W12, W17)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.plot import GREY, Figure, new
from ackclock.report import Block
from ackclock.scenario import Scenario
from ackclock.stats import bootstrap_interval
from ackclock.studies.large_pipes import paths, runs
from ackclock.studies.large_pipes.paths import (
    ALABAMA,
    CALTECH,
    FAST,
    HSTCP,
    NEWRENO,
    PROTOCOLS,
    SENDERS,
    TCPW,
    Path,
)
from ackclock.studies.large_pipes.runs import COLD, GOODPUT, WARM, column_of, goodput_of_first, ramp, warmth
from ackclock.studies.large_pipes.style import COLOUR
from ackclock.study import (
    Chapter,
    Claim,
    Criterion,
    Data,
    Evidence,
    Experiment,
    Plan,
    Range,
    Tables,
    at_least,
    at_most,
    below,
    between,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.estimates import Array, median


def run_ramps(plan: Plan) -> Data:
    """The first seconds of a transfer, cold and warm, both paths.

    Returns
    -------
    Data
        `ramps.times`: path, protocol, cache, run, ramp_s (infinite if 90 % was not reached).
    """
    seeds = plan.count(quick=6, paper=20)
    places = ((ALABAMA, 30.0), (CALTECH, 4.0))
    cells = []
    for path, duration in places:
        for protocol in PROTOCOLS:
            for cache in (COLD, WARM):
                scenario = paths.scenario(
                    path,
                    [(SENDERS[protocol], 1)],
                    duration_s=duration,
                    record={"goodput_interval": f"{1e6 * path.rtt_s:.0f} us"},
                    **warmth(protocol, path, cache == WARM),
                )
                cells.append(
                    Cell(
                        scenario=scenario,
                        keys={"path": path.name, "protocol": protocol, "cache": cache},
                        stream=f"large-pipes ramps {path.name}",
                        seeds=seeds,
                        needs=GOODPUT,
                        keep={"times": ramp(path)},
                    )
                )
    return collect("ramps", cells, plan, numbered=True)


def run_series(plan: Plan) -> Data:
    """Ten transfers of a minute, as the slides' ten nights: run 0 meets a cold cache, the others a warm one.

    Returns
    -------
    Data
        `series.goodput`: path, protocol, cache, run, t_s (end of the interval: 1 s, or 50 ms on path 2), goodput_bps.
    """
    seeds = plan.count(quick=6, paper=10)
    cells = []
    for path in (ALABAMA, CALTECH):
        for protocol in PROTOCOLS:
            for cache in (COLD, WARM):
                # of path 2 the slides show the start; the minute is for the mean of TCPW and FAST
                whole = path is ALABAMA or (plan.scale == "paper" and cache == COLD and protocol in (TCPW, FAST))
                duration = 60.0 if whole else 5.0
                scenario = paths.scenario(
                    path,
                    [(SENDERS[protocol], 1)],
                    duration_s=duration,
                    record={"goodput_interval": "1 s" if path is ALABAMA else "50 ms"},
                    **warmth(protocol, path, cache == WARM),
                )
                cells.append(
                    Cell(
                        scenario=scenario,
                        keys={"path": path.name, "protocol": protocol, "cache": cache},
                        stream=f"large-pipes series {path.name}",
                        seeds=seeds,
                        needs=GOODPUT,
                        keep={"goodput": goodput_of_first},
                    )
                )
    return collect("series", cells, plan, numbered=True)


def ramp_times(tables: Tables, path: Path, protocol: str, cache: str) -> Array:
    """Ramp-up times, one per run."""
    return column_of(tables["ramps.times"], "ramp_s", path=path.name, protocol=protocol, cache=cache)


def per_second(tables: Tables, path: Path, protocol: str, cache: str, start_s: float, stop_s: float) -> Array:
    """Goodput, bit/s: a row per run, a column per interval in (start, stop]."""
    t = tables["series.goodput"].filter(
        (pl.col("path") == path.name)
        & (pl.col("protocol") == protocol)
        & (pl.col("cache") == cache)
        & (pl.col("t_s") > start_s + 1e-6)
        & (pl.col("t_s") <= stop_s + 1e-6)
    )
    by_run = t.sort("run", "t_s").partition_by("run", maintain_order=True)
    return np.array([own["goodput_bps"].to_numpy() for own in by_run])


NO_BOUND = Range()


def capped(values: Array, cap_s: float) -> Array:
    """Times that were not reached within the run, as the run's length: a lower bound."""
    return np.minimum(values, cap_s)


def w2(tables: Tables) -> Sequence[Evidence]:
    """Time to 90 % of the capacity, cold, path 1."""
    t = {p: capped(ramp_times(tables, ALABAMA, p, COLD), 30.0) for p in PROTOCOLS}
    return [
        Evidence.of(median(t[NEWRENO] / t[HSTCP]), "time to 90 %, NewReno / HSTCP", at_least(2)),
        Evidence.of(median(t[HSTCP] / t[TCPW]), "time to 90 %, HSTCP / TCPW", at_least(1.5)),
        *(
            Evidence.of(median(t[p]), f"time to 90 %, {p} (30 s: not reached)", NO_BOUND, unit="s", weighs=False)
            for p in PROTOCOLS
        ),
    ]


def across(tables: Tables, protocol: str, start_s: float, stop_s: float) -> Array:
    """Throughput per second over the runs of path 1 as the slides made them: the first cold, the others warm."""
    cold = per_second(tables, ALABAMA, protocol, COLD, start_s, stop_s)
    warm = per_second(tables, ALABAMA, protocol, WARM, start_s, stop_s)
    return np.vstack([cold[:1], warm[1:]])


def spread(rows: Array) -> float:
    """Mean over the seconds of the coefficient of variation across runs."""
    mean = rows.mean(axis=0)
    return float(np.mean(rows.std(axis=0, ddof=1) / np.where(mean > 0, mean, np.nan)))


def quotient(numerator: float, denominator: float) -> float:
    """NaN where nothing varies: a resample may hold one run several times over."""
    return numerator / denominator if denominator > 0 else float("nan")


def w3(tables: Tables) -> Sequence[Evidence]:
    """Deviation between runs in the first ten seconds."""
    first = {p: across(tables, p, 0, 10) for p in PROTOCOLS}
    width = first[TCPW].shape[1]

    def ratio(rows: Array) -> float:
        return quotient(spread(rows[:, :width]), spread(rows[:, width:]))

    return [
        Evidence.of(
            bootstrap_interval(np.hstack([first[loud], first[calm]]), ratio, resamples=1000),
            f"coefficient of variation across runs, t ≤ 10 s, {loud} / {calm}",
            at_least(1.5),
        )
        for loud in (HSTCP, NEWRENO)
        for calm in (TCPW, FAST)
    ]


def w4(tables: Tables) -> Sequence[Evidence]:
    """HSTCP's deviation later on."""
    early, late = across(tables, HSTCP, 0, 10), across(tables, HSTCP, 30, 60)
    width = early.shape[1]

    def less(rows: Array) -> float:
        return 100 * (1 - quotient(spread(rows[:, width:]), spread(rows[:, :width])))

    value = bootstrap_interval(np.hstack([early, late]), less, resamples=1000)
    return [
        Evidence.of(value, "coefficient of variation across runs, 30 to 60 s below 0 to 10 s", at_least(30), unit="%")
    ]


def w12(tables: Tables) -> Sequence[Evidence]:
    """NewReno with a warm cache on path 2."""
    t = {p: capped(ramp_times(tables, CALTECH, p, WARM if p in runs.CACHED else COLD), 4.0) for p in PROTOCOLS}
    found = [Evidence.of(median(t[NEWRENO]), "NewReno, warm: time to 90 %", below(0.2), unit="s")]
    for other in (TCPW, FAST, HSTCP):
        found.append(Evidence.of(median(t[NEWRENO] / t[other]), f"time to 90 %, NewReno warm / {other}", at_most(1.0)))
    cold = capped(ramp_times(tables, CALTECH, NEWRENO, COLD), 4.0)
    found.append(Evidence.of(median(cold), "NewReno, cold: time to 90 %", NO_BOUND, unit="s", weighs=False))
    return found


def w17(tables: Tables) -> Sequence[Evidence]:
    """Average throughput of TCPW and FAST."""
    found = []
    for path in (ALABAMA, CALTECH):
        mean = {p: per_second(tables, path, p, COLD, 0, 60).mean(axis=1) for p in (TCPW, FAST)}
        found.append(Evidence.of(median(mean[TCPW] / mean[FAST]), f"{path.name}: TCPW / FAST", between(0.95, 1.05)))
    return found


def over_time(tables: Tables, path: Path, name: str, slides: str) -> Figure:
    """Throughput over time with its spread over runs, cold and warm."""
    t = tables["series.goodput"].filter(pl.col("path") == path.name)
    summary = (
        t.group_by("protocol", "cache", "t_s")
        .agg(
            pl.col("goodput_bps").mean().alias("mean_bps"),
            pl.col("goodput_bps").min().alias("least_bps"),
            pl.col("goodput_bps").max().alias("most_bps"),
        )
        .sort("protocol", "cache", "t_s")
    )

    def draw() -> Any:
        figure, axes = new(8.2, 4.6, nrows=2, ncols=4, sharey=True)
        for row, cache in enumerate((COLD, WARM)):
            for column, protocol in enumerate(PROTOCOLS):
                own = summary.filter((pl.col("protocol") == protocol) & (pl.col("cache") == cache))
                ax = axes[row][column]
                own = own.filter(pl.col("t_s") <= (60 if path is ALABAMA else 5) + 1e-6)
                x = own["t_s"].to_numpy()
                ax.fill_between(
                    x, own["least_bps"] / 1e6, own["most_bps"] / 1e6, color=COLOUR[protocol], alpha=0.25, lw=0
                )
                ax.plot(x, own["mean_bps"] / 1e6, color=COLOUR[protocol])
                ax.axhline(path.payload_bps / 1e6, color=GREY, lw=0.8, ls=":")
                ax.set_title(f"{protocol}, {cache} cache", fontsize=8.5)
                ax.set_ylim(0, 1.08 * path.payload_bps / 1e6)
                if row == 1:
                    ax.set_xlabel("time (s)")
            axes[row][0].set_ylabel("goodput (Mb/s)")
        return figure

    early = summary.filter((pl.col("t_s") <= 5.0 + 1e-6) & (pl.col("cache") == COLD))
    mean = {p: float(early.filter(pl.col("protocol") == p)["mean_bps"].to_numpy().mean()) / 1e6 for p in PROTOCOLS}
    return Figure(
        name=name,
        title=f"{path.name}: in the first 5 s, cold, " + ", ".join(f"{p} {mean[p]:.0f}" for p in PROTOCOLS) + " Mb/s",
        caption=(
            f"Goodput per {'second' if path is ALABAMA else '50 ms'}, mean over runs and range (shaded); dotted: capacity for payload. Slides {slides}. Runs differ by other users' "
            "on-off traffic, 2 % of the bottleneck on average. TCPW does not use the cache."
        ),
        draw=draw,
        data={"throughput": summary},
    )


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="W2",
        place="slide 10",
        statement="The protocols converge at different speed.",
        direction=Criterion(
            measure=w2,
            reading="Path 1, cold cache: NewReno takes at least twice as long to 90 % as HSTCP, HSTCP at least 1.5 times as long as TCPW.",
        ),
        note="With a queue of 400 packets and a window of 1.5 MiB nothing is lost at the start, so the Linux senders come up in one second. It takes overshoot in a shorter queue, or the cached ssthresh, to slow them down.",
    ),
    Claim(
        id="W3",
        place="slide 10",
        statement="HSTCP and NewReno deviate much from run to run.",
        direction=Criterion(
            measure=w3,
            reading="First 10 s, first run cold and the others warm: coefficient of variation across runs at least 1.5 times that of TCPW and of FAST.",
        ),
        note="The deviation is that between the one cold run and the nine warm ones: seven to twenty times that of TCPW and FAST. Leave the cold run out and nothing is left, which is what the interval says.",
    ),
    Claim(
        id="W4",
        place="slide 10",
        statement="The deviation of HSTCP shrinks with time.",
        direction=Criterion(
            measure=w4,
            reading="30 to 60 s at least 30 % below the first 10 s.",
        ),
        note="It shrinks by 92 %, as every warm run arrives at the capacity; the interval is wide for the reason given for W3.",
    ),
    Claim(
        id="W12",
        place="slide 18",
        statement="On path 2 NewReno starts very high, thanks to a cached ssthresh and short feedback.",
        direction=Criterion(
            measure=w12,
            reading="Warm: 90 % in less than 0.2 s, and no other is sooner.",
        ),
    ),
    Claim(
        id="W17",
        place="slide 23",
        statement="TCPW and FAST have equal average throughput.",
        direction=Criterion(
            measure=w17,
            reading="Means of 60 s within 5 %, both paths.",
        ),
        note="On path 2 they are within 1.4 %. On path 1 TCPW without SACK pays for each loss that other users cause, and for its slow start.",
    ),
)


def blocks(t: Tables) -> Sequence[Block]:
    """For the report."""
    return (over_time(t, ALABAMA, "path-1", "10 and 11"), over_time(t, CALTECH, "path-2", "18 and 19"))


def scenarios() -> Mapping[str, Scenario]:
    """As written."""
    return {
        "path 1, TCPW": paths.scenario(ALABAMA, [(SENDERS[TCPW], 1)], duration_s=60),
        "path 1, NewReno, warm": paths.scenario(
            ALABAMA, [(SENDERS[NEWRENO], 1)], duration_s=60, **runs.warmth(NEWRENO, ALABAMA, True)
        ),
    }


CHAPTER = Chapter(
    title="Starts, and the first minute",
    experiments=(
        Experiment(name="ramps", title="the first seconds, cold and warm, both paths", run=run_ramps, weight=8),
        Experiment(name="series", title="throughput over a minute, ten runs", run=run_series, weight=20),
    ),
    claims=CLAIMS,
    blocks=blocks,
    scenarios=scenarios,
)
