"""A measured number and the range required by a claim, and the verdict on several such numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np

from ackclock.errors import InputError
from ackclock.judge.bound import AGAINST, Bound, Place, Verdict, interval, number, same
from ackclock.judge.estimates import Array, scaled
from ackclock.judge.intervals import Estimate, quantile_interval
from ackclock.judge.trend import Settling


@dataclass(frozen=True, kw_only=True, slots=True)
class Quantity:
    """A measured number without a claim about it; a `Bound` turns it into `Evidence`.

    Parameters
    ----------
    label
        What was measured, in a few words.
    estimate
        The number with its interval over independent runs; a plain number is exact.
    unit
        Unit of the number and its interval.
    key
        Name by which a note quotes it; empty if none does.
    weighs
        False for numbers that are only displayed and decide nothing.
    trend
        Change of the number from the first to the second half of the measured window, with its interval over runs
        (`ackclock.judge.trend.trend`), or with the length of a window that would show it settled (`settling`); None if
        the number is not a mean over time.
    """

    label: str
    estimate: Estimate | float
    unit: str = ""
    key: str = ""
    weighs: bool = True
    trend: Estimate | Settling | None = None

    def asked(self, bound: Bound) -> Evidence:
        """Return the number as evidence for a claim that requires `bound`."""
        if not isinstance(self.estimate, Estimate):
            return Evidence(
                label=self.label, value=self.estimate, bound=bound, unit=self.unit, key=self.key, weighs=self.weighs
            )
        found = Evidence.of(self.estimate, self.label, bound, unit=self.unit, key=self.key, weighs=self.weighs)
        return replace(found, trend=self.trend)


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """One measured number and the range required by a claim.

    Parameters
    ----------
    label
        What was measured, in a few words; unique within its criterion.
    value
        The estimate; infinite for a time that was not reached.
    bound
        The range that the claim requires.
    low, high
        95 % interval of the value; None for exact values.
    unit
        Unit of value, interval and bound.
    seeds
        Number of independent runs; 0 for a computation without randomness.
    weighs
        False for numbers that are only displayed and decide nothing.
    key
        Name by which a note quotes the number; empty if none does.
    not_reached
        Number of the `seeds` runs that ended before the value was reached.
    cap
        End time of those runs, a lower bound of their values.
    trend
        As for `Quantity`.
    cell
        Values that identify the number's cell, such as {"rate": "64 Kb/s"}, so that a claim can state what
        separates its cells.
    estimate
        The underlying estimate, with its runs.
    """

    label: str
    value: float
    bound: Bound
    low: float | None = None
    high: float | None = None
    unit: str = ""
    seeds: int = 0
    weighs: bool = True
    key: str = ""
    not_reached: int = 0
    cap: float = math.inf
    trend: Estimate | Settling | None = None
    cell: Mapping[str, object] = field(default_factory=dict, compare=False)
    estimate: Estimate | None = field(default=None, repr=False, compare=False)

    def check(self) -> None:
        """Refuse a value of the wrong type from a user's measure.

        Raises
        ------
        InputError
            If the type is wrong.
        """
        for name, found, kind in (
            *((name, getattr(self, name), str) for name in ("label", "unit", "key")),
            ("value", self.value, Real),
            *((name, found, Real) for name, found in (("low", self.low), ("high", self.high)) if found is not None),
        ):
            if not isinstance(found, kind):
                what = "nothing" if found is None else type(found).__name__
                allowed = "a text" if kind is str else "a number"
                raise InputError(f"{name} of a measured number: found {what}; allowed: {allowed}")

    @classmethod
    def of(
        cls,
        estimate: Estimate,
        label: str,
        bound: Bound,
        *,
        unit: str = "",
        factor: float = 1.0,
        weighs: bool = True,
        key: str = "",
        cell: Mapping[str, object] | None = None,
    ) -> Evidence:
        """Return evidence based on an estimate.

        Parameters
        ----------
        estimate
            Value, interval and number of independent observations.
        label, bound, unit, weighs, key, cell
            As for the class.
        factor
            Multiplies value and interval, to change the unit; above zero.

        A number that is the same in all runs is not exact: it keeps its runs and its interval, however narrow. Exact numbers are computed
        without randomness, and are given as plain numbers.
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
            cell=cell or {},
            estimate=scaled(estimate, factor),
        )

    @classmethod
    def reached(
        cls, times: Array, cap: float, label: str, bound: Bound, *, unit: str = "s", weighs: bool = True, key: str = ""
    ) -> Evidence:
        """Median of times, some of which may not have been reached.

        Parameters
        ----------
        times
            One time per run; infinite if the run ended first.
        cap
            Length of a run. A time that was not reached is only known to be longer: it is not a value, enters no ratio,
            and never equals a bound.
        label, bound, unit, weighs, key
            As for the class.
        """
        beyond = np.isinf(times)
        # A median and its interval depend only on ranks, so a number above all others can represent times not
        # reached.
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
        """95 % interval; None for an exact value."""
        if self.low is None or self.high is None:
            return None
        return (self.low, self.high)

    @property
    def drifts(self) -> bool:
        """Whether the number was still changing during the measured window: the interval of its change excludes zero."""
        change = self.change
        return change is not None and same(0).places(change.low, change.high) in (Place.BELOW, Place.ABOVE)

    @property
    def change(self) -> Estimate | None:
        """Change from the first half of the measured window to the second; None if the number is not a mean over time."""
        return self.trend.change if isinstance(self.trend, Settling) else self.trend

    @property
    def verdict(self) -> Verdict:
        """Verdict on this number alone."""
        return self.judge()

    def judge(self, among: int = 1, *, always: bool = False, looks: int = 1) -> Verdict:
        """Return the verdict on this number as one of several.

        Parameters
        ----------
        among
            Number of values that a claim requires at once. With more values, one is more likely to miss by chance, so a
            value that decides against the claim has to do so at 1 - 0.05 / among (Bonferroni; Holm's
            first step is the same). All of them hold by mistake only if each does, which needs no correction.
        always
            Whether values that hold are corrected as well, as needed if only one of several has to hold.
        looks
            Number of looks at the values, each with more runs. Every look gets an equal part of the 5 % (Bonferroni),
            so that an error in any of them is as rare as with a single look.
        """
        verdict = self._at(*self._ends(looks))
        if among == 1 or self.interval is None:
            return verdict
        corrected = self._at(*self._ends(among * looks))
        if always:
            return corrected
        if verdict in AGAINST:
            return corrected if corrected in AGAINST else Verdict.UNDECIDED
        return verdict

    def _ends(self, numbers: int) -> tuple[float, float]:
        """Return the ends of the interval at 1 - 0.05 / `numbers`. Distances from a value that was not reached are infinite
        and cannot be widened: then the lower end stays beyond the runs' end if enough of them were not reached, and is
        open otherwise.
        """
        if self.interval is None or numbers == 1:
            return self.interval or (self.value, self.value)
        low, high = self.interval
        if math.isinf(self.value) and self.value > 0:
            return (low if math.isinf(low) and self._is_beyond(numbers) else -math.inf, math.inf)
        factor = wider(numbers, self.seeds)
        return self.value - factor * (self.value - low), self.value + factor * (high - self.value)

    def _is_beyond(self, numbers: int) -> bool:
        """Return whether the median is beyond the runs' end at 1 - 0.05 / `numbers`: at least as many runs not reached have
        that chance if it is not (if no run reached it, 2 * 0.5^n).
        """
        from scipy.special import bdtr

        if not self.not_reached:
            return False
        return 2 * float(bdtr(self.seeds - self.not_reached, self.seeds, 0.5)) <= 0.05 / numbers

    def _at(self, low: float, high: float) -> Verdict:
        if math.isinf(low) and low > 0:
            low = math.nextafter(self.cap, math.inf)
        return self.bound.judge(low, high)

    @property
    def value_text(self) -> str:
        """The value as text: `1.2 s`, or `> 3 s` if it was not reached."""
        if math.isinf(self.value) and self.not_reached:
            return f"> {number(self.cap, self.unit)}"
        return number(self.value, self.unit)

    @property
    def interval_text(self) -> str:
        """The interval as text."""
        if self.interval is None:
            return "exact"
        if all(map(math.isinf, self.interval)) and not self.not_reached:
            return f"none with {self.seeds} runs"
        text = interval(*self.interval).replace("∞", f"more than {number(self.cap)}" if self.not_reached else "∞")
        if self.not_reached:
            text += f"; {self.not_reached} of {self.seeds} not reached"
        if (change := self.change) is not None and self.drifts:
            text += f"; still changes, by {number(change.value)} from the first half of the window to the second"
            text += f"; {self.trend.told}" if isinstance(self.trend, Settling) else ""
        return text

    def to_json(self) -> dict[str, Any]:
        """Return plain values; NaN and infinity become null."""
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
        if (change := self.change) is not None:
            found["trend"] = {"value": change.value, "interval": [change.low, change.high], "drifts": self.drifts}
            if isinstance(self.trend, Settling):
                found["trend"]["times_as_long"] = finite(self.trend.factor)
        return found


def wider(among: int, seeds: int) -> float:
    """Return the ratio of interval widths at confidence levels 1 - 0.05 / among and 95 % (Student's t)."""
    from scipy.special import stdtrit

    freedom = max(seeds - 1, 1) if seeds else math.inf
    wide, plain = (float(stdtrit(freedom, 1 - 0.025 / k)) for k in (among, 1))
    return wide / plain


ORDER = (Verdict.FAILS, Verdict.REFUTED, Verdict.NEGLIGIBLE, Verdict.UNDECIDED, Verdict.HOLDS)
"""Verdicts by severity. The first number with the most severe verdict decides the verdict on several numbers. A claim
about all numbers fails with the first excluded one, even if others are undecided.
"""


def conjunction(evidence: Sequence[Evidence], looks: int = 1) -> Verdict:
    """Return the verdict on several numbers at once, which is that of the deciding number; `looks` as for
    `Evidence.judge`. If one number is negligible and another undecided, the claim is refuted: it cannot hold, although more
    runs may still make the other fail.
    """
    weighing = [e for e in evidence if e.weighs]
    verdicts = {e.judge(len(weighing), looks=looks) for e in weighing}
    found = next((verdict for verdict in ORDER if verdict in verdicts), Verdict.UNDECIDED)
    if found is Verdict.NEGLIGIBLE and Verdict.UNDECIDED in verdicts:
        return Verdict.REFUTED
    return found


def decisive(evidence: Sequence[Evidence]) -> Evidence | None:
    """Return the number that decides the verdict: the first that decides against the claim, else the first undecided one, else the first that holds."""
    weighing = [e for e in evidence if e.weighs]
    verdicts = [e.judge(len(weighing)) for e in weighing]
    for verdict in ORDER:
        if verdict in verdicts:
            return weighing[verdicts.index(verdict)]
    return next(iter(evidence), None)


def finite(value: float) -> float | None:
    """Return the value to twelve digits; None for NaN and infinity, which JSON cannot express. Sums over several threads differ in the sixteenth digit."""
    return float(f"{value:.12g}") if math.isfinite(value) else None
