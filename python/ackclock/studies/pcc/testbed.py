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

SHALLOW = (1, 2, 3, 4)
SIZES = (*range(5, 50, 5), *range(50, 200, 10), 200, 225, 250, 275)
"""The 28 sizes of the publication's script, packets."""
FEW = (2, 6, 10, 20, 30, 50, 100, 275)
"""Sizes at quick scale: those that claims name, and some between."""

IDEAL, TESTBED, NETEM = "ideal", "testbed", "H3: netem's limit"
OFTEN, RARE, LONG = "H1: 5 ms / 20 ms", "H1: 5 ms / 100 ms", "H1: 30 ms / 100 ms"
NO_CATCH_UP, ONE_CORE, MACHINE = "H2: 10 ms / 100 ms", "H4: single core", "H5: whole machine"


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    """What is not perfect: the hosts (`both`: sender and receiver are one machine) and the meaning of the queue's limit."""

    host: Mapping[str, Any] = field(default_factory=dict)
    both: bool = False
    queue: str = "drop-tail"


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
    TESTBED: Model(host={"tick": "1 ms", "catch_up": "full"}),
    RARE: Model(host=stalls(5, 100, "full")),
    OFTEN: Model(host=stalls(5, 20, "full")),
    "H1: 10 ms / 100 ms": Model(host=stalls(10, 100, "full")),
    LONG: Model(host=stalls(30, 100, "full", receives_on=False)),
    "H1: 30 ms / 1 s": Model(host=stalls(30, 1000, "full")),
    NO_CATCH_UP: Model(host=stalls(10, 100, "none")),
    "H2: 30 ms / 100 ms": Model(host=stalls(30, 100, "none")),
    NETEM: Model(queue="netem-limit"),
    ONE_CORE: Model(host={"preset": "single-core"}, both=True),
    MACHINE: Model(host={**stalls(5, 100, "full", receives_on=False), "emulates_links": True}, both=True),
}
"""By name. "5 ms / 100 ms": off 5 ms, on 100 ms on average. H1 makes lateness up in full, H2 not at all."""


def hosted(model: Model) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The `hosts` table of a model, and the keys with which flows name it."""
    if not model.host:
        return [], {}
    keys = {"host": "vm", "peer_host": "vm"} if model.both else {"host": "vm"}
    return [{"name": "vm", **model.host}], keys


def shallow(model: str, controller: str, packets: int, duration_s: float) -> Scenario:
    """One flow over 1000 and 100 Mb/s, 7.5 ms each, behind a buffer of so many packets."""
    m = MODELS[model]
    hosts, keys = hosted(m)
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
            "flows": [{"congestion_control": controller, **keys}],
            "hosts": hosts,
        }
    )


FLOWS = 4
CORES: dict[str, dict[str, Any]] = {
    "8 cores": {"cores": 8, "busy_wait": True},
    "2 cores": {"cores": 2, "busy_wait": True},
    "1 core": {"cores": 1, "busy_wait": True},
}
"""The machine that holds all senders and receivers; senders of datagrams spin."""


def wishbone(cores: str, controller: str, unit_s: float) -> Scenario:
    """Four pairs, 30 ms, 250 packets; flow i starts at i units and writes for four. The publication's unit is 500 s."""
    flow = {"congestion_control": controller, "host": "vm", "peer_host": "vm"}
    return Scenario.from_dict(
        {
            "name": f"four flows of {LABEL[controller]}, {cores}",
            "duration": f"{7 * unit_s:g} s",
            "network": {
                "topology": "wishbone",
                "access_list": [{"rate": "1 Gbit/s", "delay": "1 ms"}],
                "bottleneck": {
                    "rate": "100 Mbit/s",
                    "delay": "13 ms",
                    "queue": {"kind": "drop-tail", "limit": "250 packets"},
                },
                "egress": {"rate": "1 Gbit/s", "delay": "1 ms"},
            },
            "flows": [{**flow, "start": f"{i * unit_s:g} s", "stop": f"{(i + 4) * unit_s:g} s"} for i in range(FLOWS)],
            "hosts": [{"name": "vm", **CORES[cores]}],
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
