"""Adds seeds until the intervals are narrow enough."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, islice

from ackclock.errors import InputError, ScenarioError, quote
from ackclock.judge.intervals import Estimate, seeds_needed
from ackclock.units import parse_share

LEAST_SEEDS = 5
"""Minimum number of seeds; with fewer, the estimated spread is too uncertain."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Precision:
    """Target width of the 95 % interval for a metric's mean.

    Parameters
    ----------
    metric
        Name of the metric.
    width
        Full width of the interval as a fraction of the mean.
    most_seeds
        Maximum number of seeds.
    """

    metric: str
    width: float
    most_seeds: int = 10_000

    def more(self, estimate: Estimate, scale: float | None = None) -> int:
        """Return the number of observations needed; the current number if it is enough, or if no number would be.

        Parameters
        ----------
        estimate
            Estimate of the mean.
        scale
            Reference of the relative width; the mean if None.
        """
        unit = abs(estimate.value if scale is None else scale)
        if estimate.n >= self.most_seeds or not math.isfinite(unit) or unit == 0:
            return estimate.n
        if estimate.n < LEAST_SEEDS:
            return LEAST_SEEDS
        wanted = seeds_needed(estimate, self.width * unit)
        if wanted == estimate.n:
            return wanted
        # Seeds are added in steps, because the spread was estimated from few runs, and a tenth more than estimated,
        # because the spread may be larger.
        return min(math.ceil(wanted * 1.1), 4 * estimate.n, self.most_seeds)


def parse_width(text: str) -> float:
    """Parse "1 %" or "0.01"."""
    try:
        try:
            share = parse_share(float(text))
        except ValueError:
            share = parse_share(text)
    except ScenarioError:
        share = 0.0
    if not share > 0:
        raise InputError(f"--until-width: found {quote(text)}; allowed: a share above zero, such as 1% or 0.01")
    return share


def extended(seeds: Sequence[int], wanted: int) -> tuple[int, ...]:
    """Return the seeds, extended to `wanted` seeds by those following the largest."""
    if wanted <= len(seeds):
        return tuple(seeds)
    return (*seeds, *islice(count(max(seeds) + 1), wanted - len(seeds)))


__all__ = ["LEAST_SEEDS", "Precision", "extended", "parse_width"]
