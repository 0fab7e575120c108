"""Machines and scripts as described in the publication (C7, C8, C16). The instances are modelled after their names:
an m3-medium has one processor, a t2-medium two processors shared with other machines, a micro a tenth of one. Other
load on them is not described.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import Array, mean_over_runs
from ackclock.report import Block, Table, TableCell
from ackclock.scenario import Scenario
from ackclock.study import (
    Bound,
    Chapter,
    Data,
    Evidence,
    Experiment,
    Plan,
    Reading,
    Tables,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.pcc import testbed
from ackclock_studies.pcc.testbed import COST, PAYLOAD, PCC, SPINS

M3, T2, BUSY, MICRO = "m3-medium, dedicated", "t2-medium", "t2-medium, busy neighbour", "micro"
MACHINES: dict[str, Mapping[str, Any]] = {
    M3: {"cores": 1, **SPINS, **COST},
    T2: {"preset": "light", "cores": 2, **SPINS, **COST},
    BUSY: {"preset": "xen-shared", "cores": 2, **SPINS, **COST},
    MICRO: {"preset": "micro", "cores": 1, **SPINS, **COST},
}
"""Machines, all on Mininet's link. The per-packet cost was fitted to C13, run on an m3-medium."""

NEIGHBOUR = Reading(
    name="neighbour",
    question="What did the other machine on a t2-medium's processors do?",
    options={
        "light": "it takes them for 5 ms, after 100 ms on average",
        "busy": "it takes them for 30 ms of every 60, as Xen's credit scheduler shares a processor between two busy machines",
    },
    why="the blog saw the t2-medium work",
    crossed=False,
)
AS_READ = {"light": T2, "busy": BUSY}

SIZES = (6, 10, 20, 50, 275)
SHALLOW = (6, 10, 20, 50)
"""Buffer sizes at which C2 is judged."""
FLOWS = 3
"""Number of flows with which the smallest instances crashed, after 30 s."""


def alone(machine: str, packets: int) -> Scenario:
    """Return one flow on Mininet's link, 30 s."""
    return testbed.shallow(testbed.mininet(MACHINES[machine], both=True), PCC, packets, 30)


def several(machine: str) -> Scenario:
    """Return three simultaneous flows through a 250-packet buffer, 30 s."""
    written = testbed.wishbone(testbed.mininet(MACHINES[machine], both=True), PCC, 30, flows=FLOWS).to_dict()
    flows = [{k: v for k, v in flow.items() if k not in ("start", "stop")} for flow in written["flows"]]
    return Scenario.from_dict({**written, "duration": "30 s", "flows": flows})


def run(plan: Plan) -> Data:
    """One flow on each machine through several buffers, and three flows.

    Returns
    -------
    Data
        `instances.flows`: machine, buffer (packets), seed, share (of what the link can carry); `instances.several`: machine, seed, share.
    """
    seeds = plan.count(quick=3, paper=10)
    most = testbed.RATE_BPS * PAYLOAD[PCC] / testbed.PACKET_BYTES
    needs = {"flows": ("goodput_bps",)}

    def shares(batch: Batch) -> pl.DataFrame:
        return batch.flows.group_by("seed", maintain_order=True).agg(
            (pl.col("goodput_bps").sum() / most).alias("share")
        )

    cells = [
        Cell(
            scenario=alone(machine, packets),
            keys={"machine": machine, "buffer": packets},
            stream=f"instances {packets}",
            seeds=seeds,
            needs=needs,
            keep={"flows": shares},
        )
        for machine in MACHINES
        for packets in SIZES
    ]
    cells += [
        Cell(
            scenario=several(machine),
            keys={"machine": machine},
            stream="instances several",
            seeds=seeds,
            needs=needs,
            keep={"several": shares},
        )
        for machine in MACHINES
    ]
    return collect("instances", cells, plan)


def pick(tables: Tables, machine: str, packets: int | None) -> Array:
    """Shares, percent, one value per seed; `None` selects the three-flow runs."""
    table = tables["instances.several" if packets is None else "instances.flows"]
    own = table.filter(pl.col("machine") == machine)
    own = own if packets is None else own.filter(pl.col("buffer") == packets)
    return 100 * own.sort("seed")["share"].to_numpy().astype(np.float64)


def c7(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Deficit of the dedicated machine compared with the shared one."""
    other = AS_READ[NEIGHBOUR.of(tables)]
    return [
        Evidence.of(
            mean_over_runs(pick(tables, other, q) - pick(tables, M3, q)),
            f"{q} packets: {other} less {M3}",
            bound,
            unit="points",
            weighs=q in SHALLOW,
            key=f"at_{q}",
        )
        for q in SIZES
    ]


def c8(tables: Tables) -> Sequence[Evidence]:
    """Three flows' share on the smallest machine."""
    return [
        Evidence.of(
            mean_over_runs(pick(tables, machine, None)),
            f"{machine}: share of the link that three flows have in 30 s",
            Bound(),
            unit="%",
            weighs=False,
            key={MICRO: "micro", M3: "m3", T2: "t2"}.get(machine, ""),
        )
        for machine in MACHINES
    ]


def table(tables: Tables) -> Table:
    """Shares by machine and buffer."""
    rows: list[tuple[TableCell | str, ...]] = [
        (
            TableCell(text=machine, kind="head"),
            *(f"{pick(tables, machine, q).mean():.0f}" for q in (*SIZES, None)),
        )
        for machine in MACHINES
    ]
    return Table(
        caption="Share of Mininet's link (%) that PCC has on models of the blog's machines, means over runs of 30 s.",
        header=("machine", *(f"{q} packets" for q in SIZES), "three flows, 250 packets"),
        rows=tuple(rows),
    )


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (table(tables),)


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {f"PCC on a {machine}, 20 packets": alone(machine, 20) for machine in (M3, T2)}


CHAPTER = Chapter(
    experiments=(Experiment(name="instances", title="the blog's machines", run=run, weight=5),),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
