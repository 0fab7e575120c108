//! Trains: full segments of new data that leave one after the other, with nothing to ask between one and the next. Of a bulk
//! flow it is what most ACKs release. What a train needs is asked once, before it leaves; everybody else polls.

use ackclock_core::trace::CaState;
use ackclock_core::{Flags, Time};

use super::patience::Takes;
use super::{Leaving, Sender};

impl Sender {
    /// Segments of the train that may leave now; 0: poll.
    #[inline(always)]
    pub fn train_length(&self) -> u32 {
        let rare = self.pacer.is_some()
            || self.queue.is_some()
            || self.trace.is_on()
            || self.rates.is_some()
            || self.mtu_search.is_some()
            || self.config.first_burst_cap > 0;
        let plain = self.intent.is_new_data()
            && self.ca_state == CaState::Open
            && self.board.packets_out() > 0 // else it was idle
            && !self.ecn.cwr_due
            && self.patience.device == Takes::All;
        if rare || !plain {
            return 0;
        }
        // A FIN leaves with the last byte, or alone.
        let written = self.stream.end() - self.stream.fin_due() as u64;
        let mut bytes = written.min(self.snd_una + self.snd_wnd).saturating_sub(self.snd_nxt);
        let most = self.window.cwnd.saturating_sub(self.board.pipe());
        let mut length = 0;
        while length < most && bytes >= self.smss as u64 {
            length += 1;
            bytes -= self.smss as u64;
        }
        length
    }

    /// A train of so many leaves: what its segments have in common. The timer is armed when the round of sending is over
    /// (`after_push`), which follows.
    #[inline(always)]
    pub fn begin_train(&mut self, now: Time, length: u32) -> Leaving {
        self.stats.data_segments_sent += length as u64;
        self.note_new_data(now, self.board.pipe() + 1, length);
        Leaving { seq: self.snd_nxt, len: self.smss, seg_no: 0, rexmit: 0, flags: Flags::ACK }
    }

    /// Its next segment: offset, number, and whether it carries PSH.
    #[inline(always)]
    pub fn next_of_train(&mut self, now: Time) -> (u64, u32, bool) {
        let (start, n, clock) = (self.snd_nxt, self.board.next, self.clock(now));
        self.snd_nxt += self.smss as u64;
        self.board.push(self.snd_nxt, self.smss, false, clock, self.delivered as u32);
        (start, (n + 1) as u32, self.pushes_new(self.snd_nxt))
    }
}
