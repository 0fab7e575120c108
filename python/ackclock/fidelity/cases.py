"""Measured cells as scenarios that both backends can run, for `ackclock diff --reference`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ackclock.fidelity import path, simulate
from ackclock.fidelity.comparison import CONTROLLERS, LOSSES, OTHERS
from ackclock.scenario import Scenario

__all__ = ["Case", "cases"]

SEGMENTS = 10
"""Size of the responses used to measure the initial windows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A measured cell.

    Parameters
    ----------
    name
        Name in the tables.
    scenario
        Scenario for both backends.
    network
        Kernel network: the kernel's own disciplines, as measured, if there are no random losses; otherwise the relay,
        which has the simulator's losses.
    """

    name: str
    scenario: Scenario
    network: Literal["qdisc", "relay"]


def cases() -> list[Case]:
    """Return every cell of the measured data with stream flows. Cells with fetches are covered by `ackclock
    fidelity`.
    """
    out = []
    for network in ("n1", "n3"):
        for name in (*CONTROLLERS, *OTHERS):
            ours = simulate.OURS.get(name, name)
            scenario = path.bulk(path.PATHS[network], ours, seconds=simulate.SECONDS)
            out.append(Case(name=f"{network} {name}", scenario=scenario, network="qdisc"))
    for loss in LOSSES:
        for name in CONTROLLERS:
            model = {"kind": "bernoulli", "p": f"{loss} %"}
            scenario = path.bulk(path.N2, name, seconds=simulate.SECONDS, loss=model)
            out.append(Case(name=f"n2 {name}, {loss:g} %", scenario=scenario, network="relay"))
    late_us = path.N2.handshake_ns // 1000 + 3_700
    pair = path.bulk(path.N2, "cubic", seconds=simulate.SHARING_SECONDS, starts_us=(0, late_us))
    out.append(Case(name="n2, two cubic flows", scenario=pair, network="qdisc"))
    for window in (3, 10):
        out.append(Case(name=f"initial window of {window}", scenario=_response(window), network="qdisc"))
    return out


def _response(window: int) -> Scenario:
    far = path.MeasuredPath(rate_bps=20_000_000, rtt_ms=300, queue_packets=500)
    return Scenario.from_dict(
        {
            "name": "fidelity",
            "duration": "3 s",
            "network": far.network(),
            "flows": [
                {
                    "profile": "linux-6",
                    "congestion_control": "cubic",
                    "stack": {"initial_window": window},
                    "workload": {"kind": "transfer", "bytes": f"{SEGMENTS * 1448} bytes"},
                }
            ],
        }
    )
