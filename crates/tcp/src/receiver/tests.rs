//! When ACKs leave, as Linux 7.3.4 sends them in virtual time.

mod plain;

use super::*;
use ackclock_core::Flags;

const SMSS: u64 = 1448;

struct Peer {
    receiver: Receiver,
    now: Time,
    /// Timestamp that its segments echo.
    echo: u32,
}

impl Peer {
    /// A receiver that has acknowledged `segments`, whose window has grown and whose quick ACKs are over.
    fn after(segments: u64) -> Peer {
        let config = Config::profile("linux-6").expect("a profile");
        let mut receiver = Receiver::new(&config, Ticks::new(Span::from_ms(1), 0, config.wheel));
        receiver.negotiated(true, true);
        receiver.on_syn();
        receiver.begin(Time(1));
        let mut peer = Peer { receiver, now: Time(1), echo: 1 };
        // The last two change places: then the window is as wide as it gets.
        for n in (0..segments - 2).chain([segments - 1, segments - 2]) {
            peer.now += Span::from_us(100);
            peer.segment(n, false);
        }
        peer.receiver.quick = 0;
        peer
    }

    /// Segment `n` arrives; the ACKs that leave at once: number and SACK blocks in segments.
    fn segment(&mut self, n: u64, pushed: bool) -> Vec<(u64, Vec<(u64, u64)>)> {
        let flags = if pushed { Flags::ACK | Flags::PSH } else { Flags::ACK };
        let seg = Segment {
            seq: 1 + n * SMSS,
            len: SMSS as u32,
            flags,
            has_ts: true,
            ts_val: 1 + (self.now.0 / 1_000_000) as u32,
            ts_ecr: self.echo,
            ..Segment::default()
        };
        self.receiver.on_data(self.now, &seg, Span::from_ms(100), Span::from_ms(300), 101);
        self.acks()
    }

    fn acks(&mut self) -> Vec<(u64, Vec<(u64, u64)>)> {
        let mut out = Vec::new();
        while self.receiver.ack_due() {
            let mut seg = Segment::default();
            self.receiver.stamp(&mut seg);
            let base = seg.ack as i64;
            let at = |edge: i32| ((base + edge as i64 - 1) / SMSS as i64) as u64;
            let blocks = seg.sack.as_slice().iter().map(|b| (at(b.start), at(b.end))).collect();
            out.push(((seg.ack - 1) / SMSS, blocks));
        }
        out
    }

    fn wait(&mut self) -> Time {
        self.now = self.receiver.deadline();
        self.receiver.on_timer(self.now, Span::from_ms(300));
        self.now
    }
}

#[test]
fn a_block_behind_the_second_releases_what_is_held_back_and_is_not_answered_itself() {
    let mut peer = Peer::after(40);
    for n in [41, 43, 44] {
        peer.receiver.quick = 0;
        assert_eq!(peer.segment(n, false).len(), 1, "one of the first three");
    }
    peer.receiver.quick = 0;
    assert!(peer.segment(45, false).is_empty(), "held back");
    peer.receiver.quick = 0;
    // a third block: what was held back leaves without it, and it starts no timer
    assert_eq!(peer.segment(47, false), [(40, vec![(43, 46), (41, 42)])]);
    assert_eq!(peer.receiver.deadline(), Time::NEVER);
}

#[test]
fn a_block_that_grows_in_second_place_releases_nothing() {
    let mut peer = Peer::after(40);
    for n in [41, 43, 44, 45, 42] {
        peer.receiver.quick = 0;
        peer.segment(n, false);
    }
    assert!(peer.receiver.deadline() < Time::NEVER, "the timer of what is held back");
}

#[test]
fn a_timer_of_delayed_acks_that_runs_on_releases_what_is_held_back() {
    let mut peer = Peer::after(40);
    peer.now = Time(20_000_000);
    assert!(peer.segment(40, false).is_empty());
    let armed = peer.receiver.deadline();
    assert_eq!(armed, Time(61_000_000), "40 ms and the rest of a tick");
    peer.now = Time(21_000_000);
    assert_eq!(peer.segment(41, false), [(42, vec![])]);
    peer.now = Time(armed.0 - 300_000);
    for n in 43..=46 {
        peer.receiver.quick = 0;
        peer.segment(n, false);
    }
    assert_eq!(peer.wait(), armed, "not a millisecond after the arrival");
    assert_eq!(peer.acks(), [(42, vec![(43, 47)])]);
}

#[test]
fn a_full_segment_is_acknowledged_at_once_if_it_is_pushed() {
    let mut peer = Peer::after(40);
    assert!(peer.segment(40, false).is_empty());
    assert_eq!(peer.segment(41, false), [(42, vec![])]);
    assert_eq!(peer.segment(42, true), [(43, vec![])]);
    assert!(peer.segment(43, false).is_empty());
}

#[test]
fn what_is_held_back_waits_for_a_third_of_a_short_round_trip() {
    let mut peer = Peer::after(40);
    let short = Segment { has_ts: true, ts_ecr: 2, ..Segment::default() };
    peer.receiver.window.measure_rtt(&short, 4, 0, false);
    peer.echo = 2;
    for n in 41..=43 {
        peer.segment(n, false);
    }
    assert!(peer.segment(44, false).is_empty());
    assert_eq!(peer.receiver.deadline(), peer.now + Span::from_us(660 + 10));
}

#[test]
fn what_is_held_back_leaves_before_a_segment_of_the_same_nanosecond() {
    let mut peer = Peer::after(40);
    for n in 41..45 {
        peer.receiver.quick = 0;
        peer.segment(n, false);
    }
    let due = peer.now + Span::from_us(1_010);
    assert_eq!(peer.receiver.deadline(), due);
    assert!(!peer.receiver.releases(Time(due.0 - 1)) && peer.receiver.releases(due));
    peer.now = due;
    peer.receiver.on_timer(due, Span::from_ms(300));
    assert_eq!(peer.acks(), [(40, vec![(41, 45)])], "the held-back ACK knows nothing of the segment");
    peer.receiver.quick = 0;
    assert!(peer.segment(45, false).is_empty(), "which is held back in its turn");
}

#[test]
fn an_arrival_within_the_slack_releases_nothing() {
    let mut peer = Peer::after(40);
    for n in 41..45 {
        peer.receiver.quick = 0;
        peer.segment(n, false);
    }
    let due = peer.receiver.deadline();
    peer.now = Time(due.0 - 5_000);
    peer.receiver.quick = 0;
    assert!(peer.segment(45, false).is_empty(), "the timer of 1 ms and 10 us of slack runs for all of both");
    assert_eq!(peer.receiver.deadline(), due);
    peer.wait();
    assert_eq!(peer.acks(), [(40, vec![(41, 46)])]);
}
