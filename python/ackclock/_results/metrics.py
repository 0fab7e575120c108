"""Numbers computed from tables: fairness, utilisation, means over time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from ackclock.scenario import Flows, Scenario

__all__ = [
    "capacity_bps",
    "completion_s",
    "convergence_s",
    "friendliness",
    "goodput_bps",
    "jain",
    "jain_windows",
    "ramp_up_s",
    "rtt_exponent",
    "sample_mean",
    "utilisation",
    "variation",
]

_PAYLOAD = 1448
"""Payload of a full segment with timestamps, bytes."""
_TCP = 40
"""IPv4 and TCP headers without options, bytes."""
_UDP = 28
"""IPv4 and UDP headers, bytes."""


def jain(values: Iterable[float]) -> float:
    """Jain's fairness index: (sum x)^2 / (n sum x^2), from 1/n (one flow has everything) to 1 (all are equal).

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


def capacity_bps(scenario: Scenario, *, payload: int | None = None, group: int = 0) -> float:
    """Goodput of a full bottleneck.

    Parameters
    ----------
    scenario
        Supplies the bottleneck's rate and the framing. The result is infinite if no link has a rate.
    payload
        Payload of a 1500-byte packet, bytes; the rest is headers. None: packets as sent by the scenario's flows; with
        several flows, those with the most payload.
    group
        Number of the flow group whose path is used.
    """
    from ackclock.scenario._parts import MTU
    from ackclock.units import SIZE, whole

    rate = scenario.network.bottleneck_bps(scenario.flows[group].path)
    if rate is None:
        return float("inf")
    framing = whole(scenario.network.framing, SIZE)
    if payload is not None:
        return rate * payload / (MTU + framing)
    return rate * max(one / (whole_packet + framing) for one, whole_packet in map(_packet, scenario.flows))


def _packet(group: Flows) -> tuple[int, int]:
    """Payload of a flow group's full packet, and the packet's size, bytes."""
    from ackclock.scenario._parts import MTU
    from ackclock.units import SIZE, whole

    if group.is_plain or group.congestion_control.startswith("pcc-"):
        asked = getattr(group.workload, "payload", None)
        payload = MTU - _UDP if asked is None else whole(asked, SIZE)
        return payload, payload + _UDP
    stack = group.stack
    headers = _TCP if stack is not None and stack.timestamps is False else MTU - _PAYLOAD
    asked = None if stack is None else stack.smss
    payload = MTU - headers if asked is None else whole(asked, SIZE)
    return payload, payload + headers


def utilisation(flows: pl.DataFrame, scenario: Scenario, *, payload: int | None = None) -> float:
    """Fraction of the bottleneck's capacity that became goodput, over the whole run.

    Parameters
    ----------
    flows
        `Run.flows` of one run.
    scenario
        Scenario of the run.
    payload
        See `capacity_bps`.
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
        Columns `flow`, `goodput_bps`, in flow order.
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


def jain_windows(
    goodput: pl.DataFrame, window_s: float, *, start_s: float = 0.0, stop_s: float = float("inf")
) -> pl.DataFrame:
    """Jain's index over time windows.

    Parameters
    ----------
    goodput
        `Run.goodput` of one run: equal intervals that divide the window.
    window_s
        Length of a window, seconds.
    start_s, stop_s
        Windows within (start, stop] count.

    Returns
    -------
    polars.DataFrame
        Columns `t_s` (end of the window), `flows` (with data in the window), `jain`.
    """
    import polars as pl

    if not window_s > 0:
        raise ValueError(f"window_s is {window_s}; a positive number of seconds is needed")
    inside = goodput.filter((pl.col("t_s") > start_s + 1e-9) & (pl.col("t_s") <= stop_s + 1e-9))
    # an interval that ends on a window boundary belongs to the window that ends there
    number = ((pl.col("t_s") - start_s) / window_s - 1e-9).floor()
    shares = inside.group_by((start_s + (number + 1) * window_s).alias("t_s"), "flow").agg(pl.col("goodput_bps").mean())
    return (
        shares.group_by("t_s")
        .agg(
            pl.len().alias("flows"),
            (pl.col("goodput_bps").sum() ** 2 / (pl.len() * (pl.col("goodput_bps") ** 2).sum())).alias("jain"),
        )
        .sort("t_s")
    )


def variation(values: Iterable[float]) -> float:
    """Coefficient of variation: sample standard deviation over mean.

    Parameters
    ----------
    values
        Over time, or one per run.

    Returns
    -------
    float
        NaN with fewer than two values, or if their mean is zero.

    Examples
    --------
    >>> variation([1.0, 1.0, 1.0])
    0.0
    """
    numbers = list(values)
    n = len(numbers)
    mean = sum(numbers) / n if n else 0.0
    if n < 2 or mean == 0:
        return float("nan")
    return float((sum((x - mean) ** 2 for x in numbers) / (n - 1)) ** 0.5 / mean)


def ramp_up_s(
    goodput: pl.DataFrame, share_bps: float, rtt_s: float, *, level: float = 0.9, over: int = 4, hold: int = 10
) -> float:
    """Time at which a flow reaches its share: its moving average over `over` round trips reaches it and stays there.

    Parameters
    ----------
    goodput
        Rows of one flow of `Run.goodput`, intervals not longer than a round trip.
    share_bps
        Goodput of the flow's full share, bit/s.
    rtt_s
        Round-trip time, seconds.
    level
        Fraction of `share_bps` that must be reached.
    over, hold
        Length of the moving average, and how long it must stay at the level, in round trips.

    Returns
    -------
    float
        End of the first such average, seconds from the start of the run; infinite if there is none.
    """
    import numpy as np

    t, bps = goodput["t_s"].to_numpy(), goodput["goodput_bps"].to_numpy().astype(float)
    if t.size < 2:
        return float("inf")
    step = float(t[1] - t[0])
    width, stay = max(1, round(over * rtt_s / step)), max(1, round(hold * rtt_s / step))
    if t.size < width:
        return float("inf")
    average = np.convolve(bps, np.ones(width) / width, mode="valid")
    up = average >= level * share_bps
    run = 0
    for i, above in enumerate(up):
        run = run + 1 if above else 0
        if run > stay:
            return float(t[i - stay + width - 1])
    return float("inf")


def convergence_s(
    goodput: pl.DataFrame, fair_bps: float, *, delta: float = 0.1, start_s: float = 0.0, hold_s: float = 5.0
) -> float:
    """Time until a flow's throughput comes within `delta` of its fair share and stays there.

    Parameters
    ----------
    goodput
        Rows of one flow of `Run.goodput`.
    fair_bps
        Fair share, bit/s.
    delta
        Relative distance that counts as fair.
    start_s
        Time at which the flow, or the last of the flows with which it shares, started.
    hold_s
        Time for which the flow must stay there, seconds.

    Returns
    -------
    float
        Seconds from `start_s`; infinite if the flow never stays there.
    """
    since = None
    for t, bps in goodput.select("t_s", "goodput_bps").iter_rows():
        if t <= start_s:
            continue
        if abs(bps - fair_bps) <= delta * fair_bps:
            since = t if since is None else since
            if t - since >= hold_s:
                return float(since - start_s)
        else:
            since = None
    return float("inf")


def friendliness(mixed: Iterable[float], alone: Iterable[float]) -> float:
    """Fraction of their throughput that standard flows retain when half of them are replaced by other flows; 1 is neutral.

    Parameters
    ----------
    mixed
        Throughput of each standard flow when half of all flows run something else.
    alone
        Throughput of each when all flows are standard.

    Returns
    -------
    float
        Ratio of the means.
    """
    with_others, among_their_like = list(mixed), list(alone)
    base = sum(among_their_like) / len(among_their_like) if among_their_like else 0.0
    if not with_others or base == 0:
        return float("nan")
    return sum(with_others) / len(with_others) / base


def rtt_exponent(rtts_s: Iterable[float], throughputs: Iterable[float]) -> float:
    """Dependence of throughput on RTT: the exponent d in throughput ~ RTT^-d, by least squares on logarithms.

    Parameters
    ----------
    rtts_s, throughputs
        One positive value per flow.

    Returns
    -------
    float
        0 if throughput does not depend on the RTT, 1 if it is inversely proportional; NaN with fewer than two flows.
    """
    import numpy as np

    x, y = np.log(np.fromiter(rtts_s, float)), np.log(np.fromiter(throughputs, float))
    if x.size < 2 or x.size != y.size or np.ptp(x) == 0:
        return float("nan")
    return float(-np.polyfit(x, y, 1)[0])


def completion_s(flows: pl.DataFrame, flow: int, *, handshake: bool = True) -> float:
    """Time from a flow's first SYN to the ACK of its last byte.

    Parameters
    ----------
    flows
        `Run.flows` of one run.
    flow
        Flow number.
    handshake
        Whether to include the handshake.

    Returns
    -------
    float
        Seconds; infinite if the flow did not complete.
    """
    import polars as pl

    row = flows.filter(pl.col("flow") == flow).row(0, named=True)
    if row["completion_s"] is None:
        return float("inf")
    return float(row["completion_s"] - (0.0 if handshake else row["established_s"] - row["start_s"]))
