"""Tests for quinn's QUIC as flows: repeatable on every platform, combined with other transports, refused where unsupported."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from ackclock import Scenario, formats, run, run_batch
from ackclock.errors import ScenarioError
from ackclock.evaluate.plan import Plan
from ackclock.evaluate.situation import Arm

NAMES = ["quinn:cubic", "quinn:newreno", "quinn:bbr", "quinn:ours-reno", "quinn:ours-cubic", "quinn:ours-cubic-rfc9438"]


def values(*flows, seconds=5):
    link = {"rate": "20 Mbit/s", "delay": "20 ms", "queue": {"kind": "drop-tail", "limit": "67 packets"}}
    network = {"bottleneck": link, "reverse": {"bottleneck": {"delay": "20 ms"}}}
    return {"duration": f"{seconds} s", "network": network, "flows": [*flows]}


def mixed():
    groups = [{"congestion_control": name} for name in ("cubic", "pcc-vivace", *NAMES)]
    return Scenario.from_dict(values(*groups))


def test_two_processes_and_any_number_of_threads_give_the_same_bits():
    digests = [run_batch(mixed(), [1, 2, 3], jobs=jobs).digests for jobs in (1, 2)]
    assert digests[0] == digests[1]
    code = (
        "from ackclock import Scenario, run; import sys; "
        f"print(run(Scenario.from_dict({mixed().to_dict()!r}), seed=1).digest)"
    )
    others = {subprocess.check_output([sys.executable, "-c", code], text=True).strip() for _ in range(2)}
    assert others == {str(run(mixed(), seed=1).digest)}


def test_a_rule_of_ours_ends_slow_start_inside_the_stack_as_it_does_in_tcp():
    def lost(name, **options):
        given = {"congestion_control": name, **({"congestion_control_options": options} if options else {})}
        return run(Scenario.from_dict(values(given)), seed=1).flows.to_dicts()[0]["retransmissions"]

    # overshoot of a slow start that continues until a loss, and the fraction remaining with HyStart
    assert lost("quinn:cubic") > 150
    assert lost("quinn:ours-cubic", slow_start="classic") > 150
    assert lost("quinn:ours-cubic") < 100
    assert lost("quinn:ours-cubic", mtu_discovery=False) < 40  # segments have one size from the start, as in TCP
    assert lost("cubic") < 40


@pytest.mark.parametrize("name", NAMES)
def test_every_controller_fills_a_link(name):
    done = run(
        Scenario.from_dict({**values({"congestion_control": name}), "record": {"sample_interval": "100 ms"}}), seed=1
    )
    flow = done.flows.to_dicts()[0]
    assert 0.8 * 20e6 < flow["goodput_bps"] < 20e6 * 1452 / 1480
    assert not flow["failed"]
    assert flow["failure"] == ""
    assert flow["min_rtt_s"] == pytest.approx(0.0406, abs=2e-3)
    assert flow["sent_packets"] > flow["lost_packets"] > 0
    samples = done.samples
    assert samples["cwnd"].max() > 50
    assert 10 < samples["in_flight"].max() < 300
    assert 0.04 < samples["srtt_s"].mean() < 0.12


def test_what_a_flow_of_quinn_cannot_have_is_refused_with_what_is_allowed():
    for more, said in {
        "recovery": "no recovery: QUIC is a transport of its own",
        "profile": "no profile: QUIC",
    }.items():
        group = {"congestion_control": "quinn:bbr", more: {"recovery": "prr-ssrb", "profile": "rfc"}[more]}
        with pytest.raises(ScenarioError, match=said):
            Scenario.from_dict(values(group))
    with pytest.raises(ScenarioError, match='a congestion_control of quinn: "quinn:cubic"'):
        Scenario.from_dict(values({"transport": "quinn"}))
    with pytest.raises(ScenarioError, match="bulk, transfer, fetch, transactions"):
        Scenario.from_dict(
            values(
                {
                    "congestion_control": "quinn:cubic",
                    "workload": {"kind": "throttled", "rate": "1 Mbit/s", "chunk": "10 kB"},
                }
            )
        )
    with pytest.raises(ScenarioError, match=r"congestion_control_options\.mtu"):
        Scenario.from_dict(values({"congestion_control": "quinn:cubic", "congestion_control_options": {"mtu": 80}}))


def test_a_trace_has_a_row_for_each_ack_and_each_datagram_and_changes_nothing():
    plain = Scenario.from_dict(values({"congestion_control": "quinn:newreno"}))
    traced = run(plain.set("record.trace", "all"), seed=1)
    assert traced.digest == run(plain, seed=1).digest
    rows, flow = traced.acks, traced.flows.to_dicts()[0]
    acks, sent = (rows.filter(rows["event"] == event) for event in ("ack", "send"))
    assert rows["newly_lost"].sum() == flow["lost_packets"] > 0
    assert acks["ack_no"].max() == flow["acks_received"]
    assert 0.98 * flow["sent_packets"] < sent.height <= flow["sent_packets"]
    assert rows["t_ns"].is_sorted()
    # NewReno halves the window down to ssthresh
    falls = acks.filter(acks["cwnd"] < acks["cwnd_before"])
    assert falls.height == flow["recoveries"] > 0
    assert (falls["cwnd"] == falls["ssthresh"]).all()


def test_a_trace_has_the_losses_that_the_timer_declares(tmp_path):
    """Regression: losses that were declared between two ACKs were in the table of flows only."""
    network = {"bottleneck": {"rate": "10 Mbit/s", "delay": "20 ms", "loss": {"kind": "bernoulli", "p": "3 %"}}}
    network["reverse"] = {"bottleneck": network["bottleneck"]}
    flow = {"congestion_control": "quinn:cubic", "workload": {"kind": "transfer", "bytes": "2 MB"}}
    done = run(
        Scenario.from_dict({"duration": "20 s", "network": network, "flows": [flow], "record": {"trace": "all"}})
    )
    lost = done.flows["lost_packets"][0]
    acks = done.acks.filter(done.acks["event"] == "ack")
    assert 0 < acks["newly_lost"].sum() < lost
    assert done.acks["newly_lost"].sum() == lost
    file = formats.write(done, "qlog", tmp_path / "x.qlog")
    (trace,) = json.loads(file.read_text())["traces"]
    assert [event["name"] for event in trace["events"]].count("recovery:packet_lost") == lost


def test_situations_that_quic_cannot_have_are_not_tested_and_say_why():
    arm = Arm(role="candidate", name="quinn:cubic", controller="quinn:cubic")
    rows = {row.id: row for row in Plan(candidate=arm, rival=None, scale="quick", only=("1", "13", "x2")).rows}
    assert rows["1"].at("quick", gigabit=False)
    for row, needs in {"13": "flows.0.stack", "x2": "flows.0.workload.kind"}.items():
        assert not rows[row].at("quick", gigabit=False)
        assert any(needs in why for why in rows[row].needs)
