"""Verdicts, and the one kind of predicate that leads to them: a range in which a measured interval lies or not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What a measurement says about a claim."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "undecided"
    NOT_COMPARABLE = "not comparable"

    @property
    def symbol(self) -> str:
        """One character, so that no reader depends on colour."""
        return {"holds": "✓", "fails": "✗", "undecided": "?", "not comparable": "–"}[self.value]


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """A set of values from `low` to `high`.

    Parameters
    ----------
    low, high
        Bounds in the unit of the evidence; infinite where open.
    strict
        Whether the bounds themselves lie outside.
    margin
        The smallest difference that counts, stated beforehand: an effect of one sign that is proven smaller than this is
        proven to be none. Without it no number of seeds decides against "more than" where the truth is zero.
    """

    low: float = -math.inf
    high: float = math.inf
    strict: bool = False
    margin: float = 0.0

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, int | float):
            return False
        if self.strict:
            return self.low < value < self.high
        return self.low <= value <= self.high

    def judge(self, low: float, high: float) -> Verdict:
        """Compare the interval from `low` to `high` with the range.

        Inside: holds; wholly outside on one side: fails; otherwise undecided. An exact value is an interval of no
        width, and is never undecided.
        """
        if math.isnan(low) or math.isnan(high):
            return Verdict.UNDECIDED
        if low in self and high in self:
            return Verdict.HOLDS
        least, most = self.low + self.margin, self.high - self.margin
        below = high <= least if self.strict else high < least
        above = low >= most if self.strict else low > most
        return Verdict.FAILS if below or above else Verdict.UNDECIDED

    def text(self, unit: str = "") -> str:
        """Write the range as a reader would: `> 0 %`, `20 to 45 %`, `= 0`."""
        least = f" (less than {number(self.margin, unit)} counts as none)" if self.margin else ""
        if math.isinf(self.low) and math.isinf(self.high):
            return "anything"
        if self.low == self.high:
            return f"= {number(self.low, unit)}"
        if math.isinf(self.high):
            return f"{'>' if self.strict else '≥'} {number(self.low, unit)}{least}"
        if math.isinf(self.low):
            return f"{'<' if self.strict else '≤'} {number(self.high, unit)}{least}"
        return f"{number(self.low)} to {number(self.high, unit)}"


def number(value: float, unit: str = "") -> str:
    """Write a number with three significant digits (whole numbers in full) and its unit."""
    if math.isnan(value):
        return "no data"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    digits = 0 if value == int(value) or abs(value) >= 1000 else 2 - math.floor(math.log10(abs(value)))
    text = f"{value:.{min(max(digits, 0), 6)}f}".replace("-", "−")
    if not unit:
        return text
    return f"{text} {unit[:-1]}" if text == "1" and unit.endswith("s") and len(unit) > 2 else f"{text} {unit}"


def interval(low: float, high: float) -> str:
    """Write an interval: `1.2 to 3.4`, or that there is none."""
    if math.isnan(low) or math.isnan(high):
        return "no data"
    return f"{number(low)} to {number(high)}"


def above(bound: float, *, margin: float = 0.0) -> Range:
    """More than `bound`; shown to fail if it is by less than `margin`."""
    return Range(low=bound, strict=True, margin=margin)


def below(bound: float, *, margin: float = 0.0) -> Range:
    """Less than `bound`; shown to fail if it is by less than `margin`."""
    return Range(high=bound, strict=True, margin=margin)


def same(margin: float, *, of: float = 0.0) -> Range:
    """Equivalence, "the same": within `margin` of `of`. The margin is stated before the run."""
    return Range(low=of - margin, high=of + margin)


def at_least(bound: float) -> Range:
    """`bound` or more."""
    return Range(low=bound)


def at_most(bound: float) -> Range:
    """`bound` or less."""
    return Range(high=bound)


def between(low: float, high: float) -> Range:
    """From `low` to `high`, both included."""
    return Range(low=low, high=high)


def exactly(value: float) -> Range:
    """The one value and no other."""
    return Range(low=value, high=value)
