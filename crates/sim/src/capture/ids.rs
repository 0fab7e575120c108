//! Packets captured at one host, with the IP ids assigned by their senders.
//!
//! As in Linux, each end of a connection counts the segments that it sends, including ACKs and retransmissions
//! (`ip_select_ident_segs`). A gap in the ids at the other end therefore shows which packets were lost.

use std::collections::{BTreeMap, VecDeque};

use ackclock_core::{FlowId, Header, Packet, Segment, Time};

use super::Captured;

/// Capture of one host.
#[derive(Clone, Debug)]
pub struct Noted {
    host: u8,
    packets: Vec<Captured>,
    /// Id counters by connection and direction.
    ways: BTreeMap<(u32, bool), Ids>,
}

impl Noted {
    /// Return an empty capture of this host.
    pub fn at(host: u8) -> Noted {
        Noted { host, packets: Vec::new(), ways: BTreeMap::new() }
    }

    /// Record that a packet leaves its host.
    pub fn leaves(&mut self, t: Time, flow: FlowId, conn: u32, packet: &Packet) {
        let ids = self.ways.entry((conn, packet.forward)).or_default();
        let id = ids.next(packet);
        match (self.host == 0) == packet.forward {
            true => self.packets.push(Captured { t, host: self.host, id, flow, conn, packet: *packet }),
            false => ids.remember(id, packet),
        }
    }

    /// Record that a packet reaches a host.
    pub fn reaches(&mut self, t: Time, host: usize, flow: FlowId, conn: u32, packet: &Packet) {
        if usize::from(self.host) == host {
            let id = self.ways.entry((conn, packet.forward)).or_default().find(&packet.header);
            self.packets.push(Captured { t, host: self.host, id, flow, conn, packet: *packet });
        }
    }

    /// Return the captured packets in order of time. They must be sorted because the time of a packet is known only
    /// once it has left the host's own device.
    pub fn into_packets(self) -> Vec<Captured> {
        let mut packets = self.packets;
        packets.sort_by_key(|captured| captured.t);
        packets
    }
}

/// Id state of one direction of a connection.
#[derive(Clone, Default, Debug)]
struct Ids {
    /// Id of the last segment sent.
    last: u16,
    /// Id of the last packet that arrived.
    came: u16,
    /// Packets in flight or lost, oldest first: first id, header, and payload per segment.
    on_way: VecDeque<(u16, Header, u64)>,
}

impl Ids {
    /// Assign an id to each segment of a packet and return the first, which is the id of the packet.
    fn next(&mut self, packet: &Packet) -> u16 {
        let first = self.last.wrapping_add(1);
        self.last = first.wrapping_add(packet.more);
        first
    }

    fn remember(&mut self, id: u16, packet: &Packet) {
        if self.on_way.len() == MAX_IN_FLIGHT {
            self.on_way.pop_front();
        }
        let segment = u64::from(packet.header.payload()).div_ceil(u64::from(packet.more) + 1).max(1);
        self.on_way.push_back((id, packet.header, segment));
    }

    /// Return the id with which the packet was sent. A packet that no host sent, because a router generated it, gets
    /// the id of the last packet that arrived before it.
    fn find(&mut self, header: &Header) -> u16 {
        let Some(at) = self.on_way.iter().position(|(_, sent, _)| has(sent, header)) else {
            return self.came;
        };
        let (first, sent, segment) = self.on_way[at];
        let mut whole = true;
        self.came = match (sent, header) {
            (Header::Tcp(sent), Header::Tcp(got)) => {
                whole = got.seq + u64::from(got.len) >= sent.seq + u64::from(sent.len);
                first.wrapping_add(((got.seq - sent.seq) / segment) as u16)
            }
            _ => first,
        };
        if whole {
            self.on_way.remove(at);
        }
        self.on_way.drain(..at.saturating_sub(REORDERING));
        self.came
    }
}

/// Whether `got` is `sent` or a part of it. A NIC may have split it, and a router may have appended data or changed
/// flags.
fn has(sent: &Header, got: &Header) -> bool {
    let part = |sent: &Segment, got: &Segment| {
        let within = match got.len {
            0 => sent.len == 0 && sent.seq == got.seq && sent.ack == got.ack && sent.sack == got.sack,
            _ => sent.seq <= got.seq && got.seq < sent.seq + u64::from(sent.len),
        };
        within && (sent.ts_val, sent.ts_ecr) == (got.ts_val, got.ts_ecr)
    };
    match (sent, got) {
        (Header::Tcp(sent), Header::Tcp(got)) => part(sent, got),
        _ => sent == got,
    }
}

/// Number of later packets that may overtake a packet before it is considered dropped.
const REORDERING: usize = 256;
/// Number of distinct IP ids, and maximum number of packets tracked.
const MAX_IN_FLIGHT: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use ackclock_core::packet::Ecn;

    use super::*;

    fn packet(seq: u64, len: u32, more: u16) -> Packet {
        let segment = Segment { seq, len, has_ts: true, ts_val: seq as u32, ..Segment::default() };
        Packet { header: Header::Tcp(segment), forward: true, more, ..Packet::default() }
    }

    /// Ids of the packets that arrived.
    fn seen(sent: &[Packet], came: &[Packet]) -> Vec<u16> {
        let mut noted = Noted::at(1);
        sent.iter().for_each(|packet| noted.leaves(Time(1), 0, 0, packet));
        came.iter().for_each(|packet| noted.reaches(Time(2), 1, 0, 0, packet));
        noted.into_packets().iter().map(|captured| captured.id).collect()
    }

    #[test]
    fn a_packet_has_one_id_at_both_hosts() {
        let sent = [packet(0, 100, 0), packet(100, 100, 0), packet(200, 100, 0), packet(300, 100, 0)];
        let mut at_sender = Noted::at(0);
        sent.iter().for_each(|packet| at_sender.leaves(Time(1), 0, 0, packet));
        let ids: Vec<_> = at_sender.into_packets().iter().map(|captured| captured.id).collect();
        assert_eq!(ids, [1, 2, 3, 4]);
        let marked = Packet { ecn: Ecn::Ce, ..sent[3] };
        // one packet lost, one overtaken; the last one arrived twice
        assert_eq!(seen(&sent, &[sent[2], sent[0], marked, marked]), [3, 1, 4, 4]);
    }

    #[test]
    fn each_segment_of_a_packet_counts() {
        let sent = [packet(0, 250, 2), packet(250, 100, 0)];
        assert_eq!(seen(&sent, &sent), [1, 4]);
        let parts = [packet(0, 84, 0), packet(168, 82, 0)].map(|mut part| {
            if let Header::Tcp(segment) = &mut part.header {
                segment.ts_val = 0;
            }
            part
        });
        assert_eq!(seen(&sent, &[parts[0], parts[1], sent[1]]), [1, 3, 4]);
    }
}
