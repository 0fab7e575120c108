"""One benchmark cell in its own process: scenario on standard input, results on standard output."""

from __future__ import annotations

import json
import sys
from array import array

from ackclock import _engine

SMSS = 1448
YARDSTICK_PACKETS = 500_000


def main() -> None:
    """Measure one cell. Peak memory is read before the yardstick runs, because the yardstick allocates memory itself."""
    ask = json.load(sys.stdin)
    text = ask["scenario"]
    if isinstance(text, dict):
        json.dump({"ns": in_turn(text, ask["repeats"])}, sys.stdout)
        return
    if ask["repeats"] == 0:  # single run, for a caller that counts its instructions
        json.dump({"packets": cost(text, least_s=0.0)[1]}, sys.stdout)
        return
    start = peak_rss_bytes()
    ns: list[float] = []
    packets = 0
    for _ in range(ask["repeats"]):
        spent, packets = cost(text)
        ns.append(spent * 1e9 / packets)
    peak = peak_rss_bytes()
    yardstick = [_engine.yardstick(1, YARDSTICK_PACKETS) for _ in range(3)]
    json.dump({"ns": ns, "packets": packets, "start": start, "peak": peak, "yardstick": yardstick}, sys.stdout)


BATCH = ", run_batch"
"""Name suffix of scenarios that are run with `run_batch`."""


LEAST_S = 0.1
"""Shortest user CPU time that can be measured, seconds; some systems count in 4 ms ticks."""


def cost(text: str, *, batch: bool = False, least_s: float = LEAST_S) -> tuple[float, int]:
    """Return user CPU seconds and the number of delivered packets. The run is repeated until it has used `least_s`."""
    own = {"reno": Reno, "reno-by-round": RenoByRound}
    spent, packets = 0.0, 0
    before = _engine.cpu_time()
    while packets == 0 or spent < least_s:
        tables = (_engine.run_batch(text, [1], 1, None, own) if batch else _engine.run(text, 1, None, own))["tables"]
        spent = _engine.cpu_time() - before
        acked = array("q")
        acked.frombytes(bytes(tables["flows"]["bytes_acked"][1]))
        packets += sum(acked) // SMSS
    return spent, packets


def in_turn(texts: dict[str, str], repeats: int) -> dict[str, list[float]]:
    """Return the cost per packet in each scenario, ns. Every repeat runs all scenarios once, so that machine noise affects all of them alike."""
    ns: dict[str, list[float]] = {name: [] for name in texts}
    for _ in range(repeats):
        for name, text in texts.items():
            spent, packets = cost(text, batch=name.endswith(BATCH))
            ns[name].append(spent * 1e9 / packets)
    return ns


class Reno:
    """Reno in Python, to measure the cost of a controller in Python."""

    def on_ack(self, window: _engine.Window, ack: _engine.Ack) -> None:
        """Grow by slow start, or by one segment per window."""
        if ack.cwnd_limited:
            window.cwnd += ack.acked if window.in_slow_start else ack.acked / window.cwnd

    def on_congestion_event(self, window: _engine.Window, in_flight: int) -> float:  # noqa: ARG002
        """Return half the window."""
        return window.cwnd / 2


class RenoByRound(Reno):
    """Reno, called once per round trip."""

    every = "round"

    def on_ack(self, window: _engine.Window, ack: _engine.Ack) -> None:
        """Grow for the ACKs of one round trip."""
        if ack.cwnd_limited:
            window.cwnd += ack.acked if window.in_slow_start else 1


def peak_rss_bytes() -> int:
    """Return the peak resident set of this process alone, bytes. getrusage would also count the parent that started it."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return int(_engine.peak_rss_bytes())
