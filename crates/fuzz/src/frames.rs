//! Captures with valid layers: a conversation between two hosts whose frames have random link layers and tunnels; some are
//! truncated or have one byte changed. Purely random bytes rarely get past the first parser.

use crate::{capture, Draw};

const SYN: u8 = 2;
const ACK: u8 = 16;
const LINKS: [u16; 14] = [1, 1, 1, 101, 113, 276, 0, 12, 9, 51, 104, 105, 127, 239];
const PAYLOADS: [usize; 8] = [0, 0, 1, 100, 512, 1448, 2896, 14_480];
const ETHERNET: [u8; 2] = [0x65, 0x58];
const IPV4: [u8; 2] = [0x08, 0x00];

/// Read the capture drawn from the bytes. Return whether it is valid.
///
/// # Panics
/// Panics if counts are inconsistent.
pub fn play(data: &[u8]) -> bool {
    capture::play(&file(data))
}

/// Return a capture in pcap format, drawn from the bytes. All frames have the same link layer.
pub fn file(data: &[u8]) -> Vec<u8> {
    let mut draw = Draw::new(data);
    let link = *draw.one(&LINKS);
    let most = if draw.flag() { 262_144 } else { draw.word() as usize };
    let nanoseconds = draw.flag();
    let mut file = Vec::new();
    for word in
        [if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 }, 0x0004_0002, 0, 0, most as u32, link.into()]
    {
        file.extend(u32::to_le_bytes(word));
    }
    let mut talk = Talk::default();
    let mut clock: u32 = 1;
    while !draw.is_empty() {
        let mut packet = talk.packet(&mut draw);
        for _ in 0..draw.byte() % 4 {
            packet = tunnel(&mut draw, packet);
        }
        let mut frame = framed(link, &mut draw, packet);
        if draw.byte() < 16 && !frame.is_empty() {
            let at = draw.word() as usize % frame.len();
            frame[at] = draw.byte();
        }
        clock = clock.wrapping_add(draw.number(1000)); // may also go back by an hour or more
        let kept = frame.len().min(most);
        for word in [clock >> 20, clock & 0xf_ffff, kept as u32, frame.len() as u32] {
            file.extend(u32::to_le_bytes(word));
        }
        file.extend(&frame[..kept]);
        if draw.byte() == 0 {
            let again = file[file.len() - kept - 16..].to_vec(); // a duplicate of the frame
            file.extend(again);
        }
    }
    file
}

/// Next sequence numbers of two hosts.
#[derive(Default)]
struct Talk {
    next: [u32; 2],
}

impl Talk {
    fn packet(&mut self, draw: &mut Draw) -> Vec<u8> {
        let side = draw.flag() as usize;
        let six = draw.byte() == 0;
        let payload = *draw.one(&PAYLOADS);
        let flags = *draw.one(&[ACK, ACK, ACK, ACK | 8, SYN, SYN | ACK, ACK | 1, 4, ACK | 64, 0, 255]);
        let back = draw.number(1448) % 100_000;
        let seq = if draw.flag() { self.next[side] } else { self.next[side].wrapping_sub(back) };
        let ack = self.next[1 - side].wrapping_sub(if draw.flag() { 0 } else { draw.number(1448) });
        self.next[side] = seq.wrapping_add(payload as u32 + (flags & (SYN | 1) != 0) as u32);
        let options = options(draw, flags, ack);
        let ports = [draw.byte() % 3, 80];
        let (from, to) = (ports[side], ports[1 - side]);
        let mut tcp = vec![4, from, 4, to];
        tcp.extend(seq.to_be_bytes());
        tcp.extend(ack.to_be_bytes());
        tcp.extend([((5 + options.len() / 4) as u8) << 4, flags]);
        tcp.extend(draw.word().to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(options);
        tcp.resize(tcp.len() + payload, 0);
        ip(draw, 6, six, &tcp)
    }
}

/// Return the padded options of a segment with these flags.
fn options(draw: &mut Draw, flags: u8, ack: u32) -> Vec<u8> {
    let mut options = Vec::new();
    if flags & SYN != 0 {
        options.extend([2, 4, 5, 0xb4, 3, 3, draw.byte() % 16, 4, 2]);
    }
    if draw.flag() {
        options.extend([8, 10]);
        options.extend(draw.number(1).to_be_bytes());
        options.extend(draw.number(1).to_be_bytes());
    }
    let blocks = draw.byte() % 6;
    if flags & SYN == 0 && (1..=3).contains(&blocks) {
        options.extend([5, 2 + 8 * blocks]);
        for _ in 0..blocks {
            let start = ack.wrapping_add(draw.number(1448));
            options.extend(start.to_be_bytes());
            options.extend(start.wrapping_add(draw.number(1448)).to_be_bytes());
        }
    }
    options.truncate(40);
    options.resize(options.len().next_multiple_of(4), 1);
    options
}

fn ip(draw: &mut Draw, protocol: u8, six: bool, payload: &[u8]) -> Vec<u8> {
    let ecn = draw.byte() & 3;
    if six {
        let mut packet = vec![0x60, ecn << 4, 0, 0];
        packet.extend((payload.len() as u16).to_be_bytes());
        packet.extend([protocol, 64]);
        packet.extend([1; 32]);
        packet.extend(payload);
        return packet;
    }
    let mut packet = vec![0x45, ecn];
    packet.extend((20 + payload.len() as u16).to_be_bytes());
    packet.extend(draw.word().to_be_bytes());
    packet.extend(if draw.byte() == 0 { draw.word().to_be_bytes() } else { [0x40, 0] });
    packet.extend([60 + draw.byte() % 5, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(payload);
    packet
}

/// Encapsulate a packet in a tunnel over IP.
fn tunnel(draw: &mut Draw, inner: Vec<u8>) -> Vec<u8> {
    let version = if inner[0] >> 4 == 4 { IPV4 } else { [0x86, 0xdd] };
    let (protocol, head): (u8, Vec<u8>) = match draw.byte() % 6 {
        0 => (if version == IPV4 { 4 } else { 41 }, Vec::new()),
        1 => {
            let parts = draw.byte() & 0xb0;
            let length = 4 * (parts.count_ones() as usize);
            (47, [vec![parts, 0], version.to_vec(), vec![0; length]].concat())
        }
        2 => (47, [vec![0x30, 1, 0x88, 0x0b], vec![0; 8], vec![0, 0x21]].concat()),
        3 => (17, [udp(4789), vec![8, 0, 0, 0, 0, 0, 1, 0], ethernet(version)].concat()),
        4 => {
            let words = draw.byte() % 4;
            let options = vec![0; 4 * words as usize];
            (17, [udp(6081), vec![words, 0], version.to_vec(), vec![0, 0, 1, 0], options].concat())
        }
        _ => (17, [udp(2152), vec![0x30, 0xff, 0, 0, 0, 0, 0, 1]].concat()),
    };
    let six = draw.byte() == 0;
    ip(draw, protocol, six, &[head, inner].concat())
}

fn udp(port: u16) -> Vec<u8> {
    [vec![0x30, 0x39], port.to_be_bytes().to_vec(), vec![0; 4]].concat()
}

fn ethernet(kind: [u8; 2]) -> Vec<u8> {
    [vec![2; 12], kind.to_vec()].concat()
}

/// Put a packet into a frame of a link layer, with VLAN tags and labels if the layer has a type field.
fn framed(link: u16, draw: &mut Draw, packet: Vec<u8>) -> Vec<u8> {
    let version = if packet[0] >> 4 == 4 { IPV4 } else { [0x86, 0xdd] };
    let (kind, tags) = tagged(draw, version);
    let ppp = [vec![0xff, 3, 0], vec![if version == IPV4 { 0x21 } else { 0x57 }]].concat();
    let head = match link {
        1 => [ethernet(kind), tags].concat(),
        113 => [vec![0; 14], kind.to_vec(), tags].concat(),
        276 => [kind.to_vec(), vec![0; 18], tags].concat(),
        0 => vec![if version == IPV4 { 2 } else { 30 }, 0, 0, 0],
        9 => ppp,
        51 => [vec![0x11, 0, 0, 1, 0, 0], ppp[2..].to_vec()].concat(),
        104 => [vec![0x0f, 0], kind.to_vec(), tags].concat(),
        105 => wifi(version),
        127 => [vec![0, 0, 8, 0, 0, 0, 0, 0], wifi(version)].concat(),
        239 => {
            let length = (packet.len() as u16 + 4).to_le_bytes();
            vec![2, 0, 0, 0, 8, 0, 1, 0, 0, 0, 0, 0, length[0], length[1], 9, 0]
        }
        _ => Vec::new(),
    };
    [head, packet].concat()
}

fn wifi(kind: [u8; 2]) -> Vec<u8> {
    [vec![8, 1], vec![0; 22], vec![0xaa, 0xaa, 3, 0, 0, 0], kind.to_vec()].concat()
}

/// Return the type field of a frame, and the bytes between it and the packet.
fn tagged(draw: &mut Draw, version: [u8; 2]) -> ([u8; 2], Vec<u8>) {
    match draw.byte() % 12 {
        0 => ([0x81, 0], [vec![0, 7], version.to_vec()].concat()),
        1 => ([0x88, 0xa8], [vec![0, 7, 0x81, 0, 0, 8], version.to_vec()].concat()),
        2 => ([0x88, 0x47], vec![0, 1, 0, 64, 0, 1, 1, 64]),
        3 => ([0x88, 0x47], [vec![0, 1, 1, 64, 0, 0, 0, 0], ethernet(version)].concat()),
        4 => ([0x88, 0x64], vec![0x11, 0, 0, 1, 0, 0, 0, if version == IPV4 { 0x21 } else { 0x57 }]),
        5 => ([0, 100], [vec![0xaa, 0xaa, 3, 0, 0, 0], version.to_vec()].concat()),
        6 => (ETHERNET, ethernet(version)),
        _ => (version, Vec::new()),
    }
}
