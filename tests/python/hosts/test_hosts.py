from __future__ import annotations

import pytest

from ackclock import Scenario, run
from ackclock.errors import InputError, ScenarioError
from ackclock.scenario import Host

CONSTANT = {"kind": "constant-rate", "rate": "9.9 Mbit/s", "payload": "1472 bytes"}


def hosted(minimal, host, /, **flow):
    minimal |= {"duration": "10 s", "hosts": [{"name": "a"} | host]}
    minimal["network"]["access"] = {"rate": "100 Mbit/s"}
    minimal["flows"] = [{"host": "a", "workload": CONSTANT} | flow]
    return Scenario.from_dict(minimal)


@pytest.mark.parametrize(
    ("preset", "share"),
    [("clean", 0), ("light", 5 / 105), ("xen-shared", 0.5), ("micro", 0.9), ("single-core", 0), ("modern", 0)],
)
def test_presets_stall_as_long_as_they_say(minimal, preset, share):
    result = run(hosted(minimal, {"preset": preset, "catch_up": "none"}).set("duration", "100 s"))
    host = result.hosts.row(0, named=True)
    assert host["stalled_share"] == pytest.approx(share, abs=0.02)
    flow = result.flows.row(0, named=True)
    assert flow["sent_packets"] / 82_500 == pytest.approx(1 - host["stalled_share"], abs=0.01)
    presets = Host.keys["preset"]["takes"]["names"]
    assert set(presets) == {"clean", "light", "xen-shared", "micro", "single-core", "modern"}


def test_every_run_reports_its_noise(minimal):
    result = run(Scenario.from_dict(minimal))
    assert result.hosts.height == 0
    flow = result.flows.row(0, named=True)
    assert flow["departure_cv"] > 0.1
    assert flow["largest_burst"] >= 10
    smooth = run(hosted(minimal, {})).flows.row(0, named=True)
    assert (smooth["departure_cv"], smooth["largest_burst"]) == (pytest.approx(0, abs=1e-3), 1)
    bursty = run(hosted(minimal, {"tick": "10 ms"})).flows.row(0, named=True)
    assert bursty["departure_cv"] > 2
    assert bursty["largest_burst"] in (9, 10)


def test_xen_takes_ticks_and_gives_slices(minimal):
    result = run(hosted(minimal, {"gate": {"kind": "xen", "competitors": 2}}).set("duration", "200 s"))
    host = result.hosts.row(0, named=True)
    assert host["stalled_share"] == pytest.approx(60 / 80, abs=0.02)
    assert host["longest_stall_s"] == pytest.approx(0.06)


def test_machines_are_shared_or_one_for_each_flow(minimal):
    scenario = hosted(minimal, {"preset": "light"}, count=3, peer_host="a")
    assert run(scenario).hosts["host"].to_list() == ["a"]
    apart = run(scenario.set("hosts.0.shared", False))
    assert apart.hosts["host"].to_list() == ["a.0", "a.1", "a.2"]
    assert len(set(apart.hosts["stalled_share"])) == 3


def test_interrupts_by_rate_or_by_interval(minimal):
    """At 10 Mbit/s an ACK is sent every 2.4 ms, and every 1.2 ms in recovery; an interrupt every 10 ms handles four or more."""
    tcp = {"workload": {"kind": "bulk"}}
    rate = run(hosted(minimal, {"interrupt_rate": 100}, **tcp))
    assert rate.digest == run(hosted(minimal, {"receive_interval": "10 ms"}, **tcp)).digest
    host = rate.hosts.row(0, named=True)
    assert 4 < host["interrupt_packets"] / host["interrupts"] < 5


@pytest.mark.parametrize(
    ("host", "flow", "key"),
    [
        ({}, {"host": "b"}, "flows.0.host"),
        ({"preset": "heavy"}, {}, "hosts.0.preset"),
        ({"emulates_links": True}, {}, "hosts.0.emulates_links"),
        ({"emulates_links": True, "preset": "light", "shared": False}, {}, "hosts.0.shared"),
        ({"interrupt_rate": 10, "receive_interval": "1 ms"}, {}, "hosts.0.interrupt_rate"),
        ({"burst": 3}, {}, "hosts.0.burst"),
        ({"catch_up": "some"}, {}, "hosts.0.catch_up"),
        ({"gate": {"kind": "times", "on": {"kind": "constant", "value": "1 Mbit/s"}}}, {}, "hosts.0.gate"),
        ({"gate": {"kind": "xen", "competitors": 0}}, {}, "hosts.0.gate.competitors"),
        ({"cores": 0}, {}, "hosts.0.cores"),
    ],
)
def test_hosts_that_make_no_sense(minimal, host, flow, key):
    with pytest.raises(ScenarioError, match=f"^{key}"):
        hosted(minimal, host, **flow)


def test_names_are_known_and_unique(minimal):
    minimal["hosts"] = [{"name": "a"}, {"name": "a"}]
    with pytest.raises(ScenarioError, match="twice"):
        Scenario.from_dict(minimal)
    assert Host(name="x", preset="light", catch_up="burst", burst=5).engine()["burst"] == 5


def paced_by_pcc(host, queue, *, delay="15 ms"):
    kind = "netem-limit" if host == "netem" else "drop-tail"
    if host == "netem":
        host, delay = {}, "7.5 ms"
    network = {
        "access": {"rate": "1 Gbit/s", "delay": "7.5 ms" if kind == "netem-limit" else "0 s"},
        "bottleneck": {"rate": "100 Mbit/s", "delay": delay, "queue": {"kind": kind, "limit": f"{queue} packets"}},
        "reverse": {"bottleneck": {"delay": delay}},
    }
    flows = [{"congestion_control": "pcc-allegro", "host": "a"}]
    hosts = [{"name": "a"} | host]
    return Scenario.from_dict({"duration": "30 s", "network": network, "flows": flows, "hosts": hosts})


def stalls(off, on):
    times = {"on": {"kind": "exponential", "mean": on}, "off": {"kind": "constant", "value": off}}
    return {"gate": {"kind": "times"} | times, "receives_on": True}


@pytest.mark.parametrize(
    ("host", "cells"),
    [
        ({}, {5: 0.99, 50: 0.99, 275: 0.99}),
        ("netem", {5: 0.07, 20: 0.31, 50: 0.77, 100: 0.98}),
        ({"tick": "1 ms"}, {1: 0.23, 3: 0.46, 6: 0.81, 8: 0.98}),
        (stalls("5 ms", "20 ms") | {"catch_up": "full"}, {20: 0.53, 30: 0.74, 50: 0.98, 275: 0.98}),
        (stalls("30 ms", "1 s") | {"catch_up": "full"}, {10: 0.92, 50: 0.93, 275: 0.98}),
        (stalls("10 ms", "100 ms"), {5: 0.89, 20: 0.90, 100: 0.96, 275: 0.97}),
    ],
)
def test_the_prototypes_cells_that_do_not_hang_on_the_start(host, cells):
    """PCC sheet 4.4, fraction of 100 Mbit/s; the how-to on hosts covers cells with two groups of runs."""
    for queue, share in cells.items():
        goodput = run(paced_by_pcc(host, queue)).flows["goodput_bps"].mean()
        assert goodput / (100e6 * 1456 / 1500) == pytest.approx(share, abs=0.08), queue


def test_modern_hosts_merge_and_cut_up(minimal):
    """At 1 Gbit/s four segments arrive in 50 us; at 10 Mbit/s each one causes an interrupt."""
    fast = {"duration": "3 s", "network": {"bottleneck": {"rate": "1 Gbit/s", "delay": "5 ms"}}}
    modern = Scenario.from_dict(minimal | fast | {"hosts": "modern"})
    result = run(modern)
    receiver = result.hosts.row(1, named=True)
    assert 3 < receiver["interrupt_packets"] / receiver["merged_packets"] < 5
    flow = result.flows.row(0, named=True)
    assert 3 < flow["sent_packets"] / flow["acks_received"] < 5
    assert flow["goodput_bps"] > 0.9e9
    compiled = modern.to_engine()
    assert compiled["hosts"][0]["preset"] == "modern"
    assert (compiled["flows"][0]["host"], compiled["flows"][0]["stack"]["tso"]) == ("modern", True)
    single = modern.set("flows.0.stack", {"tso": False}).set("network.bottleneck.rate", "10 Mbit/s")
    host = run(single).hosts.row(1, named=True)
    assert host["interrupt_packets"] == host["merged_packets"]
    datagrams = Scenario.from_dict(minimal | fast | {"hosts": "modern", "flows": [{"workload": CONSTANT}]})
    assert "tso" not in datagrams.to_engine()["flows"][0]["stack"]
    assert "modern" in modern.to_toml()
    assert Scenario.from_dict(modern.to_dict()) == modern


@pytest.mark.parametrize(
    ("host", "key"),
    [
        ({"gro_flush_timeout": "1 ms"}, "hosts.0.gro_flush_timeout"),
        ({"gro": True, "napi_defer_hard_irqs": 2}, "hosts.0.napi_defer_hard_irqs"),
    ],
)
def test_what_needs_merging_is_refused_without(minimal, host, key):
    with pytest.raises(InputError, match=key):
        run(hosted(minimal, host))
