"""One scenario on both backends: the first divergence, and agreement by quantity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ackclock import linux
from ackclock._results import Run
from ackclock._run import run
from ackclock.errors import ScenarioError, quote
from ackclock.linux import NetworkKind
from ackclock.scenario import Scenario
from ackclock.scenario._base import byte_count
from ackclock.scenario._described import schema

if TYPE_CHECKING:
    import polars as pl

SAMPLE_INTERVAL = "10 ms"
"""Between samples, where the scenario asks for none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Divergence:
    """The first event that differs.

    Parameters
    ----------
    t_s
        Time of the kernel's event, or of the simulator's if the kernel has none.
    ack_no
        ACKs that the kernel's sender had received by then, this one included.
    text
        What differs, in words.
    """

    t_s: float
    ack_no: int
    text: str

    def __str__(self) -> str:
        return f"ACK {self.ack_no}, t = {self.t_s:.4f} s: {self.text}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """One quantity of both backends.

    Parameters
    ----------
    quantity
        Its name, with the unit.
    simulator, kernel
        Its value there; None if there is none.
    """

    quantity: str
    simulator: float | None
    kernel: float | None

    @property
    def difference(self) -> float | None:
        """Relative to the kernel's."""
        if self.simulator is None or not self.kernel:
            return None
        return self.simulator / self.kernel - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Both backends on one scenario.

    Parameters
    ----------
    simulator, kernel
        The runs.
    divergence
        The first one; None: all events are equal.
    events
        Events of the kernel that have an equal in the simulator before the first that has not.
    recovered
        Whether events are equal up to the end of the first recovery (of the run, if there is none).
    agreement
        By quantity, flow 0.
    """

    simulator: Run
    kernel: Run
    divergence: Divergence | None
    events: int
    recovered: bool
    agreement: tuple[Agreement, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "kernel": self.kernel.provenance["kernel"]["release"],
            "equal_events": self.events,
            "equal_to_the_end_of_recovery": self.recovered,
            "divergence": None
            if self.divergence is None
            else {"t_s": self.divergence.t_s, "ack": self.divergence.ack_no, "what": self.divergence.text},
            "agreement": [
                {
                    "quantity": a.quantity,
                    "simulator": a.simulator,
                    "kernel": a.kernel,
                    "difference": a.difference,
                }
                for a in self.agreement
            ],
        }


def compare(scenario: Scenario, *, seed: int = 1, network: NetworkKind = "relay") -> Comparison:
    """Run a scenario on both backends and compare flow 0.

    Parameters
    ----------
    scenario
        What to run; the flow must be a stream (bulk, transfer, throttled).
    seed
        Seed of both.
    network
        As for `ackclock.linux.run`; anything but the relay draws other losses than the simulator.

    Raises
    ------
    ScenarioError
        If the kernel cannot run it, or flow 0 is no stream.
    """
    workload = scenario.flows[0].workload.kind
    if workload not in ("bulk", "transfer", "throttled"):
        raise ScenarioError(
            key="flows.0.workload.kind",
            found=quote(workload),
            allowed="bulk, transfer, throttled, to compare ACK by ACK",
        )
    scenario = scenario.set("record.trace", "flow")
    if scenario.to_dict()["record"].get("sample_interval", "0 s") == "0 s":
        scenario = scenario.set("record.sample_interval", SAMPLE_INTERVAL)
    kernel = linux.run(_behind(None, scenario), seed=seed, network=network)
    device = linux.PACKET_MEMORY[kernel.provenance["network"]]
    simulator = run(_behind(device, scenario), seed=seed)
    sent = getattr(scenario.flows[0].workload, "bytes", None)
    end = None if sent is None else 1 + byte_count(sent)
    ours, theirs = _events(simulator.acks, end), _events(kernel.acks, end)
    equal, divergence = _walk(ours, theirs)
    return Comparison(
        simulator=simulator,
        kernel=kernel,
        divergence=divergence,
        events=equal,
        recovered=divergence is None or equal > _end_of_recovery(theirs),
        agreement=_agreement(simulator, kernel),
    )


def _behind(device: str | None, scenario: Scenario) -> Scenario:
    """The scenario with hosts of TCP behind such a device (`stack.packet_memory`); None: whatever there is."""
    groups: list[dict[str, Any]] = []
    for flow, given in zip(scenario.flows, scenario.to_dict()["flows"], strict=True):
        stack = {key: value for key, value in given.get("stack", {}).items() if key != "packet_memory"}
        pcc = flow.congestion_control in schema()["pcc"]["controllers"]
        if device is not None and not pcc and not flow.is_plain:
            stack["packet_memory"] = device
        groups.append({**given, "stack": stack} if stack else {k: v for k, v in given.items() if k != "stack"})
    return Scenario.from_dict({**scenario.to_dict(), "flows": groups})


def _events(acks: pl.DataFrame, end: int | None) -> list[Mapping[str, Any]]:
    """ACKs and transmissions of data, in order. `end` is the number behind a transfer's last byte.

    The simulator's FIN rides on the last data and is acknowledged with it; the kernel's transfers are closed by the receiver.
    """
    import polars as pl

    rows = acks.filter((pl.col("flow") == 0) & pl.col("event").is_in(["ack", "send", "rtx", "tlp"]))
    out: list[Mapping[str, Any]] = []
    for row in rows.select("t_s", "event", "ack_no", "seq", "rexmit", "cwnd_before", "ca_state").iter_rows(named=True):
        if row["event"] == "ack":
            out.append({**row, "seq": row["seq"] if end is None else min(row["seq"], end)})
        elif end is None or row["seq"] < end:
            out.append({**row, "event": "rtx" if row["rexmit"] else "send"})
    # An ACK of nothing new at the very end answers a FIN.
    while len(out) > 1 and out[-1]["event"] == "ack" and out[-1]["seq"] == end == out[-2]["seq"]:
        out.pop()
    return out


def _walk(ours: list[Mapping[str, Any]], theirs: list[Mapping[str, Any]]) -> tuple[int, Divergence | None]:
    """Number of equal events at the beginning, and the first that is not."""
    acks = 0
    for i, (a, b) in enumerate(zip(ours, theirs, strict=False)):
        if b["event"] == "ack":
            acks = b["ack_no"]
        text = _difference(a, b)
        if text is not None:
            return i, Divergence(t_s=b["t_s"], ack_no=acks, text=text)
    shorter = min(len(ours), len(theirs))
    if len(ours) == len(theirs):
        return shorter, None
    who, more = ("simulator", ours) if len(ours) > len(theirs) else ("kernel", theirs)
    rest = more[shorter]
    return shorter, Divergence(t_s=rest["t_s"], ack_no=acks, text=f"the {who} goes on: {_said(rest)}")


def _difference(a: Mapping[str, Any], b: Mapping[str, Any]) -> str | None:
    same = ("event", "seq", "cwnd_before") if b["event"] == "ack" else ("event", "seq", "rexmit")
    if all(a[key] == b[key] for key in same):
        return None
    if a["event"] == b["event"] == "ack" and a["seq"] == b["seq"]:
        return f"cwnd {a['cwnd_before']}, kernel {b['cwnd_before']}; state {a['ca_state']}, kernel {b['ca_state']}"
    return f"{_said(a)}; kernel {_said(b)}; state {a['ca_state']}, kernel {b['ca_state']}"


def _said(event: Mapping[str, Any]) -> str:
    if event["event"] == "ack":
        return f"receives an ACK of {event['seq']} with cwnd {event['cwnd_before']}"
    again = f", transmission {event['rexmit'] + 1}" if event["rexmit"] else ""
    return f"sends {event['seq']}{again}"


def _end_of_recovery(events: list[Mapping[str, Any]]) -> int:
    """Position of the ACK that ends the first recovery, or the last event."""
    inside = False
    for i, event in enumerate(events):
        if event["ca_state"] in ("Recovery", "Loss"):
            inside = True
        elif inside and event["ca_state"] == "Open":
            return i
    return len(events) - 1


def _agreement(simulator: Run, kernel: Run) -> tuple[Agreement, ...]:
    import polars as pl

    def of(result: Run) -> dict[str, float | None]:
        flow = result.flows.row(0, named=True)
        samples = result.samples.filter(pl.col("flow") == 0)
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

    a, b = of(simulator), of(kernel)
    return tuple(Agreement(quantity=name, simulator=a[name], kernel=b.get(name)) for name in a if a[name] is not None)


def _number(value: Any, factor: float = 1.0) -> float | None:
    return None if value is None else float(value) * factor
