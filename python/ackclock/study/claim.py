"""A claim: one sentence of a publication as two tests, one of the statement itself and one of the effect size. Only
the first, the *direction* stated in the publication, counts as reproduced. The *magnitude* is a number printed in the
publication or added by us, with a separate verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ackclock.errors import InputError
from ackclock.judge.bound import AGAINST, Bound, Verdict
from ackclock.judge.evidence import Evidence, Quantity, conjunction, decisive, finite
from ackclock.judge.over_cells import GENERAL, general
from ackclock.study import answer

if TYPE_CHECKING:
    import polars as pl

    from ackclock.study.reading import Reading

Tables: TypeAlias = "Mapping[str, pl.DataFrame]"
"""The experiments' tables by name, as passed to claims and figures."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """Criterion for values without individual bounds: every value computed by `of` has to lie within `bound`.

    Parameters
    ----------
    bound
        The range, with the smallest effect that counts.
    of
        Computes the numbers from the tables of the study.
    """

    bound: Bound
    of: Callable[[Tables], Sequence[Quantity]] = field(repr=False)

    def __call__(self, tables: Tables) -> Sequence[Evidence]:
        """Return the values as evidence."""
        return [quantity.asked(self.bound) for quantity in self.of(tables)]


@dataclass(frozen=True, slots=True)
class Stated:
    """Criterion with a bound declared in the claim and passed to the measure.

    Parameters
    ----------
    bound
        The range, with the smallest effect that counts.
    of
        Computes the evidence from the tables of the study, for this bound.
    """

    bound: Bound
    of: Callable[[Tables, Bound], Sequence[Evidence]] = field(repr=False)

    def __call__(self, tables: Tables) -> Sequence[Evidence]:
        """Return the evidence."""
        return self.of(tables, self.bound)


BoundBy = Literal["stated", "printed", "ours"]
"""Origin of a bound: the sentence itself ("more than"), a number in the publication, or our addition."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Criterion:
    """Condition that one half of a claim has to meet.

    Parameters
    ----------
    measure
        Computes the evidence from the tables of the study.
    reading
        How vague wording was turned into numbers; empty if nothing was vague.
    cell
        The cell that decides, and the figure, slide or sentence that names it. Empty: the publication names none, and we chose.
    bound
        Origin of the bound.
    printed
        The number as printed in the publication; empty if none is printed.
    reads
        Open questions about the measurement itself (`Reading.of(tables)`); experiments declare their own.
    needs
        Minimum number of independent runs needed for a decision, such as six for a median (`judge.intervals.least_for_quantile`).
        A study whose plan has fewer runs is refused when it is loaded.
    over
        "each": every number that counts has to hold. "general": the numbers that count are cells of a general sentence, judged by the rule of
        `ackclock.judge.over_cells`. "turns": for a cause, whose numbers are those of its claim without the cause: it
        holds if the claim's criterion no longer holds.
    """

    measure: Callable[[Tables], Sequence[Evidence]] = field(repr=False)
    reading: str = ""
    cell: str = ""
    bound: BoundBy = "ours"
    printed: str = ""
    reads: tuple[Reading, ...] = ()
    needs: int = 2
    over: Literal["each", "general", "turns"] = "each"

    def judge(self, tables: Tables, looks: int = 1) -> Judged:
        """Measure and judge; for `looks` see `Evidence.judge`."""
        with answer.of(self.measure):
            evidence = answer.every(self.measure, self.measure(tables), Evidence, "ackclock.judge.Evidence, or several")
            for e in evidence:
                answer.checked(self.measure, e.check)
            if self.over == GENERAL:
                found = general(evidence, looks)
                verdict, evidence = found.verdict, found.evidence
            else:
                verdict = conjunction(evidence, looks)
                if self.over == TURNS:
                    verdict = _turned(verdict)
        labels = [e.label for e in evidence]
        if len(set(labels)) < len(labels):
            twice = next(text for text in labels if labels.count(text) > 1)
            raise InputError(f"evidence: found two numbers called {twice!r}; allowed: one of each name")
        return Judged(criterion=self, verdict=verdict, evidence=evidence)


TURNS = "turns"


def _turned(verdict: Verdict) -> Verdict:
    """Return the verdict on a cause: the opposite of the verdict on the claim once the cause is removed."""
    if verdict is Verdict.HOLDS:
        return Verdict.FAILS
    return Verdict.HOLDS if verdict in AGAINST else verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """One half of a claim with its evidence and verdict."""

    criterion: Criterion
    verdict: Verdict
    evidence: tuple[Evidence, ...]

    @property
    def decisive(self) -> Evidence | None:
        """The number that determines the verdict."""
        return decisive(self.evidence)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary."""
        shown = self.decisive
        interval = shown.interval if shown else None
        return {
            "verdict": self.verdict.value,
            "over": self.criterion.over,
            "bound_by": self.criterion.bound,
            "printed": self.criterion.printed,
            "reading": self.criterion.reading,
            "cell": self.criterion.cell,
            "measured": shown.label if shown else "",
            "value": finite(shown.value) if shown else None,
            "unit": shown.unit if shown else "",
            "interval": [finite(x) for x in interval] if interval else None,
            "bound": shown.bound.text(shown.unit) if shown else "",
            "seeds": shown.seeds if shown else 0,
            "evidence": [e.to_json() for e in self.evidence],
        }


DIRECTION, MAGNITUDE = "direction", "magnitude"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cause:
    """A cause ("because X"), tested by removing X, or by adding it where it is absent.

    Parameters
    ----------
    because
        X, as the end of a sentence that begins with "because": "the queue overflows".
    intervention
        Difference of the other arm, in words.
    criterion
        What has to be true of the effect in that arm, usually that less than half of it remains.
    """

    because: str
    intervention: str
    criterion: Criterion

    @property
    def name(self) -> str:
        """The cause's name among the claim's halves."""
        return f"because {self.because}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A sentence from a publication, with its tests.

    Parameters
    ----------
    id
        Short name, unique in the study.
    place
        Where in the publication it is said.
    statement
        What it says, in our words, as a testable sentence.
    direction
        The test of what the sentence says. None: the sentence only states a number.
    magnitude
        The test of the size of the effect: a printed number, or our own. None: there is none.
    note
        Explanation of the verdicts: a template (`ackclock.study.note`), whose numbers come from the evidence.
    not_comparable
        Why nothing here can be compared with the statement, if so. The measurements are shown but decide nothing.
    causes
        Causes, each tested by an intervention and with its own verdict.
    guesses
        Possible causes: sentences that have not been tested and are called guesses on the page.
    intervention
        What is replaced or removed if the direction itself tests a cause ("due to", "contributes"). Empty if it does not.
    """

    id: str
    place: str
    statement: str
    direction: Criterion | None = None
    magnitude: Criterion | None = None
    note: str = ""
    not_comparable: str | None = None
    causes: tuple[Cause, ...] = ()
    guesses: tuple[str, ...] = ()
    intervention: str = ""

    def __post_init__(self) -> None:
        if self.direction is None and self.magnitude is None and self.not_comparable is None:
            raise InputError(f"claim {self.id}: found neither direction nor magnitude; allowed: one of them, or both")

    @property
    def halves(self) -> Iterator[tuple[str, Criterion]]:
        """Name and test of each half, and of each cause."""
        for name, criterion in ((DIRECTION, self.direction), (MAGNITUDE, self.magnitude)):
            if criterion is not None:
                yield name, criterion
        for cause in self.causes:
            yield cause.name, cause.criterion

    def judge(self, tables: Tables, looks: int = 1) -> Outcome:
        """Measure and judge; for `looks` see `Evidence.judge`."""
        return Outcome(claim=self, halves={name: criterion.judge(tables, looks) for name, criterion in self.halves})


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """A claim with the evidence and verdict of each half.

    Parameters
    ----------
    halves
        "direction" and "magnitude", if the claim has them, and its causes.
    """

    claim: Claim
    halves: Mapping[str, Judged]

    @property
    def verdict(self) -> Verdict:
        """Verdict of the claim: that of its direction, which alone counts as reproduced. A claim that is a bare number has the verdict of the number."""
        if self.claim.not_comparable:
            return Verdict.NOT_COMPARABLE
        return self.main.verdict if self.main else Verdict.UNDECIDED

    @property
    def main(self) -> Judged | None:
        """Half that determines the claim's verdict."""
        return self.halves.get(DIRECTION) or self.halves.get(MAGNITUDE)

    @property
    def beside(self) -> Judged | None:
        """The magnitude of a claim that also has a direction; otherwise None."""
        return self.halves.get(MAGNITUDE) if DIRECTION in self.halves else None

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """Verdict of each half."""
        if self.claim.not_comparable:
            return dict.fromkeys(self.halves, Verdict.NOT_COMPARABLE) or {DIRECTION: Verdict.NOT_COMPARABLE}
        return {name: half.verdict for name, half in self.halves.items()}

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The numbers of all halves and causes."""
        return tuple(e for half in self.halves.values() for e in half.evidence)

    @property
    def decisive(self) -> Evidence | None:
        """The number that determines the verdict."""
        return self.main.decisive if self.main else None
