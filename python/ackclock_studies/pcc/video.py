"""Adaptive video (FESTIVE, CoNEXT 2012): players sharing a bottleneck, FESTIVE against a rate-based rule, over CUBIC and PCC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import Array, gain, mean_over_runs
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Table, TableCell, paragraph
from ackclock.scenario import Scenario
from ackclock.stats import Estimate, paired_difference
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
from ackclock.video import bitrates, quality
from ackclock_studies.pcc import arms
from ackclock_studies.pcc.arms import CUBIC, JITTER, PCC, PRINTED, Arm

ARMS = (CUBIC, PCC, PRINTED)
FESTIVE, RATE_BASED = "FESTIVE", "rate-based"
RULES: dict[str, dict[str, Any]] = {FESTIVE: {"kind": "festive"}, RATE_BASED: {"kind": "rate-based"}}

LADDER_MBPS = (0.35, 0.6, 1.0, 1.5, 2.0, 3.0)
CHUNK_S = 4
SHARE_MBPS = 2.2
"""Link rate per player: between two bitrates, so that equal shares still allow a gain from switching."""

PLAYERS = (2, 4, 8)
FEW = 4
WARM_UP_S = 60
"""Initial period that is excluded, s: players fill their buffers and climb the ladder."""

METRICS = ("inefficiency", "unfairness", "instability")


def link(players: int) -> dict[str, Any]:
    """Network with a 40 ms RTT and a buffer of one bandwidth-delay product."""
    mbps = players * SHARE_MBPS
    return {
        "topology": "dumbbell",
        "access": {"rate": "1 Gbit/s", "delay": "1 ms", "jitter": JITTER},
        "bottleneck": {
            "rate": f"{mbps:g} Mbit/s",
            "delay": "18 ms",
            "queue": {"kind": "drop-tail", "limit": f"{max(20, round(mbps * 1e6 * 0.04 / 12_000))} packets"},
        },
        "egress": {"rate": "1 Gbit/s", "delay": "1 ms"},
    }


LASTS_S = 300
"""Duration at both scales, s: half would answer a different question."""


def scenario(arm: Arm, rule: str, players: int, duration_s: int) -> Scenario:
    """Scenario with this number of players; each starts up to 4 s after the previous one."""
    workload = {
        "kind": "video",
        "ladder": [f"{mbps * 1000:g} kbit/s" for mbps in LADDER_MBPS],
        "chunk": f"{CHUNK_S} s",
        "size_variation": 0.1,
        "adaptation": RULES[rule],
    }
    stagger = {"kind": "uniform", "low": "100 ms", "high": "4 s"}
    return Scenario.from_dict(
        {
            "name": f"{players} players, {rule}, {arm.name}",
            "duration": f"{duration_s} s",
            "network": link(players),
            "flows": [arm.flows(count=players, stagger=stagger, workload=workload)],
        }
    )


LINKS = ("name", "arrivals_data", "dropped_queue_data")
NEEDS = {"chunks": ("flow", "idx", "request_s", "bitrate_bps", "stall_s"), "links": LINKS}


def reduce(batch: Batch, *, capacity_bps: float, duration_s: int) -> pl.DataFrame:
    """Measured values for each run."""
    lost = dict(dropped(batch.links).iter_rows())
    rows = []
    for (seed,), chunks in batch.chunks.group_by("seed", maintain_order=True):
        found = quality(chunks, capacity_bps, start_s=WARM_UP_S, stop_s=duration_s)
        rows.append({"seed": seed, **found, "lost": lost[seed]})
    return pl.DataFrame(rows)


def dropped(links: pl.DataFrame) -> pl.DataFrame:
    """Fraction of data packets dropped at the bottleneck, in columns `seed` and `lost`."""
    lost = pl.col("dropped_queue_data") / pl.col("arrivals_data")
    return links.filter(pl.col("name") == "bottleneck.forward").select("seed", lost.alias("lost"))


def example(batch: Batch, *, duration_s: int) -> pl.DataFrame:
    """Bitrates second by second in the first run."""
    first = batch.chunks.filter(pl.col("seed") == batch.chunks["seed"][0])
    return bitrates(first, stop_s=duration_s)


def run(plan: Plan) -> Data:
    """2, 4 and 8 players for 300 s; 4 players at quick scale.

    Returns
    -------
    Data
        `video.players`: arm, rule, players, seed, the numbers of `ackclock.video.quality` from 60 s on, and lost
        (fraction of the data packets dropped by the bottleneck). `video.example`: arm, rule, players, t_s, flow, bitrate_bps of one run.
    """
    cells = [
        Cell(
            scenario=scenario(arm, rule, players, LASTS_S),
            keys={"arm": arm.name, "rule": rule, "players": players},
            stream=f"video {players}",
            seeds=plan.count(quick=6, paper=40 if arm is CUBIC else 10),
            needs=NEEDS,
            keep={
                "players": partial(reduce, capacity_bps=arm.carried(players * SHARE_MBPS * 1e6), duration_s=LASTS_S),
                "example": partial(example, duration_s=LASTS_S),
            },
        )
        for players in ((FEW,) if plan.scale == "quick" else PLAYERS)
        for arm in ARMS
        for rule in RULES
    ]
    return collect("video", cells, plan)


TABLE = "video.players"


def pick(tables: Tables, arm: Arm, rule: str, players: int, column: str) -> Array:
    """A column, one value per seed."""
    return arms.pick(tables, TABLE, column, arm=arm.name, rule=rule, players=players)


def better(tables: Tables, bound: Bound, *, metric: str) -> Sequence[Evidence]:
    """Improvement by FESTIVE over the rate-based rule: over CUBIC, and for context over PCC."""
    return [
        Evidence.of(
            gain(*(pick(tables, arm, rule, n, metric) for rule in (RATE_BASED, FESTIVE))),
            f"{arm.name}, {n} players: {metric} lower by",
            bound,
            unit="%",
            weighs=arm is CUBIC,
        )
        for arm in ARMS
        for n in arms.values(tables, TABLE, "players")
    ]


def _paired(first: Array, second: Array) -> Estimate:
    """Difference between two arms, for the seeds present in both."""
    pairs = min(first.size, second.size)
    return paired_difference(first[:pairs], second[:pairs])


def over_pcc(tables: Tables) -> Sequence[Evidence]:
    """Players over PCC against the same players over CUBIC; and drops at the bottleneck, with and without idle periods."""
    dropped = [
        Evidence.of(
            mean_over_runs(100 * pick(tables, arm, FESTIVE, FEW, "lost")),
            f"{FEW} {FESTIVE} players over {arm.name}: dropped",
            at_least(0),
            unit="%",
            weighs=False,
            key=f"dropped_{key}",
        )
        for arm, key in ((CUBIC, "cubic"), (PCC, "pcc"))
    ]
    long = mean_over_runs(100 * arms.pick(tables, "traces.runs", "lost", arm=PCC.name))
    dropped.append(
        Evidence.of(
            long,
            f"{FEW} flows of PCC that are never silent: dropped",
            at_least(0),
            unit="%",
            weighs=False,
            key="dropped_long",
        )
    )
    return dropped + [
        Evidence.of(
            _paired(*(pick(tables, a, rule, n, metric) for a in (CUBIC, arm))),
            f"{rule}, {n} players: {metric}, CUBIC less {arm.name}",
            above(0),
            weighs=arm is PCC,
        )
        for arm in (PCC, PRINTED)
        for metric in ("unfairness", "instability")
        for rule in RULES
        for n in arms.values(tables, TABLE, "players")
    ]


_COLOUR = {FESTIVE: OKABE_ITO["blue"], RATE_BASED: OKABE_ITO["vermilion"]}


def figure(tables: Tables) -> Figure:
    """The three metrics by protocol and rule."""
    found = tables[TABLE]
    rows = [
        {"arm": arm, "rule": rule, "players": n, "metric": metric, "value": e.value, "low": e.low, "high": e.high}
        for (arm, rule, n), own in found.group_by("arm", "rule", "players", maintain_order=True)
        for metric in METRICS
        for e in (mean_over_runs(own[metric].to_numpy()),)
    ]
    table = pl.DataFrame(rows)

    def draw() -> Any:
        counts = arms.values(tables, TABLE, "players")
        figure, axes = new(8.6, 3.4, ncols=len(METRICS))
        for ax, metric in zip(axes, METRICS, strict=True):
            for r, rule in enumerate(RULES):
                for i, n in enumerate(counts):
                    own = table.filter(
                        (pl.col("metric") == metric) & (pl.col("rule") == rule) & (pl.col("players") == n)
                    )
                    x = [
                        [arm.name for arm in ARMS].index(name) + 0.28 * (r - 0.5) + 0.09 * (i - (len(counts) - 1) / 2)
                        for name in own["arm"]
                    ]
                    value, low, high = (own[c].to_numpy() for c in ("value", "low", "high"))
                    label = rule if n == counts[-1] else None
                    ax.errorbar(
                        x,
                        value,
                        yerr=[value - low, high - value],
                        fmt="os^D"[i],
                        ms=4.5,
                        lw=1.1,
                        capsize=2,
                        color=_COLOUR[rule],
                        label=label,
                    )
            ax.set_xticks(range(len(ARMS)), [arm.name.replace(" as ", "\nas ") for arm in ARMS])
            ax.set_ylim(bottom=0)
            ax.set_title(metric)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return figure

    counts = arms.values(tables, TABLE, "players")
    shown = f"{counts[0]} players" if len(counts) == 1 else f"From left to right {', '.join(map(str, counts))} players"
    return Figure(
        name="video",
        title="Players behind one link: the three metrics of FESTIVE, lower is better",
        caption=f"{shown}, {SHARE_MBPS:g} Mb/s for each, 40 ms, from {WARM_UP_S} s on. Means over seeds with 95 % intervals.",
        draw=draw,
        data={"video": table},
    )


def timeline(tables: Tables) -> Figure:
    """Bitrates of four players over time, one seed."""
    table = tables["video.example"].filter(pl.col("players") == FEW)
    colours = [OKABE_ITO[name] for name in ("blue", "orange", "green", "vermilion")]

    def draw() -> Any:
        shown = (CUBIC, PCC)
        figure, axes = new(8.4, 4.6, nrows=len(RULES), ncols=len(shown), sharex=True, sharey=True)
        for row, rule in zip(axes, RULES, strict=True):
            for ax, arm in zip(row, shown, strict=True):
                own = table.filter((pl.col("rule") == rule) & (pl.col("arm") == arm.name))
                for flow in range(FEW):
                    one = own.filter(pl.col("flow") == flow)
                    # players at the same bitrate side by side
                    shift = 0.02 * (flow - (FEW - 1) / 2)
                    mbps = one["bitrate_bps"].to_numpy() / 1e6 + shift
                    ax.step(one["t_s"], mbps, where="post", lw=1.0, color=colours[flow], label=f"player {flow + 1}")
                ax.set_title(f"{rule}, {arm.name}", fontsize=9)
                ax.set_yticks(LADDER_MBPS, [f"{mbps:g}" for mbps in LADDER_MBPS])
        for ax in axes[-1]:
            ax.set_xlabel("time (s)")
        for row in axes:
            row[0].set_ylabel("bitrate (Mb/s)")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=FEW)
        return figure

    return Figure(
        name="video-timeline",
        title="Four players over time",
        caption=f"Bitrate of the last chunk asked for, one seed; {FEW * SHARE_MBPS:g} Mb/s for four.",
        draw=draw,
        data={"video-timeline": table},
    )


def table(tables: Tables) -> Table:
    """Table with all values."""
    found = tables[TABLE]
    rows: list[tuple[TableCell | str, ...]] = []
    for (n, arm, rule), own in found.group_by("players", "arm", "rule", maintain_order=True):
        estimates = (mean_over_runs(own[metric].to_numpy()) for metric in METRICS)
        mean = {name: float(own[name].mean()) for name in ("bitrate_bps", "switches", "stalled", "lost")}  # type: ignore[arg-type]
        rows.append(
            (
                TableCell(text=f"{n} players, {arm}, {rule}", kind="head"),
                *(f"{e.value:.3f} ({e.low:.3f} to {e.high:.3f})" for e in estimates),
                f"{mean['bitrate_bps'] / 1e6:.2f}",
                f"{mean['switches']:.1f}",
                f"{100 * mean['stalled']:.1f}",
                f"{100 * mean['lost']:.1f}",
            )
        )
    return Table(
        caption=(
            f"From {WARM_UP_S} s on. Switches per player and minute; stalled: share of the time that pictures stood still; dropped: "
            "share of the data packets that the bottleneck dropped."
        ),
        header=("run", *METRICS, "bitrate (Mb/s)", "switches", "stalled (%)", "dropped (%)"),
        rows=tuple(rows),
        dense=True,
    )


def answer(tables: Tables) -> str:
    """The answer in words, from the numbers with four players."""

    def mean(arm: Arm, rule: str, column: str) -> float:
        return float(pick(tables, arm, rule, FEW, column).mean())

    gains = [gain(*(pick(tables, CUBIC, r, FEW, m) for r in (RATE_BASED, FESTIVE))).value for m in METRICS[1:]]
    drops = [100 * mean(arm, rule, "lost") for arm in (CUBIC, PCC) for rule in RULES]
    long = float(arms.pick(tables, "traces.runs", "lost", arm=PCC.name).mean())
    return (
        f"Four players over CUBIC are {gains[0]:.0f} % less unfair and {gains[1]:.0f} % less unstable with FESTIVE than with the rate-based "
        f"rule. Over PCC unfairness is {mean(PCC, FESTIVE, 'unfairness'):.2f} (FESTIVE) and {mean(PCC, RATE_BASED, 'unfairness'):.2f} (rate-based) "
        f"against {mean(CUBIC, FESTIVE, 'unfairness'):.2f} and {mean(CUBIC, RATE_BASED, 'unfairness'):.2f} over CUBIC. A player is silent between "
        "chunks; PCC learns only while it sends, and keeps its rate meanwhile: a rate found while others were silent is sent again "
        f"when they are not. The bottleneck drops {drops[2]:.0f} and {drops[3]:.0f} % of the players' packets over PCC, "
        f"{drops[0]:.1f} and {drops[1]:.1f} % over CUBIC; of four PCC flows that are never silent it drops {100 * long:.0f} %."
    )


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {
        "Four FESTIVE players over CUBIC": scenario(CUBIC, FESTIVE, FEW, 300),
        "Four rate-based players over PCC": scenario(PCC, RATE_BASED, FEW, 300),
    }


EXPERIMENT = Experiment(name="video", title="video players, FESTIVE and rate-based", run=run, weight=12)


CHAPTER = Chapter(
    experiments=(EXPERIMENT,),
    **declared(__name__),
    blocks=lambda t: (paragraph(answer(t)), figure(t), timeline(t), table(t)),
    scenarios=scenarios,
)
