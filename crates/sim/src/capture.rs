//! Capture files: the packets that tcpdump would have seen on the two hosts, as pcapng files with real headers, so
//! that the usual tools (tshark, Wireshark, tcptrace) can read a simulated run. Offsets become 32-bit sequence
//! numbers here. The payload consists of zeros, written in full unless a snap length cuts it: analysers then see no
//! truncated packets and can verify every checksum, and the files compress well.
//!
//! Sources: draft-ietf-opsawg-pcapng; RFC 791 and RFC 1071 (IPv4, checksum), RFC 768 (UDP), RFC 9293 (TCP), RFC 7323
//! (timestamps, window scale), RFC 2018 and RFC 2883 (SACK, DSACK), RFC 3168 (ECN). Options are written in the
//! order that Linux uses.
//!
//! One file may contain both hosts; a packet has the same IP id at both (`ids`). TCP analysis takes the second copy
//! of a packet for a retransmission, so write a separate file per host if this matters.

mod ids;

use std::collections::BTreeMap;
use std::io::{self, Write};

use ackclock_core::{Flags, Header, Packet, Segment, Time};

pub use ids::Noted;

/// A packet as seen at one of the hosts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Captured {
    /// Time at which the packet left or reached the host.
    pub t: Time,
    /// Host at which the packet was captured: 0 sends the data, 1 receives it.
    pub host: u8,
    /// Identification field of the IP header.
    pub id: u16,
    /// Flow to which the packet belongs; determines the addresses.
    pub flow: u32,
    /// Connection to which the packet belongs; determines the port and the initial sequence numbers.
    pub conn: u32,
    /// The packet.
    pub packet: Packet,
}

/// Write a capture file with the packets in time order. Interface 0 is "sender", 1 is "receiver"; time 0 is the
/// epoch. With `snaplen`, at most that many bytes of each frame are kept, together with the length on the wire.
///
/// Fails with `InvalidInput` for a host other than 0 and 1 and for a packet that real headers cannot express.
pub fn write_pcapng(out: &mut impl Write, packets: &[Captured], snaplen: Option<u32>) -> io::Result<()> {
    let mut buf = Vec::new();
    section_header(&mut buf);
    for name in ["sender", "receiver"] {
        interface_description(&mut buf, name, snaplen);
    }
    out.write_all(&buf)?;

    // stable sort: packets in the same nanosecond keep their recorded order
    let mut in_order: Vec<&Captured> = packets.iter().collect();
    in_order.sort_by_key(|c| c.t);

    let mut ways: BTreeMap<(u32, u32, bool), Way> = BTreeMap::new();
    for captured in in_order {
        check(captured)?;
        let forward = captured.packet.forward;
        let way = ways.entry((captured.flow, captured.conn, forward)).or_default();
        let window = way.window(&captured.packet.header);
        buf.clear();
        enhanced_packet(&mut buf, captured, snaplen, |out| frame(out, captured, window));
        out.write_all(&buf)?;
    }
    out.flush()
}

/// State of one direction of a connection.
#[derive(Default)]
struct Way {
    /// Window scale announced in the SYN of this direction's sender; 0 before the SYN.
    wscale: u8,
}

impl Way {
    /// Return the 16-bit window field. The window of a SYN is never scaled (RFC 7323 §2.2).
    fn window(&mut self, header: &Header) -> u16 {
        let Header::Tcp(seg) = header else { return 0 };
        let field = if seg.flags.has(Flags::SYN) {
            self.wscale = seg.syn.wscale;
            seg.wnd
        } else {
            seg.wnd.checked_shr(self.wscale.into()).unwrap_or(0)
        };
        field.min(u16::MAX.into()) as u16
    }
}

/// Reject packets that the formats cannot express, instead of writing malformed ones.
fn check(captured: &Captured) -> io::Result<()> {
    let header = &captured.packet.header;
    let refuse = |what: String| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    if captured.host > 1 {
        return refuse(format!("host {}: allowed are 0 (sender) and 1 (receiver)", captured.host));
    }
    if let Header::Tcp(seg) = header {
        if seg.option_bytes() > MAX_OPTION_BYTES {
            return refuse(format!("{} bytes of TCP options: at most 40 fit", seg.option_bytes()));
        }
    }
    if header.payload() > u16::MAX.into() || header.ip_bytes() > u16::MAX.into() {
        return refuse(format!("{} bytes of payload: an IPv4 packet holds 65535 bytes", header.payload()));
    }
    Ok(())
}

/// Write one pcapng block, always little-endian: type, length, body padded to 32 bits, length again.
fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    body(out);
    pad(out, start);
    let length = (out.len() - start + 4) as u32;
    out[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
    out.extend(length.to_le_bytes());
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let start = out.len();
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    out.extend(value);
    pad(out, start);
}

fn pad(out: &mut Vec<u8>, start: usize) {
    out.resize(start + (out.len() - start).next_multiple_of(4), 0);
}

fn section_header(out: &mut Vec<u8>) {
    block(out, SECTION_HEADER, |out| {
        out.extend(BYTE_ORDER_MAGIC.to_le_bytes());
        out.extend([1, 0, 0, 0]); // version 1.0
        out.extend((-1i64).to_le_bytes()); // section length not specified
        option(out, SHB_USERAPPL, concat!("ackclock ", env!("CARGO_PKG_VERSION")).as_bytes());
        option(out, OPT_ENDOFOPT, &[]);
    });
}

fn interface_description(out: &mut Vec<u8>, name: &str, snaplen: Option<u32>) {
    block(out, INTERFACE_DESCRIPTION, |out| {
        out.extend(LINKTYPE_ETHERNET.to_le_bytes());
        out.extend([0; 2]);
        out.extend(snaplen.unwrap_or(0).to_le_bytes()); // 0 = no limit
        option(out, IF_NAME, name.as_bytes());
        option(out, IF_TSRESOL, &[9]); // timestamps in ns
        option(out, OPT_ENDOFOPT, &[]);
    });
}

fn enhanced_packet(
    out: &mut Vec<u8>,
    captured: &Captured,
    snaplen: Option<u32>,
    frame: impl FnOnce(&mut Vec<u8>),
) {
    block(out, ENHANCED_PACKET, |out| {
        let length = ETHERNET_BYTES + captured.packet.header.ip_bytes();
        let kept = snaplen.map_or(length, |most| most.min(length));
        out.extend(u32::from(captured.host).to_le_bytes());
        out.extend(((captured.t.0 >> 32) as u32).to_le_bytes());
        out.extend((captured.t.0 as u32).to_le_bytes());
        out.extend(kept.to_le_bytes()); // captured length
        out.extend(length.to_le_bytes()); // original length
        let start = out.len();
        frame(out);
        debug_assert_eq!(out.len() - start, length as usize);
        out.truncate(start + kept as usize);
    });
}

/// Address and port of one end of a connection.
#[derive(Clone)]
struct End {
    ip: [u8; 4],
    port: u16,
}

impl End {
    /// Return source and destination of a packet.
    fn of(captured: &Captured) -> (End, End) {
        // the low two bytes number the flows starting at x.x.0.1, skipping network and broadcast addresses
        let [high, low] = ((captured.flow % 65_534) as u16 + 1).to_be_bytes();
        let sender = End { ip: [10, 0, high, low], port: SENDER_PORT };
        let port = RECEIVER_PORT + (captured.conn % RECEIVER_PORTS) as u16;
        let receiver = End { ip: [10, 1, high, low], port };
        match captured.packet.forward {
            true => (sender, receiver),
            false => (receiver, sender),
        }
    }

    /// Locally administered MAC address that contains the IP address.
    fn mac(&self) -> [u8; 6] {
        let [a, b, c, d] = self.ip;
        [0x02, 0, a, b, c, d]
    }
}

/// Ethernet frame without FCS: headers, then an all-zero payload.
fn frame(out: &mut Vec<u8>, captured: &Captured, window: u16) {
    let (from, to) = End::of(captured);
    let header = &captured.packet.header;
    let protocol = if matches!(header, Header::Tcp(_)) { IPPROTO_TCP } else { IPPROTO_UDP };
    out.extend(to.mac());
    out.extend(from.mac());
    out.extend(ETHERTYPE_IPV4.to_be_bytes());

    let ip = out.len();
    out.extend([0x45, captured.packet.ecn as u8]); // version 4, 5 words; DSCP 0
    out.extend((header.ip_bytes() as u16).to_be_bytes());
    out.extend(captured.id.to_be_bytes());
    out.extend(IP_DONT_FRAGMENT.to_be_bytes());
    out.extend([IP_TTL, protocol, 0, 0]);
    out.extend(from.ip);
    out.extend(to.ip);
    let sum = checksum(&[&out[ip..]]);
    out[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());
    match header {
        Header::Tcp(seg) => tcp(out, captured, seg, window, &from, &to),
        Header::Datagram(datagram) => udp(out, datagram.ip_bytes() as u16 - 20, &from, &to),
    }
}

/// UDP header and payload, `length` bytes in total.
fn udp(out: &mut Vec<u8>, length: u16, from: &End, to: &End) {
    let udp = out.len();
    out.extend(from.port.to_be_bytes());
    out.extend(to.port.to_be_bytes());
    out.extend(length.to_be_bytes());
    out.extend([0; 2]); // checksum
    let [high, low] = length.to_be_bytes();
    let sum = checksum(&[&from.ip, &to.ip, &[0, IPPROTO_UDP, high, low], &out[udp..]]);
    let sum = if sum == 0 { u16::MAX } else { sum }; // 0 would mean "no checksum" (RFC 768)
    out[udp + 6..udp + 8].copy_from_slice(&sum.to_be_bytes());
    out.resize(udp + length as usize, 0);
}

/// TCP header, options, payload.
fn tcp(out: &mut Vec<u8>, captured: &Captured, seg: &Segment, window: u16, from: &End, to: &End) {
    let tcp = out.len();
    let own_isn = isn(captured, captured.packet.forward);
    let peer_isn = isn(captured, !captured.packet.forward);
    let ack = if seg.flags.has(Flags::ACK) { peer_isn.wrapping_add(seg.ack as u32) } else { 0 };
    let header_words = (5 + seg.option_bytes() / 4) as u8;
    out.extend(from.port.to_be_bytes());
    out.extend(to.port.to_be_bytes());
    out.extend(own_isn.wrapping_add(seg.seq as u32).to_be_bytes());
    out.extend(ack.to_be_bytes());
    out.extend([header_words << 4 | (seg.flags.0 >> 8) as u8, seg.flags.0 as u8]);
    out.extend(window.to_be_bytes());
    out.extend([0; 4]); // checksum, urgent pointer
    tcp_options(out, seg, ack);

    // an all-zero payload adds nothing to the checksum; its length does, through the pseudo header (RFC 9293 §3.1)
    let [high, low] = (20 + seg.option_bytes() as u16 + seg.len as u16).to_be_bytes();
    let sum = checksum(&[&from.ip, &to.ip, &[0, IPPROTO_TCP, high, low], &out[tcp..]]);
    out[tcp + 16..tcp + 18].copy_from_slice(&sum.to_be_bytes());
    out.resize(out.len() + seg.len as usize, 0);
}

/// Write the options that `Segment::option_bytes` counts; `ack` is the header's ACK number.
fn tcp_options(out: &mut Vec<u8>, seg: &Segment, ack: u32) {
    let syn = seg.flags.has(Flags::SYN);
    if syn {
        out.extend([OPT_MSS, 4]);
        out.extend(seg.syn.mss.to_be_bytes());
    }
    let sack_permitted = syn && seg.syn.sack_permitted;
    if seg.has_ts {
        match sack_permitted {
            true => out.extend([OPT_SACK_PERMITTED, 2]), // together they fill three words; each alone needs padding
            false => out.extend([NOP, NOP]),
        }
        out.extend([OPT_TIMESTAMPS, 10]);
        out.extend(seg.ts_val.to_be_bytes());
        out.extend(seg.ts_ecr.to_be_bytes());
    }
    let (bytes, padded) = (seg.accecn.bytes(), seg.accecn.padded(!syn && !seg.sack.is_empty()));
    if seg.accecn.is_some() {
        out.extend([if seg.accecn.order1() { OPT_ACCECN_1 } else { OPT_ACCECN_0 }, bytes as u8]);
        seg.accecn.counters().for_each(|counter| out.extend(&counter.to_be_bytes()[1..]));
        out.extend((bytes..padded).map(|_| NOP));
    }
    if sack_permitted && !seg.has_ts {
        out.extend([NOP, NOP, OPT_SACK_PERMITTED, 2]);
    }
    if syn {
        out.extend([NOP, OPT_WINDOW_SCALE, 3, seg.syn.wscale]);
    } else if !seg.sack.is_empty() {
        out.extend((bytes.saturating_sub(padded)..2).map(|_| NOP)); // fewer if the AccECN option takes the place of padding
        out.extend([OPT_SACK, 2 + 8 * seg.sack.len() as u8]);
        for edge in seg.sack.as_slice().iter().flat_map(|block| [block.start, block.end]) {
            out.extend(ack.wrapping_add(edge as u32).to_be_bytes());
        }
    }
}

/// Initial sequence number of one direction: deterministic, and spread over the 32 bits so that some connections
/// wrap.
fn isn(captured: &Captured, forward: bool) -> u32 {
    let key = u64::from(captured.flow) << 33 | u64::from(captured.conn) << 1 | u64::from(forward);
    (key.wrapping_add(1).wrapping_mul(GOLDEN_RATIO) >> 32) as u32
}

/// The Internet checksum (RFC 1071) of several parts of even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks_exact(2));
    let sum: u32 = words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const OPT_ENDOFOPT: u16 = 0;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const LINKTYPE_ETHERNET: u16 = 1;

const ETHERNET_BYTES: u32 = 14;
const ETHERTYPE_IPV4: u16 = 0x0800;
const IP_DONT_FRAGMENT: u16 = 0x4000;
const IP_TTL: u8 = 64;
const IPPROTO_TCP: u8 = 6;
const IPPROTO_UDP: u8 = 17;

/// Source port of the data direction.
const SENDER_PORT: u16 = 5001;
/// First destination port of the data direction. No Wireshark dissector claims these ports; the next claimed one is
/// 44321.
const RECEIVER_PORT: u16 = 40_000;
const RECEIVER_PORTS: u32 = 4_000;

const MAX_OPTION_BYTES: u32 = 40;
const NOP: u8 = 1;
const OPT_MSS: u8 = 2;
const OPT_WINDOW_SCALE: u8 = 3;
const OPT_SACK_PERMITTED: u8 = 4;
const OPT_SACK: u8 = 5;
const OPT_ACCECN_0: u8 = 172;
const OPT_ACCECN_1: u8 = 174;
const OPT_TIMESTAMPS: u8 = 8;

/// 2^64 divided by the golden ratio, rounded to an odd number: Fibonacci hashing.
const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
mod tests;
