"""Noise in the publication's bars with 100 and with 1000 fetches (T8), and possible outcomes of a reader's rerun (T9)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ackclock import Batch
from ackclock.judge.estimates import NOTHING, Z95, Array, mean_over_runs
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Block
from ackclock.scenario import Scenario
from ackclock.stats import Estimate, proportion_interval
from ackclock.study import (
    Bound,
    Chapter,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
    above,
    at_least,
    below,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.table import declared
from ackclock_studies.prr import fetches, kernels, path
from ackclock_studies.prr.path import HIGH, LOW, PAGE_LABELS, PAGES, where
from ackclock_studies.prr.split import group_b_mean, two_sigma

_NO_BOUND = Bound()

HOSTS: dict[str, dict[str, Any]] = {
    "destination cache": {"metrics_cache": {}},
    "segmentation offload": {"tso": True},
    "both": {"metrics_cache": {}, "tso": True},
}
"""Additional settings that the rerun's hosts may have had -> stack settings."""

OWN = "the study's"
"""Hosts as in the rest of the study. Even if one of 130 reruns shows the effect, 5 % is ruled out; with 20 reruns,
not even zero would rule it out.
"""

RERUN = 100
"""Fetches of one rerun, made one after another."""


def rerun(page: int, host: str) -> Scenario:
    """A rerun of one bar without PRR, on a host with more features than the study's."""
    workload = {"kind": "fetch", "bytes": f"{page} bytes", "count": RERUN, "pause": "1 s"}
    return Scenario.from_dict(
        {
            "name": f"rerun of {PAGE_LABELS[page]}, {host}",
            "duration": "3 h",
            "network": path.network(LOW),
            "flows": [{**path.host(profile="linux-3.0", **HOSTS.get(host, {})), "workload": workload}],
        }
    )


def run(plan: Plan) -> Data:
    """Reruns of the 75 and 750 KB bars at 1 % on other hosts.

    Returns
    -------
    Data
        `reruns.bars`: host (those of `HOSTS`, and the study's own), page, seed (a rerun), bar_s (NaN: an empty group).
    """

    def bars(batch: Batch) -> pl.DataFrame:
        total = batch.fetches.sort("seed", "idx")["total_s"].to_numpy().astype(np.float64)
        return pl.DataFrame({"seed": batch.seeds, "bar_s": group_b_mean(total.reshape(-1, RERUN))})

    cells = [
        Cell(
            scenario=rerun(page, host),
            keys={"host": host, "page": page},
            stream=f"reruns {host} {page}",
            seeds=plan.count(quick=130 if host == OWN else 12, paper=200),
            needs={"fetches": ("idx", "total_s")},
            keep={"bars": bars},
        )
        for host in (OWN, *HOSTS)
        for page in PAGES[2:]
    ]
    return collect("reruns", cells, plan)


def near(middle: Array, large: Array) -> NDArray[np.bool_]:
    """Whether the 75 and 750 KB bars are nearly equal."""
    found: NDArray[np.bool_] = np.abs(large - middle) < 0.25 * np.maximum(large, middle)
    return found


def reruns(tables: Tables, arm: str, page: int, loss: float, n: int) -> Array:
    """Group B's bar in independent repetitions with `n` fetches each; NaN if the group is empty."""
    total = fetches.latencies(tables["kernels.fetches"], arm, page, loss)
    whole = total.size // n
    return group_b_mean(total[: whole * n].reshape(whole, n)) if whole else np.empty(0)


OUTER, INNER = 40, 100
"""Number of resamples of all fetches, for the interval, and of repetitions drawn from each."""


def spreads(total_s: Array) -> tuple[Estimate, Estimate, Estimate]:
    """Half-width of the range that contains 95 % of a bar's repetitions, relative to their mean, percent: with 100
    fetches, with 1000 fetches, and the ratio of the two.

    Parameters
    ----------
    total_s
        Latencies of independent fetches, s.

    Notes
    -----
    Repetitions are drawn from all fetches there are, with replacement. Partitioning them into repetitions would leave
    only two of a thousand fetches at quick scale, too few to estimate a spread. The intervals come from repeating this
    over resamples of the fetches; the finite number of repetitions makes them slightly wider.
    """
    rng = np.random.Generator(np.random.PCG64(20110601))

    def once(pool: Array, repetitions: int) -> tuple[float, float]:
        found = []
        for n in FETCHES:
            bars = group_b_mean(pool[rng.integers(0, pool.size, size=(repetitions, n))])
            bars = bars[np.isfinite(bars)]
            found.append(float(100 * Z95 * bars.std(ddof=1) / bars.mean()) if bars.size > 1 else float("nan"))
        return found[0], found[1]

    if total_s.size < FETCHES[0]:
        return NOTHING, NOTHING, NOTHING
    few, many = once(total_s, 4 * INNER)
    with np.errstate(divide="ignore"):
        others = np.log([once(total_s[rng.integers(0, total_s.size, size=total_s.size)], INNER) for _ in range(OUTER)])
    if not (few > 0 and many > 0 and np.isfinite(others).all()):  # too few fetches for a group
        return NOTHING, NOTHING, NOTHING

    def around(value: float, logarithms: Array) -> Estimate:
        factor = math.exp(Z95 * float(np.std(logarithms, ddof=1)))
        return Estimate(value=value, low=value / factor, high=value * factor, level=0.95, n=total_s.size)

    return (
        around(few, others[:, 0]),
        around(many, others[:, 1]),
        around(few / many, others[:, 0] - others[:, 1]),
    )


FETCHES = (100, 1000)
"""Number of fetches per bar, in the blog's script and in its text."""
NOISY = 10.0
"""Largest effect of PRR claimed in the paper, percent."""


def _spreads(tables: Tables, page: int) -> tuple[Estimate, Estimate, Estimate]:
    """Noise with 100 and with 1000 fetches per bar, and the ratio."""
    total = fetches.latencies(tables["kernels.fetches"], kernels.WITH_PRR, page, LOW)
    return spreads(total)


def t8(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Ratio of a bar's spread with 100 fetches to its spread with 1000."""
    return [
        Evidence.of(
            _spreads(tables, page)[2],
            f"{where(page, LOW)}: spread at n = 100 over that at n = 1000",
            bound,
        )
        for page in PAGES
    ]


def t8_much(tables: Tables) -> Sequence[Evidence]:
    """A bar's spread between repetitions, with 100 and with 1000 fetches."""
    both = {page: _spreads(tables, page) for page in PAGES}
    return [
        Evidence.of(
            both[page][k],
            f"{where(page, LOW)}: spread of the bar at n = {n}",
            bound,
            unit="%",
            key=f"n{n}_{page}",
        )
        for k, (n, bound) in enumerate(((100, above(NOISY)), (1000, below(NOISY))))
        for page in PAGES
    ]


def t9(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Probability of the rerun's two anomalies with 100 fetches per bar."""
    exchanged = {loss: _exchanged(tables, loss) for loss in (LOW, HIGH)}
    n = min(found.size for found in exchanged.values())
    either = np.any([found[:n] for found in exchanged.values()], axis=0)
    nearly = nearly_equal(tables, OWN)
    groups = [group_sizes(tables, kernels.WITHOUT_PRR, page, LOW, 100) for page in PAGES]
    in_group = np.mean([one[: min(map(len, groups))] for one in groups], axis=0)
    return [
        Evidence.of(
            proportion_interval(int(either.sum()), n),
            "reruns in which the bar of 0.75 KB exceeds that of 750 KB, at 1 or 3 %",
            bound,
            unit="%",
            factor=100,
            key="reversed",
        ),
        Evidence.of(
            proportion_interval(int(nearly.sum()), nearly.size),
            "reruns in which the 75 KB and 750 KB bars are within 25 %",
            bound,
            unit="%",
            factor=100,
            key="near",
        ),
        *(_near_on(tables, host) for host in HOSTS),
        Evidence.of(
            mean_over_runs(in_group),
            "fetches behind a bar at 1 %, of 100 (mean over pages)",
            _NO_BOUND,
            weighs=False,
        ),
    ]


def _exchanged(tables: Tables, loss: float) -> NDArray[np.bool_]:
    """Reruns with 100 fetches: whether the mean over all fetches of the smallest page exceeds that of the largest."""
    means = []
    for page in (PAGES[0], PAGES[-1]):
        total = fetches.latencies(tables["kernels.fetches"], kernels.WITHOUT_PRR, page, loss)
        means.append(total[: total.size // 100 * 100].reshape(-1, 100).mean(axis=1))
    n = min(map(len, means))
    return np.asarray(means[0][:n] > means[1][:n])


def nearly_equal(tables: Tables, host: str) -> NDArray[np.bool_]:
    """Reruns on one kind of host: whether the two bars are nearly equal."""
    own = tables["reruns.bars"].filter(pl.col("host") == host).sort("seed")
    return near(*(own.filter(pl.col("page") == page)["bar_s"].to_numpy() for page in PAGES[2:]))


def _near_on(tables: Tables, host: str) -> Evidence:
    """Fraction of reruns in which the two bars are nearly equal on a host with more features."""
    found = nearly_equal(tables, host)
    return Evidence.of(
        proportion_interval(int(found.sum()), found.size),
        f"the same with {'a destination cache and segmentation offload' if host == 'both' else host}",
        at_least(5),
        unit="%",
        factor=100,
        weighs=False,
        key=f"near_{host.split()[0]}",
    )


def group_sizes(tables: Tables, arm: str, page: int, loss: float, n: int) -> Array:
    """Number of fetches in group B's bar in independent repetitions with `n` fetches each."""
    total = fetches.latencies(tables["kernels.fetches"], arm, page, loss)
    sizes: Array = two_sigma(total[: total.size // n * n].reshape(-1, n)).sum(axis=-1).astype(np.float64)
    return sizes


def noise(tables: Tables) -> Figure:
    """Variation in the publication's bars between independent repetitions with 100 and with 1000 fetches."""
    rows = []
    for page in PAGES:
        for n in (100, 1000):
            bars = reruns(tables, kernels.WITHOUT_PRR, page, LOW, n)
            rows += [
                {"page_bytes": page, "fetches": n, "repetition": i, "bar_s": b}
                for i, b in enumerate(bars)
                if np.isfinite(b)
            ]
    schema = {"page_bytes": pl.Int64, "fetches": pl.Int64, "repetition": pl.Int64, "bar_s": pl.Float64}
    table = pl.DataFrame(rows, schema=schema)
    title = "The publication's bars in independent repetitions with 100 and with 1000 fetches"
    behind = group_sizes(tables, kernels.WITHOUT_PRR, PAGES[2], LOW, 100)
    seen = table.filter((pl.col("page_bytes") == PAGES[2]) & (pl.col("fetches") == 100))["bar_s"].to_numpy()
    if seen.size:
        title = (
            f"Of 100 fetches of 75 KB {behind.min():.0f} to {behind.max():.0f} are behind the bar, which lies between "
            f"{seen.min():.1f} and {seen.max():.1f} s in {seen.size} repetitions"
        )

    def draw() -> Any:
        figure, ax = new(7.0, 3.4)
        rng = np.random.Generator(np.random.PCG64(5))
        for i, (n, colour, marker) in enumerate(((100, OKABE_ITO["vermilion"], "s"), (1000, OKABE_ITO["blue"], "o"))):
            r = table.filter(pl.col("fetches") == n)
            y = (
                np.array([PAGES.index(p) for p in r["page_bytes"]])
                + 0.36 * (i - 0.5)
                + rng.uniform(-0.12, 0.12, r.height)
            )
            ax.plot(
                r["bar_s"],
                y,
                marker,
                color=colour,
                ms=4,
                mew=0,
                alpha=0.55,
                rasterized=True,
                label=f"{n} fetches per bar",
            )
        ax.set_yticks(range(len(PAGES)), [PAGE_LABELS[p] for p in PAGES])
        ax.invert_yaxis()
        ax.set(
            xlabel='mean latency of the group "with retransmission", kernel 3.0, 1 % loss (s)',
            ylabel="page",
            xscale="log",
            xlim=(1.9, 16),
        )
        ticks = [2, 3, 4, 5, 7, 10, 15]
        ax.set_xticks(ticks, [str(t) for t in ticks], minor=False)
        ax.set_xticks([], minor=True)
        ax.grid(axis="y", visible=False)
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
        return figure

    return Figure(
        name="noise",
        title=title,
        caption=(
            "Each mark is one bar of the publication (kernel 3.0, 1 % loss) in one independent repetition of the experiment, with 100 or "
            "with 1000 fetches. Height within a row is scatter only; logarithmic axis."
        ),
        draw=draw,
        data={"repetitions": table},
    )


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (noise(tables),)


CHAPTER = Chapter(
    experiments=(
        Experiment(
            name="reruns",
            title="reruns of two bars on hosts with a destination cache and segmentation offload",
            run=run,
            weight=3,
        ),
    ),
    **declared(__name__),
    blocks=blocks,
    scenarios=lambda: {"rerun of 75 KB, destination cache": rerun(PAGES[2], "destination cache")},
)
