"""Compares the kernel's stopwatches with ours, and diagnoses captures of the kernel's own connections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ackclock
from ackclock import linux
from ackclock.diagnose import diagnose

WATCHES = ["busy_s", "rwnd_limited_s", "sndbuf_limited_s"]
MANY = {"kind": "transfer", "bytes": "2 MB"}
PAUSES = {"kind": "throttled", "rate": "5 Mbit/s", "chunk": "64 kB", "initial": "200 kB"}
SMALL = {"receive_buffer": "64 KiB"}


def scenario(*lost: int, **flow: Any) -> ackclock.Scenario:
    """Return a scenario with one flow over a 20 Mbit/s, 40 ms path; the segments with these numbers are lost."""
    link: dict[str, Any] = {
        "rate": "20 Mbit/s",
        "delay": "20 ms",
        "queue": {"kind": "drop-tail", "limit": "100 packets"},
    }
    if lost:
        link["loss"] = {"kind": "scripted", "drops": [{"first": n, "transmission": 0} for n in lost]}
    return ackclock.Scenario.from_dict(
        {
            "duration": "2 s",
            "network": {"topology": "chain", "framing": "14 bytes", "bottleneck": link, "reverse": {"bottleneck": {"delay": "20 ms"}}},
            "record": {"sample_interval": "10 ms", "limits_interval": "10 ms"},
            "flows": [{"profile": "linux-6", "congestion_control": "reno", **flow}],
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    ("one", "limited", "starved"),
    [
        (scenario(workload=MANY, stack=SMALL), 1.0, 0.0),
        (scenario(60, 200, 201, 500, workload=MANY, stack=SMALL), 0.05, 0.0),
        (scenario(workload=PAUSES), 0.0, 0.0),
        (scenario(workload=PAUSES, stack={"receive_buffer": "40 KiB"}), 1.0, 0.0),
        (scenario(60, 200, 201, 500, 900, workload=MANY), 0.001, 0.0),
        (scenario(), 0.0, 0.0),
        (scenario(workload=MANY, stack={"send_buffer": "40 kB", "receive_buffer": "24 KiB"}), 0.5, 1.3),
        (scenario(workload=MANY, stack={"send_buffer": "80 kB", "receive_buffer": "48 KiB"}), 0.2, 1.6),
        (scenario(workload=MANY, stack={"send_buffer": "100 kB", "receive_buffer": "48 KiB"}), 0.9, 0.8),
        (scenario(workload=MANY, stack={"send_buffer": "60 kB"}), 0.0, 0.0),
    ],
    ids=[
        "window",
        "window-losses",
        "pauses",
        "pauses-window",
        "losses",
        "bulk",
        "send-40",
        "send-80",
        "send-100",
        "send-60",
    ],
)
def test_the_stop_watches_are_the_kernels_to_the_tick(
    kernel: linux.Kernel, one: ackclock.Scenario, limited: float, starved: float
) -> None:
    """Compared at each hundredth of a second, at which TCP_INFO is sampled."""
    ours, theirs = ackclock.run(one), linux.run(one, network="relay")
    both = ours.samples.join(theirs.samples, on="t_s", suffix="_kernel").filter(pl.col("busy_s").is_not_nan())
    assert both.height > 140
    for name in WATCHES:
        apart = (both[name] - both[f"{name}_kernel"]).abs().max()
        assert apart < 1e-6, name  # type: ignore[operator]
    assert theirs.flows["rwnd_limited_s"][0] >= limited
    assert theirs.flows["sndbuf_limited_s"][0] >= starved
    assert ours.flows.select(WATCHES).row(0) == pytest.approx(theirs.flows.select(WATCHES).row(0), abs=1e-6)


@pytest.mark.parametrize("lost", [(), (60, 200, 201, 500)])
def test_a_capture_of_the_kernel_tells_what_was_lost_and_what_held_it(
    kernel: linux.Kernel, tmp_path: Path, lost: tuple[int, ...]
) -> None:
    """The losses are those of the script; the receive window limits the flow for as long as measured by the kernel's stopwatch."""
    path = tmp_path / "kernel.pcapng"
    run = linux.run(scenario(*lost, workload=MANY, stack=SMALL), network="relay", pcap=path)
    found = diagnose(path)
    assert found.at == "sender"
    assert found.sent is not None
    assert found.replay is not None
    assert found.path is not None
    row = run.flows.row(0, named=True)
    assert found.sent.lost == tuple((n, 0) for n in lost)
    assert len(lost) == row["retransmissions"]
    life = row["stop_s"] - row["start_s"]
    if not lost:  # the kernel's stopwatch continues during recovery, our causes do not
        assert found.replay.seconds["rwnd"] == pytest.approx(row["rwnd_limited_s"], abs=0.01 * life)
    assert found.path.base_rtt_s == pytest.approx(40e-3 + 1514 * 8 / 20e6, rel=0.02)
