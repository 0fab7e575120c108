"""One verdict on a sentence about many cells if the publication singles none out: the rule as data, and its
evaluation.

The same rule is printed in `docs/studies/tolerance.md`, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ackclock.judge.bound import Bound, Place, Verdict
from ackclock.judge.estimates import mean_of, scaled
from ackclock.judge.evidence import Evidence
from ackclock.judge.intervals import Estimate

GENERAL = "general"
"""Kind of a sentence without "always" or "each"."""

RULE: Mapping[str, str] = {
    "always, never, each": "every cell weighs, and the first that does not hold settles it",
    "a cell is named": "that cell, or those that are named",
    "a subset is named": "the subset, with the publication's word for it quoted beside",
    "none of these: holds": "the equally weighted mean of all cells lies where the sentence asks, and no cell is significantly on the other side",
    "none of these: depends": "cells lie significantly on both sides; the share of each, and the variable that parts them",
    "none of these: fails, negligible or refuted": "the mean of the cells is excluded from where the sentence asks",
    "significantly": "at 95 %, corrected for the number of cells",
}
"""Kind of sentence or verdict -> cells that decide, and how. Fixed before any study was run with this rule."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OverCells:
    """Verdict on a sentence about an experiment's cells.

    Parameters
    ----------
    verdict
        Verdict by the rule.
    evidence
        The mean of the cells, which decides the verdict; the percentages of cells on either side; then the cells.
    parted
        Variable that best separates the two groups of cells; empty unless the verdict is "depends".
    """

    verdict: Verdict
    evidence: tuple[Evidence, ...]
    parted: str = ""


def general(evidence: Sequence[Evidence], looks: int = 1) -> OverCells:
    """Judge a general sentence.

    Parameters
    ----------
    evidence
        Numbers, of which those that weigh are the cells; others are only shown.
    looks
        See `Evidence.judge`.
    """
    cells = [e for e in evidence if e.weighs]
    beside = [e for e in evidence if not e.weighs]
    if len(cells) < 2:
        verdict = cells[0].judge(looks=looks) if cells else Verdict.UNDECIDED
        return OverCells(verdict=verdict, evidence=tuple(evidence))
    ways = [_way(e, len(cells), looks) for e in cells]
    so, other = ways.count(1), ways.count(-1)
    mean = _mean(cells)
    found = mean.judge(looks=looks)
    if so and other:
        found = Verdict.DEPENDS
    elif found is Verdict.HOLDS and other:
        found = Verdict.UNDECIDED
    parted = _parted(cells, ways) if found is Verdict.DEPENDS else ""
    shares = [
        Evidence(
            label=f"cells on which it is {what}", value=float(n), bound=Bound(), unit=f"of {len(cells)}", weighs=False, key=f"cells_{key}"
        )
        for what, key, n in (
            ("so", "so", so),
            (f"the other way round{f'; parted by {parted}' if parted else ''}", "reverse", other),
        )
    ]  # fmt: skip
    return OverCells(
        verdict=found, evidence=(mean, *shares, *(replace(e, weighs=False) for e in cells), *beside), parted=parted
    )


def _way(e: Evidence, among: int, looks: int) -> int:
    """Return 1 if a cell is significantly as claimed, -1 if it is significantly the opposite, else 0. A value on the
    bound itself counts as 0.
    """
    verdict = e.judge(among, always=True, looks=looks)
    if verdict is Verdict.HOLDS:
        return 1
    if verdict is not Verdict.FAILS:
        return 0
    low, high = e.interval or (e.value, e.value)
    at = {Place.ABOVE: high < e.bound.low, Place.BELOW: low > e.bound.high}
    return -1 if at.get(e.bound.asked, True) else 0


def _mean(cells: Sequence[Evidence]) -> Evidence:
    """Return the equally weighted mean of the cells as evidence, with the cells' bound."""
    first = cells[0]
    label = f"mean of {len(cells)} cells"
    drawn = [e for e in cells if e.interval is not None]
    exact = sum(e.value for e in cells if e.interval is None) / len(cells)
    if not drawn:
        return Evidence(label=label, value=exact, bound=first.bound, unit=first.unit, key="mean")
    found = scaled(mean_of([_estimate(e) for e in drawn]), len(drawn) / len(cells), exact)
    return Evidence.of(found, label, first.bound, unit=first.unit, key="mean")


def _estimate(e: Evidence) -> Estimate:
    """Return a cell's estimate, even if its runs are unknown."""
    if e.estimate is not None:
        return e.estimate
    low, high = e.interval or (e.value, e.value)
    return Estimate(value=e.value, low=low, high=high, level=0.95, n=e.seeds)


def _parted(cells: Sequence[Evidence], ways: Sequence[int]) -> str:
    """Return the variable whose values best separate the two sides: for most cells, the side is that of the majority of
    cells with the same value.
    """
    names = {name: None for e in cells for name in e.cell}

    def right(name: str) -> int:
        groups: dict[Any, list[int]] = {}
        for e, way in zip(cells, ways, strict=True):
            if way:
                groups.setdefault(e.cell.get(name), []).append(way)
        return sum(max(group.count(1), group.count(-1)) for group in groups.values())

    # a variable with as many values as there are cells would separate anything
    fair = [name for name in names if len({e.cell.get(name) for e in cells}) < len(cells)]
    return max(fair, key=right, default="")
