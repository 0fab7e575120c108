"""Why is this transfer slow? Read a TCP capture, and find what limited the sender at each moment.

>>> from ackclock.diagnose import diagnose
>>> found = diagnose("transfer.pcapng")  # doctest: +SKIP
>>> print(found.sentence)  # doctest: +SKIP
92 % of the time the receiver's window was the limit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

from ackclock import _html
from ackclock._results.limits import CAUSES, COLUMNS, sentence, shares
from ackclock.diagnose._answer import Answer, answer
from ackclock.diagnose._change import Outcome, what_if
from ackclock.diagnose._curve import Sent, sent
from ackclock.diagnose._early import early_end
from ackclock.diagnose._file import ask
from ackclock.diagnose._fit import Fit, fit, fit_mirror, model
from ackclock.diagnose._logs import FittedPath, fit_logs
from ackclock.diagnose._mirror import mirrored
from ackclock.diagnose._notes import ANY, BOTH, BUFFERED, EITHER, notes, together
from ackclock.diagnose._path import Path, estimate
from ackclock.diagnose._place import guess, place
from ackclock.diagnose._policer import Policer, policed
from ackclock.diagnose._push import marks_tell, without_marks
from ackclock.diagnose._reader import is_closed, read_bps
from ackclock.diagnose._replay import Replay, gap, replay, unexplained
from ackclock.diagnose._seen import beyond, seen, without_some
from ackclock.diagnose._segment import full_segment
from ackclock.diagnose._shift import as_sent
from ackclock.diagnose._unseen import with_acks, with_repairs
from ackclock.diagnose._who import Candidate, Identity, identify
from ackclock.errors import InputError
from ackclock.formats.capture import MOST_MISSED, Capture, no_data, read_capture
from ackclock.text import rate as told_rate
from ackclock.text import seconds as told_seconds
from ackclock.text import share as told_share

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "Answer",
    "Candidate",
    "Cause",
    "Diagnosis",
    "Fit",
    "FittedPath",
    "Identity",
    "Outcome",
    "Path",
    "Policer",
    "diagnose",
    "fit",
    "fit_logs",
    "fit_mirror",
    "identify",
    "mirrored",
    "model",
    "what_if",
]


MOST_UNEXPLAINED = 0.1
"""Maximum unexplained fraction of the time for a receiver-side capture to be diagnosed."""

SPARE = 0.2
"""Fraction of the path's capacity above which spare capacity is reported. Below it the path counts as full."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cause:
    """A cause that held the sender back.

    Parameters
    ----------
    name
        Name as in table `limits` of a run: `rwnd`, `cwnd`, ... If the sender paces, `pacing` includes the congestion
        window and, if the path had no queue, a queue in the sender's host.
    seconds, share
        Duration, and the same as a fraction of the time in which the transfer was not idle.
    lost_bytes
        Additional bytes that the path could have carried in that time; None if the path's rate is unknown, a lower
        bound if the rate is only a lower bound.
    """

    name: str
    seconds: float
    share: float
    lost_bytes: float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Diagnosis:
    """Diagnosis of one direction of a connection, from a capture.

    Parameters
    ----------
    connection
        Row of the connection in `ackclock.formats.Capture.connections`.
    at
        Capture point, seen from the data: `sender`, `receiver`, `between` or `unknown`.
    missed
        Fraction of the data that is missing from the capture.
    refused
        Reason why there are no conclusions; empty if there are some.
    causes
        Causes that held the sender back, the longest first; empty if refused.
    idle_s
        Time with nothing to send and nothing outstanding, s.
    path
        Findings about the path; None if refused.
    sentence
        The answer in one sentence.
    mss
        Payload of a full segment, bytes.
    replay
        Step-by-step replay of the sender; None if refused.
    sent
        The sender's transmissions, and which of them were lost; None if refused.
    notes
        Notes on what the capture shows only roughly, or not at all.
    answer
        Where the limit is, what change would help, and how certain that is; None if nothing is known.
    policer
        Policer on the path, if the losses reveal one.
    early_bytes
        Bytes in flight when slow start ended, if it ended early and without a loss.
    """

    connection: dict[str, Any]
    at: str
    missed: float
    refused: str
    causes: tuple[Cause, ...] = ()
    idle_s: float = 0.0
    path: Path | None = None
    sentence: str = ""
    mss: int = 0
    replay: Replay | None = field(default=None, repr=False)
    sent: Sent | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()
    answer: Answer | None = None
    policer: Policer | None = None
    early_bytes: int | None = None

    def __repr__(self) -> str:
        return f"<Diagnosis: {self.refused or self.sentence}>"

    def _repr_html_(self) -> str:
        """HTML for notebooks: the answer, and each cause's fraction of the time."""
        said = self.refused or (str(self.answer) if self.answer is not None else self.sentence)
        return _html.heading(said) + _html.table(
            ("cause", "share of the time"), [(cause.name, told_share(cause.share)) for cause in self.causes]
        )

    @property
    def paced(self) -> bool:
        """Whether the sender paces. If so, the cause `pacing` includes the congestion window."""
        return self.replay is not None and self.replay.paced

    @property
    def level(self) -> bool:
        """Whether the same number of bytes is in flight in every round trip. If so, the cause `cwnd` may be the send buffer."""
        return self.replay is not None and self.replay.level

    @property
    def unqueued(self) -> bool:
        """Whether the sender paces and the path had no queue. If so, the cause `pacing` may be a queue in the sender's host."""
        return self.paced and self.path is not None and not self.path.identified

    def table(self) -> pl.DataFrame:
        """Table of causes: name, time in s, fraction of the non-idle time, bytes lost to each."""
        import polars as pl

        schema = {"cause": pl.String, "seconds": pl.Float64, "share": pl.Float64, "lost_bytes": pl.Float64}
        rows = [(cause.name, cause.seconds, cause.share, cause.lost_bytes) for cause in self.causes]
        return pl.DataFrame(rows, schema=schema, orient="row")

    def limits(self, intervals: int = 200) -> pl.DataFrame:
        """Time by cause, interval by interval, in the form of a run's `limits` table.

        Parameters
        ----------
        intervals
            Number of intervals into which the capture's time is divided.
        """
        import numpy as np
        import polars as pl

        played = self.replay
        if played is None or len(played.instants) < 2:
            return pl.DataFrame(
                schema={"t_s": pl.Float64, "flow": pl.UInt32, **dict.fromkeys(COLUMNS.values(), pl.Float64)}
            )
        times = np.asarray([now.t for now in played.instants])
        causes = np.asarray(played.causes)
        edges = np.linspace(times[0], times[-1], intervals + 1)
        columns = {}
        for name, column in COLUMNS.items():
            spent = np.concatenate([[0.0], np.cumsum(np.where(causes == name, np.diff(times), 0.0))])
            # linear interpolation, because one cause applies throughout the interval between two instants
            columns[column] = np.diff(np.interp(edges, times, spent))
        flow = pl.Series("flow", np.zeros(intervals), dtype=pl.UInt32)
        return pl.DataFrame({"t_s": edges[1:], **columns}).insert_column(1, flow)

    def summary(self) -> dict[str, Any]:
        """Diagnosis as plain values, for JSON."""
        from dataclasses import asdict

        return {
            "connection": self.connection,
            "captured_at": self.at,
            "missed_share": self.missed,
            "refused": self.refused or None,
            "answer": None if self.answer is None else {**asdict(self.answer), "told": str(self.answer)},
            "sentence": self.sentence,
            "idle_s": self.idle_s,
            "causes": [asdict(cause) for cause in self.causes],
            "path": None if self.path is None else asdict(self.path),
            "policer": None if self.policer is None else asdict(self.policer),
            "slow_start_ended_early_at_bytes": self.early_bytes,
            "notes": list(self.notes),
        }


def diagnose(
    path: str | os.PathLike[str],
    *,
    connection: int | None = None,
    anonymise: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Diagnosis:
    """Find what limited a transfer.

    Parameters
    ----------
    path
        A capture (pcap, pcapng), preferably taken at the sender.
    connection
        Number of the connection, as in `ackclock read`; None: the one with the most data in one direction.
    anonymise
        Whether to replace addresses and ports.
    progress
        Called with the fraction of the file read so far.

    Returns
    -------
    Diagnosis
        Diagnosis of the connection's direction with the most data.

    Raises
    ------
    InputError
        If the file is not a capture, or has no TCP data.
    """
    path = File(path)
    first = read_capture(path, anonymise=anonymise, progress=progress)
    rows = first.with_data()
    if rows.is_empty():
        raise InputError(f"{path}: {no_data(first.facts)}")
    if connection is not None:
        numbers = [str(number) for number in sorted(set(rows["connection"]))]
        rows = rows.filter(rows["connection"] == connection)
        if rows.is_empty():
            most = 8
            more = f" and {len(numbers) - most} more" if len(numbers) > most else ""
            allowed = f"one with data: {', '.join(numbers[:most])}{more}"
            raise InputError(f"{path}: found connection {connection}; allowed: {allowed}")
    row = rows.row(0, named=True)
    at = place(row)
    missed = first.missed(row)
    whole = read_capture(path, connection=row["connection"])
    assert whole.packets is not None
    return _of(whole, row, at, missed, _refusal(first, missed))


def _of(found: Capture, row: dict[str, Any], at: str, missed: float, lacks: str = "") -> Diagnosis:
    # Length: the steps follow one another, each using results of the earlier ones
    assert found.packets is not None
    server = row["way"] == "server"
    other = found.connections.filter(
        (found.connections["connection"] == row["connection"]) & (found.connections["way"] != row["way"])
    )
    mss = full_segment(found.packets, server, other["mss"][0] if other.height else None)
    asked = ask(found.packets, row, found.facts, server=server, mss=mss)
    packets, row = asked.packets, asked.row
    if asked.refused:
        return Diagnosis(
            connection=row,
            at=at,
            missed=missed,
            refused=asked.refused,
            sentence=f"No conclusion: {asked.refused}.",
            mss=mss,
        )
    if lacks:
        facts, where = without_some(*seen(packets, row, server=server, mss=mss, window=asked.window))
        return _untold(lacks, row, at, missed, mss, asked.notes + facts, where)
    if at == "unknown":
        at = guess(replay(packets, server=server, mss=mss), row)
    acks = repairs = unknown = 0
    blurred, trip = 0.0, None
    counted = False
    apart = None if at == "receiver" and row["timestamps"] else gap(packets, server)
    marks = marks_tell(packets, server=server, mss=mss, apart=apart)
    if not marks:
        packets = without_marks(packets, server=server, mss=mss)
    if at == "receiver":
        turned = as_sent(packets, server=server, mss=mss, whole=missed == 0, marks=marks)
        moved = None if turned is None else turned.packets
        why = "the timestamps in the capture do not tell when packets left" if turned is None else ""
        blurred, trip = (0.0, None) if turned is None else (turned.tick_s, turned.trip_s)
        if turned is not None and turned.repairs is not None:
            repairs, unknown, counted = turned.repairs, turned.unknown, True
    else:
        moved = packets if at == "sender" else None
        why = "the capture was taken on the way" if at == "between" else "the place of the capture is unknown"
    if _one_way(packets, server):
        moved, why = None, "the capture holds packets of one direction only"
    facts, where = seen(packets, row, server=server, mss=mss, window=asked.window)
    if moved is None:
        refused = f"{why}, and a sender's waits can be seen only in a capture at the sender"
        return _untold(refused, row, at, missed, mss, asked.notes + facts, where)
    if (at == "receiver" and not counted) or missed > 0:
        moved, repairs = with_repairs(
            moved, server=server, mss=mss, rtt_s=row["rtt_min_s"] or 0.0, receiver=at == "receiver"
        )
    if at == "sender":
        moved, acks = with_acks(moved, server=server, mss=mss, gap_s=gap(moved, server))
    shown = sent(moved, server=server, mss=mss)
    played = replay(moved, server=server, mss=mss)
    without = unexplained(played) if at == "receiver" else 0.0
    if without > MOST_UNEXPLAINED:
        refused = (
            "packets left without an ACK that could have released them, so the delay of ACKs varies, "
            "and a sender's waits can be seen only in a capture at the sender"
        )
        return _untold(refused, row, at, missed, mss, asked.notes + facts, where)
    if at == "receiver":
        most = int(shown.flights.max(initial=0))
        row = {**row, "first_flight": shown.first_flight, "most_in_flight": most, **_round_trips(played)}
    six = ":" in row["from_address"]
    header = (40 if six else 20) + 20 + (12 if row["timestamps"] else 0)
    path = estimate(played, mss=mss, header=header, blurred=blurred, trip=trip, unsure=missed > 0)
    unqueued = played.paced and not path.identified
    held = together(played.seconds, played.paced, unqueued, played.level)
    causes = _weighed(held, together(played.carried, played.paced, unqueued, played.level), path)
    said = sentence(held).replace(CAUSES["pacing"], (ANY if unqueued else BOTH) if played.paced else CAUSES["pacing"])
    said = said.replace(CAUSES["cwnd"], EITHER) if played.level else said
    said = said.replace(CAUSES["application"].split(",")[0], BUFFERED) if played.buffered else said
    closed = is_closed(played) and read_bps(played)
    police = policed(moved, shown, path, server=server, mss=mss)
    early = early_end(played, path, mss)
    life = sum(played.seconds.values())
    none = "It was idle for 100 % of its life." if life else "No time passes between its packets."
    told = f"{said[:1].upper()}{said[1:]}{_because(causes, path, row, closed)}." if said else none
    where = answer(
        causes,
        path,
        row,
        level=played.level,
        buffered=played.buffered,
        closed=bool(closed),
        policer=police,
        early=None if early is None else early // mss,
        idle=played.seconds["idle"] / life if life else 0.0,
        nagle=played.nagle / life if life else 0.0,
    )
    return Diagnosis(
        connection=row,
        at=at,
        missed=missed,
        refused="",
        causes=causes,
        idle_s=played.seconds["idle"],
        path=path,
        sentence=told,
        mss=mss,
        replay=played,
        sent=shown,
        answer=where,
        policer=police,
        early_bytes=early,
        notes=asked.notes
        + notes(
            played,
            path,
            at=at,
            missed=missed,
            inferred=(acks, repairs, unknown),
            unexplained=without,
            row=row,
            cut=bool(found.facts["cut"]),
        ),
    )


def _untold(
    why: str, row: dict[str, Any], at: str, missed: float, mss: int, told: tuple[str, ...], where: Answer
) -> Diagnosis:
    """Return the diagnosis without the sender's waits, but with everything visible without them."""
    return Diagnosis(
        connection=row,
        at=at,
        missed=missed,
        refused=why,
        sentence=beyond(why, where),
        mss=mss,
        notes=told,
        answer=where,
    )


def _weighed(seconds: Mapping[str, float], carried: Mapping[str, float], path: Path) -> tuple[Cause, ...]:
    made = []
    for name, part in shares(seconds):
        spent = seconds[name]
        lost = None if path.rate_bps is None else max(path.rate_bps / 8 * spent - carried[name], 0.0)
        made.append(Cause(name=name, seconds=spent, share=part, lost_bytes=lost))
    return tuple(made)


def _one_way(packets: pl.DataFrame, server: bool) -> bool:
    """Return whether the data receiver's packets are missing, but for one at most, which leaves most data without an ACK."""
    import polars as pl

    others = packets.filter((pl.col("from_server") != server) & (pl.col("kind") != "syn"))
    acked = others.select(pl.col("ack").drop_nans().max()).item() or 0.0
    sent = packets.filter(pl.col("from_server") == server).select(pl.col("seq").max()).item() or 0
    return others.is_empty() or (others.height == 1 and 2 * acked < sent)


def _round_trips(played: Replay) -> dict[str, Any]:
    """Return a connection's round trips as its sender saw them; the capture at the receiver has only the receiver's delay of ACKs."""
    rtts = [now.rtt for now in played.instants if now.rtt is not None]
    ends = {"rtt_min_s": min(rtts, default=None), "rtt_max_s": max(rtts, default=None)}
    return {"rtt_samples": len(rtts), "rtt_mean_s": sum(rtts) / len(rtts) if rtts else None, **ends}


def _because(causes: tuple[Cause, ...], path: Path, row: dict[str, Any], closed: float = 0.0) -> str:
    """Return the explanation of the first cause."""
    if not causes:
        return ""
    least = "" if path.identified else "at least "
    could = "" if path.rate_bps is None else f"the path carries {least}{told_rate(path.rate_bps)}"
    first = causes[0].name
    if first == "rwnd" and closed:
        return f"; the receiver's window was closed or small for most of that: its application took {told_rate(closed)}"
    if first == "rwnd" and path.base_rtt_s:
        window = row["most_in_flight"]
        most = 8 * window / path.base_rtt_s
        bound = told_rate(most)
        if path.identified and path.rate_bps and most > path.rate_bps:
            return f", {window:,} bytes, and a queue stood: {could}"
        return f": {window:,} bytes in a round trip of {told_seconds(path.base_rtt_s)} make at most {bound}" + (
            f", where {could}" if could and path.identified else ""
        )
    if first == "cwnd" and path.identified and path.rate_bps:
        spare = (causes[0].lost_bytes or 0.0) / (path.rate_bps / 8 * causes[0].seconds)
        if spare < SPARE:
            return f"; a queue stood, and {could}"
        again = path.sent_again_full + path.sent_again_part_full + path.sent_again_empty
        by_chance = (
            f", and {path.sent_again_empty:,} of {again:,} segments sent again had met an empty queue"
            if path.sent_again_empty > again / 2
            else ""
        )
        return f": the transfer used {told_share(1 - spare)} of the {told_rate(path.rate_bps)} that the path carries{by_chance}"
    if first in ("recovery", "timeout"):
        return f": {row['lost']:,} of {row['segments']:,} segments were lost ({told_share(row['lost'] / max(row['segments'], 1))})"
    return f"; {could}" if could else ""


def _refusal(found: Capture, missed: float) -> str:
    if missed > MOST_MISSED:
        return f"the capture itself has missed {told_share(missed, 1)} of the data, and above {MOST_MISSED * 100:.0f} % it shows nothing"
    dropped, frames = found.facts["dropped"], max(found.facts["frames"], 1)
    if dropped > MOST_MISSED * (frames + dropped):
        return f"the capturing program has missed {dropped:,} of {frames + dropped:,} packets, by its own count"
    return ""
