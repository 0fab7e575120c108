//! H-TCP: growth accelerates with the time since the last loss, and the reduction depends on the range of RTTs.
//!
//! Sources: Leith, Shorten, "H-TCP: TCP for high-speed and long-distance networks" (PFLDnet 2004); integer arithmetic
//! of Linux `tcp_htcp`. Times are in 1 ms ticks, alpha and beta in units of 1/128, rates (B) in segments per second.

use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};

use super::{AckSample, Arrival, CongestionControl};
use crate::window::Window;

const HZ: u64 = 1000;
const ALPHA_BASE: u64 = 1 << 7;
const BETA_MIN: u64 = 1 << 6;
/// 0.8
const BETA_MAX: u64 = 102;

/// H-TCP.
#[derive(Clone, Debug, Default)]
pub struct Htcp {
    started: bool,
    alpha: u64,
    beta: u64,
    modeswitch: bool,
    pkts_acked: u32,
    packetcount: u32,
    min_rtt: u64,
    max_rtt: u64,
    last_cong: u64,
    undo: Option<(u64, u64, u64)>,
    min_b: u64,
    max_b: u64,
    old_max_b: u64,
    b_i: u64,
    lasttime: u64,
    now: u64,
}

impl Htcp {
    fn start(&mut self, now: u64) {
        self.now = now;
        if !self.started {
            self.started = true;
            (self.alpha, self.beta, self.pkts_acked, self.last_cong) = (ALPHA_BASE, BETA_MIN, 1, now);
        }
    }

    fn since_loss(&self) -> u64 {
        self.now.saturating_sub(self.last_cong)
    }

    fn measure_rtt(&mut self, srtt: u64, open: bool) {
        if self.min_rtt > srtt || self.min_rtt == 0 {
            self.min_rtt = srtt;
        }
        if open {
            self.max_rtt = self.max_rtt.max(self.min_rtt);
            if self.max_rtt < srtt && srtt <= self.max_rtt + 20 {
                self.max_rtt = srtt;
            }
        }
    }

    /// Measure the throughput achieved since the last loss.
    fn measure_rate(&mut self, window: &Window, ack: &Arrival) {
        if !matches!(ack.prior_state, CaState::Open | CaState::Disorder) {
            self.packetcount = 0;
            self.lasttime = self.now;
            return;
        }
        self.packetcount = self.packetcount.saturating_add(ack.covered);
        let round = window.cwnd.saturating_sub((self.alpha >> 7).max(1) as u32);
        // The kernel's first measurement starts at tick 0, while its jiffies start five minutes before the 32-bit wrap.
        // The elapsed time is therefore huge and the rate 0.
        let elapsed =
            if self.lasttime == 0 { u64::from(u32::MAX) } else { self.now - self.lasttime.min(self.now) };
        if self.packetcount < round || self.min_rtt == 0 || elapsed < self.min_rtt {
            return;
        }
        let rate = u64::from(self.packetcount) * HZ / elapsed;
        if self.since_loss() / self.min_rtt <= 3 {
            (self.min_b, self.max_b, self.b_i) = (rate, rate, rate);
        } else {
            self.b_i = (3 * self.b_i + rate) / 4;
            self.max_b = self.max_b.max(self.b_i);
            self.min_b = self.min_b.min(self.max_b);
        }
        self.packetcount = 0;
        self.lasttime = self.now;
    }

    fn update_beta(&mut self) {
        let (max_b, old) = (self.max_b, self.old_max_b);
        self.old_max_b = max_b;
        if !(4 * old..=6 * old).contains(&(5 * max_b)) {
            self.beta = BETA_MIN;
            self.modeswitch = false;
        } else if self.modeswitch && self.min_rtt > 10 && self.max_rtt > 0 {
            self.beta = ((self.min_rtt << 7) / self.max_rtt).clamp(BETA_MIN, BETA_MAX);
        } else {
            self.beta = BETA_MIN;
            self.modeswitch = true;
        }
    }

    fn update_alpha(&mut self) {
        let mut factor = 1;
        let mut diff = self.since_loss();
        if diff > HZ {
            diff -= HZ;
            factor = 1 + (10 * diff + ((diff / 2) * (diff / 2) / HZ)) / HZ;
        }
        if self.min_rtt > 0 {
            let scale = ((HZ << 3) / (10 * self.min_rtt)).clamp(1 << 2, 10 << 3);
            factor = ((factor << 3) / scale).max(1);
        }
        self.alpha = 2 * factor * ((1 << 7) - self.beta);
    }
}

impl CongestionControl for Htcp {
    fn on_start(&mut self, _window: &mut Window, now: Time, _srtt: Span, _smss: u32) {
        self.start(now.0 / 1_000_000 + 1);
    }

    fn on_sample(&mut self, window: &mut Window, ack: &Arrival) {
        self.start(ack.now.0 / 1_000_000 + 1);
        let open = ack.prior_state == CaState::Open;
        if open {
            self.pkts_acked = ack.covered;
        }
        if let Some(rtt) = ack.rtt {
            self.measure_rtt(rtt.as_us().div_ceil(1000), open);
        }
        self.measure_rate(window, ack);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        if !ack.cwnd_limited {
            return;
        }
        if window.in_slow_start() {
            window.slow_start(ack.acked);
            return;
        }
        if (u64::from(window.cwnd_cnt) * self.alpha) >> 7 >= u64::from(window.cwnd) {
            if window.cwnd < window.cwnd_clamp {
                window.cwnd += 1;
            }
            window.cwnd_cnt = 0;
            self.update_alpha();
        } else {
            window.cwnd_cnt += self.pkts_acked;
        }
        self.pkts_acked = 1;
    }

    fn on_timer(&mut self, now: Time) {
        self.start(now.0 / 1_000_000 + 1);
    }

    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        let (min, max) = (self.min_rtt, self.max_rtt);
        self.update_beta();
        self.update_alpha();
        if min > 0 && max > min {
            self.max_rtt = min + (max - min) * 95 / 100; // the maximum RTT decays
        }
        (((u64::from(window.cwnd) * self.beta.max(BETA_MIN)) >> 7) as u32).max(2)
    }

    fn on_state(&mut self, _window: &mut Window, state: CaState, now: Time) {
        self.start(now.0 / 1_000_000 + 1);
        match state {
            CaState::Open => {
                if self.undo.take().is_some() {
                    self.last_cong = self.now;
                }
            }
            CaState::Disorder => {}
            CaState::Cwr | CaState::Recovery | CaState::Loss => {
                self.undo = Some((self.last_cong, self.max_rtt, self.old_max_b));
                self.last_cong = self.now;
            }
        }
    }

    fn undo_cwnd(&mut self, window: &Window) -> u32 {
        if let Some((last_cong, max_rtt, old_max_b)) = self.undo.take() {
            (self.last_cong, self.max_rtt, self.old_max_b) = (last_cong, max_rtt, old_max_b);
        }
        window.cwnd.max(window.prior_cwnd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::arrival;

    /// Check alpha: 1 within a second of a loss, then 1 + 10 (D - 1) + ((D - 1)/2)^2, with beta 1/2 and a 100 ms RTT.
    #[test]
    fn growth_accelerates_with_the_time_since_the_last_loss() {
        let mut c = Htcp::default();
        c.start(1);
        c.min_rtt = 100; // RTT at which alpha is scaled by 1
        for (since, factor) in [(500, 1), (1000, 1), (2000, 11), (3000, 22), (11_000, 126)] {
            c.now = c.last_cong + since;
            c.update_alpha();
            assert_eq!(c.alpha, 2 * factor * 64, "{since}");
        }
    }

    /// Linux calls `htcp_recalc_ssthresh` at the timeout, so the elapsed time is taken at the timeout.
    #[test]
    fn growth_after_a_timeout_is_that_of_the_time_when_the_timer_struck() {
        let mut c = Htcp { min_rtt: 100, ..Htcp::default() };
        c.start(1);
        c.on_timer(Time(3_000_000_000)); // no ACK since tick 1
        c.ssthresh(&Window::new(20), 20);
        assert_eq!(c.alpha, 2 * 22 * 64);
    }

    #[test]
    fn what_a_loss_leaves_follows_from_the_range_of_rtts_when_the_rate_is_steady() {
        let mut c = Htcp {
            min_rtt: 40,
            max_rtt: 60,
            max_b: 1000,
            old_max_b: 1000,
            modeswitch: true,
            ..Htcp::default()
        };
        c.start(1);
        assert_eq!(c.ssthresh(&Window::new(128), 128), 85); // 40/60
        assert_eq!(c.max_rtt, 59);
        c.max_b = 2000;
        assert_eq!(c.ssthresh(&Window::new(128), 128), 64);
    }

    /// Linux `measure_achieved_throughput` adds `sample->pkts_acked`.
    #[test]
    fn throughput_is_measured_by_what_acks_cover() {
        let (mut c, mut w) = (Htcp::default(), Window::new(1000));
        c.on_sample(&mut w, &Arrival { covered: 30, ..arrival(0, 1) });
        assert_eq!((c.pkts_acked, c.packetcount), (30, 30));
        c.on_sample(&mut w, &Arrival { covered: 0, ..arrival(0, 5) });
        assert_eq!((c.pkts_acked, c.packetcount), (0, 30));
    }
}
