from __future__ import annotations

import json
import os
import re
import tomllib
from itertools import pairwise
from typing import Any

import pytest
from conftest import ROOT

from ackclock import Scenario, ScenarioError, load, run
from ackclock.scenario import Bulk, DropTail, Flows, Link, Network

FETCH = {"kind": "fetch", "bytes": "7680 bytes"}
CONSTANT = {"kind": "constant", "value": "1 Mbit/s"}

# (key, value, words that the message must contain: key, value, allowed values)
REFUSED = [
    ("network.bottelneck", {}, ["network.bottelneck", "unknown key", 'did you mean "bottleneck"']),
    ("flows.0.congestion_contro", "reno", ["flows.0.congestion_contro", "unknown key", 'did you mean "congestion_control"']),
    ("network.bottleneck.rate", "10", ["network.bottleneck.rate", '"10" without a unit', "Mbit/s"]),
    ("network.bottleneck.rate", 10, ["network.bottleneck.rate", "10 without a unit", "Mbit/s"]),
    ("network.bottleneck.rate", "10 Mbps", ["network.bottleneck.rate", '"10 Mbps"', 'did you mean "10 Mbit/s"']),
    ("network.bottleneck.rate", "-5 Mbit/s", ["network.bottleneck.rate", '"-5 Mbit/s"', "above zero"]),
    ("network.bottleneck.rate", "0 Mbit/s", ["network.bottleneck.rate", '"0 Mbit/s"', "above zero"]),
    ("network.bottleneck.delay", "-1 ms", ["network.bottleneck.delay", '"-1 ms"', "a duration"]),
    ("network.bottleneck.queue.limit", "0 packets", ["network.bottleneck.queue.limit", '"0 packets"', "above zero"]),
    ("network.bottleneck.queue.limit", 100, ["network.bottleneck.queue.limit", "100 without a unit", "packets"]),
    ("network.bottleneck.queue.kind", "codle", ["network.bottleneck.queue.kind", '"codle"', 'did you mean "codel"']),
    ("network.bottleneck.queue", {"limit": "3 packets"}, ["network.bottleneck.queue.kind", "nothing", "drop-tail, netem-limit, codel, fq-codel, fq-pie, pie, threshold, red"]),
    ("network.bottleneck.queue", {"kind": "netem-limit"}, ["network.bottleneck.queue.limit", "nothing", "required"]),
    ("network.bottleneck.loss", {"kind": "bernoulli", "p": 1.5}, ["network.bottleneck.loss.p", "1.5", "0 to 1"]),
    ("network.bottleneck.loss", {"kind": "bernoulli", "p": "150 %"}, ["network.bottleneck.loss.p", '"150 %"', "100 %"]),
    ("network.bottleneck.loss", {"kind": "bernouli", "p": 0}, ["network.bottleneck.loss.kind", '"bernouli"', 'did you mean "bernoulli"']),
    ("network.bottleneck.loss", "1 %", ["network.bottleneck.loss", '"1 %"', 'a table with a "kind"']),
    ("network.topology", "dumbell", ["network.topology", '"dumbell"', "nearest: dumbbell"]),
    ("network.topology", "wishbone", ["network.access_list", "nothing", "one or more links"]),
    ("network.topology", "graph", ["network.bottleneck", "links and paths"]),
    ("flows.0.congestion_control", "cubik", ["flows.0.congestion_control", '"cubik"', 'did you mean "cubic"']),
    ("flows.0.profile", "linux6", ["flows.0.profile", '"linux6"', 'did you mean "linux-6"']),
    ("flows.0.recovery", "prr_crb", ["flows.0.recovery", '"prr_crb"', 'did you mean "prr-crb"']),
    ("flows.0.transport", "udp", ["flows.0.transport", '"udp"', "tcp"]),
    ("flows.0.start", "3 s", ["flows.0.start", '"3 s"', '"2 s"']),
    ("flows.0.start", "2 s", ["flows.0.start", '"2 s"', "below the duration"]),
    ("flows.0.count", 0, ["flows.0.count", "found 0", "a whole number, 1 to 1000000"]),
    ("flows.0.count", 10_000_000, ["flows.0.count", "found 10000000", "1 to 1000000"]),
    ("flows.0.count", "3", ["flows.0.count", '"3"', "a whole number"]),
    ("flows.0.workload", {"kind": "fetch"}, ["flows.0.workload.bytes", "nothing", "required"]),
    ("flows.0.workload", {**FETCH, "bytes": 7680}, ["flows.0.workload.bytes", "7680 without a unit", "KiB"]),
    ("flows.0.workload.kind", "bulky", ["flows.0.workload.kind", '"bulky"', 'did you mean "bulk"']),
    ("flows.0.stack", {"tlp": "yes"}, ["flows.0.stack.tlp", '"yes"', "true or false"]),
    ("flows.0.stack", {"detection": "rak"}, ["flows.0.stack.detection", '"rak"', "nearest: rack"]),
    ("flows.0.path", "up", ["flows.0.path", '"up"', "graph"]),
    ("flows.1.start", "1 s", ["flows.1", "found 1", "a position in the list, 0 (the list has 1 entry)"]),
    ("flows", [], ["flows", "an empty list", "at least 1 entry"]),
    ("flows", 3, ["flows", "found 3", "a list"]),
    ("network", 3, ["network", "found 3", "a table"]),
    ("duration", "0 s", ["duration", '"0 s"', "above zero"]),
    ("duration", "1e99 s", ["duration", '"1e99 s"', "at most 1000 h"]),
    ("record.trace", "al", ["record.trace", '"al"', "nearest: all"]),
    ("name", 3, ["name", "found 3", "text"]),
]  # fmt: skip


QUEUE, LOSS = "network.bottleneck.queue", "network.bottleneck.loss"
RED = {"kind": "red", "limit": "50 packets", "min": "5.5 packets", "max": "20 packets"}

# (key, value, whole message)
LINES = [
    (LOSS, {"kind": "bernoulli", "p": "1"}, f'{LOSS}.p: found "1" without a unit; allowed: a number from 0 to 1 without quotes, or "0 %" to "100 %"'),
    (LOSS, {"kind": "scripted", "drops": [{"first": 5, "last": 1}]}, f"{LOSS}.drops.0.last: found 1; allowed: 5 (first) or more"),
    (LOSS, {"kind": "scripted", "drops": [{"first": 5, "flow": 7}]}, f"{LOSS}.drops.0.flow: found 7; allowed: 0, the only flow"),
    (QUEUE, {**RED, "max": "5 packets"}, f'{QUEUE}.min: found "5.5 packets"; allowed: less than max, "5 packets"'),
    (QUEUE, {**RED, "limit": "4 packets"}, f'{QUEUE}.limit: found "4 packets"; allowed: at least min, "5.5 packets"'),
    (QUEUE, {"kind": "codel", "target": "200 ms"}, f'{QUEUE}.target: found "200 ms"; allowed: at most the interval of "100 ms"'),
    (QUEUE, {"kind": "codel", "interval": "1 ms"}, f'{QUEUE}.interval: found "1 ms"; allowed: at least the target of "5 ms"'),
    (f"{QUEUE}.limit", "1.5 packets", f'{QUEUE}.limit: found "1.5 packets"; allowed: a number of packets in whole packets'),
    (f"{QUEUE}.limit", "1e-9 BDP", f'{QUEUE}.limit: found "1e-9 BDP", which is less than half a packet; allowed: 1 to 1000000000 packets (1 BDP is 33.3 packets)'),
    (f"{QUEUE}.limit", "1 byte", f'{QUEUE}.limit: found "1 byte"; allowed: at least 1500 bytes (one full packet)'),
    ("network.framing", "1.5 bytes", 'network.framing: found "1.5 bytes"; allowed: a size in whole bytes'),
    ("network.framing", "1 GB", 'network.framing: found "1 GB"; allowed: at most "65535 bytes"'),
    ("network.reverse.bottleneck", {"queue": {"kind": "drop-tail", "limit": "39 bytes"}}, 'network.reverse.bottleneck.queue.limit: found "39 bytes"; allowed: at least 40 bytes (one ACK)'),
    ("flows.0.stack", {"sack": False, "detection": "rack"}, 'flows.0.stack.detection: found "rack" with sack = false; allowed: "dupthresh", no detection, or sack = true'),
    ("flows.0.stack.smss", "64 KiB", 'flows.0.stack.smss: found "64 KiB"; allowed: "64 bytes" to "65000 bytes"'),
    ("flows.0.stack.beta", float("nan"), "flows.0.stack.beta: found nan; allowed: a number, 0.001 to 0.999"),
    ("flows.0.stack.beta", 0.0001, "flows.0.stack.beta: found 0.0001; allowed: a number, 0.001 to 0.999"),
    ("flows.0.count", True, "flows.0.count: found true; allowed: a whole number, 1 to 1000000"),
    ("flows.0.count", 10**5000, "flows.0.count: found a whole number of more than 60 digits; allowed: a whole number, 1 to 1000000"),
    ("flows.count", 2, 'flows.count: found "count"; allowed: a position in the list before the key, 0 (the list has 1 entry)'),
    ("flows.00.count", 2, 'flows.00: found "00"; allowed: a position in the list without leading zeros, 0 (the list has 1 entry)'),
    ("flows..count", 2, 'found the key "flows..count"; allowed: a dotted path, e.g. "flows.0.congestion_control"'),
    ("", 2, 'found the key ""; allowed: a dotted path, e.g. "flows.0.congestion_control"'),
    (3, 3, 'found the key 3; allowed: a dotted path, e.g. "flows.0.congestion_control"'),
    ("duration", "1e300 s", 'duration: found "1e300 s", which is too large; allowed: a duration of at most 1000 h'),
    ("duration", "1e-300 s", 'duration: found "1e-300 s", which is too small; allowed: a duration of at least 1 ns'),
    ("network.bottleneck.loss", {"kind": "periodic"}, f"{LOSS}.every: found nothing; allowed: a whole number, 1 to 2147483648; this key is required"),
    ("network.bottleneck.loss", {"kind": "bernoulli"}, f'{LOSS}.p: found nothing; allowed: a number from 0 to 1 without quotes, or "0 %" to "100 %"; this key is required'),
    ("flows.0.workload", {"kind": "population", "clients": 2}, 'flows.0.workload.rtt: found nothing; allowed: a table with a "kind" (constant, uniform, lognormal, exponential, choice); this key is required'),
    ("network", {"topology": "graph", "links": [{}]}, "network.links.0.name: found nothing; allowed: text in quotes; this key is required"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value", "line"), LINES, ids=[line.partition(";")[0] for *_, line in LINES])
def test_refusal_in_one_line(minimal, key, value, line):
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_dict(minimal).set(key, value)
    assert str(caught.value) == line


def test_a_byte_limit_holds_one_packet_of_the_segment_size(minimal):
    scenario = Scenario.from_dict(minimal).set("flows.0.stack", {"smss": "64 bytes"})
    scenario.set(f"{QUEUE}.limit", "116 bytes")
    with pytest.raises(ScenarioError, match=r"at least 116 bytes \(one full packet\)"):
        scenario.set(f"{QUEUE}.limit", "115 bytes")


def test_scripted_drops_reach_the_last_flow(minimal):
    scenario = Scenario.from_dict(minimal).set("flows.0.count", 3)
    scenario.set(LOSS, {"kind": "scripted", "drops": [{"first": 5, "flow": 2}]})
    with pytest.raises(ScenarioError, match=r"found 3; allowed: 0 to 2, the numbers of the flows"):
        scenario.set(LOSS, {"kind": "scripted", "drops": [{"first": 5, "flow": 3}]})


def test_without_sack_the_profile_chooses_the_detection(minimal):
    assert Scenario.from_dict(minimal).set("flows.0.stack", {"sack": False}).flows[0].stack.detection is None


@pytest.mark.parametrize(("values", "found"), [(None, "nothing"), ([], "a list"), (3, "3"), ("x.toml", '"x.toml"')])
def test_what_is_no_table(values, found):
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_dict(values)
    assert str(caught.value) == f"found {found}; allowed: a table with the keys of a scenario file"


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


def test_starts_are_drawn_from_the_seed_alone(minimal):
    stagger = {"kind": "exponential", "mean": "50 ms"}
    group = {"count": 400, "stagger": stagger, "workload": {"kind": "transfer", "bytes": "1000 bytes"}}
    minimal |= {"duration": "30 s", "flows": [group]}
    first, again, other = (run(Scenario.from_dict(minimal), seed=s).flows["start_s"].to_list() for s in (1, 1, 2))
    assert first == again
    assert first != other
    gaps = [b - a for a, b in pairwise(first)]
    assert first[0] == 0.0
    mean = sum(gaps) / len(gaps)
    assert 0.042 < mean < 0.058, mean
    # an exponential's standard deviation is its mean
    assert 0.8 < (sum((g - mean) ** 2 for g in gaps) / len(gaps)) ** 0.5 / mean < 1.2
    group["congestion_control"] = "pcc-allegro"
    assert run(Scenario.from_dict(minimal), seed=1).flows["start_s"].to_list() == first


def test_flows_drawn_beyond_the_end_do_not_take_place(minimal):
    minimal["flows"] = [{"count": 5, "stagger": {"kind": "constant", "value": "900 h"}}]
    flows = run(Scenario.from_dict(minimal)).flows
    assert flows["goodput_bps"].is_null().to_list() == [False] + [True] * 4
    assert flows["sent_packets"].to_list()[1:] == [0] * 4
    minimal["flows"][0]["stagger"]["value"] = "5 Mbit/s"
    with pytest.raises(ScenarioError, match=r"^flows\.0\.stagger\.value: "):
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
        ("333 packets", {"limit": {"packets": 333}}),
        ("64 KiB", {"limit": {"bytes": 65536}}),
        ("1 BDP", {"limit": {"packets": 33}}),
        ("1.5 BDP", {"limit": {"packets": 50}}),
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
    assert compiled["network"]["bottleneck"]["queue"]["limit"]["packets"] == round(10e6 * 0.080 / 8 / 1514)


def test_compiles_to_si_units(minimal):
    minimal["flows"][0] |= {"workload": {**FETCH, "pause": "2 s"}, "stack": {"min_rto": "200 ms", "beta": 0.7}}
    compiled = json.loads(Scenario.from_dict(minimal).to_engine_json(capture="sender"))
    assert compiled["duration_ns"] == 2_000_000_000
    assert compiled["network"]["bottleneck"]["rate"] == 10_000_000
    flow = compiled["flows"][0]
    assert flow["stack"] == {"min_rto": 200_000_000, "beta": 0.7}
    assert (flow["workload"]["bytes"], flow["workload"]["pause"]) == (7680, 2_000_000_000)
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
    schema = Scenario.json_schema()
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == {"duration", "network", "flows"}
    assert "reno" in schema["$defs"]["Flows"]["properties"]["congestion_control"]["anyOf"][0]["enum"]


def test_schema_names_itself():
    schema = Scenario.json_schema()
    assert list(schema)[:2] == ["$schema", "$id"]
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    for word in ("ackclock run", "unit", "64 to 65000 bytes", "several keys"):
        assert word in schema["description"]


def matches(schema, node, value):
    """Return whether the value matches; supports only the parts of JSON Schema used by the schema."""
    if "$ref" in node:
        return matches(schema, schema["$defs"][node["$ref"].rsplit("/", 1)[-1]], value)
    for union in ("anyOf", "oneOf"):
        if union in node and not any(matches(schema, option, value) for option in node[union]):
            return False
    if "const" in node and value != node["const"]:
        return False
    if "enum" in node and value not in node["enum"]:
        return False
    kinds = {
        "object": dict,
        "array": list,
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
        "null": type(None),
    }
    if "type" in node and not isinstance(value, kinds[node["type"]]):
        return False
    if isinstance(value, dict):
        known = node.get("properties", {})
        return (
            (node.get("additionalProperties", True) or set(value) <= set(known))
            and set(node.get("required", [])) <= set(value)
            and all(matches(schema, known[key], entry) for key, entry in value.items() if key in known)
        )
    if isinstance(value, list):
        if "items" not in node:
            return "anyOf" in node  # checked above
        return len(value) >= node.get("minItems", 0) and all(matches(schema, node["items"], entry) for entry in value)
    if isinstance(value, str):
        return "pattern" not in node or re.search(node["pattern"], value) is not None
    if isinstance(value, int | float):
        above = node.get("exclusiveMinimum")
        return node.get("minimum", value) <= value <= node.get("maximum", value) and (above is None or value > above)
    return True


def test_the_schema_says_what_keys_are():
    """Descriptions come from the docstrings below the keys in the classes, and from the engine."""
    schema = Scenario.json_schema()
    lacking = [
        f"{name}.{key}"
        for name, table in {"Scenario": schema, **schema["$defs"]}.items()
        for key, value in table["properties"].items()
        if key != "kind" and not value.get("description")
    ]
    assert lacking == []


@pytest.mark.parametrize("path", sorted((ROOT / "scenarios").glob("*.toml")), ids=lambda p: p.stem)
def test_schema_takes_every_scenario(path):
    schema = Scenario.json_schema()
    values = tomllib.loads(path.read_text(encoding="utf-8"))
    assert matches(schema, schema, values)
    assert not matches(schema, schema, {**values, "dura": 1})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("duration", "-1 s"),
        ("duration", "0 s"),
        ("duration", "2 S"),
        (LOSS, {"kind": "bernoulli", "p": "101 %"}),
        (LOSS, {"kind": "bernoulli", "p": "1"}),
        (LOSS, {"kind": "scripted", "drops": [{}]}),
        ("flows.0.count", 0),
        ("flows.0.stack.beta", 1.0),
        ("flows.0.stack.smss", "-5 bytes"),
        (f"{QUEUE}.limit", "1.5 pkts"),
        (f"{QUEUE}.limit", "0 BDP"),
    ],
)
def test_schema_refuses_what_the_package_refuses(minimal, key, value):
    schema = Scenario.json_schema()
    scenario = Scenario.from_dict(minimal)
    with pytest.raises(ScenarioError):
        scenario.set(key, value)
    here = minimal
    *parents, last = key.split(".")
    for part in parents:
        here = here[int(part)] if isinstance(here, list) else here.setdefault(part, {})
    assert matches(schema, schema, scenario.to_dict() | {"flows": list(map(dict, scenario.to_dict()["flows"]))})
    here[last] = value
    assert not matches(schema, schema, minimal)


def test_a_path_without_a_way_back_has_mirrors_of_its_links():
    """The same graph with explicit reverse links carries the same packets."""
    short = load(ROOT / "scenarios" / "parking-lot.toml").set("duration", "3 s")
    written = short.to_dict()
    network = written["network"]
    back = ("third", "second", "first")  # in the order in which they appear in the paths
    named = {link["name"]: link for link in network["links"]}
    network["links"] = [*network["links"], *({**named[name], "name": f"{name}.backward"} for name in back)]
    network["paths"] = [
        {**p, "backward": [f"{name}.backward" for name in reversed(p["forward"])]} for p in network["paths"]
    ]
    whole = Scenario.from_dict(written)
    assert whole.to_engine_json() == short.to_engine_json()
    assert short.network.base_rtt_ns("all") == 30_000_000
    assert short.network.base_rtt_ns("two") == 10_000_000
    assert run(short).flows["goodput_bps"].to_list() == run(whole).flows["goodput_bps"].to_list()


def test_a_key_that_is_elsewhere_says_where(minimal):
    with pytest.raises(
        ScenarioError, match=r"flows\.0\.access: found an unknown key here, which is said by network\.access_list"
    ):
        Scenario.from_dict({**minimal, "flows": [{"access": {"delay": "5 ms"}}]})


def test_a_byte_order_mark_is_no_statement(tmp_path, minimal):
    path = tmp_path / "bom.toml"
    path.write_text(Scenario.from_dict(minimal).to_toml(), encoding="utf-8-sig")
    assert load(path) == Scenario.from_dict(minimal)


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ('duration = "1 s"\nname = "x"\nduration = "2 s"\n', "3:1", 'the key "duration" is given twice'),
        ("[network]\nlinks = []\nlinks = [\n 1,\n]\n", "3:1", 'the key "links" is given twice'),
        ("[network]\n[record]\n[network]\n", "3:2", 'the key "network" is given twice'),
        ("name = " + "1" * 10_000, "1:8", "a number with too many digits"),
    ],
)
def test_invalid_toml_names_the_place(tmp_path, text, place, reason):
    path = tmp_path / "x.toml"
    path.write_text(text, encoding="utf-8")
    assert refused_file(path) == (
        f"{path}:{place}: found no valid TOML ({reason}); allowed: a readable TOML file in UTF-8 of at most 1 MiB"
    )


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
    assert re.match(rf"{re.escape(str(path))}:\d+:\d+: network\.bottleneck\.rate: found ", refused_file(path))


@pytest.mark.parametrize(
    ("start", "key"),
    [
        ({"knd": "uniform"}, "flows.0.start.kind"),
        ({"kind": "unifrm", "low": "0 s"}, "flows.0.start.kind"),
        ({"kind": ["uniform"]}, "flows.0.start.kind"),
        ({"kind": "uniform", "low": "0 s"}, "flows.0.start.high"),
        ({"kind": "uniform", "low": "0 s", "high": "-1 s"}, "flows.0.start.high"),
    ],
)
def test_a_distribution_that_is_none_is_named_by_its_key(start: dict[str, Any], key: str) -> None:
    bottleneck = {"rate": "10 Mbit/s", "delay": "5 ms"}
    with pytest.raises(ScenarioError) as refused:
        Scenario.from_dict({"duration": "5 s", "network": {"bottleneck": bottleneck}, "flows": [{"start": start}]})
    assert refused.value.key == key


def test_lists_of_losses_may_be_empty():
    """A script without losses is also written, as an empty list."""
    for loss in ({"kind": "scripted", "drops": []}, {"kind": "listed", "packets": []}):
        made = Scenario.from_dict(
            {
                "duration": "1 s",
                "network": {"bottleneck": {"rate": "10 Mbit/s", "delay": "5 ms", "loss": loss}},
                "flows": [{}],
            }
        )
        assert Scenario.from_dict(made.to_dict()) == made
        assert run(made).links["dropped_loss"].sum() == 0
