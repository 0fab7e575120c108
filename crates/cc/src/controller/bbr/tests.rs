//! Tests of BBR's model against a constant-rate path.

use super::*;
use crate::controller::tests::arrival;
use crate::controller::Arrival;

const SMSS: u32 = 1448;

/// Return an ACK for one segment, with a rate sample of `delivered` segments, on a path that delivers one segment per
/// ms with a 40 ms RTT.
fn ack(ms: u64, delivered_before: u64, delivered: u32, prior: u64) -> AckSample {
    let arrival = Arrival {
        rtt: Some(Span::from_ms(40)),
        srtt: Span::from_ms(40),
        prior_in_flight: 41,
        ..arrival(ms * 1_000_000, 1)
    };
    AckSample {
        in_flight: 40,
        rate: Some(RateSample {
            delivered,
            interval: Span::from_ms(u64::from(delivered)),
            send_elapsed: Span::ZERO,
            ack_elapsed: Span::from_ms(u64::from(delivered)),
            prior_delivered: prior,
            prior_time: Time::ZERO,
            total_delivered: delivered_before + 1,
            total_lost: 0,
            delivered_ce: 0,
            lost: 0,
            tx_in_flight: 40,
            is_app_limited: false,
            is_retrans: false,
            is_ack_delayed: false,
            is_probe_ack: false,
        }),
        ..arrival.into()
    }
}

fn run(bbr: &mut Bbr, w: &mut Window, from_ms: u64, to_ms: u64) {
    for ms in from_ms..to_ms {
        let prior = bbr.rounds.delivered.saturating_sub(40);
        let a = ack(ms, bbr.rounds.delivered, 40, prior);
        bbr.on_control(w, &a);
    }
}

#[test]
fn initial_rate_is_the_window_per_rtt_times_the_high_gain() {
    let mut w = Window::new(10);
    Bbr::default().on_start(&mut w, Time::ZERO, Span::from_ms(40), SMSS);
    let want = 10.0 * 1448.0 / 0.040 * 2.885 * 0.99;
    assert!((w.pacing_rate as f64 / want - 1.0).abs() < 0.005, "{}", w.pacing_rate);
}

#[test]
fn finds_the_rate_leaves_startup_after_three_flat_rounds_and_holds_two_bdps() {
    let (mut bbr, mut w) = (Bbr::default(), Window::new(10));
    bbr.on_start(&mut w, Time::ZERO, Span::from_ms(40), SMSS);
    run(&mut bbr, &mut w, 40, 2000);
    assert!(bbr.full_pipe.reached);
    assert_eq!(bbr.mode, Mode::ProbeBw);
    let bps = bbr.bw.get() as f64 / BW_UNIT as f64 * 1e6;
    assert!((bps - 1000.0).abs() < 1.0, "{bps}");
    assert!((80..=92).contains(&w.cwnd), "{}", w.cwnd); // 2 x 40 plus three bursts of two, plus 2 while probing
    let rate = w.pacing_rate as f64 / (1000.0 * 1448.0 * 0.99);
    assert!([1.25, 0.75, 1.0].iter().any(|gain| (rate - gain).abs() < 0.02), "{rate}");
}

#[test]
fn looks_for_the_least_rtt_after_ten_seconds_with_four_segments() {
    let (mut bbr, mut w) = (Bbr::default(), Window::new(10));
    bbr.on_start(&mut w, Time::ZERO, Span::from_ms(30), SMSS);
    run(&mut bbr, &mut w, 40, 10_010);
    assert_eq!((bbr.mode, w.cwnd), (Mode::ProbeRtt, 4));
    let low = |ms: u64, bbr: &Bbr| AckSample {
        in_flight: 3,
        ..ack(ms, bbr.rounds.delivered, 4, bbr.rounds.delivered)
    };
    for ms in 10_011..10_300 {
        let a = low(ms, &bbr);
        bbr.on_control(&mut w, &a);
    }
    assert_eq!(bbr.mode, Mode::ProbeBw);
    assert!(w.cwnd > 60, "{}", w.cwnd);
}

#[test]
fn recovery_conserves_packets_for_a_round_and_restores_the_window() {
    let (mut bbr, mut w) = (Bbr::default(), Window::new(10));
    bbr.on_start(&mut w, Time::ZERO, Span::from_ms(40), SMSS);
    run(&mut bbr, &mut w, 40, 2000);
    let before = w.cwnd;
    assert_eq!(bbr.ssthresh(&w, 40), w.ssthresh);
    let a = AckSample {
        ca_state: CaState::Recovery,
        newly_lost: 3,
        in_flight: 37,
        ..ack(2000, bbr.rounds.delivered, 40, 0)
    };
    bbr.on_control(&mut w, &a);
    assert_eq!(w.cwnd, 38);
    let a = AckSample { in_flight: 37, ..ack(2050, bbr.rounds.delivered, 40, bbr.rounds.delivered) };
    bbr.on_control(&mut w, &a);
    assert!(w.cwnd + 2 >= before, "{} {before}", w.cwnd);
}

/// Simulate rounds of 40 ACKs, with `lost` losses on the last ACK of each.
fn lossy_rounds(bbr: &mut Bbr, w: &mut Window, ms: &mut u64, rounds: u32, lost: u32) {
    for _ in 0..rounds {
        for n in 0..40 {
            *ms += 1;
            let mut a = ack(*ms, bbr.rounds.delivered, 40, bbr.rounds.delivered.saturating_sub(40));
            a.newly_lost = if n == 39 { lost } else { 0 };
            let total_lost = bbr.totals.lost + u64::from(a.newly_lost);
            a.rate = a.rate.map(|rate| RateSample { total_lost, ..rate });
            bbr.on_control(w, &a);
        }
    }
}

/// Linux `bbr_lt_bw_sampling`: a loss ratio of a fifth at the same rate in two intervals of four rounds indicates a
/// policer. The flow then paces at that rate for 48 rounds without probing.
#[test]
fn a_policers_rate_is_found_in_two_intervals_and_used_for_48_rounds() {
    let (mut bbr, mut w) = (Bbr::default(), Window::new(10));
    bbr.on_start(&mut w, Time::ZERO, Span::from_ms(40), SMSS);
    run(&mut bbr, &mut w, 40, 2000);
    let mut ms = 2000;
    // 10 of 40 lost: the first loss starts an interval; this interval and the next take four rounds each
    lossy_rounds(&mut bbr, &mut w, &mut ms, 8, 10);
    assert!(!bbr.long_term.used);
    lossy_rounds(&mut bbr, &mut w, &mut ms, 2, 10);
    assert!(bbr.long_term.used);
    let want = 1000.0 * BW_UNIT as f64 / 1e6;
    assert!((bbr.bw_in_use() as f64 / want - 1.0).abs() < 0.01, "{}", bbr.bw_in_use());
    assert_eq!(bbr.pacing_gain, UNIT);
    lossy_rounds(&mut bbr, &mut w, &mut ms, 45, 10);
    assert!(bbr.long_term.used);
    lossy_rounds(&mut bbr, &mut w, &mut ms, 4, 10);
    assert!(!bbr.long_term.used, "and looked for anew");
    assert_eq!(bbr.bw_in_use(), bbr.bw.get());
}

#[test]
fn less_than_a_fifth_lost_is_no_policer() {
    let (mut bbr, mut w) = (Bbr::default(), Window::new(10));
    bbr.on_start(&mut w, Time::ZERO, Span::from_ms(40), SMSS);
    run(&mut bbr, &mut w, 40, 2000);
    let mut ms = 2000;
    lossy_rounds(&mut bbr, &mut w, &mut ms, 40, 7); // 7 of 40 is 45/256; the threshold is 50/256
    assert!(!bbr.long_term.used);
}

#[test]
fn a_spurious_loss_ends_the_search() {
    let (mut bbr, mut w) = (Bbr::default(), Window::new(10));
    bbr.on_start(&mut w, Time::ZERO, Span::from_ms(40), SMSS);
    run(&mut bbr, &mut w, 40, 2000);
    let mut ms = 2000;
    lossy_rounds(&mut bbr, &mut w, &mut ms, 10, 10);
    assert!(bbr.long_term.used);
    bbr.undo_cwnd(&w);
    assert!(!bbr.long_term.used);
}

/// Linux `bbr_packets_in_net_at_edt`: segments that the path delivers before the pacer sends again are not counted as
/// in flight.
#[test]
fn what_is_in_flight_is_counted_for_the_next_departure() {
    let (mut bbr, mut w) = (Bbr::default(), Window::new(10));
    bbr.on_start(&mut w, Time::ZERO, Span::from_ms(40), SMSS);
    run(&mut bbr, &mut w, 40, 2000);
    let mut a = ack(2000, bbr.rounds.delivered, 40, 0);
    bbr.pacing_gain = UNIT;
    assert_eq!(bbr.in_net(40, &w, &a), 40);
    a.arrival.departs_in = Span::from_ms(3); // slightly below one segment per ms, because the rate is rounded down
    assert_eq!(bbr.in_net(40, &w, &a), 40 - 2);
    a.arrival.departs_in = Span::from_ms(100);
    assert_eq!(bbr.in_net(40, &w, &a), 0);
}

/// As in the kernel, so that a flow does not mistake the low rates of ProbeRTT for a full pipe.
#[test]
fn rates_of_probe_rtt_are_application_limited() {
    let (mut bbr, mut w) = (Bbr::default(), Window::new(10));
    bbr.on_start(&mut w, Time::ZERO, Span::from_ms(30), SMSS);
    run(&mut bbr, &mut w, 40, 9_000);
    assert!(!bbr.holds_back());
    run(&mut bbr, &mut w, 9_000, 10_010);
    assert_eq!(bbr.mode, Mode::ProbeRtt);
    assert!(bbr.holds_back());
}
