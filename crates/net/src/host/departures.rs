//! Departure noise of a run, whatever its cause: how evenly a flow's data is sent, and how long its bursts are.
//! Computed from running integer sums, at a cost of a few instructions per packet.

use ackclock_core::{Rate, Span, Time};

/// Departures of one flow's data from its host.
#[derive(Clone, Debug)]
pub struct Departures {
    line: Rate,
    /// Size and transmission time of the last packet.
    tx: (u32, Span),
    first: Time,
    last: Time,
    packets: u64,
    /// Sum of the squared gaps, ns^2.
    squares: u128,
    /// Time by which the line would have sent all packets so far.
    line_free: Time,
    burst: u32,
    largest_burst: u32,
}

impl Departures {
    /// Return an empty record. `line` is the rate of the first link.
    pub fn new(line: Rate) -> Departures {
        Departures {
            line,
            tx: (0, Span::ZERO),
            first: Time::ZERO,
            last: Time::ZERO,
            packets: 0,
            squares: 0,
            line_free: Time::ZERO,
            burst: 0,
            largest_burst: 0,
        }
    }

    /// Record the departure of `packets` packets of `bytes` bytes each.
    #[inline]
    pub fn add(&mut self, now: Time, bytes: u32, packets: u32) {
        if self.tx.0 != bytes {
            self.tx = (bytes, self.line.tx_time(bytes));
        }
        if self.packets == 0 {
            self.first = now;
        } else {
            let gap = (now - self.last).0 as u128;
            self.squares += gap * gap;
        }
        let contiguous = self.packets > 0 && now <= self.line_free;
        self.burst = if contiguous { self.burst + packets } else { packets };
        self.largest_burst = self.largest_burst.max(self.burst);
        self.line_free = self.line_free.max(now) + self.tx.1 * packets as u64;
        self.last = now;
        self.packets += packets as u64;
    }

    /// Coefficient of variation of the gaps between departures; NaN for fewer than two gaps, or if all are zero.
    pub fn variation(&self) -> f64 {
        let gaps = self.packets.saturating_sub(1) as f64;
        let mean = (self.last - self.first).0 as f64 / gaps;
        if gaps < 2.0 || mean == 0.0 {
            return f64::NAN;
        }
        let variance = self.squares as f64 / gaps - mean * mean;
        libm::sqrt(variance.max(0.0)) / mean
    }

    /// Maximum number of packets sent back to back: each was sent by the time the line had finished transmitting the
    /// previous one.
    pub fn largest_burst(&self) -> u32 {
        self.largest_burst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn departures(times: &[u64]) -> Departures {
        // 1500 bytes take 12 us
        let mut all = Departures::new(Rate(1_000_000_000));
        times.iter().for_each(|&us| all.add(Time(us * 1000), 1500, 1));
        let mut together = Departures::new(Rate(1_000_000_000));
        let equal = times.chunk_by(|a, b| a == b);
        equal.for_each(|us| together.add(Time(us[0] * 1000), 1500, us.len() as u32));
        assert_eq!(format!("{all:?}"), format!("{together:?}"));
        all
    }

    #[test]
    fn even_departures_do_not_vary_and_bursts_are_counted_by_the_line() {
        let even = departures(&[0, 120, 240, 360]);
        assert_eq!((even.variation(), even.largest_burst()), (0.0, 1));
        // gaps 0, 0, 300: mean 100, standard deviation 141.4
        let batches = departures(&[0, 0, 0, 300]);
        assert!((batches.variation() - std::f64::consts::SQRT_2).abs() < 1e-12);
        assert_eq!(batches.largest_burst(), 3);
        // the second packet is sent while the line is still transmitting the first, the third just when the second
        // has been transmitted
        assert_eq!(departures(&[0, 5, 24, 40]).largest_burst(), 3);
        assert!(departures(&[5]).variation().is_nan() && departures(&[5, 5, 5]).variation().is_nan());
        assert_eq!(departures(&[]).largest_burst(), 0);
    }
}
