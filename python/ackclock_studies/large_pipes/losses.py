"""Random loss on path 1 (W10, W11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import Array, median
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
    above,
    at_least,
    below,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.large_pipes import paths
from ackclock_studies.large_pipes.paths import (
    ALABAMA,
    FAST,
    HSTCP,
    NEWRENO,
    PROTOCOLS,
    SENDERS,
    TCPW,
)
from ackclock_studies.large_pipes.readings import FILTER, FILTERS, SACK
from ackclock_studies.large_pipes.runs import column_of
from ackclock_studies.large_pipes.style import COLOUR, DASH, MARKER

QUOTED = FILTERS[FILTER.main]

LOSSES = (0.001, 0.002, 0.003, 0.005)
"""A3: "PER 0.1 up to 0.5", read as percentages."""

ESTIMATORS = {
    "TCPW, SACK on": paths.westwood("TCPW, SACK on", sack=True, **QUOTED),
    "TCPW, packet pairs (BE)": paths.westwood("TCPW, packet pairs (BE)", estimator="be"),
    "TCPW, packet trains (RE)": paths.westwood("TCPW, packet trains (RE)", estimator="re"),
    "FAST, no doubling at low delay": paths.Protocol(
        name="FAST, no doubling at low delay", controller="fast", options={"low_delay_doubling": False}
    ),
}
"""Senders besides the four protocols that may affect the ranking under loss."""
BESIDE = tuple(ESTIMATORS)[1:]
"""Senders shown only in the figure."""


def _cells(table: str, senders: Mapping[str, paths.Protocol], plan: Plan) -> Data:
    seeds, few = plan.count(quick=6, paper=12), plan.count(quick=3, paper=12)
    duration = 120.0 if plan.scale == "paper" and not plan.reading else 20.0

    def throughput(batch: Batch) -> pl.DataFrame:
        return batch.flows.filter(pl.col("flow") == 0).select("seed", "goodput_bps", "rtos", "retransmissions")

    cells = [
        Cell(
            scenario=paths.scenario(ALABAMA, [(protocol, 1)], duration_s=duration, loss=loss, users=0.0),
            keys={"protocol": name, "loss": loss},
            stream=f"large-pipes losses {loss}",
            seeds=few if name in BESIDE else seeds,
            needs={"flows": ("flow", "goodput_bps", "rtos", "retransmissions")},
            keep={"throughput": throughput},
        )
        for name, protocol in senders.items()
        for loss in LOSSES
    ]
    return collect(table, cells, plan, numbered=True)


def run_losses(plan: Plan) -> Data:
    """Random loss on path 1 for all protocols except TCPW.

    Returns
    -------
    Data
        `losses.throughput`: protocol, loss, run, goodput_bps, rtos, retransmissions.
    """
    return _cells("losses", {**{p: SENDERS[p] for p in PROTOCOLS if p != TCPW}, **ESTIMATORS}, plan)


def run_tcpw(plan: Plan) -> Data:
    """TCPW under the same losses.

    Returns
    -------
    Data
        `westwood-losses.throughput`: columns of `losses.throughput`.
    """
    return _cells("westwood-losses", {TCPW: paths.tcpw(plan)}, plan)


def throughputs(tables: Tables, protocol: str, loss: float) -> Array:
    """Goodput under random loss, bit/s, one per run."""
    table = "westwood-losses.throughput" if protocol == TCPW else "losses.throughput"
    return column_of(tables[table], "goodput_bps", protocol=protocol, loss=loss)


def _over(tables: Tables, own: str, bounds: Mapping[str, Bound], *, weighs: bool = True) -> list[Evidence]:
    return [
        Evidence.of(
            median(throughputs(tables, own, loss) / throughputs(tables, other, loss)),
            f"{100 * loss:g} % loss: {own} / {other}",
            bound,
            weighs=weighs,
            key=f"{'sack_' if own != TCPW else ''}{other.lower()}_{round(1000 * loss)}",
        )
        for loss in LOSSES
        for other, bound in bounds.items()
    ]


_MORE = dict.fromkeys((FAST, HSTCP, NEWRENO), above(1, margin=0.05))
_MUCH = {FAST: at_least(1.3), HSTCP: at_least(5), NEWRENO: at_least(5)}


def w10(tables: Tables) -> Sequence[Evidence]:
    """TCPW above the others under random loss, also with SACK."""
    return [*_over(tables, TCPW, _MORE), *_over(tables, "TCPW, SACK on", _MORE, weighs=False)]


def with_sack(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Ratio of TCPW to FAST, both with SACK."""
    return _over(tables, "TCPW, SACK on", {FAST: bound})


def w10_much(tables: Tables) -> Sequence[Evidence]:
    """Size of the advantage."""
    return _over(tables, TCPW, _MUCH)


def w11(tables: Tables) -> Sequence[Evidence]:
    """Throughput falls with loss, over the whole range and from each loss rate to the next."""
    found = []
    for protocol in PROTOCOLS:
        ratio = throughputs(tables, protocol, LOSSES[-1]) / throughputs(tables, protocol, LOSSES[0])
        label = f"{protocol}: throughput at {100 * LOSSES[-1]:g} % over {100 * LOSSES[0]:g} %"
        found.append(Evidence.of(median(ratio), label, below(1.0, margin=0.05), key=protocol.lower()))
    for protocol in PROTOCOLS:
        for low, high in pairwise(LOSSES):
            ratio = throughputs(tables, protocol, high) / throughputs(tables, protocol, low)
            label = f"{protocol}: throughput at {100 * high:g} % over that at {100 * low:g} %, step"
            found.append(Evidence.of(median(ratio), label, below(1.0), weighs=False))
    return found


TICKS = (1, 2, 5, 10, 20, 50, 100)


def random_loss(tables: Tables) -> Figure:
    """Throughput against loss."""
    names = [*PROTOCOLS, *ESTIMATORS]
    rows = []
    for name in names:
        for loss in LOSSES:
            e = median(throughputs(tables, name, loss))
            rows.append({"protocol": name, "loss": loss, "goodput_bps": e.value, "low": e.low, "high": e.high})
    table = pl.DataFrame(rows)
    extra = dict(
        zip(names[4:], (OKABE_ITO["orange"], OKABE_ITO["purple"], OKABE_ITO["yellow"], OKABE_ITO["sky"]), strict=False)
    )

    def draw() -> Any:
        figure, axes = new(7.8, 3.6, ncols=2, sharey=True)
        for ax, group in zip(axes, (PROTOCOLS, (TCPW, *extra)), strict=True):
            for name in group:
                own = table.filter(pl.col("protocol") == name).sort("loss")
                value = own["goodput_bps"].to_numpy() / 1e6
                error = np.abs(own.select("low", "high").to_numpy().T / 1e6 - value)
                error[~np.isfinite(error)] = 0.0
                ax.errorbar(
                    100 * own["loss"].to_numpy(),
                    value,
                    yerr=error,
                    color=COLOUR.get(name) or extra[name],
                    marker=MARKER.get(name, "v"),
                    ls=DASH.get(name, "-"),
                    label=name,
                )
            ax.set(xlabel="random loss (%)", yscale="log", ylim=(1, 150))
            ax.set_yticks(TICKS, [str(tick) for tick in TICKS])
            ax.minorticks_off()
            ax.legend(fontsize=7.5)
        axes[0].set(ylabel="goodput (Mb/s)", title="the four protocols")
        axes[1].set_title("what it depends on")
        return figure

    at = {p: float(np.median(throughputs(tables, p, 0.001))) / 1e6 for p in PROTOCOLS}
    return Figure(
        name="random-loss",
        title="At 0.1 % random loss: " + ", ".join(f"{p} {at[p]:.0f}" for p in PROTOCOLS) + " Mb/s",
        caption=(
            "Path 1, queue of 400 packets, independent loss of data packets. Medians over runs with 95 % intervals. Right: TCPW with its host's "
            "SACK on, with packet pairs or packet trains alone, and FAST without doubling at low delay. Slides 15 and 16."
        ),
        draw=draw,
        data={"loss": table},
    )


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (random_loss(t),)


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {
        "path 1, FAST at 0.1 % loss": paths.scenario(
            ALABAMA, [(SENDERS[FAST], 1)], duration_s=120, loss=0.001, users=0.0
        ),
    }


CHAPTER = Chapter(
    experiments=(
        Experiment(name="losses", title="random loss on path 1", run=run_losses, weight=8),
        Experiment(
            name="westwood-losses", title="random loss on path 1, TCPW", run=run_tcpw, weight=2, reads=(SACK, FILTER)
        ),
    ),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
