"""Numbers from tables: sharing, utilisation, means over time. Tables in, numbers out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from ackclock.scenario import Scenario

__all__ = ["capacity_bps", "goodput_bps", "jain", "sample_mean", "utilisation"]

_PAYLOAD = 1448
"""Payload of a full segment with timestamps, bytes."""


def jain(values: Iterable[float]) -> float:
    """Jain's index of fairness: (sum x)^2 / (n sum x^2), from 1/n (one has all) to 1 (equal).

    Parameters
    ----------
    values
        One per flow, not negative.

    Returns
    -------
    float
        NaN without values, or if all are zero.

    References
    ----------
    Jain, Chiu, Hawe: A Quantitative Measure of Fairness, DEC TR-301, 1984.

    Examples
    --------
    >>> jain([1, 1, 1, 1]), jain([1, 0, 0, 0])
    (1.0, 0.25)
    """
    shares = list(values)
    squares = len(shares) * sum(x * x for x in shares)
    return sum(shares) ** 2 / squares if squares else float("nan")


def capacity_bps(scenario: Scenario, *, payload: int = _PAYLOAD) -> float:
    """Goodput of a full bottleneck.

    Parameters
    ----------
    scenario
        Its bottleneck's rate and framing count; infinite if no link has a rate.
    payload
        Bytes of a full segment's payload; the rest of the packet of 1500 bytes is headers.
    """
    from ackclock.scenario.network import MTU
    from ackclock.units import SIZE, whole

    rate = scenario.network.bottleneck_bps(scenario.flows[0].path)
    return float("inf") if rate is None else rate * payload / (MTU + whole(scenario.network.framing, SIZE))


def utilisation(flows: pl.DataFrame, scenario: Scenario, *, payload: int = _PAYLOAD) -> float:
    """Share of the bottleneck's capacity that became goodput, over the whole run.

    Parameters
    ----------
    flows
        `Run.flows` of one run.
    scenario
        What was run.
    payload
        As in `capacity_bps`.
    """
    from ackclock.units import DURATION, whole

    duration_s = whole(scenario.duration, DURATION) / 1e9
    return float(flows["bytes_acked"].sum()) * 8 / duration_s / capacity_bps(scenario, payload=payload)


def goodput_bps(goodput: pl.DataFrame, *, start_s: float = 0.0, stop_s: float = float("inf")) -> pl.DataFrame:
    """Mean goodput of each flow over a part of the run.

    Parameters
    ----------
    goodput
        `Run.goodput`: equal intervals, each named by its end.
    start_s, stop_s
        Intervals that end in (start, stop] count.

    Returns
    -------
    polars.DataFrame
        Columns `flow`, `goodput_bps`, in order of flows.
    """
    import polars as pl

    inside = goodput.filter((pl.col("t_s") > start_s) & (pl.col("t_s") <= stop_s))
    return inside.group_by("flow").agg(pl.col("goodput_bps").mean()).sort("flow")


def sample_mean(samples: pl.DataFrame, column: str, *, start_s: float = 0.0, stop_s: float = float("inf")) -> float:
    """Mean of a column of evenly spaced samples.

    Parameters
    ----------
    samples
        `Run.samples` or `Run.queue_samples`.
    column
        For instance "cwnd" (segments) or "srtt_s".
    start_s, stop_s
        Samples in [start, stop) count.

    Returns
    -------
    float
        NaN without samples.
    """
    import polars as pl

    mean = samples.filter((pl.col("t_s") >= start_s) & (pl.col("t_s") < stop_s))[column].mean()
    return float(mean) if isinstance(mean, int | float) else float("nan")
