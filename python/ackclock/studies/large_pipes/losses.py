"""Random loss on path 1 (W10, W11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Block
from ackclock.scenario import Scenario
from ackclock.studies.large_pipes import paths
from ackclock.studies.large_pipes.paths import (
    ALABAMA,
    FAST,
    HSTCP,
    NEWRENO,
    PROTOCOLS,
    SENDERS,
    TCPW,
)
from ackclock.studies.large_pipes.runs import column_of
from ackclock.studies.large_pipes.style import COLOUR, DASH, MARKER
from ackclock.study import (
    Chapter,
    Claim,
    Criterion,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
    at_least,
    below,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.estimates import Array, median

LOSSES = (0.001, 0.002, 0.003, 0.005)
"""A3: "PER 0.1 up to 0.5" read as percent."""

ESTIMATORS = {
    TCPW: SENDERS[TCPW],
    "TCPW, SACK on": paths.westwood("TCPW, SACK on", sack=True),
    "TCPW, packet pairs (BE)": paths.westwood("TCPW, packet pairs (BE)", estimator="be"),
    "TCPW, packet trains (RE)": paths.westwood("TCPW, packet trains (RE)", estimator="re"),
    "FAST, no doubling at low delay": paths.Protocol(
        name="FAST, no doubling at low delay", controller="fast", options={"low_delay_doubling": False}
    ),
}
"""What the ranking under loss hangs on, besides the four protocols."""


def run_losses(plan: Plan) -> Data:
    """Random loss on path 1.

    Returns
    -------
    Data
        `losses.throughput`: protocol, loss, run, goodput_bps, rtos.
    """
    seeds = plan.count(quick=6, paper=12)
    duration = 120.0 if plan.scale == "paper" else 20.0
    senders = {**SENDERS, **ESTIMATORS}
    cells = []

    def throughput(batch: Batch) -> pl.DataFrame:
        return batch.flows.filter(pl.col("flow") == 0).select("seed", "goodput_bps", "rtos", "retransmissions")

    for name, protocol in senders.items():
        for loss in LOSSES:
            scenario = paths.scenario(ALABAMA, [(protocol, 1)], duration_s=duration, queue=400, loss=loss, users=0.0)
            cells.append(
                Cell(
                    scenario=scenario,
                    keys={"protocol": name, "loss": loss},
                    stream=f"large-pipes losses {loss}",
                    seeds=seeds,
                    needs={"flows": ("flow", "goodput_bps", "rtos", "retransmissions")},
                    keep={"throughput": throughput},
                )
            )
    return collect("losses", cells, plan, numbered=True)


def throughputs(tables: Tables, protocol: str, loss: float) -> Array:
    """Goodput under random loss, bit/s, one per run."""
    return column_of(tables["losses.throughput"], "goodput_bps", protocol=protocol, loss=loss)


def w10(tables: Tables) -> Sequence[Evidence]:
    """TCPW above the others under random loss."""
    found = []
    for loss in LOSSES:
        for other, factor in ((FAST, 1.3), (HSTCP, 5.0), (NEWRENO, 5.0)):
            found.append(
                Evidence.of(
                    median(throughputs(tables, TCPW, loss) / throughputs(tables, other, loss)),
                    f"{100 * loss:g} % loss: TCPW / {other}",
                    at_least(factor),
                )
            )
    with_sack = "TCPW, SACK on"
    for loss in LOSSES:
        for other, factor in ((FAST, 1.3), (HSTCP, 5.0), (NEWRENO, 5.0)):
            ratio = throughputs(tables, with_sack, loss) / throughputs(tables, other, loss)
            found.append(
                Evidence.of(
                    median(ratio), f"{100 * loss:g} % loss: {with_sack} / {other}", at_least(factor), weighs=False
                )
            )
    return found


def w11(tables: Tables) -> Sequence[Evidence]:
    """Throughput falls with loss."""
    found = []
    for protocol in PROTOCOLS:
        for low, high in pairwise(LOSSES):
            ratio = throughputs(tables, protocol, high) / throughputs(tables, protocol, low)
            found.append(
                Evidence.of(
                    median(ratio), f"{protocol}: throughput at {100 * high:g} % over {100 * low:g} %", below(1.0)
                )
            )
    return found


def random_loss(tables: Tables) -> Figure:
    """Throughput against loss."""
    t = tables["losses.throughput"]
    names = [*PROTOCOLS, *(n for n in ESTIMATORS if n != TCPW)]
    rows = []
    for name in names:
        for loss in LOSSES:
            own = t.filter((pl.col("protocol") == name) & (pl.col("loss") == loss))["goodput_bps"].to_numpy()
            e = median(own)
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
            ax.set(xlabel="random loss (%)", yscale="log")
            ax.legend(fontsize=7.5)
        axes[0].set(ylabel="goodput (Mb/s)", title="the four protocols")
        axes[1].set_title("what it hangs on")
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


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="W10",
        place="slides 15, 16",
        statement="Under random loss TCPW is far above the others.",
        direction=Criterion(
            measure=w10,
            reading="0.1 to 0.5 %: at least 1.3 times FAST, five times HSTCP and NewReno.",
        ),
        note="The host decides: with SACK TCPW has 2.1 to 2.4 times the throughput of FAST and 16 to 30 times that of the others; without, as FreeBSD 4 is read here, several losses in a window cost a round trip each and it falls behind FAST.",
    ),
    Claim(
        id="W11",
        place="slide 16",
        statement="Throughput falls with the loss rate for all.",
        direction=Criterion(
            measure=w11,
            reading="From each loss rate to the next.",
        ),
        note="Without SACK TCPW gains from 0.1 to 0.2 %: smaller windows lose fewer segments at a time. For the other three it holds.",
    ),
)


def blocks(t: Tables) -> Sequence[Block]:
    """For the report."""
    return (random_loss(t),)


def scenarios() -> Mapping[str, Scenario]:
    """As written."""
    return {
        "path 1, FAST at 0.1 % loss": paths.scenario(
            ALABAMA, [(SENDERS[FAST], 1)], duration_s=120, loss=0.001, users=0.0
        ),
    }


CHAPTER = Chapter(
    title="Random loss",
    experiments=(Experiment(name="losses", title="random loss on path 1", run=run_losses, weight=12),),
    claims=CLAIMS,
    blocks=blocks,
    scenarios=scenarios,
)
