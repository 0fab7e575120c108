"""Compares two scenarios under the same seeds: which one has the larger value and by how much, or that no difference
is shown.
"""

from __future__ import annotations

import dataclasses
import math
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock._results.summary import gave_up
from ackclock.errors import InputError, UnavailableError, one_of, quote
from ackclock.judge.intervals import Comparison, Estimate, compare_pairs
from ackclock.scenario import Scenario
from ackclock.sweep.campaign import Campaign, Status
from ackclock.sweep.executors import Executor
from ackclock.sweep.measures import SAME, all_same, bounds, by_cell, measure
from ackclock.sweep.precision import Precision, extended
from ackclock.sweep.store import Store
from ackclock.sweep.sweep import Cell, Sweep, standard_metrics

if TYPE_CHECKING:
    import polars as pl
    from rich.console import RenderableType

NAME = "compare"
"""Name of the sweep in the store."""

SHOWN = (
    "goodput_bps", "jain", "retransmission_share", "rtos", "mean_rtt_s", "p95_rtt_s", "queue_mean_packets", "dropped_queue",
)  # fmt: skip
OF_A_GROUP = ("goodput_bps", "share", "p95_rtt_s")
"""Each group's metrics, if there are several groups."""
MOST_GROUPS = 4
FAILED = ("flows", ("failed", "failure"))
"""Table and columns with failed connections and their reasons."""
FETCHES = ("fetches_done", "fetch_mean_s", "fetch_p50_s", "fetch_p95_s", "fetch_p99_s")

LARGER_IS_BETTER = ("goodput_bps", "jain", "fetches_done")
SMALLER_IS_BETTER = (
    "retransmission_share", "retransmissions", "rtos", "mean_rtt_s", "queue_mean_packets", "dropped_queue", "loss_share", "completion_s", "time_to_share_s",
)  # fmt: skip


def better(metric: str) -> int:
    """Return whether a larger value of a metric is good (1), bad (-1) or neither (0), as for one flow's share of the
    bottleneck, which is another flow's loss.
    """
    column = metric.rpartition(".")[2]
    if column in LARGER_IS_BETTER:
        return 1
    times = column.endswith("_s") and column.startswith(("fetch_", "p50_", "p95_", "p99_", "mean_"))
    return -1 if times or column in SMALLER_IS_BETTER else 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Compared:
    """Two arms, compared metric by metric.

    Parameters
    ----------
    names
        Names of the arms.
    seeds
        Pairs of runs.
    metrics
        Metric -> comparison.
    same
        Whether all seeds gave the same run in each arm, which leaves one pair and no interval.
    failed
        Runs of each arm with failed connections, by reason.
    """

    names: tuple[str, str]
    seeds: int
    metrics: Mapping[str, Comparison]
    same: bool = False
    failed: tuple[Mapping[str, int], Mapping[str, int]] = ({}, {})

    def outcome(self, metric: str) -> str:
        """Outcome with the arms' names."""
        first, second = self.names
        found = self.metrics[metric]
        if self.same and found.difference.n and found.without[0] == found.without[1]:
            difference = self.metrics[metric].difference.value
            return f"{first if difference > 0 else second} is larger" if difference else "equal"
        said = self.metrics[metric].outcome
        return said.replace("first", first).replace("second", second)

    def relative(self, metric: str) -> float | None:
        """Difference relative to the second arm; None if that is zero or unknown."""
        found = self.metrics[metric]
        base, difference = found.second.value, found.difference.value
        return difference / abs(base) if base and math.isfinite(base) and math.isfinite(difference) else None

    def told(self, metric: str) -> str:
        """Sentence with the outcome, the size of the difference, and whether it is good."""
        outcome = self.outcome(metric)
        if not outcome.endswith("is larger"):
            return outcome
        part, sign = self.relative(metric), better(metric)
        much = "" if part is None else f" by {100 * abs(part):.3g} %"
        if part is not None and part < 0:  # change relative to the first arm, as in the columns
            outcome, sign = f"{self.names[0]} is smaller", -sign
        return f"{outcome}{much}{', better' if sign > 0 else ', worse' if sign < 0 else ''}"

    def to_json(self) -> dict[str, Any]:
        """Return plain values, as `--json` prints them; null for values that are not finite."""

        def plain(e: Estimate) -> dict[str, Any]:
            told = {"value": e.value, "low": e.low, "high": e.high, "level": e.level, "n": e.n}
            return {k: v if math.isfinite(v) else None for k, v in told.items()}

        return {
            "arms": list(self.names),
            "seeds": self.seeds,
            "all_seeds_gave_one_run": self.same,
            "failed_runs": {"first": dict(self.failed[0]), "second": dict(self.failed[1])},
            "metrics": {
                name: {
                    "first": plain(c.first),
                    "second": plain(c.second),
                    "difference": plain(c.difference),
                    "without_number": {"first": c.without[0], "second": c.without[1]},
                    "relative": self.relative(name),
                    "larger_is": {1: "better", -1: "worse", 0: None}[better(name)],
                    "outcome": self.outcome(name),
                }
                for name, c in self.metrics.items()
            },
        }

    def table(self) -> RenderableType:
        """Return a table for the terminal."""
        from rich.table import Table

        first, second = self.names
        table = Table(title=f"{first} and {second}, {self.seeds} seeds", title_justify="left", caption_justify="left")
        table.add_column("metric", overflow="fold")  # names that are cut are alike
        for head in (first, second, "difference", "95 % interval"):
            table.add_column(head, justify="right", overflow="fold")
        table.add_column("outcome", overflow="fold")
        for name, c in self.metrics.items():
            d = c.difference
            bounds = f"{number(d.low)} to {number(d.high)}" if math.isfinite(d.low) else "–"
            lopsided = c.without[0] != c.without[1]
            outcome = self.told(name) if d.n or lopsided else "no runs with a value"
            if c.without[0] and not lopsided and d.n:
                outcome += f" (no number in {c.without[0]} of {c.pairs} runs of either)"
            table.add_row(name, number(c.first.value), number(c.second.value), number(d.value), bounds, outcome)
        table.caption = (
            f"differences: {first} minus {second}, seed by seed; per cent of {second}; an interval for each metric alone. "
            "No difference shown: there may still be one within the interval."
        )
        if self.same:
            table.caption = f"All {self.seeds} seeds gave one and the same run of each: {SAME}."
        for said in self.failures():
            table.caption = f"{said}. {table.caption}"
        return table

    def failures(self) -> list[str]:
        """Return one sentence, without a full stop, for each arm and cause of failure: the numbers of such runs
        describe transfers that ended early.
        """
        return [
            f"{name}: in {runs:,} of {self.seeds:,} runs {what}"
            for name, found in zip(self.names, self.failed, strict=True)
            for what, runs in found.items()
        ]


def number(value: float) -> str:
    """Format a number with four significant digits and a thousands separator."""
    if not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace("-", "−")
    return f"{value:.4g}".replace("-", "−")


def compare(
    first: Scenario,
    second: Scenario,
    executor: Executor,
    *,
    names: tuple[str, str] = ("first", "second"),
    seeds: int = 20,
    metrics: Sequence[str] = (),
    precision: Precision | None = None,
    folder: str | Path | None = None,
    paths: Sequence[Callable[[Scenario], Scenario]] = (),
    progress: Callable[[Status], None] | None = None,
    stop: threading.Event | None = None,
) -> Compared:
    """Run two scenarios under common random numbers.

    Parameters
    ----------
    first, second
        Scenarios of the arms.
    executor
        Executor of the runs.
    names
        Names of the arms, which must differ.
    seeds
        Seeds of each arm.
    metrics
        Metrics to compare; None for the usual metrics of such scenarios.
    precision
        Add seeds until the interval of this metric's difference is as narrow as this fraction of the second arm's mean.
    folder
        Store for the runs; None to discard them.
    paths
        Functions that put a scenario on a path, one for each seed, e.g. `DrawnPath.on`: both arms of a pair have the
        same path. Empty: all pairs have the path of their scenario.
    progress, stop
        See `ackclock.sweep.run`.

    Raises
    ------
    InputError
        If a metric is unknown or a run is refused.
    """
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="ackclock-") as place:
            return compare(
                first, second, executor, names=names, seeds=seeds, metrics=metrics, precision=precision,
                folder=Path(place) / "store", paths=paths, progress=progress, stop=stop,
            )  # fmt: skip
    wanted = tuple(dict.fromkeys(metrics)) or _usual(first, second)
    asked = (*wanted, *((precision.metric,) if precision else ()))
    recipe = Sweep(name=NAME, scenario=first, metrics=tuple(m for m in asked if measure(m) is None)).recipe
    recipe = dataclasses.replace(recipe, tables=(*recipe.tables, FAILED))
    first, second = first.measured(), second.measured()
    if paths:
        arms = [
            Cell(scenario=on(s), keys={"arm": n, "path": seed}, seeds=range(seed, seed + 1))
            for s, n in ((first, names[0]), (second, names[1]))
            for seed, on in enumerate(paths, 1)
        ]
    else:
        arms = [
            Cell(scenario=s, keys={"arm": n}, seeds=range(1, seeds + 1))
            for s, n in ((first, names[0]), (second, names[1]))
        ]
    with Store(folder, write=True) as store:
        while True:
            campaign = Campaign(store, arms, recipe, name=NAME)
            status = campaign.run(executor, progress=progress, stop=stop)
            if status.failed:
                raise InputError(f"{status.failed} runs failed: {store.failures(NAME, 1)[0][2]}")
            if not status.finished:
                raise UnavailableError(f"stopped after {status.done} of {status.total} runs")
            found, same = _compared(campaign, asked, [arm.scenario for arm in arms])
            failed = _failed(campaign)
            count = len(paths) or len(arms[0].seeds)
            more = count if precision is None or same else _more(found[precision.metric], precision, count)
            if more <= count:
                break
            arms = [dataclasses.replace(arm, seeds=extended(arm.seeds, more)) for arm in arms]
    return Compared(names=names, seeds=count, metrics={name: found[name] for name in wanted}, same=same, failed=failed)


def _compared(
    campaign: Campaign, metrics: Sequence[str], scenarios: Sequence[Scenario]
) -> tuple[dict[str, Comparison], bool]:
    """Compare each metric; also return whether there is only one pair because all seeds produced the same run."""
    import polars as pl

    found: dict[str, Comparison] = {}
    same = all(all_same(rows) for rows in _by_arm(campaign.by_cell("runs")))
    for metric in metrics:
        a, b = (frame[metric].cast(pl.Float64) for frame in _by_arm(by_cell(campaign, metric, scenarios)))
        paired = compare_pairs(*((x[:1] if same else x).to_numpy() for x in (a, b)))
        found[metric] = paired if paired.difference.n < 2 else paired.within(*bounds(metric))
    return found, same


def _by_arm(frames: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """Join the cells of each arm, of which there are several if each pair has a path of its own."""
    import polars as pl

    half = len(frames) // 2
    return [pl.concat(part, how="vertical_relaxed") for part in (frames[:half], frames[half:])]


def _failed(campaign: Campaign) -> tuple[dict[str, int], dict[str, int]]:
    """Return each arm's failed runs by the reason why the connection failed."""
    import polars as pl

    arms = []
    for rows in _by_arm(campaign.by_cell(FAILED[0])):
        failed = rows.filter(pl.col("failed")).select("seed", "failure").unique().sort("failure")
        counted: dict[str, int] = {}
        for row in failed.to_dicts():
            said = gave_up({"failed": True, **row})
            counted[said] = counted.get(said, 0) + 1
        arms.append(counted)
    return arms[0], arms[1]


def _more(comparison: Comparison, precision: Precision, seeds: int) -> int:
    pairs = comparison.difference.n
    if not pairs:
        return seeds
    wanted = precision.more(comparison.difference, scale=comparison.second.value)
    return min(math.ceil(wanted * seeds / pairs), precision.most_seeds) if wanted > pairs else seeds


def _usual(*scenarios: Scenario) -> tuple[str, ...]:
    fetching = any(g.workload.kind in ("fetch", "population", "transactions") for s in scenarios for g in s.flows)
    groups = [[group.label for group in s.flows] for s in scenarios]
    own: tuple[str, ...] = ()
    if 1 < len(groups[0]) == len(groups[1]) <= MOST_GROUPS:
        alike = groups[0] == groups[1] and len(set(groups[0])) == len(groups[0])
        own = tuple(f"group.{name if alike else i}.{c}" for i, name in enumerate(groups[0]) for c in OF_A_GROUP)
    return (*SHOWN, *(FETCHES if fetching else ()), *own)


def check_metrics(metrics: Sequence[str]) -> None:
    """Refuse names without a dot that are not metrics, before reading any file."""
    known = standard_metrics()
    for name in metrics:
        if measure(name) is None and "." not in name and name not in known:
            raise InputError(
                f"--metric: found {quote(name)}; allowed: {one_of(name, known)}, table.column.reduction, or group.NAME.COLUMN"
            )
