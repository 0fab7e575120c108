"""Queues and their disciplines. Limits count what waits, not the packet in transmission."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field

from ackclock import units
from ackclock.errors import ScenarioError, quote
from ackclock.scenario._base import (
    Flag,
    PacketLimit,
    PositiveDuration,
    Probability,
    QueueLimit,
    Table,
    nanoseconds,
    tagged,
    without_none,
)


class DropTail(Table):
    """First in, first out; an arrival that finds the queue full is dropped."""

    kind: Literal["drop-tail"]
    limit: QueueLimit | None = None
    """Packets, bytes or multiples of the bandwidth-delay product; absent: unlimited."""

    def engine(self, bdp: Fraction) -> dict[str, Any]:
        """As the engine reads it; `bdp` in packets."""
        if self.limit is None:
            return {"kind": self.kind}
        value, dimension = units.parse(self.limit, units.PACKETS, units.SIZE, units.BDP)
        if dimension is units.SIZE:
            return {"kind": self.kind, "limit_bytes": units.round_half_up(value)}
        return {"kind": self.kind, "limit_packets": _packets(self.limit, bdp)}


class NetemLimit(Table):
    """The limit of Linux netem: packets in the delay line count too."""

    kind: Literal["netem-limit"]
    limit: PacketLimit
    """Packets or multiples of the bandwidth-delay product."""

    def engine(self, bdp: Fraction) -> dict[str, Any]:
        """As the engine reads it; `bdp` in packets."""
        return {"kind": self.kind, "limit_packets": _packets(self.limit, bdp)}


class Codel(Table):
    """CoDel (RFC 8289): drops by the time that packets waited."""

    kind: Literal["codel"]
    limit: PacketLimit | None = None
    """Packets or multiples of the bandwidth-delay product; absent: unlimited."""
    target: PositiveDuration | None = None
    """Acceptable standing wait; absent: 5 ms."""
    interval: PositiveDuration | None = None
    """How long the wait may exceed the target; absent: 100 ms."""
    ecn: Flag = False
    """Mark packets that can be marked instead of dropping them."""

    def engine(self, bdp: Fraction) -> dict[str, Any]:
        """As the engine reads it; `bdp` in packets."""
        return without_none(
            kind=self.kind,
            limit_packets=None if self.limit is None else _packets(self.limit, bdp),
            target_ns=None if self.target is None else nanoseconds(self.target),
            interval_ns=None if self.interval is None else nanoseconds(self.interval),
            ecn=self.ecn,
        )


class Red(Table):
    """RED (Floyd and Jacobson 1993), gentle: drops at random as the mean queue grows."""

    kind: Literal["red"]
    limit: PacketLimit
    """Packets or multiples of the bandwidth-delay product."""
    min: PacketLimit
    """Mean queue at which drops begin."""
    max: PacketLimit
    """Mean queue at which the drop probability reaches `max_p`; above it the probability rises to 1 at twice `max`."""
    max_p: Probability | None = None
    """Drop probability at `max`; absent: 10 %."""
    weight: Probability | None = None
    """Weight of one arrival in the mean; absent: 0.002."""
    ecn: Flag = False
    """Mark packets that can be marked instead of dropping them."""

    def engine(self, bdp: Fraction) -> dict[str, Any]:
        """As the engine reads it; `bdp` in packets."""
        return without_none(
            kind=self.kind,
            limit_packets=_packets(self.limit, bdp),
            min_packets=float(_share_of_packets("min", self.min, bdp)),
            max_packets=float(_share_of_packets("max", self.max, bdp)),
            max_p=None if self.max_p is None else units.parse_share(self.max_p),
            weight=None if self.weight is None else units.parse_share(self.weight),
            ecn=self.ecn,
        )


Queue = Annotated[
    DropTail | NetemLimit | Codel | Red, Field(discriminator="kind"), tagged(DropTail, NetemLimit, Codel, Red)
]


def _share_of_packets(key: str, limit: str, bdp: Fraction) -> Fraction:
    value, dimension = units.parse(limit, units.PACKETS, units.BDP)
    if dimension is not units.BDP:
        return value
    if bdp == 0:
        raise ScenarioError(
            key=key,
            found=quote(limit),
            allowed="packets or bytes; the path of flow 0 has no delay or no rate to multiply",
        )
    return value * bdp


def _packets(limit: str, bdp: Fraction) -> int:
    # A small multiple of a small BDP is still a queue of one packet.
    return max(1, units.round_half_up(_share_of_packets("limit", limit, bdp)))
