"""Tests that a scenario's keys have the same meaning in the simulator and in the kernel, if built."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

import ackclock
from ackclock import linux
from ackclock.diff import Comparison, compare
from ackclock.errors import ScenarioError
from ackclock.linux import _translate
from ackclock.linux._facts import Has


def scenario(duration: str = "2 s", back: dict[str, Any] | None = None, **more: Any) -> ackclock.Scenario:
    """Return a scenario with one flow over a 20 Mbit/s, 40 ms path; `loss` belongs to the link, all other keys to
    the flow.
    """
    link = {"loss": more.pop("loss")} if "loss" in more else {}
    queue = {"kind": "drop-tail", "limit": "100 packets"}
    return ackclock.Scenario.from_dict(
        {
            "duration": duration,
            "network": {
                "topology": "chain",
                "framing": "14 bytes",
                "bottleneck": {"rate": "20 Mbit/s", "delay": "20 ms", "queue": queue, **link},
                "reverse": {"bottleneck": {"delay": "20 ms", **(back or {})}},
            },
            "flows": [{"profile": "linux-6", **more}],
        }
    )


def windows(result: Comparison) -> tuple[list[int], list[int]]:
    """Return the peer's receive window after each ACK, in the simulator and in the kernel."""
    runs = (result.simulator, result.kernel)
    ours, theirs = (run.acks.filter(pl.col("event") == "ack")["rwnd"].to_list() for run in runs)
    return ours, theirs


def test_an_application_that_pauses_keeps_the_same_time(kernel: linux.Kernel) -> None:
    work = {"kind": "throttled", "rate": "5 Mbit/s", "chunk": "64 kB", "initial": "200 kB"}
    result = compare(scenario(workload=work), network="relay")
    assert result.divergence is None, str(result.divergence)
    ours, theirs = (
        run.acks.filter(pl.col("event") == "send")["t_s"].to_list() for run in (result.simulator, result.kernel)
    )
    # the first chunk starts 102.4 ms after the flow starts, however long the handshake takes
    assert ours[138 + 1 : 142] == pytest.approx(theirs[138 + 1 : 142], abs=1e-7)
    assert 200_000 < result.kernel.flows["bytes_acked"][0] < 1_500_000


def test_backed_off_timers_fire_at_the_same_instant(kernel: linux.Kernel) -> None:
    # eight transmissions of one segment are lost; the last timers are longer than 512 ms
    drops = [{"first": 90, "transmission": n} for n in range(8)]
    result = compare(scenario("9 s", loss={"kind": "scripted", "drops": drops}, congestion_control="reno"))
    times = [
        run.acks.filter((pl.col("seg_no") == 90) & (pl.col("rexmit") > 0) & (pl.col("len") > 0))["t_s"].to_list()
        for run in (result.simulator, result.kernel)
    ]
    assert len(times[0]) == 8
    assert times[0] == pytest.approx(times[1], abs=1e-7)
    assert max(b - a for a, b in zip(times[0], times[0][1:], strict=False)) > 0.512


def test_the_run_begins_on_a_tick_of_every_level_of_the_wheel() -> None:
    ticks = _translate.START_NS // 1_000_000 - 300_000
    assert _translate.START_NS % 1_000_000 == 0
    assert ticks % 8**5 == 0


def test_acks_are_thinned_on_the_way(kernel: linux.Kernel) -> None:
    back = {"rate": "100 kbit/s", "queue": {"kind": "drop-tail", "limit": "50 packets"}}
    result = compare(scenario(back={**back, "thin_acks": 8}), network="relay")
    assert result.divergence is None, str(result.divergence)
    thinned = result.kernel.acks.filter(pl.col("event") == "ack").height
    all_of_them = linux.run(scenario(back=back).set("record.trace", "flow"), network="relay")
    assert all_of_them.flows["bytes_acked"][0] < 0.5 * result.kernel.flows["bytes_acked"][0]
    assert thinned > 50
    dropped = result.kernel.links.filter(pl.col("name").str.contains("backward"))["dropped_queue"][0]
    assert dropped == result.simulator.links.filter(pl.col("name").str.contains("backward"))["dropped_queue"][0] > 100


@pytest.mark.parametrize("size", [9_000, 40_000, 65_536, 200_000])
def test_a_bounded_receiver_is_bounded(kernel: linux.Kernel, size: int) -> None:
    result = compare(scenario(stack={"receive_buffer": f"{size} bytes"}), network="relay")
    assert result.divergence is None, str(result.divergence)
    ours, theirs = windows(result)
    assert ours == theirs
    assert 0.75 * size < max(theirs) <= size


@pytest.mark.parametrize("stack", [{"smss": "536 bytes"}, {"smss": "4000 bytes"}, {"timestamps": False}])
def test_the_first_window_is_whole_segments(kernel: linux.Kernel, stack: dict[str, Any]) -> None:
    ours, theirs = windows(compare(scenario(stack=stack), network="relay"))
    assert ours[:10] == theirs[:10]


def test_the_peers_window_is_that_after_the_ack(kernel: linux.Kernel) -> None:
    ours, theirs = windows(compare(scenario(), network="relay"))
    assert ours == theirs
    assert len(set(ours)) > 10


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"flows.0.stack.detection": "dupthresh"}, r'stack\.detection: found "dupthresh"; allowed: "rack", with'),
        (
            {"network.bottleneck.ecn_fault": {"what": "bleach"}},
            r'bottleneck\.ecn_fault\.what: found "bleach"; allowed: .*--network relay',
        ),
    ],
)
def test_what_the_kernel_would_not_do_is_refused(change: dict[str, Any], found: str) -> None:
    told = scenario()
    for key, value in change.items():
        told = told.set(key, value)
    with pytest.raises(ScenarioError, match=found):
        _translate.job(json.loads(told.to_engine_json()), 1, "auto", Has(release="7.3.4", controllers=("cubic",)))


TOGETHER = (
    "start_s", "established_s", "stop_s", "completion_s", "bytes_acked", "goodput_bps", "sent_packets", "retransmissions", "rtos", "failed",
)  # fmt: skip
"""Columns of `flows` with the same meaning for the same packets."""


@pytest.mark.parametrize(
    "flow",
    [
        {"workload": {"kind": "transfer", "bytes": "4 kB"}},
        {"workload": {"kind": "transfer", "bytes": "2 MB"}, "start": "100 ms"},
        {"workload": {"kind": "bulk"}, "stop": "1200 ms"},
        {"workload": {"kind": "bulk"}, "stop": "2 s"},
        {"workload": {"kind": "transfer", "bytes": "50 MB"}, "stop": "700 ms"},
        {"workload": {"kind": "throttled", "rate": "3 Mbit/s", "chunk": "30 kB", "bytes": "300 kB"}},
        {"workload": {"kind": "throttled", "rate": "3 Mbit/s", "chunk": "30 kB"}, "stop": "900 ms"},
        {"workload": {"kind": "throttled", "rate": "30 Mbit/s", "chunk": "300 kB"}, "stop": "900 ms"},
        {"workload": {"kind": "fetch", "bytes": "58 kB", "count": 3, "pause": "50 ms"}},
        {"workload": {"kind": "fetch", "bytes": "58 kB", "count": 300}, "stop": "1 s"},
        {
            "workload": {
                "kind": "transactions",
                "bytes": "30 kB",
                "arrivals": {"kind": "periodic", "interval": "200 ms"},
                "count": 3,
                "requests": 2,
                "max_open": 100,
            }
        },
        {
            "workload": {
                "kind": "transactions",
                "bytes": "30 kB",
                "arrivals": {"kind": "periodic", "interval": "20 ms"},
                "max_open": 100,
            },
            "stop": "500 ms",
        },
    ],
    ids=lambda flow: f"{flow['workload']['kind']}-{flow.get('stop', 'end').replace(' ', '')}",
)
def test_equal_packets_give_equal_tables(kernel: linux.Kernel, flow: dict[str, Any]) -> None:
    told = scenario("3 s", back={"rate": "1 Mbit/s"}, congestion_control="cubic", **flow)
    result = compare(told, network="relay")
    assert result.identical, result.flows[0].text
    for name in TOGETHER:
        ours, theirs = (run.flows[name][0] for run in (result.simulator, result.kernel))
        assert ours == (pytest.approx(theirs, abs=2e-6, rel=1e-5) if isinstance(theirs, float) else theirs), name


def test_a_stop_of_one_flow_is_the_same_for_the_other(kernel: linux.Kernel) -> None:
    told = scenario("3 s", congestion_control="cubic", workload={"kind": "bulk"}).to_dict()
    told["flows"] = [{**told["flows"][0], "stop": "1500 ms"}, {**told["flows"][0], "start": "200 ms"}]
    result = compare(ackclock.Scenario.from_dict(told), network="relay")
    assert result.identical, [flow.text for flow in result.flows]
    # data written before the stop is still sent: the window in flight, and as much again in the send buffer
    of_first = result.simulator.flows.row(0, named=True)
    written = of_first["bytes_acked"] - of_first["goodput_bps"] * 1.5 / 8
    assert written > 100_000
    assert of_first["completion_s"] > 1.5
