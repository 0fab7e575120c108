"""Checks whether a scenario's result depends on how its hosts send, that is, whether a buffer holds only a few of a
modern host's bursts.

The default host sends each segment as a separate packet, when its ACK arrives or its pacing timer expires. Linux
hands packets of up to 64 KiB to the NIC, about a millisecond's worth at the pacing rate (`tcp_tso_autosize`: the
rate over 1024), and the NIC sends their segments back to back. A buffer with room for few of these packets
overflows earlier. The measurements behind the bound are in docs/fidelity.md.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ackclock.scenario.scenario import Scenario

__all__ = ["ENOUGH", "burst_bytes", "hangs_on_bursts"]

MOST_BYTES = 65_536
"""Maximum size of a multi-segment packet, bytes."""
PER_SECOND = 1024
"""Divisor of the pacing rate: a packet contains the bytes sent at that rate in this fraction of a second (Linux
shifts the rate by `sk_pacing_shift`, 10).
"""
SEGMENT = 1514
"""Size of a full packet in the queue, bytes."""
LEAST_SEGMENTS = 2
"""Minimum number of segments per packet. At rates where no packet has more, both kinds of hosts send identically."""
DATAGRAMS = ("constant-rate", "on-off", "voice")
"""Workloads over UDP."""
ENOUGH = 4
"""Minimum number of bursts that a buffer must hold."""


def burst_bytes(rate_bps: float) -> float:
    """Return the size of the packets that Linux passes to the NIC at this rate, bytes."""
    return min(MOST_BYTES, rate_bps / 8 / PER_SECOND)


def hangs_on_bursts(scenario: Scenario) -> str | None:
    """Return a one-line warning if the bottleneck's buffer holds fewer than `ENOUGH` bursts and the scenario leaves the
    hosts at their default; else None. Graphs have no single bottleneck link, so they get no warning.
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
    """Return whether the group uses the default TCP with segmentation offload unspecified."""
    tcp = not flow["congestion_control"].startswith("pcc-") and flow["workload"]["kind"] not in DATAGRAMS
    stack = flow.get("stack") or {}
    return tcp and flow.get("profile") in ("linux-6", "linux-7.3") and "tso" not in stack and flow.get("host") is None
