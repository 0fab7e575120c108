"""Workloads: what the application of a flow does."""

from __future__ import annotations

import itertools
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ackclock import units
from ackclock.errors import ScenarioError, quote
from ackclock.scenario._base import (
    Count,
    Duration,
    Flag,
    Number,
    Packets,
    Positive,
    PositiveDuration,
    Probability,
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
from ackclock.scenario.video import Video
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


class Poisson(Table):
    """Clients come at random, independently: exponential intervals. `rate` or `load` says how often."""

    kind: Literal["poisson"]
    rate: Annotated[float, Number(0, 10_000_000, whole=False, above=True)] | None = None
    """Clients per second, over all flows of the group."""
    load: Annotated[float, Number(0, 100, whole=False, above=True)] | None = None
    """Offered load: the responses' packets, each sent once, as a share of the bottleneck's rate."""
    load_counts: Literal["data", "all"] = "data"
    """What `load` counts: data packets, or also SYN-ACK, FIN and two ACKs of each connection."""

    @model_validator(mode="after")
    def _one_of_two(self) -> Poisson:
        if (self.rate is None) == (self.load is None):
            found = "neither rate nor load" if self.rate is None else "both rate and load"
            raise ScenarioError(found=found, allowed="one of them")
        return self

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        return without_none(
            kind=self.kind, rate_per_s=self.rate, load=self.load, count_all_packets=self.load_counts == "all"
        )


class Regular(Table):
    """Clients come at equal intervals, the first at the flow's start."""

    kind: Literal["periodic"]
    interval: PositiveDuration
    """From one to the next, for each flow."""

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        return {"kind": self.kind, "interval_ns": nanoseconds(self.interval)}


class At(Table):
    """Clients come at given times."""

    kind: Literal["at"]
    times: Annotated[tuple[Duration, ...], Field(min_length=1)]
    """After the flow's start, in order."""

    @model_validator(mode="after")
    def _in_order(self) -> At:
        times = [nanoseconds(time) for time in self.times]
        for i, (earlier, later) in enumerate(itertools.pairwise(times), start=1):
            if later < earlier:
                raise ScenarioError(
                    key=f"times.{i}", found=quote(self.times[i]), allowed=f"{quote(self.times[i - 1])} or later"
                )
        return self

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        return {"kind": self.kind, "times_ns": [nanoseconds(time) for time in self.times]}


Arrivals = Annotated[Poisson | Regular | At, Field(discriminator="kind"), tagged(Poisson, Regular, At)]


class InitialWindow(Table):
    """One entry of a mix of initial windows."""

    segments: Annotated[int, Number(1, 65535)]
    """Initial window."""
    share: Probability
    """Probability."""


class Transactions(Table):
    """Clients at the receiving end come and go: connect, request, response, close, each on a connection of its own.

    The flows of the group are client-server pairs; arrivals, `count` and `max_open` are those of the whole group. What
    the k-th transaction of a flow draws depends on the seed alone: arms of a comparison see the same clients.
    """

    kind: Literal["transactions"]
    bytes: Size | Distribution
    """Response: a size, or a distribution of sizes."""
    request: Size = "200 bytes"
    """Request."""
    arrivals: Arrivals
    """When clients come."""
    batch: Count = 1
    """Connections that a client opens at once."""
    requests: Count = 1
    """Requests on each connection, one after another (keep-alive)."""
    think: Duration | Distribution = "0 s"
    """From the end of a response to the next request: a duration, or a distribution of durations."""
    objects: Count | None = None
    """A page: so many responses, which the client's connections share out, whoever is free taking the next; replaces
    `requests`."""
    together: Flag = False
    """Incast: a client asks on all of its connections at the same time, again when the last one has its response."""
    count: Annotated[int, Number(1, 10**9)] | None = None
    """Connections in all, which are as many transactions if each has one request; absent: until the flows stop."""
    max_open: Count | None = None
    """Most connections open at a time; a client who finds as many is turned away. Needed above a load of 1."""
    initial_window_mix: tuple[InitialWindow, ...] = ()
    """Initial windows that connections draw, with their probabilities; empty: the stack's."""
    mix_by: Literal["transaction", "batch"] = "transaction"
    """Whether each connection draws its initial window, or each client for all of its connections."""
    close: Literal["server", "client"] = "server"
    """Who closes first: the server when it has written the last response, or the client when it has read it."""

    @model_validator(mode="after")
    def _fits(self) -> Transactions:
        if not isinstance(self.bytes, str):
            drawn(self.bytes, units.SIZE, "bytes")
        if not isinstance(self.think, str):
            drawn(self.think, units.DURATION, "think")
        shares = [units.parse_share(entry.share) for entry in self.initial_window_mix]
        if shares and abs(sum(shares) - 1) > 1e-9:
            raise ScenarioError(
                key="initial_window_mix", found=f"shares that sum to {sum(shares):.6g}", allowed="shares that sum to 1"
            )
        if self.objects is not None and self.requests > 1:
            raise ScenarioError(key="objects", found="a value with requests", allowed="objects or requests")
        if self.objects is not None and self.together:
            raise ScenarioError(key="objects", found="a value with together", allowed="objects or together")
        return self

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""

        def compiled(value: str | Table, key: str) -> dict[str, Any]:
            dimension = units.SIZE if key == "bytes" else units.DURATION
            if isinstance(value, str):
                base, _ = units.parse(value, dimension, zero=key == "think")
                return {"kind": "constant", "value": float(base / (1 if key == "bytes" else 10**9))}
            return drawn(value, dimension, key)

        return without_none(
            kind=self.kind,
            bytes=compiled(self.bytes, "bytes"),
            request_bytes=byte_count(self.request),
            arrivals=self.arrivals.engine(),
            batch=self.batch,
            requests=self.requests,
            think_s=compiled(self.think, "think"),
            objects=self.objects,
            together=self.together,
            count=self.count,
            max_open=self.max_open,
            initial_window_mix=[(e.segments, units.parse_share(e.share)) for e in self.initial_window_mix],
            mix_by_batch=self.mix_by == "batch",
            close=self.close,
        )


Workload = Annotated[
    Bulk | Transfer | Fetch | Throttled | Population | ConstantRate | OnOff | Voice | Transactions | Video,
    Field(discriminator="kind"),
    tagged(Bulk, Transfer, Fetch, Throttled, Population, ConstantRate, OnOff, Voice, Transactions, Video),
]

_DRAWN: dict[str, Dimension | None] = {"rtt": units.DURATION, "rate": units.RATE, "loss": None, "bytes": units.SIZE}
