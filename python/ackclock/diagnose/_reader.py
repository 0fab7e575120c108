"""The receiver's application, as its window shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ackclock.diagnose._replay import Replay

__all__ = ["is_closed", "read_bps"]


def is_closed(played: Replay) -> bool:
    """Return whether the receive window was below half its maximum for most of the time in which it was the
    limit, which indicates a slowly reading application.

    Parameters
    ----------
    played
        Replay of the sender.
    """
    largest, shut, held = 0, 0.0, 0.0
    for now, then, cause in zip(played.instants, played.instants[1:], played.causes, strict=False):
        offered = now.room + now.nxt - now.una
        largest = max(largest, offered)
        if cause == "rwnd":
            held += then.t - now.t
            shut += then.t - now.t if offered < largest / 2 else 0.0
    return shut > held / 2


def read_bps(played: Replay) -> float:
    """Return the rate at which the receiver's application made room, from the first to the last time that its window was
    the limit, less idle times, bit/s. What fills the buffer first and what stays in it was not read.

    Parameters
    ----------
    played
        Replay of the sender.
    """
    limits = [at for at, cause in enumerate(played.causes) if cause == "rwnd"]
    if not limits:
        return 0.0
    edges = [now.room + now.nxt for now in played.instants[: limits[-1] + 2]]
    made = max(edges) - max(edges[: limits[0] + 1])
    held = sum(
        played.instants[at + 1].t - played.instants[at].t
        for at in range(limits[0], limits[-1] + 1)
        if played.causes[at] != "idle"
    )
    return 8 * made / max(held, 1e-9)
