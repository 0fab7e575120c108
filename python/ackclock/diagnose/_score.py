"""Distances between curves of bytes in flight, and likelihoods of congestion controls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ackclock.diagnose._curve import Curve

__all__ = ["apart", "likelihoods", "mostly", "same", "spreads"]

FLOOR, FLOOR_SEGMENTS = 0.005, 0.25
"""Changes in flight size caused by a lost ACK or another detail of the path: relative, and in segments."""

MOST = 0.7
"""Fraction of the data over which a candidate has to agree with the capture. Hosts differ in when they split
packets, merge them and wake up. This changes an episode, but neither the growth between losses nor the decrease at
each loss.
"""

OTHERWISE, WIDE = 0.2, 0.5
"""Fraction of the parts in which a candidate may deviate, because many diverge after a lost ACK; and size of that
deviation.
"""

ROUNDS = 3
"""Number of independent parts of the data between two losses."""


def apart(one: Curve, other: Curve) -> float:
    """Return the mean relative difference between two curves; data sent in only one of them counts in full."""
    import numpy as np

    missing = abs(one.reached - other.reached)
    return float(np.abs(one.logs - other.logs).mean()) + missing


def mostly(one: Curve, other: Curve) -> float:
    """Return the mean relative difference between two curves over the `MOST` of the data where they are closest. A
    slightly different host may diverge in a single episode of a few losses and agree again afterwards.
    """
    import numpy as np

    off = np.sort(np.abs(one.logs - other.logs))
    return float(off[: max(int(MOST * len(off)), 1)].mean()) + abs(one.reached - other.reached)


def _likely(own: Curve, other: Curve, scale: float) -> float:
    """Return the mean log-likelihood per part of the data."""
    import numpy as np

    off = np.abs(own.logs - other.logs) + abs(own.reached - other.reached)
    usual = (1 - OTHERWISE) * np.exp(-off / scale) / scale
    return float(np.log(usual + OTHERWISE * np.exp(-off / WIDE) / WIDE).mean())


def _floor(own: Curve) -> float:
    """Return the relative deviation caused by path details."""
    import numpy as np

    return float((FLOOR + FLOOR_SEGMENTS / np.exp(own.logs)).mean())


def spreads(made: Sequence[Curve], apart: Callable[[Curve, Curve], float]) -> list[float]:
    """Return the distance from each run to the nearest other run."""
    return [min(apart(a, b) for b in made if b is not a) for a in made]


def likelihoods(own: Curve, runs: dict[str, list[Curve]], racers: Sequence[str], *, losses: int) -> dict[str, float]:
    """Return each candidate's log-likelihood over all the data, computed from the nearest run with either the
    deviation expected of an identical host or the deviation between the candidate's own runs.
    """
    import numpy as np

    pieces = min(len(own.logs), ROUNDS * (losses + 1) + 10)
    least = _floor(own)
    return {
        name: pieces
        * max(
            _likely(own, one, scale)
            for scale in (least, least + float(np.mean(spreads(runs[name], apart))))
            for one in runs[name]
        )
        for name in racers
    }


def same(some: Sequence[Curve], others: Sequence[Curve]) -> bool:
    """Return whether two candidates behave identically on every path, segment by segment."""
    import numpy as np

    if len(some) != len(others):  # one of them has not been run on all paths
        return False
    return all(np.array_equal(one.logs, other.logs) for one, other in zip(some, others, strict=True))
