//! Small scenarios shared by the tests.

use ackclock_sim::{parse, Scenario, Table};

/// A dumbbell with `flows` bulk flows, a bottleneck of `mbps`, an RTT of 40 ms, and a one-BDP queue.
pub fn dumbbell(mbps: u64, flows: u64, seconds: u64, loss: f64, record: &str) -> Scenario {
    let rate = mbps * 1_000_000;
    let bdp = rate * 40 / 1000 / (8 * 1500);
    let edge = format!(r#"{{"rate": {}, "delay": 1000000}}"#, 10 * rate);
    let json = format!(
        r#"{{"duration_ns": {}, "network": {{"topology": "dumbbell", "access": {edge}, "egress": {edge},
            "bottleneck": {{"rate": {rate}, "delay": 18000000, "loss": {{"kind": "bernoulli", "p": {loss}}},
                            "queue": {{"kind": "drop-tail", "limit": {{"packets": {bdp}}}}}}},
            "reverse": {{"bottleneck": {{"rate": {rate}, "delay": 18000000}}}}}},
          "flows": [{{"count": {flows}, "profile": "linux-6", "congestion_control": "cubic",
            "stagger_ns": 100000000, "workload": {{"kind": "bulk"}}}}],
          "record": {record}}}"#,
        seconds * 1_000_000_000,
    );
    parse(&json).expect("a valid scenario")
}

/// Network of the fetches in the kernel reference: 1.2 Mbit/s forward, infinite rate back, RTT 100 ms, 14 bytes of
/// framing.
pub fn fetches(workload: &str, seconds: u64, loss: f64, record: &str) -> Scenario {
    let loss = format!(r#""loss": {{"kind": "bernoulli", "p": {loss}}}"#);
    let json = format!(
        r#"{{"duration_ns": {}, "network": {{"topology": "chain", "framing_bytes": 14,
            "bottleneck": {{"rate": 1200000, "delay": 50000000, {loss},
                            "queue": {{"kind": "drop-tail", "limit": {{"packets": 100}}}}}},
            "reverse": {{"bottleneck": {{"delay": 50000000, {loss}}}}}}},
          "flows": [{{"profile": "linux-6", "congestion_control": "cubic", "workload": {workload}}}],
          "record": {record}}}"#,
        seconds * 1_000_000_000,
    );
    parse(&json).expect("a valid scenario")
}

/// Check that every packet accepted by a link was delivered, was dropped or is still there.
pub fn assert_conservation(links: &Table) {
    let [arrivals, loss, queue, delivered, held] =
        ["arrivals", "dropped_loss", "dropped_queue", "delivered", "held"].map(|name| links.integers(name));
    assert!(!arrivals.is_empty());
    for i in 0..arrivals.len() {
        assert_eq!(arrivals[i], loss[i] + queue[i] + delivered[i] + held[i], "link {i}");
    }
}
