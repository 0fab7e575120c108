"""The runs of a study, made or found: in a store if the plan has one, else in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from ackclock import linux
from ackclock._results.columns import columns
from ackclock._results.result import TABLES, Batch
from ackclock._results.run import run_batch
from ackclock.errors import InputError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ackclock._results.columns import Columns
    from ackclock.scenario import Scenario
    from ackclock.study.plan import Plan
    from ackclock.sweep import Campaign, Executor, Recipe, Status, Store


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """One scenario under many seeds, and what is needed of its runs.

    Parameters
    ----------
    scenario, seeds
        What to run.
    needs
        Table -> its columns; None: all.
    network
        Who plays the network where the real kernel is the backend.
    """

    scenario: Scenario
    seeds: Sequence[int]
    needs: Mapping[str, Sequence[str] | None]
    network: linux.NetworkKind = "relay"


def batch(plan: Plan, scenario: Scenario, seeds: Sequence[int], tables: Sequence[str] | None) -> Batch:
    """One scenario under many seeds, as `ackclock.run_batch` returns it."""
    names = [name for name in TABLES if tables is None or name in tables]
    return next(batches(plan, [Asked(scenario=scenario, seeds=list(seeds), needs=dict.fromkeys(names))]))


def batches(plan: Plan, asked: Sequence[Asked]) -> Iterator[Batch]:
    """As `ackclock.run_batch` returns them, one after another, with the tables and columns needed alone.

    Raises
    ------
    InputError
        If a run is refused: a study without all of its runs is none. If a column is needed that a table does not have.
    UnavailableError
        If the executor stopped early.
    """
    if plan.store is None or plan.backend == "linux":
        for one in asked:
            if plan.backend == "linux":
                made = linux.run_batch(one.scenario, one.seeds, jobs=plan.jobs, network=one.network)
            else:
                made = run_batch(one.scenario, one.seeds, jobs=plan.jobs)
            yield replace(made, tables=_needed(made.tables, one.needs))
        return
    for one, keys in zip(asked, _make(plan, asked), strict=True):
        yield _read(plan.store, one, keys)


def _needed(tables: Mapping[str, Columns], needs: Mapping[str, Sequence[str] | None]) -> dict[str, Columns]:
    found = {}
    for name, wanted in needs.items():
        table = tables.get(name, {})
        unknown = [column for column in wanted or () if column not in table]
        if table and unknown:
            raise InputError(f"columns of {name}: found {unknown[0]!r}; allowed: {', '.join(table)}")
        found[name] = table if wanted is None else {c: table[c] for c in ("seed", *wanted) if c in table}
    return found


def _recipe(asked: Asked) -> Recipe:
    from ackclock.sweep import Recipe

    return Recipe(metrics=(), tables=tuple((n, None if c is None else tuple(c)) for n, c in asked.needs.items()))


def _make(plan: Plan, asked: Sequence[Asked]) -> list[list[str]]:
    """Make what the store does not hold yet, in one go for all of whose runs the same is kept; keys of the runs of each."""
    from ackclock.sweep import Campaign, Cell, Threads

    assert plan.store is not None
    alike: dict[str, list[int]] = {}
    for i, one in enumerate(asked):
        alike.setdefault(_recipe(one).text, []).append(i)
    found: list[list[str]] = [[] for _ in asked]
    executor: Executor = plan.executor or Threads(plan.jobs)
    try:
        for places in alike.values():
            cells = [Cell(scenario=asked[i].scenario, keys={}, seeds=asked[i].seeds) for i in places]
            campaign = Campaign(plan.store, cells, _recipe(asked[places[0]]), name=plan.name, anew=False)
            _finish(plan, campaign, executor)
            keys = iter(campaign.keys)
            for i in places:
                found[i] = list(islice(keys, len(asked[i].seeds)))
    finally:
        if plan.executor is None:
            executor.close()
    return found


def _finish(plan: Plan, campaign: Campaign, executor: Executor) -> None:
    def progress(status: Status) -> None:
        plan.report(f"{status.done:,} of {status.total:,} runs", status.done / max(status.total, 1))

    status = campaign.run(executor, progress=progress)
    if status.failed:
        failures = campaign.store.failures(plan.name, 1)
        raise InputError(f"{status.failed} runs failed: {failures[0][2] if failures else ''}")
    if not status.finished:
        raise UnavailableError(f"stopped after {status.done} of {status.total} runs")
    campaign.store.compact(campaign.recipe.text)


def _read(store: Store, asked: Asked, keys: Sequence[str]) -> Batch:
    import polars as pl

    from ackclock.sweep import engine_identity

    order = pl.DataFrame({"key": keys})

    def rows(table: str) -> pl.DataFrame:
        found = store.read(_recipe(asked).text, table, keys=keys)
        if not found.width:  # no run of this recipe has a row
            return found
        return order.join(found, on="key", how="inner", maintain_order="left_right").drop("key")

    tables = {name: columns(rows(name)) for name in asked.needs}
    for name, wanted in asked.needs.items():
        if not tables[name] and wanted is not None:
            tables[name] = dict.fromkeys(("seed", *wanted), ("f8", b""))
    return Batch(
        scenario=asked.scenario,
        seeds=tuple(asked.seeds),
        digests=tuple(rows("runs")["digest"]),
        tables=tables,
        provenance={"engine": engine_identity().partition("+")[0]},
    )
