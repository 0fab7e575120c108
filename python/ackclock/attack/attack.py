"""Runs an attack from its description to its result."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock.attack import shrink
from ackclock.attack.budget import Budget, Candidate
from ackclock.attack.journal import JOURNAL, Journal
from ackclock.attack.objective import OBJECTIVES, Objective
from ackclock.attack.runs import Arm, Others, Runs, Scored, allowed
from ackclock.attack.search import SEARCHES, Enough
from ackclock.errors import InputError, quote

if TYPE_CHECKING:
    from ackclock.sweep import Executor

REFERENCES = ("cubic", "reno", "bbr3")
"""Default reference controllers, which show what is achievable; the target is excluded from its own references."""


@dataclass(frozen=True, kw_only=True)
class Attack:
    """Search for a worst case.

    Parameters
    ----------
    target
        A controller's name, or `FILE.py:CLASS`.
    options
        Options of the target.
    budget
        Limits of the adversary.
    objective
        One of `OBJECTIVES`.
    references
        Controllers that show what is achievable.
    search
        One of `SEARCHES`.
    evaluations
        Number of candidates that the search examines.
    seed
        Seed of the search and of the runs.
    victim
        Controller that runs beside the target if the objective is "harm". Its result is measured against that beside
        another flow of its kind.
    """

    target: str
    budget: Budget
    options: dict[str, Any] = field(default_factory=dict)
    objective: str = "utilisation"
    references: Sequence[str] = REFERENCES
    search: str = "genetic"
    evaluations: int = 500
    seed: int = 1
    victim: str = "cubic"

    def __post_init__(self) -> None:
        for key, found, known in (("objective", self.objective, OBJECTIVES), ("search", self.search, SEARCHES)):
            if found not in known:
                raise InputError(f"--{key}: found {quote(found)}; allowed: {', '.join(known)}")
        if not self.arms[1:]:
            raise InputError("--reference: found the target alone; allowed: another controller")

    @property
    def arms(self) -> list[Arm]:
        """Return the target, then the references."""
        from ackclock.own import short

        options = {"congestion_control_options": self.options} if self.options else {}
        arms = [Arm(name=short(self.target), flow={"congestion_control": self.target, **options})]
        others = [self.victim] if OBJECTIVES[self.objective].flows == "beside" else self.references
        return arms + [
            Arm(name=short(name), flow={"congestion_control": name})
            for name in dict.fromkeys(others)
            if name != self.target or self.options
        ]

    @property
    def wanted(self) -> Objective:
        """Look up the objective by its name."""
        return OBJECTIVES[self.objective]

    def identity(self) -> dict[str, Any]:
        """Values that a journal must match for the search to be resumed."""
        from ackclock.own import described, named
        from ackclock.sweep.task import engine_identity

        def _identity(name: str) -> list[str]:
            own = described(name, {}).planned()
            return [own.digest, *([own.whole] if own.whole else [])]

        return {
            "schema": "ackclock.attack-journal/1",
            "engine": engine_identity(),
            "arms": [dict(arm.flow) for arm in self.arms],
            "own": [digest for a in self.arms if named(a.flow["congestion_control"]) for digest in _identity(str(a.flow["congestion_control"]))],
            "budget": dict(self.budget.table),
            "objective": self.objective,
            "victim": self.victim,
            "search": self.search,
            "seed": self.seed,
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Found:
    """Result of an attack.

    Parameters
    ----------
    attack
        The attack.
    best
        The worst candidate of the search.
    worst
        Simplest candidate that is nearly as bad.
    scores
        Scores of both.
    looked_at
        Number of candidates examined.
    history
        Number of candidates and the best score, each time it improved.
    width
        Fraction of neighbours of `worst` that keep four fifths of its score.
    runs
        Runner of the candidates, whose executor may be closed.
    """

    attack: Attack
    best: Candidate
    worst: Candidate
    scores: tuple[Scored, Scored]
    looked_at: int
    history: Sequence[tuple[int, float]]
    width: float
    runs: Runs = field(repr=False)

    @property
    def score(self) -> float:
        """Score of the worst case as originally found by the search."""
        return self.scores[0].score

    @property
    def reference(self) -> int:
        """Arm with the best result."""
        values, bytes_ = self.scores[1].values[1:], self.scores[1].delivered[1:]
        by = values if self.attack.objective in ("utilisation", "starvation", "harm") else bytes_
        return 1 + max(range(len(by)), key=lambda i: (by[i], -i))


def run(
    attack: Attack,
    executor: Executor,
    *,
    folder: Path | None = None,
    simplify: bool = True,
    progress: Callable[[int, float], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
    others: Others | None = None,
) -> Found:
    """Search, simplify the worst case, and examine its neighbourhood.

    Parameters
    ----------
    attack
        The attack.
    executor
        Executor for the runs.
    folder
        Folder for the journal. Candidates in an existing journal are not run again.
    simplify
        Whether to simplify the worst case and to examine its neighbours.
    progress
        Called with the number of examined candidates and the best score so far.
    stopped
        Returns whether the search must end early.
    others
        Reference runs shared by searches with the same budget, objective and seed; those of this search are added.

    Raises
    ------
    InputError
        If a run fails, or the journal belongs to another search.
    """
    journal = None if folder is None else Journal(folder / JOURNAL, attack.identity())
    with contextlib.nullcontext() if journal is None else contextlib.closing(journal):
        runs = Runs(
            objective=attack.wanted,
            budget=attack.budget,
            arms=attack.arms,
            seed=attack.seed,
            executor=executor,
            victim=attack.victim,
            journal=journal,
            stopped=stopped,
            others=others,
        )
        found = _searched(attack, runs, simplify=simplify, progress=progress)
        runs.journal = None
    return found


def _searched(attack: Attack, runs: Runs, *, simplify: bool, progress: Callable[[int, float], None] | None) -> Found:
    allowed(runs)
    looked: dict[Candidate, float] = {}
    history: list[tuple[int, float]] = []
    best: tuple[float, Candidate] | None = None

    def ask(candidates: Sequence[Candidate]) -> list[float]:
        nonlocal best
        new = [c for c in dict.fromkeys(candidates) if c not in looked][: attack.evaluations - len(looked)]
        for candidate, scored in zip(new, runs.score(new), strict=True):
            looked[candidate] = scored.score
            if best is None or scored.score > best[0]:
                best = (scored.score, candidate)
                history.append((len(looked), scored.score))
        if progress is not None:
            progress(len(looked), best[0] if best else 0.0)
        if len(looked) >= attack.evaluations:
            raise Enough
        return [looked[c] for c in candidates]

    with contextlib.suppress(Enough):
        SEARCHES[attack.search](ask, attack.budget, attack.seed)
    assert best is not None, "a search looks at one candidate at least"
    simplify = simplify and best[0] > 0
    worst = shrink.minimised(runs, best[1]) if simplify else best[1]
    width = shrink.width(runs, worst) if simplify else 0.0
    first, last = runs.score([best[1], worst])
    return Found(
        attack=attack, best=best[1], worst=worst, scores=(first, last), looked_at=len(looked), history=history,
        width=width, runs=runs,
    )  # fmt: skip
