"""A population of paths: the fraction on which the sentences about the rules hold, and the decisive path property
(P4; supplements T3, P2, P3, P5, P6, P10 and P11). Rate, RTT and loss are distributed as in the study's Web
population. No publication gives queue lengths: they are drawn between a quarter and eight bandwidth-delay products.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge import above, same
from ackclock.judge.estimates import Array, percent_more, ratios_apart, scaled
from ackclock.judge.intervals import Estimate
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Block, paragraph
from ackclock.scenario import Scenario
from ackclock.study import Bound, Chapter, Data, Evidence, Experiment, Plan, Tables
from ackclock.study.cells import Cell, collect
from ackclock.study.population import Drawn, OnPaths, draw, share, verdicts, ways
from ackclock_studies.prr import path
from ackclock_studies.prr.rules import CRB, PRR, RATE_HALVING, RFC6675, SSRB, prr

RULES = (RATE_HALVING, RFC6675, CRB, SSRB, PRR)
PACKET = 1500

_PAPER = "IMC 2011 paper and its mean of 1.9 Mbit/s, as the study's Web population"
PROPERTIES = (
    Drawn(
        name="rate",
        unit="Mbit/s",
        kind="lognormal",
        a=1.9,
        b=0.8,
        least=0.3,
        most=20,
        source=f"{_PAPER}; the spread is ours",
    ),
    Drawn(
        name="rtt",
        unit="ms",
        kind="lognormal",
        a=100,
        b=0.6,
        least=10,
        most=500,
        source="as the study's Web population; the spread is ours",
    ),
    Drawn(
        name="queue",
        unit="BDP",
        kind="log-uniform",
        a=0.25,
        b=8,
        source=(
            "ours; buffers of 128 and 256 KB, the commonest in Kreibich et al., Netalyzr, IMC 2010, are 5 and 11 products of the median path"
        ),
    ),
    Drawn(
        name="loss",
        unit="",
        kind="exponential",
        a=0.025,
        least=0.005,
        most=0.15,
        source="IMC 2011 paper: 2.8 % retransmitted; the shape is ours",
    ),
    Drawn(
        name="size", unit="KB", kind="log-uniform", a=75, b=1000, source="ours: responses long enough for a recovery"
    ),
)
SEED, PATHS = 84, 100
"""Number of paths, drawn once and the same at every scale. A larger scale adds fetches to each path, because a
verdict on a path requires its own interval.
"""
FETCHES, PAPER_FETCHES = 40, 400

_ANY = Bound()

AGAIN = ("total_s", "data_retransmissions", "data_rtos", "lost_retransmits")


def drawn(count: int) -> list[dict[str, float]]:
    """Paths with their number, bandwidth-delay product and queue in packets."""
    found = []
    for i, one in enumerate(draw(PROPERTIES, count, SEED)):
        bdp = one["rate"] * 1e6 * one["rtt"] * 1e-3 / 8 / PACKET
        found.append({**one, "path": i, "bdp": bdp, "packets": float(max(round(one["queue"] * bdp), 4))})
    return found


def scenario(rule: str, one: Mapping[str, float]) -> Scenario:
    """Return one response over one path."""
    delay = f"{round(1e3 * one['rtt'] / 2)} us"
    return Scenario.from_dict(
        {
            "name": f"{rule}, path {one['path']:.0f}",
            "duration": "1 h",
            "network": {
                "topology": "chain",
                "bottleneck": {
                    "rate": f"{round(one['rate'] * 1e6)} bit/s",
                    "delay": delay,
                    "queue": {"kind": "drop-tail", "limit": f"{one['packets']:.0f} packets"},
                    "loss": {"kind": "bernoulli", "p": round(one["loss"], 6), "applies_to": "data"},
                },
                "reverse": {"bottleneck": {"rate": f"{round(one['rate'] * 1e6)} bit/s", "delay": delay}},
            },
            "flows": [
                {
                    **path.host(recovery=rule),
                    "workload": {"kind": "fetch", "bytes": f"{round(1e3 * one['size'])} bytes"},
                }
            ],
        }
    )


def run(plan: Plan) -> Data:
    """Every rule on every path, paired fetch by fetch.

    Returns
    -------
    Data
        `paths.fetches`: rule, path, its properties, seed and what a fetch met; `paths.ends`: rule, path, its properties, recoveries and those of
        them that ended below ssthresh.
    """

    def ends(batch: Batch) -> pl.DataFrame:
        short = pl.col("cwnd_before_exit") < pl.col("ssthresh")
        own = batch.recoveries.group_by("seed").agg(short.sum().alias("short"), pl.len().alias("recoveries"))
        seeds = batch.fetches.select("seed").unique()
        return (
            seeds.join(own, on="seed", how="left").with_columns(pl.col("short", "recoveries").fill_null(0)).sort("seed")
        )

    def fetches(batch: Batch) -> pl.DataFrame:
        return batch.fetches.select("seed", *AGAIN)

    cells = [
        Cell(
            scenario=scenario(rule, one),
            keys={"rule": rule, **one},
            stream=f"paths {one['path']:.0f}",
            seeds=plan.count(quick=FETCHES, paper=PAPER_FETCHES),
            needs={"fetches": AGAIN, "recoveries": ("cwnd_before_exit", "ssthresh")},
            keep={"fetches": fetches, "ends": ends},
        )
        for one in drawn(PATHS)
        for rule in RULES
    ]
    return collect("paths", cells, plan)


def pairs(tables: Tables, column: str, first: str, second: str) -> pl.DataFrame:
    """Values under two rules for the same path and seed: columns path, x, y. For times, only fetches completed under both rules."""
    t = tables["paths.fetches"].select("rule", "path", "seed", column)
    x = t.filter(pl.col("rule") == first).rename({column: "x"}).drop("rule")
    y = t.filter(pl.col("rule") == second).rename({column: "y"}).drop("rule")
    both = x.join(y, on=["path", "seed"], maintain_order="left")
    return both.filter(pl.col("x").is_finite() & pl.col("y").is_finite()) if column == "total_s" else both


def over_all(tables: Tables, column: str, first: str, second: str) -> tuple[Array, Array]:
    """Mean for each path under two rules; the paths are independent."""
    per = pairs(tables, column, first, second).group_by("path").agg(pl.col("x", "y").mean()).sort("path")
    return per["x"].to_numpy().astype(np.float64), per["y"].to_numpy().astype(np.float64)


def each(tables: Tables, column: str, first: str, second: str) -> dict[float, Estimate]:
    """Percentage by which the first rule exceeds the second, by path, paired over the path's fetches."""
    found = {}
    for (path_,), own in (
        pairs(tables, column, first, second).sort("path", "seed").group_by("path", maintain_order=True)
    ):
        x, y = (own[name].to_numpy().astype(np.float64) for name in ("x", "y"))
        found[float(path_)] = percent_more(x, y)
    return found


def judged(tables: Tables, of: Mapping[float, Estimate], bound: Bound) -> pl.DataFrame:
    """Return each path's properties, its percentage, and the sign of the effect (1, -1, 0; NaN if the interval is inconclusive)."""
    own = properties(tables)
    own = own.filter(pl.Series([float(path_) in of for path_ in own["path"]], dtype=pl.Boolean))
    estimates = [of[float(path_)] for path_ in own["path"]]
    return own.with_columns(percent=pl.Series([e.value for e in estimates]), way=pl.Series(ways(estimates, bound)))


def properties(tables: Tables) -> pl.DataFrame:
    """Each path's properties."""
    names = ("path", *(p.name for p in PROPERTIES), "bdp", "packets")
    return tables["paths.fetches"].select(names).unique("path").sort("path")


SIMILAR = 3.0
"""Difference in completion time, percent, within which two rules count as similar, as in P6."""
SHORT_POINTS = 1.0
"""Difference in recoveries ending below ssthresh, percentage points, below which it counts as none."""

SENTENCES: Mapping[str, tuple[str, str, str, float, str]] = {
    "retransmissions": ("data_retransmissions", RFC6675, "", 0.5, "RFC 6675 retransmits more than PRR"),
    "lost": ("lost_retransmits", RFC6675, "", 1.0, "RFC 6675 loses more retransmissions than PRR"),
    "timeouts_6675": ("data_rtos", RFC6675, "", 1.0, "RFC 6675 has more timeouts than PRR"),
    "timeouts": ("data_rtos", RATE_HALVING, "", 1.0, "rate halving has more timeouts than PRR"),
    "longer": ("total_s", RATE_HALVING, "", 0.3, "rate halving takes longer than PRR"),
    "crb": ("total_s", CRB, RFC6675, 0.3, "PRR-CRB takes longer than RFC 6675"),
}
"""Key -> column, rule with the larger value, other rule (empty: PRR), minimum relevant percentage, description."""


def table(tables: Tables, key: str) -> pl.DataFrame:
    """Paths for one sentence."""
    column, first, second, margin, _ = SENTENCES[key]
    return judged(tables, each(tables, column, first, second or prr(tables)), above(0, margin=margin))


def _all(tables: Tables, key: str) -> Estimate:
    column, first, second, _, _ = SENTENCES[key]
    return percent_more(*over_all(tables, column, first, second or prr(tables)))


def similar(tables: Tables) -> pl.DataFrame:
    """Paths with direction 1 if RFC 6675 and PRR take similarly long, and -1 if they do not."""
    return judged(tables, each(tables, "total_s", RFC6675, prr(tables)), same(SIMILAR))


def short_ends(tables: Tables) -> pl.DataFrame:
    """Percentage points by which more recoveries end below ssthresh with rate halving than with PRR, and the direction, for paths that have recoveries."""
    of = {}
    rows = tables["paths.ends"].sort("path", "seed")
    for (path_,), own in rows.group_by("path", maintain_order=True):
        arms = [own.filter(rule=rule) for rule in (RATE_HALVING, prr(tables))]
        found = ratios_apart(*((a["short"].to_numpy().astype(np.float64), a["recoveries"].to_numpy().astype(np.float64)) for a in arms))  # fmt: skip
        if found.n:
            of[float(path_)] = scaled(found, 100)
    return judged(tables, of, above(0, margin=SHORT_POINTS))


SIMILAR_TEXT = "RFC 6675 takes as long as PRR within 3 %"
ENDS_TEXT = "more recoveries end below ssthresh with rate halving than with PRR"


def sentence(tables: Tables, key: str) -> OnPaths:
    """Evaluate a sentence over the population."""
    if key == "similar":
        found, text = similar(tables), SIMILAR_TEXT
    elif key == "ends":
        found, text = short_ends(tables), ENDS_TEXT
    else:
        found, text = table(tables, key), SENTENCES[key][4]
    return OnPaths(
        key=key,
        text=text,
        way=found["way"].to_numpy().astype(np.float64),
        properties={words: found[name].to_numpy().astype(np.float64) for name, words in NAMES.items()},
    )


EVERY = ("ends", "timeouts", "retransmissions", "lost", "longer", "similar", "crb", "timeouts_6675")


def on_paths(tables: Tables, key: str, bound: Bound = _ANY, *, weighs: bool = False) -> list[Evidence]:
    """Evidence for the sentence over the population: the effect size over all paths, the fractions of paths on
    which the sentence and its opposite hold, and the property that explains it.
    """
    found = sentence(tables, key)
    if key not in SENTENCES:
        return found.evidence()
    differ = np.where(np.abs(found.way) == 1, found.way > 0, np.nan)
    return [
        Evidence.of(
            _all(tables, key), f"{found.text}: over all paths", bound, unit="%", weighs=weighs, key=f"{key}_all"
        ),
        *found.evidence(),
        Evidence.of(
            share(differ),
            f"{found.text}: so, of the paths on which they differ",
            _ANY,
            unit="%",
            weighs=False,
            key=f"{key}_of_those",
        ),
    ]


NAMES = {
    "rate": "rate",
    "rtt": "round-trip time",
    "queue": "queue / BDP",
    "loss": "loss",
    "size": "size",
    "bdp": "BDP",
    "packets": "queue (packets)",
}


def figure(tables: Tables) -> Figure:
    """Fraction of paths on which each statement holds, and the deciding properties."""
    rows = []
    for key in SENTENCES:
        way = table(tables, key)["way"].to_numpy()
        by = {r["property"]: r["explained"] for r in sentence(tables, key).explained.iter_rows(named=True)}
        rows.append(
            {
                "sentence": SENTENCES[key][4],
                "holds": 100 * float((way == 1).mean()),
                "no_difference": 100 * float((way == 0).mean()),
                "unknown": 100 * float(np.isnan(way).mean()),
                "reverse": 100 * float((way == -1).mean()),
                **{name: 100 * by[text] for name, text in NAMES.items()},
            }
        )
    data = pl.DataFrame(rows)
    parts = (
        ("holds", "holds", OKABE_ITO["blue"], ""),
        ("no_difference", "no difference that counts", "#cccccc", ""),
        ("unknown", "not known", "#eeeeee", "..."),
        ("reverse", "the other way round", OKABE_ITO["vermilion"], "///"),
    )

    def draw_it() -> Any:
        made, (bars, heat) = new(8.4, 3.4, ncols=2)
        y = np.arange(data.height)
        left = np.zeros(data.height)
        for column, text, colour, hatch in parts:
            width = data[column].to_numpy()
            bars.barh(y, width, 0.7, left=left, color=colour, hatch=hatch, edgecolor="white", lw=0.5, label=text)
            left += width
        bars.set_yticks(y, [text.replace(" than ", "\nthan ") for text in data["sentence"]], fontsize=8)
        bars.invert_yaxis()
        bars.set(xlabel="share of paths (%)", xlim=(0, 100))
        values = data.select(list(NAMES)).to_numpy()
        heat.imshow(values, cmap="Blues", vmin=0, vmax=max(50.0, float(values.max())), aspect="auto")
        for (i, j), value in np.ndenumerate(values):
            heat.text(
                j, i, f"{value:.0f}", ha="center", va="center", fontsize=8, color="white" if value > 35 else "black"
            )
        heat.set_xticks(range(len(NAMES)), list(NAMES.values()), rotation=35, ha="right", fontsize=8)
        heat.set_yticks([])
        heat.set_title("variance explained by (%)", fontsize=9)
        for ax in (bars, heat):
            ax.grid(visible=False)
        made.legend(*bars.get_legend_handles_labels(), loc="outside lower left", ncols=3, fontsize=8)
        return made

    first = rows[0]
    return Figure(
        name="paths",
        title=(
            f"{first['sentence']} on {first['holds']:.0f} % of {properties(tables).height} paths, less on {first['reverse']:.0f} %, "
            f"and does not differ on {first['no_difference']:.0f} %"
        ),
        caption=(
            "Left: share of paths on which a sentence holds, as the 95 % interval over the responses of a path says; differences below 0.3 % (time), 0.5 % "
            "(retransmissions) and 1 % (events) count as none. Right: how much of the variance of holding, not differing or being reversed one property of a path explains alone "
            "(Kelley's epsilon squared over five groups of paths)."
        ),
        draw=draw_it,
        data={"paths": data},
    )


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    drawn_as = "; ".join(map(str, PROPERTIES))
    return (
        paragraph(
            f"One path can be on either side of an edge: a queue of nine packets, or of ten. Here paths are drawn: {drawn_as}. Every rule meets "
            "the same losses on each."
        ),
        figure(tables),
        verdicts(sentence(tables, key) for key in EVERY),
    )


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {"a path of the population, PRR": scenario(PRR, drawn(1)[0])}


CHAPTER = Chapter(
    title="A population of paths",
    experiments=(Experiment(name="paths", title="every rule on paths drawn from distributions", run=run, weight=12),),
    blocks=blocks,
    scenarios=scenarios,
)
