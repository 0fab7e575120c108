"""Lines of tcp_probe, the kernel's module of before 4.16, and what curl prints after each fetch: the files that scripts of that time read.

A line of tcp_probe, as of Linux 3.x, for each ACK that a sender receives:

    time source destination length snd_nxt snd_una snd_cwnd ssthresh snd_wnd srtt

Time is in seconds since the module was loaded; length is that of the TCP segment that came, header included; snd_nxt and snd_una are hexadecimal; cwnd
and ssthresh are segments, srtt is milliseconds. The module looks before the ACK is processed, so all values are from before it. Its
ssthresh is what a reduction would set back to: in recovery ssthresh, otherwise that or three quarters of cwnd, whichever is more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ackclock._results.result import Run

__all__ = ["lines", "times"]

INFINITE = 0x7FFF_FFFF
"""What the kernel has for no threshold."""

REDUCED = ("Recovery", "CWR")
"""States in which cwnd is on its way to ssthresh."""


def lines(run: Run) -> Iterator[str]:
    """A line for each ACK in the trace of a run, in the order of time."""
    header = {
        row["flow"]: 20 + 12 * (run.scenario.flows[row["group"]].stack.timestamps is not False)
        for row in run.rows("flows")
    }
    sent: dict[int, int] = {}
    una: dict[int, int] = {}
    state: dict[int, str] = {}
    srtt: dict[int, float] = {}
    threshold: dict[int, int] = {}
    for row in run.rows("acks"):
        flow = row["flow"]
        if row["event"] in ("send", "rtx"):
            sent[flow] = max(sent.get(flow, 0), row["seq"] + row["len"])
        elif row["event"] == "ack":
            cwnd = row["cwnd_before"]
            known = threshold.get(flow, INFINITE)
            current = known if state.get(flow, "Open") in REDUCED else max(known, 3 * cwnd // 4)
            # SACK blocks come after two bytes of padding and the option's own two
            length = header[flow] + (4 + 8 * row["sack_blocks"] if row["sack_blocks"] else 0)
            host = f"{flow // 256}.{flow % 256 + 1}"
            ends = f"10.0.{host}:5001 10.1.{host}:5201"
            past = f"{sent.get(flow, 0):#x} {una.get(flow, 0):#x}"
            yield (
                f"{row['t_ns'] // 1_000_000_000}.{row['t_ns'] % 1_000_000_000:09d} {ends} {length} {past} {cwnd} {current} "
                f"{row['rwnd']} {round(1e3 * srtt.get(flow, 0.0))}"
            )
            una[flow] = row["seq"]
        state[flow] = row["ca_state"]
        srtt[flow] = row["srtt_s"] or 0.0
        threshold[flow] = INFINITE if row["ssthresh"] is None else row["ssthresh"]


def times(run: Run) -> Iterator[str]:
    """Seconds that each fetch or transaction took which was complete, as curl prints its `time_total`: connect and all."""
    for table in ("fetches", "transactions"):
        for row in run.rows(table):
            if row["total_s"] is not None:
                yield f"{row['total_s']:.6f}"
