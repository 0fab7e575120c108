"""The study's scenarios: the link, host imperfections by hypothesis, the flows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from ackclock.errors import InputError
from ackclock.scenario import Scenario

PCC, PRINTED, CUBIC = "pcc-allegro-modong", "pcc-allegro", "cubic"
"""Controllers. PCC has the constants in the authors' code, which was used for the publication; the printed form is a reading."""
LABEL = {PCC: "PCC (every 20)", PRINTED: "PCC as printed (every 20)", CUBIC: "CUBIC"}
"""Labels. PCC reports every 20 packets here; the arms of the paper's experiments name each report mode."""
RATE_BPS = 100e6
PACKET_BYTES = 1500
PAYLOAD = {PCC: 1456, PRINTED: 1456, CUBIC: 1448}
"""Payload of a full packet, bytes: its ratio to the packet size limits a link's goodput."""

SHALLOW = (1, 2, 3, 4, 6, 8)
"""Buffer sizes in addition to the script's: those plotted in PCC's paper."""
SIZES = (*range(5, 50, 5), *range(50, 200, 10), 200, 225, 250, 275)
"""The 28 buffer sizes in the publication's script, packets."""
FEW = (1, 6, 10, 20, 50, 60, 100, 275)
"""Buffer sizes at quick scale: those named in claims, and some in between."""
COARSE = (5, 6, 10, 15, 20, 30, 50, 60, 100, 150, 275)
"""Buffer sizes at which the host hypotheses are run."""

CLOCK = {"tick": "1 ms"}
"""Hosts with a 1000 Hz kernel clock, at the ticks of which paced senders wake up."""
SPINS: dict[str, Any] = {"busy_wait": True, "catch_up": "none"}
"""PCC's sender spins, and schedules the next departure from the actual time of the last one: it never catches up after a delay."""
COST = {"send_cost": "100 us", "receive_cost": "100 us"}
"""CPU time per packet at each end. Fitted to one number in the publication: four flows on one core get 30 % of 100 Mb/s."""

IDEAL, BARE, MININET, CUT = "a router's queue", "bare metal", "Mininet", "Mininet, no offload"
NEAR = "Mininet, no delay line"
NEWER = "bare metal, newer dummynet"
STALLED, LATE = "Mininet, 5 ms off / 20 ms", "Mininet, 5 ms off / 20 ms, lost"
CORE = "Mininet, one core, 100 us"
TESTBED = "H0: sender's clock"
OFTEN, RARE, LONG = "H1: 5 ms / 20 ms", "H1: 5 ms / 100 ms", "H1: 30 ms / 100 ms"
TENTH, NO_CATCH_UP = "H1: 10 ms / 100 ms", "H2: 10 ms / 100 ms"
PACED, PACED_SHORT, PACED_LONG = "H7: pacing every 10 ms", "H7: pacing every 4 ms", "H7: pacing every 20 ms"
"""The publication's own explanation: the sender's pacing timer fires late and a batch is sent; TCP, which is not paced, is unaffected."""
ONE_CORE, COSTLY, MACHINE = "H4: single core", "H4: single core, 100 us", "H5: whole machine"

TICK_8_0, TICK_8_1, FINE_8_0, SENDER = "1 ms, to 8.0", "1 ms, from 8.1", "0.1 ms, to 8.0", "sender's clock"
PIPES: dict[str, dict[str, Any]] = {
    TICK_8_0: {"kind": "dummynet", "tick": "1 ms"},
    TICK_8_1: {"kind": "dummynet", "tick": "1 ms", "keeps_credit": True},
    FINE_8_0: {"kind": "dummynet", "tick": "100 us"},
}
"""Settings that dummynet may have had on the testbed's bridge: its tick, and its behaviour by FreeBSD version."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    """Imperfections of the hosts (`both`: sender and receiver on one machine) and of the link. `offload`: TCP hands
    over multi-segment packets, which hosts and netem handle as one. `framing`: overhead charged per packet by links.
    `near`: the bottleneck has no delay; all delay is on the access link.
    """

    host: Mapping[str, Any] = field(default_factory=dict)
    both: bool = False
    queue: str = "drop-tail"
    capacity: Mapping[str, Any] | None = None
    offload: bool = False
    framing: str = "0 bytes"
    near: bool = False

    @property
    def link(self) -> str:
        """Name of the same link with exact hosts, the reference for a host model."""
        if self.capacity:
            return BARE
        return MININET if self.queue == "netem-limit" else IDEAL

    @property
    def draws(self) -> bool:
        """Whether a model is random beyond PCC's own draws."""
        return "gate" in self.host

    def way(self, delay: str) -> dict[str, Any]:
        """The 100 Mb/s link, without its queue."""
        way: dict[str, Any] = {"rate": "100 Mbit/s", "delay": delay}
        return way | ({"capacity": dict(self.capacity)} if self.capacity else {})


def stalls(off_ms: int, on_ms: int, catch_up: str, *, receives_on: bool = True) -> dict[str, Any]:
    """A host that loses its processor for `off_ms` after exponentially distributed on-times with mean `on_ms`."""
    return {
        "gate": {
            "kind": "times",
            "on": {"kind": "exponential", "mean": f"{on_ms} ms"},
            "off": {"kind": "constant", "value": f"{off_ms} ms"},
        },
        "catch_up": catch_up,
        "receives_on": receives_on,
    }


def bare(pipe: str = TICK_8_0, *, whole: bool = False) -> Model:
    """Return the testbed: exact hosts with dummynet in between. With `whole`, the NIC does not split TCP's packets."""
    if pipe == SENDER:
        return Model(host={**CLOCK, "catch_up": "full"}, offload=whole)
    return Model(capacity=PIPES[pipe], offload=whole)


def mininet(host: Mapping[str, Any] | None = None, *, both: bool = False, offload: bool = True) -> Model:
    """Mininet's link: HTB, which charges the Ethernet header, above a netem with the delay and the limit."""
    return Model(host=host or {}, both=both, queue="netem-limit", offload=offload, framing="14 bytes")


def late(period_ms: int) -> Model:
    """Bare metal, except that paced senders wake up at ticks of a slow clock and catch up with a batch."""
    return Model(capacity=PIPES[TICK_8_0], host={"tick": f"{period_ms} ms", "catch_up": "full"})


MODELS: dict[str, Model] = {
    BARE: bare(),
    MININET: mininet(),
    IDEAL: Model(),
    CUT: mininet(offload=False),
    NEAR: replace(mininet(), near=True),
    NEWER: bare(TICK_8_1),
    STALLED: mininet(stalls(5, 20, "full")),
    LATE: mininet(stalls(5, 20, "none")),
    CORE: mininet({"cores": 1, **SPINS, **COST}, both=True),
    PACED_SHORT: late(4),
    PACED: late(10),
    PACED_LONG: late(20),
    TESTBED: Model(host={**CLOCK, "catch_up": "full"}),
    RARE: Model(host=stalls(5, 100, "full")),
    OFTEN: Model(host=stalls(5, 20, "full")),
    TENTH: Model(host=stalls(10, 100, "full")),
    LONG: Model(host=stalls(30, 100, "full", receives_on=False)),
    "H1: 30 ms / 1 s": Model(host=stalls(30, 1000, "full")),
    NO_CATCH_UP: Model(host=stalls(10, 100, "none")),
    "H2: 30 ms / 100 ms": Model(host=stalls(30, 100, "none")),
    ONE_CORE: Model(host={"cores": 1, **SPINS}, both=True),
    COSTLY: Model(host={"cores": 1, **SPINS, **COST}, both=True, offload=True),
    MACHINE: Model(host={**stalls(5, 100, "full", receives_on=False), "emulates_links": True}, both=True),
}
"""Models by name. "5 ms / 100 ms": off for 5 ms, on for 100 ms on average. H1 catches up fully, H2 not at all."""

ENVIRONMENTS = (BARE, MININET, IDEAL, CUT)
"""Links with exact hosts, run at every size; the other models are run at some sizes."""

TWINS: dict[tuple[str, str], str] = {
    (TESTBED, CUBIC): IDEAL,
    (PACED_SHORT, CUBIC): BARE,
    (PACED, CUBIC): BARE,
    (PACED_LONG, CUBIC): BARE,
    (ONE_CORE, CUBIC): IDEAL,
    (NO_CATCH_UP, CUBIC): TENTH,
    (LATE, CUBIC): STALLED,
    (CUT, PCC): MININET,
}
"""Model and controller -> the model with packet-for-packet identical runs: CUBIC is not paced, PCC has no segmentation offload."""


def hosted(model: Model) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """A model's `hosts` table, and the flow keys that refer to it."""
    if not model.host:
        return [], {}
    keys = {"host": "vm", "peer_host": "vm"} if model.both else {"host": "vm"}
    return [{"name": "vm", **model.host}], keys


EVERY = 20
"""Packets per report in the code used for the publication."""


def sender(controller: str, every: int = EVERY) -> dict[str, Any]:
    """Flow keys that select a protocol. As in the publication's code, PCC reports every 20 packets and never repeats a report."""
    flow: dict[str, Any] = {"congestion_control": controller}
    if controller != CUBIC:
        flow["congestion_control_options"] = {"feedback": every, **({} if every == 1 else {"feedback_repeats": False})}
    return flow


def shallow(model: str | Model, controller: str, packets: int, duration_s: float, every: int = EVERY) -> Scenario:
    """Return one flow over a 1000 and a 100 Mb/s link, 7.5 ms each, with a buffer of this many packets."""
    m = MODELS[model] if isinstance(model, str) else model
    hosts, keys = hosted(m)
    flow = {**sender(controller, every), **keys}
    if m.offload and controller == CUBIC:
        flow["stack"] = {"tso": True}
    return Scenario.from_dict(
        {
            "name": f"{LABEL[controller]}, {model if isinstance(model, str) else 'a reading'}, {packets} packets",
            "duration": f"{duration_s:g} s",
            "network": {
                "framing": m.framing,
                "access": {"rate": "1 Gbit/s", "delay": "15 ms" if m.near else "7.5 ms"},
                "bottleneck": {
                    **m.way("0 ms" if m.near else "7.5 ms"),
                    "queue": {"kind": m.queue, "limit": f"{packets} packets"},
                },
                "reverse": {"bottleneck": m.way("7.5 ms")},
            },
            "flows": [flow],
            "hosts": hosts,
        }
    )


FLOWS = 4
LARGE, MEDIUM = "2 processors", "1 processor"
WISHBONE: dict[str, Model] = {
    BARE: bare(),
    MININET: mininet(),
    LARGE: mininet({"cores": 2, **SPINS, **COST}, both=True),
    MEDIUM: mininet({"cores": 1, **SPINS, **COST}, both=True),
    IDEAL: Model(),
}
"""Environments with several flows. Mininet has enough processors for all; models with fewer share them among all ends."""


def wishbone(
    model: str | Model,
    controller: str,
    unit_s: float,
    *,
    flows: int = FLOWS,
    jitter: str = "0 s",
    limit: int = 250,
) -> Scenario:
    """Pairs of hosts, 30 ms, 250 packets; flow i starts after i units and writes for as many units as there are flows.

    The publication's unit is 500 s. `jitter`: maximum random delay on the senders' links. Links behind the bottleneck
    always have up to 10 us, so that seeds differ even without other randomness.
    """
    m = WISHBONE[model] if isinstance(model, str) else model
    hosts, keys = hosted(m)
    flow = sender(controller) | keys | ({"stack": {"tso": True}} if m.offload and controller == CUBIC else {})
    return Scenario.from_dict(
        {
            "name": f"{flows} flows of {LABEL.get(controller, controller)}",
            "duration": f"{(2 * flows - 1) * unit_s:g} s",
            "network": {
                "topology": "wishbone",
                "framing": m.framing,
                "access_list": [{"rate": "1 Gbit/s", "delay": "1 ms", "jitter": jitter}],
                "bottleneck": {**m.way("13 ms"), "queue": {"kind": m.queue, "limit": f"{limit} packets"}},
                "egress": {"rate": "1 Gbit/s", "delay": "1 ms", "jitter": "10 us"},
                "reverse": {"access": {"rate": "1 Gbit/s", "delay": "1 ms"}},
            },
            "flows": [
                {**flow, "start": f"{i * unit_s:g} s", "stop": f"{(i + flows) * unit_s:g} s"} for i in range(flows)
            ],
            "hosts": hosts,
            "record": {"goodput_interval": "1 s"},
        }
    )


def series(goodput: pl.DataFrame, flows: int, length_s: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Goodput in one run, Mb/s: one row per second, one column per flow.

    Raises
    ------
    InputError
        If a flow never delivered any data, or the run was cut short: the fairness of such a run is undefined.
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
    """Jain's index; 1 if every share is zero.

    Examples
    --------
    >>> jain([1.0, 1.0]), jain([1.0, 0.0])
    (1.0, 0.5)
    """
    values = np.asarray(x, dtype=np.float64)
    squares = float((values**2).sum())
    return float(values.sum()) ** 2 / (values.size * squares) if squares else 1.0
