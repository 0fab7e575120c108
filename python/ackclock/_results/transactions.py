"""Numbers computed from request/response traffic: completion times, loss at a queue, offered load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import polars as pl

    from ackclock.scenario import Scenario

__all__ = ["busy_share", "completion", "loss_rate", "offered_load", "pages", "queued_share"]

SHARES = (0.5, 0.95, 0.99, 0.999)
"""Probabilities of the quantiles: median and tails."""


def completion(
    transactions: pl.DataFrame,
    *,
    by: Sequence[str] = ("initial_window",),
    shares: Sequence[float] = SHARES,
    start_s: float = 0.0,
    stop_s: float = float("inf"),
) -> pl.DataFrame:
    """Exact completion times, and the number of transactions that did not complete.

    A transaction incomplete at the end of the run has no completion time. Means and quantiles exclude such
    transactions, so a network in which many do not complete looks too good. Check `incomplete` and `failed` first.

    Parameters
    ----------
    transactions
        `Run.transactions` or `Batch.transactions`.
    by
        Columns to group by; empty: all together.
    shares
        Quantiles, 0 to 1: the smallest time that this fraction of the transactions does not exceed.
    start_s, stop_s
        Clients that arrive in [start, stop) count.

    Returns
    -------
    polars.DataFrame
        Per group: `started`, `completed`, `failed`, `incomplete`, `mean_s`, one column per share (`p50_s`, `p99.9_s`),
        `max_s`.

    Examples
    --------
    >>> import polars as pl
    >>> rows = {"arrival_s": [0.0] * 4, "total_s": [1.0, 3.0, 2.0, None], "failed": [False] * 4}
    >>> frame = completion(pl.DataFrame(rows), by=(), shares=(0.5,))
    >>> frame.to_dicts()
    [{'started': 4, 'completed': 3, 'failed': 0, 'incomplete': 1, 'mean_s': 2.0, 'p50_s': 2.0, 'max_s': 3.0}]
    """
    import polars as pl

    inside = transactions.filter((pl.col("arrival_s") >= start_s) & (pl.col("arrival_s") < stop_s))
    total = pl.col("total_s")
    done = total.is_not_null().sum().cast(pl.Int64)
    failed = pl.col("failed").sum().cast(pl.Int64)
    numbers = [
        pl.len().cast(pl.Int64).alias("started"),
        done.alias("completed"),
        failed.alias("failed"),
        (pl.len().cast(pl.Int64) - done - failed).alias("incomplete"),
        total.mean().alias("mean_s"),
        *(_quantile(total, share).alias(f"p{share * 100:g}_s") for share in shares),
        total.max().alias("max_s"),
    ]
    return inside.group_by(list(by)).agg(numbers).sort(list(by)) if by else inside.select(numbers)


def _quantile(values: pl.Expr, share: float) -> pl.Expr:
    """Return the ceil(share n)-th smallest of the n non-null values."""
    import polars as pl

    known = values.drop_nulls().sort()
    rank = (known.len() * share - 1e-9).ceil().cast(pl.Int64).clip(1) - 1
    return known.get(rank, null_on_oob=True)


def pages(transactions: pl.DataFrame) -> pl.DataFrame:
    """One row per client: from its arrival to the end of its last response.

    Parameters
    ----------
    transactions
        `Run.transactions` of clients with several connections or requests.

    Returns
    -------
    polars.DataFrame
        Columns `flow`, `batch` (and `seed`, if present), `arrival_s`, `total_s` (null if something is missing),
        `objects`, `completed`.
    """
    import polars as pl

    keys = [key for key in ("seed", "flow", "batch") if key in transactions.columns]
    end = (pl.col("arrival_s") + pl.col("total_s")).max() - pl.col("arrival_s").min()
    whole = pl.col("total_s").is_not_null().all()
    return (
        transactions.group_by(keys)
        .agg(
            pl.col("arrival_s").min(),
            pl.when(whole).then(end).alias("total_s"),
            pl.len().alias("objects"),
            pl.col("total_s").is_not_null().sum().alias("completed"),
        )
        .sort(keys)
    )


def loss_rate(
    links: pl.DataFrame, *, link: str = "bottleneck.forward", counting: Literal["all", "data", "no-syn-fin"] = "all"
) -> float:
    """Packets dropped by a link's queue, divided by the packets that arrived.

    Parameters
    ----------
    links
        `Run.links`.
    link
        Its name.
    counting
        Every packet, packets with payload, or every packet except SYN, SYN-ACK and FIN without payload.

    Returns
    -------
    float
        NaN if no packet arrived.
    """
    row = _row(links, link)
    arrivals, drops = row["arrivals"], row["dropped_queue"]
    if counting == "data":
        arrivals, drops = row["arrivals_data"], row["dropped_queue_data"]
    elif counting == "no-syn-fin":
        arrivals, drops = arrivals - row["arrivals_syn_fin"], drops - row["dropped_queue_syn_fin"]
    return drops / arrivals if arrivals else float("nan")


def queued_share(links: pl.DataFrame, scenario: Scenario, *, link: str = "bottleneck.forward") -> float:
    """Utilisation as seen by a monitor that samples once per second: the fraction of samples at which packets are
    queued. Unlike `busy_share`, it misses a queue that fills and empties within a second.

    Parameters
    ----------
    links
        `Run.links`.
    scenario
        Scenario of the run.
    link
        Name of the link.
    """
    start_s, stop_s = _counted(scenario)
    looks = int(stop_s) - int(start_s)
    return _row(links, link)["seconds_queued"] / looks if looks else float("nan")


def busy_share(links: pl.DataFrame, scenario: Scenario, *, link: str = "bottleneck.forward") -> float:
    """Utilisation as the fraction of time the link spends transmitting.

    Parameters
    ----------
    links
        `Run.links`.
    scenario
        Scenario of the run.
    link
        Name of the link.
    """
    start_s, stop_s = _counted(scenario)
    return _row(links, link)["busy_s"] / (stop_s - start_s)


def offered_load(summary: pl.DataFrame, scenario: Scenario) -> float:
    """Offered load of a run's transactions: their data packets, each counted once, relative to the bottleneck's rate.

    Parameters
    ----------
    summary
        `Run.transaction_summary` of one run.
    scenario
        Scenario of the run, whose bottleneck has a rate.
    """
    start_s, stop_s = _counted(scenario)
    rate = scenario.network.bottleneck_bps(scenario.flows[0].path)
    return float("nan") if rate is None else float(summary["offered_bytes"].sum()) * 8 / rate / (stop_s - start_s)


def _row(links: pl.DataFrame, name: str) -> dict[str, float]:
    import polars as pl

    rows = links.filter(pl.col("name") == name).to_dicts()
    if len(rows) != 1:
        from ackclock.errors import InputError, one_of, quote

        names = links["name"].unique(maintain_order=True).to_list()
        raise InputError(f"link: found {quote(name)} in {len(rows)} rows; allowed: {one_of(name, names)} of one run")
    return rows[0]


def _counted(scenario: Scenario) -> tuple[float, float]:
    """Return the length of the part of the run covered by links and summaries, s."""
    from ackclock.units import DURATION, whole

    return whole(scenario.record.warm_up, DURATION) / 1e9, whole(scenario.duration, DURATION) / 1e9
