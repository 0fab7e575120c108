//! Compound: Reno's window plus a delay-based window, which grows fast while the path is idle and shrinks when packets
//! queue.
//!
//! Source: Tan, Song, Zhang, Sridharan, "A compound TCP approach for high-speed and long distance networks" (INFOCOM
//! 2006): alpha 1/8, beta 1/2, k 3/4, zeta 1, gamma 30 packets. `dwnd` is the delay-based window, `loss` the loss-based
//! one; cwnd is their sum. diff = win (1 - base_rtt/rtt) once per round trip.

use ackclock_core::trace::CaState;
use ackclock_core::Time;

use super::rounds::Rounds;
use super::{AckSample, Arrival, CongestionControl, Needs};
use crate::window::Window;

const ALPHA: f64 = 0.125;
const BETA: f64 = 0.5;
const K: f64 = 0.75;
const ZETA: f64 = 1.0;
const GAMMA: f64 = 30.0;
/// Window below which Compound behaves like Reno, segments.
const LOW_WINDOW: u32 = 38;

/// Compound TCP.
#[derive(Clone, Debug, Default)]
pub struct Compound {
    rounds: Rounds,
    snd_nxt: u64,
    dwnd: f64,
    part: f64,
}

impl Compound {
    fn on_round(&mut self, win: f64) {
        let (base, rtt) = (f64::from(self.rounds.base_rtt), f64::from(self.rounds.min_rtt));
        let diff = win * (1.0 - base / rtt);
        if diff < GAMMA {
            self.dwnd += (ALPHA * libm::pow(win, K) - 1.0).max(0.0);
        } else {
            self.dwnd = (self.dwnd - ZETA * diff).max(0.0);
        }
    }
}

impl CongestionControl for Compound {
    #[inline]
    fn on_sample(&mut self, _window: &mut Window, ack: &Arrival) {
        self.snd_nxt = ack.snd_nxt;
        self.rounds.on_sample(ack);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        if !ack.cwnd_limited {
            return;
        }
        if window.in_slow_start() {
            window.slow_start(ack.acked);
            return;
        }
        let win = f64::from(window.cwnd);
        let before = self.dwnd;
        if ack.snd_una > self.rounds.beg_snd_nxt {
            if self.rounds.on && self.rounds.cnt_rtt > 2 && window.cwnd >= LOW_WINDOW {
                self.on_round(win);
            }
            self.rounds.start(ack.snd_nxt);
        }
        self.part += self.dwnd - before + f64::from(ack.acked) / win;
        let whole = libm::floor(self.part);
        self.part -= whole;
        window.cwnd = ((win + whole).max(2.0) as u32).min(window.cwnd_clamp);
    }

    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        let win = f64::from(window.cwnd);
        let loss = (win - self.dwnd).max(2.0);
        self.dwnd = (win * (1.0 - BETA) - loss / 2.0).max(0.0);
        (window.cwnd / 2).max(2)
    }

    fn on_rto(&mut self, _window: &mut Window, _now: Time) {
        self.dwnd = 0.0;
    }

    fn on_state(&mut self, _window: &mut Window, state: CaState, _now: Time) {
        self.rounds.on_state(state, self.snd_nxt);
    }

    fn needs(&self) -> Needs {
        Needs { vars: &["base_rtt_s", "delay_window_segments"], ..Needs::default() }
    }

    fn vars(&self, values: &mut [f64]) {
        for (value, known) in values.iter_mut().zip([f64::from(self.rounds.base_rtt) * 1e-6, self.dwnd]) {
            *value = known;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_window_grows_on_a_free_path_and_yields_what_is_queued() {
        let rounds = Rounds { base_rtt: 100_000, min_rtt: 100_000, ..Rounds::default() };
        let mut c = Compound { rounds, ..Compound::default() };
        c.on_round(1000.0);
        assert!((c.dwnd - (0.125 * libm::pow(1000.0, 0.75) - 1.0)).abs() < 1e-9);
        c.dwnd = 300.0;
        c.rounds.min_rtt = 110_000;
        c.on_round(1000.0);
        assert!((c.dwnd - (300.0 - 1000.0 / 11.0)).abs() < 1e-9, "{}", c.dwnd);
        assert_eq!(c.ssthresh(&Window::new(1000), 1000), 500);
    }
}
