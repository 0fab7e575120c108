"""I6 to I8, I11, I12, I14 to I18, I25, I27: completion times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ackclock.stats import Estimate, bootstrap_interval
from ackclock.studies.iw10.bursts import DELAYED_ACKS, EVERY_ACK, LINUX_ACKS, unloaded_s
from ackclock.studies.iw10.loaded import cells, times
from ackclock.studies.iw10.testbed import (
    FAST,
    FIVE,
    HEAVY,
    IW3,
    IW10,
    LIGHT,
    MIX,
    RATES,
    SINGLE,
    SLOW,
    where,
)
from ackclock.study import Evidence, Tables, at_least, at_most, between
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


def _exceptions(tables: Tables, *, sack: bool) -> list[Evidence]:
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
    return [share, *_exceptions(tables, sack=True)]


def i21(tables: Tables) -> Sequence[Evidence]:
    """The same without SACK."""
    share = Evidence.of(
        no_worse(tables, sack=False), "without SACK: cells with UCT(IW10) ≤ 1.05 UCT(IW3)", at_least(90), unit="%"
    )
    return [share, *_exceptions(tables, sack=False)]


def i22(tables: Tables) -> Sequence[Evidence]:
    """What SACK is worth, cell by cell in the median."""
    found = []
    for arm in (IW3, IW10):
        per_cell = []
        for rate, mode, load in cells(tables):
            with_sack = times(tables, rate, mode, load, arm, "mean_s")
            without = times(tables, rate, mode, load, arm, "mean_s", sack=False)
            per_cell.append(100 * (1 - with_sack / without))
        found.append(
            Evidence.of(
                median(np.mean(per_cell, axis=0)), f"{arm}: gain by SACK, mean over cells", between(0, 10), unit="%"
            )
        )
        for rate in RATES:
            mode, load = FIVE, HEAVY[rate]
            with_sack = times(tables, rate, mode, load, arm, "mean_s")
            without = times(tables, rate, mode, load, arm, "mean_s", sack=False)
            found.append(
                Evidence.of(
                    median(100 * (1 - with_sack / without)),
                    f"{arm}, {where(rate, mode, load)}: gain by SACK",
                    between(0, 10),
                    unit="%",
                    weighs=False,
                )
            )
    return found


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


def i8(tables: Tables) -> Sequence[Evidence]:
    """Gain on the lightly loaded slow link, with and without delayed ACKs."""
    t = tables["light.times"]
    found = []
    for acks, bound, weighs in (
        (DELAYED_ACKS, between(2, 8), True),
        (EVERY_ACK, between(-1, 1), True),
        (LINUX_ACKS, between(-1, 1), False),
    ):
        own = t.filter(t["acks"] == acks).sort("seed")
        three, ten = (own.filter(own["arm"] == arm)["p50_s"].to_numpy() for arm in (IW3, IW10))
        found.append(
            Evidence.of(
                median(100 * (1 - ten / three)),
                f"{where(SLOW, SINGLE, LIGHT)}, {acks}: gain of IW10, median UCT",
                bound,
                unit="%",
                weighs=weighs,
            )
        )
    return found


def i11(tables: Tables) -> Sequence[Evidence]:
    """The advantage on the fast link with five at a time."""
    return [
        Evidence.of(median(gain(tables, FAST, FIVE, load)), f"{where(FAST, FIVE, load)}: UCT(IW10) / UCT(IW3)", bound)
        for load, bound in ((0.72, at_most(0.8)), (0.96, between(0.9, 1.2)))
    ]


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


def in_mix(tables: Tables, rate: str, mode: str, load: float, arm: str) -> Array:
    """Mean completion time of flows with this initial window in the mix over the same among their like."""
    iw = 3 if arm == IW3 else 10
    return times(tables, rate, mode, load, MIX, "mean_s", iw=iw) / times(tables, rate, mode, load, arm, "mean_s")


def i15(tables: Tables) -> Sequence[Evidence]:
    """IW10 in the mix, where the slide compares them."""
    return [
        Evidence.of(
            median(in_mix(tables, SLOW, mode, load, IW10)),
            f"{where(SLOW, mode, load)}: UCT of IW10 in the mix / alone",
            at_most(0.85),
        )
        for mode, load in ((SINGLE, HEAVY[SLOW]), (FIVE, 0.75), (FIVE, HEAVY[SLOW]))
    ]


def i16(tables: Tables) -> Sequence[Evidence]:
    """IW3 in the mix at light and medium load."""
    return [
        Evidence.of(
            median(in_mix(tables, rate, mode, load, IW3)),
            f"{where(rate, mode, load)}: UCT of IW3 in the mix / alone",
            between(1.00, 1.15),
        )
        for rate, mode, load in cells(tables)
        if load <= 0.75
    ]


def i17(tables: Tables) -> Sequence[Evidence]:
    """IW3 in the mix at high load."""
    heavy = [c for c in cells(tables) if c[2] >= 0.96]
    ratios = [in_mix(tables, *cell, IW3) for cell in heavy]

    def share(rows: Array) -> float:
        return 100 * float((np.median(rows, axis=0) <= 1.0).mean())

    return [
        Evidence.of(
            bootstrap_interval(np.column_stack(ratios), share),
            f"cells of {len(heavy)} in which IW3 is no slower in the mix than alone",
            at_least(50),
            unit="%",
        ),
        *(
            Evidence.of(median(ratio), f"{where(*cell)}: UCT of IW3 in the mix / alone", at_most(1.0), weighs=False)
            for cell, ratio in zip(heavy, ratios, strict=True)
        ),
    ]


def i18(tables: Tables) -> Sequence[Evidence]:
    """IW3 against IW10 in the mix, without what the round trips cost."""
    found = []
    for rate, mode, load in cells(tables):
        three, ten = (times(tables, rate, mode, load, MIX, "mean_s", iw=iw) for iw in (3, 10))
        saving = unloaded_s(tables, rate, IW3) - unloaded_s(tables, rate, IW10)
        found.append(
            Evidence.of(
                median((three - saving) / ten),
                f"{where(rate, mode, load)}: (UCT(IW3) − {saving:.2f} s) / UCT(IW10) in the mix",
                at_most(1.5),
            )
        )
    return found


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


def open_flows(tables: Tables, rate: str, mode: str, load: float, arm: str) -> Array:
    """Mean number of transactions open at a time (Little's law: arrival rate times mean completion time)."""
    started, mean, measured = (
        times(tables, rate, mode, load, arm, column) for column in ("started", "censored_mean_s", "measured_s")
    )
    return started * mean / measured
