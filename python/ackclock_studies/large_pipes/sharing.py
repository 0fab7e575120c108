"""Sharing between flows: of one kind, with NewReno, and with different RTTs (W18, W20, W26)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch, metrics
from ackclock.judge import estimates
from ackclock.judge.estimates import Array, mean_over_runs
from ackclock.metrics import friendliness
from ackclock.plot import GREY, Figure, new
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
    Tables,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.large_pipes import paths
from ackclock_studies.large_pipes.paths import (
    ALABAMA,
    CALTECH,
    FAST,
    HSTCP,
    NEWRENO,
    PROTOCOLS,
    SENDERS,
    TCPW,
    Bottleneck,
)
from ackclock_studies.large_pipes.runs import NO_BOUND
from ackclock_studies.large_pipes.style import COLOUR, MARKER


def shares(batch: Batch) -> pl.DataFrame:
    """Goodput of each TCP flow over the second half; other users, whose flows are last, are excluded."""
    half = batch.goodput["t_s"].max() / 2  # type: ignore[operator]
    flows = sum(group.count for group in batch.scenario.flows if group.workload.kind == "bulk")
    return (
        batch.goodput.filter((pl.col("t_s") > half) & (pl.col("flow") < flows))
        .group_by("seed", "flow", maintain_order=True)
        .agg(pl.col("goodput_bps").mean())
        .sort("seed", "flow")
    )


def run(plan: Plan) -> Data:
    """Two and four flows of one kind; half of them against NewReno; unequal RTTs.

    Returns
    -------
    Data
        `sharing.same`: path, protocol, flows, run, flow, goodput_bps; `sharing.mixed`: the same (the first half NewReno; at quick scale
        two flows alone); `sharing.rtts`: protocol, ratio, run, flow, goodput_bps.
    """
    paper = plan.scale == "paper"
    record = {"goodput_interval": "500 ms"}
    cells: list[Cell] = []

    def add(table: str, scenario: Scenario, keys: Mapping[str, object], stream: str, seeds: int) -> None:
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

    for path in (ALABAMA, CALTECH):
        duration = DURATION_S[path.name][paper]
        seeds = plan.count(quick=3, paper=10) if path is ALABAMA else plan.count(quick=3, paper=6)
        for protocol in PROTOCOLS:
            sender = SENDERS[protocol]
            for n in (2, 4):
                keys = {"path": path.name, "protocol": protocol, "flows": n}
                half = [(SENDERS[NEWRENO], n // 2), (sender, n // 2)]
                for table, flows in (("same", [(sender, n)]), ("mixed", half)):
                    if table == "mixed" and (protocol == NEWRENO or (n > 2 and not paper)):
                        continue
                    stagger = 1.0 if path is ALABAMA else 0.1
                    made = paths.scenario(path, flows, duration_s=duration, stagger_s=stagger, record=record)
                    beside = seeds if table == "same" or paper else 2  # friendliness is shown, but no claim needs it
                    add(table, made, keys, f"{table} {n} {path.name}", beside)
    duration = DURATION_S[ALABAMA.name][paper]
    for protocol in PROTOCOLS:
        for ratio in RTT_RATIOS:
            unequal = paths.unequal(ALABAMA, SENDERS[protocol], ratio, duration_s=duration, queue=QUEUE, record=record)
            keys = {"protocol": protocol, "ratio": ratio}
            add("rtts", unequal, keys, f"rtts {ratio}", 1)  # nothing is random: all runs would be identical
    return collect("sharing", cells, plan, numbered=True)


DURATION_S = {ALABAMA.name: (16.0, 120.0), CALTECH.name: (3.0, 16.0)}
"""Duration at quick and at paper scale, s."""

QUEUE = 400
RTT_RATIOS = (1, 2, 5, 10)
_KEY = {ALABAMA.name: "path1", CALTECH.name: "path2"}


def jain_per_run(table: pl.DataFrame) -> list[float]:
    """Jain's index for each run."""
    return [
        metrics.jain(own["goodput_bps"].to_list())
        for _, own in table.sort("run", "flow").group_by("run", maintain_order=True)
    ]


def _same(tables: Tables, path: Bottleneck, protocol: str, n: int) -> pl.DataFrame:
    t = tables["sharing.same"]
    return t.filter((pl.col("path") == path.name) & (pl.col("protocol") == protocol) & (pl.col("flows") == n))


def w18(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Fairness among flows of one kind on both paths; for two FAST flows also the prediction from FAST's law."""
    found: list[Evidence] = []
    first: list[Evidence] = []
    for path in (ALABAMA, CALTECH):
        for protocol in (TCPW, FAST, HSTCP):
            for n in (2, 4):
                own = _same(tables, path, protocol, n)
                key = f"{protocol.lower()}_{n}_{_KEY[path.name]}"
                label = f"{path.name}, {n} {protocol}: Jain's index, second half"
                index = np.array(jain_per_run(own))
                found.append(Evidence.of(_index(index), label, bound, key=key))
                label = f"{path.name}, {n} {protocol}: share of the first flow over a fair one"
                share = mean_over_runs(_share_of_first(own))
                first.append(Evidence.of(share, label, NO_BOUND, weighs=False, key=f"first_{key}"))
    return [*found, *first]


def _share_of_first(rows: pl.DataFrame) -> Array:
    """Ratio of the first flow's goodput to the mean over all flows, by run."""
    goodput = pl.col("goodput_bps")
    each = rows.sort("run", "flow").group_by("run", maintain_order=True)
    return each.agg(goodput.first() / goodput.mean())["goodput_bps"].to_numpy()


def w20(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Friendliness to NewReno."""
    return [
        Evidence.of(
            mean_over_runs(friendliness_per_run(tables, protocol, n, path)),
            f"{path.name}, {n // 2} NewReno beside {n // 2} {protocol}: throughput over that among NewReno",
            bound,
            weighs=False,
            key=f"{protocol.lower()}_{n}_{_KEY[path.name]}",
        )
        for path in (ALABAMA, CALTECH)
        for protocol in (TCPW, FAST, HSTCP)
        for n in beside_newreno(tables)
    ]


def beside_newreno(tables: Tables) -> list[int]:
    """Numbers of flows, half of them NewReno, that were run."""
    return sorted(tables["sharing.mixed"]["flows"].unique().to_list())


def friendliness_per_run(tables: Tables, protocol: str, n: int, path: Bottleneck = ALABAMA) -> Array:
    """F for each run: ratio of NewReno's mean throughput beside X to that among NewReno flows only."""
    mixed = tables["sharing.mixed"].filter(
        (pl.col("path") == path.name) & (pl.col("protocol") == protocol) & (pl.col("flows") == n)
    )
    base = {run: own["goodput_bps"].to_list() for (run,), own in _same(tables, path, NEWRENO, n).group_by("run")}
    values = []
    for (run,), own in mixed.sort("run").group_by("run", maintain_order=True):
        values.append(friendliness(own.filter(pl.col("flow") < n // 2)["goodput_bps"].to_list(), base[run]))
    return np.array(values)


def _short_over_long(tables: Tables, protocol: str, ratio: int) -> float:
    """Throughput ratio between the short-RTT and the long-RTT flow; exact, because nothing is random."""
    t = tables["sharing.rtts"].filter((pl.col("protocol") == protocol) & (pl.col("ratio") == ratio))
    short, long = (float(t.filter(pl.col("flow") == f)["goodput_bps"].item()) for f in (0, 1))
    return short / max(long, 1.0)


def w26(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Unequal RTTs: shares closer to equal than with NewReno."""
    found = []
    for ratio, weighs in ((2, True), (5, False), (10, False)):
        base = abs(math.log(_short_over_long(tables, NEWRENO, ratio)))
        for protocol in (TCPW, FAST, HSTCP):
            own = abs(math.log(_short_over_long(tables, protocol, ratio)))
            label = f"1 : {ratio}, {protocol}: distance from equal shares (log of the ratio) less NewReno's"
            key = f"{protocol.lower()}_{ratio}"
            found.append(Evidence(label=label, value=own - base, bound=bound, weighs=weighs, key=key))
    for protocol in PROTOCOLS:
        value = _short_over_long(tables, protocol, 2)
        label = f"1 : 2, {protocol}: throughput, short round trip over long"
        found.append(Evidence(label=label, value=value, bound=NO_BOUND, weighs=False, key=f"ratio_{protocol.lower()}"))
    return found


def _index(values: Array) -> Estimate:
    """Mean of Jain's index, with an interval that stays below one: symmetric in the logarithm of the distance from one."""
    missing = estimates.ratio(1 - values, np.ones_like(values))
    return Estimate(
        value=1 - missing.value, low=max(1 - missing.high, 0), high=1 - missing.low, level=0.95, n=missing.n
    )


def sharing_bars(tables: Tables) -> Figure:
    """Fairness and friendliness on both paths, and unequal RTTs (slides 13, 22, 23)."""
    rows: list[dict[str, Any]] = []

    def add(measure: str, protocol: str, at: str, value: float, low: float, high: float) -> None:
        rows.append({"measure": measure, "protocol": protocol, "at": at, "value": value, "low": low, "high": high})

    for protocol in PROTOCOLS:
        for path, number in ((ALABAMA, 1), (CALTECH, 2)):
            for n in (2, 4):
                at = f"path {number}\n{n} flows"
                e = _index(np.array(jain_per_run(_same(tables, path, protocol, n))))
                add("jain", protocol, at, e.value, e.low, e.high)
                if protocol != NEWRENO and n in beside_newreno(tables):
                    e = mean_over_runs(friendliness_per_run(tables, protocol, n, path))
                    add("friendliness", protocol, at, e.value, e.low, e.high)
        for ratio in RTT_RATIOS:
            value = _short_over_long(tables, protocol, ratio)
            add("rtt", protocol, f"1 : {ratio}", value, value, value)
    table = pl.DataFrame(rows)

    def draw() -> Any:
        figure, axes = new(8.6, 3.6, ncols=3)
        for ax, measure, label in zip(
            axes,
            ("jain", "friendliness", "rtt"),
            ("Jain's index among their like", "friendliness to NewReno, F", "throughput, short RTT over long"),
            strict=True,
        ):
            own = table.filter(pl.col("measure") == measure)
            at = own["at"].unique(maintain_order=True).to_list()
            for protocol in PROTOCOLS:
                one = own.filter(pl.col("protocol") == protocol)
                if not one.height:
                    continue
                value = one["value"].to_numpy()
                error = np.abs(one.select("low", "high").to_numpy().T - value)
                error[~np.isfinite(error)] = 0.0
                if measure == "rtt":
                    error[0] = np.minimum(error[0], 0.9 * value)
                x = [at.index(a) + 0.15 * (PROTOCOLS.index(protocol) - 1.5) for a in one["at"]]
                ax.errorbar(
                    x, value, yerr=error, fmt=MARKER[protocol], color=COLOUR[protocol], label=protocol, lw=1, ms=4
                )
            ax.set_xticks(range(len(at)), at, fontsize=7)
            ax.set_ylabel(label)
            ax.grid(axis="x", visible=False)
        axes[0].set_ylim(0, 1.05)
        axes[1].axhline(1.0, color=GREY, lw=0.8)
        axes[2].axhline(1.0, color=GREY, lw=0.8)
        axes[1].set_ylim(bottom=0)
        axes[2].set(yscale="log", xlabel="round-trip times")
        axes[2].set_yticks((1, 10, 100), ("1", "10", "100"))
        axes[2].minorticks_off()
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return figure

    return Figure(
        name="sharing",
        title="Sharing: among flows of one protocol, with NewReno, with other round-trip times",
        caption=(
            "Second half of the run; means over runs with 95 % intervals. F: throughput of NewReno beside as many flows of X, over that among NewReno alone; "
            "1 is neutral. Round-trip times: path 1, the longer one 64 ms. Slides 2, 13, 22, 23."
        ),
        draw=draw,
        data={"sharing": table},
    )


def over_time(tables: Tables) -> Figure:
    """NewReno's share against one other flow in the second half, both paths, run by run (slides 13 and 22)."""
    rows = [
        {"path": path.name, "protocol": protocol, "run": run, "share": 100 * share}
        for path in (ALABAMA, CALTECH)
        for protocol in (TCPW, FAST, HSTCP)
        for run, share in enumerate(_newreno_share(tables, path, protocol))
    ]
    table = pl.DataFrame(rows)

    def draw() -> Any:
        figure, axes = new(7.0, 2.8, ncols=2, sharey=True)
        for ax, path in zip(axes, (ALABAMA, CALTECH), strict=True):
            for i, protocol in enumerate((TCPW, FAST, HSTCP)):
                own = table.filter((pl.col("path") == path.name) & (pl.col("protocol") == protocol))["share"].to_numpy()
                x = i + np.linspace(-0.2, 0.2, own.size)
                ax.plot(x, own, MARKER[protocol], color=COLOUR[protocol], ms=4)
            ax.axhline(50, color=GREY, lw=0.8, ls=":")
            ax.set_xticks(range(3), (TCPW, FAST, HSTCP))
            ax.set(title=path.name, ylim=(0, 100))
            ax.grid(axis="x", visible=False)
        axes[0].set_ylabel("NewReno's share (%)")
        return figure

    return Figure(
        name="beside-newreno",
        title="What one NewReno flow gets beside one flow of another protocol",
        caption="Share of the two flows' goodput over the second half, a point for each run; dotted: half. Slides 13 and 22.",
        draw=draw,
        data={"beside-newreno": table},
    )


def _newreno_share(tables: Tables, path: Bottleneck, protocol: str) -> Array:
    t = tables["sharing.mixed"].filter(
        (pl.col("path") == path.name) & (pl.col("protocol") == protocol) & (pl.col("flows") == 2)
    )
    goodput = pl.col("goodput_bps")
    each = t.sort("run", "flow").group_by("run", maintain_order=True)
    return each.agg(goodput.first() / goodput.sum())["goodput_bps"].to_numpy()


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (sharing_bars(t), over_time(t))


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {
        "two HSTCP and two NewReno": paths.scenario(
            ALABAMA, [(SENDERS[NEWRENO], 2), (SENDERS[HSTCP], 2)], duration_s=120, stagger_s=1.0
        ),
    }


CHAPTER = Chapter(
    experiments=(Experiment(name="sharing", title="fairness, friendliness, round-trip times", run=run, weight=20),),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
