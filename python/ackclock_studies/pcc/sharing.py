"""Four flows that join and leave: Jain's index and standard deviation by number of active flows and by buffer size.

Length: two experiments with five claims on the same two numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeAlias

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import Array, mean_over_runs, quotient
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
    Reading,
    Tables,
    above,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.pcc import arms, testbed
from ackclock_studies.pcc.sweep import LOOKS, PIPE
from ackclock_studies.pcc.testbed import (
    BARE,
    CUBIC,
    FLOWS,
    LABEL,
    MININET,
    PCC,
    Model,
)

P = ParamSpec("P")
Measure: TypeAlias = Callable[Concatenate[Tables, P], Sequence[Evidence]]

WINDOWS = 5
"""Averaging windows in each period with constant flows: 100 s at paper scale, where a period is 500 s."""

RUNS = ((BARE, PCC), (BARE, CUBIC), (MININET, PCC), (MININET, CUBIC))
"""Environment and protocol."""

STRETCHES = 6
"""Periods, each from one start or end of a flow to the next. A seventh, with the last flow alone, is omitted: no claim concerns a single flow."""

STRETCH_S, SHORT_S = 500, 10
"""Period lengths: the publication's, and one at quick scale, for figures. A claim is judged only at its own length."""

NOISE = Reading(
    name="noise",
    question="How exact are the hosts' departures?",
    options={"exact": "to the nanosecond", "100 us": "up to 100 us late, at random", "1 ms": "up to 1 ms late"},
    why="exact departures fit nothing",
    crossed=False,
)

LIMITS = (25, 50, 100, 250, 500)
"""Buffer sizes at which four flows are compared, packets."""
FEW_LIMITS = (250, 500)
"""Sizes at quick scale."""
TOGETHER_S, APART_S = 200, 5
PICTURED_S = 50
"""Time together at quick scale, for figures: no claim is judged on four flows that run together for less than `TOGETHER_S`."""

EXACT, CLOCKED = "exact", "clock of 1 ms"
DEPARTURES: dict[str, Model] = {EXACT: testbed.WISHBONE[MININET], CLOCKED: testbed.mininet(testbed.CLOCK)}
"""Paced senders' departure models on Mininet's link, for the cause of C18. TCP is not paced and is run only with exact hosts."""


def active(stretch: int) -> list[int]:
    """Flows active in a period, numbered from 0 to 6."""
    return [i for i in range(FLOWS) if i <= stretch < i + 4]


def run(plan: Plan) -> Data:
    """PCC and CUBIC on bare metal and in Mininet; periods of 500 s, or 10 s at quick scale, where no claim is judged.

    Returns
    -------
    Data
        `windows`: host (the environment), cc, seed, flows (active), t_s, jain, sd_mbps (of the 1-s goodput of a flow, mean over
        active flows), total_mbps. `series`: host, cc, flow, t_s, mbps of one seed.
    """
    unit = STRETCH_S if plan.scale == "paper" else SHORT_S
    bare = testbed.bare(PIPE.of(plan))
    jitter = {"exact": "0 s"}.get(NOISE.of(plan), NOISE.of(plan))
    cells = [
        Cell(
            scenario=come_and_go(bare if host == BARE else host, controller, unit, jitter=jitter),
            keys={"host": host, "cc": controller},
            stream="sharing",
            seeds=plan.count(quick=1, paper=6, readings=2),
            needs={"goodput": ("t_s", "flow", "goodput_bps")},
            keep={"windows": partial(all_windows, unit=unit), "series": partial(first_series, unit=unit)},
        )
        for host, controller in RUNS
    ]
    return collect("sharing", cells, plan)


def come_and_go(model: str | Model, controller: str, unit: int, *, jitter: str = "0 s") -> Scenario:
    """Scenario where flow i starts after i periods and writes for four periods."""
    made = testbed.wishbone(model, controller, unit, jitter=jitter)
    return made.set("duration", f"{STRETCHES * unit} s")


def run_depth(plan: Plan) -> Data:
    """Four flows that start 5 s apart in Mininet, with several limits; 200 s together, or 50 s and one run of each at quick scale.

    Returns
    -------
    Data
        `shares`: cc, hosts (departures), limit (packets), seed, seconds (together), jain, sd_mbps, total_mbps, over all the time together.
    """
    cells = [
        Cell(
            scenario=abreast(controller, limit, host=DEPARTURES[hosts], together_s=together_s(plan)),
            keys={"cc": controller, "hosts": hosts, "limit": limit},
            stream="depth",
            seeds=plan.count(quick=1, paper=12 if limit in FEW_LIMITS else 2),
            needs={"goodput": ("t_s", "flow", "goodput_bps")},
            keep={"shares": partial(shares_together, together_s=together_s(plan))},
        )
        for controller, hosts in ((PCC, EXACT), (CUBIC, EXACT), (PCC, CLOCKED))
        for limit in (LIMITS if plan.scale == "paper" and hosts == EXACT else FEW_LIMITS)
    ]
    return collect("depth", cells, plan)


def together_s(plan: Plan) -> int:
    """Time for which four flows are active together."""
    return TOGETHER_S if plan.scale == "paper" else PICTURED_S


def abreast(controller: str, limit: int, *, host: str | Model = MININET, together_s: int = TOGETHER_S) -> Scenario:
    """Four flows with one limit, the last from 15 s on; all write to the end."""
    written = testbed.wishbone(host, controller, APART_S, limit=limit)
    length = (FLOWS - 1) * APART_S + together_s
    flows = [{k: v for k, v in flow.items() if k != "stop"} for flow in written.to_dict()["flows"]]
    return Scenario.from_dict({**written.to_dict(), "duration": f"{length} s", "flows": flows})


def shares_together(batch: Batch, *, together_s: int = TOGETHER_S) -> pl.DataFrame:
    """Measured values for each run, over the time in which all flows are active."""
    begin = (FLOWS - 1) * APART_S
    rows = []
    for seed in batch.seeds:
        own = batch.goodput.filter(pl.col("seed") == seed)
        found = testbed.series(own, FLOWS, begin + together_s)[begin:]
        rows.append({"seed": seed, "seconds": together_s, **numbers(found)})
    return pl.DataFrame(rows)


def numbers(own: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, float]:
    """Jain's index of the means, standard deviation of a flow's 1 s goodput (averaged over flows), and total goodput."""
    return {
        "jain": testbed.jain(own.mean(axis=0)),
        "sd_mbps": float(own.std(axis=0, ddof=1).mean()),
        "total_mbps": float(own.sum(axis=1).mean()),
    }


def all_windows(batch: Batch, *, unit: int) -> pl.DataFrame:
    """Measured values for each window of each run."""
    rows = [
        {"seed": seed, **row}
        for seed in batch.seeds
        for row in windows(testbed.series(batch.goodput.filter(pl.col("seed") == seed), FLOWS, STRETCHES * unit), unit)
    ]
    return pl.DataFrame(rows)


def first_series(batch: Batch, *, unit: int) -> pl.DataFrame:
    """Each flow's goodput in the first run, second by second."""
    found = testbed.series(batch.goodput.filter(pl.col("seed") == batch.seeds[0]), FLOWS, STRETCHES * unit)
    t = np.arange(1.0, STRETCHES * unit + 1)
    return pl.concat(
        [
            pl.DataFrame({"t_s": t, "mbps": found[:, flow]}).select(pl.lit(flow).alias("flow"), "t_s", "mbps")
            for flow in range(FLOWS)
        ]
    )


def windows(found: np.ndarray[Any, np.dtype[np.float64]], unit: int) -> list[dict[str, Any]]:
    """Measured values for each window of a run, given one row per second and one column per flow."""
    rows = []
    length = unit // WINDOWS
    for start in range(0, STRETCHES * unit, length):
        own = found[start : start + length, active(start // unit)]
        rows.append({"flows": own.shape[1], "t_s": float(start), **numbers(own)})
    return rows


def pick(tables: Tables, host: str, controller: str, flows: int | None, column: str) -> Array:
    """Mean over the windows with this many active flows, one value per seed; `None`: all of the experiment with two or more flows."""
    active = pl.col("flows") >= 2 if flows is None else pl.col("flows") == flows
    t = tables["sharing.windows"].filter((pl.col("host") == host) & (pl.col("cc") == controller) & active)
    return t.group_by("seed").agg(pl.col(column).mean()).sort("seed")[column].to_numpy().astype(np.float64)


def asked_where(enough: Callable[[Tables], bool]) -> Callable[[Measure[P]], Measure[P]]:
    """Wrap a measurement so that it is skipped if its tables are insufficient."""

    def wrap(measure: Measure[P]) -> Measure[P]:
        @wraps(measure)
        def asked(tables: Tables, /, *args: P.args, **kwargs: P.kwargs) -> Sequence[Evidence]:
            found = measure(tables, *args, **kwargs)
            return found if enough(tables) else not_asked(found)

        return asked

    return wrap


def at_length(measure: Measure[P]) -> Measure[P]:
    """Wrap a measurement over 100 s windows so that it is skipped for quick scale's short periods."""
    return asked_where(lambda tables: tables["sharing.series"]["t_s"].max() == STRETCHES * STRETCH_S)(measure)


LEAST_RUNS = 6
"""Number of four-flow runs needed by a claim. Quick scale has one run of each kind, for figures."""


def enough(tables: Tables, table: str) -> bool:
    """Whether there are enough four-flow runs, of sufficient length, for a claim."""
    return tables[table]["seed"].n_unique() >= LEAST_RUNS and bool((tables[table]["seconds"] >= TOGETHER_S).all())


def in_enough_runs(table: str) -> Callable[[Measure[P]], Measure[P]]:
    """Wrap a measurement so that it is skipped if there are fewer four-flow runs, or shorter ones."""
    return asked_where(lambda tables: enough(tables, table))


def not_asked(found: Sequence[Evidence]) -> list[Evidence]:
    """Empty evidence, instead of numbers that would answer a different question."""
    nothing = math.nan
    return [
        replace(e, label=f"{e.label} (not asked at this scale)", value=nothing, low=nothing, high=nothing, seeds=0)
        for e in found
    ]


_COLOURS = [OKABE_ITO[name] for name in ("blue", "orange", "green", "vermilion")]


TITLES = {BARE: "bare metal", MININET: "Mininet"}


def figure(tables: Tables) -> Figure:
    """Goodput over time."""
    table = tables["sharing.series"]

    def draw() -> Any:
        figure, axes = new(8.2, 6.0, nrows=len(RUNS), sharex=True, sharey=True)
        for ax, (host, controller) in zip(axes, RUNS, strict=True):
            for flow in range(FLOWS):
                own = table.filter((pl.col("host") == host) & (pl.col("cc") == controller) & (pl.col("flow") == flow))
                ax.plot(own["t_s"], own["mbps"], color=_COLOURS[flow], lw=0.7, label=f"flow {flow + 1}")
            ax.set_title(f"{LABEL[controller]}, {TITLES[host]}", fontsize=9)
        axes[-1].set_xlabel("time (s)")
        axes[len(RUNS) // 2].set_ylabel("goodput (Mb/s)")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return figure

    return Figure(
        name="sharing",
        title="Four flows that come and go",
        caption="Goodput of each second, one seed. 100 Mb/s, 30 ms, 250 packets; hosts are exact.",
        draw=draw,
        data={"sharing": table},
    )


def bars(tables: Tables) -> Figure:
    """Index and deviation by number of flows: the publication's fairness graph."""
    rows = [
        {"host": host, "cc": cc, "flows": n, "column": column, "run": run, "value": float(value)}
        for host, cc in RUNS
        for n in (2, 3, 4)
        for column in ("jain", "sd_mbps")
        for run, value in enumerate(pick(tables, host, cc, n, column))
    ]
    table = pl.DataFrame(rows)

    def draw() -> Any:
        figure, axes = new(8.2, 3.4, ncols=2)
        for ax, column, label in zip(
            axes, ("jain", "sd_mbps"), ("Jain's index", "standard deviation (Mb/s)"), strict=True
        ):
            for i, (host, cc) in enumerate(RUNS):
                own = table.filter((pl.col("host") == host) & (pl.col("cc") == cc) & (pl.col("column") == column))
                ax.plot(
                    own["flows"].to_numpy() + 0.14 * (i - 1.5),
                    own["value"],
                    LOOKS[cc]["marker"],
                    color=LOOKS[cc]["color"],
                    mfc=LOOKS[cc]["color"] if host == BARE else "none",
                    label=f"{LABEL[cc]}, {TITLES[host]}",
                    ms=4,
                )
            if column == "jain":
                ax.axhspan(0.98, 0.99, color="#bbbbbb", alpha=0.5, lw=0, label="as published, 8 processors")
            ax.set_xticks((2, 3, 4))
            ax.set_xlabel("active flows")
            ax.set_ylabel(label)
        axes[0].set_ylim(top=1.005)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return figure

    return Figure(
        name="fairness",
        title="Fairness and steadiness by number of flows",
        caption="A point for each run: mean over its windows, each a fifth of a stretch. Grey: the index that the blog had on eight processors, like the paper's.",
        draw=draw,
        data={"fairness": table},
    )


def depth_figure(tables: Tables) -> Figure:
    """Index and deviation against the limit."""
    table = tables["depth.shares"]

    def draw() -> Any:
        figure, axes = new(8.2, 3.2, ncols=2)
        for ax, column, label in zip(
            axes, ("jain", "sd_mbps"), ("Jain's index", "standard deviation (Mb/s)"), strict=True
        ):
            for cc, hosts in ((PCC, EXACT), (CUBIC, EXACT), (PCC, CLOCKED)):
                own = (
                    table.filter((pl.col("cc") == cc) & (pl.col("hosts") == hosts))
                    .group_by("limit", maintain_order=True)
                    .agg(
                        pl.col(column).mean().alias("mean"),
                        pl.col(column).min().alias("least"),
                        pl.col(column).max().alias("most"),
                    )
                )
                look = LOOKS[cc] if hosts == EXACT else {**LOOKS[cc], "mfc": "none", "ls": ":"}
                name = LABEL[cc] if hosts == EXACT else f"{LABEL[cc]}, {CLOCKED}"
                ax.plot(own["limit"], own["mean"], label=name, lw=1.2, ms=4, **look)
                ax.fill_between(own["limit"], own["least"], own["most"], color=LOOKS[cc]["color"], alpha=0.12, lw=0)
            ax.set_xscale("log")
            arms.ticks(ax.xaxis, LIMITS)
            ax.set_xlabel("Mininet's limit (packets)")
            ax.set_ylabel(label)
        axes[0].set_ylim(0, 1.02)
        axes[0].legend(loc="lower right")
        return figure

    return Figure(
        name="depth",
        title="Fairness of four flows against Mininet's limit",
        caption="Means over seeds; the shade spans least and greatest.",
        draw=draw,
        data={"depth": table},
    )  # fmt: skip


def _index(tables: Tables, host: str, n: int, bound: Any, *, key: str = "", weighs: bool = True) -> Evidence:
    index = arms.index(pick(tables, host, PCC, n, "jain"))
    return Evidence.of(index, f"PCC, {n} flows, {host}: index", bound, key=key, weighs=weighs)


def _over_cubic(tables: Tables, host: str, column: str, *, key: str = "") -> list[Evidence]:
    """PCC against CUBIC in one environment, over the whole experiment and by number of flows: higher index, or lower deviation."""
    sign, name, unit, bound = (
        (1, "index, PCC less CUBIC", "", FAIRER)
        if column == "jain"
        else (-1, "deviation, CUBIC less PCC", "Mb/s", STEADIER)
    )
    found = []
    for n in (None, 2, 3, 4):
        p, c = (pick(tables, host, cc, n, column) for cc in (PCC, CUBIC))
        when = "2 to 4 flows" if n is None else f"{n} flows"
        named = f"{key}_{n or 'all'}" if key else ""
        found.append(
            Evidence.of(
                mean_over_runs(sign * (p - c)), f"{when}, {host}: {name}", bound, unit=unit, key=named, weighs=n is None
            )
        )
    return found


FAIRER = above(0, margin=0.005)
STEADIER = above(0, margin=0.1)


@at_length
def c10(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Sharing in Mininet, as on bare metal."""
    found = []
    for n in (2, 3, 4):
        a, b = (pick(tables, host, PCC, n, "jain") for host in (MININET, BARE))
        less = mean_over_runs(b - a)
        found.append(Evidence.of(less, f"{n} flows: index, bare metal less Mininet", bound, key=f"less_{n}"))
    return found


@at_length
def c10_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Jain's index, 0.98 to 0.99."""
    return [_index(tables, MININET, n, bound, key=f"index_{n}") for n in (2, 3, 4)]


@at_length
def c11(tables: Tables) -> Sequence[Evidence]:
    """Fairer and steadier than CUBIC, in Mininet."""
    return [*_over_cubic(tables, MININET, "jain", key="index"), *_over_cubic(tables, MININET, "sd_mbps", key="sd")]


@at_length
def c11_significantly(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """At most half CUBIC's unfairness and deviation."""
    found = []
    for n in (None, 2, 3, 4):
        for column, name in (("jain", "1 less index"), ("sd_mbps", "deviation")):
            p, c = (pick(tables, MININET, cc, n, column) for cc in (PCC, CUBIC))
            if column == "jain":
                p, c = 1 - p, 1 - c
            share = quotient(mean_over_runs(p), mean_over_runs(c))
            label = f"{'2 to 4' if n is None else n} flows: {name}, PCC over CUBIC"
            found.append(Evidence.of(share, label, bound, unit="times", weighs=n is None))
    return found


@in_enough_runs("depth.shares")
def c18(tables: Tables) -> Sequence[Evidence]:
    """Jain's index against the buffer: fairness needs a large enough buffer."""
    found = []
    for limit in sorted(tables["depth.shares"]["limit"].unique()):
        p, c = (depth(tables, cc, limit, "jain") for cc in (PCC, CUBIC))
        found.append(
            Evidence.of(
                mean_over_runs(p - c),
                f"{limit} packets: index, PCC less CUBIC",
                FAIRER,
                weighs=limit >= 250,
                key=f"at_{limit}",
            )
        )
    return found


@in_enough_runs("depth.shares")
def c18_clocked(tables: Tables) -> Sequence[Evidence]:
    """Index with senders that wake up at ticks of a kernel clock: PCC against CUBIC, and against itself with exact departures."""
    found = []
    for limit in FEW_LIMITS:
        late = depth(tables, PCC, limit, "jain", hosts=CLOCKED)
        for name, key, other in (("CUBIC", "clock", CUBIC), ("PCC with exact departures", "exact", PCC)):
            found.append(
                Evidence.of(
                    mean_over_runs(late - depth(tables, other, limit, "jain")),
                    f"{limit} packets: index, PCC with a clock of 1 ms less {name}",
                    FAIRER,
                    key=f"{key}_{limit}",
                )
            )
    return found


def depth(tables: Tables, controller: str, limit: int, column: str, *, hosts: str = EXACT) -> Array:
    """Return a column at one limit, one value per seed."""
    t = tables["depth.shares"].filter(
        (pl.col("cc") == controller) & (pl.col("limit") == limit) & (pl.col("hosts") == hosts)
    )
    return t.sort("seed")[column].to_numpy().astype(np.float64)


@at_length
def f5(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Jain's index on bare metal: 0.98 to 0.99."""
    return [_index(tables, BARE, n, bound, key=f"index_{n}") for n in (2, 3, 4)]


@at_length
def f6(tables: Tables) -> Sequence[Evidence]:
    """Fairer than CUBIC on bare metal."""
    return _over_cubic(tables, BARE, "jain", key="index")


@at_length
def f6_steadier(tables: Tables) -> Sequence[Evidence]:
    """Steadier than CUBIC on bare metal."""
    return _over_cubic(tables, BARE, "sd_mbps", key="sd")


def sharing_table(tables: Tables) -> Table:
    """Table of index, deviation and total goodput."""
    rows: list[tuple[TableCell | str, ...]] = []
    for host, controller in RUNS:
        for n in (2, 3, 4):
            jain, sd, total = (
                estimate(pick(tables, host, controller, n, column))
                for column, estimate in (
                    ("jain", arms.index),
                    ("sd_mbps", mean_over_runs),
                    ("total_mbps", mean_over_runs),
                )
            )
            rows.append(
                (
                    TableCell(text=f"{LABEL[controller]}, {host}, {n} flows", kind="head"),
                    f"{jain.value:.3f} ({jain.low:.3f} to {jain.high:.3f})",
                    f"{sd.value:.1f}",
                    f"{total.value:.1f}",
                )
            )
    return Table(
        caption="Windows of a fifth of a stretch. Deviation: of the 1-s goodput of a flow, mean over active flows.",
        header=("run", "Jain's index", "standard deviation (Mb/s)", "total (Mb/s)"),
        rows=tuple(rows),
        dense=True,
    )


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (figure(t), bars(t), sharing_table(t), depth_figure(t))


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {
        "PCC, four flows in Mininet": come_and_go(MININET, PCC, STRETCH_S),
        "CUBIC, four flows on bare metal": come_and_go(BARE, CUBIC, STRETCH_S),
    }


CHAPTER = Chapter(
    experiments=(
        Experiment(name="sharing", title="four flows that come and go", run=run, weight=60, reads=(PIPE, NOISE)),
        Experiment(name="depth", title="four flows against Mininet's limit", run=run_depth, weight=5),
    ),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
