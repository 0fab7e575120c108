//! Conversion between the script's packets and the stack's segments: sequence numbers relative to each side's initial
//! one, raw windows, options in Linux's order, and timestamps by a table of pairs.

use ackclock_core::packet::{Ecn, SynOptions};
use ackclock_core::{Flags, SackBlock, Segment};

use super::stack::Stack;
use super::{unsupported, Stop};
use crate::ast::{EcnMark, SeqRange, TcpFlags, TcpOption, TcpOptions, TcpPacket};
use crate::options::Options;

/// Reject values that cannot be carried by any of the stack's segments.
pub fn survey(line: u32, p: &TcpPacket, injected: bool) -> Result<(), Stop> {
    if p.ports.is_some() {
        return unsupported(line, "ports on a packet");
    }
    if p.flags.bits.has(Flags::URG) || p.urg.is_some_and(|n| n != 0) {
        return unsupported(line, "urgent data");
    }
    if p.ip.ttl.is_some() || p.ip.flow_label.is_some() || p.ip.tos.is_some_and(|tos| tos > 3) {
        return unsupported(line, "time to live, flow label or differentiated services");
    }
    let TcpOptions::Exactly(options) = &p.options else { return Ok(()) };
    for option in options {
        match option {
            TcpOption::FastOpen { .. } => return unsupported(line, "TCP Fast Open"),
            // No socket has a key, so signed packets are dropped.
            TcpOption::Md5(_) if injected => {}
            TcpOption::Md5(_) => return unsupported(line, "option md5"),
            _ => {}
        }
    }
    Ok(())
}

/// Convert an injected packet into a segment.
pub fn inbound(line: u32, p: &TcpPacket, stack: &mut Stack, options: &Options) -> Result<Segment, Stop> {
    let syn = p.flags.bits.has(Flags::SYN);
    let (rcv_nxt, snd_una) = match &stack.conn {
        Some(conn) => (conn.receiving().0, conn.sending().0),
        None => (0, 0),
    };
    if syn {
        stack.tap.first_numbers.1 = p.seq.start;
    }
    let list = match &p.options {
        TcpOptions::Exactly(list) => list.as_slice(),
        TcpOptions::Any => &[],
    };
    let scaled = stack.agreed.shift.is_some() && !syn;
    let win = p.win.unwrap_or(0) as u32;
    let mut segment = Segment {
        seq: if syn { 0 } else { unwrap(line, rcv_nxt, p.seq.start)? },
        ack: match p.ack {
            // An ACK number below our initial sequence number is as invalid as one for data never sent. On a
            // SYN the number is absolute; elsewhere it is relative to our initial sequence number.
            Some(ack) if syn => ack.wrapping_sub(stack.tap.first_numbers.0) as u64,
            Some(ack) => unwrap(line, snd_una, ack).unwrap_or(u64::MAX),
            None => 0,
        },
        len: p.seq.len as u32,
        flags: p.flags.header(),
        wnd: if scaled { win << stack.agreed.peer_shift.unwrap_or(0) } else { win },
        syn: SynOptions { mss: 536, ..SynOptions::default() }, // RFC 9293 §3.7.1: default without the option
        ..Segment::default()
    };
    if syn && p.seq.len > 0 {
        return unsupported(line, "data on a SYN");
    }
    for option in list {
        match option {
            TcpOption::Mss(n) => segment.syn.mss = (*n).max(48), // Linux TCP_MIN_SND_MSS
            TcpOption::WindowScale(n) => segment.syn.wscale = (*n).min(14),
            TcpOption::SackPermitted => segment.syn.sack_permitted = true,
            TcpOption::Sack(blocks) => {
                for (start, end) in blocks {
                    let edge = |e: u32| e.wrapping_sub(p.ack.unwrap_or(0)) as i32;
                    segment.sack.push(SackBlock { start: edge(*start), end: edge(*end) });
                }
            }
            TcpOption::Timestamps { val, ecr } => {
                segment.has_ts = true;
                segment.ts_val = *val;
                segment.ts_ecr = stack.tap.echoed(line, *ecr, p.ack.is_some(), options)?;
            }
            TcpOption::AccEcn(option) => segment.accecn = *option,
            _ => {}
        }
    }
    Ok(segment)
}

/// Return the offset of a 32-bit number that is nearest to `near`.
pub fn unwrap(line: u32, near: u64, number: u32) -> Result<u64, Stop> {
    let offset = near as i64 + number.wrapping_sub(near as u32) as i32 as i64;
    match u64::try_from(offset) {
        Ok(offset) => Ok(offset),
        Err(_) => unsupported(line, "a number before the first one of its side"),
    }
}

/// Return the ECN field of an injected packet.
pub fn mark(p: &TcpPacket) -> Ecn {
    match (p.ip.ecn, p.ip.tos) {
        (Some(EcnMark::Ce), _) | (_, Some(3)) => Ecn::Ce,
        (Some(EcnMark::Ect0), _) | (_, Some(2)) => Ecn::Ect0,
        (Some(EcnMark::Ect1), _) | (_, Some(1)) => Ecn::Ect1,
        _ => Ecn::NotEct,
    }
}

/// Convert one of the stack's segments into a script packet.
pub fn outbound(s: &Segment, stack: &mut Stack) -> TcpPacket {
    let agreed = &stack.agreed;
    let syn = s.flags.has(Flags::SYN);
    let win = if syn { stack.first_offer } else { s.wnd >> agreed.shift.unwrap_or(0) }.min(65_535);
    let ack = s.flags.has(Flags::ACK).then_some((s.ack as u32).wrapping_add(if syn {
        stack.tap.first_numbers.1
    } else {
        0
    }));
    TcpPacket {
        flags: TcpFlags { bits: s.flags, ..TcpFlags::default() },
        seq: SeqRange { start: s.seq as u32, end: (s.seq as u32).wrapping_add(s.len), len: s.len as u16 },
        ack,
        win: Some(win as u16),
        options: TcpOptions::Exactly(match syn {
            true => syn_options(s, agreed.shift),
            false => options(s),
        }),
        ..TcpPacket::default()
    }
}

/// Append another segment of the same packet. On a real host the device splits the packet.
pub fn append(packet: &mut TcpPacket, next: &Segment) {
    packet.flags.bits = Flags(packet.flags.bits.0 | next.flags.0);
    packet.seq.len += next.len as u16;
    packet.seq.end = packet.seq.end.wrapping_add(next.len);
}

/// Return the options of a SYN in the order of Linux `tcp_options_write`: MSS, SACK permitted and timestamps in one
/// word, window scale.
fn syn_options(s: &Segment, shift: Option<u8>) -> Vec<TcpOption> {
    let mut list = vec![TcpOption::Mss(s.syn.mss)];
    let timestamps = TcpOption::Timestamps { val: s.ts_val, ecr: s.ts_ecr };
    match (s.has_ts, s.syn.sack_permitted) {
        (true, true) => list.extend([TcpOption::SackPermitted, timestamps]),
        (true, false) => list.extend([TcpOption::Nop, TcpOption::Nop, timestamps]),
        (false, _) => {}
    }
    push_accecn(&mut list, s, false);
    if s.syn.sack_permitted && !s.has_ts {
        list.extend([TcpOption::Nop, TcpOption::Nop, TcpOption::SackPermitted]);
    }
    if let Some(shift) = shift {
        list.extend([TcpOption::Nop, TcpOption::WindowScale(shift)]);
    }
    list
}

fn options(s: &Segment) -> Vec<TcpOption> {
    let mut list = Vec::new();
    if s.has_ts {
        list.extend([TcpOption::Nop, TcpOption::Nop]);
        list.push(TcpOption::Timestamps { val: s.ts_val, ecr: s.ts_ecr });
    }
    let padding = push_accecn(&mut list, s, !s.sack.is_empty());
    if !s.sack.is_empty() {
        let edge = |e: i32| (s.ack as u32).wrapping_add(e as u32);
        let blocks = s.sack.as_slice().iter().map(|b| (edge(b.start), edge(b.end))).collect();
        list.extend((0..padding).map(|_| TcpOption::Nop));
        list.push(TcpOption::Sack(blocks));
    }
    list
}

/// Append the AccECN option with its padding. Beside SACK blocks it may use some of their two bytes of padding;
/// returns the number of padding bytes that remain.
fn push_accecn(list: &mut Vec<TcpOption>, s: &Segment, beside_sack: bool) -> u32 {
    let (bytes, padded) = (s.accecn.bytes(), s.accecn.padded(beside_sack));
    if s.accecn.is_some() {
        list.push(TcpOption::AccEcn(s.accecn));
        list.extend((bytes..padded).map(|_| TcpOption::Nop));
    }
    2 - bytes.saturating_sub(padded)
}
