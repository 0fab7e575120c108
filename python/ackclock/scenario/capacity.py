"""Links whose rate, delay and loss change on a schedule, or that replay a trace of delivery opportunities."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ackclock import units
from ackclock.errors import ScenarioError, quote
from ackclock.scenario._base import (
    Duration,
    PositiveDuration,
    Probability,
    RateOrZero,
    Size,
    Table,
    bits_per_second,
    byte_count,
    nanoseconds,
    tagged,
    without_none,
)
from ackclock.scenario._mahimahi import Opportunities, read
from ackclock.scenario._tables import Dummynet
from ackclock.scenario.distribution import Durations, Rates, Shares, drawn


class Step(Table):
    """What a link is like from an instant on; what is absent stays as it was."""

    at: Duration
    """Since the start of the run, or of the cycle."""
    rate: RateOrZero | None = None
    """Rate; zero: nothing is transmitted."""
    delay: Duration | None = None
    """Propagation delay. Packets keep their order when it falls."""
    loss: Probability | None = None
    """Share of arriving packets that is lost, besides what the link's own loss takes."""


class Schedule(Table):
    """Changes at listed times. Up to the first, the link is as its own keys say."""

    kind: Literal["schedule"]
    steps: Annotated[tuple[Step, ...], Field(min_length=1)]
    """The changes, in order of time."""
    repeat: PositiveDuration | None = None
    """After this long, all begins again, with the link's own keys; absent: the last step lasts."""

    @model_validator(mode="after")
    def _in_order(self) -> Schedule:
        before = -1
        for i, step in enumerate(self.steps):
            at = nanoseconds(step.at)
            if at <= before:
                raise ScenarioError(
                    key=f"steps.{i}.at", found=quote(step.at), allowed="a time after that of the step before"
                )
            before = at
        if self.repeat is not None and nanoseconds(self.repeat) <= before:
            raise ScenarioError(
                key="repeat",
                found=quote(self.repeat),
                allowed=f"a time after the last step, {quote(self.steps[-1].at)}",
            )
        return self

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        return without_none(
            kind=self.kind,
            steps=[
                without_none(
                    at_ns=nanoseconds(step.at),
                    rate_bps=None if step.rate is None else bits_per_second(step.rate),
                    delay_ns=None if step.delay is None else nanoseconds(step.delay),
                    loss=None if step.loss is None else units.parse_share(step.loss),
                )
                for step in self.steps
            ],
            repeat_ns=None if self.repeat is None else nanoseconds(self.repeat),
        )


class Random(Table):
    """Rate, delay and loss drawn anew at fixed intervals; what has no distribution stays as the link has it."""

    kind: Literal["random"]
    every: PositiveDuration
    """Length of an interval."""
    rate: Rates | None = None
    """Rate."""
    delay: Durations | None = None
    """Propagation delay. Packets keep their order when it falls."""
    loss: Shares | None = None
    """Share of arriving packets that is lost, besides what the link's own loss takes."""

    def engine(self) -> dict[str, Any]:
        """As the engine reads it: bit/s, seconds, probability."""
        return without_none(
            kind=self.kind,
            every_ns=nanoseconds(self.every),
            rate_bps=None if self.rate is None else drawn(self.rate, units.RATE),
            delay_s=None if self.delay is None else drawn(self.delay, units.DURATION),
            loss=None if self.loss is None else drawn(self.loss, None),
        )


class Mahimahi(Table):
    """A Mahimahi trace, replayed exactly and again and again; the link has no rate of its own."""

    kind: Literal["mahimahi"]
    file: str
    """The trace: in each line a millisecond at which one packet may leave. Relative to the scenario's file."""
    opportunity: Size = "1500 bytes"
    """What may leave at each of them, framing included."""

    @model_validator(mode="after")
    def _readable(self) -> Mahimahi:
        try:
            self.opportunities()
        except ScenarioError as error:
            raise ScenarioError(key="file", found=f"{error.found} in {error.source}", allowed=error.allowed) from None
        return self

    def opportunities(self) -> Opportunities:
        """What the file says."""
        return read(self.file)

    def mean_bps(self) -> int:
        """Mean rate over a cycle, bit/s."""
        counts = self.opportunities().counts
        return round(sum(counts) * byte_count(self.opportunity) * 8000 / (len(counts) - 1))

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        return {
            "kind": self.kind,
            "counts": self.opportunities().counts,
            "opportunity_bytes": byte_count(self.opportunity),
        }

    def inputs(self) -> dict[str, str]:
        """Files that it reads, with their SHA-256."""
        return {self.file: self.opportunities().sha256}


Capacity = Annotated[
    Schedule | Random | Mahimahi | Dummynet,
    Field(discriminator="kind"),
    tagged(Schedule, Random, Mahimahi, Dummynet),
]
