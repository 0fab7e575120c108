"""Compares the packets sent by two hosts one by one: flags, numbers, lengths, options and windows, and times within a
tolerance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

__all__ = ["NEAR_S", "different_packet"]

NEAR_S = 0.0025
"""Maximum time difference, s, between packets that count as sent at the same time: two timer ticks, plus the few
microseconds by which an injected packet is late in the kernel.
"""

NEAR_STAMPS = 3
"""Tolerance for timestamps, which are read from clocks with 1 ms resolution."""

_STAMP = re.compile(r"TS val (\d+) ecr (\d+)")


def different_packet(ours: Sequence[str], theirs: Sequence[str]) -> str | None:
    """Return the first differing packet, in words; None if all are identical.

    Parameters
    ----------
    ours, theirs
        Traces of one script on two hosts (`Played.trace`), the simulator's and the kernel's.
    """
    pairs = zip_longest(_sent(ours), _sent(theirs))
    for number, (mine, its) in enumerate(pairs, start=1):
        if mine is None or its is None:
            who, (at, packet, _) = ("the kernel", its) if mine is None else ("the simulator", mine)
            return f"packet {number}: only {who} sends {packet} at {at:.4f} s"
        if _differ(mine, its):
            return f"packet {number}: {mine[1]} at {mine[0]:.4f} s, kernel {its[1]} at {its[0]:.4f} s"
    return None


_Sent = tuple[float, str, int | None]


def _sent(trace: Sequence[str]) -> Iterator[_Sent]:
    """Yield time, packet without its own timestamp, and that timestamp relative to the host's first one."""
    first: int | None = None
    for line in trace:
        at, direction, packet = line.split(" ", 2)
        if direction != ">":
            continue
        stamp = None
        if found := _STAMP.search(packet):
            value = int(found[1])
            first = value if first is None else first
            stamp = (value - first) % 2**32
            packet = packet.replace(found[0], f"TS ecr {found[2]}")
        yield float(at), packet, stamp


def _differ(mine: _Sent, its: _Sent) -> bool:
    if mine[1] != its[1] or abs(mine[0] - its[0]) > NEAR_S:
        return True
    return mine[2] is not None and its[2] is not None and abs(mine[2] - its[2]) > NEAR_STAMPS
