//! FAST: delay-based congestion control that aims to keep `alpha` packets in the queues.
//!
//! Sources: Jin, Wei, Low, "FAST TCP: motivation, architecture, algorithms, performance" (INFOCOM 2004); constants and
//! the slow-start exit as in the ns-2 module of Cui and Andrew where the paper is silent.
//!
//! | variable | meaning |
//! |---|---|
//! | `base_rtt` | minimum RTT; q = avg_rtt - base_rtt |
//! | `avg_rtt` | mean RTT, weight min(3/w, 1/4) (paper) or 1/max(256, w/3) (ns-2) |
//! | `gamma`, `alpha` | gain, and number of packets that the flow keeps queued |
//! | `w_old` | window one round trip ago |
//!
//! w <- min(2w, (1 - gamma) w + gamma ((base_rtt/avg_rtt) w_old + alpha)), once per `period` round trips; a change is
//! spread over the ACKs of the round if base_rtt is at least 4 ms. While the newest RTT exceeds base_rtt by less than
//! `mi_threshold`, an update doubles the window instead; a doubling in progress stops when the delay rises above the
//! threshold. A loss halves the window.
//!
//! Differs: the ns-2 module doubles on every ACK while the mean is below the threshold. The mean lags by a third of a
//! round trip, and paced segments queue late. A 333-segment window on a 4 ms path thus grew to 1,050 before the mean
//! rose. With one doubling per update period, the queueing delay shows the effect before the next update.

use ackclock_core::schema::{Takes, FLAG};
use ackclock_core::{choice, table, Time};

use super::{AckSample, Arrival, CongestionControl, Needs};
use crate::window::Window;

table! {
    /// Options of `fast`.
    pub(super) struct FastOptions "fast" {
        /// number of packets to keep in the queues
        alpha: f64 = Takes::Number(1.0, 1e6), 200.0;
        /// alpha is 8 below 10 Mbit/s, 20 below 100 Mbit/s, and 200 from 100 Mbit/s on
        alpha_bands: bool = FLAG, false;
        /// the window does not change while alpha to beta packets are queued; with 0, beta equals alpha, and the window
        /// always changes
        beta: f64 = Takes::Number(0.0, 1e6), 0.0;
        /// gain of a window update
        gamma: f64 = Takes::Number(0.001, 1.0), 0.5;
        /// queueing delay below which an update doubles the window and above which slow start ends, seconds
        mi_threshold_s: f64 = Takes::Number(0.0, 10.0), 0.00075;
        /// double the window below the threshold also after slow start
        low_delay_doubling: bool = FLAG, true;
        /// number of round trips per update
        period: u32 = Takes::Whole(1, 100), 2;
        /// weight of an RTT sample in the mean, for a window w: min(3/w, 1/4), or 1/max(256, w/3)
        weight: Weight = Weight::TAKES, Weight::Paper;
        /// pace segments
        pacing: bool = FLAG, true;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    Paper,
    Ns2,
}

choice! { Weight: Paper "paper", Ns2 "ns2" }

/// FAST TCP.
#[derive(Clone, Debug)]
pub struct Fast {
    options: FastOptions,
    alpha: f64,

    base_rtt: f64,
    avg_rtt: f64,
    newest_rtt: f64,
    end_seq: u64,
    rounds: u32,
    w_old: f64,
    /// Window including its fractional part, segments; cwnd is the integer part.
    window: f64,
    /// Change of the window for each segment acknowledged in the rest of this round, segments; negative to shrink.
    slope: f64,
    target: f64,
    /// Whether the change in progress is a doubling.
    doubled: bool,
    rate_bps: f64,
}

/// Minimum base RTT at which changes are spread over a round, seconds.
const SPREAD: f64 = 0.004;
/// Minimum window, segments.
const FLOOR: f64 = 2.0;

impl Fast {
    pub(super) fn new(options: &FastOptions) -> Fast {
        Fast {
            options: options.clone(),
            alpha: options.alpha,
            base_rtt: f64::INFINITY,
            avg_rtt: 0.0,
            newest_rtt: 0.0,
            end_seq: 0,
            rounds: 0,
            w_old: 0.0,
            window: 0.0,
            slope: 0.0,
            target: 0.0,
            doubled: false,
            rate_bps: 0.0,
        }
    }

    fn queueing(&self) -> f64 {
        self.avg_rtt - self.base_rtt
    }

    /// Whether both the newest and the mean RTT indicate almost no queue.
    fn low_delay(&self) -> bool {
        self.newest_rtt.max(self.avg_rtt) - self.base_rtt < self.options.mi_threshold_s
    }

    fn alpha(&self) -> f64 {
        match self.options.alpha_bands {
            true if self.rate_bps < 10e6 => 8.0,
            true if self.rate_bps < 100e6 => 20.0,
            true => 200.0,
            false => self.alpha,
        }
    }

    /// Return the window after one update.
    fn updated(&self, w: f64, w_old: f64) -> f64 {
        let alpha = self.alpha();
        let queued = w_old * self.queueing() / self.avg_rtt;
        if (alpha..self.options.beta).contains(&queued) {
            return w;
        }
        let goal = self.base_rtt / self.avg_rtt * w_old + alpha;
        (2.0 * w).min((1.0 - self.options.gamma) * w + self.options.gamma * goal).max(FLOOR)
    }

    /// End a round trip. Return the new window if the change is not spread over the next round.
    fn on_round(&mut self, window: &Window, ack: &AckSample) -> Option<f64> {
        let w = self.window;
        self.rate_bps = w * f64::from(ack.smss) * 8.0 / self.avg_rtt;
        self.rounds += 1;
        if self.rounds >= self.options.period {
            self.rounds = 0;
            self.doubled = self.options.low_delay_doubling && self.low_delay();
            self.target = if self.doubled { 2.0 * w } else { self.updated(w, self.w_old) };
            self.slope = if self.base_rtt >= SPREAD { (self.target - w) / w.max(1.0) } else { 0.0 };
        } else {
            self.doubled = false;
            self.slope = 0.0;
            self.target = w;
        }
        self.w_old = f64::from(window.cwnd);
        (self.base_rtt < SPREAD).then_some(self.target)
    }
}

impl CongestionControl for Fast {
    fn on_sample(&mut self, window: &mut Window, ack: &Arrival) {
        let Some(rtt) = ack.rtt else { return };
        let rtt = rtt.as_secs();
        self.base_rtt = self.base_rtt.min(rtt);
        if self.avg_rtt == 0.0 {
            self.avg_rtt = rtt;
        }
        self.newest_rtt = rtt;
        let w = f64::from(window.cwnd.max(1));
        let weight =
            if self.options.weight == Weight::Ns2 { 1.0 / (w / 3.0).max(256.0) } else { (3.0 / w).min(0.25) };
        self.avg_rtt += weight * (rtt - self.avg_rtt);
        if window.in_slow_start() && !self.low_delay() {
            window.ssthresh = window.cwnd;
        }
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        if window.in_slow_start() {
            if ack.cwnd_limited {
                window.slow_start(ack.acked);
            }
            self.window = f64::from(window.cwnd);
            self.w_old = self.window;
            self.target = self.window;
            self.slope = 0.0;
            self.end_seq = ack.snd_nxt;
            self.rounds = 0;
            return;
        }
        if self.avg_rtt == 0.0 {
            return;
        }
        // a recovery rule may have changed cwnd
        if (f64::from(window.cwnd) - self.window).abs() >= 1.0 {
            self.window = f64::from(window.cwnd);
            self.target = self.window;
            self.slope = 0.0;
        }
        let mut grown = self.window;
        if ack.snd_una > self.end_seq {
            self.end_seq = ack.snd_nxt;
            grown = self.on_round(window, ack).unwrap_or(grown);
        }
        if self.doubled && !self.low_delay() {
            self.doubled = false;
            self.slope = 0.0;
            self.target = grown;
        }
        if self.slope != 0.0 {
            grown += self.slope * f64::from(ack.acked);
            let passed = (grown > self.target) == (self.slope > 0.0);
            if passed {
                grown = self.target;
                self.slope = 0.0;
            }
        }
        if grown > self.window && !ack.cwnd_limited {
            return;
        }
        self.window = grown.max(FLOOR).min(f64::from(window.cwnd_clamp));
        window.cwnd = self.window as u32;
    }

    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        (window.cwnd / 2).max(2)
    }

    fn on_recovered(&mut self, window: &mut Window, _now: Time) {
        self.window = f64::from(window.cwnd);
        self.w_old = self.window;
        self.target = self.window;
        self.slope = 0.0;
    }

    fn needs(&self) -> Needs {
        Needs {
            pacing: self.options.pacing,
            vars: &["base_rtt_s", "avg_rtt_s", "queued_packets", "target_segments"],
            ..Needs::default()
        }
    }

    fn vars(&self, values: &mut [f64]) {
        if self.avg_rtt == 0.0 {
            return;
        }
        let queued = self.window * self.queueing() / self.avg_rtt;
        for (value, known) in values.iter_mut().zip([self.base_rtt, self.avg_rtt, queued, self.target]) {
            *value = known;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::arrival;
    use ackclock_core::schema::{Described, Value};
    use ackclock_core::Span;

    fn fast(options: &[(&str, f64)]) -> Fast {
        let given = options.iter().map(|(k, v)| (k.to_string(), Value::number(*v))).collect();
        Fast::new(&FastOptions::read(&Value::Table(given)).expect("known"))
    }

    /// 155 Mb/s, 64 ms, alpha 200: 100 segments grow to 963 after 9 updates, 1026 after 15, and settle at 1027.
    #[test]
    fn the_law_settles_where_alpha_packets_are_queued() {
        let mut c = fast(&[]);
        let bdp = 155e6 * 0.064 / 12_000.0;
        c.base_rtt = 0.064;
        let mut w = 100.0_f64;
        for update in 1..=40 {
            c.avg_rtt = 0.064 * (w / bdp).max(1.0);
            w = c.updated(w, w);
            match update {
                9 => assert_eq!(w as u32, 963),
                15 => assert_eq!(w as u32, 1025 + u32::from(w >= 1026.0)),
                _ => {}
            }
        }
        assert!((w - (bdp + 200.0)).abs() < 0.1, "{w}");
    }

    /// Computed by hand: alpha 200, gamma 0.5, base RTT 64 ms; w <- min(2w, 0.5 w + 0.5 (64/RTT w + 200)).
    ///
    /// | w | RTT, ms | packets queued, w (RTT - 64)/RTT | next w |
    /// |---|---|---|---|
    /// | 500 | 64 | 0 | 250 + 0.5 (500 + 200) = 600 |
    /// | 1000 | 80 | 200 = alpha | 500 + 0.5 (800 + 200) = 1000 |
    /// | 1500 | 100 | 540 | 750 + 0.5 (960 + 200) = 1330 |
    /// | 150 | 64 | 0 | 75 + 0.5 (150 + 200) = 250, below 300 |
    /// | 80 | 64 | 0 | 40 + 0.5 (80 + 200) = 180, but at most 160 |
    #[test]
    fn the_law_by_hand() {
        let mut c = fast(&[]);
        c.base_rtt = 0.064;
        for (w, rtt, next) in [
            (500.0, 0.064, 600.0),
            (1000.0, 0.080, 1000.0),
            (1500.0, 0.100, 1330.0),
            (150.0, 0.064, 250.0),
            (80.0, 0.064, 160.0),
        ] {
            c.avg_rtt = rtt;
            let found = c.updated(w, w);
            assert!((found - next).abs() < 1e-9, "{w} {rtt}: {found}, not {next}");
        }
    }

    #[test]
    fn never_more_than_doubles_and_rests_between_alpha_and_beta() {
        let mut c = fast(&[("alpha", 1000.0)]);
        c.base_rtt = 0.1;
        c.avg_rtt = 0.1;
        assert_eq!(c.updated(10.0, 10.0), 20.0);
        let mut c = fast(&[("alpha", 100.0), ("beta", 200.0)]);
        c.base_rtt = 0.1;
        c.avg_rtt = 0.2;
        assert_eq!(c.updated(300.0, 300.0), 300.0); // 150 queued
        assert!(c.updated(500.0, 500.0) < 500.0); // 250 queued
        assert!(c.updated(100.0, 100.0) > 100.0); // 50 queued
    }

    #[test]
    fn slow_start_ends_when_the_delay_rises() {
        let mut c = fast(&[]);
        let mut w = Window::new(100);
        let ack = |ms: u64| AckSample::from(Arrival { rtt: Some(Span::from_us(ms)), ..arrival(0, 1) });
        c.on_sample(&mut w, &ack(64_000));
        c.on_sample(&mut w, &ack(64_700));
        assert!(w.in_slow_start());
        for _ in 0..200 {
            c.on_sample(&mut w, &ack(65_000));
        }
        assert!(!w.in_slow_start());
    }

    /// Simulate whole windows: one ACK per segment of cwnd in each round, with the RTT returned by `rtt_us` for cwnd.
    fn rounds(c: &mut Fast, w: &mut Window, rounds: usize, rtt_us: impl Fn(u32) -> u64) -> Vec<u32> {
        let mut una = 1;
        let mut at_round = Vec::new();
        for _ in 0..rounds {
            let size = u64::from(w.cwnd);
            let end = una + size * 1448;
            for _ in 0..size {
                una += 1448;
                let rtt = Some(Span::from_us(rtt_us(w.cwnd)));
                let nxt = end + 1448 * u64::from(w.cwnd);
                let ack = AckSample::from(Arrival { snd_una: una, snd_nxt: nxt, rtt, ..arrival(0, 1) });
                c.on_sample(w, &ack);
                c.on_ack(w, &ack);
            }
            at_round.push(w.cwnd);
        }
        at_round
    }

    #[test]
    fn the_window_doubles_once_per_update_while_the_delay_is_low() {
        let mut c = fast(&[]);
        let mut w = Window { ssthresh: 100, ..Window::new(100) };
        let at_round = rounds(&mut c, &mut w, 10, |_| 100_000);
        assert!(at_round.windows(3).all(|r| r[2] <= 2 * r[0] + 1), "{at_round:?}");
        assert!(at_round[9] >= 400, "{at_round:?}");
    }

    #[test]
    fn a_doubling_stops_at_the_first_rtt_that_shows_a_queue() {
        let mut c = fast(&[]);
        let mut w = Window { ssthresh: 100, ..Window::new(100) };
        // a path that holds 150 segments, plus 1 ms for each further segment
        let at_round =
            rounds(&mut c, &mut w, 3, |cwnd| 100_000 + 1_000 * u64::from(cwnd.saturating_sub(150)));
        assert!(at_round.iter().all(|&cwnd| cwnd <= 155), "{at_round:?}");
    }

    #[test]
    fn an_update_comes_every_other_round_trip_and_is_spread_over_it() {
        let mut c = fast(&[]);
        let mut w = Window { ssthresh: 100, ..Window::new(100) };
        c.base_rtt = 0.1;
        let at_round = rounds(&mut c, &mut w, 9, |_| 105_000);
        let moves: Vec<u32> = at_round.windows(2).map(|p| p[1] - p[0]).collect();
        assert!(moves.iter().filter(|&&m| m > 20).count() >= 3, "{at_round:?}");
        assert!(moves.iter().any(|&m| m < 3), "{at_round:?}");
    }
}
