"""Questions that a publication leaves open, as a declared grid of readings, and the verdicts of each claim over the
grid.

A study runs its *main* reading: the first option for each open question, chosen and justified before the run.
With `--readings` it runs the grid as well, and the report shows a specification curve for each claim: the
fraction of readings in which it holds, and the decisive reading.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from ackclock.judge.bound import AGAINST, Verdict
from ackclock.judge.evidence import Evidence

if TYPE_CHECKING:
    import polars as pl

    from ackclock.study.claim import Claim
    from ackclock.study.plan import Plan

Choice = tuple[tuple[str, str], ...]
"""A complete reading: (name, option) in the order of the grid."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """A question that a publication leaves open, with its possible answers.

    Parameters
    ----------
    name
        One word.
    question
        What is left open.
    options
        Option -> what it means. The first is the main reading.
    why
        Why the first was chosen, written before the run.
    crossed
        Whether it is combined with all options of the other crossed readings. False: varied alone, with the others at
        their main option, for questions that should not interact or are expensive.
    """

    name: str
    question: str
    options: Mapping[str, str]
    why: str
    crossed: bool = True

    @property
    def main(self) -> str:
        """The option run by the study."""
        return next(iter(self.options))

    def of(self, where: Plan | Mapping[str, pl.DataFrame]) -> str:
        """Return the option selected by a plan (in an experiment), or the one with which the tables were made (in a claim)."""
        chosen: Mapping[str, str] = getattr(where, "reading", {})
        return chosen.get(self.name, self.main)


def grid(readings: Sequence[Reading]) -> list[Choice]:
    """Return all complete readings, the main one first."""
    crossed = [r for r in readings if r.crossed]
    main = {r.name: r.main for r in readings}
    found = [
        main | dict(zip((r.name for r in crossed), chosen, strict=True))
        for chosen in product(*(r.options for r in crossed))
    ]
    found += [main | {r.name: option} for r in readings if not r.crossed for option in list(r.options)[1:]]
    return [tuple(one.items()) for one in found]


class Read(Mapping[str, "pl.DataFrame"]):
    """A study's tables under one reading. Records the names of the tables that are read.

    Parameters
    ----------
    tables
        Tables by name.
    reading
        Name -> option.
    """

    def __init__(self, tables: Mapping[str, pl.DataFrame], reading: Mapping[str, str] | None = None) -> None:
        self._tables = tables
        self.reading = dict(reading or {})
        self.seen: set[str] = set()

    def __getitem__(self, name: str) -> pl.DataFrame:
        self.seen.add(name)
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


@dataclass(frozen=True, kw_only=True, slots=True)
class Specification:
    """Verdict on a claim under one reading."""

    choice: Choice
    verdict: Verdict
    decisive: Evidence | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """Verdicts on a claim over the grid of readings.

    Parameters
    ----------
    claim
        The claim.
    half
        "direction", or "magnitude" of a bare number.
    readings
        Readings on which its experiments, or its measurement, depend.
    specifications
        Specifications, the main one first.
    """

    claim: Claim
    half: str
    readings: tuple[Reading, ...]
    specifications: tuple[Specification, ...]

    @property
    def share(self) -> float:
        """Fraction of the readings in which the claim holds."""
        return self.count(Verdict.HOLDS) / len(self.specifications)

    def count(self, verdict: Verdict) -> int:
        """Return the number of readings with this verdict."""
        return sum(s.verdict is verdict for s in self.specifications)

    @property
    def turns(self) -> bool:
        """Whether the claim holds in some readings and is decided against in others. An undecided reading may merely
        need more seeds, and does not count.
        """
        return bool(self.count(Verdict.HOLDS) and any(self.count(v) for v in AGAINST))

    def share_of(self, reading: Reading, option: str) -> float:
        """Return the fraction of decided readings with this option in which the claim holds; NaN if there are none."""
        own = [s.verdict for s in self.specifications if dict(s.choice)[reading.name] == option]
        decided = [v for v in own if v is Verdict.HOLDS or v in AGAINST]
        return decided.count(Verdict.HOLDS) / len(decided) if decided else math.nan

    @property
    def decides(self) -> Reading | None:
        """Reading with the options that change that fraction the most; None if no reading changes a verdict."""
        best, most = None, 0.0
        if not self.turns:
            return None
        for reading in self.readings:
            shares = [x for x in (self.share_of(reading, option) for option in reading.options) if not math.isnan(x)]
            if shares and max(shares) - min(shares) > most + 1e-9:
                best, most = reading, max(shares) - min(shares)
        return best

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary."""
        return {
            "id": self.claim.id,
            "half": self.half,
            "readings": len(self.specifications),
            "share": self.share,
            "decides": self.decides.name if self.decides else None,
            "specifications": [
                {
                    "reading": dict(s.choice),
                    "verdict": s.verdict.value,
                    **({} if s.decisive is None else {"evidence": s.decisive.to_json()}),
                }
                for s in self.specifications
            ],
        }
