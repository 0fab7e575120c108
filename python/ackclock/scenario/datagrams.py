"""Workloads of plain UDP datagrams: sent by the clock, whatever the network does with them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ackclock import units
from ackclock.scenario._base import (
    PositiveDuration,
    Quantity,
    Rate,
    Table,
    bits_per_second,
    byte_count,
    nanoseconds,
)

Payload = Annotated[str, Quantity((units.SIZE,), least="1 byte", most="65507 bytes", example="1472 bytes")]


class ConstantRate(Table):
    """UDP datagrams of one size at a constant rate, until the flow's stop."""

    kind: Literal["constant-rate"]
    rate: Rate
    """Rate of the IP packets, headers included."""
    payload: Payload = "1472 bytes"
    """UDP payload of a datagram."""

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        return {
            "kind": self.kind,
            "rate_bps": bits_per_second(self.rate),
            "payload_bytes": byte_count(self.payload),
        }


class OnOff(Table):
    """UDP datagrams at a constant rate in on-periods separated by silence, beginning with an on-period."""

    kind: Literal["on-off"]
    rate: Rate
    """Rate of the IP packets in an on-period, headers included."""
    on: PositiveDuration
    """Mean length of an on-period."""
    off: PositiveDuration
    """Mean length of the silence."""
    periods: Literal["exponential", "fixed"] = "exponential"
    """How the lengths are distributed."""
    payload: Payload = "1472 bytes"
    """UDP payload of a datagram."""

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        return {
            "kind": self.kind,
            "rate_bps": bits_per_second(self.rate),
            "payload_bytes": byte_count(self.payload),
            "on_ns": nanoseconds(self.on),
            "off_ns": nanoseconds(self.off),
            "exponential": self.periods == "exponential",
        }


class Voice(Table):
    """A telephone call over UDP. The defaults are those of G.711 in RTP: 160 bytes of speech every 20 ms."""

    kind: Literal["voice"]
    interval: PositiveDuration = "20 ms"
    """Between datagrams."""
    payload: Payload = "172 bytes"
    """UDP payload of a datagram: speech and RTP header."""

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        return {
            "kind": self.kind,
            "interval_ns": nanoseconds(self.interval),
            "payload_bytes": byte_count(self.payload),
        }
