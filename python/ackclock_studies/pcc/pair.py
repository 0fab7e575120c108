"""Two flows, the second one late: how fast do they converge, and what is the deciding factor? With a full drop-tail
queue, departure timing decides which flow loses packets. A sender with a perfect clock
takes each free slot just before any other sender can. A late flow with few packets then has a loss rate many times
that of the first flow, and attributes the loss to its own rate. (Phase effects: S. Floyd, V. Jacobson, 1992.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import Array, mean_over_runs, minus
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Block, Table, TableCell
from ackclock.scenario import Scenario
from ackclock.study import (
    Bound,
    Chapter,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.pcc import testbed
from ackclock_studies.pcc.sharing import LEAST_RUNS, not_asked
from ackclock_studies.pcc.sweep import PIPE
from ackclock_studies.pcc.testbed import CLOCK, CUBIC, PCC, PRINTED, Model

BARE, MININET = testbed.BARE, testbed.MININET
EXACT, SOME, MUCH, CLOCKED = (
    "router, exact",
    "router, 0 to 0.12 ms late",
    "router, 0 to 1 ms late",
    "router, sender's clock",
)
AS_PRINTED, TCP = "bare metal, as printed", "bare metal, CUBIC"
BARE_CLOCK = "bare metal, sender's clock"
BARE_LATE, APART = "bare metal, 0 to 1 ms late", "bare metal, two clocks 10 ppm apart"
SOON = (TCP, BARE_CLOCK, CLOCKED, BARE_LATE, APART)
"""Environments observed for `SOON_S`: claims ask whether flows reach equal shares by then."""
TWO = "Mininet, 2 processors"
"""The blog's other figure with two flows, on an m3-large."""

KINDS: dict[str, tuple[str, str | Model, str]] = {
    BARE: (PCC, testbed.BARE, "0 s"),
    TCP: (CUBIC, testbed.BARE, "0 s"),
    BARE_CLOCK: (PCC, Model(capacity=testbed.PIPES[testbed.TICK_8_0], host=CLOCK), "0 s"),
    AS_PRINTED: (PRINTED, testbed.BARE, "0 s"),
    MININET: (PCC, testbed.MININET, "0 s"),
    TWO: (PCC, testbed.LARGE, "0 s"),
    EXACT: (PCC, testbed.IDEAL, "0 s"),
    SOME: (PCC, testbed.IDEAL, "120 us"),
    MUCH: (PCC, testbed.IDEAL, "1 ms"),
    CLOCKED: (PCC, Model(host=CLOCK, both=True), "0 s"),
    BARE_LATE: (PCC, testbed.BARE, "1 ms"),
    APART: (PCC, Model(capacity=testbed.PIPES[testbed.TICK_8_0]), "0 s"),
}
"""Kind -> controller, environment, maximum random delay on the way to the bottleneck (0.12 ms: one packet's serialisation time there)."""

PERIODS = {APART: ("1 ms", "1000010 ns")}
"""Kind -> tick length of each sender's clock. In all other kinds both senders share a machine, and wake up at the same instants."""

KEYS = {
    BARE: "bare", TCP: "cubic", BARE_CLOCK: "clock", MININET: "mininet", TWO: "two", EXACT: "exact", BARE_LATE: "late", APART: "apart",
}  # fmt: skip
"""Environments mentioned in notes -> their names; the others have fewer seeds."""
FEW = (BARE, TCP, BARE_CLOCK, BARE_LATE, APART, TWO)
"""Kinds at quick scale. The last one runs once, for a figure: C23 needs at least `LEAST_RUNS` runs."""

NEAR, HELD_S = 0.1, 5
"""Convergence criterion: both flows within this fraction of half their total, averaged over this many seconds."""

EARLY_S = 25
"""Losses are compared while the second flow is small, in separate runs: the record of each monitor interval would take gigabytes in the long runs."""


FEWEST = 6
"""Runs, at quick scale, of the kinds used by claims: a median of fewer runs has no interval."""

JOINS_S, WATCHED_S, SOON_S = 50, 200, 60
"""The second flow starts at `JOINS_S`, long after the first has filled the link. Its share is observed for
`WATCHED_S`, or for `SOON_S` where the flows reach equal shares within seconds. In the publication, both times are 500
s. Convergence times are similar where both lengths were run (4 runs: 58 to 169 s after 500 s, 12 runs: 61 to more
than 250 s after 50 s).
"""


def run(plan: Plan) -> Data:
    """The publication's second scenario, with less time for the first flow alone: the second flow starts at 50 s, and both are observed for 200 s.

    Returns
    -------
    Data
        `runs`: kind, seed, seconds (until both have their share; infinite if they never have), converged,
        sd_mbps (of 1-s goodput in the second half of that time, mean of both). `series`: kind, t_s (since the second began),
        first_mbps, late_mbps of one seed. `early`: kind, seed, loss_first, loss_late (percent, first 25 s), of PCC.
    """
    seeds = plan.count(quick=FEWEST, paper=12, readings=FEWEST)
    kinds = KINDS if plan.scale == "paper" else {kind: KINDS[kind] for kind in FEW}
    if plan.reading:
        kinds = {BARE: (PCC, testbed.bare(PIPE.of(plan)), "0 s")}
    found = [
        collect("pair", make(kinds, seeds), plan.part(start, stop, name))
        for name, make, start, stop in (("shares", _long, 0.0, 0.8), ("losses", _early, 0.8, 1.0))
    ]
    return Data(
        tables={name: table for data in found for name, table in data.tables.items()},
        digests=[digest for data in found for digest in data.digests],
        runs=sum(data.runs for data in found),
    )


Kinds = Mapping[str, tuple[str, str | Model, str]]


def _long(kinds: Kinds, seeds: int) -> list[Cell]:
    return [
        Cell(
            scenario=own_clocks(joined(controller, model, jitter, watched(kind)), kind),
            keys={"kind": kind},
            stream="pair",
            seeds=seeds
            if kind in (BARE, TCP, BARE_CLOCK, BARE_LATE, APART)
            else (seeds - 4 if seeds > FEWEST else 1)
            if kind == TWO
            else max(2, seeds // 3),
            needs={"goodput": ("t_s", "flow", "goodput_bps")},
            keep={
                "runs": partial(runs, watched_s=watched(kind)),
                "series": partial(first_series, watched_s=watched(kind)),
            },
        )
        for kind, (controller, model, jitter) in kinds.items()
    ]


def watched(kind: str) -> int:
    """Time during which both flows are active, s."""
    return SOON_S if kind in SOON else WATCHED_S


def joined(controller: str, model: str | Model, jitter: str, watched_s: int = WATCHED_S) -> Scenario:
    """Two flows that write to the end, the second from `JOINS_S` on."""
    written = testbed.wishbone(model, controller, JOINS_S, flows=2, jitter=jitter).to_dict()
    flows = [{k: v for k, v in flow.items() if k != "stop"} for flow in written["flows"]]
    return Scenario.from_dict({**written, "duration": f"{JOINS_S + watched_s} s", "flows": flows})


def own_clocks(scenario: Scenario, kind: str) -> Scenario:
    """The scenario with a separate clock for each sender, if the kind has separate clocks."""
    if kind not in PERIODS:
        return scenario
    made = scenario.to_dict()
    hosts = [{"name": f"clock {i}", "tick": period} for i, period in enumerate(PERIODS[kind])]
    flows = [{**flow, "host": host["name"]} for flow, host in zip(made["flows"], hosts, strict=True)]
    return Scenario.from_dict({**made, "hosts": hosts, "flows": flows})


def _early(kinds: Kinds, seeds: int) -> list[Cell]:
    return [
        Cell(
            scenario=own_clocks(early(controller, model, jitter), kind),
            keys={"kind": kind},
            stream="pair",
            seeds=max(2, seeds // 4),
            needs={"intervals": ("flow", "start_s", "sent", "lost")},
            keep={"early": losses},
        )
        for kind, (controller, model, jitter) in kinds.items()
        if controller != CUBIC
    ]


def early(controller: str, model: str | Model, jitter: str) -> Scenario:
    """First monitor intervals, one row each."""
    scenario = testbed.wishbone(model, controller, EARLY_S, flows=2, jitter=jitter)
    return scenario.set("record.controller", "all").set("duration", f"{2 * EARLY_S} s")


def losses(batch: Batch) -> pl.DataFrame:
    """Both flows' losses while both are active, percent."""
    own = batch.intervals.filter(pl.col("start_s") >= EARLY_S)
    by_flow = own.group_by("seed", "flow").agg(loss=100 * pl.col("lost").sum() / pl.col("sent").sum())
    wide = by_flow.pivot(on="flow", index="seed", values="loss").sort("seed")
    return wide.select("seed", pl.col("0").alias("loss_first"), pl.col("1").alias("loss_late"))


def together(batch: Batch, seed: int, watched_s: int) -> Any:
    """Both flows' goodput while both are active, Mb/s, one row per second."""
    return testbed.series(batch.goodput.filter(pl.col("seed") == seed), 2, JOINS_S + watched_s)[JOINS_S:]


def converged_after(found: Any) -> int | None:
    """Time until both flows reach and keep their fair share, s."""
    kernel = np.ones(HELD_S) / HELD_S
    first, late = (np.convolve(found[:, flow], kernel, mode="valid") for flow in (0, 1))
    total = first + late
    near = (np.abs(first - late) <= NEAR * total) & (total > 0)
    return int(np.argmax(near)) if near.any() else None


def runs(batch: Batch, *, watched_s: int) -> pl.DataFrame:
    """Measured values for each run."""
    rows = []
    for seed in batch.seeds:
        found = together(batch, seed, watched_s)
        after = converged_after(found)
        rows.append(
            {
                "seed": seed,
                "seconds": float("inf" if after is None else after),
                "converged": after is not None,
                "sd_mbps": float(found[watched_s // 2 :].std(axis=0, ddof=1).mean()),
            }
        )
    return pl.DataFrame(rows)


def first_series(batch: Batch, *, watched_s: int) -> pl.DataFrame:
    """Goodput in the first run while both flows are active."""
    found = together(batch, batch.seeds[0], watched_s)
    return pl.DataFrame({"t_s": np.arange(1.0, watched_s + 1), "first_mbps": found[:, 0], "late_mbps": found[:, 1]})


def pick(tables: Tables, kind: str, column: str) -> Array:
    """A column, one value per seed."""
    table = tables["pair.early" if column.startswith("loss") else "pair.runs"]
    t = table.filter(pl.col("kind") == kind).sort("seed")
    return t[column].cast(pl.Float64).to_numpy()


SHOWN = (BARE, BARE_CLOCK, APART, TCP)


def figure(tables: Tables) -> Figure:
    """Both flows' throughput over time."""
    table = tables["pair.series"]

    def draw() -> Any:
        figure, axes = new(8.6, 3.2, ncols=len(SHOWN), sharey=True)
        for ax, kind in zip(axes, SHOWN, strict=True):
            own = table.filter(pl.col("kind") == kind)
            for column, colour, label in (
                ("first_mbps", "blue", "first flow"),
                ("late_mbps", "vermilion", "late flow"),
            ):
                ax.plot(own["t_s"], own[column], color=OKABE_ITO[colour], lw=0.8, label=label)
            ax.set_title(kind, fontsize=9)
            ax.set_xlabel("since the second began (s)")
        axes[0].set_ylabel("goodput (Mb/s)")
        axes[0].set_ylim(0, 112)
        axes[0].legend(loc="upper right")
        return figure

    return Figure(
        name="pair",
        title="Two flows, the second begins later",
        caption=f"Goodput of each second, one seed; 100 Mb/s, 30 ms, 250 packets. The first flow has had the link for {JOINS_S} s.",
        draw=draw,
        data={"pair": table},
    )


def c9(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Two flows: time to equal shares."""
    return [
        Evidence.reached(
            pick(tables, kind, "seconds"),
            float(watched(kind)),
            f"{kind}: equal after",
            bound,
            weighs=kind == BARE,
            key=KEYS.get(kind, ""),
        )
        for kind in _run(tables)
    ]


def c9_late(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Time to equal shares, s, with randomly delayed departures; separate clocks are shown for comparison."""
    return [_equal(tables, BARE_LATE, bound), _equal(tables, APART, Bound(), weighs=False)]


def c9_one_clock(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Time to equal shares, s, with senders that wake up at ticks of a shared kernel clock; separate clocks are the control."""
    return [_equal(tables, BARE_CLOCK, bound), _equal(tables, APART, Bound(), weighs=False)]


def _equal(tables: Tables, kind: str, bound: Bound, *, weighs: bool = True) -> Evidence:
    """Time to equal shares for one kind."""
    found = pick(tables, kind, "seconds")
    return Evidence.reached(
        found, float(watched(kind)), f"{kind}: equal after", bound, weighs=weighs, key=f"cause_{KEYS[kind]}"
    )


def c9_steady(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Both flows' steadiness in the second half of their time together."""
    return [
        Evidence.of(
            mean_over_runs(pick(tables, kind, "sd_mbps")), f"{kind}: deviation", bound, unit="Mb/s", weighs=kind == BARE,
            key=f"sd_{KEYS[kind]}" if kind in KEYS else "",
        )
        for kind in _run(tables)
    ]  # fmt: skip


def c23(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Two flows on two processors: their variation in excess of that on bare metal."""
    two, bare, tcp = (pick(tables, kind, "sd_mbps") for kind in (TWO, BARE, TCP))
    found = [
        Evidence.of(
            minus(mean_over_runs(two), mean_over_runs(bare)), "deviation, 2 processors less bare metal", bound, unit="Mb/s", key="more"
        ),
        Evidence.of(
            minus(mean_over_runs(two), mean_over_runs(tcp)), "deviation, 2 processors less CUBIC on bare metal", Bound(), unit="Mb/s", weighs=False,
            key="cubic",
        ),
    ]  # fmt: skip
    return found if two.size >= LEAST_RUNS else not_asked(found)


def _run(tables: Tables) -> list[str]:
    return tables["pair.runs"]["kind"].unique(maintain_order=True).to_list()


def pair_table(tables: Tables) -> Table:
    """Time to fair shares, and the flow that lost packets."""
    rows: list[tuple[TableCell | str, ...]] = []
    for kind in _run(tables):
        sd, *lost = (mean_over_runs(pick(tables, kind, column)) for column in ("sd_mbps", "loss_first", "loss_late"))
        seconds = sorted(pick(tables, kind, "seconds"))
        rows.append(
            (
                TableCell(text=kind, kind="head"),
                ", ".join("not" if np.isinf(x) else f"{x:.0f}" for x in seconds),
                *(f"{e.value:.2f}" if e.n else "-" for e in lost),
                f"{sd.value:.1f}",
            )
        )
    return Table(
        caption=(
            f"Seconds until both flows are within {100 * NEAR:.0f} % of half of what they have together, mean over {HELD_S} s, run by run. Losses "
            "of the first 25 s in which both are there. Deviation: 1-s goodput, second half."
        ),
        header=(
            "environment",
            "equal after (s)",
            "loss of the first (%)",
            "loss of the late one (%)",
            "deviation (Mb/s)",
        ),
        rows=tuple(rows),
        dense=True,
    )


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (figure(t), pair_table(t))


CHAPTER = Chapter(
    experiments=(
        Experiment(name="pair", title="two flows, the second begins later", run=run, weight=25, reads=(PIPE,)),
    ),
    **declared(__name__),
    blocks=blocks,
)
