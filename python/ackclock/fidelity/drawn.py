"""Scenarios that nobody chose: paths and losses drawn from a seed, for both backends.

Two kinds. A transfer is a hundred segments over a queue that never fills, so every loss is a drawn one; of three transfers
about one loses a retransmission too. A bulk flow of twelve seconds fills a queue of half to twice the bandwidth-delay
product, so it loses there as well. Losses are by segment number, so both backends lose the same segments.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from ackclock.fidelity.path import MeasuredPath
from ackclock.scenario import Scenario

__all__ = ["BULKS", "CONTROLLERS", "TRANSFERS", "Drawn", "drawn"]

TRANSFERS = 70
BULKS = 30
"""How many of each kind the table in the documentation has."""

CONTROLLERS = ("reno", "cubic", "bic", "htcp", "illinois")
"""In turn."""

SEGMENT = 1448
SEGMENTS = 100
"""Length of a transfer."""

MOST_LOST = 12
BULK_SECONDS = 12
BULK_FROM, BULK_TO = 20, 3000
"""Numbers of the segments that a bulk flow may lose by script."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawn:
    """One drawn scenario.

    Parameters
    ----------
    name
        Kind, number and what was drawn.
    kind
        "transfer" or "bulk".
    scenario
        What both backends run.
    """

    name: str
    kind: str
    scenario: Scenario


def drawn(seed: int, *, transfers: int = TRANSFERS, bulks: int = BULKS) -> Iterator[Drawn]:
    """Draw scenarios; each depends on the seed, its kind and its number alone.

    Parameters
    ----------
    seed
        Any number.
    transfers, bulks
        How many of each kind.
    """
    for number in range(transfers):
        yield _one("transfer", seed, number)
    for number in range(bulks):
        yield _one("bulk", seed, number)


def _one(kind: str, seed: int, number: int) -> Drawn:
    # Of Python's generator only `random()` is promised to give the same numbers in every version.
    draw = random.Random(f"{kind} {seed} {number}").random

    def between(low: int, high: int) -> int:
        return low + int(draw() * (high - low + 1))

    controller = CONTROLLERS[number % len(CONTROLLERS)]
    rate = round(2 * 50 ** draw(), 1)
    rtt_ms = between(20, 200)
    bdp = rate * 1e6 * rtt_ms * 1e-3 / (8 * 1514)
    first, last, queue = 1, SEGMENTS, 2 * SEGMENTS
    if kind == "bulk":
        first, last, queue = BULK_FROM, BULK_TO, max(10, round(bdp * (0.5 + 1.5 * draw())))
    lost: set[int] = set()
    wanted = between(1, MOST_LOST)
    while len(lost) < wanted:
        lost.add(between(first, last))
    drops = [{"first": n, "transmission": 0} for n in sorted(lost)]
    if draw() < 1 / 3:
        drops.append({"first": sorted(lost)[between(0, wanted - 1)], "transmission": 1})
    path = MeasuredPath(rate_bps=round(rate * 1e6), rtt_ms=rtt_ms, queue_packets=queue)
    work = {"kind": "bulk"} if kind == "bulk" else {"kind": "transfer", "bytes": f"{SEGMENTS * SEGMENT} bytes"}
    scenario = Scenario.from_dict(
        {
            "name": f"{kind}-{number}",
            "duration": f"{BULK_SECONDS} s" if kind == "bulk" else "60 s",
            "network": path.network(loss={"kind": "scripted", "drops": drops}),
            "flows": [{"profile": "linux-6", "congestion_control": controller, "workload": work}],
        }
    )
    said = f"{kind} {number}: {controller}, {rate:g} Mbit/s, {rtt_ms} ms, queue {queue}, {len(drops)} lost"
    return Drawn(name=said, kind=kind, scenario=scenario)
