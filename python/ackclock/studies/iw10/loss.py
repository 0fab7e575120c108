"""Packets lost with either initial window (I1 to I5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ackclock.plot import Figure
from ackclock.report import Block
from ackclock.scenario import Scenario
from ackclock.stats import bootstrap_interval
from ackclock.studies.iw10 import loaded, testbed
from ackclock.studies.iw10.loaded import cells, link
from ackclock.studies.iw10.style import bars, estimates, panels, percent
from ackclock.studies.iw10.testbed import ARMS, FIVE, HEAVY, IW3, IW10, MIX, MODES, RATES, SINGLE, SLOW, where
from ackclock.study import (
    Chapter,
    Claim,
    Criterion,
    Evidence,
    Experiment,
    Tables,
    above,
    at_least,
    at_most,
)
from ackclock.study.estimates import Array, median


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


def i1(tables: Tables) -> Sequence[Evidence]:
    """Share of cells in which the median loss rate with IW10 is at least that with IW3."""
    columns = []
    for rate, mode, load in cells(tables):
        three, ten = (link(tables, rate, mode, load, arm, "plr") for arm in (IW3, IW10))
        if three.max(initial=0.0) > 0 or ten.max(initial=0.0) > 0:
            columns += [three, ten]
    matrix = np.column_stack(columns)

    def share(rows: Array) -> float:
        middle = np.median(rows, axis=0)
        return 100 * float((middle[1::2] >= middle[0::2]).mean())

    value = bootstrap_interval(matrix, share)
    return [
        Evidence.of(
            value, f"cells with PLR(IW10) ≥ PLR(IW3), of {len(columns) // 2} with any loss", at_least(90), unit="%"
        )
    ]


def i2(tables: Tables) -> Sequence[Evidence]:
    """Difference of loss rates at no more than 75 %, single opens."""
    return [
        Evidence.of(
            median(link(tables, rate, SINGLE, load, IW10, "plr") - link(tables, rate, SINGLE, load, IW3, "plr")),
            f"{where(rate, SINGLE, load)}: PLR(IW10) − PLR(IW3)",
            at_most(2),
            unit="points",
            factor=100,
        )
        for rate, mode, load in cells(tables)
        if mode == SINGLE and load <= 0.75
    ]


def i3(tables: Tables) -> Sequence[Evidence]:
    """Loss rates at the highest load on the slow link, five at a time."""
    three, ten = (link(tables, SLOW, FIVE, HEAVY[SLOW], arm, "plr") for arm in (IW3, IW10))
    place = where(SLOW, FIVE, HEAVY[SLOW])
    return [
        Evidence.of(median(ten / three), f"{place}: PLR(IW10) / PLR(IW3)", at_least(1.5)),
        Evidence.of(median(three), f"{place}: PLR(IW3)", at_least(5), unit="%", factor=100),
        Evidence.of(median(ten), f"{place}: PLR(IW10)", at_least(5), unit="%", factor=100),
    ]


def i4(tables: Tables) -> Sequence[Evidence]:
    """Order of loss rates in the three cells of the slide."""
    found = []
    for mode, load in ((SINGLE, HEAVY[SLOW]), (FIVE, 0.75), (FIVE, HEAVY[SLOW])):
        three, mix, ten = (link(tables, SLOW, mode, load, arm, "plr") for arm in (IW3, MIX, IW10))
        place = where(SLOW, mode, load)
        found += [
            Evidence.of(median(ten - mix), f"{place}: PLR(IW10) − PLR(mix)", above(0), unit="points", factor=100),
            Evidence.of(median(mix - three), f"{place}: PLR(mix) − PLR(IW3)", above(0), unit="points", factor=100),
        ]
    return found


def i5(tables: Tables) -> Sequence[Evidence]:
    """Five at a time over one at a time."""
    return [
        Evidence.of(
            median(link(tables, SLOW, FIVE, load, arm, "plr") / link(tables, SLOW, SINGLE, load, arm, "plr")),
            f"{arm}, 64 kb/s, {100 * load:g} %: PLR five opens / single",
            at_least(3),
        )
        for load in (HEAVY[SLOW],)
        for arm in (IW3, IW10)
    ]


_MEDIANS = "Medians over seeds; an arm is compared with another under the same arrivals."

CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="I1",
        place="slides: packet loss rate; RFC 6928, Appendix A",
        statement="IW10 loses more packets than IW3.",
        direction=Criterion(
            measure=i1,
            reading=f"In at least 90 % of the cells (rate, opens, load) in which anything is lost. {_MEDIANS}",
        ),
    ),
    Claim(
        id="I2",
        place="slides: packet loss rate; RFC 6928, Appendix A",
        statement="Up to very high load the increase is modest.",
        direction=Criterion(
            measure=i2,
            reading="At most 2 points in each cell with single opens and a load of up to 75 %.",
        ),
        note="Single opens lose 4 points more with IW10 on the slow link at 75 %: 40 packets of queue do not hold bursts of ten that overlap. Elsewhere it holds.",
    ),
    Claim(
        id="I3",
        place="slides: packet loss rate; RFC 6928, Appendix A",
        statement="Under extreme load IW10 loses a lot more, and both lose very much.",
        direction=Criterion(
            measure=i3,
            reading="64 kb/s, five opens at a time, 97.5 %: at least 1.5 times, both 5 % or more.",
        ),
        note="Both lose a third of their packets or more, in a collapse that retransmissions keep up; the initial window changes it by a third only.",
    ),
    Claim(
        id="I4",
        place="slides: packet loss rate, three bars at 64 kb/s",
        statement="Loss rates: IW10 above the half-and-half mix, the mix above IW3.",
        direction=Criterion(
            measure=i4,
            reading="Strictly, in each of the three cells.",
        ),
    ),
    Claim(
        id="I5",
        place="slides: packet loss rate",
        statement="Simultaneous opens lose far more than single opens.",
        direction=Criterion(
            measure=i5,
            reading="64 kb/s, 97.5 %: at least three times.",
        ),
        note="At 97.5 % single opens collapse as well (14 and 28 % lost): what losses make to be sent again takes the offered load beyond the link.",
    ),
)


def blocks(t: Tables) -> Sequence[Block]:
    """For the report."""
    return (loss_rates(t),)


def scenarios() -> Mapping[str, Scenario]:
    """As written."""
    return {"64 kb/s, five opens, 97.5 %, IW10": testbed.loaded(SLOW, FIVE, 0.975, IW10, duration_s=3600)}


CHAPTER = Chapter(
    title="Loss",
    experiments=(
        Experiment(
            name="loaded",
            title="both links, single and five opens, all loads, IW3, IW10, mix",
            run=loaded.run,
            weight=60,
        ),
    ),
    claims=CLAIMS,
    blocks=blocks,
    scenarios=scenarios,
)
