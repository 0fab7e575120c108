//! Converts packets of the script language to bytes on the wire and back. The script's sequence numbers are relative to
//! each side's initial one, and it has no addresses.

use ackclock_core::packet::Ecn;
use ackclock_core::{AccEcnOption, Flags};
use ackclock_script::ast::{
    EcnMark, IcmpPacket, Quoted, SeqRange, TcpFlags, TcpOption, TcpOptions, TcpPacket,
};

/// Both ends of the connection, and the origins of their sequence numbers.
#[derive(Clone, Debug)]
pub struct Ends {
    /// Whether packets are IPv6.
    pub v6: bool,
    /// Port of the kernel.
    pub local: u16,
    /// Port of the script's peer.
    pub remote: u16,
    /// Initial sequence numbers: the kernel's, the script's.
    pub first: (u32, u32),
    /// Sequence number of the kernel's SYN as written in the script.
    pub written: u32,
}

/// Addresses of the host and its peer, for each address family.
pub const HOST4: [u8; 4] = [192, 168, 0, 1];
pub const PEER4: [u8; 4] = [192, 0, 2, 1];
pub const HOST6: [u8; 16] = [0xfd, 0x3d, 0x0a, 0x0b, 0x17, 0xd6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
pub const PEER6: [u8; 16] = [0xfd, 0x3d, 0xfa, 0x7b, 0xd1, 0x7d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

const TCP: u8 = libc::IPPROTO_TCP as u8;

/// Size of the offload header (`struct virtio_net_hdr`) in front of each packet of the device, bytes.
pub const OFFLOAD: usize = 10;

impl Ends {
    /// Segment sent by the peer; if it is longer than `gro` bytes, it arrives as an aggregate of segments of that size.
    pub fn segment(&self, p: &TcpPacket, ecr: impl Fn(u32) -> u32, gro: Option<u16>) -> Vec<u8> {
        let syn = p.flags.bits.has(Flags::SYN);
        // Sequence numbers on a SYN are absolute.
        let seq = if syn { p.seq.start } else { self.first.1.wrapping_add(p.seq.start) };
        let base = if syn { self.first.0.wrapping_sub(self.written) } else { self.first.0 };
        let ack = p.ack.map_or(0, |ack| base.wrapping_add(ack));
        let mut options = Vec::new();
        if let TcpOptions::Exactly(list) = &p.options {
            list.iter().for_each(|o| self.put_option(o, &ecr, &mut options));
        }
        let header = 20 + options.len();
        let [ace, bits] = p.flags.header().0.to_be_bytes();
        let mut tcp = Vec::with_capacity(header + p.seq.len as usize);
        tcp.extend(self.remote.to_be_bytes());
        tcp.extend(self.local.to_be_bytes());
        tcp.extend(seq.to_be_bytes());
        tcp.extend(ack.to_be_bytes());
        tcp.extend([(header as u8 / 4) << 4 | ace, bits]);
        tcp.extend(p.win.unwrap_or(0).to_be_bytes());
        tcp.extend([0; 2]);
        tcp.extend(p.urg.unwrap_or(0).to_be_bytes());
        tcp.extend(options);
        tcp.resize(header + p.seq.len as usize, 0);
        self.seal(&mut tcp, TCP, 16);
        let tos = p.ip.tos.unwrap_or(match p.ip.ecn {
            Some(EcnMark::Ect1) => 1,
            Some(EcnMark::Ect0) => 2,
            Some(EcnMark::Ce) => 3,
            _ => 0,
        });
        let ip = self.ip_header(TCP, tcp.len(), tos, p.ip.ttl.unwrap_or(64), false);
        let mut packet = vec![0; OFFLOAD];
        if let Some(size) = gro.filter(|size| p.seq.len > *size) {
            packet[1] = if self.v6 { 4 } else { 1 }; // VIRTIO_NET_HDR_GSO_TCPV6, _TCPV4
            packet[4..6].copy_from_slice(&size.to_ne_bytes());
        }
        packet.extend(ip);
        packet.extend(tcp);
        packet
    }

    /// ICMP message about a segment sent by the kernel; `None` if there is no such message. `una` is the kernel's
    /// oldest unacknowledged sequence number.
    pub fn icmp(&self, p: &IcmpPacket, una: u32) -> Option<Vec<u8>> {
        let (kind, code) = match (self.v6, p.kind.as_str()) {
            (false, "unreachable") => (3, icmp_code(p.code.as_deref().unwrap_or("net_unreachable"))?),
            (true, "packet_too_big") => (2, 0),
            _ => return None,
        };
        let (seq, len) = match p.quoted {
            Some(Quoted::Tcp(SeqRange { start, len, .. })) => {
                (self.first.0.wrapping_add(start), len as usize)
            }
            None => (una, 0),
            Some(Quoted::Udp(_)) => return None,
        };
        let mtu = p.mtu.unwrap_or(0);
        let mut icmp = vec![kind, code, 0, 0];
        icmp.extend(mtu.to_be_bytes());
        icmp.extend(self.ip_header(TCP, 20 + len, 0, 64, true));
        icmp.extend(self.local.to_be_bytes());
        icmp.extend(self.remote.to_be_bytes());
        icmp.extend(seq.to_be_bytes());
        icmp.extend([0, 0, 0, 0, 5 << 4, 0, 0, 0, 0, 0, 0, 0]);
        let protocol = if self.v6 { libc::IPPROTO_ICMPV6 as u8 } else { libc::IPPROTO_ICMP as u8 };
        self.seal(&mut icmp, protocol, 2);
        let mut packet = vec![0; OFFLOAD];
        packet.extend(self.ip_header(protocol, icmp.len(), 0, 64, false));
        packet.extend(icmp);
        Some(packet)
    }

    /// IP header of a packet sent by the kernel (`ours`) or by its peer.
    fn ip_header(&self, protocol: u8, len: usize, tos: u8, ttl: u8, ours: bool) -> Vec<u8> {
        if self.v6 {
            let mut ip = vec![0x60 | tos >> 4, tos << 4, 0, 0];
            ip.extend((len as u16).to_be_bytes());
            ip.extend([protocol, ttl]);
            let (from, to) = if ours { (HOST6, PEER6) } else { (PEER6, HOST6) };
            ip.extend(from.into_iter().chain(to));
            return ip;
        }
        let mut ip = vec![0x45, tos];
        ip.extend((20 + len as u16).to_be_bytes());
        ip.extend([0, 0, 0x40, 0, ttl, protocol, 0, 0]);
        let (from, to) = if ours { (HOST4, PEER4) } else { (PEER4, HOST4) };
        ip.extend(from.into_iter().chain(to));
        let sum = checksum(0, &ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        ip
    }

    /// Write the checksum at offset `at`.
    fn seal(&self, body: &mut [u8], protocol: u8, at: usize) {
        let mut pseudo: Vec<u8> = Vec::new();
        let plain = protocol == libc::IPPROTO_ICMP as u8;
        match (plain, self.v6) {
            (true, _) => {}
            (false, true) => pseudo.extend(PEER6.into_iter().chain(HOST6)),
            (false, false) => pseudo.extend(PEER4.into_iter().chain(HOST4)),
        }
        if !plain {
            pseudo.extend((body.len() as u32).to_be_bytes());
            pseudo.extend([0, 0, 0, protocol]);
        }
        let sum = checksum(ones(&pseudo), body);
        body[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }

    fn put_option(&self, option: &TcpOption, ecr: &impl Fn(u32) -> u32, out: &mut Vec<u8>) {
        match option {
            TcpOption::Nop => out.push(1),
            TcpOption::Eol => out.push(0),
            TcpOption::Mss(n) => {
                out.extend([2, 4]);
                out.extend(n.to_be_bytes());
            }
            TcpOption::WindowScale(n) => out.extend([3, 3, *n]),
            TcpOption::SackPermitted => out.extend([4, 2]),
            TcpOption::Sack(blocks) => {
                out.extend([5, 2 + 8 * blocks.len() as u8]);
                for edge in blocks.iter().flat_map(|(start, end)| [start, end]) {
                    out.extend(self.first.0.wrapping_add(*edge).to_be_bytes());
                }
            }
            TcpOption::Timestamps { val, ecr: script } => {
                out.extend([8, 10]);
                out.extend(val.to_be_bytes());
                out.extend(ecr(*script).to_be_bytes());
            }
            TcpOption::FastOpen { experimental, cookie } => {
                let magic: &[u8] = if *experimental { &[0xf9, 0x89] } else { &[] };
                out.extend([if *experimental { 254 } else { 34 }, (2 + magic.len() + cookie.len()) as u8]);
                out.extend(magic);
                out.extend(cookie);
            }
            TcpOption::Md5(digest) => {
                out.extend([19, 18]);
                out.extend(digest);
            }
            TcpOption::AccEcn(option) => {
                out.extend([if option.order1() { 174 } else { 172 }, option.bytes() as u8]);
                option.counters().for_each(|n| out.extend(&n.to_be_bytes()[1..]));
            }
        }
    }

    /// Decode a packet sent by the kernel; `None` unless it is a segment of this connection.
    pub fn read(&self, bytes: &[u8]) -> Option<(TcpPacket, Ecn)> {
        let (v6, ip) = match bytes.first()? >> 4 {
            4 => (false, 4 * (bytes[0] & 15) as usize),
            6 => (true, 40),
            _ => return None,
        };
        let protocol = *bytes.get(if v6 { 6 } else { 9 })?;
        if v6 != self.v6 || protocol != TCP {
            return None;
        }
        let tos = if v6 { bytes[0] << 4 | bytes[1] >> 4 } else { bytes[1] };
        let tcp = bytes.get(ip..)?;
        let header = 4 * (*tcp.get(12)? >> 4) as usize;
        let len = tcp.len().checked_sub(header)?;
        if u16_at(tcp, 0) != self.local || u16_at(tcp, 2) != self.remote {
            return None;
        }
        let bits = Flags(u16::from_be_bytes([tcp[12] & 1, tcp[13]]));
        let syn = bits.has(Flags::SYN);
        let start = if syn { 0 } else { u32_at(tcp, 4).wrapping_sub(self.first.0) };
        let ack = u32_at(tcp, 8).wrapping_sub(if syn { 0 } else { self.first.1 });
        let packet = TcpPacket {
            flags: TcpFlags { bits, ace: None },
            seq: SeqRange { start, end: start.wrapping_add(len as u32), len: len as u16 },
            ack: bits.has(Flags::ACK).then_some(ack),
            win: Some(u16_at(tcp, 14)),
            urg: Some(u16_at(tcp, 18)).filter(|_| bits.has(Flags::URG)),
            options: TcpOptions::Exactly(self.options(tcp.get(20..header)?)),
            ..TcpPacket::default()
        };
        Some((packet, [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][(tos & 3) as usize]))
    }

    fn options(&self, mut bytes: &[u8]) -> Vec<TcpOption> {
        let mut list = Vec::new();
        while let Some(&kind) = bytes.first() {
            let len = if kind < 2 { 1 } else { bytes.get(1).map_or(0, |n| *n as usize) };
            let Some(option) = bytes.get(..len).filter(|_| len > 0) else { break };
            bytes = &bytes[len..];
            let triple =
                |at: usize| option.get(at..at + 3).map(|b| u32::from_be_bytes([0, b[0], b[1], b[2]]));
            list.push(match (kind, len) {
                (0, _) => TcpOption::Eol,
                (1, _) => TcpOption::Nop,
                (2, 4) => TcpOption::Mss(u16_at(option, 2)),
                (3, 3) => TcpOption::WindowScale(option[2]),
                (4, 2) => TcpOption::SackPermitted,
                (5, _) => {
                    let edge = |b: &[u8], at| u32_at(b, at).wrapping_sub(self.first.1);
                    TcpOption::Sack(option[2..].chunks_exact(8).map(|b| (edge(b, 0), edge(b, 4))).collect())
                }
                (8, 10) => TcpOption::Timestamps { val: u32_at(option, 2), ecr: u32_at(option, 6) },
                (19, 18) => TcpOption::Md5(option[2..].try_into().expect("invariant: 16 bytes")),
                (34, _) => TcpOption::FastOpen { experimental: false, cookie: option[2..].to_vec() },
                (254, 4..) if option[2..4] == [0xf9, 0x89] => {
                    TcpOption::FastOpen { experimental: true, cookie: option[4..].to_vec() }
                }
                (172 | 174, 2 | 5 | 8 | 11) => {
                    let counters: Vec<u32> = [2, 5, 8].into_iter().filter_map(triple).collect();
                    TcpOption::AccEcn(AccEcnOption::new(kind == 174, &counters))
                }
                _ => continue,
            });
        }
        list
    }
}

/// Sequence number of a segment sent by the kernel.
pub fn number_of(bytes: &[u8]) -> Option<u32> {
    let ip = if bytes.first()? >> 4 == 6 { 40 } else { 4 * (bytes[0] & 15) as usize };
    bytes.get(ip + 4..ip + 8).map(|b| u32_at(b, 0))
}

/// Source and destination port of a segment.
pub fn ports_of(bytes: &[u8]) -> Option<(u16, u16)> {
    let ip = if bytes.first()? >> 4 == 6 { 40 } else { 4 * (bytes[0] & 15) as usize };
    bytes.get(ip..ip + 4).map(|b| (u16_at(b, 0), u16_at(b, 2)))
}

/// Code of a "destination unreachable" message (RFC 792, RFC 1122).
fn icmp_code(name: &str) -> Option<u8> {
    const CODES: [&str; 14] = [
        "net_unreachable",
        "host_unreachable",
        "protocol_unreachable",
        "port_unreachable",
        "frag_needed",
        "source_route_failed",
        "net_unknown",
        "host_unknown",
        "source_host_isolated",
        "net_prohibited",
        "host_prohibited",
        "net_unreachable_for_tos",
        "host_unreachable_for_tos",
        "packet_filtered",
    ];
    CODES.iter().position(|known| *known == name).map(|n| n as u8)
}

fn ones(bytes: &[u8]) -> u32 {
    let word = |b: &[u8]| u32::from(b[0]) << 8 | u32::from(b.get(1).copied().unwrap_or(0));
    bytes.chunks(2).map(word).fold(0, |sum, w| {
        let sum = sum + w;
        (sum & 0xffff) + (sum >> 16)
    })
}

/// Internet checksum (RFC 1071) over bytes with a zero checksum field.
fn checksum(start: u32, bytes: &[u8]) -> u16 {
    let sum = start + ones(bytes);
    !((sum & 0xffff) + (sum >> 16)) as u16
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

    const ENDS: Ends = Ends { v6: false, local: 8080, remote: 40000, first: (7_000, 9_000), written: 0 };

    fn turned(packet: &[u8]) -> Vec<u8> {
        // as if the kernel had sent it: ports are swapped
        let mut bytes = packet[OFFLOAD..].to_vec();
        let ip = if bytes[0] >> 4 == 6 { 40 } else { 20 };
        let ports: Vec<u8> = [&bytes[ip + 2..ip + 4], &bytes[ip..ip + 2]].concat();
        bytes[ip..ip + 4].copy_from_slice(&ports);
        bytes
    }

    #[test]
    fn a_segment_reads_back_with_the_other_sides_numbers() {
        let sent = TcpPacket {
            flags: TcpFlags { bits: Flags::ACK | Flags::PSH, ..TcpFlags::default() },
            seq: SeqRange { start: 1, end: 101, len: 100 },
            ack: Some(5),
            win: Some(257),
            options: TcpOptions::Exactly(vec![
                TcpOption::Nop,
                TcpOption::Nop,
                TcpOption::Timestamps { val: 3, ecr: 4 },
                TcpOption::Nop,
                TcpOption::Nop,
                TcpOption::Sack(vec![(1001, 2001)]),
            ]),
            ..TcpPacket::default()
        };
        for v6 in [false, true] {
            let ends = Ends { v6, ..ENDS };
            let packet = ends.segment(&sent, |ecr| ecr + 10, None);
            let swapped = Ends { first: (ends.first.1, ends.first.0), ..ends };
            let (read, ecn) = swapped.read(&turned(&packet)).expect("a segment");
            assert_eq!((read.seq, read.ack, read.win, ecn), (sent.seq, sent.ack, sent.win, Ecn::NotEct));
            let TcpOptions::Exactly(options) = read.options else { panic!("options") };
            assert_eq!(options[2], TcpOption::Timestamps { val: 3, ecr: 14 });
            assert_eq!(options[5], TcpOption::Sack(vec![(1001, 2001)]));
            for cut in 0..packet.len() - OFFLOAD - 100 {
                let _ = swapped.read(&turned(&packet)[..cut]);
            }
        }
    }

    #[test]
    fn checksums_add_up() {
        let packet = ENDS.segment(&TcpPacket::default(), |ecr| ecr, None);
        assert_eq!(checksum(0, &packet[OFFLOAD..OFFLOAD + 20]), 0);
        let mut whole: Vec<u8> = PEER4.into_iter().chain(HOST4).collect();
        whole.extend([0, 0, 0, 20, 0, 0, 0, TCP]);
        whole.extend(&packet[OFFLOAD + 20..]);
        assert_eq!(checksum(0, &whole), 0);
    }
}
