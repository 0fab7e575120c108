"""Scenario families drawn from a seed: further effects of hosts, applications and paths on a connection.

Each scenario has one flow (family "flows": two to four) with one of sixteen controllers in turn, over a path of 2 to 50
Mbit/s and 10 to 200 ms with a queue of half to twice the bandwidth-delay product. Half of the flows also lose random
packets, the same ones on both backends. Each family adds its own feature:

| family | what is drawn |
| --- | --- |
| reordering | reordering in both directions |
| way-back | ACKs that are lost, delayed, thinned or aggregated |
| windows | small and large initial windows, bounded receivers, small and large segments |
| ecn | queues that mark (CoDel, FQ-CoDel, PIE, a threshold, DualPI2); ECN of RFC 3168 and AccECN |
| writers | applications that pause, so that they write to an idle connection |
| switches | SACK, timestamps, TLP, F-RTO, SACK compression off; another minimum RTO |
| bursts | losses in bursts or at a fixed distance, jitter, policers |
| flows | two to four flows with different controllers, started one after another |
| offload | multi-segment packets, and hosts that split and merge them; over the kernel's queueing disciplines |
| kept | consecutive requests on connections that stay open |
| steps | rate, delay and loss that change in steps |
| outages | links that stop for a while |
| two-steps | rate and delay that change once; only the full queue drops packets |
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ackclock.fidelity.drawn import ALL_CONTROLLERS, Drawn
from ackclock.linux import NetworkKind
from ackclock.scenario import Scenario

__all__ = ["BY_NAME", "COUNT", "FAMILIES", "SUITES", "family"]

COUNT = 10
"""Default number of scenarios in a family."""

SECONDS = 8
"""Duration of an open-ended flow, s."""
MOST_SECONDS = 60
"""Maximum duration of a flow of limited size, s."""

SUITES: tuple[tuple[str, str | None], ...] = (
    *((name, None) for name in ALL_CONTROLLERS),
    ("cubic", "prr-rfc9937"),
    ("reno", "prr-ssrb"),
)
"""Controllers and recovery rules, used in turn."""

Table = dict[str, Any]


class Draw:
    """Random numbers that depend only on the family, the seed and the scenario's number."""

    def __init__(self, family: str, seed: int, number: int) -> None:
        # Only `random()` is documented to give the same numbers in every version of Python.
        self._next = random.Random(f"family {family} {seed} {number}").random

    def between(self, low: int, high: int) -> int:
        """Draw a whole number; both ends are included."""
        return low + int(self._next() * (high - low + 1))

    def spread(self, low: float, high: float) -> float:
        """Draw a log-uniform number, rounded to three digits."""
        return float(f"{low * (high / low) ** self._next():.3g}")

    def one(self, of: Sequence[Any]) -> Any:
        """Draw one item of a list."""
        return of[int(self._next() * len(of))]

    def chance(self, share: float) -> bool:
        """Return True with this probability."""
        return self._next() < share


class Sketch:
    """Scenario under construction: path, flow and description."""

    def __init__(self, draw: Draw, number: int) -> None:
        self.draw = draw
        self.controller, self.recovery = SUITES[number % len(SUITES)]
        self.mbps = draw.spread(2, 50)
        self.rtt_ms = draw.between(10, 200)
        self.bdp = self.mbps * 1e3 * self.rtt_ms / (8 * 1514)
        self.queue = max(10, round(self.bdp * draw.spread(0.5, 2)))
        half = f"{self.rtt_ms * 500} us"
        limit = {"kind": "drop-tail", "limit": f"{self.queue} packets"}
        self.link: Table = {"rate": f"{self.mbps:g} Mbit/s", "delay": half, "queue": limit}
        self.back: Table = {"delay": half}
        self.stack: Table = {}
        self.workload: Table = {"kind": "bulk"}
        self.said = [f"{self.controller}{' ' + self.recovery if self.recovery else ''}"]
        self.said.append(f"{self.mbps:g} Mbit/s, {self.rtt_ms} ms, queue {self.queue}")
        self.more: list[Table] = []
        self.hosts: list[Table] = []
        self.network: NetworkKind = "relay"
        self.seconds = SECONDS

    def say(self, text: str) -> None:
        """Add a drawn feature to the description."""
        self.said.append(text)

    def lose(self, share: float = 0.5) -> None:
        """Add random losses with this probability."""
        if self.draw.chance(share):
            p = self.draw.spread(0.0005, 0.02)
            self.link["loss"] = {"kind": "bernoulli", "p": p}
            self.say(f"{p:.2%} lost")

    def send(self) -> None:
        """Choose a workload: a bulk flow or a transfer."""
        if self.draw.chance(1 / 3):
            size = 1448 * self.draw.between(10, 600)
            self.workload = {"kind": "transfer", "bytes": f"{size} bytes"}
            self.seconds = MOST_SECONDS
            self.say(f"{size} bytes")

    def flow(self, **changes: Any) -> Table:
        """Return the flow as scenario keys."""
        made = {"profile": "linux-6", "congestion_control": self.controller, "workload": self.workload, **changes}
        if self.recovery and "congestion_control" not in changes:
            made["recovery"] = self.recovery
        if self.stack:
            made["stack"] = self.stack
        return made

    def done(self, family: str, number: int) -> Drawn:
        """Return the finished scenario."""
        told: Table = {
            "name": f"{family}-{number}",
            "duration": f"{self.seconds} s",
            "network": {
                "topology": "chain",
                "framing": "14 bytes",
                "bottleneck": self.link,
                "reverse": {"bottleneck": self.back},
            },
            "flows": [self.flow(), *self.more],
        }
        if self.hosts:
            told["hosts"] = self.hosts
            for flow in told["flows"]:
                flow |= {"host": self.hosts[0]["name"], "peer_host": self.hosts[1]["name"]}
        said = f"{family} {number}: {', '.join(self.said)}"
        return Drawn(name=said, kind=family, scenario=Scenario.from_dict(told), network=self.network)


def family(name: str, seed: int, count: int = COUNT) -> Iterator[Drawn]:
    """Draw scenarios from a family; each depends only on the family, the seed and its number.

    Parameters
    ----------
    name
        One of `FAMILIES`.
    seed
        Any number.
    count
        Number of scenarios.
    """
    for number in range(count):
        # so that a different seed gives a different controller at the same number
        sketch = Sketch(Draw(name, seed, number), number + seed * count)
        FAMILIES[name](sketch)
        yield sketch.done(name, number)


def _reordering(it: Sketch) -> None:
    it.send()
    it.lose()
    for link, way in ((it.link, "overtaken"), (it.back, "ACKs overtaken")):
        if link is it.link or it.draw.chance(0.25):
            share, extra = it.draw.spread(0.002, 0.05), it.draw.between(1, max(2, it.rtt_ms // 2))
            link["reorder"] = {"probability": share, "extra_delay": f"{extra} ms"}
            it.say(f"{share:.1%} {way} for {extra} ms")


def _way_back(it: Sketch) -> None:
    it.send()
    it.lose()
    kind = it.draw.one(("lost", "slow", "thinned", "aggregated"))
    if kind == "lost":
        share = it.draw.spread(0.01, 0.3)
        it.back["loss"] = {"kind": "bernoulli", "p": share}
        it.say(f"{share:.1%} of the ACKs lost")
    elif kind == "aggregated":
        ms = it.draw.spread(0.5, 15)
        it.back["aggregate"] = f"{ms:g} ms"
        it.say(f"ACKs aggregated for {ms:g} ms")
    else:
        # with one 66-byte ACK per two full segments, the return path is full below 1/46 of the rate
        share, limit = it.draw.between(30, 150), it.draw.between(5, 100)
        it.back |= {
            "rate": f"{it.mbps / share:.4g} Mbit/s",
            "queue": {"kind": "drop-tail", "limit": f"{limit} packets"},
        }
        it.say(f"1/{share} of the rate back, queue {limit}")
        if kind == "thinned":
            it.back["thin_acks"] = it.draw.between(2, 16)
            it.say(f"thinned by {it.back['thin_acks']}")


def _windows(it: Sketch) -> None:
    it.send()
    it.lose()
    kinds = it.draw.one((("first",), ("bounded",), ("segments",), ("first", "bounded"), ("segments", "bounded")))
    if "first" in kinds:
        it.stack["initial_window"] = it.draw.one((1, 2, 3, 4, 16, 20, 32, 50))
        it.say(f"initial window {it.stack['initial_window']}")
    if "segments" in kinds:
        it.stack["smss"] = f"{it.draw.one((256, 512, 536, 1000, 1220, 1400, 2000, 4000))} bytes"
        it.say(f"segments of {it.stack['smss']}")
    if "bounded" in kinds:
        it.stack["receive_buffer"] = f"{round(it.draw.spread(6_000, 600_000))} bytes"
        it.say(f"receiver bounded to {it.stack['receive_buffer']}")


def _ecn(it: Sketch) -> None:
    it.send()
    it.lose(0.25)
    queues: dict[str, Table] = {
        "codel": {"kind": "codel", "limit": "1000 packets", "ecn": True},
        "fq-codel": {"kind": "fq-codel", "ecn": True},
        "pie": {"kind": "pie", "limit": f"{2 * it.queue} packets", "ecn": True},
        "threshold": {"kind": "threshold", "mark": f"{max(5, it.queue // 4)} packets", "limit": f"{it.queue} packets"},
        "dualpi2": {"kind": "dualpi2", "classifier": it.draw.one(("l4s", "any-ect"))},
    }
    it.link["queue"] = queue = queues[it.draw.one(tuple(queues))]
    it.stack["ecn"] = it.draw.one(("ask", "ask", "accecn"))
    it.say(f"{queue['kind']}, {it.stack['ecn']}")


def _writers(it: Sketch) -> None:
    it.lose()
    rate, chunk = it.mbps * it.draw.spread(0.05, 0.9), round(it.draw.spread(1_000, 300_000))
    it.workload = {"kind": "throttled", "rate": f"{rate:.4g} Mbit/s", "chunk": f"{chunk} bytes"}
    it.say(f"{chunk} bytes at {rate:.3g} Mbit/s")
    if it.draw.chance(0.5):
        first = round(it.draw.spread(10_000, 500_000))
        it.workload["initial"] = f"{first} bytes"
        it.say(f"{first} bytes first")
    if it.draw.chance(0.25):
        it.stack["idle_restart"] = False
        it.say("no restart after idle")


SWITCHES: tuple[Table, ...] = (
    {"sack": False},
    {"timestamps": False},
    {"sack": False, "timestamps": False},
    {"tlp": False},
    {"frto": False},
    {"sack_compression": False},
    {"tlp": False, "sack_compression": False},
    {"sack": False, "frto": False},
)


def _switches(it: Sketch) -> None:
    it.send()
    it.lose(0.75)
    it.stack |= it.draw.one(SWITCHES)
    it.say(" and ".join(it.stack) + " off")
    if it.draw.chance(0.25):
        ms = it.draw.one((5, 10, 30, 50, 100, 400, 1000))
        it.stack["min_rto"] = f"{ms} ms"
        it.say(f"least RTO {ms} ms")


def _bursts(it: Sketch) -> None:
    it.send()
    kind = it.draw.one(("gilbert-elliott", "periodic", "jitter", "policer"))
    if kind == "gilbert-elliott":
        p, r = it.draw.spread(0.0005, 0.01), it.draw.spread(0.1, 0.6)
        it.link["loss"] = {"kind": kind, "p": p, "r": r}
        it.say(f"bursts of {1 / r:.1f} lost, {p:.2%}")
    elif kind == "periodic":
        every = it.draw.between(30, 1000)
        it.link["loss"] = {"kind": kind, "every": every, "offset": it.draw.between(0, 50)}
        it.say(f"every {every}th lost")
    elif kind == "jitter":
        it.lose()
        ms = it.draw.spread(0.1, it.rtt_ms / 4)
        (it.link if it.draw.chance(0.5) else it.back)["jitter"] = f"{ms:g} ms"
        it.say(f"jitter {ms:g} ms")
    else:
        share, bucket = it.draw.spread(0.3, 0.9), round(it.draw.spread(15_000, 150_000))
        it.link["loss"] = {"kind": kind, "rate": f"{it.mbps * share:.4g} Mbit/s", "bucket": f"{bucket} bytes"}
        it.say(f"policed to {share:.0%}, bucket {bucket} bytes")


def _flows(it: Sketch) -> None:
    it.lose(0.25)
    for n in range(it.draw.between(1, 3)):
        controller = it.draw.one(ALL_CONTROLLERS)
        start = (n + 1) * it.draw.between(1, 900)
        it.more.append(it.flow(congestion_control=controller, start=f"{start} ms"))
        it.say(f"{controller} from {start} ms")


def _offload(it: Sketch) -> None:
    it.send()
    it.network = "qdisc"
    it.stack["tso"] = True
    if it.draw.chance(0.5):
        card = {"gro": True, "cuts_packets": True}
        it.hosts = [{"name": name, **card} for name in ("sender", "receiver")]
        it.say("cut and merged")
    else:
        it.say("whole to the peer")


def _kept(it: Sketch) -> None:
    it.lose()
    requests, size = it.draw.between(2, 20), round(it.draw.spread(500, 300_000))
    think = it.draw.one((0, 1, 20, 250, 700))
    it.workload = {
        "kind": "transactions",
        "bytes": {"kind": "uniform", "low": f"{size} bytes", "high": f"{4 * size} bytes"},
        "arrivals": {"kind": "periodic", "interval": f"{it.draw.between(200, 2000)} ms"},
        "requests": requests,
        "think": f"{think} ms",
        "count": it.draw.between(1, 4),
        "max_open": 1000,
        "close": it.draw.one(("server", "client")),
    }
    it.seconds = 30
    it.say(f"{it.workload['count']} x {requests} requests of {size} bytes and more, think {think} ms")


def _steps(it: Sketch) -> None:
    it.lose(0.25)
    steps: list[Table] = []
    at = 0
    for _ in range(it.draw.between(1, 5)):
        at += it.draw.between(200, 2500)
        step: Table = {"at": f"{at} ms"}
        what = it.draw.one(("rate", "delay", "loss", "rate and delay"))
        if "rate" in what:
            step["rate"] = f"{it.mbps * it.draw.spread(0.2, 3):.4g} Mbit/s"
        if "delay" in what:
            step["delay"] = f"{it.draw.between(it.rtt_ms * 100, it.rtt_ms * 1500)} us"
        if what == "loss":
            step["loss"] = it.draw.spread(0.001, 0.05)
        steps.append(step)
    it.link["capacity"] = {"kind": "schedule", "steps": steps}
    it.say("; ".join(f"{key} {value}" for step in steps for key, value in step.items() if key != "at"))


def _two_steps(it: Sketch) -> None:
    # this family has its own paths: slower and shorter, with shallower queues
    (first, mbps), (near, far) = (
        [it.draw.spread(0.5, 20) for _ in range(2)],
        [it.draw.between(1, 50) for _ in range(2)],
    )
    at, queue = it.draw.between(300, 2500), round(it.draw.spread(10, 500))
    limit = {"kind": "drop-tail", "limit": f"{queue} packets"}
    step = {"at": f"{at} ms", "rate": f"{mbps:g} Mbit/s", "delay": f"{far} ms"}
    steps = {"kind": "schedule", "steps": [step]}
    it.link = {"rate": f"{first:g} Mbit/s", "delay": f"{near} ms", "queue": limit, "capacity": steps}
    it.back = {"delay": f"{near} ms"}
    it.seconds = 7
    it.said[1:] = [f"{first:g} Mbit/s, {near} ms, queue {queue}", f"at {at} ms {mbps:g} Mbit/s, {far} ms"]


def _outages(it: Sketch) -> None:
    it.send()
    it.lose(0.25)
    at, lasts = it.draw.between(100, 3000), it.draw.spread(20, 3000)
    arrivals = it.draw.one(("wait", "lost"))
    outage: Table = {"at": f"{at} ms", "lasts": f"{lasts:g} ms", "arrivals": arrivals}
    if it.draw.chance(0.3):
        outage["every"] = f"{round(lasts) + it.draw.between(300, 4000)} ms"
    back = it.draw.chance(0.3)
    (it.back if back else it.link)["outage"] = outage
    again = f" every {outage['every']}" if "every" in outage else ""
    it.say(f"{'way back ' if back else ''}out for {lasts:g} ms at {at} ms{again}, arrivals {arrivals}")


FAMILIES: dict[str, Callable[[Sketch], None]] = {
    "reordering": _reordering,
    "way-back": _way_back,
    "windows": _windows,
    "ecn": _ecn,
    "writers": _writers,
    "switches": _switches,
    "bursts": _bursts,
    "flows": _flows,
    "offload": _offload,
    "kept": _kept,
    "steps": _steps,
    "outages": _outages,
    "two-steps": _two_steps,
}
"""Family name -> function that draws its scenarios."""

BY_NAME = frozenset({"two-steps"})
"""Families drawn only on request: variants of others."""
