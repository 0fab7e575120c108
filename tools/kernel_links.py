"""The simulator's netem jitter, TBF and FQ-PIE beside Linux's own, over qdisc networks.

    tools/kernel_links.py SEED [--packets N] [--paths N]
    tools/kernel_links.py SEED --before-rate [--packets N]

Jitter: datagrams at a constant rate cross a link with each of netem's distributions, with and without correlation. Both backends' one-way
delays are compared in units of 10 us (two-sample Kolmogorov-Smirnov test; 1 in 91 delays of "pareto" is cut off at one value, to which the links
behind add some nanoseconds), and so are the share of packets that others overtook and the correlation of successive delays.
Jitter before a rate (`--before-rate`, a record of its own): the same, in netem's own order (packets are delayed, then transmitted one after another) and with a limit that drops
some of them. Delays of neighbours depend on each other there, so every 50th is tested, and errors come of the means of 100 parts.
TBF draws nothing: TCP flows cross drawn buckets, and all events of both backends are compared.
FQ-PIE drops at random: goodput, retransmissions and RTT of every flow are compared over seeds, as `ackclock diff --seeds` does.
Writes measured/kernel-links.json, or measured/kernel-netem-order.json.
"""

from __future__ import annotations

import argparse
import math
import random
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ks_2samp

import book
from ackclock import linux, run
from ackclock.diff import compare, over_seeds
from ackclock.scenario import Scenario

SHAPES = ("uniform", "normal", "pareto", "paretonormal")
CORRELATIONS = (0.0, 0.25)
INTERVAL_NS = 100_000
PAYLOAD = 100
APART_NS = 2_000_000
"""Time between datagrams that cross a link with jitter and a rate."""
EVERY = 50
"""Number of datagrams, 100 ms, after which a delay no longer depends on an earlier one."""
PARTS = 100
LIMIT = 14
"""Packets that netem holds with jitter before a rate, delayed ones included: 10 in the mean, and more with its queue."""
LEVEL = 0.001
"""Significance level below which distributions count as different."""
STANDARD_ERRORS = 4.0
"""Difference of a share or a correlation, in standard errors, above which it counts as different."""
CONTROLLERS = ("cubic", "reno", "bbr")
FAIR = (
    ("10 Mbit/s", 20, 1, False),
    ("10 Mbit/s", 80, 4, False),
    ("50 Mbit/s", 40, 2, True),
    ("5 Mbit/s", 40, 2, False),
)
"""Cells of FQ-PIE: rate, RTT in ms, flows, ECN."""

Delays = NDArray[np.float64]


def jittered(shape: str, correlation: float, packets: int) -> Scenario:
    """Return a scenario in which datagrams cross a link with jitter and without a rate."""
    jitter = {"deviation": "5 ms", "distribution": shape, "correlation": correlation}
    rate = 8 * (PAYLOAD + 28) * 10**9 // INTERVAL_NS
    ms = packets * INTERVAL_NS // 10**6
    return Scenario.from_dict(
        {
            "duration": f"{ms + 100} ms",
            "network": {
                "framing": "14 bytes",
                "access": {"delay": "20 ms", "netem_jitter": jitter},
                "bottleneck": {"rate": "10 Gbit/s"},
            },
            "flows": [
                {
                    "transport": "udp",
                    "stop": f"{ms} ms",
                    "workload": {"kind": "constant-rate", "rate": f"{rate} bit/s", "payload": f"{PAYLOAD} bytes"},
                }
            ],
        }
    )


def before_rate(shape: str, packets: int) -> Scenario:
    """Return a scenario in which datagrams are delayed by drawn times, and then transmitted in order."""
    link = {
        "rate": "1 Mbit/s",
        "delay": "20 ms",
        "netem_jitter": {"deviation": "5 ms", "distribution": shape, "before_rate": True},
        "queue": {"kind": "netem-limit", "limit": f"{LIMIT} packets"},
    }
    rate = 8 * (PAYLOAD + 28) * 10**9 // APART_NS
    ms = packets * APART_NS // 10**6
    workload = {"kind": "constant-rate", "rate": f"{rate} bit/s", "payload": f"{PAYLOAD} bytes"}
    return Scenario.from_dict(
        {
            "duration": f"{ms + 1000} ms",
            "network": {"framing": "14 bytes", "access": link, "bottleneck": {"rate": "10 Gbit/s"}},
            "flows": [{"transport": "udp", "stop": f"{ms} ms", "workload": workload}],
        }
    )


def bucket(draw: random.Random) -> Scenario:
    """Return a scenario with a TCP flow through a drawn bucket."""
    rate = math.exp(draw.uniform(math.log(1), math.log(200)))
    rtt = math.exp(draw.uniform(math.log(2), math.log(200)))
    burst = round(math.exp(draw.uniform(math.log(1600), math.log(200_000))))
    limit = max(6000, round(draw.uniform(0.3, 3) * rate * rtt * 125))
    link = {
        "rate": f"{rate:.3f} Mbit/s",
        "delay": f"{rtt / 2:.3f} ms",
        "capacity": {"kind": "token-bucket", "burst": f"{burst} bytes"},
        "queue": {"kind": "drop-tail", "limit": draw.choice([f"{limit} bytes", f"{max(4, limit // 1514)} packets"])},
    }
    return Scenario.from_dict(
        {
            "duration": f"{max(2.0, min(20.0, 40 * rtt / 1000)):.1f} s",
            "network": {"framing": "14 bytes", "access": {"rate": "1 Gbit/s"}, "bottleneck": link},
            "flows": [{"congestion_control": draw.choice(CONTROLLERS)}],
        }
    )


def frames(file: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the time, ns, and the bytes of each frame of a pcapng file."""
    data, at = file.read_bytes(), 0
    while at < len(data):
        block, length = struct.unpack_from("<II", data, at)
        if block == 6:
            high, low, captured = struct.unpack_from("<III", data, at + 12)
            yield high << 32 | low, data[at + 28 : at + 28 + captured]
        at += length


def arrivals(file: Path, interval_ns: int = INTERVAL_NS) -> tuple[Delays, NDArray[np.int64]]:
    """Return the one-way delay, ms, of each datagram in order of arrival, and its number. The kernel numbers datagrams in their
    payload, the simulator by the IP identification, which wraps around."""
    delays, numbers, last = [], [], 0
    for t, frame in frames(file):
        if frame[0] >> 4 == 4:
            (number,) = struct.unpack(">I", frame[28:32])
        else:
            (identification,) = struct.unpack(">H", frame[18:20])
            number = identification - 1
            number += round((last - number) / 65536) * 65536
        last = number
        numbers.append(number)
        delays.append((t - number * interval_ns) / 1e6)
    return np.array(delays), np.array(numbers)


def overtaken(numbers: NDArray[np.int64]) -> float:
    """Return the share of packets that arrive after a later one."""
    return float(np.mean(numbers < np.maximum.accumulate(numbers)))


def successive(delays: Delays, numbers: NDArray[np.int64]) -> float:
    """Return the correlation between the delays of successive packets."""
    ordered = delays[np.argsort(numbers)]
    return float(np.corrcoef(ordered[:-1], ordered[1:])[0, 1])


def jitter_rows(packets: int, seed: int, folder: Path) -> tuple[list[list[Any]], int]:
    """Return one row for each distribution and correlation, and how many differ."""
    rows, different = [], 0
    for shape in SHAPES:
        for correlation in CORRELATIONS:
            scenario = jittered(shape, correlation, packets)
            ours, theirs = folder / "ours.pcapng", folder / "theirs.pcapng"
            run(scenario, seed=seed, pcap=ours, pcap_at="receiver")
            linux.run(scenario, seed=seed, network="qdisc", pcap=theirs, pcap_at="receiver")
            (a, i), (b, j) = arrivals(ours), arrivals(theirs)
            tested = ks_2samp(np.round(a, 2), np.round(b, 2))
            shares = overtaken(i), overtaken(j)
            along = successive(a, i), successive(b, j)
            error = math.sqrt(2 / min(len(a), len(b)))
            apart = (
                tested.pvalue < LEVEL
                or max(abs(shares[0] - shares[1]), abs(along[0] - along[1])) > STANDARD_ERRORS * error
            )
            different += bool(apart)
            name = shape if correlation == 0 else f"{shape}, correlation {correlation:.0%}"
            mean = f"{a.mean():.3f} / {b.mean():.3f} ms, deviation {a.std():.3f} / {b.std():.3f}"
            more = f"overtaken {shares[0]:.2%} / {shares[1]:.2%}, successive {along[0]:+.3f} / {along[1]:+.3f}"
            rows.append(
                [
                    f"jitter {name}",
                    min(len(a), len(b)),
                    f"{mean}; {more}",
                    f"D = {tested.statistic:.4f}, p = {tested.pvalue:.3f}",
                ]
            )
            print(*rows[-1], "DIFFERS" if apart else "", flush=True)
    return rows, different


def parts(values: Delays) -> tuple[float, float]:
    """Return the mean of a sequence, and its standard error of the means of its parts."""
    means = [part.mean() for part in np.array_split(values, PARTS)]
    return float(values.mean()), float(np.std(means, ddof=1)) / math.sqrt(PARTS)


def before_rate_rows(packets: int, seed: int, folder: Path) -> tuple[list[list[Any]], int]:
    """Return one row for each distribution of jitter before a rate, and how many differ."""
    rows, different = [], 0
    for shape in SHAPES:
        scenario = before_rate(shape, packets)
        ours, theirs = folder / "ours.pcapng", folder / "theirs.pcapng"
        run(scenario, seed=seed, pcap=ours, pcap_at="receiver")
        linux.run(scenario, seed=seed, network="qdisc", pcap=theirs, pcap_at="receiver")
        sides = [arrivals(file, APART_NS) for file in (ours, theirs)]
        every = [delays[np.isin(numbers, np.arange(0, packets, EVERY))] for delays, numbers in sides]
        tested = ks_2samp(np.round(every[0], 2), np.round(every[1], 2))
        lost = [1 - np.isin(np.arange(packets), numbers).astype(np.float64) for _, numbers in sides]
        steps = [np.abs(np.diff(delays)) for delays, _ in sides]
        pairs = [[parts(part) for part in some] for some in ([delays for delays, _ in sides], lost, steps)]
        apart = tested.pvalue < LEVEL or any(
            abs(a - b) > STANDARD_ERRORS * math.hypot(x, y) for (a, x), (b, y) in pairs
        )
        different += bool(apart)
        mean, drops, step = ((a, b) for (a, _), (b, _) in pairs)
        told = f"{mean[0]:.3f} / {mean[1]:.3f} ms, deviation {sides[0][0].std():.3f} / {sides[1][0].std():.3f}"
        more = f"dropped {drops[0]:.2%} / {drops[1]:.2%}, overtaken {overtaken(sides[0][1]):.2%} / {overtaken(sides[1][1]):.2%}"
        rows.append(
            [
                f"jitter {shape} before 1 Mbit/s, limit {LIMIT}",
                packets,
                f"{told}; {more}; from one to the next {step[0]:.3f} / {step[1]:.3f} ms",
                f"D = {tested.statistic:.4f}, p = {tested.pvalue:.3f} of {min(map(len, every)):,}",
            ]
        )
        print(*rows[-1], "DIFFERS" if apart else "", flush=True)
    return rows, different


def bucket_rows(paths: int, seed: int) -> tuple[list[list[Any]], int]:
    """Return one row for each drawn bucket, and how many differ."""
    draw = random.Random(seed)
    rows, different = [], 0
    for _ in range(paths):
        scenario = bucket(draw)
        found = compare(scenario, seed=seed, network="qdisc")
        link = scenario.to_dict()["network"]["bottleneck"]
        name = f"TBF {link['rate']}, {link['capacity']['burst']}, {link['queue']['limit']}, {scenario.flows[0].congestion_control}"
        apart = not found.identical
        different += apart
        rows.append(
            [name, found.events, "all events equal" if not apart else str(found.divergence or "tables differ"), ""]
        )
        print(*rows[-1], flush=True)
    return rows, different


def fair(rate: str, rtt: int, flows: int, *, ecn: bool) -> Scenario:
    """Return a scenario with TCP flows through FQ-PIE."""
    queue = {"kind": "fq-pie", "limit": "1000 packets", "ecn": ecn}
    flow = {"count": flows, "stagger": "97 ms", **({"stack": {"ecn": "ask"}} if ecn else {})}
    bottleneck = {"rate": rate, "delay": f"{rtt / 2} ms", "queue": queue}
    return Scenario.from_dict(
        {"duration": "10 s", "network": {"framing": "14 bytes", "bottleneck": bottleneck}, "flows": [flow]}
    )


def fair_rows(seeds: int, seed: int, jobs: int) -> tuple[list[list[Any]], int]:
    """Return one row for each cell of FQ-PIE, and how many differ."""
    rows, different = [], 0
    for rate, rtt, flows, ecn in FAIR:
        found = over_seeds(fair(rate, rtt, flows, ecn=ecn), seeds=seeds, first_seed=seed, network="qdisc", jobs=jobs)
        apart = any(spread.differs for spread in found.rows)
        different += apart
        together = [spread for spread in found.rows if spread.flow is None or flows == 1]
        means = "; ".join(f"{spread.quantity} {spread.means[0]:.3f} / {spread.means[1]:.3f}" for spread in together)
        least = min(found.rows, key=lambda spread: spread.chance)
        name = f"FQ-PIE {rate}, {rtt} ms, {flows} flow{'s' if flows > 1 else ''}{', ECN' if ecn else ''}"
        rows.append([name, seeds, means, f"least p = {least.chance:.3f} of {len(found.rows)}"])
        print(*rows[-1], "DIFFERS" if apart else "", flush=True)
    return rows, different


def record_before_rate(packets: int, seed: int) -> None:
    """Measure jitter before a rate, and write its record."""
    with tempfile.TemporaryDirectory() as folder:
        rows, different = before_rate_rows(packets, seed, Path(folder))
    book.record(
        "kernel-netem-order",
        what="netem's jitter before a rate of the simulator (`netem_jitter.before_rate`) beside Linux 7.3.4's own netem: datagrams of 142 bytes, 2 ms apart, 20 ms of delay, jitter of 5 ms",
        heads=["jitter", "packets", "simulator / kernel", "test"],
        rows=rows,
        seeds=str(seed),
        command=f"tools/kernel_links.py {seed} --before-rate",
        notes=[
            f"The test is of every {EVERY}th delay, because neighbours depend on each other. Distributions that differ at level {LEVEL}, or means of delays, drops or steps "
            f"by {STANDARD_ERRORS:.0f} standard errors: {different} of {len(rows)}."
        ],
    )


def main() -> int:
    """Measure, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seed", type=int)
    parser.add_argument("--packets", type=int, default=100_000)
    parser.add_argument("--paths", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=30, help="seeds of each cell of FQ-PIE")
    parser.add_argument("--jobs", type=int, default=2, help="guests side by side")
    parser.add_argument("--before-rate", action="store_true", help="jitter before a rate alone")
    asked = parser.parse_args()
    if asked.before_rate:
        record_before_rate(asked.packets, asked.seed)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        jitters, other = jitter_rows(asked.packets, asked.seed, Path(folder))
    buckets, apart = bucket_rows(asked.paths, asked.seed)
    fairs, others = fair_rows(asked.seeds, asked.seed, asked.jobs)
    book.record(
        "kernel-links",
        what="netem's jitter, TBF and FQ-PIE of the simulator beside Linux 7.3.4's own, over qdisc networks: distributions of 5 ms jitter around 20 ms, every event of TCP flows through drawn buckets, and TCP flows through FQ-PIE over seeds",
        heads=["discipline", "packets, events or seeds", "simulator / kernel", "test"],
        rows=[*jitters, *buckets, *fairs],
        seeds=str(asked.seed),
        notes=[
            f"Distributions that differ at level {LEVEL} (or share and correlation by {STANDARD_ERRORS:.0f} standard errors): {other} of {len(jitters)}. "
            f"Buckets with a differing event: {apart} of {len(buckets)}. Cells of FQ-PIE with a differing distribution: {others} of {len(fairs)}."
        ],
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
