"""Randomly drawn scenarios: paths and losses from a seed, for both backends.

There are three kinds. A transfer sends a hundred segments through a queue that never fills, so all its losses are drawn
ones; about one transfer in three also loses a retransmission. A bulk flow lasts twelve seconds and fills a queue of
half to twice the bandwidth-delay product, which drops packets too. The drawn losses of both kinds name segments, so
both backends lose the same ones. A flow under random loss loses 0.1 to 3 % of its packets, by the same draws on both
backends, with every controller available on both.

In addition, `listed` yields flows with the losses that netem drew in the measured kernel.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ackclock.fidelity import reference
from ackclock.fidelity.path import N2, MeasuredPath
from ackclock.linux import NetworkKind
from ackclock.scenario import Scenario

__all__ = ["ALL_CONTROLLERS", "BULKS", "CONTROLLERS", "LOSSY", "TRANSFERS", "Drawn", "drawn", "listed"]

TRANSFERS = 70
BULKS = 30
LOSSY = 42
"""Number of scenarios of each kind in the documentation's table."""

CONTROLLERS = ("reno", "cubic", "bic", "htcp", "illinois")
"""Controllers, used in turn."""

ALL_CONTROLLERS = (
    *CONTROLLERS, "westwood-plus", "highspeed", "scalable", "vegas", "hybla", "veno", "yeah", "dctcp", "bbr",
)  # fmt: skip
"""Controllers, used in turn under random loss."""

SEGMENT = 1448
SEGMENTS = 100
"""Length of a transfer, segments."""

MOST_LOST = 12
BULK_SECONDS = 12
BULK_FROM, BULK_TO = 20, 3000
"""Range of segment numbers that the script of a bulk flow may drop."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawn:
    """A drawn scenario.

    Parameters
    ----------
    name
        Kind, number and drawn values.
    kind
        "transfer", "bulk", "lossy", "listed", or one of `ackclock.fidelity.families`.
    scenario
        Scenario for both backends.
    network
        Network on which the kernel runs it.
    """

    name: str
    kind: str
    scenario: Scenario
    network: NetworkKind = "relay"


def drawn(seed: int, *, transfers: int = TRANSFERS, bulks: int = BULKS, lossy: int = LOSSY) -> Iterator[Drawn]:
    """Draw scenarios; each depends only on the seed, its kind and its number.

    Parameters
    ----------
    seed
        Any number.
    transfers, bulks, lossy
        Number of scenarios of each kind.
    """
    for number in range(transfers):
        yield _one("transfer", seed, number)
    for number in range(bulks):
        yield _one("bulk", seed, number)
    for number in range(lossy):
        yield _one("lossy", seed, number)


def listed(*, seconds: int = BULK_SECONDS) -> Iterator[Drawn]:
    """Yield bulk flows on n2 that lose the same packets as the measured kernel, by position, on both backends.

    Parameters
    ----------
    seconds
        Duration of a flow, s.
    """
    for percent in (0.1, 1.0):
        for seed in range(1, 6):
            # The kernel's positions start at 0.
            packets = [packet + 1 for packet in reference.lost_packets(percent, seed)]
            for number, controller in enumerate(("reno", "cubic")):
                said = f"listed: {controller}, {percent:g} %, the kernel's seed {seed}"
                scenario = _scenario("listed", number, controller, N2, {"kind": "listed", "packets": packets})
                yield Drawn(name=said, kind="listed", scenario=scenario.set("duration", f"{seconds} s"))


def _one(kind: str, seed: int, number: int) -> Drawn:
    # Only `random()` is documented to give the same numbers in every version of Python.
    draw = random.Random(f"{kind} {seed} {number}").random

    def between(low: int, high: int) -> int:
        return low + int(draw() * (high - low + 1))

    controllers = ALL_CONTROLLERS if kind == "lossy" else CONTROLLERS
    controller = controllers[number % len(controllers)]
    rate = round(2 * 50 ** draw(), 1)
    rtt_ms = between(20, 200)
    bdp = rate * 1e6 * rtt_ms * 1e-3 / (8 * 1514)
    first, last, queue = 1, SEGMENTS, 2 * SEGMENTS
    if kind != "transfer":
        first, last, queue = BULK_FROM, BULK_TO, max(10, round(bdp * (0.5 + 1.5 * draw())))
    path = MeasuredPath(rate_bps=round(rate * 1e6), rtt_ms=rtt_ms, queue_packets=queue)
    said = f"{kind} {number}: {controller}, {rate:g} Mbit/s, {rtt_ms} ms, queue {queue}"
    if kind == "lossy":
        share = round(0.001 * 30 ** draw(), 4)
        loss: dict[str, Any] = {"kind": "bernoulli", "p": share}
        return Drawn(name=f"{said}, {share:.2%}", kind=kind, scenario=_scenario(kind, number, controller, path, loss))
    lost: set[int] = set()
    wanted = between(1, MOST_LOST)
    while len(lost) < wanted:
        lost.add(between(first, last))
    drops = [{"first": n, "transmission": 0} for n in sorted(lost)]
    if draw() < 1 / 3:
        drops.append({"first": sorted(lost)[between(0, wanted - 1)], "transmission": 1})
    loss = {"kind": "scripted", "drops": drops}
    scenario = _scenario(kind, number, controller, path, loss)
    return Drawn(name=f"{said}, {len(drops)} lost", kind=kind, scenario=scenario)


def _scenario(kind: str, number: int, controller: str, path: MeasuredPath, loss: dict[str, Any]) -> Scenario:
    transfer = {"kind": "transfer", "bytes": f"{SEGMENTS * SEGMENT} bytes"}
    work = transfer if kind == "transfer" else {"kind": "bulk"}
    return Scenario.from_dict(
        {
            "name": f"{kind}-{number}",
            "duration": "60 s" if kind == "transfer" else f"{BULK_SECONDS} s",
            "network": path.network(loss=loss),
            "flows": [{"profile": "linux-6", "congestion_control": controller, "workload": work}],
        }
    )
