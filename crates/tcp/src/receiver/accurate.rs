//! Accurate ECN at the receiver (RFC 9768 §2.2, §3.2): counters of CE-marked packets and of payload bytes by
//! mark, the ACKs that marks trigger, and the contents of the option.
//!
//! | rule | Linux | RFC 9768 §3.2.2.5 |
//! |---|---|---|
//! | immediate ACK | any change of the mark, sent on the next data segment | CE-marked data after a packet without CE |
//! | ACK for accumulated marks | six, checked when an ACK arrives | two with unacknowledged data, three without |
//! | field order of the option | 1, ECT(1) first | either |
//! | option too long for the header | drop unchanged fields at the end, then a third SACK block, then the option | the same |

use ackclock_core::accecn::{handshake_code, padded, CEP_START};
use ackclock_core::packet::Ecn;
use ackclock_core::{AccEcnOption, Segment, Span, Time};

use super::Receiver;
use crate::config::{AccEcnRules, Config, DelayedAck};

/// Initial values of the counters of ECT(1), ECT(0) and CE. A counter that was zeroed on the path can be detected
/// where the initial value is 1 (§3.2.1).
const BYTES_START: [u32; 3] = [1, 1, 0];
/// Fields in the order of the option: ECT(1), CE, ECT(0), as indices of `bytes`.
const ORDER_1: [usize; 3] = [0, 2, 1];
/// A counter that crosses a multiple of this many bytes is reported even without another reason (§3.2.3.3).
const TOLD_EVERY: u32 = 1 << 22;
/// Number of marks since the last segment was sent at which an ACK is triggered (Linux TCP_ACCECN_ACE_MAX_DELTA).
const MANY: u32 = 6;
/// Maximum length of all options in a header, bytes.
const ROOM: u32 = 40;

/// Counters reported by the receiver to its peer.
#[derive(Clone, Debug)]
pub(crate) struct Accurate {
    rules: AccEcnRules,
    linux: bool,
    /// CE-marked packets received in total (r.cep - 5), and since the last segment was sent.
    pub(crate) ce: u32,
    waiting: u32,
    /// Payload bytes that arrived as ECT(1), ECT(0) and CE.
    pub(crate) bytes: [u32; 3],
    /// Number of fields that the next option must contain: those up to the last changed one.
    needed: usize,
    /// Number of segments yet to be sent that should carry the option.
    demand: u8,
    /// ECN mark of the previous packet.
    last: Ecn,
    /// A packet with ECT or CE has arrived.
    seen: bool,
    /// The next data segment is acknowledged at once (Linux ICSK_ACK_NOW).
    hurry: bool,
    /// Time at which the option was last sent.
    told_at: Time,
    /// Start of the duplicate that was reported together with the last option. If the same data arrives
    /// again, the segment with the option was lost, and the path may drop such segments.
    told_beside: Option<u64>,
    /// The path seems to drop segments with the option.
    pub(crate) dropped: bool,
    /// Mark of the peer's SYN or SYN-ACK, to be reported by the next segment.
    reflect: Option<Ecn>,
}

impl Receiver {
    /// Set up the counters once the handshake has agreed on accurate ECN. `before`: mark to compare the next one
    /// with.
    pub(crate) fn count_marks(&mut self, config: &Config, before: Ecn, demand: u8) {
        // Linux's DCTCP also acknowledges pending data when the mark changes.
        let needs = config.sending.controller.needs();
        if config.receiving.delayed_ack != DelayedAck::Linux || needs.l4s {
            self.marks.exact = None;
        }
        self.marks.accurate = Some(Box::new(Accurate {
            rules: config.accecn,
            linux: config.receiving.delayed_ack == DelayedAck::Linux,
            ce: 0,
            waiting: 0,
            bytes: [0; 3],
            needed: 0,
            demand,
            last: before,
            seen: false,
            hurry: false,
            told_at: Time::ZERO,
            told_beside: None,
            dropped: false,
            reflect: None,
        }));
    }

    /// Count a packet with this mark, which may contain several segments (Linux `tcp_ecn_received_counters`, `tcp_data_ecn_check`).
    pub(crate) fn on_accurate_marks(&mut self, ecn: Ecn, seg: &Segment) {
        let ecn = if self.marks.hides_marks && ecn == Ecn::Ce { Ecn::Ect0 } else { ecn };
        let segments = seg.len.div_ceil(self.sizes.most.max(1)).max(1);
        let data = seg.seq_len() > 0;
        let Some(a) = &mut self.marks.accurate else { return };
        let edge = a.last != ecn;
        if ecn != Ecn::NotEct {
            a.seen = true;
            if ecn == Ecn::Ce {
                a.ce = a.ce.wrapping_add(segments);
                a.waiting += segments;
            }
            if seg.len > 0 {
                let counter = &mut a.bytes[ecn as usize - 1];
                let before = *counter / TOLD_EVERY;
                *counter = counter.wrapping_add(seg.len);
                if *counter / TOLD_EVERY != before {
                    a.demand = a.demand.max(1);
                }
                let field = ORDER_1.iter().position(|&i| i == ecn as usize - 1).map_or(0, |at| at + 1);
                a.needed = a.needed.max(field);
            }
        }
        if edge || ecn == Ecn::Ce {
            a.demand = 2;
        }
        let many = a.waiting >= if data { 2 } else { 3 };
        let due = match a.linux {
            true => {
                a.hurry |= edge;
                data && a.hurry
            }
            false => (data && edge && ecn == Ecn::Ce) || (ecn == Ecn::Ce && many),
        };
        a.last = ecn;
        let retransmitted = a.linux && ecn == Ecn::NotEct && a.seen && seg.len > 0;
        // The last reported duplicate has arrived again, so the report was lost together with the option.
        if a.told_beside == Some(seg.seq) && seg.len > 0 && seg.seq + seg.len as u64 <= self.rcv_nxt {
            a.dropped = true;
        }
        self.note_kind(ecn == Ecn::Ce, seg.len > 0);
        if due {
            self.ack_now();
        }
        if retransmitted {
            self.acks.acknowledge_two();
        }
    }

    /// Set the rule for sending the option.
    pub(crate) fn set_option_rule(&mut self, rule: u8) {
        self.marks.accurate.iter_mut().for_each(|a| a.rules.option = rule);
    }

    /// Count the SYN-ACK, which arrived CE-marked.
    pub(crate) fn count_marked_synack(&mut self) {
        if let Some(a) = &mut self.marks.accurate {
            a.ce += 1;
            a.waiting += 1;
        }
    }

    /// Whether the segment's timestamp is newer than the latest accepted one (PAWS).
    pub(crate) fn is_newer_stamp(&self, seg: &Segment) -> bool {
        seg.seq <= self.acks.rcv_wup && seg.ts_val.wrapping_sub(self.stamps.recent) as i32 > 0
    }

    /// Start offset of the duplicate that the next segment reports.
    pub(crate) fn reported_duplicate(&self) -> Option<u64> {
        self.assembly.dsack.map(|(start, _)| start)
    }

    /// Called once the sending half has processed the marks of an ACK: if many marks have accumulated, the
    /// next segment reports them (Linux `__tcp_accecn_process`).
    pub(crate) fn look_at_waiting(&mut self, data: bool) {
        let Some(a) = &mut self.marks.accurate else { return };
        a.hurry |= a.linux && a.waiting >= MANY;
        if data && a.hurry {
            self.ack_now();
        }
    }

    /// Report the mark of the peer's SYN or SYN-ACK in the next segment.
    pub(crate) fn reflect(&mut self, arrived: Ecn, demand: u8) {
        if let Some(a) = &mut self.marks.accurate {
            a.reflect = Some(arrived);
            a.demand = a.demand.max(demand);
        }
    }

    /// Whether a segment sent now should carry the option.
    fn tells(&self, now: Time, srtt: Span, agreed: bool) -> bool {
        self.marks.accurate.as_ref().is_some_and(|a| {
            let beacon = || {
                a.rules.beacon > 0 && now.since(a.told_at).0.saturating_mul(a.rules.beacon.into()) >= srtt.0
            };
            a.rules.option > 0
                && agreed
                && (a.rules.option >= 3 || !a.dropped)
                && (a.rules.option >= 2 || a.demand > 0 || beacon())
        })
    }

    /// Payload bytes that the option displaces in a data segment.
    pub(crate) fn option_room(&self, now: Time, srtt: Span, agreed: bool) -> u32 {
        if self.tells(now, srtt, agreed) {
            padded(AccEcnOption::new(true, &[0; 3]).bytes(), false)
        } else {
            0
        }
    }

    /// Write the ACE field and the option into an otherwise complete segment. `reports`: start of the duplicate reported by the segment.
    pub(crate) fn stamp_marks(
        &mut self,
        now: Time,
        srtt: Span,
        agreed: bool,
        reports: Option<u64>,
        seg: &mut Segment,
    ) {
        let tells = self.tells(now, srtt, agreed);
        let Some(a) = &mut self.marks.accurate else { return };
        match a.reflect.take() {
            Some(arrived) => seg.flags = seg.flags.with_ace(handshake_code(arrived)),
            None => {
                seg.flags = seg.flags.with_ace((a.ce.wrapping_add(CEP_START) & 7) as u8);
                a.waiting = 0;
            }
        }
        a.hurry = false;
        a.told_beside = None;
        if !tells {
            return;
        }
        let Some((fields, blocks)) = fit(seg, a.needed) else { return };
        seg.sack.truncate(blocks);
        let counters = ORDER_1.map(|i| a.bytes[i].wrapping_add(BYTES_START[i]));
        seg.accecn = AccEcnOption::new(true, &counters[..fields]);
        a.needed = 0;
        a.told_at = now;
        a.told_beside = reports;
        a.demand = a.demand.saturating_sub(1);
    }
}

/// Option of a SYN-ACK: all counters have their initial values.
pub(crate) fn first_option() -> AccEcnOption {
    AccEcnOption::new(true, &ORDER_1.map(|i| BYTES_START[i]))
}

/// Number of option fields and SACK blocks that fit beside the other options, with at least `needed` fields
/// (Linux `tcp_options_fit_accecn`). Fields are dropped first, then blocks beyond the second; `None`: no option.
fn fit(seg: &Segment, needed: usize) -> Option<(usize, usize)> {
    let blocks = seg.sack.len();
    let fewest = if needed > 0 { blocks.min(2) } else { blocks };
    let bare = seg.option_bytes() - 8 * blocks as u32;
    (fewest..=blocks).rev().find_map(|kept| {
        let room = (ROOM - bare).checked_sub(8 * kept as u32)?;
        let fits = |fields: &usize| padded(2 + 3 * *fields as u32, blocks > 0) <= room;
        (needed..=3).rev().find(fits).map(|fields| (fields, kept))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::SackBlock;

    #[test]
    fn the_option_takes_what_the_other_options_leave() {
        let of = |has_ts, blocks| {
            let mut seg = Segment { has_ts, ..Segment::default() };
            (0..blocks).for_each(|_| seg.sack.push(SackBlock { start: 1, end: 2 }));
            seg
        };
        // Linux's script tcp_accecn_sack_space_grab: with timestamps three fields fit beside one block, two beside two
        for (has_ts, blocks, needed, want) in [
            (true, 0, 3, Some((3, 0))),
            (true, 1, 3, Some((3, 1))),
            (true, 2, 2, Some((2, 2))),
            (true, 2, 3, None),
            (true, 3, 0, Some((0, 3))),
            (true, 3, 2, Some((2, 2))),
            (false, 3, 3, Some((3, 3))),
            (false, 4, 0, Some((1, 4))),
            (false, 4, 1, Some((1, 4))),
            (false, 4, 2, Some((3, 3))),
        ] {
            assert_eq!(fit(&of(has_ts, blocks), needed), want, "{has_ts} {blocks} {needed}");
        }
    }
}
