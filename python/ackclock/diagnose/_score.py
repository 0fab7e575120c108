"""Distances of flights over the data, and likelihoods of candidates for a congestion control."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ackclock.diagnose._curve import Curve

__all__ = ["apart", "likelihoods", "mostly", "same", "spreads"]

FLOOR, FLOOR_SEGMENTS = 0.005, 0.25
"""Relative and absolute change, in segments, that a lost ACK or another detail of the path causes in a flight."""

MOST = 0.7
"""Part of the data in which a candidate has to agree with the capture: hosts differ in when they cut, join and wake, which
changes an episode, and not the growth between losses or the decrease at each.
"""

OTHERWISE, WIDE = 0.2, 0.5
"""Share of the parts in which a candidate may deviate, because after a lost ACK many take another course, and the size
of that deviation.
"""

ROUNDS = 3
"""Independent parts of the data between two losses."""


def apart(one: Curve, other: Curve) -> float:
    """Return the mean relative difference of the flights; data not sent at all counts fully."""
    import numpy as np

    missing = abs(one.reached - other.reached)
    return float(np.abs(one.logs - other.logs).mean()) + missing


def mostly(one: Curve, other: Curve) -> float:
    """Return the mean relative difference of the flights where they are nearest, over `MOST` of the data: a single
    episode of a few losses takes another course in a host that is a little different, and both are equal again behind it.
    """
    import numpy as np

    off = np.sort(np.abs(one.logs - other.logs))
    return float(off[: max(int(MOST * len(off)), 1)].mean()) + abs(one.reached - other.reached)


def _likely(own: Curve, other: Curve, scale: float) -> float:
    """Return the mean log-likelihood of a part of the data."""
    import numpy as np

    off = np.abs(own.logs - other.logs) + abs(own.reached - other.reached)
    usual = (1 - OTHERWISE) * np.exp(-off / scale) / scale
    return float(np.log(usual + OTHERWISE * np.exp(-off / WIDE) / WIDE).mean())


def _floor(own: Curve) -> float:
    """Return the relative deviation that details of a path cause."""
    import numpy as np

    return float((FLOOR + FLOOR_SEGMENTS / np.exp(own.logs)).mean())


def spreads(made: Sequence[Curve], apart: Callable[[Curve, Curve], float]) -> list[float]:
    """Return the distance of each run to the nearest of the others."""
    return [min(apart(a, b) for b in made if b is not a) for a in made]


def likelihoods(own: Curve, runs: dict[str, list[Curve]], racers: Sequence[str], *, losses: int) -> dict[str, float]:
    """Return the log-likelihood of each racer over the whole data: of its nearest run, as a host that does the same by
    chance, or of one that differs as its own runs do.
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
    """Return whether two candidates do the same on every path, segment by segment."""
    import numpy as np

    if len(some) != len(others):  # one of them was left on the way
        return False
    return all(np.array_equal(one.logs, other.logs) for one, other in zip(some, others, strict=True))
