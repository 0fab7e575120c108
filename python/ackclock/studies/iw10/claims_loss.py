"""I1 to I5, I9, I10, I13: losses and queues."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ackclock.stats import bootstrap_interval
from ackclock.studies.iw10.loaded import cells, link
from ackclock.studies.iw10.testbed import FAST, FIVE, HEAVY, IW3, IW10, MIX, SINGLE, SLOW, where
from ackclock.study import (
    Evidence,
    Range,
    Tables,
    Verdict,
    above,
    at_least,
    at_most,
    between,
    exactly,
)
from ackclock.study.estimates import Array, median

HOLDS, FAILS, UNDECIDED = Verdict.HOLDS, Verdict.FAILS, Verdict.UNDECIDED


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


def i9(tables: Tables) -> Sequence[Evidence]:
    """Serialisation of a response and the longest queueing delay on the slow link."""
    t = tables["exact.serialisation"]
    return [
        Evidence(
            label="10 segments at 64 kb/s: last bit after first",
            value=float(t["serialisation_s"][0]),
            bound=between(1.875 * 0.99, 1.875 * 1.01),
            unit="s",
        ),
        Evidence(
            label="longest queueing delay, full queue of 40 packets of 1500 B",
            value=float(t["longest_queueing_s"][0]),
            bound=between(7.5 * 0.97, 7.5 * 1.03),
            unit="s",
        ),
    ]


def i10(tables: Tables) -> Sequence[Evidence]:
    """The deterministic bursts."""
    t = tables["exact.bursts"]
    found = []
    for row in t.iter_rows(named=True):
        found.append(
            Evidence(
                label=f"{row['case']}: drops",
                value=float(row["drops"]),
                bound=exactly(row["expected"]) if row["expected"] is not None else Range(),
                unit="packets",
                weighs=row["isolated"],
            )
        )
    return found


def i13(tables: Tables) -> Sequence[Evidence]:
    """Mean queue with IW10 over IW3."""
    found = []
    for rate, load in ((FAST, HEAVY[FAST]), (SLOW, 0.75)):
        for mode in (SINGLE, FIVE):
            three, ten = (link(tables, rate, mode, load, arm, "mean_queue") for arm in (IW3, IW10))
            found.append(
                Evidence.of(median(ten / three), f"{where(rate, mode, load)}: mean queue, IW10 / IW3", at_least(1.2))
            )
    return found
