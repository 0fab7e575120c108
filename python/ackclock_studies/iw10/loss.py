"""Packets lost with either initial window (I1 to I5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ackclock.judge.estimates import Array, mean_over_runs, median, minus, quotient
from ackclock.plot import Figure
from ackclock.report import Block
from ackclock.scenario import Scenario
from ackclock.study import (
    Bound,
    Chapter,
    Evidence,
    Experiment,
    Tables,
    at_least,
)
from ackclock.study.table import declared
from ackclock_studies.iw10 import causes, loaded, paths, testbed
from ackclock_studies.iw10.loaded import cells, link
from ackclock_studies.iw10.readings import COUNTS, EXTREME, LENGTH, MIXED, SETUP
from ackclock_studies.iw10.style import bars, estimates, panels, percent
from ackclock_studies.iw10.testbed import ARMS, FIVE, HEAVY, IW3, IW10, MIX, MODES, RATES, SINGLE, SLOW, where


def loss_rates(tables: Tables) -> Figure:
    """Packet loss rate in every cell."""
    table = estimates(tables, "plr", of_link=True)

    def draw() -> Any:
        figure, axes = panels()
        for row, mode in enumerate(MODES):
            for column, rate in enumerate(RATES):
                bars(axes[row][column], table, rate, mode, 100.0)
            axes[row][0].set_ylabel("lost at the bottleneck (%)")
        for ax in axes[-1]:
            ax.set_xlabel("offered load")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return figure

    place = (SLOW, FIVE, HEAVY[SLOW])
    worst = {arm: 100 * float(np.median(link(tables, *place, arm, "plr"))) for arm in ARMS}
    return Figure(
        name="loss-rates",
        title=(
            f"Loss: at 64 kb/s, five opens and {percent(HEAVY[SLOW])}, {worst[IW3]:.1f} % with IW3, "
            f"{worst[MIX]:.1f} % in the mix, {worst[IW10]:.1f} % with IW10"
        ),
        caption=(
            "Packets dropped over packets that arrived at the bottleneck's queue, data direction, everything counted. Bars: median over "
            "seeds; lines: 95 % interval of the median. Mind the scales."
        ),
        draw=draw,
        data={"loss": table},
    )


PLOTTED = ((SINGLE, HEAVY[SLOW]), (FIVE, 0.75), (FIVE, HEAVY[SLOW]))
"""The three plots of the slide, all at 64 kb/s."""


def more(tables: Tables, rate: str, mode: str, load: float) -> Array:
    """Difference between the IW10 and IW3 loss rates, run by run with the same arrivals."""
    return link(tables, rate, mode, load, IW10, "plr") - link(tables, rate, mode, load, IW3, "plr")


def i1(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Loss-rate difference in every cell with losses."""
    found = []
    for rate, mode, load in cells(tables):
        if link(tables, rate, mode, load, IW10, "plr").max() > 0:
            found.append(
                Evidence.of(
                    median(more(tables, rate, mode, load)),
                    f"{where(rate, mode, load)}: PLR(IW10) − PLR(IW3)",
                    bound,
                    unit="points",
                    factor=100,
                    weighs=rate == SLOW and (mode, load) in PLOTTED,
                )
            )
    return [*found, *paths.on_paths(tables, "more_lost")]


ONE = 0.001
"""Loss rate assumed for lossy runs when no run recorded a loss: one packet in a thousand."""


def _modest(tables: Tables) -> list[tuple[str, str, float]]:
    return [place for place in cells(tables) if place[2] <= 0.75]


def i2(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """The increase at loads up to 75 %, minus that at the highest load."""
    return [
        Evidence.of(
            minus(
                mean_over_runs(more(tables, rate, mode, load), runs=f"{rate} {mode} {load}", one=ONE),
                mean_over_runs(more(tables, rate, mode, HEAVY[rate]), runs=f"{rate} {mode} heavy", one=ONE),
            ),
            f"{where(rate, mode, load)}: PLR(IW10) − PLR(IW3), less the same at {percent(HEAVY[rate])}",
            bound,
            unit="points",
            factor=100,
            key=f"less_{'slow' if rate == SLOW else 'fast'}_{mode}_{100 * load:.0f}",
            cell={"link": rate, "opens": mode, "load": load},
        )
        for rate, mode, load in _modest(tables)
    ]


def i2_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """The increase itself."""
    return [
        Evidence.of(
            median(more(tables, rate, mode, load)),
            f"{where(rate, mode, load)}: PLR(IW10) − PLR(IW3)",
            bound,
            unit="points",
            factor=100,
            key="slow75"
            if (rate, mode, load) == (SLOW, SINGLE, 0.75)
            else f"more_{'slow' if rate == SLOW else 'fast'}_{mode}_{100 * load:.0f}",
            cell={"link": rate, "opens": mode, "load": load},
        )
        for rate, mode, load in _modest(tables)
    ]


def i3(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """The increase at the slow link's highest load, and its ratio to the increase at 75 %."""
    found = []
    for mode in MODES:
        heavy, medium = (median(more(tables, SLOW, mode, load)) for load in (HEAVY[SLOW], 0.75))
        place = where(SLOW, mode, HEAVY[SLOW])
        found += [
            Evidence.of(
                heavy, f"{place}: PLR(IW10) − PLR(IW3)", bound, unit="points", factor=100, key=f"{mode}_points"
            ),
            Evidence.of(
                minus(heavy, medium),
                f"{place}: the same, less that at 75 %",
                bound,
                unit="points",
                factor=100,
                weighs=False,
            ),
        ]
    return found


def i3_much(tables: Tables) -> Sequence[Evidence]:
    """Loss-rate ratio."""
    found = []
    for mode in MODES:
        three, ten = (link(tables, SLOW, mode, HEAVY[SLOW], arm, "plr") for arm in (IW3, IW10))
        place = where(SLOW, mode, HEAVY[SLOW])
        found.append(
            Evidence.of(median(ten / three), f"{place}: PLR(IW10) / PLR(IW3)", at_least(1.5), key=f"{mode}_times")
        )
        for arm, plr in ((IW3, three), (IW10, ten)):
            found.append(
                Evidence.of(median(plr), f"{place}: PLR({arm})", at_least(5), unit="%", factor=100, key=f"{mode}_{arm}")
            )
    return found


def i4(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Order of loss rates in the three plots."""
    found = []
    for mode, load in PLOTTED:
        three, mix, ten = (link(tables, SLOW, mode, load, arm, "plr") for arm in (IW3, MIX, IW10))
        place = where(SLOW, mode, load)
        found += [
            Evidence.of(median(ten - mix), f"{place}: PLR(IW10) − PLR(mix)", bound, unit="points", factor=100),
            Evidence.of(median(mix - three), f"{place}: PLR(mix) − PLR(IW3)", bound, unit="points", factor=100),
        ]
    return found


def _five_over_single(tables: Tables, bound: Bound) -> list[Evidence]:
    return [
        Evidence.of(
            quotient(*(median(link(tables, SLOW, mode, load, arm, "plr")) for mode in (FIVE, SINGLE))),
            f"{arm}, 64 kb/s, {percent(load)}: PLR five opens / single",
            bound,
            weighs=load == HEAVY[SLOW],
            key=f"{arm}_{1000 * load:.0f}",
        )
        for load in (HEAVY[SLOW], 0.75)
        for arm in (IW3, IW10)
    ]


def i5(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Ratio of the loss rate with five simultaneous opens to that with one."""
    return _five_over_single(tables, bound)


def i5_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Size of the ratio between the loss rates with five simultaneous opens and with one."""
    return _five_over_single(tables, bound)


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (loss_rates(t),)


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {"64 kb/s, five opens, 97.5 %, IW10": testbed.loaded(SLOW, FIVE, 0.975, IW10, duration_s=3600)}


CHAPTER = Chapter(
    experiments=(
        Experiment(
            name="slow",
            title="64 kb/s, single and five opens, all loads, IW3, IW10, mix",
            run=loaded.run_slow,
            weight=20,
            reads=(LENGTH, EXTREME, COUNTS, MIXED, SETUP),
        ),
        Experiment(
            name="fast", title="20 Mb/s, the same", run=loaded.run_fast, weight=40, reads=(COUNTS, MIXED, SETUP)
        ),
        Experiment(name="causes", title="the slow link with one thing taken away", run=causes.run, weight=3),
    ),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
