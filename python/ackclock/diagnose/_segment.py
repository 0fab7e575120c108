"""Estimates the size of a full segment from a capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

__all__ = ["full_segment"]

USUAL_SEGMENT, LEAST_SEGMENT, LARGEST_SEGMENT = 1448, 500, 9000
"""Payload of a full segment, bytes: default without evidence, minimum and maximum."""

TIMESTAMPS = 12
"""Size of the timestamps option in each segment (RFC 7323, padded), bytes."""

CANDIDATES, MOST_LENGTHS, GAIN = 4, 200, 1.05
"""Number of common lengths that may be whole segments; number of lengths to be explained; how many times more bytes a
smaller segment must explain.
"""


PSH = 0x08

MANY, WRITTEN = 20, 0.9
"""Minimum number of packets of one length, and minimum fraction of them that end a write, above which it is the length
of the program's writes rather than of a full segment.
"""

NEAR = 0.9
"""Smallest fraction of the announced MSS that remains on a path with a smaller MTU, usually a tunnel."""


def full_segment(packets: pl.DataFrame, server: bool, announced: float | None = None) -> int:
    """Return the payload of a full segment: the largest size of which most bytes arrived in whole multiples.

    A segment of the announced size is full, even if another length is more frequent, because a program with small
    writes fills few segments. A NIC that splits packets gets several segments at a time, often always two. Such
    lengths reveal the size of one segment only together with other lengths, or with the announced MSS. Small writes
    of one size have a common length as well; each of their packets ends a write.

    Parameters
    ----------
    packets
        Packets from `ackclock.formats.read_capture`.
    server
        Whether the server sends the data.
    announced
        MSS that the receiver announced.
    """
    import polars as pl

    own = packets.filter((pl.col("from_server") == server) & (pl.col("kind") == "data") & (pl.col("length") > 0))
    if own.is_empty():
        return USUAL_SEGMENT
    allowed = int(announced or 0) - (TIMESTAMPS if own["timestamp"].max() else 0)
    usual = allowed if LEAST_SEGMENT <= allowed <= LARGEST_SEGMENT else USUAL_SEGMENT
    writes = _written(own, NEAR * usual)
    lengths = own.filter(pl.col("length") >= LEAST_SEGMENT)["length"]
    if lengths.is_empty():
        most = int(own["length"].max())  # type: ignore[arg-type]
        return usual if most in writes else most
    known = lengths.value_counts(sort=True).head(MOST_LENGTHS).rows()
    if dict(known).get(allowed, 0) > 1:
        return allowed
    most = min(LARGEST_SEGMENT, int(announced) if announced else LARGEST_SEGMENT)
    sizes = {
        length // parts
        for length, _ in known[:CANDIDATES]
        for parts in range(1, length // LEAST_SEGMENT + 1)
        if length % parts == 0
    }
    best, covers = 0, 0
    for size in sorted((size for size in sizes if size <= most and size not in writes), reverse=True):
        explained = [(length, count) for length, count in known if length % size == 0]
        if len(explained) == 1 and explained[0][0] != size and size < NEAR * allowed:
            # A single multi-segment length, perhaps with a short last segment, does not show that the path has a
            # smaller MTU.
            continue
        covered = sum(length * count for length, count in explained)
        if covered > covers * GAIN:  # a fraction of a segment explains the same lengths, but no more
            best, covers = size, covered
    return best or usual


def _written(own: pl.DataFrame, below: float) -> set[int]:
    """Return the lengths below a bound at which nearly every packet ends a write: a path with a small MTU cuts writes
    into many segments, and only the last of each is marked.
    """
    import polars as pl

    marked = (pl.col("flags") & PSH > 0).sum()
    counted = own.filter(pl.col("length") < below).group_by("length").agg(pl.len().alias("n"), marked.alias("marked"))
    return set(counted.filter((pl.col("n") >= MANY) & (pl.col("marked") >= WRITTEN * pl.col("n")))["length"])
