"""Slow start in rounds: the table of RFC 6928, through the whole stack."""

from __future__ import annotations

import polars as pl

from ackclock import run
from ackclock.scenario import Scenario
from ackclock.studies.iw10 import testbed

PUBLISHED: dict[int, tuple[int, int]] = {
    3: (1, 1),
    6: (2, 1),
    10: (3, 1),
    12: (3, 2),
    21: (4, 2),
    25: (5, 2),
    33: (5, 3),
    46: (6, 3),
    51: (6, 4),
    78: (7, 4),
    79: (8, 4),
    120: (8, 5),
    127: (9, 5),
}
"""Segments -> rounds with IW 3 and with IW 10 (RFC 6928 §2)."""

RTT_S = 0.1


def scenario(segments: int, window: int) -> Scenario:
    """A response over a path whose rate does not matter; one ACK per two segments, cwnd + 1 per ACK."""
    return Scenario.from_dict(
        {
            "name": f"{segments} segments, initial window {window}",
            "duration": "10 s",
            "network": {"topology": "chain", "bottleneck": {"rate": "10 Gbit/s", "delay": f"{500 * RTT_S:g} ms"}},
            "flows": [
                {
                    "profile": "rfc",
                    "congestion_control": "reno",
                    "stack": {"initial_window": window, "count_acks": True},
                    "workload": testbed.workload({"kind": "at", "times": ["0 s"]}, segments=segments),
                }
            ],
        }
    )


def table() -> pl.DataFrame:
    """Rounds for every entry: segments, window, rounds, published."""
    rows = []
    for segments, published in PUBLISHED.items():
        for window, expected in zip((3, 10), published, strict=True):
            took = run(scenario(segments, window)).transactions["total_s"][0]
            # one round trip for the handshake; the request shares the first round with the response
            rows.append(
                {"segments": segments, "window": window, "rounds": round(took / RTT_S - 1, 2), "published": expected}
            )
    return pl.DataFrame(rows)
