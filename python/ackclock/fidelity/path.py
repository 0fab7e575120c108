"""Measured paths as scenarios.

Each packet is charged as an Ethernet frame (14 bytes more than the IP packet) in a drop-tail queue of N packets ahead
of a link of rate R. The propagation delay (half of the RTT each way) and random loss follow it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ackclock.scenario import Scenario

FRAMING = 14
SYN_BYTES = 74
"""Length of a SYN with its frame, bytes; its transmission time is part of the handshake."""

SAMPLE_MS = 10

VETH = {"packet_memory": "handed-on"}
"""Packet memory of the measured hosts, namespaces on one machine."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredPath:
    """A measured network.

    Parameters
    ----------
    rate_bps
        R.
    rtt_ms
        Round-trip propagation delay.
    queue_packets
        N.
    """

    rate_bps: int
    rtt_ms: int
    queue_packets: int

    @property
    def handshake_ns(self) -> int:
        """Time from the SYN until the sender is connected, which is time 0 in the kernel's data, ns."""
        return self.rtt_ms * 1_000_000 + SYN_BYTES * 8 * 10**9 // self.rate_bps

    def network(self, *, loss: dict[str, Any] | None = None, both_ways: bool = False) -> dict[str, Any]:
        """Return the network as scenario keys; `loss` applies to the forward direction, or to both."""
        delay = {"delay": f"{self.rtt_ms * 500} us"}
        lossy = {**delay, "loss": loss} if loss else delay
        return {
            "topology": "chain",
            "framing": f"{FRAMING} bytes",
            "bottleneck": {
                "rate": f"{self.rate_bps} bit/s",
                "queue": {"kind": "drop-tail", "limit": f"{self.queue_packets} packets"},
            },
            "egress": lossy,
            "reverse": {"bottleneck": {"delay": "0 s"}, "egress": lossy if both_ways else delay},
        }


N1 = MeasuredPath(rate_bps=10_000_000, rtt_ms=40, queue_packets=50)
N2 = MeasuredPath(rate_bps=100_000_000, rtt_ms=40, queue_packets=333)
N3 = MeasuredPath(rate_bps=100_000_000, rtt_ms=30, queue_packets=20)
ACCESS = MeasuredPath(rate_bps=1_200_000, rtt_ms=100, queue_packets=100)
"""Slow link for the fetches."""

PATHS = {"n1": N1, "n2": N2, "n3": N3}


def bulk(
    path: MeasuredPath,
    controller: str,
    *,
    seconds: int,
    starts_us: tuple[int, ...] = (0,),
    loss: dict[str, Any] | None = None,
) -> Scenario:
    """Return bulk flows that start at the given times; the first is measured for `seconds` after its handshake."""
    end_ns = seconds * 10**9 + path.handshake_ns + starts_us[0] * 1000
    return Scenario.from_dict(
        {
            "name": "fidelity",
            "duration": f"{end_ns} ns",
            "network": path.network(loss=loss),
            "flows": [
                {"profile": "linux-6", "congestion_control": controller, "start": f"{start} us", "stack": VETH}
                for start in starts_us
            ],
            "record": {"sample_interval": f"{SAMPLE_MS} ms"},
        }
    )


def fetches(size: int, count: int) -> Scenario:
    """Return fetches over the slow line, with 1 % loss in both directions and a pause of 2 s after each."""
    return Scenario.from_dict(
        {
            "name": "fidelity",
            "duration": f"{30 * count} s",
            "network": ACCESS.network(loss={"kind": "bernoulli", "p": "1 %"}, both_ways=True),
            "flows": [
                {
                    "profile": "linux-6",
                    "congestion_control": "cubic",
                    "stack": VETH,
                    "workload": {
                        "kind": "fetch",
                        "bytes": f"{size} bytes",
                        "request": "100 bytes",
                        "count": count,
                        "pause": "2 s",
                    },
                }
            ],
        }
    )
