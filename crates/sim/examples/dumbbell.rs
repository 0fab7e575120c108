//! The reference dumbbell: CPU time per delivered data packet, and a summary of the run.
//!
//! cargo run --release -p ackclock-sim --example dumbbell -- [Mbit/s] [flows] [seconds] [congestion control] [repeats]

use ackclock_sim::{cpu, parse, run, yardstick::yardstick};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |i: usize, default: &str| args.get(i).cloned().unwrap_or_else(|| default.to_string());
    let mbps: u64 = arg(0, "100").parse().expect("Mbit/s, a whole number");
    let flows: u64 = arg(1, "1").parse().expect("flows, a whole number");
    let seconds: f64 = arg(2, "60").parse().expect("seconds");
    let control = arg(3, "cubic");
    let repeats: usize = arg(4, "3").parse().expect("repeats, a whole number");
    let scenario = parse(&scenario(mbps, flows, seconds, &control)).expect("a valid scenario");

    let mut costs = Vec::new();
    let mut last = None;
    for _ in 0..repeats.max(1) {
        let start = cpu::thread_seconds();
        let output = run(&scenario, 1).expect("a valid scenario");
        let elapsed = cpu::thread_seconds() - start;
        let acked: i64 = output.table("flows").integers("bytes_acked").iter().sum();
        costs.push(elapsed * 1e9 / (acked as f64 / SMSS));
        last = Some((output, acked, elapsed));
    }
    costs.sort_by(f64::total_cmp);
    let cost = costs[costs.len() / 2];
    let (output, acked, elapsed) = last.expect("invariant: at least one run");
    let links = output.table("links");
    let drops: i64 = links.integers("dropped_queue").iter().sum();
    let bottleneck = links.integers("bytes_delivered")[0] as f64 * 8.0;
    println!(
        "{mbps} Mbit/s, {flows} flows, {seconds} s, {control}: {cost:.1} ns/packet (best {:.1}), {:.3} s CPU",
        costs[0], elapsed
    );
    println!(
        "  delivered {:.0}, dropped {drops}, utilisation {:.3}, peak RSS {:.1} MB, digest {}",
        acked as f64 / SMSS,
        bottleneck / (mbps as f64 * 1e6 * seconds),
        cpu::peak_rss_bytes() as f64 / 1e6,
        output.digest.hex()
    );
    let floor = yardstick(flows as u32, 500_000);
    println!("  yardstick {floor:.1} ns/packet, ratio {:.2}", cost / floor);
}

/// Return a dumbbell of N senders with 1 ms access links of rate 10 R, an 18 ms bottleneck of rate R with a one-BDP
/// drop-tail queue, and N receivers whose egress links match the access links.
fn scenario(mbps: u64, flows: u64, seconds: f64, control: &str) -> String {
    let rate = mbps * 1_000_000;
    let bdp = rate * 40 / 1000 / (8 * 1500);
    let share = 8 * bdp * 1500 / flows;
    let edge = format!(r#"{{"rate": {}, "delay": 1000000}}"#, 10 * rate);
    format!(
        r#"{{"duration_ns": {duration}, "network": {{
            "topology": "dumbbell", "access": {edge}, "egress": {edge},
            "bottleneck": {{"rate": {rate}, "delay": 18000000,
                            "queue": {{"kind": "drop-tail", "limit": {{"packets": {bdp}}}}}}}}},
          "flows": [{{"count": {flows}, "profile": "linux-6", "congestion_control": "{control}",
            "stagger_ns": {stagger}, "workload": {{"kind": "bulk"}},
            "stack": {{"receive_buffer": {buffer}}}}}]}}"#,
        duration = (seconds * 1e9) as u64,
        stagger = 1_000_000_000 / flows,
        buffer = share.max(1 << 20),
    )
}

const SMSS: f64 = 1448.0;
