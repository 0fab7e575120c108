"""Notes on the limits of a diagnosis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ackclock.text import seconds as told_seconds
from ackclock.text import share

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ackclock.diagnose._path import Path
    from ackclock.diagnose._replay import Replay

__all__ = ["ANY", "BOTH", "BUFFERED", "EITHER", "label", "notes", "together"]

BOTH = "pacing or the congestion window"
"""Cause for a paced sender limited by pacing or the window; a capture does not show by which."""

ANY = "pacing, the congestion window, a queue in the sender's host or a program at a pace"
"""Cause for a paced sender on a path without a queue: a queue in the host and a program also space packets out."""
EITHER = "the congestion window or the send buffer"
"""Cause for a sender with the same bytes in flight in every round trip."""

BUFFERED = "the application or its send buffer"
"""Cause for a sender whose application writes after ACKs, up to the same amount in flight."""

NEARER, NEARER_S = 20, 0.02
"""Minimum handshake RTT, in base RTTs and in seconds, indicating that the handshake was answered by a host further away than the data receiver."""

WORTH_TELLING = 0.01
"""Minimum fraction of the time for a cause to be reported; the accuracy of the causes is no better."""


def together(
    seconds: Mapping[str, float], paced: bool, unqueued: bool = False, level: bool = False
) -> dict[str, float]:
    """Return times by cause. If the sender paces, the congestion window's time is added to `pacing`, and so is that
    of a possible queue in the host.

    Parameters
    ----------
    seconds
        Seconds by cause.
    paced
        Whether a timer releases packets.
    unqueued
        Whether the sender paces, and there was no queue on the path.
    level
        Whether the bytes in flight are the same in every round trip: then the send buffer counts as the congestion window.
    """
    made = dict(seconds)
    if paced:
        made["pacing"] += made["cwnd"]
        made["cwnd"] = 0
    if level:
        made["cwnd"] += made["sndbuf"]
        made["sndbuf"] = 0
    if unqueued:
        made["pacing"] += made["sndbuf"]
        made["sndbuf"] = 0
    return made


def label(name: str, paced: bool, unqueued: bool = False, level: bool = False) -> str:
    """Return a cause in words.

    Parameters
    ----------
    name
        See `CAUSES`.
    paced
        Whether the sender paces.
    unqueued
        Whether it does, and there was no queue on the path.
    level
        Whether the bytes in flight are the same in every round trip.
    """
    from ackclock._results.limits import CAUSES

    if level and name == "cwnd":
        return f"{EITHER}, not told apart"
    return f"{ANY if unqueued else BOTH}, not told apart" if paced and name == "pacing" else CAUSES[name]


def notes(
    played: Replay,
    path: Path,
    *,
    at: str,
    missed: float,
    inferred: tuple[int, int, int],
    unexplained: float,
    row: Mapping[str, Any],
    cut: bool = False,
) -> tuple[str, ...]:
    """Return the notes as sentences.

    Parameters
    ----------
    played, path
        Replay and path of the diagnosis.
    at
        Capture point.
    missed
        Fraction of the data that the capture missed.
    inferred
        Inferred ACKs and repairs that the capture lacks, and missing packets of unknown content.
    unexplained
        Fraction of the time that nothing visible at the receiver explains.
    row
        Row of the connection.
    cut
        Whether the file ends within a frame.
    """
    acks, repairs, unknown = inferred
    made = []
    if cut:
        made.append("The file ends within a frame, as when a capture is killed: the rest is missing.")
    if at == "receiver":
        trip = path.queued_rtt_s or row["rtt_max_s"] or 0.0
        made.append(
            f"Captured at the receiver: the sender's last round trip ({told_seconds(trip)} at most) is missing. If the last segments of "
            "a flight were lost, some of the repair may count as the congestion window or the application."
        )
        if repairs:
            made.append(
                f"{repairs:,} repairs were lost on their way to the capture; they show in the sender's later packets."
            )
        if unexplained > WORTH_TELLING:
            made.append(
                f"For {share(unexplained)} of the time packets left without an ACK that could have released them. The capture does not show why: this "
                "time counts as the application's."
            )
        if unknown:
            made.append(
                f"{unknown:,} packets were lost on their way to the capture and their content is unknown: they are not among the losses."
            )
    elif missed > 0 or acks or repairs:
        made.append(
            f"The capture has missed packets ({share(missed)} of the data, and ACKs). {acks:,} ACKs and {repairs:,} repairs are inferred from "
            "later packets; in a short transfer the shares of causes may be off by some percent."
        )
    hand, base = row["handshake_rtt_s"], path.base_rtt_s
    if at == "sender" and hand and base and hand > max(NEARER * base, NEARER_S) and not row["syn_again"]:
        made.append(
            f"The handshake took {told_seconds(hand)}, and ACKs came within {told_seconds(base)}: something near the sender (a proxy, the network of a virtual machine) "
            "acknowledges in the receiver's place, or the receiver was slow to accept. What lies behind a proxy does not show here."
        )
    if played.paced and not path.identified:
        made.append(
            "Packets leave at a pace, and no queue built up on the path: a capture cannot distinguish a set rate, the congestion window, a queue in the sender's "
            "own host and a program that writes full segments at a pace. All count together; `tc -s qdisc` at the sender shows that queue, `notsent` of "
            "`ss -ti` whether the program had written more."
        )
    elif played.paced:
        made.append(
            "The sender paces: a capture cannot distinguish a wait for the next departure time from one for the congestion window. Both count together."
        )
    if played.level:
        made.append(
            "The data in flight is the same in every round trip, and nothing is lost: a send buffer does that (`net.ipv4.tcp_wmem`, `SO_SNDBUF`), and so does a congestion "
            "window that does not grow. The capture cannot distinguish them; `sndbuf_limited` of `ss -ti` at the sender does."
        )
    if played.buffered:
        made.append(
            "Each write came shortly after an ACK and brought the data in flight to the same amount: a full send buffer wakes its program like that. The "
            "capture cannot distinguish the two; `sndbuf_limited` of `ss -ti` at the sender does."
        )
    if path.rate_bps is not None and not path.identified:
        made.append("No queue lasted: the rate is a lower bound, and so are the bytes lost to each cause.")
    if path.queue_s is not None and path.queue_bound:
        made.append("Losses at a full queue do not agree on its length, which is therefore a lower bound.")
    return tuple(made)
