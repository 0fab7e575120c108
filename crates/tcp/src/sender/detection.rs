//! Which segments are lost: RACK (RFC 8985), FACK with lost-retransmission detection (Linux up to 4.x), dupthresh
//! (RFC 6675 IsLost), NewReno (RFC 6582), early retransmit (RFC 5827).

use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};

use super::timers::TimerKind;
use super::{AckWork, Sender, REO_WND_PERSIST, TIMEOUT_MIN_TICKS};
use crate::config::{Detection, EarlyRetransmit};
use crate::scoreboard::{Marked, SACKED};

impl Sender {
    /// Mark what this ACK shows to be lost.
    pub(super) fn identify_loss(&mut self, now: Time, w: &mut AckWork) {
        if self.board.packets_out() == 0 {
            return;
        }
        let prior_retrans = self.board.retrans_out;
        if !self.sack {
            self.mark_newreno(w.una_advanced);
        } else {
            match self.config.detection {
                Detection::Rack => {
                    if self.rack.advanced {
                        self.rack.advanced = false;
                        if let Some(wait) = self.rack_detect(now) {
                            let slack = self.timer.ticks.span(TIMEOUT_MIN_TICKS);
                            self.timer.arm(TimerKind::Reorder, now, (wait + slack).min(self.rtt.rto()));
                            w.set_timer = false;
                        }
                    }
                }
                Detection::Fack if self.dupthresh.trusts_fack() => {
                    let fackets = self.board.sacked_end() - self.board.first;
                    if self.board.sacked_out > 0
                        && (fackets > self.dupthresh.degree() as u64 || self.board.lost_out > 0)
                    {
                        let count = fackets.saturating_sub(self.dupthresh.degree() as u64).max(1);
                        self.mark_up_to(self.board.first + count);
                    }
                    if self.ca_state == CaState::Recovery {
                        self.mark_lost_retransmits();
                    }
                }
                Detection::Dupthresh | Detection::Fack => {
                    if let Some(top) = self.board.kth_highest_sacked(self.dupthresh.degree() as u64) {
                        self.mark_up_to(top);
                    } else if self.dupthresh.reached() && self.ca_state < CaState::Recovery {
                        self.mark_up_to(self.board.first + 1);
                    }
                }
            }
        }
        self.early_retransmit(now);
        w.lost_retrans |= prior_retrans > self.board.retrans_out;
    }

    /// RACK (RFC 8985 §6.2 step 5). Returns how long to wait for the newest segment that may yet be reordered.
    pub(super) fn rack_detect(&mut self, now: Time) -> Option<Span> {
        let reo_wnd = self.reo_wnd();
        let mut wait = Span::ZERO;
        let mut cursor = self.board.oldest_sent();
        while let Some(n) = cursor {
            let s = *self.board.get(n);
            cursor = self.board.sent_after(n);
            if !self.rack.sent_before(s.xmit, s.end) {
                break;
            }
            let due = s.xmit + self.rack.rtt + reo_wnd;
            if due <= now {
                self.mark_lost(n);
            } else {
                wait = wait.max(due - now);
            }
        }
        (wait > Span::ZERO).then_some(wait)
    }

    /// RFC 8985 §6.2 step 4; Linux `tcp_rack_reo_wnd`.
    pub(super) fn reo_wnd(&self) -> Span {
        let at_dupthresh = self.board.sacked_out >= self.dupthresh.degree();
        if !self.rack.reord_seen && (self.ca_state >= CaState::Recovery || at_dupthresh) {
            return Span::ZERO;
        }
        ((self.rtt.min_rtt() / 4) * self.rack.reo_wnd_mult as u64).min(self.rtt.srtt())
    }

    pub(super) fn update_reo_wnd(&mut self, w: &AckWork) {
        if !self.rack.dsack_seen && self.rack.reo_wnd_persist > 0 {
            return;
        }
        let Some(prior_delivered) = w.prior_delivered else { return };
        if prior_delivered < self.rack.last_delivered {
            self.rack.dsack_seen = false;
        }
        if self.rack.dsack_seen {
            self.rack.reo_wnd_mult = (self.rack.reo_wnd_mult + 1).min(255);
            self.rack.dsack_seen = false;
            self.rack.last_delivered = self.delivered;
            self.rack.reo_wnd_persist = REO_WND_PERSIST;
        } else if self.rack.reo_wnd_persist == 0 {
            self.rack.reo_wnd_mult = 1;
        }
    }

    /// RFC 5827, at once or a quarter of the RTT later.
    pub(super) fn early_retransmit(&mut self, now: Time) {
        let outstanding = self.board.packets_out();
        let applies = self.config.early_retransmit != EarlyRetransmit::Off
            && self.ca_state <= CaState::Disorder
            && (2..=3).contains(&outstanding)
            && self.board.lost_out == 0
            && self.board.sacked_out + 1 >= outstanding
            && !self.has_new_data();
        if !applies {
            return;
        }
        if self.config.early_retransmit == EarlyRetransmit::Rfc5827 {
            self.mark_first_unsacked();
        } else if !self.timer.waits_for(TimerKind::Early) {
            let delay = (self.rtt.srtt() / 4).max(self.timer.ticks.span(TIMEOUT_MIN_TICKS));
            self.timer.arm(TimerKind::Early, now, delay);
        }
    }

    pub(super) fn mark_first_unsacked(&mut self) {
        if let Some(n) = (self.board.first..self.board.next).find(|&n| !self.board.get(n).is(SACKED)) {
            self.mark_lost(n);
        }
    }

    pub(super) fn mark_lost(&mut self, n: u64) {
        let marked = self.board.mark_lost(n);
        if marked == Marked::No {
            return;
        }
        self.lost += 1;
        self.next_seg.lost_from(n);
        if marked == Marked::LostAgain {
            self.stats.lost_retransmits += 1;
        }
        self.trace.marked(marked);
    }
}
