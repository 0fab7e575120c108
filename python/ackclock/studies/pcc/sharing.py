"""Four flows that come and go: Jain's index and standard deviation by number of active flows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.studies.pcc import testbed
from ackclock.studies.pcc.testbed import CORES, CUBIC, EXACT, FLOWS, HOSTS, LABEL, PCC
from ackclock.study import Data, Plan, Tables
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
        `sharing.windows`: host, cc, seed, flows (active), t_s, jain, sd_mbps (of the 1-s goodput of a flow, mean over
        active flows), total_mbps. `sharing.series`: host, cc, flow, t_s, mbps of one seed.
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
