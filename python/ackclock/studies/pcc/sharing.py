"""Four flows that come and go: Jain's index and standard deviation by number of active flows."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.studies.pcc import testbed
from ackclock.studies.pcc.testbed import CORES, CUBIC, FLOWS, LABEL, PCC
from ackclock.study import Data, Plan, Tables
from ackclock.study.cells import first_seed
from ackclock.study.estimates import Array

WINDOWS = 5
"""Windows in each stretch with the same flows: 100 s at paper scale, where a stretch is 500 s."""


def active(stretch: int) -> list[int]:
    """Flows that are active in a stretch, 0 to 6."""
    return [i for i in range(FLOWS) if i <= stretch < i + 4]


def run(plan: Plan) -> Data:
    """PCC and CUBIC on machines of 8, 2 and 1 cores; stretches of 500 s, or of 25 s at quick scale.

    Returns
    -------
    Data
        `sharing.windows`: cores, cc, seed, flows (active), t_s, jain, sd_mbps (of the 1-s goodput of a flow, mean over
        active flows), total_mbps. `sharing.series`: cores, cc, flow, t_s, mbps of one seed.
    """
    paper = plan.scale == "paper"
    unit = 500 if paper else 25
    seeds = plan.count(quick=5, paper=5)
    cells = [(k, c) for k in CORES for c in (PCC, CUBIC)]
    first = first_seed("sharing")
    rows: list[dict[str, Any]] = []
    shown: list[pl.DataFrame] = []
    digests: list[str] = []
    for i, (cores, controller) in enumerate(cells):
        plan.report(f"{cores}, {LABEL[controller]}", i / len(cells))
        batch = plan.batch(
            testbed.wishbone(cores, controller, unit), range(first, first + seeds), tables=("flows", "goodput")
        )
        digests += batch.digests
        for seed in range(first, first + seeds):
            found = testbed.series(batch.goodput.filter(pl.col("seed") == seed), FLOWS, 7 * unit)
            rows += [{"cores": cores, "cc": controller, "seed": seed, **row} for row in windows(found, unit)]
            if seed == first:
                shown += [
                    pl.DataFrame(
                        {"t_s": np.arange(1.0, 7 * unit + 1), "mbps": found[:, flow]},
                    ).select(
                        pl.lit(cores).alias("cores"),
                        pl.lit(controller).alias("cc"),
                        pl.lit(flow).alias("flow"),
                        "t_s",
                        "mbps",
                    )
                    for flow in range(FLOWS)
                ]
    return Data(
        tables={"sharing.windows": pl.DataFrame(rows), "sharing.series": pl.concat(shown)},
        digests=digests,
        runs=len(digests),
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


def pick(tables: Tables, cores: str, controller: str, flows: int, column: str) -> Array:
    """Mean over the windows with so many active flows, one value per seed."""
    t = tables["sharing.windows"].filter(
        (pl.col("cores") == cores) & (pl.col("cc") == controller) & (pl.col("flows") == flows)
    )
    return t.group_by("seed").agg(pl.col(column).mean()).sort("seed")[column].to_numpy().astype(np.float64)


_COLOURS = [OKABE_ITO[name] for name in ("blue", "orange", "green", "vermilion")]


def figure(tables: Tables) -> Figure:
    """Goodput over time."""
    table = tables["sharing.series"]

    def draw() -> Any:
        figure, axes = new(8.2, 5.2, nrows=len(CORES), ncols=2, sharex=True, sharey=True)
        for row, cores in zip(axes, CORES, strict=True):
            for ax, controller in zip(row, (PCC, CUBIC), strict=True):
                for flow in range(FLOWS):
                    own = table.filter(
                        (pl.col("cores") == cores) & (pl.col("cc") == controller) & (pl.col("flow") == flow)
                    )
                    ax.plot(own["t_s"], own["mbps"], color=_COLOURS[flow], lw=0.8, label=f"flow {flow + 1}")
                ax.set_title(f"{LABEL[controller]}, {cores}", fontsize=9)
        for ax in axes[-1]:
            ax.set_xlabel("time (s)")
        axes[1][0].set_ylabel("goodput (Mb/s)")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return figure

    return Figure(
        name="sharing",
        title="Four flows that come and go",
        caption="Goodput of each second, one seed. 100 Mb/s, 30 ms, 250 packets; all ends on one machine.",
        draw=draw,
        data={"sharing": table},
    )
