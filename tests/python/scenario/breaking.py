"""Scenarios drawn from a seed, each breaking one rule between keys. Amounts are written as the engine writes them: whole, in the largest unit."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

from ackclock.scenario._keys import put

BASE: dict[str, Any] = {
    "duration": "2 s",
    "network": {"bottleneck": {"rate": "10 Mbit/s", "delay": "20 ms"}},
    "flows": [{"congestion_control": "reno"}],
}
LINK = "network.bottleneck"
QUEUE = f"{LINK}.queue"
STACK = "flows.0.stack"
WORKLOAD = "flows.0.workload"

Draw = Callable[[int, int], int]
Changes = dict[str, Any]

RULES: list[tuple[str, Callable[[Draw], Changes]]] = []
"""Refused key, and the change that breaks the rule."""


def each(key: str, *changes: Callable[[Draw], Changes]) -> None:
    RULES.extend((key, make) for make in changes)


def ms(n: int) -> str:
    return f"{n // 1000} s" if n % 1000 == 0 else f"{n} ms"


def mbit(n: int) -> str:
    return f"{n // 1000} Gbit/s" if n % 1000 == 0 else f"{n} Mbit/s"


def packets(n: int) -> str:
    return f"{n} packets"


def size(n: int) -> str:
    return f"{n} bytes"


def codel(kind: str) -> Callable[[Draw], Changes]:
    return lambda d: {QUEUE: {"kind": kind, "target": ms(d(51, 90)), "interval": ms(d(10, 50))}}


for kind in ("codel", "fq-codel"):
    each(f"{QUEUE}.target", codel(kind))
    each(f"{QUEUE}.interval", lambda d, kind=kind: {QUEUE: {"kind": kind, "interval": ms(d(1, 4))}})
each(
    f"{QUEUE}.mark",
    lambda d: {QUEUE: {"kind": "threshold", "mark": packets(d(21, 90)), "limit": packets(d(2, 20))}},
)
for kind in ("red", "choke"):
    each(
        f"{QUEUE}.min",
        lambda d, kind=kind: {QUEUE: {"kind": kind, "limit": "90 packets", "min": packets(d(20, 50)), "max": packets(d(2, 20))}},
    )  # fmt: skip
    each(
        f"{QUEUE}.limit",
        lambda d, kind=kind: {QUEUE: {"kind": kind, "limit": packets(d(2, 19)), "min": packets(d(20, 50)), "max": "60 packets"}},
    )  # fmt: skip
each(
    f"{QUEUE}.min",
    lambda d: {
        QUEUE: {"kind": "linux-red", "limit": "90001 bytes", "min": size(d(3001, 5000)), "max": size(d(20, 3000))}
    },
)
each(
    f"{QUEUE}.limit",
    lambda d: {
        QUEUE: {"kind": "linux-red", "limit": size(d(2, 2000)), "min": size(d(3001, 5000)), "max": "60001 bytes"}
    },
)
each(
    f"{LINK}.loss.drops.1.last",
    lambda d: {f"{LINK}.loss": {"kind": "scripted", "drops": [{"first": 1}, {"first": d(50, 90), "last": d(1, 49)}]}},
)
each(
    f"{LINK}.loss.drops.0.flow",
    lambda d: {"flows.0.count": d(1, 3), f"{LINK}.loss": {"kind": "scripted", "drops": [{"first": 1, "flow": d(3, 9)}]}},
)  # fmt: skip
each(
    f"{LINK}.capacity.steps.1.at",
    lambda d: {f"{LINK}.capacity": {"kind": "schedule", "steps": [{"at": ms(d(500, 900))}, {"at": ms(d(1, 500))}]}},
)
each(
    f"{LINK}.capacity.repeat",
    lambda d: {f"{LINK}.capacity": {"kind": "schedule", "steps": [{"at": ms(d(500, 900))}], "repeat": ms(d(1, 500))}},
)
each(
    f"{LINK}.rate",
    lambda d: {
        LINK: {
            "delay": "20 ms",
            "capacity": {"kind": "schedule", "steps": [{"at": ms(d(1, 900)), "rate": mbit(d(1, 90))}]},
        }
    },
    lambda d: {LINK: {"delay": "20 ms", "capacity": {"kind": "dummynet", "tick": ms(d(1, 9))}}},
)
each(
    f"{LINK}.capacity.steps",
    lambda d: {
        LINK: {
            "delay": "20 ms",
            "capacity": {"kind": "schedule", "steps": [{"at": "0 s", "rate": "0 Gbit/s"}], "repeat": ms(d(1, 900))},
        },
    },
)


def arrive(arrivals: Changes, **more: Any) -> Changes:
    return {WORKLOAD: {"kind": "transactions", "bytes": "10 KB", "arrivals": arrivals, "max_open": 50, **more}}


each(
    f"{WORKLOAD}.arrivals",
    lambda d: arrive({"kind": "poisson", "rate": d(1, 90), "load": 0.5}),
    lambda _: arrive({"kind": "poisson"}),
)
each(
    f"{WORKLOAD}.arrivals.times.2",
    lambda d: arrive({"kind": "at", "times": ["0 s", ms(d(500, 900)), ms(d(1, 499))]}),
)
POISSON = {"kind": "poisson", "rate": 5}
each(
    f"{WORKLOAD}.initial_window_mix",
    lambda d: arrive(POISSON, initial_window_mix=[{"segments": 3, "share": d(1, 49) / 100}, {"segments": 10, "share": d(1, 50) / 100}]),
)  # fmt: skip
each(
    f"{WORKLOAD}.objects",
    lambda d: arrive(POISSON, objects=d(2, 9), requests=d(2, 9)),
    lambda d: arrive(POISSON, objects=d(2, 9), together=True),
)


def video(**more: Any) -> Changes:
    return {WORKLOAD: {"kind": "video", "ladder": ["1 Mbit/s", "2 Mbit/s"], **more}}


each(f"{WORKLOAD}.ladder.1", lambda d: video(ladder=[mbit(d(9, 20)), mbit(d(1, 9))]))
each(f"{WORKLOAD}.buffer_max", lambda d: video(buffer=ms(d(10000, 20000)), buffer_max=ms(d(1, 9999))))
each(f"{WORKLOAD}.startup", lambda d: video(buffer=ms(d(10000, 20000)), startup=ms(d(20001, 29999))))
each(
    f"{STACK}.socket_buffer",
    lambda d: {STACK: {"socket_buffer": size(d(65537, 99999)), "receive_buffer": size(d(65537, 99999))}},
)
each(
    f"{STACK}.detection",
    lambda d: {STACK: {"sack": False, "detection": ("fack", "rack")[d(0, 1)]}},
)


def host(**keys: Any) -> Changes:
    return {"hosts": [{"name": "a", **keys}]}


GATE = {"kind": "times", "on": {"kind": "constant", "value": "10 ms"}, "off": {"kind": "constant", "value": "1 ms"}}
each("hosts.0.interrupt_rate", lambda d: host(receive_interval=ms(d(1, 9)), interrupt_rate=d(100, 9000)))
each("hosts.0.shared", lambda _: host(emulates_links=True, shared=False, preset="light"))
each("hosts.0.emulates_links", lambda _: host(emulates_links=True))
each("hosts.0.burst", lambda d: host(burst=d(1, 9)), lambda d: host(burst=d(1, 9), catch_up="full"))
each("hosts.1.name", lambda d: {"hosts": [{"name": f"h{d(1, 9)}"} for _ in range(2)][:1] * 2})
each(
    "hosts.1.emulates_links",
    lambda _: {
        "hosts": [
            {"name": "a", "emulates_links": True, "preset": "light"},
            {"name": "b", "emulates_links": True, "preset": "light"},
        ]
    },
)
each(
    "flows.0.host",
    lambda d: {"flows.0.host": f"h{d(1, 9)}"},
    lambda d: {"flows.0.host": f"h{d(1, 9)}", "hosts": [{"name": "h0"}, {"name": "g"}]},
    lambda d: {"flows.0.host": f"h{d(1, 9)}", "hosts": "modern"},
)
each("flows.0.peer_host", lambda d: {"flows.0.peer_host": f"h{d(1, 9)}", "hosts": [{"name": "b"}]})

each(
    "flows.0.congestion_control_options",
    lambda d: {"flows.0.congestion_control": "kernel:lp", "flows.0.congestion_control_options": {"a": d(1, 9)}},
)
each("flows.0.congestion_control_options.gamma", lambda d: {"flows.0.congestion_control_options": {"gamma": d(1, 9)}})
each(
    "flows.0.transport",
    lambda _: {"flows.0.transport": "udp"},
    lambda _: {"flows.0.transport": "pcc"},
    lambda _: {"flows.0.transport": "quinn"},
    lambda _: {"flows.0.transport": "stack"},
    lambda _: {"flows.0.transport": "quinn", "flows.0.congestion_control": "stack:some:cubic"},
    lambda _: {"flows.0.transport": "tcp", "flows.0.congestion_control": "quinn:newreno"},
    lambda _: {"flows.0.transport": "tcp", "flows.0.congestion_control": "pcc-vivace"},
    lambda d: {"flows.0": {"transport": "tcp", "workload": {"kind": "constant-rate", "rate": mbit(d(1, 9))}}},
)
SETTINGS = {"recovery": "prr-ssrb", "stack": {"tlp": False}, "profile": "rfc"}
for key, setting in SETTINGS.items():
    each(
        f"flows.0.{key}",
        lambda d, key=key, setting=setting: {"flows.0": {key: setting, "workload": {"kind": "constant-rate", "rate": mbit(d(1, 9))}}},
        lambda d, key=key, setting=setting: {"flows.0": {key: setting, "congestion_control": ("pcc-allegro", "pcc-vivace", "quinn:bbr", "stack:some:cubic")[d(0, 3)]}},
    )  # fmt: skip
each(
    "flows.0.congestion_control",
    lambda d: {"flows.0.workload": {"kind": "constant-rate", "rate": mbit(d(1, 9))}},
)
each(
    f"{WORKLOAD}.kind",
    lambda d: {"flows.0.congestion_control": "pcc-allegro", WORKLOAD: {"kind": "fetch", "bytes": size(d(2, 900))}},
    lambda d: {"flows.0.congestion_control": "quinn:cubic", **video(request=size(d(2, 900)))},
)
each(
    f"{WORKLOAD}.request",
    lambda d: {"flows.0.congestion_control": "pcc-allegro", **video(request=size(d(1457, 9000)))},
)

ACCESS = {"rate": "90 Mbit/s", "delay": "1 ms"}
each("network.links", lambda d: {"network.links": [{"name": f"l{d(1, 9)}", **ACCESS}]})
each("network.paths", lambda d: {"network.paths": [{"name": f"p{d(1, 9)}", "forward": ["a"]}]})
each("network.bottleneck", lambda d: {"network": {"access": {"rate": mbit(d(1, 9)), "delay": "1 ms"}}})
each("network.bottleneck.rate", lambda d: {LINK: {"delay": ms(d(1, 99))}})
each(
    "network.access_list",
    lambda d: {"network.topology": ("chain", "dumbbell")[d(0, 1)], "network.access_list": [ACCESS]},
    lambda _: {"network.topology": "wishbone"},
)
each(
    "network.access",
    lambda d: {
        "network.topology": "wishbone",
        "network.access_list": [ACCESS],
        "network.access": {"rate": mbit(d(1, 9))},
    },
)


def graph(**keys: Any) -> Changes:
    links = [{"name": "a", **ACCESS}, {"name": "b", **ACCESS}]
    return {"network": {"topology": "graph", "links": links, "paths": [{"name": "p", "forward": ["a"]}], **keys}}


def path(**keys: Any) -> Changes:
    return graph(paths=[{"name": "p", "forward": ["a"]}, {"name": "q", "forward": ["b"], **keys}])


for key in ("access", "bottleneck", "egress"):
    each(f"network.{key}", lambda d, key=key: graph(**{key: {"rate": mbit(d(1, 9)), "delay": "1 ms"}}))
each("network.access_list", lambda d: graph(access_list=[{"rate": mbit(d(1, 9)), "delay": "1 ms"}]))
each("network.links", lambda _: graph(links=[]))
each("network.paths", lambda _: graph(paths=[]))
each("network.links.1.name", lambda d: graph(links=[{"name": f"l{d(1, 9)}", **ACCESS}] * 2))
each("network.paths.1.name", lambda _: path(name="p"))
each("network.paths.1.forward", lambda _: path(forward=[]))
each("network.paths.1.forward.1", lambda d: path(forward=["a", f"c{d(1, 9)}"]))
each("network.paths.1.forward.2", lambda _: path(forward=["a", "b", "a"]))
each("network.paths.1.backward.0", lambda d: path(backward=[f"c{d(1, 9)}"]))

each("flows.0.start", lambda d: {"flows.0.start": ms(d(2000, 9000))})
each("flows.0.stagger", lambda d: {"flows.0.stagger": ms(d(700, 900)), "flows.0.count": d(4, 9)})
each("flows.0.stop", lambda d: {"flows.0.start": ms(d(500, 900)), "flows.0.stop": ms(d(1, 500))})
each(
    "flows.0.path",
    lambda d: {"flows.0.path": f"p{d(1, 9)}"},
    lambda d: {**graph(), "flows.0.path": f"p{d(1, 9)}"},
)
each("flows", lambda d: {"flows": [{"count": d(600_000, 700_000)}, {"count": 600_000}]})
each(
    "flows",
    lambda d: {
        "flows.0.count": d(1001, 2000),
        WORKLOAD: {
            "kind": "population",
            "clients": 1000,
            **{key: {"kind": "constant", "value": value} for key, value in {"rtt": "9 ms", "rate": "1 Mbit/s", "loss": 0, "bytes": "1 KB"}.items()},
        },
    },
)  # fmt: skip
for key in ("sample_interval", "queue_interval", "goodput_interval"):
    each(f"record.{key}", lambda d, key=key: {"duration": f"{d(2, 9)} s", f"record.{key}": "1 ns"})
each(
    "flows.1.stack.metrics_cache",
    lambda d: {
        "flows": [{"stack": {"metrics_cache": {"destination": "x", "ssthresh": n}}} for n in (d(2, 50), d(51, 99))]
    },
)
each(f"{QUEUE}.limit", lambda d: {QUEUE: {"kind": "drop-tail", "limit": size(d(10, 1499))}})
each(
    "network.reverse.bottleneck.queue.limit",
    lambda d: {
        "network.reverse.bottleneck": {
            "rate": "1 Mbit/s",
            "queue": {"kind": "drop-tail", "limit": size(d(2, 39))},
        }
    },
)
each(
    f"{QUEUE}.limit",
    lambda d: {QUEUE: {"kind": "drop-tail", "limit": size(d(10, 115))}, STACK: {"smss": "64 bytes"}},
)
each("record.warm_up", lambda d: {"record.warm_up": ms(d(2000, 9000))})

each(
    f"{LINK}.reorder",
    lambda d: {
        LINK: {
            "delay": "20 ms",
            "netem_jitter": {"deviation": ms(d(1, 9))},
            "reorder": {"probability": 0.5, "extra_delay": ms(d(1, 9))},
        },
    },
)
each(
    f"{LINK}.netem_jitter.before_rate",
    lambda d: {LINK: {"delay": "20 ms", "netem_jitter": {"deviation": ms(d(1, 9)), "before_rate": True}}},
    lambda d: {
        f"{LINK}.netem_jitter": {"deviation": ms(d(1, 9)), "before_rate": True},
        QUEUE: {"kind": "drop-tail", "limit": packets(d(10, 90))},
    },
)
READER = "flows.0.reader"
each(
    READER,
    lambda d: {READER: {"rate": mbit(d(1, 9))}, "flows.0.profile": "rfc"},
    lambda d: {READER: {"rate": mbit(d(1, 9))}, "hosts": [{"name": "a"}], "flows.0.host": "a"},
    lambda d: {READER: {"pause": ms(d(1, 9))}, STACK: {"optimistic_acks": 0.5}},
    lambda d: {READER: {"wait": ms(d(1, 9))}, "flows.0.congestion_control": "pcc-allegro"},
)
each(f"{READER}.rate", lambda d: {READER: {"read": size(d(1, 9000))}})
each(f"{READER}.end", lambda d: {READER: {"rate": mbit(d(1, 9)), "end": "both"}})
each(
    f"{WORKLOAD}.kind",
    lambda d: {READER: {"rate": mbit(d(1, 9))}, WORKLOAD: {"kind": "fetch", "bytes": size(d(1, 9000))}},
)
each(
    f"{LINK}.rate",
    lambda d: {LINK: {"delay": "20 ms", "capacity": {"kind": "token-bucket", "burst": size(d(1, 9000))}}},
)
each(
    f"{LINK}.outage.apart",
    lambda d: {f"{LINK}.outage": {"at": "1 s", "lasts": ms(d(1, 9)), "every": "1 s", "apart": ms(d(20, 90))}},
    lambda d: {f"{LINK}.outage": {"at": "1 s", "lasts": ms(d(1, 9)), "apart": f"{d(1, 900)} ns"}},
)
each(
    f"{LINK}.loss.good",
    lambda d: {
        f"{LINK}.loss": {"kind": "gilbert-elliott-in-time", "good": f"{d(0, 400)} ns", "bad": f"{d(0, 400)} ns"}
    },
)

each(
    f"{LINK}.duplicate",
    lambda d: {LINK: {"rate": "1 Mbit/s", "duplicate": 0.5, "merging": {"receive_interval": f"{d(0, 9)} us"}}},
)

for key, step in (
    ("steps.0.server", {"client": "1 kB", "server": "1000 bytes"}),
    ("steps.0", {"gap": "1 ms"}),
    ("steps.0.together", {"client": "1 kB", "together": True}),
    ("steps.0.corked", {"server": "2 x 1 kB", "separate": True, "corked": True}),
):
    each(
        f"{WORKLOAD}.{key}",
        lambda d, step=step: {WORKLOAD: {"kind": "conversation", "repeat": d(1, 9), "steps": [step]}},
    )


def broken(seed: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return for each rule the refused key and a scenario that breaks the rule."""
    for number, (key, make) in enumerate(RULES):
        values = copy.deepcopy(BASE)
        # Of Python's generator only `random()` is guaranteed to give the same numbers in every version.
        draw = random.Random(f"{seed} {number}").random
        for place, value in make(lambda low, high, draw=draw: low + int(draw() * (high - low + 1))).items():
            put(values, place, copy.deepcopy(value))
        yield key, values
