"""Falls of the flight without a loss: what identifies a controller that draws random numbers.

No run of such a controller meets a capture's flight for long, because each draws its own numbers. How deep its flight
falls, how often, and how it grows in between does not depend on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ackclock.diagnose._curve import segment_by_segment

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float64]]

__all__ = ["Falls", "alike", "falls"]

LEAST = 4
"""Minimum number of falls in a capture; fewer may be those of any controller."""

SMALL, SMALL_SHARE = 0.5, 0.03
"""Difference between the maxima of two round trips that is no fall: in segments, and as a fraction."""

EARLIER = 2
"""Number of round trips before a fall within which a loss may have caused it."""

INSIDE, MIDDLE = 0.75, 0.5
"""Fraction of a capture's falls whose depth must lie within the depths of the runs; and the quantile compared."""

DEPTH_OFF, GROWTH_OFF, OFTENER = 0.03, 0.25, 3.0
"""Maximum difference of the median depths; of the mean growth, in segments a round trip; and maximum ratio of the
numbers of falls a round trip.
"""


@dataclass(frozen=True, kw_only=True)
class Falls:
    """Falls of a flight without a loss, and its growth otherwise.

    Parameters
    ----------
    depths
        Flight after each fall, as a fraction of that before it, in ascending order.
    growth
        Median growth in a round trip without a fall, segments.
    often
        Number of falls a round trip.
    """

    depths: tuple[float, ...]
    growth: float
    often: float


def falls(ends: Floats, flights: Floats, lost: Sequence[int], *, mss: int) -> Falls:
    """Return the falls without a loss of a sender's flight.

    Parameters
    ----------
    ends, flights
        See `Sent`, bytes.
    lost
        1-based offsets of the lost segments.
    mss
        Payload of a full segment, bytes.
    """
    import numpy as np

    most, upto = _round_trips(ends, flights, mss)
    holes = np.sort(np.asarray(lost, dtype=np.float64))
    depths: list[float] = []
    growth: list[float] = []
    at = 0
    while at < len(most) - 1:
        if most[at] - most[at + 1] <= max(SMALL, SMALL_SHARE * most[at]):
            growth.append(most[at + 1] - most[at])
            at += 1
            continue
        low = at + 1
        while low < len(most) - 1 and most[low + 1] < most[low]:
            low += 1
        since = upto[max(at - EARLIER, 0)] - most[at] * mss
        if np.searchsorted(holes, since) == np.searchsorted(holes, upto[low]):
            depths.append(most[low] / most[at])
        at = low
    return Falls(
        depths=tuple(sorted(depths)),
        growth=float(np.median(growth)) if growth else 0.0,
        often=len(depths) / max(len(most), 1),
    )


def _round_trips(ends: Floats, flights: Floats, mss: int) -> tuple[list[float], list[float]]:
    """Return the maximum in flight of each round trip, in segments, and the end of its data."""
    import numpy as np

    ends, flights = segment_by_segment(ends, flights, mss)
    una = np.maximum.accumulate(ends - flights)
    most: list[float] = []
    upto: list[float] = []
    at = 0
    while at < len(ends):
        then = max(int(np.searchsorted(una, ends[at])), at + 1)
        most.append(float(flights[at:then].max()) / mss)
        upto.append(float(ends[then - 1]))
        at = then
    return most, upto


def alike(own: Falls, runs: Sequence[Falls]) -> bool:
    """Return whether a capture's falls are those of a candidate's runs.

    Parameters
    ----------
    own
        Falls in the capture.
    runs
        Falls in the candidate's runs over the same path, each with its own random numbers.
    """
    import numpy as np

    depths = np.sort(np.concatenate([one.depths for one in runs])) if runs else np.zeros(0)
    if len(own.depths) < LEAST or len(depths) < LEAST:
        return False
    mine = np.asarray(own.depths)
    least, most = depths[0] - DEPTH_OFF, depths[-1] + DEPTH_OFF
    often = [one.often for one in runs]
    return bool(
        abs(np.quantile(mine, MIDDLE) - np.quantile(depths, MIDDLE)) <= DEPTH_OFF
        and np.mean((mine >= least) & (mine <= most)) >= INSIDE
        and abs(own.growth - float(np.median([one.growth for one in runs]))) <= GROWTH_OFF
        and min(often) / OFTENER <= own.often <= max(often) * OFTENER
    )
