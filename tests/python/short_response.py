"""Path used in the tests of proofs."""

from __future__ import annotations

from typing import Any

from ackclock import Scenario


def path(segments: int, **flow: Any) -> Scenario:
    """Return a response over a 10 Mbit/s, 50 ms path with a deep queue."""
    flow = {"profile": "linux-6", "congestion_control": "cubic", **flow}
    return Scenario.from_dict(
        {
            "duration": "60 s",
            "network": {
                "bottleneck": {
                    "rate": "10 Mbit/s",
                    "delay": "25 ms",
                    "queue": {"kind": "drop-tail", "limit": "1000 packets"},
                }
            },
            "flows": [{**flow, "workload": {"kind": "transfer", "bytes": f"{1448 * segments} bytes"}}],
        }
    )
