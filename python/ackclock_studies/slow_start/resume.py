"""Careful Resume: its gain on a known path, and its cost if the path capacity has dropped (S10, S11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import median
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Block
from ackclock.scenario import Scenario
from ackclock.study import (
    Bound,
    Chapter,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
    at_most,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.slow_start.paths import CLASSIC, HYSTART, Place, of

RESUME = "careful-resume"
KNOWN, SHRUNK, NARROW = "as it was", "a third", "as it was, receive window of Linux"
RTT = 100
PATH = Place(rate=50, rtt=RTT, queue=1.0)
THIRD = Place(rate=17, rtt=RTT, queue=1.0)
SIZES = ("300 KB", "1 MB", "3 MB")
TABLE = "resume.runs"
SAVED: Mapping[str, Any] = {"kind": RESUME, "saved_cwnd": round(PATH.bdp), "saved_rtt": f"{RTT} ms"}
"""State saved by a connection that filled the path."""

CASES: Mapping[str, tuple[Place, dict[str, Any]]] = {
    KNOWN: (PATH, {"initial_receive_window": 2000}),
    NARROW: (PATH, {}),
    SHRUNK: (THIRD, {"initial_receive_window": 2000}),
}
NEEDS = {"flows": ("flow", "completion_s", "retransmissions", "rtos")}


def run(plan: Plan) -> Data:
    """Transfers of three sizes, with and without resuming.

    Returns
    -------
    Data
        `resume.runs`: arm, case, size, seed, completion_s, retransmissions, rtos.
    """
    cells = [
        Cell(
            scenario=place.scenario(
                SAVED if arm == RESUME else arm, 200, stack=stack, workload={"kind": "transfer", "bytes": size}
            ),
            keys={"arm": arm, "case": case, "size": size},
            stream=f"resume {case} {size}",
            seeds=plan.count(quick=8, paper=100),
            needs=NEEDS,
            keep={"runs": lambda batch: batch.flows.filter(pl.col("flow") == 0).drop("flow")},
        )
        for case, (place, stack) in CASES.items()
        for size in SIZES
        for arm in (CLASSIC, HYSTART, RESUME)
    ]
    return collect("resume", cells, plan)


def took(tables: Tables, arm: str, case: str, size: str) -> Any:
    """Completion times, s."""
    return of(tables, TABLE, "completion_s", arm=arm, case=case, size=size)


def _saved(tables: Tables, bound: Any) -> list[Evidence]:
    return [
        Evidence.of(
            median((took(tables, CLASSIC, case, size) - took(tables, RESUME, case, size)) * 1e3 / RTT),
            f"{size}, path {case}: round trips saved",
            bound,
            unit="round trips",
            weighs=case == KNOWN,
            key=f"{'known' if case == KNOWN else 'narrow'}_{size.split()[0]}",
        )
        for case in (KNOWN, NARROW)
        for size in SIZES
    ]


def s10(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Ratio of the completion time to the classic start's."""
    return [
        Evidence.of(
            median(took(tables, RESUME, KNOWN, size) / took(tables, CLASSIC, KNOWN, size)),
            f"{size}: completion, resumed over classic",
            bound,
            key=f"ratio_{size.split()[0]}",
        )
        for size in SIZES
    ]


def s10_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Gain in round trips."""
    return _saved(tables, bound)


def s11(tables: Tables) -> Sequence[Evidence]:
    """Timeouts, and ratio of the completion time to the classic start's, at a third of the rate."""
    found = []
    for size in SIZES:
        rtos = of(tables, TABLE, "rtos", arm=RESUME, case=SHRUNK, size=size)
        found.append(
            Evidence.of(
                median(took(tables, RESUME, SHRUNK, size) / took(tables, CLASSIC, SHRUNK, size)),
                f"{size}: completion, resumed over classic",
                at_most(1.1),
                key=f"ratio_{size.split()[0]}",
            )
        )
        found.append(Evidence.of(median(rtos), f"{size}: timeouts", at_most(0), key=f"rtos_{size.split()[0]}"))
        again = of(tables, TABLE, "retransmissions", arm=RESUME, case=SHRUNK, size=size)
        found.append(
            Evidence.of(
                median(again),
                f"{size}: retransmissions",
                at_most(SAVED["saved_cwnd"] / 2),
                unit="segments",
                weighs=False,
                key=f"again_{size.split()[0]}",
            )
        )
    return found


def figure(tables: Tables) -> Figure:
    """Completion times."""
    look = {CLASSIC: (OKABE_ITO["black"], "o"), HYSTART: (OKABE_ITO["vermilion"], "s"), RESUME: (OKABE_ITO["sky"], "P")}

    def draw() -> Any:
        figure, axes = new(8.4, 3.2, ncols=len(CASES), sharey=True)
        for ax, case in zip(axes, CASES, strict=True):
            for offset, (arm, (colour, marker)) in enumerate(look.items()):
                middle = [float(np.median(took(tables, arm, case, size))) * 1e3 / RTT for size in SIZES]
                at = np.arange(len(SIZES)) + 0.15 * (offset - 1)
                ax.plot(at, middle, ls="none", marker=marker, color=colour, ms=6.5, label=arm)
            ax.set_xticks(range(len(SIZES)), SIZES)
            ax.set_title(
                {KNOWN: "path as it was", NARROW: "the same, 64 KB receive window", SHRUNK: "a third of the rate"}[
                    case
                ],
                fontsize=9,
            )
            ax.grid(axis="x", visible=False)
        axes[0].set_ylabel("completion (round trips)")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(look))
        return figure

    return Figure(
        name="resume",
        title="A window that was saved",
        caption=(
            "Transfers over 50 Mb/s and 100 ms, medians. Careful Resume saved a bandwidth-delay product, 417 segments. Middle: the receiver "
            "offers 64 KB at first and more as data comes, as Linux does. Right: the path has a third of the rate."
        ),
        draw=draw,
        data={"resume": tables[TABLE]},
    )


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (figure(tables),)


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    work = {"kind": "transfer", "bytes": "1 MB"}
    return {"resume: 1 MB, a third of the rate": THIRD.scenario(SAVED, 200, workload=work)}


CHAPTER = Chapter(
    experiments=(Experiment(name="resume", title="Careful Resume, and a path that has shrunk", run=run, weight=1),),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
