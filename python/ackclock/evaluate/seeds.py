"""Chooses the rows and cells that get more seeds, because more seeds may change their verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ackclock.evaluate.situation import Row, Scale
from ackclock.evaluate.verdict import Judged, gated, holm, in_margins, interval_of, outcome, row_verdict
from ackclock.judge.intervals import Estimate


def more_seeds(by_row: Sequence[tuple[Row, Sequence[Judged]]], scale: Scale, most: int) -> dict[tuple[str, str], int]:
    """Return the number of seeds for cells that need more: (row, cell) -> seeds. A row that is worse needs none. If a
    row's mean over its cells is open, all cells in the mean get twice as many, provided that the permitted maximum
    may settle it. In every other row a cell may change the verdict only if it
    lies beyond its margin and is not yet certain to be worse. A row has at most `PAIRS` pairs of runs, unless the
    initial seeds exceed that.
    """
    if scale == "quick":
        return {}
    found: dict[tuple[str, str], int] = {}
    known = [(row, gated(cells)) for row, cells in by_row]
    flat = [j for _, cells in known for j in cells]
    sure = {id(flat[i]) for i in holm(flat)}
    for row, cells in known:
        verdict = row_verdict(row, cells, sure, scale).verdict
        if verdict in ("worse", "not tested", "not applicable"):
            continue
        upto = min(most, PAIRS // len({j.cell.id for j in cells}))
        wanted = [] if verdict != "no difference shown" else _of_open_means(row, cells, upto)
        wanted += [j for j in cells if j.counts and id(j) not in sure and _may_be_worse(j, upto)]
        for j in wanted:
            n = max(i.runs for i in cells if i.cell.id == j.cell.id)
            if n < upto:
                found[(row.id, j.cell.id)] = min(2 * n, upto)
    return found


def _of_open_means(row: Row, cells: Sequence[Judged], upto: int) -> list[Judged]:
    """Return the judged measures whose mean over all cells could be decided by more seeds."""
    found = []
    for measure in row.measures:
        parts = [j for j in cells if j.counts and j.measure is measure]
        values = in_margins(parts)
        if len(values) > 1:
            mean = interval_of(values)
            if outcome(mean, 1.0) == "no difference shown" and _may_settle(mean, 1.0, 1.0, upto):
                found += parts
    return found


def _may_be_worse(judged: Judged, upto: int) -> bool:
    d = judged.difference
    return d.value > judged.margin and math.isfinite(d.low) and _may_settle(d, judged.margin, HOLM_WIDTHS, upto)


def _may_settle(d: Estimate, margin: float, widths: float, upto: int) -> bool:
    """Return whether, with `upto` seeds, this many half-widths would fit between mean and margin."""
    distance, half = abs(d.value - margin), widths * (d.high - d.low) / 2
    return distance > 0 and d.n * (half / distance) ** 2 <= upto


PAIRS = 2000
"""Maximum number of run pairs in a row. A 144-cell row already has more than enough seeds for its mean, and more
would take up most of the time.
"""

HOLM_WIDTHS = 2.0
"""Number of 95 % half-widths beyond which one of several hundred cells is worse after Holm's correction."""
