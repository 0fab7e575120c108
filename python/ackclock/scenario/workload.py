"""Workloads: what the application of a flow does."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ackclock import units
from ackclock.scenario._base import (
    Count,
    Duration,
    Flag,
    Packets,
    Positive,
    PositiveDuration,
    Rate,
    Size,
    SizeOrZero,
    Table,
    bits_per_second,
    byte_count,
    nanoseconds,
    tagged,
    without_none,
)
from ackclock.scenario.datagrams import ConstantRate, OnOff, Voice
from ackclock.scenario.distribution import Distribution, drawn
from ackclock.units import Dimension


class Bulk(Table):
    """As much as the connection takes, until the flow's stop."""

    kind: Literal["bulk"]

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        return {"kind": self.kind}


class Transfer(Table):
    """A number of bytes, then close."""

    kind: Literal["transfer"]
    bytes: Size
    """Bytes."""

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        return {"kind": self.kind, "bytes": byte_count(self.bytes)}


class Fetch(Table):
    """A client at the receiving end: connect, request, response, close; again and again."""

    kind: Literal["fetch"]
    bytes: Size
    """Response."""
    request: Size = "100 bytes"
    """Request."""
    count: Count = 1
    """Fetches, one after another."""
    pause: Duration = "0 s"
    """From the last byte of one to the start of the next."""
    timeout: PositiveDuration | None = None
    """Give up a fetch after this long; absent: never."""
    common_random_numbers: Flag = False
    """Each fetch meets losses that depend on the seed and on its number only, so that two arms of a comparison meet the
    same losses fetch by fetch."""

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        return without_none(
            kind=self.kind,
            bytes=byte_count(self.bytes),
            request_bytes=byte_count(self.request),
            count=self.count,
            pause_ns=nanoseconds(self.pause),
            timeout_ns=None if self.timeout is None else nanoseconds(self.timeout),
            common_random_numbers=self.common_random_numbers,
        )


class Throttled(Table):
    """Blocks at a rate, as video servers write."""

    kind: Literal["throttled"]
    rate: Rate
    """Rate of the application."""
    chunk: Size
    """One write."""
    initial: SizeOrZero = "0 bytes"
    """Written at once at the start."""
    bytes: Size | None = None
    """In all; absent: until the flow's stop."""

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        return without_none(
            kind=self.kind,
            rate_bps=bits_per_second(self.rate),
            chunk_bytes=byte_count(self.chunk),
            initial_bytes=byte_count(self.initial),
            bytes=None if self.bytes is None else byte_count(self.bytes),
        )


class Population(Table):
    """Clients, each alone on a path of its own whose properties are drawn once; one fetch at a time."""

    kind: Literal["population"]
    clients: Count
    """How many."""
    requests: Count = 1
    """Fetches of each, on one connection each."""
    rtt: Distribution
    """Round-trip propagation delay."""
    rate: Distribution
    """Bottleneck rate."""
    loss: Distribution
    """Loss probability, each direction."""
    bytes: Distribution
    """Response."""
    queue: Packets = "100 packets"
    """Bottleneck buffer of each client."""
    throttle: Positive | None = None
    """The server writes at this many times the client's rate after an initial burst; absent: as fast as it can."""

    @model_validator(mode="after")
    def _dimensions(self) -> Population:
        for key, dimension in _DRAWN.items():
            drawn(getattr(self, key), dimension, key)
        return self

    def engine(self) -> dict[str, Any]:
        """As the engine reads it: seconds, bit/s, probability, bytes."""
        return without_none(
            kind=self.kind,
            clients=self.clients,
            requests=self.requests,
            rtt_s=drawn(self.rtt, units.DURATION, "rtt"),
            rate_bps=drawn(self.rate, units.RATE, "rate"),
            loss=drawn(self.loss, None, "loss"),
            bytes=drawn(self.bytes, units.SIZE, "bytes"),
            queue_packets=units.whole(self.queue, units.PACKETS),
            throttle=self.throttle,
        )


Workload = Annotated[
    Bulk | Transfer | Fetch | Throttled | Population | ConstantRate | OnOff | Voice,
    Field(discriminator="kind"),
    tagged(Bulk, Transfer, Fetch, Throttled, Population, ConstantRate, OnOff, Voice),
]

_DRAWN: dict[str, Dimension | None] = {"rtt": units.DURATION, "rate": units.RATE, "loss": None, "bytes": units.SIZE}
