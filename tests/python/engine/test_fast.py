"""Tests of FAST against its closed-form law: alpha packets queued per flow, and no loss if the queue has room for them."""

from __future__ import annotations

import pytest

import ackclock
from ackclock import Run, Scenario

ALPHA = 200
PATHS = {"155 Mbit/s, 64 ms": (155e6, 0.064), "1 Gbit/s, 4 ms": (1e9, 0.004)}


def run(path: str, queue: int, *, duration_s: int, starts_s: tuple[float, ...] = (0.0,)) -> Run:
    rate, rtt = PATHS[path]
    delay = f"{1e6 * rtt / 2:.0f} us"
    link = {"rate": f"{rate:.0f} bit/s", "delay": delay, "queue": {"kind": "drop-tail", "limit": f"{queue} packets"}}
    flow = {"congestion_control": "fast", "profile": "linux-2.6", "stack": {"receive_buffer": "8 MiB"}}
    return ackclock.run(
        Scenario.from_dict(
            {
                "duration": f"{duration_s} s",
                "network": {
                    "bottleneck": link,
                    "reverse": {"bottleneck": {"rate": f"{rate:.0f} bit/s", "delay": delay}},
                },
                "flows": [{**flow, "start": f"{start} s"} for start in starts_s],
                "record": {"sample_interval": "100 ms"},
            }
        ),
        seed=1,
    )


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("queue", [400, 1000])
def test_a_flow_alone_keeps_alpha_packets_queued_and_loses_none(path: str, queue: int) -> None:
    rate, rtt = PATHS[path]
    done = run(path, queue, duration_s=20)
    assert done.flows["retransmissions"][0] == 0
    assert done.flows["goodput_bps"][0] > 0.93 * rate * 1448 / 1500
    settled = done.samples.filter(done.samples["t_s"] > 10)
    queued = (settled["srtt_s"].mean() - rtt) * rate / 12_000  # type: ignore[operator]
    assert queued == pytest.approx(ALPHA, abs=4)
    assert settled["cwnd"].mean() == pytest.approx(rate * rtt / 12_000 + ALPHA, rel=0.01)


def test_behind_333_packets_of_a_short_path_it_holds_533_without_loss() -> None:
    """Regression: doubling based on the mean RTT overflowed this queue every ten round trips, causing 45,758 retransmissions in 4 s."""
    done = run("1 Gbit/s, 4 ms", 333, duration_s=20)
    assert done.flows["retransmissions"][0] <= 200
    assert done.flows["goodput_bps"][0] >= 0.95 * 1e9 * 1448 / 1500


@pytest.mark.parametrize("path", PATHS)
def test_a_queue_below_alpha_overflows(path: str) -> None:
    done = run(path, ALPHA // 2, duration_s=20)
    assert done.flows["retransmissions"][0] > 0


def test_a_late_flow_takes_the_golden_ratio() -> None:
    """The late flow mistakes alpha queued packets for propagation delay: with x the ratio of the rates, x (x - 1) = 1."""
    done = run("155 Mbit/s, 64 ms", 1000, duration_s=60, starts_s=(0.0, 20.0))
    assert done.flows["retransmissions"].sum() == 0
    late = done.samples.filter(done.samples["t_s"] > 45)
    early, later = (late.filter(late["flow"] == flow)["cwnd"].mean() for flow in (0, 1))
    assert later / early == pytest.approx(1.618, abs=0.02)  # type: ignore[operator]
