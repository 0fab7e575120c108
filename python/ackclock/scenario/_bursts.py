"""Whether what a scenario says hangs on how its hosts send: a buffer that holds only a few of the bursts in which hosts of today send.

The default host puts each segment on the wire as a packet of its own, when its ACK or its pacer says so. Linux hands packets of up to 64 KiB to the
card, about a millisecond's worth at the pacing rate (`tcp_tso_autosize`: the rate over 1024), and the card sends them back to back. A buffer for
few of them overflows earlier. docs/fidelity.md has the measurements that the bound rests on.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ackclock.scenario.scenario import Scenario

__all__ = ["ENOUGH", "burst_bytes", "hangs_on_bursts"]

MOST_BYTES = 65_536
"""Most bytes of a packet of several segments."""
PER_SECOND = 1024
"""A packet holds what the pacing rate carries in this part of a second (Linux shifts the rate by `sk_pacing_shift`, 10)."""
SEGMENT = 1514
"""A full packet in the queue, bytes."""
LEAST_SEGMENTS = 2
"""Least segments of a packet; at rates at which it never has more, hosts of both kinds send alike."""
DATAGRAMS = ("constant-rate", "on-off", "voice")
"""Workloads over UDP."""
ENOUGH = 4
"""Bursts that a buffer has to hold."""


def burst_bytes(rate_bps: float) -> float:
    """Bytes of a packet that Linux hands to its card at this rate."""
    return min(MOST_BYTES, rate_bps / 8 / PER_SECOND)


def hangs_on_bursts(scenario: Scenario) -> str | None:
    """One line if the buffer of the bottleneck holds less than `ENOUGH` bursts, and the scenario leaves the hosts at their default; else None.

    Graphs have no link that is the bottleneck, so nothing is said of them.
    """
    told: dict[str, Any] = json.loads(scenario.to_engine_json())
    link = told["network"].get("bottleneck")
    if not link or not link.get("rate") or link.get("queue", {}).get("kind") != "drop-tail":
        return None
    limit = link["queue"].get("limit") or {}
    room = limit["bytes"] if "bytes" in limit else limit.get("packets", float("inf")) * SEGMENT
    burst = burst_bytes(link["rate"])
    if burst <= LEAST_SEGMENTS * SEGMENT or room >= ENOUGH * burst or not any(map(_default_host, told["flows"])):
        return None
    return (
        f"the buffer ({room / 1e3:,.0f} kB) holds {room / burst:.1f} bursts of hosts of today at {link['rate'] / 1e6:g} Mbit/s "
        f"({burst / 1e3:.0f} kB); the default host sends single segments, and the answer hangs on it: --set hosts=modern shows the difference"
    )


def _default_host(flow: dict[str, Any]) -> bool:
    """TCP of a Linux that has segmentation offload, and nothing said of it."""
    tcp = not flow["congestion_control"].startswith("pcc-") and flow["workload"]["kind"] not in DATAGRAMS
    stack = flow.get("stack") or {}
    return tcp and flow.get("profile") in ("linux-6", "linux-7.3") and "tso" not in stack and flow.get("host") is None
