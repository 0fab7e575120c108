"""Determines what would settle a row that shows no difference: more runs, or a larger scale."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ackclock.evaluate.plan import REFERENCE, Plan
from ackclock.evaluate.situation import Scale
from ackclock.evaluate.verdict import Judged, RowVerdict, Values, in_margins, interval_of, outcome
from ackclock.judge.intervals import Estimate
from ackclock.judge.looks import LOOKS, MOST_TIMES, runs_needed, widened

How = Literal["seeds", "scale", "look", "nothing"]
"""Ways to settle a row: more seeds, a larger scale, inspecting a run without a number, or no known way."""

LARGER: Mapping[Scale, Scale] = {"quick": "standard", "standard": "full"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Settling:
    """Outlook for a row that shows no difference.

    Parameters
    ----------
    row
        Id of the row.
    how
        Way to settle it.
    text
        Outlook as a sentence.
    seeds, runs
        Number of seeds of each cell that would settle the row, and of further runs; 0 if seeds cannot.
    arm, seed
        For a look: arm and seed of a run without a number in the row's worst cell.
    """

    row: str
    how: How
    text: str
    seeds: int = 0
    runs: int = 0
    arm: str = ""
    seed: int = 0


def open_means(found: RowVerdict) -> dict[str, tuple[Estimate, int]]:
    """Return the measures with means that keep a row open: name -> mean in margins, and number of judged measures."""
    names = [m.name for m in found.row.measures if any(_counts(j, m.name) for j in found.cells)]
    means = {n: interval_of(in_margins([j for j in found.cells if _counts(j, n)])) for n in names}
    judged = {n: widened(e, LOOKS) if found.look else e for n, e in means.items()}
    return {n: (means[n], len(names)) for n, e in judged.items() if outcome(e, 1.0) in ("no difference shown", "worse")}


def _counts(judged: Judged, name: str) -> bool:
    return judged.counts and judged.measure.name == name


def needed(found: RowVerdict) -> float:
    """Return the number of seeds that would settle a row at a later look, given its current spread.

    One measure beyond its margin is enough for "worse". Otherwise all measures must be within their margins.
    """
    beyond: list[float] = []
    within: list[float] = []
    for e, among in open_means(found).values():
        (beyond if e.value > 1 else within).append(runs_needed(e, 1.0, LOOKS * (among if e.value > 1 else 1)))
    return min(beyond) if beyond else max(within, default=math.inf)


def by_seeds(found: RowVerdict, scale: Scale) -> bool:
    """Return whether more seeds can settle a row at this scale."""
    means = open_means(found)
    if found.verdict != "no difference shown" or not means or any(j.lopsided for j in found.cells):
        return False
    return scale != "quick" or any(e.value > 1 for e, _ in means.values())


def seeds_of(found: RowVerdict) -> int:
    """Return the smallest number of seeds in the cells of a row's means."""
    return min((j.runs for j in found.cells if j.counts), default=0)


def settling(found: RowVerdict, plan: Plan, numbers: Mapping[tuple[str, str, str, str], Values]) -> Settling | None:
    """Return the way to settle a row; None if it has a verdict.

    Parameters
    ----------
    found
        The row.
    plan
        Plan of the evaluation.
    numbers
        Measures under every arm, as in `Evaluation`.
    """
    if found.verdict != "no difference shown":
        return None
    row = found.row.id
    lopsided = [j for j in found.cells if j.lopsided]
    if lopsided and found.worst is not None:
        return _look(found, found.worst if found.worst.lopsided else lopsided[0], numbers)
    if found.look >= LOOKS:
        return _exhausted(found, plan)
    if not by_seeds(found, plan.scale):
        return _larger(found, plan)
    now, seeds = seeds_of(found), needed(found)
    if not math.isfinite(seeds):
        text = f"more runs are not expected to settle it ({now} seeds of each cell): the difference is about as large as the margin"
        return Settling(row=row, how="nothing", text=text)
    most, seeds = now * MOST_TIMES, max(int(seeds), now + 1)
    runs = 2 * (seeds - now) * len({j.cell.id for j in found.cells if j.counts})
    far = f", more than --decide makes ({MOST_TIMES} times as many)" if seeds > most else ""
    text = f"about {seeds:,} seeds of each cell ({now} now), {runs:,} runs more{far}"
    return Settling(row=row, how="nothing" if far else "seeds", text=text, seeds=seeds, runs=runs)


def _look(found: RowVerdict, judged: Judged, numbers: Mapping[tuple[str, str, str, str], Values]) -> Settling:
    """Return the run without a number that has to be examined, because more runs cannot replace it."""
    arm = "candidate" if judged.without[0] > judged.without[1] else REFERENCE
    values = numbers[(found.row.id, judged.cell.id, judged.measure.name, arm)]
    seed = min(values.without(values.runs))
    text = f"more runs do not settle it: {judged.measure.name} has {judged.note}; a look at one of them shows why"
    return Settling(row=found.row.id, how="look", text=text, arm=arm, seed=seed)


def _exhausted(found: RowVerdict, plan: Plan) -> Settling:
    """Return what is left after the last look: another scale, or the difference as it is."""
    seeds = seeds_of(found)
    larger = LARGER.get(plan.scale)
    cells = len(found.row.at(larger, gigabit=plan.gigabit)) if larger else 0
    if cells > len(found.row.at(plan.scale, gigabit=plan.gigabit)):
        text = f"the {larger} scale, with {cells} cells: {LOOKS} further looks, the last with {seeds:,} seeds of each cell, did not"
        return Settling(row=found.row.id, how="scale", text=text)
    ends = "; ".join(f"{name} {e.low:.2f} to {e.high:.2f}" for name, (e, _) in open_means(found).items())
    text = (
        f"nothing more: after {LOOKS} further looks, the last with {seeds:,} seeds of each cell, the difference in margins is {ends}, "
        "and 1 is within. That is the result: it is as large as the margin"
    )
    return Settling(row=found.row.id, how="nothing", text=text)


def _larger(found: RowVerdict, plan: Plan) -> Settling:
    larger = LARGER.get(plan.scale)
    cells = len(found.row.at(larger, gigabit=plan.gigabit)) if larger else 0
    if larger is None or not cells:
        return Settling(
            row=found.row.id, how="nothing", text="nothing that is known here: its intervals are within the margins"
        )
    return Settling(
        row=found.row.id,
        how="scale",
        text=f"the {larger} scale, with {cells} cells: {plan.scale} has too few to show that nothing is worse",
    )
