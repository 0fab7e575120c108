//! Illinois: a loss-based controller whose gains depend on the queueing delay. With little delay it grows fast and
//! reduces little; with much delay it grows slowly and reduces more.
//!
//! Sources: Liu, Basar, Srikant, "TCP-Illinois: a loss and delay-based congestion control algorithm for high-speed
//! networks" (2006); integer arithmetic of Linux `tcp_illinois`. alpha is in units of 1/128 (0.3 to 10), beta in
//! units of 1/64 (1/8 to 1/2), delays in us. d_a is the mean, d_m the maximum queueing delay.

use ackclock_core::trace::CaState;
use ackclock_core::Time;

use super::{AckSample, Arrival, CongestionControl};
use crate::window::Window;

const ALPHA_SCALE: u64 = 128;
const ALPHA_MIN: u64 = 3 * ALPHA_SCALE / 10;
const ALPHA_MAX: u64 = 10 * ALPHA_SCALE;
const BETA_MIN: u64 = 64 / 8;
const BETA_MAX: u64 = 64 / 2;
/// Window below which Illinois behaves like Reno, segments.
const WIN_THRESH: u32 = 15;
/// Number of round trips with low delay after which alpha returns to its maximum.
const THETA: u8 = 5;

/// Illinois.
#[derive(Clone, Debug)]
pub struct Illinois {
    alpha: u64,
    beta: u64,
    base_rtt: u64,
    max_rtt: u64,
    sum_rtt: u64,
    cnt_rtt: u64,
    acked: u32,
    rtt_low: u8,
    rtt_above: bool,
    end_seq: u64,
    snd_nxt: u64,
}

impl Default for Illinois {
    fn default() -> Illinois {
        Illinois {
            alpha: ALPHA_MAX,
            beta: BETA_MAX,
            base_rtt: u64::MAX,
            max_rtt: 0,
            sum_rtt: 0,
            cnt_rtt: 0,
            acked: 0,
            rtt_low: 0,
            rtt_above: false,
            end_seq: 0,
            snd_nxt: 0,
        }
    }
}

impl Illinois {
    fn start_round(&mut self, snd_nxt: u64) {
        self.end_seq = snd_nxt;
        self.cnt_rtt = 0;
        self.sum_rtt = 0;
    }

    fn choose_alpha(&mut self, da: u64, dm: u64) -> u64 {
        let d1 = dm / 100; // eta_1
        if da <= d1 {
            if !self.rtt_above {
                return ALPHA_MAX;
            }
            self.rtt_low += 1;
            if self.rtt_low < THETA {
                return self.alpha;
            }
            self.rtt_low = 0;
            self.rtt_above = false;
            return ALPHA_MAX;
        }
        self.rtt_above = true;
        let (dm, da) = (dm - d1, da - d1);
        dm * ALPHA_MAX / (dm + da * (ALPHA_MAX - ALPHA_MIN) / ALPHA_MIN)
    }

    fn update(&mut self, cwnd: u32, snd_nxt: u64) {
        if cwnd < WIN_THRESH {
            (self.alpha, self.beta) = (ALPHA_SCALE, BETA_MAX);
        } else if let Some(mean) = self.sum_rtt.checked_div(self.cnt_rtt) {
            let dm = self.max_rtt - self.base_rtt;
            let da = mean - self.base_rtt;
            self.alpha = self.choose_alpha(da, dm);
            self.beta = choose_beta(da, dm);
        }
        self.start_round(snd_nxt);
    }
}

fn choose_beta(da: u64, dm: u64) -> u64 {
    let (d2, d3) = (dm / 10, 8 * dm / 10); // eta_2, eta_3
    if da <= d2 {
        BETA_MIN
    } else if da >= d3 || d3 <= d2 {
        BETA_MAX
    } else {
        (BETA_MIN * d3 + (BETA_MAX - BETA_MIN) * da - BETA_MAX * d2) / (d3 - d2)
    }
}

impl CongestionControl for Illinois {
    #[inline]
    fn on_sample(&mut self, _window: &mut Window, ack: &Arrival) {
        self.snd_nxt = ack.snd_nxt;
        self.acked = ack.covered;
        let Some(rtt) = ack.rtt else { return };
        let rtt = rtt.as_us().min(u64::from(u32::MAX) / ALPHA_MAX);
        self.base_rtt = self.base_rtt.min(rtt);
        self.max_rtt = self.max_rtt.max(rtt);
        self.cnt_rtt += 1;
        self.sum_rtt += rtt;
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        if ack.snd_una > self.end_seq {
            self.update(window.cwnd, ack.snd_nxt);
        }
        if !ack.cwnd_limited {
            return;
        }
        if window.in_slow_start() {
            window.slow_start(ack.acked);
            return;
        }
        window.cwnd_cnt += self.acked;
        self.acked = 1;
        let delta = ((u64::from(window.cwnd_cnt) * self.alpha) >> 7) as u32;
        if delta >= window.cwnd {
            window.cwnd = (window.cwnd + delta / window.cwnd).min(window.cwnd_clamp);
            window.cwnd_cnt = 0;
        }
    }

    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        let decrement = (u64::from(window.cwnd) * self.beta) >> 6;
        (window.cwnd - decrement as u32).max(2)
    }

    fn on_state(&mut self, _window: &mut Window, state: CaState, _now: Time) {
        if state != CaState::Loss {
            return;
        }
        (self.alpha, self.beta) = (ALPHA_SCALE, BETA_MAX);
        (self.rtt_low, self.rtt_above) = (0, false);
        self.start_round(self.snd_nxt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::arrival;

    fn alpha(da: u64) -> f64 {
        Illinois::default().choose_alpha(da, 10_000) as f64 / 128.0
    }

    #[test]
    fn gains_at_low_middle_and_full_delay() {
        assert_eq!(alpha(100), 10.0);
        assert!((alpha(10_000) - 0.3).abs() < 0.01, "{}", alpha(10_000));
        assert!((alpha(5_000) - 0.588).abs() < 0.02, "{}", alpha(5_000)); // k1/(k2 + d)
        assert_eq!(choose_beta(1_000, 10_000), 8);
        assert_eq!(choose_beta(8_000, 10_000), 32);
        assert_eq!(choose_beta(4_500, 10_000), 20);
    }

    #[test]
    fn after_a_high_delay_five_low_rounds_bring_back_the_greatest_alpha() {
        let mut c = Illinois::default();
        c.alpha = c.choose_alpha(10_000, 10_000);
        for round in 1..=5 {
            c.alpha = c.choose_alpha(0, 10_000);
            assert_eq!(c.alpha == ALPHA_MAX, round == 5, "{round}");
        }
    }

    /// The ACK that ends a recovery covers the whole window, although SACKs delivered most of it earlier (Linux
    /// `tcp_illinois_acked`: `sample->pkts_acked`).
    #[test]
    fn the_ack_that_ends_a_recovery_counts_all_that_it_covers() {
        let mut c = Illinois { end_seq: u64::MAX, ..Illinois::default() };
        let mut w = Window { ssthresh: 77, ..Window::new(77) };
        let ack = Arrival { covered: 100, ..arrival(0, 1) };
        c.on_sample(&mut w, &ack);
        c.on_ack(&mut w, &ack.into());
        assert_eq!(w.cwnd, 77 + 12); // 100 segments at alpha = 10
    }
}
