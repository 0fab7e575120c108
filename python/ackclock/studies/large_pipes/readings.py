"""What the slides leave open, and how it is read here."""

from __future__ import annotations

from collections.abc import Sequence

from ackclock.report import Block, Table
from ackclock.study import (
    Chapter,
    Tables,
)

READINGS: tuple[tuple[str, str, str, str], ...] = (
    ("A1", "155 Mb/s: line, cells or IP?", "at IP", "ATM profile, 132.45 Mb/s at IP (paths.ALABAMA_ATM)"),
    ("A2", '"100 MB"', "10^8 bytes, acknowledged", "any workload bytes"),
    ("A3", "PER 0.1 to 0.5", "percent", "loss ="),
    ("A4", "2 MB socket buffers", "window 1.5 MiB on Linux, 2 MiB on FreeBSD", "receive_buffer"),
    ("A5", "64 ms, 4 ms", "round trip without queueing", "paths.Path(rtt_s=)"),
    (
        "A6",
        "queue of the bottleneck",
        "400 packets on path 1, one bandwidth-delay product on path 2; swept from 50 to 827",
        "queue =",
    ),
    ("A7", "SACK", "on for Linux, off for FreeBSD", "westwood(sack=True); shown under loss"),
    ("A8", "which packets random loss takes", "data", "network.reverse.bottleneck.loss"),
    ("A9", "cache", "run 1 cold, the others warm; both reported", "metrics_cache"),
    ("A10", '"excellent" fairness', "Jain's index of 0.95", "-"),
    ("A11", "metric of friendliness", "NewReno's throughput beside X over that among its like", "metrics.friendliness"),
    ("A12", "initial window", "2", "initial_window"),
)


def readings_table() -> Table:
    """What the slides leave open, and how it is read here."""
    return Table(
        caption="Readings of what the slides leave open; each can be changed in one place.",
        header=("", "open", "read as", "other readings by"),
        rows=READINGS,
    )


def blocks(_: Tables) -> Sequence[Block]:
    """For the report."""
    return (readings_table(),)


CHAPTER = Chapter(title="What the slides leave open", blocks=blocks)
