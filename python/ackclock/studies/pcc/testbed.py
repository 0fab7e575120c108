"""Scenarios of the study: the link, the hosts' noise by hypothesis, the flows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from ackclock.errors import InputError
from ackclock.scenario import Scenario

PCC, CUBIC = "pcc-allegro", "cubic"
LABEL = {PCC: "PCC", CUBIC: "CUBIC"}
RATE_BPS = 100e6
PACKET_BYTES = 1500
PAYLOAD = {PCC: 1456, CUBIC: 1448}
"""Payload of a full packet, bytes: the most that a link can carry is this share of its rate."""

SHALLOW = (1, 2, 3, 4, 6)
"""Sizes besides those of the script: where PCC's paper places its own points."""
SIZES = (*range(5, 50, 5), *range(50, 200, 10), 200, 225, 250, 275)
"""The 28 sizes of the publication's script, packets."""
FEW = (2, 6, 10, 20, 30, 50, 100, 275)
"""Sizes at quick scale: those that claims name, and some between."""

CLOCK = {"tick": "1 ms"}
"""The testbed's hosts: a kernel's clock of 1000 Hz, at which paced senders wake."""
SPINS: dict[str, Any] = {"busy_wait": True, "catch_up": "none"}
"""PCC's sender spins, and takes the next departure from the actual one: lateness is lost."""
COST = {"send_cost": "100 us", "receive_cost": "100 us"}
"""Processor time of a packet at each end. Fitted to one number of the publication: four flows on one core get 30 % of 100 Mb/s."""

IDEAL, TESTBED, NETEM, OFFLOAD = "ideal", "testbed", "H3: netem's limit", "H3: netem's limit, TSO"
OFTEN, RARE, LONG = "H1: 5 ms / 20 ms", "H1: 5 ms / 100 ms", "H1: 30 ms / 100 ms"
TENTH, NO_CATCH_UP = "H1: 10 ms / 100 ms", "H2: 10 ms / 100 ms"
ONE_CORE, COSTLY, MACHINE = "H4: single core", "H4: single core, 100 us", "H5: whole machine"


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    """What is not perfect: the hosts (`both`: sender and receiver are one machine) and the meaning of the queue's limit.

    `offload`: TCP hands over packets of several segments, which hosts and netem handle as one.
    """

    host: Mapping[str, Any] = field(default_factory=dict)
    both: bool = False
    queue: str = "drop-tail"
    offload: bool = False

    @property
    def draws(self) -> bool:
        """Whether anything is left to chance besides PCC's own draws."""
        return "gate" in self.host


def stalls(off_ms: int, on_ms: int, catch_up: str, *, receives_on: bool = True) -> dict[str, Any]:
    """A host that loses its processor for `off_ms` after on-times of `on_ms` on average, exponential."""
    return {
        "gate": {
            "kind": "times",
            "on": {"kind": "exponential", "mean": f"{on_ms} ms"},
            "off": {"kind": "constant", "value": f"{off_ms} ms"},
        },
        "catch_up": catch_up,
        "receives_on": receives_on,
    }


MODELS: dict[str, Model] = {
    IDEAL: Model(),
    TESTBED: Model(host={**CLOCK, "catch_up": "full"}),
    RARE: Model(host=stalls(5, 100, "full")),
    OFTEN: Model(host=stalls(5, 20, "full")),
    TENTH: Model(host=stalls(10, 100, "full")),
    LONG: Model(host=stalls(30, 100, "full", receives_on=False)),
    "H1: 30 ms / 1 s": Model(host=stalls(30, 1000, "full")),
    NO_CATCH_UP: Model(host=stalls(10, 100, "none")),
    "H2: 30 ms / 100 ms": Model(host=stalls(30, 100, "none")),
    NETEM: Model(queue="netem-limit"),
    OFFLOAD: Model(queue="netem-limit", offload=True),
    ONE_CORE: Model(host={"cores": 1, **SPINS}, both=True),
    COSTLY: Model(host={"cores": 1, **SPINS, **COST}, both=True, offload=True),
    MACHINE: Model(host={**stalls(5, 100, "full", receives_on=False), "emulates_links": True}, both=True),
}
"""By name. "5 ms / 100 ms": off 5 ms, on 100 ms on average. H1 makes lateness up in full, H2 not at all."""

TWINS: dict[tuple[str, str], str] = {
    (TESTBED, CUBIC): IDEAL,
    (ONE_CORE, CUBIC): IDEAL,
    (NO_CATCH_UP, CUBIC): TENTH,
    (OFFLOAD, PCC): NETEM,
}
"""Runs that would be those of another model, packet for packet: CUBIC is not paced, PCC has no segmentation offload."""


def hosted(model: Model) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The `hosts` table of a model, and the keys with which flows name it."""
    if not model.host:
        return [], {}
    keys = {"host": "vm", "peer_host": "vm"} if model.both else {"host": "vm"}
    return [{"name": "vm", **model.host}], keys


def sender(controller: str) -> dict[str, Any]:
    """The keys of a flow that name its protocol. PCC reports every 20 packets, as the code that the publication ran does."""
    flow: dict[str, Any] = {"congestion_control": controller}
    if controller != CUBIC:
        flow["congestion_control_options"] = {"feedback": 20}
    return flow


def shallow(model: str, controller: str, packets: int, duration_s: float) -> Scenario:
    """One flow over 1000 and 100 Mb/s, 7.5 ms each, behind a buffer of so many packets."""
    m = MODELS[model]
    hosts, keys = hosted(m)
    flow = {**sender(controller), **keys}
    if m.offload and controller == CUBIC:
        flow["stack"] = {"tso": True}
    return Scenario.from_dict(
        {
            "name": f"{LABEL[controller]}, {model}, {packets} packets",
            "duration": f"{duration_s:g} s",
            "network": {
                "access": {"rate": "1 Gbit/s", "delay": "7.5 ms"},
                "bottleneck": {
                    "rate": "100 Mbit/s",
                    "delay": "7.5 ms",
                    "queue": {"kind": m.queue, "limit": f"{packets} packets"},
                },
                "reverse": {"bottleneck": {"rate": "100 Mbit/s", "delay": "7.5 ms"}},
            },
            "flows": [flow],
            "hosts": hosts,
        }
    )


FLOWS = 4
EXACT = "exact"
HOSTS: dict[str, dict[str, Any]] = {
    EXACT: {},
    "8 cores": {"cores": 8, **SPINS, **CLOCK},
    "2 cores": {"cores": 2, **SPINS, **CLOCK, **COST},
    "1 core": {"cores": 1, **SPINS, **CLOCK, **COST},
}
"""The machine that holds all senders and receivers; "exact" is one without flaws."""
CORES = ("8 cores", "2 cores", "1 core")


def wishbone(
    host: Mapping[str, Any], controller: str, unit_s: float, *, flows: int = FLOWS, jitter: str = "0 s"
) -> Scenario:
    """Pairs of hosts, 30 ms, 250 packets; flow i starts at i units and writes for as many units as there are flows.

    The publication's unit is 500 s. `jitter`: greatest random delay on the links from the senders. Behind the bottleneck there are
    always up to 10 us, so that seeds differ where nothing else is drawn.
    """
    flow = sender(controller) | ({"host": "vm", "peer_host": "vm"} if host else {})
    return Scenario.from_dict(
        {
            "name": f"{flows} flows of {LABEL.get(controller, controller)}",
            "duration": f"{(2 * flows - 1) * unit_s:g} s",
            "network": {
                "topology": "wishbone",
                "access_list": [{"rate": "1 Gbit/s", "delay": "1 ms", "jitter": jitter}],
                "bottleneck": {
                    "rate": "100 Mbit/s",
                    "delay": "13 ms",
                    "queue": {"kind": "drop-tail", "limit": "250 packets"},
                },
                "egress": {"rate": "1 Gbit/s", "delay": "1 ms", "jitter": "10 us"},
                "reverse": {"access": {"rate": "1 Gbit/s", "delay": "1 ms"}},
            },
            "flows": [
                {**flow, "start": f"{i * unit_s:g} s", "stop": f"{(i + flows) * unit_s:g} s"} for i in range(flows)
            ],
            "hosts": [{"name": "vm", **host}] if host else [],
            "record": {"goodput_interval": "1 s"},
        }
    )


def series(goodput: pl.DataFrame, flows: int, length_s: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Goodput of one run, Mb/s: a row per second, a column per flow.

    Raises
    ------
    InputError
        If a flow never delivered anything, or the run was cut short: fairness of such a run is not a number.
    """
    found = np.zeros((length_s, flows))
    t = np.rint(goodput["t_s"].to_numpy()).astype(int) - 1
    if t.size == 0 or t.max() + 1 < length_s:
        raise InputError(f"goodput ends at {t.max() + 1 if t.size else 0} s; {length_s} s are needed")
    inside = t < length_s
    found[t[inside], goodput["flow"].to_numpy()[inside]] = goodput["goodput_bps"].to_numpy()[inside] / 1e6
    silent = [i for i in range(flows) if not found[:, i].any()]
    if silent:
        raise InputError(f"flow {silent[0]} delivered nothing in {length_s} s; its share cannot be compared")
    return found


def jain(x: Sequence[float] | np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """Jain's index; one if nobody has anything.

    Examples
    --------
    >>> jain([1.0, 1.0]), jain([1.0, 0.0])
    (1.0, 0.5)
    """
    values = np.asarray(x, dtype=np.float64)
    squares = float((values**2).sum())
    return float(values.sum()) ** 2 / (values.size * squares) if squares else 1.0
