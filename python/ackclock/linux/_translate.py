"""From a scenario to what the guest is told; what the kernel cannot do is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from ackclock.errors import ScenarioError, one_of, quote
from ackclock.scenario import Host, Link, LinuxRed, Stack
from ackclock.scenario._described import schema

__all__ = ["NETWORKS", "job", "kernel_controller"]

NetworkKind = Literal["auto", "qdisc", "relay"]
NETWORKS = ("auto", "qdisc", "relay")

START_NS = 2_000_000_000
"""Virtual time at which a run begins: after boot and set-up, on a tick."""

RMEM = (4096, 131_072, 67_108_864)
"""Bytes of a receive buffer: least, first, greatest (`tcp_rmem`)."""

PAYLOAD_SHARE = {"qdisc": 162, "relay": 160}
"""256ths of a buffer that full segments fill with payload (`scaling_ratio`), behind a veth and behind a TUN device."""

PACKET_MEMORY = {"qdisc": "handed-on", "relay": "copied"}
"""What `stack.packet_memory` says of the two devices."""

UDP_IP = 28
"""Bytes of the IPv4 and the UDP header."""

FRAME = 14
"""Bytes of an Ethernet header, which the kernel's disciplines charge beyond the IP packet."""

FULL_FRAME = 1500 + FRAME

ENOUGH = 1_000_000
"""Packets of a queue that never drops."""

CONTROLLERS = {"westwood-plus": "westwood", "westwood": ""}
"""Our name -> the kernel's, where they differ; "": what the kernel calls so is another one."""

OURS = {
    "prr-linux-6": "",
    "rate-halving": "rh",
    "rfc6675": "rfc6675",
    "prr-ub": "prr_ub",
    "prr-crb": "prr_crb",
    "prr-ssrb": "prr_ssrb",
    "prr-rfc9937": "prr_9937",
    "prr-linux-3.2": "prr_3_2",
}
"""Recovery rule -> the rule's part in the name of a controller of ours (linux/modules); "": the kernel's own."""

RECORDED = (
    "trace", "capture", "sample_interval_ns", "queue_interval_ns", "goodput_interval_ns", "drops", "transactions",
    "warm_up_ns", "performance",
)  # fmt: skip
RECORD_DEFAULTS = {"controller": "none"}
"""What of `record` the guest carries out, and what the rest of it must be."""

LINK_KEYS = ("rate", "delay", "queue", "loss", "jitter", "reorder", "name")
NEUTRAL = {"thin_acks": 1}
"""Values of a link's keys that ask for nothing, beside 0 and absent."""

WORKLOADS = ("bulk", "transfer", "fetch", "throttled", "population", "transactions")
"""Workloads over TCP and PCC that the guest carries out; of plain datagrams it carries out all."""
MOST_CLIENTS = 1000
"""Flows of a group of fetches, whose ends are threads."""
LEAST_PAYLOAD = 12
"""Bytes of a plain datagram that carry its number and time."""
LARGEST_FEEDBACK = 128
"""Datagrams that one report can tell of, on the wire."""
MININET_BURST = 15 * 1024
"""Bytes of HTB's burst as Mininet sets it."""
SACK, TIMESTAMPS = "net/ipv4/tcp_sack", "net/ipv4/tcp_timestamps"


class _NotByQdiscError(Exception):
    """A part of the network that the kernel's disciplines cannot carry out, though the relay can."""


def job(scenario: Mapping[str, Any], seed: int, network: NetworkKind, controllers: Sequence[str]) -> dict[str, Any]:
    """The guest's job.

    Parameters
    ----------
    scenario
        As compiled for the engine.
    seed
        Seed of the links' random streams.
    network
        "qdisc", "relay", or "auto": by the kernel's disciplines where they can do it, else by the relay.
    controllers
        What the kernel has.

    Raises
    ------
    ScenarioError
        If neither can, with the key.
    """
    flows = scenario["flows"]
    recorded: tuple[str, ...] = RECORDED
    traced = flows[:1] if scenario["record"].get("controller") == "flow" else flows
    if all(_is_pcc(group) for group in traced):
        recorded = (*RECORDED, "controller", "controller_interval_ns")  # the monitor intervals
    for key, value in scenario["record"].items():
        if value and key not in recorded and value != RECORD_DEFAULTS.get(key):
            name = key.removesuffix("_ns")
            raise ScenarioError(key=f"record.{name}", found=quote(value), allowed=f"no {name}, with the linux backend")
    machines = scenario.get("hosts", [])
    hosts = [
        {**_host(group, i, controllers), "cards": [_card(group.get(key), machines) for key in ("host", "peer_host")]}
        for i, group in enumerate(flows)
    ]
    plan: dict[str, Any] = {"kind": "relay", "ahead": True}
    if network != "relay":
        try:
            plan = _qdiscs(scenario, hosts, seed)
        except _NotByQdiscError as error:
            if network == "qdisc":
                key, found = error.args
                raise ScenarioError(
                    key=key,
                    found=found,
                    allowed="what the kernel's queueing disciplines can do; --network relay can do it",
                ) from None
    if plan["kind"] == "relay" and (large := [i for i, host in enumerate(hosts) if host["tso"]]):
        raise ScenarioError(
            key=f"flows.{large[0]}.stack.tso", found="true", allowed="false, where the network is --network relay"
        )
    _check_cards(hosts, plan["kind"])
    for i, group in enumerate(flows):
        memory = group.get("stack", {}).get("packet_memory", real := PACKET_MEMORY[plan["kind"]])
        if memory != real:
            raise ScenarioError(
                key=f"flows.{i}.stack.packet_memory",
                found=quote(memory),
                allowed=f"{quote(real)}, where the network is --network {plan['kind']}",
            )
    for host in hosts:
        _bound_buffer(host, plan["kind"])
    return {
        "scenario": {**scenario, "flows": [_flow(group) for group in flows]},
        "seed": seed,
        "start_ns": START_NS,
        "network": plan,
        "hosts": hosts,
        "capture": scenario["record"].get("capture", "none") != "none",
    }


def _flow(group: Mapping[str, Any]) -> dict[str, Any]:
    """The group as the guest's reader of scenarios wants it: controllers it does not know are told to hosts only."""
    return dict(group) if _is_pcc(group) else {**group, "congestion_control": "cubic"}


def _is_pcc(group: Mapping[str, Any]) -> bool:
    return group["congestion_control"] in schema()["pcc"]["controllers"] and not _is_plain(group)


def _is_plain(group: Mapping[str, Any]) -> bool:
    return group["workload"]["kind"] in schema()["datagrams"]


def kernel_controller(name: str, recovery: str | None) -> str:
    """The kernel's name of a controller under a recovery rule; "" if there can be none."""
    base = name.removeprefix("kernel:")
    if base == name:
        base = CONTROLLERS.get(base, base)
    rule = OURS.get(recovery or "prr-linux-6")
    return "" if rule is None or not base else f"{base}_{rule}" if rule else base


def _host(group: Mapping[str, Any], i: int, controllers: Sequence[str]) -> dict[str, Any]:
    """Settings of the hosts of a group; every key of `stack` is carried out or refused."""

    def refuse(key: str, found: object, allowed: str) -> ScenarioError:
        return ScenarioError(key=f"flows.{i}.{key}", found=quote(found), allowed=f"{allowed}, with the linux backend")

    if group["profile"] != "linux-6":
        raise refuse("profile", group["profile"], '"linux-6"')
    workload = group["workload"]["kind"]
    datagrams = _is_pcc(group) or _is_plain(group)
    carried = [kind for kind in WORKLOADS if not _is_pcc(group) or kind in schema()["pcc"]["workloads"]]
    carried += [] if _is_pcc(group) else schema()["datagrams"]
    if workload not in carried:
        raise refuse("workload.kind", workload, ", ".join(carried))
    if workload in ("fetch", "population"):
        clients = group.get("count", 1) * group["workload"].get("clients", 1)
        if clients > MOST_CLIENTS:
            raise refuse("count" if workload == "fetch" else "workload.clients", clients, f"at most {MOST_CLIENTS}")
    options = group.get("congestion_control_options") or {}
    for key in sorted({name for name, value in group.items() if value} - {
        "count", "profile", "congestion_control", "congestion_control_options", "recovery", "stack", "workload",
        "start_ns", "start_s", "stagger_ns", "stagger_s", "stop_ns", "path", "host", "peer_host",
    }):  # fmt: skip
        raise refuse(key, group[key], f"no {key}")
    if datagrams:
        return _datagram_host(group, refuse)
    if options:
        name, value = next(iter(options.items()))
        raise refuse(f"congestion_control_options.{name}", value, "no options")
    controller = kernel_controller(group["congestion_control"], group.get("recovery"))
    if controller not in controllers:
        if group.get("recovery") not in (None, "prr-linux-6"):
            pairs = [rule for rule in OURS if kernel_controller(group["congestion_control"], rule) in controllers]
            raise refuse("recovery", group["recovery"], one_of(group["recovery"], pairs) or "no recovery rule")
        near = one_of(controller, controllers) if controller else "westwood-plus, which the kernel calls westwood"
        raise refuse("congestion_control", group["congestion_control"], near)

    stack = dict(group.get("stack", {}))
    sysctl = {
        "net/ipv4/tcp_rmem": " ".join(map(str, RMEM)),
        "net/ipv4/tcp_wmem": "4096 16384 67108864",
        "net/ipv4/tcp_no_metrics_save": "1",
    }
    if workload == "transactions":
        sysctl["net/ipv4/tcp_max_syn_backlog"] = "4096"  # clients who come at once are not the attack that it is for
    kind = "hystart" if group["congestion_control"] == "cubic" else "classic"
    start = stack.pop("slow_start", None)
    if start not in (None, Stack.model_validate({"slow_start": {"kind": kind}}).engine()["slow_start"]):
        raise refuse("stack.slow_start", start["kind"], f"{quote(kind)} without options, as this controller has it")
    initcwnd = stack.pop("initial_window", 0)
    timestamps = stack.pop("timestamps", True)
    smss = stack.pop("smss", 0)
    min_rto = stack.pop("min_rto", 0)
    if min_rto % 1_000_000:
        raise refuse("stack.min_rto", f"{min_rto} ns", "whole milliseconds")
    window = stack.pop("receive_buffer", 0)
    switches: dict[str, dict[Any, dict[str, str]]] = {
        "sack": {False: {SACK: "0"}, True: {}},
        "tlp": {False: {"net/ipv4/tcp_early_retrans": "0"}, True: {}},
        "frto": {False: {"net/ipv4/tcp_frto": "0"}, True: {}},
        "idle_restart": {False: {"net/ipv4/tcp_slow_start_after_idle": "0"}, True: {}},
        "sack_compression": {False: {"net/ipv4/tcp_comp_sack_nr": "0"}, True: {}},
        "limited_transmit": {True: {}},
        "undo": {True: {}},
        "delayed_ack": {True: {}},
        "early_retransmit": {"off": {}},
        "detection": {"rack": {}, "dupthresh": {"net/ipv4/tcp_recovery": "0"}},
        "hz": {1000: {}},
        "tso": {False: {}, True: {}},
        "packet_memory": {"copied": {}, "handed-on": {}},
        "ecn": {
            "off": {"net/ipv4/tcp_ecn": "0"},
            "accept": {"net/ipv4/tcp_ecn": "2"},
            "ask": {"net/ipv4/tcp_ecn": "1"},
            "accecn": {"net/ipv4/tcp_ecn": "3"},
            "accecn-ask": {"net/ipv4/tcp_ecn": "4"},
            "accecn-accept": {"net/ipv4/tcp_ecn": "5"},
        },
        "accecn_option": {n: {"net/ipv4/tcp_ecn_option": str(n)} for n in range(4)},
    }
    sysctl["net/ipv4/tcp_ecn"] = "0"
    if not timestamps:
        sysctl[TIMESTAMPS] = "0"
    for key, value in stack.items():
        known = switches.get(key, {})
        if value not in known:
            allowed = ", ".join(quote(v) for v in known) if known else f"no {key}"
            raise refuse(f"stack.{key}", Stack.takes[key].shown(value), allowed)
        sysctl |= known[value]
    return {
        "congestion_control": controller,
        "sysctl": sorted(sysctl.items()),
        "initcwnd": initcwnd,
        "rto_min_ms": min_rto // 1_000_000,
        "mss": smss + 12 * timestamps if smss else 0,
        "mtu": max(1500, smss + 52),
        "tso": group.get("stack", {}).get("tso", False),
        "window_clamp": min(window, 2**31 - 1),
    }


CARD = {"gro": False, "gro_flush_timeout": 0, "napi_defer_hard_irqs": 0}
"""What of a host the guest's devices carry out, and what they do without being told."""


def _card(name: str | None, machines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The device of the host of that name; what else a host may be is refused."""
    place, machine = next(((i, m) for i, m in enumerate(machines) if m["name"] == name), (0, {}))
    for key, value in machine.items():
        if key not in ("name", "shared", "slice", "batch_flush", "burst", "cuts_packets", *CARD) and value not in (
            *UNNOTICED.get(key, ()), False, None, 0,
        ):  # fmt: skip
            shown = Host.takes[key].shown(value)
            raise ScenarioError(
                key=f"hosts.{place}.{key}", found=quote(shown), allowed=f"no {key}, with the linux backend"
            )
    return {
        "cuts": machine.get("cuts_packets", False),
        **{key: machine.get(key, without) for key, without in CARD.items()},
    }


def _check_cards(hosts: Sequence[Mapping[str, Any]], network: str) -> None:
    """What the wires between the devices cannot do."""
    for i, host in enumerate(hosts):
        sends, receives = host["cards"]
        if network == "relay" and (sends["gro"] or receives["gro"]):
            key = f"flows.{i}.{'host' if sends['gro'] else 'peer_host'}"
            allowed = "one without, where the network is --network relay"
            raise ScenarioError(key=key, found="a host with gro", allowed=allowed)
        if host["tso"] and sends["cuts"] != receives["cuts"]:
            raise ScenarioError(
                key=f"flows.{i}.peer_host",
                found="cuts_packets at one end only",
                allowed="at both ends or at none, with the linux backend",
            )


UNNOTICED = {"batch": (1,), "catch_up": ("none",), "preset": ("clean",)}
"""Values of a host's keys that change nothing."""


def _bound_buffer(host: dict[str, Any], network: str) -> None:
    """A window is bound by its buffer: TCP_WINDOW_CLAMP alone is forgotten when the buffer grows (`tcp_rcv_space_adjust`)."""
    if host["window_clamp"]:
        low, first, _ = RMEM
        most = -(-host["window_clamp"] * 256 // PAYLOAD_SHARE[network])
        host["sysctl"] = sorted({**dict(host["sysctl"]), "net/ipv4/tcp_rmem": f"{low} {first} {most}"}.items())


def _datagram_host(group: Mapping[str, Any], refuse: Callable[[str, object, str], ScenarioError]) -> dict[str, Any]:
    """Hosts of flows over datagrams; the guest holds their endpoints, and the kernel carries what they send."""
    for key, value in group.get("stack", {}).items():
        raise refuse(f"stack.{key}", Stack.takes[key].shown(value), "no stack for flows over datagrams")
    options = group.get("congestion_control_options") or {}
    if options.get("feedback", 1) > LARGEST_FEEDBACK:
        raise refuse("congestion_control_options.feedback", options["feedback"], f"at most {LARGEST_FEEDBACK}")
    if str(options.get("utility", "")).startswith("custom:"):
        raise refuse("congestion_control_options.utility", options["utility"], "a utility of this engine")
    payload = group["workload"].get("payload", LEAST_PAYLOAD)
    if payload < LEAST_PAYLOAD:
        raise refuse("workload.payload", f"{payload} bytes", f"at least {LEAST_PAYLOAD} bytes")
    return {
        "congestion_control": "",
        "sysctl": [],
        "initcwnd": 0,
        "rto_min_ms": 0,
        "mss": 0,
        "mtu": max(1500, payload + UDP_IP),
        "tso": False,
        "window_clamp": 0,
    }


def _qdiscs(scenario: Mapping[str, Any], hosts: Sequence[Mapping[str, Any]], seed: int) -> dict[str, Any]:
    """The network as two rows of disciplines, if it is one path that all flows share."""
    network = scenario["network"]
    if any(group["workload"]["kind"] == "population" for group in scenario["flows"]):
        raise _NotByQdiscError("flows.0.workload.kind", quote("population"))
    flows = sum(group.get("count", 1) for group in scenario["flows"])
    names = ("access", "bottleneck", "egress")
    own = [name for name in ("access", "egress") if name in network]
    if network["topology"] == "graph" or network.get("access_list"):
        raise _NotByQdiscError("network.topology", quote(network["topology"]))
    if network["topology"] == "dumbbell" and flows > 1 and own:
        raise _NotByQdiscError(f"network.{own[0]}", f"a link of its own for each of {flows} flows")
    if scenario["record"].get("drops"):
        raise _NotByQdiscError("record.drops", "true")
    if any(group["workload"].get("common_random_numbers") for group in scenario["flows"]):
        raise _NotByQdiscError("flows.0.workload.common_random_numbers", "true")
    back = network.get("reverse", {})
    whole = any(host["tso"] and not card["cuts"] for host in hosts for card in host["cards"])
    # The simulator numbers access.0.forward and so on in a dumbbell, bottleneck first.
    suffix = {"access": "", "bottleneck": "", "egress": ""}
    order = list(names)
    if network["topology"] == "dumbbell":
        suffix = {"access": ".0", "bottleneck": "", "egress": ".0"}
        order = ["bottleneck", "access", "egress"]
    links: list[str] = []
    number: dict[tuple[str, str], int] = {}
    for name in order:
        if name in network:
            for way in ("forward", "backward"):
                number[name, way] = len(links)
                links.append(f"{name}{suffix[name]}.{way}")
    overhead = network.get("framing_bytes", 0) - FRAME
    ways: dict[str, list[dict[str, Any]]] = {}
    for direction, way in enumerate(("forward", "backward")):
        stages: list[dict[str, Any]] = []
        for name in names if way == "forward" else reversed(names):
            if name not in network:
                continue
            link = network[name] if way == "forward" else back.get(name) or network[name]
            place = f"network.{name}" if way == "forward" else f"network.reverse.{name}"
            stages += _stages(_by_bytes(link) if whole else link, number[name, way], place, overhead)
        for position, stage in enumerate(merged := _merge(stages)):
            if stage["qdisc"]["kind"] == "netem":
                stage["qdisc"]["seed"] = _mix(4 * seed + 2 * direction + 1, position)
        ways[way] = merged
    return {"kind": "qdisc", "links": links, **ways}


def _by_bytes(link: Mapping[str, Any]) -> Mapping[str, Any]:
    """The link with a limit of its queue in bytes: a kernel's packet may hold many segments, of which the scenario counts each."""
    queue = link.get("queue") or {}
    if queue.get("kind") != "drop-tail" or "packets" not in queue.get("limit", {}):
        return link
    most = queue["limit"]["packets"] * FULL_FRAME
    return {**link, "queue": {"kind": "drop-tail", "limit": {"bytes": most}}}


def _written(key: str, value: object) -> str:
    """The value of a compiled key as a message shows it: times with their unit, tables by their kind."""
    if isinstance(value, Mapping) and "kind" in value:
        return quote(value["kind"])
    return quote(Link.takes[key].shown(value))


def _stages(link: Mapping[str, Any], number: int, place: str, overhead: int) -> list[dict[str, Any]]:
    """One link as disciplines in a row: loss, queue with rate, delay."""
    for key, value in link.items():
        if value and value != NEUTRAL.get(key) and (key in ("jitter", "reorder") or key not in LINK_KEYS):
            raise _NotByQdiscError(f"{place}.{key}", _written(key, value))
    rate_bps, delay = link.get("rate"), link["delay"]
    if rate_bps is not None and rate_bps < 8:
        raise _NotByQdiscError(f"{place}.rate", f"{rate_bps} bit/s")
    rate = 0 if rate_bps is None else rate_bps // 8

    def netem(**given: Any) -> dict[str, Any]:
        base = {
            "kind": "netem", "limit": ENOUGH, "delay_ns": 0, "rate": 0, "overhead": overhead, "loss": 0,
            "gemodel": None, "seed": 0,
        }  # fmt: skip
        return {**base, **given}

    def stage(qdisc: dict[str, Any], *, loses: bool = False, queues: bool = False) -> dict[str, Any]:
        return {"link": number, "qdisc": qdisc, "loses": loses, "queues": queues}

    out: list[dict[str, Any]] = []
    loss = link.get("loss") or {"kind": "none"}
    if loss.get("applies_to", "all") != "all":
        raise _NotByQdiscError(f"{place}.loss.applies_to", quote(loss["applies_to"]))
    if loss["kind"] == "bernoulli" and loss["p"] > 0:
        out.append(stage(netem(loss=_share(loss["p"])), loses=True))
    elif loss["kind"] == "gilbert-elliott":
        model = [_share(p) for p in (loss["p"], loss["r"], 1 - loss["loss_bad"], loss["loss_good"])]
        out.append(stage(netem(gemodel=model), loses=True))
    elif loss["kind"] not in ("none", "bernoulli"):
        raise _NotByQdiscError(f"{place}.loss.kind", quote(loss["kind"]))

    queue = link.get("queue") or {"kind": "drop-tail"}
    kind = queue["kind"]
    if "bandwidth" in queue:  # CAKE paces by itself
        out.append(stage({"kind": "alone", "leaf": _leaf(queue, place)}, queues=True))
        out.append(stage(netem(rate=rate, delay_ns=delay)))
        return out
    if rate == 0:
        out.append(stage(netem(delay_ns=delay)))
        return out
    if kind == "netem-limit":
        leaf = {"kind": "netem", "limit": queue["limit"], "delay_ns": delay}
        out.append(stage(_shaper(rate, overhead, leaf, burst=MININET_BURST), queues=True))
        return out
    if kind == "drop-tail" and "bytes" not in queue.get("limit", {}):
        packets = queue.get("limit", {}).get("packets")
        if packets is None:
            out.append(stage(netem(rate=rate, delay_ns=delay), queues=True))
            return out
        # netem's limit counts the packet in transmission, too.
        out.append(stage(netem(rate=rate, limit=packets + 1), queues=True))
        out.append(stage(netem(delay_ns=delay)))
        return out
    # The shaper lets a packet go when its transmission starts; the stage behind it adds the time that it takes.
    out.append(stage(_shaper(rate, overhead, _leaf(queue, place)), queues=True))
    out.append(stage(netem(rate=rate, delay_ns=delay)))
    return out


def _shaper(rate: int, overhead: int, leaf: Mapping[str, Any], *, burst: int = 0) -> dict[str, Any]:
    return {"kind": "shaper", "rate": rate, "burst": burst, "overhead": overhead, "leaf": leaf}


def _leaf(queue: Mapping[str, Any], place: str) -> dict[str, Any]:
    kind = queue["kind"]
    limit = queue.get("limit", ENOUGH)
    if kind == "drop-tail":
        return {"kind": "bfifo", "limit": limit["bytes"]}
    if kind in ("codel", "fq-codel"):
        times = {"target": queue["target"] // 1000, "interval": queue["interval"] // 1000}
        times["ce_threshold"] = max(queue["ce_threshold"] // 1000, 1) if "ce_threshold" in queue else 0
        codel = {"kind": kind, "limit": limit, **times, "ecn": queue["ecn"]}
        if kind == "codel":
            return codel
        only_ect1 = queue["ce_threshold_for"] == "l4s"
        return {**codel, "flows": queue["queues"], "quantum": queue["quantum"], "ce_ect1": only_ect1}
    if kind == "dualpi2":
        gains = {key: int(queue[key] * 256 + 0.5) for key in ("alpha", "beta")}
        for key, steps in gains.items():
            if steps < 1:
                raise _NotByQdiscError(f"{place}.queue.{key}", f"{queue[key]:g}, less than 1/256 (the kernel's least)")
        return {
            "kind": "dualpi2",
            "limit": limit,
            "target": queue["target"] // 1000,
            "update": max(queue["update"] // 1000, 1),
            **gains,
            "coupling": queue["coupling"],
            "step": queue["step"] // 1000,
            "step_from": queue["step_from"],
            "classic_share": int(queue["classic_share"] * 100 + 0.5),
            "any_ect": queue["classifier"] == "any-ect",
            "drops": queue["overload"] == "drop",
        }
    if kind == "cake":
        return {
            "kind": "cake",
            "rtt": queue["rtt"] // 1000,
            "memory": queue.get("limit", 0),
            "rate": queue.get("bandwidth", 0) // 8,
            "overhead": queue.get("overhead"),
            "mpu": queue["mpu"],
            "atm": ("noatm", "atm", "ptm").index(queue["framing"]),
            "flow_mode": {"flows": 4, "dual-srchost": 5, "dual-dsthost": 6, "triple-isolate": 7}[queue["isolation"]],
        }
    if kind == "red":
        weight = queue["weight"]
        wlog = next((n for n in range(1, 32) if abs(weight * 2**n - 1) < 0.05), None)
        if wlog is None:
            raise _NotByQdiscError(f"{place}.queue.weight", f"{weight:g}, which is no power of 1/2 (the kernel's)")
        return {
            "kind": "red",
            "limit": limit * FULL_FRAME,
            "min": round(queue["min"] * FULL_FRAME),
            "max": round(queue["max"] * FULL_FRAME),
            "max_p": _share(queue["max_p"]),
            "wlog": wlog,
            "ecn": queue["ecn"],
            "harddrop": False,
            "adaptive": False,
        }
    if kind == "linux-red":
        for key in ("bandwidth", "nodrop"):
            if queue.get(key):
                raise _NotByQdiscError(f"{place}.queue.{key}", quote(LinuxRed.takes[key].shown(queue[key])))
        minimum, maximum, wlog = red_weight(queue)
        return {
            "kind": "red",
            "limit": limit,
            "min": minimum,
            "max": maximum,
            "max_p": _share(queue["probability"]),
            "wlog": wlog,
            "ecn": queue["ecn"],
            "harddrop": queue["harddrop"],
            "adaptive": queue["adaptive"],
        }
    raise _NotByQdiscError(f"{place}.queue.kind", quote(kind))


def red_weight(queue: Mapping[str, Any]) -> tuple[int, int, int]:
    """`min`, `max` and the weight of an arrival, as the power of 1/2 that `tc red` finds."""
    maximum = queue.get("max", queue["limit"] // 4)
    minimum = queue.get("min", maximum // 3)
    size = queue["avpkt"]
    burst = queue.get("burst", (2 * minimum + maximum) // (3 * size))
    room = burst + 1 - minimum / size
    return minimum, maximum, next(w for w in range(1, 32) if room <= (1 - (1 - 2.0**-w) ** burst) * 2.0**w)


def _merge(stages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Fewer hops: a pure delay goes into the next unlimited link, whose queue does not care when it is filled."""
    out: list[dict[str, Any]] = []
    for stage in stages:
        last = out[-1]["qdisc"] if out else None
        here = stage["qdisc"]
        if last and _is_delay(last) and here["kind"] == "netem" and here["limit"] == ENOUGH:
            here["delay_ns"] += last["delay_ns"]
            out.pop()
        elif last and _is_delay(here) and last["kind"] == "netem" and last["limit"] == ENOUGH:
            last["delay_ns"] += here["delay_ns"]
            continue
        if not (_is_delay(here) and here["delay_ns"] == 0):
            out.append(stage)
    return out


def _is_delay(qdisc: Mapping[str, Any]) -> bool:
    return (
        qdisc["kind"] == "netem"
        and qdisc["limit"] == ENOUGH
        and not qdisc["rate"]
        and not qdisc["loss"]
        and qdisc["gemodel"] is None
    )


def _share(p: float) -> int:
    """A probability in 2^32."""
    return min(round(p * 2**32), 2**32 - 1)


def _mix(seed: int, position: int) -> int:
    """splitmix64: a seed of its own for each discipline."""
    mask = 2**64 - 1
    z = (seed + (position + 1) * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)
