//! The IPv4 and TCP header fields in use.

use ackclock_core::packet::{Ecn, SackBlock};
use ackclock_core::{AccEcnOption, Flags, Segment};

/// Fields read from a TCP packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    pub source: u16,
    pub target: u16,
    pub seq: u32,
    pub ack: u32,
    pub syn: bool,
    /// Control bits, including AE.
    pub flags: u16,
    pub window: u16,
    /// Window scale of the sender, present only on its SYN.
    pub scale: Option<u8>,
    /// Payload, bytes.
    pub len: u32,
    pub ecn: Ecn,
    /// SACK blocks, in order.
    pub sack: Vec<(u32, u32)>,
    /// SACK-permitted option of a SYN.
    pub sack_permitted: bool,
    /// Timestamps.
    pub has_ts: bool,
    /// AccECN option.
    pub accecn: AccEcnOption,
}

impl Header {
    /// Parse an IP packet that carries TCP; its headers must be complete. IPv6 extension headers are not supported.
    pub fn parse(bytes: &[u8]) -> Option<Header> {
        if bytes.len() < 40 {
            return None;
        }
        let (protocol, ip, total) = match bytes[0] >> 4 {
            4 => (bytes[9], 4 * (bytes[0] & 15) as usize, u16_at(bytes, 2) as usize),
            6 => (bytes[6], V6, V6 + u16_at(bytes, 4) as usize),
            _ => return None,
        };
        if protocol != libc::IPPROTO_TCP as u8 {
            return None;
        }
        let tcp = bytes.get(ip..)?;
        let header = 4 * (*tcp.get(12)? >> 4) as usize;
        let options = tcp.get(20..header)?;
        Some(Header {
            source: u16_at(tcp, 0),
            target: u16_at(tcp, 2),
            seq: u32_at(tcp, 4),
            ack: u32_at(tcp, 8),
            syn: tcp[13] & 2 != 0,
            flags: u16_at(tcp, 12) & 0x1ff,
            window: u16_at(tcp, 14),
            len: total.checked_sub(ip + header)? as u32,
            ecn: if ip_version(bytes) == 6 { of_bits(bytes[1] >> 4) } else { ecn(bytes) },
            scale: option(options, 3).and_then(|shift| shift.first().copied()),
            sack: option(options, 5).map_or_else(Vec::new, |blocks| {
                blocks.chunks_exact(8).map(|b| (u32_at(b, 0), u32_at(b, 4))).collect()
            }),
            sack_permitted: option(options, 4).is_some(),
            has_ts: option(options, 8).is_some(),
            accecn: accecn(options),
        })
    }
}

impl Header {
    /// Build a segment with the fields read by links; the caller sets the sequence numbers.
    pub fn segment(&self) -> Segment {
        let mut seg = Segment {
            len: self.len,
            flags: Flags(self.flags),
            has_ts: self.has_ts,
            accecn: self.accecn,
            ..Segment::default()
        };
        seg.syn.sack_permitted = self.sack_permitted;
        let relative = |edge: u32| edge.wrapping_sub(self.ack) as i32;
        for &(start, end) in &self.sack {
            seg.sack.push(SackBlock { start: relative(start), end: relative(end) });
        }
        seg
    }
}

/// An IPv4 packet that carries UDP.
pub struct Udp<'a> {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub target: u16,
    /// ECN bits.
    pub ecn: Ecn,
    /// Captured part of the payload.
    pub payload: &'a [u8],
}

impl Udp<'_> {
    /// Parse an IPv4 packet that carries UDP; its headers must be complete.
    pub fn parse(bytes: &[u8]) -> Option<Udp<'_>> {
        if bytes.len() < 28 || bytes[0] >> 4 != 4 || bytes[9] != libc::IPPROTO_UDP as u8 {
            return None;
        }
        let udp = bytes.get(4 * (bytes[0] & 15) as usize..)?;
        let payload = udp.get(8..)?;
        Some(Udp { source: u16_at(udp, 0), target: u16_at(udp, 2), ecn: ecn(bytes), payload })
    }
}

/// Fields that identify the flow to which a program's packet belongs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ends {
    /// Protocol number in the IP header.
    pub protocol: u8,
    /// Source port, or 0.
    pub source: u16,
    /// Destination port, or 0.
    pub target: u16,
    /// ECN bits.
    pub ecn: Ecn,
    /// Whether the packet is complete and not a fragment.
    pub whole: bool,
}

impl Ends {
    /// Parse any IP packet; fields that cannot be read are zero.
    pub fn of(bytes: &[u8]) -> Ends {
        let v6 = ip_version(bytes) == 6;
        if bytes.len() < if v6 { V6 } else { 20 } {
            return Ends { protocol: 0, source: 0, target: 0, ecn: Ecn::NotEct, whole: false };
        }
        let (protocol, at, whole, ecn) = match v6 {
            true => (bytes[6], V6, bytes[6] != FRAGMENT, of_bits(bytes[1] >> 4)),
            false => (bytes[9], 4 * (bytes[0] & 15) as usize, u16_at(bytes, 6) & 0x3fff == 0, ecn(bytes)),
        };
        let ports = bytes.get(at..at + 4).filter(|_| whole && [6, 17].contains(&protocol));
        let (source, target) = ports.map_or((0, 0), |ports| (u16_at(ports, 0), u16_at(ports, 2)));
        Ends { protocol, source, target, ecn, whole }
    }
}

/// IP version of a packet; 0 if it is empty.
pub fn ip_version(bytes: &[u8]) -> u8 {
    bytes.first().map_or(0, |first| first >> 4)
}

/// IPv6 header length, bytes.
pub const V6: usize = 40;
/// Protocol number of the IPv6 fragment header.
const FRAGMENT: u8 = 44;

fn ecn(ip: &[u8]) -> Ecn {
    of_bits(ip[1])
}

fn of_bits(bits: u8) -> Ecn {
    [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][(bits & 3) as usize]
}

/// Contents of the first option of this kind.
fn option(mut options: &[u8], wanted: u8) -> Option<&[u8]> {
    while let Some(&kind) = options.first() {
        let len = match kind {
            0 => break,
            1 => 1,
            _ => match options.get(1) {
                Some(&len) if len >= 2 && len as usize <= options.len() => len as usize,
                _ => break,
            },
        };
        if kind == wanted {
            return Some(&options[2..len]);
        }
        options = &options[len..];
    }
    None
}

fn accecn(options: &[u8]) -> AccEcnOption {
    let (order1, bytes) = match (option(options, 174), option(options, 172)) {
        (Some(bytes), _) => (true, bytes),
        (None, Some(bytes)) => (false, bytes),
        (None, None) => return AccEcnOption::default(),
    };
    let counters: Vec<u32> =
        bytes.chunks_exact(3).take(3).map(|b| u32::from_be_bytes([0, b[0], b[1], b[2]])).collect();
    AccEcnOption::new(order1, &counters)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A duplicate ACK with timestamps and two SACK blocks, ECT(0).
    fn ack() -> Vec<u8> {
        let mut p = vec![0x45, 2, 0, 72, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 1, 0, 1, 10, 0, 0, 1];
        p.extend([0x4e, 0x20, 0x27, 0x10, 0, 0, 0, 9, 0, 0, 0, 5, 13 << 4, 0x10, 1, 0, 0, 0, 0, 0]);
        p.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
        p.extend([1, 1, 5, 18, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0, 10, 0, 0, 0, 11]);
        let sum = !checksum(&p[..20]);
        p[10..12].copy_from_slice(&sum.to_be_bytes());
        p
    }

    fn checksum(header: &[u8]) -> u16 {
        let sum: u32 = header.chunks_exact(2).map(|w| u16_at(w, 0) as u32).sum();
        ((sum & 0xffff) + (sum >> 16)) as u16
    }

    #[test]
    fn reads_ports_numbers_and_blocks() {
        let h = Header::parse(&ack()).unwrap();
        assert_eq!((h.source, h.target, h.seq, h.ack, h.len), (20_000, 10_000, 9, 5, 0));
        assert_eq!(h.sack, [(7, 8), (10, 11)]);
        assert_eq!(h.ecn, Ecn::Ect0);
        assert!(h.has_ts && !h.accecn.is_some());
        assert_eq!(h.segment().ip_bytes() as usize, ack().len(), "timestamps and blocks are counted");
    }

    #[test]
    fn reads_a_segment_of_ipv6() {
        let mut p = vec![0x60, 0x20, 0, 0, 0, 52, 6, 64];
        p.extend([0; 32]);
        p.extend(&ack()[20..]);
        let h = Header::parse(&p).unwrap();
        let four = Header::parse(&ack()).unwrap();
        assert_eq!(h, Header { ecn: Ecn::Ect0, ..four }, "as in IPv4");
        for cut in 0..p.len() {
            assert!(Header::parse(&p[..cut]).is_none(), "{cut}");
        }
        p[6] = FRAGMENT;
        assert!(Header::parse(&p).is_none());
    }

    #[test]
    fn reads_the_counters_of_an_accecn_option() {
        let counters = |options: &[u8]| accecn(options).by_mark().collect::<Vec<_>>();
        assert_eq!(counters(&[1, 174, 8, 0, 0, 9, 0, 1, 0, 1]), [(Ecn::Ect1, 9), (Ecn::Ce, 256)]);
        assert_eq!(counters(&[172, 5, 1, 0, 0, 1, 1, 1]), [(Ecn::Ect0, 1 << 16)]);
        assert_eq!((counters(&[1, 1, 8, 10]), accecn(&[172, 2]).bytes()), (vec![], 2));
    }

    #[test]
    fn ends_of_any_packet() {
        let mut p = ack();
        let tcp = Ends { protocol: 6, source: 20_000, target: 10_000, ecn: Ecn::Ect0, whole: true };
        assert_eq!(Ends::of(&p), tcp);
        p[6] = 0x20; // the first of several fragments
        assert_eq!(Ends::of(&p), Ends { source: 0, target: 0, whole: false, ..tcp });
        p[6..10].copy_from_slice(&[0, 0, 64, 1]);
        assert_eq!(Ends::of(&p), Ends { protocol: 1, source: 0, target: 0, ..tcp });
        let mut six = vec![0x60, 0x30, 0, 0, 0, 8, 17, 64];
        six.extend([0; 32]);
        six.extend([0, 53, 0x27, 0x10, 0, 8, 0, 0]);
        assert_eq!(
            Ends::of(&six),
            Ends { protocol: 17, source: 53, target: 10_000, ecn: Ecn::Ce, whole: true }
        );
        for cut in 0..20 {
            assert!(!Ends::of(&p[..cut]).whole, "{cut}");
        }
    }

    #[test]
    fn what_is_cut_off_is_no_packet() {
        let p = ack();
        for cut in 0..p.len() {
            assert!(Header::parse(&p[..cut]).is_none(), "{cut}");
        }
    }
}
