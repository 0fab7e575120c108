"""A scenario for a real testbed: a shell script that builds the network from namespaces with `ip` and `tc`, and runs
the flows with iperf3.

The layout is sender - router - ... - router - receiver, as in the linux backend (`linux/guest/src/network.rs`). Only routers have the
links' disciplines, so that a host's own queue never holds its sender back. A link consists of as many hops as it needs disciplines in a
row: loss, then the queue with its rate, then delay. Single flows' access and egress links branch off.
Features that a kernel or iperf3 lacks are omitted, and the script and the command report each in one line.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ackclock import _engine
from ackclock.errors import ScenarioError, quote
from ackclock.formats import shell
from ackclock.formats._disciplines import disciplines
from ackclock.linux import _qdiscs, _translate
from ackclock.linux._facts import Has
from ackclock.linux._qdiscs import NotByQdiscError

if TYPE_CHECKING:
    from ackclock.scenario import Scenario

__all__ = ["Exported", "export"]

PORT = 5201
"""Port of the first flow's server; iperf3's default."""

MOST_FLOWS = 200

WORKLOADS = ("bulk", "transfer", "constant-rate", "voice")
"""Workloads supported by iperf3."""

NEWEST = "7.3"
"""Kernel version whose settings the script uses; an older kernel reports missing settings when the script runs there."""

Stages = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Exported:
    """A script, and the parts of the scenario that it omits.

    Parameters
    ----------
    text
        The script, for bash.
    missing
        Keys without a counterpart, one line each: key, requested value, substitute.
    """

    text: str
    missing: tuple[str, ...]


def export(scenario: Scenario) -> Exported:
    """Write a scenario as a script of `ip`, `tc` and `iperf3`.

    Parameters
    ----------
    scenario
        Scenario with a chain, dumbbell or wishbone.

    Returns
    -------
    Exported
        The script runs on Linux as root. It takes a folder for its results, one file of `iperf3 -J` for each flow and one of `ss -tin`
        for each sending host, which `ackclock report --beside` reads.

    Raises
    ------
    ScenarioError
        If the network is a graph, or no flow can be run by iperf3.
    """
    compiled = json.loads(scenario.to_engine_json())
    network = compiled["network"]
    if network["topology"] == "graph":
        raise ScenarioError(
            key="network.topology", found='"graph", whose links have no places', allowed="chain, dumbbell, wishbone"
        )
    missing: list[str] = []
    flows = _flows(scenario, compiled, missing)
    if not flows:
        raise ScenarioError(
            key="flows", found="no workload that iperf3 can do", allowed=f"one of {', '.join(WORKLOADS)}"
        )
    if len(flows) > MOST_FLOWS:
        raise ScenarioError(key="flows", found=f"{len(flows)} flows", allowed=f"at most {MOST_FLOWS}")
    plan = _Plan(network, flows, missing, scenario)
    return Exported(text=shell.script(_script(scenario, plan, flows, missing)), missing=tuple(missing))


@dataclass(kw_only=True, slots=True)
class _Flow:
    number: int
    group: int
    start_s: float
    stop_s: float
    client: str
    """iperf3 arguments, without address and port."""
    host: Mapping[str, Any]


def _flows(scenario: Scenario, compiled: Mapping[str, Any], missing: list[str]) -> list[_Flow]:
    duration = compiled["duration_ns"]
    made: list[_Flow] = []
    number = 0
    for i, asked in enumerate(compiled["flows"]):
        count = asked.get("count", 1)
        first = number
        number += count
        kind = asked["workload"]["kind"]
        if kind not in WORKLOADS or _translate._is_pcc(asked):
            key, found = (
                ("workload", kind) if kind not in WORKLOADS else ("congestion_control", asked["congestion_control"])
            )
            missing.append(f"flows.{i}.{key}: {quote(found)}, the flow is left out")
            continue
        host, group = _host(asked, i, missing)
        for key in ("start_s", "stagger_s"):
            if group.get(key) is not None:
                missing.append(f"flows.{i}.{key[:-2]}: a distribution, 0 s instead")
        start, step = group.get("start_ns") or 0, group.get("stagger_ns") or 0
        stop = min(group.get("stop_ns") or duration, duration)
        for k in range(count):
            begin = start + k * step
            if begin >= stop:
                break
            seconds = (stop - begin) / 1e9
            client = _client(group, host, seconds)
            made.append(
                _Flow(number=first + k, group=i, start_s=begin / 1e9, stop_s=stop / 1e9, client=client, host=host)
            )
    if scenario.hosts:
        missing.append("hosts: their timing is that of the machine instead")
    return made


def _host(group: dict[str, Any], i: int, missing: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings of a group's hosts, as in the linux backend. Settings that do not exist in any kernel are
    dropped and reported one by one.
    """
    group = copy.deepcopy(group)
    asked = group["congestion_control"]
    if asked.startswith("custom:"):
        missing.append(f"flows.{i}.congestion_control: a class of your own, cubic instead")
        group["congestion_control"], group["congestion_control_options"] = "cubic", {}
    if group.get("recovery") not in (None, "prr-linux-6"):
        missing.append(f"flows.{i}.recovery: {quote(group['recovery'])}, the kernel's own instead")
    group["recovery"] = None
    wanted = _translate.kernel_controller(group["congestion_control"], None)
    while True:
        try:
            host = _translate._host(group, i, Has(release=NEWEST, controllers=(wanted,)))
            _translate._bound_buffer(host, "qdisc")
            return host, group
        except ScenarioError as error:
            keys = error.key.split(".")[2:]
            if keys == ["congestion_control"] or not keys:
                missing.append(f"{error.key}: {error.found}, cubic instead")
                group["congestion_control"], wanted = "cubic", "cubic"
                continue
            missing.append(f"{error.key}: {error.found}, not set")
            part = group
            for key in keys[:-1]:
                part = part[key]
            if keys == ["profile"]:
                group["profile"] = "linux-6"
            elif part.pop(keys[-1], None) is None:
                raise


def _client(group: Mapping[str, Any], host: Mapping[str, Any], seconds: float) -> str:
    workload = group["workload"]
    words = ["-J", "-i", "0.1"]
    length = ["-t", str(max(math.ceil(seconds), 1))]  # iperf3 accepts only whole seconds
    if workload["kind"] == "constant-rate":
        return shell.join([*words, "-u", "-b", str(workload["rate"]), "-l", str(workload["payload"]), *length])
    if workload["kind"] == "voice":
        bits = workload["payload"] * 8 * 10**9 // workload["interval"]
        return shell.join([*words, "-u", "-b", str(bits), "-l", str(workload["payload"]), *length])
    if workload["kind"] == "transfer":
        length = ["-n", str(workload["bytes"])]
    words += ["-C", host["congestion_control"]]
    if host["mss"]:
        words += ["-M", str(host["mss"])]
    return shell.join([*words, *length])


@dataclass(kw_only=True, slots=True)
class _Hop:
    """Link between two namespaces, with an optional discipline on either end."""

    left: str
    right: str
    forward: Mapping[str, Any] | None = None
    backward: Mapping[str, Any] | None = None


@dataclass(slots=True)
class _Plan:
    """Namespaces, the links between them, and the path of each flow."""

    network: Mapping[str, Any]
    flows: Sequence[_Flow]
    missing: list[str]
    scenario: Scenario
    hops: list[_Hop] = field(default_factory=list)
    ways: dict[int, list[int]] = field(default_factory=dict)
    """Flow -> hops from its sender to its receiver."""
    hosts: dict[str, _Flow] = field(default_factory=dict)
    """A host's namespace -> one of the host's flows."""

    def __post_init__(self) -> None:
        own = self.network["topology"] != "chain" and any(
            self.network.get(name) for name in ("access", "access_list", "egress")
        )
        trunk_names = ["bottleneck"] if own else ["access", "bottleneck", "egress"]
        trunk: list[int] = []
        place = "left"
        links = [name for name in trunk_names if self.network.get(name)]
        for name in links:
            end = "right" if name == links[-1] else f"r-{name}"
            trunk += self._link(name, self.network[name], place, end, 0)
            place = end
        branches: dict[int, tuple[list[int], list[int]]] = {}
        for flow in self.flows:
            key = flow.number if own else flow.group
            if key not in branches:
                branches[key] = self._branch(flow, key, own)
            first, last = branches[key]
            self.ways[flow.number] = [*first, *trunk, *last]

    def _branch(self, flow: _Flow, key: int, own: bool) -> tuple[list[int], list[int]]:
        """Add a host on either side of the network, with its own links."""
        sender, receiver = f"s{key}", f"d{key}"
        self.hosts[sender] = self.hosts[receiver] = flow
        listed = self.network.get("access_list") or []
        access = listed[flow.number % len(listed)] if listed else self.network.get("access")
        egress = self.network.get("egress")
        if not own or not access:
            first = [self._wire(sender, "left")]
        else:
            which = f"access_list.{flow.number % len(listed)}" if listed else "access"
            first = [self._wire(sender, f"a{key}"), *self._link(which, access, f"a{key}", "left", key)]
        if not own or not egress:
            last = [self._wire("right", receiver)]
        else:
            last = [*self._link("egress", egress, "right", f"e{key}", key), self._wire(f"e{key}", receiver)]
        return first, last

    def _wire(self, left: str, right: str) -> int:
        self.hops.append(_Hop(left=left, right=right))
        return len(self.hops) - 1

    def _link(self, name: str, link: Mapping[str, Any], left: str, right: str, key: int) -> list[int]:
        """Add a link as hops. The k-th discipline of each direction is placed where packets enter the k-th hop."""
        back = (self.network.get("reverse") or {}).get(name.partition("_")[0]) or link
        there = self._stages(link, f"network.{name}")
        here = self._stages(back, f"network.{name}" if back is link else f"network.reverse.{name}")
        count = max(len(there), len(here), 1)
        nodes = [left, *(f"{name.replace('_list.', '')}{key}-{i}" for i in range(1, count)), right]
        hops = []
        for i in range(count):
            hops.append(self._wire(nodes[i], nodes[i + 1]))
        for i, stage in enumerate(there):
            self.hops[hops[i]].forward = stage
        for i, stage in enumerate(here):
            self.hops[hops[count - 1 - i]].backward = stage
        return hops

    def _stages(self, link: Mapping[str, Any], place: str) -> Stages:
        link = dict(link)
        overhead = self.network.get("framing_bytes", 0) - _qdiscs.FRAME
        leaf: dict[str, Any] | None = None
        while True:
            try:
                stages = _qdiscs.merge(_qdiscs.stages_of(link, 0, place, overhead))
                break
            except NotByQdiscError as error:
                key, found = error.args
                part = key.removeprefix(f"{place}.").split(".")
                if part[:2] == ["queue", "kind"] and link["queue"]["kind"] == "pie":
                    leaf = _engine.qdisc("queues", link["queue"], 0)
                    link["queue"] = {"kind": "drop-tail", "limit": {"bytes": 1}}  # replaced by the leaf
                    continue
                instead = {"queue": "a plain queue instead", "capacity": "its mean rate instead"}.get(
                    part[0], "left out"
                )
                if part == ["queue", "bandwidth"]:
                    instead = "the link's rate instead"
                if part[0] == "capacity" and "rate" not in link:
                    link["rate"] = self._mean(place)
                line = f"{key}: {found}, {instead}"
                if line not in self.missing:
                    self.missing.append(line)
                self._without(link, part)
        if leaf is not None:
            for stage in stages:
                if stage["qdisc"]["kind"] == "shaper":
                    stage["qdisc"]["leaf"] = leaf
        return [stage["qdisc"] for stage in stages]

    def _mean(self, place: str) -> int | None:
        """Return each variable-rate link's mean rate, bit/s, by the link's key."""
        from ackclock.scenario._parts import mean_bps

        link: Any = self.scenario
        for part in place.split("."):
            link = link[int(part)] if part.isdecimal() else getattr(link, part)
        return mean_bps(link)

    @staticmethod
    def _without(link: dict[str, Any], part: Sequence[str]) -> None:
        if part == ["queue", "weight"]:
            link["queue"] = {**link["queue"], "weight": 2.0 ** round(math.log2(link["queue"]["weight"]))}
        elif part == ["loss", "applies_to"]:
            link["loss"] = {**link["loss"], "applies_to": "all"}
        elif part == ["queue", "bandwidth"]:
            link["queue"] = {key: value for key, value in link["queue"].items() if key != "bandwidth"}
        elif part[0] == "queue":
            limit = link["queue"].get("limit")
            unit = "bytes" if link["queue"]["kind"] == "linux-red" else "packets"
            link["queue"] = {"kind": "drop-tail", **({"limit": {unit: limit}} if limit is not None else {})}
        elif link.pop(part[0], None) is None:
            raise ScenarioError(key=".".join(part), found="a value", allowed="what tc can do")


def _script(scenario: Scenario, plan: _Plan, flows: Sequence[_Flow], missing: Sequence[str]) -> Iterator[str]:
    title = scenario.name or "scenario"
    controllers = sorted({flow.host["congestion_control"] for flow in flows if flow.host["congestion_control"]})
    nodes = list(dict.fromkeys(node for hop in plan.hops for node in (hop.left, hop.right)))
    yield "#!/usr/bin/env bash"
    yield shell.comment(f"{title}: a network of namespaces, and its flows by iperf3. Written by ackclock export.")
    yield "# As root: bash THIS_FILE FOLDER. It needs ip, tc and ss (iproute2), iperf3, and the kernel's sch_netem and sch_htb."
    yield "# FOLDER gets flow-N.json (iperf3 -J) and ss-HOST.txt (ss -tin); `ackclock report RUN --beside FILE` draws them."
    yield from (shell.comment(f"no counterpart: {line}") for line in missing)
    yield from _HEAD.format(nodes=shell.word(" ".join(nodes)), controllers=shell.join(controllers)).splitlines()
    yield ""
    yield "for n in $NODES; do ip netns add ack-$n; ip -n ack-$n link set lo up; ip netns exec ack-$n sysctl -qw net.ipv4.ip_forward=1; done"
    yield ""
    yield "# wires: of wire N, wNl is the end towards the senders, wNr the one towards the receivers"
    for k, hop in enumerate(plan.hops):
        yield from _wire(k, hop, plan)
    yield ""
    yield "# hosts"
    for name, flow in plan.hosts.items():
        yield from (
            f"ip netns exec ack-{name} sysctl -qw {shell.word(key.replace('/', '.') + '=' + value)}"
            for key, value in flow.host["sysctl"]
        )
    yield ""
    yield "# ways"
    yield from _routes(plan)
    yield ""
    yield "# disciplines"
    for k, hop in enumerate(plan.hops):
        for node, end, qdisc in ((hop.left, f"w{k}l", hop.forward), (hop.right, f"w{k}r", hop.backward)):
            if qdisc is not None:
                yield from disciplines(f"tc -n ack-{node}", end, qdisc)
    yield ""
    yield "# flows"
    for flow in flows:
        port = PORT + flow.number
        yield f'ip netns exec ack-{_host_of(plan, flow, 1)} iperf3 -s -1 -p {port} >/dev/null & JOBS="$JOBS $!"'
    yield "sleep 1"
    for name in plan.hosts:
        if name.startswith("s"):
            yield f'look {name} & JOBS="$JOBS $!"'
    for flow in flows:
        seconds = flow.stop_s - flow.start_s
        yield (
            f"flow {flow.start_s:g} {seconds + 30:g} {_host_of(plan, flow, 0)} {_address(_host_of(plan, flow, 1))} {PORT + flow.number} "
            f'{flow.number} {flow.client} & FLOWS="$FLOWS $!"'
        )
    yield 'for job in $FLOWS; do wait "$job" || echo "a flow ended with an error; its file says why" >&2; done'
    yield 'echo "written: $OUT"'


_HEAD = """set -eu
OUT=${{1:?name a folder for the results}}
NODES={nodes}
JOBS=""
FLOWS=""
mkdir -p "$OUT"
for tool in ip tc ss iperf3; do command -v $tool >/dev/null || {{ echo "$tool: not found; install iproute2 and iperf3" >&2; exit 2; }}; done
for cc in {controllers}; do
  modprobe -q "tcp_$cc" 2>/dev/null || true
  grep -qwF -e "$cc" /proc/sys/net/ipv4/tcp_available_congestion_control || {{ echo "$cc: this kernel has no such controller" >&2; exit 2; }}
done
for n in $NODES; do
  [ ! -e /run/netns/ack-$n ] || {{ echo "ack-$n: there is a namespace of this name; remove it with: ip netns del ack-$n" >&2; exit 2; }}
done
cleanup() {{
  for job in $JOBS $FLOWS; do kill "$job" 2>/dev/null || true; done
  for n in $NODES; do ip netns del ack-$n 2>/dev/null || true; done
}}
trap cleanup EXIT
look() {{ # host: what its kernel's TCP knows, ten times a second
  while true; do date +%s.%N; ip netns exec ack-$1 ss -tinH state established; sleep 0.1; done >"$OUT/ss-$1.txt" 2>/dev/null
}}
flow() {{ # start, at most so long, host, address, port, number, arguments of iperf3
  local start=$1 most=$2 host=$3 to=$4 port=$5 number=$6
  shift 6
  sleep "$start"
  timeout "$most" ip netns exec ack-$host iperf3 -c "$to" -p "$port" "$@" >"$OUT/flow-$number.json"
}}
"""


def _host_of(plan: _Plan, flow: _Flow, side: int) -> str:
    hop = plan.hops[plan.ways[flow.number][-side]]
    return hop.right if side else hop.left


def _wire(k: int, hop: _Hop, plan: _Plan) -> Iterator[str]:
    left, right = f"w{k}l", f"w{k}r"
    yield f"ip link add {left} netns ack-{hop.left} type veth peer name {right} netns ack-{hop.right}"
    for node, end, number in ((hop.left, left, 1), (hop.right, right, 2)):
        mtu = max(flow.host["mtu"] for flow in plan.flows)
        whole = all(not flow.host["tso"] for flow in plan.flows)
        segments = " gso_max_segs 1" if whole else ""
        yield f"ip -n ack-{node} link set {end} mtu {mtu}{segments} txqueuelen 1000 up"
        yield (
            f"ip -n ack-{node} addr add 10.2.{k}.{number}/30 dev {end}"
            if k < 256
            else (f"ip -n ack-{node} addr add 10.{2 + k // 256}.{k % 256}.{number}/30 dev {end}")
        )
    for node in (hop.left, hop.right):
        if node in plan.hosts:
            yield f"ip -n ack-{node} addr add {_address(node)}/32 dev lo"


def _address(host: str) -> str:
    """Return the address of a host: 10.0.* for senders, 10.1.* for receivers."""
    number = int(host[1:])
    return f"10.{int(host[0] == 'd')}.{number // 250}.{number % 250 + 1}"


def _routes(plan: _Plan) -> Iterator[str]:
    """Add routes to a flow's two hosts in every namespace on its path."""
    said: set[str] = set()
    for flow in plan.flows:
        way = plan.ways[flow.number]
        sender, receiver = _host_of(plan, flow, 0), _host_of(plan, flow, 1)
        for k in way:
            hop = plan.hops[k]
            for node, end, gateway, target, source in (
                (hop.left, f"w{k}l", 2, receiver, sender),
                (hop.right, f"w{k}r", 1, sender, receiver),
            ):
                via = f"10.{2 + k // 256}.{k % 256}.{gateway}"
                line = f"ip -n ack-{node} route add {_address(target)} via {via} dev {end}"
                if node == source:
                    line += f" src {_address(source)}" + _metrics(flow.host)
                if line not in said:
                    said.add(line)
                    yield line


def _metrics(host: Mapping[str, Any]) -> str:
    first = f" initcwnd {host['initcwnd']}" if host["initcwnd"] else ""
    return first + (f" rto_min lock {host['rto_min_ms']}ms" if host["rto_min_ms"] else "")
