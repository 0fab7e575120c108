"""Links: loss, then queue, then rate, then propagation delay, then jitter and reordering."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from pydantic import model_validator

from ackclock.errors import ScenarioError, quote
from ackclock.scenario._base import (
    Duration,
    Rate,
    Table,
    bits_per_second,
    byte_count,
    nanoseconds,
    without_none,
)
from ackclock.scenario._mahimahi import read
from ackclock.scenario._tables import Capacity, Dummynet, Loss, Mahimahi, Queue, Reorder, Schedule


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
    capacity: Capacity | None = None
    """How rate, delay and loss vary in time; absent: they do not."""

    @model_validator(mode="after")
    def _one_capacity(self) -> Link:
        if isinstance(self.capacity, Mahimahi) and self.rate is not None:
            raise ScenarioError(
                key="rate", found=f'{quote(self.rate)} with a capacity of kind "mahimahi"', allowed="no rate"
            )
        if isinstance(self.capacity, Dummynet) and self.rate is None:
            raise ScenarioError(
                key="rate", found='nothing with a capacity of kind "dummynet"', allowed="a rate: what its ticks give"
            )
        if isinstance(self.capacity, Schedule):
            rates = [bits_per_second(step.rate) for step in self.capacity.steps if step.rate is not None]
            if self.rate is None and rates and nanoseconds(self.capacity.steps[0].at) > 0:
                raise ScenarioError(
                    key="rate", found="nothing", allowed="a rate up to the first step, or a step at 0 s with one"
                )
            begins = self.rate is not None and nanoseconds(self.capacity.steps[0].at) > 0
            if self.capacity.repeat is not None and rates and not any(rates) and not begins:
                raise ScenarioError(
                    key="capacity.steps", found="no rate but zero, again and again", allowed="a rate above zero"
                )
        return self

    def mean_bps(self) -> int | None:
        """Rate, that of a trace being its mean; None if it is infinite."""
        if isinstance(self.capacity, Mahimahi):
            counts = read(self.capacity.file).counts
            return round(sum(counts) * byte_count(self.capacity.opportunity) * 8000 / (len(counts) - 1))
        if self.rate is None and isinstance(self.capacity, Schedule) and self.capacity.steps[0].rate is not None:
            return bits_per_second(self.capacity.steps[0].rate)
        return None if self.rate is None else bits_per_second(self.rate)

    def engine(self, bdp: Fraction) -> dict[str, Any]:
        """As the engine reads it; `bdp` in packets."""
        return without_none(
            rate_bps=None if self.rate is None else bits_per_second(self.rate),
            delay_ns=nanoseconds(self.delay),
            queue=None if self.queue is None else self.queue.engine(bdp),
            loss=None if self.loss is None else self.loss.engine(),
            jitter_ns=nanoseconds(self.jitter),
            reorder=None if self.reorder is None else self.reorder.engine(),
            capacity=None if self.capacity is None else self.capacity.engine(),
        )


class NamedLink(Link):
    """A link of a graph."""

    name: str
    """Name that paths use."""
