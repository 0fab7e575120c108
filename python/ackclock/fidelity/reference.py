"""Measurements of the kernel (see data/README.md) as quantity -> one value per seed."""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

Values = dict[str, list[float]]
"""Quantity -> one value per seed."""

GOODPUT = "goodput, Mbit/s"
CWND = "mean cwnd, segments"
SRTT = "mean srtt, ms"
RETRANSMISSIONS = "retransmissions"
AGGREGATE = "aggregate goodput, Mbit/s"
FIRST_SHARE = "share of the first flow"
QUARTILES = {0.25: "total time, 1st quartile, ms", 0.5: "total time, median, ms", 0.75: "total time, 3rd quartile, ms"}
SHARE_ANY = "share of fetches with a retransmission"
SHARE_DATA = "share with a retransmission of data"

COUNTS = ("syn_retrans", "synack_retrans", "request_retrans", "data_retrans")


@cache
def read(name: str) -> pl.DataFrame:
    """Return the rows of a file in the data folder."""
    import polars as pl

    with as_file(files("ackclock.fidelity") / "data" / f"{name}.csv") as path:
        return pl.read_csv(path)


def kernel_release() -> str:
    """Return the release of the measured kernel."""
    return str(read("bulk")["kernel"][0])


def bulk(network: str, controller: str, loss_percent: float = 0.0) -> Values:
    """Return the results for one 60 s flow."""
    import polars as pl

    table = read("bulk_loss" if loss_percent else "bulk")
    rows = table.filter(pl.col("net") == network, pl.col("cc") == controller, pl.col("loss_pct") == loss_percent).sort(
        "seed"
    )
    columns = {
        GOODPUT: "goodput_mbps",
        CWND: "cwnd_mean",
        SRTT: "srtt_ms_mean",
        RETRANSMISSIONS: "total_retrans",
    }
    return {quantity: [float(x) for x in rows[column]] for quantity, column in columns.items()}


def sharing() -> Values:
    """Return the results for two 120 s flows."""
    import polars as pl

    sums = (
        read("sharing")
        .group_by("seed")
        .agg(
            pl.col("goodput_mbps").sum().alias("all"),
            pl.col("goodput_mbps").filter(pl.col("flow") == 0).sum().alias("first"),
            pl.col("total_retrans").sum(),
        )
        .sort("seed")
    )
    return {
        AGGREGATE: sums["all"].to_list(),
        FIRST_SHARE: (sums["first"] / sums["all"]).to_list(),
        RETRANSMISSIONS: [float(x) for x in sums["total_retrans"]],
    }


def second_starts_us() -> list[int]:
    """Return the start of the second flow relative to the first, us, one value per seed."""
    import polars as pl

    rows = read("sharing").filter(pl.col("flow") == 1).sort("seed")
    return [round(1e6 * x) for x in rows["start_s"]]


def fetches(size: int) -> Values:
    """Return the results for fetches of `size` bytes."""
    import polars as pl

    return summarise_fetches(read("fetch").filter(pl.col("size") == size))


def summarise_fetches(rows: pl.DataFrame) -> Values:
    """Return quartiles and fractions per seed.

    Parameters
    ----------
    rows
        One row per fetch: `seed`, `total_ms` and the retransmission counts under the data's own names.
    """
    import numpy as np
    import polars as pl

    values: Values = {name: [] for name in (*QUARTILES.values(), SHARE_ANY, SHARE_DATA)}
    for _, group in sorted(rows.group_by("seed"), key=lambda item: item[0]):
        for q, name in QUARTILES.items():
            values[name].append(float(np.quantile(group["total_ms"].to_numpy(), q)))
        values[SHARE_ANY].append(float((group.select(pl.sum_horizontal(COUNTS)).to_series() > 0).mean()))  # type: ignore[arg-type]
        values[SHARE_DATA].append(float((group["data_retrans"] > 0).mean()))  # type: ignore[arg-type]
    return values


def lost_packets(loss_percent: float, seed: int) -> list[int]:
    """Return the positions of the packets dropped by the kernel's netem, counted from 0 over all packets in the
    forward direction.
    """
    import polars as pl

    rows = read("losses").filter(pl.col("loss_pct") == loss_percent, pl.col("seed") == seed)
    return [int(x) for x in rows["packet"]]
