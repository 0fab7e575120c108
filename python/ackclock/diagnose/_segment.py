"""How large a full segment is, as a capture shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

__all__ = ["full_segment"]

USUAL_SEGMENT, LEAST_SEGMENT, LARGEST_SEGMENT = 1448, 500, 9000
"""Payload of a full segment, bytes: without anything that tells, and its bounds."""

TIMESTAMPS = 12
"""Bytes that the timestamps option takes of each segment (RFC 7323, padded)."""

CANDIDATES, MOST_LENGTHS, GAIN = 4, 200, 1.05
"""Lengths, the commonest first, that may be whole segments; those that are explained; by how much more bytes a smaller segment must explain."""


NEAR = 0.9
"""Part of what the receiver has announced that a path with a smaller MTU, a tunnel as a rule, still takes."""


def full_segment(packets: pl.DataFrame, server: bool, announced: float | None = None) -> int:
    """Payload of a full segment: the largest size that most of the bytes came in whole numbers of.

    One of all that the receiver has announced is full, whatever is commoner: a program that writes little at a time fills few.

    A card that cuts packets is given several segments at a time, as a rule perhaps two: only together with others do they show what one
    is, or together with what the receiver has announced.

    Parameters
    ----------
    packets
        Of `ackclock.formats.read_capture`.
    server
        Whether the data is the server's.
    announced
        What the receiver has announced.
    """
    import polars as pl

    own = packets.filter((pl.col("from_server") == server) & (pl.col("kind") == "data") & (pl.col("length") > 0))
    if own.is_empty():
        return USUAL_SEGMENT
    lengths = own.filter(pl.col("length") >= LEAST_SEGMENT)["length"]
    if lengths.is_empty():
        return int(own["length"].max())  # type: ignore[arg-type]
    known = lengths.value_counts(sort=True).head(MOST_LENGTHS).rows()
    allowed = int(announced or 0) - (TIMESTAMPS if own["timestamp"].max() else 0)
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
    for size in sorted((size for size in sizes if size <= most), reverse=True):
        explained = [(length, count) for length, count in known if length % size == 0]
        if len(explained) == 1 and explained[0][0] != size and size < NEAR * allowed:
            continue  # one length alone, of several segments the last of which need not be full, does not show that a path takes less
        covered = sum(length * count for length, count in explained)
        if covered > covers * GAIN:  # a part of a segment explains as much as the whole, but no more
            best, covers = size, covered
    return best or (allowed if LEAST_SEGMENT <= allowed <= LARGEST_SEGMENT else USUAL_SEGMENT)
