//! Layers around IP: link layers, tags, tunnels. Each function returns the start of the next layer, or `None` if the
//! bytes are invalid.
//!
//! Sources: tcpdump.org's list of link types, IEEE 802.1Q, RFC 1042 (SNAP), RFC 1661 and 2516 (PPP, PPPoE), RFC 3032 (MPLS), RFC 2784, 2890 and 2637
//! (GRE), RFC 7348 (VXLAN), RFC 8926 (Geneve), 3GPP TS 29.281 (GTP-U).

const MOST_LAYERS: usize = 8;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const MPLS: u16 = 0x8847;
const PPPOE: u16 = 0x8864;
const ETHERNET: u16 = 0x6558;

fn u16_at(b: &[u8], at: usize) -> Option<u16> {
    b.get(at..at + 2).map(|b| u16::from_be_bytes([b[0], b[1]]))
}

/// Whether frames of this link layer can be decoded.
pub fn is_known(link: u16) -> bool {
    matches!(
        link,
        0 | 1 | 9 | 12 | 14 | 50 | 51 | 101 | 104 | 105 | 108 | 113 | 127 | 166 | 228 | 229 | 239 | 276
    )
}

/// Return the start of the IP header in a frame; `None` if the frame has none.
pub fn behind_link(link: u16, b: &[u8]) -> Option<usize> {
    match link {
        1 => behind_type(b, u16_at(b, 12)?, 14),
        12 | 14 | 101 | 228 | 229 => Some(0),
        // address family in the byte order of the capturing machine; its numbers differ between systems
        0 | 108 => {
            let four: [u8; 4] = b.get(..4)?.try_into().ok()?;
            let family = u32::from_le_bytes(four).min(u32::from_be_bytes(four));
            matches!(family, 2 | 10 | 24 | 28 | 30).then_some(4)
        }
        113 => behind_type(b, u16_at(b, 14)?, 16),
        276 => behind_type(b, u16_at(b, 0)?, 20),
        9 | 50 | 166 => behind_ppp(b, 0),
        51 => behind_type(b, PPPOE, 0),
        104 => behind_type(b, u16_at(b, 2)?, 4),
        105 => behind_wifi(b, 0),
        127 => behind_wifi(b, usize::from(u16::from_le_bytes([*b.get(2)?, *b.get(3)?]))),
        239 => behind_nflog(b),
        _ => None,
    }
}

/// Return the start of the IP header that follows an Ethernet type field.
pub fn behind_type(b: &[u8], mut kind: u16, mut at: usize) -> Option<usize> {
    for _ in 0..MOST_LAYERS {
        match kind {
            IPV4 | IPV6 => return Some(at),
            0x8100 | 0x88a8 | 0x9100 => {
                kind = u16_at(b, at + 2)?;
                at += 4;
            }
            PPPOE => return behind_ppp(b, at + 6),
            MPLS | 0x8848 => {
                while b.get(at + 2)? & 1 == 0 {
                    at += 4;
                }
                at += 4;
                match b.get(at)? >> 4 {
                    4 | 6 => return Some(at),
                    // a control word, followed by Ethernet
                    0 => (kind, at) = (ETHERNET, at + 4),
                    _ => return None,
                }
            }
            ETHERNET => {
                kind = u16_at(b, at + 12)?;
                at += 14;
            }
            // a length followed by LLC and SNAP
            0..=1500 if b.get(at..at + 3)? == [0xaa, 0xaa, 3] => {
                kind = u16_at(b, at + 6)?;
                at += 8;
            }
            _ => return None,
        }
    }
    None
}

/// Return the start of the IP header inside PPP, whose address and control bytes may be omitted and whose protocol
/// may be one byte.
fn behind_ppp(b: &[u8], mut at: usize) -> Option<usize> {
    if b.get(at..at + 2)? == [0xff, 3] {
        at += 2;
    }
    let short = b.get(at)? & 1 == 1;
    let kind = if short { u16::from(*b.get(at)?) } else { u16_at(b, at)? };
    at += if short { 1 } else { 2 };
    match kind {
        0x21 | 0x57 => Some(at),
        0x281 | 0x283 => behind_type(b, MPLS, at),
        _ => None,
    }
}

/// Return the start of the IP header in an 802.11 frame with unencrypted data.
fn behind_wifi(b: &[u8], at: usize) -> Option<usize> {
    let (first, flags) = (*b.get(at)?, *b.get(at + 1)?);
    if first & 0x0c != 0x08 || first & 0x40 != 0 || flags & 0x40 != 0 {
        return None;
    }
    let addresses = if flags & 3 == 3 { 30 } else { 24 };
    let quality = if first & 0x80 != 0 { 2 } else { 0 };
    let ordered = if first & 0x80 != 0 && flags & 0x80 != 0 { 4 } else { 0 };
    behind_type(b, 0, at + addresses + quality + ordered)
}

/// Return the start of the packet in a netfilter log record.
fn behind_nflog(b: &[u8]) -> Option<usize> {
    let mut at = 4;
    loop {
        let head = b.get(at..at + 4)?;
        let (length, kind) =
            (usize::from(u16::from_le_bytes([head[0], head[1]])), u16::from_le_bytes([head[2], head[3]]));
        match kind & 0x7fff {
            9 => return Some(at + 4),
            _ if length < 4 => return None,
            _ => at += length.next_multiple_of(4),
        }
    }
}

/// Return the start of the inner IP header if the IP payload is a tunnel protocol; `None` for other protocols.
pub fn behind_tunnel(protocol: u8, b: &[u8]) -> Option<usize> {
    match protocol {
        4 | 41 => Some(0),
        47 => behind_gre(b),
        17 => behind_udp(b),
        _ => None,
    }
}

fn behind_gre(b: &[u8]) -> Option<usize> {
    let (flags, kind) = (u16_at(b, 0)?, u16_at(b, 2)?);
    let part = |flag: u16| if flags & flag != 0 { 4 } else { 0 };
    match flags & 7 {
        0 => behind_type(b, kind, 4 + part(0x8000) + part(0x2000) + part(0x1000)),
        1 if kind == 0x880b => behind_ppp(b, 8 + part(0x1000) + part(0x0080)),
        _ => None,
    }
}

fn behind_udp(b: &[u8]) -> Option<usize> {
    let ports = [u16_at(b, 0)?, u16_at(b, 2)?];
    let is = |port: u16| ports.contains(&port);
    if is(4789) || is(8472) {
        return if b.get(8)? & 8 != 0 { behind_type(b, ETHERNET, 16) } else { None };
    }
    if is(6081) {
        let options = usize::from(b.get(8)? & 0x3f) * 4;
        return behind_type(b, u16_at(b, 10)?, 16 + options);
    }
    if is(2152) {
        let (flags, kind) = (*b.get(8)?, *b.get(9)?);
        if flags & 0xf0 != 0x30 || kind != 0xff {
            return None;
        }
        let mut at = if flags & 7 != 0 { 20 } else { 16 };
        let mut next = if flags & 4 != 0 { *b.get(19)? } else { 0 };
        while next != 0 {
            let length = usize::from(*b.get(at)?) * 4;
            if length == 0 {
                return None;
            }
            at += length;
            next = *b.get(at - 1)?;
        }
        return matches!(b.get(at)? >> 4, 4 | 6).then_some(at);
    }
    None
}
