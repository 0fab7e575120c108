"""The common part of every cell: a dumbbell, random starts, a warm-up. All values are our choice; the RFC specifies none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ackclock.evaluate.situation import PLACE, Cell, Scale

PACKET = 1500 * 8
"""Packet size, bits."""

PAYLOAD = 1448 / 1500
"""Fraction of a full packet, with timestamps, that is application payload."""

LEAST_BDP = 4.0
"""Minimum bandwidth-delay product, packets. Paths with a smaller one are omitted, except in row 18."""

LEAST_BUFFER = 4
"""Smallest buffer, packets."""


def bdp_packets(mbit: float, rtt_ms: float) -> float:
    """Return the bandwidth-delay product in packets."""
    return mbit * 1e3 * rtt_ms / PACKET


def buffer_packets(mbit: float, rtt_ms: float, bdp: float) -> int:
    """Return the size of a buffer of this many BDP, in packets."""
    return max(LEAST_BUFFER, round(bdp * bdp_packets(mbit, rtt_ms)))


def warm_up_s(rtt_ms: float) -> float:
    """Return the duration of the warm-up, which is not measured, s."""
    return max(10.0, 50 * rtt_ms / 1e3)


def measured_s(rtt_ms: float) -> float:
    """Return the duration of the measured part, s."""
    return max(50.0, 200 * rtt_ms / 1e3)


def flows(name: str, controller: str = PLACE, *, rtt_ms: float, count: int = 1, **more: Any) -> dict[str, Any]:
    """Return a group of bulk flows that start within two round trips, or within 100 ms if that is longer."""
    return {
        "name": name,
        "count": count,
        "congestion_control": controller,
        "workload": {"kind": "bulk"},
        "start": {"kind": "uniform", "low": "0 s", "high": f"{max(100.0, 2 * rtt_ms):g} ms"},
        **more,
    }


VOICE: Mapping[str, Any] = {"name": "probe", "workload": {"kind": "voice"}}
"""A telephone call; its delay shows the queueing delay of every flow in the same queue."""


def camera(controller: str = "cubic") -> dict[str, Any]:
    """Return real-time video over TCP, 1.2 Mbit/s: 30 frames a second in groups of 30, dropped when 250 ms late. The
    sizes are those of C4's tests.
    """
    frames = {"kind": "media", "first": "37500 bytes", "other": "3750 bytes", "drop_late": "250 ms"}
    return {"name": "camera", "congestion_control": controller, "workload": frames}


def shorts(name: str, controller: str, *, load: float) -> dict[str, Any]:
    """Return short transfers: Poisson arrivals, lognormal sizes with a median of 30 kB. The limit on open transfers is
    so high that none is refused.
    """
    sizes = {"kind": "lognormal", "median": "30000 bytes", "sigma": 1.5}
    arrivals = {"kind": "poisson", "load": load}
    return {
        "name": name,
        "congestion_control": controller,
        "workload": {"kind": "transactions", "bytes": sizes, "arrivals": arrivals, "max_open": 10_000},
    }


def dumbbell(
    groups: Sequence[Mapping[str, Any]],
    *,
    mbit: float,
    rtt_ms: float,
    bdp: float | None = None,
    packets: int | None = None,
    queue: Mapping[str, Any] | None = None,
    forward: Mapping[str, Any] | None = None,
    backward: Mapping[str, Any] | None = None,
    access: Sequence[Mapping[str, Any]] | None = None,
    seconds: float | None = None,
    warm_up: float | None = None,
    record: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a scenario's keys.

    Parameters
    ----------
    groups
        Groups of flows.
    mbit, rtt_ms
        Rate of the bottleneck, and RTT of the whole path.
    bdp, packets
        Size of its buffer, in one of these units.
    queue
        Queue instead of drop-tail; a given buffer becomes its limit.
    forward, backward
        Further keys of the bottleneck, for one direction each.
    access
        Links of the senders, assigned in turn; by default each is ten times as fast as the bottleneck, with a jitter of
        one packet.
    seconds, warm_up
        Duration and warm-up of the run; by default those of the frame.
    record
        Additional records.
    """
    limit = packets if packets is not None else None if bdp is None else buffer_packets(mbit, rtt_ms, bdp)
    kept = {**(queue or {"kind": "drop-tail"}), **({} if limit is None else {"limit": f"{limit} packets"})}
    link = {"rate": f"{mbit:g} Mbit/s", "delay": f"{rtt_ms / 2:g} ms"}
    jitter_us = min(PACKET / mbit, 1000.0)
    network: dict[str, Any] = {
        "topology": "dumbbell",
        "access": {"rate": f"{10 * mbit:g} Mbit/s", "jitter": f"{jitter_us:.0f} us"},
        "bottleneck": {**link, "queue": kept, **(forward or {})},
    }
    if access is not None:
        network = {**network, "topology": "wishbone", "access_list": [dict(a) for a in access]}
        del network["access"]
    if backward is not None:
        network["reverse"] = {"bottleneck": {**link, "queue": {"kind": "drop-tail"}, **backward}}
    begin = warm_up_s(rtt_ms) if warm_up is None else warm_up
    return {
        "duration": f"{begin + measured_s(rtt_ms) if seconds is None else seconds:g} s",
        "network": network,
        "flows": [dict(group) for group in groups],
        "record": {"performance": True, "warm_up": f"{begin:g} s", "goodput_interval": "1 s", **(record or {})},
    }


def about(mbit: float, rtt_ms: float, bdp: float | None = None, what: str = "", **more: Any) -> dict[str, Any]:
    """Return the properties that name a cell."""
    found: dict[str, Any] = {"rate_bps": mbit * 1e6, "rtt_s": rtt_ms / 1e3}
    if bdp is not None:
        found["buffer_bdp"] = bdp
    return {**found, **more, **({"what": what} if what else {})}


def path_id(mbit: float, rtt_ms: float, bdp: float | None = None) -> str:
    """Return a path in the form used in file names."""
    return f"{mbit:g}M-{rtt_ms:g}ms" + ("" if bdp is None else f"-{bdp:g}bdp")


RATES, RTTS, BUFFERS = (1, 10, 100, 1000), (10, 40, 100, 300), (0.25, 1, 2, 8)


def grid(quick: Sequence[tuple[float, float, float]] = ()) -> Iterator[tuple[float, float, float, Scale]]:
    """Yield rate (Mbit/s), RTT (ms) and buffer (BDP) of every path with a BDP of at least four packets, with its scale.

    The standard scale has all RTTs at 10 Mbit/s, and 40 ms (at 1 Mbit/s: 100 ms) at the other rates. The full scale has
    all paths.
    """
    for mbit in RATES:
        for rtt_ms in RTTS:
            for bdp in BUFFERS:
                if bdp_packets(mbit, rtt_ms) < LEAST_BDP:
                    continue
                middle = rtt_ms == (100 if mbit == 1 else 40)
                scale: Scale = "standard" if mbit == 10 or (middle and mbit < 1000) else "full"
                yield mbit, rtt_ms, bdp, "quick" if (mbit, rtt_ms, bdp) in quick else scale


def cell(
    name: str, scenario: Mapping[str, Any], labels: Mapping[str, Any], *, scale: Scale = "standard", alone: bool = False
) -> Cell:
    """Return a cell, marked if its rate is 1 Gbit/s or more."""
    return Cell(
        id=name,
        scenario=scenario,
        about=labels,
        scale=scale,
        alone=alone,
        gigabit=labels.get("rate_bps", 0) >= 1e9,
    )
