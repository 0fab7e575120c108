"""One BBR flow beside CUBIC flows, as in Ware and others (IMC 2019)."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ackclock import Scenario
from ackclock.judge.trend import settling
from ackclock.plot import Figure, new
from ackclock.stats import Estimate, mean_interval, paired_difference
from ackclock.study import Data, Experiment, Plan, Quantity, Tables
from ackclock.study.cells import Cell, collect

OTHERS, QUEUES = (1, 4, 16), (0.5, 8, 32)
DURATION_S, STEP_S = 480, 5
LAST_S = 120  # percent of the link: smaller changes do not matter
SETTLED = 1.0  # percent of the link: too small a change to matter


def scenario(others: int, queue_bdp: float) -> Scenario:
    start = {"kind": "uniform", "low": "0 s", "high": "1 s"}
    flow = {"start": start, "workload": {"kind": "bulk"}}
    return Scenario.from_dict(
        {
            "duration": f"{DURATION_S} s",
            "network": {
                "bottleneck": {
                    "rate": "50 Mbit/s",
                    "delay": "20 ms",
                    "queue": {"kind": "drop-tail", "limit": f"{queue_bdp} BDP"},
                }
            },
            "flows": [
                {"name": "bbr", "congestion_control": "bbr", **flow},
                {"name": "cubic", "congestion_control": "cubic", "count": others, **flow},
            ],
            "record": {"goodput_interval": f"{STEP_S} s"},
        }
    )


def run(plan: Plan) -> Data:
    cells = [
        Cell(
            scenario=scenario(others, queue),
            keys={"others": others, "queue": float(queue)},
            stream=f"{queue}",
            seeds=plan.count(quick=6, paper=20),
            needs={"goodput": ("flow", "t_s", "goodput_bps")},
            keep={"shares": lambda batch: shares(batch.goodput)},
        )
        for queue in QUEUES
        for others in OTHERS
    ]
    return collect("beside", cells, plan)


EXPERIMENTS = (Experiment(name="beside", title="one BBR flow beside CUBIC flows", run=run),)


def shares(goodput: pl.DataFrame) -> pl.DataFrame:
    """Return BBR's share of the total goodput in each interval, percent."""
    own = pl.col("goodput_bps").filter(pl.col("flow") == 0).sum()
    return goodput.group_by("seed", "t_s").agg(share=100 * own / pl.col("goodput_bps").sum()).sort("seed", "t_s")


def series(tables: Tables, others: int, queue: float, begin: float, end: float) -> NDArray[np.float64]:
    """Return BBR's share by seed (rows) and time (columns)."""
    rows = tables["beside.shares"].filter(others=others, queue=float(queue))
    rows = rows.filter((pl.col("t_s") > begin) & (pl.col("t_s") <= end)).sort("seed", "t_s")
    return rows["share"].to_numpy().reshape(rows["seed"].n_unique(), -1)


def last(tables: Tables, others: int, queue: float) -> NDArray[np.float64]:
    return series(tables, others, queue, DURATION_S - LAST_S, DURATION_S)


def less(tables: Tables, queue: float, more: int, fewer: int) -> Estimate:
    """Return the share beside more flows minus the share beside fewer, by seed."""
    return paired_difference(last(tables, more, queue).mean(axis=1), last(tables, fewer, queue).mean(axis=1))


def share_beside_16_minus_beside_1(tables: Tables) -> list[Quantity]:
    return [
        Quantity(
            label=f"queue of {queue} BDP",
            estimate=less(tables, queue, 16, 1),
            unit="points",
            key=key,
            trend=settling(last(tables, 16, queue), SETTLED),
        )
        for queue, key in ((8, "eight"), (32, "thirtytwo"))
    ]


def share_where_no_cap_binds(tables: Tables) -> Quantity:
    return Quantity(label="queue of half a BDP", estimate=less(tables, 0.5, 1, 16), unit="points")


def more_where_no_cap_binds(tables: Tables) -> Quantity:
    difference = paired_difference(last(tables, 16, 0.5).mean(axis=1), last(tables, 16, 8).mean(axis=1))
    return Quantity(label="half a BDP less 8 BDP, beside 16 flows", estimate=difference, unit="points")


def share_beside_16(tables: Tables) -> list[Quantity]:
    found = []
    for queue in (8, 32):
        window = last(tables, 16, queue)
        found.append(
            Quantity(
                label=f"queue of {queue} BDP",
                estimate=mean_interval(window.mean(axis=1)),
                unit="%",
                key=f"share{queue}",
                trend=settling(window, SETTLED),
            )
        )
    return found


def share_of_two_minutes_minus_final(tables: Tables) -> Quantity:
    early = series(tables, 16, 32, 60, 120)
    difference = paired_difference(early.mean(axis=1), last(tables, 16, 32).mean(axis=1))
    return Quantity(
        label="second minute less the end", estimate=difference, unit="points", trend=settling(early, SETTLED)
    )


MEASURES = {
    f.__name__: f
    for f in (
        share_beside_16_minus_beside_1,
        share_where_no_cap_binds,
        more_where_no_cap_binds,
        share_beside_16,
        share_of_two_minutes_minus_final,
    )
}


def scenarios() -> dict[str, Scenario]:
    return {"16 CUBIC flows, 32 BDP": scenario(16, 32)}


def blocks(tables: Tables) -> list[Figure]:
    def draw():
        made, axes = new(7.2, 3.0, ncols=len(QUEUES), sharey=True)
        for ax, queue in zip(axes, QUEUES, strict=True):
            for others in OTHERS:
                share = series(tables, others, queue, 0, DURATION_S).mean(axis=0)
                ax.plot(STEP_S * np.arange(1, share.size + 1), share, label=f"{others}")
            ax.axvspan(DURATION_S - LAST_S, DURATION_S, color="#8a8a8a", alpha=0.15, lw=0)
            ax.set(title=f"queue of {queue} BDP", xlabel="time, s", ylim=(0, 100))
        axes[0].set_ylabel("BBR's share, %")
        axes[-1].legend(title="CUBIC flows")
        return made

    return [
        Figure(
            name="share",
            title="BBR's share over time",
            caption="Mean over seeds. Behind 32 BDP it takes five minutes to settle; grey: the window in which claims are measured.",
            draw=draw,
            data={"share": tables["beside.shares"]},
        )
    ]
