"""Completion times of IW10 against IW3 (I6, I7, I11, I14)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.plot import GREY, OKABE_ITO, Figure, new
from ackclock.report import Block, Cell, Table
from ackclock.stats import Estimate, bootstrap_interval
from ackclock.studies.iw10.bursts import unloaded_s
from ackclock.studies.iw10.loaded import cells, link, times
from ackclock.studies.iw10.style import MODE_TITLE, bars, estimates, panels
from ackclock.studies.iw10.testbed import (
    ARMS,
    FAST,
    FIVE,
    IW3,
    IW10,
    MODES,
    RATES,
    SINGLE,
    SLOW,
    where,
)
from ackclock.study import Chapter, Claim, Criterion, Evidence, Tables, at_least, at_most, between
from ackclock.study.estimates import Array, median


def no_worse(tables: Tables, *, sack: bool) -> Estimate:
    """Percentage of cells in which the median of mean completion times with IW10 is at most 1.05 times that with IW3."""
    columns = []
    for rate, mode, load in cells(tables):
        for arm in (IW3, IW10):
            columns.append(times(tables, rate, mode, load, arm, "mean_s", sack=sack))
    matrix = np.column_stack(columns)

    def share(rows: Array) -> float:
        middle = np.median(rows, axis=0)
        return 100 * float((middle[1::2] <= 1.05 * middle[0::2]).mean())

    return bootstrap_interval(matrix, share)


def gain(tables: Tables, rate: str, mode: str, load: float, *, sack: bool = True) -> Array:
    """Mean completion time with IW10 over that with IW3, seed by seed."""
    ten = times(tables, rate, mode, load, IW10, "mean_s", sack=sack)
    return ten / times(tables, rate, mode, load, IW3, "mean_s", sack=sack)


def exceptions(tables: Tables, *, sack: bool) -> list[Evidence]:
    """The cells in which IW10 takes longer, for context."""
    found = []
    for rate, mode, load in cells(tables):
        value = median(gain(tables, rate, mode, load, sack=sack))
        if value.value > 1.05:
            found.append(
                Evidence.of(
                    value, f"exception: {where(rate, mode, load)}: UCT(IW10) / UCT(IW3)", at_most(1.05), weighs=False
                )
            )
    return found


def i6(tables: Tables) -> Sequence[Evidence]:
    """Mean completion time, cell by cell."""
    share = Evidence.of(no_worse(tables, sack=True), "cells with UCT(IW10) ≤ 1.05 UCT(IW3)", at_least(90), unit="%")
    return [share, *exceptions(tables, sack=True)]


def i7(tables: Tables) -> Sequence[Evidence]:
    """Three round trips against one on the fast link."""
    found = []
    for load in (x for x in dict.fromkeys(c[2] for c in cells(tables) if c[0] == FAST) if x <= 0.5):
        for arm, data_s, all_s in ((IW3, 0.90, 1.20), (IW10, 0.30, 0.61)):
            place = f"{arm}, {where(FAST, SINGLE, load)}"
            found += [
                Evidence.of(
                    median(times(tables, FAST, SINGLE, load, arm, "data_p50_s")),
                    f"{place}: median data phase",
                    between(0.95 * data_s, 1.05 * data_s),
                    unit="s",
                ),
                Evidence.of(
                    median(times(tables, FAST, SINGLE, load, arm, "p50_s")),
                    f"{place}: median with connect",
                    between(0.95 * all_s, 1.05 * all_s),
                    unit="s",
                ),
            ]
    return found


def i11(tables: Tables) -> Sequence[Evidence]:
    """The advantage on the fast link with five at a time."""
    return [
        Evidence.of(median(gain(tables, FAST, FIVE, load)), f"{where(FAST, FIVE, load)}: UCT(IW10) / UCT(IW3)", bound)
        for load, bound in ((0.72, at_most(0.8)), (0.96, between(0.9, 1.2)))
    ]


def i14(tables: Tables) -> Sequence[Evidence]:
    """Queueing dominates on the slow link."""
    found = [
        Evidence.of(
            median(gain(tables, SLOW, SINGLE, 0.75)),
            f"{where(SLOW, SINGLE, 0.75)}: UCT(IW10) / UCT(IW3)",
            between(0.9, 1.1),
        )
    ]
    for arm in (IW3, IW10):
        mean = times(tables, SLOW, SINGLE, 0.75, arm, "mean_s")
        found.append(
            Evidence.of(
                median(100 * (1 - unloaded_s(tables, SLOW, arm) / mean)),
                f"{arm}: share of the mean UCT above the unloaded one",
                at_least(50),
                unit="%",
            )
        )
    return found


def completion(tables: Tables) -> Figure:
    """Mean completion time of each arm in every cell."""
    table = estimates(tables, "mean_s", of_link=False)

    def draw() -> Any:
        figure, axes = panels()
        for row, mode in enumerate(MODES):
            for column, rate in enumerate(RATES):
                bars(axes[row][column], table, rate, mode, 1.0)
            axes[row][0].set_ylabel("mean completion time (s)")
        for ax in axes[-1]:
            ax.set_xlabel("offered load")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return figure

    gains = [median(gain(tables, *cell)).value for cell in cells(tables) if cell[2] <= 0.75]
    return Figure(
        name="completion-times",
        title=(
            f"Up to 75 % load IW10 takes {100 * min(gains):.0f} to {100 * max(gains):.0f} % of the time of IW3; at the highest loads "
            "losses decide"
        ),
        caption=(
            "Mean time from the SYN to the last byte of the response, connect included, of the transactions that completed. Bars: "
            "median over seeds; lines: its 95 % interval. Mind the scales."
        ),
        draw=draw,
        data={"completion": table},
    )


def ratios(tables: Tables) -> Figure:
    """Completion time with IW10 over that with IW3, against load, with and without SACK."""
    rows = []
    for rate, mode, load in cells(tables):
        for sack in (True, False):
            e = median(gain(tables, rate, mode, load, sack=sack))
            rows.append(
                {"rate": rate, "mode": mode, "load": load, "sack": sack, "ratio": e.value, "low": e.low, "high": e.high}
            )
    table = pl.DataFrame(rows)

    def draw() -> Any:
        figure, axes = new(7.8, 3.4, ncols=2, sharey=True)
        for ax, rate in zip(axes, RATES, strict=True):
            for mode, marker in ((SINGLE, "o"), (FIVE, "s")):
                for sack, colour in ((True, OKABE_ITO["blue"]), (False, OKABE_ITO["orange"])):
                    own = table.filter(
                        (pl.col("rate") == rate) & (pl.col("mode") == mode) & (pl.col("sack") == sack)
                    ).sort("load")
                    value = own["ratio"].to_numpy()
                    error = np.abs(own.select("low", "high").to_numpy().T - value)
                    error[~np.isfinite(error)] = 0.0
                    x = 100 * own["load"].to_numpy() + (0.6 if sack else -0.6)
                    ax.errorbar(
                        x,
                        value,
                        yerr=error,
                        marker=marker,
                        color=colour,
                        ls="-" if mode == SINGLE else "--",
                        label=f"{MODE_TITLE[mode]}, {'with' if sack else 'without'} SACK",
                    )
            ax.axhline(1.0, color=GREY, lw=0.9)
            ax.set(title=rate, xlabel="offered load (%)")
        axes[0].set_ylabel("mean completion time,\nIW10 / IW3")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return figure

    return Figure(
        name="completion-ratios",
        title="What IW10 gains depends on the link and the load, hardly on SACK",
        caption="Ratio of mean completion times under the same arrivals; below 1 IW10 is faster. Lines: 95 % interval of the median over seeds.",
        draw=draw,
        data={"ratios": table},
    )


def cells_table(tables: Tables) -> Table:
    """Every cell and arm."""
    rows: list[tuple[Cell | str, ...]] = []
    for rate, mode, load in cells(tables):
        for i, arm in enumerate(ARMS):
            head = (Cell(text=where(rate, mode, load), kind="head", span=len(ARMS)),) if i == 0 else ()

            def middle(column: str, arm: str = arm, at: tuple[str, str, float] = (rate, mode, load)) -> float:
                return float(np.nanmedian(times(tables, *at, arm, column)))

            plr = float(np.median(link(tables, rate, mode, load, arm, "plr")))
            rows.append(
                (
                    *head,
                    Cell(text=arm, kind="head"),
                    f"{middle('started'):.0f}",
                    f"{middle('incomplete'):.0f}",
                    seconds(middle("mean_s")),
                    seconds(middle("p50_s")),
                    seconds(middle("p95_s")),
                    seconds(middle("p99_s")),
                    seconds(middle("p999_s")),
                    f"{100 * plr:.2f}",
                    f"{100 * np.median(link(tables, rate, mode, load, arm, 'plr_data')):.2f}",
                    f"{np.median(link(tables, rate, mode, load, arm, 'mean_queue')):.1f}",
                    f"{100 * np.median(link(tables, rate, mode, load, arm, 'busy')):.0f}",
                    f"{100 * np.median(link(tables, rate, mode, load, arm, 'sampled')):.0f}",
                )
            )
    return Table(
        caption="Medians over seeds. Started and incomplete: transactions of one run that count; incomplete ones were still under way at its end.",
        header=(
            "cell",
            "arm",
            "started",
            "incomplete",
            "mean (s)",
            "median (s)",
            "p95 (s)",
            "p99 (s)",
            "p99.9 (s)",
            "loss (%)",
            "without SYN, FIN (%)",
            "mean queue",
            "busy (%)",
            "1-s samples with a queue (%)",
        ),
        rows=tuple(rows),
    )


def seconds(value: float) -> str:
    """Seconds as tables give them."""
    return "–" if not np.isfinite(value) else f"{value:.3f}" if value < 10 else f"{value:.1f}"


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="I6",
        place="slides: user completion time; RFC 6928, Appendix A",
        statement="IW10 improves mean completion time, or does not hurt it.",
        direction=Criterion(
            measure=i6,
            reading="At most 1.05 times in at least 90 % of the cells; the exceptions are listed.",
        ),
        note="The exceptions stand below: the slow link at 75 % and more, five opens at 96 % of the fast link. There losses cost more than rounds.",
    ),
    Claim(
        id="I7",
        place="slides: completion time at 20 Mb/s",
        statement="On the fast link round trips dominate: three for IW3, one for IW10.",
        direction=Criterion(
            measure=i7,
            reading="Single opens, load up to 50 %: data phase 0.90 and 0.30 s, with connect 1.20 and 0.61 s, each within 5 % in the median.",
        ),
    ),
    Claim(
        id="I11",
        place="slides: completion time at 20 Mb/s, five opens",
        statement="At heavy load the advantage of IW10 is gone.",
        direction=Criterion(
            measure=i11,
            reading="UCT(IW10) / UCT(IW3) at most 0.8 at 72 %, 0.9 to 1.2 at 96 %.",
        ),
    ),
    Claim(
        id="I14",
        place="slides: completion time at 64 kb/s, single opens, 75 %",
        statement="Queueing dominates and cancels what saved round trips gain.",
        direction=Criterion(
            measure=i14,
            reading="Ratio of completion times within 0.9 to 1.1; at least half of the time is more than the unloaded time.",
        ),
        note="IW10 is slower by 10 %, on the very bound; most of the time is queueing with either.",
    ),
)


def blocks(t: Tables) -> Sequence[Block]:
    """For the report."""
    return (completion(t), ratios(t), cells_table(t))


CHAPTER = Chapter(title="Completion times", claims=CLAIMS, blocks=blocks)
