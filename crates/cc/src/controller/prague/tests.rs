//! Test vectors from the draft, and for the module's arithmetic.

use super::*;
use crate::controller::tests::arrival;
use crate::controller::Arrival;

fn prague() -> Prague {
    let mut prague = Prague::new(&PragueOptions { virtual_rtt_s: 0.025, virtual_after: 500 });
    prague.on_negotiated(true);
    prague
}

/// Return a connection in congestion avoidance.
fn started(cwnd: u32, rtt: Span) -> (Prague, Window) {
    let mut window = Window { ssthresh: 2, ..Window::new(cwnd) };
    let mut prague = prague();
    prague.on_start(&mut window, Time::ZERO, rtt, 1448);
    (prague, window)
}

/// Simulate alpha periods of a hundred segments each, with the given numbers of them marked.
fn periods(prague: &mut Prague, window: &mut Window, first: u64, count: u64, marked: u32) {
    prague.marked = true;
    for n in first..first + count {
        let ack = Arrival {
            now: Time((n + 1) * 1_000_000_000),
            snd_una: (n + 1) * 1000,
            snd_nxt: (n + 2) * 1000,
            newly_acked_ce: marked,
            ..arrival(0, 100)
        };
        prague.on_sample(window, &ack);
    }
}

#[test]
fn alpha_moves_by_a_sixteenth_with_twenty_bits() {
    let of = |prague: &Prague| prague.alpha as f64 / (1 << 24) as f64;
    let (mut p, mut w) = started(100, Span::from_ms(50));
    periods(&mut p, &mut w, 0, 1, 0);
    assert_eq!(p.alpha, 15_728_640);
    for (from, to, want) in [(1, 10, 0.52446), (10, 16, 0.35607), (16, 32, 0.12679)] {
        periods(&mut p, &mut w, from, to - from, 0);
        assert!((of(&p) - want).abs() < 1e-5, "{to}: {}", of(&p));
    }
    for (periods_, want) in [(1, 0.0625), (10, 0.47554)] {
        let (mut p, mut w) = started(100, Span::from_ms(50));
        p.alpha = 0;
        periods(&mut p, &mut w, 0, periods_, 100);
        assert!((of(&p) - want).abs() < 1e-5, "{}", of(&p));
    }
    let (mut p, mut w) = started(100, Span::from_ms(50));
    p.alpha = 0;
    periods(&mut p, &mut w, 0, 1, 10);
    assert_eq!(p.alpha >> SHIFT_G, 6_553, "a tenth, of 2^20");
}

#[test]
fn alpha_waits_for_the_first_mark() {
    let (mut p, mut w) = started(100, Span::from_ms(50));
    let ack = Arrival { now: Time(1_000_000_000), snd_una: 1000, snd_nxt: 2000, ..arrival(0, 100) };
    p.on_sample(&mut w, &ack);
    assert_eq!(p.alpha, 1 << 24);
    // so the first mark halves the window
    let ack = Arrival { newly_acked_ce: 1, ..ack };
    assert!(!p.on_ecn(&mut w, &ack), "not in a state of reduction");
    assert_eq!((w.ssthresh, p.frac_cwnd / ONE), (50, 50));
}

#[test]
fn a_mark_takes_half_of_alpha_with_its_fraction_and_once_a_period() {
    for (alpha, want) in [(0.1, 95.0), (1.0, 50.0), (0.02, 99.0), (0.005, 99.75)] {
        let (mut p, mut w) = started(100, Span::from_ms(50));
        p.alpha = (alpha * (1 << 24) as f64) as u64;
        let ack = Arrival { newly_acked_ce: 1, ..arrival(1_000_000_000, 1) };
        p.on_ecn(&mut w, &ack);
        let frac = p.frac_cwnd as f64 / ONE as f64;
        assert!((frac - want).abs() < 1e-4, "{alpha}: {frac}");
        assert_eq!(w.cwnd, 99, "by one segment per ACK");
        for (ms, again) in [(99, false), (101, true)] {
            p.srtt = Span::from_ms(100);
            let before = p.frac_cwnd;
            p.on_ecn(&mut w, &Arrival { now: Time(1_000_000_000 + ms * 1_000_000), ..ack });
            assert_eq!(p.frac_cwnd < before, again, "{ms}");
        }
    }
}

#[test]
fn growth_is_a_segment_per_round_trip_and_less_on_short_paths() {
    let (mut p, mut w) = started(10, Span::from_ms(5));
    p.srtt = Span::from_ms(5);
    assert_eq!(p.share(), ONE, "not at once");
    p.rounds = 500;
    assert_eq!(p.share(), 41_943, "39^2 / 195^2");
    p.srtt = Span::from_ms(50);
    assert_eq!(p.share(), ONE);
    let mut grow = |p: &mut Prague, marked| {
        let before = p.frac_cwnd;
        let ack = AckSample { delivered_ce: marked, ..arrival(0, 10).into() };
        p.on_ack(&mut w, &ack);
        (p.frac_cwnd - before) as f64 / ONE as f64
    };
    assert!((grow(&mut p, 0) - 1.0).abs() < 1e-6);
    let half = grow(&mut p, 5);
    assert!((half - 5.0 / 11.0).abs() < 1e-6, "marked segments do not count: {half}");
}

#[test]
fn a_loss_halves_and_after_a_mark_both_together_do() {
    let (mut p, w) = started(100, Span::from_ms(50));
    assert_eq!(p.ssthresh(&w, 100), 50);
    let (mut p, mut w) = started(100, Span::from_ms(50));
    p.alpha = (1 << 24) / 5;
    let ack = Arrival { newly_acked_ce: 1, ..arrival(1_000_000_000, 1) };
    p.on_ecn(&mut w, &ack);
    (p.now, p.srtt) = (ack.now + Span::from_ms(10), Span::from_ms(50));
    w.cwnd = p.left;
    assert_eq!(p.ssthresh(&w, 90), 50, "0.9 / 1.8");
}

#[test]
fn without_accurate_ecn_it_is_reno() {
    let (mut p, mut w) = started(10, Span::from_ms(50));
    p.on_negotiated(false);
    p.on_ack(&mut w, &arrival(0, 10).into());
    assert_eq!(w.cwnd, 11);
    assert_eq!((p.ssthresh(&w, 11), w.pacing_rate), (5, Window::UNPACED));
}
