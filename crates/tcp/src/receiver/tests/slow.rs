//! Applications that read slowly.

use super::*;

/// Return a receiver whose application reads `most` bytes every 10 ms, the first time after 50 ms.
fn slow(most: u64) -> Peer {
    let config = Config { application_waits: true, ..Config::profile("linux-6").expect("a profile") };
    let mut receiver = Receiver::new(&config, Ticks::new(Span::from_ms(1), 0, config.timers.wheel));
    let (wait, pause) = (Span::from_ms(50), Span::from_ms(10));
    receiver.read_slowly(ReadingPace { most, wait, pause, rate: None });
    receiver.negotiated(true, true);
    receiver.on_syn();
    receiver.begin(Time(1), 1448);
    receiver.ack_now();
    let mut peer = Peer { receiver, now: Time(1), echo: 1 };
    peer.acks(); // the first window is offered
    peer
}

/// Let time pass up to `end` and return the times, in ms, and sizes of the reads.
fn reads(peer: &mut Peer, end: Time) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    while peer.receiver.deadline() <= end {
        let before = peer.receiver.taken();
        let now = peer.wait();
        peer.acks();
        if peer.receiver.taken() > before {
            found.push((now.0 / 1_000_000, peer.receiver.taken() - before));
        }
    }
    peer.now = end;
    found
}

#[test]
fn reads_come_at_their_pace_and_then_wait_for_data() {
    let mut peer = slow(2000);
    peer.now += Span::from_ms(20);
    (0..3).for_each(|n| drop(peer.segment(n, false)));
    assert_eq!(reads(&mut peer, Time(500_000_000)), [(50, 2000), (60, 2000), (70, 344)]);
    peer.segment(3, false); // the application waits in a read
    assert_eq!(reads(&mut peer, Time(900_000_000)), [(500, 1448)]);
    peer.now += Span::from_ms(2);
    peer.segment(4, false);
    peer.fin(5, 0);
    assert!(peer.receiver.has_to_read());
    assert_eq!(reads(&mut peer, Time(2_000_000_000)), [(902, 1448)]);
    assert!(!peer.receiver.has_to_read(), "a last read has found the end of the stream");
}

#[test]
fn a_window_closes_without_reads_and_opens_by_one() {
    let mut peer = slow(60_000);
    let mut n = 0;
    while peer.receiver.right_edge() > (n + 1) * SMSS && n < 1000 {
        peer.now += Span::from_us(100);
        peer.segment(n, true);
        n += 1;
        if peer.receiver.deadline() <= peer.now {
            break;
        }
    }
    assert!(n > 30 && n < 1000, "{n}");
    let closed = peer.receiver.right_edge();
    assert!(closed < 1 + (n + 1) * SMSS);
    let last = peer.now + Span::from_ms(60);
    let first = reads(&mut peer, last)[0];
    assert_eq!(first.1, 60_000);
    assert!(peer.receiver.right_edge() > closed + 10 * SMSS);
}
