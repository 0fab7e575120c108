"""Computes a run's score from its tables, 0 to 1: the weighted geometric mean of the terms that count in its
family.

With a geometric mean, an entry cannot make up for a term that it sacrifices completely: an entry that delivers nothing
gains nothing from a short queue.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ackclock.arena.task import FLOOR, Draw, Task
from ackclock.evaluate.frame import PAYLOAD

if TYPE_CHECKING:
    import polars as pl

    from ackclock._results.result import Run

    Frames = Mapping[str, pl.DataFrame]

KEPT: tuple[tuple[str, tuple[str, ...] | None], ...] = (
    ("performance", ("of", "number", "group", "goodput_bps", "loss_share", "p95_delay_s")),
    ("goodput", ("t_s", "flow", "goodput_bps")),
    ("transactions", ("arrival_s", "bytes", "total_s", "done")),
)
"""Tables stored for each run, with their columns."""

PATIENCE = 10.0
"""Multiple of a response's minimum duration: an unfinished response requested longer than this before the end of the
run counts as never finished.
"""


def frames(run: Run) -> dict[str, pl.DataFrame]:
    """A run's tables from which scores are computed."""
    return {table: getattr(run, table) for table, _ in KEPT if table in run.tables}


def combined(task: Task, terms: Mapping[str, float], *, off: frozenset[str] = frozenset()) -> float:
    """Return a scenario's score from its terms. `off` lists the disabled traps; with "geometric" among them, the
    mean is arithmetic.

    Examples
    --------
    >>> from ackclock.arena.task import load
    >>> round(combined(load("internet"), {"throughput": 0.5, "delay": 1.0}), 3)
    0.595
    """
    weights = {term: task.weights[term] for term in terms}
    whole = sum(weights.values())
    if "geometric" in off:
        return sum(w * terms[term] for term, w in weights.items()) / whole
    return math.exp(sum(w * math.log(max(terms[term], FLOOR)) for term, w in weights.items()) / whole)


def terms(
    task: Task, draw: Draw, run: Frames, reference: Frames, *, off: frozenset[str] = frozenset()
) -> dict[str, float]:
    """Return the terms that count in a scenario.

    Parameters
    ----------
    run
        Tables of the run with the entry.
    reference
        Tables of the run with CUBIC in its place.
    off
        Disabled traps: terms that do not count, and "unfinished", without which unfinished responses do not count.
    """
    if "unfinished" in off and "speed" in draw.family.counts:
        rows = run["transactions"]
        run = {**run, "transactions": rows.filter(rows["done"])}
    counts = [term for term in draw.family.counts if term not in off]
    return {term: min(max(_TERMS[term](task, draw, run, reference), 0.0), 1.0) for term in counts}


def _groups(run: Frames, which: tuple[int, ...], column: str) -> list[float]:
    rows = run["performance"]
    found = dict(zip(*(rows.filter(rows["of"] == "group")[name].to_list() for name in ("number", column)), strict=True))
    return [float("nan") if found.get(i) is None else float(found[i]) for i in which]


def _sum(values: list[float]) -> float:
    return sum(v for v in values if v == v)


def _throughput(_: Task, draw: Draw, run: Frames, __: Frames) -> float:
    mine, others = draw.groups
    return _sum(_groups(run, mine, "goodput_bps")) / (draw.rate_bps * PAYLOAD * len(mine) / len(mine + others))


def _delay(task: Task, draw: Draw, run: Frames, _: Frames) -> float:
    found = [v for v in _groups(run, draw.groups[0], "p95_delay_s") if v == v]
    return task.delay_s / (task.delay_s + max(max(found) - draw.delay_s, 0.0)) if found else 0.0


def _loss(task: Task, draw: Draw, run: Frames, _: Frames) -> float:
    found = [v for v in _groups(run, draw.groups[0], "loss_share") if v == v]
    return task.loss / (task.loss + max(found)) if found else 0.0


def _fairness(_: Task, draw: Draw, run: Frames, __: Frames) -> float:
    values = [v if v == v else 0.0 for v in _groups(run, draw.groups[0], "goodput_bps")]
    squares = sum(v * v for v in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 0.0


def _others(_: Task, draw: Draw, run: Frames, reference: Frames) -> float:
    usual = _sum(_groups(reference, draw.groups[1], "goodput_bps"))
    return _sum(_groups(run, draw.groups[1], "goodput_bps")) / usual if usual else 1.0


def _recovery(_: Task, draw: Draw, run: Frames, __: Frames) -> float:
    assert draw.family.recovery is not None
    since, until = draw.family.recovery
    rows = run["goodput"]
    inside = rows.filter((rows["t_s"] > since + 1e-9) & (rows["t_s"] < until + 1e-9))
    times = inside["t_s"].n_unique()
    whole = draw.rate_bps * PAYLOAD * times
    return float(inside["goodput_bps"].fill_nan(0.0).fill_null(0.0).sum()) / whole if whole else 0.0


def _speed(_: Task, draw: Draw, run: Frames, __: Frames) -> float:
    from ackclock.units import DURATION, whole

    end = whole(draw.keys["duration"], DURATION) / 1e9
    found = []
    columns: list[list[Any]] = [
        run["transactions"][name].to_list() for name in ("arrival_s", "bytes", "total_s", "done")
    ]
    for arrival, size, total, done in zip(*columns, strict=True):
        least = 4 * draw.delay_s + 8 * size / (
            draw.rate_bps * PAYLOAD
        )  # one round trip for the handshake, one for request and response
        if done and total:
            found.append(min(least / total, 1.0))
        elif end - arrival > PATIENCE * least:
            found.append(0.0)
    return sum(found) / len(found) if found else 0.0


_TERMS = {
    "throughput": _throughput, "delay": _delay, "loss": _loss, "fairness": _fairness, "others": _others, "recovery": _recovery,
    "speed": _speed,
}  # fmt: skip
