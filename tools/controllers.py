"""Writes docs/controllers.md: every controller on one path, with the kernel's rows where available. `--check` reports whether the page is up
to date.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ackclock import _engine, run
from ackclock.bench.cells import NOT_TCP
from ackclock.fidelity import comparison, path, reference, simulate

PAGE = Path(__file__).resolve().parent.parent / "docs" / "controllers.md"
SECONDS = 60
CAPACITY_BPS = 100e6 * 1448 / 1514

HEAD = """# Controllers

<!-- written by tools/controllers.py -->

A flow names its controller with `congestion_control` and sets its options with `congestion_control_options`; `ackclock
list` prints both. You can also [write your own](how-to/write-a-controller.md). `ackclock bench` measures what a packet costs
with each.

| name | what it is |
|---|---|
"""

PATH = """
## One path, all controllers

One bulk flow of profile `linux-6` runs for 60 s over a link of 100 Mbit/s with a drop-tail queue of 333 packets and an RTT of 40 ms,
without random loss, and with 1 % of the data packets lost at random. Utilisation is goodput over the capacity of the link
(100 Mbit/s x 1448/1514); RTT is the mean of all samples. DCTCP sees no marks here and behaves like Reno. On this path,
Linux was measured only with loss, for reno and cubic, with five seeds.

| controller | loss | utilisation | mean RTT, ms | retransmissions | Linux: utilisation | Linux: mean sRTT, ms | Linux: retransmissions |
|---|---|---:|---:|---:|---:|---:|---:|
"""

KERNEL = """
## Compared with Linux 7.3.4

The table has the twelve algorithms that were measured on Linux, without random loss. n1 is 10 Mbit/s, 40 ms, 50 packets; n3 is
100 Mbit/s, 30 ms, 20 packets. Bounds and verdicts are those of `ackclock fidelity` (goodput 5 %, mean sRTT 10 %, retransmissions 25 %; for reno
and cubic 2 %, 5 %, 15 %); [fidelity.md](fidelity.md) explains the misses.

| path | controller | goodput, Mbit/s: Linux | here | mean sRTT, ms: Linux | here | retransmissions: Linux | here |
|---|---|---:|---:|---:|---:|---:|---:|
"""


def main() -> int:
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        print("docs/controllers.md is stale; `make docs` renews it")
        return 1
    return 0


def page() -> str:
    """The whole page."""
    names = [(name, about) for name, about in _engine.registry()["controllers"] if not name.startswith(NOT_TCP)]
    lines = [f"| `{name}` | {about} |" for name, about in names]
    options = [
        f"| `{name}` | `{option}` | {about} | {takes} | {default} |"
        for name, known in _engine.controller_options().items()
        if not name.startswith(NOT_TCP)
        for option, takes, default, about in known
    ]
    head = "\n## Options\n\n| controller | option | what it does | takes | default |\n|---|---|---|---|---|\n"
    rows = [row for name, _ in names for row in (on_path(name, 0.0), on_path(name, 1.0))]
    beside = [row for network in ("n1", "n3") for row in beside_kernel(network)]
    return (
        HEAD + "\n".join(lines) + "\n" + head + "\n".join(options) + "\n" + PATH + "\n".join(rows) + "\n" + KERNEL
        + "\n".join(beside) + "\n"
    )  # fmt: skip


def on_path(name: str, loss: float) -> str:
    """One line: 60 s on the path of 100 Mbit/s and 40 ms."""
    lost = {"kind": "bernoulli", "p": f"{loss} %"} if loss else None
    row = run(path.bulk(path.N2, name, seconds=SECONDS, loss=lost)).flows.row(0, named=True)
    here = f"{row['goodput_bps'] / CAPACITY_BPS:.3f} | {1e3 * row['mean_rtt_s']:.1f} | {row['retransmissions']}"
    there = "– | – | –"
    if loss and name in comparison.CONTROLLERS:
        kernel = reference.bulk("n2", name, loss)
        mean = {quantity: sum(values) / len(values) for quantity, values in kernel.items()}
        utilisation = 1e6 * mean[reference.GOODPUT] / CAPACITY_BPS
        there = f"{utilisation:.3f} | {mean[reference.SRTT]:.1f} | {mean[reference.RETRANSMISSIONS]:.0f}"
    return f"| {name} | {f'{loss:g} %' if loss else 'none'} | {here} | {there} |"


def beside_kernel(network: str) -> list[str]:
    """Lines of one measured network."""
    lines = []
    for linux in (*comparison.CONTROLLERS, *comparison.OTHERS):
        ours = simulate.OURS.get(linux, linux)
        kernel, here = reference.bulk(network, linux), simulate.bulk(network, ours)
        cells = []
        for quantity, digits in ((reference.GOODPUT, 2), (reference.SRTT, 2), (reference.RETRANSMISSIONS, 0)):
            cells += [f"{sum(side[quantity]) / len(side[quantity]):.{digits}f}" for side in (kernel, here)]
        name = ours if ours == linux else f"{ours} (Linux: {linux})"
        lines.append(f"| {network} | {name} | {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
