"""Start and end of recoveries, in the fetches and in client populations (P1, P2, P15, P16, V1, V2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import Array, bootstrap, ratio, ratios_apart
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Block, Table, TableCell, paragraph
from ackclock.scenario import Scenario
from ackclock.stats import Estimate, quantile_interval
from ackclock.study import (
    Bound,
    Chapter,
    Evidence,
    Experiment,
    Tables,
    above,
    below,
    number,
)
from ackclock.study.table import declared
from ackclock_studies.prr import fetches, paths, why
from ackclock_studies.prr import population as pop
from ackclock_studies.prr.path import LOW, MIDDLE, where
from ackclock_studies.prr.rules import PRR, RATE_HALVING, RFC6675, RULES, SERIES, label, name_of, prr

CELL = where(MIDDLE, LOW)
VIDEO = "video population"
WEB = "Web population"
PLACES = (CELL, WEB, VIDEO)


def rows_of(tables: Tables, arm: str, place: str) -> pl.DataFrame:
    """An arm's recoveries in a testbed cell or a population."""
    if place == CELL:
        return fetches.cell(tables["latency.recoveries"], arm, MIDDLE, LOW)
    setting = place.removesuffix(" population")
    return tables["population.recoveries"].filter((pl.col("setting") == setting) & (pl.col("arm") == arm))


def _counts(recoveries: pl.DataFrame, below: pl.Expr) -> pl.DataFrame:
    return recoveries.group_by("seed").agg(below.sum().alias("below"), pl.len().alias("all")).sort("seed")


def share(recoveries: pl.DataFrame, below: pl.Expr) -> Estimate:
    """Fraction of recoveries for which `below` holds. Seeds are independent; recoveries within a seed are not."""
    per_seed = _counts(recoveries, below)
    return ratio(*(per_seed[c].to_numpy().astype(np.float64) for c in ("below", "all")))


def less(tables: Tables, place: str, first: str, second: str, below: pl.Expr) -> Estimate:
    """Difference between the fractions in two arms, seed by seed, with the same losses and arrivals."""
    both = _counts(rows_of(tables, first, place), below).join(
        _counts(rows_of(tables, second, place), below), on="seed", suffix="_2", how="full", coalesce=True
    )
    column = {c: both.sort("seed")[c].fill_null(0).to_numpy().astype(np.float64) for c in both.columns if c != "seed"}
    return ratios_apart((column["below"], column["all"]), (column["below_2"], column["all_2"]))


STARTS_BELOW = pl.col("pipe_enter") < pl.col("ssthresh")
ENDS_BELOW = pl.col("cwnd_before_exit") < pl.col("ssthresh")


def p1(tables: Tables) -> Sequence[Evidence]:
    """Fraction of recoveries that start below ssthresh: difference between β 0.7 and β 0.5."""
    return [_start_apart(tables, place) for place in (CELL, WEB)]


def v1(tables: Tables) -> Sequence[Evidence]:
    """Starts of recoveries in the video population."""
    return [_start_apart(tables, VIDEO)]


def _start_apart(tables: Tables, place: str) -> Evidence:
    return Evidence.of(
        less(tables, place, PRR, fetches.HALF_ARM, STARTS_BELOW),
        f"{place}: start with pipe < ssthresh, share at β 0.7 less share at β 0.5",
        above(0),
        unit="points",
        factor=100,
        key={CELL: "apart_cell", VIDEO: "apart_video"}.get(place, "apart_web"),
    )


def better_sack(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Fraction of recoveries that start below ssthresh, minus that with another loss detection method."""
    return [
        Evidence.of(
            less(tables, place, PRR, arm, STARTS_BELOW),
            f"{place}: start with pipe < ssthresh, share with FACK less share with {text}",
            bound,
            unit="points",
            factor=100,
            weighs=arm == pop.DUPACKS and place == WEB,
            key=f"{'web' if place == WEB else 'video'}_{key}",
        )
        for place in (WEB, VIDEO)
        for arm, text, key in (
            (pop.DUPACKS, "SACK and three duplicate ACKs", "dupacks"),
            (pop.NO_SACK, "no SACK at all", "no_sack"),
        )
    ]


def start_quantiles(tables: Tables) -> Sequence[Evidence]:
    """Quantiles of pipe - ssthresh at the start; no source gives numbers for comparison."""
    found = []
    for place, key in ((WEB, "web"), (VIDEO, "video")):
        rows = rows_of(tables, PRR, place)
        slack = (rows["pipe_enter"].cast(pl.Int64) - rows["ssthresh"].cast(pl.Int64)).to_numpy().astype(np.float64)
        for q in (0.01, 0.5, 0.99):
            found.append(
                Evidence.of(
                    quantile_interval(slack, q),
                    f"{place}: {100 * q:g} % quantile of pipe - ssthresh at the start",
                    Bound(),
                    unit="segments",
                    weighs=False,
                    key=f"{key}_q{100 * q:g}",
                )
            )
    return found


def _left(tables: Tables, arm: str, counted: pl.Expr, what: str, key: str) -> Evidence:
    """Fraction of recoveries selected by `counted`: percentage of its value in the Web population that remains with responses ten times as long."""
    own = _counts(rows_of(tables, arm, WEB), counted)
    with_it = tuple(own[c].to_numpy().astype(np.float64) for c in ("below", "all"))
    without = why.longer(tables, arm, counted)

    def of(a: Array, b: Array, c: Array, d: Array) -> Array:
        return np.asarray(100 * (c.mean(axis=1) / d.mean(axis=1)) / (a.mean(axis=1) / b.mean(axis=1)))

    n = min(with_it[0].size, without[0].size)
    return Evidence.of(
        bootstrap(of, *(x[:n] for x in (*with_it, *without))),
        f"{WEB}: of the share that {what}, what is left with responses ten times as long",
        below(50),
        unit="%",
        key=key,
    )


def drains(tables: Tables) -> Sequence[Evidence]:
    """Recoveries that start below ssthresh."""
    return [_left(tables, PRR, STARTS_BELOW, "starts below ssthresh", "left_longer")]


def out_of_data(tables: Tables) -> Sequence[Evidence]:
    """Recoveries ended below ssthresh by PRR."""
    return [_left(tables, PRR, ENDS_BELOW, "PRR ends below ssthresh", "left_longer")]


def p1_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Fraction of PRR's recoveries that start with pipe below ssthresh."""
    return [
        Evidence.of(
            share(rows_of(tables, PRR, place), STARTS_BELOW),
            f"{place}: start with pipe < ssthresh",
            bound,
            unit="%",
            factor=100,
            weighs=place == "Web population",
            key=key,
        )
        for place, key in zip(PLACES, ("cell", "web", "video"), strict=True)
    ]


def exit_slack(rows: pl.DataFrame) -> Array:
    """Excess of cwnd over ssthresh just before the end of recovery, segments."""
    slack = rows["cwnd_before_exit"].cast(pl.Int64) - rows["ssthresh"].cast(pl.Int64)
    return slack.to_numpy().astype(np.float64)


def p2(tables: Tables) -> Sequence[Evidence]:
    """Recoveries that end below ssthresh: fraction with rate halving minus fraction with PRR."""
    return [*_ends_apart(tables, (CELL, WEB)), *paths.on_paths(tables, "ends")]


def v2(tables: Tables) -> Sequence[Evidence]:
    """Ends of recoveries in the video population."""
    return [e for e in _ends_apart(tables, (VIDEO,)) if e.weighs or e.key.startswith("video")]


def _ends_apart(tables: Tables, places: Sequence[str]) -> list[Evidence]:
    found = []
    for place in places:
        text = f"{place}: end below ssthresh, share with rate halving less share with PRR"
        found.append(
            Evidence.of(
                less(tables, place, RATE_HALVING, prr(tables), ENDS_BELOW), text, above(0), unit="points", factor=100
            )
        )
    for place, key in zip(PLACES, ("cell", "web", "video"), strict=True):
        for arm, name in ((RATE_HALVING, "halving"), (prr(tables), "prr")):
            low = quantile_interval(exit_slack(rows_of(tables, arm, place)), 0.05)
            text = f"{place}: 5 % quantile of cwnd - ssthresh, {label(arm)}"
            found.append(Evidence.of(low, text, below(0), unit="segments", weighs=False, key=f"{key}_{name}"))
    return found


def p2_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Median of cwnd - ssthresh at the end of PRR's recoveries; expected to be zero."""
    found = []
    for place, key in zip(PLACES, ("cell_median", "web_median", "video_median"), strict=True):
        slack = exit_slack(rows_of(tables, prr(tables), place))
        text = f"{place}: median of cwnd - ssthresh"
        found.append(
            Evidence.of(quantile_interval(slack, 0.5), text, bound, unit="segments", weighs=place != VIDEO, key=key)
        )
    return found


_PARTS = {
    "share_above": ("pipe > ssthresh", OKABE_ITO["sky"], ""),
    "share_at": ("pipe = ssthresh", "#cccccc", ""),
    "share_below": ("pipe < ssthresh", OKABE_ITO["vermilion"], "///"),
}


PUBLISHED_START = (45.0, 13.0, 32.0)
"""Recoveries that start with pipe above, at and below ssthresh, percent (IETF-84 slides; they do not add up to 100)."""


def starts(tables: Tables) -> Figure:
    """Fractions of recoveries by pipe relative to ssthresh at the start."""
    table = pop.summary(tables)
    below = {
        setting: 100 * rows["share_below"][0]
        for setting in pop.SETTINGS
        for rows in (table.filter((pl.col("setting") == setting) & (pl.col("arm") == PRR)),)
        if rows.height
    }

    def draw() -> Any:
        figure, axes = new(7.6, 3.4, ncols=2, sharey=True)
        for ax, setting in zip(axes, pop.SETTINGS, strict=True):
            rows = table.filter(pl.col("setting") == setting)
            y = np.arange(rows.height)
            left = np.zeros(rows.height)
            for column, (text, colour, hatch) in _PARTS.items():
                share = 100 * rows[column].to_numpy()
                ax.barh(y, share, 0.7, left=left, color=colour, hatch=hatch, edgecolor="white", lw=0.5, label=text)
                for yy, x, width in zip(y, left, share, strict=True):
                    if width > 7:
                        box = {"facecolor": "white", "alpha": 0.8, "lw": 0, "pad": 0.8}
                        ax.text(x + width / 2, yy, f"{width:.0f}", ha="center", va="center", fontsize=8, bbox=box)
                left += share
            ax.set(title=f"{setting} population", xlabel="share of recoveries (%)", xlim=(0, 100))
            ax.grid(visible=False)
        for x in np.cumsum(PUBLISHED_START)[:2]:
            axes[0].plot(x, -0.62, "v", color="black", ms=5, clip_on=False)
        axes[0].set_yticks(y, [name_of(a) for a in rows["arm"]])
        axes[0].invert_yaxis()
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return figure

    return Figure(
        name="population-start",
        title=(
            "With PRR "
            + " and ".join(
                f"{share:.0f} % of the recoveries of the {setting} population" for setting, share in below.items()
            )
            + " start with pipe below ssthresh"
        ),
        caption=(
            "Below ssthresh the reduction bound decides, above it the proportional part. Shown is pipe against ssthresh on the ACK that begins recovery, in percent of recoveries, for two populations of clients. The "
            "last three rows have a multiplicative decrease of 0.5 instead of CUBIC's 0.7, three duplicate ACKs instead of FACK, and no SACK. Triangles: where the bars of Google's Web servers change colour, as "
            "published (45, 13 and 32 %)."
        ),
        draw=draw,
        data={"summary": table},
    )


def ends(tables: Tables) -> Figure:
    """Distribution of cwnd - ssthresh just before the end."""
    r = tables["population.recoveries"].with_columns(
        (pl.col("cwnd_before_exit").cast(pl.Int64) - pl.col("ssthresh").cast(pl.Int64)).alias("slack")
    )
    table = (
        r.filter(pl.col("arm").is_in(RULES))
        .group_by("setting", "arm", "slack", maintain_order=True)
        .len()
        .sort("setting", "arm", "slack")
    )

    def short(setting: str, arm: str) -> float:
        rows = table.filter((pl.col("setting") == setting) & (pl.col("arm") == arm))
        return 100 * float(rows.filter(pl.col("slack") < 0)["len"].sum()) / max(float(rows["len"].sum()), 1.0)

    def draw() -> Any:
        figure, axes = new(7.6, 3.6, ncols=2, sharey=True)
        for ax, setting in zip(axes, pop.SETTINGS, strict=True):
            for rule in RULES:
                rows = table.filter((pl.col("setting") == setting) & (pl.col("arm") == rule))
                s = SERIES[rule]
                share = 100 * rows["len"].cum_sum() / max(rows["len"].sum(), 1)
                # the lower of two coinciding curves is wider, so that both are visible
                wide = 4.5 if rule == RFC6675 else 1.5
                ax.step(rows["slack"], share, where="post", color=s.colour, ls=s.dash, lw=wide, label=s.label)
            ax.set(
                title=f"{setting} population",
                xlabel="cwnd − ssthresh before the end (segments)",
                xlim=(-20, 6),
                ylim=(0, 101),
            )
            ax.axvline(0, color="#888888", lw=0.8)
        axes[0].set_ylabel("recoveries at or below (%)")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, columnspacing=1.0)
        return figure

    return Figure(
        name="population-end",
        title="Recoveries that end below ssthresh: "
        + "; ".join(
            f"{setting}, {short(setting, RATE_HALVING):.0f} % with rate halving, {short(setting, PRR):.0f} % with PRR"
            for setting in pop.SETTINGS
        ),
        caption=(
            "cwnd - ssthresh just before recovery ends, as a cumulative share of recoveries (those ended by a timeout included). A "
            "curve that jumps at 0 is a rule that reaches what the congestion controller asked for. Short Web responses run out of "
            "data before PRR has sent its share; Linux and RFC 9937 then set cwnd = ssthresh, rate halving does not."
        ),
        draw=draw,
        data={"distribution": table},
    )


def population_table(tables: Tables) -> Table:
    """One row per setting and rule."""
    rows: list[tuple[TableCell | str, ...]] = []
    s = pop.summary(tables)
    for setting in pop.SETTINGS:
        own = list(s.filter(pl.col("setting") == setting).iter_rows(named=True))
        for i, r in enumerate(own):
            head = (TableCell(text=setting, kind="head", span=len(own)),) if i == 0 else ()
            rows.append(
                (
                    *head,
                    TableCell(text=name_of(r["arm"]), kind="head"),
                    f"{r['recoveries']:,}",
                    f"{100 * r['share_above']:.0f} / {100 * r['share_at']:.0f} / {100 * r['share_below']:.0f}",
                    " / ".join(number(r[q]) for q in ("exit_q05", "exit_q25", "exit_q50", "exit_q95")),
                    f"{r['median_rtts']:.1f} / {r['q90_rtts']:.1f}",
                    f"{r['retransmissions']:,} ({100 * r['retransmission_rate']:.1f} %)",
                    f"{r['lost_retransmits']:,}",
                    f"{r['timeouts']:,} / {r['timeouts_in_recovery']:,}",
                )
            )
    return Table(
        caption="Recoveries of both populations; all rules meet the same clients and losses.",
        header=(
            "setting",
            "rule",
            "recoveries",
            "pipe > / = / < ssthresh (%)",
            "cwnd − ssthresh at the end, 5/25/50/95 %",
            "RTTs in recovery, 50/90 %",
            "retransmissions",
            "lost again",
            "timeouts / in recovery",
        ),
        rows=tuple(rows),
    )


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (
        paragraph(
            "Two settings in the manner of the paper: Web responses with a mean of 7.5 kB, and long-RTT video with a server that "
            "throttles its writes. The distributions are assumptions (scenarios below); figures only, no claim about "
            "production rests on them."
        ),
        starts(tables),
        ends(tables),
        population_table(tables),
    )


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {
        "Web population": pop.scenario("Web", PRR, 500),
        "video population": pop.scenario("video", PRR, 25),
    }


CHAPTER = Chapter(
    experiments=(
        Experiment(name="population", title="Web and long-RTT video clients", run=pop.run, weight=20),
        Experiment(
            name="longer", title="Web clients whose responses are ten times as long", run=why.run_longer, weight=3
        ),
    ),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
