"""Batches that open together on the slow link, drop by drop (I10, I30), and the corresponding results of single
responses (I9, I26, I33).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ackclock import run
from ackclock.plot import GREY, OKABE_ITO, Figure, new
from ackclock.report import Block, Table, TableCell, paragraph
from ackclock.scenario import Scenario
from ackclock.study import (
    Bound,
    Chapter,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
    at_least,
    exactly,
    same,
)
from ackclock.study.table import declared
from ackclock_studies.iw10 import testbed
from ackclock_studies.iw10.readings import ACKS as ACKNOWLEDGED
from ackclock_studies.iw10.testbed import FAST, SLOW

LINUX_ACKS, DELAYED_ACKS, EVERY_ACK = "as Linux, quick ACKs first", "delayed ACKs (RFC 1122)", "an ACK per packet"

ACKS: dict[str, dict[str, Any]] = {
    LINUX_ACKS: {},
    DELAYED_ACKS: {"profile": "rfc"},
    EVERY_ACK: {"delayed_ack": False},
}
"""Client's ACK policy -> host settings."""

HELD = "as Linux, and it never offers more than three segments"
HELD_STACK: dict[str, Any] = {
    "initial_receive_window": 3,
    "receive_buffer": f"{3 * testbed.SEGMENT} bytes",
}
"""The intervention of I30: windows never grow."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """Batches of five at given times.

    Parameters
    ----------
    name
        Name in the report.
    window
        Initial window.
    times_s
        Opening times of the batches.
    drops
        First transmissions that the queue must drop, packets; None if nothing was computed beforehand.
    segments
        Segments of a response.
    fin
        Whether the FIN may exceed cwnd.
    acks
        ACK policy of the client; empty: the policy assumed by the model behind `drops`.
    """

    # The model behind `drops` assumes one ACK per packet. However, a server that acknowledges each request
    # immediately puts five small packets into the queue ahead of the first flights. Where the first flight matters,
    # the server delays its ACKs so that they are piggybacked on the data.

    name: str
    window: int
    times_s: Sequence[float] = (0.0,)
    drops: int | None
    segments: int = testbed.SEGMENTS
    fin: str = "off"

    acks: str = ""

    @property
    def stack(self) -> dict[str, Any]:
        """Host settings."""
        if self.acks == HELD:
            return HELD_STACK
        return ACKS[self.acks or (DELAYED_ACKS if self.window == 10 else EVERY_ACK)]

    @property
    def isolated(self) -> bool:
        """A single batch."""
        return len(self.times_s) == 1


def _spaced(spacing: float, n: int) -> tuple[float, ...]:
    return tuple(spacing * i for i in range(n))


CASES: tuple[Case, ...] = (
    Case(name="five IW10", window=10, drops=9),
    Case(name="five IW10, eleven segments with the FIN", window=10, drops=14, segments=11, fin="with-data"),
    Case(name="five IW3", window=3, drops=0),
    Case(name="five IW4", window=4, drops=0),
    Case(name="five IW6", window=6, drops=0),
    *(
        Case(name=f"two batches of five IW3, {spacing} s apart", window=3, times_s=_spaced(spacing, 2), drops=drops)
        for spacing, drops in zip((0, 1, 2, 3, 4, 5), (18, 13, 3, 3, 0, 0), strict=True)
    ),
    *(
        Case(name=f"three batches of five IW3, {spacing} s apart", window=3, times_s=_spaced(spacing, 3), drops=drops)
        for spacing, drops in zip((0, 1, 2, 4, 6, 7), (44, 28, 18, 18, 5, 0), strict=True)
    ),
)


SPACINGS_S = tuple(0.5 * i for i in range(1, 11))

HOSTS: tuple[tuple[int, Case], ...] = tuple(
    (others, case)
    for acks in ACKS
    for others, case in (
        *((0, Case(name="alone", window=window, drops=None, acks=acks)) for window in (3, 4, 6, 10)),
        *(
            (others, Case(name=f"{s:g} s apart", window=3, times_s=_spaced(s, 1 + others), drops=None, acks=acks))
            for others in (1, 2)
            for s in SPACINGS_S
        ),
    )
) + tuple(
    (others, Case(name=f"{s:g} s apart, held", window=3, times_s=_spaced(s, 1 + others), drops=None, acks=HELD))
    for others in (1, 2)
    for s in SPACINGS_S
)
"""Batches of five under each of the hosts' ACK policies: alone, with one or two other batches, and with windows that never grow."""

SEND_BUFFER = 16384
"""Default of tcp_wmem, bytes."""


def scenario(case: Case) -> Scenario:
    """Return one case on an empty queue."""
    host = testbed.stack(**case.stack, initial_window=case.window, fin_ignores_cwnd=case.fin)
    arrivals = {"kind": "at", "times": [f"{t:g} s" for t in case.times_s]}
    return Scenario.from_dict(
        {
            "name": case.name,
            "duration": "60 s",
            "network": testbed.network(SLOW),
            "flows": [{**host, "workload": testbed.workload(arrivals, opens=5, segments=case.segments)}],
            "record": {"drops": True, "queue_interval": "50 ms"},
        }
    )


def alone(rate: str, window: int, *, duration_s: float, **settings: Any) -> Scenario:
    """Return one transaction on the empty testbed."""
    segments = settings.pop("segments", testbed.SEGMENTS)
    host = testbed.stack(initial_window=window, **settings)
    made = testbed.workload({"kind": "at", "times": ["0 s"]}, segments=segments)
    return Scenario.from_dict(
        {
            "name": f"one transaction, {rate}, initial window {window}",
            "duration": f"{duration_s:g} s",
            "network": testbed.network(rate),
            "flows": [{**host, "workload": made}],
        }
    )


FIN = {"off": 10, "with-data": 11}
"""Whether FIN ignores cwnd -> packets in the first flight when eleven segments are written and IW is 10."""


def unloaded_s(tables: Tables, rate: str, arm: str) -> float:
    """Completion time of a lone transaction on the testbed, s."""
    window = {testbed.IW3: 3, testbed.IW10: 10}[arm]
    t = tables["exact.unloaded"]
    own = t.filter((pl.col("rate") == rate) & (pl.col("window") == window) & (pl.col("acks") == LINUX_ACKS))
    return float(own["total_s"][0])


def run_all(plan: Plan) -> Data:
    """All deterministic runs: bursts, round trips, one transaction alone.

    Returns
    -------
    Data
        `exact.bursts`, `exact.hosts` (first transmissions dropped, by acks, window, others), `exact.queue` (occupancy of the isolated
        cases), `exact.serialisation`, `exact.first_flight`, `exact.send_buffer`, `exact.rounds`, `exact.unloaded`.
    """
    from ackclock_studies.iw10 import rounds

    found, queues, digests = [], [], []
    for i, case in enumerate(CASES):
        plan.report(case.name, i / len(CASES))
        r = run(scenario(case))
        digests.append(r.digest)
        first = _first(r.drops)
        queue = r.queue_samples.filter(pl.col("link") == testbed.BOTTLENECK)
        found.append(
            {
                "case": case.name,
                "isolated": case.isolated,
                "drops": first.height,
                "all_drops": r.drops.height,
                "expected": case.drops,
                "peak": max(queue["packets"].to_list()),
            }
        )
        if case.isolated:
            queues.append(queue.select(pl.lit(case.name).alias("case"), "t_s", "packets").filter(pl.col("t_s") < 15))
    hosts = []
    for others, case in HOSTS:
        r = run(scenario(case))
        digests.append(r.digest)
        hosts.append({"acks": case.acks, "window": case.window, "others": others, "drops": _first(r.drops).height})
    slow = run(alone(SLOW, 10, duration_s=20))
    heavy = run(scenario(CASES[0]))
    flights = []
    for fin, expected in FIN.items():
        # the first flight is sent at 0.45 s, and its first ACK arrives at 0.75 s
        r = run(alone(FAST, 10, duration_s=0.7, segments=11, fin_ignores_cwnd=fin))
        flights.append({"fin": fin, "segments": int(r.transactions["segments_sent"][0]), "expected": expected})
    small = run(alone(FAST, 10, duration_s=0.7, send_buffer=f"{SEND_BUFFER} bytes"))
    unloaded = [
        {
            "rate": rate,
            "acks": acks,
            "window": window,
            "total_s": run(alone(rate, window, duration_s=20, **settings)).transactions["total_s"][0],
        }
        for rate in testbed.RATES
        for acks, settings in ACKS.items()
        for window in (1, 2, 3, 4, 10)
    ]
    tables = {
        "exact.bursts": pl.DataFrame(found),
        "exact.queue": pl.concat(queues),
        "exact.serialisation": pl.DataFrame(
            {
                "serialisation_s": [float(slow.transactions["total_s"][0]) - 2 * testbed.RTT_S],
                "longest_queueing_s": [
                    float(heavy.links.filter(pl.col("link") == testbed.BOTTLENECK)["max_wait_s"][0])
                ],
            }
        ),
        "exact.first_flight": pl.DataFrame(flights),
        "exact.hosts": pl.DataFrame(hosts),
        "exact.send_buffer": small.transactions.select(pl.col("segments_sent").alias("segments")),
        "exact.unloaded": pl.DataFrame(unloaded),
        "exact.rounds": rounds.table(),
    }
    return Data(tables=tables, digests=digests, runs=len(digests))


def _first(drops: pl.DataFrame) -> pl.DataFrame:
    """Data dropped at its first transmission."""
    return drops.filter((pl.col("rexmit") == 0) & (pl.col("seg_no") > 0)) if drops.height else drops


def figure(tables: Tables) -> Figure:
    """Queue after one batch of five."""
    t = tables["exact.queue"]
    shown = {
        "five IW3": (OKABE_ITO["blue"], "-"),
        "five IW6": (OKABE_ITO["green"], "--"),
        "five IW10": (OKABE_ITO["vermilion"], "-."),
    }

    def draw() -> Any:
        figure, ax = new(7.2, 3.0)
        for name, (colour, dash) in shown.items():
            own = t.filter(pl.col("case") == name)
            ax.step(own["t_s"], own["packets"], where="post", color=colour, ls=dash, label=name)
        ax.axhline(testbed.QUEUE_PACKETS[SLOW], color=GREY, lw=0.9)
        ax.annotate("limit", (0.2, testbed.QUEUE_PACKETS[SLOW]), textcoords="offset points", xytext=(0, 3), color=GREY)
        ax.set(xlabel="time since the batch opened (s)", ylabel="queue (packets)", xlim=(0, 15))
        ax.legend()
        return figure

    drops = dict(tables["exact.bursts"].select("case", "all_drops").rows())
    return Figure(
        name="bursts",
        title=f"One batch of five on an empty slow link: {drops['five IW10']} packets lost with IW10, {drops['five IW3']} with IW3",
        caption="Packets waiting at the 64 kb/s bottleneck after five clients opened at once.",
        draw=draw,
        data={"queue": t.filter(pl.col("case").is_in(list(shown)))},
    )


def i9(tables: Tables) -> Sequence[Evidence]:
    """Response serialisation time and the longest queueing delay on the slow link."""
    t = tables["exact.serialisation"]
    return [
        Evidence(
            label="10 segments at 64 kb/s: last bit after first",
            value=float(t["serialisation_s"][0]),
            bound=same(0.2, of=2.0),
            unit="s",
        ),
        Evidence(
            label="longest queueing delay, full queue of 40 packets",
            value=float(t["longest_queueing_s"][0]),
            bound=same(0.2, of=7.5),
            unit="s",
        ),
    ]


POLICY = {"Linux": LINUX_ACKS, "delayed": DELAYED_ACKS, "every": EVERY_ACK}
"""Option of the reading ACKS -> the client's ACK policy."""


def _drops(tables: Tables, window: int, others: int, acks: str) -> list[int]:
    t = tables["exact.hosts"]
    return t.filter((pl.col("acks") == acks) & (pl.col("window") == window) & (pl.col("others") == others))[
        "drops"
    ].to_list()


def i10(tables: Tables) -> Sequence[Evidence]:
    """Isolated batches of five."""
    chosen = POLICY[ACKNOWLEDGED.of(tables)]
    return [
        Evidence(
            label=f"five IW{window} at once, {acks}: drops",
            value=float(_drops(tables, window, 0, acks)[0]),
            bound=at_least(1) if window == 10 else exactly(0),
            unit="packets",
            weighs=acks == chosen and window in (3, 10),
            key=f"iw{window}" if acks == chosen else "",
        )
        for acks in ACKS
        for window in (10, 3, 4, 6)
    ]


def i30(tables: Tables) -> Sequence[Evidence]:
    """Batches of five IW3 with one other batch, and with two."""
    chosen = POLICY[ACKNOWLEDGED.of(tables)]
    found = []
    for acks in ACKS:
        one, two = (_drops(tables, 3, others, acks) for others in (1, 2))
        found += [
            Evidence(
                label=f"{acks}, one other batch, 0.5 to 5 s apart: most drops",
                value=float(max(one)),
                bound=exactly(0),
                unit="packets",
                weighs=acks == chosen,
                key="one" if acks == chosen else "",
            ),
            Evidence(
                label=f"{acks}, two other batches: most drops",
                value=float(max(two)),
                bound=at_least(1),
                unit="packets",
                weighs=acks == chosen,
                key="two" if acks == chosen else "",
            ),
        ]
    return found


def held(tables: Tables) -> Sequence[Evidence]:
    """Batches of five IW3 with one other batch and with two, with no window growing beyond three segments."""
    one, two = (_drops(tables, 3, others, HELD) for others in (1, 2))
    return [
        Evidence(
            label="windows of three segments throughout, one other batch, 0.5 to 5 s apart: most drops",
            value=float(max(one)),
            bound=exactly(0),
            unit="packets",
            key="held_one",
        ),
        Evidence(
            label="the same, two other batches: most drops",
            value=float(max(two)),
            bound=Bound(),
            unit="packets",
            weighs=False,
            key="held_two",
        ),
    ]


def _burst(tables: Tables, bound: Bound) -> list[Evidence]:
    value = float(tables["exact.send_buffer"]["segments"][0])
    return [
        Evidence(
            label=f"first burst, send buffer of {SEND_BUFFER} bytes",
            value=value,
            bound=bound,
            unit="segments",
            key="burst",
        )
    ]


def i33(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """A first burst limited by the send buffer."""
    return _burst(tables, bound)


def i33_much(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """First burst of nine packets."""
    return _burst(tables, bound)


def i26(tables: Tables) -> Sequence[Evidence]:
    """Segments in the first flight."""
    t = tables["exact.first_flight"]
    return [
        Evidence(
            label=f"first flight, FIN and cwnd: {row['fin']}",
            value=float(row["segments"]),
            bound=exactly(row["expected"]),
            unit="segments",
        )
        for row in t.iter_rows(named=True)
    ]


def bursts_table(tables: Tables) -> Table:
    """Drops in the deterministic cases."""
    rows: list[tuple[TableCell | str, ...]] = []
    for r in tables["exact.bursts"].iter_rows(named=True):
        same = r["drops"] == r["expected"]
        rows.append(
            (
                TableCell(text=r["case"], kind="head"),
                TableCell(text=str(r["drops"]), kind="agrees" if same else "differs"),
                str(r["expected"]),
                str(r["all_drops"]),
                str(r["peak"]),
            )
        )
    return Table(
        caption=(
            "Packets dropped at 64 kb/s, queue of 40, beside a model computed beforehand, which has no retransmissions, no reaction to loss, and no "
            "ACKs of requests in the queue. Hosts are those that the model fits: with IW10 servers whose responses carry the ACK of the request, with "
            "IW3 to 6 clients that send an ACK per packet. On hosts as in the rest of the study those ACKs take five places of the queue (I10)."
        ),
        header=("case", "first transmissions dropped", "by the model", "all dropped", "longest queue"),
        rows=tuple(rows),
    )


def unloaded_table(tables: Tables) -> Table:
    """Completion time of a lone transaction."""
    rows: list[tuple[TableCell | str, ...]] = []
    for (rate, acks), own in tables["exact.unloaded"].group_by("rate", "acks", maintain_order=True):
        rows.append((TableCell(text=f"{rate}, {acks}", kind="head"), *(f"{s:.3f}" for s in own["total_s"])))
    windows = tables["exact.unloaded"]["window"].unique(maintain_order=True)
    return Table(
        caption="Completion time of one transaction on the empty testbed, s, connect included.",
        header=("link, ACKs", *(f"IW {w}" for w in windows)),
        rows=tuple(rows),
    )


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (
        paragraph(
            "The slow link's queue of 40 packets is 25 times its bandwidth-delay product, that of the fast link is exactly one. On the "
            "slow link three packets take longer to send than the round trip, so IW3 hides its rounds: unloaded, IW10 gains a "
            "tenth of a second and puts 50 packets into the queue at once when five clients open together."
        ),
        figure(t),
        bursts_table(t),
        unloaded_table(t),
    )


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    return {"five IW10 at once": scenario(CASES[0])}


CHAPTER = Chapter(
    experiments=(
        Experiment(
            name="exact", title="cases without randomness: bursts, rounds, one transaction alone", run=run_all, weight=1
        ),
    ),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
