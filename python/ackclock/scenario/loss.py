"""Loss models: what a link drops ahead of its queue."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ackclock.errors import ScenarioError
from ackclock.scenario._base import Number, Probability, Table, tagged, without_none
from ackclock.units import parse_share

Ordinal = Annotated[int, Number(1, 2**31)]
AppliesTo = Literal["all", "syn", "data"]
"""Every packet, SYN and SYN-ACK, or packets with payload."""
FromZero = Annotated[int, Number(0, 2**31)]


class NoLoss(Table):
    """Nothing is lost."""

    kind: Literal["none"]

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        return {"kind": self.kind}


class Bernoulli(Table):
    """Each packet is lost with the same probability, independently."""

    kind: Literal["bernoulli"]
    p: Probability
    """Probability."""

    applies_to: AppliesTo = "all"
    """Packets that it is for; others pass and are not counted."""

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        return {"kind": self.kind, "p": parse_share(self.p)}


class GilbertElliott(Table):
    """Two states, good and bad, each with its own loss."""

    kind: Literal["gilbert-elliott"]
    p: Probability
    """Probability, per packet, of going from good to bad."""
    r: Probability
    """Probability, per packet, of going from bad to good."""
    loss_bad: Probability | None = None
    """Loss in the bad state; absent: 100 %."""
    loss_good: Probability | None = None
    """Loss in the good state; absent: 0 %."""

    applies_to: AppliesTo = "all"
    """Packets that it is for; others pass and are not counted."""

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        return without_none(
            kind=self.kind,
            p=parse_share(self.p),
            r=parse_share(self.r),
            loss_bad=None if self.loss_bad is None else parse_share(self.loss_bad),
            loss_good=None if self.loss_good is None else parse_share(self.loss_good),
        )


class Periodic(Table):
    """Every n-th packet is lost."""

    kind: Literal["periodic"]
    every: Ordinal
    """n."""
    offset: FromZero = 0
    """Packets that pass before the counting begins."""

    applies_to: AppliesTo = "all"
    """Packets that it is for; others pass and are not counted."""

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        return {"kind": self.kind, "every": self.every, "offset": self.offset}


class Listed(Table):
    """Exactly the listed packets are lost, counted as they come to the link."""

    kind: Literal["listed"]
    packets: Annotated[tuple[Ordinal, ...], Field(min_length=1)]
    """Counted from 1: with `applies_to = "syn"`, 1 is the first SYN or SYN-ACK."""
    applies_to: AppliesTo = "all"
    """Packets that it is for; others pass and are not counted."""

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        return {"kind": self.kind, "packets": list(self.packets)}


class Drop(Table):
    """Data segments that a scripted loss drops."""

    flow: FromZero = 0
    """Flow, counted from 0."""
    first: Ordinal
    """First segment, counted from 1 in the order of first transmission."""
    last: Ordinal | None = None
    """Last segment; absent: the first one only."""
    transmission: Annotated[int, Number(0, 255)] = 0
    """Which transmission of them: 0 the original, 1 the first retransmission, ..."""

    @model_validator(mode="after")
    def _in_order(self) -> Drop:
        if self.last is not None and self.last < self.first:
            raise ScenarioError(key="last", found=str(self.last), allowed=f"{self.first} (first) or more")
        return self

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        last = self.first if self.last is None else self.last
        return {"flow": self.flow, "first": self.first, "last": last, "transmission": self.transmission}


class Scripted(Table):
    """Exactly the listed transmissions are lost."""

    kind: Literal["scripted"]
    drops: Annotated[tuple[Drop, ...], Field(min_length=1)]
    """The list."""

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        return {"kind": self.kind, "drops": [drop.engine() for drop in self.drops]}


Loss = Annotated[
    NoLoss | Bernoulli | GilbertElliott | Periodic | Listed | Scripted,
    Field(discriminator="kind"),
    tagged(NoLoss, Bernoulli, GilbertElliott, Periodic, Listed, Scripted),
]
