//! Links told ahead of time give the run that events for every packet give.

use std::cell::Cell;

use proptest::prelude::*;

use crate::{parse, run};

thread_local! {
    /// Every packet has its events: see `World::set_horizon`.
    pub(super) static NOTHING_AHEAD: Cell<bool> = const { Cell::new(false) };
}

/// What a run shows: its digest, and all that links, queues and flows counted.
fn shown(scenario: &str, nothing_ahead: bool) -> (String, Vec<String>) {
    NOTHING_AHEAD.set(nothing_ahead);
    let output = run(&parse(scenario).expect("a valid scenario"), 1).expect("a run");
    NOTHING_AHEAD.set(false);
    let tables = ["links", "flows", "queue_samples"].map(|name| format!("{:?}", output.table(name)));
    (output.digest.hex(), tables.to_vec())
}

fn queue() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        4 => Just(r#"{"kind": "drop-tail", "limit": {"packets": 20}}"#),
        1 => Just(r#"{"kind": "drop-tail"}"#),
        1 => Just(r#"{"kind": "codel"}"#),
        1 => Just(r#"{"kind": "fq-codel"}"#),
        1 => Just(r#"{"kind": "netem-limit", "limit": 30}"#),
        1 => Just(r#"{"kind": "threshold", "mark": 5, "limit": 40}"#),
    ]
}

fn loss() -> impl Strategy<Value = &'static str> {
    prop_oneof![4 => Just(""), 1 => Just(r#""loss": {"kind": "bernoulli", "p": 0.01},"#)]
}

fn workload() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        3 => Just(r#"{"kind": "bulk"}"#),
        1 => Just(r#"{"kind": "transfer", "bytes": 300000}"#),
        1 => Just(r#"{"kind": "fetch", "bytes": 20000, "count": 5}"#),
    ]
}

prop_compose! {
    fn link()(rate in 2_000_000u64..40_000_000, delay in 1_000u64..9_000_000, queue in queue(), loss in loss()) -> String {
        format!(r#"{{{loss} "rate": {rate}, "delay": {delay}, "queue": {queue}}}"#)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

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
}
