"""Values that vary slightly between independent runs. The judge treats identical runs specially: even if none of n
runs differed, up to three of them may (rule of three). Made-up tables for claims therefore vary slightly from run to
run.
"""

from __future__ import annotations

import zlib


def near(value: float, *run: object, by: float = 1e-3) -> float:
    """Return the value with a relative deviation of at most `by`, always the same one for a given run.

    Parameters
    ----------
    value Mean over runs. run Identity of the run: cell, arm and seed. by Largest deviation, relative to the value.
    """
    return value * (1 + by * (2 * zlib.crc32(repr(run).encode()) / 0xFFFF_FFFF - 1))
