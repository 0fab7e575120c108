"""I19, I20, I23, I24, I26, I28, I29: long flows, photographs, the first flight, the round table, sensitivity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from ackclock.studies.iw10 import background, photos
from ackclock.studies.iw10.testbed import HEAVY, IW3, IW10, SLOW
from ackclock.study import Evidence, Range, Tables, above, at_least, between, exactly
from ackclock.study.estimates import Array, gain, median, ratio


def long_flows(tables: Tables, load: float) -> Array:
    """Throughput of the long flows under transactions of IW10 over that under IW3, seed by seed."""
    t = tables["background.flows"].filter(pl.col("load") == load).sort("seed")
    three, ten = (t.filter(pl.col("arm") == arm)["goodput_bps"].to_numpy() for arm in (IW3, IW10))
    return np.asarray(ten / three)


def i19(tables: Tables) -> Sequence[Evidence]:
    """Long flows beside transactions."""
    found = [
        Evidence.of(
            median(long_flows(tables, load)),
            f"{100 * load:g} %: throughput of the long flows, IW10 / IW3",
            at_least(0.95),
        )
        for load in background.LOADS
    ]
    highest = HEAVY[SLOW]
    found.append(
        Evidence.of(median(long_flows(tables, highest)), f"{100 * highest:g} %: the same, above 1", above(1.0))
    )
    return found


def i20(tables: Tables) -> Sequence[Evidence]:
    """Seeds each way."""
    quotient = long_flows(tables, 0.75)
    return [
        Evidence(label=f"75 %: runs {name}", value=float(count), bound=at_least(1), unit="runs", seeds=quotient.size)
        for name, count in (
            ("in which the long flows gain", int((quotient > 1).sum())),
            ("in which they lose", int((quotient < 1).sum())),
        )
    ]


def photo(tables: Tables, arm: str, column: str, path: str = photos.WIDE) -> Array:
    """A column of the photograph pages, one value per seed."""
    t = tables["photos.pages"].filter((pl.col("path") == path) & (pl.col("arm") == arm)).sort("run")
    return t[column].to_numpy().astype(np.float64)


def i23(tables: Tables) -> Sequence[Evidence]:
    """IW10 without SACK against IW3 with SACK."""
    found = []
    for path in photos.PATHS:
        base = photo(tables, photos.IW3_SACK, "mean_s", path)
        for arm, published in ((photos.IW10_NEWRENO, "6.7 %"), (photos.IW10_SACK, "13.3 %")):
            weighs = path == photos.WIDE and arm == photos.IW10_NEWRENO
            found.append(
                Evidence.of(
                    gain(base, photo(tables, arm, "mean_s", path)),
                    f"{path}: mean response, {arm} below {photos.IW3_SACK} (the study: {published})",
                    between(2, 12),
                    unit="%",
                    weighs=weighs,
                )
            )
    return found


def i24(tables: Tables) -> Sequence[Evidence]:
    """Retransmission rates."""
    return [
        Evidence.of(
            ratio(
                photo(tables, arm, "retransmission_rate", path),
                photo(tables, photos.IW3_SACK, "retransmission_rate", path),
            ),
            f"{path}: retransmission rate, {arm} / {photos.IW3_SACK}",
            between(1.05, 1.5),
            weighs=path == photos.WIDE,
        )
        for path in photos.PATHS
        for arm in (photos.IW10_SACK, photos.IW10_NEWRENO)
    ]


def i26(tables: Tables) -> Sequence[Evidence]:
    """Segments of the first flight."""
    t = tables["exact.first_flight"]
    return [
        Evidence(
            label=f"first flight, FIN and cwnd: {row['fin']}",
            value=float(row["segments"]),
            bound=exactly(row["expected"]),
            unit="segments",
        )
        for row in t.iter_rows(named=True)
    ]


def i28(tables: Tables) -> Sequence[Evidence]:
    """The round table of RFC 6928."""
    t = tables["exact.rounds"]
    wrong = t.filter(pl.col("rounds") != pl.col("published")).height
    return [Evidence(label=f"of {t.height} entries, those that differ", value=float(wrong), bound=exactly(0))]


def i29(tables: Tables) -> Sequence[Evidence]:
    """How far other readings move the ratio of completion times."""
    t = tables["sensitivity.times"]
    found = []
    for (name,), own in t.group_by("reading", maintain_order=True):
        by_arm = {arm: own.filter(pl.col("arm") == arm).sort("seed")["mean_s"].to_numpy() for arm in (IW3, IW10)}
        found.append(
            Evidence.of(median(by_arm[IW10] / by_arm[IW3]), f"{name}: UCT(IW10) / UCT(IW3)", Range(), weighs=False)
        )
    return found
