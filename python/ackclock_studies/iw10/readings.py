"""Readings of open questions about the slides' testbed (B1 to B11). Each main reading was chosen before the run."""

from __future__ import annotations

from typing import Any

from ackclock.study import Plan, Reading
from ackclock_studies.iw10.testbed import FAST, HEAVY, SLOW

LENGTHS = {
    "1 h": (3600.0, 600.0),
    "15 min": (900.0, 100.0),
    "5 min": (300.0, 60.0),
}
"""Simulated time of a slow-link run, s, and the warm-up before transactions count."""

LENGTH = Reading(
    name="length",
    question="How long does a run on the slow link last (B10)?",
    options={
        "1 h": "the first 10 min do not count",
        "15 min": "without the first 100 s",
        "5 min": "without the first 60 s",
    },
    why="as long as a test of that kind plausibly ran, and long enough for transactions of more than a minute",
)

EXTREMES = {"97.5 %": HEAVY[SLOW], "95 %": 0.95, "90 %": 0.9}
EXTREME = Reading(
    name="extreme",
    question="Is the highest load of the slow link, 97.5 %, what is offered?",
    options={
        "97.5 %": "offered",
        "95 %": "offered; 97.5 % is the utilisation that was measured",
        "90 %": "the same, with more retransmissions",
    },
    why="the slides call it load, and list utilisation apart",
)

COUNTS = Reading(
    name="counts",
    question="Which packets make the load (B2)?",
    options={"data": "those of the responses", "all": "every packet of that direction"},
    why="a load is set by the requests per second, from the size of a response",
)

MIXED = Reading(
    name="mixed",
    question="How are IW3 and IW10 mixed half and half (B5)?",
    options={"client": "a client draws for all its connections", "connection": "each connection draws"},
    why="the slides set the window with `ip route ... initcwnd`, that is for a host",
)

SETUPS: dict[str, dict[str, Any]] = {
    "as adopted": {},
    "eleven segments": {"segments": 11, "fin_ignores_cwnd": "with-data"},
    "four RTTs": {"rtts_s": (0.15, 0.3, 0.45, 0.6)},
    "limited way back": {"reverse_limited": True},
    "queue in bytes": {},
    "initial RTO 1 s": {"initial_rto": "1 s"},
    "Reno": {"congestion_control": "reno"},
    "first burst of nine": {"first_burst_cap": 9},
    "no HyStart": {"slow_start": {"kind": "classic"}},
}
"""Arguments of `testbed.loaded`."""

QUEUE_BYTES = {SLOW: "60000 bytes", FAST: "750000 bytes"}

SETUP = Reading(
    name="set-up",
    question="What else of hosts and network?",
    options={
        "as adopted": "responses of ten full segments, 300 ms everywhere, a free way back, queues in packets, initial RTO 3 s, CUBIC",
        "eleven segments": "B1: 15 KB is eleven segments, the FIN on the last one",
        "four RTTs": "B4: the pairs have 150, 300, 450 and 600 ms",
        "limited way back": "B6: the same rate and queue",
        "queue in bytes": "B7: 40 or 500 times 1500 bytes",
        "initial RTO 1 s": "B8: RFC 6298",
        "Reno": "B9",
        "first burst of nine": "the default send buffer lets nine packets out at first",
        "no HyStart": "2.6.26, if it had none: we have no source for when it came",
    },
    why="the largest response that IW10 sends at once, and the defaults of Linux in 2010",
    crossed=False,
)

CONNECT = Reading(
    name="connect",
    question="Does the completion time hold the connect (B3)?",
    options={"in": "from the SYN", "out": "from the request"},
    why="netperf's transaction with connect measures both",
    crossed=False,
)

ACKS = Reading(
    name="ACKs",
    question="How does the client acknowledge the first segments?",
    options={
        "Linux": "at once, as Linux does at the start of a connection",
        "delayed": "every second one (RFC 1122)",
        "every": "each one",
    },
    why="clients ran Linux",
    crossed=False,
)


def settings(plan: Plan, rate: str) -> dict[str, Any]:
    """Arguments of `testbed.loaded` under a plan's readings."""
    setup = SETUP.of(plan)
    found: dict[str, Any] = {**SETUPS[setup], "load_counts": COUNTS.of(plan), "mix_by": MIXED.of(plan)}
    if setup == "queue in bytes":
        found["queue"] = {"kind": "drop-tail", "limit": QUEUE_BYTES[rate]}
    return found
