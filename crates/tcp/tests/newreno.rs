//! End of recovery without SACK: RFC 6582 and FreeBSD 4. Linux keeps the state one ACK longer.

use crate::common::server::{Server, RTT};
use ackclock_cc::controller::Recipe;
use ackclock_core::trace::CaState;
use ackclock_tcp::Config;

/// Return a server without SACK in its state one RTT after sending `segments` at once.
fn after_writing(profile: &str, segments: u64) -> Server {
    let profile = Config::profile(profile).expect("a profile");
    let config = profile.with(|set| {
        set.sending.iw = 20;
        set.sack = false;
        set.sending.controller = Recipe::by_name("reno").expect("a controller");
    });
    let mut s = Server::new(&config);
    s.write(segments);
    s.now += RTT;
    s
}

/// Return a server that lost segment 0 of 20 and has since received the ACK of its retransmission.
fn one_loss(profile: &str) -> Server {
    let mut s = after_writing(profile, 20);
    let sent: String = (0..19).map(|_| s.ack(0, &[])).collect();
    assert_eq!(sent, "R0", "{profile}");
    s.now += RTT;
    s.ack(20, &[]);
    s
}

#[test]
fn the_full_ack_ends_recovery_and_linux_holds_it_rfc_6582_section_3_2_step_3() {
    for (profile, state) in
        [("rfc", CaState::Open), ("freebsd-4", CaState::Open), ("linux-6", CaState::Recovery)]
    {
        assert_eq!(one_loss(profile).state(), state, "{profile}");
    }
}

#[test]
fn freebsd_ends_recovery_at_what_is_in_flight_plus_one_segment() {
    let mut s = one_loss("freebsd-4");
    assert_eq!(
        (s.cwnd(), s.info().in_flight),
        (2, 0),
        "one segment, and one more for the ACK, as in slow start"
    );
    assert_eq!(s.info().ssthresh, 10);
    s.write(40);
    assert_eq!(s.info().in_flight, 2, "slow start, no burst of ssthresh");
}

#[test]
fn duplicates_of_the_ack_that_ended_recovery_begin_none_rfc_6582_section_3_2_step_1() {
    let mut s = one_loss("rfc");
    s.write(10);
    s.now += RTT;
    for _ in 0..4 {
        s.ack(20, &[]);
    }
    assert!(s.state() < CaState::Recovery);
    assert_eq!(s.conn.stats().retransmissions, 1);
    // losses above the recovery point are detected as usual
    s.ack(21, &[]);
    s.write(10);
    let sent: String = (0..3).map(|_| s.ack(21, &[])).collect();
    assert!(sent.contains("R21"), "{sent}");
    assert_eq!(s.state(), CaState::Recovery);
}

/// Lose segments 0 and `second` of `iw`. Returns the segments released by the partial ACK of all segments below
/// `second`.
fn partial_ack(iw: u32, second: u64) -> (Server, Vec<String>) {
    let profile = Config::profile("freebsd-4").expect("a profile");
    let config = profile.with(|set| {
        set.sending.iw = iw;
        set.sending.controller = Recipe::by_name("reno").expect("a controller");
    });
    let mut s = Server::new(&config);
    s.write(200);
    s.now += RTT;
    for _ in 0..iw - 2 {
        s.ack(0, &[]);
    }
    s.now += RTT;
    let sent = s.ack(second, &[]);
    (s, sent.split_whitespace().map(str::to_string).collect())
}

#[test]
fn a_partial_ack_releases_one_new_segment_rfc_6582_section_3_2_step_5() {
    // cwnd is reduced by the five segments acknowledged and then raised by one
    let (s, sent) = partial_ack(20, 5);
    assert_eq!((sent.len(), sent[0].as_str()), (2, "R5"), "{sent:?}");
    assert_eq!(s.state(), CaState::Recovery);
}

#[test]
fn a_partial_ack_lets_out_what_the_receive_window_held_back() {
    // duplicate ACKs have raised cwnd, and the receive window of 65 segments is full: a large partial ACK opens it at once
    let (s, sent) = partial_ack(60, 50);
    assert!(sent.len() > 20, "{sent:?}");
    assert!(s.info().in_flight <= s.info().ssthresh, "never beyond cwnd");
}
