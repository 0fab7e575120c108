//! The receiving end of plain datagram traffic: counts, one-way delay, jitter.
//!
//! Sources: RFC 3550 §6.4.1 and appendix A.3 (expected, lost, jitter), A.8 (the estimator).

use ackclock_core::datagram::{Datagram, DatagramEndpoint};
use ackclock_core::{Span, Time};

/// Sink counters.
#[derive(Clone, Debug)]
pub struct Received {
    /// Datagrams received.
    pub packets: u64,
    /// Payload bytes received.
    pub bytes: u64,
    /// Largest datagram number received, plus one.
    pub expected: u64,
    /// Datagrams received after one with a larger number.
    pub reordered: u64,
    /// Sum of the one-way delays, ns.
    pub delay_sum_ns: u128,
    /// Minimum one-way delay.
    pub delay_min: Span,
    /// Maximum one-way delay.
    pub delay_max: Span,
    /// Sum of |D(i-1, i)|, the difference between the delays of consecutive arrivals.
    pub variation_sum_ns: u128,
    /// Current jitter estimate of RFC 3550, in sixteenths of a ns.
    pub jitter_16ths: u64,
    histogram: Vec<u64>,
}

impl Received {
    /// Number of datagrams not received whose numbers are below the largest one received.
    pub fn lost(&self) -> u64 {
        self.expected.saturating_sub(self.packets)
    }

    /// Interarrival jitter (RFC 3550).
    pub fn jitter(&self) -> Span {
        Span(self.jitter_16ths >> 4)
    }

    /// Delay that this fraction of the datagrams did not exceed, with a relative error below 1/64; `None` if none has
    /// arrived.
    pub fn delay_quantile(&self, share: f64) -> Option<Span> {
        let rank = ((self.packets as f64 * share).ceil() as u64).clamp(1, self.packets.max(1));
        let mut below = 0;
        for (i, &n) in self.histogram.iter().enumerate() {
            below += n;
            if n > 0 && below >= rank {
                return Some(Span(bucket_middle(i)).min(self.delay_max).max(self.delay_min));
            }
        }
        None
    }
}

/// The receiving end.
#[derive(Clone)]
pub struct Sink {
    received: Received,
    previous: Option<Span>,
}

impl Default for Sink {
    fn default() -> Sink {
        Sink {
            received: Received {
                packets: 0,
                bytes: 0,
                expected: 0,
                reordered: 0,
                delay_sum_ns: 0,
                delay_min: Span::MAX,
                delay_max: Span::ZERO,
                variation_sum_ns: 0,
                jitter_16ths: 0,
                histogram: Vec::new(),
            },
            previous: None,
        }
    }
}

impl Sink {
    /// Counters so far.
    pub fn received(&self) -> &Received {
        &self.received
    }
}

impl DatagramEndpoint for Sink {
    fn on_packet(&mut self, now: Time, datagram: &Datagram) {
        let Datagram::Data(data) = datagram else { return };
        let delay = now.since(data.sent);
        let r = &mut self.received;
        r.packets += 1;
        r.bytes += data.len as u64;
        if data.number < r.expected {
            r.reordered += 1;
        }
        r.expected = r.expected.max(data.number + 1);
        r.delay_sum_ns += delay.0 as u128;
        r.delay_min = r.delay_min.min(delay);
        r.delay_max = r.delay_max.max(delay);
        if let Some(previous) = self.previous {
            let d = previous.0.abs_diff(delay.0);
            r.variation_sum_ns += d as u128;
            r.jitter_16ths = r.jitter_16ths + d - ((r.jitter_16ths + 8) >> 4);
        }
        self.previous = Some(delay);
        let at = bucket(delay.0);
        if at >= r.histogram.len() {
            r.histogram.resize(at + 1, 0);
        }
        r.histogram[at] += 1;
    }

    fn on_timer(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, _now: Time) -> Option<Datagram> {
        None
    }

    fn next_deadline(&self) -> Time {
        Time::NEVER
    }
}

/// Buckets per power of two.
const PARTS: u64 = 1 << PARTS_BITS;
const PARTS_BITS: u32 = 5;

/// Bucket of a delay: exact below 32 ns, then 32 buckets for each doubling.
fn bucket(ns: u64) -> usize {
    let exponent = ns.max(1).ilog2();
    if exponent < PARTS_BITS {
        return ns as usize;
    }
    let shift = exponent - PARTS_BITS;
    ((shift as u64 + 1) * PARTS + ((ns >> shift) - PARTS)) as usize
}

fn bucket_middle(at: usize) -> u64 {
    let (octave, part) = (at as u64 / PARTS, at as u64 % PARTS);
    if octave == 0 {
        return part;
    }
    let width = 1u64 << (octave - 1);
    (PARTS + part) * width + width / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::datagram::Data;
    use proptest::prelude::*;

    fn sink(arrivals: &[(u64, u64, u64)]) -> Sink {
        let mut sink = Sink::default();
        for &(number, sent, now) in arrivals {
            let data = Data { number, sent: Time(sent), len: 172, ..Data::default() };
            sink.on_packet(Time(now), &Datagram::Data(data));
        }
        sink
    }

    #[test]
    fn counts_as_rtp_does() {
        let sink = sink(&[(0, 0, 100), (1, 20, 140), (3, 60, 150), (2, 40, 200), (6, 120, 220)]);
        let r = sink.received();
        assert_eq!((r.packets, r.expected, r.lost(), r.reordered), (5, 7, 2, 1));
        assert_eq!(
            (r.delay_min, r.delay_max, r.delay_sum_ns),
            (Span(90), Span(160), 100 + 120 + 90 + 160 + 100)
        );
        assert_eq!(r.variation_sum_ns, 20 + 30 + 70 + 60);
        // J += |D|/16 - J/16, in sixteenths with rounding (RFC 3550 A.8)
        let mut j = 0u64;
        for d in [20, 30, 70, 60] {
            j = j + d - ((j + 8) >> 4);
        }
        assert_eq!(r.jitter(), Span(j >> 4));
    }

    #[test]
    fn nothing_received_has_no_quantile() {
        assert_eq!(Sink::default().received().delay_quantile(0.5), None);
    }

    proptest! {
        /// Oracle: the sorted delays.
        #[test]
        fn quantiles_are_within_a_sixty_fourth(delays in prop::collection::vec(1u64..10_000_000_000, 1..200),
                                               share in 0.01f64..1.0) {
            let arrivals: Vec<_> = delays.iter().enumerate().map(|(i, &d)| (i as u64, 0, d)).collect();
            let got = sink(&arrivals).received().delay_quantile(share).expect("some arrived").0 as f64;
            let mut sorted = delays.clone();
            sorted.sort_unstable();
            let rank = ((delays.len() as f64 * share).ceil() as usize).max(1);
            let exact = sorted[rank - 1] as f64;
            prop_assert!((got / exact - 1.0).abs() <= 1.0 / 64.0, "{} {}", got, exact);
        }
    }
}
