"""Runs candidates in parallel, and stores their scores in memory and in a journal.

An interrupted search restarts with its journal: it requests the same candidates, and those in the journal need no
run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ackclock._results.columns import series
from ackclock.attack.budget import Budget, Candidate
from ackclock.attack.journal import Journal
from ackclock.attack.objective import LEAST_BYTES, Objective, Tables, delivered, keys
from ackclock.attack.objective import Path as Known
from ackclock.errors import InputError, ScenarioError
from ackclock.scenario import Scenario
from ackclock.sweep.task import Task, engine_identity, needed, needed_stacks

if TYPE_CHECKING:
    from ackclock.sweep import Executor

LIMIT_S = 120.0
"""Maximum CPU time for a candidate's run, s; a run that takes longer ends the search."""

MEMORY = 2**29
"""Maximum memory of a run, bytes."""

PART = 8
"""Maximum number of candidates per task."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Arm:
    """A controller to be run in the flow's place.

    Parameters
    ----------
    name
        Name for readers.
    flow
        Controller and options as in a scenario.
    """

    name: str
    flow: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Scored:
    """A candidate that has been run.

    Parameters
    ----------
    score
        The target's regret, 0 to 1.
    values
        The objective's number of each arm, the target's first.
    delivered
        Bytes acknowledged to each arm.
    digests
        Digest of each arm's run.
    """

    score: float
    values: tuple[float, ...]
    delivered: tuple[float, ...]
    digests: tuple[str, ...]


Others = dict[tuple[Candidate, str], tuple[Tables, str]]
"""Each reference run's tables and digest, by environment and controller."""


@dataclass(kw_only=True)
class Runs:
    """Scores candidates by running them.

    Parameters
    ----------
    objective, budget, seed
        Objective, budget and seed of the runs.
    arms
        The target, then the references.
    executor
        Executor of the runs.
    victim
        Controller beside the target, if the objective has one.
    journal
        Journal for scores; None keeps them in memory only.
    stopped
        Returns whether the runs must end early.
    others
        Reference runs shared by searches that examine the same environments with the same seed; None: each search makes
        its own.
    """

    objective: Objective
    budget: Budget
    arms: Sequence[Arm]
    seed: int
    executor: Executor
    victim: str = "cubic"
    journal: Journal | None = None
    stopped: Callable[[], bool] = lambda: False
    others: Others | None = None
    known: dict[Candidate, Scored] = field(default_factory=dict)
    made: int = 0
    ran: int = 0

    def __post_init__(self) -> None:
        self._number = 0
        self._flows = [self._compiled(arm) for arm in self.arms]
        self._names = [json.dumps(dict(arm.flow), sort_keys=True) for arm in self.arms]
        self._own = tuple({own.planned() for _, owns in self._flows for own in owns})
        if self.journal is not None:
            for candidate, score, values, weights, digests in self.journal.lines():
                self.known[tuple(candidate)] = Scored(
                    score=score, values=tuple(values), delivered=tuple(weights), digests=tuple(digests)
                )

    def scenario(self, candidate: Candidate, arm: int = 0) -> Scenario:
        """Return a candidate's scenario."""
        return Scenario.from_dict(keys(self.objective, self.budget, candidate, self.arms[arm].flow, self.victim))

    def score(self, candidates: Sequence[Candidate]) -> list[Scored]:
        """Return the scores in the order requested; earlier runs are not repeated.

        Raises
        ------
        InputError
            If a run fails.
        KeyboardInterrupt
            If the runs must end early; the journal has all finished candidates.
        """
        new = [c for c in dict.fromkeys(candidates) if c not in self.known]
        self.ran += len(self._asked(new))
        size = max(1, min(PART, -(-len(new) // max(self.executor.slots, 1))))
        parts = [new[i : i + size] for i in range(0, len(new), size)]
        waiting: dict[int, list[Candidate]] = {}
        for part in parts:
            self._number += 1
            waiting[self._number] = part
            self.executor.submit(self._number, self._task(part))
        failed: Exception | None = None
        unfinished = False
        while waiting:  # includes parts no longer needed, which would otherwise reach the next caller
            for number, done in self.executor.wait(0.5):
                part = waiting.pop(number)
                if isinstance(done, Exception):
                    failed = failed or done
                elif len(done.digests) < len(self._asked(part)):
                    refused = next((error for error in done.errors if error is not None), None)
                    failed = failed or (None if refused is None else InputError(refused))
                    unfinished = True
                else:
                    try:
                        self.known.update(zip(part, self._read(part, done), strict=True))
                    except InputError as error:  # raised once the other parts have returned
                        failed = failed or error
        if failed is not None:
            raise failed
        if unfinished or self.stopped():
            self._write([c for c in new if c in self.known])
            raise KeyboardInterrupt
        self._write(new)
        self.made += len(new)
        return [self.known[c] for c in candidates]

    def _compiled(self, arm: Arm) -> tuple[dict[str, Any], tuple[Any, ...]]:
        """Return a controller's keys in the compiled scenario, and the classes that it names."""
        network = {"bottleneck": {"rate": "10 Mbit/s", "delay": "20 ms"}}
        made = Scenario.from_dict({"duration": "1 s", "network": network, "flows": [dict(arm.flow)]})
        group = made.to_engine()["flows"][0]
        return {
            key: value for key, value in group.items() if key not in ("start_ns", "stagger_ns", "count")
        }, made.own()

    def _asked(self, candidates: Sequence[Candidate]) -> list[tuple[int, int]]:
        """Return the candidate index and arm index of each run in a task."""
        others = self.others or {}
        return [
            (i, arm)
            for i, candidate in enumerate(candidates)
            for arm in range(len(self.arms))
            if arm == 0 or (candidate, self._names[arm]) not in others
        ]

    def _task(self, candidates: Sequence[Candidate]) -> Task:
        texts = []
        count = 2 if self.objective.flows == "two" else 1
        for candidate in candidates:
            if self.budget.target(candidate):
                texts += [json.dumps(self.scenario(candidate, arm).to_engine()) for arm in range(len(self.arms))]
                continue
            # parsed once for all arms, which differ only in the controller
            text = self.scenario(candidate).to_engine()
            texts.append(json.dumps(text))
            for flow, _ in self._flows[1:]:
                groups = [{**group, **flow} for group in text["flows"][:count]] + text["flows"][count:]
                texts.append(json.dumps({**text, "flows": groups}))
        arms = len(self.arms)
        texts = [texts[i * arms + arm] for i, arm in self._asked(candidates)]
        tables = {"flows": ("group", "bytes_acked", "rtos"), **self.objective.tables}
        return Task(
            texts=tuple(texts),
            runs=tuple((i, self.seed) for i in range(len(texts))),
            metrics=(),
            tables=tuple(tables.items()),
            budget_s=1e9,
            engine=needed(engine_identity(), texts),
            memory=MEMORY,
            limit_s=LIMIT_S,
            own=self._own,
            libraries=needed_stacks(texts),
        )

    def _read(self, candidates: Sequence[Candidate], done: Any) -> list[Scored]:
        asked = self._asked(candidates)
        for at, error in enumerate(done.errors):
            if error is not None:
                candidate, arm = candidates[asked[at][0]], self.arms[asked[at][1]]
                raise InputError(f"{arm.name}: {error} (in {self.budget.words(candidate)})")
        made = dict(
            zip(asked, zip(self._split(done.tables, len(done.digests)), done.digests, strict=True), strict=True)
        )
        found = []
        for i, candidate in enumerate(candidates):
            runs = []
            for place, name in enumerate(self._names):
                run = made.get((i, place)) or (self.others or {})[candidate, name]
                if place and self.others is not None:
                    self.others[candidate, name] = run
                runs.append(run)
            found.append(self._scored(candidate, [tables for tables, _ in runs], [digest for _, digest in runs]))
        return found

    def _split(self, tables: Mapping[str, Any], runs: int) -> list[Tables]:
        """Split tables by run; columns become lists."""
        import numpy as np

        found: list[dict[str, dict[str, Sequence[Any]]]] = [{} for _ in range(runs)]
        for name, columns in tables.items():
            at = series("run", *columns["run"]).to_numpy()
            ends = np.searchsorted(at, np.arange(runs + 1))
            for column, (kind, buffer) in columns.items():
                if column == "run":
                    continue
                values = series(column, kind, buffer).to_list()
                for i in range(runs):
                    found[i].setdefault(name, {})[column] = values[ends[i] : ends[i + 1]]
        return found  # type: ignore[return-value]

    def scored(self, candidate: Candidate, tables: Sequence[Tables], digests: Sequence[str]) -> Scored:
        """Compute a candidate's score from its arms' tables."""
        return self._scored(candidate, tables, digests)

    def _scored(self, candidate: Candidate, tables: Sequence[Tables], digests: Sequence[str]) -> Scored:
        path = self._path(candidate)
        values = [self.objective.value(t, path) for t in tables]
        groups = 2 if self.objective.flows == "two" else 1
        weights = [delivered(t, groups) for t in tables]
        apart = self.objective.apart
        if apart is None:
            score = self.objective.score(values[0], values[1:], weights[1:])
        else:
            score = max(apart(tables[0], other) for other in tables[1:]) if max(weights) >= LEAST_BYTES else 0.0
        if self.budget.timeouts == "forbid" and sum(tables[0]["flows"]["rtos"][:groups]):
            score = 0.0
        return Scored(
            score=min(max(score, 0.0), 1.0), values=tuple(values), delivered=tuple(weights), digests=tuple(digests)
        )

    def _path(self, candidate: Candidate) -> Known:
        genes = list(zip(self.budget.genes_of(candidate), candidate, strict=True))

        def most(name: str) -> float:
            return max(value * gene.quantum for gene, value in genes if gene.name == name)

        return Known(base_s=2 * most("delay") / 1e3, rate_bps=most("rate") * 1e6, queue=round(most("queue")))

    def _write(self, candidates: Sequence[Candidate]) -> None:
        if self.journal is None or not candidates:
            return
        known = [(candidate, self.known[candidate]) for candidate in candidates]
        self.journal.write([one, s.score, s.values, s.delivered, s.digests] for one, s in known)


def allowed(runs: Runs) -> None:
    """Before anything runs, refuse a budget with extreme values that make the scenario invalid.

    Raises
    ------
    InputError
        The engine's own line.
    """
    for share in (0.0, 1.0):
        candidate = tuple(gene.at(share) for gene in runs.budget.genes)
        try:
            runs.scenario(candidate)
        except ScenarioError as error:
            raise InputError(f"budget {runs.budget.name}: {error}") from None
