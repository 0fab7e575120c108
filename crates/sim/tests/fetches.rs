//! End-to-end tests of fetches and populations.

use crate::common::{assert_conservation, fetches};
use ackclock_sim::{estimate_memory, parse, run};

#[test]
fn without_loss_a_fetch_takes_what_the_kernel_reference_measured() {
    // measured: 7680 bytes in 254.776 ms, connect 100.495 ms, first byte 211.029 ms
    let workload = r#"{"kind": "fetch", "bytes": 7680, "count": 5, "pause": 2000000000}"#;
    let output = run(&fetches(workload, 20, 0.0, "{}"), 1).expect("runs");
    let table = output.table("fetches");
    let close = |a: f64, b: f64| (a / b - 1.0).abs() < 0.01;
    assert_eq!(table.rows(), 5);
    for i in 0..5 {
        assert!(close(table.floats("total_s")[i], 0.254_776), "{:?}", table.floats("total_s"));
        assert!(close(table.floats("connect_s")[i], 0.100_495));
        assert!(close(table.floats("first_byte_s")[i], 0.211_029));
        assert_eq!(table.integers("data_segments_sent")[i], 6);
    }
    let starts = table.floats("start_s");
    assert!(close(starts[1] - starts[0], 2.254_776));
    assert_conservation(output.table("links"));
}

#[test]
fn every_fetch_ends_under_loss() {
    let workload = r#"{"kind": "fetch", "bytes": 76800, "count": 100, "pause": 100000000}"#;
    let output = run(&fetches(workload, 1000, 0.03, "{}"), 1).expect("runs");
    let table = output.table("fetches");
    assert_eq!(table.rows(), 100);
    assert!(table.floats("total_s").iter().all(|t| t.is_finite()));
    assert!(table.integers("data_retransmissions").iter().sum::<i64>() > 50);
    let sent: i64 = table.integers("data_segments_sent").iter().sum();
    assert!((5400..5900).contains(&sent), "{sent}"); // 54 segments each, and about 3 % retransmissions
    assert!(output.table("flows").floats("completion_s")[0].is_finite());
    assert_conservation(output.table("links"));
}

#[test]
fn a_dead_network_gives_failed_fetches() {
    let workload = r#"{"kind": "fetch", "bytes": 100, "count": 2, "timeout": 5000000000}"#;
    let output = run(&fetches(workload, 30, 1.0, "{}"), 1).expect("runs");
    let table = output.table("fetches");
    assert_eq!(table.floats("start_s"), [0.0, 5.0]);
    assert!(table.floats("total_s").iter().all(|t| t.is_nan()));
    assert!(table.integers("syn_retransmissions").iter().all(|&n| n >= 3));
}

#[test]
fn common_random_numbers_make_a_fetch_independent_of_those_before() {
    let fetch = |bytes: u64, crn: bool| {
        let workload = format!(
            r#"{{"kind": "fetch", "bytes": {bytes}, "count": 40, "pause": 1000000000,
                "common_random_numbers": {crn}}}"#
        );
        let output = run(&fetches(&workload, 1000, 0.05, "{}"), 1).expect("runs");
        output.table("fetches").floats("connect_s").iter().map(|t| (t * 10.0) as u32).collect::<Vec<_>>()
    };
    // the handshake of the k-th fetch sees the same losses, whatever happened in earlier fetches (up to timer ticks)
    assert_eq!(fetch(7_680, true), fetch(30_000, true));
    assert_ne!(fetch(7_680, false), fetch(30_000, false));
}

fn population(clients: u32, throttle: &str) -> String {
    format!(
        r#"{{"duration_ns": 60000000000, "network": {{"topology": "chain", "bottleneck": {{"rate": 1000000}}}},
          "flows": [{{"profile": "linux-6", "congestion_control": "cubic", "stagger_ns": 1000000,
            "workload": {{"kind": "population", "clients": {clients}, "requests": 2, {throttle}
              "rtt": {{"kind": "lognormal", "median": 0.1, "sigma": 0.5}},
              "rate": {{"kind": "choice", "values": [1e6, 5e6]}},
              "loss": {{"kind": "uniform", "low": 0.0, "high": 0.02}},
              "bytes": {{"kind": "exponential", "mean": 50000}}}}}}]}}"#
    )
}

#[test]
fn clients_of_a_population_are_alone_and_keep_their_values() {
    let few = run(&parse(&population(5, "")).expect("reads"), 1).expect("runs");
    let many = run(&parse(&population(20, "")).expect("reads"), 1).expect("runs");
    assert_eq!(many.table("fetches").rows(), 40);
    assert_eq!(many.table("clients").rows(), 20);
    assert_eq!(few.table("clients").floats("rtt_s"), &many.table("clients").floats("rtt_s")[..5]);
    assert_eq!(few.table("fetches").floats("total_s"), &many.table("fetches").floats("total_s")[..10]);
    assert!(many.table("fetches").floats("total_s").iter().all(|t| t.is_finite()));
    assert_conservation(many.table("links"));

    let paced = run(&parse(&population(5, r#""throttle": 0.1,"#)).expect("reads"), 1).expect("runs");
    let sum = |output: &ackclock_sim::Output| output.table("fetches").floats("total_s").iter().sum::<f64>();
    assert!(sum(&paced) >= sum(&few));
}

#[test]
fn memory_is_estimated_within_reason() {
    let mib = |json: &str| estimate_memory(&parse(json).expect("reads")) >> 20;
    assert!((8..100).contains(&mib(&population(1000, ""))), "{}", mib(&population(1000, "")));
    let dumbbell = crate::common::dumbbell(100, 10, 60, 0.0, "{}");
    let traced = crate::common::dumbbell(100, 10, 60, 0.0, r#"{"trace": "all"}"#);
    let (plain, traced) = (estimate_memory(&dumbbell), estimate_memory(&traced));
    assert!(plain < 40 << 20, "{plain}");
    assert!(traced > 400 << 20 && traced < 2 << 30, "{traced}");
}
