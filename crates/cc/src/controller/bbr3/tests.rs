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
    let (mut bbr, mut w) = (Bbr3::new(&options(Flavour::Draft06, false)), Window::new(10));
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

fn options(flavour: Flavour, ecn: bool) -> Bbr3Options {
    Bbr3Options { flavour, ecn }
}

fn of(flavour: Flavour, ecn: bool, rtt_ms: u64) -> (Bbr3, Window) {
    let (mut bbr, mut w) = (Bbr3::new(&options(flavour, ecn)), Window::new(10));
    bbr.on_start(&mut w, Time::ZERO, Span::from_ms(rtt_ms), 1448);
    (bbr, w)
}

#[test]
fn a_flavours_threshold_of_loss_is_two_percent_or_five_256ths() {
    for (flavour, too_many) in [(Flavour::Draft06, 3), (Flavour::LinuxV3, 2)] {
        let (bbr, w) = of(flavour, false, 40);
        let at = |lost| {
            let rate = ack(&bbr, 1, w.cwnd, 0).rate.expect("a sample");
            bbr.too_high(&RateSample { lost, tx_in_flight: 100, ..rate })
        };
        assert!(!at(too_many - 1) && at(too_many), "{flavour:?}");
    }
}

#[test]
fn only_the_draft_ends_drain_by_rounds() {
    for (flavour, ends) in [(Flavour::Draft06, true), (Flavour::LinuxV3, false)] {
        let (mut bbr, mut w) = of(flavour, false, 40);
        run(&mut bbr, &mut w, 40, 400, 0);
        bbr.state = State::Drain;
        for ms in 400..600 {
            let a = AckSample { in_flight: 500, ..ack(&bbr, ms, w.cwnd, 0) };
            bbr.on_control(&mut w, &a);
        }
        assert_eq!(bbr.state != State::Drain, ends, "{flavour:?}");
    }
}

#[test]
fn what_aggregation_showed_is_forgotten_after_ten_rounds() {
    for (flavour, holds) in [(Flavour::Draft06, 10), (Flavour::LinuxV3, 10)] {
        let (mut bbr, mut w) = of(flavour, false, 40);
        run(&mut bbr, &mut w, 40, 400, 0);
        bbr.aggregation = Aggregation::new(bbr.c.extra_acked_parts);
        bbr.aggregation.restart(Time(400_000_000));
        let mut burst = ack(&bbr, 400, w.cwnd, 0);
        (burst.delivered, burst.arrival.delivered) = (30, 30);
        bbr.rounds.round_start = false;
        bbr.update_aggregation(&w, &burst);
        assert!(bbr.extra_acked() >= 29.0, "{}", bbr.extra_acked());
        let forgotten = (1..20).find(|_| {
            bbr.rounds.round_start = true;
            bbr.update_aggregation(&w, &ack(&bbr, 500, 10, 0));
            bbr.extra_acked() < 20.0
        });
        assert_eq!(forgotten, Some(holds), "{flavour:?}");
    }
}

#[test]
fn short_paths_give_the_kernels_budget_more_room() {
    let (bbr, _) = of(Flavour::LinuxV3, false, 1);
    // 100 Mbit/s: 12.5 MB/s >> 10 is 12207 bytes, and 1 ms adds 64 KiB >> 1
    assert_eq!(bbr.burst(12_500_000, 1448), f64::from((12_207 + 32_768) / 1448));
    let (bbr, _) = of(Flavour::LinuxV3, false, 40);
    assert_eq!((bbr.burst(12_500_000, 1448), bbr.burst(100_000, 1448)), (8.0, 1.0));
    let (bbr, _) = of(Flavour::Draft06, false, 1);
    assert_eq!((bbr.burst(12_500_000, 1448), bbr.burst(100_000, 1448)), (8.0, 2.0));
}

#[test]
fn after_a_probe_with_too_much_loss_the_next_ends_at_the_bound_and_a_good_one_goes_on() {
    let (mut bbr, mut w) = started();
    run(&mut bbr, &mut w, 40, 400, 0);
    bbr.state = State::ProbeBw(Cycle::Up);
    bbr.probe.samples = true;
    let a = ack(&bbr, 401, w.cwnd, 4);
    bbr.on_control(&mut w, &a);
    assert_eq!(bbr.state, State::ProbeBw(Cycle::Down));
    let bound = bbr.bounds.inflight_longterm;
    // the next probe: as much in flight as the bound allows
    bbr.state = State::ProbeBw(Cycle::Up);
    bbr.probe.ack_phase = AckPhase::ProbeFeedback;
    let a = AckSample { in_flight: bound as u32, ..ack(&bbr, 402, w.cwnd, 0) };
    bbr.on_control(&mut w, &a);
    assert_eq!(bbr.state, State::ProbeBw(Cycle::Down), "stopped at {bound}");
    let seen = run(&mut bbr, &mut w, 403, 503, 0);
    assert_eq!(seen[..3], [Cycle::Down, Cycle::Refill, Cycle::Up], "without a cruise");
}

#[test]
fn a_spurious_loss_gives_back_the_bounds_and_in_the_draft_the_state() {
    for (flavour, state) in
        [(Flavour::Draft06, State::Startup), (Flavour::LinuxV3, State::ProbeBw(Cycle::Down))]
    {
        let (mut bbr, w) = of(flavour, false, 40);
        bbr.ssthresh(&w, 10);
        bbr.full_pipe.reached = true;
        bbr.state = State::ProbeBw(Cycle::Down);
        bbr.bounds.inflight_longterm = 12.0;
        bbr.bounds.bw_shortterm = 100.0;
        bbr.undo_cwnd(&w);
        assert!(bbr.bounds.inflight_longterm.is_infinite() && bbr.bounds.bw_shortterm.is_infinite());
        assert_eq!((bbr.state, bbr.full_pipe.reached), (state, flavour == Flavour::LinuxV3));
    }
}

#[test]
fn marks_cut_by_a_third_of_alpha_on_short_paths_only() {
    for (rtt, eligible) in [(4, true), (6, false)] {
        let (mut bbr, w) = of(Flavour::LinuxV3, true, rtt);
        assert!(bbr.needs().exact_ecn);
        let mut a = ack(&bbr, 1, w.cwnd, 0);
        a.delivered_ce = 1;
        bbr.update_marks(&a);
        assert_eq!((bbr.marks.eligible, bbr.marks.in_round), (eligible, eligible));
    }
    let (mut bbr, _) = of(Flavour::LinuxV3, true, 1);
    for (alpha, keeps) in [(1.0, 171.0 / 256.0), (0.5, 213.5 / 256.0)] {
        bbr.marks.alpha = alpha;
        bbr.marks.in_round = true;
        bbr.bounds.inflight_shortterm = 100.0;
        bbr.bounds.lower(1000.0, 100, bbr.c.beta, &bbr.marks);
        assert!((bbr.bounds.inflight_shortterm - 100.0 * keeps).abs() < 1e-9, "{alpha}");
        assert!(bbr.bounds.bw_shortterm.is_infinite(), "marks leave the rate alone");
    }
    assert!(!of(Flavour::LinuxV3, false, 1).0.needs().exact_ecn);
}
