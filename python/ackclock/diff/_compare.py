"""Runs one scenario on both backends, or in two kernels, and finds the first divergence and each quantity's
agreement.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ackclock import linux
from ackclock._results.result import Run
from ackclock._results.run import run
from ackclock.diff._flows import STREAMS, Flow, clients, numbers
from ackclock.errors import ScenarioError, quote
from ackclock.linux import NetworkKind
from ackclock.scenario import Scenario
from ackclock.scenario._base import schema

if TYPE_CHECKING:
    import polars as pl

SAMPLE_INTERVAL = "10 ms"
"""Sampling interval if the scenario sets none."""
HALF_A_NANOSECOND = 0.5e-9
A_MICROSECOND = 1e-6
BACKENDS = ("simulator", "kernel")
CLIENTS = {"transactions": "transactions", "fetch": "fetches", "population": "fetches", "conversation": "conversations"}
"""Workload with clients -> table with its requests."""


Events: TypeAlias = list[Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Divergence:
    """First differing event.

    Parameters
    ----------
    t_s
        Time of the kernel's event, or of the simulator's if the kernel has none.
    ack_no
        Number of ACKs that the kernel's sender had received by then, including this one.
    text
        Description of the difference.
    """

    t_s: float
    ack_no: int
    text: str

    def __str__(self) -> str:
        return f"ACK {self.ack_no}, t = {self.t_s:.4f} s: {self.text}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """One quantity on both backends.

    Parameters
    ----------
    quantity
        Name with unit.
    simulator, kernel
        Value in each, or in the first and second kernel; None if there is none.
    of_first
        Whether two kernels are compared: then differences are relative to the first.
    """

    quantity: str
    simulator: float | None
    kernel: float | None
    of_first: bool = False

    @property
    def difference(self) -> float | None:
        """Relative difference between the simulator's value and the kernel's; for two kernels, between the second's
        and the first's.
        """
        if self.of_first:
            return self.kernel / self.simulator - 1 if self.simulator and self.kernel is not None else None
        if self.simulator is None or not self.kernel:
            return None
        return self.simulator / self.kernel - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Comparison of both backends, or of two kernels, on one scenario.

    Parameters
    ----------
    simulator, kernel
        The runs; of two kernels the first and the second.
    names
        Names of the runs.
    divergence
        First divergence of flow 0; None if all its events are identical.
    events
        Number of identical events of flow 0 before the first divergence.
    recovered
        Whether events are identical up to the end of the first recovery (or of the run, if there is none).
    agreement
        Quantities of flow 0. Means and quantiles over time are of the instants at which both runs sampled it.
    flows
        All flows: their events, and their rows in the tables.
    """

    simulator: Run
    kernel: Run
    divergence: Divergence | None
    events: int
    recovered: bool
    agreement: tuple[Agreement, ...]
    flows: tuple[Flow, ...]
    names: tuple[str, str] = BACKENDS

    @property
    def identical(self) -> bool:
        """Whether every event of every flow and every value in the tables is identical."""
        return all(flow.identical for flow in self.flows)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary."""
        first, second = ("simulator", "kernel") if self.names == BACKENDS else ("first", "second")
        return {
            "kernel": self.kernel.provenance["kernel"]["release"],
            **({} if self.names == BACKENDS else {"first": self.names[0], "second": self.names[1]}),
            "identical": self.identical,
            "flows": [flow.to_json() for flow in self.flows],
            "equal_events": self.events,
            "equal_to_the_end_of_recovery": self.recovered,
            "divergence": None
            if self.divergence is None
            else {"t_s": self.divergence.t_s, "ack": self.divergence.ack_no, "what": self.divergence.text},
            "agreement": [
                {
                    "quantity": a.quantity,
                    first: a.simulator,
                    second: a.kernel,
                    "difference": a.difference,
                }
                for a in self.agreement
            ],
        }


def both(
    scenario: Scenario,
    *,
    seed: int = 1,
    network: NetworkKind = "relay",
    cpu: int | None = None,
    kernels: tuple[str, str] | None = None,
) -> tuple[Run, Run]:
    """Run a scenario in the simulator and in the kernel (or in two kernels), with receivers behind the same kind of
    device.

    Parameters
    ----------
    scenario, seed, network, cpu, kernels
        See `compare`.
    """
    if kernels is not None:
        first, second = (
            linux.run(_behind(None, scenario), seed=seed, network=network, cpu=cpu, kernel=name) for name in kernels
        )
        return first, second
    kernel = linux.run(_behind(None, scenario), seed=seed, network=network, cpu=cpu)
    device = kernel.provenance["packet_memory"]
    return run(_behind(device, scenario), seed=seed), kernel


def compare(
    scenario: Scenario,
    *,
    seed: int = 1,
    network: NetworkKind = "relay",
    cpu: int | None = None,
    kernels: tuple[str, str] | None = None,
) -> Comparison:
    """Run a scenario on both backends, or in two kernels, and compare every flow.

    Parameters
    ----------
    scenario
        Scenario to run. Streams (bulk, transfer, throttled) are compared ACK by ACK, clients (fetch, transactions,
        population, conversation) by the times of their requests.
    seed
        Seed of both.
    network
        As for `ackclock.linux.run`; with anything but the relay, losses differ from those of the simulator.
    cpu
        CPU of the kernel; None: any.
    kernels
        Names of two kernels, to compare them; None: the simulator and the kernel that runs use.

    Raises
    ------
    ScenarioError
        If the kernel cannot run the scenario, or no flow is a stream or has clients.
    """
    scenario = sampled(scenario.set("record.trace", "all"))
    names = kernels or BACKENDS
    simulator, kernel = both(scenario, seed=seed, network=network, cpu=cpu, kernels=kernels)
    groups = [scenario.flows[group].workload.kind for group in simulator.flows["group"]]
    if not any(kind in STREAMS or kind in CLIENTS for kind in groups):
        raise ScenarioError(
            key="flows.0.workload.kind",
            found=quote(groups[0]),
            allowed=f"{', '.join((*STREAMS, *CLIENTS))}, to compare what is sent",
        )
    end_s = json.loads(scenario.to_engine_json())["duration_ns"] * 1e-9 - HALF_A_NANOSECOND
    flows, first, ends = [], None, 0
    for flow, kind in enumerate(groups):
        divergence, events, text = None, 0, ""
        if kind in STREAMS:
            segment = _segment(scenario, flow, simulator, kernel)
            ours, theirs = (_events(run.acks, flow, segment, end_s) for run in (simulator, kernel))
            streams: list[tuple[Events, Events]] = [(ours, theirs)]
            if _holds(scenario, simulator.flows["group"][flow]):
                streams = [(_only(ours, acks=True), _only(theirs, acks=True)), _left(ours, theirs)]
            over_s = _over(simulator, kernel, flow)
            walks = [_walk(*stream, names, over_s=over_s) for stream in streams]
            events = sum(equal for equal, _ in walks)
            divergence = min((d for _, d in walks if d is not None), key=lambda d: d.t_s, default=None)
            text = "" if divergence is None else str(divergence)
            ends = _end_of_recovery(theirs) if flow == 0 else ends
        elif kind in CLIENTS:
            events, text = clients(simulator, kernel, flow, CLIENTS[kind], names[1])
        first = divergence if flow == 0 else first
        flows.append(numbers(simulator, kernel, flow, events, text))
    return Comparison(
        simulator=simulator,
        kernel=kernel,
        divergence=first,
        events=flows[0].events,
        recovered=first is None or flows[0].events > ends,
        agreement=_agreement(simulator, kernel, of_first=kernels is not None),
        flows=tuple(flows),
        names=names,
    )


def sampled(scenario: Scenario) -> Scenario:
    """Return the scenario with samples recorded."""
    if scenario.to_dict().get("record", {}).get("sample_interval", "0 s") == "0 s":
        return scenario.set("record.sample_interval", SAMPLE_INTERVAL)
    return scenario


def _behind(device: str | None, scenario: Scenario) -> Scenario:
    """Return the scenario with TCP hosts behind this kind of device (`stack.packet_memory`); None leaves it
    unchanged.
    """
    groups: list[dict[str, Any]] = []
    for flow, given in zip(scenario.flows, scenario.to_dict()["flows"], strict=True):
        stack = {key: value for key, value in given.get("stack", {}).items() if key != "packet_memory"}
        own = {name for kind in ("pcc", "quinn") for name in schema()[kind]["controllers"]}
        if device is not None and flow.congestion_control not in own and not flow.is_plain:
            stack["packet_memory"] = device
        groups.append({**given, "stack": stack} if stack else {k: v for k, v in given.items() if k != "stack"})
    return Scenario.from_dict({**scenario.to_dict(), "flows": groups})


def _segment(scenario: Scenario, number: int, *runs: Run) -> int | None:
    """Return the segment payload for a flow with packets that may contain several segments: one side's table has a
    row per segment, the other's a row per packet.
    """
    import polars as pl

    told = json.loads(scenario.to_engine_json())
    flow = told["flows"][runs[0].flows["group"][number]]
    cuts = any(host["name"] == flow.get("host") and host.get("cuts_packets") for host in told.get("hosts", []))
    if not cuts and not flow.get("stack", {}).get("tso"):
        return None
    end = pl.col("seq") + pl.col("len")
    longest: list[Any] = []
    for one in runs:
        sent = one.acks.filter((pl.col("flow") == number) & (pl.col("event") == "send"))
        # the last segment may include a FIN, so it counts only if it is the only one
        longest.append(sent.filter(end < end.max())["len"].max() or sent["len"].max())
    return min((int(length) for length in longest if length is not None), default=None)


def _holds(scenario: Scenario, group: int) -> bool:
    """Whether the sender's own device queues packets. The kernel records when a packet leaves the device, the simulator
    when it leaves TCP, so transmissions and ACKs are each in order, but not relative to each other.
    """
    told = json.loads(scenario.to_engine_json())
    sender = told["flows"][group].get("host")
    return any(
        h["name"] == sender and (h.get("line_rate") or h.get("queue", {}).get("kind") == "fq")
        for h in told.get("hosts", [])
    )


def _only(events: Events, *, acks: bool) -> Events:
    """Return only the ACKs among the events, or only the transmissions."""
    return [event for event in events if (event["event"] == "ack") == acks]


def _left(ours: Events, theirs: Events) -> tuple[Events, Events]:
    """Return both sides' transmissions, without those of ours that are still queued in the other side's device at
    the end.
    """
    left = _only(theirs, acks=False)
    return _only(ours, acks=False)[: len(left)], left


def _events(acks: pl.DataFrame, flow: int, segment: int | None, end_s: float) -> Events:
    """Return ACKs and transmissions of a flow before the end of the run, in order.

    An overtaken ACK without SACK blocks is useless to the sender and occurs only in the kernel's table; one with SACK
    blocks has SND.UNA as its ACK number in the simulator's table. With no data outstanding, an ACK carries only
    the window, and also occurs only in the kernel's table. A FIN has the sequence number after the data.
    """
    import polars as pl

    rows = acks.filter((pl.col("flow") == flow) & pl.col("event").is_in(["ack", "send", "rtx", "tlp"]))
    rows = rows.filter(pl.col("t_s") < end_s)
    out: Events = []
    sent: dict[int, int] = {}
    acknowledged = left = 0
    columns = ("t_s", "event", "ack_no", "seq", "len", "rexmit", "sack_blocks", "cwnd_before", "ca_state")
    for row in rows.select(columns).iter_rows(named=True):
        if row["event"] == "ack":
            overtaken = row["seq"] < acknowledged
            idle = row["seq"] == acknowledged >= left
            if (overtaken or idle) and not row["sack_blocks"]:
                continue
            acknowledged = max(acknowledged, row["seq"])
            out.append({**row, "seq": acknowledged, "overtaken": overtaken})
            continue
        left = max(left, row["seq"] + row["len"])
        length = row["len"]
        for at in range(0, max(length, 1), segment or max(length, 1)):
            seq, again = row["seq"] + at, row["rexmit"]
            if segment is not None:  # retransmitted packets are split differently, so segments are counted
                again = sent[seq] = sent.get(seq, -1) + 1
            out.append({**row, "seq": seq, "rexmit": again, "event": "rtx" if again else "send"})
    return out


def _over(one: Run, other: Run, flow: int) -> float:
    """Return the time at which the flow was complete in both runs; infinite if it was not."""
    ends = [run.flows.row(flow, named=True) for run in (one, other)]
    if any(end["completion_s"] is None for end in ends):
        return math.inf
    return max(float(end["start_s"] + end["completion_s"]) for end in ends) + A_MICROSECOND


def _walk(
    ours: Events, theirs: Events, names: tuple[str, str], *, over_s: float = math.inf
) -> tuple[int, Divergence | None]:
    """Return the number of identical events at the beginning, and the first difference. An overtaken ACK is an effect
    of the network, and may occur in one table only: Linux records it, then drops it for its old timestamp unless it
    acknowledges the same data as the previous ACK (`tcp_disordered_ack_check`). Its effect on a sender that accepts it
    appears in later events. ACKs that arrive after `over_s`, the completion of the flow, may also occur in one table
    only.
    """
    acks = i = j = equal = 0
    while i < len(ours) and j < len(theirs):
        a, b = ours[i], theirs[j]
        if b["event"] == "ack":
            acks = b["ack_no"]
        apart = a["event"] != b["event"] or abs(a["t_s"] - b["t_s"]) > A_MICROSECOND
        if apart and (b.get("overtaken") or a.get("overtaken")):
            i, j = (i, j + 1) if b.get("overtaken") else (i + 1, j)
            continue
        text = _difference(a, b, names[1])
        if text is not None:
            return equal, Divergence(t_s=b["t_s"], ack_no=acks, text=text)
        i, j, equal = i + 1, j + 1, equal + 1
    more = [*((names[0], row) for row in ours[i:]), *((names[1], row) for row in theirs[j:])]
    for who, row in more:
        late = row["event"] == "ack" and row["t_s"] > over_s
        if not late and not row.get("overtaken"):
            said = f"{'the ' if names == BACKENDS else ''}{who} goes on: {_said(row)}"
            return equal, Divergence(t_s=row["t_s"], ack_no=acks, text=said)
    return equal, None


def _difference(a: Mapping[str, Any], b: Mapping[str, Any], other: str) -> str | None:
    same = ("event", "seq", "cwnd_before") if b["event"] == "ack" else ("event", "seq", "rexmit")
    if all(a[key] == b[key] for key in same):
        return None
    if a["event"] == b["event"] == "ack" and a["seq"] == b["seq"]:
        return f"cwnd {a['cwnd_before']}, {other} {b['cwnd_before']}; state {a['ca_state']}, {other} {b['ca_state']}"
    return f"{_said(a)}; {other} {_said(b)}; state {a['ca_state']}, {other} {b['ca_state']}"


def _said(event: Mapping[str, Any]) -> str:
    if event["event"] == "ack":
        return f"receives an ACK of {event['seq']} with cwnd {event['cwnd_before']}"
    again = f", transmission {event['rexmit'] + 1}" if event["rexmit"] else ""
    return f"sends {event['seq']}{again}"


def _end_of_recovery(events: Events) -> int:
    """Return the index of the ACK that ends the first recovery, or of the last event."""
    inside = False
    for i, event in enumerate(events):
        if event["ca_state"] in ("Recovery", "Loss"):
            inside = True
        elif inside and event["ca_state"] == "Open":
            return i
    return len(events) - 1


def common_samples(first: Run, second: Run) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the samples of both runs at the instants at which both sampled a flow.

    The simulator samples a flow until its FIN is acknowledged, the kernel while its socket is open, so means over all
    rows of a transfer differ between two runs that are equal in every event.
    """
    import polars as pl

    sides = [run.samples.with_columns(at_ns=(pl.col("t_s") * 1e9).round().cast(pl.Int64)) for run in (first, second)]
    at = ["flow", "at_ns"]
    return sides[0].join(sides[1], on=at, how="semi"), sides[1].join(sides[0], on=at, how="semi")


def _agreement(simulator: Run, kernel: Run, *, of_first: bool) -> tuple[Agreement, ...]:
    import polars as pl

    def of(result: Run, sampled: pl.DataFrame) -> dict[str, float | None]:
        flow = result.flows.row(0, named=True)
        samples = sampled.filter(pl.col("flow") == 0)
        cwnd = samples["cwnd"]
        out: dict[str, float | None] = {
            "goodput, Mbit/s": flow["goodput_bps"] * 1e-6,
            "completion, s": flow["completion_s"],
            "segments sent": flow["sent_packets"],
            "retransmissions": flow["retransmissions"],
            "timeouts": flow["rtos"],
            "recoveries": flow["recoveries"],
        }
        if samples.height:
            out["mean srtt, ms"] = _number(samples["srtt_s"].mean(), 1e3)
            out["mean cwnd, segments"] = _number(cwnd.mean())
            for share in (0.05, 0.5, 0.95):
                out[f"cwnd, {share:.0%} point"] = cwnd.quantile(share, "linear")
        return out

    a, b = map(of, (simulator, kernel), common_samples(simulator, kernel))
    return tuple(
        Agreement(quantity=name, simulator=a[name], kernel=b.get(name), of_first=of_first)
        for name in a
        if a[name] is not None
    )


def _number(value: Any, factor: float = 1.0) -> float | None:
    return None if value is None else float(value) * factor
