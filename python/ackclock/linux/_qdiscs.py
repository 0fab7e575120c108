"""Translates a network of links to a chain of the kernel's queueing disciplines, or names the part that they cannot
represent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ackclock import _engine
from ackclock.errors import quote
from ackclock.scenario import Link

__all__ = ["ENOUGH", "FRAME", "NotByQdiscError", "lay_lines", "links_of", "merge", "qdiscs", "stages_of"]

FRAME = 14
"""Ethernet header length, bytes; kernel qdiscs count it on top of the IP packet."""

FULL_FRAME = 1500 + FRAME

TX_QUEUE = 1000
"""Default limit of a host's queue, packets."""

NAMES = ("access", "bottleneck", "egress")
"""Links of a path, in order from the sender."""

ENOUGH = 1_000_000
"""Queue limit that is never reached, packets."""

LINK_KEYS = (
    "rate",
    "delay",
    "queue",
    "loss",
    "jitter",
    "netem_jitter",
    "reorder",
    "duplicate",
    "corrupt",
    "capacity",
    "name",
)
NEUTRAL = {"thin_acks": 1}
"""Values of link keys without effect, in addition to 0 and absent."""

NOT_COMPARED = ("pie",)
"""Queues that the kernel also has, but with behaviour not compared with the simulator's packet by packet."""

MININET_BURST = 15 * 1024
"""HTB's burst as set by Mininet, bytes."""


class NotByQdiscError(Exception):
    """Raised for a part of a network that the kernel's qdiscs cannot represent, although the relay can."""


def qdiscs(scenario: Mapping[str, Any], hosts: Sequence[Mapping[str, Any]], seed: int) -> dict[str, Any]:
    """Return the network as two qdisc chains, one per direction. The network must be a single path shared by all
    flows.
    """
    network = scenario["network"]
    if any(group["workload"]["kind"] == "population" for group in scenario["flows"]):
        raise NotByQdiscError("flows.0.workload.kind", quote("population"))
    flows = sum(group.get("count", 1) for group in scenario["flows"])
    own = [name for name in ("access", "egress") if name in network]
    if network["topology"] == "graph" or network.get("access_list"):
        raise NotByQdiscError("network.topology", quote(network["topology"]))
    if network["topology"] == "dumbbell" and flows > 1 and own:
        raise NotByQdiscError(f"network.{own[0]}", f"a link of its own for each of {flows} flows")
    if scenario["record"].get("drops"):
        raise NotByQdiscError("record.drops", "true")
    if any(group["workload"].get("common_random_numbers") for group in scenario["flows"]):
        raise NotByQdiscError("flows.0.workload.common_random_numbers", "true")
    for place, link in links_of(network):
        for key in ("duplicate", "corrupt"):
            if link.get(key):  # qdiscs count such packets differently from link tables
                raise NotByQdiscError(f"{place}.{key}", _written(key, link[key]))
    back = network.get("reverse", {})
    whole = any(host["tso"] and not card["cuts"] for host in hosts for card in host["cards"])
    whole = whole or any("merging" in link for _, link in links_of(network))
    # In a dumbbell the simulator names the links access.0.forward and so on, bottleneck first.
    suffix = {"access": "", "bottleneck": "", "egress": ""}
    order = list(NAMES)
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
        for name in NAMES if way == "forward" else reversed(NAMES):
            if name not in network:
                continue
            link = network[name] if way == "forward" else back.get(name) or network[name]
            place = f"network.{name}" if way == "forward" else f"network.reverse.{name}"
            merging = link.get("merging")
            bare = {key: value for key, value in link.items() if key != "merging"}
            # behind a card that merges segments, a limit in packets counts merged packets, as the kernel's does
            if whole and link.get("capacity"):  # TBF cuts up packets larger than its bucket
                raise NotByQdiscError(f"{place}.capacity", _written("capacity", link["capacity"]))
            by_bytes = whole and merging is None
            laid = stages_of(_by_bytes(bare) if by_bytes else bare, number[name, way], place, overhead)
            if merging is not None:
                laid[0]["merging"] = _card(link, place)
            stages += laid
        stages = [*_lay_device(hosts, direction, stages[0]["link"], overhead, flows), *stages]
        for position, stage in enumerate(merged := merge(stages)):
            if stage["qdisc"]["kind"] == "netem":
                stage["qdisc"]["seed"] = _mix(4 * seed + 2 * direction + 1, position)
        ways[way] = [{**stage, "qdisc": finished(stage["qdisc"])} for stage in merged]
    return {"kind": "qdisc", "links": links, **ways}


def _lay_device(
    hosts: Sequence[Mapping[str, Any]], side: int, number: int, overhead: int, flows: int
) -> list[dict[str, Any]]:
    """Give the NICs on one side their own queue, and add the stages behind it to the path. A shaper releases a
    packet when its transmission starts, so a stage behind it adds the transmission time. If TCP ignores the queue
    (`small_queues` off), the queue is a stage behind the host.
    """
    key = ("host", "peer_host")[side]
    behind: list[dict[str, Any]] = []
    for i, host in enumerate(hosts):
        card = host["cards"][side]
        device = card["device"]
        if device is None:
            continue
        rate = device.get("line_rate", 0) // 8
        queue = device.get("queue", {"kind": "fifo", "limit": TX_QUEUE})
        if len(hosts) > 1 or (flows > 1 and not device["shared"]):
            raise NotByQdiscError(f"flows.{i}.{key}", "a host with a device of its own, among several hosts")
        if queue["kind"] == "fq" and not host["small_queues"]:
            raise NotByQdiscError(f"flows.{i}.stack.small_queues", "false with fq at the host")
        leaf = _engine.qdisc("disciplines", queue, 0)
        own = _shaper(rate, overhead, leaf) if rate else {"kind": "alone", "leaf": leaf}
        if host["small_queues"]:
            card["device"] = finished(own)
        else:
            card["device"] = None
            behind.append({"link": number, "qdisc": own, "loses": False, "queues": False})
        if rate:
            behind.append({"link": number, "qdisc": _netem(overhead, rate=rate), "loses": False, "queues": False})
    return behind


def lay_lines(hosts: Sequence[Mapping[str, Any]], flows: int) -> None:
    """Give the cards of hosts on the relay their own queue and line."""
    for i, host in enumerate(hosts):
        for key, card in zip(("host", "peer_host"), host["cards"], strict=True):
            device = card["device"]
            if device is None:
                continue
            if len(hosts) > 1 or (flows > 1 and not device["shared"]):
                raise NotByQdiscError(f"flows.{i}.{key}", "a host with a device of its own, among several hosts")
            if not host["small_queues"]:
                raise NotByQdiscError(f"flows.{i}.stack.small_queues", "false, with a device of the host's own")
            queue = device.get("queue", {"kind": "fifo", "limit": TX_QUEUE})
            card["device"] = finished({"kind": "alone", "leaf": _engine.qdisc("disciplines", queue, 0)})
            card["line"] = device.get("line_rate", 0)


def links_of(network: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the links of a network and their keys."""
    named = {f"network.{name}": network.get(name) for name in NAMES}
    named |= {f"network.reverse.{name}": network.get("reverse", {}).get(name) for name in NAMES}
    for kind in ("links", "access_list"):
        named |= {f"network.{kind}.{i}": link for i, link in enumerate(network.get(kind, []))}
    yield from ((place, link) for place, link in named.items() if link)


def _card(link: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return the NIC of the router in front of a link that merges segments."""
    merging = link["merging"]
    if merging["receive_interval"]:
        raise NotByQdiscError(f"{place}.merging.receive_interval", quote(f"{merging['receive_interval']} ns"))
    if (link.get("queue") or {}).get("kind") == "cake":
        raise NotByQdiscError(f"{place}.queue.kind", '"cake", which cuts merged packets up')
    return {
        "device": None,
        "cuts": False,
        "gro": True,
        "gro_flush_timeout": merging["gro_flush_timeout"],
        "napi_defer_hard_irqs": merging["napi_defer_hard_irqs"],
    }


def _by_bytes(link: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the link with its queue limit in bytes, because a kernel packet may contain many segments, each counted
    separately in the scenario.
    """
    queue = link.get("queue") or {}
    if queue.get("kind") != "drop-tail" or "packets" not in queue.get("limit", {}):
        return link
    most = queue["limit"]["packets"] * FULL_FRAME
    return {**link, "queue": {"kind": "drop-tail", "limit": {"bytes": most}}}


def _written(key: str, value: object) -> str:
    """Return the value of a compiled key as written in messages: times with their unit, tables by their kind."""
    if isinstance(value, Mapping) and "kind" in value:
        return quote(value["kind"])
    return quote(Link.shown(key, value))


def stages_of(link: Mapping[str, Any], number: int, place: str, overhead: int) -> list[dict[str, Any]]:
    """Return one link as a sequence of disciplines: loss, queue with rate, delay."""
    for key, value in link.items():
        if value and value != NEUTRAL.get(key) and (key in ("jitter", "reorder") or key not in LINK_KEYS):
            raise NotByQdiscError(f"{place}.{key}", _written(key, value))
    jitter, capacity = link.get("netem_jitter"), link.get("capacity")
    if capacity and capacity["kind"] != "token-bucket":
        raise NotByQdiscError(f"{place}.capacity", _written("capacity", capacity))
    first = bool(jitter and jitter.get("before_rate"))  # as netem, which delays packets and then transmits them
    if jitter and link.get("rate") is not None and not first:
        raise NotByQdiscError(f"{place}.netem_jitter", "a link with a rate, and no before_rate")
    rate_bps, delay = link.get("rate"), link["delay"]
    if rate_bps is not None and rate_bps < 8:
        raise NotByQdiscError(f"{place}.rate", f"{rate_bps} bit/s")
    rate = 0 if rate_bps is None else rate_bps // 8

    def netem(**given: Any) -> dict[str, Any]:
        return _netem(overhead, **given)

    def stage(qdisc: dict[str, Any], *, loses: bool = False, queues: bool = False) -> dict[str, Any]:
        return {"link": number, "qdisc": qdisc, "loses": loses, "queues": queues}

    out: list[dict[str, Any]] = []
    loss = link.get("loss") or {"kind": "none"}
    if loss.get("applies_to", "all") != "all":
        raise NotByQdiscError(f"{place}.loss.applies_to", quote(loss["applies_to"]))
    odd = {key: _share(link[key]) for key in ("duplicate", "corrupt") if link.get(key)}
    if loss["kind"] == "bernoulli" and loss["p"] > 0:
        out.append(stage(netem(loss=_share(loss["p"]), **odd), loses=True))
    elif loss["kind"] == "gilbert-elliott":
        model = [_share(p) for p in (loss["p"], loss["r"], 1 - loss["loss_bad"], loss["loss_good"])]
        out.append(stage(netem(gemodel=model, **odd), loses=True))
    elif odd:
        out.append(stage(netem(**odd), loses=True))
    if loss["kind"] not in ("none", "bernoulli", "gilbert-elliott"):
        raise NotByQdiscError(f"{place}.loss.kind", quote(loss["kind"]))

    queue = link.get("queue") or {"kind": "drop-tail"}
    kind = queue["kind"]
    if "bandwidth" in queue:  # CAKE shapes its rate itself
        out.append(stage({"kind": "alone", "leaf": _leaf(queue, place)}, queues=True))
        out.append(stage(netem(rate=rate, delay_ns=delay)))
        return out
    if rate_bps is None and kind == "netem-limit":
        out.append(stage(netem(delay_ns=delay, jitter=jitter, limit=queue["limit"]), queues=True))
        return out
    if rate_bps is None:
        out.append(stage(netem(delay_ns=delay, jitter=jitter)))
        return out
    if first:
        limit = queue["limit"] if kind == "netem-limit" else ENOUGH
        rate = _rate_of_netem(rate_bps, FULL_FRAME + overhead)
        out.append(stage(netem(rate=rate, delay_ns=delay, jitter=jitter, limit=limit), queues=True))
        return out
    if capacity:
        if capacity["burst"] < FULL_FRAME + overhead:  # TBF would drop every full frame
            raise NotByQdiscError(f"{place}.capacity.burst", f"{capacity['burst']} bytes")
        bucket = _shaper(rate, overhead, _leaf(queue, place), burst=capacity["burst"])
        out.append(stage({**bucket, "bucket": True}, queues=True))
        out.append(stage(netem(delay_ns=delay)))
        return out
    if kind == "netem-limit":
        out.append(stage(_shaper(rate, overhead, _leaf(queue, place, delay), burst=MININET_BURST), queues=True))
        return out
    if kind == "drop-tail" and "bytes" not in queue.get("limit", {}):
        rate = _rate_of_netem(rate_bps, FULL_FRAME + overhead)
        packets = queue.get("limit", {}).get("packets")
        if packets is None:
            out.append(stage(netem(rate=rate, delay_ns=delay), queues=True))
            return out
        # netem's limit includes the packet in transmission.
        out.append(stage(netem(rate=rate, limit=packets + 1), queues=True))
        out.append(stage(netem(delay_ns=delay)))
        return out
    # The shaper releases a packet when its transmission starts; the stage behind it adds the transmission time.
    out.append(stage(_shaper(rate, overhead, _leaf(queue, place)), queues=True))
    out.append(stage(netem(rate=rate, delay_ns=delay)))
    return out


def _rate_of_netem(rate_bps: int, frame: int) -> int:
    """Rate given to netem, bytes/s: that of the link, unless netem's rounding misses the link's transmission time.
    netem truncates a packet's transmission time to whole nanoseconds (`packet_time_ns`); if a different rate gives a
    full frame the link's transmission time, rounded to the nearest nanosecond, that rate is used. One nanosecond per
    packet shortens the RTT by 0.1 us in a queue of 100.
    """
    work, rate = frame * 10**9, rate_bps // 8
    wanted = (8 * work + rate_bps // 2) // rate_bps
    nearest = work // max(1, wanted)
    misses = work // rate != wanted
    return nearest if misses and nearest and work // nearest == wanted else rate


def _netem(overhead: int, **given: Any) -> dict[str, Any]:
    base = {
        "kind": "netem", "limit": ENOUGH, "delay_ns": 0, "jitter": None, "rate": 0, "overhead": overhead, "loss": 0, "gemodel": None, "duplicate": 0, "corrupt": 0,
        "seed": 0,
    }  # fmt: skip
    return {**base, **given}


def _shaper(rate: int, overhead: int, leaf: Mapping[str, Any], *, burst: int = 0) -> dict[str, Any]:
    return {"kind": "shaper", "rate": rate, "burst": burst, "overhead": overhead, "bucket": False, "leaf": leaf}


def _leaf(queue: Mapping[str, Any], place: str, delay: int = 0) -> dict[str, Any]:
    """Return a queue in the kernel's form, as translated by the engine (`qdisc` beside each queue in `crates/net`)."""
    if queue["kind"] in NOT_COMPARED:
        raise NotByQdiscError(f"{place}.queue.kind", quote(queue["kind"]))
    try:
        return _engine.qdisc("queues", queue, delay)
    except _engine.Refusal as error:
        key, found, _ = error.args
        raise NotByQdiscError(f"{place}.queue.{key}", found) from None


def finished(qdisc: Mapping[str, Any]) -> dict[str, Any]:
    """Return a discipline with its options for the guest and for `tc`: the shaper, if there is one, and its queue."""
    if qdisc["kind"] == "netem":
        return {"shaper": None, "leaf": _engine.netem(**{k: v for k, v in qdisc.items() if k != "kind"})}
    shaper = {key: qdisc[key] for key in ("rate", "burst", "overhead", "bucket")} if qdisc["kind"] == "shaper" else None
    return {"shaper": shaper, "leaf": qdisc["leaf"]}


def merge(stages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Reduce the number of hops: a pure delay is folded into the next rate-less link, provided that its queue
    does not depend on arrival times.
    """
    out: list[dict[str, Any]] = []
    for stage in stages:
        last = out[-1]["qdisc"] if out else None
        here = stage["qdisc"]
        if "merging" in stage:
            out.append(stage)
            continue
        if (
            last
            and _is_delay(last)
            and "merging" not in out[-1]
            and here["kind"] == "netem"
            and here["limit"] == ENOUGH
        ):
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
        and not qdisc["jitter"]
        and not qdisc["loss"]
        and qdisc["gemodel"] is None
        and not (qdisc["duplicate"] or qdisc["corrupt"])
    )


def _share(p: float) -> int:
    """Return a probability in units of 2^-32."""
    return min(round(p * 2**32), 2**32 - 1)


def _mix(seed: int, position: int) -> int:
    """Return a separate seed for each discipline (splitmix64)."""
    mask = 2**64 - 1
    z = (seed + (position + 1) * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)
