//! End-to-end tests of video players.

use ackclock_sim::{parse, run, Column, Output, Table};

/// Players behind one link, with an RTT of 20 ms. The return path has ten times the rate, and random losses.
fn players(mbps: f64, controller: &str, video: &str, flow: &str, seconds: u64, loss_back: f64) -> Output {
    let json = format!(
        r#"{{"duration_ns": {}, "network": {{"topology": "dumbbell", "access": {{"rate": 1000000000}},
            "bottleneck": {{"rate": {}, "delay": 10000000,
                            "queue": {{"kind": "drop-tail", "limit": {{"packets": 50}}}}}},
            "reverse": {{"bottleneck": {{"rate": {}, "delay": 10000000,
                         "loss": {{"kind": "bernoulli", "p": {loss_back}}}}}}}}},
          "flows": [{{"profile": "linux-6", "congestion_control": "{controller}", {flow}
            "workload": {{"kind": "video", "request": 200, {video}}}}}]}}"#,
        seconds * 1_000_000_000,
        (mbps * 1e6) as u64,
        (mbps * 1e7) as u64,
    );
    run(&parse(&json).expect("reads"), 1).expect("runs")
}

const PERIODIC: &str = r#""adaptation": {"kind": "rate-based", "weight": 1.0, "safety": 1.0}"#;
const FESTIVE: &str = r#""adaptation": {"kind": "festive", "window": 20, "safety": 0.85, "alpha": 12, "horizon": 5,
    "randomised": true, "gradual": true, "delayed": true}"#;

/// 2 s chunks, an 8 s target, playback from 4 s on.
fn of_two_seconds(ladder: &str, rest: &str) -> String {
    format!(
        r#""ladder": {ladder}, "chunk": 2000000000, "buffer": 8000000000, "buffer_max": 12000000000,
           "startup": 4000000000, {rest}"#
    )
}

fn counts(table: &Table, name: &str) -> Vec<u32> {
    match table.column(name) {
        Some(Column::U4(values)) => values.clone(),
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn after_the_buffer_is_full_requests_come_once_per_chunk() {
    for controller in ["cubic", "pcc-allegro"] {
        let video = of_two_seconds("[1000000]", PERIODIC);
        let output = players(10.0, controller, &video, "", 60, 0.0);
        let chunks = output.table("chunks");
        let [asked, first, done, buffer] =
            ["request_s", "first_byte_s", "finish_s", "buffer_s"].map(|name| chunks.floats(name));
        assert!(chunks.integers("bytes").iter().all(|&bytes| bytes == 250_000));
        // the player waits once its buffer first exceeds the target
        let full = buffer.iter().position(|&level| level > 8.0).expect("fills up");
        assert!(full >= 4 && done[full] < 5.0, "{controller}: {buffer:?}");
        for i in 1..chunks.rows() {
            let gap = asked[i] - asked[i - 1];
            if i <= full {
                assert_eq!(asked[i], done[i - 1], "{controller}: at once, {i}");
            } else if i > full + 1 {
                assert!((gap - 2.0).abs() < 1e-6, "{controller}: {gap} at {i}");
            }
            assert!(first[i] > asked[i] + 0.02 && first[i] < asked[i] + 0.1, "{controller} {i}");
            assert!(done[i] > asked[i] + 0.2, "{controller}: 250 kB take 0.2 s at 10 Mbit/s");
        }
        assert_eq!(chunks.floats("stall_s").iter().sum::<f64>(), 0.0);
        let [Some(Column::Bool(playing))] = [chunks.column("playing")] else { panic!("a flag") };
        assert_eq!(&playing[..3], [0, 1, 1], "from the second chunk on there are 4 s");
        assert!(output.table("flows").floats("established_s")[0] > 0.0);
    }
}

#[test]
fn a_link_that_is_too_slow_stalls_by_the_difference() {
    for controller in ["cubic", "pcc-allegro"] {
        let output = players(1.0, controller, &of_two_seconds("[2000000]", PERIODIC), "", 100, 0.0);
        let chunks = output.table("chunks");
        let [asked, done, buffer, stall] =
            ["request_s", "finish_s", "buffer_s", "stall_s"].map(|name| chunks.floats(name));
        let n = chunks.rows();
        assert!((15..=25).contains(&n), "{n}"); // 500 kB take more than 4 s each
                                                // time since playback began = playing time + stalled time
        let began = done[1];
        let mut stalled = 0.0;
        for i in 2..n - 1 {
            stalled += stall[i];
            let played = 2.0 * (i + 1) as f64 - buffer[i];
            assert!((done[i] - began - played - stalled).abs() < 1e-6, "{controller}: {i}");
            assert_eq!(asked[i], done[i - 1], "{controller}: nothing to wait for");
        }
        assert!(stalled > 20.0, "{stalled}");
        // data in flight at the end of the run also counts
        assert!(done[n - 1].is_nan() && buffer[n - 1].is_nan());
        let left = if buffer[n - 2] < 4.0 { 0.0 } else { buffer[n - 2] };
        let expected = (100.0 - done[n - 2] - left).max(0.0);
        assert!((stall[n - 1] - expected).abs() < 1e-6, "{controller}: {stall:?}");
    }
}

#[test]
fn a_video_of_given_length_ends_and_so_does_its_connection() {
    for controller in ["cubic", "pcc-allegro"] {
        let video = of_two_seconds("[1000000]", &format!(r#""chunks": 7, {PERIODIC}"#));
        let output = players(10.0, controller, &video, r#""start_ns": 1000000000,"#, 60, 0.0);
        let (chunks, flows) = (output.table("chunks"), output.table("flows"));
        assert_eq!(counts(chunks, "idx"), [0, 1, 2, 3, 4, 5, 6]);
        let last = chunks.floats("finish_s")[6];
        assert!((flows.floats("completion_s")[0] - (last - 1.0)).abs() < 1e-9);
        assert_eq!(flows.floats("stop_s")[0], last);
        assert_eq!(flows.integers("bytes_acked")[0], 7 * 250_000, "{controller}");
        assert_eq!(chunks.floats("stall_s").iter().sum::<f64>(), 0.0, "the end is no stall");
    }
}

#[test]
fn a_flow_that_stops_asks_no_more() {
    for controller in ["cubic", "pcc-allegro"] {
        let video = of_two_seconds("[1000000]", PERIODIC);
        let output = players(10.0, controller, &video, r#""stop_ns": 21000000000,"#, 60, 0.0);
        let asked = output.table("chunks").floats("request_s");
        assert!((18.9..21.0).contains(asked.last().expect("some")), "{asked:?}");
        let flows = output.table("flows");
        let bps = flows.integers("bytes_acked")[0] as f64 * 8.0 / 21.0;
        assert!((flows.floats("goodput_bps")[0] / bps - 1.0).abs() < 1e-9, "goodput is that until the stop");
    }
}

#[test]
fn requests_that_are_lost_cost_time_but_no_chunk() {
    for controller in ["cubic", "pcc-allegro"] {
        let video = of_two_seconds("[1000000]", PERIODIC);
        let output = players(10.0, controller, &video, "", 300, 0.2);
        let chunks = output.table("chunks");
        let waits: Vec<f64> = chunks
            .floats("first_byte_s")
            .iter()
            .zip(chunks.floats("request_s"))
            .map(|(f, r)| f - r)
            .collect();
        assert!(chunks.rows() >= 148, "{controller}: {}", chunks.rows());
        assert!(
            waits.iter().filter(|&&wait| wait > 0.2).count() >= 15,
            "{controller}: a fifth is sent again"
        );
        assert_eq!(output.table("flows").column("failed"), Some(&Column::Bool(vec![0])));
    }
    // no response ever arrives
    let output = players(10.0, "pcc-allegro", &of_two_seconds("[1000000]", PERIODIC), "", 300, 1.0);
    assert_eq!(output.table("chunks").rows(), 1, "its hello arrives, no request does");
    assert_eq!(output.table("flows").column("failed"), Some(&Column::Bool(vec![1])));
}

#[test]
fn a_chunk_is_as_large_in_every_arm() {
    let relative = |adaptation: &str, controller: &str| {
        let video =
            of_two_seconds("[300000, 600000, 1200000]", &format!(r#""size_variation": 0.3, {adaptation}"#));
        let output = players(4.0, controller, &video, "\"count\": 2,", 60, 0.0);
        let chunks = output.table("chunks");
        let both = chunks.integers("bytes").iter().zip(chunks.integers("bitrate_bps"));
        let flows = counts(chunks, "flow");
        let of = |flow| {
            let own = flows.iter().zip(both.clone()).filter(move |(f, _)| **f == flow);
            own.take(25).map(|(_, (&bytes, &bps))| bytes as f64 / (bps as f64 / 4.0)).collect::<Vec<f64>>()
        };
        [of(0), of(1)]
    };
    let [a, b] = [relative(PERIODIC, "cubic"), relative(FESTIVE, "pcc-allegro")];
    for (a, b) in a.iter().zip(&b) {
        assert!(a.len() == 25 && a.iter().zip(b).all(|(x, y)| (x - y).abs() < 1e-4));
        assert!(a.iter().all(|x| (0.7..1.3).contains(x)));
    }
    assert_ne!(a[0], a[1], "players watch different videos");
}

/// Three FESTIVE players over 4 Mbit/s, started 1.7 s apart: levels by chunk, recorded with our first version.
#[test]
fn snapshot_of_three_players() {
    let video = of_two_seconds("[300000, 600000, 900000, 1200000, 1800000]", FESTIVE);
    let output = players(4.0, "cubic", &video, "\"count\": 3, \"stagger_ns\": 1700000000,", 60, 0.0);
    let chunks = output.table("chunks");
    let (flows, levels) = (counts(chunks, "flow"), counts(chunks, "level"));
    let of = |flow| {
        let own = flows.iter().zip(&levels).filter(|(f, _)| **f == flow);
        own.map(|(_, level)| level.to_string()).collect::<String>()
    };
    let expected = [
        "01122223333433333333333333333333333",
        "011222233333333333333333333333333",
        "01122223333333333333333333333333",
    ];
    assert_eq!([of(0), of(1), of(2)], expected);
}

#[test]
fn impossible_players_are_refused() {
    let refused = |video: &str, controller: &str| {
        let json = format!(
            r#"{{"duration_ns": 1000000000, "network": {{"topology": "chain", "bottleneck": {{"rate": 1000000, "delay": 1}}}},
              "flows": [{{"profile": "linux-6", "congestion_control": "{controller}", "workload": {{"kind": "video", {video}}}}}]}}"#
        );
        match parse(&json).and_then(|scenario| run(&scenario, 1)) {
            Ok(_) => panic!("{video} runs"),
            Err(error) => error.to_string(),
        }
    };
    let base = |ladder: &str, chunk: u64, buffer: u64, most: u64, startup: u64, rest: &str| {
        format!(
            r#""ladder": {ladder}, "chunk": {chunk}, "buffer": {buffer}, "buffer_max": {most},
               "startup": {startup}, {rest}"#
        )
    };
    let ask = format!(r#""request": 200, {PERIODIC}"#);
    let festive = FESTIVE.replace("\"window\": 20", "\"window\": 0");
    for (video, part) in [
        (base("[]", 1, 8, 9, 1, &ask), "ladder"),
        (base("[5, 5]", 1, 8, 9, 1, &ask), "ladder.1: found \"5 bit/s\" after \"5 bit/s\"; allowed: bitrates that ascend"),
        (base("[5]", 0, 8, 9, 1, &ask), "chunk"),
        (base("[5]", 2, 8, 9, 1, &ask), "\"9 ns\" with a buffer of \"8 ns\" and chunks of \"2 ns\"; allowed: at least the buffer and a chunk"),
        (base("[5]", 1, 8, 9, 9, &ask), "\"9 ns\" with a buffer of \"8 ns\"; allowed: at most the buffer"),
        (base("[5]", 1, 8, 9, 0, &ask), "startup"),
        (base("[5]", 1, 8, 9, 1, &format!(r#""chunks": 0, {ask}"#)), "chunks"),
        (base("[5]", 1, 8, 9, 1, &format!(r#""size_variation": 1.0, {ask}"#)), "size_variation"),
        (base("[5]", 1, 8, 9, 1, &ask.replace("200", "0")), "request"),
        (base("[5]", 1, 8, 9, 1, &ask.replace("\"weight\": 1.0", "\"weight\": 0")), "adaptation.weight"),
        (base("[5]", 1, 8, 9, 1, &ask.replace("\"safety\": 1.0", "\"safety\": -1")), "adaptation.safety"),
        (base("[5]", 1, 8, 9, 1, &format!(r#""request": 200, {festive}"#)), "adaptation.window"),
    ] {
        let line = refused(&video, "cubic");
        assert!(line.contains(part), "{line}");
    }
    let line = refused(&base("[5]", 1, 8, 9, 1, &ask.replace("200", "1457")), "pcc-allegro");
    assert!(line.contains("at most 1456 bytes, a datagram's payload"), "{line}");
}
