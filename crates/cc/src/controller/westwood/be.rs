//! BE, the first estimator: every ACK gives a sample d_k / gap (packet pair), low-passed by a Tustin filter with time
//! constant tau. Each tau/2 without an ACK counts as a zero sample. The estimate is accurate under random loss and too
//! high under congestion.
//!
//! B_k = ((2 tau - D)/(2 tau + D)) B_{k-1} + (D/(2 tau + D)) (b_k + b_{k-1}), D is the gap, or the rest of a gap longer
//! than tau/2 after the zero samples.

use ackclock_core::Time;

use super::{seconds, Credited, Insight, CLOCK};

/// BE estimator. Rates are in bytes/s, times in s.
#[derive(Clone, Debug)]
pub(super) struct Be {
    tau: f64,
    last: Option<Time>,
    /// Time up to which samples, zeros included, have been fed to the filter.
    fed: Time,
    sample: f64,
    rate: f64,
    seeded: bool,
}

impl Be {
    pub fn new(tau: f64) -> Be {
        Be { tau, last: None, fed: Time::ZERO, sample: 0.0, rate: 0.0, seeded: false }
    }

    pub fn on_ack(&mut self, ack: &Credited) {
        let Some(last) = self.last.replace(ack.now) else {
            self.fed = ack.now;
            return;
        };
        let sample = ack.bytes / seconds(ack.now.since(last).max(CLOCK));
        if !self.seeded {
            self.seeded = true;
            self.rate = sample;
            self.sample = sample;
            self.fed = ack.now;
            return;
        }
        self.on_silence(ack.now);
        let d = seconds(ack.now.since(self.fed).max(CLOCK));
        self.rate = step(self.tau, d, self.rate, sample, self.sample);
        self.sample = sample;
        self.fed = ack.now;
    }

    /// Feed zero samples for the time without ACKs up to `now`.
    pub fn on_silence(&mut self, now: Time) {
        if !self.seeded {
            return;
        }
        let half = self.tau / 2.0;
        let mut steps = (seconds(now.since(self.fed)) / half) as u64;
        self.fed = Time(self.fed.0 + (steps as f64 * half * 1e9) as u64).min(now);
        while steps > 0 && self.rate > 0.0 {
            self.rate = step(self.tau, half, self.rate, 0.0, self.sample);
            self.sample = 0.0;
            steps -= 1;
            if self.rate < 1e-3 {
                self.rate = 0.0;
            }
        }
    }

    pub fn rate(&self) -> f64 {
        self.rate
    }

    pub fn insight(&self) -> Insight {
        Insight { sample: self.sample, tau: self.tau, ..Insight::default() }
    }
}

/// Advance the filter by one step.
pub(super) fn step(tau: f64, d: f64, rate: f64, sample: f64, before: f64) -> f64 {
    let sum = 2.0 * tau + d;
    (((2.0 * tau - d) / sum) * rate + (d / sum) * (sample + before)).max(0.0)
}
