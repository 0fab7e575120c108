//! End-to-end tests of transactions: times, counters, common random numbers, limits.

use crate::common::assert_conservation;
use ackclock_sim::{parse, run, Error, Output, Scenario};

/// `pairs` client-server pairs over a path of `mbps` with an RTT of 300 ms and a queue of 500 packets.
fn transactions(pairs: u32, mbps: f64, seconds: u64, workload: &str, stack: &str, record: &str) -> Scenario {
    let json = format!(
        r#"{{"duration_ns": {}, "network": {{"topology": "dumbbell",
            "bottleneck": {{"rate": {}, "delay": 150000000,
                            "queue": {{"kind": "drop-tail", "limit": {{"packets": 500}}}}}},
            "reverse": {{"bottleneck": {{"delay": 150000000}}}}}},
          "flows": [{{"count": {pairs}, "profile": "linux-6", "congestion_control": "cubic", "stack": {stack},
            "workload": {{"kind": "transactions", "request": 200,
                          "bytes": {{"kind": "constant", "value": 14480}}, {workload}}}}}],
          "record": {record}}}"#,
        seconds * 1_000_000_000,
        (mbps * 1e6) as u64,
    );
    parse(&json).expect("a valid scenario")
}

fn totals(output: &Output) -> &[f64] {
    output.table("transactions").floats("total_s")
}

fn sum(output: &Output, column: &str) -> i64 {
    output.table("transaction_summary").integers(column).iter().sum()
}

const POISSON: &str = r#""arrivals": {"kind": "poisson", "load": 0.5}"#;

#[test]
fn every_transaction_is_accounted_for() {
    let mix = r#""initial_window_mix": [{"segments": 3, "share": 0.5}, {"segments": 10, "share": 0.5}]"#;
    let output = run(&transactions(4, 5.0, 60, &format!("{POISSON}, {mix}"), "{}", "{}"), 1).expect("runs");
    let rows = output.table("transactions").rows() as i64;
    assert!(rows > 1000, "{rows}");
    assert_eq!(rows, sum(&output, "started"));
    assert_eq!(rows, sum(&output, "completed") + sum(&output, "incomplete") + sum(&output, "failed"));
    assert!(sum(&output, "incomplete") > 0, "some are under way when the run ends");
    assert_eq!(sum(&output, "bytes"), 14_480 * sum(&output, "completed"));
    assert_conservation(output.table("links"));
    // offered: half of 5 Mb/s for 60 s, in responses of ten 1500-byte packets
    let offered = sum(&output, "offered_bytes") as f64 * 8.0 / (5e6 * 60.0);
    assert!((offered / 0.5 - 1.0).abs() < 0.05, "{offered}");
    let summary = output.table("transaction_summary");
    let [three, ten] = [summary.floats("p50_s")[0], summary.floats("p50_s")[1]];
    assert!(three > 1.19 && ten < 0.9, "{three} {ten}");
}

#[test]
fn a_summary_is_that_of_the_rows() {
    let rows = run(&transactions(2, 2.0, 100, POISSON, "{}", "{}"), 1).expect("runs");
    let summary =
        run(&transactions(2, 2.0, 100, POISSON, "{}", r#"{"transactions": "summary"}"#), 1).expect("runs");
    assert_eq!(rows.digest, summary.digest);
    assert_eq!(rows.table("transaction_summary"), summary.table("transaction_summary"));
    assert_eq!(summary.table("transactions").rows(), 0);
    let mut times: Vec<f64> = totals(&rows).iter().copied().filter(|t| !t.is_nan()).collect();
    times.sort_by(f64::total_cmp);
    let n = times.len() as f64;
    let mean = times.iter().sum::<f64>() / n;
    let deviation = (times.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let of = |column: &str| summary.table("transaction_summary").floats(column)[0];
    assert!((of("mean_s") / mean - 1.0).abs() < 1e-9);
    assert!((of("std_s") / deviation - 1.0).abs() < 1e-6);
    assert_eq!((of("min_s"), of("max_s")), (times[0], times[times.len() - 1]));
    for (column, p) in [("p50_s", 0.5), ("p95_s", 0.95), ("p99_s", 0.99), ("p999_s", 0.999)] {
        let exact = times[(p * n).ceil() as usize - 1];
        assert!((of(column) / exact - 1.0).abs() < 0.004, "{column}");
    }
}

#[test]
fn arms_of_a_comparison_see_the_same_clients() {
    let arrivals = |iw: u32, mbps: f64| {
        let workload = r#""arrivals": {"kind": "poisson", "rate": 20}, "max_open": 5000"#;
        let stack = format!(r#"{{"initial_window": {iw}}}"#);
        let output = run(&transactions(2, mbps, 30, workload, &stack, "{}"), 1).expect("runs");
        let table = output.table("transactions");
        (table.floats("arrival_s").to_vec(), totals(&output).to_vec())
    };
    let (three, ten) = (arrivals(3, 20.0), arrivals(10, 20.0));
    assert_eq!(three.0, ten.0);
    assert_ne!(three.1, ten.1);
    assert_eq!(three.0, arrivals(3, 3.0).0, "whatever the network does");
}

#[test]
fn a_batch_opens_at_once_and_draws_together_or_apart() {
    let workload = |by_batch: bool| {
        let by = if by_batch { "batch" } else { "transaction" };
        format!(
            r#""arrivals": {{"kind": "periodic", "interval": 2000000000}}, "batch": 5, "count": 100,
               "initial_window_mix": [{{"segments": 3, "share": 0.5}}, {{"segments": 10, "share": 0.5}}],
               "mix_by": "{by}""#
        )
    };
    let windows = |by_batch: bool| {
        let output = run(&transactions(1, 20.0, 100, &workload(by_batch), "{}", "{}"), 1).expect("runs");
        let table = output.table("transactions");
        assert_eq!(table.rows(), 100);
        let arrivals = table.floats("arrival_s");
        assert!(arrivals
            .chunks(5)
            .enumerate()
            .all(|(i, five)| five.iter().all(|&t| (t - 2.0 * i as f64).abs() < 1e-9)));
        let Some(ackclock_sim::Column::U4(iw)) = table.column("initial_window") else { panic!() };
        iw.chunks(5).filter(|five| five.iter().all(|iw| *iw == five[0])).count()
    };
    assert_eq!(windows(true), 20);
    assert!(windows(false) < 5);
}

#[test]
fn connections_are_kept_and_clients_think() {
    let workload = r#""arrivals": {"kind": "periodic", "interval": 1000000000}, "count": 1, "requests": 3,
                      "think": {"kind": "constant", "value": 0.25}"#;
    let output =
        run(&transactions(1, 20.0, 20, workload, r#"{"initial_window": 10}"#, "{}"), 1).expect("runs");
    let table = output.table("transactions");
    let times = totals(&output);
    assert_eq!(times.len(), 3, "one connection, three requests");
    let close = |a: f64, b: f64| (a - b).abs() < 0.012;
    assert!(close(times[0], 0.606) && close(times[1], 0.306) && close(times[2], 0.306), "{times:?}");
    let arrivals = table.floats("arrival_s");
    assert!((arrivals[1] - (times[0] + 0.25)).abs() < 1e-9, "{arrivals:?}");
    assert_eq!(output.table("flows").integers("syn_retransmissions"), [0]);
}

#[test]
fn connections_of_a_page_share_its_objects_out() {
    for close in ["server", "client"] {
        let workload = format!(
            r#""arrivals": {{"kind": "periodic", "interval": 5000000000}}, "batch": 3, "objects": 10,
               "close": "{close}""#
        );
        let output = run(&transactions(1, 20.0, 20, &workload, "{}", "{}"), 1).expect("runs");
        let table = output.table("transactions");
        assert_eq!(table.rows(), 40);
        assert_eq!(sum(&output, "completed"), 40, "{close}");
        let Some(ackclock_sim::Column::U4(request)) = table.column("request") else { panic!() };
        assert_eq!(request.iter().filter(|&&r| r == 0).count(), 12, "three connections each");
        let open = output.table("transaction_summary").column("max_open");
        assert_eq!(open, Some(&ackclock_sim::Column::U4(vec![3])), "each page is over before the next");
    }
}

#[test]
fn a_full_house_turns_clients_away() {
    let workload = r#""arrivals": {"kind": "poisson", "load": 1.5}, "max_open": 30"#;
    let output = run(&transactions(3, 1.0, 60, workload, "{}", "{}"), 1).expect("runs");
    assert!(sum(&output, "refused") > 50);
    assert_eq!(
        output.table("transaction_summary").column("max_open"),
        Some(&ackclock_sim::Column::U4(vec![30]))
    );
}

#[test]
fn a_load_that_diverges_needs_a_limit() {
    let message = |workload: &str| match run(&transactions(1, 1.0, 10, workload, "{}", "{}"), 1) {
        Err(error @ Error::Value { .. }) => error.to_string(),
        other => panic!("{:?}", other.map(|_| ())),
    };
    let load = message(r#""arrivals": {"kind": "poisson", "load": 1.2}"#);
    assert!(load.contains("flows.0.workload.max_open") && load.contains("diverges"), "{load}");
    // ten 1500-byte packets each: 8.33 responses per second fill 1 Mb/s
    assert!(message(r#""arrivals": {"kind": "poisson", "rate": 8.4}"#).contains("diverges"));
    assert!(run(&transactions(1, 1.0, 10, r#""arrivals": {"kind": "poisson", "rate": 8.3}"#, "{}", "{}"), 1)
        .is_ok());
    let mix = message(&format!(
        r#"{POISSON}, "initial_window_mix": [{{"segments": 3, "share": 0.5}}, {{"segments": 10, "share": 0.4}}]"#
    ));
    assert!(mix.contains("initial_window_mix") && mix.contains("sum to 1"), "{mix}");
}

#[test]
fn a_dead_network_fails_them_all() {
    let mut scenario =
        transactions(1, 1.0, 200, r#""arrivals": {"kind": "at", "times": [0, 5]}"#, "{}", "{}");
    if let Some(link) = &mut scenario.network.bottleneck {
        link.loss = Some(ackclock_net::LossConfig::bernoulli(1.0));
    }
    let output = run(&scenario, 1).expect("runs");
    assert_eq!((sum(&output, "failed"), sum(&output, "completed")), (2, 0));
    assert!(sum(&output, "syn_retransmissions") >= 10);
}

#[test]
fn memory_is_for_what_is_open() {
    let workload = r#""arrivals": {"kind": "poisson", "load": 0.9}, "count": 20000"#;
    let output =
        run(&transactions(2, 20.0, 150, workload, "{}", r#"{"transactions": "summary"}"#), 1).expect("runs");
    assert_eq!(sum(&output, "started"), 20_000);
    let Some(ackclock_sim::Column::U4(open)) = output.table("transaction_summary").column("max_open") else {
        panic!()
    };
    assert!(open[0] < 400, "{open:?}");
    assert!(output.table("transaction_times").rows() < 1000);
}

/// First flights of `count` connections that open at once: number of segments, including FINs, that can reach the
/// link before the first ACK of data.
fn first_flight(stack: &str, bytes: u32) -> i64 {
    let json = format!(
        r#"{{"duration_ns": 490000000, "network": {{"topology": "chain",
            "bottleneck": {{"rate": 100000000, "delay": 100000000}},
            "reverse": {{"bottleneck": {{"delay": 100000000}}}}}},
          "flows": [{{"profile": "linux-6", "congestion_control": "cubic", "stack": {stack},
            "workload": {{"kind": "transactions", "request": 100, "bytes": {{"kind": "constant", "value": {bytes}}},
                          "arrivals": {{"kind": "at", "times": [0]}}}}}}]}}"#
    );
    let output = run(&parse(&json).expect("a valid scenario"), 1).expect("runs");
    output.table("links").integers("arrivals")[0] - 2 // SYN-ACK, and ACK of the request
}

#[test]
fn a_fin_may_leave_beside_the_window() {
    for (rule, alone, with_data) in [("off", 10, 10), ("alone", 11, 10), ("with-data", 11, 11)] {
        let stack = format!(r#"{{"initial_window": 10, "fin_ignores_cwnd": "{rule}"}}"#);
        assert_eq!(first_flight(&stack, 14_480), alone, "{rule}: ten segments, then FIN");
        assert_eq!(first_flight(&stack, 15_360), with_data, "{rule}: FIN on the eleventh");
        assert_eq!(first_flight(&stack, 17_000), 10, "{rule}: FIN on the twelfth");
    }
}

#[test]
fn first_flights_are_bounded_by_burst_cap_and_receive_window() {
    assert_eq!(first_flight(r#"{"initial_window": 10, "first_burst_cap": 9}"#, 30_000), 9);
    assert_eq!(first_flight(r#"{"initial_window": 100}"#, 300_000), 45); // 65160 bytes
    assert_eq!(first_flight(r#"{"initial_window": 100, "initial_receive_window": 120}"#, 300_000), 100);
    assert_eq!(first_flight(r#"{"initial_window": 10, "initial_receive_window": 4}"#, 30_000), 4);
    assert_eq!(first_flight(r#"{"initial_window": 1}"#, 30_000), 1);
}

#[test]
fn handshakes_alone_may_be_lost() {
    let times = |backward: &str, forward: &str, rto_s: u64| {
        let json = format!(
            r#"{{"duration_ns": 60000000000, "network": {{"topology": "chain",
                "bottleneck": {{"rate": 100000000, "delay": 100000000, {forward} "jitter": 0}},
                "reverse": {{"bottleneck": {{"delay": 100000000, {backward} "jitter": 0}}}}}},
              "flows": [{{"profile": "linux-6", "congestion_control": "cubic",
                "stack": {{"initial_rto": {}}},
                "workload": {{"kind": "transactions", "request": 100, "bytes": {{"kind": "constant", "value": 14480}},
                              "arrivals": {{"kind": "at", "times": [0, 20000000000, 40000000000]}}}}}}]}}"#,
            rto_s * 1_000_000_000
        );
        run(&parse(&json).expect("a valid scenario"), 1).expect("runs")
    };
    let close = |a: &[f64], b: [f64; 3]| {
        assert!(a.iter().zip(b).all(|(a, b)| (0.0..0.2).contains(&(a - b))), "{a:?}")
    }; // the wheel rounds timers up
    let listed = r#""loss": {"kind": "listed", "packets": [2], "applies_to": "syn"},"#;
    for rto in [1, 3] {
        let output = times(listed, "", rto);
        close(totals(&output), [0.4, 0.4 + rto as f64, 0.4]);
        assert_eq!(output.table("transactions").integers("syn_retransmissions"), [0, 1, 0]);
        // The SYN-ACK is retransmitted for the client's second SYN and by the server's own timer. Linux then begins
        // with one segment, and the ten segments of the response take four rounds.
        let output = times("", listed, rto);
        close(totals(&output), [0.4, 1.0 + rto as f64, 0.4]);
        assert_eq!(output.table("links").integers("dropped_loss"), [1, 0]);
    }
    let all = times("", r#""loss": {"kind": "bernoulli", "p": 1.0, "applies_to": "syn"},"#, 1);
    assert_eq!(sum(&all, "completed"), 0);
    let [arrivals, lost] = ["arrivals", "dropped_loss"].map(|c| all.table("links").integers(c)[0]);
    assert!(arrivals > 10 && arrivals == lost, "only SYN-ACKs came");
}

#[test]
fn servers_answer_together_round_by_round() {
    let workload = r#""arrivals": {"kind": "at", "times": [0]}, "batch": 8, "requests": 5, "together": true,
                      "think": {"kind": "constant", "value": 0.1}"#;
    let output = run(&transactions(1, 2.0, 60, workload, "{}", "{}"), 1).expect("runs");
    let table = output.table("transactions");
    assert_eq!((table.rows(), sum(&output, "completed")), (40, 40));
    let (arrivals, total) = (table.floats("arrival_s"), totals(&output));
    let Some(ackclock_sim::Column::U4(request)) = table.column("request") else { panic!() };
    let round = |k: u32| (0..40).filter(move |&i| request[i] == k);
    for k in 1..5 {
        let begins: Vec<f64> = round(k).map(|i| arrivals[i]).collect();
        let before = round(k - 1).map(|i| arrivals[i] + total[i]).fold(0.0, f64::max);
        assert_eq!(begins.len(), 8);
        assert!(
            begins.iter().all(|&t| (t - before - 0.1).abs() < 1e-6),
            "round {k}: {begins:?} after {before}"
        );
    }
}

#[test]
fn requests_of_one_instant_are_all_read_before_an_answer() {
    let json = r#"{"duration_ns": 2000000000, "network": {"topology": "chain",
            "bottleneck": {"rate": 20000000, "delay": 10000000},
            "reverse": {"bottleneck": {"delay": 10000000, "aggregate": 2000000}}},
          "flows": [{"profile": "linux-6", "congestion_control": "cubic",
            "workload": {"kind": "transactions", "request": 200, "bytes": {"kind": "constant", "value": 14480},
                         "arrivals": {"kind": "at", "times": [0]}, "batch": 4}}],
          "record": {"capture": "sender"}}"#;
    let output = run(&parse(json).expect("a valid scenario"), 1).expect("runs");
    let data = output.captured.iter().filter(|one| one.packet.header.payload() > 0);
    let first: Vec<(u64, bool)> = data.map(|one| (one.t.0, one.packet.forward)).take(5).collect();
    let at = first[0].0;
    assert_eq!(first, [(at, false), (at, false), (at, false), (at, false), (at, true)]);
}
