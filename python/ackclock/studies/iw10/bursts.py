"""Batches that open together on the slow link, drop by drop (I10), and what goes with single responses (I9, I26)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ackclock import run
from ackclock.plot import GREY, OKABE_ITO, Figure, new
from ackclock.scenario import Scenario
from ackclock.studies.iw10 import testbed
from ackclock.studies.iw10.testbed import FAST, SLOW
from ackclock.study import Data, Plan, Tables

LINUX_ACKS, DELAYED_ACKS, EVERY_ACK = "as Linux, quick ACKs first", "delayed ACKs (RFC 1122)", "an ACK per packet"
ACKS: dict[str, dict[str, Any]] = {
    LINUX_ACKS: {},
    DELAYED_ACKS: {"profile": "rfc"},
    EVERY_ACK: {"delayed_ack": False},
}
"""How the client acknowledges -> settings."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """Batches of five at given times.

    Parameters
    ----------
    name
        As in the report.
    window
        Initial window.
    times_s
        When batches open.
    drops
        Packets that the queue must drop, of first transmissions; None if nothing was computed beforehand.
    segments
        Of a response.
    fin
        Whether the FIN may leave beyond cwnd.
    """

    # An ACK per packet is what the model behind `drops` assumes. But a server that acknowledges each request at once puts five small
    # packets into the queue ahead of the first flights; where the first flight decides, it delays its ACKs, and they ride on the data.

    name: str
    window: int
    times_s: Sequence[float] = (0.0,)
    drops: int | None
    segments: int = testbed.SEGMENTS
    fin: str = "off"

    @property
    def stack(self) -> dict[str, Any]:
        """Settings of the hosts."""
        return ACKS[DELAYED_ACKS if self.window == 10 else EVERY_ACK]

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


def scenario(case: Case) -> Scenario:
    """One case on an empty queue."""
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
    """One transaction on the empty testbed."""
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
"""Whether FIN ignores cwnd -> packets that leave at first when eleven segments are written and IW is 10."""


def unloaded_s(tables: Tables, rate: str, arm: str) -> float:
    """Completion time of one transaction alone on the testbed, s."""
    window = {testbed.IW3: 3, testbed.IW10: 10}[arm]
    t = tables["exact.unloaded"]
    own = t.filter((pl.col("rate") == rate) & (pl.col("window") == window) & (pl.col("acks") == LINUX_ACKS))
    return float(own["total_s"][0])


def run_all(plan: Plan) -> Data:
    """Everything without chance: bursts, rounds, one transaction alone.

    Returns
    -------
    Data
        `exact.bursts`, `exact.queue` (occupancy of the isolated cases), `exact.serialisation`, `exact.first_flight`,
        `exact.rounds`, `exact.unloaded`.
    """
    from ackclock.studies.iw10 import rounds

    found, queues, digests = [], [], []
    for i, case in enumerate(CASES):
        plan.report(case.name, i / len(CASES))
        r = run(scenario(case))
        digests.append(r.digest)
        first = r.drops.filter((pl.col("rexmit") == 0) & (pl.col("seg_no") > 0)) if r.drops.height else r.drops
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
    slow = run(alone(SLOW, 10, duration_s=20))
    heavy = run(scenario(CASES[0]))
    flights = []
    for fin, expected in FIN.items():
        # the first flight leaves at 0.45 s, and its first ACK is back at 0.75 s
        r = run(alone(FAST, 10, duration_s=0.7, segments=11, fin_ignores_cwnd=fin))
        flights.append({"fin": fin, "segments": int(r.transactions["segments_sent"][0]), "expected": expected})
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
        "exact.unloaded": pl.DataFrame(unloaded),
        "exact.rounds": rounds.table(),
    }
    return Data(tables=tables, digests=digests, runs=len(digests))


def figure(tables: Tables) -> Figure:
    """The queue after one batch of five."""
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
