//! Tests that scenarios can be read from their text without Python: all scenarios of the package, and errors in
//! others.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ackclock_sim::scenario::spec::files::{Disk, Embedded};
use ackclock_sim::scenario::spec::read::{read, Refused};
use ackclock_sim::{parse, run};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

#[test]
fn every_scenario_of_the_package_is_read_and_its_text_reads_as_the_same() {
    let mut read_ones = 0;
    for entry in std::fs::read_dir(folder()).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|kind| kind == "toml") {
            let text = std::fs::read_to_string(&path).expect("text");
            let made = read(&text, &Disk(folder())).unwrap_or_else(|wrong| panic!("{path:?}: {wrong:?}"));
            let mut again = parse(&made.text(None)).expect("its own text");
            // descriptive text is not part of the compiled text
            for (group, told) in again.flows.iter_mut().zip(&made.scenario.flows) {
                (group.name, group.transport) = (told.name.clone(), told.transport);
            }
            again.record.performance = made.scenario.record.performance;
            assert_eq!(again, *made.scenario, "{path:?}");
            read_ones += 1;
        }
    }
    assert!(read_ones > 30, "{read_ones}");
}

const LINK: &str = "[network]\nbottleneck = { rate = \"10 Mbit/s\", delay = \"20 ms\" }\n[[flows]]\n";

fn wrong(text: &str) -> Vec<(String, Option<(usize, usize)>)> {
    let refused = read(text, &Embedded(BTreeMap::new())).err().expect("refused");
    let told = |one: Refused| (one.refusal.key, one.place.map(|place| (place.line, place.column)));
    refused.into_iter().map(told).collect()
}

#[test]
fn a_refusal_knows_its_place() {
    let text = format!("duration = \"2 s\"\nnmae = \"x\"\n{LINK}congestion_control = \"cubik\"\nstart = 5\n");
    assert_eq!(
        wrong(&text),
        [
            ("nmae".to_string(), Some((2, 1))),
            ("flows.0.congestion_control".to_string(), Some((6, 22))),
            ("flows.0.start".to_string(), Some((7, 9))),
            ("flows.0.start".to_string(), Some((7, 9))), // a duration, or a distribution
        ]
    );
    let late = format!("duration = \"2 s\"\n{LINK}start = \"3 s\"\n");
    assert_eq!(wrong(&late), [("flows.0.start".to_string(), Some((5, 9)))]);
    assert_eq!(wrong("duration = \"2 s\n"), [(String::new(), Some((1, 16)))]);
}

#[test]
fn a_trace_may_be_in_the_program() {
    let text = "duration = \"1 s\"\n[network]\nbottleneck = { delay = \"5 ms\", queue = { kind = \"drop-tail\", limit = \"2 BDP\" }, \
                capacity = { kind = \"mahimahi\", file = \"x\" } }\n[[flows]]\n";
    let files = Embedded(BTreeMap::from([("x".to_string(), b"0\n1\n1\n2\n".to_vec())]));
    let made = read(text, &files).expect("a scenario");
    // four 1500-byte opportunities in 2 ms for an RTT of 10 ms: 20 packets
    assert!(made.text(None).contains("\"limit\": {\"packets\": 40}"), "{}", made.text(None));
    assert_ne!(run(&made.scenario, 1).expect("runs").digest.hex(), "");
    let broken = Embedded(BTreeMap::from([("x".to_string(), b"0\n-1\n".to_vec())]));
    let refused = read(text, &broken).err().expect("refused").remove(0).refusal;
    assert_eq!(refused.key, "network.bottleneck.capacity.file");
    assert!(refused.found.contains("\"-1\" in x, line 2"), "{refused}");
}
