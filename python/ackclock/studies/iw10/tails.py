"""The longest completion times, and how far runs differ (I12, I25, I27)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.plot import Figure, new
from ackclock.report import Block
from ackclock.stats import bootstrap_interval
from ackclock.studies.iw10.loaded import times
from ackclock.studies.iw10.style import COLOUR, MODE_TITLE, percent
from ackclock.studies.iw10.testbed import (
    ARMS,
    FAST,
    FIVE,
    HEAVY,
    IW3,
    IW10,
    MIX,
    SINGLE,
    SLOW,
    where,
)
from ackclock.study import Chapter, Claim, Criterion, Evidence, Tables, at_least
from ackclock.study.estimates import Array, median


def i12(tables: Tables) -> Sequence[Evidence]:
    """Tails there."""
    tails = {
        arm: times(tables, FAST, FIVE, HEAVY[FAST], arm, "p99_s") / times(tables, FAST, FIVE, HEAVY[FAST], arm, "p50_s")
        for arm in (IW3, IW10)
    }
    place = where(FAST, FIVE, HEAVY[FAST])
    return [
        Evidence.of(median(tails[IW10] / tails[IW3]), f"{place}: p99 / median, IW10 over IW3", at_least(1.5)),
        *(
            Evidence.of(median(tails[arm]), f"{place}: p99 / median, {arm}", at_least(0), weighs=False)
            for arm in (IW3, IW10)
        ),
    ]


def i25(tables: Tables) -> Sequence[Evidence]:
    """The longest completion times."""
    place = where(SLOW, FIVE, HEAVY[SLOW])
    found = []
    for arm in (IW3, IW10):
        longest = np.maximum(
            times(tables, SLOW, FIVE, HEAVY[SLOW], arm, "max_s"), times(tables, SLOW, FIVE, HEAVY[SLOW], arm, "p999_s")
        )
        found.append(Evidence.of(median(longest), f"{arm}, {place}: longest UCT of a run", at_least(60), unit="s"))
        slow, twice = (
            times(tables, SLOW, FIVE, HEAVY[SLOW], arm, column).sum() for column in ("over_60_s", "over_60_s_two_rtos")
        )
        if slow:
            found.append(
                Evidence(
                    label=f"{arm}: of transactions over 60 s, those with two timeouts or more",
                    value=100 * float(twice) / float(slow),
                    bound=at_least(95),
                    unit="%",
                    seeds=int(slow),
                )
            )
    return found


def i27(tables: Tables) -> Sequence[Evidence]:
    """Coefficient of variation over seeds, slow link over fast link."""
    found = []
    for mode in (SINGLE, FIVE):
        columns = [
            times(tables, rate, mode, HEAVY[rate], arm, "mean_s") for rate in (SLOW, FAST) for arm in (IW3, IW10)
        ]

        def ratio(rows: Array) -> float:
            mean = rows.mean(axis=0)
            cov = rows.std(axis=0, ddof=1) / np.where(mean > 0, mean, np.nan)
            return float(np.mean(cov[:2]) / np.mean(cov[2:])) if np.mean(cov[2:]) > 0 else float("nan")

        found.append(
            Evidence.of(
                bootstrap_interval(np.column_stack(columns), ratio),
                f"CoV over seeds of the mean UCT, {mode}: 64 kb/s at 97.5 % / 20 Mb/s at 96 %",
                at_least(2),
            )
        )
    return found


def distributions(tables: Tables) -> Figure:
    """Complementary distribution of completion times at high load."""
    q = tables["loaded.quantiles"]
    places = [
        (SLOW, SINGLE, HEAVY[SLOW]),
        (SLOW, FIVE, HEAVY[SLOW]),
        (FAST, SINGLE, HEAVY[FAST]),
        (FAST, FIVE, HEAVY[FAST]),
    ]

    def draw() -> Any:
        figure, axes = new(7.8, 4.8, nrows=2, ncols=2)
        for ax, (rate, mode, load) in zip(axes.flat, places, strict=True):
            for arm in ARMS:
                own = q.filter(
                    (pl.col("rate") == rate)
                    & (pl.col("mode") == mode)
                    & (pl.col("load") == load)
                    & (pl.col("arm") == arm)
                    & (pl.col("iw") == 0)
                ).sort("quantile")
                ax.plot(
                    own["value_s"],
                    1 - own["quantile"],
                    color=COLOUR[arm],
                    label=arm,
                    ls={IW3: "-", MIX: "--", IW10: "-."}[arm],
                )
            ax.set(xscale="log", yscale="log", title=f"{rate}, {MODE_TITLE[mode]}, {percent(load)}")
            ax.set_ylim(5e-5, 1.2)
            ax.xaxis.set_minor_formatter("")
            ax.xaxis.set_major_formatter("{x:g}")
        for ax in axes[:, 0]:
            ax.set_ylabel("share of transactions\nthat take longer")
        for ax in axes[-1]:
            ax.set_xlabel("completion time (s)")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return figure

    tails = {arm: float(np.median(times(tables, FAST, FIVE, HEAVY[FAST], arm, "p99_s"))) for arm in (IW3, IW10)}
    return Figure(
        name="distributions",
        title=f"Tails at the highest loads: one in a hundred takes {tails[IW3]:.1f} s with IW3 and {tails[IW10]:.1f} s with IW10 (20 Mb/s, five opens)",
        caption="Complementary distribution over all seeds, completed transactions. Steps: initial RTO of the SYN, and timeouts doubling.",
        draw=draw,
        data={"quantiles": q.filter(pl.col("iw") == 0)},
    )


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="I12",
        place="slides: completion time at 20 Mb/s, five opens",
        statement="IW10 has long tails there.",
        direction=Criterion(
            measure=i12,
            reading="96 %: p99 over median at least 1.5 times that of IW3.",
        ),
    ),
    Claim(
        id="I25",
        place="slides: packet loss rate at 64 kb/s",
        statement="Completion times above 70 s come from several rounds of loss and queueing.",
        direction=Criterion(
            measure=i25,
            reading="64 kb/s, five opens, 97.5 %: some transactions take 60 s or more, and at least 95 % of those saw two timeouts or more.",
        ),
    ),
    Claim(
        id="I27",
        place="slides: slow link",
        statement="Numbers of the slow link are unstable.",
        direction=Criterion(
            measure=i27,
            reading="Coefficient of variation of the mean completion time over seeds: at least twice that of the fast link.",
        ),
        note="With single opens 18 times, with five opens 2.7 times, whose interval straddles the bound.",
    ),
)


def blocks(t: Tables) -> Sequence[Block]:
    """For the report."""
    return (distributions(t),)


CHAPTER = Chapter(title="Tails", claims=CLAIMS, blocks=blocks)
