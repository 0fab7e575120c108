//! Departure times of a paced sender's segments, compared with the formula of the pacing rate.

use crate::common::server::{Server, RTT};
use ackclock_cc::controller::Recipe;
use ackclock_core::Span;
use ackclock_tcp::{Buffers, Config, Pacing, Tso};

fn config(pacing: Pacing) -> Config {
    let base = Config::profile("linux-6").expect("a profile");
    base.with(|set| {
        set.sending.controller = Recipe::by_name("reno").expect("a controller");
        set.loss.tlp = false;
        set.sending.pacing = pacing;
    })
}

fn paced() -> Pacing {
    Pacing { on: true, ..Pacing::OFF }
}

/// Return the departures from now to `until`: microseconds from now, and the packet.
fn departures(s: &mut Server, until: Span) -> Vec<(u64, String)> {
    let (from, end) = (s.now, s.now + until);
    let mut all: Vec<(u64, String)> = s.sent().into_iter().map(|sent| (0, sent)).collect();
    while s.conn.next_deadline() < end {
        let sent = s.timer();
        all.extend(sent.split_whitespace().map(|one| (s.now.since(from).as_us(), one.to_string())));
    }
    s.now = end;
    all
}

#[test]
fn slow_start_is_paced_at_twice_the_window_per_rtt_linux_tcp_update_pacing_rate() {
    let mut s = Server::new(&config(paced()));
    s.conn.write(s.now, 100_000);
    let first = departures(&mut s, RTT);
    assert_eq!(first.len(), 10);
    assert!(first.iter().all(|(at, _)| *at == 0), "the first ten are not paced");
    // cwnd 20, srtt 100 ms: 400 segments per second; the first departure counts as late, so all later ones are half an
    // interval early
    s.deliver(10, &[]);
    let second = departures(&mut s, RTT);
    let expected: Vec<u64> = (0..20).map(|n| if n == 0 { 0 } else { n * 2_500 - 1_250 }).collect();
    assert_eq!(second.iter().map(|(at, _)| *at).collect::<Vec<_>>(), expected);
    assert_eq!(second[19].1, "N29");
}

#[test]
fn the_initial_window_is_spread_over_the_handshakes_rtt() {
    let mut s = Server::new(&config(Pacing { initial_window: true, ..Pacing::OFF }));
    s.conn.write(s.now, 100_000);
    let first = departures(&mut s, RTT);
    // one per tenth of the RTT; the first counts as late, so all later ones are half an interval early
    let expected: Vec<u64> = (0..10).map(|n| if n == 0 { 0 } else { n * 10_000 - 5_000 }).collect();
    assert_eq!(first.iter().map(|(at, _)| *at).collect::<Vec<_>>(), expected);
    s.deliver(10, &[]);
    assert!(departures(&mut s, RTT).iter().all(|(at, _)| *at == 0), "the second window is not paced");
}

#[test]
fn a_bound_of_the_rate_turns_pacing_on_so_max_pacing_rate() {
    let mut s = Server::new(&config(Pacing { measured: true, ..Pacing::OFF }));
    s.write(10);
    s.conn.set_max_pacing_rate(100_000);
    s.now += RTT;
    s.conn.write(s.now, 5_000);
    s.deliver(10, &[]);
    let times: Vec<u64> = departures(&mut s, RTT).iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [0, 5_000, 15_000, 25_000, 35_000]);
    assert_eq!((s.info().pacing_rate, s.info().max_pacing_rate), (100_000, 100_000));
}

#[test]
fn retransmissions_are_paced_too_linux_tcp_xmit_retransmit_queue() {
    let mut s = Server::new(&config(paced()));
    s.conn.write(s.now, 20_000);
    departures(&mut s, RTT);
    s.deliver(10, &[]);
    departures(&mut s, RTT);
    s.deliver(10, &[(15, 20)]); // five segments lost
    let sent = departures(&mut s, RTT);
    let rexmits: Vec<u64> = sent.iter().filter(|(_, s)| s.starts_with('R')).map(|(at, _)| *at).collect();
    assert!(rexmits.len() > 2, "{sent:?}");
    assert!(rexmits.windows(2).all(|pair| pair[1] >= pair[0] + 1_000), "{rexmits:?}");
}

#[test]
fn off_means_off() {
    let mut plain = Server::new(&config(Pacing::OFF));
    let mut measured = Server::new(&config(Pacing { measured: true, ..Pacing::OFF }));
    for s in [&mut plain, &mut measured] {
        s.write(100);
        s.now += RTT;
    }
    assert_eq!(plain.ack(10, &[]), measured.ack(10, &[]));
    assert_eq!(plain.info().pacing_rate, u64::MAX);
    assert_eq!(measured.info().pacing_rate, 2 * 20 * 1_000 * 1_000_000 / 100_125);
    // srtt grew by 1/8 ms
}

#[test]
fn with_packets_of_two_segments_pairs_are_paced_linux_tcp_tso_autosize() {
    let mut s = Server::new(
        &config(paced())
            .with(|set| set.sending.buffers = Some(Buffers { tso: Some(Tso::LINUX), ..Buffers::UNLIMITED })),
    );
    s.conn.write_forever(s.now);
    assert_eq!(departures(&mut s, RTT).len(), 10);
    s.deliver(10, &[]);
    let times: Vec<u64> = departures(&mut s, RTT).iter().map(|(at, _)| *at).collect();
    let expected: Vec<u64> = (0..20).map(|n| if n < 2 { 0 } else { n / 2 * 5_000 - 2_500 }).collect();
    assert_eq!(times, expected);
    s.conn.stop_writing(s.now);
    s.deliver(30, &[]);
    assert!(s.sent().is_empty());
    assert_eq!(s.write(1), ["N30"]);
}

#[test]
fn bbr_sends_single_segments_below_its_rate_and_pairs_from_there_on_linux_bbr_min_tso_segs() {
    let together = |controller: &str, rate: u64| {
        let mut s = Server::new(&config(paced()).with(|set| {
            set.sending.controller = Recipe::by_name(controller).expect("a controller");
            set.sending.buffers = Some(Buffers { tso: Some(Tso::LINUX), ..Buffers::UNLIMITED });
        }));
        s.conn.set_max_pacing_rate(rate);
        s.conn.write_forever(s.now);
        departures(&mut s, RTT);
        s.deliver(10, &[]);
        let times: Vec<u64> = departures(&mut s, RTT).iter().map(|(at, _)| *at).collect();
        let paced = times.iter().find(|at| **at > 0).expect("the next waits for its time");
        times.iter().filter(|at| *at == paced).count()
    };
    assert_eq!((together("bbr", 149_999), together("bbr", 150_000)), (1, 2));
    assert_eq!(together("reno", 100_000), 2, "as the stack is set");
}

#[test]
fn linux_counts_the_syn_as_delivered_and_the_rfc_profile_does_not() {
    for (profile, syn) in [("linux-6", 1), ("rfc", 0)] {
        let mut s = Server::new(&Config::profile(profile).expect("a profile"));
        assert_eq!(s.info().delivered, syn, "{profile}");
        s.write(4);
        s.ack(3, &[]);
        assert_eq!(s.info().delivered, syn + 3, "{profile}");
    }
}

#[test]
fn the_pacing_clock_is_not_on_the_timer_wheel_and_sends_one_segment_linux_tcp_pace_kick() {
    let mut s = Server::new(&config(paced()));
    s.conn.write(s.now, 100_000);
    departures(&mut s, RTT);
    s.deliver(10, &[]);
    s.sent();
    let due = s.conn.next_deadline();
    assert_eq!(s.conn.on_wheel(s.now, due), None);
    s.now = due;
    s.conn.on_timer(due);
    assert_eq!(s.sent().len(), 1);
    assert!(s.conn.next_deadline() > due, "once");
}

#[test]
fn the_retransmission_timer_is_on_the_timer_wheel_since_it_was_armed() {
    let mut s = Server::new(&Config::profile("linux-6").expect("a profile"));
    s.write(4);
    let (armed, due) = (s.now, s.conn.next_deadline());
    let on_wheel = s.conn.on_wheel(armed, due).expect("the timer has ticks");
    assert_eq!((on_wheel.level, on_wheel.since), (1, armed), "64 to 504 ticks");
}
