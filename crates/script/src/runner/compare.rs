//! Compares an expected packet with captured ones. Hosts segment data differently: consecutive captured packets are
//! joined until the expected length is reached, but never split.

use std::collections::VecDeque;

use ackclock_core::packet::Ecn;
use ackclock_core::{Flags, Span};

use super::tap::{Captured, Tap};
use super::{fail, Stop};
use crate::ast::{EcnMark, TcpOption, TcpOptions, TcpPacket};
use crate::options::Options;

/// Flags that may differ between the pieces of one super-segment.
const LOOSE: u16 = Flags::FIN.0 | Flags::PSH.0 | Flags::CWR.0;

/// Packets joined for an expectation so far.
pub struct Taken {
    /// The joined packet; its time is that of the last piece.
    pub whole: Captured,
    /// Payload of the first piece, bytes; all pieces except the last must have this size.
    piece: u16,
    last: u16,
}

impl Taken {
    /// Take the next captured packet.
    pub fn first(queue: &mut VecDeque<Captured>) -> Option<Taken> {
        let whole = queue.pop_front()?;
        let piece = whole.packet.seq.len;
        Some(Taken { whole, piece, last: piece })
    }

    /// Whether the expectation covers more data and the pieces so far may be followed by another.
    pub fn wants_more(&self, wanted: &TcpPacket) -> bool {
        let so_far = &self.whole.packet;
        let short = self.piece > 0 && so_far.seq.len < wanted.seq.len && so_far.seq.start == wanted.seq.start;
        short && self.last == self.piece && !so_far.flags.bits.has(Flags::FIN)
    }

    /// Join the next packet. Returns false if it does not fit; it then remains in the queue.
    pub fn join(&mut self, queue: &mut VecDeque<Captured>, wanted: &TcpPacket) -> bool {
        let Some(next) = queue.front() else { return false };
        let (a, b) = (&self.whole.packet, &next.packet);
        let len = a.seq.len as u32 + b.seq.len as u32;
        let alike = a.flags.bits.0 & !LOOSE == b.flags.bits.0 & !LOOSE
            && b.seq.start == a.seq.end
            && b.seq.len > 0
            && len <= wanted.seq.len as u32
            && (a.ack, a.win, &a.options, self.whole.ecn) == (b.ack, b.win, &b.options, next.ecn);
        if !alike {
            return false;
        }
        let next = queue.pop_front().expect("invariant: seen above");
        let cwr = self.whole.packet.flags.bits.0 & Flags::CWR.0;
        self.last = next.packet.seq.len;
        self.whole.at = next.at;
        self.whole.packet.flags.bits = Flags(next.packet.flags.bits.0 & !Flags::CWR.0 | cwr);
        self.whole.packet.seq.end = next.packet.seq.end;
        self.whole.packet.seq.len = len as u16;
        true
    }
}

/// Return the first field in which the packets differ.
pub fn differs(wanted: &TcpPacket, taken: &Captured) -> Option<&'static str> {
    let live = &taken.packet;
    let syn = wanted.flags.bits.has(Flags::SYN);
    let checks = [
        ("flags", wanted.flags.header() == live.flags.header()),
        // Sequence numbers are relative to each side's SYN.
        ("sequence number", syn || wanted.seq.start == live.seq.start),
        ("payload length", wanted.seq.len == live.seq.len),
        ("ack", wanted.ack.unwrap_or(0) == live.ack.unwrap_or(0)),
        ("window", wanted.win.is_none() || wanted.win == live.win),
        ("ECN field", marks_agree(wanted, taken.ecn)),
        ("options", options_agree(&wanted.options, &live.options)),
    ];
    checks.iter().find(|(_, same)| !same).map(|(what, _)| *what)
}

fn marks_agree(wanted: &TcpPacket, ecn: Ecn) -> bool {
    let named = match wanted.ip.ecn {
        None => true,
        Some(EcnMark::NotEct) => ecn == Ecn::NotEct,
        Some(EcnMark::Ect0) => ecn == Ecn::Ect0,
        Some(EcnMark::Ect1) => ecn == Ecn::Ect1,
        Some(EcnMark::Ce) => ecn == Ecn::Ce,
        Some(EcnMark::EitherEct) => matches!(ecn, Ecn::Ect0 | Ecn::Ect1),
    };
    named && wanted.ip.tos.is_none_or(|tos| tos == ecn as u8)
}

fn options_agree(wanted: &TcpOptions, live: &TcpOptions) -> bool {
    let (TcpOptions::Exactly(wanted), TcpOptions::Exactly(live)) = (wanted, live) else { return true };
    let same = |(w, l): (&TcpOption, &TcpOption)| match (w, l) {
        (TcpOption::Timestamps { .. }, TcpOption::Timestamps { .. }) => true,
        _ => w == l,
    };
    wanted.len() == live.len() && wanted.iter().zip(live).all(same)
}

/// Pair the script's timestamp with the stack's, and compare them if the script specifies the tick length.
pub fn timestamps(
    line: u32,
    wanted: &TcpPacket,
    taken: &Captured,
    tap: &mut Tap,
    options: &Options,
) -> Result<(), Stop> {
    let stamp = |options: &TcpOptions| match options {
        TcpOptions::Exactly(list) => list.iter().find_map(|o| match o {
            TcpOption::Timestamps { val, .. } => Some(*val),
            _ => None,
        }),
        TcpOptions::Any => None,
    };
    let (Some(script), Some(live)) = (stamp(&wanted.options), stamp(&taken.packet.options)) else {
        return Ok(());
    };
    tap.stamps.push((script, live));
    let (script_first, live_first) = *tap.first_stamp.get_or_insert((script, live));
    let Some(tick) = options.ts_tick else { return Ok(()) };
    let said = script.wrapping_sub(script_first) as i32 as i64;
    let was = live.wrapping_sub(live_first) as i32 as i64;
    let off = tick * said.abs_diff(was);
    let since_start = taken.at.since(super::START);
    let share = Span((since_start.0 as u128 * options.tolerance_permille as u128 / 1000) as u64);
    if off > share.max(options.tolerance) {
        let shown = live_first.wrapping_add(said as u32);
        return fail(
            line,
            format!("timestamp {script} (of the stack: {shown})"),
            format!("timestamp {live}"),
        );
    }
    Ok(())
}
