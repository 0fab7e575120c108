"""Checks Linux's own RED packet by packet against the rules of `linux-red`.

The kernel's draws are unknown, but two captures of a run show when each packet reached the bottleneck and which of them
got a signal. From that the oracle below computes the mean, the count and the probability of a signal for each packet.
No signal may occur with probability 0, none may be missing with probability 1, and their number has to match the sum of
the probabilities.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import ackclock
from ackclock import linux

RATE = 50_000_000  # bit/s
FRAMING = 14
MIN, MAX, WLOG = 30_000, 90_000, 5  # as tc computes it from a burst of 55 packets of 1000 bytes
PERCENT = 42_949_673  # of 2^32, to the nearest
ADAPTS = 504_000_000  # ns
DURATION = 10_000_000_000
CE = 3


def cell(**options: bool) -> ackclock.Scenario:
    queue = {"kind": "linux-red", "limit": "400 kB", "min": "30 kB", "max": "90 kB", "burst": 55, **options}
    stack: dict[str, Any] = {"packet_memory": "handed-on"}
    if "ecn" in options:
        stack["ecn"] = "ask"
    return ackclock.Scenario.from_dict(
        {
            "duration": f"{DURATION} ns",
            "network": {
                "framing": f"{FRAMING} bytes",
                "bottleneck": {"rate": f"{RATE} bit/s", "delay": "20 ms", "queue": queue},
            },
            "flows": [{"count": 8, "stack": stack}],
        }
    )


@dataclass
class Arrival:
    """A packet at the bottleneck: arrival time, ns; size with framing; outcome."""

    t: int
    size: int
    dropped: bool
    marked: bool


def packets(file: Path) -> Iterator[tuple[int, bytes]]:
    data, at = file.read_bytes(), 0
    while at < len(data):
        block, length = struct.unpack_from("<II", data, at)
        if block == 6:
            high, low, captured = struct.unpack_from("<III", data, at + 12)
            yield high << 32 | low, data[at + 28 : at + 28 + captured]
        at += length


def sent(file: Path) -> Iterator[tuple[int, Any, int, int]]:
    """Return time, identity, size and ECN field of the packets sent by the senders."""
    for t, frame in packets(file):
        ip = frame if frame[0] >> 4 == 4 else frame[14:]
        size, identity = struct.unpack(">HH", ip[2:6])
        if ip[13] == 0:  # senders have 10.0.*.*
            yield t, (identity, ip[12:16], ip[20:28], size), size, ip[1] & 3


def arrivals(scenario: ackclock.Scenario, seed: int, folder: Path) -> list[Arrival]:
    """Return the packets that reached the bottleneck while both captures still show the same run: capturing may shift
    the kernel's draws.
    """
    files = {}
    for place in ("sender", "receiver"):
        files[place] = folder / f"{place}.pcapng"
        linux.run(scenario, seed=seed, network="qdisc", pcap=files[place], pcap_at=place)
    heard: dict[Any, deque[tuple[int, int]]] = {}
    for t, key, _, ecn in sent(files["receiver"]):
        heard.setdefault(key, deque()).append((t, ecn))
    out = []
    for t, key, size, ecn in sent(files["sender"]):
        found = heard[key].popleft() if heard.get(key) else None
        out.append(Arrival(t, size + FRAMING, found is None, found is not None and found[1] == CE != ecn))
    parted = min((t for waiting in heard.values() for t, _ in waiting), default=DURATION)
    # the outcome of packets in flight at the end is unknown; a signal becomes visible one round trip and one queueing
    # delay later
    return [a for a in out if a.t < min(parted, DURATION) - 250_000_000]


def judged(seen: list[Arrival], *, adaptive: bool, harddrop: bool) -> tuple[list[str], list[tuple[float, bool]]]:
    """Return the impossible outcomes, and the probability and outcome of each packet whose signal is random."""
    odd: list[str] = []
    chances: list[tuple[float, bool]] = []
    p, band, adapts = round(0.02 * 2**32), MAX - MIN, ADAPTS
    per_byte = p // band
    mean, count, drawn_from, past = 0, -1, 1.0, 0.0
    free, backlog, waiting = 0.0, 0, deque[tuple[float, int]]()
    for n, a in enumerate(seen):
        while adaptive and adapts <= a.t:
            if mean >> WLOG > MIN + 3 * (band // 5) and p <= 50 * PERCENT:
                p += min(PERCENT, p // 4)
            elif mean >> WLOG < MIN + 2 * (band // 5) and p >= PERCENT:
                p = p // 10 * 9
            per_byte = (p + band // 2) // band
            adapts += ADAPTS
        while waiting and waiting[0][0] <= a.t:
            backlog -= waiting.popleft()[1]
        mean += backlog - (mean >> WLOG)
        signalled = a.dropped or a.marked
        if mean < MIN << WLOG:
            count = -1
            odd += [f"packet {n}: a signal below min"] if signalled else []
        elif mean >= MAX << WLOG:
            count = -1
            hard = a.dropped if harddrop else signalled
            odd += [] if hard else [f"packet {n}: no signal above max"]
        else:
            count += 1
            if count == 0:
                drawn_from, past = 2**32 / per_byte, 0.0
                odd += [f"packet {n}: a signal at the first packet"] if signalled else []
            else:
                share = ((mean - (MIN << WLOG)) >> WLOG) * count / drawn_from
                chances.append((max(share - past, 0) / (1 - past) if share < 1 else 1.0, signalled))
                odd += [f"packet {n}: a signal where it was due before"] if signalled and share <= past else []
                odd += [f"packet {n}: none where it was certain"] if not signalled and share > 1.0001 else []
                past = max(past, share)
                if signalled:
                    count, past, drawn_from = 0, 0.0, 2**32 / per_byte
        if not a.dropped:
            start = max(free, a.t)
            if start > a.t:
                waiting.append((start, a.size))
                backlog += a.size
            free = start + a.size * 8e9 / RATE
    return odd, chances


@pytest.mark.parametrize(
    "options",
    [{}, {"adaptive": True}, {"ecn": True, "harddrop": True}, {"adaptive": True, "ecn": True}],
    ids=lambda options: " ".join(options) or "plain",
)
def test_every_decision_of_the_kernels_red_is_one_of_ours(
    kernel: linux.Kernel, options: dict[str, bool], tmp_path: Path
) -> None:
    """Without ECN a signal is a drop. With ECN a retransmission is dropped while other packets are marked."""
    chances: list[tuple[float, bool]] = []
    adaptive, harddrop = options.get("adaptive", False), options.get("harddrop", False)
    for seed in (1, 2):
        seen = arrivals(cell(**options), seed, tmp_path)
        assert len(seen) > 5_000
        odd, found = judged(seen, adaptive=adaptive, harddrop=harddrop)
        assert odd == []
        chances += found
    came, expected = sum(signalled for _, signalled in chances), sum(p for p, _ in chances)
    spread = sum(p * (1 - p) for p, _ in chances) ** 0.5
    assert expected > 40
    assert abs(came - expected) < 4 * spread, f"{came} signals where {expected:.1f} were due, within {spread:.1f}"


def test_the_oracle_sees_another_mean(kernel: linux.Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = arrivals(cell(), 1, tmp_path)
    monkeypatch.setattr("test_linux_red.WLOG", WLOG + 1)
    assert judged(seen, adaptive=False, harddrop=False)[0] != []
