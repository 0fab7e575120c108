"""The testbed on the real kernel and the same cells in the simulator: one transaction alone, isolated batches, every loaded cell, and long
flows under load, on hosts with Linux 6's settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import median
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Section, Table, paragraph
from ackclock.scenario import Scenario
from ackclock.study import Claim, Criterion, Data, Evidence, Experiment, Plan, Tables, at_least, below, between, exactly
from ackclock.study.cells import Cell, collect
from ackclock.study.kernel import KernelPart
from ackclock_studies.iw10 import background, bursts, loaded, testbed
from ackclock_studies.iw10.bursts import LINUX_ACKS
from ackclock_studies.iw10.completion_times import gain
from ackclock_studies.iw10.testbed import ARMS, FAST, FIVE, HEAVY, IW3, IW10, SLOW, where

WINDOWS = (1, 2, 3, 4, 10)


def alone(rate: str, window: int) -> Scenario:
    """Return one transaction on the empty testbed."""
    return bursts.alone(rate, window, duration_s=20, **testbed.KERNEL_HOSTS)


def batch_of_five(window: int) -> Scenario:
    """Five simultaneous transactions on the empty slow link."""
    host = testbed.stack(**testbed.KERNEL_HOSTS, initial_window=window)
    return Scenario.from_dict(
        {
            "name": f"five transactions at once, initial window {window}",
            "duration": "60 s",
            "network": testbed.network(SLOW),
            "flows": [{**host, "workload": testbed.workload({"kind": "at", "times": ["0 s"]}, opens=5)}],
            "record": {"drops": True},
        }
    )


def run_exact(plan: Plan) -> Data:
    """Runs without randomness.

    Returns
    -------
    Data
        `exact.unloaded`: rate, window, acks, total_s; `exact.bursts`: window, drops (of data segments), longest_queueing_s;
        `exact.serialisation`.
    """
    cells = [
        Cell(
            scenario=alone(rate, window),
            keys={"rate": rate, "window": window, "acks": LINUX_ACKS},
            stream="kernel exact",
            seeds=1,
            needs={"transactions": ("total_s",)},
            keep={"unloaded": lambda batch: batch.transactions.select("total_s")},
        )
        for rate in testbed.RATES
        for window in WINDOWS
    ]
    cells += [
        Cell(
            scenario=batch_of_five(window),
            keys={"window": window},
            stream="kernel exact",
            seeds=1,
            needs={"drops": ("seg_no",), "links": ("link", "max_wait_s")},
            keep={
                "bursts": lambda batch: batch.links.filter(pl.col("link") == testbed.BOTTLENECK).select(
                    pl.lit(batch.drops.filter(pl.col("seg_no") > 0).height).alias("drops"),
                    pl.col("max_wait_s").alias("longest_queueing_s"),
                )
            },
        )
        for window in WINDOWS[2:]
    ]
    data = collect("exact", cells, plan)
    slow = data.tables["exact.unloaded"].filter((pl.col("rate") == SLOW) & (pl.col("window") == 10))
    serialisation = pl.DataFrame({"serialisation_s": [float(slow["total_s"][0]) - 2 * testbed.RTT_S]})
    return replace(data, tables={**data.tables, "exact.serialisation": serialisation})


def i9(tables: Tables) -> Sequence[Evidence]:
    """Serialisation time alone, and the longest queueing delay over all loaded slow-link cells."""
    waits = tables["slow.links"]["max_wait_s"]
    return [
        Evidence(
            label="10 segments at 64 kb/s: last bit after first",
            value=float(tables["exact.serialisation"]["serialisation_s"][0]),
            bound=between(1.875 * 0.99, 1.875 * 1.01),
            unit="s",
            seeds=1,
        ),
        Evidence(
            label="longest queueing delay of any loaded cell",
            value=float(np.max(waits.to_numpy())),
            bound=between(7.5 * 0.97, 7.5 * 1.03),
            unit="s",
            seeds=waits.len(),
        ),
    ]


def i10(tables: Tables) -> Sequence[Evidence]:
    """Isolated batches of five."""
    drops = dict(tables["exact.bursts"].select("window", "drops").rows())
    return [
        Evidence(label="five IW10 at once: drops", value=float(drops[10]), bound=at_least(1), unit="packets"),
        Evidence(label="five IW3 at once: drops", value=float(drops[3]), bound=exactly(0), unit="packets"),
    ]


ASKED = ("I1", "I2", "I3", "I4", "I5", "I6", "I7", "I9", "I10", "I11", "I12", "I13", "I14", "I15", "I16", "I17", "I18",
         "I19", "I20", "I27", "I32", "I35")  # fmt: skip

LEFT_OUT = {
    "I8": "needs a client that delays its first ACKs, and one that acknowledges every packet: no setting of Linux 6 does either",
    "I21": "SACK can be switched off in the kernel, but the cells without it would double the time",
    "I22": "as I21",
    "I23": "needs the kernels of 2010, whose recovery without SACK is at issue; Linux 6 repairs otherwise",
    "I24": "as I23",
    "I25": "needs the trace of every ACK of every transaction, which the kernel does not give",
    "I26": "no Linux since 2013 lets the FIN leave beyond cwnd",
    "I28": "needs an ACK per two segments from the first on; Linux acknowledges the first segments one by one",
    "I29": "is about other readings of the set-up",
    "I30": "is a matter of the queue and of arrivals; the kernel's isolated batches are those of I10",
    "I31": "as I25",
    "I33": "is about the memory that kernels of 2010 charged for a packet",
    "I34": "cannot be compared",
    "I36": "as I33: it plays one socket of those kernels",
}


def i11(tables: Tables) -> Sequence[Evidence]:
    """The advantage on the fast link with five opens at a time, over the runs available on the kernel."""
    return [
        Evidence.of(median(gain(tables, FAST, FIVE, load)), f"{where(FAST, FIVE, load)}: UCT(IW10) / UCT(IW3)", bound)
        for load, bound in ((0.72, below(1)), (HEAVY[FAST], at_least(0.95)))
    ]


def _claims() -> tuple[Claim, ...]:
    own = {
        "I9": (i9, "1.875 s within 1 %; the longest wait of any loaded cell within 3 % of 7.5 s."),
        "I10": (
            i10,
            "Isolated batches of five on hosts that acknowledge as Linux does: drops with IW10, none with IW3.",
        ),
        "I11": (i11, "Faster at 72 %, and at 96 % not faster by more than 5 %, in runs of 20 s."),
    }
    from ackclock_studies.iw10 import STUDY

    def made(claim: Claim) -> Claim:
        # causes need separate arms, which are quoted in notes; the kernel runs neither
        claim = replace(claim, causes=(), intervention="", note="")
        if claim.id not in own:
            return claim
        measure, reading = own[claim.id]
        return replace(claim, direction=Criterion(measure=measure, reading=reading), magnitude=None)

    return tuple(made(claim) for claim in STUDY.claims if claim.id in ASKED)


def _both(tables: Mapping[str, Tables]) -> pl.DataFrame:
    """Every loaded cell: median over seeds of mean completion time and loss rate, by backend."""
    keys = ("rate", "mode", "load", "arm")
    found = []
    for backend, own in tables.items():
        times = pl.concat([loaded.table(own, rate, "times") for rate in testbed.RATES]).filter(pl.col("iw") == 0)
        mean = times.group_by(keys, maintain_order=True).agg(pl.col("mean_s").median())
        links = pl.concat([loaded.table(own, rate, "links") for rate in testbed.RATES])
        lost = links.group_by(keys, maintain_order=True).agg(pl.col("plr").median())
        found.append(
            mean.join(lost, on=keys, maintain_order="left").rename({"mean_s": f"{backend}_s", "plr": f"{backend}_plr"})
        )
    first, second = found
    return first.join(second, on=keys, maintain_order="left")


def _sections(tables: Mapping[str, Tables]) -> tuple[Section, ...]:
    cells = _both(tables)
    unloaded = {
        b: {(r, w): t for r, w, _, t in own["exact.unloaded"].select("rate", "window", "acks", "total_s").rows()}
        for b, own in tables.items()
    }
    alone_table = Table(
        caption="One transaction alone, completion time in s: the kernel, and the simulator under the same settings.",
        header=("link", "initial window", "kernel", "simulator"),
        rows=tuple(
            (rate, str(window), f"{unloaded['linux'][rate, window]:.4f}", f"{unloaded['sim'][rate, window]:.4f}")
            for rate in testbed.RATES
            for window in WINDOWS
        ),
    )
    loaded_table = Table(
        caption="Loaded cells: median over seeds of the mean completion time, and of the loss rate at the bottleneck.",
        header=("cell", "arm", "kernel, s", "simulator, s", "kernel, lost", "simulator, lost"),
        rows=tuple(
            (
                where(row["rate"], row["mode"], row["load"]), row["arm"], f"{row['linux_s']:.3f}", f"{row['sim_s']:.3f}",
                f"{row['linux_plr']:.2%}", f"{row['sim_plr']:.2%}",
            )
            for row in cells.iter_rows(named=True)
        ),
    )  # fmt: skip
    return (
        Section(title="Without load", blocks=(alone_table,)),
        Section(
            title="Under load",
            blocks=(
                paragraph(
                    "Both backends meet the same arrivals and draw the same initial windows; what differs is TCP. Where packets are lost "
                    "one loss more or less moves all that follow, so cells with loss agree in distribution only."
                ),
                figure(cells),
                loaded_table,
            ),
        ),
    )


def figure(cells: pl.DataFrame) -> Figure:
    """The kernel's mean completion times against the simulator's."""
    colours = dict(zip(ARMS, (OKABE_ITO["blue"], OKABE_ITO["green"], OKABE_ITO["vermilion"]), strict=True))

    def draw() -> Any:
        made, ax = new(4.6, 4.2)
        for arm in ARMS:
            for rate, marker in ((SLOW, "o"), (FAST, "s")):
                own = cells.filter((pl.col("arm") == arm) & (pl.col("rate") == rate))
                ax.plot(own["sim_s"], own["linux_s"], marker, color=colours[arm], mfc="none", label=f"{arm}, {rate}")
        low, high = 0.5, 1.2 * float(cells.select(pl.max_horizontal("sim_s", "linux_s").max()).item())
        ax.plot([low, high], [low, high], color="0.6", lw=0.8, zorder=0)
        ax.set(xscale="log", yscale="log", xlabel="simulator: mean completion time (s)", ylabel="kernel (s)")
        ax.legend(fontsize=7)
        return made

    ratio = (cells["linux_s"] / cells["sim_s"]).to_numpy()
    return Figure(
        name="kernel",
        title=f"Mean completion time, kernel over simulator: {ratio.min():.2f} to {ratio.max():.2f} over {len(ratio)} cells",
        caption="One mark per cell and arm: the median over seeds of the mean completion time. On the line both are equal.",
        draw=draw,
        data={"cells": cells},
    )


def _scenarios() -> dict[str, Scenario]:
    cell = (FAST, FIVE, HEAVY[FAST])
    return {
        f"{where(*cell)}, {arm}": testbed.loaded(
            *cell, arm, duration_s=testbed.length(FAST, "kernel")[0], **testbed.KERNEL_HOSTS
        )
        for arm in (IW3, IW10)
    }


PART = KernelPart(
    summary=(
        "The testbed of the slides with the real Linux TCP at its ends, beside the simulator with the settings of the same kernel. Hosts "
        "are today's (Linux 6: initial RTO of 1 s, RACK-TLP, PRR) and not those of 2010, so verdicts may differ from the study's with "
        "either backend; what the kernel adds is whether the simulator says the same as it. Runs are shorter: 1200 s on the slow link, of "
        "which the first 300 do not count, and 20 s on the fast one, without the first 5."
    ),
    experiments=(
        Experiment(name="exact", title="one transaction alone; isolated batches", run=run_exact, weight=1),
        Experiment(name="slow", title="64 kb/s, single and five opens, IW3, IW10, mix", run=loaded.run_slow, weight=15),
        Experiment(name="fast", title="20 Mb/s, the same", run=loaded.run_fast, weight=25),
        Experiment(name="background", title="two long flows beside transactions", run=background.run, weight=5),
    ),
    claims=_claims(),
    left_out=LEFT_OUT,
    sections=_sections,
    scenarios=_scenarios,
    record=Path(__file__).with_name("kernel.json"),
)
