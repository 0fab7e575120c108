"""Links: loss, then queue, then rate, then propagation delay, then jitter and reordering."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ackclock.scenario._base import (
    Duration,
    PositiveDuration,
    Probability,
    Rate,
    Table,
    bits_per_second,
    nanoseconds,
    without_none,
)
from ackclock.scenario.loss import Loss
from ackclock.scenario.queue import Queue
from ackclock.units import parse_share


class Reorder(Table):
    """A share of the packets is held back, so that later ones overtake them."""

    probability: Probability
    """Share of packets held back."""
    extra_delay: PositiveDuration
    """How much later they arrive."""

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        return {"probability": parse_share(self.probability), "extra_delay_ns": nanoseconds(self.extra_delay)}


class Link(Table):
    """One direction of a link."""

    rate: Rate | None = None
    """Rate; absent: infinite."""
    delay: Duration = "0 s"
    """Propagation delay, one way."""
    queue: Queue | None = None
    """Queue; absent: unlimited, first in, first out."""
    loss: Loss | None = None
    """Loss ahead of the queue; absent: none."""
    jitter: Duration = "0 s"
    """Random extra delay, uniform from zero to this; order is kept."""
    reorder: Reorder | None = None
    """Reordering; absent: none."""

    def engine(self, bdp: Fraction) -> dict[str, Any]:
        """As the engine reads it; `bdp` in packets."""
        return without_none(
            rate_bps=None if self.rate is None else bits_per_second(self.rate),
            delay_ns=nanoseconds(self.delay),
            queue=None if self.queue is None else self.queue.engine(bdp),
            loss=None if self.loss is None else self.loss.engine(),
            jitter_ns=nanoseconds(self.jitter),
            reorder=None if self.reorder is None else self.reorder.engine(),
        )


class NamedLink(Link):
    """A link of a graph."""

    name: str
    """Name that paths use."""
