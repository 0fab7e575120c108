from __future__ import annotations

import hashlib

import pytest

from ackclock import Scenario, load, run
from ackclock.cli import main
from ackclock.errors import ScenarioError

STEPS = {"kind": "schedule", "steps": [{"at": "1 s", "rate": "2 Mbit/s", "delay": "5 ms"}], "repeat": "2 s"}


def traced(minimal, path):
    minimal["network"]["bottleneck"] = {"delay": "5 ms", "capacity": {"kind": "mahimahi", "file": str(path)}}
    minimal["network"]["reverse"] = {"bottleneck": {"delay": "5 ms"}}
    return minimal


def test_a_flow_follows_the_steps(minimal):
    minimal["network"]["bottleneck"]["capacity"] = STEPS
    minimal |= {"duration": "10 s", "record": {"goodput_interval": "1 s"}}
    bps = run(Scenario.from_dict(minimal)).goodput["goodput_bps"].to_list()
    assert all(7e6 < fast < 10e6 for fast in bps[2::2]), bps
    assert all(1.5e6 < slow < 2.5e6 for slow in bps[3::2]), bps


@pytest.mark.parametrize("mbit", [1, 12, 1000])
def test_every_opportunity_of_a_trace_is_replayed(minimal, tmp_path, mbit):
    """A bulk flow uses all opportunities except those during its start: Mbit/s over 600 ms, in 1500-byte packets. The
    receive buffer must not be the limit: at 1000 it would not grow, as in Linux (docs/fidelity.md).
    """
    path = tmp_path / "a.trace"
    minimal["flows"][0]["stack"] = {"receive_buffer": "6 MB", "initial_receive_window": 4000}
    path.write_text("".join(f"{(12 * i + mbit - 1) // mbit}\n" for i in range(1, 50 * mbit + 1)))
    scenario = Scenario.from_dict(traced(minimal, path) | {"duration": "6 s"})
    result = run(scenario)
    link = result.links.filter(result.links["name"] == "bottleneck.forward").row(0, named=True)
    assert link["opportunities"] == 500 * mbit
    assert 0.9 * 500 * mbit < link["opportunities_used"] <= 500 * mbit + link["held"]
    assert link["delivered"] <= link["opportunities_used"]
    assert result.provenance["inputs"] == {str(path): hashlib.sha256(path.read_bytes()).hexdigest()}
    assert scenario.network.bottleneck_bps() == mbit * 10**6


def dummynet(minimal, **keys):
    """Run a paced sender without a window into a six-packet queue: at 100 Mb/s, 8.33 packets of 1500 bytes fit into a tick."""
    pipe = {"rate": "100 Mbit/s", "delay": "15 ms", "capacity": {"kind": "dummynet", **keys}}
    minimal["network"]["bottleneck"] = pipe | {"queue": {"kind": "drop-tail", "limit": "6 packets"}}
    minimal["network"]["reverse"] = {"bottleneck": pipe}
    minimal["flows"] = [{"congestion_control": "pcc-allegro"}]
    return minimal | {"duration": "20 s"}


@pytest.mark.parametrize(
    ("keys", "low", "high"), [({}, 60, 70), ({"tick": "100 us"}, 90, 97), ({"keeps_credit": True}, 90, 97)]
)
def test_slots_cap_what_a_tick_lets_through(minimal, keys, low, high):
    """6 x 1456 bytes per ms are 69.9 Mb/s, unless the clock is finer or credit is kept."""
    mbps = run(Scenario.from_dict(dummynet(minimal, **keys))).flows["goodput_bps"][0] / 1e6
    assert low < mbps < high


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"rate": None}, "rate.*nothing with a capacity"),
        ({"capacity": {"kind": "dummynet", "tick": "0 s"}}, "tick.*0 s"),
        ({"capacity": {"kind": "dummynet", "tock": "1 ms"}}, "tock"),
    ],
)
def test_a_pipe_without_rate_or_tick_is_refused(minimal, change, found):
    scenario = dummynet(minimal)
    link = scenario["network"]["bottleneck"] | change
    scenario["network"]["bottleneck"] = {key: value for key, value in link.items() if value is not None}
    with pytest.raises(ScenarioError, match=found):
        Scenario.from_dict(scenario)


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("", 1, "an empty trace"),
        ("\n\n", 1, "an empty trace"),
        ("1\n2\nthree\n4\n", 3, '"three"'),
        ("1\n\n2\n", 2, "an empty line"),
        ("1\n5\n5\n3\n9\n", 4, "3 ms after 5 ms"),
        ("1\n-5\n", 2, '"-5"'),
        ("1.5\n", 1, '"1.5"'),
        ("0\n0\n", 2, "0 ms as the trace's end"),
        ("1\n99999999\n", 2, "99999999 ms as the trace's end"),
        ("\x00\n", 1, '"\\u0000"'),
    ],
)
def test_malformed_traces_are_refused_with_their_line(minimal, tmp_path, capsys, text, line, found):
    path = tmp_path / "bad.trace"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=r"capacity\.file") as caught:
        Scenario.from_dict(traced(minimal, path))
    assert f"{path}, line {line};" in str(caught.value)
    assert f"found {found}" in str(caught.value)
    toml = tmp_path / "bad.toml"
    toml.write_text(
        'duration = "1 s"\n[network]\nbottleneck = { capacity = { kind = "mahimahi", file = "bad.trace" } }\n[[flows]]\n'
    )
    assert main(["run", str(toml)]) == 2
    err = capsys.readouterr().err
    assert "bad.trace, line" in err
    assert err.count("\n") == 1


def test_a_trace_lies_beside_its_scenario_and_must_exist(tmp_path, minimal):
    with pytest.raises(ScenarioError, match="an unreadable file"):
        Scenario.from_dict(traced(minimal, tmp_path / "none"))
    (tmp_path / "t").write_text("1\n2\n")
    toml = tmp_path / "s.toml"
    toml.write_text(
        'duration = "1 s"\n[network]\nbottleneck = { capacity = { kind = "mahimahi", file = "t" } }\n[[flows]]\n'
    )
    scenario = load(toml)
    assert scenario.inputs() == {str(tmp_path / "t"): hashlib.sha256(b"1\n2\n").hexdigest()}
    assert Scenario.from_dict(scenario.to_dict()) == scenario


@pytest.mark.parametrize(
    ("link", "key"),
    [
        ({"capacity": {"kind": "random"}}, "capacity.every"),
        ({"capacity": {"kind": "random", "every": "0 s"}}, "capacity.every"),
        ({"capacity": {"kind": "random", "every": "1 s", "rate": {"kind": "constant", "value": "1 s"}}}, "rate.value"),
        ({"capacity": {"kind": "schedule", "steps": []}}, "capacity.steps"),
        ({"capacity": {"kind": "schedule", "steps": [{"at": "1 s"}, {"at": "1 s"}]}}, "capacity.steps.1.at"),
        ({"capacity": STEPS | {"repeat": "1 s"}}, "capacity.repeat"),
        ({"capacity": {"kind": "wobble"}}, "capacity.kind"),
        ({"rate": None, "capacity": STEPS}, "bottleneck.rate"),
        (
            {
                "rate": None,
                "capacity": {"kind": "schedule", "steps": [{"at": "0 s", "rate": "0 bit/s"}], "repeat": "1 s"},
            },
            "steps",
        ),
    ],
)
def test_schedules_that_make_no_sense(minimal, link, key):
    minimal["network"]["bottleneck"] |= link
    if link.get("rate", 1) is None:
        del minimal["network"]["bottleneck"]["rate"]
    with pytest.raises(ScenarioError, match=key):
        Scenario.from_dict(minimal)


def test_seeds_differ_and_repeat(minimal):
    rate = {"kind": "uniform", "low": "2 Mbit/s", "high": "10 Mbit/s"}
    minimal["network"]["bottleneck"]["capacity"] = {"kind": "random", "every": "200 ms", "rate": rate}
    scenario = Scenario.from_dict(minimal)
    digests = [run(scenario, seed=seed).digest for seed in (1, 1, 2)]
    assert digests[0] == digests[1] != digests[2]
