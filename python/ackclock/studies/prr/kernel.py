"""With and without PRR in one Linux kernel: fetches under rate halving, RFC 6675 and PRR, every other part equal, on the
real kernel and in the simulator.

What the publication's authors tried and could not: they compared two kernels, which differ in more than the rule. Both
backends meet the same losses, fetch by fetch, and so do the rules; gains are paired.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ackclock import linux, run_batch
from ackclock.scenario import Scenario
from ackclock.stats import Estimate
from ackclock.studies.prr import path
from ackclock.study import Plan
from ackclock.study.estimates import Array, gain, quotient, ratio

PAGES = (76_800, 768_000)
BASE = "rate-halving"
RULES = (BASE, "rfc6675", "prr-crb", "prr-ssrb", "prr-ub", "prr-linux-6")
FETCHES = {76_800: 100, 768_000: 25}
"""Fetches of one run."""

RUNS = {76_800: 10, 768_000: 8}
"""Runs (seeds) of each cell."""

BACKENDS = ("linux", "sim")


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelResult:
    """What both backends measured.

    Parameters
    ----------
    cells
        Columns backend, page, loss, rule, fetches, hit, mean_s, and gain over rate halving in percent with its interval.
    claims
        One line for each claim that can be asked, with a verdict per backend.
    """

    cells: pl.DataFrame
    claims: Sequence[tuple[str, str, dict[str, str]]]


def scenario(rule: str, page: int, loss: float) -> Scenario:
    """Fetches one after another over the path of the publication, under Linux 6 with another rule."""
    workload = {
        "kind": "fetch",
        "bytes": f"{page} bytes",
        "count": FETCHES[page],
        "pause": "1 s",
        "common_random_numbers": True,
    }
    return Scenario.from_dict(
        {
            "name": f"{rule}, {page} bytes, {path.percent(loss)}",
            "duration": f"{FETCHES[page] * (60 if page > 100_000 else 15)} s",
            "network": path.network(loss),
            "flows": [{**path.host(profile="linux-6", recovery=rule), "workload": workload}],
        }
    )


def run(plan: Plan) -> KernelResult:
    """Every cell on both backends.

    Parameters
    ----------
    plan
        Seeds of each cell, CPUs and progress.
    """
    grid = [(page, loss, rule) for page in PAGES for loss in path.LOSSES for rule in RULES]
    fetches: dict[tuple[str, int, float, str], pl.DataFrame] = {}
    for i, (page, loss, rule) in enumerate(grid):
        plan.report(f"{page} bytes, {path.percent(loss)}, {rule}", i / len(grid))
        asked = scenario(rule, page, loss)
        seeds = range(1, 1 + (plan.seeds or RUNS[page]))
        key = (page, loss, rule)
        fetches["linux", *key] = linux.run_batch(asked, seeds, jobs=plan.jobs, network="relay").fetches
        fetches["sim", *key] = run_batch(asked, seeds, jobs=plan.jobs).fetches
    rows = [_cell(fetches, backend, *key) for backend in BACKENDS for key in grid]
    plan.report("done", 1.0)
    return KernelResult(cells=pl.DataFrame(rows), claims=_claims(fetches))


def _hit(
    fetches: dict[tuple[str, int, float, str], pl.DataFrame], backend: str, page: int, loss: float, rule: str
) -> tuple[Array, Array]:
    """Latencies under rate halving and under the rule, of the fetches in which either retransmitted data."""
    a, b = fetches[backend, page, loss, BASE], fetches[backend, page, loss, rule]
    both = a.join(b, on=["seed", "idx"], suffix="_other")
    both = both.filter(
        (pl.col("data_retransmissions") + pl.col("data_retransmissions_other") > 0)
        & pl.col("done").cast(pl.Boolean)
        & pl.col("done_other").cast(pl.Boolean)
    )
    return (both["total_s"].to_numpy().astype(np.float64), both["total_s_other"].to_numpy().astype(np.float64))


def _cell(fetches: Any, backend: str, page: int, loss: float, rule: str) -> dict[str, Any]:
    base, other = _hit(fetches, backend, page, loss, rule)
    table: pl.DataFrame = fetches[backend, page, loss, rule]
    found = gain(base, other)
    return {
        "backend": backend,
        "page": page,
        "loss": loss,
        "rule": rule,
        "fetches": table.height,
        "hit": other.size,
        "mean_s": float(other.mean()) if other.size else None,
        "timeouts": int(table["data_rtos"].sum()),
        "gain_percent": found.value,
        "gain_low": found.low,
        "gain_high": found.high,
    }


def _claims(fetches: Any) -> Sequence[tuple[str, str, dict[str, str]]]:
    """T3, T5 and T6 of the study on these pages, PRR-SSRB against rate halving."""
    low, high = path.LOSSES
    t3, t5, t6 = {}, {}, {}
    for backend in BACKENDS:
        gains = {(p, x): gain(*_hit(fetches, backend, p, x, "prr-ssrb")) for p in PAGES for x in path.LOSSES}
        rise = []
        for page in PAGES:
            means = [_hit(fetches, backend, page, x, BASE)[0] for x in (high, low)]
            rise.append(quotient(*(ratio(m, np.ones_like(m)) for m in means)))
        more = [_minus(gains[p, high], gains[p, low]) for p in PAGES]
        t3[backend] = _verdict([gains[p, low] for p in PAGES], 0)
        t5[backend] = _verdict(rise, 2)
        t6[backend] = _verdict(more, 0)
    return (
        ("T3", "fetches with retransmissions are faster with PRR at 1 % (gain, %)", t3),
        ("T5", "without PRR latency at least doubles from 1 % to 3 % (ratio)", t5),
        ("T6", "PRR's gain is larger at 3 % than at 1 % (difference, points)", t6),
    )


def _minus(a: Estimate, b: Estimate) -> Estimate:
    from ackclock.study.estimates import minus

    return minus(a, b)


def _verdict(estimates: Sequence[Estimate], bound: float) -> str:
    """Holds if every interval lies above the bound, fails if one lies below, else undecided; with the numbers."""
    told = ", ".join(f"{e.value:.2f} [{e.low:.2f}, {e.high:.2f}]" for e in estimates)
    if all(e.low > bound for e in estimates):
        return f"holds: {told}"
    return f"fails: {told}" if any(e.high < bound for e in estimates) else f"undecided: {told}"
