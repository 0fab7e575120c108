use std::sync::{Arc, Mutex};

use ackclock_cc::controller::{AckSample, CongestionControl, Custom, Maker};
use ackclock_cc::Window;

use super::*;
use crate::runs::run::{parse, run};
use ackclock_core::{Digest, Span};
use ackclock_net::Asks;

fn scenario(segments: u32, flow: &str, loss: &str) -> Scenario {
    let json = format!(
        r#"{{"duration_ns": 60000000000, "network": {{"topology": "chain", "bottleneck": {{"rate": 10000000, "delay": 25000000,
        "queue": {{"kind": "drop-tail", "limit": {{"packets": 1000}}}}{loss}}}}},
        "flows": [{{"profile": "linux-6", "congestion_control": "cubic", {flow}
                   "workload": {{"kind": "transfer", "bytes": {}}}}}]}}"#,
        1448 * segments
    );
    parse(&json).expect("reads")
}

fn losses(first: u32) -> Rules {
    Rules { asks: Asks::Originals, fate: Fate::Lost, first, most: first, burst: None }
}

const GO_ON: &(dyn Fn() -> bool + Sync) = &|| false;

fn every(proof: &Proof, split: u32, threads: usize) -> Vec<Leaf> {
    let tasks: Vec<usize> = (0..proof.tasks(split).expect("valid")).collect();
    let made = proof.run(split, &tasks, threads, |_| true).expect("valid");
    made.into_iter().flat_map(|leaves| leaves.all).collect()
}

/// Digest and completion time of an ordinary run with these losses.
fn brute(segments: u32, flow: &str, answers: u128) -> (Digest, Option<u64>) {
    let drops: Vec<String> = (0..segments)
        .filter(|k| answers >> k & 1 == 1)
        .map(|k| format!(r#"{{"first": {}}}"#, k + 1))
        .collect();
    let loss = format!(r#", "loss": {{"kind": "scripted", "drops": [{}]}}"#, drops.join(", "));
    let output = run(&scenario(segments, flow, &loss), 1).expect("valid");
    let table = output.table("flows");
    let column = table.columns.iter().find(|(name, _)| *name == "completion_s").expect("a column");
    let took = match &column.1 {
        crate::tables::table::Column::F8(values) => values[0],
        _ => panic!("seconds"),
    };
    (output.digest, took.is_finite().then(|| (took * 1e9).round() as u64))
}

#[test]
fn every_leaf_is_the_run_with_the_listed_losses() {
    let customs = Customs::new();
    for (segments, flow) in
        [(8, r#""recovery": "prr-rfc9937","#), (7, r#""recovery": "rate-halving","#), (12, "")]
    {
        let proof = Proof::new(&scenario(segments, flow, ""), 1, &customs, losses(segments), GO_ON);
        let proof = proof.expect("valid").to_the_end();
        let leaves = every(&proof, 4, 2);
        assert_eq!(leaves.len(), 1 << segments);
        for (n, leaf) in leaves.iter().enumerate() {
            let answers = (n as u128).reverse_bits() >> (128 - segments);
            assert_eq!((leaf.answers, leaf.asked), (answers, segments));
            if segments < 12 || n % 16 == 3 {
                assert_eq!((leaf.digest, leaf.took), brute(segments, flow, answers), "{answers:b}");
            }
        }
    }
}

/// Adversaries of every kind: leaves of copied worlds are identical to runs from the beginning.
#[test]
fn copied_worlds_end_as_runs_from_the_beginning() {
    let customs = Customs::new();
    let limited = |asks, first, most| Rules { asks, fate: Fate::Lost, first, most, burst: None };
    let late = Rules { fate: Fate::Late(Span::from_ms(7)), most: 1, ..losses(10) };
    let marked = Rules { fate: Fate::Marked, most: 3, ..losses(8) };
    let burst = Rules { burst: Some(3), ..losses(9) };
    let ecn = r#""stack": {"ecn": "ask"},"#;
    let cases = [
        ("", limited(Asks::Data, 12, 2)),
        ("", limited(Asks::All, 40, 1)),
        (r#""profile": "linux-3.2","#, limited(Asks::Data, 9, 3)),
        ("", late),
        ("", burst),
        (ecn, marked),
    ];
    for (flow, rules) in cases {
        // a mark has no effect unless there is more to send
        let segments = if rules.fate == Fate::Marked { 14 } else { 8 };
        let scenario = match flow.contains("profile") {
            true => scenario(segments, "", ""),
            false => scenario(segments, flow, ""),
        };
        let proof = || Proof::new(&scenario, 1, &customs, rules, GO_ON).expect("valid").to_the_end();
        let (shared, alone) = (every(&proof(), 3, 2), every(&proof().unshared(), 3, 2));
        assert!(shared.len() > 8, "{rules:?}");
        assert_eq!(shared, alone, "{rules:?}");
        assert!(shared.windows(2).any(|two| two[0].digest != two[1].digest), "{rules:?}");
    }
}

/// 2^20 patterns of 20 segments: `cargo test --release -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn speed() {
    let customs = Customs::new();
    for rule in ["prr-rfc9937", "rfc6675", "rate-halving"] {
        let segments: u32 = std::env::var("SEGMENTS").ok().and_then(|n| n.parse().ok()).unwrap_or(16);
        let scenario = scenario(segments, &format!(r#""recovery": "{rule}","#), "");
        let proof = Proof::new(&scenario, 1, &customs, losses(segments), GO_ON).expect("valid");
        let before = crate::cpu::thread_seconds();
        let tasks: Vec<usize> = (0..proof.tasks(10).expect("valid")).collect();
        let (send, inbox) = mpsc::channel();
        let mut walk = Walk::new(&proof, &tasks, &|_| true);
        walk.send = Some(&send);
        walk.all(10).expect("valid");
        let spent = crate::cpu::thread_seconds() - before;
        let leaves: usize = inbox.try_iter().map(|made| made.expect("made").1.all.len()).sum();
        println!("{rule}: {leaves} leaves, {spent:.2} s of CPU, {:.2} us each", spent * 1e6 / leaves as f64);
    }
}

/// Controller with one field that copies may share.
struct Shares {
    acks: Arc<Mutex<u32>>,
    deep: bool,
}

impl CongestionControl for Shares {
    fn on_ack(&mut self, window: &mut Window, _: &AckSample) {
        let mut acks = self.acks.lock().expect("one thread");
        *acks += 1;
        window.cwnd += acks.is_multiple_of(3) as u32;
    }
    fn ssthresh(&mut self, window: &Window, _: u32) -> u32 {
        (window.cwnd / 2).max(2)
    }
    fn copied(&self) -> Result<Custom, String> {
        let acks = if self.deep {
            Arc::new(Mutex::new(*self.acks.lock().expect("one thread")))
        } else {
            self.acks.clone()
        };
        Ok(Box::new(Shares { acks, deep: self.deep }))
    }
}

/// With a shared field, leaves differ from runs from the beginning, so the comparison in the other tests detects it.
#[test]
fn a_copy_that_shares_a_field_is_noticed() {
    for deep in [true, false] {
        let make = move || Box::new(Shares { acks: Arc::default(), deep }) as Custom;
        let mut customs = Customs::new();
        customs.controllers.insert("shares".to_string(), Maker::new(make));
        let mut scenario = scenario(20, "", "");
        scenario.flows[0].congestion_control = "custom:shares".to_string();
        let proof = || Proof::new(&scenario, 1, &customs, losses(8), GO_ON).expect("valid").to_the_end();
        let (shared, alone) = (every(&proof(), 3, 1), every(&proof().unshared(), 3, 1));
        assert_eq!(shared.len(), alone.len());
        assert_eq!(shared == alone, deep);
    }
}

#[test]
fn what_cannot_be_copied_is_refused_by_name() {
    let customs = Customs::new();
    let said = |flow: &str| {
        let scenario = scenario_of(flow);
        Proof::new(&scenario, 1, &customs, losses(3), GO_ON).expect("valid").cannot_share().expect("valid")
    };
    assert_eq!(said(r#""workload": {"kind": "transfer", "bytes": 20000}"#), None);
    let transactions = r#""workload": {"kind": "transactions", "request": 200, "bytes": {"kind": "constant", "value": 9000}, "arrivals": {"kind": "poisson", "rate": 3.0}}"#;
    assert_eq!(said(transactions).as_deref(), Some("found transactions, whose flows share counts"));
    #[cfg(feature = "quinn")]
    {
        let quic = r#""congestion_control": "quinn:cubic", "workload": {"kind": "transfer", "bytes": 20000}"#;
        assert_eq!(said(quic).as_deref(), Some("found a stack that others have written"));
    }
}

fn scenario_of(flow: &str) -> Scenario {
    parse(&format!(
        r#"{{"duration_ns": 9000000000, "network": {{"topology": "chain", "bottleneck": {{"rate": 10000000, "delay": 25000000}}}},
        "flows": [{{{flow}}}]}}"#
    ))
    .expect("reads")
}
