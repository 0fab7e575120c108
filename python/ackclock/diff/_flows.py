"""Compares every flow of a scenario on both backends: its events or transactions, then the values shown to users.

A flow is identical if all of these agree: each ACK and each transmission of a stream, each time of each client
transaction, its completion time, goodput, retransmissions and timeouts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from ackclock._results.result import Run

__all__ = ["EXACT", "NEAR_S", "STREAMS", "Flow", "clients", "numbers"]

STREAMS = ("bulk", "transfer", "throttled")
"""Workloads whose flows are compared event by event."""
NEAR_S = 2e-6
"""Maximum difference at which transaction times count as equal, s: the kernel's clients are notified of an arrival
by a separate event.
"""
EXACT = 1e-5
"""Relative difference below which goodputs count as equal, because their times are equal only to within `NEAR_S`."""

CLIENT_TIMES = {
    "transactions": ("arrival_s", "connect_s", "first_byte_s", "total_s"),
    "fetches": ("start_s", "connect_s", "first_byte_s", "total_s"),
    "conversations": ("start_s", "first_byte_s", "latency_s"),
}
KEYS = {"transactions": ["batch", "idx"], "fetches": ["idx"], "conversations": ["stream", "round", "step", "message"]}
"""Columns that identify a flow's rows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Flow:
    """One flow on both backends, or in two kernels.

    Parameters
    ----------
    number
        Number of the flow.
    events
        Number of identical events or transactions before the first difference.
    difference
        First differing event; "" if there is none.
    bytes
        Payload acknowledged.
    goodput_bps, completion_s, retransmissions, timeouts
        Values from the table `flows`; None if it has none.
    """

    number: int
    events: int
    difference: str
    bytes: tuple[int, int]
    goodput_bps: tuple[float | None, float | None]
    completion_s: tuple[float | None, float | None]
    retransmissions: tuple[int, int]
    timeouts: tuple[int, int]

    @property
    def text(self) -> str:
        """First difference: an event, or else a value of the flow; "" if there is none."""
        if self.difference:
            return self.difference
        for name, (a, b), near in (
            ("completion", self.completion_s, _near_s),
            ("bytes", self.bytes, _equal),
            ("retransmissions", self.retransmissions, _equal),
            ("timeouts", self.timeouts, _equal),
            ("goodput", self.goodput_bps, _close),
        ):
            if not near(a, b):
                return f"{name}: {_said(a)} and {_said(b)}"
        return ""

    @property
    def identical(self) -> bool:
        """Whether all values agree."""
        return not self.text

    @property
    def effect(self) -> float | None:
        """Relative difference between the first goodput and the second."""
        a, b = self.goodput_bps
        return None if a is None or not b else a / b - 1

    @property
    def change(self) -> float | None:
        """Second goodput relative to the first."""
        a, b = self.goodput_bps
        return None if b is None or not a else b / a - 1

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary."""
        return {
            "flow": self.number,
            "identical": self.identical,
            "equal_events": self.events,
            "difference": self.text or None,
            "bytes": list(self.bytes),
            "goodput_bps": list(self.goodput_bps),
            "completion_s": list(self.completion_s),
            "retransmissions": list(self.retransmissions),
            "timeouts": list(self.timeouts),
        }


def numbers(first: Run, second: Run, flow: int, events: int, difference: str) -> Flow:
    """Return a flow with its values from both sides' `flows` tables."""
    a, b = (run.flows.row(flow, named=True) for run in (first, second))

    def whole(name: str) -> tuple[int, int]:
        return int(a[name] or 0), int(b[name] or 0)

    return Flow(
        number=flow,
        events=events,
        difference=difference,
        bytes=whole("bytes_acked"),
        goodput_bps=(_finite(a["goodput_bps"]), _finite(b["goodput_bps"])),
        completion_s=(_finite(a["completion_s"]), _finite(b["completion_s"])),
        retransmissions=whole("retransmissions"),
        timeouts=whole("rtos"),
    )


def clients(first: Run, second: Run, flow: int, table: str, other: str) -> tuple[int, str]:
    """Return how many of a flow's transactions, fetches or messages agree, and the first that differs, in order
    of arrival and request.
    """
    import polars as pl

    a, b = (_rows(getattr(run, table).filter(pl.col("flow") == flow), KEYS[table]) for run in (first, second))
    equal, text = 0, ""
    for mine, its in zip(a, b, strict=False):
        wrong = [name for name in CLIENT_TIMES[table] if not _near_s(mine[name], its[name])]
        if not wrong:
            equal += 1
        elif not text:
            name = wrong[0]
            request = f", request {mine['request']}" if "request" in mine else ""
            which = mine["idx"] if "idx" in mine else ".".join(str(mine[key]) for key in KEYS[table])
            text = f"{table.removesuffix('s')} {which}{request}, {name.removesuffix('_s')}: "
            text += f"{_time(mine[name])}, {other} {_time(its[name])}"
    if not text and len(a) != len(b):
        text = f"{len(a)} {table}, {other} {len(b)}"
    return equal, text and f"{equal} of {len(b)} equal; {text}"


def _rows(rows: pl.DataFrame, key: list[str]) -> list[dict[str, Any]]:
    return rows.sort(key).to_dicts()


def _finite(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else float(value)


def _near_s(a: float | None, b: float | None) -> bool:
    return a is b if a is None or b is None else abs(a - b) <= NEAR_S


def _close(a: float | None, b: float | None) -> bool:
    return a is b if a is None or b is None else abs(a - b) <= EXACT * max(abs(a), abs(b))


def _equal(a: float | None, b: float | None) -> bool:
    return a == b


def _said(value: float | None) -> str:
    return "none" if value is None else f"{value:.10g}"


def _time(value: float | None) -> str:
    return "none" if value is None else f"{value:.7f} s"
