//! RE: bytes acknowledged over the last T seconds, T of the order of one RTT (packet train). Fair under congestion, too
//! low where random losses keep the window small.

use ackclock_core::{Span, Time};

use super::{Credited, Insight, Meter};

/// RE estimator.
#[derive(Clone, Debug)]
pub(super) struct Train {
    meter: Meter,
    /// T, seconds; 0 = the RTT.
    fixed: f64,
    interval: f64,
    now: Time,
    rate: f64,
}

impl Train {
    pub fn new(fixed: f64) -> Train {
        Train { meter: Meter::default(), fixed, interval: 0.0, now: Time::ZERO, rate: 0.0 }
    }

    pub fn on_ack(&mut self, ack: &Credited) {
        self.interval = if self.fixed > 0.0 { self.fixed } else { ack.rtt };
        let span = Span((self.interval * 1e9) as u64);
        self.meter.add(ack.now, ack.bytes, span);
        self.now = ack.now;
        self.rate = self.meter.over(ack.now, span) / self.interval;
    }

    /// bytes/s.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    pub fn insight(&self) -> Insight {
        Insight { sample: self.rate, interval: self.interval, ..Insight::default() }
    }
}
