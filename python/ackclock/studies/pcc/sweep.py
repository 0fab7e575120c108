"""Throughput against the buffer's size, under every model of the host and of the queue."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.stats import Estimate, mean_interval
from ackclock.studies.pcc import testbed
from ackclock.studies.pcc.testbed import (
    CUBIC,
    FEW,
    IDEAL,
    LABEL,
    MODELS,
    PACKET_BYTES,
    PAYLOAD,
    PCC,
    RATE_BPS,
    SHALLOW,
    SIZES,
    TESTBED,
    TWINS,
)
from ackclock.study import Data, Plan, Tables
from ackclock.study.cells import Cell, collect
from ackclock.study.estimates import Array


def run(plan: Plan) -> Data:
    """One flow, alone; 60 s, or 30 s at quick scale.

    Where nothing is left to chance one run stands for all seeds, and where two models are the same to a protocol
    (`testbed.TWINS`) one of them is run.

    Returns
    -------
    Data
        `sweep.flows`: model, cc, buffer (packets), seed, share (goodput over what the link can carry), goodput_mbps,
        sent_mbps (packets on the wire, retransmissions included), departure_cv, largest_burst.
    """
    paper = plan.scale == "paper"
    seeds = plan.count(quick=4, paper=10)
    sizes = sorted((*SHALLOW, *SIZES)) if paper else FEW
    duration_s = 60.0 if paper else 30.0
    cells = [
        Cell(
            scenario=testbed.shallow(model, controller, packets, duration_s),
            keys={"model": model, "cc": controller, "buffer": packets},
            stream=f"shallow {packets}",
            seeds=seeds if controller == PCC or MODELS[model].draws else 1,
            needs={"flows": ("goodput_bps", "sent_packets", "departure_cv", "largest_burst")},
            keep={"flows": partial(shares, payload=PAYLOAD[controller], duration_s=duration_s)},
        )
        for model in MODELS
        for controller in (PCC, CUBIC)
        if (model, controller) not in TWINS
        for packets in sizes
    ]
    data = collect("sweep", cells, plan)
    return replace(data, tables={"sweep.flows": spread(data.tables["sweep.flows"], seeds)})


def shares(batch: Batch, *, payload: int, duration_s: float) -> pl.DataFrame:
    """What is kept of a cell's runs."""
    return batch.flows.select(
        "seed",
        (pl.col("goodput_bps") / (RATE_BPS * payload / PACKET_BYTES)).alias("share"),
        (pl.col("goodput_bps") / 1e6).alias("goodput_mbps"),
        (pl.col("sent_packets") * PACKET_BYTES * 8 / duration_s / 1e6).alias("sent_mbps"),
        pl.col("departure_cv").cast(pl.Float64),
        pl.col("largest_burst").cast(pl.Int64),
    )


def spread(rows: pl.DataFrame, seeds: int) -> pl.DataFrame:
    """A row for each seed where one run stands for all, and the rows of models that are the same to a protocol."""
    few = pl.len().over("model", "cc", "buffer") < seeds
    once = rows.filter(few)
    numbers = pl.DataFrame({"n": range(seeds)}, schema={"n": rows.schema["seed"]})
    many = once.join(numbers, how="cross").with_columns(seed=pl.col("seed") + pl.col("n")).drop("n")
    rows = pl.concat([rows.filter(~few), many])
    twins = [
        rows.filter((pl.col("model") == run) & (pl.col("cc") == controller)).with_columns(pl.lit(model).alias("model"))
        for (model, controller), run in TWINS.items()
    ]
    order = pl.col("model").replace_strict({model: i for i, model in enumerate(MODELS)}, return_dtype=pl.Int64)
    return pl.concat([rows, *twins]).sort(order, pl.col("cc") == CUBIC, "buffer", "seed")


def pick(tables: Tables, model: str, controller: str, packets: int, column: str = "share") -> Array:
    """A column, one value per seed."""
    t = tables["sweep.flows"].filter(
        (pl.col("model") == model) & (pl.col("cc") == controller) & (pl.col("buffer") == packets)
    )
    return t.sort("seed")[column].to_numpy().astype(np.float64)


def sizes(tables: Tables) -> list[int]:
    """Sizes that were run."""
    return sorted(tables["sweep.flows"]["buffer"].unique().to_list())


def models(tables: Tables) -> list[str]:
    """Models that were run, in order."""
    return tables["sweep.flows"]["model"].unique(maintain_order=True).to_list()


def gap(tables: Tables, model: str, controller: str, packets: int, *, base: str = TESTBED) -> Estimate:
    """Points of the link's capacity by which a model falls short of the testbed; positive is worse."""
    lost = pick(tables, base, controller, packets) - pick(tables, model, controller, packets)
    return mean_interval(100 * lost)


def means(tables: Tables) -> pl.DataFrame:
    """Mean, least and greatest share over seeds."""
    share = pl.col("share")
    return (
        tables["sweep.flows"]
        .group_by("model", "cc", "buffer", maintain_order=True)
        .agg(
            share.mean().alias("share"),
            share.min().alias("least"),
            share.max().alias("greatest"),
            pl.col("sent_mbps").mean(),
            pl.col("goodput_mbps").mean(),
            pl.col("departure_cv").mean(),
            pl.col("largest_burst").max(),
        )
    )


_COLOURS = [c for name, c in OKABE_ITO.items() if name not in ("black", "yellow")]
_MARKERS = "osD^vP*X<>hp"


def style(model: str) -> dict[str, Any]:
    """Colour, marker and dash of a model, the same in all figures."""
    if model == IDEAL:
        return {"color": OKABE_ITO["black"], "marker": "o", "ls": "-"}
    i = list(MODELS).index(model)
    dashes = ("-", "--", ":")
    return {
        "color": _COLOURS[i % len(_COLOURS)],
        "marker": _MARKERS[i % len(_MARKERS)],
        "ls": dashes[i // len(_COLOURS) % 3],
    }


def figure(tables: Tables) -> Figure:
    """Share of the link against the buffer, PCC and CUBIC."""
    table = means(tables)

    def draw() -> Any:
        figure, axes = new(8.2, 4.6, ncols=2, sharey=True)
        for ax, controller in zip(axes, (PCC, CUBIC), strict=True):
            for model in models(tables):
                own = table.filter((pl.col("model") == model) & (pl.col("cc") == controller)).sort("buffer")
                x = 1.5 * own["buffer"].to_numpy()
                low, high = (100 * own[c].to_numpy() for c in ("least", "greatest"))
                look = style(model)
                ax.plot(x, 100 * own["share"].to_numpy(), label=model, ms=3.5, lw=1.2, **look)
                ax.fill_between(x, low, high, color=look["color"], alpha=0.08, lw=0)
            ax.set_xscale("log")
            ax.xaxis.set_major_formatter("{x:g}")
            ax.set_xlabel("buffer (kB)")
            ax.set_title(LABEL[controller])
            ax.set_ylim(0, 105)  # packets of several segments carry their headers once
        axes[0].set_ylabel("goodput (% of what the link can carry)")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return figure

    return Figure(
        name="sweep",
        title="Throughput against the buffer: what each kind of noise does",
        caption="Means over seeds; the shade spans least and greatest. 100 Mb/s, 30 ms, one flow; start-up included.",
        draw=draw,
        data={"sweep": table},
    )
