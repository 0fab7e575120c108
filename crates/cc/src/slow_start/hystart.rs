//! HyStart: leaves slow start before the queue overflows, when a train of closely spaced ACKs has become as long as
//! half the minimum RTT, or when the minimum RTT of a round has risen.
//!
//! Sources: Ha and Rhee, "Taming the elephants: new TCP slow start" (2011); constants and order of the tests as in
//! Linux 6.13 and later (`hystart_update`, `hystart_ack_delay`).
//!
//! | variable | meaning |
//! |---|---|
//! | `round_start`, `last_ack` | start of the round, last ACK of the train, us |
//! | `end_seq` | snd_nxt at the start of the round, whose acknowledgement ends the round |
//! | `curr_rtt`, `sample_cnt` | minimum RTT of the round, us, and number of samples |
//! | `found` | slow start has ended; reset by an RTO |
//!
//! Differs: the round restarts on the first ACK after an RTO, not at the RTO itself (one ACK later); the pacing rate
//! is computed from this ACK's window, where Linux uses the value of the ACK before.

use ackclock_core::schema::{Takes, DURATION_OR_ZERO, FLAG};
use ackclock_core::{table, Span};

use super::SlowStart;
use crate::controller::Arrival;
use crate::window::Window;

/// Number of RTT samples in a round before their minimum is used.
const MIN_SAMPLES: u8 = 8;
/// Bounds of the rise in RTT that ends slow start, us.
const DELAY_MIN: u32 = 4_000;
const DELAY_MAX: u32 = 16_000;
/// Maximum burst of segmentation offload, bytes (Linux `sk_gso_max_size`).
const GSO_MAX_SIZE: u128 = 65_536;

table! {
    /// HyStart as in Linux: slow start ends when an ACK train becomes long or the RTT rises.
    pub struct HyStartParams "hystart" {
        /// Detect by the length of ACK trains (bit 0 of Linux `hystart_detect`).
        ack_train: bool = FLAG, true;
        /// Detect by the increase of the RTT (bit 1 of Linux `hystart_detect`).
        delay: bool = FLAG, true;
        /// Minimum cwnd for detection, segments (Linux `hystart_low_window`).
        low_window: u32 = Takes::Whole(0, 1_000_000), 16;
        /// Maximum spacing of the ACKs of a train, in whole microseconds (Linux `hystart_ack_delta_us`).
        ack_delta: Span = DURATION_OR_ZERO, Span::from_ms(2);
    }
}

impl HyStartParams {
    /// The kernel's parameters.
    pub const LINUX: HyStartParams =
        HyStartParams { ack_train: true, delay: true, low_window: 16, ack_delta: Span::from_ms(2) };
}

/// Detection state.
#[derive(Clone, Debug)]
pub struct HyStart {
    params: HyStartParams,
    /// Minimum RTT since the start or the last RTO, us; 0 before the first sample.
    delay_min: u32,
    found: bool,
    started: bool,
    round_start: u64,
    last_ack: u64,
    end_seq: u64,
    curr_rtt: u32,
    sample_cnt: u8,
}

impl SlowStart for HyStart {
    fn on_sample(&mut self, window: &mut Window, ack: &Arrival, rtt: Option<Span>) {
        let Some(rtt) = rtt else { return };
        let delay = u32::try_from(rtt.as_us()).unwrap_or(u32::MAX).max(1);
        if self.delay_min == 0 || delay < self.delay_min {
            self.delay_min = delay;
        }
        if !self.found && window.in_slow_start() {
            self.detect(window, ack, delay);
        }
    }

    fn on_rto(&mut self) {
        (self.delay_min, self.found, self.started) = (0, false, false);
    }
}

impl HyStart {
    /// Create the state before any detection.
    pub fn new(params: &HyStartParams) -> HyStart {
        HyStart {
            params: params.clone(),
            delay_min: 0,
            found: false,
            started: false,
            round_start: 0,
            last_ack: 0,
            end_seq: 0,
            curr_rtt: 0,
            sample_cnt: 0,
        }
    }

    /// Whether slow start has ended. Samples are then ignored until a timeout, which resets them.
    #[inline]
    pub fn found(&self) -> bool {
        self.found
    }

    /// Process an RTT sample of `delay` us in slow start. Set ssthresh to cwnd if slow start ends.
    fn detect(&mut self, window: &mut Window, ack: &Arrival, delay: u32) {
        let now = ack.now.0 / 1_000;
        if !self.started || ack.snd_una > self.end_seq {
            self.start_round(now, ack.snd_nxt);
        }
        if window.cwnd < self.params.low_window {
            return;
        }
        let delay_min = self.delay_min;
        if self.params.ack_train && now - self.last_ack <= self.params.ack_delta.as_us() {
            self.last_ack = now;
            let mut threshold = u64::from(delay_min) + ack_delay(window, ack);
            if !ack.paced {
                threshold >>= 1;
            }
            if now - self.round_start > threshold {
                self.leave(window);
            }
        }
        if !self.params.delay {
            return;
        }
        self.curr_rtt = self.curr_rtt.min(delay);
        if self.sample_cnt < MIN_SAMPLES {
            self.sample_cnt += 1;
        } else if self.curr_rtt > delay_min.saturating_add((delay_min >> 3).clamp(DELAY_MIN, DELAY_MAX)) {
            self.leave(window);
        }
    }

    fn start_round(&mut self, now: u64, snd_nxt: u64) {
        self.started = true;
        self.round_start = now;
        self.last_ack = now;
        self.end_seq = snd_nxt;
        self.curr_rtt = u32::MAX;
        self.sample_cnt = 0;
    }

    fn leave(&mut self, window: &mut Window) {
        if self.found {
            return; // if both tests succeed on one ACK, the first counts
        }
        self.found = true;
        window.ssthresh = window.cwnd;
    }
}

/// Allowance for segmentation offload in the length of a train, us: four bursts at the pacing rate, at most 1 ms. The
/// rate is Linux's, even if the sender does not pace: 200 % of the window per SRTT below ssthresh / 2, 120 % above.
fn ack_delay(window: &Window, ack: &Arrival) -> u64 {
    let ratio = if window.cwnd < window.ssthresh / 2 { 200 } else { 120 };
    let in_window = u128::from(ack.smss) * u128::from(window.cwnd.max(ack.prior_in_flight));
    if in_window == 0 {
        return 0;
    }
    // bursts / rate, with rate = in_window * ratio / 100 / srtt; an unknown SRTT means an unbounded rate
    let us = GSO_MAX_SIZE * 4 * 100 * u128::from(ack.srtt.as_us()) / (in_window * ratio);
    us.min(1_000) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::arrival;

    const SMSS: u64 = 1448;

    /// Simulate rounds of slow start on a 100 ms path with ACKs `gap_us` apart and the RTT of `rtt_us(round)`.
    fn rounds(paced: bool, gap_us: u64, rtt_us: impl Fn(u64) -> u64) -> (HyStart, Window) {
        rounds_of(HyStartParams::LINUX, paced, gap_us, rtt_us)
    }

    fn rounds_of(
        params: HyStartParams,
        paced: bool,
        gap_us: u64,
        rtt_us: impl Fn(u64) -> u64,
    ) -> (HyStart, Window) {
        let mut h = HyStart::new(&params);
        let mut w = Window::new(10);
        let (mut una, mut nxt) = (0, 10 * SMSS);
        for round in 0..8 {
            let t0 = (round + 1) * 100_000_000;
            for i in 0..w.cwnd {
                una += SMSS;
                let rtt = rtt_us(round);
                let ack = Arrival {
                    snd_una: una,
                    snd_nxt: nxt,
                    paced,
                    ..arrival(t0 + u64::from(i) * gap_us * 1_000, 1)
                };
                h.on_sample(&mut w, &ack, Some(Span::from_us(rtt)));
                if !w.in_slow_start() {
                    return (h, w);
                }
                w.slow_start(1);
                nxt += 2 * SMSS;
            }
        }
        (h, w)
    }

    #[test]
    fn a_train_longer_than_half_the_rtt_ends_slow_start() {
        // 1 ms apart: in the round of 80 ACKs the train exceeds 50.5 ms (half of 100 ms + 1 ms) at its 52nd ACK
        let (h, w) = rounds(false, 1_000, |_| 100_000);
        assert_eq!((h.found, w.ssthresh), (true, 80 + 51));
        assert_eq!(w.ssthresh, w.cwnd);
        // a paced sender uses the whole RTT as the threshold: the round of 160 reaches 101 ms
        let (h, w) = rounds(true, 1_000, |_| 100_000);
        assert_eq!((h.found, w.ssthresh), (true, 160 + 102));
    }

    #[test]
    fn spread_acks_are_no_train() {
        let (h, w) = rounds(false, 2_001, |_| 100_000);
        assert!(!h.found);
        assert!(w.in_slow_start());
    }

    #[test]
    fn a_rise_of_an_eighth_ends_slow_start_after_eight_samples() {
        let rtt = |round| if round < 3 { 100_000 } else { 112_501 };
        let (h, w) = rounds(false, 10, rtt);
        assert_eq!((h.found, w.ssthresh), (true, 80 + 8));
        let (h, _) = rounds(false, 10, |round| if round < 3 { 100_000 } else { 112_500 });
        assert!(!h.found);
    }

    #[test]
    fn each_test_works_without_the_other() {
        let both = HyStartParams::LINUX;
        let train = HyStartParams { delay: false, ..both.clone() };
        let delay = HyStartParams { ack_train: false, ..both };
        let rising = |round| if round < 3 { 100_000 } else { 120_000 };
        // bursts of ACKs with rising RTT
        let left = |params: &HyStartParams, gap_us, rtt_us: &dyn Fn(u64) -> u64| {
            let (h, w) = rounds_of(params.clone(), false, gap_us, rtt_us);
            h.found.then_some(w.ssthresh)
        };
        assert_eq!(left(&train, 10, &rising), None);
        assert_eq!(left(&delay, 10, &rising), Some(80 + 8));
        // a long train at a constant RTT
        assert_eq!(left(&train, 1_000, &|_| 100_000), Some(80 + 51));
        assert_eq!(left(&delay, 1_000, &|_| 100_000), None);
        let neither = HyStartParams { ack_train: false, ..train };
        assert_eq!(left(&neither, 1_000, &rising), None);
    }

    #[test]
    fn bounds_of_window_and_train_are_parameters() {
        let later = HyStartParams { low_window: 100, ..HyStartParams::LINUX };
        let (h, w) = rounds_of(later, false, 10, |round| if round < 3 { 100_000 } else { 120_000 });
        // sampled from cwnd 100 on, in the round that begins with 80
        assert_eq!((h.found, w.ssthresh), (true, 100 + 8));
        let close = HyStartParams { ack_delta: Span::from_us(999), ..HyStartParams::LINUX };
        assert!(!rounds_of(close, false, 1_000, |_| 100_000).0.found);
    }

    #[test]
    fn small_windows_are_left_alone() {
        let (h, w) = rounds(false, 10, |round| if round < 1 { 100_000 } else { 130_000 });
        // round 1 starts at 20 >= 16; a rise within the first round of 10 is ignored until cwnd is 16
        assert_eq!((h.found, w.ssthresh), (true, 20 + 8));
    }

    #[test]
    fn after_a_timeout_it_may_fire_again() {
        let (mut h, mut w) = rounds(false, 10, |round| if round < 3 { 100_000 } else { 120_000 });
        h.on_rto();
        w.ssthresh = 1000;
        // The minimum RTT is reset as well. One low sample is followed by a round of high ones: eight samples, and the
        // one that detects the rise.
        for i in 0..10 {
            let (una, rtt) = if i == 0 { (1 << 20, 100_000) } else { (3 << 20, 120_000) };
            let ack = Arrival { snd_una: una, snd_nxt: una + (1 << 20), ..arrival(2_000_000_000 + i, 1) };
            h.on_sample(&mut w, &ack, Some(Span::from_us(rtt)));
            assert_eq!(w.in_slow_start(), i < 9);
        }
    }

    #[test]
    fn allowance_for_offload_is_at_most_a_millisecond() {
        let w = Window::new(1000);
        let ack = Arrival { srtt: ackclock_core::Span::from_us(1_000), ..arrival(0, 1) };
        // 262144 B at 2 * 1000 * 1448 B/ms
        assert_eq!(ack_delay(&w, &ack), 90);
        assert_eq!(ack_delay(&w, &arrival(0, 1)), 1_000);
    }
}
