//! Handwritten captures with known results, and damaged ones, where any result is accepted.

use ackclock_capture::counts::Kind;
use ackclock_capture::packet::flags::{ACK, FIN, RST, SYN};
use ackclock_capture::{read, Connections, Error, Place};
use proptest::prelude::*;

/// Segment to write: sender, time and content.
#[derive(Clone, Default)]
struct Seg {
    server: bool,
    us: u64,
    seq: u32,
    ack: u32,
    flags: u16,
    window: u16,
    payload: u32,
    ts: Option<(u32, u32)>,
    sacks: Vec<(u32, u32)>,
    syn: bool,
}

const MSS: u16 = 1000;

fn options(seg: &Seg) -> Vec<u8> {
    let mut out = Vec::new();
    if seg.syn {
        out.extend([2, 4]);
        out.extend(MSS.to_be_bytes());
        out.extend([4, 2, 3, 3, 7]);
        out.push(1);
    }
    if let Some((value, echo)) = seg.ts {
        out.extend([1, 1, 8, 10]);
        out.extend(value.to_be_bytes());
        out.extend(echo.to_be_bytes());
    }
    if !seg.sacks.is_empty() {
        out.extend([1, 1, 5, 2 + 8 * seg.sacks.len() as u8]);
        for &(left, right) in &seg.sacks {
            out.extend(left.to_be_bytes());
            out.extend(right.to_be_bytes());
        }
    }
    while out.len() % 4 != 0 {
        out.push(1);
    }
    out
}

/// Build the IP and TCP headers of a segment. The payload is counted in the lengths but not written.
fn packet(seg: &Seg) -> Vec<u8> {
    let options = options(seg);
    let header = 20 + options.len();
    let total = 20 + header + seg.payload as usize;
    let (from, to) = if seg.server { ([10, 0, 0, 2], [10, 0, 0, 1]) } else { ([10, 0, 0, 1], [10, 0, 0, 2]) };
    let (sport, dport) = if seg.server { (80u16, 5000u16) } else { (5000, 80) };
    let mut out = vec![0x45, 0];
    out.extend((total as u16).to_be_bytes());
    out.extend([0, 0, 0, 0, 64, 6, 0, 0]);
    out.extend(from);
    out.extend(to);
    out.extend(sport.to_be_bytes());
    out.extend(dport.to_be_bytes());
    out.extend(seg.seq.to_be_bytes());
    out.extend(seg.ack.to_be_bytes());
    out.extend(((header as u16 / 4) << 12 | seg.flags).to_be_bytes());
    out.extend(seg.window.to_be_bytes());
    out.extend([0, 0, 0, 0]);
    out.extend(options);
    out
}

fn pcap(segs: &[Seg]) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65535, 101] {
        out.extend(word.to_le_bytes());
    }
    for seg in segs {
        let bytes = packet(seg);
        let wire = bytes.len() as u32 + seg.payload;
        for word in [(seg.us / 1_000_000) as u32, (seg.us % 1_000_000) as u32, bytes.len() as u32, wire] {
            out.extend(word.to_le_bytes());
        }
        out.extend(bytes);
    }
    out
}

/// Write the segments as pcapng, big-endian, in ns, with an offset of one second.
fn pcapng(segs: &[Seg]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut block = |kind: u32, body: &[u8]| {
        let length = 12 + body.len().next_multiple_of(4) as u32;
        out.extend(kind.to_be_bytes());
        out.extend(length.to_be_bytes());
        out.extend(body);
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend(length.to_be_bytes());
    };
    let mut section = 0x1a2b_3c4du32.to_be_bytes().to_vec();
    section.extend([0, 1, 0, 0]);
    section.extend([0xff; 8]);
    block(0x0a0d_0d0a, &section);
    let mut interface = vec![0, 101, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 9, 0, 0, 0, 0, 14, 0, 8];
    interface.extend(1i64.to_be_bytes());
    interface.extend([0; 4]);
    block(1, &interface);
    block(0xbad, &[1, 2, 3, 4]); // an unknown block type
    for seg in segs {
        let bytes = packet(seg);
        let ns = (seg.us + 1_000_000_000_000) * 1000;
        let wire = bytes.len() as u32 + seg.payload;
        let mut body = Vec::new();
        for word in [0, (ns >> 32) as u32, ns as u32, bytes.len() as u32, wire] {
            body.extend(word.to_be_bytes());
        }
        body.extend(bytes);
        block(6, &body);
    }
    let mut statistics = vec![0; 12];
    statistics.extend([0, 5, 0, 8, 0, 0, 0, 0, 0, 0, 0, 3]);
    block(5, &statistics);
    out
}

fn found(bytes: &[u8]) -> Connections {
    read(|| Ok(bytes), Some(0), 1000, |_| true).expect("a capture")
}

/// A connection with 1,000-byte segments and timestamps in ms. The SYN (offset 0) has sequence number 99 from the
/// client and 4,294,967,290 from the server.
struct Talk {
    segs: Vec<Seg>,
}

const SERVER: u32 = 4_294_967_290;

impl Talk {
    fn new() -> Self {
        let syn = Seg { syn: true, window: 60000, ..Seg::default() };
        let segs = vec![
            Seg { us: 0, seq: 99, flags: SYN, ts: Some((0, 0)), ..syn.clone() },
            Seg {
                server: true,
                us: 20_000,
                seq: SERVER,
                ack: 100,
                flags: SYN | ACK,
                ts: Some((20, 0)),
                ..syn
            },
            Seg {
                us: 20_100,
                seq: 100,
                ack: SERVER.wrapping_add(1),
                flags: ACK,
                window: 500,
                ts: Some((20, 20)),
                ..Seg::default()
            },
        ];
        Talk { segs }
    }

    /// Send segment `no` from the client at a time in ms.
    fn data(mut self, ms: u64, no: u32) -> Self {
        self.segs.push(Seg {
            us: ms * 1000,
            seq: 100 + no * 1000,
            ack: SERVER.wrapping_add(1),
            flags: ACK,
            window: 500,
            payload: 1000,
            ts: Some((ms as u32, 20)),
            ..Seg::default()
        });
        self
    }

    /// Acknowledge everything below segment `no`, and the segments in `blocks`, from the server.
    fn ack(mut self, ms: u64, no: u32, echo: u32, blocks: &[(u32, u32)]) -> Self {
        let at = |no: u32| 100 + no * 1000;
        self.segs.push(Seg {
            server: true,
            us: ms * 1000,
            seq: SERVER.wrapping_add(1),
            ack: at(no),
            flags: ACK,
            window: 500,
            ts: Some((ms as u32, echo)),
            sacks: blocks.iter().map(|&(l, r)| (at(l), at(r))).collect(),
            ..Seg::default()
        });
        self
    }
}

#[test]
fn a_loss_that_is_repaired() {
    let talk = Talk::new().data(21, 0).data(21, 1).data(21, 2).data(21, 3);
    let talk = talk.ack(41, 1, 21, &[]).ack(41, 1, 21, &[(2, 3)]).ack(41, 1, 21, &[(2, 4)]);
    let talk = talk.data(42, 1).ack(62, 4, 42, &[]);
    for bytes in [pcap(&talk.segs), pcapng(&talk.segs)] {
        let all = found(&bytes);
        assert_eq!(all.all.len(), 1);
        let one = &all.all[0];
        assert_eq!(one.place(), Place::Client);
        assert_eq!(one.handshake_rtt_ns(), Some(20_100_000));
        let counts = &one.ways[0].counts;
        assert_eq!((counts.segments, counts.bytes), (5, 4000));
        assert_eq!((counts.retransmitted, counts.spurious, counts.reordered), (1, 0, 0));
        assert_eq!(counts.duplicate_acks, 2);
        assert_eq!((counts.rtt_min_ns, counts.rtt_max_ns), (20_000_000, 20_000_000));
        assert_eq!((counts.first_flight, counts.most_in_flight), (4000, 4000));
        assert_eq!(counts.window, Some((500 << 7, 500 << 7)));
        assert_eq!(one.ways[1].counts.bytes, 0);
        let kinds: Vec<Kind> = all.rows.iter().map(|row| row.kind).collect();
        assert_eq!(kinds[..3], [Kind::Syn, Kind::Syn, Kind::Ack]);
        assert_eq!(kinds[kinds.len() - 2..], [Kind::Retransmission, Kind::Ack]);
    }
    assert_eq!(found(&pcapng(&talk.segs)).dropped, 3);
    assert_eq!(found(&pcapng(&talk.segs)).all[0].span_ns.0, 1_000_000_000_000_000 + 1_000_000_000);
}

#[test]
fn sent_again_for_nothing_as_a_dsack_says() {
    let talk =
        Talk::new().data(21, 0).data(21, 1).data(400, 0).ack(421, 2, 21, &[]).ack(440, 2, 21, &[(0, 1)]);
    let counts = found(&pcap(&talk.segs)).all[0].ways[0].counts;
    assert_eq!((counts.retransmitted, counts.spurious, counts.duplicated), (1, 1, 0));
}

#[test]
fn sent_again_for_nothing_as_an_echo_says() {
    let talk = Talk::new().data(21, 0).data(21, 1).data(400, 0).ack(421, 2, 21, &[]);
    let counts = found(&pcap(&talk.segs)).all[0].ways[0].counts;
    assert_eq!((counts.retransmitted, counts.spurious), (1, 1));
    let talk = Talk::new().data(21, 0).data(21, 1).data(400, 0).ack(421, 2, 400, &[]);
    let counts = found(&pcap(&talk.segs)).all[0].ways[0].counts;
    assert_eq!((counts.retransmitted, counts.spurious), (1, 0));
}

#[test]
fn sent_again_although_acknowledged_and_once_more_by_a_dsack() {
    let talk = Talk::new().data(21, 0).ack(41, 1, 21, &[]).data(50, 0).ack(70, 1, 21, &[(0, 1)]);
    let all = found(&pcap(&talk.segs));
    let counts = all.all[0].ways[0].counts;
    assert_eq!((counts.retransmitted, counts.spurious, counts.duplicated), (1, 1, 0));
    assert!(all.rows.iter().any(|row| row.kind == Kind::Needless));
    assert!(all.rows.iter().any(|row| row.kind == Kind::Dsack));
}

#[test]
fn the_network_makes_two_of_one() {
    let talk = Talk::new().data(21, 0).ack(41, 1, 21, &[]).ack(42, 1, 21, &[(0, 1)]);
    let counts = found(&pcap(&talk.segs)).all[0].ways[0].counts;
    assert_eq!((counts.retransmitted, counts.duplicated), (0, 1));
}

#[test]
fn overtaken_on_the_way() {
    // captured at the sender: SACK reported the segment later than its successors
    let talk = Talk::new().data(21, 0).data(21, 1).data(21, 2);
    let talk = talk.ack(41, 1, 21, &[]).ack(41, 1, 21, &[(2, 3)]).ack(42, 3, 21, &[]);
    let counts = found(&pcap(&talk.segs)).all[0].ways[0].counts;
    assert_eq!((counts.retransmitted, counts.reordered), (0, 1));
    // captured at the receiver: the timestamp is older than that of earlier arrivals
    let late = Talk::new().data(30, 0).data(33, 2);
    let mut segs = late.data(60, 1).segs;
    segs.last_mut().expect("a segment").ts = Some((31, 20));
    let counts = found(&pcap(&segs)).all[0].ways[0].counts;
    assert_eq!((counts.retransmitted, counts.reordered, counts.bytes), (0, 1, 3000));
    // lost before the capture point: the timestamp is newer
    let counts = found(&pcap(&Talk::new().data(30, 0).data(33, 2).data(60, 1).segs)).all[0].ways[0].counts;
    assert_eq!((counts.retransmitted, counts.reordered, counts.bytes), (1, 0, 3000));
}

#[test]
fn the_capture_has_missed_some() {
    let talk = Talk::new().data(21, 0).data(21, 2).ack(41, 3, 21, &[]).ack(50, 5, 21, &[]);
    let counts = found(&pcap(&talk.segs)).all[0].ways[0].counts;
    assert_eq!((counts.bytes, counts.unseen_bytes, counts.retransmitted), (2000, 3000, 0));
}

#[test]
fn one_frame_of_the_sending_host_is_several_segments() {
    let mut talk = Talk::new().data(21, 0);
    talk.segs.last_mut().expect("a segment").payload = 10 * 988;
    let counts = found(&pcap(&talk.segs)).all[0].ways[0].counts;
    assert_eq!(counts.segments, 10);
}

#[test]
fn the_window_shuts_and_a_probe_is_no_retransmission() {
    let mut talk = Talk::new().data(21, 0).ack(41, 1, 21, &[]);
    talk.segs.last_mut().expect("a segment").window = 0;
    let mut talk = talk.data(300, 0);
    let probe = talk.segs.last_mut().expect("a segment");
    (probe.seq, probe.payload) = (100 + 1000 - 1, 0);
    let talk = talk.ack(320, 1, 21, &[]);
    let all = found(&pcap(&talk.segs));
    let counts = all.all[0].ways[0].counts;
    assert_eq!((counts.zero_windows, counts.retransmitted), (1, 0));
    assert_eq!(all.rows[all.rows.len() - 2].kind, Kind::Probe);
    assert_eq!(all.rows[all.rows.len() - 1].kind, Kind::Window);
}

#[test]
fn the_same_ports_again_are_another_connection() {
    let mut first = Talk::new().data(21, 0).segs;
    first.push(Seg { us: 50_000, seq: 1100, flags: RST, ..Seg::default() });
    let mut second = Talk::new().data(21, 0).segs;
    for seg in &mut second {
        seg.us += 100_000;
        if seg.server {
            seg.ack += 5000;
        } else {
            seg.seq += 5000;
        }
    }
    let all = found(&pcap(&[first, second].concat()));
    assert_eq!(all.all.len(), 2);
    assert!(all.all[0].reset && !all.all[1].reset);
    assert_eq!(all.all.iter().map(|one| one.ways[0].counts.bytes).collect::<Vec<_>>(), [1000, 1000]);
}

#[test]
fn without_a_handshake() {
    let segs: Vec<Seg> = Talk::new().data(21, 0).data(21, 1).ack(41, 2, 21, &[]).segs.split_off(3);
    let all = found(&pcap(&segs));
    let one = &all.all[0];
    assert_eq!((one.place(), one.ways[0].counts.bytes), (Place::Unknown, 2000));
    assert_eq!(one.ways[0].counts.rtts, 1);
}

#[test]
fn fin_is_no_data() {
    let mut segs = Talk::new().data(21, 0).segs;
    segs.push(Seg { us: 30_000, seq: 1100, ack: SERVER.wrapping_add(1), flags: FIN | ACK, ..Seg::default() });
    let all = found(&pcap(&segs));
    assert_eq!(all.all[0].ways[0].counts.bytes, 1000);
}

#[test]
fn what_is_no_capture_is_refused_in_a_line() {
    for (bytes, says) in [
        (&b""[..], "an empty file"),
        (b"PK\x03\x04", "begins with 0x504b0304"),
        (b"\xd4\xc3\xb2\xa1\x02\x00", "ends within its header"),
        (b"\x0a\x0d\x0d\x0a\x1c\x00\x00\x00\x00\x00\x00\x00", "byte-order magic"),
    ] {
        let error = read(|| Ok(bytes), None, 0, |_| true).expect_err("refused").to_string();
        assert!(error.contains(says), "{error}");
    }
    let mut long = pcap(&Talk::new().segs);
    long[24 + 8..24 + 12].copy_from_slice(&300_000u32.to_le_bytes());
    let error = read(|| Ok(&long[..]), None, 0, |_| true).expect_err("refused").to_string();
    assert_eq!(error, "frame 1: found 300000 captured bytes; allowed: at most 262144");
}

#[test]
fn a_capture_that_was_killed_holds_what_it_holds() {
    let whole = pcap(&Talk::new().data(21, 0).segs);
    let all = found(&whole[..whole.len() - 7]);
    assert!(all.cut);
    assert_eq!(all.frames, 3);
}

#[test]
fn who_asks_may_stop() {
    let whole = pcap(&Talk::new().segs);
    assert!(matches!(read(|| Ok(&whole[..]), None, 0, |_| false), Err(Error::Stopped)));
}

proptest! {
    /// Any bytes after a valid header are read or rejected without a panic.
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..600), ng in any::<bool>()) {
        let mut file = if ng { pcapng(&Talk::new().segs) } else { pcap(&Talk::new().segs) };
        file.truncate(if ng { 28 + 44 } else { 24 });
        file.extend(&bytes);
        let _ = read(|| Ok(&file[..]), Some(0), 100, |_| true);
    }

    /// Captures with a few changed bytes, including headers.
    #[test]
    fn changed_bytes(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12), ng in any::<bool>()) {
        let talk = Talk::new().data(21, 0).data(21, 1).data(21, 3).ack(41, 1, 21, &[(3, 4)]).data(60, 1).ack(80, 4, 60, &[(1, 2)]);
        let mut file = if ng { pcapng(&talk.segs) } else { pcap(&talk.segs) };
        for (at, value) in changes {
            let at = at.index(file.len());
            file[at] = value;
        }
        let _ = read(|| Ok(&file[..]), Some(0), 100, |_| true);
    }

    /// Segments in any order with any sequence numbers: counts stay within their bounds.
    #[test]
    fn any_talk(steps in proptest::collection::vec((any::<bool>(), 0u64..100, 0u32..40, 0u32..40, any::<bool>()), 0..80)) {
        let mut talk = Talk::new();
        let mut ms = 21;
        for (data, wait, no, other, block) in steps {
            ms += wait;
            let blocks = if block { vec![(other, other + 3)] } else { vec![] };
            talk = if data { talk.data(ms, no) } else { talk.ack(ms, no, ms as u32, &blocks) };
        }
        for seg in &mut talk.segs {
            seg.sacks.truncate(3);
        }
        let all = found(&pcap(&talk.segs));
        for way in &all.all[0].ways {
            let counts = way.counts;
            prop_assert!(counts.spurious <= counts.retransmitted, "{:?}", counts);
            prop_assert!(counts.bytes <= 1000 * counts.segments as i64);
            prop_assert!(counts.bytes + counts.unseen_bytes <= 43_000, "{:?}", counts);
        }
    }
}

/// Frames of all link layers, with bytes drawn near values that begin a layer, are decoded without a panic.
/// `ACKCLOCK_FRAMES` sets the number of frames.
#[test]
fn frames_of_any_bytes_have_an_answer() {
    use ackclock_capture::packet::{decode, Content};
    const LINKS: [u16; 19] =
        [0, 1, 1, 9, 12, 50, 51, 101, 104, 105, 108, 113, 127, 166, 228, 229, 239, 276, 129];
    const WORDS: [&[u8]; 18] = [
        &[8, 0],
        &[0x86, 0xdd],
        &[0x81, 0],
        &[0x88, 0x64],
        &[0x88, 0x47],
        &[0x65, 0x58],
        &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0],
        &[0x45, 0, 0, 0x60, 0, 1, 0, 0, 64, 47],
        &[0x45, 0, 0, 0x60, 0, 1, 0, 0, 64, 17],
        &[0x45, 0, 0, 0x60, 0, 1, 0, 0, 64, 4],
        &[0x45, 0, 0, 0x60, 0, 1, 0, 0, 64, 6],
        &[0x60, 0, 0, 0, 0, 0x40, 41, 64],
        &[0xff, 3, 0, 0x21],
        &[0x12, 0xb5, 0x12, 0xb5, 0, 60, 0, 0, 8],
        &[0x17, 0xc1, 0x17, 0xc1, 0, 60, 0, 0, 0x3f],
        &[0x08, 0x68, 0x08, 0x68, 0, 60, 0, 0, 0x34, 0xff],
        &[0, 0x60, 0, 9],
        &[0x50, 0x10, 0xff, 0xff],
    ];
    let count = std::env::var("ACKCLOCK_FRAMES").ok().and_then(|n| n.parse().ok()).unwrap_or(50_000u64);
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut draw = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut segments = 0;
    for _ in 0..count {
        let mut frame = Vec::with_capacity(160);
        if draw() % 2 == 0 {
            frame.extend([0; 12]);
        }
        while frame.len() < (draw() % 140) as usize {
            if draw() % 4 == 0 {
                frame.extend(draw().to_le_bytes().iter().take((draw() % 9) as usize));
            } else {
                frame.extend(WORDS[(draw() % WORDS.len() as u64) as usize]);
            }
        }
        let link = LINKS[(draw() % LINKS.len() as u64) as usize];
        let on_wire = frame.len() as u32 + (draw() % 2000) as u32;
        segments += u64::from(matches!(decode(link, &frame, on_wire), Content::Tcp(_)));
    }
    assert!(segments > count / 100_000, "{segments} segments of {count} frames");
}
