//! DCTCP: once per round trip, the window is reduced in proportion to the fraction of segments that carried marks.
//!
//! Sources: RFC 8257; Linux `tcp_dctcp`. `alpha` (DCTCP.Alpha) in units of 1/1024, gain 1/16, 1 at the start. Growth
//! and the reduction for a packet loss are Reno's.

use ackclock_core::trace::CaState;
use ackclock_core::Time;

use super::{AckSample, Arrival, CongestionControl, Needs};
use crate::window::Window;

const MAX_ALPHA: u32 = 1024;
/// g = 1/16.
const SHIFT_G: u32 = 4;

/// DCTCP.
#[derive(Clone, Debug)]
pub struct Dctcp {
    alpha: u32,
    next_seq: u64,
    delivered: u32,
    delivered_ce: u32,
}

impl Default for Dctcp {
    fn default() -> Dctcp {
        Dctcp { alpha: MAX_ALPHA, next_seq: 0, delivered: 0, delivered_ce: 0 }
    }
}

impl CongestionControl for Dctcp {
    fn on_sample(&mut self, _window: &mut Window, ack: &Arrival) {
        self.delivered += ack.newly_acked;
        self.delivered_ce += ack.newly_acked_ce;
        if ack.snd_una < self.next_seq {
            return;
        }
        let decay = match self.alpha >> SHIFT_G {
            0 => self.alpha,
            share => share,
        };
        let marked = (u64::from(self.delivered_ce) << (10 - SHIFT_G)) / u64::from(self.delivered.max(1));
        self.alpha = (self.alpha - decay + marked as u32).min(MAX_ALPHA);
        (self.next_seq, self.delivered, self.delivered_ce) = (ack.snd_nxt, 0, 0);
    }

    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        window.grow_as_reno(ack);
    }

    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        let cut = (u64::from(window.cwnd) * u64::from(self.alpha)) >> 11;
        (window.cwnd - cut as u32).max(2)
    }

    fn on_state(&mut self, window: &mut Window, state: CaState, _now: Time) {
        if state == CaState::Recovery {
            window.ssthresh = window.ssthresh.min((window.cwnd >> 1).max(2));
        }
    }

    fn on_rto(&mut self, window: &mut Window, _now: Time) {
        window.ssthresh = (window.cwnd >> 1).max(2);
    }

    fn needs(&self) -> Needs {
        Needs { exact_ecn: true, vars: &["alpha"], ..Needs::default() }
    }

    fn vars(&self, values: &mut [f64]) {
        if let Some(value) = values.first_mut() {
            *value = f64::from(self.alpha) / 1024.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::arrival;

    #[test]
    fn alpha_follows_the_share_of_marks_with_a_gain_of_a_sixteenth() {
        let mut c = Dctcp::default();
        let mut w = Window { ssthresh: 2, ..Window::new(100) };
        let mut una = 0;
        let mut round = |c: &mut Dctcp, w: &mut Window, marked: u32| {
            una += 1000;
            let ack = AckSample::from(Arrival {
                snd_una: una,
                snd_nxt: una + 1000,
                newly_acked_ce: marked,
                ..arrival(0, 100)
            });
            c.on_sample(w, &ack);
        };
        round(&mut c, &mut w, 0);
        assert_eq!(c.alpha, 1024 - 64);
        for _ in 0..300 {
            round(&mut c, &mut w, 0);
        }
        assert_eq!(c.alpha, 0);
        assert_eq!(c.ssthresh(&w, 100), 100, "without marks a window is not cut");
        round(&mut c, &mut w, 100);
        assert_eq!(c.alpha, 64);
        for _ in 0..300 {
            round(&mut c, &mut w, 50);
        }
        assert!((496..=528).contains(&c.alpha), "{}", c.alpha);
        assert!((74..=76).contains(&c.ssthresh(&w, 100)));
    }

    #[test]
    fn a_real_loss_halves() {
        let mut c = Dctcp { alpha: 0, ..Dctcp::default() };
        let mut w = Window::new(100);
        w.ssthresh = c.ssthresh(&w, 100);
        c.on_state(&mut w, CaState::Recovery, Time::ZERO);
        assert_eq!(w.ssthresh, 50);
    }
}
