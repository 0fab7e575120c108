"""Translates a scenario to a guest job; keys that the kernel cannot honour are refused by name.

Length: each key's translation is next to its refusals.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from ackclock.errors import ScenarioError, one_of, quote
from ackclock.linux._facts import Has
from ackclock.linux._qdiscs import NotByQdiscError, lay_lines, links_of, qdiscs
from ackclock.scenario import ClassicSlowStart, Host, HyStart, Link, Stack
from ackclock.scenario._base import schema

__all__ = ["NETWORKS", "job", "kernel_controller", "packet_memory"]

NetworkKind = Literal["auto", "qdisc", "relay"]
NETWORKS = ("auto", "qdisc", "relay")

START_NS = 5_088_000_000
"""Virtual time at which a run begins, ns: after boot and set-up, on a tick at which every level of the timer wheel up
to 32.768 s wraps, as in the simulator. The kernel's tick counter starts at -300 s.
"""

LEAST_WAY_NS = 3_100_000
"""Minimum one-way delay, ns, at which a third of the RTT exceeds the maximum ACK delay."""

RMEM = (4096, 131_072, 67_108_864)
"""Receive buffer, bytes: minimum, initial, maximum (`tcp_rmem`)."""

MOST_PAYLOAD = 1460
"""Payload of a full Ethernet segment without options, bytes."""

LEAST_SEND_BUFFER, MOST_SEND_BUFFER = 4608, 2**31 - 2
"""Range of SO_SNDBUF, bytes: from two small packets (SOCK_MIN_SNDBUF) to the maximum of an int. The kernel stores
twice the requested size.
"""

LEAST_WINDOW = 2600
"""Smallest window, bytes, for whose buffer `tcp_rmem` leaves room on either network: the minimum buffer of Linux 7.3 is
4,096 bytes.
"""

UNBOUNDED = 2**61
"""Unlimited SO_MAX_PACING_RATE, bytes/s. All bits set would mean no pacing."""

PAYLOAD_SHARE = {"handed-on": 162, "copied": 160}
"""Fraction of a receive buffer that full segments fill with payload, in 256ths (`scaling_ratio`), by
`stack.packet_memory`.
"""

PACKET_MEMORY = {"qdisc": "handed-on", "relay": "copied"}
"""Value of `stack.packet_memory` for each of the two networks. The relay's is that of qdiscs if a host has offloads."""

UDP_IP = 28
"""Length of the IPv4 and UDP headers, bytes."""

CONTROLLERS = {"westwood-plus": "westwood", "westwood": ""}
"""Our name -> the kernel's name, where they differ; "" if the kernel's controller of that name is a different
algorithm.
"""

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
"""Recovery rule -> the corresponding part of our controllers' names (linux/modules); "" for the kernel's own rule."""

DRAWN = "_drawn"
"""Suffix of controllers that draw random numbers as the simulator does and are otherwise identical to the kernel's
(linux/modules).
"""

THIRD = "bbr3"
KERNELS_FLAVOUR = "linux-v3"
"""Flavour of BBR version 3 found in kernels."""

RECORDED = (
    "trace", "capture", "sample_interval_ns", "queue_interval_ns", "goodput_interval_ns", "limits_interval_ns", "drops", "transactions",
    "warm_up_ns", "performance",
)  # fmt: skip
RECORD_DEFAULTS = {"controller": "none"}
"""Keys of `record` that the guest supports, and the only values allowed for the others."""

WORKLOADS = ("bulk", "transfer", "fetch", "throttled", "population", "transactions", "conversation")
"""Workloads over TCP and PCC supported by the guest; for plain datagrams, all are."""
BY_EVENTS = ("transactions", "conversation")
"""Workloads with all ends in one event loop; other workloads' ends are blocking threads."""
MOST_CLIENTS = 1000
"""Maximum number of flows in a group of fetches, where ends are threads."""
LEAST_PAYLOAD = 12
"""Number of bytes in a plain datagram taken up by its number and time."""
LARGEST_FEEDBACK = 128
"""Maximum number of datagrams in one report on the wire."""
BY_NAME = {
    "codel": "codel", "fq-codel": "fq_codel", "red": "red", "dualpi2": "dualpi2", "cake": "cake", "pie": "pie", "fq": "fq",
    "netem-limit": "netem", "fq-pie": "fq_pie",
}  # fmt: skip
"""Our name for a queue -> the kernel's name, where the kernel has it as a separate discipline."""
PROFILES: dict[str, str | None] = {"linux-6": None, "linux-7.3": "7.3"}
"""Profile -> kernel version that it describes; None if the profile's name has no version and every kernel accepts it."""
SACK, TIMESTAMPS = "net/ipv4/tcp_sack", "net/ipv4/tcp_timestamps"
TXREHASH = ("net/core/txrehash", "0")
"""Setting that keeps the packets' hash after a timeout: routers behind a veth use the hash, and would otherwise see a new flow."""


SWITCHES: dict[str, dict[Any, dict[str, str]]] = {
    "sack": {False: {SACK: "0"}, True: {}},
    "tlp": {False: {"net/ipv4/tcp_early_retrans": "0"}, True: {}},
    "frto": {False: {"net/ipv4/tcp_frto": "0"}, True: {}},
    "idle_restart": {False: {"net/ipv4/tcp_slow_start_after_idle": "0"}, True: {}},
    "sack_compression": {False: {"net/ipv4/tcp_comp_sack_nr": "0"}, True: {}},
    "limited_transmit": {True: {}},
    "undo": {True: {}},
    "delayed_ack": {True: {}},
    "early_retransmit": {"off": {}},
    "detection": {"rack": {}},
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
    "mtu_probing": {
        "off": {},  # the guest's default after boot
        "after-timeouts": {"net/ipv4/tcp_mtu_probing": "1"},
        "always": {"net/ipv4/tcp_mtu_probing": "2"},
    },
    "accecn_option": {n: {"net/ipv4/tcp_ecn_option": str(n)} for n in range(4)},
}
"""Key of `stack` -> value -> kernel settings; other keys and values are refused."""


def job(scenario: Mapping[str, Any], seed: int, network: NetworkKind, kernel: Has) -> dict[str, Any]:
    """Return the guest's job.

    Parameters
    ----------
    scenario
        Scenario as compiled for the engine.
    seed
        Seed of the links' random streams.
    network
        "qdisc", "relay", or "auto": the kernel's disciplines if they can represent the network, else the relay.
    kernel
        Features of the kernel.

    Raises
    ------
    ScenarioError
        If the kernel cannot run the scenario; the error names the key.
    """
    flows = scenario["flows"]
    recorded: tuple[str, ...] = RECORDED
    traced = flows[:1] if scenario["record"].get("controller") == "flow" else flows
    if all(_is_pcc(group) for group in traced):
        recorded = (*RECORDED, "controller", "controller_interval_ns")  # PCC's monitor intervals
    for key, value in scenario["record"].items():
        if value and key not in recorded and value != RECORD_DEFAULTS.get(key):
            name = key.removesuffix("_ns")
            raise ScenarioError(key=f"record.{name}", found=quote(value), allowed=f"no {name}, with the linux backend")
    machines = scenario.get("hosts", [])
    hosts = [
        {**_host(group, i, kernel), "cards": [_card(group.get(key), machines) for key in ("host", "peer_host")]}
        for i, group in enumerate(flows)
    ]
    plan: dict[str, Any] = {"kind": "relay", "ahead": True}
    if network != "relay":
        try:
            laid = copy.deepcopy(hosts)
            plan = qdiscs(scenario, laid, seed)
            _check_queues(scenario, kernel)
            hosts = laid
        except NotByQdiscError as error:
            if network == "qdisc":
                key, found = error.args
                raise ScenarioError(
                    key=key,
                    found=found,
                    allowed="what the kernel's queueing disciplines can do; --network relay can do it",
                ) from None
    if plan["kind"] == "relay":
        _check_relay(scenario["network"])
        _lay_cards(hosts, flows)
        plan["whole"] = any(host["tso"] or any(c["device"] or c["gro"] for c in host["cards"]) for host in hosts)
    _check_cards(hosts, plan["kind"])
    for i, group in enumerate(flows):
        memory = group.get("stack", {}).get("packet_memory", real := packet_memory(plan))
        if memory != real:
            allowed = f"{quote(real)}, where the network is --network {plan['kind']}"
            raise ScenarioError(key=f"flows.{i}.stack.packet_memory", found=quote(memory), allowed=allowed)
    for host in hosts:
        if host["sysctl"]:
            shared = [] if plan["kind"] == "relay" else [TXREHASH]
            host["sysctl"] = sorted([*host["sysctl"], *_compression(scenario["network"]), *shared])
        _bound_buffer(host, packet_memory(plan))
        del host["small_queues"]
    return {
        "scenario": {**scenario, "flows": [_flow(group) for group in flows]},
        "seed": seed,
        "start_ns": START_NS,
        "network": plan,
        "hosts": hosts,
        "capture": scenario["record"].get("capture", "none") != "none",
    }


def packet_memory(plan: Mapping[str, Any]) -> str:
    """Return `stack.packet_memory` of the hosts of a network."""
    return PACKET_MEMORY["qdisc" if plan.get("whole") else plan["kind"]]


def _compression(network: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the settings with which a delayed ACK is sent exactly 1 ms plus 10 us of slack after the delay began.

    Linux may send it earlier within the slack, whenever another timer expires. In the guest all hosts share one
    kernel and its timers, so the sender's pacing would decide when a receiver's ACK is sent. Nothing is set if a third
    of the RTT may be shorter than 1 ms.
    """
    if network.get("links"):
        return []
    ways = [network[name] for name in ("access", "bottleneck", "egress") if network.get(name)]
    steps = [(link, (link.get("capacity") or {}).get("steps", [])) for link in ways]
    least = sum(min([link.get("delay", 0), *(s["delay"] for s in of if "delay" in s)]) for link, of in steps)
    if least < LEAST_WAY_NS:
        return []
    return [("net/ipv4/tcp_comp_sack_slack_ns", "0"), ("net/ipv4/tcp_comp_sack_delay_ns", "1010000")]


def _flow(group: Mapping[str, Any]) -> dict[str, Any]:
    """Return the group in a form that the guest's scenario parser accepts: controllers that it does not know are passed
    to the hosts only.
    """
    return dict(group) if _is_pcc(group) else {**group, "congestion_control": "cubic", "congestion_control_options": {}}


def _is_pcc(group: Mapping[str, Any]) -> bool:
    return group["congestion_control"] in schema()["pcc"]["controllers"] and not _is_plain(group)


def _is_plain(group: Mapping[str, Any]) -> bool:
    return group["workload"]["kind"] in schema()["datagrams"]


def kernel_controller(name: str, recovery: str | None) -> str:
    """Return the kernel's name for a controller with a recovery rule; "" if there is none."""
    base = name.removeprefix("kernel:")
    if base == name:
        base = CONTROLLERS.get(base, base)
    rule = OURS.get(recovery or "prr-linux-6")
    return "" if rule is None or not base else f"{base}_{rule}" if rule else base


def _check_queues(scenario: Mapping[str, Any], kernel: Has) -> None:
    """Refuse queueing disciplines that this kernel lacks."""
    places = [(f"{place}.queue.kind", link.get("queue")) for place, link in links_of(scenario["network"])]
    places += [(f"hosts.{i}.queue.kind", one.get("queue")) for i, one in enumerate(scenario.get("hosts", []))]
    for key, queue in places:
        kind = (queue or {}).get("kind", "drop-tail")
        if kind in BY_NAME and not kernel.queue(BY_NAME[kind]):
            raise ScenarioError(
                key=key,
                found=f"{quote(kind)}, which {kernel.name} does not have",
                allowed="another queue or kernel, or --network relay, which is the simulator's own",
            )


def _host(group: Mapping[str, Any], i: int, kernel: Has) -> dict[str, Any]:
    """Return the settings of a group's hosts; every key of `stack` is translated or refused."""
    # Length: one key after another, in the order of the reference.
    controllers = kernel.controllers

    def refuse(key: str, found: object, allowed: str) -> ScenarioError:
        return ScenarioError(key=f"flows.{i}.{key}", found=quote(found), allowed=f"{allowed}, with the linux backend")

    if group["profile"] not in PROFILES:
        raise refuse("profile", group["profile"], ", ".join(quote(name) for name in PROFILES))
    version = PROFILES[group["profile"]]
    if version is not None and not kernel.is_of(version):
        raise ScenarioError(
            key=f"flows.{i}.profile",
            found=f"{quote(group['profile'])}, and {kernel.name}",
            allowed=f"a kernel of Linux {version}, or the profile linux-6, which leaves the version to the kernel",
        )
    asked = group["congestion_control"]
    if asked in schema()["quinn"]["controllers"] or asked.startswith("stack:"):
        raise refuse("congestion_control", group["congestion_control"], "a controller of TCP or of PCC")
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
        "start_ns", "start_s", "stagger_ns", "stagger_s", "stop_ns", "path", "host", "peer_host", "reader",
    }):  # fmt: skip
        raise refuse(key, group[key], f"no {key}")
    if datagrams:
        return _datagram_host(group, refuse)
    if asked in ("bbr", "bbr3"):
        _check_version(asked, dict(options), controllers, refuse)
    elif options:
        name, value = next(iter(options.items()))
        raise refuse(f"congestion_control_options.{name}", value, "no options")
    controller = kernel_controller(group["congestion_control"], group.get("recovery"))
    if not group["congestion_control"].startswith("kernel:") and f"{controller}{DRAWN}" in controllers:
        controller += DRAWN
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
    if workload in BY_EVENTS:
        sysctl["net/ipv4/tcp_max_syn_backlog"] = "4096"  # simultaneous clients must not be taken for a SYN flood
    cubic = group["congestion_control"] == "cubic"
    usual = HyStart(kind="hystart") if cubic else ClassicSlowStart(kind="classic")
    start = stack.pop("slow_start", None)
    if start not in (None, usual.engine()):
        raise refuse(
            "stack.slow_start", start["kind"], f"{quote(usual.kind)} without options, as this controller has it"
        )
    initcwnd = stack.pop("initial_window", 0)
    timestamps = stack.pop("timestamps", True)
    smss = stack.pop("smss", 0)
    min_rto = stack.pop("min_rto", 0)
    if min_rto % 1_000_000:
        raise refuse("stack.min_rto", f"{min_rto} ns", "whole milliseconds")
    window = stack.pop("receive_buffer", 0)
    if 0 < window < LEAST_WINDOW:
        allowed = f"at least {LEAST_WINDOW:,} bytes, the window of the least receive buffer that the kernel takes"
        raise refuse("stack.receive_buffer", Stack.shown("receive_buffer", window), allowed)
    memory = stack.pop("send_buffer", 0)
    if memory and (workload in BY_EVENTS or memory % 2 or not LEAST_SEND_BUFFER <= memory <= MOST_SEND_BUFFER):
        allowed = f"an even number of {LEAST_SEND_BUFFER:,} to {MOST_SEND_BUFFER:,} bytes"
        allowed = "no send_buffer" if workload in BY_EVENTS else allowed
        raise refuse("stack.send_buffer", Stack.shown("send_buffer", memory), allowed)
    pacing_rate = stack.pop("max_pacing_rate", 0)
    if pacing_rate and workload in BY_EVENTS:
        raise refuse("stack.max_pacing_rate", Stack.shown("max_pacing_rate", pacing_rate), "no max_pacing_rate")
    if paces := stack.pop("pacing", False):
        if workload in BY_EVENTS:
            raise refuse("stack.pacing", paces, "no pacing")
        pacing_rate = pacing_rate or 8 * UNBOUNDED  # never reached: the socket paces at the rate of its window
    small_queues = stack.pop("small_queues", True)
    nodelay, cork, quickack = (stack.pop(key, False) for key in ("nodelay", "cork", "quickack"))
    if quickack and workload not in BY_EVENTS:
        raise refuse("stack.quickack", "true", f"false unless the workload is {' or '.join(BY_EVENTS)}")
    if "reordering" in stack:
        sysctl["net/ipv4/tcp_reordering"] = str(stack.pop("reordering"))
    initrwnd = stack.pop("initial_receive_window", 0)
    first_buffer = 2 * initrwnd * (smss or MOST_PAYLOAD - 12 * timestamps)
    if first_buffer > RMEM[1]:  # a route's initial window is limited by the buffer
        sysctl["net/ipv4/tcp_rmem"] = f"{RMEM[0]} {first_buffer} {RMEM[2]}"
    if "limit_output_bytes" in stack:
        sysctl["net/ipv4/tcp_limit_output_bytes"] = str(stack.pop("limit_output_bytes"))
    sysctl["net/ipv4/tcp_ecn"] = "0"
    if not timestamps:
        sysctl[TIMESTAMPS] = "0"
    for key, value in stack.items():
        known = SWITCHES.get(key, {})
        if not known or value not in known:
            allowed = ", ".join(quote(v) for v in known) if known else f"no {key}"
            raise refuse(f"stack.{key}", Stack.shown(key, value), allowed)
        _check_setting(kernel, f"flows.{i}.stack.{key}", Stack.shown(key, value), known, known[value])
        sysctl |= known[value]
    return {
        "congestion_control": controller,
        "sysctl": sorted(sysctl.items()),
        "initcwnd": initcwnd,
        "initrwnd": initrwnd,
        "rto_min_ms": min_rto // 1_000_000,
        "mss": smss + 12 * timestamps if smss else 0,
        "mtu": max(1500, smss + 52),
        "tso": group.get("stack", {}).get("tso", False),
        "window_clamp": min(window, 2**31 - 1),
        "send_buffer": memory,
        "max_pacing_rate": max(pacing_rate // 8, 1) if pacing_rate else 0,
        "nodelay": nodelay,
        "cork": cork,
        "quickack": quickack,
        "small_queues": small_queues,
    }


def _check_version(
    asked: str, options: dict[str, Any], controllers: Sequence[str], refuse: Callable[[str, object, str], ScenarioError]
) -> None:
    """Check the bbr version: the kernel has version 1, or version 3 with Google's patch, with a separate name for
    its drawn variant (linux/modules).
    """
    third = f"{THIRD}{DRAWN}" in controllers
    if asked == "bbr3" and not third:
        allowed = 'a kernel that was built with a patch of version 3 (`ackclock linux build --patch`), or "bbr"'
        raise refuse("congestion_control", asked, allowed)
    if asked == "bbr" and third:
        raise refuse("congestion_control", asked, '"bbr3", which is what this kernel has under that name')
    flavour = options.pop("flavour", "draft-06")
    if asked == "bbr3" and flavour != KERNELS_FLAVOUR:
        raise refuse("congestion_control_options.flavour", flavour, quote(KERNELS_FLAVOUR))
    for name, value in options.items():
        if value:
            raise refuse(f"congestion_control_options.{name}", value, f"no {name}")


def _check_setting(
    kernel: Has, key: str, shown: object, known: Mapping[Any, Mapping[str, str]], wanted: Mapping[str, str]
) -> None:
    """Refuse a value for which this kernel has no setting."""
    if _takes(kernel, wanted):
        return
    others = ", ".join(quote(value) for value, settings in known.items() if _takes(kernel, settings))
    raise ScenarioError(
        key=key,
        found=f"{quote(shown)}, which {kernel.name} does not have",
        allowed=f"{others or 'not this key'}, with this kernel",
    )


def _takes(kernel: Has, settings: Mapping[str, str]) -> bool:
    return all(kernel.sets(name, value) for name, value in settings.items())


CARD = {"gro": False, "gro_flush_timeout": 0, "napi_defer_hard_irqs": 0}
"""Host keys supported by the guest's devices, and their defaults there."""


def _card(name: str | None, machines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the device of the host with this name; properties missing from the guest are refused."""
    place, machine = next(((i, m) for i, m in enumerate(machines) if m["name"] == name), (0, {}))
    for key, value in machine.items():
        if key not in ("name", "shared", "slice", "batch_flush", "burst", "cuts_packets", "line_rate", "queue", *CARD) and value not in (
            *UNNOTICED.get(key, ()), False, None, 0,
        ):  # fmt: skip
            shown = Host.shown(key, value)
            raise ScenarioError(
                key=f"hosts.{place}.{key}", found=quote(shown), allowed=f"no {key}, with the linux backend"
            )
    return {
        "cuts": machine.get("cuts_packets", False),
        "device": _device(machine),
        **{key: machine.get(key, without) for key, without in CARD.items()},
    }


def _device(machine: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the host's own device as the scenario describes it; `qdiscs` turns it into a discipline."""
    given = {key: machine[key] for key in ("line_rate", "queue") if machine.get(key) is not None}
    return {"shared": machine["shared"], **given} if given else None


def _check_relay(network: Mapping[str, Any]) -> None:
    """Refuse packet effects that the relay does not support: it only delivers, marks or drops packets."""
    allowed = "where the network is --network relay"
    for place, link in links_of(network):
        if "merging" in link:
            raise ScenarioError(key=f"{place}.merging", found="a table", allowed=f"none, {allowed}")
        if share := link.get("duplicate"):
            found = quote(Link.shown("duplicate", share))
            raise ScenarioError(key=f"{place}.duplicate", found=found, allowed="0, with the linux backend")
        if (what := (link.get("ecn_fault") or {}).get("what")) == "bleach":
            key = f"{place}.ecn_fault.what"
            raise ScenarioError(key=key, found=quote(what), allowed=f"strip-ce, mark-all, {allowed}")


def _lay_cards(hosts: Sequence[Mapping[str, Any]], flows: Sequence[Mapping[str, Any]]) -> None:
    """Give the hosts' cards on the relay their own queue and line."""
    try:
        lay_lines(hosts, sum(group.get("count", 1) for group in flows))
    except NotByQdiscError as error:
        key, found = error.args
        raise ScenarioError(key=key, found=found, allowed="one without, where the network is --network relay") from None


def _check_cards(hosts: Sequence[Mapping[str, Any]], network: str) -> None:
    """Refuse effects that the links between the devices do not support."""
    for i, host in enumerate(hosts):
        sends, receives = host["cards"]
        if network == "qdisc" and host["tso"] and sends["cuts"] != receives["cuts"]:
            raise ScenarioError(
                key=f"flows.{i}.peer_host",
                found="cuts_packets at one end only",
                allowed="at both ends or at none, with --network qdisc",
            )


UNNOTICED = {"batch": (1,), "catch_up": ("none",), "preset": ("clean",)}
"""Values of host keys without effect."""


def _bound_buffer(host: dict[str, Any], memory: str) -> None:
    """Limit the window through the receive buffer, from the first segment on. TCP_WINDOW_CLAMP, which determines the
    window scale, loses its effect with the first segment (`tcp_measure_rcv_mss`).
    """
    if host["window_clamp"]:
        sysctl = dict(host["sysctl"])
        low, first, _ = map(int, sysctl["net/ipv4/tcp_rmem"].split())
        most = -(-host["window_clamp"] * 256 // PAYLOAD_SHARE[memory])
        sysctl["net/ipv4/tcp_rmem"] = f"{min(low, most)} {min(first, most)} {most}"
        host["sysctl"] = sorted(sysctl.items())


def _datagram_host(group: Mapping[str, Any], refuse: Callable[[str, object, str], ScenarioError]) -> dict[str, Any]:
    """Return the hosts of datagram flows: the guest runs the endpoints, and the kernel carries the packets."""
    for key, value in group.get("stack", {}).items():
        raise refuse(f"stack.{key}", Stack.shown(key, value), "no stack for flows over datagrams")
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
        "initrwnd": 0,
        "rto_min_ms": 0,
        "mss": 0,
        "mtu": max(1500, payload + UDP_IP),
        "tso": False,
        "window_clamp": 0,
        "send_buffer": 0,
        "max_pacing_rate": 0,
        "nodelay": False,
        "cork": False,
        "quickack": False,
        "small_queues": True,
    }
