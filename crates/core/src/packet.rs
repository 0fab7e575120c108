//! The packet, a plain value carried by links and read by transports. Offsets are u64; 32-bit sequence numbers exist
//! only where packets leave the simulator (capture files, packet scripts).

use std::ops::{BitOr, BitOrAssign};

use crate::accecn::AccEcnOption;
use crate::datagram::Datagram;

/// Flow number within the run.
pub type FlowId = u32;

/// TCP header flags, with the bit values of the header.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Flags(pub u16);

#[allow(missing_docs, reason = "the control bits of RFC 9293 §3.1, RFC 3168 §6.1 and RFC 9768 §3, by name")]
impl Flags {
    pub const FIN: Flags = Flags(0x01);
    pub const SYN: Flags = Flags(0x02);
    pub const RST: Flags = Flags(0x04);
    pub const PSH: Flags = Flags(0x08);
    pub const ACK: Flags = Flags(0x10);
    pub const URG: Flags = Flags(0x20);
    pub const ECE: Flags = Flags(0x40);
    pub const CWR: Flags = Flags(0x80);
    pub const AE: Flags = Flags(0x100);

    /// Whether any flag of `other` is set.
    #[inline]
    pub fn has(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }
}
impl BitOr for Flags {
    type Output = Flags;
    fn bitor(self, o: Flags) -> Flags {
        Flags(self.0 | o.0)
    }
}
impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, o: Flags) {
        self.0 |= o.0;
    }
}

/// A SACK block. Edges are in bytes relative to the segment's ACK number, so those of a DSACK block below it are
/// negative.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SackBlock {
    /// First byte of the block.
    pub start: i32,
    /// Byte after the block.
    pub end: i32,
}

/// Up to four SACK blocks. The first one contains the latest arrival, or is a DSACK (RFC 2018 §4, RFC 2883).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SackList {
    blocks: [SackBlock; SackList::MOST],
    len: u8,
}

impl SackList {
    /// Maximum number of blocks.
    pub const MOST: usize = 4;

    /// The blocks, in header order.
    #[inline]
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..self.len as usize]
    }
    /// Append a block. A fifth block is ignored.
    pub fn push(&mut self, block: SackBlock) {
        if (self.len as usize) < self.blocks.len() {
            self.blocks[self.len as usize] = block;
            self.len += 1;
        }
    }
    /// Keep only the first `len` blocks.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len as u8);
    }
    /// Whether there are no blocks.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Number of blocks.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }
}

/// Segment of a TCP endpoint. In sequence space, the SYN is offset 0, data starts at 1, and the FIN takes one.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Segment {
    /// Offset of the first payload byte (or of the SYN or FIN).
    pub seq: u64,
    /// Next offset expected from the peer; valid with the ACK flag.
    pub ack: u64,
    /// SACK blocks, relative to `ack`.
    pub sack: SackList,
    /// TSval, in ticks of the sender's timestamp clock; valid if `has_ts` is set.
    pub ts_val: u32,
    /// TSecr.
    pub ts_ecr: u32,
    /// Advertised receive window in bytes, after scaling.
    pub wnd: u32,
    /// Payload bytes.
    pub len: u32,
    /// Ordinal of the data segment in its direction, counted from 1 in order of first transmission; 0 without data.
    pub seg_no: u32,
    /// Transmission number of the segment: 0 for the original, 1 for the first retransmission, ...
    pub rexmit: u8,
    /// Header flags.
    pub flags: Flags,
    /// Whether the timestamp option is present.
    pub has_ts: bool,
    /// SYN options; valid with the SYN flag.
    pub syn: SynOptions,
    /// AccECN option.
    pub accecn: AccEcnOption,
}

/// Options carried only by SYN and SYN-ACK.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SynOptions {
    /// MSS option, bytes.
    pub mss: u16,
    /// Window scale shift.
    pub wscale: u8,
    /// SACK permitted.
    pub sack_permitted: bool,
}

impl Segment {
    /// Length of this segment's TCP options, padded to a multiple of 4, bytes.
    #[inline]
    pub fn option_bytes(&self) -> u32 {
        if self.flags.has(Flags::SYN) {
            // mss 4, SACK permitted 2 + timestamps 10 (or padding), nop + wscale 4
            let ts = if self.has_ts { 12 } else { 4 * self.syn.sack_permitted as u32 };
            return 4 + ts + 4 + self.accecn.padded(false);
        }
        let ts = if self.has_ts { 12 } else { 0 };
        let sack = if self.sack.is_empty() { 0 } else { 4 + 8 * self.sack.len() as u32 };
        if self.accecn.is_some() {
            return ts + sack + self.accecn.padded(!self.sack.is_empty());
        }
        ts + sack
    }

    /// IPv4 packet size: 20 IP + 20 TCP + options + payload.
    #[inline]
    pub fn ip_bytes(&self) -> u32 {
        40 + self.option_bytes() + self.len
    }

    /// Sequence space of the segment, including SYN and FIN.
    #[inline]
    pub fn seq_len(&self) -> u64 {
        self.len as u64 + self.flags.has(Flags::SYN) as u64 + self.flags.has(Flags::FIN) as u64
    }
}

/// ECN field of the IP header (RFC 3168).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct = 0,
    /// ECT(1).
    Ect1 = 1,
    /// ECT(0).
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

/// Header after the IP header.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Header {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram.
    Datagram(Datagram),
}

impl Default for Header {
    fn default() -> Self {
        Header::Tcp(Segment::default())
    }
}

impl From<Segment> for Header {
    #[inline]
    fn from(seg: Segment) -> Header {
        Header::Tcp(seg)
    }
}

impl Header {
    /// IPv4 packet size.
    #[inline]
    pub fn ip_bytes(&self) -> u32 {
        match self {
            Header::Tcp(seg) => seg.ip_bytes(),
            Header::Datagram(datagram) => datagram.ip_bytes(),
        }
    }

    /// Return the TCP segment of this header. A datagram is replaced by an empty segment.
    #[inline]
    pub fn tcp_mut(&mut self) -> &mut Segment {
        if let Header::Datagram(_) = self {
            *self = Header::default();
        }
        match self {
            Header::Tcp(seg) => seg,
            Header::Datagram(_) => unreachable!("invariant: made one above"),
        }
    }

    /// Bytes that a link charges for one packet of `1 + more` segments. Headers and `framing` are charged for every
    /// segment, as in Linux (`qdisc_pkt_len_init`).
    #[inline]
    pub fn charge(&self, framing: u32, more: u16) -> u32 {
        let bytes = self.ip_bytes();
        match more {
            0 => bytes + framing,
            more => bytes + framing + more as u32 * (bytes - self.payload() + framing),
        }
    }

    /// Payload bytes.
    #[inline]
    pub fn payload(&self) -> u32 {
        match self {
            Header::Tcp(seg) => seg.len,
            Header::Datagram(Datagram::Data(data)) => data.len,
            Header::Datagram(Datagram::Report(_)) => 0,
            Header::Datagram(Datagram::Opaque(opaque)) if opaque.piece > 0 => opaque.len,
            Header::Datagram(Datagram::Opaque(_)) => 0,
        }
    }

    /// Offset of the first byte of a segment; 0 for a datagram.
    #[inline]
    pub fn start(&self) -> u64 {
        match self {
            Header::Tcp(seg) => seg.seq,
            Header::Datagram(_) => 0,
        }
    }

    /// Ordinal of the data segment or chunk, counted from 1 in order of first transmission (0 without data), and
    /// its transmission number: 0 for the original, 1 for the first retransmission, ...
    #[inline]
    pub fn ordinal(&self) -> (u32, u8) {
        match self {
            Header::Tcp(seg) => (seg.seg_no, seg.rexmit),
            Header::Datagram(Datagram::Data(data)) => {
                ((data.chunk + (data.len > 0) as u64) as u32, data.rexmit)
            }
            Header::Datagram(Datagram::Report(_)) => (0, 0),
            Header::Datagram(Datagram::Opaque(opaque)) => (opaque.piece, 0),
        }
    }
}

/// A packet in the network.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Packet {
    /// TCP segment or datagram, and its payload length.
    pub header: Header,
    /// Flow of the packet, as numbered in the tables.
    pub flow: FlowId,
    /// Connection of the packet. A flow that fetches repeatedly opens one connection after another.
    pub conn: u32,
    /// Bytes charged by links: the IP packet plus the scenario's framing, plus headers for each segment beyond the
    /// first.
    pub bytes: u32,
    /// True along the path (from the host that sends the data to the one that receives it), false on the
    /// return path.
    pub forward: bool,
    /// ECN field.
    pub ecn: Ecn,
    /// Segments beyond the first. With TSO a multi-segment packet may stay whole, as between virtual machines.
    pub more: u16,
}

/// Packet kinds that are counted separately.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Class {
    /// No payload, SYN or FIN: usually a pure ACK.
    Other = 0,
    /// SYN or SYN-ACK.
    Syn = 1,
    /// FIN without payload.
    Fin = 2,
    /// Packet with payload.
    Data = 3,
}

/// Packet properties needed by links, packed into one word. Consecutive packets on a link usually have
/// identical loads, which one comparison detects.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Load(u64);

impl Load {
    /// Return the load of a packet with the given class, segment count and accounted bytes.
    #[inline]
    pub fn new(class: Class, segments: u32, bytes: u32) -> Load {
        Load((class as u64) << 56 | (segments as u64) << 32 | bytes as u64)
    }

    /// Class as a number: see [`Class`].
    #[inline]
    pub fn class(self) -> usize {
        (self.0 >> 56) as usize
    }

    /// Number of segments.
    #[inline]
    pub fn segments(self) -> u32 {
        (self.0 >> 32) as u32 & 0xff_ffff
    }

    /// Bytes charged by links.
    #[inline]
    pub fn bytes(self) -> u32 {
        self.0 as u32
    }
}

impl Packet {
    /// Load of this packet, computed once for its whole path.
    #[inline]
    pub fn load(&self) -> Load {
        Load::new(self.class(), self.segments(), self.bytes)
    }

    /// Number of segments in the packet; 1 for a datagram.
    #[inline]
    pub fn segments(&self) -> u32 {
        1 + self.more as u32
    }

    /// Class of the packet.
    #[inline]
    pub fn class(&self) -> Class {
        match &self.header {
            Header::Tcp(seg) if seg.len > 0 => Class::Data,
            Header::Tcp(seg) if seg.flags.has(Flags::SYN) => Class::Syn,
            Header::Tcp(seg) if seg.flags.has(Flags::FIN) => Class::Fin,
            Header::Datagram(_) if self.header.payload() > 0 => Class::Data,
            _ => Class::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_on_the_wire_match_linux() {
        // kernel-reference: full segment 1448 + 32 + 20 = 1500, pure ACK 52, SYN 60 (IP bytes)
        let data = Segment { len: 1448, has_ts: true, flags: Flags::ACK, ..Segment::default() };
        assert_eq!(data.ip_bytes(), 1500);
        // ten segments in one packet, measured over HTB: 95.6 % of the charged bytes are payload
        let ten = Segment { len: 14_480, ..data };
        assert_eq!(Header::Tcp(ten).charge(14, 9), 10 * 1514);
        let ack = Segment { has_ts: true, flags: Flags::ACK, ..Segment::default() };
        assert_eq!(ack.ip_bytes(), 52);
        let syn = SynOptions { mss: 1460, wscale: 7, sack_permitted: true };
        let syn = Segment { has_ts: true, flags: Flags::SYN, syn, ..Segment::default() };
        assert_eq!(syn.ip_bytes(), 60);
    }

    #[test]
    fn a_packet_stays_small() {
        assert!(std::mem::size_of::<Packet>() <= 112, "{}", std::mem::size_of::<Packet>());
    }
}
