//! Choice of the next segment. An event that changes it (an ACK, a timer, a write of the application) sets the intent, and polling carries
//! it out until nothing remains to be sent: first one segment that ignores the windows, if requested, then the segments named by [`Next`].
//!
//! | next | segments sent | set by |
//! |---|---|---|
//! | `Nothing` | none | polling, when everything else was sent |
//! | `New` | new data | an ACK, the application or the pacing clock |
//! | `Lost` | segments marked lost | a timer; new data waits for an ACK |
//! | `LostThenNew` | segments marked lost, then new data | an ACK while segments are lost (Linux REXMIT_LOST) |
//! | `NewThenLost` | new data; if there is none, segments marked lost | an ACK in F-RTO (RFC 5682 §2.1 step 2b; Linux REXMIT_NEW) |
//!
//! | first | combined with | set by |
//! |---|---|---|
//! | `Head` | `Lost`, `LostThenNew`; kept until one of them is set | a retransmission timeout; RFC 6675 §5 step 4.3 |
//! | `LossProbe`, `WindowProbe` | any | their timers |

/// One segment that is sent regardless of the windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum First {
    /// Retransmit the first outstanding segment.
    Head,
    /// Send a tail loss probe.
    LossProbe,
    /// Send a zero-window probe.
    WindowProbe,
}

/// Segments that are sent as far as the windows allow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Next {
    #[default]
    Nothing,
    New,
    NewThenLost,
    Lost,
    LostThenNew,
}

/// Segments to be sent next.
#[derive(Clone, Debug, Default)]
pub(super) struct Intent {
    first: Option<First>,
    next: Next,
    /// New data has been sent in the current round of sending.
    sent: bool,
}

impl Intent {
    /// Set the segments to be sent next, replacing the previous choice.
    #[inline]
    pub fn set(&mut self, next: Next) {
        self.next = next;
    }

    /// Add new data to the choice.
    #[inline]
    pub fn push(&mut self) {
        self.next = match self.next {
            Next::Nothing => Next::New,
            Next::Lost => Next::LostThenNew,
            more => more,
        };
    }

    /// Send one segment regardless of the windows.
    pub fn force(&mut self, first: First) {
        self.first = Some(first);
    }

    /// Cancel the forced retransmission of the head.
    pub fn spare_head(&mut self) {
        self.first = self.first.filter(|&first| first != First::Head);
    }

    /// Whether a probe is to be sent.
    #[inline]
    pub fn probes(&self) -> bool {
        matches!(self.first, Some(First::LossProbe | First::WindowProbe))
    }

    /// Take the forced segment, which is sent now.
    pub fn take_first(&mut self) -> Option<First> {
        self.first.take()
    }

    /// Whether the head is to be retransmitted now. Clears the request.
    #[inline]
    pub fn take_head(&mut self) -> bool {
        let due = self.first == Some(First::Head);
        if due {
            self.first = None;
        }
        due
    }

    /// Whether segments marked lost are to be sent next.
    #[inline]
    pub fn repairs(&self) -> bool {
        matches!(self.next, Next::Lost | Next::LostThenNew)
    }

    /// Stop sending segments marked lost.
    #[inline]
    pub fn repaired(&mut self) {
        self.next = if self.next == Next::LostThenNew { Next::New } else { Next::Nothing };
    }

    /// Whether new data is to be sent next.
    #[inline]
    pub fn pushes(&self) -> bool {
        matches!(self.next, Next::New | Next::NewThenLost)
    }

    /// Whether there is nothing to send.
    #[inline]
    pub fn is_nothing(&self) -> bool {
        self.next == Next::Nothing && self.first.is_none()
    }

    /// Whether only new data is to be sent, if anything, and none has been sent in this round.
    #[inline(always)]
    pub fn is_idle(&self) -> bool {
        matches!(self.next, Next::Nothing | Next::New) & self.first.is_none() & !self.sent
    }

    /// Whether only new data is to be sent.
    #[inline]
    pub fn is_new_data(&self) -> bool {
        self.next == Next::New && self.first.is_none()
    }

    /// Stop sending new data. Returns whether segments marked lost are sent instead.
    #[inline]
    pub fn pushed(&mut self) -> bool {
        std::mem::take(&mut self.next) == Next::NewThenLost
    }

    /// Record that new data has been sent.
    #[inline]
    pub fn note_sent(&mut self) {
        self.sent = true;
    }

    /// Whether new data has been sent since the last call.
    #[inline]
    pub fn take_sent(&mut self) -> bool {
        std::mem::take(&mut self.sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_segments_leave_before_new_data_and_a_timer_sends_no_new_data() {
        let mut intent = Intent::default();
        intent.push();
        intent.set(Next::Lost);
        assert!(intent.repairs() && !intent.pushes());
        intent.push(); // the application has written in the meantime
        assert!(intent.repairs() && !intent.pushes());
        intent.repaired();
        assert!(!intent.repairs() && intent.pushes());
        assert!(!intent.pushed() && !intent.pushes());
        intent.set(Next::Lost);
        intent.repaired();
        assert!(!intent.pushes());
    }

    #[test]
    fn f_rto_falls_back_to_lost_segments_once() {
        let mut intent = Intent::default();
        intent.set(Next::NewThenLost);
        intent.push();
        assert!(intent.pushes() && intent.pushed());
        assert!(!intent.pushed());
    }

    #[test]
    fn the_head_waits_for_its_turn_and_a_probe_does_not() {
        let mut intent = Intent::default();
        intent.force(First::Head);
        assert!(!intent.probes());
        assert!(intent.take_head() && !intent.take_head());
        intent.force(First::LossProbe);
        intent.spare_head();
        assert!(!intent.take_head());
        assert!(intent.probes());
        assert_eq!((intent.take_first(), intent.take_first()), (Some(First::LossProbe), None));
    }
}
