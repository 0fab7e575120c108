//! Explicit congestion notification at the sender (RFC 3168 §6.1.2; Linux `tcp_enter_cwr`): an ACK with ECE reduces the
//! window once per window, in state CWR, by the recovery rule; the next new segment says so with CWR.

use ackclock_core::trace::CaState;
use ackclock_core::Time;

use super::plain::Reasons;
use super::{AckWork, Sender};

/// State of ECN at the sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct EcnSender {
    /// Both ends agreed on ECN.
    pub on: bool,
    /// Both ends agreed on accurate ECN (RFC 9768).
    pub accurate: bool,
    /// The ACK under way carries ECE, or reports marks by its counter.
    pub echo: bool,
    /// Marks reported by that counter, packets.
    pub newly: u32,
    /// The next new segment carries CWR.
    pub cwr_due: bool,
}

impl EcnSender {
    /// Marked segments among those that the current ACK delivers. A counter includes other packets, too.
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
    /// The window was reduced for any reason: CWR reports it.
    pub(super) fn tell_reduction(&mut self) {
        self.set_cwr_due(self.ecn.on && !self.ecn.accurate);
    }

    pub(super) fn set_cwr_due(&mut self, due: bool) {
        self.ecn.cwr_due = due;
        self.reasons.set(Reasons::CWR, due);
    }

    /// The ACK that did `w` brings a mark.
    pub(super) fn enter_cwr_for_mark(&mut self, now: Time, w: &AckWork) {
        self.reduce_without_loss(now, Some(w), true);
    }

    /// The device refused a packet, or the controller asks for it.
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
