"""Workloads: what the application of a flow does."""

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
    Packets,
    PositiveDuration,
    Quantity,
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
from ackclock.units import Dimension

Positive = Annotated[float, Number(0, 1_000_000, whole=False, above=True)]


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


class _AnyQuantity(Quantity):
    """A duration, rate, size or probability: the key that holds the distribution says which."""

    def _check(self, value: object) -> object:
        return value

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {
            "anyOf": [
                {"type": "string", "pattern": r"^\s*(?:\+?[0-9]|-0)"},
                {"type": "number", "minimum": 0, "maximum": 1},
            ]
        }

    def expected(self) -> str:
        return "an amount with its unit written out"


Amount = Annotated[str | float, _AnyQuantity(())]


class Constant(Table):
    """Always the same."""

    kind: Literal["constant"]
    value: Amount
    """The value, with its unit; a bare number only for a loss."""


class Uniform(Table):
    """Uniform between two values."""

    kind: Literal["uniform"]
    low: Amount
    """Least value, with its unit; a bare number only for a loss."""
    high: Amount
    """Greatest value, with its unit; a bare number only for a loss."""


class Lognormal(Table):
    """The logarithm is normally distributed."""

    kind: Literal["lognormal"]
    median: Amount
    """Median, with its unit; a bare number only for a loss."""
    sigma: Positive
    """Standard deviation of the natural logarithm."""


class Exponential(Table):
    """Exponential."""

    kind: Literal["exponential"]
    mean: Amount
    """Mean, with its unit; a bare number only for a loss."""


class Choice(Table):
    """Each value equally likely."""

    kind: Literal["choice"]
    values: Annotated[tuple[Amount, ...], Field(min_length=1)]
    """The values, with their units; bare numbers only for a loss."""


Distribution = Annotated[
    Constant | Uniform | Lognormal | Exponential | Choice,
    Field(discriminator="kind"),
    tagged(Constant, Uniform, Lognormal, Exponential, Choice),
]


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
            _drawn(getattr(self, key), dimension, key)
        return self

    def engine(self) -> dict[str, Any]:
        """As the engine reads it: seconds, bit/s, probability, bytes."""
        return without_none(
            kind=self.kind,
            clients=self.clients,
            requests=self.requests,
            rtt_s=_drawn(self.rtt, units.DURATION, "rtt"),
            rate_bps=_drawn(self.rate, units.RATE, "rate"),
            loss=_drawn(self.loss, None, "loss"),
            bytes=_drawn(self.bytes, units.SIZE, "bytes"),
            queue_packets=units.whole(self.queue, units.PACKETS),
            throttle=self.throttle,
        )


Workload = Annotated[
    Bulk | Transfer | Fetch | Throttled | Population,
    Field(discriminator="kind"),
    tagged(Bulk, Transfer, Fetch, Throttled, Population),
]

_DRAWN: dict[str, Dimension | None] = {"rtt": units.DURATION, "rate": units.RATE, "loss": None, "bytes": units.SIZE}


def _drawn(distribution: Table, dimension: Dimension | None, key: str) -> dict[str, Any]:
    """A distribution as the engine reads it; errors name the key."""

    def number(name: str, value: object) -> float:
        try:
            if dimension is None:
                return units.parse_share(value)
            base, _ = units.parse(value, dimension, parts=True)
            return float(base / (10**9 if dimension is units.DURATION else 1))
        except ScenarioError as error:
            raise error.within(f"{key}.{name}") from None

    result: dict[str, Any] = {}
    for name, value in distribution:
        if name == "values":
            result[name] = [number(f"values.{i}", v) for i, v in enumerate(value)]
        else:
            result[name] = value if name in ("kind", "sigma") else number(name, value)
    if result["kind"] == "uniform" and result["low"] > result["high"]:
        raise ScenarioError(
            key=f"{key}.low", found=quote(distribution.written()["low"]), allowed="a value not above high"
        )
    return result
