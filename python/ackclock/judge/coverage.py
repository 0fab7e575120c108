"""Coverage of the judge's intervals, and errors of repeated looks, measured by simulation. python tools/coverage.py
records the table in the book of numbers (`interval-coverage`). Data is drawn like the studies' data: pairs of times
under common losses, counts of rare events, ties, tails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ackclock.judge.bound import Bound, Verdict, above
from ackclock.judge.estimates import Array, gain, mean_over_runs, minus, quotient, ratio, ratios_apart
from ackclock.judge.evidence import Evidence
from ackclock.judge.intervals import Estimate, quantile_interval

Rng: TypeAlias = np.random.Generator
SEED, SETS = 20110601, 400
LEAST = 93.0
"""Minimum acceptable percentage of sets with an interval that contains the true value."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A kind of data, an estimator, and the true value.

    Parameters
    ----------
    estimator, data
        Description.
    sizes
        Numbers of runs.
    truth
        Limit of the estimator as the number of runs grows to infinity. of
        Function that estimates from this many newly drawn runs.
    """

    estimator: str
    data: str
    sizes: tuple[int, ...]
    truth: float
    of: Callable[[Rng, int], Estimate]


@dataclass(frozen=True, kw_only=True, slots=True)
class Covered:
    """Coverage in a case with this number of runs: percentage of sets whose interval contains the true value, counting
    sets without an interval (`percent`), and percentage of sets without an interval (`refused`).
    """

    case: Case
    n: int
    percent: float
    refused: float


def _pairs(rng: Rng, n: int, effect: float, share: float) -> tuple[Array, Array]:
    """Return the times of two arms under the same losses, which differ in a fraction of the pairs."""
    base = 1 + rng.lognormal(0, 0.5, n)
    differs = rng.random(n) < share
    return base, base * np.where(differs, 1 - effect / share * rng.lognormal(-0.125, 0.5, n), 1.0)


def _timeouts(rng: Rng, n: int) -> tuple[Array, Array]:
    """Return the times of two arms. A fifth of the pairs differ by the time of some packets, one in a hundred by timeouts that double in one case of twenty."""
    base = 1 + rng.lognormal(0, 0.5, n)
    little = np.where(rng.random(n) < 0.2, 0.05 * rng.lognormal(-0.125, 0.5, n), 0.0)
    waits = np.where(rng.random(n) < 0.01, 2.0 ** rng.geometric(0.95, n) - 1.0, 0.0)
    return base + little + waits, base


def _rare_waits(rng: Rng, n: int) -> tuple[Array, Array]:
    """Return the times of two arms. An eighth of the pairs differ by a few packet times in either direction, one in a
    thousand by a wait ten times as long.
    """
    base = 0.9 + rng.lognormal(-1, 0.8, n)
    sign = np.where(rng.random(n) < 0.35, -1, 1)
    little = np.where(rng.random(n) < 0.125, 0.03 * sign * rng.lognormal(-0.125, 0.5, n), 0.0)
    return base + little + np.where(rng.random(n) < 0.001, rng.uniform(0.2, 0.4, n), 0.0), base


def _counts(rng: Rng, n: int, each: float, more: float, common: float = 0.7) -> tuple[Array, Array]:
    """Return the event counts of two arms; most events are common to both."""
    both = rng.poisson(common * each, n)
    x, y = (both + rng.poisson(k, n) for k in (each * (1 + more - common), each * (1 - common)))
    return x.astype(np.float64), y.astype(np.float64)


def _of_gains(rng: Rng, n: int) -> Estimate:
    """Return the quotient of two gains over one base of the same fetches, where one gain is part of the other (cause of T6)."""
    base = 1 + rng.lognormal(0, 0.5, n)
    saved = 0.1 * base * rng.lognormal(-0.125, 0.5, n)
    part = saved * (0.5 + 0.2 * rng.standard_normal(n))
    return quotient(gain(base, base - part, runs="one"), gain(base, base - saved, runs="one"))


def _backoffs(rng: Rng, n: int) -> Array:
    """Return waits that double with a probability of two thirds, so that no finite mean exists."""
    return np.asarray(2.0 ** rng.geometric(1 / 3, n) + rng.random(n))


def cases() -> tuple[Case, ...]:
    """Return every estimator used in the studies, on data of the same kind."""
    many = (40, 150, 600)
    return (
        Case(estimator="mean", data="normal", sizes=(6, 10, 40), truth=0, of=lambda r, n: mean_over_runs(r.standard_normal(n))),
        Case(estimator="mean", data="exponential", sizes=(10, *many), truth=1, of=lambda r, n: mean_over_runs(r.exponential(size=n))),
        Case(estimator="mean", data="lognormal, sigma 1", sizes=(150, 600), truth=math.exp(0.5), of=lambda r, n: mean_over_runs(r.lognormal(0, 1, n))),
        Case(estimator="mean", data="events in 1 % of the runs", sizes=(400, 1500), truth=0.01, of=lambda r, n: mean_over_runs((r.random(n) < 0.01).astype(float))),
        Case(estimator="mean", data="events in 0.1 % of the runs", sizes=(400, 1500), truth=0.001, of=lambda r, n: mean_over_runs((r.random(n) < 0.001).astype(float))),
        Case(estimator="mean", data="backoffs without a finite mean", sizes=(150, 600, 1500), truth=math.inf, of=lambda r, n: mean_over_runs(_backoffs(r, n))),
        Case(estimator="gain", data="times of pairs, a fifth of which differ, by 2 % in all", sizes=(150, 600, 3000), truth=_true_gain(), of=lambda r, n: gain(*_pairs(r, n, 0.02, 0.2))),
        Case(estimator="gain", data="the same, 1 % of which differ, by 0.5 % in all", sizes=(600, 3000), truth=_true_gain(0.005), of=lambda r, n: gain(*_pairs(r, n, 0.005, 0.01))),
        Case(estimator="gain", data="a fifth of the pairs differ by packets, 1 % by timeouts", sizes=(600, 3000), truth=_true_timeouts(), of=lambda r, n: gain(*_timeouts(r, n))),
        Case(estimator="gain", data="an eighth of the pairs differ by packets, 0.1 % by a wait ten times as long", sizes=(600, 4000), truth=_true_waits(), of=lambda r, n: gain(*_rare_waits(r, n))),
        Case(estimator="gain", data="equal pairs", sizes=(40, 600), truth=0, of=lambda r, n: gain(*(2 * (1 + r.lognormal(0, 0.5, n),)))),
        Case(estimator="ratio of counts", data="0.5 events a run, 5 % more", sizes=(150, 600, 3000), truth=1.05, of=lambda r, n: ratio(*_counts(r, n, 0.5, 0.05))),
        Case(estimator="ratio of counts", data="0.02 events a run, 5 % more", sizes=(1500, 6000), truth=1.05, of=lambda r, n: ratio(*_counts(r, n, 0.02, 0.05))),
        Case(estimator="difference of two ratios", data="shares of the same runs", sizes=(40, 150), truth=0.05, of=_shares_apart),
        Case(estimator="quotient of two gains", data="of the same runs, a half", sizes=(150, 600), truth=0.5, of=_of_gains),
        Case(estimator="difference of two gains", data="of other runs", sizes=(150, 600), truth=0, of=lambda r, n: minus(*(gain(*_pairs(r, n, 0.02, 0.2)) for _ in range(2)))),
        Case(estimator="median", data="whole numbers with ties", sizes=(14, 40, 100), truth=12, of=lambda r, n: quantile_interval(12 + (r.random(n) < 0.4) * 2.0, 0.5)),
    )  # fmt: skip


def _true_gain(effect: float = 0.02) -> float:
    """Return the percentage by which `_pairs` differ: a lognormal factor of mean one on a fraction of the pairs."""
    return 100 * effect


def _true_timeouts() -> float:
    """Return the percentage by which `_timeouts` differ: 2^G - 1 has the mean 2 p / (1 - 2 (1 - p)) - 1 for a geometric G."""
    more = 0.2 * 0.05 + 0.01 * (2 * 0.95 / (1 - 2 * 0.05) - 1)
    return 100 * more / (1 + math.exp(0.125) + more)


def _true_waits() -> float:
    """Return the percentage by which `_rare_waits` differ."""
    more = 0.125 * 0.03 * 0.3 + 0.001 * 0.3
    return 100 * more / (0.9 + math.exp(-1 + 0.32) + more)


def _shares_apart(rng: Rng, n: int) -> Estimate:
    events = rng.integers(20, 60, n)
    common = 0.2 + 0.2 * rng.random(n)
    first, second = (rng.binomial(events, common + k).astype(np.float64) for k in (0.05, 0.0))
    return ratios_apart((first, events.astype(np.float64)), (second, events.astype(np.float64)))


def coverage(case: Case, n: int, sets: int = SETS) -> Covered:
    """Draw sets of runs, and count the intervals that contain the true value."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    held = refused = 0
    for _ in range(sets):
        e = case.of(rng, n)
        if not (math.isfinite(e.low) and math.isfinite(e.high)):
            refused += 1
        elif e.low <= case.truth <= e.high:
            held += 1
    return Covered(case=case, n=n, percent=100 * (held + refused) / sets, refused=100 * refused / sets)


LOOKED: Mapping[str, tuple[float, Bound]] = {
    "the truth is on the margin": (1.0, above(0, margin=1.0)),
    "no margin, the truth is none": (0.0, above(0)),
}


def looks(truth: float, bound: Bound, sets: int = SETS, first: int = 16, doubled: int = 6) -> dict[Verdict, float]:
    """Return the percentage of sets by verdict after repeated looks, each with twice as many runs, as with `--decide`."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    found: dict[Verdict, float] = {}
    for _ in range(sets):
        values: NDArray[np.float64] = truth + rng.standard_normal(first * 2**doubled) * 2
        word = Verdict.UNDECIDED
        for k in range(doubled + 1):
            e = Evidence.of(mean_over_runs(values[: first * 2**k]), "mean", bound)
            word = e.judge(looks=1 if k == 0 else doubled)
            if word is not Verdict.UNDECIDED:
                break
        found[word] = found.get(word, 0.0) + 100 / sets
    return found
