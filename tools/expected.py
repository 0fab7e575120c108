"""Exact expectations of `ackclock prove` compared with the mean over seeds; writes measured/expectations.json.

    python tools/expected.py            # 100,000 seeds for each link and loss
    python tools/expected.py 5000       # this many

There are two links. The first one drops only first transmissions of data, and its enumeration is complete, so the
exact mean lies within the interval over seeds. The second one drops packets in both directions alike, and cases with
more than a fixed number of losses are omitted, so the mean over seeds lies between the bounds, within its standard
error. There are four rows, so a row disagrees from 2.5 standard errors on: one false alarm in twenty for all four
rows together. Exit code 1 if a row disagrees.
"""

from __future__ import annotations

import math
import os
import sys
import time

import numpy as np

from ackclock import Scenario, load, prove
from ackclock import run_batch as batch
from book import ROOT, Cell, record

BLOCK = 10_000
DURATION_S = 60.0
FAR = 2.5  # standard errors
MOST = 5  # losses per case on the link that loses packets in both directions


def seeded(scenario: Scenario, seeds: int) -> tuple[float, float, float]:
    """Mean completion time, its standard error, CPU time in seconds. A run that did not complete counts with its duration."""
    found, began = [], time.process_time()
    for first in range(1, seeds + 1, BLOCK):
        made = batch(scenario, range(first, min(first + BLOCK, seeds + 1)), jobs=os.cpu_count() or 1)
        times = np.asarray(made.flows["completion_s"], dtype=float)
        found += list(np.where(np.isnan(times), DURATION_S, times))
    took = time.process_time() - began
    return float(np.mean(found)), float(np.std(found, ddof=1)) / math.sqrt(len(found)), took


def main(seeds: int) -> int:
    """Measure, record, and report whether the expectation holds."""
    plain = load(ROOT / "scenarios" / "short-response.toml")
    rows: list[list[Cell]] = []
    wrong = 0
    for name, adversary, lossy in (
        ("first transmissions of data", prove.Adversary(name="losses", first=10), {"applies_to": "originals"}),
        ("every packet, both directions", prove.Adversary(name="packets", first=128, most=MOST), None),
    ):
        for p in (0.01, 0.03):
            began = time.process_time()
            target = prove.Target(name="short-response", scenario=plain)
            made = prove.prove([target], adversary, jobs=os.cpu_count() or 1)
            exact = prove.expectation(made.cases[0], prove.Bernoulli(p), adversary, DURATION_S)
            took = time.process_time() - began
            loss = {"kind": "bernoulli", "p": p, **(lossy or {})}
            with_loss = plain.set("network.bottleneck.loss", loss)
            if lossy is None:
                with_loss = with_loss.set(
                    "network.reverse.bottleneck", {"rate": "10 Mbit/s", "delay": "25 ms", "loss": loss}
                )
            mean, error, cpu = seeded(with_loss, seeds)
            outside = max(exact.low_s - mean, mean - exact.high_s, 0.0) / error
            wrong += outside > FAR
            rows.append(
                [
                    name,
                    f"{p * 100:g} %",
                    len(made.cases[0]),
                    f"{exact.probability_left_out:.2g}",
                    f"{exact.low_s:.6f}",
                    f"{exact.high_s:.6f}",
                    f"{took:.2f}",
                    f"{mean:.6f}",
                    f"{1.96 * error:.6f}",
                    f"{cpu:.1f}",
                    f"{outside:.2f}",
                ]
            )
            print(*rows[-1], sep="  ", flush=True)
    record(
        "expectations",
        what="The exact mean completion of ten segments (scenario short-response), from all cases, beside the mean of seeded runs",
        heads=[
            "what is lost",
            "loss",
            "cases",
            "probability left out",
            "mean, at least (s)",
            "at most (s)",
            "CPU (s)",
            "seeded mean (s)",
            "half of its 95 % interval (s)",
            "CPU of the seeds (s)",
            "standard errors outside",
        ],
        rows=rows,
        seeds=f"1 to {seeds}",
        notes=[
            f"Of the link that loses every packet, cases with more than {MOST} losses are left out. A row disagrees from {FAR} standard errors on."
        ],
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
