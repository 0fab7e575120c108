"""Compares several flows on both backends, or in two kernels, by distributions over seeds. The flows'
shares in a FIFO queue are chaotic on both sides: a one-nanosecond difference changes them.
Single runs of several flows therefore cannot be compared, but the distributions of each flow's goodput, RTT and
retransmissions over seeds can.
"""

from __future__ import annotations

import math
import os
import queue
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ackclock.diff._compare import BACKENDS, both, common_samples, sampled
from ackclock.errors import InputError
from ackclock.linux import NetworkKind
from ackclock.scenario import Scenario

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from ackclock._results.result import Run

__all__ = ["LEAST_SEEDS", "Distributions", "Spread", "over_seeds", "two_samples"]

QUANTITIES = ("goodput, Mbit/s", "retransmissions", "mean srtt, ms")
SHUFFLES = 10_000
LEAST_SEEDS = 5
"""Minimum number of runs per side for a verdict: with four, even completely separated samples occur by chance once in
35 times.
"""
LEVEL = 0.05
"""Probability that identical distributions are reported as different in any row, with Holm's correction for the
number of rows.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """One quantity of one flow, or of all flows, over seeds.

    Parameters
    ----------
    flow
        Flow number; None: all flows together.
    quantity
        Name with unit.
    first, second
        A value for each seed.
    distance
        Kolmogorov-Smirnov distance: the largest difference between the two fractions of values below any bound.
    chance
        Probability that a random split of all values has at least this distance; 1 if all values are equal.
    differs
        Whether that probability is too small, given the number of rows.
    """

    flow: int | None
    quantity: str
    first: tuple[float, ...]
    second: tuple[float, ...]
    distance: float
    chance: float
    differs: bool

    @property
    def means(self) -> tuple[float, float]:
        """Mean values of both sides."""
        return sum(self.first) / len(self.first), sum(self.second) / len(self.second)


@dataclass(frozen=True, kw_only=True, slots=True)
class Distributions:
    """All flows of a scenario over seeds.

    Parameters
    ----------
    names
        Names of the two sides.
    seeds
        Runs per side.
    same
        Whether all seeds gave the same run on a side: then only that run can be compared.
    rows
        Compared quantities.
    """

    names: tuple[str, str]
    seeds: int
    same: bool
    rows: tuple[Spread, ...]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary."""
        return {
            "first": self.names[0],
            "second": self.names[1],
            "seeds": self.seeds,
            "all_seeds_gave_one_run": self.same,
            "rows": [
                {
                    "flow": row.flow,
                    "quantity": row.quantity,
                    "first": list(row.first),
                    "second": list(row.second),
                    "distance": row.distance,
                    "chance": row.chance,
                    "differs": row.differs,
                }
                for row in self.rows
            ],
        }


def over_seeds(
    scenario: Scenario,
    *,
    seeds: int,
    first_seed: int = 1,
    network: NetworkKind = "relay",
    jobs: int = 1,
    kernels: tuple[str, str] | None = None,
    told: Callable[[str, float], None] | None = None,
) -> Distributions:
    """Run a scenario under several seeds on both sides, and compare the distributions.

    Parameters
    ----------
    scenario, network, kernels
        See `compare`; flows of any kind.
    seeds
        Number of seeds, at least `LEAST_SEEDS`.
    first_seed
        First seed.
    jobs
        Number of parallel guests, at most one per CPU, which does not affect the results.
    told
        Called with the name of each finished run, and the fraction of finished ones.

    Raises
    ------
    InputError
        If there are too few seeds.
    """
    if seeds < LEAST_SEEDS:
        raise InputError(f"seeds: found {seeds}; allowed: {LEAST_SEEDS} or more, to compare distributions")
    scenario = sampled(scenario)
    available = sorted(os.sched_getaffinity(0))
    cpus: queue.SimpleQueue[int] = queue.SimpleQueue()
    for cpu in available:
        cpus.put(cpu)

    def one(seed: int) -> tuple[Run, Run]:
        cpu = cpus.get()
        try:
            return both(scenario, seed=seed, network=network, cpu=cpu, kernels=kernels)
        finally:
            cpus.put(cpu)

    runs: list[tuple[Run, Run]] = []
    with ThreadPoolExecutor(min(jobs, len(available))) as pool:
        try:
            for pair in pool.map(one, range(first_seed, first_seed + seeds)):
                runs.append(pair)
                if told is not None:
                    told(f"seed {first_seed + len(runs) - 1}", len(runs) / seeds)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    sampled_at = [common_samples(*pair) for pair in runs]
    sides = [
        [_values(pair[side], samples[side]) for pair, samples in zip(runs, sampled_at, strict=True)] for side in (0, 1)
    ]
    return Distributions(
        names=kernels or BACKENDS,
        seeds=seeds,
        same=any(all(run == side[0] for run in side) for side in sides),
        rows=tuple(_rows(*sides)),
    )


def _values(run: Run, samples: pl.DataFrame) -> list[list[float]]:
    """Return each quantity of each flow; NaN where a side has none."""
    import polars as pl

    srtt = dict(samples.group_by("flow").agg(pl.col("srtt_s").mean()).rows())
    rows = run.flows.select("flow", "goodput_bps", "retransmissions").rows()
    return [
        [1e-6 * float(goodput or 0), float(retransmissions or 0), 1e3 * (srtt.get(flow) or math.nan)]
        for flow, goodput, retransmissions in rows
    ]


def _rows(first: Sequence[list[list[float]]], second: Sequence[list[list[float]]]) -> list[Spread]:
    """Return rows for all flows together, and for each flow if there are several, with probabilities corrected for
    the number of rows (Holm).
    """
    import numpy as np

    found: list[tuple[int | None, str, NDArray[Any], NDArray[Any]]] = []
    flows = len(first[0])
    for i, name in enumerate(QUANTITIES):
        a, b = (np.array([[flow[i] for flow in run] for run in side]) for side in (first, second))
        together = np.mean if "srtt" in name else np.sum
        if flows > 1:
            found.append((None, name, together(a, axis=1), together(b, axis=1)))
        found += [(flow, name, a[:, flow], b[:, flow]) for flow in range(flows)]
    # a quantity that one side does not report cannot be compared
    found = [row for row in found if np.isfinite(row[2]).all() and np.isfinite(row[3]).all()]
    tested = [two_samples(a, b) for _, _, a, b in found]
    order = sorted(range(len(tested)), key=lambda i: tested[i][1])
    differs = [False] * len(tested)
    for rank, i in enumerate(order):
        if tested[i][1] * (len(order) - rank) > LEVEL:
            break
        differs[i] = True
    rows = []
    for (flow, name, a, b), (distance, chance), far in zip(found, tested, differs, strict=True):
        sides = [tuple(float(x) for x in side) for side in (a, b)]
        rows.append(
            Spread(
                flow=flow, quantity=name, first=sides[0], second=sides[1], distance=distance, chance=chance, differs=far
            )
        )
    return rows


def two_samples(first: NDArray[Any], second: NDArray[Any]) -> tuple[float, float]:
    """Return the Kolmogorov-Smirnov distance between two samples, and the probability that a random division of all
    values is as far apart.

    The probability is estimated by shuffling, so ties do no harm. It is at least one in `SHUFFLES`, and a pure
    function of the values.

    Parameters
    ----------
    first, second
        Shapes (n,) and (m,); finite.
    """
    import numpy as np

    n, m = len(first), len(second)
    values = np.concatenate([first, second])
    order = np.argsort(values, kind="stable")
    # fractions below a bound are correct only after the last of several equal values
    ends = np.append(np.diff(values[order]) > 0, True)

    def distance(of_first: NDArray[Any]) -> NDArray[Any]:
        steps = np.where(of_first, 1 / n, -1 / m)
        return np.asarray(np.abs(np.cumsum(steps, axis=-1))[..., ends].max(axis=-1))

    mine = (order < n)[None, :]
    seen = float(distance(mine)[0])
    if seen < 1e-12:
        return 0.0, 1.0
    shuffled = np.random.default_rng(1).permuted(np.repeat(mine, SHUFFLES, axis=0), axis=1)
    as_far = int((distance(shuffled) >= seen - 1e-12).sum())
    return seen, (as_far + 1) / (SHUFFLES + 1)
