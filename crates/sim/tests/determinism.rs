//! Tests that a run is a pure function of scenario and seed, and that observing it changes nothing.

use crate::common::{dumbbell, fetches};
use ackclock_sim::{run, run_batch};

#[test]
fn same_seed_same_bits_another_seed_others() {
    let scenario = dumbbell(20, 3, 5, 0.01, "{}");
    let [a, b, c] = [1, 1, 2].map(|seed| run(&scenario, seed).expect("runs"));
    assert_eq!(a.digest, b.digest);
    assert!(a.tables == b.tables);
    assert_ne!(a.digest, c.digest);
}

#[test]
fn recording_does_not_change_a_run() {
    let all = r#"{"trace": "all", "capture": "sender", "drops": true, "sample_interval_ns": 10000000,
                  "queue_interval_ns": 7000000, "goodput_interval_ns": 300000000}"#;
    let plain = run(&dumbbell(20, 3, 5, 0.01, "{}"), 1).expect("runs");
    let watched = run(&dumbbell(20, 3, 5, 0.01, all), 1).expect("runs");
    assert_eq!(plain.digest, watched.digest);
    for table in ["flows", "links", "recoveries"] {
        assert!(plain.table(table) == watched.table(table), "{table}");
    }
    for table in ["acks", "drops", "samples", "queue_samples", "goodput"] {
        assert_eq!(plain.table(table).rows(), 0, "{table}");
        assert!(watched.table(table).rows() > 0, "{table}");
    }
    assert!(plain.captured.is_empty() && !watched.captured.is_empty());

    let workload = r#"{"kind": "fetch", "bytes": 76800, "count": 10}"#;
    let plain = run(&fetches(workload, 60, 0.02, "{}"), 3).expect("runs");
    let watched = run(&fetches(workload, 60, 0.02, all), 3).expect("runs");
    assert_eq!(plain.digest, watched.digest);
}

#[test]
fn the_number_of_threads_cannot_be_seen() {
    let scenario = dumbbell(10, 2, 3, 0.01, r#"{"drops": true}"#);
    let seeds = [5, 3, 8, 1, 9];
    let mut told = Vec::new();
    let one = run_batch(&scenario, &seeds, 1, |done| {
        told.push(done);
        true
    });
    let two = run_batch(&scenario, &seeds, 2, |_| true);
    let (one, two) = (one.expect("runs"), two.expect("runs"));
    assert_eq!(one.digests, two.digests);
    assert!(one.tables == two.tables);
    assert_eq!(told.last(), Some(&5));
    assert_eq!(one.tables[0].integers("seed"), [5, 5, 3, 3, 8, 8, 1, 1, 9, 9]);
    assert_eq!(one.digests[3], run(&scenario, 1).expect("runs").digest);
    assert!(run_batch(&scenario, &seeds, 2, |_| false).is_err());
}
