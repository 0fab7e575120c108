use ackclock_core::datagram::{Data, Datagram};
use ackclock_core::packet::SynOptions;
use ackclock_core::{SackBlock, SackList, Span};

use super::*;

const SYN_OPTIONS: SynOptions = SynOptions { mss: 1460, wscale: 7, sack_permitted: true };

fn at(us: u64, host: u8, forward: bool, seg: Segment) -> Captured {
    let header = Header::Tcp(seg);
    let packet = Packet { header, flow: 0, conn: 3, forward, bytes: seg.ip_bytes(), ..Packet::default() };
    Captured { t: Time::ZERO + Span::from_us(us), host, id: 1, flow: 0, conn: 3, packet }
}

fn segment(flags: Flags, seq: u64, ack: u64, len: u32) -> Segment {
    Segment { seq, ack, len, flags, wnd: 65_536, has_ts: true, ts_val: 7, ts_ecr: 5, ..Segment::default() }
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
    write_pcapng(&mut file, packets, None).expect("a vector takes all");
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

/// Type and body of every block. Both length fields must be identical and a multiple of four.
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

/// Return every packet of the file after checking its lengths and checksums.
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
        assert_eq!(ones_complement(&[&ip[12..], &[0, ip[9], high, low], tcp]), 0xffff, "checksum");
        Frame { interface: le32(body, 0), ns, ip, tcp }
    };
    blocks[3..].iter().map(read).collect()
}

/// Reference checksum: carry after every word; an odd last byte is the high byte of its word.
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
        at(0, 0, true, data), // before any SYN: scale 0
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
fn datagrams_have_a_udp_header_and_their_length() {
    let datagram = |len| {
        let data = Data { number: 7, sent: Time(3), len, ..Data::default() };
        let header = Header::Datagram(Datagram::Data(data));
        let packet = Packet { header, conn: 3, forward: true, bytes: header.ip_bytes(), ..Packet::default() };
        Captured { t: Time(5), host: 0, id: len as u16, flow: 0, conn: 3, packet }
    };
    let file = written(&[datagram(172), datagram(1)]);
    let f = frames(&file);
    assert_eq!((f[0].ip.len() + f[0].tcp.len(), f[0].ip[9]), (200, 17));
    assert_eq!((be16(f[0].tcp, 0), be16(f[0].tcp, 2), be16(f[0].tcp, 4)), (5001, 40_003, 180));
    assert_eq!((f[0].ip_id(), f[1].ip_id(), f[1].tcp.len()), (172, 1, 9));
    let huge = write_pcapng(&mut Vec::new(), &[datagram(65_508)], None).expect_err("refused");
    assert_eq!(huge.kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn impossible_packets_are_refused() {
    let four = sack(&[(1, 2), (3, 4), (5, 6), (7, 8)]);
    let options = Segment { sack: four, ..segment(Flags::ACK, 1, 1, 0) };
    let long = segment(Flags::ACK, 1, 1, 65_500);
    for refused in [at(0, 2, true, syn()), at(0, 0, true, options), at(0, 0, true, long)] {
        let error = write_pcapng(&mut Vec::new(), &[refused], None).expect_err("refused");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
    }
}

#[test]
fn a_snap_length_keeps_the_beginning_of_each_frame_and_its_true_length() {
    let packets = [at(0, 0, true, syn()), at(10, 0, true, segment(Flags::ACK, 1, 1, 1448))];
    let whole = written(&packets);
    let mut file = Vec::new();
    write_pcapng(&mut file, &packets, Some(75)).expect("a vector takes all");
    let (cut, full) = (blocks(&file), blocks(&whole));
    assert_eq!(le32(cut[1].1, 4), 75, "the interface says so");
    for ((_, body), (_, all)) in cut[3..].iter().zip(&full[3..]) {
        let (kept, length) = (le32(body, 12) as usize, le32(body, 16));
        assert_eq!(kept, 75.min(length as usize));
        assert_eq!(length, le32(all, 16), "as long as it was on the wire");
        assert_eq!(body[20..20 + kept], all[20..20 + kept]);
        assert_eq!(body.len(), 20 + kept.next_multiple_of(4));
    }
    assert_eq!(cut.len(), full.len());
}
