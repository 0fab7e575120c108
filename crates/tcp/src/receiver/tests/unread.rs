//! Packets that wait for the application, and the estimate of the peer's segment size.

use super::*;
use crate::memory::Share;
use ackclock_core::accecn::AccEcnOption;

/// Deliver `packets` of `len` bytes in one nanosecond, to an application that runs later. Returns the memory in use, and
/// the end of the first buffer, in packets.
fn together(packet_memory: PacketMemory, len: u32, packets: u64) -> (u64, u64) {
    let mut config = Config { application_waits: true, ..Config::profile("linux-6").expect("a profile") };
    config.switches.packet_memory = packet_memory;
    let mut receiver = Receiver::new(&config, Ticks::new(Span::from_ms(1), 0, config.timers.wheel));
    receiver.negotiated(true, true);
    receiver.on_syn();
    receiver.begin(Time(1), len);
    let mut peer = Peer { receiver, now: Time::ZERO + Span::from_ms(1), echo: 1 };
    for n in 0..packets {
        peer.arrives(1 + n * len as u64, len, Flags::ACK);
    }
    (peer.receiver.reader.unread, (peer.receiver.reader.first_unread - 1) / len as u64)
}

/// Linux `tcp_queue_rcv`, `skb_try_coalesce`: a packet is copied into the room that the one before it leaves, or its
/// fragments are moved there, at most 17.
#[test]
fn a_packet_is_added_to_the_one_that_waits() {
    for (n, memory, first) in [(1, 2304, 1), (2, 2304, 2), (3, 4608, 2), (5, 6912, 2)] {
        assert_eq!(together(PacketMemory::Copied, 664, n), (memory, first), "{n} small packets");
    }
    assert_eq!(together(PacketMemory::Copied, 1448, 3), (3 * 2304, 1), "no room behind a full one");
    for (n, heads) in [(1, 1), (17, 1), (18, 2)] {
        let memory = heads * 832 + n * 1448;
        assert_eq!(together(PacketMemory::HandedOn, 1448, n), (memory, n.min(17)), "{n} handed on");
    }
}

/// Linux `tcp_initialize_rcv_mss`: the estimate begins at what this end can send, if that is below 536 bytes. A first
/// segment of that size measures the RTT; only a larger one measures the share of memory.
#[test]
fn a_first_segment_as_large_as_the_estimate_measures_the_round_trip() {
    for (smss, share, rtt) in
        [(268, Share::default(), 100), (1448, Share::default(), 0), (20, Share::of(268, 1280), 100)]
    {
        let config = Config::profile("linux-6").expect("a profile");
        let mut receiver = Receiver::new(&config, Ticks::new(Span::from_ms(1), 0, config.timers.wheel));
        receiver.negotiated(true, true);
        receiver.on_syn();
        receiver.begin(Time(1), smss);
        assert_eq!(receiver.rcv_mss(), smss.clamp(88, 536));
        let mut peer = Peer { receiver, now: Time::ZERO + Span::from_ms(1), echo: 1 };
        peer.arrives(1, 268, Flags::ACK);
        peer.arrives(269, 268, Flags::ACK);
        assert_eq!((peer.receiver.rcv_mss(), peer.receiver.window.share()), (268, share), "{smss}");
        assert_eq!(peer.receiver.pace().0, Span::from_ms(40));
        assert_eq!(peer.receiver.pace().1, Span::from_ms(rtt), "{smss}");
    }
}

/// Options other than timestamps take room from each segment of a packet, so a single one of them is as large as those
/// that arrive together.
#[test]
fn segments_that_arrive_together_are_as_large_as_a_single_one() {
    let mut peer = Peer::after(20);
    let accecn = AccEcnOption::new(false, &[1, 2, 3]);
    let mut seg = Segment { flags: Flags::ACK, has_ts: true, accecn, ..Segment::default() };
    let each = 1448 - (seg.option_bytes() - 12);
    assert_eq!(each, 1436);
    peer.receiver.sizes.rcv_mss = each;
    for segments in [1, 2, 3, 1] {
        (seg.seq, seg.len) = (peer.receiver.rcv_nxt, segments * each);
        peer.now += Span::from_ms(1);
        peer.receiver.on_data(peer.now, &seg, Span::from_ms(100), Span::from_ms(300), 101);
        assert_eq!((peer.receiver.rcv_mss(), peer.receiver.acks.pushed), (each, false), "{segments}");
        peer.acks();
    }
}
