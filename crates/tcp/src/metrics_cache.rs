//! Destination cache: values that a host remembers from earlier connections to the same destination (Linux
//! `tcp_metrics`; RFC 9040 on the sharing of control blocks). The next connection starts with the cached ssthresh.
//!
//! The rules are those of Linux as described in the study sheet on large pipes (section 4.1). Newer kernels
//! do not cache ssthresh by default (`tcp_no_ssthresh_metrics_save`), so a scenario has to request it. The
//! cached RTT, which only sets the first RTO, is not modelled.

use ackclock_cc::Window;
use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};

/// Age at which entries expire.
const LIFETIME: Span = Span::from_secs(3600);

/// Cached values of one destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DestinationMetrics {
    /// Slow-start threshold, segments; zero: none.
    pub ssthresh: u32,
    /// Congestion window, segments; zero: none. It is cached, but no connection starts with it.
    pub cwnd: u32,
    /// Time of the last save.
    pub saved: Time,
}

impl DestinationMetrics {
    /// Update the entry when a connection to the destination closes.
    pub fn save(&mut self, now: Time, cwnd: u32, ssthresh: u32, ca_state: CaState) {
        if self.is_void(now) {
            *self = DestinationMetrics::default();
        }
        self.saved = now;
        if ssthresh >= Window::INFINITE {
            // still in the initial slow start
            if self.ssthresh > 0 && cwnd / 2 > self.ssthresh {
                self.ssthresh = cwnd / 2;
            }
        } else if cwnd > ssthresh && ca_state == CaState::Open {
            self.ssthresh = ssthresh.max(cwnd / 2);
            self.cwnd = if self.cwnd == 0 { cwnd } else { ((self.cwnd as u64 + cwnd as u64) / 2) as u32 };
        } else if self.ssthresh > 0 {
            self.ssthresh = self.ssthresh.max(ssthresh);
        }
    }

    /// Initial ssthresh of the next connection to the destination, segments; `None` if there is no valid entry.
    pub fn ssthresh(&self, now: Time) -> Option<u32> {
        (self.ssthresh > 0 && !self.is_void(now)).then_some(self.ssthresh)
    }

    fn is_void(&self, now: Time) -> bool {
        now.since(self.saved) > LIFETIME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFINITE: u32 = Window::INFINITE;

    fn saved(before: (u32, u32), cwnd: u32, ssthresh: u32, state: CaState) -> (u32, u32) {
        let mut cache = DestinationMetrics { ssthresh: before.0, cwnd: before.1, saved: Time::ZERO };
        cache.save(Time(1), cwnd, ssthresh, state);
        (cache.ssthresh, cache.cwnd)
    }

    #[test]
    fn rule_a_the_initial_slow_start_only_raises_what_is_set() {
        for (before, after) in [(0, 0), (49, 50), (50, 50), (51, 51)] {
            assert_eq!(saved((before, 7), 100, INFINITE, CaState::Open), (after, 7));
        }
    }

    #[test]
    fn rule_b_congestion_avoidance_stores_the_larger_of_both_and_the_mean_window() {
        assert_eq!(saved((0, 0), 101, 30, CaState::Open), (50, 101));
        assert_eq!(saved((0, 0), 101, 80, CaState::Open), (80, 101));
        assert_eq!(saved((400, 50), 101, 80, CaState::Open), (80, 75), "a good value may fall");
    }

    #[test]
    fn rule_c_whatever_else_only_raises_what_is_set() {
        for state in [CaState::Disorder, CaState::Cwr, CaState::Recovery, CaState::Loss] {
            assert_eq!(saved((0, 9), 101, 80, state), (0, 9));
            assert_eq!(saved((60, 9), 101, 80, state), (80, 9));
            assert_eq!(saved((90, 9), 101, 80, state), (90, 9));
        }
        // slow start after a timeout, or cwnd equal to ssthresh: cwnd is not above ssthresh
        assert_eq!(saved((60, 9), 10, 80, CaState::Open), (80, 9));
        assert_eq!(saved((60, 9), 80, 80, CaState::Open), (80, 9));
    }

    #[test]
    fn entries_die_after_an_hour() {
        let mut cache = DestinationMetrics::default();
        assert_eq!(cache.ssthresh(Time::ZERO), None);
        cache.save(Time::ZERO, 200, 50, CaState::Open);
        let hour = Time::ZERO + LIFETIME;
        assert_eq!(cache.ssthresh(hour), Some(100));
        assert_eq!(cache.ssthresh(hour + Span(1)), None);
        cache.save(hour + Span(1), 10, 80, CaState::Open);
        assert_eq!((cache.ssthresh, cache.cwnd), (0, 0), "what was void is not raised");
    }
}
