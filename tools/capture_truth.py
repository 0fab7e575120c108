"""What is right of a capture whose sender's kernel told, at short intervals, what it was doing: shared by `tools/kernel_captures.py` and `tools/real_captures.py`.

Both sides are of the time from the handshake to the ACK of the last data: what the closing of a connection takes is nobody's limit.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CLASSES = ("application", "rwnd", "sndbuf", "window", "repair")

WRONG, RIGHT = 0.05, 0.8
"""Share of the time: at most so much told wrongly; at least so much told rightly."""


def truth(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Seconds by what held the sender back, as its kernel says.

    Of each time between two samples, what the clocks of the receiver's window and of the send buffer say is theirs. The rest belongs

    - to the repair of losses in the kernel's states Recovery and Loss, and where a timer had to run out before something was sent again
      (`waits`): nothing was sent, nothing told to have come, for longer than a round trip. A probe of the tail of a sender that has nothing more is none, as in
      table `limits` of a run: its kernel stays in Open or Disorder, and the time is the application's;
    - to the application where less than a segment was left to send at both ends of the time (and cwnd was not full, which holds a short one back, too), or
      nothing was outstanding (the clock `busy` stood); but to the send
      buffer where the program waits in a write (`eager`), for the kernel's clock of that does not run while cwnd counts as the limit (`tcp_cwnd_validate`);
    - to the receiver's window where it has no room for a segment, and cwnd has;
    - else to the window: cwnd or pacing.

    Parameters
    ----------
    rows
        Of `TCP_INFO`: `t`, `ca_state`, `unacked`, `sacked`, `cwnd`, `mss`, `notsent`, `snd_wnd`, `total_retrans`, `rwnd_limited`, `sndbuf_limited`, `busy`
        (us); and, where they are told, `bytes_acked`, `outstanding` (bytes), `srtt_us`.
    """
    made = dict.fromkeys(CLASSES, 0.0)
    last = len(rows)
    if rows and not rows[-1]["unacked"]:
        last = next(i for i, row in enumerate(rows) if _acked(row) >= _acked(rows[-1]))
    rows = rows[: last + 1]
    waited = waits(rows)
    for i, (before, now) in enumerate(itertools.pairwise(rows)):
        spent = now["t"] - before["t"]
        for name in ("rwnd", "sndbuf"):
            own = min((now[f"{name}_limited"] - before[f"{name}_limited"]) / 1e6, spent)
            made[name] += own
            spent -= own
        idle = min(max(now["t"] - before["t"] - (now["busy"] - before["busy"]) / 1e6, 0.0), spent)
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
    return made


def _acked(row: Mapping[str, Any]) -> float:
    """What has come, or, where that is not told, how little is left."""
    return float(row.get("bytes_acked", -row["unacked"] - row["notsent"]))


def waits(rows: Sequence[Mapping[str, Any]]) -> list[bool]:
    """Of each time between two samples: whether it belongs to a wait for a timer, behind which something was sent again."""
    made = [False] * max(len(rows) - 1, 0)
    since = 0
    for i, (before, now) in enumerate(itertools.pairwise(rows)):
        quiet = all(before[key] == now[key] for key in ("unacked", "sacked", "notsent")) and before.get(
            "bytes_acked"
        ) == now.get("bytes_acked")
        if now["total_retrans"] > before["total_retrans"] and before["ca_state"] < 3:
            longer = before.get("srtt_us", 0) / 1e6
            tail = now["ca_state"] < 3 and now["notsent"] < now["mss"]
            if before["unacked"] and not tail and rows[i]["t"] - rows[since]["t"] > longer:
                made[since : i + 1] = [True] * (i + 1 - since)
        if not quiet:
            since = i + 1
    return made


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Shares of the time of a capture."""

    right: float
    untold: float
    real: Mapping[str, float]
    told: Mapping[str, float]
    sentence: str
    refused: bool

    @property
    def wrong(self) -> float:
        """What is neither."""
        return max(1.0 - self.right - self.untold, 0.0)


def judged(file: Path, rows: Sequence[Mapping[str, Any]]) -> Verdict:
    """A diagnosis beside the truth. What a diagnosis says it cannot tell apart counts as one: the send buffer with the window or the application,
    or, where it says that pacing, the window, a queue in the host and a program are not told apart, as not told.
    """
    from ackclock.diagnose import diagnose

    found = diagnose(file)
    real = truth(rows)
    if found.replay is None or found.refused:
        return Verdict(right=0.0, untold=1.0, real=real, told={}, sentence=found.sentence, refused=True)
    told = dict.fromkeys((*CLASSES, "unclear"), 0.0)
    own = {"idle": "application", "cwnd": "window", "pacing": "window", "recovery": "repair", "timeout": "repair"}
    if found.unqueued:
        own["pacing"] = own["cwnd"] = "unclear"
    instants = found.replay.instants
    sent = max((i for i, now in enumerate(instants) if now.new), default=0)
    last = next((i for i in range(sent, len(instants)) if instants[i].una >= instants[sent].nxt), len(instants))
    for i, name in enumerate(found.replay.causes[:last]):
        if name != "handshake":
            told[own.get(name, name)] += instants[i + 1].t - instants[i].t
    whole, said = sum(real.values()) or 1.0, sum(told.values()) or 1.0
    if found.level or found.replay.buffered:
        into = "application" if found.replay.buffered else "window"
        told[into] += told.pop("sndbuf", 0.0)
        held = real.pop("sndbuf", 0.0)
        if found.level and found.replay.buffered:  # both sentences name the send buffer
            first = min(max(told["window"] / said * whole - real["window"], 0.0), held)
            real["window"] += first
            held -= first
        real[into] += held
    untold = told.pop("unclear") / said
    right = sum(min(real[name] / whole, told.get(name, 0.0) / said) for name in real)
    return Verdict(right=right, untold=untold, real=real, told=told, sentence=found.sentence, refused=False)


def shares(seconds: Mapping[str, float]) -> str:
    """In words."""
    whole = sum(seconds.values()) or 1.0
    return ", ".join(f"{name} {value / whole:.0%}" for name, value in seconds.items() if value / whole >= 0.02)
