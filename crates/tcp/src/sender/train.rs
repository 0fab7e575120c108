//! Trains: full segments of new data that are sent back to back, with no checks in between. In a bulk flow,
//! most ACKs release a train. The conditions are checked once, before the first segment; all other segments
//! are sent by `poll`. If the flow is paced, or its delivery rate is measured, each train is a single segment.

use ackclock_core::trace::CaState;
use ackclock_core::{Flags, Time};

use super::{Leaving, Sender};

impl Sender {
    /// Number of segments that may be sent as a train now; 0: use `poll`.
    #[inline(always)]
    pub fn train_length(&self, now: Time) -> u32 {
        #[cfg(debug_assertions)]
        self.recount_reasons();
        let pipe = self.board.pipe();
        // with nothing in flight, even if lost segments are outstanding, the controller is notified of a start
        if !self.reasons.is_empty() || !self.intent.is_new_data() || pipe == 0 {
            return 0;
        }
        let longest = match &self.pacer {
            None if self.rates.is_none() => u32::MAX,
            Some(pacer) if pacer.holds(now).is_some() => return 0,
            _ => 1,
        };
        // The FIN is sent with the last byte or alone, so `poll` sends it.
        let written = self.stream.end() - self.stream.fin_due() as u64;
        let bytes = written.min(self.snd_una + self.snd_wnd).saturating_sub(self.snd_nxt);
        let most = self.window.cwnd.saturating_sub(pipe).min(longest);
        match most as u64 * self.smss as u64 {
            wanted if wanted <= bytes => most,
            _ => (bytes / self.smss as u64) as u32,
        }
    }

    /// Send a train of `length` segments and return the fields they share. The timer is armed at the end
    /// of the round of sending, in `after_push`.
    #[inline(always)]
    pub fn begin_train(&mut self, now: Time, length: u32) -> Leaving {
        let clock = match self.heard {
            (at, clock) if at == now => clock, // most trains are released by an ACK
            _ => self.clock(now),
        };
        self.train = (self.snd_nxt, self.board.next as u32);
        self.board.push_train(self.snd_nxt, self.smss, length, clock, self.delivered as u32);
        self.leave(now, clock, length, self.smss, false);
        Leaving { seq: self.train.0, len: self.smss, seg_no: 0, rexmit: 0, flags: Flags::ACK }
    }

    /// Next segment of the train: offset, number, and whether it carries PSH.
    #[inline(always)]
    pub fn next_of_train(&mut self) -> (u64, u32, bool) {
        let (start, n) = self.train;
        let (end, after) = (start + self.smss as u64, n + 1);
        self.train = (end, after);
        (start, after, self.pushes_new(end))
    }

    /// Whether the round of sending ends with the train that has just been sent: the train filled the window or sent
    /// all data, or the next segment of a paced flow has to wait. In that case [`Sender::poll`] would find nothing to
    /// send either.
    #[inline(always)]
    pub fn ends_with_train(&mut self, now: Time) -> bool {
        let ends = match self.pacer {
            None if self.ca_state == CaState::Recovery && self.config.loss.next_seg_rules => false,
            None => !self.has_new_data() || self.board.pipe() >= self.window.cwnd && !self.stream.fin_due(),
            Some(_) => self.has_new_data() && self.pacing_holds(now, self.snd_nxt),
        };
        ends && self.end_round(now)
    }

    #[inline(always)]
    fn end_round(&mut self, now: Time) -> bool {
        self.intent.pushed();
        self.after_push(now);
        let over = !self.write_stream(now);
        if over && self.limits.is_some() {
            self.note_hold(now);
        }
        over
    }
}
