"""Ground truth for a capture whose sender's kernel reported its state at short intervals: shared by `tools/kernel_captures.py` and `tools/real_captures.py`.

Both sides cover the time from the handshake to the ACK of the last data: closing a connection is not a limit.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CLASSES = ("application", "rwnd", "sndbuf", "window", "repair")

WRONG, RIGHT = 0.05, 0.8
"""Limits on fractions of the time: maximum misattributed, and minimum attributed correctly."""

TICK_S = 0.01
"""Longest tick of a kernel, s, to which its clocks are rounded (CONFIG_HZ=100)."""


def truth(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Time by the sender's limit, s, according to its kernel. Each interval between two samples is split. The receive
    window and the send buffer get the time counted by their clocks. The rest
    belongs

    - to loss repair, in the kernel's states Recovery and Loss, and where a timer had to expire before a
    retransmission (`waits`): for
      longer than a round trip nothing was sent or acknowledged. A tail probe by a sender without further data does
      not count, as in a run's table `limits`: its kernel stays in Open or Disorder, and the time is the
      application's;
    - to the application, if less than a segment was left to send at both ends of the interval (and cwnd was not full,
    which also holds back
      a partial segment), or nothing was outstanding (the clock `busy` did not advance); but to the send buffer if the
      program waits in a write (`eager`), because the kernel's clock for that stops while cwnd counts as the limit
      (`tcp_cwnd_validate`);
    - to the receiver's window, if a segment does not fit into it but fits into cwnd;
    - otherwise to the window: cwnd or pacing.

    Parameters
    ----------
    rows
        Samples of `TCP_INFO`: `t`, `ca_state`, `unacked`, `sacked`, `cwnd`, `mss`, `notsent`, `snd_wnd`, `total_retrans`, `rwnd_limited`,
        `sndbuf_limited`, `busy` (us); and, where available, `bytes_acked`, `outstanding` (bytes), `srtt_us`.
    """
    made = dict.fromkeys(CLASSES, 0.0)
    for _, _, parts in spells(rows):
        for name, spent in parts.items():
            made[name] += spent
    return made


def spells(rows: Sequence[Mapping[str, Any]]) -> list[tuple[float, float, dict[str, float]]]:
    """Start, end and time per class, s, of each interval between two samples; `truth` is their sum."""
    last = len(rows)
    if rows and not rows[-1]["unacked"]:
        last = next(i for i, row in enumerate(rows) if _acked(row) >= _acked(rows[-1]))
        if "bytes_acked" not in rows[-1]:  # a pause before the last write looks the same
            last = max((i + 1 for i, row in enumerate(rows) if row["unacked"] or row["notsent"]), default=0)
    rows = rows[: last + 1]
    waited = waits(rows)
    told = []
    clocks = {name: _counted(rows, f"{name}_limited") for name in ("rwnd", "sndbuf")}
    busy = _counted(rows, "busy")
    for i, (before, now) in enumerate(itertools.pairwise(rows)):
        made = dict.fromkeys(CLASSES, 0.0)
        spent = now["t"] - before["t"]
        for name, counted in clocks.items():
            own = min(counted[i], spent)
            made[name] += own
            spent -= own
        idle = min(max(now["t"] - before["t"] - busy[i], 0.0), spent)
        made["application"] += idle
        spent -= idle
        outstanding = now.get("outstanding", now["unacked"] * now["mss"])
        if waited[i] or now["ca_state"] >= 3:
            made["repair"] += spent
        elif max(now["notsent"], before["notsent"]) < now["mss"] and not (
            now["notsent"] and now["unacked"] >= now["cwnd"]
        ):
            made["sndbuf" if now.get("eager") else "application"] += spent
        elif now["snd_wnd"] - outstanding < now["mss"] and now["unacked"] < now["cwnd"]:
            made["rwnd"] += spent
        else:
            made["window"] += spent
        told.append((before["t"], now["t"], made))
    return told


def _counted(rows: Sequence[Mapping[str, Any]], clock: str) -> list[float]:
    """Time that one of the kernel's clocks counted in each interval, s. The clocks advance in ticks, so what a clock is ahead of
    the time belongs to the next interval.
    """
    made, ahead = [], 0.0
    for before, now in itertools.pairwise(rows):
        counted = (now[clock] - before[clock]) / 1e6 + ahead
        made.append(min(counted, now["t"] - before["t"]))
        ahead = min(counted - made[-1], TICK_S)
    return made


def _acked(row: Mapping[str, Any]) -> float:
    """Bytes that have arrived; if unknown, a number that grows as the remaining data shrinks."""
    return float(row.get("bytes_acked", -row["unacked"] - row["notsent"]))


def waits(rows: Sequence[Mapping[str, Any]]) -> list[bool]:
    """Return, for each interval between two samples, whether it is a timer wait that ended in a retransmission. Waits
    for a tail probe, or for the ACK that starts recovery, do not count.
    """
    made = [False] * max(len(rows) - 1, 0)
    since, probed = 0, False
    for i, (before, now) in enumerate(itertools.pairwise(rows)):
        quiet = all(before[key] == now[key] for key in ("unacked", "sacked", "notsent")) and before.get(
            "bytes_acked"
        ) == now.get("bytes_acked")
        if now["total_retrans"] > before["total_retrans"] and before["ca_state"] < 3:
            longer = before.get("srtt_us", 0) / 1e6
            tail = now["ca_state"] < 3 and now["notsent"] < now["mss"]
            probed = probed or tail
            if before["unacked"] and not probed and rows[i]["t"] - rows[since]["t"] > longer:
                made[since : i + 1] = [True] * (i + 1 - since)
        if not quiet:
            since, probed = i + 1, False
    return made


def had_more(rows: Sequence[Mapping[str, Any]]) -> tuple[float, float] | None:
    """Times of the first sample with unsent data and of the last write, s; `None` if there was no unsent data at a sample in between."""
    first = next((i for i, row in enumerate(rows) if row["notsent"] > 0), len(rows))
    written = [_acked(row) + row.get("outstanding", row["unacked"]) + row["notsent"] for row in rows]
    if rows and "bytes_acked" in rows[0]:
        last = next(i for i, value in enumerate(written) if value >= max(written))
    else:  # samples that lack that number
        last = max((i for i, row in enumerate(rows) if row["notsent"] > 0), default=-1)
    if last <= first or any(row["notsent"] <= 0 for row in rows[first:last]):
        return None
    return rows[first]["t"], rows[last]["t"]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How the time of a capture was attributed, as fractions."""

    right: float
    untold: float
    real: Mapping[str, float]
    told: Mapping[str, float]
    sentence: str
    refused: bool
    wrong_at_times: float = 0.0
    """Fraction misattributed within the intervals between samples. Errors that cancel out in the totals do not cancel out here."""
    rate_bps: float | None = None
    """Payload rate of the path, if it was told as exact, bit/s."""
    mss: int = 0
    blamed: float | None = None
    """Fraction of the time up to the last write that is attributed to the application; `None` if the kernel had nothing to send at one of the samples."""

    @property
    def wrong(self) -> float:
        """Fraction that is neither correct nor undecided."""
        return max(1.0 - self.right - self.untold, 0.0)


def judged(file: Path, rows: Sequence[Mapping[str, Any]]) -> Verdict:
    """A diagnosis compared with the truth. Causes that a diagnosis cannot separate are combined: the send buffer with
    the window or the application. If it cannot separate pacing, the window, a queue in the host and a program, they
    count as unknown.
    """
    from ackclock.diagnose import diagnose

    found = diagnose(file)
    real_at = spells(rows)
    real = {name: sum(parts[name] for _, _, parts in real_at) for name in CLASSES}
    if found.replay is None or found.refused:
        return Verdict(right=0.0, untold=1.0, real=real, told={}, sentence=found.sentence, refused=True)
    own = {"idle": "application", "cwnd": "window", "pacing": "window", "recovery": "repair", "timeout": "repair"}
    if found.unqueued:
        own["pacing"] = own["cwnd"] = "unclear"
    instants = found.replay.instants
    sent = max((i for i, now in enumerate(instants) if now.new), default=0)
    last = next((i for i in range(sent, len(instants)) if instants[i].una >= instants[sent].nxt), len(instants) - 1)
    said = [
        (instants[i].t, instants[i + 1].t, own.get(name, name))
        for i, name in enumerate(found.replay.causes[:last])
        if name != "handshake"
    ]
    told = dict.fromkeys((*CLASSES, "unclear"), 0.0)
    for start, end, name in said:
        told[name] += end - start
    level, buffered = found.level, found.replay.buffered
    right, untold = _matched(real, told, level=level, buffered=buffered)
    apart, whole, blamed, had = 0.0, 0.0, 0.0, 0.0
    late = _late(rows, [(now.t, now.una - 1) for now in instants])
    for (start, end, parts), beside in zip(
        real_at, _between(said, [(a - late, b - late) for a, b, _ in real_at]), strict=True
    ):
        here = sum(beside.values())
        if here > 0 and end > start:
            fits, open_ = _matched(parts, beside, level=level, buffered=buffered)
            apart += here * max(1.0 - fits - open_, 0.0)
            whole += here
    plenty = had_more(rows)
    if plenty is not None:
        (beside,) = _between(said, [(plenty[0] - late, plenty[1] - late)])
        had = sum(beside.values())
        blamed = beside.get("application", 0.0)
    exact = found.path is not None and found.path.identified
    return Verdict(
        right=right,
        untold=untold,
        rate_bps=found.path.rate_bps if exact and found.path is not None else None,
        mss=found.mss,
        real=real,
        told=told,
        sentence=found.sentence,
        refused=False,
        wrong_at_times=apart / whole if whole else 0.0,
        blamed=blamed / had if had else None,
    )


def _matched(
    real: Mapping[str, float], told: Mapping[str, float], *, level: bool, buffered: bool
) -> tuple[float, float]:
    """Fractions that are correct, and fractions that are unknown."""
    real, told = dict(real), dict(told)
    whole, said = sum(real.values()) or 1.0, sum(told.values()) or 1.0
    if level or buffered:
        into = "application" if buffered else "window"
        told[into] = told.get(into, 0.0) + told.pop("sndbuf", 0.0)
        held = real.pop("sndbuf", 0.0)
        if level and buffered:  # both sentences name the send buffer
            first = min(max(told.get("window", 0.0) / said * whole - real["window"], 0.0), held)
            real["window"] += first
            held -= first
        real[into] += held
    untold = told.pop("unclear", 0.0) / said
    return sum(min(real[name] / whole, told.get(name, 0.0) / said) for name in real), untold


def _between(said: Sequence[tuple[float, float, str]], times: Sequence[tuple[float, float]]) -> list[dict[str, float]]:
    """Return the time attributed to each class, s, for consecutive intervals."""
    made, at = [], 0
    for start, end in times:
        while at < len(said) and said[at][1] <= start:
            at += 1
        parts: dict[str, float] = {}
        i = at
        while i < len(said) and said[i][0] < end:
            begins, ends, name = said[i]
            parts[name] = parts.get(name, 0.0) + max(min(end, ends) - max(start, begins), 0.0)
            i += 1
        made.append(parts)
    return made


def _late(rows: Sequence[Mapping[str, Any]], acked: Sequence[tuple[float, float]]) -> float:
    """Lead of the kernel's clock over the capture's, s, derived from ACKs: the sample after an ACK shows its effect, the sample before does not."""
    least, most, at = [], [], 0
    for before, now in itertools.pairwise(rows):
        if _acked(now) > _acked(before):
            while at < len(acked) and acked[at][1] < _acked(now):
                at += 1
            if at == len(acked):
                break
            least.append(before["t"] - acked[at][0])
            most.append(now["t"] - acked[at][0])
    if not least:
        return 0.0
    return float(sorted(least)[len(least) * 19 // 20] + sorted(most)[len(most) // 20]) / 2


def shares(seconds: Mapping[str, float]) -> str:
    """The comparison in words."""
    whole = sum(seconds.values()) or 1.0
    return ", ".join(f"{name} {value / whole:.0%}" for name, value in seconds.items() if value / whole >= 0.02)
