"""Four flows that come and go: Jain's index and standard deviation by number of active flows, and against the buffer.

Length: two experiments with eight claims on the same two numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Block, Table, TableCell
from ackclock.scenario import Scenario
from ackclock.stats import mean_interval
from ackclock.studies.pcc import arms, testbed
from ackclock.studies.pcc.sweep import LOOKS, PIPE
from ackclock.studies.pcc.testbed import (
    BARE,
    CUBIC,
    FLOWS,
    LABEL,
    LARGE,
    MEDIUM,
    MININET,
    PCC,
)
from ackclock.study import (
    Chapter,
    Claim,
    Criterion,
    Data,
    Evidence,
    Experiment,
    Plan,
    Reading,
    Tables,
    above,
    at_least,
    at_most,
    between,
    same,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.estimates import Array, quotient

WINDOWS = 5
"""Windows in each stretch with the same flows: 100 s at paper scale, where a stretch is 500 s."""

FOUR = "4 processors"
RUNS = ((BARE, PCC), (BARE, CUBIC), (MININET, PCC), (MININET, CUBIC), (FOUR, PCC), (LARGE, PCC), (MEDIUM, PCC))
"""Environment and protocol. CUBIC's packets come with segmentation offload, many at the price of one: fewer processors are
nothing to it."""

NOISE = Reading(
    name="noise",
    question="How exact are the hosts' departures?",
    options={"exact": "to the nanosecond", "100 us": "up to 100 us late, at random", "1 ms": "up to 1 ms late"},
    why="exact departures fit nothing",
    crossed=False,
)

LIMITS = (25, 50, 100, 250, 500)
"""Sizes of the buffer behind which four flows are compared, packets."""
TOGETHER_S, APART_S = 200, 5


def active(stretch: int) -> list[int]:
    """Flows that are active in a stretch, 0 to 6."""
    return [i for i in range(FLOWS) if i <= stretch < i + 4]


def run(plan: Plan) -> Data:
    """PCC and CUBIC on bare metal and in Mininet, PCC with 4, 2 and 1 processors; stretches of 500 s, or of 50 s at quick scale.

    Returns
    -------
    Data
        `windows`: host (the environment), cc, seed, flows (active), t_s, jain, sd_mbps (of the 1-s goodput of a flow, mean over
        active flows), total_mbps. `series`: host, cc, flow, t_s, mbps of one seed.
    """
    unit = 500 if plan.scale == "paper" else 50
    bare = testbed.bare(PIPE.of(plan))
    jitter = {"exact": "0 s"}.get(NOISE.of(plan), NOISE.of(plan))
    cells = [
        Cell(
            scenario=testbed.wishbone(bare if host == BARE else host, controller, unit, jitter=jitter),
            keys={"host": host, "cc": controller},
            stream="sharing",
            seeds=plan.count(
                quick=3 if host in (BARE, MININET) else 2, paper=5 if host in (BARE, MININET) else 3, readings=2
            ),
            needs={"goodput": ("t_s", "flow", "goodput_bps")},
            keep={"windows": partial(all_windows, unit=unit), "series": partial(first_series, unit=unit)},
        )
        for host, controller in RUNS
    ]
    return collect("sharing", cells, plan)


def run_depth(plan: Plan) -> Data:
    """Four flows that begin 5 s apart in Mininet, behind several limits; 200 s together (50 s at quick scale).

    Returns
    -------
    Data
        `shares`: cc, limit (packets), seed, jain, sd_mbps, total_mbps, over all the time together.
    """
    together = TOGETHER_S if plan.scale == "paper" else TOGETHER_S // 4
    cells = [
        Cell(
            scenario=abreast(controller, limit, together),
            keys={"cc": controller, "limit": limit},
            stream="depth",
            seeds=plan.count(quick=2, paper=5),
            needs={"goodput": ("t_s", "flow", "goodput_bps")},
            keep={"shares": partial(shares_together, together=together)},
        )
        for controller in (PCC, CUBIC)
        for limit in LIMITS
    ]
    return collect("depth", cells, plan)


def abreast(controller: str, limit: int, together: int) -> Scenario:
    """Four flows in Mininet behind a limit, the last from 15 s on; they write to the end."""
    written = testbed.wishbone(MININET, controller, APART_S, limit=limit)
    length = (FLOWS - 1) * APART_S + together
    flows = [{k: v for k, v in flow.items() if k != "stop"} for flow in written.to_dict()["flows"]]
    return Scenario.from_dict({**written.to_dict(), "duration": f"{length} s", "flows": flows})


def shares_together(batch: Batch, *, together: int) -> pl.DataFrame:
    """Numbers of each run, of the time in which all flows are there."""
    begin = (FLOWS - 1) * APART_S
    rows = []
    for seed in batch.seeds:
        own = batch.goodput.filter(pl.col("seed") == seed)
        found = testbed.series(own, FLOWS, begin + together)[begin:]
        rows.append({"seed": seed, **numbers(found)})
    return pl.DataFrame(rows)


def numbers(own: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, float]:
    """Jain's index of the means, standard deviation of a flow's 1-s goodput (mean over flows), and total."""
    return {
        "jain": testbed.jain(own.mean(axis=0)),
        "sd_mbps": float(own.std(axis=0, ddof=1).mean()),
        "total_mbps": float(own.sum(axis=1).mean()),
    }


def all_windows(batch: Batch, *, unit: int) -> pl.DataFrame:
    """Numbers of each window of each run."""
    rows = [
        {"seed": seed, **row}
        for seed in batch.seeds
        for row in windows(testbed.series(batch.goodput.filter(pl.col("seed") == seed), FLOWS, 7 * unit), unit)
    ]
    return pl.DataFrame(rows)


def first_series(batch: Batch, *, unit: int) -> pl.DataFrame:
    """Goodput of each flow and second in the first run."""
    found = testbed.series(batch.goodput.filter(pl.col("seed") == batch.seeds[0]), FLOWS, 7 * unit)
    t = np.arange(1.0, 7 * unit + 1)
    return pl.concat(
        [
            pl.DataFrame({"t_s": t, "mbps": found[:, flow]}).select(pl.lit(flow).alias("flow"), "t_s", "mbps")
            for flow in range(FLOWS)
        ]
    )


def windows(found: np.ndarray[Any, np.dtype[np.float64]], unit: int) -> list[dict[str, Any]]:
    """Numbers of each window of a run, whose rows are seconds and whose columns are flows."""
    rows = []
    length = unit // WINDOWS
    for start in range(0, 7 * unit, length):
        own = found[start : start + length, active(start // unit)]
        rows.append({"flows": own.shape[1], "t_s": float(start), **numbers(own)})
    return rows


def pick(tables: Tables, host: str, controller: str, flows: int, column: str) -> Array:
    """Mean over the windows with so many active flows, one value per seed."""
    t = tables["sharing.windows"].filter(
        (pl.col("host") == host) & (pl.col("cc") == controller) & (pl.col("flows") == flows)
    )
    return t.group_by("seed").agg(pl.col(column).mean()).sort("seed")[column].to_numpy().astype(np.float64)


_COLOURS = [OKABE_ITO[name] for name in ("blue", "orange", "green", "vermilion")]


SHOWN = RUNS[:4]
TITLES = {BARE: "bare metal", MININET: "Mininet"}


def figure(tables: Tables) -> Figure:
    """Goodput over time."""
    table = tables["sharing.series"]

    def draw() -> Any:
        figure, axes = new(8.2, 6.0, nrows=len(SHOWN), sharex=True, sharey=True)
        for ax, (host, controller) in zip(axes, SHOWN, strict=True):
            for flow in range(FLOWS):
                own = table.filter((pl.col("host") == host) & (pl.col("cc") == controller) & (pl.col("flow") == flow))
                ax.plot(own["t_s"], own["mbps"], color=_COLOURS[flow], lw=0.7, label=f"flow {flow + 1}")
            ax.set_title(f"{LABEL[controller]}, {TITLES[host]}", fontsize=9)
        axes[-1].set_xlabel("time (s)")
        axes[len(SHOWN) // 2].set_ylabel("goodput (Mb/s)")
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
        {"host": host, "cc": cc, "flows": n, "column": column, "value": e.value, "low": e.low, "high": e.high}
        for host, cc in SHOWN
        for n in (2, 3, 4)
        for column in ("jain", "sd_mbps")
        for e in [mean_interval(pick(tables, host, cc, n, column))]
    ]
    table = pl.DataFrame(rows)

    def draw() -> Any:
        figure, axes = new(8.2, 3.4, ncols=2)
        for ax, column, label in zip(
            axes, ("jain", "sd_mbps"), ("Jain's index", "standard deviation (Mb/s)"), strict=True
        ):
            for i, (host, cc) in enumerate(SHOWN):
                own = table.filter((pl.col("host") == host) & (pl.col("cc") == cc) & (pl.col("column") == column))
                value = own["value"].to_numpy()
                error = np.abs(own.select("low", "high").to_numpy().T - value)
                ax.bar(
                    own["flows"].to_numpy() + 0.2 * (i - 1.5),
                    value,
                    0.18,
                    yerr=error,
                    color=LOOKS[cc]["color"],
                    alpha=1.0 if host == BARE else 0.45,
                    label=f"{LABEL[cc]}, {TITLES[host]}",
                    error_kw={"lw": 0.8},
                )
            ax.set_xticks((2, 3, 4))
            ax.set_xlabel("active flows")
            ax.set_ylabel(label)
        axes[0].set_ylim(0.4, 1.01)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return figure

    return Figure(
        name="fairness",
        title="Fairness and steadiness by number of flows",
        caption="Means over runs with 95 % intervals, windows of a fifth of a stretch.",
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
            for cc in (PCC, CUBIC):
                own = (
                    table.filter(pl.col("cc") == cc)
                    .group_by("limit", maintain_order=True)
                    .agg(
                        pl.col(column).mean().alias("mean"),
                        pl.col(column).min().alias("least"),
                        pl.col(column).max().alias("most"),
                    )
                )
                ax.plot(own["limit"], own["mean"], label=LABEL[cc], lw=1.2, ms=4, **LOOKS[cc])
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
    index = mean_interval(pick(tables, host, PCC, n, "jain"))
    return Evidence.of(index, f"PCC, {n} flows, {host}: index", bound, key=key, weighs=weighs)


def _over_cubic(tables: Tables, host: str, column: str, *, key: str = "") -> list[Evidence]:
    """PCC against CUBIC, both in an environment: index higher, or deviation lower."""
    sign, name, unit, margin = (
        (1, "index, PCC less CUBIC", "", 0.005) if column == "jain" else (-1, "deviation, CUBIC less PCC", "Mb/s", 0.1)
    )
    found = []
    for n in (2, 3, 4):
        p, c = (pick(tables, host, cc, n, column) for cc in (PCC, CUBIC))
        more = mean_interval(sign * (p - c))
        named = f"{key}_{n}" if key else ""
        found.append(Evidence.of(more, f"{n} flows, {host}: {name}", above(0, margin=margin), unit=unit, key=named))
    return found


def c10(tables: Tables) -> Sequence[Evidence]:
    """In Mininet, as on bare metal."""
    found = []
    for n in (2, 3, 4):
        a, b = (pick(tables, host, PCC, n, "jain") for host in (MININET, BARE))
        less = mean_interval(b - a)
        found.append(Evidence.of(less, f"{n} flows: index, bare metal less Mininet", same(0.02), key=f"less_{n}"))
    return found


def c10_much(tables: Tables) -> Sequence[Evidence]:
    """0.98 to 0.99."""
    return [_index(tables, MININET, n, at_least(0.97), key=f"index_{n}") for n in (2, 3, 4)]


def c11(tables: Tables) -> Sequence[Evidence]:
    """Fairer and steadier than CUBIC, in Mininet."""
    return [*_over_cubic(tables, MININET, "jain", key="index"), *_over_cubic(tables, MININET, "sd_mbps", key="sd")]


def c11_significantly(tables: Tables) -> Sequence[Evidence]:
    """Half of CUBIC's unfairness and deviation."""
    found = []
    for n in (2, 3, 4):
        for column, name in (("jain", "1 less index"), ("sd_mbps", "deviation")):
            p, c = (pick(tables, MININET, cc, n, column) for cc in (PCC, CUBIC))
            if column == "jain":
                p, c = 1 - p, 1 - c
            ratio = quotient(mean_interval(p), mean_interval(c))
            found.append(Evidence.of(ratio, f"{n} flows: {name}, PCC over CUBIC", at_most(0.5), unit="times"))
    return found


def c12(tables: Tables) -> Sequence[Evidence]:
    """Two processors: between."""
    sd, index = (
        [pick(tables, LARGE, PCC, 4, column), _few(pick(tables, MININET, CUBIC, 4, column), tables, LARGE)]
        for column in ("sd_mbps", "jain")
    )
    bare = _few(pick(tables, BARE, PCC, 4, "sd_mbps"), tables, LARGE)
    return [
        Evidence.of(mean_interval(index[0] - index[1]), "4 flows: index, PCC less CUBIC", above(0, margin=0.005), key="fairer"),
        Evidence.of(mean_interval(sd[1] - sd[0]), "4 flows: deviation, CUBIC less PCC", above(0, margin=0.1), unit="Mb/s", key="steadier"),
        Evidence.of(
            mean_interval(sd[0] - bare), "4 flows: deviation of PCC, less that on bare metal", above(0, margin=0.1), unit="Mb/s", key="more"
        ),
    ]  # fmt: skip


def _few(values: Array, tables: Tables, host: str) -> Array:
    """The first runs, as many as there are of another environment: they have the same seeds."""
    return values[: pick(tables, host, PCC, 4, "jain").size]


def c13(tables: Tables) -> Sequence[Evidence]:
    """One processor: fair."""
    return [_index(tables, MEDIUM, 4, at_least(0.9), key="index")]


def c13_total(tables: Tables) -> Sequence[Evidence]:
    """But 30 % of the link."""
    total = mean_interval(pick(tables, MEDIUM, PCC, 4, "total_mbps"))
    return [
        Evidence.of(
            total, "total of four flows, of 100 Mb/s (fitted by the cost)", between(20, 40), unit="%", key="total"
        )
    ]


def c14(tables: Tables) -> Sequence[Evidence]:
    """Fewer processors, less fair; how steady they are stands beside."""
    found = []
    for column, sign, name, unit in (
        ("jain", 1, "index, enough less", ""),
        ("sd_mbps", -1, "deviation, less with enough", "Mb/s"),
    ):
        for k in (FOUR, LARGE, MEDIUM):
            enough, few = _few(pick(tables, MININET, PCC, 4, column), tables, k), pick(tables, k, PCC, 4, column)
            found.append(
                Evidence.of(
                    mean_interval(sign * (enough - few)),
                    f"4 flows, {k}: {name}",
                    above(0, margin=0.01 if sign > 0 else 0.1),
                    unit=unit,
                    weighs=sign > 0,
                    key=f"{column}_{k[0]}",
                )
            )
    return found


def c18(tables: Tables) -> Sequence[Evidence]:
    """Fairness needs a buffer that is big enough."""
    found = []
    for limit in LIMITS:
        p, c = (depth(tables, cc, limit, "jain") for cc in (PCC, CUBIC))
        found.append(
            Evidence.of(
                mean_interval(p - c),
                f"{limit} packets: index, PCC less CUBIC",
                above(0, margin=0.005),
                weighs=limit >= 250,
                key=f"at_{limit}",
            )
        )
    return found


def depth(tables: Tables, controller: str, limit: int, column: str) -> Array:
    """A column behind a limit, one value per seed."""
    t = tables["depth.shares"].filter((pl.col("cc") == controller) & (pl.col("limit") == limit))
    return t.sort("seed")[column].to_numpy().astype(np.float64)


def f5(tables: Tables) -> Sequence[Evidence]:
    """On bare metal, 0.98 to 0.99."""
    return [_index(tables, BARE, n, at_least(0.97), key=f"index_{n}") for n in (2, 3, 4)]


def f6(tables: Tables) -> Sequence[Evidence]:
    """Fairer than CUBIC on bare metal."""
    return _over_cubic(tables, BARE, "jain", key="index")


def f6_steadier(tables: Tables) -> Sequence[Evidence]:
    """Steadier than CUBIC on bare metal."""
    return _over_cubic(tables, BARE, "sd_mbps", key="sd")


PLACE = "blog: four flows"


def sharing_table(tables: Tables) -> Table:
    """Index, deviation, total."""
    rows: list[tuple[TableCell | str, ...]] = []
    for host, controller in RUNS:
        for n in (2, 3, 4):
            jain, sd, total = (
                mean_interval(pick(tables, host, controller, n, column)) for column in ("jain", "sd_mbps", "total_mbps")
            )
            rows.append(
                (
                    TableCell(text=f"{LABEL[controller]}, {host}, {n} flows", kind="head"),
                    f"{jain.value:.3f} ({jain.low:.3f} to {min(jain.high, 1):.3f})",
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


_FITTED = (
    "All senders and receivers share the processors, and a packet costs 100 us at each end: fitted to C13's total."
)

CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="C10",
        place=PLACE,
        statement="On eight processors PCC's fairness is comparable to that of the paper.",
        direction=Criterion(
            measure=c10,
            cell="Mininet, windows of 100 s, 2, 3 and 4 flows",
            reading="Index within 0.02 of that on bare metal. Processors enough: hosts are exact.",
        ),
        magnitude=Criterion(measure=c10_much, printed="0.98 to 0.99", reading="At least 0.97."),
        note="In Mininet the index is {index_2}, {index_3} and {index_4} with 2, 3 and 4 flows. At quick scale stretches and windows are ten times shorter.",
    ),
    Claim(
        id="C11",
        place=PLACE,
        statement="In a virtual machine too, PCC shares more fairly and varies less than CUBIC.",
        direction=Criterion(
            measure=c11,
            cell="Mininet, windows of 100 s, 2, 3 and 4 flows",
            bound="stated",
            reading="Index higher and standard deviation of 1-s goodput lower; a true difference below 0.005 or 0.1 Mb/s fails.",
        ),
        magnitude=Criterion(measure=c11_significantly, reading="Significantly: at most half of CUBIC's unfairness and deviation."),
        note="Index, PCC less CUBIC: {index_2}, {index_3}, {index_4} with 2, 3 and 4 flows; deviation, CUBIC less PCC: {sd_2}, {sd_3}, {sd_4}. The real kernel's CUBIC flows share Mininet's link as the simulator's do (docs/studies/pcc.md, two and four flows).",
    ),
    Claim(
        id="C12",
        place=PLACE,
        statement="On two processors PCC is still fairer and steadier than CUBIC, but more variable than in the paper.",
        direction=Criterion(measure=c12, cell="Mininet on 2 processors, 4 flows", bound="stated", reading=_FITTED),
    ),
    Claim(
        id="C13",
        place="blog: challenges",
        statement="On one processor four flows share fairly, but only 30 % of the link.",
        direction=Criterion(measure=c13, cell="Mininet on 1 processor, 4 flows", reading=f"Index at least 0.9. {_FITTED}"),
        magnitude=Criterion(measure=c13_total, printed="30 %", reading="20 to 40 %; the cost was fitted to it, in stretches of 25 s."),
        note="A spinning sender that gets its turn of 3 ms every 13 ms, and does not make up for lateness, sends one packet a turn at any rate below 4 Mb/s; trials of a few percent tell it nothing, and it needs long to find a way out.",
    ),
    Claim(
        id="C14",
        place="blog: conclusions",
        statement="With fewer than eight processors fairness suffers even behind 250 packets.",
        direction=Criterion(
            measure=c14,
            cell="Mininet on 4, 2 and 1 processors, 4 flows",
            bound="stated",
            reading=f"Index lower; a true difference below 0.01 fails. {_FITTED}",
        ),
        note="What suffers is steadiness: the deviation grows by {sd_mbps_4}, {sd_mbps_2} and {sd_mbps_1} on 4, 2 and 1 processors.",
    ),
    Claim(
        id="C18",
        place="blog: conclusions",
        statement="In virtual machines PCC is fairer than CUBIC as long as the buffers are big enough.",
        direction=Criterion(
            measure=c18,
            cell="Mininet, four flows, limits of 250 packets (the blog's) and 500",
            bound="stated",
            reading="Index higher; a true difference below 0.005 fails. Shallower limits stand beside.",
        ),
        note="PCC less CUBIC: {at_25} behind 25 packets, {at_50} behind 50, {at_100} behind 100, {at_250} behind 250, {at_500} behind 500.",
    ),
    Claim(
        id="F5",
        place="NSDI 2015, as the blog quotes it",
        statement="On bare metal PCC's index over 100-s windows is 0.98 to 0.99.",
        magnitude=Criterion(
            measure=f5, cell="dummynet, exact hosts, 2, 3 and 4 flows", printed="0.98 to 0.99", reading="At least 0.97."
        ),
    ),
    Claim(
        id="F6",
        place="NSDI 2015: figures 12 and 13",
        statement="On bare metal PCC shares more fairly than CUBIC, and varies less.",
        direction=Criterion(measure=f6, cell="windows of 100 s, 2, 3 and 4 flows", bound="stated", reading="Index higher; a true difference below 0.005 fails."),
        magnitude=Criterion(measure=f6_steadier, bound="stated", reading="Standard deviation of 1-s goodput lower; a true difference below 0.1 Mb/s fails."),
        note="Behind ticks CUBIC is fair as well: departures at ticks spread the losses over the flows. PCC less CUBIC: {index_2}, {index_3}, {index_4} with 2, 3 and 4 flows.",
    ),
)  # fmt: skip


def blocks(t: Tables) -> Sequence[Block]:
    """For the report."""
    return (figure(t), bars(t), sharing_table(t), depth_figure(t))


def scenarios() -> Mapping[str, Scenario]:
    """As written."""
    return {
        "PCC, four flows in Mininet": testbed.wishbone(MININET, PCC, 500),
        "CUBIC, four flows on bare metal": testbed.wishbone(BARE, CUBIC, 500),
    }


CHAPTER = Chapter(
    title="Four flows",
    experiments=(
        Experiment(name="sharing", title="four flows that come and go", run=run, weight=60, reads=(PIPE, NOISE)),
        Experiment(name="depth", title="four flows against Mininet's limit", run=run_depth, weight=5),
    ),
    claims=CLAIMS,
    blocks=blocks,
    scenarios=scenarios,
)
