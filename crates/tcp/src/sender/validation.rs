//! Windows that the application does not fill: congestion window validation (RFC 7661 in Linux's form) and slow start
//! after idle (RFC 5681 §4.1).

use ackclock_cc::CongestionControl;
use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};

use super::push::Round;
use super::{Sender, TimerKind};

impl Sender {
    /// Slow start again after an idle period (Linux `tcp_slow_start_after_idle_check`, `tcp_cwnd_restart`).
    pub(super) fn restart_after_idle(&mut self, now: Time) {
        let idle = now.since(self.last_sent);
        if self.last_sent == Time::ZERO || self.snd_nxt == 1 {
            return;
        }
        self.cc.on_tx_start(&mut self.window, now, idle);
        let rto = self.rtt.rto();
        if !self.config.idle_restart || self.controls || idle <= rto || rto == Span::ZERO {
            return;
        }
        let restart = self.config.iw.min(self.window.cwnd);
        self.window.ssthresh = self.current_ssthresh();
        let mut left = idle - rto;
        let mut cwnd = self.window.cwnd;
        while left > Span::ZERO && cwnd > restart {
            cwnd >>= 1;
            left = left.saturating_sub(rto);
        }
        self.window.cwnd = cwnd.max(restart);
        self.cwnd_stamp = now;
        self.cwnd_used = 0;
        self.last_sent = now;
    }

    /// Whether cwnd is what limits the sender (Linux `tcp_is_cwnd_limited`).
    #[inline]
    pub(super) fn cwnd_limited(&self) -> bool {
        !self.config.cwnd_validation
            || self.is_cwnd_limited
            || (self.window.in_slow_start() && self.window.cwnd < 2 * self.max_packets_out)
    }

    /// A round of sending is over: probe timer, and cwnd validation (Linux end of `tcp_write_xmit`).
    pub(super) fn after_push(&mut self, now: Time) {
        let sent = self.intent.take_sent();
        if sent {
            self.schedule_probe(now, false);
        }
        if self.timer == TimerKind::None && self.has_new_data() && self.board.packets_out() == 0 {
            self.arm_window_probe(now);
        }
        let mut limited = self.board.pipe() >= self.window.cwnd;
        if let Some(queue) = &mut self.queue {
            limited |= std::mem::take(&mut queue.cwnd_limited);
            queue.round = Round::Plain;
            self.note_limits(now, sent, limited);
        }
        if !(sent || (limited && self.has_new_data())) {
            return;
        }
        let packets_out = self.board.packets_out();
        if self.snd_una >= self.cwnd_usage_seq
            || limited
            || (!self.is_cwnd_limited && packets_out > self.max_packets_out)
        {
            self.is_cwnd_limited = limited;
            self.max_packets_out = packets_out;
            self.cwnd_usage_seq = self.snd_nxt;
        }
        if self.cwnd_limited() {
            self.cwnd_used = 0;
            self.cwnd_stamp = now;
            return;
        }
        self.cwnd_used = self.cwnd_used.max(packets_out);
        if self.config.idle_restart && !self.controls && now.since(self.cwnd_stamp) >= self.rtt.rto() {
            if self.ca_state == CaState::Open {
                let used = self.cwnd_used.max(self.config.iw);
                if used < self.window.cwnd {
                    self.window.ssthresh = self.current_ssthresh();
                    self.window.cwnd = (self.window.cwnd + used) >> 1;
                }
                self.cwnd_used = 0;
            }
            self.cwnd_stamp = now;
        }
    }
}
