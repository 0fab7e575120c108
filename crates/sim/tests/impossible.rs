//! Tests that the engine itself rejects impossible scenarios before any packet is sent, with the key, the value found
//! and the values allowed.

use ackclock_sim::{parse, run, Error};
use serde_json::{json, Value};

fn base() -> Value {
    json!({
        "duration_ns": 2_000_000_000_u64,
        "network": {"topology": "chain", "bottleneck": {"rate": 10_000_000, "delay": 20_000_000}},
        "flows": [{"congestion_control": "reno", "workload": {"kind": "bulk"}}],
    })
}

fn with(changes: &[(&str, Value)]) -> Value {
    let mut scenario = base();
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        let parent = scenario.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer}"));
        parent[key] = value.clone();
    }
    scenario
}

/// Return the engine's error message.
fn said(scenario: &Value) -> String {
    let ran = parse(&scenario.to_string()).and_then(|read| run(&read, 1));
    match ran {
        Ok(output) => panic!("{scenario} ran, with the digest {}", output.digest.hex()),
        Err(Error::Value { place, found, allowed }) => format!("{place}: found {found}; allowed: {allowed}"),
        Err(other) => panic!("{scenario}: {other}"),
    }
}

const LINK: &str = "/network/bottleneck";

#[test]
#[allow(clippy::too_many_lines, reason = "Length: a row for each scenario")]
fn impossible_scenarios_do_not_run() {
    let queue = |queue: Value| with(&[(&format!("{LINK}/queue"), queue)]);
    let loss = |drop: Value| with(&[(&format!("{LINK}/loss"), json!({"kind": "scripted", "drops": [drop]}))]);
    let flow = |key: &str, value: Value| with(&[(&format!("/flows/0/{key}"), value)]);
    let graph = |paths: Value| {
        with(&[(
            "/network",
            json!({"topology": "graph", "links": [{"name": "a", "link": {"delay": 5}}], "paths": paths}),
        )])
    };
    let impossible = [
        (
            queue(json!({"kind": "red", "limit": 50, "min": 30, "max": 20})),
            "network.bottleneck.queue.min: found \"30 packets\"; allowed: less than max, \"20 packets\"",
        ),
        (
            queue(json!({"kind": "red", "limit": 4, "min": 5.5, "max": 20})),
            "network.bottleneck.queue.limit: found \"4 packets\"; allowed: at least min, \"5.5 packets\"",
        ),
        (
            queue(json!({"kind": "codel", "target": 200_000_000})),
            "network.bottleneck.queue.target: found \"200 ms\"; allowed: at most the interval of \"100 ms\"",
        ),
        (
            queue(json!({"kind": "threshold", "mark": 30, "limit": 20})),
            "network.bottleneck.queue.mark: found \"30 packets\"; allowed: at most the limit of \"20 packets\"",
        ),
        (
            queue(json!({"kind": "drop-tail", "limit": {"bytes": 10}})),
            "network.bottleneck.queue.limit: found \"10 bytes\"; allowed: at least 1500 bytes (one full packet)",
        ),
        (
            queue(json!({"kind": "drop-tail", "limit": {"packets": 0}})),
            "network.bottleneck.queue.limit: found a table; allowed: 1 to 1000000000 packets, or 1 to 1000000000000000 bytes",
        ),
        (
            loss(json!({"first": 5, "last": 1})),
            "network.bottleneck.loss.drops.0.last: found 1; allowed: 5 (first) or more",
        ),
        (
            loss(json!({"first": 5, "flow": 7})),
            "network.bottleneck.loss.drops.0.flow: found 7; allowed: 0, the only flow",
        ),
        (
            flow("stack", json!({"sack": false, "detection": "rack"})),
            "flows.0.stack.detection: found \"rack\" with sack = false; allowed: \"dupthresh\", no detection, or sack = true",
        ),
        (
            flow("stack", json!({"socket_buffer": 70_000, "receive_buffer": 80_000})),
            "flows.0.stack.socket_buffer: found \"70000 bytes\" beside receive_buffer; allowed: one of the two",
        ),
        (
            flow("start_ns", json!(3_000_000_000_u64)),
            "flows.0.start: found \"3 s\"; allowed: a time below the duration of \"2 s\"",
        ),
        (
            with(&[("/flows/0/start_ns", json!(1_000_000_000)), ("/flows/0/stop_ns", json!(500_000_000))]),
            "flows.0.stop: found \"500 ms\"; allowed: a time after the start of the group's last flow",
        ),
        (
            with(&[("/record", json!({"warm_up_ns": 2_000_000_000_u64}))]),
            "record.warm_up: found \"2 s\"; allowed: a time below the duration of \"2 s\"",
        ),
        (
            with(&[(LINK, json!({"delay": 20_000_000}))]),
            "network.bottleneck.rate: found nothing; allowed: a rate with its unit, e.g. \"1.2 Mbit/s\"",
        ),
        (
            with(&[("/network/links", json!([{"name": "a", "link": {"delay": 5}}]))]),
            "network.links: found a value with topology \"chain\"; allowed: access, bottleneck, egress and reverse",
        ),
        (flow("path", json!("up")), "flows.0.path: found \"up\"; allowed: no path unless the topology is \"graph\""),
        (
            graph(json!([{"name": "p", "forward": ["b"], "backward": ["a"]}])),
            "network.paths.0.forward.0: found \"b\"; allowed: a",
        ),
        (
            graph(json!([{"name": "p", "forward": ["a", "a"], "backward": ["a"]}])),
            "network.paths.0.forward.1: found \"a\" twice; allowed: each link once",
        ),
        (
            with(&[("/flows/0/congestion_control", json!("pcc-vivace")), ("/flows/0/stack", json!({"tlp": false}))]),
            "flows.0.stack: found a setting of TCP with the controller \"pcc-vivace\"; allowed: no stack: PCC is a transport of its own, over datagrams",
        ),
        (
            with(&[("/flows/0/congestion_control", json!("pcc-vivace")), ("/flows/0/recovery", json!("prr-ssrb"))]),
            "flows.0.recovery: found a setting of TCP with the controller \"pcc-vivace\"; allowed: no recovery: PCC is a transport of its own, over datagrams",
        ),
        (
            with(&[(&format!("{LINK}/rate"), json!(1_000_000_000_000_000_000_u64))]),
            "network.bottleneck.rate: found 1000000000000000000; allowed: bit/s from 1 to 100000000000000",
        ),
        (
            flow("host", json!("h")),
            "flows.0.host: found \"h\"; allowed: no host; the scenario lists none",
        ),
        (flow("count", json!(0)), "flows.0.count: found 0; allowed: a whole number from 1 to 1000000"),
        (
            with(&[("/duration_ns", json!(4_000_000_000_000_000_000_u64))]),
            "duration_ns: found 4000000000000000000; allowed: nanoseconds from 1 to 3600000000000000",
        ),
    ];
    for (scenario, words) in impossible {
        assert_eq!(said(&scenario), words);
    }
    assert!(parse(&base().to_string()).and_then(|read| run(&read, 1)).is_ok());
}

#[test]
fn every_rule_that_is_broken_is_told() {
    let scenario = with(&[
        (&format!("{LINK}/queue"), json!({"kind": "codel", "target": 200_000_000})),
        ("/flows/0/start_ns", json!(3_000_000_000_u64)),
        ("/flows/0/path", json!("up")),
    ]);
    let read = parse(&scenario.to_string()).expect("it reads");
    let keys: Vec<String> =
        ackclock_sim::scenario::spec::check(&read, None).into_iter().map(|broken| broken.key).collect();
    assert_eq!(keys, ["network.bottleneck.queue.target", "flows.0.start", "flows.0.path"]);
}
