"""Hosts that are not perfect: a processor taken away or too small, a card that interrupts now and then, clocks that tick."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ackclock import units
from ackclock.errors import ScenarioError, quote
from ackclock.scenario._base import (
    Count,
    Duration,
    Flag,
    Number,
    PositiveDuration,
    Table,
    nanoseconds,
    tagged,
    without_none,
)
from ackclock.scenario.distribution import Durations, drawn

SLICE_MS = 30
"""Slice of Xen's credit scheduler; it looks at its queue three times in each."""


class Times(Table):
    """On-times and off-times drawn in turn; the first on-time is cut at a random point."""

    kind: Literal["times"]
    on: Durations
    """How long the processor is there."""
    off: Durations
    """How long it is not."""

    def engine(self) -> dict[str, Any]:
        """As the engine reads it: seconds."""
        return {"on_s": drawn(self.on, units.DURATION), "off_s": drawn(self.off, units.DURATION)}


class Xen(Table):
    """A virtual machine under Xen's credit scheduler: on for one, two or three ticks of 10 ms, off while each of its
    competitors has a slice of 30 ms.
    """

    kind: Literal["xen"]
    competitors: Annotated[int, Number(1, 1000)] = 1
    """Other virtual machines that are always busy."""

    def engine(self) -> dict[str, Any]:
        """As the engine reads it: seconds."""
        ticks = [SLICE_MS / 3000 * k for k in (1, 2, 3)]
        return {
            "on_s": {"kind": "choice", "values": ticks},
            "off_s": {"kind": "constant", "value": SLICE_MS / 1000 * self.competitors},
        }


Gate = Annotated[Times | Xen, Field(discriminator="kind"), tagged(Times, Xen)]


def _constant(ms: float) -> dict[str, Any]:
    return {"kind": "constant", "value": ms / 1000}


PRESETS: dict[str, dict[str, Any]] = {
    "clean": {},
    # half the processor in turns of a slice: two busy machines on one processor
    "xen-shared": {"gate": {"on_s": _constant(SLICE_MS), "off_s": _constant(SLICE_MS)}},
    # now and then something else runs: 5 ms away after 100 ms on average
    "light": {"gate": {"on_s": {"kind": "exponential", "mean": 0.1}, "off_s": _constant(5)}},
    # a tenth of a processor, as the smallest rented machines have on average
    "micro": {"gate": {"on_s": _constant(SLICE_MS), "off_s": _constant(9 * SLICE_MS)}},
    # one core for all: senders that wait busily share it with whoever else names this host
    "single-core": {"cores": 1, "busy_wait": True},
}
"""What each preset stands for."""


class Host(Table):
    """A host that flow groups name; a host that is not described is perfect.

    Flows, senders and receivers alike, that name one host freeze together and share its cores and its card.
    """

    name: str
    """Name that flow groups use."""
    shared: Flag = True
    """One machine for all that name it; otherwise one for each flow."""
    preset: Literal["clean", "xen-shared", "light", "micro", "single-core"] | None = None
    """Gate and cores at once; keys given beside it take precedence."""
    gate: Gate | None = None
    """When the processor is taken away: meanwhile nothing is received or sent, and no timer fires; absent: never."""
    receives_on: Flag = False
    """The gate stops sending and timers only, as when the thread that sends is held up and the one that receives is not."""
    emulates_links: Flag = False
    """The network is emulated in this machine: its links freeze with it, and what is overdue leaves them at once."""
    cores: Annotated[int, Number(1, 1024)] | None = None
    """Cores; processes beyond that number take turns; absent: as many as needed."""
    slice: PositiveDuration = "3 ms"
    """Longest time that a process runs while others wait for its core."""
    busy_wait: Flag | None = None
    """A sender of datagrams never gives its core away while it is open; absent: false, or as the preset says."""
    send_cost: Duration = "0 s"
    """Work of a process for each packet it sends."""
    receive_cost: Duration = "0 s"
    """Work of a process for each packet it receives."""
    receive_interval: PositiveDuration | None = None
    """Least time between two interrupts of the card; packets wait for the next one; absent: each interrupts."""
    interrupt_rate: Annotated[int, Number(1, 10_000_000)] | None = None
    """The same as interrupts per second (ITR)."""
    transmit_interval: PositiveDuration | None = None
    """Least time between two hand-overs to the line; packets leave back to back; absent: each at once."""
    batch: Count = 1
    """Packets that leave together (segmentation offload; reports in batches)."""
    batch_flush: PositiveDuration = "1 ms"
    """How long the oldest waits for that number."""
    tick: PositiveDuration | None = None
    """Period of the clock that wakes paced senders; absent: exact."""
    catch_up: Literal["none", "burst", "full"] = "none"
    """What of a paced sender's lateness beyond a tick is made up by packets back to back."""
    burst: Count = 10
    """With catch_up = "burst": at most this many packets."""

    @model_validator(mode="after")
    def _consistent(self) -> Host:
        if self.receive_interval is not None and self.interrupt_rate is not None:
            raise ScenarioError(
                key="interrupt_rate", found=f"{self.interrupt_rate} beside receive_interval", allowed="one of the two"
            )
        if self.emulates_links and not self.shared:
            raise ScenarioError(key="shared", found="false with emulates_links = true", allowed="true")
        if self.emulates_links and "gate" not in self.engine():
            raise ScenarioError(
                key="emulates_links", found="true without a gate", allowed="a gate, or a preset that has one"
            )
        if "burst" in self.model_fields_set and self.catch_up != "burst":
            raise ScenarioError(
                key="burst", found=f"{self.burst} with catch_up = {quote(self.catch_up)}", allowed='catch_up = "burst"'
            )
        return self

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        preset = PRESETS[self.preset or "clean"]
        gate = preset.get("gate") if self.gate is None else self.gate.engine()
        cores = preset.get("cores") if self.cores is None else self.cores
        busy_wait = preset.get("busy_wait", False) if self.busy_wait is None else self.busy_wait
        costs = nanoseconds(self.send_cost), nanoseconds(self.receive_cost)
        cpu = None
        if cores is not None or any(costs):
            cpu = {
                "cores": cores or 0,
                "slice_ns": nanoseconds(self.slice),
                "send_ns": costs[0],
                "receive_ns": costs[1],
                "busy_wait": busy_wait,
            }
        receive = None if self.receive_interval is None else nanoseconds(self.receive_interval)
        if self.interrupt_rate is not None:
            receive = max(1, round(10**9 / self.interrupt_rate))
        transmit = 0 if self.transmit_interval is None else nanoseconds(self.transmit_interval)
        return without_none(
            name=self.name,
            shared=self.shared,
            gate=gate,
            receives_on=self.receives_on,
            emulates_links=self.emulates_links,
            cpu=cpu,
            receive=None if receive is None else {"interval_ns": receive},
            transmit={
                "interval_ns": transmit,
                "packets": self.batch,
                "flush_ns": nanoseconds(self.batch_flush) if self.batch > 1 else 0,
            },
            tick_ns=0 if self.tick is None else nanoseconds(self.tick),
            catch_up={"none": 0, "burst": self.burst}.get(self.catch_up),
        )
