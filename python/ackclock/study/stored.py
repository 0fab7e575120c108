"""Runs a study's simulations, or finds them: in the plan's store if it has one, otherwise in memory."""

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
    """One scenario under many seeds, and the data required from its runs.

    Parameters
    ----------
    scenario, seeds
        Scenario and seeds to run.
    needs
        Table -> its columns; None: all.
    network
        Network implementation on the kernel backend.
    """

    scenario: Scenario
    seeds: Sequence[int]
    needs: Mapping[str, Sequence[str] | None]
    network: linux.NetworkKind = "relay"


def batch(plan: Plan, scenario: Scenario, seeds: Sequence[int], tables: Sequence[str] | None) -> Batch:
    """Return the runs of one scenario under many seeds, as `ackclock.run_batch` does."""
    names = [
        name for name in TABLES if (name != "messages" if tables is None else name in tables)
    ]  # messages printed by modules are discarded
    return next(batches(plan, [Asked(scenario=scenario, seeds=list(seeds), needs=dict.fromkeys(names))]))


def batches(plan: Plan, asked: Sequence[Asked]) -> Iterator[Batch]:
    """Yield batches as from `ackclock.run_batch`, with only the required tables and columns.

    Raises
    ------
    InputError
        If a run is refused, because a study needs all of its runs, or if a required column is missing.
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
    yield from _read(plan.store, asked, _make(plan, asked))


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
    """Make missing runs, one campaign per recipe, and return the keys of each cell's runs."""
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


ROWS = 1_000_000
"""Number of rows read at once. Each read scans a whole table, so reading only a few cells at a time would repeat the scan often."""

OWNER = "the cell"
"""Column that identifies a row's cell while rows of several cells are combined. No table has a column of this name."""


def _read(store: Store, asked: Sequence[Asked], keys: Sequence[Sequence[str]]) -> Iterator[Batch]:
    """Yield the runs of each cell, in order. Cells with the same recipe are read together; the number of cells per read
    doubles while they have few rows.
    """
    at, most = 0, 1
    while at < len(asked):
        recipe = _recipe(asked[at]).text
        last = at + 1
        while last < min(at + most, len(asked)) and _recipe(asked[last]).text == recipe:
            last += 1
        read, rows = _together(store, recipe, asked[at:last], keys[at:last])
        yield from read
        most = 2 * most if rows < ROWS // 2 else max(1, most // 2) if rows > ROWS else most
        at = last


def _together(
    store: Store, recipe: str, asked: Sequence[Asked], keys: Sequence[Sequence[str]]
) -> tuple[list[Batch], int]:
    """Return the runs of cells with the same recipe, and the number of rows read."""
    import polars as pl

    from ackclock.sweep import engine_identity

    owner = [i for i, mine in enumerate(keys) for _ in mine]
    order = pl.DataFrame({"key": [key for mine in keys for key in mine], OWNER: owner})
    read = 0

    def rows(table: str) -> list[pl.DataFrame]:
        nonlocal read
        found = store.read(recipe, table, keys=order["key"].unique().to_list())
        read += found.height
        if not found.width:  # no run with this recipe has a row
            return [found] * len(asked)
        found = order.join(found, on="key", how="inner", maintain_order="left_right").drop("key")
        parts = found.partition_by(OWNER, as_dict=True, include_key=False)
        return [parts.get((i,), found.clear().drop(OWNER)) for i in range(len(asked))]

    tables = {name: rows(name) for name in asked[0].needs}
    digests = rows("runs")

    def batch(i: int, one: Asked) -> Batch:
        kept = {name: columns(parts[i]) for name, parts in tables.items()}
        for name, wanted in one.needs.items():
            if not kept[name] and wanted is not None:
                kept[name] = dict.fromkeys(("seed", *wanted), ("f8", b""))
        return Batch(
            scenario=one.scenario,
            seeds=tuple(one.seeds),
            digests=tuple(digests[i]["digest"]),
            tables=kept,
            provenance={"engine": engine_identity().partition("+")[0]},
        )

    return [batch(i, one) for i, one in enumerate(asked)], read
