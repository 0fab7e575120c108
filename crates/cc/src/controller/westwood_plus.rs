//! Westwood+ as in Linux: one rate sample per RTT, but at most one per 50 ms, passes through two low-pass filters in
//! series. Recovery ends with the window set to rate times minimum RTT. Growth is Reno's.
//!
//! Sources: Grieco, Mascolo, "Performance evaluation and comparison of Westwood+, New Reno and Vegas TCP" (2004);
//! Linux `tcp_westwood`. Variables have the kernel's names; rates are bytes per tick of 1 ms, times ticks.
//!
//! The count depends on the kernel's header prediction. Duplicate ACKs have SACK blocks, take the slow path and count
//! one segment each. The slow path would subtract these segments from the ACK that ends recovery. That ACK, however,
//! usually has the expected header, takes the fast path and counts in full. The estimate is therefore too high by the
//! segments counted twice.

use ackclock_core::{Span, Time};

use super::{AckSample, Arrival, CongestionControl, Needs};
use crate::window::Window;

/// RTT before the first sample, ticks.
const INIT_RTT: u64 = 20_000;
/// Minimum length of a sample, ticks.
const RTT_MIN: u64 = 50;

/// Westwood+.
#[derive(Clone, Debug)]
pub struct WestwoodPlus {
    bw_ns_est: u64,
    bw_est: u64,
    rtt_win_sx: u64,
    bk: u64,
    snd_una: u64,
    accounted: u64,
    rtt: u64,
    rtt_min: u64,
    first_ack: bool,
    reset_rtt_min: bool,
    mss: u64,
}

impl Default for WestwoodPlus {
    fn default() -> WestwoodPlus {
        WestwoodPlus {
            bw_ns_est: 0,
            bw_est: 0,
            rtt_win_sx: 0,
            bk: 0,
            snd_una: 0,
            accounted: 0,
            rtt: INIT_RTT,
            rtt_min: INIT_RTT,
            first_ack: true,
            reset_rtt_min: true,
            mss: 1,
        }
    }
}

impl WestwoodPlus {
    fn update_window(&mut self, now: u64) {
        let delta = now - self.rtt_win_sx;
        if self.rtt > 0 && delta > self.rtt.max(RTT_MIN) {
            let sample = self.bk / delta;
            if self.bw_ns_est == 0 && self.bw_est == 0 {
                self.bw_ns_est = sample;
                self.bw_est = sample;
            } else {
                self.bw_ns_est = (7 * self.bw_ns_est + sample) >> 3;
                self.bw_est = (7 * self.bw_est + self.bw_ns_est) >> 3;
            }
            self.bk = 0;
            self.rtt_win_sx = now;
        }
    }

    /// Return the bytes reported by the ACK; credits for duplicate ACKs are subtracted later.
    fn acked_count(&mut self, snd_una: u64) -> u64 {
        let mut count = snd_una.saturating_sub(self.snd_una);
        if count == 0 {
            self.accounted += self.mss;
            count = self.mss;
        }
        if count > self.mss {
            if self.accounted >= count {
                self.accounted -= count;
                count = self.mss;
            } else {
                count -= std::mem::take(&mut self.accounted);
            }
        }
        self.snd_una = snd_una;
        count
    }

    /// Linux `tcp_westwood_ack`.
    fn count(&mut self, now: Time, snd_una: u64, slow_path: bool) {
        // The first ACK counts as one segment, regardless of what it covers.
        let first = std::mem::take(&mut self.first_ack);
        if first {
            self.snd_una = snd_una;
        }
        self.update_window(now.0 / 1_000_000);
        if first || slow_path {
            self.bk += self.acked_count(snd_una);
        } else {
            self.bk += snd_una.saturating_sub(self.snd_una);
            self.snd_una = snd_una;
        }
        if std::mem::take(&mut self.reset_rtt_min) {
            self.rtt_min = self.rtt;
        } else {
            self.rtt_min = self.rtt_min.min(self.rtt);
        }
    }

    fn bw_rttmin(&self) -> u32 {
        (self.bw_est * self.rtt_min / self.mss).clamp(2, u64::from(u32::MAX)) as u32
    }
}

impl CongestionControl for WestwoodPlus {
    /// The first sample's interval starts here, but its bytes are counted from the first ACK on. If the sample spans
    /// two RTTs, it is too low by half.
    fn on_start(&mut self, _window: &mut Window, now: Time, _srtt: Span, smss: u32) {
        self.rtt_win_sx = now.0 / 1_000_000;
        self.mss = u64::from(smss.max(1));
    }

    fn on_sample(&mut self, _window: &mut Window, ack: &Arrival) {
        self.mss = u64::from(ack.smss.max(1));
        if let Some(rtt) = ack.rtt {
            self.rtt = rtt.as_us().div_ceil(1_000);
        }
        self.count(ack.now, ack.snd_una, ack.slow_path);
    }

    fn on_idle(&mut self, now: Time, snd_una: u64, slow_path: bool) {
        // The ACK that ends a handshake arrives before the controller starts (Linux `tcp_rcv_state_process`:
        // `tcp_init_transfer`).
        if slow_path || !self.first_ack {
            self.count(now, snd_una, slow_path);
        }
    }

    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        window.grow_as_reno(ack);
    }

    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        (window.cwnd >> 1).max(2)
    }

    fn on_recovered(&mut self, window: &mut Window, _now: Time) {
        window.ssthresh = self.bw_rttmin();
        window.cwnd = window.ssthresh;
    }

    fn on_rto(&mut self, window: &mut Window, _now: Time) {
        window.ssthresh = self.bw_rttmin();
        self.reset_rtt_min = true;
    }

    fn needs(&self) -> Needs {
        Needs { idle: true, vars: &["estimate_bps", "rtt_min_s"], ..Needs::default() }
    }

    fn vars(&self, values: &mut [f64]) {
        for (value, known) in values.iter_mut().zip([self.bw_est as f64 * 8e3, self.rtt_min as f64 * 1e-3]) {
            *value = known;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::arrival;

    /// Linux `tcp_westwood_ack`, which `tcp_ack` also calls while nothing is outstanding.
    #[test]
    fn what_comes_while_nothing_is_outstanding_ends_a_sample_and_counts_as_a_segment() {
        let begun =
            WestwoodPlus { first_ack: false, rtt: 100, snd_una: 1, mss: 1448, ..WestwoodPlus::default() };
        let mut w = WestwoodPlus { bk: 14_480, ..begun };
        w.on_idle(Time(101_000_000), 1, true);
        assert_eq!((w.bw_est, w.bk, w.accounted), (14_480 / 101, 1448, 1448));
        w.on_idle(Time(150_000_000), 1, false);
        assert_eq!(
            (w.bw_est, w.bk, w.accounted),
            (14_480 / 101, 1448, 1448),
            "an ACK without data counts nothing"
        );
    }

    #[test]
    fn the_ack_that_ends_the_handshake_counts_nothing_and_the_request_behind_it_a_segment() {
        let mut w = WestwoodPlus { mss: 1448, ..WestwoodPlus::default() };
        w.on_idle(Time(80_000_000), 1, false);
        assert_eq!((w.bk, w.accounted, w.first_ack), (0, 0, true));
        w.on_idle(Time(80_000_000), 1, true);
        assert_eq!((w.bk, w.accounted, w.first_ack), (1448, 1448, false));
    }

    #[test]
    fn one_sample_per_rtt_and_two_filters_in_a_row() {
        let mut w = WestwoodPlus::default();
        let mut window = Window::new(10);
        let mut una = 1;
        // 30 samples of 1448 bytes per tick on a 100 ms path
        for ms in 1..3_100_u64 {
            una += 1448;
            let ack = AckSample::from(Arrival {
                snd_una: una,
                rtt: Some(Span::from_ms(100)),
                ..arrival(ms * 1_000_000, 1)
            });
            w.on_sample(&mut window, &ack);
        }
        assert_eq!(w.rtt_min, 100);
        assert!((1430..=1448).contains(&w.bw_est), "{}", w.bw_est);
        window.cwnd = 300;
        assert_eq!(w.ssthresh(&window, 300), 150);
        w.on_recovered(&mut window, Time::ZERO);
        assert_eq!((window.cwnd, window.ssthresh), (w.bw_rttmin(), w.bw_rttmin()));
        assert!((98..=100).contains(&window.cwnd), "{}", window.cwnd);
    }

    #[test]
    fn samples_last_fifty_ms_at_least() {
        let mut w = WestwoodPlus::default();
        let mut window = Window::new(10);
        let mut una = 1;
        let mut filtered = 0;
        for ms in 1..=510_u64 {
            una += 1448;
            let ack = AckSample::from(Arrival {
                snd_una: una,
                rtt: Some(Span::from_ms(4)),
                ..arrival(ms * 1_000_000, 1)
            });
            let before = w.rtt_win_sx;
            w.on_sample(&mut window, &ack);
            filtered += (w.rtt_win_sx != before && ms > 1) as u32;
        }
        assert_eq!(filtered, 10); // one per 51 ticks
    }
}
