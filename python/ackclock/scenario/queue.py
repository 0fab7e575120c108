"""Queues and their disciplines. Limits count what waits, not the packet in transmission."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ackclock import units
from ackclock.errors import ScenarioError, quote
from ackclock.scenario._base import (
    Flag,
    MeanPackets,
    Number,
    PacketLimit,
    PositiveDuration,
    Probability,
    QueueLimit,
    Size,
    Table,
    byte_count,
    nanoseconds,
    tagged,
    without_none,
)

CODEL_TARGET = "5 ms"
CODEL_INTERVAL = "100 ms"
"""RFC 8289 §4.4."""


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
    """The limit of Linux netem: packets in the delay line count too, and one of several segments (`tso`) counts once; elsewhere it counts as so many."""

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

    @model_validator(mode="after")
    def _target_within_interval(self) -> Codel:
        target, interval = self.target or CODEL_TARGET, self.interval or CODEL_INTERVAL
        if nanoseconds(target) > nanoseconds(interval):
            key, found = ("target", target) if self.target else ("interval", interval)
            raise ScenarioError(
                key=key,
                found=quote(found),
                allowed=f"at most the interval of {quote(interval)}"
                if self.target
                else f"at least the target of {quote(target)}",
            )
        return self

    def engine(self, bdp: Fraction) -> dict[str, Any]:
        """As the engine reads it; `bdp` in packets."""
        return without_none(
            kind=self.kind,
            limit_packets=None if self.limit is None else _packets(self.limit, bdp),
            target_ns=None if self.target is None else nanoseconds(self.target),
            interval_ns=None if self.interval is None else nanoseconds(self.interval),
            ecn=self.ecn,
        )


class Threshold(Table):
    """Marks every packet that arrives while at least `mark` wait (DCTCP's switch); what cannot be marked passes."""

    kind: Literal["threshold"]
    mark: PacketLimit
    """Packets that wait from which on arrivals are marked: packets or multiples of the bandwidth-delay product."""
    limit: PacketLimit | None = None
    """Packets or multiples of the bandwidth-delay product; absent: unlimited."""

    def engine(self, bdp: Fraction) -> dict[str, Any]:
        """As the engine reads it; `bdp` in packets."""
        mark = _packets(self.mark, bdp, key="mark")
        limit = None if self.limit is None else _packets(self.limit, bdp)
        if limit is not None and mark > limit:
            raise ScenarioError(key="mark", found=quote(self.mark), allowed=f"at most the limit of {quote(self.limit)}")
        return without_none(kind=self.kind, limit_packets=limit, mark_packets=mark)


class FqCodel(Codel):
    """FQ-CoDel (RFC 8290): a queue for each connection, served in turn, each under CoDel.

    Beyond the limit, which all queues share, the one with the most bytes loses the packet at its head.
    """

    kind: Literal["fq-codel"]  # type: ignore[assignment]
    queues: Annotated[int, Number(1, 65_536)] | None = None
    """Number of queues, over which connections are spread by a hash; absent: 1024."""
    quantum: Size | None = None
    """What a queue may send in one round; absent: 1514 bytes."""

    def engine(self, bdp: Fraction) -> dict[str, Any]:
        """As the engine reads it; `bdp` in packets."""
        quantum = None if self.quantum is None else byte_count(self.quantum)
        return super().engine(bdp) | without_none(queues=self.queues, quantum_bytes=quantum)


class Pie(Table):
    """PIE (RFC 8033): drops arrivals at random, so that the queueing delay stays near a reference."""

    kind: Literal["pie"]
    limit: PacketLimit | None = None
    """Packets or multiples of the bandwidth-delay product; absent: unlimited."""
    target: PositiveDuration | None = None
    """Queueing delay aimed at; absent: 15 ms."""
    update: PositiveDuration | None = None
    """Interval at which the drop probability is adjusted; absent: 15 ms."""
    max_burst: PositiveDuration | None = None
    """Time for which a burst is let through; absent: 150 ms."""
    ecn: Flag = False
    """Mark packets that can be marked instead of dropping them, while the drop probability is at most 10 %."""

    def engine(self, bdp: Fraction) -> dict[str, Any]:
        """As the engine reads it; `bdp` in packets."""
        return without_none(
            kind=self.kind,
            limit_packets=None if self.limit is None else _packets(self.limit, bdp),
            target_ns=None if self.target is None else nanoseconds(self.target),
            update_ns=None if self.update is None else nanoseconds(self.update),
            max_burst_ns=None if self.max_burst is None else nanoseconds(self.max_burst),
            ecn=self.ecn,
        )


class Red(Table):
    """RED (Floyd and Jacobson 1993), gentle: drops at random as the mean queue grows."""

    kind: Literal["red"]
    limit: PacketLimit
    """Packets or multiples of the bandwidth-delay product."""
    min: MeanPackets
    """Mean queue at which drops begin."""
    max: MeanPackets
    """Mean queue at which the drop probability reaches `max_p`; above it the probability rises to 1 at twice `max`."""
    max_p: Probability | None = None
    """Drop probability at `max`; absent: 10 %."""
    weight: Probability | None = None
    """Weight of one arrival in the mean; absent: 0.002."""
    ecn: Flag = False
    """Mark packets that can be marked instead of dropping them."""

    def engine(self, bdp: Fraction) -> dict[str, Any]:
        """As the engine reads it; `bdp` in packets."""
        limit = _packets(self.limit, bdp)
        low, high = _share_of_packets("min", self.min, bdp), _share_of_packets("max", self.max, bdp)
        if low >= high:
            raise ScenarioError(key="min", found=quote(self.min), allowed=f"less than max, {quote(self.max)}")
        if limit < low:
            raise ScenarioError(key="limit", found=quote(self.limit), allowed=f"at least min, {quote(self.min)}")
        return without_none(
            kind=self.kind,
            limit_packets=limit,
            min_packets=float(low),
            max_packets=float(high),
            max_p=None if self.max_p is None else units.parse_share(self.max_p),
            weight=None if self.weight is None else units.parse_share(self.weight),
            ecn=self.ecn,
        )


class Cake(Table):
    """CAKE (Høiland-Jørgensen, Täht and Morton 2018), of a real kernel only: the simulator refuses it."""

    kind: Literal["cake"]
    rtt: PositiveDuration | None = None
    """Round-trip time to expect; absent: 100 ms."""
    limit: Size | None = None
    """Memory; absent: the kernel's own choice."""

    def engine(self, bdp: Fraction) -> dict[str, Any]:  # noqa: ARG002
        """As the engine reads it; `bdp` in packets."""
        return without_none(
            kind=self.kind,
            interval_ns=None if self.rtt is None else nanoseconds(self.rtt),
            limit_bytes=None if self.limit is None else byte_count(self.limit),
        )


Queue = Annotated[
    DropTail | NetemLimit | Codel | FqCodel | Pie | Threshold | Red | Cake,
    Field(discriminator="kind"),
    tagged(DropTail, NetemLimit, Codel, FqCodel, Pie, Threshold, Red, Cake),
]


def _share_of_packets(key: str, limit: str, bdp: Fraction) -> Fraction:
    value, dimension = units.parse(limit, units.PACKETS, units.BDP, parts=True)
    if dimension is not units.BDP:
        return value
    if bdp == 0:
        raise ScenarioError(
            key=key,
            found=quote(limit),
            allowed="packets or bytes; the path of flow 0 has no delay or no rate to multiply",
        )
    return value * bdp


def _packets(limit: str, bdp: Fraction, *, key: str = "limit") -> int:
    packets = units.round_half_up(_share_of_packets(key, limit, bdp))
    if not 1 <= packets <= units.PACKETS.largest:
        raise ScenarioError(
            key=key,
            found=f"{quote(limit)}, which is {'less than half a packet' if packets < 1 else f'{packets} packets'}",
            allowed=f"1 to {units.PACKETS.largest} packets (1 BDP is {float(bdp):.3g} packets)",
        )
    return packets
