//! End-to-end tests of bulk, transfer and throttled flows.

use crate::common::{assert_conservation, dumbbell};
use ackclock_sim::{parse, run};

#[test]
fn bulk_fills_the_dumbbell_and_no_packet_goes_missing() {
    for flows in [1, 10] {
        let output = run(&dumbbell(100, flows, 10, 0.0, "{}"), 1).expect("runs");
        assert_conservation(output.table("links"));
        let busy = output.table("links").floats("busy_s")[0] / 10.0;
        assert!(busy > 0.9, "{flows} flows: utilisation {busy}");
        let goodput: f64 = output.table("flows").floats("goodput_bps").iter().sum();
        assert!(goodput > 0.85 * 1e8 * 1448.0 / 1500.0, "{flows} flows: {goodput}");
    }
}

#[test]
fn packets_are_conserved_with_loss_and_overload() {
    let output = run(&dumbbell(5, 20, 10, 0.02, "{}"), 1).expect("runs");
    assert_conservation(output.table("links"));
    assert!(output.table("links").integers("dropped_queue").iter().sum::<i64>() > 0);
    assert!(output.table("links").integers("dropped_loss").iter().sum::<i64>() > 0);
}

#[test]
fn each_sample_of_goodput_counts() {
    let record = r#"{"goodput_interval_ns": 300000000}"#;
    let output = run(&dumbbell(10, 1, 2, 0.01, record), 1).expect("runs");
    let goodput = output.table("goodput");
    let (t, bps) = (goodput.floats("t_s"), goodput.floats("goodput_bps"));
    let mut before = 0.0;
    let bits: f64 = t.iter().zip(bps).map(|(t, bps)| bps * (t - std::mem::replace(&mut before, *t))).sum();
    let acked = output.table("flows").integers("bytes_acked")[0] as f64;
    assert_eq!(t.len(), 7); // six fetches of 0.3 s and a short one
    assert!((bits / 8.0 - acked).abs() < 1.0, "{bits} {acked}");
}

fn chain(flow: &str, seconds: u64) -> ackclock_sim::Scenario {
    parse(&format!(
        r#"{{"duration_ns": {}, "network": {{"topology": "chain",
             "bottleneck": {{"rate": 8000000, "delay": 10000000}}}},
             "flows": [{{"profile": "linux-6", "congestion_control": "reno", {flow}}}]}}"#,
        seconds * 1_000_000_000
    ))
    .expect("a valid scenario")
}

#[test]
fn a_transfer_completes_and_stops() {
    let output =
        run(&chain(r#""workload": {"kind": "transfer", "bytes": 1000000}, "start_ns": 500000000"#, 5), 1);
    let output = output.expect("runs");
    let flows = output.table("flows");
    assert_eq!(flows.integers("bytes_acked"), [1_000_000]);
    let completion = flows.floats("completion_s")[0];
    assert!((1.0..1.3).contains(&completion), "{completion}");
    assert!((flows.floats("stop_s")[0] - 0.5 - completion).abs() < 1e-9);
    assert!((flows.floats("goodput_bps")[0] - 8e6 / completion).abs() < 1.0);
}

#[test]
fn a_stopped_bulk_flow_drains_and_closes() {
    let output = run(&chain(r#""workload": {"kind": "bulk"}, "stop_ns": 2000000000"#, 20), 1).expect("runs");
    let flows = output.table("flows");
    let completion = flows.floats("completion_s")[0];
    // the queue is unlimited: the data in flight takes as long again, and the send buffer contains the same amount
    assert!((4.0..12.0).contains(&completion), "{completion}");
    assert_eq!(flows.floats("stop_s"), [2.0]);
    let links = output.table("links");
    assert_eq!(links.integers("held"), [0, 0]);
}

#[test]
fn what_was_written_leaves_behind_a_stop_and_a_fin_behind_that() {
    let stopped = |workload: &str, profile: &str| {
        let json = format!(
            r#"{{"duration_ns": 4000000000, "network": {{"topology": "chain", "bottleneck":
                 {{"rate": 8000000, "delay": 10000000, "queue": {{"kind": "drop-tail", "limit": {{"packets": 20}}}}}}}},
                 "flows": [{{"profile": "{profile}", "congestion_control": "reno", "stop_ns": 1000000000, "workload": {{{workload}}}}}]}}"#
        );
        let output = run(&parse(&json).expect("reads"), 1).expect("runs");
        let flows = output.table("flows");
        let until_stop = (flows.floats("goodput_bps")[0] / 8.0).round() as i64;
        (flows.integers("bytes_acked")[0] - until_stop, flows.floats("completion_s")[0])
    };
    // at most 34 segments are in flight, and another 34 are in the send buffer
    for workload in [r#""kind": "bulk""#, r#""kind": "transfer", "bytes": 100000000"#] {
        let (later, completion) = stopped(workload, "linux-6");
        assert!(later > 60_000, "{workload}: {later}");
        assert!((1.05..1.5).contains(&completion), "{workload}: {completion}");
    }
    // a host without a send buffer: only data that was sent counts
    let (later, completion) = stopped(r#""kind": "bulk""#, "rfc");
    assert!((10_000..52_000).contains(&later), "{later}");
    assert!((1.0..1.2).contains(&completion), "{completion}");
}

#[test]
fn clients_stop_with_their_last_response() {
    let fetches = r#""workload": {"kind": "fetch", "bytes": 30000, "count": 3}"#;
    let asked = r#""workload": {"kind": "transactions", "bytes": {"kind": "constant", "value": 30000}, "count": 3, "max_open": 9,
                                "arrivals": {"kind": "periodic", "interval": 100000000}}"#;
    for workload in [fetches, asked] {
        let output = run(&chain(workload, 5), 1).expect("runs");
        let flows = output.table("flows");
        let (stop, completion) = (flows.floats("stop_s")[0], flows.floats("completion_s")[0]);
        assert!((0.1..1.0).contains(&completion), "{completion}");
        assert!((stop - completion).abs() < 1e-9, "{stop} {completion}");
        assert!((flows.floats("goodput_bps")[0] - 90_000.0 * 8.0 / completion).abs() < 1.0);
    }
    let stopped = r#""stop_ns": 300000000, "workload": {"kind": "fetch", "bytes": 30000, "count": 300}"#;
    let output = run(&chain(stopped, 5), 1).expect("runs");
    let flows = output.table("flows");
    assert!((flows.floats("stop_s")[0] - 0.3).abs() < 1e-9);
    let until_stop = flows.floats("goodput_bps")[0] * 0.3 / 8.0;
    assert!(until_stop < flows.integers("bytes_acked")[0] as f64, "what came behind the stop does not count");
}

#[test]
fn a_throttled_flow_keeps_its_rate() {
    let workload = r#""workload": {"kind": "throttled", "rate": 800000, "chunk": 10000,
                                   "initial": 50000, "bytes": 350000}"#;
    let output = run(&chain(workload, 10), 1).expect("runs");
    let flows = output.table("flows");
    assert_eq!(flows.integers("bytes_acked"), [350_000]);
    let completion = flows.floats("completion_s")[0]; // after the first write at 0, one chunk per 0.1 s
    assert!((3.0..3.2).contains(&completion), "{completion}");
}

#[test]
fn graphs_name_their_paths_and_wishbones_take_links_in_turn() {
    let flows = r#""flows": [{"profile": "rfc", "congestion_control": "reno", "path": "b",
                              "workload": {"kind": "transfer", "bytes": 30000}}]"#;
    let graph = format!(
        r#"{{"duration_ns": 3000000000, "network": {{"topology": "graph",
            "links": [{{"name": "x", "link": {{"rate": 1000000, "delay": 1000000}}}},
                      {{"name": "y", "link": {{"rate": 1000000, "delay": 1000000}}}}],
            "paths": [{{"name": "a", "forward": ["x"], "backward": ["y"]}},
                      {{"name": "b", "forward": ["y", "x"], "backward": ["y"]}}]}}, {flows}}}"#
    );
    let output = run(&parse(&graph).expect("reads"), 1).expect("runs");
    assert_eq!(output.table("flows").integers("bytes_acked"), [30_000]);
    assert_conservation(output.table("links"));

    let wishbone = r#"{"duration_ns": 3000000000, "network": {"topology": "wishbone",
        "bottleneck": {"rate": 10000000, "delay": 1000000},
        "access_list": [{"delay": 1000000}, {"delay": 49000000}]},
        "flows": [{"count": 3, "profile": "linux-6", "congestion_control": "reno",
                   "workload": {"kind": "transfer", "bytes": 20000}}]}"#;
    let output = run(&parse(wishbone).expect("reads"), 1).expect("runs");
    let rtt = output.table("flows").floats("min_rtt_s");
    assert!(rtt[0] < 0.02 && rtt[1] > 0.1 && rtt[2] < 0.02, "{rtt:?}");
}

#[test]
fn refusals_say_what_is_allowed() {
    let refused = |json: &str| run(&parse(json).expect("reads"), 1).err().expect("refused").to_string();
    let scenario = |network: &str, profile: &str| {
        format!(
            r#"{{"duration_ns": 1000, "network": {{"topology": "chain" {network}}},
                "flows": [{{"profile": "{profile}", "congestion_control": "reno", "workload": {{"kind": "bulk"}}}}]}}"#
        )
    };
    let message = refused(&scenario(r#", "bottleneck": {"rate": 1000000, "delay": 5}"#, "linux-99"));
    assert!(message.contains("flows.0.profile") && message.contains("linux-6"), "{message}");
    assert!(refused(&scenario("", "rfc")).contains("network.bottleneck"));
    let unlikely = parse(&scenario(r#", "bottleneck": {"loss": {"kind": "bernoulli", "p": 2}}"#, "rfc"));
    assert!(unlikely.expect_err("refused").to_string().contains("p: found 2; allowed: a probability"));
    assert!(parse("{}").is_err());
}

#[test]
fn drops_of_the_warm_up_are_told_apart_and_none_is_lost() {
    let drops = |record: &str, column: &str| -> i64 {
        let output = run(&dumbbell(5, 3, 6, 0.01, record), 1).expect("runs");
        output.table("links").integers(column).iter().sum()
    };
    let warm = r#"{"warm_up_ns": 3000000000}"#;
    let all: i64 = ["dropped_loss", "dropped_queue"].iter().map(|column| drops("{}", column)).sum();
    let after: i64 = ["dropped_loss", "dropped_queue"].iter().map(|column| drops(warm, column)).sum();
    let before = drops(warm, "dropped_before");
    assert!(before > 0 && after > 0, "{before} {after}");
    assert_eq!(before + after, all);
    assert_eq!(drops("{}", "dropped_before"), 0);
}

#[test]
fn timeouts_by_state_add_up_for_pcc_too() {
    let text = r#"{"duration_ns": 8000000000, "network": {"topology": "chain", "bottleneck":
        {"rate": 2000000, "delay": 20000000, "loss": {"kind": "bernoulli", "p": 0.3}}, "reverse": {"bottleneck":
        {"rate": 2000000, "delay": 20000000, "loss": {"kind": "bernoulli", "p": 0.3}}}},
        "flows": [{"profile": "linux-6", "congestion_control": "pcc-allegro", "workload": {"kind": "bulk"}},
                  {"profile": "linux-6", "congestion_control": "reno", "workload": {"kind": "bulk"}}]}"#;
    let output = run(&parse(text).expect("a scenario"), 1).expect("runs");
    let of = |name: &str| output.table("flows").integers(name).to_vec();
    for flow in 0..2 {
        let sum: i64 =
            ["rtos_open", "rtos_disorder", "rtos_recovery", "rtos_loss"].iter().map(|c| of(c)[flow]).sum();
        assert!(of("rtos")[flow] > 0, "flow {flow} had no timeout");
        assert_eq!(sum, of("rtos")[flow], "flow {flow}");
    }
}
