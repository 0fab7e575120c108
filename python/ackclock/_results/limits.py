"""Causes that limited a sender, in words, for a simulated run or a capture."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ackclock.text import share

__all__ = ["CAUSES", "COLUMNS", "held", "sentence", "shares"]

CAUSES: Mapping[str, str] = {
    "handshake": "the handshake",
    "application": "the application, which had no more data",
    "rwnd": "the receiver's window",
    "sndbuf": "the send buffer",
    "cwnd": "the congestion window",
    "pacing": "pacing",
    "recovery": "the repair of losses",
    "timeout": "waits for the retransmission timer",
    "idle": "no data, none outstanding",
}
"""Causes in the engine's order, each with its limit in words."""

COLUMNS = {name: f"limit_{name}_s" for name in CAUSES}
"""Columns of tables `flows` and `limits`."""

SAID = 0.1
"""Fraction of the time above which a cause is named in addition to the first one."""


def held(row: Mapping[str, Any]) -> dict[str, float] | None:
    """Return the time by cause, s, from a row of `flows`; None if the run did not record it."""
    if row.get(COLUMNS["cwnd"]) is None:
        return None
    return {name: float(row[column]) for name, column in COLUMNS.items()}


def shares(seconds: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return the causes with their fractions of the time, largest first; idle time is excluded.

    Examples
    --------
    >>> shares({"cwnd": 1.0, "rwnd": 3.0, "idle": 6.0})
    [('rwnd', 0.75), ('cwnd', 0.25)]
    """
    busy = {name: value for name, value in seconds.items() if name != "idle" and value > 0}
    total = math.fsum(busy.values())
    return sorted(((name, value / total) for name, value in busy.items()), key=lambda pair: -pair[1])


def sentence(seconds: Mapping[str, float]) -> str:
    """Return the causes that limited the sender, as a sentence without a full stop; empty if it never sent.

    Examples
    --------
    >>> sentence({"cwnd": 0.5, "rwnd": 9.2, "recovery": 0.3, "idle": 0.0})
    "92 % of the time the receiver's window was the limit"
    >>> sentence({"cwnd": 6.0, "timeout": 4.0, "idle": 10.0})
    'it was idle for 50 % of its life; 60 % of the rest the congestion window was the limit, and 40 % waits for the retransmission timer'
    """
    whole = math.fsum(seconds.values())
    found = shares(seconds)
    if not found or whole <= 0:
        return ""
    idle = seconds.get("idle", 0.0) / whole
    first, most = found[0]
    what = CAUSES[first].split(",")[0]
    said = f"{share(most)} of the {'rest' if idle >= SAID else 'time'} {what} {'were' if first == 'timeout' else 'was'} the limit"
    others = [f"{share(part)} {CAUSES[name].split(',')[0]}" for name, part in found[1:3] if part >= SAID]
    said = ", ".join([said, *others[:-1]]) + (f", and {others[-1]}" if others else "")
    return f"it was idle for {share(idle)} of its life; {said}" if idle >= SAID else said
