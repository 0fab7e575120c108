"""What is recorded besides the sums of each flow and link."""

from __future__ import annotations

from typing import Any, Literal

from ackclock.scenario._base import Duration, Flag, Table, nanoseconds


class Record(Table):
    """What is recorded. Intervals of "0 s" record nothing."""

    trace: Literal["none", "flow", "all"] = "none"
    """The record of every ACK, transmission and timer: none, of flow 0, or of all flows."""
    controller: Literal["none", "flow", "all"] = "none"
    """The controllers' own variables, a row per ACK (of PCC, per monitor interval): of none, of flow 0, or of all."""
    controller_interval: Duration = "0 s"
    """Least time between two such rows of a flow; "0 s": every ACK."""
    sample_interval: Duration = "0 s"
    """Between samples of each open flow (cwnd, ssthresh, RTT, state)."""
    queue_interval: Duration = "0 s"
    """Between samples of each queue's occupancy."""
    goodput_interval: Duration = "0 s"
    """Length of the intervals over which each flow's goodput is counted."""
    transactions: Literal["rows", "summary"] = "rows"
    """A row for each transaction, or sums and a histogram alone, whose size does not grow with their number."""
    warm_up: Duration = "0 s"
    """Links, `performance` and the summary of transactions count from here on; clients who come before are in the rows alone."""
    drops: Flag = False
    """A row for each dropped packet."""
    performance: Flag | None = None
    """What each flow, each group and the run got after the warm-up, with quantiles of RTT and one-way delay: a table whose size
    does not grow with the run. It costs 5 to 10 % more time. Absent: in sweeps and comparisons of up to 100 flows."""

    def engine(self) -> dict[str, Any]:
        """As the engine reads it."""
        return {
            "trace": self.trace,
            "controller": self.controller,
            "controller_interval_ns": nanoseconds(self.controller_interval),
            "sample_interval_ns": nanoseconds(self.sample_interval),
            "queue_interval_ns": nanoseconds(self.queue_interval),
            "goodput_interval_ns": nanoseconds(self.goodput_interval),
            "transactions": self.transactions,
            "warm_up_ns": nanoseconds(self.warm_up),
            "drops": self.drops,
            "performance": self.performance is True,
        }
