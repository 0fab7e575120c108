//! HyStart++: when the minimum RTT of a round has risen, slow start continues at a quarter of its pace, and
//! ends only if the rise lasts for five rounds.
//!
//! Source: RFC 9406 §4. Rounds are delimited by sequence numbers; each ACK gives an RTT sample. The rule applies only
//! to the first slow start, in which ssthresh is arbitrarily high (§4.3).
//!
//! | variable | meaning |
//! |---|---|
//! | `window_end` | snd_nxt at the start of the round, whose acknowledgement ends the round |
//! | `last`, `current` | minimum RTT of the last round and of this one (lastRoundMinRTT, currentRoundMinRTT); `MAX` before the first sample |
//! | `css` | conservative slow start: number of its rounds that have ended, and cssBaselineMinRtt |
//! | `quarters` | acknowledged segments that have not yet led to growth |

use ackclock_core::schema::Takes;
use ackclock_core::{table, Span};

use super::SlowStart;
use crate::controller::{AckSample, Arrival};
use crate::window::Window;

/// Number of RTT samples in a round before their minimum is used (N_RTT_SAMPLE).
const MIN_SAMPLES: u32 = 8;
/// MIN_RTT_THRESH and MAX_RTT_THRESH.
const THRESH_MIN: Span = Span::from_ms(4);
const THRESH_MAX: Span = Span::from_ms(16);
/// MIN_RTT_DIVISOR.
const DIVISOR: u64 = 8;

table! {
    /// HyStart++ (RFC 9406): an increase of the RTT slows down slow start and, if it persists, ends it.
    pub struct HyStartPlusPlusParams "hystart++" {
        /// Divisor of the growth after the increase of the RTT (CSS_GROWTH_DIVISOR).
        css_growth_divisor: u32 = Takes::Whole(2, 1_000), 4;
        /// Number of rounds from the increase of the RTT to the end of slow start (CSS_ROUNDS).
        css_rounds: u32 = Takes::Whole(1, 1_000), 5;
        /// Maximum growth per ACK of a sender without pacing, segments (L).
        burst: u32 = Takes::Whole(1, 1_000_000), 8;
    }
}

/// Conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Css {
    rounds: u32,
    baseline: Span,
}

/// Detection state.
#[derive(Clone, Debug)]
pub struct HyStartPlusPlus {
    params: HyStartPlusPlusParams,
    window_end: u64,
    last: Span,
    current: Span,
    samples: u32,
    css: Option<Css>,
    quarters: u32,
}

impl HyStartPlusPlus {
    /// Create the state at the start of a connection.
    pub fn new(params: &HyStartPlusPlusParams) -> HyStartPlusPlus {
        HyStartPlusPlus {
            params: params.clone(),
            window_end: 0,
            last: Span::MAX,
            current: Span::MAX,
            samples: 0,
            css: None,
            quarters: 0,
        }
    }

    /// Process an RTT sample of this round.
    fn sample(&mut self, rtt: Span) {
        self.current = self.current.min(rtt);
        self.samples += 1;
        if self.samples < MIN_SAMPLES {
            return;
        }
        match self.css {
            None if self.last != Span::MAX && self.current >= self.last + threshold(self.last) => {
                self.css = Some(Css { rounds: 0, baseline: self.current });
                self.quarters = 0;
            }
            // the rise was noise: return to normal slow start
            Some(css) if self.current < css.baseline => self.css = None,
            _ => {}
        }
    }

    /// Start the next round. Return true if the previous one has ended slow start.
    fn next_round(&mut self, snd_nxt: u64) -> bool {
        (self.last, self.current, self.samples) = (self.current, Span::MAX, 0);
        self.window_end = snd_nxt;
        match &mut self.css {
            Some(css) => {
                css.rounds += 1; // the round in which it began counts
                css.rounds >= self.params.css_rounds
            }
            None => false,
        }
    }
}

/// RttThresh: maximum increase of the minimum RTT from one round to the next.
fn threshold(last: Span) -> Span {
    (last / DIVISOR).clamp(THRESH_MIN, THRESH_MAX)
}

/// Whether the connection is in its first slow start, without congestion so far.
pub(super) fn is_first(window: &Window) -> bool {
    window.ssthresh == Window::INFINITE && window.in_slow_start()
}

impl SlowStart for HyStartPlusPlus {
    fn on_sample(&mut self, window: &mut Window, ack: &Arrival, rtt: Option<Span>) {
        if !is_first(window) {
            return;
        }
        if self.window_end == 0 {
            self.window_end = ack.snd_nxt;
        }
        if let Some(rtt) = rtt {
            self.sample(rtt);
        }
        if ack.snd_una >= self.window_end && self.next_round(ack.snd_nxt) {
            window.ssthresh = window.cwnd;
        }
    }

    fn growth(&mut self, window: &mut Window, ack: &AckSample) -> Option<u32> {
        if !is_first(window) {
            return Some(ack.acked);
        }
        let counted = if ack.paced { ack.acked } else { ack.acked.min(self.params.burst) };
        if self.css.is_none() {
            return Some(counted);
        }
        self.quarters += counted;
        let whole = self.quarters / self.params.css_growth_divisor;
        self.quarters %= self.params.css_growth_divisor;
        Some(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::arrival;

    const SMSS: u64 = 1448;

    /// A sender that receives one ACK per segment, round by round.
    struct Path {
        rule: HyStartPlusPlus,
        window: Window,
        una: u64,
        nxt: u64,
    }

    impl Path {
        fn new() -> Path {
            let rule = HyStartPlusPlus::new(&ackclock_core::schema::usual("hystart++"));
            Path { rule, window: Window::new(10), una: 1, nxt: 1 + 10 * SMSS }
        }

        /// Process ACKs for `acks` segments with this RTT, each growing the window as Reno would.
        fn acks(&mut self, acks: u32, rtt_us: u64) {
            for _ in 0..acks {
                self.una += SMSS;
                let ack = Arrival { snd_una: self.una, snd_nxt: self.nxt, ..arrival(0, 1) };
                self.rule.on_sample(&mut self.window, &ack, Some(Span::from_us(rtt_us)));
                let grown = self.rule.growth(&mut self.window, &ack.into()).expect("asked");
                if self.window.in_slow_start() {
                    self.window.slow_start(grown);
                }
                self.nxt = self.nxt.max(self.una + u64::from(self.window.cwnd) * SMSS);
            }
        }

        /// Process ACKs with this RTT until the rise is detected.
        fn rise(&mut self, rtt_us: u64) {
            while self.rule.css.is_none() {
                self.acks(1, rtt_us);
            }
        }

        /// Simulate a round that acknowledges everything outstanding.
        fn round(&mut self, rtt_us: u64) {
            let outstanding = ((self.nxt - self.una) / SMSS) as u32;
            self.acks(outstanding, rtt_us);
        }
    }

    #[test]
    fn thresholds_are_an_eighth_within_4_and_16_ms() {
        for (last_ms, rise_us) in [(100, 12_500), (20, 4_000), (200, 16_000)] {
            assert_eq!(threshold(Span::from_ms(last_ms)), Span::from_us(rise_us));
            for (rtt_us, css) in [(last_ms * 1000 + rise_us - 1, false), (last_ms * 1000 + rise_us, true)] {
                let mut path = Path::new();
                path.round(last_ms * 1000);
                path.acks(8, rtt_us);
                assert_eq!(path.rule.css.is_some(), css, "{last_ms} {rtt_us}");
            }
        }
    }

    #[test]
    fn seven_samples_say_nothing() {
        let mut path = Path::new();
        path.round(100_000);
        path.acks(7, 200_000);
        assert!(path.rule.css.is_none());
        path.acks(1, 200_000);
        assert!(path.rule.css.is_some());
    }

    #[test]
    fn forty_segments_in_conservative_slow_start_are_ten() {
        let mut path = Path::new();
        path.round(100_000);
        path.round(100_000);
        path.rise(120_000);
        let before = path.window.cwnd;
        path.acks(39, 120_000); // the segment that detected the rise counts as well
        assert_eq!(path.window.cwnd - before, 10);
        // an ACK for many segments counts as eight unless the sender paces
        let many = AckSample::from(arrival(0, 40));
        assert_eq!(path.rule.growth(&mut path.window, &many), Some(2));
        path.rule.quarters = 0;
        let paced = AckSample::from(Arrival { paced: true, ..arrival(0, 40) });
        assert_eq!(path.rule.growth(&mut path.window, &paced), Some(10));
    }

    #[test]
    fn five_rounds_of_it_end_slow_start() {
        let mut path = Path::new();
        for _ in 0..4 {
            path.round(100_000);
        }
        path.rise(120_000);
        let entered = path.window.cwnd;
        let mut rounds = 0;
        while path.window.in_slow_start() {
            path.round(120_000);
            rounds += 1;
            assert!(rounds < 10);
        }
        // four whole rounds and part of another: less than 1.25^5
        assert!((5..=6).contains(&rounds), "{rounds}");
        assert_eq!(path.window.ssthresh, path.window.cwnd);
        let growth = f64::from(path.window.cwnd) / f64::from(entered);
        assert!((1.25_f64.powi(4) - 0.1..1.25_f64.powi(5)).contains(&growth), "{growth}");
    }

    #[test]
    fn a_rise_that_goes_is_no_congestion() {
        let mut path = Path::new();
        path.round(100_000);
        path.round(100_000);
        path.rise(120_000);
        path.round(120_000);
        path.round(101_000);
        assert!(path.rule.css.is_none());
        let (cwnd, outstanding) = (path.window.cwnd, ((path.nxt - path.una) / SMSS) as u32);
        path.round(101_000);
        assert_eq!(path.window.cwnd, cwnd + outstanding);
    }

    #[test]
    fn only_the_first_slow_start_is_watched() {
        let mut path = Path::new();
        path.window.ssthresh = 5_000;
        path.round(100_000);
        path.round(300_000);
        path.round(300_000);
        assert!(path.rule.css.is_none() && path.window.ssthresh == 5_000);
    }
}
