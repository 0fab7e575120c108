//! Test vectors for the published formulas and for the loss rules.

use super::abse::{coefficient, sampling_interval, time_constant};
use super::*;
use crate::controller::options::{Options, Value};
use crate::controller::tests::arrival;
use crate::controller::{Controller, Shared};

fn near(got: f64, want: f64, digit: f64) {
    assert!((got - want).abs() <= digit / 2.0, "{got}, not {want}");
}

fn params() -> AbseParams {
    AbseParams {
        n: 10.0,
        beta: 0.6,
        gain: FilterGain::Stability,
        floor: Floor::Gap,
        level: LevelRate::Achieved,
        peak: PeakOver::LastTen,
        from_zero: false,
        nic_rate: 0.0,
        batch_gap: 0.0,
    }
}

fn westwood(options: &[(&str, Value)]) -> Westwood {
    let options: Options = options.iter().map(|(k, v)| (k.to_string(), v.clone())).collect();
    match Controller::build("westwood", &options, Shared::default()) {
        Ok(Controller::Westwood(w)) => *w,
        _ => panic!("westwood"),
    }
}

#[test]
fn the_interval_grows_with_congestion() {
    for (share, want) in [(1.0, 0.001), (0.75, 0.25), (0.5, 0.5), (0.25, 0.75)] {
        near(sampling_interval(1.0, 1.0, share, 0.001), want, 1e-12);
    }
    near(sampling_interval(1.0, 1.0, 2.0, 0.001), 0.001, 1e-12);
}

#[test]
fn coefficients_of_both_paths_quiet_and_noisy() {
    for (rtt, gap, quiet, noisy, digit) in
        [(0.064, 0.001, 0.98450, 0.99858, 1e-5), (0.004, 12e-6, 0.997004, 0.999727, 1e-6)]
    {
        near(coefficient(time_constant(rtt, 10.0, 0.0, 5.0), gap), quiet, digit);
        near(coefficient(time_constant(rtt, 10.0, 5.0, 5.0), gap), noisy, digit);
    }
    near(101.550, 100.0 * coefficient(0.064, 0.001) + 200.0 * (1.0 - coefficient(0.064, 0.001)), 1e-3);
    let noisy = coefficient(0.704, 0.001);
    near(100.142, 100.0 * noisy + 200.0 * (1.0 - noisy), 1e-3);
    assert_eq!(coefficient(0.01, 0.03), 0.0);
    assert_eq!(time_constant(0.064, 10.0, 0.0, 0.0), 0.064);
}

#[test]
fn be_coefficients_at_a_tenth_of_tau_and_in_silence() {
    near(be::step(1.0, 0.1, 1.0, 0.0, 0.0), 0.90476, 1e-5);
    near(be::step(1.0, 0.1, 0.0, 1.0, 0.0), 0.04762, 1e-5);
    near(be::step(1.0, 0.1, 0.0, 0.0, 1.0), 0.04762, 1e-5);
    near(be::step(1.0, 0.5, 1.0, 0.0, 0.0), 0.6, 1e-12);
    near(be::step(1.0, 0.5, 0.0, 0.0, 1.0), 0.2, 1e-12);
}

/// Feed ACKs 1 ms apart on a 64 ms path. The window is full, so that every sample is a packet pair. `bytes` gives the
/// bytes of ACK k.
fn feed(abse: &mut Abse, acks: u64, bytes: impl Fn(u64) -> f64) {
    for k in 1..=acks {
        let ack =
            Credited { now: Time(k * 1_000_000), bytes: bytes(k), rtt: 0.064, rtt_min: 0.064, window: 1.0 };
        abse.on_ack(&ack);
    }
}

#[test]
fn constant_samples_converge_and_alternating_ones_are_damped() {
    let mut abse = Abse::new(params());
    feed(&mut abse, 10_000, |k| if k < 10 { 3000.0 } else { 1500.0 });
    let insight = abse.insight();
    near(abse.rate(), 1_500_000.0, 100.0);
    assert!(insight.u < 1.0, "{}", insight.u);
    near(insight.sample, 1_500_000.0, 1e-3);

    let mut abse = Abse::new(params());
    feed(&mut abse, 10_000, |k| if k % 2 == 0 { 3000.0 } else { 1000.0 });
    let insight = abse.insight();
    near(insight.u, 2_000_000.0, 1.0);
    near(insight.tau, 11.0 * 0.064, 1e-6);
    near(abse.rate(), 2_000_000.0, 20_000.0);
}

#[test]
fn switches_reach_the_filter() {
    let mut fixed = Abse::new(AbseParams { n: 0.0, ..params() });
    feed(&mut fixed, 1000, |k| if k % 2 == 0 { 3000.0 } else { 1000.0 });
    near(fixed.insight().tau, 0.064, 1e-9);
    let mut bounded = Abse::new(AbseParams { nic_rate: 1e6, ..params() });
    feed(&mut bounded, 1000, |_| 3000.0);
    near(bounded.rate(), 1e6, 1e-3);
    let mut floored = Abse::new(AbseParams { floor: Floor::Fixed(0.010), ..params() });
    feed(&mut floored, 1000, |_| 1500.0);
    near(floored.insight().interval, 0.010, 1e-12);
    near(floored.rate(), 1_500_000.0, 10.0);
}

/// Bursts of ten ACKs 100 us apart, one burst per 64 ms. With the last gap the estimate is the achieved rate; with the
/// gap of a packet pair it stays higher.
#[test]
fn pauses_count_by_the_last_gap_and_not_by_a_pairs() {
    let rate = |floor| {
        let mut abse = Abse::new(AbseParams { floor, n: 0.0, ..params() });
        for burst in 0..400_u64 {
            for i in 0..10_u64 {
                let now = Time(burst * 64_000_000 + i * 100_000);
                abse.on_ack(&Credited { now, bytes: 1500.0, rtt: 0.064, rtt_min: 0.064, window: 15_000.0 });
            }
        }
        abse.rate()
    };
    let achieved = 15_000.0 / 0.064;
    // read at the end of a burst, where a filter of one RTT exceeds its mean
    let (gap, pair) = (rate(Floor::Gap) / achieved, rate(Floor::Pair) / achieved);
    assert!((1.0..1.6).contains(&gap) && pair > 5.0 * gap, "{gap} {pair}");
}

/// Slow start: bursts at the path's rate with pauses in between. The window grows ahead of the rate of the last RTT,
/// which therefore indicates congestion. The low-passed rate of individual ACKs does not, and samples remain packet
/// pairs.
#[test]
fn a_filter_of_each_ack_samples_pairs_in_slow_start() {
    let run = |level| {
        let mut abse = Abse::new(AbseParams { floor: Floor::Pair, level, ..params() });
        for burst in 0..8_u64 {
            for i in 0..10_u64 {
                let now = Time(burst * 64_000_000 + i * 100_000);
                abse.on_ack(&Credited { now, bytes: 1500.0, rtt: 0.064, rtt_min: 0.064, window: 30_000.0 });
            }
        }
        (abse.insight().interval, abse.rate())
    };
    let (interval, rate) = run(LevelRate::Throughput);
    near(interval, 100e-6, 1e-9);
    let (longer, slower) = run(LevelRate::Achieved);
    assert!(longer > 0.4 * 0.064, "{longer}");
    assert!(rate > 2.0 * slower, "{rate} {slower}");
}

/// Computed by hand: ACKs of 1,500 bytes, 1 ms apart, RTT 8 ms, minimum RTT 4 ms.
///
/// | ACK | bytes of the last RTT | Th, B/s | low-passed | T_k with a window of 13,000 bytes, ms |
/// |---|---|---|---|---|
/// | 2 | 3,000 | 375,000 | 375,000, the first | 8 (13,000 - 1,500) / 13,000 = 7.07692 |
/// | 3 | 4,500 | 562,500 | 0.6 * 375,000 + 0.4 * 562,500 = 450,000 | 8 (13,000 - 1,800) / 13,000 = 6.89231 |
/// | many | 12,000 | 1,500,000 | 1,500,000 | 8 (13,000 - 6,000) / 13,000 = 4.30769 |
///
/// With a window of 11,000 bytes, less than the 12,000 of an RTT, T_k is T_min, the last gap.
#[test]
fn the_quoted_filter_by_hand() {
    let interval = |window: f64, acks: u64| {
        let mut abse = Abse::new(AbseParams { level: LevelRate::Quoted, ..params() });
        for k in 1..=acks {
            abse.on_ack(&Credited {
                now: Time(k * 1_000_000),
                bytes: 1500.0,
                rtt: 0.008,
                rtt_min: 0.004,
                window,
            });
        }
        1e3 * abse.insight().interval
    };
    near(interval(13_000.0, 2), 7.07692, 1e-5);
    near(interval(13_000.0, 3), 6.89231, 1e-5);
    near(interval(13_000.0, 200), 4.30769, 1e-5);
    near(interval(11_000.0, 200), 1.0, 1e-9);
}

#[test]
fn over_batches_the_rate_is_that_of_the_path_and_quiet() {
    // payload rate 1 Gb/s; ACKs for two segments each, 1 us apart, in batches every 125 us
    let batches = |abse: &mut Abse| {
        for b in 1..=400_u64 {
            for i in 0..5_u64 {
                let now = Time(b * 125_000 + i * 1_000);
                abse.on_ack(&Credited { now, bytes: 2.0 * 1448.0, rtt: 0.004, rtt_min: 0.004, window: 1.0 });
            }
        }
    };
    let path = 5.0 * 2.0 * 1448.0 / 125e-6;
    let mut aware = Abse::new(AbseParams { batch_gap: 5e-6, ..params() });
    batches(&mut aware);
    near(aware.rate(), path, 1.0);
    assert!(aware.insight().u < 1e-3 * path);
    let mut plain = Abse::new(params());
    batches(&mut plain);
    assert!(plain.insight().u > path, "{} {path}", plain.insight().u);
}

#[test]
fn duplicate_acks_are_credited_once() {
    let mut w = westwood(&[]);
    let seg = 1448;
    let ack = |bytes: u64, is_dup| AckSample::from(Arrival { acked_bytes: bytes, is_dup, ..arrival(0, 1) });
    assert_eq!(w.credit(&ack(seg, false)), seg);
    assert_eq!(w.credit(&ack(2 * seg, false)), 2 * seg);
    for _ in 0..3 {
        assert_eq!(w.credit(&ack(0, true)), seg);
    }
    assert_eq!(w.accounted, 3 * seg);
    assert_eq!(w.credit(&ack(2 * seg, false)), seg); // two of the three are subtracted; one segment is credited
    assert_eq!(w.accounted, seg);
    assert_eq!(w.credit(&ack(4 * seg, false)), 3 * seg);
    assert_eq!(w.accounted, 0);
    assert_eq!(w.credit(&ack(0, false)), 0, "a window update");
    let mut capped = westwood(&[("cap", Value::Flag(true))]);
    assert_eq!(capped.credit(&ack(10 * seg, false)), 2 * seg);
}

/// Simulate `rtts` round trips with a steady window of `cwnd` segments, evenly spaced ACKs and a 100 ms RTT.
fn steady(w: &mut Westwood, window: &mut Window, cwnd: u32, rtts: u64) {
    let gap = 100_000_000 / u64::from(cwnd);
    for k in 1..=rtts * u64::from(cwnd) {
        let ack = AckSample::from(Arrival { rtt: Some(Span::from_ms(100)), ..arrival(k * gap, 1) });
        w.on_sample(window, &ack);
    }
}

#[test]
fn a_loss_sets_the_window_to_what_the_path_carried_and_never_raises_it() {
    for estimator in ["be", "re", "crb", "abse", "abse-batch"] {
        let mut w = westwood(&[("estimator", Value::Text(estimator.into())), ("astart", Value::Flag(false))]);
        let mut window = Window::new(100);
        steady(&mut w, &mut window, 100, 40);
        let ssthresh = w.ssthresh(&window, 100);
        assert!((96..=101).contains(&ssthresh), "{estimator}: {ssthresh}");
        // with a smaller window, ssthresh rises at the end of recovery and cwnd does not
        window.cwnd = 50;
        assert_eq!(w.ssthresh(&window, 50), 50, "{estimator}");
        window.ssthresh = 50;
        w.on_recovered(&mut window, Time::ZERO);
        assert!(window.ssthresh > 90 || estimator == "re", "{estimator}: {}", window.ssthresh);
    }
}

#[test]
fn astart_lets_ssthresh_follow_the_estimate_until_the_first_loss() {
    let mut w = westwood(&[]);
    let mut window = Window::new(2);
    steady(&mut w, &mut window, 50, 20);
    assert!((48..=51).contains(&window.ssthresh), "{}", window.ssthresh);
    w.ssthresh(&window, 50);
    window.ssthresh = 10;
    steady(&mut w, &mut window, 50, 20);
    assert_eq!(window.ssthresh, 10);
}

#[test]
fn a_timeout_keeps_the_estimate() {
    let mut w = westwood(&[]);
    let mut window = Window::new(100);
    steady(&mut w, &mut window, 100, 40);
    window.prior_cwnd = window.cwnd;
    window.ssthresh = w.ssthresh(&window, 100);
    w.on_rto(&mut window, Time(10_000_000_000));
    assert!((96..=101).contains(&window.ssthresh), "{}", window.ssthresh);
}
