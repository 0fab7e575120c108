//! Limited slow start: beyond `max_ssthresh` the window grows by at most half of that per round trip.
//!
//! Source: RFC 3742 §2: K = int(cwnd / (0.5 max_ssthresh)), cwnd += int(MSS / K) for each ACK. The rule applies to
//! every slow start, including those after timeouts. The window is in segments, so smaller growth accumulates until it
//! reaches a whole segment.

use ackclock_core::schema::Takes;
use ackclock_core::table;

use super::SlowStart;
use crate::controller::AckSample;
use crate::window::Window;

table! {
    /// Limited slow start (RFC 3742): above a threshold, slow start grows more slowly.
    pub struct LimitedParams "limited" {
        /// cwnd up to which slow start doubles it every round trip, segments. Above it, cwnd grows by at most half of
        /// this per round trip (RFC 3742).
        max_ssthresh: u32 = Takes::Whole(2, 1_000_000), 100;
    }
}

/// Limit, and growth that has not been applied yet.
#[derive(Clone, Debug)]
pub struct Limited {
    max_ssthresh: u32,
    /// Acknowledged segments that have not yet led to growth.
    kept: u32,
}

impl Limited {
    /// Create the state at the start of a connection.
    pub fn new(params: &LimitedParams) -> Limited {
        Limited { max_ssthresh: params.max_ssthresh, kept: 0 }
    }
}

impl SlowStart for Limited {
    fn growth(&mut self, window: &mut Window, ack: &AckSample) -> Option<u32> {
        if !window.in_slow_start() || window.cwnd <= self.max_ssthresh {
            return Some(ack.acked);
        }
        let k = (2 * u64::from(window.cwnd) / u64::from(self.max_ssthresh)) as u32;
        self.kept += ack.acked;
        let whole = self.kept / k;
        self.kept %= k;
        Some(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::sample;
    use crate::controller::{CongestionControl, Reno};

    #[test]
    fn a_round_trip_adds_half_of_max_ssthresh_at_most() {
        let mut rule = Limited::new(&ackclock_core::schema::usual("limited"));
        let mut window = Window::new(10);
        let mut rounds = Vec::new();
        for _ in 0..12 {
            let before = window.cwnd;
            for _ in 0..before {
                let mut ack = sample(0, 1);
                ack.acked = rule.growth(&mut window, &ack).expect("asked");
                Reno::default().on_ack(&mut window, &ack);
            }
            rounds.push(window.cwnd - before);
        }
        // doubles to 100 and beyond, because the last doubling starts below 100; then at most 50 per round trip
        assert_eq!(rounds[..3], [10, 20, 40]);
        assert!(rounds[4..].iter().all(|&grown| (44..=51).contains(&grown)), "{rounds:?}");
    }

    #[test]
    fn k_is_whole() {
        // RFC 3742 §2: K = 2 from max_ssthresh to 1.5 times it, 3 up to twice it, and so on
        for (cwnd, k) in [(101, 2), (149, 2), (150, 3), (199, 3), (200, 4), (1_000, 20)] {
            let mut rule = Limited::new(&LimitedParams { max_ssthresh: 100 });
            let mut window = Window::new(cwnd);
            let acks = (1..).find(|_| rule.growth(&mut window, &sample(0, 1)) == Some(1));
            assert_eq!(acks, Some(k), "{cwnd}");
        }
    }

    #[test]
    fn avoidance_is_the_controllers() {
        let mut rule = Limited::new(&LimitedParams { max_ssthresh: 100 });
        let mut window = Window { ssthresh: 200, ..Window::new(300) };
        assert_eq!(rule.growth(&mut window, &sample(0, 3)), Some(3));
    }
}
