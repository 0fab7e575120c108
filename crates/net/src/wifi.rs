//! Wi-Fi jitter, as modelled by the tests of C4 (draft-huitema-ccwg-c4-test): most packets are slightly delayed, a
//! few by a long time.
//!
//! With J the configured mean in ms, and x = 0 for J up to 1, x = 1 for J from 91 on, and x = (J - 1) / 90 in
//! between:
//!
//! | part | is |
//! | --- | --- |
//! | N1 | Poisson with mean 1 |
//! | N2 | Poisson with mean 12 with probability x, otherwise 0 |
//! | delay, ms | N1 + 7.5 N2, minus r uniform in (0, 1) if N1 is at least 1 |
//!
//! The mean delay is 1 - (1 - 1/e) / 2 + 90 x: 6.68 ms for J = 7, with a standard deviation of 23 ms. Packets keep their order,
//! so a late packet blocks those behind it, and on a busy link the delay is much longer: 86 ms on average for packets
//! 1.2 ms apart. Poisson numbers are drawn by inversion with integer thresholds, so that results are identical on all
//! machines.

use ackclock_core::rng::threshold;
use ackclock_core::schema::Takes;
use ackclock_core::{table, Span, Stream, Time};

table! {
    /// Wi-Fi jitter as modelled by draft-huitema-ccwg-c4-test.
    /// Packets keep their order, so a late packet delays those behind it.
    pub struct WifiJitter "wifi-jitter" {
        /// Mean jitter drawn for one packet (J of the draft). Packets in close succession are delayed more, because a
        /// late packet delays those behind it.
        mean: Span = Takes::Duration(1);
    }
}

const MS: u64 = 1_000_000;
/// Delay per unit of N2, ns: 7.5 ms.
const LONG: u64 = 15 * MS / 2;

impl WifiJitter {
    /// Maximum delay of a single draw.
    pub fn longest(&self) -> Span {
        Span(SHORT_MOST as u64 * MS + LONG_MOST as u64 * LONG)
    }
}

/// Cut-off of the Poisson distributions; less than 2^-64 lies beyond.
const SHORT_MOST: usize = 21;
const LONG_MOST: usize = 64;

/// Jitter state.
#[derive(Clone)]
pub(crate) struct Wifi {
    often: u64,
    short: [u64; SHORT_MOST],
    long: [u64; LONG_MOST],
    stream: Stream,
    last: Time,
}

impl Wifi {
    pub(crate) fn new(config: Option<&WifiJitter>, stream: Stream) -> Option<Wifi> {
        let mean_ms = config?.mean.0 as f64 / MS as f64;
        let x = ((mean_ms - 1.0) / 90.0).clamp(0.0, 1.0);
        Some(Wifi { often: threshold(x), short: poisson(1.0), long: poisson(12.0), stream, last: Time::ZERO })
    }

    /// Return the delivery time of a packet that would be delivered at `undisturbed`.
    pub(crate) fn apply(&mut self, undisturbed: Time) -> Time {
        let delay = self.draw();
        self.last = self.last.max(undisturbed + delay);
        self.last
    }

    /// Draw a packet's own delay. Each packet takes four draws, whatever their values.
    fn draw(&mut self) -> Span {
        let short = draw(&self.short, self.stream.next_u64()) as u64;
        let often = self.stream.chance(self.often);
        let long = draw(&self.long, self.stream.next_u64()) as u64;
        let less = self.stream.below(MS);
        let early = if short >= 1 { less } else { 0 };
        Span(short * MS - early + if often { long * LONG } else { 0 })
    }
}

/// Return P(N <= k) for k from 0, as thresholds for a 64-bit draw.
fn poisson<const N: usize>(mean: f64) -> [u64; N] {
    let mut term = libm::exp(-mean);
    let mut below = 0.0;
    std::array::from_fn(|k| {
        below += term;
        term *= mean / (k + 1) as f64;
        threshold(below)
    })
}

fn draw(below: &[u64], drawn: u64) -> usize {
    below.partition_point(|&bound| bound <= drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jitter(mean_ms: u64) -> Wifi {
        Wifi::new(Some(&WifiJitter { mean: Span(mean_ms * MS) }), Stream::new(7, "test")).expect("given")
    }

    fn moments(values: &[f64]) -> (f64, f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let sd = (values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n).sqrt();
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        (mean, sd, sorted[(n * 0.95) as usize])
    }

    #[test]
    fn own_delays_have_the_mean_of_the_formula() {
        let e = 1.0 - 0.5 * (1.0 - (-1.0f64).exp());
        for (asked, x) in [(1, 0.0), (7, 6.0 / 90.0), (12, 11.0 / 90.0)] {
            let mut wifi = jitter(asked);
            let own: Vec<f64> = (0..400_000).map(|_| wifi.draw().0 as f64 / 1e6).collect();
            let (mean, sd, _) = moments(&own);
            assert!((mean / (e + 90.0 * x) - 1.0).abs() < 0.02, "{asked}: {mean}");
            assert!(asked != 7 || (sd - 23.0).abs() < 0.7, "{sd}");
            assert!(own.iter().all(|&d| d * 1e6 <= wifi_longest()));
        }
    }

    fn wifi_longest() -> f64 {
        WifiJitter { mean: Span(1) }.longest().0 as f64
    }

    /// Delays of equally spaced packets: mean and 95th percentile in ms. The expected values were computed
    /// independently of this code, from the formula and the rule that packets keep their order.
    #[test]
    fn a_late_packet_blocks_those_behind_it() {
        for (asked, gap_us, mean, p95) in [
            (1u64, 600u64, 1.1, 2.8),
            (1, 6_000, 0.7, 2.5),
            (7, 600, 102.0, 140.0),
            (7, 1_200, 86.0, 131.0),
            (7, 6_000, 40.0, 109.0),
            (7, 20_000, 17.0, 91.0),
            (7, 100_000, 7.1, 75.0),
            (12, 1_200, 101.0, 139.0),
            (12, 20_000, 29.0, 105.0),
        ] {
            let mut wifi = jitter(asked);
            let late: Vec<f64> = (0..400_000u64)
                .map(|i| {
                    let sent = Time(i * gap_us * 1000);
                    wifi.apply(sent).since(sent).0 as f64 / 1e6
                })
                .collect();
            let (found, _, high) = moments(&late);
            // within 3 %, and within the precision of the printed digits
            assert!(
                (found - mean).abs() <= 0.03 * mean + 0.05,
                "{asked} ms, {gap_us} us: mean {found}, not {mean}"
            );
            assert!(
                (high - p95).abs() <= 0.03 * p95 + 0.05,
                "{asked} ms, {gap_us} us: p95 {high}, not {p95}"
            );
        }
    }
}
