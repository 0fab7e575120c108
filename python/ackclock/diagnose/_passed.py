"""Times at which packets passed the bottleneck, and how long each had waited there.

An ACK may be late but never early: the receiver delays some (RFC 5681), or reports several segments above a hole at a
time. However, a packet leaves the bottleneck before the packets behind it, by at least their transmission time. The
least delayed ACK in the next round trips therefore determines the time. A lost packet would have left after the
packet before it.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float64]]
    Ints = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["Passed", "Waits"]

HORIZON = 4
"""Number of median RTTs within which later ACKs are used. A loss repair, during which all ACKs may be late, takes one RTT."""

PASSES = 3
"""Number of passes over one ACK's segments: each determines the time of one more segment after the last precise ACK."""

CALM = 0.5
"""Minimum fraction of the data before the last ACK at which nothing was missing if later ACKs are to be ignored."""

HELD_S = 1.1e-3
"""Maximum ACK delay while segments are missing, s (Linux, with the slack of its timer). No ACK reveals how long the
delay was.
"""

NEAR = 0.01
"""Maximum deviation of the time between two ACKs from a whole number of packets, in packet transmission times."""

SETTLED = 3
"""Number of ACKs after a loss, one of which must be as late as the ACK before it; individual ACKs may vary."""

SOON = 0.98
"""Fraction of the base RTT before which no ACK can belong to a transmission."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Waits:
    """Waiting times in the queue, s.

    Parameters
    ----------
    longest
        Longest wait of a delivered packet.
    lost
        Wait that each lost packet would have had.
    beyond
        Segments by which each lost packet would have lengthened the queue beyond what any delivered packet saw; not
        positive if there was room.
    """

    longest: float
    lost: Floats
    beyond: Floats


@dataclass(slots=True)
class Passed:
    """Departures in order, including retransmissions, and the times at which ACKs reported them."""

    left: array[float] = field(default_factory=lambda: array("d"))
    size: array[int] = field(default_factory=lambda: array("l"))
    told: array[float] = field(default_factory=lambda: array("d"))
    """Time of the reporting ACK, s; -1 for packets that, according to the capture, did not arrive."""
    place: array[int] = field(default_factory=lambda: array("q"))
    """Bytes delivered up to this packet, in order of departure."""
    lost: array[int] = field(default_factory=lambda: array("l"))
    """Numbers of the retransmitted packets."""

    calm: float = -1.0
    """Time of the last ACK at which nothing was missing; all later ACKs may be delayed."""

    def add(self, t: float, size: int) -> int:
        """Add a departure; return its number."""
        self.left.append(t)
        self.size.append(size)
        self.told.append(-1.0)
        self.place.append(0)
        return len(self.left) - 1

    def tell(self, numbers: list[int], t: float, delivered: int) -> None:
        """Record packet arrivals, after which `delivered` bytes had been delivered."""
        for number in sorted(set(numbers), reverse=True):
            self.told[number], self.place[number] = t, delivered
            delivered -= self.size[number]

    def waits(self, *, base: float, rate: float, mss: int, whole: bool = True) -> Waits:
        """Return the packets' waiting times.

        Parameters
        ----------
        base
            Minimum round trip of a full segment, s.
        rate
            Payload that the bottleneck carries, bit/s.
        mss
            Payload of a full segment, bytes.
        whole
            Whether the capture is complete: then no ACK is missing between two others.
        """
        import numpy as np

        left, told = np.frombuffer(self.left), np.frombuffer(self.told)
        size, place = np.frombuffer(self.size, dtype="l"), np.frombuffer(self.place, dtype="q")
        came = np.flatnonzero(told >= 0)
        came = came[np.argsort(place[came], kind="stable")]
        lost = np.asarray(self.lost, dtype=np.int64)
        if not came.size:
            return Waits(longest=0.0, lost=np.zeros(len(lost)), beyond=np.zeros(len(lost)))
        packet = 8 * mss / rate
        passes = 8 * place[came] / rate
        if whole:
            passes[1:] += np.cumsum(self._between(came, lost, base=base, rate=rate, mss=mss))
        ahead = max(int(HORIZON * float(np.median(told[came] - left[came])) * rate / 8 / mss), 2)
        through = passes + _least_ahead(told[came] - passes, ahead)
        takes = 8 * size[came] / rate
        apart = np.diff(told[came], prepend=-1.0, append=-1.0) != 0.0
        # An ACK for several packets was sent when the last of them arrived. The others, or a single packet, may
        # have waited for it.
        held = ~apart[1:] | (apart[:-1] & (size[came] < 2 * mss))
        soonest = left[came] + base
        for _ in range(PASSES):
            behind = np.maximum(soonest, np.concatenate([[0.0], through[:-1]]) + takes)
            through = np.where(held, np.minimum(through, behind), through)
        # in order and not reported too soon: otherwise the ACK may report another transmission
        sure = (came == np.maximum.accumulate(came)) & (told[came] - left[came] >= SOON * base)
        early = told[came] <= self.calm
        sure &= early | (early.mean() < CALM)
        came, through = came[sure], through[sure]
        if not came.size:
            return Waits(longest=0.0, lost=np.zeros(len(lost)), beyond=np.zeros(len(lost)))
        filled = through - left[came] - base + packet  # including its own transmission
        at = np.searchsorted(came, lost) - 1
        before = np.where(at >= 0, through[np.maximum(at, 0)], 0.0)
        waits = np.maximum(before + packet - left[lost] - base, 0.0)
        return Waits(
            longest=float((filled - 8 * size[came] / rate).max(initial=0.0)),
            lost=waits,
            beyond=(waits + 8 * size[lost] / rate - filled.max()) / packet,
        )

    def _between(self, came: Ints, lost: Ints, *, base: float, rate: float, mss: int) -> Floats:
        """Return how long, between two delivered packets, the bottleneck was busy with packets lost behind it.
        The later packet was already queued when the earlier one left the bottleneck, so everything between their ACKs
        is a whole number of packets. Zero if a packet's transmission is shorter than the time for which an ACK may be
        delayed.
        """
        import numpy as np

        left, told, size = np.frombuffer(self.left), np.frombuffer(self.told), np.frombuffer(self.size, dtype="l")
        packet = 8 * mss / rate
        made = np.zeros(max(len(came) - 1, 0))
        if packet <= HELD_S:
            return made
        most = np.diff(np.searchsorted(np.sort(lost), came))
        late = told[came] - np.cumsum(8 * size[came] / rate)
        for at in np.flatnonzero(most).tolist():
            then = np.arange(at + 1, min(at + 1 + SETTLED, len(came)))
            waited = np.minimum.accumulate(left[came[then]] + base < told[came[at]] - HELD_S)
            whole = np.rint((late[then] - late[at]) / packet)
            near = np.abs(late[then] - late[at] - whole * packet) < NEAR * packet
            sure = whole[
                waited & near & (whole >= 1) & (whole <= most[at]) & (np.cumsum(most[at : at + len(then)]) == most[at])
            ]
            made[at] = packet * sure[0] if sure.size else 0.0
        return made


def _least_ahead(values: Floats, count: int) -> Floats:
    """Return, for each value, the minimum over it and the following ones, in windows of this length."""
    import numpy as np

    padded = np.full(-(-(len(values) + count) // count) * count, np.inf)
    padded[: len(values)] = values
    blocks = padded.reshape(-1, count)
    since = np.minimum.accumulate(blocks, axis=1).ravel()
    until = np.minimum.accumulate(blocks[:, ::-1], axis=1)[:, ::-1].ravel()
    return np.minimum(until[: len(values)], since[count - 1 : count - 1 + len(values)])
