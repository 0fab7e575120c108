"""IW3 and IW10 sharing the link (I15 to I18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import Array, mean_of, median
from ackclock.plot import GREY, Figure
from ackclock.report import Block
from ackclock.scenario import Scenario
from ackclock.stats import Estimate
from ackclock.study import (
    Bound,
    Chapter,
    Evidence,
    Tables,
)
from ackclock.study.table import declared
from ackclock_studies.iw10 import testbed, why
from ackclock_studies.iw10.bursts import unloaded_s
from ackclock_studies.iw10.loaded import cells, link, loads, times
from ackclock_studies.iw10.style import COLOUR, MARKER, panels, percent
from ackclock_studies.iw10.testbed import (
    FAST,
    FIVE,
    HEAVY,
    IW3,
    IW10,
    MIX,
    MODES,
    RATES,
    SINGLE,
    SLOW,
    where,
)


def in_mix(tables: Tables, rate: str, mode: str, load: float, arm: str) -> Array:
    """Ratio of the mean completion time in the mix to that alone, for flows with this initial window, in each run that has such flows."""
    iw = 3 if arm == IW3 else 10
    found = times(tables, rate, mode, load, MIX, "mean_s", iw=iw) / times(tables, rate, mode, load, arm, "mean_s")
    return found[np.isfinite(found)]


_HIGHER = (SLOW, SINGLE, 0.75)


def i15(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """IW10 in the mix, and the queue encountered by its packets."""
    queue = link(tables, *_HIGHER, MIX, "mean_queue") / link(tables, *_HIGHER, IW10, "mean_queue")
    found = [
        Evidence.of(
            median(in_mix(tables, *_HIGHER, IW10)),
            f"{where(*_HIGHER)}: UCT of IW10 in the mix / alone",
            bound,
            key="ratio",
        ),
        Evidence.of(median(queue), f"{where(*_HIGHER)}: mean queue, mix / IW10 alone", bound, key="queue"),
    ]
    for mode, load in ((SINGLE, HEAVY[SLOW]), (FIVE, 0.75), (FIVE, HEAVY[SLOW])):
        found.append(
            Evidence.of(
                median(in_mix(tables, SLOW, mode, load, IW10)),
                f"{where(SLOW, mode, load)}: UCT of IW10 in the mix / alone",
                bound,
                weighs=False,
            )
        )
    return found


def i15_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Ratio of IW10's completion time in the mix to that alone."""
    text = f"{where(*_HIGHER)}: UCT of IW10 in the mix / alone"
    return [Evidence.of(median(in_mix(tables, *_HIGHER, IW10)), text, bound)]


def _beside(tables: Tables) -> dict[tuple[str, str, float], Estimate]:
    """Ratio of IW3's completion time in the mix to that alone, in every light-load and medium-load cell."""
    return {place: median(in_mix(tables, *place, IW3)) for place in cells(tables) if place[2] <= 0.75}


def i16(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Ratio of IW3's completion time in the mix to that alone, averaged over light and medium load."""
    each = list(_beside(tables).values())
    text = f"mean over the {len(each)} cells: UCT of IW3 in the mix / alone"
    return [Evidence.of(mean_of(each), text, bound, key="mean")]


def i16_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """The comparison cell by cell."""
    each = _beside(tables)
    worst = max(each, key=lambda place: each[place].value)
    return [
        Evidence.of(
            e,
            f"{where(*place)}: UCT of IW3 in the mix / alone",
            bound,
            key="worst" if place == worst else "",
        )
        for place, e in each.items()
    ]


def i17(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """IW3 in the mix at high load."""
    return [
        Evidence.of(
            median(in_mix(tables, rate, mode, load, IW3)),
            f"{where(rate, mode, load)}: UCT of IW3 in the mix / alone",
            bound,
            key=f"{'slow' if rate == SLOW else 'fast'}_{mode}",
            cell={"link": rate, "opens": mode},
        )
        for rate, mode, load in cells(tables)
        if load == HEAVY[rate]
    ]


def i18(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """IW3 against IW10 in the mix, excluding the cost of round trips."""
    found = []
    for rate, mode, load in cells(tables):
        three, ten = (times(tables, rate, mode, load, MIX, "mean_s", iw=iw) for iw in (3, 10))
        saving = unloaded_s(tables, rate, IW3) - unloaded_s(tables, rate, IW10)
        quotient = (three - saving) / ten
        found.append((where(rate, mode, load), saving, median(quotient[np.isfinite(quotient)])))
    worst = max(range(len(found)), key=lambda i: found[i][2].value)
    return [
        Evidence.of(
            e,
            f"{place}: (UCT(IW3) − {saving:.2f} s) / UCT(IW10) in the mix",
            bound,
            key="worst" if i == worst else "",
        )
        for i, (place, saving, e) in enumerate(found)
    ]


def mixes(tables: Tables) -> Figure:
    """Ratio of the completion time in the mix to that alone."""
    rows = []
    for rate, mode, load in cells(tables):
        for arm in (IW3, IW10):
            e = median(in_mix(tables, rate, mode, load, arm))
            rows.append(
                {"rate": rate, "mode": mode, "load": load, "arm": arm, "ratio": e.value, "low": e.low, "high": e.high}
            )
    table = pl.DataFrame(rows)

    def draw() -> Any:
        figure, axes = panels()
        for row, mode in enumerate(MODES):
            for column, rate in enumerate(RATES):
                ax = axes[row][column]
                at = loads(tables, rate)
                for i, arm in enumerate((IW3, IW10)):
                    own = table.filter(
                        (pl.col("rate") == rate) & (pl.col("mode") == mode) & (pl.col("arm") == arm)
                    ).sort("load")
                    value = own["ratio"].to_numpy()
                    error = np.abs(own.select("low", "high").to_numpy().T - value)
                    error[~np.isfinite(error)] = 0.0
                    x = np.arange(len(at)) + 0.16 * (2 * i - 1)
                    ax.errorbar(x, value, yerr=error, fmt=MARKER[arm], color=COLOUR[arm], label=arm, lw=1.1)
                ax.axhline(1.0, color=GREY, lw=0.9)
                ax.set_xticks(range(len(at)), [percent(x) for x in at])
            axes[row][0].set_ylabel("completion time,\nin the mix / alone")
        for ax in axes[-1]:
            ax.set_xlabel("offered load")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return figure

    return Figure(
        name="mix",
        title=_mix_title(table),
        caption="Mean completion time of the flows with one initial window in the mix, over that of flows when all have this window. Below 1: better off in the mix.",
        draw=draw,
        data={"mix": table},
    )


def _mix_title(table: pl.DataFrame) -> str:
    def span(arm: str) -> str:
        ratio = table.filter(pl.col("arm") == arm)["ratio"].to_numpy()
        return f"{ratio.min():.2f} to {ratio.max():.2f}"

    return f"In the half-and-half mix IW3 takes {span(IW3)} times as long as alone, IW10 {span(IW10)} times"


REMOVED = {
    "paced": (why.PACED, "mean_s", "IW10's first window is paced, and IW3's"),
    "rack": (why.QUICK_REPAIR, "mean_s", "RACK-TLP repairs the tail without a timeout"),
    "counted": (why.AS_IS, "censored_mean_s", "incomplete ones count with the time that they had taken"),
}
"""Removed mechanisms, by their names in notes -> the runs, the column and the description."""


def without(tables: Tables, bound: Bound, *, mechanism: str) -> Sequence[Evidence]:
    """I17 without one of its mechanisms: IW3 no longer gains in the mix."""
    variant, column, words = REMOVED[mechanism]
    return [
        Evidence.of(
            median(
                why.pick(tables, variant, SLOW, mode, MIX, column, iw=3)
                / why.pick(tables, variant, SLOW, mode, IW3, column)
            ),
            f"{where(SLOW, mode, HEAVY[SLOW])}: UCT of IW3 in the mix / alone, {words}",
            bound,
            key=f"{mechanism}_{mode}",
        )
        for mode in MODES
    ]


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (mixes(t),)


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {"20 Mb/s, single opens, 72 %, mix": testbed.loaded(FAST, SINGLE, 0.72, MIX, duration_s=300)}


CHAPTER = Chapter(**declared(__name__), blocks=blocks, scenarios=scenarios)
