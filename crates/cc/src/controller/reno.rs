//! Reno in segments: slow start, one segment per round trip, multiplication by beta on loss.
//!
//! Sources: RFC 5681 §3.1; Linux `tcp_reno_cong_avoid`, `tcp_reno_ssthresh`, `tcp_reno_undo_cwnd`, and `tcp_reno_min_cwnd`
//! of kernels before 3.2. State: none beyond [`Window`]; `beta` is in units of 1/1024.
//!
//! Differs from RFC 5681: growth counts delivered segments (RFC 3465 with L unlimited), and a loss halves cwnd rather
//! than FlightSize, as in Linux.

use super::{AckSample, CongestionControl};
use crate::window::Window;

/// Reno: AIMD with slow start.
#[derive(Clone, Copy, Debug)]
pub struct Reno {
    /// Fraction of the window kept by a reduction, in units of 1/1024; 512 for standard Reno.
    pub beta: u32,
    /// Fraction kept by a reduction for a mark, in units of 1/1024 (RFC 8511: 0.8).
    pub ecn_beta: u32,
}

impl Default for Reno {
    fn default() -> Reno {
        Reno { beta: 512, ecn_beta: 512 }
    }
}

impl CongestionControl for Reno {
    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        window.grow_as_reno(ack);
    }

    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        super::scale(window.cwnd, self.beta).max(2)
    }

    fn ssthresh_for_mark(&mut self, window: &Window, _in_flight: u32) -> u32 {
        super::scale(window.cwnd, self.ecn_beta).max(2)
    }

    fn min_cwnd(&mut self, ssthresh: u32) -> u32 {
        ssthresh / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::{arrival, sample};
    use crate::controller::Arrival;

    #[test]
    fn doubles_in_slow_start_and_adds_one_per_window_after() {
        let mut reno = Reno::default();
        let mut w = Window::new(10);
        for _ in 0..10 {
            reno.on_ack(&mut w, &sample(0, 1));
        }
        assert_eq!(w.cwnd, 20);
        w.ssthresh = 22;
        reno.on_ack(&mut w, &sample(0, 4)); // two segments up to ssthresh, two towards linear growth
        assert_eq!((w.cwnd, w.cwnd_cnt), (22, 2));
        for _ in 0..20 {
            reno.on_ack(&mut w, &sample(0, 1));
        }
        assert_eq!((w.cwnd, w.cwnd_cnt), (23, 0));
    }

    #[test]
    fn an_idle_window_does_not_grow() {
        let mut w = Window::new(10);
        let ack = AckSample::from(Arrival { cwnd_limited: false, ..arrival(0, 5) });
        Reno::default().on_ack(&mut w, &ack);
        assert_eq!(w, Window::new(10));
    }

    #[test]
    fn halves_and_never_below_two() {
        let mut reno = Reno::default();
        assert_eq!(reno.ssthresh(&Window::new(21), 21), 10);
        assert_eq!(reno.ssthresh(&Window::new(2), 2), 2);
        assert_eq!(reno.min_cwnd(10), 5);
        let w = Window { cwnd: 5, prior_cwnd: 20, ..Window::new(5) };
        assert_eq!(reno.undo_cwnd(&w), 20);
    }
}
