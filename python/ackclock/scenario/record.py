"""What is recorded besides the sums of each flow and link."""

from __future__ import annotations

from typing import Any, Literal

from ackclock.scenario._base import Duration, Flag, Table, nanoseconds


class Record(Table):
    """What a run records. An interval of "0 s" turns its record off."""

    trace: Literal["none", "flow", "all"] = "none"
    """Record every ACK, transmission and timer event (table `acks`): of no flow, of flow 0, or of all flows."""
    controller: Literal["none", "flow", "all"] = "none"
    """Record the controller's own variables at each ACK (PCC: at the end of each monitor interval): of no flow, of flow
    0, or of all flows."""
    controller_interval: Duration = "0 s"
    """Minimum time between two such rows of a flow. "0 s" records every ACK."""
    sample_interval: Duration = "0 s"
    """Time between samples of each open flow (cwnd, ssthresh, RTT, state)."""
    queue_interval: Duration = "0 s"
    """Time between samples of each queue's length."""
    goodput_interval: Duration = "0 s"
    """Length of the intervals over which the goodput of each flow is measured."""
    transactions: Literal["rows", "summary"] = "rows"
    """"rows": a row for each transaction, and the summary. "summary": only totals and a histogram, whose size does not
    depend on the number of transactions."""
    warm_up: Duration = "0 s"
    """Warm-up, from the start of the run. The tables of links, `performance` and the summary of transactions leave it
    out; a client that arrives during the warm-up has only its row in `transactions`."""
    drops: Flag = False
    """Record each dropped packet (table `drops`)."""
    performance: Flag | None = None
    """Record what each flow, each group and the whole run achieved after the warm-up, with quantiles of RTT and one-way
    delay. The size of this table does not grow with the run; it costs 5 to 10 % more time. Default: on in sweeps and
    comparisons with up to 100 flows, off elsewhere."""

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
