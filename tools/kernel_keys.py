"""Scenario keys supported by the linux backend: `--run` shows for each that it changes the kernel's behaviour.

Each row is a small scenario and a change of one key. Both run in the kernel with the same seed; a kernel that ignores the key produces the
same tables, bit for bit. `tests/python/linux/test_linux_keys.py` runs the rows, and checks that every key without a
row is refused. Without `--run` the table in docs/reference/linux-backend.md is updated; `--check` reports whether it
is outdated.

Length: a row for each key.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "linux-backend.md"
BEGIN, END = "<!-- keys of the kernel: tools/kernel_keys.py -->\n", "<!-- end of the keys -->\n"

TABLES = ("flows", "acks", "datagrams", "transactions", "fetches", "conversations")
"""Tables that show the hosts' view; the links' tables may merely repeat the scenario."""

Changes = dict[str, Any]


class Row(NamedTuple):
    """A key, and the positions where its value makes a difference."""

    key: str
    value: Any
    given: Changes = {}  # noqa: RUF012 - never changed
    network: str = "relay"
    label: str = ""

    @property
    def name(self) -> str:
        """The row's key and value."""
        return f"{self.key} = {shown(self.value)}{'' if self.network == 'relay' else f', {self.network}'}"


def shown(value: Any) -> str:
    """Return the value roughly as in TOML."""
    if isinstance(value, dict):
        return str(value["kind"]) if "kind" in value else ", ".join(f"{k} {shown(v)}" for k, v in value.items())
    if isinstance(value, list):
        return f"{len(value)} of them"
    return str(value).lower() if isinstance(value, bool) else str(value)


LINK, BACK, FLOW = "network.bottleneck.", "network.reverse.bottleneck.", "flows.0."
STACK, WORK = FLOW + "stack.", FLOW + "workload."


def lost(*segments: int, again: int = 0) -> Changes:
    """Return losses of these segments, and of this many retransmissions of them."""
    drops = [{"first": n, "transmission": k} for n in segments for k in range(again + 1)]
    return {LINK + "loss": {"kind": "scripted", "drops": drops}}


def work(kind: str, **keys: Any) -> Changes:
    """A workload of this kind."""
    return {FLOW + "workload": {"kind": kind, **keys}}


LOSSY = lost(40, 44, 45, 60)
TAIL = {**work("transfer", bytes="28960 bytes"), **lost(20)}
MARKS = {LINK + "queue": {"kind": "threshold", "mark": "10 packets", "limit": "200 packets"}}
SUDDEN = {LINK + "capacity": {"kind": "schedule", "steps": [{"at": "700 ms", "delay": "900 ms"}]}, "duration": "5 s"}
PAUSES = work("throttled", rate="1 Mbit/s", chunk="100 kB")
CARDS = {"hosts": [{"name": "a", "line_rate": "10 Mbit/s"}, {"name": "b"}], FLOW + "host": "a", FLOW + "peer_host": "b"}
WIRE = {LINK + "rate": "1 Gbit/s", LINK + "delay": "10 ms"}
OWN = {**CARDS, **WIRE}
FQ = {**OWN, "hosts.0.queue": {"kind": "fq"}}
GRO = {
    "hosts": [{"name": "a", "cuts_packets": True}, {"name": "b", "cuts_packets": True, "gro": True}],
    FLOW + "host": "a", FLOW + "peer_host": "b", STACK + "tso": True,
}  # fmt: skip
CLIENTS = work(
    "transactions", bytes="60 kB", arrivals={"kind": "periodic", "interval": "200 ms"}, count=4, max_open=100
)
CHURN = work(
    "population", clients=3, requests=2, rtt={"kind": "constant", "value": "40 ms"},
    rate={"kind": "constant", "value": "2 Mbit/s"}, loss={"kind": "constant", "value": "1 %"},
    bytes={"kind": "constant", "value": "60 kB"},
)  # fmt: skip
PHONE = {"flows.0": {"workload": {"kind": "voice"}}}
PLAIN = {"flows.0": {"workload": {"kind": "constant-rate", "rate": "2 Mbit/s"}}}
TALK = {"flows.0": {"workload": {"kind": "on-off", "rate": "2 Mbit/s", "on": "100 ms", "off": "100 ms"}}}
SHAPED = {LINK + "rate": "5 Mbit/s", LINK + "queue": {"kind": "codel"}}
SLOW = {LINK + "rate": "5 Mbit/s"}
DRAWN = {
    LINK + "capacity": {
        "kind": "random", "every": "100 ms", "rate": {"kind": "uniform", "low": "5 Mbit/s", "high": "15 Mbit/s"}
    }
}  # fmt: skip
TICKS = {LINK + "capacity": {"kind": "dummynet", "tick": "10 ms"}}
OUT = {LINK + "outage": {"at": "300 ms", "lasts": "100 ms", "arrivals": "wait"}}
STRIPS = {**MARKS, STACK + "ecn": "ask", LINK + "ecn_fault": {"what": "strip-ce", "at": "after"}}
LATE = {LINK + "reorder": {"probability": "2 %", "extra_delay": "5 ms"}}
SAID = work("conversation", repeat=5, steps=[{"client": "200 bytes"}, {"server": "2 x 1 kB"}])
SENT = work("conversation", repeat=5, steps=[{"client": "100 kB"}, {"server": "1 kB"}])
READS = {FLOW + "reader": {"rate": "2 Mbit/s"}}
EARLY = {LINK + "netem_jitter": {"deviation": "2 ms", "distribution": "normal"}}
NETEM = {"kind": "netem-limit", "limit": "100 packets"}
BUCKET = {LINK + "capacity": {"kind": "token-bucket", "burst": "20 kB"}}


def of_kind(queue: Changes, network: str, given: Changes, **keys: Any) -> Iterator[Row]:
    """Rows for a queue's own keys."""
    base = {**given, LINK + "queue": queue}
    for key, value in keys.items():
        yield Row(key=f"{LINK}queue.{key}", value=value, given=base, network=network)


def rows() -> list[Row]:
    """All table rows."""
    # Length: a table, one entry for each key.
    controllers = (
        "reno", "bic", "htcp", "illinois", "westwood-plus", "highspeed", "scalable", "vegas", "hybla", "veno", "yeah",
        "dctcp", "bbr",
    )  # fmt: skip
    rules = ("rate-halving", "rfc6675", "prr-ub", "prr-crb", "prr-ssrb", "prr-rfc9937", "prr-linux-3.2")
    ecn = {**MARKS, STACK + "ecn": "ask"}
    accecn = {**MARKS, STACK + "ecn": "accecn"}
    many = {**lost(*range(30, 60, 2), again=1), "duration": "3 s"}
    ect = {STACK + "ecn": "ask"}
    return [
        Row(key=STACK + "sack", value=False, given=LOSSY),
        Row(key=STACK + "timestamps", value=False),
        Row(key=STACK + "tlp", value=False, given=TAIL),
        Row(key=STACK + "frto", value=False, given={**SUDDEN, STACK + "timestamps": False}),
        Row(key=STACK + "idle_restart", value=False, given={**PAUSES, "duration": "3 s"}),
        Row(key=STACK + "sack_compression", value=False, given=LOSSY),
        Row(key=STACK + "ecn", value="ask", given=MARKS),
        Row(key=STACK + "ecn", value="accept", given=ecn),
        Row(key=STACK + "ecn", value="off", given=ecn),
        Row(key=STACK + "ecn", value="accecn", given=ecn),
        Row(key=STACK + "ecn", value="accecn-ask", given=accecn),
        Row(key=STACK + "ecn", value="accecn-accept", given=accecn),
        *(Row(key=STACK + "accecn_option", value=n, given=accecn) for n in (0, 1)),
        Row(key=STACK + "accecn_option", value=2, given={**accecn, STACK + "accecn_option": 1}),
        Row(key=STACK + "accecn_option", value=3, given={**accecn, STACK + "accecn_option": 1}),
        Row(key=STACK + "tso", value=True, network="qdisc"),
        Row(key=STACK + "smss", value="1000 bytes"),
        Row(key=STACK + "initial_window", value=3),
        Row(key=STACK + "min_rto", value="50 ms", given={**TAIL, STACK + "tlp": False}),
        Row(key=STACK + "receive_buffer", value="40000 bytes"),
        Row(key=STACK + "send_buffer", value="60000 bytes"),
        Row(key=STACK + "max_pacing_rate", value="5 Mbit/s"),
        *(Row(key=STACK + key, value=True, given=SAID) for key in ("nodelay", "cork", "quickack")),
        *(
            Row(key=f"{FLOW}reader{key}", value=value, given=given)
            for key, value, given in (
                ("", {"rate": "2 Mbit/s"}, {}),
                (".rate", "4 Mbit/s", READS),
                (".read", "3 kB", READS),
                (".pause", "40 ms", READS),
                (".wait", "300 ms", READS),
                (".end", "sender", {**SENT, **READS}),
            )
        ),
        Row(key=STACK + "pacing", value=True),
        Row(key=STACK + "reordering", value=20, given=LOSSY),
        Row(key=STACK + "initial_receive_window", value=3),
        Row(key=STACK + "mtu_probing", value="always"),
        Row(
            key=STACK + "mtu_probing",
            value="after-timeouts",
            given={LINK + "outage": {"at": "300 ms", "lasts": "12 s", "arrivals": "lost"}, "duration": "20 s"},
        ),
        Row(key=STACK + "small_queues", value=False, given=OWN, network="qdisc"),
        Row(
            key=STACK + "limit_output_bytes",
            value="9000 bytes",
            given={**OWN, "hosts.0.line_rate": "100 Mbit/s"},
            network="qdisc",
        ),
        *(
            Row(key=FLOW + "congestion_control", value=name, given={**LOSSY, **ect, "duration": "3 s"})
            for name in controllers
        ),
        *(Row(key=FLOW + "recovery", value=rule, given=many) for rule in rules if rule != "prr-rfc9937"),
        Row(
            key=FLOW + "recovery",
            value="prr-rfc9937",
            # where cwnd is the limit, the kernel applies this rule itself; reordered packets end one recovery and start the next in one ACK
            given={
                LINK + "loss": {"kind": "bernoulli", "p": "5 %"},
                LINK + "rate": "2 Mbit/s",
                LINK + "queue": {"kind": "drop-tail", "limit": "8 packets"},
                LINK + "reorder": {"probability": "2 %", "extra_delay": "5 ms"},
                "duration": "8 s",
            },
        ),
        Row(key=FLOW + "count", value=2),
        Row(key=FLOW + "start", value="100 ms"),
        Row(key=FLOW + "stagger", value="100 ms", given={FLOW + "count": 2}),
        Row(key=FLOW + "stop", value="500 ms"),
        # workloads of applications
        Row(key=WORK + "bytes", value="50 kB", given=work("transfer", bytes="60 kB")),
        *(
            Row(key=WORK + key, value=value, given=work("fetch", bytes="20 kB", count=3, **more))
            for key, value, more in (
                ("bytes", "40 kB", {}),
                ("request", "3 kB", {}),
                ("count", 2, {}),
                ("pause", "50 ms", {}),
                ("timeout", "60 ms", {}),
            )
        ),
        Row(
            key=WORK + "common_random_numbers",
            value=True,
            given={**work("fetch", bytes="40 kB", count=8), LINK + "loss": {"kind": "bernoulli", "p": "10 %"}},
        ),
        *(
            Row(key=WORK + key, value=value, given=PAUSES)
            for key, value in (("rate", "2 Mbit/s"), ("chunk", "30 kB"), ("initial", "30 kB"), ("bytes", "150 kB"))
        ),
        *(
            Row(key=WORK + key, value=value, given=CHURN)
            for key, value in (
                ("clients", 2),
                ("requests", 1),
                ("rtt", {"kind": "constant", "value": "80 ms"}),
                ("rate", {"kind": "constant", "value": "1 Mbit/s"}),
                ("loss", {"kind": "constant", "value": "9 %"}),
                ("bytes", {"kind": "constant", "value": "50 kB"}),
                ("queue", "5 packets"),
            )
        ),
        Row(
            key=WORK + "throttle",
            value=0.05,
            given={**CHURN, WORK + "bytes": {"kind": "constant", "value": "100 kB"}, "duration": "10 s"},
        ),
        *(
            Row(key=WORK + key, value=value, given=CLIENTS)
            for key, value in (
                ("bytes", "50 kB"),
                ("request", "3 kB"),
                ("arrivals", {"kind": "periodic", "interval": "150 ms"}),
                ("batch", 2),
                ("requests", 2),
                ("count", 3),
                ("close", "client"),
            )
        ),
        Row(
            key=WORK + "max_open",
            value=1,
            given={**CLIENTS, WORK + "arrivals": {"kind": "periodic", "interval": "50 ms"}},
        ),
        Row(key=WORK + "think", value="30 ms", given={**CLIENTS, WORK + "requests": 3}),
        Row(key=WORK + "objects", value=4, given={**CLIENTS, WORK + "batch": 2}),
        Row(key=WORK + "together", value=True, given={**CLIENTS, WORK + "batch": 3, WORK + "requests": 3}),
        Row(
            key=WORK + "initial_window_mix",
            value=[{"segments": 3, "share": 0.5}, {"segments": 10, "share": 0.5}],
            given=CLIENTS,
        ),
        Row(
            key=WORK + "mix_by",
            value="batch",
            given={
                **CLIENTS,
                WORK + "batch": 4,
                WORK + "count": 16,
                WORK + "initial_window_mix": [{"segments": 3, "share": 0.5}, {"segments": 10, "share": 0.5}],
            },
        ),
        Row(key=WORK + "repeat", value=3, given=SAID),
        Row(key=WORK + "think", value="30 ms", given=SAID),
        Row(key=WORK + "streams", value=3, given=SAID),
        *(
            Row(
                key=f"{WORK}steps",
                value=[{"client": "200 bytes"}, step],
                given=SAID,
                label=f"flows.workload.steps.{key}",
            )
            for key, step in (
                ("client", {"client": "2 x 1 kB"}),
                ("server", {"server": "2 x 2 kB"}),
                ("gap", {"server": "2 x 1 kB", "gap": "100 ms"}),
                ("wait", {"server": "2 x 1 kB", "wait": "100 ms"}),
                ("separate", {"server": "2 x 1 kB", "separate": True}),
                ("together", {"server": "2 x 1 kB", "together": True}),
                ("corked", {"server": "2 x 1 kB", "corked": True}),
            )
        ),
        Row(key=WORK + "rate", value="1 Mbit/s", given=PLAIN),
        Row(key=WORK + "payload", value="1000 bytes", given=PLAIN),
        *(
            Row(key=WORK + key, value=value, given=TALK)
            for key, value in (
                ("rate", "1 Mbit/s"),
                ("on", "50 ms"),
                ("off", "50 ms"),
                ("periods", "fixed"),
                ("payload", "1000 bytes"),
            )
        ),
        Row(key=WORK + "interval", value="10 ms", given=PHONE),
        Row(key=WORK + "payload", value="100 bytes", given=PHONE),
        # links
        *(
            Row(key=LINK + key, value=value, given=given, network=network)
            for network in ("relay", "qdisc")
            for key, value, given in (
                ("rate", "10 Mbit/s", {}),
                ("delay", "15 ms", {}),
                ("queue", {"kind": "drop-tail", "limit": "30 packets"}, {}),
                ("queue", {"kind": "drop-tail", "limit": "30 kB"}, {}),
                ("queue", {"kind": "netem-limit", "limit": "90 packets"}, {}),
                ("queue", {"kind": "codel"}, {LINK + "rate": "5 Mbit/s"}),
                ("queue", {"kind": "fq-codel"}, {LINK + "rate": "5 Mbit/s"}),
                ("queue", {"kind": "fq-pie"}, {LINK + "rate": "5 Mbit/s"}),
                ("queue", {"kind": "dualpi2"}, {LINK + "rate": "5 Mbit/s"}),
                ("queue", {"kind": "cake"}, {LINK + "rate": "5 Mbit/s"}),
                ("loss", {"kind": "bernoulli", "p": "1 %"}, {}),
                ("loss", {"kind": "gilbert-elliott", "p": "1 %", "r": "30 %"}, {}),
            )
        ),
        *(
            Row(key=LINK + key, value=value, given=given)
            for key, value, given in (
                ("queue", {"kind": "pie"}, {LINK + "rate": "5 Mbit/s"}),
                ("queue", {"kind": "threshold", "mark": "5 packets"}, ect),
                ("loss", {"kind": "gilbert-elliott-in-time", "good": "200 ms", "bad": "10 ms"}, {}),
                ("loss", {"kind": "periodic", "every": 50}, {}),
                ("loss", {"kind": "listed", "packets": [30]}, {}),
                ("loss", {"kind": "scripted", "drops": [{"first": 30}]}, {}),
                ("loss", {"kind": "policer", "rate": "5 Mbit/s", "bucket": "20 kB"}, {}),
                ("loss", {"kind": "load", "rate": "20 Mbit/s", "full": "2 %"}, {}),
                ("jitter", "5 ms", {}),
                ("reorder", {"probability": "2 %", "extra_delay": "5 ms"}, {}),
                ("capacity", {"kind": "schedule", "steps": [{"at": "500 ms", "rate": "5 Mbit/s"}]}, {}),
                ("wifi", {"mean": "2 ms"}, {}),
                ("aggregate", "5 ms", {}),
                ("ecn_fault", {"what": "strip-ce"}, ecn),
                ("ecn_fault", {"what": "mark-all"}, ecn),
                ("outage", {"at": "500 ms", "lasts": "100 ms"}, {}),
                ("netem_jitter", {"deviation": "2 ms"}, {}),
                ("corrupt", "2 %", {}),
                ("capacity", {"kind": "token-bucket", "burst": "20 kB"}, {}),
            )
        ),
        Row(
            key=BACK + "thin_acks",
            value=8,
            given={BACK + "rate": "100 kbit/s", BACK + "queue": {"kind": "drop-tail", "limit": "50 packets"}},
        ),
        Row(
            key=LINK + "capacity",
            value={"kind": "token-bucket", "burst": "50 kB"},
            given={LINK + "rate": "5 Mbit/s"},
            network="qdisc",
        ),
        Row(key=LINK + "merging", value={"gro_flush_timeout": "200 us", "napi_defer_hard_irqs": 5}, network="qdisc"),
        *of_kind({"kind": "codel"}, "qdisc", SHAPED, limit="10 packets", target="1 ms", interval="20 ms"),
        *of_kind({"kind": "codel"}, "qdisc", {**SHAPED, **ect}, ecn=True, ce_threshold="2 ms"),
        *of_kind({"kind": "fq-codel"}, "qdisc", SHAPED, limit="10 packets", target="1 ms", interval="20 ms"),
        *of_kind({"kind": "fq-codel"}, "qdisc", {**SHAPED, FLOW + "count": 3}, queues=1, quantum="9000 bytes"),
        *of_kind({"kind": "fq-codel"}, "qdisc", {**SHAPED, **ect}, ecn=True, ce_threshold="2 ms"),
        *of_kind({"kind": "fq-codel", "ce_threshold": "2 ms"}, "qdisc", {**SHAPED, **ect}, ce_threshold_for="l4s"),
        *of_kind(
            {"kind": "red", "limit": "60 packets", "min": "5 packets", "max": "15 packets", "weight": 1 / 64},
            "qdisc",
            {LINK + "rate": "5 Mbit/s"},
            limit="12 packets",
            min="10 packets",
            max="40 packets",
            max_p=0.5,
            weight=1 / 4,
        ),
        *of_kind(
            {"kind": "red", "limit": "60 packets", "min": "5 packets", "max": "15 packets", "weight": 1 / 64},
            "qdisc",
            {LINK + "rate": "5 Mbit/s", **ect},
            ecn=True,
        ),
        *of_kind(
            {"kind": "dualpi2"},
            "qdisc",
            {LINK + "rate": "5 Mbit/s", **ect},
            limit="10 packets",
            target="3 ms",
            update="3 ms",
            alpha=1.0,
            beta=20.0,
            coupling=9,
            classifier="any-ect",
        ),
        *of_kind(
            {"kind": "dualpi2", "classifier": "any-ect"},
            "qdisc",
            {LINK + "rate": "5 Mbit/s", **ect},
            step="5 ms",
            step_from=9,
        ),
        *of_kind(
            {"kind": "dualpi2", "classifier": "any-ect"}, "qdisc", {**SLOW, **ect, FLOW + "count": 2}, classic_share=0.5
        ),
        *of_kind(
            {"kind": "dualpi2", "classifier": "any-ect"},
            "qdisc",
            {LINK + "rate": "1 Mbit/s", **ect, FLOW + "count": 8},
            overload="overflow",
        ),
        *of_kind(
            {"kind": "fq-pie"}, "qdisc", SHAPED, limit="10 packets", target="1 ms", update="3 ms", alpha=32, beta=0
        ),
        *of_kind({"kind": "fq-pie"}, "qdisc", {**SHAPED, FLOW + "count": 3}, queues=1, quantum="9000 bytes"),
        *of_kind({"kind": "fq-pie", "target": "1 ms"}, "qdisc", {**SHAPED, **ect}, ecn=True),
        *of_kind({"kind": "fq-pie", "target": "1 ms", "ecn": True}, "qdisc", {**SHAPED, **ect}, ecn_prob=1),
        *of_kind({"kind": "pie"}, "relay", SLOW, limit="20 packets", target="3 ms", update="3 ms", max_burst="10 ms"),
        *of_kind({"kind": "pie"}, "relay", {**SLOW, **ect}, ecn=True),
        *of_kind({"kind": "cake"}, "qdisc", SLOW, limit="15 kB", rtt="10 ms", bandwidth="3 Mbit/s"),
        *of_kind({"kind": "cake", "bandwidth": "3 Mbit/s"}, "qdisc", SLOW, overhead=50, mpu=200, framing="atm"),
        *of_kind({"kind": "cake", "bandwidth": "3 Mbit/s"}, "qdisc", SLOW, framing="ptm"),
        *of_kind({"kind": "cake", "bandwidth": "3 Mbit/s"}, "qdisc", {**SLOW, FLOW + "count": 3}, isolation="flows"),
        *(
            Row(key=f"{LINK}{key}", value=value, given=given, network=network)
            for key, value, given, network in (
                (
                    "capacity.steps",
                    [{"at": "500 ms", "rate": "2 Mbit/s"}],
                    {LINK + "capacity": {"kind": "schedule", "steps": [{"at": "500 ms", "rate": "5 Mbit/s"}]}},
                    "relay",
                ),
                ("capacity.every", "300 ms", DRAWN, "relay"),
                ("capacity.rate", {"kind": "uniform", "low": "2 Mbit/s", "high": "4 Mbit/s"}, DRAWN, "relay"),
                ("capacity.delay", {"kind": "uniform", "low": "10 ms", "high": "30 ms"}, DRAWN, "relay"),
                ("capacity.loss", {"kind": "uniform", "low": "1 %", "high": "5 %"}, DRAWN, "relay"),
                ("capacity.tick", "30 ms", TICKS, "relay"),
                ("capacity.keeps_credit", True, TICKS, "relay"),
                ("outage.every", "400 ms", OUT, "relay"),
                ("outage.apart", "300 ms", OUT, "relay"),
                ("outage.arrivals", "lost", OUT, "relay"),
                ("ecn_fault.probability", 0.5, STRIPS, "relay"),
                ("ecn_fault.at", "before", STRIPS, "relay"),
                ("reorder.probability", "9 %", LATE, "relay"),
                ("reorder.extra_delay", "9 ms", LATE, "relay"),
                ("wifi.mean", "4 ms", {LINK + "wifi": {"mean": "2 ms"}}, "relay"),
                ("netem_jitter.deviation", "4 ms", EARLY, "relay"),
                ("netem_jitter.distribution", "pareto", EARLY, "relay"),
                ("netem_jitter.correlation", "50 %", EARLY, "relay"),
                ("netem_jitter.before_rate", True, {**EARLY, LINK + "queue": NETEM}, "relay"),
                ("capacity.burst", "50 kB", BUCKET, "relay"),
                (
                    "merging.gro_flush_timeout",
                    "2 ms",
                    {LINK + "merging": {"gro_flush_timeout": "200 us", "napi_defer_hard_irqs": 5}},
                    "qdisc",
                ),
                (
                    "merging.napi_defer_hard_irqs",
                    1,
                    {LINK + "merging": {"gro_flush_timeout": "2 ms", "napi_defer_hard_irqs": 50}},
                    "qdisc",
                ),
            )
        ),
        *(Row(key="network.framing", value="100 bytes", network=network) for network in ("relay", "qdisc")),
        # devices of hosts
        *(
            Row(key=f"hosts.0.{key}", value=value, given=given, network="qdisc")
            for key, value, given in (
                ("line_rate", "5 Mbit/s", OWN),
                ("queue", {"kind": "fifo", "limit": 5}, {**OWN, STACK + "small_queues": False}),
                ("queue", {"kind": "fq"}, {**OWN, STACK + "small_queues": True}),
            )
        ),
        Row(
            key="hosts",
            value=[{"name": "a", "cuts_packets": True}, {"name": "b", "cuts_packets": True}],
            given={**CARDS, "hosts": [{"name": "a"}, {"name": "b"}], STACK + "tso": True},
            network="qdisc",
            label="hosts.cuts_packets",
        ),
        Row(
            key="hosts",
            value=[GRO["hosts"][0], {**GRO["hosts"][1], "gro_flush_timeout": "300 us", "napi_defer_hard_irqs": 5}],
            given={**GRO, "hosts": [GRO["hosts"][0], {"name": "b", "cuts_packets": True}]},
            network="qdisc",
            label="hosts.gro",
        ),
        Row(
            key="hosts.1.gro_flush_timeout",  # 1 us instead of 300; otherwise no interrupt can be delayed
            value="300 us",
            given={**GRO, "hosts.1.gro_flush_timeout": "1 us", "hosts.1.napi_defer_hard_irqs": 5},
            network="qdisc",
        ),
        Row(
            key="hosts.1.napi_defer_hard_irqs",
            value=5,
            given={**GRO, "hosts.1.gro_flush_timeout": "300 us"},
            network="qdisc",
        ),
        *(
            Row(key=f"hosts.0.queue.{key}", value=value, given={**FQ, **given}, network="qdisc")
            for key, value, given in (
                ("limit", 5, {FLOW + "count": 8}),
                ("flow_limit", 3, {"hosts.0.line_rate": "100 Mbit/s", "duration": "3 s"}),
                ("quantum", "20 kB", {FLOW + "count": 3}),
                ("initial_quantum", "1514 bytes", {FLOW + "count": 3}),
                ("max_rate", "3 Mbit/s", {}),
                ("ce_threshold", "1 ms", ect),
            )
        ),
    ]


def scenario(row: Row, *, changed: bool) -> Any:
    """The row's scenario, with or without the key changed."""
    import ackclock

    told = ackclock.Scenario.from_dict(
        {
            "duration": "1500 ms",
            "network": {
                "topology": "chain",
                "framing": "14 bytes",
                "bottleneck": {
                    "rate": "20 Mbit/s",
                    "delay": "20 ms",
                    "queue": {"kind": "drop-tail", "limit": "100 packets"},
                },
                "reverse": {"bottleneck": {"delay": "20 ms"}},
            },
            "flows": [{"profile": "linux-6"}],
            "record": {"trace": "all"},
        }
    )
    for key, value in {**row.given, **({row.key: row.value} if changed else {})}.items():
        told = told.set(key, value)
    return told


def differs(row: Row) -> bool:
    """Whether changing the key changes the kernel's tables."""
    from ackclock import linux

    one, other = (linux.run(scenario(row, changed=c), seed=1, network=row.network) for c in (False, True))
    return not all(getattr(one, table).equals(getattr(other, table)) for table in TABLES)


def page() -> str:
    """The table for the page."""
    keys: dict[str, dict[str, list[str]]] = {}
    for row in rows():
        key = row.key.replace("flows.0.", "flows.").replace("hosts.0.", "hosts.").replace("hosts.1.", "hosts.")
        key = row.label or key
        flow = {**row.given.get("flows.0", {}), **({"workload": w} if (w := row.given.get(FLOW + "workload")) else {})}
        kind = flow["workload"]["kind"] if row.key.startswith(WORK) else None
        part = row.key.removeprefix(LINK).split(".")[0]
        own = row.key.startswith(LINK) and part in ("queue", "capacity") and row.key != LINK + part
        of = kind or (row.given[LINK + part]["kind"] if own else None)
        name = f"`{key}`{f' of {of}' if of else ''}"
        values = keys.setdefault(name, {}).setdefault("true" if row.label else shown(row.value), [])
        if row.network not in values:
            values.append(row.network)
    lines = ["| key | values that make the kernel behave differently | over |", "| --- | --- | --- |"]
    for name, values in keys.items():
        networks = dict.fromkeys(network for of in values.values() for network in of)
        lines.append(f"| {name} | {'; '.join(values)} | {', '.join(networks)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run the command line described in the module docstring."""
    if "--run" in sys.argv[1:]:
        same = 0
        for row in rows():
            if not differs(row):
                same += 1
                print(f"no difference: {row.name}", flush=True)
        print(f"{len(rows()) - same} of {len(rows())} keys make a difference")
        return 1 if same else 0
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    renewed = before + BEGIN + page() + END + rest.split(END)[1]
    if renewed != text and "--check" not in sys.argv[1:]:
        PAGE.write_text(renewed, encoding="utf-8")
        return 0
    if renewed != text:
        print(f"{PAGE.relative_to(ROOT)}: the table of keys is stale; tools/kernel_keys.py renews it")
    return 1 if renewed != text else 0


if __name__ == "__main__":
    sys.exit(main())
