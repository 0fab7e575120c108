//! Tests of the writer and its send buffer: data accepted at once, the condition for resuming, and the effect
//! on the connection.

use crate::common::server::{Server, RTT};
use ackclock_cc::controller::Recipe;
use ackclock_core::packet::{Ecn, SynOptions};
use ackclock_core::{Flags, Segment, Span, Time};
use ackclock_tcp::{Buffers, Config, Connection, SendLimit, Tso};

fn server(limit: SendLimit) -> Server {
    let base = Config::profile("linux-6").expect("a profile");
    // buffers of 32 segments: half of the largest window
    Server::new(&base.with(|set| {
        set.sending.controller = Recipe::by_name("reno").expect("a controller");
        set.sending.buffers =
            Some(Buffers { limit: Some(limit), tso: Some(Tso::LINUX), ..Buffers::UNLIMITED });
    }))
}

fn acked(s: &mut Server, segments: u64) -> usize {
    s.now += RTT;
    s.deliver(segments, &[]);
    s.sent().len()
}

#[test]
fn a_write_blocks_when_buffers_are_full_and_goes_on_when_a_third_is_free_linux_sk_stream_write_space() {
    let mut s = server(SendLimit::fixed(30_000));
    assert_eq!(s.write(100).len(), 10);
    let taken = 100_000 - s.conn.unwritten();
    // memory is checked only before each buffer, and the first buffer reuses freed memory
    assert_eq!(taken, 42_000);
    let mut out = 10 + acked(&mut s, 5) as u64;
    assert_eq!(100_000 - s.conn.unwritten(), taken, "less than a third of the memory is free");
    for _ in 0..6 {
        out += acked(&mut s, out) as u64;
    }
    assert_eq!((s.conn.unwritten(), s.conn.acked()), (0, 100_000));
}

#[test]
fn a_socket_that_does_not_block_takes_what_fits() {
    let mut s = server(SendLimit::fixed(20_000));
    s.write(60);
    let left = s.conn.unwritten();
    assert!(left > 0);
    s.conn.stop_waiting();
    let written = s.conn.written();
    assert_eq!((s.conn.unwritten(), written), (0, 60_000 - left));
    s.write(1);
    assert_eq!(s.conn.unwritten(), 1_000, "no room at all");
    s.conn.stop_waiting();
    assert_eq!(s.conn.written(), written);
}

#[test]
fn a_buffer_that_nobody_set_holds_twice_the_window_linux_tcp_sndbuf_expand() {
    let mut s = server(SendLimit { bytes: 16_384, most: 4 << 20 });
    // 1000 bytes and 524 of headers: 2048, and 256 for the descriptor
    assert_eq!(s.conn.send_buffer(), Some(2 * 10 * (2_048 + 256)));
    s.conn.write_forever(s.now);
    s.sent();
    let (mut all, mut sent) = (10, 10);
    for _ in 0..6 {
        let new = acked(&mut s, all);
        sent = new.max(sent);
        all += new as u64;
    }
    assert!(
        s.conn.send_buffer().expect("a limit") >= 2 * s.cwnd() as u64 / 2 * (2_048 + 256),
        "{}",
        s.cwnd()
    );
    assert!(sent > 19, "the window is used: {sent}");
}

#[test]
fn close_waits_for_the_writer() {
    let mut s = server(SendLimit::fixed(20_000));
    s.write(50);
    s.conn.close(s.now);
    let mut all = 10;
    for _ in 0..6 {
        let new = acked(&mut s, all) as u64;
        all = (all + new).min(50);
    }
    assert_eq!((s.conn.written(), s.conn.acked()), (50_000, 50_000));
}

/// Return the lengths of the segments sent now.
fn lengths(s: &mut Server) -> Vec<u32> {
    std::iter::from_fn(|| s.conn.poll_transmit(s.now)).map(|seg| seg.len).collect()
}

/// A block of 2,500 bytes is two and a half segments. The half is sent if no other small segment is in flight
/// (Nagle's rule in Minshall's form); otherwise the next block fills it up.
#[test]
fn who_writes_block_by_block_sends_the_end_of_a_block_as_it_is() {
    let blocks = |call_bytes: u64| {
        let base = Config::profile("linux-6").expect("a profile");
        let buffers = Buffers { tso: Some(Tso::LINUX), call_bytes, ..Buffers::UNLIMITED };
        let mut s = Server::new(&base.with(|set| {
            set.sending.controller = Recipe::by_name("reno").expect("a controller");
            set.sending.iw = 20;
            set.sending.buffers = Some(Buffers { limit: Some(SendLimit::fixed(1 << 20)), ..buffers });
        }));
        s.conn.write(s.now, 10_000);
        lengths(&mut s)
    };
    assert_eq!(blocks(2_500), [1000, 1000, 500, 1000, 1000, 1000, 1000, 1000, 1000, 1000]);
    assert_eq!(blocks(u64::MAX), [1000; 10]);
}

#[test]
fn bytes_that_wait_unsent_are_bounded_tcp_notsent_lowat() {
    let mut s = server(SendLimit::fixed(4 << 20));
    s.conn.set_notsent_lowat(5_000);
    s.write(60);
    // a buffer of 32 segments is filled completely, and again once ten have been sent; the next one is not started
    assert_eq!((s.info().unsent, s.conn.unwritten()), (32_000, 18_000));
}

#[test]
fn time_is_charged_to_what_limits() {
    let mut s = server(SendLimit::fixed(10_000));
    s.write(30);
    acked(&mut s, 10);
    s.now += Span::from_ms(50);
    let times = s.conn.times(s.now);
    assert_eq!(times.rwnd_limited, Span::ZERO);
    assert!(times.busy >= Span::from_ms(150), "{times:?}");
}

/// Linux 7.3.4 in virtual time, with a bulk flow that writes 256 KiB at a time and ACKs of single segments, sets PSH on these segments.
#[test]
fn a_stream_pushes_where_its_writer_slept() {
    let base = Config::profile("linux-6").expect("a profile");
    let config = base.with(|set| {
        set.sending.controller = Recipe::by_name("reno").expect("a controller");
        set.smss = 1448;
        set.timestamps = false;
        set.sending.writer = Some(SendLimit { bytes: 16_384, most: 64 << 20 });
    });
    let mut conn = Connection::responder(0, &config);
    let mut now = Time(1);
    let syn = SynOptions { mss: 1448, wscale: 11, sack_permitted: true };
    conn.on_packet(now, &Segment { flags: Flags::SYN, syn, wnd: 65_535, ..Segment::default() }, Ecn::NotEct);
    conn.poll_transmit(now).expect("SYN-ACK");
    conn.write_forever(now);
    let mut pushed = Vec::new();
    for acked in 0..60 {
        now += Span::from_ms(if acked == 0 { 100 } else { 1 });
        let ack =
            Segment { seq: 1, ack: 1 + acked * 1448, flags: Flags::ACK, wnd: 1 << 20, ..Segment::default() };
        conn.on_packet(now, &ack, Ecn::NotEct);
        while let Some(seg) = conn.poll_transmit(now) {
            if seg.flags.has(Flags::PSH) {
                pushed.push((seg.seq + seg.len as u64) / 1448);
            }
        }
    }
    assert_eq!(pushed[..4], [21, 33, 48, 66]);
}

/// Return the number of packets sent at first by a long write into a buffer of 13,000 bytes, without segmentation offload.
fn first_burst(profile: &str) -> usize {
    let base = Config::profile(profile).expect("a profile");
    let buffers = Some(Buffers { limit: Some(SendLimit::fixed(13_000)), ..Buffers::UNLIMITED });
    Server::new(&base.with(|set| {
        set.sending.iw = 10;
        set.sending.buffers = buffers;
    }))
    .write(100)
    .len()
}

#[test]
fn without_offload_each_segment_is_charged_linux_sk_wmem_queued() {
    // seven segments of 1832 bytes leave some memory, so an eighth one is started; the same holds for eight of 1456
    assert_eq!((first_burst("linux-6"), first_burst("linux-3.0")), (8, 9));
}

/// Return a server with an initial window of 30 segments that writes 100 of them in one call, into a buffer
/// of this much memory.
fn long_call(memory: u64) -> Server {
    let base = Config::profile("linux-6").expect("a profile");
    let buffers = Some(Buffers { limit: Some(SendLimit::fixed(memory)), ..Buffers::UNLIMITED });
    let mut s = Server::new(&base.with(|set| {
        set.sending.iw = 30;
        set.sending.buffers = buffers;
    }));
    s.write(100);
    s
}

/// Linux `tcp_push` marks the last buffer when the writer sleeps, but a buffer that has been sent is no longer in the
/// queue.
#[test]
fn a_writer_that_finds_no_room_marks_only_what_waits_to_be_sent() {
    let mut s = long_call(13_000);
    s.now = s.conn.next_deadline();
    s.conn.on_timer(s.now);
    let probe = s.conn.poll_transmit(s.now).expect("the last segment, again");
    assert!(!probe.flags.has(Flags::PSH), "{probe:?}");
}

/// Linux `tcp_shift_skb_data`: 22 segments of 1832 bytes use 40,304 bytes. If 21 of them are SACKed, 20 heads of 832 bytes are freed.
#[test]
fn what_is_sacked_side_by_side_shares_a_buffer_and_makes_room_for_the_writer() {
    let mut s = long_call(40_000);
    let left = s.conn.unwritten();
    assert_eq!(left, 78_000);
    s.now += RTT;
    s.deliver(0, &[(1, 22)]);
    s.sent();
    assert!(s.conn.unwritten() < left, "{left}");
}

/// Linux `tcp_event_new_data_sent` checks for free space after each new packet; a retransmission causes no check.
#[test]
fn no_retransmission_lets_the_buffer_grow() {
    let mut s = server(SendLimit { bytes: 16_384, most: 4 << 20 });
    s.conn.write_forever(s.now);
    s.sent();
    (1..=25).for_each(|n| _ = s.ack(n, &[]));
    let grown = s.conn.send_buffer();
    assert_eq!(s.ack(25, &[(27, 31)]), "R25 R26", "two packets");
    assert!(s.cwnd() > 27, "{}", s.cwnd());
    assert_eq!(s.conn.send_buffer(), grown);
    assert_eq!(grown, Some(2 * 27 * (2_048 + 256)));
}

/// 22 segments in five buffers use 26,160 bytes, so that a third of 40,000 is free; in six buffers they use more.
#[test]
fn the_writer_wakes_where_what_is_sacked_takes_few_buffers_linux_tcp_sacktag_write_queue() {
    let wakes = |acks: &[&[(u64, u64)]]| {
        let mut s = long_call(40_000);
        let left = s.conn.unwritten();
        acks.iter().for_each(|sacks| _ = s.ack(0, sacks));
        s.conn.unwritten() < left
    };
    assert!(!wakes(&[&[(1, 18)]]));
    assert!(wakes(&[&[(1, 18)], &[(1, 19)]]));
    // the duplicated data splits the buffer
    assert!(!wakes(&[&[(1, 18)], &[(5, 6), (1, 18)], &[(1, 19)]]));
    assert!(!wakes(&[&[(1, 18)], &[(18, 19), (1, 19)]]), "both copies came: its own buffer");
    // a receiver that has forgotten a block reports the data before it without the block
    let forgotten: [&[(u64, u64)]; 4] = [&[(10, 19)], &[(9, 10)], &[(1, 9), (9, 10)], &[(1, 19)]];
    assert!(!wakes(&forgotten[..3]));
    assert!(wakes(&forgotten));
}

#[test]
fn a_writer_that_an_ack_wakes_has_its_turn_behind_what_else_arrives_in_that_nanosecond() {
    let after_two_acks = |application_waits: bool| {
        let base = Config::profile("linux-6").expect("a profile");
        let mut s = Server::new(&base.with(|set| {
            set.sending.controller = Recipe::by_name("reno").expect("a controller");
            set.sending.writer = Some(SendLimit::fixed(20_000));
            set.application_waits = application_waits;
        }));
        assert_eq!(s.write(100).len(), 10);
        s.now += RTT;
        s.deliver(6, &[]);
        let first = s.sent().len();
        s.deliver(9, &[]);
        let second = s.sent().len();
        let turn = s.conn.next_deadline() == s.now;
        let third = if turn { s.timer().split_whitespace().count() } else { 0 };
        assert!(s.conn.next_deadline() > s.now);
        (first, second, third)
    };
    let (first, second, none) = after_two_acks(false);
    let (early, nothing, late) = after_two_acks(true);
    assert!(first > 2 && none == 0, "{first} {none}");
    // first the data in the buffer, and after both ACKs everything the window allows
    assert!(early < first && nothing == 0 && early + late >= first + second, "{early} {nothing} {late}");
}
