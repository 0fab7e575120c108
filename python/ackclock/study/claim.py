"""A claim: one sentence of a publication, made testable, with the verdict that is expected."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from ackclock.stats import Estimate
from ackclock.study.verdict import Range, Verdict

if TYPE_CHECKING:
    import polars as pl

Tables: TypeAlias = "Mapping[str, pl.DataFrame]"
"""What the experiments of a study hand to its claims and figures: tables by name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """One measured number and the range it is held against.

    Parameters
    ----------
    label
        What was measured, in a few words.
    value
        The estimate.
    bound
        The range that the claim asks for.
    low, high
        95 % interval of the value; left out for exact values.
    unit
        Unit of value, interval and bound.
    seeds
        Independent runs behind the number; 0 for a computation without chance.
    weighs
        False for numbers shown for context only.
    """

    label: str
    value: float
    bound: Range
    low: float | None = None
    high: float | None = None
    unit: str = ""
    seeds: int = 0
    weighs: bool = True

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
    ) -> Evidence:
        """Make evidence of an estimate.

        Parameters
        ----------
        estimate
            Value, interval and number of independent observations.
        label, bound, unit, weighs
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
        low, high = self.interval or (self.value, self.value)
        return self.bound.judge(low, high)

    def to_json(self) -> dict[str, Any]:
        """Plain values; NaN becomes null."""
        interval = self.interval
        return {
            "label": self.label,
            "value": _finite(self.value),
            "interval": [_finite(x) for x in interval] if interval else None,
            "unit": self.unit,
            "bound": self.bound.text(self.unit),
            "seeds": self.seeds,
            "verdict": self.verdict.value,
            "weighs": self.weighs,
        }


Expected = Verdict | Mapping[str, Verdict]
"""A verdict for every scale, or one for each scale by name (fewer seeds may leave a claim undecided)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A sentence of a publication with its test.

    Parameters
    ----------
    id
        Short name, unique in the study.
    place
        Where the publication says it.
    statement
        What it says, in our words, as a testable sentence.
    reading
        How vague words were turned into numbers; empty if nothing was vague.
    measure
        Computes the evidence from the tables of the study.
    expected
        Verdict recorded from an earlier run, so that a change shows.
    note
        Why the verdict is what it is.
    not_comparable
        Set where nothing here can be held against the statement: the reason.
    """

    id: str
    place: str
    statement: str
    measure: Callable[[Tables], Sequence[Evidence]] = field(repr=False)
    expected: Expected
    reading: str = ""
    note: str = ""
    not_comparable: str | None = None

    def expected_at(self, scale: str) -> Verdict:
        """Verdict recorded for `scale`."""
        if isinstance(self.expected, Verdict):
            return self.expected
        return self.expected[scale]

    def judge(self, tables: Tables, *, scale: str) -> Outcome:
        """Measure and decide."""
        evidence = tuple(self.measure(tables))
        verdict = Verdict.NOT_COMPARABLE if self.not_comparable else conjunction(evidence)
        return Outcome(claim=self, verdict=verdict, expected=self.expected_at(scale), evidence=evidence)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """A claim with its evidence and verdict."""

    claim: Claim
    verdict: Verdict
    expected: Verdict
    evidence: tuple[Evidence, ...]

    @property
    def decisive(self) -> Evidence | None:
        """The number that settles the verdict: the first that fails, else the first undecided, else the first."""
        weighing = [e for e in self.evidence if e.weighs]
        for verdict in (Verdict.FAILS, Verdict.UNDECIDED):
            for evidence in weighing:
                if evidence.verdict is verdict:
                    return evidence
        return next(iter((*weighing, *self.evidence)), None)

    def to_json(self) -> dict[str, Any]:
        """The shape that `ackclock study run --json` prints for each claim."""
        shown = self.decisive
        interval = shown.interval if shown else None
        return {
            "id": self.claim.id,
            "statement": self.claim.statement,
            "place": self.claim.place,
            "verdict": self.verdict.value,
            "expected": self.expected.value,
            "measured": shown.label if shown else "",
            "value": _finite(shown.value) if shown else None,
            "unit": shown.unit if shown else "",
            "interval": [_finite(x) for x in interval] if interval else None,
            "bound": shown.bound.text(shown.unit) if shown else "",
            "seeds": shown.seeds if shown else 0,
            "reason": self.claim.not_comparable or self.claim.note,
            "evidence": [e.to_json() for e in self.evidence],
        }


def conjunction(evidence: Sequence[Evidence]) -> Verdict:
    """Verdict on several numbers at once: fails if one fails, holds if all hold, undecided otherwise."""
    verdicts = {e.verdict for e in evidence if e.weighs}
    if Verdict.FAILS in verdicts:
        return Verdict.FAILS
    if not verdicts or Verdict.UNDECIDED in verdicts:
        return Verdict.UNDECIDED
    return Verdict.HOLDS


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
