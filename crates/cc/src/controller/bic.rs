//! BIC: binary search between the windows after and before the last loss, with growth limited to 16 segments per round
//! trip, and slow probing beyond the former maximum.
//!
//! Sources: Xu, Harfoush, Rhee, "Binary increase congestion control for fast long-distance networks" (INFOCOM 2004);
//! integer arithmetic of Linux `tcp_bic`. `cnt`: acknowledged segments per segment of growth; `delayed_ack`: segments
//! per ACK, in sixteenths; `last_max_cwnd`: Wmax.

use ackclock_core::trace::CaState;
use ackclock_core::Time;

use super::{AckSample, Arrival, CongestionControl};
use crate::window::Window;

const MAX_INCREMENT: u64 = 16;
const LOW_WINDOW: u32 = 14;
const SMOOTH_PART: u64 = 20;
/// Fraction of the window kept by a reduction, in units of 1/1024.
const BETA: u64 = 819;
/// Binary search coefficient.
const B: u64 = 4;
/// Number of 1 ms ticks after which an unchanged window is evaluated again.
const INTERVAL: u64 = 1000 / 32;

/// BIC.
#[derive(Clone, Debug)]
pub struct Bic {
    cnt: u32,
    last_max_cwnd: u32,
    last_cwnd: u32,
    last_time: u64,
    delayed_ack: u32,
}

impl Default for Bic {
    fn default() -> Bic {
        Bic { cnt: 0, last_max_cwnd: 0, last_cwnd: 0, last_time: 0, delayed_ack: 2 << 4 }
    }
}

impl Bic {
    fn update(&mut self, cwnd: u32, now: u64) {
        if self.last_cwnd == cwnd && now - self.last_time <= INTERVAL {
            return;
        }
        self.last_cwnd = cwnd;
        self.last_time = now;
        if cwnd <= LOW_WINDOW {
            self.cnt = cwnd;
            return;
        }
        // Differs: 64 bits, where Linux's 32 wrap above 2^26 segments.
        let (cwnd, last_max) = (u64::from(cwnd), u64::from(self.last_max_cwnd));
        let smooth = cwnd * SMOOTH_PART / B;
        let mut cnt = if cwnd < last_max {
            match (last_max - cwnd) / B {
                dist if dist > MAX_INCREMENT => cwnd / MAX_INCREMENT,
                0 | 1 => smooth,
                dist => cwnd / dist,
            }
        } else if cwnd < last_max + B {
            smooth
        } else if cwnd < last_max + MAX_INCREMENT * (B - 1) {
            cwnd * (B - 1) / (cwnd - last_max)
        } else {
            cwnd / MAX_INCREMENT
        };
        if last_max == 0 {
            cnt = cnt.min(20); // before the first loss: at least 5 % per round trip
        }
        cnt = ((cnt << 4) / u64::from(self.delayed_ack.max(1))).max(1);
        self.cnt = u32::try_from(cnt).unwrap_or(u32::MAX);
    }
}

impl CongestionControl for Bic {
    fn on_sample(&mut self, _window: &mut Window, ack: &Arrival) {
        if ack.prior_state == CaState::Open {
            self.delayed_ack = self.delayed_ack + ack.covered - (self.delayed_ack >> 4);
        }
    }

    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        let Some(acked) = window.past_slow_start(ack) else { return };
        self.update(window.cwnd, ack.now.0 / 1_000_000 + 1);
        window.additive_increase(self.cnt, acked);
    }

    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        let cwnd = u64::from(window.cwnd);
        self.last_max_cwnd = match window.cwnd < self.last_max_cwnd {
            true => (cwnd * (1024 + BETA) / 2048) as u32,
            false => window.cwnd,
        };
        match window.cwnd <= LOW_WINDOW {
            true => (window.cwnd >> 1).max(2),
            false => ((cwnd * BETA / 1024) as u32).max(2),
        }
    }

    fn on_state(&mut self, _window: &mut Window, state: CaState, _now: Time) {
        if state == CaState::Loss {
            *self = Bic::default(); // at every timeout, even in Recovery (Linux `bictcp_state`)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::{arrival, sample};

    /// Return the number of segments gained in a round trip at `cwnd` with Wmax `max` and one ACK per segment.
    fn gain(max: u32, cwnd: u32) -> u32 {
        let mut c = Bic { last_max_cwnd: max, delayed_ack: 16, ..Bic::default() };
        let mut w = Window { ssthresh: 2, ..Window::new(cwnd) };
        for _ in 0..cwnd {
            c.on_ack(&mut w, &sample(0, 1));
        }
        w.cwnd - cwnd
    }

    #[test]
    fn searches_below_the_maximum_and_probes_beyond() {
        assert_eq!(gain(1000, 800), 16); // 200 / 4 exceeds the linear bound
        assert_eq!(gain(1000, 960), 8); // a quarter of the distance, which shrinks during the round trip
        assert_eq!(gain(1000, 998), 0); // one segment in five round trips
        assert_eq!(gain(1000, 1002), 0);
        assert_eq!(gain(1000, 1030), 11); // (w - max) / 3, which grows on the way
        assert_eq!(gain(1000, 1100), 16);
    }

    #[test]
    fn a_timeout_within_a_recovery_is_forgotten_for_too() {
        let (mut c, mut w) = (Bic::default(), Window::new(1000));
        c.on_state(&mut w, CaState::Recovery, Time::ZERO);
        c.ssthresh(&w, 1000);
        assert_eq!(c.last_max_cwnd, 1000);
        c.on_state(&mut w, CaState::Loss, Time::ZERO); // no new ssthresh: `on_rto` is not called
        assert_eq!(c.last_max_cwnd, 0);
    }

    #[test]
    fn gives_a_fifth_and_remembers_less_after_a_loss_below_the_maximum() {
        let mut c = Bic::default();
        assert_eq!(c.ssthresh(&Window::new(1000), 1000), 799);
        assert_eq!(c.last_max_cwnd, 1000);
        assert_eq!(c.ssthresh(&Window::new(900), 900), 719);
        assert_eq!(c.last_max_cwnd, 809);
        assert_eq!(c.ssthresh(&Window::new(14), 14), 7);
    }

    /// Linux `bictcp_acked` uses `sample->pkts_acked`, only in Open. An ACK that covers nothing lowers the mean.
    #[test]
    fn the_ratio_of_delayed_acks_counts_what_acks_cover() {
        let (mut c, mut w) = (Bic::default(), Window::new(100));
        c.on_sample(&mut w, &Arrival { covered: 20, ..arrival(0, 1) });
        assert_eq!(c.delayed_ack, 32 + 20 - 2);
        c.on_sample(&mut w, &Arrival { covered: 0, ..arrival(0, 5) });
        assert_eq!(c.delayed_ack, 50 - 3);
    }
}
