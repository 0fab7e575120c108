"""Convergence against stability (NSDI 2015, section 4.2.2): the time until a second flow has its fair share, and its steadiness from then
on. The knobs are the interval length, the trial size, and the number of trial pairs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import Array, mean_over_runs, minus, ratio
from ackclock.plot import Figure, new
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
    at_most,
    below,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.pcc import arms
from ackclock_studies.pcc.arms import CUBIC, JITTER, NEWRENO, PCC, PRINTED, Arm, pcc
from ackclock_studies.pcc.sharing import asked_where

RATE_BPS = 100e6
START_S = 10
"""Start time of the second flow, s."""

HOLD_S = 5
WITHIN = 0.25
CODE = "pcc-allegro-modong"
ONE_PAIR = pcc("PCC, one pair", CODE, "blue", "o", pairs=1)
PRINTED_ONE_PAIR = pcc("PCC as printed, one pair", "pcc-allegro", "sky", "s", pairs=1)

LONG, MIDDLE, SHORT = (
    pcc(f"intervals of {rtts:g} RTT{'s' if rtts > 1 else ''}", CODE, "green", marker, interval_rtts=rtts)
    for rtts, marker in ((4.8, "v"), (3, "<"), (1, "^"))
)

COARSE, COARSER = (
    pcc(
        f"1 RTT, trials of {100 * size:g} %",
        CODE,
        "vermilion",
        marker,
        interval_rtts=1,
        epsilon_min=size,
        epsilon_max=max(size, 0.05),
        step=size,
    )
    for size, marker in ((0.03, ">"), (0.1, "D"))
)

LOCKED = replace(PCC, name="PCC, perfect clocks", colour="black", marker="X")
ARMS = (PCC, ONE_PAIR, PRINTED, PRINTED_ONE_PAIR, LONG, MIDDLE, SHORT, COARSE, COARSER, CUBIC, NEWRENO, LOCKED)
FEW = (PCC, ONE_PAIR, CUBIC)
"""Arms with one trial each at quick scale, for pictures."""
MANY_TRIALS = (PCC, ONE_PAIR, CUBIC)
LIMIT_S, WATCHED_S, PICTURED_S = 60, 60, 30
"""Time limit for convergence, and subsequent observation time; observation time at quick scale, where no claim is judged."""
LEAST_TRIALS = 6
"""Number of trials needed for a claim."""


def scenario(arm: Arm, limit_s: int, then_s: int) -> Scenario:
    """Two flows over 100 Mb/s and 30 ms, 250 packets, with `limit_s` to converge and `then_s` of observation."""
    jitter = "0 ms" if arm is LOCKED else JITTER
    return Scenario.from_dict(
        {
            "name": f"a second flow joins, {arm.name}",
            "duration": f"{START_S + limit_s + then_s} s",
            "network": {
                "topology": "dumbbell",
                "access": {"rate": "1 Gbit/s", "delay": "1 ms", "jitter": jitter},
                "bottleneck": {
                    "rate": "100 Mbit/s",
                    "delay": "13 ms",
                    "queue": {"kind": "drop-tail", "limit": "250 packets"},
                },
                "egress": {"rate": "1 Gbit/s", "delay": "1 ms"},
            },
            "flows": [arm.flows(), arm.flows(start=f"{START_S} s")],
            "record": {"goodput_interval": "1 s"},
        }
    )


def converged(share: Array, hold: int = HOLD_S, within: float = WITHIN) -> int | None:
    """First second from which a flow keeps its fair share for `hold` seconds.

    Parameters
    ----------
    share
        Ratio of each second's goodput to the fair share.
    """
    fine = np.abs(share - 1) <= within
    for t in range(share.size - hold + 1):
        if fine[t : t + hold].all():
            return t
    return None


def measured(share: Array, limit_s: int, then_s: int) -> dict[str, Any]:
    """Convergence time, and steadiness afterwards.

    Returns
    -------
    dict
        converged; time_s (the limit, if it did not converge); sd (of the share over `then_s` seconds from convergence on; None if
        it did not converge).
    """
    t = converged(share[: limit_s + HOLD_S])
    if t is None or t + then_s > share.size:
        return {"converged": False, "time_s": float(limit_s), "sd": None}
    return {"converged": True, "time_s": float(t), "sd": float(share[t : t + then_s].std(ddof=1))}


NEEDS = {"goodput": ("flow", "t_s", "goodput_bps")}


def run(plan: Plan) -> Data:
    """Every setting: 15 trials of CUBIC and of PCC with one pair and with two, 6 trials of the others. Quick scale runs one trial of each.

    Returns
    -------
    Data
        `convergence.trials`: arm, seed, watched_s, converged, time_s, sd (of the goodput of a second over the fair share).
        `convergence.series`: arm, t_s (since the second flow's start), share of one trial.
    """
    quick = plan.scale == "quick"
    limit_s, then_s = LIMIT_S, PICTURED_S if quick else WATCHED_S
    cells = [
        Cell(
            scenario=scenario(arm, limit_s, then_s),
            keys={"arm": arm.name},
            stream="convergence",
            seeds=plan.count(quick=1, paper=15 if arm in MANY_TRIALS else 6),
            needs=NEEDS,
        )
        for arm in (FEW if quick else ARMS)
    ]
    data = collect("convergence", cells, plan)
    joined = data.tables["convergence.goodput"].filter((pl.col("flow") == 1) & (pl.col("t_s") > START_S))
    fair = {arm.name: arm.carried(RATE_BPS) / 2 for arm in ARMS}
    trials: list[dict[str, Any]] = []
    series: list[pl.DataFrame] = []
    for (name, seed), own in joined.group_by("arm", "seed", maintain_order=True):
        share = (own.sort("t_s")["goodput_bps"] / fair[str(name)]).to_numpy()
        trials.append({"arm": name, "seed": seed, "watched_s": then_s, **measured(share, limit_s, then_s)})
        if not any(frame["arm"][0] == name for frame in series):
            t = np.arange(1.0, share.size + 1)
            series.append(pl.DataFrame({"t_s": t, "share": share}).select(pl.lit(name).alias("arm"), "t_s", "share"))
    table = pl.DataFrame(trials, schema_overrides={"sd": pl.Float64})
    return Data(tables={TABLE: table, "convergence.series": pl.concat(series)}, digests=data.digests, runs=data.runs)


TABLE = "convergence.trials"


def deviations(tables: Tables, arm: Arm) -> Array:
    """Standard deviations in the trials that converged."""
    return arms.only(tables[TABLE], {"arm": arm.name})["sd"].drop_nulls().to_numpy().astype(np.float64)


def there(tables: Tables, *wanted: Arm) -> list[Arm]:
    """The settings in `wanted` that were run."""
    names = set(tables[TABLE]["arm"])
    return [arm for arm in wanted if arm.name in names]


def enough(tables: Tables) -> bool:
    """Whether there are enough trials, of sufficient length, for a claim."""
    own = tables[TABLE].filter(pl.col("arm") == PCC.name)
    return own.height >= LEAST_TRIALS and bool((own["watched_s"] >= WATCHED_S).all())


asked = asked_where(enough)


def both_converged(tables: Tables, one: Arm, other: Arm) -> tuple[Array, Array]:
    """Deviations for the seeds where both settings' trials converged, pair by pair."""
    a, b = (arms.only(tables[TABLE], {"arm": arm.name}).select("seed", "sd").drop_nulls() for arm in (one, other))
    both = a.join(b, on="seed", suffix="_other").sort("seed")
    return both["sd"].to_numpy().astype(np.float64), both["sd_other"].to_numpy().astype(np.float64)


@asked
def pairs_help(tables: Tables, *, much: bool) -> Sequence[Evidence]:
    """Two pairs against one, paired by seed."""
    found = []
    for two, one in ((PCC, ONE_PAIR), (PRINTED, PRINTED_ONE_PAIR)):
        if len(there(tables, two, one)) < 2:
            continue
        steady, rough = both_converged(tables, two, one)
        variance = ratio(steady**2, rough**2)
        time = arms.times(tables, TABLE, "time_s", two, one)
        weighs = two is PCC
        found += [
            Evidence.of(
                variance,
                f"{two.name}: variance, two pairs over one",
                at_most(0.65) if much else below(1),
                weighs=weighs,
            ),
            Evidence.of(
                time, f"{two.name}: convergence time, two pairs over one", at_most(1.03), weighs=weighs and much
            ),
        ]
    return found


@asked
def knobs_trade(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Shorter intervals converge faster, and larger trials are less steady. Measured at paper scale only."""
    if len(there(tables, LONG, SHORT, COARSER)) < 3:
        nothing = Evidence(label="settings of the knobs", value=math.nan, low=math.nan, high=math.nan, bound=bound)
        return [nothing]
    slow, fast = (arms.mean(tables, TABLE, "time_s", arm=arm.name) for arm in (LONG, SHORT))
    steady, rough = (mean_over_runs(deviations(tables, arm)) for arm in (SHORT, COARSER))
    coarse = arms.mean(tables, TABLE, "time_s", arm=COARSER.name)
    return [
        Evidence.of(minus(slow, fast), "convergence time, intervals of 4.8 less 1 RTT", bound, unit="s"),
        Evidence.of(minus(fast, coarse), "convergence time, trials of 1 less 10 %", bound, unit="s", weighs=False),
        Evidence.of(minus(rough, steady), "deviation, trials of 10 less 1 %, in fair shares", bound),
    ]


@asked
def steadier(tables: Tables) -> Sequence[Evidence]:
    """PCC against TCP, after convergence."""
    own = mean_over_runs(deviations(tables, PCC))
    found = [
        Evidence.of(
            minus(mean_over_runs(deviations(tables, other)), own),
            f"deviation, {other.name} less PCC, in fair shares",
            above(0, margin=0.02),
        )
        for other in there(tables, CUBIC, NEWRENO)
    ]
    for arm in there(tables, *ARMS):
        reached = 100 * float(arms.pick(tables, TABLE, "converged", arm=arm.name).mean())
        time = arms.mean(tables, TABLE, "time_s", arm=arm.name)
        found += [
            Evidence.of(time, f"{arm.name}: convergence time", at_least(0), unit="s", weighs=False),
            Evidence(
                label=f"{arm.name}: trials that converged", value=reached, unit="%", bound=at_least(0), weighs=False
            ),
        ]
    return found


def figure(tables: Tables) -> Figure:
    """Standard deviation against convergence time, and one trial over time."""
    table = tables[TABLE]
    found = table.group_by("arm", maintain_order=True).agg(
        pl.col("time_s").mean(), pl.col("sd").mean(), pl.col("converged").mean(), pl.len().alias("trials")
    )
    series = tables["convergence.series"]

    def draw() -> Any:
        figure, (over, trade) = new(8.6, 4.6, ncols=2)
        for arm in there(tables, PCC, CUBIC, LOCKED):
            own = series.filter(pl.col("arm") == arm.name)
            look = {k: v for k, v in arm.look().items() if k not in ("marker", "label")}
            over.plot(
                own["t_s"],
                own["share"],
                lw=1.1,
                **(look | {"ls": {PCC.name: "-", CUBIC.name: "--"}.get(arm.name, ":")}),
            )
        over.axhspan(1 - WITHIN, 1 + WITHIN, color="#6b6b6b", alpha=0.12, lw=0)
        over.set_xlabel("time since the second flow began (s)")
        over.set_ylabel("its goodput over the fair share")
        for arm in there(tables, *ARMS):
            own = found.filter(pl.col("arm") == arm.name)
            if own["sd"][0] is None:
                continue
            look = arm.look() | {"ls": ""}
            trade.plot(own["time_s"], own["sd"], ms=7, mfc="none" if "one pair" in arm.name else None, **look)
        trade.set_xlim(0, None)
        trade.set_ylim(0, None)
        trade.set_xlabel("mean time to converge (s)")
        trade.set_ylabel("deviation afterwards (fair shares)")
        figure.legend(*trade.get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return figure

    return Figure(
        name="convergence",
        title="A second flow joins: soon, or steady",
        caption=(
            "Left: one trial each; solid PCC, dashed CUBIC, dotted PCC with perfect clocks; the band is the share it has to keep for 5 s. "
            "Right: means over trials, those that did not converge counted at the limit; hollow: one pair of trials."
        ),
        draw=draw,
        data={"trials": table, "series": series},
    )


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {"PCC, a second flow joins": scenario(PCC, 60, 60)}


EXPERIMENT = Experiment(name="convergence", title="a second flow joins: soon, or steady", run=run, weight=18)


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (figure(tables),)


CHAPTER = Chapter(experiments=(EXPERIMENT,), **declared(__name__), blocks=blocks, scenarios=scenarios)
