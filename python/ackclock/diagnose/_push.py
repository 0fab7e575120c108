"""Meaning of PSH in a capture: the end of a write, or nothing.

Linux marks the last segment of a write, a segment whenever half the largest window has been written since the last
mark (`forced_push`), and the last segment of every multi-segment packet (`__tcp_transmit_skb`). Other stacks,
including ours, mark segments that leave nothing to send. The capture shows which stack it is: if bursts ended
by a window or by pacing are marked as well, the mark means nothing. A segment that is not full always ends a write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

__all__ = ["marks_tell", "without_marks"]

PSH = 0x08

LEAST, MARKED = 3, 0.8
"""Minimum number of multi-segment packets, and fraction marked above which the mark means nothing."""

ENDED = 0.3
"""Fraction of bursts marked, among those with a full last segment, above which the mark means nothing."""

BURSTS = 10
"""Number of multi-segment bursts that suffices if single segments are marked only at the end of a write."""

BY_SIZE, OFTENER = 0.15, 5.0
"""Minimum fraction of marked bursts, and minimum ratio to the fraction of marked single segments, above which packet
size is taken as the cause of the mark. A burst may end in a single segment after larger packets, so that few bursts need to be
marked.
"""


def marks_tell(packets: pl.DataFrame, *, server: bool, mss: int, apart: float | None) -> bool:
    """Return whether PSH on a full segment shows the end of a write.

    A host that hands multi-segment packets to its NIC marks nearly all of them, which is visible at the sender. If a
    NIC, a switch or the path has split them, nearly every burst ends in a mark. Large packets at the receiver were
    merged there, regardless of the sender's marks.

    Parameters
    ----------
    packets
        Packets from `ackclock.formats.read_capture`.
    server
        Whether the server sends the data.
    mss
        Payload of a full segment, bytes.
    apart
        Maximum gap between packets of one burst, s; None at the receiver, where packets with one timestamp and one echo
        form a burst.
    """
    import polars as pl

    own = packets.filter((pl.col("from_server") == server) & (pl.col("kind") == "data") & (pl.col("length") > 0))
    full = own.filter((pl.col("length") >= mss) & (pl.col("length") % mss == 0))
    marked = (pl.col("flags") & PSH) > 0
    several = full.filter(pl.col("length") > mss)
    if apart is not None and several.height >= LEAST:
        return float(several.select(marked.mean()).item()) < MARKED
    last = (
        (pl.col("timestamp") != pl.col("timestamp").shift(-1)) | (pl.col("echo") != pl.col("echo").shift(-1))
        if apart is None
        else (pl.col("t_s").shift(-1) - pl.col("t_s")) > apart
    ).fill_null(value=True)
    bursts = own.group_by(last.shift(1, fill_value=False).cum_sum().alias("burst"), maintain_order=True).agg(
        pl.col("length").sum().alias("whole"),
        pl.col("length").last(),
        (pl.col("flags").last() & PSH > 0).alias("marked"),
    )
    ends = bursts.filter((pl.col("length") >= mss) & (pl.col("length") % mss == 0))
    of_all = _share(ends) if ends.height >= LEAST else 0.0
    # a sender that marks multi-segment packets does not mark single segments
    large, single = ends.filter(pl.col("whole") > mss), ends.filter(pl.col("whole") == mss)
    of_large = _share(large) if large.height >= BURSTS else 0.0
    by_size = of_large >= max(BY_SIZE, OFTENER * _share(single))
    return max(of_large, of_all) < ENDED and not by_size


def _share(bursts: pl.DataFrame) -> float:
    """Return the fraction of bursts with a marked last segment."""
    return float(bursts["marked"].sum()) / bursts.height if bursts.height else 0.0


def without_marks(packets: pl.DataFrame, *, server: bool, mss: int) -> pl.DataFrame:
    """Return the packets with PSH removed from one side's full segments.

    Parameters
    ----------
    packets, server, mss
        See `marks_tell`.
    """
    import polars as pl

    full = (pl.col("from_server") == server) & (pl.col("length") >= mss) & (pl.col("length") % mss == 0)
    plain = pl.col("flags") & (0xFFFF ^ PSH)
    return packets.with_columns(flags=pl.when(full).then(plain).otherwise("flags").cast(packets.schema["flags"]))
