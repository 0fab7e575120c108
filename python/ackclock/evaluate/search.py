"""Row x5: a search for the candidate's worst environment, with the same budget for every controller."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock import attack
from ackclock.errors import UnavailableError
from ackclock.evaluate.situation import Arm, Row
from ackclock.evaluate.verdict import RowVerdict
from ackclock.text import share as told_share

if TYPE_CHECKING:
    from ackclock.sweep import Executor

BUDGET, EVALUATIONS, SEED = "steps", 200, 1
"""Search budget, number of evaluations and seed."""

FOLDER = "search"
"""Folder for the journals, one per search."""


def searched(
    row: Row, candidate: Arm, reference: str, folder: Path, executor: Executor, stop: threading.Event | None
) -> tuple[RowVerdict, Mapping[str, Any]]:
    """Return the row, with the results as plain values.

    Raises
    ------
    UnavailableError
        If it was stopped early; the next call continues there.
    """
    found = _found(candidate.controller, candidate.options, folder, executor, stop)
    theirs = found if candidate.controller == reference else _found(reference, {}, folder, executor, stop)
    worst = found.scores[1]
    budget = found.attack.budget
    references = ", ".join(arm.name for arm in found.attack.arms[1:])
    said = (
        f"delivers {told_share(1 - worst.score)} of the best of {references} ({reference} in its own worst case: "
        f"{told_share(1 - theirs.scores[1].score)}): {budget.words(found.worst)}"
    )
    return RowVerdict(row=row, verdict="reported", reason=said), {
        "budget": {"name": budget.name, **budget.table},
        "evaluations": found.looked_at,
        "seed": SEED,
        "references": [arm.name for arm in found.attack.arms[1:]],
        "score": worst.score,
        "reference_score": theirs.scores[1].score,
        "environment": [[g.name, g.written(v)] for g, v in zip(budget.genes_of(found.worst), found.worst, strict=True)],
        "digest": worst.digests[0],
        "scenario": found.runs.scenario(found.worst).to_toml(),
    }


def _found(
    controller: str, options: Mapping[str, Any], folder: Path, executor: Executor, stop: threading.Event | None
) -> attack.Found:
    wanted = attack.Attack(
        target=controller, options=dict(options), budget=attack.load(BUDGET), evaluations=EVALUATIONS, seed=SEED
    )
    name = hashlib.sha256(json.dumps(wanted.identity(), sort_keys=True).encode()).hexdigest()[:16]
    place = folder / FOLDER / name
    place.mkdir(parents=True, exist_ok=True)
    try:
        return attack.run(wanted, executor, folder=place, stopped=(lambda: False) if stop is None else stop.is_set)
    except KeyboardInterrupt:
        raise UnavailableError("stopped in the search for a worst case; the same command goes on from there") from None
