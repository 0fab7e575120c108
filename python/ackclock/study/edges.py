"""Finds the verdicts that change if a constant chosen by a study takes a neighbouring value. Each constant is varied
alone, with the same seeds.

`ackclock study edges NAME --record` repeats the experiments that depend on a constant, and stores changed verdicts in
`edges.json` beside the record, one constant after another. A verdict counts as changed if it differs and the deciding
number has moved: the difference between the two numbers, run by run if both know their runs, excludes zero. A
neighbour that moves no number is listed as such, because the experiment may not depend on the constant at all.
"""

from __future__ import annotations

import json
import math
import sys
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
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
from ackclock.study.reach import Lazy, reads
from ackclock.study.record import LARGEST, as_written, build

if TYPE_CHECKING:
    from ackclock.study.plan import Plan
    from ackclock.study.study import Experiment, Study

FILE = "edges.json"

_Halves = Mapping[tuple[str, str], Judged]
"""Claim and half -> its judgement."""


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Varied:
    """A constant that was varied.

    Parameters
    ----------
    edge
        The constant.
    moved
        For each neighbour, the quantity of numbers in claims that differ from those with the adopted value.
    turned
        Verdicts that change.
    """

    edge: Edge
    moved: tuple[int, ...]
    turned: tuple[Turned, ...]


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
    try:
        home = import_module(f"{package}.{module}")
    except ImportError:
        home = None
    if home is None or not hasattr(home, name):
        there = [key.rpartition(".")[2] for key in sys.modules if key.startswith(f"{package}.")]
        allowed = one_of(module, sorted(there)) if home is None else one_of(name, sorted(vars(home)))
        raise InputError(f"edge {edge.name}: found {quote(edge.constant)}; allowed: {allowed}")
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


@contextmanager
def _neighbour(study: Study, edge: Edge, value: Any, plan: Plan) -> Iterator[tuple[str, Plan]]:
    """Take a neighbouring value. Yields the adopted value, and the plan to run with."""
    if edge.constant:
        with changed(study, edge, value) as adopted:
            yield str(adopted), plan
    else:
        yield "", replace(plan, change=lambda scenario: edge.scenario(scenario, value))


def vary(
    study: Study,
    plan: Plan,
    edges: Sequence[Edge] | None = None,
    done: Callable[[Varied], object] | None = None,
    claims: Sequence[str] = (),
) -> list[Turned]:
    """Vary each constant alone, and judge the claims that read its experiments.

    Parameters
    ----------
    study
        Study to vary.
    plan
        Scale and threads; the seeds are the same for each value.
    edges
        Constants to vary; None: all.
    done
        Called after each constant.
    claims
        Judge these claims only, and rerun only the experiments that they read; empty: all.
    """
    from ackclock.study.study import carry_out

    edges = study.edges if edges is None else edges
    used = {name for edge in edges for name in edge.experiments}
    known = [e.name for e in study.experiments]
    unknown = next((name for name in sorted(used) if name not in known), None)
    if unknown is not None:
        raise InputError(f"edges: found the experiment {quote(unknown)}; allowed: {one_of(unknown, known)}")
    tables = Lazy(study.experiments, plan)
    found = []
    for edge in edges:
        touched = [e for e in study.experiments if e.name in edge.experiments]
        if claims:
            touched = [e for e in touched if any(reads_it(study, claim, e) for claim in claims)]
        names = set[str]().union(*(tables.run(e) for e in touched))
        before = dict(_judged(study, tables, names, claims))
        moved, turned = [], list[Turned]()
        for value in edge.neighbours:
            with _neighbour(study, edge, value, plan) as (adopted, own_plan):
                own = ChainMap(carry_out(touched, own_plan).tables, tables)  # type: ignore[arg-type]
                after = dict(_judged(study, own, names, claims))
            moved.append(_differing(before, after))
            turned += _turned(edge, adopted, edge.told(value), before, after)
        one = Varied(edge=edge, moved=tuple(moved), turned=tuple(turned))
        if done is not None:
            done(one)
        found += turned
    return found


def _turned(edge: Edge, adopted: str, told: str, before: _Halves, after: _Halves) -> Iterator[Turned]:
    """Yield the halves whose verdict changes."""
    for (claim, half), first in before.items():
        second = after.get((claim, half))
        if second is not None and turns(first, second):
            yield Turned(
                edge=edge.name,
                constant=edge.place,
                adopted=adopted,
                neighbour=told,
                claim=claim,
                half=half,
                before=str(first.verdict),
                after=str(second.verdict),
                moved=_moved(first.decisive, second.decisive),
            )


def _differing(before: _Halves, after: _Halves) -> int:
    """Return the quantity of numbers in claims that differ."""
    numbers = [
        {(*at, e.label): e.value for at, one in halves.items() for e in one.evidence} for halves in (before, after)
    ]
    first, second = numbers
    return sum(
        at not in second or not (value == second[at] or (math.isnan(value) and math.isnan(second[at])))
        for at, value in first.items()
    )


def reads_it(study: Study, claim: str, experiment: Experiment) -> bool:
    """Return whether a claim may read an experiment's tables, all of which begin with its name."""
    return any(
        reads(criterion.measure, {experiment.name})
        for one in study.claims
        if one.id == claim and not one.not_comparable
        for _, criterion in one.halves
    )


def _judged(
    study: Study, tables: Tables, touched: set[str], claims: Sequence[str]
) -> Iterator[tuple[tuple[str, str], Judged]]:
    """Judge the halves that read one of these tables, or those of them that belong to these claims."""
    from ackclock.study.reading import Read

    for claim in study.claims:
        if claim.not_comparable or (claims and claim.id not in claims):
            continue
        for half, criterion in claim.halves:
            if reads(criterion.measure, touched):
                looked_at = Read(tables)
                judged = criterion.judge(looked_at)
                if looked_at.seen & touched:
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


def write(study: Study, varied: Varied, *, scale: str, version: str, date: str) -> Path | None:
    """Write a varied constant to a file beside the study's record; None if the study has no record. Entries for other
    constants are kept if the study still declares them.
    """
    if study.record is None:
        return None
    path = study.record.with_name(FILE)
    own = asdict(varied.edge)
    entry = {
        **{key: own[key] for key in ("name", "constant", "key", "neighbours", "times")},
        "moved": varied.moved,
        "taken": {"version": version, "date": date, "build": build(), "scale": scale},
        "turned": [asdict(one) for one in varied.turned],
    }
    kept = {one["name"]: one for one in _entries(path)} | {varied.edge.name: entry}
    text = {"varied": [kept[e.name] for e in study.edges if e.name in kept]}
    try:
        path.write_text(json.dumps(text, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise refused(error, str(path)) from None
    return path


def _entries(path: Path) -> list[dict[str, Any]]:
    """Return the constants in a file; none if there is no file."""
    if not path.exists():
        return []
    with as_written(path):
        return [{**one, "name": str(one["name"])} for one in json.loads(regular(path, LARGEST))["varied"]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """Stored results of a constant: name, neighbours, numbers moved by each, scale, and verdicts that change."""

    name: str
    neighbours: tuple[Any, ...]
    moved: tuple[int, ...]
    scale: str
    turned: tuple[Turned, ...]


def read(study: Study) -> list[Kept]:
    """Return the stored constants."""
    path = None if study.record is None else study.record.with_name(FILE)
    if path is None:
        return []
    with as_written(path):
        return [
            Kept(
                name=one["name"],
                neighbours=tuple(one["neighbours"]),
                moved=tuple(map(int, one["moved"])),
                scale=str(one["taken"]["scale"]),
                turned=tuple(Turned(**turned) for turned in one["turned"]),
            )
            for one in _entries(path)
        ]


def turned(study: Study) -> list[Turned]:
    """Return the verdicts that change with a neighbour of any constant."""
    return [one for kept in read(study) for one in kept.turned]


def section(study: Study) -> report.Section | None:
    """Return a report section with the constants and the verdicts that change for neighbouring values; None if there are
    none. Constants that were not varied yet are listed as such.
    """
    if not study.edges or study.record is None:
        return None
    kept = {one.name: one for one in read(study)}
    rows = [
        (
            report.TableCell(text=edge.name, kind="head"),
            report.TableCell(text=edge.why, kind="text"),
            ", ".join(map(edge.told, edge.neighbours)),
            report.TableCell(text=_told(edge, kept.get(edge.name)), kind="text"),
        )
        for edge in study.edges
    ]
    scales = " and ".join(sorted({one.scale for one in kept.values()})) or "no"
    return report.Section(
        title="Edges",
        blocks=(
            report.Table(
                caption=f"Constants that we adopted, each varied alone at {scales} scale with the same seeds, and the verdicts that turn.",
                header=("constant", "what the publication says", "neighbours", "verdicts that turn"),
                rows=tuple(rows),
            ),
        ),
    )


def _told(edge: Edge, kept: Kept | None) -> str:
    """Return the verdicts that change with a constant, as text."""
    if kept is None or kept.neighbours != edge.neighbours:
        return "not varied"
    still = [edge.told(value) for value, n in zip(kept.neighbours, kept.moved, strict=False) if not n]
    parts = [f"{one.claim} {one.half} at {one.neighbour}: {one.before} to {one.after}" for one in kept.turned]
    parts += [f"{', '.join(still)}: no number moves"] if still else []
    return "; ".join(parts) or "none"


def words(study: Study) -> dict[tuple[str, str], str]:
    """Return each claim and half with a changed verdict -> the neighbouring values that change it, as text."""
    found: dict[tuple[str, str], list[str]] = {}
    edges = {edge.name: edge for edge in study.edges}
    for kept in read(study):
        for at in dict.fromkeys((one.claim, one.half) for one in kept.turned):
            own = [one for one in kept.turned if (one.claim, one.half) == at]
            edge = edges.get(kept.name)
            hangs = edge is not None and edge.readings and 4 * len(own) > len(kept.neighbours) + 1
            which = ", ".join(f"{one.neighbour}: {one.after}" for one in own)
            found.setdefault(at, []).append(f"{'hangs on' if hangs else 'turns with'} the {kept.name} ({which})")
    return {at: "; ".join(parts) for at, parts in found.items()}
