"""Replays the kernel's losses in the simulator.

The kernel's netem drew its losses by position: the n-th packet in the forward direction is lost, regardless of its
contents. A scripted loss names segments, and the segment in the n-th packet depends on all earlier losses. Each loss is
therefore located by a probe: a run with the losses known so far, in which every packet from that position on is
dropped. The first dropped packet is the one to lose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ackclock._results.run import run
from ackclock.errors import InputError
from ackclock.fidelity.path import FRAMING, SAMPLE_MS, VETH, MeasuredPath
from ackclock.scenario import Scenario


def bulk(path: MeasuredPath, controller: str, positions: Sequence[int], *, seconds: int) -> Scenario:
    """Return a scenario with one bulk flow that loses the packets at these positions.

    Parameters
    ----------
    path, controller, seconds
        The run, as for `path.bulk`.
    positions
        Ascending, counted from 0 over all packets behind the bottleneck as the kernel sends them: SYN, ACK, data.
        Positions that the run does not reach are left out.

    Raises
    ------
    InputError
        If a position belongs to a packet without data, which a scripted loss cannot name.
    """
    drops: list[dict[str, int]] = []
    _, head = _first_lost(_scenario(path, controller, drops, seconds=1, passing=1)) or (0, 0)
    # In the simulator the handshake's ACK may carry the first data; the kernel sends that ACK alone.
    missing = KERNEL_HANDSHAKE - (1 if head > 0 else KERNEL_HANDSHAKE)
    for position in positions:
        if position < KERNEL_HANDSHAKE:
            raise InputError(f"packet {position} carries no data; allowed: {KERNEL_HANDSHAKE} or more")
        passing = position - missing - len(drops)
        lost = _first_lost(_scenario(path, controller, drops, seconds=seconds, passing=passing))
        if lost is None:
            break
        transmission, segment = lost
        drops.append({"first": segment, "transmission": transmission})
    return _scenario(path, controller, drops, seconds=seconds)


KERNEL_HANDSHAKE = 2
"""Forward packets before the first data: SYN and ACK."""

PROBE = 2
"""Index of the probe's link."""

EVERYTHING = 2**31
"""Upper bound on the packets of any run."""


def _first_lost(probe: Scenario) -> tuple[int, int] | None:
    """Return (transmission, segment number) of the first packet dropped by the probe; segment 0 carries no data."""
    drops = run(probe).drops
    first = drops.filter(drops["link"] == PROBE).head(1)
    return None if first.height == 0 else (first["rexmit"][0], first["seg_no"][0])


def _scenario(
    path: MeasuredPath, controller: str, drops: Sequence[dict[str, int]], *, seconds: int, passing: int = EVERYTHING
) -> Scenario:
    """Return the path with an additional link at its end, which drops everything after `passing` packets. The links
    are the same in every run, including the measured one, so that simultaneous events keep their order.
    """
    delay = f"{path.rtt_ms * 500} us"
    links: list[dict[str, Any]] = [
        {
            "name": "bottleneck",
            "rate": f"{path.rate_bps} bit/s",
            "queue": {"kind": "drop-tail", "limit": f"{path.queue_packets} packets"},
        },
        {"name": "way", "delay": delay},
        {"name": "probe", "loss": {"kind": "periodic", "every": 1, "offset": passing}},
        {"name": "back", "delay": delay},
    ]
    if drops:
        links[1]["loss"] = {"kind": "scripted", "drops": list(drops)}
    measured = passing == EVERYTHING
    return Scenario.from_dict(
        {
            "name": "fidelity",
            "duration": f"{seconds * 10**9 + path.handshake_ns} ns",
            "network": {
                "topology": "graph",
                "framing": f"{FRAMING} bytes",
                "links": links,
                "paths": [{"name": "path", "forward": ["bottleneck", "way", "probe"], "backward": ["back"]}],
            },
            "flows": [{"profile": "linux-6", "congestion_control": controller, "path": "path", "stack": VETH}],
            "record": {"sample_interval": f"{SAMPLE_MS} ms"} if measured else {"drops": True},
        }
    )
