//! Capture files: what tcpdump would have seen on the two hosts, as pcapng with real headers, so that the usual tools
//! (tshark, Wireshark, tcptrace) read a simulated run. The 32-bit edge of the simulator: offsets become sequence
//! numbers here. Payload is written in full, as zeros: analysers then see no truncated packet and can verify every
//! checksum, and a compressor takes the zeros away.
//!
//! Sources: draft-ietf-opsawg-pcapng; RFC 791 and RFC 1071 (IPv4, checksum), RFC 9293 (TCP), RFC 7323 (timestamps,
//! window scale), RFC 2018 and RFC 2883 (SACK, DSACK), RFC 3168 (ECN). Options stand in the order Linux writes them.
//!
//! Both hosts may be in one file; a packet that was seen at both has the same IP id at both. TCP analysis takes the
//! second sight for a retransmission, so write one host per file where it matters.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};

use ackclock_core::{Flags, Packet, Segment, Time};

/// A packet as one of the hosts saw it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Captured {
    /// When it left or reached the host.
    pub t: Time,
    /// Where: 0 the host that sends the data, 1 the one that receives it.
    pub host: u8,
    /// Its flow, from which the addresses follow.
    pub flow: u32,
    /// Its connection, from which the port and the initial sequence numbers follow.
    pub conn: u32,
    /// The packet.
    pub packet: Packet,
}

/// Write a whole capture, packets in order of time. Interface 0 is "sender", 1 is "receiver"; time 0 is the epoch.
///
/// Fails with `InvalidInput` for a host other than 0 and 1 and for a packet that real headers cannot express.
pub fn write_pcapng(out: &mut impl Write, packets: &[Captured]) -> io::Result<()> {
    let mut buf = Vec::new();
    section_header(&mut buf);
    for name in ["sender", "receiver"] {
        interface_description(&mut buf, name);
    }
    out.write_all(&buf)?;

    // stable: packets of the same nanosecond stay as recorded
    let mut in_order: Vec<&Captured> = packets.iter().collect();
    in_order.sort_by_key(|c| c.t);

    let mut ways: BTreeMap<(u32, u32, bool), Way> = BTreeMap::new();
    for captured in in_order {
        check(captured)?;
        let forward = captured.packet.forward;
        let way = ways.entry((captured.flow, captured.conn, forward)).or_default();
        let (id, window) = (way.ip_id(captured), way.window(&captured.packet.seg));
        buf.clear();
        enhanced_packet(&mut buf, captured, |out| frame(out, captured, id, window));
        out.write_all(&buf)?;
    }
    out.flush()
}

/// What has to be remembered about one direction of a connection.
#[derive(Default)]
struct Way<'a> {
    /// Shift that this side announced on its SYN; 0 until one was seen.
    wscale: u8,
    /// IP id of the latest packet.
    last_id: u16,
    /// Packets seen where they left and not yet where they arrive, with their IP ids, oldest first.
    in_flight: VecDeque<(u16, &'a Segment)>,
}

impl<'a> Way<'a> {
    /// A new id where the packet leaves, the same one again where it arrives.
    fn ip_id(&mut self, captured: &'a Captured) -> u16 {
        let seg = &captured.packet.seg;
        let leaves = (captured.host == 0) == captured.packet.forward;
        if !leaves {
            if let Some(i) = self.in_flight.iter().position(|(_, sent)| *sent == seg) {
                self.in_flight.drain(..i.saturating_sub(REORDERING));
                let (id, _) = self.in_flight.remove(i.min(REORDERING)).expect("a position just found");
                return id;
            }
        }
        self.last_id = self.last_id.wrapping_add(1);
        if leaves {
            if self.in_flight.len() == MAX_IN_FLIGHT {
                self.in_flight.pop_front();
            }
            self.in_flight.push_back((self.last_id, seg));
        }
        self.last_id
    }

    /// The 16-bit window field: never scaled on a SYN (RFC 7323 §2.2).
    fn window(&mut self, seg: &Segment) -> u16 {
        let field = if seg.flags.has(Flags::SYN) {
            self.wscale = seg.syn.wscale;
            seg.wnd
        } else {
            seg.wnd.checked_shr(self.wscale.into()).unwrap_or(0)
        };
        field.min(u16::MAX.into()) as u16
    }
}

/// Refuse what the formats cannot hold, rather than write a malformed packet.
fn check(captured: &Captured) -> io::Result<()> {
    let seg = &captured.packet.seg;
    let refuse = |what: String| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    if captured.host > 1 {
        return refuse(format!("host {}: allowed are 0 (sender) and 1 (receiver)", captured.host));
    }
    if seg.option_bytes() > MAX_OPTION_BYTES {
        return refuse(format!("{} bytes of TCP options: at most 40 fit", seg.option_bytes()));
    }
    if seg.len > u16::MAX.into() || seg.ip_bytes() > u16::MAX.into() {
        return refuse(format!("{} bytes of payload: an IPv4 packet holds 65535 bytes", seg.len));
    }
    Ok(())
}

/// One pcapng block, always little-endian: type, length, body padded to 32 bits, length again.
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
        out.extend((-1i64).to_le_bytes()); // section length not stated
        option(out, SHB_USERAPPL, concat!("ackclock ", env!("CARGO_PKG_VERSION")).as_bytes());
        option(out, OPT_ENDOFOPT, &[]);
    });
}

fn interface_description(out: &mut Vec<u8>, name: &str) {
    block(out, INTERFACE_DESCRIPTION, |out| {
        out.extend(LINKTYPE_ETHERNET.to_le_bytes());
        out.extend([0; 2]);
        out.extend([0; 4]); // snaplen: no limit
        option(out, IF_NAME, name.as_bytes());
        option(out, IF_TSRESOL, &[9]); // 10^-9 s
        option(out, OPT_ENDOFOPT, &[]);
    });
}

fn enhanced_packet(out: &mut Vec<u8>, captured: &Captured, frame: impl FnOnce(&mut Vec<u8>)) {
    block(out, ENHANCED_PACKET, |out| {
        let length = ETHERNET_BYTES + captured.packet.seg.ip_bytes();
        out.extend(u32::from(captured.host).to_le_bytes());
        out.extend(((captured.t.0 >> 32) as u32).to_le_bytes());
        out.extend((captured.t.0 as u32).to_le_bytes());
        out.extend(length.to_le_bytes()); // captured
        out.extend(length.to_le_bytes()); // original
        let start = out.len();
        frame(out);
        debug_assert_eq!(out.len() - start, length as usize);
    });
}

/// One end of a connection, as addresses.
struct End {
    ip: [u8; 4],
    port: u16,
}

impl End {
    /// The ends that a packet comes from and goes to.
    fn of(captured: &Captured) -> (End, End) {
        // the low two bytes count flows from x.x.0.1 on and leave out network and broadcast
        let [high, low] = ((captured.flow % 65_534) as u16 + 1).to_be_bytes();
        let sender = End { ip: [10, 0, high, low], port: SENDER_PORT };
        let port = RECEIVER_PORT + (captured.conn % RECEIVER_PORTS) as u16;
        let receiver = End { ip: [10, 1, high, low], port };
        match captured.packet.forward {
            true => (sender, receiver),
            false => (receiver, sender),
        }
    }

    /// A locally administered address, with the IP address in it.
    fn mac(&self) -> [u8; 6] {
        let [a, b, c, d] = self.ip;
        [0x02, 0, a, b, c, d]
    }
}

/// Ethernet frame without FCS: headers, then zeros as payload.
fn frame(out: &mut Vec<u8>, captured: &Captured, id: u16, window: u16) {
    let (from, to) = End::of(captured);
    let seg = &captured.packet.seg;
    out.extend(to.mac());
    out.extend(from.mac());
    out.extend(ETHERTYPE_IPV4.to_be_bytes());

    let ip = out.len();
    out.extend([0x45, captured.packet.ecn as u8]); // version 4, 5 words; DSCP 0
    out.extend((seg.ip_bytes() as u16).to_be_bytes());
    out.extend(id.to_be_bytes());
    out.extend(IP_DONT_FRAGMENT.to_be_bytes());
    out.extend([IP_TTL, IPPROTO_TCP, 0, 0]);
    out.extend(from.ip);
    out.extend(to.ip);
    let sum = checksum(&[&out[ip..]]);
    out[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());

    let tcp = out.len();
    let own_isn = isn(captured, captured.packet.forward);
    let peer_isn = isn(captured, !captured.packet.forward);
    let ack = if seg.flags.has(Flags::ACK) { peer_isn.wrapping_add(seg.ack as u32) } else { 0 };
    let header_words = (5 + seg.option_bytes() / 4) as u8;
    out.extend(from.port.to_be_bytes());
    out.extend(to.port.to_be_bytes());
    out.extend(own_isn.wrapping_add(seg.seq as u32).to_be_bytes());
    out.extend(ack.to_be_bytes());
    out.extend([header_words << 4, seg.flags.0]);
    out.extend(window.to_be_bytes());
    out.extend([0; 4]); // checksum, urgent pointer
    tcp_options(out, seg, ack);

    // the payload's zeros add nothing to the sum; its length does, through the pseudo header (RFC 9293 §3.1)
    let [high, low] = (20 + seg.option_bytes() as u16 + seg.len as u16).to_be_bytes();
    let sum = checksum(&[&from.ip, &to.ip, &[0, IPPROTO_TCP, high, low], &out[tcp..]]);
    out[tcp + 16..tcp + 18].copy_from_slice(&sum.to_be_bytes());
    out.resize(out.len() + seg.len as usize, 0);
}

/// The options that `Segment::option_bytes` counts; `ack` is the header's ACK number.
fn tcp_options(out: &mut Vec<u8>, seg: &Segment, ack: u32) {
    let syn = seg.flags.has(Flags::SYN);
    if syn {
        out.extend([OPT_MSS, 4]);
        out.extend(seg.syn.mss.to_be_bytes());
    }
    let sack_permitted = syn && seg.syn.sack_permitted;
    if sack_permitted != seg.has_ts {
        out.extend([NOP, NOP]); // together they fill three words, alone they need padding
    }
    if sack_permitted {
        out.extend([OPT_SACK_PERMITTED, 2]);
    }
    if seg.has_ts {
        out.extend([OPT_TIMESTAMPS, 10]);
        out.extend(seg.ts_val.to_be_bytes());
        out.extend(seg.ts_ecr.to_be_bytes());
    }
    if syn {
        out.extend([NOP, OPT_WINDOW_SCALE, 3, seg.syn.wscale]);
    } else if !seg.sack.is_empty() {
        out.extend([NOP, NOP, OPT_SACK, 2 + 8 * seg.sack.len() as u8]);
        for edge in seg.sack.as_slice().iter().flat_map(|block| [block.start, block.end]) {
            out.extend(ack.wrapping_add(edge as u32).to_be_bytes());
        }
    }
}

/// Initial sequence number of one direction: fixed, spread over the 32 bits so that some connections wrap.
fn isn(captured: &Captured, forward: bool) -> u32 {
    let key = u64::from(captured.flow) << 33 | u64::from(captured.conn) << 1 | u64::from(forward);
    (key.wrapping_add(1).wrapping_mul(GOLDEN_RATIO) >> 32) as u32
}

/// The Internet checksum over parts of even length (RFC 1071).
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks_exact(2));
    let sum: u32 = words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// A packet overtaken by more than this many is taken as dropped on the way.
const REORDERING: usize = 256;
/// As many as there are IP ids.
const MAX_IN_FLIGHT: usize = 1 << 16;

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

/// Data comes from this port, ...
const SENDER_PORT: u16 = 5001;
/// ... and goes to one of these, which no Wireshark dissector claims (44321 would be the next).
const RECEIVER_PORT: u16 = 40_000;
const RECEIVER_PORTS: u32 = 4_000;

const MAX_OPTION_BYTES: u32 = 40;
const NOP: u8 = 1;
const OPT_MSS: u8 = 2;
const OPT_WINDOW_SCALE: u8 = 3;
const OPT_SACK_PERMITTED: u8 = 4;
const OPT_SACK: u8 = 5;
const OPT_TIMESTAMPS: u8 = 8;

/// 2^64 over the golden ratio, odd: Fibonacci hashing.
const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
mod tests {
    use ackclock_core::packet::{Ecn, SynOptions};
    use ackclock_core::{SackBlock, SackList, Span};

    use super::*;

    const SYN_OPTIONS: SynOptions = SynOptions { mss: 1460, wscale: 7, sack_permitted: true };

    fn at(us: u64, host: u8, forward: bool, seg: Segment) -> Captured {
        let packet = Packet { seg, flow: 0, conn: 3, forward, bytes: seg.ip_bytes(), ..Packet::default() };
        Captured { t: Time::ZERO + Span::from_us(us), host, flow: 0, conn: 3, packet }
    }

    fn segment(flags: Flags, seq: u64, ack: u64, len: u32) -> Segment {
        Segment {
            seq,
            ack,
            len,
            flags,
            wnd: 65_536,
            has_ts: true,
            ts_val: 7,
            ts_ecr: 5,
            ..Segment::default()
        }
    }

    fn syn() -> Segment {
        let syn = segment(Flags::SYN, 0, 0, 0);
        Segment { syn: SYN_OPTIONS, wnd: 64_240, ts_ecr: 0, ..syn }
    }

    fn sack(blocks: &[(i32, i32)]) -> SackList {
        let mut list = SackList::default();
        blocks.iter().for_each(|&(start, end)| list.push(SackBlock { start, end }));
        list
    }

    fn written(packets: &[Captured]) -> Vec<u8> {
        let mut file = Vec::new();
        write_pcapng(&mut file, packets).expect("a vector takes all");
        file
    }

    fn be16(bytes: &[u8], i: usize) -> u16 {
        u16::from_be_bytes([bytes[i], bytes[i + 1]])
    }

    fn be32(bytes: &[u8], i: usize) -> u32 {
        u32::from(be16(bytes, i)) << 16 | u32::from(be16(bytes, i + 2))
    }

    fn le32(bytes: &[u8], i: usize) -> u32 {
        be32(bytes, i).swap_bytes()
    }

    /// (type, body) of every block; both lengths agree and are whole words.
    fn blocks(mut file: &[u8]) -> Vec<(u32, &[u8])> {
        let mut blocks = Vec::new();
        while !file.is_empty() {
            let length = le32(file, 4) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(le32(file, length - 4) as usize, length);
            blocks.push((le32(file, 0), &file[8..length - 4]));
            file = &file[length..];
        }
        blocks
    }

    struct Frame<'a> {
        interface: u32,
        ns: u64,
        ip: &'a [u8],
        tcp: &'a [u8],
    }

    impl Frame<'_> {
        fn ip_id(&self) -> u16 {
            be16(self.ip, 4)
        }
        fn seq(&self) -> u32 {
            be32(self.tcp, 4)
        }
        fn ack(&self) -> u32 {
            be32(self.tcp, 8)
        }
        fn window(&self) -> u16 {
            be16(self.tcp, 14)
        }
        fn options(&self) -> &[u8] {
            &self.tcp[20..usize::from(self.tcp[12] >> 4) * 4]
        }
    }

    /// Every packet of the file, its lengths and checksums found in order.
    fn frames<'a>(file: &'a [u8]) -> Vec<Frame<'a>> {
        let blocks = blocks(file);
        assert_eq!(blocks[..3].iter().map(|b| b.0).collect::<Vec<_>>(), [0x0A0D_0D0A, 1, 1]);
        let read = |&(kind, body): &(u32, &'a [u8])| {
            assert_eq!(kind, 6);
            let length = le32(body, 12) as usize;
            assert_eq!(le32(body, 16) as usize, length, "nothing is cut off");
            let ns = u64::from(le32(body, 4)) << 32 | u64::from(le32(body, 8));
            let (ethernet, ip_packet) = body[20..20 + length].split_at(14);
            let (ip, tcp) = ip_packet.split_at(20);
            assert_eq!(be16(ethernet, 12), 0x0800);
            assert_eq!(usize::from(be16(ip, 2)), ip_packet.len());
            assert_eq!(ones_complement(&[ip]), 0xffff, "IP checksum");
            let [high, low] = (tcp.len() as u16).to_be_bytes();
            assert_eq!(ones_complement(&[&ip[12..], &[0, 6, high, low], tcp]), 0xffff, "TCP checksum");
            Frame { interface: le32(body, 0), ns, ip, tcp }
        };
        blocks[3..].iter().map(read).collect()
    }

    /// The slow way: carry after every word; an odd last byte counts as the high one.
    fn ones_complement(parts: &[&[u8]]) -> u16 {
        parts.concat().chunks(2).fold(0u16, |sum, word| {
            let word = u16::from_be_bytes([word[0], *word.get(1).unwrap_or(&0)]);
            let (sum, carry) = sum.overflowing_add(word);
            sum + u16::from(carry)
        })
    }

    #[test]
    fn golden_syn() {
        let file = written(&[at(1_500_000, 0, true, syn())]);
        let (kind, body) = blocks(&file)[3];
        assert_eq!(kind, 6);
        #[rustfmt::skip]
        let golden = [
            0, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x2f, 0x68, 0x59, 74, 0, 0, 0, 74, 0, 0, 0,
            0x02, 0, 10, 1, 0, 1, 0x02, 0, 10, 0, 0, 1, 0x08, 0x00,
            0x45, 0, 0, 60, 0, 1, 0x40, 0, 64, 6, 0x26, 0xb9, 10, 0, 0, 1, 10, 1, 0, 1,
            0x13, 0x89, 0x9c, 0x43, 0xf1, 0xbb, 0xcd, 0xcb, 0, 0, 0, 0,
            0xa0, 0x02, 0xfa, 0xf0, 0xc9, 0xb1, 0, 0,
            2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 7, 0, 0, 0, 0, 1, 3, 3, 7,
            0, 0,
        ];
        assert_eq!(body, golden);
    }

    #[test]
    fn header_blocks_name_the_program_and_both_hosts() {
        let file = written(&[]);
        let blocks = blocks(&file);
        assert_eq!(blocks.len(), 3);
        let userappl = concat!("ackclock ", env!("CARGO_PKG_VERSION"));
        assert_eq!(&blocks[0].1[20..20 + userappl.len()], userappl.as_bytes());
        assert_eq!(blocks[1].1[..8], [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(&blocks[1].1[8..20], b"\x02\0\x06\0sender\0\0");
        assert_eq!(&blocks[2].1[8..20], b"\x02\0\x08\0receiver");
        assert_eq!(blocks[2].1[20..], [9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn sequence_numbers_follow_the_handshake() {
        let syn_ack = Segment { flags: Flags::SYN | Flags::ACK, ack: 1, ..syn() };
        let file = written(&[
            at(0, 0, true, syn()),
            at(10, 0, false, syn_ack),
            at(11, 0, true, segment(Flags::ACK, 1, 1, 1448)),
            at(12, 0, true, segment(Flags::ACK, 1 + (1 << 32), 1, 1447)),
        ]);
        let f = frames(&file);
        assert_eq!(f[0].ack(), 0, "no ACK flag, no number");
        assert_eq!(f[1].ack(), f[0].seq().wrapping_add(1));
        assert_eq!(f[2].ack(), f[1].seq().wrapping_add(1));
        assert_eq!(f[2].seq(), f[0].seq().wrapping_add(1));
        assert_eq!(f[3].seq(), f[2].seq(), "offsets wrap at 2^32");
        assert_ne!(f[0].seq(), f[1].seq());
        assert_eq!((f[3].tcp.len(), f[3].ns, f[3].interface), (32 + 1447, 12_000, 0));
        assert_eq!((be16(f[2].tcp, 0), be16(f[2].tcp, 2)), (5001, 40_003));
        assert_eq!((be16(f[1].tcp, 0), be16(f[1].tcp, 2)), (40_003, 5001));
    }

    #[test]
    fn sack_edges_are_absolute_and_a_dsack_lies_below_the_ack() {
        let blocks = sack(&[(-1448, 0), (2896, 5792)]);
        let ack = Segment { sack: blocks, ..segment(Flags::ACK, 1, 1449, 0) };
        let file = written(&[at(0, 1, false, ack)]);
        let f = &frames(&file)[0];
        let options = f.options();
        assert_eq!(options[..4], [1, 1, 8, 10]);
        assert_eq!(options[12..16], [1, 1, 5, 18]);
        let edges = [16, 20, 24, 28].map(|i| be32(options, i).wrapping_sub(f.ack()) as i32);
        assert_eq!(edges, [-1448, 0, 2896, 5792]);
    }

    #[test]
    fn each_side_scales_its_window_by_its_own_shift() {
        let syn_ack = SynOptions { wscale: 2, ..SYN_OPTIONS };
        let syn_ack = Segment { flags: Flags::SYN | Flags::ACK, ack: 1, syn: syn_ack, wnd: 70_000, ..syn() };
        let data = segment(Flags::ACK, 1, 1, 0);
        let file = written(&[
            at(0, 0, true, data), // before any SYN: shift 0
            at(1, 0, true, syn()),
            at(2, 0, false, syn_ack),
            at(3, 0, true, data),
            at(4, 0, false, data),
        ]);
        let windows: Vec<_> = frames(&file).iter().map(Frame::window).collect();
        assert_eq!(windows, [65_535, 64_240, 65_535, 512, 16_384]);
    }

    #[test]
    fn every_mix_of_options_takes_the_bytes_that_the_segment_counts() {
        for mix in 0..16 {
            let flags = if mix & 1 != 0 { Flags::SYN } else { Flags::ACK };
            let sack_permitted = mix & 4 != 0;
            let seg = Segment {
                has_ts: mix & 2 != 0,
                syn: SynOptions { sack_permitted, ..SYN_OPTIONS },
                sack: if mix & 8 != 0 { sack(&[(1, 2), (3, 4), (5, 6)]) } else { SackList::default() },
                ..segment(flags, 0, 0, 1)
            };
            let file = written(&[at(0, 0, true, seg)]);
            let f = &frames(&file)[0];
            assert_eq!(f.options().len() as u32, seg.option_bytes(), "{seg:?}");
            assert_eq!(f.ip.len() + f.tcp.len(), seg.ip_bytes() as usize);
            let mut kinds = Vec::new();
            let mut rest = f.options();
            while let Some(&kind) = rest.first() {
                let length = if kind == NOP { 1 } else { usize::from(rest[1]) };
                kinds.extend((kind != NOP).then_some(kind));
                rest = &rest[length..];
            }
            let expected = match (seg.flags == Flags::SYN, seg.has_ts, sack_permitted, seg.sack.is_empty()) {
                (true, true, true, _) => vec![2, 4, 8, 3],
                (true, true, false, _) => vec![2, 8, 3],
                (true, false, true, _) => vec![2, 4, 3],
                (true, false, false, _) => vec![2, 3],
                (false, true, _, true) => vec![8],
                (false, true, _, false) => vec![8, 5],
                (false, false, _, true) => vec![],
                (false, false, _, false) => vec![5],
            };
            assert_eq!(kinds, expected);
        }
    }

    #[test]
    fn a_packet_has_one_ip_id_at_both_hosts() {
        let data = |n: u64| segment(Flags::ACK, 1 + 100 * n, 1, 100);
        let mut marked = at(20, 1, true, data(2));
        marked.packet.ecn = Ecn::Ce;
        let file = written(&[
            at(21, 1, true, data(0)), // overtaken, and handed over out of order
            at(0, 0, true, data(0)),
            at(1, 0, true, data(1)), // dropped on the way
            at(2, 0, true, data(2)),
            marked,
        ]);
        let f = frames(&file);
        let seen: Vec<_> = f.iter().map(|f| (f.interface, f.ip_id(), f.ip[1])).collect();
        assert_eq!(seen, [(0, 1, 0), (0, 2, 0), (0, 3, 0), (1, 3, 3), (1, 1, 0)]);
    }

    #[test]
    fn impossible_packets_are_refused() {
        let four = sack(&[(1, 2), (3, 4), (5, 6), (7, 8)]);
        let options = Segment { sack: four, ..segment(Flags::ACK, 1, 1, 0) };
        let long = segment(Flags::ACK, 1, 1, 65_500);
        for refused in [at(0, 2, true, syn()), at(0, 0, true, options), at(0, 0, true, long)] {
            let error = write_pcapng(&mut Vec::new(), &[refused]).expect_err("refused");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
        }
    }
}
