"""The runs of a study, made or found: in a store if the plan has one, else in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ackclock import run_batch
from ackclock._results import TABLES, Batch, columns
from ackclock.errors import InputError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from ackclock.scenario import Scenario
    from ackclock.study.plan import Plan
    from ackclock.sweep import Campaign, Cell, Executor

Wanted = Mapping[str, Sequence[str] | None]
"""Table -> its columns; None: all."""


def batch(plan: Plan, scenario: Scenario, seeds: Sequence[int], tables: Sequence[str] | None) -> Batch:
    """One scenario under many seeds, as `ackclock.run_batch` returns it."""
    if plan.store is None:
        return run_batch(scenario, seeds, jobs=plan.jobs)
    from ackclock.sweep import Cell, engine_identity

    names = [name for name in TABLES if tables is None or name in tables]
    with collected(plan, [Cell(scenario=scenario, keys={}, seeds=list(seeds))], dict.fromkeys(names)) as campaign:
        runs = campaign.table("runs")
        found = {name: columns(campaign.table(name).drop("key")) for name in names}
    return Batch(
        scenario=scenario,
        seeds=tuple(seeds),
        digests=tuple(runs["digest"]),
        tables=found,
        provenance={"engine": engine_identity().partition("+")[0]},
    )


def cells(plan: Plan, wanted: Wanted, asked: Sequence[Cell]) -> tuple[list[Mapping[str, pl.DataFrame]], list[str]]:
    """Tables of every cell, and the digests of all runs, in order.

    Returns
    -------
    tuple
        Per cell: table -> rows with a leading column `seed`; and the digests.
    """
    with collected(plan, asked, wanted) as campaign:
        digests = [digest for frame in campaign.by_cell("runs") for digest in frame["digest"]]
        split = {name: campaign.by_cell(name) for name in wanted}
    return [{name: frames[i] for name, frames in split.items()} for i in range(len(asked))], digests


@contextmanager
def collected(plan: Plan, asked: Sequence[Cell], wanted: Wanted) -> Iterator[Campaign]:
    """Make what the store does not hold yet.

    Raises
    ------
    InputError
        If a run is refused: a study without all of its runs is none.
    """
    from ackclock.sweep import Campaign, Recipe, Status, Threads

    assert plan.store is not None
    recipe = Recipe(metrics=(), tables=tuple((name, None if c is None else tuple(c)) for name, c in wanted.items()))
    campaign = Campaign(plan.store, asked, recipe, name=plan.name, anew=False)

    def progress(status: Status) -> None:
        plan.report(f"{status.done:,} of {status.total:,} runs", status.done / max(status.total, 1))

    executor: Executor = plan.executor or Threads(plan.jobs)
    try:
        status = campaign.run(executor, progress=progress)
    finally:
        if plan.executor is None:
            executor.close()
    if status.failed:
        failures = plan.store.failures(plan.name, 1)
        raise InputError(f"{plan.name}: {status.failed} runs failed: {failures[0][2] if failures else ''}")
    if not status.finished:
        raise UnavailableError(f"{plan.name}: stopped after {status.done} of {status.total} runs")
    plan.store.compact(recipe.text)
    yield campaign
