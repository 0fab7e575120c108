//! Choice and order of retransmissions (RFC 6675 §4 NextSeg): segments marked lost; without new data,
//! segments below the highest SACK; finally one rescue retransmission.

use ackclock_core::trace::CaState;
use ackclock_core::Time;

use super::device::Takes;
use super::{Leaving, Sender};
use crate::scoreboard::{EVER_RETRANS, LOST, RETRANS, SACKED};

/// Progress of retransmission, in segment numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct NextSeg {
    /// Every segment below this number is either not marked lost or already retransmitted (Linux `retransmit_skb_hint`).
    hint: u64,
    /// HighRxt: every segment below this number has been retransmitted or does not need retransmission.
    high_rxt: u64,
    /// A rescue retransmission has been sent in this recovery.
    rescued: bool,
    /// RescueRxt: a rescue is allowed only once the head has passed this number.
    rescue_rxt: u64,
}

impl NextSeg {
    /// Start a recovery with segment `first` as the first outstanding one (RFC 6675 §5 step 4).
    pub fn enter_recovery(&mut self, first: u64) {
        (self.high_rxt, self.rescued, self.rescue_rxt) = (first, false, first + 1);
    }

    /// Record that segment `n` is believed lost.
    #[inline]
    pub fn lost_from(&mut self, n: u64) {
        self.hint = self.hint.min(n);
    }

    /// Record that no segment below `next` is still to be retransmitted.
    pub fn none_lost(&mut self, next: u64) {
        self.hint = next;
    }

    /// Record that segment `n` was retransmitted.
    pub fn resent(&mut self, n: u64) {
        self.high_rxt = self.high_rxt.max(n + 1);
    }

    /// Reset after segments were renumbered; `first` is the first outstanding one.
    pub fn start_over(&mut self, first: u64) {
        (self.hint, self.high_rxt) = (first, first);
    }
}

impl Sender {
    /// Return a segment marked lost and not yet retransmitted (NextSeg rule 1; Linux
    /// `tcp_xmit_retransmit_queue`).
    pub(super) fn next_lost(&mut self, now: Time) -> Option<Leaving> {
        let first = self.board.first;
        if self.intent.take_head() && first < self.board.next {
            if self.still_queued(self.board.get(first).start()) {
                return None;
            }
            let first = self.begin_retransmission(first, true);
            return Some(match self.ca_state {
                CaState::Loss => self.retransmit_expired(now, first),
                _ => self.retransmit(now, first),
            });
        }
        let all_sent = !self.config.loss.next_seg_rules && self.board.retrans_out >= self.board.lost_out;
        // A packet that has been started is sent completely, even if the head was retransmitted without being marked
        // lost.
        let all_sent = all_sent && !self.continues();
        if all_sent || self.board.pipe() >= self.window.cwnd || self.patience.device == Takes::Nothing {
            return None;
        }
        let mut n = self.next_seg.hint.max(first);
        while n < self.board.next {
            let s = self.board.get(n);
            if s.flags & (LOST | RETRANS | SACKED) == LOST {
                self.next_seg.hint = n;
                // The receiver shrank its window: only the head is sent, as a probe.
                let beyond = n != first && !self.in_window(s.start());
                let (start, len) = (s.start(), s.space());
                if beyond || self.pacing_holds(now, start) || self.retransmission_waits(start, len) {
                    return None;
                }
                let n = self.begin_retransmission(n, false);
                return Some(self.retransmit(now, n));
            }
            n += 1;
        }
        self.next_seg.hint = n;
        None
    }

    /// Return a segment by NextSeg rules (3) and (4) of RFC 6675 §4: without new data, a segment that is not
    /// marked lost, then one rescue.
    pub(super) fn next_seg_beyond(&mut self, now: Time) -> Option<Leaving> {
        if self.board.pipe() >= self.window.cwnd || self.pacing_holds(now, self.snd_nxt) {
            return None;
        }
        let from = self.next_seg.high_rxt.max(self.board.first);
        if let Some(n) =
            (from..self.board.sacked_end()).find(|&n| !self.board.get(n).is(SACKED | EVER_RETRANS))
        {
            let n = self.begin_retransmission(n, true);
            return Some(self.retransmit(now, n));
        }
        self.next_seg.high_rxt = self.next_seg.high_rxt.max(self.board.sacked_end()); // no candidate is left below
        if !self.next_seg.rescued && self.board.first > self.next_seg.rescue_rxt {
            self.next_seg.rescued = true;
            let last = (self.board.first..self.board.next).rev().find(|&n| !self.board.get(n).is(SACKED))?;
            let high_rxt = self.next_seg.high_rxt;
            let last = self.begin_retransmission(last, true);
            let seg = self.retransmit(now, last);
            self.next_seg.high_rxt = high_rxt; // rule (4): a rescue does not update HighRxt
            return Some(seg);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_recovery_starts_from_its_first_segment_and_may_rescue_once_rfc_6675_section_4() {
        let mut next = NextSeg::default();
        next.enter_recovery(10);
        next.resent(12);
        next.resent(10);
        assert_eq!((next.high_rxt, next.rescue_rxt), (13, 11), "HighRxt never goes back");
        next.rescued = true;
        next.enter_recovery(20);
        assert_eq!((next.high_rxt, next.rescued), (20, false));
    }

    #[test]
    fn the_hint_follows_the_lowest_segment_believed_lost() {
        let mut next = NextSeg::default();
        next.none_lost(50);
        next.lost_from(30);
        next.lost_from(40);
        assert_eq!(next.hint, 30);
        next.start_over(7);
        assert_eq!((next.hint, next.high_rxt), (7, 7));
    }
}
