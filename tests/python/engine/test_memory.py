"""Compares the estimate of a run's memory with its actual use: the estimate is never below the peak.

`python test_memory.py COUNT` prints, as JSON, the estimate and the peak of COUNT drawn scenarios of PCC. Each runs in
a separate process; the peak is the growth in resident memory since before the run.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
from typing import Any

import pytest

import ackclock
from ackclock import _engine


def drawn(number: int) -> ackclock.Scenario:
    """Return a scenario with one or two groups of PCC, or PCC with CUBIC; combinations that the engine refuses are drawn again."""
    draw = random.Random(number)
    while True:
        try:
            return ackclock.Scenario.from_dict(_values(draw))
        except ackclock.ScenarioError:
            continue


def _values(draw: random.Random) -> dict[str, Any]:
    rate, seconds = draw.choice([(1, 30), (5, 10), (20, 30), (100, 10), (300, 3), (1000, 1)])
    queue = {
        "kind": draw.choice(["drop-tail", "drop-tail", "codel", "fq-codel"]),
        "limit": draw.choice(["10 packets", "100 packets", "0.5 BDP", "1 BDP", "3 BDP"]),
    }
    link: dict[str, Any] = {
        "rate": f"{rate} Mbit/s", "delay": f"{draw.choice([1, 5, 20, 50, 200])} ms", "queue": queue,
    }  # fmt: skip
    if draw.random() < 0.4:
        link["loss"] = {"kind": "bernoulli", "p": draw.choice([0.001, 0.01, 0.05])}
    flows = []
    for controllers in (["pcc-allegro", "pcc-vivace"], ["pcc-allegro", "pcc-vivace", "cubic"])[: draw.randint(1, 2)]:
        workload = draw.choice(
            [{"kind": "bulk"}, {"kind": "bulk"}, {"kind": "transfer", "bytes": draw.choice(["100 KB", "5 MB"])}]
        )
        flows.append(
            {
                "count": draw.choice([1, 1, 2, 8]),
                "congestion_control": draw.choice(controllers),
                "workload": workload,
            }
        )
    record: dict[str, Any] = {}
    for key, values, share in (
        ("controller", ["all", "flow"], 0.5), ("trace", ["all", "flow"], 0.3), ("drops", [True], 0.3), ("performance", [True], 0.3),
        ("goodput_interval", ["10 ms", "100 ms"], 0.4), ("sample_interval", ["1 ms", "100 ms"], 0.4),
        ("queue_interval", ["1 ms", "100 ms"], 0.4),
    ):  # fmt: skip
        if draw.random() < share:
            record[key] = draw.choice(values)
    return {"duration": f"{seconds} s", "network": {"bottleneck": link}, "flows": flows, "record": record}


def _status(key: str) -> int:
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def _peak(text: str) -> int:
    """Return the peak memory of a child that runs the scenario, in bytes above its use before the run starts."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")  # peak memory is measured from here on
        before = _status("VmRSS")
        _engine.run(text, 1)
        os.write(writer, str(_status("VmHWM") - before).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as said:
        told = said.read()
    os.waitpid(child, 0)
    return int(told)


@pytest.mark.promise("P49")
@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_run_takes_more_than_was_estimated() -> None:
    """The number of runs is a hundred, or MEMORY if set in the environment."""
    count = os.environ.get("MEMORY", "100")
    told = json.loads(subprocess.run([sys.executable, __file__, count], check=True, capture_output=True).stdout)
    below = {number: (estimate, peak) for number, (estimate, peak) in enumerate(told) if estimate < peak}
    assert not below
    assert statistics.median(estimate / peak for estimate, peak in told) < 2.5


def _main() -> None:
    told = []
    _engine.run(drawn(0).to_engine_json(), 1)  # code loaded once by every process
    for number in range(int(sys.argv[1])):
        text = drawn(number).to_engine_json()
        told.append((_engine.estimate_memory(text), _peak(text)))
    print(json.dumps(told))


if __name__ == "__main__":
    _main()
