//! End-to-end tests of the effect of the initial window on short responses: RFC 6928's table of round trips,
//! completion times on an idle path against calculation and the kernel reference, and bursts into a small queue.

use ackclock_sim::{parse, run, Output};

/// Clients that arrive at `times_s`, each with `batch` connections, over a 300 ms path unless `delay_ms` is set.
struct Case {
    rate: &'static str,
    delay_ms: u64,
    framing: u32,
    times_s: Vec<u64>,
    batch: u32,
    bytes: u64,
    profile: &'static str,
    stack: String,
    workload: &'static str,
}

impl Default for Case {
    fn default() -> Case {
        Case {
            rate: r#""rate": 20000000,"#,
            delay_ms: 150,
            framing: 0,
            times_s: vec![0],
            batch: 1,
            bytes: 14_480,
            profile: "linux-6",
            stack: String::new(),
            workload: "",
        }
    }
}

impl Case {
    fn run(&self) -> Output {
        let Case { rate, delay_ms, framing, batch, bytes, profile, stack, workload, .. } = self;
        let times: Vec<u64> = self.times_s.iter().map(|s| s * 1_000_000_000).collect();
        let back = if *rate == FASTEST { "" } else { r#""rate": 20000000,"# };
        let delay = format!(r#""delay": {}"#, delay_ms * 1_000_000);
        let limit = if *rate == SLOW { 40 } else { 500 };
        let json = format!(
            r#"{{"duration_ns": 120000000000, "network": {{"topology": "chain", "framing_bytes": {framing},
                "bottleneck": {{{rate} {delay}, "queue": {{"kind": "drop-tail", "limit": {{"packets": {limit}}}}}}},
                "reverse": {{"bottleneck": {{{back} {delay}}}}}}},
              "flows": [{{"profile": "{profile}", "congestion_control": "reno", "stack": {{{stack}}},
                "workload": {{"kind": "transactions", "bytes": {{"kind": "constant", "value": {bytes}}},
                              "request": 200, "batch": {batch}, {workload}
                              "arrivals": {{"kind": "at", "times": {times:?}}}}}}}],
              "record": {{"drops": true}}}}"#
        );
        run(&parse(&json).expect("a valid scenario"), 1).expect("runs")
    }

    fn total_s(&self) -> f64 {
        self.run().table("transactions").floats("total_s")[0]
    }
}

const SLOW: &str = r#""rate": 64000,"#;
/// Infinite rate: the serialisation of a full packet takes less than half a nanosecond.
const FASTEST: &str = r#""rate": 100000000000000,"#;

/// RFC 6928 §2 (table): segments that have arrived after each round, with one ACK per two segments, a delayed ACK for
/// an odd one, cwnd plus one per ACK, infinite rate.
#[test]
fn rounds_are_those_of_rfc_6928() {
    let after: [(u32, &[u64]); 2] =
        [(3, &[3, 6, 12, 21, 33, 51, 78, 120, 183]), (10, &[10, 25, 46, 79, 127])];
    for (iw, cumulative) in after {
        for segments in 1..=*cumulative.last().expect("rows") {
            let case = Case {
                rate: FASTEST,
                delay_ms: 5,
                bytes: segments * 1448,
                profile: "rfc",
                stack: format!(
                    r#""initial_window": {iw}, "count_acks": true, "initial_receive_window": 300"#
                ),
                ..Case::default()
            };
            let rounds = (case.total_s() / 0.010).round() - 1.0; // minus the handshake
            let expected = cumulative.iter().position(|&n| segments <= n).expect("in the table") + 1;
            assert_eq!(rounds, expected as f64, "{segments} segments, initial window {iw}");
        }
    }
    // rows printed in the RFC
    let rows = [
        (3, 1, 1),
        (6, 2, 1),
        (10, 3, 1),
        (12, 3, 2),
        (21, 4, 2),
        (25, 5, 2),
        (33, 5, 3),
        (46, 6, 3),
        (51, 6, 4),
        (78, 7, 4),
        (79, 8, 4),
        (120, 8, 5),
        (127, 9, 5),
    ];
    for (segments, three, ten) in rows {
        let rounds = |at: usize| after[at].1.iter().position(|&n| segments <= n).expect("in the table") + 1;
        assert_eq!((rounds(0), rounds(1)), (three, ten), "{segments} segments");
    }
}

/// Handshake and request take 0.6 s. They are followed by rounds of 0.3 s, or by 187.5 ms of serialisation per
/// 1500-byte packet.
#[test]
fn unloaded_completion_times_are_those_of_arithmetic() {
    let close = |case: Case, expected: f64, what: &str| {
        let total = case.total_s();
        assert!((total / expected - 1.0).abs() < 0.01, "{what}: {total} s, not {expected} s");
    };
    let every = r#""delayed_ack": false, "#;
    for (iw, expected) in [(1, 1.50), (2, 1.20), (3, 1.20), (4, 0.90), (10, 0.606)] {
        let stack = format!(r#"{every} "initial_window": {iw}"#);
        close(Case { stack, ..Case::default() }, expected, &format!("20 Mb/s, initial window {iw}"));
    }
    for (iw, expected) in [(1, 2.89), (2, 2.59), (3, 2.475), (4, 2.475), (10, 2.475)] {
        let stack = format!(r#"{every} "initial_window": {iw}"#);
        close(
            Case { rate: SLOW, stack, ..Case::default() },
            expected,
            &format!("64 kb/s, initial window {iw}"),
        );
    }
    for (iw, expected) in [(3, 2.587), (4, 2.475), (10, 2.475)] {
        // a 200 ms delayed ACK exceeds the 187.5 ms between packets
        let stack = format!(r#""count_acks": true, "initial_window": {iw}"#);
        let what = format!("64 kb/s, delayed ACKs, initial window {iw}");
        close(Case { rate: SLOW, profile: "rfc", stack, ..Case::default() }, expected, &what);
    }
}

/// Kernel reference, `initial_window.csv`: Linux 7.3.4, 20 Mb/s, RTT 300 ms, 14 bytes of framing charged per packet.
#[test]
fn completion_times_are_those_of_the_kernel() {
    for (iw, connect, first_byte, total) in
        [(3, 0.300_031, 0.600_664, 1.201_877), (10, 0.300_031, 0.600_664, 0.606_115)]
    {
        let stack = format!(r#""initial_window": {iw}"#);
        let output = Case { framing: 14, stack, ..Case::default() }.run();
        let table = output.table("transactions");
        for (column, kernel) in [("connect_s", connect), ("first_byte_s", first_byte), ("total_s", total)] {
            let ours = table.floats(column)[0];
            assert!(
                (ours / kernel - 1.0).abs() < 0.02,
                "{column}, initial window {iw}: {ours} s, kernel {kernel} s"
            );
        }
    }
}

/// Five connections at once into a 40-packet queue at 64 kb/s, with an ACK for each packet: losses of the first
/// flights of 50 and 55 packets, and the peak queue of smaller ones. The response carries the ACK of the request, so
/// that only data enters the queue. The minimum RTO exceeds the run: the queueing delay grows beyond the RTT of the
/// handshake, and would cause spurious timeouts.
#[test]
fn five_first_flights_fill_the_queue() {
    let case = |iw: u32, rest: &str| {
        let lab = r#""delayed_ack": false, "response_carries_ack": true, "tlp": false, "detection": "dupthresh",
                        "min_rto": 110000000000,"#;
        let stack = format!(r#"{lab} "initial_window": {iw} {rest}"#);
        let server = r#""close": "server","#;
        let client = r#""close": "client","#;
        let workload = if rest.is_empty() { client } else { server };
        Case { rate: SLOW, batch: 5, stack, workload, ..Case::default() }.run()
    };
    // the first flight ends within a nanosecond of 0.45 s; the first retransmission is sent more than an RTT later
    let dropped = |output: &Output| {
        let drops = output.table("drops");
        let first = drops.floats("t_s").iter().filter(|&&t| t < 0.6).count();
        (first, drops.rows())
    };
    assert_eq!(dropped(&case(10, "")).0, 9, "50 packets");
    assert_eq!(
        dropped(&case(10, r#", "fin_ignores_cwnd": "alone""#)).0,
        14,
        "55 packets, FINs beside the window"
    );
    for (iw, peak) in [(3, 28), (4, 29), (6, 30)] {
        let output = case(iw, "");
        assert_eq!(dropped(&output).1, 0, "initial window {iw}");
        let Some(ackclock_sim::Column::U4(max)) = output.table("links").column("max_packets") else {
            panic!()
        };
        assert_eq!(max[0], peak, "initial window {iw}");
    }
}

/// Batches of five connections that open `spacing` seconds apart, through the whole engine: data packets dropped if
/// nothing is retransmitted and each packet that arrives opens the window by one.
///
/// Of the table's rows for colliding batches, this test has only those in which all connections open at once or the
/// queue empties in between. Otherwise the SYN-ACKs of the second batch wait behind the data of the first one for up
/// to 5 s, and the data of the second batch is delayed by as much, so the time between opens is not the time between
/// bursts. `burst_table.rs` has all rows, by the time between bursts.
#[test]
fn colliding_batches_overflow_the_queue() {
    let lab = r#""delayed_ack": false, "response_carries_ack": true, "tlp": false, "detection": "dupthresh",
                 "reordering": 300, "min_rto": 110000000000, "initial_rto": 110000000000, "initial_window": 3"#;
    let dropped = |batches: u64, spacing: u64| {
        let times_s = (0..batches).map(|k| k * spacing).collect();
        let workload = r#""close": "client","#;
        let case =
            Case { rate: SLOW, batch: 5, stack: lab.to_string(), times_s, workload, ..Case::default() };
        case.run().table("drops").rows()
    };
    assert_eq!([dropped(2, 0), dropped(2, 4), dropped(2, 5)], [18, 0, 0], "two batches");
    assert_eq!([dropped(3, 0), dropped(3, 7)], [44, 0], "three batches");
    assert_eq!(dropped(2, 1), 0, "the table says 13: there the handshake does not wait in the queue");
}
