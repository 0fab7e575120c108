"""Twenty loss patterns, from one segment to a whole window, at the start, in the middle and at the tail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ackclock.scenario import Scenario

SEGMENT = 1448
SEGMENTS = 200
"""Length of the transfer, segments."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pattern:
    """A loss pattern.

    Parameters
    ----------
    name
        Losses in words.
    drops
        As in a scenario.
    controller
        Congestion controller.
    """

    name: str
    drops: tuple[Mapping[str, int], ...]
    controller: str = "reno"

    def scenario(self) -> Scenario:
        """Return a 200-segment transfer over a 10 Mbit/s, 40 ms path."""
        loss = {"kind": "scripted", "drops": [dict(drop) for drop in self.drops]}
        return Scenario.from_dict(
            {
                "name": self.name,
                "duration": "10 s",
                "network": {
                    "topology": "chain",
                    "framing": "14 bytes",
                    "bottleneck": {
                        "rate": "10 Mbit/s",
                        "delay": "20 ms",
                        "queue": {"kind": "drop-tail", "limit": "200 packets"},
                        "loss": loss,
                    },
                    "reverse": {"bottleneck": {"delay": "20 ms"}},
                },
                "flows": [
                    {
                        "profile": "linux-6",
                        "congestion_control": self.controller,
                        "workload": {"kind": "transfer", "bytes": f"{SEGMENTS * SEGMENT} bytes"},
                    }
                ],
                "record": {"trace": "flow", "sample_interval": "10 ms"},
            }
        )


def _lost(first: int, last: int | None = None, transmission: int = 0) -> dict[str, int]:
    return {"first": first, "last": first if last is None else last, "transmission": transmission}


PATTERNS = (
    Pattern(name="one segment", drops=(_lost(30),)),
    Pattern(name="one segment, cubic", drops=(_lost(30),), controller="cubic"),
    Pattern(name="two in a row", drops=(_lost(30, 31),)),
    Pattern(name="five in a row, cubic", drops=(_lost(30, 34),), controller="cubic"),
    Pattern(name="every second of ten", drops=tuple(_lost(n) for n in range(30, 40, 2))),
    Pattern(name="twenty in a row", drops=(_lost(31, 50),)),
    Pattern(name="half a window, scattered, cubic", drops=tuple(_lost(n) for n in (31, 32, 35, 37, 40, 41, 42, 47)), controller="cubic"),
    Pattern(name="the first segment", drops=(_lost(1),)),
    Pattern(name="the last of the initial window", drops=(_lost(10),)),
    Pattern(name="1 to 4 of the initial window", drops=(_lost(1, 4),)),
    Pattern(name="all but the last of the initial window", drops=(_lost(1, 9),)),
    Pattern(name="the whole initial window", drops=(_lost(1, 10),)),
    Pattern(name="two windows, one after the other", drops=(_lost(30), _lost(90))),
    Pattern(name="one, and one sent during its recovery", drops=(_lost(30), _lost(62))),
    Pattern(name="one, and its retransmission", drops=(_lost(30), _lost(30, transmission=1))),
    Pattern(name="five, and the first retransmission, cubic", drops=(_lost(30, 34), _lost(30, transmission=1)), controller="cubic"),
    Pattern(name="one, and two retransmissions", drops=(_lost(30), _lost(30, transmission=1), _lost(30, transmission=2))),
    Pattern(name="the last segment", drops=(_lost(SEGMENTS),)),
    Pattern(name="the last three", drops=(_lost(SEGMENTS - 2, SEGMENTS),)),
    Pattern(name="the last ten, cubic", drops=(_lost(SEGMENTS - 9, SEGMENTS),), controller="cubic"),
)  # fmt: skip
"""Patterns run by `ackclock diff --patterns`."""
