"""A `tc` (iproute2) or Mininet network as a scenario. Disciplines become links in the same order.

A device's disciplines are walked from its root. A shaper (HTB, TBF, netem's rate) is a link's rate, the disciplines below it the link's queue.
netem's delay, loss, jitter and reordering are placed where packets meet them. The first device is the forward path, the second one the return path.

Sources: the man pages tc(8), tc-netem(8), tc-tbf(8), tc-htb(8), and Mininet's documentation of TCIntf. The meaning of
the `tc` parameters in the kernel is described in the engine, at each queue. Parameters without a counterpart are reported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ackclock.errors import InputError, one_of, quote
from ackclock.formats._tc_read import (
    NETEM_LIMIT,
    Discipline,
    Link,
    Op,
    Words,
    netem,
    option,
    policed,
    queue_of,
    rate_of,
    tbf,
    time_of,
    told_once,
)
from ackclock.formats._tc_words import bits, commands, duration, links_of_mininet, size
from ackclock.scenario import Scenario

__all__ = ["Imported", "read_script"]

ETHERNET = "1 Gbit/s"
"""Rate of a link with a described queue but no described rate."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """Scenario, and the parts of the script that could not be converted.

    Parameters
    ----------
    scenario
        Valid scenario.
    missing
        Parts that were not converted, one line each: position, original, substitute.
    """

    scenario: Scenario
    missing: tuple[str, ...]

    def to_toml(self) -> str:
        """Return the text of the scenario file, headed by what was omitted."""
        return "".join(f"# not kept: {line}\n" for line in self.missing) + self.scenario.to_toml()


def read_script(text: str, *, forward: str | None = None, backward: str | None = None) -> Imported:
    """Read a script with lines of `tc`, or a program for Mininet with `TCLink` options.

    Parameters
    ----------
    text
        The script.
    forward, backward
        Device of the forward path, and of the return path, as DEVICE or NAMESPACE/DEVICE. Default: the first and the
        second device to which the script attaches a discipline.

    Raises
    ------
    InputError
        If the script has no such line, a line that cannot be read, or no such device.

    Examples
    --------
    >>> made = read_script("tc qdisc add dev eth0 root netem delay 50ms loss 1% rate 10mbit")
    >>> made.scenario.network.bottleneck.rate, made.scenario.network.bottleneck.delay
    ('10 Mbit/s', '50 ms')
    """
    missing: list[str] = []
    devices = _devices(text)
    links = links_of_mininet(text)
    if devices:
        there, back = _ways(devices, forward, backward, missing)
        chains = [[op for device in way for op in device.chain(missing)] for way in (there, back)]
        network = {**_network(chains[0], missing), **_reverse(chains[1], missing)}
    elif links:
        network = _of_mininet(links, missing)
    else:
        raise InputError(
            "found no line of tc with qdisc, class or filter, and no link of Mininet with options; allowed: a script that has one"
        )
    values = {"network": network, **_flows(text)}
    return Imported(scenario=Scenario.from_dict(values), missing=tuple(dict.fromkeys(missing)))


@dataclass(slots=True)
class _Device:
    """Disciplines on a device, by handle."""

    name: str
    nodes: dict[str, Discipline] = field(default_factory=dict)
    policers: list[tuple[int, Words]] = field(default_factory=list)

    def below(self, handle: str) -> list[Discipline]:
        return [node for node in self.nodes.values() if node.parent == handle]

    def inside(self, node: Discipline) -> list[Discipline]:
        """Return the disciplines below a discipline, in any of its classes."""
        major = node.handle.partition(":")[0]
        others = (of for of in self.nodes.values() if of is not node and of.parent != "root")
        return [of for of in others if of.parent == node.handle or _same(of.parent.partition(":")[0], major)]

    def chain(self, missing: list[str]) -> list[Op]:
        """Return the operations that packets go through, in order."""
        ops = [policed(line, words) for line, words in self.policers]
        roots = self.below("root")
        if roots:
            ops += self._walk(roots[-1], missing)
        return ops

    def _walk(self, node: Discipline, missing: list[str], rate: int | None = None) -> list[Op]:
        children = [] if node.kind in ("htb", "hfsc") else self.inside(node)
        if node.kind in ("htb", "hfsc"):
            return self._classes(node, missing)
        if node.kind == "netem":
            ops, after = netem(node, missing)
            below = [op for child in children for op in self._walk(child, missing)]
            if below and rate is None and any(op.kind in ("rate", "shaper") for op in below):
                after = [op for op in after if op.kind != "limit" or _told(op, missing, node)]
            return [*ops, *after, *below]
        if node.kind == "tbf":
            return self._shaped(tbf(node, missing), children, missing)
        if node.kind in ("prio", "mq", "mqprio", "multiq", "drr", "ets"):
            missing.append(
                f"line {node.line}: {node.kind}: bands of their own, left out; its first child's discipline instead"
            )
            return [op for child in children[:1] for op in self._walk(child, missing)]
        queue = queue_of(node, missing)
        return [] if queue is None else [Op("queue", queue)]

    def _shaped(self, made: Link, children: list[Discipline], missing: list[str]) -> list[Op]:
        """Return the operations of a shaper, with its queue or its children."""
        ops: list[Op] = []
        for child in children[-1:]:
            for op in self._walk(child, missing, rate=1):
                if op.kind == "queue":
                    made["queue"] = op.value
                elif op.kind == "limit":
                    made["queue"] = {"kind": "netem-limit", "limit": f"{op.value} packets"}
                else:
                    ops.append(op)
        return [*ops, Op("shaper", made)]

    def _classes(self, node: Discipline, missing: list[str]) -> list[Op]:
        """Return the operations of the class that receives all packets: the shaper's default, else the first."""
        leaves = [
            of
            for of in self.nodes.values()
            if of.kind == "class" and not any(o.kind == "class" for o in self.below(of.handle))
        ]
        if not leaves:
            missing.append(f"line {node.line}: {node.kind}: a shaper without a class lets everything pass")
            return []
        wanted = option(node.words, "default")
        major = node.handle.rstrip(":")
        chosen = next(
            (of for of in leaves if wanted is not None and _same(of.handle, f"{major}:{wanted.removeprefix('0x')}")),
            leaves[0],
        )
        for other in leaves:
            if other is not chosen:
                missing.append(f"line {other.line}: class {other.handle}: left out, all packets go to {chosen.handle}")
        rates: list[int] = []
        at: Discipline | None = chosen
        while at is not None:
            words = at.words
            own = option(words, "rate") or option(words, "m2") or option(words, "sc")
            ceil = option(words, "ceil") or option(words, "ul")
            above = next((of for of in self.nodes.values() if of.kind == "class" and _same(of.handle, at.parent)), None)
            limit = ceil if above is not None and ceil else own  # a class without a parent cannot borrow
            if limit is not None:
                rates.append(bits(limit))
            at = above
        if not rates:
            raise InputError(
                f"line {chosen.line}: class {chosen.handle}: found no rate; allowed: htb or hfsc with a rate"
            )
        made: Link = {"rate": rate_of(min(rates))}
        burst = option(chosen.words, "burst") or option(chosen.words, "buffer") or option(chosen.words, "maxburst")
        if burst and size(burst) > 15 * 1024 + 1600:
            made["capacity"] = {"kind": "token-bucket", "burst": f"{size(burst)} bytes"}
        return self._shaped(made, self.below(chosen.handle), missing)


def _told(op: Op, missing: list[str], node: Discipline) -> bool:
    """Omit netem's limit in front of a shaper's own limit, and report it if it was given explicitly."""
    if option(node.words, "limit") is not None:
        missing.append(f"line {node.line}: netem limit {op.value}: left out beside the limit of the shaper below")
    return False


def _devices(text: str) -> list[_Device]:
    """Return the devices in the order of their first disciplines."""
    made: dict[str, _Device] = {}
    number = 0
    for line, place, words in commands(text):
        what, action = words[0], words[1] if len(words) > 1 else ""
        if what not in ("qdisc", "class", "filter") or action in ("show", "list", "ls", "del", "delete", "-s"):
            continue
        name = option(words, "dev")
        if name is None:
            continue
        device = made.setdefault(f"{place}/{name}" if place else name, _Device(f"{place}/{name}" if place else name))
        rest = list(words[words.index("dev") + 2 :])
        if what == "filter":
            if "police" in rest:
                device.policers.append((line, rest[rest.index("police") + 1 :]))
            continue
        parent, handle = "root", ""
        kind: str | None = None
        while rest:
            word = rest.pop(0)
            if word == "root":
                parent = "root"
            elif word in ("parent", "handle", "classid") and rest:
                given = rest.pop(0)
                parent, handle = (given, handle) if word == "parent" else (parent, given)
            elif word == "stab":
                while rest and rest[0] not in ("htb", "tbf", "netem", "cake", "fq_codel", "hfsc"):
                    rest.pop(0)
            elif word in ("ingress", "clsact"):
                kind = ""
                break
            else:
                kind = "class" if what == "class" else word
                break
        if not kind:
            continue
        number += 1
        handle = handle or f"#{number}:"
        if what == "qdisc" and parent == "root":
            device.nodes = {}  # a new root discipline replaces all earlier ones
        if action in ("change", "replace") and what == "qdisc":
            old = next(
                (key for key, node in device.nodes.items() if _same(node.parent, parent) and node.kind == kind), None
            )
            handle = old or handle
        parent = next((key for key in device.nodes if _same(key, parent)), parent)
        device.nodes[handle] = Discipline(kind=kind, words=rest, line=line, parent=parent, handle=handle)
    return [device for device in made.values() if device.nodes or device.policers]


def _same(a: str, b: str) -> bool:
    """Return whether two handles are the same: `1:` is `1:0`, and numbers are hexadecimal."""

    def parts(handle: str) -> tuple[str, str]:
        major, _, minor = handle.partition(":")
        return major.lstrip("0"), minor.lstrip("0")

    return parts(a) == parts(b)


def _ways(
    devices: list[_Device], forward: str | None, backward: str | None, missing: list[str]
) -> tuple[list[_Device], list[_Device]]:
    """Return the devices on the forward and return paths, in order."""
    by_name = {device.name: device for device in devices}
    for key, name in (("--forward", forward), ("--backward", backward)):
        if name is not None and name not in by_name:
            raise InputError(f"{key}: found {quote(name)}; allowed: {one_of(name, list(by_name))}")
    wires = [re.fullmatch(r".*/w(\d+)([lr])", name) for name in by_name]
    if forward is None and backward is None and all(wires):  # names used by `ackclock export`
        order = sorted(
            ((int(m[1]), m[2], device) for m, device in zip(wires, devices, strict=True) if m), key=lambda of: of[0]
        )
        return [of for _, end, of in order if end == "l"], [of for _, end, of in order if end == "r"][::-1]
    there = by_name[forward] if forward else next(d for d in devices if d.name != backward)
    others = [device for device in devices if device is not there]
    back = by_name[backward] if backward else others[0] if others else None
    for device in others:
        if device is not back:
            missing.append(f"device {device.name}: left out; --forward and --backward choose two")
    return [there], [back] if back else []


def _network(ops: Sequence[Op], missing: list[str], *, reverse: bool = False) -> Link:
    """Return up to three links for the operations, each with loss, then the queue with its rate, then the rest."""
    links = _links(list(ops), missing)
    if not any("rate" in link for link in links):
        for link in links:
            if (queue := link.get("queue")) and queue["kind"] not in ("netem-limit", "cake"):
                link["rate"] = ETHERNET
                missing.append(
                    f"a queue of kind {queue['kind']} on a link without a rate: {ETHERNET} instead of the device's own"
                )
    main = next(
        (at for at, link in enumerate(links) if "rate" in link or link.get("queue", {}).get("kind") == "cake"),
        len(links) - 1,
    )
    rates = [
        (bits(link["rate"].replace(" ", "").replace("/s", "")), at) for at, link in enumerate(links) if "rate" in link
    ]
    if rates:
        main = min(rates)[1]
    made: Link = {"bottleneck": links[main] if links else {"delay": "0 s"}}
    for name, at in (("access", main - 1), ("egress", main + 1)):
        if 0 <= at < len(links):
            made[name] = links[at]
    for at, _ in enumerate(links):
        if abs(at - main) > 1:
            missing.append(f"the {at + 1}th of {len(links)} shapers in a row: left out")
    link = made["bottleneck"]
    kind = link.get("queue", {}).get("kind")
    if "rate" not in link and (kind == "cake" or (kind != "netem-limit" and not reverse)):
        link["rate"] = ETHERNET
        if "bandwidth" not in link.get("queue", {}):
            missing.append(f"no rate at all: {ETHERNET} instead of the device's own")
    return made


def _links(ops: list[Op], missing: list[str]) -> list[Link]:
    """Return links in a row. A constant delay may move to any link; delays drawn per packet keep their position."""
    links: list[Link] = []
    stage = 9
    delay = sum(op.value for op in ops if op.kind == "delay")
    for op in told_once(ops):
        where = {"queue": 1, "rate": 1, "shaper": 1, "limit": 1, "jitter": 2, "reorder": 3, "delay": -1}.get(op.kind, 0)
        if where < 0:
            continue
        if (where <= stage and not (where == stage == 0)) or not links:
            links.append({})
        stage = where
        link = links[-1]
        match op.kind:
            case "loss" if "loss" in link:
                link["loss"] = _both(link["loss"], op.value, missing)
            case "duplicate" | "corrupt" if op.kind in link:
                missing.append(f"{op.kind} again, {100 * op.value:g}%: left out")
            case "rate" | "shaper" if "queue" in link and "rate" not in link:
                link |= {**op.value, "queue": link["queue"]}
            case "rate" | "shaper":
                link |= op.value
            case "queue":
                link["queue"] = op.value
            case "limit":
                link["queue"] = {"kind": "netem-limit", "limit": f"{op.value} packets"}
            case "jitter":
                link |= {"delay": time_of(op.value["delay"]), "netem_jitter": op.value["netem_jitter"]}
            case _:
                link[op.kind] = op.value
    if delay:
        place = next((link for link in links if "rate" in link), links[0] if links else {})
        if not links:
            links.append(place)
        before = duration(place["delay"].replace(" ", "")) if "delay" in place else 0
        place["delay"] = time_of(before + delay)
    links = _joined(links)
    for link in links:
        if (
            link.get("queue", {}).get("kind") == "netem-limit"
            and "rate" not in link
            and link.get("delay", "0 s") == "0 s"
        ):
            del link["queue"]  # without a delay the limit has no effect
    return [link for link in links if link]


def _joined(links: list[Link]) -> list[Link]:
    """Merge a link that only limits netem's packets into the link before it, which has the jitter."""
    made: list[Link] = []
    for link in links:
        last = made[-1] if made else None
        if (
            last is not None
            and set(link) <= {"queue", "delay"}
            and "queue" not in last
            and "rate" not in last
            and link.get("queue", {}).get("kind") == "netem-limit"
        ):
            last["queue"] = link["queue"]
            if "delay" in link:
                last["delay"] = link["delay"]
        else:
            made.append(link)
    return made


def _both(one: Link, other: Link, missing: list[str]) -> Link:
    if one["kind"] == other["kind"] == "bernoulli":
        return {"kind": "bernoulli", "p": round(1 - (1 - one["p"]) * (1 - other["p"]), 12)}
    missing.append(f"loss of kind {other['kind']} behind one of kind {one['kind']}: left out")
    return one


def _reverse(ops: Sequence[Op], missing: list[str]) -> Link:
    return {"reverse": _network(ops, missing, reverse=True) if ops else {"bottleneck": {"delay": "0 s"}}}


def _of_mininet(links: list[tuple[int, dict[str, object]]], missing: list[str]) -> Link:
    """Return a network of symmetric Mininet links: the slowest is the bottleneck, its neighbours access and egress."""
    made = [_tc_link(line, options, missing) for line, options in links]
    rates = [
        (bits(link["rate"].replace(" ", "").replace("/s", "")), at) for at, link in enumerate(made) if "rate" in link
    ]
    main = min(rates)[1] if rates else 0
    for at, (line, _) in enumerate(links):
        if abs(at - main) > 1:
            missing.append(f"line {line}: a link beyond three in a row, left out")
    if not rates:
        made[main]["rate"] = ETHERNET
        missing.append(f"no link has bw: {ETHERNET} instead")
    network: Link = {"bottleneck": made[main]}
    if main > 0:
        network["access"] = made[main - 1]
    if main + 1 < len(made):
        network["egress"] = made[main + 1]
    return network


def _tc_link(line: int, options: dict[str, object], missing: list[str]) -> Link:
    """Return a link as built by Mininet's TCIntf: a shaper, with netem and the limit below it."""
    link: Link = {}

    def time(value: object) -> int:
        return duration(str(value))

    if "bw" in options:
        link["rate"] = rate_of(int(float(str(options["bw"])) * 10**6))
    if "delay" in options:
        link["delay"] = time_of(time(options["delay"]))
    limit = options.get("max_queue_size")
    if "jitter" in options:
        missing.append(
            f"line {line}: jitter {options['jitter']}: around the delay, packets keep their order behind the rate"
        )
        link["netem_jitter"] = {"deviation": time_of(time(options["jitter"])), "distribution": "uniform"}
    if options.get("loss"):
        link["loss"] = {"kind": "bernoulli", "p": float(str(options["loss"])) / 100}
    if "rate" in link:
        if options.get("use_tbf"):
            burst = size(str(options.get("burst", 20000)))
            wait = float(str(options.get("latency_ms", 1)))
            link["capacity"] = {"kind": "token-bucket", "burst": f"{burst} bytes"}
            link["queue"] = {
                "kind": "drop-tail",
                "limit": f"{int(float(str(options['bw'])) * 125 * wait) + burst} bytes",
            }
        elif options.get("enable_red"):
            link["queue"] = {"kind": "linux-red", "limit": "1000000 bytes", "min": "30000 bytes", "max": "35000 bytes", "avpkt": "1500 bytes",
                             "burst": 20, "probability": 1.0, "ecn": bool(options.get("enable_ecn"))}  # fmt: skip
        else:
            held = NETEM_LIMIT if limit is None else int(str(limit))
            if any(key in options for key in ("delay", "loss", "jitter", "max_queue_size")):
                link["queue"] = {"kind": "netem-limit", "limit": f"{held} packets"}
            else:
                link["queue"] = {"kind": "drop-tail", "limit": "1000 packets"}
    elif limit is not None and "delay" in link:
        link["queue"] = {"kind": "netem-limit", "limit": f"{limit} packets"}
    return link


_IPERF = re.compile(r"^[^#\n]*?\biperf3?\b([^\n|&;]*\s-c\b[^\n|&;]*)|^flow ([^\n&]*)", re.MULTILINE)


def _flows(text: str) -> Link:
    """Return the flows of the script's iperf clients; without any, one endless flow."""
    groups: list[Link] = []
    longest = 0.0
    for match in _IPERF.finditer(text):
        words = (match[1] or match[2]).replace("'", " ").split()
        if any("$@" in word for word in words):
            continue  # arguments of a shell function
        group: Link = {}
        controller = option(words, "-C") or option(words, "-Z")
        if controller and not controller.startswith("$"):
            group["congestion_control"] = controller
        seconds, count, total, rate = (option(words, name) for name in ("-t", "-P", "-n", "-b"))
        if count and count.isdecimal() and int(count) > 1:
            group["count"] = int(count)
        if seconds and re.fullmatch(r"[0-9.]+", seconds):
            longest = max(longest, float(seconds))
        if "-u" in words:
            payload = option(words, "-l")
            group = {
                "workload": {
                    "kind": "constant-rate",
                    "rate": rate_of(bits(rate) if rate else 10**6),
                    **({"payload": f"{size(payload)} bytes"} if payload else {}),
                }
            }
        elif total and re.match(r"[0-9]", total):
            group["workload"] = {"kind": "transfer", "bytes": f"{size(total)} bytes"}
        if group not in groups:
            groups.append(group)
    return {"duration": f"{longest or 10:g} s", "flows": groups or [{"congestion_control": "cubic"}]}
