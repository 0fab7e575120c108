//! Tests of the reasons to end a run early (memory, simulated time that does not advance, a request of the caller),
//! and that checking them does not change a run.

use std::cell::Cell;

use ackclock_core::Time;
use ackclock_sim::{estimate_memory, parse, run, run_with, Bounds, Customs, Error};

fn scenario(network: &str, flows: &str, rest: &str) -> ackclock_sim::Scenario {
    let flows = match flows.contains("congestion_control") {
        true => format!("{{{flows}}}"),
        false => format!(r#"{{"profile": "linux-6", "congestion_control": "cubic", {flows}}}"#),
    };
    let text = format!(
        r#"{{"duration_ns": 20000000000, "network": {{"topology": "chain", "bottleneck": {network}}}, "flows": [{flows}] {rest}}}"#
    );
    parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn refused(result: Result<ackclock_sim::Output, Error>) -> String {
    result.err().expect("it must end").to_string()
}

const BULK: &str = r#""workload": {"kind": "bulk"}"#;

#[test]
fn a_way_that_takes_no_time_is_refused_with_its_links() {
    let fastest = r#"{"rate": 100000000000000}"#;
    let said = refused(run(&scenario(fastest, BULK, ""), 1));
    assert!(said.starts_with("flows.0: found a way that takes no time (there: bottleneck"), "{said}");
    assert!(run(&scenario(r#"{"rate": 1000000}"#, BULK, ""), 1).is_ok());
    let datagrams = r#""workload": {"kind": "constant-rate", "rate": 1000000, "payload": 1000}"#;
    assert!(run(&scenario(fastest, datagrams, ""), 1).is_ok(), "nobody waits for an answer");
}

#[test]
fn an_instant_that_does_not_pass_ends_the_run() {
    let network = r#"{"rate": 1000000, "capacity": {"kind": "schedule", "steps": [
        {"at": 0, "rate": 1000000, "delay": 0}, {"at": 1000000000, "rate": 100000000000000, "delay": 0}]}}"#;
    let said = refused(run(&scenario(network, BULK, ""), 1));
    assert!(said.contains("33554432 events at 1.0") && said.contains("links bottleneck"), "{said}");
}

#[test]
fn memory_is_bounded_whatever_takes_it() {
    let datagrams = r#""workload": {"kind": "constant-rate", "rate": 1000000000, "payload": 1200}"#;
    let slow = r#"{"rate": 1000000, "delay": 1000000}"#;
    let late = r#"{"rate": 1000000000, "delay": 100000000000}"#;
    let small = r#"{"rate": 1000000, "queue": {"kind": "drop-tail", "limit": {"packets": 10}}}"#;
    let wide = r#"{"rate": 1000000000, "delay": 1000000}"#;
    let cases = [
        ("an unlimited queue", slow, datagrams, ""),
        ("the wire", late, datagrams, ""),
        ("dropped packets", small, datagrams, r#", "record": {"drops": true}"#),
        ("a trace", wide, BULK, r#", "record": {"trace": "all"}"#),
        ("a capture", wide, BULK, r#", "record": {"capture": "sender"}"#),
        ("a controller's variables", wide, BULK, r#", "record": {"controller": "all"}"#),
        ("samples", wide, BULK, r#", "record": {"sample_interval_ns": 1000}"#),
    ];
    for (what, network, flows, record) in cases {
        let bounds = Bounds { memory: Some(20 << 20), ..Bounds::NONE };
        let outcome = run_with(&scenario(network, flows, record), 1, &Customs::new(), &bounds);
        let said = refused(outcome);
        assert!(said.starts_with("memory_limit: found a run that needs "), "{what}: {said}");
        let needs: u64 = said.split(' ').nth(6).and_then(|mib| mib.parse().ok()).expect("a number");
        assert!((20..=60).contains(&needs), "{what}: {said}");
        assert_eq!(
            said,
            refused(run_with(&scenario(network, flows, record), 1, &Customs::new(), &bounds)),
            "the same bits"
        );
    }
}

#[test]
fn a_bound_that_is_not_reached_changes_nothing() {
    let scenario = scenario(r#"{"rate": 10000000, "delay": 1000000}"#, BULK, "");
    let bounds = Bounds { memory: Some(1 << 30), ..Bounds::NONE };
    let bounded = run_with(&scenario, 1, &Customs::new(), &bounds).expect("runs");
    assert_eq!(bounded.digest, run(&scenario, 1).expect("runs").digest);
}

#[test]
fn what_is_estimated_is_enough() {
    let udp = r#""workload": {"kind": "constant-rate", "rate": 200000000, "payload": 500}"#;
    let small = r#""workload": {"kind": "bulk"}, "stack": {"smss": 64}"#;
    let limited =
        r#"{"rate": 10000000, "delay": 1000000, "queue": {"kind": "drop-tail", "limit": {"packets": 50}}}"#;
    for (what, network, flows, record) in [
        ("datagrams pile up", r#"{"rate": 10000000, "delay": 1000000}"#, udp, ""),
        ("drops", limited, udp, r#", "record": {"drops": true}"#),
        ("small segments, traced", limited, small, r#", "record": {"trace": "all"}"#),
        ("traced", limited, BULK, r#", "record": {"trace": "all"}"#),
    ] {
        let mut scenario = scenario(network, flows, record);
        scenario.duration_ns = 5_000_000_000;
        let estimate = estimate_memory(&scenario);
        let bounds = Bounds { memory: Some(estimate), ..Bounds::NONE };
        let outcome = run_with(&scenario, 1, &Customs::new(), &bounds);
        assert!(outcome.is_ok(), "{what}: {} MiB estimated, {}", estimate >> 20, refused(outcome));
    }
}

/// PCC doubles its rate blindly while the first result is delayed by the queue: tens of datagrams are dropped for
/// each one carried.
#[test]
fn what_pcc_drops_at_its_start_is_estimated() {
    let deep =
        r#"{"rate": 5000000, "delay": 1000000, "queue": {"kind": "drop-tail", "limit": {"packets": 100}}}"#;
    let pcc = r#""congestion_control": "pcc-allegro", "count": 3, "workload": {"kind": "bulk"}"#;
    let mut scenario = scenario(deep, pcc, r#", "record": {"drops": true}"#);
    scenario.duration_ns = 1_000_000_000;
    let estimate = estimate_memory(&scenario);
    let outcome = run_with(&scenario, 1, &Customs::new(), &Bounds { memory: Some(estimate), ..Bounds::NONE });
    assert!(outcome.is_ok(), "{} MiB estimated, {}", estimate >> 20, refused(outcome));
}

/// PCC has no row per ACK and no samples.
#[test]
fn what_pcc_does_not_record_takes_no_memory() {
    let link =
        r#"{"rate": 100000000, "delay": 5000000, "queue": {"kind": "drop-tail", "limit": {"packets": 50}}}"#;
    let pcc = r#""congestion_control": "pcc-allegro", "workload": {"kind": "bulk"}"#;
    let plain = estimate_memory(&scenario(link, pcc, ""));
    for record in [r#""trace": "all""#, r#""sample_interval_ns": 1000000"#] {
        let recorded = scenario(link, pcc, &format!(r#", "record": {{{record}}}"#));
        assert_eq!(estimate_memory(&recorded), plain, "{record}");
    }
    let rows = scenario(link, pcc, r#", "record": {"controller": "all"}"#);
    let of_rows = estimate_memory(&rows) - plain;
    let run = run(&rows, 1).expect("runs");
    let table = run.tables.iter().find(|table| table.name == "intervals").expect("is recorded");
    let intervals = table.rows() as u64;
    assert!((intervals * 250..intervals * 5000).contains(&of_rows), "{of_rows} bytes for {intervals} rows");
}

#[test]
fn a_run_that_takes_too_long_ends_and_says_how_far_it_came() {
    let network = r#"{"rate": 1000000000, "delay": 1000000}"#;
    let bounds = Bounds { cpu_s: Some(0.02), ..Bounds::NONE };
    let mut endless = scenario(network, BULK, "");
    endless.duration_ns = 3_600_000_000_000;
    let said = refused(run_with(&endless, 1, &Customs::new(), &bounds));
    assert!(said.starts_with("time_limit: found a run that takes longer, at "), "{said}");
    assert!(said.ends_with("allowed: 0.02 s of CPU time"), "{said}");
}

#[test]
fn the_caller_ends_a_run() {
    let asked = Cell::new(0);
    let told = Cell::new(Time::ZERO);
    let stop = |now| {
        assert!(now >= told.get(), "time goes forward");
        told.set(now);
        asked.set(asked.get() + 1);
        asked.get() == 3
    };
    let network = r#"{"rate": 1000000000, "delay": 1000000}"#;
    let bounds = Bounds { stop: &stop, ..Bounds::NONE };
    let outcome = run_with(&scenario(network, BULK, ""), 1, &Customs::new(), &bounds);
    assert!(matches!(outcome, Err(Error::Stopped)));
    assert_eq!(asked.get(), 3);
    assert!(told.get() > Time::ZERO, "it is told how far the run is");
}

#[test]
fn a_packet_that_meets_too_many_changes_ends_the_run() {
    let network = r#"{"rate": 1, "capacity": {"kind": "random", "every": 1,
        "rate": {"kind": "constant", "value": 10.0}}}"#;
    let said = refused(run(&scenario(network, BULK, ""), 1));
    assert!(said.contains("changes of the capacity of link bottleneck"), "{said}");
}
