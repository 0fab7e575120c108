"""Every combination of links and hosts: its effect on PCC and CUBIC, whether it shows the blog's observations, and
which combinations cannot be told apart (N1). A host model is compared with exact hosts on the same link. Every
combination is also compared with exact hosts on the testbed's link, as in the blog.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import Array, mean_over_runs
from ackclock.plot import Figure, new
from ackclock.report import Block, Table, TableCell, paragraph
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
from ackclock_studies.pcc import hypotheses, testbed
from ackclock_studies.pcc.testbed import BARE, COST, CUBIC, IDEAL, LABEL, MININET, PAYLOAD, PCC, SPINS, Model

LINKS = (BARE, IDEAL, MININET)
EXACT = "exact"
LATE_4, LATE_10, LATE_20 = (f"pacing every {period} ms" for period in (4, 10, 20))
LINE = "pacing every 7.5 ms"
"""Wake-up intervals as long as netem's delay; each releases one buffer's worth of packets."""
LIGHT, XEN, MICRO = "5 ms off / 100 ms", "30 ms off / 30 ms", "270 ms off / 30 ms"
TWO, ONE = "2 processors", "1 processor"

HOSTS: dict[str, tuple[Mapping[str, Any], bool]] = {
    EXACT: ({}, False),
    LATE_4: ({"tick": "4 ms", "catch_up": "full"}, False),
    LINE: ({"tick": "7500 us", "catch_up": "full"}, False),
    LATE_10: ({"tick": "10 ms", "catch_up": "full"}, False),
    LATE_20: ({"tick": "20 ms", "catch_up": "full"}, False),
    LIGHT: ({"preset": "light"}, True),
    XEN: ({"preset": "xen-shared"}, True),
    MICRO: ({"preset": "micro"}, True),
    TWO: ({"cores": 2, **SPINS, **COST}, True),
    ONE: ({"cores": 1, **SPINS, **COST}, True),
}
"""Host -> settings, and whether sender and receiver share one machine. The presets with stalls are rented machines of that time, one of
them under Xen's credit scheduler.
"""

PACING = (LATE_4, LINE, LATE_10, LATE_20)
"""Hosts that do not affect unpaced TCP: CUBIC's runs are the same as on exact hosts."""

FEW = (EXACT, LINE, LATE_10, XEN)
"""Hosts at quick scale."""

COMPARED = ((MININET, EXACT), (BARE, LINE))
"""The two causes in N1."""

SIZES = (6, 20, 50, 275)
LENGTH_S = 30.0


def model(link: str, host: str) -> Model:
    """Combination of a link and a host."""
    settings, both = HOSTS[host]
    if link == MININET:
        return testbed.mininet(settings, both=both)
    capacity = testbed.PIPES[testbed.TICK_8_0] if link == BARE else None
    return Model(host=settings, both=both, capacity=capacity)


def scenario(link: str, host: str, controller: str, packets: int) -> Scenario:
    """Return one flow alone."""
    return testbed.shallow(model(link, host), controller, packets, LENGTH_S)


def run(plan: Plan) -> Data:
    """Every host on every link, 30 s with start-up.

    Returns
    -------
    Data
        `crossed.flows`: link, host, cc, buffer (packets), seed, share (goodput over what the link can carry), burst (most packets back
        to back), lost (percent of the packets sent).
    """
    cells = [
        Cell(
            scenario=scenario(link, host, controller, packets),
            keys={"link": link, "host": host, "cc": controller, "buffer": packets},
            stream=f"crossed {packets}",
            seeds=plan.count(quick=3 if (link, host) in COMPARED else 1, paper=6 if (link, host) in COMPARED else 3)
            if controller == PCC
            else 1,
            needs={"flows": ("goodput_bps", "sent_packets", "lost_packets", "largest_burst")},
            keep={"flows": _reduce(controller)},
        )
        for link in LINKS
        for host in (HOSTS if plan.scale == "paper" else FEW)
        for controller in (PCC, CUBIC)
        if controller == PCC or host not in PACING
        for packets in SIZES
    ]
    return collect("crossed", cells, plan)


def _reduce(controller: str) -> Any:
    most = testbed.RATE_BPS * PAYLOAD[controller] / testbed.PACKET_BYTES

    def reduce(batch: Batch) -> pl.DataFrame:
        return batch.flows.select(
            "seed",
            (pl.col("goodput_bps") / most).alias("share"),
            pl.col("largest_burst").cast(pl.Float64).alias("burst"),
            (100 * pl.col("lost_packets").cast(pl.Float64) / pl.col("sent_packets")).alias("lost"),
        )

    return reduce


def shares(tables: Tables, link: str, host: str, controller: str) -> dict[int, float]:
    """Link share by buffer size, percent, averaged over runs."""
    host = EXACT if controller == CUBIC and host in PACING else host
    t = tables["crossed.flows"].filter(
        (pl.col("link") == link) & (pl.col("host") == host) & (pl.col("cc") == controller)
    )
    found = t.group_by("buffer").agg(100 * pl.col("share").mean())
    return {int(packets): float(share) for packets, share in found.iter_rows()}


def _hosts(tables: Tables) -> list[str]:
    known = set(tables["crossed.flows"]["host"])
    return [host for host in HOSTS if host in known]


CLEAR, LITTLE = hypotheses.CLEAR, hypotheses.LITTLE


def prints(tables: Tables) -> pl.DataFrame:
    """Observations for each combination: PCC's shares, CUBIC's loss compared with the testbed, and which of the blog's three observations hold."""
    base = {controller: shares(tables, BARE, EXACT, controller) for controller in (PCC, CUBIC)}
    rows = []
    for link in LINKS:
        for host in _hosts(tables):
            pcc, cubic = (shares(tables, link, host, controller) for controller in (PCC, CUBIC))
            less = {q: base[PCC][q] - pcc[q] for q in SIZES}
            cubic_less = {q: base[CUBIC][q] - cubic[q] for q in SIZES}
            shallow, deep = np.mean([less[q] for q in (6, 20)]), less[275]
            rows.append(
                {
                    "link": link,
                    "host": host,
                    **{f"pcc_{q}": pcc[q] for q in SIZES},
                    "cubic_most": max(cubic_less.values(), key=abs),
                    "burst": float(_pcc(tables, link, host, 20, "burst").mean()),
                    "worse_shallow": bool(shallow >= CLEAR and shallow > deep + LITTLE),
                    "recovers": bool(deep <= LITTLE),
                    "cubic_same": max(abs(x) for x in cubic_less.values()) <= CLEAR,
                }
            )
    return pl.DataFrame(rows)


def alike(tables: Tables, link: str, host: str) -> list[str]:
    """Combinations in which PCC's share at every size is within 10 percentage points of this one's."""
    t = prints(tables)
    values = t.select(f"pcc_{q}" for q in SIZES).to_numpy()
    names = [(r["link"], r["host"]) for r in t.iter_rows(named=True)]
    own = values[names.index((link, host))]
    return [
        ", ".join(pair)
        for pair, other in zip(names, values, strict=True)
        if pair != (link, host) and np.abs(other - own).max() <= CLEAR
    ]


def n1(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """PCC's throughput behind netem with exact hosts, minus its throughput with late pacing on the testbed's link."""
    netem, late = ([_pcc(tables, *pair, q) for q in SIZES] for pair in COMPARED)
    return [
        Evidence.of(
            mean_over_runs(100 * (a - b)), f"{q} packets: {MININET} less {LINE} on bare metal", bound, unit="points", key=f"at_{q}"
        )
        for q, a, b in zip(SIZES, netem, late, strict=True)
    ]  # fmt: skip


def _pcc(tables: Tables, link: str, host: str, packets: int, column: str = "share") -> Array:
    t = tables["crossed.flows"].filter(
        (pl.col("link") == link) & (pl.col("host") == host) & (pl.col("cc") == PCC) & (pl.col("buffer") == packets)
    )
    return t.sort("seed")[column].to_numpy().astype(np.float64)


def figure(tables: Tables) -> Figure:
    """Cost of each host on each link, percentage points, compared with exact hosts on the same link."""
    rows = []
    for link in LINKS:
        for controller in (PCC, CUBIC):
            base = shares(tables, link, EXACT, controller)
            for host in _hosts(tables):
                own = shares(tables, link, host, controller)
                rows += [
                    {"link": link, "cc": controller, "host": host, "buffer": q, "points": base[q] - own[q]}
                    for q in SIZES
                ]
    table = pl.DataFrame(rows)
    hosts = [host for host in _hosts(tables) if host != EXACT]

    def draw() -> Any:
        from matplotlib.colors import TwoSlopeNorm

        figure, axes = new(8.4, 5.2, nrows=2, ncols=len(LINKS), sharex=True, sharey=True)
        for row, controller in zip(axes, (PCC, CUBIC), strict=True):
            for ax, link in zip(row, LINKS, strict=True):
                own = table.filter((pl.col("link") == link) & (pl.col("cc") == controller))
                found = np.array(
                    [[own.filter((pl.col("host") == h) & (pl.col("buffer") == q))["points"][0] for q in SIZES] for h in hosts]
                )  # fmt: skip
                image = ax.imshow(found, cmap="RdBu_r", norm=TwoSlopeNorm(0, -95, 95), aspect="auto")
                for (i, k), value in np.ndenumerate(found):
                    dark = "white" if abs(value) > 60 else "black"
                    ax.text(k, i, f"{value:.0f}", ha="center", va="center", fontsize=6.5, color=dark)
                ax.set_title(f"{'PCC' if controller == PCC else LABEL[controller]}, {link}", fontsize=9)
                ax.set_xticks(range(len(SIZES)), [str(q) for q in SIZES])
                ax.grid(visible=False)
            row[0].set_yticks(range(len(hosts)), hosts, fontsize=7)
        axes[-1][1].set_xlabel("buffer (packets)")
        figure.colorbar(image, ax=axes, label="points below exact hosts on the same link", shrink=0.7)
        return figure

    return Figure(
        name="crossed",
        title="What each model of the hosts takes, on each link",
        caption="Points of the capacity below exact hosts on the same link, means over runs of 30 s. On Mininet's link TCP hands over packets of several segments.",
        draw=draw,
        data={"points": table, "fingerprints": prints(tables)},
    )


def fingerprints(tables: Tables) -> Table:
    """The combinations that show PCC's ramp and its recovery, and further observations of each."""
    t = prints(tables)
    shown = t.filter(pl.col("worse_shallow") & pl.col("recovers"))
    rows: list[tuple[TableCell | str, ...]] = [
        (
            TableCell(text=f"{r['link']}, {r['host']}", kind="head"),
            *(f"{r[f'pcc_{q}']:.0f}" for q in SIZES),
            f"{r['cubic_most']:.0f}",
            "yes" if r["cubic_same"] else "no",
            f"{r['burst']:.0f}",
        )
        for r in shown.iter_rows(named=True)
    ]
    return Table(
        caption=(
            f"Pairs of link and host that show PCC's ramp and its recovery, of {t.height}: PCC's share of the link (%), the most that CUBIC differs from bare metal with exact hosts at "
            f"any size (points; within {CLEAR:g} counts as the same), and the most packets back to back behind 20 packets."
        ),
        header=("link, host", *(f"{q} packets" for q in SIZES), "CUBIC below", "CUBIC the same", "back to back"),
        rows=tuple(rows),
    )


def told(tables: Tables) -> str:
    """One-sentence summary of the table."""
    t = prints(tables).filter(pl.col("worse_shallow") & pl.col("recovers"))
    three = [f"{r['link']}, {r['host']}" for r in t.filter(pl.col("cubic_same")).iter_rows(named=True)]
    return (
        f"All three observations of the blog, with CUBIC the same, are shown by: {'; '.join(three) or 'none'}. By PCC's throughput alone Mininet's link with exact hosts "
        f"cannot be told apart, within {CLEAR:g} points at every size, from: {'; '.join(alike(tables, MININET, EXACT)) or 'no other'}. "
        "A capture at the sender would tell: late pacing sends its packets back to back, a sender behind netem one by one."
    )


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (figure(tables), fingerprints(tables), paragraph(told(tables)))


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {
        "PCC on bare metal's link, pacing every 10 ms, 20 packets": scenario(BARE, LATE_10, PCC, 20),
        "CUBIC on Mininet's link, host off for 30 ms, 20 packets": scenario(MININET, XEN, CUBIC, 20),
    }


CHAPTER = Chapter(
    experiments=(Experiment(name="crossed", title="every host on every link", run=run, weight=8),),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
