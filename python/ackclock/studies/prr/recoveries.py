"""Where recoveries start and how they end, in the fetches and in populations of clients (P1, P2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Block, Cell, Table, paragraph
from ackclock.scenario import Scenario
from ackclock.stats import Estimate, quantile_interval
from ackclock.studies.prr import latency as lat
from ackclock.studies.prr import population as pop
from ackclock.studies.prr.path import LOW, MIDDLE, where
from ackclock.studies.prr.rules import (
    RATE_HALVING,
    RULES,
    SERIES,
    SSRB,
    name_of,
)
from ackclock.study import (
    Chapter,
    Claim,
    Criterion,
    Evidence,
    Experiment,
    Tables,
    above,
    below,
    between,
    exactly,
    number,
)
from ackclock.study.estimates import Array, minus, ratio

HALF_ARM = f"{SSRB}, {lat.HALF}"


def counts_below(recoveries: pl.DataFrame) -> tuple[Array, Array, pl.Series]:
    """Per seed: recoveries that start with pipe below ssthresh, and all recoveries."""
    per_seed = (
        recoveries.group_by("seed")
        .agg((pl.col("pipe_enter") < pl.col("ssthresh")).sum().alias("below"), pl.len().alias("all"))
        .sort("seed")
    )
    return (
        per_seed["below"].to_numpy().astype(np.float64),
        per_seed["all"].to_numpy().astype(np.float64),
        per_seed["seed"],
    )


def share_below(recoveries: pl.DataFrame) -> Estimate:
    """Share of recoveries that start with pipe below ssthresh, percent."""
    few, everything, _ = counts_below(recoveries)
    return ratio(few, everything)


_SLIDES = "IETF-84 slides"
_PAPER = "IMC 2011 paper"


def p1(tables: Tables) -> Sequence[Evidence]:
    """Share of recoveries that start below ssthresh, for both values of β."""
    r = tables["latency.recoveries"]
    cubic, half = (share_below(lat.cell(r, arm, MIDDLE, LOW)) for arm in (SSRB, HALF_ARM))
    # The arms share seeds, so the interval of an independent difference is on the safe side.
    found = [
        Evidence.of(
            cubic, f"{where(MIDDLE, LOW)}, β 0.7: start with pipe < ssthresh", between(20, 45), unit="%", factor=100
        ),
        Evidence.of(
            minus(cubic, half),
            f"{where(MIDDLE, LOW)}: share at β 0.7 less share at β 0.5",
            above(0),
            unit="points",
            factor=100,
        ),
    ]
    p = tables["population.recoveries"]
    for setting in ("Web", "video"):
        for arm, name in ((SSRB, "β 0.7"), (HALF_ARM, "β 0.5")):
            rows = p.filter((pl.col("setting") == setting) & (pl.col("arm") == arm))
            found.append(
                Evidence.of(
                    share_below(rows),
                    f"{setting} population, {name}",
                    between(20, 45),
                    unit="%",
                    factor=100,
                    weighs=False,
                )
            )
    return found


def exit_slack(rows: pl.DataFrame) -> Array:
    """How far cwnd is above ssthresh just before the end of recovery, segments."""
    slack = rows["cwnd_before_exit"].cast(pl.Int64) - rows["ssthresh"].cast(pl.Int64)
    return slack.to_numpy().astype(np.float64)


def p2(tables: Tables) -> Sequence[Evidence]:
    """Quantiles of cwnd - ssthresh at the end of recovery."""
    r = tables["latency.recoveries"]
    prr, rh = (exit_slack(lat.cell(r, rule, MIDDLE, LOW)) for rule in (SSRB, RATE_HALVING))
    q_prr, q_rh = quantile_interval(prr, 0.05), quantile_interval(rh, 0.05)
    apart = Estimate(
        value=q_rh.value - q_prr.value, low=q_rh.low - q_prr.high, high=q_rh.high - q_prr.low, level=0.95, n=q_rh.n
    )
    return [
        Evidence(
            label=f"{where(MIDDLE, LOW)}: median with PRR-SSRB",
            value=float(np.median(prr)) if prr.size else float("nan"),
            bound=exactly(0),
            unit="segments",
            seeds=prr.size,
        ),
        Evidence.of(apart, f"{where(MIDDLE, LOW)}: 5 % quantile, rate halving less PRR", below(0), unit="segments"),
        Evidence.of(q_rh, "5 % quantile, rate halving", below(0), unit="segments", weighs=False),
        Evidence.of(q_prr, "5 % quantile, PRR-SSRB", below(0), unit="segments", weighs=False),
    ]


_PARTS = {
    "share_above": ("pipe > ssthresh", OKABE_ITO["sky"], ""),
    "share_at": ("pipe = ssthresh", "#cccccc", ""),
    "share_below": ("pipe < ssthresh", OKABE_ITO["vermilion"], "///"),
}


def starts(tables: Tables) -> Figure:
    """Shares of recoveries by pipe against ssthresh at the start."""
    table = pop.summary(tables)
    below = {
        setting: 100 * rows["share_below"][0]
        for setting in pop.SETTINGS
        for rows in (table.filter((pl.col("setting") == setting) & (pl.col("arm") == SSRB)),)
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
        axes[0].set_yticks(y, [name_of(a) for a in rows["arm"]])
        axes[0].invert_yaxis()
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return figure

    return Figure(
        name="population-start",
        title=(
            "With PRR-SSRB "
            + " and ".join(
                f"{share:.0f} % of the recoveries of the {setting} population" for setting, share in below.items()
            )
            + " start with pipe below ssthresh"
        ),
        caption=(
            "Below ssthresh the reduction bound decides, above it the proportional part. Shown is pipe against ssthresh on the ACK that begins recovery, in percent of recoveries, for two populations of clients. The "
            "last row has a multiplicative decrease of 0.5 instead of CUBIC's 0.7. Published for Google's Web servers: 32 % below."
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
        r.filter(pl.col("arm") != f"{SSRB}, {lat.HALF}")
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
                ax.step(rows["slack"], share, where="post", color=s.colour, ls=s.dash, label=s.label)
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
            f"{setting}, {short(setting, RATE_HALVING):.0f} % with rate halving, {short(setting, SSRB):.0f} % with PRR-SSRB"
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
    rows: list[tuple[Cell | str, ...]] = []
    s = pop.summary(tables)
    for setting in pop.SETTINGS:
        own = list(s.filter(pl.col("setting") == setting).iter_rows(named=True))
        for i, r in enumerate(own):
            head = (Cell(text=setting, kind="head", span=len(own)),) if i == 0 else ()
            rows.append(
                (
                    *head,
                    Cell(text=name_of(r["arm"]), kind="head"),
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


CLAIMS = (
    Claim(
        id="P1",
        place=f"{_SLIDES}; RFC 6937 §5 (32 % below)",
        statement="With CUBIC's β a sizeable share of recoveries starts with pipe below ssthresh, larger than with β 0.5.",
        direction=Criterion(
            measure=p1,
            reading="20 to 45 %, and a positive difference",
        ),
        note="A target of 0.7 lies closer to the window than one of 0.5, so the same losses push pipe below it more often. "
        "In the Web population the share is larger still: its responses end soon after the loss, and what is in "
        "flight drains.",
    ),
    Claim(
        id="P2",
        place=f"{_PAPER}, cwnd at the end of recovery",
        statement="PRR ends recovery with cwnd at ssthresh; rate halving often ends below.",
        direction=Criterion(
            measure=p2,
            reading="median of cwnd - ssthresh exactly 0 with PRR; 5 % quantile lower with rate halving",
        ),
        note="Where PRR ends below, the response ran out of data, or a timeout came first; rate halving adds to these all "
        "recoveries that lost much.",
    ),
)


def blocks(tables: Tables) -> Sequence[Block]:
    """For the report."""
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
    """As written."""
    return {
        "Web population": pop.scenario("Web", SSRB, 500),
        "video population": pop.scenario("video", SSRB, 25),
    }


CHAPTER = Chapter(
    title="Where recoveries start and how they end",
    experiments=(Experiment(name="population", title="Web and long-RTT video clients", run=pop.run, weight=20),),
    claims=CLAIMS,
    blocks=blocks,
    scenarios=scenarios,
)
