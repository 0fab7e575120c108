"""Location of the limit, in a word (the network, the server, the client, an application, or unknown), with a change
that would help and the certainty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ackclock.text import rate as told_rate
from ackclock.text import share as told_share

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ackclock.diagnose import Cause, Path, Policer

__all__ = ["Answer", "answer"]

SURE, LIKELY, CLOSE = 0.6, 0.4, 0.15
"""Minimum fraction of the time for the first cause to be certain, and to be likely; minimum lead over the next cause at another location."""

FULL = 0.2
"""Unused fraction of the path's capacity below which the path counts as full."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """Location of the limit.

    Parameters
    ----------
    where
        `network`, `server`, `client`, `application` (of the end that sends) or `not told`.
    what
        Description of the limit.
    helps
        Change that would help.
    sure
        `sure`, `likely` or `not told`.
    """

    where: str
    what: str
    helps: str
    sure: str

    def __str__(self) -> str:
        head = f"{self.where[:1].upper()}{self.where[1:]}"
        head = head if self.where == "not told" else f"The {head[:1].lower()}{head[1:]}"
        return f"{head}{' (likely)' if self.sure == 'likely' else ''}: {self.what}; {self.helps}."


def answer(
    causes: tuple[Cause, ...],
    path: Path,
    row: Mapping[str, Any],
    *,
    level: bool,
    buffered: bool,
    closed: bool,
    idle: float,
    policer: Policer | None = None,
    early: int | None = None,
    nagle: float = 0.0,
) -> Answer:
    """Return the answer.

    Parameters
    ----------
    causes, path
        Causes and path of the diagnosis.
    row
        The direction.
    level
        The bytes in flight are the same in every round trip.
    buffered
        The application may have been waiting for send buffer space.
    closed
        The receiver has closed its window, or advertises less than half of the earlier one.
    idle
        Fraction of the lifetime with nothing to send and nothing outstanding, which counts as the application's time here.
    policer
        Policer on the path, if the losses reveal one.
    early
        Segments in flight at the end of slow start, if it ended early without a loss.
    nagle
        Fraction of the lifetime in which Nagle's algorithm held back a short segment.
    """
    # Length: one sentence per location
    sender, receiver = ("server", "client") if row["way"] == "server" else ("client", "server")
    if not causes and idle > 0:
        return Answer(
            where="application",
            what=f"the {sender} had nothing to send: what it sent was acknowledged at once",
            helps="a program that writes sooner or more (notsent of ss -ti at the sender would be 0)",
            sure="sure",
        )
    if not causes:
        return Answer(
            where="not told", what="no time passes between its packets", helps="capture a transfer", sure="not told"
        )
    parts = {cause.name: cause.share * (1 - idle) for cause in causes}
    parts["application"] = parts.get("application", 0.0) + idle
    lost = {cause.name: cause for cause in causes}
    window = parts.get("cwnd", 0.0) + parts.get("pacing", 0.0)
    repair = parts.get("recovery", 0.0) + parts.get("timeout", 0.0)
    held = [lost[name] for name in ("cwnd", "pacing") if name in lost]
    spare = 1.0
    if path.identified and path.rate_bps and held:
        could = path.rate_bps / 8 * sum(one.seconds for one in held)
        spare = sum(one.lost_bytes or 0.0 for one in held) / could if could else 1.0
    full = window if path.identified and spare < FULL else 0.0
    found = {
        "network": full + repair,
        "window": window - full,
        "rwnd": parts.get("rwnd", 0.0),
        "application": parts.get("application", 0.0),
    }
    if policer is not None and found["network"] + found["window"] >= LIKELY:
        through = found["network"] + found["window"]
        rate = told_rate(policer.rate_bps * path.wire_bps / path.rate_bps) if path.rate_bps and path.wire_bps else ""
        return Answer(
            where="network",
            what=f"a policer lets {rate} with headers pass, and a burst of about {policer.burst_bytes / 1000:,.0f} kB; what is beyond is dropped at an empty queue, which "
            f"held the {sender} back for {told_share(through)} of the time",
            helps="a higher contracted rate, a shaper in place of the policer, or a sender that paces below that rate",
            sure="likely",
        )
    order = sorted(found, key=lambda name: -found[name])
    first, most = order[0], found[order[0]]
    sure = "sure" if most >= SURE else "likely"
    if most < LIKELY or most - found[order[1]] < CLOSE:
        both = " and ".join(f"{_place(name, sender, receiver)} ({told_share(found[name])})" for name in order[:2])
        return Answer(
            where="not told",
            what=f"no single limit: {both}",
            helps="the table says what held the sender back and for how long",
            sure="not told",
        )
    told = told_share(most)
    carries = told_rate(path.wire_bps) if path.wire_bps else ""
    if first == "network" and full >= repair:
        return Answer(
            where="network",
            what=f"a bottleneck of {carries} with headers, full for {told_share(full)} of the time",
            helps="nothing at either end would make it faster",
            sure=sure,
        )
    if first == "network":
        segments = f"{row['lost']:,} of {row['segments']:,} segments"
        return Answer(
            where="network",
            what=f"the repair of losses took {told} of the time ({segments})",
            helps="fewer losses, or another congestion control",
            sure=sure,
        )
    if first == "rwnd":
        why = (
            f"its application reads too slowly, and its window was closed or small for {told} of the time"
            if closed
            else f"its receive buffer limits the sender for {told} of the time"
        )
        helps = (
            "a reader that takes the data faster"
            if closed
            else "a larger receive buffer (net.ipv4.tcp_rmem, SO_RCVBUF)"
        )
        return Answer(where=receiver, what=why, helps=helps, sure=sure)
    if first == "application" and buffered:
        what = f"the {sender}'s application or its send buffer held it back for {told} of the time: it wrote each time behind an ACK"
        return Answer(
            where=sender,
            what=what,
            helps="sndbuf_limited of ss -ti tells which; a larger send buffer (net.ipv4.tcp_wmem, SO_SNDBUF), or a program that writes sooner",
            sure="likely",
        )
    if first == "application" and nagle > most / 2:
        return Answer(
            where="application",
            what=f"the {sender} writes little at a time, and each such segment waited for the ACK of the one before (Nagle's algorithm), for {told_share(nagle)} of the time",
            helps=f"TCP_NODELAY at the {sender}, or one write for what belongs together; the {receiver} may hold its ACK back for 40 ms and more (delayed ACK)",
            sure=sure,
        )
    if first == "application":
        idly = f", {told_share(idle)} with nothing outstanding" if idle > 0.1 else ""
        what = f"the {sender} had no more data for {told} of the time{idly}"
        return Answer(
            where="application",
            what=what,
            helps="a program that writes sooner or more (notsent of ss -ti at the sender would be 0)",
            sure=sure,
        )
    if (
        path.sent_again_empty > (path.sent_again_full + path.sent_again_part_full + path.sent_again_empty) / 2
        and path.sent_again_empty > 1
    ):
        return Answer(
            where="network",
            what=f"{path.sent_again_empty:,} segments sent again, which had met an empty queue, keep the {sender}'s window small, for {told} of the time",
            helps="fewer losses, or a congestion control that does not take them for congestion",
            sure="likely",
        )
    if path.identified and path.rate_bps:
        thing = "its congestion window or its send buffer" if level else "its congestion window"
        if early is not None:
            return Answer(
                where=sender,
                what=f"slow start ended at {early:,} segments in flight with nothing lost, and the window grew slowly from there: for {told_share(most)} of the time it held it "
                f"back, and {told_share(spare)} of the {carries} that the path carries stayed unused",
                helps="a threshold kept from an earlier connection does that (`ip tcp_metrics`, net.ipv4.tcp_no_metrics_save = 1), and so does a slow start that takes a delay "
                "for a queue (HyStart)",
                sure=sure,
            )
        return Answer(
            where=sender,
            what=f"{thing} held it back for {told} of the time, and {told_share(spare)} of the {carries} that the path carries stayed unused",
            helps="a larger window: a longer transfer, a higher initial window, another congestion control"
            + (", a larger send buffer" if level else ""),
            sure=sure,
        )
    return Answer(
        where="not told",
        what=f"the {sender}'s congestion window, pacing, send buffer or a program that writes at a pace held it back for {told} of the time, and no queue shows where the path is full",
        helps="ss -tin at the sender tells them apart (cwnd, pacing_rate, sndbuf_limited, notsent)",
        sure="not told",
    )


def _place(name: str, sender: str, receiver: str) -> str:
    return {
        "network": "the network",
        "window": f"the {sender}'s window or pacing",
        "rwnd": f"the {receiver}'s window",
        "application": f"the {sender}'s application",
    }[name]
