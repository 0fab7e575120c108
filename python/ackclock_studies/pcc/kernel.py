"""The sweep and the four flows on the real kernel. CUBIC is Linux's own, PCC's datagrams cross the kernel's queues, and Mininet's link is
built from the same kernel components as in Mininet. These runs test the hypothesis on netem's limit (H3) with the
real netem.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import Array, mean_over_runs, minus
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Section, Table, paragraph
from ackclock.scenario import Scenario
from ackclock.study import (
    Claim,
    Criterion,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
    above,
    at_least,
    at_most,
    between,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.kernel import NAMES, KernelPart
from ackclock_studies.pcc import sharing, testbed
from ackclock_studies.pcc.testbed import (
    CUBIC,
    CUT,
    IDEAL,
    LABEL,
    PACKET_BYTES,
    PAYLOAD,
    PCC,
    RATE_BPS,
)

ROUTER, MININET, MININET_CUT = "queue of a router", "Mininet's link", "Mininet's link, no offload"
ARMS = {ROUTER: IDEAL, MININET: testbed.MININET, MININET_CUT: CUT}
"""Name -> the study's model. With offload, multi-segment TCP packets cross the link whole."""

SIZES = (5, 10, 20, 50, 100, 275)
SECONDS = 10
SEEDS = 3
UNIT_S = 20
"""Interval between flow starts, half the time over which the flows are compared; 500 s in the publication."""
FLOWS = (2, 4)
STARTS = 6
"""Number of runs of CUBIC, which is deterministic: in each further run, the later flows start 7.3 ms later. PCC draws
random numbers, and its runs take much longer here, so it gets fewer.
"""
FEW_STARTS = 2


def shallow(arm: str, controller: str, packets: int) -> Scenario:
    """Return one flow over the link of the sweep, on perfect hosts."""
    return testbed.shallow(ARMS[arm], controller, packets, SECONDS)


def several(controller: str, flows: int, start: int = 0) -> Scenario:
    """Flows that start one after another over Mininet's link with a limit of 250 packets, 30 ms, without the access links."""
    flow = testbed.sender(controller) | ({"stack": {"tso": True}} if controller == CUBIC else {})
    return Scenario.from_dict(
        {
            "name": f"{flows} flows of {LABEL[controller]}",
            "duration": f"{(flows + 2) * UNIT_S} s",
            "network": {
                "framing": "14 bytes",
                "bottleneck": {
                    "rate": "100 Mbit/s",
                    "delay": "13 ms",
                    "queue": {"kind": "netem-limit", "limit": "250 packets"},
                },
                "reverse": {"bottleneck": {"rate": "100 Mbit/s", "delay": "17 ms"}},
            },
            "flows": [{**flow, "start": f"{1000 * i * UNIT_S + i * start * 7.3:.1f} ms"} for i in range(flows)],
            "record": {"goodput_interval": "1 s"},
        }
    )


def _arms(controller: str) -> Sequence[str]:
    """Links on which a controller is run. The one without offload is for TCP only, because PCC's datagrams are never aggregated."""
    return (ROUTER, MININET) if controller == PCC else tuple(ARMS)


def run_sweep(plan: Plan) -> Data:
    """Throughput against the buffer.

    Returns
    -------
    Data
        `sweep.flows`: arm, cc, buffer, seed, share (goodput over what the link can carry), goodput_mbps.
    """

    def reduce(controller: str) -> Any:
        most = RATE_BPS * PAYLOAD[controller] / PACKET_BYTES
        return lambda batch: batch.flows.select(
            "seed", (pl.col("goodput_bps") / most).alias("share"), (pl.col("goodput_bps") / 1e6).alias("goodput_mbps")
        )

    cells = [
        Cell(
            scenario=shallow(arm, controller, packets),
            keys={"arm": arm, "cc": controller, "buffer": packets},
            stream=f"kernel shallow {packets}",
            seeds=plan.seeds or SEEDS,
            needs={"flows": ("goodput_bps",)},
            keep={"flows": reduce(controller)},
            network="qdisc",
        )
        for controller in (PCC, CUBIC)
        for arm in _arms(controller)
        for packets in SIZES
    ]
    return collect("sweep", cells, plan)


def run_sharing(plan: Plan) -> Data:
    """Two and four flows under netem's limit.

    Returns
    -------
    Data
        `sharing.runs`: cc, flows, start, seed, first and largest (percent of the total), jain, sd_mbps, total_mbps, over the 40 s
        after all are there.
    """

    def numbers(batch: Batch, flows: int) -> pl.DataFrame:
        rows = []
        for seed in batch.seeds:
            own = batch.goodput.filter(pl.col("seed") == seed)
            found = testbed.series(own, flows, (flows + 2) * UNIT_S)[flows * UNIT_S :]
            share = 100 * found.mean(axis=0) / found.mean(axis=0).sum()
            rows.append(
                {"seed": seed, "first": float(share[0]), "largest": float(share.max()), **sharing.numbers(found)}
            )
        return pl.DataFrame(rows)

    cells = [
        Cell(
            scenario=several(controller, flows, start),
            keys={"cc": controller, "flows": flows, "start": start},
            stream=f"kernel sharing {start}",
            seeds=1,
            needs={"goodput": ("t_s", "flow", "goodput_bps")},
            keep={"runs": partial(numbers, flows=flows)},
            network="qdisc",
        )
        for flows in FLOWS
        for controller in (CUBIC, PCC)
        for start in range(plan.seeds or (STARTS if controller == CUBIC else FEW_STARTS))
    ]
    return collect("sharing", cells, plan)


def pick(tables: Tables, arm: str, controller: str, packets: int, column: str = "share") -> Array:
    """A sweep column, one value per seed."""
    t = tables["sweep.flows"].filter(
        (pl.col("arm") == arm) & (pl.col("cc") == controller) & (pl.col("buffer") == packets)
    )
    return t.sort("seed")[column].to_numpy().astype(np.float64)


def gap(tables: Tables, controller: str, packets: int, arm: str = MININET) -> Array:
    """Deficit of Mininet's link against a router's queue, percent of link capacity, one value per seed."""
    return 100 * (pick(tables, ROUTER, controller, packets) - pick(tables, arm, controller, packets))


def of_several(tables: Tables, controller: str, flows: int, column: str) -> Array:
    """Return a column for the runs with this many flows."""
    t = tables["sharing.runs"].filter((pl.col("cc") == controller) & (pl.col("flows") == flows))
    return t[column].to_numpy().astype(np.float64)


def ceiling(packets: int) -> float:
    """PCC's goodput, Mb/s, if no more than `packets` packets fit into a 7.5 ms delay."""
    return min(packets * PAYLOAD[PCC] * 8 / 7.5e-3 / 1e6, RATE_BPS * PAYLOAD[PCC] / PACKET_BYTES / 1e6)


def c2(tables: Tables) -> Sequence[Evidence]:
    """PCC's deficit at shallow buffers."""
    return [
        Evidence.of(
            mean_over_runs(gap(tables, PCC, q)), f"{q} packets: below a router's queue", at_least(10), unit="points"
        )
        for q in (10, 20, 50)
    ]


def c3(tables: Tables) -> Sequence[Evidence]:
    """Change in the deficit with the buffer."""
    return [
        Evidence.of(
            mean_over_runs(gap(tables, PCC, a) - gap(tables, PCC, b)),
            f"gap at {a} less that at {b} packets",
            at_least(0),
            unit="points",
        )
        for a, b in pairwise((10, 20, 50, 275))
    ]


def c4(tables: Tables) -> Sequence[Evidence]:
    """Deficit at the deepest buffer."""
    return [Evidence.of(mean_over_runs(gap(tables, PCC, 275)), "275 packets", at_most(5), unit="points")]


def c5(tables: Tables) -> Sequence[Evidence]:
    """CUBIC's deficit against a router's queue."""
    return [
        Evidence.of(mean_over_runs(gap(tables, CUBIC, q)), f"{q} packets: CUBIC below a router's queue", between(-5, 5), unit="points")
        for q in (10, 20, 50, 275)
    ]  # fmt: skip


def c5_deep(tables: Tables) -> Sequence[Evidence]:
    """CUBIC's deficit at the buffers where PCC still has one."""
    return [
        Evidence.of(mean_over_runs(gap(tables, CUBIC, 50)), "50 packets: CUBIC below a router's queue", at_most(5), unit="points"),
        Evidence.of(mean_over_runs(gap(tables, PCC, 50)), "50 packets: PCC below a router's queue", at_least(10), unit="points"),
    ]  # fmt: skip


def spared(tables: Tables) -> Sequence[Evidence]:
    """CUBIC's deficit without offload."""
    return [
        Evidence.of(
            mean_over_runs(gap(tables, CUBIC, q, MININET_CUT) - gap(tables, CUBIC, q)),
            f"{q} packets: gap without offload less that with it",
            above(0),
            unit="points",
        )
        for q in (10, 20, 50)
    ]


def capped(tables: Tables) -> Sequence[Evidence]:
    """Ratio of the goodput to netem's limit over its delay."""
    return [
        Evidence.of(
            mean_over_runs(pick(tables, MININET, PCC, q, "goodput_mbps") / ceiling(q)),
            f"{q} packets: goodput over limit / delay",
            between(0.8, 1.05),
        )
        for q in (5, 10, 20, 50)
    ]


def c10(tables: Tables) -> Sequence[Evidence]:
    """Jain's index of the flows."""
    return [
        Evidence.of(mean_over_runs(of_several(tables, PCC, n, "jain")), f"PCC, {n} flows: index", at_least(0.97)) for n in FLOWS
    ]  # fmt: skip


def c11(tables: Tables) -> Sequence[Evidence]:
    """Fairer and steadier than CUBIC."""
    found = []
    for n in FLOWS:
        for column, sign, name in (("jain", 1, "index, PCC less CUBIC"), ("sd_mbps", -1, "deviation, CUBIC less PCC")):
            p, c = (mean_over_runs(of_several(tables, cc, n, column)) for cc in (PCC, CUBIC))
            more = minus(p, c) if sign > 0 else minus(c, p)
            unit = "Mb/s" if column == "sd_mbps" else ""
            found.append(Evidence.of(more, f"{n} flows: {name}", above(0), unit=unit))
    return found


def _claim(name: str, place: str, statement: str, reading: str, measure: Any) -> Claim:
    return Claim(id=name, place=place, statement=statement, direction=Criterion(measure=measure, reading=reading))


_SWEEP, _SHARING, _H3 = "blog: throughput against buffer", "blog: four flows", "hypothesis: netem's limit"

CLAIMS = (
    _claim("C2", _SWEEP, "In a virtual machine PCC has less throughput at shallow buffers, and rises more slowly.",
           "Mininet's link against a router's queue of as many packets: at least 10 points at 10, 20 and 50.", c2),
    _claim("C3", _SWEEP, "The shallower the buffer, the worse.", "The gap does not grow with the buffer.", c3),
    _claim("C4", _SWEEP, "With a deep buffer PCC comes near what is expected.", "At most 5 points at 275 packets.", c4),
    _claim("C5", _SWEEP, "CUBIC is virtually the same in a virtual machine and on bare metal.",
           "Within 5 points of a router's queue at 10, 20, 50 and 275 packets, segmentation offload on.", c5),
    _claim("H3a", _H3, "PCC behind Mininet's link gets what fits into netem: limit over delay.",
           "80 to 105 % of it at 5, 10, 20 and 50 packets.", capped),
    _claim("H3b", _H3, "Segmentation offload spares TCP: a packet of several segments counts once.",
           "The gap is smaller with offload than without at 10, 20 and 50 packets.", spared),
    _claim("H3c", _H3, "There are buffers behind which Mininet's link costs PCC, and CUBIC nothing.",
           "At 50 packets PCC misses at least 10 points, CUBIC at most 5.", c5_deep),
    _claim("C10", _SHARING, "On eight processors PCC's index over 100-s windows is that of the paper, 0.98 to 0.99.",
           "At least 0.97 with 2 and 4 flows, over 40 s.", c10),
    _claim("C11", _SHARING, "In a virtual machine too, PCC shares more fairly and varies less than CUBIC.",
           "Mininet's link. Index higher and standard deviation of 1-s goodput lower, with 2 and 4 flows.", c11),
)  # fmt: skip

LEFT_OUT = {
    "C1": "bare metal is dummynet's, which the kernel has not",
    "C6": "needs a host with one busy core; virtual time knows no load",
    "C9": "as C1",
    "C12": "as C6",
    "C13": "as C6",
    "C14": "as C6",
    "C19": "as C1",
    "C20": "the goodputs behind each limit are in the table",
}


def _sections(tables: Mapping[str, Tables]) -> tuple[Section, ...]:
    return (
        Section(
            title="Netem's limit in the real kernel",
            blocks=(
                paragraph(
                    "Mininet makes a link of HTB and, below it, one netem with the delay and the limit that it calls max_queue_size. What is "
                    "under way counts against the limit. A packet of several segments, as TCP hands it over where segmentation offload is on "
                    "(as it is in Mininet), counts once; PCC's datagrams count one by one."
                ),
                figure(tables),
                sweep_table(tables),
            ),
        ),
        Section(title="Two and four flows under netem's limit", blocks=(sharing_table(tables),)),
    )


def means(tables: Tables) -> pl.DataFrame:
    """Means over seeds."""
    by = ("arm", "cc", "buffer")
    return tables["sweep.flows"].group_by(by, maintain_order=True).agg(pl.col("share", "goodput_mbps").mean())


def sweep_table(tables: Mapping[str, Tables]) -> Table:
    """Goodput in every cell, on both backends."""
    both = means(tables["linux"]).join(
        means(tables["sim"]), on=("arm", "cc", "buffer"), suffix="_sim", maintain_order="left"
    )
    return Table(
        caption="Goodput, means over seeds. Mininet's shaper charges 14 bytes of Ethernet with each segment.",
        header=("cell", "kernel (Mb/s)", "simulator (Mb/s)"),
        rows=tuple(
            (f"{LABEL[r['cc']]}, {r['arm']}, {r['buffer']} packets", f"{r['goodput_mbps']:.1f}", f"{r['goodput_mbps_sim']:.1f}")
            for r in both.iter_rows(named=True)
        ),
    )  # fmt: skip


def sharing_table(tables: Mapping[str, Tables]) -> Table:
    """Largest share, fairness index and deviation on both backends."""
    rows = []
    for n in FLOWS:
        for controller in (PCC, CUBIC):
            told = []
            for column, digits in (("first", 1), ("largest", 1), ("jain", 3), ("sd_mbps", 1), ("total_mbps", 1)):
                told.append(
                    " / ".join(f"{of_several(own, controller, n, column).mean():.{digits}f}" for own in tables.values())
                )
            rows.append((f"{LABEL[controller]}, {n} flows", *told))
    both = " / ".join(NAMES[backend] for backend in tables)
    return Table(
        caption=f"{both}. Over {2 * UNIT_S} s after all flows are there; means over runs in which the later flows begin some ms apart.",
        header=("run", "first flow (%)", "largest share (%)", "index", "deviation (Mb/s)", "total (Mb/s)"),
        rows=tuple(rows),
    )


def figure(tables: Mapping[str, Tables]) -> Figure:
    """Link share against buffer size: the kernel as markers, the simulator as lines."""
    colours = dict(zip(ARMS, (OKABE_ITO["black"], OKABE_ITO["vermilion"], OKABE_ITO["blue"]), strict=True))
    found = {backend: means(own) for backend, own in tables.items()}

    def draw() -> Any:
        made, axes = new(8.2, 3.8, ncols=2, sharey=True)
        for ax, controller in zip(axes, (PCC, CUBIC), strict=True):
            for arm in _arms(controller):
                for backend, style in (("linux", "o"), ("sim", "-")):
                    own = found[backend].filter((pl.col("arm") == arm) & (pl.col("cc") == controller))
                    name = f"{arm}, {NAMES[backend]}"
                    ax.plot(own["buffer"], 100 * own["share"], style, color=colours[arm], mfc="none", label=name)
            ax.set(xscale="log", xlabel="limit (packets)", title=LABEL[controller], ylim=(0, 104))
            ax.xaxis.set_major_formatter("{x:g}")
        axes[0].set_ylabel("goodput (% of what the link can carry)")
        made.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return made

    return Figure(
        name="kernel",
        title="Throughput against the buffer, and against netem's limit",
        caption=f"One flow, {SECONDS} s with start-up, 100 Mb/s, 30 ms; 7.5 ms of it on the link with the limit. Means over seeds.",
        draw=draw,
        data=found,
    )


def _scenarios() -> dict[str, Scenario]:
    return {
        "PCC, Mininet's link, 20 packets": shallow(MININET, PCC, 20),
        "CUBIC, Mininet's link, 50 packets": shallow(MININET, CUBIC, 50),
        "CUBIC, four flows": several(CUBIC, 4),
    }


PART = KernelPart(
    summary=(
        "The blog's sweep over six buffers, and two and four flows under Mininet's limit, in short, with perfect hosts: CUBIC is the kernel's own, PCC the simulator's "
        "endpoints behind real UDP sockets, and the queues are the kernel's. One of the links is Mininet's, built of the kernel's parts as Mininet "
        "builds it: what it does to PCC and to CUBIC answers the hypothesis of netem's limit."
    ),
    experiments=(
        Experiment(
            name="sweep", title="throughput against the buffer and against netem's limit", run=run_sweep, weight=20
        ),
        Experiment(name="sharing", title="two and four flows under Mininet's limit", run=run_sharing, weight=20),
    ),
    claims=CLAIMS,
    left_out=LEFT_OUT,
    sections=_sections,
    scenarios=_scenarios,
    record=Path(__file__).with_name("kernel.json"),
)
