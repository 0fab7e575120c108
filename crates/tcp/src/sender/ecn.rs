//! Explicit congestion notification at the sender (RFC 3168 §6.1.2; Linux `tcp_enter_cwr`). An ACK with ECE starts a
//! reduction, at most once per window, in state CWR and by the recovery rule. The next new segment carries the CWR flag.

use ackclock_core::trace::CaState;
use ackclock_core::Time;

use super::plain::Reasons;
use super::{AckWork, Sender};

/// ECN state of the sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct EcnSender {
    /// Both ends agreed on ECN.
    pub on: bool,
    /// Both ends agreed on accurate ECN (RFC 9768).
    pub accurate: bool,
    /// The current ACK carries ECE, or its counter reports marks.
    pub echo: bool,
    /// Marks reported by the counter of the current ACK, packets.
    pub newly: u32,
    /// The next new segment carries CWR.
    pub cwr_due: bool,
}

impl EcnSender {
    /// Marked segments among those that the current ACK delivers. The counter of accurate ECN may include other packets.
    #[inline]
    pub fn marked(&self, delivered: u32) -> u32 {
        match (self.echo, self.accurate) {
            (false, _) => 0,
            (true, false) => delivered,
            (true, true) => self.newly,
        }
    }
}

impl Sender {
    /// Schedule the CWR flag, which reports a cwnd reduction, whatever the cause.
    pub(super) fn tell_reduction(&mut self) {
        self.set_cwr_due(self.ecn.on && !self.ecn.accurate);
    }

    pub(super) fn set_cwr_due(&mut self, due: bool) {
        self.ecn.cwr_due = due;
        self.reasons.set(Reasons::CWR, due);
    }

    /// Enter CWR because the current ACK, with effects `w`, reports a mark.
    pub(super) fn enter_cwr_for_mark(&mut self, now: Time, w: &AckWork) {
        self.reduce_without_loss(now, Some(w), true);
    }

    /// Enter CWR because the device refused a packet or the controller requests it.
    pub(super) fn enter_cwr(&mut self, now: Time) {
        self.reduce_without_loss(now, None, false);
    }

    fn reduce_without_loss(&mut self, now: Time, w: Option<&AckWork>, marked: bool) {
        self.undo.keep_reduction();
        if self.ca_state < CaState::Cwr {
            self.undo.forget();
            self.init_reduction(now, w, marked);
            self.set_state(now, CaState::Cwr);
        }
    }
}
