"""Randomly drawn packet scripts: a stream of ACKs and SACKs from a seed, without expectations. There are two
kinds. "receiver": some data packets are lost, some arrive late, and a receiver that follows RFC 2018 and RFC 2883
acknowledges the others; some of its ACKs are lost. Its ACKs depend on the data sent so far, which is taken from the
simulated stack event by event. "free": each ACK has an arbitrary number and arbitrary SACK blocks at segment
boundaries. Each ends by printing the socket's state. Both hosts play the same calls and packets; the packets sent and
the printed state are compared.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ackclock.errors import InputError, one_of, quote
from ackclock.script._play import Played, play

__all__ = ["KINDS", "DrawnScript", "drawn_scripts", "shrink"]

Kind = Literal["receiver", "free"]
KINDS: tuple[Kind, ...] = ("receiver", "free")

MOST_EVENTS = 60
MOST_MS = 20_000
"""Maximum number of packets, and time after which a script ends, ms."""

STATE = (
    "tcpi_snd_cwnd", "tcpi_snd_ssthresh", "tcpi_ca_state", "tcpi_total_retrans", "tcpi_reordering", "tcpi_lost",
    "tcpi_sacked", "tcpi_unacked", "tcpi_delivered",
)  # fmt: skip
"""State variables printed at the end."""

_DATA = re.compile(r"^(\d+\.\d+) > \S+ (\d+):(\d+)\((\d+)\)")


@dataclass(frozen=True, kw_only=True, slots=True)
class DrawnScript:
    """A script.

    Parameters
    ----------
    name
        Kind, seed and number.
    head
        Lines before the first event that may be left out.
    events
        Packets from the peer, and writes, in time order: milliseconds since the start, and the line.
    """

    name: str
    head: tuple[str, ...]
    events: tuple[tuple[int, str], ...]

    def text(self, *, until_ms: int | None = None) -> str:
        """Return the script's text; the state is printed half a second after the last event, or at `until_ms`."""
        end = max([at for at, _ in self.events], default=0) + 500 if until_ms is None else until_ms
        lines = [f"{at / 1000:.3f} {line}" for at, line in self.events]
        return "\n".join([*self.head, *lines, f"{end / 1000:.3f} %{{ print({', '.join(STATE)}) }}%", ""])


def drawn_scripts(kind: str, seed: int, count: int) -> list[DrawnScript]:
    """Draw scripts; each depends only on the kind, the seed and its number.

    Parameters
    ----------
    kind
        "receiver" or "free".
    seed
        Any number.
    count
        Number of scripts.

    Raises
    ------
    InputError
        If there is no such kind.
    """
    if kind not in KINDS:
        raise InputError(f"--drawn: found {quote(kind)}; allowed: {one_of(kind, KINDS)}")
    draws = _by_rfc if kind == "receiver" else _free
    return [draws(f"{kind}-{seed}-{n}", random.Random(f"script {kind} {seed} {n}").random) for n in range(count)]


def shrink(script: DrawnScript, differs: Callable[[DrawnScript], bool]) -> DrawnScript:
    """Return the script reduced to the events needed for the difference, found by omitting one event at a time.

    Parameters
    ----------
    script
        Script that differs.
    differs
        Whether a script differs.
    """
    step = max(1, len(script.events) // 2)
    while True:
        at = 0
        while at < len(script.events):
            rest = script.events[:at] + script.events[at + step :]
            less = DrawnScript(name=script.name, head=script.head, events=rest)
            if any("write" in line for _, line in rest) and differs(less):
                script = less
            else:
                at += step
        if step == 1:
            return script
        step //= 2


_Draw = Callable[[], float]


class _Writer:
    """Beginning of a script, and the segment boundaries of its connection."""

    def __init__(self, draw: _Draw) -> None:
        self.draw = draw
        self.mss: int = self.one((536, 1000, 1000, 1460))
        self.segments = self.between(6, 45)
        self.sack = draw() < 0.8
        self.control = self.one(("cubic", "reno"))
        sack = "sackOK,nop" if self.sack else "nop,nop,nop"
        self.rtt_ms = self.between(10, 120)
        self.head = (
            "`../common/defaults.sh",
            f"sysctl -q net.ipv4.tcp_congestion_control={self.control}`",
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3",
            "+0 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0",
            "+0 bind(3, ..., ...) = 0",
            "+0 listen(3, 1) = 0",
            f"+0 < S 0:0(0) win 65535 <mss {self.mss},{sack},wscale 8,nop,nop>",
            "+0 > S. 0:0(0) ack 1 <...>",
            f"{self.rtt_ms / 1000:.3f} < . 1:1(0) ack 1 win 1000",
            "+0 accept(3, ..., ...) = 4",
            "+0 fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0",
        )

    def between(self, low: int, high: int) -> int:
        return int(low + int(self.draw() * (high - low + 1)))

    def one(self, of: Sequence[Any]) -> Any:
        made: Any = of[int(self.draw() * len(of))]
        return made

    def write(self, segments: int) -> str:
        size = segments * self.mss
        return f"write(4, ..., {size}) = {size}"

    def edge(self, segment: int) -> int:
        """Return the sequence number of a segment's first byte."""
        return 1 + segment * self.mss

    def ack(self, number: int, blocks: Sequence[tuple[int, int]] = ()) -> str:
        shown = f" <sack {' '.join(f'{a}:{b}' for a, b in blocks[:4])},nop,nop>" if blocks and self.sack else ""
        return f"< . 1:1(0) ack {number} win 1000{shown}"


def _free(name: str, draw: _Draw) -> DrawnScript:
    it = _Writer(draw)
    at = it.rtt_ms + it.between(1, 20)
    events = [(at, it.write(it.segments))]
    una, sent = 0, min(10, it.segments)
    for _ in range(it.between(3, 25)):
        at += it.between(1, 30) if draw() < 0.8 else it.between(100, 900)
        if draw() < 0.6:
            una = it.between(una, sent)
        blocks = []
        for _ in range(it.one((0, 0, 1, 1, 2, 3))):
            if una + 1 < sent:
                first = it.between(una + 1, sent - 1)
                blocks.append((it.edge(first), it.edge(it.between(first + 1, sent))))
        events.append((at, it.ack(it.edge(una), blocks)))
        sent = min(it.segments, max(sent, una + 2))
    return DrawnScript(name=name, head=it.head, events=tuple(events))


def _by_rfc(name: str, draw: _Draw) -> DrawnScript:
    it = _Writer(draw)
    lost, late, acks_lost, duplicated = (draw() * most for most in (0.25, 0.15, 0.2, 0.03))
    script = DrawnScript(name=name, head=it.head, events=((it.rtt_ms + 10, it.write(it.segments)),))
    got: set[int] = set()
    recent: list[int] = []
    waiting: list[tuple[int, int]] = []  # arrivals: time at which the ACK would reach the sender, segment
    seen, next_, now = 0, 0, it.rtt_ms + 10
    horizon = now + 1
    while len(script.events) < MOST_EVENTS and horizon < MOST_MS and next_ < it.segments:
        sent = _data(script, horizon)
        for at_ms, first, end in sent[seen:]:
            for segment in range((first - 1) // it.mss, (end - 1 + it.mss - 1) // it.mss):
                if draw() >= lost:
                    extra = it.between(1, 2 * it.rtt_ms) if draw() < late else 0
                    waiting.append((round(at_ms) + it.rtt_ms + extra, segment))
                    if draw() < duplicated:
                        waiting.append((round(at_ms) + it.rtt_ms + it.between(1, it.rtt_ms), segment))
        seen = len(sent)
        waiting.sort()
        if not waiting:
            horizon += 200
            continue
        due, segment = waiting[0]
        if due > horizon:
            horizon = due  # packets sent earlier may still arrive earlier
            continue
        waiting.pop(0)
        again = segment in got or segment < next_
        got.add(segment)
        recent = [segment, *(s for s in recent if s != segment)]
        while next_ in got:
            next_ += 1
        if draw() < acks_lost:
            continue
        blocks = _blocks(it, got, next_, recent)
        if again and draw() < 0.5:
            blocks = [(it.edge(segment), it.edge(segment + 1)), *blocks][:4]
        now = max(now + 1, due)
        horizon = max(horizon, now)
        script = DrawnScript(name=name, head=it.head, events=(*script.events, (now, it.ack(it.edge(next_), blocks))))
    return script


def _blocks(it: _Writer, got: set[int], next_: int, recent: Sequence[int]) -> list[tuple[int, int]]:
    """Return SACK blocks, the one with the latest arrival first (RFC 2018 section 4)."""
    blocks: list[tuple[int, int]] = []
    for segment in recent:
        if segment < next_:
            continue
        first = end = segment
        while first - 1 >= next_ and first - 1 in got:
            first -= 1
        while end + 1 in got:
            end += 1
        block = (it.edge(first), it.edge(end + 1))
        if block not in blocks:
            blocks.append(block)
    return blocks[:4]


def _data(script: DrawnScript, until_ms: int) -> list[tuple[float, int, int]]:
    """Return the data sent by the simulated stack by that time: ms, first byte, end."""
    sent = []
    for line in _simulated(script.text(until_ms=until_ms)).trace:
        if (found := _DATA.match(line)) and int(found[4]):
            sent.append((1000 * float(found[1]), int(found[2]), int(found[3])))
    return sent


def _simulated(text: str) -> Played:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "drawn.pkt"
        path.write_text(text, encoding="ascii")
        return play(path)
