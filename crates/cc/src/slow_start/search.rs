//! SEARCH: slow start ends when less data is delivered than was sent one round trip earlier, over windows of 3.5 round
//! trips.
//!
//! Source: draft-chung-ccwg-search-09. Bytes sent and delivered are counted in bins of 0.35 of the first RTT; a window
//! is ten of them. At the end of each bin the bytes delivered in the window are compared with those sent in the window
//! one RTT earlier, interpolated between bins. The rule applies only to the first slow start.
//!
//! | variable | meaning |
//! |---|---|
//! | `width` | length of a bin |
//! | `current` | bin that ended last; the first ACK ends bin 0 |
//! | `acked`, `sent` | cumulative bytes at the end of a bin |
//! | `target` | after slow start: window to which cwnd falls, segments |
//!
//! Differs: the text of -09 interpolates towards the following bin, which its authors call a mistake; the preceding bin
//! is used here. The draft does not specify how cwnd falls; here it falls by one segment for every second segment
//! delivered, as in rate halving. Delivered bytes are those acknowledged in order, as in the draft's examples.

use ackclock_core::schema::FLAG;
use ackclock_core::{table, Span, Time};

use super::hystart_plus_plus::is_first;
use super::SlowStart;
use crate::controller::{AckSample, Arrival};
use crate::window::Window;

/// Number of bins in a window (W).
const WINDOW: u64 = 10;
/// Number of additional bins, so that the bytes sent one RTT ago are still known when the RTT has grown.
const EXTRA: u64 = 15;
/// Number of stored bins; a power of two above `WINDOW` + `EXTRA`.
const PLACES: usize = 32;
/// Shortfall of delivered against sent bytes that ends slow start, in percent (THRESH).
const THRESH: u64 = 26;
/// Minimum window after slow start, segments.
const LEAST: u32 = 10;

table! {
    /// SEARCH (draft-chung-ccwg-search-09): slow start ends when much less is delivered than was sent one RTT earlier.
    pub struct SearchParams "search" {
        /// At the end of slow start, reduce cwnd to the number of segments delivered during the last initial RTT, which
        /// drains the queue. If false, set ssthresh to cwnd and keep cwnd.
        drain: bool = FLAG, true;
    }
}

/// Detection state.
#[derive(Clone, Debug)]
pub struct Search {
    params: SearchParams,
    width: Span,
    end: Time,
    current: u64,
    acked: [u64; PLACES],
    sent: [u64; PLACES],
    target: u32,
    /// Whether one delivered segment has not been matched by a decrease of cwnd yet.
    odd: bool,
}

impl Search {
    /// Create the state at the start of a connection.
    pub fn new(params: &SearchParams) -> Search {
        Search {
            params: params.clone(),
            width: Span::ZERO,
            end: Time::ZERO,
            current: 0,
            acked: [0; PLACES],
            sent: [0; PLACES],
            target: 0,
            odd: false,
        }
    }

    /// Start the bins, with the first RTT.
    fn begin(&mut self, ack: &Arrival, rtt: Span) {
        self.width = (rtt * 35 / 100).max(Span(1));
        self.end = ack.now + self.width;
        self.current = 0;
        (self.acked[0], self.sent[0]) = (ack.snd_una, ack.snd_nxt);
    }

    /// Close the bins that have ended by now, with the current counts. Return false if too many have been skipped for
    /// a comparison.
    fn advance(&mut self, ack: &Arrival) -> bool {
        let skipped = ack.now.since(self.end).0 / self.width.0;
        if skipped > WINDOW {
            return false;
        }
        for _ in 0..skipped {
            let (from, to) = (place(self.current), place(self.current + 1));
            (self.acked[to], self.sent[to]) = (self.acked[from], self.sent[from]);
            self.current += 1;
        }
        self.current += 1;
        let at = place(self.current);
        (self.acked[at], self.sent[at]) = (ack.snd_una, ack.snd_nxt);
        self.end += Span(self.width.0 * (skipped + 1));
        true
    }

    /// Return the bytes sent in the window one `rtt` ago and those delivered in the current window; `None` if unknown.
    fn compared(&self, rtt: Span) -> Option<(u64, u64)> {
        let (k, part) = (rtt.0 / self.width.0, rtt.0 % self.width.0);
        let i = self.current;
        if k >= EXTRA || i <= WINDOW + k {
            return None;
        }
        let j = i - k;
        let window = |bins: &[u64; PLACES], end: u64| bins[place(end)] - bins[place(end - WINDOW)];
        let (later, earlier) = (window(&self.sent, j), window(&self.sent, j - 1));
        let parts =
            u128::from(later) * u128::from(self.width.0 - part) + u128::from(earlier) * u128::from(part);
        let sent = (parts / u128::from(self.width.0)) as u64;
        Some((sent, window(&self.acked, i)))
    }

    /// Return the bytes delivered during the last initial RTT, which is 2 6/7 bins.
    fn delivered_in_first_rtt(&self) -> u64 {
        let back = |bins: u64| self.acked[place(self.current - bins)];
        let since = (u128::from(back(2)) + u128::from(back(3)) * 6) / 7;
        self.acked[place(self.current)] - since as u64
    }

    fn leave(&mut self, window: &mut Window, smss: u32) {
        window.ssthresh = window.cwnd;
        if self.params.drain {
            let segments = self.delivered_in_first_rtt() / u64::from(smss.max(1));
            self.target = u32::try_from(segments).unwrap_or(u32::MAX).max(LEAST).min(window.cwnd);
            window.ssthresh = self.target;
        }
    }
}

fn place(bin: u64) -> usize {
    bin as usize % PLACES
}

/// Whether delivered bytes fall short of sent bytes by at least the threshold.
fn falls_short(sent: u64, delivered: u64) -> bool {
    sent > 0 && sent.saturating_sub(delivered) * 100 >= sent * THRESH
}

impl SlowStart for Search {
    fn on_sample(&mut self, window: &mut Window, ack: &Arrival, rtt: Option<Span>) {
        let Some(rtt) = rtt.filter(|_| is_first(window)) else { return };
        if self.width == Span::ZERO {
            self.begin(ack, rtt);
        } else if ack.now >= self.end {
            if !self.advance(ack) {
                self.begin(ack, rtt);
            } else if self.compared(rtt).is_some_and(|(sent, delivered)| falls_short(sent, delivered)) {
                self.leave(window, ack.smss);
            }
        }
    }

    fn growth(&mut self, window: &mut Window, ack: &AckSample) -> Option<u32> {
        if self.target == 0 {
            return Some(ack.acked);
        }
        // a reduction since then has set its own target
        if window.cwnd <= self.target || window.ssthresh != self.target {
            self.target = 0;
            return Some(ack.acked);
        }
        let delivered = ack.acked + u32::from(self.odd);
        self.odd = !delivered.is_multiple_of(2);
        window.cwnd = window.cwnd.saturating_sub(delivered / 2).max(self.target);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::{arrival, sample};

    const SMSS: u64 = 1448;
    const RTT: Span = Span::from_ms(100);

    fn rule(drain: bool) -> Search {
        Search::new(&SearchParams { drain })
    }

    /// Return an ACK at `at_ms`; the first one arrives one RTT after the start.
    fn at(at_ms: u64, una: u64, nxt: u64) -> Arrival {
        Arrival { snd_una: una, snd_nxt: nxt, ..arrival(at_ms * 1_000_000, 1) }
    }

    /// Simulate a fluid sender that doubles its rate per RTT, with an ACK every 5 ms; deliveries are limited to `most`
    /// bytes per ms. Return the time of the exit in ms after the first ACK.
    fn exit(most: f64, until_ms: u64) -> Option<u64> {
        let mut rule = rule(false);
        let mut window = Window::new(10);
        let sent = |ms: f64| 10.0 * SMSS as f64 * (2.0_f64).powf(ms / 100.0);
        let mut una = 0.0_f64;
        for ms in (0..until_ms).step_by(5) {
            let offered = sent(ms as f64 - 100.0);
            una = offered.min(una + if una > 0.0 { most * 5.0 } else { f64::MAX });
            window.cwnd = 1_000_000;
            rule.on_sample(&mut window, &at(1_000 + ms, una as u64, sent(ms as f64) as u64), Some(RTT));
            if window.ssthresh != Window::INFINITE {
                return Some(ms);
            }
        }
        None
    }

    #[test]
    fn bins_are_35_hundredths_of_the_first_rtt_and_the_first_test_comes_at_the_13th() {
        let mut rule = rule(true);
        let mut window = Window::new(10);
        for ms in 0..460 {
            rule.on_sample(&mut window, &at(1_000 + ms, ms * 100, ms * 200), Some(RTT));
            assert_eq!(rule.compared(RTT).is_some(), rule.current >= 13, "{ms}");
        }
        assert_eq!(rule.width, Span::from_ms(35));
        assert_eq!(rule.current, 13); // 4.55 RTT
    }

    #[test]
    fn what_was_sent_is_read_between_two_bins() {
        let mut rule = rule(true);
        rule.width = Span::from_ms(35);
        rule.current = 13;
        for bin in 0..31 {
            rule.sent[bin] = 1_000 * (bin as u64) * (bin as u64);
            rule.acked[bin] = 100 * bin as u64;
        }
        // k = 2, f = 30/35: 1/7 of (11^2 - 1^2) and 6/7 of (10^2 - 0)
        assert_eq!(rule.compared(RTT), Some(((120_000 + 6 * 100_000) / 7, 1_000)));
        // an RTT of at least 5.25 times the first is too long to compare
        rule.current = 30;
        assert!(rule.compared(Span::from_us(524_999)).is_some());
        assert!(rule.compared(Span::from_ms(525)).is_none());
    }

    #[test]
    fn a_missing_quarter_and_a_hundredth_is_the_end() {
        assert!(falls_short(1_000, 740));
        assert!(!falls_short(1_000, 741));
        assert!(!falls_short(0, 0));
        assert!(!falls_short(1_000, 1_200));
    }

    #[test]
    fn clean_doubling_goes_on_and_a_full_link_ends_it() {
        assert_eq!(exit(f64::MAX, 1_200), None);
        // the data sent 300 ms after the start exceeds the link's 116 bytes/ms
        let full = 10.0 * SMSS as f64 * 8.0 / 100.0 * std::f64::consts::LN_2;
        let found = exit(full, 3_000).expect("found");
        assert!((455..900).contains(&found), "{found}");
    }

    #[test]
    fn skipped_bins_hold_what_was_counted_before() {
        let mut rule = rule(true);
        let mut window = Window::new(10);
        rule.on_sample(&mut window, &at(0, 10, 20), Some(RTT));
        rule.on_sample(&mut window, &at(36, 30, 60), Some(RTT));
        rule.on_sample(&mut window, &at(36 + 35 * 3, 90, 200), Some(RTT));
        assert_eq!(rule.current, 4);
        assert_eq!(rule.acked[..5], [10, 30, 30, 30, 90]);
        assert_eq!(rule.sent[..5], [20, 60, 60, 60, 200]);
        // idle for longer than a window: the bins restart
        rule.on_sample(&mut window, &at(141 + 35 * 12, 100, 300), Some(RTT));
        assert_eq!((rule.current, rule.acked[0], rule.sent[0]), (0, 100, 300));
    }

    #[test]
    fn the_window_falls_to_what_the_empty_path_delivers() {
        let mut rule = rule(true);
        (rule.width, rule.current) = (Span::from_ms(35), 13);
        for bin in 0..14 {
            rule.acked[bin] = 35 * SMSS * bin as u64; // 1 segment per ms
        }
        let mut window = Window::new(180);
        rule.leave(&mut window, SMSS as u32);
        assert_eq!((window.cwnd, window.ssthresh), (180, 100)); // 100 ms at 1 segment per ms
        let mut acks = 0;
        while rule.growth(&mut window, &sample(0, 1)).is_none() {
            acks += 1;
        }
        assert_eq!((window.cwnd, acks), (100, 160));
        let mut held = Search { params: SearchParams { drain: false }, ..rule };
        window.cwnd = 180;
        held.leave(&mut window, SMSS as u32);
        assert_eq!((window.cwnd, window.ssthresh), (180, 180));
    }

    #[test]
    fn a_reduction_takes_over() {
        let mut rule = rule(true);
        rule.target = 90;
        let mut window = Window { ssthresh: 60, ..Window::new(100) };
        assert_eq!(rule.growth(&mut window, &sample(0, 1)), Some(1));
        assert_eq!((window.cwnd, rule.target), (100, 0));
    }
}
