"""Measured cells: the reference dumbbell, and variations of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["CELLS", "COUNTED", "NOT_TCP", "BenchCell", "Counted", "scenario"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchCell:
    """One workload: N bulk flows through one bottleneck; flow i starts at i/N s.

    Parameters
    ----------
    rate_mbps
        Bottleneck rate, Mbit/s.
    flows
        N.
    duration_s
        Simulated seconds.
    budget_ns
        Bound on the cost per packet; None if there is none.
    congestion_control
        Registry name.
    queue
        The bottleneck's queue; None = drop-tail of one BDP.
    bottleneck
        Further keys of the bottleneck, as in a scenario's link.
    workload
        Workload of the flows; None = bulk.
    record
        Records of the run.
    """

    rate_mbps: int
    flows: int
    duration_s: float
    budget_ns: int | None = None
    congestion_control: str = "cubic"
    queue: dict[str, Any] | None = None
    bottleneck: dict[str, Any] = field(default_factory=dict)
    workload: dict[str, Any] | None = None
    record: dict[str, Any] = field(default_factory=dict)


CELLS = (
    BenchCell(rate_mbps=100, flows=1, duration_s=60, budget_ns=250),
    BenchCell(rate_mbps=100, flows=10, duration_s=60, budget_ns=350),
    BenchCell(rate_mbps=100, flows=100, duration_s=60, budget_ns=600),
    BenchCell(rate_mbps=100, flows=1000, duration_s=60, budget_ns=1000),
    BenchCell(rate_mbps=1000, flows=1, duration_s=10, budget_ns=300),
    BenchCell(rate_mbps=1000, flows=10, duration_s=10),
    BenchCell(rate_mbps=1000, flows=100, duration_s=10, budget_ns=500),
    BenchCell(rate_mbps=100, flows=1, duration_s=60, budget_ns=375, congestion_control="pcc-allegro"),
    BenchCell(rate_mbps=100, flows=4, duration_s=60, budget_ns=410, congestion_control="pcc-allegro"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Counted:
    """A workload whose instructions are counted, from `from_s` to the end of the run.

    Parameters
    ----------
    name
        Name for readers.
    cell
        Workload to run.
    from_s
        Time at which counting starts, after start-up and slow start, s.
    most
        Bound on the instructions per delivered packet.
    """

    name: str
    cell: BenchCell
    from_s: float
    most: int


PLAIN_MOST = 1_980
"""Bound for the simplest cell (CUBIC, one flow, 100 Mbit/s); other cells' bounds are multiples of it."""

# Timers due in a nanosecond fire before its arrivals, host by host: 0.3 to 1.4 % of the instructions in cells with
# several flows or pacing.
COUNTED = (
    Counted(name="cubic", cell=BenchCell(rate_mbps=100, flows=1, duration_s=4), from_s=2, most=PLAIN_MOST),
    Counted(name="cubic", cell=BenchCell(rate_mbps=100, flows=10, duration_s=4), from_s=2, most=2_180),
    Counted(name="cubic", cell=BenchCell(rate_mbps=100, flows=100, duration_s=4), from_s=2, most=2_750),
    Counted(name="cubic", cell=BenchCell(rate_mbps=1000, flows=1, duration_s=1.5), from_s=1, most=2_030),
    Counted(
        name="codel",
        cell=BenchCell(rate_mbps=100, flows=1, duration_s=4, queue={"kind": "codel"}),
        from_s=2,
        most=PLAIN_MOST * 3 // 2,
    ),
    Counted(
        name="fq-codel",
        cell=BenchCell(rate_mbps=100, flows=1, duration_s=4, queue={"kind": "fq-codel"}),
        from_s=2,
        most=PLAIN_MOST * 3 // 2,
    ),
    Counted(
        name="0.1 % loss",
        cell=BenchCell(rate_mbps=100, flows=10, duration_s=4, bottleneck={"loss": {"kind": "bernoulli", "p": 0.001}}),
        from_s=2,
        most=2_600,
    ),
    Counted(
        name="bbr",
        cell=BenchCell(rate_mbps=100, flows=1, duration_s=4, congestion_control="bbr"),
        from_s=2,
        most=3_200,
    ),
    Counted(
        name="trace = all",
        cell=BenchCell(rate_mbps=100, flows=1, duration_s=4, record={"trace": "all"}),
        from_s=2,
        most=PLAIN_MOST * 8 // 5,
    ),
    Counted(name="cubic", cell=BenchCell(rate_mbps=1000, flows=10_000, duration_s=1.5), from_s=1.25, most=6_300),
    Counted(name="cubic", cell=BenchCell(rate_mbps=10_000, flows=100_000, duration_s=1.2), from_s=1.1, most=8_150),
    Counted(
        name="transactions of 14 kB",
        cell=BenchCell(
            rate_mbps=1000,
            flows=4,
            duration_s=3,
            workload={
                "kind": "transactions",
                "bytes": "14480 bytes",
                "arrivals": {"kind": "poisson", "load": 0.7},
            },
            record={"transactions": "summary"},
        ),
        from_s=2,
        most=6_080,
    ),
)
"""Counted workloads with their bounds, valid for an engine built as for wheels (`make setup PROFILE=release`);
`tests/python/bench/test_bench.py` checks them.
"""

NOT_TCP = ("pcc", "quinn:")
"""Name prefixes of other transports."""


def scenario(cell: BenchCell) -> dict[str, Any]:
    """The reference dumbbell: access 10 R / 1 ms, bottleneck R / 18 ms, RTT 40 ms, one-BDP drop-tail queue."""
    edge = {"rate": f"{10 * cell.rate_mbps} Mbit/s", "delay": "1 ms"}
    host = {} if cell.congestion_control.startswith(NOT_TCP) else {"profile": "linux-6"}
    return {
        "name": f"bench {cell.rate_mbps} Mbit/s, {cell.flows} flows",
        "duration": f"{cell.duration_s:g} s",
        "network": {
            "topology": "dumbbell",
            "access": edge,
            "bottleneck": {
                "rate": f"{cell.rate_mbps} Mbit/s",
                "delay": "18 ms",
                "queue": cell.queue or {"kind": "drop-tail", "limit": f"{cell.rate_mbps * 10 // 3} packets"},
                **cell.bottleneck,
            },
            "egress": edge,
            # the return path is plain, regardless of the bottleneck
            "reverse": {"bottleneck": {"rate": f"{cell.rate_mbps} Mbit/s", "delay": "18 ms"}}
            if cell.queue or cell.bottleneck
            else {},
        },
        "flows": [
            {
                **host,
                "count": cell.flows,
                "congestion_control": cell.congestion_control,
                "stagger": f"{1_000_000_000 // cell.flows if cell.flows > 1 else 0} ns",
                "workload": cell.workload or {"kind": "bulk"},
            }
        ],
        "record": cell.record,
    }
