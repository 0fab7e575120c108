//! Hybla: grows like a connection with a 25 ms RTT, so that flows on long paths are not at a disadvantage.
//!
//! Sources: Caini, Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks" (2004); integer arithmetic of
//! Linux `tcp_hybla`. rho = RTT/25 ms, at least 1: `rho_3ls` is rho in units of 1/8, `rho2_7ls` its square in units of
//! 1/128, and `cents` the accumulated growth of less than a segment, in units of 1/128. Slow start adds 2^rho - 1 per
//! ACK, congestion avoidance rho^2/cwnd. The initial window is rho segments, as in Linux.

use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};

use super::{AckSample, CongestionControl, Needs};
use crate::window::Window;

/// RTT0, us.
const RTT0: u64 = 25_000;
/// Maximum number of segments (Linux `snd_cwnd_clamp`).
const CLAMP: u32 = 65_535;
/// 128 times 2^(k/8).
const FRACTIONS: [u64; 8] = [128, 139, 152, 165, 181, 197, 215, 234];

/// Hybla.
#[derive(Clone, Debug)]
pub struct Hybla {
    on: bool,
    rho_3ls: u64,
    rho2_7ls: u64,
    cents: u64,
    min_rtt: Span,
}

impl Default for Hybla {
    fn default() -> Hybla {
        Hybla { on: true, rho_3ls: 0, rho2_7ls: 0, cents: 0, min_rtt: Span::MAX }
    }
}

impl Hybla {
    fn learn(&mut self, srtt: Span) {
        self.rho_3ls = (8 * srtt.as_us() / RTT0).max(8);
        self.rho2_7ls = (self.rho_3ls * self.rho_3ls) << 1;
    }
}

impl CongestionControl for Hybla {
    fn on_start(&mut self, window: &mut Window, _now: Time, srtt: Span, _smss: u32) {
        window.cwnd_clamp = CLAMP;
        self.learn(srtt);
        self.min_rtt = srtt;
        window.cwnd = (self.rho_3ls >> 3) as u32;
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        if ack.srtt < self.min_rtt {
            self.learn(ack.srtt);
            self.min_rtt = ack.srtt;
        }
        if !ack.cwnd_limited {
            return;
        }
        if !self.on {
            return window.grow_as_reno(ack);
        }
        if self.rho_3ls == 0 {
            self.learn(ack.srtt);
        }
        let slow_start = window.in_slow_start();
        let increment = if slow_start {
            (FRACTIONS[(self.rho_3ls & 7) as usize] << (self.rho_3ls >> 3).min(16)) - 128
        } else {
            self.rho2_7ls / u64::from(window.cwnd.max(1))
        };
        if !slow_start && increment < 128 {
            window.cwnd_cnt += 1;
        }
        window.cwnd = window.cwnd.saturating_add((increment >> 7) as u32);
        self.cents += increment % 128;
        while self.cents >= 128 {
            window.cwnd += 1;
            self.cents -= 128;
            window.cwnd_cnt = 0;
        }
        if increment == 0 && window.cwnd_cnt >= window.cwnd {
            window.cwnd += 1;
            window.cwnd_cnt = 0;
        }
        if slow_start {
            window.cwnd = window.cwnd.min(window.ssthresh);
        }
        window.cwnd = window.cwnd.min(CLAMP);
    }

    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        (window.cwnd >> 1).max(2)
    }

    fn on_state(&mut self, _window: &mut Window, state: CaState, _now: Time) {
        self.on = state == CaState::Open;
    }

    fn needs(&self) -> Needs {
        Needs { own_start: true, ..Needs::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::arrival;
    use crate::controller::Arrival;

    #[test]
    fn at_the_reference_rtt_it_is_reno_and_at_twice_that_four_times_as_fast() {
        for (rtt_ms, slow_start, avoidance) in [(25, 101, 1), (50, 130, 4), (10, 101, 1)] {
            let mut c = Hybla::default();
            c.learn(Span::from_ms(rtt_ms));
            let ack = AckSample::from(Arrival { srtt: Span::from_ms(rtt_ms), ..arrival(0, 1) });
            let mut w = Window::new(100);
            (0..if slow_start > 110 { 10 } else { 1 }).for_each(|_| c.on_ack(&mut w, &ack));
            assert_eq!(w.cwnd, slow_start, "{rtt_ms}");
            let mut w = Window { ssthresh: 2, ..Window::new(100) };
            c.cents = 0;
            (0..130).for_each(|_| c.on_ack(&mut w, &ack));
            assert_eq!(w.cwnd - 100, avoidance, "{rtt_ms}");
        }
    }

    #[test]
    fn begins_with_rho_segments() {
        let mut w = Window::new(10);
        Hybla::default().on_start(&mut w, Time::ZERO, Span::from_ms(60), 1448);
        assert_eq!(w.cwnd, 2);
    }
}
