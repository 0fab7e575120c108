//! Veno: Reno that uses Vegas' estimate to decide whether a loss was caused by congestion. With fewer than three
//! packets queued it reduces by only a fifth; with more it grows every other round trip.
//!
//! Sources: Fu, Liew, "TCP Veno: TCP enhancement for transmission over wireless access networks" (JSAC 2003); Linux
//! `tcp_veno`, whose `diff` is in half packets.

use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};

use super::rounds::{Rounds, NONE};
use super::{AckSample, Arrival, CongestionControl};
use crate::window::Window;

/// Three packets, in units of half a packet.
const BETA: u32 = 3 << 1;

/// Veno.
#[derive(Clone, Debug)]
pub struct Veno {
    rounds: Rounds,
    /// Whether the window grows at the end of this round trip.
    inc: bool,
    diff: u32,
}

impl Default for Veno {
    fn default() -> Veno {
        Veno { rounds: Rounds::default(), inc: true, diff: 0 }
    }
}

impl CongestionControl for Veno {
    /// The kernel counts this sample and does not reset the count.
    fn on_syn_acked(&mut self, _rtt: Span) {
        self.rounds.cnt_rtt += 1;
    }

    #[inline]
    fn on_sample(&mut self, _window: &mut Window, ack: &Arrival) {
        self.rounds.on_sample(ack);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        if !self.rounds.on {
            return window.grow_as_reno(ack);
        }
        if !ack.cwnd_limited {
            return;
        }
        if self.rounds.cnt_rtt <= 2 {
            window.grow_as_reno(ack);
        } else {
            let (cwnd, base) = (u64::from(window.cwnd), u64::from(self.rounds.base_rtt));
            // Without a sample in this round, as after a recovery, the whole window counts as queued, as in Linux.
            let target = ((cwnd * base) << 1) / u64::from(self.rounds.min_rtt);
            self.diff = ((cwnd << 1) - target) as u32;
            let mut acked = ack.acked;
            if window.in_slow_start() {
                acked = window.slow_start(acked);
            }
            if acked > 0 && self.diff < BETA {
                window.additive_increase(window.cwnd, acked);
            } else if acked > 0 {
                if window.cwnd_cnt >= window.cwnd {
                    window.cwnd += u32::from(self.inc && window.cwnd < window.cwnd_clamp);
                    self.inc = !self.inc;
                    window.cwnd_cnt = 0;
                } else {
                    window.cwnd_cnt += acked;
                }
            }
            window.cwnd = window.cwnd.max(2).min(window.cwnd_clamp);
        }
        self.rounds.min_rtt = NONE;
    }

    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        match self.diff < BETA {
            true => ((u64::from(window.cwnd) * 4 / 5) as u32).max(2),
            false => (window.cwnd >> 1).max(2),
        }
    }

    fn on_state(&mut self, _window: &mut Window, state: CaState, _now: Time) {
        self.rounds.on = state == CaState::Open;
        if self.rounds.on {
            self.rounds.min_rtt = NONE;
        }
    }

    fn on_tx_start(&mut self, _window: &mut Window, _now: Time, _idle: Span, _snd_nxt: u64) {
        (self.rounds, self.inc) = (Rounds { cnt_rtt: self.rounds.cnt_rtt, ..Rounds::default() }, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::arrival;

    fn after(rtt_us: u64) -> (Veno, Window) {
        let mut c = Veno::default();
        let mut w = Window { ssthresh: 2, ..Window::new(100) };
        for rtt in [100_000, 100_000, 100_000, rtt_us] {
            let ack = AckSample::from(Arrival { rtt: Some(Span::from_us(rtt)), ..arrival(0, 1) });
            c.on_sample(&mut w, &ack);
            c.on_ack(&mut w, &ack);
        }
        (c, w)
    }

    #[test]
    fn a_loss_on_a_free_path_costs_a_fifth_and_half_otherwise() {
        let (mut c, w) = after(102_000);
        assert_eq!(c.ssthresh(&w, 100), 80);
        let (mut c, w) = after(104_000);
        assert_eq!(c.ssthresh(&w, 100), 50);
    }

    #[test]
    fn with_a_queue_it_grows_every_other_round_trip() {
        let (mut c, mut w) = after(110_000);
        let start = w.cwnd;
        for _ in 0..408 {
            let ack = AckSample::from(Arrival { rtt: Some(Span::from_us(110_000)), ..arrival(0, 1) });
            c.on_sample(&mut w, &ack);
            c.on_ack(&mut w, &ack);
        }
        assert_eq!(w.cwnd, start + 2);
    }

    #[test]
    fn an_ack_without_a_sample_takes_the_path_for_full_and_idling_keeps_what_was_found() {
        let (mut c, mut w) = after(102_000);
        c.on_state(&mut w, CaState::Recovery, Time::ZERO);
        c.on_state(&mut w, CaState::Open, Time::ZERO);
        c.on_ack(&mut w, &arrival(0, 1).into());
        assert_eq!(c.ssthresh(&w, 100), 50);
        c.on_tx_start(&mut w, Time::ZERO, Span::from_secs(1), 1);
        assert_eq!(c.ssthresh(&w, 100), 50);
        assert_eq!((c.rounds.cnt_rtt, c.rounds.base_rtt), (4, NONE));
    }
}
