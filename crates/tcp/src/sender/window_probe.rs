//! Probes of a closed window, and of a corked segment that nothing pushes out (RFC 9293 §3.8.6.1; Linux
//! `tcp_send_probe0`, `tcp_write_wakeup`): with nothing outstanding and data that may not leave, the timer runs at the
//! RTO, doubling.

use ackclock_core::{Flags, Segment, Time};

use super::intent::First;
use super::{Sender, TimerKind};

impl Sender {
    pub(super) fn arm_window_probe(&mut self, now: Time) {
        let base = self.rtt.rto().max(self.config.min_rto);
        let wait = (base * (1 << self.probe_backoff.min(30))).min(self.config.max_rto);
        let wait = self.clamp_probe(now, wait);
        self.arm(TimerKind::Probe, self.ticks.expiry(now, wait));
    }

    /// An ACK while the timer runs: it starts anew, or ends when the window opened (Linux `tcp_ack_probe`).
    pub(super) fn on_probe_ack(&mut self, now: Time) {
        self.end_probing();
        let head = (self.write_end - self.snd_nxt).min(self.smss as u64);
        if self.snd_nxt + head <= self.snd_una + self.snd_wnd {
            self.probe_backoff = 0;
            self.disarm();
        } else {
            self.arm_window_probe(now);
        }
    }

    pub(super) fn on_window_probe_timer(&mut self, now: Time) {
        self.disarm();
        if self.board.packets_out() > 0 || !self.has_new_data() {
            self.end_probing();
        } else if self.gives_up_probing(now) {
            self.failed = true;
        } else {
            self.intent.force(First::WindowProbe);
        }
    }

    pub(super) fn window_probe(&mut self, now: Time) -> Option<Segment> {
        let room = (self.snd_una + self.snd_wnd).saturating_sub(self.snd_nxt);
        let available = self.write_end - self.snd_nxt;
        let len = available.min(room).min(self.smss as u64) as u32;
        if len > 0 && self.patience.refused {
            self.probes += 1;
            self.on_refusal(now, TimerKind::Probe);
            return None;
        }
        if len > 0 {
            self.end_probing();
            self.probe_backoff = 0;
            let mut seg = self.send_new(now, len, false);
            seg.flags |= Flags::PSH;
            return Some(seg);
        }
        self.probes += 1;
        self.probe_backoff = (self.probe_backoff + 1).min(self.config.data_retries);
        self.arm_window_probe(now);
        Some(self.bare_probe(now))
    }

    /// A segment without data and with a number that the peer has acknowledged: it answers.
    pub fn bare_probe(&mut self, now: Time) -> Segment {
        let mut seg = self.segment(now, 0, self.snd_una - 1, 0, false, 0);
        seg.flags = Flags::ACK;
        seg
    }
}
