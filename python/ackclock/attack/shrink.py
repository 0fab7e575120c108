"""Finds the simplest candidate that is nearly as bad, and how sensitive it is to small changes."""

from __future__ import annotations

import random
from collections.abc import Iterator

from ackclock.attack.budget import Budget, Candidate
from ackclock.attack.runs import Runs

KEPT = 0.9
"""Fraction of the best score that a simpler candidate must reach."""

NEIGHBOURS, REACH, NEAR_ENOUGH = 64, 0.05, 0.8
"""Number of neighbours examined, maximum change per number, and fraction of the score that counts as equally bad."""

PASSES = 6
"""Maximum number of rounds of simplification."""


def minimised(runs: Runs, candidate: Candidate) -> Candidate:
    """Return a candidate with the fewest groups, then the fewest distinct values, then round numbers, that keeps nine
    tenths of the best score.
    """
    least = KEPT * runs.score([candidate])[0].score
    for _ in range(PASSES):
        before = candidate
        for simpler in (_shorter, _equal, _rounder):
            candidate = _descend(runs, candidate, least, simpler)
        if candidate == before:
            break
    return candidate


def _descend(runs: Runs, candidate: Candidate, least: float, simpler: object) -> Candidate:
    """Move to the simplest candidate that is still bad enough, and repeat until there is no simpler one."""
    while True:
        choices = list(simpler(runs.budget, candidate))  # type: ignore[operator]
        scores = runs.score(choices) if choices else []
        found = next((c for c, s in zip(choices, scores, strict=True) if s.score >= least), None)
        if found is None:
            return candidate
        candidate = found


def _shorter(budget: Budget, candidate: Candidate) -> Iterator[Candidate]:
    head, size = len(budget.head), max(len(budget.group), 1)
    for begin in range(head, len(candidate), size):
        if len(candidate) > head + size:
            yield candidate[:begin] + candidate[begin + size :]


def _equal(budget: Budget, candidate: Candidate) -> Iterator[Candidate]:
    """Yield candidates in which one number of a group equals that of the previous group."""
    head, size = len(budget.head), max(len(budget.group), 1)
    for at in range(head + size, len(candidate)):
        if candidate[at] != candidate[at - size] and budget.genes[at].name != "position":
            yield (*candidate[:at], candidate[at - size], *candidate[at + 1 :])


def _rounder(budget: Budget, candidate: Candidate) -> Iterator[Candidate]:
    for at, (gene, value) in enumerate(zip(budget.genes, candidate, strict=False)):
        for digits in (1, 2):
            amount = float(f"{value * gene.quantum:.{digits}g}")
            rounder = gene.clip(round(amount / gene.quantum))
            if rounder != value and _digits(gene.amount(rounder)) < _digits(gene.amount(value)):
                yield (*candidate[:at], rounder, *candidate[at + 1 :])


def _digits(text: str) -> int:
    """Number of significant digits: 1200 has two, 1.25 three."""
    whole, _, parts = text.partition(".")
    return len((whole + parts).strip("0")) if parts else len(whole.strip("0"))


def width(runs: Runs, candidate: Candidate) -> float:
    """Return the fraction of neighbours, with each number changed by up to 5 %, that keep four fifths of the score."""
    rng = random.Random(f"neighbours of {candidate}")
    genes = runs.budget.genes_of(candidate)

    def moved() -> Candidate:
        found = []
        for gene, value in zip(genes, candidate, strict=True):
            reach = max(REACH * value, 1.0)
            found.append(gene.clip(round(value + rng.uniform(-reach, reach))))
        return tuple(found)

    near = [moved() for _ in range(NEIGHBOURS)]
    best = runs.score([candidate])[0].score
    return sum(s.score >= NEAR_ENOUGH * best for s in runs.score(near)) / NEIGHBOURS
