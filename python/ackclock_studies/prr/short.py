"""Responses of two and three segments: early retransmit and tail loss probes (P9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ackclock.judge.estimates import gain
from ackclock.study import (
    Bound,
    Chapter,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
)
from ackclock.study.cells import collect
from ackclock.study.table import declared
from ackclock_studies.prr import fetches, path
from ackclock_studies.prr.path import HIGH
from ackclock_studies.prr.rules import (
    PRR,
)

SHORT = {2: 2 * 1448, 3: 3 * 1448}
"""Segments -> size, bytes, of responses too short for three duplicate ACKs."""

REPAIRS: dict[str, dict[str, Any]] = {
    "neither": {"early_retransmit": "off", "tlp": False},
    "early retransmit": {"early_retransmit": "rfc5827", "tlp": False},
    "delayed early retransmit": {"early_retransmit": "delayed", "tlp": False},
    "tail loss probe": {"early_retransmit": "off", "tlp": True},
}


def run(plan: Plan) -> Data:
    """Responses of two and three segments, with and without early retransmit and tail loss probes.

    Returns
    -------
    Data
        `short.fetches`, keys arm, page, loss, seed.
    """
    cells = []
    for size in SHORT.values():
        seeds = plan.count(quick=2000, paper=10_000)
        for arm, settings in REPAIRS.items():
            sender = path.host(recovery=PRR, **settings)
            cells.append(fetches.fetch_cell(arm, size, 0.03, sender, f"short {size}", seeds))
    return collect("short", cells, plan)


def p9(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Timeouts of short responses with early retransmit or tail loss probes, relative to neither."""
    t = tables["short.fetches"]
    found = []
    for arm in list(REPAIRS)[1:]:
        for segments, size in SHORT.items():
            x, y = fetches.paired(t, size, HIGH, "neither", arm, "data_rtos", hit=None)
            found.append(
                Evidence.of(
                    gain(x, y),
                    f"{segments} segments, 3 %: fewer timeouts with {arm}",
                    bound,
                    unit="%",
                )
            )
    return found


CHAPTER = Chapter(
    experiments=(
        Experiment(name="short", title="short responses with early retransmit and tail loss probes", run=run, weight=5),
    ),
    **declared(__name__),
)
