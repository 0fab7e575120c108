//! Congestion window validation for applications that do not fill the window (RFC 7661 in Linux's form), and
//! slow start after idle (RFC 5681 §4.1).

use ackclock_cc::{CongestionControl, Window};
use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};

use super::round::Round;
use super::timers::TimerKind;
use super::Sender;

/// Congestion window usage.
#[derive(Clone, Debug, Default)]
pub(super) struct Usage {
    /// Linux `is_cwnd_limited`: cwnd held data back in this round trip or the previous one.
    limited: bool,
    /// Maximum number of outstanding segments in this round trip (Linux `max_packets_out`).
    most_out: u32,
    /// Offset whose ACK ends the round trip (Linux `cwnd_usage_seq`).
    round_end: u64,
    /// Maximum number of outstanding segments since `stamp` (Linux `snd_cwnd_used`).
    used: u32,
    /// Last time at which cwnd was full or changed (Linux `snd_cwnd_stamp`).
    stamp: Time,
    /// Time of the last data transmission (Linux `lsndtime`).
    last_sent: Time,
}

impl Usage {
    /// Start the clocks at the end of the handshake.
    pub fn begin(&mut self, now: Time) {
        (self.stamp, self.last_sent) = (now, now);
    }

    /// Record that cwnd changed.
    #[inline]
    pub fn window_changed(&mut self, now: Time) {
        self.stamp = now;
    }

    /// Whether cwnd has been neither full nor changed for an `rto`.
    #[inline]
    pub fn is_stale(&self, now: Time, rto: Span) -> bool {
        now.since(self.stamp) >= rto
    }

    /// Time of the last data transmission.
    pub fn last_sent(&self) -> Time {
        self.last_sent
    }

    /// Record a data transmission.
    #[inline]
    pub fn data_sent(&mut self, now: Time) {
        self.last_sent = now;
    }

    /// Update the state at the end of a round of sending; `una` and `nxt` are offsets (Linux `tcp_cwnd_validate`).
    fn note_round(&mut self, limited: bool, packets_out: u32, una: u64, nxt: u64) {
        if una >= self.round_end || limited || (!self.limited && packets_out > self.most_out) {
            (self.limited, self.most_out, self.round_end) = (limited, packets_out, nxt);
        }
    }

    /// Whether cwnd held data back in this round trip or the previous one.
    #[inline]
    pub(super) fn is_held(&self) -> bool {
        self.limited
    }

    /// Whether cwnd limits the sender. In slow start it does if half of it is used (Linux `tcp_is_cwnd_limited`).
    #[inline]
    pub(super) fn is_limited(&self, window: &Window) -> bool {
        self.limited || (window.in_slow_start() && window.cwnd < 2 * self.most_out)
    }
}

impl Sender {
    /// Reduce cwnd after an idle period (Linux `tcp_slow_start_after_idle_check`, `tcp_cwnd_restart`).
    pub(super) fn restart_after_idle(&mut self, now: Time) {
        let idle = now.since(self.usage.last_sent);
        if self.usage.last_sent == Time::ZERO || self.snd_nxt == 1 {
            return;
        }
        let rto = self.rtt.rto();
        if !self.config.sending.idle_restart || self.controls || idle <= rto || rto == Span::ZERO {
            return;
        }
        self.cc.on_restart(&mut self.window, self.snd_nxt);
        let restart = self.config.sending.iw.min(self.window.cwnd);
        self.window.ssthresh = self.current_ssthresh();
        let mut left = idle - rto;
        let mut cwnd = self.window.cwnd;
        while left > Span::ZERO && cwnd > restart {
            cwnd >>= 1;
            left = left.saturating_sub(rto);
        }
        self.window.cwnd = cwnd.max(restart);
        self.usage.used = 0;
        self.usage.window_changed(now);
    }

    /// Notify the controller that data is about to be sent with nothing in flight (Linux `tcp_event_data_sent`).
    #[cold]
    pub(super) fn start_anew(&mut self, now: Time) {
        if self.usage.last_sent == Time::ZERO || self.snd_nxt == 1 {
            return;
        }
        if self.rates.as_ref().is_some_and(|rates| !rates.is_app_limited()) {
            return; // controllers that use rates are notified only if the sender was application-limited
        }
        let idle = now.since(self.usage.last_sent);
        let by_acks = self.clock(now); // rounded as for ACKs, else the next ACK might seem earlier than this
        self.cc.on_tx_start(&mut self.window, by_acks, idle, self.snd_nxt);
        self.adopt_pacing();
    }

    /// Whether cwnd limits the sender (Linux `tcp_is_cwnd_limited`).
    #[inline]
    pub(super) fn cwnd_limited(&self) -> bool {
        !self.config.sending.cwnd_validation || self.usage.is_limited(&self.window)
    }

    /// End a round of sending: arm the probe timer and validate cwnd (the end of Linux `tcp_write_xmit`).
    #[inline(always)]
    pub(super) fn after_push(&mut self, now: Time) {
        let sent = self.intent.take_sent();
        if let Some(search) = &mut self.mtu_search {
            search.round_over();
        }
        if sent {
            self.schedule_probe(now, false);
        }
        if self.timer.waits_for(TimerKind::None) && self.has_new_data() && self.board.packets_out() == 0 {
            self.arm_window_probe(now);
        }
        let mut limited = self.board.pipe() >= self.window.cwnd;
        if let Some(queue) = &mut self.queue {
            limited |= std::mem::take(&mut queue.cwnd_limited);
            queue.round = Round::Plain;
            self.note_receiver(now);
        }
        if !(sent || (limited && self.has_new_data())) {
            return;
        }
        let packets_out = self.board.packets_out();
        self.usage.note_round(limited, packets_out, self.snd_una, self.snd_nxt);
        if sent && self.queue.is_some() && !self.usage.is_limited(&self.window) {
            self.note_starved(now);
        }
        if self.cwnd_limited() {
            self.usage.used = 0;
            self.usage.window_changed(now);
            return;
        }
        self.usage.used = self.usage.used.max(packets_out);
        if self.config.sending.idle_restart && !self.controls && self.usage.is_stale(now, self.rtt.rto()) {
            if self.ca_state == CaState::Open {
                let used = self.usage.used.max(self.config.sending.iw);
                if used < self.window.cwnd {
                    self.window.ssthresh = self.current_ssthresh();
                    self.window.cwnd = (self.window.cwnd + used) >> 1;
                }
                self.usage.used = 0;
            }
            self.usage.window_changed(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_limits_for_the_round_trip_in_which_it_was_full_and_in_slow_start_from_half_of_it_on() {
        let avoidance = Window { ssthresh: 10, ..Window::new(10) };
        let mut usage = Usage::default();
        usage.note_round(true, 10, 1, 10_001);
        usage.note_round(false, 3, 5_001, 12_001);
        assert!(usage.is_limited(&avoidance), "the round trip is not over");
        usage.note_round(false, 6, 10_001, 16_001);
        assert!(!usage.is_limited(&avoidance));
        assert!(usage.is_limited(&Window::new(11)), "6 of 11 are out in slow start");
        assert!(!usage.is_limited(&Window::new(12)));
        usage.note_round(false, 7, 12_001, 18_001);
        assert!(usage.is_limited(&Window::new(13)), "more than before counts at once");
    }
}
