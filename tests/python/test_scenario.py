from __future__ import annotations

import json
import os
import tomllib

import pytest
from conftest import ROOT

from ackclock import Scenario, ScenarioError, load
from ackclock.scenario import Bulk, DropTail, Flows, Link, Network

FETCH = {"kind": "fetch", "bytes": "7680 bytes"}
CONSTANT = {"kind": "constant", "value": "1 Mbit/s"}

# Key that is set, value, what the one line must hold: the key, the value, what is allowed.
REFUSED = [
    ("network.bottelneck", {}, ["network.bottelneck", "unknown key", 'did you mean "bottleneck"']),
    ("flows.0.congestion_contro", "reno", ["flows.0.congestion_contro", "unknown key", 'did you mean "congestion_control"']),
    ("network.bottleneck.rate", "10", ["network.bottleneck.rate", '"10" without a unit', "Mbit/s"]),
    ("network.bottleneck.rate", 10, ["network.bottleneck.rate", "10 without a unit", "Mbit/s"]),
    ("network.bottleneck.rate", "10 Mbps", ["network.bottleneck.rate", '"10 Mbps"', 'did you mean "Mbit/s"']),
    ("network.bottleneck.rate", "-5 Mbit/s", ["network.bottleneck.rate", '"-5 Mbit/s"', "above zero"]),
    ("network.bottleneck.rate", "0 Mbit/s", ["network.bottleneck.rate", '"0 Mbit/s"', "above zero"]),
    ("network.bottleneck.delay", "-1 ms", ["network.bottleneck.delay", '"-1 ms"', "a duration"]),
    ("network.bottleneck.queue.limit", "0 packets", ["network.bottleneck.queue.limit", '"0 packets"', "above zero"]),
    ("network.bottleneck.queue.limit", 100, ["network.bottleneck.queue.limit", "100 without a unit", "packets"]),
    ("network.bottleneck.queue.kind", "codle", ["network.bottleneck.queue.kind", '"codle"', "drop-tail", "nearest: codel"]),
    ("network.bottleneck.queue", {"limit": "3 packets"}, ["network.bottleneck.queue.kind", "nothing", "drop-tail, netem-limit, codel, red"]),
    ("network.bottleneck.queue", {"kind": "netem-limit"}, ["network.bottleneck.queue.limit", "nothing", "required"]),
    ("network.bottleneck.loss", {"kind": "bernoulli", "p": 1.5}, ["network.bottleneck.loss.p", "1.5", "0 to 1"]),
    ("network.bottleneck.loss", {"kind": "bernoulli", "p": "150 %"}, ["network.bottleneck.loss.p", '"150 %"', "100 %"]),
    ("network.bottleneck.loss", {"kind": "bernouli", "p": 0}, ["network.bottleneck.loss.kind", '"bernouli"', "nearest: bernoulli"]),
    ("network.bottleneck.loss", "1 %", ["network.bottleneck.loss", '"1 %"', 'a table with a "kind"']),
    ("network.topology", "dumbell", ["network.topology", '"dumbell"', "nearest: dumbbell"]),
    ("network.topology", "wishbone", ["network.access_list", "nothing", "one or more links"]),
    ("network.topology", "graph", ["network.bottleneck", "links and paths"]),
    ("flows.0.congestion_control", "cubik", ["flows.0.congestion_control", '"cubik"', "reno", "nearest: cubic"]),
    ("flows.0.profile", "linux6", ["flows.0.profile", '"linux6"', "nearest: linux-6"]),
    ("flows.0.recovery", "prr_crb", ["flows.0.recovery", '"prr_crb"', "nearest: prr-crb"]),
    ("flows.0.transport", "udp", ["flows.0.transport", '"udp"', "tcp"]),
    ("flows.0.start", "3 s", ["flows.0.start", '"3 s"', '"2 s"']),
    ("flows.0.start", "2 s", ["flows.0.start", '"2 s"', "below the duration"]),
    ("flows.0.count", 0, ["flows.0.count", "found 0", "1 or more"]),
    ("flows.0.count", 10_000_000, ["flows.0.count", "found 10000000", "at most 1000000"]),
    ("flows.0.count", "3", ["flows.0.count", '"3"', "a whole number"]),
    ("flows.0.workload", {"kind": "fetch"}, ["flows.0.workload.bytes", "nothing", "required"]),
    ("flows.0.workload", {**FETCH, "bytes": 7680}, ["flows.0.workload.bytes", "7680 without a unit", "KiB"]),
    ("flows.0.workload.kind", "bulky", ["flows.0.workload.kind", '"bulky"', "nearest: bulk"]),
    ("flows.0.stack", {"tlp": "yes"}, ["flows.0.stack.tlp", '"yes"', "true or false"]),
    ("flows.0.stack", {"detection": "rak"}, ["flows.0.stack.detection", '"rak"', "nearest: rack"]),
    ("flows.0.path", "up", ["flows.0.path", '"up"', "graph"]),
    ("flows.1.start", "1 s", ["flows.1", '"1"', "0 to 0"]),
    ("flows", [], ["flows", "found 0", "at least 1"]),
    ("flows", 3, ["flows", "found 3", "a list"]),
    ("network", 3, ["network", "found 3", "a table"]),
    ("duration", "0 s", ["duration", '"0 s"', "above zero"]),
    ("duration", "1e99 s", ["duration", '"1e99 s"', "at most 1000 h"]),
    ("record.trace", "al", ["record.trace", '"al"', "nearest: all"]),
    ("name", 3, ["name", "found 3", "text"]),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value", "parts"), REFUSED, ids=[f"{k}={v}" for k, v, _ in REFUSED])
def test_refusal_names_key_value_and_what_is_allowed(minimal, key, value, parts):
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_dict(minimal).set(key, value)
    message = str(caught.value)
    assert message.isprintable()
    assert message.startswith(f"{parts[0]}: found ")
    assert "; allowed: " in message
    for part in parts:
        assert part in message


def test_stop_before_start(minimal):
    minimal["flows"][0] |= {"start": "1 s", "stop": "500 ms"}
    with pytest.raises(ScenarioError, match=r"^flows\.0\.stop: found \"500 ms\"; allowed: a time after"):
        Scenario.from_dict(minimal)


def test_flows_in_all_are_bounded(minimal):
    minimal["flows"] = [{"count": 600_000}, {"count": 600_000}]
    with pytest.raises(ScenarioError, match=r"^flows: found 1200000 flows in all; allowed: at most 1000000"):
        Scenario.from_dict(minimal)


def test_samples_are_bounded(minimal):
    minimal |= {"duration": "1000 h", "record": {"sample_interval": "1 ns"}}
    with pytest.raises(ScenarioError, match=r"^record\.sample_interval: found \"1 ns\", 3600000000000000 times"):
        Scenario.from_dict(minimal)


def test_stagger_beyond_the_end(minimal):
    minimal["flows"][0] |= {"count": 10, "stagger": "1 s"}
    with pytest.raises(ScenarioError, match=r"^flows\.0\.stagger: "):
        Scenario.from_dict(minimal)


def test_population_checks_the_unit_of_each_distribution(minimal):
    drawn = {
        "rtt": CONSTANT,
        "rate": CONSTANT,
        "loss": {"kind": "constant", "value": 0},
        "bytes": {"kind": "constant", "value": "1 KB"},
    }
    minimal["flows"][0]["workload"] = {"kind": "population", "clients": 3, **drawn}
    with pytest.raises(ScenarioError, match=r"^flows\.0\.workload\.rtt\.value: found \"1 Mbit/s\".*a duration"):
        Scenario.from_dict(minimal)


def test_bdp_needs_a_delay(minimal):
    minimal["network"]["bottleneck"]["delay"] = "0 s"
    with pytest.raises(ScenarioError, match=r"^network\.bottleneck\.queue\.limit: found \"1 BDP\""):
        Scenario.from_dict(minimal)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("333 packets", {"limit_packets": 333}),
        ("64 KiB", {"limit_bytes": 65536}),
        ("1 BDP", {"limit_packets": 33}),
        ("1.5 BDP", {"limit_packets": 50}),
    ],
)
def test_queue_limits(minimal, text, expected):
    # 10 Mbit/s x 40 ms / (8 x 1500 bytes) = 33.3 packets.
    scenario = Scenario.from_dict(minimal).set("network.bottleneck.queue.limit", text)
    compiled = json.loads(scenario.to_engine_json())
    assert compiled["network"]["bottleneck"]["queue"] == {"kind": "drop-tail", **expected}


def test_bdp_counts_framing_and_the_way_back(minimal):
    minimal["network"] |= {"framing": "14 bytes", "reverse": {"bottleneck": {"delay": "60 ms"}}}
    compiled = json.loads(Scenario.from_dict(minimal).to_engine_json())
    assert compiled["network"]["bottleneck"]["queue"]["limit_packets"] == round(10e6 * 0.080 / 8 / 1514)


def test_compiles_to_si_units(minimal):
    minimal["flows"][0] |= {"workload": {**FETCH, "pause": "2 s"}, "stack": {"min_rto": "200 ms", "beta": 0.7}}
    compiled = json.loads(Scenario.from_dict(minimal).to_engine_json(capture="sender"))
    assert compiled["duration_ns"] == 2_000_000_000
    assert compiled["network"]["bottleneck"]["rate_bps"] == 10_000_000
    flow = compiled["flows"][0]
    assert flow["stack"] == {"min_rto_ns": 200_000_000, "beta_permille": 700}
    assert (flow["workload"]["bytes"], flow["workload"]["pause_ns"]) == (7680, 2_000_000_000)
    assert compiled["record"]["capture"] == "sender"


def test_values_are_frozen_and_kept_as_written(minimal):
    scenario = Scenario.from_dict(minimal)
    assert scenario.to_dict() == Scenario.from_dict(scenario.to_dict()).to_dict()
    with pytest.raises(Exception, match="frozen"):
        scenario.name = "other"
    changed = scenario.set("name", "other")
    assert (scenario.name, changed.name) == ("minimal", "other")


def test_python_values_equal_the_file(minimal):
    queue = DropTail(kind="drop-tail", limit="1 BDP")
    network = Network(bottleneck=Link(rate="10 Mbit/s", delay="20 ms", queue=queue))
    flows = (Flows(congestion_control="reno", workload=Bulk(kind="bulk")),)
    made = Scenario(name="minimal", duration="2 s", network=network, flows=flows)
    assert made == Scenario.from_dict(minimal)
    with pytest.raises(ScenarioError, match=r"^rate: found \"-1 Mbit/s\""):
        Link(rate="-1 Mbit/s")


@pytest.mark.parametrize("path", sorted((ROOT / "scenarios").glob("*.toml")), ids=lambda p: p.stem)
def test_files_survive_a_round_trip(path):
    scenario = load(path)
    assert Scenario.from_dict(tomllib.loads(scenario.to_toml())) == scenario
    assert scenario.name == path.stem


def test_schema_accepts_what_the_package_accepts():
    schema = Scenario.model_json_schema()
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == {"duration", "network", "flows"}
    assert "reno" in schema["$defs"]["Flows"]["properties"]["congestion_control"]["enum"]


def refused_file(path):
    with pytest.raises(ScenarioError) as caught:
        load(path)
    message = str(caught.value)
    assert message.isprintable()
    assert str(path) in message
    return message


def test_unreadable_files(tmp_path):
    assert "no such file" in refused_file(tmp_path / "absent.toml")
    assert "a folder" in refused_file(tmp_path)
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'name = "\xe9"\n')
    assert "not UTF-8 at offset 8" in refused_file(latin)
    broken = tmp_path / "broken.toml"
    broken.write_text("duration = \n", encoding="utf-8")
    assert "no valid TOML" in refused_file(broken)
    deep = tmp_path / "deep.toml"
    deep.write_text("a = " + "[" * 100_000, encoding="utf-8")
    assert "no valid TOML" in refused_file(deep)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "no regular file" in refused_file(pipe)


def test_a_gigabyte_of_toml_is_refused_unread(tmp_path):
    huge = tmp_path / "huge.toml"
    with huge.open("wb") as file:
        file.truncate(10**9)  # sparse
    assert "1000000000 bytes" in refused_file(huge)


def test_file_errors_name_the_file(tmp_path, minimal):
    path = tmp_path / "x.toml"
    path.write_text(Scenario.from_dict(minimal).to_toml().replace("10 Mbit/s", "10 Mb/s"), encoding="utf-8")
    assert refused_file(path).startswith(f"{path}: network.bottleneck.rate: found ")
