//! Reduction of the path MTU as reported by a router (RFC 1191, ICMP "fragmentation needed"). Larger segments
//! in flight have been lost. They are retransmitted immediately as smaller ones, without a reduction of the
//! window, because the network is not congested (Linux `tcp_v4_mtu_reduced`, `tcp_simple_retransmit`).
//!
//! Differs: Linux splits a segment when it is retransmitted, while all are split at once here, so
//! `packets_out` grows earlier. Stamps of the delivery rate stay with the segment numbers, not with the data.

use ackclock_core::trace::CaState;
use ackclock_core::Time;

use super::intent::Next;
use super::Sender;

impl Sender {
    /// Limit the payload of later segments to `smss` bytes.
    pub fn shrink_segments(&mut self, now: Time, smss: u32) {
        let smss = self.learn_path(smss.max(1));
        if smss < self.smss {
            self.resize_segments(smss);
            self.retransmit_larger(now);
        }
    }

    /// Mark outstanding segments larger than a full one lost, without a congestion response.
    pub(super) fn retransmit_larger(&mut self, now: Time) {
        if !self.sack {
            self.board.set_emulated_sacked(0);
        }
        self.begin_event(now);
        for n in self.cut_segments() {
            self.mark_lost(n);
        }
        if self.board.lost_out == 0 {
            return;
        }
        if self.ca_state != CaState::Loss {
            self.high_seq = self.snd_nxt;
            self.window.ssthresh = self.current_ssthresh();
            self.undo.keep_reduction();
            self.undo.forget();
            self.set_state(now, CaState::Loss);
        }
        self.intent.set(Next::Lost);
    }
}
