//! Reductions that were a mistake: DSACK undo, Eifel by timestamps (RFC 3522), F-RTO's verdict (RFC 5682).
//! Linux `tcp_may_undo` and kin.

use ackclock_cc::{CongestionControl, RecoveryExit, RecoveryRule};
use ackclock_core::trace::{CaState, Event, ExitCause};
use ackclock_core::{Segment, Time};

use super::{AckWork, Sender, REO_WND_PERSIST};

impl Sender {
    pub(super) fn init_undo(&mut self) {
        self.undo_marker = Some(self.snd_una);
        self.undo_retrans = self.board.retrans_out as i64;
        if self.tlp_high_seq.is_some() && self.tlp_retrans {
            self.undo_retrans += 1;
        }
        if self.undo_retrans == 0 {
            self.undo_retrans = -1; // zero would mean: everything sent again was reported needless
        }
    }

    /// TSecr older than `stamp`: the original arrived (Eifel, RFC 3522).
    pub(super) fn echo_before(&self, seg: &Segment, stamp: u32) -> bool {
        seg.has_ts && seg.ts_ecr > 0 && seg.ts_ecr < stamp
    }

    /// Linux `tcp_packet_delayed`.
    pub(super) fn packet_delayed(&self, seg: &Segment) -> bool {
        match self.retrans_stamp {
            Some(stamp) => self.echo_before(seg, stamp),
            None => true,
        }
    }

    pub(super) fn may_undo(&self, seg: &Segment) -> bool {
        self.config.undo && self.undo_marker.is_some() && (self.undo_retrans == 0 || self.packet_delayed(seg))
    }

    pub(super) fn undo_reduction(&mut self, now: Time, unmark: bool) {
        if unmark {
            self.board.unmark_all_lost();
            self.rexmit_hint = self.board.next;
            self.mark_ptr = self.board.first;
        }
        let before = self.window.cwnd;
        if self.prior_ssthresh > 0 {
            self.window.cwnd = self.cc.undo_cwnd(&self.window);
            self.window.ssthresh = self.window.ssthresh.max(self.prior_ssthresh);
        }
        if matches!(self.ca_state, CaState::Recovery | CaState::Cwr) && !self.controls {
            let (cwnd, ssthresh, pipe) = (self.window.cwnd, self.window.ssthresh, self.board.pipe());
            self.window.cwnd = self.rule.exit(&RecoveryExit { cwnd, ssthresh, pipe, undone: true }).max(1);
        }
        self.cwnd_stamp = now;
        self.undo_marker = None;
        self.rack.advanced = true;
        self.stats.undos += 1;
        if self.ca_state == CaState::Recovery {
            self.finish_episode(now, before, ExitCause::Undo);
        }
        if self.records.is_some() {
            self.record(now, Event::Undo, self.snd_una, 0, 0);
        }
    }

    /// At the end of recovery: true if it was undone.
    pub(super) fn try_undo_recovery(&mut self, now: Time, seg: &Segment) -> bool {
        if self.may_undo(seg) {
            self.undo_reduction(now, false);
            return true;
        }
        self.rack.reo_wnd_persist = self.rack.reo_wnd_persist.saturating_sub(1);
        false
    }

    /// A partial ACK that the original filled: stop retransmitting, undo when nothing sent again is in flight.
    pub(super) fn try_undo_partial(&mut self, now: Time, seg: &Segment, w: &AckWork) -> bool {
        if !(self.config.undo && w.una_advanced && self.undo_marker.is_some() && self.packet_delayed(seg)) {
            return false;
        }
        self.rack.reord_seen = true;
        self.stats.reorderings += 1;
        if self.board.retrans_out > 0 {
            return true;
        }
        self.undo_reduction(now, true);
        self.set_state(now, CaState::Open);
        self.try_keep_open(now);
        false
    }

    /// Every retransmission was reported needless by DSACK.
    pub(super) fn try_undo_dsack(&mut self, now: Time) -> bool {
        if self.config.undo && self.undo_marker.is_some() && self.undo_retrans == 0 {
            self.rack.reo_wnd_persist = REO_WND_PERSIST.min(self.rack.reo_wnd_persist + 1);
            self.undo_reduction(now, false);
            self.set_state(now, CaState::Open);
            return true;
        }
        false
    }

    pub(super) fn try_undo_loss(&mut self, now: Time, seg: &Segment, frto: bool) -> bool {
        let proven = frto && self.config.undo && self.undo_marker.is_some();
        if !proven && !self.may_undo(seg) {
            return false;
        }
        self.undo_reduction(now, true);
        self.stats.spurious_rtos += frto as u64;
        self.retransmits = 0;
        if frto || self.sack {
            self.set_state(now, CaState::Open);
        }
        true
    }
}
