//! Loss that grows with the load: radio channels, shared segments and middleboxes lose more while they are busy, before
//! any queue of theirs is full.
//!
//! Our choice: the load is the rate of arriving bytes, averaged exponentially, and the probability is linear in it. No
//! published model is behind it.

use ackclock_core::rng::threshold;
use ackclock_core::schema::{Takes, DURATION, RATE};
use ackclock_core::{table, Rate, Span, Stream, Time};

table! {
    /// Loss that grows with the load, the rate at which packets arrive: linearly, from `idle` at no load to `full` at
    /// the load `rate` and above.
    pub struct ByLoadParams "load" {
        /// Load at which the loss probability reaches `full`.
        rate: Rate = RATE;
        /// Loss probability at this load and above.
        full: f64 = Takes::Share;
        /// Loss probability without load.
        idle: f64 = Takes::Share, 0.0;
        /// Time over which the load is averaged: earlier arrivals count exponentially less.
        window: Span = DURATION, Span::from_ms(100);
    }
}

#[derive(Clone)]
pub(crate) struct ByLoad {
    idle: f64,
    /// Growth of the probability per byte of `level`.
    slope: f64,
    /// Bytes at the load `rate`.
    most: f64,
    window: f64,
    /// Bytes that have arrived, each weighted by its age.
    level: f64,
    last: Time,
    stream: Stream,
}

impl ByLoad {
    pub(crate) fn new(params: &ByLoadParams, stream: Stream) -> ByLoad {
        let window = params.window.as_secs();
        let most = params.rate.0 as f64 / 8.0 * window;
        let slope = (params.full - params.idle) / most;
        ByLoad { idle: params.idle, slope, most, window, level: 0.0, last: Time::ZERO, stream }
    }

    /// Decide at random whether a packet of this size is lost. Its own bytes count half, so that the mean over packets
    /// at a constant rate is that rate.
    pub(crate) fn drops(&mut self, now: Time, bytes: u32) -> bool {
        self.level *= libm::exp(-now.since(self.last).as_secs() / self.window);
        self.last = now;
        let p = self.idle + self.slope * (self.level + bytes as f64 / 2.0).min(self.most);
        self.level += bytes as f64;
        self.stream.chance(threshold(p))
    }

    pub(crate) fn restart(&mut self, stream: Stream) {
        (self.level, self.stream) = (0.0, stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Return the share of 20,000 packets of 1250 bytes that is lost, at one packet every `every` ns.
    fn lost(every: u64) -> f64 {
        let params = ByLoadParams { rate: Rate(10_000_000), full: 0.2, idle: 0.02, window: Span(50 * MS) };
        let mut model = ByLoad::new(&params, Stream::new(7, "test"));
        let drops = (0..20_000).filter(|&n| model.drops(Time(n * every), 1250)).count();
        drops as f64 / 20_000.0
    }

    #[test]
    fn loss_is_linear_in_the_load() {
        // 10,000 bits a packet: every 1 ms is the full load; the error of a share of 20,000 is at most 0.003
        for (every, expected) in
            [(500_000, 0.2), (MS, 0.2), (2 * MS, 0.11), (4 * MS, 0.065), (500 * MS, 0.02)]
        {
            let share = lost(every);
            assert!((share - expected).abs() < 0.01, "every {every} ns: {share}");
        }
    }

    #[test]
    fn a_restart_forgets_the_load() {
        let params = ByLoadParams { rate: Rate(1_000), full: 1.0, idle: 0.0, window: Span(1_000 * MS) };
        let mut model = ByLoad::new(&params, Stream::new(7, "test"));
        let lost = (0..100).filter(|&n| model.drops(Time(n * MS), 1250)).count();
        assert_eq!(lost, 100, "one packet is the whole load");
        model.restart(Stream::new(7, "test"));
        assert_eq!(model.level, 0.0);
    }
}
