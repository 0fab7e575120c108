//! An expected packet beside a captured one. Linux hands super-segments to the device, the stack sends segments of one
//! MSS: consecutive ones that left together are joined until the expected length is reached, never the reverse.

use std::collections::VecDeque;

use ackclock_core::packet::Ecn;
use ackclock_core::{Flags, Span};

use super::tap::{Captured, Tap};
use super::{fail, Stop};
use crate::ast::{EcnMark, TcpOption, TcpOptions, TcpPacket};
use crate::options::Options;

/// Flags that may differ between the pieces of one super-segment.
const LOOSE: u8 = Flags::FIN.0 | Flags::PSH.0 | Flags::CWR.0;

/// The next captured packet, joined with those behind it as far as the expectation reaches.
pub fn take(queue: &mut VecDeque<Captured>, wanted: &TcpPacket, strict: bool) -> Captured {
    let mut first = queue.pop_front().expect("invariant: the caller saw a packet");
    let piece = first.packet.seq.len;
    if strict || piece == 0 {
        return first;
    }
    while let Some(next) = queue.front() {
        let (a, b) = (&first.packet, &next.packet);
        let len = a.seq.len as u32 + b.seq.len as u32;
        let alike = next.at == first.at
            && a.flags.bits.0 & !LOOSE == b.flags.bits.0 & !LOOSE
            && !a.flags.bits.has(Flags::FIN)
            && b.seq.start == a.seq.end
            && (a.ack, a.win, &a.options, first.ecn) == (b.ack, b.win, &b.options, next.ecn);
        // All pieces but the last are of one size.
        if !alike
            || len > wanted.seq.len as u32
            || b.seq.len == 0
            || b.seq.len > piece
            || a.seq.len % piece != 0
        {
            break;
        }
        let next = queue.pop_front().expect("invariant: seen above");
        let cwr = first.packet.flags.bits.0 & Flags::CWR.0;
        first.packet.flags.bits = Flags(next.packet.flags.bits.0 & !Flags::CWR.0 | cwr);
        first.packet.seq.end = next.packet.seq.end;
        first.packet.seq.len = len as u16;
    }
    first
}

/// The first thing in which the packets differ.
pub fn differs(wanted: &TcpPacket, taken: &Captured) -> Option<&'static str> {
    let live = &taken.packet;
    let syn = wanted.flags.bits.has(Flags::SYN);
    let checks = [
        ("flags", wanted.flags == live.flags),
        // A side's first number is whatever its SYN says.
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

/// Tie the script's timestamp to the stack's; compare it if the script says how long a tick is.
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
