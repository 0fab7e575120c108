"""RFC 6928's round-trip table (I28)."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ackclock import run
from ackclock.report import Block, Table, TableCell
from ackclock.scenario import Scenario
from ackclock.study import (
    Bound,
    Chapter,
    Evidence,
    Tables,
)
from ackclock.study.table import declared
from ackclock_studies.iw10 import testbed

PUBLISHED: dict[int, tuple[int, int]] = {
    3: (1, 1),
    6: (2, 1),
    10: (3, 1),
    12: (3, 2),
    21: (4, 2),
    25: (5, 2),
    33: (5, 3),
    46: (6, 3),
    51: (6, 4),
    78: (7, 4),
    79: (8, 4),
    120: (8, 5),
    127: (9, 5),
}
"""Segments -> rounds with IW 3 and with IW 10 (RFC 6928 §2)."""

RTT_S = 0.1


def scenario(segments: int, window: int) -> Scenario:
    """A response over a path too fast for its rate to matter; one ACK per two segments, cwnd + 1 per ACK."""
    return Scenario.from_dict(
        {
            "name": f"{segments} segments, initial window {window}",
            "duration": "10 s",
            "network": {"topology": "chain", "bottleneck": {"rate": "10 Gbit/s", "delay": f"{500 * RTT_S:g} ms"}},
            "flows": [
                {
                    "profile": "rfc",
                    "congestion_control": "reno",
                    "stack": {"initial_window": window, "count_acks": True},
                    "workload": testbed.workload({"kind": "at", "times": ["0 s"]}, segments=segments),
                }
            ],
        }
    )


def table() -> pl.DataFrame:
    """Round trips for every table entry: segments, window, rounds, published."""
    rows = []
    for segments, published in PUBLISHED.items():
        for window, expected in zip((3, 10), published, strict=True):
            took = run(scenario(segments, window)).transactions["total_s"][0]
            # one round trip for the handshake; the request shares the first round with the response
            rows.append(
                {"segments": segments, "window": window, "rounds": round(took / RTT_S - 1, 2), "published": expected}
            )
    return pl.DataFrame(rows)


def i28(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """The round table of RFC 6928."""
    t = tables["exact.rounds"]
    wrong = t.filter(pl.col("rounds") != pl.col("published")).height
    return [Evidence(label=f"of {t.height} entries, those that differ", value=float(wrong), bound=bound)]


def rounds_table(tables: Tables) -> Table:
    """RFC 6928's table next to the simulated one."""
    t = tables["exact.rounds"]
    rows: list[tuple[TableCell | str, ...]] = []
    for window in (3, 10):
        own = t.filter(pl.col("window") == window)
        rows.append((TableCell(text=f"IW {window}, RFC 6928", kind="head"), *(str(n) for n in own["published"])))
        rows.append(
            (
                TableCell(text="here", kind="head"),
                *(
                    TableCell(text=f"{got:g}", kind="agrees" if got == want else "differs")
                    for got, want in own.select("rounds", "published").iter_rows()
                ),
            )
        )
    segments = t.filter(pl.col("window") == 3)["segments"]
    return Table(
        caption="Round trips that a response takes, delayed ACKs, no rate limit.",
        header=("segments", *(str(n) for n in segments)),
        rows=tuple(rows),
        dense=True,
    )


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (rounds_table(t),)


CHAPTER = Chapter(**declared(__name__), blocks=blocks)
