"""A study's plan, written and hashed before the run: the claims, their bounds, and the code that computes them.

A run that names the plan (`ackclock study run NAME --registered plan.json`) derives its seeds from the plan's hash, so
these runs cannot have been seen before the plan was written.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ackclock import _files
from ackclock.errors import InputError, quote
from ackclock.study.claim import Asked, Cause, Criterion, Stated
from ackclock.study.study import Study

LARGEST = 2**24
"""Maximum size of a plan, bytes."""


def plan(study: Study) -> dict[str, Any]:
    """Return the plan of the study as plain values.

    Parameters
    ----------
    study
        The study.

    Returns
    -------
    dict
        "study", "code" (hash of its Python), "readings" (the main ones), "claims".
    """
    return {
        "format": 1,
        "study": study.name,
        "code": code(study),
        "readings": {r.name: r.main for r in study.readings},
        "claims": [
            {
                "id": claim.id,
                "place": claim.place,
                "statement": claim.statement,
                "not_comparable": claim.not_comparable,
                **{
                    name: criterion_plan(criterion)
                    for name, criterion in (("direction", claim.direction), ("magnitude", claim.magnitude))
                    if criterion is not None
                },
                "causes": [_cause(cause) for cause in claim.causes],
                "guesses": list(claim.guesses),
            }
            for claim in study.claims
        ],
    }


def _cause(cause: Cause) -> dict[str, Any]:
    return {"because": cause.because, "intervention": cause.intervention, **criterion_plan(cause.criterion)}


def criterion_plan(criterion: Criterion) -> dict[str, Any]:
    """Return the plan of one half. Its bound is included if declared in the criterion; otherwise the bound is part of
    the code.
    """
    found: dict[str, Any] = {
        "reading": criterion.reading,
        "cell": criterion.cell,
        "bound_by": criterion.bound,
        "printed": criterion.printed,
        "readings": [r.name for r in criterion.reads],
    }
    if criterion.needs > 2:  # the default of two is omitted, as in older plans
        found["needs"] = criterion.needs
    if criterion.over != "each":
        found["over"] = criterion.over
    if isinstance(criterion.measure, Asked | Stated):
        bound = criterion.measure.bound
        found["bound"] = {
            "low": bound.low if math.isfinite(bound.low) else None,
            "high": bound.high if math.isfinite(bound.high) else None,
            "strict": bound.strict,
            "margin": bound.margin,
        }
    found |= _named(criterion.measure)
    return found


def _named(measure: Callable[..., Any]) -> dict[str, Any]:
    """Return the name of the measuring function and its arguments."""
    of = getattr(measure, "of", measure)
    of = getattr(of, "function", of)
    arguments = {"of": of.keywords} if isinstance(of, partial) else {}
    return {"measure": getattr(getattr(of, "func", of), "__name__", ""), **arguments}


def code(study: Study) -> str:
    """Return the hash of the Python files beside the study's experiments."""
    folders = {study.source} if study.source else {Path(inspect.getfile(e.run)).parent for e in study.experiments}
    digest = hashlib.sha256()
    for file in sorted(f for folder in folders for f in folder.glob("*.py")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def hashed(found: dict[str, Any]) -> str:
    """Return the hash of a plan."""
    return hashlib.sha256(json.dumps(found, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def write(study: Study, file: Path) -> str:
    """Write the plan with its hash, and return the hash.

    Raises
    ------
    InputError
        If the file exists with another plan: a plan is never changed afterwards.
    """
    made = plan(study)
    text = json.dumps({"hash": hashed(made), "plan": made}, indent=1, ensure_ascii=False) + "\n"
    if file.exists() and file.read_text(encoding="utf-8") != text:
        raise InputError(f"{file}: found another plan there; allowed: a new file, for a plan is not changed afterwards")
    _files.write(file, text, str(file))
    return hashed(made)


def read(file: Path) -> dict[str, Any]:
    """Return a plan from its file, after checking its hash.

    Raises
    ------
    InputError
        If it cannot be read, or its hash is wrong.
    """
    try:
        if not file.is_file() or file.stat().st_size > LARGEST:
            raise InputError(f"{file}: found no plan; allowed: a file that ackclock study register wrote")
        found = json.loads(file.read_text(encoding="utf-8"))
        kept, made = found["hash"], found["plan"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"{file}: found no plan; allowed: a file that ackclock study register wrote") from None
    if not isinstance(made, dict) or kept != hashed(made):
        raise InputError(f"{file}: found the hash {quote(kept)}, which is not that of the plan beside it")
    return dict(found)


def differences(registered: dict[str, Any], study: Study) -> list[str]:
    """Return the differences between the study and the registered plan, one line each."""
    before, now = registered["plan"], plan(study)
    found = [f"{key}: changed" for key in ("study", "code", "readings") if before.get(key) != now[key]]
    old = {claim["id"]: claim for claim in before.get("claims", [])}
    for claim in now["claims"]:
        if claim["id"] not in old:
            found.append(f"claim {claim['id']}: new")
        elif old[claim["id"]] != claim:
            keys = [key for key in claim if old[claim["id"]].get(key) != claim[key]]
            found.append(f"claim {claim['id']}: changed in {', '.join(keys)}")
    there = {claim["id"] for claim in now["claims"]}
    found += [f"claim {name}: gone" for name in old if name not in there]
    return found
