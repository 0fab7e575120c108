from __future__ import annotations

import os
import statistics
import time

import pytest

from ackclock import Scenario
from ackclock.sweep import Axis, Campaign, Store, Sweep, Threads
from ackclock.sweep import run as run_sweep

pytestmark = pytest.mark.long


def grid(seeds: int, duration: str = "1 s") -> Sweep:
    """A hundred cells of one flow each at 100 Mbit/s."""
    return Sweep(
        name="grid",
        scenario=Scenario.from_dict(
            {
                "duration": duration,
                "network": {
                    "bottleneck": {
                        "rate": "100 Mbit/s",
                        "delay": "10 ms",
                        "queue": {"kind": "drop-tail", "limit": "1 BDP"},
                    }
                },
                "flows": [{"congestion_control": "cubic"}],
            }
        ),
        axes=(
            Axis(key="flows.0.congestion_control", values=("reno", "cubic")),
            Axis(key="network.bottleneck.delay", values=tuple(f"{i} ms" for i in range(1, 51))),
        ),
        seeds=tuple(range(1, seeds + 1)),
    )


def test_ten_thousand_runs_of_a_second_are_nine_tenths_simulation(tmp_path):
    # Planning, handing out, keeping and the final table included; CPU time, which a busy machine does not change much.
    started = time.process_time()
    _, status = run_sweep(grid(100), tmp_path / "s", Threads(1))
    total = time.process_time() - started
    assert status.done == 10_000
    assert status.engine_cpu_s / total >= 0.9, f"{status.engine_cpu_s:.2f} s of {total:.2f} s"


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two CPUs")
def test_two_jobs_are_nearly_twice_as_fast(tmp_path):
    # Wall time says nothing while others use the CPUs.
    if os.getloadavg()[0] > 0.6:
        pytest.skip("the machine is busy")
    sweep = grid(10, "5 s")

    def rate(jobs: int, attempt: int) -> float:
        with Store(tmp_path / f"{jobs}-{attempt}", write=True) as store:
            executor = Threads(jobs)
            status = Campaign(store, sweep.cells, sweep.recipe, name="grid").run(executor)
            executor.close()
            return status.rate

    found = [rate(2, i) / rate(1, i) for i in range(5)]
    assert statistics.median(found) >= 1.9, found
