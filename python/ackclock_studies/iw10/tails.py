"""The longest completion times, and the spread between runs (I12, I27)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import Array, bootstrap, median
from ackclock.plot import Figure, new
from ackclock.report import Block
from ackclock.study import Bound, Chapter, Evidence, Tables
from ackclock.study.table import declared
from ackclock_studies.iw10 import paths
from ackclock_studies.iw10.loaded import table, times
from ackclock_studies.iw10.style import COLOUR, MODE_TITLE, percent
from ackclock_studies.iw10.testbed import (
    ARMS,
    FAST,
    FIVE,
    HEAVY,
    IW3,
    IW10,
    MIX,
    MODES,
    SINGLE,
    SLOW,
    where,
)

_PLACE = (FAST, FIVE, HEAVY[FAST])


def _tail(tables: Tables, bound: Bound) -> list[Evidence]:
    tails = {arm: times(tables, *_PLACE, arm, "p99_s") / times(tables, *_PLACE, arm, "p50_s") for arm in (IW3, IW10)}
    return [
        Evidence.of(median(tails[IW10] / tails[IW3]), f"{where(*_PLACE)}: p99 / median, IW10 over IW3", bound),
        *(
            Evidence.of(median(tails[arm]), f"{where(*_PLACE)}: p99 / median, {arm}", Bound(), weighs=False, key=arm)
            for arm in (IW3, IW10)
        ),
    ]


def i12(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Completion-time tails at high load."""
    return [*_tail(tables, bound), *paths.on_paths(tables, "longer_tail")]


def i12_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Tail ratio."""
    return _tail(tables, bound)


def _spread(tables: Tables, bound: Bound) -> list[Evidence]:
    found = []
    for mode in MODES:
        for arm in (IW3, IW10):
            slow, fast = (times(tables, rate, mode, HEAVY[rate], arm, "first_mean_s") for rate in (SLOW, FAST))

            def ratio(slow: Array, fast: Array) -> Array:
                cov = [rows.std(axis=1, ddof=1) / rows.mean(axis=1) for rows in (slow, fast)]
                with np.errstate(divide="ignore", invalid="ignore"):
                    return np.asarray(cov[0] / cov[1])

            found.append(
                Evidence.of(
                    bootstrap(ratio, slow, fast, joint=False),
                    f"{arm}, {mode}: CoV over runs, 64 kb/s at 97.5 % / 20 Mb/s at 96 %",
                    bound,
                    key=f"{arm}_{mode}",
                )
            )
    return found


def i27(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Ratio between the links, slow to fast, of the run-to-run spread in mean completion time, for equal numbers of transactions."""
    return _spread(tables, bound)


def i27_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Spread ratio."""
    return _spread(tables, bound)


def distributions(tables: Tables) -> Figure:
    """Complementary distribution of the completion times at high load."""
    q = pl.concat([table(tables, rate, "quantiles") for rate in (SLOW, FAST)])
    places = [
        (SLOW, SINGLE, HEAVY[SLOW]),
        (SLOW, FIVE, HEAVY[SLOW]),
        (FAST, FIVE, 0.72),
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
            shares = [1.0, 0.1, 0.01, 0.001, 0.0001]
            ax.set_yticks(shares, [f"{100 * x:g} %" for x in shares])
            ax.yaxis.set_minor_formatter("")
        for ax in axes[:, 0]:
            ax.set_ylabel("share of transactions\nthat take longer")
        for ax in axes[-1]:
            ax.set_xlabel("completion time (s)")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return figure

    tails = {arm: float(np.median(times(tables, FAST, FIVE, HEAVY[FAST], arm, "p99_s"))) for arm in (IW3, IW10)}
    return Figure(
        name="distributions",
        title=f"Tails: at the highest loads one in a hundred takes {tails[IW3]:.1f} s with IW3 and {tails[IW10]:.1f} s with IW10 (20 Mb/s, five opens)",
        caption="Complementary distribution over all seeds, completed transactions. Steps: initial RTO of the SYN, and timeouts doubling.",
        draw=draw,
        data={"quantiles": q.filter(pl.col("iw") == 0)},
    )


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (distributions(t),)


CHAPTER = Chapter(**declared(__name__), blocks=blocks)
