//! Tests of the conditions under which an endpoint gives up.

use crate::common::server::{Server, RTT};
use ackclock_cc::controller::Recipe;
use ackclock_core::{Span, Time};
use ackclock_tcp::{Config, KeepAlive};

fn server(data_retries: u8) -> Server {
    let base = Config::profile("linux-6").expect("a profile");
    Server::new(&base.with(|set| {
        set.sending.controller = Recipe::by_name("reno").expect("a controller");
        set.loss.tlp = false;
        set.ledger = true;
        set.timers.data_retries = data_retries;
    }))
}

/// Run timers until the connection ends. Returns the time since the write, and the number of segments sent.
fn lives(s: &mut Server) -> (Span, usize) {
    let (from, mut sent) = (s.now, 0);
    while !s.conn.has_failed() && s.conn.next_deadline() < Time::NEVER {
        sent += s.timer().split_whitespace().count();
        assert!(sent < 100);
    }
    (s.now - from, sent)
}

#[test]
fn retries_are_time_linux_tcp_model_timeout() {
    // RTO 300 ms, but the limit is the time of 6 retries that start at 200 ms and double: 200 x (2^7 - 1) ms after the first retransmission
    let mut s = server(6);
    s.write(1);
    let (lived, sent) = lives(&mut s);
    assert!(lived > Span::from_ms(25_400), "{lived:?}");
    assert_eq!(sent, 6); // at 0.3 0.9 2.1 4.5 9.3 18.9 s; 38.1 s exceeds the limit
}

#[test]
fn a_user_timeout_is_shorter_rfc_5482() {
    let mut s = server(15);
    s.conn.set_user_timeout(Span::from_secs(3));
    s.write(1);
    let (lived, _) = lives(&mut s);
    assert!(Span::from_ms(3_300) <= lived && lived < Span::from_ms(3_600), "{lived:?}");
}

#[test]
fn an_orphan_is_given_up_after_eight_retries() {
    let mut s = server(15);
    s.conn.orphan();
    s.write(1);
    let (lived, _) = lives(&mut s);
    assert!(lived >= Span::from_ms(200 * 511) && lived < Span::from_secs(200), "{lived:?}");
}

#[test]
fn silence_is_probed_and_an_answer_forgives() {
    let mut s = server(15);
    let keep = KeepAlive { idle: Span::from_secs(10), interval: Span::from_secs(1), probes: 3 };
    s.conn.set_keepalive(s.now, Some(keep));
    let start = s.now;
    s.timer();
    let unit = |ms: u64| ms * 1_000_000; // granularity of the wheel at the distance of the timer
    assert!(s.now - start >= Span::from_secs(10) && s.now - start < Span::from_ms(10_513));
    assert_eq!((s.now.0 % unit(512), s.conn.keepalive_probes()), (0, 1));
    s.deliver(0, &[]);
    assert_eq!(s.conn.keepalive_probes(), 0);
    // a check of the idle time, three probes, and the abort
    for _ in 0..5 {
        s.timer();
    }
    assert!(s.conn.has_failed());
    let late = (s.now - start).saturating_sub(Span::from_secs(23));
    assert!(late > Span::ZERO && late < Span::from_ms(512 + 512 + 3 * 65), "{late:?}");
    assert_eq!(s.now.0 % unit(64), 0);
}

#[test]
fn what_the_device_refuses_was_not_sent() {
    let mut s = server(15);
    s.conn.set_refused(true);
    assert!(s.write(5).is_empty());
    assert_eq!((s.info().unacked, s.info().unsent), (0, 5_000));
    s.timer();
    s.timer();
    assert_eq!(s.info().probes, 2);
    s.conn.set_refused(false);
    assert_eq!(s.timer(), "N0");
    s.now += RTT;
    assert!(!s.ack(1, &[]).is_empty());
}
