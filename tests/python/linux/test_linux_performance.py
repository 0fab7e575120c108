"""Compares table `performance` of the real kernel with the simulator's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ackclock
from ackclock import linux
from ackclock.linux import _guest, _translate
from ackclock.linux._facts import Has
from ackclock.linux._run import a_cpu

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("network", ["qdisc", "relay"])
def test_what_each_flow_got_is_told_as_by_the_simulator(kernel: linux.Kernel, network: Any) -> None:
    scenario = ackclock.load(ROOT / "scenarios" / "first.toml").set_all(
        {"duration": "12 s", "record.warm_up": "2 s", "record.performance": True, "record.trace": "none"}
    )
    ours, theirs = ackclock.run(scenario).performance, linux.run(scenario, network=network).performance
    assert theirs.select("of", "number", "name", "flows").equals(ours.select("of", "number", "name", "flows"))
    for column in ("goodput_bps", "bytes_acked", "sent_packets", "share"):
        assert theirs[column].to_list() == pytest.approx(ours[column].to_list(), rel=0.005)
    assert theirs["retransmissions"].to_list() == ours["retransmissions"].to_list()
    for column in (
        "mean_rtt_s",
        "p50_rtt_s",
        "p95_rtt_s",
        "p99_rtt_s",
    ):  # smoothed values exist at any time
        assert theirs[column].to_list() == pytest.approx(ours[column].to_list(), rel=0.02)
    seen = ("dropped_packets", "loss_share", "mean_delay_s", "p50_delay_s", "p95_delay_s", "p99_delay_s")
    for column in seen:
        if network == "relay":
            assert theirs[column].to_list() == pytest.approx(ours[column].to_list(), rel=0.01)
        else:
            assert theirs[column].null_count() == theirs.height


def test_shares_are_those_after_the_warm_up(kernel: linux.Kernel) -> None:
    flows = [
        {"congestion_control": "reno", "name": "first"},
        {"congestion_control": "reno", "start": "4 s", "name": "late"},
    ]
    link = {"rate": "8 Mbit/s", "delay": "10 ms", "queue": {"kind": "drop-tail", "limit": "30 packets"}}
    record = {"performance": True, "warm_up": "5 s"}
    scenario = ackclock.Scenario.from_dict(
        {"duration": "15 s", "network": {"bottleneck": link}, "flows": flows, "record": record}
    )
    run = linux.run(scenario, network="relay")
    table = run.performance
    both = table.filter(pl.col("of") == "flow")
    assert both["share"].sum() == pytest.approx(1)
    assert table.filter(pl.col("of") == "run")["bytes_acked"][0] == both["bytes_acked"].sum()
    assert both["bytes_acked"][0] < run.flows["bytes_acked"][0]


def test_links_that_hear_late_decide_as_links_that_hear_at_once(kernel: linux.Kernel) -> None:
    # the kernel may run ahead by the path's delay, or wait for every event
    scenario = ackclock.load(ROOT / "scenarios" / "dumbbell-10.toml").set("duration", "3 s")
    scenario = scenario.set("network.bottleneck.loss", {"kind": "bernoulli", "p": "0.5 %"})
    text = json.loads(scenario.set("record.drops", True).set("record.performance", True).to_engine_json())
    job = _translate.job(text, 3, "relay", Has.of(kernel.about))
    late, at_once = (
        _guest.play(
            {**job, "network": {"kind": "relay", "ahead": ahead}}, 3, kernel=kernel, cpu=a_cpu(), wall_limit_s=120
        )
        for ahead in (True, False)
    )
    assert len(late.tables["drops"]["t_s"][1]) > 50 * 8
    assert late.tables == at_once.tables
