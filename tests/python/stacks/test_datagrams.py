from __future__ import annotations

import pytest

from ackclock import Scenario, run
from ackclock.errors import ScenarioError


def scenario(workload, *, bottleneck=None, **flow):
    return Scenario.from_dict(
        {
            "duration": "10 s",
            "network": {"bottleneck": {"rate": "10 Mbit/s", "delay": "20 ms", **(bottleneck or {})}},
            "flows": [{"workload": workload, **flow}],
        }
    )


def test_voice_on_an_idle_path_meets_delay_and_nothing_else():
    row = run(scenario({"kind": "voice"})).datagrams.to_dicts()[0]
    # the last packet to arrive in time is sent at 9.96 s; 200 bytes at 10 Mbit/s take 0.16 ms
    assert (row["sent"], row["received"], row["lost"], row["reordered"]) == (500, 499, 0, 0)
    for key in ("min_delay_s", "mean_delay_s", "max_delay_s", "p50_delay_s", "p99_delay_s"):
        assert row[key] == pytest.approx(0.02016, abs=1e-9)
    assert row["jitter_s"] == 0
    assert row["mean_delay_variation_s"] == 0


def test_twice_the_rate_of_the_link_loses_half():
    queue = {"queue": {"kind": "drop-tail", "limit": "50 packets"}}
    done = run(scenario({"kind": "constant-rate", "rate": "20 Mbit/s"}, bottleneck=queue))
    row = done.datagrams.to_dicts()[0]
    assert row["loss_rate"] == pytest.approx(0.5, abs=0.01)
    # a full queue of 50, the packet in transmission, and the packet itself, 1500 bytes each at 10 Mbit/s
    assert row["max_delay_s"] == pytest.approx(0.02 + 52 * 0.0012, abs=0.0012)
    assert done.flows["goodput_bps"][0] == pytest.approx(10e6 * 1472 / 1500, rel=0.01)
    link = done.links.to_dicts()[0]
    assert row["sent"] == row["received"] + link["dropped_queue"] + link["held"]
    assert row["lost"] <= link["dropped_queue"]


def test_on_off_has_its_duty_cycle_and_stop_holds():
    fixed = {"kind": "on-off", "rate": "1 Mbit/s", "on": "250 ms", "off": "750 ms", "periods": "fixed"}
    done = run(scenario(fixed, stop="8 s"))
    assert done.datagrams["sent"][0] == 8 * 21  # 12 ms apart: 21 in every 250 ms
    exponential = {"kind": "on-off", "rate": "1 Mbit/s", "on": "10 ms", "off": "30 ms"}
    runs = [run(scenario(exponential), seed=seed).datagrams["sent"][0] for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_goodput_is_sampled_like_that_of_tcp():
    done = run(scenario({"kind": "constant-rate", "rate": "1 Mbit/s"}).set("record.goodput_interval", "1 s"))
    assert done.goodput["goodput_bps"].to_list()[1:] == pytest.approx([1e6 * 1472 / 1500] * 9, rel=0.02)


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        ({"workload": {"kind": "voice"}, "transport": "tcp"}, 'flows.0.transport: found "tcp" with a workload'),
        ({"transport": "udp"}, 'flows.0.transport: found "udp" with a workload of kind "bulk"'),
        ({"workload": {"kind": "voice"}, "congestion_control": "cubic"}, "flows.0.congestion_control: found a setting"),
        ({"workload": {"kind": "voice", "payload": "70000 bytes"}}, "flows.0.workload.payload"),
        ({"workload": {"kind": "on-off", "rate": "1 Mbit/s", "on": "0 s", "off": "1 s"}}, "flows.0.workload.on"),
    ],
)
def test_what_makes_no_sense_is_refused(flow, message):
    with pytest.raises(ScenarioError) as refused:
        Scenario.from_dict({"duration": "1 s", "network": {"bottleneck": {"rate": "1 Mbit/s"}}, "flows": [flow]})
    assert message in str(refused.value)
