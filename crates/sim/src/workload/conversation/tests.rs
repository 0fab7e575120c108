use crate::tables::table::Column;
use crate::{parse, run, Output};

/// A 10 Mbit/s path with a one-way delay of 10 ms.
fn of(workload: &str, more: &str) -> Output {
    let text = format!(
        r#"{{"duration_ns": 20000000000,
             "network": {{"topology": "chain", "bottleneck": {{"rate": 10000000, "delay": 10000000}}}},
             "flows": [{{"profile": "linux-6", "congestion_control": "cubic", {more}
                         "workload": {{"kind": "conversation", {workload}}}}}]}}"#
    );
    run(&parse(&text).expect("reads"), 1).expect("runs")
}

fn size(bytes: u32, times: u32) -> String {
    format!(r#"{{"kind": "constant", "value": {bytes}, "times": {times}}}"#)
}

/// Values of a column of counts.
fn numbers(output: &Output, name: &str) -> Vec<u32> {
    match output.table("conversations").column(name) {
        Some(Column::U4(values)) => values.clone(),
        _ => panic!("no column {name}"),
    }
}

fn latencies(output: &Output, step: u32) -> Vec<f64> {
    let steps = numbers(output, "step");
    let found = output.table("conversations").floats("latency_s").iter().zip(steps);
    found.filter(|(_, of)| *of == step).map(|(&latency, _)| latency).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn an_answer_in_two_writes_stalls_for_a_delayed_ack_unless_nagle_is_off() {
    let steps = format!(
        r#""repeat": 50, "steps": [{{"client": {}}}, {{"server": {}}}]"#,
        size(200, 1),
        size(1000, 2)
    );
    let usual = median(latencies(&of(&steps, ""), 1));
    let without = median(latencies(&of(&steps, r#""stack": {"nodelay": true},"#), 1));
    // the one-way delay and two packets of 0.84 ms each; the second waits for an ACK delayed by 40 ms, and for one
    // RTT
    assert!((0.0115..0.0125).contains(&without), "{without}");
    assert!((0.068..0.078).contains(&usual), "{usual}");
    let quick = median(latencies(&of(&steps, r#""stack": {"quickack": true},"#), 1));
    assert!((0.030..0.034).contains(&quick), "the ACK comes after a round trip: {quick}");
    let corked = steps.replace(r#"{"server":"#, r#"{"corked": true, "server":"#);
    let corked = median(latencies(&of(&corked, ""), 1));
    assert!((0.0115..0.0125).contains(&corked), "{corked}");
}

#[test]
fn steps_wait_for_one_another_and_all_that_is_written_arrives() {
    let steps = format!(
        r#""repeat": 3, "think": {{"kind": "constant", "value": 0.1}},
           "steps": [{{"client": {}}}, {{"server": {}, "wait": {{"kind": "constant", "value": 0.05}}}},
                     {{"client": {}, "gap": {{"kind": "constant", "value": 0.02}}, "separate": true}}]"#,
        size(200, 1),
        size(30_000, 1),
        size(10, 4)
    );
    let output = of(&steps, "");
    let rows = output.table("conversations");
    assert_eq!(rows.integers("bytes"), [200, 30_000, 10, 10, 10, 10].repeat(3));
    assert!(rows.floats("latency_s").iter().all(|latency| *latency > 0.01 && *latency < 0.1));
    let starts = rows.floats("start_s");
    let ends: Vec<f64> =
        starts.iter().zip(rows.floats("latency_s")).map(|(start, took)| start + took).collect();
    assert!((starts[1] - ends[0] - 0.05).abs() < 1e-9);
    assert!((starts[2] - ends[1]).abs() < 1e-9 && (starts[3] - starts[2] - 0.02).abs() < 1e-9);
    assert!((starts[6] - ends[5] - 0.1).abs() < 1e-9);
    let flows = output.table("flows");
    assert_eq!(flows.integers("bytes_acked"), [90_000]);
    assert!((flows.floats("completion_s")[0] - ends[17]).abs() < 1e-9);
}

#[test]
fn the_server_may_speak_first_and_both_at_a_time() {
    let steps = format!(
        r#""steps": [{{"server": {0}, "gap": {{"kind": "constant", "value": 0.05}}, "separate": true}},
                     {{"client": {1}, "gap": {{"kind": "constant", "value": 0.016}}, "separate": true, "together": true}}]"#,
        size(300, 100),
        size(60, 300)
    );
    let output = of(&steps, r#""stack": {"nodelay": true},"#);
    for (step, each, from) in [(0, 0.05, "server"), (1, 0.016, "client")] {
        let rows = output.table("conversations");
        let steps = numbers(&output, "step");
        let ours: Vec<usize> = (0..steps.len()).filter(|&n| steps[n] == step).collect();
        let starts: Vec<f64> = ours.iter().map(|&n| rows.floats("start_s")[n]).collect();
        assert!(starts.len() > 200, "again and again, up to the end: {} {from}", starts.len());
        assert!(starts[1..90].windows(2).all(|pair| (pair[1] - pair[0] - each).abs() < 1e-9));
        let slow = latencies(&output, step).into_iter().filter(|latency| *latency > 0.0115);
        assert_eq!(slow.count(), 0, "{from}");
    }
}

#[test]
fn conversations_at_a_time_share_the_connection() {
    let steps = format!(
        r#""streams": 4, "repeat": 5, "steps": [{{"client": {}}}, {{"server": {}}}]"#,
        size(100, 1),
        size(20_000, 1)
    );
    let output = of(&steps, "");
    let rows = output.table("conversations");
    assert_eq!(numbers(&output, "stream").len(), 40);
    assert_eq!(output.table("flows").integers("bytes_acked"), [400_000]);
    let done = rows.floats("latency_s").iter().all(|latency| !latency.is_nan());
    assert!(done && output.table("flows").floats("completion_s")[0] < 1.0);
}

#[test]
fn what_a_step_draws_depends_on_its_number_alone() {
    let steps = r#""repeat": 20, "streams": 2, "steps": [{"client": {"kind": "exponential", "mean": 500.0}},
        {"server": {"kind": "lognormal", "median": 9000.0, "sigma": 1.0}, "gap": {"kind": "exponential", "mean": 0.01}}]"#;
    let sizes = |output: &Output| {
        let rows = output.table("conversations");
        let keys = ["stream", "round", "step"].map(|name| numbers(output, name));
        let mut all: Vec<_> = rows
            .integers("bytes")
            .iter()
            .enumerate()
            .map(|(n, b)| (keys[0][n], keys[1][n], keys[2][n], *b))
            .collect();
        all.sort();
        all
    };
    let one = sizes(&of(steps, ""));
    assert_eq!(one.len(), 80);
    assert_eq!(one, sizes(&of(steps, r#""stack": {"nodelay": true, "initial_window": 3},"#)));
}

#[test]
fn a_flow_that_stops_before_it_is_connected_closes_and_says_nothing() {
    let steps =
        format!(r#""streams": 3, "steps": [{{"client": {}}}, {{"server": {}}}]"#, size(3000, 1), size(9, 1));
    let output = of(&steps, r#""stop_ns": 1000000,"#);
    assert_eq!(output.table("conversations").rows(), 0);
    let links = output.table("links");
    assert_eq!(
        links.integers("arrivals"),
        [2, 4],
        "SYN-ACK and a FIN that is an ACK too; SYN, ACK, FIN, ACK"
    );
}
