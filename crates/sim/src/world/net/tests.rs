//! Tests that passing packets ahead of time gives the same run as one event per packet, and that observing a run does
//! not change it.

use proptest::prelude::*;

use crate::{parse, run_taking, Bounds, Customs, Shortcuts};

/// Every packet has its own events.
const NOTHING_AHEAD: Shortcuts =
    Shortcuts { events: false, ahead: false, told_late: false, junctions: false, ..Shortcuts::ALL };

/// Observable results of a run: its digest, and the counters of links, queues and flows.
fn shown(scenario: &str, nothing_ahead: bool) -> (String, Vec<String>) {
    let shortcuts = if nothing_ahead { NOTHING_AHEAD } else { Shortcuts::ALL };
    let scenario = parse(scenario).expect("a valid scenario");
    let output = run_taking(&scenario, 1, &Customs::new(), &Bounds::NONE, shortcuts).expect("a run");
    let tables = ["links", "flows", "queue_samples"].map(|name| format!("{:?}", output.table(name)));
    (output.digest.hex(), tables.to_vec())
}

fn queue() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        4 => Just(r#"{"kind": "drop-tail", "limit": {"packets": 20}}"#),
        1 => Just(r#"{"kind": "drop-tail"}"#),
        1 => Just(r#"{"kind": "codel"}"#),
        1 => Just(r#"{"kind": "fq-codel"}"#),
        1 => Just(r#"{"kind": "fq-codel", "limit": 30, "target": 1000000}"#),
        1 => Just(r#"{"kind": "cake"}"#),
        1 => Just(r#"{"kind": "choke", "limit": 40, "min": 5, "max": 15}"#),
        1 => Just(r#"{"kind": "dualpi2"}"#),
        1 => Just(r#"{"kind": "netem-limit", "limit": 30}"#),
        1 => Just(r#"{"kind": "threshold", "mark": 5, "limit": 40}"#),
    ]
}

fn loss() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        16 => Just(""),
        2 => Just(r#""loss": {"kind": "bernoulli", "p": 0.01},"#),
        1 => Just(r#""loss": {"kind": "bernoulli", "p": 0.03, "applies_to": "originals"},"#),
        1 => Just(r#""loss": {"kind": "gilbert-elliott", "p": 0.01, "r": 0.3},"#),
        1 => Just(r#""loss": {"kind": "gilbert-elliott-in-time", "good": {"kind": "constant", "value": 0.3}, "bad": {"kind": "exponential", "mean": 0.004}},"#),
        1 => Just(r#""loss": {"kind": "policer", "rate": 5000000, "bucket": 30000, "per": "flow"},"#),
        1 => Just(r#""loss": {"kind": "load", "rate": 5000000, "full": 0.1},"#),
    ]
}

fn workload() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        3 => Just(r#"{"kind": "bulk"}"#),
        1 => Just(r#"{"kind": "transfer", "bytes": 300000}"#),
        1 => Just(r#"{"kind": "fetch", "bytes": 20000, "count": 5}"#),
        1 => Just(r#"{"kind": "fetch", "bytes": 20000, "count": 5, "common_random_numbers": true}"#),
    ]
}

prop_compose! {
    fn link()(rate in 2_000_000u64..40_000_000, delay in 1_000u64..9_000_000, queue in queue(), loss in loss()) -> String {
        format!(r#"{{{loss} "rate": {rate}, "delay": {delay}, "queue": {queue}}}"#)
    }
}

proptest! {
    #[test]
    fn nobody_sees_that_links_are_told_ahead(
        links in prop::collection::vec(link(), 3),
        groups in prop::collection::vec((1u32..4, workload(), prop::sample::select(vec!["cubic", "reno", "bbr"]), 0u64..200_000_000), 1..4),
        samples in prop_oneof![Just(None), (3_000_000u64..400_000_000).prop_map(Some)],
        noise in 0u64..900_001,
    ) {
        let groups: Vec<String> = groups
            .iter()
            .map(|(count, workload, control, start)| format!(
                r#"{{"count": {count}, "profile": "linux-6", "congestion_control": "{control}",
                    "start_ns": {start}, "stagger_ns": {}, "workload": {workload}}}"#,
                7_654_321 + noise,
            ))
            .collect();
        let queues = samples.map_or(String::new(), |every| format!(r#""record": {{"queue_interval_ns": {every}}},"#));
        let scenario = format!(
            r#"{{"duration_ns": 1500000000, {queues} "network": {{"topology": "dumbbell",
                "access": {}, "bottleneck": {}, "egress": {}}}, "flows": [{}]}}"#,
            links[0], links[1], links[2], groups.join(","),
        );
        prop_assert_eq!(shown(&scenario, false), shown(&scenario, true), "{}", scenario);
    }

    /// Delays in whole milliseconds and rates that are multiples of each other, so that packets often meet in the
    /// same nanosecond.
    #[test]
    fn ties_are_broken_alike_however_often_somebody_looks(
        delays in prop::collection::vec(prop::sample::select(vec![1u64, 2, 5, 10, 15, 35]), 2..5),
        access in prop::sample::select(vec![20u64, 40, 100, 200]),
        delay in prop::sample::select(vec![1u64, 5, 20]),
        limit in prop::sample::select(vec![5u32, 20, 60]),
        egress in prop_oneof![Just(""), Just(r#""egress": {"rate": 200000000, "delay": 1000000},"#)],
        (control, workload) in (prop::sample::select(vec!["cubic", "reno", "bbr"]), workload()),
        samples in prop::collection::vec(prop::sample::select(vec![700_000u64, 1_000_000, 5_000_000, 7_000_000, 50_000_000]), 2),
    ) {
        let n = delays.len();
        let links: Vec<String> =
            delays.iter().map(|ms| format!(r#"{{"rate": {access}000000, "delay": {ms}000000}}"#)).collect();
        let scenario = |record: &str| format!(
            r#"{{"duration_ns": 1500000000, {record} "network": {{"topology": "wishbone", "access_list": [{}], {egress}
                "bottleneck": {{"rate": 20000000, "delay": {delay}000000, "queue": {{"kind": "drop-tail", "limit": {{"packets": {limit}}}}}}}}},
                "flows": [{{"count": {n}, "profile": "linux-6", "congestion_control": "{control}", "workload": {workload}}}]}}"#,
            links.join(","),
        );
        let silent = scenario("");
        prop_assert_eq!(shown(&silent, false), shown(&silent, true), "{}", silent);
        for every in samples {
            let sampled = scenario(&format!(r#""record": {{"queue_interval_ns": {every}}},"#));
            let looked = shown(&sampled, false);
            prop_assert_eq!(&looked, &shown(&sampled, true), "{}", sampled);
            prop_assert_eq!(&looked.0, &shown(&silent, false).0, "{}", sampled);
        }
    }
}
