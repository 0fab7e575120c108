//! Tests of version 3 against a constant-rate path and against a lossy one.

use super::gains::MIN_PIPE_CWND;
use super::*;
use crate::controller::tests::arrival;
use crate::controller::Arrival;

/// Return an ACK on a path that delivers `per_ms` segments per ms with a 40 ms RTT; `lost` segments of the flight are
/// lost.
fn ack(bbr: &Bbr3, ms: u64, cwnd: u32, lost: u32) -> AckSample {
    let in_flight = cwnd.min(60);
    let arrival = Arrival {
        rtt: Some(Span::from_ms(40)),
        srtt: Span::from_ms(40),
        prior_in_flight: in_flight + 1,
        window_held: true,
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
            total_lost: 0,
            delivered_ce: 0,
            lost,
            tx_in_flight: in_flight,
            is_app_limited: false,
            is_retrans: false,
            is_ack_delayed: false,
            is_probe_ack: false,
        }),
        ..arrival.into()
    }
}

fn run(bbr: &mut Bbr3, w: &mut Window, from_ms: u64, to_ms: u64, lost: u32) -> Vec<Cycle> {
    let mut seen = Vec::new();
    for ms in from_ms..to_ms {
        let a = ack(bbr, ms, w.cwnd, lost);
        if a.newly_lost > 0 {
            bbr.on_lost(w, a.now, bbr.rounds.delivered + 1, lost, a.in_flight, false);
        }
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
    assert_eq!(bbr.bw(), 40 * BW_UNIT / 40_000);
    assert_eq!(bbr.bdp(bbr.bw(), Ratio::ONE), 40, "a whole number of segments is not rounded up");
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
    assert_eq!(bbr.bounds.inflight_longterm, UNBOUNDED);
    let a = ack(&bbr, 402, w.cwnd, 2);
    bbr.on_control(&mut w, &a);
    assert_eq!(bbr.bounds.inflight_longterm, a.in_flight.min(60));
    assert_eq!(bbr.state, State::ProbeBw(Cycle::Down));
    bbr.state = State::ProbeBw(Cycle::Cruise);
    let bound = bbr.bounds.inflight_longterm;
    assert_eq!(bbr.inflight_with_headroom(), bound - bound * 15 / 100);
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
    assert!(bbr.bounds.bw_shortterm != NO_RATE && bbr.bounds.inflight_shortterm != UNBOUNDED);
    assert!(bbr.bw() >= 700 * BW_UNIT / 1_000_000);
    bbr.probe.wait = Span::ZERO;
    run(&mut bbr, &mut w, 600, 602, 0);
    assert!(bbr.bounds.bw_shortterm == NO_RATE, "a probe forgets them");
}

#[test]
fn looks_for_the_least_rtt_after_five_seconds_with_half_the_pipe() {
    let (mut bbr, mut w) = started();
    bbr.rtt.min_rtt = 30_000; // the minimum RTT is never observed again
    bbr.rtt.probe_rtt_min = 30_000;
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
        (burst.delivered, burst.arrival.newly_acked) = (30, 30);
        bbr.rounds.round_start = false;
        bbr.update_aggregation(&w, &burst);
        assert!(bbr.extra_acked() >= 29, "{}", bbr.extra_acked());
        let forgotten = (1..20).find(|_| {
            bbr.rounds.round_start = true;
            bbr.update_aggregation(&w, &ack(&bbr, 500, 10, 0));
            bbr.extra_acked() < 20
        });
        assert_eq!(forgotten, Some(holds), "{flavour:?}");
    }
}

#[test]
fn short_paths_give_the_kernels_budget_more_room() {
    let (bbr, _) = of(Flavour::LinuxV3, false, 1);
    // 100 Mbit/s: 12.5 MB/s >> 10 is 12207 bytes, and 1 ms adds 64 KiB >> 1
    assert_eq!(bbr.burst(12_500_000, 1448), (12_207 + 32_768) / 1448);
    let (bbr, _) = of(Flavour::LinuxV3, false, 40);
    assert_eq!((bbr.burst(12_500_000, 1448), bbr.burst(100_000, 1448)), (8, 2));
    let (bbr, _) = of(Flavour::Draft06, false, 1);
    assert_eq!((bbr.burst(12_500_000, 1448), bbr.burst(100_000, 1448)), (8, 2));
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
    // the next probe ends when the bound is in flight
    bbr.state = State::ProbeBw(Cycle::Up);
    bbr.probe.ack_phase = AckPhase::ProbeFeedback;
    let a = AckSample { in_flight: bound, ..ack(&bbr, 402, w.cwnd, 0) };
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
        bbr.bounds.inflight_longterm = 12;
        bbr.bounds.bw_shortterm = 100;
        bbr.undo_cwnd(&w);
        assert_eq!((bbr.bounds.inflight_longterm, bbr.bounds.bw_shortterm), (UNBOUNDED, NO_RATE));
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
    for (alpha, keeps) in [(256, 171), (128, 214)] {
        bbr.marks.alpha = alpha;
        bbr.marks.in_round = true;
        bbr.bounds.inflight_shortterm = 1000;
        bbr.bounds.lower(1000, 100, bbr.c.beta, &bbr.marks);
        assert_eq!(bbr.bounds.inflight_shortterm, 1000 * keeps / 256, "{alpha}");
        assert_eq!(bbr.bounds.bw_shortterm, NO_RATE, "marks leave the rate alone");
    }
    assert!(!of(Flavour::LinuxV3, false, 1).0.needs().exact_ecn);
}

/// Bounds computed as a fraction are rounded to whole segments, so that cwnd can reach them. A probe without losses
/// then raises the bound by 1, 2, 4 segments per round.
#[test]
fn a_bound_that_is_a_share_is_reached_and_rises() {
    for flavour in [Flavour::Draft06, Flavour::LinuxV3] {
        for cwnd in 6..80 {
            let (mut bbr, mut w) = of(flavour, false, 40);
            run(&mut bbr, &mut w, 40, 400, 0);
            w.cwnd = cwnd;
            bbr.bw_filter = [100 * BW_UNIT / 40_000, 0];
            bbr.state = State::ProbeBw(Cycle::Up);
            bbr.probe.samples = true;
            let low =
                RateSample { tx_in_flight: 1, lost: 1, ..ack(&bbr, 401, cwnd, 1).rate.expect("a sample") };
            let lossy = AckSample { rate: Some(low), ..ack(&bbr, 401, cwnd, 1) };
            bbr.on_control(&mut w, &lossy);
            let bound = bbr.bounds.inflight_longterm;
            let target = cwnd.min(100);
            assert_eq!(bound, bbr.c.beta.of_volume(target).max(1), "{flavour:?} {cwnd}");
            bbr.state = State::ProbeBw(Cycle::Up);
            (bbr.probe.prev_too_high, bbr.probe.up_rounds) = (false, 0);
            bbr.start_up(&w, Time(401_000_000), 0);
            // rounds of 40 window-limited ACKs without losses; nothing else raises the bound
            for ms in 402..522 {
                let a = ack(&bbr, ms, w.cwnd, 0);
                let rate = RateSample { tx_in_flight: 1, ..a.rate.expect("a sample") };
                bbr.on_control(&mut w, &AckSample { rate: Some(rate), ..a });
            }
            assert!(
                bbr.bounds.inflight_longterm > bound.max(MIN_PIPE_CWND),
                "{flavour:?} {cwnd}: stuck at {bound}"
            );
        }
    }
}

#[test]
fn the_slope_of_a_probe_is_a_whole_number_of_segments_for_each_segment() {
    let (mut bbr, _) = started();
    bbr.probe.up_rounds = 0;
    // window of 65: the bound rises by one for each 65, 32, 16, 8, 4, 2 or 1 segments acknowledged, and never faster
    let cnts = [65, 32, 16, 8, 4, 2, 1, 1, 1];
    for cnt in cnts {
        bbr.raise_slope(&Window::new(65));
        assert_eq!(bbr.probe.up_cnt, cnt);
    }
}

#[test]
fn a_cycle_without_a_sample_does_not_forget_the_rate() {
    let (mut bbr, _) = started();
    bbr.bw_filter = [500, 300];
    bbr.advance_bw_filter();
    assert_eq!(bbr.max_bw(), 500);
    bbr.advance_bw_filter();
    assert_eq!(bbr.max_bw(), 500, "nothing was measured since");
    bbr.bw_filter[0] = 200;
    bbr.advance_bw_filter();
    assert_eq!(bbr.max_bw(), 200);
}

#[test]
fn the_loss_round_begins_with_the_first_loss() {
    let (mut bbr, mut w) = started();
    run(&mut bbr, &mut w, 40, 400, 0);
    let mut lose = |bbr: &mut Bbr3, ms| {
        let a = AckSample { newly_lost: 1, ..ack(bbr, ms, w.cwnd, 0) };
        bbr.on_lost(&mut w, a.now, bbr.rounds.delivered + 1, 1, 60, false);
        bbr.on_control(&mut w, &a);
    };
    lose(&mut bbr, 400);
    assert!(bbr.bounds.loss_in_round);
    let end = bbr.bounds.loss_round_delivered;
    assert_eq!(end, bbr.rounds.delivered);
    lose(&mut bbr, 401);
    assert_eq!(bbr.bounds.loss_round_delivered, end, "a second loss does not make the round longer");
}

#[test]
fn rates_are_rounded_down_by_the_draft_and_up_by_the_kernel() {
    for (flavour, bdp) in [(Flavour::Draft06, 40), (Flavour::LinuxV3, 41)] {
        let (mut bbr, w) = of(flavour, false, 40);
        let rate = ack(&bbr, 1, w.cwnd, 0).rate.expect("a sample"); // 40 segments in 40 ms
        bbr.bw_filter[0] = bbr.sample_bw(&rate);
        assert_eq!(bbr.bdp(bbr.bw(), Ratio::ONE), bdp, "{flavour:?}");
    }
}

#[test]
fn a_timeout_between_probes_leaves_the_kernel_the_window_before_it() {
    let (mut bbr, mut w) = of(Flavour::LinuxV3, false, 40);
    run(&mut bbr, &mut w, 40, 400, 0);
    bbr.state = State::ProbeBw(Cycle::Cruise);
    let before = w.cwnd;
    bbr.ssthresh(&w, 40);
    w.cwnd = 1;
    bbr.on_state(&mut w, CaState::Loss, Time(400_000_000));
    assert_eq!(bbr.bounds.inflight_shortterm, before);
    bbr.on_state(&mut w, CaState::Open, Time(500_000_000));
    assert_eq!(w.cwnd, before, "and gives it back");
}

/// The bound follows from the segment at which losses exceed the threshold, not from the newest segment covered by an
/// ACK. With 100 in flight the third loss exceeds 2 % (draft) and the second exceeds 5/256 (kernel). The bound includes
/// the part of that segment up to the threshold.
#[test]
fn a_probes_bound_is_what_was_in_flight_at_the_segment_that_was_one_too_many() {
    for (flavour, enough, bound) in [(Flavour::Draft06, 3, 99), (Flavour::LinuxV3, 2, 100)] {
        let (mut bbr, mut w) = of(flavour, false, 40);
        run(&mut bbr, &mut w, 40, 400, 0);
        bbr.state = State::ProbeBw(Cycle::Up);
        bbr.probe.samples = true;
        let now = Time(401_000_000);
        for lost in 1..enough {
            bbr.on_lost(&mut w, now, 400, lost, 100, false);
            assert_eq!(bbr.bounds.inflight_longterm, UNBOUNDED, "{flavour:?} {lost}");
        }
        bbr.on_lost(&mut w, now, 400, enough, 100, false);
        assert_eq!(
            (bbr.bounds.inflight_longterm, bbr.state),
            (bound, State::ProbeBw(Cycle::Down)),
            "{flavour:?}"
        );
        bbr.on_lost(&mut w, now, 400, 50, 20, false);
        assert_eq!(bbr.bounds.inflight_longterm, bound, "once in a probe");
    }
}

#[test]
fn what_an_application_held_back_sets_no_bound_but_ends_the_probe() {
    let (mut bbr, mut w) = of(Flavour::LinuxV3, false, 40);
    run(&mut bbr, &mut w, 40, 400, 0);
    bbr.state = State::ProbeBw(Cycle::Up);
    bbr.probe.samples = true;
    bbr.on_lost(&mut w, Time(401_000_000), 400, 9, 20, true);
    assert_eq!((bbr.bounds.inflight_longterm, bbr.state), (UNBOUNDED, State::ProbeBw(Cycle::Down)));
}

#[test]
fn a_loss_that_a_probe_of_the_tail_repaired_is_one_of_the_flight_in_the_kernel_and_nothing_in_the_draft() {
    let now = Time(401_000_000);
    for (flavour, hears) in [(Flavour::Draft06, false), (Flavour::LinuxV3, true)] {
        let (mut bbr, mut w) = of(flavour, false, 40);
        run(&mut bbr, &mut w, 40, 400, 0);
        bbr.bounds.inflight_latest = 20;
        (bbr.state, bbr.probe.samples) = (State::ProbeBw(Cycle::Cruise), false);
        bbr.on_repaired(&mut w, now, 402, false);
        assert_eq!((bbr.bounds.loss_in_round, bbr.bounds.loss_in_cycle), (hears, hears), "{flavour:?}");
        assert_eq!(bbr.bounds.inflight_longterm, UNBOUNDED, "{flavour:?}: no probe is under way");
        // one of 21 exceeds 5/256: the probe ends, and its congestion signals are reset (Linux
        // `bbr_reset_congestion_signals`)
        (bbr.state, bbr.probe.samples) = (State::ProbeBw(Cycle::Up), true);
        bbr.on_repaired(&mut w, now, 402, false);
        assert_eq!(bbr.bounds.inflight_longterm != UNBOUNDED, hears, "{flavour:?}");
        assert_eq!(bbr.state != State::ProbeBw(Cycle::Up), hears, "{flavour:?}");
        assert!(!bbr.bounds.loss_in_round, "{flavour:?}");
        assert_eq!(
            bbr.rounds.next_round_delivered == 402,
            hears,
            "{flavour:?}: the round that begins counts what this ACK delivered"
        );
    }
}

#[test]
fn a_settled_window_leaves_an_application_limited_ack_alone() {
    let (mut bbr, mut w) = of(Flavour::LinuxV3, false, 40);
    run(&mut bbr, &mut w, 40, 400, 0);
    bbr.state = State::ProbeBw(Cycle::Cruise);
    (bbr.probe.cycle_stamp, bbr.probe.wait, bbr.probe.rounds_since_probe) =
        (Time(400_000_000), Span::from_secs(100), 0);
    run(&mut bbr, &mut w, 400, 410, 0);
    assert!(bbr.settled);
    let full = ack(&bbr, 410, w.cwnd, 0);
    let rate = RateSample { is_app_limited: true, delivered: 10, ..full.rate.expect("a sample") };
    let (before, cwnd) = (bbr.aggregation, w.cwnd);
    bbr.on_control(&mut w, &AckSample { rate: Some(rate), ..full });
    assert_eq!((format!("{:?}", bbr.aggregation), w.cwnd), (format!("{before:?}"), cwnd));
}
