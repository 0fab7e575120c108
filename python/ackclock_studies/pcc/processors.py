"""Four flows on machines with few processors: the causes of PCC's unfairness, tested one at a time (C12 to C14).

The effect of a busy machine on a spinning sender was measured on a real one, on loopback (8 s, Linux): four UDP
senders at 25 Mb/s each, which spin until their next departure, and their four receivers, on two processors also used
by other programs. The senders had no processor for 53 to 59 % of the time. Stalls lasted 1.0 ms in the median, 2.4
ms on average and 26 to 40 ms at the 99th percentile; between stalls, senders ran for 0.5 ms in the median and 1.4
ms on average. They reached 41 to 46 % of the requested rate. The coefficient of variation of the gaps between
departures was 3.0 to 3.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import Array, mean_over_runs, ratio
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Block
from ackclock.scenario import Scenario
from ackclock.stats import Estimate
from ackclock.study import (
    Bound,
    Chapter,
    Data,
    Evidence,
    Experiment,
    Plan,
    Reading,
    Tables,
    above,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.pcc import arms, testbed
from ackclock_studies.pcc.sharing import abreast, depth, in_enough_runs, shares_together, together_s
from ackclock_studies.pcc.testbed import CUBIC, MININET, PCC, SPINS, Model, mininet, stalls

LIMIT = 250
"""Limit of Mininet's link in the publication, packets."""


def _lognormal(median_us: float, sigma: float) -> dict[str, Any]:
    return {"kind": "lognormal", "median": f"{median_us:g} us", "sigma": sigma}


BUSY: dict[str, Any] = {
    "gate": {"kind": "times", "on": _lognormal(480, 1.48), "off": _lognormal(990, 1.33)},
    "catch_up": "none",
    "receives_on": True,
}
"""Lognormal distributions with the measured medians and means."""

ENOUGH = "processors enough"
TWO, ONE = testbed.LARGE, testbed.MEDIUM
TURNS = "2 processors, packets cost nothing"
STOLEN, MADE_UP = "5 ms stolen / 20 ms, lost", "5 ms stolen / 20 ms, made up for"
MEASURED = "stalls of a busy machine, lost"
SLACK = "timers 50 us apart"
BATCHED = "receivers wake every 1 ms"

HOSTS: dict[str, Model] = {
    ENOUGH: testbed.WISHBONE[MININET],
    TWO: testbed.WISHBONE[TWO],
    ONE: testbed.WISHBONE[ONE],
    TURNS: mininet({"cores": 2, **SPINS}, both=True),
    STOLEN: mininet(stalls(5, 20, "none")),
    MADE_UP: mininet(stalls(5, 20, "full")),
    MEASURED: mininet(BUSY),
    SLACK: mininet({"tick": "50 us"}),
    BATCHED: mininet({"receive_interval": "1 ms"}, both=True),
}
"""Hosts, all on Mininet's link, so that they differ from `ENOUGH` in the host only."""

FEW = (TWO, ONE, TURNS, STOLEN, MADE_UP)
"""Hosts at quick scale, where one run of each serves for a figure and no claim is judged."""

asked = in_enough_runs("processors.shares")

NUMBER = {TWO: "2", ONE: "1"}

TAKEN = Reading(
    name="processors",
    question="What do few processors do to the senders?",
    options={
        "packets cost": "senders and receivers share the processors in slices of 3 ms, and a packet costs 100 us at each end",
        "turns": "the same two processors, but packets cost nothing",
        "stolen": "the host loses its processors for 5 ms, after 20 ms on average; the time is lost to a sender that spins",
        "measured": "the same, with the stalls that were measured on a busy machine",
        "timer slack": "senders that sleep wake at multiples of 50 us",
        "receivers": "reports come in batches, every 1 ms",
    },
    why="chosen before the others were modelled; its cost is fitted to C13",
    crossed=False,
)
AS_READ = {
    "packets cost": TWO,
    "turns": TURNS,
    "stolen": STOLEN,
    "measured": MEASURED,
    "timer slack": SLACK,
    "receivers": BATCHED,
}
"""Reading -> host model with two processors."""


def run(plan: Plan) -> Data:
    """Four flows that start 5 s apart and run together for 200 s (50 s at quick scale), on every host with few
    processors. The runs with enough processors are those of experiment `depth`, seed by seed, for PCC and CUBIC.

    Returns
    -------
    Data
        `processors.shares`: host, cc, seed, seconds (together), jain, sd_mbps, total_mbps, over all the time together.
    """
    cells = [
        Cell(
            scenario=abreast(PCC, LIMIT, host=model, together_s=together_s(plan)),
            keys={"host": host, "cc": PCC},
            stream="depth",
            seeds=plan.count(quick=1, paper=8),
            needs={"goodput": ("t_s", "flow", "goodput_bps")},
            keep={"shares": partial(shares_together, together_s=together_s(plan))},
        )
        for host, model in HOSTS.items()
        if host != ENOUGH and (plan.scale != "quick" or host in FEW)
    ]
    return collect("processors", cells, plan)


def pick(tables: Tables, host: str, column: str, controller: str = PCC) -> Array:
    """A column, one value per seed; with enough processors it comes from `depth`, for the seeds also run on the other hosts."""
    table = tables["processors.shares"]
    if host == ENOUGH:
        return depth(tables, controller, LIMIT, column)[: table["seed"].n_unique()]
    t = table.filter((pl.col("host") == host) & (pl.col("cc") == controller))
    return t.sort("seed")[column].to_numpy().astype(np.float64)


def _run(tables: Tables) -> list[str]:
    """Hosts that were run, except the one with enough processors."""
    return tables["processors.shares"]["host"].unique(maintain_order=True).to_list()


def _two(tables: Tables) -> str:
    return AS_READ[TAKEN.of(tables)]


def less_fair(tables: Tables, host: str) -> Estimate:
    """Index with enough processors minus the index on a host, paired by seed."""
    return mean_over_runs(pick(tables, ENOUGH, "jain") - pick(tables, host, "jain"))


FAIRER = above(0, margin=0.005)
STEADIER = above(0, margin=0.1)


@asked
def c12(tables: Tables) -> Sequence[Evidence]:
    """Two processors: still fairer and steadier than CUBIC, but less steady than with enough processors."""
    host = _two(tables)
    index, sd = ([pick(tables, host, column), pick(tables, ENOUGH, column, CUBIC)] for column in ("jain", "sd_mbps"))
    more = sd[0] - pick(tables, ENOUGH, "sd_mbps")
    return [
        Evidence.of(mean_over_runs(index[0] - index[1]), "index, PCC less CUBIC", FAIRER, key="fairer"),
        Evidence.of(mean_over_runs(sd[1] - sd[0]), "deviation, CUBIC less PCC", STEADIER, unit="Mb/s", key="steadier"),
        Evidence.of(
            mean_over_runs(more), "deviation of PCC, less with processors enough", STEADIER, unit="Mb/s", key="more"
        ),
    ]


@asked
def c13(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """One processor: fairness."""
    return [Evidence.of(arms.index(pick(tables, ONE, "jain")), "index", bound, key="index")]


@asked
def c13_total(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Check for 30 % of the link."""
    label = "total of four flows, of 100 Mb/s (fitted by the cost)"
    return [Evidence.of(mean_over_runs(pick(tables, ONE, "total_mbps")), label, bound, unit="%", key="total")]


LESS_FAIR = above(0, margin=0.01)


@asked
def c14(tables: Tables) -> Sequence[Evidence]:
    """Fewer processors, less fairness; for context, the effect of every other model of a busy machine."""
    main = TAKEN.of(tables) == TAKEN.main
    weighing = (TWO, ONE) if main else (_two(tables),)
    found = [
        Evidence.of(
            less_fair(tables, host),
            f"{host}: index, enough less",
            LESS_FAIR,
            weighs=host in weighing,
            key=f"jain_{NUMBER.get(host) or _KEYS[host]}",
        )
        for host in _run(tables)
    ]
    for host in (TWO, ONE):
        more = mean_over_runs(pick(tables, host, "sd_mbps") - pick(tables, ENOUGH, "sd_mbps"))
        label = f"{host}: deviation, less with enough"
        found.append(Evidence.of(more, label, Bound(), unit="Mb/s", weighs=False, key=f"sd_mbps_{NUMBER[host]}"))
    return found


_KEYS = {TURNS: "turns", STOLEN: "stolen", MADE_UP: "made_up", MEASURED: "measured", SLACK: "slack", BATCHED: "batched"}


@asked
def without_cost(tables: Tables) -> Sequence[Evidence]:
    """Two processors without a per-packet cost: the order matches the publication."""
    more = mean_over_runs(pick(tables, TWO, "jain") - pick(tables, TURNS, "jain"))
    return [Evidence.of(more, "index on 2 processors, with the cost less without", LESS_FAIR, key="cost")]


@asked
def made_up(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Unfairness that remains if the sender catches up after stalls of the same length."""
    lost, back = (pick(tables, ENOUGH, "jain") - pick(tables, host, "jain") for host in (STOLEN, MADE_UP))
    return [
        Evidence.of(mean_over_runs(lost), "stalls that are lost: index, enough less", LESS_FAIR, key="lost"),
        Evidence.of(
            ratio(back, lost), "stalls that are made up for: of that, what remains", bound, factor=100, unit="%"
        ),
    ]


def figure(tables: Tables) -> Figure:
    """Index, deviation and total goodput on each host, run by run."""
    table = tables["processors.shares"]
    names = [(host, PCC) for host in (ENOUGH, *_run(tables))] + [(ENOUGH, CUBIC)]
    shown = (("jain", "Jain's index", (0.25, 1.02)), ("sd_mbps", "deviation (Mb/s)", None), ("total_mbps", "total (Mb/s)", (0, 100)))  # fmt: skip

    def draw() -> Any:
        figure, axes = new(8.4, 3.9, ncols=3, sharey=True)
        for ax, (column, label, limits) in zip(axes, shown, strict=True):
            for y, (host, controller) in enumerate(names):
                own = pick(tables, host, column, controller)
                colour = OKABE_ITO["vermilion" if controller == PCC else "blue"]
                ax.plot(own, np.full(own.size, y), "o" if controller == PCC else "s", color=colour, ms=4, alpha=0.7)
                ax.plot([np.median(own)], [y], "|", color="#222222", ms=11)
            ax.set_xlabel(label)
            if limits:
                ax.set_xlim(*limits)
            ax.grid(axis="y", visible=False)
        axes[0].set_yticks(range(len(names)), [f"{testbed.LABEL[cc]}, {host}" for host, cc in names], fontsize=7)
        axes[0].invert_yaxis()
        return figure

    return Figure(
        name="processors",
        title="What a busy machine takes from four PCC flows",
        caption=(
            f"Four flows together for {table['seconds'][0]} s on Mininet's link, limit of {LIMIT} packets; a point for each run, a bar for the median. The first row has exact hosts, the others one thing "
            "more each. A packet costs 100 us at each end where the number of processors stands alone."
        ),
        draw=draw,
        data={"processors": table},
    )


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (figure(tables),)


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {f"PCC, four flows, {host}": abreast(PCC, LIMIT, host=HOSTS[host]) for host in (TWO, STOLEN, MEASURED)}


CHAPTER = Chapter(
    experiments=(Experiment(name="processors", title="four flows on busy machines", run=run, weight=12),),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
