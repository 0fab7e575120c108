"""Error rate of the rules: CUBIC is compared with itself, with different seeds for the two arms.

With the same seeds the two arms would be identical. Every cell is therefore run once under many seeds. A repetition
draws the candidate's seeds from these, then the reference's from the rest, and is judged like an evaluation. Every
row judged "worse" is a false alarm, and so is every "better".
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock.evaluate.harness import Runs, collect
from ackclock.evaluate.plan import REFERENCE, Plan
from ackclock.evaluate.seeds import more_seeds
from ackclock.evaluate.situation import Arm, Row
from ackclock.evaluate.verdict import UNJUDGED, Judged, Values, judge, judge_rows
from ackclock.judge.intervals import proportion_interval

if TYPE_CHECKING:
    from numpy.random import Generator

    from ackclock.sweep import Executor, Status

REPETITIONS = 200
SEEDS: Mapping[str, int] = {"quick": 400, "standard": 100, "full": 200}
"""Number of seeds per cell from which a repetition draws: at least twice the maximum that an evaluation uses."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Alarms:
    """Verdicts of repeated evaluations.

    Parameters
    ----------
    scale
        Scale of the evaluations.
    repetitions
        Number of repetitions.
    worse, better, tested
        Row -> number of times that it had this verdict, and any verdict.
    reports
        Number of evaluations with a row that is worse.
    """

    scale: str
    repetitions: int
    worse: Mapping[str, int]
    better: Mapping[str, int]
    tested: Mapping[str, int]
    reports: int

    def to_json(self) -> dict[str, Any]:
        """Return plain values, in the form of `alarms.json`."""
        from ackclock.sweep import engine_identity

        tested = sum(self.tested.values())
        rate = proportion_interval(sum(self.worse.values()), tested)
        good = proportion_interval(sum(self.better.values()), tested)
        whole = proportion_interval(self.reports, self.repetitions)
        return {
            "version": engine_identity().partition("+")[0],
            "build": engine_identity().partition("+")[2],
            "scale": self.scale,
            "repetitions": self.repetitions,
            "rows": len(self.tested),
            "row_rate": round(rate.value, 6),
            "interval": [round(rate.low, 6), round(rate.high, 6)],
            "better_rate": round(good.value, 6),
            "better_interval": [round(good.low, 6), round(good.high, 6)],
            "report_rate": round(whole.value, 6),
            "report_interval": [round(whole.low, 6), round(whole.high, 6)],
            "worse_by_row": dict(self.worse),
            "better_by_row": dict(self.better),
        }


def measure(
    plan: Plan,
    folder: Path,
    executor: Executor,
    *,
    seeds: int | None = None,
    repetitions: int = REPETITIONS,
    progress: Callable[[Status], None] | None = None,
    stop: threading.Event | None = None,
) -> Alarms:
    """Run every cell with the reference under many seeds, and repeatedly judge it against itself.

    Parameters
    ----------
    plan
        Its scale and rows; the candidate does not matter.
    folder
        Folder of the runs.
    executor
        Executor of the runs.
    seeds, repetitions
        Seeds of each cell (None: those of the scale), and number of splits.
    progress, stop
        See `evaluate`.
    """
    import numpy as np

    seeds = seeds or SEEDS[plan.scale]
    arm = Arm(role="reference", name=REFERENCE, controller=REFERENCE)
    runs = collect(plan, [arm], range(1, seeds + 1), folder, executor, progress, stop)
    rng = np.random.default_rng(1)
    worse = dict.fromkeys((row.id for row, _ in runs.cells), 0)
    better, tested = dict(worse), dict(worse)
    reports = 0
    for _ in range(repetitions):
        verdicts = _once(plan, runs, seeds, rng)
        reports += "worse" in verdicts.values()
        for row, verdict in verdicts.items():
            tested[row] += verdict not in UNJUDGED
            worse[row] += verdict == "worse"
            better[row] += verdict == "better"
    return Alarms(scale=plan.scale, repetitions=repetitions, worse=worse, better=better, tested=tested, reports=reports)


def _once(plan: Plan, runs: Runs, seeds: int, rng: Generator) -> dict[str, str]:
    """Return the verdicts of one evaluation by row."""
    _, most = plan.counts
    drawn = (rng.permutation(seeds) + 1).tolist()
    ours, theirs = drawn[: len(drawn) // 2], drawn[len(drawn) // 2 :]
    cells = {(row.id, cell.id): (row, cell) for row, cell in runs.cells}
    found: dict[tuple[str, str], list[Judged]] = {}
    wanted = dict.fromkeys(cells, plan.counts[0])
    while wanted:
        for key, n in wanted.items():
            values = runs.values[(*key, REFERENCE)]
            row, cell = cells[key]
            found[key] = [
                judge(m, cell, _some(values[m.name], ours[:n]), _some(values[m.name], theirs[:n]))
                for m in row.measures
                if values[m.name].numbers
            ]
        by_row: dict[str, tuple[Row, list[Judged]]] = {}
        for key, (row, _) in cells.items():
            by_row.setdefault(row.id, (row, []))[1].extend(found[key])
        wanted = {k: n for k, n in more_seeds(list(by_row.values()), plan.scale, most).items() if n <= len(ours)}
    return {r.row.id: r.verdict for r in judge_rows(list(by_row.values()), plan.scale)}


def _some(values: Values, seeds: Sequence[int]) -> Values:
    """Return the values for some seeds, renumbered from 1."""
    kept = [(i, s) for i, s in enumerate(seeds, 1) if s in values.numbers]
    return Values(numbers={i: values.numbers[s] for i, s in kept}, digests={i: values.digests[s] for i, s in kept})


def recorded_file() -> Path:
    """Return the file of recorded rates."""
    return Path(__file__).with_name("alarms.json")


def record(found: Alarms) -> Path:
    """Record the result for reports, replacing the earlier one for the same scale."""
    place = recorded_file()
    kept = [a for a in json.loads(place.read_text("utf-8")) if a["scale"] != found.scale]
    kept = sorted([*kept, found.to_json()], key=lambda a: str(a["scale"]))
    place.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return place
