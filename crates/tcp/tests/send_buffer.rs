//! A writer meets the send buffer: what a write takes at once, when it goes on, and what that costs the connection.

mod common;

use ackclock_core::packet::Ecn;
use ackclock_core::{Segment, Span};
use ackclock_tcp::{Config, Pacing, SendLimit};
use common::server::{Server, RTT};

fn server(limit: SendLimit) -> Server {
    let base = Config::profile("linux-6").expect("a profile");
    let pacing = Pacing { measured: true, ..Pacing::OFF };
    let mut s = Server::new(&Config {
        congestion_control: "reno".into(),
        tso: true,
        push_marks: true,
        send_buffer: Some(limit),
        pacing,
        ..base
    });
    // buffers of ten segments: half of the largest window
    let window = Segment { wnd: 20_000, ..Server::segment(0, &[]) };
    s.conn.on_packet(s.now, &window, Ecn::NotEct);
    s
}

fn acked(s: &mut Server, segments: u64) -> usize {
    s.now += RTT;
    s.deliver(segments, &[]);
    s.sent().len()
}

#[test]
fn a_write_blocks_when_buffers_are_full_and_goes_on_when_a_third_is_free_linux_sk_stream_write_space() {
    let mut s = server(SendLimit::fixed(30_000));
    assert_eq!(s.write(60).len(), 10);
    let taken = 60_000 - s.conn.unwritten();
    // memory is looked at before each buffer only: beyond the limit by less than one of them
    assert!((30_000..41_000).contains(&(taken + 7 * 896)), "{taken}");
    acked(&mut s, 5);
    assert_eq!(60_000 - s.conn.unwritten(), taken, "less than a third of the memory is free");
    acked(&mut s, 30);
    assert!(60_000 - s.conn.unwritten() > taken);
    acked(&mut s, 60);
    assert_eq!((s.conn.unwritten(), s.conn.written()), (0, 60_000));
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
    // 1000 bytes and 640 of headers: 2048, and 256 for the descriptor
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

#[test]
fn bytes_that_wait_unsent_are_bounded_tcp_notsent_lowat() {
    let mut s = server(SendLimit::fixed(4 << 20));
    s.conn.set_notsent_lowat(5_000);
    s.write(60);
    // a buffer of ten segments is filled whole, the next one not begun
    assert!(s.info().unsent < 15_000, "{}", s.info().unsent);
    assert!(s.conn.unwritten() > 0);
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
