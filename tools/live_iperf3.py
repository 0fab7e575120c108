"""iperf3 in `ackclock live` compared with a flow of our own in its place, in 20 drawn scenarios.

    tools/live_iperf3.py SEED [--only NUMBER...] [--seeds N]

Draw: rate 1 to 100 Mbit/s and RTT 2 to 200 ms, log-uniform; queue 0.3 to 3 BDP, at least 4 packets; CUBIC, Reno and
BBR in turn. Five scenarios lose packets in the queue, five by a script (in a queue that loses none), ten at random
(data segments, 0.1 to 2 %, log-uniform). 20 round trips, or the time of 4,000 packets (1,000 with random loss) at the
rate, whichever is longer, in whole seconds up to 7.

Our flow fetches endlessly; its request is as long as the first data sent by iperf3's client. Two further flows send
one byte each at the instants at which iperf3's control connection sends. Both are measured in captures at the sender,
from the first data on, over the same time. With random losses, and with BBR in a queue that loses (the kernel draws
the phase of its cycle), means of 50 seeds are compared (`--seeds`). Writes measured/live-iperf3.json.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import struct
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from scipy.stats import t as student

import book
from ackclock.formats.capture import read_capture
from ackclock.linux import _cache, _guest, _live, _translate
from ackclock.linux._facts import Has
from ackclock.linux._programs import Program
from ackclock.linux._run import a_cpu
from ackclock.scenario import Scenario

CONTROLLERS = ("cubic", "reno", "bbr")
COOKIE = 37
"""Bytes that iperf3's client sends first on its data connection."""
WRITE = 128 << 10
"""Write size of iperf3, and of our flow, bytes."""
LATER = 9 * 10**9
"""Time by which flows start later in the run with our own flow, ns: a whole number of kernel ticks."""
PACKET = 1514
"""Size of a full packet in the queue, bytes."""
SEEDS = 50


@dataclass(frozen=True)
class Drawn:
    """A scenario, and iperf3's sending time in it."""

    number: int
    kind: str
    controller: str
    rate: float
    rtt: float
    queue: int
    seconds: int
    loss: Mapping[str, Any] | None
    most_seeds: int = SEEDS

    @property
    def seeds(self) -> range:
        """Seeds of the runs: a single one if nothing is random."""
        by_chance = self.kind == "random" or (self.kind, self.controller) == ("queue", "bbr")
        return range(1, 1 + (self.most_seeds if by_chance else 1))

    def scenario(self, begins: tuple[int, int] | None = None) -> Scenario:
        """The network; with times, also a flow in place of iperf3's, and two that send like its control connection."""
        way = {"rate": f"{self.rate:.3f} Mbit/s", "delay": f"{self.rtt / 2:.3f} ms"}
        bottleneck: dict[str, Any] = {**way, "queue": {"kind": "drop-tail", "limit": f"{self.queue} packets"}}
        if self.loss:
            bottleneck["loss"] = self.loss
        flow = {"congestion_control": self.controller, "profile": "linux-6"}
        if begins is None:
            return Scenario.from_dict({"duration": "10 min", "network": {"bottleneck": bottleneck}, "flows": [flow]})
        syn, data = begins
        fetch = {"kind": "fetch", "bytes": "1000 GB", "request": f"{COOKIE} bytes"}
        byte = {"kind": "throttled", "rate": "1 bit/s", "chunk": "1 byte"}
        flows = [
            {**flow, "start": f"{LATER + syn} ns", "workload": fetch},
            {"profile": "linux-6", "count": 2, "start": f"{LATER + data - 8 * 10**9} ns", "workload": byte},
        ]
        duration = f"{(LATER + data) // 10**6 + 1000 * self.seconds + 1} ms"
        return Scenario.from_dict({"duration": duration, "network": {"bottleneck": bottleneck}, "flows": flows})


@dataclass(frozen=True)
class Seen:
    """Flow captured at its sender, cut to the compared interval."""

    data_ns: int
    retransmissions: int
    goodput: float
    data: tuple[tuple[int, int, int, int], ...]


def drawn(seed: int, number: int, most_seeds: int = SEEDS) -> Drawn:
    """A drawn scenario."""
    draw = random.Random(f"{seed}.{number}")

    def between(least: float, most: float) -> float:
        return math.exp(draw.uniform(math.log(least), math.log(most)))

    kind = "queue" if number < 5 else "scripted" if number < 10 else "random"
    rate, rtt = between(1, 100), between(2, 200)
    pipe = rate * 1e3 * rtt / 8 / PACKET
    queue = max(math.ceil(draw.uniform(0.3, 3) * pipe), 4)
    packets = rate * 1e6 / 8 / PACKET
    most = 1000 if kind == "random" else 4000
    seconds = min(max(1, math.ceil(20 * rtt / 1e3), math.ceil(most / packets)), 7)
    loss: dict[str, Any] | None = None
    if kind == "scripted":
        queue = 100_000
        # segments of the data connection: the control connection sends fewer than 30
        last = max(int(min(packets * seconds, 10 * pipe, 3000)), 200)
        firsts = sorted(draw.sample(range(40, last), 6))
        drops = [{"first": first, "last": first + draw.choice([0, 0, 1, 5])} for first in firsts]
        loss = {"kind": "scripted", "drops": drops}
    elif kind == "random":
        loss = {"kind": "bernoulli", "p": round(between(0.001, 0.02), 5), "applies_to": "data"}
    return Drawn(number, kind, CONTROLLERS[number % 3], rate, rtt, queue, seconds, loss, most_seeds)


def begins_ns(path: Path) -> int:
    """Time of a capture's first packet, ns since the start of the run."""
    data = path.read_bytes()
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:
            high, low = struct.unpack_from("<II", data, at + 12)
            return int(high << 32 | low)
        at += length
    raise SystemExit(f"{path}: no packets")


def syn_ns(path: Path) -> int:
    """Time of the SYN of the connection with the most data, in a capture at the client."""
    largest = read_capture(path).with_data().row(0, named=True)
    begins: float = largest["begins_s"]
    return begins_ns(path) + round(begins * 1e9)


def seen(path: Path, one: Drawn) -> Seen:
    """Retransmissions, goodput and packets of the flow with the most data in a capture."""
    largest = read_capture(path).with_data().row(0, named=True)
    packets = read_capture(path, connection=largest["connection"]).packets
    assert packets is not None
    from_server = largest["way"] == "server"
    ns = (packets["t_s"] * 1e9).round().cast(pl.Int64) + begins_ns(path)
    packets = packets.with_columns(ns=ns)
    ours, back = packets["from_server"] == from_server, packets["from_server"] != from_server
    data = packets.filter(ours & (packets["length"] > 0))
    first = int(data["ns"][0])
    until = first + one.seconds * 10**9 - 10**7
    data = data.filter(data["ns"] < until)
    ends = (data["seq"] + data["length"]).cum_max().shift(1, fill_value=0)
    acks = packets.filter(back & (packets["ns"] < until))["ack"].max()
    assert isinstance(acks, float)
    goodput = (acks - 1) * 8 / (until - first) * 1e3
    rows = tuple(zip(data["ns"] - first, data["seq"], data["length"], data["flags"], strict=True))
    return Seen(first, int((data["seq"] < ends).sum()), goodput, rows)


def iperf3(one: Drawn, seed: int, place: Path) -> Seen:
    """iperf3's flow."""
    programs = [
        Program(host="server", command="iperf3 -s -1"),
        Program(host="client", command=f"iperf3 -c server -R -t {one.seconds} -C {one.controller}", counts=True),
    ]
    done = _live.live(one.scenario(), programs, seed=seed, out=place, wall_limit_s=600)
    if any(program.code for program in done.programs):
        raise SystemExit(f"scenario {one.number}: {[program.stderr for program in done.programs]}")
    return seen(place / "server" / "server.pcapng", one)


def own(one: Drawn, seed: int, begins: tuple[int, int], place: Path) -> Seen:
    """The bulk flow in iperf3's place."""
    which = _cache.installed()
    compiled = json.loads(one.scenario(begins).to_engine_json(capture="sender"))
    job = _translate.job(compiled, seed, "relay", Has.of(which.about))
    job["write"] = WRITE
    capture = place / "own.pcapng"
    _guest.play(job, seed, kernel=which, cpu=a_cpu(), wall_limit_s=600, capture=capture)
    return seen(capture, one)


def both(one: Drawn, place: Path) -> tuple[list[Seen], list[Seen]]:
    """iperf3's flows, and ours in their place, for every seed."""
    theirs, ours = [], []
    for seed in one.seeds:
        theirs.append(iperf3(one, seed, place))
        ours.append(own(one, seed, (syn_ns(place / "client" / "client.pcapng"), theirs[-1].data_ns), place))
    return theirs, ours


def difference(theirs: Sequence[float], ours: Sequence[float]) -> tuple[float, float]:
    """Difference of the means, with half of Welch's 95 % interval."""
    parts = [statistics.variance(some) / len(some) for some in (theirs, ours)]
    apart = statistics.fmean(theirs) - statistics.fmean(ours)
    if not sum(parts):
        return apart, 0.0
    freedom = sum(parts) ** 2 / sum(part**2 / (len(theirs) - 1) for part in parts)
    return apart, float(student.ppf(0.975, freedom)) * math.sqrt(sum(parts))


def row(one: Drawn, theirs: Sequence[Seen], ours: Sequence[Seen]) -> list[book.Cell]:
    """Table row for a scenario."""
    same = sum(a.data == b.data for a, b in zip(theirs, ours, strict=True))
    sent = [[seen.retransmissions for seen in some] for some in (theirs, ours)]
    goodput = [[seen.goodput for seen in some] for some in (theirs, ours)]
    means = [*map(statistics.fmean, sent), *map(statistics.fmean, goodput)]
    verdict = sent[0] == sent[1] and all(abs(a / b - 1) <= 0.001 for a, b in zip(*goodput, strict=True))
    margins = ["", ""]
    if len(one.seeds) > 1:
        found = [difference(*sent), difference(*goodput)]
        margins = [f"{apart:+.3g} ± {half:.2g}" for apart, half in found]
        verdict = all(abs(apart) <= half for apart, half in found)
    loss = one.kind if one.kind != "random" or one.loss is None else f"random, {one.loss['p']:.2%}"
    return [
        one.number,
        loss,
        one.controller,
        f"{one.rate:.2f}",
        f"{one.rtt:.1f}",
        one.queue,
        one.seconds,
        len(one.seeds),
        same,
        *(f"{mean:.6g}" for mean in means),
        *margins,
        "yes" if verdict else "no",
    ]


HEADS = (
    "scenario", "losses", "controller", "Mbit/s", "RTT, ms", "queue, packets", "s", "seeds", "identical in every packet",
    "retransmissions of iperf3", "of ours", "goodput of iperf3, Mbit/s", "of ours", "difference of retransmissions", "of goodput", "agrees",
)  # fmt: skip


def main() -> None:
    """Measure and record."""
    about = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    about.add_argument("seed", type=int)
    about.add_argument("--only", type=int, nargs="+")
    about.add_argument("--seeds", type=int, default=SEEDS, help="seeds of a scenario with chance in it")
    given = about.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as place:
        for number in given.only or range(20):
            one = drawn(given.seed, number, given.seeds)
            rows.append(row(one, *both(one, Path(place))))
            print(*rows[-1], sep=" | ", flush=True)
    if given.only:
        return
    book.record(
        "live-iperf3",
        what="iperf3 3.12 in `ackclock live` beside a flow of our own in its place, in scenarios drawn by `tools/live_iperf3.py`, in captures at the sender",
        heads=HEADS,
        rows=rows,
        seeds=f"{given.seed}, and 1 to {given.seeds} in the scenarios",
        command=f"tools/live_iperf3.py {given.seed}" + (f" --seeds {given.seeds}" if given.seeds != SEEDS else ""),
        notes=[
            "Agrees, with one seed: retransmissions are equal, and goodput to within 0.1 %. With more: zero lies within Welch's 95 % interval of both differences of means, "
            "which one of 20 differences misses by chance.",
            "Both write 128 KiB at a time, so that segments with the flag PSH are the same, too.",
            "iperf3's control connection is played by two flows that send one byte each when its server starts the test. Without them, queues of 4 packets drop others "
            "of the first ten segments, and retransmissions differ by up to 70 %.",
        ],
    )


if __name__ == "__main__":
    main()
