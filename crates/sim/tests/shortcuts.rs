//! Tests that shortcuts change nothing: runs without shortcuts are identical to runs with any of them.

use ackclock_sim::capture::Captured;
use ackclock_sim::{parse, run_taking, Bounds, Customs, Shortcuts, Table};
use proptest::prelude::*;

/// Observable results of a run: its digest, all of its tables, and the captured packets.
fn shown(scenario: &str, shortcuts: Shortcuts) -> (String, Vec<Table>, Vec<Captured>) {
    let scenario = parse(scenario).unwrap_or_else(|error| panic!("{error}: {scenario}"));
    let output = run_taking(&scenario, 1, &Customs::new(), &Bounds::NONE, shortcuts).expect("runs");
    (output.digest.hex(), output.tables, output.captured)
}

fn queue() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        r#"{"kind": "drop-tail", "limit": {"packets": 20}}"#,
        r#"{"kind": "drop-tail", "limit": {"bytes": 60000}}"#,
        r#"{"kind": "drop-tail"}"#,
        r#"{"kind": "codel"}"#,
        r#"{"kind": "fq-codel"}"#,
        r#"{"kind": "cake"}"#,
        r#"{"kind": "threshold", "mark": 5, "limit": 40}"#,
    ])
}

fn loss() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        12 => Just(""),
        2 => Just(r#""loss": {"kind": "bernoulli", "p": 0.01},"#),
        1 => Just(r#""loss": {"kind": "bernoulli", "p": 0.03, "applies_to": "originals"},"#),
        1 => Just(r#""loss": {"kind": "gilbert-elliott", "p": 0.01, "r": 0.3},"#),
        1 => Just(r#""loss": {"kind": "gilbert-elliott-in-time", "good": {"kind": "constant", "value": 0.3}, "bad": {"kind": "exponential", "mean": 0.004}},"#),
        1 => Just(r#""loss": {"kind": "policer", "rate": 5000000, "bucket": 30000, "per": "flow"},"#),
        1 => Just(r#""loss": {"kind": "load", "rate": 5000000, "full": 0.1},"#),
    ]
}

fn workload() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        r#"{"kind": "bulk"}"#,
        r#"{"kind": "bulk"}"#,
        r#"{"kind": "transfer", "bytes": 300000}"#,
        r#"{"kind": "fetch", "bytes": 20000, "count": 5}"#,
        r#"{"kind": "fetch", "bytes": 20000, "count": 5, "common_random_numbers": true}"#,
        // data in both directions at once: lost segments of a long request are retransmitted together with the
        // response
        r#"{"kind": "fetch", "bytes": 60000, "request": 60000, "count": 5}"#,
        r#"{"kind": "transactions", "bytes": {"kind": "constant", "value": 60000.0}, "request": 40000, "requests": 3, "batch": 2, "max_open": 8,
            "arrivals": {"kind": "poisson", "rate": 9.0}}"#,
    ])
}

/// Stack settings: the default, or one that affects trains.
fn stack() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "{}",
        "{}",
        "{}",
        r#"{"sack": false}"#,
        r#"{"limited_transmit": false}"#,
        r#"{"first_burst_cap": 3}"#,
        r#"{"mtu_probing": "always"}"#,
        r#"{"ecn": "ask"}"#,
        r#"{"ecn": "accecn"}"#,
        r#"{"tso": true}"#,
        r#"{"ack_splits": 3}"#,
    ])
}

fn controller() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["cubic", "reno", "bbr", "dctcp", "vegas"])
}

prop_compose! {
    fn link()(rate in 2_000_000u64..40_000_000, delay in 1_000u64..9_000_000, queue in queue(), loss in loss()) -> String {
        format!(r#"{{{loss} "rate": {rate}, "delay": {delay}, "queue": {queue}}}"#)
    }
}

prop_compose! {
    fn group()(
        count in 1u32..4,
        profile in prop::sample::select(vec!["linux-6", "linux-6", "rfc", "linux-3.2"]),
        controller in controller(),
        stack in stack(),
        workload in workload(),
        start in 0u64..200_000_000,
    ) -> String {
        format!(
            r#"{{"count": {count}, "profile": "{profile}", "congestion_control": "{controller}", "stack": {stack},
                "start_ns": {start}, "stagger_ns": 7654321, "workload": {workload}}}"#,
        )
    }
}

prop_compose! {
    /// One and a half seconds of a dumbbell, or of flows whose own links lead to one bottleneck.
    fn scenario()(
        links in prop::collection::vec(link(), 4),
        groups in prop::collection::vec(group(), 1..3),
        wishbone in any::<bool>(),
        record in prop::sample::select(vec![
            "{}", "{}", r#"{"capture": "sender"}"#, r#"{"trace": "all"}"#, r#"{"drops": true, "performance": true}"#,
            r#"{"queue_interval_ns": 7000000, "sample_interval_ns": 10000000}"#,
            r#"{"limits_interval_ns": 9000000, "sample_interval_ns": 10000000}"#,
        ]),
    ) -> String {
        let access = match wishbone {
            true => format!(r#""topology": "wishbone", "access_list": [{}]"#, [&links[0][..]; 9].join(", ")),
            false => format!(r#""topology": "dumbbell", "access": {}"#, links[0]),
        };
        format!(
            r#"{{"duration_ns": 1500000000, "record": {record}, "network": {{{access}, "bottleneck": {}, "egress": {},
                "reverse": {{"bottleneck": {}}}}}, "flows": [{}]}}"#,
            links[1], links[2], links[3], groups.join(","),
        )
    }
}

/// The response is a single byte: a client that waited for a second one would wait until the end of the connection.
#[test]
fn a_client_is_told_of_an_answer_of_one_byte() {
    let scenario = r#"{"duration_ns": 2000000000,
        "network": {"topology": "chain", "bottleneck": {"rate": 10000000, "delay": 10000000},
                    "reverse": {"bottleneck": {"delay": 10000000}}},
        "flows": [{"profile": "linux-6", "congestion_control": "cubic",
                   "workload": {"kind": "transactions", "request": 1, "bytes": {"kind": "constant", "value": 1.0}, "requests": 3,
                                "close": "client", "arrivals": {"kind": "at", "times": [0]}}}]}"#;
    let told = shown(scenario, Shortcuts::ALL);
    assert!(told == shown(scenario, Shortcuts { tells: false, ..Shortcuts::ALL }));
    let summary =
        told.1.iter().find(|table| table.name == "transaction_summary").expect("a table of transactions");
    assert_eq!(summary.integers("completed"), [3]);
}

proptest! {
    #[test]
    fn a_run_without_shortcuts_or_with_any_of_them_is_the_same(scenario in scenario(), some in 0usize..1 << Shortcuts::names().count()) {
        let with_all = shown(&scenario, Shortcuts::ALL);
        prop_assert!(with_all == shown(&scenario, Shortcuts::NONE), "none: {}", scenario);
        let names: Vec<&str> = Shortcuts::names().enumerate().filter(|(i, _)| some >> i & 1 == 1).map(|(_, name)| name).collect();
        let some = if names.is_empty() { "none".to_string() } else { names.join(",") };
        let shortcuts = Shortcuts::parse(&some).expect("names");
        prop_assert!(with_all == shown(&scenario, shortcuts), "{}: {}", some, scenario);
    }
}
