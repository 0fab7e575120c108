"""Detects a slow start that ended early: the window stopped doubling without a loss, far below the path's capacity."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ackclock.diagnose._path import Path
    from ackclock.diagnose._replay import Replay

__all__ = ["early_end"]

SMALL = 0.5
"""Fraction of the path's capacity, in bytes in flight, below which slow start has ended early."""

DOUBLES, CREEPS = 1.5, 1.25
"""Growth of the bytes in flight per round trip: minimum during slow start, maximum afterwards."""

TRIPS = 3
"""Number of consecutive round trips with slow growth."""


def early_end(played: Replay, path: Path, mss: int) -> int | None:
    """Return the bytes in flight at the end of slow start; None unless slow start ended early and without a loss.

    Parameters
    ----------
    played
        Replay of the sender.
    path
        Estimates of the path; without a rate nothing is early.
    mss
        Payload of a full segment, bytes.
    """
    if not path.identified or path.rate_bps is None or path.base_rtt_s is None:
        return None
    holds = path.rate_bps / 8 * path.base_rtt_s
    most: list[int] = []
    clocked: list[bool] = []
    ends = float("-inf")
    for now, cause in zip(played.instants, played.causes, strict=False):
        if now.recovering or now.expired:
            break
        if now.rtt is not None and now.t >= ends:
            ends = now.t + now.rtt
            most.append(0)
            clocked.append(False)
        if most:
            most[-1] = max(most[-1], now.nxt - now.delivered)
            clocked[-1] = clocked[-1] or cause in ("cwnd", "pacing")
    for i in range(len(most) - TRIPS):
        steps = [
            (after + 1) / (before + 1) for before, after in zip(most[i:], most[i + 1 : i + 1 + TRIPS], strict=False)
        ]
        if (
            steps
            and all(1.0 - mss / (most[i] + 1) <= step <= CREEPS for step in steps)
            and all(clocked[i : i + TRIPS + 1])
        ):
            grown = i == 0 or most[i] >= DOUBLES * most[max(i - 2, 0)]
            return most[i] if grown and 4 * mss <= most[i] < SMALL * holds else None
    return None
