//! Version 3 against a path of constant rate, and against one that drops.

use super::*;
use crate::controller::tests::arrival;
use crate::controller::Arrival;

/// A path of `per_ms` segments per ms and 40 ms; `lost` of the flight are lost.
fn ack(bbr: &Bbr3, ms: u64, cwnd: u32, lost: u32) -> AckSample {
    let in_flight = cwnd.min(60);
    let arrival = Arrival {
        rtt: Some(Span::from_ms(40)),
        srtt: Span::from_ms(40),
        prior_in_flight: in_flight + 1,
        ..arrival(ms * 1_000_000, 1)
    };
    AckSample {
        in_flight,
        newly_lost: lost.min(1),
        rate: Some(RateSample {
            delivered: 40,
            interval: Span::from_ms(40),
            send_elapsed: Span::ZERO,
            ack_elapsed: Span::from_ms(40),
            prior_delivered: bbr.rounds.delivered.saturating_sub(40),
            prior_time: Time::ZERO,
            total_delivered: bbr.rounds.delivered + 1,
            delivered_ce: 0,
            lost,
            tx_in_flight: in_flight,
            is_app_limited: false,
            is_retrans: false,
            is_ack_delayed: false,
        }),
        ..arrival.into()
    }
}

fn run(bbr: &mut Bbr3, w: &mut Window, from_ms: u64, to_ms: u64, lost: u32) -> Vec<Cycle> {
    let mut seen = Vec::new();
    for ms in from_ms..to_ms {
        let a = ack(bbr, ms, w.cwnd, lost);
        bbr.on_control(w, &a);
        if let State::ProbeBw(cycle) = bbr.state {
            if seen.last() != Some(&cycle) {
                seen.push(cycle);
            }
        }
    }
    seen
}

fn started() -> (Bbr3, Window) {
    let (mut bbr, mut w) = (Bbr3::default(), Window::new(10));
    bbr.on_start(&mut w, Time::ZERO, Span::from_ms(40), 1448);
    (bbr, w)
}

#[test]
fn leaves_startup_when_the_rate_no_longer_grows_and_probes_every_few_seconds() {
    let (mut bbr, mut w) = started();
    run(&mut bbr, &mut w, 40, 400, 0);
    assert!(bbr.full_pipe.reached, "{:?}", bbr.state);
    assert!((bbr.bw() - 1000.0).abs() < 1.0, "{}", bbr.bw());
    bbr.state = State::ProbeBw(Cycle::Cruise);
    bbr.probe.cycle_stamp = Time(400_000_000);
    bbr.probe.wait = Span::from_ms(500);
    let seen = run(&mut bbr, &mut w, 400, 3000, 0);
    let at = seen.iter().position(|&c| c == Cycle::Refill).expect("refills");
    assert_eq!(seen[at..at + 3], [Cycle::Refill, Cycle::Up, Cycle::Down], "{seen:?}");
}

#[test]
fn losses_beyond_two_percent_in_a_probe_set_the_bound_and_end_it() {
    let (mut bbr, mut w) = started();
    run(&mut bbr, &mut w, 40, 400, 0);
    bbr.state = State::ProbeBw(Cycle::Up);
    bbr.probe.samples = true;
    let a = ack(&bbr, 401, w.cwnd, 1); // 1 of 60 is below 2 %
    bbr.on_control(&mut w, &a);
    assert!(bbr.bounds.inflight_longterm.is_infinite());
    let a = ack(&bbr, 402, w.cwnd, 2);
    bbr.on_control(&mut w, &a);
    assert_eq!(bbr.bounds.inflight_longterm, 60.0_f64.min(f64::from(a.in_flight)));
    assert_eq!(bbr.state, State::ProbeBw(Cycle::Down));
    bbr.state = State::ProbeBw(Cycle::Cruise);
    assert!((bbr.inflight_with_headroom() - 0.85 * bbr.bounds.inflight_longterm).abs() < 1e-9);
}

#[test]
fn losses_between_probes_bound_the_rate_for_a_while() {
    let (mut bbr, mut w) = started();
    run(&mut bbr, &mut w, 40, 400, 0);
    bbr.state = State::ProbeBw(Cycle::Cruise);
    bbr.probe.cycle_stamp = Time(400_000_000);
    bbr.probe.wait = Span::from_secs(100);
    bbr.probe.rounds_since_probe = 0;
    run(&mut bbr, &mut w, 400, 600, 1);
    assert!(bbr.bounds.bw_shortterm.is_finite() && bbr.bounds.inflight_shortterm.is_finite());
    assert!(bbr.bw() >= 0.7 * 1000.0);
    bbr.probe.wait = Span::ZERO;
    run(&mut bbr, &mut w, 600, 602, 0);
    assert!(bbr.bounds.bw_shortterm.is_infinite(), "a probe forgets them");
}

#[test]
fn looks_for_the_least_rtt_after_five_seconds_with_half_the_pipe() {
    let (mut bbr, mut w) = started();
    bbr.rtt.min_rtt = 0.03; // never seen again
    bbr.rtt.probe_rtt_min = 0.03;
    run(&mut bbr, &mut w, 40, 5_002, 0);
    assert_eq!(bbr.state, State::ProbeRtt);
    assert!(w.cwnd <= 20, "{}", w.cwnd);
}
