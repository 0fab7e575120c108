//! Loss detection by counting: dupthresh (RFC 5681 §3.2, RFC 6675 §4 IsLost), forward acknowledgment with lost-retransmission
//! detection (Linux up to 4.x), NewReno (RFC 6582). The threshold is the measured reordering degree of the network.
//!
//! Linux up to 3.x has two more recovery triggers (`tcp_time_to_recover`, "Trick#3" and "Trick#4"). With FACK,
//! a head older than the RTO triggers it, because every ACK restarts the timer. So does a flight smaller than
//! the reordering degree with half of it SACKed and no new data to send. Both require a dubious ACK.

use ackclock_core::trace::CaState;
use ackclock_core::Time;

use super::Sender;
use crate::config::{Config, Detection};
use crate::scoreboard::{Outstanding, LOST, RETRANS, SACKED};

/// Linux sysctl `tcp_max_reordering`.
const MAX_REORDERING: u32 = 300;

/// Counters for loss detection.
#[derive(Clone, Debug)]
pub struct Dupthresh {
    /// DupThresh: reordering degree of the network, segments (Linux `reordering`).
    degree: u32,
    /// DupAcks of RFC 6675 §5.
    dup_acks: u32,
    /// Number after the last examined segment.
    mark_ptr: u64,
    /// Forward acknowledgment is in use: holes count as losses. Cleared once reordering is seen.
    fack: bool,
    /// `recover` of RFC 6582: snd_nxt when the last recovery or loss episode began.
    recover: u64,
}

impl Dupthresh {
    /// Return the initial state of a connection.
    pub fn new(config: &Config) -> Dupthresh {
        Dupthresh { degree: config.loss.dup_thresh, dup_acks: 0, mark_ptr: 0, fack: true, recover: 0 }
    }

    /// Reordering degree, segments.
    #[inline]
    pub fn degree(&self) -> u32 {
        self.degree
    }

    /// Count an ACK that reported something new (RFC 6675 §2).
    pub fn count(&mut self) {
        self.dup_acks += 1;
    }

    /// Reset DupAcks: the cumulative ACK advanced, or the timer expired (RFC 6675 §5, §5.1).
    #[inline]
    pub fn reset(&mut self) {
        self.dup_acks = 0;
    }

    /// Record `snd_nxt` as the end of a new episode.
    pub fn note_recover(&mut self, snd_nxt: u64) {
        self.recover = snd_nxt;
    }

    /// Lower the degree after a timeout in Disorder, which shows that it was too high (Linux `tcp_enter_loss`).
    pub fn lower(&mut self, usual: u32) {
        self.degree = self.degree.min(usual);
    }

    /// Set the reordering degree to the number of `outstanding` segments, because more duplicate ACKs arrived
    /// than they can explain. Linux before RACK only raises the degree (memory); later versions set it.
    pub fn measured_without_sack(&mut self, detection: Detection, outstanding: u32) {
        let measured = outstanding.min(MAX_REORDERING);
        self.degree = match detection {
            Detection::Rack => measured,
            Detection::Fack => self.degree.max(measured),
            Detection::Dupthresh => self.degree,
        };
    }

    /// Examine segments from number `n` on again.
    pub fn look_from(&mut self, n: u64) {
        self.mark_ptr = n;
    }
}

impl Sender {
    /// Mark losses by forward acknowledgment while it is in use, else by DupThresh.
    pub(super) fn mark_by_counting(&mut self, now: Time) {
        if self.config.loss.detection == Detection::Fack && self.dupthresh.fack {
            // Linux `tcp_time_to_recover`, `tcp_update_scoreboard` up to 4.x: fackets_out
            let fackets = self.board.sacked_end() - self.board.first;
            if self.board.sacked_out > 0
                && (fackets > self.dupthresh.degree as u64 || self.board.lost_out > 0)
            {
                let count = fackets.saturating_sub(self.dupthresh.degree as u64).max(1);
                self.mark_up_to(self.board.first + count);
            }
            // not with tail loss probes: they wait until the head is old, and Linux introduced them after
            // removing this rule (3.10; memory)
            if self.ca_state < CaState::Loss && !self.config.loss.tlp {
                self.mark_timed_out(now);
            }
            if self.ca_state == CaState::Recovery {
                self.mark_lost_retransmits();
            }
        } else {
            // RFC 6675 §5: IsLost (step 2, and C on later ACKs), else DupAcks (step 1)
            if let Some(top) = self.board.kth_highest_sacked(self.dupthresh.degree as u64) {
                self.mark_up_to(top);
            } else if self.dupthresh.dup_acks >= self.dupthresh.degree && self.ca_state < CaState::Recovery {
                self.mark_up_to(self.board.first + 1);
            }
            self.mark_limited();
        }
    }

    /// Mark segments older than the RTO lost, starting at the head (Linux up to 3.x `tcp_head_timedout`, `tcp_timeout_skbs`).
    fn mark_timed_out(&mut self, now: Time) {
        let (ticks, rto) = (self.timer.ticks, self.rtt.rto());
        let old = |s: &Outstanding| ticks.between(s.xmit, now) > rto;
        if !self.board.head().is_some_and(old) {
            return;
        }
        let mut n = self.dupthresh.mark_ptr.max(self.board.first);
        while n < self.board.next && old(self.board.get(n)) {
            n += 1;
        }
        self.mark_up_to(n);
    }

    /// Mark the head lost if the flight is no larger than the reordering degree, half of it is SACKed, and
    /// no new data may be sent: the required duplicate ACKs cannot arrive (Linux up to 3.x
    /// `tcp_time_to_recover`).
    pub(super) fn mark_limited(&mut self) {
        let (out, sacked) = (self.board.packets_out(), self.board.sacked_out);
        let applies = self.config.loss.detection == Detection::Fack
            && self.ca_state < CaState::Recovery
            && out <= self.dupthresh.degree
            && sacked >= self.config.loss.dup_thresh.max(out / 2)
            && !self.may_send_now();
        if applies {
            self.mark_first_unsacked();
        }
    }

    /// Mark every un-SACKed segment below number `end` lost. The mark pointer ensures that each is examined once.
    fn mark_up_to(&mut self, end: u64) {
        let from = self.dupthresh.mark_ptr.max(self.board.first);
        for n in from..end.min(self.board.next) {
            if !self.board.get(n).is(LOST | SACKED) {
                self.mark_lost(n);
            }
        }
        self.dupthresh.mark_ptr = self.dupthresh.mark_ptr.max(end);
    }

    /// Detect lost retransmissions under FACK: a segment sent after the retransmission was SACKed (Linux
    /// 2.6.3x-4.x `tcp_mark_lost_retrans`; no allowance for reordering).
    fn mark_lost_retransmits(&mut self) {
        let sacked_end = self.board.sacked_end();
        let mut cursor = self.board.oldest_sent();
        while let Some(n) = cursor {
            let s = *self.board.get(n);
            cursor = self.board.sent_after(n);
            if s.is(RETRANS) {
                let next =
                    self.board.first + s.noted.wrapping_sub(self.board.first as u32) as i32 as i64 as u64;
                if (next as i64) >= sacked_end as i64 {
                    break;
                }
                if s.is(LOST) {
                    self.mark_lost(n);
                }
            } else if n >= sacked_end {
                break;
            }
        }
    }

    /// NewReno (RFC 6582; Linux `tcp_newreno_mark_lost`): mark the head lost at dupthresh and on every partial
    /// ACK. Duplicates of the ACK that ended recovery come from segments received twice and do not indicate a loss
    /// (RFC 6582 §3.2 step 1). Linux needs no such test, because it stays in the state until more is acknowledged.
    pub(super) fn mark_newreno(&mut self, una_advanced: bool) {
        let stale = self.config.loss.full_ack_ends && self.snd_una <= self.dupthresh.recover;
        let reached = self.board.sacked_out >= self.dupthresh.degree;
        let below = self.ca_state < CaState::Recovery && reached && !stale;
        let partial = self.ca_state == CaState::Recovery && una_advanced;
        if (below || partial) && !self.board.get(self.board.first).is(LOST) {
            self.mark_lost(self.board.first);
        }
        self.mark_limited();
    }

    /// Measure reordering: segment `low`, which begins at offset `start`, was delivered after segments up to `sacked_end`
    /// had been SACKed (Linux `tcp_check_sack_reordering`). Linux up to 4.15 counts packets, later versions bytes (memory).
    pub(super) fn check_reordering(&mut self, low: u64, start: u64, sacked_end: u64) {
        let metric = match self.config.loss.detection {
            Detection::Rack => self.highest_sack().saturating_sub(start).div_ceil(self.smss as u64),
            _ => sacked_end.saturating_sub(low),
        };
        if metric == 0 {
            return;
        }
        let metric = metric.min(MAX_REORDERING as u64) as u32;
        if metric > self.dupthresh.degree && self.config.loss.detection != Detection::Dupthresh {
            self.dupthresh.degree = metric;
            self.dupthresh.fack = false; // holes do not mean losses on this path (Linux up to 4.x `tcp_update_reordering`)
        }
        self.rack.saw_reordering();
        self.stats.reorderings += 1;
    }

    /// Measure reordering when an original filled a hole that had been retransmitted. The distance is that from the previous ACK,
    /// `prior_una`, to the highest SACK (Linux `tcp_try_undo_partial`). Kernels before RACK only record that reordering occurred.
    pub(super) fn check_partial_reordering(&mut self, prior_una: u64) {
        match self.config.loss.detection {
            Detection::Rack => self.check_reordering(self.board.first, prior_una, self.board.first),
            _ => {
                self.rack.saw_reordering();
                self.stats.reorderings += 1;
            }
        }
    }

    /// Offset after the last SACKed byte, or `snd_una` (Linux `tcp_highest_sack_seq`).
    fn highest_sack(&self) -> u64 {
        match self.board.sacked_out {
            _ if !self.sack => self.snd_una,
            0 => self.snd_una,
            _ => self.board.get(self.board.sacked_end() - 1).end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_that_reorders_is_known_at_the_start_and_believed_less_after_a_timeout() {
        let mut config = Config::profile("linux-3.2").expect("a profile");
        assert_eq!(Dupthresh::new(&config).degree(), 3);
        config.loss.dup_thresh = 12;
        let mut d = Dupthresh::new(&config);
        assert_eq!(d.degree(), 12);
        d.lower(3);
        assert_eq!(d.degree(), 3);
        d.lower(5);
        assert_eq!(d.degree(), 3);
    }
}
