"""A bound with its margin, the position of an interval relative to it, and the resulting verdict on a claim."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Flag, StrEnum


class Verdict(StrEnum):
    """Verdict of a measurement on a claim.

    "negligible" is a result, not a lack of one: the effect is proven smaller than the margin declared in advance.
    "refuted" is a result as well: the claim is excluded, and the only open question is whether the effect is negligible or
    reversed. "depends" applies to a sentence over several cells, some of which are significantly on one side and some on
    the other.
    """

    HOLDS = "holds"
    NEGLIGIBLE = "negligible"
    REFUTED = "refuted"
    FAILS = "fails"
    DEPENDS = "depends"
    UNDECIDED = "undecided"
    NOT_COMPARABLE = "not comparable"

    @property
    def symbol(self) -> str:
        """One-character symbol, so that reports do not depend on colour."""
        return {
            "holds": "✓",
            "negligible": "≈",
            "refuted": "≠",
            "fails": "✗",
            "depends": "±",
            "undecided": "?",
            "not comparable": "–",
        }[self.value]


AGAINST = (Verdict.FAILS, Verdict.NEGLIGIBLE, Verdict.REFUTED)
"""Verdicts that decide against a claim."""


class Place(Flag):
    """Positions of values relative to a bound. An interval that straddles a limit has several.

    A narrower interval inside another one has the same positions or fewer. A verdict decided by a single position
    therefore does not change when more runs make the interval narrower.
    """

    BELOW = 1
    WITHIN = 2
    ABOVE = 4


_ALONE = (Place.BELOW, Place.WITHIN, Place.ABOVE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """A set of values from `low` to `high`.

    Parameters
    ----------
    low, high
        Ends of the range, in the unit of the evidence; infinite where open.
    strict
        Whether the bounds themselves lie outside.
    margin
        For a one-sided bound: the smallest difference from it that counts, stated beforehand. Values
        nearer to the bound than this, on either side, lie within the margin. Without a margin no number of seeds
        decides against "more than" if the true value is zero.
    """

    low: float = -math.inf
    high: float = math.inf
    strict: bool = False
    margin: float = 0.0

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, int | float):
            return False
        if self.strict:  # with a strict bound, an open end excludes nothing, not even infinity
            return (value > self.low or self.low == -math.inf) and (value < self.high or self.high == math.inf)
        return self.low <= value <= self.high

    @property
    def asked(self) -> Place:
        """Position required by a claim with this bound."""
        if math.isinf(self.low) == math.isinf(self.high):
            return Place.WITHIN
        return Place.BELOW if math.isinf(self.low) else Place.ABOVE

    def place(self, value: float) -> Place:
        """Return the position of a value: below, within or above two bounds. For a one-sided bound, "within" means closer
        to it than the margin; without a margin no value is within.
        """
        asked = self.asked
        if asked is Place.WITHIN:
            return Place.WITHIN if value in self else Place.BELOW if value < self.high else Place.ABOVE
        at = self.low if asked is Place.ABOVE else self.high
        if self.margin:
            if abs(value - at) < self.margin:
                return Place.WITHIN
            return Place.BELOW if value < at else Place.ABOVE
        if value in self:
            return asked
        return Place.BELOW if asked is Place.ABOVE else Place.ABOVE

    def places(self, low: float, high: float) -> Place:
        """Return every position touched by the interval from `low` to `high`; all three if an end is undefined."""
        if math.isnan(low) or math.isnan(high):
            return Place.BELOW | Place.WITHIN | Place.ABOVE
        first, last = self.place(low), self.place(high)
        if first is Place.BELOW and last is Place.ABOVE and (self.margin or self.asked is Place.WITHIN):
            return Place.BELOW | Place.WITHIN | Place.ABOVE
        return first | last

    def judge(self, low: float, high: float) -> Verdict:
        """Return the verdict on a claim that requires this bound, given the interval of the number.

        If the interval is wholly where the claim requires it, the claim holds. Wholly within the margin: negligible. Wholly on the
        other side: fails. Partly on the other side and partly within the margin: refuted, because no part is where the claim
        requires it. Otherwise the claim is undecided. An exact value is an interval of zero width and is never undecided.
        """
        places = self.places(low, high)
        if places not in _ALONE:
            return Verdict.UNDECIDED if self.asked in places else Verdict.REFUTED
        if places is self.asked:
            return Verdict.HOLDS
        return Verdict.NEGLIGIBLE if places is Place.WITHIN else Verdict.FAILS

    def text(self, unit: str = "") -> str:
        """Return the range as text: `> 0 %`, `20 to 45 %`, `= 0`."""
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
    """Return a number as text, with three significant digits (whole numbers in full) and its unit. Only 0 is printed as
    0, and nothing below 100 as 100.

    Examples
    --------
    >>> number(18.66, "%"), number(99.957, "%"), number(100.0, "%"), number(3e-8)
    ('18.7 %', '99.96 %', '100 %', '3e−08')
    """
    if math.isnan(value):
        return "no data"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    value = 0.0 if abs(value) < 1e-12 else value  # rounding error of an interval's end at 0
    digits = 0 if value == int(value) or abs(value) >= 1000 else 2 - math.floor(math.log10(abs(value)))
    text = f"{value:.{min(max(digits, 0), 6)}f}"
    while abs(value) < 100 and abs(float(text)) == 100:
        digits += 1
        text = f"{value:.{digits}f}"
    if value and not float(text):
        text = f"{value:.2g}"
    text = text.replace("-", "−")
    if not unit:
        return text
    return f"{text} {unit[:-1]}" if text == "1" and unit.endswith("s") and len(unit) > 2 else f"{text} {unit}"


def interval(low: float, high: float) -> str:
    """Format an interval: `1.2 to 3.4`, or that there is none."""
    if math.isnan(low) or math.isnan(high):
        return "no data"
    return f"{number(low)} to {number(high)}"


def above(bound: float, *, margin: float = 0.0) -> Bound:
    """Bound for values greater than `bound`, by at least `margin`."""
    return Bound(low=bound, strict=True, margin=margin)


def below(bound: float, *, margin: float = 0.0) -> Bound:
    """Bound for values less than `bound`, by at least `margin`."""
    return Bound(high=bound, strict=True, margin=margin)


def same(margin: float, *, of: float = 0.0) -> Bound:
    """Equivalence bound: values within `margin` of `of`. The margin is stated before the run."""
    return Bound(low=of - margin, high=of + margin)


def at_least(bound: float) -> Bound:
    """Bound for values of at least `bound`."""
    return Bound(low=bound)


def at_most(bound: float) -> Bound:
    """Bound for values of at most `bound`."""
    return Bound(high=bound)


def between(low: float, high: float) -> Bound:
    """Bound for values from `low` to `high`, both included."""
    return Bound(low=low, high=high)


def exactly(value: float) -> Bound:
    """Bound for a single value."""
    return Bound(low=value, high=value)
