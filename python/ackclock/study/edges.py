"""Finds the verdicts that change if a constant chosen by a study takes a neighbouring value. Each constant is varied
alone, with the same seeds.

`ackclock study edges NAME` repeats the experiments that depend on a constant, and stores changed verdicts in
`edges.json` beside the record. A verdict counts as changed if it differs and the deciding number has moved: the
difference between the two numbers, run by run if both know their runs, excludes zero.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock import report
from ackclock._files import refused, regular
from ackclock.errors import InputError, one_of, quote
from ackclock.judge.estimates import Z95
from ackclock.judge.evidence import Evidence
from ackclock.study.claim import Judged, Tables
from ackclock.study.edge import Edge
from ackclock.study.record import LARGEST, as_written

if TYPE_CHECKING:
    from ackclock.study.plan import Plan
    from ackclock.study.study import Study

FILE = "edges.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Turned:
    """A verdict that changes when a constant takes a neighbouring value."""

    edge: str
    constant: str
    adopted: str
    neighbour: str
    claim: str
    half: str
    before: str
    after: str
    moved: float


@contextmanager
def changed(study: Study, edge: Edge, value: Any) -> Iterator[Any]:
    """Set a constant to another value in all modules of the study that contain it under this name. Yields the adopted value.

    Raises
    ------
    InputError
        If there is no such constant.
    """
    package = type_package(study)
    module, _, name = edge.constant.rpartition(".")
    home = import_module(f"{package}.{module}")
    if not hasattr(home, name):
        raise InputError(f"edge {edge.name}: found {quote(edge.constant)}; allowed: {one_of(name, sorted(vars(home)))}")
    adopted = getattr(home, name)
    value = tuple(value) if isinstance(value, list) else value
    places = [
        one
        for key, one in list(sys.modules.items())
        if key.startswith(package) and vars(one).get(name, value) is adopted
    ]
    for one in places:
        setattr(one, name, value)
    try:
        yield adopted
    finally:
        for one in places:
            setattr(one, name, adopted)


def type_package(study: Study) -> str:
    """Return the package of a study's modules."""
    return study.experiments[0].run.__module__.rpartition(".")[0]


def vary(study: Study, plan: Plan, edges: Sequence[Edge] | None = None) -> list[Turned]:
    """Vary each constant alone, and judge the claims that read its experiments.

    Parameters
    ----------
    study
        Study to vary.
    plan
        Scale and threads; the seeds are the same for each value.
    edges
        Constants to vary; None: all.
    """
    from ackclock.study.study import carry_out

    edges = study.edges if edges is None else edges
    used = {name for edge in edges for name in edge.experiments}
    tables = carry_out([e for e in study.experiments if e.name in _needed(study, used)], plan).tables
    found = []
    for edge in edges:
        touched = [e for e in study.experiments if e.name in edge.experiments]
        before = dict(_judged(study, tables, edge.experiments))
        for value in edge.neighbours:
            with changed(study, edge, value) as adopted:
                own = {**tables, **carry_out(touched, plan).tables}
                after = dict(_judged(study, own, edge.experiments))
            found += [
                Turned(
                    edge=edge.name,
                    constant=edge.constant,
                    adopted=str(adopted),
                    neighbour=str(value),
                    claim=claim,
                    half=half,
                    before=str(first.verdict),
                    after=str(after[claim, half].verdict),
                    moved=_moved(first.decisive, after[claim, half].decisive),
                )
                for (claim, half), first in before.items()
                if (claim, half) in after and turns(first, after[claim, half])
            ]
    return found


def _needed(study: Study, touched: set[str]) -> set[str]:
    """Return the experiments to run before anything is varied: all of them if any constant affects an experiment, because claims may read several."""
    return {e.name for e in study.experiments} if touched else set()


def _judged(study: Study, tables: Tables, experiments: Sequence[str]) -> Iterator[tuple[tuple[str, str], Judged]]:
    """Judge the halves that read one of these experiments."""
    from ackclock.study.reading import Read

    for claim in study.claims:
        if claim.not_comparable:
            continue
        for half, criterion in claim.halves:
            looked_at = Read(tables)
            judged = criterion.judge(looked_at)
            if {name.partition(".")[0] for name in looked_at.seen} & set(experiments):
                yield (claim.id, half), judged


def turns(first: Judged, second: Judged) -> bool:
    """Return whether the verdict differs and its number has moved by more than chance would explain."""
    if first.verdict is second.verdict:
        return False
    a, b = first.decisive, second.decisive
    if a is None or b is None:
        return False
    if a.interval is None and b.interval is None:
        return a.value != b.value
    half = _half_width(a, b)
    return math.isfinite(half) and abs(_moved(a, b)) > half


def _moved(a: Evidence | None, b: Evidence | None) -> float:
    return math.nan if a is None or b is None else b.value - a.value


def _half_width(a: Evidence, b: Evidence) -> float:
    """Return half the width of the 95 % interval of the difference, run by run if both have the same number of runs
    from the same streams.
    """
    one, other = (e.estimate.parts if e.estimate is not None else {} for e in (a, b))
    if one and one.keys() == other.keys() and all(one[k].size == other[k].size for k in one):
        return Z95 * math.sqrt(sum(float((one[k] - other[k]).var(ddof=1)) / one[k].size for k in one))
    widths = [(e.interval[1] - e.interval[0]) / 2 if e.interval else 0.0 for e in (a, b)]
    return math.hypot(*widths)


def write(study: Study, found: Sequence[Turned], *, scale: str, version: str, date: str) -> Path | None:
    """Write the changed verdicts to a file beside the study's record; None if the study has no record."""
    if study.record is None:
        return None
    path = study.record.with_name(FILE)
    text = {
        "taken": {"version": version, "date": date, "scale": scale},
        "varied": [{"name": e.name, "constant": e.constant, "neighbours": list(e.neighbours)} for e in study.edges],
        "turned": [asdict(one) for one in found],
    }
    try:
        path.write_text(json.dumps(text, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise refused(error, str(path)) from None
    return path


def read(study: Study) -> tuple[Mapping[str, str], list[Turned]] | None:
    """Return the stored edges; None if there are none."""
    path = None if study.record is None else study.record.with_name(FILE)
    if path is None or not path.exists():
        return None
    with as_written(path):
        found = json.loads(regular(path, LARGEST))
        return dict(found["taken"]), [Turned(**one) for one in found["turned"]]


def section(study: Study) -> report.Section | None:
    """Return a report section with the constants and the verdicts that change for neighbouring values; None if none
    were varied.
    """
    kept = read(study)
    if kept is None:
        return None
    taken, turned = kept
    rows = []
    for edge in study.edges:
        own = [one for one in turned if one.edge == edge.name]
        told = "; ".join(f"{one.claim} {one.half} at {one.neighbour}: {one.before} to {one.after}" for one in own)
        rows.append(
            (
                report.TableCell(text=edge.name, kind="head"),
                report.TableCell(text=edge.why, kind="text"),
                ", ".join(map(str, edge.neighbours)),
                report.TableCell(text=told or "none", kind="text"),
            )
        )
    return report.Section(
        title="Edges",
        blocks=(
            report.Table(
                caption=f"Constants that we adopted, each varied alone at {taken.get('scale', '')} scale with the same seeds, and the verdicts that turn.",
                header=("constant", "what the publication says", "neighbours", "verdicts that turn"),
                rows=tuple(rows),
            ),
        ),
    )


def words(turned: Sequence[Turned], claim: str) -> str:
    """Return the neighbouring values that change a claim's verdict, as a sentence; empty if there are none."""
    own = [f"{one.edge} {one.neighbour}: {one.after}" for one in turned if one.claim == claim]
    return f"Turns with {', '.join(own)}." if own else ""
