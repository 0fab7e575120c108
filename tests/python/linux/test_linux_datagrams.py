"""Tests for datagram flows on the linux backend: PCC and plain traffic through real sockets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ackclock
from ackclock import linux
from ackclock.errors import ScenarioError
from ackclock.linux import _translate
from ackclock.linux._facts import Has
from ackclock_studies.pcc import testbed


def job(scenario: ackclock.Scenario, network: Any = "auto") -> dict[str, Any]:
    return _translate.job(
        json.loads(scenario.to_engine_json()), 1, network, Has(release="7.3.4", controllers=("cubic",))
    )


def one(flow: dict[str, Any], **network: Any) -> ackclock.Scenario:
    return ackclock.Scenario.from_dict(
        {
            "duration": "2 s",
            "network": {"bottleneck": {"rate": "10 Mbit/s", "delay": "10 ms", **network}},
            "flows": [flow],
        }
    )


def pcc(**more: Any) -> dict[str, Any]:
    return {"congestion_control": "pcc-allegro", **more}


ON_OFF = {
    "kind": "on-off", "rate": "4 Mbit/s", "payload": "500 bytes", "on": "50 ms", "off": "30 ms",
    "periods": "exponential",
}  # fmt: skip


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        (pcc(workload={"kind": "fetch", "bytes": "10 kB"}), r"workload"),
        (
            pcc(congestion_control_options={"feedback": 200}),
            r"flows\.0\.congestion_control_options\.feedback: found 200; allowed: at most 128, with the linux backend",
        ),
        (
            {"workload": {"kind": "constant-rate", "rate": "1 Mbit/s", "payload": "8 bytes"}},
            r'flows\.0\.workload\.payload: found "8 bytes"; allowed: at least 12 bytes, with',
        ),
        (
            {"congestion_control": "quinn:cubic", "workload": {"kind": "bulk"}},
            r'flows\.0\.congestion_control: found "quinn:cubic"; allowed: a controller of TCP or of PCC, with',
        ),
    ],
)
def test_what_datagrams_cannot_be_is_refused_by_name(flow: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        job(one(flow))


def test_noisy_hosts_are_refused_by_name() -> None:
    noisy = testbed.shallow(testbed.TESTBED, testbed.PCC, 20, 1)
    with pytest.raises(ScenarioError, match=r"hosts\.0\.tick: found .*; allowed: no tick, with the linux backend"):
        job(noisy)


def test_monitor_intervals_can_be_recorded_where_all_that_is_traced_is_pcc() -> None:
    record = {"controller": "all"}
    both = one(pcc()).to_dict()
    both["record"] = record
    assert job(ackclock.Scenario.from_dict(both))["scenario"]["flows"][0]["congestion_control"] == "pcc-allegro"
    both["flows"] = [*both["flows"], {}]
    with pytest.raises(ScenarioError, match=r"record\.controller"):
        job(ackclock.Scenario.from_dict(both))


def test_netems_limit_is_built_as_mininet_does() -> None:
    made = job(testbed.shallow(testbed.CUT, testbed.CUBIC, 20, 1))
    shaper = made["network"]["forward"][-1]["qdisc"]
    assert shaper["leaf"]["words"] == "netem limit 20 delay 7500us"
    assert (shaper["shaper"]["rate"], shaper["shaper"]["burst"]) == (12_500_000, 15_360)


def test_packets_of_several_segments_cross_both_kinds_of_networks() -> None:
    whole = one({"stack": {"tso": True}})
    assert job(whole)["hosts"][0]["tso"] is True
    assert job(whole, "relay")["network"]["whole"] is True
    assert job(one({}), "relay")["network"]["whole"] is False
    values = whole.to_dict()
    values["network"]["bottleneck"]["queue"] = {"kind": "drop-tail", "limit": "20 packets"}
    leaf = job(ackclock.Scenario.from_dict(values))["network"]["forward"][0]["qdisc"]["leaf"]
    assert leaf["words"] == "bfifo limit 30280"


def test_plain_traffic_meets_the_simulators_losses_and_times(kernel: linux.Kernel, tmp_path: Path) -> None:
    """The sequence of periods and the losses are identical; delays differ by the time needed to read a clock."""
    scenario = one({"workload": ON_OFF}, loss={"kind": "bernoulli", "p": "5 %"})
    capture = tmp_path / "sent.pcapng"
    real, simulated = linux.run(scenario, seed=5, network="relay", pcap=capture), ackclock.run(scenario, seed=5)
    counts = ["sent", "received", "lost", "reordered", "bytes_received"]
    assert real.datagrams.select(counts).rows() == simulated.datagrams.select(counts).rows()
    assert simulated.datagrams["lost"][0] > 20
    for column in ("mean_delay_s", "max_delay_s", "jitter_s"):
        assert real.datagrams[column][0] == pytest.approx(simulated.datagrams[column][0], abs=5e-6)
    assert real.flows["goodput_bps"][0] == pytest.approx(simulated.flows["goodput_bps"][0], rel=0.01)
    assert capture.stat().st_size > 100 * real.datagrams["sent"][0]


@pytest.mark.parametrize("network", ["qdisc", "relay"])
def test_pcc_does_in_the_kernel_what_it_does_in_the_simulator(kernel: linux.Kernel, network: Any) -> None:
    values = one(pcc(), queue={"kind": "drop-tail", "limit": "20 packets"}).to_dict()
    values["record"] = {"controller": "flow", "goodput_interval": "500 ms"}
    scenario = ackclock.Scenario.from_dict(values)
    real, simulated = linux.run(scenario, seed=2, network=network), ackclock.run(scenario, seed=2)
    first = [run.intervals.head(8).select("interval", "state", pl.col("rate_bps")) for run in (real, simulated)]
    assert first[0]["state"].to_list() == first[1]["state"].to_list()
    assert first[0]["rate_bps"].to_list() == pytest.approx(first[1]["rate_bps"].to_list(), rel=1e-3)
    for column in ("goodput_bps", "send_rate_bps", "mean_rtt_s"):
        assert real.flows[column][0] == pytest.approx(simulated.flows[column][0], rel=0.03)
    assert real.goodput.height == simulated.goodput.height
    assert linux.run(scenario, seed=2, network=network).digest == real.digest


def test_a_transfer_over_pcc_comes_to_its_end(kernel: linux.Kernel) -> None:
    scenario = one(pcc(workload={"kind": "transfer", "bytes": "500 kB"}), loss={"kind": "bernoulli", "p": "1 %"})
    real = linux.run(scenario, seed=3).flows
    simulated = ackclock.run(scenario, seed=3).flows
    assert real["bytes_acked"][0] == simulated["bytes_acked"][0] == 500_000
    assert real["completion_s"][0] == pytest.approx(simulated["completion_s"][0], rel=0.2)


def test_both_transports_share_a_link_in_the_kernel(kernel: linux.Kernel) -> None:
    values = one(pcc(), queue={"kind": "drop-tail", "limit": "40 packets"}).to_dict()
    values["flows"] = [pcc(), {"start": "200 ms"}, {"workload": {"kind": "voice"}}]
    flows = linux.run(ackclock.Scenario.from_dict(values), seed=1)
    assert flows.flows["bytes_acked"].min() > 10_000
    assert flows.links["bytes_delivered"].max() * 8 / 2 > 8e6
    assert flows.datagrams["sent"].to_list() == [100]


def test_netems_limit_caps_pcc_and_spares_tcp_with_segmentation_offload(kernel: linux.Kernel) -> None:
    """Mininet's link in the real kernel (H3 of the study pcc)."""
    from ackclock_studies.pcc import kernel as part

    def goodput(arm: str, controller: str, packets: int, seconds: int) -> float:
        scenario = part.shallow(arm, controller, packets).set("duration", f"{seconds} s")
        return float(linux.run(scenario, seed=1, network="qdisc").flows["goodput_bps"][0]) / 1e6

    assert 0.7 < goodput(part.MININET, testbed.PCC, 20, 3) / part.ceiling(20) < 1.05
    whole, cut = (goodput(arm, testbed.CUBIC, 50, 5) for arm in (part.MININET, part.MININET_CUT))
    assert whole > 90
    assert cut < whole / 2
