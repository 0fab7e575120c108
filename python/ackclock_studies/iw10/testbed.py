"""The testbed of the slides as scenarios: servers, a limited link with a 150 ms delay each way, clients.
Constants are the slides' where given; open questions (B1 to B11, `readings.py`) are arguments.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ackclock._results.result import Batch
from ackclock.scenario import Scenario
from ackclock.study.plan import KERNEL
from ackclock.units import DURATION, whole

SLOW, FAST = "64 kb/s", "20 Mb/s"
RATES = (SLOW, FAST)
BPS = {SLOW: 64_000, FAST: 20_000_000}
QUEUE_PACKETS = {SLOW: 40, FAST: 500}
RTT_S = 0.3

SINGLE, FIVE = "single", "five"
MODES = (SINGLE, FIVE)
OPENS = {SINGLE: 1, FIVE: 5}

IW3, IW10, MIX = "IW3", "IW10", "mix"
ARMS = (IW3, MIX, IW10)

LIGHT = 0.10
LOADS = {SLOW: (LIGHT, 0.5, 0.75, 0.975), FAST: (0.25, 0.5, 0.72, 0.96)}
"""The slides give 75 % and 97.5 % at 64 kb/s, 72 % and 96 % at 20 Mb/s, besides "light" and "median"."""

HEAVY = {SLOW: 0.975, FAST: 0.96}

SEGMENT = 1448
SEGMENTS = 10
"""B1: "15 KB" is ten full segments."""

REQUEST = 200
PAIRS = 4
MTU = 1500

BOTTLENECK = 0
"""The limited link's number in the tables."""

PROFILE = "linux-3.0"
"""Closest profile to the study's kernels, 2.6.26 and 2.6.35 (initial RTO 3 s, rate halving, FACK)."""

KERNEL_LOADS = {SLOW: LOADS[SLOW], FAST: (0.25, 0.72, 0.96)}
"""Loads at kernel scale: fewer on the fast link, which takes up most of the kernel's time."""

KERNEL_HOSTS: dict[str, Any] = {"profile": "linux-6", "initial_rto": None}
"""Hosts at kernel scale: no setting changes the kernel's initial RTO of 1 s (B8)."""


def hosts(scale: str) -> dict[str, Any]:
    """Stack settings that are different at this scale."""
    return KERNEL_HOSTS if scale == KERNEL else {}


def where(rate: str, mode: str, load: float) -> str:
    """Cell name."""
    opens = "single opens" if mode == SINGLE else "five opens"
    return f"{rate}, {opens}, {100 * load:g} %"


def length(rate: str, scale: str) -> tuple[float, float]:
    """Simulated time of a run, s, and the warm-up before transactions count (B10)."""
    if scale == KERNEL:
        return (1200.0, 300.0) if rate == SLOW else (20.0, 5.0)
    if rate == SLOW:
        return 3600.0, 600.0
    return 60.0, 12.0


LASTING = (300.0, 30.0)
"""Duration and warm-up of cells with values that are still changing after a minute: the fast link at its highest load."""


def network(
    rate: str,
    *,
    queue: Mapping[str, Any] | None = None,
    reverse_limited: bool = False,
    rtts_s: Sequence[float] = (),
) -> dict[str, Any]:
    """One limited link. The delay follows the rate limit and is the same both ways, like netem's on the router.

    Parameters
    ----------
    rate
        "64 kb/s" or "20 Mb/s".
    queue
        Queue of the limited link, instead of the testbed's drop-tail.
    reverse_limited
        B6: the same rate and queue on the reverse link.
    rtts_s
        B4: a round-trip time for each pair, on its access link.
    """
    delay = f"{1e6 * RTT_S / 2:.0f} us" if not rtts_s else "0 s"
    limited = {
        "rate": f"{BPS[rate]} bit/s",
        "delay": delay,
        "queue": dict(queue) if queue else {"kind": "drop-tail", "limit": f"{QUEUE_PACKETS[rate]} packets"},
    }
    back = limited if reverse_limited else {"delay": delay}
    shape: dict[str, Any] = {"topology": "chain"}
    if rtts_s:
        shape = {"topology": "wishbone", "access_list": [{"delay": f"{1e6 * rtt / 2:.0f} us"} for rtt in rtts_s]}
    return {**shape, "bottleneck": limited, "reverse": {"bottleneck": back}}


def stack(
    *,
    profile: str = PROFILE,
    sack: bool = True,
    congestion_control: str = "cubic",
    initial_rto: str | None = "3 s",
    delayed_ack: bool = True,
    **more: Any,
) -> dict[str, Any]:
    """Host settings (B8, B9), as keys of a flow group."""
    settings: dict[str, Any] = {"sack": sack, "delayed_ack": delayed_ack, **more}
    if initial_rto is not None:
        settings["initial_rto"] = initial_rto
    return {"profile": profile, "congestion_control": congestion_control, "stack": settings}


def workload(
    arrivals: Mapping[str, Any],
    *,
    opens: int = 1,
    segments: int = SEGMENTS,
    mix: Sequence[tuple[int, float]] = (),
    **more: Any,
) -> dict[str, Any]:
    """Transactions: connect, 200-byte request, response, close by the server."""
    made: dict[str, Any] = {
        "kind": "transactions",
        "bytes": f"{segments * SEGMENT} bytes",
        "request": f"{REQUEST} bytes",
        "arrivals": dict(arrivals),
        "batch": opens,
        **more,
    }
    if mix:
        made["initial_window_mix"] = [{"segments": window, "share": share} for window, share in mix]
    return made


def loaded(
    rate: str,
    mode: str,
    load: float,
    arm: str | int,
    *,
    duration_s: float,
    segments: int = SEGMENTS,
    load_counts: str = "data",
    long_flows: int = 0,
    rtts_s: Sequence[float] = (),
    queue: Mapping[str, Any] | None = None,
    reverse_limited: bool = False,
    mix_by: str = "client",
    record: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Scenario:
    """One cell of the study.

    Parameters
    ----------
    rate, mode, load
        Link, simultaneous opens, offered load as a fraction of the link (B2: data packets of the responses).
    arm
        "IW3", "IW10", "mix" (half and half), or an initial window.
    duration_s
        Simulated time.
    segments
        Segments of a response (B1).
    load_counts
        "data", or "all" to count every packet of the data direction (B2).
    long_flows
        Number of additional bulk flows, with IW3 in every arm.
    queue, reverse_limited, rtts_s
        As for `network`.
    mix_by
        Unit that draws its window in the mix: a "client" for all its connections, or each "connection" (B5).
    record
        Additional records.
    **settings
        Stack settings, as for `stack`.
    """
    arrivals = {"kind": "poisson", "load": load, "load_counts": load_counts}
    host = stack(**settings)
    long = stack(**settings, initial_window=3)
    mix: Sequence[tuple[int, float]] = ()
    if arm == MIX:
        mix = ((3, 0.5), (10, 0.5))
    else:
        window = {IW3: 3, IW10: 10}.get(str(arm), arm)
        host["stack"]["initial_window"] = window
    drawn_by = {"client": "batch", "connection": "transaction"}[mix_by]
    made = workload(arrivals, opens=OPENS[mode], segments=segments, mix=mix, mix_by=drawn_by)
    groups: list[dict[str, Any]] = []
    if long_flows:
        groups.append({**long, "count": long_flows, "workload": {"kind": "bulk"}})
    groups.append({**host, "count": PAIRS, "workload": made})
    return Scenario.from_dict(
        {
            "name": f"{where(rate, mode, load)}, {arm}",
            "duration": f"{duration_s:g} s",
            "network": network(rate, queue=queue, reverse_limited=reverse_limited, rtts_s=rtts_s),
            "flows": groups,
            "record": dict(record or {}),
        }
    )


TRANSACTION_COLUMNS = (
    "idx",
    "flow",
    "initial_window",
    "arrival_s",
    "connect_s",
    "total_s",
    "segments_sent",
    "retransmissions",
    "rtos",
    "syn_retransmissions",
    "synack_retransmissions",
)
"""Columns read by `transactions_of`."""

LINK_COLUMNS = (
    "link",
    "arrivals",
    "arrivals_syn_fin",
    "dropped_queue",
    "dropped_queue_syn_fin",
    "mean_packets",
    "max_packets",
    "busy_s",
    "seconds_queued",
    "max_wait_s",
)
"""Columns read by `bottleneck_of`."""


def transactions_of(batch: Batch) -> pl.DataFrame:
    """Transactions with the columns used by the study.

    Returns
    -------
    polars.DataFrame
        seed, iw, start_s, connect_s and total_s (null where it did not happen), retransmissions, rtos, syn_retransmissions (of SYN and SYN-ACK),
        syns_again (of the SYN alone).
    """
    return batch.transactions.select(
        "seed",
        "idx",
        "flow",
        pl.col("initial_window").alias("iw"),
        pl.col("arrival_s").alias("start_s"),
        "connect_s",
        "total_s",
        "segments_sent",
        "retransmissions",
        "rtos",
        (pl.col("syn_retransmissions") + pl.col("synack_retransmissions")).alias("syn_retransmissions"),
        pl.col("syn_retransmissions").alias("syns_again"),
    )


def bottleneck_of(batch: Batch) -> pl.DataFrame:
    """The limited link over the whole run, one row per seed.

    Returns
    -------
    polars.DataFrame
        seed, arrivals, drops, plr (drops over arrivals), mean_queue and max_queue (packets), plr_data (without SYN and FIN), busy
        (fraction of time), sampled (fraction of 1-s instants with a queue: the slides' utilisation, B11), max_wait_s.
    """
    duration_s = whole(batch.scenario.duration, DURATION) / 1e9
    return batch.links.filter(pl.col("link") == BOTTLENECK).select(
        "seed",
        "arrivals",
        pl.col("dropped_queue").alias("drops"),
        (pl.col("dropped_queue") / pl.col("arrivals")).alias("plr"),
        pl.col("mean_packets").alias("mean_queue"),
        pl.col("max_packets").alias("max_queue"),
        (
            (pl.col("dropped_queue") - pl.col("dropped_queue_syn_fin"))
            / (pl.col("arrivals") - pl.col("arrivals_syn_fin"))
        ).alias("plr_data"),
        (pl.col("busy_s") / duration_s).alias("busy"),
        (pl.col("seconds_queued") / math.floor(duration_s)).alias("sampled"),
        pl.col("max_wait_s"),
    )
