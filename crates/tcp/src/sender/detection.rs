//! Loss detection (Linux `tcp_identify_packet_loss`, earlier `tcp_update_scoreboard`).
//!
//! | connection | lost segments | source | file |
//! |---|---|---|---|
//! | without SACK | the head, after DupThresh duplicate ACKs and on each partial ACK | RFC 6582 | `dupthresh.rs` |
//! | RACK | segments sent sufficiently long before one that was delivered | RFC 8985 | `rack.rs` |
//! | FACK | segments DupThresh below the highest SACK, holes included; by counting after reordering was seen | Linux up to 4.x | `dupthresh.rs` |
//! | dupthresh | segments with DupThresh SACKed segments above them | RFC 6675 §4 IsLost | `dupthresh.rs` |
//! | small windows | the first un-SACKed segment, if DupThresh duplicate ACKs cannot arrive | RFC 5827 | here |

use ackclock_core::trace::CaState;
use ackclock_core::Time;

use super::timers::TimerKind;
use super::{AckWork, Sender, TIMEOUT_MIN_TICKS};
use crate::config::{Detection, EarlyRetransmit};
use crate::scoreboard::{Marked, SACKED};

impl Sender {
    /// Mark the segments that this ACK shows to be lost.
    pub(super) fn identify_loss(&mut self, now: Time, w: &mut AckWork) {
        if self.board.packets_out() == 0 {
            return;
        }
        let prior_retrans = self.board.retrans_out;
        if !self.sack {
            self.mark_newreno(w.una_advanced);
        } else {
            match self.config.loss.detection {
                Detection::Rack => {
                    if self.rack.take_news() {
                        if let Some(wait) = self.rack_detect(now) {
                            // RFC 8985 §6.2 step 5: RACK_REORDERING timer (Linux `tcp_rack_mark_lost`)
                            let slack = self.timer.ticks.span(TIMEOUT_MIN_TICKS);
                            self.timer.arm(TimerKind::Reorder, now, (wait + slack).min(self.rtt.rto()));
                            w.set_timer = false;
                        }
                    }
                }
                Detection::Fack | Detection::Dupthresh => self.mark_by_counting(now),
            }
        }
        self.early_retransmit(now);
        w.lost_retrans |= prior_retrans > self.board.retrans_out;
    }

    /// Early retransmit (RFC 5827 §3.2, by segments): two or three segments are outstanding, all but one
    /// SACKed, and there is no new data. The retransmission is sent at once, or a quarter of the RTT later
    /// unless an ACK arrives first (Linux 3.5-4.10 `tcp_pause_early_retransmit`).
    pub(super) fn early_retransmit(&mut self, now: Time) {
        let outstanding = self.board.packets_out();
        let applies = self.config.loss.early_retransmit != EarlyRetransmit::Off
            && self.ca_state <= CaState::Disorder
            && (2..=3).contains(&outstanding)
            && self.board.lost_out == 0
            && self.board.sacked_out + 1 >= outstanding
            && !self.has_new_data();
        if !applies {
            return;
        }
        if self.config.loss.early_retransmit == EarlyRetransmit::Rfc5827 {
            self.mark_first_unsacked();
        } else if !self.timer.waits_for(TimerKind::Early) {
            let delay = (self.rtt.srtt() / 4).max(self.timer.ticks.span(TIMEOUT_MIN_TICKS));
            self.timer.arm(TimerKind::Early, now, delay);
        }
    }

    /// Mark the first hole lost.
    pub(super) fn mark_first_unsacked(&mut self) {
        if let Some(n) = (self.board.first..self.board.next).find(|&n| !self.board.get(n).is(SACKED)) {
            self.mark_lost(n);
        }
    }

    /// Mark segment `n`, or its retransmission, lost (Linux `tcp_mark_skb_lost`).
    pub(super) fn mark_lost(&mut self, n: u64) {
        let marked = self.board.mark_lost(n);
        if marked == Marked::No {
            return;
        }
        self.lost += 1;
        if self.losses {
            self.tell_lost(n);
        }
        self.next_seg.lost_from(n);
        if marked == Marked::LostAgain {
            self.stats.lost_retransmits += 1;
        }
        self.trace.marked(marked);
    }
}
