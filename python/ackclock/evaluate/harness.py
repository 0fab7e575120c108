"""Runs an evaluation's cells under every arm, adds seeds where they may decide a row, and judges the rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock.errors import InputError, UnavailableError
from ackclock.evaluate import kernel
from ackclock.evaluate.decide import Decided, Within, decide
from ackclock.evaluate.plan import FEW_SEEDS, REFERENCE, Plan
from ackclock.evaluate.rows import search as search_row
from ackclock.evaluate.seeds import more_seeds
from ackclock.evaluate.settle import Settling, settling
from ackclock.evaluate.situation import Arm, Cell, Row, Tables, filled, without
from ackclock.evaluate.verdict import Judged, RowVerdict, Values, judge, judge_rows
from ackclock.judge.looks import LOOKS

if TYPE_CHECKING:
    import polars as pl

    from ackclock.scenario import Scenario
    from ackclock.sweep import Cell as _SweepCell
    from ackclock.sweep import Executor, Status, Store

NAME = "evaluate"
"""Name of the evaluation's sweep in the store."""

KEPT = (
    ("performance", None),
    ("goodput", ("t_s", "flow", "goodput_bps")),
    ("transactions", ("flow", "arrival_s", "bytes", "total_s", "done")),
    ("fetches", ("flow", "start_s", "total_s")),
    ("flows", ("flow", "completion_s", "dsacks", "undos", "spurious_rtos")),
    ("acks", ("t_s", "event")),
    ("drops", ("t_s", "flow")),
)
"""Tables and columns stored for each run."""


class RunsFailedError(InputError):
    """Raised if a cell's run failed because of the engine or the controller, not because of the request."""

    exit_code = 4


Key = tuple[str, str, str]
"""(row, cell, arm); the arm is empty for a cell without the candidate."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Outcome of an evaluation.

    Parameters
    ----------
    plan
        Plan of the evaluation.
    rows
        Verdicts of the rows.
    numbers
        Measures under every arm: (row, cell, measure, arm) -> number by seed.
    digests
        (row, cell, arm) -> digest by seed.
    scenarios
        (row, cell, arm) -> scenario. An empty arm: without the candidate.
    over_time
        (row, arm) -> goodput over time (t_s, flow, goodput_bps) in the row's worst cell, under its worst seed.
    search
        Result of the search of row x5; None if it was not requested.
    decided
        Further looks at rows that show no difference; None if they were not requested.
    """

    plan: Plan
    rows: Sequence[RowVerdict]
    numbers: Mapping[tuple[str, str, str, str], Values] = field(repr=False)
    digests: Mapping[Key, Mapping[int, str]] = field(repr=False)
    scenarios: Mapping[Key, Scenario] = field(repr=False)
    over_time: Mapping[tuple[str, str], pl.DataFrame] = field(default_factory=dict, repr=False)
    search: Mapping[str, Any] | None = field(default=None, repr=False)
    decided: Decided | None = field(default=None, repr=False)

    @cached_property
    def open(self) -> Sequence[Settling]:
        """Outlook for each row that shows no difference."""
        found = [settling(row, self.plan, self.numbers) for row in self.rows]
        return [one for one in found if one is not None]

    @cached_property
    def digest(self) -> str:
        """Digest of all digests."""
        import hashlib

        text = "".join(
            f"{'/'.join(key)} {seed} {digest}\n"
            for key, found in sorted(self.digests.items())
            for seed, digest in sorted(found.items())
        )
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def summary(self) -> dict[str, int]:
        """Number of rows by verdict."""
        from ackclock.evaluate.verdict import VERDICTS

        return {v: sum(r.verdict == v for r in self.rows) for v in VERDICTS}


@dataclass(slots=True)
class _Entry:
    """One cell under one arm."""

    row: Row
    cell: Cell
    arm: Arm | None
    scenario: Scenario
    seeds: range

    @property
    def key(self) -> Key:
        return (self.row.id, self.cell.id, "" if self.arm is None else self.arm.key)

    @property
    def judged(self) -> bool:
        """Whether verdicts depend on individual seeds of this arm."""
        return self.arm is not None and self.arm.role != "information"


def evaluate(
    plan: Plan,
    folder: Path,
    executor: Executor,
    *,
    progress: Callable[[Status], None] | None = None,
    stop: threading.Event | None = None,
    within: Within | None = None,
) -> Evaluation:
    """Make the runs missing from the folder's store, and judge the rows.

    Parameters
    ----------
    plan, folder, executor
        Plan of the evaluation, folder of the runs, and executor that makes them.
    progress, stop
        Function called with the progress; event that ends the runs early.
    within
        Time for further looks at rows that show no difference, after the runs of the scale; None: no such looks.

    Raises
    ------
    RunsFailedError
        If a run fails, such as one whose controller raises an error.
    UnavailableError
        If it was stopped early, or the kernel or its guest program has been removed; finished runs are kept, and the
        next call continues there.
    """
    first, most = plan.counts
    entries = _entries(plan, plan.arms, range(1, first + 1))
    with _maker(plan, folder, executor, progress) as made:
        while True:
            frames = made(entries, stop)
            found = _judged(plan, entries, frames)
            if not _extend(plan, entries, found, most):
                break
        rows = judge_rows(_by_row(plan, found), plan.scale)
        # before the further looks, because after their time limit tasks may remain in the executor
        searched = _searched(plan, folder, executor, stop)
        decided = None
        if within is not None:
            looks = _Looks(plan, entries, frames, found, made, within, stop)
            decided = decide(rows, plan.scale, within, looks.look, looks.count)
            rows = [decided.verdicts.get(r.row.id, r) for r in rows]
        if searched is not None:
            rows = [searched[0] if r.row.id == search_row.ID else r for r in rows]
        return _evaluation(plan, entries, frames, rows, searched[1] if searched else None, decided)


def _searched(
    plan: Plan, folder: Path, executor: Executor, stop: threading.Event | None
) -> tuple[RowVerdict, Mapping[str, Any]] | None:
    """Return the search row and its result, if it was requested."""
    from ackclock.evaluate.search import searched

    row = next((r for r in plan.rows if r.id == search_row.ID), None)
    if row is None or plan.backend != "sim":
        return None
    return searched(row, plan.candidate, REFERENCE, folder, executor, stop)


class _Deadline(threading.Event):
    """Event that is set when the clock reaches a time, or when another event is set."""

    def __init__(self, within: Within, until: float, other: threading.Event | None) -> None:
        super().__init__()
        self._within, self._until, self._other = within, until, other

    def is_set(self) -> bool:
        return self.late or (self._other is not None and self._other.is_set())

    @property
    def late(self) -> bool:
        """Whether the time is up."""
        return self._within.clock() >= self._until


@dataclass(slots=True)
class _Looks:
    """Further looks: make their runs, and judge the rows again. Other rows keep the verdicts from their last look."""

    plan: Plan
    entries: Sequence[_Entry]
    frames: _Made
    found: _Found
    made: Callable[[Sequence[_Entry], threading.Event | None], _Made]
    within: Within
    stop: threading.Event | None

    def count(self, seeds: Mapping[str, int]) -> int:
        """Return the number of runs added to the rows' cells by these seeds."""
        return sum(max(0, n - len(e.seeds)) for e, n in self._extended(seeds))

    def _extended(self, seeds: Mapping[str, int]) -> list[tuple[_Entry, int]]:
        """Return the entries that get more seeds: those of cells that enter the rows' means."""
        counted = {key for key, cells in self.found.items() if any(j.counts for j in cells)}
        some = [e for e in self.entries if e.judged and e.row.id in seeds and (e.row.id, e.cell.id) in counted]
        return [(e, seeds[e.row.id]) for e in some]

    def look(self, seeds: Mapping[str, int], number: int, until: float) -> Sequence[RowVerdict] | None:
        """Make a look's runs and judge its rows; None if the time limit is reached first."""
        before = [(e, e.seeds) for e, _ in self._extended(seeds)]
        for entry, n in self._extended(seeds):
            entry.seeds = range(1, max(n, len(entry.seeds)) + 1)
        some = [e for e in self.entries if e.row.id in seeds]
        deadline = _Deadline(self.within, until, self.stop)
        try:
            made = self.made(some, deadline)
        except UnavailableError:
            if not deadline.late or (self.stop is not None and self.stop.is_set()):
                raise
            for entry, had in before:
                entry.seeds = had
            return None
        self.frames.update(made)
        self.found.update(_judged(self.plan, some, made))
        rows = judge_rows(_by_row(self.plan, self.found), self.plan.scale, LOOKS)
        return [replace(r, look=number) for r in rows if r.row.id in seeds]


_Made = dict[Key, Tables]


@contextmanager
def _maker(
    plan: Plan,
    folder: Path,
    executor: Executor,
    progress: Callable[[Status], None] | None,
) -> Iterator[Callable[[Sequence[_Entry], threading.Event | None], _Made]]:
    """Yield a function that makes runs in the simulator or the kernel. Both store runs in the folder."""
    from ackclock.sweep import Store

    had: _Made = {}
    if plan.backend == "sim":
        with Store(folder / "store", write=True) as store:
            yield lambda entries, stop: _made(store, entries, executor, progress, stop, had)
        return
    made_by = kernel.identity()
    ours = kernel.executor(executor.slots, made_by)
    try:
        with Store(folder / "store-linux", write=True) as store:
            yield lambda entries, stop: _made(store, entries, ours, progress, stop, had, made_by=made_by)
    finally:
        ours.close()


def _with_victims(entries: Sequence[_Entry], tables: Sequence[Tables]) -> _Made:
    """Return the tables by entry, each with the victim's runs alone on the path."""
    found = {entry.key: one for entry, one in zip(entries, tables, strict=True)}
    for entry in entries:
        if entry.arm is not None and entry.cell.alone:
            found[entry.key].alone = found[(entry.row.id, entry.cell.id, "")]
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class Runs:
    """Cell values under several arms, all with the same seeds.

    Parameters
    ----------
    cells
        Rows and cells.
    values
        (row, cell, arm) -> measure -> values.
    """

    cells: Sequence[tuple[Row, Cell]]
    values: Mapping[Key, Mapping[str, Values]]


def collect(
    plan: Plan,
    arms: Sequence[Arm],
    seeds: range,
    folder: Path,
    executor: Executor,
    progress: Callable[[Status], None] | None = None,
    stop: threading.Event | None = None,
) -> Runs:
    """Run every cell in a plan under these arms and seeds, without judging. Raises the same errors as `evaluate`."""
    from ackclock.sweep import Store

    entries = _entries(plan, arms, seeds)
    with Store(folder / "store", write=True) as store:
        frames = _made(store, entries, executor, progress, stop, {})
    found = {e.key: values(frames[e.key], e.cell, e.row) for e in entries if e.arm is not None}
    return Runs(cells=_cells(entries), values=found)


def _entries(plan: Plan, arms: Sequence[Arm], seeds: range) -> list[_Entry]:
    from ackclock.scenario import Scenario

    found = []
    few = seeds[:FEW_SEEDS]
    for row in plan.rows:
        for cell in row.at(plan.scale, gigabit=plan.gigabit):
            for arm in arms:
                if arm.role == "information" and cell.scale == "full":
                    continue
                scenario = Scenario.from_dict(filled(cell.scenario, arm.controller, arm.options))
                some = few if arm.role == "information" else seeds
                found.append(_Entry(row=row, cell=cell, arm=arm, scenario=scenario, seeds=some))
            if cell.alone:
                scenario = Scenario.from_dict(without(cell.scenario))
                found.append(_Entry(row=row, cell=cell, arm=None, scenario=scenario, seeds=few))
    return found


def _made(
    store: Store,
    entries: Sequence[_Entry],
    executor: Executor,
    progress: Callable[[Status], None] | None,
    stop: threading.Event | None,
    had: _Made,
    *,
    made_by: str | None = None,
) -> _Made:
    """Find or make every entry's runs. Rows with the same scenario share its runs. Failed kernel runs are
    repeated, because the machine may have been the cause. Entries without new runs keep their tables in `had`, with what was computed from them.
    """
    from ackclock._results.result import named_groups
    from ackclock.sweep import Campaign, Cell, Recipe

    if not entries:  # none of the requested rows has any cells
        return {}

    recipe = Recipe(metrics=(), tables=KEPT)
    cells = [Cell(scenario=e.scenario, keys={}, seeds=e.seeds) for e in entries]
    campaign = Campaign(store, cells, recipe, name=NAME, anew=False, engine=made_by, retry=made_by is not None)
    status = campaign.run(executor, progress=progress, stop=stop)
    if not status.finished:
        raise UnavailableError(
            f"stopped after {status.done:,} of {status.total:,} runs; the same command goes on from there"
        )
    if status.failed:
        if made_by is not None:
            kernel.unchanged(made_by)  # the kernel may have been replaced
        raise RunsFailedError(_why(store, entries, cells, status.failed))
    store.compact(recipe.text)
    runs = campaign.by_cell("runs")
    tables: dict[str, list[pl.DataFrame]] = {name: campaign.by_cell(name) for name, _ in KEPT}
    found = []
    for i, entry in enumerate(entries):
        digests = dict(zip(runs[i]["seed"].to_list(), runs[i]["digest"].to_list(), strict=True))
        if entry.key not in had or had[entry.key].digests != digests:
            frames = {name: tables[name][i] for name, _ in KEPT}
            frames["performance"] = named_groups(frames["performance"], entry.scenario)
            had[entry.key] = Tables(frames, digests)
        found.append(had[entry.key])
    return _with_victims(entries, found)


def _why(store: Store, entries: Sequence[_Entry], cells: Sequence[_SweepCell], count: int) -> str:
    """Return where and why the first of these runs failed. The store may also contain failures of earlier versions of
    the controller.
    """
    why = {(scenario, seed): text for scenario, seed, text in store.failures(NAME, 1_000_000)}
    for entry, cell in zip(entries, cells, strict=True):
        for seed in entry.seeds:
            if (cell.hash, seed) in why:
                which = f"row {entry.row.id}, {entry.cell.words}, seed {seed}"
                some = "1 run" if count == 1 else f"{count:,} runs"
                return f"{some} failed, the first in {which}: {why[(cell.hash, seed)]}"
    return f"{count:,} runs failed"


def values(tables: Tables, cell: Cell, row: Row) -> dict[str, Values]:
    """Return the values of every measure of a row in one cell under one arm."""
    if tables.measured is None:
        tables.measured = {m.name: Values(numbers=m.of(tables, cell), digests=tables.digests) for m in row.measures}
    return tables.measured


_Found = dict[tuple[str, str], list[Judged]]


def _judged(plan: Plan, entries: Sequence[_Entry], frames: Mapping[Key, Tables]) -> _Found:
    found: _Found = {}
    for row, cell in _cells(entries):
        ours = values(frames[(row.id, cell.id, plan.candidate.key)], cell, row)
        theirs = values(frames[(row.id, cell.id, REFERENCE)], cell, row)
        found[(row.id, cell.id)] = [
            judge(m, cell, ours[m.name], theirs[m.name])
            for m in row.measures
            if ours[m.name].numbers or theirs[m.name].numbers
        ]
    return found


def _cells(entries: Sequence[_Entry]) -> list[tuple[Row, Cell]]:
    return list({(e.row.id, e.cell.id): (e.row, e.cell) for e in entries}.values())


def _extend(plan: Plan, entries: Sequence[_Entry], found: _Found, most: int) -> bool:
    """Add seeds to cells in rows that need them. Arms shown for information, and victims alone, keep theirs."""
    wanted = more_seeds(_by_row(plan, found), plan.scale, most)
    more = False
    for entry in entries:
        n = wanted.get((entry.row.id, entry.cell.id), 0)
        if entry.judged and n > len(entry.seeds):
            entry.seeds = range(1, n + 1)
            more = True
    return more


def _by_row(plan: Plan, found: _Found) -> list[tuple[Row, list[Judged]]]:
    return [
        (row, [j for cell in row.at(plan.scale, gigabit=plan.gigabit) for j in found[(row.id, cell.id)]])
        for row in plan.rows
    ]


def _evaluation(
    plan: Plan,
    entries: Sequence[_Entry],
    frames: Mapping[Key, Tables],
    rows: Sequence[RowVerdict],
    search: Mapping[str, Any] | None,
    decided: Decided | None,
) -> Evaluation:
    numbers = {}
    for entry in entries:
        if entry.arm is not None:
            for name, kept in values(frames[entry.key], entry.cell, entry.row).items():
                numbers[(entry.row.id, entry.cell.id, name, entry.arm.key)] = kept
    over_time = {}
    for found_row in rows:
        worst = found_row.worst
        for arm in ("candidate", REFERENCE):
            if worst is not None and worst.worst_seed is not None:
                goodput = frames[(found_row.row.id, worst.cell.id, arm)].rows("goodput")
                over_time[(found_row.row.id, arm)] = goodput[worst.worst_seed]
    return Evaluation(
        plan=plan,
        rows=rows,
        numbers=numbers,
        digests={e.key: frames[e.key].digests for e in entries},
        scenarios={e.key: e.scenario for e in entries},
        over_time=over_time,
        search=search,
        decided=decided,
    )
