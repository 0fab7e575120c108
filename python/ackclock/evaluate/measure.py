"""Measures of a run: each function computes a number per seed from the tables of a cell's runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from ackclock.evaluate.frame import PAYLOAD
from ackclock.evaluate.situation import Cell, Tables

if TYPE_CHECKING:
    import polars as pl

Of = Callable[[Tables, Cell], dict[int, float]]

SENT = ("send", "rtx", "tlp")
"""Trace events that denote transmissions."""


def each(table: str, number: Callable[[pl.DataFrame, Cell], float | None]) -> Of:
    """Return a measure computed from a table's rows, run by run; NaN for a run without a value."""

    def of(t: Tables, c: Cell) -> dict[int, float]:
        found = {seed: number(rows, c) for seed, rows in t.rows(table).items()}
        return {seed: math.nan if value is None else float(value) for seed, value in found.items()}

    return of


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def column(name: str, group: str = "") -> Of:
    """A column of `performance`, for a group or for all flows."""
    return lambda t, _: t.group(group, name) if group else t.whole(name)


def utilisation(group: str = "") -> Of:
    """Goodput divided by the maximum permitted by the bottleneck rate."""

    def of(t: Tables, c: Cell) -> dict[int, float]:
        most = c.about["rate_bps"] * PAYLOAD
        return {seed: value / most for seed, value in column("goodput_bps", group)(t, c).items()}

    return of


def queue_delay(name: str = "p95_delay_s", group: str = "") -> Of:
    """One-way delay minus that of the idle path, s."""

    def of(t: Tables, c: Cell) -> dict[int, float]:
        return {seed: value - c.base_delay_s for seed, value in column(name, group)(t, c).items()}

    return of


def harm_to_goodput(group: str) -> Of:
    """Goodput lost by the victim relative to its goodput alone, (x - y) / x (Ware et al., HotNets 2019)."""

    def of(t: Tables, _: Cell) -> dict[int, float]:
        alone = _alone(t, group, "goodput_bps")
        return {s: (alone - y) / alone if alone else math.nan for s, y in t.group(group, "goodput_bps").items()}

    return of


def harm_to_delay(group: str) -> Of:
    """Increase of the victim's 95th-percentile one-way delay, relative to its value with the arm, (y - x) / y."""

    def of(t: Tables, _: Cell) -> dict[int, float]:
        alone = _alone(t, group, "p95_delay_s")
        return {s: (y - alone) / y if y else math.nan for s, y in t.group(group, "p95_delay_s").items()}

    return of


def _alone(t: Tables, group: str, column: str) -> float:
    """Return the mean over a few seeds for a victim alone on the path. Both arms are compared with it, so it only
    scales their difference.
    """
    assert t.alone is not None, "the cell runs the victim alone, too"
    mean = _mean([v for v in t.alone.group(group, column).values() if math.isfinite(v)])
    return math.nan if mean is None else mean


def _in_windows(rows: pl.DataFrame, length_s: float, begin_s: float) -> dict[int, list[float]]:
    """Return the goodput of each flow in complete windows."""
    import polars as pl

    late = rows.filter(pl.col("t_s") > begin_s + 1e-9)
    if not late.height:
        return {}
    number = ((late["t_s"] - begin_s - 1e-6) / length_s).floor()
    last = late["t_s"].max()
    assert isinstance(last, float)
    whole = int((last - begin_s + 1e-6) // length_s)
    means = (
        late.with_columns(w=number).filter(pl.col("w") < whole).group_by("flow", "w").agg(pl.col("goodput_bps").mean())
    )
    found: dict[int, list[float]] = {}
    for flow, _, value in means.sort("flow", "w").iter_rows():
        found.setdefault(flow, []).append(value)
    return found


def _shares(flows: Sequence[int], of: int, number: Callable[[list[float], float], float | None]) -> Of:
    """A number computed from the flows' goodput in windows of at least 10 s and 100 RTTs, and from an equal share."""

    def shares(rows: pl.DataFrame, c: Cell) -> float | None:
        fair = c.about["rate_bps"] * PAYLOAD / of
        length, begin = max(10.0, 100 * c.about["rtt_s"]), max(1.0, 20 * c.about["rtt_s"])
        return number([v for f, w in _in_windows(rows, length, begin).items() if f in flows for v in w], fair)

    return each("goodput", shares)


def starved(flows: Sequence[int], *, of: int) -> Of:
    """Fraction of windows of at least 10 s and 100 RTTs in which a flow has less than a tenth of an equal share.

    Parameters
    ----------
    flows
        Numbers of the examined flows.
    of
        Number of flows that share the bottleneck.
    """
    return _shares(flows, of, lambda windows, fair: _mean([v < 0.1 * fair for v in windows]))


def least_share(flows: Sequence[int], *, of: int) -> Of:
    """A flow's smallest fraction of an equal share in any window (see `starved`)."""
    return _shares(flows, of, lambda windows, fair: min((v / fair for v in windows), default=None))


def jain(length_s: float = 10.0, begin_s: float = 10.0) -> Of:
    """Mean of Jain's index over windows."""

    def mean(rows: pl.DataFrame, _: Cell) -> float | None:
        windows = list(zip(*_in_windows(rows, length_s, begin_s).values(), strict=False))
        return _mean([sum(w) ** 2 / (len(w) * sum(x * x for x in w)) for w in windows if any(w)])

    return each("goodput", mean)


def share_of(flow: int, begin_s: float) -> Of:
    """One flow's share of the total goodput after `begin_s`."""
    import polars as pl

    def share(rows: pl.DataFrame, _: Cell) -> float | None:
        late = rows.filter(pl.col("t_s") > begin_s)
        whole = float(late["goodput_bps"].sum())
        return float(late.filter(pl.col("flow") == flow)["goodput_bps"].sum()) / whole if whole else None

    return each("goodput", share)


def settling(at_s: float, *, bps: float, until_s: float, flow: int | None = 0, hold_s: float = 1.0) -> Of:
    """Time from a change until goodput reaches 90 % of this rate and stays there, s; the remaining time if it never
    does.
    """
    import polars as pl

    def took(rows: pl.DataFrame, _: Cell) -> float:
        mine = rows if flow is None else rows.filter(pl.col("flow") == flow)
        sums = mine.group_by("t_s").agg(pl.col("goodput_bps").sum()).sort("t_s")
        sums = sums.filter((pl.col("t_s") > at_s) & (pl.col("t_s") <= until_s + 1e-9))
        return _settled(sums["t_s"].to_list(), sums["goodput_bps"].to_list(), at_s, 0.9 * bps, hold_s)

    return each("goodput", took)


def _settled(times: Sequence[float], values: Sequence[float], at_s: float, level: float, hold_s: float) -> float:
    if len(times) < 2:
        return math.nan
    step = times[1] - times[0]
    wide, need = max(1, round(0.5 / step)), max(1, round(hold_s / step))
    means = [sum(values[max(0, i + 1 - wide) : i + 1]) / min(wide, i + 1) for i in range(len(values))]
    for i in range(len(means)):
        if all(m >= level for m in means[i : i + need]) and i + need <= len(means):
            return round(times[i] - at_s, 9)
    return round(times[-1] - at_s, 9)


def goodput_between(begin_s: float, end_s: float, *, flow: int | None = None) -> Of:
    """Mean goodput of one flow, or of all, in a time interval of the run, bit/s."""
    import polars as pl

    def mean(rows: pl.DataFrame, _: Cell) -> float | None:
        some = rows.filter((pl.col("t_s") > begin_s + 1e-9) & (pl.col("t_s") <= end_s + 1e-9))
        if flow is not None:
            some = some.filter(pl.col("flow") == flow)
        n = some["t_s"].n_unique()
        return float(some["goodput_bps"].sum()) / n if n else None

    return each("goodput", mean)


def completion(quantile: float, *, followed_s: float, least_bytes: float = 0.0, most_bytes: float = math.inf) -> Of:
    """A quantile of the durations of transactions of some sizes, s; the value `followed_s` means at least that.

    Each transaction is observed for the same time. Only those that started at least that long before the end of the run
    count, whether finished or not. A transaction that took longer, or never finished, counts as `followed_s`; otherwise
    the quantile would look too good.
    """
    return _followed(lambda took: took.quantile(quantile, "linear"), followed_s, least_bytes, most_bytes)


def mean_time(*, followed_s: float, least_bytes: float = 0.0, most_bytes: float = math.inf) -> Of:
    """Mean duration of transactions of some sizes, s, in which longer ones count as `followed_s` (restricted mean)."""

    def mean(took: pl.Series) -> float | None:
        return float(took.sum()) / len(took) if len(took) else None

    return _followed(mean, followed_s, least_bytes, most_bytes)


def unfinished(*, followed_s: float, least_bytes: float = 0.0, most_bytes: float = math.inf) -> Of:
    """Fraction of transactions of some sizes that did not finish within `followed_s`."""

    def share(took: pl.Series) -> float | None:
        return int((took >= followed_s).sum()) / len(took) if len(took) else None

    return _followed(share, followed_s, least_bytes, most_bytes)


def _followed(number: Callable[[pl.Series], float | None], followed_s: float, least: float, most: float) -> Of:
    """A number computed from transaction durations, each capped at `followed_s`."""
    import polars as pl

    took = pl.col("total_s").fill_nan(None).fill_null(math.inf).clip(upper_bound=followed_s)

    def of(rows: pl.DataFrame, c: Cell) -> float | None:
        begun = pl.col("arrival_s") <= float(c.about["seconds"]) - followed_s
        return number(
            rows.filter(begun & (pl.col("bytes") > least) & (pl.col("bytes") <= most)).select(took)["total_s"]
        )

    return each("transactions", of)


def unanswered(asked: int) -> Of:
    """Fraction of this many transactions that did not finish by the end of the run, including those never started."""
    return each("transactions", lambda rows, _: 1 - int(rows["done"].sum()) / asked)


def fetched(quantile: float, flow: int = 0) -> Of:
    """A quantile of the durations of a flow's fetches or bursts, s; an unfinished one counts with its elapsed time."""
    import polars as pl

    def took(rows: pl.DataFrame, c: Cell) -> float | None:
        had = pl.col("total_s").fill_nan(None).fill_null(float(c.about["seconds"]) - pl.col("start_s"))
        return rows.filter(pl.col("flow") == flow).select(had)["total_s"].quantile(quantile, "linear")

    return each("fetches", took)


def late(most_s: float, flow: int) -> Of:
    """Fraction of a flow's frames that took longer than this, were skipped or never arrived."""
    import polars as pl

    def share(rows: pl.DataFrame, _: Cell) -> float | None:
        took = rows.filter(pl.col("flow") == flow)["total_s"].fill_nan(None)
        return 1 - int((took <= most_s).sum()) / len(took) if len(took) else None

    return each("fetches", share)


def finished(flow: int = 0) -> Of:
    """Completion time of a transfer, s from its start; until the end of the run if it never completed."""
    import polars as pl

    def took(rows: pl.DataFrame, c: Cell) -> float:
        one = rows.filter(pl.col("flow") == flow)["completion_s"].cast(pl.Float64).fill_null(float("nan"))[0]
        return one if math.isfinite(one) else float(c.about["seconds"])

    return each("flows", took)


def of_flows(name: str) -> Of:
    """Sum over a column of `flows`; NaN if any flow has no value, because its part of the sum is unknown."""

    def total(rows: pl.DataFrame, _: Cell) -> float | None:
        values = rows[name].cast(float).fill_nan(None)
        return None if values.null_count() or not len(values) else float(values.sum())

    return each("flows", total)


def sent_between(begin_s: float, end_s: float, *, per_s: float | None = None) -> Of:
    """Transmissions of flow 0 in a time interval, in total or per this many seconds."""
    import polars as pl

    def sent(rows: pl.DataFrame, _: Cell) -> float | None:
        if not rows.height:
            return None
        times = rows.filter(pl.col("event").is_in(SENT) & pl.col("t_s").is_between(begin_s, end_s))
        return times.height * (1.0 if per_s is None else per_s / (end_s - begin_s))

    return each("acks", sent)


def backoff(begin_s: float, end_s: float) -> Of:
    """Smallest growth factor of the gaps between timeouts, from the second timeout; 2 is exponential backoff."""
    import polars as pl

    def growth(rows: pl.DataFrame, c: Cell) -> float | None:
        if not rows.height:
            return None
        # Packets in flight when the total loss begins, and one tail loss probe, are not part of the backoff.
        quiet = begin_s + max(1.0, 10 * c.about["rtt_s"])
        sent = rows.filter(pl.col("event").is_in(SENT) & pl.col("t_s").is_between(quiet, end_s))["t_s"].to_list()
        gaps = [b - a for a, b in pairwise(sorted(set(sent)))]  # a QUIC timeout sends two packets at the same time
        return min((b / a for a, b in pairwise(gaps) if a > 0), default=None)

    return each("acks", growth)


SEGMENT = 1500 * 8
"""Bits of a packet, the unit of circuit breakers."""


def media_tripped(flow: int, *, fps: int = 30, group: int = 30) -> Of:
    """Fraction of reports at which a media flow's congestion circuit breaker has tripped (RFC 8083, §4.3).

    Reports arrive every second. Over CB_INTERVAL reports, the flow must not send more than ten times TCP's rate at
    its loss rate, according to the simplified equation with the idle path's RTT. The measured RTT would make it trip
    sooner.
    """

    def of(t: Tables, c: Cell) -> dict[int, float]:
        rtt = c.about["rtt_s"]
        reports = math.ceil(3 * min(max(10 * group / fps, 10 * rtt, 3.0), 15.0) / 3.0)
        drops = t.rows("drops")
        found = {}
        for seed, rows in t.rows("goodput").items():
            came = [v / PAYLOAD / SEGMENT for v in _in_windows(rows, 1.0, 0.0).get(flow, [])]
            lost = drops[seed].filter(drops[seed]["flow"] == flow)["t_s"].to_list()
            gone = [0.0] * len(came)
            for at in lost:
                if at < len(gone):
                    gone[int(at)] += 1
            tripped = []
            for i in range(reports, len(came) + 1):
                missing, all_ = sum(gone[i - reports : i]), sum(came[i - reports : i]) + sum(gone[i - reports : i])
                p = missing / all_ if all_ else 0.0
                tripped.append(p > 0 and all_ / reports > 10 / (rtt * math.sqrt(2 * p / 3)))
            found[seed] = sum(tripped) / len(tripped) if tripped else math.nan
        return found

    return of


def tripped() -> Of:
    """Fraction of intervals in which the candidate's flows are behind a tripped circuit breaker (RFC 8084, §3).

    An interval is 5 s or 20 RTTs, whichever is longer. It is bad if more than a tenth of the arrivals are dropped and
    the total offered rate exceeds ten times that of equally many Reno flows at the same loss rate (RFC 8083, §4.3,
    simplified). Three successive bad intervals trip the breaker.
    """

    def of(t: Tables, c: Cell) -> dict[int, float]:
        rtt = c.about["rtt_s"]
        length = max(5.0, 20 * rtt)
        drops = t.rows("drops")
        found = {}
        for seed, rows in t.rows("goodput").items():
            count = rows["flow"].n_unique()
            windows = _in_windows(rows, length, 0.0)
            bad = []
            for i in range(min((len(w) for w in windows.values()), default=0)):
                delivered = sum(w[i] for w in windows.values()) / PAYLOAD * length / SEGMENT
                lost = drops[seed].filter(drops[seed]["t_s"].is_between(i * length, (i + 1) * length)).height
                p = lost / (lost + delivered) if lost else 0.0
                reno = count * SEGMENT / (rtt * math.sqrt(2 * p / 3)) if p else math.inf
                bad.append(p > 0.1 and (lost + delivered) * SEGMENT / length > 10 * reno)
            behind = [all(bad[max(0, i - 2) : i + 1]) and i >= 2 for i in range(len(bad))]
            found[seed] = sum(behind) / len(behind) if behind else math.nan
        return found

    return of
