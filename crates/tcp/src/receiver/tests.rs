//! ACK timing of Linux 7.3.4 in virtual time.

mod fin;
mod plain;
mod slow;
mod unread;

use super::*;
use ackclock_core::packet::Ecn;
use ackclock_core::Flags;

use crate::memory::PacketMemory;

const SMSS: u64 = 1448;

struct Peer {
    receiver: Receiver,
    now: Time,
    /// Timestamp echoed by its segments.
    echo: u32,
}

impl Peer {
    /// Return a receiver that has acknowledged `segments`, with a large window and no quick ACKs left.
    fn after(segments: u64) -> Peer {
        Peer::with(false, segments)
    }

    /// Return a receiver as `after` does, with an application that runs later than the kernel if `application_waits`.
    fn with(application_waits: bool, segments: u64) -> Peer {
        let config = Config { application_waits, ..Config::profile("linux-6").expect("a profile") };
        let mut receiver = Receiver::new(&config, Ticks::new(Span::from_ms(1), 0, config.timers.wheel));
        receiver.negotiated(true, true);
        receiver.on_syn();
        receiver.begin(Time(1), 1448);
        let mut peer = Peer { receiver, now: Time(1), echo: 1 };
        // the last two are swapped, so that the window reaches its maximum
        for n in (0..segments - 2).chain([segments - 1, segments - 2]) {
            peer.now += Span::from_us(100);
            peer.segment(n, false);
            if peer.receiver.awaits_turn() {
                peer.receiver.on_timer(peer.now, Span::from_ms(300));
                peer.acks();
            }
        }
        peer.receiver.acks.quick = 0;
        peer
    }

    /// Deliver segment `n`. Returns the ACKs sent at once: number and SACK blocks, in segments.
    fn segment(&mut self, n: u64, pushed: bool) -> Vec<(u64, Vec<(u64, u64)>)> {
        let flags = if pushed { Flags::ACK | Flags::PSH } else { Flags::ACK };
        self.arrives(1 + n * SMSS, SMSS as u32, flags)
    }

    /// Deliver a FIN after `n` segments, with `len` bytes in the same segment.
    fn fin(&mut self, n: u64, len: u32) -> Vec<(u64, Vec<(u64, u64)>)> {
        self.arrives(1 + n * SMSS, len, Flags::ACK | Flags::PSH | Flags::FIN)
    }

    fn arrives(&mut self, seq: u64, len: u32, flags: Flags) -> Vec<(u64, Vec<(u64, u64)>)> {
        let seg = Segment {
            seq,
            len,
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

/// RFC 9768 §3.2.2: packets are counted, including pure ACKs. Packets merged on arrival count as many times as they were sent. Bytes are payload.
#[test]
fn packets_that_arrived_with_a_mark_are_counted_as_they_were_sent() {
    let config = Config::profile("linux-6").expect("a profile");
    let mut receiver = Receiver::new(&config, Ticks::new(Span::from_ms(1), 0, config.timers.wheel));
    receiver.negotiated(true, true);
    receiver.count_marks(&config, Ecn::NotEct, 0);
    let full = receiver.sizes.most;
    let (mut packets, mut bytes) = (0, 0);
    for (len, as_many) in [(0, 1), (1, 1), (full, 1), (full + 1, 2), (3 * full, 3), (17 * full - 1, 17)] {
        for ecn in [Ecn::Ect0, Ecn::Ce] {
            let seg = Segment { len, flags: Flags::ACK, ..Segment::default() };
            receiver.on_accurate_marks(ecn, &seg);
        }
        (packets, bytes) = (packets + as_many, bytes + len);
        let marks = receiver.marks.accurate.as_ref().expect("agreed");
        assert_eq!((marks.ce, marks.bytes), (packets, [0, bytes, bytes]), "{len} bytes");
    }
}

#[test]
fn a_probe_for_a_lost_tail_that_was_not_lost_measures_the_round_trip() {
    let mut peer = Peer::after(20);
    assert_eq!(peer.receiver.pace().1, Span::from_ms(100));
    (peer.now, peer.echo) = (peer.now + Span::from_ms(1), 51);
    peer.segment(19, false);
    assert_eq!(peer.receiver.pace().1, Span::from_ms(50));
}

#[test]
fn what_comes_while_the_reader_waits_for_its_turn_lengthens_no_round_trip() {
    for (waits, ms) in [(true, 50), (false, 55)] {
        let mut peer = Peer::with(waits, 20);
        (peer.now, peer.echo) = (peer.now + Span::from_ms(1), 51);
        peer.segment(20, false);
        peer.echo = 11;
        peer.segment(21, false);
        assert_eq!(peer.receiver.pace().1 .0 / 1_000_000, ms, "{waits}");
    }
}

#[test]
fn a_block_behind_the_second_releases_what_is_held_back_and_is_not_answered_itself() {
    let mut peer = Peer::after(40);
    for n in [41, 43, 44] {
        peer.receiver.acks.quick = 0;
        assert_eq!(peer.segment(n, false).len(), 1, "one of the first three");
    }
    peer.receiver.acks.quick = 0;
    assert!(peer.segment(45, false).is_empty(), "held back");
    peer.receiver.acks.quick = 0;
    // a third block: the delayed ACK is sent without it, and no timer is started
    assert_eq!(peer.segment(47, false), [(40, vec![(43, 46), (41, 42)])]);
    assert_eq!(peer.receiver.deadline(), Time::NEVER);
}

#[test]
fn a_block_that_grows_in_second_place_releases_nothing() {
    let mut peer = Peer::after(40);
    for n in [41, 43, 44, 45, 42] {
        peer.receiver.acks.quick = 0;
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
        peer.receiver.acks.quick = 0;
        peer.segment(n, false);
    }
    assert!(!peer.receiver.releases(Time(armed.0 - 1)) && peer.receiver.releases(armed));
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
        peer.receiver.acks.quick = 0;
        peer.segment(n, false);
    }
    let due = peer.now + Span::from_us(1_010);
    assert_eq!(peer.receiver.deadline(), due);
    assert!(!peer.receiver.releases(Time(due.0 - 1)) && peer.receiver.releases(due));
    peer.now = due;
    peer.receiver.on_timer(due, Span::from_ms(300));
    assert_eq!(peer.acks(), [(40, vec![(41, 45)])], "the held-back ACK knows nothing of the segment");
    peer.receiver.acks.quick = 0;
    assert!(peer.segment(45, false).is_empty(), "which is held back in its turn");
}

#[test]
fn a_delayed_ack_leaves_before_a_segment_of_the_same_nanosecond() {
    let mut peer = Peer::after(40);
    assert!(peer.segment(40, false).is_empty());
    let due = peer.receiver.deadline();
    assert!(!peer.receiver.releases(Time(due.0 - 1)) && peer.receiver.releases(due));
    peer.now = due;
    peer.receiver.on_timer(due, Span::from_ms(300));
    assert_eq!(peer.acks(), [(41, vec![])]);
    assert!(!peer.receiver.releases(due), "once");
}

#[test]
fn an_arrival_within_the_slack_releases_nothing() {
    let mut peer = Peer::after(40);
    for n in 41..45 {
        peer.receiver.acks.quick = 0;
        peer.segment(n, false);
    }
    let due = peer.receiver.deadline();
    peer.now = Time(due.0 - 5_000);
    peer.receiver.acks.quick = 0;
    assert!(peer.segment(45, false).is_empty(), "the timer of 1 ms and 10 us of slack runs for all of both");
    assert_eq!(peer.receiver.deadline(), due);
    peer.wait();
    assert_eq!(peer.acks(), [(40, vec![(41, 46)])]);
}

/// Return the receiver of a connection without timestamps.
fn without_stamps() -> Receiver {
    let config = Config { timestamps: false, ..Config::profile("linux-6").expect("a profile") };
    let mut receiver = Receiver::new(&config, Ticks::new(Span::from_ms(1), 0, config.timers.wheel));
    receiver.negotiated(true, false);
    receiver.on_syn();
    receiver.begin(Time(1), 1448);
    receiver
}

/// Deliver segment `n` of 1460 bytes, and send pending ACKs.
fn arrives(receiver: &mut Receiver, now: Time, n: u64) {
    let seg = Segment { seq: 1 + n * 1460, len: 1460, flags: Flags::ACK, ..Segment::default() };
    receiver.on_data(now, &seg, Span::ZERO, Span::from_ms(300), 1);
    while receiver.ack_due() {
        receiver.stamp(&mut Segment::default());
    }
}

#[test]
fn without_timestamps_the_rtt_is_the_least_time_that_a_window_takes_and_the_buffer_grows_by_it() {
    let mut receiver = without_stamps();
    let mut at = |from: u64, to: u64, us: u64| {
        for n in from..to {
            arrives(&mut receiver, Time(1_000 + n * us * 1_000), n);
        }
        (receiver.pace().1, receiver.offered())
    };
    let (rtt, first) = at(0, 40, 500);
    assert_eq!(rtt, Span::ZERO, "less than a window has come");
    let (rtt, offered) = at(40, 400, 500);
    assert!(rtt > Span::from_ms(20) && rtt < Span::from_ms(80), "{rtt:?}: a window of 45 to 120 segments");
    assert!(offered > 2 * first, "{offered} after {first}");
}

#[test]
fn what_waits_and_comes_again_opens_no_window() {
    let mut receiver = without_stamps();
    for n in [0, 2, 3] {
        arrives(&mut receiver, Time(1_000), n);
    }
    receiver.acks.quick = 0;
    let offered = receiver.offered();
    let seg = Segment { seq: 1 + 3 * 1460, len: 1460, flags: Flags::ACK, ..Segment::default() };
    receiver.on_data(Time(2_000), &seg, Span::ZERO, Span::from_ms(300), 1);
    assert_eq!((receiver.offered(), receiver.acks.quick), (offered, 0));
    let next = Segment { seq: 1 + 4 * 1460, ..seg };
    receiver.on_data(Time(2_000), &next, Span::ZERO, Span::from_ms(300), 1);
    assert!(receiver.offered() > offered, "what is new does");
}

#[test]
fn data_without_ect_after_data_with_it_is_acknowledged_at_once_and_so_is_the_next() {
    use ackclock_core::packet::Ecn;
    let mut peer = Peer::after(40);
    let mut arrives = |n: u64, ecn: Ecn| {
        let seq = 1 + n * SMSS;
        peer.receiver
            .on_marks(&Segment { seq, len: SMSS as u32, flags: Flags::ACK, ..Segment::default() }, ecn);
        peer.segment(n, false).len()
    };
    assert_eq!(arrives(40, Ecn::NotEct), 0, "no ECT was seen");
    assert_eq!(arrives(41, Ecn::Ect0), 1);
    assert_eq!(arrives(42, Ecn::NotEct), 1);
    assert_eq!(arrives(43, Ecn::Ect0), 1);
    assert_eq!(arrives(44, Ecn::Ect0), 0);
}

#[test]
fn the_answer_to_what_lies_before_the_last_ack_is_none_of_the_quick_ones() {
    let mut peer = Peer::after(40);
    let old = Segment { seq: 1, len: SMSS as u32, flags: Flags::ACK, ..Segment::default() };
    for _ in 0..3 {
        peer.receiver.on_outside(&old);
        assert_eq!(peer.acks().len(), 1);
    }
    assert_eq!(peer.receiver.acks.quick, 16, "all are left");
    assert_eq!(peer.segment(40, false).len(), 1);
    assert!(peer.receiver.acks.quick < 16);
}

#[test]
fn an_ack_waits_for_a_tick_less_than_the_least_retransmission_timeout() {
    let config = Config::profile("linux-6").expect("a profile");
    let bound =
        |min_rto| acks::delack_max(&config.clone().with(|set| set.timers.min_rto = Span::from_ms(min_rto)));
    assert_eq!(bound(30), Span::from_ms(29));
    assert_eq!((bound(200), bound(1_000)), (Span::from_ms(199), Span::from_ms(200)));
}

#[test]
fn what_a_pure_ack_echoed_gives_no_sample_linux_rcv_rtt_last_tsecr() {
    let mut peer = Peer::after(40);
    let before = peer.receiver.window.measured().0;
    let answer = Segment { seq: 1, flags: Flags::ACK, has_ts: true, ts_ecr: 100, ..Segment::default() };
    peer.receiver.on_pure_ack(&answer);
    peer.echo = 100;
    peer.segment(40, false);
    assert_eq!(peer.receiver.window.measured().0, before);
    peer.echo = 99;
    peer.segment(41, false);
    assert_eq!(peer.receiver.window.measured().0, Span::from_ms(2), "less than ever");
}

#[test]
fn a_reader_behind_its_turn_has_read_everything() {
    let mut peer = Peer::with(true, 40);
    peer.now += Span::from_ms(1);
    assert!(peer.segment(40, true).is_empty(), "a pushed one waits for its reader");
    assert!(peer.receiver.awaits_turn());
    assert_eq!(peer.receiver.deadline(), peer.now);
    peer.wait();
    assert_eq!(peer.acks(), [(41, vec![])]);
    assert!(!peer.receiver.awaits_turn() && peer.receiver.reader.drains.is_none());
    let offered = |peer: &Peer| (peer.receiver.window.told(), peer.receiver.window.keeps());
    let before = offered(&peer);
    peer.now += Span::from_us(1);
    peer.segment(41, false);
    assert_eq!(
        peer.receiver.reader.unread,
        peer.receiver.window.packet_memory(SMSS as u32),
        "of this instant alone"
    );
    assert_eq!(offered(&peer), before);
}

/// Two unread packets leave less of the buffer than the last offered window. The kernel defers their ACK until the
/// application's next read (Linux `__tcp_ack_snd_check`), after the softirq has processed all packets. For the first
/// two packets, the unit of the header's window hides the difference.
#[test]
fn packets_of_one_nanosecond_have_one_ack_where_the_reader_waits_for_its_turn() {
    let acks = |application_waits: bool| {
        let mut peer = Peer::with(application_waits, 40);
        peer.now += Span::from_ms(1);
        let mut acks: Vec<u64> = (40..48).flat_map(|n| peer.segment(n, false)).map(|ack| ack.0).collect();
        if peer.receiver.awaits_turn() {
            assert_eq!(peer.wait(), peer.now, "the same nanosecond");
            acks.extend(peer.acks().into_iter().map(|ack| ack.0));
        }
        (acks, peer.receiver.window.keeps(), peer.receiver.reader.unread)
    };
    assert_eq!(acks(true), (vec![42, 48], true, 0));
    assert_eq!(acks(false).0[..3], [42, 44, 46]);
}

/// Return the result of closing a gap: the end of the first buffer, in segments, and the memory used by the
/// out-of-order data. The next expected segment is 40, and segments 41 to 40 + `waiting` arrived out of order, in
/// ascending order or with the last one first.
fn gap_closed(packet_memory: PacketMemory, waiting: u64, last_first: bool) -> (u64, u64) {
    let mut config = Config::profile("linux-6").expect("a profile");
    config.switches.packet_memory = packet_memory;
    let mut receiver = Receiver::new(&config, Ticks::new(Span::from_ms(1), 0, config.timers.wheel));
    receiver.negotiated(true, true);
    receiver.window.measure_share(SMSS as u32, SMSS as u32);
    let at = |n: u64| 1 + n * SMSS;
    receiver.rcv_nxt = at(40);
    receiver.reader.last = Last::Alone(SMSS as u32);
    let each = receiver.window.packet_memory(SMSS as u32);
    for n in 41..=40 + waiting {
        let n = if last_first { 81 + waiting - n } else { n };
        let before = receiver.assembly.gathered;
        let held = receiver.insert(at(n), at(n + 1)).expect("new");
        let joined = receiver.assembly.gathered - before < each;
        assert_eq!(
            held,
            if joined { receiver.assembly.gathered } else { before },
            "what joined counts when the window opens"
        );
        receiver.recount();
    }
    receiver.rcv_nxt = at(41);
    let seg = Segment { seq: at(40), len: SMSS as u32, flags: Flags::ACK, ..Segment::default() };
    let (first, memory) = receiver.close_gaps(&seg);
    assert_eq!((receiver.rcv_nxt, receiver.assembly.gathered), (at(41 + waiting), 0));
    ((first - 1) / SMSS, memory)
}

/// The data read in an RTT is measured after each buffer, so the end of the first buffer matters (Linux
/// `tcp_ofo_queue`, `tcp_rcv_space_adjust`).
#[test]
fn what_waited_joins_the_segment_that_closes_the_gap_while_a_packet_has_room_for_its_pieces() {
    use PacketMemory::{Copied, HandedOn};
    assert_eq!(gap_closed(HandedOn, 1, false), (42, SMSS), "its own head goes");
    assert_eq!(gap_closed(HandedOn, 3, false), (44, 3 * SMSS));
    // sixteen segments, one of them spread over two pages, plus the first segment: eighteen fragments
    assert_eq!(gap_closed(HandedOn, 16, false), (41, 832 + 16 * SMSS), "no room: a buffer of its own");
    assert_eq!(gap_closed(Copied, 2, false), (41, 2 * 2304), "a device's memory joins nothing");
    assert_eq!(gap_closed(Copied, 2, true), (41, 2 * 2304));
    // each arrived before the one below it, so none was merged; closing the gap merges them one by one
    assert_eq!(gap_closed(HandedOn, 3, true), (44, 3 * SMSS));
    assert_eq!(
        gap_closed(HandedOn, 20, true),
        (56, 832 + 20 * SMSS),
        "seventeen pieces, and a second buffer"
    );
}

/// An ACK of out-of-order data ends the quick ACKs and sets the ATO, so the first in-order data does not count as the
/// connection's first data. Its inter-arrival gap is measured from the handshake (Linux `tcp_dec_quickack_mode`,
/// `tcp_finish_connect`).
#[test]
fn the_pace_of_data_is_measured_from_the_handshake() {
    for (late, left) in [(Span::from_ms(250), 0), (Span::from_ms(400), 16)] {
        let config = Config::profile("linux-6").expect("a profile");
        let mut receiver = Receiver::new(&config, Ticks::new(Span::from_ms(1), 0, config.timers.wheel));
        receiver.negotiated(true, true);
        receiver.on_syn();
        let begun = Time::ZERO + Span::from_secs(2);
        receiver.begin(begun, 1448);
        let mut peer = Peer { receiver, now: begun + Span::from_ms(20), echo: 1 };
        assert_eq!(peer.segment(1, false), [(0, vec![(1, 2)])]);
        peer.now = begun + late;
        assert_eq!(peer.segment(0, false).len(), 1);
        assert_eq!(peer.receiver.acks.quick, left, "{late:?} after the handshake, the RTO is 300 ms");
    }
}

/// The application reads the first buffer of an instant while all others are still queued (Linux
/// `tcp_rcv_space_adjust`).
#[test]
fn what_is_read_in_a_round_trip_is_measured_at_the_first_buffer_of_an_instant() {
    let drained = |together: u64| {
        let mut peer = Peer::with(true, 40);
        peer.now += Span::from_secs(1);
        (40..40 + together).for_each(|n| _ = peer.segment(n, false));
        assert!(peer.receiver.awaits_turn(), "it is measured");
        peer.wait();
        peer.receiver.window.measured().1
    };
    assert_eq!((drained(1), drained(20)), (41 * SMSS, 22 * SMSS), "19 wait still");
}

/// The kernel has processed every packet of an instant, and measured its RTT, before the application runs (Linux
/// `tcp_rcv_rtt_measure_ts`, `tcp_rcv_space_adjust`). A packet without new data may therefore make the measurement due.
#[test]
fn every_packet_of_an_instant_measures_the_round_trip_before_the_application_reads() {
    for (echo, due) in [(2, false), (100, true)] {
        let mut peer = Peer::with(true, 40);
        peer.now += Span::from_ms(10); // the measured RTT is 100 ms at this point
        (40..42).for_each(|n| _ = peer.segment(n, false));
        assert!(!peer.receiver.awaits_turn());
        peer.echo = echo;
        peer.segment(60, false);
        assert_eq!(peer.receiver.awaits_turn(), due);
        if due {
            peer.wait();
            assert_eq!(peer.receiver.window.measured().1, 40 * SMSS, "41 were read, and one is in the queue");
        }
    }
}
