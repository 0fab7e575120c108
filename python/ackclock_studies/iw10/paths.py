"""A population of paths and loads: the fraction on which the slides' sentences hold, and the property that decides (supplements I1, I6, I7, I11, I12 and I13).

The testbed has two links. Here the rate, round-trip time, queue, load and number of simultaneous opens are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge import above, below
from ackclock.judge.estimates import Array, mean_over_runs, quotient, ratio
from ackclock.judge.intervals import Estimate
from ackclock.plot import GREY, OKABE_ITO, Figure, new
from ackclock.report import Block, paragraph
from ackclock.scenario import Scenario
from ackclock.study import Bound, Chapter, Data, Evidence, Experiment, Plan, Tables
from ackclock.study.cells import Cell, collect
from ackclock.study.population import Drawn, OnPaths, draw, explains, share, told, verdicts, ways
from ackclock_studies.iw10 import testbed
from ackclock_studies.iw10.testbed import IW3, IW10, SEGMENTS

PROPERTIES = (
    Drawn(
        name="rate",
        unit="Mb/s",
        kind="log-uniform",
        a=0.064,
        b=20,
        source="from the one link of the slides to the other",
    ),
    Drawn(
        name="rtt",
        unit="ms",
        kind="lognormal",
        a=120,
        b=0.7,
        least=20,
        most=600,
        source="ours, with the slides' 300 ms in its upper tenth",
    ),
    Drawn(
        name="queue",
        unit="s",
        kind="log-uniform",
        a=0.1,
        b=7.5,
        source=("from RFC 6928's 130 ms of most routers, roughly, to the 7.5 s of the slides' slow link"),
    ),
    Drawn(name="load", unit="", kind="uniform", a=0.1, b=0.975, source="from light load to the slides' highest"),
    Drawn(
        name="opens", unit="", kind="uniform", a=0.0, b=1.0, source="single or five, as the slides: five above one half"
    ),
)
SEED = 79
PATHS = 80
"""Number of paths, drawn once and the same at every scale. A larger scale adds runs to each path, because a verdict
on a path requires its own interval.
"""
RUNS, PAPER_RUNS = 4, 20
TRANSACTIONS = 600
"""Approximate number of arrivals in a run; the first sixth is excluded."""
PACKET_BITS = 1500 * 8
LEAST_PACKETS = 10
HURT = 0.05
"""Relative increase in completion time above which a path counts as hurt: 5 %, as in the cells."""


def drawn(count: int) -> list[dict[str, float]]:
    """Paths with their number, and with their queue in packets and in bandwidth-delay products."""
    found = []
    for i, one in enumerate(draw(PROPERTIES, count, SEED)):
        packets = max(round(one["queue"] * one["rate"] * 1e6 / PACKET_BITS), LEAST_PACKETS)
        bdp = one["rate"] * 1e6 * one["rtt"] * 1e-3 / PACKET_BITS
        opens = 5.0 if one["opens"] >= 0.5 else 1.0
        found.append({**one, "path": i, "opens": opens, "packets": float(packets), "bdp": bdp})
    return found


def duration_s(one: Mapping[str, float]) -> float:
    """Time in which about `TRANSACTIONS` arrive."""
    return TRANSACTIONS * SEGMENTS * PACKET_BITS / (one["rate"] * 1e6 * one["load"])


def scenario(arm: str, one: Mapping[str, float]) -> Scenario:
    """Transactions over one path."""
    host = testbed.stack(initial_window={IW3: 3, IW10: 10}[arm])
    arrivals = {"kind": "poisson", "load": round(one["load"], 4), "load_counts": "data"}
    delay = f"{round(1e3 * one['rtt'] / 2)} us"
    return Scenario.from_dict(
        {
            "name": f"{arm}, path {one['path']:.0f}",
            "duration": f"{duration_s(one):.3f} s",
            "network": {
                "topology": "chain",
                "bottleneck": {
                    "rate": f"{round(one['rate'] * 1e6)} bit/s",
                    "delay": delay,
                    "queue": {"kind": "drop-tail", "limit": f"{one['packets']:.0f} packets"},
                },
                "reverse": {"bottleneck": {"delay": delay}},
            },
            "flows": [
                {**host, "count": testbed.PAIRS, "workload": testbed.workload(arrivals, opens=int(one["opens"]))}
            ],
        }
    )


def run(plan: Plan) -> Data:
    """Every path with IW3 and with IW10, under the same arrivals.

    Returns
    -------
    Data
        `paths.times`: arm, path, its properties, seed, mean_s, p50_s and p95_s of the transactions that count; `paths.links`: arm, path, its
        properties, and the columns of the bottleneck.
    """

    def keep(one: Mapping[str, float]) -> Any:
        def times(batch: Batch) -> pl.DataFrame:
            total = pl.col("total_s")
            counted = testbed.transactions_of(batch).filter(pl.col("start_s") >= duration_s(one) / 6)
            return (
                counted.group_by("seed")
                .agg(mean_s=total.mean(), p50_s=total.median(), p95_s=total.quantile(0.95))
                .sort("seed")
            )

        return times

    cells = [
        Cell(
            scenario=scenario(arm, one),
            keys={"arm": arm, **one},
            stream=f"paths {one['path']:.0f}",
            seeds=plan.count(quick=RUNS, paper=PAPER_RUNS),
            needs={"transactions": testbed.TRANSACTION_COLUMNS, "links": testbed.LINK_COLUMNS},
            keep={"times": keep(one), "links": testbed.bottleneck_of},
        )
        for one in drawn(PATHS)
        for arm in (IW3, IW10)
    ]
    return collect("paths", cells, plan)


def ratios(tables: Tables) -> pl.DataFrame:
    """Table with one row per path: its properties, the IW10-to-IW3 ratio of mean times, four round trips as a
    fraction of IW3's median, and IW10's excess in loss (points), queue (packets) and tail (p95 over median, ratio).
    """
    t = tables["paths.times"]
    names = (*(p.name for p in PROPERTIES), "packets", "bdp")
    per = t.group_by("path", "arm").agg(pl.col("mean_s", "p50_s", "p95_s").mean(), pl.col(names).first())
    links = tables["paths.links"].group_by("path", "arm").agg(pl.col("plr", "mean_queue").mean())
    per = per.join(links, on=("path", "arm"))
    three, ten = (per.filter(arm=arm).sort("path") for arm in (IW3, IW10))
    measured = ("mean_s", "p50_s", "p95_s", "plr", "mean_queue")
    both = three.drop("arm").join(ten.select("path", pl.col(measured).name.prefix("ten_")), on="path").sort("path")
    tails = (pl.col("ten_p95_s") / pl.col("ten_p50_s")) / (pl.col("p95_s") / pl.col("p50_s"))
    return both.with_columns(
        ratio=pl.col("ten_mean_s") / pl.col("mean_s"),
        rounds=4 * pl.col("rtt") / 1e3 / pl.col("p50_s"),
        lost=100 * (pl.col("ten_plr") - pl.col("plr")),
        longer=pl.col("ten_mean_queue") / pl.col("mean_queue"),
        tail=tails,
    ).filter(pl.col("ratio").is_finite())


def _column(frame: pl.DataFrame, name: str) -> Array:
    return frame[name].to_numpy().astype(np.float64)


def _run_by_run(tables: Tables, frame: pl.DataFrame) -> list[tuple[pl.DataFrame, pl.DataFrame]]:
    """Runs of each path with IW3 and with IW10, in the order of seeds; row i has the same arrivals in both."""
    joined = tables["paths.times"].join(
        tables["paths.links"].select("path", "arm", "seed", "plr", "mean_queue"), on=("path", "arm", "seed")
    )
    parts = (
        joined.filter(pl.col("path").is_in(frame["path"].to_list()))
        .sort("seed")
        .partition_by("path", "arm", as_dict=True)
    )
    return [(parts[one, IW3], parts[one, IW10]) for one in frame["path"]]


POINTS = 0.1
"""Loss difference, in percentage points, below which there is considered to be none."""
SENTENCES = ("faster", "more_lost", "longer_queue", "longer_tail", "rounds")


def sentence(tables: Tables, key: str) -> OnPaths:
    """Evaluate a sentence over the population."""
    frame = ratios(tables)
    if key == "rounds":
        frame = frame.filter((pl.col("load") <= 0.5) & (pl.col("rate") >= 2))
    runs = _run_by_run(tables, frame)
    kinds: dict[str, tuple[str, Callable[[pl.DataFrame, pl.DataFrame], Estimate], Bound]] = {
        "faster": (
            "IW10 is faster than IW3, by 5 % or more",
            lambda a, b: ratio(_column(b, "mean_s"), _column(a, "mean_s")),
            below(1, margin=HURT),
        ),
        "more_lost": (
            "IW10 loses more than IW3, by 0.1 points or more",
            lambda a, b: mean_over_runs(100 * (_column(b, "plr") - _column(a, "plr")), one=POINTS),
            above(0, margin=POINTS),
        ),
        "longer_queue": (
            "the mean queue is longer with IW10, by 5 % or more",
            lambda a, b: ratio(_column(b, "mean_queue"), _column(a, "mean_queue")),
            above(1, margin=HURT),
        ),
        "longer_tail": (
            "95 % over median is more with IW10, by 5 % or more",
            lambda a, b: quotient(*(ratio(_column(x, "p95_s"), _column(x, "p50_s"), runs="path") for x in (b, a))),
            above(1, margin=HURT),
        ),
        "rounds": (
            "up to half load, from 2 Mb/s up, four round trips are more than half of the median with IW3",
            lambda a, _: mean_over_runs(4 * _column(a, "rtt") / 1e3 / _column(a, "p50_s")),
            above(0.5),
        ),
    }
    text, each, bound = kinds[key]
    way = ways([each(a, b) for a, b in runs], bound)
    return OnPaths(
        key=key, text=text, way=way, properties={words: _column(frame, name) for name, words in NAMES.items()}
    )


def on_paths(tables: Tables, key: str) -> list[Evidence]:
    """Evidence for the sentence over the population; empty if there is none, as on the kernel."""
    return sentence(tables, key).evidence() if "paths.times" in tables else []


def keeps(tables: Tables) -> list[Evidence]:
    """Fractions of paths on which IW10 has an advantage, by load."""
    if "paths.times" not in tables:
        return []
    frame = ratios(tables)
    return [
        Evidence.of(
            share((_column(own, "ratio") < 1 - HURT).astype(np.float64)),
            f"population: paths on which IW10 is 5 % faster or more, at loads {text}",
            Bound(),
            unit="%",
            weighs=False,
            key=key,
        )
        for own, text, key in (
            (frame.filter(pl.col("load") <= 0.72), "up to 72 %", "paths_medium"),
            (frame.filter(pl.col("load") > 0.9), "above 90 %", "paths_heavy"),
        )
    ]


def dominated(tables: Tables) -> list[Evidence]:
    """Fraction of paths on which round trips are more than half of the median time with IW3, and the rate of those paths."""
    if "paths.times" not in tables:
        return []
    frame = ratios(tables).filter(pl.col("load") <= 0.5)
    fast = frame.filter(pl.col("rate") >= 2)
    return [
        Evidence.of(
            share((_column(own, "rounds") > 0.5).astype(np.float64)),
            f"population, loads up to 50 %: {text} on which four round trips are more than half of the median with IW3",
            Bound(),
            unit="%",
            weighs=False,
            key=key,
        )
        for own, text, key in ((frame, "paths", "paths_rounds"), (fast, "paths of 2 Mb/s or more", "paths_rounds_fast"))
    ]


NAMES = {
    "rate": "rate",
    "rtt": "round-trip time",
    "queue": "queue (s)",
    "load": "load",
    "opens": "opens",
    "packets": "queue (packets)",
    "bdp": "BDP",
}


def explained(tables: Tables) -> pl.DataFrame:
    """Fraction of the variance of the logarithmic time ratio that each property explains."""
    frame = ratios(tables)
    return explains(np.log(_column(frame, "ratio")), {text: _column(frame, name) for name, text in NAMES.items()})


def figure(tables: Tables) -> Figure:
    """Ratio for each path against its bandwidth-delay product and its load."""
    frame = ratios(tables)

    def draw_it() -> Any:
        made, axes = new(7.8, 3.4, ncols=2, sharey=True)
        for ax, name, label in zip(
            axes, ("bdp", "load"), ("bandwidth-delay product (packets)", "offered load"), strict=True
        ):
            for opens, colour, marker in ((1.0, OKABE_ITO["blue"], "o"), (5.0, OKABE_ITO["vermilion"], "s")):
                own = frame.filter(pl.col("opens") == opens)
                text = "single opens" if opens == 1 else "five opens"
                ax.plot(own[name], own["ratio"], marker, color=colour, ms=4, alpha=0.75, ls="none", label=text)
            ax.axhline(1.0, color=GREY, lw=0.9)
            ax.set(xlabel=label, yscale="log")
        axes[0].set_xscale("log")
        decades = [10.0**k for k in range(-1, 5) if frame["bdp"].min() / 3 < 10.0**k < 3 * frame["bdp"].max()]  # type: ignore[operator]
        axes[0].set_xticks(decades, [f"{x:g}" for x in decades])
        axes[0].xaxis.set_minor_formatter("")
        axes[0].set_ylabel("mean completion time, IW10 / IW3")
        ticks = [0.4, 0.5, 0.6, 0.8, 1.0, 1.2, 1.5]
        axes[0].set_yticks(ticks, [f"{x:g}" for x in ticks])
        axes[0].yaxis.set_minor_formatter("")
        made.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return made

    ratio = _column(frame, "ratio")
    return Figure(
        name="paths",
        title=(
            f"On {100 * (ratio < 1 - HURT).mean():.0f} % of {ratio.size} paths IW10 is faster by 5 % or more, on "
            f"{100 * (ratio > 1 + HURT).mean():.0f} % slower by as much"
        ),
        caption="Ratio of mean completion times under the same arrivals, one point a path; below 1 IW10 is faster.",
        draw=draw_it,
        data={"paths": frame},
    )


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    drawn_as = "; ".join(map(str, PROPERTIES))
    return (
        paragraph(f"The testbed has two links. Here paths and loads are drawn: {drawn_as}."),
        figure(tables),
        verdicts(sentence(tables, key) for key in SENTENCES),
        paragraph(
            f"The three properties that explain most of the logarithm of the ratio of times: {told(explained(tables))}."
        ),
    )


CHAPTER = Chapter(
    title="A population of paths",
    experiments=(
        Experiment(name="paths", title="either window on paths and loads drawn from distributions", run=run, weight=8),
    ),
    blocks=blocks,
    scenarios=lambda: {"a path of the population, IW10": scenario(IW10, drawn(1)[0])},
)
