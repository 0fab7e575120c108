"""Names of measures: a metric of the run, or a number for one flow, one group or all flows together.

"goodput_bps" and "flows.rtos.max" are metrics. "flow.1.share", "group.ours.p95_rtt_s" and "run.loss_share" are
columns of the table `performance`, which sweeps of up to 100 flows store: for the flow with this number, the group
with this name or number, and all flows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from ackclock import _engine
from ackclock._results.run import SAME, engine_call
from ackclock.errors import InputError, ScenarioError, one_of, quote
from ackclock.scenario import Scenario

if TYPE_CHECKING:
    import polars as pl

    from ackclock.sweep.campaign import Campaign

__all__ = ["COLUMNS", "SAME", "TABLE", "Measure", "all_same", "bounds", "by_cell", "distinct", "measure"]

TABLE = "performance"


COLUMNS = frozenset(
    [
        "of",
        "number",
        "name",
        "group",
        "flow",
        "flows",
        "goodput_bps",
        "share",
        "bytes_acked",
        "sent_packets",
        "retransmissions",
        "retransmission_share",
        "rtos",
        "dropped_packets",
        "loss_share",
        "mean_rtt_s",
        "p50_rtt_s",
        "p95_rtt_s",
        "p99_rtt_s",
        "mean_delay_s",
        "p50_delay_s",
        "p95_delay_s",
        "p99_delay_s",
        "time_to_share_s",
    ]
)
"""Columns of the table and of frames derived from it; no axis may have one of these names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """Column of `performance` for a flow, a group or the run.

    Parameters
    ----------
    of
        "flow", "group" or "run".
    who
        Number of the flow; name or number of the group.
    column
        Column of the table.
    """

    of: str
    who: str
    column: str

    def select(self, performance: pl.DataFrame) -> pl.DataFrame:
        """Return the rows for this measure; the table has a column `name`.

        Raises
        ------
        InputError
            If there is no such flow or group.
        """
        import polars as pl

        rows = performance.filter(pl.col("of") == self.of)
        if self.of == "run":
            return rows
        if self.of == "group" and (rows["name"] == self.who).any():
            return rows.filter(pl.col("name") == self.who)
        if self.who.isdecimal() and (rows["number"] == int(self.who)).any():
            return rows.filter(pl.col("number") == int(self.who))
        if not rows.height:
            return rows
        known = sorted(set(rows["name"] if self.of == "group" else rows["number"].cast(pl.String)))
        raise InputError(f"metric: found no {self.of} {quote(self.who)}; allowed: {one_of(self.who, known)}")


def measure(metric: str) -> Measure | None:
    """Parse a name; None if it is a metric's name.

    Raises
    ------
    InputError
        If the table has no such column.
    """
    of, dot, rest = metric.partition(".")
    if of == "run" and dot:
        return _checked(Measure(of=of, who="", column=rest))
    who, dot, column = rest.rpartition(".")
    if of in ("flow", "group") and dot:
        return _checked(Measure(of=of, who=who, column=column))
    return None


def bounds(metric: str) -> tuple[float, float]:
    """Bounds of a metric's values: 0 to 1 for fractions and Jain's index, at least 0 for rates, times and counts; only
    variables of controllers may be negative. Tables, figures and their data cut intervals there.

    Examples
    --------
    >>> bounds("group.ours.share"), bounds("flows.retransmission_share.max"), bounds("rtos")
    ((0.0, 1.0), (0.0, 1.0), (0.0, inf))
    >>> bounds("controllers.velocity.min"), bounds("controllers.velocity.count")
    ((-inf, inf), (0.0, inf))
    """
    found = measure(metric)
    column = metric if found is None else found.column
    stem, dot, reduction = column.rpartition(".")
    name = stem if dot else column
    if name.endswith(("share", "jain")) and reduction not in ("count", "sum"):
        return 0.0, 1.0
    signed = stem.partition(".")[0] in SIGNED and not name.endswith(("_bps", "_s", "_packets"))
    return (-inf if signed and reduction not in ("count", "std") else 0.0), inf


SIGNED = ("controllers", "intervals")
"""Tables with columns that may be negative."""


def _checked(found: Measure) -> Measure:
    try:
        engine_call(lambda: _engine.run_each([], [], (f"{TABLE}.{found.column}.mean",), (), 0.0))
    except ScenarioError as error:
        raise InputError(f"metric: found {error.found}; allowed: {error.allowed}") from None
    return found


def by_cell(campaign: Campaign, metric: str, scenarios: Sequence[Scenario]) -> list[pl.DataFrame]:
    """Return columns `seed`, `digest` and the metric, one frame per cell in seed order."""
    from ackclock._results.result import named_groups

    runs = campaign.by_cell("runs")
    found = measure(metric)
    if found is None:
        return [frame.select("seed", "digest", metric) for frame in runs]
    frames = []
    for frame, kept, scenario in zip(runs, campaign.by_cell(TABLE), scenarios, strict=True):
        rows = found.select(named_groups(kept, scenario)).select("seed", found.column)
        joined = frame.select("seed", "digest").join(rows, on="seed", how="left", maintain_order="left")
        frames.append(joined.rename({found.column: metric}))
    return frames


def all_same(rows: pl.DataFrame) -> bool:
    """Return whether there are several seeds and all produced the same run."""
    return rows.height > 1 and rows["digest"].n_unique() == 1


def distinct(rows: pl.DataFrame, *also: str) -> pl.DataFrame:
    """Return the runs, without repetitions in cells where all seeds produced the same run: twenty identical runs
    are one observation.

    Parameters
    ----------
    rows
        Rows with `cell` and `digest`.
    also
        Columns that identify a row within a run.
    """
    import polars as pl

    of = ["cell", *also]
    once = pl.int_range(pl.len()).over(of) == 0
    return rows.filter((pl.col("digest").n_unique().over(of) > 1) | once)
