"""How flows share: with their like, with NewReno, over round-trip times (W18, W20)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch, metrics
from ackclock.metrics import friendliness
from ackclock.plot import GREY, Figure, new
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
from ackclock.studies.large_pipes.starts import NO_BOUND
from ackclock.studies.large_pipes.style import COLOUR, MARKER
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
)
from ackclock.study.cells import Cell, collect
from ackclock.study.estimates import Array, median


def shares(batch: Batch) -> pl.DataFrame:
    """Goodput of each TCP flow over the second half; the other users, who come last, do not take part."""
    half = batch.goodput["t_s"].max() / 2  # type: ignore[operator]
    flows = sum(group.count for group in batch.scenario.flows if group.workload.kind == "bulk")
    return (
        batch.goodput.filter((pl.col("t_s") > half) & (pl.col("flow") < flows))
        .group_by("seed", "flow", maintain_order=True)
        .agg(pl.col("goodput_bps").mean())
        .sort("seed", "flow")
    )


def run(plan: Plan) -> Data:
    """Two and four flows of one kind; half of them against NewReno; unequal round-trip times.

    Returns
    -------
    Data
        `sharing.same`: protocol, flows, run, flow, goodput_bps; `sharing.mixed`: protocol, flows, run, flow, goodput_bps (the first
        half NewReno); `sharing.rtts`: protocol, ratio, run, flow, goodput_bps.
    """
    seeds = plan.count(quick=6, paper=10)
    duration = 120.0 if plan.scale == "paper" else 16.0
    record = {"goodput_interval": "1 s"}
    cells: list[Cell] = []

    def add(table: str, scenario: Scenario, keys: Mapping[str, object], stream: str) -> None:
        cells.append(
            Cell(
                scenario=scenario,
                keys=keys,
                stream=f"large-pipes {stream}",
                seeds=seeds,
                needs={"goodput": ("flow", "t_s", "goodput_bps")},
                keep={table: shares},
            )
        )

    for protocol in PROTOCOLS:
        sender = SENDERS[protocol]
        for n in (2, 4):
            same = paths.scenario(
                ALABAMA, [(sender, n)], duration_s=duration, queue=QUEUE, stagger_s=1.0, record=record
            )
            keys = {"protocol": protocol, "flows": n}
            add("same", same, keys, f"same {n}")
            mixed = paths.scenario(
                ALABAMA,
                [(SENDERS[NEWRENO], n // 2), (sender, n // 2)],
                duration_s=duration,
                queue=QUEUE,
                stagger_s=1.0,
                record=record,
            )
            add("mixed", mixed, keys, f"mixed {n}")
        for ratio in RTT_RATIOS:
            unequal = paths.unequal(ALABAMA, sender, ratio, duration_s=duration, queue=QUEUE, record=record)
            add("rtts", unequal, {"protocol": protocol, "ratio": ratio}, f"rtts {ratio}")
    return collect("sharing", cells, plan, numbered=True)


QUEUE = 400
RTT_RATIOS = (1, 2, 5, 10)


def jain_per_run(table: pl.DataFrame) -> list[float]:
    """Jain's index of each run."""
    return [
        metrics.jain(own["goodput_bps"].to_list())
        for _, own in table.sort("run", "flow").group_by("run", maintain_order=True)
    ]


def w18(tables: Tables) -> Sequence[Evidence]:
    """Fairness among flows of one kind."""
    t = tables["sharing.same"]
    found: list[Evidence] = []
    first: list[Evidence] = []
    for protocol in (TCPW, FAST, HSTCP):
        for n in (2, 4):
            own = t.filter((pl.col("protocol") == protocol) & (pl.col("flows") == n))
            found.append(
                Evidence.of(
                    median(np.array(jain_per_run(own))),
                    f"{n} {protocol}: Jain's index, second half",
                    at_least(0.95),
                )
            )
            label = f"{n} {protocol}: share of the first flow over a fair one"
            first.append(Evidence.of(median(_share_of_first(own)), label, NO_BOUND, weighs=False))
    return [*found, *first]


def _share_of_first(rows: pl.DataFrame) -> Array:
    """Of each run: goodput of the flow that began first over the mean of all."""
    goodput = pl.col("goodput_bps")
    each = rows.sort("run", "flow").group_by("run", maintain_order=True)
    return each.agg(goodput.first() / goodput.mean())["goodput_bps"].to_numpy()


def w20(tables: Tables) -> Sequence[Evidence]:
    """Friendliness to NewReno."""
    found = []
    for protocol in (TCPW, FAST, HSTCP):
        for n in (2, 4):
            found.append(
                Evidence.of(
                    median(friendliness_per_run(tables, protocol, n)),
                    f"{n // 2} NewReno beside {n // 2} {protocol}: throughput over that among NewReno",
                    at_least(0.8),
                    weighs=False,
                )
            )
    return found


def friendliness_per_run(tables: Tables, protocol: str, n: int) -> Array:
    """F of each run: NewReno's mean throughput beside X over that with all flows NewReno."""
    mixed = tables["sharing.mixed"].filter((pl.col("protocol") == protocol) & (pl.col("flows") == n))
    alone = tables["sharing.same"].filter((pl.col("protocol") == NEWRENO) & (pl.col("flows") == n))
    base = {run: own["goodput_bps"].to_list() for (run,), own in alone.group_by("run")}
    values = []
    for (run,), own in mixed.sort("run").group_by("run", maintain_order=True):
        values.append(friendliness(own.filter(pl.col("flow") < n // 2)["goodput_bps"].to_list(), base[run]))
    return np.array(values)


def sharing_bars(tables: Tables) -> Figure:
    """Fairness, friendliness, round-trip times (slides 13, 22, 23)."""
    rows = []
    for protocol in PROTOCOLS:
        for n in (2, 4):
            own = tables["sharing.same"].filter((pl.col("protocol") == protocol) & (pl.col("flows") == n))
            e = median(np.array(jain_per_run(own)))
            rows.append(
                {"measure": "jain", "protocol": protocol, "at": n, "value": e.value, "low": e.low, "high": e.high}
            )
            if protocol != NEWRENO:
                e = median(friendliness_per_run(tables, protocol, n))
                rows.append(
                    {
                        "measure": "friendliness",
                        "protocol": protocol,
                        "at": n,
                        "value": e.value,
                        "low": e.low,
                        "high": e.high,
                    }
                )
        for ratio in RTT_RATIOS:
            own = (
                tables["sharing.rtts"]
                .filter((pl.col("protocol") == protocol) & (pl.col("ratio") == ratio))
                .sort("run", "flow")
            )
            short, long = (own.filter(pl.col("flow") == f)["goodput_bps"].to_numpy() for f in (0, 1))
            e = median(short / np.maximum(long, 1.0))
            rows.append(
                {"measure": "rtt", "protocol": protocol, "at": ratio, "value": e.value, "low": e.low, "high": e.high}
            )
    table = pl.DataFrame(rows)

    def draw() -> Any:
        figure, axes = new(8.2, 3.4, ncols=3)
        for ax, measure, label in zip(
            axes,
            ("jain", "friendliness", "rtt"),
            ("Jain's index among their like", "friendliness to NewReno, F", "throughput, short RTT over long"),
            strict=True,
        ):
            own = table.filter(pl.col("measure") == measure)
            at = own["at"].unique().sort().to_list()
            for protocol in PROTOCOLS:
                one = own.filter(pl.col("protocol") == protocol).sort("at")
                if not one.height:
                    continue
                value = one["value"].to_numpy()
                error = np.abs(one.select("low", "high").to_numpy().T - value)
                error[~np.isfinite(error)] = 0.0
                x = [at.index(a) + 0.13 * (PROTOCOLS.index(protocol) - 1.5) for a in one["at"]]
                ax.errorbar(x, value, yerr=error, fmt=MARKER[protocol], color=COLOUR[protocol], label=protocol, lw=1)
            ax.set_xticks(range(len(at)), [f"{a} flows" if measure != "rtt" else f"1 : {a}" for a in at])
            ax.set_ylabel(label)
            ax.grid(axis="x", visible=False)
        axes[0].set_ylim(0, 1.05)
        axes[1].axhline(1.0, color=GREY, lw=0.8)
        axes[2].axhline(1.0, color=GREY, lw=0.8)
        axes[1].set_ylim(bottom=0)
        axes[2].set(yscale="log", xlabel="round-trip times")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return figure

    return Figure(
        name="sharing",
        title="Sharing: with their like, with NewReno, with other round-trip times",
        caption=(
            "Path 1, queue of 400 packets, second half of the run; medians over runs with 95 % intervals. F: throughput of NewReno beside as many "
            "flows of X, over that among NewReno alone; 1 is neutral. Slides 13, 22, 23."
        ),
        draw=draw,
        data={"sharing": table},
    )


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="W18",
        place="slide 23",
        statement="All advanced protocols share excellently with their like.",
        direction=Criterion(
            measure=w18,
            reading="Two and four flows, second half of 120 s: Jain's index 0.95 or more (A10).",
        ),
        note="In the second minute the medians are 0.96 to 1.00, but the intervals of TCPW and of four HSTCP flows reach below 0.95. The 16 s of the quick scale are too short for HSTCP and TCPW, whose flows begin a second apart.",
    ),
    Claim(
        id="W20",
        place="slides 13, 22",
        statement="The protocols differ in how friendly they are to NewReno.",
        direction=Criterion(
            measure=w20,
            reading="No number to hold against: F is NewReno's throughput beside as many X, over that among NewReno alone.",
        ),
        not_comparable="the slides' plots carry neither metric nor numbers; the values measured are given",
    ),
)


def blocks(t: Tables) -> Sequence[Block]:
    """For the report."""
    return (sharing_bars(t),)


def scenarios() -> Mapping[str, Scenario]:
    """As written."""
    return {
        "two HSTCP and two NewReno": paths.scenario(
            ALABAMA, [(SENDERS[NEWRENO], 2), (SENDERS[HSTCP], 2)], duration_s=120, stagger_s=1.0
        ),
    }


CHAPTER = Chapter(
    title="Sharing",
    experiments=(Experiment(name="sharing", title="fairness, friendliness, round-trip times", run=run, weight=20),),
    claims=CLAIMS,
    blocks=blocks,
    scenarios=scenarios,
)
