//! TCP's part of a frame: link layer, IP, TCP header and options. Decoding allocates no memory; truncated fields are
//! omitted.
//!
//! Sources: tcpdump.org's list of link types, RFC 791, RFC 8200, RFC 9293, RFC 7323, RFC 2018.

use crate::layers::{behind_link, behind_tunnel, is_known};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Flags of the TCP header: the low bits of bytes 12 and 13.
pub mod flags {
    /// No more data from the sender.
    pub const FIN: u16 = 1;
    /// Synchronize sequence numbers.
    pub const SYN: u16 = 2;
    /// Reset the connection.
    pub const RST: u16 = 4;
    /// Push.
    pub const PSH: u16 = 8;
    /// Acknowledgment field is valid.
    pub const ACK: u16 = 16;
    /// ECN echo.
    pub const ECE: u16 = 64;
    /// Congestion window reduced.
    pub const CWR: u16 = 128;
}

/// An address and a port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct End {
    /// Address.
    pub ip: IpAddr,
    /// Port.
    pub port: u16,
}

/// A TCP segment as described by its headers.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// Source.
    pub from: End,
    /// Destination.
    pub to: End,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Flags.
    pub flags: u16,
    /// Unscaled window field.
    pub window: u16,
    /// Payload on the wire, bytes.
    pub payload: u32,
    /// IPv4 identification field; 0 for IPv6.
    pub ip_id: u16,
    /// ECN field of the IP header: 0 is Not-ECT, 3 is CE.
    pub ecn: u8,
    /// TTL or hop limit.
    pub ttl: u8,
    /// Length of the Ethernet frame on the wire, bytes; 0 for other link layers.
    pub frame: u32,
    /// Whether the options were truncated.
    pub cut: bool,
    /// Maximum segment size option of a SYN.
    pub mss: Option<u16>,
    /// Window shift of a SYN, at most 14.
    pub wscale: Option<u8>,
    /// Whether a SYN permits SACK.
    pub sack_permitted: bool,
    /// Timestamp and echo.
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks.
    pub sacks: [(u32, u32); 4],
    /// Number of SACK blocks.
    pub sack_count: u8,
}

/// Contents of a frame.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::large_enum_variant, reason = "it is handed on and never kept")]
pub enum Content {
    /// A TCP segment.
    Tcp(Segment),
    /// Any other content.
    Other,
    /// A fragment other than the first.
    Fragment,
    /// Too few bytes were captured, or lengths contradict each other.
    Short,
    /// An unknown link layer.
    UnknownLink,
}

const MOST_TUNNELS: u32 = 4;
const MOST_EXTENSIONS: usize = 8;
const TCP: u8 = 6;

/// Decode a frame.
pub fn decode(link: u16, bytes: &[u8], on_wire: u32) -> Content {
    let Some(at) = behind_link(link, bytes) else {
        return if is_known(link) { Content::Other } else { Content::UnknownLink };
    };
    let Some(packet) = bytes.get(at..) else { return Content::Short };
    let mut content = ip(packet, on_wire.saturating_sub(at as u32), MOST_TUNNELS);
    if let (1, Content::Tcp(seg)) = (link, &mut content) {
        seg.frame = on_wire;
    }
    content
}

fn ip(b: &[u8], wire: u32, tunnels: u32) -> Content {
    match b.first().map(|b| b >> 4) {
        Some(4) => ipv4(b, wire, tunnels),
        Some(6) => ipv6(b, wire, tunnels),
        Some(_) => Content::Other,
        None => Content::Short,
    }
}

/// Decode the payload of an IP protocol other than TCP.
fn within(protocol: u8, b: &[u8], wire: u32, tunnels: u32) -> Content {
    match behind_tunnel(protocol, b).and_then(|at| Some((at, b.get(at..)?))) {
        Some((at, inner)) if tunnels > 0 => ip(inner, wire.saturating_sub(at as u32), tunnels - 1),
        _ => Content::Other,
    }
}

fn u16_at(b: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([b[at], b[at + 1]])
}

fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

fn ipv4(ip: &[u8], wire: u32, tunnels: u32) -> Content {
    if ip.len() < 20 {
        return Content::Short;
    }
    let header = usize::from(ip[0] & 15) * 4;
    if header < 20 {
        return Content::Short;
    }
    if u16_at(ip, 6) & 0x1fff != 0 {
        return Content::Fragment;
    }
    if ip[9] != TCP {
        return within(ip[9], ip.get(header..).unwrap_or(&[]), wire.saturating_sub(header as u32), tunnels);
    }
    // a host that offloads segmentation to its NIC writes 0 if 16 bits are not enough
    let total = match u32::from(u16_at(ip, 2)) {
        0 => wire,
        total => total,
    };
    let address = |at: usize| IpAddr::V4(Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]));
    let Some(length) = total.checked_sub(header as u32) else { return Content::Short };
    let Some(rest) = ip.get(header..) else { return Content::Short };
    tcp(rest, length, address(12), address(16), u16_at(ip, 4), (ip[1] & 3, ip[8]))
}

fn ipv6(ip: &[u8], wire: u32, tunnels: u32) -> Content {
    if ip.len() < 40 {
        return Content::Short;
    }
    let address = |at: usize| {
        let mut all = [0; 16];
        all.copy_from_slice(&ip[at..at + 16]);
        IpAddr::V6(Ipv6Addr::from(all))
    };
    let payload = match u32::from(u16_at(ip, 4)) {
        0 => wire.saturating_sub(40), // a jumbogram, or a packet that the NIC segments
        payload => payload,
    };
    let (mut next, mut at) = (ip[6], 40);
    for _ in 0..MOST_EXTENSIONS {
        let Some(head) = ip.get(at..at + 8) else { break };
        match next {
            0 | 43 | 60 => at += 8 + usize::from(head[1]) * 8,
            44 if u16_at(head, 2) & 0xfff8 != 0 => return Content::Fragment,
            44 => at += 8,
            _ => break,
        }
        next = head[0];
    }
    if next != TCP {
        return within(next, ip.get(at..).unwrap_or(&[]), wire.saturating_sub(at as u32), tunnels);
    }
    let Some(length) = payload.checked_sub(at as u32 - 40) else { return Content::Short };
    let Some(rest) = ip.get(at..) else { return Content::Short };
    tcp(rest, length, address(8), address(24), 0, (ip[1] >> 4 & 3, ip[7]))
}

/// Decode a TCP segment. `length`: header and payload on the wire, bytes.
fn tcp(b: &[u8], length: u32, from: IpAddr, to: IpAddr, ip_id: u16, (ecn, ttl): (u8, u8)) -> Content {
    if b.len() < 20 {
        return Content::Short;
    }
    let header = u32::from(b[12] >> 4) * 4;
    if header < 20 || header > length {
        return Content::Short;
    }
    let mut made = Segment {
        from: End { ip: from, port: u16_at(b, 0) },
        to: End { ip: to, port: u16_at(b, 2) },
        seq: u32_at(b, 4),
        ack: u32_at(b, 8),
        flags: u16_at(b, 12) & 0x1ff,
        window: u16_at(b, 14),
        payload: length - header,
        ip_id,
        ecn,
        ttl,
        frame: 0,
        cut: b.len() < header as usize,
        mss: None,
        wscale: None,
        sack_permitted: false,
        timestamps: None,
        sacks: [(0, 0); 4],
        sack_count: 0,
    };
    options(&b[20..b.len().min(header as usize)], &mut made);
    Content::Tcp(made)
}

fn options(mut b: &[u8], made: &mut Segment) {
    while let Some((&kind, rest)) = b.split_first() {
        match kind {
            0 => return,
            1 => {
                b = rest;
                continue;
            }
            _ => {}
        }
        let Some(&length) = rest.first() else { return };
        let length = usize::from(length);
        if length < 2 || length > b.len() {
            return;
        }
        let value = &b[2..length];
        match (kind, value.len()) {
            (2, 2) => made.mss = Some(u16_at(value, 0)),
            (3, 1) => made.wscale = Some(value[0].min(14)),
            (4, 0) => made.sack_permitted = true,
            (5, n) if n % 8 == 0 => {
                for (block, to) in value.chunks_exact(8).zip(&mut made.sacks) {
                    *to = (u32_at(block, 0), u32_at(block, 4));
                    made.sack_count += 1;
                }
            }
            (8, 8) => made.timestamps = Some((u32_at(value, 0), u32_at(value, 4))),
            _ => {}
        }
        b = &b[length..];
    }
}
