"""One cell of the benchmark, alone in its process: scenario on standard input, figures on standard output."""

from __future__ import annotations

import json
import sys
from array import array

from ackclock import _engine

SMSS = 1448
YARDSTICK_PACKETS = 500_000


def main() -> None:
    """Measure. Memory is read before the yardstick runs, which needs some of its own."""
    ask = json.load(sys.stdin)
    text = ask["scenario"]
    start = peak_rss_bytes()
    ns: list[float] = []
    packets = 0
    for _ in range(ask["repeats"]):
        before = _engine.cpu_time()
        tables = _engine.run(text, 1)["tables"]
        spent = _engine.cpu_time() - before
        acked = array("q")
        acked.frombytes(bytes(tables["flows"]["bytes_acked"][1]))  # type: ignore[arg-type]
        packets = sum(acked) // SMSS
        ns.append(spent * 1e9 / packets)
    peak = peak_rss_bytes()
    yardstick = [_engine.yardstick(1, YARDSTICK_PACKETS) for _ in range(3)]
    json.dump({"ns": ns, "packets": packets, "start": start, "peak": peak, "yardstick": yardstick}, sys.stdout)


def peak_rss_bytes() -> int:
    """Peak resident set of this program alone: getrusage would also count the parent that started it."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return int(_engine.peak_rss_bytes())


if __name__ == "__main__":
    main()
