//! Table of ACKs and transmissions at the sending hosts, joined from three sources: packets with their nanosecond
//! timestamps (capture), cwnd before each ACK (tcp_probe), and state changes (tcp_cong_state_set).

use std::collections::BTreeMap;

use ackclock_core::Flags;

use crate::capture::Row;
use crate::trace::{Event, Line};

/// Event recorded in a row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum What {
    Ack,
    Send,
    Rtx,
    State,
}

impl What {
    /// Names of the events, indexed by discriminant.
    pub const NAMES: [&'static str; 4] = ["ack", "send", "rtx", "state"];
}

/// A row of the table.
#[derive(Clone, Debug)]
pub struct AckRow {
    pub t: u64,
    pub flow: u32,
    pub peer: u16,
    pub what: What,
    pub ack_no: u32,
    pub seq: u64,
    pub len: u32,
    pub seg_no: u32,
    pub rexmit: u8,
    pub sack: Vec<(i64, i64)>,
    pub dsack: bool,
    pub cwnd_before: u32,
    pub cwnd: u32,
    pub ssthresh: u32,
    pub rwnd: u32,
    pub srtt_us: u32,
    pub flight_bytes: u32,
    pub ca_state: u8,
}

/// An episode of fast recovery, or a timeout.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    pub t: u64,
    pub flow: u32,
    pub peer: u16,
    pub from: u8,
    pub to: u8,
}

/// The table's rows, and the state changes of all flows.
pub struct Acks {
    /// Rows by flow and connection, in time order.
    pub rows: Vec<AckRow>,
    /// State changes of all flows, traced or not; times in us.
    pub changes: Vec<Change>,
}

impl Acks {
    /// Join the sources; `zero` is the monotonic time at the start of the run, ns.
    pub fn new(lines: &[Line], packets: &[Row], zero: u64) -> Acks {
        let mut changes = Vec::new();
        let mut states: BTreeMap<(u32, u16), u8> = BTreeMap::new();
        let mut told: BTreeMap<(u32, u16), Vec<&Line>> = BTreeMap::new();
        for line in lines {
            told.entry((line.flow, line.peer)).or_default().push(line);
            if let Event::State(to) = line.event {
                let from = states.insert((line.flow, line.peer), to).unwrap_or(0);
                let t = (line.us * 1000).saturating_sub(zero);
                changes.push(Change { t, flow: line.flow, peer: line.peer, from, to });
            }
        }
        let mut seen: BTreeMap<(u32, u16), Vec<&Row>> = BTreeMap::new();
        for row in packets {
            seen.entry((row.flow, row.peer)).or_default().push(row);
        }
        let mut rows = Vec::new();
        for (key, packets) in seen {
            rows.extend(connection(&packets, told.get(&key).map_or(&[][..], |l| l), zero));
        }
        Acks { rows, changes }
    }
}

/// Build the rows of one connection.
#[allow(clippy::too_many_lines, reason = "one pass over what one connection saw, in the order of time")]
fn connection(packets: &[&Row], lines: &[&Line], zero: u64) -> Vec<AckRow> {
    let Some(isn) = packets.iter().find(|p| p.outgoing && p.header.syn).map(|p| p.header.seq) else {
        return Vec::new();
    };
    let scale =
        packets.iter().find(|p| !p.outgoing && p.header.syn).and_then(|p| p.header.scale).unwrap_or(0);
    let mut rows: Vec<AckRow> = Vec::new();
    let mut sent: BTreeMap<u64, (u32, u8)> = BTreeMap::new();
    let (mut high, mut una, mut acks) = (0, 0, 0);
    let mut lines = lines.iter().peekable();
    // The ACK that completes a passive open fires no tcp_probe, because the connection is not established yet, but it
    // does set the state.
    let mut handshake = packets.iter().find(|p| p.header.syn).is_some_and(|p| !p.outgoing);
    let mut known = AckRow {
        t: 0,
        flow: packets[0].flow,
        peer: packets[0].peer,
        what: What::Ack,
        ack_no: 0,
        seq: 0,
        len: 0,
        seg_no: 0,
        rexmit: 0,
        sack: Vec::new(),
        dsack: false,
        cwnd_before: 0,
        cwnd: 0,
        ssthresh: 0,
        rwnd: 0,
        srtt_us: 0,
        flight_bytes: 0,
        ca_state: 0,
    };
    for packet in packets {
        let header = &packet.header;
        let now_us = (zero + packet.t) / 1000;
        // Earlier state changes were made by a timer. A probe without a packet here belongs to a packet that gets no
        // row, such as a repeated SYN-ACK.
        while let Some(line) = lines.next_if(|l| l.us + 1 < now_us) {
            let Event::State(state) = line.event else { continue };
            known.ca_state = state;
            let t = (line.us * 1000).saturating_sub(zero);
            rows.push(AckRow { t, what: What::State, ..known.clone() });
        }
        if packet.outgoing {
            // a FIN consumes a sequence number, as in the simulator's table
            let len = header.len + u32::from(header.flags & Flags::FIN.0 != 0);
            if header.syn || len == 0 {
                continue;
            }
            let seq = offset(header.seq, isn, high);
            high = high.max(seq + len as u64);
            let number = sent.len() as u32 + 1;
            let entry = sent.entry(seq).and_modify(|(_, n)| *n = n.saturating_add(1)).or_insert((number, 0));
            let (seg_no, rexmit) = *entry;
            let what = if rexmit == 0 { What::Send } else { What::Rtx };
            rows.push(AckRow {
                t: packet.t,
                what,
                seq,
                len,
                seg_no,
                rexmit,
                sack: Vec::new(),
                dsack: false,
                ..known.clone()
            });
            continue;
        }
        if header.syn || header.flags & Flags::RST.0 != 0 {
            continue; // a reset acknowledges nothing
        }
        if std::mem::take(&mut handshake) {
            while lines.next_if(|l| l.us <= now_us + 1 && matches!(l.event, Event::State(_))).is_some() {}
            continue;
        }
        acks += 1;
        let ack = offset(header.ack, isn, high);
        let relative = |edge: u32| ack as i64 + edge.wrapping_sub(header.ack) as i32 as i64;
        let sack: Vec<(i64, i64)> = header.sack.iter().map(|&(a, b)| (relative(a), relative(b))).collect();
        let dsack = match sack[..] {
            [(_, end), ..] if end <= ack as i64 => true,
            [(start, end), (outer, last), ..] => outer <= start && end <= last,
            _ => false,
        };
        if let Some(line) = lines.next_if(|l| matches!(l.event, Event::Probe { .. })) {
            let Event::Probe { snd_una, snd_nxt, cwnd, ssthresh, rwnd, srtt_us } = line.event else {
                unreachable!("invariant: looked at above")
            };
            // cwnd after the previous ACK.
            if let Some(before) = rows.iter_mut().rev().find(|r| r.what == What::Ack) {
                before.cwnd = cwnd;
            }
            // The next probe prints the receive window left by this ACK. An ACK of no new data does not change the
            // window.
            let found = |l: &&Line| match l.event {
                Event::Probe { rwnd, .. } => Some(rwnd),
                Event::State(_) => None,
            };
            let left = lines.clone().find_map(found);
            let told = u32::from(header.window) << scale;
            let last = if header.ack == snd_una { rwnd.max(told) } else { told };
            let rwnd = left.unwrap_or(last);
            known = AckRow { cwnd_before: cwnd, cwnd, ssthresh, rwnd, srtt_us, ..known };
            known.flight_bytes = snd_nxt.wrapping_sub(snd_una);
            while let Some(line) = lines.next_if(|l| l.us <= now_us + 1 && matches!(l.event, Event::State(_)))
            {
                let Event::State(state) = line.event else { unreachable!("invariant: looked at above") };
                known.ca_state = state;
            }
        }
        let len = ack.saturating_sub(una) as u32;
        una = una.max(ack);
        known.ack_no = acks;
        let seg_no = sent.range(una..).next().map_or(0, |(_, (n, _))| *n);
        rows.push(AckRow {
            t: packet.t,
            what: What::Ack,
            seq: ack,
            len,
            seg_no,
            rexmit: 0,
            sack,
            dsack,
            ..known.clone()
        });
    }
    rows
}

/// Sequence number as an offset from the SYN, unwrapped to the value closest to `near`, the last one sent.
fn offset(seq: u32, isn: u32, near: u64) -> u64 {
    let low = seq.wrapping_sub(isn);
    let distance = low.wrapping_sub(near as u32) as i32;
    near.saturating_add_signed(distance as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Header;
    use ackclock_core::packet::Ecn;
    use ackclock_core::AccEcnOption;

    fn packet(t: u64, outgoing: bool, seq: u32, ack: u32, len: u32, syn: bool) -> Row {
        let sack = Vec::new();
        let header = Header {
            source: 0,
            target: 0,
            seq,
            ack,
            syn,
            flags: 0,
            window: 0,
            scale: None,
            len,
            ecn: Ecn::NotEct,
            sack,
            sack_permitted: false,
            has_ts: false,
            accecn: AccEcnOption::default(),
        };
        Row { t, flow: 0, peer: 9, outgoing, header }
    }

    #[test]
    fn packets_probes_and_states_come_together() {
        let isn = u32::MAX - 500; // the sequence number wraps around
        let n = |offset: u32| isn.wrapping_add(offset);
        let packets = [
            packet(0, true, isn, 0, 0, true),
            packet(10_000, false, 7, n(1), 0, true),
            packet(10_000, true, n(1), 8, 1000, false),
            packet(10_000, true, n(1001), 8, 1000, false),
            packet(15_000, false, 7, n(1), 0, true), // the SYN-ACK is repeated
            packet(20_000, false, 8, n(1001), 0, false),
            packet(30_000, true, n(1001), 8, 1000, false),
        ];
        let probe =
            Event::Probe { snd_una: n(1), snd_nxt: n(2001), cwnd: 10, ssthresh: 99, rwnd: 5, srtt_us: 7 };
        let line = |us, event| Line { us, flow: 0, peer: 9, event };
        let of_syn =
            Event::Probe { snd_una: n(1), snd_nxt: n(2001), cwnd: 77, ssthresh: 99, rwnd: 5, srtt_us: 0 };
        let lines =
            [line(1015, of_syn), line(1020, probe), line(1020, Event::State(1)), line(1028, Event::State(4))];
        let acks = Acks::new(&lines, &packets, 1_000_000);
        let told: Vec<_> = acks
            .rows
            .iter()
            .map(|r| (r.what, r.seq, r.seg_no, r.rexmit, r.cwnd_before, r.ca_state))
            .collect();
        let wanted = [
            (What::Send, 1, 1, 0, 0, 0),
            (What::Send, 1001, 2, 0, 0, 0),
            (What::Ack, 1001, 2, 0, 10, 1),
            (What::State, 0, 0, 0, 10, 4),
            (What::Rtx, 1001, 2, 1, 10, 4),
        ];
        assert_eq!(told, wanted);
        assert_eq!(acks.changes.len(), 2);
        assert_eq!((acks.changes[1].from, acks.changes[1].to), (1, 4));
    }
}
