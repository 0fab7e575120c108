"""Turns numbers per seed into verdicts: no worse than the reference in its place, within a margin of our choice,
because the RFC has no thresholds.

A difference d is candidate minus reference under one seed, with the sign that makes a larger value worse; m is the
margin.

| cell verdict | condition |
| --- | --- |
| no worse | the interval of the mean of d ends at or below m |
| worse | it begins above m |
| better | it ends below -m |
| no difference shown | otherwise |

A run without a number is an outcome too, for instance if a flow starved and its delay has no sample. Such seeds are
counted for each arm. If the counts differ, the remaining seeds are not a fair sample: "no worse" and "better" are
refused, and the row is open.

A row uses the mean over its cells, seed by seed, with each d in units of its cell's margin. With k judged measures the row is
worse if one of them is worse at a level of 1 - 0.05 / k, or if a single cell is worse after Holm over all cells of the report.
It is no worse if all measures are no worse at a level of 0.95.

Harm on one path is not offset by gains on another. A row that would be better is "mixed" if a single cell is worse at its own level; one
that would be no worse is "mixed" if a cell is worse after Holm over the cells of the row. A mixed row does not meet a MUST.

Some measures have a duty: a bound that no run of the candidate may exceed, regardless of the reference. A row with a violated duty is worse.

At the quick scale a row is worse, mixed, or open. Its few cells and seeds cannot show that nothing is worse elsewhere; a mixed row shows only
that a cell is worse at its own level.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ackclock.evaluate.situation import Cell, Measure, Row, Scale
from ackclock.judge.bound import Place, same
from ackclock.judge.intervals import Estimate, bootstrap_mean, mean_interval
from ackclock.judge.looks import widened
from ackclock.text import share as told_share

Verdict = Literal[
    "worse", "mixed", "no worse", "better", "no difference shown", "reported", "not tested", "not applicable"
]

VERDICTS: tuple[Verdict, ...] = (
    "worse",
    "mixed",
    "no difference shown",
    "no worse",
    "better",
    "reported",
    "not tested",
    "not applicable",
)

UNJUDGED: tuple[Verdict, ...] = ("reported", "not tested", "not applicable")
"""Verdicts that decide neither for nor against."""

SYMBOLS: Mapping[str, str] = {
    "worse": "✗",
    "mixed": "≠",
    "no difference shown": "?",
    "no worse": "✓",
    "better": "▲",
    "reported": "→",
    "not tested": "–",
    "not applicable": "·",
}

WORDS: Mapping[Place, Verdict] = {
    Place.BELOW: "better",
    Place.WITHIN: "no worse",
    Place.BELOW | Place.WITHIN: "no worse",
    Place.ABOVE: "worse",
}

LEVEL = 0.95


@dataclass(frozen=True, kw_only=True, slots=True)
class Values:
    """A measure's values in one cell under one controller: number and digest by seed."""

    numbers: Mapping[int, float]
    digests: Mapping[int, str]

    @property
    def distinct(self) -> int:
        """Number of distinct runs among those with a value."""
        return len({self.digests[s] for s in self.numbers if s in self.digests})

    @property
    def runs(self) -> set[int]:
        """Seeds that were run, with or without a value."""
        return {*self.digests, *self.numbers}

    def without(self, seeds: set[int]) -> list[int]:
        """Return those of the given seeds that have no value."""
        return sorted(s for s in seeds if not math.isfinite(self.numbers.get(s, math.nan)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """A judged measure in one cell.

    Parameters
    ----------
    candidate, reference
        Mean of each arm with its interval.
    difference
        Mean difference; positive is worse.
    margin
        Margin in the measure's unit.
    distinct
        Number of distinct runs of the candidate.
    worst_seed
        Seed with the largest difference.
    by_seed
        Differences by seed.
    p
        p-value of a test that the mean is at most the margin.
    note
        Reason why there is no verdict.
    at_least
        Arms ("candidate", "reference") whose mean is a lower bound because a run reached the measure's `most`.
    runs
        Number of seeds that were run.
    without
        Number of runs without a number, for the candidate and the reference.
    broken
        The candidate's largest value, if the measure's duty forbids it.
    """

    cell: Cell
    measure: Measure
    candidate: Estimate
    reference: Estimate
    difference: Estimate
    margin: float
    distinct: int
    worst_seed: int | None
    by_seed: Mapping[int, float]
    verdict: Verdict
    p: float = 1.0
    note: str = ""
    at_least: tuple[str, ...] = ()
    runs: int = 0
    without: tuple[int, int] = (0, 0)
    broken: float | None = None

    @property
    def counts(self) -> bool:
        """Whether the row's mean includes this measure and cell."""
        return self.measure.judged and self.verdict != "not tested" and bool(self.by_seed)

    @property
    def lopsided(self) -> bool:
        """Whether the row is open because one arm has more runs without a value than the other."""
        return self.measure.judged and self.verdict != "not tested" and self.without[0] != self.without[1]


@dataclass(frozen=True, kw_only=True, slots=True)
class RowVerdict:
    """Verdict on a row.

    Parameters
    ----------
    verdict
        Verdict of the whole row.
    measure
        Deciding measure, and its mean difference over the cells, in margins.
    worst
        Cell in which the candidate is worst by that measure.
    cells
        Every measure in every cell.
    reason
        Reason in words.
    remark
        Remark in addition to the verdict: that the candidate itself is starved.
    look
        Number of the further look that gave the verdict; 0: the first look, with the runs of the scale.
    """

    row: Row
    verdict: Verdict
    cells: tuple[Judged, ...] = ()
    measure: str = ""
    difference: Estimate | None = None
    worst: Judged | None = None
    reason: str = ""
    remark: str = ""
    look: int = 0

    @property
    def fails_must(self) -> bool:
        """Whether a MUST is not met: the row is worse, or mixed."""
        return self.row.level == "MUST" and self.verdict in ("worse", "mixed")


def judge(measure: Measure, cell: Cell, candidate: Values, reference: Values) -> Judged:
    """Judge one measure in one cell."""
    found = _compared(measure, cell, candidate, reference)
    greatest = max((v for v in candidate.numbers.values() if math.isfinite(v)), default=0.0)
    if measure.duty is None or greatest <= measure.duty:
        return found
    seed = next(s for s, v in candidate.numbers.items() if v == greatest)
    return replace(found, broken=greatest, worst_seed=seed)


def _compared(measure: Measure, cell: Cell, candidate: Values, reference: Values) -> Judged:
    """Compare the values with the reference's."""
    sign = 1.0 if measure.better == "less" else -1.0
    runs = candidate.runs & reference.runs
    missing = (candidate.without(runs), reference.without(runs))
    seeds = [s for s in sorted(runs) if s not in missing[0] and s not in missing[1]]
    ours, theirs = [candidate.numbers[s] for s in seeds], [reference.numbers[s] for s in seeds]
    of = measure.compared
    by_seed = {s: sign * (of(a) - of(b)) for s, a, b in zip(seeds, ours, theirs, strict=True)}
    difference = bootstrap_mean(list(by_seed.values()), level=LEVEL)
    margin = measure.margin_at(sum(theirs) / len(theirs)) if theirs else measure.margin
    most = math.inf if measure.most is None else measure.most(cell) - 1e-9
    arms = {"candidate": ours, "reference": theirs}
    found = Judged(
        cell=cell,
        measure=measure,
        candidate=bootstrap_mean(ours, level=LEVEL),
        reference=bootstrap_mean(theirs, level=LEVEL),
        difference=difference,
        margin=margin,
        distinct=candidate.distinct,
        worst_seed=max(by_seed, key=lambda s: by_seed[s]) if by_seed else None,
        by_seed=by_seed,
        verdict="not tested",
        at_least=tuple(arm for arm, numbers in arms.items() if any(v >= most for v in numbers)),
        runs=len(runs),
        without=(len(missing[0]), len(missing[1])),
    )
    if len(missing[0]) != len(missing[1]):
        verdict = outcome(difference, margin) if len(seeds) > 1 else "no difference shown"
        found = replace(
            found,
            verdict="worse" if verdict == "worse" else "no difference shown",
            p=_p(list(by_seed.values()), margin) if len(seeds) > 1 else 1.0,
            note=without(found),
        )
        # runs without a number may be the candidate's worst
        return found if by_seed else replace(found, worst_seed=min(missing[0] or missing[1]))
    if not seeds:
        return replace(found, note="no number in any run")
    if len(seeds) < 2:
        return replace(found, note="one run")
    if candidate.distinct < 2 or reference.distinct < 2:
        return replace(found, note=f"one run, not {len(seeds)}: all seeds gave the same packets")
    note = without(found) if missing[0] else ""
    return replace(found, verdict=outcome(difference, margin), p=_p(list(by_seed.values()), margin), note=note)


def without(judged: Judged) -> str:
    """Describe the number of runs without a value."""
    ours, theirs = judged.without
    return f"no number in {ours} of {judged.runs} runs of the candidate, {theirs} of CUBIC's"


def outcome(difference: Estimate, margin: float) -> Verdict:
    """Return the verdict on a mean difference for which larger is worse."""
    return WORDS.get(same(margin).places(difference.low, difference.high), "no difference shown")


def _p(values: Sequence[float], margin: float) -> float:
    """Return the one-sided p-value of Student's t. Resampling cannot resolve the small probabilities that Holm's method
    needs.
    """
    from scipy.special import stdtr

    n = len(values)
    mean = sum(values) / n
    spread = math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1))
    if spread == 0:
        return 0.0 if mean > margin else 1.0
    return float(stdtr(n - 1, (margin - mean) / (spread / math.sqrt(n))))


HOLM_LEVEL = 0.025
"""One-sided error level of a single look, for "worse"."""


def holm(judged: Sequence[Judged], level: float = HOLM_LEVEL) -> set[int]:
    """Return the positions of the entries that are worse after correction for their number (Holm 1979)."""
    tested = sorted((j.p, i) for i, j in enumerate(judged) if j.counts)
    found: set[int] = set()
    for rank, (p, i) in enumerate(tested):
        if p > level / (len(tested) - rank):
            break
        if judged[i].verdict == "worse":
            found.add(i)
    return found


def judge_rows(
    by_row: Sequence[tuple[Row, Sequence[Judged]]], scale: Scale = "standard", looks: int = 1
) -> list[RowVerdict]:
    """Judge rows. Each verdict includes everything that was judged in the row's cells.

    Parameters
    ----------
    by_row
        Rows with what was judged in their cells.
    scale
        Scale of the runs.
    looks
        Number of looks of which this is one (`judge.looks`); the error level is divided by it.
    """
    known = [(row, [at_look(j, looks) for j in gated(cells)]) for row, cells in by_row]
    flat = [j for _, cells in known for j in cells]
    sure = {id(flat[i]) for i in holm(flat, HOLM_LEVEL / looks)}
    return [row_verdict(row, cells, sure, scale, looks) for row, cells in known]


def gated(cells: Sequence[Judged]) -> list[Judged]:
    """Exclude measures that count only if another measure is about equal, in cells where it is not."""
    at = {(j.cell.id, j.measure.name): j for j in cells}
    found = []
    for j in cells:
        other = at.get((j.cell.id, j.measure.only_if)) if j.measure.only_if else None
        apart = other is not None and not abs(other.difference.value) <= other.margin
        if other is not None and apart and j.verdict != "not tested":
            found.append(replace(j, verdict="not tested", note=f"{other.measure.name} differs by more than its margin"))
        else:
            found.append(j)
    return found


def at_look(judged: Judged, looks: int) -> Judged:
    """Return the verdict of a measure as one of several looks."""
    if looks == 1 or judged.verdict == "not tested" or len(judged.by_seed) < 2:
        return judged
    verdict = outcome(widened(judged.difference, looks), judged.margin)
    return replace(judged, verdict="no difference shown" if judged.lopsided and verdict != "worse" else verdict)


def row_verdict(row: Row, cells: Sequence[Judged], sure: set[int], scale: Scale, looks: int = 1) -> RowVerdict:
    """Return the verdict on a row. `sure` contains the `id` of each entry that is worse after correction for all cells in the report."""
    if row.applies:
        return RowVerdict(row=row, verdict="not applicable", reason=row.applies)
    if not row.cells:
        return RowVerdict(row=row, verdict="not tested", reason=f"needs {'; '.join(row.needs)}")
    broken = [j for j in cells if j.broken is not None]
    if broken:
        return RowVerdict(
            row=row, verdict="worse", cells=tuple(cells), measure=broken[0].measure.name, worst=max(broken, key=_excess),
            reason=_broken(max(broken, key=_excess)), remark=_remark(row, cells),
        )  # fmt: skip
    names = [m.name for m in row.measures if m.judged and any(j.counts and j.measure.name == m.name for j in cells)]
    lopsided = [j for j in cells if j.lopsided]
    if not names and lopsided:
        first = lopsided[0]
        return RowVerdict(
            row=row, verdict="no difference shown", cells=tuple(cells), measure=first.measure.name, worst=first,
            reason=f"{first.measure.name}: {first.note}",
        )  # fmt: skip
    if not names:
        said = next((j.note for j in cells if j.note), "no cells at this scale")
        return RowVerdict(row=row, verdict="not tested", cells=tuple(cells), reason=said)
    means = {name: in_margins([j for j in cells if j.counts and j.measure.name == name]) for name in names}
    strict = {n: interval_of(v, len(names), looks) for n, v in means.items()}
    plain = {n: interval_of(v, looks=looks) for n, v in means.items()}
    worst_name = max(names, key=lambda n: (strict[n].low, strict[n].value))
    single = [j for j in cells if id(j) in sure]

    def made(verdict: Verdict, name: str, reason: str, worst: Judged | None = None) -> RowVerdict:
        found = worst or max(
            (j for j in cells if j.counts and j.measure.name == name), key=lambda j: j.difference.value / _unit(j)
        )
        return RowVerdict(
            row=row, verdict=verdict, cells=tuple(cells), measure=name, difference=plain[name], worst=found, reason=reason,
            remark=_remark(row, cells),
        )  # fmt: skip

    if outcome(strict[worst_name], 1.0) == "worse":
        return made("worse", worst_name, f"{worst_name}: on the mean over cells")
    if single:
        worst = max(single, key=lambda j: j.difference.value / _unit(j))
        return made("worse", worst.measure.name, f"{worst.measure.name}: in {len(single)} cells alone, after Holm" if len(single) > 1
                    else f"{worst.measure.name}: in one cell, after Holm", worst)  # fmt: skip
    verdicts = {n: outcome(plain[n], 1.0) for n in names}
    better = [n for n in names if outcome(strict[n], 1.0) == "better"]
    alone = [j for j in cells if j.counts and j.verdict == "worse"]
    if scale != "quick" and not better:
        in_row = holm(cells, HOLM_LEVEL / looks)
        alone = [j for i, j in enumerate(cells) if i in in_row]
    if alone:
        worst = max(alone, key=lambda j: j.difference.value / _unit(j))
        said = f"{worst.measure.name}: worse in {len(alone)} of {sum(j.counts for j in cells)} numbers of cells"
        said += (
            f", better on the mean over cells in {', '.join(better)}" if better else ", which the mean over cells hides"
        )
        return made("mixed", worst.measure.name, said, worst)
    if lopsided:
        first = max(lopsided, key=lambda j: abs(j.without[0] - j.without[1]) / j.runs)
        if first.measure.name in names:
            some = f" in {len(lopsided)} cells, the most in one" if len(lopsided) > 1 else ""
            return made("no difference shown", first.measure.name, f"{first.measure.name}:{some} {first.note}", first)
        return made("no difference shown", worst_name, f"{first.measure.name}: {first.note}", first)
    open_ = [n for n in names if verdicts[n] in ("no difference shown", "worse")]
    if open_:
        name = max(open_, key=lambda n: plain[n].high)
        return made("no difference shown", name, f"{name}: the interval reaches beyond the margin")
    if scale == "quick":
        said = f"better in {', '.join(better)}" if better else "no worse"
        return made(
            "no difference shown",
            worst_name,
            f"{said} in the few cells of this scale, which cannot show it for the others",
        )
    if better:
        return made("better", better[0], ", ".join(better))
    return made("no worse", worst_name, "every measure, on the mean over cells")


def _excess(judged: Judged) -> float:
    return (judged.broken or 0.0) / (judged.measure.duty or 1e-12)


def _broken(judged: Judged) -> str:
    """Return a sentence that says which duty was violated."""
    measure = judged.measure
    return (
        f"does not back off: {measure.name}, up to {judged.broken:.3g} {measure.unit}, and {measure.duty:.3g} is the most for any "
        f"sender (CUBIC: {judged.reference.value:.2g})"
    )


def _remark(row: Row, cells: Sequence[Judged]) -> str:
    """Return a remark, independent of the verdict, if the candidate itself is starved: a controller that yields does
    not harm other flows.
    """
    if not row.starves:
        return ""
    found = [j for j in cells if j.measure.name == row.starves and j.verdict == "worse"]
    if not found:
        return ""
    worst = max(found, key=lambda j: j.difference.value)
    return (
        f"the candidate is starved itself in {len(found)} of {sum(j.measure.name == row.starves for j in cells)} cells; "
        f"worst: {worst.cell.words}, {told_share(worst.candidate.value)} of the time (CUBIC: {told_share(worst.reference.value)})"
    )


def judge_part(row: Row, cells: Sequence[Judged], scale: Scale) -> RowVerdict:
    """Return the verdict that a row would have with only some of its cells."""
    return row_verdict(row, cells, set(), scale)


def _unit(judged: Judged) -> float:
    return judged.margin or 1e-12


def in_margins(cells: Sequence[Judged]) -> list[float]:
    """Return the differences by seed in units of the margin, averaged over cells, for the seeds present in all cells."""
    if not cells:
        return []
    common = set(cells[0].by_seed).intersection(*(j.by_seed for j in cells))
    return [sum(j.by_seed[s] / _unit(j) for j in cells) / len(cells) for s in sorted(common)]


def interval_of(values: Sequence[float], among: int = 1, looks: int = 1) -> Estimate:
    """Return the mean and its interval, as one of several measures and several looks."""
    level = LEVEL if looks > 1 else 1 - (1 - LEVEL) / among
    found = bootstrap_mean(values, level=level) if len(values) > 1 else mean_interval(values, level=level)
    return widened(found, among * looks) if looks > 1 else found
