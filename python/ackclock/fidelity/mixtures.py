"""Mixtures: scenarios that combine features, drawn from all scenario keys that the linux backend accepts.

A mixture has one to five features. A feature sets keys of one part of the scenario: the host's stack, a queue,
losses, other effects of a link, the return path, the workload, further flows, start and stop times, links before and
behind the bottleneck, the hosts' own devices. Keys and their types are read from the engine's schema. Keys refused
by the backend are omitted, so a new key is drawn as soon as the backend accepts it, with no change here. `RANGES`
lists only keys with a narrower range of plausible values than their type.

Length: a draw can be understood only with the values by type, the features and the accepted keys together.

Rates are 0.1 to 2,000 Mbit/s and round-trip times 1 to 800 ms, log-uniform. `KINDS` of the same rank are equally
likely.
"""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ackclock.errors import AckclockError
from ackclock.fidelity.drawn import ALL_CONTROLLERS, Drawn
from ackclock.fidelity.families import SUITES, Draw
from ackclock.linux import NetworkKind
from ackclock.linux._facts import Has
from ackclock.linux._translate import job, kernel_controller
from ackclock.scenario import Scenario
from ackclock.scenario._base import schema

__all__ = ["COUNT", "FEATURES", "MOST_FEATURES", "keys_of", "mixtures", "taken_keys"]

COUNT = 50
"""Default number of mixtures."""
MOST_FEATURES = 5
MOST_PACKETS = 30_000
"""Approximate duration of a run in packets: runs on faster paths are shorter."""
MOST_DATAGRAMS = 300_000
"""Approximate maximum number of datagrams per flow."""

Table = dict[str, Any]
Path = tuple[str | int, ...]
Edit = tuple[Path, Any]

RANGES: dict[str, tuple[float, float]] = {
    "stack.smss": (256, 8948),
    "stack.initial_window": (1, 50),
    "stack.initial_receive_window": (2, 100),
    "stack.initial_ssthresh": (2, 200),
    "stack.reordering": (1, 50),
    "stack.min_rto": (5, 1000),
    "stack.receive_buffer": (5_000, 5_000_000),
    "stack.socket_buffer": (5_000, 5_000_000),
    "stack.send_buffer": (5_000, 5_000_000),
    "stack.limit_output_bytes": (3_000, 2_000_000),
    "link.jitter": (0.05, 20),
    "link.aggregate": (0.2, 15),
    "link.thin_acks": (2, 16),
    "reorder.probability": (0.002, 0.05),
    "reorder.extra_delay": (1, 50),
    "wifi-jitter.mean": (0.2, 10),
    "outage.at": (100, 3000),
    "outage.every": (3000, 9000),
    "outage.lasts": (20, 2000),
    "ecn-fault.probability": (0.01, 1),
    "losses.p": (0.0005, 0.02),
    "losses.r": (0.1, 0.6),
    "losses.loss_good": (0.0001, 0.002),
    "losses.loss_bad": (0.3, 1),
    "losses.every": (30, 1000),
    "losses.bucket": (15_000, 150_000),
    "losses.initial": (1_500, 150_000),
    "capacities.tick": (0.1, 10),
    "capacities.every": (50, 2000),
    "queues.target": (1, 30),
    "queues.interval": (20, 200),
    "queues.update": (5, 40),
    "queues.max_burst": (10, 200),
    "queues.ce_threshold": (0.5, 10),
    "queues.step": (0.3, 5),
    "queues.rtt": (10, 300),
    "queues.max_p": (0.02, 0.5),
    "queues.probability": (0.02, 0.5),
    "queues.weight": (0.001, 0.05),
    "queues.alpha": (0.05, 1),
    "queues.beta": (0.5, 8),
    "queues.quantum": (300, 9000),
    "queues.queues": (1, 1024),
    "workloads.count": (1, 6),
    "workloads.requests": (1, 12),
    "workloads.batch": (1, 4),
    "workloads.objects": (1, 10),
    "workloads.think": (1, 800),
    "workloads.pause": (1, 500),
    "workloads.bytes": (1_500, 1_500_000),
    "workloads.chunk": (1_000, 300_000),
    "workloads.initial": (10_000, 500_000),
    "workloads.request": (50, 3_000),
    "workloads.clients": (1, 5),
    "workloads.payload": (20, 1_400),
    "workloads.max_open": (500, 1000),
    "workloads.timeout": (20_000, 60_000),
    "workloads.on": (20, 2000),
    "workloads.off": (20, 2000),
    "host.gro_flush_timeout": (0.02, 2),
    "host.napi_defer_hard_irqs": (1, 10),
    "merging.gro_flush_timeout": (0.02, 2),
    "merging.napi_defer_hard_irqs": (1, 10),
}
"""Range of a key's numbers, log-uniform: durations in ms, sizes in bytes."""

NOT_A_FEATURE = frozenset(
    {
        "flows.count", "flows.name", "flows.path", "flows.transport", "flows.profile", "flows.congestion_control_options", "flows.stack",
        "flows.workload", "flows.host", "flows.peer_host", "stack.packet_memory", "link.rate", "link.delay", "link.queue", "link.loss", "host.name",
        "host.preset", "stack.slow_start", "losses.scripted", "losses.listed", "losses.load", "capacities.mahimahi", "stack.tso",
        "flows.reader", "netem-jitter.before_rate",
    }
)  # fmt: skip
"""Keys that are not features: names and containers of other keys; keys with only one value in the kernel; keys drawn
elsewhere (scripted losses in the family "transfer", slow readers in tests/python/linux/test_linux_readers.py); keys
determined by the network; parts of links that are the simulator's own in the relay.
"""

WHOLE = frozenset({"whole", "packet limit", "mean packets", "packets", "limit"})


class Mixture:
    """Scenario under construction: its network, and the values set so far."""

    def __init__(self, draw: Draw, number: int) -> None:
        self.draw = draw
        self.controller, self.recovery = SUITES[number % len(SUITES)]
        self.mbps, self.rtt_ms = draw.spread(0.1, 2000), draw.spread(1, 800)
        self.bdp = self.mbps * 1e3 * self.rtt_ms / (8 * 1514)
        self.queue = max(5, min(20_000, round(self.bdp * draw.spread(0.3, 3))))
        self.seconds = min(20.0, max(12e-3 * self.rtt_ms, min(8.0, MOST_PACKETS * 1514 * 8e-6 / self.mbps)))
        self.network: NetworkKind = "relay"
        self.edits: list[tuple[str, Edit]] = []
        self.flows = 1

    def base(self) -> Table:
        """Return one flow over one link."""
        half = f"{round(self.rtt_ms * 500)} us"
        flow: Table = {"profile": "linux-6", "congestion_control": self.controller, "workload": {"kind": "bulk"}}
        if self.recovery:
            flow["recovery"] = self.recovery
        limit = {"kind": "drop-tail", "limit": f"{self.queue} packets"}
        return {
            "duration": f"{round(self.seconds * 1000)} ms",
            "network": {
                "topology": "chain",
                "framing": "14 bytes",
                "bottleneck": {"rate": f"{self.mbps:g} Mbit/s", "delay": half, "queue": limit},
                "reverse": {"bottleneck": {"delay": half}},
            },
            "flows": [flow],
        }

    def set(self, feature: str, path: Path, value: Any) -> None:
        """Set one key."""
        self.edits.append((feature, (path, value)))


# --- values


def _value(it: Mixture, place: str, key: Mapping[str, Any], depth: int = 0) -> Any:
    """Draw a value for a key according to its type."""
    name, takes = f"{place}.{key['name']}", key["takes"]
    kind, draw = takes["takes"], it.draw
    low, high = RANGES.get(name, (None, None))
    match kind:
        case "flag":
            return draw.chance(0.5) if key.get("absent") is None else not key["absent"]
        case "choice" if name == "ecn-fault.what":
            return draw.one(("strip-ce", "mark-all"))
        case "choice":
            return draw.one([choice for choice in takes["names"] if choice != key.get("absent")] or takes["names"])
        case "table":
            return _table(it, takes["table"], schema_table(takes["table"]), depth + 1)
        case "one of" if takes["family"] == "arrivals":
            return {"kind": "periodic", "interval": f"{draw.between(200, 2000)} ms"}
        case "one of":
            return _of_family(it, takes["family"], depth + 1)
        case "list" if name == "capacities.steps":
            return _steps(it)
        case "share" | "number" | "above":
            return draw.spread(low or max(0.001, takes.get("low") or 0.001), high or min(0.5, takes.get("high") or 0.5))
        case "duration" | "duration or drawn":
            return _ms(draw.spread(low or 0.1, high or 200))
        case "drawn" | "drawn or":
            return _distribution(it, name, takes.get("unit", "amount"))
        case "size":
            size = draw.spread(low or max(takes["low"], 200), high or min(takes["high"], 300_000))
            return f"{2 * max(1, round(size / 2))} bytes"
        case "rate":
            return f"{it.mbps * draw.spread(0.3, 3):.4g} Mbit/s"
        case "whole":
            return round(draw.spread(low or max(1, takes["low"]), high or min(takes["high"], 1000)))
        case "packet limit" | "limit" | "packets":
            return f"{max(5, round(it.queue * draw.spread(0.3, 2)))} packets"
        case "mean packets":
            return f"{max(2, round(it.queue * draw.spread(0.05, 0.3)))} packets"
        case _:
            raise LookupError(kind)


def _ms(ms: float) -> str:
    """Whole milliseconds, at least 1: the kernel's settings have no finer resolution."""
    return f"{round(ms)} ms" if ms >= 1 else f"{round(ms * 1000)} us"


def _distribution(it: Mixture, name: str, unit: str) -> Table:
    low, high = RANGES.get(name, (1.0, 200.0))
    if name.startswith("capacities."):
        low, high = {"rate": (0.3, 2), "delay": (0.3, 2), "loss": (0.0005, 0.02)}[name.partition(".")[2]]
    a, b = sorted(it.draw.spread(low, high) for _ in range(2))

    def said(x: float) -> Any:
        if name == "capacities.rate" or unit == "rate":
            return f"{it.mbps * min(x, 3):.4g} Mbit/s"
        if name == "capacities.delay":
            return f"{round(x * it.rtt_ms * 500)} us"
        if unit == "share" or name.endswith(".loss"):
            return min(x, 0.02)
        return f"{round(x)} bytes" if name.endswith("bytes") else _ms(x)

    if unit == "duration" and it.draw.chance(0.5):
        return {"kind": "constant", "value": said(a)}
    return {"kind": "uniform", "low": said(a), "high": said(b)}


def _table(it: Mixture, place: str, table: Mapping[str, Any], depth: int) -> Table:
    """Draw a table: its required keys, and most of the optional ones."""
    made: Table = {}
    for key in table["keys"]:
        if f"{place}.{key['name']}" in NOT_A_FEATURE:
            continue
        if not key["required"] and not it.draw.chance(0.85 if depth < 3 else 0.3):
            continue
        try:
            made[key["name"]] = _value(it, place, key, depth)
        except LookupError:
            if key["required"]:
                raise
    return made


def _of_family(it: Mixture, family: str, depth: int, kinds: Sequence[str] | None = None) -> Table:
    """Draw a table that has a kind."""
    tables = {table["kind"]: table for table in schema()[family] if kinds is None or table["kind"] in kinds}
    kind = it.draw.one(sorted(tables))
    made = {"kind": kind, **_table(it, family, tables[kind], depth)}
    return _agreeing(it, family, made)


def _agreeing(it: Mixture, family: str, made: Table) -> Table:
    """Adjust keys that must be consistent with one another."""
    if family == "queues" and made["kind"] in ("red", "choke"):
        limit = max(12, it.queue)
        made |= {"limit": f"{limit} packets", "max": f"{limit // 3} packets", "min": f"{limit // 9 + 1} packets"}
    elif family == "queues" and made["kind"] == "linux-red":
        bytes_ = max(20_000, it.queue * 1514)
        made |= {
            "limit": f"{bytes_} bytes",
            "min": f"{bytes_ // 12} bytes",
            "max": f"{bytes_ // 4} bytes",
            "avpkt": "1000 bytes",
        }
        made["burst"] = max(1, round(1.3 * (2 * bytes_ // 12 + bytes_ // 4) / 3000))
        made["bandwidth"] = f"{it.mbps:g} Mbit/s"
    elif family == "queues" and made["kind"] == "threshold":
        made["mark"], made["limit"] = f"{max(2, it.queue // 4)} packets", f"{it.queue} packets"
    elif family == "queues" and made["kind"] == "cake":
        made.pop("limit", None)
        made["bandwidth"] = f"{it.mbps * it.draw.spread(0.5, 1):.4g} Mbit/s"
    elif family == "losses" and made["kind"] == "policer":
        made["rate"] = f"{it.mbps * it.draw.spread(0.3, 0.9):.4g} Mbit/s"
    elif family == "capacities" and "repeat" in made:
        made["repeat"] = f"{int(made['steps'][-1]['at'].split()[0]) + it.draw.between(100, 2000)} ms"
    elif family == "workloads" and {"rate", "payload"} <= made.keys():
        # a high-rate flow of small datagrams would take longer than all the others together
        smallest = float(made["rate"].split()[0]) * 1e6 * it.seconds / (8 * MOST_DATAGRAMS)
        if int(made["payload"].split()[0]) < smallest:
            made["payload"] = f"{min(1400, round(smallest))} bytes"
    elif family == "workloads" and made["kind"] == "transactions":
        made["max_open"] = 1000
        for key in ("objects", "together") if it.draw.chance(0.5) else ("requests",):
            made.pop(key, None)
        made.pop("initial_window_mix", None)
        made.pop("mix_by", None)
    return made


def _steps(it: Mixture) -> list[Table]:
    steps: list[Table] = []
    at = 0
    for _ in range(it.draw.between(1, 4)):
        at += it.draw.between(100, 2500)
        made: Table = {"at": f"{at} ms"}
        if it.draw.chance(0.7):
            made["rate"] = f"{it.mbps * it.draw.spread(0.3, 3):.4g} Mbit/s"
        if it.draw.chance(0.5):
            made["delay"] = f"{round(it.rtt_ms * 500 * it.draw.spread(0.4, 2))} us"
        if it.draw.chance(0.3) or len(made) == 1:
            made["loss"] = it.draw.spread(0.001, 0.03)
        steps.append(made)
    return steps


def schema_table(name: str) -> Mapping[str, Any]:
    """Look up a table in the schema."""
    return next(table for table in schema()["tables"] if table["kind"] == name)


# --- features


def _keys(it: Mixture, feature: str, place: str, path: Path, names: Sequence[str], many: int) -> None:
    table = {key["name"]: key for key in schema_table(place)["keys"]}
    left = list(names)
    for _ in range(min(many, len(left))):
        name = it.draw.one(left)
        left.remove(name)
        try:
            it.set(feature, (*path, name), _value(it, place, table[name]))
        except LookupError:
            continue


def _link(it: Mixture) -> Path:
    return ("network", "bottleneck") if it.draw.chance(0.65) else ("network", "reverse", "bottleneck")


def _stack(it: Mixture) -> None:
    for flow in range(it.flows):
        names = [name for name in taken_keys("stack") if name != "tso"]
        _keys(it, "stack", "stack", ("flows", flow, "stack"), names, it.draw.between(1, 4))


def _queue(it: Mixture) -> None:
    path = ("network", "bottleneck") if it.draw.chance(0.9) else ("network", "reverse", "bottleneck")
    queue = _of_family(it, "queues", 1, kinds=taken_kinds("queues"))
    it.set("queue", (*path, "queue"), queue)
    if path[1] == "reverse":
        it.set("queue", (*path, "rate"), f"{it.mbps / it.draw.between(20, 60):.4g} Mbit/s")
    if queue.get("ecn") or queue["kind"] in ("threshold", "dualpi2", "cake"):
        for flow in range(it.flows):
            if it.draw.chance(0.7):
                it.set("queue", ("flows", flow, "stack", "ecn"), it.draw.one(("ask", "ask", "accecn")))


def _losses(it: Mixture) -> None:
    it.set("loss", (*_link(it), "loss"), _of_family(it, "losses", 1, kinds=taken_kinds("losses")))


def _links(it: Mixture) -> None:
    names = [name for name in taken_keys("link") if name != "capacity"]
    if it.network == "qdisc" or it.draw.chance(0.15):
        it.network = "qdisc"
        it.set("link", (*_link(it), "merging"), _table(it, "merging", schema_table("merging"), 1))
        return
    names.remove("merging")
    _keys(it, "link", "link", _link(it), names, it.draw.between(1, 3))


def _capacity(it: Mixture) -> None:
    path: Path = ("network", "bottleneck") if it.draw.chance(0.85) else ("network", "reverse", "bottleneck")
    if path[1] == "reverse":
        it.set("capacity", (*path, "rate"), f"{it.mbps / it.draw.between(2, 20):.4g} Mbit/s")
    it.set("capacity", (*path, "capacity"), _of_family(it, "capacities", 1, kinds=taken_kinds("capacities")))


def _way_back(it: Mixture) -> None:
    path = ("network", "reverse", "bottleneck")
    it.set("way back", (*path, "rate"), f"{it.mbps / it.draw.between(10, 150):.4g} Mbit/s")
    it.set("way back", (*path, "queue"), {"kind": "drop-tail", "limit": f"{it.draw.between(5, 100)} packets"})


def _workload(it: Mixture) -> None:
    for flow in range(it.flows):
        if flow == 0 or it.draw.chance(0.4):
            it.set(
                "workload", ("flows", flow, "workload"), _of_family(it, "workloads", 1, kinds=taken_kinds("workloads"))
            )


def _several(it: Mixture) -> None:
    for _ in range(it.draw.between(1, 4)):
        if it.draw.chance(0.2):  # plain datagrams
            it.set(
                "flows", ("flows", it.flows), {"workload": _of_family(it, "workloads", 1, kinds=schema()["datagrams"])}
            )
            continue
        flow: Table = {
            "profile": "linux-6",
            "congestion_control": it.draw.one(ALL_CONTROLLERS),
            "workload": {"kind": "bulk"},
        }
        flow["start"] = f"{it.draw.between(0, round(400 * it.seconds))} ms"
        it.set("flows", ("flows", it.flows), flow)
        it.flows += 1


def _times(it: Mixture) -> None:
    for flow in range(it.flows):
        if it.draw.chance(0.7):
            it.set("times", ("flows", flow, "start"), f"{it.draw.between(0, round(300 * it.seconds))} ms")
        if it.draw.chance(0.7):
            it.set(
                "times",
                ("flows", flow, "stop"),
                f"{it.draw.between(round(400 * it.seconds), round(950 * it.seconds))} ms",
            )


def _ends(it: Mixture) -> None:
    for name in ("access", "egress"):
        if it.draw.chance(0.7):
            link: Table = {
                "rate": f"{it.mbps * it.draw.spread(0.8, 20):.4g} Mbit/s",
                "delay": f"{it.draw.between(0, 5000)} us",
            }
            if it.draw.chance(0.5):
                link["queue"] = {"kind": "drop-tail", "limit": f"{it.draw.between(10, 1000)} packets"}
            it.set("links", ("network", name), link)


def _hosts(it: Mixture) -> None:
    machines: list[Table] = []
    table = {key["name"]: key for key in schema_table("host")["keys"]}
    for name in ("sender", "receiver"):
        machine: Table = {"name": name}
        for key in taken_keys("host"):
            if it.draw.chance(0.4):
                try:
                    machine[key] = _value(it, "host", table[key])
                except LookupError:
                    continue
        machines.append(machine)
    if it.draw.chance(0.5):
        cuts = it.draw.chance(0.6)
        for machine in machines:
            machine["cuts_packets"] = cuts
    it.set("hosts", ("hosts",), machines)
    for flow in range(it.flows):
        if it.draw.chance(0.7):
            it.set("hosts", ("flows", flow, "stack", "tso"), True)
        it.set("hosts", ("flows", flow, "host"), "sender")
        it.set("hosts", ("flows", flow, "peer_host"), "receiver")


def _offload(it: Mixture) -> None:
    for flow in range(it.flows):
        it.set("offload", ("flows", flow, "stack", "tso"), True)


FEATURES: dict[str, tuple[Callable[[Mixture], None], int]] = {
    "flows": (_several, 12),
    "stack": (_stack, 20),
    "queue": (_queue, 42),
    "loss": (_losses, 15),
    "link": (_links, 16),
    "capacity": (_capacity, 11),
    "way back": (_way_back, 5),
    "workload": (_workload, 14),
    "times": (_times, 7),
    "links": (_ends, 5),
    "hosts": (_hosts, 5),
    "offload": (_offload, 3),
}
"""Feature -> drawing function, and weight."""


# --- keys that the backend accepts


@functools.cache
def _has() -> Has:
    names = {kernel_controller(name, recovery) for name, recovery in SUITES} | {"bbr_drawn"}
    return Has(release="7.3.4", controllers=tuple(sorted(names)))


CHANCE = frozenset(
    {
        "bernoulli",
        "gilbert-elliott",
        "gilbert-elliott-in-time",
        "load",
        "red",
        "linux-red",
        "choke",
        "pie",
        "fq-pie",
        "dualpi2",
        "cake",
    }
)
"""Kinds of losses and queues that draw random numbers."""
CHANCES = frozenset({"jitter", "netem_jitter", "reorder", "duplicate", "corrupt", "wifi"})
"""Keys of a link that draw random numbers."""


def _draws_its_own(at: Any) -> bool:
    """Whether part of a scenario uses random numbers; the kernel's queueing disciplines draw these from their own
    generator.
    """
    if isinstance(at, Mapping):
        return at.get("kind") in CHANCE or any(key in CHANCES or _draws_its_own(value) for key, value in at.items())
    return isinstance(at, list) and any(map(_draws_its_own, at))


def _accepted(told: Table, network: NetworkKind) -> Scenario | None:
    """Return the scenario if it is valid, the backend accepts it over this network, and neither side draws its own
    random numbers; otherwise None.
    """
    if network == "qdisc" and _draws_its_own(told["network"]):
        return None
    try:
        scenario = Scenario.from_dict(told)
        job(json.loads(scenario.to_engine_json()), 1, network, _has())
    except (AckclockError, LookupError):
        return None
    return scenario


@functools.cache
def taken_keys(place: str) -> tuple[str, ...]:
    """Return a table's keys accepted by the backend. Each is tried alone, with several values, on a plain scenario."""
    found = []
    for key in schema_table(place)["keys"]:
        name = key["name"]
        if f"{place}.{name}" in NOT_A_FEATURE and f"{place}.{name}" != "stack.tso":
            continue
        taken = [value for number in range(12) if (value := _tried(place, key, number)) is not None]
        if taken and (key["takes"]["takes"] not in ("flag", "choice") or len({str(value) for value in taken}) > 1):
            found.append(name)  # a key with a single accepted value cannot be varied
    return tuple(found)


@functools.cache
def taken_kinds(family: str) -> tuple[str, ...]:
    """Return a family's kinds accepted by the backend, apart from the plain one."""
    kinds = [table["kind"] for table in schema()[family]]
    wanted = [
        kind for kind in kinds if kind not in ("drop-tail", "none", "bulk") and f"{family}.{kind}" not in NOT_A_FEATURE
    ]
    return tuple(kind for kind in wanted if any(_tried_kind(family, kind, number) for number in range(12)))


PLACES: dict[str, Path] = {
    "stack": ("flows", 0, "stack"), "link": ("network", "bottleneck"), "flows": ("flows", 0), "queues": ("network", "bottleneck", "queue"),
    "losses": ("network", "bottleneck", "loss"), "capacities": ("network", "bottleneck", "capacity"), "workloads": ("flows", 0, "workload"),
}  # fmt: skip


def _tried(place: str, key: Mapping[str, Any], number: int) -> Any:
    it = Mixture(Draw("try", 1, number), number)
    try:
        value = _value(it, place, key)
    except LookupError:
        return None
    told = it.base()
    if place == "host":
        told["hosts"] = [{"name": "sender", key["name"]: value}, {"name": "receiver"}]
        told["flows"][0] |= {"host": "sender", "peer_host": "receiver"}
    else:
        _put(told, (*PLACES[place], key["name"]), value)
    taken = any(_accepted(told, network) is not None for network in ("relay", "qdisc"))
    return value if taken else None


def _tried_kind(family: str, kind: str, number: int) -> bool:
    it = Mixture(Draw("try", 1, number), number)
    try:
        value = _of_family(it, family, 1, kinds=(kind,))
    except LookupError:
        return False
    told = it.base()
    _put(told, PLACES[family], value)
    return any(_accepted(told, network) is not None for network in ("relay", "qdisc"))


def _put(told: Table, path: Path, value: Any) -> None:
    at: Any = told
    for i, step in enumerate(path[:-1]):
        if isinstance(step, int):
            at = at[step]
            continue
        at = at.setdefault(step, [] if isinstance(path[i + 1], int) else {})
    last = path[-1]
    if isinstance(last, int):
        at.insert(last, value)
    else:
        at[last] = value


# --- mixtures


def mixtures(seed: int, count: int = COUNT, *, first: int = 0) -> Iterator[Drawn]:
    """Draw mixtures; each depends only on the seed and its number.

    Parameters
    ----------
    seed
        Any number.
    count
        Number of mixtures.
    first
        Number of the first mixture.
    """
    for number in range(first, first + count):
        yield _mixture(seed, number)


def _mixture(seed: int, number: int) -> Drawn:
    it = Mixture(Draw("mixture", seed, number), number + 7 * seed)
    wanted = it.draw.between(1, MOST_FEATURES)
    left = {name: weight for name, (_, weight) in FEATURES.items()}
    chosen: list[str] = []
    while len(chosen) < wanted:
        at = it.draw.between(1, sum(left.values()))
        for name, weight in left.items():
            at -= weight
            if at <= 0:
                chosen.append(name)
                del left[name]
                break
    # further flows come first, because the other features apply to each of them
    for name in sorted(chosen, key=list(FEATURES).index):
        FEATURES[name][0](it)
    scenario, kept = _kept(it)
    features = [name for name in FEATURES if name in kept]
    flows = len(scenario.flows)
    kind = f"{len(features)} feature{'s' if len(features) != 1 else ''}{', several flows' if flows > 1 else ''}"
    said = f"mixture {seed}-{number}: {it.controller}, {it.mbps:g} Mbit/s, {it.rtt_ms:g} ms; {', '.join(features) or 'nothing'}"
    return Drawn(name=said, kind=kind, scenario=scenario.set("name", f"mixture-{seed}-{number}"), network=it.network)


def _kept(it: Mixture) -> tuple[Scenario, set[str]]:
    """Return the drawn scenario, and the names of the features that it contains. If the backend refuses it as a
    whole, the edits are applied one by one, and refused values are dropped.
    """
    told = it.base()
    for _, (path, value) in it.edits:
        _put(told, path, copy.deepcopy(value))
    if (whole := _accepted(told, it.network)) is not None:
        return whole, {feature for feature, _ in it.edits}
    told, kept = it.base(), set()
    scenario = _accepted(told, it.network) or _accepted(told, "relay")
    for feature, (path, value) in it.edits:
        for part in _parts(value):
            trial = copy.deepcopy(told)
            try:
                _put(trial, path, part)
            except (IndexError, KeyError):
                break
            if (taken := _accepted(trial, it.network)) is not None:
                told, scenario = trial, taken
                kept.add(feature)
                break
    if scenario is None:
        raise AssertionError("a plain scenario is taken")
    return scenario, kept


def _parts(value: Any) -> Iterator[Any]:
    """Yield a value, then copies that each lack one optional key, then copies with fewer and fewer optional keys."""
    yield value
    if isinstance(value, dict):
        left = dict(value)
        for key in reversed(list(value)):
            if key != "kind":
                yield {name: of for name, of in value.items() if name != key}
        for key in reversed(list(value)):
            if key != "kind" and len(left) > 1:
                del left[key]
                yield dict(left)


def keys_of(told: Mapping[str, Any]) -> set[str]:
    """Return the keys of a scenario, such as "stack.smss", "link.jitter", "queues.codel.target"."""
    found: set[str] = set()
    network = told["network"]
    links = [
        network.get("access"),
        network.get("bottleneck"),
        network.get("egress"),
        *network.get("reverse", {}).values(),
    ]
    for link in filter(None, links):
        found |= {f"link.{key}" for key in link}
        for key, family in (("queue", "queues"), ("loss", "losses"), ("capacity", "capacities")):
            if key in link:
                found |= _kind_keys(family, link[key])
    for flow in told["flows"]:
        found |= {f"flows.{key}" for key in flow} | {f"stack.{key}" for key in flow.get("stack", {})}
        found |= _kind_keys("workloads", flow["workload"]) if "workload" in flow else set()
    for host in told.get("hosts", []):
        found |= {f"host.{key}" for key in host}
    return found


def _kind_keys(family: str, table: Mapping[str, Any]) -> set[str]:
    kind = f"{family}.{table['kind']}"
    return {kind} | {f"{kind}.{key}" for key in table if key != "kind"}
