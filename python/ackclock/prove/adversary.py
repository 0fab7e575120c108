"""Adversaries as data: the packets that an adversary decides on, their fate, and the permitted answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ackclock.errors import InputError, quote
from ackclock.units import DURATION, parse

MOST = 128
"""Maximum number of questions, one for each packet that the adversary decides on."""

ADVERSARIES = {
    "losses": ("originals", "lost", "losses among the first {first} first transmissions of data"),
    "data": ("data", "lost", "losses among the first {first} transmissions of data, retransmissions included"),
    "packets": ("all", "lost", "losses among the first {first} packets of both directions, SYNs and ACKs included"),
    "burst": (
        "originals",
        "lost",
        "a burst of {length} losses that begins at each of the first {first} first transmissions of data",
    ),
    "late": ("originals", "late", "each of the first {first} first transmissions of data {late} late"),
    "marks": ("originals", "marked", "ECN marks among the first {first} first transmissions of data"),
    "start": ("originals", "lost", "the second flow starts at each of {first} ticks of {tick}"),
}
"""Name -> packets decided on, their fate, and description."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Adversary:
    """Questions that are enumerated; the answer "yes" means that the packet is lost, marked or delayed.

    Parameters
    ----------
    name
        One of `ADVERSARIES`.
    first
        Number of questions, positions of a burst, or ticks.
    most
        Maximum number of "yes" answers; None: as many as there are questions.
    length
        Number of packets in a burst.
    late
        Delay of a packet, or distance between ticks, as text with a unit.
    """

    name: str
    first: int
    most: int | None = None
    length: int | None = None
    late: str | None = None

    def __post_init__(self) -> None:
        if self.name not in ADVERSARIES:
            raise InputError(f"--adversary: found {quote(self.name)}; allowed: {', '.join(ADVERSARIES)}")
        bounds = {"first": (self.first, MOST if self.name != "start" else 100_000)}
        if self.most is not None:
            bounds["most"] = (self.most, self.first)
        if self.length is not None:
            bounds["length"] = (self.length, MOST - 1)
        for option, (value, most) in bounds.items():
            if not 1 <= value <= most:
                raise InputError(f"--{option}: found {value}; allowed: a whole number, 1 to {most}")
        for option, given, names in (
            ("most", self.most, ("losses", "data", "packets", "marks")),
            ("length", self.length, ("burst",)),
            ("late", self.late, ("late", "start")),
        ):
            if given is not None and self.name not in names:
                raise InputError(f"--{option}: found it with {self.name}; allowed: with {', '.join(names)}")
            if given is None and self.name in names and option != "most":
                raise InputError(f"--{option}: found nothing with {self.name}; allowed: a value")

    @property
    def late_ns(self) -> int:
        """Delay of a packet, or distance between ticks, ns."""
        return 0 if self.late is None else int(parse(self.late, DURATION)[0])

    @property
    def is_limited(self) -> bool:
        """Whether cases are omitted because the number of "yes" answers is limited."""
        return self.length is None and self.most is not None and self.most < self.first and self.name != "late"

    @property
    def engine(self) -> tuple[str, str, int, int, int | None, int | None]:
        """The adversary in the engine's form."""
        asks, fate, _ = ADVERSARIES[self.name]
        most = 1 if self.name == "late" else self.most
        return asks, fate, self.late_ns if fate == "late" else 0, self.first, most, self.length

    @property
    def words(self) -> str:
        """Description of the adversary."""
        text = ADVERSARIES[self.name][2].format(first=self.first, length=self.length, late=self.late, tick=self.late)
        return text if self.most is None else f"{text}, {self.most} at most"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary."""
        return {"name": self.name, "first": self.first, "most": self.most, "length": self.length, "late": self.late}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Adversary:
        """Return the adversary that these values describe."""
        return cls(**values)
