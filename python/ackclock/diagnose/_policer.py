"""Detects a policer: a token bucket that fills at a fixed rate and drops packets that find it empty, without delaying any.

The test is that of Flach et al. (An Internet-Wide Analysis of Traffic Policing, SIGCOMM 2016). The bytes that passed
between the first and the last loss determine the rate. The bucket, empty at the first loss, is filled at that rate,
and each delivered segment removes its bytes. A policer drops segments that find the bucket empty, and passes all
others. Random losses occur at any level; a queue delays packets before it drops some.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from ackclock.diagnose._curve import Sent
    from ackclock.diagnose._path import Path

__all__ = ["Policer", "policed"]

LEAST_LOST = 15
"""Minimum number of losses for a policer to be reported."""

FULL_QUEUE = 0.2
"""Maximum fraction of losses at a full queue. A queue, too, drops packets beyond a rate and a burst, but it delays the
others.
"""

FULL, OVERDRAWN = 0.1, 0.03
"""Maximum fraction of lost segments that may have found tokens, and of delivered ones that may have found none."""

NEAR_SEGMENTS = 4
"""Uncertainty in the bucket level, segments: departure times are known, arrival times at the bucket are not."""

FASTER = 1.1
"""Factor by which the path must at some time have been faster than the policer. Otherwise a very short queue explains
the losses.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Policer:
    """A policer on the path.

    Parameters
    ----------
    rate_bps
        Payload rate that the policer allows, bit/s.
    burst_bytes
        Bytes that passed in a burst before the first loss, beyond that rate.
    """

    rate_bps: float
    burst_bytes: float


def policed(packets: pl.DataFrame, shown: Sent, path: Path, *, server: bool, mss: int) -> Policer | None:
    """Return the policer revealed by the losses; None if there is none.

    Parameters
    ----------
    packets
        Packets in the sender's order.
    shown
        Lost transmissions.
    path
        Other estimates of the path.
    server
        Whether the server sends the data.
    mss
        Payload of a full segment, bytes.
    """
    import polars as pl

    losses = path.sent_again_full + path.sent_again_part_full + path.sent_again_empty
    stood = path.identified and path.sent_again_full > FULL_QUEUE * losses
    if len(shown.lost_at) < LEAST_LOST or stood or path.rate_bps is None:
        return None
    rows = packets.filter(
        (pl.col("from_server") == server) & ~pl.col("kind").is_in(["sack", "dsack", "syn"]) & (pl.col("length") > 0)
    )
    lost = set(shown.lost_at)
    times: dict[int, int] = {}
    sent: list[tuple[float, int, bool]] = []
    for t, seq, length in rows.select("t_s", "seq", "length").iter_rows():
        for start in range(int(seq), int(seq + length), mss):
            number = times.get(start, 0)
            times[start] = number + 1
            sent.append((t, min(mss, int(seq + length) - start), (start, number) in lost))
    at = [i for i, (_, _, gone) in enumerate(sent) if gone]
    if len(at) < LEAST_LOST:
        return None
    first, last = at[0], at[-1]
    span = sent[last][0] - sent[first][0]
    passed = sum(size for _, size, gone in sent[first : last + 1] if not gone)
    if span <= 0 or not passed:
        return None
    rate = passed / span  # bytes/s
    if path.rate_bps < FASTER * 8 * rate:
        return None
    near = NEAR_SEGMENTS * mss + 0.01 * passed**0.5 * mss**0.5
    tokens, before = 0.0, sent[first][0]
    some = none = came = 0
    for t, size, gone in sent[first : last + 1]:
        tokens += rate * (t - before)
        before = t
        if gone:
            some += tokens > near
            tokens = min(tokens, near)  # the bucket was empty here
        else:
            came += 1
            tokens -= size
            none += tokens < -near
            tokens = max(tokens, -near)
    if some > FULL * len(at) or none > OVERDRAWN * came:
        return None
    early = sum(size for _, size, _ in sent[:first])
    burst = max(early - rate * (sent[first][0] - sent[0][0]), 0.0)
    if burst < mss:  # a bucket is full before the first packet, so these losses have a different cause
        return None
    return Policer(rate_bps=8 * rate, burst_bytes=burst)
