//! RE: bytes acknowledged over the last T seconds, with T of the order of one RTT (packet train). The estimate is fair
//! under congestion and too low if random losses keep the window small.

use ackclock_core::{Span, Time};

use super::{Credited, Insight, Meter};

/// RE estimator.
#[derive(Clone, Debug)]
pub(super) struct Train {
    meter: Meter,
    /// T, s; 0 uses the RTT.
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

    /// Return RE, bytes/s.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    pub fn insight(&self) -> Insight {
        Insight { sample: self.rate, interval: self.interval, ..Insight::default() }
    }
}
