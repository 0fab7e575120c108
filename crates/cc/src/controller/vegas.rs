//! Vegas: keeps two to four packets in the queue, as judged once per round trip by the rise in RTT.
//!
//! Sources: Brakmo, Peterson, "TCP Vegas: end to end congestion avoidance on a global internet" (JSAC 1995); Linux
//! `tcp_vegas`. diff = cwnd (rtt - base_rtt)/base_rtt with the minimum RTT of the round; alpha is 2, beta 4, gamma 1
//! packet. As in the kernel, Vegas grows by its own rule even while the window does not limit the sender.

use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};

use super::rounds::Rounds;
use super::{AckSample, Arrival, CongestionControl, Needs};
use crate::window::Window;

const ALPHA: u32 = 2;
const BETA: u32 = 4;
const GAMMA: u32 = 1;

/// Vegas.
#[derive(Clone, Debug, Default)]
pub struct Vegas {
    rounds: Rounds,
    snd_nxt: u64,
    diff: u32,
}

impl Vegas {
    fn adjust(&mut self, window: &mut Window, ack: &AckSample) {
        let (cwnd, rtt, base) =
            (u64::from(window.cwnd), u64::from(self.rounds.min_rtt), u64::from(self.rounds.base_rtt));
        self.diff = (cwnd * (rtt - base) / base) as u32;
        if self.diff > GAMMA && window.in_slow_start() {
            window.cwnd = window.cwnd.min((cwnd * base / rtt) as u32 + 1);
            window.ssthresh = window.ssthresh.min(window.cwnd);
        } else if window.in_slow_start() {
            window.slow_start(ack.acked);
        } else if self.diff > BETA {
            window.cwnd -= 1;
            window.ssthresh = window.ssthresh.min(window.cwnd);
        } else if self.diff < ALPHA {
            window.cwnd += 1;
        }
        window.cwnd = window.cwnd.max(2).min(window.cwnd_clamp);
        window.ssthresh = window.current_ssthresh();
    }
}

impl CongestionControl for Vegas {
    #[inline]
    fn on_sample(&mut self, _window: &mut Window, ack: &Arrival) {
        self.snd_nxt = ack.snd_nxt;
        self.rounds.on_sample(ack);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        if !self.rounds.on {
            return window.grow_as_reno(ack);
        }
        if ack.snd_una > self.rounds.beg_snd_nxt {
            if self.rounds.cnt_rtt <= 2 {
                window.grow_as_reno(ack);
            } else {
                self.adjust(window, ack);
            }
            self.rounds.start(ack.snd_nxt);
        } else if window.in_slow_start() {
            window.slow_start(ack.acked);
        }
    }

    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        (window.cwnd >> 1).max(2)
    }

    fn on_state(&mut self, _window: &mut Window, state: CaState, _now: Time) {
        self.rounds.on_state(state, self.snd_nxt);
    }

    fn on_tx_start(&mut self, _window: &mut Window, _now: Time, _idle: Span, snd_nxt: u64) {
        self.rounds = Rounds { beg_snd_nxt: snd_nxt, ..Rounds::default() };
    }

    fn needs(&self) -> Needs {
        Needs { unlimited: true, vars: &["base_rtt_s", "queued_packets"], ..Needs::default() }
    }

    fn vars(&self, values: &mut [f64]) {
        for (value, known) in
            values.iter_mut().zip([f64::from(self.rounds.base_rtt) * 1e-6, f64::from(self.diff)])
        {
            *value = known;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::arrival;

    /// Simulate one round trip of `rtt_us` with one ACK per segment.
    fn round(c: &mut Vegas, w: &mut Window, una: &mut u64, rtt_us: u64) {
        let nxt = *una + u64::from(w.cwnd) * 1448;
        for _ in 0..w.cwnd {
            *una += 1448;
            let ack = AckSample::from(Arrival {
                snd_una: *una,
                snd_nxt: nxt + 1448,
                rtt: Some(Span::from_us(rtt_us)),
                ..arrival(0, 1)
            });
            c.on_sample(w, &ack);
            c.on_ack(w, &ack);
        }
    }

    #[test]
    fn seeks_two_to_four_packets_in_the_queue() {
        let mut c = Vegas::default();
        let mut w = Window { ssthresh: 10, ..Window::new(100) };
        let mut una = 1;
        round(&mut c, &mut w, &mut una, 100_000);
        let at = w.cwnd;
        round(&mut c, &mut w, &mut una, 101_000); // one packet queued
        assert_eq!(w.cwnd, at + 1);
        let at = w.cwnd;
        round(&mut c, &mut w, &mut una, 103_200); // three packets
        round(&mut c, &mut w, &mut una, 103_200);
        assert!(w.cwnd <= at + 1, "{}", w.cwnd);
        let at = w.cwnd;
        round(&mut c, &mut w, &mut una, 110_000); // ten packets
        round(&mut c, &mut w, &mut una, 110_000);
        assert!(w.cwnd < at, "{}", w.cwnd);
    }

    /// Linux `tcp_vegas_cong_avoid` does not check `tcp_is_cwnd_limited`.
    #[test]
    fn a_window_that_is_not_the_limit_grows_in_slow_start_all_the_same() {
        let mut c = Vegas::default();
        let mut w = Window::new(10);
        let ack = AckSample::from(Arrival { cwnd_limited: false, snd_una: 0, ..arrival(0, 2) });
        c.on_state(&mut w, CaState::Open, Time::ZERO);
        c.on_ack(&mut w, &ack);
        assert_eq!(w.cwnd, 12);
    }

    #[test]
    fn slow_start_ends_with_the_first_packet_queued() {
        let mut c = Vegas::default();
        let mut w = Window::new(50);
        let mut una = 1;
        round(&mut c, &mut w, &mut una, 100_000);
        assert!(w.in_slow_start());
        round(&mut c, &mut w, &mut una, 108_000);
        round(&mut c, &mut w, &mut una, 108_000);
        assert!(!w.in_slow_start());
    }
}
