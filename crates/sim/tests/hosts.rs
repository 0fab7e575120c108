//! End-to-end tests of flows on imperfect hosts.

use crate::common::assert_conservation;
use ackclock_sim::{parse, run, Output};

/// A 1 Gb/s access link and a 100 Mb/s bottleneck with a queue of `queue` packets; the RTT is 30 ms. Both ends run on
/// the given hosts.
fn play(flow: &str, hosts: &str, queue: u32, seconds: u64) -> Output {
    let json = format!(
        r#"{{"duration_ns": {}, "network": {{"topology": "chain", "access": {{"rate": 1000000000}},
            "bottleneck": {{"rate": 100000000, "delay": 15000000,
                            "queue": {{"kind": "drop-tail", "limit": {{"packets": {queue}}}}}}}}},
          "flows": [{{"profile": "linux-6", "congestion_control": "cubic", {flow}}}], "hosts": [{hosts}]}}"#,
        seconds * 1_000_000_000
    );
    let output = run(&parse(&json).expect("reads"), 1).expect("runs");
    assert_conservation(output.table("links"));
    output
}

const CONSTANT: &str = r#""workload": {"kind": "constant-rate", "rate": 99000000, "payload": 1472}"#;
const BULK: &str = r#""workload": {"kind": "bulk"}"#;

/// Send datagrams at 99 Mb/s from a sender on this host. Returns the number sent and the fraction that arrived.
fn paced(host: &str, queue: u32) -> (f64, f64, Output) {
    let flow = format!(r#"{CONSTANT}, "host": "a""#);
    let output = play(&flow, &format!(r#"{{"name": "a", {host}}}"#), queue, 20);
    let sent = output.table("flows").integers("sent_packets")[0] as f64;
    let lost = output.table("links").integers("dropped_queue").iter().sum::<i64>() as f64;
    (sent, 1.0 - lost / sent, output)
}

fn burst(output: &Output) -> u32 {
    match output.table("flows").column("largest_burst") {
        Some(ackclock_sim::Column::U4(v)) => v[0],
        _ => unreachable!("the table has it"),
    }
}

const STALLS: &str = r#""gate": {"kind": "times", "on": {"kind": "exponential", "mean": 0.1}, "off": {"kind": "constant", "value": 0.005}}"#;

#[test]
fn a_perfect_host_changes_nothing() {
    let paced = format!(r#"{BULK}, "stack": {{"pacing": true}}"#);
    for flow in [CONSTANT, BULK, &paced] {
        let without = play(flow, "", 20, 5);
        let flow = format!(r#"{flow}, "host": "a", "peer_host": "b""#);
        let with = play(&flow, r#"{"name": "a"}, {"name": "b", "shared": false}"#, 20, 5);
        assert_eq!(without.digest, with.digest);
        assert_eq!(without.table("flows"), with.table("flows"));
        assert_eq!(with.table("hosts").rows(), 2);
    }
}

/// Lateness that is not made up reduces the packets sent by the fraction of time stalled, but none is dropped.
/// Lateness that is made up is sent as a burst of 8.3 packets per ms of stall. A tenth of the burst is forwarded
/// while it arrives, and the queue drops the packets beyond its limit.
#[test]
fn stalls_with_and_without_catching_up() {
    let (all, ..) = paced(r#""shared": true"#, 20);
    assert_eq!(all, 165_000.0);
    let (sent, arrived, output) = paced(&format!(r#"{STALLS}, "catch_up": "none""#), 20);
    let stalled = output.table("hosts").floats("stalled_share")[0];
    assert!((sent / all - (1.0 - stalled)).abs() < 0.002, "{sent} {stalled}");
    assert_eq!((arrived, burst(&output)), (1.0, 1));

    let (sent, arrived, output) = paced(&format!(r#"{STALLS}, "catch_up": "full""#), 20);
    assert_eq!(sent, all);
    let stalls = output.table("hosts").integers("stalls")[0] as f64;
    // 41 packets, plus those that become due while the burst is sent at 1 Gb/s
    assert!((42..=48).contains(&burst(&output)), "{}", burst(&output));
    let lost_each = (1.0 - arrived) * sent / stalls;
    assert!((lost_each - (45.0 * 0.9 - 20.0)).abs() < 3.0, "{lost_each} lost in each stall");

    let (sent, arrived, output) = paced(&format!(r#"{STALLS}, "catch_up": "burst", "burst": 10"#), 20);
    assert!(sent < all && arrived == 1.0);
    assert!((11..=13).contains(&burst(&output)), "{}", burst(&output));
}

/// A 1 ms tick sends 8.25 packets at once. With a queue of q packets, the bottleneck accepts q + 1 of them (PCC
/// sheet, 4.4).
#[test]
fn ticks_cap_what_a_shallow_queue_lets_through() {
    for queue in [1, 3, 5] {
        let (sent, arrived, _) = paced(r#""tick": 1000000"#, queue);
        assert!((sent - 165_000.0).abs() < 10.0);
        let cap = (queue as f64 + 1.0) / 8.25;
        assert!((arrived / cap - 1.0).abs() < 0.08, "{queue}: {arrived} {cap}");
    }
    assert_eq!(paced(r#""tick": 1000000"#, 8).1, 1.0);
    assert_eq!(paced(r#""tick": 250000"#, 2).1, 1.0);
}

#[test]
fn packets_cost_time_and_leave_in_batches() {
    let cpu = r#""send_cost": 200000"#;
    assert_eq!(paced(cpu, 20).0, 100_000.0); // 5000 a second
    let (sent, _, output) = paced(r#""batch": 4, "catch_up": "full""#, 20);
    let hosts = output.table("hosts");
    assert_eq!(hosts.integers("batch_packets")[0] as f64, sent);
    assert_eq!(hosts.integers("batches")[0] * 4, hosts.integers("batch_packets")[0]);
    assert_eq!(burst(&output), 4);
}

/// A sender that busy-waits on the only core leaves half of it to the receiver on the same machine, in 3 ms turns.
#[test]
fn a_single_core_is_shared_in_slices() {
    let cpu = |cores| format!(r#""cores": {cores}, "busy_wait": true"#);
    let flow = format!(r#"{CONSTANT}, "host": "a", "peer_host": "a""#);
    let two = play(&flow, &format!(r#"{{"name": "a", {}}}"#, cpu(2)), 20, 5);
    assert_eq!(two.table("hosts").floats("cpu_wait_s"), [0.0]);
    let one = play(&flow, &format!(r#"{{"name": "a", {}}}"#, cpu(1)), 20, 5);
    // the sink processes a packet in no time: the sender loses its core only for an instant, and the sink waits for
    // its turn
    assert!(one.table("hosts").floats("cpu_wait_s")[0] > 2.0);
    let flow = format!(r#"{CONSTANT}, "count": 2, "host": "a""#);
    let rivals = play(&flow, &format!(r#"{{"name": "a", {}}}"#, cpu(1)), 200, 5);
    let sent = rivals.table("flows").integers("sent_packets");
    assert!(sent.iter().all(|&n| (n as f64 / 41_250.0 - 0.5).abs() < 0.02), "{sent:?}");
}

/// TCP on the same gated host: timers and ACK clock stop, and two ends on one machine are affected alike.
#[test]
fn tcp_suffers_from_stalls_and_coalescing_is_seen() {
    let goodput = |hosts: &str| {
        let flow = format!(r#"{BULK}, "host": "a", "peer_host": "a""#);
        let output = play(&flow, &format!(r#"{{"name": "a", {hosts}}}"#), 250, 20);
        (output.table("flows").floats("goodput_bps")[0] / 1e6, output)
    };
    let clean = goodput(r#""shared": true"#).0;
    let half = goodput(
        r#""gate": {"kind": "times", "on": {"kind": "constant", "value": 0.03}, "off": {"kind": "constant", "value": 0.03}}"#,
    );
    assert!(clean > 93.0 && (20.0..80.0).contains(&half.0), "{clean} {}", half.0);
    let (mbps, output) = goodput(r#""receive_interval": 1000000"#);
    let hosts = output.table("hosts");
    let each = hosts.integers("interrupt_packets")[0] as f64 / hosts.integers("interrupts")[0] as f64;
    assert!(mbps > 90.0 && (8.0..20.0).contains(&each), "{mbps} {each}");
}

/// The receiving thread continues during stalls: ACKs are processed on time, but the segments they release are sent
/// late.
#[test]
fn a_sender_can_be_held_up_alone() {
    let rtt = |more: &str| {
        let flow = format!(r#"{BULK}, "host": "a""#);
        let output = play(&flow, &format!(r#"{{"name": "a", {STALLS}, "catch_up": "full"{more}}}"#), 250, 20);
        output.table("flows").floats("mean_rtt_s")[0]
    };
    let (whole, alone) = (rtt(""), rtt(r#", "receives_on": true"#));
    assert!(alone < whole - 50e-6, "{alone} {whole}");
}

/// A machine freezes together with the links that it emulates. Nothing in flight is lost, and overdue packets arrive
/// at once.
#[test]
fn links_freeze_with_their_machine() {
    let flow = format!(r#"{CONSTANT}, "host": "a", "peer_host": "b""#);
    let gate = r#""gate": {"kind": "times", "on": {"kind": "constant", "value": 0.1}, "off": {"kind": "constant", "value": 0.05}}"#;
    let b = r#"{"name": "b", "receive_interval": 1000}"#;
    let alone = play(&flow, &format!(r#"{{"name": "a", {gate}}}, {b}"#), 250, 10);
    let whole = play(&flow, &format!(r#"{{"name": "a", {gate}, "emulates_links": true}}, {b}"#), 250, 10);
    let largest = |output: &Output| match output.table("hosts").column("largest_interrupt") {
        Some(ackclock_sim::Column::U4(v)) => v[1],
        _ => unreachable!("the table has it"),
    };
    assert!(largest(&alone) <= 1);
    // a 15 ms delay line contains 124 packets at 99 Mb/s
    assert!((115..=130).contains(&largest(&whole)), "{}", largest(&whole));
}

#[test]
fn hosts_that_make_no_sense_are_refused() {
    for (flow, hosts, what) in [
        (r#""host": "b""#, r#"{"name": "a"}"#, "flows.0.host"),
        ("", r#"{"name": "a"}, {"name": "a"}"#, "twice"),
        ("", r#"{"name": "a", "emulates_links": true}"#, "hosts.0.emulates_links: found true without a gate"),
        ("", r#"{"name": "a", "batch": 0}"#, "batch"),
        ("", r#"{"name": "a", "cores": 1, "slice": 0}"#, "slice"),
    ] {
        let comma = if flow.is_empty() { "" } else { "," };
        let json = format!(
            r#"{{"duration_ns": 1, "network": {{"topology": "chain", "bottleneck": {{"rate": 1}}}},
              "flows": [{{"profile": "linux-6", "congestion_control": "cubic", {flow}{comma} {BULK}}}], "hosts": [{hosts}]}}"#
        );
        let error = parse(&json).and_then(|read| run(&read, 1)).map(|_| ()).expect_err("refused").to_string();
        assert!(error.contains(what), "{error}");
    }
}

fn integer(output: &Output, table: &str, column: &str) -> i64 {
    output.table(table).integers(column)[0]
}

/// At 100 Mb/s, 2.4 segments arrive in 200 us. The kernel's clock delays them by up to 1 ms: at most 8.3 are merged.
#[test]
fn a_merged_packet_is_acknowledged_once() {
    let flow = format!(r#"{BULK}, "peer_host": "a""#);
    let gro = r#"{"name": "a", "gro": true, "gro_flush_timeout": 200000, "napi_defer_hard_irqs": 2}"#;
    let merged = play(&flow, gro, 100, 10);
    let perfect = play(BULK, "", 100, 10);
    let acks = |output: &Output| integer(output, "flows", "acks_received");
    let (packets, deliveries) =
        (integer(&merged, "hosts", "interrupt_packets"), integer(&merged, "hosts", "merged_packets"));
    let mean = packets as f64 / deliveries as f64;
    assert!((4.0..8.4).contains(&mean), "{mean}");
    assert!(acks(&merged) < deliveries + deliveries / 10, "{} {deliveries}", acks(&merged));
    assert!(acks(&perfect) > 2 * acks(&merged), "{} {}", acks(&perfect), acks(&merged));
}

/// Segments that arrive one by one, each with its own interrupt, are never merged.
#[test]
fn nothing_is_merged_where_nothing_comes_together() {
    let flow = format!(r#"{BULK}, "peer_host": "a""#);
    let alone = play(&flow, r#"{"name": "a", "gro": true}"#, 100, 5);
    let perfect = play(BULK, "", 100, 5);
    assert_eq!(integer(&alone, "hosts", "interrupt_packets"), integer(&alone, "hosts", "merged_packets"));
    assert_eq!(alone.digest, perfect.digest);
}

/// The NIC of a modern host splits packets: links carry single segments, sent back to back.
#[test]
fn a_card_cuts_packets_of_several_segments_up() {
    let counted = |host: &str| {
        let flow = format!(r#"{BULK}, "stack": {{"tso": true}}, "host": "a", "peer_host": "a""#);
        let output = play(&flow, &format!(r#"{{"name": "a", "shared": false{host}}}"#), 100, 5);
        (integer(&output, "flows", "acks_received"), integer(&output, "flows", "sent_packets"))
    };
    let (whole_acks, whole) = counted("");
    let (cut_acks, cut) = counted(r#", "cuts_packets": true"#);
    assert!(whole_acks * 3 < whole, "one ACK a packet: {whole_acks} of {whole}");
    assert!(cut_acks * 5 > cut * 2, "an ACK for every second segment: {cut_acks} of {cut}");
}

/// fq's `horizon` bounds how long a packet waits: a socket that paces slowly stamps its packets with departure times that
/// lie further ahead, and their ACKs arrive before those (Linux: an RTT of zero, `tcp_stamp_us_delta`).
#[test]
fn an_ack_before_the_departure_time_is_an_rtt_of_zero() {
    let flow = format!(r#"{BULK}, "host": "a", "stack": {{"max_pacing_rate": 1000000}}"#);
    let fq =
        |rules: &str| play(&flow, &format!(r#"{{"name": "a", "queue": {{"kind": "fq"{rules}}}}}"#), 20, 1);
    let sent = |output: &Output| output.table("flows").integers("sent_packets")[0];
    let (waits, capped) = (fq(""), fq(r#", "horizon": 1000000, "horizon_drop": false"#));
    assert!(sent(&capped) > sent(&waits), "{} {}", sent(&capped), sent(&waits));
}
