"""Values as independent runs give them: near to one another, and no two alike.

Runs that are all alike are a matter of their own to the judge: one of three runs in n may differ where none of n does. So tables that are made
up for what a claim reads of them have a little chance in every run.
"""

from __future__ import annotations

import zlib


def near(value: float, *run: object, by: float = 1e-3) -> float:
    """The value, off by at most the part `by` of it; the same for the same run.

    Parameters
    ----------
    value
        What runs have on average.
    run
        What names the run: its cell, its arm and its seed.
    by
        Largest deviation, relative to the value.
    """
    return value * (1 + by * (2 * zlib.crc32(repr(run).encode()) / 0xFFFF_FFFF - 1))
