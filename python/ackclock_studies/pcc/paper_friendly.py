"""TCP friendliness (NSDI 2015, section 4.3.1): one ordinary TCP flow against PCC flows, or against the same number of bundles of ten TCP
flows each, the selfish alternative to PCC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ackclock.plot import GREY, Figure, new
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
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.pcc import arms
from ackclock_studies.pcc.arms import JITTER, PACKET_BYTES, PCC, PRINTED, Arm, tcp

BUNDLE = tcp("bundles of ten CUBIC flows", "cubic", "orange", "^")
BUNDLED = 10
ORDINARY = tcp("ordinary flow, CUBIC", "cubic", "black", "o")
ARMS = (PCC, PRINTED, BUNDLE)
PATHS = ((10, 20), (30, 20), (100, 10))
"""Path rates, Mb/s, and RTTs, ms."""

SELFISH = (1, 2, 4)


def scenario(arm: Arm, rate: int, rtt_ms: int, selfish: int, duration_s: int) -> Scenario:
    """Scenario with the ordinary flow as flow 0, the selfish senders, and a buffer of one bandwidth-delay product."""
    buffer = round(rate * 1e6 * rtt_ms * 1e-3 / 8 / PACKET_BYTES)
    count = selfish * (BUNDLED if arm is BUNDLE else 1)
    return Scenario.from_dict(
        {
            "name": f"an ordinary flow against {selfish}, {rate} Mb/s, {rtt_ms} ms, {arm.name}",
            "duration": f"{duration_s} s",
            "network": {
                "topology": "dumbbell",
                "access": {"rate": "1 Gbit/s", "delay": "1 ms", "jitter": JITTER},
                "bottleneck": {
                    "rate": f"{rate} Mbit/s",
                    "delay": f"{rtt_ms / 2 - 1:g} ms",
                    "queue": {"kind": "drop-tail", "limit": f"{buffer} packets"},
                },
            },
            "flows": [ORDINARY.flows(), arm.flows(count=count)],
        }
    )


NEEDS = {"flows": ("flow", "goodput_bps")}


def run(plan: Plan) -> Data:
    """Three paths, one to four selfish senders, 40 s.

    Returns
    -------
    Data
        `friendly.ordinary`: arm, path, rate_mbps, selfish, seed, mbps (of the ordinary flow), share (of what it would have if all
        senders had the same).
    """
    quick = plan.scale == "quick"
    cells = [
        Cell(
            scenario=scenario(arm, rate, rtt, n, 40),
            keys={"arm": arm.name, "path": f"{rate} Mb/s, {rtt} ms", "rate_mbps": rate, "selfish": n},
            stream=f"friendly {rate} {rtt} {n}",
            seeds=plan.count(quick=6, paper=6),
            needs=NEEDS,
        )
        for rate, rtt in (PATHS[1:2] if quick else PATHS)
        for n in SELFISH
        for arm in ARMS
        if not quick or arm is not PRINTED
    ]
    data = collect("friendly", cells, plan)
    mbps = pl.col("goodput_bps") / 1e6
    flows = (
        data.tables["friendly.flows"]
        .filter(pl.col("flow") == 0)
        .drop("flow")
        .with_columns(mbps.alias("mbps"), (mbps * (pl.col("selfish") + 1) / pl.col("rate_mbps")).alias("share"))
    )
    return Data(tables={TABLE: flows}, digests=data.digests, runs=data.runs)


TABLE = "friendly.ordinary"


def like_ten(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Ratio between the ordinary flow's goodput against PCC and against bundles."""
    return [
        Evidence.of(
            arms.times(tables, TABLE, "mbps", arm, BUNDLE, path=path, selfish=n),
            f"{path}, {n}: against {arm.name} over against bundles",
            bound,
            unit="times",
            weighs=arm is PCC,
        )
        for arm in (PCC, PRINTED)
        for path in _paths(tables)
        for n in SELFISH
        if arm.name in set(tables[TABLE]["arm"])
    ]


def unfriendly(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """The ordinary flow's share when competing with one PCC flow."""
    return [
        Evidence.of(
            arms.mean(tables, TABLE, "share", 100, arm=arm.name, path=path, selfish=1),
            f"{path}: share of the ordinary flow beside one of {arm.name}, of an equal one",
            bound,
            unit="%",
            weighs=arm is PCC,
        )
        for arm in (PCC, BUNDLE)
        for path in _paths(tables)
    ]


def _paths(tables: Tables) -> list[str]:
    return tables[TABLE]["path"].unique(maintain_order=True).to_list()


def figure(tables: Tables) -> Figure:
    """Goodput of the ordinary flow."""
    found = arms.summary(tables[TABLE], ("arm", "path", "rate_mbps", "selfish"), "mbps")

    def draw() -> Any:
        paths = _paths(tables)
        figure, axes = new(8.4, 3.8, ncols=len(paths), squeeze=False)
        for ax, path in zip(axes[0], paths, strict=True):
            own = found.filter(pl.col("path") == path)
            arms.curves(ax, own, ARMS, "selfish", "mbps")
            rate = own["rate_mbps"][0]
            ax.plot(SELFISH, [rate / (n + 1) for n in SELFISH], color=GREY, ls=":", lw=1, label="equal shares")
            ax.set_yscale("log")
            arms.ticks(ax.yaxis, (0.2, 0.5, 1, 2, 5, 10, 20, 50))
            ax.set_xticks(SELFISH)
            ax.set_xlabel("selfish senders")
            ax.set_title(path)
        axes[0][0].set_ylabel("ordinary flow (Mb/s)")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return figure

    return Figure(
        name="friendly",
        title="What is left for an ordinary TCP flow",
        caption="CUBIC against PCC flows, or against bundles. Means over seeds; the shade spans least and greatest.",
        draw=draw,
        data={"friendly": found},
    )


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {"An ordinary flow against two of PCC": scenario(PCC, 30, 20, 2, 40)}


EXPERIMENT = Experiment(name="friendly", title="one ordinary TCP flow against PCC, or bundles", run=run, weight=10)


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (figure(tables),)


CHAPTER = Chapter(experiments=(EXPERIMENT,), **declared(__name__), blocks=blocks, scenarios=scenarios)
