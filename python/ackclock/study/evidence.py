"""One measured number and the range that a claim requires; the verdict on several of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ackclock.stats import Estimate, quantile_interval
from ackclock.study.estimates import Array
from ackclock.study.verdict import Range, Verdict, interval, number


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """One measured number and the range that a claim requires.

    Parameters
    ----------
    label
        What was measured, in a few words; unique within its criterion.
    value
        The estimate; infinite if it is a time that was not reached.
    bound
        The range that the claim asks for.
    low, high
        95 % interval of the value; left out for exact values.
    unit
        Unit of value, interval and bound.
    seeds
        Independent runs behind the number; 0 for a computation without chance.
    weighs
        False for numbers that are only shown and decide nothing.
    key
        Name by which a note quotes the number; empty if none does.
    not_reached
        Runs in which the value was not reached before they ended, of `seeds`.
    cap
        When those runs ended; of their values we only know that they are greater.
    """

    label: str
    value: float
    bound: Range
    low: float | None = None
    high: float | None = None
    unit: str = ""
    seeds: int = 0
    weighs: bool = True
    key: str = ""
    not_reached: int = 0
    cap: float = math.inf

    @classmethod
    def of(
        cls,
        estimate: Estimate,
        label: str,
        bound: Range,
        *,
        unit: str = "",
        factor: float = 1.0,
        weighs: bool = True,
        key: str = "",
    ) -> Evidence:
        """Make evidence of an estimate.

        Parameters
        ----------
        estimate
            Value, interval and number of independent observations.
        label, bound, unit, weighs, key
            As for the class.
        factor
            Multiplies value and interval, to change the unit; above zero.
        """
        return cls(
            label=label,
            value=factor * estimate.value,
            low=factor * estimate.low,
            high=factor * estimate.high,
            bound=bound,
            unit=unit,
            seeds=estimate.n,
            weighs=weighs,
            key=key,
        )

    @classmethod
    def reached(
        cls, times: Array, cap: float, label: str, bound: Range, *, unit: str = "s", weighs: bool = True, key: str = ""
    ) -> Evidence:
        """Median of times of which some may not have been reached.

        Parameters
        ----------
        times
            One per run; infinite where the run ended first.
        cap
            How long a run had. A time that was not reached is known to be greater, no more: it is no value of its own, enters
            no ratio, and never equals a bound.
        label, bound, unit, weighs, key
            As for the class.
        """
        beyond = np.isinf(times)
        # Ranks are all that a median and its interval need; a number above all others stands for what was not reached.
        found = quantile_interval(np.where(beyond, 1e300, times), 0.5)
        value, low, high = (math.inf if x > 1e299 else x for x in (found.value, found.low, found.high))
        return cls(
            label=label,
            value=value,
            low=low,
            high=high,
            bound=bound,
            unit=unit,
            seeds=times.size,
            weighs=weighs,
            key=key,
            not_reached=int(beyond.sum()),
            cap=cap,
        )

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval, or None for an exact value."""
        if self.low is None or self.high is None:
            return None
        return (self.low, self.high)

    @property
    def verdict(self) -> Verdict:
        """Verdict on this number alone."""
        return self.judge()

    def judge(self, among: int = 1) -> Verdict:
        """Verdict on this number as one of several.

        Parameters
        ----------
        among
            How many numbers a claim asks for at once. Their number makes it likelier that one misses by chance, so one that
            misses has to do so at 1 - 0.05 / among (Bonferroni; Holm's first step is the same). For all of them to hold by
            mistake, each has to: that needs no correction.
        """
        low, high = self.interval or (self.value, self.value)
        verdict = self._at(low, high)
        if verdict is Verdict.FAILS and among > 1 and self.interval is not None:
            factor = _wider(among, self.seeds)
            apart = (self.value - low, high - self.value)
            if self._at(self.value - factor * apart[0], self.value + factor * apart[1]) is not Verdict.FAILS:
                return Verdict.UNDECIDED
        return verdict

    def _at(self, low: float, high: float) -> Verdict:
        if math.isinf(low) and low > 0:
            low = math.nextafter(self.cap, math.inf)
        return self.bound.judge(low, high)

    @property
    def value_text(self) -> str:
        """The value as a reader should see it: `1.2 s`, or `> 3 s` if it was not reached."""
        if math.isinf(self.value) and self.not_reached:
            return f"> {number(self.cap, self.unit)}"
        return number(self.value, self.unit)

    @property
    def interval_text(self) -> str:
        """The interval as a reader should see it."""
        if self.interval is None:
            return "exact"
        text = interval(*self.interval).replace("∞", f"more than {number(self.cap)}" if self.not_reached else "∞")
        return f"{text}; {self.not_reached} of {self.seeds} not reached" if self.not_reached else text

    def to_json(self) -> dict[str, Any]:
        """Plain values; NaN and infinity become null."""
        interval = self.interval
        found: dict[str, Any] = {
            "label": self.label,
            "value": finite(self.value),
            "interval": [finite(x) for x in interval] if interval else None,
            "unit": self.unit,
            "bound": self.bound.text(self.unit),
            "seeds": self.seeds,
            "verdict": self.verdict.value,
            "weighs": self.weighs,
        }
        if self.not_reached:
            found |= {"not_reached": self.not_reached, "cap": self.cap}
        return found


def _wider(among: int, seeds: int) -> float:
    """How many times as wide an interval at 1 - 0.05 / among is as one at 95 % (Student's t)."""
    from scipy import stats

    freedom = max(seeds - 1, 1) if seeds else math.inf
    wide, plain = (float(stats.t.ppf(1 - 0.025 / k, freedom)) for k in (among, 1))
    return wide / plain


def conjunction(evidence: Sequence[Evidence]) -> Verdict:
    """Verdict on several numbers at once: fails if one fails among them, holds if all hold, undecided otherwise."""
    weighing = [e for e in evidence if e.weighs]
    verdicts = {e.judge(len(weighing)) for e in weighing}
    if Verdict.FAILS in verdicts:
        return Verdict.FAILS
    if not verdicts or Verdict.UNDECIDED in verdicts:
        return Verdict.UNDECIDED
    return Verdict.HOLDS


def decisive(evidence: Sequence[Evidence]) -> Evidence | None:
    """The number that settles the verdict: the first that fails, else the first undecided, else the first."""
    weighing = [e for e in evidence if e.weighs]
    for verdict in (Verdict.FAILS, Verdict.UNDECIDED):
        for e in weighing:
            if e.judge(len(weighing)) is verdict:
                return e
    return next(iter((*weighing, *evidence)), None)


def finite(value: float) -> float | None:
    """The value, or None where JSON has no word for it."""
    return value if math.isfinite(value) else None
