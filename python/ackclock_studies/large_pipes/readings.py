"""Questions that the slides leave open: a declared grid if every reading was run, a table if one was adopted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ackclock.report import Block, Table
from ackclock.study import Chapter, Reading, Tables

SACK = Reading(
    name="SACK",
    question="Had the FreeBSD host of TCPW selective acknowledgements?",
    options={"off": "FreeBSD 4 had none of its own", "on": "patches for it existed"},
    why="the slides name FreeBSD without a patch but TCPW's; SACK came with FreeBSD 5.3 (from memory)",
)
ACKS = Reading(
    name="ACKs",
    question="What does the receiver acknowledge?",
    options={
        "delayed": "every second segment, the first ones of a connection each, as Linux does",
        "each segment": "as many Gigabit drivers and hosts did under load",
    },
    why="RFC 1122; one receiver serves all senders (slide 5), taken for a Linux host as most of the others are",
)
WINDOW = Reading(
    name="window",
    question="What receive window do socket buffers of 2 MB make?",
    options={"1.5 MiB": "Linux keeps a quarter for overhead", "2 MiB": "all of it"},
    why="one receiver serves all senders (slide 5), taken for a Linux host",
)
QUEUE = Reading(
    name="queue",
    question="How many packets does the bottleneck of path 1 queue?",
    options={
        "400": "half of what the path holds",
        "50": "",
        "100": "",
        "200": "a quarter of what the path holds",
        "240": "just short of what a start with delayed ACKs puts there, a third of what the path holds",
        "827": "what the path holds",
    },
    why="FAST with α = 200 takes about the least time possible (slide 12), so that its packets must find room",
)
FILTER = Reading(
    name="filter",
    question="How does ABSE take its samples and filter them?",
    options={
        "quoted": "throughput of the last RTT, low-passed with 0.6, tells congestion; T_min the last gap; begins with the first sample",
        "each ACK": "the same, but the throughput of each ACK by itself is low-passed",
        "each ACK, T_min of a pair": "the same, and T_min is the least gap of the last round trip",
        "from zero": "as quoted, but the estimate begins with zero",
        "T_min of a pair": "as quoted, but T_min is the least gap of the last round trip",
        "rate of the last RTT": "not low-passed; T_min of a pair; from zero",
        "fixed gain": "as quoted, with τ = RTT (N = 0)",
        "exponential average": "0.9 old and 0.1 new per sample; rate of the last RTT",
        "packet pairs": "BE alone",
    },
    why="a later paper of the group quotes ABSE's formulas so (its print is damaged: the division by RTT is inferred); slides 18 and 20 say that the stability filter was run",
)
PEAK = Reading(
    name="U_max",
    question="Over which values of U is the greatest taken?",
    options={"last ten": "Kim and Noble", "all time": "a public implementation"},
    why="it is the filter that the stability filter cites (from memory)",
)
ALPHA = Reading(
    name="alpha",
    question="How many packets does FAST keep queued?",
    options={
        "200": "in the tests at high speed",
        "100": "",
        "20": "",
        "by rate": "8, 20 or 200 below 10, 100 Mb/s and above",
    },
    why="FAST's authors tested Gigabit paths with it (from memory)",
)
GAIN = Reading(
    name="fixed gain",
    question='What is the "fixed gain" of slide 20, the "fixed exponential average" of slide 21?',
    options={"τ = RTT": "N = 0: samples weigh by time", "0.9 per sample": "each sample weighs the same"},
    why="it is the filter that was run, without its adaptive part",
)
LEVEL = Reading(
    name="samples",
    question="Over what does ABSE take its samples behind a coalescing card?",
    options={"quoted": "as in `filter`", "each ACK": "as in `filter`"},
    why="as in `filter`",
)

QUOTED: dict[str, Any] = {"level_rate": "quoted", "t_min": "gap", "first": "sample"}
EACH_ACK: dict[str, Any] = {**QUOTED, "level_rate": "throughput"}
FILTERS: dict[str, dict[str, Any]] = {
    "quoted": QUOTED,
    "each ACK": EACH_ACK,
    "each ACK, T_min of a pair": {**EACH_ACK, "t_min": "pair"},
    "from zero": {**QUOTED, "first": "zero"},
    "T_min of a pair": {**QUOTED, "t_min": "pair"},
    "rate of the last RTT": {},
    "fixed gain": {**QUOTED, "n": 0},
    "exponential average": {"gain": "ewma"},
    "packet pairs": {"estimator": "be"},
}
"""Controller options for each reading of `FILTER`."""

PEAKS = {"last ten": "last-10", "all time": "all-time"}

TOGETHER: Mapping[str, str] = {
    "SACK": "on",
    "ACKs": ACKS.main,
    "window": "2 MiB",
    "queue": "240",
    "filter": "exponential average",
    "U_max": PEAK.main,
    "alpha": "100",
}
"""The reading under which all four completion times of slide 12 are reproduced, found by a search over all 3,456 readings. W25 is known to
hold in this one only (70 are undecided with the few runs of the search). Its filter is slide 21's remedy. No reading
with the stability filter as quoted on slides 18 and 20 is known to reproduce all four.
"""

ADOPTED: tuple[tuple[str, str, str, str], ...] = (
    ("A1", "155 Mb/s: line, cells or IP?", "at IP", "132.45 Mb/s at IP, what a true OC-3c ATM link carries (W1)"),
    ("A2", '"100 MB"', "10^8 bytes, acknowledged, handshake not counted", "10^8 are 2^20 · 95.4"),
    ("A3", "PER 0.1 to 0.5", "percent", "as fractions nothing would get through"),
    ("A5", "64 ms, 4 ms", "round trip without queueing", "the one-way reading would need more than 2 MB"),
    ("A8", "which packets random loss takes", "data", "Nistnet could take ACKs, too"),
    ("A9", "a run", "ten in a row with the cache of Linux, which begins empty", "-"),
    ("A10", '"excellent" fairness', "Jain's index of 0.95", "-"),
    ("A11", "metric of friendliness", "NewReno's throughput beside X over that among its like", "metrics.friendliness"),
    ("A12", "initial window", "2", "1, 3 and 4 on the host of TCPW, 1, 3 and 10 on the others: section Edges"),
)


def blocks(_: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (
        Table(
            caption="Readings with one option. Those with several are in section Readings.",
            header=("", "open", "read as", "otherwise"),
            rows=ADOPTED,
        ),
    )


CHAPTER = Chapter(title="What the slides leave open", blocks=blocks)
