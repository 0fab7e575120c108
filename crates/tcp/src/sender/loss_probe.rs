//! Tail loss probes (RFC 8985 §7; Linux `tcp_schedule_loss_probe`, `tcp_send_loss_probe`, `tcp_process_tlp_ack`). If no ACK
//! arrives, one segment is sent before the RTO expires, and the SACK that it triggers shows which segments are missing.

use std::num::NonZeroU64;

use ackclock_core::trace::{CaState, ExitCause};
use ackclock_core::Time;

use super::intent::First;
use super::timers::TimerKind;
use super::{AckWork, Leaving, Sender, TIMEOUT_MIN_TICKS};

/// Tail loss probe state.
#[derive(Clone, Debug, Default)]
pub(super) struct LossProbe {
    /// TLP.end_seq: SND.NXT when the probe was sent; `None` if no probe is outstanding.
    high_seq: Option<NonZeroU64>,
    /// TLP.is_retrans: the probe was a retransmission.
    again: bool,
}

impl LossProbe {
    /// Whether a probe is outstanding.
    #[inline]
    pub fn is_out(&self) -> bool {
        self.high_seq.is_some()
    }

    /// Whether the outstanding probe is a retransmission.
    pub fn is_retransmission(&self) -> bool {
        self.is_out() && self.again
    }

    /// Whether a DSACK that ends at `end` reports the probe. In that case the original of a retransmitted
    /// probe has arrived.
    pub fn ends_at(&self, end: u64) -> bool {
        self.high_seq.is_some_and(|high| high.get() == end)
    }

    /// Stop waiting for the ACK of the probe.
    pub fn end(&mut self) {
        self.high_seq = None;
    }
}

impl Sender {
    /// Arm the timer for a probe, if one is allowed (§7.2; Linux `tcp_schedule_loss_probe`). PTO = 2 SRTT,
    /// more for a single segment, whose ACK may be delayed (Linux adds the minimum RTO), and at most the RTO.
    /// `advancing`: the RTO would be restarted now.
    #[inline(always)]
    pub(super) fn schedule_probe(&mut self, now: Time, advancing: bool) -> bool {
        let outstanding = self.board.packets_out();
        if !(self.config.loss.tlp & self.sack) // cheap conditions, evaluated without branches
            | (outstanding == 0)
            | !matches!(self.ca_state, CaState::Open | CaState::Cwr)
            | self.timer.waits_for(TimerKind::Early)
        {
            return false;
        }
        let mut pto = match self.rtt.has_sample() {
            true if outstanding > 1 => self.rtt.srtt() * 2 + self.timer.ticks.span(TIMEOUT_MIN_TICKS),
            true => self.rtt.srtt() * 2 + self.config.timers.min_rto,
            false => self.config.timers.initial_rto,
        };
        if advancing {
            pto = pto.min(self.rtt.rto());
        } else if self.board.head().is_some_and(|head| head.xmit + self.rtt.rto() < now + pto) {
            pto = self.rto_left(now).map_or(pto, |left| left.min(pto));
        }
        if self.pacer.is_some() {
            pto = pto + self.pacing_delay(now);
        }
        self.timer.arm(TimerKind::Tlp, now, pto);
        true
    }

    /// Process an expired PTO: send a probe, unless one is outstanding (§7.3).
    pub(super) fn on_probe_timer(&mut self, now: Time) {
        // rearm_rto must count from the head's transmission if no probe is sent, and from now if one is sent: see `probe`.
        if self.loss_probe.is_out() {
            self.rearm_rto(now);
        } else {
            self.intent.force(First::LossProbe);
            self.timer.suspend();
        }
    }

    /// Send the probe: new data if possible, else the last segment (§7.3; Linux `tcp_send_loss_probe`).
    pub(super) fn probe(&mut self, now: Time) -> Option<Leaving> {
        let last = self.board.next - 1;
        let mut seg = self.next_new(now, true);
        let again = seg.is_none() && self.board.packets_out() > 0;
        if again
            && (self.probe_waits()
                || self.lies_beyond(last)
                || self.still_queued(self.board.get(last).start()))
        {
            self.rearm_rto(now); // counted from the head's transmission
            return None;
        }
        self.timer.disarm();
        self.stats.tlps += 1;
        if again {
            self.note_probed(self.board.next - 1);
            let last = self.begin_retransmission(self.board.next - 1, true);
            seg = Some(self.resend(now, last, false));
        }
        self.intent.take_sent();
        self.loss_probe = LossProbe { high_seq: NonZeroU64::new(self.snd_nxt), again };
        self.timer.disarm();
        self.rearm_rto(now);
        seg
    }

    /// Whether new data that the receiver's window allows waits for something else, such as the host's queue. Then
    /// nothing is sent, not even the last segment again.
    fn probe_waits(&self) -> bool {
        let available = self.stream.from(self.snd_nxt);
        let segment = available.min(self.smss as u64);
        available > 0 && self.snd_nxt + segment <= self.snd_una + self.snd_wnd
    }

    /// Whether the receiver has shrunk its window to before segment `n`, which is not the head.
    fn lies_beyond(&self, n: u64) -> bool {
        n != self.board.first && !self.in_window(self.board.get(n).start())
    }

    /// Whether offset `start` lies within the receiver's window (Linux `__tcp_retransmit_skb`).
    pub(super) fn in_window(&self, start: u64) -> bool {
        start < self.snd_una + self.snd_wnd
    }

    /// Process an ACK while a probe is outstanding (§7.4.2; Linux `tcp_process_tlp_ack`).
    pub(super) fn process_tlp_ack(&mut self, now: Time, ack: u64, w: &mut AckWork) {
        let Some(high) = self.loss_probe.high_seq.map(NonZeroU64::get) else { return };
        if ack < high {
            return;
        }
        if !self.loss_probe.again || w.dsack_tlp {
            self.loss_probe.end(); // the probe was new data, or the original had arrived
        } else if ack > high {
            // The probe repaired a loss that nothing else detected: reduce once.
            if self.losses {
                self.tell_repaired();
            }
            self.init_reduction(now, Some(w), false);
            self.set_state(now, CaState::Cwr);
            self.end_reduction(now, ExitCause::FullAck);
            if !self.controls {
                self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
            }
            self.try_keep_open(now);
        } else if w.is_dup() && !w.data_sacked {
            self.loss_probe.end(); // both the original and the probe arrived
        } else {
            w.probe_acked = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dsack_up_to_its_end_is_of_the_probe_until_its_answer_came_rfc_8985_section_7_4_2() {
        let old = LossProbe { high_seq: NonZeroU64::new(5_001), again: true };
        assert!(old.is_out() && old.is_retransmission());
        assert!(old.ends_at(5_001) && !old.ends_at(4_001));
        let mut new = LossProbe { high_seq: NonZeroU64::new(5_001), again: false };
        assert!(new.is_out() && !new.is_retransmission() && new.ends_at(5_001));
        new.end();
        assert!(!new.is_out() && !new.ends_at(5_001));
    }
}
