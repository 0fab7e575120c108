"""Four flows that come and go: Jain's index and standard deviation by number of active flows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Block, Table
from ackclock.report import Cell as TableCell
from ackclock.scenario import Scenario
from ackclock.stats import mean_interval
from ackclock.studies.pcc import testbed
from ackclock.studies.pcc.testbed import (
    CORES,
    CUBIC,
    EXACT,
    FLOWS,
    HOSTS,
    LABEL,
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
    Tables,
    above,
    at_least,
    between,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.estimates import Array

WINDOWS = 5
"""Windows in each stretch with the same flows: 100 s at paper scale, where a stretch is 500 s."""

RUNS = ((EXACT, PCC), *((host, PCC) for host in CORES), (EXACT, CUBIC))
"""Which protocol on which machine. A host's clock and spinning are nothing to CUBIC, and its packets come with segmentation
offload, many at the price of one: exact hosts are the best that it could have."""


def active(stretch: int) -> list[int]:
    """Flows that are active in a stretch, 0 to 6."""
    return [i for i in range(FLOWS) if i <= stretch < i + 4]


def run(plan: Plan) -> Data:
    """PCC on exact hosts and on machines of 8, 2 and 1 cores, CUBIC on exact ones; stretches of 500 s, or of 50 s at quick scale.

    Returns
    -------
    Data
        `windows`: host, cc, seed, flows (active), t_s, jain, sd_mbps (of the 1-s goodput of a flow, mean over
        active flows), total_mbps. `series`: host, cc, flow, t_s, mbps of one seed.
    """
    unit = 500 if plan.scale == "paper" else 50
    cells = [
        Cell(
            scenario=testbed.wishbone(HOSTS[host], controller, unit),
            keys={"host": host, "cc": controller},
            stream="sharing",
            seeds=plan.count(quick=4, paper=5),
            needs={"goodput": ("t_s", "flow", "goodput_bps")},
            keep={"windows": partial(all_windows, unit=unit), "series": partial(first_series, unit=unit)},
        )
        for host, controller in RUNS
    ]
    return collect("sharing", cells, plan)


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
        rows.append(
            {
                "flows": own.shape[1],
                "t_s": float(start),
                "jain": testbed.jain(own.mean(axis=0)),
                "sd_mbps": float(own.std(axis=0, ddof=1).mean()),
                "total_mbps": float(own.sum(axis=1).mean()),
            }
        )
    return rows


def pick(tables: Tables, host: str, controller: str, flows: int, column: str) -> Array:
    """Mean over the windows with so many active flows, one value per seed."""
    t = tables["sharing.windows"].filter(
        (pl.col("host") == host) & (pl.col("cc") == controller) & (pl.col("flows") == flows)
    )
    return t.group_by("seed").agg(pl.col(column).mean()).sort("seed")[column].to_numpy().astype(np.float64)


_COLOURS = [OKABE_ITO[name] for name in ("blue", "orange", "green", "vermilion")]


def figure(tables: Tables) -> Figure:
    """Goodput over time."""
    table = tables["sharing.series"]

    def draw() -> Any:
        figure, axes = new(8.2, 6.4, nrows=len(RUNS), sharex=True, sharey=True)
        for ax, (host, controller) in zip(axes, RUNS, strict=True):
            for flow in range(FLOWS):
                own = table.filter((pl.col("host") == host) & (pl.col("cc") == controller) & (pl.col("flow") == flow))
                ax.plot(own["t_s"], own["mbps"], color=_COLOURS[flow], lw=0.7, label=f"flow {flow + 1}")
            ax.set_title(f"{LABEL[controller]}, {host}", fontsize=9)
        axes[-1].set_xlabel("time (s)")
        axes[len(RUNS) // 2].set_ylabel("goodput (Mb/s)")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return figure

    return Figure(
        name="sharing",
        title="Four flows that come and go",
        caption=(
            "Goodput of each second, one seed. 100 Mb/s, 30 ms, 250 packets. Exact: hosts without flaws; 8, 2, 1 cores: all ends on one "
            "machine with the testbed's clock, on 2 and 1 cores packets cost 100 us at each end."
        ),
        draw=draw,
        data={"sharing": table},
    )


def c10(tables: Tables) -> Sequence[Evidence]:
    """Jain's index with cores enough."""
    hosts = (("8 cores", True), (EXACT, False))
    return [_jain(tables, host, n, weighs=weighs) for host, weighs in hosts for n in (2, 3, 4)]


def _jain(tables: Tables, host: str, n: int, bound: float = 0.97, *, weighs: bool = True) -> Evidence:
    index = mean_interval(pick(tables, host, PCC, n, "jain"))
    return Evidence.of(index, f"PCC, {n} flows, {host}: index", at_least(bound), weighs=weighs)


def c11(tables: Tables) -> Sequence[Evidence]:
    """Fairer and steadier than CUBIC."""
    found = []
    for n in (2, 3, 4):
        for column, sign, name in (("jain", 1, "index, PCC less CUBIC"), ("sd_mbps", -1, "deviation, CUBIC less PCC")):
            p, c = (pick(tables, host, cc, n, column) for host, cc in (("8 cores", PCC), (EXACT, CUBIC)))
            unit = "Mb/s" if column == "sd_mbps" else ""
            found.append(Evidence.of(mean_interval(sign * (p - c)), f"{n} flows: {name}", above(0), unit=unit))
    return found


def c12(tables: Tables) -> Sequence[Evidence]:
    """Two cores: between."""
    two, eight = (pick(tables, k, PCC, 4, "sd_mbps") for k in ("2 cores", "8 cores"))
    cubic = pick(tables, EXACT, CUBIC, 4, "sd_mbps")
    return [
        Evidence.of(mean_interval(two - eight), "4 flows: deviation, 2 less 8 cores", above(0), unit="Mb/s"),
        Evidence.of(mean_interval(cubic - two), "4 flows: deviation, CUBIC less PCC on 2 cores", above(0), unit="Mb/s"),
    ]


def c13(tables: Tables) -> Sequence[Evidence]:
    """One core: fair but slow."""
    total = mean_interval(pick(tables, "1 core", PCC, 4, "total_mbps"))
    return [
        _jain(tables, "1 core", 4, 0.9),
        Evidence.of(
            total, "total of four flows, of 100 Mb/s (fitted by the cost)", between(20, 40), unit="%", weighs=False
        ),
    ]


def c14(tables: Tables) -> Sequence[Evidence]:
    """Fewer cores, less fair."""
    most = pick(tables, "8 cores", PCC, 4, "jain")
    return [
        Evidence.of(
            mean_interval(most - pick(tables, k, PCC, 4, "jain")), f"4 flows: index, 8 cores less {k}", above(0)
        )
        for k in ("2 cores", "1 core")
    ]


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


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="C10",
        place=PLACE,
        statement="On eight processors PCC's index over 100-s windows is that of the paper, 0.98 to 0.99.",
        direction=Criterion(
            measure=c10,
            reading="At least 0.97 with 2, 3 and 4 flows on a machine with the testbed's clock. At quick scale stretches and windows are ten times shorter. With exact departures it is not so; see the section on two flows.",
        ),
    ),
    Claim(
        id="C11",
        place=PLACE,
        statement="PCC shares more fairly and varies less than CUBIC.",
        direction=Criterion(
            measure=c11,
            reading="Index higher and standard deviation of 1-s goodput lower, with 2, 3 and 4 flows.",
        ),
        note="In stretches of 50 s two flows of CUBIC have not yet begun to oscillate, and those of PCC vary more: each probes.",
    ),
    Claim(
        id="C12",
        place=PLACE,
        statement="On two processors PCC still varies less than CUBIC, but more than it should.",
        direction=Criterion(
            measure=c12,
            reading="Standard deviation of four flows: 8 cores below 2 cores below CUBIC.",
        ),
        note="On two cores PCC varies less than on eight: the processors carry 89 Mb/s, the link is never full, and nothing is lost.",
    ),
    Claim(
        id="C13",
        place=PLACE,
        statement="On one processor four flows share fairly, but only 30 % of the link.",
        direction=Criterion(
            measure=c13,
            reading="Index at least 0.9. The total is what the cost of a packet was fitted to, in stretches of 25 s; in those of 500 s it is 43 %.",
        ),
        note="A spinning sender that gets its turn of 3 ms every 13 ms, and does not make up for lateness, sends one packet a turn at any rate below 4 Mb/s: a late flow set 2.2 Mb/s and sent 0.76, no packet was lost, and trials of a few percent told it nothing. In stretches of 500 s most find a way out: the index is 0.95.",
    ),
    Claim(
        id="C14",
        place=PLACE,
        statement="With fewer than eight cores fairness suffers even behind 250 packets.",
        direction=Criterion(
            measure=c14,
            reading="Index of four flows lower than with 8 cores.",
        ),
        note="With two cores it does not. With one it does in stretches of 50 s; in those of 500 s the index is 0.95 with an interval from 0.89 on.",
    ),
)


def blocks(t: Tables) -> Sequence[Block]:
    """For the report."""
    return (figure(t), sharing_table(t))


def scenarios() -> Mapping[str, Scenario]:
    """As written."""
    return {
        "PCC, four flows, 2 cores": testbed.wishbone(testbed.HOSTS["2 cores"], PCC, 500),
        "CUBIC, four flows": testbed.wishbone({}, CUBIC, 500),
    }


CHAPTER = Chapter(
    title="Four flows",
    experiments=(Experiment(name="sharing", title="four flows that come and go; 8, 2, 1 cores", run=run, weight=20),),
    claims=CLAIMS,
    blocks=blocks,
    scenarios=scenarios,
)
