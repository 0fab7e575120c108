//! Generic receive offload (GRO): consecutive segments within a poll of the NIC reach TCP as one packet, which TCP
//! acknowledges once.
//!
//! A poll takes all packets that wait in the NIC. A segment is merged into its connection's held packet if it is next
//! in sequence, has the same ACK number, window, options, flags (except FIN and PSH) and ECN field, is no longer than
//! the first segment, and keeps the packet below 64 KiB. A shorter segment, FIN, PSH, RST, SYN or URG closes the
//! packet. Packets without data are passed on, behind the held packet of their connection. The end of the poll
//! releases all held packets.
//!
//! With `flush_timeout` the end of a poll releases only packets held since an earlier tick of the kernel's clock, and
//! the next poll follows after that timeout. With `defer_hard_irqs` the NIC does not interrupt again until that many
//! consecutive polls were empty.
//!
//! Source: Linux 7.3 `dev_gro_receive`, `tcp_gro_receive`, `napi_complete_done`. Differs: the kernel holds eight
//! packets in each of eight hash buckets, here a NIC holds 64 in total. A poll may take more than 64 packets without
//! a break, which makes no difference while the tick of the kernel's clock is 1 ms or longer.

use std::collections::VecDeque;

use ackclock_core::{Flags, Header, Packet, Segment, Span, Time};

/// Settings of generic receive offload (GRO).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroConfig {
    /// Time from a poll to the next one that the kernel schedules without an interrupt; zero = none (Linux
    /// `gro_flush_timeout`).
    pub flush_timeout: Span,
    /// Number of consecutive empty polls before the NIC may interrupt again (Linux `napi_defer_hard_irqs`).
    pub defer_hard_irqs: u32,
}

/// Held packets, oldest first.
#[derive(Clone)]
pub(crate) struct Gro {
    config: GroConfig,
    held: VecDeque<Held>,
    deferrals: u32,
}

#[derive(Clone)]
struct Held {
    packet: Packet,
    /// Payload of the packet's first segment, bytes.
    size: u32,
    since: u64,
}

impl Gro {
    pub(crate) fn new(config: GroConfig) -> Gro {
        Gro { config, held: VecDeque::new(), deferrals: 0 }
    }

    /// Poll `waiting`; packets for TCP are appended to `ready`. Returns the time of the next poll without an
    /// interrupt, if any, and whether the NIC may interrupt before it.
    pub(crate) fn poll(
        &mut self,
        now: Time,
        waiting: &mut VecDeque<Packet>,
        ready: &mut VecDeque<Packet>,
    ) -> (Option<Time>, bool) {
        let (tick, worked) = (now.0 / TICK.0, !waiting.is_empty());
        while let Some(packet) = waiting.pop_front() {
            self.receive(packet, tick, ready);
        }
        let mut again = false;
        if worked {
            again = !self.held.is_empty();
            self.deferrals = self.config.defer_hard_irqs;
        }
        let mut interrupts = true;
        if self.deferrals > 0 {
            self.deferrals -= 1;
            again = true;
            interrupts = self.config.flush_timeout == Span::ZERO;
        }
        again &= self.config.flush_timeout > Span::ZERO;
        while self.held.front().is_some_and(|oldest| !again || oldest.since < tick) {
            ready.extend(self.held.pop_front().map(|held| held.packet));
        }
        (again.then(|| now + self.config.flush_timeout), interrupts)
    }

    fn receive(&mut self, packet: Packet, tick: u64, ready: &mut VecDeque<Packet>) {
        let Header::Tcp(seg) = &packet.header else { return ready.push_back(packet) };
        let of = |held: &Held| held.packet.conn == packet.conn && held.packet.forward == packet.forward;
        let at = self.held.iter().position(of);
        let size = size_of(&packet, seg);
        let mut closes = seg.len == 0 || seg.flags.has(CLOSE);
        if let Some(at) = at {
            let held = &mut self.held[at];
            let joins = size.is_some_and(|size| held.takes(&packet, seg, size));
            if joins {
                closes |= seg.len < held.size;
                held.add(&packet, seg);
            }
            if !joins || closes {
                ready.extend(self.held.remove(at).map(|held| held.packet));
            }
            if joins {
                return;
            }
        }
        match size {
            Some(size) if !closes => {
                if self.held.len() == MOST_HELD {
                    ready.extend(self.held.pop_front().map(|held| held.packet));
                }
                self.held.push_back(Held { packet, size, since: tick });
            }
            _ => ready.push_back(packet),
        }
    }
}

impl Held {
    fn takes(&self, packet: &Packet, seg: &Segment, size: u32) -> bool {
        let Header::Tcp(first) = &self.packet.header else { return false };
        let differs = (first.flags.0 ^ seg.flags.0) & !(Flags::FIN | Flags::PSH).0 != 0;
        seg.len > 0
            && seg.seq == first.seq + first.len as u64
            && seg.ack == first.ack
            && !differs
            && seg.wnd == first.wnd
            && (seg.has_ts, seg.ts_val, seg.ts_ecr) == (first.has_ts, first.ts_val, first.ts_ecr)
            && seg.sack == first.sack
            && seg.accecn == first.accecn
            && packet.ecn == self.packet.ecn
            && match packet.more {
                0 => seg.len <= self.size,
                _ => size == self.size,
            }
            && first.ip_bytes() + seg.len < LARGEST
    }

    fn add(&mut self, packet: &Packet, seg: &Segment) {
        self.packet.more += 1 + packet.more;
        self.packet.bytes += packet.bytes;
        let first = self.packet.header.tcp_mut();
        first.len += seg.len;
        first.flags |= Flags(seg.flags.0 & (Flags::FIN | Flags::PSH).0);
    }
}

/// Payload per segment of a packet; `None` if its segments differ in size.
fn size_of(packet: &Packet, seg: &Segment) -> Option<u32> {
    seg.len.is_multiple_of(packet.segments()).then(|| seg.len / packet.segments())
}

/// Linux GRO_LEGACY_MAX_SIZE, bytes: the exclusive upper bound of a merged IP packet.
const LARGEST: u32 = 65_536;
/// Linux MAX_GRO_SKBS times GRO_HASH_BUCKETS.
const MOST_HELD: usize = 64;
/// Tick of the kernel's clock (HZ = 1000).
const TICK: Span = Span::from_ms(1);
/// Flags that close a held packet.
const CLOSE: Flags = Flags(0x01 | 0x02 | 0x04 | 0x08 | 0x20);

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::packet::Ecn;
    use proptest::prelude::*;

    const SIZE: u32 = 1448;

    fn data(conn: u32, number: u64) -> Packet {
        let flags = Flags::ACK;
        let seg =
            Segment { seq: 1 + number * SIZE as u64, len: SIZE, flags, has_ts: true, ..Segment::default() };
        Packet { header: Header::Tcp(seg), conn, bytes: 1514, forward: true, ..Packet::default() }
    }

    fn with(mut packet: Packet, change: impl Fn(&mut Segment)) -> Packet {
        change(packet.header.tcp_mut());
        packet
    }

    fn polls(config: GroConfig, polls: &[(u64, Vec<Packet>)]) -> Vec<Vec<u32>> {
        let mut gro = Gro::new(config);
        let poll = |(at, packets): &(u64, Vec<Packet>)| {
            let (mut waiting, mut ready) = (packets.iter().copied().collect(), VecDeque::new());
            gro.poll(Time(*at), &mut waiting, &mut ready);
            ready.iter().map(Packet::segments).collect()
        };
        polls.iter().map(poll).collect()
    }

    const AT_ONCE: GroConfig = GroConfig { flush_timeout: Span::ZERO, defer_hard_irqs: 0 };

    /// Number of segments of each packet that one poll releases.
    fn merged(packets: Vec<Packet>) -> Vec<u32> {
        polls(AT_ONCE, &[(0, packets)]).remove(0)
    }

    #[test]
    fn what_follows_in_sequence_is_one_packet() {
        assert_eq!(merged((0..10).map(|n| data(0, n)).collect()), [10]);
        assert_eq!(merged((0..6).map(|n| data(n as u32 % 2, n / 2)).collect()), [3, 3]);
        assert_eq!(merged(vec![data(0, 0), data(0, 2), data(0, 3), data(0, 1)]), [1, 2, 1], "a hole");
    }

    #[test]
    fn a_packet_stays_below_64_kib() {
        // 52 bytes of headers and 45 x 1448 bytes are 65212 bytes
        assert_eq!(merged((0..100).map(|n| data(0, n)).collect()), [45, 45, 10]);
    }

    #[test]
    fn some_segments_close_a_packet() {
        let psh = with(data(0, 1), |seg| seg.flags |= Flags::PSH);
        assert_eq!(merged(vec![data(0, 0), psh, data(0, 2)]), [2, 1]);
        assert_eq!(merged(vec![psh, data(0, 2)]), [1, 1], "alone");
        let short = with(data(0, 1), |seg| seg.len = 100);
        let next = with(data(0, 1), |seg| seg.seq += 100);
        assert_eq!(merged(vec![data(0, 0), short, next]), [2, 1]);
        let long = with(data(0, 1), |seg| seg.len = SIZE + 1);
        assert_eq!(merged(vec![data(0, 0), long]), [1, 1]);
    }

    #[test]
    fn what_differs_stays_apart() {
        let ce = Packet { ecn: Ecn::Ce, ..data(0, 1) };
        assert_eq!(merged(vec![data(0, 0), ce, data(0, 2)]), [1, 1, 1]);
        let changes: [fn(&mut Segment); 5] = [
            |seg| seg.ts_val += 1,
            |seg| seg.ack += 1,
            |seg| seg.wnd += 1,
            |seg| seg.flags |= Flags::CWR,
            |seg| seg.sack.push(Default::default()),
        ];
        for change in changes {
            assert_eq!(merged(vec![data(0, 0), with(data(0, 1), change)]), [1, 1]);
        }
        // since Linux 7.0 an unchanged CWR bit does not close the packet
        let cwr = |n| with(data(0, n), |seg| seg.flags |= Flags::CWR);
        assert_eq!(merged(vec![cwr(0), cwr(1)]), [2]);
    }

    #[test]
    fn an_ack_without_data_keeps_its_place() {
        let ack = with(data(0, 2), |seg| seg.len = 0);
        assert_eq!(merged(vec![data(0, 0), data(0, 1), ack, data(0, 2)]), [2, 1, 1]);
    }

    #[test]
    fn packets_of_several_segments_merge() {
        let of = |n: u64, segments: u16| {
            let mut packet = with(data(0, n), |seg| seg.len = segments as u32 * SIZE);
            packet.more = segments - 1;
            packet
        };
        assert_eq!(merged(vec![of(0, 3), of(3, 2), data(0, 5)]), [6]);
    }

    /// Random marks of 10 % give batches of 1 / (2 x 0.1 x 0.9) = 5.6 segments (L4S fact sheet, section 6).
    #[test]
    fn marks_cut_batches() {
        let mut stream = ackclock_core::Stream::new(1, "marks");
        let packets: Vec<Packet> = (0..40_000)
            .map(|n| Packet {
                ecn: if stream.next_u64().is_multiple_of(10) { Ecn::Ce } else { Ecn::Ect0 },
                ..data(0, n)
            })
            .collect();
        let batches = merged(packets).len() as f64;
        assert!((40_000.0 / batches / 5.55 - 1.0).abs() < 0.03, "{}", 40_000.0 / batches);
    }

    #[test]
    fn with_a_timeout_packets_are_held_until_the_clock_ticks() {
        let config = GroConfig { flush_timeout: Span::from_us(100), defer_hard_irqs: 1 };
        let out = polls(
            config,
            &[
                (900_000, vec![data(0, 0)]),
                (990_000, vec![data(0, 1), data(0, 2)]),
                (1_010_000, vec![data(0, 3)]),
                (1_110_000, vec![data(0, 4)]),
                (1_210_000, vec![]),
            ],
        );
        assert_eq!(out, [vec![], vec![], vec![4], vec![], vec![1]]);
    }

    proptest! {
        #[test]
        fn every_byte_reaches_tcp_once_and_in_order(
            kinds in prop::collection::vec((0u32..3, 0u8..6, 1u32..1449), 1..300), breaks in 1usize..40,
            timeout in 0u64..2, defer in 0u32..3,
        ) {
            let mut next = [1u64; 3];
            let mut packets = Vec::new();
            for &(conn, kind, len) in &kinds {
                let mut packet = with(data(conn, 0), |seg| {
                    seg.seq = next[conn as usize];
                    seg.len = if kind == 0 { 0 } else if kind == 1 { len } else { SIZE };
                    seg.ts_val = kind as u32 / 5;
                });
                next[conn as usize] += packet.header.payload() as u64;
                packet.bytes = packet.header.ip_bytes() + 14;
                packets.push(packet);
            }
            let config = GroConfig { flush_timeout: Span(timeout * 100_000), defer_hard_irqs: defer };
            let mut gro = Gro::new(config);
            let mut ready = VecDeque::new();
            for (i, poll) in packets.chunks(breaks).enumerate() {
                gro.poll(Time(i as u64 * 100_000), &mut poll.iter().copied().collect(), &mut ready);
            }
            for i in 0..3 + defer as u64 {
                gro.poll(Time(1_000_000_000 + i * 2_000_000), &mut VecDeque::new(), &mut ready);
            }
            prop_assert!(gro.held.is_empty());
            let mut seen = [1u64; 3];
            let bytes: u64 = ready.iter().map(|p| p.bytes as u64).sum();
            for packet in &ready {
                let Header::Tcp(seg) = &packet.header else { unreachable!() };
                prop_assert_eq!(seg.seq, seen[packet.conn as usize]);
                prop_assert!(seg.ip_bytes() < LARGEST + SIZE);
                seen[packet.conn as usize] += seg.len as u64;
            }
            prop_assert_eq!(seen, next);
            prop_assert_eq!(ready.iter().map(Packet::segments).sum::<u32>() as usize, packets.len());
            prop_assert_eq!(bytes, packets.iter().map(|p| p.bytes as u64).sum::<u64>());
        }
    }
}
