"""Values with a small variation between independent runs. The judge treats runs that are all identical specially: up to three of n runs may
differ although none did (rule of three). Made-up tables for claims therefore vary slightly in every run.
"""

from __future__ import annotations

import zlib


def near(value: float, *run: object, by: float = 1e-3) -> float:
    """Return the value with a relative deviation of at most `by`; a given run always gets the same deviation.

    Parameters
    ----------
    value Mean over runs. run Identity of the run: cell, arm and seed. by Largest deviation, relative to the value.
    """
    return value * (1 + by * (2 * zlib.crc32(repr(run).encode()) / 0xFFFF_FFFF - 1))
