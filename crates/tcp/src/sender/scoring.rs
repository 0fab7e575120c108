//! Application of an ACK to the scoreboard: SACK blocks, DSACK, the cumulative ACK, RTT samples, and Linux's
//! emulation of SACK counts for connections without SACK.

use std::ops::Range;

use ackclock_core::trace::CaState;
use ackclock_core::{SackBlock, SackList, Segment, Span, Time};

use super::undo::echo_before;
use super::{AckWork, Sender};
use crate::config::Detection;
use crate::scoreboard::{Known, Reported, EVER_RETRANS, RETRANS, SACKED};

impl Sender {
    /// Apply the SACK blocks (RFC 2018; RFC 2883 for a DSACK in the first block).
    pub(super) fn process_sack(&mut self, now: Time, seg: &Segment, prior_una: u64, w: &mut AckWork) {
        let abs = |block: &SackBlock| {
            let edge = |e: i32| (seg.ack as i64 + e as i64).max(0) as u64;
            (edge(block.start), edge(block.end))
        };
        let mut room = [(0, 0); SackList::MOST];
        let blocks = &mut room[..seg.sack.as_slice().len()];
        blocks.iter_mut().zip(seg.sack.as_slice()).for_each(|(place, block)| *place = abs(block));
        let mut twice = None;
        if let Some(&(start, end)) = blocks.first() {
            // A reversed block, or one longer than the offered window, is no DSACK (Linux `tcp_dsack_seen`, by the largest window).
            let possible = start < end && (end <= self.snd_nxt || end - start <= self.snd_wnd);
            if possible
                && self.is_dsack(seg, start, end)
                && self.on_dsack((start, end), prior_una, seg.ack, w)
            {
                twice = Some((start, end));
            }
        }
        // Ascending order, so that two new blocks on one ACK do not look like reordering.
        blocks.sort_unstable();
        let una = self.snd_una.max(seg.ack);
        let before = std::mem::take(&mut self.board.reported);
        let before = if self.board.sacked_out > 0 { before } else { Reported::new() };
        let mut known = Known { before, ..Known::default() };
        if let Some((start, end)) = twice.filter(|&(start, end)| start > una && end <= self.snd_nxt) {
            known.twice = self.segments(start, end);
        }
        let mut around = None;
        for &mut (start, end) in blocks {
            if start >= end || end > self.snd_nxt || start <= una {
                continue; // a receiver that has the data right after the ACK number would acknowledge it
            }
            let Range { start: a, end: b } = self.segments(start, end);
            if let (Some(queue), true) = (&mut self.queue, b > a) {
                queue.cut_sent(self.board.get(a).start()); // Linux `tcp_match_skb_to_sack`
                queue.cut_sent(self.board.get(b - 1).end);
            }
            self.board.reported.push((a as u32, b as u32));
            if twice.take_if(|twice| *twice == (start, end)).is_some() && b > a {
                self.sack_twice(now, &known, around.take(), w);
                known.twice = 0..0;
                continue;
            }
            self.sack_range(now, a, b, &known, w);
            around = Some(a..b);
            // after the last outstanding segment the walk has no position to continue from
            known.past = if b < self.board.next { b } else { 0 };
        }
        if let (Some(reord), true) = (w.reord, self.ca_state != CaState::Loss || self.undo.possible()) {
            self.check_reordering(reord, self.board.get(reord).start(), self.board.sacked_end());
            w.reord = None;
        }
    }

    /// Numbers of the segments that the block [start, end) covers.
    fn segments(&self, start: u64, end: u64) -> Range<u64> {
        let a = self.board.at_or_after(start, self.smss);
        let mut b = self.board.at_or_after(end, self.smss);
        if b > a && self.board.get(b - 1).end > end {
            b -= 1; // a segment only partly covered by the block is not SACKed
        }
        a..b
    }

    /// Process the range that `known` reports twice as a separate block, regardless of earlier reports, unless the
    /// walk along the block `around` has passed it (Linux `tcp_sacktag_write_queue`, `tcp_maybe_skipping_dsack`).
    #[cold]
    fn sack_twice(&mut self, now: Time, known: &Known, around: Option<Range<u64>>, w: &mut AckWork) {
        let Range { start: a, end: b } = known.twice;
        let around = around.filter(|around| around.start <= a && b <= around.end);
        if !self.board.is_sacked(a, b) {
            self.sack_range(now, a, b, &Known::default(), w);
            return;
        }
        let Some(around) = around else { return self.board.look_at_twice(a, b) };
        let lost = around.end == self.board.next && !known.holds(around.end - 1);
        let passed = !known.holds(a);
        if passed {
            self.board.cut_at_twice(a);
        }
        for _ in 0..lost as u32 + !passed as u32 {
            self.board.look_at_twice(a, b);
        }
    }

    pub(super) fn is_dsack(&self, seg: &Segment, start: u64, end: u64) -> bool {
        if start < seg.ack {
            return true;
        }
        let second = seg.sack.as_slice().get(1);
        second.is_some_and(|s| {
            let base = seg.ack as i64;
            start as i64 >= base + s.start as i64 && end as i64 <= base + s.end as i64
        })
    }

    /// Process a DSACK. Returns whether it is accepted.
    pub(super) fn on_dsack(
        &mut self,
        (start, end): (u64, u64),
        prior_una: u64,
        seg_ack: u64,
        w: &mut AckWork,
    ) -> bool {
        let segments = (end - start).div_ceil(self.smss as u64).max(1);
        self.stats.dsacks_received = self.stats.dsacks_received.saturating_add(segments as u32);
        let of_probe = end - start <= self.smss as u64 && self.loss_probe.ends_at(end);
        w.dsack_tlp |= of_probe;
        if self.config.loss.detection == Detection::Rack {
            if u64::from(self.stats.dsacks_received) > self.stats.retransmissions {
                return false; // more DSACKs than retransmissions (Linux `tcp_dsack_seen`)
            }
            self.delivered += segments; // a spurious retransmission also counts as delivered
        }
        w.dsack = true;
        // A DSACK for a tail loss probe does not widen RACK's window.
        if !w.dsack_tlp {
            self.rack.saw_dsack();
        }
        if end <= prior_una {
            self.undo.on_dsack(end, segments);
        } else {
            self.on_dsack_outstanding(start, end, seg_ack, w);
        }
        true
    }

    /// Process a DSACK of data that was outstanding before the ACK. Each retransmitted segment in it counts, and
    /// a retransmission of a segment that remains outstanding is no longer in flight (Linux `tcp_sacktag_one`).
    fn on_dsack_outstanding(&mut self, start: u64, end: u64, ack: u64, w: &mut AckWork) {
        let una = self.snd_una.max(ack);
        let crosses = start <= una && end > una; // Linux `tcp_is_sackblock_valid`
        if crosses || end > self.snd_nxt || (end <= una && !self.undo.possible()) {
            return;
        }
        let from = self.board.at_or_after(start.max(self.snd_una), self.smss);
        for n in from..self.board.next {
            let s = *self.board.get(n);
            if s.end > end {
                break;
            }
            if s.is(EVER_RETRANS) {
                self.undo.on_dsack(s.end, 1);
                if s.is(SACKED) {
                    w.reord = Some(w.reord.map_or(n, |r| r.min(n)));
                }
            }
            if s.end > una && s.is(RETRANS) {
                self.board.get_mut(n).flags &= !RETRANS;
                self.board.retrans_out -= 1;
            }
        }
    }

    /// Mark segments [a, b) as SACKed. `known`: blocks reported by the previous ACK.
    pub(super) fn sack_range(&mut self, now: Time, a: u64, b: u64, known: &Known, w: &mut AckWork) {
        let (high_seq, prior_end, min_rtt) = (self.high_seq, self.board.sacked_end(), self.rtt.min_rtt());
        let (rfc_6675, by_time) =
            (self.config.loss.next_seg_rules, self.config.loss.detection == Detection::Rack);
        let rack = &mut self.rack;
        let mut rates = self.rates.as_deref_mut();
        let mut delivered = 0u32;
        self.board.add_sacked_range(a, b, known, |board, n| {
            let s = *board.get(n);
            if !board.mark_sacked(n, rfc_6675) {
                return;
            }
            if by_time {
                board.leave_out(n);
            }
            rack.advance(now, s.is(EVER_RETRANS), s.end, s.xmit, min_rtt);
            if let Some(rates) = rates.as_deref_mut() {
                rates.on_delivered(n, s.xmit, s.end);
            }
            if !s.is(EVER_RETRANS) {
                if n < prior_end {
                    w.reord = Some(w.reord.map_or(n, |r| r.min(n)));
                }
                w.orig_sack_acked |= s.end <= high_seq;
                w.first_sackt.get_or_insert(s.xmit);
                w.last_sackt = Some(s.xmit);
            }
            w.prior_delivered = Some(w.prior_delivered.unwrap_or(0).max(s.noted as u64));
            delivered += 1;
        });
        if delivered > 0 {
            w.data_sacked = true;
            w.newly_sacked += delivered;
            self.delivered += delivered as u64;
        }
    }

    /// Remove the cumulatively acknowledged segments (Linux `tcp_clean_rtx_queue`). Of several ordinary
    /// segments, the last one gives RACK and the delivery rate the same information as all of them.
    #[inline(always)]
    pub(super) fn clean_rtx_queue<const PLAIN: bool>(
        &mut self,
        now: Time,
        seg: &Segment,
        prior_sacked_end: u64,
        w: &mut AckWork,
    ) {
        w.una_advanced = PLAIN || seg.ack > self.snd_una;
        let mut reord: Option<(u64, u64)> = None;
        let (mut acked_to, mut joined) = (None, None);
        while let Some(s) = self.board.pop_acked(seg.ack) {
            let n = self.board.first - 1;
            let count = (self.board.first - s.first) as u32;
            let sacked = !PLAIN && s.is(SACKED);
            acked_to = Some(s.end);
            w.newly_acked += count;
            w.data_acked = true;
            if s.is(EVER_RETRANS) {
                w.retrans_data_acked = true; // Karn's algorithm: the ACK may be for either transmission
            } else if !sacked {
                w.first_ackt.get_or_insert(s.first_xmit);
                w.last_ackt = Some(s.xmit);
                reord.get_or_insert((s.first, s.start));
                w.orig_sack_acked |= s.first_end <= self.high_seq;
            }
            if sacked {
                let (ever, sent) = joined.unwrap_or((false, s.first_xmit));
                joined = Some((ever | s.is(EVER_RETRANS), sent));
            } else {
                joined = None;
            }
            if let (Some(rates), false) = (&mut self.rates, sacked) {
                rates.on_delivered(n, s.xmit, s.end);
            }
            if !sacked && (PLAIN || self.sack) {
                self.delivered += count as u64;
                w.prior_delivered = Some(w.prior_delivered.unwrap_or(0).max(s.noted as u64));
                let spurious = s.is(EVER_RETRANS) && echo_before(seg, self.ts(s.xmit));
                if !spurious {
                    self.rack.advance(now, s.is(EVER_RETRANS), s.end, s.xmit, self.rtt.min_rtt());
                }
            } else if PLAIN || self.sack {
                w.sacked_before += count;
            }
            if s.end == seg.ack {
                break; // an ACK usually ends at a segment boundary
            }
        }
        if let Some((ever, sent)) = joined {
            self.board.cut_sacked(ever, sent);
        }
        let prior_una = self.snd_una;
        self.snd_una = prior_una.max(seg.ack);
        let within = acked_to != Some(self.snd_una);
        if within && self.board.head().is_some_and(|head| head.start() < self.snd_una) {
            self.on_ack_within(w.newly_acked > 0);
        }
        if w.newly_acked > 0 {
            w.set_timer = true;
            if !PLAIN && self.mtu_search.is_some() {
                self.look_for_mtu_probe(now);
            }
            if !PLAIN && !self.sack {
                self.remove_emulated_sacks(w.newly_acked);
                // The number of covered segments that were retransmitted is unknown (RFC 5682 §2.1 requires
                // ACKs of data never retransmitted).
                w.orig_sack_acked &= !w.retrans_data_acked;
            } else if let Some((n, start)) = reord {
                // Linux since 4.16 (memory) also lets the rest of a partly acknowledged segment fill a hole, measured from the start of the segment.
                let rest = start < prior_una && self.config.loss.detection == Detection::Rack;
                if n < prior_sacked_end || rest {
                    self.check_reordering(n, start, prior_sacked_end);
                }
            }
        } else if let (Some(first), Some(head)) = (w.first_sackt, self.board.head()) {
            // An RTT sample of data sent after the head's last transmission must not postpone the timeout
            // forever. (Linux since 4.x; RFC 6298 §5.3 restarts on cumulative ACKs only.)
            w.set_timer = self.config.loss.detection == Detection::Rack && first < head.xmit;
        }
    }

    /// Take an RTT sample: from the oldest segment newly acknowledged, else newly SACKed, else from the
    /// timestamp (Linux `tcp_ack_update_rtt`; Karn's algorithm). A host's queue that does the pacing may release a packet
    /// before the departure time with which it was stamped (fq's `horizon`); an ACK earlier than that counts as an RTT of
    /// zero (Linux `tcp_stamp_us_delta`).
    #[inline(always)]
    pub(super) fn update_rtt(&mut self, now: Time, seg: &Segment, w: &mut AckWork) {
        let (mut rtt, mut newest) = (None, None);
        if let (Some(first), Some(last), false) = (w.first_ackt, w.last_ackt, w.retrans_data_acked) {
            rtt = Some(now.since(first));
            newest = Some(now.since(last));
        }
        // Linux up to 3.10 measures only cumulatively acknowledged data: SACKs neither raise the RTO nor reach the controller (memory).
        let sacks_measure = self.config.loss.detection != Detection::Fack;
        if let (Some(first), Some(last), true) = (w.first_sackt, w.last_sackt, sacks_measure) {
            rtt = rtt.or(Some(now.since(first)));
            newest = Some(now.since(last));
        }
        if rtt.is_none() && w.data_acked && seg.has_ts && seg.ts_ecr > 0 {
            let ms = self.ts(now).saturating_sub(seg.ts_ecr);
            rtt = Some(Span::from_ms(ms.max(1) as u64));
            newest = rtt;
        }
        w.rtt = newest;
        if let Some(rtt) = rtt {
            if let Some(newest) = newest {
                self.rtt.update_min(newest);
            }
            self.rtt.sample(rtt, self.snd_una, self.snd_nxt);
            self.stats.rtt_sum_ns += rtt.0;
            self.stats.rtt_samples += 1;
        }
    }

    // Emulation of SACK counts from duplicate ACKs (Linux `tcp_add_reno_sack` and related functions; RFC 9937 §6.2 without SACK).

    pub(super) fn add_emulated_sack(&mut self, num_dupack: u32) -> u32 {
        if self.sack || num_dupack == 0 {
            return 0;
        }
        let prior = self.board.sacked_out;
        let sacked = self.limit_emulated_sacks(prior + num_dupack, 0);
        let more = sacked.saturating_sub(prior);
        self.delivered += more as u64;
        more
    }

    pub(super) fn remove_emulated_sacks(&mut self, acked: u32) {
        let sacked = self.board.sacked_out;
        self.delivered += acked.saturating_sub(sacked).max(1) as u64;
        self.limit_emulated_sacks(sacked.saturating_sub(acked - 1), acked);
    }

    /// Limit the emulated SACKs to the segments that are outstanding and not lost. Additional duplicate ACKs
    /// indicate reordering by all segments outstanding before the ACK for `acked` segments (Linux
    /// `tcp_check_reno_reordering`).
    fn limit_emulated_sacks(&mut self, sacked: u32, acked: u32) -> u32 {
        let outstanding = self.board.packets_out();
        let most = outstanding - self.board.lost_out.max(1).min(outstanding);
        if sacked > most {
            self.dupthresh.measured_without_sack(self.config.loss.detection, outstanding + acked);
            self.rack.saw_reordering();
            self.stats.reorderings += 1;
        }
        self.board.set_emulated_sacked(sacked.min(most));
        sacked.min(most)
    }

    /// Whether the state is kept after an ACK up to high_seq. Without SACK, Linux waits until data above it is acknowledged.
    pub(super) fn holds_for_non_sack(&self) -> bool {
        !self.sack && !self.config.loss.full_ack_ends && self.snd_una == self.high_seq
    }
}
