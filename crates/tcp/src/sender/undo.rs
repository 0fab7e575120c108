//! Undo of spurious reductions: by DSACK, by timestamps (Eifel, RFC 3522), and by F-RTO (RFC 5682). Linux
//! `tcp_may_undo` and related functions.

use std::num::{NonZeroU32, NonZeroU64};

use ackclock_cc::{CongestionControl, RecoveryExit, RecoveryRule};
use ackclock_core::trace::{CaState, Event, ExitCause};
use ackclock_core::{Segment, Time};

use super::Sender;

/// State before a reduction, kept for an undo.
#[derive(Clone, Debug, Default)]
pub(super) struct Undo {
    /// Linux `undo_marker`: snd_una when the reduction began; `None` if there is nothing to undo.
    marker: Option<NonZeroU64>,
    /// Linux `undo_retrans`: retransmissions since then not yet reported by a DSACK.
    unreported: u32,
    /// A segment has been retransmitted since then. Until then `unreported` = 0 proves nothing
    /// (Linux `undo_retrans` < 0).
    resent: bool,
    /// Linux `retrans_stamp`: timestamp of the first retransmission; `None` if none is outstanding.
    stamp: Option<NonZeroU32>,
    /// ssthresh before the reduction, segments; 0: the reduction is not to be undone.
    prior_ssthresh: u32,
}

impl Undo {
    /// Begin a reduction with this many retransmissions in flight (Linux `tcp_init_undo`).
    fn begin(&mut self, snd_una: u64, in_flight: u32) {
        self.marker = NonZeroU64::new(snd_una);
        (self.unreported, self.resent) = (in_flight, in_flight > 0);
    }

    /// Whether there is something to undo.
    pub fn possible(&self) -> bool {
        self.marker.is_some()
    }

    /// Set the ssthresh that an undo restores.
    pub fn remember(&mut self, ssthresh: u32) {
        self.prior_ssthresh = ssthresh;
    }

    /// Prevent the undo of the window: the reduction is genuine.
    pub fn keep_reduction(&mut self) {
        self.prior_ssthresh = 0;
    }

    /// Clear the state: there is nothing left to undo.
    pub fn forget(&mut self) {
        self.marker = None;
    }

    /// Record a retransmission at this value of the timestamp clock.
    pub fn resent(&mut self, stamp: u32) {
        self.unreported += 1;
        self.resent = true;
        self.stamp = self.stamp.or(NonZeroU32::new(stamp));
    }

    /// Timestamp of the first outstanding retransmission.
    pub fn since(&self) -> Option<u32> {
        self.stamp.map(NonZeroU32::get)
    }

    /// Clear the timestamp, because no retransmission is outstanding.
    pub fn no_retransmission(&mut self) {
        self.stamp = None;
    }

    /// Process a DSACK for `segments` up to offset `end` (Linux `tcp_check_dsack`, `tcp_sacktag_one`).
    pub fn on_dsack(&mut self, end: u64, segments: u64) {
        if self.marker.is_some_and(|marker| end > marker.get()) {
            self.unreported = (self.unreported as u64).saturating_sub(segments) as u32;
        }
    }

    /// Whether DSACKs reported every retransmission as unnecessary.
    fn all_needless(&self) -> bool {
        self.possible() && self.resent && self.unreported == 0
    }
}

/// Whether the echoed timestamp (TSecr) is older than `stamp`, so that the original arrived (Eifel, RFC 3522 §3.2).
pub(super) fn echo_before(seg: &Segment, stamp: u32) -> bool {
    seg.has_ts && seg.ts_ecr > 0 && seg.ts_ecr < stamp
}

impl Sender {
    pub(super) fn init_undo(&mut self) {
        let probe = self.loss_probe.is_retransmission() as u32;
        self.undo.begin(self.snd_una, self.board.retrans_out + probe);
    }

    /// Whether the ACK was triggered by data sent before any retransmission, according to timestamps (Linux
    /// `tcp_packet_delayed`).
    fn packet_delayed(&self, seg: &Segment) -> bool {
        match self.undo.since() {
            Some(stamp) => echo_before(seg, stamp),
            // Without SACK the stamp is cleared at high_seq, even if a segment was retransmitted.
            None => self.sack || self.snd_una < self.high_seq,
        }
    }

    /// Whether the reduction may be undone (Linux `tcp_may_undo`).
    fn may_undo(&self, seg: &Segment) -> bool {
        self.config.loss.undo
            && self.undo.possible()
            && (self.undo.all_needless() || self.packet_delayed(seg))
    }

    /// Restore cwnd and ssthresh from before the reduction (Linux `tcp_undo_cwnd_reduction`). `unmark`: also clear all loss marks.
    pub(super) fn undo_reduction(&mut self, now: Time, unmark: bool) {
        if unmark {
            self.board.unmark_all_lost();
            self.next_seg.none_lost(self.board.next);
            self.dupthresh.look_from(self.board.first);
        }
        let before = self.window.cwnd;
        if self.undo.prior_ssthresh > 0 {
            self.window.cwnd = self.cc.undo_cwnd(&self.window);
            if self.undo.prior_ssthresh > self.window.ssthresh {
                self.window.ssthresh = self.undo.prior_ssthresh;
                self.set_cwr_due(false); // ssthresh has not been reduced after all (Linux tcp_ecn_withdraw_cwr)
            }
        }
        if matches!(self.ca_state, CaState::Recovery | CaState::Cwr) && !self.controls {
            let (cwnd, ssthresh, pipe) = (self.window.cwnd, self.window.ssthresh, self.board.pipe());
            self.window.cwnd = self.rule.exit(&RecoveryExit { cwnd, ssthresh, pipe, undone: true }).max(1);
        }
        self.usage.window_changed(now);
        self.undo.forget();
        self.rack.look_again();
        self.stats.undos += 1;
        if self.ca_state == CaState::Recovery {
            self.finish_episode(now, before, ExitCause::Undo);
        }
        if self.trace.is_on() {
            self.record(now, Event::Undo, self.snd_una, 0, 0);
        }
    }

    /// Try to undo at the end of recovery. True if the reduction was undone (Linux `tcp_try_undo_recovery`).
    pub(super) fn try_undo_recovery(&mut self, now: Time, seg: &Segment) -> bool {
        if self.may_undo(seg) {
            self.undo_reduction(now, false);
            return true;
        }
        self.rack.recovery_ended();
        false
    }

    /// Process a partial ACK if the original filled the hole: stop retransmitting, and undo if no
    /// retransmission is in flight (Linux `tcp_try_undo_partial`). True if retransmissions are in flight.
    pub(super) fn try_undo_partial(&mut self, now: Time, seg: &Segment, prior_una: u64) -> bool {
        if !(self.config.loss.undo && self.undo.possible() && self.packet_delayed(seg)) {
            return false;
        }
        self.check_partial_reordering(prior_una);
        if self.board.retrans_out > 0 {
            return true;
        }
        self.forget_retransmissions();
        self.undo_reduction(now, true);
        self.try_keep_open(now);
        false
    }

    /// Undo if DSACKs reported every retransmission as unnecessary (RFC 3708; Linux `tcp_try_undo_dsack`).
    pub(super) fn try_undo_dsack(&mut self, now: Time) -> bool {
        if self.config.loss.undo && self.undo.all_needless() {
            self.rack.recovery_undone();
            self.undo_reduction(now, false);
            return true;
        }
        false
    }

    /// Undo a spurious timeout, detected by F-RTO (RFC 5682) or as in `may_undo` (Linux `tcp_try_undo_loss`).
    pub(super) fn try_undo_loss(&mut self, now: Time, seg: &Segment, frto: bool) -> bool {
        let proven = frto && self.config.loss.undo; // independent of earlier undos
        if !proven && !self.may_undo(seg) {
            return false;
        }
        self.undo_reduction(now, true);
        self.stats.spurious_rtos += frto as u32;
        self.patience.timeouts = 0;
        if self.holds_for_non_sack() {
            self.forget_retransmissions();
        } else if frto || self.sack {
            self.set_state(now, CaState::Open);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_dsacks_report_all_that_was_sent_again_the_reduction_was_needless() {
        let mut undo = Undo::default();
        undo.begin(1_001, 0);
        assert!(!undo.all_needless(), "nothing was sent again");
        undo.resent(7);
        undo.resent(9);
        assert_eq!(undo.since(), Some(7));
        undo.on_dsack(1_001, 1); // from before the reduction: ignored
        undo.on_dsack(2_001, 1);
        assert!(!undo.all_needless());
        undo.on_dsack(6_001, 1);
        assert!(undo.all_needless());
        undo.forget();
        assert!(!undo.all_needless());
    }

    #[test]
    fn what_was_in_flight_again_when_it_began_has_to_be_reported_too() {
        let mut undo = Undo::default();
        undo.begin(1, 2);
        undo.on_dsack(1_501, 2);
        assert!(undo.all_needless());
    }
}
