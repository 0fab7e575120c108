"""Loss at the slow link's highest load as a function of time (I3, I5): the later a run ends, the longer the queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import Array, median, quotient
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Block, paragraph
from ackclock.study import Chapter, Data, Experiment, Plan, Tables
from ackclock.study.cells import Cell, collect
from ackclock_studies.iw10 import testbed
from ackclock_studies.iw10.readings import EXTREMES
from ackclock_studies.iw10.testbed import FIVE, IW3, IW10, MODES, SINGLE, SLOW

SECONDS = (300, 900, 1800, 3600)


def run(plan: Plan) -> Data:
    """Loss rates for different run lengths, for each reading of the load.

    Returns
    -------
    Data
        `lengths.links`: load, mode, arm, seconds, and the columns of the bottleneck.
    """
    cells = [
        Cell(
            scenario=testbed.loaded(SLOW, mode, offered, arm, duration_s=seconds),
            keys={"load": load, "mode": mode, "arm": arm, "seconds": seconds},
            stream=f"lengths {mode}",
            seeds=plan.count(quick=6, paper=40),
            needs={"links": testbed.LINK_COLUMNS},
            keep={"links": testbed.bottleneck_of},
        )
        for load, offered in EXTREMES.items()
        for mode in MODES
        for arm in (IW3, IW10)
        for seconds in SECONDS
    ]
    return collect("lengths", cells, plan)


def _plr(tables: Tables, load: str, mode: str, arm: str, seconds: int) -> Array:
    t = tables["lengths.links"].filter(
        (pl.col("load") == load) & (pl.col("mode") == mode) & (pl.col("arm") == arm) & (pl.col("seconds") == seconds)
    )
    return t.sort("seed")["plr"].to_numpy()


QUANTITIES = {
    "I3, single opens:\nIW10 / IW3": ((SINGLE, IW10), (SINGLE, IW3), 1.5),
    "I3, five opens:\nIW10 / IW3": ((FIVE, IW10), (FIVE, IW3), 1.5),
    "I5, IW3:\nfive opens / single": ((FIVE, IW3), (SINGLE, IW3), 3.0),
    "I5, IW10:\nfive opens / single": ((FIVE, IW10), (SINGLE, IW10), 3.0),
}
LOOK = dict(
    zip(
        EXTREMES,
        ((OKABE_ITO["vermilion"], "o", "-"), (OKABE_ITO["orange"], "s", "--"), (OKABE_ITO["blue"], "^", ":")),
        strict=True,
    )
)


def figure(tables: Tables) -> Figure:
    """Ratios of loss rates against run length."""
    rows = []
    for load in EXTREMES:
        for name, (over, under, bound) in QUANTITIES.items():
            for seconds in SECONDS:
                x, y = (_plr(tables, load, mode, arm, seconds) for mode, arm in (over, under))
                # arms of one mode have the same arrivals, run by run; different modes do not
                with np.errstate(divide="ignore", invalid="ignore"):
                    e = median(x / y) if over[0] == under[0] else quotient(median(x), median(y))
                rows.append(
                    {
                        "load": load,
                        "quantity": name.replace("\n", " "),
                        "minutes": seconds / 60,
                        "ratio": e.value,
                        "low": e.low,
                        "high": e.high,
                        "bound": bound,
                    }
                )
    table = pl.DataFrame(rows)

    def draw() -> Any:
        made, axes = new(8.0, 3.2, ncols=len(QUANTITIES))
        for ax, (name, (*_, bound)) in zip(axes, QUANTITIES.items(), strict=True):
            for load, (colour, marker, dash) in LOOK.items():
                own = table.filter((pl.col("load") == load) & (pl.col("quantity") == name.replace("\n", " ")))
                value = own["ratio"].to_numpy()
                error = np.abs(own.select("low", "high").to_numpy().T - value)
                error[~np.isfinite(error)] = 0.0
                error[0] = np.minimum(error[0], 0.9 * value)
                x = own["minutes"].to_numpy() * (1 + 0.04 * list(LOOK).index(load))
                ax.errorbar(x, value, yerr=error, color=colour, marker=marker, ls=dash, lw=1, label=f"{load} offered")
            ax.axhline(bound, color="#555555", lw=0.8, ls=(0, (4, 2)))
            ax.set_title(name, fontsize=8.5)
            ax.set(xlabel="length of the run (min)", xscale="log", yscale="log")
            ax.set_xticks([x / 60 for x in SECONDS], [f"{x / 60:g}" for x in SECONDS])
            ax.xaxis.set_minor_formatter("")
            ticks = [1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0]
            ax.set_yticks(ticks, [f"{x:g}" for x in ticks])
            shown = table.filter(pl.col("quantity") == name.replace("\n", " "))["ratio"].to_numpy()
            ax.set_ylim(min(0.9, 0.8 * float(shown.min())), 2 * max(float(shown.max()), bound))
            ax.yaxis.set_minor_formatter("")
        axes[0].set_ylabel("ratio of loss rates")
        made.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return made

    def at(seconds: int, quantity: str) -> float:
        own = table.filter((pl.col("load") == "97.5 %") & (pl.col("minutes") == seconds / 60))
        return float(own.filter(pl.col("quantity") == quantity)["ratio"][0])

    five = "I5, IW3: five opens / single"
    return Figure(
        name="run-length",
        title=(
            f"The longer the run, the less the arms differ: with IW3 five opens lose {at(SECONDS[0], five):.1f} times as much as single ones after "
            f"{SECONDS[0] // 60} minutes, {at(SECONDS[-1], five):.1f} times after an hour"
        ),
        caption=(
            "Ratios of loss rates at the highest load of the slow link against the length of the run, which the slides do not give, for three "
            "readings of that load. Medians over seeds with 95 % intervals; dashed: our bound for the magnitude."
        ),
        draw=draw,
        data={"lengths": table},
    )


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (
        paragraph(
            "Offered nearly all that it carries, the link has a queue that grows for longer than a run lasts, and with it the losses. How much the arms "
            "differ depends on how long that has gone on when the run ends. What is sent again is dropped before the link, and costs it nothing."
        ),
        figure(t),
    )


CHAPTER = Chapter(
    title="How long a run lasts",
    experiments=(
        Experiment(name="lengths", title="loss at the highest load against the length of the run", run=run, weight=6),
    ),
    blocks=blocks,
)
