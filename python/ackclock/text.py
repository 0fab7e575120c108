"""Numbers as text for readers: rates, durations, shares."""

from __future__ import annotations

from typing import Any

__all__ = ["rate", "seconds", "share"]

NONE = "–"
"""What did not happen."""


def rate(bps: float | None) -> str:
    """A rate.

    Examples
    --------
    >>> rate(9_544_000.0)
    '9.544 Mbit/s'
    """
    if bps is None:
        return NONE
    for size, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bps >= size:
            return f"{bps / size:.3f} {unit}"
    return f"{bps:.0f} bit/s"


def seconds(value: Any) -> str:
    """A duration.

    Examples
    --------
    >>> seconds(1.5), seconds(0.0402)
    ('1.500 s', '40.20 ms')
    """
    if value is None:
        return NONE
    return f"{value:.3f} s" if value >= 1 else f"{value * 1e3:.2f} ms"


def share(value: float) -> str:
    """A share, in percent.

    Examples
    --------
    >>> share(0.9734), share(0.0023)
    ('97 %', '0.23 %')
    """
    percent = value * 100
    return f"{percent:.0f} %" if percent >= 10 or percent == 0 else f"{percent:.2g} %"
