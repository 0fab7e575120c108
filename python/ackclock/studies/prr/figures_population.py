"""Figures of the two populations: where recoveries start and how they end."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.studies.prr import population as pop
from ackclock.studies.prr.latency import HALF
from ackclock.studies.prr.rules import RATE_HALVING, RULES, SERIES, SSRB
from ackclock.study import Tables

_PARTS = {
    "share_above": ("pipe > ssthresh", OKABE_ITO["sky"], ""),
    "share_at": ("pipe = ssthresh", "#cccccc", ""),
    "share_below": ("pipe < ssthresh", OKABE_ITO["vermilion"], "///"),
}


def name_of(arm: str) -> str:
    """Label of an arm, β included."""
    rule, _, beta = arm.partition(", ")
    return SERIES[rule].label + (f", {beta}" if beta else "")


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
        r.filter(pl.col("arm") != f"{SSRB}, {HALF}")
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
